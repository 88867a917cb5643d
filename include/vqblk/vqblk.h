/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vqblk.h: all headers of the core. (The hosted part has its own, under vqblk/host/.)
 *
 * Five objects, two layers. One ring has one vqb_driver (guest) and one vqb_device (host): in the
 * terms of the specification these are the two sides of a queue, not a whole device. A disk is
 * one vqb_blk_device, shared by its queues; a vqb_blk_queue serves one ring of it, on top of that
 * ring's vqb_device. In the guest a vqb_blk_driver drives one ring, on top of its vqb_driver.
 *
 *   api.h status.h port.h wire.h               the ground
 *   ring.h indirect.h driver.h                 virtqueue, driver side
 *   memory.h device.h                          virtqueue, device side
 *   blk.h bio.h segment.h request.h blk_driver.h  virtio-blk, driver side
 *   backend.h blk_parse.h blk_device.h         virtio-blk, device side
 *   coalesce.h                                 neighbours joined, for any device
 *   backend_fault.h                            bad storage, to test with
 *   batch.h                                    several queues ended together, both sides
 *
 * Both ends of one ring, from nothing, where guest memory is at `host` and at guest address `base`,
 * and the ring begins there (driver first: it sets the ring's memory up):
 *
 *   struct vqb_driver_config drv = { .struct_size = sizeof(drv),
 *           .ring = { .size = 256, .features = VQB_RING_DEFAULTS } };
 *   vqb_ring_place(&drv.ring, host, 4);
 *   vqb_driver_init(drv_mem, sizeof(drv_mem), &drv, &driver);
 *
 *   struct vqb_extent ram = { .addr = base, .len = bytes, .host = host,
 *                             .access = VQB_READ | VQB_WRITE };
 *   struct vqb_memory map = { .struct_size = sizeof(map), .count = 1, .sorted = &ram };
 *   struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &map,
 *           .ring = { .size = 256, .features = VQB_RING_DEFAULTS } };
 *   vqb_ring_place_at(&dev.ring, base, 4);
 *   vqb_device_init(dev_mem, sizeof(dev_mem), &dev, &device);
 *
 * with drv_mem of VQB_DRIVER_BYTES(256) and dev_mem of VQB_DEVICE_BYTES(256) bytes, aligned to 64.
 *
 * A disk, at both ends. Its features are negotiated first, since rings are told of them, too:
 *
 *   struct vqb_blk_shape shape = { .struct_size = sizeof(shape), .ring_size = 256 };
 *   vqb_blk_limits_announce(&backend->caps, &shape, &limits);
 *   struct vqb_blk_device_config disk = { .struct_size = sizeof(disk), .limits = &limits,
 *           .features = VQB_BLK_DEVICE_FEATURES | VQB_RING_DEFAULTS,
 *           .backend = &backend->caps };
 *   vqb_blk_device_init(disk_mem, sizeof(disk_mem), &disk, &blk_device);
 *
 *   features = vqb_blk_features_accept(vqb_blk_device_features(blk_device),
 *                                      VQB_BLK_DRIVER_FEATURES | VQB_RING_DEFAULTS);
 *   vqb_blk_device_accept(blk_device, features);
 *   vqb_blk_device_read_config(blk_device, 0, space, VQB_BLK_CONFIG_BYTES);
 *   vqb_blk_limits_read(space, VQB_BLK_CONFIG_BYTES, features, 256, &seen);
 *
 * then the ring's two ends as above, with .features = features, and on top of them, with `area` a
 * struct vqb_dma of guest memory, of VQB_BLK_AREA_BYTES(256, 1) bytes:
 *
 *   struct vqb_blk_queue_config serve = { .struct_size = sizeof(serve), .requests = 256,
 *           .pieces = 4 * 256, .features = features, .device = blk_device, .ring = device,
 *           .backend = backend };
 *   vqb_blk_queue_init(queue_mem, sizeof(queue_mem), &serve, &blk_queue);
 *
 *   struct vqb_blk_driver_config use = { .struct_size = sizeof(use), .depth = 256,
 *           .ring = driver, .area = area, .features = features, .limits = &seen, .ranges = 1 };
 *   vqb_blk_driver_init(blk_mem, sizeof(blk_mem), &use, &blk_driver);
 *
 * with disk_mem, queue_mem and blk_mem of VQB_BLK_DEVICE_BYTES, VQB_BLK_QUEUE_BYTES(256, 4 * 256)
 * and VQB_BLK_DRIVER_BYTES(256, seen.segments, 1, VQB_REQUESTS_WINDOW) bytes; seen.segments is at
 * most 254.
 */
#ifndef VQBLK_VQBLK_H
#define VQBLK_VQBLK_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/backend_fault.h>
#include <vqblk/batch.h>
#include <vqblk/bio.h>
#include <vqblk/blk.h>
#include <vqblk/blk_device.h>
#include <vqblk/blk_driver.h>
#include <vqblk/blk_parse.h>
#include <vqblk/coalesce.h>
#include <vqblk/device.h>
#include <vqblk/driver.h>
#include <vqblk/indirect.h>
#include <vqblk/memory.h>
#include <vqblk/port.h>
#include <vqblk/ring.h>
#include <vqblk/request.h>
#include <vqblk/segment.h>
#include <vqblk/status.h>
#include <vqblk/wire.h>

#endif
