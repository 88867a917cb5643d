/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop: send in one list what the job has and slots there are for, perhaps cancel, and end what
 * has come back.
 */
#include "guest.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "owner.h"
#include "random.h"
#include "say.h"
#include "slot.h"

static void give_back(struct guest *g, struct slot *slot)
{
	slot->next = g->free;
	g->free = slot;
}

/* The job's next I/O, unless one is waiting to be sent. */
static bool draw(struct guest *g)
{
	struct slot *slot = g->free;

	if (g->drawn)
		return true;
	if (!slot || run_ends(g->run) || !g->run->job->next(g->run->job, g->index, &slot->io))
		return false;
	g->free = slot->next;
	g->drawn = slot;
	g->begun = false;
	return true;
}

static bool begin(struct guest *g)
{
	if (g->begun)
		return true;
	switch (g->run->job->begin(g->run->job, &g->drawn->io, g->drawn->data)) {
	case JOB_GO:
		g->begun = true;
		return true;
	case JOB_WAIT:
		return false;
	default:
		run_fail(g->run);
		return false;
	}
}

static uint8_t flags_of(struct guest *g, const struct io *io)
{
	const struct options *o = g->run->machine->options;
	uint8_t flags = o->guest_merge ? 0 : VQB_BIO_NOMERGE;

	if (io->op == IO_FLUSH)
		return 0;
	if ((io->op == IO_WRITE || io->op == IO_ZEROES) && o->fua &&
	    random_chance(&g->durable, o->fua))
		flags |= VQB_BIO_FUA;
	return flags;
}

static void set_bio(struct guest *g, struct slot *slot)
{
	static const uint8_t op[] = { [IO_READ] = VQB_BLK_IN,
				      [IO_WRITE] = VQB_BLK_OUT,
				      [IO_FLUSH] = VQB_BLK_FLUSH,
				      [IO_ZEROES] = VQB_BLK_WRITE_ZEROES,
				      [IO_DISCARD] = VQB_BLK_DISCARD };
	const struct machine *machine = g->run->machine;
	const struct io *io = &slot->io;
	bool constant = io->op == IO_WRITE && !g->run->job->own_data;
	bool data = io->op == IO_READ || io->op == IO_WRITE;

	/* With faults, a write is known by its buffer, and so needs one of its own. */
	if (constant && g->queue->layers.fault) {
		memcpy(slot->data, machine->constant.host, io->bytes);
		constant = false;
	}
	slot->segment.addr = constant ? machine->constant.addr : slot->addr;
	slot->segment.len = io->bytes;
	slot->bio.vec = data ? &slot->segment : NULL;
	slot->bio.nvec = data ? 1 : 0;
	slot->bio.op = op[io->op];
	slot->bio.flags = flags_of(g, io);
	slot->bio.sector = io->offset / VQB_SECTOR_BYTES;
	slot->bio.sectors = io_is_range(io->op) ? io->bytes / VQB_SECTOR_BYTES : 0;
}

/* Has it failed if and only if an injected fault says so? Otherwise that is said, once. */
static void check_status(struct guest *g, const struct slot *slot)
{
	static const char *const what[] = { "read", "write", "flush", "write of zeroes",
					    "discard" };

	if (slot->status == VQB_E_CANCELLED || slot->lost == (slot->status != VQB_OK))
		return;
	if (!g->tally.unearned++)
		complain("a %s of %u bytes at %llu %s: %s", what[slot->io.op], slot->io.bytes,
			 (unsigned long long)slot->io.offset,
			 slot->lost ? "was to fail, by --inject" : "failed",
			 vqb_status_name(slot->status));
}

/* An I/O is over, and so is the attempt to cancel it. */
static void end(struct guest *g, struct slot *slot)
{
	struct tally *t = &g->tally;
	bool cancelled = slot->status == VQB_E_CANCELLED;
	enum io_fate fate = slot->status ? IO_FAILED : IO_DONE;

	/* What a reset has left undecided may be on the disk, though it never went out again. */
	if (cancelled && !slot->undecided)
		fate = IO_NEVER;
	check_status(g, slot);
	t->bios++;
	t->cancelled += cancelled;
	t->errors += slot->status && !cancelled;
	t->fua += !!(slot->bio.flags & VQB_BIO_FUA);
	t->zeroes += slot->io.op == IO_ZEROES;
	t->discards += slot->io.op == IO_DISCARD;
	t->bytes += slot->status || io_is_range(slot->io.op) ? 0 : slot->io.bytes;
	g->run->job->end(g->run->job, g->index, &slot->io, slot->data, fate, t);
	g->out--;
	give_back(g, slot);
}

static void wake_owner(struct guest *g)
{
	if (atomic_exchange(&g->queue->asleep, false))
		vqb_notify_signal(&g->queue->interrupt);
}

/* Puts the I/O that was drawn where those are that are to be sent together. */
static bool prepare(struct guest *g, struct vqb_plug *plug)
{
	uint32_t rate = g->run->machine->options->cancel;
	struct slot *slot = g->drawn;

	set_bio(g, slot);
	if (vqb_plug_add(plug, g->queue, &slot->bio)) {
		complain("an I/O is out already, and to be sent");
		run_fail(g->run);
		return false;
	}
	g->drawn = NULL;
	g->out++;
	g->flying++;
	slot->started = clock_ns();
	slot->undecided = false;
	slot->awaits = 1;
	if (rate && random_chance(&g->stream, rate)) {
		slot->awaits = 2;
		slot->next = g->doomed;
		g->doomed = slot;
	}
	return true;
}

static bool send(struct guest *g)
{
	struct vqb_plug plug = { 0 };
	struct vqb_bio *list;
	struct queue *queue;

	while (draw(g) && begin(g) && prepare(g, &plug))
		;
	if (!plug.bios)
		return false;
	while ((queue = vqb_plug_take(&plug, &list)))
		notes_put(&queue->sent, &slot_of(list)->sent);
	wake_owner(g);
	return true;
}

/* Tries to, with all that is to be cancelled or with a quarter of it: soon, but not all at once. */
static void cancel(struct guest *g, bool all)
{
	struct slot **at = &g->doomed, *slot;
	bool any = false;

	while ((slot = *at)) {
		if (!all && random_next(&g->stream) >> 62) {
			at = &slot->next;
			continue;
		}
		*at = slot->next;
		notes_put(&g->queue->cancels, &slot->cancel);
		any = true;
	}
	if (any)
		wake_owner(g);
}

static void settle(struct guest *g, struct note *note, uint64_t now)
{
	struct slot *slot = note->slot;
	bool cancelled = note == &slot->cancel && !note->status;

	if (note == &slot->cancel)
		g->tally.late += !cancelled;
	else
		histogram_add(&g->latency, now - slot->started);
	if (note == &slot->sent || cancelled) {
		slot->status = cancelled ? VQB_E_CANCELLED : note->status;
		g->flying--;
	}
	/* An I/O that was cancelled in time does not come back by itself. */
	slot->awaits -= cancelled ? 2 : 1;
	if (!slot->awaits)
		end(g, slot);
}

static bool collect(struct guest *g)
{
	struct note *note = notes_take(&g->back), *next;
	uint64_t now = note ? clock_ns() : 0;

	if (!note)
		return false;
	for (; note; note = next) {
		next = note->next;
		settle(g, note, now);
	}
	atomic_store_explicit(&g->count, g->tally.bios, memory_order_relaxed);
	return true;
}

/* Nothing has come back: until something does. */
static void rest(struct guest *g)
{
	if (!g->owner->threaded) {
		owner_rest(g->owner);
	} else if (g->run->machine->options->poll) {
		sched_yield();
	} else {
		atomic_store(&g->asleep, true);
		if (!notes_any(&g->back))
			vqb_notify_wait(&g->wake, -1);
		atomic_store(&g->asleep, false);
	}
}

/* All that the job has for this thread in this phase. */
static void work(struct guest *g)
{
	bool busy;

	while (!atomic_load(&g->run->failed)) {
		busy = send(g);
		cancel(g, false);
		if (!g->owner->threaded)
			busy = owner_step(g->owner) || busy;
		if (collect(g) || busy)
			continue;
		if (g->doomed && !g->flying)
			cancel(g, true);
		else if (g->out)
			rest(g);
		else if (!g->drawn)
			return;
	}
}

/* While all guests wait. If the run doesn't end now, it never did: the phase is complete. */
static void next_phase(struct run *run)
{
	bool ends = run_ends(run);

	run->more = !ends && run->job->advance(run->job);
	run->complete = !ends && !run->more;
}

void *guest_main(void *guest)
{
	struct guest *g = guest;
	struct run *run = g->run;
	bool more;
	int met;

	pthread_mutex_lock(&run->gate);
	pthread_mutex_unlock(&run->gate);
	more = !atomic_load(&run->failed);
	while (more) {
		work(g);
		met = pthread_barrier_wait(&run->phase);
		if (met == PTHREAD_BARRIER_SERIAL_THREAD)
			next_phase(run);
		pthread_barrier_wait(&run->phase);
		more = run->more;
	}
	g->finished = clock_ns();
	sem_post(&run->finished);
	return NULL;
}

static void set_slot(struct guest *g, uint32_t i, uint32_t buffer)
{
	const struct machine *machine = g->run->machine;
	struct slot *slot = &g->slot[i];

	slot->guest = g;
	slot->sent.slot = slot->cancel.slot = slot;
	slot->buffer = buffer;
	slot->addr = g->queue->data.addr + (uint64_t)buffer * machine->buffer;
	slot->data = (char *)g->queue->data.host + (uint64_t)buffer * machine->buffer;
	give_back(g, slot);
}

struct guest *guest_new(struct run *run, uint32_t index)
{
	const struct options *o = run->machine->options;
	struct guest *g = object_memory(sizeof(*g));
	uint32_t first = index / o->queues * o->iodepth, i = o->iodepth;

	if (!g)
		return NULL;
	g->run = run;
	g->owner = run->owner[index % o->queues];
	g->queue = g->owner->queue;
	g->index = index;
	g->stream = random_mix(o->seed + 2) + index;
	g->durable = random_mix(random_mix(o->seed + 4) + index);
	g->slot = calloc(i, sizeof(*g->slot));
	if (vqb_notify_open(&g->wake) || !g->slot) {
		guest_free(g);
		return NULL;
	}
	while (i--)
		set_slot(g, i, first + i);
	return g;
}

void guest_free(struct guest *guest)
{
	if (!guest)
		return;
	vqb_notify_close(&guest->wake);
	free(guest->slot);
	free(guest);
}
