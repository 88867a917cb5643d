/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranges of a discard lie in memory that the driver may change at any moment: each byte is
 * fetched once, before anything is checked, and only the copy counts.
 */
#include "blk_bench.h"
#include "probe_port.h"

static uint8_t *watched;
static unsigned watched_bytes, loads[64], fetched;
static uint8_t change; /* what a byte becomes once it was fetched; 0: it stays */

static void on_load(const void *p, unsigned bytes)
{
	for (unsigned i = 0; i < watched_bytes; i++) {
		/* What was fetched by the load before this one is changed now. */
		if (change && loads[i] == 1)
			watched[i] = change;
	}
	for (unsigned i = 0; i < bytes; i++) {
		const uint8_t *at = (const uint8_t *)p + i;

		if (at >= watched && at < watched + watched_bytes) {
			loads[at - watched]++;
			fetched++;
		}
	}
}

static void watch(uint8_t *at, unsigned bytes, uint8_t becomes)
{
	watched = at;
	watched_bytes = bytes;
	change = becomes;
	fetched = 0;
	memset(loads, 0, sizeof(loads));
	probe_load = on_load;
}

static struct bench *open_discard(void **state)
{
	struct bench *b = bench_plan(state);

	spy_can_all(&b->spy, 512 * 512);
	b->disk_config.features |= VQB_FEATURE(VQB_BLK_F_DISCARD);
	b->config.features |= VQB_FEATURE(VQB_BLK_F_DISCARD);
	bench_start(b);
	return b;
}

/* Shows: K16 SR-DEV-35 */
static void test_each_byte_of_a_range_is_fetched_once_and_checked_after(void **state)
{
	const uint8_t becomes[] = { 0, 0xff, 0x01 };
	const struct bench_range range[] = { { 5, 1, 0 }, { 900, 3, 0 }, { 7, 2, 0 } };

	for (unsigned k = 0; k < 3; k++) {
		struct bench *b = open_discard(state);
		unsigned r = bench_ranges(b, VQB_BLK_DISCARD, range, 3);

		watch(b->asked[r].at[1], 48, becomes[k]);
		bench_run(b);
		probe_load = NULL;
		for (unsigned i = 0; i < 48; i++)
			assert_int_equal(loads[i], 1);
		assert_int_equal(b->spy.calls, 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(b->spy.log[i].offset, range[i].sector * 512);
			assert_int_equal(b->spy.log[i].bytes, range[i].sectors * 512);
		}
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	}
}

/* Bad when it was fetched, good afterwards: refused all the same. */
static void test_a_bad_range_is_not_saved_by_a_change(void **state)
{
	const struct bench_range bad = { 0x0101010101010101, 1, 0 };
	struct bench *b = open_discard(state);
	unsigned r = bench_ranges(b, VQB_BLK_DISCARD, &bad, 1);

	watch(b->asked[r].at[1], 8, 0x80);
	bench_run(b);
	probe_load = NULL;
	assert_int_equal(fetched, 8);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, 1);
}

/* Too many of them, or no whole number: nothing is read at all. */
static void test_ranges_that_are_wrong_as_a_whole_are_not_fetched(void **state)
{
	const struct bench_range range[33] = { { 0, 1, 0 } };
	struct bench *b = open_discard(state);
	unsigned r = bench_ranges(b, VQB_BLK_DISCARD, range, 33);

	watch(b->asked[r].at[1], 64, 0);
	bench_run(b);
	assert_int_equal(fetched, 0);
	r = bench_ask(b, VQB_BLK_DISCARD, 0, CUT(16, 40), CUT(1));
	watch(b->asked[r].at[1], 40, 0);
	bench_run(b);
	assert_int_equal(fetched, 0);
	probe_load = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_each_byte_of_a_range_is_fetched_once_and_checked_after),
		bench_test(test_a_bad_range_is_not_saved_by_a_change),
		bench_test(test_ranges_that_are_wrong_as_a_whole_are_not_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
