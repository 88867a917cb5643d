/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a queue's life, however it comes: every bio is handed back, once, with a status that
 * says whether anything of it was sent; and those that have to be done are submitted again.
 */
#include "blk_driver_bench.h"

/* More than the ring of 16 takes: five are sent, the rest waits. */
static void put_many(struct guest *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		guest_put(g, i, VQB_BLK_OUT, 10 * i);
	vqb_blk_publish(g->drv);
	assert_int_equal(vqb_blk_in_flight(g->drv), 5);
	assert_int_equal(vqb_blk_waiting(g->drv), n - 5);
}

/* Takes everything back: bios `from` to `to` - 1, in order; those sent are undecided. */
static void expect_abandoned(struct guest *g, unsigned from, unsigned sent, unsigned to)
{
	struct vqb_bio *list;

	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	for (unsigned i = from; i < to; i++, list = list->next) {
		assert_ptr_equal(list, &g->bio[i]);
		assert_int_equal(list->state, VQB_BIO_IDLE);
		assert_int_equal(list->status, i < sent ? VQB_E_AGAIN : VQB_E_CANCELLED);
	}
	assert_null(list);
	assert_int_equal(vqb_blk_outstanding(g->drv), 0);
	assert_int_equal(vqb_blk_waiting(g->drv), 0);
	assert_int_equal(vqb_blk_in_flight(g->drv), 0);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	assert_null(list);
}

static void test_sent_is_told_from_never_sent(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct guest *g = guest_on_path(state, 16, path);
		struct vqb_bio *list = g->bio;

		put_many(g, 12);
		assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_E_BUSY);
		assert_null(list);
		assert_int_equal(vqb_blk_outstanding(g->drv), 12);
		guest_serve(g, VQB_BLK_S_OK); /* done, by the device's word, and never reaped */
		expect_abandoned(g, 0, 5, 12);
	}
}

/* What was reaped is not handed back again. */
static void test_what_came_back_before_is_not_there(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *done;

	put_many(g, 12);
	for (unsigned i = 0; i < 2; i++)
		guest_serve(g, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 2);
	expect_abandoned(g, 2, 7, 12);
}

static void test_a_broken_ring_hands_nothing_back_until_it_is_reset(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *done, *bio = &g->bio[20];

	put_many(g, 12);
	bench_give(&g->ring, 9999, 0);
	assert_int_equal(vqb_blk_reap(g->drv, &done), 0);
	assert_null(done);
	assert_int_equal(vqb_driver_state(g->ring.drv), VQB_E_BROKEN);
	guest_bio(g, 20, VQB_BLK_OUT, 8, 1, 512);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_BROKEN);
	assert_int_equal(bio->status, VQB_E_BROKEN);
	assert_int_equal(bio->state, VQB_BIO_IDLE);
	assert_int_equal(vqb_blk_reap(g->drv, &done), 0);
	assert_int_equal(vqb_blk_outstanding(g->drv), 12);
	/* Who waits may still be taken back. */
	assert_int_equal(vqb_blk_cancel(g->drv, &g->bio[11]), VQB_OK);
	expect_abandoned(g, 0, 5, 11);
}

static void test_needs_reset_is_the_same(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *done;

	put_many(g, 12);
	guest_serve(g, VQB_BLK_S_OK);
	vqb_driver_needs_reset(g->ring.drv);
	assert_int_equal(vqb_blk_reap(g->drv, &done), 0);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 20, VQB_BLK_OUT, 8, 1, 512)),
			 VQB_E_NEEDS_RESET);
	assert_int_equal(g->bio[20].status, VQB_E_NEEDS_RESET);
	assert_int_equal(vqb_blk_publish(g->drv) & VQB_NOTIFY, 0);
	expect_abandoned(g, 0, 5, 12);
	/* Without a ring there is nothing to submit to. */
	assert_int_equal(vqb_blk_submit(g->drv, &g->bio[20]), VQB_E_INVALID);
	guest_restart(g);
	assert_int_equal(vqb_blk_submit(g->drv, &g->bio[20]), VQB_OK);
	assert_int_equal(guest_drain(g), 1);
}

/* Shares of a request, parts of a bio, steps of a write: each bio once all the same. */
static void test_whatever_a_bio_is_in_it_comes_back_once(void **state)
{
	struct guest *g = guest_on_path(state, 64, VQB_PATH_REQUEST);
	struct vqb_bio *list = NULL;

	/* 0 and 1 share a request, 2 has two parts, 3 is behind its first flush, 4 is a flush. */
	for (unsigned i = 0; i < 2; i++)
		guest_bio(g, i, VQB_BLK_OUT, i, 1, 512);
	guest_bio(g, 4, VQB_BLK_OUT, 100, SEGMENTS + 1, 512 * (SEGMENTS + 1));
	guest_bio(g, 10, VQB_BLK_OUT, 200, 1, 512)->flags = VQB_BIO_PREFLUSH;
	guest_bio(g, 11, VQB_BLK_FLUSH, 0, 0, 0);
	g->bio[0].next = &g->bio[1];
	g->bio[1].next = &g->bio[4];
	g->bio[4].next = &g->bio[10];
	g->bio[10].next = &g->bio[11];
	assert_int_equal(vqb_blk_submit_list(g->drv, &g->bio[0], NULL), VQB_OK);
	assert_int_equal(vqb_blk_in_flight(g->drv), 5);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	for (unsigned k = 0; k < 5; k++, list = list->next) {
		static const unsigned order[] = { 0, 1, 4, 10, 11 };

		assert_ptr_equal(list, &g->bio[order[k]]);
		assert_int_equal(list->status, VQB_E_AGAIN);
	}
	assert_null(list);
}

/* What had failed in a part before has that to say. */
static void test_an_error_that_is_known_stays(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list, *done;

	guest_try(g, VQB_BLK_OUT, 0, SEGMENTS + 1, 512 * (SEGMENTS + 1));
	vqb_blk_publish(g->drv);
	guest_serve(g, VQB_BLK_S_IOERR);
	assert_int_equal(guest_reap(g, &done), 0);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	assert_ptr_equal(list, &g->bio[0]);
	assert_int_equal(list->status, VQB_E_IO);
}

/* A queue that is dead is waited for by nobody: what waits is cancelled, if its time is over. */
static void test_cancel_on_a_ring(void **state)
{
	struct guest *g = guest_open(state, 16);

	put_many(g, 8);
	assert_int_equal(vqb_blk_cancel(g->drv, &g->bio[0]), VQB_E_LATE);
	assert_int_equal(vqb_blk_cancel(g->drv, &g->bio[5]), VQB_OK);
	assert_int_equal(g->bio[5].status, VQB_E_CANCELLED);
	assert_int_equal(vqb_blk_cancel(g->drv, &g->bio[5]), VQB_E_INVALID);
	assert_int_equal(vqb_blk_cancel(g->drv, &g->bio[30]), VQB_E_INVALID);
	assert_int_equal(vqb_blk_waiting(g->drv), 2);
	assert_int_equal(vqb_blk_outstanding(g->drv), 7);
	while (vqb_blk_outstanding(g->drv)) {
		struct vqb_bio *done;

		vqb_blk_publish(g->drv);
		while (bench_visible(&g->ring)) {
			struct seen s = guest_serve(g, VQB_BLK_S_OK);

			assert_true(guest_sector(&s) != 50); /* the cancelled one's */
		}
		guest_reap(g, &done);
	}
}

/* ---- recovery ---- */

/*
 * The whole of it: the device breaks, is reset, and everything that was not done is submitted
 * again, in its order, as one list; then each bio has been done, once.
 */
static void recover(struct guest *g)
{
	struct vqb_bio *list, *done, *bio;
	unsigned times[12] = { 0 };

	put_many(g, 12);
	for (unsigned i = 0; i < 3; i++)
		guest_serve(g, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 3);
	for (bio = done; bio; bio = bio->next)
		times[bio - g->bio]++;
	vqb_driver_needs_reset(g->ring.drv);

	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	guest_restart(g);
	assert_int_equal(vqb_blk_submit_list(g->drv, list, NULL), VQB_OK);
	assert_int_equal(vqb_blk_outstanding(g->drv), 9);
	while (vqb_blk_outstanding(g->drv)) {
		vqb_blk_publish(g->drv);
		while (bench_visible(&g->ring))
			guest_serve(g, VQB_BLK_S_OK);
		guest_reap(g, &done);
		for (bio = done; bio; bio = bio->next) {
			assert_int_equal(bio->status, VQB_OK);
			times[bio - g->bio]++;
		}
	}
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(times[i], 1);
}

/* Shows: BF-DRV-22 */
static void test_a_recovery_that_resubmits(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++)
		for (unsigned lives = 0; lives < 3; lives++)
			recover(guest_on_path(state, 16, path));
}

/* After a reset the disk may be another one: smaller, and with no cache. */
static void test_a_device_that_came_back_smaller(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *list, *refused;

	put_many(g, 8);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	g->limits.capacity = 35;
	g->config.features = 0;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	guest_restart(g);
	assert_int_equal(vqb_blk_submit_list(g->drv, list, &refused), VQB_E_INVALID);
	for (unsigned i = 4; i < 8; i++, refused = refused->next) {
		assert_ptr_equal(refused, &g->bio[i]);
		assert_int_equal(refused->status, VQB_E_INVALID);
	}
	assert_null(refused);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 20, VQB_BLK_FLUSH, 0, 0, 0)),
			 VQB_E_UNSUPP);
	assert_int_equal(guest_drain(g), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(test_sent_is_told_from_never_sent),
		guest_test(test_what_came_back_before_is_not_there),
		guest_test(test_a_broken_ring_hands_nothing_back_until_it_is_reset),
		guest_test(test_needs_reset_is_the_same),
		guest_test(test_whatever_a_bio_is_in_it_comes_back_once),
		guest_test(test_an_error_that_is_known_stays),
		guest_test(test_cancel_on_a_ring),
		guest_test(test_a_recovery_that_resubmits),
		guest_test(test_a_device_that_came_back_smaller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
