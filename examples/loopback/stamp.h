/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stamp.h: sectors that say what they are.
 *
 * A stamped sector is filled from end to end by three numbers that stand in its head: the run
 * that wrote it, its place on the disk, and its version (how often the run has written it). So
 * it can be told whether a sector is the right one, an older one, one from another place, or
 * damaged; and not a byte of it is without meaning.
 */
#ifndef LOOPBACK_STAMP_H
#define LOOPBACK_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#define SECTOR_BYTES 512u
#define SECTOR_WORDS (SECTOR_BYTES / 8)

struct stamp {
	uint64_t run, sector, version;
};

void stamp_fill(uint64_t word[SECTOR_WORDS], const struct stamp *stamp);

/* Is it that sector, to the last byte? */
bool stamp_matches(const uint64_t word[SECTOR_WORDS], const struct stamp *stamp);

/* Not a stamp, but what is left where zeroes were written. */
bool stamp_is_zero(const uint64_t word[SECTOR_WORDS]);

enum stamp_kind {
	STAMP_NONE,    /* not one of ours */
	STAMP_WHOLE,   /* as somebody filled it: *stamp says who, where and when */
	STAMP_DAMAGED, /* begins or ends like one of ours and isn't whole; *stamp is what it claims
			*/
};

enum stamp_kind stamp_read(const uint64_t word[SECTOR_WORDS], struct stamp *stamp);

#endif
