/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h: the device's thread of a queue, over storage that is bad: it sleeps whenever it may,
 * stops with requests on their way when the driver's thread says so, and starts over.
 *
 * A reset is three calls of the driver's thread, the first two of which wait for the device:
 *   host_stop     it has been reset, and is quiet: it writes nothing any more
 *   host_late     it has had time to be late, and wasn't
 *   host_resume   it goes on, on the ring that host->at says
 * From the reset on no status is written, which is looked at here, and from the moment that quiesce
 * has answered VQB_OK no byte of any buffer, which is for the driver's thread to see, after
 * host_late.
 */
#ifndef TESTS_HOST_H
#define TESTS_HOST_H

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vqblk/backend_fault.h>
#include <vqblk/blk_device.h>
#include <vqblk/host/notify.h>

#include "random.h"
#include "unit.h"

#define PER_CENT (VQB_FAULT_ALWAYS / 100)

enum {
	HOST_PATIENCE = 20000, /* milliseconds */
	HOST_STATUSES = 256,   /* at most */
};

struct host {
	/* set up before the threads start */
	struct vqb_device *dev;
	struct vqb_blk_queue *queue;
	struct vqb_backend *backend; /* one that injects faults */
	const uint8_t *status;       /* where status bytes are in guest memory, */
	size_t statuses;             /* and how many */
	/* the driver's to change while the device stands */
	struct vqb_ring_at at;
	/* between the threads */
	struct vqb_notify kick, interrupt;
	sem_t stopped, resumed;
	atomic_bool stop, done;
	_Atomic(const char *) *fault; /* the first thing that went wrong, whoever's it is */
	/* the device's */
	struct random random;
};

/* ---- failing, from any thread ---- */

static inline void host_give_up(struct host *h, const char *what)
{
	const char *none = NULL;

	atomic_compare_exchange_strong(h->fault, &none, what);
	atomic_store(&h->done, true);
	vqb_notify_signal(&h->kick);
	vqb_notify_signal(&h->interrupt);
	sem_post(&h->stopped);
	sem_post(&h->resumed);
}

static inline bool host_failed(const struct host *h)
{
	return atomic_load(h->fault) != NULL;
}

static inline void host_expect(struct host *h, bool holds, const char *what)
{
	if (!holds)
		host_give_up(h, what);
}

static inline void host_wait(struct host *h, sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HOST_PATIENCE / 1000;
	while (sem_timedwait(sem, &until)) {
		if (errno == EINTR)
			continue;
		host_give_up(h, "the other thread does not answer");
		return;
	}
}

/* ---- the device ---- */

static inline void host_quiet(struct host *h)
{
	for (uint32_t tries = 0; vqb_blk_queue_quiesce(h->queue); tries++) {
		if (tries > 100000) {
			host_give_up(h, "the queue does not come to rest");
			return;
		}
		vqb_backend_drain(h->backend);
	}
	host_expect(h, !vqb_blk_queue_in_flight(h->queue), "quiet, with requests in flight");
}

/* What comes too late would come now. */
static inline void host_be_late(struct host *h)
{
	struct timespec nap = { .tv_nsec = 300000 };

	for (int i = 0; i < 10; i++)
		vqb_blk_queue_run(h->queue, 64);
	nanosleep(&nap, NULL);
	vqb_backend_drain(h->backend);
	host_expect(h, !vqb_backend_poll(h->backend), "an io was in the backend");
}

static inline uint64_t host_submissions(const struct host *h)
{
	struct vqb_blk_queue_counters c;

	vqb_blk_queue_read_counters(h->queue, &c);
	return c.submissions;
}

static inline void host_be_reset(struct host *h)
{
	uint64_t submissions = host_submissions(h);
	uint8_t status[HOST_STATUSES];

	host_expect(h, !vqb_device_reset(h->dev, NULL), "the device's reset was refused");
	memcpy(status, h->status, h->statuses);
	for (uint32_t i = random_below(&h->random, 3); i; i--)
		vqb_blk_queue_run(h->queue, 8);
	host_quiet(h);
	host_expect(h, !memcmp(status, h->status, h->statuses),
		    "a status was written after the reset");
	host_expect(h, submissions == host_submissions(h), "an io was begun after the reset");
	atomic_store(&h->stop, false);
	sem_post(&h->stopped);
	host_wait(h, &h->resumed);
	if (host_failed(h))
		return;
	host_be_late(h);
	sem_post(&h->stopped);
	host_wait(h, &h->resumed);
	if (host_failed(h))
		return;
	host_expect(h, !vqb_device_reset(h->dev, &h->at), "the device does not start over");
	host_expect(h, !vqb_blk_queue_accept(h->queue, h->at.features), "features are refused");
}

static inline void host_serve(struct host *h)
{
	uint32_t answer;

	do {
		uint32_t budget = 1 + random_below(&h->random, 64);

		answer = vqb_blk_queue_run(h->queue, budget);
		if (answer & VQB_NOTIFY)
			vqb_notify_signal(&h->interrupt);
		if (atomic_load(&h->stop))
			break;
	} while (answer & VQB_MORE);
	host_expect(h, !vqb_device_state(h->dev, NULL), "the device's ring is broken");
}

/* The thread: until host_end. */
static inline void *host_run(void *context)
{
	struct host *h = context;

	while (!atomic_load(&h->done)) {
		host_serve(h);
		if (atomic_load(&h->stop))
			host_be_reset(h);
		else if (vqb_backend_fault_held(h->backend))
			sched_yield();
		else if (vqb_notify_wait(&h->kick, HOST_PATIENCE))
			host_give_up(h, "the device was not woken");
	}
	host_quiet(h);
	return NULL;
}

/* ---- for the driver's thread ---- */

static inline void host_kick(struct host *h, uint32_t answer)
{
	if (answer & VQB_NOTIFY)
		vqb_notify_signal(&h->kick);
}

static inline void host_stop(struct host *h)
{
	atomic_store(&h->stop, true);
	vqb_notify_signal(&h->kick);
	host_wait(h, &h->stopped);
}

static inline void host_late(struct host *h)
{
	sem_post(&h->resumed);
	host_wait(h, &h->stopped);
}

static inline void host_resume(struct host *h)
{
	sem_post(&h->resumed);
}

static inline void host_end(struct host *h)
{
	atomic_store(&h->done, true);
	vqb_notify_signal(&h->kick);
}

/* ---- setting up ---- */

static inline void *host_memory(size_t bytes)
{
	void *mem = aligned_alloc(64, VQB_ROUND_UP(bytes));

	assert_non_null(mem);
	memset(mem, 0, VQB_ROUND_UP(bytes));
	return mem;
}

/* How bad storage is; with `chance`, there are errors besides those of bad sectors. */
static inline void host_fault_rates(struct vqb_backend_fault_config *config, bool chance)
{
	config->rate[VQB_FAULT_SHORT] = config->rate[VQB_FAULT_DELAY] = 5 * PER_CENT;
	config->rate[VQB_FAULT_REORDER] = config->rate[VQB_FAULT_FULL] = 5 * PER_CENT;
	config->rate[VQB_FAULT_BAD_SECTOR] = PER_CENT;
	if (chance)
		config->rate[VQB_FAULT_ERROR] = config->rate[VQB_FAULT_RAGGED] = 5 * PER_CENT;
}

/* The rest of what is set up before the threads start, besides objects and status bytes. */
static inline void host_open(struct host *h, _Atomic(const char *) *fault, uint64_t seed)
{
	h->fault = fault;
	h->random.state = seed;
	assert_int_equal(vqb_notify_open(&h->kick), VQB_OK);
	assert_int_equal(vqb_notify_open(&h->interrupt), VQB_OK);
	assert_false(sem_init(&h->stopped, 0, 0) || sem_init(&h->resumed, 0, 0));
}

static inline void host_close(struct host *h)
{
	sem_destroy(&h->stopped);
	sem_destroy(&h->resumed);
	vqb_notify_close(&h->kick);
	vqb_notify_close(&h->interrupt);
}

#endif
