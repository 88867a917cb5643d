/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.h: the split ring's memory format and index arithmetic, once for both sides.
 *
 * Nothing here keeps state. Words in memory that the peer writes are only reached through the
 * single-fetch loads below.
 *
 * Whatever a queue may do besides the plain case is a bit of its `mode`. The plain case is mode 0,
 * and the hot functions exist twice: made from one source with the constant 0, in which all that
 * follows from the other bits falls away, and with the queue's own mode.
 */
#ifndef RING_SPLIT_H
#define RING_SPLIT_H

#include <stdbool.h>

#include <vqblk/port.h>
#include <vqblk/ring.h>

enum mode {
	MODE_PLAIN = 0,
	MODE_STOPPED = 1 << 0,  /* no ring, or broken: the state says which */
	MODE_BIG = 1 << 1,      /* the ring is big-endian (legacy) */
	MODE_PLATFORM = 1 << 2, /* barriers of device strength */
	MODE_CACHE = 1 << 3,    /* memory is not coherent */
	MODE_IN_ORDER = 1 << 4,
	/* of the device only */
	MODE_TRACKING = 1 << 5, /* there is a tracking area */
	MODE_LOG = 1 << 6,      /* the memory map has a log */
	MODE_HOLDS = MODE_IN_ORDER | MODE_TRACKING,
	MODE_FORMAT = MODE_BIG | MODE_CACHE, /* descriptors need more than a load */
};

/* At -Os there is no copy for the plain case: the general one does it, too. */
#if defined(__OPTIMIZE_SIZE__)
#define MODE_PLAIN_COPY 0
#else
#define MODE_PLAIN_COPY 1
#endif

/* Is this queue for the plain copy? */
VQB_TINY bool is_plain(uint32_t mode)
{
	return MODE_PLAIN_COPY && VQB_LIKELY(mode == MODE_PLAIN);
}

/* Are its chains for the plain walk? */
VQB_TINY bool walks_plain(uint32_t mode)
{
	return MODE_PLAIN_COPY && !(mode & MODE_FORMAT);
}

enum desc_flag {
	DESC_NEXT = 1,
	DESC_WRITE = 2,
	DESC_INDIRECT = 4,
};

/* Bit 0 of either ring's flags: "do not notify me". Without EVENT_IDX only. */
#define FLAG_QUIET 1u

/* Words in the ring's byte order: types of their own, so that a missing swap does not compile. */
struct word16 {
	uint16_t raw;
};

struct word32 {
	uint32_t raw;
};

struct word64 {
	uint64_t raw;
};

/*
 * A descriptor is two eight-byte words, so that it is written and read by two accesses:
 * `rest` holds len, flags and next, in this order. See rest_order.
 */
struct desc {
	struct word64 addr, rest;
};

/* What both rings begin with. */
struct ring_head {
	struct word16 flags, idx;
};

struct used_elem {
	struct word32 id, len;
};

_Static_assert(sizeof(struct desc) == 16, "descriptor");
_Static_assert(sizeof(struct ring_head) == 4, "ring head");
_Static_assert(sizeof(struct used_elem) == 8, "used element");

/*
 * Where `bytes` bytes of an array of the caller's end: not by pointer arithmetic, which C has
 * neither for NULL, as which an empty array may come, nor for what lies beyond the array.
 */
VQB_TINY void *behind(const void *from, size_t bytes)
{
	return (void *)((uintptr_t)from + bytes);
}

/* ---- byte order: each swap is its own inverse ---- */

VQB_TINY bool swapped(uint32_t mode)
{
	return mode & MODE_BIG ? !VQB_BIG_ENDIAN : VQB_BIG_ENDIAN;
}

VQB_TINY uint16_t order16(uint16_t v, uint32_t mode)
{
	return swapped(mode) ? vqb_port_swap16(v) : v;
}

VQB_TINY uint32_t order32(uint32_t v, uint32_t mode)
{
	return swapped(mode) ? vqb_port_swap32(v) : v;
}

VQB_TINY uint64_t order64(uint64_t v, uint32_t mode)
{
	return swapped(mode) ? vqb_port_swap64(v) : v;
}

/*
 * The second word of a descriptor as a number with len in bits 0 to 31, flags in 32 to 47 and next
 * in 48 to 63. The three lie in memory in this order whatever the byte order, so that a big-endian
 * number has them the other way round.
 */
VQB_INLINE uint64_t rest_order(uint64_t v, uint32_t mode)
{
	v = order64(v, mode);
	if (mode & MODE_BIG)
		v = v >> 32 | (v & 0xffff0000) << 16 | v << 48;
	return v;
}

/* The inverse. */
VQB_INLINE uint64_t rest_unorder(uint64_t v, uint32_t mode)
{
	if (mode & MODE_BIG)
		v = v << 32 | (v >> 16 & 0xffff0000) | v >> 48;
	return order64(v, mode);
}

/* ---- loads, each of which fetches once, and stores ---- */

VQB_TINY uint16_t load16(const struct word16 *p, uint32_t mode)
{
	return order16(vqb_port_load16(p), mode);
}

VQB_TINY uint32_t load32(const struct word32 *p, uint32_t mode)
{
	return order32(vqb_port_load32(p), mode);
}

VQB_TINY uint64_t load64(const struct word64 *p, uint32_t mode)
{
	return order64(vqb_port_load64(p), mode);
}

VQB_TINY uint64_t load_rest(const struct desc *d, uint32_t mode)
{
	return rest_order(vqb_port_load64(&d->rest), mode);
}

VQB_TINY void store16(struct word16 *p, uint16_t v, uint32_t mode)
{
	vqb_port_store16(p, order16(v, mode));
}

VQB_TINY void store32(struct word32 *p, uint32_t v, uint32_t mode)
{
	vqb_port_store32(p, order32(v, mode));
}

VQB_INLINE void store_rest(struct desc *d, uint64_t rest, uint32_t mode)
{
	vqb_port_store64(&d->rest, rest_unorder(rest, mode));
}

VQB_INLINE void store_desc(struct desc *d, uint64_t addr, uint64_t rest, uint32_t mode)
{
	vqb_port_store64(&d->addr, order64(addr, mode));
	store_rest(d, rest, mode);
}

VQB_TINY uint64_t desc_rest(uint32_t len, uint32_t flags, uint32_t next)
{
	return len | (uint64_t)flags << 32 | (uint64_t)next << 48;
}

VQB_TINY uint32_t desc_len(uint64_t rest)
{
	return (uint32_t)rest;
}

VQB_TINY uint32_t desc_flags(uint64_t rest)
{
	return (uint32_t)(rest >> 32) & 0xffff;
}

VQB_TINY uint32_t desc_next(uint64_t rest)
{
	return (uint32_t)(rest >> 48);
}

/* ---- rings ---- */

static inline bool ring_size_valid(uint32_t size)
{
	return size && size <= VQB_RING_MAX && !(size & (size - 1));
}

static inline bool ring_has(uint64_t features, uint32_t bit)
{
	return features >> bit & 1;
}

/* The bits of the ring's range that a ring may have. */
static inline uint64_t ring_features(uint64_t negotiated)
{
	bool legacy = !ring_has(negotiated, VQB_F_VERSION_1);

	return VQB_RING_FEATURES | (legacy ? VQB_FEATURE(VQB_F_ANY_LAYOUT) : 0);
}

/*
 * A ring's own checks, the same for host pointers and guest addresses. A feature of the ring's
 * range that is not known here might change the format, so it is refused rather than ignored.
 */
static inline bool ring_valid(uint32_t size, uint32_t flags, uint32_t zero, uint64_t features,
			      uint64_t desc, uint64_t avail, uint64_t used)
{
	if (flags & ~(uint32_t)VQB_RING_BIG_ENDIAN ||
	    (flags && ring_has(features, VQB_F_VERSION_1)))
		return false;
	return ring_size_valid(size) && !zero &&
	       !(features & ~(ring_features(features) | VQB_TYPE_FEATURES)) && !(desc % 16) &&
	       !(avail % 2) && !(used % 4);
}

static inline bool cache_valid(const struct vqb_cache_ops *cache)
{
	return !cache || (cache->struct_size == sizeof(*cache) && !cache->zero && cache->flush &&
			  cache->invalidate);
}

/* The mode of a ring that works. */
static inline uint32_t ring_mode(uint32_t flags, uint64_t features,
				 const struct vqb_cache_ops *cache)
{
	return (flags & VQB_RING_BIG_ENDIAN ? MODE_BIG : 0u) |
	       (ring_has(features, VQB_F_ORDER_PLATFORM) ? MODE_PLATFORM : 0u) |
	       (ring_has(features, VQB_F_IN_ORDER) ? MODE_IN_ORDER : 0u) |
	       (cache ? MODE_CACHE : 0u);
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
