/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_shadow.c: a device that writes where it may not. What the driver knows of its
 * requests it knows from private memory, so that none of this reaches it.
 */
#include "driver_bench.h"

/* N = 8, chain 0 -> 1 -> 2: bent into a loop, longer, its address gone. Shows: K19 SR-DRV-42 */
static void test_a_chain_bent_by_the_device_is_freed_as_it_was_built(void **state)
{
	unsigned seen = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 2);
	vqb_driver_publish(b.drv);
	assert_int_equal(bench_take(&b), 0);
	poke(b.raw.desc + 16 + 14, 1, 2);
	poke(b.raw.desc + 32 + 12, RAW_WRITE | RAW_NEXT, 2);
	poke(b.raw.desc, 0, 8);
	bench_give(&b, 0, 0);
	assert_int_equal(bench_reap(&b), 1);
	assert_int_equal(vqb_driver_free(b.drv), 8);

	for (uintptr_t i = 0; i < 8; i++)
		bench_add(&b, 10 + i, 1, 0);
	assert_int_equal(bench_try_add(&b, 20, 1, 0), VQB_E_NOSPC);
	vqb_driver_publish(b.drv);
	for (uintptr_t i = 0; i < 8; i++) {
		unsigned head = bench_take(&b);

		bench_expect_direct(&b, head, 10 + i, 1, 0);
		seen |= 1u << head;
	}
	assert_int_equal(seen, 0xff);
	bench_close(&b);
}

/* The referring descriptor loses its flag, or an ordinary one gets it: the tables stay right. */
static void test_a_forged_indirect_flag_moves_no_table(void **state)
{
	struct bench b;
	unsigned table, plain;

	(void)state;
	bench_open_tables(&b, 4, EVENT_MODE | INDIRECT, 1, 4);
	bench_add(&b, 1, 1, 1);
	bench_add(&b, 2, 1, 0);
	vqb_driver_publish(b.drv);
	table = bench_take(&b);
	plain = bench_take(&b);
	raw_desc(b.raw.desc, table, BENCH_DATA_AT, 512, RAW_NEXT, plain);
	raw_desc(b.raw.desc, plain, BENCH_TABLES_AT, 32, RAW_INDIRECT, 0);
	bench_give(&b, plain, 0);
	assert_int_equal(bench_reap(&b), 2);
	bench_add(&b, 3, 1, 1); /* the table is still out: direct */
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 3, 1, 1);
	bench_give(&b, table, 0);
	assert_int_equal(bench_reap(&b), 1);
	bench_add(&b, 4, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 4, 2, 2);
	bench_close(&b);
}

/* Shows: SR-DRV-40 SR-DRV-42 */
static void test_lengths_written_by_the_device_do_not_count(void **state)
{
	struct vqb_done done;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 1);
	vqb_driver_publish(b.drv);
	raw_desc(b.raw.desc, 0, BENCH_DATA_AT, 0xffffffff, RAW_WRITE, 0);
	raw_desc(b.raw.desc, 1, BENCH_DATA_AT, 0xffffffff, RAW_WRITE, 0);
	bench_give(&b, 0, 100000);
	done = bench_reap_done(&b);
	assert_int_equal(done.len, bench_segment(1, 1).len);
	assert_int_equal(done.flags, VQB_DONE_OVERLONG);
	bench_close(&b);
}

static void test_an_index_written_by_the_device_is_overwritten(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 0);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	assert_int_equal(bench_reap(&b), 1);
	poke(b.raw.avail + 2, 0x1234, 2);
	bench_add(&b, 2, 1, 0);
	vqb_driver_publish(b.drv);
	assert_int_equal(raw_avail_idx(&b.raw), 2);
	bench_expect_direct(&b, raw_avail_entry(&b.raw, 1), 2, 1, 0);
	bench_close(&b);
}

static void scribble(struct bench *b, uint64_t *seed)
{
	for (size_t i = 0; i < 16 * (size_t)b->raw.size; i += 2)
		poke(b->raw.desc + i, bench_random(seed, 0x10000), 2);
	for (size_t i = 0; i < 6 + 2 * (size_t)b->raw.size; i += 2)
		poke(b->raw.avail + i, bench_random(seed, 0x10000), 2);
	for (size_t i = 0; i < b->config.tables.bytes; i += 2)
		poke(b->tables + i, bench_random(seed, 0x10000), 2);
}

/* Random traffic, while all that the driver has ever written is overwritten. Shows: SR-DRV-42 */
static void test_random_writes_do_not_reach_the_driver(void **state)
{
	struct {
		uintptr_t token;
		unsigned head;
		uint32_t room;
	} out[16];
	unsigned count = 0;
	uint64_t seed = 3;
	struct bench b;

	(void)state;
	bench_open_tables(&b, 16, EVENT_MODE | INDIRECT, 4, 4);
	for (uintptr_t n = 1; n < 5000; n++) {
		uint32_t writable = bench_random(&seed, 4);

		if (bench_try_add(&b, n, 1, writable) == VQB_OK) {
			vqb_driver_publish(b.drv);
			assert_int_equal(raw_avail_idx(&b.raw), (b.taken + 1) & 0xffff);
			out[count].token = n;
			out[count].head = bench_take(&b);
			out[count++].room = bench_bytes(n, 1, writable);
		}
		scribble(&b, &seed);
		for (uint32_t some = bench_random(&seed, 3); some && count; some--) {
			unsigned which = bench_random(&seed, count);
			struct vqb_done done;

			bench_give(&b, out[which].head, 0xffffffff);
			done = bench_reap_done(&b);
			assert_int_equal((uintptr_t)done.token, out[which].token);
			assert_int_equal(done.len, out[which].room);
			out[which] = out[--count];
		}
		assert_int_equal(vqb_driver_in_flight(b.drv), count);
	}
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_close(&b);
}

/* Shows: BF-DRV-32 */
static void test_a_pending_chain_is_left_alone_whatever_else_goes_on(void **state)
{
	struct bench b;
	unsigned direct, table;

	(void)state;
	bench_open_tables(&b, 16, EVENT_MODE | INDIRECT, 4, 4);
	bench_add(&b, 1, 2, 3);
	bench_add(&b, 2, 2, 2);
	vqb_driver_publish(b.drv);
	direct = bench_take(&b);
	table = bench_take(&b);
	for (int i = 0; i < 5000; i++) {
		for (uint32_t n = 1; n < 6; n++)
			if (bench_try_add(&b, 100 + n, n, 0))
				break;
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, direct, 1, 2, 3);
		bench_expect_indirect(&b, table, 2, 2, 2);
		bench_serve(&b);
		while (vqb_driver_in_flight(b.drv) > 2) {
			struct vqb_done done;

			assert_int_equal(vqb_driver_reap(b.drv, &done, 1), 1);
			assert_true((uintptr_t)done.token > 100);
		}
	}
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_chain_bent_by_the_device_is_freed_as_it_was_built),
		cmocka_unit_test(test_a_forged_indirect_flag_moves_no_table),
		cmocka_unit_test(test_lengths_written_by_the_device_do_not_count),
		cmocka_unit_test(test_an_index_written_by_the_device_is_overwritten),
		cmocka_unit_test(test_random_writes_do_not_reach_the_driver),
		cmocka_unit_test(test_a_pending_chain_is_left_alone_whatever_else_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
