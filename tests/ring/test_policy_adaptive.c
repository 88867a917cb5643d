/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_policy_adaptive.c: what the adaptive policy does on its own, and what it learns from a
 * clock. The device of these tests works in rounds of 1000 ticks: up to `parallel` of the requests
 * that it has come back in one, in order.
 */
#include "policy_bench.h"

struct play {
	struct bench b;
	uint64_t clock;
	uint32_t parallel;
	uint32_t shallow;   /* if not 0: `parallel` while less is out than the load wants */
	bool shallow_kick;  /* asks to be notified then, and only then */
	uint32_t in_flight; /* in the last round, after adding */
	uint64_t reaped;
};

static uint64_t read_clock(void *context)
{
	return *(const uint64_t *)context;
}

/* `clocked` false: a clock that says 0, which is none. */
static void play_open(struct play *p, uint32_t size, uint32_t parallel, bool clocked)
{
	static uint64_t none;

	memset(p, 0, sizeof(*p));
	p->clock = clocked ? 1 : 0;
	p->parallel = parallel;
	policy_configure(&p->b, size, VQB_INDIRECT_ADAPTIVE);
	p->b.policy.clock = read_clock;
	p->b.policy.context = clocked ? &p->clock : &none;
	bench_start(&p->b);
}

/* One round: up to `depth` requests of `n` segments are kept out. */
static void play_round(struct play *p, uint32_t n, uint32_t depth)
{
	struct vqb_done done[128];
	uint32_t count = 0, parallel = p->parallel;

	while (vqb_driver_in_flight(p->b.drv) < depth)
		if (bench_try_add(&p->b, 1, 1, n - 1))
			break;
	p->in_flight = vqb_driver_in_flight(p->b.drv);
	if (p->shallow && p->in_flight < depth)
		parallel = p->shallow;
	bench_set_avail_event(&p->b, raw_avail_idx(&p->b.raw) -
					     (p->shallow_kick && p->in_flight < depth ? 0 : 1));
	vqb_driver_publish(p->b.drv);
	while (bench_visible(&p->b) && count < parallel) {
		bench_give(&p->b, bench_take(&p->b), 0);
		count++;
	}
	p->clock += 1000;
	assert_int_equal(vqb_driver_reap(p->b.drv, done, 128), count);
	p->reaped += count;
}

static void play_rounds(struct play *p, uint32_t n, uint32_t depth, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		play_round(p, n, depth);
}

/* Of the next rounds, how many have all that the load wants in flight. */
static uint32_t play_full_rounds(struct play *p, uint32_t n, uint32_t depth, uint32_t rounds)
{
	uint32_t full = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		play_round(p, n, depth);
		full += p->in_flight == depth;
	}
	return full;
}

/* Requests that have gone through tables for want of room. */
static uint64_t tables_for_room(const struct play *p)
{
	struct vqb_driver_counters c = policy_counters(&p->b);

	return c.indirect_chosen + c.indirect_no_room;
}

static uint64_t play_tables(struct play *p, uint32_t n, uint32_t depth, uint32_t rounds)
{
	uint64_t before = tables_for_room(p);

	play_rounds(p, n, depth, rounds);
	return tables_for_room(p) - before;
}

/* ---- without a clock ---- */

/* 4 KiB: header, data, status. */
static void test_a_small_request_on_an_idle_ring_goes_direct(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 1, false);
	assert_int_equal(play_tables(&p, 3, 1, 1000), 0);
	bench_close(&p.b);
}

/* N = 8: descriptors 0 to 2, 3 to 5; then 6, 7, 0 and 7, 0, 1 would go round the end. */
static void test_a_request_that_would_lie_in_pieces_takes_a_table(void **state)
{
	static const unsigned goes[] = { 0, 0, 1, 1 };
	struct play p;

	(void)state;
	play_open(&p, 8, 1, false);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(policy_add(&p.b, 3), goes[i % 4]);
		policy_drain(&p.b);
	}
	assert_int_equal(policy_counters(&p.b).indirect_whole, 20);
	assert_int_equal(policy_counters(&p.b).indirect, 20);
	bench_close(&p.b);
}

/*
 * N = 256. Requests of 18: after 14, four entries are left up to the end of the ring, which four
 * tables take. Of 20: after 12, 16 are left, and a request in pieces gets past them at once.
 */
static void test_tables_get_past_a_short_end_and_pieces_past_a_long_one(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 256, 1, false);
	for (unsigned i = 0; i < 180; i++) {
		assert_int_equal(policy_add(&p.b, 18), i % 18 > 13);
		policy_drain(&p.b);
	}
	assert_int_equal(policy_counters(&p.b).indirect_whole, 40);
	bench_close(&p.b);

	play_open(&p, 256, 1, false);
	for (unsigned i = 0; i < 13; i++) {
		assert_int_equal(policy_add(&p.b, 20), 0);
		policy_drain(&p.b);
	}
	bench_close(&p.b);
}

/* Eight entries are short, nine are not. */
static void test_an_end_of_nine_entries_is_long(void **state)
{
	struct play p;

	(void)state;
	for (uint32_t left = 8; left <= 9; left++) {
		play_open(&p, 256, 1, false);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(policy_add(&p.b, i < 7 ? 32 : 32 - left), 0);
			policy_drain(&p.b);
		}
		assert_int_equal(policy_add(&p.b, 12), left == 8);
		bench_close(&p.b);
	}
}

/* An eighth of the ring, but at least 16. */
static void test_what_is_long_for_the_ring_takes_a_table(void **state)
{
	static const uint32_t longest[][2] = { { 64, 16 }, { 128, 16 }, { 256, 32 } };
	struct play p;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		play_open(&p, longest[i][0], 1, false);
		assert_int_equal(policy_add(&p.b, longest[i][1]), 0);
		assert_int_equal(policy_add(&p.b, longest[i][1] + 1), 1);
		assert_int_equal(policy_counters(&p.b).indirect_chosen, 1);
		bench_close(&p.b);
	}
}

/* The second of eight comes back first, so that what is free has a hole. */
static void test_what_would_lie_around_a_hole_takes_a_table(void **state)
{
	unsigned second;
	struct play p;

	(void)state;
	play_open(&p, 256, 1, false);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(policy_add(&p.b, i ? 30 : 20), 0);
	vqb_driver_publish(p.b.drv);
	(void)bench_take(&p.b);
	second = bench_take(&p.b);
	bench_give(&p.b, second, 0);
	bench_reap(&p.b);
	assert_int_equal(vqb_driver_free(p.b.drv), 56);
	assert_int_equal(policy_add(&p.b, 30), 1);
	assert_int_equal(policy_counters(&p.b).indirect_whole, 1);
	bench_close(&p.b);
}

/* 256 KiB: 66 segments, of which a ring of 128 could hold one request directly. */
static void test_long_requests_share_a_short_ring(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 32, false);
	assert_int_equal(play_full_rounds(&p, 66, 64, 1000), 1000);
	bench_close(&p.b);
}

static void test_all_goes_direct_where_there_is_room_for_all(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 256, 64, false);
	assert_int_equal(play_tables(&p, 3, 64, 1000), 0);
	bench_close(&p.b);
}

/* N = 128: 32 requests of 3 and 32 tables fill it as well as 64 tables do. */
static void test_no_more_tables_are_used_than_the_peak_needs(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 64, false);
	play_rounds(&p, 3, 64, 100);
	assert_int_equal(play_full_rounds(&p, 3, 64, 100), 100);
	assert_int_equal(play_tables(&p, 3, 64, 100), 100 * 32);
	bench_close(&p.b);
}

static void test_a_peak_that_is_over_is_forgotten(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 64, 64, false);
	play_rounds(&p, 6, 32, 100);
	assert_true(play_tables(&p, 6, 32, 100) > 0);
	play_rounds(&p, 6, 4, 1000);
	assert_int_equal(play_tables(&p, 6, 4, 1000), 0);
	bench_close(&p.b);
}

static void test_without_a_clock_nothing_is_tried(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 16, false);
	play_rounds(&p, 3, 64, 10);
	assert_int_equal(play_full_rounds(&p, 3, 64, 20000), 20000);
	bench_close(&p.b);
}

/* ---- with one ---- */

/* 44 requests of 3 fit plainly, and the device does no more than 16 at once. */
static void test_room_that_does_not_help_is_not_paid_for(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 16, true);
	play_rounds(&p, 3, 64, 2000);
	assert_int_equal(play_full_rounds(&p, 3, 64, 100), 0);
	assert_true(play_tables(&p, 3, 64, 1000) < 1000);
	bench_close(&p.b);
}

static void test_room_that_helps_is_kept(void **state)
{
	struct play p;
	uint64_t before;

	(void)state;
	play_open(&p, 128, 64, true);
	play_rounds(&p, 3, 64, 10000);
	before = p.reaped;
	assert_true(play_full_rounds(&p, 3, 64, 10000) > 9900);
	assert_true((p.reaped - before) * 100 >= 10000 * 64 * UINT64_C(99));
	bench_close(&p.b);
}

/* A trial is a row of rounds that are not full. The first ones come soon, then ever later. */
static void test_trials_that_fail_come_ever_later(void **state)
{
	uint32_t last = 0, gap = 0, trials = 0;
	bool full = true;
	struct play p;

	(void)state;
	play_open(&p, 128, 64, true);
	play_rounds(&p, 3, 64, 10);
	for (uint32_t i = 0; i < 10000; i++) {
		bool was = full;

		play_round(&p, 3, 64);
		full = p.in_flight == 64;
		if (!was || full)
			continue;
		if (trials >= 2 && i - last < 8192)
			assert_true(i - last >= gap + gap / 2);
		gap = i - last;
		last = i;
		trials++;
	}
	assert_true(trials >= 6 && trials <= 10);
	bench_close(&p.b);
}

/* A trial that is four times slower ends within few rounds, not after a window of 1024. */
static void test_a_trial_that_is_clearly_slower_is_cut_short(void **state)
{
	uint32_t longest = 0, row = 0;
	struct play p;

	(void)state;
	play_open(&p, 128, 128, true);
	play_rounds(&p, 6, 128, 10);
	for (uint32_t i = 0; i < 2000; i++) {
		play_round(&p, 6, 128);
		row = p.in_flight < 128 ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	assert_true(longest >= 2 && longest <= 12);
	bench_close(&p.b);
}

/* The device gets wider: being plain has become slower, which a trial of being sparing shows. */
static void test_a_plain_queue_tries_the_other_way_too(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 16, true);
	play_rounds(&p, 3, 64, 2000);
	assert_int_equal(play_full_rounds(&p, 3, 64, 100), 0);
	p.parallel = 64;
	play_rounds(&p, 3, 64, 20000);
	assert_true(play_full_rounds(&p, 3, 64, 1000) > 900);
	bench_close(&p.b);
}

/* As above, but what is saved on tables would be paid for twice in notifications. */
static void test_a_plain_queue_may_not_owe_more_notifications(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 16, true);
	p.shallow_kick = true;
	play_rounds(&p, 3, 64, 10000);
	assert_true(play_full_rounds(&p, 3, 64, 10000) > 9000);
	bench_close(&p.b);
}

/* It was as fast in its trial, but does not stay so. */
static void test_a_plain_queue_that_becomes_slower_is_sparing_again(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 128, 16, true);
	play_rounds(&p, 3, 64, 2000);
	assert_int_equal(play_full_rounds(&p, 3, 64, 100), 0);
	p.shallow = 14;
	play_rounds(&p, 3, 64, 200);
	assert_int_equal(play_full_rounds(&p, 3, 64, 100), 100);
	bench_close(&p.b);
}

/* What was learnt with 32 out at once does not hold with 15, and is tried again soon. */
static void test_a_changed_load_is_tried_again_soon(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 32, 64, true);
	play_rounds(&p, 3, 32, 20000);
	assert_true(play_full_rounds(&p, 3, 32, 1000) > 950);
	p.parallel = 4;
	play_rounds(&p, 3, 15, 800);
	assert_int_equal(play_full_rounds(&p, 3, 15, 100), 0);
	bench_close(&p.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_small_request_on_an_idle_ring_goes_direct),
		cmocka_unit_test(test_a_request_that_would_lie_in_pieces_takes_a_table),
		cmocka_unit_test(test_tables_get_past_a_short_end_and_pieces_past_a_long_one),
		cmocka_unit_test(test_an_end_of_nine_entries_is_long),
		cmocka_unit_test(test_what_is_long_for_the_ring_takes_a_table),
		cmocka_unit_test(test_what_would_lie_around_a_hole_takes_a_table),
		cmocka_unit_test(test_long_requests_share_a_short_ring),
		cmocka_unit_test(test_all_goes_direct_where_there_is_room_for_all),
		cmocka_unit_test(test_no_more_tables_are_used_than_the_peak_needs),
		cmocka_unit_test(test_a_peak_that_is_over_is_forgotten),
		cmocka_unit_test(test_without_a_clock_nothing_is_tried),
		cmocka_unit_test(test_room_that_does_not_help_is_not_paid_for),
		cmocka_unit_test(test_room_that_helps_is_kept),
		cmocka_unit_test(test_trials_that_fail_come_ever_later),
		cmocka_unit_test(test_a_trial_that_is_clearly_slower_is_cut_short),
		cmocka_unit_test(test_a_plain_queue_tries_the_other_way_too),
		cmocka_unit_test(test_a_plain_queue_may_not_owe_more_notifications),
		cmocka_unit_test(test_a_plain_queue_that_becomes_slower_is_sparing_again),
		cmocka_unit_test(test_a_changed_load_is_tried_again_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
