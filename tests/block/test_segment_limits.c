/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits: which make no sense, what a driver makes of a device's, what a device announces. */
#include <string.h>

#include "unit.h"

#include <vqblk/segment.h>

static struct vqb_limits no_limits(void)
{
	struct vqb_limits limits;

	memset(&limits, 0x5a, sizeof(limits));
	vqb_limits_init(&limits);
	return limits;
}

static uint32_t rule_of(const struct vqb_limits *l)
{
	uint32_t rule = 99;
	int32_t status = vqb_limits_check(l, &rule);

	assert_int_equal(status, rule == VQB_LIMITS_FINE ? VQB_OK : VQB_E_INVALID);
	assert_int_equal(vqb_limits_check(l, NULL), status);
	return rule;
}

/* One field of limits that are fine otherwise. */
#define ASSERT_RULE(field, value, rule)                                                            \
	do {                                                                                       \
		struct vqb_limits limits = no_limits();                                            \
                                                                                                   \
		limits.field = (value);                                                            \
		assert_int_equal(rule_of(&limits), rule);                                          \
	} while (0)

static void no_limits_are_fine(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	assert_int_equal(rule_of(NULL), VQB_LIMITS_FORM);
}

static void numbers_that_make_no_sense_alone_are_named(void **state)
{
	(void)state;
	ASSERT_RULE(struct_size, 4, VQB_LIMITS_FORM);
	ASSERT_RULE(flags, 2, VQB_LIMITS_FORM);
	ASSERT_RULE(zero, 1, VQB_LIMITS_FORM);
	ASSERT_RULE(erase.zero, 1, VQB_LIMITS_FORM);
	ASSERT_RULE(block_size, 0, VQB_LIMITS_BLOCK);
	ASSERT_RULE(block_size, 256, VQB_LIMITS_BLOCK);
	ASSERT_RULE(block_size, 1536, VQB_LIMITS_BLOCK);
	ASSERT_RULE(block_size, 1024, VQB_LIMITS_SPLIT);
	ASSERT_RULE(split_align, 1536, VQB_LIMITS_SPLIT);
	ASSERT_RULE(split_align, 4096, VQB_LIMITS_FINE);
	ASSERT_RULE(split_offset, 512, VQB_LIMITS_SPLIT);
	ASSERT_RULE(max_sectors, 0, VQB_LIMITS_SECTORS);
	ASSERT_RULE(max_sectors, 1, VQB_LIMITS_FINE);
	ASSERT_RULE(max_sectors, VQB_MAX_SECTORS + 1, VQB_LIMITS_SECTORS);
	ASSERT_RULE(max_segments, 0, VQB_LIMITS_SEGMENT);
	ASSERT_RULE(max_segment_bytes, 0, VQB_LIMITS_SEGMENT);
	ASSERT_RULE(seg_boundary, 0xfffe, VQB_LIMITS_MASK);
	ASSERT_RULE(seg_boundary, 0xffff, VQB_LIMITS_FINE);
	ASSERT_RULE(virt_boundary, 0x1000, VQB_LIMITS_MASK);
	ASSERT_RULE(virt_boundary, 0xfff, VQB_LIMITS_FINE);
	ASSERT_RULE(discard.max_ranges, 1, VQB_LIMITS_DISCARD);
	ASSERT_RULE(zeroes.max_sectors, 1, VQB_LIMITS_ZEROES);
	ASSERT_RULE(erase.max_sectors, 1, VQB_LIMITS_ERASE);
}

static void numbers_below_a_block_are_named(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	l.block_size = l.split_align = 4096;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.max_sectors = 7;
	assert_int_equal(rule_of(&l), VQB_LIMITS_SECTORS);
	l.max_sectors = 8;
	l.chunk_sectors = 12;
	assert_int_equal(rule_of(&l), VQB_LIMITS_CHUNK);
	l.chunk_sectors = 24;
	l.discard.max_ranges = 1;
	l.discard.max_sectors = 7;
	assert_int_equal(rule_of(&l), VQB_LIMITS_DISCARD);
	l.discard.max_sectors = 8;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
}

static void no_gaps_and_short_segments_do_not_go_together(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	l.virt_boundary = 0xfff;
	l.max_segment_bytes = 0xfff;
	assert_int_equal(rule_of(&l), VQB_LIMITS_VIRT);
	l.max_segment_bytes = 0x1000;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.seg_boundary = 0x7ff;
	assert_int_equal(rule_of(&l), VQB_LIMITS_VIRT);
	l.seg_boundary = 0xfff;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
}

static void a_block_that_lies_well_must_get_through(void **state)
{
	struct vqb_limits l = no_limits();

	(void)state;
	l.block_size = l.split_align = 4096;
	l.max_segment_bytes = 4095;
	l.max_segments = 1;
	assert_int_equal(rule_of(&l), VQB_LIMITS_PROGRESS);
	l.max_segments = 2;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.seg_boundary = 0x3ff; /* four parts; one segment each */
	assert_int_equal(rule_of(&l), VQB_LIMITS_PROGRESS);
	l.max_segments = 4;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.max_segment_bytes = 600; /* 600 and 424 of each part */
	l.max_segments = 7;
	assert_int_equal(rule_of(&l), VQB_LIMITS_PROGRESS);
	l.max_segments = 8;
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.seg_boundary = UINT64_MAX;
	l.virt_boundary = 0x1ff; /* 600 is as good as 512 */
	assert_int_equal(rule_of(&l), VQB_LIMITS_FINE);
	l.max_segments = 7;
	assert_int_equal(rule_of(&l), VQB_LIMITS_PROGRESS);
}

/* ---- of a device ---- */

static uint32_t segments_of(uint32_t announced, uint32_t ring)
{
	struct vqb_blk_limits blk = { .struct_size = sizeof(blk), .segments = announced };
	struct vqb_limits l;

	assert_int_equal(vqb_limits_of_blk(&blk, 0, ring, &l), VQB_OK);
	assert_int_equal(vqb_limits_check(&l, NULL), VQB_OK);
	return l.max_segments;
}

/* Shows: K34 */
static void segments_are_at_least_one_and_fit_into_the_ring(void **state)
{
	(void)state;
	assert_int_equal(segments_of(0, 64), 1);
	assert_int_equal(segments_of(1, 64), 1);
	assert_int_equal(segments_of(128, 64), 62);
	assert_int_equal(segments_of(62, 64), 62);
	assert_int_equal(segments_of(30, 64), 30);
	assert_int_equal(segments_of(UINT32_MAX, 0), 32766);
	assert_int_equal(segments_of(UINT32_MAX, 32768), 32766);
}

/* Shows: K34 BLK-ANY-05 */
static void what_the_space_says_and_what_is_missing_from_it(void **state)
{
	struct vqb_blk_config space = { .seg_max = vqb_to_le32(128),
					.size_max = vqb_to_le32(8192) };
	struct vqb_blk_limits blk;
	struct vqb_limits l;
	uint64_t features = VQB_FEATURE(VQB_BLK_F_SEG_MAX) | VQB_FEATURE(VQB_BLK_F_SIZE_MAX);

	(void)state;
	assert_int_equal(vqb_blk_limits_read(&space, sizeof(space), 0, 64, &blk), VQB_OK);
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 64, &l), VQB_OK);
	assert_int_equal(l.max_segments, 1);
	assert_int_equal(l.max_segment_bytes, UINT32_MAX);
	assert_int_equal(l.max_sectors, VQB_MAX_SECTORS);
	assert_int_equal(vqb_blk_limits_read(&space, sizeof(space), features, 64, &blk), VQB_OK);
	assert_int_equal(vqb_limits_of_blk(&blk, features, 64, &l), VQB_OK);
	assert_int_equal(l.max_segments, 62);
	assert_int_equal(l.max_segment_bytes, 8192);
}

static void the_topology_says_where_to_split(void **state)
{
	struct vqb_blk_limits blk = { .struct_size = sizeof(blk),
				      .block_size = 1024,
				      .physical_exp = 3,
				      .alignment_offset = 2 };
	struct vqb_limits l;

	(void)state;
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 0, &l), VQB_OK);
	assert_int_equal(vqb_limits_check(&l, NULL), VQB_OK);
	assert_int_equal(l.block_size, 1024);
	assert_int_equal(l.split_align, 8192);
	assert_int_equal(l.split_offset, 2048);
	assert_int_equal(l.max_sectors % 2, 0);
	blk.alignment_offset = 255;
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 0, &l), VQB_OK);
	assert_int_equal(l.split_offset, 7 * 1024);
	blk.physical_exp = 22;
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 0, &l), VQB_E_INVALID);
	blk.physical_exp = 255;
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 0, &l), VQB_E_INVALID);
}

/* Shows: K26 */
static void a_limit_of_64_sectors_is_8_blocks_of_4096(void **state)
{
	struct vqb_blk_limits blk = { .struct_size = sizeof(blk),
				      .block_size = 4096,
				      .discard_sectors = 64 };
	struct vqb_limits l;

	(void)state;
	assert_int_equal(vqb_limits_of_blk(&blk, VQB_FEATURE(VQB_BLK_F_DISCARD), 0, &l), VQB_OK);
	assert_int_equal(l.discard.max_sectors, 64);
	assert_int_equal(l.discard.max_sectors / (l.block_size / 512), 8);
}

static void ranges_are_there_with_their_feature_and_at_least_one(void **state)
{
	struct vqb_blk_limits blk = { .struct_size = sizeof(blk),
				      .segments = 126,
				      .zeroes_sectors = 17,
				      .zeroes_ranges = 3,
				      .discard_alignment = 16,
				      .block_size = 4096 };
	uint64_t features = VQB_FEATURE(VQB_BLK_F_DISCARD) | VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES);
	struct vqb_limits l;

	(void)state;
	assert_int_equal(vqb_limits_of_blk(&blk, features, 0, &l), VQB_OK);
	assert_int_equal(vqb_limits_check(&l, NULL), VQB_OK);
	assert_int_equal(l.discard.max_ranges, 1);
	assert_int_equal(l.discard.max_sectors, UINT32_MAX - 7);
	assert_int_equal(l.discard.alignment, 16);
	assert_int_equal(l.zeroes.max_ranges, 3);
	assert_int_equal(l.zeroes.max_sectors, 16);
	assert_int_equal(l.erase.max_ranges, 0);
	assert_int_equal(l.erase.max_sectors, 0);
	blk.zeroes_sectors = 7; /* less than a block */
	assert_int_equal(vqb_limits_of_blk(&blk, features, 0, &l), VQB_OK);
	assert_int_equal(vqb_limits_check(&l, NULL), VQB_OK);
	assert_int_equal(l.zeroes.max_ranges, 0);
}

static void a_device_s_numbers_that_make_no_sense_are_refused(void **state)
{
	struct vqb_blk_limits blk = { .struct_size = sizeof(blk) }, wrong = blk;
	struct vqb_limits l;

	(void)state;
	assert_int_equal(vqb_limits_of_blk(NULL, 0, 0, &l), VQB_E_INVALID);
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 0, NULL), VQB_E_INVALID);
	assert_int_equal(vqb_limits_of_blk(&blk, 0, 2, &l), VQB_E_TOOBIG);
	wrong.struct_size = 0;
	assert_int_equal(vqb_limits_of_blk(&wrong, 0, 0, &l), VQB_E_INVALID);
	wrong = blk;
	wrong.block_size = 513;
	assert_int_equal(vqb_limits_of_blk(&wrong, 0, 0, &l), VQB_E_INVALID);
}

/* ---- to announce ---- */

static const struct vqb_backend_caps plenty = { .bytes = 1 << 30,
						.max_transfer = UINT64_MAX,
						.max_range = UINT64_MAX,
						.max_pieces = UINT32_MAX,
						.alignment = 1,
						.can = VQB_CAN_READ };

static struct vqb_blk_shape shape_of(uint32_t ring)
{
	return (struct vqb_blk_shape){ .struct_size = sizeof(struct vqb_blk_shape),
				       .ring_size = ring };
}

/* Shows: K34 */
static void a_device_announces_what_fits_into_its_ring(void **state)
{
	struct vqb_blk_shape shape = shape_of(64);
	struct vqb_backend_caps caps = plenty;
	struct vqb_blk_limits out;

	(void)state;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.segments, 62);
	assert_int_equal(out.segment_bytes, 0);
	assert_int_equal(out.capacity, 1 << 21);
	assert_int_equal(out.queues, 1);
	assert_int_equal(out.block_size, 512);
	assert_int_equal(out.discard_sectors, 0);
	shape.ring_size = 128;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.segments, 126);
	caps.max_pieces = 100;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.segments, 100);
	shape.ring_size = 2;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_E_TOOBIG);
}

/* Whatever a driver makes of it, no request is more than the backend takes. */
static void the_longest_request_is_within_the_backend_s_transfer(void **state)
{
	struct vqb_blk_shape shape = shape_of(128);
	struct vqb_backend_caps caps = plenty;
	struct vqb_blk_limits out;

	(void)state;
	for (uint64_t most = 1; most < UINT64_C(1) << 34; most = most * 5 / 3 + 17) {
		shape.block_size = most % 2 ? 512 : 8192;
		caps.max_transfer = most;
		if (most < shape.block_size) {
			assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out),
					 VQB_E_TOOBIG);
			continue;
		}
		assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
		assert_true(out.segments >= 1 && out.segments <= 126);
		if (most > UINT64_C(0xfffffe00)) {
			assert_int_equal(out.segment_bytes, 0);
			continue;
		}
		assert_true(out.segment_bytes && !(out.segment_bytes % shape.block_size));
		assert_true((uint64_t)out.segments * out.segment_bytes <= most);
		/* And not much less. */
		assert_true((uint64_t)out.segments * out.segment_bytes >= most / 4);
	}
}

static void a_device_announces_what_its_backend_can(void **state)
{
	struct vqb_blk_shape shape = shape_of(256);
	struct vqb_backend_caps caps = plenty;
	struct vqb_blk_limits out;

	(void)state;
	shape.block_size = 4096;
	shape.ranges = 16;
	shape.queues = 4;
	caps.bytes = 4096 * 10 + 512;
	caps.max_range = (1 << 20) + 512;
	caps.discard_alignment = 5000;
	caps.can = VQB_CAN_READ | VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES | VQB_CAN_UNMAP;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.capacity, 80);
	assert_int_equal(out.queues, 4);
	assert_int_equal(out.discard_sectors, 2048);
	assert_int_equal(out.discard_ranges, 16);
	assert_int_equal(out.discard_alignment, 16);
	assert_int_equal(out.zeroes_sectors, 2048);
	assert_int_equal(out.zeroes_ranges, 16);
	assert_int_equal(out.zeroes_may_unmap, 1);
	assert_int_equal(out.erase_sectors, 0);
	caps.can = VQB_CAN_READ | VQB_CAN_SECURE_ERASE;
	caps.max_range = UINT64_MAX;
	shape.ranges = 0;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.erase_sectors, UINT32_MAX - 7);
	assert_int_equal(out.erase_ranges, 1);
	assert_int_equal(out.discard_sectors | out.zeroes_sectors | out.zeroes_may_unmap, 0);
	shape.queues = UINT16_MAX;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_OK);
	assert_int_equal(out.queues, UINT16_MAX);
	shape.queues = UINT16_MAX + 1; /* that no device could be made with */
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_E_INVALID);
	shape.queues = 1;
	caps.alignment = 8192;
	assert_int_equal(vqb_blk_limits_announce(&caps, &shape, &out), VQB_E_INVALID);
}

/* All that is left, or whole blocks up to the alignment, where it is within reach. */
static void a_range_ends_at_the_alignment_if_it_cannot_end_at_the_end(void **state)
{
	static const struct {
		uint32_t block, max, alignment;
		uint64_t sector, sectors;
		uint32_t want;
	} try[] = {
		{ 512, 20, 0, 5, 20, 20 },
		{ 512, 20, 0, 5, 21, 20 },
		{ 512, 20, 16, 5, 50, 11 },
		{ 512, 20, 16, 16, 34, 16 },
		{ 512, 20, 16, 48, 7, 7 },
		{ 512, 10, 7, 3, 20, 4 },
		{ 512, 10, 1000, 3, 20, 10 },
		{ 4096, 20, 0, 8, 80, 16 },
		{ 4096, 20, 16, 8, 80, 8 },
		{ 4096, 20, 12, 8, 80, 16 },
		{ 512, UINT32_MAX, 0, 1, UINT64_MAX, UINT32_MAX },
		{ 512, 20, 16, 5, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
		struct vqb_limits limits = no_limits();
		struct vqb_range_limits range = { .max_sectors = try[i].max,
						  .max_ranges = 1,
						  .alignment = try[i].alignment };

		limits.block_size = try[i].block;
		assert_int_equal(vqb_limits_range(&limits, &range, try[i].sector, try[i].sectors),
				 try[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limits_are_fine),
		cmocka_unit_test(numbers_that_make_no_sense_alone_are_named),
		cmocka_unit_test(numbers_below_a_block_are_named),
		cmocka_unit_test(no_gaps_and_short_segments_do_not_go_together),
		cmocka_unit_test(a_block_that_lies_well_must_get_through),
		cmocka_unit_test(segments_are_at_least_one_and_fit_into_the_ring),
		cmocka_unit_test(what_the_space_says_and_what_is_missing_from_it),
		cmocka_unit_test(the_topology_says_where_to_split),
		cmocka_unit_test(a_limit_of_64_sectors_is_8_blocks_of_4096),
		cmocka_unit_test(ranges_are_there_with_their_feature_and_at_least_one),
		cmocka_unit_test(a_device_s_numbers_that_make_no_sense_are_refused),
		cmocka_unit_test(a_device_announces_what_fits_into_its_ring),
		cmocka_unit_test(the_longest_request_is_within_the_backend_s_transfer),
		cmocka_unit_test(a_device_announces_what_its_backend_can),
		cmocka_unit_test(a_range_ends_at_the_alignment_if_it_cannot_end_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
