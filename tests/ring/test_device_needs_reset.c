/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device_needs_reset.c: a device that gives up on its own account. */
#include "device_bench.h"

static void expect_stopped(struct bench *b)
{
	struct vqb_reason why = { .rule = 99 };
	struct vqb_chain chain;
	uint8_t *before = bench_snapshot(b);

	assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_NEEDS_RESET);
	assert_int_equal(why.rule, 99);
	assert_int_equal(bench_take(b, 4), VQB_E_NEEDS_RESET);
	assert_int_equal(b->taken, 0);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_NEEDS_RESET);
	assert_int_equal(vqb_device_pending(b->dev), 0);
	assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
	vqb_device_disarm(b->dev);
	bench_assert_unchanged(b, before);
}

static void test_nothing_more_is_taken(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned m = 0; m < 2; m++) {
		struct bench *b = bench_open(state, 8, features[m]);

		bench_offer_plain(b, 0);
		bench_offer_plain(b, 1);
		bench_take_one(b);
		bench_offer_plain(b, 2);
		vqb_device_needs_reset(b->dev);
		expect_stopped(b);
		vqb_device_needs_reset(b->dev);
		expect_stopped(b);
	}
}

static void test_what_is_out_still_returns(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_device_saved saved;
	struct vqb_ticket ticket[3];

	for (unsigned i = 0; i < 3; i++) {
		bench_offer_writable(b, i);
		ticket[i] = bench_take_ticket(b);
	}
	bench_offer_plain(b, 3);
	vqb_device_needs_reset(b->dev);
	bench_put(b, ticket[1], 5);
	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	bench_assert_used(b, 0, 1, 5);
	bench_put(b, ticket[0], 6);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY); /* and not MORE */
	bench_assert_used(b, 1, 0, 6);
	bench_put(b, ticket[2], 7);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 2, 2, 7);
	assert_int_equal(raw_used_idx(&b->ring), 3);
	assert_int_equal(vqb_device_put(b->dev, ticket[2], 7), VQB_E_STALE);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_NEEDS_RESET);
}

static void test_a_reset_cures_it(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket old;

	bench_offer_plain(b, 0);
	old = bench_take_ticket(b);
	vqb_device_needs_reset(b->dev);
	memset(b->low, 0, REGION_BYTES);
	b->offered = 0;
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_device_put(b->dev, old, 0), VQB_E_STALE);
	bench_offer_plain(b, 0);
	bench_serve(b, 1);
	assert_int_equal(raw_used_idx(&b->ring), 1);
}

static void test_without_a_ring_it_is_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	vqb_device_needs_reset(b->dev);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	bench_take_nothing(b);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	bench_offer_plain(b, 0);
	bench_serve(b, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_nothing_more_is_taken),
		bench_test(test_what_is_out_still_returns),
		bench_test(test_a_reset_cures_it),
		bench_test(test_without_a_ring_it_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
