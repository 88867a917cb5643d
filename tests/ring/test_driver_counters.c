/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_counters.c: what is counted, and that it is counted once. */
#include "driver_bench.h"

static struct vqb_driver_counters counters(const struct bench *b)
{
	struct vqb_driver_counters c;

	memset(&c, 0xff, sizeof(c));
	vqb_driver_read_counters(b->drv, &c);
	return c;
}

static void test_a_new_driver_has_counted_nothing(void **state)
{
	static const struct vqb_driver_counters zero;
	struct vqb_driver_counters c;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	c = counters(&b);
	assert_memory_equal(&c, &zero, sizeof(zero));
	bench_close(&b);
}

static void test_requests_and_their_descriptors(void **state)
{
	struct vqb_driver_counters c;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 16, EVENT_MODE | INDIRECT, 2, 4);
	bench_add(&b, 1, 1, 0); /* one, direct */
	bench_add(&b, 2, 1, 2); /* three in a table, and one that refers to it */
	bench_add(&b, 3, 2, 3); /* five, too long for a table */
	c = counters(&b);
	assert_int_equal(c.requests, 3);
	assert_int_equal(c.descriptors, 1 + 4 + 5);
	assert_int_equal(c.indirect, 1);
	assert_int_equal(c.completions, 0);
	bench_close(&b);
}

static void test_no_room_is_counted_and_other_refusals_are_not(void **state)
{
	struct vqb_segment bad = { BENCH_DATA_AT, 0, 0 };
	struct vqb_driver_counters c;
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_add(&b, 1, 3, 0);
	assert_int_equal(bench_try_add(&b, 2, 2, 0), VQB_E_NOSPC);
	assert_int_equal(bench_try_add(&b, 2, 3, 1), VQB_E_NOSPC);
	assert_int_equal(bench_try_add(&b, 2, 5, 0), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, &bad, 1, 0, NULL), VQB_E_INVALID);
	c = counters(&b);
	assert_int_equal(c.no_room, 2);
	assert_int_equal(c.requests, 1);
	assert_int_equal(c.descriptors, 3);
	bench_close(&b);
}

static void test_completions_and_those_that_were_too_long(void **state)
{
	struct vqb_done done[4];
	struct vqb_driver_counters c;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, 0, 0, 1);
	vqb_driver_publish(b.drv);
	bench_give(&b, 0, 512);
	bench_give(&b, 1, 513);
	bench_give(&b, 2, 0);
	assert_int_equal(counters(&b).completions, 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 4), 3);
	bench_give(&b, 99, 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 4), 0);
	c = counters(&b);
	assert_int_equal(c.completions, 3);
	assert_int_equal(c.overlong, 1);
	bench_close(&b);
}

/* A decision is counted once, whichever verb made it, and none where nothing is new. */
static void test_decisions(void **state)
{
	struct vqb_driver_counters c;
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY); /* the first one */
	vqb_driver_publish(b.drv);
	vqb_driver_turn(b.drv);
	vqb_driver_expose(b.drv);
	bench_add(&b, 1, 1, 0);
	vqb_driver_expose(b.drv);
	c = counters(&b);
	assert_int_equal(c.notified, 1);
	assert_int_equal(c.suppressed, 0);

	bench_set_avail_event(&b, 100);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_add(&b, 1, 1, 0);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
	bench_set_avail_event(&b, 4);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_NOTIFY);
	c = counters(&b);
	assert_int_equal(c.notified, 2);
	assert_int_equal(c.suppressed, 2);
	bench_close(&b);
}

static void test_clearing_starts_all_from_zero_and_changes_nothing_else(void **state)
{
	static const struct vqb_driver_counters zero;
	struct vqb_driver_counters c;
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 1, 4);
	bench_rounds(&b, 3);
	bench_add(&b, 1, 1, 2);
	vqb_driver_publish(b.drv);
	assert_int_equal(counters(&b).requests, 4);
	before = bench_state(&b);
	vqb_driver_clear_counters(b.drv);
	bench_expect_unchanged(&b, before);
	c = counters(&b);
	assert_memory_equal(&c, &zero, sizeof(zero));
	bench_serve(&b);
	assert_int_equal(bench_reap(&b), 1);
	c = counters(&b);
	assert_int_equal(c.requests, 0);
	assert_int_equal(c.completions, 1);
	bench_close(&b);
}

static void test_counters_run_on_over_a_reset(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_rounds(&b, 5);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	bench_rounds(&b, 2);
	assert_int_equal(counters(&b).requests, 7);
	assert_int_equal(counters(&b).completions, 7);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_driver_has_counted_nothing),
		cmocka_unit_test(test_requests_and_their_descriptors),
		cmocka_unit_test(test_no_room_is_counted_and_other_refusals_are_not),
		cmocka_unit_test(test_completions_and_those_that_were_too_long),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_clearing_starts_all_from_zero_and_changes_nothing_else),
		cmocka_unit_test(test_counters_run_on_over_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
