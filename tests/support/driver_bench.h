/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_bench.h: a driver on the test bench. The device is the test itself: it reads and writes
 * the ring byte by byte through raw_ring.h, and knows nothing of the library.
 *
 * Every part of the ring, the tables and the driver's own memory are allocated apart and to the
 * byte, so that a sanitizer sees the first byte too far. Device addresses are never host addresses.
 * Include it first: it asks the C library for posix_memalign.
 */
#ifndef TESTS_DRIVER_BENCH_H
#define TESTS_DRIVER_BENCH_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vqblk/driver.h>

#include "raw_ring.h"
#include "unit.h"

/* Feature words, by the numbers of the format. */
#define FLAGS_MODE (UINT64_C(1) << 32)
#define EVENT_MODE (FLAGS_MODE | UINT64_C(1) << 29)
#define INDIRECT (UINT64_C(1) << 28)

/* Where the device sees the tables and the data. */
#define BENCH_TABLES_AT UINT64_C(0x00c0ffee00000000)
#define BENCH_DATA_AT UINT64_C(0x1234567800000000)

/* What all memory holds before the driver gets it. */
#define BENCH_FILL 0xa5

struct bench {
	struct raw_ring raw; /* the ring, as the device holds it */
	uint8_t *tables;
	struct vqb_driver_config config;
	struct vqb_indirect_policy policy;
	struct vqb_driver *drv;
	void *mem;
	unsigned taken, used; /* the device's cursors; they run on, and are stored modulo 65536 */
};

/* ---- setting up ---- */

static inline void *bench_alloc(size_t align, size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, align, bytes))
		abort();
	memset(p, BENCH_FILL, bytes);
	return p;
}

/* A ring of its own: three parts, each aligned as the format asks and not a byte longer. */
static inline struct vqb_ring bench_ring(uint32_t size, uint64_t features)
{
	struct vqb_ring ring = { .size = size, .features = features };

	ring.desc = bench_alloc(16, 16 * (size_t)size);
	ring.avail = bench_alloc(16, 6 + 2 * (size_t)size);
	ring.used = bench_alloc(16, 6 + 8 * (size_t)size);
	return ring;
}

static inline void bench_free_ring(struct vqb_ring *ring)
{
	free(ring->desc);
	free(ring->avail);
	free(ring->used);
}

/* The device's view of a ring that has just been given to the driver. */
static inline void bench_attach(struct bench *b, const struct vqb_ring *ring)
{
	b->raw = (struct raw_ring){ (uint8_t *)ring->desc, (uint8_t *)ring->avail,
				    (uint8_t *)ring->used, ring->size };
	b->taken = 0;
	b->used = 0;
}

/* A configuration with `tables` tables of `table_len` entries, under the policy `kind`. */
static inline void bench_configure(struct bench *b, uint32_t size, uint64_t features,
				   uint32_t tables, uint32_t table_len, uint32_t kind)
{
	size_t bytes = 16 * (size_t)tables * table_len;

	memset(b, 0, sizeof(*b));
	b->policy = (struct vqb_indirect_policy){ .struct_size = sizeof(b->policy), .kind = kind };
	b->config.struct_size = sizeof(b->config);
	b->config.ring = bench_ring(size, features);
	if (bytes) {
		b->tables = (uint8_t *)bench_alloc(16, bytes);
		b->config.tables = (struct vqb_dma){ b->tables, BENCH_TABLES_AT, bytes };
		b->config.max_table = table_len;
		b->config.policy = &b->policy;
	}
}

static inline void bench_start(struct bench *b)
{
	size_t bytes = vqb_driver_size(&b->config);

	assert_true(bytes > 0);
	b->mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_driver_init(b->mem, bytes, &b->config, &b->drv), VQB_OK);
	bench_attach(b, &b->config.ring);
}

/* A driver without tables. */
static inline void bench_open(struct bench *b, uint32_t size, uint64_t features)
{
	bench_configure(b, size, features, 0, 0, VQB_INDIRECT_NEVER);
	bench_start(b);
}

/* A driver that puts whatever it can into one of `tables` tables of `table_len` entries. */
static inline void bench_open_tables(struct bench *b, uint32_t size, uint64_t features,
				     uint32_t tables, uint32_t table_len)
{
	bench_configure(b, size, features, tables, table_len, VQB_INDIRECT_ALWAYS);
	bench_start(b);
}

static inline void bench_close(struct bench *b)
{
	bench_free_ring(&b->config.ring);
	free(b->tables);
	free(b->mem);
	memset(b, 0, sizeof(*b));
}

/* ---- the driver's caller ---- */

static inline void *bench_token(uintptr_t n)
{
	return (void *)n;
}

/* Segment `i` of the request with token `n`: no two are alike. */
static inline struct vqb_segment bench_segment(uintptr_t n, uint32_t i)
{
	struct vqb_segment seg = { BENCH_DATA_AT + ((uint64_t)n << 20) + ((uint64_t)i << 12),
				   512 + i, 0 };

	return seg;
}

static inline uint32_t bench_bytes(uintptr_t n, uint32_t first, uint32_t count)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += bench_segment(n, first + i).len;
	return bytes;
}

static inline int32_t bench_try_add(struct bench *b, uintptr_t n, uint32_t readable,
				    uint32_t writable)
{
	struct vqb_segment few[64] = { { 0, 0, 0 } }, *seg = few;
	uint32_t count = readable + writable;
	int32_t status;

	if (count > 64)
		seg = (struct vqb_segment *)bench_alloc(16, count * sizeof(*seg));
	for (uint32_t i = 0; i < count; i++)
		seg[i] = bench_segment(n, i);
	status = vqb_driver_add(b->drv, seg, readable, writable, bench_token(n));
	memset(seg, BENCH_FILL, count * sizeof(*seg));
	if (seg != few)
		free(seg);
	return status;
}

static inline void bench_add(struct bench *b, uintptr_t n, uint32_t readable, uint32_t writable)
{
	assert_int_equal(bench_try_add(b, n, readable, writable), VQB_OK);
}

/* Reaps the next request, which must have come back. */
static inline struct vqb_done bench_reap_done(struct bench *b)
{
	struct vqb_done done = { NULL, 0, 0 };

	assert_int_equal(vqb_driver_reap(b->drv, &done, 1), 1);
	return done;
}

static inline uintptr_t bench_reap(struct bench *b)
{
	return (uintptr_t)bench_reap_done(b).token;
}

static inline void bench_reap_none(struct bench *b)
{
	struct vqb_done done;

	assert_int_equal(vqb_driver_reap(b->drv, &done, 1), 0);
}

/* ---- the device ---- */

/* Takes the next request the driver has made visible: the head of its chain. */
static inline unsigned bench_take(struct bench *b)
{
	assert_int_not_equal(raw_avail_idx(&b->raw), b->taken & 0xffff);
	return raw_avail_entry(&b->raw, b->taken++);
}

static inline unsigned bench_visible(const struct bench *b)
{
	return (raw_avail_idx(&b->raw) - b->taken) & 0xffff;
}

static inline void bench_give(struct bench *b, uint32_t id, uint32_t len)
{
	raw_complete(&b->raw, b->used++, id, len);
}

/* Takes and gives back all that is visible, in order. */
static inline void bench_serve(struct bench *b)
{
	while (bench_visible(b))
		bench_give(b, bench_take(b), 0);
}

/* One request all the way round, with publish. */
static inline void bench_round(struct bench *b)
{
	bench_add(b, 1, 1, 0);
	vqb_driver_publish(b->drv);
	bench_serve(b);
	assert_int_equal(bench_reap(b), 1);
}

/* `count` requests all the way round, a ring full at a time. */
static inline void bench_rounds(struct bench *b, unsigned long count)
{
	while (count) {
		uint32_t batch = count < b->raw.size ? (uint32_t)count : b->raw.size;

		for (uint32_t i = 0; i < batch; i++)
			bench_add(b, 1, 1, 0);
		vqb_driver_publish(b->drv);
		bench_serve(b);
		for (uint32_t i = 0; i < batch; i++)
			bench_reap(b);
		count -= batch;
	}
}

static inline void bench_set_avail_event(struct bench *b, unsigned slot)
{
	poke(b->raw.used + 4 + 8 * (size_t)b->raw.size, slot, 2);
}

static inline void bench_set_used_flags(struct bench *b, unsigned flags)
{
	poke(b->raw.used, flags, 2);
}

/* By the format, entry by entry: would filling slots `from` up to `to` - 1 meet `event`? */
static inline uint32_t bench_meets(unsigned event, unsigned from, unsigned to)
{
	for (unsigned slot = from; slot != to; slot++)
		if ((slot & 0xffff) == (event & 0xffff))
			return 1;
	return 0;
}

/* ---- looking at chains ---- */

/*
 * The ring descriptors of the chain at `head`, in order, into `at` (room for the ring's size; may
 * be NULL), and how many. Fails on an index out of range and on a chain longer than the ring.
 */
static inline unsigned bench_chain(const struct bench *b, unsigned head, unsigned *at)
{
	for (unsigned n = 0, i = head; n < b->raw.size; i = raw_desc_next(b->raw.desc, i)) {
		assert_true(i < b->raw.size);
		if (at)
			at[n] = i;
		n++;
		if (!(raw_desc_flags(b->raw.desc, i) & RAW_NEXT))
			return n;
	}
	fail_msg("the chain at %u does not end", head);
	return 0;
}

/* The host's address of the table that ring descriptor `i` refers to; NULL if it is ordinary. */
static inline uint8_t *bench_table(const struct bench *b, unsigned i)
{
	uint64_t offset = raw_desc_addr(b->raw.desc, i) - BENCH_TABLES_AT;

	if (!(raw_desc_flags(b->raw.desc, i) & RAW_INDIRECT))
		return NULL;
	assert_true(offset + raw_desc_len(b->raw.desc, i) <= b->config.tables.bytes);
	return b->tables + offset;
}

/* Entry `i` of a table describes segment `of` of request `n`, and nothing but. */
static inline void bench_expect_desc(const void *table, unsigned i, uintptr_t n, uint32_t of,
				     unsigned flags)
{
	struct vqb_segment seg = bench_segment(n, of);

	assert_int_equal(raw_desc_addr(table, i), seg.addr);
	assert_int_equal(raw_desc_len(table, i), seg.len);
	assert_int_equal(raw_desc_flags(table, i), flags);
}

static inline unsigned bench_flags(uint32_t i, uint32_t readable, uint32_t writable)
{
	return (i + 1 < readable + writable ? RAW_NEXT : 0u) | (i >= readable ? RAW_WRITE : 0u);
}

/* The chain at `head` is request `n`, direct: one ring descriptor for each segment. */
static inline void bench_expect_direct(const struct bench *b, unsigned head, uintptr_t n,
				       uint32_t readable, uint32_t writable)
{
	unsigned i = head;

	assert_int_equal(bench_chain(b, head, NULL), readable + writable);
	for (uint32_t of = 0; of < readable + writable; of++) {
		bench_expect_desc(b->raw.desc, i, n, of, bench_flags(of, readable, writable));
		i = raw_desc_next(b->raw.desc, i);
	}
}

/* The chain at `head` is request `n` in a table: one ring descriptor, entries in sequence. */
static inline void bench_expect_indirect(const struct bench *b, unsigned head, uintptr_t n,
					 uint32_t readable, uint32_t writable)
{
	uint32_t count = readable + writable;
	uint8_t *table = bench_table(b, head);

	assert_non_null(table);
	assert_int_equal(raw_desc_flags(b->raw.desc, head), RAW_INDIRECT);
	assert_int_equal(raw_desc_len(b->raw.desc, head), 16 * count);
	for (uint32_t of = 0; of < count; of++) {
		bench_expect_desc(table, of, n, of, bench_flags(of, readable, writable));
		if (of + 1 < count)
			assert_int_equal(raw_desc_next(table, of), of + 1);
	}
}

/* ---- "nothing has changed" ---- */

struct bench_state {
	uint64_t rings;  /* fingerprints: of the available and used ring, */
	uint64_t chains; /* and of the descriptor table and the tables */
	uint32_t free, in_flight;
	int32_t state;
};

#define BENCH_FINGERPRINT UINT64_C(0xcbf29ce484222325) /* of nothing */

static inline uint64_t bench_fingerprint(uint64_t so_far, const uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		so_far = (so_far ^ p[i]) * UINT64_C(0x100000001b3);
	return so_far;
}

static inline uint64_t bench_rings(const struct bench *b)
{
	uint64_t print = BENCH_FINGERPRINT;

	print = bench_fingerprint(print, b->raw.avail, 6 + 2 * (size_t)b->raw.size);
	return bench_fingerprint(print, b->raw.used, 6 + 8 * (size_t)b->raw.size);
}

static inline uint64_t bench_chains(const struct bench *b)
{
	uint64_t print = BENCH_FINGERPRINT;

	print = bench_fingerprint(print, b->raw.desc, 16 * (size_t)b->raw.size);
	return bench_fingerprint(print, b->tables, b->config.tables.bytes);
}

static inline struct bench_state bench_state(const struct bench *b)
{
	struct bench_state s = { bench_rings(b), bench_chains(b), vqb_driver_free(b->drv),
				 vqb_driver_in_flight(b->drv), vqb_driver_state(b->drv) };

	return s;
}

/* Nothing a device can see has changed. Descriptors and tables that are free may have. */
static inline void bench_expect_unseen(const struct bench *b, struct bench_state before)
{
	struct bench_state now = bench_state(b);

	assert_true(now.rings == before.rings);
	assert_int_equal(now.free, before.free);
	assert_int_equal(now.in_flight, before.in_flight);
	assert_int_equal(now.state, before.state);
}

/* Not a byte has changed. */
static inline void bench_expect_unchanged(const struct bench *b, struct bench_state before)
{
	bench_expect_unseen(b, before);
	assert_true(bench_chains(b) == before.chains);
}

/* ---- numbers that only look random ---- */

static inline uint32_t bench_random(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

#endif
