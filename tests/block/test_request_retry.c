/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a shared request fails, nobody knows which of its bios is to blame: each is sent once more,
 * alone, and has its own status, as if it had never shared anything.
 */
#include "request_bench.h"

static void put_neighbours(struct rb *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rb_put(b, VQB_BLK_OUT, i * 8, 8);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(b->sent[0].r.bios, n);
}

static void test_each_has_a_status_of_its_own(void **state)
{
	static const int32_t status[] = { VQB_OK, VQB_E_IO, VQB_E_UNSUPP, VQB_OK };
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 4);
	assert_int_equal(rb_done(b, 0, VQB_E_IO), 0);
	assert_int_equal(vqb_requests_waiting(b->rq), 4);
	assert_int_equal(rb_send_all(b), 4);
	for (unsigned k = 1; k < 5; k++) {
		const struct vqb_bio *bio = b->sent[k].r.bio;

		rb_expect(b, k, VQB_BLK_OUT, bio->sector, 8, 1);
		assert_int_equal(rb_done(b, k, status[bio - b->bio]), 1);
		rb_expect_back(b, bio, status[bio - b->bio]);
	}
	assert_int_equal(rb_counters(b).retried, 4);
	assert_int_equal(rb_counters(b).errors, 2);
	assert_int_equal(rb_counters(b).done, 4);
	assert_int_equal(rb_counters(b).requests, 5);
}

/* One try more, and no third one. */
static void test_there_is_one_more_try_and_no_third(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 2);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 2);
	assert_int_equal(rb_done(b, 1, VQB_E_IO), 1);
	assert_int_equal(rb_done(b, 2, VQB_E_IO), 1);
	assert_int_equal(rb_send_all(b), 0);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
}

/* The one that was alone in its request has failed, and that is that. */
static void test_a_request_of_one_is_not_tried_again(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 1);
	assert_int_equal(rb_done(b, 0, VQB_E_IO), 1);
	rb_expect_back(b, &b->bio[0], VQB_E_IO);
	assert_int_equal(rb_counters(b).retried, 0);
}

/* On a second try a bio takes no part in merging, though its neighbours wait beside it. */
static void test_second_tries_share_nothing_with_anybody(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 3);
	rb_put(b, VQB_BLK_OUT, 24, 8); /* the neighbour of all of them */
	rb_put(b, VQB_BLK_OUT, 32, 8);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 4);
	for (unsigned k = 1; k < 4; k++)
		assert_int_equal(b->sent[k].r.bios, 1);
	rb_expect(b, 4, VQB_BLK_OUT, 24, 16, 2);
	rb_finish(b);
}

/* Of a bio that is submitted once more nothing is left of that: it may share again. */
static void test_in_its_next_life_it_shares_again(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 2);
	rb_done(b, 0, VQB_E_IO);
	rb_finish(b);
	rb_submit(b, &b->bio[0]);
	rb_submit(b, &b->bio[1]);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 3, VQB_BLK_OUT, 0, 16, 2);
	assert_int_equal(rb_done(b, 3, VQB_OK), 2);
	assert_int_equal(b->bio[0].status, VQB_OK);
}

/* A device that was reset has not failed: the bio is undecided, and not sent again by itself. */
static void test_a_reset_is_no_reason_to_try_again(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	put_neighbours(b, 3);
	assert_int_equal(rb_done(b, 0, VQB_E_AGAIN), 3);
	for (unsigned i = 0; i < 3; i++)
		rb_expect_back(b, &b->bio[i], VQB_E_AGAIN);
	assert_int_equal(rb_send_all(b), 0);
}

/* With all of its data, from its own sector on, under the limits of one alone. */
static void test_the_second_try_is_the_whole_bio(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio = rb_bio(b, VQB_BLK_OUT, 8, 8);

	b->vec[0][0].len = 1024;
	b->vec[0][1] = (struct vqb_segment){ 0x5000, 3072, 0 };
	bio->nvec = 2;
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_submit(b, bio);
	assert_int_equal(rb_send_all(b), 1);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 2);
	for (unsigned k = 1; k < 3; k++) {
		if (b->sent[k].r.bio != bio)
			continue;
		rb_expect(b, k, VQB_BLK_OUT, 8, 8, 1);
		assert_int_equal(b->sent[k].r.n, 2);
		assert_int_equal(b->sent[k].table[1].addr, 0x5000);
		assert_int_equal(b->sent[k].table[1].len, 3072);
	}
	rb_finish(b);
}

/* A long one whose last part was shared: all of it, and only when its other parts are back. */
static void test_the_second_try_of_a_long_one_is_all_of_it(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	b->limits.max_sectors = 16;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 0, 20);
	rb_put(b, VQB_BLK_OUT, 20, 4);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 1, VQB_BLK_OUT, 16, 8, 2);
	assert_int_equal(rb_done(b, 1, VQB_E_IO), 0);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 2, VQB_BLK_OUT, 20, 4, 1);
	assert_int_equal(rb_done(b, 0, VQB_OK), 0);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect(b, 3, VQB_BLK_OUT, 0, 16, 1);
	rb_expect(b, 4, VQB_BLK_OUT, 16, 4, 1);
	rb_finish(b);
	rb_expect_back(b, &b->bio[0], VQB_OK);
	rb_expect_back(b, &b->bio[1], VQB_OK);
}

/* Reads, too: and on the path that merges only what had to wait. */
static void test_on_the_other_merging_path(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_MERGE_WHEN_FULL);
	struct rb_sent s;

	for (unsigned i = 0; i < 3; i++)
		rb_put(b, VQB_BLK_IN, i * 8, 8);
	assert_int_equal(rb_next(b, &s), VQB_OK);
	assert_int_equal(s.r.bios, 1);
	vqb_requests_full(b->rq);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(rb_done(b, 0, VQB_E_UNSUPP), 0);
	assert_int_equal(rb_send_all(b), 3);
	for (unsigned k = 1; k < 4; k++)
		assert_int_equal(rb_done(b, k, VQB_E_UNSUPP), 1);
	for (unsigned i = 0; i < 3; i++)
		rb_expect_back(b, &b->bio[i], VQB_E_UNSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_each_has_a_status_of_its_own),
		rb_test(test_there_is_one_more_try_and_no_third),
		rb_test(test_a_request_of_one_is_not_tried_again),
		rb_test(test_second_tries_share_nothing_with_anybody),
		rb_test(test_in_its_next_life_it_shares_again),
		rb_test(test_a_reset_is_no_reason_to_try_again),
		rb_test(test_the_second_try_is_the_whole_bio),
		rb_test(test_the_second_try_of_a_long_one_is_all_of_it),
		rb_test(test_on_the_other_merging_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
