/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver.h: the driver (guest) side of virtio-blk, one object per queue.
 *
 * It turns bios (bio.h) into requests on a virtqueue and completions back into bios. How bios share
 * requests is a matter of its path (request.h); headers, ranges and status bytes lie in a DMA area
 * given at init. It allocates nothing. The virtqueue is the caller's object (driver.h): set it up
 * first, give it to this one, and leave add, reap and detach on it to this one; arm, disarm,
 * expose, postpone and the queries stay the caller's. vqblk.h shows it from nothing, negotiation
 * and both ends.
 *
 *   struct vqb_bio bio = { .vec = &seg, .nvec = 1, .op = VQB_BLK_IN, .sector = 8 };
 *   status = vqb_blk_submit(drv, &bio);                 more of them ...
 *   if (vqb_blk_publish(drv) & VQB_NOTIFY)
 *           notify_device();
 *   ...
 *   do {
 *           vqb_blk_reap(drv, &done);
 *           for (b = done; b; b = next) {
 *                   next = b->next;
 *                   finish(b, b->status);               it may submit new ones
 *           }
 *           answer = vqb_blk_turn(drv);
 *           if (answer & VQB_NOTIFY)
 *                   notify_device();
 *   } while (answer & VQB_MORE);
 *
 * A bio for which there is no room waits inside; reap sends it. So a submit never answers that
 * there is no room, and there is one place where anything is sent: first come, first served. How
 * much may wait is up to the caller, who gives the memory: see vqb_blk_waiting.
 *
 * Everything about a bio is checked before the device sees it: range, block, segments, read-only.
 * What became of it is taken from the status byte alone, which is fetched once.
 *
 * Reset: reset the device, vqb_driver_reset(ring, NULL), vqb_blk_abandon to get all bios back,
 * vqb_driver_reset with a ring, submit again what must be done, and go on. The same after the ring
 * is BROKEN or NEEDS_RESET, which submit answers and vqb_driver_state tells.
 *
 * Threads: one at a time, the one that has the ring. Whoever else wants something done puts it
 * into a list of his own that this one empties, or takes a lock (examples/recipes).
 */
#ifndef VQBLK_BLK_DRIVER_H
#define VQBLK_BLK_DRIVER_H

#include <vqblk/api.h>
#include <vqblk/bio.h>
#include <vqblk/blk.h>
#include <vqblk/driver.h>
#include <vqblk/request.h>
#include <vqblk/segment.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_blk_driver; /* opaque */

struct vqb_blk_driver_config {
	uint32_t struct_size; /* sizeof(struct vqb_blk_driver_config) */
	/*
	 * Most requests in flight: 1 to 32768; no use above the ring's size. With MERGE_WHEN_FULL
	 * what is more than the device can do at a time is only longer before bios are merged.
	 */
	uint32_t depth;
	struct vqb_driver *ring; /* with nothing in flight */
	/*
	 * For headers, ranges and status bytes; aligned to 64 at both addresses.
	 * VQB_BLK_AREA_BYTES. Coherent memory, whatever the ring is in: nothing of it is flushed or
	 * invalidated.
	 */
	struct vqb_dma area;
	uint64_t features;                   /* as negotiated */
	const struct vqb_blk_limits *limits; /* from vqb_blk_limits_read; copied */
	/* Copied: the above as vqb_limits_of_blk has them, changed by you. NULL: not changed. */
	const struct vqb_limits *mapping;
	uint32_t path;  /* enum vqb_path; 0: merge when full */
	uint32_t flags; /* enum vqb_requests_flag */
	/* Most of one DISCARD or its like. 0: no such ops, whatever the device has. */
	uint32_t ranges;
	uint32_t window; /* of bios that are looked at for neighbours: as in vqb_requests_config */
	/* As in vqb_requests_config. NULL: the machine's counter. */
	uint64_t (*clock)(void *context);
	void *context;
};

/*
 * The DMA area: headers first, then ranges, then status bytes, which the device writes, on cache
 * lines of their own. The ranges of a request are one segment, `ranges` times 16 bytes behind those
 * of the slot before: a request has no more of them than fit into max_segment_bytes, and, where
 * some would lie across a seg_boundary, than come before that.
 */
#define VQB_BLK_AREA_BYTES(depth, ranges)                                                          \
	((((size_t)16 * (depth) * ((size_t)1 + (ranges)) + 63) & ~(size_t)63) +                    \
	 (((size_t)(depth) + 63) & ~(size_t)63))

/*
 * Memory of a blk driver, for static allocation; `segments` is that of the limits, and `window`
 * VQB_REQUESTS_WINDOW, if the configuration says 0.
 */
#define VQB_BLK_DRIVER_BYTES(depth, segments, ranges, window)                                      \
	VQB_ROUND_UP(1024u + 16u * (size_t)(depth) + 16u * ((size_t)(segments) + (ranges)) +       \
		     32u * (size_t)(window))

/* What is wrong with a configuration; the first of these that is broken. */
enum vqb_blk_driver_rule {
	VQB_BLK_DRIVER_RULE_FINE = 0,
	VQB_BLK_DRIVER_RULE_FORM, /* NULL, or struct_size */
	/*
	 * `limits` is NULL; or there is no `mapping`, and vqb_limits_of_blk refuses them, or
	 * vqb_limits_check what it makes of them: call these two to see more.
	 */
	VQB_BLK_DRIVER_RULE_LIMITS,
	VQB_BLK_DRIVER_RULE_MAPPING,      /* vqb_limits_check refuses it and says why */
	VQB_BLK_DRIVER_RULE_SEGMENTS,     /* mapping->max_segments is above 32766 */
	VQB_BLK_DRIVER_RULE_DEPTH,        /* `depth` is 0, or above 32768 */
	VQB_BLK_DRIVER_RULE_RANGES,       /* `ranges` is above 32768 */
	VQB_BLK_DRIVER_RULE_DEPTH_RANGES, /* depth * (ranges + 1) is above 2^26 */
	VQB_BLK_DRIVER_RULE_WINDOW,       /* `window` is above VQB_REQUESTS_WINDOW */
	/* (If vqb_blk_driver_size answers 0 it is one of the above, and else of these.) */
	VQB_BLK_DRIVER_RULE_PATH,        /* `path` is none of enum vqb_path */
	VQB_BLK_DRIVER_RULE_FLAGS,       /* `flags` has one that is not in enum vqb_requests_flag */
	VQB_BLK_DRIVER_RULE_RING,        /* `ring` is NULL */
	VQB_BLK_DRIVER_RULE_RING_IN_USE, /* something is in flight on it */
	VQB_BLK_DRIVER_RULE_AREA,        /* area.host is NULL */
	VQB_BLK_DRIVER_RULE_AREA_ALIGN,  /* area.host or area.addr is no multiple of 64 */
	/* TOOBIG, and not INVALID: area.bytes is less than VQB_BLK_AREA_BYTES of depth, ranges */
	VQB_BLK_DRIVER_RULE_AREA_BYTES,
	VQB_BLK_DRIVER_RULE_AREA_END, /* area.addr and area.bytes run past 2^64 */
};

/*
 * What vqb_blk_driver_init would answer, its memory aside, and why: `rule` (unless NULL) gets one
 * of enum vqb_blk_driver_rule, FINE with VQB_OK and only then. The ring is asked whether anything
 * is in flight, so it is not in use by another thread. Cost: constant.
 */
VQB_API int32_t vqb_blk_driver_check(const struct vqb_blk_driver_config *config, uint32_t *rule);

/*
 * Bytes that vqb_blk_driver_init needs: at most VQB_BLK_DRIVER_BYTES.
 * 0: struct_size, `depth`, `ranges`, `window`, `limits` or `mapping` is invalid; which of them,
 * vqb_blk_driver_check says. Any thread.
 */
VQB_API size_t vqb_blk_driver_size(const struct vqb_blk_driver_config *config);

/*
 * Makes a blk driver in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long as
 * the driver; there is nothing to destroy. Ring and area are kept, the configuration is not.
 *
 * VQB_OK with the driver in *out.
 * VQB_E_INVALID: a NULL, memory that is not aligned, or the configuration, and if so,
 * vqb_blk_driver_check says what of it.
 * VQB_E_TOOBIG: `bytes` is less than vqb_blk_driver_size, or the area is too small for `depth` and
 * `ranges` (which check says, too). Cost: O(depth).
 */
VQB_API int32_t vqb_blk_driver_init(void *mem, size_t bytes,
				    const struct vqb_blk_driver_config *config,
				    struct vqb_blk_driver **out);

/*
 * Submits one bio (`next` is not looked at). The device sees what could be sent at the next publish
 * or turn; the rest waits.
 *
 * VQB_OK: it is the library's until it is handed back, or cancelled.
 * VQB_E_UNSUPP, VQB_E_INVALID, VQB_E_TOOBIG, VQB_E_BUSY: as vqb_requests_submit. TOOBIG, too: it
 *   has more segments than the ring can take, which is so if limits were made for a larger one.
 * VQB_E_BROKEN, VQB_E_NEEDS_RESET, and VQB_E_INVALID if there is no ring: as vqb_driver_state.
 * On failure nothing has changed but `status`, which says the same (of a BUSY one, nothing);
 * vqb_blk_check_bio says why.
 * Cost: that of vqb_requests_submit, vqb_requests_next and vqb_driver_add.
 */
VQB_API int32_t vqb_blk_submit(struct vqb_blk_driver *drv, struct vqb_bio *bio);

/*
 * What vqb_blk_submit would answer now, and why: `rule` (unless NULL) gets one of enum vqb_bio_rule
 * (request.h), FINE with VQB_OK and only then. For when a submit was refused and you wonder; submit
 * checks all of it itself. Nothing is changed. Cost: as vqb_requests_check.
 */
VQB_API int32_t vqb_blk_check_bio(const struct vqb_blk_driver *drv, const struct vqb_bio *bio,
				  uint32_t *rule);

/*
 * Submits a list of bios in order, as one batch: with the path REQUEST they share requests. What
 * is refused comes back in *refused (unless NULL), each with its `status`: in order what is wrong,
 * then what this ring can't take. All others are as if they alone had been submitted.
 *
 * VQB_OK: none was refused. VQB_E_BUSY, whatever was refused before: a bio is the library's
 * already, or in a plug, where the list ends, since its `next` is in use; what came before was
 * submitted or refused. Else the status of the first that was refused.
 */
VQB_API int32_t vqb_blk_submit_list(struct vqb_blk_driver *drv, struct vqb_bio *list,
				    struct vqb_bio **refused);

/*
 * Makes what was sent visible and says whether the device has to be notified, or does that and
 * asks for the next completion to be announced, with one fence: vqb_driver_publish and
 * vqb_driver_turn on the ring.
 */
VQB_API uint32_t vqb_blk_publish(struct vqb_blk_driver *drv);
VQB_API uint32_t vqb_blk_turn(struct vqb_blk_driver *drv);

/*
 * Hands back all bios that are done, each once, in *done as a list in the order of completion
 * (NULL: none), `status` set: VQB_OK, VQB_E_UNSUPP as the device says, or VQB_E_IO for any other
 * status byte; of what waited and can't be sent after all, VQB_E_TOOBIG or VQB_E_INVALID. How many,
 * as the answer. Then sends what waits and now has room: publish or turn
 * afterwards, also if nothing came back. Never calls back: whom to wake is the caller's to
 * decide, once for all of them. Cost: O(completions), and that of what it sends.
 */
VQB_API uint32_t vqb_blk_reap(struct vqb_blk_driver *drv, struct vqb_bio **done);

/*
 * Takes back a bio, if it is in time. VQB_OK: this is its completion, with status
 * VQB_E_CANCELLED: nothing of it was sent, or ever will be. VQB_E_LATE: something was sent, which
 * a submit does wherever there is room, published or not; reap tells. VQB_E_INVALID: it is IDLE,
 * as one that was handed back already, or not of this driver, or PLUGGED: vqb_plug_remove.
 * Cost: constant.
 */
VQB_API int32_t vqb_blk_cancel(struct vqb_blk_driver *drv, struct vqb_bio *bio);

/*
 * After vqb_driver_reset(ring, NULL): hands back, in *list, every bio that is not, in the order in
 * which they were submitted. VQB_E_AGAIN: undecided, it may have been carried out, in part or not
 * at all; submit it again once the queue works, if it must be done. VQB_E_CANCELLED: nothing of it
 * was sent. (Those that failed before, in a part, have the status of that.)
 *
 * VQB_OK. VQB_E_BUSY: the ring has not been reset, its device may still write to the buffers; the
 * list is empty. Cost: O(ring size), and O(n log n) for n bios.
 */
VQB_API int32_t vqb_blk_abandon(struct vqb_blk_driver *drv, struct vqb_bio **list);

/*
 * Bios submitted and not handed back; those of them that wait, a part of them at least; requests
 * in flight.
 */
VQB_API uint32_t vqb_blk_outstanding(const struct vqb_blk_driver *drv);
VQB_API uint32_t vqb_blk_waiting(const struct vqb_blk_driver *drv);
VQB_API uint32_t vqb_blk_in_flight(const struct vqb_blk_driver *drv);

/*
 * Another path. VQB_OK. VQB_E_BUSY: bios are outstanding. VQB_E_INVALID: there is no such path.
 */
VQB_API int32_t vqb_blk_set_path(struct vqb_blk_driver *drv, uint32_t path);

/*
 * New limits and features, after a reset or when capacity changed: config as for init, but only
 * features, limits, mapping and flags count. Segments of a request may not grow beyond what init
 * was given. VQB_OK or VQB_E_INVALID: nothing has changed.
 */
VQB_API int32_t vqb_blk_driver_configure(struct vqb_blk_driver *drv,
					 const struct vqb_blk_driver_config *config);

/* Copies the counters to *out; sets them to 0. */
VQB_API void vqb_blk_driver_read_counters(const struct vqb_blk_driver *drv,
					  struct vqb_requests_counters *out);
VQB_API void vqb_blk_driver_clear_counters(struct vqb_blk_driver *drv);

VQB_C_END

#endif
