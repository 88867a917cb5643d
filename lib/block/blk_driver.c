/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver.c: requests onto the ring and back.
 *
 * A slot is one header, room for ranges, and one status byte of the DMA area. It is free, or holds
 * the bios of one request that is in flight on the ring, whose token it is. Nothing in the DMA area
 * is read but the status byte, once, when the ring says that the request is done.
 *
 * Which bios those are, and which go next, is request.c's; send() is the one place from where they
 * go, for the first time or after there was no room.
 */
#include "blk_driver.h"

#include "../ring/driver.h"
#include "sort.h"

struct slot {
	/* The first of them. Aligned for what lies behind the slots. */
	_Alignas(8) struct vqb_bio *bio;
	uint32_t bios;
	uint32_t next; /* free slot after this one, or NO_SLOT */
};

#define NO_SLOT UINT32_MAX

enum { BATCH = 16 }; /* completions or tokens at a time, on the stack */

/* What the device never writes, so it stands for a device that wrote none. */
#define STATUS_UNWRITTEN 0xff

struct vqb_blk_driver {
	struct vqb_requests rq;
	struct vqb_driver *ring;
	uint32_t depth, free, in_flight;
	uint32_t ranges;
	uint32_t segments;             /* room in `table`, header and status aside */
	struct vqb_blk_header *header; /* in the DMA area, one for each slot */
	struct vqb_blk_range *range;   /* `ranges` for each */
	uint8_t *status;
	uint64_t header_addr, range_addr, status_addr;
	struct vqb_segment *table; /* of the request that is being made */
	struct slot slot[];
};

_Static_assert(sizeof(struct vqb_blk_driver) + 2 * sizeof(struct vqb_segment) <= 1024 - 64,
	       "bound");
_Static_assert(sizeof(struct slot) <= 16, "bound");
_Static_assert(_Alignof(struct slot) >= _Alignof(struct vqb_segment) &&
		       _Alignof(struct vqb_segment) >= _Alignof(struct sort_entry),
	       "what lies behind the slots is aligned");

/* ---- setting up ---- */

/* Entries of the table: segments of data or ranges, which are written there first. */
static uint32_t entries(const struct vqb_blk_driver_config *config, const struct vqb_limits *limits)
{
	return limits->max_segments > config->ranges ? limits->max_segments : config->ranges;
}

size_t vqb_blk_driver_size(const struct vqb_blk_driver_config *config)
{
	struct vqb_limits limits;

	if (vqb__blk_driver_size_rule(config, &limits))
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_blk_driver) + config->depth * sizeof(struct slot) +
			    ((size_t)entries(config, &limits) + 2) * sizeof(struct vqb_segment) +
			    vqb__request_room(config->window));
}

static void set_area(struct vqb_blk_driver *drv, const struct vqb_dma *area)
{
	size_t statuses = ((size_t)drv->depth + 63) & ~(size_t)63;
	size_t before = VQB_BLK_AREA_BYTES(drv->depth, drv->ranges) - statuses;

	drv->header = area->host;
	drv->header_addr = area->addr;
	drv->range = (struct vqb_blk_range *)(void *)(drv->header + drv->depth);
	drv->range_addr = area->addr + drv->depth * sizeof(*drv->header);
	drv->status = (uint8_t *)area->host + before;
	drv->status_addr = area->addr + before;
}

/*
 * Ranges that a request can carry, whatever slot it gets: they lie in the area as one segment,
 * which is subject to limits like any other.
 */
static uint32_t ranges_in_segment(uint64_t at, uint32_t depth, uint32_t ranges,
				  const struct vqb_limits *limits)
{
	uint32_t most = ranges, i, fit;
	uint64_t last;

	for (i = 0; i < depth && most; i++, at += ranges * sizeof(struct vqb_blk_range)) {
		last = reach(at, limits->max_segment_bytes, limits->seg_boundary);
		fit = (uint32_t)((last - at + 1) / sizeof(struct vqb_blk_range));
		most = fit < most ? fit : most;
	}
	return most;
}

int32_t vqb_blk_driver_init(void *mem, size_t bytes, const struct vqb_blk_driver_config *config,
			    struct vqb_blk_driver **out)
{
	struct vqb_blk_driver *drv = mem;
	struct vqb_requests_config requests;
	struct vqb_limits limits;
	struct vqb_segment *table;
	int32_t status = vqb__blk_driver_status(vqb__blk_driver_rule(config, &limits));
	size_t need;
	uint32_t i;

	if (status)
		return status;
	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	need = vqb_blk_driver_size(config);
	if (bytes < need)
		return VQB_E_TOOBIG;
	requests = vqb__blk_driver_requests(config, &limits);
	requests.max_ranges =
		ranges_in_segment(config->area.addr + config->depth * sizeof(*drv->header),
				  config->depth, config->ranges, &limits);
	table = (struct vqb_segment *)(drv->slot + config->depth);
	status = vqb__request_init(&drv->rq, table + entries(config, &limits) + 2, &requests);
	if (status)
		return status;
	memset((char *)drv + sizeof(drv->rq), 0, need - sizeof(drv->rq));
	drv->ring = config->ring;
	drv->depth = config->depth;
	drv->ranges = config->ranges;
	drv->segments = entries(config, &limits);
	drv->table = table;
	set_area(drv, &config->area);
	for (i = 0; i < drv->depth; i++)
		drv->slot[i].next = i + 1 < drv->depth ? i + 1 : NO_SLOT;
	*out = drv;
	return VQB_OK;
}

int32_t vqb_blk_driver_configure(struct vqb_blk_driver *drv,
				 const struct vqb_blk_driver_config *config)
{
	struct vqb_requests_config requests;
	struct vqb_limits limits;

	if (vqb__blk_driver_limits(config, &limits) || limits.max_segments > drv->segments)
		return VQB_E_INVALID;
	requests = vqb__blk_driver_requests(config, &limits);
	requests.path = drv->rq.path;
	requests.window = 0;
	requests.max_ranges = ranges_in_segment(drv->range_addr, drv->depth, drv->ranges, &limits);
	return vqb_requests_configure(&drv->rq, &requests);
}

int32_t vqb_blk_set_path(struct vqb_blk_driver *drv, uint32_t path)
{
	return vqb_requests_set_path(&drv->rq, path);
}

/* ---- sending ---- */

/* The ranges in the table go into the slot's part of the area; the table gets that part instead. */
static void place_ranges(struct vqb_blk_driver *drv, uint32_t index, const struct vqb_request *r)
{
	uint32_t flags = r->flags & VQB_BIO_UNMAP ? VQB_BLK_RANGE_UNMAP : 0, i;
	struct vqb_blk_range *range = drv->range + (size_t)index * drv->ranges;
	struct vqb_segment *seg = drv->table + 1;

	for (i = 0; i < r->n; i++) {
		range[i].sector = vqb_to_le64(seg[i].addr);
		range[i].sectors = vqb_to_le32(seg[i].len);
		range[i].flags = vqb_to_le32(flags);
	}
	seg->addr = drv->range_addr + (uint64_t)index * drv->ranges * sizeof(*range);
	seg->len = (uint32_t)r->bytes;
}

/* Header and status of a slot, and their segments around the data. How many are readable. */
static uint32_t fill_slot(struct vqb_blk_driver *drv, uint32_t index, const struct vqb_request *r,
			  uint32_t *segments)
{
	struct vqb_blk_header header = {
		.type = vqb_to_le32(r->op),
		.reserved = vqb_to_le32(r->ioprio),
		.sector = vqb_to_le64(r->sector),
	};
	struct vqb_segment *seg = drv->table;
	uint32_t n = r->n, readable = 1;

	if (r->op == VQB_BLK_OUT) {
		readable += n;
	} else if (VQB_UNLIKELY(r->op != VQB_BLK_IN && range_limits(&drv->rq.limits, r->op))) {
		place_ranges(drv, index, r);
		n = 1;
		readable = 2;
	}
	drv->header[index] = header;
	drv->status[index] = STATUS_UNWRITTEN;
	seg[0].addr = drv->header_addr + index * sizeof(header);
	seg[0].len = sizeof(header);
	seg[n + 1].addr = drv->status_addr + index;
	seg[n + 1].len = 1;
	seg[n + 1].zero = 0;
	*segments = n + 2;
	return readable;
}

/* Puts a request onto the ring, in the first free slot. As vqb_driver_add. */
static int32_t send(struct vqb_blk_driver *drv, const struct vqb_request *r)
{
	struct slot *slot = &drv->slot[drv->free];
	uint32_t segments, readable = fill_slot(drv, drv->free, r, &segments);
	int32_t status = vqb_driver_add(drv->ring, drv->table, readable, segments - readable, slot);

	if (status)
		return status;
	drv->free = slot->next;
	drv->in_flight++;
	slot->bio = r->bio;
	slot->bios = r->bios;
	return VQB_OK;
}

/* Will what the ring answered pass, with a completion or with a reset? */
static int must_wait(const struct vqb_blk_driver *drv, int32_t status)
{
	return status == VQB_E_NOSPC || (status && vqb_driver_state(drv->ring));
}

/* Sends what waits as long as there is room. Bios that can't be sent are linked behind *tail. */
static void send_waiting(struct vqb_blk_driver *drv, struct vqb_bio ***tail)
{
	struct vqb_request r;
	int32_t status;

	while (drv->rq.waiting) {
		if (drv->free == NO_SLOT) {
			vqb_requests_full(&drv->rq);
			return;
		}
		status = vqb_requests_next(&drv->rq, &r, drv->table + 1, drv->segments);
		if (VQB_LIKELY(!status))
			status = send(drv, &r);
		if (VQB_UNLIKELY(must_wait(drv, status))) {
			vqb_requests_full(&drv->rq);
			return;
		}
		vqb_requests_sent(&drv->rq, &r);
		if (VQB_UNLIKELY(status))
			vqb_requests_done(&drv->rq, r.bio, r.bios, status, tail);
	}
}

/* Why the ring refuses a bio, which comes before what is wrong with it, but for a held one. */
VQB_TINY int32_t ring_refuses(const struct vqb_blk_driver *drv, const struct vqb_bio *bio)
{
	int32_t state = vqb_driver_state(drv->ring);

	return VQB_LIKELY(!state) || request_is_held(bio) ? VQB_OK : state;
}

/* On failure it is the caller's, but for a BUSY one. */
VQB_INLINE int32_t accept(struct vqb_blk_driver *drv, struct vqb_bio *bio)
{
	int32_t status = ring_refuses(drv, bio);

	if (VQB_LIKELY(!status))
		return vqb_requests_submit(&drv->rq, bio);
	bio->state = VQB_BIO_IDLE;
	bio->status = status;
	return status;
}

int32_t vqb_blk_submit(struct vqb_blk_driver *drv, struct vqb_bio *bio)
{
	uint32_t waited = drv->rq.waiting;
	struct vqb_bio *failed, **tail = &failed;
	int32_t status = accept(drv, bio);

	if (status || waited)
		return status;
	send_waiting(drv, &tail);
	return bio->state == VQB_BIO_IDLE ? bio->status : VQB_OK;
}

/* Would submit try its first request, for nothing, as it is longer than the ring? */
static int is_too_long(const struct vqb_blk_driver *drv, const struct vqb_bio *bio)
{
	uint32_t entries = vqb__driver_entries(drv->ring);

	if (drv->rq.limits.max_segments + 2 <= entries || drv->rq.waiting || drv->free == NO_SLOT)
		return 0;
	return vqb__request_segments(&drv->rq, bio) + 2 > entries;
}

int32_t vqb_blk_check_bio(const struct vqb_blk_driver *drv, const struct vqb_bio *bio,
			  uint32_t *rule)
{
	int32_t status = ring_refuses(drv, bio);
	uint32_t broken = VQB_BIO_RULE_RING;

	if (!status)
		status = vqb_requests_check(&drv->rq, bio, &broken);
	if (!status && is_too_long(drv, bio)) {
		broken = VQB_BIO_RULE_RING_SIZE;
		status = vqb__request_status(broken);
	}
	if (rule)
		*rule = broken;
	return status;
}

int32_t vqb_blk_submit_list(struct vqb_blk_driver *drv, struct vqb_bio *list,
			    struct vqb_bio **refused)
{
	uint32_t waited = drv->rq.waiting;
	struct vqb_bio *none = NULL, *next, **tail = refused ? refused : &none, **first = tail;
	int32_t status, answer = VQB_OK;

	for (; list; list = next) {
		next = list->next;
		status = accept(drv, list);
		if (status && (!answer || status == VQB_E_BUSY))
			answer = status;
		if (status == VQB_E_BUSY)
			break;
		if (status) {
			*tail = list;
			tail = &list->next;
		}
	}
	*tail = NULL;
	if (!waited)
		send_waiting(drv, &tail);
	if (!answer && *first)
		answer = (*first)->status;
	return answer;
}

uint32_t vqb_blk_publish(struct vqb_blk_driver *drv)
{
	return vqb_driver_publish(drv->ring);
}

uint32_t vqb_blk_turn(struct vqb_blk_driver *drv)
{
	return vqb_driver_turn(drv->ring);
}

/* ---- completion ---- */

static int32_t outcome(uint8_t status)
{
	if (VQB_LIKELY(status == VQB_BLK_S_OK))
		return VQB_OK;
	return status == VQB_BLK_S_UNSUPP ? VQB_E_UNSUPP : VQB_E_IO;
}

/* The slot of a request is free, and its bios go on, or are the caller's again. */
static void leave_slot(struct vqb_blk_driver *drv, struct slot *slot, int32_t status,
		       struct vqb_bio ***tail)
{
	slot->next = drv->free;
	drv->free = (uint32_t)(slot - drv->slot);
	drv->in_flight--;
	vqb_requests_done(&drv->rq, slot->bio, slot->bios, status, tail);
}

uint32_t vqb_blk_reap(struct vqb_blk_driver *drv, struct vqb_bio **done)
{
	uint32_t before = drv->rq.outstanding, n, i;
	struct vqb_done batch[BATCH];
	struct vqb_bio **tail = done;

	*done = NULL;
	do {
		n = vqb_driver_reap(drv->ring, batch, BATCH);
		for (i = 0; i < n; i++) {
			struct slot *slot = batch[i].token;
			uint8_t status = vqb_port_load8(&drv->status[slot - drv->slot]);

			leave_slot(drv, slot, outcome(status), &tail);
		}
	} while (n == BATCH);
	if (drv->rq.waiting)
		send_waiting(drv, &tail);
	return before - drv->rq.outstanding;
}

int32_t vqb_blk_cancel(struct vqb_blk_driver *drv, struct vqb_bio *bio)
{
	return vqb_requests_cancel(&drv->rq, bio);
}

int32_t vqb_blk_abandon(struct vqb_blk_driver *drv, struct vqb_bio **list)
{
	struct vqb_bio **tail = list;
	void *token[BATCH];
	uint32_t n, i;
	int32_t status;

	*list = NULL;
	do {
		n = 0;
		status = vqb_driver_detach(drv->ring, token, BATCH, &n);
		for (i = 0; i < n; i++)
			leave_slot(drv, token[i], VQB_E_AGAIN, &tail);
	} while (status == VQB_E_NOSPC && n);
	if (status)
		return status;
	vqb_requests_abandon(&drv->rq, &tail);
	vqb_requests_sort(list);
	return VQB_OK;
}

/* ---- queries ---- */

uint32_t vqb_blk_outstanding(const struct vqb_blk_driver *drv)
{
	return drv->rq.outstanding;
}

uint32_t vqb_blk_waiting(const struct vqb_blk_driver *drv)
{
	return drv->rq.waiting;
}

uint32_t vqb_blk_in_flight(const struct vqb_blk_driver *drv)
{
	return drv->in_flight;
}

void vqb_blk_driver_read_counters(const struct vqb_blk_driver *drv,
				  struct vqb_requests_counters *out)
{
	vqb_requests_read_counters(&drv->rq, out);
}

void vqb_blk_driver_clear_counters(struct vqb_blk_driver *drv)
{
	vqb_requests_clear_counters(&drv->rq);
}
