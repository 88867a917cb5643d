/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver.h: the driver (guest) side of virtio-blk, one object per queue.
 *
 * It turns bios into requests on a virtqueue and completions back into bios: one bio is one
 * request, its header and status byte lie in a DMA area given at init. It allocates nothing. The
 * virtqueue is the caller's object (driver.h): set it up first, give it to this one, and leave
 * add, reap and detach on it to this one; arm, disarm, postpone and the queries stay the
 * caller's.
 *
 *   struct vqb_bio bio = { .vec = &seg, .nvec = 1, .op = VQB_BLK_IN, .sector = 8 };
 *   status = vqb_blk_submit(drv, &bio);                 more of them ...
 *   if (vqb_blk_publish(drv) & VQB_NOTIFY)
 *           notify_device();
 *   ...
 *   do {
 *           vqb_blk_reap(drv, &done);
 *           for (b = done; b; b = next) {
 *                   next = b->next;
 *                   finish(b, b->status);
 *           }
 *   } while (vqb_driver_arm(ring) & VQB_MORE);
 *
 * Everything about a bio is checked before the device sees it: range, block, segments, read-only.
 * What became of it is taken from the status byte alone, which is fetched once.
 *
 * Reset: reset the device, vqb_driver_reset(ring, NULL), vqb_blk_abandon to get the bios back,
 * vqb_driver_reset with a ring, and go on. The same after a submit or the ring's state answered
 * VQB_E_BROKEN.
 *
 * Threads: one at a time, the one that has the ring.
 */
#ifndef VQBLK_BLK_DRIVER_H
#define VQBLK_BLK_DRIVER_H

#include <vqblk/api.h>
#include <vqblk/bio.h>
#include <vqblk/blk.h>
#include <vqblk/driver.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_blk_driver; /* opaque */

struct vqb_blk_driver_config {
	uint32_t struct_size; /* sizeof(struct vqb_blk_driver_config) */
	uint32_t depth; /* most requests in flight: 1 to 32768; no use above the ring's size */
	struct vqb_driver *ring; /* with nothing in flight */
	/* For headers and status bytes; aligned to 64 on both sides, VQB_BLK_AREA_BYTES(depth). */
	struct vqb_dma area;
	uint64_t features;                   /* as negotiated: RO and FLUSH matter */
	const struct vqb_blk_limits *limits; /* from vqb_blk_limits_read; copied */
};

/*
 * The DMA area: headers first, then status bytes, which the device writes, on cache lines of
 * their own.
 */
#define VQB_BLK_AREA_BYTES(depth)                                                                  \
	((((size_t)16 * (depth) + 63) & ~(size_t)63) + (((size_t)(depth) + 63) & ~(size_t)63))

/* Memory of a blk driver, for static allocation; `segments` is that of the limits. */
#define VQB_BLK_DRIVER_BYTES(depth, segments)                                                      \
	VQB_ROUND_UP(512u + 16u * (size_t)(depth) + 16u * (size_t)(segments))

/*
 * Bytes that vqb_blk_driver_init needs: at most VQB_BLK_DRIVER_BYTES.
 * 0: the configuration is invalid. Any thread.
 */
VQB_API size_t vqb_blk_driver_size(const struct vqb_blk_driver_config *config);

/*
 * Makes a blk driver in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long as
 * the driver; there is nothing to destroy. Ring and area are kept, the configuration is not.
 *
 * VQB_OK with the driver in *out.
 * VQB_E_INVALID: a size, an alignment, limits that make no sense, or a ring that is in use.
 * VQB_E_TOOBIG: `bytes` is less than vqb_blk_driver_size, or the area is too small for `depth`.
 * Cost: O(depth).
 */
VQB_API int32_t vqb_blk_driver_init(void *mem, size_t bytes,
				    const struct vqb_blk_driver_config *config,
				    struct vqb_blk_driver **out);

/*
 * Submits one bio. The device sees it at the next publish or turn.
 *
 * VQB_OK: it is the library's until reap or abandon hands it back.
 * VQB_E_NOSPC: no slot, descriptor or table now; something is in flight, so reap and retry.
 * VQB_E_UNSUPP: this device does not do that: an unknown op, a flag, a write where RO was
 *   offered, a flush where FLUSH was not negotiated (completed writes are durable then).
 * VQB_E_INVALID: IN and OUT: no data, not whole blocks, or past capacity; FLUSH: with data;
 *   GET_ID: not 20 bytes; a bad segment; or no ring.
 * VQB_E_TOOBIG: more segments, or bytes in one, than the limits allow, or than the ring can take.
 * VQB_E_BUSY: the bio is the library's already. VQB_E_BROKEN: as vqb_driver_add.
 * On failure nothing has changed, and `status` of the bio isn't set. Cost: O(segments).
 */
VQB_API int32_t vqb_blk_submit(struct vqb_blk_driver *drv, struct vqb_bio *bio);

/*
 * Makes submitted bios visible and says whether the device has to be notified, or does that and
 * asks for the next completion to be announced, with one fence: vqb_driver_publish and
 * vqb_driver_turn on the ring.
 */
VQB_API uint32_t vqb_blk_publish(struct vqb_blk_driver *drv);
VQB_API uint32_t vqb_blk_turn(struct vqb_blk_driver *drv);

/*
 * Hands back all bios that have completed, each once, in *done as a list in the order of
 * completion (NULL: none), `status` set: VQB_OK, VQB_E_UNSUPP as the device says, or VQB_E_IO
 * for any other status byte. How many, as the answer. Never calls back.
 * Cost: O(completions).
 */
VQB_API uint32_t vqb_blk_reap(struct vqb_blk_driver *drv, struct vqb_bio **done);

/*
 * After vqb_driver_reset(ring, NULL): hands back, in *list, every bio that never completed, with
 * status VQB_E_AGAIN: undecided, it may have been carried out or not; submit it again once the
 * queue works, if it must be.
 *
 * VQB_OK. VQB_E_BUSY: the ring has not been reset, its device may still write to the buffers; the
 * list is empty. Cost: O(ring size).
 */
VQB_API int32_t vqb_blk_abandon(struct vqb_blk_driver *drv, struct vqb_bio **list);

/* Bios submitted and not handed back. */
VQB_API uint32_t vqb_blk_in_flight(const struct vqb_blk_driver *drv);

/*
 * New limits and features, after a reset or when capacity changed. `segments` may not grow beyond
 * what init was given. VQB_OK or VQB_E_INVALID: nothing has changed.
 */
VQB_API int32_t vqb_blk_driver_limits(struct vqb_blk_driver *drv, uint64_t features,
				      const struct vqb_blk_limits *limits);

VQB_C_END

#endif
