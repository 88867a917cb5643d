/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h: the list of bios that wait, for the parts of it: who may get on it (request_check.c),
 * what becomes of those that are on it (request.c, states.md), which of them make the next request
 * (request_make.c), and when they may share one (request_full.c).
 *
 * The list is in the order of submission, but that what has to be sent again, or further, comes
 * before all others. From `fresh` on nobody has been looked at for neighbours; before it, `before`
 * and `after` say who can share a request with whom: chains in the order of the disk, which lie
 * across the list as they may. Where nothing is merged nobody is ever looked at.
 */
#ifndef VQB_BLOCK_REQUEST_H
#define VQB_BLOCK_REQUEST_H

#include <vqblk/request.h>

#include "segment.h"

enum {
	REQUEST_EVIDENCE = 32, /* of fewer nothing is learnt */
	REQUEST_MISSES = 4, /* then no more are looked at than that, and 30 times as many spared */
};

/* own.step: of a write with flushes, in this order. */
enum { STEP_PREFLUSH, STEP_DATA, STEP_POSTFLUSH };

/* Of MERGE_WHEN_FULL: whether there is room, as request_full.c has it. */
struct request_full {
	uint32_t on;          /* there is none */
	uint32_t room;        /* requests that it took to fill the ring */
	uint32_t left, count; /* of those, as many as are still timed, and as were to be */
	uint32_t since;       /* `order` when it was full, */
	uint32_t seen;        /* and up to where bios are in `behind` */
	uint32_t pause; /* bios from one look to the next, while requests are out; 0: no clock */
	uint32_t timed; /* as many as came back in a lap */
	uint64_t last, lap; /* when it was looked at; 0: not known */
	int64_t behind;
	uint64_t (*clock)(void *context);
	void *context;
};

/* What has been looked at since something was learnt from it. */
struct request_looks {
	uint64_t ticks; /* that it took, where the pace of the device is known */
	uint32_t bios;  /* that had another one to look at */
	uint32_t found; /* that can share a request with other than the next one */
};

struct vqb_requests {
	_Alignas(VQB_ALIGN) struct vqb_bio *first;
	struct vqb_bio *last, *fresh;
	uint32_t waiting, outstanding;
	uint32_t flying;          /* requests */
	uint32_t order;           /* of the next bio */
	struct sort_entry *entry; /* of a window: two arrays of */
	uint32_t room;            /* so many, behind the object */
	uint32_t window; /* as long as the last one was, twice, as overlaps come together */
	uint32_t misses; /* times in a row that looking did not pay */
	uint32_t spared; /* bios of which, because of that, only the next one is looked at */
	struct request_looks looks;
	uint32_t path, flags;
	uint32_t merging;    /* those that wait may share requests */
	uint32_t write_back; /* a write is durable after a flush */
	uint64_t features, capacity;
	struct vqb_limits limits; /* with no more ranges than a request can carry */
	struct request_full full;
	struct vqb_requests_counters counters;
};

_Static_assert(sizeof(struct vqb_requests) <= VQB_REQUESTS_BYTES(0), "bound");

/* Bytes behind the object, of a window; 0: it would be too long. */
size_t vqb__request_room(uint32_t window);

/*
 * As vqb_requests_init, of one that is part of another object, and has its window where `room` is.
 */
int32_t vqb__request_init(struct vqb_requests *rq, void *room,
			  const struct vqb_requests_config *config);

/* Limits of an op that names ranges; NULL: it doesn't. */
static inline const struct vqb_range_limits *range_limits(const struct vqb_limits *limits,
							  uint32_t op)
{
	switch (op) {
	case VQB_BLK_DISCARD:
		return &limits->discard;
	case VQB_BLK_WRITE_ZEROES:
		return &limits->zeroes;
	case VQB_BLK_SECURE_ERASE:
		return &limits->erase;
	default:
		return NULL;
	}
}

static inline int request_has(const struct vqb_requests *rq, uint32_t feature)
{
	return (rq->features & VQB_FEATURE(feature)) != 0;
}

/*
 * Is it what most bios are, and fine: a read or write of one vector that is one request, with no
 * flags? What this says no to, vqb__request_rule has to look at.
 */
VQB_TINY int request_is_plain(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	const struct vqb_limits *l = &rq->limits;

	return bio->op <= VQB_BLK_OUT && bio->nvec == 1 && !(bio->flags | bio->zero) && bio->vec &&
	       !(bio->op == VQB_BLK_OUT && request_has(rq, VQB_BLK_F_RO)) &&
	       vector_is_request(l, bio->vec) &&
	       !(bio->sector & ((l->block_size - 1) >> VQB_SECTOR_SHIFT)) &&
	       bio->sector < rq->capacity &&
	       bio->vec->len >> VQB_SECTOR_SHIFT <= rq->capacity - bio->sector;
}

/* Is it on a list that is the library's or a plug's? Then its `next` is in use, too. */
VQB_TINY int request_is_held(const struct vqb_bio *bio)
{
	return bio->state != VQB_BIO_IDLE &&
	       (bio->state != VQB_BIO_PLUGGED || bio->own.queue != NULL);
}

/*
 * What is wrong with a bio that is not held, as enum vqb_bio_rule, and the answer to a rule. *end
 * gets the sector behind the last one of an op that has some.
 */
uint32_t vqb__request_rule(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end);
int32_t vqb__request_status(uint32_t rule);

/* Segments of the first request that is made of a bio which is fine, header and status aside. */
uint32_t vqb__request_segments(const struct vqb_requests *rq, const struct vqb_bio *bio);

/* Is its first request a flush, before the data? */
static inline int request_flushes_first(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	return bio->flags & VQB_BIO_PREFLUSH && rq->write_back;
}

/* There is no room, and there was some before; there is some again, or it does not matter. */
void vqb__request_full_begin(struct vqb_requests *rq);
void vqb__request_full_end(struct vqb_requests *rq);

/* While there is none (full.on), and nothing waits, a bio is about to come. */
static inline int request_full_asks(const struct vqb_requests *rq)
{
	return !rq->flying || rq->order - rq->full.seen >= rq->full.pause;
}

/* Is there room again? Not to be asked for every bio. */
void vqb__request_full_look(struct vqb_requests *rq);

/* Ticks of the clock, where the pace of the device is known; else 0. */
uint64_t vqb__request_full_ticks(const struct vqb_requests *rq);

/* Would the device have taken longer for so many requests? If its pace is not known: any. */
int vqb__request_full_pays(const struct vqb_requests *rq, uint32_t requests, uint64_t ticks);

/* While some are timed (full.left): a request is back; all that have come back with it are. */
void vqb__request_full_back(struct vqb_requests *rq);
void vqb__request_full_mark(struct vqb_requests *rq);

#endif
