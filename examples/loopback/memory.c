/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "say.h"

#define PAGE UINT64_C(4096)
#define LOW_ADDRESS UINT64_C(0x100000)
#define HIGH_ADDRESS UINT64_C(0x4000000000)

uint64_t memory_cost(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool open_region(struct vqb_extent *extent, uint64_t addr, uint64_t bytes)
{
	void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (host == MAP_FAILED) {
		complain("no %" PRIu64 " bytes of guest memory: %s", bytes, strerror(errno));
		return false;
	}
	*extent = (struct vqb_extent){
		.addr = addr, .len = bytes, .host = host, .access = VQB_READ | VQB_WRITE
	};
	return true;
}

bool memory_open(struct memory *memory, uint64_t low_bytes, uint64_t high_bytes)
{
	struct vqb_extent *extent = memory->extent;

	*memory = (struct memory){ .map = { .struct_size = sizeof(struct vqb_memory),
					    .generation = 1,
					    .count = REGIONS,
					    .sorted = extent } };
	if (open_region(&extent[REGION_LOW], LOW_ADDRESS, memory_cost(low_bytes)) &&
	    open_region(&extent[REGION_HIGH], HIGH_ADDRESS, memory_cost(high_bytes)))
		return true;
	memory_close(memory);
	return false;
}

void memory_close(struct memory *memory)
{
	uint32_t i;

	for (i = 0; i < REGIONS; i++)
		if (memory->extent[i].host)
			munmap(memory->extent[i].host, memory->extent[i].len);
	*memory = (struct memory){ 0 };
}

struct vqb_dma memory_take(struct memory *memory, enum region region, uint64_t bytes)
{
	const struct vqb_extent *extent = &memory->extent[region];
	uint64_t at = memory->used[region];

	assert(bytes <= extent->len - at);
	memory->used[region] += memory_cost(bytes);
	return (struct vqb_dma){ .host = (char *)extent->host + at,
				 .addr = extent->addr + at,
				 .bytes = bytes };
}

void *object_memory(size_t bytes)
{
	size_t whole = (bytes + 63) / 64 * 64;
	void *mem = aligned_alloc(64, whole);

	return mem ? memset(mem, 0, whole) : NULL;
}
