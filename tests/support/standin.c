/* SPDX-License-Identifier: BSD-3-Clause */
/* standin.c: runs the tests of a program one after the other; see standin.h. */
#include "standin.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { RAN, FAILED, SKIPPED };

/* Where the test that runs now goes when an assertion fails. */
static jmp_buf out;

void print_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fflush(stdout);
}

void print_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

void standin_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	longjmp(out, FAILED);
}

void standin_skip(void)
{
	longjmp(out, SKIPPED);
}

void standin_true(int holds, const char *what, const char *file, int line)
{
	if (!holds)
		standin_fail(file, line, "not so: %s", what);
}

void standin_equal(uintmax_t a, uintmax_t b, int wanted, const char *what, const char *file,
		   int line)
{
	if ((a == b) != wanted)
		standin_fail(file, line, "not so: %s (%#jx, %#jx)", what, a, b);
}

void standin_in_range(uintmax_t v, uintmax_t low, uintmax_t high, const char *what,
		      const char *file, int line)
{
	if (v < low || v > high)
		standin_fail(file, line, "%s is %ju, not within %ju to %ju", what, v, low, high);
}

void standin_string(const char *a, const char *b, int wanted, const char *file, int line)
{
	if ((strcmp(a, b) == 0) != wanted)
		standin_fail(file, line, "\"%s\" %s \"%s\"", a, wanted ? "is not" : "is", b);
}

void standin_memory(const void *a, const void *b, size_t n, int wanted, const char *file, int line)
{
	const unsigned char *x = a, *y = b;
	size_t i = 0;

	while (i < n && x[i] == y[i])
		i++;
	if (wanted && i < n)
		standin_fail(file, line, "byte %zu of %zu: %#x, not %#x", i, n, x[i], y[i]);
	if (!wanted && i == n)
		standin_fail(file, line, "all %zu bytes are equal", n);
}

/* Runs f, which may leave by a jump; says how it ended. */
static int run_step(void (*test)(void **state), int (*fixture)(void **state), void **state)
{
	int how = setjmp(out);

	if (how != RAN)
		return how;
	if (fixture)
		return fixture(state) == 0 ? RAN : FAILED;
	if (test)
		test(state);
	return RAN;
}

static int run_test(const struct CMUnitTest *t, void *group_state)
{
	void *state = t->initial_state ? t->initial_state : group_state;
	int how = run_step(NULL, t->setup_func, &state);

	if (how != RAN)
		return how;
	how = run_step(t->test_func, NULL, &state);
	if (run_step(NULL, t->teardown_func, &state) != RAN)
		how = FAILED;
	return how;
}

int standin_run(const char *group, const struct CMUnitTest *tests, size_t count,
		int (*setup)(void **state), int (*teardown)(void **state))
{
	void *state = NULL;
	int counts[3] = { 0, 0, 0 };

	if (run_step(NULL, setup, &state) != RAN) {
		fprintf(stderr, "%s: the group's setup failed\n", group);
		return (int)count;
	}
	for (size_t i = 0; i < count; i++) {
		int how = run_test(&tests[i], state);

		counts[how]++;
		if (how == FAILED)
			fprintf(stderr, "%s: FAILED\n", tests[i].name);
	}
	if (run_step(NULL, teardown, &state) != RAN) {
		fprintf(stderr, "%s: the group's teardown failed\n", group);
		counts[FAILED]++;
	}
	printf("%s: %d passed, %d failed, %d skipped\n", group, counts[RAN], counts[FAILED],
	       counts[SKIPPED]);
	return counts[FAILED];
}
