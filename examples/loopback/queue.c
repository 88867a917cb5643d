/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "say.h"

/*
 * A request is header, data and status. An I/O is one stretch of data, and as many as that may
 * share a request: enough for most of what there is to be gained, and tables stay in the cache.
 */
enum { MERGED_SEGMENTS = 126, OTHER_SEGMENTS = 2 };

/* Few enough for the smallest ring, with room for four pieces per entry. */
enum { RANGES = 8 };

enum { MEM_DRIVER, MEM_BLK, MEM_DEVICE, MEM_BACKEND, MEM_COALESCER, MEM_SERVED };

/* Bytes of one queue in guest memory. */
static struct vqb_layout ring_layout(uint32_t size)
{
	struct vqb_layout layout = { 0 };

	vqb_ring_layout(size, 64, &layout);
	return layout;
}

/* Segments of data in a request. */
static uint32_t data_segments(const struct options *o)
{
	uint32_t most = vqb_blk_ring_segments(o->ring);

	if (o->max_segments)
		return o->max_segments;
	if (!o->guest_merge)
		return 1;
	return most < MERGED_SEGMENTS ? most : MERGED_SEGMENTS;
}

/*
 * Ranges that share a request which has no data. Where the length of requests is limited that goes
 * for all of its ranges together, so there is one.
 */
static uint32_t data_ranges(const struct options *o)
{
	if (!o->zeroes && !o->discard)
		return 0;
	return o->max_sectors ? 1 : RANGES;
}

static size_t tables_bytes(const struct options *o)
{
	return VQB_TABLES_BYTES(o->ring, data_segments(o) + OTHER_SEGMENTS);
}

static uint64_t low_bytes(const struct options *o)
{
	return memory_cost(ring_layout(o->ring).bytes) + memory_cost(tables_bytes(o)) +
	       memory_cost(VQB_BLK_AREA_BYTES(o->ring, data_ranges(o)));
}

/* Of data buffers. */
static uint64_t high_bytes(const struct options *o, uint32_t queue, uint32_t buffer)
{
	return (uint64_t)options_jobs_of(o, queue) * o->iodepth * buffer;
}

/* For set-up, where nothing can fail but memory: says so and answers false. */
static bool good(int32_t status, const char *what)
{
	if (status)
		complain("%s: %s", what, vqb_status_name(status));
	return !status;
}

static void *keep(struct queue *q, uint32_t which, size_t bytes)
{
	q->mem[which] = object_memory(bytes);
	return q->mem[which];
}

/* What is asked for and the disk has not. */
static bool has_all(const struct machine *m)
{
	const struct options *o = m->options;

	if (o->zeroes && !(m->features & VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES))) {
		complain("--zeroes: this disk can't write zeroes by itself");
		return false;
	}
	if (o->discard && !(m->features & VQB_FEATURE(VQB_BLK_F_DISCARD))) {
		complain("--discard: this disk has no discards");
		return false;
	}
	return true;
}

/* The disk as the guest will see it, and what guest and host agree upon. */
static bool negotiate(struct machine *m)
{
	const struct options *o = m->options;
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .discard_ranges = RANGES,
					 .zeroes_ranges = RANGES,
					 .block_size = o->unit > VQB_SECTOR_BYTES ? o->unit : 0,
					 .capacity = m->disk->bytes / VQB_SECTOR_BYTES,
					 .segments = vqb_blk_ring_segments(o->ring),
					 .queues = o->queues };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.limits = &limits,
						.serial = PROGRAM,
						.backend = &m->queue->layers.top->caps };
	_Alignas(8) unsigned char space[VQB_BLK_CONFIG_BYTES];
	uint64_t offer, wanted = VQB_RING_DEFAULTS | VQB_BLK_DRIVER_FEATURES;

	/* The host offers. */
	config.features = VQB_RING_DEFAULTS | VQB_BLK_DEVICE_FEATURES;
	config.features &= ~VQB_FEATURE(VQB_BLK_F_SECURE_ERASE) & ~VQB_FEATURE(VQB_BLK_F_LIFETIME);
	if (o->readonly)
		config.features |= VQB_FEATURE(VQB_BLK_F_RO);
	if (!o->event_idx)
		config.features &= ~VQB_FEATURE(VQB_F_EVENT_IDX);
	m->device_mem = object_memory(vqb_blk_device_size());
	if (!good(vqb_blk_device_init(m->device_mem, vqb_blk_device_size(), &config, &m->device),
		  "device"))
		return false;
	offer = vqb_blk_device_features(m->device);

	/* The guest accepts, and reads what the disk is like. */
	m->features = vqb_blk_features_accept(offer, wanted);
	vqb_blk_device_read_config(m->device, 0, space, sizeof(space));
	return good(vqb_blk_device_accept(m->device, m->features), "features") &&
	       good(vqb_blk_limits_read(space, sizeof(space), m->features, o->ring, &m->limits),
		    "configuration space") &&
	       has_all(m);
}

static uint32_t policy_kind(uint32_t indirect)
{
	static const uint32_t kind[] = {
		[INDIRECT_NEVER] = VQB_INDIRECT_NEVER,
		[INDIRECT_ALWAYS] = VQB_INDIRECT_ALWAYS,
		[INDIRECT_ADAPTIVE] = VQB_INDIRECT_ADAPTIVE,
		[INDIRECT_THRESHOLD] = VQB_INDIRECT_THRESHOLD,
		[INDIRECT_DECAY] = VQB_INDIRECT_DECAY,
	};

	return kind[indirect];
}

/* What requests are to be like, as far as the disk allows. */
static bool set_mapping(const struct machine *m, struct vqb_limits *mapping)
{
	const struct options *o = m->options;

	if (!good(vqb_limits_of_blk(&m->limits, m->features, o->ring, mapping), "limits"))
		return false;
	mapping->max_segments = data_segments(o);
	if (o->max_segments)
		mapping->max_segment_bytes = SEGMENT_BYTES;
	if (!o->max_sectors)
		return true;
	mapping->max_sectors = o->max_sectors;
	if (mapping->discard.max_sectors > o->max_sectors)
		mapping->discard.max_sectors = o->max_sectors;
	if (mapping->zeroes.max_sectors > o->max_sectors)
		mapping->zeroes.max_sectors = o->max_sectors;
	return true;
}

/* The block driver on the driver's end of the ring. */
static bool open_blk(struct machine *m, struct queue *q)
{
	static const uint32_t path[] = {
		[PATH_BIO] = VQB_PATH_BIO,
		[PATH_REQUEST] = VQB_PATH_REQUEST,
		[PATH_MERGE_WHEN_FULL] = VQB_PATH_MERGE_WHEN_FULL,
	};
	const struct options *o = m->options;
	struct vqb_limits mapping;
	struct vqb_blk_driver_config blk = { .struct_size = sizeof(blk),
					     .depth = o->ring,
					     .ring = q->driver,
					     .features = m->features,
					     .limits = &m->limits,
					     .mapping = &mapping,
					     .ranges = data_ranges(o),
					     .path = path[o->path] };
	size_t bytes;

	if (!set_mapping(m, &mapping))
		return false;
	blk.area = memory_take(&m->memory, REGION_LOW, VQB_BLK_AREA_BYTES(o->ring, blk.ranges));
	bytes = vqb_blk_driver_size(&blk);
	return good(vqb_blk_driver_init(keep(q, MEM_BLK, bytes), bytes, &blk, &q->blk),
		    "block driver");
}

/* The driver's end of the ring, which sets the ring up. */
static bool open_guest(struct machine *m, struct queue *q, const struct vqb_dma *ring)
{
	const struct options *o = m->options;
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy),
					      .kind = policy_kind(o->indirect) };
	struct vqb_driver_config driver = { .struct_size = sizeof(driver),
					    .ring = { .size = o->ring, .features = m->features },
					    .policy = &policy };
	uint32_t index = (uint32_t)(q - m->queue);
	size_t bytes;

	if (policy.kind == VQB_INDIRECT_THRESHOLD)
		policy.threshold = 8;
	driver.ring.index = index;
	if (!good(vqb_ring_place(&driver.ring, ring->host, 64), "ring"))
		return false;
	q->ring = driver.ring;
	if (o->indirect != INDIRECT_NEVER) {
		driver.tables = memory_take(&m->memory, REGION_LOW, tables_bytes(o));
		driver.max_table = data_segments(o) + OTHER_SEGMENTS;
	}
	bytes = vqb_driver_size(&driver);
	if (!good(vqb_driver_init(keep(q, MEM_DRIVER, bytes), bytes, &driver, &q->driver),
		  "driver"))
		return false;
	q->data = memory_take(&m->memory, REGION_HIGH, high_bytes(o, index, m->buffer));
	return open_blk(m, q);
}

/* Joins requests on their way to a backend. */
static bool open_coalescer(struct machine *m, struct queue *q)
{
	const struct vqb_backend_caps *caps = &q->layers.top->caps;
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .pieces = 4 * m->options->ring,
					       .max_pieces = caps->max_pieces,
					       .max_transfer = caps->max_transfer };
	size_t bytes = vqb_coalescer_size(&config);

	return good(
		vqb_coalescer_init(keep(q, MEM_COALESCER, bytes), bytes, &config, &q->coalescer),
		"coalescer");
}

/* The device's end of the same ring, found by its guest addresses, and the block device on it. */
static bool open_host(struct machine *m, struct queue *q, const struct vqb_dma *ring)
{
	const struct options *o = m->options;
	struct vqb_device_config device = { .struct_size = sizeof(device),
					    .ring = { .size = o->ring, .features = m->features },
					    .memory = &m->memory.map };
	struct vqb_blk_queue_config served = { .struct_size = sizeof(served),
					       .requests = o->ring,
					       .pieces = 4 * o->ring,
					       .features = m->features,
					       .device = m->device };
	size_t bytes;

	device.ring.index = (uint32_t)(q - m->queue);
	if (!good(vqb_ring_place_at(&device.ring, ring->addr, 64), "ring"))
		return false;
	q->ring_at = device.ring;
	bytes = vqb_device_size(&device);
	if (!good(vqb_device_init(keep(q, MEM_DEVICE, bytes), bytes, &device, &q->device),
		  "device queue"))
		return false;
	if (o->host_merge && !open_coalescer(m, q))
		return false;
	served.ring = q->device;
	served.backend = q->layers.top;
	served.coalescer = q->coalescer;
	bytes = vqb_blk_queue_size(&served);
	return good(vqb_blk_queue_init(keep(q, MEM_SERVED, bytes), bytes, &served, &q->served),
		    "block queue");
}

/* What the queue will store to, which is there before anything is agreed upon. */
static bool open_store(struct machine *m, struct queue *q)
{
	if (vqb_notify_open(&q->kick) || vqb_notify_open(&q->interrupt)) {
		complain("eventfd: %s", strerror(errno));
		return false;
	}
	return disk_backend_open(m->disk, &q->kick, &q->mem[MEM_BACKEND], &q->backend) &&
	       layers_open(&q->layers, m->options, (uint32_t)(q - m->queue), q->backend);
}

static bool open_ends(struct machine *m, struct queue *q)
{
	struct vqb_dma ring =
		memory_take(&m->memory, REGION_LOW, ring_layout(m->options->ring).bytes);

	return open_guest(m, q, &ring) && layers_watch(&q->layers, &q->data, m->buffer) &&
	       open_host(m, q, &ring);
}

/* What can't fail, so that it can be closed whatever does. */
static void open_signals(struct queue *q)
{
	q->kick.fd = q->interrupt.fd = -1;
	sem_init(&q->stopped, 0, 0);
	sem_init(&q->restart, 0, 0);
}

static bool open_queues(struct machine *m)
{
	uint32_t i;

	m->queue = object_memory(m->options->queues * sizeof(*m->queue));
	if (!m->queue) {
		complain("no memory");
		return false;
	}
	for (i = 0; i < m->options->queues; i++)
		open_signals(&m->queue[i]);
	for (i = 0; i < m->options->queues; i++)
		if (!open_store(m, &m->queue[i]))
			return false;
	if (!negotiate(m))
		return false;
	for (i = 0; i < m->options->queues; i++)
		if (!open_ends(m, &m->queue[i]))
			return false;
	return true;
}

bool machine_open(struct machine *machine, const struct options *options, const struct disk *disk,
		  uint32_t buffer)
{
	uint64_t low = options->queues * low_bytes(options), high = memory_cost(buffer), i;
	uint64_t stream = options->seed;
	uint32_t q;

	*machine = (struct machine){ .options = options, .disk = disk, .buffer = buffer };
	for (q = 0; q < options->queues; q++)
		high += memory_cost(high_bytes(options, q, buffer));
	if (!memory_open(&machine->memory, low, high))
		return false;
	machine->constant = memory_take(&machine->memory, REGION_HIGH, buffer);
	for (i = 0; i < buffer / sizeof(uint64_t); i++)
		((uint64_t *)machine->constant.host)[i] = random_next(&stream);
	if (open_queues(machine))
		return true;
	machine_close(machine);
	return false;
}

void machine_close(struct machine *machine)
{
	uint32_t i, k;

	for (i = 0; machine->queue && i < machine->options->queues; i++) {
		if (machine->queue[i].backend)
			disk_backend_close(machine->disk, machine->queue[i].backend);
		layers_close(&machine->queue[i].layers);
		vqb_notify_close(&machine->queue[i].kick);
		vqb_notify_close(&machine->queue[i].interrupt);
		sem_destroy(&machine->queue[i].stopped);
		sem_destroy(&machine->queue[i].restart);
		for (k = 0; k < sizeof(machine->queue[i].mem) / sizeof(void *); k++)
			free(machine->queue[i].mem[k]);
	}
	free(machine->queue);
	free(machine->device_mem);
	memory_close(&machine->memory);
	machine->queue = NULL;
	machine->device_mem = NULL;
}
