/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h: the part of cmocka that the tests use, under cmocka's names, so that they build and
 * run where there is no package of it. A failed assertion ends its test by a jump back to the
 * runner; the result of cmocka_run_group_tests is the number of tests that failed, as in cmocka.
 *
 * Unlike cmocka it catches no signals, and prints only failures and a closing line.
 */
#ifndef VQB_TESTS_STANDIN_H
#define VQB_TESTS_STANDIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	int (*setup_func)(void **state);
	int (*teardown_func)(void **state);
	void *initial_state;
};

/* clang-format off: it takes the braces for a block */
#define cmocka_unit_test(f)                                                                        \
	{                                                                                          \
#f, f, NULL, NULL, NULL                                                            \
	}
#define cmocka_unit_test_setup(f, setup)                                                           \
	{                                                                                          \
#f, f, setup, NULL, NULL                                                           \
	}
#define cmocka_unit_test_teardown(f, teardown)                                                     \
	{                                                                                          \
#f, f, NULL, teardown, NULL                                                        \
	}
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
	{                                                                                          \
#f, f, setup, teardown, NULL                                                       \
	}
#define cmocka_unit_test_prestate(f, state)                                                        \
	{                                                                                          \
#f, f, NULL, NULL, state                                                           \
	}
/* clang-format on */

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	standin_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
	standin_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#define assert_true(c) standin_true((c) != 0, #c, __FILE__, __LINE__)
#define assert_false(c) standin_true((c) == 0, "!(" #c ")", __FILE__, __LINE__)
#define assert_null(p) standin_true((p) == NULL, #p " == NULL", __FILE__, __LINE__)
#define assert_non_null(p) standin_true((p) != NULL, #p " != NULL", __FILE__, __LINE__)
#define assert_ptr_equal(a, b)                                                                     \
	standin_equal((uintptr_t)(a), (uintptr_t)(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b)                                                                 \
	standin_equal((uintptr_t)(a), (uintptr_t)(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                                     \
	standin_equal((uintmax_t)(a), (uintmax_t)(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b)                                                                 \
	standin_equal((uintmax_t)(a), (uintmax_t)(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_in_range(v, low, high)                                                              \
	standin_in_range((uintmax_t)(v), (uintmax_t)(low), (uintmax_t)(high), #v, __FILE__,        \
			 __LINE__)
#define assert_string_equal(a, b) standin_string(a, b, 1, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) standin_string(a, b, 0, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) standin_memory(a, b, n, 1, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, n) standin_memory(a, b, n, 0, __FILE__, __LINE__)

#define fail() standin_fail(__FILE__, __LINE__, "failed")
#define fail_msg(...) standin_fail(__FILE__, __LINE__, __VA_ARGS__)
#define skip() standin_skip()

#define STANDIN_PRINTF(text, first) __attribute__((format(printf, text, first)))

void print_message(const char *format, ...) STANDIN_PRINTF(1, 2);
void print_error(const char *format, ...) STANDIN_PRINTF(1, 2);

int standin_run(const char *group, const struct CMUnitTest *tests, size_t count,
		int (*setup)(void **state), int (*teardown)(void **state));
void standin_true(int holds, const char *what, const char *file, int line);
void standin_equal(uintmax_t a, uintmax_t b, int wanted, const char *what, const char *file,
		   int line);
void standin_in_range(uintmax_t v, uintmax_t low, uintmax_t high, const char *what,
		      const char *file, int line);
void standin_string(const char *a, const char *b, int wanted, const char *file, int line);
void standin_memory(const void *a, const void *b, size_t n, int wanted, const char *file, int line);
_Noreturn void standin_fail(const char *file, int line, const char *format, ...)
	STANDIN_PRINTF(3, 4);
_Noreturn void standin_skip(void);

#endif
