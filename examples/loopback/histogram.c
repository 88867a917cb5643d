/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A value below 2 * STEPS is its own bucket. Above, with its highest bit at position b, it is
 * shifted right by b - STEP_BITS, which leaves STEPS to 2 * STEPS - 1; each shift has the next
 * STEPS buckets.
 */
#include "histogram.h"

static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift;

	if (value < UINT64_C(2) * HISTOGRAM_STEPS)
		return (uint32_t)value;
	shift = 63u - (uint32_t)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
	return shift * HISTOGRAM_STEPS + (uint32_t)(value >> shift);
}

static uint64_t top_of(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2 * HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / HISTOGRAM_STEPS - 1;
	/* The last bucket ends at 2^64 - 1, and the sum wraps to just that. */
	return ((uint64_t)(bucket - shift * HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->bucket[bucket_of(value)]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	uint32_t i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
	into->count += from->count;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t histogram_quantile(const struct histogram *h, double share)
{
	double wanted = share * (double)h->count;
	uint64_t seen = 0;
	uint32_t i;

	if (!h->count)
		return 0;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen && (double)seen >= wanted)
			return top_of(i) < h->max ? top_of(i) : h->max;
	}
	return h->max;
}
