/* SPDX-License-Identifier: BSD-3-Clause */
/* bio_feed.h: bios, limits and configurations by chance, for bio_model.h. */
#ifndef TESTS_BIO_FEED_H
#define TESTS_BIO_FEED_H

#include "bio_model.h"

/* What an episode is about: see feed_open. */
enum feed_mode {
	FEED_OVERLAPS, /* bios overlap others that are out; nothing fails */
	FEED_FAULTS,   /* sectors and flushes fail; what is out does not overlap */
	FEED_BOTH,     /* then the disk depends on the device: it isn't compared */
};

struct feed {
	struct model *m;
	uint32_t mode;
	uint32_t apart;   /* one bio in so many is elsewhere on the disk */
	uint32_t strange; /* one in so many has flush, FUA or NOMERGE */
	uint32_t spoils;  /* one in so many is wrong */
	uint32_t writes;  /* of ten reads and writes */
	uint32_t ranges;  /* of ten bios, besides */
	uint32_t prios;
	bool plain; /* reads and writes that just differ in where they are */
	struct random clock;
	uint64_t ticks;
	/* where the last bio of each queue was */
	struct {
		uint64_t first, end;
		uint8_t op;
	} last[MODEL_QUEUES];
};

/* An episode: which kind of bios there are, and what fails. The model is open. */
void feed_open(struct feed *f, struct model *m);

/*
 * The clock of a feed, which in most episodes is none: what MERGE_WHEN_FULL merges then follows
 * from what was called alone. In others it goes as it likes, but not back (struct model, ticking).
 */
uint64_t feed_clock(void *feed);

/* Limits with at most `segments`, and all that goes with them. *limits is where config has them. */
void feed_config(struct feed *f, uint32_t segments, struct vqb_limits *limits,
		 struct vqb_requests_config *config);

/* Which sectors of a queue's disk fail. */
void feed_faults(struct feed *f, uint32_t queue);

/* A bio for this queue in *b, which is idle. False: nothing fitted. */
bool feed_bio(struct feed *f, uint32_t queue, struct model_bio *b);

#endif
