/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blk driver against a device played by hand: the requests it makes, what it refuses to send,
 * and what it makes of completions.
 */
#include "blk_driver_bench.h"

static void assert_header(const struct seen *s, uint32_t type, uint64_t sector)
{
	assert_int_equal(peek(s->header, 4), type);
	assert_int_equal(peek(s->header + 4, 4), 0);
	assert_int_equal(peek(s->header + 8, 8), sector);
}

/* Data descriptor `k` is segment `k` of bio 0. */
static void assert_data(const struct guest *g, const struct seen *s, unsigned k, unsigned flags)
{
	const struct raw_ring *raw = &g->ring.raw;

	assert_int_equal(raw_desc_addr(raw->desc, s->at[1 + k]), g->seg[k].addr);
	assert_int_equal(raw_desc_len(raw->desc, s->at[1 + k]), g->seg[k].len);
	assert_int_equal(raw_desc_flags(raw->desc, s->at[1 + k]), flags | RAW_NEXT);
}

/* ---- requests as they are sent ---- */

/* Shows: BLK-ANY-06 SR-DRV-02 BLK-ANY-02 */
static void test_a_read_is_header_writable_data_status(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	assert_int_equal(guest_try(g, VQB_BLK_IN, 77, 3, 4096), VQB_OK);
	assert_int_equal(bench_visible(&g->ring), 0);
	assert_int_equal(vqb_blk_publish(g->drv), VQB_NOTIFY);
	s = guest_see(g);
	assert_int_equal(s.parts, 5);
	assert_header(&s, VQB_BLK_IN, 77);
	for (unsigned k = 0; k < 3; k++)
		assert_data(g, &s, k, RAW_WRITE);
}

/* Shows: BLK-ANY-06 */
static void test_a_write_is_header_readable_data_status(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	assert_int_equal(guest_try(g, VQB_BLK_OUT, UINT64_C(1023), 2, 512), VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	assert_int_equal(s.parts, 4);
	assert_header(&s, VQB_BLK_OUT, 1023);
	assert_data(g, &s, 0, 0);
	assert_data(g, &s, 1, 0);
}

/* Shows: BLK-DRV-06 BLK-DRV-11 BLK-DRV-12 */
static void test_a_flush_is_header_and_status_with_sector_0(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 55, 0, 0), VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	assert_int_equal(s.parts, 2);
	assert_header(&s, VQB_BLK_FLUSH, 0);
	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_BUSY);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_FLUSH, 0, 1, 512)),
			 VQB_E_INVALID);
}

/* Shows: BLK-DRV-15 BLK-DRV-06 */
static void test_get_id_asks_for_20_bytes(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 0, 1, 19), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 0, 1, 21), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 0, 0, 0), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 55, 1, 20), VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	assert_int_equal(s.parts, 3);
	assert_header(&s, VQB_BLK_GET_ID, 0);
	assert_data(g, &s, 0, RAW_WRITE);
}

/* It is sent in the segments that it comes in, so these have to be within limits. */
static void test_get_id_is_within_limits(void **state)
{
	struct guest *g = guest_plan(state, 16);

	vqb_limits_init(&g->mapping);
	g->mapping.max_segments = SEGMENTS;
	g->mapping.max_segment_bytes = 512;
	g->mapping.seg_boundary = 511;
	g->mapping.virt_boundary = 255;
	g->config.mapping = &g->mapping;
	assert_int_equal(guest_init(g), VQB_OK);
	g->seg[0].addr = BENCH_DATA_AT + 500;
	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 0, 1, 20), VQB_E_TOOBIG);
	g->seg[0].addr = BENCH_DATA_AT + 492;
	assert_int_equal(guest_try(g, VQB_BLK_GET_ID, 0, 1, 20), VQB_OK);
	g->seg[1].addr = BENCH_DATA_AT + 256;
	g->seg[2].addr = BENCH_DATA_AT + 1024;
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_GET_ID, 0, 2, 20)),
			 VQB_E_TOOBIG);
	g->seg[1].addr = BENCH_DATA_AT + 246;
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_GET_ID, 0, 2, 20)), VQB_OK);
}

static void test_headers_and_status_bytes_share_no_cache_line(void **state)
{
	struct guest *g = guest_open(state, 64);
	uint8_t used[VQB_BLK_AREA_BYTES(DEPTH, RANGES)] = { 0 };

	assert_int_equal(VQB_BLK_AREA_BYTES(DEPTH, RANGES), STATUSES + 64);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, i, VQB_BLK_IN, 0, 1, 512)),
				 VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct seen s = guest_see(g);

		/* Nobody else's header, nobody else's status, in different lines. */
		assert_int_equal(used[s.header - g->area] + used[s.status - g->area], 0);
		used[s.header - g->area] = used[s.status - g->area] = 1;
		assert_true(s.header - g->area < STATUSES && s.status - g->area >= STATUSES);
		assert_int_not_equal(*s.status, VQB_BLK_S_OK);
	}
}

/* ---- requests that are refused ---- */

/* Shows: BLK-DRV-09 K23 */
static void test_no_request_reaches_past_capacity(void **state)
{
	struct guest *g = guest_open(state, 16);

	assert_int_equal(guest_try(g, VQB_BLK_IN, 1024, 1, 512), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 1023, 1, 1024), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 1023, 2, 1024), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_OUT, UINT64_MAX, 1, 512), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_OUT, UINT64_MAX, 2, 1024), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_IN, UINT64_C(1) << 55, 1, 512), VQB_E_INVALID);
	assert_int_equal(vqb_blk_in_flight(g->drv), 0);
	vqb_blk_publish(g->drv);
	assert_int_equal(bench_visible(&g->ring), 0);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 1022, 2, 1024), VQB_OK);
}

/* Shows: BLK-DRV-13 */
static void test_data_is_whole_sectors_and_blocks(void **state)
{
	struct guest *g = guest_open(state, 16);
	const uint32_t bad[] = { 1, 511, 513, 1000 };

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, bad[i]), VQB_E_INVALID);
		assert_int_equal(guest_try(g, VQB_BLK_OUT, 0, 1, bad[i]), VQB_E_INVALID);
	}
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 0, 0), VQB_E_INVALID);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 3, 512), VQB_OK);

	g->limits.block_size = 4096;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_IN, 0, 1, 512)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_IN, 1, 1, 4096)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_IN, 8, 1, 4096)), VQB_OK);
}

/* Shows: BLK-DRV-10 */
static void test_writes_to_a_read_only_disk_fail_locally(void **state)
{
	struct guest *g = guest_plan(state, 16);

	g->config.features = vqb_blk_features_accept(BIT(RO) | BIT(FLUSH), 0);
	assert_int_equal(guest_init(g), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_OUT, 0, 1, 512), VQB_E_UNSUPP);
	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_UNSUPP);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, 512), VQB_OK);
}

/* Shows: BLK-DRV-01 BLK-DRV-02 */
static void test_flush_is_sent_only_where_it_was_negotiated(void **state)
{
	struct guest *g = guest_open(state, 16);

	g->config.features = 0;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_UNSUPP);
	g->config.features = BIT(FLUSH);
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 0, 0, 0), VQB_OK);
}

/* A bio of more than they allow is cut, however many segments it has. */
/* Shows: BLK-ANY-05 */
static void test_segments_stay_within_the_limits(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, SEGMENTS + 1, 512 * 5), VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	assert_int_equal(s.parts, SEGMENTS + 2);
	s = guest_see(g);
	assert_int_equal(s.parts, 3);
	assert_header(&s, VQB_BLK_IN, 4);

	g = guest_plan(state, 16);
	g->limits.segment_bytes = 1024;
	assert_int_equal(guest_init(g), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, 1536), VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	assert_int_equal(s.parts, 4);
	assert_int_equal(raw_desc_len(g->ring.raw.desc, s.at[1]), 1024);
	assert_int_equal(raw_desc_len(g->ring.raw.desc, s.at[2]), 512);
}

static void test_limits_may_change_within_what_there_is_room_for(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct seen s;

	g->limits.segments = 1;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 2, 1024), VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < 2; i++) {
		s = guest_see(g);
		assert_int_equal(s.parts, 3);
	}
	g->limits.segments = SEGMENTS + 1;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_E_INVALID);
	g->limits.segments = SEGMENTS;
	g->limits.capacity = CAPACITY / 2;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 4, VQB_BLK_IN, 512, 1, 512)),
			 VQB_E_INVALID);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 4, VQB_BLK_IN, 511, 1, 512)), VQB_OK);
}

/* Path, window, ranges and depth are init's. */
static void test_nothing_else_changes_with_the_limits(void **state)
{
	struct guest *g = guest_plan(state, 64);
	struct vqb_bio *range = &g->bio[8];
	struct seen s;

	guest_allow_ranges(g, RANGES, 100);
	g->limits.segments = 2 * RANGES; /* what a table has room for is no matter */
	g->config.path = VQB_PATH_BIO;
	assert_int_equal(guest_init(g), VQB_OK);
	g->config.path = 99;
	g->config.window = VQB_REQUESTS_WINDOW + 1;
	g->config.ranges = 0;
	g->config.depth = 1;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	guest_bio(g, 0, VQB_BLK_IN, 0, 1, 512)->next = guest_bio(g, 1, VQB_BLK_IN, 1, 1, 512);
	assert_int_equal(vqb_blk_submit_list(g->drv, &g->bio[0], NULL), VQB_OK);
	assert_int_equal(vqb_blk_in_flight(g->drv), 2);
	guest_bio(g, 9, VQB_BLK_DISCARD, 900, 0, 0)->sectors = 8;
	assert_int_equal(vqb_blk_submit(g->drv, &g->bio[9]), VQB_OK);
	g->config.ranges = g->limits.discard_ranges = RANGES + 4;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	guest_bio(g, 8, VQB_BLK_DISCARD, 0, 0, 0);
	range->sectors = 800;
	assert_int_equal(vqb_blk_submit(g->drv, range), VQB_OK);
	vqb_blk_publish(g->drv);
	g->config.depth = DEPTH; /* by which the bench finds its way */
	for (unsigned i = 0; i < 4; i++)
		s = guest_see(g);
	assert_int_equal(guest_bytes(g, &s), 16 * RANGES);
}

static void test_what_is_not_a_bio_is_refused(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *bio = guest_bio(g, 0, VQB_BLK_IN, 0, 1, 512);

	bio->flags = VQB_BIO_FUA;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	bio->flags = 0x80;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	bio->flags = 0;
	bio->zero = 1;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	bio->zero = 0;
	bio->op = VQB_BLK_DISCARD; /* which this device doesn't have */
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_UNSUPP);
	bio->op = VQB_BLK_ZONE_APPEND;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_UNSUPP);
	assert_int_equal(bio->status, VQB_E_UNSUPP);
	assert_int_equal(bio->state, VQB_BIO_IDLE);
	bio->op = VQB_BLK_IN;
	g->seg[0].zero = 1;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	/* Nothing of it is left where the next request has its status. */
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_FLUSH, 0, 0, 0)), VQB_OK);
	g->seg[0].zero = 0;
	bio->vec = NULL;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	bio->vec = g->seg;
	bio->nvec = 2;
	g->seg[1].len = 0;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_INVALID);
	bio->nvec = 1;
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_OK);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_BUSY);
	assert_int_equal(vqb_blk_in_flight(g->drv), 2);
}

/* ---- room ---- */

/* Shows: K20 */
static void test_without_room_a_bio_waits(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *done;

	for (unsigned i = 0; i < DEPTH + 1; i++)
		guest_put(g, i, VQB_BLK_IN, 10 * i);
	assert_int_equal(g->bio[DEPTH].state, VQB_BIO_WAITING);
	assert_int_equal(vqb_blk_in_flight(g->drv), DEPTH);
	assert_int_equal(vqb_blk_waiting(g->drv), 1);
	assert_int_equal(vqb_blk_outstanding(g->drv), DEPTH + 1);
	vqb_blk_publish(g->drv);
	assert_int_equal(bench_visible(&g->ring), DEPTH);
	guest_serve(g, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 1);
	assert_int_equal(g->bio[DEPTH].state, VQB_BIO_SENT);
	assert_int_equal(vqb_blk_waiting(g->drv), 0);
	assert_int_equal(guest_drain(g), DEPTH);
}

/* What no ring of this size can ever take is refused instead, and what it can is not. */
static void test_what_can_never_be_sent_does_not_wait(void **state)
{
	/* A ring of four takes one request at a time, and never one of three segments. */
	struct guest *g = guest_open(state, 4);

	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 3, 1536), VQB_E_TOOBIG);
	assert_int_equal(g->bio[0].status, VQB_E_TOOBIG);
	assert_int_equal(g->bio[0].state, VQB_BIO_IDLE);
	assert_int_equal(vqb_blk_outstanding(g->drv), 0);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 2, 1024), VQB_OK);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 8, VQB_BLK_FLUSH, 0, 0, 0)), VQB_OK);
	assert_int_equal(g->bio[8].state, VQB_BIO_WAITING);
	assert_int_equal(guest_drain(g), 2);

	/* A ring of two takes a flush, but no read ever. */
	g = guest_open(state, 2);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, 512), VQB_E_TOOBIG);
	assert_int_equal(guest_try(g, VQB_BLK_FLUSH, 0, 0, 0), VQB_OK);
	assert_int_equal(guest_drain(g), 1);
}

/*
 * The same of one behind others: it comes back when it is its turn, and who is behind it goes on.
 */
static void test_what_turns_out_too_big_later_is_handed_back(void **state)
{
	struct guest *g = guest_open(state, 4);
	struct vqb_bio *done;

	guest_put(g, 8, VQB_BLK_IN, 0);
	guest_put(g, 9, VQB_BLK_IN, 200);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 100, 3, 1536), VQB_OK);
	guest_put(g, 10, VQB_BLK_IN, 300);
	vqb_blk_publish(g->drv);
	guest_serve(g, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 2);
	assert_ptr_equal(done, &g->bio[8]);
	assert_ptr_equal(done->next, &g->bio[0]);
	assert_int_equal(g->bio[0].status, VQB_E_TOOBIG);
	assert_int_equal(g->bio[9].state, VQB_BIO_SENT);
	assert_int_equal(g->bio[10].state, VQB_BIO_WAITING);
	assert_int_equal(guest_drain(g), 2);
}

/* ---- completion ---- */

/* Shows: BLK-DEV-05 SR-DEV-16 */
static void test_the_outcome_is_the_status_byte_and_never_the_length(void **state)
{
	struct guest *g = guest_open(state, 16);

	for (unsigned status = 0; status < 256; status++) {
		int32_t want = status == 0 ? VQB_OK : status == 2 ? VQB_E_UNSUPP : VQB_E_IO;
		struct seen s;

		assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, 512), VQB_OK);
		vqb_blk_publish(g->drv);
		s = guest_see(g);
		*s.status = (uint8_t)status;
		bench_give(&g->ring, s.head, status % 3 ? 0 : 513);
		assert_ptr_equal(guest_reap_one(g), &g->bio[0]);
		assert_int_equal(g->bio[0].status, want);
		assert_int_equal(g->bio[0].state, VQB_BIO_IDLE);
	}
}

/* A device that never wrote the byte has not carried the request out, also in a used slot. */
static void test_a_status_that_was_not_written_is_an_error(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(guest_try(g, VQB_BLK_OUT, 0, 1, 512), VQB_OK);
		vqb_blk_publish(g->drv);
		s = guest_see(g);
		if (i == 0)
			*s.status = VQB_BLK_S_OK;
		bench_give(&g->ring, s.head, 1);
		assert_int_equal(guest_reap_one(g)->status, i == 0 ? VQB_OK : VQB_E_IO);
	}
}

/* Shows: BLK-ANY-06 BF-ANY-05 */
static void test_bios_come_back_once_in_the_order_of_completion(void **state)
{
	struct guest *g = guest_open(state, 64);
	const unsigned order[3] = { 2, 0, 1 };
	struct vqb_bio *done;
	struct seen s[3];

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, i, VQB_BLK_IN, i, 1, 512)),
				 VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < 3; i++)
		s[i] = guest_see(g);
	for (unsigned i = 0; i < 3; i++)
		guest_finish(g, &s[order[i]], (uint8_t)order[i]);
	assert_int_equal(vqb_blk_reap(g->drv, &done), 3);
	for (unsigned i = 0; i < 3; i++, done = done->next)
		assert_ptr_equal(done, &g->bio[order[i]]);
	assert_null(done);
	assert_int_equal(g->bio[0].status, VQB_OK);
	assert_int_equal(g->bio[1].status, VQB_E_IO);
	assert_int_equal(g->bio[2].status, VQB_E_UNSUPP);
	assert_int_equal(vqb_blk_reap(g->drv, &done), 0);
	assert_null(done);
	assert_int_equal(vqb_blk_in_flight(g->drv), 0);
}

/* A whole queue of completions in one reap. */
static void test_reap_drains_everything(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *done;
	unsigned n = 0;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, i, VQB_BLK_IN, i, 1, 512)),
				 VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct seen s = guest_see(g);

		guest_finish(g, &s, 0);
	}
	assert_int_equal(vqb_blk_reap(g->drv, &done), DEPTH);
	for (; done; done = done->next)
		assert_ptr_equal(done, &g->bio[n++]);
	assert_int_equal(n, DEPTH);
}

static void test_turn_publishes_and_arms(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct seen s;

	vqb_driver_disarm(g->ring.drv);
	assert_int_equal(raw_avail_flags(&g->ring.raw), 1);
	assert_int_equal(guest_try(g, VQB_BLK_IN, 0, 1, 512), VQB_OK);
	assert_int_equal(vqb_blk_turn(g->drv), VQB_NOTIFY);
	assert_int_equal(raw_avail_flags(&g->ring.raw), 0);
	s = guest_see(g);
	guest_finish(g, &s, 0);
	assert_int_equal(vqb_blk_turn(g->drv) & VQB_MORE, VQB_MORE);
}

/* ---- reset ---- */

/* Shows: BF-DRV-22 BF-DRV-33 */
static void test_after_a_reset_every_bio_comes_back_undecided(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list;
	unsigned n = 0, seen_bios = 0;
	struct seen s;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, i, VQB_BLK_IN, i, 1, 512)),
				 VQB_OK);
	vqb_blk_publish(g->drv);
	s = guest_see(g);
	guest_finish(g, &s, 0);
	guest_reap_one(g);

	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_E_BUSY);
	assert_null(list);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	for (; list; list = list->next, n++) {
		assert_int_equal(list->status, VQB_E_AGAIN);
		assert_int_equal(list->state, VQB_BIO_IDLE);
		seen_bios |= 1u << (list - g->bio);
	}
	assert_int_equal(n, DEPTH - 1);
	assert_int_equal(seen_bios, (1u << DEPTH) - 2);
	assert_int_equal(vqb_blk_in_flight(g->drv), 0);

	/* And on it goes, with all slots. */
	assert_int_equal(vqb_blk_submit(g->drv, &g->bio[1]), VQB_E_INVALID);
	assert_int_equal(vqb_driver_reset(g->ring.drv, &g->ring.config.ring), VQB_OK);
	bench_attach(&g->ring, &g->ring.config.ring);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(g->drv, &g->bio[i]), VQB_OK);
}

/* Shows: K37 */
static void test_a_late_completion_does_not_finish_another_bio(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_bio *list;
	struct seen old, fresh;

	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 0, VQB_BLK_IN, 0, 1, 512)), VQB_OK);
	vqb_blk_publish(g->drv);
	old = guest_see(g);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	assert_ptr_equal(list, &g->bio[0]);
	bench_give(&g->ring, old.head, 513); /* into the old life's ring */
	assert_int_equal(vqb_driver_reset(g->ring.drv, &g->ring.config.ring), VQB_OK);
	bench_attach(&g->ring, &g->ring.config.ring);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 1, VQB_BLK_IN, 1, 1, 512)), VQB_OK);
	vqb_blk_publish(g->drv);
	assert_int_equal(vqb_blk_reap(g->drv, &list), 0);
	fresh = guest_see(g);
	assert_int_equal(fresh.head, old.head);
	guest_finish(g, &fresh, 0);
	assert_ptr_equal(guest_reap_one(g), &g->bio[1]);
}

/* A broken ring gives nothing back, and says so rather than "no room". */
static void test_a_broken_ring_is_told_from_a_full_one(void **state)
{
	struct guest *g = guest_open(state, 64);
	struct vqb_bio *list;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, i, VQB_BLK_IN, i, 1, 512)),
				 VQB_OK);
	vqb_blk_publish(g->drv);
	bench_give(&g->ring, 9999, 0);
	assert_int_equal(vqb_blk_reap(g->drv, &list), 0);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, DEPTH, VQB_BLK_IN, 0, 1, 512)),
			 VQB_E_BROKEN);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(g->drv, &list), VQB_OK);
	assert_non_null(list);
	assert_int_equal(vqb_blk_in_flight(g->drv), 0);
}

/* ---- what init checks ---- */

static void test_init_checks_sizes_area_and_limits(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_blk_driver_config good = g->config;
	size_t bytes = vqb_blk_driver_size(&g->config);
	struct vqb_blk_driver *drv;

	assert_int_equal(vqb_blk_driver_init(g->mem, bytes - 1, &good, &drv), VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_driver_init(g->mem + 8, bytes, &good, &drv), VQB_E_INVALID);
	g->config.area.bytes--;
	assert_int_equal(guest_init(g), VQB_E_TOOBIG);
	g->config = good;
	g->config.area.addr += 16;
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config.area.addr = UINT64_MAX & ~UINT64_C(63);
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config = good;
	g->config.area.host = (uint8_t *)good.area.host + 16;
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config = good;
	g->config.depth = 0;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->config.depth = 32769;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->config = good;
	g->limits.block_size = 1000;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->limits.block_size = 512;
	g->config.limits = NULL;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->config = good;
	g->config.ring = NULL;
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config = good;
	bench_add(&g->ring, 1, 1, 0);
	assert_int_equal(guest_init(g), VQB_E_INVALID);
}

static void test_init_checks_what_is_about_requests(void **state)
{
	struct guest *g = guest_open(state, 16);
	struct vqb_blk_driver_config good = g->config;

	g->config.path = VQB_PATH_REQUEST + 1;
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config = good;
	g->config.flags = 2;
	assert_int_equal(guest_init(g), VQB_E_INVALID);
	g->config = good;
	g->config.window = VQB_REQUESTS_WINDOW + 1;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->config = good;
	g->config.ranges = 32769;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->config = good;
	g->config.ranges++;
	assert_int_equal(guest_init(g), VQB_E_TOOBIG); /* the area */
	g->config = good;
	assert_int_equal(vqb_limits_of_blk(&g->limits, 0, 0, &g->mapping), VQB_OK);
	g->config.mapping = &g->mapping;
	assert_int_equal(guest_init(g), VQB_OK);
	g->mapping.max_segments = 32767;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
	g->mapping.max_segments = SEGMENTS;
	g->mapping.virt_boundary = 4096;
	assert_int_equal(vqb_blk_driver_size(&g->config), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(test_a_read_is_header_writable_data_status),
		guest_test(test_a_write_is_header_readable_data_status),
		guest_test(test_a_flush_is_header_and_status_with_sector_0),
		guest_test(test_get_id_asks_for_20_bytes),
		guest_test(test_get_id_is_within_limits),
		guest_test(test_headers_and_status_bytes_share_no_cache_line),
		guest_test(test_no_request_reaches_past_capacity),
		guest_test(test_data_is_whole_sectors_and_blocks),
		guest_test(test_writes_to_a_read_only_disk_fail_locally),
		guest_test(test_flush_is_sent_only_where_it_was_negotiated),
		guest_test(test_segments_stay_within_the_limits),
		guest_test(test_limits_may_change_within_what_there_is_room_for),
		guest_test(test_nothing_else_changes_with_the_limits),
		guest_test(test_what_is_not_a_bio_is_refused),
		guest_test(test_without_room_a_bio_waits),
		guest_test(test_what_can_never_be_sent_does_not_wait),
		guest_test(test_what_turns_out_too_big_later_is_handed_back),
		guest_test(test_the_outcome_is_the_status_byte_and_never_the_length),
		guest_test(test_a_status_that_was_not_written_is_an_error),
		guest_test(test_bios_come_back_once_in_the_order_of_completion),
		guest_test(test_reap_drains_everything),
		guest_test(test_turn_publishes_and_arms),
		guest_test(test_after_a_reset_every_bio_comes_back_undecided),
		guest_test(test_a_late_completion_does_not_finish_another_bio),
		guest_test(test_a_broken_ring_is_told_from_a_full_one),
		guest_test(test_init_checks_sizes_area_and_limits),
		guest_test(test_init_checks_what_is_about_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
