/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_needs_reset.c: the driver is told that its device asks for a reset. */
#include "driver_bench.h"

static void expect_stopped(struct bench *b, uint32_t in_flight)
{
	struct vqb_segment seg = { 1, 1, 0 };
	struct bench_state before = bench_state(b);

	assert_int_equal(vqb_driver_state(b->drv), VQB_E_NEEDS_RESET);
	assert_int_equal(vqb_driver_add(b->drv, &seg, 1, 0, NULL), VQB_E_NEEDS_RESET);
	bench_reap_none(b);
	assert_int_equal(vqb_driver_publish(b->drv), VQB_QUIET);
	assert_int_equal(vqb_driver_turn(b->drv), VQB_QUIET);
	assert_int_equal(vqb_driver_arm(b->drv), VQB_QUIET);
	assert_int_equal(vqb_driver_postpone(b->drv, VQB_POSTPONE_LONG), VQB_QUIET);
	vqb_driver_disarm(b->drv);
	vqb_driver_expose(b->drv);
	assert_int_equal(vqb_driver_pending(b->drv), 0);
	assert_int_equal(vqb_driver_in_flight(b->drv), in_flight);
	bench_expect_unchanged(b, before);
}

/* Two are with the device, one of them used, and a third is not exposed. Shows: BF-DRV-04 */
static void test_nothing_goes_on(void **state)
{
	static const uint64_t mode[] = { FLAGS_MODE, EVENT_MODE, FLAGS_MODE | UINT64_C(1) << 35 };
	struct bench b;

	(void)state;
	for (unsigned m = 0; m < 3; m++) {
		bench_open(&b, 8, mode[m]);
		bench_add(&b, 1, 1, 0);
		bench_add(&b, 2, 1, 0);
		vqb_driver_publish(b.drv);
		bench_give(&b, bench_take(&b), 0);
		bench_add(&b, 3, 1, 0);
		vqb_driver_needs_reset(b.drv);
		expect_stopped(&b, 3);
		vqb_driver_needs_reset(b.drv);
		expect_stopped(&b, 3);
		bench_close(&b);
	}
}

/* Neither done nor lost: they come back from detach, each once, and no other way. */
/* Shows: BF-DRV-04 */
static void test_what_was_in_flight_is_undecided(void **state)
{
	unsigned seen = 0;
	void *token[8];
	struct bench b;
	uint32_t n;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 5; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	bench_give(&b, bench_take(&b), 0);
	bench_give(&b, bench_take(&b), 0);
	assert_int_equal(bench_reap(&b), 0);
	vqb_driver_needs_reset(b.drv);
	assert_int_equal(vqb_driver_detach(b.drv, token, 8, &n), VQB_E_BUSY);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_BUSY);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_state(b.drv), VQB_E_INVALID);
	assert_int_equal(vqb_driver_detach(b.drv, token, 8, &n), VQB_OK);
	assert_int_equal(n, 4);
	for (uint32_t i = 0; i < n; i++)
		seen |= 1u << (uintptr_t)token[i];
	assert_int_equal(seen, 0x1e);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_rounds(&b, 20);
	bench_close(&b);
}

/* An idle queue may start over at once. */
static void test_an_idle_queue_needs_no_detach(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_rounds(&b, 3);
	vqb_driver_needs_reset(b.drv);
	expect_stopped(&b, 0);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	bench_rounds(&b, 20);
	bench_close(&b);
}

static void test_without_a_ring_it_is_nothing(void **state)
{
	struct bench b;
	uint32_t n;
	void *token;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	vqb_driver_reset(b.drv, NULL);
	vqb_driver_needs_reset(b.drv);
	assert_int_equal(vqb_driver_state(b.drv), VQB_E_INVALID);
	assert_int_equal(vqb_driver_detach(b.drv, &token, 1, &n), VQB_OK);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	bench_rounds(&b, 3);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_goes_on),
		cmocka_unit_test(test_what_was_in_flight_is_undecided),
		cmocka_unit_test(test_an_idle_queue_needs_no_detach),
		cmocka_unit_test(test_without_a_ring_it_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
