/* SPDX-License-Identifier: BSD-3-Clause */
/* Un-take: the newest taken chain goes back to the ring, and one before it after that. */
#include "device_bench.h"

static void test_newest_goes_back_and_is_taken_again(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first, second;

	bench_offer_plain(b, 3);
	bench_offer_plain(b, 5);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	second = b->chain[1].ticket;
	assert_int_equal(vqb_device_untake(b->dev, second), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	assert_int_equal(vqb_device_pending(b->dev), 1);
	assert_int_equal(vqb_device_holds(b->dev, second), VQB_E_STALE);
	assert_int_equal(vqb_device_holds(b->dev, first), VQB_OK);
	assert_int_equal(bench_take_one(b)->ticket.head, 5);
	assert_int_not_equal(b->chain[0].ticket.seq, second.seq);
	bench_take_nothing(b);
}

static void test_all_go_back_newest_first(void **state)
{
	struct bench *b = bench_open(state, 4, 0);
	struct vqb_ticket ticket[4];

	bench_stand_at(b, 65534);
	for (unsigned i = 0; i < 4; i++)
		bench_offer_plain(b, 3 - i);
	bench_take_good(b, 4);
	for (unsigned i = 0; i < 4; i++)
		ticket[i] = b->chain[i].ticket;
	for (unsigned i = 4; i-- > 0;)
		assert_int_equal(vqb_device_untake(b->dev, ticket[i]), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_int_equal(vqb_device_pending(b->dev), 4);
	bench_take_good(b, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(b->chain[i].ticket.head, 3 - i);
}

static void test_next_take_walks_it_anew(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 3);
	assert_int_equal(vqb_device_untake(b->dev, bench_take_ticket(b)), VQB_OK);
	bench_desc(b, 3, HIGH, 77, RAW_WRITE, 0);
	bench_take_one(b);
	assert_int_equal(b->chain[0].read_bytes, 0);
	assert_int_equal(b->chain[0].write_bytes, 77);
	bench_put(b, b->chain[0].ticket, 77);
}

static void test_only_the_newest_goes_back(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first;

	bench_offer_plain(b, 3);
	bench_offer_plain(b, 5);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_E_INVALID);
	assert_int_equal(vqb_device_holds(b->dev, first), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 2);
	bench_take_nothing(b);
	bench_put(b, first, 0);
}

static void test_one_before_a_chain_that_was_put_is_not_the_newest(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first;

	bench_offer_plain(b, 3);
	bench_offer_plain(b, 5);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	bench_put(b, b->chain[1].ticket, 0);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_E_INVALID);
	bench_take_nothing(b);
	bench_put(b, first, 0);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 5, 0);
	bench_assert_used(b, 1, 3, 0);
}

static void test_newest_goes_back_though_one_before_it_was_put(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first, second;

	bench_offer_plain(b, 3);
	bench_offer_plain(b, 5);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	second = b->chain[1].ticket;
	bench_put(b, first, 0);
	assert_int_equal(vqb_device_untake(b->dev, second), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_E_STALE);
	assert_int_equal(bench_take_one(b)->ticket.head, 5);
	bench_take_nothing(b);
}

static void test_what_is_not_out_is_stale(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_plain(b, 3);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_E_STALE);
	assert_int_equal(vqb_device_put(b->dev, ticket, 0), VQB_E_STALE);
	ticket = bench_take_ticket(b);
	bench_put(b, ticket, 0);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_E_STALE);
	bench_offer_plain(b, 3);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_E_STALE);
	ticket.head = 8;
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_E_STALE);
	assert_int_equal(vqb_device_untake(b->dev, (struct vqb_ticket){ 3, 0, 0 }), VQB_E_STALE);
}

/* What was newest is known without a look at the ring, where the driver may have written since. */
static void test_available_ring_is_not_asked(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first, second;

	bench_offer_plain(b, 3);
	bench_offer_plain(b, 5);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	second = b->chain[1].ticket;
	poke(b->ring.avail + 4, 5, 2);
	poke(b->ring.avail + 6, 3, 2);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_E_INVALID);
	assert_int_equal(vqb_device_untake(b->dev, second), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_OK);
	bench_take_good(b, 2);
	assert_int_equal(b->chain[0].ticket.head, 5);
	assert_int_equal(b->chain[1].ticket.head, 3);
}

static void test_bad_chain_goes_back_too(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 3);
	bench_offer(b, 3);
	ticket = bench_take_bad(b, VQB_RULE_LOOP)->ticket;
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_OK);
	bench_desc(b, 3, DATA, 16, 0, 0);
	assert_int_equal(bench_take_one(b)->ticket.head, 3);
}

static void test_used_ring_is_left_alone(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;
	uint8_t *before;

	bench_offer_plain(b, 3);
	ticket = bench_take_ticket(b);
	before = bench_snapshot(b);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_OK);
	vqb_device_expose(b->dev);
	bench_assert_unchanged(b, before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_newest_goes_back_and_is_taken_again),
		bench_test(test_all_go_back_newest_first),
		bench_test(test_next_take_walks_it_anew),
		bench_test(test_only_the_newest_goes_back),
		bench_test(test_one_before_a_chain_that_was_put_is_not_the_newest),
		bench_test(test_newest_goes_back_though_one_before_it_was_put),
		bench_test(test_what_is_not_out_is_stale),
		bench_test(test_available_ring_is_not_asked),
		bench_test(test_bad_chain_goes_back_too),
		bench_test(test_used_ring_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
