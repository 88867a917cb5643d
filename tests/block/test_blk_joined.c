/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue with a coalescer: what is joined, when it goes out, and that each request has its own
 * end, once, whatever becomes of what it was joined in.
 */
#include "blk_bench.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)

static struct bench *plan(void **state)
{
	struct bench *b = bench_plan(state);

	spy_can_all(&b->spy, 512 * 512);
	b->disk_config.features |= BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE);
	b->config.features |= BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE);
	bench_coalescer(b, 32, 0, 256);
	return b;
}

static struct bench *open_joined(void **state)
{
	struct bench *b = plan(state);

	bench_start(b);
	return b;
}

static struct vqb_blk_queue_counters counters(const struct bench *b)
{
	struct vqb_blk_queue_counters out;

	vqb_blk_queue_read_counters(b->queue, &out);
	return out;
}

static void assert_io(const struct bench *b, unsigned k, uint8_t op, uint64_t sector,
		      uint64_t sectors)
{
	assert_true(k < b->spy.calls);
	assert_int_equal(b->spy.log[k].op, op);
	assert_int_equal(b->spy.log[k].offset, sector * 512);
	assert_int_equal(b->spy.log[k].bytes, sectors * 512);
}

static void assert_read(const struct bench *b, unsigned r, uint64_t sector, uint32_t sectors)
{
	bench_assert_reply(b, r, VQB_BLK_S_OK, 512 * sectors + 1);
	assert_memory_equal(b->asked[r].at[1], b->disk + sector * 512, 512 * (size_t)sectors);
}

static void assert_written(const struct bench *b, unsigned r, uint64_t sector, uint32_t sectors)
{
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	assert_true(bench_is(b->disk + sector * 512, PATTERN, 512 * (size_t)sectors));
}

static void assert_idle(struct bench *b)
{
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	bench_assert_gaps(b);
}

/* ---- what is joined ---- */

static void test_neighbours_go_as_one_and_end_as_themselves(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[4];

	r[0] = bench_read(b, 8, 2);
	r[1] = bench_ask(b, VQB_BLK_IN, 12, CUT(16), CUT(100, 924, 1));
	r[2] = bench_read(b, 10, 2);
	r[3] = bench_read(b, 100, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, VQB_BLK_IN, 8, 6);
	assert_int_equal(b->spy.log[0].pieces, 4);
	assert_io(b, 1, VQB_BLK_IN, 100, 1);
	assert_read(b, r[0], 8, 2);
	bench_assert_reply(b, r[1], VQB_BLK_S_OK, 1025);
	assert_memory_equal(b->asked[r[1]].at[2], b->disk + 12 * 512 + 100, 924);
	assert_read(b, r[2], 10, 2);
	assert_read(b, r[3], 100, 1);
	assert_int_equal(counters(b).read_merges, 2);
	assert_int_equal(counters(b).write_merges, 0);
	assert_int_equal(counters(b).submissions, 2);
	assert_int_equal(counters(b).read_submissions, 2);
	assert_int_equal(counters(b).read_bytes, 7 * 512);
	assert_idle(b);
}

/* A change of direction and a flush send what was collected. */
/* Shows: K38 BLK-DEV-20 */
static void test_directions_and_flushes_keep_their_order(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[5];

	r[0] = bench_write(b, 0, 8);
	r[1] = bench_write(b, 8, 8);
	r[2] = bench_read(b, 16, 8);
	r[3] = bench_write(b, 16, 8);
	r[4] = bench_flush(b);
	bench_run(b);
	assert_int_equal(b->spy.calls, 4);
	assert_io(b, 0, VQB_BLK_OUT, 0, 16);
	assert_io(b, 1, VQB_BLK_IN, 16, 8);
	assert_io(b, 2, VQB_BLK_OUT, 16, 8);
	assert_io(b, 3, VQB_BLK_FLUSH, 0, 0);
	assert_written(b, r[0], 0, 8);
	assert_written(b, r[1], 8, 8);
	assert_written(b, r[3], 16, 8);
	bench_assert_reply(b, r[2], VQB_BLK_S_OK, 8 * 512 + 1);
	bench_assert_reply(b, r[4], VQB_BLK_S_OK, 1);
	assert_int_equal(counters(b).write_merges, 1);
	assert_int_equal(counters(b).write_submissions, 2);
	assert_int_equal(counters(b).submissions, 4);
}

/* Shows: K38 */
static void test_the_33rd_request_begins_another_batch(void **state)
{
	struct bench *b = plan(state);

	bench_ring(b, 128);
	bench_start(b);
	for (unsigned i = 0; i < 33; i++)
		bench_write(b, 8 * i, 8);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, VQB_BLK_OUT, 0, 256);
	assert_io(b, 1, VQB_BLK_OUT, 256, 8);
	assert_int_equal(bench_used(b), 33);
	assert_int_equal(counters(b).write_merges, 31);
}

static void test_what_was_collected_goes_before_every_other_kind(void **state)
{
	const uint32_t types[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_SECURE_ERASE };

	for (unsigned t = 0; t < 3; t++) {
		struct bench *b = open_joined(state);
		const struct bench_range far = { 500, 4, 0 };

		bench_write(b, 2, 2);
		bench_write(b, 0, 2);
		bench_ranges(b, types[t], &far, 1);
		bench_write(b, 4, 2);
		bench_run(b);
		assert_int_equal(b->spy.calls, 3);
		assert_io(b, 0, VQB_BLK_OUT, 0, 4);
		assert_io(b, 1, (uint8_t)types[t], 500, 4);
		assert_io(b, 2, VQB_BLK_OUT, 4, 2);
		assert_int_equal(bench_used(b), 4);
	}
}

/* Answers that need no backend don't send what was collected. */
static void test_quick_answers_do_not_part_neighbours(void **state)
{
	struct bench *b = open_joined(state);

	bench_write(b, 0, 2);
	bench_ask(b, VQB_BLK_GET_ID, 0, CUT(16), CUT(20, 1));
	bench_ask(b, 99, 0, CUT(16), CUT(1));
	bench_write(b, 2, 2);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	assert_int_equal(bench_used(b), 4);
}

/* Writes that must be durable when they complete, and those that need not be. */
static void test_writes_are_not_joined_across_a_switch_of_the_mode(void **state)
{
	struct bench *b = plan(state);

	b->disk_config.features |= BIT(CONFIG_WCE);
	b->config.features |= BIT(CONFIG_WCE);
	bench_start(b);
	assert_int_equal(vqb_blk_device_accept(b->blk, b->config.features), VQB_OK);
	b->spy.manual = 1;
	bench_flush(b);
	bench_run(b);
	/* It waits behind a flush, and is collected together with what comes after the switch. */
	b->spy.fulls = 1;
	bench_flush(b);
	bench_write(b, 0, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	assert_int_equal(vqb_blk_device_write_config(b->blk, 32, "", 1), VQB_OK);
	bench_write(b, 1, 1);
	bench_write(b, 2, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 4);
	assert_io(b, 2, VQB_BLK_OUT, 0, 1);
	assert_int_equal(b->spy.log[2].flags, 0);
	assert_io(b, 3, VQB_BLK_OUT, 1, 2);
	assert_int_equal(b->spy.log[3].flags, VQB_IO_FUA);
}

/* ---- on every path ---- */

static void test_every_call_sends_what_it_collected(void **state)
{
	struct bench *b = open_joined(state);

	bench_write(b, 0, 1);
	bench_write(b, 1, 1);
	bench_write(b, 2, 1);
	assert_int_equal(vqb_blk_queue_run(b->queue, 2) & VQB_MORE, VQB_MORE);
	assert_int_equal(b->spy.calls, 1);
	assert_io(b, 0, VQB_BLK_OUT, 0, 2);
	assert_int_equal(bench_used(b), 2);
	assert_int_equal(vqb_blk_queue_poll(b->queue, 2) & VQB_MORE, 0);
	assert_int_equal(b->spy.calls, 2);
	assert_int_equal(bench_used(b), 3);
	assert_int_equal(b->spy.plugs, b->spy.unplugs);
}

/* They go through the coalescer when there is room again, from quiesce as well. */
static void test_requests_that_waited_are_joined_then(void **state)
{
	for (unsigned quiesce = 0; quiesce < 2; quiesce++) {
		struct bench *b = open_joined(state);
		unsigned r[4];

		b->spy.manual = 1;
		r[0] = bench_flush(b);
		bench_run(b);
		b->spy.fulls = 1;
		r[1] = bench_flush(b);
		r[2] = bench_read(b, 8, 1);
		r[3] = bench_read(b, 9, 1);
		bench_run(b);
		assert_int_equal(b->spy.calls, 1);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 4);
		if (quiesce)
			assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY);
		else
			bench_run(b);
		assert_int_equal(b->spy.calls, 3);
		assert_io(b, 2, VQB_BLK_IN, 8, 2);
		spy_drain(&b->spy.base);
		bench_run(b);
		bench_assert_reply(b, r[0], VQB_BLK_S_OK, 1);
		bench_assert_reply(b, r[1], VQB_BLK_S_OK, 1);
		assert_read(b, r[2], 8, 1);
		assert_read(b, r[3], 9, 1);
		assert_idle(b);
	}
}

static void test_a_full_backend_takes_what_was_joined_in_order(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[9];

	b->spy.manual = 1;
	b->spy.room = 1;
	for (unsigned i = 0; i < 8; i++)
		r[i] = bench_write(b, 100 * (i / 2) + i % 2, 1);
	bench_run(b);
	r[8] = bench_read(b, 900, 1);
	for (unsigned i = 0; i < 5; i++) {
		bench_run(b);
		assert_int_equal(b->spy.calls, i + 1);
		assert_int_equal(b->spy.holds, 1);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	for (unsigned i = 0; i < 4; i++)
		assert_io(b, i, VQB_BLK_OUT, 100 * i, 2);
	for (unsigned i = 0; i < 8; i++)
		assert_written(b, r[i], 100 * (i / 2) + i % 2, 1);
	assert_read(b, r[8], 900, 1);
	assert_idle(b);
}

/* What is left of a request goes ahead of what is ready for the backend, too. */
static void test_the_rest_of_a_request_goes_before_those_that_are_ready(void **state)
{
	const struct bench_range two[] = { { 10, 1, 0 }, { 11, 1, 0 } };

	for (unsigned ranges = 0; ranges < 2; ranges++) {
		struct bench *b = open_joined(state);
		unsigned r[3];

		b->spy.manual = 1;
		b->spy.room = 1;
		r[0] = ranges ? bench_ranges(b, VQB_BLK_DISCARD, two, 2) : bench_write(b, 10, 2);
		r[1] = bench_write(b, 100, 1);
		r[2] = bench_write(b, 200, 1);
		bench_run(b);
		b->spy.part = 512;
		for (unsigned i = 0; i < 4; i++) {
			spy_finish(&b->spy, 0);
			bench_run(b);
		}
		assert_int_equal(b->spy.calls, 4);
		assert_int_equal(b->spy.log[1].offset, 11 * 512);
		assert_int_equal(b->spy.log[2].offset, 100 * 512);
		assert_int_equal(b->spy.log[3].offset, 200 * 512);
		for (unsigned i = 0; i < 3; i++)
			bench_assert_reply(b, r[i], VQB_BLK_S_OK, 1);
		assert_idle(b);
	}
}

/* Nothing is lost where there is little to join with. */
static void test_little_room_for_joining_is_no_harm(void **state)
{
	for (unsigned pieces = 0; pieces < 8; pieces++) {
		struct bench *b = plan(state);
		unsigned r[12];

		bench_coalescer(b, 5, 1, pieces);
		b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3;
		bench_start(b);
		for (unsigned i = 0; i < 12; i++)
			r[i] = bench_write(b, i, 1);
		bench_run(b);
		for (unsigned i = 0; i < 12; i++)
			assert_written(b, r[i], i, 1);
		assert_idle(b);
	}
}

/* ---- failures ---- */

/* One of three is bad: the others don't suffer. What is tried again goes first. */
static void test_each_member_reports_its_own_truth(void **state)
{
	for (unsigned bad = 0; bad < 3; bad++) {
		struct bench *b = open_joined(state);
		unsigned r[3], after;

		b->spy.bad = (10 + bad) * 512 + 7;
		for (unsigned i = 0; i < 3; i++)
			r[i] = bench_read(b, 10 + i, 1);
		after = bench_flush(b);
		bench_run(b);
		assert_int_equal(b->spy.calls, 5);
		assert_io(b, 0, VQB_BLK_IN, 10, 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_io(b, 2 + i, VQB_BLK_IN, 10 + i, 1);
			if (i == bad)
				bench_assert_reply(b, r[i], VQB_BLK_S_IOERR, 0);
			else
				assert_read(b, r[i], 10 + i, 1);
		}
		bench_assert_reply(b, after, VQB_BLK_S_OK, 1);
		assert_int_equal(counters(b).failed, 1);
		assert_idle(b);
	}
}

static void test_what_is_tried_again_goes_ahead_of_what_waits(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[4];

	b->spy.manual = 1;
	b->spy.room = 1;
	r[0] = bench_write(b, 10, 1);
	r[1] = bench_write(b, 11, 1);
	r[2] = bench_read(b, 500, 1);
	bench_run(b);
	r[3] = bench_read(b, 600, 1);
	b->spy.fail = VQB_E_IO;
	spy_finish(&b->spy, 0);
	b->spy.fail = 0;
	for (unsigned i = 0; i < 4; i++) {
		bench_run(b);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	assert_int_equal(b->spy.calls, 5);
	assert_io(b, 1, VQB_BLK_OUT, 10, 1);
	assert_io(b, 2, VQB_BLK_OUT, 11, 1);
	assert_io(b, 3, VQB_BLK_IN, 500, 1);
	assert_io(b, 4, VQB_BLK_IN, 600, 1);
	assert_written(b, r[0], 10, 1);
	assert_written(b, r[1], 11, 1);
	assert_read(b, r[2], 500, 1);
	assert_read(b, r[3], 600, 1);
	assert_idle(b);
}

/* Refused by submit rather than by its result. */
static void test_a_refused_submission_ends_its_members(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[3];

	b->spy.refuse = VQB_E_UNSUPP;
	for (unsigned i = 0; i < 3; i++)
		r[i] = bench_write(b, i, 1);
	bench_run(b);
	for (unsigned i = 0; i < 3; i++)
		bench_assert_reply(b, r[i], VQB_BLK_S_UNSUPP, 1);
	assert_int_equal(b->spy.calls, 0);
	assert_idle(b);
}

static void test_transfers_cut_short_come_to_their_end_joined_or_not(void **state)
{
	for (uint64_t part = 512; part < 5120; part += 256) {
		struct bench *b = open_joined(state);
		unsigned r[4];

		b->spy.part = part;
		r[0] = bench_read(b, 8, 3);
		r[1] = bench_ask(b, VQB_BLK_IN, 11, CUT(16), CUT(700, 324, 1));
		r[2] = bench_read(b, 13, 2);
		r[3] = bench_read(b, 100, 5);
		bench_run(b);
		assert_read(b, r[0], 8, 3);
		bench_assert_reply(b, r[1], VQB_BLK_S_OK, 1025);
		assert_memory_equal(b->asked[r[1]].at[1], b->disk + 11 * 512, 700);
		assert_memory_equal(b->asked[r[1]].at[2], b->disk + 11 * 512 + 700, 324);
		assert_read(b, r[2], 13, 2);
		assert_read(b, r[3], 100, 5);
		assert_idle(b);
	}
}

/* ---- overlaps ---- */

/* It waits, and so does what comes behind it, until what it overlaps is done for good. */
static void test_what_overlaps_a_joined_write_waits_with_all_behind_it(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[5];

	b->spy.manual = 1;
	r[0] = bench_write(b, 10, 1);
	r[1] = bench_write(b, 11, 1);
	bench_run(b);
	r[2] = bench_read(b, 200, 1);
	r[3] = bench_read(b, 11, 1);
	r[4] = bench_read(b, 201, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2); /* what was collected before it went out */
	assert_io(b, 1, VQB_BLK_IN, 200, 1);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 5);
	bench_read(b, 300, 1);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, 0);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 5); /* nothing new is taken */
	b->spy.fail = VQB_E_IO;
	spy_finish(&b->spy, 0);
	b->spy.fail = 0;
	bench_run(b);
	assert_int_equal(b->spy.calls,
			 4); /* the second attempts; the overlapping one still waits */
	spy_finish(&b->spy, 1);
	spy_finish(&b->spy, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 7);
	assert_io(b, 4, VQB_BLK_IN, 11, 1);
	b->spy.manual = 0;
	spy_drain(&b->spy.base);
	bench_run(b);
	assert_int_equal(bench_used(b), 6);
	assert_written(b, r[0], 10, 1);
	assert_written(b, r[1], 11, 1);
	assert_read(b, r[3], 11, 1);
	assert_true(bench_is(b->asked[r[3]].at[1], PATTERN, 512));
	assert_idle(b);
}

/* Else a second attempt of the write would come after the zeroes. */
static void test_write_zeroes_waits_for_a_joined_write_below_it(void **state)
{
	const struct bench_range over[] = { { 300, 1, 0 }, { 0, 0, 0 }, { 9, 2, 0 } };
	struct bench *b = open_joined(state);
	unsigned r[3];

	b->spy.manual = 1;
	r[0] = bench_write(b, 10, 1);
	r[1] = bench_write(b, 11, 1);
	r[2] = bench_ranges(b, VQB_BLK_WRITE_ZEROES, over, 3);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	b->spy.fail = VQB_E_IO;
	spy_finish(&b->spy, 0);
	b->spy.fail = 0;
	bench_run(b);
	assert_int_equal(b->spy.calls, 3);
	b->spy.manual = 0;
	spy_drain(&b->spy.base);
	bench_run(b);
	bench_assert_reply(b, r[2], VQB_BLK_S_OK, 1);
	assert_true(bench_is(b->disk + 9 * 512, 0, 1024));
	assert_written(b, r[1], 11, 1);
	assert_idle(b);
}

/* ---- reset ---- */

static void reset(struct bench *b)
{
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
}

/* All `n` requests ended with the reset, and nothing of them shows. */
static void assert_dropped(struct bench *b, const unsigned *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(b->asked[r[i]].at[b->asked[r[i]].parts - 1][0], BLANK);
	assert_int_equal(counters(b).late, n);
	assert_idle(b);
	/* And the queue is as good as new. */
	b->spy.manual = 0;
	b->spy.fulls = 0;
	b->spy.bad = 0;
	b->spy.fail = 0;
	b->spy.room = LOG;
	bench_ring(b, RING_SIZE);
	assert_int_equal(vqb_device_reset(b->dev, &b->ring_config.ring), VQB_OK);
	assert_int_equal(vqb_blk_queue_accept(b->queue, b->config.features), VQB_OK);
	for (unsigned i = 0; i < 3; i++)
		bench_read(b, 50 + i, 1);
	bench_run(b);
	assert_int_equal(bench_used(b), 3);
	assert_idle(b);
}

/* Joined, and in the backend: it comes too late. */
/* Shows: K37 */
static void test_joined_requests_end_late_after_a_reset(void **state)
{
	for (unsigned fails = 0; fails < 2; fails++) {
		struct bench *b = open_joined(state);
		unsigned r[3];

		b->spy.manual = 1;
		for (unsigned i = 0; i < 3; i++)
			r[i] = bench_read(b, i, 1);
		bench_run(b);
		reset(b);
		assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY);
		b->spy.fail = fails ? VQB_E_IO : 0;
		spy_finish(&b->spy, 0);
		while (vqb_blk_queue_quiesce(b->queue))
			continue;
		assert_int_equal(b->spy.calls, 1); /* no second attempt */
		assert_dropped(b, r, 3);
	}
}

/* Joined, and ready for a backend that is full: it is never submitted. */
/* Shows: K37 */
static void test_joined_requests_that_wait_are_dropped_by_a_reset(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[6];

	b->spy.manual = 1;
	b->spy.room = 1;
	r[0] = bench_read(b, 100, 1);
	r[1] = bench_flush(b);
	r[2] = bench_write(b, 0, 1);
	r[3] = bench_write(b, 1, 1);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_run(b); /* the flush is in the backend now, and the two are joined behind it */
	assert_read(b, r[0], 100, 1);
	assert_int_equal(b->spy.holds, 1);
	reset(b);
	spy_finish(&b->spy, 0);
	while (vqb_blk_queue_quiesce(b->queue))
		continue;
	assert_int_equal(b->spy.calls, 2);
	assert_dropped(b, r + 1, 3);
}

/* Out again, each on its own, or about to be. */
/* Shows: K37 */
static void test_requests_on_their_second_attempt_end_with_a_reset(void **state)
{
	for (unsigned room = 1; room < 4; room++) {
		struct bench *b = open_joined(state);
		unsigned r[3];

		b->spy.manual = 1;
		b->spy.room = room;
		for (unsigned i = 0; i < 3; i++)
			r[i] = bench_read(b, i, 1);
		bench_run(b);
		b->spy.fail = VQB_E_IO;
		spy_finish(&b->spy, 0);
		bench_run(b);
		assert_int_equal(b->spy.holds, room);
		reset(b);
		while (vqb_blk_queue_quiesce(b->queue))
			vqb_backend_drain(&b->spy.base);
		assert_int_equal(b->spy.calls, 1 + room);
		assert_dropped(b, r, 3);
	}
}

/* One overlaps, and waits to be collected at all. */
/* Shows: K37 */
static void test_a_request_that_waits_to_be_collected_is_dropped_by_a_reset(void **state)
{
	struct bench *b = open_joined(state);
	unsigned r[4];

	b->spy.manual = 1;
	for (unsigned i = 0; i < 2; i++)
		r[i] = bench_write(b, i, 1);
	bench_run(b);
	r[2] = bench_write(b, 1, 1);
	r[3] = bench_write(b, 2, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	reset(b);
	while (vqb_blk_queue_quiesce(b->queue))
		vqb_backend_drain(&b->spy.base);
	assert_int_equal(b->spy.calls, 1);
	assert_dropped(b, r, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_neighbours_go_as_one_and_end_as_themselves),
		bench_test(test_directions_and_flushes_keep_their_order),
		bench_test(test_the_33rd_request_begins_another_batch),
		bench_test(test_what_was_collected_goes_before_every_other_kind),
		bench_test(test_quick_answers_do_not_part_neighbours),
		bench_test(test_writes_are_not_joined_across_a_switch_of_the_mode),
		bench_test(test_every_call_sends_what_it_collected),
		bench_test(test_requests_that_waited_are_joined_then),
		bench_test(test_a_full_backend_takes_what_was_joined_in_order),
		bench_test(test_the_rest_of_a_request_goes_before_those_that_are_ready),
		bench_test(test_little_room_for_joining_is_no_harm),
		bench_test(test_each_member_reports_its_own_truth),
		bench_test(test_what_is_tried_again_goes_ahead_of_what_waits),
		bench_test(test_a_refused_submission_ends_its_members),
		bench_test(test_transfers_cut_short_come_to_their_end_joined_or_not),
		bench_test(test_what_overlaps_a_joined_write_waits_with_all_behind_it),
		bench_test(test_write_zeroes_waits_for_a_joined_write_below_it),
		bench_test(test_joined_requests_end_late_after_a_reset),
		bench_test(test_joined_requests_that_wait_are_dropped_by_a_reset),
		bench_test(test_requests_on_their_second_attempt_end_with_a_reset),
		bench_test(test_a_request_that_waits_to_be_collected_is_dropped_by_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
