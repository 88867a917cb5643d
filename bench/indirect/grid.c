/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "grid.h"

#include <math.h>
#include <stdlib.h>

static const uint32_t depths[] = { 1, 8, 64, 128 };
static const uint32_t rings[] = { 64, 128, 256, 1024 };

enum { STEADY_CELLS = 4 * 4 * 4 * DEVICES, OTHER_CELLS = 3 * 2 * 3 * DEVICES };

static const char *const shapes[] = { "steady", "mixed", "bursty", "mixed bursts" };

const char *cell_name(const struct cell *cell, char text[96])
{
	if (cell->shape == MIXED || cell->shape == BOTH)
		snprintf(text, 96, "%s 3/66 segments, depth %u, ring %u, %s", shapes[cell->shape],
			 cell->depth, cell->ring, device_cases[cell->device].name);
	else
		snprintf(text, 96, "%s %u segments, depth %u, ring %u, %s", shapes[cell->shape],
			 cell->segments, cell->depth, cell->ring, device_cases[cell->device].name);
	return text;
}

static bool steady_cell(uint32_t k, struct cell *cell)
{
	*cell = (struct cell){ .segments = sizes[k / DEVICES % SIZES],
			       .depth = depths[k / DEVICES / 4 % 4],
			       .ring = rings[k / DEVICES / 16],
			       .device = k % DEVICES,
			       .shape = STEADY };
	return cell->segments <= cell->ring;
}

/* Mixed and bursty loads, at the two larger depths, on all rings that hold the long requests. */
static void other_cell(uint32_t k, struct cell *cell)
{
	*cell = (struct cell){ .device = k % DEVICES,
			       .shape = MIXED + k / DEVICES % 3,
			       .depth = depths[2 + k / DEVICES / 3 % 2],
			       .ring = rings[1 + k / DEVICES / 6],
			       .segments = 6 };
}

void grid_run(struct grid *grid, const struct cost *cost, uint32_t seed, uint32_t jitter)
{
	struct cell cell;

	grid->places = 0;
	if (!grid->place)
		grid->place = malloc((STEADY_CELLS + OTHER_CELLS) * sizeof(*grid->place));
	for (uint32_t k = 0; k < STEADY_CELLS + OTHER_CELLS; k++) {
		struct place *place = &grid->place[grid->places];

		if (k >= STEADY_CELLS)
			other_cell(k - STEADY_CELLS, &cell);
		else if (!steady_cell(k, &cell))
			continue;
		cell.seed = seed;
		cell.jitter = jitter;
		place->cell = cell;
		for (cell.policy = 0; cell.policy < POLICIES; cell.policy++) {
			struct result *r = &place->result[cell.policy];

			*r = sim_run(&cell, sim_extent(&cell));
			r->instructions = cost_apply(cost, r);
		}
		grid->places++;
	}
}

/* ---- the goals ---- */

static double best_rate(const struct place *p)
{
	return fmax(p->result[NEVER].per_second, p->result[ALWAYS].per_second);
}

/* Of never and always, the cheaper one that keeps up with the better. */
static double cheapest(const struct place *p)
{
	double least = INFINITY;

	for (int policy = NEVER; policy <= ALWAYS; policy++)
		if (p->result[policy].per_second >= 0.98 * best_rate(p))
			least = fmin(least, p->result[policy].instructions);
	return least;
}

static double value(const struct place *p, int policy)
{
	return p->result[policy].per_second / p->result[policy].instructions;
}

static void least(double *so_far, const struct place **at, double got, const struct place *here)
{
	if (got >= *so_far)
		return;
	*so_far = got;
	*at = here;
}

struct goals grid_goals(const struct grid *grid)
{
	struct goals g = { .worst_throughput = INFINITY, .mixed_gain = INFINITY };
	double logs = 0, dearest = INFINITY;

	for (uint32_t i = 0; i < grid->places; i++) {
		const struct place *p = &grid->place[i];
		double rate = p->result[ADAPTIVE].per_second / best_rate(p);

		logs += log(value(p, ADAPTIVE) / value(p, DECAY));
		if (p->cell.shape != STEADY) {
			double gain = value(p, ADAPTIVE) / fmax(value(p, NEVER), value(p, ALWAYS));

			least(&g.mixed_gain, &g.mixed_at, gain, p);
			continue;
		}
		least(&g.worst_throughput, &g.throughput_at, rate, p);
		least(&dearest, &g.instructions_at, cheapest(p) / p->result[ADAPTIVE].instructions,
		      p);
	}
	g.worst_instructions = 1 / dearest;
	g.vs_decay = exp(logs / grid->places);
	return g;
}
