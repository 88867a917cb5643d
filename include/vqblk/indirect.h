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
 * except under "never". So a policy is asked only where both ways are open.
 *
 * The adaptive policy, which is what a driver has without being told, knows two ways to behave:
 *
 *   sparing  direct as long as the ring then still has an entry for each request that is likely
 *            to come beside it: as many as were out at once in this window of requests or the
 *            one before. After an add that found no room, as many as the ring has entries.
 *   plain    direct whenever it fits.
 *
 * Either way a table is preferred to descriptors that do not lie in one piece of the ring, unless
 * that is because they go round its end, and more than eight entries are left up to there: tables
 * take one of them each, so request after request would need one, which costs more than the pieces.
 * What is longer than 16 segments and an eighth of the ring would go round too often: a table.
 *
 * It starts sparing. Room is worth its price only if the device does more with more in flight,
 * so while tables are in use it tries being plain for a window now and then, and stays so if as
 * many requests come back per tick of the clock, for no more notifications owed; and the other way
 * round. A trial that is clearly slower is cut short, the next one comes after twice the time, and
 * a load that has changed starts this over. Without a clock it remains sparing.
 */
#ifndef VQBLK_INDIRECT_H
#define VQBLK_INDIRECT_H

#include <vqblk/api.h>

VQB_C_BEGIN

enum vqb_indirect_kind {
	VQB_INDIRECT_ADAPTIVE = 0,  /* as above */
	VQB_INDIRECT_ALWAYS = 1,    /* whatever has more than one segment */
	VQB_INDIRECT_NEVER = 2,     /* nothing, not even what fits no other way */
	VQB_INDIRECT_THRESHOLD = 3, /* from `threshold` segments on */
	/*
	 * A heuristic of 2014, to compare with: if as many requests of this size came as are
	 * missing to the most that were out at once, would they overflow the free descriptors?
	 * That most is halved each time the available ring wraps.
	 */
	VQB_INDIRECT_DECAY = 4,
	VQB_INDIRECT_CUSTOM = 5, /* what `choose` says */
};

/* What a policy of the caller's sees: the request, and the queue before it is added. */
struct vqb_indirect_load {
	uint32_t segments;  /* of the request: more than one, and no more than `free` */
	uint32_t size;      /* of the ring */
	uint32_t free;      /* descriptors of it */
	uint32_t in_flight; /* requests added and not reaped */
	uint32_t tables;    /* free ones: at least one */
	uint32_t zero;
};

/*
 * A policy is data; the driver copies it. What its kind does not use must be 0 or NULL, but for
 * `context`.
 */
struct vqb_indirect_policy {
	uint32_t struct_size; /* sizeof(struct vqb_indirect_policy) */
	uint32_t kind;        /* enum vqb_indirect_kind */
	uint32_t threshold;   /* THRESHOLD: segments, not 0 */
	uint32_t zero;
	/*
	 * CUSTOM: not 0 for a table, 0 for direct. Runs inside add, on the queue's thread, and must
	 * not call the driver. Either answer is safe.
	 */
	uint32_t (*choose)(void *context, const struct vqb_indirect_load *load);
	/*
	 * ADAPTIVE: a clock that does not run backwards, in any unit that is fine compared to a
	 * request; read inside reap once per window and in trials. NULL: the machine's counter.
	 */
	uint64_t (*clock)(void *context);
	void *context; /* for both */
};

/*
 * Bytes of a pool of `tables` tables for up to `segments` segments each. The pool must be
 * aligned to 16; a driver uses no more tables than the ring has entries.
 */
#define VQB_TABLES_BYTES(tables, segments) ((size_t)16 * (tables) * (segments))

VQB_C_END

#endif
