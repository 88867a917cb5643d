/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * merge.c: what is it worth that neighbours in the ring go to the backend as one?
 *
 * A whole device on a file, 64 requests in flight, with a coalescer and without: six columns, as
 * they were measured when QEMU began to do so. The two take turns in one run.
 */
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "load.h"
#include "parts.h"
#include "stats.h"

enum { MAX_ROUNDS = 101 };

/* Up to so many times the rounds, where intervals are wide. */
enum { MORE = 3 };

static const struct load_plan columns[] = {
	{ "4k seq read", VQB_BLK_IN, 4096, false },   { "4k rand read", VQB_BLK_IN, 4096, true },
	{ "64k seq read", VQB_BLK_IN, 65536, false }, { "64k rand read", VQB_BLK_IN, 65536, true },
	{ "4k seq write", VQB_BLK_OUT, 4096, false }, { "4k rand write", VQB_BLK_OUT, 4096, true },
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

struct cell {
	double rate[2];        /* MB/s, apart and joined; medians */
	double submissions[2]; /* to the backend, per request; medians */
	double calls[2];
	struct summary gain;
};

static bool measure(const struct image *image, enum way way, const struct load_plan *plan,
		    uint32_t rounds, struct cell *cell)
{
	static double v[6][MAX_ROUNDS], gain[MAX_ROUNDS], sorted[MAX_ROUNDS];
	static struct load_pair pair;
	struct load *load = pair.load;
	uint32_t n = 0, most = MORE * rounds < MAX_ROUNDS ? MORE * rounds : MAX_ROUNDS;

	for (uint32_t joins = 0; joins < 2; joins++)
		if (!load_open(&load[joins], plan, image, way, true, joins))
			return false;
	load_warm_up(&pair);
	do {
		struct load_figures f[2];

		gain[n] = load_round(&pair, n, f);
		for (uint32_t joins = 0; joins < 2; joins++) {
			v[joins][n] = plan->bytes * 1e3 / f[joins].ns;
			v[2 + joins][n] = f[joins].submissions;
			v[4 + joins][n] = f[joins].calls;
		}
		n++;
		memcpy(sorted, gain, sizeof(sorted));
		cell->gain = summarize(sorted, n);
	} while (n < rounds || (n < most && summary_width(&cell->gain) > WIDEST));
	for (uint32_t joins = 0; joins < 2; joins++) {
		cell->rate[joins] = median(v[joins], n);
		cell->submissions[joins] = median(v[2 + joins], n);
		cell->calls[joins] = median(v[4 + joins], n);
		load_close(&load[joins]);
	}
	return true;
}

/* ---- printing ---- */

static void print_head(void)
{
	printf("merge: %d in flight, requests apart and joined: MB/s, submissions to the backend and "
	       "system calls\nof it per request\n"
	       "%-8s %-8s %-13s %7s %7s %18s   %7s %7s   %7s %7s\n",
	       DEPTH, "backend", "file", "requests", "apart", "joined", "times", "apart", "joined",
	       "apart", "joined");
}

static void print_row(const struct image *image, enum way way, const struct load_plan *plan,
		      const struct cell *cell)
{
	printf("%-8s %-8s %-13s %7.0f %7.0f %6.2f (%4.2f-%4.2f)   %7.3f %7.3f   %7.3f %7.3f\n",
	       way_names[way], image->system, plan->name, cell->rate[0], cell->rate[1],
	       cell->gain.median, cell->gain.low, cell->gain.high, cell->submissions[0],
	       cell->submissions[1], cell->calls[0], cell->calls[1]);
	fflush(stdout);
}

static void print_rows(const struct image *image, const struct part_options *o)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		for (uint32_t i = 0; i < COLUMNS; i++) {
			struct cell cell;

			if (o->only && !strstr(columns[i].name, o->only))
				continue;
			if (measure(image, way, &columns[i], o->rounds, &cell))
				print_row(image, way, &columns[i], &cell);
			else
				printf("%-8s is not to be had here\n", way_names[way]);
		}
	}
}

/* ---- goals ---- */

static void claim(const struct image *image, const struct part_options *o)
{
	struct contender gain[COLUMNS];
	struct cell cell;

	for (uint32_t i = 0; i < COLUMNS; i++) {
		if (!measure(image, URING, &columns[i], o->rounds, &cell)) {
			fprintf(stderr, "bench-seeds: no io_uring here: merge not measured\n");
			return;
		}
		gain[i] = (struct contender){ columns[i].name, cell.gain };
	}
	claim_print("block.merge_4k_seq_read", 1.5, HIGHER, gain[0].got);
	claim_print_worst("block.merge_worst_column", 0.99, gain, COLUMNS);
}

void merge_part(const struct part_options *o)
{
	const char *const dirs[] = { o->memory, o->dir };
	struct image image;

	if (!o->claims)
		print_head();
	for (uint32_t i = o->claims; i < 2; i++) {
		image_make(&image, dirs[i], o->megabytes);
		image_open(&image, false);
		if (o->claims)
			claim(&image, o);
		else
			print_rows(&image, o);
		image_close(&image);
		image_unmake(&image);
	}
}
