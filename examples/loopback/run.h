/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h: carries out a job on a machine. For each queue a host thread; for each of --jobs a guest
 * thread that submits; and where several of those share a queue, a thread that owns the guest's end
 * of it.
 */
#ifndef LOOPBACK_RUN_H
#define LOOPBACK_RUN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "io.h"
#include "job.h"
#include "queue.h"

struct guest;
struct host;
struct owner;

struct run {
	struct machine *machine;
	struct job *job;
	uint64_t started, deadline; /* of the clock; deadline 0: none */

	pthread_mutex_t gate;    /* held until all threads are there */
	pthread_barrier_t phase; /* between phases, for guests */
	bool more;               /* is there another phase? */
	bool complete;           /* the job's last phase has come to its end */
	sem_t finished;          /* posted by each guest that is done */
	atomic_bool failed;      /* it can't go on, and it was said why */
	atomic_bool guests_left; /* owners are not needed any more */
	atomic_bool owners_left; /* hosts are not, who answer to the owners' last resets */

	struct guest **guest; /* as many as jobs; number i submits to queue i % queues */
	struct owner **owner; /* as many as queues, and so are hosts */
	struct host **host;
};

/* What a run has come to, over all queues. */
struct figures {
	struct tally tally;
	struct histogram latency; /* ns */
	uint64_t ns;
	uint64_t requests, descriptors, indirect_requests;
	uint64_t kicks, kicks_suppressed, interrupts, interrupts_suppressed;
	struct vqb_requests_counters guest;
	uint64_t resets, undecided, unsent;
	uint64_t host_submissions, host_merges;
	uint64_t injected; /* faults, since the machine was opened */
	bool interrupted;  /* by a signal, before the job was done */
	bool failed;
};

/* From a signal handler: what is in flight comes to its end, and nothing new begins. */
void run_interrupt(int signal);

/*
 * Runs the job to its end, or for runtime_ns unless that is 0. With `progress`, says how far it
 * has come where it takes long. False: the threads could not be had, and it was said why.
 */
bool run_job(struct machine *machine, struct job *job, uint64_t runtime_ns, bool progress,
	     struct figures *figures);

/* For the threads. */

uint64_t clock_ns(void);

/* Is nothing new to be begun? */
bool run_ends(const struct run *run);

/* Gives up: every thread wakes up and leaves. */
void run_fail(struct run *run);

#endif
