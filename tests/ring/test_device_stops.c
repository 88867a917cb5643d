/* SPDX-License-Identifier: BSD-3-Clause */
/* Take that stops: for want of room, or at an address that does not resolve; retry and reject. */
#include "device_bench.h"

/*
 * Offers a chain at `head` of three one-byte descriptors, head + 1 and head + 2 being the others.
 */
static void offer_three(struct bench *b, unsigned head)
{
	bench_desc(b, head, DATA, 1, RAW_NEXT, head + 1);
	bench_desc(b, head + 1, DATA + 1, 1, RAW_NEXT, head + 2);
	bench_desc(b, head + 2, DATA + 2, 1, RAW_WRITE, 0);
	bench_offer(b, head);
}

static void offer_unmapped(struct bench *b, unsigned head)
{
	bench_desc(b, head, END + 0x500, 16, RAW_WRITE, 0);
	bench_offer(b, head);
}

static void assert_faults_at(struct bench *b, uint64_t addr, uint32_t access)
{
	assert_int_equal(bench_take(b, 4), VQB_E_FAULT);
	assert_int_equal(b->taken, 0);
	assert_int_equal(b->need.addr, addr);
	assert_int_equal(b->need.access, access);
}

/* ---- room ---- */

static void test_want_of_room_says_how_much_and_consumes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_three(b, 0);
	for (uint32_t room = 0; room < 3; room++) {
		assert_int_equal(bench_take_room(b, 4, room), VQB_E_NOSPC);
		assert_int_equal(b->taken, 0);
		assert_int_equal(b->need.pieces, 3);
		assert_int_equal(vqb_device_in_flight(b->dev), 0);
		assert_int_equal(vqb_device_pending(b->dev), 1);
	}
	assert_int_equal(bench_take_room(b, 4, 3), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].ticket.head, 0);
	assert_int_equal(b->chain[0].readable, 2);
	assert_int_equal(b->chain[0].writable, 1);
}

/* No array, and one that ends soon. What is wrong is seen with UndefinedBehaviorSanitizer. */
static void test_want_of_room_asks_for_no_array(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_three(b, 0);
	assert_int_equal(vqb_device_take(b->dev, NULL, 0, NULL, 0, &b->taken, &b->need), VQB_OK);
	assert_int_equal(b->taken, 0);
	b->need.pieces = 0;
	assert_int_equal(vqb_device_take(b->dev, b->chain, 4, NULL, 0, &b->taken, &b->need),
			 VQB_E_NOSPC);
	assert_int_equal(b->taken, 0);
	assert_int_equal(b->need.pieces, 3);
	assert_int_equal(bench_take_room(b, 4, 3), VQB_OK);
	assert_int_equal(b->taken, 1);
}

static void test_room_is_shared_by_the_chains_of_one_take(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_three(b, 0);
	offer_three(b, 3);
	assert_int_equal(bench_take_room(b, 4, 5), VQB_E_NOSPC);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->need.pieces, 3);
	assert_int_equal(b->chain[0].status, VQB_OK);
	bench_assert_piece(&b->chain[0].piece[2], bench_host(b, DATA + 2), 1);
	assert_int_equal(bench_take_room(b, 4, 5), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].ticket.head, 3);
}

static void test_nothing_is_written_beyond_the_room(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	uint8_t beyond[sizeof(struct vqb_piece)];

	memset(beyond, 0xc3, sizeof(beyond));
	for (uint32_t room = 0; room < 6; room++) {
		offer_three(b, room % 2 ? 0 : 3);
		memset(b->piece, 0xc3, 16 * sizeof(b->piece[0]));
		bench_take_room(b, 4, room);
		for (unsigned i = room; i < 16; i++)
			assert_memory_equal(&b->piece[i], beyond, sizeof(beyond));
		assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
		b->offered = 0;
	}
}

static void test_no_chain_beyond_max(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	uint8_t beyond[sizeof(struct vqb_chain)];

	memset(beyond, 0xc3, sizeof(beyond));
	memset(&b->chain[2], 0xc3, sizeof(beyond));
	for (unsigned head = 0; head < 4; head++)
		bench_offer_plain(b, head);
	assert_int_equal(bench_take(b, 0), VQB_OK);
	assert_int_equal(b->taken, 0);
	bench_take_good(b, 2);
	assert_memory_equal(&b->chain[2], beyond, sizeof(beyond));
	bench_take_good(b, 2);
	assert_int_equal(b->chain[1].ticket.head, 3);
}

static void test_chain_without_pieces_wants_no_room(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, 0, 0, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_room(b, 1, 0), VQB_OK);
	assert_int_equal(b->taken, 1);
}

static void test_need_counts_pieces_and_not_descriptors(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, BORDER - 8, 16, RAW_NEXT, 1);
	bench_desc(b, 1, 0, 0, RAW_NEXT, 2);
	bench_desc(b, 2, BORDER - 1, 2, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_room(b, 1, 3), VQB_E_NOSPC);
	assert_int_equal(b->need.pieces, 4);
	assert_int_equal(bench_take_room(b, 1, 4), VQB_OK);
	assert_int_equal(b->taken, 1);
}

static void test_retry_for_room_walks_anew(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_three(b, 0);
	assert_int_equal(bench_take_room(b, 1, 2), VQB_E_NOSPC);
	bench_desc(b, 0, HIGH + 0x40, 99, RAW_WRITE, 0);
	assert_int_equal(bench_take_room(b, 1, 2), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].readable, 0);
	assert_int_equal(b->chain[0].write_bytes, 99);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, HIGH + 0x40), 99);
	assert_int_equal(vqb_device_put(b->dev, b->chain[0].ticket, 100), VQB_E_INVALID);
	bench_put(b, b->chain[0].ticket, 99);
}

/* ---- addresses ---- */

/* Shows: SR-DEV-33 */
static void test_fault_says_where_and_consumes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, END + 0x500, 16, RAW_WRITE, 0);
	bench_offer(b, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_faults_at(b, END + 0x500, VQB_WRITE);
		assert_int_equal(vqb_device_in_flight(b->dev), 0);
		assert_int_equal(vqb_device_pending(b->dev), 1);
		assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
	}
}

static void test_chains_before_a_fault_are_good(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_three(b, 0);
	offer_unmapped(b, 3);
	offer_three(b, 4);
	assert_int_equal(bench_take(b, 4), VQB_E_FAULT);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].ticket.head, 0);
	assert_int_equal(b->chain[0].status, VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	bench_put(b, b->chain[0].ticket, 1);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
}

static void test_retry_after_a_fault_walks_anew(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_unmapped(b, 3);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	bench_desc(b, 3, HIGH, 7, 0, 0);
	bench_take_one(b);
	assert_int_equal(b->chain[0].read_bytes, 7);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, HIGH), 7);
}

static void test_mended_map_cures_a_fault(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	static uint8_t more[0x1000];

	offer_unmapped(b, 3);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	b->region[2] = (struct vqb_extent){ END, sizeof(more), more, VQB_READ | VQB_WRITE, 0 };
	b->memory.count = 3;
	b->memory.generation = 2;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	bench_take_one(b);
	bench_assert_piece(&b->chain[0].piece[0], more + 0x500, 16);
}

/* An address that the hook does not know yet, as an IOMMU that has yet to be asked. */
static int32_t learning_hook(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	static uint8_t more[0x1000];

	(void)access;
	*out = (struct vqb_extent){ END, sizeof(more), more, VQB_READ | VQB_WRITE, 0 };
	assert_true(addr >= END);
	return *(const int *)context ? VQB_OK : VQB_E_FAULT;
}

static void test_hook_that_has_learnt_the_address_cures_a_fault(void **state)
{
	struct bench *b = bench_plan(state, 8, INDIRECT);
	int knows = 0;

	b->memory.translate = learning_hook;
	b->memory.context = &knows;
	bench_start(b);
	bench_desc(b, 3, END, 16, RAW_INDIRECT, 0);
	bench_offer(b, 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_faults_at(b, END, VQB_READ);
		assert_int_equal(vqb_device_in_flight(b->dev), 0);
	}
	knows = 1;
	assert_int_equal(bench_take_one(b)->readable, 0);
	assert_int_equal(b->chain[0].ticket.head, 3);
}

static void test_map_that_changes_nothing_for_it_does_not_cure_a_fault(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_unmapped(b, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_faults_at(b, END + 0x500, VQB_WRITE);
		b->memory.generation++;
		assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
		assert_int_equal(vqb_device_oldest_generation(b->dev), b->memory.generation);
	}
	assert_int_equal(vqb_device_reject(b->dev, &b->chain[0]), VQB_OK);
	assert_int_equal(b->chain[0].ticket.head, 3);
}

static void test_what_stopped_is_still_to_be_had(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	offer_unmapped(b, 3);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	assert_int_equal(vqb_device_arm(b->dev), VQB_MORE);
	assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, VQB_MORE);
}

/* ---- reject ---- */

static void test_reject_consumes_what_take_left(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	offer_unmapped(b, 3);
	bench_offer_plain(b, 5);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_OK);
	assert_int_equal(chain.ticket.head, 3);
	assert_int_not_equal(chain.ticket.seq, 0);
	assert_int_equal(chain.status, VQB_E_BAD_CHAIN);
	assert_int_equal(chain.reason.rule, VQB_RULE_REJECTED);
	assert_int_equal(chain.readable + chain.writable, 0);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	assert_int_equal(vqb_device_put(b->dev, chain.ticket, 1), VQB_E_INVALID);
	assert_int_equal(bench_take_one(b)->ticket.head, 5);
	bench_put(b, chain.ticket, 0);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 3, 0);
}

static void test_reject_after_want_of_room(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	offer_three(b, 0);
	assert_int_equal(bench_take_room(b, 1, 2), VQB_E_NOSPC);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_OK);
	assert_int_equal(chain.ticket.head, 0);
	assert_int_equal(chain.reason.rule, VQB_RULE_REJECTED);
	bench_put(b, chain.ticket, 0);
	bench_take_nothing(b);
}

static void test_reject_needs_a_chain_that_take_left(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	bench_offer_plain(b, 1);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	bench_take_one(b);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
}

static void test_reject_consumes_one_at_a_time(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	offer_unmapped(b, 3);
	offer_unmapped(b, 4);
	for (unsigned head = 3; head < 5; head++) {
		assert_faults_at(b, END + 0x500, VQB_WRITE);
		assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_OK);
		assert_int_equal(chain.ticket.head, head);
		assert_int_equal(vqb_device_pending(b->dev), 4 - head);
	}
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
}

static void test_reject_is_off_once_the_retry_succeeded(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	offer_unmapped(b, 3);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	bench_desc(b, 3, DATA, 7, 0, 0);
	assert_int_equal(bench_take_one(b)->ticket.head, 3);
	bench_offer_plain(b, 5);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	assert_int_equal(bench_take_one(b)->ticket.head, 5);
}

/* The head is looked at like any other: the driver may have written it again since. */
static void test_reject_breaks_on_a_head_that_is_none(void **state)
{
	static const unsigned head[] = { 8, 1 };
	static const uint32_t rule[] = { VQB_RULE_HEAD, VQB_RULE_TWICE };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_open(state, 8, 0);
		struct vqb_chain chain;
		struct vqb_reason why;

		bench_offer_plain(b, 1);
		bench_take_one(b);
		offer_unmapped(b, 3);
		assert_faults_at(b, END + 0x500, VQB_WRITE);
		poke(b->ring.avail + 4 + 2, head[i], 2);
		assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_BROKEN);
		assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_BROKEN);
		assert_int_equal(why.rule, rule[i]);
	}
}

static void test_reject_is_off_after_reset(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_chain chain;

	offer_unmapped(b, 3);
	assert_faults_at(b, END + 0x500, VQB_WRITE);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_want_of_room_says_how_much_and_consumes_nothing),
		bench_test(test_want_of_room_asks_for_no_array),
		bench_test(test_room_is_shared_by_the_chains_of_one_take),
		bench_test(test_nothing_is_written_beyond_the_room),
		bench_test(test_no_chain_beyond_max),
		bench_test(test_chain_without_pieces_wants_no_room),
		bench_test(test_need_counts_pieces_and_not_descriptors),
		bench_test(test_retry_for_room_walks_anew),
		bench_test(test_fault_says_where_and_consumes_nothing),
		bench_test(test_chains_before_a_fault_are_good),
		bench_test(test_retry_after_a_fault_walks_anew),
		bench_test(test_mended_map_cures_a_fault),
		bench_test(test_hook_that_has_learnt_the_address_cures_a_fault),
		bench_test(test_map_that_changes_nothing_for_it_does_not_cure_a_fault),
		bench_test(test_what_stopped_is_still_to_be_had),
		bench_test(test_reject_consumes_what_take_left),
		bench_test(test_reject_after_want_of_room),
		bench_test(test_reject_needs_a_chain_that_take_left),
		bench_test(test_reject_consumes_one_at_a_time),
		bench_test(test_reject_is_off_once_the_retry_succeeded),
		bench_test(test_reject_breaks_on_a_head_that_is_none),
		bench_test(test_reject_is_off_after_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
