/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going on with a request that was mapped comes to what mapping all at once comes to, or to
 * nothing.
 */
#include <stdlib.h>
#include <string.h>

#include <vqblk/segment.h>

#include "random.h"
#include "unit.h"

enum { VECS = 24, ROOM = 24, GUARD = 2 };

struct walk {
	struct vqb_segment table[ROOM + GUARD];
	uint32_t n;
	uint64_t bytes;
};

static struct vqb_limits no_limits(void)
{
	struct vqb_limits limits;

	vqb_limits_init(&limits);
	return limits;
}

/* All of the list in one request, or not. */
static int maps_whole(const struct vqb_limits *l, uint64_t sector, const struct vqb_segment *vec,
		      uint32_t nvec, uint32_t room, struct walk *w)
{
	struct vqb_mapper m = vqb_mapper_over(l, vec, nvec, sector);

	return !vqb_map_next(&m, w->table, room, &w->n, &w->bytes) && !vqb_mapper_more(&m);
}

static int same_table(const struct walk *a, const struct walk *b)
{
	return a->n == b->n && a->bytes == b->bytes &&
	       !memcmp(a->table, b->table, a->n * sizeof(a->table[0]));
}

/* ---- by hand ---- */

static const struct vqb_segment page[] = {
	{ 0x10000, 4096, 0 }, { 0x20000, 4096, 0 }, { 0x21000, 4096, 0 }, { 0x30200, 3584, 0 }
};

static void first_page(struct walk *w)
{
	w->table[0] = page[0];
	w->n = 1;
	w->bytes = 4096;
}

static void test_what_follows_is_added(void **state)
{
	struct vqb_limits l = no_limits();
	struct walk w;

	(void)state;
	first_page(&w);
	assert_int_equal(vqb_map_append(&l, 0, &page[1], 2, w.table, ROOM, &w.n, &w.bytes), VQB_OK);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.bytes, 3 * 4096);
	assert_int_equal(w.table[1].addr, 0x20000);
	assert_int_equal(w.table[1].len, 8192);
	/* A neighbour of the last segment makes that one longer. */
	assert_int_equal(vqb_map_append(&l, 0, &(struct vqb_segment){ 0x22000, 512, 0 }, 1, w.table,
					ROOM, &w.n, &w.bytes),
			 VQB_OK);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.table[1].len, 8192 + 512);
}

/* What is refused leaves the request as it was. */
static void refused(const struct vqb_limits *l, uint64_t sector, const struct vqb_segment *vec,
		    uint32_t nvec, uint32_t room, int32_t status)
{
	struct walk w;

	first_page(&w);
	assert_int_equal(vqb_map_append(l, sector, vec, nvec, w.table, room, &w.n, &w.bytes),
			 status);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.bytes, 4096);
	assert_memory_equal(&w.table[0], &page[0], sizeof(page[0]));
}

static void test_each_limit_is_a_reason_to_refuse(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	l.max_segments = 1;
	refused(&l, 0, &page[1], 1, ROOM, VQB_E_TOOBIG);
	l = no_limits();
	refused(&l, 0, &page[1], 1, 1, VQB_E_TOOBIG); /* room */
	l.max_sectors = 15;
	refused(&l, 0, &page[1], 1, ROOM, VQB_E_TOOBIG);
	l = no_limits();
	l.chunk_sectors = 12;
	refused(&l, 0, &page[1], 1, ROOM, VQB_E_TOOBIG);
	refused(&l, 12 * 5, &page[1], 1, ROOM, VQB_E_TOOBIG);
	l = no_limits();
	l.virt_boundary = 4095;
	refused(&l, 0, &page[3], 1, ROOM, VQB_E_TOOBIG);
	l = no_limits();
	l.block_size = l.split_align = 1024;
	refused(&l, 0, &(struct vqb_segment){ 0x50000, 512, 0 }, 1, ROOM, VQB_E_TOOBIG);
}

static void test_nonsense_is_told_from_too_much(void **state)
{
	static const struct vqb_segment bad[] = { { 0x50000, 0, 0 },
						  { 0x50000, 512, 1 },
						  { UINT64_MAX - 510, 512, 0 } };
	struct vqb_limits l = no_limits();
	struct walk w;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct vqb_segment two[2] = { page[1], bad[i] };

		refused(&l, 0, &bad[i], 1, ROOM, VQB_E_INVALID);
		refused(&l, 0, two, 2, ROOM, VQB_E_INVALID);
	}
	refused(&l, 0, NULL, 1, ROOM, VQB_E_INVALID);
	refused(&l, 0, &page[1], 0, ROOM, VQB_E_INVALID);
	first_page(&w);
	w.n = 0;
	assert_int_equal(vqb_map_append(&l, 0, &page[1], 1, w.table, ROOM, &w.n, &w.bytes),
			 VQB_E_INVALID);
	first_page(&w);
	assert_int_equal(vqb_map_append(NULL, 0, &page[1], 1, w.table, ROOM, &w.n, &w.bytes),
			 VQB_E_INVALID);
	assert_int_equal(vqb_map_append(&l, 0, &page[1], 1, NULL, ROOM, &w.n, &w.bytes),
			 VQB_E_INVALID);
}

/* A last segment that ends at 2^64 has no neighbour, though the next address is 0. */
static void test_nothing_is_behind_the_end_of_memory(void **state)
{
	struct vqb_limits l = no_limits();
	struct walk w = { .n = 1, .bytes = 4096 };

	(void)state;
	w.table[0] = (struct vqb_segment){ UINT64_MAX - 4095, 4096, 0 };
	assert_int_equal(vqb_map_append(&l, 0, &(struct vqb_segment){ 0, 512, 0 }, 1, w.table, ROOM,
					&w.n, &w.bytes),
			 VQB_OK);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.table[0].len, 4096);
}

/* ---- at random ---- */

static uint64_t mask_of(struct random *r, uint32_t least)
{
	return (UINT64_C(1) << (least + random_below(r, 5))) - 1;
}

/* Limits that bite, and that vqb_limits_check lets pass. */
static void make_limits(struct random *r, struct vqb_limits *l)
{
	do {
		vqb_limits_init(l);
		l->block_size = 512u << random_below(r, 2);
		l->split_align = l->block_size << random_below(r, 3);
		if (random_below(r, 2))
			l->max_segments = 1 + random_below(r, 12);
		if (random_below(r, 2))
			l->max_segment_bytes = 512 * (1 + random_below(r, 12));
		if (random_below(r, 2))
			l->max_sectors = 2 + random_below(r, 40);
		if (random_below(r, 3) == 0)
			l->chunk_sectors = 2 * (1 + random_below(r, 20));
		if (random_below(r, 3) == 0)
			l->seg_boundary = mask_of(r, 9);
		if (random_below(r, 3) == 0)
			l->virt_boundary = mask_of(r, 8);
		if (random_below(r, 6) == 0)
			l->flags = VQB_LIMITS_NO_CLUSTER;
	} while (vqb_limits_check(l, NULL));
}

/* Lists with neighbours in memory, near boundaries, of whole sectors and of less. */
static uint32_t make_list(struct random *r, struct vqb_segment *vec, uint64_t *end, uint32_t blocks)
{
	uint32_t n = 0;

	while (blocks && n < VECS / 2) {
		uint32_t whole = 1 + random_below(r, blocks < 6 ? blocks : 6), left = whole * 1024;

		blocks -= whole;
		while (left && n < VECS / 2) {
			uint32_t len = random_one_in(r, 4) ? 256 * (1 + random_below(r, 4)) : left;

			if (len > left || n + 1 == VECS / 2)
				len = left;
			if (random_one_in(r, 2))
				*end = (UINT64_C(1) << 20) * (1 + random_below(r, 50)) +
				       256 * random_below(r, 16);
			vec[n++] = (struct vqb_segment){ *end, len, 0 };
			*end += len;
			left -= len;
		}
	}
	return n;
}

static void test_it_is_as_if_the_walk_had_gone_on(void **state)
{
	struct random r = { 5 };
	unsigned longer = 0, refusals = 0;

	(void)state;
	for (unsigned turn = 0; turn < 200000; turn++) {
		uint32_t room = 1 + random_below(&r, ROOM), first, second;
		uint64_t sector = 2 * random_below(&r, 50), end = 0x10000;
		struct walk part, whole, before;
		struct vqb_segment vec[VECS];
		struct vqb_limits l;
		int32_t status;

		make_limits(&r, &l);
		first = make_list(&r, vec, &end, 1 + random_below(&r, 6));
		second = make_list(&r, vec + first, &end, 1 + random_below(&r, 6));
		if (!maps_whole(&l, sector, vec, first, room, &part))
			continue;
		memset(&part.table[part.n], 0xee, (ROOM + GUARD - part.n) * sizeof(part.table[0]));
		before = part;
		status = vqb_map_append(&l, sector, vec + first, second, part.table, room, &part.n,
					&part.bytes);
		for (uint32_t i = room; i < ROOM + GUARD; i++)
			assert_memory_equal(&part.table[i], &before.table[i],
					    sizeof(part.table[0]));
		if (status) {
			assert_int_equal(status, VQB_E_TOOBIG);
			assert_false(maps_whole(&l, sector, vec, first + second, room, &whole));
			assert_true(same_table(&part, &before));
			refusals++;
		} else {
			assert_true(maps_whole(&l, sector, vec, first + second, room, &whole));
			assert_true(same_table(&part, &whole));
			longer++;
		}
	}
	assert_true(longer > 20000 && refusals > 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_follows_is_added),
		cmocka_unit_test(test_each_limit_is_a_reason_to_refuse),
		cmocka_unit_test(test_nonsense_is_told_from_too_much),
		cmocka_unit_test(test_nothing_is_behind_the_end_of_memory),
		cmocka_unit_test(test_it_is_as_if_the_walk_had_gone_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
