/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h: bios into requests and back, without a device: the list of bios that wait, and what
 * is made of them. vqb_blk_driver has one inside; who drives another kind of disk uses this one.
 *
 *   vqb_requests_submit(rq, bio);                        it waits, now
 *   while (there is room && !vqb_requests_next(rq, &r, table, room)) {
 *           if (send(&r, table))                         nothing has changed yet
 *                   vqb_requests_sent(rq, &r);
 *           else
 *                   vqb_requests_full(rq), and wait for a completion
 *   }
 *   when a request is back: vqb_requests_done(rq, r.bio, r.bios, status, &tail);
 *
 * First come, first served: while anything waits, everything waits, and the oldest goes first. What
 * it shares a request with goes along, or, if that is more than one request, before it as far as it
 * lies before it on the disk. How bios come to share requests is a matter of path:
 *
 *   BIO              never: every bio has requests of its own.
 *   REQUEST          whenever they wait at the same time, be it because they were submitted as a
 *                    list (which a plug collects) or because there was no room.
 *   MERGE_WHEN_FULL  only while there is no room. As long as there is some, every bio goes out at
 *                    once and alone; when there is none, those that wait share requests. That
 *                    makes room, so it goes on until there would be some had nothing been merged:
 *                    the machine's counter tells (port.h; one look for 32 bios, while it is full).
 *
 * Bios share a request if they are neighbours on the disk, or ranges to be discarded of which the
 * device takes several at once; if operation, flags and priority are alike; and if all of them
 * are within limits, which are measured from the request's own beginning and cut no bio to fit.
 * Never with FUA, PREFLUSH or NOMERGE, and never across such a bio or a FLUSH. Those that wait are
 * looked at in windows of up to 128 in which no two overlap: so no order among overlapping ones is
 * changed, however the neighbours are gathered. Looking has to pay: where, time and again, it found
 * no neighbours but bios that came in order, or, with MERGE_WHEN_FULL and a clock, so few that the
 * device would have done their requests in the time that it took, up to 30 bios of 31 go by with a
 * look at the next one only.
 *
 * If a shared request fails, each of its bios is sent once more, alone, before all others: so each
 * has its own status, as if it had never shared anything.
 *
 * A write with flushes is up to three steps, one after the other: flush, write, flush. The first is
 * PREFLUSH, the last FUA, as virtio-blk can't mark a single write as durable; both fall away where
 * there is no volatile cache (FLUSH was not negotiated, or the cache is known to be
 * write-through). A later step goes before everything else that waits.
 *
 * Threads: one at a time for each object.
 */
#ifndef VQBLK_REQUEST_H
#define VQBLK_REQUEST_H

#include <vqblk/api.h>
#include <vqblk/bio.h>
#include <vqblk/segment.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* ---- plug: bios that are to be submitted together ---- */

/*
 * What a thread is going to submit, whatever the queue: a batch for each queue. All zero is an
 * empty one. It belongs to one thread at a time and touches no queue: the loop that empties it is
 * where you take each queue's lock:
 *
 *   vqb_plug_add(&plug, drv, &bio);                       and more
 *   while ((drv = vqb_plug_take(&plug, &list))) {
 *           lock(drv);
 *           vqb_blk_submit_list(drv, list, &refused);
 *           answer = vqb_blk_publish(drv);
 *           unlock(drv);
 *           if (answer & VQB_NOTIFY)
 *                   notify_device_of(drv);
 *   }
 */
struct vqb_plug {
	struct vqb_bio *first, *last;
	uint32_t bios; /* in it */
	uint32_t zero;
};

/*
 * Puts a bio into the plug, for a queue of any kind, whose address is not NULL. It is not checked
 * before it is submitted.
 * VQB_OK. VQB_E_BUSY: it is not IDLE. VQB_E_INVALID: no queue. Cost: constant.
 */
VQB_API int32_t vqb_plug_add(struct vqb_plug *plug, void *queue, struct vqb_bio *bio);

/*
 * Takes out, in *list, all bios for the queue of the oldest one, in the order in which they came,
 * and answers that queue. NULL: the plug is empty. They stay PLUGGED until they are submitted.
 * Cost: O(bios in the plug).
 */
VQB_API void *vqb_plug_take(struct vqb_plug *plug, struct vqb_bio **list);

/* Takes a bio out again: VQB_OK, it is IDLE. VQB_E_LATE: it is not in this plug. Cost: O(bios). */
VQB_API int32_t vqb_plug_remove(struct vqb_plug *plug, struct vqb_bio *bio);

/* ---- the list of those that wait ---- */

struct vqb_requests; /* opaque */

enum vqb_path {
	VQB_PATH_MERGE_WHEN_FULL = 0,
	VQB_PATH_BIO = 1,
	VQB_PATH_REQUEST = 2,
};

/* Bits. */
enum vqb_requests_flag {
	VQB_REQUESTS_WRITE_THROUGH = 1, /* vqb_blk_cache said so: no flush steps are needed */
};

struct vqb_requests_config {
	uint32_t struct_size; /* sizeof(struct vqb_requests_config) */
	uint32_t path;        /* enum vqb_path */
	uint32_t flags;       /* enum vqb_requests_flag */
	uint32_t max_ranges;  /* that a request can carry, whatever limits say; 0: no such ops */
	/*
	 * Bios that are looked at together, at most VQB_REQUESTS_WINDOW, which is what 0 means.
	 * Fewer take less memory and find fewer neighbours: with 1, only of reads and writes, and
	 * only such as were submitted in order.
	 */
	uint32_t window;
	uint32_t zero;     /* 0 */
	uint64_t features; /* as negotiated; RO, FLUSH and LIFETIME matter */
	uint64_t capacity; /* sectors */
	/* Copied. Those of DISCARD and its like say what there is. */
	const struct vqb_limits *limits;
	/*
	 * MERGE_WHEN_FULL: a clock that does not run backwards, in any unit that is fine compared
	 * to a request; read while there is no room, once for some bios. NULL: the machine's
	 * counter. Where it says 0 there is none: merging then ends when nothing waits.
	 */
	uint64_t (*clock)(void *context);
	void *context; /* for it */
};

#define VQB_REQUESTS_WINDOW 128u

/* Memory of it, for static allocation; `window` is VQB_REQUESTS_WINDOW if that field says 0. */
#define VQB_REQUESTS_BYTES(window) (512u + 32u * (size_t)(window))

/* What is wrong with a configuration; the first of these that is broken. */
enum vqb_requests_rule {
	VQB_REQUESTS_RULE_FINE = 0,
	VQB_REQUESTS_RULE_FORM,   /* NULL, struct_size, or `zero` is not 0 */
	VQB_REQUESTS_RULE_LIMITS, /* `limits` is NULL, or vqb_limits_check says why */
	VQB_REQUESTS_RULE_WINDOW, /* above VQB_REQUESTS_WINDOW */
	VQB_REQUESTS_RULE_PATH,   /* none of enum vqb_path */
	VQB_REQUESTS_RULE_FLAGS,  /* one that is not in enum vqb_requests_flag */
};

/*
 * What vqb_requests_init would answer, its memory aside, and why: `rule` (unless NULL) gets one of
 * enum vqb_requests_rule, FINE with VQB_OK and only then. VQB_OK or VQB_E_INVALID. Any thread.
 */
VQB_API int32_t vqb_requests_check_config(const struct vqb_requests_config *config, uint32_t *rule);

/* Bytes that vqb_requests_init needs: at most VQB_REQUESTS_BYTES. 0: NULL, too long a window. */
VQB_API size_t vqb_requests_size(const struct vqb_requests_config *config);

/*
 * Makes an empty list in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long
 * as the list; nothing to destroy. The configuration is not kept.
 *
 * VQB_OK with the list in *out. VQB_E_INVALID: a NULL, memory that is not aligned, or what
 * vqb_requests_check_config names. VQB_E_TOOBIG: `bytes` is less than vqb_requests_size.
 */
VQB_API int32_t vqb_requests_init(void *mem, size_t bytes, const struct vqb_requests_config *config,
				  struct vqb_requests **out);

/*
 * The bio waits, from now on, behind all others. All of it is checked: no request that is made of
 * it can be wrong.
 *
 * VQB_OK: it is the library's until it is handed back.
 * VQB_E_UNSUPP: this device does not do that: an op that was not negotiated or is not known, a
 *   write of any kind where RO was. A FLUSH without FLUSH: what is done is durable there.
 * VQB_E_INVALID: IN and OUT: no data, not whole blocks, or past capacity. DISCARD and its like:
 *   the same of `sectors`, or there is data. FLUSH: data. GET_ID, GET_LIFETIME: not 20 or 6
 *   bytes. A bad segment; a flag that the op doesn't have; `zero`.
 * VQB_E_TOOBIG: a block of it can't be sent under these limits (vqb_map_next). GET_ID and
 *   GET_LIFETIME: the same of their segments, which are sent as they are.
 * VQB_E_BUSY: the bio is the library's already, or in a plug: only the plug can take it out.
 * On failure nothing has changed but `status`, which says the same (of a BUSY one, nothing);
 * vqb_requests_check says why.
 * Cost: constant, and a nanosecond for each vector.
 */
VQB_API int32_t vqb_requests_submit(struct vqb_requests *rq, struct vqb_bio *bio);

/*
 * Why a bio is refused; where several are broken, one of them. In front of the colon: the answer
 * of submit, which is the same for all that break that rule.
 */
enum vqb_bio_rule {
	VQB_BIO_RULE_FINE = 0,
	VQB_BIO_RULE_HELD, /* BUSY: it was submitted and is not back, or it is in a plug */
	/* Of vqb_blk_check_bio, as vqb_driver_state. BROKEN, NEEDS_RESET. INVALID: no ring. */
	VQB_BIO_RULE_RING,
	VQB_BIO_RULE_FORM,      /* INVALID: `zero` is not 0, or `vec` is NULL and nvec is not 0 */
	VQB_BIO_RULE_FLAG,      /* INVALID: a flag that this op does not have, or that is none */
	VQB_BIO_RULE_OP,        /* UNSUPP: no operation of a bio, whatever the device can do */
	VQB_BIO_RULE_READ_ONLY, /* UNSUPP: it changes the disk, and RO was negotiated */
	/*
	 * UNSUPP: FLUSH or LIFETIME was not negotiated. DISCARD and its like: the same, as limits
	 * then have no ranges of it, or a request carries none: max_ranges, `ranges` or limits.
	 */
	VQB_BIO_RULE_FEATURE,
	VQB_BIO_RULE_EMPTY, /* INVALID: IN, OUT: nvec is 0. DISCARD and its like: `sectors` is 0 */
	VQB_BIO_RULE_DATA,  /* INVALID: FLUSH, DISCARD and its like have no data: nvec is not 0 */
	/* INVALID: `sector`, `sectors` or the bytes of all segments are no whole blocks */
	VQB_BIO_RULE_BLOCK,
	VQB_BIO_RULE_SEGMENT,  /* INVALID: one is empty, runs past 2^64, or has its `zero` set */
	VQB_BIO_RULE_CAPACITY, /* INVALID: it begins or ends behind the last sector */
	VQB_BIO_RULE_LENGTH,   /* INVALID: GET_ID has not 20 bytes, GET_LIFETIME not 6 */
	/*
	 * TOOBIG: IN, OUT: there is a block that no request can carry, as it lies in more segments
	 * than there may be, or has a gap: copy it. GET_ID, GET_LIFETIME: a segment is too long,
	 * crosses a boundary or leaves a gap, or there are too many.
	 */
	VQB_BIO_RULE_LIMITS,
	/*
	 * TOOBIG: of vqb_blk_check_bio: its first request is longer than the ring, as limits were
	 * made for a larger one. (A later one that is shows when the bio is handed back.)
	 */
	VQB_BIO_RULE_RING_SIZE,
};

/*
 * What vqb_requests_submit would answer now, and why: `rule` (unless NULL) gets one of enum
 * vqb_bio_rule, FINE with VQB_OK and only then. Nothing is changed, `status` neither.
 * Cost: as submit; where segments are wrong, twice that.
 */
VQB_API int32_t vqb_requests_check(const struct vqb_requests *rq, const struct vqb_bio *bio,
				   uint32_t *rule);

/* What is to be sent. */
struct vqb_request {
	uint8_t op;    /* enum vqb_blk_type */
	uint8_t flags; /* VQB_BIO_UNMAP or 0 */
	uint8_t part;  /* has a part of a bio that is too long for one */
	uint8_t rest;  /* and not its last one */
	uint32_t ioprio;
	uint64_t sector;     /* 0 where op has no use for it */
	uint64_t bytes;      /* of data */
	uint32_t n;          /* entries of the table: segments of data, or ranges */
	uint32_t bios;       /* that share it */
	struct vqb_bio *bio; /* the first of them */
	/* Where that one will stand when this is sent; the library's. */
	uint64_t next;
	uint32_t at, offset;
};

/*
 * Makes the request that goes next, in *r and `table`, which has room for `room` entries, and that
 * is at least limits.max_segments and max_ranges. A range is an entry, too: `addr` its first
 * sector, `len` how many. Nothing has changed by that: called again, it makes it anew.
 *
 * VQB_OK. VQB_E_AGAIN: nothing waits.
 * VQB_E_TOOBIG, VQB_E_INVALID: there is no such request, which can only be if limits or vectors
 * were changed since the bio was checked, or `room` is too small; *r names the bio: tell sent
 * and done, and it is handed back with that status.
 * Cost: that of mapping; of merging, up to ten nanoseconds for each bio that waited, once.
 */
VQB_API int32_t vqb_requests_next(struct vqb_requests *rq, struct vqb_request *r,
				  struct vqb_segment *table, uint32_t room);

/* It is on its way: its bios wait no more, but for what didn't fit. Cost: O(bios). */
VQB_API void vqb_requests_sent(struct vqb_requests *rq, const struct vqb_request *r);

/* There was no room for it: with MERGE_WHEN_FULL, bios share requests from now on, see above. */
VQB_API void vqb_requests_full(struct vqb_requests *rq);

/*
 * A request that was sent is back: VQB_OK or an error. VQB_E_AGAIN: the device was reset, it may
 * have been carried out or not. Bios that are done by that are linked behind *tail, which
 * moves on; `status` is set. Others wait again. Cost: O(bios).
 */
VQB_API void vqb_requests_done(struct vqb_requests *rq, struct vqb_bio *bio, uint32_t bios,
			       int32_t status, struct vqb_bio ***tail);

/*
 * Takes back a bio of which nothing was sent yet. VQB_OK: this is its completion, with status
 * VQB_E_CANCELLED. VQB_E_LATE: something was; it will be handed back as ever. VQB_E_INVALID: it
 * does not belong to this list. Cost: constant.
 */
VQB_API int32_t vqb_requests_cancel(struct vqb_requests *rq, struct vqb_bio *bio);

/*
 * Takes back all that waits, behind *tail: VQB_E_CANCELLED those of which nothing was sent,
 * VQB_E_AGAIN others. With every request that is out told VQB_E_AGAIN before, this is all there is.
 */
VQB_API void vqb_requests_abandon(struct vqb_requests *rq, struct vqb_bio ***tail);

/*
 * Sorts a list of bios as they were submitted, as it is to be submitted again, if fewer than 2^31
 * were, from the first of them to the last. O(n log n).
 */
VQB_API void vqb_requests_sort(struct vqb_bio **list);

/* Bios that wait; bios that were submitted and are not back. */
VQB_API uint32_t vqb_requests_waiting(const struct vqb_requests *rq);
VQB_API uint32_t vqb_requests_outstanding(const struct vqb_requests *rq);

/* Another path. VQB_OK. VQB_E_BUSY: bios are outstanding. VQB_E_INVALID: there is no such path. */
VQB_API int32_t vqb_requests_set_path(struct vqb_requests *rq, uint32_t path);

/*
 * Other limits, features or capacity: as init takes them. Path, window and clock stay. What
 * waits was checked against the old ones, and is not looked at again: what can't be cut to the new
 * limits is handed back with an error, of all else the device has the last word.
 * VQB_OK or VQB_E_INVALID: nothing has changed.
 */
VQB_API int32_t vqb_requests_configure(struct vqb_requests *rq,
				       const struct vqb_requests_config *config);

/*
 * What has happened since init, or since the counters were last cleared. At any time, if they never
 * were, bios = done + cancelled + those that are outstanding.
 */
struct vqb_requests_counters {
	uint64_t bios;      /* accepted */
	uint64_t requests;  /* sent */
	uint64_t merged;    /* bios that went along with another's request */
	uint64_t parts;     /* requests with a part of a bio that was too long for one */
	uint64_t flushes;   /* requests that were a step of a write */
	uint64_t full;      /* times that there was no room */
	uint64_t cancelled; /* by cancel, in time */
	uint64_t retried;   /* bios sent again, alone, because a request that they shared failed */
	uint64_t done;      /* bios handed back by done and by abandon */
	uint64_t errors;    /* of those, with another status than VQB_OK */
};

VQB_API void vqb_requests_read_counters(const struct vqb_requests *rq,
					struct vqb_requests_counters *out);
VQB_API void vqb_requests_clear_counters(struct vqb_requests *rq);

VQB_C_END

#endif
