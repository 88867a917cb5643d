/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce.c: what does it cost to have requests joined? In nanoseconds per request of a batch of 32,
 * one piece each: added, flushed, and what came out given back as done. Beside it what a device would
 * write without the library: qsort, one pass that joins neighbours within the limits and copies their
 * pieces, and one over the members when they are done. It knows nothing of overlaps, of joined
 * submissions that are still out, or of failures.
 *
 * The requests are the same 32 all the time, as a device's would be that are used again; their
 * offsets come from many batches, so that a random one isn't known to the branch predictor by heart.
 */
#include <stdio.h>
#include <stdlib.h>

#include <vqblk/blk.h>
#include <vqblk/coalesce.h>

#include "claims.h"
#include "machine.h"
#include "parts.h"
#include "random.h"
#include "stats.h"

enum {
	BATCHES = 64,
	BATCH = 32,
	PIECES = 1024,
	BYTES = 4096,
	SAMPLES = 40, /* of a slice, of which the lower decile counts */
	TIMES = 16,   /* that all batches go through in a sample */
	MAX_ROUNDS = 101,
};

enum shape { SEQUENTIAL, RANDOM, SHUFFLED, SHAPES };
enum way { OURS, QSORT, WAYS };

static const char *const shape_names[SHAPES] = { "sequential", "random", "shuffled run" };

struct work {
	struct vqb_coalescer *c;
	void *mem;
	uint64_t offset[BATCHES][BATCH];
	struct vqb_io io[BATCH];
	struct vqb_piece piece[BATCH];
	/* of the plain way */
	struct vqb_io *sorted[BATCH];
	struct vqb_io joined[BATCH];
	struct vqb_io *members[BATCH];
	struct vqb_piece list[BATCH];
};

/* ---- the batches ---- */

static void shuffle(uint64_t *v, uint32_t n, struct random *random)
{
	while (n > 1) {
		uint32_t other = random_below(random, n--);
		uint64_t swap = v[other];

		v[other] = v[n];
		v[n] = swap;
	}
}

/* Random ones never adjoin, as only each other block may be one. */
static void make_batches(struct work *w, enum shape shape, struct random *random)
{
	for (uint32_t i = 0; i < BATCHES; i++) {
		uint64_t start = (uint64_t)random_below(random, 1 << 20) * BYTES;

		for (uint32_t k = 0; k < BATCH; k++)
			w->offset[i][k] = shape == RANDOM ? 2 * BYTES * (random_word(random) >> 24)
							  : start + k * BYTES;
		if (shape == SHUFFLED)
			shuffle(w->offset[i], BATCH, random);
	}
}

static struct work *open_work(void)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .pieces = 128,
					       .max_pieces = PIECES,
					       .max_transfer = 1 << 20 };
	struct work *w = (struct work *)zeroed(sizeof(*w));
	size_t bytes = vqb_coalescer_size(&config);

	w->mem = zeroed(bytes);
	if (vqb_coalescer_init(w->mem, bytes, &config, &w->c))
		die("there is no coalescer");
	for (uint32_t i = 0; i < BATCH; i++) {
		w->piece[i] = (struct vqb_piece){ .base = w, .len = BYTES };
		w->io[i] = (struct vqb_io){
			.op = VQB_BLK_OUT, .piece = &w->piece[i], .pieces = 1, .bytes = BYTES
		};
	}
	return w;
}

/* ---- the ways: each answers how many submissions there were ---- */

static uint32_t ours(struct work *w, const uint64_t *offset)
{
	struct vqb_io_list done = { NULL, NULL }, retry = { NULL, NULL };
	uint32_t submissions = 0;
	struct vqb_io *io, *next;

	for (uint32_t i = 0; i < BATCH; i++) {
		w->io[i].offset = offset[i];
		if (vqb_coalescer_add(w->c, &w->io[i]))
			die("a request is refused");
	}
	for (io = vqb_coalescer_flush(w->c); io; io = next, submissions++) {
		next = io->next;
		io->result = (int64_t)io->bytes;
		vqb_coalescer_done(w->c, io, &done, &retry);
	}
	if (retry.first || !done.first)
		die("requests were lost");
	return submissions;
}

static int by_offset(const void *a, const void *b)
{
	const struct vqb_io *x = *(struct vqb_io *const *)a, *y = *(struct vqb_io *const *)b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* One submission from `first` on; answers how many requests are in it. */
static uint32_t join(struct work *w, uint32_t first, struct vqb_io *out, struct vqb_piece *piece)
{
	struct vqb_io *io = w->sorted[first];
	uint32_t k = first + 1;

	*out = *io;
	out->piece = piece;
	*piece++ = *io->piece;
	for (; k < BATCH; k++, io = io->next) {
		struct vqb_io *more = w->sorted[k];

		if (more->offset != out->offset + out->bytes || out->pieces + 1 > PIECES ||
		    out->bytes + more->bytes > 1 << 20)
			break;
		*piece++ = *more->piece;
		out->pieces++;
		out->bytes += more->bytes;
		io->next = more;
	}
	io->next = NULL;
	return k - first;
}

/* Not inlined, as a coalescer isn't. */
static __attribute__((noinline)) uint32_t plain(struct work *w, const uint64_t *offset)
{
	struct vqb_io_list done = { NULL, NULL };
	uint32_t n = 0;

	for (uint32_t i = 0; i < BATCH; i++) {
		w->io[i].offset = offset[i];
		w->sorted[i] = &w->io[i];
	}
	qsort(w->sorted, BATCH, sizeof(w->sorted[0]), by_offset);
	for (uint32_t i = 0; i < BATCH; n++) {
		w->members[n] = w->sorted[i];
		i += join(w, i, &w->joined[n], &w->list[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct vqb_io *io, *next;

		for (io = w->members[i]; io; io = next) {
			next = io->next;
			io->result = (int64_t)io->bytes;
			vqb_io_list_add(&done, io);
		}
	}
	return n;
}

static uint64_t run_batches(struct work *w, enum way way)
{
	uint64_t submissions = 0;

	for (uint32_t i = 0; i < BATCHES; i++)
		submissions += way == OURS ? ours(w, w->offset[i]) : plain(w, w->offset[i]);
	return submissions;
}

/* ---- measuring ---- */

/* One slice: ns per request. Ends the program if the submissions are not as many as there should be. */
static double slice(struct work *w, enum way way, enum shape shape)
{
	uint64_t expected = (uint64_t)TIMES * BATCHES * (shape == RANDOM ? BATCH : 1);
	double sample[SAMPLES];

	for (uint32_t s = 0; s < SAMPLES; s++) {
		double start = now_ns();
		uint64_t submissions = 0;

		for (uint32_t i = 0; i < TIMES; i++)
			submissions += run_batches(w, way);
		sample[s] = (now_ns() - start) / (TIMES * BATCHES * BATCH);
		if (submissions != expected)
			die("joined what it should not, or not what it should");
	}
	return lower_decile(sample, SAMPLES);
}

void coalesce_part(uint32_t rounds, bool claims)
{
	static const char *const names[SHAPES] = { "block.coalesce_seq_ns",
						   "block.coalesce_rand_ns",
						   "block.coalesce_shuffled_ns" };
	static const double goals[SHAPES] = { 5, 20, 20 };
	static double ns[WAYS][MAX_ROUNDS];
	struct work *w = open_work();

	if (!claims)
		printf("coalesce: ns per request of a batch of 32 (and where the median lies with "
		       "95 %%)\n%-12s   %18s   %18s\n",
		       "requests", "ours", "qsort and a pass");
	for (uint32_t shape = 0; shape < SHAPES; shape++) {
		struct random random = { shape };
		struct summary s[WAYS];

		for (uint32_t r = 0; r < rounds; r++) {
			make_batches(w, shape, &random);
			for (uint32_t way = 0; way < WAYS; way++)
				ns[way][r] = slice(w, way, shape);
		}
		for (uint32_t way = 0; way < WAYS; way++)
			s[way] = summarize(ns[way], rounds);
		if (claims)
			claim_print(names[shape], goals[shape], LOWER, s[OURS]);
		else
			printf("%-12s   %5.2f (%5.2f-%5.2f)   %5.2f (%5.2f-%5.2f)\n",
			       shape_names[shape], s[OURS].median, s[OURS].low, s[OURS].high,
			       s[QSORT].median, s[QSORT].low, s[QSORT].high);
	}
	free(w->mem);
	free(w);
}
