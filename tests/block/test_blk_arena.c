/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena of pieces against a model that keeps a map of who holds each entry. */
#include <stdlib.h>
#include <string.h>

#include "lib/block/blk_arena.h"
#include "unit.h"

enum { HOLDERS = 12, SIZE = 40, FREE = 255 };

struct model {
	struct blk_span span[HOLDERS + 1];
	struct blk_arena arena;
	uint8_t owner[SIZE];
	uint8_t holds[HOLDERS];
};

static void start(struct model *m)
{
	memset(m, 0, sizeof(*m));
	memset(m->owner, FREE, sizeof(m->owner));
	blk_arena_init(&m->arena, m->span, HOLDERS, SIZE);
}

static uint32_t largest_gap(const struct model *m)
{
	uint32_t best = 0, run = 0;

	for (unsigned i = 0; i < SIZE; i++) {
		run = m->owner[i] == FREE ? run + 1 : 0;
		best = run > best ? run : best;
	}
	return best;
}

/* Room for `want` is found exactly where there is some, it is free, and ends at what is held. */
static void hold(struct model *m, uint8_t holder, uint32_t want, uint32_t take)
{
	uint32_t at = SIZE, room = blk_arena_room(&m->arena, want, &at);

	if (largest_gap(m) < want) {
		assert_int_equal(room, 0);
		return;
	}
	assert_true(room >= want);
	for (uint32_t i = at; i < at + room; i++)
		assert_int_equal(m->owner[i], FREE);
	assert_true(at + room == SIZE || m->owner[at + room] != FREE);
	take = take > room ? room : take;
	memset(m->owner + at, holder, take);
	m->holds[holder] = 1;
	blk_arena_hold(&m->arena, holder, at, at + take);
}

static void release(struct model *m, uint8_t holder)
{
	for (unsigned i = 0; i < SIZE; i++) {
		if (m->owner[i] == holder)
			m->owner[i] = FREE;
	}
	m->holds[holder] = 0;
	blk_arena_release(&m->arena, holder);
}

static void test_room_is_found_wherever_there_is_some(void **state)
{
	uint64_t seed = 1;
	struct model m;

	(void)state;
	start(&m);
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t holder;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		holder = (uint8_t)((seed >> 33) % HOLDERS);
		if (m.holds[holder])
			release(&m, holder);
		else
			hold(&m, holder, 1 + (uint32_t)(seed >> 40) % 12,
			     1 + (uint32_t)(seed >> 50) % 12);
	}
	for (unsigned i = 0; i < HOLDERS; i++) {
		if (m.holds[i])
			release(&m, (uint8_t)i);
	}
	assert_int_equal(m.arena.live, 0);
	assert_int_equal(blk_arena_gap(&m.arena, m.arena.hand), SIZE);
}

/* What comes and goes in batches stays at the front of the array, where the cache has it. */
static void test_an_empty_arena_starts_at_its_front(void **state)
{
	struct model m;

	(void)state;
	start(&m);
	for (unsigned round = 0; round < 10; round++) {
		for (uint8_t i = 0; i < 4; i++)
			hold(&m, i, 3, 3);
		for (unsigned i = 0; i < 12; i++)
			assert_int_equal(m.owner[i], i / 3);
		for (uint8_t i = 0; i < 4; i++)
			release(&m, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_is_found_wherever_there_is_some),
		cmocka_unit_test(test_an_empty_arena_starts_at_its_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
