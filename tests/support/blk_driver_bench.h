/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver_bench.h: a blk driver on the test bench. The device is the test itself: it looks at
 * headers, ranges and descriptors, and writes status bytes and used elements by hand.
 *
 *   struct guest *g = guest_open(state, 16);
 *   struct seen s;
 *
 *   assert_int_equal(guest_try(g, VQB_BLK_IN, 77, 1, 512), VQB_OK);
 *   vqb_blk_publish(g->drv);
 *   s = guest_see(g);
 *   guest_finish(g, &s, VQB_BLK_S_OK);
 *   assert_ptr_equal(guest_reap_one(g), &g->bio[0]);
 *
 * guest_open is guest_plan, which fills in the configuration for a test to change, and guest_init.
 */
#ifndef TESTS_BLK_DRIVER_BENCH_H
#define TESTS_BLK_DRIVER_BENCH_H

#include "driver_bench.h"

#include <vqblk/blk_driver.h>

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define AREA_AT UINT64_C(0x00beef0000000000)

enum {
	CAPACITY = 1024,
	DEPTH = 20, /* more than are reaped or detached in one step */
	RANGES = 4,
	SEGMENTS = 4,
	GUEST_BIOS = 64,
	RANGES_AT = 16 * DEPTH, /* offset of the ranges in the area */
	STATUSES = (16 * DEPTH * (1 + RANGES) + 63) & ~63,
};

struct guest {
	struct bench ring;
	struct vqb_blk_limits limits;
	struct vqb_limits mapping;
	struct vqb_blk_driver_config config;
	struct vqb_blk_driver *drv;
	uint8_t *area, *mem;
	struct vqb_segment seg[GUEST_BIOS + 8];
	struct vqb_bio bio[GUEST_BIOS];
};

static inline int guest_up(void **state)
{
	*state = calloc(1, sizeof(struct guest));
	return *state ? 0 : -1;
}

static inline int guest_down(void **state)
{
	struct guest *g = (struct guest *)*state;

	bench_close(&g->ring);
	free(g->area);
	free(g->mem);
	free(g);
	return 0;
}

#define guest_test(f) cmocka_unit_test_setup_teardown(f, guest_up, guest_down)

/* Each buffer is nobody's neighbour. */
static inline struct guest *guest_plan(void **state, uint32_t ring_size)
{
	struct guest *g = (struct guest *)*state;

	bench_close(&g->ring);
	bench_open(&g->ring, ring_size, FLAGS_MODE);
	free(g->area);
	g->area = (uint8_t *)bench_alloc(64, VQB_BLK_AREA_BYTES(DEPTH, RANGES));
	g->limits = (struct vqb_blk_limits){
		.struct_size = sizeof(g->limits),
		.block_size = 512,
		.capacity = CAPACITY,
		.segment_bytes = UINT32_MAX,
		.segments = SEGMENTS,
		.queues = 1,
	};
	g->config = (struct vqb_blk_driver_config){
		.struct_size = sizeof(g->config),
		.depth = DEPTH,
		.ring = g->ring.drv,
		.area = { g->area, AREA_AT, VQB_BLK_AREA_BYTES(DEPTH, RANGES) },
		.features = BIT(FLUSH),
		.limits = &g->limits,
		.ranges = RANGES,
	};
	memset(g->bio, 0, sizeof(g->bio));
	for (unsigned i = 0; i < GUEST_BIOS + 8; i++)
		g->seg[i] = (struct vqb_segment){ BENCH_DATA_AT + 0x10000 * i, 512, 0 };
	return g;
}

static inline int32_t guest_init(struct guest *g)
{
	size_t bytes = vqb_blk_driver_size(&g->config);

	assert_true(bytes && bytes <= VQB_BLK_DRIVER_BYTES(g->config.depth, g->limits.segments,
							   g->config.ranges, VQB_REQUESTS_WINDOW));
	free(g->mem);
	g->mem = (uint8_t *)bench_alloc(64, bytes);
	return vqb_blk_driver_init(g->mem, bytes, &g->config, &g->drv);
}

static inline struct guest *guest_open(void **state, uint32_t ring_size)
{
	struct guest *g = guest_plan(state, ring_size);

	assert_int_equal(guest_init(g), VQB_OK);
	return g;
}

/* The same with a path. */
static inline struct guest *guest_on_path(void **state, uint32_t ring_size, uint32_t path)
{
	struct guest *g = guest_plan(state, ring_size);

	g->config.path = path;
	assert_int_equal(guest_init(g), VQB_OK);
	return g;
}

/* The device has all range operations. */
static inline void guest_allow_ranges(struct guest *g, uint32_t ranges, uint32_t sectors)
{
	g->config.features |= BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE);
	g->limits.discard_sectors = g->limits.zeroes_sectors = g->limits.erase_sectors = sectors;
	g->limits.discard_ranges = g->limits.zeroes_ranges = g->limits.erase_ranges = ranges;
}

/* ---- bios ---- */

/* Bio number `i`: `nvec` segments of `bytes` bytes in all. */
static inline struct vqb_bio *guest_bio(struct guest *g, unsigned i, uint8_t op, uint64_t sector,
					uint32_t nvec, uint32_t bytes)
{
	struct vqb_bio *bio = &g->bio[i];

	bio->vec = nvec ? &g->seg[i] : NULL;
	bio->nvec = nvec;
	bio->op = op;
	bio->sector = sector;
	for (uint32_t k = 0; k < nvec; k++)
		g->seg[i + k].len = k + 1 < nvec ? bytes / nvec : bytes - bytes / nvec * (nvec - 1);
	return bio;
}

/* Submits bio 0. */
static inline int32_t guest_try(struct guest *g, uint8_t op, uint64_t sector, uint32_t nvec,
				uint32_t bytes)
{
	return vqb_blk_submit(g->drv, guest_bio(g, 0, op, sector, nvec, bytes));
}

/* Submits bio number `i`: a sector, in a buffer of its own. */
static inline struct vqb_bio *guest_put(struct guest *g, unsigned i, uint8_t op, uint64_t sector)
{
	struct vqb_bio *bio = guest_bio(g, i, op, sector, 1, 512);

	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_OK);
	return bio;
}

/* ---- the device by hand ---- */

struct seen {
	unsigned head, parts, at[GUEST_BIOS];
	uint8_t *header, *status;
};

/* Takes the next request and finds its header and status in the area. */
static inline struct seen guest_see(struct guest *g)
{
	const struct raw_ring *raw = &g->ring.raw;
	struct seen s = { .parts = 0 };
	uint64_t header, status;

	s.head = bench_take(&g->ring);
	s.parts = bench_chain(&g->ring, s.head, s.at);
	header = raw_desc_addr(raw->desc, s.at[0]) - AREA_AT;
	status = raw_desc_addr(raw->desc, s.at[s.parts - 1]) - AREA_AT;
	assert_true(header < 16 * (uint64_t)g->config.depth && header % 16 == 0);
	assert_true(status < VQB_BLK_AREA_BYTES(g->config.depth, RANGES));
	assert_true(status >= VQB_BLK_AREA_BYTES(g->config.depth, RANGES) - 64);
	assert_int_equal(raw_desc_len(raw->desc, s.at[0]), 16);
	assert_int_equal(raw_desc_flags(raw->desc, s.at[0]), RAW_NEXT);
	assert_int_equal(raw_desc_len(raw->desc, s.at[s.parts - 1]), 1);
	assert_int_equal(raw_desc_flags(raw->desc, s.at[s.parts - 1]), RAW_WRITE);
	s.header = g->area + header;
	s.status = g->area + status;
	return s;
}

/* What a header says. */
static inline unsigned guest_type(const struct seen *s)
{
	return (unsigned)peek(s->header, 4);
}

static inline uint64_t guest_sector(const struct seen *s)
{
	return peek(s->header + 8, 8);
}

/* Bytes of data that the device reads or writes. */
static inline uint64_t guest_bytes(const struct guest *g, const struct seen *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 1; i + 1 < s->parts; i++)
		bytes += raw_desc_len(g->ring.raw.desc, s->at[i]);
	return bytes;
}

static inline void guest_finish(struct guest *g, const struct seen *s, uint8_t status)
{
	*s->status = status;
	bench_give(&g->ring, s->head, 1);
}

/* Takes the next request and finishes it. */
static inline struct seen guest_serve(struct guest *g, uint8_t status)
{
	struct seen s = guest_see(g);

	guest_finish(g, &s, status);
	return s;
}

static inline struct vqb_bio *guest_reap_one(struct guest *g)
{
	struct vqb_bio *done;

	assert_int_equal(vqb_blk_reap(g->drv, &done), 1);
	assert_non_null(done);
	assert_null(done->next);
	return done;
}

/* Reaps; how many there were, which is how long the list is. */
static inline unsigned guest_reap(struct guest *g, struct vqb_bio **done)
{
	unsigned n = vqb_blk_reap(g->drv, done), listed = 0;

	for (struct vqb_bio *bio = *done; bio; bio = bio->next, listed++)
		assert_int_equal(bio->state, VQB_BIO_IDLE);
	assert_int_equal(n, listed);
	return n;
}

/* Serves and reaps until nothing is out; how many bios came back. */
static inline unsigned guest_drain(struct guest *g)
{
	struct vqb_bio *done;
	unsigned n = 0;

	while (vqb_blk_outstanding(g->drv)) {
		vqb_blk_publish(g->drv);
		while (bench_visible(&g->ring))
			guest_serve(g, VQB_BLK_S_OK);
		assert_true(vqb_driver_pending(g->ring.drv) > 0);
		n += guest_reap(g, &done);
	}
	return n;
}

/* The device is reset; the ring starts over. */
static inline void guest_restart(struct guest *g)
{
	assert_int_equal(vqb_driver_reset(g->ring.drv, &g->ring.config.ring), VQB_OK);
	bench_attach(&g->ring, &g->ring.config.ring);
}

#endif
