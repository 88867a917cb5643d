/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_device.c: the disk as drivers see it: what is offered, and the configuration space.
 *
 * What is offered is what is wanted, less what the backends can't do, less what has nothing to say.
 */
#include "blk_device.h"

_Static_assert(sizeof(struct vqb_blk_device) <= VQB_BLK_DEVICE_BYTES, "bound");

enum { RANGES = 32 }; /* of one discard and its kin, where the caller doesn't say */

size_t vqb_blk_device_size(void)
{
	return VQB_ROUND_UP(sizeof(struct vqb_blk_device));
}

/* ---- what is offered ---- */

/* What the backends can't do is not wanted; and a disk that can't be written is read-only. */
static uint64_t able(uint64_t wanted, const struct vqb_backend_caps *caps)
{
	static const struct {
		uint32_t can, feature;
	} need[] = {
		{ VQB_CAN_FLUSH, VQB_BLK_F_FLUSH },
		{ VQB_CAN_DISCARD, VQB_BLK_F_DISCARD },
		{ VQB_CAN_WRITE_ZEROES, VQB_BLK_F_WRITE_ZEROES },
		{ VQB_CAN_SECURE_ERASE, VQB_BLK_F_SECURE_ERASE },
		{ VQB_CAN_LIFETIME, VQB_BLK_F_LIFETIME },
	};
	/* Of a backend that isn't known yet only the usual is expected. */
	uint32_t can = caps ? caps->can : VQB_CAN_READ | VQB_CAN_WRITE | VQB_CAN_FLUSH, i;

	if (!(can & VQB_CAN_WRITE)) {
		can &= VQB_CAN_FLUSH | VQB_CAN_LIFETIME;
		wanted |= VQB_FEATURE(VQB_BLK_F_RO);
	}
	for (i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
		if (!(can & need[i].can))
			wanted &= ~VQB_FEATURE(need[i].feature);
	}
	return wanted;
}

/*
 * What is wanted, without features that have nothing to say, and with BLK_SIZE where a driver that
 * doesn't know the block would go wrong.
 */
static uint64_t offer(uint64_t wanted, const struct vqb_blk_limits *limits)
{
	if (!limits->segment_bytes)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_SIZE_MAX);
	if (!limits->segments)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_SEG_MAX);
	if (!(limits->physical_exp | limits->alignment_offset | limits->min_io | limits->opt_io))
		wanted &= ~VQB_FEATURE(VQB_BLK_F_TOPOLOGY);
	if (limits->queues <= 1)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_MQ);
	if (!limits->discard_sectors)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_DISCARD);
	if (!limits->zeroes_sectors)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES);
	if (!limits->erase_sectors)
		wanted &= ~VQB_FEATURE(VQB_BLK_F_SECURE_ERASE);
	if (limits->block_size != VQB_SECTOR_BYTES)
		wanted |= VQB_FEATURE(VQB_BLK_F_BLK_SIZE);
	return vqb_blk_features_offer(wanted);
}

static void set_default(uint32_t *member, uint64_t value)
{
	if (!*member)
		*member = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Whole blocks, at most what one io can carry; more would be cut into several. */
static void set_range(uint32_t *sectors, uint32_t *ranges, uint64_t max_range, uint32_t block)
{
	uint64_t most = max_range >> VQB_SECTOR_SHIFT;

	if (most > UINT32_MAX)
		most = UINT32_MAX;
	set_default(sectors, most & ~(uint64_t)(block - 1));
	set_default(ranges, RANGES);
}

static void set_alignment(uint32_t *sectors, uint32_t bytes, uint32_t block)
{
	uint32_t wanted = bytes >> VQB_SECTOR_SHIFT;

	set_default(sectors, wanted > block ? wanted : block);
}

/* What the caller leaves open follows from what the backends can do. */
static void fill_up(struct vqb_blk_limits *limits, const struct vqb_backend_caps *caps)
{
	uint32_t block = limits->block_size >> VQB_SECTOR_SHIFT;

	if (!caps)
		return;
	set_range(&limits->discard_sectors, &limits->discard_ranges, caps->max_range, block);
	set_range(&limits->zeroes_sectors, &limits->zeroes_ranges, caps->max_range, block);
	set_range(&limits->erase_sectors, &limits->erase_ranges, caps->max_range, block);
	set_alignment(&limits->discard_alignment, caps->discard_alignment, block);
	set_alignment(&limits->erase_alignment, caps->erase_alignment, block);
	limits->zeroes_may_unmap = !!(caps->can & VQB_CAN_UNMAP);
}

/* ---- setting up ---- */

static void set_id(struct vqb_blk_device *dev, const char *serial)
{
	uint32_t i;

	for (i = 0; serial && i < VQB_BLK_ID_BYTES && serial[i]; i++)
		dev->id[i] = (uint8_t)serial[i];
}

int32_t vqb_blk_device_init(void *mem, size_t bytes, const struct vqb_blk_device_config *config,
			    struct vqb_blk_device **out)
{
	struct vqb_blk_device *dev = mem;
	struct vqb_blk_limits limits;
	int32_t status;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out || !config ||
	    config->struct_size != sizeof(*config) || config->zero || !config->limits ||
	    config->limits->struct_size != sizeof(limits))
		return VQB_E_INVALID;
	if (bytes < vqb_blk_device_size())
		return VQB_E_TOOBIG;
	limits = *config->limits;
	if (!limits.block_size)
		limits.block_size = VQB_SECTOR_BYTES;
	if (limits.capacity > UINT64_MAX >> VQB_SECTOR_SHIFT)
		return VQB_E_INVALID;
	fill_up(&limits, config->backend);

	memset(dev, 0, sizeof(*dev));
	dev->block_size = limits.block_size;
	dev->features = offer(able(config->features, config->backend), &limits);
	dev->limits = limits;
	set_id(dev, config->serial);
	status = vqb_blk_limits_write(&limits, dev->features, &dev->config);
	if (status)
		return status;
	vqb_blk_device_resize(dev, limits.capacity);
	vqb_blk_device_reset(dev);
	*out = dev;
	return VQB_OK;
}

/* ---- negotiation ---- */

uint64_t vqb_blk_device_features(const struct vqb_blk_device *dev)
{
	return dev->features;
}

static void set_cache(struct vqb_blk_device *dev, uint32_t writeback, uint32_t settable)
{
	vqb_port_store32(&dev->live.writeback, writeback);
	vqb_port_store32(&dev->live.settable, settable);
}

int32_t vqb_blk_device_accept(struct vqb_blk_device *dev, uint64_t accepted)
{
	int32_t status = vqb_blk_features_check(dev->features, accepted);

	if (status)
		return status;
	/* A driver that can't flush would never learn that it has to: it starts safe. */
	set_cache(dev, !!(accepted & VQB_FEATURE(VQB_BLK_F_FLUSH)),
		  !!(accepted & VQB_FEATURE(VQB_BLK_F_CONFIG_WCE)));
	return VQB_OK;
}

void vqb_blk_device_reset(struct vqb_blk_device *dev)
{
	set_cache(dev, VQB_BLK_WRITEBACK, 0);
}

/* ---- the configuration space ---- */

uint64_t vqb__blk_device_capacity(const struct vqb_blk_device *dev, uint32_t *generation)
{
	const struct blk_live *live = &dev->live;
	uint32_t now = vqb_port_load32(&live->generation), low, high;

	do {
		*generation = now;
		vqb_port_fence(); /* the words are not older than the number that chose them */
		low = vqb_port_load32(&live->capacity[now & 1][0]);
		high = vqb_port_load32(&live->capacity[now & 1][1]);
		vqb_port_fence(); /* nor, if it is still the same, newer */
		now = vqb_port_load32(&live->generation);
	} while (now != *generation);
	return (uint64_t)high << 32 | low;
}

int32_t vqb_blk_device_resize(struct vqb_blk_device *dev, uint64_t capacity)
{
	struct blk_live *live = &dev->live;
	uint32_t next = vqb_port_load32(&live->generation) + 1;

	if (capacity > UINT64_MAX >> VQB_SECTOR_SHIFT)
		return VQB_E_INVALID;
	if (capacity == vqb_blk_device_capacity(dev))
		return VQB_OK;
	vqb_port_fence(); /* who still looks at these two words sees that they are the old ones */
	vqb_port_store32(&live->capacity[next & 1][0], (uint32_t)capacity);
	vqb_port_store32(&live->capacity[next & 1][1], (uint32_t)(capacity >> 32));
	vqb_port_fence(); /* who sees the new number sees the new words */
	vqb_port_store32(&live->generation, next);
	return VQB_OK;
}

uint64_t vqb_blk_device_capacity(const struct vqb_blk_device *dev)
{
	uint32_t generation;

	return vqb__blk_device_capacity(dev, &generation);
}

uint32_t vqb_blk_device_generation(const struct vqb_blk_device *dev)
{
	return vqb_port_load32(&dev->live.generation);
}

void vqb_blk_device_read_config(const struct vqb_blk_device *dev, uint32_t offset, void *out,
				size_t bytes)
{
	struct vqb_blk_config now = dev->config;
	size_t there = offset < sizeof(now) ? sizeof(now) - offset : 0;

	now.capacity = vqb_to_le64(vqb_blk_device_capacity(dev));
	if (blk_device_offers(dev, VQB_BLK_F_CONFIG_WCE))
		now.writeback = (uint8_t)vqb_port_load32(&dev->live.writeback);
	if (there > bytes)
		there = bytes;
	memset(out, 0, bytes);
	if (there)
		memcpy(out, (const uint8_t *)&now + offset, there);
}

int32_t vqb_blk_device_write_config(struct vqb_blk_device *dev, uint32_t offset, const void *data,
				    size_t bytes)
{
	const uint8_t *value = data;

	if (offset != offsetof(struct vqb_blk_config, writeback) || bytes != 1 ||
	    !vqb_port_load32(&dev->live.settable) || *value > VQB_BLK_WRITEBACK)
		return VQB_E_INVALID;
	vqb_port_store32(&dev->live.writeback, *value);
	return VQB_OK;
}
