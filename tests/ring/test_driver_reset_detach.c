/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_reset_detach.c: the end of one life of a queue and the beginning of the next. */
#include "driver_bench.h"

/* Requests 0 to `count` - 1 are out. */
static void open_with(struct bench *b, uint64_t features, uint32_t count)
{
	bench_open_tables(b, 16, features, 4, 4);
	for (uint32_t i = 0; i < count; i++)
		bench_add(b, i, 1, i % 2);
	vqb_driver_publish(b->drv);
}

static void let_go(struct bench *b)
{
	assert_int_equal(vqb_driver_reset(b->drv, NULL), VQB_OK);
}

static void start_over(struct bench *b)
{
	assert_int_equal(vqb_driver_reset(b->drv, &b->config.ring), VQB_OK);
	bench_attach(b, &b->config.ring);
}

/* Detaches, `at_once` tokens at a time, and expects each of `count` once. */
static void expect_detached(struct bench *b, uint32_t count, uint32_t at_once)
{
	uint32_t seen = 0, left = count;
	int32_t status;

	do {
		void *tokens[17];
		uint32_t n = 99;

		memset(tokens, 0xff, sizeof(tokens));
		status = vqb_driver_detach(b->drv, tokens, at_once, &n);
		assert_true(status == VQB_OK || status == VQB_E_NOSPC);
		assert_int_equal(n, left < at_once ? left : at_once);
		assert_int_equal(status, left > at_once ? VQB_E_NOSPC : VQB_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_true((uintptr_t)tokens[i] < count);
			assert_int_equal(seen >> (uintptr_t)tokens[i] & 1, 0);
			seen |= 1u << (uintptr_t)tokens[i];
		}
		assert_int_equal((uintptr_t)tokens[n], UINTPTR_MAX);
		left -= n;
		assert_int_equal(vqb_driver_in_flight(b->drv), left);
	} while (status == VQB_E_NOSPC);
	assert_int_equal(seen, (1u << count) - 1);
}

/* Shows: BF-DRV-33 */
static void test_a_live_queue_gives_no_tokens_back(void **state)
{
	struct bench_state before;
	struct bench b;
	void *tokens[4] = { &b, &b, &b, &b };
	uint32_t n;

	(void)state;
	open_with(&b, EVENT_MODE, 3);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_E_BUSY);
	bench_expect_unchanged(&b, before);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(tokens[i], &b);
	bench_serve(&b);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(bench_reap(&b), i);
	bench_close(&b);
}

/* Also an idle one has to be let go of first: its device may still write to the used ring. */
static void test_a_live_queue_with_nothing_out_is_live(void **state)
{
	struct bench b;
	void *token;
	uint32_t n;

	(void)state;
	open_with(&b, EVENT_MODE, 0);
	assert_int_equal(vqb_driver_detach(b.drv, &token, 1, &n), VQB_E_BUSY);
	bench_close(&b);
}

/* Shows: BF-DRV-22 BF-DRV-33 K37 */
static void test_each_token_comes_back_once(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t count = 0; count <= 9; count++) {
		for (uint32_t at_once = 1; at_once <= 10; at_once++) {
			open_with(&b, EVENT_MODE | INDIRECT, count);
			let_go(&b);
			expect_detached(&b, count, at_once);
			expect_detached(&b, 0, 1);
			start_over(&b);
			bench_rounds(&b, 40);
			bench_close(&b);
		}
	}
}

static void test_no_room_for_tokens_loses_none(void **state)
{
	struct bench b;
	uint32_t n = 99;

	(void)state;
	open_with(&b, EVENT_MODE, 3);
	let_go(&b);
	assert_int_equal(vqb_driver_detach(b.drv, NULL, 0, &n), VQB_E_NOSPC);
	assert_int_equal(n, 0);
	expect_detached(&b, 3, 8);
	assert_int_equal(vqb_driver_detach(b.drv, NULL, 0, &n), VQB_OK);
	bench_close(&b);
}

static void test_null_tokens_are_tokens(void **state)
{
	struct vqb_segment seg = bench_segment(1, 0);
	struct bench b;
	void *tokens[3] = { &b, &b, &b };
	uint32_t n;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, NULL), VQB_OK);
	assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, NULL), VQB_OK);
	let_go(&b);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 3, &n), VQB_OK);
	assert_int_equal(n, 2);
	assert_null(tokens[0]);
	assert_null(tokens[1]);
	bench_close(&b);
}

/* What was reaped before is not handed back again; what was never exposed is. */
static void test_only_what_is_out_is_detached(void **state)
{
	struct bench b;
	void *tokens[4];
	uint32_t n;

	(void)state;
	open_with(&b, EVENT_MODE, 2);
	bench_give(&b, bench_take(&b), 0);
	assert_int_equal(bench_reap(&b), 0);
	bench_add(&b, 7, 2, 2);
	let_go(&b);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_OK);
	assert_int_equal(n, 2);
	assert_int_equal((uintptr_t)tokens[0] + (uintptr_t)tokens[1], 1 + 7);
	bench_close(&b);
}

/* Shows: BF-DRV-33 */
static void test_a_queue_with_tokens_out_is_not_started_over(void **state)
{
	struct bench_state before;
	struct bench b;
	void *tokens[2];
	uint32_t n;

	(void)state;
	open_with(&b, EVENT_MODE, 3);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_BUSY);
	bench_expect_unchanged(&b, before);

	let_go(&b);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_BUSY);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 2, &n), VQB_E_NOSPC);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_BUSY);
	assert_true(bench_rings(&b) == before.rings);
	assert_true(bench_chains(&b) == before.chains);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 2, &n), VQB_OK);
	start_over(&b);
	bench_close(&b);
}

static void test_an_idle_queue_is_started_over_at_once(void **state)
{
	struct bench b;

	(void)state;
	open_with(&b, EVENT_MODE, 0);
	bench_rounds(&b, 5);
	start_over(&b);
	bench_rounds(&b, 5);
	bench_close(&b);
}

/* Shows: BF-DRV-22 */
static void test_a_queue_that_let_go_touches_nothing(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };
	struct vqb_segment seg = bench_segment(1, 0);
	struct vqb_done done[4];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct bench b;
		uint64_t rings, chains;

		open_with(&b, modes[i] | INDIRECT, 3);
		bench_add(&b, 9, 2, 2); /* added, and never to be exposed */
		let_go(&b);
		bench_serve(&b); /* the device is late */
		poke(b.raw.used, 0, 2);
		rings = bench_rings(&b);
		chains = bench_chains(&b);
		assert_int_equal(vqb_driver_state(b.drv), VQB_E_INVALID);
		assert_int_equal(vqb_driver_add(b.drv, &seg, 1, 0, NULL), VQB_E_INVALID);
		vqb_driver_expose(b.drv);
		vqb_driver_disarm(b.drv);
		assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
		assert_int_equal(vqb_driver_turn(b.drv), VQB_QUIET);
		assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
		assert_int_equal(vqb_driver_postpone(b.drv, VQB_POSTPONE_LONG), VQB_QUIET);
		assert_int_equal(vqb_driver_reap(b.drv, done, 4), 0);
		assert_int_equal(vqb_driver_pending(b.drv), 0);
		assert_int_equal(vqb_driver_free(b.drv), 0);
		let_go(&b);
		assert_true(bench_rings(&b) == rings);
		assert_true(bench_chains(&b) == chains);
		assert_int_equal(vqb_driver_in_flight(b.drv), 4);
		bench_close(&b);
	}
}

/* The ring's memory may be gone by then. */
static void test_a_queue_that_let_go_needs_no_ring(void **state)
{
	struct vqb_done done;
	struct bench b;
	void *tokens[4];
	uint32_t n;

	(void)state;
	open_with(&b, EVENT_MODE, 3);
	let_go(&b);
	bench_free_ring(&b.config.ring);
	vqb_driver_turn(b.drv);
	vqb_driver_disarm(b.drv);
	assert_int_equal(vqb_driver_reap(b.drv, &done, 1), 0);
	assert_int_equal(vqb_driver_pending(b.drv), 0);
	assert_int_equal(vqb_driver_detach(b.drv, tokens, 4, &n), VQB_OK);
	assert_int_equal(n, 3);
	b.config.ring = bench_ring(16, EVENT_MODE);
	start_over(&b);
	bench_rounds(&b, 20);
	bench_close(&b);
}

/* All is as after init: first state of the ring, index 0, heads from 0, notification owed. */
static void test_starting_over_is_like_init(void **state)
{
	struct bench fresh, again;
	void *tokens[16];
	uint32_t n;

	(void)state;
	bench_open(&fresh, 16, EVENT_MODE);
	bench_open(&again, 16, EVENT_MODE);
	bench_rounds(&again, 21);
	for (uintptr_t i = 0; i < 6; i++)
		bench_add(&again, i, 1, 0);
	vqb_driver_publish(again.drv);
	bench_give(&again, 7, 0); /* a hole */
	bench_reap(&again);
	vqb_driver_postpone(again.drv, VQB_POSTPONE_EMPTIED);
	let_go(&again);
	assert_int_equal(vqb_driver_detach(again.drv, tokens, 16, &n), VQB_OK);
	start_over(&again);
	assert_true(bench_rings(&again) == bench_rings(&fresh));
	assert_true(bench_chains(&again) == bench_chains(&fresh));
	assert_int_equal(vqb_driver_free(again.drv), 16);

	for (int i = 0; i < 2; i++) {
		struct bench *b = i ? &again : &fresh;

		for (uintptr_t k = 0; k < 4; k++)
			bench_add(b, k, 2, 2);
		bench_set_avail_event(b, 1000);
		assert_int_equal(vqb_driver_publish(b->drv), VQB_NOTIFY);
		bench_serve(b);
		for (uintptr_t k = 0; k < 4; k++)
			assert_int_equal(bench_reap(b), k);
		assert_int_equal(vqb_driver_arm(b->drv), VQB_QUIET);
	}
	assert_true(bench_rings(&again) == bench_rings(&fresh));
	assert_true(bench_chains(&again) == bench_chains(&fresh));
	bench_close(&fresh);
	bench_close(&again);
}

static void test_a_ring_that_is_not_usable_is_refused(void **state)
{
	struct bench_state before;
	struct vqb_ring good, ring;
	struct bench b;

	(void)state;
	open_with(&b, EVENT_MODE, 0);
	before = bench_state(&b);
	good = b.config.ring;
#define REFUSE(field, value)                                                                       \
	do {                                                                                       \
		ring = good;                                                                       \
		ring.field = (value);                                                              \
		assert_int_equal(vqb_driver_reset(b.drv, &ring), VQB_E_INVALID);                   \
		bench_expect_unchanged(&b, before);                                                \
	} while (0)
	REFUSE(size, 0);
	REFUSE(size, 3);
	REFUSE(size, 32); /* larger than max_size */
	REFUSE(size, 65536);
	REFUSE(size, 0x10010);
	REFUSE(flags, 1);
	REFUSE(zero, 1);
	REFUSE(desc, NULL);
	REFUSE(avail, NULL);
	REFUSE(used, NULL);
	REFUSE(desc, (char *)good.desc + 8);
	REFUSE(avail, (char *)good.avail + 1);
	REFUSE(used, (char *)good.used + 2);
#undef REFUSE
	bench_rounds(&b, 40);
	bench_close(&b);
}

/* Every size up to max_size, larger and smaller than the last one. Shows: SR-ANY-06 */
static void test_the_next_ring_may_have_another_size(void **state)
{
	static const uint32_t sizes[] = { 1, 64, 2, 32, 4, 16, 8, 64 };
	struct bench b;

	(void)state;
	bench_configure(&b, 8, EVENT_MODE, 0, 0, VQB_INDIRECT_NEVER);
	b.config.max_size = 64;
	bench_start(&b);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bench_free_ring(&b.config.ring);
		b.config.ring = bench_ring(sizes[i], EVENT_MODE);
		start_over(&b);
		assert_int_equal(vqb_driver_free(b.drv), sizes[i]);
		assert_int_equal(bench_try_add(&b, 1, sizes[i], 1), VQB_E_TOOBIG);
		bench_add(&b, 1, sizes[i], 0);
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, raw_avail_entry(&b.raw, 0), 1, sizes[i], 0);
		bench_serve(&b);
		bench_reap(&b);
		bench_rounds(&b, 3 * sizes[i] + 1);

		bench_add(&b, 1, 1, 0); /* an id that only a larger ring has */
		vqb_driver_publish(b.drv);
		bench_give(&b, sizes[i], 0);
		bench_reap_none(&b);
		assert_int_equal(vqb_driver_state(b.drv), VQB_E_BROKEN);
		let_go(&b);
		assert_int_equal(vqb_driver_detach(b.drv, (void *[1]){ NULL }, 1, &(uint32_t){ 0 }),
				 VQB_OK);
	}
	bench_close(&b);
}

static void test_the_next_ring_may_have_other_features(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, FLAGS_MODE, 8, 4);
	vqb_driver_disarm(b.drv);
	assert_int_equal(raw_avail_flags(&b.raw), 1);
	b.config.ring.features = EVENT_MODE | INDIRECT;
	start_over(&b);
	vqb_driver_disarm(b.drv);
	assert_int_equal(raw_avail_flags(&b.raw), 0);
	bench_add(&b, 1, 1, 1);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, raw_avail_entry(&b.raw, 0), 1, 1, 1);
	bench_serve(&b);
	bench_reap(&b);

	b.config.ring.features = FLAGS_MODE;
	start_over(&b);
	vqb_driver_disarm(b.drv);
	assert_int_equal(raw_avail_flags(&b.raw), 1);
	bench_add(&b, 1, 1, 1);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 1, 1, 1);
	bench_close(&b);
}

/* X with head 0 is out when the queue is reset; the caller has its token back. */
static void lose_x(struct bench *b)
{
	void *token;
	uint32_t n;

	bench_open(b, 8, EVENT_MODE);
	bench_add(b, 'X', 1, 1);
	vqb_driver_publish(b->drv);
	assert_int_equal(bench_take(b), 0);
	let_go(b);
	assert_int_equal(vqb_driver_detach(b->drv, &token, 1, &n), VQB_OK);
	assert_int_equal(n, 1);
	assert_int_equal((uintptr_t)token, 'X');
}

/* Y has X's slot and its own ring; the completion of X comes into the old one. Shows: K37 */
static void test_a_late_completion_in_the_old_ring_is_not_seen(void **state)
{
	struct vqb_ring old;
	struct raw_ring raw;
	struct bench b;

	(void)state;
	lose_x(&b);
	old = b.config.ring;
	raw = b.raw;
	b.config.ring = bench_ring(8, EVENT_MODE);
	start_over(&b);
	bench_add(&b, 'Y', 1, 1);
	vqb_driver_publish(b.drv);
	raw_complete(&raw, 0, 0, 1);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_in_flight(b.drv), 1);
	bench_serve(&b);
	assert_int_equal(bench_reap(&b), 'Y');
	bench_free_ring(&old);
	bench_close(&b);
}

/* The same memory again: what came between the two lives is wiped. Shows: K37 */
static void test_a_late_completion_between_two_lives_is_not_seen(void **state)
{
	struct bench b;

	(void)state;
	lose_x(&b);
	bench_give(&b, 0, 1);
	start_over(&b);
	bench_add(&b, 'Y', 1, 1);
	vqb_driver_publish(b.drv);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_in_flight(b.drv), 1);
	bench_serve(&b);
	assert_int_equal(bench_reap(&b), 'Y');
	bench_close(&b);
}

/* It comes into the new life: nothing of it was lent yet, so it can't be Y's. Shows: K37 */
static void test_a_late_completion_in_the_new_life_does_not_finish_another(void **state)
{
	struct bench b;

	(void)state;
	lose_x(&b);
	start_over(&b);
	bench_add(&b, 'Y', 1, 1);
	bench_give(&b, 0, 1);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_in_flight(b.drv), 1);
	assert_int_equal(vqb_driver_state(b.drv), VQB_E_BROKEN);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_live_queue_gives_no_tokens_back),
		cmocka_unit_test(test_a_live_queue_with_nothing_out_is_live),
		cmocka_unit_test(test_each_token_comes_back_once),
		cmocka_unit_test(test_no_room_for_tokens_loses_none),
		cmocka_unit_test(test_null_tokens_are_tokens),
		cmocka_unit_test(test_only_what_is_out_is_detached),
		cmocka_unit_test(test_a_queue_with_tokens_out_is_not_started_over),
		cmocka_unit_test(test_an_idle_queue_is_started_over_at_once),
		cmocka_unit_test(test_a_queue_that_let_go_touches_nothing),
		cmocka_unit_test(test_a_queue_that_let_go_needs_no_ring),
		cmocka_unit_test(test_starting_over_is_like_init),
		cmocka_unit_test(test_a_ring_that_is_not_usable_is_refused),
		cmocka_unit_test(test_the_next_ring_may_have_another_size),
		cmocka_unit_test(test_the_next_ring_may_have_other_features),
		cmocka_unit_test(test_a_late_completion_in_the_old_ring_is_not_seen),
		cmocka_unit_test(test_a_late_completion_between_two_lives_is_not_seen),
		cmocka_unit_test(test_a_late_completion_in_the_new_life_does_not_finish_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
