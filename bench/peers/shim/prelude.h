/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prelude.h: comes before everything in each file of Linux's that is built in user space, and
 * supplies what the kernel's own shim (tools/virtio) lacks or does worse than a kernel would.
 */
#ifndef PEERS_PRELUDE_H
#define PEERS_PRELUDE_H

#include <stdlib.h>

/* Used by virtio_ring.c, not in the shim. */
#define data_race(expression) (expression)

/*
 * The shim's kmalloc is malloc. A kernel's is cheaper: here a free list for each power of two,
 * without a lock, since only the driver's thread allocates once the ring is made. The list's
 * number is kept in front of the block, where a kernel would ask the page.
 */
enum { POOL_LISTS = 7, POOL_SMALLEST = 64, POOL_HEADER = 16 };

struct pool_block {
	struct pool_block *next;
	unsigned long list;
};

extern struct pool_block *pool_free[POOL_LISTS];

static inline void *pool_get(unsigned long bytes)
{
	unsigned long list =
		bytes <= POOL_SMALLEST ? 0 : 58 - (unsigned long)__builtin_clzl(bytes - 1);
	struct pool_block *b;

	if (__builtin_expect(list < POOL_LISTS && pool_free[list], 1)) {
		b = pool_free[list];
		pool_free[list] = b->next;
	} else {
		b = malloc(POOL_HEADER + (list < POOL_LISTS ? POOL_SMALLEST << list : bytes));
		if (!b)
			abort();
		b->list = list;
	}
	return (char *)b + POOL_HEADER;
}

static inline void pool_put(void *p)
{
	struct pool_block *b;

	if (!p)
		return;
	b = (struct pool_block *)((char *)p - POOL_HEADER);
	if (b->list >= POOL_LISTS) {
		free(b);
		return;
	}
	b->next = pool_free[b->list];
	pool_free[b->list] = b;
}

#ifdef PEERS_KERNEL_FILE
#define malloc(bytes) pool_get(bytes)
#define free(p) pool_put(p)
#endif

#endif
