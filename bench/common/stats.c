/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * How many of `n` sorted figures to leave out at each end for an interval of the median. Each
 * figure falls below the true median with probability 1/2, whatever the noise looks like, so the
 * number of those that do is binomial: as many are left out as have a chance of at most 2.5 %.
 */
static uint32_t left_out(uint32_t n)
{
	double term = 1, below = 0;
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		term /= 2;
	while (below + term <= 0.025) {
		below += term;
		term *= (double)(n - k) / (k + 1);
		k++;
	}
	return k ? k - 1 : 0;
}

double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double lower_decile(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 10];
}

struct summary summarize(double *v, uint32_t n)
{
	struct summary s = { .runs = n, .median = median(v, n) };
	uint32_t out = left_out(n);

	s.low = v[out];
	s.high = v[n - 1 - out];
	return s;
}
