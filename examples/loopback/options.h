/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what the user asked for. The names are fio's where fio has them.
 */
#ifndef LOOPBACK_OPTIONS_H
#define LOOPBACK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum job_kind { JOB_NONE, JOB_COPY, JOB_PATTERN, JOB_REPLAY };

enum pattern { PATTERN_READ, PATTERN_WRITE, PATTERN_RANDREAD, PATTERN_RANDWRITE, PATTERN_RANDRW };

enum disk_kind { DISK_MEMORY, DISK_FILE, DISK_URING, DISK_THREADS, DISK_NULL };

/* Is it an image? */
static inline bool disk_is_image(enum disk_kind kind)
{
	return kind == DISK_FILE || kind == DISK_URING || kind == DISK_THREADS;
}

#define BS_MAX (1u << 30)
#define JOBS_MAX 1024u

/* With --max-segments: a guest whose memory comes in pages. */
#define SEGMENT_BYTES 4096u

/* --indirect */
enum loopback_indirect {
	INDIRECT_NEVER,
	INDIRECT_ALWAYS,
	INDIRECT_ADAPTIVE,
	INDIRECT_THRESHOLD,
	INDIRECT_DECAY,
};

/* --path */
enum loopback_path { PATH_BIO, PATH_REQUEST, PATH_MERGE_WHEN_FULL };

/* The words for them, as on the command line. */
const char *path_name(enum loopback_path path);
const char *indirect_name(uint32_t indirect);
const char *disk_name(enum disk_kind kind);

struct options {
	enum job_kind job;
	const char *file;     /* of --copy or --read_iolog */
	const char *rw;       /* the pattern as it was given */
	enum pattern pattern; /* of --rw */

	const char *image;
	enum disk_kind disk;
	uint64_t size; /* bytes; 0: not given */
	uint32_t unit; /* bytes, once the disk is open: every I/O is in whole ones */
	bool readonly, direct;
	bool host_merge, plug;
	uint32_t inject; /* of each kind of fault, so many in a million; 0: none */

	enum loopback_path path;
	bool guest_merge;
	uint32_t jobs;                      /* threads that submit; at least as many as queues */
	uint32_t cancel, reset;             /* shares of all I/Os, in a million */
	uint32_t max_sectors, max_segments; /* of a request; 0: what the device allows */

	uint32_t bs, iodepth;
	uint64_t requests;   /* in all; 0: one pass, or by time */
	uint64_t runtime_ns; /* 0: no limit */
	uint64_t seed;
	bool verify;
	uint32_t fua, zeroes, discard; /* shares of all writes, in a million */

	uint32_t queues, ring;
	uint32_t indirect; /* enum loopback_indirect */
	bool event_idx, poll;

	bool json;
};

enum options_answer {
	OPTIONS_GO,
	OPTIONS_DONE,    /* --help or --version: printed */
	OPTIONS_REFUSED, /* and it was said why, in one line */
};

enum options_answer options_parse(struct options *options, int argc, char **argv);

/* How many of the threads that submit do so to that queue: number i goes to queue i % queues. */
static inline uint32_t options_jobs_of(const struct options *options, uint32_t queue)
{
	return options->jobs / options->queues + (queue < options->jobs % options->queues);
}

/* Bytes of the longest request that the options allow. */
static inline uint64_t options_request_bytes(const struct options *options)
{
	uint64_t by_sectors =
		options->max_sectors ? options->max_sectors * UINT64_C(512) : UINT64_MAX;
	uint64_t by_segments = options->max_segments
				       ? options->max_segments * (uint64_t)SEGMENT_BYTES
				       : UINT64_MAX;

	return by_sectors < by_segments ? by_sectors : by_segments;
}

/* Does the pattern write? */
bool pattern_writes(enum pattern pattern);

/* A number of bytes, with k, m or g for powers of 1024. False: it is none. */
bool parse_size(const char *text, uint64_t *bytes);

/* Seconds, perhaps with a fraction, and with or without an s, as nanoseconds above 0. */
bool parse_seconds(const char *text, uint64_t *ns);

#endif
