/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver_check.c: does a configuration make sense, and if not, what is wrong with it? Init,
 * configure and size go by what this says.
 */
#include "blk_driver.h"

uint32_t vqb__blk_driver_limits(const struct vqb_blk_driver_config *config,
				struct vqb_limits *limits)
{
	if (!config || config->struct_size != sizeof(*config))
		return VQB_BLK_DRIVER_RULE_FORM;
	if (!config->limits)
		return VQB_BLK_DRIVER_RULE_LIMITS;
	if (config->mapping) {
		*limits = *config->mapping;
		return vqb_limits_check(limits, NULL) ? VQB_BLK_DRIVER_RULE_MAPPING
						      : VQB_BLK_DRIVER_RULE_FINE;
	}
	if (vqb_limits_of_blk(config->limits, config->features, 0, limits) ||
	    vqb_limits_check(limits, NULL))
		return VQB_BLK_DRIVER_RULE_LIMITS;
	return VQB_BLK_DRIVER_RULE_FINE;
}

uint32_t vqb__blk_driver_size_rule(const struct vqb_blk_driver_config *config,
				   struct vqb_limits *limits)
{
	uint32_t rule = vqb__blk_driver_limits(config, limits);

	if (rule)
		return rule;
	if (limits->max_segments > VQB_RING_MAX - 2)
		return VQB_BLK_DRIVER_RULE_SEGMENTS;
	if (!config->depth || config->depth > VQB_RING_MAX)
		return VQB_BLK_DRIVER_RULE_DEPTH;
	if (config->ranges > VQB_RING_MAX)
		return VQB_BLK_DRIVER_RULE_RANGES;
	/* The area has less than 2^31 bytes, which every machine can count. */
	if (config->depth * (config->ranges + 1) > 1u << 26)
		return VQB_BLK_DRIVER_RULE_DEPTH_RANGES;
	return vqb__request_room(config->window) ? VQB_BLK_DRIVER_RULE_FINE
						 : VQB_BLK_DRIVER_RULE_WINDOW;
}

struct vqb_requests_config vqb__blk_driver_requests(const struct vqb_blk_driver_config *config,
						    const struct vqb_limits *limits)
{
	struct vqb_requests_config c = {
		.struct_size = sizeof(c),
		.path = config->path,
		.flags = config->flags,
		.max_ranges = config->ranges,
		.window = config->window,
		.features = config->features,
		.capacity = config->limits->capacity,
		.limits = limits,
		.clock = config->clock,
		.context = config->context,
	};

	return c;
}

/* Of what the list of requests has to say, limits and window are fine by then. */
static uint32_t requests_rule(const struct vqb_blk_driver_config *config,
			      const struct vqb_limits *limits)
{
	struct vqb_requests_config requests = vqb__blk_driver_requests(config, limits);
	uint32_t rule;

	if (!vqb_requests_check_config(&requests, &rule))
		return VQB_BLK_DRIVER_RULE_FINE;
	return rule == VQB_REQUESTS_RULE_PATH ? VQB_BLK_DRIVER_RULE_PATH
					      : VQB_BLK_DRIVER_RULE_FLAGS;
}

static uint32_t area_rule(const struct vqb_blk_driver_config *config)
{
	const struct vqb_dma *area = &config->area;

	if (!area->host)
		return VQB_BLK_DRIVER_RULE_AREA;
	if ((uintptr_t)area->host % VQB_ALIGN || area->addr % VQB_ALIGN)
		return VQB_BLK_DRIVER_RULE_AREA_ALIGN;
	if (area->bytes < VQB_BLK_AREA_BYTES(config->depth, config->ranges))
		return VQB_BLK_DRIVER_RULE_AREA_BYTES;
	return area->addr > UINT64_MAX - (area->bytes - 1) ? VQB_BLK_DRIVER_RULE_AREA_END
							   : VQB_BLK_DRIVER_RULE_FINE;
}

uint32_t vqb__blk_driver_rule(const struct vqb_blk_driver_config *config, struct vqb_limits *limits)
{
	uint32_t rule = vqb__blk_driver_size_rule(config, limits);

	if (!rule)
		rule = requests_rule(config, limits);
	if (rule)
		return rule;
	if (!config->ring)
		return VQB_BLK_DRIVER_RULE_RING;
	if (vqb_driver_in_flight(config->ring))
		return VQB_BLK_DRIVER_RULE_RING_IN_USE;
	return area_rule(config);
}

int32_t vqb__blk_driver_status(uint32_t rule)
{
	if (!rule)
		return VQB_OK;
	return rule == VQB_BLK_DRIVER_RULE_AREA_BYTES ? VQB_E_TOOBIG : VQB_E_INVALID;
}

int32_t vqb_blk_driver_check(const struct vqb_blk_driver_config *config, uint32_t *rule)
{
	struct vqb_limits limits;
	uint32_t broken = vqb__blk_driver_rule(config, &limits);

	if (rule)
		*rule = broken;
	return vqb__blk_driver_status(broken);
}
