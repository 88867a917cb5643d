/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discards, writes of zeroes and secure erases: ranges instead of data, cut at their own limits,
 * and several of them in a request where the device takes several.
 */
#include "request_bench.h"

static const uint8_t ops[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_SECURE_ERASE };

/* Shows: K33 */
static void test_with_one_range_to_a_request_neighbours_are_one_range(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	rb_allow_ranges(b, 1, 1000);
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 0, 8);
	rb_put(b, VQB_BLK_DISCARD, 8, 8);
	rb_put(b, VQB_BLK_DISCARD, 16, 8);
	rb_put(b, VQB_BLK_DISCARD, 100, 8);
	assert_int_equal(rb_send_all(b), 2);
	assert_int_equal(b->sent[0].r.n, 1);
	assert_int_equal(b->sent[0].r.bios, 3);
	rb_expect_range(b, 0, 0, 0, 24);
	assert_int_equal(b->sent[1].r.n, 1);
	rb_expect_range(b, 1, 0, 100, 8);
}

/* Shows: K33 */
static void test_as_many_ranges_are_counted_as_there_are(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
	uint64_t at = 0;

	rb_allow_ranges(b, 256, 1000);
	b->room = 128;
	b->config.max_ranges = 128;
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 0, 8);
	rb_put(b, VQB_BLK_DISCARD, 8, 8);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(b->sent[0].r.bios, 2);
	for (uint32_t i = 0; i < b->sent[0].r.n; i++) {
		assert_int_equal(b->sent[0].table[i].addr, at);
		at += b->sent[0].table[i].len;
	}
	assert_int_equal(at, 16);
	for (uint32_t i = b->sent[0].r.n; i < RB_ROOM; i++)
		assert_int_equal(b->sent[0].table[i].len, 0xeeeeeeee);
}

/* Shows: K33 BLK-DRV-16 */
static void test_max_discard_seg_of_0_is_one_range(void **state)
{
	const uint64_t features = BIT(DISCARD) | BIT(SEG_MAX);
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
	struct vqb_blk_config space;
	struct vqb_blk_limits blk;

	memset(&space, 0, sizeof(space));
	space.capacity = vqb_to_le64(1024);
	space.seg_max = vqb_to_le32(126);
	space.max_discard_sectors = vqb_to_le32(512);
	assert_int_equal(vqb_blk_limits_read(&space, sizeof(space), features, 128, &blk), VQB_OK);
	assert_int_equal(vqb_limits_of_blk(&blk, features, 128, &b->limits), VQB_OK);
	b->config.features = features;
	rb_start(b);
	for (unsigned i = 0; i < 5; i++)
		rb_put(b, VQB_BLK_DISCARD, i * 20, 8);
	assert_int_equal(rb_send_all(b), 5);
	for (unsigned k = 0; k < 5; k++) {
		assert_int_equal(b->sent[k].r.n, 1);
		rb_expect_range(b, k, 0, k * 20, 8);
	}
}

/* Shows: BLK-DRV-16 BLK-DRV-17 BLK-DRV-18 */
static void test_a_request_has_as_many_ranges_as_its_limit_says_and_no_more(void **state)
{
	for (unsigned k = 0; k < 3; k++) {
		struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

		/* The limit of each op is another one. */
		rb_allow_ranges(b, 16, 100);
		b->limits.discard.max_ranges = 3;
		b->limits.zeroes.max_ranges = 4;
		b->limits.erase.max_ranges = 5;
		rb_start(b);
		for (unsigned i = 0; i < 3 + k; i++)
			rb_put(b, ops[k], i * 10, 8);
		assert_int_equal(rb_send_all(b), 1);
		assert_int_equal(b->sent[0].r.n, 3 + k);
		for (unsigned i = 0; i < 4 + k; i++)
			rb_put(b, ops[k], 1000 + i * 10, 8);
		assert_int_equal(rb_send_all(b), 2);
		assert_int_equal(b->sent[1].r.n, 3 + k);
		assert_int_equal(b->sent[2].r.n, 1);
		rb_finish(b);
	}
}

/* What the driver has memory for is a limit, too. */
static void test_nor_more_than_there_is_memory_for(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	rb_allow_ranges(b, 16, 100);
	b->config.max_ranges = 2;
	rb_start(b);
	for (unsigned i = 0; i < 5; i++)
		rb_put(b, VQB_BLK_DISCARD, i * 10, 8);
	assert_int_equal(rb_send_all(b), 3);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(b->sent[k].r.n, k < 2 ? 2 : 1);
}

static void test_each_op_needs_limits_of_its_own(void **state)
{
	for (unsigned k = 0; k < 3; k++) {
		struct rb *b = rb_plan(state, VQB_PATH_BIO);
		struct vqb_bio *bio;

		rb_allow_ranges(b, 16, 100);
		if (k == 0)
			memset(&b->limits.discard, 0, sizeof(b->limits.discard));
		else if (k == 1)
			memset(&b->limits.zeroes, 0, sizeof(b->limits.zeroes));
		else
			memset(&b->limits.erase, 0, sizeof(b->limits.erase));
		rb_start(b);
		for (unsigned i = 0; i < 3; i++) {
			bio = rb_bio(b, ops[i], 0, 8);
			assert_int_equal(vqb_requests_submit(b->rq, bio),
					 i == k ? VQB_E_UNSUPP : VQB_OK);
			assert_int_equal(bio->status, i == k ? VQB_E_UNSUPP : VQB_OK);
		}
	}
}

static void test_with_no_memory_for_ranges_there_are_none(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	rb_allow_ranges(b, 16, 100);
	b->config.max_ranges = 0;
	rb_start(b);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(vqb_requests_submit(b->rq, rb_bio(b, ops[k], 0, 8)), VQB_E_UNSUPP);
}

static void test_a_long_one_is_cut_into_ranges_and_those_into_requests(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	uint64_t at = 3;
	unsigned ranges = 0;
	struct vqb_bio *bio;

	rb_allow_ranges(b, 4, 8);
	rb_start(b);
	bio = rb_put(b, VQB_BLK_WRITE_ZEROES, 3, 100);
	assert_int_equal(rb_send_all(b), 4);
	for (unsigned k = 0; k < 4; k++) {
		assert_int_equal(b->sent[k].r.bios, 1);
		for (uint32_t i = 0; i < b->sent[k].r.n; i++, ranges++) {
			rb_expect_range(b, k, i, at, at + 8 <= 103 ? 8 : (uint32_t)(103 - at));
			at += b->sent[k].table[i].len;
		}
		assert_int_equal(rb_done(b, k, VQB_OK), k == 3);
	}
	assert_int_equal(at, 103);
	assert_int_equal(ranges, 13);
	rb_expect_back(b, bio, VQB_OK);
}

static void test_cuts_are_at_the_device_alignment(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	rb_allow_ranges(b, 1, 20);
	b->limits.discard.alignment = 16;
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 5, 50);
	assert_int_equal(rb_send_all(b), 4);
	rb_expect_range(b, 0, 0, 5, 11);
	rb_expect_range(b, 1, 0, 16, 16);
	rb_expect_range(b, 2, 0, 32, 16);
	rb_expect_range(b, 3, 0, 48, 7);
}

/* An alignment that is no power of two, and one that is longer than a range may be. */
static void test_an_odd_alignment_and_one_out_of_reach(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	rb_allow_ranges(b, 1, 10);
	b->limits.discard.alignment = 7;
	b->limits.erase.alignment = 1000;
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 3, 20);
	assert_int_equal(rb_send_all(b), 3);
	rb_expect_range(b, 0, 0, 3, 4);
	rb_expect_range(b, 1, 0, 7, 7);
	rb_expect_range(b, 2, 0, 14, 9); /* all that is left */
	rb_put(b, VQB_BLK_SECURE_ERASE, 3, 20);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect_range(b, 3, 0, 3, 10);
	rb_expect_range(b, 4, 0, 13, 10);
}

/* All of a disk of 2^40 sectors: a range has 32 bits. */
static void test_longer_than_a_range_has_bits(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;
	uint64_t at = 0;

	rb_allow_ranges(b, 128, UINT32_MAX);
	b->config.capacity = UINT64_C(1) << 40;
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_DISCARD, 0, 0);
	bio->sectors = UINT64_C(1) << 40;
	rb_submit(b, bio);
	rb_send_all(b);
	for (unsigned k = 0; k < b->sends; k++)
		for (uint32_t i = 0; i < b->sent[k].r.n; i++) {
			assert_int_equal(b->sent[k].table[i].addr, at);
			at += b->sent[k].table[i].len;
		}
	assert_int_equal(at, UINT64_C(1) << 40);
	assert_in_range(b->sends, 1, 3);
	rb_finish(b);
}

static void test_what_is_no_range_of_the_disk_is_refused(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	static const struct {
		uint64_t sector, sectors;
		int32_t status;
	} try[] = {
		{ 0, 1000, VQB_OK },
		{ 999, 1, VQB_OK },
		{ 0, 0, VQB_E_INVALID },
		{ 1000, 1, VQB_E_INVALID },
		{ 999, 2, VQB_E_INVALID },
		{ 1, UINT64_MAX, VQB_E_INVALID },
		{ UINT64_MAX, 1, VQB_E_INVALID },
		{ 2000, 0, VQB_E_INVALID },
	};
	struct vqb_bio *bio;

	rb_allow_ranges(b, 4, 100);
	b->config.capacity = 1000;
	rb_start(b);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
			bio = rb_bio(b, ops[k], try[i].sector, 0);
			bio->sectors = try[i].sectors;
			assert_int_equal(vqb_requests_submit(b->rq, bio), try[i].status);
		}
	bio = rb_bio(b, VQB_BLK_DISCARD, 0, 8);
	bio->vec = b->vec[0];
	bio->nvec = 1;
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_INVALID);
	b->limits.block_size = b->limits.split_align = 4096;
	assert_int_equal(vqb_requests_configure(b->rq, &b->config), VQB_OK);
	assert_int_equal(vqb_requests_submit(b->rq, rb_bio(b, VQB_BLK_DISCARD, 4, 8)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_requests_submit(b->rq, rb_bio(b, VQB_BLK_DISCARD, 8, 4)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_requests_submit(b->rq, rb_bio(b, VQB_BLK_DISCARD, 8, 8)), VQB_OK);
}

/* Shows: BLK-DRV-21 */
static void test_unmap_is_for_zeroes_alone_and_shared_only_with_its_like(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio;

	rb_allow_ranges(b, 4, 100);
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_DISCARD, 0, 8);
	bio->flags = VQB_BIO_UNMAP;
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_INVALID);
	bio = rb_bio(b, VQB_BLK_SECURE_ERASE, 0, 8);
	bio->flags = VQB_BIO_UNMAP;
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_INVALID);
	rb_put_flags(b, VQB_BLK_WRITE_ZEROES, 0, 8, VQB_BIO_UNMAP);
	rb_put_flags(b, VQB_BLK_WRITE_ZEROES, 8, 8, VQB_BIO_UNMAP);
	rb_put(b, VQB_BLK_WRITE_ZEROES, 16, 8);
	rb_put(b, VQB_BLK_DISCARD, 24, 8);
	assert_int_equal(rb_send_all(b), 3);
	assert_int_equal(b->sent[0].r.flags, VQB_BIO_UNMAP);
	assert_int_equal(b->sent[0].r.bios, 2);
	assert_int_equal(b->sent[1].r.flags, 0);
	assert_int_equal(b->sent[1].r.bios, 1);
	assert_int_equal(b->sent[2].r.flags, 0);
	assert_int_equal(b->sent[2].r.op, VQB_BLK_DISCARD);
}

/*
 * A failure of several says nothing of any one of them: each is sent once more and has its own.
 *
 * Shows: BLK-DRV-07 BLK-DRV-23
 */
static void test_after_a_failure_each_range_has_a_request_of_its_own(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
	struct vqb_bio *bio[3];

	rb_allow_ranges(b, 4, 100);
	rb_start(b);
	for (unsigned i = 0; i < 3; i++)
		bio[i] = rb_put(b, VQB_BLK_DISCARD, i * 10, 8);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(rb_done(b, 0, VQB_E_IO), 0);
	assert_int_equal(rb_send_all(b), 3);
	for (unsigned k = 1; k < 4; k++) {
		assert_int_equal(b->sent[k].r.n, 1);
		rb_expect_range(b, k, 0, (k - 1) * 10, 8);
		assert_int_equal(rb_done(b, k, k == 2 ? VQB_E_IO : VQB_OK), 1);
		rb_expect_back(b, bio[k - 1], k == 2 ? VQB_E_IO : VQB_OK);
	}
}

/* A single bio of several ranges that fails has failed as a whole: no more is known of it. */
/* Shows: BLK-DRV-07 */
static void test_a_bio_of_several_ranges_fails_as_a_whole(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	rb_allow_ranges(b, 4, 8);
	rb_start(b);
	bio = rb_put(b, VQB_BLK_DISCARD, 0, 32);
	assert_int_equal(rb_send_all(b), 1);
	assert_int_equal(b->sent[0].r.n, 4);
	assert_int_equal(rb_done(b, 0, VQB_E_IO), 1);
	rb_expect_back(b, bio, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 0);
}

/* Where only one range fits, a long one and its neighbour may be joined only up to the limit. */
static void test_joined_ranges_stay_within_the_longest(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	rb_allow_ranges(b, 1, 16);
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 0, 8);
	rb_put(b, VQB_BLK_DISCARD, 8, 8);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect_range(b, 0, 0, 0, 16);
	rb_put(b, VQB_BLK_DISCARD, 100, 8);
	rb_put(b, VQB_BLK_DISCARD, 108, 9);
	assert_int_equal(rb_send_all(b), 2);
	rb_expect_range(b, 1, 0, 100, 8);
	rb_expect_range(b, 2, 0, 108, 9);
	rb_put(b, VQB_BLK_DISCARD, 209, 8);
	rb_put(b, VQB_BLK_DISCARD, 200, 9);
	assert_int_equal(rb_send_all(b), 2);
}

/* One that takes more ranges than are left takes none of them. */
static void test_a_bio_is_in_a_request_with_all_of_its_ranges(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	rb_allow_ranges(b, 3, 8);
	rb_start(b);
	rb_put(b, VQB_BLK_DISCARD, 0, 8);
	rb_put(b, VQB_BLK_DISCARD, 20, 8);
	rb_put(b, VQB_BLK_DISCARD, 40, 16);
	rb_put(b, VQB_BLK_DISCARD, 60, 8);
	assert_int_equal(rb_send_all(b), 2);
	assert_int_equal(b->sent[0].r.bios, 2);
	assert_int_equal(b->sent[0].r.n, 2);
	assert_int_equal(b->sent[0].r.bytes, 32);
	assert_int_equal(b->sent[1].r.bios, 2);
	assert_int_equal(b->sent[1].r.n, 3);
	rb_finish(b);
}

/* What lies between two ranges is none of theirs: a write there goes its own way, in its order. */
static void test_a_write_between_two_ranges_keeps_its_place(void **state)
{
	static const uint64_t at[] = { 104, 107, 108 }; /* it overlaps the write, or no more */

	for (unsigned i = 0; i < 3; i++) {
		struct rb *b = rb_plan(state, VQB_PATH_REQUEST);
		unsigned apart = at[i] < 108;

		rb_allow_ranges(b, 4, 100);
		rb_start(b);
		rb_put(b, VQB_BLK_DISCARD, 0, 8);
		rb_put(b, VQB_BLK_OUT, 100, 8);
		rb_put(b, VQB_BLK_DISCARD, at[i], 8);
		assert_int_equal(rb_send_all(b), 2 + apart);
		rb_expect_range(b, 0, 0, 0, 8);
		assert_int_equal(b->sent[0].r.n, 2 - apart);
		rb_expect(b, 1, VQB_BLK_OUT, 100, 8, 1);
		rb_expect_range(b, 2 * apart, !apart, at[i], 8);
	}
}

/* Discards and zeroes that lie between each other find their own. */
static void test_ranges_of_two_ops_in_turn_are_two_requests(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_REQUEST);

	rb_allow_ranges(b, 8, 1024);
	rb_start(b);
	for (unsigned i = 0; i < 4; i++) {
		rb_put(b, VQB_BLK_DISCARD, i * 100, 8);
		rb_put(b, VQB_BLK_WRITE_ZEROES, i * 100 + 50, 8);
	}
	assert_int_equal(rb_send_all(b), 2);
	assert_int_equal(b->sent[0].r.bios, 4);
	assert_int_equal(b->sent[1].r.bios, 4);
	rb_finish(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_with_one_range_to_a_request_neighbours_are_one_range),
		rb_test(test_as_many_ranges_are_counted_as_there_are),
		rb_test(test_max_discard_seg_of_0_is_one_range),
		rb_test(test_a_request_has_as_many_ranges_as_its_limit_says_and_no_more),
		rb_test(test_nor_more_than_there_is_memory_for),
		rb_test(test_each_op_needs_limits_of_its_own),
		rb_test(test_with_no_memory_for_ranges_there_are_none),
		rb_test(test_a_long_one_is_cut_into_ranges_and_those_into_requests),
		rb_test(test_cuts_are_at_the_device_alignment),
		rb_test(test_an_odd_alignment_and_one_out_of_reach),
		rb_test(test_longer_than_a_range_has_bits),
		rb_test(test_what_is_no_range_of_the_disk_is_refused),
		rb_test(test_unmap_is_for_zeroes_alone_and_shared_only_with_its_like),
		rb_test(test_after_a_failure_each_range_has_a_request_of_its_own),
		rb_test(test_a_bio_of_several_ranges_fails_as_a_whole),
		rb_test(test_joined_ranges_stay_within_the_longest),
		rb_test(test_a_bio_is_in_a_request_with_all_of_its_ranges),
		rb_test(test_a_write_between_two_ranges_keeps_its_place),
		rb_test(test_ranges_of_two_ops_in_turn_are_two_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
