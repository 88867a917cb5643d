/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layers.h: what a queue has between itself and its backend: faults that are injected, and a lid on
 * plugging.
 *
 * An injected failure is an error that the guest has to see, and no other. So each buffer of the
 * guest has a mark: was the last submission to the disk that had it, and it alone, lost? When the
 * I/O comes back to the guest, it has failed if and only if its buffer is marked, whether it was
 * gone on with meanwhile, or joined with others, by guest or host, and then tried again, or was
 * sent again after a reset. A flush has no buffer, but there is only one at a time: it has a mark
 * of its own.
 */
#ifndef LOOPBACK_LAYERS_H
#define LOOPBACK_LAYERS_H

#include <stdatomic.h>
#include <vqblk/vqblk.h>

#include "options.h"

struct layers {
	struct vqb_backend *top; /* for the queue */

	struct vqb_backend *fault; /* NULL: nothing is injected */
	void *fault_memory;
	const struct vqb_dma
		*data; /* the guest's buffers, `buffer` bytes each, once there are any */
	uint32_t buffer, buffers, unit;
	atomic_uchar *lost; /* by buffer; then that of flushes */

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

/*
 * For the guest, when an I/O has come back: has an injected fault failed it? Of the buffer of that
 * number, or, for a flush, the number of buffers. Forgets it.
 */
bool layers_lost(struct layers *layers, uint32_t buffer);

#endif
