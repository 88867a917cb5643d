/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h: the guest's memory, at guest-physical addresses that are not the host's.
 *
 * Two regions, as in many a machine: a low one for rings, tables and headers, a high one for
 * data, far above. Each is one extent of the device's memory map. Both are handed out in pieces,
 * front to back, and given back all together.
 */
#ifndef LOOPBACK_MEMORY_H
#define LOOPBACK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <vqblk/vqblk.h>

enum region { REGION_LOW, REGION_HIGH, REGIONS };

struct memory {
	struct vqb_memory map;
	struct vqb_extent extent[REGIONS];
	uint64_t used[REGIONS];
};

/* False: no memory, and it was said. */
bool memory_open(struct memory *memory, uint64_t low_bytes, uint64_t high_bytes);
void memory_close(struct memory *memory);

/* What memory_take uses up for so many bytes: it hands out whole pages. */
uint64_t memory_cost(uint64_t bytes);

/* The next piece, which must be there, under both of its addresses. */
struct vqb_dma memory_take(struct memory *memory, enum region region, uint64_t bytes);

/* Memory of this program, aligned as the library's objects want it, all zero; NULL: none. */
void *object_memory(size_t bytes);

#endif
