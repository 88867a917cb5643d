/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h: what bench-block measures, part by part. */
#ifndef BENCH_BLOCK_PARTS_H
#define BENCH_BLOCK_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Measures over `rounds` rounds, and prints a table, or with `claims` its goals (claims.h). */
typedef void (*part_run)(uint32_t rounds, bool claims);

void coalesce_part(uint32_t rounds, bool claims);
void device_part(uint32_t rounds, bool claims);
void map_part(uint32_t rounds, bool claims);

/* Runs "REQUEST,RING,BATCH,COALESCER,COUNT" (device.c), for bench/block/instructions. */
void device_count(const char *spec);

#endif
