/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_add_indirect.c: requests in tables: what goes there, what does not, and each byte. */
#include "driver_bench.h"

#define FEATURES (EVENT_MODE | INDIRECT)

/* Shows: SR-DRV-08 SR-DRV-10 SR-DRV-12 SR-ANY-03 */
static void test_golden_bytes_of_a_table(void **state)
{
	static const uint8_t desc[14] = { 0, 0, 0, 0, 0xee, 0xff, 0xc0, 0, 48, 0, 0, 0, 4, 0 };
	static const uint8_t table[3][16] = {
		{ 0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x10, 0, 0, 0, 1, 0, 1, 0 },
		{ 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 4, 3, 2, 1, 3, 0, 2, 0 },
		{ 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0 },
	};
	static const struct vqb_segment seg[3] = {
		{ UINT64_C(0x123456789abcdef0), 0x10, 0 },
		{ UINT64_C(0x0102030405060708), 0x01020304, 0 },
		{ UINT64_C(0xffffffff), 1, 0 },
	};
	struct bench b;
	uint8_t rest[16];

	(void)state;
	memset(rest, BENCH_FILL, sizeof(rest));
	bench_open_tables(&b, 8, FEATURES, 1, 4);
	assert_int_equal(vqb_driver_add(b.drv, seg, 1, 2, NULL), VQB_OK);
	vqb_driver_publish(b.drv);
	assert_int_equal(bench_take(&b), 0);
	assert_memory_equal(b.raw.desc, desc, sizeof(desc));
	assert_memory_equal(b.tables, table, 2 * 16 + 14);
	assert_memory_equal(b.tables + 48, rest, sizeof(rest)); /* the entry that is not used */
	bench_close(&b);
}

/* Shows: SR-DRV-02 SR-DRV-12 SR-DRV-33 */
static void test_a_request_takes_one_descriptor_and_one_table(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FEATURES, 8, 8);
	for (uint32_t readable = 0; readable < 8; readable++)
		bench_add(&b, readable, readable, 8 - readable);
	assert_int_equal(vqb_driver_free(b.drv), 0);
	vqb_driver_publish(b.drv);
	for (uint32_t readable = 0; readable < 8; readable++)
		bench_expect_indirect(&b, bench_take(&b), readable, readable, 8 - readable);
	bench_close(&b);
}

/* Adaptive, that is: direct while there is room, a table for what does not fit any more. */
static void test_no_policy_means_adaptive(void **state)
{
	struct bench b;

	(void)state;
	bench_configure(&b, 8, FEATURES, 8, 8, VQB_INDIRECT_ALWAYS);
	b.config.policy = NULL;
	bench_start(&b);
	bench_add(&b, 1, 2, 3);
	bench_add(&b, 2, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 2, 3);
	bench_expect_indirect(&b, bench_take(&b), 2, 2, 2);
	bench_close(&b);
}

/* Shows: SR-DRV-07 */
static void test_never_is_never(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_configure(&b, 8, FEATURES, 8, 8, VQB_INDIRECT_NEVER);
	bench_start(&b);
	bench_add(&b, 1, 2, 3);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 2, 3);
	before = bench_state(&b);
	assert_int_equal(bench_try_add(&b, 2, 2, 2), VQB_E_NOSPC);
	bench_expect_unchanged(&b, before);
	bench_close(&b);
}

static void test_one_segment_goes_direct(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FEATURES, 8, 8);
	bench_add(&b, 1, 1, 0);
	bench_add(&b, 2, 0, 1);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 1, 0);
	bench_expect_direct(&b, bench_take(&b), 2, 0, 1);
	bench_close(&b);
}

/* Shows: K20 */
static void test_out_of_tables_it_goes_direct(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FEATURES, 2, 4);
	bench_add(&b, 1, 1, 2);
	bench_add(&b, 2, 1, 2);
	bench_add(&b, 3, 1, 2);
	assert_int_equal(vqb_driver_free(b.drv), 3);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 1, 1, 2);
	bench_expect_indirect(&b, bench_take(&b), 2, 1, 2);
	bench_expect_direct(&b, bench_take(&b), 3, 1, 2);
	bench_close(&b);
}

/* N = 4, no table to be had: three segments fit into four descriptors, not into two. Shows: K20 */
static void test_no_table_and_no_room_is_no_room(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 1, 2);
	bench_add(&b, 1, 3, 0);
	assert_int_equal(vqb_driver_free(b.drv), 1);
	bench_close(&b);

	bench_open_tables(&b, 4, FEATURES, 1, 4);
	bench_add(&b, 1, 1, 1);
	bench_add(&b, 2, 1, 0);
	before = bench_state(&b);
	assert_int_equal(before.free, 2);
	assert_int_equal(bench_try_add(&b, 3, 3, 0), VQB_E_NOSPC);
	bench_expect_unchanged(&b, before);
	bench_add(&b, 4, 2, 0);
	bench_close(&b);
}

static void test_longer_than_a_table_goes_direct(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 16, FEATURES, 16, 4);
	bench_add(&b, 1, 2, 2);
	bench_add(&b, 2, 2, 3);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 1, 2, 2);
	bench_expect_direct(&b, bench_take(&b), 2, 2, 3);
	assert_int_equal(vqb_driver_free(b.drv), 16 - 1 - 5);
	bench_close(&b);
}

/* Shows: SR-DRV-09 SR-ANY-04 */
static void test_a_table_holds_no_more_than_the_ring_has_entries(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 4, 8);
	before = bench_state(&b);
	assert_int_equal(bench_try_add(&b, 1, 3, 2), VQB_E_TOOBIG);
	bench_expect_unchanged(&b, before);
	bench_add(&b, 2, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 2, 2, 2);
	bench_close(&b);
}

static void fill_with_singles(struct bench *b)
{
	for (uint32_t i = 0; i < b->raw.size; i++)
		bench_add(b, 100 + i, 1, 0);
	vqb_driver_publish(b->drv);
}

/* Shows: K20 */
static void test_a_full_ring_leaks_no_table(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 1, 4);
	fill_with_singles(&b);
	before = bench_state(&b);
	for (int i = 0; i < 100; i++)
		assert_int_equal(bench_try_add(&b, 1, 1, 2), VQB_E_NOSPC);
	bench_expect_unchanged(&b, before);
	bench_give(&b, bench_take(&b), 0);
	bench_reap(&b);
	bench_add(&b, 2, 1, 2); /* fits only through the one table */
	vqb_driver_publish(b.drv);
	b.taken = 4;
	bench_expect_indirect(&b, bench_take(&b), 2, 1, 2);
	bench_close(&b);
}

/* Four segments, of which the third is wrong; or too many bytes. Shows: K21 */
static void test_refused_requests_leak_no_table(void **state)
{
	struct vqb_segment bad[4] = {
		bench_segment(1, 0), bench_segment(1, 1), { 0, 0, 0 }, bench_segment(1, 3)
	};
	struct vqb_segment big[2] = { { BENCH_DATA_AT, 0xffffffff, 0 }, { BENCH_DATA_AT, 9, 0 } };
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 1, 4);
	for (int i = 0; i < 10; i++) {
		struct bench_state before = bench_state(&b);

		assert_int_equal(vqb_driver_add(b.drv, bad, 1, 3, NULL), VQB_E_INVALID);
		assert_int_equal(vqb_driver_add(b.drv, big, 1, 1, NULL), VQB_E_TOOBIG);
		bench_expect_unseen(&b, before);
	}
	bench_add(&b, 2, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 2, 2, 2);
	bench_close(&b);
}

/* Direct requests that are refused or come back may not touch the tables' account either. */
static void test_a_table_comes_back_with_its_request(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 1, 4);
	for (uintptr_t i = 1; i <= 1000; i++) {
		unsigned head;

		bench_add(&b, i, 2, 2);
		bench_add(&b, 5000, 1, 0);
		vqb_driver_publish(b.drv);
		head = bench_take(&b);
		bench_expect_indirect(&b, head, i, 2, 2);
		bench_give(&b, bench_take(&b), 0);
		assert_int_equal(bench_reap(&b), 5000);
		bench_give(&b, head, 0);
		assert_int_equal(bench_reap(&b), i);
	}
	assert_int_equal(vqb_driver_free(b.drv), 4);
	bench_close(&b);
}

/* Every second of eight comes back, and four new ones take over. Shows: BF-DRV-32 */
static void test_no_two_requests_share_a_table(void **state)
{
	unsigned head[8];
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FEATURES, 8, 4);
	for (uintptr_t i = 0; i < 8; i++)
		bench_add(&b, i, 2, 2);
	vqb_driver_publish(b.drv);
	for (int i = 0; i < 8; i++)
		head[i] = bench_take(&b);
	for (int i = 0; i < 8; i += 2)
		bench_give(&b, head[i], 0);
	for (uintptr_t i = 0; i < 8; i += 2)
		assert_int_equal(bench_reap(&b), i);
	for (uintptr_t i = 8; i < 12; i++)
		bench_add(&b, i, 1, 3);
	vqb_driver_publish(b.drv);
	for (unsigned i = 1; i < 8; i += 2)
		bench_expect_indirect(&b, head[i], i, 2, 2);
	for (uintptr_t i = 8; i < 12; i++)
		bench_expect_indirect(&b, bench_take(&b), i, 1, 3);
	bench_close(&b);
}

static void test_memory_for_less_than_a_table_is_no_table(void **state)
{
	struct bench b;

	(void)state;
	bench_configure(&b, 8, FEATURES, 1, 4, VQB_INDIRECT_ALWAYS);
	b.config.tables.bytes = 63;
	bench_start(&b);
	bench_add(&b, 1, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 2, 2);
	bench_close(&b);
}

static void test_a_part_of_a_table_at_the_end_is_left_alone(void **state)
{
	uint8_t rest[48];
	struct bench b;

	(void)state;
	memset(rest, BENCH_FILL, sizeof(rest));
	bench_configure(&b, 8, FEATURES, 2, 4, VQB_INDIRECT_ALWAYS);
	b.config.tables.bytes = 64 + 48;
	bench_start(&b);
	bench_add(&b, 1, 1, 1);
	bench_add(&b, 2, 1, 1);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 1, 1, 1);
	bench_expect_direct(&b, bench_take(&b), 2, 1, 1);
	assert_memory_equal(b.tables + 64, rest, sizeof(rest));
	bench_close(&b);
}

static void test_the_tables_of_a_reset_queue_are_free(void **state)
{
	struct bench b;
	void *tokens[4];
	uint32_t n;

	(void)state;
	bench_open_tables(&b, 4, FEATURES, 2, 4);
	for (int life = 0; life < 3; life++) {
		bench_add(&b, 1, 2, 2);
		bench_add(&b, 2, 2, 2);
		vqb_driver_publish(b.drv);
		bench_expect_indirect(&b, bench_take(&b), 1, 2, 2);
		bench_expect_indirect(&b, bench_take(&b), 2, 2, 2);
		assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
		assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_OK);
		assert_int_equal(n, 2);
		assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
		bench_attach(&b, &b.config.ring);
	}
	bench_close(&b);
}

/* So that a full ring goes on using them in the order of memory, whatever has been before. */
static void test_tables_that_come_back_together_are_lent_in_the_same_order(void **state)
{
	struct bench b;
	uint64_t at[2][3];

	(void)state;
	bench_open_tables(&b, 8, FLAGS_MODE | INDIRECT, 4, 3);
	for (unsigned round = 0; round < 2; round++) {
		for (uintptr_t n = 0; n < 3; n++)
			bench_add(&b, n, 2, 0);
		vqb_driver_publish(b.drv);
		for (unsigned i = 0; i < 3; i++) {
			unsigned head = bench_take(&b);

			at[round][i] = raw_desc_addr(b.raw.desc, head);
			bench_give(&b, head, 0);
		}
		if (!round) {
			struct vqb_done done[3];

			assert_int_equal(vqb_driver_reap(b.drv, done, 3), 3);
		}
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(at[1][i], at[0][i]);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_bytes_of_a_table),
		cmocka_unit_test(test_a_request_takes_one_descriptor_and_one_table),
		cmocka_unit_test(test_no_policy_means_adaptive),
		cmocka_unit_test(test_never_is_never),
		cmocka_unit_test(test_one_segment_goes_direct),
		cmocka_unit_test(test_out_of_tables_it_goes_direct),
		cmocka_unit_test(test_no_table_and_no_room_is_no_room),
		cmocka_unit_test(test_longer_than_a_table_goes_direct),
		cmocka_unit_test(test_a_table_holds_no_more_than_the_ring_has_entries),
		cmocka_unit_test(test_a_full_ring_leaks_no_table),
		cmocka_unit_test(test_refused_requests_leak_no_table),
		cmocka_unit_test(test_a_table_comes_back_with_its_request),
		cmocka_unit_test(test_no_two_requests_share_a_table),
		cmocka_unit_test(test_memory_for_less_than_a_table_is_no_table),
		cmocka_unit_test(test_a_part_of_a_table_at_the_end_is_left_alone),
		cmocka_unit_test(test_the_tables_of_a_reset_queue_are_free),
		cmocka_unit_test(test_tables_that_come_back_together_are_lent_in_the_same_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
