/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sectors.h: what the sectors of a disk, or of a part of it, may hold, as whoever writes to them
 * knows it: one version, or several after a write that failed or that a reset ended. Each version
 * of each sector has a stamp of its own, 512 bytes of it; version 0 is zeroes.
 *
 * Requests that are out together don't overlap, but for reads: that is kept here, too.
 */
#ifndef TESTS_SECTORS_H
#define TESTS_SECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "random.h"

enum { SECTORS = 1024, SECTOR_MAYBES = 12 };

struct sector {
	uint32_t maybe[SECTOR_MAYBES];
	uint8_t maybes;
	bool any;                /* there were too many to remember */
	uint8_t readers, writer; /* requests that are out */
};

struct sectors {
	uint32_t part;   /* of the disk, in each stamp */
	uint32_t newest; /* version */
	struct sector at[SECTORS];
};

static inline void sectors_stamp(const struct sectors *s, uint8_t *to, uint32_t sector,
				 uint32_t version)
{
	struct random r = { (uint64_t)s->part << 56 | (uint64_t)sector << 32 | version };

	for (unsigned i = 0; i < 512; i += 8) {
		uint64_t word = version ? random_word(&r) : 0;

		if (!i && version)
			word = version;
		memcpy(to + i, &word, 8);
	}
}

/* From now on they hold that, and nothing else. */
static inline void sectors_settle(struct sectors *s, uint32_t sector, uint32_t n, uint32_t version)
{
	for (struct sector *at = s->at + sector; at < s->at + sector + n; at++) {
		at->maybe[0] = version;
		at->maybes = 1;
		at->any = false;
	}
}

/* Each of them may hold that, too. */
static inline void sectors_doubt(struct sectors *s, uint32_t sector, uint32_t n, uint32_t version)
{
	for (struct sector *at = s->at + sector; at < s->at + sector + n; at++) {
		if (at->maybes < SECTOR_MAYBES)
			at->maybe[at->maybes++] = version;
		else
			at->any = true;
	}
}

/* Is that what the sector may hold? Then it is known now. */
static inline bool sectors_verify(struct sectors *s, uint32_t sector, const uint8_t *data)
{
	const struct sector *at = &s->at[sector];
	bool known = false;
	uint8_t want[512];
	uint32_t found;

	memcpy(&found, data, 4);
	for (unsigned i = 0; i < at->maybes; i++)
		known |= at->maybe[i] == found;
	known |= at->any && found <= s->newest;
	if (!known)
		return false;
	sectors_stamp(s, want, sector, found);
	if (memcmp(data, want, 512))
		return false;
	sectors_settle(s, sector, 1, found);
	return true;
}

/* May a request of these sectors go out beside those that are? */
static inline bool sectors_free(const struct sectors *s, uint32_t sector, uint32_t n, bool reads)
{
	if (n > SECTORS - sector)
		return false;
	for (uint32_t i = sector; i < sector + n; i++) {
		if (s->at[i].writer || (!reads && s->at[i].readers))
			return false;
	}
	return true;
}

/* One of them goes out (by 1), or is back (by -1). */
static inline void sectors_occupy(struct sectors *s, uint32_t sector, uint32_t n, bool reads,
				  int by)
{
	for (uint32_t i = sector; i < sector + n; i++) {
		uint8_t *count = reads ? &s->at[i].readers : &s->at[i].writer;

		*count = (uint8_t)(*count + by);
	}
}

static inline void sectors_open(struct sectors *s, uint32_t part)
{
	s->part = part;
	s->newest = 0;
	sectors_settle(s, 0, SECTORS, 0);
}

#endif
