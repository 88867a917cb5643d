/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h: the driver (guest) side of one split virtqueue.
 *
 * A driver object owns the descriptor table and the available ring and trusts nothing that the
 * device writes: all it needs to know about a request it keeps in private memory. It allocates
 * nothing; it lives in memory that the caller gives at init and never moves.
 *
 * The life of a request: `add` builds its chain and remembers the caller's token; `publish`
 * makes all added chains visible at once and says whether the device has to be notified; the
 * device does its work; `reap` hands the tokens back with the number of bytes written.
 *
 *   struct vqb_segment seg[2] = { { .addr = out, .len = 16 }, { .addr = in, .len = 512 } };
 *   status = vqb_driver_add(drv, seg, 1, 1, request);   1 the device reads, 1 it writes
 *   if (vqb_driver_publish(drv) & VQB_NOTIFY)
 *           notify_device();
 *   ...
 *   do {
 *           n = vqb_driver_reap(drv, done, 32);
 *           for (i = 0; i < n; i++)
 *                   finish(done[i].token, done[i].len);
 *   } while (n || (vqb_driver_arm(drv) & VQB_MORE));
 *   if (vqb_driver_state(drv))
 *           broken: see below
 *
 * Threads: one at a time per driver object; different queues, and the device side of the same
 * ring, are independent. Every fence is inside these calls. Costs are for hot caches; "O(n)" counts
 * segments unless it says otherwise. Where no cost is given, it is constant, and there is no fence.
 *
 * A device that breaks the rules of the used ring (an id out of range, not lent out, or given
 * back twice; more completions than requests) makes the queue BROKEN: nothing is reaped any
 * more, nothing is freed, `add` answers VQB_E_BROKEN, and nothing answers VQB_MORE. Reset the
 * device, then vqb_driver_reset(drv, NULL), vqb_driver_detach to get the tokens back,
 * vqb_driver_reset with a ring to go on. The same three steps serve an orderly reset.
 */
#ifndef VQBLK_DRIVER_H
#define VQBLK_DRIVER_H

#include <vqblk/api.h>
#include <vqblk/indirect.h>
#include <vqblk/ring.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_driver; /* opaque */

struct vqb_driver_config {
	uint32_t struct_size; /* sizeof(struct vqb_driver_config) */
	uint32_t max_size;    /* largest ring it may ever get; 0: ring.size, then not 0 */
	struct vqb_ring ring; /* size 0: none yet, vqb_driver_reset brings it */
	/*
	 * Indirect tables, this queue's alone while it lives: as many as fit (VQB_TABLES_BYTES,
	 * indirect.h), which may be none, at most max_size of them. Aligned to 16 at both
	 * addresses. bytes 0 or max_table 0: no tables.
	 */
	struct vqb_dma tables;
	uint32_t max_table; /* segments a table holds; more than max_size counts as max_size */
	uint32_t zero;
	const struct vqb_indirect_policy *policy; /* copied; NULL: adaptive */
	const struct vqb_cache_ops *cache; /* kept; NULL: the ring and the tables are coherent */
};

/* Memory of a driver for rings of up to `size` entries, for static allocation. */
#define VQB_DRIVER_BYTES(size) VQB_ROUND_UP(512u + 24u * (size_t)(size))

/*
 * Bytes that vqb_driver_init needs for this configuration: at most VQB_DRIVER_BYTES of its
 * largest ring. 0: the configuration is invalid. Any thread.
 */
VQB_API size_t vqb_driver_size(const struct vqb_driver_config *config);

/*
 * Makes a driver in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long as
 * the driver; there is nothing to destroy. The ring's three parts are set to their first state
 * (all zero; the event words only with EVENT_IDX, they don't exist without), so the device must
 * not be running yet. The configuration is not kept.
 *
 * VQB_OK with the driver in *out.
 * VQB_E_INVALID: a size, an alignment, a feature, a field that must be zero, or a part that is
 *   NULL. If vqb_driver_size answers 0 it is in the configuration, else it is `mem`.
 * VQB_E_TOOBIG: `bytes` is less than vqb_driver_size. Cost: O(ring size).
 */
VQB_API int32_t vqb_driver_init(void *mem, size_t bytes, const struct vqb_driver_config *config,
				struct vqb_driver **out);

/*
 * Adds one request: `readable` segments that the device reads, then `writable` ones that it
 * writes. The segment array is free again on return; the buffers are the device's until the
 * token comes back. The device sees nothing before expose, publish or turn.
 *
 * VQB_OK.
 * VQB_E_NOSPC: not enough descriptors or tables now; something is in flight, so reap and retry.
 * VQB_E_TOOBIG: more segments than the ring has entries, or more than 2^32 bytes in all.
 * VQB_E_INVALID: no segment, one of length 0 or beyond 2^64, `zero` not 0, or no ring.
 * VQB_E_BROKEN. On failure nothing has changed but, for a segment that is found wrong, the
 * contents of descriptors that are free. Cost: O(n), no fence, no shared load.
 */
VQB_API int32_t vqb_driver_add(struct vqb_driver *drv, const struct vqb_segment *seg,
			       uint32_t readable, uint32_t writable, void *token);

/* What vqb_driver_add is told of a request. */
struct vqb_submission {
	const struct vqb_segment *seg;
	uint32_t readable, writable;
	void *token;
};

/*
 * Adds `n` requests in order, as vqb_driver_add does each, and says in *added how many. A list
 * costs a seventh less than one by one, since entry and exit are paid once.
 *
 * VQB_OK: all of them. Else what vqb_driver_add says of list[*added], which is not added, nor is
 * what comes after it.
 */
VQB_API int32_t vqb_driver_add_list(struct vqb_driver *drv, const struct vqb_submission *list,
				    uint32_t n, uint32_t *added);

/*
 * Makes what was added visible, for a device that polls: one index store, no fence, no
 * decision. A later publish decides for all that was exposed since the last decision.
 */
VQB_API void vqb_driver_expose(struct vqb_driver *drv);

/*
 * Exposes, then decides whether the device asked to be notified of anything exposed since the
 * last decision: VQB_NOTIFY or VQB_QUIET. The first decision after init or reset is VQB_NOTIFY,
 * even with nothing new (without EVENT_IDX: unless the device says no). Sending is the caller's,
 * outside any lock.
 * Cost: one store, one full fence, one shared load; nothing where nothing is new.
 */
VQB_API uint32_t vqb_driver_publish(struct vqb_driver *drv);

/*
 * Publishes and arms in one: VQB_NOTIFY as publish, VQB_MORE as arm.
 * Cost: two stores, one full fence, two shared loads.
 */
VQB_API uint32_t vqb_driver_turn(struct vqb_driver *drv);

/*
 * Asks to be notified of the next completion. VQB_MORE: completions are there already, so do not
 * sleep but reap (a notification may or may not come for them); else VQB_QUIET.
 * Cost: one store, one full fence, one shared load.
 */
VQB_API uint32_t vqb_driver_arm(struct vqb_driver *drv);

/*
 * As arm, but not for the next completion: for one that is about as far away as `intent`
 * (enum vqb_postpone) says. VQB_MORE: that many are there already. Without EVENT_IDX there is
 * no such choice, and it is arm. An unknown intent is taken as VQB_POSTPONE_SHORT. Cost: as arm.
 */
VQB_API uint32_t vqb_driver_postpone(struct vqb_driver *drv, uint32_t intent);

/* Asks not to be notified. Advice only: notifications without a cause must be coped with. */
VQB_API void vqb_driver_disarm(struct vqb_driver *drv);

/*
 * What to write to the device's notification register: the queue's number, and with
 * VQB_F_NOTIFICATION_DATA above it, in bits 16 to 31, the available index that is exposed now.
 * With VQB_F_ORDER_PLATFORM publish and turn have ordered that store behind the ring already;
 * otherwise the barrier that a device register needs is the caller's.
 */
VQB_API uint32_t vqb_driver_notification(const struct vqb_driver *drv);

enum vqb_done_flag {
	VQB_DONE_OVERLONG = 1, /* the device claimed more bytes than it was lent; len is cut */
	VQB_DONE_IMPLIED = 2,  /* IN_ORDER: covered by a later one's element; written in full */
};

/* A request that has come back. Only the first `len` writable bytes can be relied on. */
struct vqb_done {
	void *token;
	uint32_t len;   /* bytes written, never more than the request's writable bytes */
	uint32_t flags; /* enum vqb_done_flag */
};

/*
 * Takes back up to `max` completed requests into `done` and returns how many, each exactly once,
 * in the device's order. 0: none now, or no ring, or BROKEN (ask vqb_driver_state).
 * Looks at the device's index once per call at most, and only when what it saw before is used up:
 * call again after `max`. After fewer, the next arm or turn says whether there are more. With
 * EVENT_IDX nothing is asked for by reaping: arm, turn or postpone before each sleep.
 * Cost: O(requests), no fence.
 */
VQB_API uint32_t vqb_driver_reap(struct vqb_driver *drv, struct vqb_done *done, uint32_t max);

/*
 * With `ring` NULL: the device was reset, or this queue was, and no longer touches the ring. The
 * driver lets go of it, touches it no more, and detach becomes possible. With a ring (the old
 * one, a new one, another size up to max_size): starts over on it as after init.
 *
 * VQB_OK. VQB_E_INVALID: the ring is not usable. VQB_E_BUSY: tokens are still out; reset to
 * NULL and detach them first. Cost: O(ring size).
 */
VQB_API int32_t vqb_driver_reset(struct vqb_driver *drv, const struct vqb_ring *ring);

/*
 * Changes when requests go through tables (indirect.h); NULL: adaptive. What the old policy has
 * learnt is forgotten. VQB_OK. VQB_E_INVALID: the policy is not usable. VQB_E_BUSY: requests are
 * in flight. Nothing has changed then.
 */
VQB_API int32_t vqb_driver_set_policy(struct vqb_driver *drv,
				      const struct vqb_indirect_policy *policy);

/*
 * After reset to NULL, hands back the tokens of requests that never completed, each once, in no
 * particular order: up to `max` into `tokens`, how many in *n. What became of them is unknown:
 * they may or may not have been done.
 *
 * VQB_OK: these were the last. VQB_E_NOSPC: there are more; call again.
 * VQB_E_BUSY: the queue has a ring, and its device may still write to the buffers.
 * Cost: O(ring size).
 */
VQB_API int32_t vqb_driver_detach(struct vqb_driver *drv, void **tokens, uint32_t max, uint32_t *n);

/*
 * The transport has seen DEVICE_NEEDS_RESET: nothing more is added, published or reaped (add and
 * state answer VQB_E_NEEDS_RESET) until the three steps of a reset. Nothing without a ring, and a
 * queue that is BROKEN stays that.
 */
VQB_API void vqb_driver_needs_reset(struct vqb_driver *drv);

/* Where an idle queue stands, to be kept while the system sleeps or another program takes over. */
struct vqb_driver_saved {
	uint16_t avail; /* next available entry to write */
	uint16_t used;  /* next used entry to reap: the same */
	uint16_t desc;  /* next descriptor to take: under IN_ORDER the device may count on it */
	uint16_t zero;
};

/*
 * Reads out where the queue stands. The device keeps its state and the ring its contents.
 * VQB_OK. VQB_E_BUSY: requests are in flight. Else as vqb_driver_state.
 */
VQB_API int32_t vqb_driver_save(const struct vqb_driver *drv, struct vqb_driver_saved *saved);

/*
 * Goes on with a ring whose device was not reset, at saved indices; nothing is written to it. A
 * notification is owed by the next publish. The driver must have no ring, or nothing in flight.
 *
 * VQB_OK. VQB_E_INVALID: the ring is not usable, the two indices differ, `desc` is outside of it,
 * `zero` is not 0, or the ring in memory does not stand where they say. VQB_E_BUSY: tokens are
 * still out. Cost: O(ring size).
 */
VQB_API int32_t vqb_driver_restore(struct vqb_driver *drv, const struct vqb_ring *ring,
				   const struct vqb_driver_saved *saved);

/* VQB_OK: works. VQB_E_INVALID: has no ring. VQB_E_BROKEN, VQB_E_NEEDS_RESET: until reset. */
VQB_API int32_t vqb_driver_state(const struct vqb_driver *drv);

/* Free descriptors of the ring. */
VQB_API uint32_t vqb_driver_free(const struct vqb_driver *drv);

/* Requests added and not reaped. */
VQB_API uint32_t vqb_driver_in_flight(const struct vqb_driver *drv);

/* Completions that reap would find now, by the device's word. Reads the device's index. */
VQB_API uint32_t vqb_driver_pending(const struct vqb_driver *drv);

/*
 * The request that has waited longest: its token in *token, and as the answer how many requests
 * were added since, itself included. 0, and *token is left alone: nothing is in flight.
 * For watchdogs. Cost: O(ring size).
 */
VQB_API uint32_t vqb_driver_oldest(const struct vqb_driver *drv, void **token);

/* What has happened since init, or since the counters were last cleared. */
struct vqb_driver_counters {
	uint64_t requests;    /* added */
	uint64_t descriptors; /* of those, in the ring and in tables, the referring ones included */
	/* Which way requests went, and why: in all as many as requests were added. */
	uint64_t direct_single;    /* one segment */
	uint64_t direct_chosen;    /* by the policy */
	uint64_t direct_no_table;  /* no table was free or long enough, or there are none at all */
	uint64_t indirect_chosen;  /* by the policy */
	uint64_t indirect_whole;   /* directly it would have lain in pieces, which costs more */
	uint64_t indirect_no_room; /* more segments than free descriptors */
	uint64_t indirect;         /* the last three together */
	uint64_t no_room;          /* adds that were answered VQB_E_NOSPC */
	uint64_t completions;      /* reaped */
	uint64_t overlong;         /* of those, with a length cut to the capacity */
	uint64_t notified;         /* decisions: VQB_NOTIFY */
	uint64_t suppressed;       /* decisions: VQB_QUIET, though something was new */
};

/* Copies all of them to *out. */
VQB_API void vqb_driver_read_counters(const struct vqb_driver *drv,
				      struct vqb_driver_counters *out);

/* Sets all of them to 0, which nothing else does but init. */
VQB_API void vqb_driver_clear_counters(struct vqb_driver *drv);

VQB_C_END

#endif
