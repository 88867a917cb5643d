/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_features_legacy.c: what is offered to and accepted from a peer from before VERSION_1, and
 * that a ring with those features works. Bits are numbers of the format here.
 */
#include "driver_bench.h"

#include <vqblk/device.h>

#define BIT(n) (UINT64_C(1) << (n))
#define ALL UINT64_MAX
#define TYPE UINT64_C(0xffffff)

static const struct vqb_feature_rule rule[] = { { 11, 9 }, { 15, 14 }, { 14, 13 } };

static uint64_t mask(uint64_t available, uint64_t wanted)
{
	return vqb_features_mask_legacy(available, wanted, rule, 3);
}

static int32_t check(uint64_t offered, uint64_t accepted)
{
	return vqb_features_check_legacy(offered, accepted, rule, 3);
}

/* Shows: LEG-DEV-06 LEG-ANY-04 LEG-ANY-03 */
static void test_a_legacy_offer_has_these_bits(void **state)
{
	(void)state;
	assert_true(mask(ALL, ALL) == (BIT(27) | BIT(28) | BIT(29) | TYPE));
	assert_true(VQB_LEGACY_FEATURES == (BIT(27) | BIT(28) | BIT(29)));
	assert_int_equal(VQB_F_NOTIFY_ON_EMPTY, 24);
	assert_int_equal(VQB_F_ANY_LAYOUT, 27);
}

/* On offer it is taken, wanted or not; not on offer it is not. Shows: LEG-DEV-06 LEG-DRV-03 */
static void test_any_layout_is_always_taken(void **state)
{
	(void)state;
	assert_true(mask(VQB_LEGACY_FEATURES, 0) == BIT(27));
	assert_true(mask(BIT(27) | BIT(29), BIT(29)) == (BIT(27) | BIT(29)));
	assert_true(mask(BIT(28) | BIT(29), ALL) == (BIT(28) | BIT(29)));
}

/* The modern interface knows neither of the two legacy bits. Shows: LEG-ANY-01 BF-DRV-08 */
static void test_the_two_interfaces_do_not_mix(void **state)
{
	uint64_t modern = vqb_features_mask(ALL, ALL, rule, 3);

	(void)state;
	assert_true((modern & (BIT(24) | BIT(27) | BIT(30))) == 0);
	assert_true((modern & BIT(32)) != 0);
	assert_true((mask(ALL, ALL) >> 32) == 0);
	assert_int_equal(vqb_features_check(modern, mask(modern, ALL), rule, 3), VQB_E_INVALID);
	assert_int_equal(check(ALL, modern), VQB_E_INVALID);
}

/* A device that offers no VERSION_1: the modern mask says so, and the other one goes on. */
/* Shows: LEG-DRV-01 */
static void test_a_legacy_device_is_known_by_what_it_offers(void **state)
{
	const uint64_t offer = BIT(9) | BIT(24) | BIT(27) | BIT(28) | BIT(30);

	(void)state;
	assert_true((vqb_features_mask(offer, ALL, rule, 3) & BIT(32)) == 0);
	assert_true(mask(offer, BIT(9) | BIT(28)) == (BIT(9) | BIT(27) | BIT(28)));
}

/* Shows: LEG-DEV-01 */
static void test_a_legacy_driver_is_known_by_what_it_accepts(void **state)
{
	const uint64_t modern = vqb_features_mask(ALL, VQB_RING_DEFAULTS | BIT(9), rule, 3);
	const uint64_t offer = modern | mask(ALL, BIT(9) | VQB_LEGACY_FEATURES);

	(void)state;
	assert_int_equal(vqb_features_check(offer, BIT(9) | BIT(29), rule, 3), VQB_E_INVALID);
	assert_int_equal(check(offer, BIT(9) | BIT(29)), VQB_OK);
	assert_int_equal(check(offer, BIT(9) | BIT(27)), VQB_OK);
	assert_int_equal(check(offer, 0), VQB_OK);
	assert_int_equal(check(offer, BIT(32) | BIT(9)), VQB_E_INVALID);
	assert_int_equal(check(offer, BIT(33)), VQB_E_INVALID);
}

static void test_prerequisites_count_here_too(void **state)
{
	(void)state;
	assert_true(mask(ALL, BIT(11)) == BIT(27));
	assert_true(mask(ALL, BIT(11) | BIT(9)) == (BIT(27) | BIT(11) | BIT(9)));
	assert_true(mask(~BIT(13), BIT(15) | BIT(14) | BIT(13)) == BIT(27));
	assert_int_equal(check(ALL, BIT(11)), VQB_E_INVALID);
	assert_int_equal(check(ALL, BIT(11) | BIT(9)), VQB_OK);
	assert_int_equal(check(BIT(9), BIT(9) | BIT(5)), VQB_E_INVALID);
}

/* The features of a legacy queue fit its ring; under VERSION_1 ANY_LAYOUT has no meaning. */
/* Shows: LEG-ANY-03 LEG-ANY-08 */
static void test_a_ring_takes_them(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t flags = 0; flags < 2; flags++) {
		bench_configure(&b, 8, mask(ALL, ALL), 4, 4, VQB_INDIRECT_ALWAYS);
		b.config.ring.flags = flags;
		raw_big = (int)flags;
		bench_start(&b);
		bench_rounds(&b, 20);
		raw_big = 0;
		b.config.ring.flags = 0;
		b.config.ring.features = BIT(24);
		assert_int_equal(vqb_driver_size(&b.config), 0);
		b.config.ring.features = BIT(27);
		assert_int_not_equal(vqb_driver_size(&b.config), 0);
		b.config.ring.features = BIT(27) | BIT(32);
		assert_int_equal(vqb_driver_size(&b.config), 0);
		bench_close(&b);
	}
}

static void test_a_devices_ring_takes_them(void **state)
{
	static uint8_t memory[8192];
	struct vqb_extent all = { 0, sizeof(memory), memory, VQB_READ | VQB_WRITE, 0 };
	struct vqb_memory map = { .struct_size = sizeof(map), .count = 1, .sorted = &all };
	struct vqb_device_config config = { .struct_size = sizeof(config), .memory = &map };
	const uint64_t known = VQB_LEGACY_FEATURES | VQB_RING_FEATURES | VQB_TYPE_FEATURES;

	(void)state;
	config.ring = (struct vqb_ring_at){ .size = 8, .features = mask(ALL, ALL) };
	assert_int_equal(vqb_ring_place_at(&config.ring, 0, 4096), VQB_OK);
	assert_int_not_equal(vqb_device_size(&config), 0);
	for (unsigned bit = 0; bit < 64; bit++) {
		config.ring.features = BIT(bit);
		assert_int_equal(vqb_device_size(&config) != 0, known >> bit & 1);
	}
	config.ring.features = BIT(27) | BIT(32);
	assert_int_equal(vqb_device_size(&config), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_legacy_offer_has_these_bits),
		cmocka_unit_test(test_any_layout_is_always_taken),
		cmocka_unit_test(test_the_two_interfaces_do_not_mix),
		cmocka_unit_test(test_a_legacy_device_is_known_by_what_it_offers),
		cmocka_unit_test(test_a_legacy_driver_is_known_by_what_it_accepts),
		cmocka_unit_test(test_prerequisites_count_here_too),
		cmocka_unit_test(test_a_ring_takes_them),
		cmocka_unit_test(test_a_devices_ring_takes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
