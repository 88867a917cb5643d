/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "say.h"

enum { BUDGET = 256 };

static void serve(struct host *h)
{
	uint32_t answer;

	do {
		answer = vqb_blk_queue_run(h->queue->served, BUDGET);
		if (answer & VQB_NOTIFY) {
			h->interrupts++;
			vqb_notify_signal(&h->queue->interrupt);
		}
	} while (answer & VQB_MORE);
}

/* For a guest that polls: it is told nothing, and tells nothing. */
static void serve_polling(struct host *h)
{
	while (vqb_blk_queue_poll(h->queue->served, BUDGET) & VQB_MORE)
		;
}

static bool is_broken(struct host *h)
{
	struct vqb_reason why;

	if (!vqb_device_state(h->queue->device, &why))
		return false;
	complain("queue %" PRIu32 ": the device gave up on its driver: rule %" PRIu32, h->index,
		 why.rule);
	return true;
}

/*
 * The queue is reset: everything that was taken is brought to its end, so that nothing is written
 * to the guest's memory any more, before the owner of the other end is told. It sets the ring up
 * again.
 */
static void reset(struct host *h)
{
	struct queue *q = h->queue;
	int32_t status;

	atomic_store(&q->stop, false);
	vqb_device_reset(q->device, NULL);
	while (vqb_blk_queue_quiesce(q->served) == VQB_E_BUSY)
		vqb_backend_drain(q->layers.top);
	sem_post(&q->stopped);
	sem_wait(&q->restart);
	status = vqb_device_reset(q->device, &q->ring_at);
	if (!status)
		status = vqb_blk_queue_accept(q->served, h->run->machine->features);
	if (!status)
		return;
	complain("queue %" PRIu32 ": no reset: %s", h->index, vqb_status_name(status));
	run_fail(h->run);
}

void *host_main(void *host)
{
	struct host *h = host;
	bool poll = h->run->machine->options->poll;

	while (!atomic_load(&h->run->owners_left)) {
		if (poll)
			serve_polling(h);
		else
			serve(h);
		if (atomic_load(&h->queue->stop)) {
			reset(h);
			continue;
		}
		if (is_broken(h)) {
			run_fail(h->run);
			break;
		}
		/* The kick is the guest's, and that of a backend that finishes later, too. */
		if (poll || layers_hold(&h->queue->layers))
			sched_yield();
		else
			vqb_notify_wait(&h->queue->kick, -1);
	}
	while (vqb_blk_queue_quiesce(h->queue->served) == VQB_E_BUSY)
		vqb_backend_drain(h->queue->layers.top);
	if (atomic_load(&h->run->failed))
		sem_post(&h->queue->stopped); /* in case that the owner waits for a reset */
	return NULL;
}

struct host *host_new(struct run *run, uint32_t index)
{
	struct host *h = object_memory(sizeof(*h));

	if (!h)
		return NULL;
	h->run = run;
	h->queue = &run->machine->queue[index];
	h->index = index;
	return h;
}

void host_free(struct host *host)
{
	free(host);
}
