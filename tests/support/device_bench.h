/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_bench.h: a device on the bench. Guest memory in two regions that adjoin in the guest and
 * lie far apart in the host, a ring written by hand at the start of the first one, and a device
 * over it.
 *
 *   struct bench *b = bench_open(state, 8, 0);
 *
 *   bench_desc(b, 0, DATA, 16, 0, 0);
 *   bench_offer(b, 0);
 *   chain = bench_take_one(b);
 *
 * bench_open is bench_plan, which clears guest memory and fills in `memory` and `config` for a test
 * to change, and bench_start, which makes the device. Both may be had again in the same test. The
 * device's own memory has a guard behind it.
 */
#ifndef TESTS_DEVICE_BENCH_H
#define TESTS_DEVICE_BENCH_H

#include <stdlib.h>

#include <vqblk/device.h>

#include "raw_ring.h"
#include "unit.h"

#define REGION_BYTES 0x100000u
#define LOW UINT64_C(0x40000000)
#define BORDER (LOW + REGION_BYTES) /* the first region ends, and the second one begins */
#define HIGH BORDER
#define END (HIGH + REGION_BYTES) /* not mapped, and nothing above it */
#define DATA (LOW + 0xe0000)      /* above the largest ring */
#define TABLE (LOW + 0xf0000)     /* for indirect tables */

#define EVENT_IDX VQB_FEATURE(VQB_F_EVENT_IDX)
#define INDIRECT VQB_FEATURE(VQB_F_INDIRECT_DESC)

enum {
	BENCH_CHAINS = 512,
	BENCH_PIECES = 8192,
	BENCH_REGIONS = 4,
	BENCH_GUARD = 64,
};

struct bench {
	uint8_t *low, *high;
	struct vqb_extent region[BENCH_REGIONS];
	struct vqb_memory memory;
	struct raw_ring ring;
	struct vqb_device_config config;
	struct vqb_device *dev;
	uint8_t *object;
	size_t object_bytes;
	unsigned offered; /* entries made available, free-running */
	/* what the last take left */
	struct vqb_chain chain[BENCH_CHAINS];
	uint32_t taken;
	struct vqb_need need;
	struct vqb_piece piece[BENCH_PIECES];
};

/* ---- set-up ---- */

static inline int bench_up(void **state)
{
	struct bench *b = (struct bench *)calloc(1, sizeof(*b));

	if (!b)
		return -1;
	b->high = (uint8_t *)calloc(1, REGION_BYTES);
	b->low = (uint8_t *)calloc(1, REGION_BYTES);
	*state = b;
	return b->low && b->high ? 0 : -1;
}

/* The device wrote nothing behind the bytes that it was given. */
static inline int bench_guard_intact(const struct bench *b)
{
	for (size_t i = 0; i < BENCH_GUARD; i++) {
		if (b->object[b->object_bytes + i] != 0xa5)
			return 0;
	}
	return 1;
}

static inline int bench_down(void **state)
{
	struct bench *b = (struct bench *)*state;
	int intact = !b->object || bench_guard_intact(b);

	free(b->object);
	free(b->low);
	free(b->high);
	free(b);
	return intact ? 0 : -1;
}

#define bench_test(f) cmocka_unit_test_setup_teardown(f, bench_up, bench_down)

/* Where a guest address lies in this process. */
static inline uint8_t *bench_host(const struct bench *b, uint64_t addr)
{
	assert_true(addr >= LOW && addr < END);
	return addr < BORDER ? b->low + (addr - LOW) : b->high + (addr - HIGH);
}

/* Describes a ring of `size` entries at `at`, a gap of at least eight bytes before each part. */
static inline struct vqb_ring_at bench_ring_at(uint64_t at, uint32_t size, uint64_t features)
{
	struct vqb_ring_at ring = { .size = size, .features = features };

	ring.desc = at;
	ring.avail = ring.desc + 16 * (uint64_t)size + 16;
	ring.used = (ring.avail + 6 + 2 * (uint64_t)size + 8 + 3) & ~UINT64_C(3);
	return ring;
}

/* The driver's view of a ring of the device. */
static inline struct raw_ring bench_raw(const struct bench *b, const struct vqb_ring_at *at)
{
	struct raw_ring raw = { bench_host(b, at->desc), bench_host(b, at->avail),
				bench_host(b, at->used), at->size };

	return raw;
}

static inline struct bench *bench_plan(void **state, uint32_t size, uint64_t features)
{
	struct bench *b = (struct bench *)*state;

	memset(b->low, 0, REGION_BYTES);
	memset(b->high, 0, REGION_BYTES);
	b->offered = 0;
	b->region[0] = (struct vqb_extent){ LOW, REGION_BYTES, b->low, VQB_READ | VQB_WRITE, 0 };
	b->region[1] = (struct vqb_extent){ HIGH, REGION_BYTES, b->high, VQB_READ | VQB_WRITE, 0 };
	b->memory = (struct vqb_memory){
		.struct_size = sizeof(b->memory), .generation = 1, .count = 2, .sorted = b->region
	};
	b->config = (struct vqb_device_config){ .struct_size = sizeof(b->config),
						.memory = &b->memory };
	if (size) {
		b->config.ring = bench_ring_at(LOW, size, features);
		b->ring = bench_raw(b, &b->config.ring);
	}
	return b;
}

/* Memory for a device of the planned configuration: exactly what it asks for, and a guard. */
static inline void bench_object(struct bench *b)
{
	size_t all;

	b->object_bytes = vqb_device_size(&b->config);
	assert_int_not_equal(b->object_bytes, 0);
	all = (b->object_bytes + BENCH_GUARD + 63) & ~(size_t)63;
	free(b->object);
	b->object = (uint8_t *)aligned_alloc(64, all);
	assert_non_null(b->object);
	memset(b->object, 0x5a, b->object_bytes);
	memset(b->object + b->object_bytes, 0xa5, all - b->object_bytes);
}

static inline int32_t bench_init(struct bench *b)
{
	bench_object(b);
	return vqb_device_init(b->object, b->object_bytes, &b->config, &b->dev);
}

static inline void bench_start(struct bench *b)
{
	assert_int_equal(bench_init(b), VQB_OK);
	assert_non_null(b->dev);
}

static inline struct bench *bench_open(void **state, uint32_t size, uint64_t features)
{
	struct bench *b = bench_plan(state, size, features);

	bench_start(b);
	return b;
}

/* Both sides go on from `index`, with nothing in flight, as after a restore. */
static inline void bench_stand_at(struct bench *b, unsigned index)
{
	struct vqb_device_saved saved = { (uint16_t)index, (uint16_t)index };

	b->offered = index;
	poke(b->ring.avail + 2, index, 2);
	poke(b->ring.used + 2, index, 2);
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_OK);
}

/* ---- the driver, by hand ---- */

static inline void bench_desc(struct bench *b, unsigned i, uint64_t addr, uint32_t len,
			      unsigned flags, unsigned next)
{
	raw_desc(b->ring.desc, i, addr, len, flags, next);
}

/* Entry `i` of the table at a guest address that does not straddle the border. */
static inline void bench_entry(struct bench *b, uint64_t table, unsigned i, uint64_t addr,
			       uint32_t len, unsigned flags, unsigned next)
{
	raw_desc(bench_host(b, table), i, addr, len, flags, next);
}

/* A table of `n` entries in order, each of `len` bytes at `addr` with `flags` besides NEXT. */
static inline void bench_table(struct bench *b, uint64_t table, unsigned n, uint64_t addr,
			       uint32_t len, unsigned flags)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned next = i + 1 < n ? RAW_NEXT : 0;

		bench_entry(b, table, i, addr, len, flags | next, i + 1);
	}
}

static inline void bench_offer(struct bench *b, unsigned head)
{
	raw_offer(&b->ring, b->offered++, head);
}

/* Descriptor `head` as a chain of its own, of 16 readable bytes. */
static inline void bench_offer_plain(struct bench *b, unsigned head)
{
	bench_desc(b, head, DATA, 16, 0, 0);
	bench_offer(b, head);
}

/* The same of 16 writable bytes. */
static inline void bench_offer_writable(struct bench *b, unsigned head)
{
	bench_desc(b, head, DATA, 16, RAW_WRITE, 0);
	bench_offer(b, head);
}

/* ---- the device ---- */

static inline int32_t bench_take_room(struct bench *b, uint32_t max, uint32_t room)
{
	b->taken = 0xdead;
	memset(&b->need, 0, sizeof(b->need));
	memset(b->chain, 0xee, sizeof(b->chain[0]) * (max < BENCH_CHAINS ? max : BENCH_CHAINS));
	return vqb_device_take(b->dev, b->chain, max, b->piece, room, &b->taken, &b->need);
}

static inline int32_t bench_take(struct bench *b, uint32_t max)
{
	return bench_take_room(b, max, BENCH_PIECES);
}

static inline void bench_take_nothing(struct bench *b)
{
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_int_equal(b->taken, 0);
}

/* Takes exactly `n`, all of them good. */
static inline void bench_take_good(struct bench *b, uint32_t n)
{
	assert_int_equal(bench_take(b, n), VQB_OK);
	assert_int_equal(b->taken, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(b->chain[i].status, VQB_OK);
}

static inline const struct vqb_chain *bench_take_one(struct bench *b)
{
	bench_take_good(b, 1);
	return &b->chain[0];
}

static inline struct vqb_ticket bench_take_ticket(struct bench *b)
{
	return bench_take_one(b)->ticket;
}

/* Takes one that breaks `rule`: no pieces, and a reason. */
static inline const struct vqb_chain *bench_take_bad(struct bench *b, uint32_t rule)
{
	const struct vqb_chain *chain = &b->chain[0];

	assert_int_equal(bench_take(b, 1), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(chain->status, VQB_E_BAD_CHAIN);
	assert_int_equal(chain->reason.rule, rule);
	assert_int_equal(chain->readable + chain->writable, 0);
	assert_int_equal(chain->read_bytes + chain->write_bytes, 0);
	return chain;
}

static inline void bench_put(struct bench *b, struct vqb_ticket ticket, uint32_t written)
{
	assert_int_equal(vqb_device_put(b->dev, ticket, written), VQB_OK);
}

/* Takes and puts `n` chains, one at a time, and exposes them. */
static inline void bench_serve(struct bench *b, unsigned n)
{
	while (n--)
		bench_put(b, bench_take_ticket(b), 0);
	vqb_device_expose(b->dev);
}

/* ---- what is seen ---- */

static inline void bench_assert_piece(const struct vqb_piece *piece, const void *base, size_t len)
{
	assert_ptr_equal(piece->base, base);
	assert_int_equal(piece->len, len);
}

/* The used entry of free-running number `idx`. */
static inline void bench_assert_used(const struct bench *b, unsigned idx, uint32_t id, uint32_t len)
{
	assert_int_equal(raw_used_id(&b->ring, idx), id);
	assert_int_equal(raw_used_len(&b->ring, idx), len);
}

/* A copy of the first region, which holds the ring; bench_assert_unchanged frees it. */
static inline uint8_t *bench_snapshot(const struct bench *b)
{
	uint8_t *copy = (uint8_t *)malloc(REGION_BYTES);

	assert_non_null(copy);
	memcpy(copy, b->low, REGION_BYTES);
	return copy;
}

static inline void bench_assert_unchanged(const struct bench *b, uint8_t *copy)
{
	int differs = memcmp(copy, b->low, REGION_BYTES);

	free(copy);
	assert_int_equal(differs, 0);
}

#endif
