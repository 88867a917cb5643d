/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layers.h: what a queue has between itself and its backend: faults that are injected, and a lid on
 * plugging.
 *
 * An injected failure is an error that the guest has to see, and no other. So each sector of the
 * guest's buffers has a mark, and each sector of the disk has one for what comes without data: was
 * the last submission of it lost? When an I/O comes back, it has failed if and only if one of its
 * sectors is marked, whether it was gone on with meanwhile, or cut into several, or joined with
 * others, by guest or host, and then tried again, or was sent again after a reset: whatever is
 * tried again is marked again, or fails before that.
 *
 * A flush has no sectors. But each request for one is carried out once, and fails one I/O: so it is
 * enough to count those that were lost.
 */
#ifndef LOOPBACK_LAYERS_H
#define LOOPBACK_LAYERS_H

#include <stdatomic.h>
#include <vqblk/vqblk.h>

#include "io.h"
#include "options.h"

struct layers {
	struct vqb_backend *top; /* for the queue */

	struct vqb_backend *fault; /* NULL: nothing is injected */
	void *fault_memory;
	const struct vqb_dma *at; /* the guest's buffers, `buffer` bytes each */
	uint32_t buffer, unit;
	bool ranges;         /* some I/Os have no data */
	atomic_uchar *data;  /* marks of the buffers' sectors; once those are known */
	atomic_uchar *range; /* of the disk's, with `ranges` */
	atomic_uint flushes; /* that were lost, and are yet to fail an I/O */

	struct vqb_backend unplugged;
};

/* Puts in front of `backend` what the options ask for. False: no memory, and it was said. */
bool layers_open(struct layers *layers, const struct options *options, uint32_t queue,
		 struct vqb_backend *backend);
void layers_close(struct layers *layers);

/* Is something held back? Then it takes more polls, for which nobody sends a notification. */
bool layers_hold(const struct layers *layers);

/* Of one kind of fault or another, so far. */
uint64_t layers_injected(const struct layers *layers);

/* Before anything is submitted: where the guest's buffers are. False: no memory; it was said. */
bool layers_watch(struct layers *layers, const struct vqb_dma *buffers, uint32_t buffer);

/*
 * For who has the guest's end, when an I/O has come back, or is to begin again: has an injected
 * fault failed it? Forgets it. For a write that is durable, or a flush, that has failed otherwise:
 * was it for a flush? Each that was lost answers for one.
 */
bool layers_lost(struct layers *layers, const struct io *io, uint32_t buffer);
bool layers_lost_flush(struct layers *layers);

/* How many flushes were lost and have failed nothing. Forgets them. */
uint32_t layers_owed(struct layers *layers);

#endif
