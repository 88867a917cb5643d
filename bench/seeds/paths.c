/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c: what does a bio cost on its own path, and on that of requests, which looks for
 * neighbours first? 512 bytes, in order and anywhere, where there are none to be found, on a disk
 * that does nothing: so as much as can be of what a bio takes is what is compared. The two take
 * turns.
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
	{ "64, list", { .jobs = 1, .depth = 64, .budget = GUEST_RING } },
	{ "64, one by one", { .jobs = 1, .depth = 64, .one_by_one = true, .budget = GUEST_RING } },
	{ "1", { .jobs = 1, .depth = 1, .budget = GUEST_RING } },
	{ "2 CPUs, 4 x 64", { .jobs = 4, .depth = 64, .budget = 16, .threads = true } },
	{ "2 CPUs, 1", { .jobs = 1, .depth = 1, .budget = 16, .threads = true } },
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), SHAPES_OF_ONE_THREAD = 3 };

struct cell {
	char name[64];
	struct guest_plan plan;
};

/* On the path of bios. */
static struct cell cell_of(const struct shape *shape, bool random, bool write)
{
	struct cell cell = { .plan = shape->plan };

	cell.plan.path = VQB_PATH_BIO;
	cell.plan.random = random;
	cell.plan.write = write;
	snprintf(cell.name, sizeof(cell.name), "%-8s %-5s %-15s", random ? "random" : "in order",
		 write ? "write" : "read", shape->name);
	return cell;
}

/* Requests first, so that a ratio is how many times faster bios are. */
static struct guest_pair compare(const struct cell *cell, uint32_t rounds)
{
	struct guest_plan plans[2] = { cell->plan, cell->plan };
	struct guest_pair pair;

	plans[0].path = VQB_PATH_REQUEST;
	guest_compare(plans, rounds, GUEST_MORE * rounds, &pair);
	return pair;
}

/* ---- tables ---- */

static void print_row(const struct cell *cell, uint32_t rounds)
{
	struct guest_pair p = compare(cell, rounds);
	const struct summary *request = p.of[0], *bio = p.of[1];

	printf("%s %8.0f %8.0f %6.3f (%5.3f-%5.3f)   %8.2f %8.2f %6.3f (%5.3f-%5.3f)   %6.3f\n",
	       cell->name, 1e6 / request[NS].median, 1e6 / bio[NS].median, p.faster.median,
	       p.faster.low, p.faster.high, request[LATENCY].median / 1e3,
	       bio[LATENCY].median / 1e3, p.latency.median, p.latency.low, p.latency.high,
	       request[REQUESTS].median);
	fflush(stdout);
}

static void print_rows(const struct part_options *o)
{
	printf("paths: bios of 512 bytes on the path of requests and on that of bios: thousands a "
	       "second, us until\none is back, times as many and times as soon; requests for a bio "
	       "on the path of requests\n%-8s %-5s %-15s %8s %8s %20s   %8s %8s %20s   %6s\n",
	       "order", "op", "out", "requests", "bios", "times", "requests", "bios", "times",
	       "merged");
	for (uint32_t i = 0; i < 4 * SHAPES; i++) {
		struct cell cell = cell_of(&shapes[i % SHAPES], i / SHAPES / 2, i / SHAPES % 2);

		if (!o->only || strstr(cell.name, o->only))
			print_row(&cell, o->rounds);
	}
}

/* ---- goals ---- */

/* Where merging gives nothing. */
static void claim_rates(uint32_t rounds)
{
	static struct cell cell[2 * SHAPES_OF_ONE_THREAD];
	struct contender times[2 * SHAPES_OF_ONE_THREAD];
	uint32_t n = 0;

	for (uint32_t i = 0; i < SHAPES_OF_ONE_THREAD; i++) {
		for (uint32_t write = 0; write < 2; write++, n++) {
			cell[n] = cell_of(&shapes[i], true, write);
			times[n] = (struct contender){ cell[n].name,
						       compare(&cell[n], rounds).faster };
		}
	}
	claim_print_worst("seeds.bio_vs_request", 0.98, times, n);
}

/* The same, and one by one in order, which can't be merged as there is always room. */
static void claim_instructions(void)
{
	double worst = 0;

	for (uint32_t i = 0; i < 4 * SHAPES_OF_ONE_THREAD; i++) {
		const struct shape *shape = &shapes[i / 4];
		struct cell cell = cell_of(shape, i & 1, i & 2);
		double bio, request;

		if (!cell.plan.random && cell.plan.depth > 1 && !cell.plan.one_by_one)
			continue;
		bio = count_instructions(&cell.plan);
		cell.plan.path = VQB_PATH_REQUEST;
		request = count_instructions(&cell.plan);
		if (bio / request > worst)
			worst = bio / request;
	}
	claim_print("seeds.bio_instr", 1, LOWER, summarize(&worst, 1));
}

void paths_part(const struct part_options *o)
{
	if (!o->claims) {
		print_rows(o);
		count_table();
		return;
	}
	claim_rates(o->rounds);
	claim_instructions();
}
