/* SPDX-License-Identifier: BSD-3-Clause */
/* Indirect tables: where they may stand, how long they may be, and what may stand in them. */
#include "device_bench.h"

/* Descriptor `i` refers to a table of `bytes` bytes at `table`. */
static void refer(struct bench *b, unsigned i, uint64_t table, uint32_t bytes)
{
	bench_desc(b, i, table, bytes, RAW_INDIRECT, 0);
}

/* Offers a table of `n` entries in order, of one readable byte each, by descriptor `head`. */
static void offer_table(struct bench *b, unsigned head, unsigned n)
{
	bench_table(b, TABLE, n, DATA, 1, 0);
	refer(b, head, TABLE, 16 * n);
	bench_offer(b, head);
}

static void test_table_gives_its_entries(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	const struct vqb_chain *chain;

	bench_entry(b, TABLE, 0, DATA, 16, RAW_NEXT, 2);
	bench_entry(b, TABLE, 2, HIGH, 512, RAW_NEXT | RAW_WRITE, 1);
	bench_entry(b, TABLE, 1, DATA + 16, 1, RAW_WRITE, 0);
	refer(b, 5, TABLE, 48);
	bench_offer(b, 5);
	chain = bench_take_one(b);
	assert_int_equal(chain->ticket.head, 5);
	assert_int_equal(chain->readable, 1);
	assert_int_equal(chain->writable, 2);
	bench_assert_piece(&chain->piece[0], bench_host(b, DATA), 16);
	bench_assert_piece(&chain->piece[1], bench_host(b, HIGH), 512);
	bench_assert_piece(&chain->piece[2], bench_host(b, DATA + 16), 1);
}

/* Shows: K05 SR-DEV-08 SR-DEV-07 */
static void test_table_may_end_a_chain_of_plain_descriptors(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	const struct vqb_chain *chain;

	bench_desc(b, 3, LOW + 0x4000, 16, RAW_NEXT, 6);
	bench_desc(b, 6, LOW + 0x2000, 32, RAW_INDIRECT | RAW_WRITE, 0);
	bench_entry(b, LOW + 0x2000, 0, LOW + 0x5000, 512, RAW_WRITE | RAW_NEXT, 1);
	bench_entry(b, LOW + 0x2000, 1, LOW + 0x5200, 1, RAW_WRITE, 0);
	bench_offer(b, 3);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 1);
	assert_int_equal(chain->writable, 2);
	assert_int_equal(chain->read_bytes, 16);
	assert_int_equal(chain->write_bytes, 513);
	bench_put(b, chain->ticket, 513);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 3, 513);
}

/* Shows: SR-DEV-07 */
static void test_write_on_the_reference_gives_no_direction(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_desc(b, 0, TABLE, 16, RAW_INDIRECT | RAW_WRITE, 0);
	bench_entry(b, TABLE, 0, DATA, 16, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_one(b)->readable, 1);
}

static void test_direction_carries_over_into_the_table(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_desc(b, 0, DATA, 16, RAW_NEXT | RAW_WRITE, 1);
	refer(b, 1, TABLE, 16);
	bench_entry(b, TABLE, 0, DATA, 16, 0, 0);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_ORDER);
}

/* Shows: K04 SR-DEV-32 */
static void test_indirect_and_next_together_are_bad(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_desc(b, 0, LOW + 0x2000, 32, RAW_INDIRECT | RAW_NEXT, 5);
	bench_entry(b, LOW + 0x2000, 0, LOW + 0x4000, 16, RAW_NEXT, 1);
	bench_entry(b, LOW + 0x2000, 1, LOW + 0x5000, 1, RAW_WRITE, 0);
	bench_desc(b, 5, LOW + 0x6000, 512, RAW_WRITE, 0);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_BOTH);
}

/* Shows: SR-DEV-32 */
static void test_table_in_a_table_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_entry(b, TABLE, 0, DATA, 16, RAW_NEXT, 1);
	bench_entry(b, TABLE, 1, TABLE, 16, RAW_INDIRECT, 0);
	refer(b, 0, TABLE, 32);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_NESTED);
}

static void test_table_without_the_feature_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, ~INDIRECT & VQB_RING_FEATURES);

	offer_table(b, 0, 1);
	bench_take_bad(b, VQB_RULE_INDIRECT);
}

/* Shows: SR-DEV-32 */
static void test_table_length_must_be_whole_entries(void **state)
{
	static const uint32_t bytes[] = { 0, 1, 8, 15, 17, 16 * 9, 0xfffffff0, 0xffffffff };
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_table(b, TABLE, 9, DATA, 1, 0);
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		refer(b, i % 8, TABLE, bytes[i]);
		bench_offer(b, i % 8);
		bench_put(b, bench_take_bad(b, VQB_RULE_TABLE)->ticket, 0);
	}
}

/* A bad one, of which nothing is stored past piece `most`. */
static void take_bad_within(struct bench *b, uint32_t rule, unsigned most)
{
	const uint8_t *past = (const uint8_t *)&b->piece[most];

	memset(b->piece, 0x77, sizeof(b->piece));
	bench_take_bad(b, rule);
	for (size_t i = 0; i < (BENCH_PIECES - most) * sizeof(b->piece[0]); i++)
		assert_int_equal(past[i], 0x77);
}

/* Shows: K01 SR-DEV-02 SR-DEV-32 */
static void test_table_as_long_as_a_limit_above_the_ring_is_good(void **state)
{
	struct bench *b = bench_plan(state, 128, INDIRECT);

	b->config.max_chain = 1024;
	bench_start(b);
	offer_table(b, 0, 1024);
	assert_int_equal(bench_take_one(b)->readable, 1024);
	offer_table(b, 1, 1025);
	take_bad_within(b, VQB_RULE_TABLE, 1024);
}

/* Shows: K01 SR-DEV-02 SR-DEV-32 */
static void test_table_limit_is_the_ring_where_init_says_nothing(void **state)
{
	struct bench *b = bench_open(state, 128, INDIRECT);

	offer_table(b, 0, 128);
	assert_int_equal(bench_take_one(b)->readable, 128);
	offer_table(b, 1, 129);
	take_bad_within(b, VQB_RULE_TABLE, 128);
}

static void test_table_over_the_limit_is_bad_though_one_entry_is_used(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_entry(b, TABLE, 0, DATA, 16, 0, 0);
	refer(b, 0, TABLE, 16 * 9);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_TABLE);
}

/* Shows: SR-DEV-02 */
static void test_limit_counts_plain_descriptors_and_entries_together(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_table(b, TABLE, 7, DATA, 1, 0);
	bench_desc(b, 0, DATA, 1, RAW_NEXT, 2);
	bench_desc(b, 1, DATA, 1, RAW_NEXT, 0);
	refer(b, 2, TABLE, 16 * 7);
	bench_offer(b, 0);
	assert_int_equal(bench_take_one(b)->readable, 8);
	bench_put(b, b->chain[0].ticket, 0);
	bench_offer(b, 1);
	bench_take_bad(b, VQB_RULE_LOOP);
}

/* Shows: SR-DEV-02 K01 */
static void test_limit_above_the_ring_counts_both_as_well(void **state)
{
	static const struct {
		unsigned plain, entries;
		uint32_t rule;
	} row[] = {
		{ 0, 1024, VQB_RULE_NONE }, { 1, 1023, VQB_RULE_NONE }, { 7, 1017, VQB_RULE_NONE },
		{ 1, 1024, VQB_RULE_LOOP }, { 7, 1018, VQB_RULE_LOOP },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bench *b = bench_plan(state, 8, INDIRECT);

		b->config.max_chain = 1024;
		bench_start(b);
		bench_table(b, TABLE, row[i].entries, DATA, 1, 0);
		for (unsigned d = 0; d < row[i].plain; d++)
			bench_desc(b, d, DATA, 1, RAW_NEXT, d + 1);
		refer(b, row[i].plain, TABLE, 16 * row[i].entries);
		bench_offer(b, 0);
		if (row[i].rule)
			bench_take_bad(b, row[i].rule);
		else
			assert_int_equal(bench_take_one(b)->readable, 1024);
	}
}

/* A limit above the ring's size is one for tables: the ring's own descriptors are not more. */
static void test_limit_above_the_ring_lets_no_loop_through(void **state)
{
	struct bench *b = bench_plan(state, 4, INDIRECT);
	struct vqb_device_counters counters;

	b->config.max_chain = 32768;
	bench_start(b);
	for (unsigned d = 0; d < 4; d++)
		bench_desc(b, d, DATA, 1, RAW_NEXT, (d + 1) % 4);
	bench_offer(b, 2);
	bench_take_bad(b, VQB_RULE_LOOP);
	vqb_device_read_counters(b->dev, &counters);
	assert_true(counters.descriptors <= 5);
}

/* Shows: K01 SR-DEV-31 */
static void test_looped_table_ends(void **state)
{
	static const uint32_t limit[] = { 0, 8, 9, 1024, 32768 };

	for (unsigned i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		struct bench *b = bench_plan(state, 4, INDIRECT);
		struct vqb_device_counters counters;

		b->config.max_chain = limit[i];
		bench_start(b);
		bench_table(b, TABLE, 8, DATA, 16, 0);
		bench_entry(b, TABLE, 7, DATA, 16, RAW_NEXT, 0);
		refer(b, 0, TABLE, 16 * 8);
		bench_offer(b, 0);
		take_bad_within(b, limit[i] < 8 ? VQB_RULE_TABLE : VQB_RULE_LOOP, 8);
		vqb_device_read_counters(b->dev, &counters);
		assert_true(counters.descriptors <= 1 + 9);
	}
}

/* Shows: K06 SR-DEV-31 */
static void test_next_outside_the_table_is_bad_though_inside_the_ring(void **state)
{
	struct bench *b = bench_open(state, 256, INDIRECT);
	const struct vqb_chain *chain;

	bench_entry(b, LOW + 0x2000, 0, DATA, 16, RAW_NEXT, 7);
	bench_entry(b, LOW + 0x2000, 1, DATA, 16, 0, 0);
	bench_entry(b, LOW + 0x2000, 7, DATA, 16, 0, 0);
	refer(b, 3, LOW + 0x2000, 32);
	bench_offer(b, 3);
	chain = bench_take_bad(b, VQB_RULE_NEXT);
	assert_int_equal(chain->reason.index, 0);
}

static void test_next_at_the_end_of_the_table_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	const struct vqb_chain *chain;

	bench_entry(b, TABLE, 0, DATA, 16, RAW_NEXT, 1);
	bench_entry(b, TABLE, 1, DATA, 16, RAW_NEXT, 2);
	refer(b, 3, TABLE, 32);
	bench_offer(b, 3);
	chain = bench_take_bad(b, VQB_RULE_NEXT);
	assert_int_equal(chain->reason.index, 1);
}

/* A table of 64 of which one is used, and in the same pass a direct chain. Shows: K06 SR-DEV-31 */
static void test_bound_of_a_table_does_not_outlive_its_chain(void **state)
{
	static const struct {
		uint32_t limit;
		int32_t status;
	} row[] = { { 64, VQB_OK }, { 0, VQB_E_BAD_CHAIN } };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_plan(state, 8, INDIRECT);

		b->config.max_chain = row[i].limit;
		bench_start(b);
		bench_entry(b, TABLE, 0, DATA, 16, 0, 0);
		refer(b, 0, TABLE, 16 * 64);
		bench_desc(b, 1, DATA, 16, RAW_NEXT, 20);
		bench_desc(b, 20, DATA, 16, 0, 0);
		bench_offer(b, 0);
		bench_offer(b, 1);
		assert_int_equal(bench_take(b, 2), VQB_OK);
		assert_int_equal(b->taken, 2);
		assert_int_equal(b->chain[0].status, row[i].status);
		assert_int_equal(b->chain[1].status, VQB_E_BAD_CHAIN);
		assert_int_equal(b->chain[1].reason.rule, VQB_RULE_NEXT);
	}
}

/* Shows: SR-DEV-33 */
static void test_table_past_the_end_of_addresses_is_bad(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	const struct vqb_chain *chain;

	refer(b, 0, UINT64_C(0xfffffffffffffff0), 32);
	bench_offer(b, 0);
	chain = bench_take_bad(b, VQB_RULE_RANGE);
	assert_int_equal(chain->reason.addr, UINT64_C(0xfffffffffffffff0));
}

/* Shows: SR-DEV-33 */
static void test_table_that_is_not_mapped_is_a_fault(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	refer(b, 0, END + 0x100, 32);
	bench_offer(b, 0);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->taken, 0);
	assert_int_equal(b->need.addr, END + 0x100);
	assert_int_equal(b->need.access, VQB_READ);
}

/* Shows: K14 SR-DEV-33 */
static void test_table_must_be_mapped_to_its_last_byte(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_entry(b, END - 16, 0, DATA, 16, 0, 0);
	refer(b, 0, END - 16, 32);
	bench_offer(b, 0);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->taken, 0);
	assert_int_equal(b->need.addr, END);
	assert_int_equal(vqb_device_reject(b->dev, &b->chain[0]), VQB_OK);
	assert_int_equal(b->chain[0].ticket.head, 0);
	bench_take_nothing(b);
}

/* Shows: K14 */
static void test_table_may_straddle_two_regions(void **state)
{
	for (unsigned before = 1; before < 32; before++) {
		struct bench *b = bench_open(state, 4, INDIRECT);
		const struct vqb_chain *chain;
		uint8_t table[32];

		raw_desc(table, 0, DATA, 0x10, RAW_NEXT, 1);
		raw_desc(table, 1, HIGH + 0x100, 0x20, RAW_WRITE, 0);
		memcpy(b->low + REGION_BYTES - before, table, before);
		memcpy(b->high, table + before, 32 - before);
		refer(b, 0, BORDER - before, 32);
		bench_offer(b, 0);
		chain = bench_take_one(b);
		assert_int_equal(chain->readable, 1);
		assert_int_equal(chain->writable, 1);
		bench_assert_piece(&chain->piece[0], bench_host(b, DATA), 0x10);
		bench_assert_piece(&chain->piece[1], bench_host(b, HIGH + 0x100), 0x20);
	}
}

/* Shows: K03 */
static void test_empty_entry_leaves_no_piece_and_no_address(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	const struct vqb_chain *chain;

	bench_entry(b, TABLE, 0, 0xdead0000, 0, RAW_NEXT, 1);
	bench_entry(b, TABLE, 1, DATA, 16, 0, 0);
	refer(b, 0, TABLE, 32);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 1);
	bench_assert_piece(&chain->piece[0], bench_host(b, DATA), 16);
}

/* As long as `next` can tell apart, and longer: entries above that are there, and out of reach. */
static void test_table_of_more_entries_than_next_can_name(void **state)
{
	static const uint32_t count[] = { 65535, 65536 };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_plan(state, 8, INDIRECT);
		const struct vqb_chain *chain;

		b->config.max_chain = 1 << 20;
		bench_start(b);
		for (unsigned round = 0; round < 3; round++) { /* the map knows the region then */
			bench_entry(b, HIGH, 0, DATA, 16, RAW_NEXT, count[i] - 1);
			bench_entry(b, HIGH, count[i] - 1, DATA, 512, RAW_WRITE, 0);
			refer(b, 1, HIGH, 16 * count[i]);
			bench_offer(b, 1);
			chain = bench_take_one(b);
			assert_int_equal(chain->readable, 1);
			assert_int_equal(chain->writable, 1);
			assert_int_equal(chain->write_bytes, 512);
			bench_put(b, chain->ticket, 0);
			vqb_device_expose(b->dev);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_table_gives_its_entries),
		bench_test(test_table_may_end_a_chain_of_plain_descriptors),
		bench_test(test_write_on_the_reference_gives_no_direction),
		bench_test(test_direction_carries_over_into_the_table),
		bench_test(test_indirect_and_next_together_are_bad),
		bench_test(test_table_in_a_table_is_bad),
		bench_test(test_table_without_the_feature_is_bad),
		bench_test(test_table_length_must_be_whole_entries),
		bench_test(test_table_as_long_as_a_limit_above_the_ring_is_good),
		bench_test(test_table_limit_is_the_ring_where_init_says_nothing),
		bench_test(test_table_over_the_limit_is_bad_though_one_entry_is_used),
		bench_test(test_limit_counts_plain_descriptors_and_entries_together),
		bench_test(test_limit_above_the_ring_counts_both_as_well),
		bench_test(test_limit_above_the_ring_lets_no_loop_through),
		bench_test(test_looped_table_ends),
		bench_test(test_next_outside_the_table_is_bad_though_inside_the_ring),
		bench_test(test_next_at_the_end_of_the_table_is_bad),
		bench_test(test_bound_of_a_table_does_not_outlive_its_chain),
		bench_test(test_table_past_the_end_of_addresses_is_bad),
		bench_test(test_table_that_is_not_mapped_is_a_fault),
		bench_test(test_table_must_be_mapped_to_its_last_byte),
		bench_test(test_table_may_straddle_two_regions),
		bench_test(test_empty_entry_leaves_no_piece_and_no_address),
		bench_test(test_table_of_more_entries_than_next_can_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
