/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h: the walk of segment.c for the list that there is most often, of one vector, as a
 * handful of compares. What it says no to may be a request all the same: ask the walk.
 */
#ifndef VQB_BLOCK_SEGMENT_H
#define VQB_BLOCK_SEGMENT_H

#include <vqblk/port.h>
#include <vqblk/segment.h>

#define UPPER_HALF (UINT64_C(1) << 63)

/*
 * A vector's length and `zero` as one number, which is 2^32 or more if `zero` is set. Not every
 * compiler sees that two loads are one.
 */
VQB_TINY uint64_t vector_len(const struct vqb_segment *v)
{
	uint64_t both = vqb_port_peek64((const char *)v + offsetof(struct vqb_segment, len));

	return VQB_BIG_ENDIAN ? both << 32 | both >> 32 : both;
}

/*
 * Is a vector, as it is, one segment and one request, wherever it goes to that is a block? Limits
 * are good ones. What crosses the middle of the address space seems to cross a boundary, and so
 * does what runs past its end.
 */
VQB_TINY int vector_is_request(const struct vqb_limits *l, const struct vqb_segment *v)
{
	uint64_t len = vector_len(v);

	return len - 1 < l->max_segment_bytes && len >> VQB_SECTOR_SHIFT <= l->max_sectors &&
	       !(len & (l->block_size - 1)) &&
	       !((v->addr ^ (v->addr + (len - 1))) & (~l->seg_boundary | UPPER_HALF)) &&
	       !l->chunk_sectors;
}

#endif
