/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver_sim.h: events by chance for a blk driver on a ring whose device side the test plays
 * byte by byte, next to the model (bio_model.h). What was sent is read off the ring.
 */
#ifndef TESTS_BLK_DRIVER_SIM_H
#define TESTS_BLK_DRIVER_SIM_H

#include <vqblk/blk_driver.h>

#include "bio_feed.h"
#include "raw_ring.h"

enum {
	RING_MOST = 256,
	RING_RANGES = 8,
	RING_SEGMENTS = RING_MOST - 2,
	RING_DEPTH = 300,
	RING_TABLES = 64 * 1024,
};

/* What befell a request; the names are those of states.md. */
enum slot_event {
	SLOT_SEND,
	SLOT_NO_ROOM,
	SLOT_DONE,
	SLOT_FAILED,
	SLOT_ABANDON,
	SLOT_EVENTS,
};

struct ring_request {
	struct model_request model;
	uint32_t head, slot;
	uint8_t *status;
	bool completed;
};

struct blk_driver_sim {
	struct run *run;
	struct model model;
	struct feed feed;
	struct vqb_driver *ring;
	struct vqb_blk_driver *drv;
	struct vqb_driver_config ring_config;
	struct vqb_blk_driver_config config;
	struct vqb_blk_limits blk;
	struct vqb_limits limits;
	uint32_t segments; /* most of a request, from init */
	struct raw_ring raw;
	uint16_t avail, used; /* of the device: next entries */
	int32_t state;        /* of the ring */
	struct ring_request out[RING_DEPTH];
	uint32_t outs;
	uint32_t completed[RING_DEPTH]; /* into `out`, as completed, not reaped yet */
	uint32_t completions;
	bool busy[RING_DEPTH]; /* slots */
	bool spoilt;           /* the used ring has an entry that is nonsense */
	unsigned weight[8];
	/* told of each event of a request; was it out before, is it now? */
	void (*observe)(void *observer, enum slot_event event, bool before, bool after);
	void *observer;
	/* told of each event of the ring, as states.md has them, and of its states around it */
	void (*observe_ring)(void *observer, const char *event, int32_t before, int32_t after);
	void *ring_observer;
	int32_t ring_seen;
	/* over all episodes */
	uint64_t events, bios, sent, shared, parts, errors, resets, broken, waits, longest,
		indirect;
	_Alignas(64) unsigned char area[VQB_BLK_AREA_BYTES(RING_DEPTH, RING_RANGES)];
	_Alignas(64) unsigned char tables[RING_TABLES];
	_Alignas(64) unsigned char block[16384];
	_Alignas(64) unsigned char ring_mem[VQB_DRIVER_BYTES(RING_MOST)];
	_Alignas(64) unsigned char mem[VQB_BLK_DRIVER_BYTES(RING_DEPTH, RING_SEGMENTS, RING_RANGES,
							    VQB_REQUESTS_WINDOW)];
};

void blk_driver_sim_open(struct blk_driver_sim *s, struct run *run);
void blk_driver_sim_step(struct blk_driver_sim *s);
void blk_driver_sim_close(struct blk_driver_sim *s);

#endif
