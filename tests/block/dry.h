/* SPDX-License-Identifier: BSD-3-Clause */
/* dry.h: brings a queue with a coalescer to where it no longer looks for neighbours. */
#ifndef TESTS_DRY_H
#define TESTS_DRY_H

#include "blk_bench.h"

enum { DRY = 256, PAST = 480 }; /* as in blk_queue.h */

/* Request `r`, which has come back, once more, at another sector. */
static inline void dry_again(struct bench *b, unsigned r, uint64_t sector)
{
	poke(b->asked[r].at[0] + 8, sector, 8);
	raw_offer(&b->ring, b->offered++, b->asked[r].head);
}

/* One request at a time, none of which has a neighbour, and each done at once. */
static inline void dry_out(struct bench *b, unsigned requests)
{
	unsigned r = bench_read(b, 900, 1);

	for (unsigned i = 1;; i++) {
		bench_run(b);
		if (b->spy.manual && b->spy.holds) {
			spy_finish(&b->spy, b->spy.holds - 1);
			bench_run(b);
		}
		assert_int_equal(bench_status(b, r), VQB_BLK_S_OK);
		if (i == requests)
			return;
		b->asked[r].at[2][0] = BLANK;
		dry_again(b, r, 900 + i % 2 * 10);
	}
}

#endif
