/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: one chain of descriptors, from its head to its last buffer, as pieces of host memory.
 *
 * The walk trusts nothing: each descriptor is fetched once, into registers, and whatever it says
 * is checked before it is used. It visits a bounded number of descriptors, counted as such:
 * neither the bytes nor the pieces of a chain bound it, since both can be zero (K02, K14).
 *
 * There are two walks. The complete one knows every chain of every ring. The plain one, plain.h,
 * knows the usual chain of a ring that is little-endian and coherent: buffers that each lie in one
 * of the two extents used last, in the ring or in one table. At a descriptor that it does not know
 * it hands what it has so far, and that descriptor, to the complete one.
 */
#ifndef RING_WALK_H
#define RING_WALK_H

#include <vqblk/device.h>

#include "map.h"

/* What is the same for all chains of a queue. */
struct walk_rules {
	const struct desc *desc; /* the ring's table */
	uint32_t limit;          /* longest chain, and longest table */
	uint32_t max_pieces;
	uint32_t most; /* the least of the three: what a chain without a table may have */
	uint32_t past; /* of the ring: plain_past of its size */
	uint32_t mode;
	bool indirect; /* VQB_F_INDIRECT_DESC was negotiated */
	const struct vqb_cache_ops *cache;
};

/* A descriptor table: the ring's, or an indirect one. */
struct table {
	const struct desc *host; /* NULL: not in one aligned stretch of host memory, use addr */
	uint64_t addr;
	uint32_t count;
};

/* The private copy of one descriptor, and where it was. */
struct copy {
	uint64_t addr, rest;
	uint32_t at;
};

/* The complete walk: a chain so far. */
struct walk {
	/* set before */
	const struct walk_rules *rules;
	struct map *map;
	struct vqb_need *need;   /* the caller's */
	struct vqb_piece *piece; /* the first one to fill */
	uint32_t room;           /* pieces that it may have */
	/* as far as it has come */
	struct copy d;   /* the descriptor that is next */
	uint32_t reads;  /* descriptors */
	uint32_t tables; /* 1: it has one */
	struct table table;
	bool indirect;     /* that is an indirect one */
	uint32_t access;   /* to the buffers that are next */
	uint32_t direct;   /* descriptors before the one that refers to the table, or so far */
	uint32_t left;     /* descriptors that there may still be */
	uint32_t pieces;   /* also those for which there was no room */
	uint32_t readable; /* of those */
	uint64_t bytes, read_bytes;
	struct vqb_reason reason; /* why it is bad */
};

/* More than this is too long a chain. */
#define WALK_BYTES_MAX (UINT64_C(1) << 32)

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

VQB_TINY struct vqb_piece *pieces_behind(const struct vqb_piece *from, size_t bytes)
{
	return behind(from, bytes);
}

/*
 * Walks the chain at `head`, which is inside the ring, and says in `chain` what it is, but for the
 * ticket. VQB_OK, VQB_E_BAD_CHAIN with w->reason, VQB_E_NOSPC or VQB_E_FAULT with *w->need.
 */
int32_t vqb__walk_chain(struct walk *w, uint32_t head, struct vqb_chain *chain);

/* The same from where the plain walk has come to. */
struct plain;
VQB_COLD int32_t vqb__walk_from(struct walk *w, const struct plain *plain, struct vqb_chain *chain);

#endif
