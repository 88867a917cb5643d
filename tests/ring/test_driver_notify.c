/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_notify.c: whether publish and turn owe the device a notification. */
#include "driver_bench.h"

typedef uint32_t verb(struct vqb_driver *drv);

static void add_some(struct bench *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		bench_add(b, 1, 1, 0);
}

static void finish_all(struct bench *b)
{
	bench_serve(b);
	while (vqb_driver_in_flight(b->drv))
		bench_reap(b);
}

/* Brings the index, and the last decision, to `idx` (after at least one request). */
static void advance_to(struct bench *b, unsigned idx)
{
	bench_round(b);
	bench_rounds(b, (idx - raw_avail_idx(&b->raw)) & 0xffff);
	assert_int_equal(raw_avail_idx(&b->raw), idx);
	vqb_driver_publish(b->drv);
}

/* The decision when the index moves from `old` to `new` and the device wants `event`. */
static uint32_t decide(verb *publish, unsigned event, unsigned old, unsigned new)
{
	struct bench b;
	uint32_t answer;

	bench_open(&b, 32, EVENT_MODE);
	advance_to(&b, old);
	bench_set_avail_event(&b, event);
	add_some(&b, (new - old) & 0xffff);
	answer = publish(b.drv) & VQB_NOTIFY;
	assert_int_equal(raw_avail_idx(&b.raw), new);
	bench_close(&b);
	return answer;
}

/* Shows: SR-DRV-29 SR-DRV-30 K10 */
static void test_decisions_follow_the_table_of_the_format(void **state)
{
	static const struct {
		unsigned event, old, new, need;
	} rows[] = {
		/* event, old, new, need */
		{ 0, 0, 1, 1 },
		{ 0, 0, 2, 1 },
		{ 0, 1, 2, 0 },
		{ 5, 5, 6, 1 },
		{ 5, 5, 5, 0 },
		{ 5, 5, 8, 1 },
		{ 5, 6, 8, 0 },
		{ 65535, 65535, 0, 1 },
		{ 65535, 65534, 1, 1 },
		{ 65534, 65535, 1, 0 },
		{ 10, 65530, 4, 0 },
		/* where a wider type, or a plain comparison, gives something else */
		{ 0, 65535, 2, 1 },
		{ 10, 0, 5, 0 },
		{ 3, 6, 7, 0 },
		{ 65534, 65534, 1, 1 },
		{ 32767, 32767, 32769, 1 },
		{ 32769, 32766, 32769, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t need = rows[i].need ? VQB_NOTIFY : VQB_QUIET;

		assert_int_equal(
			decide(vqb_driver_publish, rows[i].event, rows[i].old, rows[i].new), need);
		assert_int_equal(decide(vqb_driver_turn, rows[i].event, rows[i].old, rows[i].new),
				 need);
	}
}

/* Batches of all sizes, events near and far, four times round. Shows: SR-DRV-29 SR-DRV-30 */
static void test_decisions_follow_a_model_that_looks_at_each_slot(void **state)
{
	unsigned decided, notified = 0, rounds = 0;
	uint64_t seed = 5;
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	advance_to(&b, 65000);
	for (decided = 65000; decided < 4 * 65536; rounds++) {
		unsigned count = bench_random(&seed, 17);
		unsigned event = decided + bench_random(&seed, 24) - 4;
		uint32_t need = bench_meets(event, decided, decided + count);
		verb *publish = bench_random(&seed, 2) ? vqb_driver_publish : vqb_driver_turn;

		bench_set_avail_event(&b, event);
		poke(b.raw.used, 1, 2); /* means nothing in this mode */
		add_some(&b, count);
		assert_int_equal(publish(b.drv) & VQB_NOTIFY, need);
		decided += count;
		notified += need;
		finish_all(&b);
	}
	assert_true(notified > rounds / 8 && notified < rounds - rounds / 8);
	bench_close(&b);
}

/* Shows: SR-DRV-28 */
static void test_with_events_the_flag_means_nothing(void **state)
{
	struct bench b;

	(void)state;
	for (unsigned flags = 0; flags < 4; flags++) {
		bench_open(&b, 8, EVENT_MODE);
		bench_round(&b);
		bench_set_used_flags(&b, flags);
		bench_set_avail_event(&b, 1);
		add_some(&b, 1);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
		add_some(&b, 1);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-25 SR-DRV-26 SR-DRV-27 */
static void test_without_events_the_flag_decides_alone(void **state)
{
	static const unsigned flags[] = { 0, 1, 0xfffe, 0xffff, 2, 3 };
	struct bench b;

	(void)state;
	for (unsigned event = 0; event < 70; event++) {
		bench_open(&b, 8, FLAGS_MODE);
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
			uint32_t need = flags[i] & 1 ? VQB_QUIET : VQB_NOTIFY;

			bench_set_avail_event(&b, event * 947);
			bench_set_used_flags(&b, flags[i]);
			add_some(&b, 2);
			assert_int_equal(vqb_driver_publish(b.drv), need);
			add_some(&b, 1);
			assert_int_equal(vqb_driver_turn(b.drv) & VQB_NOTIFY, need);
			finish_all(&b);
		}
		bench_close(&b);
	}
}

static void test_nothing_new_is_nothing_to_announce(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };
	struct bench b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		bench_open(&b, 8, modes[i]);
		bench_set_avail_event(&b, 0);
		add_some(&b, 1);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
		for (unsigned event = 0; event < 4; event++) {
			bench_set_avail_event(&b, event);
			assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
			assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
		}
		bench_close(&b);
	}
}

/* No decision yet, so nobody knows what the device has seen: the first one is to notify. */
static void expect_first_is_notify(struct bench *b, verb *publish)
{
	bench_set_avail_event(b, 5000);
	add_some(b, 1);
	assert_int_equal(publish(b->drv) & VQB_NOTIFY, VQB_NOTIFY);
	add_some(b, 1);
	assert_int_equal(publish(b->drv) & VQB_NOTIFY, VQB_QUIET);
}

static void test_the_first_decision_is_to_notify(void **state)
{
	static verb *const verbs[] = { vqb_driver_publish, vqb_driver_turn };
	struct bench b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		bench_open(&b, 8, EVENT_MODE);
		expect_first_is_notify(&b, verbs[i]);
		finish_all(&b);
		assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
		assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
		bench_attach(&b, &b.config.ring);
		expect_first_is_notify(&b, verbs[i]);
		bench_close(&b);
	}
}

static void test_the_first_decision_heeds_the_flag_without_events(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_set_used_flags(&b, 1);
	add_some(&b, 1);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);

	bench_open(&b, 8, FLAGS_MODE);
	add_some(&b, 1);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	bench_close(&b);
}

/* Slot 1 is exposed, slot 2 published, and the device waits for slot 1. Shows: K13 SR-DRV-29 */
static void test_publish_decides_for_what_was_exposed_before(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_round(&b);
	bench_set_avail_event(&b, 1);
	add_some(&b, 1);
	vqb_driver_expose(b.drv);
	add_some(&b, 1);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	bench_close(&b);

	bench_open(&b, 8, EVENT_MODE);
	bench_round(&b);
	bench_set_avail_event(&b, 2);
	add_some(&b, 3);
	vqb_driver_expose(b.drv);
	vqb_driver_expose(b.drv);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY); /* nothing was added since */
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
}

/* Without events, too: what was exposed is announced by the next publish. Shows: SR-DRV-27 */
static void test_exposed_without_events_is_announced_once(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_round(&b);
	add_some(&b, 2);
	vqb_driver_expose(b.drv);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
}

/* Exposes `count` requests one ring full at a time, reaps them, and makes no decision. */
static void expose_without_decision(struct bench *b, unsigned long count)
{
	while (count) {
		unsigned batch = count < b->raw.size ? (unsigned)count : b->raw.size;

		add_some(b, batch);
		vqb_driver_expose(b->drv);
		finish_all(b);
		count -= batch;
	}
}

/* What publish says after `count` exposed requests with the event just past the last of them. */
static uint32_t decide_after(unsigned long count)
{
	struct bench b;
	uint32_t answer;

	bench_open(&b, 256, EVENT_MODE);
	bench_round(&b);
	expose_without_decision(&b, count);
	bench_set_avail_event(&b, raw_avail_idx(&b.raw));
	answer = vqb_driver_publish(b.drv);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);

	/* From here on all is as ever. */
	add_some(&b, 1);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	add_some(&b, 1);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
	return answer;
}

/* The difference of two indices can't tell 65536 from none, so too many are always announced. */
static void test_65535_exposed_since_the_last_decision_are_announced(void **state)
{
	(void)state;
	assert_int_equal(decide_after(100), VQB_QUIET);
	assert_int_equal(decide_after(65534), VQB_QUIET);
	assert_int_equal(decide_after(65535), VQB_NOTIFY);
	assert_int_equal(decide_after(65536), VQB_NOTIFY);
	assert_int_equal(decide_after(65537), VQB_NOTIFY);
	assert_int_equal(decide_after(65536 + 1000), VQB_NOTIFY);
	assert_int_equal(decide_after(2 * 65536), VQB_NOTIFY);
}

/*
 * N = 16 and 8 requests of 3 descriptors: five fit, the sixth does not. What fitted is exposed and
 * announced then, and the other three have left no trace. Shows: K13
 */
static void test_a_batch_that_ends_early_is_announced(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };
	struct bench b;

	(void)state;
	for (int i = 0; i < 2; i++) {
		uintptr_t n = 0;

		bench_open(&b, 16, modes[i]);
		while (n < 8 && bench_try_add(&b, n, 1, 2) == VQB_OK)
			n++;
		assert_int_equal(n, 5);
		assert_int_equal(vqb_driver_free(b.drv), 1);
		assert_int_equal(raw_avail_idx(&b.raw), 0);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
		assert_int_equal(raw_avail_idx(&b.raw), 5);
		for (n = 0; n < 5; n++)
			bench_expect_direct(&b, bench_take(&b), n, 1, 2);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-31 SR-DRV-27 */
static void test_a_batch_is_announced_at_most_once(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	add_some(&b, 8);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	assert_int_equal(bench_visible(&b), 8);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions_follow_the_table_of_the_format),
		cmocka_unit_test(test_decisions_follow_a_model_that_looks_at_each_slot),
		cmocka_unit_test(test_with_events_the_flag_means_nothing),
		cmocka_unit_test(test_without_events_the_flag_decides_alone),
		cmocka_unit_test(test_nothing_new_is_nothing_to_announce),
		cmocka_unit_test(test_the_first_decision_is_to_notify),
		cmocka_unit_test(test_the_first_decision_heeds_the_flag_without_events),
		cmocka_unit_test(test_publish_decides_for_what_was_exposed_before),
		cmocka_unit_test(test_exposed_without_events_is_announced_once),
		cmocka_unit_test(test_65535_exposed_since_the_last_decision_are_announced),
		cmocka_unit_test(test_a_batch_that_ends_early_is_announced),
		cmocka_unit_test(test_a_batch_is_announced_at_most_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
