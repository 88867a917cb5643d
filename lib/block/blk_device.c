/* SPDX-License-Identifier: BSD-3-Clause */
/* blk_device.c: the disk as drivers see it: what is offered, and the configuration space. */
#include "blk_device.h"

_Static_assert(sizeof(struct vqb_blk_device) <= VQB_BLK_DEVICE_BYTES, "bound");

size_t vqb_blk_device_size(void)
{
	return VQB_ROUND_UP(sizeof(struct vqb_blk_device));
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
	if (limits->block_size != VQB_SECTOR_BYTES)
		wanted |= VQB_FEATURE(VQB_BLK_F_BLK_SIZE);
	return vqb_blk_features_offer(wanted);
}

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

	memset(dev, 0, sizeof(*dev));
	dev->capacity = limits.capacity;
	dev->block_size = limits.block_size;
	dev->features = offer(config->features, &limits);
	set_id(dev, config->serial);
	status = vqb_blk_limits_write(&limits, dev->features, &dev->config);
	if (status)
		return status;
	*out = dev;
	return VQB_OK;
}

uint64_t vqb_blk_device_features(const struct vqb_blk_device *dev)
{
	return dev->features;
}

int32_t vqb_blk_device_accept(const struct vqb_blk_device *dev, uint64_t accepted)
{
	return vqb_blk_features_check(dev->features, accepted);
}

void vqb_blk_device_read_config(const struct vqb_blk_device *dev, uint32_t offset, void *out,
				size_t bytes)
{
	size_t there = offset < sizeof(dev->config) ? sizeof(dev->config) - offset : 0;

	if (there > bytes)
		there = bytes;
	memset(out, 0, bytes);
	if (there)
		memcpy(out, (const uint8_t *)&dev->config + offset, there);
}

uint64_t vqb_blk_device_capacity(const struct vqb_blk_device *dev)
{
	return dev->capacity;
}
