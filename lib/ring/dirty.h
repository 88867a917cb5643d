/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirty.h: tells the memory map's log where this queue's device has written.
 *
 * The log wants guest addresses, a piece has a host one. The way back is found when it is wanted,
 * not kept with every piece: most queues are never logged, and where a hook translates, the
 * address that the driver gave isn't the one that a log is about.
 */
#ifndef RING_DIRTY_H
#define RING_DIRTY_H

#include <stdbool.h>

#include <vqblk/memory.h>
#include <vqblk/ring.h>

/* Where the last byte was found. */
struct dirty {
	uint64_t addr, len; /* len 0: nowhere */
	const char *host;
};

/* `len` bytes at `host` were written; the map has a log. */
void vqb__dirty_mark(struct dirty *d, const struct vqb_memory *memory, const void *host,
		     uint64_t len);

/* The first `bytes` bytes of so many pieces were. */
void vqb__dirty_mark_pieces(struct dirty *d, const struct vqb_memory *memory,
			    const struct vqb_piece *piece, uint32_t pieces, uint64_t bytes);

#endif
