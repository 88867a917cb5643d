/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bio_model.h: what has to become of bios, once more, slow and plain, to be compared with
 * request.h and blk_driver.h. Written from those headers and from lib/block/states.md.
 *
 * The model is told what was submitted, shown each request that the library sends, and told how
 * it ended. It says what each bio's state and status must be, and holds each request to the rules:
 *
 * - Whose bytes they are is read off their addresses: a unit of memory belongs to one bio.
 * - The table is what these bios' vectors come to, one behind the other, within all limits and with
 *   the fewest segments, which segment_model.h finds the slow way.
 * - Whoever has waited longest is in it, or comes right behind what is. Nothing in it passes what
 *   it overlaps, or a bio with flush, FUA or NOMERGE.
 * - Whoever is behind it on the disk, was looked at with it, and fits, is in it.
 * - It is carried out on a small disk, in the order of sending. When nothing is out, that disk has
 *   to be as if bios had been carried out one by one in the order of submission.
 *
 * Freedom that the contract leaves: which bios are looked at together (where some overlap), how
 * ranges are cut, and, among the bios of one request, which comes back first.
 */
#ifndef TESTS_BIO_MODEL_H
#define TESTS_BIO_MODEL_H

#include <vqblk/bio.h>
#include <vqblk/request.h>

#include "differential.h"

enum {
	MODEL_QUEUES = 2,
	MODEL_BIOS = 200,
	MODEL_VECTORS = 10,
	MODEL_UNIT = 128, /* bytes: all that vectors and limits are made of */
	MODEL_SECTOR_UNITS = 4,
	MODEL_BIO_UNITS = 160,
	MODEL_DISK_SECTORS = 4096,
	MODEL_DISK_UNITS = MODEL_DISK_SECTORS * MODEL_SECTOR_UNITS,
	MODEL_MEMORY_UNITS = 16384,
	MODEL_LOG = 512, /* and as many again as a reset submits once more */
	MODEL_NOBODY = -1,
};

/* Where memory begins, for the device. */
#define MODEL_MEMORY UINT64_C(0x7000000000000000)

/* What befell a bio in the last call; the names are those of states.md. */
enum model_event {
	EVENT_NONE,
	EVENT_PLUG,
	EVENT_REMOVE,
	EVENT_SUBMIT,
	EVENT_REFUSE,
	EVENT_SEND,
	EVENT_SHARE,
	EVENT_SEND_PART,
	EVENT_NO_ROOM,
	EVENT_CANCEL,
	EVENT_PART_DONE,
	EVENT_PART_FAILED,
	EVENT_PART_FAILED_LAST,
	EVENT_DONE,
	EVENT_STEP,
	EVENT_AGAIN,
	EVENT_ABANDON,
	EVENTS,
};

struct model_bio {
	struct vqb_bio bio; /* the library's, at address 0 of this one */
	struct vqb_segment vec[MODEL_VECTORS];
	/* what it is about */
	int32_t queue;
	uint32_t units; /* of data; their addresses, and the vector of each */
	uint64_t addr[MODEL_BIO_UNITS];
	uint32_t vector[MODEL_BIO_UNITS];
	uint64_t size; /* units of data, sectors of a range, 1 of anything else */
	uint8_t step_op[3];
	uint32_t steps;
	/* how it stands */
	uint8_t state, event, seen; /* seen: the library's state before the last call */
	uint32_t step;
	uint64_t at; /* of size: is sent */
	uint32_t parts;
	int32_t error, status;
	bool again, alone, touched;
	bool waited; /* it was seen waiting after an earlier call */
	uint64_t order, log;
	uint64_t window;          /* those it was looked at with for neighbours; 0: it was not */
	struct model_bio *behind; /* of those, on the disk */
	/* when: by the clock of the model */
	uint64_t submitted, data_sent, data_done;
};

/* What the reference carries out once nothing is out. */
struct model_log {
	uint8_t op, flags;
	bool over, known, nothing;
	uint64_t sector, size;
	uint32_t tag;
	uint32_t read[MODEL_BIO_UNITS];
};

struct model_request {
	bool out;
	uint32_t queue, bios;
	struct model_bio *bio[MODEL_BIOS];
	bool last[MODEL_BIOS]; /* nothing of that one is left */
	uint8_t op;
	uint64_t sent;  /* when */
	int32_t status; /* that it will have */
	struct vqb_bio *first;
};

struct model_queue {
	struct vqb_limits limits;
	uint64_t features, capacity;
	uint32_t path, flags, max_ranges;
	bool changed; /* limits did, since something is out */
	bool once_full;
	bool full; /* MERGE_WHEN_FULL: has to be shared until nothing waits */
	struct model_bio *wait[MODEL_BIOS];
	uint32_t waits, outstanding;
	/* Looking around: what it showed of late, and those that are spared because of that. */
	uint32_t room, looked, found, misses, spared;
	uint32_t passed; /* requests sent while the same bio was the oldest */
	uint32_t disk[MODEL_DISK_UNITS], reference[MODEL_DISK_UNITS];
	int8_t bad[MODEL_DISK_SECTORS]; /* what a request gets that touches it */
	uint64_t last_flush;            /* when the latest flush was sent that is done */
	struct model_log log[MODEL_LOG + 2 * MODEL_BIOS];
	uint32_t logged;
	struct vqb_requests_counters count;
};

struct model {
	struct run *run;
	struct model_queue queue[MODEL_QUEUES];
	struct model_bio bio[MODEL_BIOS];
	uint32_t memory[MODEL_MEMORY_UNITS];
	int16_t owner[MODEL_MEMORY_UNITS];
	uint32_t bios; /* of them are in use */
	uint32_t tag, cursor;
	uint64_t clock, orders;
	bool exact;    /* do members of MERGE_WHEN_FULL have to be where they are by `full`? */
	bool apart;    /* no bio overlaps another one that is out */
	bool ticking;  /* there is a clock: who may share a request when full is not known here */
	bool replayed; /* is the reference of use? */
	uint64_t windows, runs; /* of bios that were looked at together, or were spared */
	uint32_t flush_fails;   /* one in so many; 0: none */
	/* bios that are done, and the request of each */
	struct model_bio *finished[MODEL_BIOS];
	uint64_t finished_by[MODEL_BIOS];
	uint32_t finishes;
	/* told of each event of a bio, if there is somebody */
	void (*observe)(struct model *m, const struct model_bio *b, uint8_t now);
	void *observer;
	/* how much there was */
	uint64_t sent, shared, parts, errors, passed, overtaken, longest, compared, ends;
};

/* Everything idle, memory free. */
void model_open(struct model *m, struct run *run);

/* A queue as new, or with another configuration; its disk stays. */
void model_configure(struct model *m, uint32_t queue, const struct vqb_requests_config *config);

/* Submit gave that answer: is it right? If it is VQB_OK, the bio waits. */
void model_submitted(struct model *m, uint32_t queue, struct model_bio *b, int32_t status);

/* It was refused, which is as it must be. */
void model_refused(struct model *m, struct model_bio *b, int32_t status);

/*
 * The next request was made. If those that wait may share requests, and the oldest was not looked
 * at yet, it is now, and so are those behind it that may share one. (Only where nothing overlaps:
 * what overlaps may be left for later.)
 */
void model_made(struct model *m, uint32_t queue);

/* There was no room for the request that was made. */
void model_full(struct model *m, uint32_t queue);

/* A request was sent: is it right? Fills in *sent; `bios` 0: it isn't known how many share it. */
void model_sent(struct model *m, uint32_t queue, const struct vqb_request *r,
		const struct vqb_segment *table, struct model_request *sent);

/* Other limits, of the same block size, while bios are out. */
void model_change_limits(struct model *m, uint32_t queue, const struct vqb_requests_config *config);

/* Under other limits than before there is no next request: this bio was sent, and will fail. */
void model_unsendable(struct model *m, uint32_t queue, struct vqb_bio *bio, int32_t status,
		      struct model_request *sent);

/* A request is back with sent->status, or with VQB_E_AGAIN because of a reset. */
void model_done(struct model *m, struct model_request *sent, bool reset);

/* What cancel has to answer. */
int32_t model_cancel(struct model *m, uint32_t queue, struct model_bio *b);

/* All that waits is taken back. */
void model_abandon(struct model *m, uint32_t queue);

/* The library handed this one back: it is on the list, has that status, and was done right. */
void model_handed_back(struct model *m, struct vqb_bio *bio, uint64_t *last);

/* The same, but it keeps its memory: it is to be submitted again. */
void model_keep(struct model *m, struct vqb_bio *bio, uint64_t *last);

/* After a call: states are as they must be; what befell bios is forgotten. */
void model_compare(struct model *m);

/* Nothing is out: is the disk right? */
void model_compare_disk(struct model *m, uint32_t queue);

/* Memory that a bio had is free again. */
void model_free_memory(struct model *m, struct model_bio *b);

static inline struct model_bio *model_of(struct vqb_bio *bio)
{
	return (struct model_bio *)(void *)bio;
}

static inline bool model_is_range(uint8_t op)
{
	return op == VQB_BLK_DISCARD || op == VQB_BLK_WRITE_ZEROES || op == VQB_BLK_SECURE_ERASE;
}

static inline bool model_has_sectors(uint8_t op)
{
	return op == VQB_BLK_IN || op == VQB_BLK_OUT || model_is_range(op);
}

static inline const struct vqb_range_limits *model_ranges(const struct model_queue *q, uint8_t op)
{
	return op == VQB_BLK_DISCARD        ? &q->limits.discard
	       : op == VQB_BLK_WRITE_ZEROES ? &q->limits.zeroes
					    : &q->limits.erase;
}

/* Sectors on the disk, of an op that has some. */
static inline uint64_t model_sectors(const struct model_bio *b)
{
	return model_is_range(b->bio.op) ? b->size : b->size / MODEL_SECTOR_UNITS;
}

#endif
