/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_device.h: the disk that queues share, for the queue's own reading.
 *
 * Constant after init, but for what `live` holds: that is written by the transport's thread and
 * read by any, in words of 32 bits that no machine tears, through port.h.
 */
#ifndef VQB_BLOCK_BLK_DEVICE_H
#define VQB_BLOCK_BLK_DEVICE_H

#include <vqblk/blk_device.h>

struct blk_live {
	/*
	 * Counts changes of the capacity, and its lowest bit says which of the two is the present
	 * one (low word, high word). A change writes the other one first, so readers never wait for
	 * it, and go round only when it changed while they looked.
	 */
	uint32_t generation;
	uint32_t capacity[2][2];
	uint32_t writeback; /* the configuration's field */
	uint32_t settable;  /* by the driver: it has accepted CONFIG_WCE */
};

struct vqb_blk_device {
	uint64_t features; /* offered */
	uint32_t block_size;
	struct blk_live live;
	struct vqb_blk_limits limits; /* filled up; its capacity is the first one */
	struct vqb_blk_config config; /* without what is live */
	uint8_t id[VQB_BLK_ID_BYTES];
};

/* In sectors, in one piece, with the generation that it belongs to. */
uint64_t vqb__blk_device_capacity(const struct vqb_blk_device *dev, uint32_t *generation);

static inline int blk_device_offers(const struct vqb_blk_device *dev, uint32_t feature)
{
	return !!(dev->features & VQB_FEATURE(feature));
}

#endif
