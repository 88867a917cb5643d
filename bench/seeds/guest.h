/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guest.h: a guest with many jobs on one queue of a whole block driver, and the whole device that
 * serves it. Each job keeps `depth` bios of 512 bytes out, at places of its own on the disk: what
 * comes back to it goes out again at once. Kicks and interrupts are written to an eventfd and read
 * from it, on both sides.
 *
 * In one thread the device runs whenever the guest has nothing to do, and all is counted exactly.
 * In two, each has a CPU of its own, and sleeps when there is nothing to do.
 */
#ifndef BENCH_SEEDS_GUEST_H
#define BENCH_SEEDS_GUEST_H

#include <stdatomic.h>

#include <pthread.h>

#include <vqblk/blk_driver.h>
#include <vqblk/host/notify.h>

#include "disk.h"
#include "random.h"
#include "stats.h"

enum { GUEST_RING = 256, GUEST_BYTES = 512, GUEST_MORE = 3 /* times the rounds */ };

struct guest_plan {
	uint32_t path;   /* enum vqb_path */
	uint32_t jobs;   /* each */
	uint32_t depth;  /* with so many bios */
	bool write;      /* OUT, not IN */
	bool random;     /* anywhere on the disk; else each job in order, around a region */
	bool scattered;  /* no buffers are neighbours in memory; else neighbours on the disk are */
	bool one_by_one; /* each bio is submitted and published; else a job's as a list, once */
	bool polled;     /* the guest looks for completions, and is not interrupted */
	bool postpones;  /* the guest asks for an interrupt after a quarter of what is in flight */
	bool flags;      /* no EVENT_IDX */
	bool copies;     /* the disk is memory; else it is nothing */
	bool threads;    /* two, else one */
	uint32_t budget; /* requests that the device finishes and announces together; at least 1 */
	uint32_t slowly; /* in one thread: how often it goes on so before an interrupt arrives */
};

struct guest_bio {
	struct vqb_bio bio;
	struct vqb_segment seg;
	uint32_t job;
	double since; /* when it was submitted */
};

/* What has come back to it is a list. */
struct guest_job {
	struct vqb_bio *ready, **tail;
	uint32_t at; /* in its region, blocks */
	struct guest_job *next;
};

struct guest {
	struct guest_plan plan;
	struct disk disk;
	struct vqb_blk_driver *drv;
	struct vqb_notify kick, interrupt;
	struct guest_bio *bio;
	struct guest_job *job, *runs; /* those that something has come back to */
	struct random random;
	double now; /* when the guest began with what it does */
	uint64_t done, kicks;
	double waited_ns; /* by all of those that are done */
	_Atomic uint64_t interrupts;
	_Atomic bool ends;
	pthread_t device;
	void *backend_mem, *store;
};

/* Ends the program if something is wrong. It must not move. */
void guest_open(struct guest *guest, const struct guest_plan *plan);
void guest_close(struct guest *guest);

/* Per bio, but for the last. */
enum guest_figure { NS, LATENCY, REQUESTS, KICKS, INTERRUPTS, PER_INTERRUPT, GUEST_FIGURES };

/*
 * NS: in a good piece of a slice (pieces.h). LATENCY: ns from its submission until it was back, on
 * the average. PER_INTERRUPT: requests for one interrupt, or for none.
 */
struct guest_figures {
	double of[GUEST_FIGURES];
};

/* Some milliseconds of it, beginning and ending with nothing out. */
struct guest_figures guest_slice(struct guest *guest, uint32_t ms);

/* So many bios, or some more; for tools that count. Answers how many there were since it opened. */
uint64_t guest_run(struct guest *guest, uint64_t bios);

/* Two guests that take turns, a slice each in a round. */
struct guest_pair {
	struct summary of[2][GUEST_FIGURES];
	struct summary faster;  /* how many times the second one was */
	struct summary latency; /* how many times that of the second one was less */
};

/* So many rounds, and up to `most` while it is wide how many times faster the second one is. */
void guest_compare(const struct guest_plan plans[2], uint32_t rounds, uint32_t most,
		   struct guest_pair *pair);

#endif
