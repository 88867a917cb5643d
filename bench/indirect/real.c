/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "real.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "claims.h"
#include "ends.h"
#include "machine.h"

enum { PAGES = 128, BATCH = 32, KINDS = 3, CELLS = 12, PIECES = 15, MOST_PIECES = 60 };

/*
 * Rounds go on until the interval is as narrow as NARROW to both sides together, which does not
 * ask where it lies, or there are MOST_ROUNDS of them, or it took MOST_NS.
 */
enum { LEAST_ROUNDS = 11, MOST_ROUNDS = 41, STEP_ROUNDS = 5 };
#define NARROW 0.015
#define MOST_NS UINT64_C(12000000000) /* no further rounds of a cell after that */
#define ENOUGH 0.98
#define TOO_WIDE 0.1 /* an interval that says nothing */

/* To warm up: this long, and for the adaptive policy until it has come to its longest wait. */
#define WARM_NS 5000000
#define WARM_MOST_NS 500000000
#define WARM_WINDOWS 256
#define PIECE_NS 1000000

static const struct {
	const char *name;
	uint32_t kind;
} kinds[KINDS] = {
	{ "never", VQB_INDIRECT_NEVER },
	{ "always", VQB_INDIRECT_ALWAYS },
	{ "adaptive", VQB_INDIRECT_ADAPTIVE },
};

static const struct real_cell cells[CELLS] = {
	{ 3, 1, 128, 0, 0 },        { 3, 64, 128, 0, 0 },       { 3, 128, 128, 0, 0 },
	{ 3, 64, 256, 0, 0 },       { 18, 64, 256, 0, 0 },      { 66, 8, 256, 0, 0 },
	{ 66, 64, 1024, 0, 0 },     { 3, 64, 128, 32, 20000 },  { 3, 128, 128, 128, 80000 },
	{ 18, 64, 128, 32, 20000 }, { 66, 64, 128, 32, 20000 }, { 6, 64, 256, 128, 80000 },
};

struct waiting {
	uint64_t finish;
	struct vqb_ticket ticket;
};

struct duo {
	struct real_cell cell;
	struct vqb_driver *drv;
	struct vqb_device *dev;
	struct ends ends;
	struct vqb_segment seg[REAL_LONGEST];
	atomic_bool stop;
	struct waiting *waiting; /* a queue: all take the same time, so they finish in order */
	uint32_t first, count;
	uint64_t busy_until[REAL_PARALLEL];
	uint32_t server;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct duo *duo_open(const struct real_cell *cell, uint32_t kind)
{
	struct duo *d = zeroed(sizeof(*d));
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy), .kind = kind };
	struct ends_plan plan = { .ring = cell->ring,
				  .segments = REAL_LONGEST,
				  .features = VQB_FEATURE(VQB_F_INDIRECT_DESC) |
					      VQB_FEATURE(VQB_F_EVENT_IDX),
				  .policy = &policy,
				  .data = (size_t)PAGES * ENDS_PAGE };

	d->cell = *cell;
	d->waiting = zeroed(cell->ring * sizeof(*d->waiting));
	ends_open(&d->ends, &plan);
	d->drv = d->ends.drv;
	d->dev = d->ends.dev;
	vqb_driver_disarm(d->drv);
	vqb_device_disarm(d->dev);
	for (uint32_t i = 0; i < cell->segments; i++)
		d->seg[i] = (struct vqb_segment){
			.addr = ENDS_HIGH + (uint64_t)ENDS_PAGE * (i * 7 % PAGES), .len = ENDS_PAGE
		};
	return d;
}

static void duo_close(struct duo *d)
{
	ends_close(&d->ends);
	free(d->waiting);
	free(d);
}

/* ---- the device's thread ---- */

static void put_finished(struct duo *d)
{
	uint64_t time = d->cell.service ? now() : UINT64_MAX;
	bool any = false;

	while (d->count && d->waiting[d->first].finish <= time) {
		check(vqb_device_put(d->dev, d->waiting[d->first].ticket, 1));
		d->first = (d->first + 1) % d->cell.ring;
		d->count--;
		any = true;
	}
	if (any)
		vqb_device_expose(d->dev);
}

static void begin(struct duo *d, const struct vqb_chain *c)
{
	uint64_t finish = 0;

	check(c->status);
	*(volatile uint8_t *)c->piece[c->readable].base = 1;
	if (d->cell.service) {
		uint64_t *busy = &d->busy_until[d->server], time = now();

		d->server = (d->server + 1) % d->cell.parallel;
		finish = *busy = (*busy > time ? *busy : time) + d->cell.service;
	}
	d->waiting[(d->first + d->count++) % d->cell.ring] = (struct waiting){ finish, c->ticket };
}

static void *serve(void *arg)
{
	static struct vqb_piece piece[BATCH * 2 * REAL_LONGEST];
	struct duo *d = arg;
	struct vqb_chain chain[BATCH];
	struct vqb_need need;
	uint32_t n;

	pin_to(1);
	while (!atomic_load_explicit(&d->stop, memory_order_relaxed)) {
		check(vqb_device_take(d->dev, chain, BATCH, piece, BATCH * 2 * REAL_LONGEST, &n,
				      &need));
		for (uint32_t i = 0; i < n; i++)
			begin(d, &chain[i]);
		put_finished(d);
	}
	return NULL;
}

/* ---- the driver's thread ---- */

static uint64_t drive_for(struct duo *d, uint64_t ns)
{
	struct vqb_done done[BATCH];
	uint64_t end = now() + ns, reaped = 0;

	do {
		for (uint32_t turn = 0; turn < 64; turn++) {
			reaped += vqb_driver_reap(d->drv, done, BATCH);
			while (vqb_driver_in_flight(d->drv) < d->cell.depth &&
			       !vqb_driver_add(d->drv, d->seg, d->cell.segments - 1, 1, d))
				continue;
			vqb_driver_expose(d->drv);
		}
	} while (now() < end);
	return reaped;
}

static void warm_up(struct duo *d, uint32_t kind)
{
	uint64_t window = d->cell.depth > 8 ? 16 * (uint64_t)d->cell.depth : 128;
	uint64_t left = kind == VQB_INDIRECT_ADAPTIVE ? WARM_WINDOWS * window : 1;
	uint64_t end = now() + WARM_MOST_NS, got;

	do {
		got = drive_for(d, WARM_NS);
		left = got < left ? left - got : 0;
	} while (left && now() < end);
}

static uint64_t on_cpu(clockid_t thread)
{
	struct timespec t;

	clock_gettime(thread, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Requests per second in a short piece; *clean: both threads had their CPUs for all of it. */
static double rate_of_piece(struct duo *d, clockid_t device, bool *clean)
{
	uint64_t began = now(), theirs = on_cpu(device), ours = on_cpu(CLOCK_THREAD_CPUTIME_ID);
	uint64_t reaped = drive_for(d, PIECE_NS), took;

	theirs = on_cpu(device) - theirs;
	ours = on_cpu(CLOCK_THREAD_CPUTIME_ID) - ours;
	took = now() - began;
	*clean = theirs >= took - took / 32 && ours >= took - took / 32;
	return (double)reaped * 1e9 / (double)took;
}

/* The median of clean pieces; where there are none, the fastest. */
static double typical_rate(struct duo *d, pthread_t thread)
{
	double clean[PIECES], best = 1;
	uint32_t cleans = 0;
	clockid_t device;

	if (pthread_getcpuclockid(thread, &device))
		die("the other thread has no clock");
	for (uint32_t i = 0; i < MOST_PIECES && cleans < PIECES; i++) {
		bool is_clean;
		double rate = rate_of_piece(d, device, &is_clean);

		if (is_clean)
			clean[cleans++] = rate;
		best = rate > best ? rate : best;
	}
	return cleans ? median(clean, cleans) : best;
}

static double measure(const struct real_cell *cell, uint32_t kind)
{
	struct duo *d = duo_open(cell, kind);
	pthread_t thread;
	double rate;

	if (pthread_create(&thread, NULL, serve, d))
		die("no thread");
	warm_up(d, kind);
	rate = typical_rate(d, thread);
	atomic_store(&d->stop, true);
	pthread_join(thread, NULL);
	duo_close(d);
	return rate;
}

/* ---- the judgement ---- */

struct rates {
	uint32_t rounds;
	double got[KINDS][MOST_ROUNDS];
};

/* Policies take turns, so that what else the machine does hits all alike. */
static void go_on(const struct real_cell *cell, struct rates *r, uint32_t rounds)
{
	for (; r->rounds < rounds; r->rounds++)
		for (uint32_t i = 0; i < KINDS; i++) {
			uint32_t k = (i + r->rounds) % KINDS;

			r->got[k][r->rounds] = measure(cell, kinds[k].kind);
		}
}

static struct summary typical(const struct rates *r, uint32_t kind)
{
	double v[MOST_ROUNDS];

	memcpy(v, r->got[kind], r->rounds * sizeof(*v));
	return summarize(v, r->rounds);
}

/*
 * Adaptive over the better of the others, round by round. Which one that is goes by all rounds: the
 * better one of each round would be the luckier one.
 */
static struct summary to_better(const struct rates *r)
{
	uint32_t better = typical(r, 0).median > typical(r, 1).median ? 0 : 1;
	double ratio[MOST_ROUNDS];

	for (uint32_t i = 0; i < r->rounds; i++)
		ratio[i] = r->got[2][i] / r->got[better][i];
	return summarize(ratio, r->rounds);
}

static struct summary judge(const struct real_cell *cell, struct rates *r)
{
	uint64_t end = now() + MOST_NS;
	struct summary ratio;

	r->rounds = 0;
	go_on(cell, r, LEAST_ROUNDS);
	ratio = to_better(r);
	while (ratio.high - ratio.low > 2 * NARROW && r->rounds < MOST_ROUNDS && now() < end) {
		go_on(cell, r, r->rounds + STEP_ROUNDS);
		ratio = to_better(r);
	}
	return ratio;
}

static const char *verdict(struct summary ratio)
{
	if (ratio.low >= ENOUGH)
		return "agrees";
	if (ratio.high < ENOUGH)
		return "DISAGREES";
	return ratio.high - ratio.low <= TOO_WIDE ? "agrees, maybe" : "UNDECIDED: too much noise";
}

static void print_cell(FILE *to, const struct real_cell *cell, const struct rates *r,
		       struct summary ratio)
{
	fprintf(to, "%2u segments, depth %3u, ring %4u, %3.0f us x %3u:", cell->segments,
		cell->depth, cell->ring, (double)cell->service / 1000, cell->parallel);
	for (uint32_t k = 0; k < KINDS; k++)
		fprintf(to, "  %s %8.0f", kinds[k].name, typical(r, k).median);
	fprintf(to, "  ratio %.3f (%.3f-%.3f) of %2u  %s\n", ratio.median, ratio.low, ratio.high,
		ratio.runs, verdict(ratio));
	fflush(to);
}

void real_one(const struct real_cell *cell)
{
	struct rates r;
	struct summary ratio;

	pin_to(0);
	ratio = judge(cell, &r);
	print_cell(stdout, cell, &r, ratio);
}

struct summary real_run(FILE *to)
{
	struct summary all = { .runs = CELLS };
	uint32_t sure = 0, agree = 0;

	pin_to(0);
	fprintf(to, "two CPUs: requests/s, and adaptive over the better one with its interval\n");
	for (uint32_t i = 0; i < CELLS; i++) {
		struct rates r;
		struct summary ratio = judge(&cells[i], &r);

		print_cell(to, &cells[i], &r, ratio);
		agree += *verdict(ratio) == 'a';
		sure += ratio.low >= ENOUGH;
	}
	fprintf(to, "%u of %u cells agree, %u of them without a doubt\n", agree, (unsigned)CELLS,
		sure);
	all.median = all.high = agree;
	all.low = sure;
	return all;
}

void real_claim(void)
{
	if (cpu_count() < 2) {
		fprintf(stderr, "bench-indirect: no second CPU: no cell in real time\n");
		return;
	}
	claim_print("indirect.real_cells", CELLS, HIGHER, real_run(stderr));
}
