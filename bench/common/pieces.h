/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.h: a measurement cut into pieces, of which those count in which nobody took the CPU. */
#ifndef BENCH_PIECES_H
#define BENCH_PIECES_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_PIECES = 1024 };

struct pieces {
	uint32_t clean, all;
	uint64_t units; /* of whatever is measured */
	double total_ns;
	bool all_threads; /* of the process, have to keep their CPUs; else the calling one */
	long preempted;   /* when this piece began: */
	double start;
	double ns[MAX_PIECES], any[MAX_PIECES]; /* per unit */
};

/* No more than MAX_PIECES: look at `all`. */
void piece_begin(struct pieces *p);
/* Is it long enough? */
bool piece_is_full(const struct pieces *p);
void piece_end(struct pieces *p, uint64_t units);

/* Per unit: what a tenth of the pieces are faster than; all of them, all taken together. */
double pieces_good_ns(struct pieces *p);
double pieces_all_ns(const struct pieces *p);

#endif
