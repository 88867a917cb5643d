/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue with a coalescer that has had nothing to join for long: requests go past it, until there
 * are neighbours again, and overtake nothing.
 */
#include "dry.h"

static struct bench *open_dry(void **state, unsigned requests)
{
	struct bench *b = bench_plan(state);

	bench_coalescer(b, 32, 0, 256);
	bench_ring(b, 128);
	bench_start(b);
	dry_out(b, requests);
	b->spy.calls = 0;
	return b;
}

static void assert_io(const struct bench *b, unsigned k, uint64_t sector, uint64_t sectors)
{
	assert_true(k < b->spy.calls);
	assert_int_equal(b->spy.log[k].offset, sector * 512);
	assert_int_equal(b->spy.log[k].bytes, sectors * 512);
}

static void read_in_shuffled_order(struct bench *b)
{
	bench_read(b, 20, 1);
	bench_read(b, 10, 1);
	bench_read(b, 21, 1);
	bench_read(b, 11, 1);
	bench_run(b);
}

static void test_requests_are_joined_as_long_as_few_came_alone(void **state)
{
	struct bench *b = open_dry(state, DRY - 1);

	read_in_shuffled_order(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, 10, 2);
	assert_io(b, 1, 20, 2);
}

static void test_requests_go_as_they_came_after_many_that_came_alone(void **state)
{
	struct bench *b = open_dry(state, DRY);

	read_in_shuffled_order(b);
	assert_int_equal(b->spy.calls, 4);
	assert_io(b, 0, 20, 1);
	assert_io(b, 1, 10, 1);
	assert_io(b, 2, 21, 1);
	assert_io(b, 3, 11, 1);
}

static void test_a_run_is_joined_from_its_second_request_on(void **state)
{
	struct bench *b = open_dry(state, DRY);

	for (unsigned i = 0; i < 8; i++)
		bench_read(b, 10 + i, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, 10, 1);
	assert_io(b, 1, 11, 7);
}

static void test_so_is_one_that_goes_down(void **state)
{
	struct bench *b = open_dry(state, DRY);

	for (unsigned i = 0; i < 8; i++)
		bench_read(b, 20 - i, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, 20, 1);
	assert_io(b, 1, 13, 7);
}

static void test_neighbours_in_any_order_are_found_in_the_end(void **state)
{
	struct bench *b = open_dry(state, DRY + PAST);

	read_in_shuffled_order(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, 10, 2);
}

/* Else a second attempt of the write would come after what came later. */
static void test_what_goes_past_waits_for_a_joined_write_below_it(void **state)
{
	for (unsigned op = VQB_BLK_IN; op <= VQB_BLK_OUT; op++) {
		struct bench *b = bench_plan(state);

		bench_coalescer(b, 32, 0, 256);
		bench_ring(b, 128);
		bench_start(b);
		b->spy.manual = 1;
		bench_write(b, 10, 1);
		bench_write(b, 11, 1);
		bench_run(b);
		assert_int_equal(b->spy.holds, 1);
		dry_out(b, DRY);
		b->spy.calls = 0;
		bench_read(b, 500, 1);
		if (op == VQB_BLK_IN)
			bench_read(b, 11, 1);
		else
			bench_write(b, 11, 1);
		bench_read(b, 600, 1);
		bench_run(b);
		assert_int_equal(b->spy.calls, 1);
		assert_io(b, 0, 500, 1);
		b->spy.manual = 0;
		spy_finish(&b->spy, 0);
		bench_run(b);
		assert_int_equal(b->spy.calls, 3);
		assert_io(b, 1, 11, 1);
		assert_io(b, 2, 600, 1);
		spy_drain(&b->spy.base);
		bench_run(b);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_requests_are_joined_as_long_as_few_came_alone),
		bench_test(test_requests_go_as_they_came_after_many_that_came_alone),
		bench_test(test_a_run_is_joined_from_its_second_request_on),
		bench_test(test_so_is_one_that_goes_down),
		bench_test(test_neighbours_in_any_order_are_found_in_the_end),
		bench_test(test_what_goes_past_waits_for_a_joined_write_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
