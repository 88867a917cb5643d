/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk.c: features, configuration space, and the range check of virtio-blk.
 *
 * One table says where each field lies on the wire, which feature opens it, and which number of
 * vqb_blk_limits it is; reading and writing both walk it, so they cannot disagree.
 */
#include <vqblk/blk.h>

#define WIRE_IS(member, offset)                                                                    \
	_Static_assert(offsetof(struct vqb_blk_config, member) == (offset), #member)

WIRE_IS(capacity, 0);
WIRE_IS(size_max, 8);
WIRE_IS(seg_max, 12);
WIRE_IS(cylinders, 16);
WIRE_IS(heads, 18);
WIRE_IS(sectors, 19);
WIRE_IS(blk_size, 20);
WIRE_IS(physical_block_exp, 24);
WIRE_IS(alignment_offset, 25);
WIRE_IS(min_io_size, 26);
WIRE_IS(opt_io_size, 28);
WIRE_IS(writeback, 32);
WIRE_IS(unused0, 33);
WIRE_IS(num_queues, 34);
WIRE_IS(max_discard_sectors, 36);
WIRE_IS(max_discard_seg, 40);
WIRE_IS(discard_sector_alignment, 44);
WIRE_IS(max_write_zeroes_sectors, 48);
WIRE_IS(max_write_zeroes_seg, 52);
WIRE_IS(write_zeroes_may_unmap, 56);
WIRE_IS(unused1, 57);
WIRE_IS(max_secure_erase_sectors, 60);
WIRE_IS(max_secure_erase_seg, 64);
WIRE_IS(secure_erase_sector_alignment, 68);
WIRE_IS(zone_sectors, 72);
WIRE_IS(max_open_zones, 76);
WIRE_IS(max_active_zones, 80);
WIRE_IS(max_append_sectors, 84);
WIRE_IS(write_granularity, 88);
WIRE_IS(zoned_model, 92);
_Static_assert(sizeof(struct vqb_blk_config) == VQB_BLK_CONFIG_BYTES, "config space");

_Static_assert(sizeof(struct vqb_blk_header) == VQB_BLK_HEADER_BYTES, "header");
_Static_assert(offsetof(struct vqb_blk_header, sector) == 8, "header");
_Static_assert(sizeof(struct vqb_blk_range) == VQB_BLK_RANGE_BYTES, "range");
_Static_assert(offsetof(struct vqb_blk_range, flags) == 12, "range");

/* ---- features ---- */

static const struct vqb_feature_rule rules[] = {
	{ VQB_BLK_F_CONFIG_WCE, VQB_BLK_F_FLUSH },
};

uint64_t vqb_blk_features_offer(uint64_t wanted)
{
	const uint64_t able = VQB_BLK_DEVICE_FEATURES | VQB_FEATURE(VQB_BLK_F_RO) |
			      VQB_FEATURE(VQB_BLK_F_CONFIG_WCE) | VQB_RING_FEATURES;

	return vqb_features_mask(able, wanted | VQB_FEATURE(VQB_F_VERSION_1), rules, 1);
}

uint64_t vqb_blk_features_accept(uint64_t offered, uint64_t wanted)
{
	uint64_t known = wanted & (VQB_BLK_DRIVER_FEATURES | VQB_RING_FEATURES);

	return vqb_features_mask(offered, known | VQB_FEATURE(VQB_BLK_F_RO), rules, 1);
}

/* The rule about CONFIG_WCE binds the offer; a driver may take it without FLUSH. */
int32_t vqb_blk_features_check(uint64_t offered, uint64_t accepted)
{
	return vqb_features_check(offered, accepted, NULL, 0);
}

/* ---- configuration space ---- */

struct field {
	uint8_t at, width, feature, member; /* offsets in bytes, a bit number */
};

#define FIELD(wire, width, feature, member)                                                        \
	{                                                                                          \
		offsetof(struct vqb_blk_config, wire), (width), (feature),                         \
			offsetof(struct vqb_blk_limits, member)                                    \
	}

static const struct field fields[] = {
	FIELD(size_max, 4, VQB_BLK_F_SIZE_MAX, segment_bytes),
	FIELD(seg_max, 4, VQB_BLK_F_SEG_MAX, segments),
	FIELD(cylinders, 2, VQB_BLK_F_GEOMETRY, cylinders),
	FIELD(heads, 1, VQB_BLK_F_GEOMETRY, heads),
	FIELD(sectors, 1, VQB_BLK_F_GEOMETRY, track_sectors),
	FIELD(blk_size, 4, VQB_BLK_F_BLK_SIZE, block_size),
	FIELD(physical_block_exp, 1, VQB_BLK_F_TOPOLOGY, physical_exp),
	FIELD(alignment_offset, 1, VQB_BLK_F_TOPOLOGY, alignment_offset),
	FIELD(min_io_size, 2, VQB_BLK_F_TOPOLOGY, min_io),
	FIELD(opt_io_size, 4, VQB_BLK_F_TOPOLOGY, opt_io),
	FIELD(num_queues, 2, VQB_BLK_F_MQ, queues),
	FIELD(max_discard_sectors, 4, VQB_BLK_F_DISCARD, discard_sectors),
	FIELD(max_discard_seg, 4, VQB_BLK_F_DISCARD, discard_ranges),
	FIELD(discard_sector_alignment, 4, VQB_BLK_F_DISCARD, discard_alignment),
	FIELD(max_write_zeroes_sectors, 4, VQB_BLK_F_WRITE_ZEROES, zeroes_sectors),
	FIELD(max_write_zeroes_seg, 4, VQB_BLK_F_WRITE_ZEROES, zeroes_ranges),
	FIELD(write_zeroes_may_unmap, 1, VQB_BLK_F_WRITE_ZEROES, zeroes_may_unmap),
	FIELD(max_secure_erase_sectors, 4, VQB_BLK_F_SECURE_ERASE, erase_sectors),
	FIELD(max_secure_erase_seg, 4, VQB_BLK_F_SECURE_ERASE, erase_ranges),
	FIELD(secure_erase_sector_alignment, 4, VQB_BLK_F_SECURE_ERASE, erase_alignment),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

_Static_assert(sizeof(struct vqb_blk_limits) < 256, "offsets of members are kept in a byte");

static int block_size_is_good(uint32_t bytes)
{
	return bytes >= VQB_SECTOR_BYTES && !(bytes & (bytes - 1));
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t *member_of(struct vqb_blk_limits *limits, const struct field *field)
{
	return (uint32_t *)((char *)limits + field->member);
}

/* One access of the field's own width: the space may be the registers themselves. */
static uint32_t load_field(const uint8_t *at, uint32_t width)
{
	if (width == 1)
		return vqb_port_load8(at);
	if (width == 2)
		return vqb_swap_le16(vqb_port_load16(at));
	return vqb_swap_le32(vqb_port_load32(at));
}

uint32_t vqb_blk_ring_segments(uint32_t size)
{
	return size < 3 ? 0 : least(size, VQB_RING_MAX) - 2;
}

/* What a field that isn't there, or says 0, is taken for. */
static void set_defaults(struct vqb_blk_limits *limits)
{
	if (!limits->block_size)
		limits->block_size = VQB_SECTOR_BYTES;
	if (!limits->segment_bytes)
		limits->segment_bytes = UINT32_MAX;
	if (!limits->segments)
		limits->segments = 1;
	if (!limits->queues)
		limits->queues = 1;
}

int32_t vqb_blk_limits_read(const void *space, size_t bytes, uint64_t features, uint32_t ring_size,
			    struct vqb_blk_limits *out)
{
	const uint8_t *at = space;
	uint32_t fit = vqb_blk_ring_segments(ring_size ? ring_size : VQB_RING_MAX);
	uint32_t i, low;

	if (!space || (uintptr_t)space % 4 || bytes < 8 || !out)
		return VQB_E_INVALID;
	if (!fit)
		return VQB_E_TOOBIG;
	memset(out, 0, sizeof(*out));
	out->struct_size = sizeof(*out);
	low = load_field(at, 4);
	out->capacity = (uint64_t)load_field(at + 4, 4) << 32 | low;
	for (i = 0; i < FIELDS; i++) {
		const struct field *field = &fields[i];

		if (!(features & VQB_FEATURE(field->feature)))
			continue;
		if ((size_t)field->at + field->width > bytes)
			return VQB_E_INVALID;
		*member_of(out, field) = load_field(at + field->at, field->width);
	}
	if (features & VQB_FEATURE(VQB_BLK_F_BLK_SIZE) && !out->block_size)
		return VQB_E_INVALID;
	set_defaults(out);
	out->segments = least(out->segments, fit);
	return block_size_is_good(out->block_size) ? VQB_OK : VQB_E_INVALID;
}

int32_t vqb_blk_limits_write(const struct vqb_blk_limits *limits, uint64_t offered,
			     struct vqb_blk_config *out)
{
	struct vqb_blk_limits copy;
	uint8_t *at = (uint8_t *)out;
	uint32_t i, k;

	if (!limits || !out || limits->struct_size != sizeof(copy) || limits->zero)
		return VQB_E_INVALID;
	copy = *limits;
	if (!block_size_is_good(copy.block_size))
		return VQB_E_INVALID;
	memset(out, 0, sizeof(*out));
	out->capacity = vqb_to_le64(copy.capacity);
	for (i = 0; i < FIELDS; i++) {
		const struct field *field = &fields[i];
		uint32_t value = *member_of(&copy, field);

		if (!(offered & VQB_FEATURE(field->feature)))
			continue;
		if (field->width < 4 && value >> (8 * field->width))
			return VQB_E_INVALID;
		for (k = 0; k < field->width; k++)
			at[field->at + k] = (uint8_t)(value >> (8 * k));
	}
	return VQB_OK;
}

int32_t vqb_blk_cache(const void *space, size_t bytes, uint64_t accepted)
{
	const uint32_t at = offsetof(struct vqb_blk_config, writeback);

	if (!(accepted & VQB_FEATURE(VQB_BLK_F_CONFIG_WCE)))
		return accepted & VQB_FEATURE(VQB_BLK_F_FLUSH) ? VQB_BLK_WRITEBACK
							       : VQB_BLK_WRITETHROUGH;
	if (!space || bytes <= at)
		return VQB_E_INVALID;
	return vqb_port_load8((const uint8_t *)space + at) ? VQB_BLK_WRITEBACK
							   : VQB_BLK_WRITETHROUGH;
}

/* ---- checks ---- */

int32_t vqb_blk_check(uint64_t capacity, uint32_t block_size, uint64_t sector, uint64_t bytes)
{
	uint32_t in_block = block_size - 1;

	if (!block_size_is_good(block_size))
		return VQB_E_INVALID;
	if (bytes & in_block || sector & (in_block >> VQB_SECTOR_SHIFT))
		return VQB_E_INVALID;
	if (sector > capacity || bytes >> VQB_SECTOR_SHIFT > capacity - sector)
		return VQB_E_INVALID;
	return VQB_OK;
}

void vqb_blk_id_text(const void *id, char text[VQB_BLK_ID_BYTES + 1])
{
	memcpy(text, id, VQB_BLK_ID_BYTES);
	text[VQB_BLK_ID_BYTES] = 0;
}
