/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h: the host's thread of one queue: serves the ring until it is told to leave.
 */
#ifndef LOOPBACK_HOST_H
#define LOOPBACK_HOST_H

#include "run.h"

struct host {
	_Alignas(64) struct run *run;
	struct queue *queue;
	uint32_t index;
	pthread_t thread;
	uint64_t interrupts;
};

/* NULL: no memory. */
struct host *host_new(struct run *run, uint32_t index);
void host_free(struct host *host);
void *host_main(void *host);

#endif
