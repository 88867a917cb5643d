/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_save_restore.c: an idle driver's place in its ring, kept while the system sleeps. The
 * device was not reset: it goes on where it was, and so does the ring's contents.
 */
#include "driver_bench.h"

#define IN_ORDER_MODE (FLAGS_MODE | UINT64_C(1) << 35)

/* Another driver, with no ring, in memory of its own. */
static struct vqb_driver *fresh(struct bench *b, void **mem)
{
	struct vqb_driver_config config = b->config;
	struct vqb_driver *drv = NULL;
	size_t bytes;

	config.ring = (struct vqb_ring){ 0 };
	config.max_size = b->raw.size;
	bytes = vqb_driver_size(&config);
	*mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_driver_init(*mem, bytes, &config, &drv), VQB_OK);
	return drv;
}

/* The bench goes on with another driver. */
static void hand_over(struct bench *b)
{
	struct vqb_driver_saved saved;
	struct vqb_driver *drv;
	struct bench_state before;
	void *mem;

	assert_int_equal(vqb_driver_save(b->drv, &saved), VQB_OK);
	before = bench_state(b);
	drv = fresh(b, &mem);
	assert_int_equal(vqb_driver_restore(drv, &b->config.ring, &saved), VQB_OK);
	free(b->mem);
	b->mem = mem;
	b->drv = drv;
	bench_expect_unchanged(b, before); /* nothing was written, all is free, all is well */
}

static void test_another_driver_goes_on(void **state)
{
	static const uint64_t mode[] = { FLAGS_MODE, EVENT_MODE, IN_ORDER_MODE };
	struct bench b;

	(void)state;
	for (unsigned m = 0; m < 3; m++) {
		for (unsigned done = 0; done < 20; done++) {
			bench_open(&b, 8, mode[m]);
			bench_rounds(&b, done);
			hand_over(&b);
			bench_rounds(&b, 30);
			assert_int_equal(raw_avail_idx(&b.raw), done + 30);
			bench_close(&b);
		}
	}
}

/* Shows: SR-ANY-06 */
static void test_saved_at_each_side_of_the_wrap(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_rounds(&b, 65533);
	for (int i = 0; i < 6; i++) {
		hand_over(&b);
		bench_round(&b);
	}
	assert_int_equal(raw_avail_idx(&b.raw), 3);
	bench_close(&b);
}

static void test_the_indices_are_those_in_memory(void **state)
{
	struct vqb_driver_saved saved = { 0xdead, 0xdead, 0xdead, 0xdead };
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_rounds(&b, 300);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_OK);
	assert_int_equal(saved.avail, 300);
	assert_int_equal(saved.used, 300);
	assert_int_equal(saved.zero, 0);
	bench_close(&b);
}

static void test_what_is_in_flight_cannot_be_saved(void **state)
{
	struct vqb_driver_saved saved = { 7, 7, 7, 0 };
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_BUSY);
	vqb_driver_publish(b.drv);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_BUSY);
	bench_serve(&b);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_BUSY); /* not reaped yet */
	assert_int_equal(saved.avail, 7);
	bench_reap(&b);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_OK);
	assert_int_equal(saved.avail, 1);
	bench_close(&b);
}

static void test_a_queue_that_does_not_work_cannot_be_saved(void **state)
{
	struct vqb_driver_saved saved;
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_give(&b, 3, 0);
	bench_reap_none(&b);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_BROKEN);
	vqb_driver_reset(b.drv, NULL);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_INVALID);
	vqb_driver_reset(b.drv, &b.config.ring);
	vqb_driver_needs_reset(b.drv);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_E_NEEDS_RESET);
	bench_close(&b);
}

/* Refused, and the driver is as before: without a ring. */
static void refuse(struct bench *b, struct vqb_driver_saved saved)
{
	assert_int_equal(vqb_driver_restore(b->drv, &b->config.ring, &saved), VQB_E_INVALID);
	assert_int_equal(vqb_driver_state(b->drv), VQB_E_INVALID);
}

static void test_a_ring_that_stands_elsewhere_is_refused(void **state)
{
	struct vqb_driver_saved saved;
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_rounds(&b, 5);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_OK);
	vqb_driver_reset(b.drv, NULL);
	refuse(&b, (struct vqb_driver_saved){ 4, 4, 0, 0 });
	refuse(&b, (struct vqb_driver_saved){ 6, 6, 0, 0 });
	refuse(&b, (struct vqb_driver_saved){ 6, 5, 0, 0 });
	refuse(&b, (struct vqb_driver_saved){ 5, 4, 0, 0 });
	refuse(&b, (struct vqb_driver_saved){ 5, 5, 8, 0 });
	refuse(&b, (struct vqb_driver_saved){ 5, 5, 0, 1 });
	poke(b.raw.avail + 2, 6, 2);
	refuse(&b, saved);
	poke(b.raw.avail + 2, 5, 2);
	poke(b.raw.used + 2, 6, 2);
	refuse(&b, saved);
	poke(b.raw.used + 2, 5, 2);
	b.config.ring.size = 6;
	refuse(&b, saved);
	b.config.ring.size = 8;
	b.config.ring.features |= UINT64_C(1) << 34;
	refuse(&b, saved);
	b.config.ring.features = FLAGS_MODE;
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &saved), VQB_OK);
	bench_rounds(&b, 9);
	bench_close(&b);
}

/* Tokens that are out stay out; those of an idle queue are nobody's. */
static void test_restore_does_not_lose_tokens(void **state)
{
	struct vqb_driver_saved saved;
	struct bench b;
	void *token;
	uint32_t n;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_OK);
	bench_add(&b, 4, 1, 0);
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &saved), VQB_E_BUSY);
	assert_int_equal(vqb_driver_in_flight(b.drv), 1);
	vqb_driver_reset(b.drv, NULL);
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &saved), VQB_E_BUSY);
	assert_int_equal(vqb_driver_detach(b.drv, &token, 1, &n), VQB_OK);
	assert_ptr_equal(token, bench_token(4));
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &saved), VQB_OK);
	bench_rounds(&b, 9);
	bench_close(&b);
}

/* What the old one announced last is not known, so that the first decision is to notify. */
static void test_a_notification_is_owed(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_rounds(&b, 10);
	bench_set_avail_event(&b, 9); /* passed already: not due */
	hand_over(&b);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
}

/* The old one's wish is in the ring, but not known to the new one, which has to state its own. */
static void test_wishes_are_stated_anew(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, FLAGS_MODE);
	bench_rounds(&b, 3);
	vqb_driver_disarm(b.drv);
	hand_over(&b);
	assert_int_equal(raw_avail_flags(&b.raw), 1);
	assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
	assert_int_equal(raw_avail_flags(&b.raw), 0);
	bench_close(&b);

	bench_open(&b, 8, EVENT_MODE);
	bench_rounds(&b, 3);
	vqb_driver_disarm(b.drv);
	hand_over(&b);
	assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
	assert_int_equal(raw_used_event(&b.raw), 3);
	bench_close(&b);
}

/* Shows: SR-DRV-06 */
static void test_in_order_the_descriptors_go_on_too(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, IN_ORDER_MODE);
	for (unsigned head = 0, i = 0; i < 20; i++, head = (head + 3) % 8) {
		bench_add(&b, 2, 1, 2);
		bench_add(&b, 3, 1, 2);
		vqb_driver_publish(b.drv);
		assert_int_equal(bench_take(&b), head);
		head = (head + 3) % 8;
		assert_int_equal(bench_take(&b), head);
		bench_expect_direct(&b, head, 3, 1, 2);
		raw_complete(&b.raw, b.used, head, 0);
		b.used += 2;
		poke(b.raw.used + 2, b.used, 2);
		assert_int_equal(bench_reap(&b), 2);
		assert_int_equal(bench_reap(&b), 3);
		hand_over(&b);
	}
	bench_close(&b);
}

static void test_tables_are_all_free(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 4, EVENT_MODE | INDIRECT, 4, 3);
	bench_rounds(&b, 7);
	hand_over(&b);
	for (uintptr_t n = 0; n < 4; n++)
		bench_add(&b, n, 2, 1);
	vqb_driver_publish(b.drv);
	for (uintptr_t n = 0; n < 4; n++)
		bench_expect_indirect(&b, bench_take(&b), n, 2, 1);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_driver_goes_on),
		cmocka_unit_test(test_saved_at_each_side_of_the_wrap),
		cmocka_unit_test(test_the_indices_are_those_in_memory),
		cmocka_unit_test(test_what_is_in_flight_cannot_be_saved),
		cmocka_unit_test(test_a_queue_that_does_not_work_cannot_be_saved),
		cmocka_unit_test(test_a_ring_that_stands_elsewhere_is_refused),
		cmocka_unit_test(test_restore_does_not_lose_tokens),
		cmocka_unit_test(test_a_notification_is_owed),
		cmocka_unit_test(test_wishes_are_stated_anew),
		cmocka_unit_test(test_in_order_the_descriptors_go_on_too),
		cmocka_unit_test(test_tables_are_all_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
