/* SPDX-License-Identifier: BSD-3-Clause */
#include "slices.h"

#include <stdio.h>
#include <sys/resource.h>

#include "machine.h"
#include "stats.h"

#define PIECE_NS 2e5
enum { MAX_PIECES = 512, MIN_PIECES = 11 };

/* Of `requests` whose every byte was seen once, and no other. The slots come in turn. */
static uint64_t expected_sum(const struct work *w, uint64_t requests)
{
	uint64_t each = 16 + (w->n > 2 ? (uint64_t)(w->n - 2) * WORK_PAGE : 0) + (w->n > 1);
	uint64_t slots = work_slots(w), rounds = requests / slots, rest = requests % slots;

	return requests * each + rounds * (slots * (slots - 1) / 2) + rest * (rest - 1) / 2;
}

static void finish(const struct engine *engine, const struct work *w, void *e, uint64_t asked)
{
	uint64_t requests, sum = engine->drop(e, &requests);

	if (requests < asked)
		die("requests were lost");
	if (sum != expected_sum(w, requests))
		die("the device saw other bytes than the driver lent");
}

/*
 * Batches that take about one piece's time. The fastest of three tries counts: when one thread of
 * two loses its CPU to somebody else, a single batch takes as long as a whole piece should.
 */
static uint64_t piece_batches(const struct engine *engine, void *e, uint64_t *done)
{
	uint64_t batches = 4;
	double start, took, least;

	for (;;) {
		least = 1e9;
		for (uint32_t i = 0; i < 3; i++) {
			start = now_ns();
			*done += engine->run(e, batches);
			took = now_ns() - start;
			least = took < least ? took : least;
		}
		if (least > PIECE_NS / 2)
			return batches;
		batches *= 2;
	}
}

/* How often a thread of this process has lost its CPU to somebody else. */
static long times_preempted(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_nivcsw;
}

/* Runs pieces for `ms`, up to four times that while there are few clean ones; the median. */
static double measure_pieces(const struct engine *engine, void *e, uint64_t batches, uint32_t ms,
			     uint64_t *done)
{
	double ns[MAX_PIECES], begin = now_ns(), start = begin, end, took;
	long before = times_preempted(), after;
	uint32_t n = 0;
	uint64_t got;

	do {
		got = engine->run(e, batches);
		end = now_ns();
		after = times_preempted();
		took = (end - start) / (double)got;
		*done += got;
		if (after == before)
			ns[n++] = took;
		before = after;
		start = now_ns();
	} while (n < MAX_PIECES && start - begin < (n < MIN_PIECES ? 4 * ms : ms) * 1e6);
	return n ? median(ns, n) : took;
}

double slice_ns(const struct engine *engine, const struct work *w, uint32_t ms)
{
	void *e = engine->make(w);
	uint64_t done = 0, batches = piece_batches(engine, e, &done);
	double ns = measure_pieces(engine, e, batches, ms, &done);

	finish(engine, w, e, done);
	return ns;
}

void slices_serve(const struct engine *engine)
{
	unsigned ring, n, batch, indirect, window, ms;
	char line[128];

	pin_to(0);
	while (fgets(line, sizeof(line), stdin)) {
		struct work w;

		if (sscanf(line, "%u,%u,%u,%u,%u,%u", &ring, &n, &batch, &indirect, &window, &ms) !=
		    6)
			die("a slice is RING,N,BATCH,INDIRECT,WINDOW,MILLISECONDS");
		w = (struct work){ .ring = ring,
				   .n = n,
				   .batch = batch,
				   .window = window,
				   .indirect = indirect,
				   .event_idx = true,
				   .irq = !window };
		if (!n || n > WORK_MAX_N || !batch || batch > WORK_MAX_BATCH ||
		    window > WORK_SLOTS || (window && batch > window))
			die("no such slice");
		printf("%.4f\n", slice_ns(engine, &w, ms));
		fflush(stdout);
	}
}
