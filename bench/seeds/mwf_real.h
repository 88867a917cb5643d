/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mwf_real.h: paths where the CPU is the limit: a whole block device over storage that does
 * nothing, in the driver's thread or in one of its own, and more bios than it can serve.
 *
 * A number of bios is always out: whatever comes back is submitted again at once, in lists, at the
 * next place of its stream or anywhere. More than the ring takes is overload: the rest waits, as if
 * bios arrived faster than they are served, and what would come on top of it stays with the caller.
 * The three paths take turns in one run.
 */
#ifndef BENCH_SEEDS_MWF_REAL_H
#define BENCH_SEEDS_MWF_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "mwf_guest.h"
#include "stats.h"

struct real_cell {
	uint32_t places; /* enum mwf_places */
	uint32_t list;   /* bios of one */
	uint32_t out;    /* bios */
	bool threads;    /* two */
};

struct real_result {
	double rate[MWF_PATHS];        /* bios a second; medians */
	double per_request[MWF_PATHS]; /* bios of one request; medians */
	struct summary ratio;          /* merge when full over the better one of the others */
};

/*
 * Rounds of a slice for each path, until there are `rounds`, or up to three times as many while
 * the interval is wider than `wide`.
 */
struct real_result mwf_real(const struct real_cell *cell, uint32_t rounds, double wide);

#endif
