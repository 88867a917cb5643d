/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_bench.h: a list of bios that wait, and no device: the test takes the requests that are
 * made and says what came of them. Bios and buffers are the bench's.
 *
 *   struct rb *b = rb_open(state, VQB_PATH_REQUEST);
 *
 *   rb_put(b, VQB_BLK_OUT, 0, 8);
 *   rb_put(b, VQB_BLK_OUT, 8, 8);
 *   assert_int_equal(rb_send_all(b), 1);
 *   rb_expect(b, 0, VQB_BLK_OUT, 0, 16, 2);
 *   rb_done(b, 0, VQB_OK);
 *
 * rb_open is rb_plan, which fills in the configuration for a test to change, and rb_start. Each
 * request is checked as it is made: it is the same if asked for again, its table is within limits
 * and what the mapper has of its bios' data, and nothing is written behind the room that was
 * given.
 */
#ifndef TESTS_REQUEST_BENCH_H
#define TESTS_REQUEST_BENCH_H

#include <stdlib.h>
#include <string.h>

#include <vqblk/request.h>

#include "unit.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)

enum {
	RB_BIOS = 400,
	RB_VECS = 8, /* of a bio */
	RB_SENT = 800,
	RB_ROOM = 160, /* entries of a table */
};

struct rb_sent {
	struct vqb_request r;
	struct vqb_segment table[RB_ROOM];
	int back;
};

struct rb {
	struct vqb_limits limits;
	struct vqb_requests_config config;
	struct vqb_requests *rq;
	void *mem;
	uint32_t room;
	struct vqb_bio bio[RB_BIOS];
	struct vqb_segment vec[RB_BIOS][RB_VECS];
	unsigned bios, sends;
	struct rb_sent *sent;
	struct vqb_bio *done[RB_BIOS]; /* in the order in which they were handed back */
	unsigned dones;
	uint8_t handed[RB_BIOS]; /* how often */
};

static inline int rb_up(void **state)
{
	struct rb *b = (struct rb *)calloc(1, sizeof(*b));

	if (!b)
		return -1;
	*state = b;
	b->sent = (struct rb_sent *)calloc(RB_SENT, sizeof(*b->sent));
	return b->sent ? 0 : -1;
}

static inline int rb_down(void **state)
{
	struct rb *b = (struct rb *)*state;

	free(b->mem);
	free(b->sent);
	free(b);
	return 0;
}

#define rb_test(f) cmocka_unit_test_setup_teardown(f, rb_up, rb_down)

static inline struct rb *rb_plan(void **state, uint32_t path)
{
	struct rb *b = (struct rb *)*state;

	memset(b->bio, 0, sizeof(b->bio));
	memset(b->handed, 0, sizeof(b->handed));
	b->bios = b->sends = b->dones = 0;
	vqb_limits_init(&b->limits);
	b->limits.max_segments = 128;
	b->room = RB_ROOM;
	b->config = (struct vqb_requests_config){
		.struct_size = sizeof(b->config),
		.path = path,
		.max_ranges = 16,
		.features = BIT(FLUSH),
		.capacity = UINT64_C(1) << 32,
		.limits = &b->limits,
	};
	return b;
}

static inline void rb_start(struct rb *b)
{
	size_t bytes = vqb_requests_size(&b->config);

	assert_in_range(bytes, 1, VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW));
	free(b->mem);
	b->mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	assert_non_null(b->mem);
	memset(b->mem, 0xa5, bytes);
	assert_int_equal(vqb_requests_init(b->mem, bytes, &b->config, &b->rq), VQB_OK);
}

static inline struct rb *rb_open(void **state, uint32_t path)
{
	struct rb *b = rb_plan(state, path);

	rb_start(b);
	return b;
}

/* All range operations, `ranges` of `sectors` sectors to a request. */
static inline void rb_allow_ranges(struct rb *b, uint32_t ranges, uint32_t sectors)
{
	const struct vqb_range_limits all = { .max_sectors = sectors, .max_ranges = ranges };

	b->limits.discard = b->limits.zeroes = b->limits.erase = all;
	b->config.max_ranges = ranges;
}

/* ---- bios ---- */

/* A bio of one buffer, which is no other's neighbour, or of a range; not submitted. */
static inline struct vqb_bio *rb_bio(struct rb *b, uint8_t op, uint64_t sector, uint32_t sectors)
{
	unsigned i = b->bios++;
	struct vqb_bio *bio;

	assert_true(i < RB_BIOS);
	bio = &b->bio[i];
	bio->op = op;
	bio->sector = sector;
	if (op == VQB_BLK_IN || op == VQB_BLK_OUT) {
		b->vec[i][0] = (struct vqb_segment){ (uint64_t)(i + 1) << 32, sectors * 512, 0 };
		bio->vec = b->vec[i];
		bio->nvec = 1;
	} else {
		bio->sectors = sectors;
	}
	return bio;
}

static inline struct vqb_bio *rb_submit(struct rb *b, struct vqb_bio *bio)
{
	assert_int_equal(vqb_requests_submit(b->rq, bio), VQB_OK);
	assert_int_equal(bio->state, VQB_BIO_WAITING);
	return bio;
}

static inline struct vqb_bio *rb_put(struct rb *b, uint8_t op, uint64_t sector, uint32_t sectors)
{
	return rb_submit(b, rb_bio(b, op, sector, sectors));
}

static inline struct vqb_bio *rb_put_flags(struct rb *b, uint8_t op, uint64_t sector,
					   uint32_t sectors, uint8_t flags)
{
	struct vqb_bio *bio = rb_bio(b, op, sector, sectors);

	bio->flags = flags;
	return rb_submit(b, bio);
}

/* Its data lies at `addr`. */
static inline struct vqb_bio *rb_put_at(struct rb *b, uint8_t op, uint64_t sector, uint64_t addr,
					uint32_t bytes)
{
	struct vqb_bio *bio = rb_bio(b, op, sector, bytes / 512);

	b->vec[bio - b->bio][0].addr = addr;
	return rb_submit(b, bio);
}

/* ---- requests ---- */

static inline int rb_has_data(uint8_t op)
{
	return op == VQB_BLK_IN || op == VQB_BLK_OUT;
}

static inline uint64_t rb_bytes_of(const struct vqb_bio *bio)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < bio->nvec; i++)
		bytes += bio->vec[i].len;
	return bytes;
}

/* The oldest bio that waits, begins at `sector` and can be in this request. */
static inline const struct vqb_bio *rb_at(const struct rb *b, const struct vqb_request *r,
					  uint64_t sector)
{
	for (unsigned i = 0; i < b->bios; i++)
		if (b->bio[i].op == r->op && b->bio[i].sector == sector &&
		    (b->bio[i].state == VQB_BIO_WAITING || b->bio[i].state == VQB_BIO_PARTLY))
			return &b->bio[i];
	return NULL;
}

/* Copies a bio's vectors, but for its first `skip` bytes; how many. */
static inline uint32_t rb_copy_rest(const struct vqb_bio *bio, uint64_t skip,
				    struct vqb_segment *vec)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < bio->nvec; i++) {
		if (skip >= bio->vec[i].len) {
			skip -= bio->vec[i].len;
			continue;
		}
		vec[n] = bio->vec[i];
		vec[n].addr += skip;
		vec[n++].len -= (uint32_t)skip;
		skip = 0;
	}
	return n;
}

/*
 * A request that is shared has the table that its bios' buffers, one after the other, map to. Of
 * the first one a part may have gone before.
 */
static inline void rb_check_shared(const struct rb *b, const struct vqb_request *r,
				   const struct vqb_segment *table)
{
	struct vqb_segment vec[RB_ROOM * 4], want[RB_ROOM];
	const struct vqb_bio *bio = r->bio;
	struct vqb_mapper m;
	uint64_t sector = r->sector, bytes;
	uint32_t nvec = 0, n;

	for (uint32_t i = 0; i < r->bios; i++) {
		bio = i ? rb_at(b, r, sector) : bio;
		assert_non_null(bio);
		assert_true(nvec + bio->nvec <= RB_ROOM * 4);
		nvec += rb_copy_rest(bio, (sector - bio->sector) * 512, vec + nvec);
		sector = bio->sector + rb_bytes_of(bio) / 512;
	}
	m = vqb_mapper_over(&b->limits, vec, nvec, r->sector);
	assert_int_equal(vqb_map_next(&m, want, RB_ROOM, &n, &bytes), VQB_OK);
	assert_false(vqb_mapper_more(&m));
	assert_int_equal(bytes, r->bytes);
	assert_int_equal(n, r->n);
	assert_memory_equal(want, table, n * sizeof(*table));
}

static inline void rb_check_data(const struct rb *b, const struct vqb_request *r,
				 const struct vqb_segment *table)
{
	const struct vqb_limits *l = &b->limits;
	uint64_t bytes = 0, sectors = r->bytes / 512;

	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t last = table[i].addr + (table[i].len - 1);

		assert_in_range(table[i].len, 1, l->max_segment_bytes);
		assert_int_equal(table[i].zero, 0);
		assert_true(!((table[i].addr ^ last) & ~l->seg_boundary));
		assert_true(!i || !vqb_segments_gap(l, &table[i - 1], &table[i]));
		bytes += table[i].len;
	}
	assert_int_equal(bytes, r->bytes);
	assert_in_range(r->n, 1, l->max_segments);
	assert_in_range(sectors, 1, l->max_sectors);
	assert_true(r->sector + sectors <= b->config.capacity);
	if (l->chunk_sectors)
		assert_true(r->sector / l->chunk_sectors ==
			    (r->sector + sectors - 1) / l->chunk_sectors);
	if (r->bios > 1)
		rb_check_shared(b, r, table);
}

static inline const struct vqb_range_limits *rb_range_limits(const struct rb *b, uint8_t op)
{
	return op == VQB_BLK_DISCARD        ? &b->limits.discard
	       : op == VQB_BLK_WRITE_ZEROES ? &b->limits.zeroes
					    : &b->limits.erase;
}

static inline void rb_check_ranges(const struct rb *b, const struct vqb_request *r,
				   const struct vqb_segment *table)
{
	const struct vqb_range_limits *l = rb_range_limits(b, r->op);

	assert_in_range(r->n, 1, l->max_ranges);
	assert_in_range(r->n, 1, b->config.max_ranges);
	for (uint32_t i = 0; i < r->n; i++) {
		assert_in_range(table[i].len, 1, l->max_sectors);
		assert_true(table[i].addr + table[i].len <= b->config.capacity);
	}
}

/* All that a request says. (Where it ends within a bio is said only of one that does.) */
static inline void rb_expect_same(const struct vqb_request *a, const struct vqb_request *b)
{
	assert_ptr_equal(a->bio, b->bio);
	assert_int_equal(a->op, b->op);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->ioprio, b->ioprio);
	assert_int_equal(a->sector, b->sector);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->bios, b->bios);
}

/* Makes the request that goes next, in s, and looks at it from all sides. */
static inline int32_t rb_next(struct rb *b, struct rb_sent *s)
{
	struct vqb_segment again[RB_ROOM];
	struct vqb_request r;
	int32_t status;

	memset(s->table, 0xee, sizeof(s->table));
	memset(again, 0xee, sizeof(again));
	status = vqb_requests_next(b->rq, &s->r, s->table, b->room);
	assert_int_equal(vqb_requests_next(b->rq, &r, again, b->room), status);
	if (status)
		return status;
	rb_expect_same(&r, &s->r);
	assert_memory_equal(again, s->table, r.n * sizeof(*again));
	for (uint32_t i = b->room; i < RB_ROOM; i++)
		assert_int_equal(s->table[i].zero, 0xeeeeeeee);
	assert_non_null(r.bio);
	assert_true(r.bios >= 1);
	if (rb_has_data(r.op))
		rb_check_data(b, &r, s->table);
	else if (r.op >= VQB_BLK_DISCARD)
		rb_check_ranges(b, &r, s->table);
	return VQB_OK;
}

/* Sends one request. NULL: nothing waits. */
static inline struct rb_sent *rb_send(struct rb *b)
{
	struct rb_sent *s = &b->sent[b->sends];
	int32_t status;

	assert_true(b->sends < RB_SENT);
	status = rb_next(b, s);
	if (status) {
		assert_int_equal(status, VQB_E_AGAIN);
		return NULL;
	}
	vqb_requests_sent(b->rq, &s->r);
	s->back = 0;
	b->sends++;
	return s;
}

/* Sends what waits; how many requests. */
static inline unsigned rb_send_all(struct rb *b)
{
	unsigned before = b->sends;

	while (rb_send(b))
		continue;
	assert_int_equal(vqb_requests_waiting(b->rq), 0);
	return b->sends - before;
}

/* Notes what was handed back. */
static inline unsigned rb_note(struct rb *b, struct vqb_bio *list)
{
	unsigned n = 0;

	for (; list; list = list->next, n++) {
		assert_int_equal(list->state, VQB_BIO_IDLE);
		assert_true(b->dones < RB_BIOS);
		b->done[b->dones++] = list;
		b->handed[list - b->bio]++;
	}
	return n;
}

/* Request number `k` of those sent is back; how many bios are done by that. */
static inline unsigned rb_done(struct rb *b, unsigned k, int32_t status)
{
	struct vqb_bio *list = NULL, **tail = &list;
	unsigned n;

	assert_true(k < b->sends && !b->sent[k].back);
	b->sent[k].back = 1;
	vqb_requests_done(b->rq, b->sent[k].r.bio, b->sent[k].r.bios, status, &tail);
	*tail = NULL;
	n = rb_note(b, list);
	return n;
}

/* All that are out are back, oldest first, and what is then sent as well: nothing is left. */
static inline void rb_finish(struct rb *b)
{
	for (unsigned k = 0; k < b->sends; k++) {
		if (!b->sent[k].back)
			rb_done(b, k, VQB_OK);
		rb_send_all(b);
	}
	assert_int_equal(vqb_requests_outstanding(b->rq), 0);
}

/* Request number `k`, of reads, writes and what has neither data nor ranges. */
static inline void rb_expect(const struct rb *b, unsigned k, uint8_t op, uint64_t sector,
			     uint32_t sectors, uint32_t bios)
{
	const struct vqb_request *r = &b->sent[k].r;

	assert_true(k < b->sends);
	assert_int_equal(r->op, op);
	assert_int_equal(r->sector, sector);
	assert_int_equal(r->bytes, (uint64_t)sectors * 512);
	assert_int_equal(r->bios, bios);
}

/* Entry `i` of request number `k`: a range. */
static inline void rb_expect_range(const struct rb *b, unsigned k, unsigned i, uint64_t sector,
				   uint32_t sectors)
{
	assert_true(k < b->sends && i < b->sent[k].r.n);
	assert_int_equal(b->sent[k].table[i].addr, sector);
	assert_int_equal(b->sent[k].table[i].len, sectors);
}

/* The bio has been handed back, once, with this status. */
static inline void rb_expect_back(const struct rb *b, const struct vqb_bio *bio, int32_t status)
{
	assert_int_equal(b->handed[bio - b->bio], 1);
	assert_int_equal(bio->state, VQB_BIO_IDLE);
	assert_int_equal(bio->status, status);
}

static inline struct vqb_requests_counters rb_counters(const struct rb *b)
{
	struct vqb_requests_counters c;

	vqb_requests_read_counters(b->rq, &c);
	return c;
}

#endif
