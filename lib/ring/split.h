/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.h: the split ring's memory format and index arithmetic, once for both sides.
 *
 * Nothing here keeps state. Words in memory that the peer writes are only reached through the
 * single-fetch loads below.
 */
#ifndef RING_SPLIT_H
#define RING_SPLIT_H

#include <stdbool.h>

#include <vqblk/port.h>
#include <vqblk/ring.h>
#include <vqblk/wire.h>

enum desc_flag {
	DESC_NEXT = 1,
	DESC_WRITE = 2,
	DESC_INDIRECT = 4,
};

/* Bit 0 of either ring's flags: "do not notify me". Without EVENT_IDX only. */
#define FLAG_QUIET 1u

/*
 * A descriptor is two eight-byte words, so that it is written and read by two accesses:
 * `rest` holds len in bits 0 to 31, flags in 32 to 47 and next in 48 to 63.
 */
struct desc {
	struct vqb_le64 addr, rest;
};

/* What both rings begin with. */
struct ring_head {
	struct vqb_le16 flags, idx;
};

struct used_elem {
	struct vqb_le32 id, len;
};

_Static_assert(sizeof(struct desc) == 16, "descriptor");
_Static_assert(sizeof(struct ring_head) == 4, "ring head");
_Static_assert(sizeof(struct used_elem) == 8, "used element");

static inline uint16_t load_le16(const struct vqb_le16 *p)
{
	return vqb_swap_le16(vqb_port_load16(p));
}

static inline uint16_t load_le16_acquire(const struct vqb_le16 *p)
{
	return vqb_swap_le16(vqb_port_load16_acquire(p));
}

static inline uint32_t load_le32(const struct vqb_le32 *p)
{
	return vqb_swap_le32(vqb_port_load32(p));
}

static inline uint64_t load_le64(const struct vqb_le64 *p)
{
	return vqb_swap_le64(vqb_port_load64(p));
}

static inline void store_le16(struct vqb_le16 *p, uint16_t v)
{
	vqb_port_store16(p, vqb_swap_le16(v));
}

static inline void store_le16_release(struct vqb_le16 *p, uint16_t v)
{
	vqb_port_store16_release(p, vqb_swap_le16(v));
}

static inline void store_le32(struct vqb_le32 *p, uint32_t v)
{
	vqb_port_store32(p, vqb_swap_le32(v));
}

static inline void store_le64(struct vqb_le64 *p, uint64_t v)
{
	vqb_port_store64(p, vqb_swap_le64(v));
}

static inline uint64_t desc_rest(uint32_t len, uint32_t flags, uint32_t next)
{
	return len | (uint64_t)flags << 32 | (uint64_t)next << 48;
}

static inline uint32_t desc_len(uint64_t rest)
{
	return (uint32_t)rest;
}

static inline uint32_t desc_flags(uint64_t rest)
{
	return (uint32_t)(rest >> 32) & 0xffff;
}

static inline uint32_t desc_next(uint64_t rest)
{
	return (uint32_t)(rest >> 48);
}

static inline void store_desc(struct desc *d, uint64_t addr, uint64_t rest)
{
	store_le64(&d->addr, addr);
	store_le64(&d->rest, rest);
}

static inline bool ring_size_valid(uint32_t size)
{
	return size && size <= VQB_RING_MAX && !(size & (size - 1));
}

static inline bool ring_has(uint64_t features, uint32_t bit)
{
	return features >> bit & 1;
}

/*
 * A ring's own checks, the same for host pointers and guest addresses. A feature of the ring's
 * range that is not known here might change the format, so it is refused rather than ignored.
 */
static inline bool ring_valid(uint32_t size, uint32_t flags, uint32_t zero, uint64_t features,
			      uint64_t desc, uint64_t avail, uint64_t used)
{
	return ring_size_valid(size) && !flags && !zero &&
	       !(features & ~(VQB_RING_FEATURES | VQB_TYPE_FEATURES)) && !(desc % 16) &&
	       !(avail % 2) && !(used % 4);
}

/* Does [addr, addr + len), len not 0, run past 2^64? The last byte may be at 2^64 - 1. */
static inline bool range_wraps(uint64_t addr, uint64_t len)
{
	return len - 1 > ~addr;
}

/*
 * Was entry number `event` among those from `old` up to, not including, `new`? All modulo 65536
 * (specification, 2.7.7.2), which is why the casts matter: in int arithmetic the difference of
 * an index that wrapped is negative and compares wrong (K10).
 */
static inline bool event_due(uint16_t event, uint16_t new_idx, uint16_t old_idx)
{
	return (uint16_t)(new_idx - event - 1) < (uint16_t)(new_idx - old_idx);
}

#endif
