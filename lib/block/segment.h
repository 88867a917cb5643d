/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h: what segment.c goes by, and its walk for the list that there is most often, of one
 * vector, as a handful of compares. What they say no to may be fine all the same: ask the walk.
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

/* With no byte left it is empty, or a mapper that somebody has changed. */
static inline int vector_is_good(const struct vqb_segment *v, uint32_t offset)
{
	return offset < v->len && !v->zero && v->addr <= UINT64_MAX - (v->len - 1);
}

/* The last address that a segment from `addr` on may have. */
VQB_TINY uint64_t reach(uint64_t addr, uint64_t longest, uint64_t boundary)
{
	uint64_t wall = addr | boundary;

	return wall - addr < longest ? wall : addr + (longest - 1);
}

/* Is it wrong that an inner edge has these addresses on its two sides? */
VQB_TINY int is_gap(uint64_t before, uint64_t behind, uint64_t boundary)
{
	return ((before | behind) & boundary) != 0;
}

VQB_TINY int segments_join(const struct vqb_limits *limits, const struct vqb_segment *a,
			   const struct vqb_segment *b)
{
	uint64_t end = a->addr + a->len;

	if (limits->flags & VQB_LIMITS_NO_CLUSTER || b->addr != end || !end)
		return 0;
	return end + (b->len - 1) <=
	       reach(a->addr, limits->max_segment_bytes, limits->seg_boundary);
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

/*
 * For vqb_map_append: a vector that is one request by itself makes the last segment longer, or is
 * the next one. With what lies next to it in memory and can't be joined, the walk knows what to do.
 */
VQB_TINY int append_vector(const struct vqb_limits *l, const struct vqb_segment *v,
			   struct vqb_segment *table, uint32_t room, uint32_t *n, uint64_t *bytes)
{
	struct vqb_segment *last = &table[*n - 1];
	uint64_t end = last->addr + last->len;

	if ((*bytes + v->len) >> VQB_SECTOR_SHIFT > l->max_sectors)
		return 0;
	if (v->addr == end) {
		if (!segments_join(l, last, v))
			return 0;
		last->len += v->len;
	} else {
		if (*n >= room || *n >= l->max_segments || is_gap(end, v->addr, l->virt_boundary))
			return 0;
		table[(*n)++] = *v;
	}
	*bytes += v->len;
	return 1;
}

#endif
