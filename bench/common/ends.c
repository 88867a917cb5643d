/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <stdlib.h>

#include "machine.h"

void check(int32_t status)
{
	if (status)
		die(vqb_status_name(status));
}

/* Lays out both regions, and the map of them. */
static void make_memory(struct ends *e, size_t low_bytes, size_t high_bytes)
{
	e->low = zeroed(low_bytes);
	e->high = zeroed(high_bytes);
	e->ram[0] = (struct vqb_extent){ ENDS_LOW, low_bytes, e->low, VQB_READ | VQB_WRITE, 0 };
	e->ram[1] = (struct vqb_extent){ ENDS_HIGH, high_bytes, e->high, VQB_READ | VQB_WRITE, 0 };
	e->map = (struct vqb_memory){
		.struct_size = sizeof(e->map), .generation = 1, .count = 2, .sorted = e->ram
	};
}

void ends_open(struct ends *e, const struct ends_plan *plan)
{
	size_t tables = VQB_TABLES_BYTES(plan->ring, plan->segments);
	struct vqb_driver_config drv = { .struct_size = sizeof(drv),
					 .max_table = plan->segments,
					 .policy = plan->policy };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &e->map };
	struct vqb_layout at;

	check(vqb_ring_layout(plan->ring, ENDS_PAGE, &at));
	e->small_at = (at.bytes + tables + 63) & ~(size_t)63;
	make_memory(e, e->small_at + plan->small, plan->data);
	drv.ring.size = dev.ring.size = plan->ring;
	drv.ring.features = dev.ring.features = VQB_FEATURE(VQB_F_VERSION_1) | plan->features;
	check(vqb_ring_place(&drv.ring, e->low, ENDS_PAGE));
	check(vqb_ring_place_at(&dev.ring, ENDS_LOW, ENDS_PAGE));
	e->ring = drv.ring;
	drv.tables = (struct vqb_dma){ e->low + at.bytes, ENDS_LOW + at.bytes, tables };
	check(vqb_driver_init(zeroed(VQB_DRIVER_BYTES(plan->ring)), VQB_DRIVER_BYTES(plan->ring),
			      &drv, &e->drv));
	check(vqb_device_init(zeroed(VQB_DEVICE_BYTES(plan->ring)), VQB_DEVICE_BYTES(plan->ring),
			      &dev, &e->dev));
}

void ends_close(struct ends *e)
{
	free(e->drv);
	free(e->dev);
	free(e->low);
	free(e->high);
}
