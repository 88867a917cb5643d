/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads back whatever the ledger says was written. Each thread has a stretch of the disk.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "say.h"

struct stretch {
	_Alignas(64) uint64_t next; /* sector */
	uint64_t end;
};

struct readback {
	struct job job;
	struct ledger *ledger;
	struct stretch *stretch;
};

static bool readback_next(struct job *job, uint32_t thread, struct io *io)
{
	struct readback *r = (struct readback *)job;
	struct stretch *s = &r->stretch[thread];
	uint64_t most = job->largest / SECTOR_BYTES, at, n;

	while (s->next < s->end) {
		at = s->next;
		n = s->end - at < most ? s->end - at : most;
		s->next += n;
		if (!ledger_wrote(r->ledger, at, n))
			continue;
		io->op = IO_READ;
		io->offset = at * SECTOR_BYTES;
		io->bytes = (uint32_t)n * SECTOR_BYTES;
		return true;
	}
	return false;
}

static bool readback_advance(struct job *job)
{
	(void)job;
	return false;
}

static enum job_answer readback_begin(struct job *job, const struct io *io, void *data)
{
	return ledger_begin(((struct readback *)job)->ledger, io, data) ? JOB_GO : JOB_WAIT;
}

static void readback_end(struct job *job, uint32_t thread, const struct io *io, const void *data,
			 enum io_fate fate, struct tally *tally)
{
	(void)thread;
	ledger_end(((struct readback *)job)->ledger, io, data, fate, tally);
}

static void readback_close(struct job *job)
{
	struct readback *r = (struct readback *)job;

	free(r->stretch);
	free(r);
}

struct job *job_readback(struct ledger *ledger, uint32_t threads, uint32_t largest)
{
	struct readback *r = calloc(1, sizeof(*r));
	uint64_t step = largest / SECTOR_BYTES, blocks = (ledger->sectors + step - 1) / step;
	uint32_t i;

	if (r)
		r->stretch = aligned_alloc(64, threads * sizeof(*r->stretch));
	if (!r || !r->stretch) {
		complain("no memory");
		free(r);
		return NULL;
	}
	for (i = 0; i < threads; i++) {
		r->stretch[i].next = part_start(blocks, i, threads) * step;
		r->stretch[i].end = part_start(blocks, i + 1, threads) * step;
		if (r->stretch[i].end > ledger->sectors)
			r->stretch[i].end = ledger->sectors;
	}
	r->ledger = ledger;
	r->job = (struct job){
		.name = "readback",
		.largest = largest,
		.next = readback_next,
		.advance = readback_advance,
		.begin = readback_begin,
		.end = readback_end,
		.close = readback_close,
	};
	return &r->job;
}
