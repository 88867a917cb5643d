/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies a file to the start of the disk: writes all of it, flushes, reads all of it back and
 * compares with the file. Each thread has a stretch of its own, from one end to the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "say.h"

enum phase { WRITE, FLUSH, READ };

/* One thread's stretch, in I/Os of the job's largest size, and where it is. */
struct stretch {
	_Alignas(64) uint64_t first;
	uint64_t end, next;
	void *compare; /* what the file says, for the read that is checked */
};

struct copy {
	struct job job;
	const char *name;
	int fd;
	uint64_t bytes; /* of the file */
	uint64_t total; /* with the last unit of the disk filled up */
	enum phase phase;
	uint32_t threads;
	bool flushed;
	struct stretch *stretch;
	bool *lost; /* by I/O: its write has failed or was cancelled: nothing to compare */
};

static bool copy_next(struct job *job, uint32_t thread, struct io *io)
{
	struct copy *copy = (struct copy *)job;
	struct stretch *s = &copy->stretch[thread];
	uint64_t left;

	*io = (struct io){ .op = IO_FLUSH };
	if (copy->phase == FLUSH) {
		if (thread || copy->flushed || !copy->total)
			return false;
		copy->flushed = true;
		return true;
	}
	if (s->next == s->end)
		return false;
	io->op = copy->phase == WRITE ? IO_WRITE : IO_READ;
	io->offset = s->next++ * job->largest;
	left = copy->total - io->offset;
	io->bytes = left < job->largest ? (uint32_t)left : job->largest;
	return true;
}

static bool copy_advance(struct job *job)
{
	struct copy *copy = (struct copy *)job;
	uint32_t i;

	if (copy->phase == READ)
		return false;
	copy->phase++;
	for (i = 0; i < copy->threads; i++)
		copy->stretch[i].next = copy->stretch[i].first;
	return true;
}

/* What the file has there, and zeroes after its end. */
static bool read_file(const struct copy *copy, const struct io *io, char *data)
{
	uint64_t left = copy->bytes - io->offset, got = 0;
	size_t wanted = left < io->bytes ? (size_t)left : io->bytes;
	ssize_t n = 1;

	while (got < wanted && n) {
		n = pread(copy->fd, data + got, wanted - got, (off_t)(io->offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			complain("%s: %s", copy->name, strerror(errno));
			return false;
		}
		got += (uint64_t)n;
	}
	if (got < wanted)
		complain("%s: became shorter while it was copied", copy->name);
	memset(data + got, 0, io->bytes - got);
	return got == wanted;
}

static enum job_answer copy_begin(struct job *job, const struct io *io, void *data)
{
	if (io->op == IO_WRITE && !read_file((struct copy *)job, io, data))
		return JOB_FAILED;
	return JOB_GO;
}

static void copy_end(struct job *job, uint32_t thread, const struct io *io, const void *data,
		     enum io_fate fate, struct tally *tally)
{
	struct copy *copy = (struct copy *)job;
	void *compare = copy->stretch[thread].compare;

	if (io->op == IO_WRITE)
		copy->lost[io->offset / job->largest] = fate != IO_DONE;
	if (io->op != IO_READ || fate != IO_DONE || copy->lost[io->offset / job->largest])
		return;
	if (!read_file(copy, io, compare) || memcmp(compare, data, io->bytes) != 0) {
		if (!tally->mismatches)
			complain("%s: differs in the %" PRIu32 " bytes from %" PRIu64, copy->name,
				 io->bytes, io->offset);
		tally->mismatches++;
	}
	tally->verified_bytes += io->bytes;
}

static void copy_close(struct job *job)
{
	struct copy *copy = (struct copy *)job;
	uint32_t i;

	for (i = 0; copy->stretch && i < copy->threads; i++)
		free(copy->stretch[i].compare);
	free(copy->stretch);
	free(copy->lost);
	if (copy->fd >= 0)
		close(copy->fd);
	free(copy);
}

static bool set_stretches(struct copy *copy)
{
	uint64_t ios = (copy->total + copy->job.largest - 1) / copy->job.largest;
	struct stretch *s;
	uint32_t i;

	copy->lost = calloc(ios ? ios : 1, sizeof(*copy->lost));
	copy->stretch = aligned_alloc(64, copy->threads * sizeof(*s));
	if (!copy->stretch || !copy->lost)
		return false;
	memset(copy->stretch, 0, copy->threads * sizeof(*s));
	for (i = 0; i < copy->threads; i++) {
		s = &copy->stretch[i];
		s->first = s->next = part_start(ios, i, copy->threads);
		s->end = part_start(ios, i + 1, copy->threads);
		s->compare = malloc(copy->job.largest);
		if (!s->compare)
			return false;
	}
	copy->job.ios = ios ? 2 * ios + 1 : 0;
	return true;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Opens and measures the file. */
static bool open_file(struct copy *copy, const struct options *options, uint64_t disk_bytes)
{
	const char *image = options->image;
	struct stat file, disk;
	off_t bytes;

	copy->fd = open(copy->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (copy->fd < 0 || fstat(copy->fd, &file) || stat(image, &disk)) {
		complain("%s: %s", copy->name, strerror(errno));
		return false;
	}
	if (!S_ISREG(file.st_mode) && !S_ISBLK(file.st_mode)) {
		complain("%s: neither a file nor a block device", copy->name);
		return false;
	}
	if (is_same(&file, &disk)) {
		complain("%s: is the image itself", copy->name);
		return false;
	}
	bytes = lseek(copy->fd, 0, SEEK_END);
	if (bytes < 0) {
		complain("%s: %s", copy->name, strerror(errno));
		return false;
	}
	copy->bytes = (uint64_t)bytes;
	copy->total = (copy->bytes + options->unit - 1) / options->unit * options->unit;
	if (copy->total <= disk_bytes)
		return true;
	complain("%s: has %" PRIu64 " bytes, and the disk of %s only %" PRIu64, copy->name,
		 copy->bytes, image, disk_bytes);
	return false;
}

struct job *job_copy(const struct options *options, uint64_t disk_bytes)
{
	struct copy *copy = calloc(1, sizeof(*copy));

	if (!copy) {
		complain("no memory");
		return NULL;
	}
	copy->name = options->file;
	copy->threads = options->jobs;
	copy->job = (struct job){
		.name = "copy",
		.largest = options->bs,
		.own_data = true,
		.all_or_none = true,
		.next = copy_next,
		.advance = copy_advance,
		.begin = copy_begin,
		.end = copy_end,
		.close = copy_close,
	};
	if (!open_file(copy, options, disk_bytes)) {
		copy_close(&copy->job);
		return NULL;
	}
	if (!set_stretches(copy)) {
		complain("no memory");
		copy_close(&copy->job);
		return NULL;
	}
	return &copy->job;
}
