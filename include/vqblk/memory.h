/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h: guest memory as the device side sees it.
 *
 * A map is a sorted, constant array of extents, and a hook for what is not in the array. Any
 * number of queues, in any threads, share one map. Each queue keeps the two extents it used
 * last, since headers and data tend to live in two places; a buffer that runs over the end of
 * an extent becomes several pieces.
 *
 *   static const struct vqb_extent ram[] = {
 *           { .addr = 0, .len = 0xc0000000, .host = low, .access = VQB_READ | VQB_WRITE },
 *           { .addr = 0x100000000, .len = above, .host = high, .access = VQB_READ | VQB_WRITE },
 *   };
 *   struct vqb_memory map = { .struct_size = sizeof(map), .generation = 1, .count = 2,
 *                             .sorted = ram };
 *
 * To change the map, make a new one with the next generation, give it to each queue with
 * vqb_device_set_memory on that queue's thread, and unmap the old memory once
 * vqb_device_oldest_generation of each queue has reached the new generation: until then pieces
 * that were handed out may still point into it.
 */
#ifndef VQBLK_MEMORY_H
#define VQBLK_MEMORY_H

#include <vqblk/api.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* What a device may do with memory: bits. */
enum vqb_access {
	VQB_READ = 1,
	VQB_WRITE = 2,
};

/*
 * Guest addresses [addr, addr + len) lie at host, host + 1, .... The last one may be 2^64 - 1.
 * `zero` must be 0.
 */
struct vqb_extent {
	uint64_t addr, len;
	void *host;
	uint32_t access, zero;
};

struct vqb_memory {
	uint32_t struct_size; /* sizeof(struct vqb_memory) */
	uint32_t generation;  /* the caller's number of this map; a later map has a later one */
	uint32_t count;       /* of extents; may be 0 where there is a hook */
	uint32_t zero;
	const struct vqb_extent *sorted; /* by addr, not overlapping; constant while in use */
	/*
	 * Asked about an address that no extent of the array covers with the wanted access:
	 * answers VQB_OK with an extent that does, or anything else for "not mapped". Runs on
	 * the queue's thread, inside take. Its extents are cached like the array's, so what it
	 * said stays good until set_memory. NULL: there is nothing but the array.
	 */
	int32_t (*translate)(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out);
	void *context;
	/*
	 * The log of dirty pages, for live migration: told of guest memory that the device has
	 * written. NULL: nobody wants to know, and it costs nothing. To switch it on or off while
	 * a queue runs, give the queue a map that has it or hasn't with vqb_device_set_memory.
	 *
	 * Always told after the bytes were written: whoever clears a bit and then copies the page
	 * has either copied them or finds the bit set again. So set the bits atomically, in release
	 * order at least. Runs on the queue's thread, inside the calls that device.h names. May be
	 * told of more than was written, and of the same bytes twice. With `len` UINT64_MAX it is
	 * told that something was written and it is not known where: take all memory as dirty.
	 */
	void (*log)(void *context, uint64_t addr, uint64_t len);
	/*
	 * The way back, asked about a host address that lies in no writable extent of the array:
	 * answers VQB_OK with a writable extent that has it, whose `addr` is what the log is to be
	 * told, or anything else for "not mine". The answer must stay good until set_memory. Needed
	 * where there are both `log` and `translate`: only the hook knows then, and where an IOMMU
	 * translates, the address that the driver gave isn't the one that a log is about.
	 */
	int32_t (*locate)(void *context, const void *host, struct vqb_extent *out);
};

/*
 * Is the map usable: sizes, order, no overlap, nothing beyond 2^64, each extent with host memory
 * and a known access, a way back where one is needed? Init and set_memory ask the same.
 * VQB_OK or VQB_E_INVALID. Any thread. Cost: count.
 */
VQB_API int32_t vqb_memory_check(const struct vqb_memory *memory);

VQB_C_END

#endif
