/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h: little-endian words as they lie in shared memory.
 *
 * Each is a struct of its own, so that a missing conversion does not compile. vqb_to_leNN makes
 * a wire word of a number, vqb_from_leNN a number of a wire word; both cost nothing on a
 * little-endian machine. (The words carry no alignment promise beyond that of their integer.)
 */
#ifndef VQBLK_WIRE_H
#define VQBLK_WIRE_H

#include <vqblk/api.h>
#include <vqblk/port.h>

struct vqb_le16 {
	uint16_t raw;
};

struct vqb_le32 {
	uint32_t raw;
};

struct vqb_le64 {
	uint64_t raw;
};

/* The swap is its own inverse, so one function serves both directions. */
static inline uint16_t vqb_swap_le16(uint16_t v)
{
	return VQB_BIG_ENDIAN ? vqb_port_swap16(v) : v;
}

static inline uint32_t vqb_swap_le32(uint32_t v)
{
	return VQB_BIG_ENDIAN ? vqb_port_swap32(v) : v;
}

static inline uint64_t vqb_swap_le64(uint64_t v)
{
	return VQB_BIG_ENDIAN ? vqb_port_swap64(v) : v;
}

static inline struct vqb_le16 vqb_to_le16(uint16_t v)
{
	struct vqb_le16 w = { vqb_swap_le16(v) };

	return w;
}

static inline struct vqb_le32 vqb_to_le32(uint32_t v)
{
	struct vqb_le32 w = { vqb_swap_le32(v) };

	return w;
}

static inline struct vqb_le64 vqb_to_le64(uint64_t v)
{
	struct vqb_le64 w = { vqb_swap_le64(v) };

	return w;
}

static inline uint16_t vqb_from_le16(struct vqb_le16 w)
{
	return vqb_swap_le16(w.raw);
}

static inline uint32_t vqb_from_le32(struct vqb_le32 w)
{
	return vqb_swap_le32(w.raw);
}

static inline uint64_t vqb_from_le64(struct vqb_le64 w)
{
	return vqb_swap_le64(w.raw);
}

#endif
