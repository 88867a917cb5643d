/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_hostile_used.c: used entries that no honest device writes. The queue is broken by
 * them and stays so; nothing is handed back, nothing is freed, and nothing goes on for ever.
 */
#include "driver_bench.h"
#include "probe_port.h"

static void expect_broken(struct bench *b, uint32_t free, uint32_t in_flight)
{
	bench_reap_none(b);
	assert_int_equal(vqb_driver_state(b->drv), VQB_E_BROKEN);
	assert_int_equal(vqb_driver_free(b->drv), free);
	assert_int_equal(vqb_driver_in_flight(b->drv), in_flight);
}

/* N = 8, one chain 0 -> 1 -> 2 is out, and the device returns `id`. */
static void refuse_id(uint32_t id)
{
	struct bench b;

	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 2);
	vqb_driver_publish(b.drv);
	assert_int_equal(bench_take(&b), 0);
	bench_give(&b, id, 0);
	expect_broken(&b, 5, 1);
	bench_close(&b);
}

/* Shows: SR-DRV-39 K18 */
static void test_an_id_out_of_range_is_refused(void **state)
{
	(void)state;
	refuse_id(8);
	refuse_id(0xffff);
	refuse_id(0x7fffffff);
	refuse_id(0xffffffff);
}

/* Cut to 16 bits, or taken modulo the ring's size, these would be a good 0. Shows: SR-DRV-39 K18 */
static void test_an_id_has_32_bits(void **state)
{
	(void)state;
	refuse_id(0x10000);
	refuse_id(0x80000000);
	refuse_id(0x01000000);
	refuse_id(16);
}

/* Shows: SR-DRV-39 K18 */
static void test_an_id_that_is_no_head_is_refused(void **state)
{
	(void)state;
	refuse_id(1);
	refuse_id(2);
}

/* Shows: SR-DRV-39 K18 */
static void test_an_id_that_was_not_lent_is_refused(void **state)
{
	(void)state;
	refuse_id(3);
	refuse_id(5);
	refuse_id(7);
}

/* Shows: SR-DRV-39 K18 */
static void test_an_id_returned_twice_is_refused(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 2);
	vqb_driver_publish(b.drv);
	bench_give(&b, 0, 0);
	assert_int_equal(bench_reap(&b), 1);
	assert_int_equal(vqb_driver_free(b.drv), 8);
	bench_give(&b, 0, 0);
	expect_broken(&b, 8, 0);
	bench_close(&b);
}

/* Both in one batch, and a second request out, so the index looks right. Shows: SR-DRV-39 K18 */
static void test_an_id_returned_twice_in_one_batch_is_refused(void **state)
{
	struct vqb_done done[4];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 2);
	bench_add(&b, 2, 1, 0);
	vqb_driver_publish(b.drv);
	bench_give(&b, 0, 0);
	bench_give(&b, 0, 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 4), 1);
	assert_int_equal((uintptr_t)done[0].token, 1);
	expect_broken(&b, 7, 1);
	bench_close(&b);
}

/* In the middle of a batch: what came before it stands, what comes after it does not. */
static void test_a_bad_id_ends_the_batch(void **state)
{
	struct vqb_done done[4];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	bench_give(&b, 3, 0);
	bench_give(&b, 9, 0);
	bench_give(&b, 1, 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 4), 1);
	assert_int_equal((uintptr_t)done[0].token, 3);
	expect_broken(&b, 5, 3);
	bench_close(&b);
}

/* A descriptor that a table refers to, or a table entry's number, is no head. Shows: SR-DRV-39 */
static void test_an_indirect_request_has_one_head(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t id = 1; id < 8; id++) {
		bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 8, 8);
		bench_add(&b, 1, 4, 4);
		vqb_driver_publish(b.drv);
		bench_give(&b, id, 0);
		expect_broken(&b, 7, 1);
		bench_close(&b);
	}
}

/* Added is not lent: the device can't know of it yet. */
static void test_an_id_that_is_not_exposed_yet_is_refused(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 0);
	bench_give(&b, 0, 0);
	expect_broken(&b, 7, 1);
	bench_close(&b);

	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 0);
	vqb_driver_publish(b.drv);
	bench_add(&b, 2, 1, 0);
	bench_give(&b, 1, 0);
	expect_broken(&b, 6, 2);
	bench_close(&b);
}

/* `out` requests are out, and the used index says that `done` have come back. */
static void refuse_index(uint32_t size, uint32_t out, unsigned done)
{
	struct bench b;

	bench_open(&b, size, EVENT_MODE);
	for (uint32_t i = 0; i < out; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	for (uint32_t i = 0; i < out; i++) /* all entries as such are good */
		raw_complete(&b.raw, i, i, 0);
	poke(b.raw.used + 2, done, 2);
	expect_broken(&b, size - out, out);
	bench_close(&b);
}

/* Shows: SR-DRV-41 */
static void test_an_index_that_runs_ahead_is_refused(void **state)
{
	(void)state;
	refuse_index(8, 8, 9);
	refuse_index(8, 3, 4);
	refuse_index(8, 1, 2);
	refuse_index(8, 0, 1);
	refuse_index(8, 8, 0x8000);
	refuse_index(8, 8, 0xffff);
	refuse_index(1, 1, 2);
	refuse_index(32768, 32768, 32769);
}

/* One request is exposed and one only added, and two have come back. Shows: SR-DRV-41 */
static void test_an_index_that_runs_ahead_of_what_is_exposed_is_refused(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 0);
	vqb_driver_publish(b.drv);
	bench_add(&b, 2, 1, 0);
	bench_give(&b, 0, 0);
	bench_give(&b, 1, 0);
	expect_broken(&b, 6, 2);
	bench_close(&b);
}

/* Whatever the index says, no more can come back than is out. Shows: SR-DRV-41 */
static void test_pending_is_bounded_by_what_is_out(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 3; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	for (unsigned idx = 4; idx < 65536; idx += 373) {
		poke(b.raw.used + 2, idx, 2);
		assert_true(vqb_driver_pending(b.drv) <= 3);
	}
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_pending(b.drv), 0);
	bench_close(&b);
}

/* Shows: SR-DRV-41 */
static void test_an_index_that_goes_back_is_refused(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_rounds(&b, 5);
	bench_add(&b, 9, 1, 0);
	vqb_driver_publish(b.drv);
	poke(b.raw.used + 2, 4, 2);
	expect_broken(&b, 7, 1);
	bench_close(&b);
}

/* The jump comes while reap still works on what it saw before. Shows: SR-DRV-41 */
static void test_an_index_that_jumps_between_two_calls_is_refused(void **state)
{
	struct bench b;
	struct vqb_done done;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	bench_give(&b, 0, 0);
	bench_give(&b, 1, 0);
	assert_int_equal(vqb_driver_reap(b.drv, &done, 1), 1);
	poke(b.raw.used + 2, 5, 2);
	vqb_driver_reap(b.drv, &done, 1);
	expect_broken(&b, 6, 2);
	bench_close(&b);
}

static void break_it(struct bench *b, uint64_t features)
{
	bench_open(b, 8, features);
	bench_add(b, 1, 1, 0);
	bench_add(b, 2, 1, 0);
	vqb_driver_publish(b->drv);
	bench_give(b, 99, 0);
	expect_broken(b, 6, 2);
}

static void test_broken_stays_broken(void **state)
{
	struct vqb_segment seg = bench_segment(3, 0);
	struct bench b;

	(void)state;
	break_it(&b, EVENT_MODE);
	poke(b.raw.used + 4, 0, 4); /* the device mends its ways: too late */
	for (int i = 0; i < 3; i++) {
		expect_broken(&b, 6, 2);
		assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, NULL), VQB_E_BROKEN);
	}
	bench_give(&b, 1, 0);
	poke(b.raw.used + 2, 0, 2);
	expect_broken(&b, 6, 2);
	bench_close(&b);
}

/* The loop that callers are told to write: reap until there is no more. It has to end. */
static void drain_ends(struct bench *b, uint32_t (*arm)(struct vqb_driver *))
{
	struct vqb_done done[4];
	uint32_t n, turns = 0;

	do {
		n = vqb_driver_reap(b->drv, done, 4);
		assert_true(++turns < 10);
	} while (n || (arm(b->drv) & VQB_MORE));
}

static uint32_t postpone(struct vqb_driver *drv)
{
	return vqb_driver_postpone(drv, VQB_POSTPONE_SHORT);
}

static void test_a_broken_queue_does_not_keep_its_caller_busy(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };
	struct bench b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (unsigned jump = 1; jump < 65536; jump += 4681) {
			break_it(&b, modes[i]);
			poke(b.raw.used + 2, jump, 2);
			drain_ends(&b, vqb_driver_arm);
			drain_ends(&b, vqb_driver_turn);
			drain_ends(&b, postpone);
			bench_close(&b);
		}
	}
}

/* Shows: BF-DRV-33 */
static void test_a_broken_queue_is_mended_by_the_three_steps(void **state)
{
	struct bench b;
	void *tokens[4];
	uint32_t n;

	(void)state;
	break_it(&b, EVENT_MODE);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_E_BUSY);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_BUSY);
	assert_int_equal(vqb_driver_state(b.drv), VQB_E_BROKEN);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_OK);
	assert_int_equal(n, 2);
	assert_int_equal((uintptr_t)tokens[0] + (uintptr_t)tokens[1], 1 + 2);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_rounds(&b, 20);
	bench_close(&b);
}

/* ---- what a call costs ---- */

static unsigned long loads;

static void count_load(const void *p, unsigned bytes)
{
	(void)p;
	(void)bytes;
	loads++;
}

static struct vqb_done all_done[32768];

static uint32_t counted_reap(struct bench *b, uint32_t max)
{
	uint32_t n;

	loads = 0;
	probe_load = count_load;
	n = vqb_driver_reap(b->drv, all_done, max);
	probe_load = NULL;
	return n;
}

/* The largest ring, all of it out. */
static void open_full(struct bench *b)
{
	bench_open(b, 32768, EVENT_MODE);
	for (uint32_t i = 0; i < 32768; i++)
		bench_add(b, i, 1, 0);
	vqb_driver_publish(b->drv);
}

/* The index, and two words for each request. */
static void test_reap_loads_no_more_than_it_may_hand_back(void **state)
{
	static const uint32_t max[] = { 0, 1, 7, 1000, 32768, 0xffffffff };
	struct bench b;
	uint32_t all = 0;

	(void)state;
	open_full(&b);
	for (uint32_t i = 0; i < 32768; i++)
		bench_give(&b, 32767 - i, 0);
	for (unsigned i = 0; i < sizeof(max) / sizeof(max[0]); i++) {
		uint32_t n = counted_reap(&b, max[i]);

		assert_true(n <= max[i]);
		assert_true(loads <= 1 + 2 * (unsigned long)n);
		all += n;
	}
	assert_int_equal(all, 32768);
	bench_close(&b);
}

/* Entries after the bad one are not looked at, and a broken queue looks at nothing. */
static void test_a_bad_entry_costs_no_more_than_itself(void **state)
{
	static const unsigned good[] = { 0, 1, 100, 32767 };
	struct bench b;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		open_full(&b);
		for (uint32_t k = 0; k < good[i]; k++)
			bench_give(&b, k, 0);
		for (uint32_t k = good[i]; k < 32768; k++)
			bench_give(&b, good[i] ? 0 : 40000, 0xffffffff);
		assert_int_equal(counted_reap(&b, 32768), good[i]);
		assert_true(loads <= 1 + 2 * (unsigned long)(good[i] + 1));
		assert_int_equal(vqb_driver_state(b.drv), VQB_E_BROKEN);
		assert_int_equal(counted_reap(&b, 32768), 0);
		assert_int_equal(loads, 0);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-41 */
static void test_an_index_that_jumps_costs_itself(void **state)
{
	struct bench b;

	(void)state;
	open_full(&b);
	poke(b.raw.used + 2, 32769, 2);
	assert_int_equal(counted_reap(&b, 32768), 0);
	assert_int_equal(loads, 1);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_id_out_of_range_is_refused),
		cmocka_unit_test(test_an_id_has_32_bits),
		cmocka_unit_test(test_an_id_that_is_no_head_is_refused),
		cmocka_unit_test(test_an_id_that_was_not_lent_is_refused),
		cmocka_unit_test(test_an_id_returned_twice_is_refused),
		cmocka_unit_test(test_an_id_returned_twice_in_one_batch_is_refused),
		cmocka_unit_test(test_a_bad_id_ends_the_batch),
		cmocka_unit_test(test_an_indirect_request_has_one_head),
		cmocka_unit_test(test_an_id_that_is_not_exposed_yet_is_refused),
		cmocka_unit_test(test_an_index_that_runs_ahead_is_refused),
		cmocka_unit_test(test_an_index_that_runs_ahead_of_what_is_exposed_is_refused),
		cmocka_unit_test(test_pending_is_bounded_by_what_is_out),
		cmocka_unit_test(test_an_index_that_goes_back_is_refused),
		cmocka_unit_test(test_an_index_that_jumps_between_two_calls_is_refused),
		cmocka_unit_test(test_broken_stays_broken),
		cmocka_unit_test(test_a_broken_queue_does_not_keep_its_caller_busy),
		cmocka_unit_test(test_a_broken_queue_is_mended_by_the_three_steps),
		cmocka_unit_test(test_reap_loads_no_more_than_it_may_hand_back),
		cmocka_unit_test(test_a_bad_entry_costs_no_more_than_itself),
		cmocka_unit_test(test_an_index_that_jumps_costs_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
