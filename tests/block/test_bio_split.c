/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bio that is longer than a request may be: it is cut where limits ask for it, and handed back
 * once, when all of its parts are back, with the first error that there was.
 */
#include "request_bench.h"

/* Requests of these lengths, one after the other from `sector` on. */
static void expect_cut(const struct rb *b, uint64_t sector, const uint32_t *sectors, unsigned n)
{
	assert_int_equal(b->sends, n);
	for (unsigned k = 0; k < n; k++) {
		rb_expect(b, k, VQB_BLK_OUT, sector, sectors[k], 1);
		sector += sectors[k];
	}
}

/* Shows: K35 */
static void test_a_limit_of_8_sectors_makes_16_parts_of_128(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	uint32_t eight[16];

	for (unsigned i = 0; i < 16; i++)
		eight[i] = 8;
	b->limits.max_sectors = 8;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 0, 128);
	assert_int_equal(rb_send_all(b), 16);
	expect_cut(b, 0, eight, 16);
	for (unsigned k = 0; k < 16; k++)
		assert_int_equal(b->sent[k].table[0].addr, b->vec[0][0].addr + k * 4096);
	assert_int_equal(rb_counters(b).parts, 16);
	assert_int_equal(rb_counters(b).requests, 16);
}

/* Shows: K35 */
static void test_parts_end_at_physical_blocks_where_they_can(void **state)
{
	static const uint32_t aligned[] = { 4, 3, 4, 4, 1 }, plain[] = { 4, 4, 4, 4 };
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	b->limits.max_sectors = 4;
	b->limits.split_align = 4096;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 1, 16);
	rb_send_all(b);
	expect_cut(b, 1, aligned, 5);

	b = rb_plan(state, VQB_PATH_BIO);
	b->limits.max_sectors = 4;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 1, 16);
	rb_send_all(b);
	expect_cut(b, 1, plain, 4);
}

/* Limits as a driver has them from what a device says, on a ring of 64. */
static void send_under_seg_max(struct rb *b, uint64_t features, uint32_t seg_max)
{
	struct vqb_blk_limits blk;
	struct vqb_blk_config space;
	struct vqb_bio *bio;

	memset(&space, 0, sizeof(space));
	space.capacity = vqb_to_le64(1024);
	space.seg_max = vqb_to_le32(seg_max);
	assert_int_equal(vqb_blk_limits_read(&space, sizeof(space), features, 64, &blk), VQB_OK);
	assert_int_equal(vqb_limits_of_blk(&blk, features, 64, &b->limits), VQB_OK);
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_OUT, 0, 8);
	for (unsigned i = 0; i < RB_VECS; i++)
		b->vec[bio - b->bio][i] = (struct vqb_segment){ 0x10000 * (i + 1), 512, 0 };
	bio->nvec = RB_VECS;
	rb_submit(b, bio);
	rb_send_all(b);
}

/* Shows: K34 */
static void test_as_many_segments_as_seg_max_makes_sense_of(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	send_under_seg_max(b, 0, 0); /* missing: one segment */
	assert_int_equal(b->sends, RB_VECS);
	b = rb_plan(state, VQB_PATH_BIO);
	send_under_seg_max(b, BIT(SEG_MAX), 0); /* nonsense: the same */
	assert_int_equal(b->sends, RB_VECS);
	b = rb_plan(state, VQB_PATH_BIO);
	send_under_seg_max(b, BIT(SEG_MAX), 3);
	assert_int_equal(b->sends, 3);
	b = rb_plan(state, VQB_PATH_BIO);
	send_under_seg_max(b, BIT(SEG_MAX), UINT32_MAX); /* what the ring has room for */
	assert_int_equal(b->limits.max_segments, 62);
	assert_int_equal(b->sends, 1);
}

static void test_each_limit_cuts_where_it_is(void **state)
{
	static const uint32_t chunk[] = { 6, 16, 10 }, bytes[] = { 4, 4, 4, 4 };
	struct rb *b = rb_plan(state, VQB_PATH_BIO);

	b->limits.chunk_sectors = 16;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 10, 32);
	rb_send_all(b);
	expect_cut(b, 10, chunk, 3);

	b = rb_plan(state, VQB_PATH_BIO);
	b->limits.max_segments = 2;
	b->limits.max_segment_bytes = 1024;
	rb_start(b);
	rb_put(b, VQB_BLK_OUT, 0, 16);
	rb_send_all(b);
	expect_cut(b, 0, bytes, 4);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(b->sent[k].r.n, 2);
}

/* Between gaps there is nothing to cut, but requests. */
static void test_a_gap_ends_a_part(void **state)
{
	static const uint32_t cut[] = { 8, 8, 4 };
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.virt_boundary = 4095;
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_OUT, 0, 20);
	b->vec[0][0] = (struct vqb_segment){ 0x10000, 4096, 0 };
	b->vec[0][1] = (struct vqb_segment){ 0x20200, 4096, 0 };
	b->vec[0][2] = (struct vqb_segment){ 0x30000, 2048, 0 };
	bio->nvec = 3;
	rb_submit(b, bio);
	rb_send_all(b);
	expect_cut(b, 0, cut, 3);
}

static void test_it_is_handed_back_once_when_the_last_part_is_back(void **state)
{
	static const unsigned order[] = { 2, 0, 3, 1 };
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 0, 32);
	assert_non_null(rb_send(b));
	assert_int_equal(bio->state, VQB_BIO_PARTLY);
	assert_int_equal(vqb_requests_waiting(b->rq), 1);
	rb_send_all(b);
	assert_int_equal(bio->state, VQB_BIO_SENT);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(vqb_requests_outstanding(b->rq), 1);
		assert_int_equal(rb_done(b, order[i], VQB_OK), i == 3);
	}
	rb_expect_back(b, bio, VQB_OK);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
}

static void test_the_first_error_is_the_bios(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 0, 32);
	assert_int_equal(rb_send_all(b), 4);
	rb_done(b, 3, VQB_OK);
	rb_done(b, 2, VQB_E_UNSUPP);
	rb_done(b, 0, VQB_E_IO);
	assert_int_equal(rb_done(b, 1, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_E_UNSUPP);
	assert_int_equal(rb_counters(b).errors, 1);
	assert_int_equal(rb_counters(b).done, 1);
}

/* What was not sent when a part failed is not sent any more; what is out is waited for. */
static void test_after_an_error_the_rest_is_dropped(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio, *other;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 0, 64);
	other = rb_put(b, VQB_BLK_OUT, 100, 8);
	for (unsigned k = 0; k < 3; k++)
		assert_non_null(rb_send(b));
	assert_int_equal(rb_done(b, 1, VQB_E_IO), 0);
	assert_int_equal(bio->state, VQB_BIO_SENT);
	assert_int_equal(vqb_requests_waiting(b->rq), 1); /* the other one */
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 3, VQB_BLK_OUT, 100, 8, 1);
	assert_int_equal(rb_done(b, 0, VQB_OK), 0);
	assert_int_equal(rb_done(b, 2, VQB_OK), 1);
	rb_expect_back(b, bio, VQB_E_IO);
	rb_finish(b);
	rb_expect_back(b, other, VQB_OK);
}

static void test_with_no_other_part_out_it_is_back_at_once(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 0, 64);
	rb_send(b);
	assert_int_equal(rb_done(b, 0, VQB_E_IO), 1);
	rb_expect_back(b, bio, VQB_E_IO);
	assert_int_equal(rb_send_all(b), 0);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);

	/* And may be used again: nothing of the old life is left. */
	rb_submit(b, bio);
	assert_int_equal(rb_send_all(b), 8);
	for (unsigned k = 1; k < 9; k++)
		rb_done(b, k, VQB_OK);
	assert_int_equal(b->handed[0], 2);
	assert_int_equal(bio->status, VQB_OK);
}

/* The longest list: more than a request has sectors, by vectors of 4 GiB less a block each. */
static void test_a_bio_may_be_longer_than_any_request(void **state)
{
	struct rb *b = rb_open(state, VQB_PATH_BIO);
	struct vqb_bio *bio = rb_bio(b, VQB_BLK_IN, 0, 0);
	uint64_t at = 0;

	for (unsigned i = 0; i < 3; i++)
		b->vec[0][i] = (struct vqb_segment){ (uint64_t)i << 40, UINT32_MAX - 511, 0 };
	bio->nvec = 3;
	rb_submit(b, bio);
	rb_send_all(b);
	for (unsigned k = 0; k < b->sends; k++) {
		assert_int_equal(b->sent[k].r.sector, at);
		at += b->sent[k].r.bytes / 512;
	}
	assert_int_equal(at, 3 * UINT64_C(8388607));
	rb_finish(b);
	rb_expect_back(b, bio, VQB_OK);
}

/* Limits that grow in the middle of it: what was sent stays sent, and the rest is one request. */
static void test_the_rest_goes_under_new_limits(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_sectors = 8;
	rb_start(b);
	bio = rb_put(b, VQB_BLK_OUT, 100, 32);
	assert_non_null(rb_send(b));
	b->limits.max_sectors = 64;
	assert_int_equal(vqb_requests_configure(b->rq, &b->config), VQB_OK);
	assert_int_equal(rb_send_all(b), 1);
	rb_expect(b, 1, VQB_BLK_OUT, 108, 24, 1);
	assert_int_equal(b->sent[1].table[0].addr, b->vec[0][0].addr + 4096);
	rb_finish(b);
	rb_expect_back(b, bio, VQB_OK);
}

/* A block that is in no request is found before anything of the bio is sent, also behind others. */
static void test_a_block_that_cant_be_sent_is_refused_at_once(void **state)
{
	struct rb *b = rb_plan(state, VQB_PATH_BIO);
	struct vqb_bio *bio;

	b->limits.max_segments = 2;
	rb_start(b);
	bio = rb_bio(b, VQB_BLK_OUT, 0, 1);
	b->vec[0][1] = (struct vqb_segment){ 0x10000, 100, 0 };
	b->vec[0][2] = (struct vqb_segment){ 0x20000, 100, 0 };
	b->vec[0][3] = (struct vqb_segment){ 0x30000, 312, 0 };
	bio->nvec = 4;
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_E_TOOBIG);
	assert_int_equal(bio->status, VQB_E_TOOBIG);
	assert_int_equal(bio->state, VQB_BIO_IDLE);
	assert_int_equal(rb_send_all(b), 0);
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rb_test(test_a_limit_of_8_sectors_makes_16_parts_of_128),
		rb_test(test_parts_end_at_physical_blocks_where_they_can),
		rb_test(test_as_many_segments_as_seg_max_makes_sense_of),
		rb_test(test_each_limit_cuts_where_it_is),
		rb_test(test_a_gap_ends_a_part),
		rb_test(test_it_is_handed_back_once_when_the_last_part_is_back),
		rb_test(test_the_first_error_is_the_bios),
		rb_test(test_after_an_error_the_rest_is_dropped),
		rb_test(test_with_no_other_part_out_it_is_back_at_once),
		rb_test(test_a_bio_may_be_longer_than_any_request),
		rb_test(test_the_rest_goes_under_new_limits),
		rb_test(test_a_block_that_cant_be_sent_is_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
