/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decision to notify the driver: by flags, by event index, over batches, and the notification
 * that is owed after a start.
 */
#include "device_bench.h"

static void set_flags(struct bench *b, unsigned flags)
{
	poke(b->ring.avail, flags, 2);
}

static void set_used_event(struct bench *b, unsigned event)
{
	poke(b->ring.avail + 4 + 2 * (size_t)b->ring.size, event, 2);
}

/* Makes the decision that is owed after init or restore, so that the next one counts for itself. */
static void settle(struct bench *b)
{
	vqb_device_publish(b->dev);
}

/* Takes and puts `n` chains in batches, without exposing them. */
static void complete(struct bench *b, unsigned n)
{
	while (n) {
		unsigned batch = n < b->ring.size ? n : b->ring.size;

		for (unsigned head = 0; head < batch; head++)
			bench_offer_plain(b, head);
		for (unsigned got = 0; got < batch; got += b->taken) {
			assert_int_equal(bench_take(b, BENCH_CHAINS), VQB_OK);
			assert_int_not_equal(b->taken, 0);
			for (uint32_t i = 0; i < b->taken; i++)
				bench_put(b, b->chain[i].ticket, 0);
		}
		n -= batch;
		if (n)
			vqb_device_expose(b->dev);
	}
}

/* What publish decides of `n` completions after a decision at index `old`. */
static uint32_t decide(struct bench *b, unsigned old, unsigned n, unsigned event)
{
	bench_stand_at(b, old);
	settle(b);
	set_used_event(b, event);
	complete(b, n);
	return vqb_device_publish(b->dev);
}

/* ---- by flags ---- */

/* Shows: SR-DEV-10 SR-DEV-11 */
static void test_flags_decide_without_the_feature(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	settle(b);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	set_flags(b, 1);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	set_flags(b, 0);
	complete(b, 5);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

/* Shows: SR-DEV-09 K12 */
static void test_event_word_is_ignored_without_the_feature(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	settle(b);
	for (unsigned event = 0; event < 0x10000; event += 0x111) {
		set_used_event(b, event);
		set_flags(b, event & 1);
		complete(b, 1);
		assert_int_equal(vqb_device_publish(b->dev), event & 1 ? VQB_QUIET : VQB_NOTIFY);
	}
}

/* ---- by event index ---- */

/* Shows: SR-DEV-12 */
static void test_flags_are_ignored_with_the_feature(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	set_flags(b, 1);
	assert_int_equal(decide(b, 10, 1, 10), VQB_NOTIFY);
	assert_int_equal(decide(b, 10, 1, 11), VQB_QUIET);
	set_flags(b, 0);
	assert_int_equal(decide(b, 10, 1, 11), VQB_QUIET);
}

/* Shows: K10 SR-DEV-13 SR-DEV-14 */
static void test_event_arithmetic_wraps(void **state)
{
	static const struct {
		unsigned event, new, old;
		uint32_t answer;
	} row[] = {
		{ 0, 2, 65535, VQB_NOTIFY },     { 10, 5, 0, VQB_QUIET },
		{ 65535, 0, 65535, VQB_NOTIFY }, { 3, 7, 6, VQB_QUIET },
		{ 65534, 1, 65534, VQB_NOTIFY }, { 5, 5, 5, VQB_QUIET },
		{ 0, 2, 0, VQB_NOTIFY },         { 0, 2, 1, VQB_QUIET },
		{ 5, 8, 5, VQB_NOTIFY },         { 5, 8, 6, VQB_QUIET },
		{ 65535, 1, 65534, VQB_NOTIFY }, { 65534, 1, 65535, VQB_QUIET },
		{ 10, 4, 65530, VQB_QUIET },
	};
	struct bench *b = bench_open(state, 16, EVENT_IDX);

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		unsigned n = (row[i].new - row[i].old) & 0xffff;

		assert_int_equal(decide(b, row[i].old, n, row[i].event), row[i].answer);
	}
}

/* Is one of the entries old, old + 1, ..., old + n - 1 the event? */
static int batch_holds(unsigned old, unsigned n, unsigned event)
{
	for (unsigned i = 0; i < n; i++) {
		if (((old + i) & 0xffff) == (event & 0xffff))
			return 1;
	}
	return 0;
}

/* Shows: SR-DEV-13 SR-DEV-14 */
static void test_decision_equals_a_look_at_each_entry(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	for (unsigned old = 65530; old < 65536 + 5; old++) {
		for (unsigned n = 1; n <= 8; n++) {
			for (unsigned event = old - 3; event < old + n + 3; event++) {
				uint32_t answer = decide(b, old & 0xffff, n, event & 0xffff);

				assert_int_equal(answer, batch_holds(old, n, event) ? VQB_NOTIFY
										    : VQB_QUIET);
			}
		}
	}
}

/* ---- what is old ---- */

static void test_batch_cut_short_by_expose_loses_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	settle(b);
	set_used_event(b, 0);
	complete(b, 1);
	vqb_device_expose(b->dev);
	complete(b, 2);
	vqb_device_expose(b->dev);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

static void test_publish_decides_of_what_was_only_exposed(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	settle(b);
	set_used_event(b, 0);
	complete(b, 3);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

static void test_turn_decides_of_what_was_only_exposed(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	settle(b);
	set_used_event(b, 0);
	complete(b, 3);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
}

static void test_quiet_decision_counts_as_one(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	settle(b);
	set_used_event(b, 1);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	set_used_event(b, 0);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

/* What publish decides of `n` exposures, the last of which leaves the index at the event. */
static uint32_t decide_of_many(struct bench *b, unsigned n)
{
	bench_stand_at(b, 0);
	settle(b);
	complete(b, n);
	set_used_event(b, n & 0xffff);
	return vqb_device_publish(b->dev);
}

static void test_as_many_exposures_as_the_index_has_values_are_announced(void **state)
{
	struct bench *b = bench_open(state, 512, EVENT_IDX);

	assert_int_equal(decide_of_many(b, 65534), VQB_QUIET);
	assert_int_equal(decide_of_many(b, 65535), VQB_NOTIFY);
	assert_int_equal(decide_of_many(b, 65536), VQB_NOTIFY);
	assert_int_equal(decide_of_many(b, 65537), VQB_NOTIFY);
	assert_int_equal(decide_of_many(b, 2 * 65536 + 2), VQB_NOTIFY);
	set_used_event(b, 7);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

static void test_turn_announces_as_many_exposures_too(void **state)
{
	struct bench *b = bench_open(state, 512, EVENT_IDX);

	settle(b);
	complete(b, 65536);
	set_used_event(b, 7);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
}

/* ---- what is owed after a start ---- */

static void test_first_decision_notifies_with_nothing_new(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	set_used_event(b, 0x7fff);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	bench_stand_at(b, 100);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

static void test_first_decision_notifies_in_turn_too(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	set_used_event(b, 0x7fff);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
	bench_stand_at(b, 100);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

static void test_expose_does_not_settle_what_is_owed(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	set_used_event(b, 0x7fff);
	complete(b, 1);
	vqb_device_expose(b->dev);
	vqb_device_arm(b->dev);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
}

static void test_first_decision_heeds_the_flags_without_the_feature(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	set_flags(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
}

/* Shows: K11 */
static void test_first_completion_after_restore_is_announced(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	bench_stand_at(b, 100);
	set_used_event(b, 99);
	complete(b, 1);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(raw_used_idx(&b->ring), 101);
}

/* ---- which mode ---- */

/* Shows: K12 */
static void test_mode_goes_by_bit_29_alone(void **state)
{
	static const struct {
		uint64_t features;
		int events;
	} row[] = {
		{ 0, 0 },
		{ 1, 0 },
		{ 29, 0 },
		{ ~EVENT_IDX & (VQB_RING_FEATURES | 0xffffff), 0 },
		{ UINT64_C(1) << 29, 1 },
		{ VQB_RING_FEATURES, 1 },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bench *b = bench_open(state, 8, row[i].features);

		set_flags(b, 1);
		assert_int_equal(decide(b, 0, 1, 0), row[i].events ? VQB_NOTIFY : VQB_QUIET);
		set_flags(b, 0);
		assert_int_equal(decide(b, 0, 1, 9), row[i].events ? VQB_QUIET : VQB_NOTIFY);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_flags_decide_without_the_feature),
		bench_test(test_event_word_is_ignored_without_the_feature),
		bench_test(test_flags_are_ignored_with_the_feature),
		bench_test(test_event_arithmetic_wraps),
		bench_test(test_decision_equals_a_look_at_each_entry),
		bench_test(test_batch_cut_short_by_expose_loses_nothing),
		bench_test(test_publish_decides_of_what_was_only_exposed),
		bench_test(test_turn_decides_of_what_was_only_exposed),
		bench_test(test_quiet_decision_counts_as_one),
		bench_test(test_as_many_exposures_as_the_index_has_values_are_announced),
		bench_test(test_turn_announces_as_many_exposures_too),
		bench_test(test_first_decision_notifies_with_nothing_new),
		bench_test(test_first_decision_notifies_in_turn_too),
		bench_test(test_expose_does_not_settle_what_is_owed),
		bench_test(test_first_decision_heeds_the_flags_without_the_feature),
		bench_test(test_first_completion_after_restore_is_announced),
		bench_test(test_mode_goes_by_bit_29_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
