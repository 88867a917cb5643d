/* SPDX-License-Identifier: BSD-3-Clause */
/* However a request is cut into descriptors, the device sees the same bytes in the same order. */
#include "device_bench.h"

enum { READABLE = 20, WRITABLE = 12, WHOLE = READABLE + WRITABLE };

/*
 * The request lies at `at` without a gap. Descriptor i covers the bytes from cut[i] to
 * cut[i + 1]; a cut stands at READABLE, so that none has two directions.
 */
static void offer_cut(struct bench *b, uint64_t at, const unsigned *cut, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned flags = cut[i] >= READABLE ? RAW_WRITE : 0;

		if (i + 1 < n)
			flags |= RAW_NEXT;
		bench_desc(b, i, at + cut[i], cut[i + 1] - cut[i], flags, i + 1);
	}
	bench_offer(b, 0);
}

/* The taken chain is the bytes at `at`, from the first to the last. */
static void assert_whole(const struct bench *b, const struct vqb_chain *chain, uint64_t at)
{
	uint64_t seen = 0;

	assert_int_equal(chain->read_bytes, READABLE);
	assert_int_equal(chain->write_bytes, WRITABLE);
	for (uint32_t i = 0; i < chain->readable + chain->writable; i++) {
		const uint8_t *base = (const uint8_t *)chain->piece[i].base;

		if (i == chain->readable)
			assert_int_equal(seen, READABLE);
		for (size_t k = 0; k < chain->piece[i].len; k++)
			assert_ptr_equal(base + k, bench_host(b, at + seen + k));
		assert_int_not_equal(chain->piece[i].len, 0);
		seen += chain->piece[i].len;
	}
	assert_int_equal(seen, WHOLE);
}

static void take_every_cut(struct bench *b, uint64_t at)
{
	for (unsigned first = 0; first <= READABLE; first++) {
		for (unsigned second = READABLE; second <= WHOLE; second++) {
			const unsigned cut[] = { 0, first, READABLE, second, WHOLE };
			const struct vqb_chain *chain;

			offer_cut(b, at, cut, 4);
			chain = bench_take_one(b);
			assert_whole(b, chain, at);
			bench_put(b, chain->ticket, WRITABLE);
			vqb_device_expose(b->dev);
		}
	}
}

/* Shows: SR-DEV-01 */
static void test_every_cut_gives_the_same_bytes(void **state)
{
	take_every_cut(bench_open(state, 8, 0), DATA);
}

/* Shows: SR-DEV-01 */
static void test_every_cut_gives_the_same_bytes_across_regions(void **state)
{
	take_every_cut(bench_open(state, 8, 0), BORDER - 15);
}

/* Shows: SR-DEV-01 */
static void test_a_descriptor_for_each_byte_gives_the_same_bytes(void **state)
{
	struct bench *b = bench_open(state, 64, 0);
	unsigned cut[WHOLE + 1];

	for (unsigned i = 0; i <= WHOLE; i++)
		cut[i] = i;
	offer_cut(b, DATA, cut, WHOLE);
	assert_whole(b, bench_take_one(b), DATA);
}

/* Shows: SR-DEV-01 SR-DEV-08 */
static void test_a_table_for_any_part_gives_the_same_bytes(void **state)
{
	struct bench *b = bench_open(state, 64, INDIRECT);

	for (unsigned direct = 0; direct < WHOLE; direct++) {
		const struct vqb_chain *chain;

		for (unsigned i = 0; i < WHOLE; i++) {
			unsigned flags = i >= READABLE ? RAW_WRITE : 0;

			if (i < direct)
				bench_desc(b, i, DATA + i, 1, flags | RAW_NEXT, i + 1);
			else
				bench_entry(b, TABLE, i - direct, DATA + i, 1,
					    flags | (i + 1 < WHOLE ? RAW_NEXT : 0), i - direct + 1);
		}
		bench_desc(b, direct, TABLE, 16 * (WHOLE - direct), RAW_INDIRECT, 0);
		bench_offer(b, 0);
		chain = bench_take_one(b);
		assert_whole(b, chain, DATA);
		bench_put(b, chain->ticket, 0);
		vqb_device_expose(b->dev);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_every_cut_gives_the_same_bytes),
		bench_test(test_every_cut_gives_the_same_bytes_across_regions),
		bench_test(test_a_descriptor_for_each_byte_gives_the_same_bytes),
		bench_test(test_a_table_for_any_part_gives_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
