/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-indirect: when should a request's segments go into a table of their own?
 *
 * Every policy on every cell of ring, depth, segments and device, in virtual time (sim.h), with
 * its cost in instructions (cost.h).
 *
 *   bench-indirect              a table
 *   bench-indirect --json       a line for each cell and policy
 *   bench-indirect --svg FILE   drawn by gnuplot: where policies cross
 *   bench-indirect --claims     a line for each goal (common/claims.h)
 *            [--cost FILE]             prices that bench/indirect/calibrate has counted before
 *            [--runs RUNS]             over so many seeds (3)
 *            [--jitter THOUSANDTHS]    of the device's time (50)
 *   bench-indirect --real[=CELL]           a dozen cells in real time, on two CPUs (real.h),
 *                                          or one: SEGMENTS,DEPTH,RING,NANOSECONDS,PARALLEL
 *   bench-indirect --fit <RUNS >FILE       prices from counted runs
 *   bench-indirect --cell POLICY,SEGMENTS,DEPTH,RING,DEVICE,SHAPE[,WARM,MEASURE]
 *                                          one run: requests, then how often each thing was done
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "claims.h"
#include "grid.h"
#include "plot.h"
#include "real.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_RUNS = 11 };

static void die(const char *what)
{
	fprintf(stderr, "bench-indirect: %s\n", what);
	exit(1);
}

/* ---- one cell ---- */

static void run_cell(const char *spec)
{
	struct cell c = { .seed = 1, .jitter = JITTER };
	unsigned policy, segments, depth, ring, device, shape;
	unsigned long warm, measure;
	struct extent extent;
	struct result r;
	int got = sscanf(spec, "%u,%u,%u,%u,%u,%u,%lu,%lu", &policy, &segments, &depth, &ring,
			 &device, &shape, &warm, &measure);

	if ((got != 6 && got != 8) || policy >= POLICIES || segments < 3 ||
	    segments > MAX_SEGMENTS || !depth || device >= DEVICES || shape > BOTH)
		die("--cell takes POLICY,SEGMENTS,DEPTH,RING,DEVICE,SHAPE[,WARM,MEASURE]");
	c.policy = policy;
	c.segments = segments;
	c.depth = depth;
	c.ring = ring;
	c.device = device;
	c.shape = shape;
	extent = sim_extent(&c);
	if (got == 8)
		extent = (struct extent){ warm, measure };
	r = sim_run(&c, extent);
	printf("%" PRIu64, r.requests);
	for (int i = 0; i < FEATURES; i++)
		printf(" %" PRIu64, r.feature[i]);
	printf("\n");
	fprintf(stderr, "%.0f requests/s, %.1f ns, occupancy %.2f, tables %.1f, indirect %.3f\n",
		r.per_second, r.cpu, r.occupancy, r.tables, r.indirect);
}

static void run_real(const char *spec)
{
	struct real_cell c = { 0 };
	unsigned long service;

	if (!spec) {
		real_run(stdout);
		return;
	}
	if (sscanf(spec, "%u,%u,%u,%lu,%u", &c.segments, &c.depth, &c.ring, &service,
		   &c.parallel) != 5 ||
	    c.segments < 2 || c.segments > REAL_LONGEST || !c.depth || c.depth > c.ring ||
	    c.parallel > REAL_PARALLEL || (service && !c.parallel))
		die("--real takes SEGMENTS,DEPTH,RING,NANOSECONDS,PARALLEL");
	c.service = service;
	real_one(&c);
}

/* ---- output ---- */

static void print_table(const struct grid *grid)
{
	char name[96];

	for (uint32_t i = 0; i < grid->places; i++) {
		const struct place *p = &grid->place[i];

		printf("%s\n  %-12s %12s %12s %8s %9s %7s %9s\n", cell_name(&p->cell, name),
		       "policy", "requests/s", "instructions", "ns", "ring used", "tables",
		       "indirect");
		for (int k = 0; k < POLICIES; k++) {
			const struct result *r = &p->result[k];

			printf("  %-12s %12.0f %12.1f %8.1f %8.0f%% %7.1f %8.1f%%\n",
			       policy_cases[k].name, r->per_second, r->instructions, r->cpu,
			       100 * r->occupancy, r->tables, 100 * r->indirect);
		}
	}
}

static void print_json(const struct grid *grid)
{
	static const char *const shapes[] = { "steady", "mixed", "bursty", "mixed-bursty" };

	for (uint32_t i = 0; i < grid->places * POLICIES; i++) {
		const struct cell *c = &grid->place[i / POLICIES].cell;
		const struct result *r = &grid->place[i / POLICIES].result[i % POLICIES];

		printf("{\"policy\":\"%s\",\"shape\":\"%s\",\"segments\":%u,\"depth\":%u,\"ring\":%u,"
		       "\"device\":\"%s\",\"requests_per_second\":%.0f,\"instructions\":%.2f,"
		       "\"cpu_ns\":%.2f,\"occupancy\":%.4f,\"tables\":%.2f,\"indirect\":%.4f}\n",
		       policy_cases[i % POLICIES].name, shapes[c->shape],
		       c->shape == MIXED || c->shape == BOTH ? 0 : c->segments, c->depth, c->ring,
		       device_cases[c->device].name, r->per_second, r->instructions, r->cpu,
		       r->occupancy, r->tables, r->indirect);
	}
}

/* Seeds differ in which requests are long, and in how long bursts are. */
static void print_claims(const struct cost *cost, uint32_t runs, uint32_t jitter)
{
	double got[4][MAX_RUNS];
	struct grid grid = { 0 };
	char name[96];

	for (uint32_t i = 0; i < runs; i++) {
		struct goals g;

		grid_run(&grid, cost, i + 1, jitter);
		g = grid_goals(&grid);
		got[0][i] = g.worst_throughput;
		got[1][i] = g.worst_instructions;
		got[2][i] = g.mixed_gain;
		got[3][i] = g.vs_decay;
		fprintf(stderr, "seed %u: least throughput: %s\n", i + 1,
			cell_name(&g.throughput_at->cell, name));
		fprintf(stderr, "seed %u: most instructions: %s\n", i + 1,
			cell_name(&g.instructions_at->cell, name));
		fprintf(stderr, "seed %u: least gain: %s\n", i + 1,
			cell_name(&g.mixed_at->cell, name));
	}
	free(grid.place);
	claim_print("indirect.worst_throughput", 0.98, HIGHER, summarize(got[0], runs));
	claim_print("indirect.worst_instructions", 1.02, LOWER, summarize(got[1], runs));
	claim_print("indirect.mixed_gain", 0.98, HIGHER, summarize(got[2], runs));
	claim_print("indirect.vs_decay", 1, HIGHER, summarize(got[3], runs));
}

static bool read_prices(FILE *from, struct cost *cost)
{
	bool good = from && cost_read(from, cost);

	if (from)
		fclose(from);
	return good;
}

/* Has this very program counted. */
static bool count_prices(struct cost *cost)
{
	char self[4096], command[sizeof(self) + 256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *from;
	bool good;

	if (n < 0)
		return false;
	self[n] = '\0';
	snprintf(command, sizeof(command), "'%s/calibrate' '%s'", BENCH_INDIRECT, self);
	from = popen(command, "r");
	good = from && cost_read(from, cost);
	return from && pclose(from) == 0 && good;
}

static const char usage[] =
	"bench-indirect: when a request's segments should go into a table of their own\n"
	"\n"
	"  bench-indirect                a table\n"
	"  bench-indirect --json         a line for each cell and policy\n"
	"  bench-indirect --svg FILE     drawn by gnuplot: where policies cross\n"
	"  bench-indirect --claims       its goals, one line of JSON each\n"
	"           [--cost FILE]            prices that bench/indirect/calibrate has counted before\n"
	"           [--runs RUNS]            over so many seeds: 1 to 11 (3)\n"
	"           [--jitter THOUSANDTHS]   of the device's time: 0 to 500 (50)\n"
	"  bench-indirect --real         a dozen cells in real time, on two CPUs\n"
	"  bench-indirect --real=SEGMENTS,DEPTH,RING,NANOSECONDS,PARALLEL\n"
	"                                one such cell; 0 nanoseconds: an instant device\n"
	"  bench-indirect --fit          standard input: counted runs; output: prices\n"
	"  bench-indirect --cell POLICY,SEGMENTS,DEPTH,RING,DEVICE,SHAPE[,WARM,MEASURE]\n"
	"                                one run: requests, how often each thing was done\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cost", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "claims", no_argument, NULL, 'g' },
		{ "fit", no_argument, NULL, 'f' },
		{ "cell", required_argument, NULL, 'o' },
		{ "runs", required_argument, NULL, 'r' },
		{ "svg", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "real", optional_argument, NULL, 't' },
		{ "jitter", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	struct cost cost = { { 0 } };
	struct grid grid = { 0 };
	uint32_t runs = 3, jitter = JITTER;
	const char *svg = NULL;
	int opt, what = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'o')
			return run_cell(optarg), 0;
		if (opt == 'f' && !cost_fit(stdin, &cost))
			die("--fit: too few runs");
		if (opt == 'f')
			return cost_write(stdout, &cost), 0;
		if (opt == 'c' && !read_prices(fopen(optarg, "r"), &cost))
			die("--cost: no prices of this build there");
		if (opt == 'r')
			runs = (uint32_t)atoi(optarg);
		if (opt == 't')
			return run_real(optarg), 0;
		if (opt == 's')
			svg = optarg;
		if (opt == 'i')
			jitter = (uint32_t)atoi(optarg);
		if (opt == 'h')
			return fputs(usage, stdout), 0;
		if (opt == '?')
			return 1; /* getopt has said why */
		what = opt == 'j' || opt == 'g' ? opt : what;
	}
	if (optind < argc)
		die("takes options only; see --help");
	if (cost.price[DIRECT] <= 0 && !count_prices(&cost))
		die("no prices: bench/indirect/calibrate failed");
	if (jitter > 500)
		die("--jitter: thousandths, 0 to 500");
	if (runs < 1 || runs > MAX_RUNS)
		die("--runs: 1 to 11");
	if (what == 'g')
		return print_claims(&cost, runs, jitter), real_claim(), 0;
	grid_run(&grid, &cost, 1, jitter);
	if (svg && !plot_svg(&grid, svg))
		die("--svg: gnuplot failed, or is not there: apt-get install gnuplot-nox");
	if (what == 'j')
		print_json(&grid);
	else if (!svg)
		print_table(&grid);
	free(grid.place);
	return 0;
}
