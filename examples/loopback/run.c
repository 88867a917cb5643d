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
}

static uint64_t count(const struct run *run)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < run->machine->options->queues; i++)
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
	uint32_t left = run->machine->options->queues;
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

/*
 * Starts as many threads as there are queues on each side. Those that are there when one can't be
 * had leave by themselves, since the run has failed.
 */
static bool start(struct run *run, uint32_t *hosts, uint32_t *guests)
{
	uint32_t n = run->machine->options->queues;
	int error = 0;

	for (*hosts = 0; *hosts < n && !error; *hosts += !error)
		error = pthread_create(&run->host[*hosts]->thread, NULL, host_main,
				       run->host[*hosts]);
	for (*guests = 0; *guests < n && !error; *guests += !error)
		error = pthread_create(&run->guest[*guests]->thread, NULL, guest_main,
				       run->guest[*guests]);
	if (!error)
		return true;
	complain("no thread to be had: %s", strerror(error));
	atomic_store(&run->failed, true);
	return false;
}

/* The signals go to the main thread, which waits with nothing in its hands. */
static bool carry_out(struct run *run, uint64_t runtime_ns, bool progress)
{
	sigset_t all, before;
	uint32_t hosts, guests, i;
	bool good;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_mutex_lock(&run->gate);
	good = start(run, &hosts, &guests);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	run->started = clock_ns();
	if (runtime_ns)
		run->deadline = run->started + runtime_ns;
	pthread_mutex_unlock(&run->gate);
	if (good)
		wait_for_guests(run, progress);
	for (i = 0; i < guests; i++)
		pthread_join(run->guest[i]->thread, NULL);
	atomic_store(&run->guests_left, true);
	for (i = 0; i < hosts; i++) {
		vqb_notify_signal(&run->machine->queue[i].kick);
		pthread_join(run->host[i]->thread, NULL);
	}
	return good;
}

/* Adds up what one queue has counted, and starts its counters over. */
static void add_queue(struct figures *f, const struct run *run, uint32_t i)
{
	const struct queue *q = &run->machine->queue[i];
	const struct guest *g = run->guest[i];
	struct vqb_driver_counters driver;
	struct vqb_device_counters device;
	struct vqb_blk_queue_counters served;

	vqb_driver_read_counters(q->driver, &driver);
	vqb_device_read_counters(q->device, &device);
	vqb_blk_queue_read_counters(q->served, &served);
	f->requests += driver.requests;
	f->descriptors += driver.descriptors;
	f->indirect_requests += driver.indirect;
	f->kicks += g->kicks;
	f->kicks_suppressed += driver.suppressed;
	f->interrupts += run->host[i]->interrupts;
	f->interrupts_suppressed += device.suppressed;
	f->host_submissions += served.submissions;
	f->host_merges += served.read_merges + served.write_merges;
	f->injected += layers_injected(&q->layers);
	f->tally.bios += g->tally.bios;
	f->tally.bytes += g->tally.bytes;
	f->tally.errors += g->tally.errors;
	f->tally.unearned += g->tally.unearned;
	f->tally.mismatches += g->tally.mismatches;
	f->tally.verified_bytes += g->tally.verified_bytes;
	histogram_merge(&f->latency, &g->latency);
	if (g->finished - run->started > f->ns)
		f->ns = g->finished - run->started;
	vqb_driver_clear_counters(q->driver);
	vqb_device_clear_counters(q->device);
	vqb_blk_queue_clear_counters(q->served);
}

static bool open_run(struct run *run)
{
	uint32_t n = run->machine->options->queues, i;

	pthread_mutex_init(&run->gate, NULL);
	pthread_barrier_init(&run->phase, NULL, n);
	sem_init(&run->finished, 0, 0);
	run->guest = calloc(n, sizeof(struct guest *));
	run->host = calloc(n, sizeof(struct host *));
	for (i = 0; run->guest && run->host && i < n; i++) {
		run->guest[i] = guest_new(run, i);
		run->host[i] = host_new(run, i);
		if (!run->guest[i] || !run->host[i])
			break;
	}
	if (i == n)
		return true;
	complain("no memory");
	return false;
}

static void close_run(struct run *run)
{
	uint32_t n = run->machine->options->queues, i;

	for (i = 0; run->guest && run->host && i < n; i++) {
		guest_free(run->guest[i]);
		host_free(run->host[i]);
	}
	free(run->guest);
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
	for (i = 0; good && i < machine->options->queues; i++)
		add_queue(figures, &run, i);
	figures->failed = atomic_load(&run.failed);
	figures->interrupted = atomic_load(&interrupted) && !run.complete;
	close_run(&run);
	return good;
}
