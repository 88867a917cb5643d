/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_reap.c: what comes back: which token, in which order, how many bytes, how often. */
#include "driver_bench.h"

/* Expose `count` requests with tokens 0, 1 and so on, of one readable and two writable segments. */
static void send(struct bench *b, uintptr_t count)
{
	for (uintptr_t i = 0; i < count; i++)
		bench_add(b, i, 1, 2);
	vqb_driver_publish(b->drv);
}

/* Shows: SR-ANY-05 */
static void test_completions_in_any_order_bring_the_right_tokens(void **state)
{
	struct vqb_done done[4];
	unsigned head[3];
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	send(&b, 3);
	for (int i = 0; i < 3; i++)
		head[i] = bench_take(&b);
	bench_give(&b, head[2], 12);
	bench_give(&b, head[0], 10);
	bench_give(&b, head[1], 11);
	assert_int_equal(vqb_driver_reap(b.drv, done, 4), 3);
	assert_int_equal((uintptr_t)done[0].token, 2);
	assert_int_equal(done[0].len, 12);
	assert_int_equal((uintptr_t)done[1].token, 0);
	assert_int_equal(done[1].len, 10);
	assert_int_equal((uintptr_t)done[2].token, 1);
	assert_int_equal(done[2].len, 11);
	assert_int_equal(done[0].flags | done[1].flags | done[2].flags, 0);
	bench_reap_none(&b);
	bench_close(&b);
}

/* Shows: SR-DRV-19 */
static void test_an_idle_queue_has_nothing_to_reap(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	before = bench_state(&b);
	bench_reap_none(&b);
	bench_add(&b, 1, 1, 1);
	bench_reap_none(&b);
	vqb_driver_publish(b.drv);
	bench_reap_none(&b);
	bench_serve(&b);
	assert_int_equal(bench_reap(&b), 1);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_free(b.drv), before.free);
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_close(&b);
}

static void test_reap_takes_no_more_than_asked_for(void **state)
{
	struct vqb_done done[5];
	uintptr_t next = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 32, EVENT_MODE);
	send(&b, 10);
	bench_serve(&b);
	assert_int_equal(vqb_driver_reap(b.drv, done, 0), 0);
	while (next < 10) {
		memset(done, 0xff, sizeof(done));
		assert_int_equal(vqb_driver_reap(b.drv, done, 3), next == 9 ? 1 : 3);
		for (int i = 0; i < 3 && next < 10; i++, next++)
			assert_int_equal((uintptr_t)done[i].token, next);
		assert_int_equal(done[3].flags, 0xffffffff);
		assert_int_equal(vqb_driver_in_flight(b.drv), 10 - next);
		assert_int_equal(vqb_driver_free(b.drv), 32 - 3 * (10 - next));
	}
	bench_reap_none(&b);
	bench_close(&b);
}

/* The array that is too long is not written beyond what came back. */
static void test_reap_writes_no_more_than_it_returns(void **state)
{
	struct vqb_done done[3], before[3];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	send(&b, 1);
	bench_serve(&b);
	memset(done, 0xff, sizeof(done));
	memset(before, 0xff, sizeof(before));
	assert_int_equal(vqb_driver_reap(b.drv, done, 3), 1);
	assert_memory_equal(done + 1, before + 1, 2 * sizeof(done[0]));
	bench_close(&b);
}

static void test_completions_that_come_while_reaping_are_found(void **state)
{
	struct bench b;
	unsigned second;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	send(&b, 2);
	bench_give(&b, bench_take(&b), 0);
	second = bench_take(&b);
	assert_int_equal(bench_reap(&b), 0);
	bench_give(&b, second, 0);
	assert_int_equal(bench_reap(&b), 1);
	bench_reap_none(&b);
	bench_close(&b);
}

static void test_a_token_may_be_null_and_may_be_used_twice(void **state)
{
	struct vqb_segment seg = bench_segment(1, 0);
	struct vqb_done done[3];
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, NULL), VQB_OK);
	assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, &seg), VQB_OK);
	assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, &seg), VQB_OK);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	assert_int_equal(vqb_driver_reap(b.drv, done, 3), 3);
	assert_null(done[0].token);
	assert_ptr_equal(done[1].token, &seg);
	assert_ptr_equal(done[2].token, &seg);
	bench_close(&b);
}

/* What the device claims to have written, and what of it reaches the caller. */
static void expect_len(struct bench *b, uint32_t readable, uint32_t writable, uint32_t claimed,
		       uint32_t len, uint32_t flags)
{
	struct vqb_done done;

	bench_add(b, 7, readable, writable);
	vqb_driver_publish(b->drv);
	bench_give(b, bench_take(b), claimed);
	done = bench_reap_done(b);
	assert_int_equal((uintptr_t)done.token, 7);
	assert_int_equal(done.len, len);
	assert_int_equal(done.flags, flags);
	assert_int_equal(vqb_driver_state(b->drv), VQB_OK);
}

/* Shows: SR-DRV-20 SR-DRV-21 SR-DRV-40 */
static void expect_lengths_are_bounded(struct bench *b)
{
	uint32_t room = bench_bytes(7, 1, 3);

	expect_len(b, 1, 3, 0, 0, 0);
	expect_len(b, 1, 3, 1, 1, 0);
	expect_len(b, 1, 3, room - 1, room - 1, 0);
	expect_len(b, 1, 3, room, room, 0);
	expect_len(b, 1, 3, room + 1, room, VQB_DONE_OVERLONG);
	expect_len(b, 1, 3, 0x80000000, room, VQB_DONE_OVERLONG);
	expect_len(b, 1, 3, 0xffffffff, room, VQB_DONE_OVERLONG);
	expect_len(b, 4, 0, 0, 0, 0);
	expect_len(b, 4, 0, 1, 0, VQB_DONE_OVERLONG);
	expect_len(b, 4, 0, 0xffffffff, 0, VQB_DONE_OVERLONG);
	expect_len(b, 0, 1, 513, 512, VQB_DONE_OVERLONG);
}

/* Shows: SR-DRV-20 SR-DRV-21 SR-DRV-40 */
static void test_lengths_are_bounded_by_what_was_lent(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	expect_lengths_are_bounded(&b);
	bench_close(&b);
	bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 8, 8);
	expect_lengths_are_bounded(&b);
	bench_close(&b);
}

/* 2^32 writable bytes: no length a device can write is too long. Shows: SR-DRV-04 SR-DRV-40 */
static void test_four_gib_do_not_wrap_to_nothing(void **state)
{
	const struct vqb_segment seg[2] = { { BENCH_DATA_AT, 0x80000000, 0 },
					    { BENCH_DATA_AT, 0x80000000, 0 } };
	struct vqb_done done;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	assert_int_equal(vqb_driver_add(b.drv, seg, 0, 2, NULL), VQB_OK);
	vqb_driver_publish(b.drv);
	bench_give(&b, bench_take(&b), 0xffffffff);
	done = bench_reap_done(&b);
	assert_int_equal(done.len, 0xffffffff);
	assert_int_equal(done.flags, 0);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completions_in_any_order_bring_the_right_tokens),
		cmocka_unit_test(test_an_idle_queue_has_nothing_to_reap),
		cmocka_unit_test(test_reap_takes_no_more_than_asked_for),
		cmocka_unit_test(test_reap_writes_no_more_than_it_returns),
		cmocka_unit_test(test_completions_that_come_while_reaping_are_found),
		cmocka_unit_test(test_a_token_may_be_null_and_may_be_used_twice),
		cmocka_unit_test(test_lengths_are_bounded_by_what_was_lent),
		cmocka_unit_test(test_four_gib_do_not_wrap_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
