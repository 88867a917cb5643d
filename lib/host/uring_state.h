/* SPDX-License-Identifier: BSD-3-Clause */
/* uring_state.h: what an io_uring backend consists of: uring_setup.c makes it, uring.c runs it. */
#ifndef HOST_URING_STATE_H
#define HOST_URING_STATE_H

#include <liburing.h>

#include <vqblk/host/uring.h>

#include "image.h"

enum {
	PAGE = 4096,
	TRIES = 1000,        /* steps in a row that are interrupted or put off */
	PIECE_MAX = 1 << 30, /* bytes of one step on one piece, or of one registered buffer */
};

/* The halves of a pair; also bits of what has ended. */
enum part {
	MOVE = 1,
	SYNC = 2,
};

struct slot {
	struct vqb_io *io;
	struct slot *next; /* free ones */
	struct image_place at;
	uint8_t *bounce;   /* or NULL */
	int32_t result[2]; /* of MOVE and SYNC, once they have ended */
	int32_t mode;      /* of fallocate, if that is the move; else 0 */
	uint16_t tries;
	uint8_t out;      /* steps with the kernel */
	uint8_t ended;    /* enum part */
	uint8_t lacks;    /* enum image_lack, as far as this io has met it */
	uint8_t unlinked; /* its pair may have been torn: the flush does not count */
	uint8_t flushed;
};

/* Memory that the kernel knows: buffer number i of the ring. */
struct region {
	uintptr_t base;
	size_t len;
};

struct bounce {
	struct bounce *next;
};

struct uring {
	struct vqb_backend base;
	struct vqb_io_list done;
	struct vqb_file *file;
	struct vqb_notify notify;
	struct slot *slot, *idle;
	struct bounce *bounces; /* free ones */
	uint32_t bounce_bytes;
	uint32_t regions; /* the first one is the bounce buffers, if it isn't empty */
	struct region region[1 + VQB_URING_MAX_REGIONS];
	uint32_t entries, in_flight;
	int fd;            /* of the image, as the kernel is to be told it */
	uint8_t sqe_flags; /* that goes with it */
	uint8_t plugged;
	struct vqb_uring_counters counters;
	struct io_uring ring;
};

static inline struct uring *uring_of(struct vqb_backend *backend)
{
	return (struct uring *)backend;
}

extern const struct vqb_backend_ops vqb__uring_ops;

#endif
