/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blk driver against a device played by hand: the requests it makes, what it refuses to send,
 * and what it makes of completions.
 */
#include "driver_bench.h"

#include <vqblk/blk_driver.h>

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define AREA_AT UINT64_C(0x00beef0000000000)

enum {
	CAPACITY = 1024,
	DEPTH = 20, /* more than are reaped or detached in one step */
	SEGMENTS = 4,
	STATUSES = (16 * DEPTH + 63) & ~63, /* offset of the status bytes in the area */
};

struct fixture {
	struct bench ring;
	struct vqb_blk_limits limits;
	struct vqb_blk_driver_config config;
	struct vqb_blk_driver *drv;
	uint8_t *area, *mem;
	struct vqb_segment seg[32];
	struct vqb_bio bio[32];
};

static int up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int down(void **state)
{
	struct fixture *f = (struct fixture *)*state;

	bench_close(&f->ring);
	free(f->area);
	free(f->mem);
	free(f);
	return 0;
}

#define blk_test(f) cmocka_unit_test_setup_teardown(f, up, down)

static struct fixture *plan(void **state, uint32_t ring_size)
{
	struct fixture *f = (struct fixture *)*state;

	bench_close(&f->ring);
	bench_open(&f->ring, ring_size, FLAGS_MODE);
	free(f->area);
	f->area = (uint8_t *)bench_alloc(64, VQB_BLK_AREA_BYTES(DEPTH));
	f->limits = (struct vqb_blk_limits){
		.struct_size = sizeof(f->limits),
		.block_size = 512,
		.capacity = CAPACITY,
		.segment_bytes = UINT32_MAX,
		.segments = SEGMENTS,
		.queues = 1,
	};
	f->config = (struct vqb_blk_driver_config){
		.struct_size = sizeof(f->config),
		.depth = DEPTH,
		.ring = f->ring.drv,
		.area = { f->area, AREA_AT, VQB_BLK_AREA_BYTES(DEPTH) },
		.features = BIT(FLUSH),
		.limits = &f->limits,
	};
	memset(f->bio, 0, sizeof(f->bio));
	for (unsigned i = 0; i < 32; i++)
		f->seg[i] = (struct vqb_segment){ BENCH_DATA_AT + 0x10000 * i, 512, 0 };
	return f;
}

static int32_t init(struct fixture *f)
{
	size_t bytes = vqb_blk_driver_size(&f->config);

	assert_true(bytes && bytes <= VQB_BLK_DRIVER_BYTES(f->config.depth, f->limits.segments));
	free(f->mem);
	f->mem = (uint8_t *)bench_alloc(64, bytes);
	return vqb_blk_driver_init(f->mem, bytes, &f->config, &f->drv);
}

static struct fixture *open_fixture(void **state, uint32_t ring_size)
{
	struct fixture *f = plan(state, ring_size);

	assert_int_equal(init(f), VQB_OK);
	return f;
}

/* Bio number `i`: `nvec` segments of `bytes` bytes in all. */
static struct vqb_bio *make(struct fixture *f, unsigned i, uint8_t op, uint64_t sector,
			    uint32_t nvec, uint32_t bytes)
{
	struct vqb_bio *bio = &f->bio[i];

	bio->vec = nvec ? &f->seg[i] : NULL;
	bio->nvec = nvec;
	bio->op = op;
	bio->sector = sector;
	for (uint32_t k = 0; k < nvec; k++)
		f->seg[i + k].len = k + 1 < nvec ? bytes / nvec : bytes - bytes / nvec * (nvec - 1);
	return bio;
}

static int32_t try_submit(struct fixture *f, uint8_t op, uint64_t sector, uint32_t nvec,
			  uint32_t bytes)
{
	return vqb_blk_submit(f->drv, make(f, 0, op, sector, nvec, bytes));
}

/* ---- the device by hand ---- */

struct seen {
	unsigned head, parts, at[DEPTH];
	uint8_t *header, *status;
};

/* Takes the next request and finds its header and status in the area. */
static struct seen see(struct fixture *f)
{
	const struct raw_ring *raw = &f->ring.raw;
	struct seen s = { .parts = 0 };
	uint64_t header, status;

	s.head = bench_take(&f->ring);
	s.parts = bench_chain(&f->ring, s.head, s.at);
	header = raw_desc_addr(raw->desc, s.at[0]) - AREA_AT;
	status = raw_desc_addr(raw->desc, s.at[s.parts - 1]) - AREA_AT;
	assert_true(header < STATUSES && header % 16 == 0);
	assert_true(status >= STATUSES && status < VQB_BLK_AREA_BYTES(DEPTH));
	assert_int_equal(raw_desc_len(raw->desc, s.at[0]), 16);
	assert_int_equal(raw_desc_flags(raw->desc, s.at[0]), RAW_NEXT);
	assert_int_equal(raw_desc_len(raw->desc, s.at[s.parts - 1]), 1);
	assert_int_equal(raw_desc_flags(raw->desc, s.at[s.parts - 1]), RAW_WRITE);
	s.header = f->area + header;
	s.status = f->area + status;
	return s;
}

static void finish(struct fixture *f, const struct seen *s, uint8_t status, uint32_t len)
{
	*s->status = status;
	bench_give(&f->ring, s->head, len);
}

static struct vqb_bio *reap_one(struct fixture *f)
{
	struct vqb_bio *done;

	assert_int_equal(vqb_blk_reap(f->drv, &done), 1);
	assert_non_null(done);
	assert_null(done->next);
	return done;
}

static void assert_header(const struct seen *s, uint32_t type, uint64_t sector)
{
	assert_int_equal(peek(s->header, 4), type);
	assert_int_equal(peek(s->header + 4, 4), 0);
	assert_int_equal(peek(s->header + 8, 8), sector);
}

/* Data descriptor `k` is segment `k` of bio 0. */
static void assert_data(const struct fixture *f, const struct seen *s, unsigned k, unsigned flags)
{
	const struct raw_ring *raw = &f->ring.raw;

	assert_int_equal(raw_desc_addr(raw->desc, s->at[1 + k]), f->seg[k].addr);
	assert_int_equal(raw_desc_len(raw->desc, s->at[1 + k]), f->seg[k].len);
	assert_int_equal(raw_desc_flags(raw->desc, s->at[1 + k]), flags | RAW_NEXT);
}

/* ---- requests as they are sent ---- */

/* Shows: BLK-ANY-06 SR-DRV-02 BLK-ANY-02 */
static void test_a_read_is_header_writable_data_status(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	assert_int_equal(try_submit(f, VQB_BLK_IN, 77, 3, 4096), VQB_OK);
	assert_int_equal(bench_visible(&f->ring), 0);
	assert_int_equal(vqb_blk_publish(f->drv), VQB_NOTIFY);
	s = see(f);
	assert_int_equal(s.parts, 5);
	assert_header(&s, VQB_BLK_IN, 77);
	for (unsigned k = 0; k < 3; k++)
		assert_data(f, &s, k, RAW_WRITE);
}

/* Shows: BLK-ANY-06 */
static void test_a_write_is_header_readable_data_status(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	assert_int_equal(try_submit(f, VQB_BLK_OUT, UINT64_C(1023), 2, 512), VQB_OK);
	vqb_blk_publish(f->drv);
	s = see(f);
	assert_int_equal(s.parts, 4);
	assert_header(&s, VQB_BLK_OUT, 1023);
	assert_data(f, &s, 0, 0);
	assert_data(f, &s, 1, 0);
}

/* Shows: BLK-DRV-06 BLK-DRV-11 BLK-DRV-12 */
static void test_a_flush_is_header_and_status_with_sector_0(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 55, 0, 0), VQB_OK);
	vqb_blk_publish(f->drv);
	s = see(f);
	assert_int_equal(s.parts, 2);
	assert_header(&s, VQB_BLK_FLUSH, 0);
	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_BUSY);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_FLUSH, 0, 1, 512)),
			 VQB_E_INVALID);
}

/* Shows: BLK-DRV-15 BLK-DRV-06 */
static void test_get_id_asks_for_20_bytes(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	assert_int_equal(try_submit(f, VQB_BLK_GET_ID, 0, 1, 19), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_GET_ID, 0, 1, 21), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_GET_ID, 0, 0, 0), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_GET_ID, 55, 1, 20), VQB_OK);
	vqb_blk_publish(f->drv);
	s = see(f);
	assert_int_equal(s.parts, 3);
	assert_header(&s, VQB_BLK_GET_ID, 0);
	assert_data(f, &s, 0, RAW_WRITE);
}

static void test_headers_and_status_bytes_share_no_cache_line(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	uint8_t used[VQB_BLK_AREA_BYTES(DEPTH)] = { 0 };

	assert_int_equal(VQB_BLK_AREA_BYTES(DEPTH), STATUSES + 64);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, 0, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct seen s = see(f);

		/* Nobody else's header, nobody else's status, in different lines. */
		assert_int_equal(used[s.header - f->area] + used[s.status - f->area], 0);
		used[s.header - f->area] = used[s.status - f->area] = 1;
		assert_true(s.header - f->area < STATUSES && s.status - f->area >= STATUSES);
		assert_int_not_equal(*s.status, VQB_BLK_S_OK);
	}
}

/* ---- requests that are refused ---- */

/* Shows: BLK-DRV-09 K23 */
static void test_no_request_reaches_past_capacity(void **state)
{
	struct fixture *f = open_fixture(state, 16);

	assert_int_equal(try_submit(f, VQB_BLK_IN, 1024, 1, 512), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 1023, 2, 1024), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_OUT, UINT64_MAX, 1, 512), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_OUT, UINT64_MAX, 2, 1024), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_IN, UINT64_C(1) << 55, 1, 512), VQB_E_INVALID);
	assert_int_equal(vqb_blk_in_flight(f->drv), 0);
	vqb_blk_publish(f->drv);
	assert_int_equal(bench_visible(&f->ring), 0);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 1022, 2, 1024), VQB_OK);
}

/* Shows: BLK-DRV-13 */
static void test_data_is_whole_sectors_and_blocks(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	const uint32_t bad[] = { 1, 511, 513, 1000 };

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, bad[i]), VQB_E_INVALID);
		assert_int_equal(try_submit(f, VQB_BLK_OUT, 0, 1, bad[i]), VQB_E_INVALID);
	}
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 0, 0), VQB_E_INVALID);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 3, 512), VQB_OK);

	f->limits.block_size = 4096;
	assert_int_equal(vqb_blk_driver_limits(f->drv, 0, &f->limits), VQB_OK);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_IN, 0, 1, 512)), VQB_E_INVALID);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_IN, 1, 1, 4096)), VQB_E_INVALID);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_IN, 8, 1, 4096)), VQB_OK);
}

/* Shows: BLK-DRV-10 */
static void test_writes_to_a_read_only_disk_fail_locally(void **state)
{
	struct fixture *f = plan(state, 16);

	f->config.features = vqb_blk_features_accept(BIT(RO) | BIT(FLUSH), 0);
	assert_int_equal(init(f), VQB_OK);
	assert_int_equal(try_submit(f, VQB_BLK_OUT, 0, 1, 512), VQB_E_UNSUPP);
	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_UNSUPP);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, 512), VQB_OK);
}

/* Shows: BLK-DRV-01 BLK-DRV-02 */
static void test_flush_is_sent_only_where_it_was_negotiated(void **state)
{
	struct fixture *f = open_fixture(state, 16);

	assert_int_equal(vqb_blk_driver_limits(f->drv, 0, &f->limits), VQB_OK);
	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 0, 0, 0), VQB_E_UNSUPP);
	assert_int_equal(vqb_blk_driver_limits(f->drv, BIT(FLUSH), &f->limits), VQB_OK);
	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 0, 0, 0), VQB_OK);
}

/* Shows: BLK-ANY-05 */
static void test_segments_stay_within_the_limits(void **state)
{
	struct fixture *f = open_fixture(state, 16);

	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, SEGMENTS + 1, 512 * 5), VQB_E_TOOBIG);
	f->limits.segment_bytes = 1024;
	assert_int_equal(vqb_blk_driver_limits(f->drv, 0, &f->limits), VQB_OK);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, 1536), VQB_E_TOOBIG);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 2, 2048), VQB_OK);
	f->limits.segments++;
	assert_int_equal(vqb_blk_driver_limits(f->drv, 0, &f->limits), VQB_E_INVALID);
	f->limits.segments = 0;
	assert_int_equal(vqb_blk_driver_limits(f->drv, 0, &f->limits), VQB_E_INVALID);
}

static void test_what_is_not_a_bio_is_refused(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct vqb_bio *bio = make(f, 0, VQB_BLK_IN, 0, 1, 512);

	bio->flags = 1;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_UNSUPP);
	bio->flags = 0;
	bio->op = VQB_BLK_DISCARD;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_UNSUPP);
	bio->op = VQB_BLK_IN;
	f->seg[0].zero = 1;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_INVALID);
	/* Nothing of it is left where the next request has its status. */
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_FLUSH, 0, 0, 0)), VQB_OK);
	f->seg[0].zero = 0;
	bio->vec = NULL;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_INVALID);
	bio->vec = f->seg;
	bio->nvec = 2;
	f->seg[1].len = 0;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_INVALID);
	bio->nvec = 1;
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_OK);
	assert_int_equal(vqb_blk_submit(f->drv, bio), VQB_E_BUSY);
	assert_int_equal(vqb_blk_in_flight(f->drv), 2);
}

/* ---- room ---- */

/* Shows: K20 */
static void test_no_room_is_said_only_while_something_is_in_flight(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	struct vqb_bio *done;
	struct seen s;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, i, 1, 512)), VQB_OK);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, DEPTH, VQB_BLK_IN, 8, 1, 512)),
			 VQB_E_NOSPC);
	assert_int_equal(f->bio[DEPTH].state, VQB_BIO_IDLE);
	assert_int_equal(vqb_blk_in_flight(f->drv), DEPTH);
	vqb_blk_publish(f->drv);
	s = see(f);
	finish(f, &s, 0, 513);
	assert_int_equal(vqb_blk_reap(f->drv, &done), 1);
	assert_int_equal(vqb_blk_submit(f->drv, &f->bio[DEPTH]), VQB_OK);

	/* A ring of four takes one request at a time, and never one of three segments. */
	f = open_fixture(state, 4);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 3, 512), VQB_E_TOOBIG);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 2, 512), VQB_OK);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 8, VQB_BLK_FLUSH, 0, 0, 0)), VQB_E_NOSPC);

	/* A ring of two takes a flush, but no read ever. */
	f = open_fixture(state, 2);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, 512), VQB_E_TOOBIG);
	assert_int_equal(try_submit(f, VQB_BLK_FLUSH, 0, 0, 0), VQB_OK);
}

/* ---- completion ---- */

/* Shows: BLK-DEV-05 SR-DEV-16 */
static void test_the_outcome_is_the_status_byte_and_never_the_length(void **state)
{
	struct fixture *f = open_fixture(state, 16);

	for (unsigned status = 0; status < 256; status++) {
		int32_t want = status == 0 ? VQB_OK : status == 2 ? VQB_E_UNSUPP : VQB_E_IO;
		struct seen s;

		assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, 512), VQB_OK);
		vqb_blk_publish(f->drv);
		s = see(f);
		finish(f, &s, (uint8_t)status, status % 3 ? 0 : 513);
		assert_ptr_equal(reap_one(f), &f->bio[0]);
		assert_int_equal(f->bio[0].status, want);
		assert_int_equal(f->bio[0].state, VQB_BIO_IDLE);
	}
}

/* A device that never wrote the byte has not carried the request out, also in a used slot. */
static void test_a_status_that_was_not_written_is_an_error(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(try_submit(f, VQB_BLK_OUT, 0, 1, 512), VQB_OK);
		vqb_blk_publish(f->drv);
		s = see(f);
		if (i == 0)
			*s.status = VQB_BLK_S_OK;
		bench_give(&f->ring, s.head, 1);
		assert_int_equal(reap_one(f)->status, i == 0 ? VQB_OK : VQB_E_IO);
	}
}

/* Shows: BLK-ANY-06 BF-ANY-05 */
static void test_bios_come_back_once_in_the_order_of_completion(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	const unsigned order[3] = { 2, 0, 1 };
	struct vqb_bio *done;
	struct seen s[3];

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, i, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	for (unsigned i = 0; i < 3; i++)
		s[i] = see(f);
	for (unsigned i = 0; i < 3; i++)
		finish(f, &s[order[i]], (uint8_t)order[i], 0);
	assert_int_equal(vqb_blk_reap(f->drv, &done), 3);
	for (unsigned i = 0; i < 3; i++, done = done->next)
		assert_ptr_equal(done, &f->bio[order[i]]);
	assert_null(done);
	assert_int_equal(f->bio[0].status, VQB_OK);
	assert_int_equal(f->bio[1].status, VQB_E_IO);
	assert_int_equal(f->bio[2].status, VQB_E_UNSUPP);
	assert_int_equal(vqb_blk_reap(f->drv, &done), 0);
	assert_null(done);
	assert_int_equal(vqb_blk_in_flight(f->drv), 0);
}

/* A whole queue of completions in one reap. */
static void test_reap_drains_everything(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	struct vqb_bio *done;
	unsigned n = 0;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, i, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct seen s = see(f);

		finish(f, &s, 0, 513);
	}
	assert_int_equal(vqb_blk_reap(f->drv, &done), DEPTH);
	for (; done; done = done->next)
		assert_ptr_equal(done, &f->bio[n++]);
	assert_int_equal(n, DEPTH);
}

static void test_turn_publishes_and_arms(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct seen s;

	vqb_driver_disarm(f->ring.drv);
	assert_int_equal(raw_avail_flags(&f->ring.raw), 1);
	assert_int_equal(try_submit(f, VQB_BLK_IN, 0, 1, 512), VQB_OK);
	assert_int_equal(vqb_blk_turn(f->drv), VQB_NOTIFY);
	assert_int_equal(raw_avail_flags(&f->ring.raw), 0);
	s = see(f);
	finish(f, &s, 0, 513);
	assert_int_equal(vqb_blk_turn(f->drv) & VQB_MORE, VQB_MORE);
}

/* ---- reset ---- */

/* Shows: BF-DRV-22 BF-DRV-33 */
static void test_after_a_reset_every_bio_comes_back_undecided(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	struct vqb_bio *list;
	unsigned n = 0, seen_bios = 0;
	struct seen s;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, i, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	s = see(f);
	finish(f, &s, 0, 513);
	reap_one(f);

	assert_int_equal(vqb_blk_abandon(f->drv, &list), VQB_E_BUSY);
	assert_null(list);
	assert_int_equal(vqb_driver_reset(f->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(f->drv, &list), VQB_OK);
	for (; list; list = list->next, n++) {
		assert_int_equal(list->status, VQB_E_AGAIN);
		assert_int_equal(list->state, VQB_BIO_IDLE);
		seen_bios |= 1u << (list - f->bio);
	}
	assert_int_equal(n, DEPTH - 1);
	assert_int_equal(seen_bios, (1u << DEPTH) - 2);
	assert_int_equal(vqb_blk_in_flight(f->drv), 0);

	/* And on it goes, with all slots. */
	assert_int_equal(vqb_blk_submit(f->drv, &f->bio[1]), VQB_E_INVALID);
	assert_int_equal(vqb_driver_reset(f->ring.drv, &f->ring.config.ring), VQB_OK);
	bench_attach(&f->ring, &f->ring.config.ring);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, &f->bio[i]), VQB_OK);
}

/* Shows: K37 */
static void test_a_late_completion_does_not_finish_another_bio(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct vqb_bio *list;
	struct seen old, fresh;

	assert_int_equal(vqb_blk_submit(f->drv, make(f, 0, VQB_BLK_IN, 0, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	old = see(f);
	assert_int_equal(vqb_driver_reset(f->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(f->drv, &list), VQB_OK);
	assert_ptr_equal(list, &f->bio[0]);
	bench_give(&f->ring, old.head, 513); /* into the old life's ring */
	assert_int_equal(vqb_driver_reset(f->ring.drv, &f->ring.config.ring), VQB_OK);
	bench_attach(&f->ring, &f->ring.config.ring);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, 1, VQB_BLK_IN, 1, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	assert_int_equal(vqb_blk_reap(f->drv, &list), 0);
	fresh = see(f);
	assert_int_equal(fresh.head, old.head);
	finish(f, &fresh, 0, 513);
	assert_ptr_equal(reap_one(f), &f->bio[1]);
}

/* A broken ring gives nothing back, and says so rather than "no room". */
static void test_a_broken_ring_is_told_from_a_full_one(void **state)
{
	struct fixture *f = open_fixture(state, 64);
	struct vqb_bio *list;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(vqb_blk_submit(f->drv, make(f, i, VQB_BLK_IN, i, 1, 512)), VQB_OK);
	vqb_blk_publish(f->drv);
	bench_give(&f->ring, 9999, 0);
	assert_int_equal(vqb_blk_reap(f->drv, &list), 0);
	assert_int_equal(vqb_blk_submit(f->drv, make(f, DEPTH, VQB_BLK_IN, 0, 1, 512)),
			 VQB_E_BROKEN);
	assert_int_equal(vqb_driver_reset(f->ring.drv, NULL), VQB_OK);
	assert_int_equal(vqb_blk_abandon(f->drv, &list), VQB_OK);
	assert_non_null(list);
	assert_int_equal(vqb_blk_in_flight(f->drv), 0);
}

/* ---- what init checks ---- */

static void test_init_checks_sizes_area_and_limits(void **state)
{
	struct fixture *f = open_fixture(state, 16);
	struct vqb_blk_driver_config good = f->config;
	size_t bytes = vqb_blk_driver_size(&f->config);
	struct vqb_blk_driver *drv;

	assert_int_equal(vqb_blk_driver_init(f->mem, bytes - 1, &good, &drv), VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_driver_init(f->mem + 8, bytes, &good, &drv), VQB_E_INVALID);
	f->config.area.bytes--;
	assert_int_equal(init(f), VQB_E_TOOBIG);
	f->config = good;
	f->config.area.addr += 16;
	assert_int_equal(init(f), VQB_E_INVALID);
	f->config.area.addr = UINT64_MAX & ~UINT64_C(63);
	assert_int_equal(init(f), VQB_E_INVALID);
	f->config = good;
	f->config.area.host = (uint8_t *)good.area.host + 16;
	assert_int_equal(init(f), VQB_E_INVALID);
	f->config = good;
	f->config.depth = 0;
	assert_int_equal(vqb_blk_driver_size(&f->config), 0);
	f->config.depth = 32769;
	assert_int_equal(vqb_blk_driver_size(&f->config), 0);
	f->config = good;
	f->limits.block_size = 0;
	assert_int_equal(vqb_blk_driver_size(&f->config), 0);
	f->limits.block_size = 512;
	f->limits.segments = 32767;
	assert_int_equal(vqb_blk_driver_size(&f->config), 0);
	f->limits.segments = SEGMENTS;
	f->config.ring = NULL;
	assert_int_equal(init(f), VQB_E_INVALID);
	f->config = good;
	bench_add(&f->ring, 1, 1, 0);
	assert_int_equal(init(f), VQB_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		blk_test(test_a_read_is_header_writable_data_status),
		blk_test(test_a_write_is_header_readable_data_status),
		blk_test(test_a_flush_is_header_and_status_with_sector_0),
		blk_test(test_get_id_asks_for_20_bytes),
		blk_test(test_headers_and_status_bytes_share_no_cache_line),
		blk_test(test_no_request_reaches_past_capacity),
		blk_test(test_data_is_whole_sectors_and_blocks),
		blk_test(test_writes_to_a_read_only_disk_fail_locally),
		blk_test(test_flush_is_sent_only_where_it_was_negotiated),
		blk_test(test_segments_stay_within_the_limits),
		blk_test(test_what_is_not_a_bio_is_refused),
		blk_test(test_no_room_is_said_only_while_something_is_in_flight),
		blk_test(test_the_outcome_is_the_status_byte_and_never_the_length),
		blk_test(test_a_status_that_was_not_written_is_an_error),
		blk_test(test_bios_come_back_once_in_the_order_of_completion),
		blk_test(test_reap_drains_everything),
		blk_test(test_turn_publishes_and_arms),
		blk_test(test_after_a_reset_every_bio_comes_back_undecided),
		blk_test(test_a_late_completion_does_not_finish_another_bio),
		blk_test(test_a_broken_ring_is_told_from_a_full_one),
		blk_test(test_init_checks_sizes_area_and_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
