/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c: the parts of an end that are the same for both sides and not for every request. */
#include "end.h"

void vqb__end_cache_flush(const struct end *e, const void *at, size_t bytes)
{
	e->cache->flush(e->cache->context, at, bytes);
}

void vqb__end_cache_invalidate(const struct end *e, const void *at, size_t bytes)
{
	e->cache->invalidate(e->cache->context, at, bytes);
}

/* Calls `op` for entries of a ring: one or two stretches. */
static void sync(const struct end *e, void (*op)(const struct end *, const void *, size_t),
		 const struct ring_head *ring, size_t each, uint32_t from, uint32_t to)
{
	const char *entry = (const char *)(ring + 1);
	uint32_t at = from & e->mask, n = to - from;
	uint32_t first = n < e->mask + 1 - at ? n : e->mask + 1 - at;

	if (first)
		op(e, entry + at * each, first * each);
	if (n > first)
		op(e, entry, (n - first) * each);
}

void vqb__end_flush_own(const struct end *e, size_t each, uint32_t from, uint32_t to)
{
	sync(e, vqb__end_cache_flush, e->own, each, from, to);
}

void vqb__end_invalidate_peer(const struct end *e, size_t each, uint32_t from, uint32_t to)
{
	sync(e, vqb__end_cache_invalidate, e->peer, each, from, to);
}

void vqb__end_expose_any(struct end *e)
{
	end_expose(e, e->mode);
}

uint32_t vqb__end_publish_any(struct end *e)
{
	return end_publish(e, e->mode);
}

uint32_t vqb__end_turn_any(struct end *e)
{
	return end_turn(e, e->mode);
}

uint32_t vqb__end_arm_any(struct end *e, uint32_t skip)
{
	return end_arm(e, skip, e->mode);
}

/*
 * With EVENT_IDX an event that lies behind the cursor is as good as none for half a turn of the
 * index, so there is nothing to store unless the wish is still ahead.
 */
void vqb__end_disarm_any(struct end *e)
{
	if (!e->own_event)
		end_ask_flag(e, FLAG_QUIET, e->mode);
	else if (e->asked == ASKED_UNKNOWN || (uint16_t)(e->asked - e->cursor) < 0x8000)
		end_ask_event(e, (uint16_t)(e->cursor - 1), e->mode);
}
