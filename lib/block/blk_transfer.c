/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_transfer.c: the ways to the backend and back.
 *
 * All that was let in comes to its end here, once: whatever the backend, the coalescer or a reset
 * makes of it. A request that a reset has ended is recognised by its ticket, which the ring no
 * longer holds: it is dropped where it is found, and touches neither ring nor status byte.
 */
#include "blk_queue.h"

/* ---- lists ---- */

static struct vqb_io *pop(struct vqb_io_list *list)
{
	struct vqb_io *io = list->first;

	list->first = io->next;
	return io;
}

static void push(struct vqb_io_list *list, struct vqb_io *io)
{
	io->next = list->first;
	if (!list->first)
		list->last = io;
	list->first = io;
}

/* `front`, which is left as it is, goes in front of all. */
static void put_in_front(struct vqb_io_list *list, const struct vqb_io_list *front)
{
	if (!front->first)
		return;
	front->last->next = list->first;
	if (!list->first)
		list->last = front->last;
	list->first = front->first;
}

/* ---- the end of a request ---- */

VQB_INLINE void free_request(struct vqb_blk_queue *queue, struct blk_request *request)
{
	blk_arena_release(&queue->arena, (uint32_t)(request - queue->request));
	request->io.next = queue->idle;
	queue->idle = &request->io;
	queue->idles++;
}

/*
 * The backend is done with an io: whatever its result, it may have written to every byte. That
 * holds for one that comes too late as well.
 */
static VQB_COLD void log_read(struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	if (io->op == VQB_BLK_IN)
		vqb_device_log(queue->ring, io->piece, io->pieces, io->bytes);
}

/* What an io brought before it was cut short, in units that can be gone on from; else 0. */
static uint64_t part_done(const struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	if (io->result <= 0 || (uint64_t)io->result >= io->bytes)
		return 0;
	return (uint64_t)io->result & ~(uint64_t)(queue->backend->caps.alignment - 1);
}

/*
 * Leaves the rest of an io in it. Its pieces, if it has some, are of our arena, so they may be cut:
 * a joined submission has a copy of them.
 */
static void cut_front(struct vqb_blk_queue *queue, struct blk_request *request, uint64_t bytes)
{
	struct vqb_io *io = &request->io;
	struct vqb_piece *piece;

	request->done += bytes;
	io->offset += bytes;
	io->bytes -= bytes;
	if (!io->pieces)
		return;
	piece = queue->piece + (io->piece - queue->piece);
	while (bytes >= piece->len) {
		bytes -= piece->len;
		piece++;
		io->pieces--;
	}
	piece->base = (uint8_t *)piece->base + bytes;
	piece->len -= (size_t)bytes;
	io->piece = piece;
}

static void count_bytes(struct vqb_blk_queue *queue, const struct blk_request *request)
{
	if (request->io.op == VQB_BLK_IN)
		queue->counters.read_bytes += request->done;
	else if (request->io.op == VQB_BLK_OUT)
		queue->counters.write_bytes += request->done;
}

/*
 * It failed for good. A request of several steps of which some were done is no longer unsupported.
 */
static uint8_t failure(const struct blk_request *request)
{
	if (request->io.result != VQB_E_UNSUPP || (request->ranged && request->done))
		return VQB_BLK_S_IOERR;
	return VQB_BLK_S_UNSUPP;
}

/* An io whose result is known and which nobody holds: put, or on the way again for its rest. */
static void finish(struct vqb_blk_queue *queue, struct blk_request *request)
{
	struct vqb_io *io = &request->io;
	uint8_t code = VQB_BLK_S_OK;
	uint64_t part;

	if (VQB_UNLIKELY(queue->logs))
		log_read(queue, io);
	if (VQB_UNLIKELY(vqb_device_holds(queue->ring, request->ticket))) {
		queue->counters.late++;
		queue->counters.partial += io->result > 0 && (uint64_t)io->result < io->bytes;
		free_request(queue, request);
		return;
	}
	if (VQB_UNLIKELY(io->result < 0 || (uint64_t)io->result < io->bytes)) {
		queue->counters.partial += io->result > 0;
		part = part_done(queue, io);
		if (part) {
			cut_front(queue, request, part);
			push(&queue->ready, io);
			return;
		}
		request->done += io->result > 0 ? (uint64_t)io->result : 0;
		code = failure(request);
	} else {
		request->done += io->bytes;
		if (VQB_UNLIKELY(request->ranged)) {
			vqb__blk_step_done(request);
			if (vqb__blk_next_step(queue, request)) {
				push(&queue->ready, io);
				return;
			}
		}
		count_bytes(queue, request);
	}
	blk_answer(queue, request->ticket, request->status, code, request->in_bytes, request->done);
	free_request(queue, request);
}

/* ---- back from the backend ---- */

/* What a coalescer makes of an io that has ended: requests that have, and some that try again. */
static void finish_joined(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	struct vqb_io_list done = { NULL, NULL }, retry = { NULL, NULL };
	struct vqb_io *next;

	if (vqb_coalescer_member(io) != io)
		queue->counters.partial += io->result > 0 && (uint64_t)io->result < io->bytes;
	vqb_coalescer_done(queue->coalescer, io, &done, &retry);
	put_in_front(&queue->ready, &retry);
	for (io = vqb_io_list_take(&done); io; io = next) {
		next = io->next;
		finish(queue, (struct blk_request *)io);
	}
}

/* An io has ended, here or at the backend, with its result. */
VQB_INLINE void settle(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	if (io->group)
		finish_joined(queue, io);
	else
		finish(queue, (struct blk_request *)io);
}

uint32_t vqb__blk_collect(struct vqb_blk_queue *queue)
{
	struct vqb_io *io, *next;
	uint32_t n = 0;

	for (io = vqb_backend_poll(queue->backend); io; io = next) {
		next = io->next;
		queue->in_backend--;
		settle(queue, io);
		n++;
	}
	return n;
}

/* ---- to the backend ---- */

static void count_submission(struct vqb_blk_queue *queue, uint8_t op)
{
	if (op == VQB_BLK_IN)
		queue->counters.read_submissions++;
	else if (op == VQB_BLK_OUT)
		queue->counters.write_submissions++;
	else
		queue->counters.submissions++;
}

/* Answers 0 where the backend is full; the io is then still the caller's. */
VQB_INLINE int try_submit(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	uint8_t op = io->op;
	int32_t status = vqb_backend_submit(queue->backend, io);

	if (VQB_LIKELY(!status)) {
		queue->in_backend++;
		count_submission(queue, op);
		return 1;
	}
	if (status == VQB_E_NOSPC) {
		queue->counters.full++;
		return 0;
	}
	io->result = status;
	settle(queue, io);
	return 1;
}

/* A reset has ended what this io is for. (What is joined is of one life.) */
static int is_stale(const struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	if (queue->coalescer)
		io = vqb_coalescer_member(io);
	return vqb_device_holds(queue->ring, ((const struct blk_request *)io)->ticket) != VQB_OK;
}

/* It is never submitted, and nobody will see the result. */
static void drop(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	io->result = VQB_E_STALE;
	settle(queue, io);
}

static void submit_ready(struct vqb_blk_queue *queue)
{
	while (queue->ready.first) {
		struct vqb_io *io = pop(&queue->ready);

		if (is_stale(queue, io)) {
			drop(queue, io);
		} else if (!try_submit(queue, io)) {
			push(&queue->ready, io);
			return;
		}
	}
}

/* Is it worth while to collect? */
static void count_dry(struct vqb_blk_queue *queue, uint32_t requests, uint32_t joined)
{
	queue->dry = joined ? 0 : queue->dry + requests;
	if (queue->dry < BLK_DRY)
		return;
	queue->past = BLK_PAST;
	queue->dry = BLK_DRY - BLK_BATCH;
}

void vqb__blk_let_go(struct vqb_blk_queue *queue)
{
	struct vqb_io *io, *next;
	uint32_t all = queue->collected, joined = all;

	if (!joined)
		return;
	queue->collected = 0;
	for (io = vqb_coalescer_flush(queue->coalescer); io; io = next) {
		next = io->next;
		vqb_io_list_add(&queue->ready, io);
		joined--;
	}
	count_dry(queue, all, joined);
	if (queue->ready.last->op == VQB_BLK_IN)
		queue->counters.read_merges += joined;
	else
		queue->counters.write_merges += joined;
	submit_ready(queue);
}

/* Gives a read or write to the coalescer. VQB_E_BUSY: it has to wait. */
static int32_t collect(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	int32_t status = vqb_coalescer_add(queue->coalescer, io);

	if (status == VQB_E_NOSPC) {
		vqb__blk_let_go(queue);
		status = vqb_coalescer_add(queue->coalescer, io);
	}
	if (!status)
		queue->collected++;
	return status;
}

/*
 * Does this read or write go past the coalescer? A neighbour of the one before ends that, so that a
 * run is joined from its second request on; others are found when it is next tried.
 */
static int goes_past(struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	uint64_t end = io->offset + io->bytes;
	int near = io->offset == queue->end || end == queue->last;

	queue->last = io->offset;
	queue->end = end;
	if (VQB_LIKELY(!queue->past))
		return 0;
	if (near)
		queue->past = queue->dry = 0;
	else
		queue->past--;
	return !near;
}

/* What is not collected must not overtake a joined submission, whose parts may be tried again. */
static int is_blocked(const struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	const struct blk_request *request = (const struct blk_request *)io;

	if (!queue->coalescer)
		return 0;
	if (io->op <= VQB_BLK_OUT)
		return !!vqb_coalescer_overlaps(queue->coalescer, io->offset, io->bytes);
	return request->ranged && vqb__blk_ranges_blocked(queue, request);
}

/*
 * Sends a request on its way, with nothing ahead of it that isn't. 0: it has to wait. What was
 * collected before it goes out ahead of it all the same, at the end of the drain at the latest.
 */
static int place(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	if (queue->coalescer && io->op <= VQB_BLK_OUT && !goes_past(queue, io))
		return !collect(queue, io);
	if (queue->collected)
		vqb__blk_let_go(queue);
	return !queue->ready.first && !is_blocked(queue, io) && try_submit(queue, io);
}

void vqb__blk_submit(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	int gone = !VQB_UNLIKELY(blk_waits(queue)) &&
		   (queue->coalescer ? place(queue, io) : try_submit(queue, io));

	if (!gone)
		vqb_io_list_add(&queue->waiting, io);
}

void vqb__blk_resubmit(struct vqb_blk_queue *queue)
{
	submit_ready(queue);
	while (queue->waiting.first && !queue->ready.first) {
		struct vqb_io *io = pop(&queue->waiting);

		if (is_stale(queue, io)) {
			drop(queue, io);
		} else if (!place(queue, io)) {
			push(&queue->waiting, io);
			return;
		}
	}
}
