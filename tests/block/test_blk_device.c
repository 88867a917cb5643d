/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk as a driver sees it: the offer, and the configuration space by offset and width. */
#include <stdlib.h>
#include <string.h>

#include <vqblk/blk_device.h>

#include "raw_ring.h"
#include "unit.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define V1 VQB_FEATURE(VQB_F_VERSION_1)

static _Alignas(64) uint8_t memory[VQB_BLK_DEVICE_BYTES];

static struct vqb_blk_limits plain_limits(void)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits), .capacity = 2048 };

	return limits;
}

/* What the backend can do; NULL: it isn't known. */
static const struct vqb_backend_caps *caps;

static int32_t try_init(const struct vqb_blk_limits *limits, uint64_t features,
			struct vqb_blk_device **dev)
{
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.features = features,
						.limits = limits,
						.backend = caps };

	memset(memory, 0x5a, sizeof(memory));
	return vqb_blk_device_init(memory, sizeof(memory), &config, dev);
}

static struct vqb_blk_device *init(const struct vqb_blk_limits *limits, uint64_t features)
{
	struct vqb_blk_device *dev = NULL;

	assert_int_equal(try_init(limits, features, &dev), VQB_OK);
	return dev;
}

static uint64_t config_word(const struct vqb_blk_device *dev, uint32_t at, unsigned bytes)
{
	uint8_t word[8];

	vqb_blk_device_read_config(dev, at, word, bytes);
	return peek(word, bytes);
}

/* Shows: BLK-DEV-01 BLK-DEV-24 BF-DEV-05 BF-DEV-08 */
static void test_the_offer_follows_what_there_is_to_say(void **state)
{
	struct vqb_blk_limits limits = plain_limits();
	const uint64_t all = ~UINT64_C(0);
	struct vqb_blk_device *dev = init(&limits, all & ~BIT(RO));

	(void)state;
	assert_int_equal(vqb_blk_device_features(dev) & VQB_TYPE_FEATURES,
			 BIT(FLUSH) | BIT(CONFIG_WCE) | BIT(BLK_SIZE));
	assert_int_equal(vqb_blk_device_features(dev) & ~VQB_TYPE_FEATURES, VQB_RING_FEATURES);

	limits.segment_bytes = 65536;
	limits.segments = 62;
	limits.opt_io = 8;
	limits.queues = 4;
	dev = init(&limits, all);
	assert_int_equal(vqb_blk_device_features(dev) & VQB_TYPE_FEATURES,
			 BIT(SIZE_MAX) | BIT(SEG_MAX) | BIT(RO) | BIT(BLK_SIZE) | BIT(FLUSH) |
				 BIT(TOPOLOGY) | BIT(CONFIG_WCE) | BIT(MQ));

	dev = init(&limits, 0);
	assert_int_equal(vqb_blk_device_features(dev), V1);
	limits.block_size = 4096;
	dev = init(&limits, 0);
	assert_int_equal(vqb_blk_device_features(dev), V1 | BIT(BLK_SIZE));
}

enum { RANGES = VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES | VQB_CAN_SECURE_ERASE };

static uint64_t type_offer(uint32_t can, uint64_t wanted)
{
	struct vqb_backend_caps such = { .max_range = 1 << 20, .can = can };
	struct vqb_blk_limits limits = plain_limits();
	struct vqb_blk_device *dev;

	caps = &such;
	dev = init(&limits, wanted);
	caps = NULL;
	return vqb_blk_device_features(dev) & VQB_TYPE_FEATURES;
}

/* Shows: BLK-DEV-01 BLK-DEV-02 BLK-DEV-23 BLK-DEV-24 BF-DEV-05 */
static void test_the_offer_follows_what_the_backend_can(void **state)
{
	const uint64_t ranges = BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE);
	const uint64_t most = ranges | BIT(LIFETIME) | BIT(FLUSH) | BIT(CONFIG_WCE) | BIT(BLK_SIZE);
	const uint32_t all = VQB_CAN_READ | VQB_CAN_WRITE | VQB_CAN_FLUSH | RANGES | VQB_CAN_UNMAP |
			     VQB_CAN_LIFETIME;
	const struct {
		uint32_t can;
		uint64_t lost;
	} c[] = {
		{ VQB_CAN_DISCARD, BIT(DISCARD) },
		{ VQB_CAN_WRITE_ZEROES, BIT(WRITE_ZEROES) },
		{ VQB_CAN_SECURE_ERASE, BIT(SECURE_ERASE) },
		{ VQB_CAN_LIFETIME, BIT(LIFETIME) },
		{ VQB_CAN_UNMAP, 0 },
		{ VQB_CAN_FLUSH, BIT(FLUSH) | BIT(CONFIG_WCE) },
	};

	(void)state;
	assert_int_equal(type_offer(all, ~BIT(RO)), most);
	assert_int_equal(type_offer(all, ~UINT64_C(0)), most | BIT(RO));
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(type_offer(all & ~c[i].can, ~BIT(RO)), most & ~c[i].lost);
	/* What can't be written can't be discarded either, and is read-only without being asked. */
	assert_int_equal(type_offer(all & ~(uint32_t)VQB_CAN_WRITE, ~BIT(RO)),
			 (most & ~ranges) | BIT(RO));
	assert_int_equal(type_offer(all & ~(uint32_t)VQB_CAN_WRITE, 0), BIT(RO));
	assert_int_equal(type_offer(all, BIT(DISCARD)), BIT(DISCARD));
}

/* Shows: BLK-ANY-04 BLK-DEV-04 BLK-DEV-15 */
static void test_limits_that_are_left_open_follow_the_backend(void **state)
{
	struct vqb_backend_caps such = { .max_range = UINT64_MAX,
					 .can = VQB_CAN_WRITE | RANGES | VQB_CAN_UNMAP,
					 .discard_alignment = 65536,
					 .erase_alignment = 1024 };
	struct vqb_blk_limits limits = plain_limits();
	struct vqb_blk_device *dev;

	(void)state;
	caps = &such;
	limits.block_size = 4096;
	dev = init(&limits, ~UINT64_C(0));
	assert_int_equal(config_word(dev, 36, 4), UINT32_MAX - 7);
	assert_int_equal(config_word(dev, 40, 4), 32);
	assert_int_equal(config_word(dev, 44, 4), 128);
	assert_int_equal(config_word(dev, 48, 4), UINT32_MAX - 7);
	assert_int_equal(config_word(dev, 52, 4), 32);
	assert_int_equal(config_word(dev, 56, 4), 1); /* may unmap, and three bytes of nothing */
	assert_int_equal(config_word(dev, 60, 4), UINT32_MAX - 7);
	assert_int_equal(config_word(dev, 64, 4), 32);
	assert_int_equal(config_word(dev, 68, 4), 8); /* not finer than a block */
	assert_int_equal(config_word(dev, 33, 1), 0);

	such.max_range = 3 * 4096 + 512;
	such.can &= ~(uint32_t)VQB_CAN_UNMAP;
	limits.discard_ranges = 7;
	limits.zeroes_sectors = 5000;
	limits.zeroes_may_unmap = 1;
	limits.erase_alignment = 77;
	dev = init(&limits, ~UINT64_C(0));
	assert_int_equal(config_word(dev, 36, 4), 24);
	assert_int_equal(config_word(dev, 40, 4), 7);
	assert_int_equal(config_word(dev, 48, 4), 5000);
	assert_int_equal(config_word(dev, 56, 1), 0);
	assert_int_equal(config_word(dev, 60, 4), 24);
	assert_int_equal(config_word(dev, 68, 4), 77);

	/* Nothing of less than a block can be offered. */
	such.max_range = 4095;
	limits = plain_limits();
	limits.block_size = 4096;
	dev = init(&limits, BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE));
	assert_int_equal(vqb_blk_device_features(dev) & VQB_TYPE_FEATURES, BIT(BLK_SIZE));
	caps = NULL;
}

/* Shows: BF-DEV-12 BF-ANY-04 BLK-ANY-03 BLK-ANY-01 */
static void test_the_space_is_read_by_offset_and_width(void **state)
{
	struct vqb_blk_limits limits = plain_limits();
	struct vqb_blk_device *dev;
	uint8_t bytes[100];

	(void)state;
	limits.capacity = UINT64_C(0x0001020304050607);
	limits.segments = 62;
	limits.queues = 3;
	dev = init(&limits, BIT(SEG_MAX) | BIT(MQ) | BIT(BLK_SIZE));
	assert_int_equal(vqb_blk_device_capacity(dev), UINT64_C(0x0001020304050607));
	assert_int_equal(config_word(dev, 0, 8), UINT64_C(0x0001020304050607));
	assert_int_equal(config_word(dev, 0, 4), 0x04050607);
	assert_int_equal(config_word(dev, 4, 4), 0x00010203);
	assert_int_equal(config_word(dev, 3, 1), 4);
	assert_int_equal(config_word(dev, 8, 4), 0);
	assert_int_equal(config_word(dev, 12, 4), 62);
	assert_int_equal(config_word(dev, 20, 4), 512);
	assert_int_equal(config_word(dev, 34, 2), 3);
	assert_int_equal(config_word(dev, 92, 8), 0);
	assert_int_equal(config_word(dev, 96, 4), 0);
	assert_int_equal(config_word(dev, UINT32_MAX, 8), 0);
	memset(bytes, 0x5a, sizeof(bytes));
	vqb_blk_device_read_config(dev, 0, bytes, sizeof(bytes));
	assert_int_equal(peek(bytes + 12, 4), 62);
	assert_int_equal(peek(bytes + 92, 8), 0);
}

/* Shows: BF-DEV-07 BF-DEV-09 */
static void test_accepting_is_checked_against_the_offer(void **state)
{
	struct vqb_blk_limits limits = plain_limits();
	struct vqb_blk_device *dev = init(&limits, BIT(FLUSH) | BIT(RO));

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(vqb_blk_device_accept(dev, V1 | BIT(FLUSH)), VQB_OK);
		assert_int_equal(vqb_blk_device_accept(dev, V1), VQB_OK);
		assert_int_equal(vqb_blk_device_accept(dev, BIT(FLUSH)), VQB_E_INVALID);
		assert_int_equal(vqb_blk_device_accept(dev, V1 | BIT(MQ)), VQB_E_INVALID);
	}
}

static void test_init_refuses_what_makes_no_sense(void **state)
{
	struct vqb_blk_limits limits = plain_limits();
	struct vqb_blk_device_config config = { .struct_size = sizeof(config), .limits = &limits };
	struct vqb_blk_device *dev;

	(void)state;
	limits.block_size = 1000;
	assert_int_equal(try_init(&limits, 0, &dev), VQB_E_INVALID);
	limits = plain_limits();
	limits.capacity = UINT64_C(1) << 55;
	assert_int_equal(try_init(&limits, 0, &dev), VQB_E_INVALID);
	limits = plain_limits();
	limits.queues = 65536;
	assert_int_equal(try_init(&limits, BIT(MQ), &dev), VQB_E_INVALID);
	limits = plain_limits();
	/* Found before anything is read of limits that may be shorter, or written to the memory. */
	limits.struct_size = 0;
	memset(memory, 0x5a, sizeof(memory));
	assert_int_equal(try_init(&limits, 0, &dev), VQB_E_INVALID);
	assert_int_equal(memory[0], 0x5a);
	limits = plain_limits();
	assert_int_equal(vqb_blk_device_init(memory, vqb_blk_device_size() - 1, &config, &dev),
			 VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_device_init(memory + 1, 300, &config, &dev), VQB_E_INVALID);
	assert_int_equal(vqb_blk_device_init(memory, vqb_blk_device_size(), &config, &dev), VQB_OK);
	config.struct_size = 0;
	assert_int_equal(vqb_blk_device_init(memory, sizeof(memory), &config, &dev), VQB_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_offer_follows_what_there_is_to_say),
		cmocka_unit_test(test_the_offer_follows_what_the_backend_can),
		cmocka_unit_test(test_limits_that_are_left_open_follow_the_backend),
		cmocka_unit_test(test_the_space_is_read_by_offset_and_width),
		cmocka_unit_test(test_accepting_is_checked_against_the_offer),
		cmocka_unit_test(test_init_refuses_what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
