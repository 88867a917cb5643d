/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mwf.h: one cell of the comparison of paths: a device in virtual time, and bios that arrive
 * whether it keeps up or not.
 *
 * All three paths are given the same: lists of bios, at the same moments, each submitted by one
 * vqb_blk_submit_list and published at once. A list is what a thread plugs in one system call.
 *
 *   lists      1, 8 or 32 bios, at random moments (Poisson), with no regard to what is in flight
 *   sequential each list goes on where the last one of its stream ended; there are four streams
 *   random     each bio anywhere
 *   mixed      one list in two of either kind
 *
 * The bio path sends each bio as a request of its own, the request path joins the neighbours of a
 * list, and of all that wait, the third one only what has to wait for room.
 *
 * The device takes requests as soon as they are published. Each waits for one of `parallel`
 * servers, in order, which takes a fixed time for it and half a nanosecond for a byte. What is done
 * is reaped at once. The driver takes no time: where that counts there are cells in real time
 * (mwf_real.h).
 *
 * Load is relative to what the device serves if every bio is a request of its own.
 */
#ifndef BENCH_SEEDS_MWF_H
#define BENCH_SEEDS_MWF_H

#include <stdint.h>

enum mwf_places { MWF_SEQUENTIAL, MWF_RANDOM, MWF_MIXED, MWF_PLACES };

extern const char *const mwf_place_names[MWF_PLACES];

struct mwf_cell {
	uint32_t path;   /* enum vqb_path */
	uint32_t places; /* enum mwf_places */
	uint32_t list;   /* bios of one */
	uint32_t bytes;  /* of a bio */
	uint32_t depth;
	uint32_t fixed; /* ns */
	uint32_t parallel;
	double load;
	uint64_t seed;
	uint64_t warm, measure; /* bios */
};

/* Of those bios that arrive after the first `warm` ones, or of the time in which they arrive. */
struct mwf_result {
	double throughput;        /* bytes that are done, over what arrives */
	double requests;          /* sent, for each bio that is done */
	double mean, median, p99; /* ns from arrival to completion */
	double full;              /* of all lists, those that found the ring full, or filled it */
};

struct mwf_result mwf_run(const struct mwf_cell *cell);

/* ---- all loads of a row (mwf.c) ---- */

enum { MWF_LOADS = 13, MWF_PATHS = 3 };

extern const double mwf_loads[MWF_LOADS];

struct mwf_row_result {
	struct mwf_result at[MWF_LOADS][MWF_PATHS]; /* by enum vqb_path */
};

/* `path`, `load`, `seed` and lengths of the row are not looked at. */
void mwf_row_run(const struct mwf_cell *row, uint64_t seed, struct mwf_row_result *result);

#endif
