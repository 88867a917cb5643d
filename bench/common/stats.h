/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h: what a handful of noisy figures say. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdint.h>

/*
 * The median, and an interval that has the true one with at least 95 % (see stats.c). With fewer
 * than six figures there is no such interval; it is then all from the least to the greatest.
 */
struct summary {
	uint32_t runs;
	double median, low, high;
};

/* Sorts `v`, which has `n` figures, at least one. */
struct summary summarize(double *v, uint32_t n);

/* How wide the interval is, as a share of the median. */
static inline double summary_width(const struct summary *s)
{
	return (s->high - s->low) / s->median;
}

/* The same, for one figure alone. */
double median(double *v, uint32_t n);
double lower_decile(double *v, uint32_t n);

#endif
