/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h: the device (host) side of one split virtqueue.
 *
 * A device object owns the used ring and trusts nothing that the driver writes. Each shared field
 * is fetched once, checked, and then used from the private copy. It allocates nothing; it lives
 * in memory that the caller gives at init.
 *
 * The life of a chain: `take` walks it, resolves its buffers to pieces of host memory and gives a
 * ticket; the caller does the work, in any order; `put` returns the ticket with the number of
 * bytes written; `publish` makes all that was put visible at once and says whether the driver
 * has to be notified.
 *
 *   do {
 *           status = vqb_device_take(dev, chain, 32, piece, 1024, &n, &need);
 *           if (status && !n)
 *                   n = !vqb_device_reject(dev, chain);   (unmapped, or over 1024 pieces)
 *           for (i = 0; i < n; i++)
 *                   vqb_device_put(dev, chain[i].ticket, chain[i].status ? 0 : serve(&chain[i]));
 *           answer = vqb_device_turn(dev);
 *           if (answer & VQB_NOTIFY)
 *                   notify_driver();
 *   } while (answer & VQB_MORE);
 *   if (vqb_device_state(dev, &why))
 *           broken: set DEVICE_NEEDS_RESET; vqb_rule_name(why.rule) says it
 *
 * A chain that breaks the rules of the format is delivered with status VQB_E_BAD_CHAIN, no pieces
 * and the reason; put it with length 0. Damage to the ring itself makes the queue BROKEN: nothing
 * more is taken, but put and publish still return what is out. A queue without a ring takes
 * nothing and touches no memory.
 *
 * Tickets carry a sequence number that runs on across resets, so a completion that comes late is
 * recognised: put answers VQB_E_STALE and nothing is written. Ask vqb_device_holds before writing
 * to guest memory long after take.
 *
 * IN_ORDER: where the driver has accepted it, chains may still be put in any order; the device
 * holds back what is put early. The driver sees the finished prefix, in the order of the takes,
 * with one used entry for a batch of chains that were written to their last byte, and whatever
 * chain comes after those.
 *
 * Tracking: with memory that outlives the process (struct vqb_tracking), a process that is killed
 * at any instruction can be followed by another, which takes again what was in flight, in the
 * order of the first takes, before anything new. Nothing is lost, and nothing is completed twice;
 * but a chain whose completion the driver did not see is served twice, so serving must bear that,
 * as reads, writes and flushes of a disk do.
 *
 * Migration: with a log in the memory map, the device tells it of what it writes to the used ring,
 * and the caller tells it, by vqb_device_log, of what it writes to buffers.
 *
 * Threads: one at a time per device object; different queues, and the driver side of the same
 * ring, are independent. Every fence is inside these calls. Costs are for hot caches. Where none is
 * given, it is constant, and there is no fence.
 */
#ifndef VQBLK_DEVICE_H
#define VQBLK_DEVICE_H

#include <vqblk/api.h>
#include <vqblk/memory.h>
#include <vqblk/ring.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_device; /* opaque */

/*
 * A tracking area: memory that outlives the process, for one queue; NULL and 0 for none. Aligned
 * to 8, of VQB_TRACKING_BYTES of the largest ring. New: all zero (only the version, 16 bits at byte
 * 8, is looked at to tell). Afterwards the device's alone: its layout is that of vhost-user's
 * in-flight memory for split rings, version 1, so another implementation may leave it to this one,
 * and take it over.
 */
struct vqb_tracking {
	void *host;
	size_t bytes;
};

/* Of one queue; the next one's may follow. */
#define VQB_TRACKING_BYTES(size) VQB_ROUND_UP(16u + 16u * (size_t)(size))

struct vqb_device_config {
	uint32_t struct_size; /* sizeof(struct vqb_device_config) */
	uint32_t max_size;    /* largest ring it may ever get; 0: ring.size, then not 0 */
	/*
	 * Longest chain, in descriptors: direct ones and table entries together, also the longest
	 * table, whether used up or not. 0: the ring's size.
	 */
	uint32_t max_chain;
	/*
	 * Most pieces in one chain: a chain with more is a bad one. 0: no limit, so a driver whose
	 * memory is finely cut can ask for more room than the caller has, until rejected, and have
	 * up to 2^32 bytes looked up in vain: set it where a hook hands out small extents.
	 */
	uint32_t max_pieces;
	struct vqb_ring_at ring; /* size 0: none yet, reset or restore brings it */
	const struct vqb_memory *memory;
	const struct vqb_cache_ops *cache; /* kept; NULL: the ring and tables are coherent */
	struct vqb_tracking tracking;      /* used until the device is no longer called */
};

/* Memory of a device for rings of up to `size` entries, for static allocation. */
#define VQB_DEVICE_BYTES(size) VQB_ROUND_UP(512u + 32u * (size_t)(size))

/*
 * Bytes that vqb_device_init needs for this configuration: at most VQB_DEVICE_BYTES of its
 * largest ring. 0: the configuration is invalid. Any thread.
 */
VQB_API size_t vqb_device_size(const struct vqb_device_config *config);

/*
 * Makes a device in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long as
 * the device; there is nothing to destroy. The ring, if there is one, is resolved through the
 * memory map and starts at index 0; nothing is written to it. The map is kept and must outlive
 * the device or be replaced; the configuration is not kept.
 *
 * With a ring and a tracking area that is not new, the queue goes on where the area and the used
 * ring's index say instead. What the area says is checked: its own features field (0), version,
 * size, the last batch's head and all heads it leads to, its length against the used ring's index,
 * the flag of each other entry, and that the counters of chains in flight are below 2^63 and all
 * different. Padding, and what entries hold that are not in flight, is not looked at. If the used
 * ring is a batch ahead of the area, the area is mended. Then take finds the chains in flight, the
 * oldest first. Serve once before sleeping, since a notification may have been lost with the old
 * process; the first publish or turn owes the driver one. The area does not say which features the
 * ring was used with: go on with the same ones, IN_ORDER above all.
 *
 * VQB_OK with the device in *out.
 * VQB_E_INVALID: a size, an alignment, a feature, a field that must be zero, the memory map, or
 *   what the tracking area says: then it is damaged, or not of this ring's present life. If the
 *   driver has started over meanwhile, zero the area and init again. If vqb_device_size answers 0
 *   it is in the configuration.
 * VQB_E_FAULT: a part of the ring is not mapped to its last byte, or not in one stretch of host
 * memory. VQB_E_TOOBIG: `bytes` is less than vqb_device_size. Cost: O(ring size + extents).
 */
VQB_API int32_t vqb_device_init(void *mem, size_t bytes, const struct vqb_device_config *config,
				struct vqb_device **out);

/*
 * Which rule was broken, for a bad chain and for a broken ring. Of a chain that breaks several,
 * it is one.
 */
enum vqb_rule {
	VQB_RULE_NONE = 0,
	/* bad chain */
	VQB_RULE_NEXT = 1,      /* next is outside the table; index: the descriptor */
	VQB_RULE_LOOP = 2,      /* longer than the chain limit, or goes round */
	VQB_RULE_ORDER = 3,     /* a readable descriptor after a writable one */
	VQB_RULE_RANGE = 4,     /* a buffer or table runs past 2^64; address: its start */
	VQB_RULE_BYTES = 5,     /* more than 2^32 bytes */
	VQB_RULE_PIECES = 6,    /* more pieces than max_pieces */
	VQB_RULE_INDIRECT = 7,  /* INDIRECT without the feature */
	VQB_RULE_NESTED = 8,    /* INDIRECT inside a table */
	VQB_RULE_BOTH = 9,      /* INDIRECT and NEXT together */
	VQB_RULE_TABLE = 10,    /* table length 0, no multiple of 16, or beyond the limit */
	VQB_RULE_REJECTED = 11, /* by vqb_device_reject */
	/* broken ring */
	VQB_RULE_HEAD = 32,   /* head is outside the ring; index: the head */
	VQB_RULE_TWICE = 33,  /* head is in flight; index: the head */
	VQB_RULE_JUMPED = 34, /* available index ran beyond the ring; index: it */
};

/* The name of a rule, such as "VQB_RULE_LOOP", or "VQB_RULE_?". The string is static. */
VQB_API const char *vqb_rule_name(uint32_t rule);

struct vqb_reason {
	uint32_t rule; /* enum vqb_rule */
	uint32_t index;
	uint64_t addr;
};

/* Names one take of one head. `seq` is never 0. */
struct vqb_ticket {
	uint16_t head, zero;
	uint32_t seq;
};

/*
 * One chain: first `readable` pieces, then `writable` ones, in `piece`, which points into the
 * array given to take. Pieces are not empty. Descriptors of length 0 leave no piece.
 */
struct vqb_chain {
	struct vqb_ticket ticket;
	struct vqb_piece *piece;
	uint32_t readable, writable;
	uint64_t read_bytes, write_bytes;
	int32_t status; /* VQB_OK, or VQB_E_BAD_CHAIN: no pieces, see reason */
	uint32_t zero;
	struct vqb_reason reason; /* set for a bad chain only */
};

/* Why take stopped. */
struct vqb_need {
	uint32_t pieces; /* VQB_E_NOSPC: pieces that the next chain takes */
	uint32_t access; /* VQB_E_FAULT: what was to be done there (enum vqb_access) */
	uint64_t addr;   /* VQB_E_FAULT: the first address that does not resolve */
};

/*
 * Takes up to `max` chains in the driver's order into `chain`, their pieces into `piece`, which
 * has `room` entries. *taken is how many, whatever the answer; those are good. The library keeps
 * neither array; the pieces must stay until whoever uses them is done.
 *
 * VQB_OK: `max` are taken, or no more are known of, or there is no ring. Looks at the driver's
 *   index once per call at most, and only when what it saw before is used up: call until it
 *   takes none, or until turn or arm no longer answers VQB_MORE.
 * VQB_E_NOSPC: the next chain takes need->pieces pieces, more than are left of `room`.
 * VQB_E_FAULT: the next chain names need->addr, which the map does not have for need->access.
 *   After these two that chain is not consumed and nothing of it is remembered: make room, or
 *   mend the map, and take again; or vqb_device_reject it.
 * VQB_E_BROKEN, VQB_E_NEEDS_RESET: nothing more is taken until reset; vqb_device_state tells why.
 *
 * `taken` and `need` must be there; `need` is written for VQB_E_NOSPC and VQB_E_FAULT only. Cost:
 * per chain at most chain-limit plus ring-size descriptor reads whatever the driver wrote, and a
 * map lookup per extent touched; with a tracking area two stores to it.
 */
VQB_API int32_t vqb_device_take(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
				struct vqb_piece *piece, uint32_t room, uint32_t *taken,
				struct vqb_need *need);

/*
 * Consumes the next chain unseen, as a bad one: after take answered VQB_E_NOSPC or VQB_E_FAULT
 * and nothing will change that. Put it with length 0.
 *
 * VQB_OK. VQB_E_INVALID: take knew of no chain beyond those that it took. VQB_E_BROKEN, as take.
 */
VQB_API int32_t vqb_device_reject(struct vqb_device *dev, struct vqb_chain *chain);

/*
 * Gives the newest taken chain back to the ring, as if it had not been taken: the next take
 * walks it anew. Repeat for the one before it.
 *
 * VQB_OK. VQB_E_STALE: not out. VQB_E_INVALID: out, but not the newest.
 */
VQB_API int32_t vqb_device_untake(struct vqb_device *dev, struct vqb_ticket ticket);

/*
 * Returns a chain to the driver, with the number of bytes that were written from its first
 * writable byte on without a gap. In any order. The driver sees it at the next expose, publish
 * or turn; under IN_ORDER, at the next one after all chains that were taken before it have been put
 * as well. The ticket is stale from now on, whether the driver sees the chain or not.
 *
 * VQB_OK. VQB_E_STALE: the ticket is not out (put before, or its queue was reset); the ring is
 * untouched. VQB_E_INVALID: more than the chain's writable bytes, or than 2^32 - 1; it is still
 * out. Cost: two stores. Under IN_ORDER, none to the ring, but a look at each chain that this put
 * lets go, each of them once.
 */
VQB_API int32_t vqb_device_put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written);

/* What vqb_device_put is told of a chain. */
struct vqb_completion {
	struct vqb_ticket ticket;
	uint32_t written;
};

/*
 * Returns `n` chains in order, as vqb_device_put does each, and answers how many: `n`, or the index
 * of the first that vqb_device_put refuses, which is not put, nor is what comes after it:
 * vqb_device_holds tells a stale one from one with too large a length.
 */
VQB_API uint32_t vqb_device_put_list(struct vqb_device *dev, const struct vqb_completion *list,
				     uint32_t n);

/* VQB_OK: the ticket is out, its buffers may be written. VQB_E_STALE: hands off. */
VQB_API int32_t vqb_device_holds(const struct vqb_device *dev, struct vqb_ticket ticket);

/*
 * Tells the memory map's log that the first `written` bytes of these pieces have been written:
 *
 *   vqb_device_log(dev, chain->piece + chain->readable, chain->writable, written);
 *
 * To be called after writing to a chain's buffers and before its put, so that not even a process
 * that is killed leaves something that the driver sees and the log does not know. Also when the
 * queue was reset in the meantime, if the buffers were written all the same. The device sees to
 * what it writes to the used ring by itself: entries before the index shows them (in expose,
 * publish and turn), index and event word after they are stored (also in arm and disarm), and the
 * whole used ring at init, reset and restore.
 *
 * Without a log it does nothing, but a caller can leave the call away: vqb_device_logs is then 0,
 * and stays so until set_memory.
 *
 * The guest address is found from the host one: in the extent of the last time, in the map's array,
 * by the map's `locate`. Where one host byte has two guest addresses, the first writable extent
 * counts. Pieces of an older map are found as long as the new one has their host memory, too; what
 * isn't found makes all memory dirty. Cost: a call of the log for each piece, and a pass over the
 * array whenever the extent changes.
 */
VQB_API void vqb_device_log(struct vqb_device *dev, const struct vqb_piece *piece, uint32_t pieces,
			    uint64_t written);

/* 1: the memory map has a log. 0: it has none. */
VQB_API uint32_t vqb_device_logs(const struct vqb_device *dev);

/*
 * Makes what was put visible, for a driver that polls. No fence, no decision.
 * With a tracking area, it costs three stores to it for each chain.
 */
VQB_API void vqb_device_expose(struct vqb_device *dev);

/*
 * Exposes, then decides whether the driver asked to be notified of anything exposed since the
 * last decision: VQB_NOTIFY or VQB_QUIET. The first decision after init, reset or restore is
 * VQB_NOTIFY even with nothing new (without EVENT_IDX: unless the driver says no).
 * Cost: one store, one full fence, one shared load; nothing where nothing is new.
 */
VQB_API uint32_t vqb_device_publish(struct vqb_device *dev);

/*
 * Publishes and arms in one: VQB_NOTIFY as publish, VQB_MORE as arm.
 * Cost: two stores, one full fence, two shared loads.
 */
VQB_API uint32_t vqb_device_turn(struct vqb_device *dev);

/*
 * Asks to be notified of the next available chain. VQB_MORE: there are some already, take them
 * rather than sleep; else VQB_QUIET.
 * Cost: one store, one full fence, one shared load.
 */
VQB_API uint32_t vqb_device_arm(struct vqb_device *dev);

/* Asks not to be notified. Advice only: notifications without a cause must be coped with. */
VQB_API void vqb_device_disarm(struct vqb_device *dev);

/*
 * Starts over: all tickets go stale, indices start at 0, BROKEN is cleared. With a ring (the old
 * one, a new one, another size up to max_size) the queue works again; with NULL it has none. What
 * the tracking area says is forgotten as well: to hand a queue to another process, stop using it.
 *
 * VQB_OK. VQB_E_INVALID, VQB_E_FAULT: as init; the queue then has no ring.
 * Cost: O(ring size).
 */
VQB_API int32_t vqb_device_reset(struct vqb_device *dev, const struct vqb_ring_at *ring);

/*
 * Takes a new map, or the same one with another generation, and resolves the ring through it.
 * Pieces that are out keep pointing into the old memory. On the queue's thread.
 *
 * VQB_OK. VQB_E_INVALID, VQB_E_FAULT: as init; nothing has changed, the old map is in use.
 * Cost: O(extents).
 */
VQB_API int32_t vqb_device_set_memory(struct vqb_device *dev, const struct vqb_memory *memory);

/*
 * The oldest generation of memory that this queue may still touch: its current one, or that of
 * the oldest chain that is out. Cost: O(ring size).
 */
VQB_API uint32_t vqb_device_oldest_generation(const struct vqb_device *dev);

/* Where a queue stands, to be kept over a stop or carried to another process. */
struct vqb_device_saved {
	uint16_t avail; /* next available entry to take */
	uint16_t used;  /* next used entry to write */
};

/*
 * Reads out where the queue stands. Change nothing afterwards but by reset or restore.
 *
 * VQB_OK. VQB_E_BUSY: chains are out, or were put and not yet exposed. VQB_E_INVALID: no ring.
 * VQB_E_BROKEN.
 *
 * With a tracking area chains may be out, and under IN_ORDER put and held back: whoever restores
 * takes them again. `avail` is then ahead of `used` by as many.
 */
VQB_API int32_t vqb_device_save(const struct vqb_device *dev, struct vqb_device_saved *saved);

/*
 * Starts over like reset, but at saved indices. Both are checked against each other only: what
 * they mean is the saver's word. If `avail` is ahead of `used`, the chains between were in
 * flight when the saver stopped, and are taken again; that is sound only if completions had
 * been in order. Afterwards a notification is owed by the next publish, and the caller polls
 * once, since a notification may have been lost with the old process.
 *
 * With a tracking area that is not new, `saved` is not looked at: area and used ring say more
 * exactly where the queue stands, and the queue goes on as described at init. With one that is new,
 * it starts to say so from here on.
 *
 * VQB_OK. VQB_E_INVALID, VQB_E_FAULT: as reset; also VQB_E_INVALID where avail - used, modulo
 * 65536, exceeds the ring's size, and what init says of the tracking area. `ring` NULL: the queue
 * has no ring, as after reset to NULL, but the tracking area stays as it is; `saved` is not looked
 * at then. Cost: as init.
 */
VQB_API int32_t vqb_device_restore(struct vqb_device *dev, const struct vqb_ring_at *ring,
				   const struct vqb_device_saved *saved);

/*
 * The device gives up on its own account: nothing more is taken (take and state answer
 * VQB_E_NEEDS_RESET), what is out can still be put and published. The transport sets
 * DEVICE_NEEDS_RESET, as it does for a BROKEN queue. Nothing without a ring, and a
 * queue that is BROKEN stays that, with its reason.
 */
VQB_API void vqb_device_needs_reset(struct vqb_device *dev);

/*
 * VQB_OK: works. VQB_E_INVALID: has no ring. VQB_E_NEEDS_RESET. VQB_E_BROKEN: until reset, with the
 * reason in *why (which may be NULL).
 */
VQB_API int32_t vqb_device_state(const struct vqb_device *dev, struct vqb_reason *why);

/*
 * Chains taken and not put. Under IN_ORDER also those that were put and are held back, since one
 * that was taken before them isn't put.
 */
VQB_API uint32_t vqb_device_in_flight(const struct vqb_device *dev);

/* Chains that take would find now, by the driver's word. Reads the driver's index. */
VQB_API uint32_t vqb_device_pending(const struct vqb_device *dev);

/* What has happened since init, or since the counters were last cleared. */
struct vqb_device_counters {
	uint64_t chains;      /* taken, bad ones included */
	uint64_t untaken;     /* of those, given back by untake */
	uint64_t bad_chains;  /* of those, bad */
	uint64_t indirect;    /* of those, with a table */
	uint64_t descriptors; /* read, in the ring and in tables */
	uint64_t completions; /* put, and not held back */
	uint64_t stale;       /* puts that were answered VQB_E_STALE */
	uint64_t faults;      /* takes that stopped at an address that does not resolve */
	uint64_t notified;    /* decisions: VQB_NOTIFY */
	uint64_t suppressed;  /* decisions: VQB_QUIET, though something was new */
};

/* Copies all of them to *out. */
VQB_API void vqb_device_read_counters(const struct vqb_device *dev,
				      struct vqb_device_counters *out);

/* Sets all of them to 0, which nothing else does but init. */
VQB_API void vqb_device_clear_counters(struct vqb_device *dev);

VQB_C_END

#endif
