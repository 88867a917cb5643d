/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_ring.h: what the two models share: the bytes of a split ring, and where one side stands.
 *
 * Written from the format alone. Words are put together byte by byte, counts are 64 bits long and
 * never wrap, and the decision to notify looks at one entry after the other.
 */
#ifndef TESTS_MODEL_RING_H
#define TESTS_MODEL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vqblk/ring.h>

enum { MODEL_NEXT = 1, MODEL_WRITE = 2, MODEL_INDIRECT = 4 };

struct model_ring {
	uint8_t *desc, *avail, *used;
	uint32_t size;
	bool event_idx, indirect, in_order;
	bool big; /* of a big-endian legacy guest */
};

/* ---- words: the only two functions that know the byte order ---- */

static inline uint64_t model_get(const struct model_ring *r, const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << (8 * (r->big ? bytes - 1 - i : i));
	return v;
}

static inline void model_put(const struct model_ring *r, uint8_t *at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> (8 * (r->big ? bytes - 1 - i : i)));
}

/* ---- descriptors, in the ring's table or another ---- */

struct model_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};

static inline struct model_desc model_desc_get(const struct model_ring *r, const uint8_t *table,
					       uint32_t i)
{
	const uint8_t *d = table + 16 * (size_t)i;

	return (struct model_desc){ .addr = model_get(r, d, 8),
				    .len = (uint32_t)model_get(r, d + 8, 4),
				    .flags = (uint16_t)model_get(r, d + 12, 2),
				    .next = (uint16_t)model_get(r, d + 14, 2) };
}

static inline void model_desc_put(const struct model_ring *r, uint8_t *table, uint32_t i,
				  struct model_desc desc)
{
	uint8_t *d = table + 16 * (size_t)i;

	model_put(r, d, desc.addr, 8);
	model_put(r, d + 8, desc.len, 4);
	model_put(r, d + 12, desc.flags, 2);
	model_put(r, d + 14, desc.next, 2);
}

/* ---- where the words of the two rings are; `n` runs freely ---- */

static inline uint8_t *model_avail_flags(const struct model_ring *r)
{
	return r->avail;
}

static inline uint8_t *model_avail_idx(const struct model_ring *r)
{
	return r->avail + 2;
}

static inline uint8_t *model_avail_entry(const struct model_ring *r, uint64_t n)
{
	return r->avail + 4 + 2 * (size_t)(n % r->size);
}

static inline uint8_t *model_used_event(const struct model_ring *r)
{
	return r->avail + 4 + 2 * (size_t)r->size;
}

static inline uint8_t *model_used_flags(const struct model_ring *r)
{
	return r->used;
}

static inline uint8_t *model_used_idx(const struct model_ring *r)
{
	return r->used + 2;
}

static inline uint8_t *model_used_entry(const struct model_ring *r, uint64_t n)
{
	return r->used + 4 + 8 * (size_t)(n % r->size);
}

static inline uint8_t *model_avail_event(const struct model_ring *r)
{
	return r->used + 4 + 8 * (size_t)r->size;
}

static inline uint16_t model_get16(const struct model_ring *r, const uint8_t *at)
{
	return (uint16_t)model_get(r, at, 2);
}

static inline uint32_t model_get32(const struct model_ring *r, const uint8_t *at)
{
	return (uint32_t)model_get(r, at, 4);
}

/* ---- where one side stands ---- */

struct model_end {
	uint64_t next, exposed, decided; /* its own ring: written, visible, decided about */
	uint64_t cursor, seen;           /* the other's ring: consumed, known to be there */
	bool owed;                       /* the first decision of a life is "notify" */
	uint64_t notified, suppressed;
};

static inline void model_end_start(struct model_end *e, uint16_t idx)
{
	e->next = e->exposed = e->decided = e->cursor = e->seen = idx;
	e->owed = true;
}

/* Entries that the other side has put there beyond the cursor, by its index. */
static inline uint16_t model_ahead(const struct model_end *e, uint16_t idx)
{
	return (uint16_t)(idx - e->cursor);
}

/* Is one of the entries from `decided` up to `exposed` the one that the peer named? */
static inline bool model_named(const struct model_end *e, uint16_t event)
{
	for (uint64_t n = e->decided; n < e->exposed; n++)
		if ((uint16_t)n == event)
			return true;
	return false;
}

/* VQB_NOTIFY or VQB_QUIET, about what was exposed since the last decision. */
static inline uint32_t model_decide(struct model_end *e, bool event_idx, uint16_t event,
				    uint16_t flags)
{
	bool fresh = e->exposed != e->decided, due;

	if (!fresh && !e->owed)
		return VQB_QUIET;
	due = event_idx ? e->owed || model_named(e, event) : !(flags & 1);
	e->decided = e->exposed;
	e->owed = false;
	if (due)
		e->notified++;
	else if (fresh)
		e->suppressed++;
	return due ? VQB_NOTIFY : VQB_QUIET;
}

/* ---- what makes a ring valid, in whatever form it is described, and what it is ---- */

static inline bool model_size_valid(uint32_t size)
{
	for (uint32_t n = 1; n <= 32768; n *= 2)
		if (n == size)
			return true;
	return false;
}

static inline bool model_has(uint64_t features, unsigned bit)
{
	return features & UINT64_C(1) << bit;
}

/* Big-endian is the only flag, and there is no such thing under VERSION_1. */
static inline bool model_flags_valid(uint32_t flags, uint64_t features)
{
	return !flags || (flags == VQB_RING_BIG_ENDIAN && !model_has(features, VQB_F_VERSION_1));
}

/* The known ones of the bits that are not the device type's. */
static inline bool model_features_valid(uint64_t features)
{
	static const unsigned known[] = { VQB_F_INDIRECT_DESC, VQB_F_EVENT_IDX,
					  VQB_F_VERSION_1,     VQB_F_ACCESS_PLATFORM,
					  VQB_F_IN_ORDER,      VQB_F_ORDER_PLATFORM,
					  VQB_F_RING_RESET,    VQB_F_NOTIFICATION_DATA };

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		features &= ~(UINT64_C(1) << known[i]);
	for (unsigned bit = 24; bit < 50; bit++)
		if (model_has(features, bit))
			return false;
	return true;
}

static inline void model_ring_as(struct model_ring *r, uint32_t size, uint32_t flags,
				 uint64_t features)
{
	r->size = size;
	r->big = flags & VQB_RING_BIG_ENDIAN;
	r->event_idx = model_has(features, VQB_F_EVENT_IDX);
	r->indirect = model_has(features, VQB_F_INDIRECT_DESC);
	r->in_order = model_has(features, VQB_F_IN_ORDER);
}

#endif
