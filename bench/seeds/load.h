/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h: a driver that keeps a number of requests of one kind in flight on a whole device. */
#ifndef BENCH_SEEDS_LOAD_H
#define BENCH_SEEDS_LOAD_H

#include "disk.h"
#include "image.h"
#include "random.h"

enum { DEPTH = 64, LOAD_RING = 256, SLICE_MS = 20, LONG_SLICE_MS = 80 };

struct load_plan {
	const char *name;
	uint32_t type; /* VQB_BLK_IN or VQB_BLK_OUT */
	uint32_t bytes;
	bool random; /* else in order, around the disk */
};

struct load {
	struct load_plan plan;
	struct disk disk;
	struct store store;
	struct random random;
	uint64_t block, blocks; /* the next one in order; how many */
	uint64_t done, waits;   /* requests; times the thread slept */
};

/* False: there is no io_uring here. */
bool load_open(struct load *load, const struct load_plan *plan, const struct image *image,
	       enum way way, bool plugs, bool joins);
void load_close(struct load *load);

/* Per request. */
struct load_figures {
	double ns;          /* of a good piece of the slice */
	double all_ns;      /* of all of it */
	double calls;       /* of the system, by the backend */
	double waits;       /* for completions: two calls each */
	double submissions; /* to the backend */
};

/*
 * Some milliseconds of it, beginning and ending with nothing in flight. They are cut into pieces of
 * half a one, and a tenth of those in which the thread did not lose its CPU are faster than `ns`.
 */
struct load_figures load_slice(struct load *load, uint32_t ms);

/*
 * Two loads to be compared: they take turns, a slice each in a round. Where either sleeps for its
 * requests, slices are longer, and all of one counts, and becomes its `ns`, since what the system
 * does meanwhile comes and goes; else a good piece does, since what else happens only ever adds.
 */
struct load_pair {
	struct load load[2];
	bool sleeps;
};

void load_warm_up(struct load_pair *pair);
/* Answers how many times faster the second one was. */
double load_round(struct load_pair *pair, uint32_t round, struct load_figures figures[2]);

/* So many requests or a few more. */
void load_run(struct load *load, uint64_t requests);

#endif
