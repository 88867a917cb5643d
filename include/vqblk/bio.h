/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bio.h: one block operation, as the user of a block driver states it.
 *
 * A bio is the caller's memory: set it to zero once, fill in vec, nvec, op and sector, and submit
 * it. From a submit that answered VQB_OK until reap (or abandon) hands it back it is the
 * library's, with the segment array and the buffers; then `status` says how it went and the bio
 * may be used again. Embed it in whatever object of yours waits for it.
 *
 *   state   whose            next state
 *   IDLE    the caller's     SENT by a submit that answers VQB_OK
 *   SENT    the library's    IDLE by reap or abandon, which set `status` and `next`
 */
#ifndef VQBLK_BIO_H
#define VQBLK_BIO_H

#include <vqblk/api.h>
#include <vqblk/blk.h>
#include <vqblk/ring.h>

VQB_C_BEGIN

enum vqb_bio_state {
	VQB_BIO_IDLE = 0,
	VQB_BIO_SENT = 1,
};

struct vqb_bio {
	struct vqb_bio *next;          /* of a list that is handed over, either way */
	const struct vqb_segment *vec; /* data, in device address space; no segment is empty */
	uint32_t nvec;
	uint8_t op;       /* enum vqb_blk_type: IN, OUT, FLUSH, GET_ID */
	uint8_t flags;    /* 0 */
	uint8_t state;    /* enum vqb_bio_state; the library's */
	int8_t status;    /* enum vqb_status, once handed back */
	uint64_t sector;  /* of 512 bytes; unused by FLUSH and GET_ID */
	uint64_t priv[6]; /* the library's */
};

VQB_C_END

#endif
