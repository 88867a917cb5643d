/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a queue works with ring and backend: asynchronous completion, back-pressure, budget, room for
 * pieces, notifications, quiesce and reset.
 */
#include "blk_bench.h"

static uint32_t in_flight(const struct bench *b)
{
	return vqb_blk_queue_in_flight(b->queue);
}

static struct vqb_blk_queue_counters counters(const struct bench *b)
{
	struct vqb_blk_queue_counters out;

	vqb_blk_queue_read_counters(b->queue, &out);
	return out;
}

static struct bench *open_manual(void **state)
{
	struct bench *b = bench_open(state);

	b->spy.manual = 1;
	return b;
}

/* A read of one sector got what the disk holds. */
static void assert_read(const struct bench *b, unsigned r, uint64_t sector)
{
	bench_assert_reply(b, r, VQB_BLK_S_OK, 513);
	assert_memory_equal(b->asked[r].at[1], b->disk + sector * 512, 512);
}

/* ---- completion ---- */

/* Shows: BLK-ANY-06 BF-ANY-05 */
static void test_requests_complete_in_any_order(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r[3];

	for (unsigned i = 0; i < 3; i++)
		r[i] = bench_read(b, 10 * i, 1);
	bench_run(b);
	assert_int_equal(in_flight(b), 3);
	assert_int_equal(bench_used(b), 0);
	spy_finish(&b->spy, 2);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(bench_used(b), 2);
	assert_int_equal(bench_entry(b, r[2]), 0);
	assert_int_equal(bench_entry(b, r[0]), 1);
	bench_assert_blank(b, r[1]);
	spy_finish(&b->spy, 0);
	bench_run(b);
	for (unsigned i = 0; i < 3; i++)
		assert_read(b, r[i], 10 * i);
	assert_int_equal(in_flight(b), 0);
}

/* Requests that need no backend don't wait for those that do. */
static void test_quick_answers_overtake_slow_ones(void **state)
{
	struct bench *b = open_manual(state);
	unsigned slow = bench_read(b, 0, 1);
	unsigned quick = bench_ask(b, 99, 0, CUT(16), CUT(1));

	bench_run(b);
	assert_int_equal(bench_used(b), 1);
	bench_assert_reply(b, quick, VQB_BLK_S_UNSUPP, 1);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_read(b, slow, 0);
}

/* Shows: BLK-DEV-20 */
static void test_a_flush_goes_to_the_backend_after_writes_before_it(void **state)
{
	struct bench *b = bench_open(state);
	unsigned flush;

	bench_write(b, 0, 1);
	bench_write(b, 1, 1);
	flush = bench_flush(b);
	bench_run(b);
	assert_int_equal(b->spy.calls, 3);
	assert_int_equal(b->spy.log[2].op, VQB_BLK_FLUSH);
	bench_assert_reply(b, flush, VQB_BLK_S_OK, 1);
}

/* One plug and unplug around all of a drain; submit checks that it is plugged. */
static void test_a_drain_is_plugged_once(void **state)
{
	struct bench *b = bench_open(state);

	for (unsigned i = 0; i < 10; i++)
		bench_read(b, i, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 10);
	assert_int_equal(b->spy.plugs, 1);
	assert_int_equal(b->spy.unplugs, 1);
}

static void test_a_backend_without_plug_and_drain_is_fine(void **state)
{
	struct bench *b = bench_plan(state);
	struct vqb_backend_memory_config config = { .struct_size = sizeof(config),
						    .access = VQB_READ | VQB_WRITE,
						    .disk = b->disk,
						    .bytes = SECTORS * 512 };
	_Alignas(64) uint8_t mem[VQB_BACKEND_MEMORY_BYTES];
	struct vqb_backend *memory;
	unsigned read, write;

	bench_start(b);
	assert_int_equal(vqb_backend_memory_init(mem, sizeof(mem), &config, &memory), VQB_OK);
	b->config.backend = memory;
	assert_int_equal(bench_queue(b), VQB_OK);
	write = bench_write(b, 3, 2);
	read = bench_read(b, 9, 1);
	bench_run(b);
	bench_assert_reply(b, write, VQB_BLK_S_OK, 1);
	assert_true(bench_is(b->disk + 3 * 512, PATTERN, 1024));
	assert_read(b, read, 9);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
}

/* ---- back-pressure ---- */

static void test_a_full_backend_keeps_requests_waiting_in_order(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r[5];

	b->spy.room = 2;
	for (unsigned i = 0; i < 5; i++)
		r[i] = bench_read(b, 10 * i, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_int_equal(in_flight(b), 5);
	assert_int_equal(bench_used(b), 0);
	for (unsigned i = 0; i < 5; i++) {
		spy_finish(&b->spy, 0);
		bench_run(b);
		assert_int_equal(bench_used(b), i + 1);
		assert_int_equal(b->spy.calls, i + 3 < 5 ? i + 3 : 5);
	}
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(b->spy.log[i].offset, 5120 * i);
		assert_int_equal(bench_entry(b, r[i]), i);
		assert_read(b, r[i], 10 * i);
	}
	assert_int_equal(counters(b).submissions, 5);
	assert_true(counters(b).full > 0);
}

/* While anything waits, nothing new is taken, so nothing overtakes. */
static void test_nothing_is_taken_while_a_request_waits(void **state)
{
	struct bench *b = open_manual(state);
	uint32_t answers;

	b->spy.room = 1;
	bench_read(b, 0, 1);
	bench_read(b, 10, 1);
	bench_run(b);
	assert_int_equal(in_flight(b), 2);
	bench_read(b, 20, 1);
	answers = vqb_blk_queue_run(b->queue, 256);
	/* Only a completion helps, so the answer is neither MORE nor is the ring armed. */
	assert_int_equal(answers & VQB_MORE, 0);
	assert_int_equal(raw_used_flags(&b->ring), 1);
	assert_int_equal(in_flight(b), 2);
	spy_finish(&b->spy, 0);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(bench_used(b), 3);
	assert_int_equal(raw_used_flags(&b->ring), 0);
	assert_int_equal(b->spy.log[2].offset, 20 * 512);
}

/* A backend of one place, that completes at once: everything goes through, in one call. */
static void test_a_backend_of_one_place_serves_a_whole_ring(void **state)
{
	struct bench *b = bench_open(state);

	b->spy.room = 1;
	for (unsigned i = 0; i < 20; i++)
		bench_read(b, i, 1);
	bench_run(b);
	assert_int_equal(bench_used(b), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_read(b, i, i);
}

/* Nor does a later request that there is room for overtake one that there is none for. */
static void test_a_request_does_not_overtake_one_that_waits(void **state)
{
	struct bench *b = open_manual(state);

	bench_read(b, 0, 1);
	bench_run(b);
	b->spy.fulls = 1;
	bench_read(b, 10, 1);
	bench_read(b, 20, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(b->spy.calls, 3);
	assert_int_equal(b->spy.log[1].offset, 10 * 512);
	assert_int_equal(b->spy.log[2].offset, 20 * 512);
}

/* Its pieces are the same each time: trying leaves nothing behind in them. */
/* Shows: K30 */
static void test_each_attempt_has_the_same_pieces_and_bytes(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r;

	bench_read(b, 0, 1);
	bench_run(b);
	b->spy.fulls = 3;
	r = bench_ask(b, VQB_BLK_OUT, 8, CUT(16, 700, 324), CUT(1));
	for (unsigned i = 0; i < 4; i++)
		bench_run(b);
	assert_int_equal(b->spy.tries, 3);
	assert_int_equal(b->spy.calls, 2);
	for (unsigned i = 0; i < 4; i++) {
		const struct spy_io *io = i < 3 ? &b->spy.tried[i] : &b->spy.log[1];

		assert_int_equal(io->op, VQB_BLK_OUT);
		assert_int_equal(io->pieces, 2);
		assert_int_equal(io->bytes, 1024);
		assert_int_equal(io->offset, 8 * 512);
	}
	spy_drain(&b->spy.base);
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	assert_true(bench_is(b->disk + 8 * 512, PATTERN, 1024));
}

/* What is left of a transfer that was cut short goes first. */
static void test_the_rest_of_a_transfer_goes_before_those_that_wait(void **state)
{
	struct bench *b = open_manual(state);
	unsigned i;

	b->spy.room = 1;
	b->spy.part = 512;
	bench_read(b, 0, 2);
	bench_read(b, 10, 1);
	for (i = 0; i < 3; i++) {
		bench_run(b);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	assert_int_equal(bench_used(b), 2);
	assert_int_equal(b->spy.log[1].offset, 512);
	assert_int_equal(b->spy.log[2].offset, 10 * 512);
	assert_int_equal(counters(b).partial, 1);
}

/* A backend that starts its ios at unplug: one call goes round as often as it takes. */
static void test_completions_at_unplug_make_room_for_more(void **state)
{
	struct bench *b = bench_plan(state);

	b->config.pieces = 7;
	bench_start(b);
	b->spy.lazy = 1;
	for (unsigned i = 0; i < 10; i++)
		bench_read(b, i, 1);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, 0);
	assert_int_equal(bench_used(b), 10);
	assert_int_equal(b->spy.plugs, 5);
}

/* FULL with nothing held is against the rules; nothing is lost all the same. */
static void test_a_backend_that_is_full_of_nothing_is_asked_again(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_read(b, 0, 1);

	b->spy.room = 0;
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, VQB_MORE);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, VQB_MORE);
	b->spy.room = 1;
	bench_run(b);
	assert_read(b, r, 0);
}

/* ---- room for pieces and for requests ---- */

static void test_a_small_arena_serves_a_whole_ring(void **state)
{
	for (uint32_t pieces = 3; pieces < 9; pieces++) {
		struct bench *b = bench_plan(state);

		b->config.pieces = pieces;
		bench_start(b);
		for (unsigned i = 0; i < 20; i++)
			bench_read(b, i, 1);
		bench_run(b);
		assert_int_equal(bench_used(b), 20);
		for (unsigned i = 0; i < 20; i++)
			assert_read(b, i, i);
	}
}

static void test_a_full_arena_waits_for_completions(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned last;

	b->config.pieces = 7;
	bench_start(b);
	b->spy.manual = 1;
	bench_read(b, 0, 1);
	bench_read(b, 10, 1);
	last = bench_read(b, 20, 1);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, 0);
	assert_int_equal(in_flight(b), 2);
	spy_finish(&b->spy, 1); /* the newer one: its room is enough */
	bench_run(b);
	assert_int_equal(in_flight(b), 2);
	assert_int_equal(b->spy.calls, 3);
	spy_drain(&b->spy.base);
	bench_run(b);
	assert_read(b, last, 20);
}

/* One slow request doesn't hold up those behind it, however small the arena. */
static void test_a_slow_request_is_stepped_over(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned slow;

	b->config.pieces = 10;
	bench_start(b);
	b->spy.manual = 1;
	slow = bench_read(b, 0, 1);
	bench_run(b);
	for (unsigned i = 1; i < 20; i++) {
		unsigned r = bench_read(b, i, 1);

		bench_run(b);
		assert_int_equal(b->spy.holds, 2);
		spy_finish(&b->spy, 1);
		bench_run(b);
		assert_read(b, r, i);
	}
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_read(b, slow, 0);
}

/* What a long chain needed isn't asked for the next ones. */
static void test_a_long_chain_leaves_no_trace(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned big, small;

	b->config.pieces = 12;
	bench_start(b);
	b->spy.manual = 1;
	bench_read(b, 0, 1);
	big = bench_ask(b, VQB_BLK_IN, 0, CUT(16), CUT(64, 64, 64, 64, 64, 64, 64, 64, 1));
	bench_run(b);
	assert_int_equal(in_flight(b), 1); /* the long one waits for all of the room */
	spy_finish(&b->spy, 0);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_read(b, 1, 1);
	bench_run(b);
	bench_assert_reply(b, big, VQB_BLK_S_OK, 513);
	small = bench_read(b, 2, 1);
	bench_run(b);
	assert_int_equal(b->spy.holds, 2);
	spy_drain(&b->spy.base);
	bench_run(b);
	assert_read(b, small, 2);
}

/* Shows: K07 */
static void test_a_chain_that_needs_more_than_all_the_room_comes_back(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned before, big, after;

	b->config.pieces = 4;
	bench_start(b);
	before = bench_read(b, 1, 1);
	big = bench_ask(b, VQB_BLK_IN, 0, CUT(16), CUT(512, 512, 512, 1));
	after = bench_read(b, 2, 1);
	bench_run(b);
	assert_read(b, before, 1);
	assert_int_equal(bench_length(b, big), 0);
	bench_assert_blank(b, big);
	assert_read(b, after, 2);
}

static void test_fewer_requests_than_the_ring_take_turns(void **state)
{
	struct bench *b = bench_plan(state);

	b->config.requests = 1;
	bench_start(b);
	b->spy.manual = 1;
	for (unsigned i = 0; i < 4; i++)
		bench_read(b, i, 1);
	for (unsigned i = 0; i < 4; i++) {
		bench_run(b);
		assert_int_equal(in_flight(b), 1);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	for (unsigned i = 0; i < 4; i++)
		assert_read(b, i, i);
}

/* ---- budget and notifications ---- */

static void test_a_budget_is_kept_and_answers_more_unarmed(void **state)
{
	struct bench *b = bench_open(state);

	for (unsigned i = 0; i < 10; i++)
		bench_read(b, i, 1);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(vqb_blk_queue_run(b->queue, 3) & VQB_MORE, VQB_MORE);
		assert_int_equal(bench_used(b), 3 * i);
		assert_int_equal(raw_used_flags(&b->ring), 1);
	}
	assert_int_equal(vqb_blk_queue_run(b->queue, 3) & VQB_MORE, 0);
	assert_int_equal(bench_used(b), 10);
	assert_int_equal(raw_used_flags(&b->ring), 0);
	assert_int_equal(vqb_blk_queue_run(b->queue, 0) & VQB_MORE, VQB_MORE);
}

/* Shows: SR-DEV-11 SR-DEV-24 */
static void test_run_arms_and_says_when_the_driver_is_owed_a_notification(void **state)
{
	struct bench *b = bench_open(state);

	assert_int_equal(bench_run(b), VQB_NOTIFY); /* the first decision */
	assert_int_equal(bench_run(b), VQB_QUIET);  /* a notification without a cause */
	bench_read(b, 0, 1);
	assert_int_equal(bench_run(b), VQB_NOTIFY);
	poke(b->ring.avail, 1, 2);
	bench_read(b, 1, 1);
	assert_int_equal(bench_run(b), VQB_QUIET);
	assert_int_equal(raw_used_flags(&b->ring), 0);
}

/* Shows: SR-DEV-21 SR-DEV-26 */
static void test_poll_serves_the_same_and_never_arms(void **state)
{
	struct bench *b = bench_open(state);

	for (unsigned i = 0; i < 3; i++) {
		bench_read(b, i, 1);
		assert_int_equal(vqb_blk_queue_poll(b->queue, 256), VQB_NOTIFY);
		assert_int_equal(raw_used_flags(&b->ring), 1);
		assert_read(b, i, i);
	}
	bench_read(b, 3, 1);
	bench_read(b, 4, 1);
	assert_int_equal(vqb_blk_queue_poll(b->queue, 1), VQB_NOTIFY | VQB_MORE);
	assert_int_equal(vqb_blk_queue_poll(b->queue, 256), VQB_NOTIFY);
	assert_int_equal(vqb_blk_queue_poll(b->queue, 256), VQB_QUIET);
}

/* ---- stop and reset ---- */

static void test_quiesce_is_busy_while_the_backend_holds_memory(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r[3];

	b->spy.room = 2;
	for (unsigned i = 0; i < 3; i++)
		r[i] = bench_read(b, i, 1);
	bench_run(b);
	bench_read(b, 9, 1);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY);
	spy_finish(&b->spy, 0);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY); /* the third is sent */
	vqb_backend_drain(&b->spy.base);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(in_flight(b), 0);
	vqb_device_publish(b->dev);
	assert_int_equal(bench_used(b), 3); /* and the fourth was not taken */
	for (unsigned i = 0; i < 3; i++)
		assert_read(b, r[i], i);
}

/* Not before the last part of a transfer that comes in parts. */
static void test_quiesce_brings_transfers_in_parts_to_their_end(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r = bench_read(b, 8, 4), calls = 0;

	bench_run(b);
	b->spy.part = 512;
	b->spy.manual = 0;
	spy_finish(&b->spy, 0);
	while (vqb_blk_queue_quiesce(b->queue) == VQB_E_BUSY)
		calls++;
	assert_true(calls > 0);
	assert_int_equal(in_flight(b), 0);
	vqb_device_publish(b->dev);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 4 * 512 + 1);
	assert_memory_equal(b->asked[r].at[1], b->disk + 8 * 512, 4 * 512);
}

/* Three are in the backend, one waits; the driver resets and asks anew with head 0. */
/* Shows: K37 BF-DEV-11 BF-DEV-15 */
static void test_late_completions_after_a_reset_touch_nothing(void **state)
{
	struct bench *b = open_manual(state);
	uint8_t ring_before[BUFFERS / 16];
	unsigned old[4], fresh;

	b->spy.room = 3;
	for (unsigned i = 0; i < 4; i++)
		old[i] = bench_flush(b);
	bench_run(b);
	assert_int_equal(b->spy.holds, 3);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY);

	bench_ring(b, RING_SIZE);
	assert_int_equal(vqb_device_reset(b->dev, &b->ring_config.ring), VQB_OK);
	assert_int_equal(vqb_blk_queue_accept(b->queue, b->config.features), VQB_OK);
	fresh = bench_flush(b);
	assert_int_equal(b->asked[fresh].head, b->asked[old[0]].head);
	for (unsigned i = 0; i < 3; i++)
		spy_finish(&b->spy, 0);
	memcpy(ring_before, b->ram, sizeof(ring_before));
	bench_run(b);
	assert_int_equal(b->spy.calls, 4); /* three old ones and the fresh one */
	assert_int_equal(b->spy.holds, 1);
	assert_int_equal(bench_used(b), 0);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(bench_used(b), 1);
	bench_assert_reply(b, fresh, VQB_BLK_S_OK, 1);
	for (unsigned i = 0; i < 4; i++)
		bench_assert_blank(b, old[i]);
	assert_int_equal(counters(b).late, 4);
	assert_int_equal(in_flight(b), 0);
}

/* The old ones come while the new one with the same head is on its way. */
/* Shows: K37 */
static void test_old_and_new_requests_of_one_head_are_not_mixed_up(void **state)
{
	struct bench *b = open_manual(state);
	unsigned old = bench_read(b, 1, 1), fresh;

	bench_run(b);
	bench_ring(b, RING_SIZE);
	assert_int_equal(vqb_device_reset(b->dev, &b->ring_config.ring), VQB_OK);
	fresh = bench_read(b, 2, 1);
	bench_run(b);
	assert_int_equal(b->spy.holds, 2);
	spy_finish(&b->spy, 1);
	bench_run(b);
	assert_read(b, fresh, 2);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(bench_used(b), 1);
	assert_int_equal(b->asked[old].at[2][0], BLANK);
	assert_int_equal(counters(b).late, 1);
}

/* Shows: K36 */
static void test_a_queue_without_a_ring_does_nothing(void **state)
{
	struct bench *b = bench_open(state);

	bench_read(b, 0, 1);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256), VQB_QUIET);
	assert_int_equal(vqb_blk_queue_poll(b->queue, 256), VQB_QUIET);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(b->spy.calls, 0);
	assert_int_equal(bench_used(b), 0);
}

/* Damage to the ring: what is out still comes back, and the caller is not kept busy. */
static void test_a_broken_ring_ends_the_drain(void **state)
{
	struct bench *b = open_manual(state);
	unsigned r = bench_read(b, 0, 1);

	bench_run(b);
	raw_offer(&b->ring, b->offered++, RING_SIZE);
	bench_run(b);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_BROKEN);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_read(b, r, 0);
	assert_int_equal(bench_run(b), VQB_QUIET);
}

static void test_counters_start_over_when_they_are_cleared(void **state)
{
	static const struct vqb_blk_queue_counters none;
	struct bench *b = bench_open(state);
	struct vqb_blk_queue_counters now;

	bench_read(b, 0, 1);
	bench_run(b);
	assert_int_equal(counters(b).requests, 1);
	assert_int_equal(counters(b).read_bytes, 512);
	vqb_blk_queue_clear_counters(b->queue);
	now = counters(b);
	assert_memory_equal(&now, &none, sizeof(now));
	bench_read(b, 0, 1);
	bench_run(b);
	assert_int_equal(counters(b).requests, 1);
}

/* ---- what init checks ---- */

static void test_init_refuses_a_backend_that_cannot_do_what_is_offered(void **state)
{
	struct bench *b = bench_open(state);
	struct vqb_backend good = b->spy.base, *base = &b->spy.base;

	base->caps.bytes -= 1;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	*base = good;
	base->caps.can = VQB_CAN_READ | VQB_CAN_FLUSH;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	base->caps.can = VQB_CAN_READ | VQB_CAN_WRITE;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	*base = good;
	base->caps.alignment = 1024;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	base->caps.alignment = 512;
	assert_int_equal(bench_queue(b), VQB_OK);
	base->caps.can |= VQB_CAN_LIFETIME;
	assert_int_equal(bench_queue(b), VQB_OK);
	base->ops = NULL;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	*base = good;
	base->struct_size = 0;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
}

/* A driver may send as many segments as were offered; header and status come on top. */
static void test_init_wants_room_for_the_longest_request(void **state)
{
	static _Alignas(64) uint8_t mem[VQB_BLK_DEVICE_BYTES];
	struct bench *b = bench_open(state);
	struct vqb_blk_limits limits = b->limits;
	struct vqb_blk_device_config config = {
		.struct_size = sizeof(config),
		.features = VQB_FEATURE(VQB_BLK_F_SEG_MAX) | VQB_FEATURE(VQB_BLK_F_FLUSH),
		.limits = &limits,
	};
	struct vqb_blk_device *dev;

	limits.segments = 20;
	assert_int_equal(vqb_blk_device_init(mem, sizeof(mem), &config, &dev), VQB_OK);
	b->config.device = dev;
	b->config.features = 0;
	b->config.pieces = 21;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	b->config.pieces = 22;
	assert_int_equal(bench_queue(b), VQB_OK);
	limits.segments = UINT32_MAX;
	assert_int_equal(vqb_blk_device_init(mem, sizeof(mem), &config, &dev), VQB_OK);
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
}

static void test_init_checks_sizes_and_memory(void **state)
{
	struct bench *b = bench_open(state);
	struct vqb_blk_queue_config good = b->config;
	size_t bytes = vqb_blk_queue_size(&b->config);
	uint8_t *mem = (uint8_t *)bench_object(b, 2, bytes + 64);
	struct vqb_blk_queue *queue;

	assert_int_equal(vqb_blk_queue_init(mem, bytes - 1, &good, &queue), VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_queue_init(mem + 8, bytes, &good, &queue), VQB_E_INVALID);
	assert_int_equal(vqb_blk_queue_init(NULL, bytes, &good, &queue), VQB_E_INVALID);
	b->config.requests = 0;
	assert_int_equal(vqb_blk_queue_size(&b->config), 0);
	b->config.requests = 32769;
	assert_int_equal(vqb_blk_queue_size(&b->config), 0);
	b->config = good;
	b->config.pieces = 2;
	assert_int_equal(vqb_blk_queue_size(&b->config), 0);
	b->config = good;
	b->config.struct_size--;
	assert_int_equal(vqb_blk_queue_size(&b->config), 0);
	assert_int_equal(vqb_blk_queue_init(mem, bytes, &b->config, &queue), VQB_E_INVALID);
	b->config = good;
	b->config.features = VQB_FEATURE(VQB_BLK_F_MQ) | VQB_FEATURE(VQB_F_VERSION_1);
	assert_int_equal(vqb_blk_queue_init(mem, bytes, &b->config, &queue), VQB_E_INVALID);
	b->config = good;
	b->config.backend = NULL;
	assert_int_equal(vqb_blk_queue_init(mem, bytes, &b->config, &queue), VQB_E_INVALID);
}

/* The object needs no more than its bound, and a request no more than was promised. */
static void test_memory_of_a_queue_is_bounded(void **state)
{
	const uint32_t requests[] = { 1, 2, 64, 256, 32768 };
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config), .pieces = 3 };
	size_t one;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		config.requests = requests[i];
		assert_true(vqb_blk_queue_size(&config) <= VQB_BLK_QUEUE_BYTES(requests[i], 3));
	}
	config.requests = 256;
	one = vqb_blk_queue_size(&config);
	config.requests = 257;
	one = vqb_blk_queue_size(&config) - one;
	print_message("a request takes %zu bytes\n", one);
	assert_true(one <= 160);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_requests_complete_in_any_order),
		bench_test(test_quick_answers_overtake_slow_ones),
		bench_test(test_a_flush_goes_to_the_backend_after_writes_before_it),
		bench_test(test_a_drain_is_plugged_once),
		bench_test(test_a_backend_without_plug_and_drain_is_fine),
		bench_test(test_a_full_backend_keeps_requests_waiting_in_order),
		bench_test(test_nothing_is_taken_while_a_request_waits),
		bench_test(test_a_backend_of_one_place_serves_a_whole_ring),
		bench_test(test_a_request_does_not_overtake_one_that_waits),
		bench_test(test_each_attempt_has_the_same_pieces_and_bytes),
		bench_test(test_the_rest_of_a_transfer_goes_before_those_that_wait),
		bench_test(test_completions_at_unplug_make_room_for_more),
		bench_test(test_a_backend_that_is_full_of_nothing_is_asked_again),
		bench_test(test_a_small_arena_serves_a_whole_ring),
		bench_test(test_a_full_arena_waits_for_completions),
		bench_test(test_a_slow_request_is_stepped_over),
		bench_test(test_a_long_chain_leaves_no_trace),
		bench_test(test_a_chain_that_needs_more_than_all_the_room_comes_back),
		bench_test(test_fewer_requests_than_the_ring_take_turns),
		bench_test(test_a_budget_is_kept_and_answers_more_unarmed),
		bench_test(test_run_arms_and_says_when_the_driver_is_owed_a_notification),
		bench_test(test_poll_serves_the_same_and_never_arms),
		bench_test(test_quiesce_is_busy_while_the_backend_holds_memory),
		bench_test(test_quiesce_brings_transfers_in_parts_to_their_end),
		bench_test(test_late_completions_after_a_reset_touch_nothing),
		bench_test(test_old_and_new_requests_of_one_head_are_not_mixed_up),
		bench_test(test_a_queue_without_a_ring_does_nothing),
		bench_test(test_a_broken_ring_ends_the_drain),
		bench_test(test_init_refuses_a_backend_that_cannot_do_what_is_offered),
		bench_test(test_counters_start_over_when_they_are_cleared),
		bench_test(test_init_wants_room_for_the_longest_request),
		bench_test(test_init_checks_sizes_and_memory),
		bench_test(test_memory_of_a_queue_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
