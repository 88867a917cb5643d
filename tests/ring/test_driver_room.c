/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_room.c: when there is no room, what that is called, and that it leaves no trace. */
#include "driver_bench.h"

#define FEATURES (EVENT_MODE | INDIRECT)

/* N = 8, 2 free: three do not fit and two do. Shows: K20 */
static void test_three_do_not_fit_into_two(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 3, 3);
	before = bench_state(&b);
	assert_int_equal(before.free, 2);
	assert_int_equal(bench_try_add(&b, 2, 1, 2), VQB_E_NOSPC);
	bench_expect_unchanged(&b, before);
	bench_add(&b, 3, 1, 1);
	assert_int_equal(vqb_driver_free(b.drv), 0);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 3, 3);
	bench_expect_direct(&b, bench_take(&b), 3, 1, 1);
	assert_int_equal(bench_visible(&b), 0);
	bench_close(&b);
}

/* N = 4: four singles, the last of which has no successor, then a fifth. Shows: K20 */
static void test_the_last_descriptor_can_be_used(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 0);
	assert_int_equal(bench_try_add(&b, 4, 1, 0), VQB_E_NOSPC);
	vqb_driver_publish(b.drv);
	for (uintptr_t i = 0; i < 4; i++)
		bench_expect_direct(&b, bench_take(&b), i, 1, 0);
	bench_close(&b);
}

/* No room now is not the same as never. Shows: K21 SR-ANY-04 */
static void test_full_and_too_big_are_two_answers(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	assert_int_equal(bench_try_add(&b, 1, 5, 0), VQB_E_TOOBIG);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(bench_try_add(&b, 2, 4, 0), VQB_E_NOSPC);
	assert_int_equal(bench_try_add(&b, 2, 5, 0), VQB_E_TOOBIG);
	bench_close(&b);
}

/* With nothing in flight there is nothing to wait for, so everything fits. Shows: K21 */
static void test_an_idle_queue_has_room_for_all_that_can_ever_fit(void **state)
{
	static const uint32_t tables[] = { 0, 1, 16 };
	struct bench b;

	(void)state;
	for (int i = 0; i < 3; i++) {
		bench_open_tables(&b, 16, FEATURES, tables[i], 4);
		for (uint32_t n = 1; n <= 16; n++) {
			bench_add(&b, n, n / 2, n - n / 2);
			vqb_driver_publish(b.drv);
			bench_serve(&b);
			assert_int_equal(bench_reap(&b), n);
			assert_int_equal(vqb_driver_in_flight(b.drv), 0);
		}
		assert_int_equal(bench_try_add(&b, 17, 8, 9), VQB_E_TOOBIG);
		bench_close(&b);
	}
}

/* What is added and not exposed yet is in flight, too, and takes its room. */
static void test_room_is_taken_by_add_and_given_by_reap(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_add(&b, 1, 2, 2);
	assert_int_equal(vqb_driver_free(b.drv), 0);
	assert_int_equal(bench_try_add(&b, 2, 1, 0), VQB_E_NOSPC);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	assert_int_equal(bench_try_add(&b, 2, 1, 0), VQB_E_NOSPC);
	assert_int_equal(bench_reap(&b), 1);
	assert_int_equal(vqb_driver_free(b.drv), 4);
	bench_add(&b, 2, 1, 0);
	bench_close(&b);
}

/* What the free descriptors can't hold still goes through a table. */
static void test_a_nearly_full_ring_takes_long_requests_through_tables(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FEATURES, 1, 8);
	for (uintptr_t i = 0; i < 7; i++)
		bench_add(&b, i, 1, 0);
	assert_int_equal(vqb_driver_free(b.drv), 1);
	bench_add(&b, 7, 4, 4);
	vqb_driver_publish(b.drv);
	b.taken = 7;
	bench_expect_indirect(&b, bench_take(&b), 7, 4, 4);
	assert_int_equal(bench_try_add(&b, 8, 1, 0), VQB_E_NOSPC);
	bench_close(&b);
}

static void test_a_ring_of_one(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 1, FEATURES, 1, 1);
	for (uintptr_t i = 0; i < 100; i++) {
		bench_add(&b, i, 0, 1);
		assert_int_equal(bench_try_add(&b, i, 0, 1), VQB_E_NOSPC);
		assert_int_equal(bench_try_add(&b, i, 1, 1), VQB_E_TOOBIG);
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, raw_avail_entry(&b.raw, b.taken), i, 0, 1);
		bench_serve(&b);
		assert_int_equal(bench_reap(&b), i);
	}
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_do_not_fit_into_two),
		cmocka_unit_test(test_the_last_descriptor_can_be_used),
		cmocka_unit_test(test_full_and_too_big_are_two_answers),
		cmocka_unit_test(test_an_idle_queue_has_room_for_all_that_can_ever_fit),
		cmocka_unit_test(test_room_is_taken_by_add_and_given_by_reap),
		cmocka_unit_test(test_a_nearly_full_ring_takes_long_requests_through_tables),
		cmocka_unit_test(test_a_ring_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
