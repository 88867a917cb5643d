/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_event_mode.c: which mode a feature word means, and what each mode leaves alone. */
#include "driver_bench.h"

#define SENTINEL 0xa55a

/* N = 8 and 1000 requests, with all that the driver can ask for. */
static void run_traffic(struct bench *b)
{
	for (int i = 0; i < 250; i++) {
		vqb_driver_disarm(b->drv);
		for (int k = 0; k < 4; k++)
			bench_add(b, 1, 1, 1);
		if (i & 1)
			vqb_driver_publish(b->drv);
		else
			vqb_driver_turn(b->drv);
		vqb_driver_postpone(b->drv, (uint32_t)i % 4);
		bench_serve(b);
		for (int k = 0; k < 4; k++)
			bench_reap(b);
		vqb_driver_arm(b->drv);
	}
}

/* The words after the 8 entries of either ring, from before init until the end. Shows: K12 */
static void test_without_the_feature_the_event_words_are_not_touched(void **state)
{
	struct bench b;

	(void)state;
	bench_configure(&b, 8, FLAGS_MODE, 0, 0, VQB_INDIRECT_NEVER);
	poke((uint8_t *)b.config.ring.avail + 20, SENTINEL, 2);
	poke((uint8_t *)b.config.ring.used + 68, SENTINEL, 2);
	bench_start(&b);
	run_traffic(&b);
	assert_int_equal(peek(b.raw.avail + 20, 2), SENTINEL);
	assert_int_equal(peek(b.raw.used + 68, 2), SENTINEL);
	bench_close(&b);
}

/* ... and in event mode the driver writes the one and not the other. Shows: K12 SR-ANY-02 */
static void test_with_the_feature_only_used_event_is_written(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	poke(b.raw.used + 68, SENTINEL, 2);
	run_traffic(&b);
	assert_int_equal(peek(b.raw.avail + 20, 2), 1000);
	assert_int_equal(peek(b.raw.used + 68, 2), SENTINEL);
	bench_close(&b);
}

/* In event mode a disarm leaves the flag alone; without, it sets it. */
static int is_event_mode(uint64_t features)
{
	struct bench b;
	unsigned flags;

	bench_open(&b, 8, features);
	vqb_driver_disarm(b.drv);
	flags = raw_avail_flags(&b.raw);
	assert_true(flags <= 1);
	bench_close(&b);
	return flags == 0;
}

/* All that a queue of ours may be told. */
#define KNOWN (VQB_RING_FEATURES | VQB_TYPE_FEATURES)

/* Shows: K12 */
static void test_event_mode_is_bit_29_and_no_other(void **state)
{
	(void)state;
	assert_false(is_event_mode(0x1));
	assert_true(is_event_mode(UINT64_C(1) << 29));
	assert_false(is_event_mode(29));
	for (unsigned bit = 0; bit < 64; bit++)
		if (KNOWN >> bit & 1)
			assert_int_equal(is_event_mode(UINT64_C(1) << bit), bit == 29);
	assert_false(is_event_mode(KNOWN & ~(UINT64_C(1) << 29)));
	assert_true(is_event_mode(KNOWN));
}

static int goes_through_a_table(uint64_t features)
{
	struct bench b;
	int indirect;

	bench_open_tables(&b, 8, features, 8, 4);
	bench_add(&b, 1, 1, 1);
	vqb_driver_publish(b.drv);
	indirect = bench_table(&b, bench_take(&b)) != NULL;
	bench_close(&b);
	return indirect;
}

/* Shows: SR-DRV-07 */
static void test_indirect_is_bit_28_and_no_other(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++)
		if (KNOWN >> bit & 1)
			assert_int_equal(goes_through_a_table(UINT64_C(1) << bit), bit == 28);
	assert_false(goes_through_a_table(28));
	assert_true(goes_through_a_table(KNOWN));
}

/* Shows: BF-DRV-09 */
static void test_it_works_with_each_subset_of_the_features(void **state)
{
	static const uint64_t sets[] = { FLAGS_MODE, EVENT_MODE, FLAGS_MODE | INDIRECT,
					 EVENT_MODE | INDIRECT };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct bench b;

		bench_open_tables(&b, 8, sets[i], 8, 4);
		run_traffic(&b);
		assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
		assert_int_equal(vqb_driver_in_flight(b.drv), 0);
		bench_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_the_feature_the_event_words_are_not_touched),
		cmocka_unit_test(test_with_the_feature_only_used_event_is_written),
		cmocka_unit_test(test_event_mode_is_bit_29_and_no_other),
		cmocka_unit_test(test_indirect_is_bit_28_and_no_other),
		cmocka_unit_test(test_it_works_with_each_subset_of_the_features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
