/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests by chance, joined, over a backend at its worst: what comes of them is what would come of
 * each alone, with as few submissions as the rules allow (support/coalesce_sim.h).
 *
 * VQB_SEED and VQB_LONG: length.h.
 * Shows: K28, K29, K30
 */
#include <stdio.h>

#include "length.h"
#include "random.h"
#include "unit.h"

#define SIM_CHECK(holds) assert_true(holds)
#include "coalesce_sim.h"

static uint32_t sim_choose(struct sim *s, uint32_t n)
{
	return random_below((struct random *)s->choice, n);
}

enum { ROUNDS = 4000, STEPS = 3000 };

static void test_joined_or_not_comes_to_the_same(void **state)
{
	uint64_t seed = length_seed(1), rounds = length_of(ROUNDS), requests = 0, submissions = 0;
	uint64_t retries = 0;
	static struct sim sim;

	(void)state;
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
