/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iolog.h: reads an I/O log as fio writes it, versions 2 and 3.
 *
 * The first line is "fio version 2 iolog" (or 3). Each further one is
 *
 *   [TIME] NAME add|open|close
 *   [TIME] NAME read|write|sync|datasync|trim|wait OFFSET LENGTH
 *
 * with the time in version 3 only. A name has to be added before it is opened, and to be open for
 * I/O; whatever it is, it means the one disk. Times and waits are not slept. Empty lines, and the
 * carriage return at the end of one, mean nothing.
 */
#ifndef LOOPBACK_IOLOG_H
#define LOOPBACK_IOLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io.h"

struct iolog {
	struct io *io; /* reads, writes and flushes, in the order of the log */
	size_t count;
	uint32_t largest; /* bytes of the largest */
	uint64_t trims;   /* checked, and left out */
};

/* What a log may ask for. */
struct iolog_limits {
	uint64_t disk_bytes;
	uint32_t largest;
	uint32_t unit; /* of offsets and lengths */
	bool readonly;
};

/*
 * Reads and checks a whole log. False: it can't be used, and `why` (of `size` bytes) says so in
 * one line, "FILE:LINE: what" if it is about a line.
 */
bool iolog_load(struct iolog *log, const char *file, const struct iolog_limits *limits, char *why,
		size_t size);
void iolog_free(struct iolog *log);

#endif
