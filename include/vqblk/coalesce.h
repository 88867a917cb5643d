/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce.h: joins requests that are neighbours on the disk, on their way to a backend.
 *
 * Reads or writes are collected, at most a batch of them, and come out sorted, neighbours joined
 * into one submission each. It needs nothing else of this library: any device, on any ring of its
 * own, can put one in front of any backend.
 *
 *   for each request:
 *           while ((status = vqb_coalescer_add(c, io)) == VQB_E_NOSPC)
 *                   submit_all(vqb_coalescer_flush(c));
 *           if (status == VQB_E_BUSY) it has to wait, and so has what comes after it
 *   submit_all(vqb_coalescer_flush(c));        at the end, and before a flush
 *
 *   for each io that the backend is done with, `result` set (of a list, look at its `next` before):
 *           vqb_coalescer_done(c, io, &done, &retry);
 *   requests on `done` are finished; those on `retry` are submitted again, before others
 *
 * What it promises:
 *
 * - A joined submission is of one direction and one set of flags, has no gap and no overlap, and
 *   keeps both limits, pieces and bytes. A request that exceeds a limit alone goes out alone.
 * - Requests that overlap go out in the order they were added, and are joined with nothing. Others
 *   go out by offset.
 * - Each request reports its own truth: of a joined submission that fails, or ends early, the
 *   requests that were done to their last byte are done, and the others are submitted once more,
 *   each on its own.
 * - Until a joined submission is done, its second attempt included, nothing that overlaps it is
 *   let in unless both are reads: no request is overtaken by a later one.
 * - Requests are borrowed. Their pieces are read, and copied into the list of a joined submission;
 *   neither is changed but for `next`, `group` and `result`.
 *
 * One thread at a time, as everything that belongs to a queue.
 */
#ifndef VQBLK_COALESCE_H
#define VQBLK_COALESCE_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_coalescer; /* opaque */

struct vqb_coalescer_config {
	uint32_t struct_size; /* sizeof(struct vqb_coalescer_config) */
	uint32_t requests;    /* most in a batch: 1 to 1024; 0: 32 */
	uint32_t joins;       /* joined submissions that may be out: to 32767; 0: as requests */
	uint32_t pieces;      /* room for their piece lists, in all; 0: nothing is joined */
	uint32_t max_pieces;  /* of one joined submission, from 1: the backend's */
	uint32_t zero;
	uint64_t max_transfer; /* bytes of one joined submission, from 1: the backend's */
};

/* Memory of a coalescer, for static allocation; requests and joins not 0. */
#define VQB_COALESCER_BYTES(requests, joins, pieces)                                               \
	VQB_ROUND_UP(272u + 32u * (size_t)(requests) + 82u * (size_t)(joins) +                     \
		     16u * (size_t)(pieces))

/*
 * Bytes that vqb_coalescer_init needs: at most VQB_COALESCER_BYTES.
 * 0: the configuration is invalid. Any thread.
 */
VQB_API size_t vqb_coalescer_size(const struct vqb_coalescer_config *config);

/*
 * Makes a coalescer in `mem`, which must be aligned to 64, hold `bytes` bytes and outlive all that
 * was added; nothing to destroy. The configuration is not kept.
 *
 * VQB_OK with the coalescer in *out. VQB_E_INVALID: a size, an alignment, a limit that is 0.
 * VQB_E_TOOBIG: `bytes` is less than vqb_coalescer_size. Cost: all of it is cleared.
 */
VQB_API int32_t vqb_coalescer_init(void *mem, size_t bytes,
				   const struct vqb_coalescer_config *config,
				   struct vqb_coalescer **out);

/*
 * Collects a read or a write.
 *
 * VQB_OK: it is the coalescer's, until flush hands it out, alone or within a joined submission.
 * VQB_E_NOSPC: the batch is full, or of another direction or other flags: flush, then add again.
 * VQB_E_BUSY: it overlaps a joined submission that is not done: add it again after that.
 * VQB_E_INVALID: neither IN nor OUT, no bytes, or its end is past 2^64; nothing was kept. That
 * `bytes` is what the pieces have in all, and that the io is not in here yet, is taken on trust.
 * Cost: constant; where it lies between the first and the last byte of those that are out, a
 * compare for each of them.
 */
VQB_API int32_t vqb_coalescer_add(struct vqb_coalescer *c, struct vqb_io *io);

/*
 * Hands out the batch as a list of submissions in the order they should be made, or NULL. All of
 * them have to come back through done, one way or another; one that is never submitted too, with a
 * negative result.
 * Cost: sorting, unless they came in order, and the pieces of what is joined.
 */
VQB_API struct vqb_io *vqb_coalescer_flush(struct vqb_coalescer *c);

/*
 * A submission that flush or done handed out has ended, with io->result as a backend sets it, or
 * with the answer of a submit that refused it. What it stands for is appended to `done`, in the
 * order of offset, each with its own result; or, once, to `retry`, to be submitted again as it is
 * and come back here. An io that was never joined is appended to `done` as it is, even if this
 * coalescer has never seen it. `io` is the coalescer's or the caller's again afterwards.
 * Cost: constant for each request.
 */
VQB_API void vqb_coalescer_done(struct vqb_coalescer *c, struct vqb_io *io,
				struct vqb_io_list *done, struct vqb_io_list *retry);

/*
 * A request that a submission stands for: of a joined one the first, else the submission itself.
 * For who has to know what is behind one before it ends. Cost: constant.
 */
VQB_API const struct vqb_io *vqb_coalescer_member(const struct vqb_io *io);

/*
 * Do the `bytes` (from 1) bytes at `offset` overlap a joined submission that is not done? What is
 * no read or write, but changes the disk all the same, has to wait for it. Not for what is
 * collected: flush first. Cost: as add.
 */
VQB_API uint32_t vqb_coalescer_overlaps(struct vqb_coalescer *c, uint64_t offset, uint64_t bytes);

/* Is there anything that flush would hand out? */
VQB_API uint32_t vqb_coalescer_collected(const struct vqb_coalescer *c);

/* What has happened since init. [0] for IN, [1] for OUT. */
struct vqb_coalescer_counters {
	uint64_t requests[2];    /* handed out by flush, alone or joined */
	uint64_t submissions[2]; /* what they became */
	uint64_t merges[2];      /* requests that rode along with another: the difference */
	uint64_t retries[2];     /* requests that were submitted again, alone */
};

VQB_API void vqb_coalescer_read_counters(const struct vqb_coalescer *c,
					 struct vqb_coalescer_counters *out);

VQB_C_END

#endif
