/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guest.h"
#include "host.h"
#include "owner.h"
#include "say.h"

#define NS_PER_S UINT64_C(1000000000)

enum { PROGRESS_NS = 500000000 };

static atomic_bool interrupted;

void run_interrupt(int signal)
{
	(void)signal;
	atomic_store(&interrupted, true);
}

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

bool run_ends(const struct run *run)
{
	return atomic_load_explicit(&interrupted, memory_order_relaxed) ||
	       atomic_load_explicit(&run->failed, memory_order_relaxed) ||
	       (run->deadline && clock_ns() >= run->deadline);
}

void run_fail(struct run *run)
{
	uint32_t i;

	atomic_store(&run->failed, true);
	for (i = 0; i < run->machine->options->queues; i++)
		vqb_notify_signal(&run->machine->queue[i].interrupt);
	for (i = 0; i < run->machine->options->jobs; i++)
		vqb_notify_signal(&run->guest[i]->wake);
}

static uint64_t count(const struct run *run)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < run->machine->options->jobs; i++)
		sum += atomic_load_explicit(&run->guest[i]->count, memory_order_relaxed);
	return sum;
}

/* One line on the terminal, written over and over, and wiped away in the end. */
static void show_progress(const struct run *run)
{
	uint64_t now = clock_ns(), done = count(run), all = run->job->ios;
	double share = all ? (double)done / (double)all : 0;

	if (run->deadline)
		share = (double)(now - run->started) / (double)(run->deadline - run->started);
	fprintf(stderr, "\r%s: %3.0f %%, %" PRIu64 " I/Os, %.0f/s\033[K", run->job->name,
		100 * (share < 1 ? share : 1), done,
		(double)done * 1e9 / (double)(now - run->started));
}

static void wait_for_guests(struct run *run, bool progress)
{
	uint32_t left = run->machine->options->jobs;
	struct timespec until;
	bool shown = false;

	while (left) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PROGRESS_NS;
		until.tv_sec += until.tv_nsec / (long)NS_PER_S;
		until.tv_nsec %= (long)NS_PER_S;
		if (!sem_timedwait(&run->finished, &until)) {
			left--;
		} else if (errno == ETIMEDOUT && progress) {
			show_progress(run);
			shown = true;
		}
	}
	if (shown)
		fputs("\r\033[K", stderr);
}

/* How many there are of each kind. */
struct threads {
	uint32_t hosts, owners, guests;
};

/* Those that are there when one can't be had leave by themselves, since the run has failed. */
static bool start(struct run *run, struct threads *t)
{
	uint32_t jobs = run->machine->options->jobs, queues = run->machine->options->queues;
	struct owner *o;
	int error = 0;

	for (; t->hosts < queues && !error; t->hosts += !error)
		error = pthread_create(&run->host[t->hosts]->thread, NULL, host_main,
				       run->host[t->hosts]);
	for (; t->owners < queues && !error; t->owners += !error) {
		o = run->owner[t->owners];
		if (o->threaded)
			error = pthread_create(&o->thread, NULL, owner_main, o);
	}
	for (; t->guests < jobs && !error; t->guests += !error)
		error = pthread_create(&run->guest[t->guests]->thread, NULL, guest_main,
				       run->guest[t->guests]);
	if (!error)
		return true;
	complain("no thread to be had: %s", strerror(error));
	atomic_store(&run->failed, true);
	return false;
}

/* Guests leave by themselves; then nobody needs the owners, and then nobody the hosts. */
static void join(struct run *run, const struct threads *t)
{
	uint32_t i;

	for (i = 0; i < t->guests; i++)
		pthread_join(run->guest[i]->thread, NULL);
	atomic_store(&run->guests_left, true);
	for (i = 0; i < t->owners; i++) {
		vqb_notify_signal(&run->machine->queue[i].interrupt);
		if (run->owner[i]->threaded)
			pthread_join(run->owner[i]->thread, NULL);
	}
	atomic_store(&run->owners_left, true);
	for (i = 0; i < t->hosts; i++) {
		vqb_notify_signal(&run->machine->queue[i].kick);
		pthread_join(run->host[i]->thread, NULL);
	}
}

/* The signals go to the main thread, which waits with nothing in its hands. */
static bool carry_out(struct run *run, uint64_t runtime_ns, bool progress)
{
	struct threads threads = { 0 };
	sigset_t all, before;
	bool good;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_mutex_lock(&run->gate);
	good = start(run, &threads);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	run->started = clock_ns();
	if (runtime_ns)
		run->deadline = run->started + runtime_ns;
	pthread_mutex_unlock(&run->gate);
	if (good)
		wait_for_guests(run, progress);
	join(run, &threads);
	return good;
}

static void add_guest(struct figures *f, const struct run *run, const struct guest *g)
{
	f->tally.bios += g->tally.bios;
	f->tally.bytes += g->tally.bytes;
	f->tally.fua += g->tally.fua;
	f->tally.zeroes += g->tally.zeroes;
	f->tally.discards += g->tally.discards;
	f->tally.errors += g->tally.errors;
	f->tally.cancelled += g->tally.cancelled;
	f->tally.late += g->tally.late;
	f->tally.unearned += g->tally.unearned;
	f->tally.mismatches += g->tally.mismatches;
	f->tally.verified_bytes += g->tally.verified_bytes;
	histogram_merge(&f->latency, &g->latency);
	if (g->finished - run->started > f->ns)
		f->ns = g->finished - run->started;
}

static void add_blk(struct vqb_requests_counters *sum, struct vqb_blk_driver *blk)
{
	struct vqb_requests_counters counters;

	vqb_blk_driver_read_counters(blk, &counters);
	vqb_blk_driver_clear_counters(blk);
	sum->bios += counters.bios;
	sum->requests += counters.requests;
	sum->merged += counters.merged;
	sum->parts += counters.parts;
	sum->flushes += counters.flushes;
	sum->full += counters.full;
	sum->cancelled += counters.cancelled;
	sum->retried += counters.retried;
}

/* Adds up what one queue has counted, and starts its counters over. */
static void add_queue(struct figures *f, const struct run *run, uint32_t i)
{
	const struct queue *q = &run->machine->queue[i];
	const struct owner *o = run->owner[i];
	struct vqb_driver_counters driver;
	struct vqb_device_counters device;
	struct vqb_blk_queue_counters served;

	vqb_driver_read_counters(q->driver, &driver);
	vqb_device_read_counters(q->device, &device);
	vqb_blk_queue_read_counters(q->served, &served);
	f->requests += driver.requests;
	f->descriptors += driver.descriptors;
	f->indirect_requests += driver.indirect;
	f->kicks += o->kicks;
	f->kicks_suppressed += driver.suppressed;
	f->interrupts += run->host[i]->interrupts;
	f->interrupts_suppressed += device.suppressed;
	f->resets += o->resets;
	f->undecided += o->undecided;
	f->unsent += o->unsent;
	f->host_submissions += served.submissions;
	f->host_merges += served.read_merges + served.write_merges;
	f->injected += layers_injected(&q->layers);
	add_blk(&f->guest, q->blk);
	vqb_driver_clear_counters(q->driver);
	vqb_device_clear_counters(q->device);
	vqb_blk_queue_clear_counters(q->served);
}

/* Is nothing left anywhere? Otherwise some I/O has not come back. */
static bool is_idle(const struct run *run, uint32_t i)
{
	const struct queue *q = &run->machine->queue[i];

	if (!vqb_blk_outstanding(q->blk) && !vqb_blk_waiting(q->blk) &&
	    !vqb_driver_in_flight(q->driver))
		return true;
	complain("queue %" PRIu32 ": %" PRIu32 " I/Os never came back", i,
		 vqb_blk_outstanding(q->blk));
	return false;
}

/* Each flush that an injected fault has failed fails an I/O, whose status says so. */
static uint32_t flushes_unnoticed(const struct run *run, uint32_t i)
{
	uint32_t flushes = layers_owed(&run->machine->queue[i].layers);

	if (flushes)
		complain("queue %" PRIu32 ": %" PRIu32
			 " flushes were to fail, by --inject, and no I/O did",
			 i, flushes);
	return flushes;
}

static bool open_threads(struct run *run)
{
	uint32_t jobs = run->machine->options->jobs, queues = run->machine->options->queues, i;

	for (i = 0; i < queues; i++) {
		run->owner[i] = owner_new(run, i);
		run->host[i] = host_new(run, i);
		if (!run->owner[i] || !run->host[i])
			return false;
	}
	for (i = 0; i < jobs; i++) {
		run->guest[i] = guest_new(run, i);
		if (!run->guest[i])
			return false;
	}
	return true;
}

static bool open_run(struct run *run)
{
	uint32_t jobs = run->machine->options->jobs, queues = run->machine->options->queues;

	pthread_mutex_init(&run->gate, NULL);
	pthread_barrier_init(&run->phase, NULL, jobs);
	sem_init(&run->finished, 0, 0);
	run->guest = calloc(jobs, sizeof(struct guest *));
	run->owner = calloc(queues, sizeof(struct owner *));
	run->host = calloc(queues, sizeof(struct host *));
	if (run->guest && run->owner && run->host && open_threads(run))
		return true;
	complain("no memory, or no eventfd");
	return false;
}

static void close_run(struct run *run)
{
	uint32_t i;

	for (i = 0; run->guest && i < run->machine->options->jobs; i++)
		guest_free(run->guest[i]);
	for (i = 0; run->owner && i < run->machine->options->queues; i++)
		owner_free(run->owner[i]);
	for (i = 0; run->host && i < run->machine->options->queues; i++)
		host_free(run->host[i]);
	free(run->guest);
	free(run->owner);
	free(run->host);
	sem_destroy(&run->finished);
	pthread_barrier_destroy(&run->phase);
	pthread_mutex_destroy(&run->gate);
}

bool run_job(struct machine *machine, struct job *job, uint64_t runtime_ns, bool progress,
	     struct figures *figures)
{
	struct run run = { .machine = machine, .job = job };
	bool good = open_run(&run) && carry_out(&run, runtime_ns, progress);
	uint32_t i;

	memset(figures, 0, sizeof(*figures));
	figures->failed = atomic_load(&run.failed);
	for (i = 0; good && i < machine->options->jobs; i++)
		add_guest(figures, &run, run.guest[i]);
	for (i = 0; good && i < machine->options->queues; i++) {
		add_queue(figures, &run, i);
		if (!figures->failed && !is_idle(&run, i))
			figures->failed = true;
		if (!figures->failed)
			figures->tally.unearned += flushes_unnoticed(&run, i);
	}
	figures->interrupted = atomic_load(&interrupted) && !run.complete;
	close_run(&run);
	return good;
}
