/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.c: where the parts of a ring lie in one block. */
#include "split.h"

_Static_assert(sizeof(struct vqb_segment) == 16, "segment");

#define ALIGN_MIN 4u
#define ALIGN_MAX (1u << 20)

static uint32_t round_up(uint32_t n, uint32_t align)
{
	return (n + align - 1) & ~(align - 1);
}

int32_t vqb_ring_layout(uint32_t size, uint32_t align, struct vqb_layout *layout)
{
	if (!ring_size_valid(size) || align < ALIGN_MIN || align > ALIGN_MAX ||
	    (align & (align - 1)))
		return VQB_E_INVALID;
	layout->desc = 0;
	layout->avail = VQB_DESC_BYTES(size);
	layout->used = round_up(layout->avail + VQB_AVAIL_BYTES(size), align);
	layout->end = layout->used + VQB_USED_BYTES(size);
	layout->bytes = round_up(layout->end, align);
	return VQB_OK;
}
