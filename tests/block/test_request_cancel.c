/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking a bio back: in time as long as nothing of it was sent, and the answer says so. */
#include "request_bench.h"

static void expect_cancelled(struct rb *b, struct vqb_bio *bio)
{
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_OK);
	assert_int_equal(bio->state, VQB_BIO_IDLE);
	assert_int_equal(bio->status, VQB_E_CANCELLED);
}

static void test_one_that_waits_is_taken_back_wherever_it_stands(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++)
		for (unsigned which = 0; which < 5; which++) {
			struct rb *b = rb_open(state, path);

			for (unsigned i = 0; i < 5; i++)
				rb_put(b, VQB_BLK_OUT, i * 100, 8);
			expect_cancelled(b, &b->bio[which]);
			assert_int_equal(vqb_requests_waiting(b->rq), 4);
			assert_int_equal(vqb_requests_outstanding(b->rq), 4);
			assert_int_equal(rb_send_all(b), 4);
			for (unsigned k = 0; k < 4; k++)
				rb_expect(b, k, VQB_BLK_OUT, (k + (k >= which)) * 100, 8, 1);
			rb_finish(b);
			assert_int_equal(b->handed[which], 0);
			assert_int_equal(rb_counters(b).cancelled, 1);
			assert_int_equal(rb_counters(b).done, 4);
		}
}

/* Neighbours that were to share a request with it find each other no more, or still do. */
static void test_one_of_many_neighbours(void **state)
{
	for (unsigned which = 0; which < 5; which++) {
		struct rb *b = rb_open(state, VQB_PATH_REQUEST);
		struct rb_sent s;

		for (unsigned i = 0; i < 5; i++)
			rb_put(b, VQB_BLK_OUT, i * 8, 8);
		assert_int_equal(rb_next(b, &s), VQB_OK); /* it has been looked at */
		assert_int_equal(s.r.bios, 5);
		expect_cancelled(b, &b->bio[which]);
		assert_int_equal(rb_send_all(b), which == 0 || which == 4 ? 1 : 2);
		rb_expect(b, 0, VQB_BLK_OUT, which ? 0 : 8, (which ? which : 4) * 8,
			  which ? which : 4);
		rb_finish(b);
	}
}

static void test_what_was_sent_is_too_late(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 0, 16);
	rb_send(b);
	assert_int_equal(bio->state, VQB_BIO_PARTLY);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_LATE);
	assert_int_equal(bio->state, VQB_BIO_PARTLY);
	rb_send(b);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_LATE);
	assert_int_equal(rb_done(b, 0, VQB_OK), 0);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_LATE);
	assert_int_equal(rb_done(b, 1, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_OK);
	assert_int_equal(rb_counters(b).cancelled, 0);
}

/* Between its steps, and before a second try, a bio waits, but something of it has been sent. */
static void test_between_steps_and_tries_it_is_too_late(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio = rb_put_flags(b, VQB_BLK_OUT, 0, 8, VQB_BIO_PREFLUSH);

	rb_send(b);
	rb_done(b, 0, VQB_OK);
	assert_int_equal(bio->state, VQB_BIO_PARTLY);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_LATE);
	rb_finish(b);
	rb_expect_back(b, bio, VQB_OK);

	b = rb_open(state, VQB_PATH_REQUEST);
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	rb_send_all(b);
	rb_done(b, 0, VQB_E_IO);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(vqb_requests_cancel(b->rq, &b->bio[i]), VQB_E_LATE);
	rb_finish(b);
	for (unsigned i = 0; i < 2; i++)
		rb_expect_back(b, &b->bio[i], VQB_OK);
}

static void test_what_is_not_here_cant_be_taken_back(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_BIO);
	struct vqb_bio *bio = rb_bio(b, VQB_BLK_OUT, 0, 8);
	_Alignas(64) uint8_t mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_requests *other;

	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &b->config, &other), VQB_OK);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_INVALID); /* never submitted */
	rb_submit(b, bio);
	assert_int_equal(vqb_requests_cancel(other, bio), VQB_E_INVALID);
	assert_int_equal(bio->state, VQB_BIO_WAITING);
	rb_send_all(b);
	rb_done(b, 0, VQB_OK);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_INVALID); /* done already */
	rb_submit(b, bio);
	expect_cancelled(b, bio);
	assert_int_equal(vqb_requests_cancel(b->rq, bio), VQB_E_INVALID); /* cancelled already */
}

/* It is the caller's at once: here, for another request. */
static void test_a_cancelled_one_may_be_used_again_at_once(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio = rb_put(b, VQB_BLK_OUT, 0, 8);

	rb_put(b, VQB_BLK_OUT, 100, 8);
	expect_cancelled(b, bio);
	bio->sector = 108;
	rb_submit(b, bio);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 0, VQB_BLK_OUT, 100, 16, 2);
	rb_finish(b);
	rb_expect_back(b, bio, VQB_OK);
}

/* ---- all of them ---- */

static void test_abandon_takes_back_all_that_waits(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio[4], *list = NULL, **tail = &list;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio[0] = rb_put(b, VQB_BLK_OUT, 0, 8);
	bio[1] = rb_put(b, VQB_BLK_OUT, 100, 16);
	bio[2] = rb_put(b, VQB_BLK_OUT, 200, 8);
	bio[3] = rb_put(b, VQB_BLK_FLUSH, 0, 0);
	rb_send(b);
	rb_send(b);
	vqb_requests_done(b->rq, b->sent[0].r.bio, 1, VQB_E_AGAIN, &tail);
	vqb_requests_done(b->rq, b->sent[1].r.bio, 1, VQB_E_AGAIN, &tail);
	vqb_requests_abandon(b->rq, &tail);
	*tail = NULL;
	assert_int_equal(rb_note(b, list), 4);
	rb_expect_back(b, bio[0], VQB_E_AGAIN);
	rb_expect_back(b, bio[1], VQB_E_AGAIN);
	rb_expect_back(b, bio[2], VQB_E_CANCELLED);
	rb_expect_back(b, bio[3], VQB_E_CANCELLED);
	assert_int_equal(vqb_requests_waiting(b->rq), 0);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
	assert_int_equal(rb_send_all(b), 0);
}

/* A write between its steps, and one before its second try, may have been done. */
static void test_what_is_between_steps_or_tries_is_undecided(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);
	struct vqb_bio *list = NULL, **tail = &list;

	rb_put_flags(b, VQB_BLK_OUT, 100, 8, VQB_BIO_FUA);
	rb_put(b, VQB_BLK_OUT, 0, 8);
	rb_put(b, VQB_BLK_OUT, 8, 8);
	rb_send_all(b);
	rb_done(b, 0, VQB_OK);
	rb_done(b, 1, VQB_E_IO);
	assert_int_equal(vqb_requests_waiting(b->rq), 3);
	vqb_requests_abandon(b->rq, &tail);
	*tail = NULL;
	assert_int_equal(rb_note(b, list), 3);
	for (unsigned i = 0; i < 3; i++)
		rb_expect_back(b, &b->bio[i], VQB_E_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_one_that_waits_is_taken_back_wherever_it_stands),
		rb_test(test_one_of_many_neighbours),
		rb_test(test_what_was_sent_is_too_late),
		rb_test(test_between_steps_and_tries_it_is_too_late),
		rb_test(test_what_is_not_here_cant_be_taken_back),
		rb_test(test_a_cancelled_one_may_be_used_again_at_once),
		rb_test(test_abandon_takes_back_all_that_waits),
		rb_test(test_what_is_between_steps_or_tries_is_undecided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
