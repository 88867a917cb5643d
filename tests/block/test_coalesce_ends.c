/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How joined submissions end: each request with its own result, once; tried again once where that
 * isn't known; nothing left behind. And the memory of it all.
 * Shows: K30
 */
#include "coalesce_bench.h"

static struct bench bench;
static struct vqb_io_list done, retry;

/* Three writes of 8 bytes at 0, joined. */
static struct vqb_io *three(struct bench *b)
{
	bench_open_limits(b, 1024, UINT64_MAX);
	for (unsigned i = 0; i < 3; i++)
		bench_write(b, 16 - 8 * i, 8);
	assert_int_equal(bench_flush(b), 1);
	return b->out[0];
}

/* What comes back is request `i` of those from three(), by offset. */
static struct vqb_io *of_three(struct bench *b, unsigned i)
{
	return &b->io[2 - i];
}

static void test_success_completes_each_member_in_full(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *io;

	(void)state;
	bench_end(b, three(b), 24, &done, &retry);
	assert_null(retry.first);
	io = done.first;
	for (unsigned i = 0; i < 3; i++, io = io->next) {
		assert_ptr_equal(io, of_three(b, i));
		assert_int_equal(io->result, 8);
		assert_int_equal(io->group, 0);
	}
	assert_null(io);
	bench_close(b);
}

static void test_failure_tries_each_member_once_more_and_believes_it(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *joined = three(b);
	static const int64_t truth[] = { 8, VQB_E_IO, 4 };

	(void)state;
	bench_end(b, joined, VQB_E_IO, &done, &retry);
	assert_null(done.first);
	assert_int_equal(bench_count(&retry), 3);
	assert_ptr_equal(retry.first, of_three(b, 0));
	for (unsigned i = 3; i-- > 0;) {
		bench_end(b, of_three(b, i), truth[i], &done, &retry);
		assert_null(retry.first);
		assert_int_equal(bench_count(&done), 1);
		assert_ptr_equal(done.first, of_three(b, i));
		assert_int_equal(done.first->result, truth[i]);
		assert_int_equal(done.first->group, 0);
	}
	bench_close(b);
}

/* Short by any number of bytes: whole members are done, the others are tried again. */
static void test_a_short_transfer_completes_what_it_covers(void **state)
{
	struct bench *b = &bench;

	(void)state;
	for (int64_t result = 0; result <= 24; result++) {
		unsigned whole = (unsigned)result / 8;

		bench_end(b, three(b), result, &done, &retry);
		assert_int_equal(bench_count(&done), whole);
		assert_int_equal(bench_count(&retry), 3 - whole);
		for (unsigned i = 0; i < whole; i++)
			assert_int_equal(of_three(b, i)->result, 8);
		if (whole < 3)
			assert_ptr_equal(retry.first, of_three(b, whole));
		bench_close(b);
	}
}

/* A short one in the middle, and one behind it that would fit into what is left of the result. */
static void test_nothing_behind_the_end_of_a_short_transfer_counts(void **state)
{
	struct bench *b = &bench;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	bench_write(b, 0, 8);
	bench_write(b, 8, 64);
	bench_write(b, 72, 8);
	assert_int_equal(bench_flush(b), 1);
	bench_end(b, b->out[0], 40, &done, &retry);
	assert_int_equal(bench_count(&done), 1);
	assert_int_equal(bench_count(&retry), 2);
	bench_close(b);
}

static void test_overlap_waits_for_the_last_second_attempt(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *later;

	(void)state;
	bench_end(b, three(b), VQB_E_IO, &done, &retry);
	later = bench_io(b, VQB_BLK_OUT, 20, 8, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vqb_coalescer_add(b->c, later), VQB_E_BUSY);
		bench_end(b, of_three(b, i), 8, &done, &retry);
	}
	assert_int_equal(vqb_coalescer_add(b->c, later), VQB_OK);
	bench_close(b);
}

/*
 * K30: R1 and R2 were joined; R2 is tried again and comes back, as does R1, which then is joined
 * with R3, while R2's memory belongs to somebody else.
 */
static void test_a_second_life_knows_nothing_of_the_first(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *r1, *r2, *r3;

	(void)state;
	bench_open_limits(b, 1024, UINT64_MAX);
	r1 = bench_write(b, 0, 8);
	r2 = bench_write(b, 8, 8);
	assert_int_equal(bench_flush(b), 1);
	bench_end(b, b->out[0], VQB_E_IO, &done, &retry);
	bench_end(b, r2, 8, &done, &retry);
	bench_end(b, r1, VQB_E_AGAIN, &done, &retry);
	assert_ptr_equal(done.first, r1);
	assert_ptr_equal(done.last, r1);
	memset(r2, 0xff, sizeof(*r2));
	r3 = bench_io(b, VQB_BLK_OUT, 8, 8, 1);
	assert_int_equal(vqb_coalescer_add(b->c, r1), VQB_OK);
	assert_int_equal(vqb_coalescer_add(b->c, r3), VQB_OK);
	assert_int_equal(bench_flush(b), 1);
	bench_expect(b, 0, 0, 16, 2);
	bench_end(b, b->out[0], 16, &done, &retry);
	assert_int_equal(bench_count(&done), 2);
	assert_ptr_equal(done.first, r1);
	assert_ptr_equal(done.last, r3);
	assert_null(retry.first);
	for (unsigned i = 0; i < sizeof(*r2); i++)
		assert_int_equal(((const uint8_t *)r2)[i], 0xff);
	bench_close(b);
}

static void test_lists_are_appended_to(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *joined = three(b), *alone;

	(void)state;
	alone = bench_io(b, VQB_BLK_FLUSH, 0, 0, 0); /* one that it has never seen */
	bench_end(b, alone, 0, &done, &retry);
	joined->result = 8;
	vqb_coalescer_done(b->c, joined, &done, &retry);
	assert_int_equal(bench_count(&done), 2);
	assert_ptr_equal(done.first, alone);
	assert_int_equal(bench_count(&retry), 2);
	bench_close(b);

	joined = three(b);
	alone = bench_io(b, VQB_BLK_FLUSH, 0, 0, 0);
	bench_end(b, alone, 0, &done, &retry);
	joined->result = 24;
	vqb_coalescer_done(b->c, joined, &done, &retry);
	alone = bench_io(b, VQB_BLK_FLUSH, 0, 0, 0);
	vqb_coalescer_done(b->c, alone, &done, &retry);
	assert_int_equal(bench_count(&done), 5);
	assert_ptr_equal(done.last, alone);
	bench_close(b);
}

/* ---- no room is no error ---- */

static void open_with(struct bench *b, uint32_t joins, uint32_t pieces)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .requests = 8,
					       .joins = joins,
					       .pieces = pieces,
					       .max_pieces = 1024,
					       .max_transfer = UINT64_MAX };

	bench_open(b, &config);
}

static uint32_t flush_pair(struct bench *b, uint64_t offset)
{
	bench_write(b, offset, 8);
	bench_write(b, offset + 8, 8);
	return bench_flush(b);
}

static void test_without_a_free_join_or_pieces_nothing_is_joined(void **state)
{
	struct bench *b = &bench;
	struct vqb_io *joined;

	(void)state;
	open_with(b, 1, 64);
	assert_int_equal(flush_pair(b, 0), 1);
	joined = b->out[0];
	assert_int_equal(flush_pair(b, 100), 2);
	bench_end(b, joined, 16, &done, &retry);
	assert_int_equal(flush_pair(b, 100), 1);
	bench_close(b);

	open_with(b, 8, 3);
	assert_int_equal(flush_pair(b, 0), 1);
	joined = b->out[0];
	assert_int_equal(flush_pair(b, 100), 2);
	bench_end(b, joined, VQB_E_IO, &done, &retry);
	/* The list is free as soon as the joined submission is back. */
	assert_int_equal(flush_pair(b, 200), 1);
	bench_close(b);

	open_with(b, 8, 0);
	assert_int_equal(flush_pair(b, 0), 2);
	bench_close(b);
}

/* A limit above all the room there is would never let a long run be joined. */
static void test_a_run_longer_than_all_room_is_cut_to_it(void **state)
{
	struct bench *b = &bench;

	(void)state;
	open_with(b, 8, 4);
	for (unsigned i = 0; i < 8; i++)
		bench_write(b, 8 * i, 8);
	assert_int_equal(bench_flush(b), 5);
	bench_expect(b, 0, 0, 32, 4);
	bench_close(b);
}

static void test_joins_and_pieces_are_all_there_again(void **state)
{
	struct vqb_io *out[8];
	struct bench *b = &bench;

	(void)state;
	open_with(b, 8, 16);
	for (unsigned round = 0; round < 50; round++) {
		b->ios = b->pieces = 0;
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(flush_pair(b, 100 * i), 1);
			out[i] = b->out[0];
		}
		for (unsigned i = 0; i < 8; i++) {
			struct vqb_io *joined = out[(i * 3 + round) % 8], *io;

			bench_end(b, joined, (round + i) % 3 * 8, &done, &retry);
			while ((io = retry.first)) {
				retry.first = io->next;
				io->result = 8;
				vqb_coalescer_done(b->c, io, &done, &retry);
			}
			assert_int_equal(bench_count(&done), 2);
		}
	}
	bench_close(b);
}

/* ---- counters, configuration ---- */

static void test_counters_are_kept_by_direction(void **state)
{
	struct vqb_coalescer_counters count;
	struct bench *b = &bench;

	(void)state;
	bench_end(b, three(b), 8, &done, &retry);
	bench_add(b, VQB_BLK_IN, 100, 8, 1);
	bench_add(b, VQB_BLK_IN, 108, 8, 1);
	bench_add(b, VQB_BLK_IN, 104, 8, 1);
	bench_add(b, VQB_BLK_IN, 200, 8, 1);
	bench_add(b, VQB_BLK_IN, 208, 8, 1);
	assert_int_equal(bench_flush(b), 4);
	vqb_coalescer_read_counters(b->c, &count);
	assert_int_equal(count.requests[1], 3);
	assert_int_equal(count.submissions[1], 1);
	assert_int_equal(count.merges[1], 2);
	assert_int_equal(count.retries[1], 2);
	assert_int_equal(count.requests[0], 5);
	assert_int_equal(count.submissions[0], 4);
	assert_int_equal(count.merges[0], 1);
	assert_int_equal(count.retries[0], 0);
	bench_close(b);
}

static void test_a_configuration_that_makes_no_sense_is_refused(void **state)
{
	const struct vqb_coalescer_config good = {
		.struct_size = sizeof(good), .pieces = 64, .max_pieces = 8, .max_transfer = 4096
	};
	static _Alignas(VQB_ALIGN) uint8_t mem[VQB_COALESCER_BYTES(32, 32, 64)];
	struct vqb_coalescer_config bad;
	struct vqb_coalescer *c = NULL;

	(void)state;
	assert_int_equal(vqb_coalescer_size(NULL), 0);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		bad = good;                                                                        \
		bad.field = (value);                                                               \
		assert_int_equal(vqb_coalescer_size(&bad), 0);                                     \
		assert_int_equal(vqb_coalescer_init(mem, sizeof(mem), &bad, &c), VQB_E_INVALID);   \
	} while (0)
	REFUSED(struct_size, 0);
	REFUSED(zero, 1);
	REFUSED(requests, 1025);
	REFUSED(joins, 32768);
	REFUSED(pieces, UINT32_MAX / 32 + 1);
	REFUSED(max_pieces, 0);
	REFUSED(max_transfer, 0);
	assert_int_equal(vqb_coalescer_init(mem + 8, sizeof(mem) - 8, &good, &c), VQB_E_INVALID);
	assert_int_equal(vqb_coalescer_init(NULL, sizeof(mem), &good, &c), VQB_E_INVALID);
	assert_int_equal(vqb_coalescer_init(mem, sizeof(mem), &good, NULL), VQB_E_INVALID);
	assert_int_equal(vqb_coalescer_init(mem, vqb_coalescer_size(&good) - 1, &good, &c),
			 VQB_E_TOOBIG);
	assert_null(c);
	assert_int_equal(vqb_coalescer_init(mem, vqb_coalescer_size(&good), &good, &c), VQB_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_success_completes_each_member_in_full),
		cmocka_unit_test(test_failure_tries_each_member_once_more_and_believes_it),
		cmocka_unit_test(test_a_short_transfer_completes_what_it_covers),
		cmocka_unit_test(test_nothing_behind_the_end_of_a_short_transfer_counts),
		cmocka_unit_test(test_overlap_waits_for_the_last_second_attempt),
		cmocka_unit_test(test_a_second_life_knows_nothing_of_the_first),
		cmocka_unit_test(test_lists_are_appended_to),
		cmocka_unit_test(test_without_a_free_join_or_pieces_nothing_is_joined),
		cmocka_unit_test(test_a_run_longer_than_all_room_is_cut_to_it),
		cmocka_unit_test(test_joins_and_pieces_are_all_there_again),
		cmocka_unit_test(test_counters_are_kept_by_direction),
		cmocka_unit_test(test_a_configuration_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
