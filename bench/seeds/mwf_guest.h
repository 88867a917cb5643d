/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mwf_guest.h: a guest with one queue of a block device: bios of one size, and a driver on one of
 * its paths. The other end of the ring is the caller's to serve.
 */
#ifndef BENCH_SEEDS_MWF_GUEST_H
#define BENCH_SEEDS_MWF_GUEST_H

#include <vqblk/blk_driver.h>

#include "ends.h"
#include "mwf.h"

enum { MWF_PAGES = 128, MWF_RING = 128 };

/* By enum vqb_path. */
extern const char *const mwf_path_names[MWF_PATHS];

struct mwf_guest_plan {
	uint32_t path;  /* enum vqb_path */
	uint32_t depth; /* most requests in flight; each takes one descriptor of the ring */
	uint32_t bytes; /* of data, of a bio: up to a page */
	uint64_t sectors;
	uint64_t (*clock)(void *context); /* NULL: the machine's */
	void *context;
};

/* One that is out, or lies on the list of those that are free. */
struct mwf_guest_bio {
	struct vqb_bio bio;
	uint64_t born, number; /* the caller's */
	struct mwf_guest_bio *next;
};

struct mwf_guest {
	struct ends ends;
	struct vqb_blk_driver *blk;
	struct mwf_guest_plan plan;
	struct vqb_segment page[MWF_PAGES];
	uint32_t next_page;
	struct mwf_guest_bio *free;
	struct mwf_guest_block *blocks; /* memory of bios */
};

/* Ends the program if something is wrong. The guest must not move. */
void mwf_guest_open(struct mwf_guest *guest, const struct mwf_guest_plan *plan);
void mwf_guest_close(struct mwf_guest *guest);

/* A read of one bio at `sector`, not submitted. Where none is free there will be more. */
struct mwf_guest_bio *mwf_guest_read(struct mwf_guest *guest, uint64_t sector);

static inline void mwf_guest_free(struct mwf_guest *guest, struct mwf_guest_bio *bio)
{
	bio->next = guest->free;
	guest->free = bio;
}

static inline struct mwf_guest_bio *mwf_guest_bio_of(struct vqb_bio *bio)
{
	return (struct mwf_guest_bio *)(void *)bio;
}

#endif
