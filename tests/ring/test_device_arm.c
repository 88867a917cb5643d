/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking the driver for notifications or not, and the fences of publish, turn and arm. */
#include "device_bench.h"
#include "probe_log.h"

enum { SIZE = 8, USED_BYTES = 6 + 8 * SIZE };

static const uint8_t *avail_idx(const struct bench *b)
{
	return b->ring.avail + 2;
}

static const uint8_t *used_idx(const struct bench *b)
{
	return b->ring.used + 2;
}

static const uint8_t *used_event(const struct bench *b)
{
	return b->ring.avail + 4 + 2 * SIZE;
}

static const uint8_t *avail_event(const struct bench *b)
{
	return b->ring.used + 4 + 8 * SIZE;
}

/* One chain taken and put, and the owed decision made: the next publish has one new entry. */
static struct bench *open_with_one_new(void **state, uint64_t features)
{
	struct bench *b = bench_open(state, SIZE, features);

	vqb_device_publish(b->dev);
	bench_offer_plain(b, 0);
	bench_put(b, bench_take_ticket(b), 0);
	return b;
}

/* Would a driver that follows the specification kick for the entry at the device's cursor? */
static int kick_wanted(const struct bench *b, unsigned cursor, int events)
{
	if (events)
		return raw_avail_event(&b->ring) == (cursor & 0xffff);
	return !(raw_used_flags(&b->ring) & 1);
}

/* ---- publish ---- */

/* Shows: SR-DEV-28 */
static void test_publish_stores_fences_and_loads_once(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned events = 0; events < 2; events++) {
		struct bench *b = open_with_one_new(state, features[events]);
		const uint8_t *asked = events ? used_event(b) : b->ring.avail;

		log_start();
		vqb_device_publish(b->dev);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_all_stores(), 1);
		assert_int_equal(log_all_loads(), 1);
		assert_int_equal(log_first(used_idx(b), 2, 1)->fences, 0);
		assert_int_equal(log_first(asked, 2, 0)->fences, 1);
	}
}

static void test_publish_of_nothing_new_costs_nothing(void **state)
{
	struct bench *b = open_with_one_new(state, EVENT_IDX);

	vqb_device_publish(b->dev);
	log_start();
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	log_stop();
	assert_int_equal(probe_fences, 0);
	assert_int_equal(log_count, 0);
}

static void test_expose_stores_the_index_and_nothing_else(void **state)
{
	struct bench *b = open_with_one_new(state, EVENT_IDX);

	log_start();
	vqb_device_expose(b->dev);
	log_stop();
	assert_int_equal(probe_fences, 0);
	assert_int_equal(log_count, 1);
	assert_int_equal(log_first(used_idx(b), 2, 1)->value, 1);
}

/* ---- arm ---- */

/* Shows: SR-DEV-29 */
static void test_arm_asks_fences_and_looks_again(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned events = 0; events < 2; events++) {
		struct bench *b = bench_open(state, SIZE, features[events]);
		const uint8_t *ask = events ? avail_event(b) : b->ring.used;

		vqb_device_disarm(b->dev);
		log_start();
		assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_first(ask, 2, 1)->fences, 0);
		assert_int_equal(log_loads(avail_idx(b), 2), 1);
		assert_int_equal(log_first(avail_idx(b), 2, 0)->fences, 1);
	}
}

static struct bench *latecomer;

/* A driver that offers a chain after the device asked, before it looks again. */
static void offer_late(const void *p, unsigned bytes)
{
	struct bench *b = latecomer;

	(void)bytes;
	if (p == avail_idx(b)) {
		probe_load = NULL;
		bench_offer_plain(b, 5);
	}
}

/* Shows: SR-DEV-29 */
static void test_arm_sees_a_chain_that_came_meanwhile(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned events = 0; events < 2; events++) {
		struct bench *b = bench_open(state, SIZE, features[events]);

		latecomer = b;
		probe_load = offer_late;
		assert_int_equal(vqb_device_arm(b->dev), VQB_MORE);
		probe_load = NULL;
		assert_int_equal(bench_take_one(b)->ticket.head, 5);
		assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
	}
}

/* Shows: SR-DEV-23 SR-DEV-22 */
static void test_event_is_the_next_entry_to_take(void **state)
{
	struct bench *b = bench_open(state, SIZE, EVENT_IDX);

	bench_stand_at(b, 65533);
	for (unsigned i = 0; i < 6; i++) {
		unsigned cursor = 65533 + i;

		assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
		assert_int_equal(raw_avail_event(&b->ring), cursor & 0xffff);
		assert_int_equal(raw_used_flags(&b->ring), 0);
		bench_offer_plain(b, i);
		bench_serve(b, 1);
	}
}

/* Shows: SR-DEV-21 SR-DEV-20 SR-DEV-26 */
static void test_flags_ask_without_the_feature(void **state)
{
	struct bench *b = bench_open(state, SIZE, 0);

	vqb_device_disarm(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 1);
	vqb_device_arm(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 0);
	vqb_device_disarm(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 1);
	vqb_device_turn(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 0);
}

/* Shows: SR-DEV-26 SR-DEV-22 */
static void test_disarm_wants_no_kick_for_the_next_chain(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (int events = 0; events < 2; events++) {
		struct bench *b = bench_open(state, SIZE, features[events]);

		for (unsigned start = 0; start < 0x10000; start += 0x3333) {
			bench_stand_at(b, start);
			poke(b->ring.used, 0, 2);
			poke(b->ring.used + 4 + 8 * SIZE, start, 2);
			vqb_device_disarm(b->dev);
			assert_false(kick_wanted(b, start, events));
			vqb_device_arm(b->dev);
			assert_true(kick_wanted(b, start, events));
			vqb_device_disarm(b->dev);
			assert_false(kick_wanted(b, start, events));
			vqb_device_arm(b->dev);
			assert_true(kick_wanted(b, start, events));
			vqb_device_disarm(b->dev);
			vqb_device_turn(b->dev);
			assert_true(kick_wanted(b, start, events));
		}
	}
}

/* ---- turn ---- */

/* Shows: SR-DEV-28 SR-DEV-29 */
static void test_turn_needs_one_fence(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned events = 0; events < 2; events++) {
		struct bench *b = open_with_one_new(state, features[events]);
		const uint8_t *asked = events ? used_event(b) : b->ring.avail;
		const uint8_t *ask = events ? avail_event(b) : b->ring.used;

		vqb_device_disarm(b->dev);
		log_start();
		assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_first(used_idx(b), 2, 1)->fences, 0);
		assert_int_equal(log_first(ask, 2, 1)->fences, 0);
		assert_int_equal(log_first(asked, 2, 0)->fences, 1);
		assert_int_equal(log_first(avail_idx(b), 2, 0)->fences, 1);
		assert_int_equal(log_all_loads(), 2);
		assert_int_equal(log_all_stores(), 2);
	}
}

static void test_turn_with_nothing_new_needs_one_fence(void **state)
{
	struct bench *b = open_with_one_new(state, EVENT_IDX);

	vqb_device_publish(b->dev);
	log_start();
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
	log_stop();
	assert_int_equal(probe_fences, 1);
	assert_int_equal(log_stores(used_idx(b), 2), 0);
	assert_int_equal(log_first(avail_idx(b), 2, 0)->fences, 1);
}

static void test_turn_answers_both(void **state)
{
	struct bench *b = open_with_one_new(state, EVENT_IDX);

	bench_offer_plain(b, 1);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY | VQB_MORE);
	assert_int_equal(vqb_device_turn(b->dev), VQB_MORE);
	bench_take_one(b);
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
}

static void test_turn_sees_a_chain_that_came_meanwhile(void **state)
{
	struct bench *b = open_with_one_new(state, 0);

	latecomer = b;
	probe_load = offer_late;
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY | VQB_MORE);
	probe_load = NULL;
	bench_take_one(b);
}

static void test_drain_cut_short_answers_more(void **state)
{
	struct bench *b = bench_open(state, SIZE, 0);

	for (unsigned head = 0; head < 3; head++)
		bench_offer_plain(b, head);
	bench_take_good(b, 2);
	assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, VQB_MORE);
	assert_int_equal(vqb_device_arm(b->dev), VQB_MORE);
}

/* ---- what is written ---- */

/* Every way to write the used ring, for all of `n` chains. */
static void busy(struct bench *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bench_offer_plain(b, i % SIZE);
		bench_put(b, bench_take_ticket(b), 0);
		vqb_device_disarm(b->dev);
		vqb_device_arm(b->dev);
		vqb_device_turn(b->dev);
		vqb_device_publish(b->dev);
	}
}

/* Shows: K12 */
static void test_event_words_are_left_alone_without_the_feature(void **state)
{
	struct bench *b = bench_open(state, SIZE, 0);

	assert_ptr_equal(avail_event(b), b->ring.used + 68);
	assert_ptr_equal(used_event(b), b->ring.avail + 20);
	poke(b->ring.used + 68, 0xa55a, 2);
	poke(b->ring.avail + 20, 0xa55a, 2);
	busy(b, 1000);
	assert_int_equal(raw_avail_event(&b->ring), 0xa55a);
	assert_int_equal(raw_used_event(&b->ring), 0xa55a);
}

static int flags_above_one;

static void watch_flags(const void *p, uint64_t v, unsigned bytes)
{
	const uint8_t *flags = latecomer->ring.used;

	if ((const uint8_t *)p < flags + 2 && (const uint8_t *)p + bytes > flags)
		flags_above_one |= (v & 0xffff) > 1;
}

/* Shows: SR-DEV-20 */
static void test_flags_are_never_more_than_one(void **state)
{
	struct bench *b = bench_open(state, SIZE, 0);

	latecomer = b;
	flags_above_one = 0;
	probe_store = watch_flags;
	busy(b, 50);
	probe_store = NULL;
	assert_false(flags_above_one);
	assert_true(raw_used_flags(&b->ring) <= 1);
}

/* Shows: SR-DEV-22 */
static void test_flags_stay_clear_with_the_feature(void **state)
{
	struct bench *b = bench_open(state, SIZE, EVENT_IDX);

	log_start();
	for (unsigned i = 0; i < 50; i++) {
		busy(b, 1);
		assert_int_equal(raw_used_flags(&b->ring), 0);
	}
	log_stop();
	for (unsigned i = 0; i < log_count; i++) {
		if (log_entry[i].store && log_touches(&log_entry[i], b->ring.used, 2))
			assert_int_equal(log_entry[i].value, 0);
	}
}

/* Nothing but the used ring is ever stored to. */
/* Shows: SR-ANY-02 SR-DEV-06 */
static void test_stores_stay_in_the_used_ring(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned events = 0; events < 2; events++) {
		struct bench *b = bench_open(state, SIZE, features[events]);
		unsigned entries;

		bench_stand_at(b, 0);
		log_start();
		busy(b, 50);
		log_stop();
		entries = log_stores(b->ring.used, USED_BYTES);
		assert_int_equal(log_all_stores(), entries);
		assert_int_not_equal(entries, 0);
	}
}

/* Shows: BF-ANY-03 SR-DEV-24 */
static void test_notification_without_a_cause_finds_nothing(void **state)
{
	struct bench *b = bench_open(state, SIZE, EVENT_IDX);

	vqb_device_turn(b->dev);
	for (unsigned i = 0; i < 10; i++) {
		bench_take_nothing(b);
		assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
	}
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

/* Shows: SR-DEV-25 */
static void test_chain_is_found_without_a_notification(void **state)
{
	struct bench *b = bench_open(state, SIZE, EVENT_IDX);

	vqb_device_disarm(b->dev);
	bench_take_nothing(b);
	bench_offer_plain(b, 2);
	bench_take_one(b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_publish_stores_fences_and_loads_once),
		bench_test(test_publish_of_nothing_new_costs_nothing),
		bench_test(test_expose_stores_the_index_and_nothing_else),
		bench_test(test_arm_asks_fences_and_looks_again),
		bench_test(test_arm_sees_a_chain_that_came_meanwhile),
		bench_test(test_event_is_the_next_entry_to_take),
		bench_test(test_flags_ask_without_the_feature),
		bench_test(test_disarm_wants_no_kick_for_the_next_chain),
		bench_test(test_turn_needs_one_fence),
		bench_test(test_turn_with_nothing_new_needs_one_fence),
		bench_test(test_turn_answers_both),
		bench_test(test_turn_sees_a_chain_that_came_meanwhile),
		bench_test(test_drain_cut_short_answers_more),
		bench_test(test_event_words_are_left_alone_without_the_feature),
		bench_test(test_flags_are_never_more_than_one),
		bench_test(test_flags_stay_clear_with_the_feature),
		bench_test(test_stores_stay_in_the_used_ring),
		bench_test(test_notification_without_a_cause_finds_nothing),
		bench_test(test_chain_is_found_without_a_notification),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
