/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.c: what is it worth to submit a list of bios and to publish once, and not each of them? 512
 * bytes anywhere on a disk that does nothing, with interrupts and polled. The two take turns.
 */
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "count.h"
#include "parts.h"

static const struct shape {
	const char *name;
	struct guest_plan plan;
} shapes[] = {
	{ "1 CPU, 64", { .jobs = 1, .depth = 64, .budget = GUEST_RING } },
	{ "1 CPU, 4 x 16", { .jobs = 4, .depth = 16, .budget = GUEST_RING } },
	{ "2 CPUs, 64", { .jobs = 1, .depth = 64, .budget = GUEST_RING, .threads = true } },
	{ "2 CPUs, 4 x 64", { .jobs = 4, .depth = 64, .budget = 16, .threads = true } },
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), SHAPES_OF_ONE_THREAD = 2, PATHS = 2 };

static const char *const path_names[PATHS] = { "when full", "bio" };

struct cell {
	char name[64];
	struct guest_plan plan;
};

static struct cell cell_of(const struct shape *shape, uint32_t path, bool polled)
{
	struct cell cell = { .plan = shape->plan };

	cell.plan.path = path;
	cell.plan.random = true;
	cell.plan.polled = polled;
	snprintf(cell.name, sizeof(cell.name), "%-9s %-9s %-15s", polled ? "polled" : "interrupt",
		 path_names[path], shape->name);
	return cell;
}

/* One by one first, so that a ratio is how many times faster lists are. */
static struct guest_pair compare(const struct cell *cell, uint32_t rounds)
{
	struct guest_plan plans[2] = { cell->plan, cell->plan };
	struct guest_pair pair;

	plans[0].one_by_one = true;
	guest_compare(plans, rounds, GUEST_MORE * rounds, &pair);
	return pair;
}

/* ---- tables ---- */

static void print_row(const struct cell *cell, uint32_t rounds)
{
	struct guest_pair p = compare(cell, rounds);
	const struct summary *one = p.of[0], *list = p.of[1];

	printf("%s %8.0f %8.0f %6.3f (%5.3f-%5.3f)   %8.5f %8.5f   %8.5f %8.5f   %6.3f\n",
	       cell->name, 1e6 / one[NS].median, 1e6 / list[NS].median, p.faster.median,
	       p.faster.low, p.faster.high, one[KICKS].median, list[KICKS].median,
	       one[INTERRUPTS].median, list[INTERRUPTS].median, p.latency.median);
	fflush(stdout);
}

static void print_rows(const struct part_options *o)
{
	printf("batch: random reads of 512 bytes, submitted and published one by one and as lists: "
	       "thousands a second,\nkicks and interrupts for each, times as many and times as "
	       "soon\n%-9s %-9s %-15s %8s %8s %20s   %8s %8s   %8s %8s   %6s\n",
	       "awaited", "merging", "out", "each", "list", "times", "each", "list", "each", "list",
	       "sooner");
	for (uint32_t i = 0; i < 2 * PATHS * SHAPES; i++) {
		struct cell cell =
			cell_of(&shapes[i % SHAPES], i / SHAPES % PATHS, i / SHAPES / PATHS);

		if (!o->only || strstr(cell.name, o->only))
			print_row(&cell, o->rounds);
	}
}

/* ---- goals ---- */

static void claim_rates(const char *name, bool polled, uint32_t rounds)
{
	static struct cell cell[PATHS * SHAPES_OF_ONE_THREAD];
	struct contender times[PATHS * SHAPES_OF_ONE_THREAD];
	uint32_t n = 0;

	for (uint32_t i = 0; i < SHAPES_OF_ONE_THREAD; i++) {
		for (uint32_t path = 0; path < PATHS; path++, n++) {
			cell[n] = cell_of(&shapes[i], path, polled);
			times[n] = (struct contender){ cell[n].name,
						       compare(&cell[n], rounds).faster };
		}
	}
	claim_print_worst(name, 1.02, times, n);
}

static void claim_instructions(void)
{
	double worst = 0;

	for (uint32_t i = 0; i < 2 * PATHS; i++) {
		struct cell cell = cell_of(&shapes[0], i & 1, i & 2);
		double list = count_instructions(&cell.plan), one;

		cell.plan.one_by_one = true;
		one = count_instructions(&cell.plan);
		if (list / one > worst)
			worst = list / one;
	}
	claim_print("seeds.batch_instr", 1, LOWER, summarize(&worst, 1));
}

void batch_part(const struct part_options *o)
{
	if (!o->claims) {
		print_rows(o);
		return;
	}
	claim_rates("seeds.batch_irq", false, o->rounds);
	claim_rates("seeds.batch_poll", true, o->rounds);
	claim_instructions();
}
