/* SPDX-License-Identifier: BSD-3-Clause */
/* test_status.c: the codes are stable numbers, and each has a name. */
#include <stdint.h>
#include <string.h>

#include <vqblk/device.h>
#include <vqblk/status.h>

#include "unit.h"

static const struct {
	int32_t number, status;
	const char *name;
} rows[] = {
	{ 0, VQB_OK, "VQB_OK" },
	{ -1, VQB_E_INVALID, "VQB_E_INVALID" },
	{ -2, VQB_E_NOSPC, "VQB_E_NOSPC" },
	{ -3, VQB_E_TOOBIG, "VQB_E_TOOBIG" },
	{ -4, VQB_E_BUSY, "VQB_E_BUSY" },
	{ -5, VQB_E_STALE, "VQB_E_STALE" },
	{ -6, VQB_E_FAULT, "VQB_E_FAULT" },
	{ -7, VQB_E_BAD_CHAIN, "VQB_E_BAD_CHAIN" },
	{ -8, VQB_E_BROKEN, "VQB_E_BROKEN" },
	{ -9, VQB_E_LATE, "VQB_E_LATE" },
	{ -10, VQB_E_AGAIN, "VQB_E_AGAIN" },
	{ -11, VQB_E_IO, "VQB_E_IO" },
	{ -12, VQB_E_UNSUPP, "VQB_E_UNSUPP" },
	{ -13, VQB_E_NEEDS_RESET, "VQB_E_NEEDS_RESET" },
	{ -14, VQB_E_CANCELLED, "VQB_E_CANCELLED" },
};

static void test_codes_are_stable_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rows[i].status, rows[i].number);
}

static void test_each_code_has_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(vqb_status_name(rows[i].number), rows[i].name);
}

static void test_other_numbers_have_the_name_of_none(void **state)
{
	static const int32_t others[] = { 1, 2, -15, -256, 1000, INT32_MAX, INT32_MIN };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_string_equal(vqb_status_name(others[i]), "VQB_E_?");
}

static void test_each_rule_has_its_name(void **state)
{
	(void)state;
	assert_string_equal(vqb_rule_name(VQB_RULE_NONE), "VQB_RULE_NONE");
	assert_string_equal(vqb_rule_name(VQB_RULE_LOOP), "VQB_RULE_LOOP");
	assert_string_equal(vqb_rule_name(VQB_RULE_REJECTED), "VQB_RULE_REJECTED");
	assert_string_equal(vqb_rule_name(VQB_RULE_JUMPED), "VQB_RULE_JUMPED");
	for (uint32_t rule = 0; rule < 64; rule++) {
		int known = rule <= VQB_RULE_REJECTED ||
			    (rule >= VQB_RULE_HEAD && rule <= VQB_RULE_JUMPED);

		assert_int_equal(strcmp(vqb_rule_name(rule), "VQB_RULE_?") != 0, known);
	}
}

static void test_answers_are_bits(void **state)
{
	(void)state;
	assert_int_equal(VQB_QUIET, 0);
	assert_int_equal(VQB_NOTIFY, 1);
	assert_int_equal(VQB_MORE, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes_are_stable_numbers),
		cmocka_unit_test(test_each_code_has_its_name),
		cmocka_unit_test(test_other_numbers_have_the_name_of_none),
		cmocka_unit_test(test_each_rule_has_its_name),
		cmocka_unit_test(test_answers_are_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
