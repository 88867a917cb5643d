/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency histogram: how exact it is, at both ends of its range and in between. */
#include "unit.h"

#include "examples/loopback/histogram.h"

static void test_nothing_added_is_zero(void **state)
{
	static struct histogram h;

	(void)state;
	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	assert_int_equal(histogram_quantile(&h, 1), 0);
}

static void test_small_values_are_exact(void **state)
{
	static struct histogram h;
	uint64_t i;

	(void)state;
	for (i = 0; i < 64; i++)
		histogram_add(&h, i);
	assert_int_equal(histogram_quantile(&h, 0.5), 31);
	assert_int_equal(histogram_quantile(&h, 1.0 / 64), 0);
	assert_int_equal(histogram_quantile(&h, 1), 63);
}

static void test_one_value_is_every_quantile(void **state)
{
	static struct histogram h;

	(void)state;
	histogram_add(&h, 123456789);
	assert_int_equal(histogram_quantile(&h, 0), 123456789);
	assert_int_equal(histogram_quantile(&h, 0.5), 123456789);
	assert_int_equal(histogram_quantile(&h, 0.999), 123456789);
	assert_int_equal(h.max, 123456789);
}

/* Each power of two, and its neighbours: never less than the value, and 1/32 more at most. */
static void test_large_values_are_close(void **state)
{
	uint32_t bit;
	int step;

	(void)state;
	for (bit = 6; bit < 64; bit++) {
		for (step = -1; step <= 1; step++) {
			static struct histogram empty;
			struct histogram h = empty;
			uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)step, found;

			histogram_add(&h, value);
			histogram_add(&h, UINT64_MAX);
			found = histogram_quantile(&h, 0.5);
			assert_true(found >= value);
			assert_true(found - value <= value / 32);
			assert_true(histogram_quantile(&h, 1) == UINT64_MAX);
		}
	}
}

static void test_quantiles_of_a_ramp(void **state)
{
	static struct histogram h;
	uint64_t i, found;

	(void)state;
	for (i = 1; i <= 100000; i++)
		histogram_add(&h, i);
	found = histogram_quantile(&h, 0.5);
	assert_in_range(found, 50000, 51600);
	found = histogram_quantile(&h, 0.99);
	assert_in_range(found, 99000, 100000);
	assert_int_equal(histogram_quantile(&h, 1), 100000);
}

static void test_merge_adds_up(void **state)
{
	static struct histogram a, b;

	(void)state;
	histogram_add(&a, 10);
	histogram_add(&a, 20);
	histogram_add(&b, 50);
	histogram_merge(&a, &b);
	assert_int_equal(a.count, 3);
	assert_int_equal(a.max, 50);
	assert_int_equal(histogram_quantile(&a, 0.5), 20);
	assert_int_equal(histogram_quantile(&a, 0.9), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_added_is_zero),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_one_value_is_every_quantile),
		cmocka_unit_test(test_large_values_are_close),
		cmocka_unit_test(test_quantiles_of_a_ramp),
		cmocka_unit_test(test_merge_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
