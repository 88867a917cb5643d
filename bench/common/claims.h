/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claims.h: what a bench answers to --claims: for each goal one line of JSON, and nothing else.
 *
 *   {"claim":"ring.add_instr","value":93.000,"goal":80.000,"better":"lower","met":false,
 *    "runs":1,"low":93.000,"high":93.000}
 *
 * (in one line). `value` is the median over the rounds of this run, `low` to `high` its interval
 * (stats.h). `met` goes by the value alone, but for goals of which bench/README.md says otherwise.
 */
#ifndef BENCH_CLAIMS_H
#define BENCH_CLAIMS_H

#include <stdbool.h>

#include "stats.h"

enum better { LOWER, HIGHER };

void claim_print(const char *name, double goal, enum better better, struct summary got);

/* For a goal that has another way to be met. */
void claim_print_judged(const char *name, double goal, enum better better, struct summary got,
			bool met);

/* A ratio whose interval is wider says nothing. */
#define WIDEST 0.1

struct contender {
	const char *name;
	struct summary got;
};

/*
 * For a goal, HIGHER, that all of several have to reach: the worst of them. The worst of several is
 * below 1 where all are 1, by chance alone: so each is judged by itself, and meets it if its
 * interval does and is not too wide to tell. Those that don't are named on standard error.
 */
void claim_print_worst(const char *name, double goal, const struct contender *list, uint32_t n);

#endif
