/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requests_sim.h: events by chance for two lists of requests (vqblk/request.h) in front of two
 * disks, with a plug before them, all of them next to the model (bio_model.h).
 */
#ifndef TESTS_REQUESTS_SIM_H
#define TESTS_REQUESTS_SIM_H

#include "bio_feed.h"

enum { SIM_OUT = 32, SIM_ROOM = 48 };

struct requests_sim {
	struct run *run;
	struct model model;
	struct feed feed;
	struct vqb_requests *rq[MODEL_QUEUES];
	struct vqb_limits limits[MODEL_QUEUES];
	struct model_request out[SIM_OUT + 1];
	uint32_t outs, depth; /* requests that are out; most of them */
	struct vqb_plug plug;
	struct model_bio *plugged[MODEL_BIOS];
	uint32_t plugs;
	unsigned weight[8];
	/* over all episodes */
	uint64_t events, sent, shared, parts, errors, passed, overtaken, longest, compared, bios,
		ends, unsendable, runs;
	_Alignas(64) unsigned char mem[MODEL_QUEUES][VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
};

/* One more event. */
void requests_sim_step(struct requests_sim *s);

/* An episode begins; `observe` as in struct model. */
void requests_sim_open(struct requests_sim *s, struct run *run,
		       void (*observe)(struct model *m, const struct model_bio *b, uint8_t now),
		       void *observer);

/* It ends: everything comes back, and the disks are right. */
void requests_sim_close(struct requests_sim *s);

#endif
