/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_postpone.c: arm, disarm, postpone and turn: when the device is asked to notify. */
#include "driver_bench.h"

/* Exposes `count` requests of one segment and takes them for the device. */
static void send(struct bench *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		bench_add(b, i, 1, 0);
	vqb_driver_publish(b->drv);
	while (bench_visible(b))
		bench_take(b);
}

/* The device completes the next `count`, in order. */
static void complete(struct bench *b, unsigned count)
{
	while (count--)
		bench_give(b, raw_avail_entry(&b->raw, b->used), 0);
}

static void reap(struct bench *b, unsigned count)
{
	while (count--)
		bench_reap(b);
}

/* A queue in mode `features` that has reaped `reaped` requests and has `out` more in flight. */
static void open_with(struct bench *b, uint64_t features, unsigned reaped, unsigned out)
{
	bench_open(b, 64, features);
	bench_rounds(b, reaped);
	send(b, out);
}

/* How many completions from now the device would notify for; 0: for none of the next 65535. */
static unsigned notified_after(const struct bench *b)
{
	return (raw_used_event(&b->raw) + 1u - b->used) & 0xffff;
}

/* ---- with events ---- */

/* Shows: SR-DRV-17 SR-DRV-18 */
static void test_arm_asks_for_the_next_completion(void **state)
{
	static const unsigned reaped[] = { 0, 1, 7, 64, 32767, 65535, 65536, 70000 };
	struct bench b;

	(void)state;
	for (size_t i = 0; i < sizeof(reaped) / sizeof(reaped[0]); i++) {
		open_with(&b, EVENT_MODE, reaped[i], 4);
		vqb_driver_disarm(b.drv);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		assert_int_equal(raw_used_event(&b.raw), reaped[i] & 0xffff);
		assert_int_equal(raw_avail_flags(&b.raw), 0);
		complete(&b, 1);
		reap(&b, 1);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		assert_int_equal(raw_used_event(&b.raw), (reaped[i] + 1) & 0xffff);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-37 */
static void test_arm_says_when_completions_are_there_already(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };
	struct bench b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_with(&b, modes[i], 65535, 4);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		complete(&b, 1);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_MORE);
		complete(&b, 3);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_MORE);
		reap(&b, 3);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_MORE);
		reap(&b, 1);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-17 SR-DRV-36 */
static void test_disarm_with_events_silences_all_that_is_in_flight(void **state)
{
	struct bench b;

	(void)state;
	for (unsigned reaped = 0; reaped < 70000; reaped += 13107) {
		open_with(&b, EVENT_MODE, reaped, 64);
		vqb_driver_arm(b.drv);
		vqb_driver_disarm(b.drv);
		assert_int_equal(raw_avail_flags(&b.raw), 0);
		assert_false(bench_meets(raw_used_event(&b.raw), b.used, b.used + 64));
		complete(&b, 64);
		reap(&b, 64);
		bench_close(&b);
	}
}

/* After how many completions from now the device would notify, having been asked with `intent`. */
static unsigned ask(struct bench *b, uint32_t intent)
{
	vqb_driver_disarm(b->drv);
	assert_int_equal(vqb_driver_postpone(b->drv, intent), VQB_QUIET);
	assert_int_equal(raw_avail_flags(&b->raw), 0);
	return notified_after(b);
}

static unsigned postponed(uint32_t intent, unsigned reaped, unsigned out)
{
	struct bench b;
	unsigned after;

	open_with(&b, EVENT_MODE, reaped, out);
	after = ask(&b, intent);
	bench_close(&b);
	return after;
}

/* Shows: SR-DRV-18 */
static void test_postpone_is_about_a_share_of_what_is_in_flight(void **state)
{
	static const unsigned reaped[] = { 0, 3, 65500, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(reaped) / sizeof(reaped[0]); i++) {
		struct bench b;

		open_with(&b, EVENT_MODE, reaped[i], 0);
		for (unsigned out = 1; out <= 64; out++) {
			unsigned brief, late;

			send(&b, 1);
			brief = ask(&b, VQB_POSTPONE_SHORT);
			late = ask(&b, VQB_POSTPONE_LONG);
			assert_int_equal(ask(&b, VQB_POSTPONE_EMPTIED), out);
			assert_true(1 <= brief && brief <= late && late <= out);
			assert_true(4 * brief <= out + 4 && 4 * brief + 4 >= out);
			assert_true(4 * late <= 3 * out + 4 && 4 * late + 4 >= 3 * out);
		}
		bench_close(&b);
	}
}

/* The request that the event names is the one that brings the notification. Shows: SR-DRV-18 */
static void test_postpone_until_emptied_names_the_last_one(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, EVENT_MODE, 10, 8);
	complete(&b, 3);
	reap(&b, 3);
	assert_int_equal(vqb_driver_postpone(b.drv, VQB_POSTPONE_EMPTIED), VQB_QUIET);
	assert_int_equal(raw_used_event(&b.raw), 17);
	complete(&b, 4);
	assert_int_equal(vqb_driver_postpone(b.drv, VQB_POSTPONE_EMPTIED), VQB_QUIET);
	complete(&b, 1);
	assert_int_equal(vqb_driver_postpone(b.drv, VQB_POSTPONE_EMPTIED), VQB_MORE);
	bench_close(&b);
}

/* Shows: SR-DRV-37 */
static void test_postpone_says_when_that_many_are_there_already(void **state)
{
	static const uint32_t intents[] = { VQB_POSTPONE_SHORT, VQB_POSTPONE_LONG,
					    VQB_POSTPONE_EMPTIED };

	(void)state;
	for (int i = 0; i < 3; i++) {
		unsigned wanted = postponed(intents[i], 65530, 32);
		struct bench b;

		open_with(&b, EVENT_MODE, 65530, 32);
		for (unsigned done = 0; done <= 32; done++) {
			assert_int_equal(vqb_driver_postpone(b.drv, intents[i]),
					 done >= wanted ? VQB_MORE : VQB_QUIET);
			if (done < 32)
				complete(&b, 1);
		}
		bench_close(&b);
	}
}

static void test_an_unknown_intent_is_short(void **state)
{
	static const uint32_t intents[] = { 3, 4, 256, 0x80000000, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof(intents) / sizeof(intents[0]); i++)
		assert_int_equal(postponed(intents[i], 5, 40),
				 postponed(VQB_POSTPONE_SHORT, 5, 40));
}

static void test_postpone_with_nothing_in_flight_is_for_the_next_one(void **state)
{
	(void)state;
	for (uint32_t intent = 0; intent < 3; intent++)
		assert_int_equal(postponed(intent, 9, 0), 1);
}

/* ---- without events ---- */

/* Shows: SR-DRV-15 SR-DRV-16 SR-DRV-36 */
static void test_without_events_there_is_the_flag_alone(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, FLAGS_MODE, 3, 8);
	poke(b.raw.avail + 4 + 2 * 64, 0xa55a, 2);
	assert_int_equal(raw_avail_flags(&b.raw), 0);
	for (int i = 0; i < 3; i++) {
		vqb_driver_disarm(b.drv);
		assert_int_equal(raw_avail_flags(&b.raw), 1);
		vqb_driver_disarm(b.drv);
		assert_int_equal(raw_avail_flags(&b.raw), 1);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		assert_int_equal(raw_avail_flags(&b.raw), 0);
		vqb_driver_disarm(b.drv);
		assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
		assert_int_equal(raw_avail_flags(&b.raw), 0);
	}
	assert_int_equal(raw_used_event(&b.raw), 0xa55a);
	bench_close(&b);
}

/* Shows: SR-DRV-15 SR-DRV-37 */
static void test_without_events_postpone_is_arm(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t intent = 0; intent < 4; intent++) {
		open_with(&b, FLAGS_MODE, 0, 8);
		vqb_driver_disarm(b.drv);
		assert_int_equal(vqb_driver_postpone(b.drv, intent), VQB_QUIET);
		assert_int_equal(raw_avail_flags(&b.raw), 0);
		complete(&b, 1);
		assert_int_equal(vqb_driver_postpone(b.drv, intent), VQB_MORE);
		bench_close(&b);
	}
}

/* ---- turn ---- */

static void test_turn_exposes_decides_arms_and_looks(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, EVENT_MODE, 65530, 8);
	complete(&b, 2);
	reap(&b, 2);
	bench_set_avail_event(&b, raw_avail_idx(&b.raw));
	bench_add(&b, 50, 1, 0);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_NOTIFY);
	assert_int_equal(raw_used_event(&b.raw), 65532);
	assert_int_equal(bench_visible(&b), 1);

	bench_add(&b, 51, 1, 0);
	complete(&b, 1);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_MORE);
	assert_int_equal(bench_visible(&b), 2);

	bench_set_avail_event(&b, raw_avail_idx(&b.raw));
	bench_add(&b, 52, 1, 0);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_NOTIFY | VQB_MORE);
	reap(&b, 1);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
	assert_int_equal(raw_used_event(&b.raw), 65533);
	bench_close(&b);
}

static void test_turn_without_events(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, FLAGS_MODE, 5, 8);
	vqb_driver_disarm(b.drv);
	bench_set_used_flags(&b, 1);
	bench_add(&b, 50, 1, 0);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
	assert_int_equal(raw_avail_flags(&b.raw), 0);
	bench_set_used_flags(&b, 0);
	bench_add(&b, 51, 1, 0);
	complete(&b, 1);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_NOTIFY | VQB_MORE);
	assert_int_equal(bench_visible(&b), 2);
	bench_close(&b);
}

/* Publishing and reaping are no reason to ask for anything: only the four calls above are. */
static void test_nothing_else_changes_what_was_asked_for(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, EVENT_MODE, 5, 8);
	assert_int_equal(vqb_driver_postpone(b.drv, VQB_POSTPONE_EMPTIED), VQB_QUIET);
	assert_int_equal(raw_used_event(&b.raw), 12);
	complete(&b, 2);
	reap(&b, 2);
	bench_add(&b, 9, 1, 0);
	vqb_driver_expose(b.drv);
	vqb_driver_publish(b.drv);
	assert_int_equal(raw_used_event(&b.raw), 12);
	bench_close(&b);

	open_with(&b, FLAGS_MODE, 5, 8);
	vqb_driver_disarm(b.drv);
	complete(&b, 2);
	reap(&b, 2);
	bench_add(&b, 9, 1, 0);
	vqb_driver_publish(b.drv);
	assert_int_equal(raw_avail_flags(&b.raw), 1);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm_asks_for_the_next_completion),
		cmocka_unit_test(test_arm_says_when_completions_are_there_already),
		cmocka_unit_test(test_disarm_with_events_silences_all_that_is_in_flight),
		cmocka_unit_test(test_postpone_is_about_a_share_of_what_is_in_flight),
		cmocka_unit_test(test_postpone_until_emptied_names_the_last_one),
		cmocka_unit_test(test_postpone_says_when_that_many_are_there_already),
		cmocka_unit_test(test_an_unknown_intent_is_short),
		cmocka_unit_test(test_postpone_with_nothing_in_flight_is_for_the_next_one),
		cmocka_unit_test(test_without_events_there_is_the_flag_alone),
		cmocka_unit_test(test_without_events_postpone_is_arm),
		cmocka_unit_test(test_turn_exposes_decides_arms_and_looks),
		cmocka_unit_test(test_turn_without_events),
		cmocka_unit_test(test_nothing_else_changes_what_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
