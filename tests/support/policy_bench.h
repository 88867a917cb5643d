/* SPDX-License-Identifier: BSD-3-Clause */
/* policy_bench.h: what the tests of the indirect policies share: asking which way requests went. */
#ifndef TESTS_POLICY_BENCH_H
#define TESTS_POLICY_BENCH_H

#include "driver_bench.h"

#include <stdbool.h>

static inline struct vqb_driver_counters policy_counters(const struct bench *b)
{
	struct vqb_driver_counters c;

	vqb_driver_read_counters(b->drv, &c);
	return c;
}

/* Adds a request of `n` segments; answers 1 if it went through a table, 0 if direct. */
static inline unsigned policy_add(struct bench *b, uint32_t n)
{
	uint64_t before = policy_counters(b).indirect;

	bench_add(b, 1, 1, n - 1);
	return (unsigned)(policy_counters(b).indirect - before);
}

/* All that is out comes back. */
static inline void policy_drain(struct bench *b)
{
	struct vqb_done done[64];

	vqb_driver_publish(b->drv);
	bench_serve(b);
	while (vqb_driver_reap(b->drv, done, 64))
		continue;
	assert_int_equal(vqb_driver_in_flight(b->drv), 0);
	assert_int_equal(vqb_driver_free(b->drv), b->raw.size);
}

/*
 * A ring of `size` with a table for each entry, as long as the ring; policy fields are the test's.
 */
static inline void policy_configure(struct bench *b, uint32_t size, uint32_t kind)
{
	bench_configure(b, size, EVENT_MODE | INDIRECT, size, size, kind);
}

static inline void policy_open(struct bench *b, uint32_t size, uint32_t kind)
{
	policy_configure(b, size, kind);
	bench_start(b);
}

#endif
