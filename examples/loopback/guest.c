/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop: send what the job has and the ring takes, publish, take back what has come, and sleep
 * only after arming said that nothing has come meanwhile.
 */
#include "guest.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

/* An I/O and its buffer. The bio comes first, so that one that is handed back leads to its slot. */
struct slot {
	struct vqb_bio bio;
	struct vqb_segment segment;
	struct io io;
	uint64_t started;
	uint64_t addr; /* of the buffer, as the guest sees it, and here */
	void *data;
	struct slot *next;
};

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

static void set_bio(const struct guest *g, struct slot *slot)
{
	static const uint8_t op[] = { VQB_BLK_IN, VQB_BLK_OUT, VQB_BLK_FLUSH };
	const struct io *io = &slot->io;
	bool constant = io->op == IO_WRITE && !g->run->job->own_data;

	/* With faults, a write is known by its buffer, and so needs one of its own. */
	if (constant && g->queue->layers.fault) {
		memcpy(slot->data, g->run->machine->constant.host, io->bytes);
		constant = false;
	}
	slot->segment.addr = constant ? g->run->machine->constant.addr : slot->addr;
	slot->segment.len = io->bytes;
	slot->bio.vec = io->bytes ? &slot->segment : NULL;
	slot->bio.nvec = io->bytes ? 1 : 0;
	slot->bio.op = op[io->op];
	slot->bio.sector = io->offset / VQB_SECTOR_BYTES;
}

/* Has it failed if and only if an injected fault says so? Otherwise that is said, once. */
static void check_status(struct guest *g, const struct slot *slot, int32_t status)
{
	static const char *const what[] = { "read", "write", "flush" };
	uint32_t buffer = (uint32_t)(slot - g->slot);
	bool lost;

	if (slot->io.op == IO_FLUSH)
		buffer = g->run->machine->options->iodepth;
	lost = layers_lost(&g->queue->layers, buffer);
	if (lost == (status != VQB_OK))
		return;
	if (!g->tally.unearned++)
		complain("a %s of %u bytes at %llu %s: %s", what[slot->io.op], slot->io.bytes,
			 (unsigned long long)slot->io.offset,
			 lost ? "was to fail, by --inject" : "failed", vqb_status_name(status));
}

/* An I/O has come back, or could not be sent. */
static void end(struct guest *g, struct slot *slot, int32_t status)
{
	struct tally *t = &g->tally;

	check_status(g, slot, status);
	t->bios++;
	t->errors += status != VQB_OK;
	t->bytes += status ? 0 : slot->io.bytes;
	g->run->job->end(g->run->job, g->index, &slot->io, slot->data, !status, t);
	give_back(g, slot);
}

/* Sends the I/O that waits. False: there is no room now. */
static bool send(struct guest *g)
{
	struct slot *slot = g->drawn;
	int32_t status;

	set_bio(g, slot);
	slot->started = clock_ns();
	status = vqb_blk_submit(g->queue->blk, &slot->bio);
	if (status == VQB_E_NOSPC && vqb_blk_in_flight(g->queue->blk))
		return false;
	g->drawn = NULL;
	if (status)
		end(g, slot, status);
	if (status == VQB_E_BROKEN || status == VQB_E_NOSPC)
		run_fail(g->run);
	return true;
}

static void publish(struct guest *g)
{
	if (g->run->machine->options->poll) {
		vqb_driver_expose(g->queue->driver);
	} else if (vqb_blk_publish(g->queue->blk) & VQB_NOTIFY) {
		g->kicks++;
		vqb_notify_signal(&g->queue->kick);
	}
}

static bool collect(struct guest *g)
{
	struct vqb_bio *bio, *next;
	uint32_t n = vqb_blk_reap(g->queue->blk, &bio);
	uint64_t now = n ? clock_ns() : 0;

	for (; bio; bio = next) {
		next = bio->next;
		histogram_add(&g->latency, now - ((struct slot *)bio)->started);
		end(g, (struct slot *)bio, bio->status);
	}
	if (n)
		atomic_store_explicit(&g->count, g->tally.bios, memory_order_relaxed);
	return n > 0;
}

/* Nothing has come back: until something does. */
static void rest(struct guest *g)
{
	struct vqb_driver *driver = g->queue->driver;

	if (vqb_driver_state(driver)) {
		complain("queue %u: the driver gave up on its device", g->index);
		run_fail(g->run);
	} else if (g->run->machine->options->poll) {
		sched_yield();
	} else {
		if (!(vqb_driver_arm(driver) & VQB_MORE))
			vqb_notify_wait(&g->queue->interrupt, -1);
		vqb_driver_disarm(driver);
	}
}

/* All that the job has for this queue in this phase. */
static void work(struct guest *g)
{
	while (!atomic_load(&g->run->failed)) {
		while (draw(g) && begin(g) && send(g))
			;
		publish(g);
		if (collect(g))
			continue;
		if (vqb_blk_in_flight(g->queue->blk))
			rest(g);
		else if (!g->drawn)
			return;
	}
}

/* While all guests wait. If the run doesn't end now, it did not before, so the phase is complete. */
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

struct guest *guest_new(struct run *run, uint32_t index)
{
	const struct machine *machine = run->machine;
	struct queue *queue = &machine->queue[index];
	struct guest *g = object_memory(sizeof(*g));
	uint32_t i = machine->options->iodepth;

	if (!g)
		return NULL;
	g->run = run;
	g->queue = queue;
	g->index = index;
	g->slot = calloc(i, sizeof(*g->slot));
	if (!g->slot) {
		free(g);
		return NULL;
	}
	while (i--) {
		g->slot[i].addr = queue->data.addr + (uint64_t)i * machine->buffer;
		g->slot[i].data = (char *)queue->data.host + (uint64_t)i * machine->buffer;
		give_back(g, &g->slot[i]);
	}
	return g;
}

void guest_free(struct guest *guest)
{
	if (guest)
		free(guest->slot);
	free(guest);
}
