/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_queue.c: one queue of a blk device.
 *
 *   idle --take, check--> in the backend --poll--> put, idle
 *            |                ^     |
 *            |              room    | cut short
 *            v                |     v
 *            +---- full ----> waiting
 *
 * A request is in exactly one of three places: on the idle list, in the backend, or on the list
 * of those that wait for it. Its pieces are held in the arena from the moment it is not idle. While
 * anything waits, nothing new is taken, so requests reach the backend in the ring's order.
 */
#include <vqblk/blk_parse.h>

#include "blk_arena.h"
#include "blk_device.h"

enum { BATCH = 32 }; /* chains taken at a time */

struct request {
	struct vqb_io io; /* the first member: an io is its request */
	struct vqb_ticket ticket;
	uint8_t *status;   /* in guest memory: to be written while the ring holds the ticket */
	uint64_t in_bytes; /* writable data of the chain */
	uint64_t done;     /* bytes that earlier parts of a transfer have brought */
};

struct vqb_blk_queue {
	const struct vqb_blk_device *device;
	struct vqb_device *ring;
	struct vqb_backend *backend;
	struct request *request;
	struct vqb_piece *piece;
	struct vqb_io *idle;    /* free requests, the last used first */
	struct vqb_io *waiting; /* for the backend, in order */
	struct vqb_io **waiting_end;
	uint32_t idles, in_backend;
	uint32_t want; /* pieces that the next chain is known to take, at least */
	uint8_t write_flags;
	uint8_t logs; /* the ring's memory map has a log; looked up on entry, as the map may change */
	uint8_t zero[2];
	struct blk_arena arena;
	struct vqb_blk_queue_counters counters;
	struct vqb_chain chain[BATCH];
};

_Static_assert(sizeof(struct vqb_blk_queue) + sizeof(struct blk_span) <= 3072, "bound");
_Static_assert(sizeof(struct request) + sizeof(struct blk_span) <= 128, "bound");

/* ---- setting up ---- */

size_t vqb_blk_queue_size(const struct vqb_blk_queue_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || config->zero ||
	    !config->requests || config->requests > VQB_RING_MAX || config->pieces < 3 ||
	    config->pieces > UINT32_MAX / 32)
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_blk_queue) +
			    config->requests * sizeof(struct request) +
			    (config->requests + 1) * sizeof(struct blk_span) +
			    config->pieces * sizeof(struct vqb_piece));
}

/* Can the backend do what the device offers? */
static int32_t check_backend(const struct vqb_blk_device *device, const struct vqb_backend *backend)
{
	const struct vqb_backend_caps *caps = &backend->caps;
	uint32_t needs = VQB_CAN_READ;
	int32_t status = vqb_backend_check(backend);

	if (status)
		return status;
	if (!(device->features & VQB_FEATURE(VQB_BLK_F_RO)))
		needs |= VQB_CAN_WRITE;
	if (device->features & VQB_FEATURE(VQB_BLK_F_FLUSH))
		needs |= VQB_CAN_FLUSH;
	if ((caps->can & needs) != needs || caps->alignment > device->block_size)
		return VQB_E_INVALID;
	return device->capacity > caps->bytes >> VQB_SECTOR_SHIFT ? VQB_E_INVALID : VQB_OK;
}

/* Pieces of the longest request that is offered, where no buffer crosses extents. */
static uint64_t longest_request(const struct vqb_blk_device *device)
{
	if (!(device->features & VQB_FEATURE(VQB_BLK_F_SEG_MAX)))
		return 3;
	return (uint64_t)vqb_from_le32(device->config.seg_max) + 2;
}

/* Lays out what follows the object: requests, spans, pieces, in falling order of alignment. */
static void lay_out(struct vqb_blk_queue *queue, const struct vqb_blk_queue_config *config)
{
	struct blk_span *span;
	uint32_t i;

	queue->request = (struct request *)(queue + 1);
	queue->piece = (struct vqb_piece *)(queue->request + config->requests);
	span = (struct blk_span *)(queue->piece + config->pieces);
	blk_arena_init(&queue->arena, span, config->requests, config->pieces);
	for (i = config->requests; i-- > 0;) {
		queue->request[i].io.next = queue->idle;
		queue->idle = &queue->request[i].io;
	}
	queue->idles = config->requests;
}

/* Was FLUSH on offer, and nothing accepted that tells the driver when to flush? */
static uint8_t write_flags(const struct vqb_blk_device *device, uint64_t accepted)
{
	uint64_t flush = VQB_FEATURE(VQB_BLK_F_FLUSH), wce = VQB_FEATURE(VQB_BLK_F_CONFIG_WCE);

	return device->features & flush && !(accepted & (flush | wce)) ? VQB_IO_FUA : 0;
}

int32_t vqb_blk_queue_init(void *mem, size_t bytes, const struct vqb_blk_queue_config *config,
			   struct vqb_blk_queue **out)
{
	size_t need = vqb_blk_queue_size(config);
	struct vqb_blk_queue *queue = mem;
	int32_t status;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (!config->device || !config->ring || !config->backend)
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	if (config->pieces < longest_request(config->device))
		return VQB_E_INVALID;
	status = check_backend(config->device, config->backend);
	if (!status && config->features)
		status = vqb_blk_device_accept(config->device, config->features);
	if (status)
		return status;

	memset(queue, 0, need);
	queue->device = config->device;
	queue->ring = config->ring;
	queue->backend = config->backend;
	queue->want = 1;
	queue->waiting_end = &queue->waiting;
	queue->write_flags = write_flags(config->device, config->features);
	lay_out(queue, config);
	*out = queue;
	return VQB_OK;
}

int32_t vqb_blk_queue_accept(struct vqb_blk_queue *queue, uint64_t features)
{
	int32_t status = vqb_blk_device_accept(queue->device, features);

	if (status)
		return status;
	queue->write_flags = write_flags(queue->device, features);
	return VQB_OK;
}

/* ---- the log of dirty pages ---- */

static void log_bytes(struct vqb_blk_queue *queue, void *base, size_t bytes)
{
	const struct vqb_piece piece = { .base = base, .len = bytes };

	vqb_device_log(queue->ring, &piece, 1, bytes);
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

/* ---- the end of a request ---- */

/* Status, then length: `filled` bytes of the writable data are good. */
static void answer(struct vqb_blk_queue *queue, struct vqb_ticket ticket, uint8_t *status,
		   uint8_t code, uint64_t in_bytes, uint64_t filled)
{
	if (code != VQB_BLK_S_OK)
		queue->counters.failed++;
	*status = code;
	if (VQB_UNLIKELY(queue->logs))
		log_bytes(queue, status, 1);
	vqb_device_put(queue->ring, ticket, vqb_blk_written(in_bytes, filled));
}

static void free_request(struct vqb_blk_queue *queue, struct request *request)
{
	blk_arena_release(&queue->arena, (uint32_t)(request - queue->request));
	request->io.next = queue->idle;
	queue->idle = &request->io;
	queue->idles++;
}

/* The ring knows nothing of it any more: guest memory isn't ours. */
static int is_late(struct vqb_blk_queue *queue, const struct request *request)
{
	if (VQB_LIKELY(!vqb_device_holds(queue->ring, request->ticket)))
		return 0;
	queue->counters.late++;
	return 1;
}

/* What a transfer brought before it was cut short, in units that can be gone on from; else 0. */
static uint64_t part_done(const struct vqb_blk_queue *queue, const struct vqb_io *io)
{
	if (io->result <= 0 || (uint64_t)io->result >= io->bytes)
		return 0;
	return (uint64_t)io->result & ~(uint64_t)(queue->backend->caps.alignment - 1);
}

/* Leaves the rest of a transfer in the io. The pieces are of our arena, so they may be cut. */
static void cut_front(struct vqb_blk_queue *queue, struct request *request, uint64_t bytes)
{
	struct vqb_io *io = &request->io;
	struct vqb_piece *piece = queue->piece + (io->piece - queue->piece);

	request->done += bytes;
	io->offset += bytes;
	io->bytes -= bytes;
	while (bytes >= piece->len) {
		bytes -= piece->len;
		piece++;
		io->pieces--;
	}
	piece->base = (uint8_t *)piece->base + bytes;
	piece->len -= (size_t)bytes;
	io->piece = piece;
}

static void wait_first(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	io->next = queue->waiting;
	queue->waiting = io;
	if (!io->next)
		queue->waiting_end = &io->next;
}

static void wait_last(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	io->next = NULL;
	*queue->waiting_end = io;
	queue->waiting_end = &io->next;
}

static void count_bytes(struct vqb_blk_queue *queue, const struct request *request)
{
	uint64_t bytes = request->done + request->io.bytes;

	if (request->io.op == VQB_BLK_IN)
		queue->counters.read_bytes += bytes;
	else
		queue->counters.write_bytes += bytes;
}

/* An io whose result is known and which nobody holds: put, or on the way again for its rest. */
static void finish(struct vqb_blk_queue *queue, struct request *request)
{
	struct vqb_io *io = &request->io;
	uint64_t filled = request->done;
	uint8_t code = VQB_BLK_S_OK;

	if (VQB_UNLIKELY(queue->logs))
		log_read(queue, io);
	if (is_late(queue, request)) {
		free_request(queue, request);
		return;
	}
	if (VQB_UNLIKELY(io->result < 0 || (uint64_t)io->result < io->bytes)) {
		uint64_t part = part_done(queue, io);

		queue->counters.partial += io->result > 0;
		if (part) {
			cut_front(queue, request, part);
			wait_first(queue, io);
			return;
		}
		filled += io->result > 0 ? (uint64_t)io->result : 0;
		code = io->result == VQB_E_UNSUPP ? VQB_BLK_S_UNSUPP : VQB_BLK_S_IOERR;
	} else {
		filled += io->bytes;
		count_bytes(queue, request);
	}
	answer(queue, request->ticket, request->status, code, request->in_bytes, filled);
	free_request(queue, request);
}

/* ---- to and from the backend ---- */

/* Puts all that the backend has finished. Answers how many ios it gave back. */
static uint32_t collect(struct vqb_blk_queue *queue)
{
	struct vqb_io *io, *next;
	uint32_t n = 0;

	for (io = vqb_backend_poll(queue->backend); io; io = next) {
		next = io->next;
		queue->in_backend--;
		finish(queue, (struct request *)io);
		n++;
	}
	return n;
}

/* Answers 0 where the backend is full; the io is then still the caller's. */
static int try_submit(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	int32_t status = vqb_backend_submit(queue->backend, io);

	if (VQB_LIKELY(!status)) {
		queue->in_backend++;
		queue->counters.submissions++;
		return 1;
	}
	if (status == VQB_E_NOSPC) {
		queue->counters.full++;
		return 0;
	}
	io->result = status;
	finish(queue, (struct request *)io);
	return 1;
}

static void submit(struct vqb_blk_queue *queue, struct vqb_io *io)
{
	if (queue->waiting || !try_submit(queue, io))
		wait_last(queue, io);
}

/* Submits those that wait, in order, as far as the backend takes them. */
static void resubmit(struct vqb_blk_queue *queue)
{
	while (queue->waiting) {
		struct vqb_io *io = queue->waiting;

		queue->waiting = io->next;
		if (!queue->waiting)
			queue->waiting_end = &queue->waiting;
		if (is_late(queue, (struct request *)io)) {
			free_request(queue, (struct request *)io);
		} else if (!try_submit(queue, io)) {
			wait_first(queue, io);
			return;
		}
	}
}

/* ---- the start of a request ---- */

static void send(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
		 const struct vqb_blk_request *from)
{
	struct request *request = (struct request *)queue->idle;
	uint32_t begin = (uint32_t)(chain->piece - queue->piece);
	struct vqb_io *io = &request->io;

	queue->idle = io->next;
	queue->idles--;
	blk_arena_hold(&queue->arena, (uint32_t)(request - queue->request), begin,
		       begin + chain->readable + chain->writable);
	request->ticket = chain->ticket;
	request->status = from->status;
	request->in_bytes = from->in_bytes;
	request->done = 0;
	io->op = (uint8_t)from->type;
	io->flags = 0;
	io->group = 0;
	io->piece = NULL;
	io->pieces = 0;
	io->offset = io->bytes = 0;
	if (from->type == VQB_BLK_IN) {
		io->piece = from->in;
		io->pieces = from->ins;
		io->bytes = from->in_bytes;
		io->offset = from->sector << VQB_SECTOR_SHIFT;
	} else if (from->type == VQB_BLK_OUT) {
		io->flags = queue->write_flags;
		io->piece = from->out;
		io->pieces = from->outs;
		io->bytes = from->out_bytes;
		io->offset = from->sector << VQB_SECTOR_SHIFT;
	}
	submit(queue, io);
}

/* Everything that can be wrong with a read or write and is known beforehand. */
static int transfer_is_good(const struct vqb_blk_queue *queue, const struct vqb_blk_request *from)
{
	const struct vqb_backend_caps *caps = &queue->backend->caps;
	const struct vqb_blk_device *device = queue->device;
	uint64_t bytes = from->in_bytes;
	uint32_t pieces = from->ins;

	if (from->type == VQB_BLK_OUT) {
		if (device->features & VQB_FEATURE(VQB_BLK_F_RO) || from->in_bytes)
			return 0;
		bytes = from->out_bytes;
		pieces = from->outs;
	} else if (from->out_bytes) {
		return 0;
	}
	if (bytes > caps->max_transfer || pieces > caps->max_pieces)
		return 0;
	return !vqb_blk_check(device->capacity, device->block_size, from->sector, bytes);
}

static uint8_t give_id(struct vqb_blk_queue *queue, const struct vqb_blk_request *from)
{
	const uint8_t *id = queue->device->id;
	uint32_t i;

	if (from->out_bytes || from->in_bytes != VQB_BLK_ID_BYTES)
		return VQB_BLK_S_IOERR;
	for (i = 0; i < from->ins; i++) {
		if (!from->in[i].len)
			continue;
		memcpy(from->in[i].base, id, from->in[i].len);
		id += from->in[i].len;
	}
	if (VQB_UNLIKELY(queue->logs))
		vqb_device_log(queue->ring, from->in, from->ins, from->in_bytes);
	return VQB_BLK_S_OK;
}

/* One chain: sent to the backend, or answered at once. */
static void admit(struct vqb_blk_queue *queue, const struct vqb_chain *chain)
{
	struct vqb_blk_request from;
	uint8_t code = VQB_BLK_S_UNSUPP;
	uint64_t filled = 0;

	queue->counters.requests++;
	if (VQB_UNLIKELY(vqb_blk_parse(chain, &from))) {
		queue->counters.malformed++;
		vqb_device_put(queue->ring, chain->ticket, 0);
		return;
	}
	switch (from.type) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		code = transfer_is_good(queue, &from) ? VQB_BLK_S_OK : VQB_BLK_S_IOERR;
		if (code == VQB_BLK_S_OK && from.in_bytes + from.out_bytes) {
			send(queue, chain, &from);
			return;
		}
		break;
	case VQB_BLK_FLUSH:
		if (queue->backend->caps.can & VQB_CAN_FLUSH) {
			send(queue, chain, &from);
			return;
		}
		break;
	case VQB_BLK_GET_ID:
		code = give_id(queue, &from);
		if (code == VQB_BLK_S_OK)
			filled = from.in_bytes;
		break;
	default:
		break;
	}
	answer(queue, chain->ticket, from.status, code, from.in_bytes, filled);
}

/* The next chain can't be served, now or ever: it comes back unseen. */
static void turn_away(struct vqb_blk_queue *queue)
{
	struct vqb_chain *chain = queue->chain;

	if (vqb_device_reject(queue->ring, chain))
		return;
	queue->want = 1;
	queue->counters.requests++;
	queue->counters.malformed++;
	vqb_device_put(queue->ring, chain->ticket, 0);
}

/* ---- serving the ring ---- */

/* Why no more is taken. */
enum stop {
	GO_ON,
	EMPTY,   /* the ring has no more that we know of, or is broken */
	SPENT,   /* the budget is used up */
	STALLED, /* only a completion of the backend helps */
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Takes and admits one batch. A chain that doesn't fit into the gap it was shown to gets a larger one
 * the next time, or none, so a driver that changes it under our eyes can't keep us here.
 */
static enum stop take_batch(struct vqb_blk_queue *queue, uint32_t *budget)
{
	uint32_t max = least(least(queue->idles, *budget), BATCH), at = 0, taken = 0, i;
	uint32_t room = max ? blk_arena_room(&queue->arena, queue->want, &at) : 0;
	struct vqb_need need;
	int32_t status;

	if (!room)
		return STALLED;
	status = vqb_device_take(queue->ring, queue->chain, max, queue->piece + at, room, &taken,
				 &need);
	for (i = 0; i < taken; i++)
		admit(queue, &queue->chain[i]);
	*budget -= taken;
	if (taken)
		queue->want = 1;
	if (!status)
		return taken < max ? EMPTY : GO_ON;
	if (status == VQB_E_NOSPC && need.pieces <= queue->arena.size) {
		queue->want = need.pieces;
		return GO_ON;
	}
	if (status != VQB_E_NOSPC && status != VQB_E_FAULT)
		return EMPTY;
	turn_away(queue);
	*budget -= 1;
	return GO_ON;
}

static enum stop drain(struct vqb_blk_queue *queue, uint32_t *budget)
{
	enum stop stop = GO_ON;

	while (stop == GO_ON) {
		if (collect(queue))
			vqb_device_expose(queue->ring);
		resubmit(queue);
		if (queue->waiting)
			return STALLED;
		if (!*budget)
			return SPENT;
		stop = take_batch(queue, budget);
	}
	return stop;
}

/* Plugs, drains, unplugs, and goes round again as long as completions make room for more. */
static enum stop serve(struct vqb_blk_queue *queue, uint32_t budget)
{
	enum stop stop;
	uint32_t ended;

	queue->logs = (uint8_t)vqb_device_logs(queue->ring);
	do {
		vqb_backend_plug(queue->backend);
		stop = drain(queue, &budget);
		vqb_backend_unplug(queue->backend);
		ended = collect(queue);
	} while (ended && (stop == STALLED || queue->waiting) && budget);
	return queue->waiting && stop == EMPTY ? STALLED : stop;
}

/* Publishes without arming: more is to be done, by the next call or after a completion. */
static uint32_t publish(struct vqb_blk_queue *queue, enum stop stop)
{
	uint32_t answers = vqb_device_publish(queue->ring);

	if (stop == SPENT || (stop == STALLED && !queue->in_backend))
		answers |= VQB_MORE;
	return answers;
}

uint32_t vqb_blk_queue_run(struct vqb_blk_queue *queue, uint32_t budget)
{
	enum stop stop;

	vqb_device_disarm(queue->ring);
	stop = serve(queue, budget);
	return stop == EMPTY ? vqb_device_turn(queue->ring) : publish(queue, stop);
}

uint32_t vqb_blk_queue_poll(struct vqb_blk_queue *queue, uint32_t budget)
{
	vqb_device_disarm(queue->ring);
	return publish(queue, serve(queue, budget));
}

int32_t vqb_blk_queue_quiesce(struct vqb_blk_queue *queue)
{
	queue->logs = (uint8_t)vqb_device_logs(queue->ring);
	collect(queue);
	vqb_backend_plug(queue->backend);
	resubmit(queue);
	vqb_backend_unplug(queue->backend);
	collect(queue);
	return queue->in_backend || queue->waiting ? VQB_E_BUSY : VQB_OK;
}

uint32_t vqb_blk_queue_in_flight(const struct vqb_blk_queue *queue)
{
	return queue->arena.live;
}

void vqb_blk_queue_read_counters(const struct vqb_blk_queue *queue,
				 struct vqb_blk_queue_counters *out)
{
	*out = queue->counters;
}

void vqb_blk_queue_clear_counters(struct vqb_blk_queue *queue)
{
	memset(&queue->counters, 0, sizeof(queue->counters));
}
