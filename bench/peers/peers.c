/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-peers: how does a request on our rings compare with one on Linux's?
 *
 *   bench-peers [-r ROUNDS]            tables
 *   bench-peers [-r ROUNDS] --claims   its goals (common/claims.h)
 *
 * bench/peers/build makes the programs. All of them are then there at once, waiting, and work in
 * turn: in every round each does each case for some milliseconds (common/slices.h). A ratio is
 * taken within a round, between slices that lie a fraction of a second apart; shown are the
 * median of the ratios over all rounds and its interval (common/stats.h).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "machine.h"
#include "stats.h"

/* Two threads: the last number is how many are in flight; batch 32, or 1 where that is 1. */
enum { SLICE_MS = 10, ROUNDS = 31, MAX_ROUNDS = 101, CASES = 13 };

#define MOST_NS 4e11

static const struct peer_case {
	const char *claim, *name, *slice; /* RING,N,BATCH,INDIRECT,WINDOW */
	double goal;
	bool two_cpus;
} cases[CASES] = {
	{ "peers.n1_direct_b1", "N=1 direct, batch 1", "256,1,1,0,0", 0.75, false },
	{ "peers.n3_direct_b1", "N=3 direct, batch 1", "256,3,1,0,0", 0.75, false },
	{ "peers.n3_indirect_b1", "N=3 indirect, batch 1", "256,3,1,1,0", 0.75, false },
	{ "peers.n1_direct_b32", "N=1 direct, batch 32", "256,1,32,0,0", 0.65, false },
	{ "peers.n3_direct_b32", "N=3 direct, batch 32", "256,3,32,0,0", 0.65, false },
	{ "peers.n3_indirect_b32", "N=3 indirect, batch 32", "256,3,32,1,0", 0.60, false },
	{ "peers.n16_indirect_b32", "N=16 indirect, batch 32", "256,16,32,1,0", 0.45, false },
	{ "peers.n64_indirect_b32", "N=64 indirect, batch 32", "256,64,32,1,0", 0.45, false },
	{ "peers.n128_indirect_b32", "N=128 indirect, batch 32", "256,128,32,1,0", 0.45, false },
	{ "peers.two_n1_b32", "two: N=1 direct, 128", "256,1,32,0,128", 0.35, true },
	{ "peers.two_n3_indirect_b32", "two: N=3 indirect, 128", "256,3,32,1,128", 0.5, true },
	{ "peers.two_n16_indirect_b32", "two: N=16 indirect, 128", "256,16,32,1,128", 0.5, true },
	{ "peers.two_n1_one", "two: N=1 direct, 1", "256,1,1,0,1", 0.85, true },
};

enum who { BEST, CHECKED, GCC, CLANG, GCC_LTO, CLANG_LTO, PROGRAMS };

static struct program {
	const char *name;
	FILE *to, *from; /* NULL: is not there */
	double ns[CASES][MAX_ROUNDS];
} program[PROGRAMS] = { { .name = "linux-best" }, { .name = "linux-checked" },
			{ .name = "gcc" },        { .name = "clang" },
			{ .name = "gcc-lto" },    { .name = "clang-lto" } };

static uint32_t rounds = ROUNDS;

/* ---- the programs ---- */

/* Starts `path`, which then waits for what to do. Linux's programs take no notice of -s. */
static void start(struct program *p, const char *path)
{
	int to[2], from[2];
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		die("no pipe");
	pid = fork();
	if (!pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(path, path, "-s", (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		die("no process");
	close(to[0]);
	close(from[1]);
	p->to = fdopen(to[1], "w");
	p->from = fdopen(from[0], "r");
}

/* Builds and starts the first `count` of the programs in `wanted`, as far as they can be. */
static void build(const enum who *wanted, uint32_t count)
{
	char command[4096] = "'" BENCH_PEERS "/build' '" BENCH_PEERS_BUILD "'", line[1200];
	char name[32], path[1024];
	size_t used = strlen(command);
	FILE *list;

	for (uint32_t i = 0; i < count; i++)
		used += (size_t)snprintf(command + used, sizeof(command) - used, " %s",
					 program[wanted[i]].name);
	list = popen(command, "r");
	if (!list)
		die("the programs can't be built");
	while (fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%31s %1023[^\n]", name, path) != 2)
			continue;
		for (uint32_t i = 0; i < PROGRAMS; i++)
			if (!strcmp(name, program[i].name))
				start(&program[i], path);
	}
	if (pclose(list))
		die("the programs can't be built");
}

static double slice(struct program *p, const struct peer_case *c)
{
	char answer[64];

	fprintf(p->to, "%s,%u\n", c->slice, (unsigned)SLICE_MS);
	fflush(p->to);
	if (!fgets(answer, sizeof(answer), p->from)) {
		fprintf(stderr, "bench-peers: %s ended while at %s\n", p->name, c->name);
		exit(1);
	}
	return atof(answer);
}

static bool possible(const struct peer_case *c)
{
	return !c->two_cpus || cpu_count() > 1;
}

/* All programs do one case right after each other; who comes first changes with the round. */
static void measure_round(uint32_t round)
{
	for (uint32_t i = 0; i < CASES; i++)
		for (uint32_t k = 0; k < PROGRAMS; k++) {
			struct program *p = &program[(k + round) % PROGRAMS];

			if (p->to && possible(&cases[i]))
				p->ns[i][round] = slice(p, &cases[i]);
		}
}

/* On a machine that has hardly time for us there are fewer rounds than asked for. */
static void measure(void)
{
	double start = now_ns();

	for (uint32_t round = 0; round < rounds; round++) {
		measure_round(round);
		if (now_ns() - start > MOST_NS)
			rounds = round + 1;
	}
}

/* ---- what comes of it ---- */

static struct summary ratio(enum who a, enum who b, uint32_t which)
{
	double r[MAX_ROUNDS];

	for (uint32_t i = 0; i < rounds; i++)
		r[i] = program[a].ns[which][i] / program[b].ns[which][i];
	return summarize(r, rounds);
}

static double typical_ns(enum who a, uint32_t which)
{
	double ns[MAX_ROUNDS];

	memcpy(ns, program[a].ns[which], rounds * sizeof(*ns));
	return median(ns, rounds);
}

static void print_ns(enum who k, uint32_t which)
{
	printf("%16.1f", typical_ns(k, which));
}

static void print_to_best(enum who k, uint32_t which)
{
	struct summary s = ratio(k, BEST, which);

	printf("  %.2f (%.2f-%.2f)", s.median, s.low, s.high);
}

static void print_to_checked(enum who k, uint32_t which)
{
	struct summary s = ratio(k, CHECKED, which);

	printf("  %.2f (%.2f-%.2f)", s.median, s.low, s.high);
}

/* One table, with a column for each program from `from` on that is there. */
static void print_table(const char *title, enum who from, void (*cell)(enum who, uint32_t))
{
	printf("%-30s", title);
	for (uint32_t k = from; k < PROGRAMS; k++)
		if (program[k].to)
			printf("%16s", program[k].name);
	printf("\n");
	for (uint32_t i = 0; i < CASES; i++) {
		if (!possible(&cases[i]))
			continue;
		printf("%-30s", cases[i].name);
		for (uint32_t k = from; k < PROGRAMS; k++)
			if (program[k].to)
				cell(k, i);
		printf("\n");
	}
}

static void tables(void)
{
	static const enum who all[] = { BEST, CHECKED, GCC, CLANG, GCC_LTO, CLANG_LTO };

	build(all, PROGRAMS);
	measure();
	print_table("ns per request", BEST, print_ns);
	if (!program[BEST].to)
		return;
	printf("\n");
	print_table("of linux-best (interval)", GCC, print_to_best);
	printf("\n");
	print_table("of linux-checked (interval)", GCC, print_to_checked);
}

static void claims(void)
{
	static const enum who some[] = { BEST, GCC };

	build(some, 2);
	if (!program[BEST].to || !program[GCC].to)
		return;
	measure();
	for (uint32_t i = 0; i < CASES; i++)
		if (possible(&cases[i]))
			claim_print(cases[i].claim, cases[i].goal, LOWER, ratio(GCC, BEST, i));
}

static const char usage[] =
	"bench-peers: a request on our rings, and one on Linux's\n"
	"\n"
	"  bench-peers [-r ROUNDS]           tables, over 1 to 101 rounds (31)\n"
	"  bench-peers [-r ROUNDS] --claims  its goals, one line of JSON each\n";

int main(int argc, char **argv)
{
	static const struct option options[] = { { "claims", no_argument, NULL, 'C' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	bool asked_for_claims = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "r:", options, NULL)) >= 0) {
		if (opt == 'C')
			asked_for_claims = true;
		else if (opt == 'r')
			rounds = (uint32_t)atoi(optarg);
		else if (opt == 'h')
			return fputs(usage, stdout), 0;
		else
			return 1; /* getopt has said why */
	}
	if (optind < argc)
		die("takes options only; see --help");
	if (rounds < 1 || rounds > MAX_ROUNDS)
		die("-r takes 1 to 101");
	if (cpu_count() < 2)
		fprintf(stderr, "bench-peers: no second CPU: not measured with two threads\n");
	signal(SIGPIPE, SIG_IGN); /* slice() says which program it was that ended */
	if (asked_for_claims)
		claims();
	else
		tables();
	return 0;
}
