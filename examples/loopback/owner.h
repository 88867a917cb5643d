/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner.h: who has the guest's end of a queue: submits bios for all threads that have put some on
 * its lists, and hands them back. If there is only one such thread, it is the owner itself.
 */
#ifndef LOOPBACK_OWNER_H
#define LOOPBACK_OWNER_H

#include "run.h"

struct owner {
	_Alignas(64) struct run *run;
	struct queue *queue;
	uint32_t index;
	bool threaded; /* it has a thread of its own */
	pthread_t thread;
	uint64_t stream; /* of random numbers */
	bool due;        /* a reset */
	uint64_t kicks, resets;
	uint64_t undecided; /* bios that a reset has handed back, and that may have been done */
	uint64_t unsent;    /* the same, of which nothing was sent */
};

/* NULL: no memory. */
struct owner *owner_new(struct run *run, uint32_t index);
void owner_free(struct owner *owner);
void *owner_main(void *owner);

/* Does all that is to be done now. False: there was nothing. */
bool owner_step(struct owner *owner);

/* There was nothing: until there is. */
void owner_rest(struct owner *owner);

#endif
