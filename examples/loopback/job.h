/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h: what is to be done, as a series of I/Os for each of the threads that submit (--jobs).
 *
 * A job goes in phases. In a phase, each thread asks for its next I/O until there is none, begins
 * it, and ends it when it has come back. When all of them are idle, one moves the job on to its
 * next phase. A thread only ever gets I/Os that overlap with none of another's in the same phase,
 * so that what the disk holds in the end does not depend on the threads.
 */
#ifndef LOOPBACK_JOB_H
#define LOOPBACK_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"
#include "options.h"

enum job_answer {
	JOB_GO,
	JOB_WAIT,   /* it overlaps with one of this thread's in flight: begin it again later */
	JOB_FAILED, /* can't be done, and neither can the rest; it was said why */
};

struct job {
	const char *name;
	uint32_t largest; /* bytes of its largest I/O */
	uint64_t ios;     /* how many I/Os it is in all; 0: time decides */
	bool own_data;    /* begin fills a write's data in; else any data will do */
	bool all_or_none; /* has failed if it is interrupted */
	uint64_t trims_skipped;

	/* The next I/O of a thread in this phase. */
	bool (*next)(struct job *job, uint32_t thread, struct io *io);
	/* The next phase; false: there is none. */
	bool (*advance)(struct job *job);
	/* Before an I/O is sent: fills in a write's data. */
	enum job_answer (*begin)(struct job *job, const struct io *io, void *data);
	/* When it has come back: checks a read's data. */
	void (*end)(struct job *job, uint32_t thread, const struct io *io, const void *data,
		    enum io_fate fate, struct tally *tally);
	void (*close)(struct job *job);
};

/*
 * Each makes a job, or says in one line why not and returns NULL. `ledger` is NULL where nothing
 * is tracked; the ledger and the options outlive the job.
 */
struct job *job_copy(const struct options *options, uint64_t disk_bytes);
struct job *job_pattern(const struct options *options, uint64_t disk_bytes, struct ledger *ledger);
struct job *job_replay(const struct options *options, uint64_t disk_bytes, struct ledger *ledger);

/* Reads back and checks whatever the ledger says was written, in I/Os of `largest` bytes. */
struct job *job_readback(struct ledger *ledger, uint32_t threads, uint32_t largest);

/* For jobs: part `i` of `parts` of the range 0 to n; the parts differ by one at most. */
static inline uint64_t part_start(uint64_t n, uint32_t i, uint32_t parts)
{
	return n / parts * i + (n % parts < i ? n % parts : i);
}

#endif
