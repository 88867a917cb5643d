/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * indirect.h: when a driver puts a request's segments into a table of its own.
 *
 * A direct request takes one ring descriptor per segment. An indirect one takes a single ring
 * descriptor, and one table of the queue's pool until it completes: more requests fit into the
 * ring, for the price of one more memory access on the device. A policy says which to prefer.
 *
 * Rules that hold under every policy: without VQB_F_INDIRECT_DESC, or without a pool, all goes
 * direct. One segment always goes direct. A request that has no free table, or is longer than
 * a table, goes direct if that fits. What the free descriptors can't hold goes through a table,
 * except under "never".
 */
#ifndef VQBLK_INDIRECT_H
#define VQBLK_INDIRECT_H

#include <vqblk/api.h>

VQB_C_BEGIN

enum vqb_indirect_kind {
	VQB_INDIRECT_ALWAYS = 0, /* whatever has more than one segment */
	VQB_INDIRECT_NEVER = 1,
};

/* A policy is data; the driver copies it. */
struct vqb_indirect_policy {
	uint32_t struct_size; /* sizeof(struct vqb_indirect_policy) */
	uint32_t kind;        /* enum vqb_indirect_kind */
};

/*
 * Bytes of a pool of `tables` tables for up to `segments` segments each. The pool must be
 * aligned to 16; a driver uses no more tables than the ring has entries.
 */
#define VQB_TABLES_BYTES(tables, segments) ((size_t)16 * (tables) * (segments))

VQB_C_END

#endif
