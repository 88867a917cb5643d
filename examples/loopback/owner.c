/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop: submit as one list whatever was sent, cancel, take back what has come, publish, and
 * sleep only after arming said that nothing has come meanwhile.
 */
#include "owner.h"

#include <sched.h>
#include <stdlib.h>

#include "guest.h"
#include "random.h"
#include "say.h"
#include "slot.h"

/*
 * Was it to fail, by a fault that was injected into its data, or into a flush behind it? Of flushes
 * the last one failed it, if anything did.
 */
static bool is_lost(struct owner *o, const struct slot *slot, int32_t status)
{
	struct layers *l = &o->queue->layers;
	bool flushes = slot->io.op == IO_FLUSH || slot->bio.flags & VQB_BIO_FUA;

	return layers_lost(l, &slot->io, slot->buffer) ||
	       (status && flushes && layers_lost_flush(l));
}

static void hand_back(struct owner *o, struct slot *slot, int32_t status)
{
	if (!slot->inside) {
		complain("queue %u: an I/O came back twice", o->index);
		run_fail(o->run);
		return;
	}
	slot->inside = false;
	slot->sent.status = status;
	slot->lost = is_lost(o, slot, status);
	slot->guest->told = true;
	notes_put(&slot->guest->back, &slot->sent);
}

/* A list of bios, in order. What the driver doesn't take goes back at once. */
static void submit(struct owner *o, struct vqb_bio *list)
{
	struct vqb_bio *bio, *next, *refused;

	for (bio = list; bio; bio = bio->next)
		slot_of(bio)->inside = true;
	vqb_blk_submit_list(o->queue->blk, list, &refused);
	for (bio = refused; bio; bio = next) {
		next = bio->next;
		hand_back(o, slot_of(bio), bio->status);
	}
}

/* All lists that were sent, as one. */
static struct vqb_bio *take_sent(struct owner *o)
{
	uint32_t rate = o->run->machine->options->reset;
	struct note *note = notes_take(&o->queue->sent);
	struct vqb_bio *first = note ? &note->slot->bio : NULL, **tail = &first;

	for (; note; note = note->next) {
		*tail = &note->slot->bio;
		for (; *tail; tail = &(*tail)->next)
			o->due |= rate && random_chance(&o->stream, rate);
	}
	return first;
}

static void cancel(struct owner *o, struct note *note)
{
	struct note *next;
	struct slot *slot;

	for (; note; note = next) {
		next = note->next;
		slot = note->slot;
		note->status = vqb_blk_cancel(o->queue->blk, &slot->bio);
		if (note->status == VQB_E_INVALID &&
		    (slot->inside || slot->bio.state != VQB_BIO_IDLE)) {
			complain("queue %u: an I/O is out, and can't be cancelled", o->index);
			run_fail(o->run);
		}
		if (!note->status)
			slot->inside = false;
		slot->guest->told = true;
		notes_put(&slot->guest->back, note);
	}
}

static bool collect(struct owner *o)
{
	struct vqb_bio *bio, *next;
	uint32_t n = vqb_blk_reap(o->queue->blk, &bio);

	for (; bio; bio = next) {
		next = bio->next;
		hand_back(o, slot_of(bio), bio->status);
	}
	return n > 0;
}

static void publish(struct owner *o)
{
	if (o->run->machine->options->poll) {
		vqb_driver_expose(o->queue->driver);
	} else if (vqb_blk_publish(o->queue->blk) & VQB_NOTIFY) {
		o->kicks++;
		vqb_notify_signal(&o->queue->kick);
	}
}

/* ---- reset ---- */

/*
 * What the driver had, in the order in which it was submitted. What must be done is all that is not
 * over; that it is done twice, perhaps, harms nothing that there is here.
 */
static void submit_again(struct owner *o, struct vqb_bio *list)
{
	struct vqb_bio *bio, *next, *first = NULL, **tail = &first;

	for (bio = list; bio; bio = next) {
		next = bio->next;
		bio->next = NULL;
		if (bio->status == VQB_E_AGAIN) {
			slot_of(bio)->undecided = true;
			o->undecided++;
		} else if (bio->status == VQB_E_CANCELLED) {
			o->unsent++;
		} else {
			hand_back(o, slot_of(bio), bio->status);
			continue;
		}
		layers_lost(&o->queue->layers, &slot_of(bio)->io, slot_of(bio)->buffer);
		*tail = bio;
		tail = &bio->next;
	}
	if (first)
		submit(o, first);
	publish(o);
}

/* While the host's end stands still, without a ring. */
static struct vqb_bio *reset_driver(struct owner *o)
{
	struct queue *q = o->queue;
	struct vqb_bio *list = NULL;
	int32_t status = vqb_driver_reset(q->driver, NULL);

	if (!status)
		status = vqb_blk_abandon(q->blk, &list);
	if (!status && vqb_blk_outstanding(q->blk))
		status = VQB_E_BUSY;
	if (!status)
		status = vqb_driver_reset(q->driver, &q->ring);
	if (status) {
		complain("queue %u: no reset: %s", o->index, vqb_status_name(status));
		run_fail(o->run);
	}
	return list;
}

/* Resets the queue in the middle of whatever is going on, and goes on with it. */
static void recover(struct owner *o)
{
	struct queue *q = o->queue;
	struct vqb_bio *list = NULL;

	o->due = false;
	atomic_store(&q->stop, true);
	vqb_notify_signal(&q->kick);
	sem_wait(&q->stopped);
	if (!atomic_load(&o->run->failed))
		list = reset_driver(o);
	layers_owed(&q->layers); /* what was to fail for those begins again */
	sem_post(&q->restart);
	if (atomic_load(&o->run->failed))
		return;
	o->resets++;
	submit_again(o, list);
}

/* ---- the loop ---- */

/* Once for each of them, however much has come back. */
static void wake_guests(struct owner *o)
{
	struct run *run = o->run;
	struct guest *g;
	uint32_t i;

	for (i = o->index; i < run->machine->options->jobs; i += run->machine->options->queues) {
		g = run->guest[i];
		if (g->told && atomic_exchange(&g->asleep, false))
			vqb_notify_signal(&g->wake);
		g->told = false;
	}
}

bool owner_step(struct owner *owner)
{
	/* Who cancels has sent before: so what is to be cancelled is submitted already, or now. */
	struct note *cancels = notes_take(&owner->queue->cancels);
	struct vqb_bio *list = take_sent(owner);
	bool busy = cancels || list;

	if (list)
		submit(owner, list);
	cancel(owner, cancels);
	if (collect(owner))
		busy = true;
	publish(owner);
	if (owner->due)
		recover(owner);
	if (busy)
		wake_guests(owner);
	return busy;
}

void owner_rest(struct owner *owner)
{
	struct queue *q = owner->queue;

	if (vqb_driver_state(q->driver)) {
		complain("queue %u: the driver gave up on its device", owner->index);
		run_fail(owner->run);
	} else if (owner->run->machine->options->poll) {
		sched_yield();
	} else {
		atomic_store(&q->asleep, true);
		if (!(vqb_driver_arm(q->driver) & VQB_MORE) && !notes_any(&q->sent) &&
		    !notes_any(&q->cancels))
			vqb_notify_wait(&q->interrupt, -1);
		atomic_store(&q->asleep, false);
		vqb_driver_disarm(q->driver);
	}
}

void *owner_main(void *owner)
{
	struct owner *o = owner;
	struct run *run = o->run;

	pthread_mutex_lock(&run->gate);
	pthread_mutex_unlock(&run->gate);
	while (!atomic_load(&run->guests_left) && !atomic_load(&run->failed))
		if (!owner_step(o))
			owner_rest(o);
	return NULL;
}

struct owner *owner_new(struct run *run, uint32_t index)
{
	const struct options *options = run->machine->options;
	struct owner *o = object_memory(sizeof(*o));

	if (!o)
		return NULL;
	o->run = run;
	o->queue = &run->machine->queue[index];
	o->index = index;
	o->threaded = options_jobs_of(options, index) > 1;
	o->stream = random_mix(options->seed + 3) + index;
	return o;
}

void owner_free(struct owner *owner)
{
	free(owner);
}
