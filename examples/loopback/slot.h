/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.h: an I/O of a guest's thread and its buffer, on its way to the owner of a queue and back.
 *
 * While notes about it are under way it belongs to the owner, but for its lists of one thread each;
 * `awaits` says how many are yet to come back.
 */
#ifndef LOOPBACK_SLOT_H
#define LOOPBACK_SLOT_H

#include <vqblk/vqblk.h>

#include "io.h"
#include "note.h"

struct guest;

struct slot {
	struct vqb_bio bio; /* comes first, so that one that is handed back leads to its slot */
	struct vqb_segment segment;

	/* The guest's. */
	struct guest *guest;
	struct io io;
	uint64_t started;
	uint64_t addr; /* of the buffer, as the guest sees it, and here */
	void *data;
	uint32_t buffer; /* its number among those of the queue */
	uint32_t awaits;
	int32_t status;
	struct slot *next; /* of those that are free, or of those to be cancelled */

	/* The owner's. */
	bool inside;    /* the block driver has it */
	bool lost;      /* an injected fault has failed it */
	bool undecided; /* a reset cut it off once, so some of it may have reached the disk */

	struct note sent;   /* there, of the first bio of a list; back, of each: its status */
	struct note cancel; /* there and back, with what the block driver said */
};

static inline struct slot *slot_of(struct vqb_bio *bio)
{
	return (struct slot *)bio;
}

#endif
