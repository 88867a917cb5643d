/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plug.c: what is it worth that all a drain of the ring brings is started by one system call?
 *
 * A whole device on an io_uring, 4 KiB random reads, 64 in flight: plugged, and with a backend that
 * has no plug, so that every submit is a system call. Nothing is joined. The two take turns in one
 * run; the file is in the page cache, or read past it.
 */
#include <stdio.h>

#include "claims.h"
#include "load.h"
#include "machine.h"
#include "parts.h"
#include "stats.h"

enum { MAX_ROUNDS = 101 };

struct row {
	double iops[2], calls[2], waits[2]; /* without, with; medians */
	struct summary iops_gain, calls_gain;
};

static const struct load_plan plan = { "4k rand read", VQB_BLK_IN, 4096, true };

static bool measure(const struct image *image, uint32_t rounds, struct row *row)
{
	static double v[6][MAX_ROUNDS], gain[2][MAX_ROUNDS];
	static struct load_pair pair;
	struct load *load = pair.load;

	for (uint32_t plugs = 0; plugs < 2; plugs++)
		if (!load_open(&load[plugs], &plan, image, URING, plugs, false))
			return false;
	load_warm_up(&pair);
	for (uint32_t r = 0; r < rounds; r++) {
		struct load_figures f[2];

		gain[0][r] = load_round(&pair, r, f);
		gain[1][r] = f[0].calls / f[1].calls;
		for (uint32_t plugs = 0; plugs < 2; plugs++) {
			v[plugs][r] = 1e9 / f[plugs].ns;
			v[2 + plugs][r] = f[plugs].calls;
			v[4 + plugs][r] = f[plugs].waits;
		}
	}
	row->iops_gain = summarize(gain[0], rounds);
	row->calls_gain = summarize(gain[1], rounds);
	for (uint32_t plugs = 0; plugs < 2; plugs++) {
		row->iops[plugs] = median(v[plugs], rounds);
		row->calls[plugs] = median(v[2 + plugs], rounds);
		row->waits[plugs] = median(v[4 + plugs], rounds);
		load_close(&load[plugs]);
	}
	return true;
}

static void print_row(const char *file, const char *reads, const struct row *row)
{
	printf("%-8s %-11s %8.1f %8.1f %6.2f (%4.2f-%4.2f)   %7.4f %7.4f %6.1f (%4.1f-%4.1f)   "
	       "%7.3f %7.3f\n",
	       file, reads, row->iops[0] / 1e3, row->iops[1] / 1e3, row->iops_gain.median,
	       row->iops_gain.low, row->iops_gain.high, row->calls[0], row->calls[1],
	       row->calls_gain.median, row->calls_gain.low, row->calls_gain.high, row->waits[0],
	       row->waits[1]);
	fflush(stdout);
}

static void print_head(void)
{
	printf("plug: 4 KiB random reads on an io_uring, %d in flight, without plug and with: "
	       "thousands a second,\nsubmitting system calls and sleeps per request\n"
	       "%-8s %-11s %8s %8s %18s   %7s %7s %18s   %7s %7s\n",
	       DEPTH, "file", "read", "without", "with", "times", "without", "with", "times fewer",
	       "without", "with");
}

static void count(const struct part_options *o)
{
	static struct load load;
	struct image image;

	image_make(&image, o->dir, o->megabytes);
	image_open(&image, false);
	for (uint32_t plugs = 0; plugs < 2; plugs++) {
		if (!load_open(&load, &plan, &image, URING, plugs, false))
			die("there is no io_uring here");
		load_run(&load, o->count);
		printf("%s plug: %llu requests, %llu system calls counted\n",
		       plugs ? "with" : "without", (unsigned long long)load.done,
		       (unsigned long long)store_calls(&load.store));
		load_close(&load);
	}
	image_close(&image);
	image_unmake(&image);
}

void plug_part(const struct part_options *o)
{
	const char *const dirs[] = { o->memory, o->dir, o->dir };
	struct image image;
	struct row row;

	if (o->count) {
		count(o);
		return;
	}
	if (!o->claims)
		print_head();
	for (uint32_t i = o->claims; i < (o->claims ? 2 : 3); i++) {
		image_make(&image, dirs[i], o->megabytes);
		if (!image_open(&image, i == 2)) {
			printf("%-8s %-11s not to be had\n", image.system, "direct");
		} else {
			bool measured = measure(&image, o->rounds, &row);

			image_close(&image);
			if (!measured) {
				fprintf(stderr,
					"bench-seeds: no io_uring here: plug not measured\n");
			} else if (o->claims) {
				claim_print("block.plug_syscalls", 8, HIGHER, row.calls_gain);
				claim_print("block.plug_iops", 1.37, HIGHER, row.iops_gain);
			} else {
				print_row(image.system, i == 2 ? "direct" : "page cache", &row);
			}
		}
		image_unmake(&image);
	}
}
