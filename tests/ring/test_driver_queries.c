/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_queries.c: what the driver says about itself when asked. */
#include "driver_bench.h"

static void expect_account(const struct bench *b, uint32_t free, uint32_t in_flight,
			   uint32_t pending)
{
	assert_int_equal(vqb_driver_free(b->drv), free);
	assert_int_equal(vqb_driver_in_flight(b->drv), in_flight);
	assert_int_equal(vqb_driver_pending(b->drv), pending);
	assert_int_equal(vqb_driver_state(b->drv), VQB_OK);
}

static void test_the_account_through_the_life_of_requests(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	expect_account(&b, 16, 0, 0);
	bench_add(&b, 1, 1, 2);
	expect_account(&b, 13, 1, 0);
	bench_add(&b, 2, 1, 0);
	vqb_driver_publish(b.drv);
	expect_account(&b, 12, 2, 0);
	bench_take(&b);
	expect_account(&b, 12, 2, 0);
	bench_give(&b, 3, 0);
	expect_account(&b, 12, 2, 1);
	bench_give(&b, 0, 0);
	expect_account(&b, 12, 2, 2);
	assert_int_equal(bench_reap(&b), 2);
	expect_account(&b, 13, 1, 1);
	assert_int_equal(bench_reap(&b), 1);
	expect_account(&b, 16, 0, 0);
	bench_close(&b);
}

static void test_an_indirect_request_takes_one_descriptor(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 16, EVENT_MODE | INDIRECT, 4, 8);
	bench_add(&b, 1, 3, 5);
	expect_account(&b, 15, 1, 0);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	bench_reap(&b);
	expect_account(&b, 16, 0, 0);
	bench_close(&b);
}

static void test_asking_changes_nothing(void **state)
{
	struct bench b;
	void *token = NULL;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	for (uintptr_t i = 0; i < 4; i++) {
		struct bench_state before = bench_state(&b);

		assert_int_equal(vqb_driver_pending(b.drv), 4 - i);
		assert_int_equal(vqb_driver_oldest(b.drv, &token), 4 - i);
		bench_expect_unchanged(&b, before);
		assert_int_equal(bench_reap(&b), i);
	}
	bench_close(&b);
}

static void expect_oldest(const struct bench *b, uintptr_t token, uint32_t age)
{
	void *oldest = (void *)UINTPTR_MAX;

	assert_int_equal(vqb_driver_oldest(b->drv, &oldest), age);
	assert_int_equal((uintptr_t)oldest, token);
}

static void test_the_oldest_is_the_one_that_waits_longest(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	expect_oldest(&b, UINTPTR_MAX, 0);
	for (uintptr_t i = 0; i < 4; i++) {
		bench_add(&b, i, 1, 0);
		expect_oldest(&b, 0, (uint32_t)i + 1);
	}
	vqb_driver_publish(b.drv);
	bench_give(&b, 1, 0);
	assert_int_equal(bench_reap(&b), 1);
	expect_oldest(&b, 0, 4);
	bench_give(&b, 0, 0);
	assert_int_equal(bench_reap(&b), 0);
	expect_oldest(&b, 2, 2);
	bench_add(&b, 9, 1, 0); /* into a hole: by number it comes first, by age last */
	vqb_driver_publish(b.drv);
	expect_oldest(&b, 2, 3);
	bench_give(&b, 2, 0);
	bench_give(&b, 3, 0);
	bench_reap(&b);
	bench_reap(&b);
	expect_oldest(&b, 9, 1);
	bench_close(&b);
}

/* One is stuck while 100000 others go round: the count goes past 65536. */
static void test_the_age_of_one_that_is_stuck(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 77, 1, 0);
	vqb_driver_publish(b.drv);
	bench_take(&b);
	for (uint32_t i = 0; i < 100000; i++) {
		bench_add(&b, 1, 1, 0);
		vqb_driver_publish(b.drv);
		bench_serve(&b);
		assert_int_equal(bench_reap(&b), 1);
	}
	expect_oldest(&b, 77, 100001);
	bench_close(&b);
}

static void test_the_tokens_of_a_reset_queue_can_be_asked_for(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 5, 1, 2);
	bench_add(&b, 6, 1, 2);
	vqb_driver_publish(b.drv);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_state(b.drv), VQB_E_INVALID);
	assert_int_equal(vqb_driver_in_flight(b.drv), 2);
	assert_int_equal(vqb_driver_free(b.drv), 0);
	expect_oldest(&b, 5, 2);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_account_through_the_life_of_requests),
		cmocka_unit_test(test_an_indirect_request_takes_one_descriptor),
		cmocka_unit_test(test_asking_changes_nothing),
		cmocka_unit_test(test_the_oldest_is_the_one_that_waits_longest),
		cmocka_unit_test(test_the_age_of_one_that_is_stuck),
		cmocka_unit_test(test_the_tokens_of_a_reset_queue_can_be_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
