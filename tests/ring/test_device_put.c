/* SPDX-License-Identifier: BSD-3-Clause */
/* Put: what lands in the used ring, in which order, and what may be said of the bytes written. */
#include "device_bench.h"
#include "probe_log.h"

/* Shows: SR-ANY-03 SR-ANY-05 */
static void test_used_ring_byte_by_byte(void **state)
{
	static const uint8_t golden[] = { 0, 0, 1, 0, 0x02, 0x01, 0, 0, 0x04, 0x03, 0x01, 0 };
	struct bench *b = bench_open(state, 512, 0);

	bench_desc(b, 0x102, HIGH, 0x20000, RAW_WRITE, 0);
	bench_offer(b, 0x102);
	bench_put(b, bench_take_ticket(b), 0x10304);
	vqb_device_expose(b->dev);
	assert_memory_equal(b->ring.used, golden, sizeof(golden));
}

static void test_put_is_not_seen_before_expose(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_writable(b, 3);
	bench_put(b, bench_take_ticket(b), 4);
	assert_int_equal(raw_used_idx(&b->ring), 0);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	bench_assert_used(b, 0, 3, 4);
}

/* Shows: BF-ANY-05 SR-ANY-05 */
static void test_puts_in_any_order_fill_slots_in_put_order(void **state)
{
	static const unsigned order[] = { 2, 0, 3, 1 };
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned head = 4; head < 8; head++)
		bench_offer_writable(b, head);
	bench_take_good(b, 4);
	for (unsigned i = 0; i < 4; i++)
		bench_put(b, b->chain[order[i]].ticket, i + 1);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 4);
	for (unsigned i = 0; i < 4; i++)
		bench_assert_used(b, i, 4 + order[i], i + 1);
}

/* Shows: SR-DEV-16 */
static void test_written_may_not_exceed_the_writable_bytes(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;
	uint8_t *before;

	bench_desc(b, 0, DATA, 100, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 512, RAW_NEXT | RAW_WRITE, 2);
	bench_desc(b, 2, DATA, 1, RAW_WRITE, 0);
	bench_offer(b, 0);
	ticket = bench_take_ticket(b);
	before = bench_snapshot(b);
	assert_int_equal(vqb_device_put(b->dev, ticket, 514), VQB_E_INVALID);
	assert_int_equal(vqb_device_put(b->dev, ticket, 0xffffffff), VQB_E_INVALID);
	vqb_device_expose(b->dev);
	bench_assert_unchanged(b, before);
	assert_int_equal(vqb_device_holds(b->dev, ticket), VQB_OK);
	bench_put(b, ticket, 513);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 0, 513);
}

/* Shows: SR-DEV-17 */
static void test_less_than_was_written_may_be_said(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_writable(b, 0);
	bench_offer_writable(b, 1);
	bench_take_good(b, 2);
	bench_put(b, b->chain[0].ticket, 0);
	bench_put(b, b->chain[1].ticket, 15);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 0, 0);
	bench_assert_used(b, 1, 1, 15);
}

static void test_chain_without_writable_bytes_is_put_with_none(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_plain(b, 0);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_put(b->dev, ticket, 1), VQB_E_INVALID);
	bench_put(b, ticket, 0);
}

/* Shows: SR-DEV-15 */
static void test_elements_are_stored_before_the_index_and_each_once(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const uint8_t *idx = b->ring.used + 2;

	for (unsigned head = 0; head < 3; head++)
		bench_offer_writable(b, head);
	bench_take_good(b, 3);
	log_start();
	for (unsigned i = 0; i < 3; i++)
		bench_put(b, b->chain[i].ticket, i);
	assert_int_equal(log_stores(idx, 2), 0);
	vqb_device_publish(b->dev);
	log_stop();
	assert_int_equal(log_stores(idx, 2), 1);
	assert_int_equal(log_first(idx, 2, 1)->value, 3);
	for (unsigned i = 0; i < 3; i++) {
		const uint8_t *element = b->ring.used + 4 + 8 * i;

		for (unsigned byte = 0; byte < 8; byte++)
			assert_int_equal(log_stores(element + byte, 1), 1);
		assert_true(log_first(element, 4, 1) < log_first(idx, 2, 1));
		assert_true(log_first(element + 4, 4, 1) < log_first(idx, 2, 1));
	}
}

static void test_put_costs_two_stores_and_no_look_at_the_ring(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	bench_offer_writable(b, 0);
	bench_take_one(b);
	log_start();
	bench_put(b, b->chain[0].ticket, 1);
	log_stop();
	assert_true(log_all_stores() <= 2);
	assert_int_equal(log_all_loads(), 0);
	assert_int_equal(probe_fences, 0);
}

/* The device's own index is not read back, nor anything else of the ring that it writes. */
static void test_used_ring_is_never_read(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	log_start();
	for (unsigned i = 0; i < 40; i++) {
		bench_offer_plain(b, i % 8);
		bench_put(b, bench_take_ticket(b), 0);
		vqb_device_turn(b->dev);
		vqb_device_disarm(b->dev);
		vqb_device_arm(b->dev);
		vqb_device_publish(b->dev);
		assert_int_equal(raw_used_idx(&b->ring), i + 1);
	}
	log_stop();
	assert_int_equal(log_loads(b->ring.used, 6 + 8 * 8), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_used_ring_byte_by_byte),
		bench_test(test_put_is_not_seen_before_expose),
		bench_test(test_puts_in_any_order_fill_slots_in_put_order),
		bench_test(test_written_may_not_exceed_the_writable_bytes),
		bench_test(test_less_than_was_written_may_be_said),
		bench_test(test_chain_without_writable_bytes_is_put_with_none),
		bench_test(test_elements_are_stored_before_the_index_and_each_once),
		bench_test(test_put_costs_two_stores_and_no_look_at_the_ring),
		bench_test(test_used_ring_is_never_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
