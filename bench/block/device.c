/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c: what does a request cost the whole device, with storage that does nothing? In
 * nanoseconds per request within vqb_blk_queue_run: taken, parsed, checked, submitted, finished,
 * put and announced. The driver's part is not in it. EVENT_IDX, both sides armed in each batch,
 * three direct descriptors (FLUSH: two), and 4 KiB for those that have data or a range.
 *
 * Which part of the device instructions belong to: bench/block/instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "machine.h"
#include "parts.h"
#include "random.h"
#include "stats.h"

enum {
	REQUESTS = 32,
	BYTES = 4096,
	MAX_ROUNDS = 101,
	SAMPLES = 20, /* of a slice, of which the lower decile counts */
	SAMPLE_REQUESTS = 1024,
	CLOCKS = 1001,
};

#define DISK_BYTES (UINT64_C(1) << 40)

static const struct kind {
	const char *name;
	uint32_t type;
	bool in_order; /* else all over the disk, so that nothing can be joined */
} kinds[] = {
	{ "IN", VQB_BLK_IN, false },           { "IN-in-order", VQB_BLK_IN, true },
	{ "OUT", VQB_BLK_OUT, false },         { "OUT-in-order", VQB_BLK_OUT, true },
	{ "FLUSH", VQB_BLK_FLUSH, false },     { "GET_ID", VQB_BLK_GET_ID, false },
	{ "DISCARD", VQB_BLK_DISCARD, false }, { "WRITE_ZEROES", VQB_BLK_WRITE_ZEROES, false },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct work {
	struct disk disk;
	void *null;
	uint32_t batch, next;
};

static void open_work(struct work *w, const struct kind *kind, uint32_t ring, uint32_t batch,
		      bool joins)
{
	struct disk_plan plan = { .ring = ring,
				  .requests = REQUESTS,
				  .bytes = BYTES,
				  .sectors = DISK_BYTES >> VQB_SECTOR_SHIFT,
				  .joins = joins };
	struct random random = { 1 };

	w->null = zeroed(vqb_backend_null_size());
	check(vqb_backend_null_init(w->null, vqb_backend_null_size(), DISK_BYTES, &plan.backend));
	w->batch = batch;
	w->next = 0;
	disk_open(&w->disk, &plan);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		uint64_t block = kind->in_order ? i : 2 * (uint64_t)random_below(&random, 1 << 24);

		disk_ask(&w->disk, i, kind->type, block * (BYTES >> VQB_SECTOR_SHIFT));
	}
}

static void close_work(struct work *w)
{
	disk_close(&w->disk);
	free(w->null);
}

/* One batch; answers the nanoseconds within the device, and in between two looks at the clock. */
static double run_batch(struct work *w)
{
	double start;
	uint32_t more;

	for (uint32_t i = 0; i < w->batch; i++) {
		disk_add(&w->disk, w->next);
		w->next = (w->next + 1) % REQUESTS;
	}
	vqb_driver_turn(w->disk.ends.drv);
	start = now_ns();
	do {
		more = vqb_blk_queue_run(w->disk.queue, 256) & VQB_MORE;
	} while (more);
	start = now_ns() - start;
	if (disk_reap(&w->disk) != w->batch)
		die("requests were lost");
	return start;
}

/* What is between two looks at the clock when nothing is. */
static double clock_ns(void)
{
	double ns[CLOCKS];

	for (uint32_t i = 0; i < CLOCKS; i++) {
		double start = now_ns();

		ns[i] = now_ns() - start;
	}
	return median(ns, CLOCKS);
}

static double slice(struct work *w)
{
	double sample[SAMPLES], clock = clock_ns();

	for (uint32_t s = 0; s < SAMPLES; s++) {
		uint32_t batches = SAMPLE_REQUESTS / w->batch;
		double ns = 0;

		for (uint32_t i = 0; i < batches; i++)
			ns += run_batch(w) - clock;
		sample[s] = ns / SAMPLE_REQUESTS;
	}
	return lower_decile(sample, SAMPLES);
}

/* ---- the table ---- */

/* The same request without a coalescer and with, which take turns. */
static void measure(const struct kind *kind, uint32_t ring, uint32_t batch, uint32_t rounds,
		    struct summary got[2])
{
	static double ns[2][MAX_ROUNDS];

	for (uint32_t r = 0; r < rounds; r++) {
		for (uint32_t joins = 0; joins < 2; joins++) {
			static struct work w; /* laid out anew */

			open_work(&w, kind, ring, batch, joins);
			ns[joins][r] = slice(&w);
			close_work(&w);
		}
	}
	got[0] = summarize(ns[0], rounds);
	got[1] = summarize(ns[1], rounds);
}

void device_part(uint32_t rounds, bool claims)
{
	static const uint32_t rings[] = { 128, 256, 1024 }, batches[] = { 1, 32 };
	struct summary got[2];

	if (claims)
		return; /* no goals */
	printf("device: ns per request within it, over storage that does nothing (and where the "
	       "median lies with 95 %%)\n%5s %5s  %-13s %21s   %21s\n",
	       "ring", "batch", "request", "without a coalescer", "with one");
	for (uint32_t i = 0; i < 3 * 2 * KINDS; i++) {
		const struct kind *kind = &kinds[i % KINDS];
		uint32_t ring = rings[i / KINDS / 2], batch = batches[i / KINDS % 2];

		measure(kind, ring, batch, rounds, got);
		printf("%5u %5u  %-13s %6.1f (%5.1f-%5.1f)   %6.1f (%5.1f-%5.1f)\n", ring, batch,
		       kind->name, got[0].median, got[0].low, got[0].high, got[1].median,
		       got[1].low, got[1].high);
		fflush(stdout);
	}
}

/* ---- counting ---- */

void device_count(const char *spec)
{
	unsigned ring, batch, joins;
	unsigned long requests;
	static struct work w;
	char name[32];

	if (sscanf(spec, "%31[^,],%u,%u,%u,%lu", name, &ring, &batch, &joins, &requests) != 5 ||
	    !batch || batch > REQUESTS)
		die("-c takes REQUEST,RING,BATCH,COALESCER,COUNT");
	for (uint32_t i = 0; i < KINDS; i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		open_work(&w, &kinds[i], ring, batch, joins);
		for (unsigned long k = 0; k < requests / batch; k++)
			run_batch(&w);
		printf("%lu\n", requests / batch * batch);
		close_work(&w);
		return;
	}
	die("-c: no such request");
}
