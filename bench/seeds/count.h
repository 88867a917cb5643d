/* SPDX-License-Identifier: BSD-3-Clause */
/* count.h: instructions of the guest's side of a whole block driver. */
#ifndef BENCH_SEEDS_COUNT_H
#define BENCH_SEEDS_COUNT_H

#include "guest.h"

/* Per bio, in all calls of the driver. One thread; counted, so there is nothing to repeat. */
double count_instructions(const struct guest_plan *plan);

/* Prints those of several cases, of the parts paths and batch. */
void count_table(void);

/* Runs "PATH,ORDER,OP,SUBMIT,DEPTH,AWAIT,COUNT", for bench/seeds/instructions. */
void count_case(const char *spec);

#endif
