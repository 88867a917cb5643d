/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_in_order.c: IN_ORDER on the driver. Descriptors are taken one after another, and one
 * used entry may stand for all requests up to its own.
 */
#include "driver_bench.h"
#include "probe_log.h"

#define IN_ORDER_MODE (FLAGS_MODE | UINT64_C(1) << 35)

/* Requests `first` up to, not including, `to`, each of `readable` and `writable` segments. */
static void add_some(struct bench *b, uintptr_t first, uintptr_t to, uint32_t readable,
		     uint32_t writable)
{
	for (uintptr_t n = first; n < to; n++)
		bench_add(b, n, readable, writable);
	vqb_driver_publish(b->drv);
}

/*
 * The device uses `count` requests with one entry: in the slot of the first, the last one's head.
 */
static void give_batch(struct bench *b, unsigned count, uint32_t id, uint32_t len)
{
	raw_complete(&b->raw, b->used, id, len);
	b->used += count;
	poke(b->raw.used + 2, b->used, 2);
}

static void expect_done(const struct vqb_done *done, uintptr_t n, uint32_t len, uint32_t flags)
{
	assert_ptr_equal(done->token, bench_token(n));
	assert_int_equal(done->len, len);
	assert_int_equal(done->flags, flags);
}

static void expect_broken(struct bench *b, uint32_t free, uint32_t in_flight)
{
	bench_reap_none(b);
	assert_int_equal(vqb_driver_state(b->drv), VQB_E_BROKEN);
	assert_int_equal(vqb_driver_free(b->drv), free);
	assert_int_equal(vqb_driver_in_flight(b->drv), in_flight);
}

/* Shows: SR-DRV-22 SR-DRV-23 */
static void test_one_entry_stands_for_several_requests(void **state)
{
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 6, 0, 1);
	give_batch(&b, 3, 2, 7);
	assert_int_equal(vqb_driver_pending(b.drv), 3);
	assert_int_equal(vqb_driver_reap(b.drv, done, 8), 3);
	expect_done(&done[0], 1, 512, VQB_DONE_IMPLIED);
	expect_done(&done[1], 2, 512, VQB_DONE_IMPLIED);
	expect_done(&done[2], 3, 7, 0);
	assert_int_equal(vqb_driver_free(b.drv), 6);
	assert_int_equal(vqb_driver_in_flight(b.drv), 2);
	bench_close(&b);
}

/* What was lent for reading is not written: an implied length counts the writable bytes alone. */
/* Shows: SR-DRV-23 */
static void test_full_means_all_writable_bytes(void **state)
{
	struct vqb_done done[3];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	bench_add(&b, 1, 2, 2);
	bench_add(&b, 2, 1, 0);
	bench_add(&b, 3, 0, 1);
	vqb_driver_publish(b.drv);
	give_batch(&b, 3, 5, 512);
	assert_int_equal(vqb_driver_reap(b.drv, done, 3), 3);
	expect_done(&done[0], 1, bench_bytes(1, 2, 2), VQB_DONE_IMPLIED);
	expect_done(&done[1], 2, 0, VQB_DONE_IMPLIED);
	expect_done(&done[2], 3, 512, 0);
	bench_close(&b);
}

static void test_the_last_ones_length_is_cut_to_what_was_lent(void **state)
{
	struct vqb_driver_counters count;
	struct vqb_done done[2];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 3, 0, 1);
	give_batch(&b, 2, 1, 513);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	expect_done(&done[0], 1, 512, VQB_DONE_IMPLIED);
	expect_done(&done[1], 2, 512, VQB_DONE_OVERLONG);
	vqb_driver_read_counters(b.drv, &count);
	assert_int_equal(count.overlong, 1);
	assert_int_equal(count.completions, 2);
	bench_close(&b);
}

static unsigned fetches_of_used(const struct bench *b)
{
	return log_loads(b->raw.used + 4, 8 * (size_t)b->raw.size);
}

/* A batch that is cut by `max` is remembered: its entry, which may change, is fetched once. */
/* Shows: SR-DRV-22 */
static void test_a_batch_may_be_reaped_in_parts(void **state)
{
	struct vqb_done done[2];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 6, 0, 1);
	give_batch(&b, 5, 4, 9);
	log_start();
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	log_stop();
	assert_int_equal(fetches_of_used(&b), 2); /* id and length */
	expect_done(&done[0], 1, 512, VQB_DONE_IMPLIED);
	expect_done(&done[1], 2, 512, VQB_DONE_IMPLIED);
	memset(b.raw.used + 4, 0xff, 64);
	log_start();
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	expect_done(&done[0], 3, 512, VQB_DONE_IMPLIED);
	expect_done(&done[1], 4, 512, VQB_DONE_IMPLIED);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 1);
	log_stop();
	assert_int_equal(fetches_of_used(&b), 0);
	expect_done(&done[0], 5, 9, 0);
	assert_int_equal(vqb_driver_free(b.drv), 8);
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_close(&b);
}

/* Two batches seen at once: the entry of the second lies in the slot of its own first request. */
/* Shows: SR-DRV-22 */
static void test_batches_follow_each_other(void **state)
{
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 9, 0, 1);
	give_batch(&b, 3, 2, 1);
	memset(b.raw.used + 4 + 8, 0xff, 16); /* passed over, never written */
	give_batch(&b, 1, 3, 2);
	give_batch(&b, 4, 7, 3);
	assert_int_equal(vqb_driver_reap(b.drv, done, 8), 8);
	for (uintptr_t i = 0; i < 8; i++)
		assert_ptr_equal(done[i].token, bench_token(i + 1));
	expect_done(&done[2], 3, 1, 0);
	expect_done(&done[3], 4, 2, 0);
	expect_done(&done[4], 5, 512, VQB_DONE_IMPLIED);
	expect_done(&done[7], 8, 3, 0);
	bench_close(&b);
}

/* With five of 8 out, 0 to 4, one of them not exposed: the device's one entry has `id`. */
static void refuse(uint32_t id, unsigned moved)
{
	struct bench b;

	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 5, 0, 1);
	bench_add(&b, 5, 0, 1);
	give_batch(&b, moved, id, 0);
	expect_broken(&b, 3, 5);
	bench_close(&b);
}

static void test_an_id_that_is_not_out_breaks_the_queue(void **state)
{
	(void)state;
	refuse(5, 4);
	refuse(7, 4);
	refuse(8, 4);
	refuse(0x10000, 4);
	refuse(UINT32_MAX, 4);
}

static void test_an_id_not_yet_exposed_breaks_the_queue(void **state)
{
	(void)state;
	refuse(4, 4);
}

/* The entry ends a batch of more than the index has moved by. */
static void test_an_index_that_moved_less_than_the_batch_breaks_the_queue(void **state)
{
	(void)state;
	refuse(3, 3);
	refuse(1, 1);
	refuse(3, 1);
}

static void test_an_index_beyond_what_is_out_breaks_the_queue(void **state)
{
	(void)state;
	refuse(3, 5);
	refuse(0, 9);
}

/* The index moved further than the batch: what follows is an entry of its own, and a bad one. */
static void test_an_entry_given_twice_breaks_the_queue(void **state)
{
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 5, 0, 1);
	raw_complete(&b.raw, 0, 1, 0);
	raw_complete(&b.raw, 2, 1, 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 8), 2);
	expect_broken(&b, 6, 2);
	bench_close(&b);
}

/* A chain of three in its middle is no end of a batch. */
static void test_an_id_that_is_no_head_breaks_the_queue(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 1, 3, 1, 2);
	give_batch(&b, 2, 4, 0);
	expect_broken(&b, 2, 2);
	bench_close(&b);
}

/* ---- descriptors ---- */

/* Shows: SR-DRV-06 */
static void test_descriptors_are_taken_one_after_another(void **state)
{
	unsigned next = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t readable = round % 3, writable = 1 + round % 4;

		bench_add(&b, round + 1, readable, writable);
		vqb_driver_publish(b.drv);
		assert_int_equal(bench_take(&b), next);
		bench_give(&b, next, 0);
		assert_int_equal(bench_reap(&b), round + 1);
		next = (next + readable + writable) % 8;
	}
	bench_close(&b);
}

/* Shows: SR-DRV-05 SR-DRV-06 */
static void test_chains_link_to_the_next_one_round_the_end(void **state)
{
	unsigned at[8];
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	for (unsigned head = 0, round = 0; round < 16; round++, head = (head + 5) % 8) {
		bench_add(&b, 7, 2, 3);
		vqb_driver_publish(b.drv);
		assert_int_equal(bench_take(&b), head);
		assert_int_equal(bench_chain(&b, head, at), 5);
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(at[i], (head + i) % 8);
		bench_expect_direct(&b, head, 7, 2, 3);
		bench_give(&b, head, 0);
		bench_reap(&b);
	}
	bench_close(&b);
}

/* Shows: SR-DRV-06 SR-DRV-11 */
static void test_a_table_takes_one_descriptor_and_links_upwards(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, IN_ORDER_MODE | INDIRECT, 4, 4);
	for (uint32_t round = 0; round < 10; round++) {
		bench_add(&b, 3, 1, 3);
		vqb_driver_publish(b.drv);
		assert_int_equal(bench_take(&b), round % 4);
		bench_expect_indirect(&b, round % 4, 3, 1, 3);
		bench_give(&b, round % 4, 0);
		bench_reap(&b);
	}
	bench_close(&b);
}

/*
 * An add that fails takes nothing, not even where its chain would have gone round the end of the
 * ring: the next one begins where it would have begun.
 */
/* Shows: SR-DRV-06 K21 */
static void test_a_failed_add_leaves_no_gap(void **state)
{
	struct vqb_segment seg[4] = { { 1, 1, 0 }, { 2, 2, 0 }, { 3, 3, 0 }, { 4, 0, 0 } };
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	for (unsigned out = 0; out < 3; out++) {
		bench_open(&b, 8, IN_ORDER_MODE);
		bench_rounds(&b, 6 - out);
		add_some(&b, 1, 1 + out, 0, 1);
		assert_int_equal(vqb_driver_add(b.drv, seg, 2, 2, NULL), VQB_E_INVALID);
		assert_int_equal(vqb_driver_free(b.drv), 8 - out);
		add_some(&b, 1 + out, 4, 0, 1);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(bench_take(&b), (6 - out + i) % 8);
		give_batch(&b, 3, (8 - out) % 8, 1);
		assert_int_equal(vqb_driver_reap(b.drv, done, 8), 3);
		expect_done(&done[0], 1, 512, VQB_DONE_IMPLIED);
		expect_done(&done[1], 2, 512, VQB_DONE_IMPLIED);
		expect_done(&done[2], 3, 1, 0);
		bench_close(&b);
	}
}

/* ---- for long ---- */

/* Batches of all sizes, over the wrap of the index. */
/* Shows: SR-DRV-22 SR-ANY-06 */
static void test_the_index_wraps(void **state)
{
	uint64_t seed = 5;
	uintptr_t added = 0, reaped = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	while (reaped < 140000) {
		uint32_t out = (uint32_t)(added - reaped), more = bench_random(&seed, 9 - out);
		struct vqb_done done[8];
		uint32_t batch, n = 0;

		for (uint32_t i = 0; i < more; i++)
			bench_add(&b, ++added, 0, 1);
		vqb_driver_publish(b.drv);
		if (added == reaped)
			continue;
		batch = 1 + bench_random(&seed, (uint32_t)(added - reaped));
		give_batch(&b, batch, (uint32_t)(reaped + batch - 1) % 8, 1);
		while (n < batch) {
			uint32_t got = vqb_driver_reap(b.drv, done, 1 + bench_random(&seed, 8));

			assert_int_not_equal(got, 0);
			for (uint32_t i = 0; i < got; i++, n++) {
				assert_ptr_equal(done[i].token, bench_token(reaped + n + 1));
				assert_int_equal(done[i].len, n + 1 == batch ? 1 : 512);
			}
		}
		reaped += batch;
	}
	assert_true(b.used > 2 * 65536);
	bench_close(&b);
}

/* ---- resets ---- */

/* In the middle of a batch. Every token has come back once, and the queue starts anew. */
static void test_detach_gives_what_a_batch_had_left(void **state)
{
	struct vqb_done done[8];
	void *token[8];
	unsigned seen = 0;
	uint32_t n;
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	add_some(&b, 0, 7, 0, 1);
	give_batch(&b, 6, 5, 1);
	n = vqb_driver_reap(b.drv, done, 2);
	assert_int_equal(n, 2);
	for (uint32_t i = 0; i < n; i++)
		seen += 1u << (4 * (uintptr_t)done[i].token);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_detach(b.drv, token, 8, &n), VQB_OK);
	assert_int_equal(n, 5);
	for (uint32_t i = 0; i < n; i++)
		seen += 1u << (4 * (uintptr_t)token[i]);
	assert_int_equal(seen, 0x1111111);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	add_some(&b, 1, 4, 0, 1);
	assert_int_equal(bench_take(&b), 0);
	give_batch(&b, 3, 2, 4);
	assert_int_equal(vqb_driver_reap(b.drv, done, 8), 3);
	expect_done(&done[0], 1, 512, VQB_DONE_IMPLIED);
	expect_done(&done[2], 3, 4, 0);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_entry_stands_for_several_requests),
		cmocka_unit_test(test_full_means_all_writable_bytes),
		cmocka_unit_test(test_the_last_ones_length_is_cut_to_what_was_lent),
		cmocka_unit_test(test_a_batch_may_be_reaped_in_parts),
		cmocka_unit_test(test_batches_follow_each_other),
		cmocka_unit_test(test_an_id_that_is_not_out_breaks_the_queue),
		cmocka_unit_test(test_an_id_not_yet_exposed_breaks_the_queue),
		cmocka_unit_test(test_an_index_that_moved_less_than_the_batch_breaks_the_queue),
		cmocka_unit_test(test_an_index_beyond_what_is_out_breaks_the_queue),
		cmocka_unit_test(test_an_entry_given_twice_breaks_the_queue),
		cmocka_unit_test(test_an_id_that_is_no_head_breaks_the_queue),
		cmocka_unit_test(test_descriptors_are_taken_one_after_another),
		cmocka_unit_test(test_chains_link_to_the_next_one_round_the_end),
		cmocka_unit_test(test_a_table_takes_one_descriptor_and_links_upwards),
		cmocka_unit_test(test_a_failed_add_leaves_no_gap),
		cmocka_unit_test(test_the_index_wraps),
		cmocka_unit_test(test_detach_gives_what_a_batch_had_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
