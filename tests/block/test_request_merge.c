/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bios that share a request: neighbours, at either end, within limits, and with nothing between
 * them that forbids it. (That a shared request's table is what mapping makes of all its data is
 * checked of each one: request_bench.h.)
 */
#include "lib/block/request.h" /* whose bios are counted up to 2^32 */
#include "request_bench.h"

enum { PAGE = 4096 };

/*
 * Two bios of one kind: `first` is submitted first. Are they one request? If not they are in order,
 * but that one which lies right before the other may go right before it.
 */
static int shares(struct rb *b, uint8_t op, uint64_t first, uint32_t first_sectors, uint64_t second,
		  uint32_t second_sectors)
{
	unsigned before = b->sends;

	rb_put(b, op, first, first_sectors);
	rb_put(b, op, second, second_sectors);
	rb_send_all(b);
	if (b->sends - before == 2) {
		unsigned swapped =
			second + second_sectors == first && b->sent[before].r.sector == second;

		rb_expect(b, before + swapped, op, first, first_sectors, 1);
		rb_expect(b, before + !swapped, op, second, second_sectors, 1);
		return 0;
	}
	assert_int_equal(b->sends - before, 1);
	rb_expect(b, before, op, first < second ? first : second, first_sectors + second_sectors,
		  2);
	return 1;
}

static int shares_at(struct rb *b, uint64_t first, uint64_t addr, uint32_t bytes, uint64_t second,
		     uint64_t second_addr, uint32_t second_bytes)
{
	unsigned before = b->sends;

	rb_put_at(b, VQB_BLK_OUT, first, addr, bytes);
	rb_put_at(b, VQB_BLK_OUT, second, second_addr, second_bytes);
	rb_send_all(b);
	return b->sends - before == 1;
}

/* ---- neighbours ---- */

static void test_neighbours_share_a_request_from_either_end(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	assert_true(shares(b, VQB_BLK_OUT, 0, 8, 8, 8));
	assert_true(shares(b, VQB_BLK_OUT, 100, 8, 92, 8));
	assert_true(shares(b, VQB_BLK_IN, 200, 8, 208, 1));
	assert_true(shares(b, VQB_BLK_IN, 300, 1, 299, 1));
	rb_finish(b);
	assert_int_equal(rb_counters(b).merged, 4);
	assert_int_equal(rb_counters(b).requests, 4);
	assert_int_equal(rb_counters(b).bios, 8);
	assert_int_equal(rb_counters(b).done, 8);
}

static void test_what_only_comes_near_does_not(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	assert_false(shares(b, VQB_BLK_OUT, 0, 8, 9, 8));
	assert_false(shares(b, VQB_BLK_OUT, 109, 8, 100, 8));
	assert_false(shares(b, VQB_BLK_OUT, 200, 8, 207, 8)); /* they overlap */
	assert_false(shares(b, VQB_BLK_OUT, 307, 8, 300, 8));
	assert_false(shares(b, VQB_BLK_OUT, 400, 8, 400, 8));
}

static void test_the_gap_between_two_may_be_filled_last(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 16, 8);
	rb_put(b, VQB_BLK_OUT, 32, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 24, 3);
	rb_expect(b, 1, VQB_BLK_OUT, 32, 8, 1);
}

/* In any order of arrival. */
static void test_eight_neighbours_are_one_request_in_every_order(void **state)
{
	for (unsigned step = 1; step < 8; step += 2) {
		for (unsigned turn = 0; turn < 8; turn++) {
			struct rb *b = rb_open(state, VQB_PATH_REQUEST);

			for (unsigned i = 0; i < 8; i++)
				rb_put(b, VQB_BLK_OUT, (i * step + turn) % 8 * 4, 4);
			assert_int_equal(rb_send_all(b), 1);
			rb_expect(b, 0, VQB_BLK_OUT, 0, 32, 8);
			assert_int_equal(b->sent[0].r.n, 8);
			assert_int_equal(rb_done(b, 0, VQB_OK), 8);
		}
	}
}

/* ---- gaps ---- */

/* Shows: K31 */
static void test_a_gap_is_seen_at_either_end(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.virt_boundary = PAGE - 1;
	rb_start(b);
	/* (a) back: it does not begin at the boundary. */
	assert_false(shares_at(b, 0, 0x100000, PAGE, 8, 0x200200, 3584));
	/* (b) front: it, which comes first now, does not end at it. */
	assert_false(shares_at(b, 108, 0x100000, PAGE, 107, 0x200000, 512));
	/* (c) */
	assert_true(shares_at(b, 208, 0x100000, PAGE, 200, 0x200000, PAGE));
	/* The same, from the other side. */
	assert_true(shares_at(b, 300, 0x100e00, 512, 301, 0x200000, PAGE));
	assert_true(shares_at(b, 401, 0x100000, 512, 400, 0x200e00, 512));
	assert_false(shares_at(b, 500, 0x100000, 512, 501, 0x200000, PAGE));
}

/* Shows: K31 */
static void test_no_inner_edge_off_the_boundary_when_neighbours_in_memory_are_cut(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.virt_boundary = PAGE - 1;
	b->limits.max_segment_bytes = PAGE;
	rb_start(b);
	assert_true(shares_at(b, 0, 0x100200, 3584, 7, 0x101000, PAGE));
	assert_int_equal(b->sent[0].r.n, 2);
	assert_int_equal(b->sent[0].table[0].len, 3584);
	assert_int_equal(b->sent[0].table[1].len, PAGE);
	assert_true(shares_at(b, 107, 0x201000, PAGE, 100, 0x200200, 3584));
	assert_int_equal(b->sent[1].table[0].len, 3584);
}

/* ---- chunks ---- */

/* Shows: K32 */
static void test_chunks_are_measured_from_the_request_own_beginning(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.chunk_sectors = 128;
	b->limits.max_sectors = 1024;
	rb_start(b);
	assert_false(shares(b, VQB_BLK_OUT, 128, 8, 120, 8));  /* (a) */
	assert_true(shares(b, VQB_BLK_OUT, 112, 8, 120, 8));   /* (b) */
	assert_true(shares(b, VQB_BLK_OUT, 248, 8, 240, 8));   /* (c) */
	assert_false(shares(b, VQB_BLK_OUT, 376, 8, 384, 8));  /* over the end, from behind */
	assert_true(shares(b, VQB_BLK_OUT, 512, 64, 576, 64)); /* all of a chunk */
	assert_true(shares(b, VQB_BLK_OUT, 704, 64, 640, 64));
}

/* ---- both ends of every other boundary ---- */

static void test_a_request_has_at_most_max_sectors(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_sectors = 16;
	rb_start(b);
	assert_true(shares(b, VQB_BLK_OUT, 0, 8, 8, 8));
	assert_true(shares(b, VQB_BLK_OUT, 108, 8, 100, 8));
	assert_false(shares(b, VQB_BLK_OUT, 200, 8, 208, 9));
	assert_false(shares(b, VQB_BLK_OUT, 309, 8, 300, 9));
	assert_false(shares(b, VQB_BLK_OUT, 400, 16, 416, 1));
	assert_false(shares(b, VQB_BLK_OUT, 501, 16, 500, 1));
}

static void test_a_request_has_at_most_max_segments(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_segments = 2;
	rb_start(b);
	assert_true(shares(b, VQB_BLK_OUT, 0, 8, 8, 8));
	assert_int_equal(b->sent[0].r.n, 2);
	rb_put(b, VQB_BLK_OUT, 100, 8);
	rb_put(b, VQB_BLK_OUT, 108, 8);
	rb_put(b, VQB_BLK_OUT, 116, 8);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 1, VQB_BLK_OUT, 100, 16, 2);
	rb_expect(b, 2, VQB_BLK_OUT, 116, 8, 1);
	/* Neighbours in memory are no segment more. */
	rb_put_at(b, VQB_BLK_OUT, 200, 0x100000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 208, 0x200000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 216, 0x201000, PAGE);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 3, VQB_BLK_OUT, 200, 24, 3);
	assert_int_equal(b->sent[3].r.n, 2);
	/* Nor from the front. */
	rb_put_at(b, VQB_BLK_OUT, 316, 0x202000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 308, 0x201000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 300, 0x100000, PAGE);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(b->sent[4].r.n, 2);
}

/* Nothing is written behind a table, be it smaller than it should be. */
static void test_a_request_has_at_most_the_table(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	b->room = 3;
	for (unsigned i = 0; i < 8; i++)
		rb_put(b, VQB_BLK_OUT, 8 * i, 8);
	assert_int_equal(rb_send_all(b), 3);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(b->sent[k].r.n, k < 2 ? 3 : 2);
}

static void test_segments_are_joined_up_to_their_longest(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_segments = 1;
	b->limits.max_segment_bytes = 2 * PAGE;
	rb_start(b);
	assert_true(shares_at(b, 0, 0x100000, PAGE, 8, 0x101000, PAGE));
	assert_true(shares_at(b, 108, 0x101000, PAGE, 100, 0x100000, PAGE));
	assert_false(shares_at(b, 200, 0x100000, PAGE, 208, 0x101000, PAGE + 512));
	assert_false(shares_at(b, 309, 0x101200, PAGE, 300, 0x100000, PAGE + 512));
	assert_false(shares_at(b, 400, 0x100000, PAGE, 408, 0x102000, PAGE)); /* no neighbours */
}

static void test_no_segment_grows_over_a_boundary(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_segments = 1;
	b->limits.seg_boundary = 0xffff;
	rb_start(b);
	assert_true(shares_at(b, 0, 0x10e000, PAGE, 8, 0x10f000, PAGE)); /* up to it */
	assert_false(shares_at(b, 100, 0x10f000, PAGE, 108, 0x110000, PAGE));
	assert_false(shares_at(b, 208, 0x110000, PAGE, 200, 0x10f000, PAGE));
	assert_true(shares_at(b, 300, 0x110000, PAGE, 308, 0x111000, PAGE)); /* from it on */

	b = rb_plan(state, VQB_PATH_REQUEST);
	b->limits.max_segments = 2;
	b->limits.seg_boundary = 0xffff;
	rb_start(b);
	assert_true(shares_at(b, 100, 0x10f000, PAGE, 108, 0x110000, PAGE));
	assert_int_equal(b->sent[0].r.n, 2);
}

static void test_without_clusters_each_buffer_is_a_segment(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.flags = VQB_LIMITS_NO_CLUSTER;
	b->limits.max_segments = 2;
	rb_start(b);
	assert_true(shares_at(b, 0, 0x100000, PAGE, 8, 0x101000, PAGE));
	assert_int_equal(b->sent[0].r.n, 2);
	rb_put_at(b, VQB_BLK_OUT, 100, 0x100000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 108, 0x101000, PAGE);
	rb_put_at(b, VQB_BLK_OUT, 116, 0x102000, PAGE);
	assert_int_equal(rb_send_all(b), 2);
}

/* Blocks are larger than sectors: whole blocks go together, and there is nothing else to test. */
static void test_large_blocks_go_together(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.block_size = b->limits.split_align = 4096;
	b->limits.max_sectors = 23; /* two blocks, and a rest that is no use */
	rb_start(b);
	assert_true(shares(b, VQB_BLK_OUT, 0, 8, 8, 8));
	assert_false(shares(b, VQB_BLK_OUT, 104, 16, 120, 8));
}

/* A bio is not cut to fill up a request that it shares: it goes whole, or alone. */
static void test_no_bio_is_cut_to_fit(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_sectors = 16;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 8, 20);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_OUT, 8, 16, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 24, 4, 1);
}

/* ---- what is never joined ---- */

static void test_never_across_operations(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_IN, 8, 8);
	rb_put(b, VQB_BLK_OUT, 16, 8);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_IN, 8, 8, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 16, 8, 1);
}

/* But those of one kind find each other across those of another. */
static void test_reads_and_writes_in_turn_are_two_requests(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 4; i++) {
		rb_put(b, VQB_BLK_OUT, i * 8, 8);
		rb_put(b, VQB_BLK_IN, 1000 + i * 8, 8);
	}
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 32, 4);
	rb_expect(b, 1, VQB_BLK_IN, 1000, 32, 4);
}

static void test_never_across_priorities(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio;

	for (unsigned i = 0; i < 3; i++) {
		bio = rb_bio(b, VQB_BLK_OUT, i * 8, 8);
		bio->ioprio = i < 2 ? 7 : 6;
		rb_submit(b, bio);
	}
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 16, 2);
	rb_expect(b, 1, VQB_BLK_OUT, 16, 8, 1);
	assert_int_equal(b->sent[0].r.ioprio, 7);
	assert_int_equal(b->sent[1].r.ioprio, 6);
}

/* The one in the middle has a flag: it goes alone, and the others don't meet across it. */
static void alone(void **state, uint8_t flag, uint64_t features)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->config.features = features;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	rb_put_flags(b, VQB_BLK_OUT, 24, 8, flag);
	rb_put(b, VQB_BLK_OUT, 16, 8);
	rb_put(b, VQB_BLK_OUT, 32, 8);
	rb_put(b, VQB_BLK_OUT, 40, 8);
	assert_int_equal(rb_send_all(b), 4);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 16, 2);
	rb_expect(b, 1, VQB_BLK_OUT, 24, 8, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 16, 8, 1);
	rb_expect(b, 3, VQB_BLK_OUT, 32, 16, 2);
}

static void test_never_with_nomerge_nor_across_it(void **state)
{
	alone(state, VQB_BIO_NOMERGE, BIT(FLUSH));
}

/* Without FLUSH there are no steps, but such a bio still keeps to itself. */
static void test_never_with_fua_or_preflush_nor_across_them(void **state)
{
	alone(state, VQB_BIO_FUA, 0);
	alone(state, VQB_BIO_PREFLUSH, 0);
	alone(state, VQB_BIO_FUA | VQB_BIO_PREFLUSH, 0);
}

static void test_never_across_a_flush(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_submit(b, rb_bio(b, VQB_BLK_FLUSH, 0, 0));
	rb_put(b, VQB_BLK_OUT, 8, 8);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_FLUSH, 0, 0, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 8, 8, 1);
}

/* ---- order ---- */

/* What overlaps is sent in the order in which it came, whoever has a neighbour. */
static void test_overlapping_ones_are_sent_in_order(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 4, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8); /* is the first one's neighbour, but overlaps the second */
	rb_send_all(b);
	assert_int_equal(b->sends, 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_OUT, 4, 8, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 8, 8, 1);
}

static void test_a_read_does_not_pass_a_write_of_the_same_sectors(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_IN, 0, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	rb_put(b, VQB_BLK_IN, 8, 8);
	rb_send_all(b);
	assert_int_equal(b->sends, 3);
	rb_expect(b, 0, VQB_BLK_IN, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_OUT, 8, 8, 1);
	rb_expect(b, 2, VQB_BLK_IN, 8, 8, 1);
}

/* Order among overlapping ones, whatever they do, of which some also have neighbours. */
static void test_no_two_that_overlap_change_places(void **state)
{
	uint64_t seed = 1;

	for (unsigned turn = 0; turn < 300; turn++) {
		struct rb *b = rb_open(state, VQB_PATH_REQUEST);
		unsigned when[60];

		for (unsigned i = 0; i < 60; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			rb_put(b, seed >> 60 & 1 ? VQB_BLK_IN : VQB_BLK_OUT, seed >> 40 & 63,
			       1 + (seed >> 50 & 3));
		}
		rb_send_all(b);
		for (unsigned i = 0; i < 60; i++) {
			when[i] = UINT32_MAX;
			for (unsigned k = 0; k < b->sends && when[i] == UINT32_MAX; k++)
				for (uint32_t s = 0; s < b->sent[k].r.n; s++) {
					uint64_t from = b->sent[k].table[s].addr;

					if (from <= b->vec[i][0].addr &&
					    b->vec[i][0].addr < from + b->sent[k].table[s].len)
						when[i] = k;
				}
			for (unsigned j = 0; j < i; j++)
				if (b->bio[j].sector <
					    b->bio[i].sector + rb_bytes_of(&b->bio[i]) / 512 &&
				    b->bio[i].sector <
					    b->bio[j].sector + rb_bytes_of(&b->bio[j]) / 512)
					assert_true(when[j] < when[i]);
		}
		rb_finish(b);
	}
}

static void test_the_oldest_goes_first_and_takes_its_neighbours_along(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put(b, VQB_BLK_OUT, 100, 8);
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 200, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	rb_put(b, VQB_BLK_OUT, 108, 8);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 100, 16, 2);
	rb_expect(b, 1, VQB_BLK_OUT, 0, 16, 2);
	rb_expect(b, 2, VQB_BLK_OUT, 200, 8, 1);
}

/* Which of two came first is known, however many came before. */
static void test_bios_may_be_counted_past_the_end(void **state)
{
	for (uint32_t before = 0; before < 8; before++) {
		struct rb *b = rb_open(state, VQB_PATH_REQUEST);

		b->rq->order = 0 - before;
		rb_put(b, VQB_BLK_OUT, 200, 8);
		rb_put(b, VQB_BLK_OUT, 108, 8);
		rb_put(b, VQB_BLK_OUT, 100, 8);
		rb_put(b, VQB_BLK_OUT, 92, 9);  /* overlaps the one before, */
		rb_put(b, VQB_BLK_OUT, 116, 8); /* whose neighbour is cut off, too */
		rb_put(b, VQB_BLK_OUT, 208, 8);
		assert_int_equal(rb_send_all(b), 5);
		rb_expect(b, 0, VQB_BLK_OUT, 200, 8, 1);
		rb_expect(b, 1, VQB_BLK_OUT, 100, 16, 2);
		rb_expect(b, 2, VQB_BLK_OUT, 92, 9, 1);
		rb_expect(b, 3, VQB_BLK_OUT, 116, 8, 1);
		rb_expect(b, 4, VQB_BLK_OUT, 208, 8, 1);
		rb_finish(b);
	}
}

/* ---- windows ---- */

/* 128 are looked at together: what comes behind them makes requests of its own. */
static void test_a_window_has_128_bios(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 300; i++)
		rb_put(b, VQB_BLK_OUT, i, 1);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 128, 128);
	rb_expect(b, 1, VQB_BLK_OUT, 128, 128, 128);
	rb_expect(b, 2, VQB_BLK_OUT, 256, 44, 44);
	assert_int_equal(rb_counters(b).merged, 297);
	rb_finish(b);
}

/* Each bio is back with its request, in any order of those. */
static void test_all_that_share_a_request_are_back_with_it(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio[4];

	bio[0] = rb_put(b, VQB_BLK_OUT, 8, 8);
	bio[1] = rb_put(b, VQB_BLK_OUT, 108, 8);
	bio[2] = rb_put(b, VQB_BLK_OUT, 0, 8);
	bio[3] = rb_put(b, VQB_BLK_OUT, 100, 8);
	assert_int_equal(rb_send_all(b), 2);
	assert_int_equal(rb_done(b, 1, VQB_OK), 2);
	rb_expect_back(b, bio[1], VQB_OK);
	rb_expect_back(b, bio[3], VQB_OK);
	assert_int_equal(vqb_requests_outstanding(b->rq), 2);
	assert_int_equal(rb_done(b, 0, VQB_OK), 2);
	rb_expect_back(b, bio[0], VQB_OK);
	rb_expect_back(b, bio[2], VQB_OK);
}

/* `n` reads with gaps between them, in pairs that are the wrong way round. */
static void put_apart(struct rb *b, uint64_t sector, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rb_put(b, VQB_BLK_IN, sector + (i ^ 1) * 16, 8);
}

/* `n` reads, each right behind the one before, or in pairs that are the wrong way round. */
static void put_row(struct rb *b, uint64_t sector, unsigned n, unsigned turned)
{
	for (unsigned i = 0; i < n; i++)
		rb_put(b, VQB_BLK_IN, sector + (i ^ turned) * 8, 8);
}

/*
 * Where 128 bios showed no neighbours but such as were submitted in order, of as many others only
 * such share a request.
 */
static void test_where_neighbours_come_in_order_others_are_spared(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_row(b, 100000, 2, 0);
	put_apart(b, 110000, 126);
	assert_int_equal(rb_send_all(b), 127);
	put_row(b, 200000, 124, 1);
	put_row(b, 300000, 4, 0);
	assert_int_equal(rb_send_all(b), 124 + 1);
	put_row(b, 400000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/* Also when they come a few at a time, which shows nothing until there are 32 of them. */
static void test_what_comes_in_small_lists_is_learnt_from_too(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 11; i++) { /* three of four have another one to look at */
		put_apart(b, 100000 + 1000 * i, 4);
		assert_int_equal(rb_send_all(b), 4);
	}
	put_row(b, 200000, 128, 1);
	assert_int_equal(rb_send_all(b), 128);
	put_row(b, 300000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/* All is back, and the bench's bios are there to be used once more. */
static void start_over(struct rb *b)
{
	rb_finish(b);
	b->bios = b->sends = b->dones = 0;
	memset(b->handed, 0, sizeof(b->handed));
}

/* Of the next `n` bios none is looked at for others than the next one. */
static void expect_spared(struct rb *b, unsigned n)
{
	for (unsigned some; n; n -= some) {
		some = n < RB_BIOS ? n : RB_BIOS;
		put_row(b, 100000, some, 1);
		assert_int_equal(rb_send_all(b), some);
		start_over(b);
	}
}

/*
 * 34 bios with nobody near: 33 or, if 32 are looked at together, 31 and 1 have another one to look
 * at.
 */
static void look_in_vain(struct rb *b)
{
	put_apart(b, 200000, 34);
	assert_int_equal(rb_send_all(b), 34);
	start_over(b);
}

/* Until then; what is looked at after that are 32 at a time, until some have neighbours again. */
static void test_each_time_in_vain_more_are_spared_up_to_1920(void **state)
{
	static const unsigned spared[] = { 128, 384, 896, 1920, 1920, 1920 };
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < sizeof(spared) / sizeof(spared[0]); i++) {
		look_in_vain(b);
		expect_spared(b, spared[i]);
	}
	put_row(b, 100000, 164, 1);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_IN, 100000, 32 * 8, 32);
	rb_expect(b, 1, VQB_BLK_IN, 100000 + 32 * 8, 32 * 8, 32);
	rb_expect(b, 2, VQB_BLK_IN, 100000 + 64 * 8, 100 * 8, 100);
	start_over(b);
	look_in_vain(b);
	expect_spared(b, 128);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/* Nothing is learnt from 31 bios that have another one to look at, but from 32. */
static void test_nothing_is_learnt_from_few(void **state)
{
	for (unsigned few = 32; few <= 33; few++) {
		struct rb *b = rb_open(state, VQB_PATH_REQUEST);

		put_apart(b, 200000, few & ~1u);
		if (few & 1)
			rb_put(b, VQB_BLK_IN, 300000, 8);
		assert_int_equal(rb_send_all(b), few);
		put_row(b, 100000, 4, 1);
		assert_int_equal(rb_send_all(b), few == 32 ? 1 : 4);
		rb_finish(b);
	}
}

/* Each of 16 lists is cut in two halves of two, which makes 32 that have another one to look at. */
static void test_who_is_cut_off_was_not_looked_at(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 16; i++) {
		rb_put(b, VQB_BLK_IN, 100, 8);
		rb_put(b, VQB_BLK_IN, 200, 8);
		rb_put(b, VQB_BLK_IN, 104, 8);
		rb_put(b, VQB_BLK_IN, 300, 8);
		assert_int_equal(rb_send_all(b), 4);
	}
	expect_spared(b, 128);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/* A row that goes on when no more are spared counts, and is linked, up to 128 bios. */
static void test_a_row_may_be_longer_than_what_is_spared(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_segments = 160;
	rb_start(b);
	look_in_vain(b);
	expect_spared(b, 124);
	put_row(b, 100000, 8, 0);
	assert_int_equal(rb_send_all(b), 1);
	put_row(b, 200000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	start_over(b);
	put_apart(b, 300000, 128);
	put_apart(b, 400000, 128);
	assert_int_equal(rb_send_all(b), 256);
	start_over(b);
	put_row(b, 100000, 132, 0);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 0, VQB_BLK_IN, 100000, 128 * 8, 128);
	rb_finish(b);
}

/* A read right behind a write goes by like any other. */
static void test_a_neighbour_of_another_kind_is_spared_too(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	look_in_vain(b);
	for (unsigned i = 0; i < 64; i++)
		rb_put(b, i & 1 ? VQB_BLK_OUT : VQB_BLK_IN, 1000 + 8 * i, 8);
	assert_int_equal(rb_send_all(b), 64);
	expect_spared(b, 64);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/*
 * Where some overlap, what is looked at next is twice as long as what came before them; then that
 * doubles until all is as before.
 */
static void test_a_window_is_short_after_an_overlap(void **state)
{
	static const unsigned windows[] = { 1, 4, 8, 16, 32, 64, 128, 127 };
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	unsigned at = 380;

	rb_put(b, VQB_BLK_OUT, 100000, 8);
	rb_put(b, VQB_BLK_OUT, 100004, 8); /* is looked at together with the next one */
	for (unsigned i = at; i; i--)
		rb_put(b, VQB_BLK_OUT, i * 8, 8);
	assert_int_equal(rb_send_all(b), 2 + 8);
	rb_expect(b, 0, VQB_BLK_OUT, 100000, 8, 1);
	rb_expect(b, 1, VQB_BLK_OUT, 100004, 8, 1);
	for (unsigned k = 0; k < 8; k++) {
		at -= windows[k];
		rb_expect(b, 2 + k, VQB_BLK_OUT, (at + 1) * 8, windows[k] * 8, windows[k]);
	}
	rb_finish(b);
}

/* But not after a list that was short. */
static void test_a_window_is_long_after_a_short_list(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 5; i++) {
		put_row(b, 100000, 2, 1);
		assert_int_equal(rb_send_all(b), 1);
	}
	put_row(b, 200000, 128, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

static void change_path_and_back(struct rb *b)
{
	start_over(b);
	assert_int_equal(vqb_requests_set_path(b->rq, VQB_PATH_BIO), VQB_OK);
	assert_int_equal(vqb_requests_set_path(b->rq, VQB_PATH_REQUEST), VQB_OK);
}

static void test_what_was_learnt_goes_with_the_path(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	/* What was about to be learnt, */
	put_apart(b, 300000, 20);
	assert_int_equal(rb_send_all(b), 20);
	change_path_and_back(b);
	put_apart(b, 300000, 20);
	assert_int_equal(rb_send_all(b), 20);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	/* how many are still to be spared, */
	change_path_and_back(b);
	look_in_vain(b);
	change_path_and_back(b);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	/* and how often it was in vain. The same path is no change. */
	change_path_and_back(b);
	look_in_vain(b);
	assert_int_equal(vqb_requests_set_path(b->rq, VQB_PATH_REQUEST), VQB_OK);
	expect_spared(b, 128);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	change_path_and_back(b);
	look_in_vain(b);
	expect_spared(b, 128);
	put_row(b, 100000, 4, 1);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

/* A short window finds who came at about the same time; without one it's who came in order. */
static void test_a_window_may_be_shorter(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->config.window = 4;
	rb_start(b);
	put_row(b, 100000, 8, 1);
	assert_int_equal(rb_send_all(b), 2);
	rb_finish(b);
	b = rb_plan(state, VQB_PATH_REQUEST);
	b->config.window = 1;
	rb_start(b);
	put_row(b, 100000, 8, 1);
	assert_int_equal(rb_send_all(b), 8);
	put_row(b, 200000, 8, 0);
	assert_int_equal(rb_send_all(b), 1);
	rb_finish(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_neighbours_share_a_request_from_either_end),
		rb_test(test_what_only_comes_near_does_not),
		rb_test(test_the_gap_between_two_may_be_filled_last),
		rb_test(test_eight_neighbours_are_one_request_in_every_order),
		rb_test(test_a_gap_is_seen_at_either_end),
		rb_test(test_no_inner_edge_off_the_boundary_when_neighbours_in_memory_are_cut),
		rb_test(test_chunks_are_measured_from_the_request_own_beginning),
		rb_test(test_a_request_has_at_most_max_sectors),
		rb_test(test_a_request_has_at_most_max_segments),
		rb_test(test_a_request_has_at_most_the_table),
		rb_test(test_segments_are_joined_up_to_their_longest),
		rb_test(test_no_segment_grows_over_a_boundary),
		rb_test(test_without_clusters_each_buffer_is_a_segment),
		rb_test(test_large_blocks_go_together),
		rb_test(test_no_bio_is_cut_to_fit),
		rb_test(test_never_across_operations),
		rb_test(test_reads_and_writes_in_turn_are_two_requests),
		rb_test(test_never_across_priorities),
		rb_test(test_never_with_nomerge_nor_across_it),
		rb_test(test_never_with_fua_or_preflush_nor_across_them),
		rb_test(test_never_across_a_flush),
		rb_test(test_overlapping_ones_are_sent_in_order),
		rb_test(test_a_read_does_not_pass_a_write_of_the_same_sectors),
		rb_test(test_no_two_that_overlap_change_places),
		rb_test(test_the_oldest_goes_first_and_takes_its_neighbours_along),
		rb_test(test_bios_may_be_counted_past_the_end),
		rb_test(test_a_window_has_128_bios),
		rb_test(test_all_that_share_a_request_are_back_with_it),
		rb_test(test_where_neighbours_come_in_order_others_are_spared),
		rb_test(test_what_comes_in_small_lists_is_learnt_from_too),
		rb_test(test_each_time_in_vain_more_are_spared_up_to_1920),
		rb_test(test_nothing_is_learnt_from_few),
		rb_test(test_who_is_cut_off_was_not_looked_at),
		rb_test(test_a_row_may_be_longer_than_what_is_spared),
		rb_test(test_a_neighbour_of_another_kind_is_spared_too),
		rb_test(test_a_window_is_short_after_an_overlap),
		rb_test(test_a_window_is_long_after_a_short_list),
		rb_test(test_what_was_learnt_goes_with_the_path),
		rb_test(test_a_window_may_be_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
