/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct chains: what a walk makes of descriptors in the ring, good and bad. */
#include "device_bench.h"

/* Shows: SR-ANY-03 SR-ANY-04 */
static void test_chain_gives_readable_then_writable(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 6);
	bench_desc(b, 6, HIGH + 0x123, 512, RAW_NEXT, 0);
	bench_desc(b, 0, HIGH + 0x1000, 4096, RAW_NEXT | RAW_WRITE, 7);
	bench_desc(b, 7, DATA + 16, 1, RAW_WRITE, 0);
	bench_offer(b, 3);
	chain = bench_take_one(b);
	assert_int_equal(chain->ticket.head, 3);
	assert_int_equal(chain->readable, 2);
	assert_int_equal(chain->writable, 2);
	assert_int_equal(chain->read_bytes, 16 + 512);
	assert_int_equal(chain->write_bytes, 4096 + 1);
	bench_assert_piece(&chain->piece[0], bench_host(b, DATA), 16);
	bench_assert_piece(&chain->piece[1], bench_host(b, HIGH + 0x123), 512);
	bench_assert_piece(&chain->piece[2], bench_host(b, HIGH + 0x1000), 4096);
	bench_assert_piece(&chain->piece[3], bench_host(b, DATA + 16), 1);
}

static void test_chains_of_one_take_have_pieces_of_their_own(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 1, RAW_NEXT, 1);
	bench_desc(b, 1, DATA + 1, 2, 0, 0);
	bench_desc(b, 2, DATA + 3, 3, RAW_WRITE, 0);
	bench_offer(b, 0);
	bench_offer(b, 2);
	bench_take_good(b, 2);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, DATA), 1);
	bench_assert_piece(&b->chain[0].piece[1], bench_host(b, DATA + 1), 2);
	bench_assert_piece(&b->chain[1].piece[0], bench_host(b, DATA + 3), 3);
	assert_int_equal(b->chain[1].readable, 0);
	assert_int_equal(b->chain[1].writable, 1);
}

static void test_what_a_last_descriptor_says_of_next_is_not_looked_at(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, 0, 0xffff);
	bench_offer(b, 0);
	bench_take_one(b);
}

/* Shows: SR-ANY-04 */
static void test_chain_of_the_whole_ring_is_good(void **state)
{
	struct bench *b = bench_open(state, 128, 0);
	const struct vqb_chain *chain;

	for (unsigned i = 0; i < 128; i++)
		bench_desc(b, i, DATA + i, 1, i < 127 ? RAW_NEXT : 0, i + 1);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 128);
	bench_assert_piece(&chain->piece[127], bench_host(b, DATA + 127), 1);
}

static void test_ring_of_one_takes_a_chain_of_one(void **state)
{
	struct bench *b = bench_open(state, 1, 0);

	for (unsigned i = 0; i < 3; i++) {
		bench_offer_plain(b, 0);
		bench_serve(b, 1);
		bench_assert_used(b, i, 0, 0);
	}
}

static void test_last_descriptor_of_the_largest_ring_is_reached(void **state)
{
	struct bench *b = bench_open(state, 32768, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 32767, DATA, 5, RAW_NEXT, 32766);
	bench_desc(b, 32766, DATA + 5, 6, 0, 0);
	bench_offer(b, 32767);
	chain = bench_take_one(b);
	assert_int_equal(chain->ticket.head, 32767);
	assert_int_equal(chain->read_bytes, 11);
}

/* Shows: SR-DEV-02 SR-ANY-04 */
static void test_chain_limit_of_init_is_exact(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->config.max_chain = 3;
	bench_start(b);
	bench_desc(b, 0, DATA, 1, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 1, RAW_NEXT, 2);
	bench_desc(b, 2, DATA, 1, 0, 0);
	bench_offer(b, 0);
	bench_desc(b, 3, DATA, 1, RAW_NEXT, 0);
	bench_offer(b, 3);
	bench_offer_plain(b, 7);
	assert_int_equal(bench_take_one(b)->readable, 3);
	bench_take_bad(b, VQB_RULE_LOOP);
	assert_int_equal(bench_take_one(b)->ticket.head, 7);
}

/* Shows: SR-DEV-31 */
static void test_descriptor_that_names_itself_is_a_loop(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 5, DATA, 16, RAW_NEXT, 5);
	bench_offer(b, 5);
	assert_int_equal(bench_take_bad(b, VQB_RULE_LOOP)->ticket.head, 5);
}

/* Shows: SR-DEV-31 */
static void test_tail_that_goes_round_is_a_loop(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 16, RAW_NEXT, 2);
	bench_desc(b, 2, DATA, 16, RAW_NEXT, 1);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_LOOP);
}

/* Shows: K02 SR-DEV-31 */
static void test_loop_of_empty_descriptors_ends(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_counters counters;

	bench_desc(b, 0, LOW + 0x1000, 0, RAW_NEXT, 1);
	bench_desc(b, 1, LOW + 0x1000, 0, RAW_NEXT, 0);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_LOOP);
	vqb_device_read_counters(b->dev, &counters);
	assert_true(counters.descriptors <= 9);
}

/* Shows: SR-DEV-31 */
static void test_next_outside_the_ring_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 4);
	bench_desc(b, 4, DATA, 16, RAW_NEXT, 8);
	bench_offer(b, 0);
	chain = bench_take_bad(b, VQB_RULE_NEXT);
	assert_int_equal(chain->reason.index, 4);
}

/* Shows: SR-DEV-34 */
static void test_readable_after_writable_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT | RAW_WRITE, 1);
	bench_desc(b, 1, DATA, 16, 0, 0);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_ORDER);
}

/* Shows: SR-DEV-33 */
static void test_buffer_past_the_end_of_addresses_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, UINT64_C(0xfffffffffffffff0), 17, 0, 0);
	bench_offer(b, 0);
	chain = bench_take_bad(b, VQB_RULE_RANGE);
	assert_int_equal(chain->reason.addr, UINT64_C(0xfffffffffffffff0));
}

/* Shows: K03 */
static void test_empty_descriptor_leaves_no_piece_and_no_address(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, 0xdead0000, 0, RAW_NEXT, 2);
	bench_desc(b, 2, DATA + 16, 512, RAW_NEXT, 3);
	bench_desc(b, 3, UINT64_MAX, 0, RAW_NEXT | RAW_WRITE, 4);
	bench_desc(b, 4, DATA + 528, 1, RAW_WRITE, 0);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 2);
	assert_int_equal(chain->writable, 1);
	assert_int_equal(chain->read_bytes, 528);
	assert_int_equal(chain->write_bytes, 1);
	bench_assert_piece(&chain->piece[1], bench_host(b, DATA + 16), 512);
	bench_assert_piece(&chain->piece[2], bench_host(b, DATA + 528), 1);
}

static void test_chain_of_nothing_but_empty_descriptors_is_good(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain;

	bench_desc(b, 0, 0, 0, RAW_NEXT, 1);
	bench_desc(b, 1, 0, 0, RAW_WRITE, 0);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable + chain->writable, 0);
	bench_put(b, chain->ticket, 0);
}

static void test_empty_descriptor_keeps_its_direction(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 0, RAW_NEXT | RAW_WRITE, 1);
	bench_desc(b, 1, DATA, 16, 0, 0);
	bench_offer(b, 0);
	bench_desc(b, 2, DATA, 16, RAW_NEXT | RAW_WRITE, 3);
	bench_desc(b, 3, DATA, 0, 0, 0);
	bench_offer(b, 2);
	bench_take_bad(b, VQB_RULE_ORDER);
	bench_take_bad(b, VQB_RULE_ORDER);
}

static void test_empty_descriptor_counts_towards_the_limit(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->config.max_chain = 2;
	bench_start(b);
	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 0, RAW_NEXT, 2);
	bench_desc(b, 2, DATA, 0, 0, 0);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_LOOP);
}

/* Shows: SR-DEV-02 */
static void test_more_pieces_than_max_pieces_is_bad(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->config.max_pieces = 3;
	bench_start(b);
	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, BORDER - 8, 16, 0, 0);
	bench_offer(b, 0);
	bench_desc(b, 2, BORDER - 8, 16, RAW_NEXT, 3);
	bench_desc(b, 3, BORDER - 8, 16, 0, 0);
	bench_offer(b, 2);
	assert_int_equal(bench_take_one(b)->readable, 3);
	bench_take_bad(b, VQB_RULE_PIECES);
}

static void test_too_many_pieces_is_bad_and_not_a_want_of_room(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->config.max_pieces = 1;
	bench_start(b);
	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 16, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_room(b, 1, 0), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].reason.rule, VQB_RULE_PIECES);
}

/*
 * A chain of 4096 buffers of one MiB, all of them the second region, and then one of `tail`
 * bytes: 2^32 bytes and the tail.
 */
static void offer_four_gib_and(struct bench *b, uint32_t tail)
{
	for (unsigned i = 0; i < 4096; i++)
		bench_desc(b, i, HIGH, REGION_BYTES, RAW_NEXT | RAW_WRITE, i + 1);
	bench_desc(b, 4096, HIGH, tail, RAW_WRITE, 0);
	bench_offer(b, 0);
}

static void test_four_gib_are_good(void **state)
{
	struct bench *b = bench_open(state, 8192, 0);
	const struct vqb_chain *chain;

	offer_four_gib_and(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->write_bytes, UINT64_C(0x100000000));
	assert_int_equal(chain->writable, 4096);
	bench_put(b, chain->ticket, 0xffffffff);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 0, 0xffffffff);
}

static void test_four_gib_and_a_byte_are_bad(void **state)
{
	struct bench *b = bench_open(state, 8192, 0);

	offer_four_gib_and(b, 1);
	bench_take_bad(b, VQB_RULE_BYTES);
}

static void test_byte_total_counts_both_directions(void **state)
{
	struct bench *b = bench_open(state, 8192, 0);

	offer_four_gib_and(b, 0);
	for (unsigned i = 0; i < 2048; i++)
		bench_desc(b, i, HIGH, REGION_BYTES, RAW_NEXT, i + 1);
	bench_desc(b, 4096, HIGH, 1, RAW_WRITE, 0);
	bench_take_bad(b, VQB_RULE_BYTES);
}

static void test_bad_chain_is_bad_whatever_the_room(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 16, RAW_NEXT | RAW_WRITE, 2);
	bench_desc(b, 2, DATA, 16, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_room(b, 1, 1), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].reason.rule, VQB_RULE_ORDER);
}

static void test_bad_chain_is_in_flight_until_put(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_desc(b, 2, DATA, 16, RAW_NEXT, 2);
	bench_offer(b, 2);
	ticket = bench_take_bad(b, VQB_RULE_LOOP)->ticket;
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	assert_int_equal(vqb_device_holds(b->dev, ticket), VQB_OK);
	bench_put(b, ticket, 0);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 2, 0);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

/* Shows: K07 */
static void test_bad_chain_is_seen_once_and_the_queue_goes_on(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 0);
	bench_offer(b, 0);
	bench_offer_plain(b, 4);
	bench_take_bad(b, VQB_RULE_LOOP);
	assert_int_equal(bench_take_one(b)->ticket.head, 4);
	for (unsigned i = 0; i < 8; i++)
		bench_take_nothing(b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_chain_gives_readable_then_writable),
		bench_test(test_chains_of_one_take_have_pieces_of_their_own),
		bench_test(test_what_a_last_descriptor_says_of_next_is_not_looked_at),
		bench_test(test_chain_of_the_whole_ring_is_good),
		bench_test(test_ring_of_one_takes_a_chain_of_one),
		bench_test(test_last_descriptor_of_the_largest_ring_is_reached),
		bench_test(test_chain_limit_of_init_is_exact),
		bench_test(test_descriptor_that_names_itself_is_a_loop),
		bench_test(test_tail_that_goes_round_is_a_loop),
		bench_test(test_loop_of_empty_descriptors_ends),
		bench_test(test_next_outside_the_ring_is_bad),
		bench_test(test_readable_after_writable_is_bad),
		bench_test(test_buffer_past_the_end_of_addresses_is_bad),
		bench_test(test_empty_descriptor_leaves_no_piece_and_no_address),
		bench_test(test_chain_of_nothing_but_empty_descriptors_is_good),
		bench_test(test_empty_descriptor_keeps_its_direction),
		bench_test(test_empty_descriptor_counts_towards_the_limit),
		bench_test(test_more_pieces_than_max_pieces_is_bad),
		bench_test(test_too_many_pieces_is_bad_and_not_a_want_of_room),
		bench_test(test_four_gib_are_good),
		bench_test(test_four_gib_and_a_byte_are_bad),
		bench_test(test_byte_total_counts_both_directions),
		bench_test(test_bad_chain_is_bad_whatever_the_room),
		bench_test(test_bad_chain_is_in_flight_until_put),
		bench_test(test_bad_chain_is_seen_once_and_the_queue_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
