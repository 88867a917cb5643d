/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sort.h: what lies where on the disk, in order: for requests that are joined (coalesce.c) and bios
 * that share a request (request_make.c).
 *
 * Stable, and without a branch that depends on how things lie, but for what is over a power of two:
 * of random places, such a branch would be guessed wrong half of the time.
 */
#ifndef VQB_BLOCK_SORT_H
#define VQB_BLOCK_SORT_H

#include <stdint.h>

struct sort_entry {
	uint64_t key;
	void *item;
};

/* Two arrays of `n` entries, of which the answer is the one that has what was `from`, sorted. */
struct sort_entry *vqb__sort(struct sort_entry *from, struct sort_entry *to, uint32_t n);

#endif
