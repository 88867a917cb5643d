/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_queue.h: one queue of a blk device, as its parts see it.
 *
 *   idle --take, check--> collected --> ready --> in the backend --poll--> put, idle
 *            |  |             ^           ^ ^          |
 *            |  |             |           | +----------+  what is left of it
 *            |  +--> waiting -+-----------+
 *            +--> put (answered at once)
 *
 * A request is in exactly one place: idle, collected by the coalescer (alone or, from then on,
 * within a joined submission), ready for the backend, in the backend, or waiting to get on the way
 * at all. Where the coalescer finds nothing to join, most reads and writes go past it, as they do
 * where there is none. Its pieces, or its ranges, are held in the arena from the moment it is not
 * idle.
 *
 * Order: what is ready was taken before what waits, and while anything is ready or waits nothing
 * new is taken. Only within one call is anything collected. So requests reach the backend in the
 * ring's order, but for reads and writes that a coalescer sorted.
 *
 * blk_queue.c takes chains, blk_admit.c looks at each, blk_range.c knows discard and its kin,
 * blk_transfer.c has the ways to and from the backend.
 */
#ifndef VQB_BLOCK_BLK_QUEUE_H
#define VQB_BLOCK_BLK_QUEUE_H

#include <vqblk/blk_parse.h>
#include <vqblk/port.h>

#include "blk_arena.h"
#include "blk_device.h"

enum { BLK_BATCH = 32 }; /* chains taken at a time, in a queue that isn't small */

/*
 * So many in a row of which none could be joined show that it isn't worth while: so many don't try.
 */
enum { BLK_DRY = 8 * BLK_BATCH, BLK_PAST = 15 * BLK_BATCH };

/* A range as it was copied out of guest memory. */
struct blk_range {
	uint64_t sector;
	uint32_t sectors, flags;
};

struct blk_request {
	struct vqb_io io; /* the first member: an io that is not a coalescer's is its request */
	struct vqb_ticket ticket;
	uint8_t *status;   /* in guest memory: to be written while the ring holds the ticket */
	uint64_t in_bytes; /* writable data of the chain */
	uint64_t done;     /* bytes that earlier ios of this request have brought */
	struct blk_range *range; /* the one being carried out, of those in the arena */
	uint32_t ranges;         /* left, this one included */
	uint8_t ranged;          /* it is a discard or of its kin */
	uint8_t sync;            /* and a flush has to follow */
	uint8_t zero[2];
};

enum blk_cache {
	BLK_CACHE_BACK,    /* writes are as durable as the next flush makes them */
	BLK_CACHE_THROUGH, /* at once */
	BLK_CACHE_ASK,     /* as the device's writeback says */
};

struct vqb_blk_queue {
	const struct vqb_blk_device *device;
	struct vqb_device *ring;
	struct vqb_backend *backend;
	struct vqb_coalescer *coalescer;
	struct blk_request *request;
	struct vqb_piece *piece;
	struct vqb_io *idle;        /* free requests, the last used first */
	struct vqb_io_list ready;   /* for the backend */
	struct vqb_io_list waiting; /* requests that are to become ready, or be collected */
	uint64_t capacity;          /* the device's, of that generation; never beyond the backend */
	uint64_t features;          /* accepted */
	uint64_t max_range;         /* bytes of one io of a range: whole blocks */
	uint32_t generation;
	uint32_t idles, in_backend;
	uint32_t collected; /* requests that the coalescer has and that are in no submission */
	uint32_t dry;       /* that came out of it since something was joined */
	uint32_t past;      /* reads and writes that are to go past it */
	uint64_t last, end; /* of the latest read or write: where a neighbour ends, or begins */
	uint32_t want;      /* pieces that the next chain is known to take, at least */
	uint32_t batch;     /* most chains taken at a time */
	uint32_t taken;     /* chains of the present batch */
	uint32_t gap_end;   /* where the room ends that their pieces begin */
	uint8_t cache;      /* enum blk_cache */
	uint8_t logs; /* the ring's memory map has a log; looked up on entry, as the map may change
		       */
	uint8_t zero[2];
	struct blk_arena arena;
	struct vqb_blk_queue_counters counters; /* submissions: those of neither IN nor OUT */
	struct vqb_chain *chain;                /* of the present batch */
};

/* ---- small things ---- */

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t blk_own_pieces(const struct vqb_chain *chain)
{
	return chain->readable + chain->writable;
}

/* Where in the arena a chain's own pieces begin. */
static inline uint32_t blk_begin(const struct vqb_blk_queue *queue, const struct vqb_chain *chain)
{
	return (uint32_t)(chain->piece - queue->piece);
}

static inline int blk_accepted(const struct vqb_blk_queue *queue, uint32_t feature)
{
	return !!(queue->features & VQB_FEATURE(feature));
}

/* Is a write to be durable before it completes? */
static inline int blk_writes_through(const struct vqb_blk_queue *queue)
{
	if (VQB_LIKELY(queue->cache == BLK_CACHE_BACK))
		return 0;
	return queue->cache == BLK_CACHE_THROUGH ||
	       !vqb_port_load32(&queue->device->live.writeback);
}

/* Looks up what the capacity is now. */
void vqb__blk_see_capacity(struct vqb_blk_queue *queue);

static inline uint64_t blk_capacity(struct vqb_blk_queue *queue)
{
	if (VQB_UNLIKELY(vqb_port_load32(&queue->device->live.generation) != queue->generation))
		vqb__blk_see_capacity(queue);
	return queue->capacity;
}

/* An idle request for this chain, which holds [begin, end) of the arena from now on. */
static inline struct blk_request *blk_begin_request(struct vqb_blk_queue *queue,
						    const struct vqb_chain *chain,
						    const struct vqb_blk_request *from,
						    uint32_t begin, uint32_t end)
{
	struct blk_request *request = (struct blk_request *)queue->idle;
	struct vqb_io *io = &request->io;

	queue->idle = io->next;
	queue->idles--;
	blk_arena_hold(&queue->arena, (uint32_t)(request - queue->request), begin, end);
	request->ticket = chain->ticket;
	request->status = from->status;
	request->in_bytes = from->in_bytes;
	request->done = 0;
	request->ranged = 0;
	io->op = (uint8_t)from->type;
	io->flags = 0;
	io->group = 0;
	io->piece = NULL;
	io->pieces = 0;
	io->offset = io->bytes = 0;
	return request;
}

/* ---- blk_admit.c ---- */

/* Serves chain number `i` of the batch, or begins to. 0: no, it was given back to the ring. */
int vqb__blk_admit(struct vqb_blk_queue *queue, uint32_t i);

VQB_COLD void vqb__blk_log_status(struct vqb_blk_queue *queue, void *status);

/* Puts a chain: status, then length. `filled` bytes of the writable data are good. */
static inline void blk_answer(struct vqb_blk_queue *queue, struct vqb_ticket ticket,
			      uint8_t *status, uint8_t code, uint64_t in_bytes, uint64_t filled)
{
	if (code != VQB_BLK_S_OK)
		queue->counters.failed++;
	*status = code;
	if (VQB_UNLIKELY(queue->logs))
		vqb__blk_log_status(queue, status);
	vqb_device_put(queue->ring, ticket, vqb_blk_written(in_bytes, filled));
}

/* ---- blk_range.c ---- */

/* As vqb__blk_admit. */
int vqb__blk_admit_ranges(struct vqb_blk_queue *queue, uint32_t i,
			  const struct vqb_blk_request *from);

/* Makes the io the next step of its request. 0: there is none. */
int vqb__blk_next_step(struct vqb_blk_queue *queue, struct blk_request *request);

/*
 * Does any range that is left overlap what the coalescer has joined and the backend has not done?
 */
int vqb__blk_ranges_blocked(const struct vqb_blk_queue *queue, const struct blk_request *request);

/* The io is done up to its end: so is that much of the present range. */
void vqb__blk_step_done(struct blk_request *request);

/* ---- blk_transfer.c ---- */

/* A new request, behind all others. */
void vqb__blk_submit(struct vqb_blk_queue *queue, struct vqb_io *io);

/* Sends on its way what is ready or waits, as far as the backend takes it. */
void vqb__blk_resubmit(struct vqb_blk_queue *queue);

/* What has been collected becomes ready, and goes as far. */
void vqb__blk_let_go(struct vqb_blk_queue *queue);

/* Deals with all that the backend has finished. Answers how many ios it gave back. */
uint32_t vqb__blk_collect(struct vqb_blk_queue *queue);

static inline int blk_waits(const struct vqb_blk_queue *queue)
{
	return queue->ready.first || queue->waiting.first;
}

#endif
