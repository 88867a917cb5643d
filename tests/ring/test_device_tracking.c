/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tracking area, byte by byte: what a device writes there, what it believes of what it finds,
 * and how it goes on. That nothing is lost wherever it stops is shown by
 * stress/test_tracking_kill.c.
 */
#include "device_bench.h"
#include "probe_log.h"

#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)

enum { N = 8 };

static _Alignas(64) uint8_t area[VQB_TRACKING_BYTES(N)];

/* The area's words are in the machine's byte order. */
static uint64_t word(size_t at, unsigned bytes)
{
	uint16_t v16;
	uint64_t v64;

	memcpy(&v16, area + at, 2);
	memcpy(&v64, area + at, bytes == 8 ? 8 : 2);
	return bytes == 8 ? v64 : v16;
}

static void set_word(size_t at, uint64_t v, unsigned bytes)
{
	uint16_t v16 = (uint16_t)v;

	if (bytes == 8)
		memcpy(area + at, &v, 8);
	else
		memcpy(area + at, &v16, 2);
}

enum { FEATURES = 0, VERSION = 8, DESC_NUM = 10, LAST = 12, USED = 14 };

static size_t entry(unsigned head)
{
	return 16 + 16 * (size_t)head;
}

static unsigned flag(unsigned head)
{
	return area[entry(head)];
}

static size_t next_at(unsigned head)
{
	return entry(head) + 6;
}

static size_t counter_at(unsigned head)
{
	return entry(head) + 8;
}

static struct bench *plan(void **state, uint64_t features)
{
	struct bench *b = bench_plan(state, N, features);

	b->config.tracking = (struct vqb_tracking){ area, sizeof(area) };
	return b;
}

/* A device over a new area. */
static struct bench *open_new(void **state, uint64_t features)
{
	struct bench *b = plan(state, features);

	memset(area, 0, sizeof(area));
	bench_start(b);
	return b;
}

static void offer(struct bench *b, const unsigned *head, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bench_offer_writable(b, head[i]);
}

static void assert_heads(const struct bench *b, const unsigned *head, unsigned n)
{
	assert_int_equal(b->taken, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(b->chain[i].status, VQB_OK);
		assert_int_equal(b->chain[i].ticket.head, head[i]);
	}
}

/* ---- what is written ---- */

static void test_bytes_of_an_area(void **state)
{
	(void)state;
	assert_int_equal(VQB_TRACKING_BYTES(1), 64);
	assert_int_equal(VQB_TRACKING_BYTES(3), 64);
	assert_int_equal(VQB_TRACKING_BYTES(128), 2112);
	assert_int_equal(VQB_TRACKING_BYTES(VQB_RING_MAX), 524352);
}

static void test_new_area_is_filled_whatever_it_holds(void **state)
{
	struct bench *b = plan(state, 0);

	memset(area, 0xa5, sizeof(area));
	set_word(VERSION, 0, 2);
	bench_start(b);
	assert_int_equal(word(FEATURES, 8), 0);
	assert_int_equal(word(VERSION, 2), 1);
	assert_int_equal(word(DESC_NUM, 2), N);
	assert_int_equal(word(LAST, 2), 0);
	assert_int_equal(word(USED, 2), 0);
	for (unsigned head = 0; head < N; head++)
		assert_int_equal(flag(head), 0);
	assert_int_equal(vqb_device_pending(b->dev), 0);
}

static void test_a_take_and_a_batch_in_the_area(void **state)
{
	static const unsigned head[] = { 5, 2, 7 };
	struct bench *b = open_new(state, 0);

	offer(b, head, 3);
	bench_take_good(b, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(flag(head[i]), 1);
		assert_int_equal(word(counter_at(head[i]), 8), i);
	}
	bench_put(b, b->chain[2].ticket, 1);
	bench_put(b, b->chain[0].ticket, 1);
	assert_int_equal(flag(7) + flag(5), 2);
	vqb_device_expose(b->dev);
	assert_int_equal(flag(7) + flag(5), 0);
	assert_int_equal(flag(2), 1);
	assert_int_equal(word(LAST, 2), 5);
	assert_int_equal(word(next_at(5), 2), 7);
	assert_int_equal(word(USED, 2), 2);
	bench_offer_writable(b, 7);
	bench_take_good(b, 1);
	assert_int_equal(word(counter_at(7), 8), 3);
}

static void test_area_costs_what_the_header_says(void **state)
{
	static const unsigned head[] = { 0, 1, 2, 3 };
	struct bench *b = open_new(state, 0);

	offer(b, head, 4);
	log_start();
	bench_take_good(b, 4);
	log_stop();
	assert_int_equal(log_stores(area, sizeof(area)), 2 * 4);
	log_start();
	for (unsigned i = 0; i < 4; i++)
		bench_put(b, b->chain[i].ticket, 1);
	log_stop();
	assert_int_equal(log_stores(area, sizeof(area)), 0);
	log_start();
	vqb_device_publish(b->dev);
	vqb_device_publish(b->dev);
	log_stop();
	assert_in_range(log_stores(area, sizeof(area)), 2 * 4 + 2, 3 * 4);
	assert_int_equal(log_loads(area, sizeof(area)), 0);
}

static void test_untake_takes_the_mark_back(void **state)
{
	static const unsigned head[] = { 3, 4 };
	struct bench *b = open_new(state, 0);

	offer(b, head, 2);
	bench_take_good(b, 2);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[1].ticket), VQB_OK);
	assert_int_equal(flag(3), 1);
	assert_int_equal(flag(4), 0);
}

static void test_rejected_and_bad_chains_are_in_flight_too(void **state)
{
	struct bench *b = open_new(state, 0);
	struct vqb_chain gone;

	bench_desc(b, 0, END, 16, 0, 0);
	bench_offer(b, 0);
	bench_desc(b, 1, DATA, 16, RAW_NEXT, 1);
	bench_offer(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(flag(0), 0);
	assert_int_equal(vqb_device_reject(b->dev, &gone), VQB_OK);
	bench_take_bad(b, VQB_RULE_LOOP);
	assert_int_equal(flag(0) + flag(1), 2);
	bench_put(b, gone.ticket, 0);
	bench_put(b, b->chain[0].ticket, 0);
	vqb_device_expose(b->dev);
	assert_int_equal(flag(0) + flag(1), 0);
}

static void test_head_that_is_not_exposed_is_not_the_drivers_to_offer(void **state)
{
	struct bench *b = open_new(state, 0);

	bench_offer_writable(b, 1);
	bench_put(b, bench_take_ticket(b), 1);
	bench_offer_writable(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
}

/* ---- going on ---- */

/* Takes 5, 2, 7, 0 in this order, gives 2 back, and leaves 1 to be taken. */
static struct bench *leave_three(void **state, uint64_t features)
{
	static const unsigned head[] = { 5, 2, 7, 0, 1 };
	struct bench *b = open_new(state, features);

	offer(b, head, 5);
	bench_take_good(b, 4);
	bench_put(b, b->chain[1].ticket, 1);
	vqb_device_expose(b->dev);
	return b;
}

static void assert_three_again(struct bench *b)
{
	static const unsigned again[] = { 5, 7, 0, 1 };

	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_int_equal(vqb_device_pending(b->dev), 4);
	assert_int_equal(bench_take(b, 3), VQB_OK);
	assert_heads(b, again, 3);
	assert_int_equal(bench_take(b, 3), VQB_OK);
	assert_heads(b, again + 3, 1);
	assert_int_equal(vqb_device_in_flight(b->dev), 4);
}

static void test_successor_takes_what_was_in_flight_first(void **state)
{
	struct bench *b = leave_three(state, 0);

	bench_start(b);
	assert_three_again(b);
	assert_int_equal(word(counter_at(5), 8), 0);
	assert_int_equal(word(counter_at(0), 8), 3);
	assert_int_equal(word(counter_at(1), 8), 4);
}

static void test_successor_answers_in_the_next_slots(void **state)
{
	struct bench *b = leave_three(state, 0);

	bench_start(b);
	bench_take_good(b, 3);
	bench_put(b, b->chain[2].ticket, 3);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(raw_used_idx(&b->ring), 2);
	bench_assert_used(b, 1, 0, 3);
	bench_put(b, b->chain[0].ticket, 4);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 2, 5, 4);
}

static void test_third_process_finds_what_the_second_left(void **state)
{
	struct bench *b = leave_three(state, 0);

	bench_start(b);
	bench_take_good(b, 1);
	bench_start(b);
	assert_three_again(b);
}

/* Saved with chains out; what `saved` says is less than the area says. */
static void test_save_and_restore_with_chains_out(void **state)
{
	struct vqb_device_saved saved, other = { 77, 12 };
	struct bench *b = leave_three(state, 0);

	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	assert_int_equal(saved.avail, 4);
	assert_int_equal(saved.used, 1);
	for (unsigned i = 0; i < 2; i++) {
		b->config.ring.size = 0;
		b->config.max_size = N;
		bench_start(b);
		b->config.ring.size = N;
		assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, i ? &other : &saved),
				 VQB_OK);
		assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
		assert_int_equal(saved.avail, 4);
		assert_int_equal(saved.used, 1);
	}
	assert_three_again(b);
}

static void test_save_waits_for_what_is_not_exposed(void **state)
{
	struct bench *b = leave_three(state, 0);
	struct vqb_device_saved saved;

	bench_put(b, b->chain[0].ticket, 1);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
}

static void test_untaken_after_restart_it_stays_in_flight(void **state)
{
	struct bench *b = leave_three(state, 0);
	struct vqb_ticket first;

	bench_start(b);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	assert_int_equal(vqb_device_untake(b->dev, b->chain[1].ticket), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_OK);
	assert_int_equal(flag(5) + flag(7), 2);
	assert_three_again(b);
}

static void test_fault_of_one_that_was_in_flight_is_retried(void **state)
{
	struct bench *b = leave_three(state, 0);

	bench_desc(b, 5, END, 16, RAW_WRITE, 0);
	bench_start(b);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(bench_take(b, 4), VQB_E_FAULT);
		assert_int_equal(b->taken, 0);
	}
	bench_desc(b, 5, DATA, 16, RAW_WRITE, 0);
	assert_three_again(b);
}

static void test_held_back_chains_are_in_flight_for_a_successor(void **state)
{
	static const unsigned head[] = { 4, 6, 1 };
	struct bench *b = open_new(state, IN_ORDER);
	struct vqb_device_saved saved;

	offer(b, head, 3);
	bench_take_good(b, 3);
	bench_put(b, b->chain[1].ticket, 16);
	bench_put(b, b->chain[2].ticket, 16);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	assert_int_equal(saved.avail, 3);
	bench_start(b);
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_heads(b, head, 3);
	for (unsigned i = 3; i-- > 0;)
		bench_put(b, b->chain[i].ticket, 16);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 1, 16);
	assert_int_equal(raw_used_idx(&b->ring), 3);
	assert_int_equal(word(USED, 2), 3);
	assert_int_equal(flag(4) + flag(6) + flag(1), 0);
}

static void test_full_ring_in_reverse_comes_back_in_order(void **state)
{
	static const unsigned head[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
	struct bench *b = open_new(state, 0);

	offer(b, head, N);
	bench_take_good(b, N);
	bench_start(b);
	assert_int_equal(bench_take(b, N), VQB_OK);
	assert_heads(b, head, N);
	bench_take_nothing(b);
	assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, 0);
}

static void test_driver_that_took_its_index_back_breaks_the_queue(void **state)
{
	struct bench *b = leave_three(state, 0);

	poke(b->ring.avail + 2, 2, 2);
	bench_start(b);
	bench_take_good(b, 3);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
}

/* ---- forgetting ---- */

static void test_reset_forgets_and_restore_to_nothing_does_not(void **state)
{
	struct bench *b = leave_three(state, 0);

	assert_int_equal(vqb_device_restore(b->dev, NULL, NULL), VQB_OK);
	assert_int_equal(word(VERSION, 2), 1);
	bench_start(b);
	assert_three_again(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(word(VERSION, 2), 0);
	memset(b->ring.avail, 0, 6 + 2 * N);
	memset(b->ring.used, 0, 6 + 8 * N);
	b->offered = 0;
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	bench_take_nothing(b);
	bench_offer_writable(b, 5);
	assert_int_equal(bench_take_ticket(b).head, 5);
	assert_int_equal(word(counter_at(5), 8), 0);
}

static void test_smaller_ring_after_reset_has_an_area_of_its_size(void **state)
{
	struct bench *b = open_new(state, 0);

	b->config.ring = bench_ring_at(LOW, 4, 0);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(word(DESC_NUM, 2), 4);
	assert_int_equal(word(VERSION, 2), 1);
}

static void test_new_area_begins_where_restore_says(void **state)
{
	static const unsigned head[] = { 0, 1, 2 };
	struct bench *b = open_new(state, 0);
	struct vqb_device_saved saved = { .avail = 1, .used = 65534 };

	set_word(VERSION, 0, 2);
	b->offered = 65534;
	poke(b->ring.used + 2, 65534, 2);
	offer(b, head, 3);
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_OK);
	assert_int_equal(word(USED, 2), 65534);
	bench_take_good(b, 3);
	bench_put(b, b->chain[0].ticket, 1);
	vqb_device_expose(b->dev);
	bench_start(b);
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_heads(b, head + 1, 2);
}

/* ---- what is believed ---- */

/* 2, 4 and 6 are in flight by the area, but the used ring has 2 and 4 already. */
static struct bench *leave_batch(void **state)
{
	struct bench *b = plan(state, 0);

	memset(area, 0, sizeof(area));
	set_word(VERSION, 1, 2);
	set_word(DESC_NUM, N, 2);
	set_word(LAST, 4, 2);
	set_word(USED, 65535, 2);
	for (unsigned head = 2; head <= 6; head += 2) {
		area[entry(head)] = 1;
		set_word(counter_at(head), 10 - head, 8);
	}
	set_word(next_at(4), 2, 2);
	poke(b->ring.used + 2, 1, 2);
	poke(b->ring.avail + 2, 2, 2);
	bench_desc(b, 6, DATA, 16, RAW_WRITE, 0);
	bench_desc(b, 2, DATA, 16, RAW_WRITE, 0);
	bench_desc(b, 4, DATA, 16, RAW_WRITE, 0);
	return b;
}

static void test_batch_that_the_used_ring_has_is_mended(void **state)
{
	struct bench *b = leave_batch(state);

	bench_start(b);
	assert_int_equal(flag(2) + flag(4), 0);
	assert_int_equal(flag(6), 1);
	assert_int_equal(word(USED, 2), 1);
	assert_int_equal(bench_take_ticket(b).head, 6);
	bench_take_nothing(b);
}

static void assert_refused(struct bench *b)
{
	struct vqb_device_saved saved = { 0, 0 };

	assert_int_equal(bench_init(b), VQB_E_INVALID);
	b->config.ring.size = 0;
	b->config.max_size = N;
	bench_start(b);
	b->config.ring.size = N;
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_E_INVALID);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
}

static void test_what_no_predecessor_wrote_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned bytes;
	} row[] = {
		{ FEATURES, 1, 8 },
		{ FEATURES, UINT64_C(1) << 63, 8 },
		{ VERSION, 2, 2 },
		{ VERSION, 65535, 2 },
		{ DESC_NUM, 0, 2 },
		{ DESC_NUM, 4, 2 },
		{ DESC_NUM, 9, 2 },
		{ DESC_NUM, 16, 2 },
		{ LAST, 8, 2 },
		{ LAST, 65535, 2 },
		{ USED, 2, 2 },            /* a batch of 65535 */
		{ USED, 65528, 2 },        /* of nine */
		{ USED, 65529, 2 },        /* of eight, which do not lead on */
		{ 16 + 16 * 4 + 6, 8, 2 }, /* next is outside the ring */
		{ 16 + 16 * 4 + 6, 65535, 2 },
		{ 16 + 16 * 4 + 6, 4, 2 }, /* next is the head itself */
		{ 16 + 16 * 6 + 8, UINT64_C(1) << 63, 8 },
		{ 16 + 16 * 6 + 8, UINT64_MAX, 8 },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bench *b = leave_batch(state);

		set_word(row[i].at, row[i].value, row[i].bytes);
		assert_refused(b);
	}
}

static void test_last_head_is_checked_though_no_batch_is_open(void **state)
{
	struct bench *b = leave_batch(state);

	set_word(USED, 1, 2);
	set_word(LAST, N, 2);
	assert_refused(b);
}

static void test_flag_that_is_neither_set_nor_clear_is_refused(void **state)
{
	for (unsigned value = 2; value < 256; value += 31) {
		struct bench *b = leave_batch(state);

		area[entry(1)] = (uint8_t)value;
		assert_refused(b);
	}
}

static void test_two_of_one_age_are_refused(void **state)
{
	struct bench *b = leave_batch(state);

	area[entry(0)] = 1;
	set_word(counter_at(0), 4, 8);
	assert_refused(b);
}

/* The highest counters that are believed: what is taken then must be believed, too. */
static void test_counters_near_the_end_leave_room_for_a_successor(void **state)
{
	static const unsigned head[] = { 6, 0, 3 };
	struct bench *b = leave_batch(state);

	set_word(counter_at(6), (UINT64_C(1) << 63) - 2, 8);
	area[entry(0)] = 1;
	set_word(counter_at(0), (UINT64_C(1) << 63) - 1, 8);
	bench_desc(b, 0, DATA, 16, RAW_WRITE, 0);
	bench_desc(b, 3, DATA, 16, RAW_WRITE, 0);
	b->offered = 3;
	bench_offer(b, 3);
	bench_start(b);
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_heads(b, head, 2);
	assert_int_equal(bench_take_ticket(b).head, 3);
	assert_int_equal(word(counter_at(6), 8), 0);
	assert_int_equal(word(counter_at(0), 8), 1);
	assert_int_equal(word(counter_at(3), 8), 2);
	bench_start(b);
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_heads(b, head, 3);
}

static void test_what_means_nothing_is_not_looked_at(void **state)
{
	struct bench *b = leave_batch(state);

	for (unsigned head = 0; head < N; head++) {
		memset(area + entry(head) + 1, 0xa5, 5);
		if (!flag(head))
			memset(area + counter_at(head), 0xff, 8);
		if (head != 4)
			set_word(next_at(head), 0xffff, 2);
	}
	bench_start(b);
	assert_int_equal(bench_take_ticket(b).head, 6);
	bench_take_nothing(b);
}

/* Whatever lies there: refused, or gone on from with heads of the ring, each once. */
static void test_rubbish_does_no_harm(void **state)
{
	uint32_t seed = 3;
	unsigned gone_on = 0;

	for (unsigned round = 0; round < 3000; round++) {
		struct bench *b = leave_batch(state);
		unsigned seen = 0;

		for (unsigned i = 0; i < 1 + round % 6; i++) {
			seed = seed * 1664525 + 1013904223;
			area[16 * (round % 9) + (seed >> 16) % 16] = (uint8_t)(seed >> 8);
		}
		for (unsigned head = 0; head < N; head++)
			bench_desc(b, head, DATA, 16, RAW_WRITE, 0);
		if (bench_init(b) || bench_take(b, N))
			continue;
		gone_on++;
		for (unsigned i = 0; i < b->taken; i++) {
			assert_true(b->chain[i].ticket.head < N);
			assert_false(seen >> b->chain[i].ticket.head & 1);
			seen |= 1u << b->chain[i].ticket.head;
			bench_put(b, b->chain[i].ticket, 1);
		}
		vqb_device_publish(b->dev);
	}
	assert_in_range(gone_on, 300, 2700);
}

/* ---- set-up ---- */

static void test_area_must_be_aligned_and_large_enough(void **state)
{
	static const struct {
		size_t offset, bytes;
		uint32_t max_size;
		int good;
	} row[] = {
		{ 0, VQB_TRACKING_BYTES(N), 0, 1 }, { 0, 16 + 16 * N, 0, 1 },
		{ 0, 16 + 16 * N - 1, 0, 0 },       { 0, VQB_TRACKING_BYTES(N), 2 * N, 0 },
		{ 4, 16 + 16 * N, 0, 0 },           { 0, 0, 0, 0 },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bench *b = plan(state, 0);

		memset(area, 0, sizeof(area));
		b->config.max_size = row[i].max_size;
		b->config.tracking = (struct vqb_tracking){ area + row[i].offset, row[i].bytes };
		assert_int_equal(vqb_device_size(&b->config) != 0, row[i].good);
	}
	struct bench *b = plan(state, 0);

	b->config.tracking = (struct vqb_tracking){ NULL, 1 };
	assert_int_equal(vqb_device_size(&b->config), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_bytes_of_an_area),
		bench_test(test_new_area_is_filled_whatever_it_holds),
		bench_test(test_a_take_and_a_batch_in_the_area),
		bench_test(test_area_costs_what_the_header_says),
		bench_test(test_untake_takes_the_mark_back),
		bench_test(test_rejected_and_bad_chains_are_in_flight_too),
		bench_test(test_head_that_is_not_exposed_is_not_the_drivers_to_offer),
		bench_test(test_successor_takes_what_was_in_flight_first),
		bench_test(test_successor_answers_in_the_next_slots),
		bench_test(test_third_process_finds_what_the_second_left),
		bench_test(test_save_and_restore_with_chains_out),
		bench_test(test_save_waits_for_what_is_not_exposed),
		bench_test(test_untaken_after_restart_it_stays_in_flight),
		bench_test(test_fault_of_one_that_was_in_flight_is_retried),
		bench_test(test_held_back_chains_are_in_flight_for_a_successor),
		bench_test(test_full_ring_in_reverse_comes_back_in_order),
		bench_test(test_driver_that_took_its_index_back_breaks_the_queue),
		bench_test(test_reset_forgets_and_restore_to_nothing_does_not),
		bench_test(test_smaller_ring_after_reset_has_an_area_of_its_size),
		bench_test(test_new_area_begins_where_restore_says),
		bench_test(test_batch_that_the_used_ring_has_is_mended),
		bench_test(test_what_no_predecessor_wrote_is_refused),
		bench_test(test_last_head_is_checked_though_no_batch_is_open),
		bench_test(test_flag_that_is_neither_set_nor_clear_is_refused),
		bench_test(test_two_of_one_age_are_refused),
		bench_test(test_counters_near_the_end_leave_room_for_a_successor),
		bench_test(test_what_means_nothing_is_not_looked_at),
		bench_test(test_rubbish_does_no_harm),
		bench_test(test_area_must_be_aligned_and_large_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
