/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.h: what a run costs in instructions of the library, driver and device side together.
 *
 * Counting them in every run would take hours. Instead each thing that can be done has a price
 * (cost.c has none of its own): bench/indirect/calibrate counts some forty short runs with
 * callgrind, `--fit` solves for the prices by least squares, and twelve further runs that took no
 * part in it show how far they are off.
 */
#ifndef BENCH_INDIRECT_COST_H
#define BENCH_INDIRECT_COST_H

#include "sim.h"

struct cost {
	double price[FEATURES];
};

/* Reads lines of instructions, requests and features; false: not enough of them. */
bool cost_fit(FILE *runs, struct cost *cost);
void cost_write(FILE *to, const struct cost *cost);
bool cost_read(FILE *from, struct cost *cost);
double cost_apply(const struct cost *cost, const struct result *r);

#endif
