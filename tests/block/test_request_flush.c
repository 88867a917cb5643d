/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A write with flushes around it: as many steps as the cache asks for, one after the other, each
 * only when the one before it is back, and before everything else that waits.
 */
#include "request_bench.h"

enum { CACHES = 4 };

/* The device's cache, as features and what is known of it say. */
static void set_cache(struct rb *b, unsigned cache)
{
	b->config.features = cache & 1 ? BIT(FLUSH) : 0;
	b->config.flags = cache & 2 ? VQB_REQUESTS_WRITE_THROUGH : 0;
}

static int has_cache(unsigned cache)
{
	return cache == 1;
}

/* Sends the only one that can be sent, which is this; nothing else goes before it is back. */
static void step(struct rb *b, uint8_t op, uint64_t sector, uint32_t sectors)
{
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, b->sends - 1, op, sector, sectors, 1);
	assert_null(rb_send(b));
}

static void run_steps(struct rb *b, unsigned cache, uint8_t flags)
{
	unsigned flushes = 0;
	struct vqb_bio *bio;

	set_cache(b, cache);
	rb_start(b);
	bio = rb_put_flags(b, VQB_BLK_OUT, 8, 8, flags);
	if (flags & VQB_BIO_PREFLUSH && has_cache(cache)) {
		step(b, VQB_BLK_FLUSH, 0, 0);
		assert_int_equal(rb_done(b, b->sends - 1, VQB_OK), 0);
		flushes++;
	}
	step(b, VQB_BLK_OUT, 8, 8);
	if (flags & VQB_BIO_FUA && has_cache(cache)) {
		assert_int_equal(rb_done(b, b->sends - 1, VQB_OK), 0);
		step(b, VQB_BLK_FLUSH, 0, 0);
		flushes++;
	}
	assert_int_equal(b->handed[0], 0);
	assert_int_equal(rb_done(b, b->sends - 1, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_OK);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
	assert_int_equal(rb_counters(b).flushes, flushes);
	assert_int_equal(rb_counters(b).requests, flushes + 1);
}

/* Shows: K39 BLK-DRV-01 BLK-DRV-02 BLK-DRV-03 BLK-DRV-11 BLK-DRV-12 */
static void test_steps_with_every_cache_on_every_path(void **state)
{
	static const uint8_t flags[] = { 0, VQB_BIO_FUA, VQB_BIO_PREFLUSH,
					 VQB_BIO_FUA | VQB_BIO_PREFLUSH };

	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++)
		for (unsigned cache = 0; cache < CACHES; cache++)
			for (unsigned i = 0; i < 4; i++)
				run_steps(rb_plan(state, path), cache, flags[i]);
}

/* Shows: K39 */
static void test_the_write_in_the_middle_of_a_plug(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *w[3];

	w[0] = rb_put(b, VQB_BLK_OUT, 0, 8);
	w[1] = rb_put_flags(b, VQB_BLK_OUT, 8, 8, VQB_BIO_FUA | VQB_BIO_PREFLUSH);
	w[2] = rb_put(b, VQB_BLK_OUT, 16, 8);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect(b, 0, VQB_BLK_OUT, 0, 8, 1);
	rb_expect(b, 1, VQB_BLK_FLUSH, 0, 0, 1);
	rb_expect(b, 2, VQB_BLK_OUT, 16, 8, 1);
	assert_int_equal(rb_done(b, 0, VQB_OK), 1);
	assert_int_equal(rb_done(b, 2, VQB_OK), 1);
	assert_int_equal(rb_done(b, 1, VQB_OK), 0);
	step(b, VQB_BLK_OUT, 8, 8);
	assert_int_equal(rb_done(b, 3, VQB_OK), 0);
	step(b, VQB_BLK_FLUSH, 0, 0);
	assert_int_equal(rb_done(b, 4, VQB_OK), 1);
	for (unsigned i = 0; i < 3; i++)
		rb_expect_back(b, w[i], VQB_OK);
}

static void test_a_step_goes_before_everything_that_waits(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	rb_put_flags(b, VQB_BLK_OUT, 8, 8, VQB_BIO_FUA | VQB_BIO_PREFLUSH);
	assert_non_null(rb_send(b));
	for (unsigned i = 0; i < 20; i++)
		rb_put(b, VQB_BLK_OUT, 100 + 10 * i, 8);
	assert_non_null(rb_send(b)); /* one of them; 19 wait */
	rb_expect(b, 1, VQB_BLK_OUT, 100, 8, 1);
	rb_done(b, 0, VQB_OK);
	assert_non_null(rb_send(b));
	rb_expect(b, 2, VQB_BLK_OUT, 8, 8, 1);
	assert_non_null(rb_send(b));
	rb_expect(b, 3, VQB_BLK_OUT, 110, 8, 1);
	rb_done(b, 2, VQB_OK);
	assert_non_null(rb_send(b));
	rb_expect(b, 4, VQB_BLK_FLUSH, 0, 0, 1);
	rb_finish(b);
}

/* A step that fails is the last one, and its error the write's. */
static void test_a_failed_step_is_the_last_one(void **state)
{
	static const int32_t error[] = { VQB_E_IO, VQB_E_UNSUPP, VQB_E_IO };

	for (unsigned failing = 0; failing < 3; failing++) {
		struct rb *b = rb_open(state, VQB_PATH_REQUEST);
		struct vqb_bio *bio =
			rb_put_flags(b, VQB_BLK_OUT, 8, 8, VQB_BIO_FUA | VQB_BIO_PREFLUSH);

		for (unsigned k = 0; k <= failing; k++) {
			assert_int_equal(rb_send_all(b), 1);
			assert_int_equal(rb_done(b, k, k == failing ? error[k] : VQB_OK),
					 k == failing);
		}
		rb_expect_back(b, bio, error[failing]);
		assert_int_equal(rb_send_all(b), 0);
		assert_int_equal(vqb_requests_outstanding(b->rq), 0);
	}
}

/* A long write: one flush before all of its parts, one behind them. */
static void test_flushes_are_around_all_parts(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put_flags(b, VQB_BLK_OUT, 0, 24, VQB_BIO_FUA | VQB_BIO_PREFLUSH);
	step(b, VQB_BLK_FLUSH, 0, 0);
	rb_done(b, 0, VQB_OK);
	assert_int_equal(rb_send_all(b), 3);
	rb_done(b, 3, VQB_OK);
	rb_done(b, 1, VQB_OK);
	assert_null(rb_send(b)); /* one part is out */
	rb_done(b, 2, VQB_OK);
	step(b, VQB_BLK_FLUSH, 0, 0);
	assert_int_equal(rb_done(b, 4, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_OK);
	assert_int_equal(rb_counters(b).parts, 3);
	assert_int_equal(rb_counters(b).flushes, 2);
}

static void test_a_failed_part_brings_no_flush(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put_flags(b, VQB_BLK_OUT, 0, 16, VQB_BIO_FUA);
	assert_int_equal(rb_send_all(b), 2);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_done(b, 1, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 0);
}

/* Zeroes that are written may be durable, too; reads, discards and flushes have no such flags. */
static void test_flags_are_for_what_writes(void **state)
{
	static const uint8_t op[] = { VQB_BLK_IN, VQB_BLK_DISCARD, VQB_BLK_SECURE_ERASE,
				      VQB_BLK_FLUSH };
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	rb_allow_ranges(b, 4, 100);
	rb_start(b);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned flag = 1; flag <= 2; flag++) {
			bio = rb_bio(b, op[i], 0, op[i] == VQB_BLK_FLUSH ? 0 : 8);
			bio->flags = (uint8_t)flag;
			assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_INVALID);
		}
	}
	rb_put_flags(b, VQB_BLK_WRITE_ZEROES, 0, 8, VQB_BIO_FUA | VQB_BIO_PREFLUSH | VQB_BIO_UNMAP);
	step(b, VQB_BLK_FLUSH, 0, 0);
	rb_done(b, 0, VQB_OK);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(b->sent[1].r.op, VQB_BLK_WRITE_ZEROES);
	assert_int_equal(b->sent[1].r.flags, VQB_BIO_UNMAP);
	rb_done(b, 1, VQB_OK);
	step(b, VQB_BLK_FLUSH, 0, 0);
	assert_int_equal(rb_done(b, 2, VQB_OK), 1);
}

/* Shows: BLK-DRV-01 BLK-DRV-11 BLK-DRV-12 */
static void test_a_flush_is_for_a_device_with_flush(void **state)
{
	for (unsigned cache = 0; cache < CACHES; cache++) {
		struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
		struct vqb_bio *bio;

		set_cache(b, cache);
		rb_start(b);
		bio = rb_bio(b, VQB_BLK_FLUSH, 77, 0);
		if (!(cache & 1)) {
			assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_UNSUPP);
			continue;
		}
		rb_submit(b, bio);
		step(b, VQB_BLK_FLUSH, 0, 0);
		assert_int_equal(b->sent[0].r.n, 0);
		assert_int_equal(rb_done(b, 0, VQB_OK), 1);
		bio->vec = b->vec[0];
		bio->nvec = 1;
		assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_INVALID);
	}
}

/* A flush covers what was done before, so it waits for nothing, but its turn. */
static void test_a_flush_keeps_its_place_among_writes(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_open(state, path);

		rb_put(b, VQB_BLK_OUT, 0, 8);
		rb_put(b, VQB_BLK_OUT, 100, 8);
		rb_put(b, VQB_BLK_FLUSH, 0, 0);
		rb_put(b, VQB_BLK_OUT, 200, 8);
		assert_int_equal(rb_send_all(b), 4);
		rb_expect(b, 2, VQB_BLK_FLUSH, 0, 0, 1);
		rb_expect(b, 3, VQB_BLK_OUT, 200, 8, 1);
		rb_finish(b);
	}
}

/* The cache was switched while a write was between its steps: what is decided anew is the rest. */
static void test_without_a_cache_any_more_the_last_step_falls_away(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_BIO);
	struct vqb_bio *bio = rb_put_flags(b, VQB_BLK_OUT, 8, 8, VQB_BIO_FUA | VQB_BIO_PREFLUSH);

	step(b, VQB_BLK_FLUSH, 0, 0);
	b->config.flags = VQB_REQUESTS_WRITE_THROUGH;
	assert_int_equal(vqb_requests_configure(b->rq, &b->config), VQB_OK);
	rb_done(b, 0, VQB_OK);
	step(b, VQB_BLK_OUT, 8, 8);
	assert_int_equal(rb_done(b, 1, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_steps_with_every_cache_on_every_path),
		rb_test(test_the_write_in_the_middle_of_a_plug),
		rb_test(test_a_step_goes_before_everything_that_waits),
		rb_test(test_a_failed_step_is_the_last_one),
		rb_test(test_flushes_are_around_all_parts),
		rb_test(test_a_failed_part_brings_no_flush),
		rb_test(test_flags_are_for_what_writes),
		rb_test(test_a_flush_is_for_a_device_with_flush),
		rb_test(test_a_flush_keeps_its_place_among_writes),
		rb_test(test_without_a_cache_any_more_the_last_step_falls_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
