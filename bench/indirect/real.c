/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "real.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ends.h"
#include "machine.h"

enum { PAGES = 128, LONGEST = 66, BATCH = 32, ROUNDS = 7, KINDS = 3, CELLS = 12 };

#define WARM_NS 20000000
#define MEASURE_NS 20000000

static const struct {
	const char *name;
	uint32_t kind;
} kinds[KINDS] = {
	{ "never", VQB_INDIRECT_NEVER },
	{ "always", VQB_INDIRECT_ALWAYS },
	{ "adaptive", VQB_INDIRECT_ADAPTIVE },
};

struct real_cell {
	uint32_t segments, depth, ring, parallel;
	uint64_t service; /* ns; 0: instant */
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
	struct vqb_segment seg[LONGEST];
	atomic_bool stop;
	struct waiting *waiting; /* a queue: all take the same time, so they finish in order */
	uint32_t first, count;
	uint64_t busy_until[128];
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
				  .segments = LONGEST,
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
	static struct vqb_piece piece[BATCH * 2 * LONGEST];
	struct duo *d = arg;
	struct vqb_chain chain[BATCH];
	struct vqb_need need;
	uint32_t n;

	pin_to(1);
	while (!atomic_load_explicit(&d->stop, memory_order_relaxed)) {
		check(vqb_device_take(d->dev, chain, BATCH, piece, BATCH * 2 * LONGEST, &n, &need));
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

static double measure(const struct real_cell *cell, uint32_t kind)
{
	struct duo *d = duo_open(cell, kind);
	pthread_t thread;
	uint64_t began, reaped;
	double rate;

	if (pthread_create(&thread, NULL, serve, d))
		check(VQB_E_NOSPC);
	drive_for(d, WARM_NS);
	began = now();
	reaped = drive_for(d, MEASURE_NS);
	rate = (double)reaped * 1e9 / (double)(now() - began);
	atomic_store(&d->stop, true);
	pthread_join(thread, NULL);
	duo_close(d);
	return rate;
}

/* ---- output ---- */

/* The mean, and half the width of its 95 % interval (Student, six degrees of freedom). */
static double mean(const double *got, double *half)
{
	double sum = 0, squares = 0, m;

	for (int i = 0; i < ROUNDS; i++)
		sum += got[i];
	m = sum / ROUNDS;
	for (int i = 0; i < ROUNDS; i++)
		squares += (got[i] - m) * (got[i] - m);
	*half = 2.447 * sqrt(squares / (ROUNDS - 1) / ROUNDS);
	return m;
}

/* Policies take turns, so that what else the machine does hits all alike. */
void real_run(void)
{
	pin_to(0);
	printf("requests/s, mean of %d runs and its 95 %% interval\n", ROUNDS);
	for (int c = 0; c < CELLS; c++) {
		double got[KINDS][ROUNDS];

		for (int round = 0; round < ROUNDS; round++)
			for (int k = 0; k < KINDS; k++)
				got[k][round] = measure(&cells[c], kinds[k].kind);
		printf("%2u segments, depth %3u, ring %4u, %3.0f us x %3u:", cells[c].segments,
		       cells[c].depth, cells[c].ring, (double)cells[c].service / 1000,
		       cells[c].parallel);
		for (int k = 0; k < KINDS; k++) {
			double half, m = mean(got[k], &half);

			printf("  %s %9.0f +- %5.1f%%", kinds[k].name, m, 100 * half / m);
		}
		printf("\n");
		fflush(stdout);
	}
}
