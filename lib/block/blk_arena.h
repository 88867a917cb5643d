/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_arena.h: who holds which part of an array of pieces.
 *
 * Each holder has one span, [begin, end). The spans form a ring in the order of the array; span
 * number `none` closes it and stands for both ends of the array at once: it ends at 0 and begins
 * at the array's size. A gap is what lies between a span's end and the next one's begin. Room is
 * given out after the `hand`, a span that moves on when the gap behind it is too small: while
 * holders come and go in order that is a plain ring buffer, and a holder that stays long is stepped
 * over. The array of spans belongs to the arena's user, its lists to the arena.
 */
#ifndef VQB_BLOCK_ARENA_H
#define VQB_BLOCK_ARENA_H

#include <stdint.h>

struct blk_span {
	uint32_t begin, end, prev, next;
};

struct blk_arena {
	struct blk_span *span;
	uint32_t none, size, hand, live;
};

/* `span` has holders + 1 entries; the holders are numbered from 0. */
static inline void blk_arena_init(struct blk_arena *arena, struct blk_span *span, uint32_t holders,
				  uint32_t size)
{
	struct blk_span closing = { size, 0, holders, holders };

	span[holders] = closing;
	arena->span = span;
	arena->none = arena->hand = holders;
	arena->size = size;
	arena->live = 0;
}

static inline uint32_t blk_arena_gap(const struct blk_arena *arena, uint32_t after)
{
	return arena->span[arena->span[after].next].begin - arena->span[after].end;
}

/*
 * Moves the hand to a gap of at least `want` (from 1). Answers its size and where it begins in *at,
 * or 0: there is none. At most once round.
 */
static inline uint32_t blk_arena_room(struct blk_arena *arena, uint32_t want, uint32_t *at)
{
	uint32_t tries;

	for (tries = 0; tries <= arena->live; tries++) {
		uint32_t gap = blk_arena_gap(arena, arena->hand);

		if (gap >= want) {
			*at = arena->span[arena->hand].end;
			return gap;
		}
		arena->hand = arena->span[arena->hand].next;
	}
	return 0;
}

/* `holder` gets [begin, end) of the gap after the hand, and the hand moves to it. */
static inline void blk_arena_hold(struct blk_arena *arena, uint32_t holder, uint32_t begin,
				  uint32_t end)
{
	struct blk_span *span = arena->span;
	uint32_t next = span[arena->hand].next;

	span[holder].begin = begin;
	span[holder].end = end;
	span[holder].prev = arena->hand;
	span[holder].next = next;
	span[next].prev = holder;
	span[arena->hand].next = holder;
	arena->hand = holder;
	arena->live++;
}

static inline void blk_arena_release(struct blk_arena *arena, uint32_t holder)
{
	struct blk_span *span = arena->span;
	uint32_t prev = span[holder].prev, next = span[holder].next;

	span[prev].next = next;
	span[next].prev = prev;
	if (arena->hand == holder)
		arena->hand = prev;
	arena->live--;
}

#endif
