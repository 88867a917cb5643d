/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes of one size, in order or at random, in passes over the disk. Each thread has a
 * stretch of blocks of its own, and in each pass over it takes each block once. The last block
 * of a disk may be a short one. A thread for which there is no block has nothing to do. Some of
 * what would be a write may be zeroes or a discard.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "random.h"
#include "say.h"

struct stretch {
	_Alignas(64) uint64_t first;
	uint64_t blocks;
	uint64_t next;   /* block of the pass, before shuffling */
	uint64_t left;   /* I/Os to go */
	uint64_t key;    /* of this pass's shuffle */
	uint64_t stream; /* of random numbers */
};

struct pattern_job {
	struct job job;
	enum pattern pattern;
	bool shuffled;
	uint32_t zeroes, discard; /* shares of what would be a write, in a million */
	uint64_t bytes;           /* of the disk */
	struct ledger *ledger;
	struct stretch *stretch;
};

static enum io_op write_of(const struct pattern_job *p, struct stretch *s)
{
	uint64_t chance;

	if (!p->zeroes && !p->discard)
		return IO_WRITE;
	chance = random_next(&s->stream) % 1000000;
	if (chance < p->zeroes)
		return IO_ZEROES;
	return chance < p->zeroes + p->discard ? IO_DISCARD : IO_WRITE;
}

static bool pattern_next(struct job *job, uint32_t thread, struct io *io)
{
	struct pattern_job *p = (struct pattern_job *)job;
	struct stretch *s = &p->stretch[thread];
	uint64_t block, left;
	bool writes = pattern_writes(p->pattern);

	if (!s->left)
		return false;
	s->left--;
	if (s->next == s->blocks)
		s->next = 0;
	if (p->shuffled && !s->next)
		s->key = random_next(&s->stream);
	block = s->next++;
	if (p->shuffled)
		block = random_place(block, s->blocks, s->key);
	if (p->pattern == PATTERN_RANDRW)
		writes = random_next(&s->stream) >> 63;
	io->op = writes ? write_of(p, s) : IO_READ;
	io->offset = (s->first + block) * job->largest;
	left = p->bytes - io->offset;
	io->bytes = left < job->largest ? (uint32_t)left : job->largest;
	return true;
}

static bool pattern_advance(struct job *job)
{
	(void)job;
	return false;
}

static enum job_answer pattern_begin(struct job *job, const struct io *io, void *data)
{
	struct ledger *ledger = ((struct pattern_job *)job)->ledger;

	return !ledger || ledger_begin(ledger, io, data) ? JOB_GO : JOB_WAIT;
}

static void pattern_end(struct job *job, uint32_t thread, const struct io *io, const void *data,
			enum io_fate fate, struct tally *tally)
{
	struct ledger *ledger = ((struct pattern_job *)job)->ledger;

	(void)thread;
	if (ledger)
		ledger_end(ledger, io, data, fate, tally);
}

static void pattern_close(struct job *job)
{
	struct pattern_job *p = (struct pattern_job *)job;

	free(p->stretch);
	free(p);
}

static bool set_stretches(struct pattern_job *p, const struct options *o)
{
	uint64_t blocks = (p->bytes + o->bs - 1) / o->bs, end, ios;
	uint32_t busy = blocks < o->jobs ? (uint32_t)blocks : o->jobs, i;
	struct stretch *s;

	p->stretch = aligned_alloc(64, o->jobs * sizeof(*s));
	if (!p->stretch)
		return false;
	memset(p->stretch, 0, o->jobs * sizeof(*s));
	for (i = 0; i < busy; i++) {
		s = &p->stretch[i];
		s->first = part_start(blocks, i, busy);
		end = part_start(blocks, i + 1, busy);
		s->blocks = end - s->first;
		s->stream = random_mix(o->seed + 1) + i;
		s->stream = random_mix(s->stream);
		ios = o->requests ? o->requests : blocks;
		s->left = part_start(ios, i + 1, busy) - part_start(ios, i, busy);
		if (!o->requests && o->runtime_ns)
			s->left = UINT64_MAX;
	}
	p->job.ios = o->requests ? o->requests : blocks;
	if (o->runtime_ns)
		p->job.ios = 0;
	return true;
}

struct job *job_pattern(const struct options *options, uint64_t disk_bytes, struct ledger *ledger)
{
	struct pattern_job *p;

	if (options->bs > disk_bytes) {
		complain("--bs %" PRIu32 ": the disk has only %" PRIu64 " bytes", options->bs,
			 disk_bytes);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		complain("no memory");
		return NULL;
	}
	p->pattern = options->pattern;
	p->shuffled = p->pattern != PATTERN_READ && p->pattern != PATTERN_WRITE;
	p->zeroes = options->zeroes;
	p->discard = options->discard;
	p->bytes = disk_bytes;
	p->ledger = ledger;
	p->job = (struct job){
		.name = options->rw,
		.largest = options->bs,
		.own_data = ledger != NULL,
		.next = pattern_next,
		.advance = pattern_advance,
		.begin = pattern_begin,
		.end = pattern_end,
		.close = pattern_close,
	};
	if (!set_stretches(p, options)) {
		complain("no memory");
		pattern_close(&p->job);
		return NULL;
	}
	return &p->job;
}
