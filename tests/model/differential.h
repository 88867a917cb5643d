/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * differential.h: a run of random operations against the library and a model at once.
 *
 * A run is made of episodes, each of which begins with a seed of its own. When library and model
 * differ, the seed of the episode is printed; VQB_SEED set to it begins the next run with that
 * episode. How long a run is: length.h.
 */
#ifndef TESTS_DIFFERENTIAL_H
#define TESTS_DIFFERENTIAL_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "length.h"
#include "random.h"
#include "unit.h"

struct run {
	struct random random;
	uint64_t seed;        /* of the episode */
	uint64_t done, total; /* operations */
	bool is_short;
	const char *doing;
};

static inline void run_start(struct run *run, uint64_t total)
{
	memset(run, 0, sizeof(*run));
	run->seed = length_seed(1);
	run->total = length_of(total);
	run->is_short = length_is_set("VQB_SHORT");
}

/* Is there another episode to run? If so, it begins. */
static inline bool run_episode(struct run *run)
{
	if (run->done >= run->total)
		return false;
	if (run->done)
		run->seed = random_word(&run->random);
	run->random.state = run->seed;
	return true;
}

static inline void run_operation(struct run *run, const char *doing)
{
	run->done++;
	run->doing = doing;
}

/* One of `n` kinds of operation, more often those of a greater weight. */
static inline uint32_t run_pick(struct run *run, const unsigned *weight, uint32_t n)
{
	uint32_t all = 0, at, i;

	for (i = 0; i < n; i++)
		all += weight[i];
	at = random_below(&run->random, all);
	for (i = 0; at >= weight[i]; i++)
		at -= weight[i];
	return i;
}

static inline void run_differs(const struct run *run, const char *what, uint64_t library,
			       uint64_t model, const char *file, int line)
{
	if (library == model)
		return;
	fprintf(stderr,
		"%s:%d: %s: %s: library %" PRId64 " (0x%" PRIx64 "), model %" PRId64 " (0x%" PRIx64
		")\nafter %" PRIu64 " operations; VQB_SEED=0x%" PRIx64 " repeats it\n",
		file, line, run->doing, what, (int64_t)library, library, (int64_t)model, model,
		run->done, run->seed);
	fail();
}

/* Library and model give the same answer. */
#define same(run, library, model)                                                                  \
	run_differs(run, #library, (uint64_t)(library), (uint64_t)(model), __FILE__, __LINE__)
#define holds(run, condition)                                                                      \
	run_differs(run, #condition, (uint64_t) !!(condition), 1, __FILE__, __LINE__)

#endif
