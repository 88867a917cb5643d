/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger.h: what each sector of the disk has to hold, and who is at work on it.
 *
 * Every sector has a version: how often this run has written it. A write is stamped with the next
 * version, and no other I/O may touch its sectors until it has come back; so whatever a read
 * brings has exactly one right content, however many are in flight. Where a write failed, or was
 * cancelled after a reset had left it undecided, each of its sectors is as it was before or as it
 * was to be, and stays one or the other until a write succeeds. Where it was cancelled in time,
 * its sectors are as they were before. A number that was given to a write is never used again, so
 * one that was cancelled, and turns up nevertheless, is told from all others.
 *
 * Zeroes are written like anything else, but bear no version: it is noted of a sector that it may
 * hold zeroes, and of one that can hold nothing else that its oldest version is yet to come. After
 * a discard a sector has whatever the device answers: what it had before, or zeroes.
 *
 * A sector that this run has not written has the content it was found with: in memory, which we
 * fill ourselves, a stamp of version 0; in an image, what a plain read of the file gives, and if
 * that is a stamp of an earlier run, it has to be whole and in its place.
 *
 * Sectors are tracked one by one and without locks: at any time a sector belongs to one thread.
 */
#ifndef LOOPBACK_LEDGER_H
#define LOOPBACK_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"
#include "stamp.h"

struct ledger {
	uint64_t run; /* stands in each stamp */
	uint64_t sectors;
	int image;   /* to read what was found; -1: stamps of version 0 */
	bool check;  /* look at what reads bring */
	bool unique; /* no other run has ever had the same `run`, so none is found in an image */
	uint32_t *version; /* per sector: the newest that may be there */
	uint32_t *oldest;  /* that may be there: `version`, or an older one if a write failed */
	uint32_t *given;   /* to the last write, of zeroes too, or discard that began */
	uint8_t *users;    /* per sector: reads in flight, or LEDGER_WRITER */
	uint8_t *zeroes;   /* per sector: 1, there may be zeroes */
};

/* False: no memory. */
bool ledger_open(struct ledger *ledger, uint64_t run, uint64_t sectors);
void ledger_close(struct ledger *ledger);

/* Fills fresh memory, which is to be the disk, with stamps of version 0. */
void ledger_fill(const struct ledger *ledger, void *disk);

/* Before an I/O is sent. Stamps a write's data. False: not now, it overlaps with one in flight. */
bool ledger_begin(struct ledger *ledger, const struct io *io, void *data);

/* When it has come back. Checks a read's data, and says so, once, when it isn't right. */
void ledger_end(struct ledger *ledger, const struct io *io, const void *data, enum io_fate fate,
		struct tally *tally);

/* Has this run begun to change any sector of that range, be it in vain? */
bool ledger_wrote(const struct ledger *ledger, uint64_t sector, uint64_t sectors);

#endif
