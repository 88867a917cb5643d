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

#endif
