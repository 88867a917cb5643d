/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_notification.c: the value that is written to the device's notification register. */
#include "driver_bench.h"

#define DATA_MODE (FLAGS_MODE | UINT64_C(1) << 38)

static void open_number(struct bench *b, uint32_t index, uint64_t features)
{
	bench_configure(b, 8, features, 0, 0, VQB_INDIRECT_NEVER);
	b->config.ring.index = index;
	bench_start(b);
}

/* Shows: BF-DRV-12 */
static void test_without_the_feature_it_is_the_queues_number(void **state)
{
	static const uint32_t number[] = { 0, 1, 0x1234, 0xffff };
	struct bench b;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		open_number(&b, number[i], FLAGS_MODE);
		assert_int_equal(vqb_driver_notification(b.drv), number[i]);
		bench_rounds(&b, 300);
		assert_int_equal(vqb_driver_notification(b.drv), number[i]);
		bench_close(&b);
	}
}

/* Shows: BF-DRV-13 */
static void test_with_the_feature_the_index_lies_above_it(void **state)
{
	struct bench b;

	(void)state;
	open_number(&b, 0x1234, DATA_MODE);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00001234);
	bench_round(&b);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00011234);
	bench_rounds(&b, 0x7fff);
	assert_int_equal(vqb_driver_notification(b.drv), 0x80001234); /* bit 31 is the index's 15 */
	bench_rounds(&b, 0x7fff);
	assert_int_equal(vqb_driver_notification(b.drv), 0xffff1234);
	bench_round(&b);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00001234);
	bench_round(&b);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00011234);
	bench_close(&b);
}

/* It is the index that the device can see, not that of what was added since. Shows: BF-DRV-13 */
static void test_the_index_is_the_one_exposed(void **state)
{
	struct bench b;

	(void)state;
	open_number(&b, 3, DATA_MODE);
	bench_add(&b, 1, 1, 0);
	bench_add(&b, 2, 1, 0);
	assert_int_equal(vqb_driver_notification(b.drv), 3);
	vqb_driver_expose(b.drv);
	assert_int_equal(raw_avail_idx(&b.raw), 2);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00020003);
	bench_close(&b);
}

/* Shows: BF-DRV-14 */
static void test_again_with_nothing_new_it_is_the_same(void **state)
{
	struct bench b;

	(void)state;
	open_number(&b, 3, DATA_MODE);
	bench_add(&b, 1, 1, 0);
	vqb_driver_publish(b.drv);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vqb_driver_notification(b.drv), 0x00010003);
	bench_serve(&b);
	bench_reap(&b); /* only the available index counts */
	assert_int_equal(vqb_driver_notification(b.drv), 0x00010003);
	bench_close(&b);
}

/* A queue goes on under the number and the features of the ring it was given last. */
static void test_a_reset_brings_its_own_number(void **state)
{
	struct vqb_ring other;
	struct bench b;

	(void)state;
	open_number(&b, 3, DATA_MODE);
	bench_round(&b);
	other = b.config.ring;
	other.index = 9;
	other.features = FLAGS_MODE;
	assert_int_equal(vqb_driver_reset(b.drv, &other), VQB_OK);
	bench_attach(&b, &other);
	bench_round(&b);
	assert_int_equal(vqb_driver_notification(b.drv), 9);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &other);
	bench_rounds(&b, 5);
	assert_int_equal(vqb_driver_notification(b.drv), 0x00050003);
	bench_close(&b);
}

/* The number has 16 bits; one of more would reach into the index. Shows: BF-ANY-05 */
static void test_a_queues_number_has_16_bits(void **state)
{
	struct bench b;

	(void)state;
	open_number(&b, 0xffff, DATA_MODE);
	b.config.ring.index = 0x10000;
	assert_int_equal(vqb_driver_size(&b.config), 0);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_E_INVALID);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_the_feature_it_is_the_queues_number),
		cmocka_unit_test(test_with_the_feature_the_index_lies_above_it),
		cmocka_unit_test(test_the_index_is_the_one_exposed),
		cmocka_unit_test(test_again_with_nothing_new_it_is_the_same),
		cmocka_unit_test(test_a_reset_brings_its_own_number),
		cmocka_unit_test(test_a_queues_number_has_16_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
