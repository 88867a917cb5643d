/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <stdlib.h>

#include "machine.h"

enum {
	MOST_PIECES = 1024,         /* of a joined submission: the system's limit */
	MOST_TRANSFER = 1024 * 1024 /* and its bytes */
};

static uint64_t ring_features(const struct disk_plan *plan)
{
	uint64_t features = VQB_FEATURE(VQB_F_VERSION_1);

	if (!plan->flags)
		features |= VQB_FEATURE(VQB_F_EVENT_IDX);
	if (plan->segments)
		features |= VQB_FEATURE(VQB_F_INDIRECT_DESC);
	return features;
}

/* The backend's own limits, or what is usual where it has none. */
static void open_coalescer(struct disk *d)
{
	const struct vqb_backend_caps *caps = &d->backend->caps;
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .joins = d->plan.requests,
					       .pieces = 4 * d->plan.requests,
					       .max_pieces = caps->max_pieces,
					       .max_transfer = caps->max_transfer };
	size_t bytes;

	if (config.max_pieces > MOST_PIECES)
		config.max_pieces = MOST_PIECES;
	if (config.max_transfer > MOST_TRANSFER)
		config.max_transfer = MOST_TRANSFER;
	bytes = vqb_coalescer_size(&config);
	check(vqb_coalescer_init(zeroed(bytes), bytes, &config, &d->coalescer));
}

static void open_blk(struct disk *d)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .capacity = d->plan.sectors,
					 .segments = d->plan.segments };
	struct vqb_blk_device_config config = {
		.struct_size = sizeof(config),
		.features = ring_features(&d->plan) | VQB_FEATURE(VQB_BLK_F_SEG_MAX) |
			    VQB_FEATURE(VQB_BLK_F_FLUSH) | VQB_FEATURE(VQB_BLK_F_DISCARD) |
			    VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES),
		.limits = &limits,
		.serial = "bench",
		.backend = &d->backend->caps,
	};
	size_t bytes = vqb_blk_device_size();

	check(vqb_blk_device_init(zeroed(bytes), bytes, &config, &d->blk));
	check(vqb_blk_device_accept(d->blk, vqb_blk_device_features(d->blk)));
}

static void open_queue(struct disk *d)
{
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config),
					       .requests = d->plan.ring,
					       .pieces = 4 * d->plan.ring +
							 64 * (d->plan.segments + 1),
					       .features = vqb_blk_device_features(d->blk),
					       .device = d->blk,
					       .ring = d->ends.dev,
					       .backend = d->backend,
					       .coalescer = d->coalescer };
	size_t bytes = vqb_blk_queue_size(&config);

	check(vqb_blk_queue_init(zeroed(bytes), bytes, &config, &d->queue));
}

void disk_open(struct disk *d, const struct disk_plan *plan)
{
	static const struct vqb_indirect_policy never = { .struct_size = sizeof(never),
							  .kind = VQB_INDIRECT_NEVER };
	struct ends_plan ends = {
		.ring = plan->ring,
		.segments = plan->segments ? plan->segments + 2 : 3,
		.features = ring_features(plan),
		.policy = plan->segments ? NULL : &never,
		.small = plan->requests * sizeof(struct disk_shared) + plan->small,
		.data = (size_t)plan->requests * plan->bytes + plan->data,
	};

	d->plan = *plan;
	d->backend = plan->backend;
	d->coalescer = NULL;
	ends_open(&d->ends, &ends);
	d->shared_at = ENDS_LOW + d->ends.small_at;
	d->request = plan->requests ? zeroed(plan->requests * sizeof(*d->request)) : NULL;
	d->back = zeroed(plan->ring * sizeof(*d->back));
	if (plan->joins)
		open_coalescer(d);
	open_blk(d);
	open_queue(d);
}

void disk_close(struct disk *d)
{
	while (vqb_blk_queue_quiesce(d->queue))
		vqb_backend_drain(d->backend);
	free(d->queue);
	free(d->blk);
	free(d->coalescer);
	free(d->request);
	free(d->back);
	ends_close(&d->ends);
}

/* The segment between header and status, if the type has one. */
static int data_of(const struct disk *d, uint32_t i, uint32_t type, struct vqb_segment *seg)
{
	uint64_t at = d->shared_at + i * sizeof(struct disk_shared);

	switch (type) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		seg->addr = ENDS_HIGH + (uint64_t)i * d->plan.bytes;
		seg->len = d->plan.bytes;
		return 1;
	case VQB_BLK_GET_ID:
		seg->addr = at + offsetof(struct disk_shared, id);
		seg->len = VQB_BLK_ID_BYTES;
		return 1;
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
		seg->addr = at + offsetof(struct disk_shared, range);
		seg->len = VQB_BLK_RANGE_BYTES;
		return 1;
	default:
		return 0;
	}
}

void disk_ask(struct disk *d, uint32_t i, uint32_t type, uint64_t sector)
{
	struct disk_request *r = &d->request[i];
	uint64_t at = d->shared_at + i * sizeof(struct disk_shared);
	int data, returns = type == VQB_BLK_IN || type == VQB_BLK_GET_ID;

	r->shared = (struct disk_shared *)(void *)(d->ends.low + d->ends.small_at) + i;
	r->shared->header.type = vqb_to_le32(type);
	r->shared->header.sector = vqb_to_le64(sector);
	r->shared->range.sector = vqb_to_le64(sector);
	r->shared->range.sectors = vqb_to_le32(d->plan.bytes >> VQB_SECTOR_SHIFT);
	r->shared->status = 0xff;
	r->seg[0] = (struct vqb_segment){ .addr = at, .len = VQB_BLK_HEADER_BYTES };
	data = data_of(d, i, type, &r->seg[1]);
	r->seg[1 + data] =
		(struct vqb_segment){ .addr = at + offsetof(struct disk_shared, status), .len = 1 };
	r->entry = (struct vqb_submission){ .seg = r->seg,
					    .readable = 1 + (uint32_t)(data && !returns),
					    .writable = 1 + (uint32_t)(data && returns),
					    .token = r };
	r->length = 1 + (returns ? r->seg[1].len : 0);
}

uint32_t disk_reap(struct disk *d)
{
	uint32_t n = vqb_driver_reap(d->ends.drv, d->back, d->plan.ring);

	for (uint32_t k = 0; k < n; k++) {
		struct disk_request *r = d->back[k].token;

		if (r->shared->status != VQB_BLK_S_OK || d->back[k].len != r->length)
			die("a request failed");
		r->shared->status = 0xff;
	}
	return n;
}
