/* SPDX-License-Identifier: BSD-3-Clause */
#include "mwf_guest.h"

#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { BLOCK = 256, SEGMENTS = MWF_RING - 2 };

struct mwf_guest_block {
	struct mwf_guest_block *next;
	struct mwf_guest_bio bio[BLOCK];
};

const char *const mwf_path_names[MWF_PATHS] = { "merge when full", "bio", "request" };

static void open_driver(struct mwf_guest *g)
{
	uint64_t features = VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_SEG_MAX);
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .block_size = VQB_SECTOR_BYTES,
					 .capacity = g->plan.sectors,
					 .segment_bytes = UINT32_MAX,
					 .segments = SEGMENTS,
					 .queues = 1 };
	struct vqb_limits mapping;
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config),
						.depth = g->plan.depth,
						.ring = g->ends.drv,
						.features = features,
						.limits = &limits,
						.mapping = &mapping,
						.path = g->plan.path,
						.clock = g->plan.clock,
						.context = g->plan.context };
	size_t at = g->ends.small_at, bytes;

	check(vqb_limits_of_blk(&limits, features, MWF_RING, &mapping));
	config.area = (struct vqb_dma){ g->ends.low + at, ENDS_LOW + at,
					VQB_BLK_AREA_BYTES(g->plan.depth, 0) };
	bytes = vqb_blk_driver_size(&config);
	if (!bytes)
		die("no such driver");
	check(vqb_blk_driver_init(zeroed(bytes), bytes, &config, &g->blk));
}

void mwf_guest_open(struct mwf_guest *g, const struct mwf_guest_plan *plan)
{
	static const struct vqb_indirect_policy always = { .struct_size = sizeof(always),
							   .kind = VQB_INDIRECT_ALWAYS };
	struct ends_plan ends = { .ring = MWF_RING,
				  .segments = MWF_RING,
				  .features = VQB_FEATURE(VQB_F_INDIRECT_DESC) |
					      VQB_FEATURE(VQB_F_EVENT_IDX),
				  .policy = &always,
				  .small = VQB_BLK_AREA_BYTES(plan->depth, 0),
				  .data = (size_t)MWF_PAGES * ENDS_PAGE };

	memset(g, 0, sizeof(*g));
	g->plan = *plan;
	ends_open(&g->ends, &ends);
	for (uint32_t i = 0; i < MWF_PAGES; i++)
		g->page[i] = (struct vqb_segment){ .addr = ENDS_HIGH + (uint64_t)ENDS_PAGE *
									       (i * 7 % MWF_PAGES),
						   .len = plan->bytes };
	open_driver(g);
}

void mwf_guest_close(struct mwf_guest *g)
{
	struct mwf_guest_block *block, *next;

	if (vqb_blk_outstanding(g->blk))
		die("bios were lost");
	for (block = g->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(g->blk);
	ends_close(&g->ends);
}

static void more_bios(struct mwf_guest *g)
{
	struct mwf_guest_block *block = zeroed(sizeof(*block));

	block->next = g->blocks;
	g->blocks = block;
	for (uint32_t i = BLOCK; i-- > 0;)
		mwf_guest_free(g, &block->bio[i]);
}

struct mwf_guest_bio *mwf_guest_read(struct mwf_guest *g, uint64_t sector)
{
	struct mwf_guest_bio *b;

	if (!g->free)
		more_bios(g);
	b = g->free;
	g->free = b->next;
	b->bio.vec = &g->page[g->next_page++ % MWF_PAGES];
	b->bio.nvec = 1;
	b->bio.op = VQB_BLK_IN;
	b->bio.sector = sector;
	b->bio.next = NULL;
	return b;
}
