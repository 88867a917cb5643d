/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h: what bench-seeds measures, part by part. */
#ifndef BENCH_SEEDS_PARTS_H
#define BENCH_SEEDS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct part_options {
	uint32_t rounds;
	uint32_t count;     /* of requests, to be looked at by a tool that counts; 0: measure */
	bool claims;        /* print goals (claims.h) instead of a table */
	const char *dir;    /* for files that are to lie on a real file system */
	const char *memory; /* for those that are to lie in memory: a tmpfs */
	uint32_t megabytes; /* of a file */
	const char *only;   /* of a table, the rows whose name has this in it; NULL: all */
	const char *svg;    /* draw into this file instead; NULL: don't */
};

typedef void (*part_run)(const struct part_options *options);

void batch_part(const struct part_options *options);
void irq_part(const struct part_options *options);
void merge_part(const struct part_options *options);
void mwf_part(const struct part_options *options);
void paths_part(const struct part_options *options);
void plug_part(const struct part_options *options);

#endif
