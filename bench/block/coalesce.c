/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce.c: what does it cost to have requests joined? In nanoseconds per request of a batch of
 * 32, one piece each: added and flushed, and apart from that given back when they are done. Beside
 * it what a device would write without the library: qsort, one pass that joins neighbours within
 * the limits and copies their pieces, and one over the members when they are done. It knows nothing
 * of overlaps, of joined submissions that are still out, or of failures.
 *
 * Sixteen batches are out at a time; their requests are the same 512 all along, as those of a queue
 * are. Offsets come from many batches, so that a random one isn't known to the branch predictor by
 * heart.
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
	GROUP = 16, /* batches that are out at a time */
	BATCH = 32,
	PIECES = 1024,
	BYTES = 4096,
	SAMPLES = 40, /* of a slice, of which the lower decile counts */
	TIMES = 16,   /* that all batches go through in a sample */
	MAX_ROUNDS = 101,
};

enum shape { SEQUENTIAL, RANDOM, SHUFFLED, SHAPES };
enum way { OURS, QSORT, WAYS };
enum part { JOIN, DONE, PARTS };

static const char *const shape_names[SHAPES] = { "sequential", "random", "shuffled run" };

struct work {
	struct vqb_coalescer *c;
	void *mem;
	uint64_t offset[BATCHES][BATCH];
	struct vqb_io io[GROUP * BATCH];
	struct vqb_piece piece[GROUP * BATCH];
	struct vqb_io
		*out[GROUP * BATCH]; /* ours: submissions; the plain way: their first members */
	uint32_t outs;
	/* of the plain way */
	struct vqb_io *sorted[BATCH];
	struct vqb_io joined[GROUP * BATCH];
	struct vqb_piece list[GROUP * BATCH];
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

/*
 * Runs are apart from each other. Random requests never adjoin: only each other block may be one.
 */
static void make_batches(struct work *w, enum shape shape, struct random *random)
{
	for (uint32_t i = 0; i < BATCHES; i++) {
		uint64_t start = (uint64_t)(i << 20 | random_below(random, 1 << 19)) * BYTES;

		for (uint32_t k = 0; k < BATCH; k++)
			w->offset[i][k] =
				shape == RANDOM ? UINT64_C(2) * BYTES * (random_word(random) >> 24)
						: start + (uint64_t)k * BYTES;
		if (shape == SHUFFLED)
			shuffle(w->offset[i], BATCH, random);
	}
}

static struct work *open_work(void)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .joins = GROUP * BATCH,
					       .pieces = 2 * GROUP * BATCH,
					       .max_pieces = PIECES,
					       .max_transfer = 1 << 20 };
	struct work *w = (struct work *)zeroed(sizeof(*w));
	size_t bytes = vqb_coalescer_size(&config);

	w->mem = zeroed(bytes);
	if (vqb_coalescer_init(w->mem, bytes, &config, &w->c))
		die("there is no coalescer");
	for (uint32_t i = 0; i < GROUP * BATCH; i++) {
		w->piece[i] = (struct vqb_piece){ .base = w, .len = BYTES };
		w->io[i] = (struct vqb_io){
			.op = VQB_BLK_OUT, .piece = &w->piece[i], .pieces = 1, .bytes = BYTES
		};
	}
	return w;
}

/* ---- the ways: join one batch, of which the requests start at `io`; end what is out ---- */

static void join_ours(struct work *w, const uint64_t *offset, struct vqb_io *io)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		io[i].offset = offset[i];
		if (vqb_coalescer_add(w->c, &io[i]))
			die("a request is refused");
	}
	for (io = vqb_coalescer_flush(w->c); io; io = io->next)
		w->out[w->outs++] = io;
}

static void done_ours(struct work *w, struct vqb_io_list *done)
{
	struct vqb_io_list retry = { NULL, NULL };

	for (uint32_t i = 0; i < w->outs; i++) {
		struct vqb_io *io = w->out[i];

		io->result = (int64_t)io->bytes;
		vqb_coalescer_done(w->c, io, done, &retry);
	}
	if (retry.first)
		die("something is to be tried again");
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
static __attribute__((noinline)) void join_plain(struct work *w, const uint64_t *offset,
						 struct vqb_io *io)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		io[i].offset = offset[i];
		w->sorted[i] = &io[i];
	}
	qsort(w->sorted, BATCH, sizeof(struct vqb_io *), by_offset);
	for (uint32_t i = 0; i < BATCH;) {
		uint32_t out = w->outs++;

		w->out[out] = w->sorted[i];
		i += join(w, i, &w->joined[out], &w->list[(io - w->io) + i]);
	}
}

static __attribute__((noinline)) void done_plain(struct work *w, struct vqb_io_list *done)
{
	for (uint32_t i = 0; i < w->outs; i++) {
		struct vqb_io *io, *next;

		for (io = w->out[i]; io; io = next) {
			next = io->next;
			io->result = (int64_t)io->bytes;
			vqb_io_list_add(done, io);
		}
	}
}

/* Joins a group of batches and ends them, and adds up what either took. */
static void run_group(struct work *w, enum way way, enum shape shape, uint32_t first, double *ns)
{
	struct vqb_io_list done = { NULL, NULL };
	double start = now_ns(), middle;
	uint32_t n = 0;

	w->outs = 0;
	for (uint32_t i = 0; i < GROUP; i++) {
		struct vqb_io *io = &w->io[(size_t)i * BATCH];

		if (way == OURS)
			join_ours(w, w->offset[first + i], io);
		else
			join_plain(w, w->offset[first + i], io);
	}
	middle = now_ns();
	if (way == OURS)
		done_ours(w, &done);
	else
		done_plain(w, &done);
	ns[DONE] += now_ns() - middle;
	ns[JOIN] += middle - start;
	if (w->outs != (shape == RANDOM ? GROUP * BATCH : GROUP))
		die("joined what it should not, or not what it should");
	for (const struct vqb_io *io = done.first; io; io = io->next)
		n++;
	if (n != GROUP * BATCH)
		die("requests were lost");
}

/* ---- measuring ---- */

struct figures {
	double ns[WAYS][PARTS][MAX_ROUNDS];
};

/* One slice: ns per request, for joining and for ending. */
static void slice(struct work *w, enum way way, enum shape shape, uint32_t round, struct figures *f)
{
	double sample[PARTS][SAMPLES];

	for (uint32_t s = 0; s < SAMPLES; s++) {
		double ns[PARTS] = { 0 };

		for (uint32_t i = 0; i < TIMES; i++)
			for (uint32_t k = 0; k < BATCHES; k += GROUP)
				run_group(w, way, shape, k, ns);
		for (uint32_t part = 0; part < PARTS; part++)
			sample[part][s] = ns[part] / (TIMES * BATCHES * BATCH);
	}
	for (uint32_t part = 0; part < PARTS; part++)
		f->ns[way][part][round] = lower_decile(sample[part], SAMPLES);
}

static void print_row(enum shape shape, uint32_t rounds, struct figures *f)
{
	printf("%-12s", shape_names[shape]);
	for (uint32_t way = 0; way < WAYS; way++) {
		struct summary joined = summarize(f->ns[way][JOIN], rounds);

		printf("   %5.2f (%5.2f-%5.2f) and %4.2f", joined.median, joined.low, joined.high,
		       summarize(f->ns[way][DONE], rounds).median);
	}
	printf("\n");
}

void coalesce_part(uint32_t rounds, bool claims)
{
	static const char *const names[SHAPES] = { "block.coalesce_seq_ns",
						   "block.coalesce_rand_ns",
						   "block.coalesce_shuffled_ns" };
	static const double goals[SHAPES] = { 5, 20, 20 };
	static struct figures f;
	struct work *w = open_work();

	if (!claims)
		printf("coalesce: ns per request of a batch of 32, joined (and where the median "
		       "lies with 95 %%), and ended\n%-12s   %28s   %28s\n",
		       "requests", "ours", "qsort and a pass");
	for (uint32_t shape = 0; shape < SHAPES; shape++) {
		struct random random = { shape };

		for (uint32_t r = 0; r < rounds; r++) {
			make_batches(w, shape, &random);
			for (uint32_t way = 0; way < WAYS; way++)
				slice(w, way, shape, r, &f);
		}
		if (claims)
			claim_print(names[shape], goals[shape], LOWER,
				    summarize(f.ns[OURS][JOIN], rounds));
		else
			print_row(shape, rounds, &f);
	}
	free(w->mem);
	free(w);
}
