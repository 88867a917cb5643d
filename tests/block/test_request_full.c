/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From when until when MERGE_WHEN_FULL merges. The device here takes TIME for a request, whatever
 * its size, and does one after the other, by a clock that the test moves on.
 */
#include "lib/block/request.h" /* who counts up to millions */
#include "request_bench.h"

enum { RING = 8, TIME = 100, LIST = 4 };

static uint64_t ticks, step; /* step: that a look at the clock takes */
static unsigned looks;

static uint64_t clock_of_test(void *context)
{
	uint64_t *at = context;

	*at += step;
	looks++;
	return *at;
}

static struct rb *open_at(void **state, uint64_t at)
{
	struct rb *b = rb_plan(state, VQB_PATH_MERGE_WHEN_FULL);

	ticks = at;
	step = 0;
	b->config.clock = clock_of_test;
	b->config.context = &ticks;
	rb_start(b);
	return b;
}

/* Neighbours, which are no other list's. Answers in how many requests they are sent. */
static unsigned send_list(struct rb *b)
{
	uint64_t sector = b->bios * UINT64_C(16);

	for (unsigned i = 0; i < LIST; i++)
		rb_put(b, VQB_BLK_IN, sector + i * 8, 8);
	return rb_send_all(b);
}

/* A ring of requests and a bio for which there is no room. */
static void fill(struct rb *b)
{
	for (unsigned i = 0; i < RING / LIST; i++)
		assert_int_equal(send_list(b), LIST);
	rb_put(b, VQB_BLK_IN, 100000, 8);
	vqb_requests_full(b->rq);
}

static void serve_one(struct rb *b, unsigned k)
{
	ticks += TIME;
	rb_done(b, k, VQB_OK);
	rb_send_all(b);
}

/* All that is out comes back, one by one. */
static void serve(struct rb *b)
{
	for (unsigned k = 0; k < b->sends; k++)
		if (!b->sent[k].back)
			serve_one(b, k);
}

/*
 * A list comes for each request that comes back: after a ring of these it is behind by 25 bios. It
 * takes `more` until the first one does.
 */
static void overload_and_wait(struct rb *b, uint64_t more)
{
	unsigned first = b->sends;

	fill(b);
	ticks += more;
	for (unsigned k = 0; k < RING; k++) {
		serve_one(b, first + k);
		assert_int_equal(send_list(b), 1);
	}
}

static void overload(struct rb *b)
{
	overload_and_wait(b, 0);
}

/* Lists arrive every so often, and find the ring empty. How many of `n` are shared, at first. */
static unsigned shared_lists(struct rb *b, unsigned n, uint64_t every)
{
	unsigned shared = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t next = ticks + every;

		shared += send_list(b) == 1;
		serve(b);
		ticks = ticks > next ? ticks : next;
		if (shared != i + 1)
			break;
	}
	return shared;
}

static void test_each_goes_alone_while_there_is_room(void **state)
{
	struct rb *b = open_at(state, 1);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(send_list(b), LIST);
		serve(b);
	}
	rb_finish(b);
}

/* Twice what it could do if all went alone; yet there is nothing in the ring but one request. */
static void test_they_share_as_long_as_the_ring_would_be_full_without(void **state)
{
	struct rb *b = open_at(state, 1);

	overload(b);
	serve(b);
	assert_int_equal(shared_lists(b, 60, LIST * TIME / 2), 60);
	rb_finish(b);
}

/*
 * Behind by 25 bios less the 9 that are served until all is back, and by half of what comes in 20
 * lists. At half the load that is made good in the time of 14 lists, each of which brings half.
 */
static void test_they_go_alone_once_it_had_caught_up(void **state)
{
	struct rb *b = open_at(state, 1);
	unsigned more;

	overload(b);
	serve(b);
	assert_int_equal(shared_lists(b, 20, LIST * TIME / 2), 20);
	more = shared_lists(b, 50, LIST * TIME * 2);
	assert_in_range(more, 13, 15);
	assert_int_equal(shared_lists(b, 3, LIST * TIME * 2), 0);
	rb_finish(b);
}

/* However long it was too much, and for how long nothing comes. */
static void test_a_pause_ends_it(void **state)
{
	struct rb *b = open_at(state, 1);

	overload(b);
	serve(b);
	assert_int_equal(shared_lists(b, 70, 1), 70);
	ticks += 17 * RING * TIME;
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
	overload(b);
	serve(b);
	assert_int_equal(send_list(b), 1);
	serve(b);
	ticks += UINT64_C(1) << 62;
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

static void test_a_burst_that_fits_again_at_once_leaves_nothing_behind(void **state)
{
	struct rb *b = open_at(state, 1);

	fill(b);
	for (unsigned k = 0; k < 3; k++) {
		ticks += TIME;
		rb_done(b, k, VQB_OK);
		rb_send_all(b);
	}
	for (unsigned k = 3; k < b->sends; k++)
		rb_done(b, k, VQB_OK);
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

static void test_without_a_clock_it_ends_when_nothing_waits(void **state)
{
	struct rb *b = open_at(state, 0);

	fill(b);
	rb_put(b, VQB_BLK_IN, 100008, 8);
	rb_done(b, 0, VQB_OK);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

static void test_a_reset_ends_it(void **state)
{
	struct rb *b = open_at(state, 1);
	struct vqb_bio *list = NULL, **tail = &list;

	overload(b);
	for (unsigned k = 0; k < b->sends; k++)
		if (!b->sent[k].back)
			rb_done(b, k, VQB_E_AGAIN);
	vqb_requests_abandon(b->rq, &tail);
	*tail = NULL;
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

/* One that is sent in millions of requests, and is slow: numbers are as large as they can get. */
static void test_millions_of_requests_may_be_out(void **state)
{
	const uint32_t room = 1u << 21;
	struct rb *b = rb_plan(state, VQB_PATH_MERGE_WHEN_FULL);
	struct vqb_bio *list = NULL, **tail = &list, *bio;
	struct vqb_request r;
	uint32_t i;

	ticks = 1;
	b->config.clock = clock_of_test;
	b->config.context = &ticks;
	rb_allow_ranges(b, 1, 1);
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_DISCARD, 0, room + 1);
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_OK);
	for (i = 0; i < room; i++) {
		assert_int_equal(vqb_requests_next(b->rq, &r, b->sent->table, b->room), VQB_OK);
		vqb_requests_sent(b->rq, &r);
	}
	vqb_requests_full(b->rq);
	for (i = 0; i < room; i++) {
		ticks += UINT64_C(1) << 18;
		vqb_requests_done(b->rq, bio, 1, VQB_OK, &tail);
	}
	assert_int_equal(vqb_requests_next(b->rq, &r, b->sent->table, b->room), VQB_OK);
	vqb_requests_sent(b->rq, &r);
	vqb_requests_done(b->rq, bio, 1, VQB_OK, &tail);
	assert_ptr_equal(list, bio);
	assert_int_equal(bio->status, VQB_OK);
	ticks += UINT64_C(1) << 39;
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

/* Pairs of neighbours, each pair the wrong way round, `apart` from the next one. */
static void put_pairs(struct rb *b, unsigned pairs, uint64_t apart)
{
	uint64_t sector = b->bios * UINT64_C(1000);

	for (unsigned i = 0; i < pairs; i++, sector += apart) {
		rb_put(b, VQB_BLK_IN, sector + 8, 8);
		rb_put(b, VQB_BLK_IN, sector, 8);
	}
}

/*
 * Of 33 bios two pairs are neighbours, and not in order: the device, whose pace is known, takes two
 * requests longer without. Answers in how many requests four more pairs are sent, if the search for
 * them took `took`.
 */
static unsigned after_a_search(void **state, uint64_t took)
{
	struct rb *b = open_at(state, 5000);
	unsigned sent;

	overload(b);
	put_pairs(b, 2, 100);
	for (unsigned i = 0; i < 29; i++)
		rb_put(b, VQB_BLK_IN, (1000 - i) * UINT64_C(1000), 8);
	step = took;
	assert_int_equal(rb_send_all(b), 31);
	put_pairs(b, 4, 100);
	sent = rb_send_all(b);
	step = 0;
	serve(b);
	rb_finish(b);
	return sent;
}

static void test_looking_for_neighbours_has_to_pay(void **state)
{
	assert_int_equal(after_a_search(state, 2 * TIME), 4);
	assert_int_equal(after_a_search(state, 2 * TIME + 1), 8);
}

/* What several searches took is one sum. */
static unsigned after_two_searches(void **state, uint64_t one, uint64_t other)
{
	struct rb *b = open_at(state, 5000);
	unsigned sent;

	overload(b);
	put_pairs(b, 2, 100);
	rb_put(b, VQB_BLK_IN, 2000000, 8);
	step = one;
	assert_int_equal(rb_send_all(b), 3);
	for (unsigned i = 0; i < 29; i++)
		rb_put(b, VQB_BLK_IN, (1000 - i) * UINT64_C(1000), 8);
	step = other;
	assert_int_equal(rb_send_all(b), 29);
	step = 0;
	put_pairs(b, 4, 100);
	sent = rb_send_all(b);
	rb_finish(b);
	return sent;
}

static void test_all_searches_together_have_to_pay(void **state)
{
	assert_int_equal(after_two_searches(state, TIME, TIME), 4);
	assert_int_equal(after_two_searches(state, TIME + 1, TIME), 8);
	assert_int_equal(after_two_searches(state, TIME, TIME + 1), 8);
}

/* One that took so long that nobody can tell says nothing against looking. */
static void test_a_search_that_took_forever_is_none(void **state)
{
	for (unsigned forever = 0; forever < 2; forever++) {
		struct rb *b = open_at(state, 5000);

		overload(b);
		put_pairs(b, 2, 100);
		for (unsigned i = 0; i < 124; i++)
			rb_put(b, VQB_BLK_IN, (1000 - i) * UINT64_C(1000), 8);
		put_pairs(b, 4, 100);
		step = (UINT64_C(1) << 40) - 1 + forever;
		assert_int_equal(rb_send_all(b), 126 + (forever ? 4 : 8));
		step = 0;
		rb_finish(b);
	}
}

/* The pace was known, and then a lap took longer than can be: it does not matter any more. */
static void test_a_search_is_not_judged_by_a_pace_that_was(void **state)
{
	struct rb *b = open_at(state, 5000);
	unsigned k;

	overload(b);
	put_pairs(b, 1, 100);
	for (unsigned i = 0; i < 4; i++)
		rb_put(b, VQB_BLK_IN, (1000 - i) * UINT64_C(1000), 8);
	step = 2 * TIME + 1;
	assert_int_equal(rb_send_all(b), 5); /* too few to learn from yet */
	step = 0;
	rb_finish(b);
	ticks += 17 * RING * TIME;
	k = b->sends;
	fill(b);
	ticks += UINT64_C(1) << 40;
	for (; k < b->sends && b->rq->full.left; k++)
		rb_done(b, k, VQB_OK);
	rb_send_all(b);
	put_pairs(b, 1, 100);
	for (unsigned i = 0; i < 126; i++)
		rb_put(b, VQB_BLK_IN, (2000 - i) * UINT64_C(1000), 8);
	put_pairs(b, 4, 100);
	assert_int_equal(rb_send_all(b), 127 + 4);
	rb_finish(b);
}

/* Elsewhere it does not matter how fast a device is, be it one that was known before. */
static void test_a_pace_is_known_of_one_path_only(void **state)
{
	struct rb *b = open_at(state, 5000);

	overload(b);
	serve(b);
	rb_finish(b);
	assert_int_equal(vqb_requests_set_path(b->rq, VQB_PATH_REQUEST), VQB_OK);
	looks = 0;
	put_pairs(b, 2, 100);
	for (unsigned i = 0; i < 29; i++)
		rb_put(b, VQB_BLK_IN, (1000 - i) * UINT64_C(1000), 8);
	assert_int_equal(rb_send_all(b), 31);
	assert_int_equal(looks, 0);
	rb_finish(b);
}

/* A bio that is sent at once, and back, while others are out. */
static void one_more(struct rb *b, struct vqb_bio *bio)
{
	struct vqb_bio *list = NULL, **tail = &list;
	struct vqb_request r;

	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_OK);
	assert_int_equal(vqb_requests_next(b->rq, &r, b->sent->table, b->room), VQB_OK);
	assert_ptr_equal(r.bio, bio);
	vqb_requests_sent(b->rq, &r);
	vqb_requests_done(b->rq, bio, 1, VQB_OK, &tail);
	assert_ptr_equal(list, bio);
}

/* How many until somebody looks at the clock, that one included; 1000: as many, and nobody did. */
static unsigned until_a_look(struct rb *b, struct vqb_bio *bio)
{
	unsigned n = 0;

	for (looks = 0; !looks && n < 1000; n++)
		one_more(b, bio);
	assert_in_range(looks, 0, 1);
	return n;
}

/*
 * All goes out at once, but it is behind: by 25 bios, and by what comes then. Of a ring of 8 half
 * of 16 laps are 64 bios; more than 128 it is never behind.
 */
static void test_the_clock_is_looked_at_now_and_then(void **state)
{
	struct rb *b = open_at(state, 1);
	struct vqb_bio *bio;

	overload(b);
	rb_send_all(b);
	bio = rb_bio(b, VQB_BLK_IN, 1000000, 8);
	assert_in_range(until_a_look(b, bio), 1, 32);
	assert_int_equal(until_a_look(b, bio), 32); /* by 53 before, by 85 now */
	assert_int_equal(until_a_look(b, bio), 512);
	ticks += (128 - 65) * TIME; /* by 128 before, by 65 now */
	assert_int_equal(until_a_look(b, bio), 512);
	assert_int_equal(until_a_look(b, bio), 512);
	ticks += (128 - 64) * TIME;
	assert_int_equal(until_a_look(b, bio), 512);
	assert_int_equal(until_a_look(b, bio), 32);
	assert_int_equal(until_a_look(b, bio), 512);
	rb_finish(b);
}

/* It is over when it is ahead: not while it has just caught up. */
static void test_it_goes_on_while_it_is_not_ahead(void **state)
{
	for (unsigned ahead = 0; ahead < 4; ahead++) {
		struct rb *b = open_at(state, 1);
		struct vqb_bio *bio;

		/* However long the first one takes: that is no pace. */
		overload_and_wait(b, ahead & 2 ? 20 * TIME : 0);
		rb_send_all(b);
		bio = rb_bio(b, VQB_BLK_IN, 1000000, 8);
		until_a_look(b, bio);
		ticks += (53 + 32) * TIME + (ahead & 1); /* by 53 before, by 32 that come */
		assert_int_equal(until_a_look(b, bio), 32);
		assert_int_equal(until_a_look(b, bio), ahead & 1 ? 1000 : 32);
		rb_finish(b);
	}
}

/* Who is told so again knows nothing new. */
static void test_full_once_more_is_full_as_before(void **state)
{
	for (unsigned ahead = 0; ahead < 2; ahead++) {
		struct rb *b = open_at(state, 1);
		struct vqb_bio *bio;

		overload(b);
		for (unsigned i = 0; i < 5; i++) {
			rb_put(b, VQB_BLK_IN, 2000000 + 10 * i, 8);
			vqb_requests_full(b->rq);
			assert_int_equal(rb_send_all(b), 1);
		}
		bio = rb_bio(b, VQB_BLK_IN, 1000000, 8);
		until_a_look(b, bio);
		ticks += (53 + 32) * TIME + ahead; /* as above */
		assert_int_equal(until_a_look(b, bio), 32);
		assert_int_equal(until_a_look(b, bio), ahead ? 1000 : 32);
		rb_finish(b);
	}
}

static void test_it_is_not_full_when_nothing_waits(void **state)
{
	struct rb *b = open_at(state, 1);

	assert_int_equal(send_list(b), LIST);
	vqb_requests_full(b->rq);
	assert_int_equal(send_list(b), LIST);
	rb_finish(b);
}

/* After four millions of bios, however far it is behind. */
static void test_sometime_it_ends_to_be_timed_anew(void **state)
{
	for (uint32_t over = 0; over < 2; over++) {
		struct rb *b = open_at(state, 1);
		struct vqb_bio *bio;

		overload(b);
		rb_send_all(b);
		bio = rb_bio(b, VQB_BLK_IN, 1000000, 8);
		until_a_look(b, bio);
		b->rq->full.since = b->rq->full.seen + 32 - (1u << 22) - over;
		assert_int_equal(until_a_look(b, bio), 32);
		assert_int_equal(until_a_look(b, bio), over ? 1000 : 512);
		rb_finish(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_each_goes_alone_while_there_is_room),
		rb_test(test_they_share_as_long_as_the_ring_would_be_full_without),
		rb_test(test_they_go_alone_once_it_had_caught_up),
		rb_test(test_a_pause_ends_it),
		rb_test(test_a_burst_that_fits_again_at_once_leaves_nothing_behind),
		rb_test(test_without_a_clock_it_ends_when_nothing_waits),
		rb_test(test_a_reset_ends_it),
		rb_test(test_millions_of_requests_may_be_out),
		rb_test(test_looking_for_neighbours_has_to_pay),
		rb_test(test_all_searches_together_have_to_pay),
		rb_test(test_a_search_that_took_forever_is_none),
		rb_test(test_a_search_is_not_judged_by_a_pace_that_was),
		rb_test(test_a_pace_is_known_of_one_path_only),
		rb_test(test_the_clock_is_looked_at_now_and_then),
		rb_test(test_it_goes_on_while_it_is_not_ahead),
		rb_test(test_full_once_more_is_full_as_before),
		rb_test(test_it_is_not_full_when_nothing_waits),
		rb_test(test_sometime_it_ends_to_be_timed_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
