/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real.h: a dozen cells with two real threads on two CPUs, both polling, in real time: a check that
 * virtual time does not lie. The device serves in real time, too, by the same clock.
 */
#ifndef BENCH_INDIRECT_REAL_H
#define BENCH_INDIRECT_REAL_H

#include <stdint.h>
#include <stdio.h>

#include "stats.h"

struct real_cell {
	uint32_t segments, depth, ring, parallel;
	uint64_t service; /* ns; 0: instant */
};

enum { REAL_LONGEST = 66, REAL_PARALLEL = 128 };

/*
 * Prints a line for each cell: the rates, adaptive over the better of never and always with its
 * interval, and whether they agree, which is that the interval reaches 0.98, and that it lies above
 * that or is at most 0.1 wide. The answer is how many do; `low` is how many have all of the
 * interval there.
 */
struct summary real_run(FILE *to);

/* The same for any one cell. */
void real_one(const struct real_cell *cell);

/* The goal that all of them agree. */
void real_claim(void);

#endif
