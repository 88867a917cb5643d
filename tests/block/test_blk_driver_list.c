/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list that is submitted together: what can't be prepared comes back on a list, the rest goes as
 * if it alone had been submitted, and the device is told once.
 */
#include "blk_driver_bench.h"

/* Links bios 0 to n - 1, reads of a sector each, far from each other. */
static struct vqb_bio *make_list(struct guest *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		guest_bio(g, i, VQB_BLK_IN, 10 * i, 1, 512);
		g->bio[i].next = i + 1 < n ? &g->bio[i + 1] : NULL;
	}
	return g->bio;
}

static unsigned length_of(const struct vqb_bio *list)
{
	unsigned n = 0;

	for (; list; list = list->next)
		n++;
	return n;
}

static void test_a_list_is_one_batch_and_one_decision(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_driver_counters c;
	struct vqb_bio *refused = g->bio;

	assert_int_equal(vqb_blk_submit_list(g->drv, make_list(g, 10), &refused), VQB_OK);
	assert_null(refused);
	assert_int_equal(vqb_blk_in_flight(g->drv), 10);
	assert_int_equal(bench_visible(&g->ring), 0);
	assert_int_equal(vqb_blk_publish(g->drv), VQB_NOTIFY);
	assert_int_equal(bench_visible(&g->ring), 10);
	vqb_driver_read_counters(g->ring.drv, &c);
	assert_int_equal(c.notified + c.suppressed, 1);
	for (unsigned i = 0; i < 10; i++) {
		struct seen s = guest_serve(g, VQB_BLK_S_OK);

		assert_int_equal(guest_sector(&s), 10 * i);
	}
	assert_int_equal(guest_drain(g), 10);
}

static void test_no_list_is_fine(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *refused = g->bio;

	assert_int_equal(vqb_blk_submit_list(g->drv, NULL, &refused), VQB_OK);
	assert_null(refused);
	assert_int_equal(vqb_blk_submit_list(g->drv, NULL, NULL), VQB_OK);
}

static void test_what_is_refused_comes_back_in_order_and_the_rest_goes(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct guest *g = guest_on_path(state, 64, path);
		struct vqb_bio *list = make_list(g, 8), *refused;

		g->bio[1].sector = CAPACITY;
		g->bio[4].op = VQB_BLK_DISCARD;
		g->bio[4].nvec = 0;
		g->bio[4].sectors = 1;
		g->bio[7].flags = VQB_BIO_FUA;
		assert_int_equal(vqb_blk_submit_list(g->drv, list, &refused), VQB_E_INVALID);
		assert_int_equal(length_of(refused), 3);
		assert_ptr_equal(refused, &g->bio[1]);
		assert_ptr_equal(refused->next, &g->bio[4]);
		assert_ptr_equal(refused->next->next, &g->bio[7]);
		assert_int_equal(g->bio[1].status, VQB_E_INVALID);
		assert_int_equal(g->bio[4].status, VQB_E_UNSUPP);
		assert_int_equal(g->bio[7].status, VQB_E_INVALID);
		for (; refused; refused = refused->next)
			assert_int_equal(refused->state, VQB_BIO_IDLE);
		assert_int_equal(vqb_blk_in_flight(g->drv), 5);
		assert_int_equal(guest_drain(g), 5);
	}
}

/* Who doesn't ask for them gets them back all the same: they are IDLE, and say why. */
static void test_refused_ones_need_no_list(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list = make_list(g, 3);

	g->bio[0].sector = CAPACITY;
	assert_int_equal(vqb_blk_submit_list(g->drv, list, NULL), VQB_E_INVALID);
	assert_int_equal(g->bio[0].state, VQB_BIO_IDLE);
	assert_int_equal(g->bio[0].status, VQB_E_INVALID);
	assert_int_equal(guest_drain(g), 2);
}

static void test_all_refused_is_no_batch(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list = make_list(g, 3), *refused;

	for (unsigned i = 0; i < 3; i++)
		g->bio[i].sector = CAPACITY;
	vqb_blk_publish(g->drv);
	assert_int_equal(vqb_blk_submit_list(g->drv, list, &refused), VQB_E_INVALID);
	assert_int_equal(length_of(refused), 3);
	assert_int_equal(vqb_blk_publish(g->drv), VQB_QUIET);
	assert_int_equal(vqb_blk_outstanding(g->drv), 0);
}

/* One that is out already ends the list, as its `next` is in use: what came before has gone. */
static void test_a_bio_that_is_out_ends_the_list(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list = make_list(g, 5), *refused;

	guest_put(g, 2, VQB_BLK_IN, 20);
	g->bio[1].next = &g->bio[2];
	assert_int_equal(vqb_blk_submit_list(g->drv, list, &refused), VQB_E_BUSY);
	assert_null(refused);
	assert_int_equal(vqb_blk_in_flight(g->drv), 3);
	assert_int_equal(g->bio[3].state, VQB_BIO_IDLE);
	assert_int_equal(g->bio[4].state, VQB_BIO_IDLE);
	assert_int_equal(guest_drain(g), 3);
}

/* Also behind one that is refused: the caller has to know that the rest is his. */
static void test_that_a_list_ended_is_said_whatever_else_was_refused(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list = make_list(g, 5), *refused;

	guest_put(g, 2, VQB_BLK_IN, 20);
	g->bio[1].next = &g->bio[2];
	g->bio[0].flags = VQB_BIO_UNMAP; /* not of a read or write */
	assert_int_equal(vqb_blk_submit_list(g->drv, list, &refused), VQB_E_BUSY);
	assert_ptr_equal(refused, &g->bio[0]);
	assert_int_equal(refused->status, VQB_E_INVALID);
	assert_int_equal(g->bio[3].state, VQB_BIO_IDLE);
	assert_int_equal(guest_drain(g), 2);
}

/* More than there is room for: the rest waits, in order. */
static void test_a_list_longer_than_the_ring_waits(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *refused, *done;
	uint64_t next = 0;
	unsigned n = 0;

	assert_int_equal(vqb_blk_submit_list(g->drv, make_list(g, 40), &refused), VQB_OK);
	assert_null(refused);
	assert_int_equal(vqb_blk_in_flight(g->drv), 5);
	assert_int_equal(vqb_blk_waiting(g->drv), 35);
	while (vqb_blk_outstanding(g->drv)) {
		vqb_blk_publish(g->drv);
		while (bench_visible(&g->ring)) {
			struct seen s = guest_serve(g, VQB_BLK_S_OK);

			assert_int_equal(guest_sector(&s), next);
			next += 10;
		}
		n += guest_reap(g, &done);
	}
	assert_int_equal(n, 40);
}

/* Behind bios that wait a list waits, too, and is looked at together with them. */
static void test_a_list_waits_behind_others(void **state)
{
	struct guest *g = guest_on_path(state, 16, VQB_PATH_REQUEST);
	struct vqb_bio *list;

	for (unsigned i = 40; i < 46; i++)
		guest_put(g, i, VQB_BLK_OUT, 500 + 10 * i);
	assert_int_equal(vqb_blk_waiting(g->drv), 1);
	list = make_list(g, 3);
	assert_int_equal(vqb_blk_submit_list(g->drv, list, NULL), VQB_OK);
	assert_int_equal(vqb_blk_waiting(g->drv), 4);
	assert_int_equal(vqb_blk_in_flight(g->drv), 5);
	assert_int_equal(guest_drain(g), 9);
}

/* What only the ring says no to comes back with those that were refused. */
static void test_too_big_for_the_ring_is_refused_with_the_others(void **state)
{
	struct guest *g = guest_open(state, 4);
	struct vqb_bio *refused;

	guest_bio(g, 0, VQB_BLK_IN, 0, 3, 1536); /* five descriptors */
	g->bio[0].next = guest_bio(g, 8, VQB_BLK_IN, 100, 1, 512);
	g->bio[8].next = NULL;
	assert_int_equal(vqb_blk_submit_list(g->drv, &g->bio[0], &refused), VQB_E_TOOBIG);
	assert_ptr_equal(refused, &g->bio[0]);
	assert_null(refused->next);
	assert_int_equal(refused->status, VQB_E_TOOBIG);
	assert_int_equal(guest_drain(g), 1);
}

static void test_on_a_broken_ring_all_are_refused(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *refused;

	vqb_driver_needs_reset(g->ring.drv);
	assert_int_equal(vqb_blk_submit_list(g->drv, make_list(g, 3), &refused), VQB_E_NEEDS_RESET);
	assert_int_equal(length_of(refused), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(g->bio[i].status, VQB_E_NEEDS_RESET);
		assert_int_equal(g->bio[i].state, VQB_BIO_IDLE);
	}
	assert_int_equal(vqb_blk_outstanding(g->drv), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(test_a_list_is_one_batch_and_one_decision),
		guest_test(test_no_list_is_fine),
		guest_test(test_what_is_refused_comes_back_in_order_and_the_rest_goes),
		guest_test(test_refused_ones_need_no_list),
		guest_test(test_all_refused_is_no_batch),
		guest_test(test_a_bio_that_is_out_ends_the_list),
		guest_test(test_that_a_list_ended_is_said_whatever_else_was_refused),
		guest_test(test_a_list_longer_than_the_ring_waits),
		guest_test(test_a_list_waits_behind_others),
		guest_test(test_too_big_for_the_ring_is_refused_with_the_others),
		guest_test(test_on_a_broken_ring_all_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
