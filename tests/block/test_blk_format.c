/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of virtio-blk: features, configuration space, limits, the range check. */
#include <stdlib.h>
#include <string.h>

#include <vqblk/blk.h>
#include <vqblk/blk_parse.h>

#include "raw_ring.h"
#include "unit.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define V1 VQB_FEATURE(VQB_F_VERSION_1)
#define ALL (~UINT64_C(0))

/* Every field of a configuration space, by hand: offset, bytes, value, feature (-1: none). */
static const struct {
	unsigned at, bytes;
	uint64_t value;
	int feature;
} golden[] = {
	{ 0, 8, UINT64_C(0x0102030405060708), -1 },
	{ 8, 4, 0x11121314, VQB_BLK_F_SIZE_MAX },
	{ 12, 4, 126, VQB_BLK_F_SEG_MAX },
	{ 16, 2, 0x2122, VQB_BLK_F_GEOMETRY },
	{ 18, 1, 0x23, VQB_BLK_F_GEOMETRY },
	{ 19, 1, 0x24, VQB_BLK_F_GEOMETRY },
	{ 20, 4, 4096, VQB_BLK_F_BLK_SIZE },
	{ 24, 1, 3, VQB_BLK_F_TOPOLOGY },
	{ 25, 1, 7, VQB_BLK_F_TOPOLOGY },
	{ 26, 2, 0x3132, VQB_BLK_F_TOPOLOGY },
	{ 28, 4, 0x33343536, VQB_BLK_F_TOPOLOGY },
	{ 34, 2, 0x4142, VQB_BLK_F_MQ },
	{ 36, 4, 0x51525354, VQB_BLK_F_DISCARD },
	{ 40, 4, 0x55565758, VQB_BLK_F_DISCARD },
	{ 44, 4, 0x595a5b5c, VQB_BLK_F_DISCARD },
	{ 48, 4, 0x61626364, VQB_BLK_F_WRITE_ZEROES },
	{ 52, 4, 0x65666768, VQB_BLK_F_WRITE_ZEROES },
	{ 56, 1, 1, VQB_BLK_F_WRITE_ZEROES },
	{ 60, 4, 0x71727374, VQB_BLK_F_SECURE_ERASE },
	{ 64, 4, 0x75767778, VQB_BLK_F_SECURE_ERASE },
	{ 68, 4, 0x797a7b7c, VQB_BLK_F_SECURE_ERASE },
};

enum { GOLDEN = sizeof(golden) / sizeof(golden[0]) };

static struct vqb_blk_limits full_limits(void)
{
	struct vqb_blk_limits limits = {
		.struct_size = sizeof(limits),
		.block_size = 4096,
		.capacity = UINT64_C(0x0102030405060708),
		.segment_bytes = 0x11121314,
		.segments = 126,
		.queues = 0x4142,
		.physical_exp = 3,
		.alignment_offset = 7,
		.min_io = 0x3132,
		.opt_io = 0x33343536,
		.cylinders = 0x2122,
		.heads = 0x23,
		.track_sectors = 0x24,
		.discard_sectors = 0x51525354,
		.discard_ranges = 0x55565758,
		.discard_alignment = 0x595a5b5c,
		.zeroes_sectors = 0x61626364,
		.zeroes_ranges = 0x65666768,
		.zeroes_may_unmap = 1,
		.erase_sectors = 0x71727374,
		.erase_ranges = 0x75767778,
		.erase_alignment = 0x797a7b7c,
	};

	return limits;
}

/* The space as it must be where `offered` is offered. */
static void golden_space(uint8_t *space, uint64_t offered)
{
	memset(space, 0, VQB_BLK_CONFIG_BYTES);
	for (unsigned i = 0; i < GOLDEN; i++) {
		if (golden[i].feature < 0 || offered & VQB_FEATURE(golden[i].feature))
			poke(space + golden[i].at, golden[i].value, golden[i].bytes);
	}
}

/* Shows: BF-ANY-04 BLK-ANY-03 BLK-ANY-04 BLK-DEV-04 */
static void test_configuration_is_golden_byte_for_byte(void **state)
{
	struct vqb_blk_limits limits = full_limits();
	struct vqb_blk_config config;
	uint8_t want[VQB_BLK_CONFIG_BYTES];

	(void)state;
	assert_int_equal(sizeof(config), 96);
	assert_int_equal(vqb_blk_limits_write(&limits, ALL, &config), VQB_OK);
	golden_space(want, ALL);
	assert_memory_equal(&config, want, sizeof(want));
	assert_int_equal(want[33] | want[57] | want[58] | want[59], 0);
}

/* Shows: BLK-ANY-03 */
static void test_fields_of_each_feature_are_written_only_with_it(void **state)
{
	struct vqb_blk_limits limits = full_limits();
	struct vqb_blk_config config;
	uint8_t want[VQB_BLK_CONFIG_BYTES];

	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		golden_space(want, VQB_FEATURE(bit));
		assert_int_equal(vqb_blk_limits_write(&limits, VQB_FEATURE(bit), &config), VQB_OK);
		assert_memory_equal(&config, want, sizeof(want));
	}
}

/* A number that does not fit into its field is refused rather than cut. */
static void test_writing_refuses_what_does_not_fit(void **state)
{
	struct vqb_blk_limits limits = full_limits();
	struct vqb_blk_config config;

	(void)state;
	limits.queues = 65536;
	assert_int_equal(vqb_blk_limits_write(&limits, BIT(MQ), &config), VQB_E_INVALID);
	assert_int_equal(vqb_blk_limits_write(&limits, 0, &config), VQB_OK);
	limits.physical_exp = 256;
	assert_int_equal(vqb_blk_limits_write(&limits, BIT(TOPOLOGY), &config), VQB_E_INVALID);
	limits.block_size = 0;
	assert_int_equal(vqb_blk_limits_write(&limits, 0, &config), VQB_E_INVALID);
	limits.block_size = 768;
	assert_int_equal(vqb_blk_limits_write(&limits, 0, &config), VQB_E_INVALID);
	limits = full_limits();
	limits.struct_size--;
	assert_int_equal(vqb_blk_limits_write(&limits, 0, &config), VQB_E_INVALID);
}

static int32_t read_limits(uint64_t features, size_t bytes, struct vqb_blk_limits *out)
{
	_Alignas(8) uint8_t space[VQB_BLK_CONFIG_BYTES];

	golden_space(space, ALL);
	return vqb_blk_limits_read(space, bytes, features, 0, out);
}

/* Shows: BLK-ANY-03 BF-ANY-04 */
static void test_reading_gives_what_was_written(void **state)
{
	struct vqb_blk_limits want = full_limits(), got;

	(void)state;
	assert_int_equal(read_limits(ALL, 96, &got), VQB_OK);
	assert_memory_equal(&got, &want, sizeof(want));
}

/* Shows: BF-DRV-18 BLK-ANY-03 BLK-ANY-01 */
static void test_fields_that_are_not_offered_count_as_absent(void **state)
{
	struct vqb_blk_limits got;

	(void)state;
	assert_int_equal(read_limits(0, 96, &got), VQB_OK);
	assert_int_equal(got.capacity, UINT64_C(0x0102030405060708));
	assert_int_equal(got.block_size, 512);
	assert_int_equal(got.segment_bytes, UINT32_MAX);
	assert_int_equal(got.segments, 1);
	assert_int_equal(got.queues, 1);
	assert_int_equal(got.opt_io | got.cylinders | got.discard_ranges | got.erase_ranges, 0);

	assert_int_equal(read_limits(BIT(MQ), 96, &got), VQB_OK);
	assert_int_equal(got.queues, 0x4142);
}

/* Shows: BF-DRV-20 */
static void test_the_space_need_only_reach_the_fields_in_use(void **state)
{
	struct vqb_blk_limits got;

	(void)state;
	assert_int_equal(read_limits(0, 7, &got), VQB_E_INVALID);
	assert_int_equal(read_limits(0, 8, &got), VQB_OK);
	assert_int_equal(read_limits(BIT(RO) | BIT(FLUSH), 8, &got), VQB_OK);
	assert_int_equal(read_limits(BIT(BLK_SIZE), 20, &got), VQB_E_INVALID);
	assert_int_equal(read_limits(BIT(BLK_SIZE), 23, &got), VQB_E_INVALID);
	assert_int_equal(read_limits(BIT(BLK_SIZE), 24, &got), VQB_OK);
	assert_int_equal(read_limits(BIT(BLK_SIZE), 4096, &got), VQB_OK);
}

/* Shows: BLK-ANY-05 */
static void test_seg_max_that_is_missing_zero_huge_or_larger_than_the_ring(void **state)
{
	const struct {
		uint32_t seg_max, ring;
		uint64_t features;
		uint32_t want;
	} c[] = {
		{ 128, 64, 0, 1 },
		{ 0, 64, BIT(SEG_MAX), 1 },
		{ UINT32_MAX, 0, BIT(SEG_MAX), 32766 },
		{ UINT32_MAX, 32768, BIT(SEG_MAX), 32766 },
		{ 128, 64, BIT(SEG_MAX), 62 },
		{ 62, 64, BIT(SEG_MAX), 62 },
		{ 61, 64, BIT(SEG_MAX), 61 },
	};
	_Alignas(8) uint8_t space[16] = { 0 };
	struct vqb_blk_limits got;

	(void)state;
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		poke(space + 12, c[i].seg_max, 4);
		assert_int_equal(
			vqb_blk_limits_read(space, sizeof(space), c[i].features, c[i].ring, &got),
			VQB_OK);
		assert_int_equal(got.segments, c[i].want);
	}
	assert_int_equal(vqb_blk_limits_read(space, sizeof(space), 0, 2, &got), VQB_E_TOOBIG);

	assert_int_equal(vqb_blk_ring_segments(64), 62);
	assert_int_equal(vqb_blk_ring_segments(128), 126);
	assert_int_equal(vqb_blk_ring_segments(4), 2);
	assert_int_equal(vqb_blk_ring_segments(2), 0);
	assert_int_equal(vqb_blk_ring_segments(1), 0);
}

static void test_reading_refuses_a_block_size_that_is_none(void **state)
{
	const uint32_t bad[] = { 0, 1, 256, 511, 513, 768, 0x80000001 };
	_Alignas(8) uint8_t space[24] = { 0 };
	struct vqb_blk_limits got;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		poke(space + 20, bad[i], 4);
		assert_int_equal(vqb_blk_limits_read(space, 24, BIT(BLK_SIZE), 0, &got),
				 VQB_E_INVALID);
		assert_int_equal(vqb_blk_limits_read(space, 24, 0, 0, &got), VQB_OK);
	}
}

/* Shows: BLK-DRV-02 BLK-DRV-03 BLK-DRV-05 */
static void test_cache_mode_follows_what_was_negotiated(void **state)
{
	uint8_t space[33] = { 0 };

	(void)state;
	space[32] = 1;
	assert_int_equal(vqb_blk_cache(space, 33, 0), VQB_BLK_WRITETHROUGH);
	assert_int_equal(vqb_blk_cache(NULL, 0, 0), VQB_BLK_WRITETHROUGH);
	assert_int_equal(vqb_blk_cache(NULL, 0, BIT(FLUSH)), VQB_BLK_WRITEBACK);
	assert_int_equal(vqb_blk_cache(space, 33, BIT(CONFIG_WCE)), VQB_BLK_WRITEBACK);
	space[32] = 0;
	assert_int_equal(vqb_blk_cache(space, 33, BIT(CONFIG_WCE) | BIT(FLUSH)),
			 VQB_BLK_WRITETHROUGH);
	assert_int_equal(vqb_blk_cache(space, 32, BIT(CONFIG_WCE)), VQB_E_INVALID);
}

/* Shows: BLK-DEV-02 BF-DEV-05 BF-DEV-08 BF-DEV-26 BF-DEV-34 */
static void test_the_offer_holds_only_what_can_be_honoured(void **state)
{
	uint64_t offer = vqb_blk_features_offer(ALL);

	(void)state;
	assert_int_equal(offer,
			 VQB_BLK_DEVICE_FEATURES | BIT(RO) | BIT(CONFIG_WCE) | VQB_RING_FEATURES);
	assert_int_equal(offer & (BIT(GEOMETRY) | BIT(ZONED)), 0);
	assert_int_equal(offer & (VQB_FEATURE(VQB_F_SR_IOV) | VQB_FEATURE(VQB_F_RING_PACKED)), 0);
	assert_int_equal(vqb_blk_features_offer(0), V1);
	assert_int_equal(vqb_blk_features_offer(BIT(CONFIG_WCE)), V1);
	assert_int_equal(vqb_blk_features_offer(BIT(CONFIG_WCE) | BIT(FLUSH)),
			 V1 | BIT(CONFIG_WCE) | BIT(FLUSH));
}

/* Shows: BF-DRV-05 BF-DRV-06 BF-DRV-08 BF-DRV-40 BF-DRV-42 BLK-DRV-10 */
static void test_the_driver_accepts_what_it_knows_and_ro_always(void **state)
{
	(void)state;
	assert_int_equal(vqb_blk_features_accept(ALL, ALL),
			 VQB_BLK_DRIVER_FEATURES | VQB_RING_FEATURES);
	assert_int_equal(vqb_blk_features_accept(ALL, 0), V1 | BIT(RO));
	assert_int_equal(vqb_blk_features_accept(V1, ALL), V1);
	assert_int_equal(vqb_blk_features_accept(V1 | BIT(CONFIG_WCE), ALL), V1);
	assert_int_equal(vqb_blk_features_accept(V1 | BIT(CONFIG_WCE) | BIT(FLUSH), ALL),
			 V1 | BIT(CONFIG_WCE) | BIT(FLUSH));
	assert_true(vqb_blk_features_accept(ALL, ALL) & VQB_FEATURE(VQB_F_ACCESS_PLATFORM));
}

/* Shows: BF-DEV-06 BF-DEV-07 */
static void test_the_device_takes_any_subset_with_version_1(void **state)
{
	uint64_t offer = V1 | BIT(RO) | BIT(FLUSH) | BIT(BLK_SIZE) | BIT(CONFIG_WCE);

	(void)state;
	assert_int_equal(vqb_blk_features_check(offer, V1), VQB_OK);
	assert_int_equal(vqb_blk_features_check(offer, offer), VQB_OK);
	assert_int_equal(vqb_blk_features_check(offer, V1 | BIT(CONFIG_WCE)), VQB_OK);
	assert_int_equal(vqb_blk_features_check(offer, V1 | BIT(MQ)), VQB_E_INVALID);
	assert_int_equal(vqb_blk_features_check(offer, BIT(FLUSH)), VQB_E_INVALID);
}

/* Shows: BLK-ANY-02 BLK-DRV-09 K26 */
static void test_the_range_check_never_wraps(void **state)
{
	const struct {
		uint64_t capacity, block, sector, bytes;
		int64_t want;
	} c[] = {
		{ 1024, 512, 0, 512, VQB_OK },
		{ 1024, 512, 1023, 512, VQB_OK },
		{ 1024, 512, 0, 1024 * 512, VQB_OK },
		{ 1024, 512, 0, 1025 * 512, VQB_E_INVALID },
		{ 1024, 512, 1023, 1024, VQB_E_INVALID },
		{ 1024, 512, 1024, 512, VQB_E_INVALID },
		{ 1024, 512, 1024, 0, VQB_OK },
		{ 1024, 512, 1025, 0, VQB_E_INVALID },
		{ 1024, 512, UINT64_MAX, 512, VQB_E_INVALID },
		{ 1024, 512, UINT64_MAX, 1024, VQB_E_INVALID },
		{ 1024, 512, UINT64_MAX, 0, VQB_E_INVALID },
		{ 1024, 512, UINT64_C(1) << 55, 512, VQB_E_INVALID },
		{ 1024, 512, UINT64_MAX - 100, 1000 * 512, VQB_E_INVALID },
		{ UINT64_MAX, 512, UINT64_MAX - 1, 512, VQB_OK },
		{ UINT64_MAX, 512, UINT64_MAX - 1, 1024, VQB_E_INVALID },
		{ 0, 512, 0, 512, VQB_E_INVALID },
		{ 0, 512, 0, 0, VQB_OK },
		{ 1024, 512, 0, 511, VQB_E_INVALID },
		{ 1024, 512, 0, 513, VQB_E_INVALID },
		{ 1024, 512, 0, UINT64_MAX, VQB_E_INVALID },
		{ 1024, 4096, 8, 4096, VQB_OK },
		{ 1024, 4096, 1016, 4096, VQB_OK },
		{ 1024, 4096, 7, 4096, VQB_E_INVALID },
		{ 1024, 4096, 8, 512, VQB_E_INVALID },
		{ 1023, 4096, 1016, 4096, VQB_E_INVALID },
		{ 1024, 0, 0, 0, VQB_E_INVALID },
		{ 1024, 256, 0, 512, VQB_E_INVALID },
		{ 1024, 1536, 0, 1536, VQB_E_INVALID },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(
			vqb_blk_check(c[i].capacity, (uint32_t)c[i].block, c[i].sector, c[i].bytes),
			c[i].want);
}

/* Shows: BLK-ANY-08 */
static void test_an_identity_of_20_bytes_becomes_a_string(void **state)
{
	char text[21];

	(void)state;
	vqb_blk_id_text("abcdefghijklmnopqrstuvwxyz", text);
	assert_string_equal(text, "abcdefghijklmnopqrst");
	vqb_blk_id_text("short\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", text);
	assert_string_equal(text, "short");
}

/* Shows: SR-DEV-16 */
static void test_the_used_length_stops_at_the_first_gap(void **state)
{
	(void)state;
	assert_int_equal(vqb_blk_written(512, 512), 513);
	assert_int_equal(vqb_blk_written(512, 511), 511);
	assert_int_equal(vqb_blk_written(512, 0), 0);
	assert_int_equal(vqb_blk_written(0, 0), 1);
	assert_int_equal(vqb_blk_written(UINT32_MAX, UINT32_MAX), UINT32_MAX);
	assert_int_equal(vqb_blk_written(UINT64_C(1) << 32, UINT64_C(1) << 32), UINT32_MAX);
	assert_int_equal(vqb_blk_written(UINT32_MAX - 1, UINT32_MAX - 1), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configuration_is_golden_byte_for_byte),
		cmocka_unit_test(test_fields_of_each_feature_are_written_only_with_it),
		cmocka_unit_test(test_writing_refuses_what_does_not_fit),
		cmocka_unit_test(test_reading_gives_what_was_written),
		cmocka_unit_test(test_fields_that_are_not_offered_count_as_absent),
		cmocka_unit_test(test_the_space_need_only_reach_the_fields_in_use),
		cmocka_unit_test(test_seg_max_that_is_missing_zero_huge_or_larger_than_the_ring),
		cmocka_unit_test(test_reading_refuses_a_block_size_that_is_none),
		cmocka_unit_test(test_cache_mode_follows_what_was_negotiated),
		cmocka_unit_test(test_the_offer_holds_only_what_can_be_honoured),
		cmocka_unit_test(test_the_driver_accepts_what_it_knows_and_ro_always),
		cmocka_unit_test(test_the_device_takes_any_subset_with_version_1),
		cmocka_unit_test(test_the_range_check_never_wraps),
		cmocka_unit_test(test_an_identity_of_20_bytes_becomes_a_string),
		cmocka_unit_test(test_the_used_length_stops_at_the_first_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
