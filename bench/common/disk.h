/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: a whole block device and a driver for it, on one ring in one thread. The driver knows its
 * requests by heart and keeps no books of its own, so that what is measured is the device.
 *
 *   for each request: disk_ask(), disk_add();
 *   disk_serve();
 *   n = disk_reap(): their numbers are in `back`
 */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <stdbool.h>

#include <vqblk/blk_device.h>

#include "ends.h"

struct disk_plan {
	uint32_t ring;
	uint32_t requests;           /* that differ, and the most at a time */
	uint32_t bytes;              /* of data, of each */
	uint64_t sectors;            /* of the disk */
	struct vqb_backend *backend; /* this disk's alone */
	bool joins;                  /* with a coalescer */
	/*
	 * For a driver of another kind, which has no requests here: segments of data that one of
	 * its requests has at most, on a ring with indirect tables, and what it needs of guest
	 * memory.
	 */
	uint32_t segments;
	size_t small, data; /* bytes; at shared_at and at ENDS_HIGH */
	bool flags;         /* no EVENT_IDX */
};

/* What a request shares with the device besides data, in a cache line of its own. */
struct disk_shared {
	struct vqb_blk_header header;
	struct vqb_blk_range range;
	uint8_t id[VQB_BLK_ID_BYTES];
	uint8_t status;
	uint8_t unused[11];
};

struct disk_request {
	struct vqb_segment seg[3];
	struct vqb_submission entry;
	struct disk_shared *shared;
	uint32_t length; /* that it comes back with */
};

struct disk {
	struct ends ends;
	struct vqb_backend *backend;
	struct vqb_blk_device *blk;
	struct vqb_blk_queue *queue;
	struct vqb_coalescer *coalescer; /* or NULL */
	struct disk_request *request;
	struct vqb_done *back;
	struct disk_plan plan;
	uint64_t shared_at; /* guest address */
};

/* Ends the program if something is wrong. The disk must not move. */
void disk_open(struct disk *disk, const struct disk_plan *plan);
void disk_close(struct disk *disk);

/* Makes request `i` one of this type; `sector` is used where the type has a use for it. */
void disk_ask(struct disk *disk, uint32_t i, uint32_t type, uint64_t sector);

/* Adds it; the device sees it with the next disk_serve. */
static inline void disk_add(struct disk *disk, uint32_t i)
{
	const struct vqb_submission *s = &disk->request[i].entry;

	check(vqb_driver_add(disk->ends.drv, s->seg, s->readable, s->writable, s->token));
}

/* The device serves what there is, without waiting for its backend. Both sides are armed. */
static inline void disk_serve(struct disk *disk)
{
	vqb_driver_turn(disk->ends.drv);
	while (vqb_blk_queue_run(disk->queue, 256) & VQB_MORE)
		continue;
}

/* What has come back: how many. Ends the program if one has failed or has a wrong length. */
uint32_t disk_reap(struct disk *disk);

/* The number of the k-th of them. */
static inline uint32_t disk_back(const struct disk *disk, uint32_t k)
{
	return (uint32_t)((const struct disk_request *)disk->back[k].token - disk->request);
}

#endif
