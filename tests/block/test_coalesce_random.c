/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests by chance, joined, over a backend at its worst: what comes of them is what would come of
 * each alone, with as few submissions as the rules allow (support/coalesce_sim.h).
 *
 * VQB_SEED makes it another run, VQB_LONG=1 a longer one.
 * Shows: K28, K29, K30
 */
#include <stdio.h>

#include "random.h"
#include "unit.h"

#define SIM_CHECK(holds) assert_true(holds)
#include "coalesce_sim.h"

static uint32_t sim_choose(struct sim *s, uint32_t n)
{
	return random_below((struct random *)s->choice, n);
}

enum { ROUNDS = 4000, STEPS = 3000 };

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : fallback;
}

static void test_joined_or_not_comes_to_the_same(void **state)
{
	uint64_t seed = number("VQB_SEED", 1), rounds = ROUNDS, requests = 0, submissions = 0;
	uint64_t retries = 0;
	static struct sim sim;

	(void)state;
	if (number("VQB_LONG", 0))
		rounds *= 20;
	for (uint64_t i = 0; i < rounds; i++) {
		struct random choice = { seed * 1000003 + i };

		sim_open(&sim, &choice);
		for (uint32_t step = 0; step < STEPS; step++)
			sim_step(&sim);
		sim_close(&sim);
		requests += sim.arrivals;
		submissions += sim.count.submissions[0] + sim.count.submissions[1];
		retries += sim.count.retries[0] + sim.count.retries[1];
	}
	printf("seed %llu: %llu requests in %llu submissions, %llu tried again\n",
	       (unsigned long long)seed, (unsigned long long)requests,
	       (unsigned long long)submissions, (unsigned long long)retries);
	/* That much has been joined, and gone wrong, or little was shown. */
	assert_true(submissions < requests * 4 / 5 && retries > requests / 50);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined_or_not_comes_to_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
