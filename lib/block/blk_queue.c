/* SPDX-License-Identifier: BSD-3-Clause */
/* blk_queue.c: one queue of a blk device: setting up, taking chains, and the calls that serve. */
#include "blk_queue.h"

_Static_assert(sizeof(struct vqb_blk_queue) + sizeof(struct blk_span) + sizeof(struct vqb_chain) <=
		       576,
	       "bound");
_Static_assert(sizeof(struct blk_request) + sizeof(struct blk_span) +
			       sizeof(struct vqb_chain) / 4 <=
		       144,
	       "bound");

/* ---- setting up ---- */

/* Chains to take at a time: no more than a small queue would pay for, with 16 bytes a request. */
static uint32_t batch_of(const struct vqb_blk_queue_config *config)
{
	uint32_t batch = least(config->requests / 4, BLK_BATCH);

	return batch ? batch : 1;
}

size_t vqb_blk_queue_size(const struct vqb_blk_queue_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || config->zero ||
	    !config->requests || config->requests > VQB_RING_MAX || config->pieces < 3 ||
	    config->pieces > UINT32_MAX / 32)
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_blk_queue) +
			    batch_of(config) * sizeof(struct vqb_chain) +
			    config->requests * sizeof(struct blk_request) +
			    (config->requests + 1) * sizeof(struct blk_span) +
			    config->pieces * sizeof(struct vqb_piece));
}

/* What a backend has to be able to do for what the device offers. */
static uint32_t needs(const struct vqb_blk_device *device)
{
	uint32_t can = VQB_CAN_READ;

	if (!blk_device_offers(device, VQB_BLK_F_RO))
		can |= VQB_CAN_WRITE;
	if (blk_device_offers(device, VQB_BLK_F_FLUSH))
		can |= VQB_CAN_FLUSH;
	if (blk_device_offers(device, VQB_BLK_F_DISCARD))
		can |= VQB_CAN_DISCARD;
	if (blk_device_offers(device, VQB_BLK_F_WRITE_ZEROES))
		can |= VQB_CAN_WRITE_ZEROES;
	if (blk_device_offers(device, VQB_BLK_F_SECURE_ERASE))
		can |= VQB_CAN_SECURE_ERASE;
	if (blk_device_offers(device, VQB_BLK_F_LIFETIME))
		can |= VQB_CAN_LIFETIME;
	return can;
}

static int32_t check_backend(const struct vqb_blk_device *device, const struct vqb_backend *backend)
{
	const uint32_t ranges = VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES | VQB_CAN_SECURE_ERASE;
	const struct vqb_backend_caps *caps = &backend->caps;
	uint32_t can = needs(device);
	int32_t status = vqb_backend_check(backend);

	if (status)
		return status;
	if ((caps->can & can) != can || caps->alignment > device->block_size)
		return VQB_E_INVALID;
	if (can & ranges && caps->max_range < device->block_size)
		return VQB_E_INVALID;
	return vqb_blk_device_capacity(device) > caps->bytes >> VQB_SECTOR_SHIFT ? VQB_E_INVALID
										 : VQB_OK;
}

static uint64_t pieces_of_ranges(const struct vqb_blk_device *device, uint32_t feature,
				 uint32_t ranges)
{
	return blk_device_offers(device, feature) ? VQB_BLK_RANGE_PIECES(ranges) + 3 : 0;
}

/* Pieces of the longest request that is offered, where no buffer crosses extents. */
static uint64_t longest_request(const struct vqb_blk_device *device)
{
	const struct vqb_blk_limits *limits = &device->limits;
	const uint64_t kind[] = {
		blk_device_offers(device, VQB_BLK_F_SEG_MAX) ? (uint64_t)limits->segments + 2 : 0,
		pieces_of_ranges(device, VQB_BLK_F_DISCARD, limits->discard_ranges),
		pieces_of_ranges(device, VQB_BLK_F_WRITE_ZEROES, limits->zeroes_ranges),
		pieces_of_ranges(device, VQB_BLK_F_SECURE_ERASE, limits->erase_ranges),
	};
	uint64_t longest = 3;
	uint32_t i;

	for (i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		if (kind[i] > longest)
			longest = kind[i];
	}
	return longest;
}

/* Lays out what follows the object: requests, spans, pieces, in falling order of alignment. */
static void lay_out(struct vqb_blk_queue *queue, const struct vqb_blk_queue_config *config)
{
	struct blk_span *span;
	uint32_t i;

	queue->batch = batch_of(config);
	queue->chain = (struct vqb_chain *)(queue + 1);
	queue->request = (struct blk_request *)(queue->chain + queue->batch);
	queue->piece = (struct vqb_piece *)(queue->request + config->requests);
	span = (struct blk_span *)(queue->piece + config->pieces);
	blk_arena_init(&queue->arena, span, config->requests, config->pieces);
	for (i = config->requests; i-- > 0;) {
		queue->request[i].io.next = queue->idle;
		queue->idle = &queue->request[i].io;
	}
	queue->idles = config->requests;
}

static enum blk_cache cache_of(const struct vqb_blk_device *device, uint64_t accepted)
{
	if (accepted & VQB_FEATURE(VQB_BLK_F_CONFIG_WCE))
		return BLK_CACHE_ASK;
	/* Was FLUSH on offer, and nothing accepted that tells the driver when to flush? */
	if (blk_device_offers(device, VQB_BLK_F_FLUSH) &&
	    !(accepted & VQB_FEATURE(VQB_BLK_F_FLUSH)))
		return BLK_CACHE_THROUGH;
	return BLK_CACHE_BACK;
}

static void set_features(struct vqb_blk_queue *queue, uint64_t accepted)
{
	queue->features = accepted;
	queue->cache = (uint8_t)cache_of(queue->device, accepted);
}

void vqb__blk_see_capacity(struct vqb_blk_queue *queue)
{
	uint64_t most = queue->backend->caps.bytes >> VQB_SECTOR_SHIFT;

	queue->capacity = vqb__blk_device_capacity(queue->device, &queue->generation);
	if (queue->capacity > most)
		queue->capacity = most;
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
		status = vqb_blk_features_check(config->device->features, config->features);
	if (status)
		return status;

	memset(queue, 0, need);
	queue->device = config->device;
	queue->ring = config->ring;
	queue->backend = config->backend;
	queue->coalescer = config->coalescer;
	queue->max_range =
		config->backend->caps.max_range & ~(uint64_t)(config->device->block_size - 1);
	queue->want = 1;
	vqb__blk_see_capacity(queue);
	set_features(queue, config->features);
	lay_out(queue, config);
	*out = queue;
	return VQB_OK;
}

int32_t vqb_blk_queue_accept(struct vqb_blk_queue *queue, uint64_t features)
{
	int32_t status = vqb_blk_features_check(queue->device->features, features);

	if (!status)
		set_features(queue, features);
	return status;
}

/* ---- serving the ring ---- */

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

/* Why no more is taken. */
enum stop {
	GO_ON,
	EMPTY,   /* the ring has no more that we know of, or is broken */
	SPENT,   /* the budget is used up */
	STALLED, /* only a completion of the backend helps */
};

/*
 * Admits what was taken: all of it, or up to a request that has to find room first. Answers how
 * many chains are out; the others are back in the ring.
 */
static uint32_t admit_batch(struct vqb_blk_queue *queue)
{
	uint32_t i;

	for (i = 0; i < queue->taken; i++) {
		if (!vqb__blk_admit(queue, i))
			break;
	}
	queue->counters.requests += queue->taken;
	return queue->taken;
}

/*
 * Takes and admits one batch. A chain that doesn't fit into the gap it was shown to gets a larger
 * one the next time, or none, so a driver that changes it under our eyes can't keep us here.
 */
static enum stop take_batch(struct vqb_blk_queue *queue, uint32_t *budget)
{
	uint32_t max = least(least(queue->idles, *budget), queue->batch), at = 0, taken = 0;
	uint32_t room = max ? blk_arena_room(&queue->arena, queue->want, &at) : 0;
	struct vqb_need need;
	int32_t status;

	if (!room)
		return STALLED;
	status = vqb_device_take(queue->ring, queue->chain, max, queue->piece + at, room, &taken,
				 &need);
	if (taken)
		queue->want = 1;
	queue->taken = taken;
	queue->gap_end = at + room;
	*budget -= admit_batch(queue);
	if (queue->taken < taken)
		return GO_ON;
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
		if (vqb__blk_collect(queue))
			vqb_device_expose(queue->ring);
		vqb__blk_resubmit(queue);
		if (blk_waits(queue))
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
		vqb__blk_let_go(queue);
		vqb_backend_unplug(queue->backend);
		ended = vqb__blk_collect(queue);
	} while (ended && (stop == STALLED || blk_waits(queue)) && budget);
	return blk_waits(queue) && stop == EMPTY ? STALLED : stop;
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
	vqb__blk_collect(queue);
	vqb_backend_plug(queue->backend);
	vqb__blk_resubmit(queue);
	vqb__blk_let_go(queue);
	vqb_backend_unplug(queue->backend);
	vqb__blk_collect(queue);
	return queue->in_backend || blk_waits(queue) ? VQB_E_BUSY : VQB_OK;
}

uint32_t vqb_blk_queue_in_flight(const struct vqb_blk_queue *queue)
{
	return queue->arena.live;
}

void vqb_blk_queue_read_counters(const struct vqb_blk_queue *queue,
				 struct vqb_blk_queue_counters *out)
{
	*out = queue->counters;
	out->submissions += out->read_submissions + out->write_submissions;
}

void vqb_blk_queue_clear_counters(struct vqb_blk_queue *queue)
{
	memset(&queue->counters, 0, sizeof(queue->counters));
}
