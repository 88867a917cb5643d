/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-ring: what does one request cost on a ring? What a request is: common/slices.h.
 *
 *   bench-ring                                 tables
 *   bench-ring [-p CPU] [-q RING] [-i 0|1] [-r REPS]
 *       lines: vqblk,ring,N,batch asked,batch used,indirect,event_idx,irq,ns per request
 *       and:   vqblk,two,ring,N,batch,in flight,indirect,ns per request
 *       (two threads on two CPUs, of which one is CPU; polling, so with -i 0 or without -i)
 *   bench-ring --claims                        its goals (common/claims.h)
 *   bench-ring -s                              slices on request (common/slices.h)
 *   bench-ring -c RING,N,BATCH,INDIRECT,COUNT  runs COUNT requests of one case in
 *       count_requests, for a tool that counts instructions (bench/ring/instructions)
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "claims.h"
#include "counting.h"
#include "loop.h"
#include "machine.h"
#include "stats.h"

enum { MAX_REPS = 64, ROUNDS = 21, SLICE_MS = 20 };

/* ---- tables and lines ---- */

struct options {
	uint32_t ring; /* 0: all */
	int irq;       /* -1: both */
	uint32_t reps;
	bool lines;
};

/* Median of `reps` runs of about a millisecond each. */
static double measure(const struct work *w, uint32_t reps)
{
	return slice_ns(&loop_engine, w, reps);
}

/* Cuts a direct batch to what the ring holds; false: there is no such case. */
static bool case_exists(struct work *w)
{
	uint32_t asked = w->batch;

	if (w->indirect)
		return w->n > 1 && w->n <= w->ring;
	if (w->n > w->ring)
		return false;
	if (w->batch > w->ring / w->n)
		w->batch = w->ring / w->n;
	return w->batch > 1 || asked == 1;
}

static void measure_one(struct work w, const struct options *o)
{
	uint32_t asked = w.batch;
	double ns;

	if (!case_exists(&w))
		return;
	ns = measure(&w, o->reps);
	if (o->lines)
		printf("vqblk,%u,%u,%u,%u,%d,%d,%d,%.2f\n", w.ring, w.n, asked, w.batch, w.indirect,
		       w.event_idx, w.irq, ns);
	else
		printf("%6u %6u %7u  %-8s  %-9s  %-5s %10.1f\n", w.ring, w.n, w.batch,
		       w.indirect ? "indirect" : "direct", w.event_idx ? "EVENT_IDX" : "flags",
		       w.irq ? "armed" : "quiet", ns);
}

static void measure_one_thread(const struct options *o)
{
	static const uint32_t rings[] = { 128, 256, 1024 }, ns[] = { 1, 3, 8, 16, 64, 128 };

	if (!o->lines)
		printf("  ring      N   batch  chains    wishes     asked  ns/request\n");
	for (uint32_t k = 0; k < 3 * 6 * 2 * 8; k++) {
		struct work w = {
			.ring = rings[k / 96],
			.n = ns[k / 16 % 6],
			.batch = k / 8 % 2 ? 32 : 1,
			.indirect = k & 4,
			.event_idx = k & 2,
			.irq = k & 1,
		};

		if ((!o->ring || w.ring == o->ring) && (o->irq < 0 || w.irq == o->irq))
			measure_one(w, o);
	}
}

static void measure_two_threads(const struct options *o)
{
	static const struct work cases[] = {
		{ .ring = 256, .n = 1, .batch = 1, .window = 1 },
		{ .ring = 256, .n = 1, .batch = 32, .window = 128 },
		{ .ring = 256, .n = 3, .batch = 32, .window = 128, .indirect = true },
		{ .ring = 256, .n = 16, .batch = 32, .window = 128, .indirect = true },
	};

	if ((o->ring && o->ring != 256) || o->irq == 1)
		return;
	if (cpu_count() < 2) {
		fprintf(stderr, "bench-ring: no second CPU: not measured with two threads\n");
		return;
	}
	if (!o->lines)
		printf("\ntwo threads, polling\n"
		       "  ring      N   batch  in flight  chains    ns/request\n");
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct work w = cases[i];
		double ns;

		w.event_idx = true;
		ns = measure(&w, o->reps);
		if (o->lines)
			printf("vqblk,two,%u,%u,%u,%u,%d,%.2f\n", w.ring, w.n, w.batch, w.window,
			       w.indirect, ns);
		else
			printf("%6u %6u %7u %10u  %-8s  %10.1f\n", w.ring, w.n, w.batch, w.window,
			       w.indirect ? "indirect" : "direct", ns);
	}
}

/* ---- counting ---- */

/* Not inlined: the name under which an instruction counter finds the part to count. */
__attribute__((noinline)) static void count_requests(void *loop, uint64_t batches)
{
	loop_engine.run(loop, batches);
}

static void count(const char *spec)
{
	struct work w = { .event_idx = true, .irq = true };
	unsigned ring, n, batch, indirect;
	unsigned long requests;
	uint64_t all;
	void *loop;

	if (sscanf(spec, "%u,%u,%u,%u,%lu", &ring, &n, &batch, &indirect, &requests) != 5 || !n ||
	    n > WORK_MAX_N || !batch || batch > WORK_MAX_BATCH)
		die("-c takes RING,N,BATCH,INDIRECT,COUNT");
	w.ring = ring;
	w.n = n;
	w.batch = batch;
	w.indirect = indirect;
	if (!case_exists(&w))
		die("-c: no such case");
	loop = loop_engine.make(&w);
	loop_engine.run(loop, 64);
	count_requests(loop, requests / w.batch);
	printf("%lu\n", requests / w.batch * w.batch);
	loop_engine.drop(loop, &all);
}

/* ---- goals ---- */

/*
 * Instructions per request in the four calls that a request takes. Counted, so there is nothing
 * to repeat. The goals are budgets: 50 + 10 N for add, 85 + 18 N for take.
 */
static void claim_instructions(void)
{
	static const struct {
		const char *name;
		double goal;
	} call[] = { { "ring.add_instr", 80 },
		     { "ring.take_instr", 139 },
		     { "ring.put_instr", 18 },
		     { "ring.reap_instr", 32 } };
	char line[256];
	double got[4];

	counting_line(BENCH_RING, "256,3,32,0", line);
	if (sscanf(line, "%*u %*u %*u %*s %*f %lf %lf %lf %lf", &got[0], &got[1], &got[2],
		   &got[3]) != 4)
		die("instructions can't be counted");
	for (uint32_t i = 0; i < 4; i++)
		claim_print(call[i].name, call[i].goal, LOWER, summarize(&got[i], 1));
}

/*
 * What a further descriptor costs, between N = 16 and N = 128: a slope per round, in which the
 * two are measured one right after the other. Direct in a ring where 128 fit, in batches of as
 * many requests as then do.
 */
static void claim_marginal(const char *name, struct work w)
{
	double slope[ROUNDS], few;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		w.n = 16;
		few = slice_ns(&loop_engine, &w, SLICE_MS);
		w.n = 128;
		slope[i] = (slice_ns(&loop_engine, &w, SLICE_MS) - few) / (128 - 16);
	}
	claim_print(name, 1.8, LOWER, summarize(slope, ROUNDS));
}

static void claims(void)
{
	struct work direct = { .ring = 1024, .batch = 8, .event_idx = true, .irq = true };
	struct work indirect = {
		.ring = 256, .batch = 32, .indirect = true, .event_idx = true, .irq = true
	};

	pin_to(0);
	claim_marginal("ring.marginal_direct_ns", direct);
	claim_marginal("ring.marginal_indirect_ns", indirect);
	claim_instructions();
}

static const char usage[] =
	"bench-ring: what one request costs on a ring\n"
	"\n"
	"  bench-ring                        tables\n"
	"  bench-ring [-p CPU] [-q RING] [-i 0|1] [-r REPS]\n"
	"                                    lines, of that ring only, armed (1) or not, over\n"
	"                                    1 to 64 repetitions, and where CPU is the first\n"
	"  bench-ring --claims               its goals, one line of JSON each\n"
	"  bench-ring -s                     slices on request: see bench/common/slices.h\n"
	"  bench-ring -c RING,N,BATCH,INDIRECT,COUNT\n"
	"                                    COUNT requests, to be counted: bench/ring/instructions\n";

int main(int argc, char **argv)
{
	static const struct option options[] = { { "claims", no_argument, NULL, 'C' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct options o = { .irq = -1, .reps = 7 };
	int opt;

	while ((opt = getopt_long(argc, argv, "p:q:i:r:c:s", options, NULL)) >= 0) {
		o.lines = true;
		if (opt == 'p')
			pin_first(atoi(optarg));
		else if (opt == 'q')
			o.ring = (uint32_t)atoi(optarg);
		else if (opt == 'i')
			o.irq = atoi(optarg);
		else if (opt == 'r')
			o.reps = (uint32_t)atoi(optarg);
		else if (opt == 'c')
			return count(optarg), 0;
		else if (opt == 's')
			return slices_serve(&loop_engine), 0;
		else if (opt == 'C')
			return claims(), 0;
		else if (opt == 'h')
			return fputs(usage, stdout), 0;
		else
			return 1; /* getopt has said why */
	}
	if (optind < argc)
		die("takes options only; see --help");
	if (o.reps < 1 || o.reps > MAX_REPS)
		die("-r takes 1 to 64");
	pin_to(0);
	measure_one_thread(&o);
	measure_two_threads(&o);
	if (o.lines)
		return 0;
	printf("\ninstructions per request, and in each call; EVENT_IDX, armed\n");
	return system(counting_command(BENCH_RING, "")) != 0;
}
