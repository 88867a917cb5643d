/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h: what the two ends of a split virtqueue share: the ring's parts and where they lie, the
 * feature bits, buffers as segments (driver) and pieces (device).
 *
 * A ring of size N (a power of two, 1 to 32768) has three parts, each written by one side only:
 *
 *   descriptor table  16 * N      aligned 16   driver writes: where buffers are
 *   available ring    6 + 2 * N   aligned 2    driver writes: heads of chains it offers
 *   used ring         6 + 8 * N   aligned 4    device writes: heads it is done with, and lengths
 *
 * The sizes count the event word at the end of each ring, whether EVENT_IDX is in use or not.
 * A modern transport is told three addresses. A legacy one is told one: the parts lie in one
 * block, the used ring at the next multiple of an alignment. vqb_ring_layout computes either.
 */
#ifndef VQBLK_RING_H
#define VQBLK_RING_H

#include <vqblk/api.h>
#include <vqblk/status.h>

VQB_C_BEGIN

#define VQB_RING_MAX 32768u

/* ---- buffers ---- */

/* The driver's side of a buffer: an address as the device will see it. `zero` must be 0. */
struct vqb_segment {
	uint64_t addr;
	uint32_t len;
	uint32_t zero;
};

/* The device's side: a buffer, or part of one, in host memory. Laid out as struct iovec. */
struct vqb_piece {
	void *base;
	size_t len;
};

/* Memory that both sides reach, under both of its addresses. The caller's; outlives its user. */
struct vqb_dma {
	void *host;
	uint64_t addr;
	size_t bytes;
};

/* ---- layout ---- */

/* Bytes of each part of a ring of `size` entries. */
#define VQB_DESC_BYTES(size) (16u * (uint32_t)(size))
#define VQB_AVAIL_BYTES(size) (6u + 2u * (uint32_t)(size))
#define VQB_USED_BYTES(size) (6u + 8u * (uint32_t)(size))

struct vqb_layout {
	uint32_t desc, avail, used; /* offsets into the block */
	uint32_t end;               /* first byte after the used ring */
	uint32_t bytes;             /* to allocate: `end` rounded up to the alignment */
};

/*
 * Places a ring of `size` entries in one block, the used ring at the next multiple of `align`
 * (a power of two from 4 to 2^20; the legacy PCI transport has 4096, a modern user may take 4).
 * The block itself must be aligned to the larger of 16 and `align`.
 *
 * VQB_OK, or VQB_E_INVALID: size or align is out of range. Any thread.
 */
VQB_API int32_t vqb_ring_layout(uint32_t size, uint32_t align, struct vqb_layout *layout);

enum vqb_ring_flag {
	/*
	 * All numbers in the ring and in tables are big-endian: a legacy ring, whose byte order is
	 * the guest's, of a big-endian guest. Only without VQB_F_VERSION_1, under which every ring
	 * is little-endian.
	 */
	VQB_RING_BIG_ENDIAN = 1,
};

/* A ring as the driver sees it. `index` is the queue's number, up to 65535; `zero` must be 0. */
struct vqb_ring {
	uint32_t size, index;
	uint32_t flags; /* enum vqb_ring_flag */
	uint32_t zero;
	/*
	 * As negotiated. Bits of the device type are ignored; of the others only those of
	 * VQB_RING_FEATURES are allowed, and VQB_F_ANY_LAYOUT where VQB_F_VERSION_1 is missing,
	 * since another might change the format.
	 */
	uint64_t features;
	void *desc, *avail, *used;
};

/* A ring as the device sees it: guest addresses, resolved through its memory map. */
struct vqb_ring_at {
	uint32_t size, index, flags, zero;
	uint64_t features;
	uint64_t desc, avail, used;
};

/* Fills in the three parts of a ring whose `size` is set, in a block laid out as above. */
static inline int32_t vqb_ring_place(struct vqb_ring *ring, void *block, uint32_t align)
{
	struct vqb_layout at;
	int32_t status = vqb_ring_layout(ring->size, align, &at);

	if (status)
		return status;
	ring->desc = (char *)block + at.desc;
	ring->avail = (char *)block + at.avail;
	ring->used = (char *)block + at.used;
	return VQB_OK;
}

/* The same for guest addresses: `block` is where the block begins. */
static inline int32_t vqb_ring_place_at(struct vqb_ring_at *ring, uint64_t block, uint32_t align)
{
	struct vqb_layout at;
	int32_t status = vqb_ring_layout(ring->size, align, &at);

	if (status)
		return status;
	ring->desc = block + at.desc;
	ring->avail = block + at.avail;
	ring->used = block + at.used;
	return VQB_OK;
}

/* ---- features ---- */

/* Bit numbers, as the specification has them. */
enum vqb_feature {
	VQB_F_NOTIFY_ON_EMPTY = 24, /* legacy */
	VQB_F_ANY_LAYOUT = 27,      /* legacy */
	VQB_F_INDIRECT_DESC = 28,
	VQB_F_EVENT_IDX = 29,
	VQB_F_VERSION_1 = 32,
	VQB_F_ACCESS_PLATFORM = 33,
	VQB_F_RING_PACKED = 34,
	VQB_F_IN_ORDER = 35,
	VQB_F_ORDER_PLATFORM = 36,
	VQB_F_SR_IOV = 37,
	VQB_F_NOTIFICATION_DATA = 38,
	VQB_F_NOTIF_CONFIG_DATA = 39,
	VQB_F_RING_RESET = 40,
};

#define VQB_FEATURE(bit) (UINT64_C(1) << (bit))

/*
 * The bits from 24 to 49 (those about queues and negotiation, or reserved) that a queue of this
 * library can honour. ACCESS_PLATFORM only says that addresses are translated, which is the
 * caller's business on the driver and the memory map's on the device.
 */
#define VQB_RING_FEATURES                                                                          \
	(VQB_FEATURE(VQB_F_INDIRECT_DESC) | VQB_FEATURE(VQB_F_EVENT_IDX) |                         \
	 VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_F_ACCESS_PLATFORM) |                       \
	 VQB_FEATURE(VQB_F_IN_ORDER) | VQB_FEATURE(VQB_F_ORDER_PLATFORM) |                         \
	 VQB_FEATURE(VQB_F_NOTIFICATION_DATA) | VQB_FEATURE(VQB_F_RING_RESET))

/*
 * Of these, what to offer and to accept unless there is a reason for more: IN_ORDER binds the
 * device, ORDER_PLATFORM costs stronger barriers, NOTIFICATION_DATA and RING_RESET need a
 * transport that carries them, and ACCESS_PLATFORM says that addresses are translated. A driver
 * should add ORDER_PLATFORM to what it wants: a device that offers it has a reason.
 */
#define VQB_RING_DEFAULTS                                                                          \
	(VQB_FEATURE(VQB_F_INDIRECT_DESC) | VQB_FEATURE(VQB_F_EVENT_IDX) |                         \
	 VQB_FEATURE(VQB_F_VERSION_1))

/* Bits 0 to 23 and 50 to 63 belong to the device type. */
#define VQB_TYPE_FEATURES (~(((UINT64_C(1) << 26) - 1) << 24))

/* "`bit` may be offered or accepted only together with `needs`." */
struct vqb_feature_rule {
	uint8_t bit, needs;
};

/*
 * What may be offered or accepted of `wanted`: the bits that are in `available` too, are known
 * to the ring or lie in the device type's range, and whose prerequisites survive as well.
 *
 * A device computes its offer with `available` = what it implements. A driver computes what it
 * accepts with `available` = the offer; VERSION_1 is then taken whether wanted or not. Bits of
 * the type's range that the caller does not know are its own to leave out of `wanted`.
 *
 * `rule` is the device type's table (`rules` entries; may be NULL with 0). Any thread.
 * Cost: rules * rules at worst.
 */
VQB_API uint64_t vqb_features_mask(uint64_t available, uint64_t wanted,
				   const struct vqb_feature_rule *rule, uint32_t rules);

/*
 * For a device: may a driver that was offered `offered` accept `accepted`?
 * VQB_OK, or VQB_E_INVALID: not a subset, a prerequisite is missing, or VERSION_1 is.
 * Any thread. Cost: as vqb_features_mask.
 */
VQB_API int32_t vqb_features_check(uint64_t offered, uint64_t accepted,
				   const struct vqb_feature_rule *rule, uint32_t rules);

/*
 * Legacy: what a peer from before VQB_F_VERSION_1 negotiates, in 32 bits. There is no third way: a
 * driver whose device offers VERSION_1 uses the two functions above, another one these (or gives
 * up), and so does a device for a driver that comes through its legacy interface or, where there is
 * one set of registers for both, does not accept VERSION_1. The ring of such a queue lies in one
 * block (vqb_ring_layout), is as large as the device says, and in the guest's byte order
 * (VQB_RING_BIG_ENDIAN); its used lengths are best not relied on.
 *
 * ANY_LAYOUT ("nothing is presumed of where a request is cut into descriptors") is the only ring
 * feature besides those that a modern queue has, too. NOTIFY_ON_EMPTY is never offered, since the
 * device would have to overrule a driver that wants no notification.
 */
#define VQB_LEGACY_FEATURES                                                                        \
	(VQB_FEATURE(VQB_F_ANY_LAYOUT) | VQB_FEATURE(VQB_F_INDIRECT_DESC) |                        \
	 VQB_FEATURE(VQB_F_EVENT_IDX))

/* As vqb_features_mask; what is taken whether wanted or not is ANY_LAYOUT. */
VQB_API uint64_t vqb_features_mask_legacy(uint64_t available, uint64_t wanted,
					  const struct vqb_feature_rule *rule, uint32_t rules);

/* As vqb_features_check. VQB_E_INVALID also where `accepted` has VERSION_1, or any bit above 31. */
VQB_API int32_t vqb_features_check_legacy(uint64_t offered, uint64_t accepted,
					  const struct vqb_feature_rule *rule, uint32_t rules);

/* ---- memory that is not coherent ---- */

/*
 * For a CPU whose cache does not see what the peer writes, or whose peer does not see the cache.
 * The library flushes what it wrote to the ring and to tables before it makes that visible, and
 * invalidates what it is about to read. The buffers of requests are their owner's to look after.
 * Both are called with addresses and lengths as they come; each part of the ring, and the area of
 * tables, must begin and end on a cache line of their own.
 */
struct vqb_cache_ops {
	uint32_t struct_size; /* sizeof(struct vqb_cache_ops) */
	uint32_t zero;
	/* Write [at, at + bytes) back to memory; returns when it is there. */
	void (*flush)(void *context, const void *at, size_t bytes);
	/* Forget [at, at + bytes), so that the next load comes from memory. */
	void (*invalidate)(void *context, const void *at, size_t bytes);
	void *context;
};

/* ---- notifications ---- */

/* How long a postponed notification may wait, as an intent rather than a number. */
enum vqb_postpone {
	VQB_POSTPONE_SHORT = 0,   /* after about a quarter of what is in flight */
	VQB_POSTPONE_LONG = 1,    /* after about three quarters */
	VQB_POSTPONE_EMPTIED = 2, /* when all that the device has been shown has come back */
};

VQB_C_END

#endif
