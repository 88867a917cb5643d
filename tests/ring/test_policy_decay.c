/* SPDX-License-Identifier: BSD-3-Clause */
/* test_policy_decay.c: the heuristic of 2014, against decisions worked out by hand. */
#include "policy_bench.h"

enum { DRAIN = 0 };

struct step {
	uint32_t n;    /* segments, or DRAIN */
	unsigned goes; /* 1: through a table */
};

static void walk(struct bench *b, const struct step *step, size_t steps)
{
	for (size_t i = 0; i < steps; i++) {
		unsigned goes;

		if (step[i].n == DRAIN) {
			policy_drain(b);
			continue;
		}
		goes = policy_add(b, step[i].n);
		if (goes != step[i].goes)
			fail_msg("step %zu, %u segments: %u", i, step[i].n, goes);
	}
}

#define WALK(b, steps) walk(b, steps, sizeof(steps) / sizeof((steps)[0]))

/* N = 8. Comments: most at once, in flight, free before the step. */
static void test_decisions_worked_out_by_hand(void **state)
{
	static const struct step steps[] = {
		{ 3, 0 },     /* 0 0 8: none is missing to the most */
		{ 3, 0 },     /* 1 1 5 */
		{ 3, 1 },     /* 2 2 2: does not fit */
		{ DRAIN, 0 }, /* 3 */
		{ 3, 1 },     /* 3 0 8: three of 3 are 9 */
		{ 3, 0 },     /* 3 1 7: two of 3 are 6 */
		{ 2, 0 },     /* 3 2 4: one of 2 */
		{ 1, 0 },     /* 3 3 2: the most is 4 from here on */
		{ DRAIN, 0 }, /* seven requests so far */
		{ 2, 0 },     /* 4 0 8: four of 2 just fit; the eighth: the most is halved */
		{ 5, 0 },     /* 2 1 6: one of 5 */
		{ DRAIN, 0 }, { 5, 1 }, /* 2 0 8: two of 5 are 10 */
		{ 5, 0 },               /* 2 1 7 */
		{ DRAIN, 0 }, { 8, 1 }, /* 2 0 8 */
		{ DRAIN, 0 }, { 4, 0 }, /* 2 0 8: two of 4 just fit */
		{ DRAIN, 0 }, { 1, 0 }, /* fourteen, fifteen, sixteen: three at once, halved to one
					 */
		{ 1, 0 },     { 1, 0 }, { DRAIN, 0 }, { 8, 0 }, /* 1 0 8: one of 8 just fits */
		{ DRAIN, 0 },
	};
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_DECAY);
	WALK(&b, steps);
	bench_close(&b);
}

/* The ring wraps several times without a question, by requests of one segment. */
static void test_the_most_is_halved_at_each_wrap(void **state)
{
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_DECAY);
	for (int i = 0; i < 7; i++)
		policy_add(&b, 1);
	policy_drain(&b); /* seven at once */
	policy_add(&b, 1);
	policy_drain(&b); /* halved: three */
	for (int i = 0; i < 7; i++) {
		policy_add(&b, 1);
		policy_drain(&b);
	}
	assert_int_equal(policy_add(&b, 3), 1); /* 3 * 3 > 8; and halved by it: one */
	policy_drain(&b);
	assert_int_equal(policy_add(&b, 8), 0);
	policy_drain(&b);
	for (int i = 0; i < 6; i++)
		policy_add(&b, 1);
	assert_int_equal(policy_add(&b, 1), 0); /* the wrap: seven out, halved to three */
	policy_drain(&b);
	assert_int_equal(policy_add(&b, 2), 0);
	assert_int_equal(policy_add(&b, 5), 1); /* (3 - 1) * 5 > 6 */
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions_worked_out_by_hand),
		cmocka_unit_test(test_the_most_is_halved_at_each_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
