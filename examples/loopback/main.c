/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vqblk-loopback: a guest and a host in one process, and virtqueues between them.
 *
 *   options.c   what is asked for (with option_*.c)
 *   job_*.c     what that is, as I/Os for each thread      iolog.c       logs of fio
 *   queue.c     driver and device, on one ring             ledger.c      what the disk must hold
 *   guest.c     the threads that send I/Os                 stamp.c       what is in a sector
 *   owner.c     who has the driver: submit, cancel, reset  memory.c      guest memory
 *   host.c      the thread that serves them                disk.c        where data is stored
 *   run.c       all of these, for every queue              layers.c      faults in front of it
 *   report.c    what came of it                            histogram.c   latencies
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "job.h"
#include "ledger.h"
#include "options.h"
#include "queue.h"
#include "random.h"
#include "report.h"
#include "run.h"
#include "say.h"

struct loopback {
	struct options options;
	struct disk disk;
	struct ledger ledger, *tracked; /* NULL: nothing is */
	struct job *job;
	struct machine machine;
};

/* Finds out what the disk holds before anything is written to it. */
static bool open_ledger(struct loopback *s)
{
	const struct options *o = &s->options;
	/* What has no data is known by its place: to know what failed it, it may not overlap. */
	bool alone = o->inject && (o->zeroes || o->discard);

	if (o->job == JOB_COPY || (!o->verify && !alone && o->job == JOB_PATTERN))
		return true;
	/* What is cancelled in time is a matter of time, and so no two runs are the same. */
	if (!ledger_open(&s->ledger, random_mix(o->seed + (o->cancel ? clock_ns() : 0)),
			 s->disk.bytes / SECTOR_BYTES)) {
		complain("no memory to track the disk");
		return false;
	}
	s->tracked = &s->ledger;
	s->ledger.check = o->verify;
	s->ledger.unique = o->cancel > 0;
	if (o->verify && s->disk.kind == DISK_MEMORY)
		ledger_fill(&s->ledger, s->disk.memory);
	if (!o->verify || !disk_is_image(s->disk.kind))
		return true;
	s->ledger.image = open(o->image, O_RDONLY | O_CLOEXEC);
	if (s->ledger.image < 0)
		complain("%s: %s", o->image, strerror(errno));
	return s->ledger.image >= 0;
}

static struct job *new_job(struct loopback *s)
{
	switch (s->options.job) {
	case JOB_COPY:
		return job_copy(&s->options, s->disk.bytes);
	case JOB_REPLAY:
		return job_replay(&s->options, s->disk.bytes, s->tracked);
	default:
		return job_pattern(&s->options, s->disk.bytes, s->tracked);
	}
}

/* The disk, and whether the I/Os are whole units of it. */
static bool open_disk(struct loopback *s)
{
	struct options *o = &s->options;

	if (!disk_open(&s->disk, o))
		return false;
	o->unit = s->disk.unit;
	if (o->job != JOB_REPLAY && o->bs % o->unit) {
		complain("--bs %u: with --direct the disk has units of %u bytes", o->bs, o->unit);
		return false;
	}
	if (options_request_bytes(o) >= o->unit)
		return true;
	complain("--max-sectors, --max-segments: with --direct the disk has units of %u bytes",
		 o->unit);
	return false;
}

/* Everything that can be refused is refused in here, before the first I/O. */
static bool open_loopback(struct loopback *s)
{
	if (!open_disk(s) || !open_ledger(s))
		return false;
	s->job = new_job(s);
	return s->job && machine_open(&s->machine, &s->options, &s->disk, s->job->largest);
}

static bool close_loopback(struct loopback *s)
{
	if (s->machine.queue)
		machine_close(&s->machine);
	if (s->job)
		s->job->close(s->job);
	if (s->tracked && s->ledger.image >= 0)
		close(s->ledger.image);
	if (s->tracked)
		ledger_close(&s->ledger);
	if (disk_close(&s->disk))
		return true;
	complain("%s: not all that was written has arrived", s->options.image);
	return false;
}

/* What was written is read back, outside of the measured time. */
static bool read_back(struct loopback *s, struct figures *figures, bool progress)
{
	struct job *job = job_readback(s->tracked, s->options.jobs, s->job->largest);
	struct figures back;
	bool good;

	if (!job)
		return false;
	good = run_job(&s->machine, job, 0, progress, &back);
	figures->tally.errors += back.tally.errors;
	figures->tally.unearned += back.tally.unearned;
	figures->injected = back.injected;
	figures->tally.mismatches += back.tally.mismatches;
	figures->tally.verified_bytes += back.tally.verified_bytes;
	figures->interrupted = back.interrupted;
	figures->failed = back.failed;
	job->close(job);
	return good;
}

static bool run_loopback(struct loopback *s)
{
	bool progress = isatty(STDERR_FILENO);
	struct figures f;
	struct report report = { &s->options, s->job, s->disk.bytes, &f };
	bool good;

	if (!run_job(&s->machine, s->job, s->options.runtime_ns, progress, &f))
		return false;
	if (s->options.verify && s->tracked && !f.interrupted && !f.failed &&
	    !read_back(s, &f, progress))
		return false;
	good = s->options.json ? report_json(&report) : report_table(&report);
	if (f.interrupted && s->job->all_or_none) {
		complain("interrupted before the end of %s", s->options.file);
		good = false;
	}
	return good && !f.failed && !f.tally.unearned && !f.tally.mismatches;
}

/*
 * Who was started with stdout closed would get the disk image as descriptor 1, and print over it.
 */
static bool hold_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && !close(fd);
}

int main(int argc, char **argv)
{
	struct sigaction stop = { .sa_handler = run_interrupt, .sa_flags = (int)SA_RESETHAND };
	struct loopback loopback = { 0 };
	bool good;

	if (!hold_standard_descriptors())
		return 1;
	switch (options_parse(&loopback.options, argc, argv)) {
	case OPTIONS_DONE:
		return report_written() ? 0 : 1;
	case OPTIONS_REFUSED:
		return 1;
	default:
		break;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	good = open_loopback(&loopback) && run_loopback(&loopback);
	return close_loopback(&loopback) && good ? 0 : 1;
}
