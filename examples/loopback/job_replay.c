/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replays an I/O log. Reads and writes keep their order where they overlap: those that do so
 * directly or through others, in one epoch, go to the same thread, where one waits for the other.
 * What overlaps with nothing goes to the threads in turn. A flush is an epoch of its own: it waits
 * for all that came before it, on every thread, and what follows waits for it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "iolog.h"
#include "job.h"
#include "say.h"

/* An entry of the log, and when and where it is replayed. */
struct entry {
	struct io io;
	uint32_t epoch, thread;
};

struct track {
	_Alignas(64) size_t next; /* entry of the log to look at */
};

struct replay {
	struct job job;
	struct ledger *ledger;
	struct entry *entry;
	size_t count;
	uint32_t epoch, epochs;
	struct track *track;
};

static bool replay_next(struct job *job, uint32_t thread, struct io *io)
{
	struct replay *r = (struct replay *)job;
	size_t *next = &r->track[thread].next;
	const struct entry *e;

	for (; *next < r->count; ++*next) {
		e = &r->entry[*next];
		if (e->epoch > r->epoch)
			return false;
		if (e->thread != thread)
			continue;
		++*next;
		*io = e->io;
		return true;
	}
	return false;
}

static bool replay_advance(struct job *job)
{
	struct replay *r = (struct replay *)job;

	return ++r->epoch < r->epochs;
}

static enum job_answer replay_begin(struct job *job, const struct io *io, void *data)
{
	return ledger_begin(((struct replay *)job)->ledger, io, data) ? JOB_GO : JOB_WAIT;
}

static void replay_end(struct job *job, uint32_t thread, const struct io *io, const void *data,
		       enum io_fate fate, struct tally *tally)
{
	(void)thread;
	ledger_end(((struct replay *)job)->ledger, io, data, fate, tally);
}

static void replay_close(struct job *job)
{
	struct replay *r = (struct replay *)job;

	free(r->entry);
	free(r->track);
	free(r);
}

static int by_place(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a,
			   *y = *(const struct entry *const *)b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return x->io.offset < y->io.offset ? -1 : x->io.offset > y->io.offset;
}

/* Sorted by place, what hangs together lies together. */
static bool set_threads(struct replay *r, uint32_t threads)
{
	struct entry **sorted = malloc((r->count ? r->count : 1) * sizeof(struct entry *));
	uint64_t end = 0;
	uint32_t thread = 0;
	size_t i;

	if (!sorted)
		return false;
	for (i = 0; i < r->count; i++)
		sorted[i] = &r->entry[i];
	qsort(sorted, r->count, sizeof(struct entry *), by_place);
	for (i = 0; i < r->count; i++) {
		if (i &&
		    (sorted[i]->epoch != sorted[i - 1]->epoch || sorted[i]->io.offset >= end)) {
			thread = (thread + 1) % threads;
			end = 0;
		}
		if (sorted[i]->io.offset + sorted[i]->io.bytes > end)
			end = sorted[i]->io.offset + sorted[i]->io.bytes;
		sorted[i]->thread = thread;
	}
	free(sorted);
	return true;
}

static bool set_entries(struct replay *r, const struct iolog *log)
{
	bool flushed = false;
	size_t i;

	r->count = log->count;
	r->entry = calloc(r->count ? r->count : 1, sizeof(*r->entry));
	if (!r->entry)
		return false;
	for (i = 0; i < r->count; i++) {
		r->entry[i].io = log->io[i];
		if (i && (flushed || log->io[i].op == IO_FLUSH))
			r->epochs++;
		r->entry[i].epoch = r->epochs;
		flushed = log->io[i].op == IO_FLUSH;
	}
	r->epochs++;
	return true;
}

/* The least that a buffer has, and so what a log is read back in. */
static uint32_t buffer_bytes(const struct iolog *log, uint64_t disk_bytes)
{
	uint32_t least = 64u << 10;

	if (disk_bytes < least)
		least = (uint32_t)disk_bytes;
	return log->largest > least ? log->largest : least;
}

struct job *job_replay(const struct options *options, uint64_t disk_bytes, struct ledger *ledger)
{
	struct iolog_limits limits = { disk_bytes, BS_MAX, options->unit, options->readonly };
	struct replay *r = calloc(1, sizeof(*r));
	struct iolog log;
	char why[1024];
	bool good;

	if (!r) {
		complain("no memory");
		return NULL;
	}
	if (!iolog_load(&log, options->file, &limits, why, sizeof(why))) {
		complain_of(why);
		free(r);
		return NULL;
	}
	r->ledger = ledger;
	r->track = aligned_alloc(64, options->jobs * sizeof(*r->track));
	r->job = (struct job){
		.name = "read_iolog",
		.largest = buffer_bytes(&log, disk_bytes),
		.ios = log.count,
		.own_data = true,
		.all_or_none = true,
		.trims_skipped = log.trims,
		.next = replay_next,
		.advance = replay_advance,
		.begin = replay_begin,
		.end = replay_end,
		.close = replay_close,
	};
	good = r->track && set_entries(r, &log) && set_threads(r, options->jobs);
	iolog_free(&log);
	if (!good) {
		complain("no memory");
		replay_close(&r->job);
		return NULL;
	}
	memset(r->track, 0, options->jobs * sizeof(*r->track));
	return &r->job;
}
