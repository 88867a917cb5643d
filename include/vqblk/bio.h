/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bio.h: one block operation, as the user of a block driver states it.
 *
 * A bio is the caller's memory: set it to zero once, fill in what the operation needs, and submit
 * it. From a submit that accepted it until it is handed back, or cancelled, it is the library's,
 * with the segment array and the buffers; then `status` says how it went, and the bio may be used
 * again. Embed it in whatever object of yours waits for it.
 *
 * A bio may be as long as you like: it is cut into as many requests as limits ask for, and is done
 * when all of them are, with the first error that there was.
 *
 *   state    where it is                                        whose
 *   IDLE     nowhere                                            the caller's
 *   PLUGGED  in a plug (request.h)                              the plug's
 *   WAITING  on the list of those that wait; nothing is sent    the library's
 *   PARTLY   on that list; something of it was sent before      the library's
 *   SENT     in requests, and on no list                        the library's
 *
 * lib/block/states.md has every way from one to another.
 *
 * Bios that overlap on the disk and are out at the same time have no order, as on any disk: wait
 * for the first one before you submit the second. (They are sent in the order in which they were
 * submitted, but a device may take its time, and what has a flush to wait for, or is sent once
 * more, goes later.)
 */
#ifndef VQBLK_BIO_H
#define VQBLK_BIO_H

#include <vqblk/api.h>
#include <vqblk/blk.h>
#include <vqblk/ring.h>

VQB_C_BEGIN

enum vqb_bio_state {
	VQB_BIO_IDLE = 0,
	VQB_BIO_PLUGGED = 1,
	VQB_BIO_WAITING = 2,
	VQB_BIO_PARTLY = 3,
	VQB_BIO_SENT = 4,
};

/* Bits. */
enum vqb_bio_flag {
	VQB_BIO_FUA = 1,      /* OUT, WRITE_ZEROES: it is durable before it is done */
	VQB_BIO_PREFLUSH = 2, /* of the same: what was done before is durable before it begins */
	VQB_BIO_NOMERGE = 4,  /* shares no request with others, nor are others joined across it */
	VQB_BIO_UNMAP = 8,    /* WRITE_ZEROES: the device may let go of the storage */
};

/* The library's part of a bio. 0 at first; leave it alone. */
struct vqb_bio_own {
	void *queue;                    /* in whose plug it is, or that it belongs to */
	struct vqb_bio *prev;           /* on the list of those that wait */
	struct vqb_bio *before, *after; /* others that wait, and can share a request with it */
	uint64_t sector, end;           /* of what is still to be sent: from here to there */
	uint32_t at, offset;            /* the same in vec */
	uint32_t parts;                 /* requests that are out */
	uint32_t order;                 /* by submission */
	int32_t error;                  /* the first, of those parts that are back */
	uint8_t step;                   /* of a write with flushes */
	uint8_t alone;                  /* shares no request any more */
	uint8_t again; /* is to be sent again, alone, since a shared request failed */
	uint8_t plain; /* one vector that is one segment and one request as it is */
};

struct vqb_bio {
	struct vqb_bio *next;          /* of a list that is handed over, either way */
	const struct vqb_segment *vec; /* data, in device address space; no segment is empty */
	uint32_t nvec;
	uint8_t op;       /* enum vqb_blk_type: IN to SECURE_ERASE */
	uint8_t flags;    /* enum vqb_bio_flag */
	uint8_t state;    /* enum vqb_bio_state; the library's */
	uint8_t zero;     /* 0 */
	uint64_t sector;  /* of 512 bytes, as all sectors; unused by FLUSH, GET_ID, GET_LIFETIME */
	uint64_t sectors; /* DISCARD, WRITE_ZEROES, SECURE_ERASE, which have no data: how many */
	uint32_t ioprio;  /* goes into the header, a hint to devices that know it; 0: none */
	int32_t status;   /* enum vqb_status, once handed back */
	struct vqb_bio_own own;
};

VQB_C_END

#endif
