/* SPDX-License-Identifier: BSD-3-Clause */
/* Reset: of a queue in use, to the same ring, another one, or none. */
#include "device_bench.h"
#include "probe_log.h"

static void restart(struct bench *b)
{
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	memset(b->ring.avail, 0, 6 + 2 * (size_t)b->ring.size);
	memset(b->ring.used, 0, 6 + 8 * (size_t)b->ring.size);
	b->offered = 0;
}

/* ---- what was in flight ---- */

/* Shows: BF-DEV-11 BF-DEV-15 K37 */
static void test_late_completions_leave_the_ring_as_it_is(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	struct vqb_ticket ticket[3];
	uint8_t *before;

	for (unsigned head = 0; head < 3; head++)
		bench_offer_writable(b, head);
	bench_take_good(b, 3);
	for (unsigned i = 0; i < 3; i++)
		ticket[i] = b->chain[i].ticket;
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	before = bench_snapshot(b);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vqb_device_holds(b->dev, ticket[i]), VQB_E_STALE);
		assert_int_equal(vqb_device_put(b->dev, ticket[i], 1), VQB_E_STALE);
		vqb_device_expose(b->dev);
		assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
		assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
		assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
		vqb_device_disarm(b->dev);
	}
	bench_assert_unchanged(b, before);
}

/* Shows: K37 */
static void test_new_life_counts_only_its_own_completions(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket old[4], new;

	for (unsigned head = 0; head < 4; head++)
		bench_offer_writable(b, head);
	bench_take_good(b, 4);
	for (unsigned i = 0; i < 4; i++)
		old[i] = b->chain[i].ticket;
	restart(b);
	bench_offer_writable(b, 0);
	new = bench_take_ticket(b);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(vqb_device_put(b->dev, old[i], 1), VQB_E_STALE);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 0);
	bench_put(b, new, 1);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	bench_assert_used(b, 0, 0, 1);
	bench_take_nothing(b);
}

static void test_what_was_put_and_not_exposed_is_gone(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_writable(b, 0);
	bench_put(b, bench_take_ticket(b), 1);
	restart(b);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 0);
}

/* Shows: BF-DEV-15 */
static void test_other_queue_is_unaffected(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct bench other = *b;
	struct vqb_ticket ticket;

	other.object = NULL;
	other.config.ring = bench_ring_at(LOW + 0x8000, 8, 0);
	other.ring = bench_raw(&other, &other.config.ring);
	bench_start(&other);
	bench_offer_writable(b, 1);
	bench_take_one(b);
	bench_offer_writable(&other, 2);
	ticket = bench_take_ticket(&other);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	bench_put(&other, ticket, 3);
	assert_int_equal(vqb_device_publish(other.dev), VQB_NOTIFY);
	bench_assert_used(&other, 0, 2, 3);
	assert_int_equal(raw_used_idx(&b->ring), 0);
	free(other.object);
}

/* ---- a fresh start ---- */

/* What a queue answers and writes from its start on, as one string of bytes. */
static void play(struct bench *b, uint8_t *trace)
{
	poke(b->ring.avail + 4 + 2 * 8, 1, 2);
	*trace++ = (uint8_t)vqb_device_arm(b->dev);
	*trace++ = (uint8_t)raw_avail_event(&b->ring);
	for (unsigned i = 0; i < 3; i++) {
		bench_offer_writable(b, 5 - i);
		bench_put(b, bench_take_ticket(b), i);
		*trace++ = (uint8_t)vqb_device_publish(b->dev);
		*trace++ = (uint8_t)raw_used_idx(&b->ring);
	}
	vqb_device_disarm(b->dev);
	*trace++ = (uint8_t)raw_avail_event(&b->ring);
	*trace++ = (uint8_t)vqb_device_turn(b->dev);
	memcpy(trace, b->ring.used, 6 + 8 * 8);
}

/* Shows: BF-DEV-16 */
static void test_reset_queue_behaves_like_a_fresh_one(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_open(state, 8, features[i]);
		uint8_t fresh[128] = { 0 }, again[128] = { 0 };

		play(b, fresh);
		bench_offer_writable(b, 6);
		bench_offer_writable(b, 7);
		bench_take(b, 1);
		vqb_device_disarm(b->dev);
		restart(b);
		assert_int_equal(vqb_device_in_flight(b->dev), 0);
		assert_int_equal(vqb_device_pending(b->dev), 0);
		play(b, again);
		assert_memory_equal(again, fresh, sizeof(fresh));
	}
}

static void test_reset_writes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	uint8_t *before;

	memset(b->ring.used, 0xff, 6 + 8 * 8);
	before = bench_snapshot(b);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	bench_assert_unchanged(b, before);
}

static void test_known_entries_of_the_old_life_are_forgotten(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned head = 0; head < 4; head++)
		bench_offer_plain(b, head);
	bench_take_good(b, 1);
	restart(b);
	bench_take_nothing(b);
}

/* ---- another ring ---- */

/* Shows: BF-DEV-17 */
static void test_larger_ring_is_walked_to_its_own_bounds(void **state)
{
	struct bench *b = bench_plan(state, 64, 0);

	b->config.max_size = 256;
	bench_start(b);
	b->config.ring = bench_ring_at(HIGH, 256, 0);
	b->ring = bench_raw(b, &b->config.ring);
	restart(b);
	for (unsigned i = 0; i < 256; i++)
		bench_desc(b, i, DATA + i, 1, i < 255 ? RAW_NEXT : 0, i + 1);
	bench_offer(b, 0);
	assert_int_equal(bench_take_one(b)->readable, 256);
	bench_put(b, b->chain[0].ticket, 0);
	for (unsigned i = 0; i < 300; i++) {
		bench_offer_writable(b, 255 - i % 200);
		bench_put(b, bench_take_ticket(b), 7);
		vqb_device_expose(b->dev);
		bench_assert_used(b, 1 + i, 255 - i % 200, 7);
	}
}

/* Shows: BF-DEV-17 */
static void test_smaller_ring_is_held_to_its_own_bounds(void **state)
{
	struct bench *b = bench_open(state, 64, INDIRECT);
	struct vqb_reason why;

	b->config.ring = bench_ring_at(HIGH, 8, INDIRECT);
	b->ring = bench_raw(b, &b->config.ring);
	restart(b);
	bench_desc(b, 0, DATA, 16, RAW_NEXT, 8);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_NEXT);
	bench_desc(b, 1, TABLE, 16 * 9, RAW_INDIRECT, 0);
	bench_offer(b, 1);
	bench_take_bad(b, VQB_RULE_TABLE);
	bench_offer(b, 8);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_BROKEN);
	assert_int_equal(why.rule, VQB_RULE_HEAD);
}

/* Shows: BF-DEV-17 BF-ANY-02 */
static void test_features_are_those_of_the_newest_reset(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX | INDIRECT);

	b->config.ring.features = 0;
	bench_desc(b, 0, TABLE, 16, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	bench_take_one(b);
	vqb_device_disarm(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 0);
	restart(b);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_INDIRECT);
	vqb_device_disarm(b->dev);
	assert_int_equal(raw_used_flags(&b->ring), 1);
	assert_int_equal(raw_avail_event(&b->ring), 0);
}

static void test_failed_reset_leaves_no_ring(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ring_at ring = bench_ring_at(HIGH, 16, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 0);
	ticket = bench_take_ticket(b);
	bench_offer_writable(b, 1);
	assert_int_equal(vqb_device_reset(b->dev, &ring), VQB_E_INVALID);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	bench_take_nothing(b);
	assert_int_equal(vqb_device_put(b->dev, ticket, 0), VQB_E_STALE);
	ring = b->config.ring;
	ring.desc = END;
	assert_int_equal(vqb_device_reset(b->dev, &ring), VQB_E_FAULT);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	ring = b->config.ring;
	ring.desc += 8;
	assert_int_equal(vqb_device_reset(b->dev, &ring), VQB_E_INVALID);
	restart(b);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

/* ---- no ring ---- */

/* Everything that can be asked of a queue finds it empty, and looks nowhere to find out. */
static void assert_empty_and_blind(struct bench *b)
{
	struct vqb_chain chain;

	log_start();
	bench_take_nothing(b);
	assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_E_INVALID);
	assert_int_equal(vqb_device_pending(b->dev), 0);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_int_equal(vqb_device_arm(b->dev), VQB_QUIET);
	vqb_device_disarm(b->dev);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_turn(b->dev), VQB_QUIET);
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_E_INVALID);
	log_stop();
	assert_int_equal(log_count, 0);
}

/* Shows: K36 */
static void test_queue_that_was_never_set_up_is_empty(void **state)
{
	struct bench *b = bench_plan(state, 0, EVENT_IDX);

	b->config.max_size = 8;
	bench_start(b);
	assert_empty_and_blind(b);
}

/* Shows: K36 */
static void test_queue_whose_ring_was_taken_away_is_empty(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);

	for (unsigned head = 0; head < 6; head++)
		bench_offer_plain(b, head);
	bench_take_good(b, 2);
	bench_put(b, b->chain[0].ticket, 0);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_empty_and_blind(b);
}

static void test_ring_comes_later(void **state)
{
	struct bench *b = bench_plan(state, 0, 0);

	b->config.max_size = 8;
	bench_start(b);
	b->config.ring = bench_ring_at(LOW, 8, 0);
	b->ring = bench_raw(b, &b->config.ring);
	restart(b);
	bench_offer_plain(b, 7);
	assert_int_equal(bench_take_one(b)->ticket.head, 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_late_completions_leave_the_ring_as_it_is),
		bench_test(test_new_life_counts_only_its_own_completions),
		bench_test(test_what_was_put_and_not_exposed_is_gone),
		bench_test(test_other_queue_is_unaffected),
		bench_test(test_reset_queue_behaves_like_a_fresh_one),
		bench_test(test_reset_writes_nothing),
		bench_test(test_known_entries_of_the_old_life_are_forgotten),
		bench_test(test_larger_ring_is_walked_to_its_own_bounds),
		bench_test(test_smaller_ring_is_held_to_its_own_bounds),
		bench_test(test_features_are_those_of_the_newest_reset),
		bench_test(test_failed_reset_leaves_no_ring),
		bench_test(test_queue_that_was_never_set_up_is_empty),
		bench_test(test_queue_whose_ring_was_taken_away_is_empty),
		bench_test(test_ring_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
