/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: each one counts what its line in the header says, and clearing sets all to nought. */
#include "device_bench.h"
#include "probe_log.h"

static struct vqb_device_counters counted(const struct bench *b)
{
	struct vqb_device_counters now;

	memset(&now, 0xff, sizeof(now));
	vqb_device_read_counters(b->dev, &now);
	return now;
}

static void assert_all_nought(const struct bench *b)
{
	static const struct vqb_device_counters nought;
	struct vqb_device_counters now = counted(b);

	assert_memory_equal(&now, &nought, sizeof(now));
}

static void offer_loop(struct bench *b, unsigned head)
{
	bench_desc(b, head, DATA, 16, RAW_NEXT, head);
	bench_offer(b, head);
}

static void offer_table(struct bench *b, unsigned head, unsigned n)
{
	bench_table(b, TABLE, n, DATA, 16, 0);
	bench_desc(b, head, TABLE, 16 * n, RAW_INDIRECT, 0);
	bench_offer(b, head);
}

static void test_all_begin_at_nought(void **state)
{
	assert_all_nought(bench_open(state, 8, EVENT_IDX));
}

static void test_chains_bad_and_good(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 0);
	offer_loop(b, 1);
	bench_offer_plain(b, 2);
	assert_int_equal(bench_take(b, 3), VQB_OK);
	assert_int_equal(counted(b).chains, 3);
	assert_int_equal(counted(b).bad_chains, 1);
	assert_int_equal(counted(b).completions, 0);
	bench_put(b, b->chain[0].ticket, 0);
	bench_put(b, b->chain[1].ticket, 0);
	assert_int_equal(counted(b).completions, 2);
	assert_int_equal(counted(b).chains, 3);
}

static void test_chain_that_was_not_taken_is_not_counted(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	struct vqb_chain chain;

	offer_table(b, 0, 3);
	assert_int_equal(bench_take_room(b, 1, 2), VQB_E_NOSPC);
	assert_int_equal(counted(b).chains, 0);
	assert_int_equal(counted(b).indirect, 0);
	bench_take_one(b);
	assert_int_equal(counted(b).chains, 1);
	assert_int_equal(counted(b).indirect, 1);
	bench_desc(b, 1, END, 16, 0, 0);
	bench_offer(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(counted(b).chains, 1);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_OK);
	assert_int_equal(counted(b).chains, 2);
	assert_int_equal(counted(b).bad_chains, 1);
}

static void test_untaken_chain_is_counted_as_such(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_plain(b, 0);
	ticket = bench_take_ticket(b);
	assert_int_equal(counted(b).untaken, 0);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, ticket), VQB_E_STALE);
	bench_take_one(b);
	assert_int_equal(counted(b).chains, 2);
	assert_int_equal(counted(b).untaken, 1);
}

static void test_chains_with_a_table(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_offer_plain(b, 0);
	offer_table(b, 1, 1);
	offer_table(b, 2, 1);
	bench_take_good(b, 3);
	assert_int_equal(counted(b).indirect, 2);
}

static void assert_counts_descriptors(struct bench *b, uint64_t expected)
{
	vqb_device_clear_counters(b->dev);
	log_start();
	assert_int_equal(bench_take(b, 1), VQB_OK);
	log_stop();
	assert_int_equal(b->taken, 1);
	assert_int_equal(log_descriptors(b->ring.desc, 8) +
				 log_descriptors(bench_host(b, TABLE), 16),
			 expected);
	assert_int_equal(counted(b).descriptors, expected);
}

static void test_descriptors_read(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_offer_plain(b, 0);
	assert_counts_descriptors(b, 1);
	bench_desc(b, 1, DATA, 0, RAW_NEXT, 2);
	bench_desc(b, 2, DATA, 16, RAW_NEXT, 3);
	bench_desc(b, 3, DATA, 16, 0, 0);
	bench_offer(b, 1);
	assert_counts_descriptors(b, 3);
	offer_table(b, 4, 5);
	assert_counts_descriptors(b, 1 + 5);
	bench_desc(b, 5, TABLE, 8, RAW_INDIRECT, 0);
	bench_offer(b, 5);
	assert_counts_descriptors(b, 1);
	offer_table(b, 6, 2);
	bench_entry(b, TABLE, 1, DATA, 16, RAW_INDIRECT, 0);
	assert_counts_descriptors(b, 1 + 2);
}

static void test_stale_puts(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_plain(b, 0);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_put(b->dev, ticket, 1), VQB_E_INVALID);
	assert_int_equal(counted(b).stale, 0);
	bench_put(b, ticket, 0);
	assert_int_equal(vqb_device_holds(b->dev, ticket), VQB_E_STALE);
	assert_int_equal(counted(b).stale, 0);
	assert_int_equal(vqb_device_put(b->dev, ticket, 0), VQB_E_STALE);
	assert_int_equal(vqb_device_put(b->dev, ticket, 1), VQB_E_STALE);
	assert_int_equal(counted(b).stale, 2);
	assert_int_equal(counted(b).completions, 1);
}

static void test_faults(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, END, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 16, 0, 0);
	bench_offer(b, 0);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
		assert_int_equal(counted(b).faults, i);
	}
	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	assert_int_equal(bench_take_room(b, 1, 1), VQB_E_NOSPC);
	bench_take_one(b);
	assert_int_equal(counted(b).faults, 3);
}

static void test_decisions(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	vqb_device_publish(b->dev);
	assert_int_equal(counted(b).notified, 1);
	assert_int_equal(counted(b).suppressed, 0);
	for (unsigned i = 0; i < 5; i++) {
		poke(b->ring.avail, i < 3 ? 0 : 1, 2);
		bench_offer_plain(b, i);
		bench_put(b, bench_take_ticket(b), 0);
		if (i % 2)
			vqb_device_publish(b->dev);
		else
			vqb_device_turn(b->dev);
		vqb_device_publish(b->dev);
		vqb_device_turn(b->dev);
	}
	assert_int_equal(counted(b).notified, 1 + 3);
	assert_int_equal(counted(b).suppressed, 2);
}

static void test_nothing_new_is_not_suppressed(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	poke(b->ring.avail, 1, 2);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
	assert_int_equal(counted(b).notified, 0);
	assert_int_equal(counted(b).suppressed, 0);
}

static void test_counters_run_on_over_reset(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 0);
	bench_offer_plain(b, 1);
	bench_serve(b, 1);
	bench_put(b, bench_take_ticket(b), 0);
	assert_int_equal(counted(b).completions, 2);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(counted(b).chains, 2);
	assert_int_equal(counted(b).completions, 2);
}

static void test_clearing_sets_all_to_nought(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	offer_table(b, 0, 2);
	offer_loop(b, 1);
	bench_desc(b, 2, END, 16, 0, 0);
	bench_offer(b, 2);
	assert_int_equal(bench_take(b, 3), VQB_E_FAULT);
	bench_put(b, b->chain[0].ticket, 0);
	assert_int_equal(vqb_device_put(b->dev, b->chain[0].ticket, 0), VQB_E_STALE);
	vqb_device_publish(b->dev);
	poke(b->ring.avail, 1, 2);
	bench_put(b, b->chain[1].ticket, 0);
	vqb_device_publish(b->dev);
	assert_int_equal(counted(b).suppressed, 1);
	vqb_device_clear_counters(b->dev);
	assert_all_nought(b);
	assert_int_equal(vqb_device_pending(b->dev), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_all_begin_at_nought),
		bench_test(test_chains_bad_and_good),
		bench_test(test_chain_that_was_not_taken_is_not_counted),
		bench_test(test_untaken_chain_is_counted_as_such),
		bench_test(test_chains_with_a_table),
		bench_test(test_descriptors_read),
		bench_test(test_stale_puts),
		bench_test(test_faults),
		bench_test(test_decisions),
		bench_test(test_nothing_new_is_not_suppressed),
		bench_test(test_counters_run_on_over_reset),
		bench_test(test_clearing_sets_all_to_nought),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
