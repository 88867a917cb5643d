/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held.h: chains that were put and that the driver does not see yet, for the queues that have to
 * remember them: those with IN_ORDER, where a chain waits for the ones before it, and those with
 * a tracking area.
 */
#ifndef RING_HELD_H
#define RING_HELD_H

#include "tracking.h"

/* Under IN_ORDER an entry that is left out says "written to its last byte". */
enum held_state {
	HELD_NOT,
	HELD_BAD,   /* out, a bad chain: how long it is isn't known */
	HELD_WHOLE, /* put, and may be left out */
	HELD_SHORT, /* put, and has an entry of its own */
};

/* One for each head. */
struct held {
	uint32_t written, state;
};

/* `writable` is what the chain has; one of 2^32 bytes is never whole, as far as can be said. */
static inline void held_put(struct held *h, uint32_t written, uint64_t writable)
{
	bool whole = h->state != HELD_BAD && written == writable;

	h->written = written;
	h->state = whole ? HELD_WHOLE : HELD_SHORT;
}

static inline bool held_is_put(const struct held *h)
{
	return h->state >= HELD_WHOLE;
}

/* Has the chain at each position from p.from up to, not including, the answer been put? */
static inline uint32_t held_prefix(const struct held *held, struct positions p)
{
	while (p.from != p.to && held_is_put(&held[p.head[p.from & p.mask]]))
		p.from++;
	return p.from;
}

/*
 * The last position of the batch that begins at p.from: chains that are written whole, and
 * whatever comes after them.
 */
static inline uint32_t held_batch_end(const struct held *held, struct positions p)
{
	while (p.from + 1 != p.to && held[p.head[p.from & p.mask]].state == HELD_WHOLE)
		p.from++;
	return p.from;
}

/* The driver sees them now. */
static inline void held_release(struct held *held, struct positions p)
{
	for (; p.from != p.to; p.from++)
		held[p.head[p.from & p.mask]].state = HELD_NOT;
}

#endif
