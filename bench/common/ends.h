/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.h: both ends of one ring of this library, with guest memory as a guest of some size has it:
 * ring, tables and small things in a low region, data in a high one.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <vqblk/device.h>
#include <vqblk/driver.h>

enum { ENDS_PAGE = 4096 };

#define ENDS_LOW UINT64_C(0x10000000)
#define ENDS_HIGH UINT64_C(0x100000000)

struct ends_plan {
	uint32_t ring;
	uint32_t segments; /* of the longest request: a table for each ring entry holds as many */
	uint64_t features; /* besides VERSION_1 */
	const struct vqb_indirect_policy *policy;
	size_t small; /* bytes in the low region besides ring and tables */
	size_t data;  /* bytes in the high region */
};

struct ends {
	struct vqb_driver *drv;
	struct vqb_device *dev;
	struct vqb_extent ram[2];
	struct vqb_memory map;
	struct vqb_ring ring;
	uint8_t *low, *high;
	size_t small_at; /* where `small` begins, in the low region, at a multiple of 64 */
};

/* Ends the program if something is wrong. The rest lives in `ends`, which must not move. */
void ends_open(struct ends *ends, const struct ends_plan *plan);
void ends_close(struct ends *ends);

/* Says which status it is, and ends the program, unless it is VQB_OK. */
void check(int32_t status);

#endif
