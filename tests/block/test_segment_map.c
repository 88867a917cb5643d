/* SPDX-License-Identifier: BSD-3-Clause */
/* What the mapper makes of single lists: known faults of others, ends of ranges, wrong vectors. */
#include <string.h>

#include "unit.h"

#include <vqblk/segment.h>

enum { ROOM = 64 };

struct mapped {
	struct vqb_segment out[ROOM];
	uint32_t n;
	uint64_t bytes;
};

static struct vqb_limits no_limits(void)
{
	struct vqb_limits limits;

	vqb_limits_init(&limits);
	return limits;
}

static int32_t map(struct vqb_mapper *m, struct mapped *got)
{
	return vqb_map_next(m, got->out, ROOM, &got->n, &got->bytes);
}

static void assert_segment(const struct mapped *got, uint32_t i, uint64_t addr, uint32_t len)
{
	assert_true(i < got->n);
	assert_int_equal(got->out[i].addr, addr);
	assert_int_equal(got->out[i].len, len);
	assert_int_equal(got->out[i].zero, 0);
}

/* Each request's sectors; the list ends with the last one. */
static void assert_parts(const struct vqb_limits *l, const struct vqb_segment *vec, uint32_t nvec,
			 uint64_t sector, const uint32_t *parts, uint32_t count)
{
	struct vqb_mapper m = vqb_mapper_over(l, vec, nvec, sector);
	struct mapped got;

	assert_int_equal(vqb_limits_check(l, NULL), VQB_OK);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(vqb_mapper_more(&m));
		assert_int_equal(m.sector, sector);
		assert_int_equal(map(&m, &got), VQB_OK);
		assert_int_equal(got.bytes, parts[i] * 512);
		sector += parts[i];
	}
	assert_false(vqb_mapper_more(&m));
}

/* ---- folding and cutting ---- */

static void neighbours_are_one_segment(void **state)
{
	const struct vqb_segment vec[] = { { 0x1000, 512, 0 },
					   { 0x1200, 1024, 0 },
					   { 0x1601, 512, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m = vqb_mapper_over(&l, vec, 3, 0);
	struct mapped got;

	(void)state;
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.bytes, 2048);
	assert_segment(&got, 0, 0x1000, 1536);
	assert_segment(&got, 1, 0x1601, 512);
}

static void with_clustering_off_each_vector_stays_apart(void **state)
{
	const struct vqb_segment vec[] = { { 0x1000, 512, 0 }, { 0x1200, 1024, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.flags = VQB_LIMITS_NO_CLUSTER;
	l.max_segment_bytes = 600;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 3);
	assert_segment(&got, 0, 0x1000, 512);
	assert_segment(&got, 1, 0x1200, 600);
	assert_segment(&got, 2, 0x1458, 424);
}

/* Shows: BLK-ANY-05 */
static void a_segment_of_the_longest_length_is_kept_and_one_byte_more_is_cut(void **state)
{
	const struct vqb_segment vec[] = { { 0x1000, 1024, 0 }, { 0x1400, 1024, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.max_segment_bytes = 2048;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 1);
	l.max_segment_bytes = 2047;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_segment(&got, 0, 0x1000, 2047);
	assert_segment(&got, 1, 0x17ff, 1);
}

static void no_segment_crosses_a_boundary(void **state)
{
	const struct vqb_segment vec[] = { { 0xfe00, 1024, 0 }, { 0x1fe00, 512, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.seg_boundary = 0xffff;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 3);
	assert_segment(&got, 0, 0xfe00, 512);
	assert_segment(&got, 1, 0x10000, 512);
	assert_segment(&got, 2, 0x1fe00, 512);
}

static void the_last_byte_of_memory_is_like_any_other(void **state)
{
	const struct vqb_segment vec[] = { { UINT64_C(0) - 1024, 512, 0 },
					   { UINT64_C(0) - 512, 512, 0 },
					   { 0, 512, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m = vqb_mapper_over(&l, vec, 3, 0);
	struct mapped got;

	(void)state;
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_segment(&got, 0, UINT64_C(0) - 1024, 1024);
	assert_segment(&got, 1, 0, 512);
}

/* ---- gaps ---- */

static const struct vqb_segment at_0 = { 0x10000, 4096, 0 };

static struct vqb_limits no_gaps(void)
{
	struct vqb_limits l = no_limits();

	l.virt_boundary = 0xfff;
	return l;
}

/* Shows: K31 */
static void both_sides_of_an_inner_edge_are_on_the_boundary(void **state)
{
	const struct vqb_segment behind = { 0x20200, 3584, 0 }, before = { 0x30000, 512, 0 },
				 whole = { 0x40000, 4096, 0 };
	const struct vqb_segment a[] = { at_0, behind }, b[] = { before, at_0 },
				 c[] = { whole, at_0 };
	static const uint32_t a_parts[] = { 8, 7 }, b_parts[] = { 1, 8 }, c_parts[] = { 16 };
	struct vqb_limits l = no_gaps();

	(void)state;
	assert_true(vqb_segments_gap(&l, &at_0, &behind));
	assert_true(vqb_segments_gap(&l, &before, &at_0));
	assert_false(vqb_segments_gap(&l, &whole, &at_0));
	assert_parts(&l, a, 2, 0, a_parts, 2);
	assert_parts(&l, b, 2, 0, b_parts, 2);
	assert_parts(&l, c, 2, 0, c_parts, 1);
}

/* Shows: K31 */
static void a_run_that_begins_off_the_boundary_is_cut_on_it(void **state)
{
	const struct vqb_segment vec[] = { { 0x10200, 3584, 0 }, { 0x11000, 4096, 0 } };
	struct vqb_limits l = no_gaps();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.max_segment_bytes = 4096;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_segment(&got, 0, 0x10200, 3584);
	assert_segment(&got, 1, 0x11000, 4096);
	assert_false(vqb_segments_join(&l, &vec[0], &vec[1]));
	assert_false(vqb_segments_gap(&l, &vec[0], &vec[1]));
}

/* The cut can lie before what the segment had already. */
static void a_segment_gives_back_what_lies_behind_the_boundary(void **state)
{
	const struct vqb_segment vec[] = { { 0x10000, 5120, 0 }, { 0x11400, 2048, 0 } };
	struct vqb_limits l = no_gaps();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.max_segment_bytes = 6000;
	m = vqb_mapper_over(&l, vec, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_segment(&got, 0, 0x10000, 4096);
	assert_segment(&got, 1, 0x11000, 3072);
}

static void a_gap_within_a_block_can_never_be_sent(void **state)
{
	const struct vqb_segment vec[] = { { 0x10000, 4096, 0 },
					   { 0x20000, 256, 0 },
					   { 0x30000, 256, 0 } };
	struct vqb_limits l = no_gaps();
	struct vqb_mapper m = vqb_mapper_over(&l, vec, 3, 0);
	struct mapped got;

	(void)state;
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.bytes, 4096);
	assert_int_equal(map(&m, &got), VQB_E_TOOBIG);
	assert_int_equal(got.n, 0);
	assert_int_equal(got.bytes, 0);
	assert_int_equal(m.at, 1);
	assert_int_equal(m.sector, 8);
}

/* ---- splitting ---- */

/* Shows: K35 */
static void one_long_piece_is_cut_into_requests_of_the_limit(void **state)
{
	const struct vqb_segment vec = { 0x100000, 128 * 512, 0 };
	uint32_t parts[16];
	struct vqb_limits l = no_limits();

	(void)state;
	for (int i = 0; i < 16; i++)
		parts[i] = 8;
	l.max_sectors = 8;
	assert_parts(&l, &vec, 1, 0, parts, 16);
}

/* A list that is a byte too long for one request, at the edge of a vector. */
static void not_one_byte_more_than_the_limit_is_taken(void **state)
{
	const struct vqb_segment vec[] = { { 0x10000, 4000, 0 },
					   { 0x20000, 97, 0 },
					   { 0x30000, 511, 0 } };
	static const uint32_t parts[] = { 8, 1 };
	struct vqb_limits l = no_limits();

	(void)state;
	l.max_sectors = 8;
	assert_parts(&l, vec, 3, 0, parts, 2);
	l.block_size = l.split_align = 4096;
	l.max_sectors = 15;
	assert_int_equal(vqb_limits_bytes(&l, 8), 4096);
}

/* Shows: K35 */
static void splits_are_at_physical_blocks_where_they_can_be(void **state)
{
	const struct vqb_segment vec = { 0x100000, 16 * 512, 0 };
	static const uint32_t physical[] = { 4, 3, 4, 4, 1 }, any[] = { 4, 4, 4, 4 };
	static const uint32_t shifted[] = { 3, 4, 4, 4, 1 };
	struct vqb_limits l = no_limits();

	(void)state;
	l.max_sectors = 4;
	assert_parts(&l, &vec, 1, 1, any, 4);
	l.split_align = 4096;
	assert_parts(&l, &vec, 1, 1, physical, 5);
	l.split_offset = 2048; /* 4, 12, ... */
	assert_parts(&l, &vec, 1, 1, shifted, 5);
}

/* Shows: K32 */
static void no_request_crosses_a_chunk(void **state)
{
	const struct vqb_segment vec = { 0x100000, 16 * 512, 0 };
	static const uint32_t across[] = { 8, 8 }, within[] = { 16 };
	struct vqb_limits l = no_limits();

	(void)state;
	l.max_sectors = 1024;
	l.chunk_sectors = 128;
	assert_parts(&l, &vec, 1, 120, across, 2);
	assert_parts(&l, &vec, 1, 112, within, 1);
	assert_parts(&l, &vec, 1, 240, within, 1);
	assert_int_equal(vqb_limits_bytes(&l, 120), 8 * 512);
	assert_int_equal(vqb_limits_bytes(&l, 112), 16 * 512);
	assert_int_equal(vqb_limits_bytes(&l, 240), 16 * 512);
	assert_int_equal(vqb_limits_bytes(&l, 128), 128 * 512);
}

/* A chunk that is no power of two, far out: the remainder of 64 bits by 32 is made by hand. */
static void chunks_of_any_size_are_found_anywhere_on_the_disk(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	l.chunk_sectors = 3000;
	for (uint64_t sector = 1; sector < UINT64_MAX / 8; sector = sector * 7 + 5)
		assert_int_equal(vqb_limits_bytes(&l, sector), (3000 - sector % 3000) * 512);
	l.chunk_sectors = UINT32_MAX;
	l.max_sectors = VQB_MAX_SECTORS;
	assert_int_equal(vqb_limits_bytes(&l, UINT32_MAX * UINT64_C(5) - 7), 7 * 512);
}

/* Where a chunk ends a request must end, on a physical block or not. */
static void a_chunk_s_end_is_not_given_up_for_a_physical_block(void **state)
{
	const struct vqb_segment vec = { 0x100000, 20 * 512, 0 };
	static const uint32_t parts[] = { 12, 8 };
	struct vqb_limits l = no_limits();

	(void)state;
	l.chunk_sectors = 12;
	l.split_align = 4096;
	assert_parts(&l, &vec, 1, 0, parts, 2);
}

/* Shows: BLK-ANY-05 */
static void a_request_has_no_more_segments_than_limit_and_room(void **state)
{
	struct vqb_segment vec[8], out[9];
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	uint32_t n;
	uint64_t bytes;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		vec[i] = (struct vqb_segment){ 0x10000 * (i + 1), 512, 0 };
	l.max_segments = 5;
	m = vqb_mapper_over(&l, vec, 8, 0);
	assert_int_equal(vqb_map_next(&m, out, 9, &n, &bytes), VQB_OK);
	assert_int_equal(n, 5);
	assert_int_equal(bytes, 5 * 512);
	memset(out, 0x77, sizeof(out));
	assert_int_equal(vqb_map_next(&m, out, 2, &n, &bytes), VQB_OK);
	assert_int_equal(n, 2);
	assert_int_equal(out[2].len, 0x77777777);
	assert_int_equal(vqb_map_next(&m, out, 0, &n, &bytes), VQB_E_TOOBIG);
	assert_int_equal(vqb_map_next(&m, out, 9, &n, &bytes), VQB_OK);
	assert_int_equal(n, 1);
	assert_int_equal(out[1].len, 512);
	assert_int_equal(out[2].len, 0x77777777);
	assert_int_equal(vqb_map_next(&m, out, 9, &n, &bytes), VQB_OK);
	assert_int_equal(n, 0);
	assert_int_equal(bytes, 0);
}

static void a_block_of_more_segments_than_there_may_be_is_too_big(void **state)
{
	const struct vqb_segment vec[] = { { 0x1000, 200, 0 },
					   { 0x2000, 200, 0 },
					   { 0x3000, 112, 0 } };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	l.max_segments = 2;
	m = vqb_mapper_over(&l, vec, 3, 0);
	assert_int_equal(map(&m, &got), VQB_E_TOOBIG);
	assert_int_equal(m.at, 0);
	l.max_segments = 3;
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 3);
}

/* The table is not cleared between two lists: a shorter one leaves nothing of the longer. */
static void a_table_is_used_again_as_it_is(void **state)
{
	const struct vqb_segment few[] = { { 0x1000, 512, 0 }, { 0x9000, 512, 0 } };
	struct vqb_segment many[8];
	struct vqb_limits l = no_limits();
	struct vqb_mapper m;
	struct mapped got;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		many[i] = (struct vqb_segment){ 0x10000 * (i + 1), 1024, 0 };
	m = vqb_mapper_over(&l, many, 8, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 8);
	m = vqb_mapper_over(&l, few, 2, 0);
	assert_int_equal(map(&m, &got), VQB_OK);
	assert_int_equal(got.n, 2);
	assert_segment(&got, 0, 0x1000, 512);
	assert_segment(&got, 1, 0x9000, 512);
	assert_int_equal(got.out[2].addr, many[2].addr);
}

/* ---- wrong lists ---- */

static void wrong_vectors_are_refused_wherever_they_are(void **state)
{
	const struct vqb_segment wrong[] = { { 0x5000, 0, 0 },
					     { 0x5000, 512, 1 },
					     { 0x5000, 512, 0x80000000 },
					     { UINT64_C(0) - 511, 512, 0 },
					     { UINT64_MAX, UINT32_MAX, UINT32_MAX },
					     { 0x1200, 0, 0 },
					     { 0x1200, 512, UINT32_MAX } };
	struct vqb_segment vec[2] = { { 0x1000, 512, 0 } };
	struct vqb_limits l = no_limits();
	struct mapped got;

	(void)state;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vqb_mapper m = vqb_mapper_over(&l, &wrong[i], 1, 0);

		assert_int_equal(map(&m, &got), VQB_E_INVALID);
		vec[1] = wrong[i];
		m = vqb_mapper_over(&l, vec, 2, 0);
		assert_int_equal(map(&m, &got), VQB_E_INVALID);
		assert_int_equal(vqb_map_next(&m, NULL, ROOM, &got.n, &got.bytes), VQB_E_INVALID);
		assert_int_equal(m.at, 0);
	}
}

static void wrong_places_and_ends_are_refused(void **state)
{
	const struct vqb_segment whole = { 0x10000, 4096, 0 }, part = { 0x10000, 4000, 0 };
	struct vqb_limits l = no_limits();
	struct vqb_mapper m = vqb_mapper_over(&l, &part, 1, 0);
	struct mapped got;

	(void)state;
	assert_int_equal(map(&m, &got), VQB_E_INVALID);
	l.block_size = l.split_align = 4096;
	m = vqb_mapper_over(&l, &whole, 1, 4);
	assert_int_equal(map(&m, &got), VQB_E_INVALID);
	m.sector = UINT64_MAX - 7; /* its end is sector 2^64 */
	assert_int_equal(map(&m, &got), VQB_E_INVALID);
	m.sector -= 8;
	assert_int_equal(map(&m, &got), VQB_OK);
	l.struct_size--;
	m = vqb_mapper_over(&l, &whole, 1, 0);
	assert_int_equal(map(&m, &got), VQB_E_INVALID);
	m = vqb_mapper_over(NULL, &whole, 1, 0);
	assert_int_equal(map(&m, &got), VQB_E_INVALID);
}

/* ---- joining ---- */

static void joins_are_allowed_up_to_each_limit(void **state)
{
	const struct vqb_segment a = { 0xf000, 2048, 0 }, b = { 0xf800, 2048, 0 };
	const struct vqb_segment c = { 0x10000, 512, 0 }, top = { UINT64_C(0) - 512, 512, 0 };
	const struct vqb_segment zero = { 0, 512, 0 };
	struct vqb_limits l = no_limits();

	(void)state;
	assert_true(vqb_segments_join(&l, &a, &b));
	assert_false(vqb_segments_join(&l, &b, &a));
	assert_false(vqb_segments_join(&l, &a, &c));
	assert_false(vqb_segments_join(&l, &top, &zero));
	assert_true(vqb_segments_join(&l, &b, &c));
	l.seg_boundary = 0xffff;
	assert_false(vqb_segments_join(&l, &b, &c));
	assert_true(vqb_segments_join(&l, &a, &b));
	l.max_segment_bytes = 4096;
	assert_true(vqb_segments_join(&l, &a, &b));
	l.max_segment_bytes = 4095;
	assert_false(vqb_segments_join(&l, &a, &b));
	l = no_limits();
	l.flags = VQB_LIMITS_NO_CLUSTER;
	assert_false(vqb_segments_join(&l, &a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_one_segment),
		cmocka_unit_test(with_clustering_off_each_vector_stays_apart),
		cmocka_unit_test(a_segment_of_the_longest_length_is_kept_and_one_byte_more_is_cut),
		cmocka_unit_test(no_segment_crosses_a_boundary),
		cmocka_unit_test(the_last_byte_of_memory_is_like_any_other),
		cmocka_unit_test(both_sides_of_an_inner_edge_are_on_the_boundary),
		cmocka_unit_test(a_run_that_begins_off_the_boundary_is_cut_on_it),
		cmocka_unit_test(a_segment_gives_back_what_lies_behind_the_boundary),
		cmocka_unit_test(a_gap_within_a_block_can_never_be_sent),
		cmocka_unit_test(one_long_piece_is_cut_into_requests_of_the_limit),
		cmocka_unit_test(not_one_byte_more_than_the_limit_is_taken),
		cmocka_unit_test(splits_are_at_physical_blocks_where_they_can_be),
		cmocka_unit_test(no_request_crosses_a_chunk),
		cmocka_unit_test(chunks_of_any_size_are_found_anywhere_on_the_disk),
		cmocka_unit_test(a_chunk_s_end_is_not_given_up_for_a_physical_block),
		cmocka_unit_test(a_request_has_no_more_segments_than_limit_and_room),
		cmocka_unit_test(a_block_of_more_segments_than_there_may_be_is_too_big),
		cmocka_unit_test(a_table_is_used_again_as_it_is),
		cmocka_unit_test(wrong_vectors_are_refused_wherever_they_are),
		cmocka_unit_test(wrong_places_and_ends_are_refused),
		cmocka_unit_test(joins_are_allowed_up_to_each_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
