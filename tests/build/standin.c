/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.c: sees that the stand-in for cmocka fails what is to fail. Each case is a group of one
 * test; the messages it prints on the way are part of the show. Plain checks, as the stand-in
 * can't vouch for itself.
 */
#include "../support/standin.h"

#include <stdio.h>

static int torn_down;

static int set_up(void **state)
{
	static int value = 7;

	*state = &value;
	return 0;
}

static int set_up_fails(void **state)
{
	(void)state;
	return -1;
}

static int tear_down(void **state)
{
	(void)state;
	torn_down++;
	return 0;
}

static int tear_down_asserts(void **state)
{
	(void)state;
	assert_true(torn_down < 0);
	return 0;
}

static void test_all_hold(void **state)
{
	int a = 1;

	(void)state;
	assert_true(a == 1);
	assert_false(a == 2);
	assert_null(NULL);
	assert_non_null(&a);
	assert_ptr_equal(&a, &a);
	assert_ptr_not_equal(&a, NULL);
	assert_int_equal(a, 1);
	assert_int_equal(-a, -1);
	assert_int_not_equal(a, 2);
	assert_in_range(a, 1, 1);
	assert_string_equal("a", "a");
	assert_string_not_equal("a", "b");
	assert_memory_equal("abc", "abd", 2);
	assert_memory_not_equal("abc", "abd", 3);
}

static void test_state_is_that_of_setup(void **state)
{
	assert_int_equal(*(int *)*state, 7);
}

static void test_skips(void **state)
{
	(void)state;
	skip();
}

/* Tests of one assertion that does not hold. */
#define FALSE_ONE(name, assertion)                                                                 \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		assertion;                                                                         \
	}
FALSE_ONE(false_true, assert_true(torn_down < 0))
FALSE_ONE(false_false, assert_false(torn_down >= 0))
FALSE_ONE(false_null, assert_null(state))
FALSE_ONE(false_non_null, assert_non_null(NULL))
FALSE_ONE(false_ptr_equal, assert_ptr_equal(state, NULL))
FALSE_ONE(false_ptr_not_equal, assert_ptr_not_equal(state, state))
FALSE_ONE(false_int_equal, assert_int_equal(1, UINT64_C(0x100000001)))
FALSE_ONE(false_int_not_equal, assert_int_not_equal(1, 1))
FALSE_ONE(false_low, assert_in_range(1, 2, 3))
FALSE_ONE(false_high, assert_in_range(4, 2, 3))
FALSE_ONE(false_string_equal, assert_string_equal("a", "ab"))
FALSE_ONE(false_string_not_equal, assert_string_not_equal("a", "a"))
FALSE_ONE(false_memory_equal, assert_memory_equal("abc", "abd", 3))
FALSE_ONE(false_memory_not_equal, assert_memory_not_equal("abc", "abd", 2))
FALSE_ONE(false_fail, fail())
FALSE_ONE(false_fail_msg, fail_msg("%d", 1))

static int wrong;

/* A group of `test` alone ends with so many `failed`. */
static void group_of(struct CMUnitTest test, int failed)
{
	struct CMUnitTest tests[] = { test };

	if (cmocka_run_group_tests_name(test.name, tests, NULL, NULL) != failed) {
		printf("WRONG: %s should count %d as failed\n", test.name, failed);
		wrong++;
	}
}

int main(void)
{
	static const struct CMUnitTest good[] = {
		cmocka_unit_test(test_all_hold),
		cmocka_unit_test_setup_teardown(test_state_is_that_of_setup, set_up, tear_down),
		cmocka_unit_test(test_skips),
	};
	static const struct CMUnitTest bad[] = {
		cmocka_unit_test(false_true),
		cmocka_unit_test(false_false),
		cmocka_unit_test(false_null),
		cmocka_unit_test(false_non_null),
		cmocka_unit_test(false_ptr_equal),
		cmocka_unit_test(false_ptr_not_equal),
		cmocka_unit_test(false_int_equal),
		cmocka_unit_test(false_int_not_equal),
		cmocka_unit_test(false_low),
		cmocka_unit_test(false_high),
		cmocka_unit_test(false_string_equal),
		cmocka_unit_test(false_string_not_equal),
		cmocka_unit_test(false_memory_equal),
		cmocka_unit_test(false_memory_not_equal),
		cmocka_unit_test(false_fail),
		cmocka_unit_test(false_fail_msg),
		cmocka_unit_test_setup_teardown(test_all_hold, set_up_fails, NULL),
		cmocka_unit_test_setup_teardown(test_all_hold, NULL, tear_down_asserts),
		cmocka_unit_test_setup_teardown(false_true, NULL, tear_down),
	};
	int count = (int)(sizeof(bad) / sizeof(bad[0]));

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		group_of(good[i], 0);
	for (int i = 0; i < count; i++)
		group_of(bad[i], 1);
	wrong += cmocka_run_group_tests(good, set_up, tear_down) != 0;
	wrong += cmocka_run_group_tests(bad, NULL, NULL) != count;
	wrong += cmocka_run_group_tests(good, set_up_fails, NULL) == 0;
	wrong += cmocka_run_group_tests(good, NULL, tear_down_asserts) == 0;
	wrong += torn_down != 6;
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
