/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mwf.c: is merging when the ring is full as good as the better of the two ways that it is between,
 * from idle to overload?
 *
 * Rows of devices and loads, each at a dozen rates of arrival, all three paths in virtual time
 * (mwf.h); then cells in real time, where the CPU is the limit (mwf_real.h).
 */
#include "mwf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "machine.h"
#include "mwf_plot.h"
#include "mwf_real.h"
#include "parts.h"

enum { MWF = VQB_PATH_MERGE_WHEN_FULL, BIO = VQB_PATH_BIO, REQUEST = VQB_PATH_REQUEST };
enum { SEEDS = 3, WARM = 20000, MEASURE = 40000 };

/* Up to here is below saturation, from here on above it. */
#define BELOW 0.9
#define ABOVE 1.1
#define ENOUGH 0.98
#define CLOSE 1.02
#define TOO_WIDE 0.1

const double mwf_loads[MWF_LOADS] = { 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3 };

static const struct real_cell real_cells[] = {
	{ MWF_SEQUENTIAL, 1, 1024, false },  { MWF_SEQUENTIAL, 8, 1024, false },
	{ MWF_SEQUENTIAL, 32, 1024, false }, { MWF_RANDOM, 1, 1024, false },
	{ MWF_RANDOM, 32, 1024, false },     { MWF_MIXED, 8, 1024, false },
	{ MWF_SEQUENTIAL, 8, 1024, true },   { MWF_RANDOM, 8, 1024, true },
	{ MWF_MIXED, 8, 1024, true },
};

enum { REAL_CELLS = sizeof(real_cells) / sizeof(real_cells[0]) };

/* ---- rows ---- */

enum {
	DEVICES = 6,
	LISTS = 3,
	PLAIN_ROWS = DEVICES * MWF_PLACES * LISTS,
	SMALL_ROWS = 2 * MWF_PLACES,
	SHALLOW_ROWS = 2 * MWF_PLACES,
	ROWS = PLAIN_ROWS + SMALL_ROWS + SHALLOW_ROWS
};

/* Every device with every load; then bios of 512 bytes, and a driver that sends at most 32. */
static struct mwf_cell row_at(uint32_t i)
{
	static const uint32_t lists[LISTS] = { 1, 8, 32 }, parallel[] = { 1, 4, 32 };
	struct mwf_cell c = {
		.list = 8, .bytes = 4096, .depth = MWF_RING, .parallel = 4, .fixed = 20000
	};

	if (i < PLAIN_ROWS) {
		uint32_t device = i / (MWF_PLACES * LISTS);

		c.fixed = device < 3 ? 20000 : 200000;
		c.parallel = parallel[device % 3];
		c.places = i / LISTS % MWF_PLACES;
		c.list = lists[i % LISTS];
		return c;
	}
	i -= PLAIN_ROWS;
	c.places = i % MWF_PLACES;
	c.fixed = i / MWF_PLACES % 2 ? 200000 : 20000;
	if (i < SMALL_ROWS)
		c.bytes = 512;
	else
		c.depth = 32;
	return c;
}

static const char *row_name(const struct mwf_cell *c, char name[96])
{
	snprintf(name, 96, "%3u us x %2u, %s, %2u at once, %4u bytes, depth %3u", c->fixed / 1000,
		 c->parallel, mwf_place_names[c->places], c->list, c->bytes, c->depth);
	return name;
}

void mwf_row_run(const struct mwf_cell *row, uint64_t seed, struct mwf_row_result *r)
{
	struct mwf_cell c = *row;

	c.seed = seed;
	c.warm = WARM;
	c.measure = MEASURE;
	for (uint32_t i = 0; i < MWF_LOADS; i++) {
		c.load = mwf_loads[i];
		for (c.path = 0; c.path < MWF_PATHS; c.path++)
			r->at[i][c.path] = mwf_run(&c);
	}
}

/* ---- what is to be said of a row ---- */

struct worst {
	double value, load;
	char name[96];
};

struct verdict {
	struct worst throughput, mean, p99, requests;
};

static const struct verdict best = { .throughput.value = 1e9 };

static void more(struct worst *w, double value, double load, const char *name)
{
	if (value <= w->value)
		return;
	w->value = value;
	w->load = load;
	snprintf(w->name, sizeof(w->name), "%s", name);
}

static void less(struct worst *w, double value, double load, const char *name)
{
	if (value < w->value) {
		w->value = -1;
		more(w, value, load, name);
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void judge(const struct mwf_cell *row, const struct mwf_row_result *r, struct verdict *v)
{
	char name[96];

	row_name(row, name);
	for (uint32_t i = 0; i < MWF_LOADS; i++) {
		const struct mwf_result *at = r->at[i];
		double load = mwf_loads[i];

		less(&v->throughput,
		     at[MWF].throughput / larger(at[BIO].throughput, at[REQUEST].throughput), load,
		     name);
		if (load <= BELOW) {
			more(&v->mean, at[MWF].mean / at[BIO].mean, load, name);
			more(&v->p99, at[MWF].p99 / at[BIO].p99, load, name);
		}
		if (load >= ABOVE)
			more(&v->requests, at[MWF].requests / at[REQUEST].requests, load, name);
	}
}

/* ---- tables ---- */

static void print_loads(const struct mwf_row_result *r)
{
	printf("  %5s  %-26s %-26s %-32s %s\n", "load", "done, of what arrives", "bios a request",
	       "mean latency, us", "99 % of them, us");
	for (uint32_t i = 0; i < MWF_LOADS; i++) {
		const struct mwf_result *m = r->at[i] + MWF, *b = r->at[i] + BIO,
					*q = r->at[i] + REQUEST;

		printf("  %5.2f  %7.3f %7.3f %7.3f    %7.2f %7.2f %7.2f    %9.1f %9.1f %9.1f    %9.1f "
		       "%9.1f %9.1f\n",
		       mwf_loads[i], m->throughput, b->throughput, q->throughput, 1 / m->requests,
		       1 / b->requests, 1 / q->requests, m->mean / 1e3, b->mean / 1e3,
		       q->mean / 1e3, m->p99 / 1e3, b->p99 / 1e3, q->p99 / 1e3);
	}
}

static void print_rows(const struct part_options *o)
{
	struct mwf_row_result r;
	char name[96];

	printf("mwf: merge when full against bio and request path, the worst of %u loads from 0.1 "
	       "to 3 (at which):\nthroughput over the better one; mean latency and that of 99 %% over "
	       "the bio path, up to 0.9;\nrequests over the request path, from 1.1%s\n",
	       (unsigned)MWF_LOADS, o->only ? ". Below: merge when full, bio, request" : "");
	printf("%-62s %-16s %-16s %-16s %s\n", "", "throughput", "latency", "99 %", "requests");
	for (uint32_t i = 0; i < ROWS; i++) {
		struct mwf_cell row = row_at(i);
		struct verdict v = best;

		row_name(&row, name);
		if (o->only && !strstr(name, o->only))
			continue;
		mwf_row_run(&row, 1, &r);
		judge(&row, &r, &v);
		printf("%-62s %.3f (%4.2f)     %.3f (%4.2f)     %.3f (%4.2f)     %.3f (%4.2f)\n",
		       name, v.throughput.value, v.throughput.load, v.mean.value, v.mean.load,
		       v.p99.value, v.p99.load, v.requests.value, v.requests.load);
		if (o->only)
			print_loads(&r);
		fflush(stdout);
	}
}

static const char *real_name(const struct real_cell *c, char name[96])
{
	snprintf(name, 96, "%s, %2u at once, %4u out, %s", mwf_place_names[c->places], c->list,
		 c->out, c->threads ? "two threads" : "one thread");
	return name;
}

static bool real_possible(const struct real_cell *c)
{
	return !c->threads || cpu_count() > 1;
}

static void print_real(FILE *to, const struct real_cell *cell, const struct real_result *r)
{
	char name[96];

	fprintf(to, "%-46s", real_name(cell, name));
	for (uint32_t i = 0; i < MWF_PATHS; i++)
		fprintf(to, " %8.0f (%5.1f)", r->rate[i] / 1e3, r->per_request[i]);
	fprintf(to, "  %.3f (%.3f-%.3f) of %u\n", r->ratio.median, r->ratio.low, r->ratio.high,
		r->ratio.runs);
	fflush(to);
}

static void print_reals(const struct part_options *o)
{
	printf("where the CPU is the limit: thousand bios a second (bios a request): %s, %s, %s;\n"
	       "the first over the better one of the others\n",
	       mwf_path_names[0], mwf_path_names[1], mwf_path_names[2]);
	for (uint32_t i = 0; i < REAL_CELLS; i++) {
		const struct real_cell *c = &real_cells[i];
		struct real_result r;
		char name[96];

		if (!real_possible(c) || (o->only && !strstr(real_name(c, name), o->only)))
			continue;
		r = mwf_real(c, o->rounds, TOO_WIDE);
		print_real(stdout, c, &r);
	}
}

/* ---- goals ---- */

static void name_worst(uint32_t seed, const char *what, const struct worst *w)
{
	fprintf(stderr, "bench-seeds: mwf: seed %u, worst %s: %.3f: %s, load %.2f\n", seed, what,
		w->value, w->name, w->load);
}

/* The cell in real time that is worst; *met: none misses, and none is too wide to say so. */
static struct summary worst_real(uint32_t rounds, bool *met)
{
	struct summary worst = { .median = 1e9 };

	*met = true;
	for (uint32_t i = 0; i < REAL_CELLS; i++) {
		struct real_result r;

		if (!real_possible(&real_cells[i]))
			continue;
		r = mwf_real(&real_cells[i], rounds, TOO_WIDE);
		print_real(stderr, &real_cells[i], &r);
		if (r.ratio.median < worst.median)
			worst = r.ratio;
		*met &= r.ratio.high >= ENOUGH &&
			(r.ratio.low >= ENOUGH || r.ratio.high - r.ratio.low <= TOO_WIDE);
	}
	return worst;
}

static void claim(const struct part_options *o)
{
	double got[3][SEEDS];
	struct summary virtual, real;
	bool met;

	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		static struct mwf_row_result r;
		struct verdict v = best;

		for (uint32_t i = 0; i < ROWS; i++) {
			struct mwf_cell row = row_at(i);

			mwf_row_run(&row, seed, &r);
			judge(&row, &r, &v);
		}
		name_worst(seed, "throughput", &v.throughput);
		name_worst(seed, "mean latency", &v.mean);
		name_worst(seed, "latency of 99 %", &v.p99);
		name_worst(seed, "requests", &v.requests);
		got[0][seed - 1] = v.throughput.value;
		got[1][seed - 1] = v.mean.value;
		got[2][seed - 1] = v.requests.value;
	}
	virtual = summarize(got[0], SEEDS);
	real = worst_real(o->rounds, &met);
	met &= virtual.median >= ENOUGH;
	claim_print_judged("seeds.mwf_throughput", ENOUGH, HIGHER,
			   real.median < virtual.median ? real : virtual, met);
	claim_print("seeds.mwf_latency", CLOSE, LOWER, summarize(got[1], SEEDS));
	claim_print("seeds.mwf_requests", CLOSE, LOWER, summarize(got[2], SEEDS));
}

void mwf_part(const struct part_options *o)
{
	if (o->claims) {
		claim(o);
	} else if (o->svg) {
		if (!mwf_plot(o->svg))
			die("--svg: gnuplot failed, or is not there: apt-get install gnuplot-nox");
	} else {
		print_rows(o);
		print_reals(o);
	}
}
