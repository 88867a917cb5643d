/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.c: what does it cost to turn a list of vectors into segments? In nanoseconds per vector, all
 * calls of a request included: mapped, counted, and mapped by a plain loop of the kind that kernels
 * have, which decides by branches, vector by vector, and neither splits nor checks.
 *
 * Vectors have 4 KiB. Limits are those that are usual: 65536 bytes in a segment, which doesn't
 * cross a multiple of 2^32, and 254 segments in a request. Each case has many lists, so that a
 * random one isn't known to the branch predictor by heart.
 */
#include <stdio.h>
#include <stdlib.h>

#include <vqblk/segment.h>

#include "claims.h"
#include "machine.h"
#include "parts.h"
#include "random.h"
#include "stats.h"

enum {
	LISTS = 64,
	MOST = 256, /* vectors of a list */
	PAGE = 4096,
	LONGEST = 65536,
	SEGMENTS = 254,
	PIECES = 40, /* of a slice, of which the lower decile counts */
	PIECE_VECTORS = 64 * 1024,
	MAX_ROUNDS = 101,
};

#define BOUNDARY UINT64_C(0xffffffff)

enum shape { CONTIGUOUS, SCATTERED, RUNS, SHAPES };
enum way { MAP, COUNT, PLAIN, WAYS };

static const char *const shape_names[SHAPES] = { "contiguous", "scattered", "random runs" };
static const uint32_t sizes[] = { 8, 64, 256 };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

struct lists {
	struct vqb_limits limits;
	struct vqb_segment vec[LISTS][MOST];
	struct vqb_segment table[SEGMENTS];
	uint32_t n; /* vectors in each */
};

/* ---- the lists ---- */

static void make_limits(struct vqb_limits *l)
{
	vqb_limits_init(l);
	l->max_segments = SEGMENTS;
	l->max_segment_bytes = LONGEST;
	l->seg_boundary = BOUNDARY;
	if (vqb_limits_check(l, NULL))
		die("the limits are wrong");
}

/* In random runs every second vector, by chance, begins a new run. */
static void make_lists(struct lists *all, enum shape shape, uint32_t n, struct random *random)
{
	make_limits(&all->limits);
	all->n = n;
	for (uint32_t i = 0; i < LISTS; i++) {
		uint64_t at = UINT64_C(0x100000000) * (1 + i);

		for (uint32_t k = 0; k < n; k++) {
			bool apart =
				shape == SCATTERED || (shape == RUNS && random_one_in(random, 2));

			at += apart ? (1 + random_below(random, 64)) * PAGE : 0;
			all->vec[i][k] = (struct vqb_segment){ .addr = at, .len = PAGE };
			at += PAGE;
		}
	}
}

/* ---- the ways ---- */

static inline uint32_t by_mapper(struct lists *all, uint32_t i, struct vqb_segment *out)
{
	struct vqb_mapper m = vqb_mapper_over(&all->limits, all->vec[i], all->n, 0);
	uint32_t n, segments = 0;
	uint64_t bytes;

	while (vqb_mapper_more(&m)) {
		if (vqb_map_next(&m, out, SEGMENTS, &n, &bytes))
			die("the mapper refuses a list");
		segments += n;
	}
	return segments;
}

/* May the vector at `addr` be added to a segment? */
static inline bool folds(const struct vqb_limits *l, const struct vqb_segment *seg, uint64_t addr,
			 uint32_t len)
{
	if (seg->addr + seg->len != addr || seg->len + len > l->max_segment_bytes)
		return false;
	return (seg->addr | l->seg_boundary) == ((addr + len - 1) | l->seg_boundary);
}

/* Not inlined, as a mapper isn't. */
static __attribute__((noinline)) uint32_t plain_loop(const struct vqb_limits *l,
						     const struct vqb_segment *vec, uint32_t nvec,
						     struct vqb_segment *out)
{
	struct vqb_segment *seg = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < nvec; i++) {
		uint64_t addr = vec[i].addr;
		uint32_t len = vec[i].len;

		if (seg && folds(l, seg, addr, len)) {
			seg->len += len;
			continue;
		}
		while (len) {
			uint64_t wall = (addr | l->seg_boundary) - addr + 1;
			uint32_t part = len < l->max_segment_bytes ? len : l->max_segment_bytes;

			if (part > wall)
				part = (uint32_t)wall;
			if (n == l->max_segments)
				return n;
			seg = &out[n++];
			seg->addr = addr;
			seg->len = part;
			seg->zero = 0;
			addr += part;
			len -= part;
		}
	}
	return n;
}

static uint64_t run_lists(struct lists *all, enum way way)
{
	uint64_t segments = 0;

	for (uint32_t i = 0; i < LISTS; i++) {
		if (way == MAP)
			segments += by_mapper(all, i, all->table);
		else if (way == COUNT)
			segments += by_mapper(all, i, NULL);
		else
			segments += plain_loop(&all->limits, all->vec[i], all->n, all->table);
	}
	return segments;
}

/* ---- measuring ---- */

/* One slice: ns per vector. Ends the program if segments are not what they were. */
static double slice(struct lists *all, enum way way, uint64_t expected)
{
	uint32_t times = PIECE_VECTORS / (LISTS * all->n);
	double piece[PIECES];

	for (uint32_t p = 0; p < PIECES; p++) {
		double start = now_ns();
		uint64_t segments = 0;

		for (uint32_t i = 0; i < times; i++)
			segments += run_lists(all, way);
		piece[p] = (now_ns() - start) / (times * LISTS * all->n);
		if (segments != times * expected)
			die("segments were lost");
	}
	return lower_decile(piece, PIECES);
}

struct figure {
	double ns[WAYS][MAX_ROUNDS];
};

/* The ways take turns. Lists are made anew for each round. */
static void measure(struct lists *all, enum shape shape, uint32_t n, uint32_t rounds,
		    struct figure *figure)
{
	struct random random = { n };

	for (uint32_t r = 0; r < rounds; r++) {
		uint64_t expected;

		make_lists(all, shape, n, &random);
		expected = run_lists(all, COUNT);
		for (uint32_t way = 0; way < WAYS; way++)
			figure->ns[way][r] =
				slice(all, way,
				      shape == SCATTERED && way == PLAIN && n > SEGMENTS
					      ? (uint64_t)LISTS * SEGMENTS
					      : expected);
	}
}

static void print_row(enum shape shape, uint32_t n, uint32_t rounds, struct figure *figure)
{
	printf("%-12s %4u", shape_names[shape], n);
	for (uint32_t way = 0; way < WAYS; way++) {
		struct summary s = summarize(figure->ns[way], rounds);

		printf("   %5.2f (%4.2f-%4.2f)", s.median, s.low, s.high);
	}
	printf("\n");
}

/* For the goal: in each round the dearest of these. */
static void keep_dearest(double *dearest, const struct figure *figure, uint32_t rounds)
{
	for (uint32_t r = 0; r < rounds; r++)
		if (figure->ns[MAP][r] > dearest[r])
			dearest[r] = figure->ns[MAP][r];
}

void map_part(uint32_t rounds, bool claims)
{
	static double all_sizes[MAX_ROUNDS], runs[MAX_ROUNDS];
	struct lists *all = zeroed(sizeof(*all));
	static struct figure figure;

	if (!claims)
		printf("map: ns per vector of 4 KiB (and where the median lies with 95 %%)\n"
		       "%-12s %4s   %17s   %17s   %17s\n",
		       "vectors", "n", "mapped", "counted", "plain loop");
	for (uint32_t shape = 0; shape < SHAPES; shape++) {
		for (uint32_t i = 0; i < SIZES; i++) {
			measure(all, shape, sizes[i], rounds, &figure);
			if (shape != RUNS)
				keep_dearest(all_sizes, &figure, rounds);
			else if (sizes[i] == MOST)
				keep_dearest(runs, &figure, rounds);
			if (!claims)
				print_row(shape, sizes[i], rounds, &figure);
		}
	}
	if (claims) {
		claim_print("block.map_ns", 0.8, LOWER, summarize(all_sizes, rounds));
		claim_print("block.map_runs_ns", 2.2, LOWER, summarize(runs, rounds));
	}
	free(all);
}
