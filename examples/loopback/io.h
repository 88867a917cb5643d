/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.h: one I/O as a job asks for it, and the counts of what became of many.
 */
#ifndef LOOPBACK_IO_H
#define LOOPBACK_IO_H

#include <stdbool.h>
#include <stdint.h>

enum io_op { IO_READ, IO_WRITE, IO_FLUSH, IO_ZEROES, IO_DISCARD };

/* Of a range of the disk, without data. */
static inline bool io_is_range(uint32_t op)
{
	return op == IO_ZEROES || op == IO_DISCARD;
}

/* Offset and length in bytes, both whole sectors; 0 for a flush. */
struct io {
	uint64_t offset;
	uint32_t bytes;
	uint32_t op; /* enum io_op */
};

/* What has become of one. */
enum io_fate {
	IO_DONE,
	IO_FAILED, /* of what changes the disk: each sector is as before, or as it was to be */
	IO_NEVER,  /* cancelled in time: nothing of it was ever sent */
};

/* What one thread of the guest's has seen. */
struct tally {
	uint64_t bios, bytes; /* I/Os that came back, and what those that succeeded moved */
	uint64_t fua, zeroes, discards; /* of them, durable writes; zeroes written; discards */
	uint64_t errors;                /* of them, failed */
	uint64_t cancelled;             /* of them, cancelled */
	uint64_t late;                  /* attempts to cancel that came too late */
	uint64_t unearned;   /* failed though no fault was injected, or did not though one was */
	uint64_t mismatches; /* reads whose data was not what it had to be */
	uint64_t verified_bytes;
};

#endif
