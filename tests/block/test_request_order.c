/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * First come, first served: nothing passes what waits, be it small, on every path; and what is
 * large gets its turn.
 */
#include "request_bench.h"

static void test_requests_go_in_the_order_of_submission(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_open(state, path);

		for (unsigned i = 0; i < 40; i++)
			rb_put(b, i & 1 ? VQB_BLK_IN : VQB_BLK_OUT, (i * 17) % 40 * 100, 8);
		assert_int_equal(rb_send_all(b), 40);
		for (unsigned i = 0; i < 40; i++)
			assert_int_equal(b->sent[i].r.sector, b->bio[i].sector);
	}
}

/* Only looking changes nothing: what could not be sent is the next one, as often as it takes. */
static void test_what_is_not_sent_stays_the_next_one(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_open(state, path);
		struct rb_sent s;

		rb_put(b, VQB_BLK_OUT, 500, 8);
		for (unsigned i = 0; i < 10; i++) {
			assert_int_equal(rb_next(b, &s), VQB_OK);
			assert_ptr_equal(s.r.bio, &b->bio[0]);
			vqb_requests_full(b->rq);
			rb_put(b, VQB_BLK_OUT, 10 * i, 8); /* nobody's neighbour */
		}
		assert_int_equal(b->bio[0].state, VQB_BIO_WAITING);
		assert_int_equal(rb_send_all(b), 11);
		rb_expect(b, 0, VQB_BLK_OUT, 500, 8, 1);
		assert_int_equal(rb_counters(b).full, 10);
	}
}

/* A long one among short ones: all of its parts go before what came later. */
static void test_a_long_one_is_sent_whole_before_the_next(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_plan(state, path);

		b->limits.max_sectors = 16;
		rb_start(b);
		rb_put(b, VQB_BLK_OUT, 1000, 8);
		rb_put(b, VQB_BLK_OUT, 0, 80);
		for (unsigned i = 0; i < 4; i++)
			rb_put(b, VQB_BLK_OUT, 2000 + i * 10, 8);
		assert_int_equal(rb_send_all(b), 10);
		rb_expect(b, 0, VQB_BLK_OUT, 1000, 8, 1);
		for (unsigned k = 1; k < 6; k++)
			rb_expect(b, k, VQB_BLK_OUT, (k - 1) * 16, 16, 1);
		rb_expect(b, 6, VQB_BLK_OUT, 2000, 8, 1);
		rb_finish(b);
	}
}

/*
 * New ones arrive for ever, each a neighbour of the one before it: the flush, the long write and
 * the read that are in the middle of them are sent when it is their turn.
 */
static void test_nothing_starves_behind_what_could_be_joined(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_plan(state, path);
		unsigned in_front = 0, next = 0;

		b->limits.max_sectors = 64;
		rb_start(b);
		vqb_requests_full(b->rq);
		for (unsigned i = 0; i < 20; i++)
			rb_put(b, VQB_BLK_OUT, next++, 1);
		rb_put(b, VQB_BLK_FLUSH, 0, 0);
		rb_put(b, VQB_BLK_IN, 100000, 200);
		while (b->bio[21].state != VQB_BIO_SENT) {
			struct rb_sent *s;

			rb_put(b, VQB_BLK_OUT, next++, 1);
			rb_put(b, VQB_BLK_OUT, next++, 1);
			vqb_requests_full(b->rq);
			s = rb_send(b);
			assert_non_null(s);
			if (s->r.op == VQB_BLK_FLUSH)
				assert_true(in_front <= 20);
			else if (s->r.op == VQB_BLK_OUT)
				in_front++;
			if (s->r.op == VQB_BLK_OUT)
				assert_true(s->r.sector + s->r.bytes / 512 <= 20);
		}
		assert_int_equal(b->bio[20].state, VQB_BIO_SENT);
		assert_true(in_front <= 20);
	}
}

/*
 * Neighbours that fill requests in front of it on the disk may go right before the oldest one, and
 * nobody else: it is its turn after as many of them as there are.
 */
static void test_only_neighbours_go_before_the_oldest(void **state)
{
	for (unsigned first = 0; first < 12; first++) {
		struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
		const struct rb_sent *s;
		uint64_t at = 0;

		b->limits.max_sectors = 3;
		rb_start(b);
		rb_put(b, VQB_BLK_OUT, first, 1);
		for (unsigned i = 0; i < 12; i++)
			if (i != first)
				rb_put(b, VQB_BLK_OUT, i, 1);
		for (unsigned i = 0; i < 20; i++) /* nobody's neighbours */
			rb_put(b, VQB_BLK_OUT, 100 + 2 * i, 1);
		while (b->bio[0].state == VQB_BIO_WAITING) {
			s = rb_send(b);
			assert_in_range(s->r.sector, at, first);
			at = s->r.sector + s->r.bytes / 512;
		}
		assert_in_range(b->sends, 1, 4);
		rb_finish(b);
	}
}

/* What is to be sent once more goes before all others, and alone. */
static void test_second_tries_go_first(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_REQUEST);

	for (unsigned i = 0; i < 4; i++)
		rb_put(b, VQB_BLK_OUT, (3 - i) * 8, 8);
	assert_int_equal(rb_send_all(b), 1);
	rb_put(b, VQB_BLK_OUT, 1000, 8);
	rb_put(b, VQB_BLK_OUT, 1008, 8);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 5);
	rb_expect(b, 5, VQB_BLK_OUT, 1000, 16, 2);
	for (unsigned k = 1; k < 5; k++)
		assert_int_equal(b->sent[k].r.bios, 1);
	rb_finish(b);
}

/* The same for the first attempt and for those that follow: no room makes no other request. */
static void test_full_changes_no_request_of_the_fixed_paths(void **state)
{
	static const uint32_t fixed[] = { VQB_PATH_BIO, VQB_PATH_REQUEST };

	for (unsigned p = 0; p < 2; p++) {
		struct rb *b = rb_open(state, fixed[p]);
		struct rb_sent first, again;

		for (unsigned i = 0; i < 3; i++)
			rb_put(b, VQB_BLK_OUT, i * 8, 8);
		assert_int_equal(rb_next(b, &first), VQB_OK);
		vqb_requests_full(b->rq);
		assert_int_equal(rb_next(b, &again), VQB_OK);
		assert_int_equal(first.r.bios, fixed[p] == VQB_PATH_BIO ? 1 : 3);
		rb_expect_same(&first.r, &again.r);
	}
}

static void test_who_found_no_room_alone_goes_with_those_that_came_since(void **state)
{
	for (uint32_t path = VQB_PATH_MERGE_WHEN_FULL; path <= VQB_PATH_REQUEST; path++) {
		struct rb *b = rb_open(state, path);
		struct vqb_segment table[8];
		struct vqb_request r;

		rb_put(b, VQB_BLK_OUT, 8, 8);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(vqb_requests_next(b->rq, &r, table, 8), VQB_OK);
			vqb_requests_full(b->rq);
		}
		rb_put(b, VQB_BLK_OUT, 16, 8);
		rb_put(b, VQB_BLK_OUT, 0, 8);
		assert_int_equal(rb_send_all(b), path == VQB_PATH_BIO ? 3 : 1);
		rb_finish(b);
	}
}

static void test_a_sorted_list_is_as_it_was_submitted(void **state)
{
	static const unsigned turn[] = { 3, 0, 4, 1, 2, 7, 6, 5 };
	struct rb *b = rb_open(state, VQB_PATH_BIO);
	struct vqb_bio *list = NULL, **tail = &list;

	vqb_requests_sort(&list);
	assert_null(list);
	for (unsigned i = 0; i < 8; i++)
		rb_put(b, VQB_BLK_OUT, i * 100, 8);
	assert_int_equal(rb_send_all(b), 8);
	for (unsigned i = 0; i < 8; i++)
		vqb_requests_done(b->rq, b->sent[turn[i]].r.bio, 1, VQB_E_AGAIN, &tail);
	*tail = NULL;
	assert_ptr_equal(list, &b->bio[3]);
	vqb_requests_sort(&list);
	for (unsigned i = 0; i < 8; i++, list = list->next) {
		assert_ptr_equal(list, &b->bio[i]);
		assert_int_equal(list->status, VQB_E_AGAIN);
	}
	assert_null(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_requests_go_in_the_order_of_submission),
		rb_test(test_what_is_not_sent_stays_the_next_one),
		rb_test(test_a_long_one_is_sent_whole_before_the_next),
		rb_test(test_nothing_starves_behind_what_could_be_joined),
		rb_test(test_only_neighbours_go_before_the_oldest),
		rb_test(test_second_tries_go_first),
		rb_test(test_full_changes_no_request_of_the_fixed_paths),
		rb_test(test_who_found_no_room_alone_goes_with_those_that_came_since),
		rb_test(test_a_sorted_list_is_as_it_was_submitted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
