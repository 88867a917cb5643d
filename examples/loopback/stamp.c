/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout, in words of 8 bytes: mark, run, sector, version, then words that grow by a fixed
 * step from a start that depends on all three, and a mark at the end. Words are in the byte order
 * of the machine. Marks at both ends, so that no single damaged byte can hide what a sector was.
 */
#include "stamp.h"

#include "random.h"

#define HEAD_MARK UINT64_C(0x7671626c6b206264)
#define TAIL_MARK UINT64_C(0x6462206b6c627176)
#define STEP UINT64_C(0x9e3779b97f4a7c15)

enum { HEAD, RUN, SECTOR, VERSION, BODY, TAIL = SECTOR_WORDS - 1 };

static uint64_t body_start(const struct stamp *stamp)
{
	return random_mix(random_mix(stamp->run + stamp->version) + stamp->sector);
}

void stamp_fill(uint64_t word[SECTOR_WORDS], const struct stamp *stamp)
{
	uint64_t start = body_start(stamp);
	uint32_t i;

	word[HEAD] = HEAD_MARK;
	word[RUN] = stamp->run;
	word[SECTOR] = stamp->sector;
	word[VERSION] = stamp->version;
	for (i = BODY; i < TAIL; i++)
		word[i] = start + i * STEP;
	word[TAIL] = TAIL_MARK;
}

bool stamp_matches(const uint64_t word[SECTOR_WORDS], const struct stamp *stamp)
{
	uint64_t start = body_start(stamp), differs;
	uint32_t i;

	differs = (word[HEAD] ^ HEAD_MARK) | (word[TAIL] ^ TAIL_MARK);
	differs |= (word[RUN] ^ stamp->run) | (word[SECTOR] ^ stamp->sector);
	differs |= word[VERSION] ^ stamp->version;
	for (i = BODY; i < TAIL; i++)
		differs |= word[i] ^ (start + i * STEP);
	return !differs;
}

bool stamp_is_zero(const uint64_t word[SECTOR_WORDS])
{
	uint64_t any = 0;
	uint32_t i;

	for (i = 0; i < SECTOR_WORDS; i++)
		any |= word[i];
	return !any;
}

enum stamp_kind stamp_read(const uint64_t word[SECTOR_WORDS], struct stamp *stamp)
{
	stamp->run = word[RUN];
	stamp->sector = word[SECTOR];
	stamp->version = word[VERSION];
	if (word[HEAD] != HEAD_MARK && word[TAIL] != TAIL_MARK)
		return STAMP_NONE;
	return stamp_matches(word, stamp) ? STAMP_WHOLE : STAMP_DAMAGED;
}
