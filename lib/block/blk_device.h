/* SPDX-License-Identifier: BSD-3-Clause */
/* blk_device.h: the disk that queues share, for the queue's own reading. Constant after init. */
#ifndef VQB_BLOCK_BLK_DEVICE_H
#define VQB_BLOCK_BLK_DEVICE_H

#include <vqblk/blk_device.h>

struct vqb_blk_device {
	uint64_t capacity; /* sectors */
	uint64_t features; /* offered */
	uint32_t block_size;
	struct vqb_blk_config config;
	uint8_t id[VQB_BLK_ID_BYTES];
};

#endif
