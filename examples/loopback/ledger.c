/* SPDX-License-Identifier: BSD-3-Clause */
#include "ledger.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "say.h"

#define WRITER UINT8_MAX

enum { FOUND_SECTORS = 32 };

/* Pages of zeroes that cost nothing until they are touched: the disk may be large. */
static void *map_zeroes(uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool ledger_open(struct ledger *ledger, uint64_t run, uint64_t sectors)
{
	*ledger = (struct ledger){ .run = run, .sectors = sectors, .image = -1 };
	ledger->version = map_zeroes(sectors * sizeof(*ledger->version));
	ledger->oldest = map_zeroes(sectors * sizeof(*ledger->oldest));
	ledger->given = map_zeroes(sectors * sizeof(*ledger->given));
	ledger->users = map_zeroes(sectors);
	ledger->zeroes = map_zeroes(sectors);
	if (ledger->version && ledger->oldest && ledger->given && ledger->users && ledger->zeroes)
		return true;
	ledger_close(ledger);
	return false;
}

void ledger_close(struct ledger *ledger)
{
	if (ledger->version)
		munmap(ledger->version, ledger->sectors * sizeof(*ledger->version));
	if (ledger->oldest)
		munmap(ledger->oldest, ledger->sectors * sizeof(*ledger->oldest));
	if (ledger->given)
		munmap(ledger->given, ledger->sectors * sizeof(*ledger->given));
	if (ledger->users)
		munmap(ledger->users, ledger->sectors);
	if (ledger->zeroes)
		munmap(ledger->zeroes, ledger->sectors);
	ledger->version = ledger->oldest = ledger->given = NULL;
	ledger->users = ledger->zeroes = NULL;
}

static uint64_t *sector_at(const void *data, uint64_t i)
{
	return (uint64_t *)((uintptr_t)data + i * SECTOR_BYTES);
}

void ledger_fill(const struct ledger *ledger, void *disk)
{
	struct stamp stamp = { .run = ledger->run };

	for (; stamp.sector < ledger->sectors; stamp.sector++)
		stamp_fill(sector_at(disk, stamp.sector), &stamp);
}

static bool only_looks(const struct io *io)
{
	return io->op == IO_READ || io->op == IO_FLUSH;
}

static bool is_free(const struct ledger *ledger, const struct io *io)
{
	uint64_t at = io->offset / SECTOR_BYTES, end = at + io->bytes / SECTOR_BYTES;
	uint8_t most = only_looks(io) ? WRITER - 2 : 0;

	while (at < end && ledger->users[at] <= most)
		at++;
	return at == end;
}

bool ledger_begin(struct ledger *ledger, const struct io *io, void *data)
{
	uint64_t first = io->offset / SECTOR_BYTES, n = io->bytes / SECTOR_BYTES, i;
	struct stamp stamp = { .run = ledger->run };

	if (!is_free(ledger, io))
		return false;
	for (i = 0; i < n; i++) {
		if (only_looks(io)) {
			ledger->users[first + i]++;
			continue;
		}
		ledger->users[first + i] = WRITER;
		stamp.sector = first + i;
		stamp.version = ++ledger->given[first + i];
		if (io->op == IO_WRITE)
			stamp_fill(sector_at(data, i), &stamp);
	}
	return true;
}

/* The first wrong sector is described; one line is enough to start looking. */
static void describe(const struct ledger *ledger, const uint64_t *word, uint64_t sector)
{
	uint32_t oldest = ledger->oldest[sector], version = ledger->version[sector];
	static atomic_flag told = ATOMIC_FLAG_INIT;
	char wanted[64] = "as it was found";
	const char *or_zero = ledger->zeroes[sector] && oldest <= version ? " or zero" : "";
	struct stamp is;
	enum stamp_kind kind = stamp_read(word, &is);

	if (atomic_flag_test_and_set(&told))
		return;
	if (oldest < version)
		snprintf(wanted, sizeof(wanted), "version %" PRIu32 " to %" PRIu32, oldest,
			 version);
	else if (oldest > version)
		snprintf(wanted, sizeof(wanted), "zero");
	else if (version)
		snprintf(wanted, sizeof(wanted), "version %" PRIu32, version);
	if (kind == STAMP_NONE)
		complain("sector %" PRIu64 " should be %s%s, and bears no stamp", sector, wanted,
			 or_zero);
	else
		complain("sector %" PRIu64 " should be %s%s, and is %s version %" PRIu64
			 " of sector %" PRIu64 " (run %016" PRIx64 ")",
			 sector, wanted, or_zero, kind == STAMP_WHOLE ? "a whole" : "a damaged",
			 is.version, is.sector, is.run);
}

/* What is at hand of the image as it was found: a few sectors at a time. */
struct found {
	uint64_t first, sectors;
	uint64_t word[FOUND_SECTORS][SECTOR_WORDS];
};

static const uint64_t *found_sector(const struct ledger *ledger, struct found *found,
				    uint64_t sector)
{
	ssize_t n;

	if (sector - found->first >= found->sectors) {
		n = pread(ledger->image, found->word, sizeof(found->word),
			  (off_t)(sector * SECTOR_BYTES));
		found->first = sector;
		found->sectors = n < 0 ? 0 : (uint64_t)n / SECTOR_BYTES;
	}
	return found->sectors ? found->word[sector - found->first] : NULL;
}

static bool is_as_found(const struct ledger *ledger, struct found *found, uint64_t sector,
			const uint64_t *word)
{
	struct stamp stamp = { .run = ledger->run, .sector = sector };
	const uint64_t *plain;

	if (ledger->image < 0)
		return stamp_matches(word, &stamp);
	plain = found_sector(ledger, found, sector);
	if (!plain || memcmp(plain, word, SECTOR_BYTES) != 0)
		return false;
	switch (stamp_read(word, &stamp)) {
	case STAMP_NONE:
		return true;
	case STAMP_WHOLE:
		return stamp.sector == sector && !(ledger->unique && stamp.run == ledger->run);
	default:
		return false;
	}
}

static bool is_right(const struct ledger *ledger, struct found *found, uint64_t sector,
		     const uint64_t *word)
{
	uint32_t oldest = ledger->oldest[sector];
	struct stamp stamp = { ledger->run, sector, ledger->version[sector] }, is;

	if (stamp.version && oldest <= stamp.version && stamp_matches(word, &stamp))
		return true;
	if (ledger->zeroes[sector] && stamp_is_zero(word))
		return true;
	if (oldest < stamp.version && stamp_read(word, &is) == STAMP_WHOLE && is.run == stamp.run &&
	    is.sector == sector && is.version && is.version >= oldest && is.version < stamp.version)
		return true;
	return !oldest && is_as_found(ledger, found, sector, word);
}

static void check(const struct ledger *ledger, const struct io *io, const void *data,
		  struct tally *tally)
{
	uint64_t first = io->offset / SECTOR_BYTES, n = io->bytes / SECTOR_BYTES, i;
	struct found found;
	bool right, all = true;

	found.first = found.sectors = 0;
	for (i = 0; i < n; i++) {
		right = is_right(ledger, &found, first + i, sector_at(data, i));
		tally->verified_bytes += SECTOR_BYTES;
		if (!right)
			describe(ledger, sector_at(data, i), first + i);
		all = all && right;
	}
	tally->mismatches += !all;
}

/* A sector's write has come back. */
static void settle_write(struct ledger *ledger, uint64_t sector, enum io_fate fate)
{
	if (fate != IO_NEVER)
		ledger->version[sector] = ledger->given[sector];
	if (fate != IO_DONE)
		return;
	ledger->oldest[sector] = ledger->given[sector];
	ledger->zeroes[sector] = 0;
}

/* The same of zeroes and discards: they add zeroes to what may be there, or leave nothing else. */
static void settle_range(struct ledger *ledger, uint64_t sector, enum io_fate fate, uint32_t op)
{
	if (fate != IO_NEVER)
		ledger->zeroes[sector] = 1;
	if (fate == IO_DONE && op == IO_ZEROES)
		ledger->oldest[sector] = ledger->given[sector] + 1;
}

void ledger_end(struct ledger *ledger, const struct io *io, const void *data, enum io_fate fate,
		struct tally *tally)
{
	uint64_t at = io->offset / SECTOR_BYTES, end = at + io->bytes / SECTOR_BYTES;

	if (io->op == IO_READ && fate == IO_DONE && ledger->check)
		check(ledger, io, data, tally);
	for (; at < end; at++) {
		if (only_looks(io)) {
			ledger->users[at]--;
			continue;
		}
		ledger->users[at] = 0;
		if (io->op == IO_WRITE)
			settle_write(ledger, at, fate);
		else
			settle_range(ledger, at, fate, io->op);
	}
}

bool ledger_wrote(const struct ledger *ledger, uint64_t sector, uint64_t sectors)
{
	uint64_t i;

	for (i = 0; i < sectors; i++)
		if (ledger->given[sector + i])
			return true;
	return false;
}
