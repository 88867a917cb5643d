/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw_ring.h: a split ring written and read byte by byte, straight from the format and with
 * nothing of the library, so that each side is tested against the format and not against the
 * other side. Words are little-endian, unless a test sets raw_big.
 */
#ifndef TESTS_RAW_RING_H
#define TESTS_RAW_RING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RAW_NEXT = 1, RAW_WRITE = 2, RAW_INDIRECT = 4 };

struct raw_ring {
	uint8_t *desc, *avail, *used;
	unsigned size;
};

/* Set: all words are big-endian, as in the ring of a big-endian legacy guest. */
static int raw_big;

/* Bits to the right of byte `i` of a word. */
static inline unsigned raw_shift(unsigned i, unsigned bytes)
{
	return 8 * (raw_big ? bytes - 1 - i : i);
}

static inline void poke(void *at, uint64_t v, unsigned bytes)
{
	uint8_t *p = (uint8_t *)at;

	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> raw_shift(i, bytes));
}

static inline uint64_t peek(const void *at, unsigned bytes)
{
	const uint8_t *p = (const uint8_t *)at;
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << raw_shift(i, bytes);
	return v;
}

/* Entry `i` of a descriptor table, in the ring or an indirect one. */
static inline void raw_desc(void *table, unsigned i, uint64_t addr, uint32_t len, unsigned flags,
			    unsigned next)
{
	uint8_t *d = (uint8_t *)table + 16 * (size_t)i;

	poke(d, addr, 8);
	poke(d + 8, len, 4);
	poke(d + 12, flags, 2);
	poke(d + 14, next, 2);
}

static inline uint64_t raw_desc_addr(const void *table, unsigned i)
{
	return peek((const uint8_t *)table + 16 * (size_t)i, 8);
}

static inline uint32_t raw_desc_len(const void *table, unsigned i)
{
	return (uint32_t)peek((const uint8_t *)table + 16 * (size_t)i + 8, 4);
}

static inline unsigned raw_desc_flags(const void *table, unsigned i)
{
	return (unsigned)peek((const uint8_t *)table + 16 * (size_t)i + 12, 2);
}

static inline unsigned raw_desc_next(const void *table, unsigned i)
{
	return (unsigned)peek((const uint8_t *)table + 16 * (size_t)i + 14, 2);
}

/* Offers `head` as the available entry number `idx` (free-running) and moves the index past it. */
static inline void raw_offer(struct raw_ring *r, unsigned idx, unsigned head)
{
	poke(r->avail + 4 + 2 * (size_t)(idx & (r->size - 1)), head, 2);
	poke(r->avail + 2, idx + 1, 2);
}

static inline unsigned raw_avail_flags(const struct raw_ring *r)
{
	return (unsigned)peek(r->avail, 2);
}

static inline unsigned raw_avail_idx(const struct raw_ring *r)
{
	return (unsigned)peek(r->avail + 2, 2);
}

static inline unsigned raw_avail_entry(const struct raw_ring *r, unsigned idx)
{
	return (unsigned)peek(r->avail + 4 + 2 * (size_t)(idx & (r->size - 1)), 2);
}

static inline unsigned raw_used_event(const struct raw_ring *r)
{
	return (unsigned)peek(r->avail + 4 + 2 * (size_t)r->size, 2);
}

/* Completes `id` as the used entry number `idx` (free-running) and moves the index past it. */
static inline void raw_complete(struct raw_ring *r, unsigned idx, uint32_t id, uint32_t len)
{
	uint8_t *e = r->used + 4 + 8 * (size_t)(idx & (r->size - 1));

	poke(e, id, 4);
	poke(e + 4, len, 4);
	poke(r->used + 2, idx + 1, 2);
}

static inline unsigned raw_used_flags(const struct raw_ring *r)
{
	return (unsigned)peek(r->used, 2);
}

static inline unsigned raw_used_idx(const struct raw_ring *r)
{
	return (unsigned)peek(r->used + 2, 2);
}

static inline uint32_t raw_used_id(const struct raw_ring *r, unsigned idx)
{
	return (uint32_t)peek(r->used + 4 + 8 * (size_t)(idx & (r->size - 1)), 4);
}

static inline uint32_t raw_used_len(const struct raw_ring *r, unsigned idx)
{
	return (uint32_t)peek(r->used + 8 + 8 * (size_t)(idx & (r->size - 1)), 4);
}

static inline unsigned raw_avail_event(const struct raw_ring *r)
{
	return (unsigned)peek(r->used + 4 + 8 * (size_t)r->size, 2);
}

#endif
