/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is joined, what is not, and in which order it goes out.
 * Shows: K27, K28, K29
 */
#include <stdbool.h>

#include "coalesce_bench.h"

static struct bench bench;

enum { KB = 1024 };

static void test_neighbours_become_one_submission_with_all_their_pieces(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_add(b, VQB_BLK_OUT, 4096, 4096, 1);
	bench_add(b, VQB_BLK_OUT, 8192, 8192, 2);
	bench_add(b, VQB_BLK_OUT, 16384, 512, 1);
	assert_int_equal(vqb_coalescer_collected(b->c), 3);
	assert_int_equal(bench_flush(b), 1);
	assert_int_equal(vqb_coalescer_collected(b->c), 0);
	bench_expect(b, 0, 4096, 12800, 4);
	assert_int_equal(b->out[0]->op, VQB_BLK_OUT);
	for (uint32_t i = 0; i < 4; i++)
		assert_ptr_equal(b->out[0]->piece[i].base, &bench_memory[i]);
	assert_int_equal(bench_flush(b), 0);
	bench_close(b);
}

static void test_one_request_goes_out_as_it_is(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *io;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	io = bench_add(b, VQB_BLK_IN, 512, 512, 1);
	assert_int_equal(bench_flush(b), 1);
	assert_ptr_equal(b->out[0], io);
	assert_ptr_equal(io->piece, &b->piece[0]);
	assert_int_equal(io->group, 0);
	bench_close(b);
}

static void test_a_gap_of_one_byte_is_a_gap(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, 0, 8);
	bench_write(b, 9, 8);
	bench_write(b, 17, 8);
	assert_int_equal(bench_flush(b), 2);
	bench_expect(b, 0, 0, 8, 1);
	bench_expect(b, 1, 9, 16, 2);
	bench_close(b);
}

/* K27: with a difference in an int, 2^32 sectors would sort before 8. */
static void test_far_apart_sorts_right(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, UINT64_C(512) << 32, 4096);
	bench_write(b, 4096, 4096);
	bench_write(b, 0, 4096);
	assert_int_equal(bench_flush(b), 2);
	bench_expect(b, 0, 0, 8192, 2);
	bench_expect(b, 1, UINT64_C(512) << 32, 4096, 1);
	bench_close(b);

	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, UINT64_C(1) << 32, 8);
	bench_write(b, 8, 8);
	bench_write(b, (UINT64_C(1) << 63) + 8, 8);
	bench_write(b, UINT64_MAX - 7, 8);
	bench_write(b, 0, 4);
	assert_int_equal(bench_flush(b), 5);
	bench_expect(b, 0, 0, 4, 1);
	bench_expect(b, 1, 8, 8, 1);
	bench_expect(b, 2, UINT64_C(1) << 32, 8, 1);
	bench_expect(b, 3, (UINT64_C(1) << 63) + 8, 8, 1);
	bench_expect(b, 4, UINT64_MAX - 7, 8, 1);
	bench_close(b);
}

/* How they are sorted depends on how many there are. From the end, or to and fro. */
static void sorts_right(unsigned n, bool from_end)
{
	struct bench *b = &bench;

	bench_open_limits(b, 1024, UINT64_MAX);
	for (unsigned i = 0; i < n; i++)
		bench_write(b, UINT64_MAX / n * (from_end ? n - 1 - i : (i * 7 + 3) % n), 1);
	assert_int_equal(bench_flush(b), n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(b->out[i]->offset, UINT64_MAX / n * i);
	bench_close(b);
}

/*
 * One half at the very end, the other at the very start: a difference is nearly 2^64, in any merge.
 */
static void test_both_ends_of_the_disk_sort_right(void **state)
{
	struct bench *b = &bench;

	(void)state;
	for (unsigned n = 2; n <= 32; n += 2) {
		bench_open_limits(b, 1024, UINT64_MAX);
		for (unsigned i = 0; i < n; i++)
			bench_write(b, i < n / 2 ? UINT64_MAX - 999 + 2 * i : 2 * i, 1);
		assert_int_equal(bench_flush(b), n);
		for (unsigned i = 1; i < n; i++)
			assert_true(b->out[i - 1]->offset < b->out[i]->offset);
		bench_close(b);
	}
}

static void test_any_number_of_requests_all_over_the_disk_sorts_right(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 32; n++) {
		sorts_right(n, true);
		if (n % 7) /* or 7 doesn't reach all of them */
			sorts_right(n, false);
	}
}

/* Added in order, or the other way round, which takes another way through. */
static uint32_t submissions_of(uint32_t max_pieces, uint32_t first, uint32_t second)
{
	struct bench *b = &bench;
	uint32_t n[2];

	for (unsigned back = 0; back < 2; back++) {
		bench_open_limits(b, max_pieces, UINT64_MAX);
		if (back)
			bench_add(b, VQB_BLK_OUT, first, second, second);
		bench_add(b, VQB_BLK_OUT, 0, first, first);
		if (!back)
			bench_add(b, VQB_BLK_OUT, first, second, second);
		n[back] = bench_flush(b);
		if (n[back] == 1)
			bench_expect(b, 0, 0, first + second, first + second);
		bench_close(b);
	}
	assert_int_equal(n[0], n[1]);
	return n[0];
}

static void test_pieces_up_to_the_limit_exactly(void **state)
{
	(void)state;
	assert_int_equal(submissions_of(1024, 600, 424), 1);
	assert_int_equal(submissions_of(1024, 600, 425), 2);
	assert_int_equal(submissions_of(1024, 601, 424), 2);
	assert_int_equal(submissions_of(4, 2, 2), 1);
	assert_int_equal(submissions_of(4, 3, 2), 2);
	assert_int_equal(submissions_of(4, 2, 3), 2);
	assert_int_equal(submissions_of(4, 5, 1), 2);
	assert_int_equal(submissions_of(4, 1, 5), 2);
	assert_int_equal(submissions_of(1, 1, 1), 2);
}

/* `n` neighbours of so many sectors, in order or the other way round: how many submissions? */
static uint32_t submissions_of_sectors(const uint32_t *sectors, uint32_t n)
{
	struct bench *b = &bench;
	uint32_t got[2];

	for (unsigned back = 0; back < 2; back++) {
		bench_open_limits(b, 1024, 64 * KB);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t which = back ? n - 1 - i : i;
			uint64_t sector = 0;

			for (uint32_t k = 0; k < which; k++)
				sector += sectors[k];
			bench_write(b, 512 * sector, 512 * (uint64_t)sectors[which]);
		}
		got[back] = bench_flush(b);
		if (got[back] == 1)
			bench_expect(b, 0, 0, 64 * KB, n);
		bench_close(b);
	}
	assert_int_equal(got[0], got[1]);
	return got[0];
}

static void test_bytes_up_to_the_limit_exactly(void **state)
{
	static const uint32_t over[] = { 8, 256, 8 }; /* the middle one is over the limit alone */
	static const uint32_t exact[] = { 64, 64 }, one_more[] = { 64, 65 };

	(void)state;
	assert_int_equal(submissions_of_sectors(over, 3), 3);
	assert_int_equal(submissions_of_sectors(exact, 2), 1);
	assert_int_equal(submissions_of_sectors(one_more, 2), 2);
}

/* Greedy from the left, and what didn't fit starts the next one. */
static void test_a_long_run_is_cut_into_as_few_as_the_limit_allows(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, 10);
	for (unsigned i = 0; i < 32; i++)
		bench_write(b, 3 * i, 3);
	assert_int_equal(bench_flush(b), 11);
	for (uint32_t i = 0; i < 10; i++)
		bench_expect(b, i, 9 * i, 9, 3);
	bench_expect(b, 10, 90, 6, 2);
	bench_close(b);
}

static void test_the_last_byte_may_be_the_last_there_is(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, 0, 8); /* where the end of the last one would wrap to */
	bench_write(b, UINT64_MAX - 7, 8);
	bench_write(b, UINT64_MAX - 15, 8);
	assert_int_equal(bench_flush(b), 2);
	bench_expect(b, 0, 0, 8, 1);
	bench_expect(b, 1, UINT64_MAX - 15, 16, 2);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, UINT64_MAX - 7, 9, 1)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, UINT64_MAX, 2, 1)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_coalescer_collected(b->c), 0);
	bench_close(b);
}

static void test_direction_and_flags_divide_batches(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *io;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_add(b, VQB_BLK_IN, 0, 8, 1);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, 8, 8, 1)), VQB_E_NOSPC);
	assert_int_equal(bench_flush(b), 1);
	bench_write(b, 8, 8);
	io = bench_io(b, VQB_BLK_OUT, 16, 8, 1);
	io->flags = VQB_IO_FUA;
	assert_int_equal(vqb_coalescer_add(b->c, io), VQB_E_NOSPC);
	assert_int_equal(bench_flush(b), 1);
	assert_int_equal(vqb_coalescer_add(b->c, io), VQB_OK);
	io = bench_io(b, VQB_BLK_OUT, 24, 8, 1);
	io->flags = VQB_IO_FUA;
	assert_int_equal(vqb_coalescer_add(b->c, io), VQB_OK);
	assert_int_equal(bench_flush(b), 1);
	bench_expect(b, 0, 16, 16, 2);
	assert_int_equal(b->out[0]->flags, VQB_IO_FUA);
	bench_close(b);
}

static void test_what_is_neither_read_nor_write_is_refused(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	for (unsigned op = 2; op < 256; op++) {
		struct vqb_io io = { .op = (uint8_t)op, .offset = 8, .bytes = 8 };

		assert_int_equal(vqb_coalescer_add(b->c, &io), VQB_E_INVALID);
		io.flags = 0xff;
		assert_int_equal(vqb_coalescer_add(b->c, &io), VQB_E_INVALID);
	}
	assert_int_equal(vqb_coalescer_collected(b->c), 0);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_IN, 0, 0, 0)), VQB_E_INVALID);
	bench_close(b);
}

static void test_a_full_batch_is_flushed_first(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *one_more;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	for (unsigned i = 0; i < 32; i++)
		bench_write(b, 8 * i, 8);
	one_more = bench_io(b, VQB_BLK_OUT, 256, 8, 1);
	assert_int_equal(vqb_coalescer_add(b->c, one_more), VQB_E_NOSPC);
	assert_int_equal(bench_flush(b), 1);
	bench_expect(b, 0, 0, 256, 32);
	assert_int_equal(vqb_coalescer_add(b->c, one_more), VQB_OK);
	bench_close(b);
}

/* ---- overlap ---- */

/* Three that overlap, in the middle of a run that would be joined without them. */
static void test_overlapping_requests_go_out_by_arrival_and_alone(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *late, *early, *middle;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	late = bench_write(b, 24, 8);
	bench_write(b, 32, 8);
	early = bench_write(b, 16, 10);
	bench_write(b, 8, 8);
	bench_write(b, 0, 8);
	middle = bench_write(b, 20, 5);
	bench_write(b, 40, 8);
	assert_int_equal(bench_flush(b), 5);
	bench_expect(b, 0, 0, 16, 2);
	assert_ptr_equal(b->out[1], late);
	assert_ptr_equal(b->out[2], early);
	assert_ptr_equal(b->out[3], middle);
	bench_expect(b, 4, 32, 16, 2);
	bench_close(b);
}

/* A long one over two that don't touch each other: all three are one cluster. */
static void test_a_cover_holds_together_what_it_covers(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *io[4];

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	io[0] = bench_write(b, 80, 8);
	io[1] = bench_write(b, 88, 8);
	io[2] = bench_write(b, 0, 100);
	io[3] = bench_write(b, 8, 8);
	assert_int_equal(bench_flush(b), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_ptr_equal(b->out[i], io[i]);
	bench_close(b);
}

/* More than are sorted by counting at once, all at the same place, or nearly. */
static void test_equal_offsets_keep_their_order(void **state)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .requests = 1024,
					       .pieces = BENCH_PIECES,
					       .max_pieces = 1024,
					       .max_transfer = UINT64_MAX };
	struct bench *b = &bench;

	(void)state;
	for (unsigned n = 1; n <= 1024; n = n < 70 ? n + 1 : n * 3 / 2) {
		bench_open(b, &config);
		for (unsigned i = 0; i < n; i++)
			bench_write(b, 512 + i * 7 % 5, 16);
		assert_int_equal(bench_flush(b), n);
		for (unsigned i = 0; i < n; i++)
			assert_ptr_equal(b->out[i], &b->io[i]);
		bench_close(b);
	}
}

/* Joins that are out keep away what overlaps them, to the byte. */
static void test_what_overlaps_a_join_waits_until_it_is_done(void **state)
{
	static const struct {
		uint64_t offset, bytes;
		int32_t status;
	} at[] = { { 92, 8, VQB_OK },
		   { 92, 9, VQB_E_BUSY },
		   { 100, 1, VQB_E_BUSY },
		   { 105, 2, VQB_E_BUSY },
		   { 115, 1, VQB_E_BUSY },
		   { 115, 100, VQB_E_BUSY },
		   { 0, UINT64_MAX, VQB_E_BUSY },
		   { 116, 8, VQB_OK },
		   { 200, 8, VQB_OK },
		   { 207, 1, VQB_OK },
		   { 307, 1, VQB_E_BUSY } };
	struct vqb_io_list done, retry;
	struct bench *b = &bench;
	struct vqb_io *first, *second;

	(void)state;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct vqb_io *io;

		bench_open_limits(b, 1024, UINT64_MAX);
		bench_write(b, 100, 8);
		bench_write(b, 108, 8);
		bench_write(b, 300, 4);
		bench_write(b, 304, 4);
		assert_int_equal(bench_flush(b), 2);
		first = b->out[0];
		second = b->out[1];
		io = bench_io(b, VQB_BLK_OUT, at[i].offset, at[i].bytes, 1);
		assert_int_equal(vqb_coalescer_add(b->c, io), at[i].status);
		io->op = VQB_BLK_IN;
		assert_int_equal(vqb_coalescer_add(b->c, io),
				 at[i].status ? at[i].status : VQB_E_NOSPC);
		bench_end(b, first, 16, &done, &retry);
		bench_end(b, second, 8, &done, &retry);
		io = bench_io(b, VQB_BLK_OUT, at[i].offset, at[i].bytes, 1);
		assert_int_equal(vqb_coalescer_add(b->c, io), VQB_OK);
		bench_close(b);
	}
}

static void test_reads_pass_joined_reads_but_writes_do_not(void **state)
{
	struct vqb_io_list done, retry;
	struct bench *b = &bench;
	struct vqb_io *joined;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_add(b, VQB_BLK_IN, 0, 8, 1);
	bench_add(b, VQB_BLK_IN, 8, 8, 1);
	assert_int_equal(bench_flush(b), 1);
	joined = b->out[0];
	bench_add(b, VQB_BLK_IN, 4, 8, 1);
	assert_int_equal(bench_flush(b), 1);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, 4, 8, 1)), VQB_E_BUSY);
	bench_end(b, joined, 16, &done, &retry);
	bench_write(b, 4, 8);
	bench_close(b);
}

/* One that is refused leaves no trace: the batch is as sorted as before. */
static void test_what_is_refused_leaves_the_batch_as_it_was(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, 0, 8);
	bench_write(b, 8, 8);
	assert_int_equal(bench_flush(b), 1);
	bench_write(b, 100, 8);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, 0, 8, 1)), VQB_E_BUSY);
	assert_int_equal(vqb_coalescer_add(b->c, bench_io(b, VQB_BLK_OUT, 108, 0, 0)),
			 VQB_E_INVALID);
	bench_write(b, 108, 8);
	assert_int_equal(bench_flush(b), 1);
	bench_expect(b, 0, 100, 16, 2);
	bench_close(b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_become_one_submission_with_all_their_pieces),
		cmocka_unit_test(test_one_request_goes_out_as_it_is),
		cmocka_unit_test(test_a_gap_of_one_byte_is_a_gap),
		cmocka_unit_test(test_far_apart_sorts_right),
		cmocka_unit_test(test_both_ends_of_the_disk_sort_right),
		cmocka_unit_test(test_any_number_of_requests_all_over_the_disk_sorts_right),
		cmocka_unit_test(test_pieces_up_to_the_limit_exactly),
		cmocka_unit_test(test_bytes_up_to_the_limit_exactly),
		cmocka_unit_test(test_a_long_run_is_cut_into_as_few_as_the_limit_allows),
		cmocka_unit_test(test_the_last_byte_may_be_the_last_there_is),
		cmocka_unit_test(test_direction_and_flags_divide_batches),
		cmocka_unit_test(test_what_is_neither_read_nor_write_is_refused),
		cmocka_unit_test(test_a_full_batch_is_flushed_first),
		cmocka_unit_test(test_overlapping_requests_go_out_by_arrival_and_alone),
		cmocka_unit_test(test_a_cover_holds_together_what_it_covers),
		cmocka_unit_test(test_equal_offsets_keep_their_order),
		cmocka_unit_test(test_what_overlaps_a_join_waits_until_it_is_done),
		cmocka_unit_test(test_reads_pass_joined_reads_but_writes_do_not),
		cmocka_unit_test(test_what_is_refused_leaves_the_batch_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
