/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a queue stands: read out, and gone on from, in the same process or another. */
#include "device_bench.h"

static int32_t restore_at(struct bench *b, unsigned avail, unsigned used)
{
	struct vqb_device_saved saved = { (uint16_t)avail, (uint16_t)used };

	return vqb_device_restore(b->dev, &b->config.ring, &saved);
}

static void assert_saves(const struct bench *b, unsigned avail, unsigned used)
{
	struct vqb_device_saved saved;

	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	assert_int_equal(saved.avail, avail);
	assert_int_equal(saved.used, used);
}

static void test_fresh_queue_stands_at_nought(void **state)
{
	assert_saves(bench_open(state, 8, 0), 0, 0);
}

static void test_both_indices_are_saved(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned i = 0; i < 11; i++) {
		bench_offer_plain(b, i % 8);
		bench_serve(b, 1);
	}
	bench_offer_plain(b, 7);
	assert_saves(b, 11, 11);
}

static void test_save_waits_for_what_is_out(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_saved saved;

	bench_offer_plain(b, 0);
	bench_offer_plain(b, 1);
	bench_take_good(b, 2);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	bench_put(b, b->chain[1].ticket, 0);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	bench_put(b, b->chain[0].ticket, 0);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	vqb_device_expose(b->dev);
	assert_saves(b, 2, 2);
}

static void test_untaken_chain_does_not_hold_save_up(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 0);
	assert_int_equal(vqb_device_untake(b->dev, bench_take_ticket(b)), VQB_OK);
	assert_saves(b, 0, 0);
}

static void test_save_needs_a_ring(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_saved saved;

	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_INVALID);
}

static void test_another_device_goes_on(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_saved saved;

	for (unsigned i = 0; i < 13; i++) {
		bench_offer_plain(b, i % 8);
		bench_serve(b, 1);
	}
	bench_offer_writable(b, 6);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	bench_start(b);
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_OK);
	assert_int_equal(bench_take_one(b)->ticket.head, 6);
	bench_put(b, b->chain[0].ticket, 5);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 13, 6, 5);
	assert_int_equal(raw_used_idx(&b->ring), 14);
	assert_saves(b, 14, 14);
}

static void test_restore_writes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	uint8_t *before;

	memset(b->ring.used, 0xff, 6 + 8 * 8);
	before = bench_snapshot(b);
	assert_int_equal(restore_at(b, 5, 5), VQB_OK);
	bench_assert_unchanged(b, before);
}

static void test_chains_that_were_in_flight_are_taken_again(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	b->offered = 65534;
	for (unsigned head = 0; head < 6; head++)
		bench_offer_writable(b, head);
	assert_int_equal(restore_at(b, 1, 65534), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_int_equal(vqb_device_pending(b->dev), 6);
	bench_take_good(b, 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(b->chain[i].ticket.head, i);
		bench_put(b, b->chain[i].ticket, i);
	}
	vqb_device_expose(b->dev);
	bench_assert_used(b, 65534, 0, 0);
	bench_assert_used(b, 65536 + 3, 5, 5);
	assert_int_equal(raw_used_idx(&b->ring), 4);
}

static void test_distance_of_the_indices_is_checked_modulo_their_range(void **state)
{
	static const struct {
		unsigned avail, used;
		int32_t status;
	} row[] = {
		{ 0, 0, VQB_OK },
		{ 8, 0, VQB_OK },
		{ 9, 0, VQB_E_INVALID },
		{ 2, 65530, VQB_OK },
		{ 3, 65530, VQB_E_INVALID },
		{ 7, 8, VQB_E_INVALID },
		{ 65535, 0, VQB_E_INVALID },
		{ 32768, 0, VQB_E_INVALID },
		{ 65535, 65535, VQB_OK },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bench *b = bench_open(state, 8, 0);

		assert_int_equal(restore_at(b, row[i].avail, row[i].used), row[i].status);
		assert_int_equal(vqb_device_state(b->dev, NULL), row[i].status);
	}
}

static void test_largest_ring_may_have_been_full(void **state)
{
	struct bench *b = bench_open(state, 32768, 0);

	assert_int_equal(restore_at(b, 100, 100 + 32768), VQB_OK);
	assert_int_equal(restore_at(b, 101, 100 + 32768), VQB_E_INVALID);
}

static void test_failed_restore_leaves_no_ring(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_saved saved = { 0, 0 };
	struct vqb_ring_at ring = b->config.ring;

	bench_offer_plain(b, 0);
	ring.used = END;
	assert_int_equal(vqb_device_restore(b->dev, &ring, &saved), VQB_E_FAULT);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	bench_take_nothing(b);
	ring.size = 16;
	assert_int_equal(vqb_device_restore(b->dev, &ring, &saved), VQB_E_INVALID);
	assert_int_equal(restore_at(b, 0, 0), VQB_OK);
	bench_take_one(b);
}

static void test_restore_mends_a_broken_queue(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer(b, 99);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	bench_stand_at(b, 1);
	bench_offer_plain(b, 3);
	assert_int_equal(bench_take_one(b)->ticket.head, 3);
}

/* Shows: K36 */
static void test_queue_that_was_never_set_up_is_restored_to_none(void **state)
{
	static const struct vqb_device_saved nought = { 0, 0 }, odd = { 9, 0 };
	struct bench *b = bench_plan(state, 0, 0);

	b->config.max_size = 8;
	bench_start(b);
	assert_int_equal(vqb_device_restore(b->dev, NULL, &nought), VQB_OK);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	assert_int_equal(vqb_device_restore(b->dev, NULL, &odd), VQB_OK);
	bench_take_nothing(b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_fresh_queue_stands_at_nought),
		bench_test(test_both_indices_are_saved),
		bench_test(test_save_waits_for_what_is_out),
		bench_test(test_untaken_chain_does_not_hold_save_up),
		bench_test(test_save_needs_a_ring),
		bench_test(test_another_device_goes_on),
		bench_test(test_restore_writes_nothing),
		bench_test(test_chains_that_were_in_flight_are_taken_again),
		bench_test(test_distance_of_the_indices_is_checked_modulo_their_range),
		bench_test(test_largest_ring_may_have_been_full),
		bench_test(test_failed_restore_leaves_no_ring),
		bench_test(test_restore_mends_a_broken_queue),
		bench_test(test_queue_that_was_never_set_up_is_restored_to_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
