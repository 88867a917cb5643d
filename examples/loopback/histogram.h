/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histogram.h: how values are spread, in constant memory.
 *
 * Log-linear: each power of two is cut into 32 buckets of equal width, so a value is known to
 * about 3 %, whether it is a microsecond or an hour; values below 64 are exact.
 */
#ifndef LOOPBACK_HISTOGRAM_H
#define LOOPBACK_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEP_BITS 5u
#define HISTOGRAM_STEPS (1u << HISTOGRAM_STEP_BITS)
#define HISTOGRAM_BUCKETS ((65u - HISTOGRAM_STEP_BITS) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t count, max;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The value that `share` (0 to 1) of all values don't exceed: the top of its bucket, and never
 * more than the largest value seen. 0 where nothing was added.
 */
uint64_t histogram_quantile(const struct histogram *h, double share);

#endif
