/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h: all cells under all policies, and the goals. */
#ifndef BENCH_INDIRECT_GRID_H
#define BENCH_INDIRECT_GRID_H

#include "cost.h"

struct place {
	struct cell cell; /* its policy is not set */
	struct result result[POLICIES];
};

struct grid {
	struct place *place;
	uint32_t places;
};

/* Runs all cells of one seed. */
void grid_run(struct grid *grid, const struct cost *cost, uint32_t seed, uint32_t jitter);

struct goals {
	double worst_throughput, worst_instructions, mixed_gain, vs_decay;
	const struct place *throughput_at, *instructions_at, *mixed_at;
};

struct goals grid_goals(const struct grid *grid);

const char *cell_name(const struct cell *cell, char text[96]);

#endif
