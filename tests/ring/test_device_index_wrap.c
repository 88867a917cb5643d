/* SPDX-License-Identifier: BSD-3-Clause */
/* Free-running 16-bit indices: traffic over the step from 65535 to 0, for small and large rings. */
#include "device_bench.h"

/*
 * Offers, takes, puts and exposes `total` chains in batches of `batch`. The heads step through the
 * ring, and each is put with a length that tells it from its neighbours.
 */
static void run(struct bench *b, unsigned total, unsigned batch)
{
	unsigned size = b->ring.size, start = b->offered;

	for (unsigned head = 0; head < size; head++)
		bench_desc(b, head, DATA, 16, RAW_WRITE, 0);
	for (unsigned done = 0; done < total; done += batch) {
		unsigned idx = start + done;

		for (unsigned i = 0; i < batch; i++)
			bench_offer(b, (3 * (idx + i)) & (size - 1));
		bench_take_good(b, batch);
		for (unsigned i = 0; i < batch; i++)
			bench_put(b, b->chain[i].ticket, (idx + i) % 17);
		vqb_device_expose(b->dev);
		assert_int_equal(raw_used_idx(&b->ring), (idx + batch) & 0xffff);
		for (unsigned i = 0; i < batch; i++)
			bench_assert_used(b, idx + i, (3 * (idx + i)) & (size - 1), (idx + i) % 17);
	}
}

/* Shows: SR-ANY-05 SR-ANY-06 */
static void test_traffic_over_the_whole_index(void **state)
{
	for (unsigned size = 1; size <= 256; size *= 2) {
		struct bench *b = bench_open(state, size, 0);

		bench_stand_at(b, 65536 - 8 * size);
		run(b, 16 * size, size);
		run(b, 16 * size, 1);
	}
}

/* Shows: SR-ANY-05 SR-ANY-06 */
static void test_seventy_thousand_chains_from_a_fresh_ring(void **state)
{
	run(bench_open(state, 1, EVENT_IDX), 70000, 1);
	run(bench_open(state, 8, EVENT_IDX), 70000, 8);
}

/* Shows: SR-ANY-06 */
static void test_traffic_on_the_largest_ring(void **state)
{
	struct bench *b = bench_open(state, 32768, 0);

	bench_stand_at(b, 65536 - 512);
	run(b, 1024, 512);
}

/* Shows: SR-ANY-06 SR-DEV-30 */
static void test_full_and_empty_differ_on_the_largest_ring(void **state)
{
	struct bench *b = bench_open(state, 32768, 0);
	unsigned left = 32768;

	bench_stand_at(b, 40000);
	bench_take_nothing(b);
	for (unsigned head = 0; head < 32768; head++)
		bench_offer_plain(b, head);
	assert_int_equal(vqb_device_pending(b->dev), 32768);
	while (left) {
		bench_take_good(b, 512);
		left -= 512;
	}
	assert_int_equal(vqb_device_in_flight(b->dev), 32768);
	bench_take_nothing(b);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

/* Shows: K08 */
static void test_more_work_is_seen_over_the_step(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_stand_at(b, 65532);
	for (unsigned head = 0; head < 6; head++)
		bench_offer_plain(b, head);
	assert_int_equal(raw_avail_idx(&b->ring), 2);
	bench_take_good(b, 2);
	assert_int_equal(vqb_device_pending(b->dev), 4);
	assert_int_equal(vqb_device_arm(b->dev), VQB_MORE);
	assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, VQB_MORE);
	bench_take_good(b, 4);
	assert_int_equal(b->chain[3].ticket.head, 5);
	assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
}

/* Shows: K08 */
static void test_slot_is_the_index_modulo_the_size(void **state)
{
	struct bench *b = bench_open(state, 64, 0);
	struct vqb_device_saved saved;

	run(b, 64, 64);
	bench_desc(b, 9, DATA, 16, RAW_WRITE, 0);
	poke(b->ring.avail + 4, 9, 2);
	poke(b->ring.avail + 2, 65, 2);
	bench_put(b, bench_take_ticket(b), 1);
	vqb_device_expose(b->dev);
	assert_int_equal(peek(b->ring.used + 4, 4), 9);
	assert_int_equal(peek(b->ring.used + 8, 4), 1);
	assert_int_equal(raw_used_idx(&b->ring), 65);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	assert_int_equal(saved.avail, 65);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_traffic_over_the_whole_index),
		bench_test(test_seventy_thousand_chains_from_a_fresh_ring),
		bench_test(test_traffic_on_the_largest_ring),
		bench_test(test_full_and_empty_differ_on_the_largest_ring),
		bench_test(test_more_work_is_seen_over_the_step),
		bench_test(test_slot_is_the_index_modulo_the_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
