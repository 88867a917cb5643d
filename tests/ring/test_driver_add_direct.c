/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_add_direct.c: chains of ring descriptors, byte by byte. */
#include "driver_bench.h"

/* Shows: SR-ANY-03 SR-DRV-02 SR-DRV-14 SR-DRV-33 SR-DRV-32 */
static void test_golden_bytes_of_one_request(void **state)
{
	static const uint8_t desc[3][16] = {
		{ 0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x10, 0, 0, 0, 1, 0, 1, 0 },
		{ 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 4, 3, 2, 1, 3, 0, 2, 0 },
		{ 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0 },
	};
	static const uint8_t avail[22] = { 0, 0, 1, 0 };
	static const struct vqb_segment seg[3] = {
		{ UINT64_C(0x123456789abcdef0), 0x10, 0 },
		{ UINT64_C(0x0102030405060708), 0x01020304, 0 },
		{ UINT64_C(0xffffffff), 1, 0 },
	};
	static const uint8_t zero[16 * 5];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	assert_int_equal(vqb_driver_add(b.drv, seg, 1, 2, NULL), VQB_OK);
	vqb_driver_publish(b.drv);
	assert_memory_equal(b.raw.desc, desc, 2 * 16 + 14); /* a last one's next has no meaning */
	assert_memory_equal(b.raw.desc + 3 * 16, zero, sizeof(zero));
	assert_memory_equal(b.raw.avail, avail, sizeof(avail));
	bench_close(&b);
}

/* Shows: SR-DRV-02 SR-ANY-04 */
static void test_writable_segments_come_after_readable_ones(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t readable = 0; readable <= 8; readable++) {
		bench_open(&b, 8, FLAGS_MODE);
		bench_add(&b, 3, readable, 8 - readable);
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, bench_take(&b), 3, readable, 8 - readable);
		bench_close(&b);
	}
}

static void test_nothing_is_visible_before_expose(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 1, 1, 1);
	bench_add(&b, 2, 1, 1);
	assert_int_equal(raw_avail_idx(&b.raw), 0);
	vqb_driver_expose(b.drv);
	assert_int_equal(raw_avail_idx(&b.raw), 2);
	bench_close(&b);
}

/* Shows: SR-DRV-33 SR-ANY-05 */
static void test_the_index_counts_chains_not_descriptors(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	for (unsigned i = 0; i < 5; i++) {
		bench_add(&b, i, 1, 2);
		vqb_driver_publish(b.drv);
		assert_int_equal(raw_avail_idx(&b.raw), i + 1);
	}
	for (unsigned i = 0; i < 5; i++)
		bench_expect_direct(&b, bench_take(&b), i, 1, 2);
	bench_close(&b);
}

/* Shows: SR-DRV-31 SR-DRV-32 */
static void test_a_batch_leaves_the_same_bytes_as_one_by_one(void **state)
{
	struct bench batch, single;

	(void)state;
	bench_open(&batch, 16, EVENT_MODE);
	bench_open(&single, 16, EVENT_MODE);
	for (unsigned i = 0; i < 8; i++) {
		bench_add(&batch, i, 1, 1);
		assert_int_equal(raw_avail_idx(&batch.raw), 0);
		bench_add(&single, i, 1, 1);
		vqb_driver_publish(single.drv);
	}
	vqb_driver_publish(batch.drv);
	assert_int_equal(raw_avail_idx(&batch.raw), 8);
	assert_true(bench_rings(&batch) == bench_rings(&single));
	assert_true(bench_chains(&batch) == bench_chains(&single));
	bench_close(&batch);
	bench_close(&single);
}

static void test_the_segment_array_is_free_on_return(void **state)
{
	struct vqb_segment seg[2] = { bench_segment(1, 0), bench_segment(1, 1) };
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	assert_int_equal(vqb_driver_add(b.drv, seg, 1, 1, NULL), VQB_OK);
	memset(seg, 0xff, sizeof(seg));
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 1, 1);
	bench_close(&b);
}

/* Shows: SR-ANY-04 K21 */
static void test_as_many_segments_as_descriptors_and_not_one_more(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		struct bench_state before;

		bench_open(&b, size, EVENT_MODE);
		before = bench_state(&b);
		assert_int_equal(bench_try_add(&b, 1, 1, size), VQB_E_TOOBIG);
		bench_expect_unchanged(&b, before);
		bench_add(&b, 2, size / 2, size - size / 2);
		assert_int_equal(vqb_driver_free(b.drv), 0);
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, bench_take(&b), 2, size / 2, size - size / 2);
		bench_close(&b);
	}
}

static int32_t add_two(struct bench *b, struct vqb_segment first, struct vqb_segment second)
{
	struct vqb_segment seg[2] = { first, second };

	return vqb_driver_add(b->drv, seg, 1, 1, NULL);
}

/* One request is out while others are refused, and stays as it was built. */
static struct bench_state open_with_one_out(struct bench *b)
{
	bench_open(b, 8, EVENT_MODE);
	bench_add(b, 1, 1, 1);
	vqb_driver_publish(b->drv);
	return bench_state(b);
}

static void expect_no_trace(struct bench *b, struct bench_state before)
{
	bench_expect_unseen(b, before);
	bench_expect_direct(b, 0, 1, 1, 1);
	bench_add(b, 2, 3, 3);
	vqb_driver_publish(b->drv);
	bench_expect_direct(b, raw_avail_entry(&b->raw, 1), 2, 3, 3);
}

/* Shows: SR-DRV-04 */
static void test_a_chain_has_at_most_4_gib(void **state)
{
	const struct vqb_segment most = { BENCH_DATA_AT, 0xffffffff, 0 };
	struct vqb_segment three[3] = { most, most, { BENCH_DATA_AT, 3, 0 } };
	struct bench_state before;
	struct bench b;

	(void)state;
	before = open_with_one_out(&b);
	assert_int_equal(add_two(&b, most, (struct vqb_segment){ BENCH_DATA_AT, 2, 0 }),
			 VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, three, 3, 0, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, three, 0, 3, NULL), VQB_E_TOOBIG);
	expect_no_trace(&b, before);
	bench_close(&b);

	bench_open(&b, 8, EVENT_MODE);
	assert_int_equal(add_two(&b, most, (struct vqb_segment){ BENCH_DATA_AT, 1, 0 }), VQB_OK);
	bench_close(&b);
}

/* Shows: K21 */
static void test_bad_segments_are_refused_wherever_they_stand(void **state)
{
	static const struct vqb_segment good = { BENCH_DATA_AT, 512, 0 };
	static const struct vqb_segment bad[] = {
		{ BENCH_DATA_AT, 0, 0 }, /* empty */
		{ 0, 0, 0 },
		{ UINT64_MAX, 2, 0 }, /* past the last byte there is */
		{ UINT64_MAX - 510, 512, 0 },
		{ BENCH_DATA_AT, 512, 1 }, /* not zero */
		{ BENCH_DATA_AT, 512, 0x80000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bench b;
		struct bench_state before = open_with_one_out(&b);

		assert_int_equal(add_two(&b, bad[i], good), VQB_E_INVALID);
		assert_int_equal(add_two(&b, good, bad[i]), VQB_E_INVALID);
		assert_int_equal(vqb_driver_add(b.drv, &bad[i], 1, 0, NULL), VQB_E_INVALID);
		assert_int_equal(vqb_driver_add(b.drv, &bad[i], 0, 1, NULL), VQB_E_INVALID);
		expect_no_trace(&b, before);
		bench_close(&b);
	}
}

/* The third of four, where the free descriptors do not lie together. Shows: K21 */
static void test_bad_segments_leave_scattered_descriptors_free(void **state)
{
	struct vqb_segment seg[4] = { bench_segment(9, 0),
				      bench_segment(9, 1),
				      { BENCH_DATA_AT, 0, 0 },
				      bench_segment(9, 3) };
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 8; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	b.taken = 8;
	for (uint32_t i = 0; i < 8; i += 2)
		bench_give(&b, i, 0);
	for (int i = 0; i < 4; i++)
		bench_reap(&b);
	before = bench_state(&b);
	for (int i = 0; i < 10; i++)
		assert_int_equal(vqb_driver_add(b.drv, seg, 2, 2, NULL), VQB_E_INVALID);
	bench_expect_unseen(&b, before);
	for (unsigned i = 1; i < 8; i += 2)
		bench_expect_direct(&b, i, i, 1, 0);
	bench_add(&b, 20, 2, 2);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 20, 2, 2);
	bench_close(&b);
}

static void test_the_last_bytes_of_the_address_space_are_good(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	assert_int_equal(add_two(&b, (struct vqb_segment){ UINT64_MAX, 1, 0 },
				 (struct vqb_segment){ UINT64_MAX - 511, 512, 0 }),
			 VQB_OK);
	bench_close(&b);
}

static void test_no_segment_is_refused(void **state)
{
	struct bench_state before;
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_add(b.drv, NULL, 0, 0, NULL), VQB_E_INVALID);
	bench_expect_unchanged(&b, before);
	bench_close(&b);
}

/* The array has one segment: whoever looks at more is caught by the sanitizer, or crashes. */
static void test_counts_whose_sum_wraps_are_refused_unread(void **state)
{
	struct vqb_segment *one = (struct vqb_segment *)bench_alloc(16, sizeof(*one));
	struct bench_state before;
	struct bench b;

	(void)state;
	*one = bench_segment(1, 0);
	bench_open(&b, 4, EVENT_MODE);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_add(b.drv, one, 0xffffffff, 2, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, one, 2, 0xffffffff, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, one, 0x80000000, 0x80000001, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, one, 0x80000000, 0x80000000, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, one, 0, 0xffffffff, NULL), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_add(b.drv, one, 0x10000, 1, NULL), VQB_E_TOOBIG);
	bench_expect_unchanged(&b, before);
	bench_close(&b);
	free(one);
}

/* Shows: BF-DRV-05 SR-DRV-07 */
static void test_tables_are_of_no_use_without_the_feature(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, EVENT_MODE, 8, 8);
	bench_add(&b, 1, 3, 5);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 3, 5);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_bytes_of_one_request),
		cmocka_unit_test(test_writable_segments_come_after_readable_ones),
		cmocka_unit_test(test_nothing_is_visible_before_expose),
		cmocka_unit_test(test_the_index_counts_chains_not_descriptors),
		cmocka_unit_test(test_a_batch_leaves_the_same_bytes_as_one_by_one),
		cmocka_unit_test(test_the_segment_array_is_free_on_return),
		cmocka_unit_test(test_as_many_segments_as_descriptors_and_not_one_more),
		cmocka_unit_test(test_a_chain_has_at_most_4_gib),
		cmocka_unit_test(test_bad_segments_are_refused_wherever_they_stand),
		cmocka_unit_test(test_bad_segments_leave_scattered_descriptors_free),
		cmocka_unit_test(test_the_last_bytes_of_the_address_space_are_good),
		cmocka_unit_test(test_no_segment_is_refused),
		cmocka_unit_test(test_counts_whose_sum_wraps_are_refused_unread),
		cmocka_unit_test(test_tables_are_of_no_use_without_the_feature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
