/* SPDX-License-Identifier: BSD-3-Clause */
/* Damage to the ring as a whole: found at once, told with its reason, sticky until reset. */
#include "device_bench.h"

/* The queue is broken by `rule` at `index`, and stays so whatever is asked of it. */
static void assert_broken(struct bench *b, uint32_t rule, uint32_t index)
{
	struct vqb_device_saved saved;
	struct vqb_reason why = { 0, 0, 0 };

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_BROKEN);
		assert_int_equal(why.rule, rule);
		assert_int_equal(why.index, index);
		assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
		assert_int_equal(b->taken, 0);
		assert_int_equal(vqb_device_reject(b->dev, b->chain), VQB_E_BROKEN);
		assert_int_equal(vqb_device_arm(b->dev) & VQB_MORE, 0);
		assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, 0);
	}
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_BROKEN);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BROKEN);
}

/* Shows: SR-DEV-31 */
static void test_head_outside_the_ring_breaks_it(void **state)
{
	static const unsigned head[] = { 8, 9, 0x8000, 0xffff };

	for (unsigned i = 0; i < 4; i++) {
		struct bench *b = bench_open(state, 8, 0);

		bench_offer(b, head[i]);
		assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
		assert_int_equal(b->taken, 0);
		assert_broken(b, VQB_RULE_HEAD, head[i]);
	}
}

static void test_head_in_flight_breaks_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 3);
	bench_take_one(b);
	bench_offer(b, 3);
	assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
	assert_broken(b, VQB_RULE_TWICE, 3);
}

static void test_head_twice_in_one_take_breaks_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 3);
	bench_offer(b, 3);
	assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].status, VQB_OK);
	assert_broken(b, VQB_RULE_TWICE, 3);
}

static void test_head_of_a_bad_chain_in_flight_breaks_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 3);
	bench_offer(b, 3);
	bench_take_bad(b, VQB_RULE_LOOP);
	bench_offer(b, 3);
	assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
	assert_broken(b, VQB_RULE_TWICE, 3);
}

static void test_head_that_was_put_is_welcome_again(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned i = 0; i < 20; i++) {
		bench_offer_plain(b, 3);
		bench_serve(b, 1);
	}
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

/* Shows: SR-DEV-30 */
static void test_index_ahead_by_the_ring_works_and_one_more_breaks(void **state)
{
	static const unsigned start[] = { 0, 3, 65530, 65535 };

	for (unsigned i = 0; i < 4; i++) {
		struct bench *b = bench_open(state, 8, 0);

		bench_stand_at(b, start[i]);
		for (unsigned head = 0; head < 8; head++)
			bench_offer_plain(b, head);
		bench_take_good(b, 8);
		poke(b->ring.avail + 2, start[i] + 8 + 9, 2);
		assert_int_equal(bench_take(b, 8), VQB_E_BROKEN);
		assert_int_equal(b->taken, 0);
		assert_broken(b, VQB_RULE_JUMPED, (start[i] + 8 + 9) & 0xffff);
	}
}

/* Shows: SR-DEV-30 */
static void test_index_that_steps_back_breaks_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 0);
	bench_offer_plain(b, 1);
	bench_serve(b, 2);
	poke(b->ring.avail + 2, 1, 2);
	assert_int_equal(bench_take(b, 4), VQB_E_BROKEN);
	assert_broken(b, VQB_RULE_JUMPED, 1);
}

static void test_chains_before_the_damage_are_good(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 1);
	bench_offer_plain(b, 2);
	bench_offer(b, 99);
	bench_offer_plain(b, 3);
	assert_int_equal(bench_take(b, 8), VQB_E_BROKEN);
	assert_int_equal(b->taken, 2);
	assert_int_equal(b->chain[0].ticket.head, 1);
	assert_int_equal(b->chain[1].ticket.head, 2);
	assert_int_equal(b->chain[1].status, VQB_OK);
	bench_assert_piece(&b->chain[1].piece[0], bench_host(b, DATA), 16);
}

static void test_what_is_out_still_goes_back(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	struct vqb_ticket first, second;

	bench_offer_writable(b, 1);
	bench_offer_writable(b, 2);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	second = b->chain[1].ticket;
	bench_offer(b, 99);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_in_flight(b->dev), 2);
	bench_put(b, second, 7);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	bench_put(b, first, 5);
	poke(b->ring.avail + 4 + 2 * 8, 1, 2);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(raw_used_idx(&b->ring), 2);
	bench_assert_used(b, 0, 2, 7);
	bench_assert_used(b, 1, 1, 5);
	assert_int_equal(vqb_device_put(b->dev, first, 5), VQB_E_STALE);
	assert_broken(b, VQB_RULE_HEAD, 99);
}

static void test_mended_ring_stays_broken(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer(b, 99);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	b->offered = 0;
	bench_offer_plain(b, 3);
	assert_broken(b, VQB_RULE_HEAD, 99);
}

static void test_reset_mends_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_reason why;

	bench_offer(b, 99);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	b->offered = 0;
	bench_offer_plain(b, 3);
	bench_take_one(b);
	assert_int_equal(vqb_device_state(b->dev, &why), VQB_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_head_outside_the_ring_breaks_it),
		bench_test(test_head_in_flight_breaks_it),
		bench_test(test_head_twice_in_one_take_breaks_it),
		bench_test(test_head_of_a_bad_chain_in_flight_breaks_it),
		bench_test(test_head_that_was_put_is_welcome_again),
		bench_test(test_index_ahead_by_the_ring_works_and_one_more_breaks),
		bench_test(test_index_that_steps_back_breaks_it),
		bench_test(test_chains_before_the_damage_are_good),
		bench_test(test_what_is_out_still_goes_back),
		bench_test(test_mended_ring_stays_broken),
		bench_test(test_reset_mends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
