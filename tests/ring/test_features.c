/* SPDX-License-Identifier: BSD-3-Clause */
/* test_features.c: what may be offered and accepted. Bits are numbers of the format here. */
#include <stdint.h>

#include <vqblk/ring.h>

#include "unit.h"

#define BIT(n) (UINT64_C(1) << (n))
#define ALL UINT64_MAX
#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

/* As a block device has it: 11 needs 9; the rest is made up to have a chain 15 -> 14 -> 13. */
static const struct vqb_feature_rule rules[] = { { 11, 9 }, { 15, 14 }, { 14, 13 } };
/* The same the other way round: the result may not depend on the order of the table. */
static const struct vqb_feature_rule reversed[] = { { 14, 13 }, { 15, 14 }, { 11, 9 } };

static uint64_t mask(uint64_t available, uint64_t wanted)
{
	uint64_t result = vqb_features_mask(available, wanted, rules, COUNT(rules));

	assert_true(vqb_features_mask(available, wanted, reversed, COUNT(reversed)) == result);
	return result;
}

static int32_t check(uint64_t offered, uint64_t accepted)
{
	int32_t status = vqb_features_check(offered, accepted, rules, COUNT(rules));

	assert_int_equal(vqb_features_check(offered, accepted, reversed, COUNT(reversed)), status);
	return status;
}

static uint64_t random_bits(uint64_t *seed)
{
	uint64_t v = 0;

	for (int i = 0; i < 4; i++) {
		*seed = *seed * UINT64_C(6364136223846793005) + 1;
		v = v << 16 | *seed >> 48;
	}
	return v;
}

static int has(uint64_t set, unsigned bit)
{
	return (set & BIT(bit)) != 0;
}

/* Shows: BF-DRV-05 BF-DRV-06 BF-DRV-40 BF-DEV-05 */
static void test_random_sets_keep_the_rules(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t offer = random_bits(&seed), wanted = random_bits(&seed);
		uint64_t got = mask(offer, wanted);

		assert_true((got & ~offer) == 0);
		assert_true((got & ~(wanted | BIT(32))) == 0);
		assert_int_equal(has(got, 32), has(offer, 32));
		assert_true(!has(got, 11) || has(got, 9));
		assert_true(!has(got, 15) || has(got, 14));
		assert_true(!has(got, 14) || has(got, 13));
	}
}

/* Shows: BF-DRV-05 */
static void test_a_bit_that_is_not_offered_is_not_accepted(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++)
		assert_false(has(mask(~BIT(bit), ALL), bit));
}

/* Shows: BF-DRV-06 BF-DEV-05 */
static void test_a_bit_goes_with_its_prerequisite(void **state)
{
	(void)state;
	assert_true(mask(ALL, BIT(11) | BIT(9)) == (BIT(32) | BIT(11) | BIT(9)));
	assert_true(mask(ALL, BIT(11)) == BIT(32));
	assert_true(mask(~BIT(9), BIT(11) | BIT(9)) == BIT(32));
	assert_true(mask(ALL, BIT(15) | BIT(14) | BIT(13)) ==
		    (BIT(32) | BIT(15) | BIT(14) | BIT(13)));
}

/* Shows: BF-DRV-06 BF-DEV-05 */
static void test_a_lost_prerequisite_takes_the_whole_chain_with_it(void **state)
{
	(void)state;
	assert_true(mask(~BIT(13), BIT(15) | BIT(14) | BIT(13)) == BIT(32));
	assert_true(mask(ALL, BIT(15) | BIT(14)) == BIT(32));
}

static void test_two_bits_may_need_each_other(void **state)
{
	static const struct vqb_feature_rule both[] = { { 1, 2 }, { 2, 1 } };

	(void)state;
	assert_true(vqb_features_mask(ALL, BIT(1) | BIT(2), both, 2) ==
		    (BIT(32) | BIT(1) | BIT(2)));
	assert_true(vqb_features_mask(ALL, BIT(1), both, 2) == BIT(32));
}

static void test_a_bit_may_have_two_prerequisites(void **state)
{
	static const struct vqb_feature_rule two[] = { { 3, 1 }, { 3, 2 } };

	(void)state;
	assert_true(vqb_features_mask(ALL, BIT(1) | BIT(2) | BIT(3), two, 2) ==
		    (BIT(32) | BIT(1) | BIT(2) | BIT(3)));
	assert_true(vqb_features_mask(ALL, BIT(1) | BIT(3), two, 2) == (BIT(32) | BIT(1)));
	assert_true(vqb_features_mask(ALL, BIT(2) | BIT(3), two, 2) == (BIT(32) | BIT(2)));
}

/* Shows: BF-DRV-40 BF-DEV-26 */
static void test_version_1_is_taken_whether_wanted_or_not(void **state)
{
	(void)state;
	assert_true(mask(ALL, 0) == BIT(32));
	assert_true(mask(BIT(32), 0) == BIT(32));
	assert_true(mask(~BIT(32), ALL) != 0);
	assert_false(has(mask(~BIT(32), ALL), 32));
}

/* Shows: BF-DRV-07 BF-DRV-08 BF-DRV-11 BF-DRV-48 BF-DEV-08 */
static void test_what_no_queue_of_ours_honours_is_neither_offered_nor_accepted(void **state)
{
	const uint64_t ours =
		BIT(28) | BIT(29) | BIT(32) | BIT(33) | BIT(35) | BIT(36) | BIT(38) | BIT(40);

	(void)state;
	for (unsigned bit = 24; bit < 50; bit++)
		assert_int_equal(has(mask(ALL, ALL), bit), has(ours, bit));
	assert_true(VQB_RING_FEATURES == ours);
}

/* A device that offers it needs it; it is no default since no device should for nothing. */
/* Shows: BF-DRV-46 */
static void test_order_platform_is_accepted_where_it_is_offered(void **state)
{
	const uint64_t wanted = VQB_RING_DEFAULTS | BIT(36);

	(void)state;
	assert_true(VQB_RING_DEFAULTS == (BIT(28) | BIT(29) | BIT(32)));
	assert_true(has(mask(BIT(32) | BIT(36), wanted), 36));
	assert_false(has(mask(BIT(32), wanted), 36));
	assert_false(has(mask(ALL, VQB_RING_DEFAULTS), 36));
	assert_int_equal(check(BIT(32) | BIT(36), BIT(32) | BIT(36)), VQB_OK);
	assert_int_equal(check(BIT(32) | BIT(36), BIT(32)), VQB_OK);
}

/* Shows: BF-DRV-07 BF-DRV-11 */
static void test_the_range_of_the_type_is_left_to_the_type(void **state)
{
	const uint64_t type = UINT64_C(0xfffc000000ffffff);

	(void)state;
	assert_true(VQB_TYPE_FEATURES == type);
	assert_true((mask(ALL, ALL) & type) == type);
	assert_true((mask(ALL, ~type) & type) == 0);
}

/* Shows: BF-DRV-08 BF-DRV-11 */
static void test_unknown_offers_are_disregarded_and_do_no_harm(void **state)
{
	const uint64_t offer = BIT(32) | BIT(29) | BIT(9) | BIT(20) | BIT(44) | BIT(60);

	(void)state;
	assert_true(mask(offer, BIT(29) | BIT(9)) == (BIT(32) | BIT(29) | BIT(9)));
	assert_false(has(mask(offer, ALL), 44));
}

static void test_no_rules_are_no_rules(void **state)
{
	(void)state;
	assert_true(vqb_features_mask(ALL, BIT(11), NULL, 0) == (BIT(32) | BIT(11)));
	assert_int_equal(vqb_features_check(ALL, BIT(32) | BIT(11), NULL, 0), VQB_OK);
}

/* Shows: K12 */
static void test_features_are_bit_numbers_and_the_mask_is_made_of_them(void **state)
{
	(void)state;
	assert_int_equal(VQB_F_INDIRECT_DESC, 28);
	assert_int_equal(VQB_F_EVENT_IDX, 29);
	assert_int_equal(VQB_F_VERSION_1, 32);
	assert_int_equal(VQB_F_ACCESS_PLATFORM, 33);
	assert_int_equal(VQB_F_RING_PACKED, 34);
	assert_int_equal(VQB_F_IN_ORDER, 35);
	assert_int_equal(VQB_F_ORDER_PLATFORM, 36);
	assert_int_equal(VQB_F_SR_IOV, 37);
	assert_int_equal(VQB_F_NOTIFICATION_DATA, 38);
	assert_int_equal(VQB_F_NOTIF_CONFIG_DATA, 39);
	assert_int_equal(VQB_F_RING_RESET, 40);
	assert_true(VQB_FEATURE(VQB_F_EVENT_IDX) == UINT64_C(0x20000000));
	assert_true(VQB_FEATURE(VQB_F_RING_RESET) == UINT64_C(0x10000000000));
}

/* Shows: BF-DEV-06 BF-DEV-07 */
static void test_every_subset_that_keeps_the_rules_is_accepted(void **state)
{
	static const unsigned bits[] = { 5, 6, 9, 11, 13, 14, 15, 28, 29, 40 };
	uint64_t offer = BIT(32);
	unsigned accepted = 0;

	(void)state;
	for (unsigned i = 0; i < COUNT(bits); i++)
		offer |= BIT(bits[i]);
	for (unsigned subset = 0; subset < 1u << COUNT(bits); subset++) {
		uint64_t set = BIT(32);
		int good;

		for (unsigned i = 0; i < COUNT(bits); i++)
			set |= subset >> i & 1 ? BIT(bits[i]) : 0;
		good = (has(set, 9) || !has(set, 11)) && (has(set, 14) || !has(set, 15)) &&
		       (has(set, 13) || !has(set, 14));
		assert_int_equal(check(offer, set), good ? VQB_OK : VQB_E_INVALID);
		accepted += (unsigned)good;
	}
	/* 3 of 4 for {9, 11}, 4 of 8 for {13, 14, 15}, all of the other 32. */
	assert_int_equal(accepted, 3 * 4 * 32);
}

/* Shows: BF-DEV-07 */
static void test_a_bit_that_was_not_offered_is_refused(void **state)
{
	(void)state;
	assert_int_equal(check(BIT(32) | BIT(9), BIT(32) | BIT(9)), VQB_OK);
	for (unsigned bit = 0; bit < 64; bit++)
		if (bit != 32 && bit != 9)
			assert_int_equal(check(BIT(32) | BIT(9), BIT(32) | BIT(bit)),
					 VQB_E_INVALID);
}

/* Shows: BF-DEV-27 */
static void test_a_driver_without_version_1_is_refused(void **state)
{
	(void)state;
	assert_int_equal(check(BIT(32) | BIT(9), BIT(9)), VQB_E_INVALID);
	assert_int_equal(check(BIT(32), 0), VQB_E_INVALID);
	assert_int_equal(check(BIT(9), BIT(9)), VQB_E_INVALID);
}

/* Shows: BF-DEV-05 BF-DEV-06 BF-DEV-26 */
static void test_what_mask_gives_passes_check(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint64_t offer = mask(ALL, random_bits(&seed));

		assert_true(has(offer, 32));
		assert_int_equal(check(offer, mask(offer, random_bits(&seed))), VQB_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_sets_keep_the_rules),
		cmocka_unit_test(test_a_bit_that_is_not_offered_is_not_accepted),
		cmocka_unit_test(test_a_bit_goes_with_its_prerequisite),
		cmocka_unit_test(test_a_lost_prerequisite_takes_the_whole_chain_with_it),
		cmocka_unit_test(test_two_bits_may_need_each_other),
		cmocka_unit_test(test_a_bit_may_have_two_prerequisites),
		cmocka_unit_test(test_version_1_is_taken_whether_wanted_or_not),
		cmocka_unit_test(
			test_what_no_queue_of_ours_honours_is_neither_offered_nor_accepted),
		cmocka_unit_test(test_order_platform_is_accepted_where_it_is_offered),
		cmocka_unit_test(test_the_range_of_the_type_is_left_to_the_type),
		cmocka_unit_test(test_unknown_offers_are_disregarded_and_do_no_harm),
		cmocka_unit_test(test_no_rules_are_no_rules),
		cmocka_unit_test(test_features_are_bit_numbers_and_the_mask_is_made_of_them),
		cmocka_unit_test(test_every_subset_that_keeps_the_rules_is_accepted),
		cmocka_unit_test(test_a_bit_that_was_not_offered_is_refused),
		cmocka_unit_test(test_a_driver_without_version_1_is_refused),
		cmocka_unit_test(test_what_mask_gives_passes_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
