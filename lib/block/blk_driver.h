/* SPDX-License-Identifier: BSD-3-Clause */
/* blk_driver.h: what blk_driver_check.c makes of a configuration. */
#ifndef VQB_BLOCK_BLK_DRIVER_H
#define VQB_BLOCK_BLK_DRIVER_H

#include <vqblk/blk_driver.h>

#include "request.h"

/*
 * What is wrong with a configuration, as enum vqb_blk_driver_rule: with its limits, which are made
 * in *limits on the way; with all that its size comes from, too; with anything.
 */
uint32_t vqb__blk_driver_limits(const struct vqb_blk_driver_config *config,
				struct vqb_limits *limits);
uint32_t vqb__blk_driver_size_rule(const struct vqb_blk_driver_config *config,
				   struct vqb_limits *limits);
uint32_t vqb__blk_driver_rule(const struct vqb_blk_driver_config *config,
			      struct vqb_limits *limits);

/* The answer to a rule. */
int32_t vqb__blk_driver_status(uint32_t rule);

/* The same for its list of requests; the limits stay the caller's. */
struct vqb_requests_config vqb__blk_driver_requests(const struct vqb_blk_driver_config *config,
						    const struct vqb_limits *limits);

#endif
