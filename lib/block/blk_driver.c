/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_driver.c: bios into requests and back.
 *
 * A slot is one header and one status byte of the DMA area. It is free, or holds the bio of one
 * request that is in flight on the ring, whose token it is. Nothing in the DMA area is read but
 * the status byte, once, when the ring says that the request is done.
 */
#include <vqblk/blk_driver.h>

struct slot {
	struct vqb_bio *bio;
	uint32_t next; /* free slot after this one, or NO_SLOT */
	uint32_t index;
};

#define NO_SLOT UINT32_MAX

enum { BATCH = 16 }; /* completions or tokens at a time, on the stack */

/* What the device never writes, so it stands for a device that wrote none. */
#define STATUS_UNWRITTEN 0xff

struct vqb_blk_driver {
	struct vqb_driver *ring;
	uint64_t capacity;
	uint64_t features;
	uint32_t block_size, segment_bytes, segments;
	uint32_t max_segments; /* room in `scratch`, header and status aside */
	uint32_t depth, free, in_flight;
	uint32_t zero;
	struct vqb_blk_header *header; /* in the DMA area, one for each slot */
	uint8_t *status;
	uint64_t header_addr, status_addr;
	struct vqb_segment *scratch;
	struct slot slot[];
};

_Static_assert(sizeof(struct vqb_blk_driver) + 2 * sizeof(struct vqb_segment) <= 512, "bound");
_Static_assert(sizeof(struct slot) <= 16, "bound");

/* ---- setting up ---- */

static int limits_are_good(const struct vqb_blk_limits *limits)
{
	if (!limits || limits->struct_size != sizeof(*limits))
		return 0;
	if (limits->block_size < VQB_SECTOR_BYTES || limits->block_size & (limits->block_size - 1))
		return 0;
	return limits->segment_bytes && limits->segments && limits->segments <= VQB_RING_MAX - 2;
}

size_t vqb_blk_driver_size(const struct vqb_blk_driver_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || !config->depth ||
	    config->depth > VQB_RING_MAX || !limits_are_good(config->limits))
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_blk_driver) + config->depth * sizeof(struct slot) +
			    (config->limits->segments + 2) * sizeof(struct vqb_segment));
}

static int32_t check_area(const struct vqb_dma *area, uint32_t depth)
{
	if (!area->host || (uintptr_t)area->host % VQB_ALIGN || area->addr % VQB_ALIGN)
		return VQB_E_INVALID;
	if (area->bytes < VQB_BLK_AREA_BYTES(depth))
		return VQB_E_TOOBIG;
	return area->addr > UINT64_MAX - (area->bytes - 1) ? VQB_E_INVALID : VQB_OK;
}

static void set_area(struct vqb_blk_driver *drv, const struct vqb_dma *area)
{
	size_t headers = VQB_BLK_AREA_BYTES(drv->depth) - (((size_t)drv->depth + 63) & ~(size_t)63);

	drv->header = area->host;
	drv->header_addr = area->addr;
	drv->status = (uint8_t *)area->host + headers;
	drv->status_addr = area->addr + headers;
}

static void set_limits(struct vqb_blk_driver *drv, uint64_t features,
		       const struct vqb_blk_limits *limits)
{
	drv->features = features;
	drv->capacity = limits->capacity;
	drv->block_size = limits->block_size;
	drv->segment_bytes = limits->segment_bytes;
	drv->segments = limits->segments;
}

int32_t vqb_blk_driver_init(void *mem, size_t bytes, const struct vqb_blk_driver_config *config,
			    struct vqb_blk_driver **out)
{
	size_t need = vqb_blk_driver_size(config);
	struct vqb_blk_driver *drv = mem;
	int32_t status;
	uint32_t i;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (!config->ring || vqb_driver_in_flight(config->ring))
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	status = check_area(&config->area, config->depth);
	if (status)
		return status;

	memset(drv, 0, need);
	drv->ring = config->ring;
	drv->depth = config->depth;
	drv->max_segments = config->limits->segments;
	drv->scratch = (struct vqb_segment *)(drv->slot + drv->depth);
	set_area(drv, &config->area);
	set_limits(drv, config->features, config->limits);
	for (i = 0; i < drv->depth; i++) {
		drv->slot[i].index = i;
		drv->slot[i].next = i + 1 < drv->depth ? i + 1 : NO_SLOT;
	}
	*out = drv;
	return VQB_OK;
}

int32_t vqb_blk_driver_limits(struct vqb_blk_driver *drv, uint64_t features,
			      const struct vqb_blk_limits *limits)
{
	if (!limits_are_good(limits) || limits->segments > drv->max_segments)
		return VQB_E_INVALID;
	set_limits(drv, features, limits);
	return VQB_OK;
}

/* ---- submit ---- */

static int has(const struct vqb_blk_driver *drv, uint32_t feature)
{
	return (drv->features & VQB_FEATURE(feature)) != 0;
}

/* Copies the bio's segments behind the header's place and adds up their bytes. */
static int32_t copy_segments(struct vqb_blk_driver *drv, const struct vqb_bio *bio, uint64_t *bytes)
{
	struct vqb_segment *to = drv->scratch + 1;
	uint32_t i;

	*bytes = 0;
	if (bio->nvec > drv->segments)
		return VQB_E_TOOBIG;
	if (bio->nvec && !bio->vec)
		return VQB_E_INVALID;
	for (i = 0; i < bio->nvec; i++) {
		to[i] = bio->vec[i];
		if (to[i].len > drv->segment_bytes)
			return VQB_E_TOOBIG;
		*bytes += to[i].len;
	}
	return VQB_OK;
}

/* May this device be asked for this, with so many bytes of data? */
static int32_t check_op(const struct vqb_blk_driver *drv, const struct vqb_bio *bio, uint64_t bytes)
{
	switch (bio->op) {
	case VQB_BLK_OUT:
		if (has(drv, VQB_BLK_F_RO))
			return VQB_E_UNSUPP;
		/* fall through */
	case VQB_BLK_IN:
		if (!bytes)
			return VQB_E_INVALID;
		return vqb_blk_check(drv->capacity, drv->block_size, bio->sector, bytes);
	case VQB_BLK_FLUSH:
		if (!has(drv, VQB_BLK_F_FLUSH))
			return VQB_E_UNSUPP;
		return bio->nvec ? VQB_E_INVALID : VQB_OK;
	case VQB_BLK_GET_ID:
		return bytes == VQB_BLK_ID_BYTES ? VQB_OK : VQB_E_INVALID;
	default:
		return VQB_E_UNSUPP;
	}
}

/* Header and status of a slot, and the segments around the data in `scratch`. */
static void fill_slot(struct vqb_blk_driver *drv, const struct slot *slot,
		      const struct vqb_bio *bio)
{
	int placed = bio->op == VQB_BLK_IN || bio->op == VQB_BLK_OUT;
	struct vqb_blk_header header = {
		.type = vqb_to_le32(bio->op),
		.sector = vqb_to_le64(placed ? bio->sector : 0),
	};
	struct vqb_segment *seg = drv->scratch;

	drv->header[slot->index] = header;
	drv->status[slot->index] = STATUS_UNWRITTEN;
	seg[0].addr = drv->header_addr + slot->index * sizeof(header);
	seg[0].len = sizeof(header);
	seg[bio->nvec + 1].addr = drv->status_addr + slot->index;
	seg[bio->nvec + 1].len = 1;
	seg[bio->nvec + 1].zero = 0;
}

/* Waiting helps, unless the ring has broken: then nothing will come back. */
static int32_t no_slot(const struct vqb_blk_driver *drv)
{
	int32_t status = vqb_driver_state(drv->ring);

	return status ? status : VQB_E_NOSPC;
}

int32_t vqb_blk_submit(struct vqb_blk_driver *drv, struct vqb_bio *bio)
{
	struct slot *slot;
	uint64_t bytes;
	uint32_t readable;
	int32_t status;

	if (bio->state != VQB_BIO_IDLE)
		return VQB_E_BUSY;
	if (bio->flags)
		return VQB_E_UNSUPP;
	status = copy_segments(drv, bio, &bytes);
	if (!status)
		status = check_op(drv, bio, bytes);
	if (status)
		return status;
	if (drv->free == NO_SLOT)
		return no_slot(drv);

	slot = &drv->slot[drv->free];
	fill_slot(drv, slot, bio);
	readable = 1 + (bio->op == VQB_BLK_OUT ? bio->nvec : 0);
	status = vqb_driver_add(drv->ring, drv->scratch, readable, bio->nvec + 2 - readable, slot);
	if (status)
		return status;

	drv->free = slot->next;
	slot->bio = bio;
	bio->state = VQB_BIO_SENT;
	drv->in_flight++;
	return VQB_OK;
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

static int8_t outcome(uint8_t status)
{
	if (status == VQB_BLK_S_OK)
		return VQB_OK;
	return status == VQB_BLK_S_UNSUPP ? VQB_E_UNSUPP : VQB_E_IO;
}

/* The bio of a slot is the caller's again, and the slot is free. */
static struct vqb_bio *leave_slot(struct vqb_blk_driver *drv, struct slot *slot, int8_t status)
{
	struct vqb_bio *bio = slot->bio;

	slot->bio = NULL;
	slot->next = drv->free;
	drv->free = slot->index;
	drv->in_flight--;
	bio->next = NULL;
	bio->state = VQB_BIO_IDLE;
	bio->status = status;
	return bio;
}

uint32_t vqb_blk_reap(struct vqb_blk_driver *drv, struct vqb_bio **done)
{
	struct vqb_done batch[BATCH];
	uint32_t n, i, all = 0;

	*done = NULL;
	do {
		n = vqb_driver_reap(drv->ring, batch, BATCH);
		for (i = 0; i < n; i++) {
			struct slot *slot = batch[i].token;
			uint8_t status = vqb_port_load8(&drv->status[slot->index]);

			*done = leave_slot(drv, slot, outcome(status));
			done = &(*done)->next;
		}
		all += n;
	} while (n == BATCH);
	return all;
}

int32_t vqb_blk_abandon(struct vqb_blk_driver *drv, struct vqb_bio **list)
{
	void *token[BATCH];
	uint32_t n, i;
	int32_t status;

	*list = NULL;
	do {
		n = 0;
		status = vqb_driver_detach(drv->ring, token, BATCH, &n);
		for (i = 0; i < n; i++) {
			*list = leave_slot(drv, token[i], VQB_E_AGAIN);
			list = &(*list)->next;
		}
	} while (status == VQB_E_NOSPC && n);
	return status;
}

uint32_t vqb_blk_in_flight(const struct vqb_blk_driver *drv)
{
	return drv->in_flight;
}
