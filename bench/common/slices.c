/* SPDX-License-Identifier: BSD-3-Clause */
#include "slices.h"

#include <stdio.h>
#include <sys/resource.h>

#include "machine.h"
#include "stats.h"

#define PIECE_NS 2e5
/* With fewer clean pieces a slice goes on, for up to MOST_SLICES times its time. */
enum { MAX_PIECES = 512, MIN_PIECES = 40, MOST_SLICES = 64 };

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

/* How often a thread of this process has lost its CPU to somebody else. */
static long times_preempted(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_nivcsw;
}

struct pieces {
	const struct engine *engine;
	void *e;
	uint64_t batches; /* in a piece */
	uint64_t done;    /* requests */
	uint32_t n;
	double ns[MAX_PIECES]; /* per request, of the clean ones */
	double least;          /* of the others, 0: none */
};

/*
 * Runs one piece. One that was shorter than it should be makes the next ones longer, and does not
 * count, nor do those before it.
 */
static void run_piece(struct pieces *p)
{
	long before = times_preempted();
	double start = now_ns(), took;
	uint64_t got = p->engine->run(p->e, p->batches);

	took = now_ns() - start;
	p->done += got;
	if (took < PIECE_NS / 2) {
		p->batches *= 2;
		p->n = 0;
		return;
	}
	took /= (double)got;
	if (times_preempted() == before)
		p->ns[p->n++] = took;
	else if (p->least == 0 || took < p->least)
		p->least = took;
}

double slice_ns(const struct engine *engine, const struct work *w, uint32_t ms)
{
	struct pieces p = { .engine = engine, .e = engine->make(w), .batches = 4 };
	double start = now_ns(), enough = ms * 1e6;

	while (p.n < MAX_PIECES &&
	       now_ns() - start < (p.n < MIN_PIECES ? MOST_SLICES * enough : enough))
		run_piece(&p);
	finish(engine, w, p.e, p.done);
	return p.n ? lower_decile(p.ns, p.n) : p.least;
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
