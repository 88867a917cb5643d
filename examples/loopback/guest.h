/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guest.h: one of the guest's threads that submit (--jobs): keeps I/Os of the job in flight, and
 * tries to cancel some.
 */
#ifndef LOOPBACK_GUEST_H
#define LOOPBACK_GUEST_H

#include "run.h"

struct guest {
	_Alignas(64) struct run *run;
	struct queue *queue;
	struct owner *owner;
	uint64_t stream;  /* of random numbers */
	uint64_t durable; /* the same, for --fua: by the job's order alone */

	struct slot *free;   /* list of those that are not in flight */
	struct slot *drawn;  /* holds the job's next I/O, which is yet to be sent */
	struct slot *doomed; /* list of those that are to be cancelled */
	uint32_t index;
	uint32_t out;    /* I/Os that are not over */
	uint32_t flying; /* of them, not back; attempts to cancel the others may be */
	bool begun;      /* the job has begun the one that was drawn */

	struct tally tally;
	struct histogram latency;
	atomic_ullong count; /* of I/Os that came back, for others to look at */

	/* From the owner of the queue. */
	_Alignas(64) struct notes back;
	struct vqb_notify wake;
	atomic_bool asleep; /* to be woken, by whoever takes this away */
	bool told;          /* the owner's: something is new to it */

	/* For the beginning and the end. */
	pthread_t thread;
	struct slot *slot; /* one for each I/O that may be in flight */
	uint64_t finished; /* when */
};

/* NULL: no memory, or no eventfd; the owners are there. */
struct guest *guest_new(struct run *run, uint32_t index);
void guest_free(struct guest *guest);
void *guest_main(void *guest);

#endif
