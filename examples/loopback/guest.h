/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guest.h: the guest's thread of one queue: keeps I/Os of the job in flight.
 */
#ifndef LOOPBACK_GUEST_H
#define LOOPBACK_GUEST_H

#include "run.h"

struct slot;

struct guest {
	_Alignas(64) struct run *run;
	struct queue *queue;
	uint32_t index;
	pthread_t thread;

	struct slot *slot;  /* one for each I/O that may be in flight */
	struct slot *free;  /* list of those that are not */
	struct slot *drawn; /* holds the job's next I/O, which is yet to be sent */
	bool begun;         /* the job has begun it */

	struct tally tally;
	struct histogram latency;
	uint64_t kicks;
	uint64_t finished;   /* when */
	atomic_ullong count; /* of I/Os that came back, for others to look at */
};

/* NULL: no memory. */
struct guest *guest_new(struct run *run, uint32_t index);
void guest_free(struct guest *guest);
void *guest_main(void *guest);

#endif
