/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUEST_BASE UINT64_C(0x40000000)

enum { GUEST_BYTES = 8 << 20, HOST_BYTES = 1 << 20 };

enum order { RUN, RESET, HANG, END };

void disk_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	exit(1);
}

static void open_memory(struct disk_memory *memory, size_t bytes)
{
	*memory = (struct disk_memory){ .base = aligned_alloc(4096, bytes), .bytes = bytes };
	REQUIRE(memory->base);
	memset(memory->base, 0, bytes);
}

static void *take(struct disk_memory *memory, size_t bytes)
{
	unsigned char *at = memory->base + memory->used;

	REQUIRE(bytes && VQB_ROUND_UP(bytes) <= memory->bytes - memory->used);
	memory->used += VQB_ROUND_UP(bytes);
	return at;
}

static uint64_t address_of(const struct disk *disk, const unsigned char *at)
{
	return GUEST_BASE + (uint64_t)(at - disk->guest.base);
}

/* ---- the device ---- */

static void obey(struct disk_queue *q, const struct disk *disk, int order, int before)
{
	if (order == RESET) {
		REQUIRE(!vqb_device_reset(q->end, NULL));
		while (vqb_blk_queue_quiesce(q->served)) /* no late read lands in guest memory */
			continue;
	}
	if (order == RUN && before == RESET) {
		REQUIRE(!vqb_device_reset(q->end, &q->seen_at));
		REQUIRE(!vqb_blk_queue_accept(q->served, disk->features));
	}
	sem_post(&q->obeyed);
}

struct server {
	struct disk_queue *q;
	const struct disk *disk;
};

static void *serve(void *context)
{
	struct server server = *(struct server *)context;
	struct disk_queue *q = server.q;
	int doing = RUN, order = RUN;
	uint32_t answer = 0;

	sem_post(&q->obeyed);
	while (order != END) {
		if (order == RUN) {
			answer = vqb_blk_queue_run(q->served, 64);
			if (answer & VQB_NOTIFY)
				vqb_notify_signal(&q->interrupt);
		}
		if (order != RUN || !(answer & VQB_MORE))
			vqb_notify_wait(&q->kick, -1);
		order = atomic_load(&q->order);
		if (order != doing)
			obey(q, server.disk, order, doing);
		doing = order;
	}
	return NULL;
}

static void tell(struct disk_queue *q, enum order order)
{
	atomic_store(&q->order, order);
	vqb_notify_signal(&q->kick);
	while (sem_wait(&q->obeyed))
		continue;
}

void disk_reset(struct disk_queue *q)
{
	tell(q, RESET);
}

void disk_start(struct disk_queue *q)
{
	tell(q, RUN);
}

void disk_hang(struct disk_queue *q)
{
	tell(q, HANG);
}

void disk_wake(struct disk_queue *q)
{
	tell(q, RUN);
}

void disk_notify(struct disk_queue *q, uint32_t answer)
{
	if (answer & VQB_NOTIFY)
		vqb_notify_signal(&q->kick);
}

/* ---- setting up ---- */

/* The device offers, the driver accepts and reads what the disk is like. */
static void negotiate(struct disk *disk, const struct disk_config *config)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .capacity = config->sectors,
					 .segments = vqb_blk_ring_segments(config->ring),
					 .queues = config->queues };
	struct vqb_blk_device_config device = { .struct_size = sizeof(device),
						.features =
							VQB_RING_DEFAULTS | VQB_BLK_DEVICE_FEATURES,
						.limits = &limits };
	_Alignas(8) unsigned char space[VQB_BLK_CONFIG_BYTES];

	REQUIRE(!vqb_blk_device_init(take(&disk->host, VQB_BLK_DEVICE_BYTES), VQB_BLK_DEVICE_BYTES,
				     &device, &disk->device));
	disk->features = vqb_blk_features_accept(vqb_blk_device_features(disk->device),
						 VQB_RING_DEFAULTS | VQB_BLK_DRIVER_FEATURES);
	REQUIRE(!vqb_blk_device_accept(disk->device, disk->features));
	vqb_blk_device_read_config(disk->device, 0, space, sizeof(space));
	REQUIRE(!vqb_blk_limits_read(space, sizeof(space), disk->features, config->ring,
				     &disk->limits));
}

/* The driver's end of a ring, and the block driver on it. */
static void open_guest(struct disk *disk, struct disk_queue *q, const struct disk_config *config)
{
	struct vqb_driver_config ring = { .struct_size = sizeof(ring) };
	struct vqb_blk_driver_config blk = { .struct_size = sizeof(blk),
					     .depth = config->depth,
					     .features = disk->features,
					     .limits = &disk->limits,
					     .path = config->path };
	struct vqb_layout layout;
	size_t bytes;

	REQUIRE(!vqb_ring_layout(config->ring, 64, &layout));
	q->at = (struct vqb_ring){ .size = config->ring, .features = disk->features };
	q->seen_at = (struct vqb_ring_at){ .size = config->ring, .features = disk->features };
	REQUIRE(!vqb_ring_place(&q->at, take(&disk->guest, layout.bytes), 64));
	REQUIRE(!vqb_ring_place_at(&q->seen_at, address_of(disk, q->at.desc), 64));
	ring.ring = q->at;
	bytes = vqb_driver_size(&ring);
	REQUIRE(!vqb_driver_init(take(&disk->host, bytes), bytes, &ring, &q->ring));

	blk.ring = q->ring;
	blk.area.bytes = VQB_BLK_AREA_BYTES(config->depth, 0);
	blk.area.host = take(&disk->guest, blk.area.bytes);
	blk.area.addr = address_of(disk, blk.area.host);
	bytes = vqb_blk_driver_size(&blk);
	REQUIRE(!vqb_blk_driver_init(take(&disk->host, bytes), bytes, &blk, &q->drv));
}

/* The device's end, a backend, and the queue that serves the one from the other. */
static void open_host(struct disk *disk, struct disk_queue *q, const struct disk_config *config)
{
	struct vqb_device_config ring = { .struct_size = sizeof(ring),
					  .ring = q->seen_at,
					  .memory = &disk->map };
	struct vqb_backend_memory_config memory = { .struct_size = sizeof(memory),
						    .access = VQB_READ | VQB_WRITE,
						    .disk = disk->data,
						    .bytes = 512 * disk->sectors };
	struct vqb_blk_queue_config served = { .struct_size = sizeof(served),
					       .requests = config->ring,
					       .pieces = 4 * config->ring,
					       .features = disk->features,
					       .device = disk->device };
	size_t bytes = vqb_device_size(&ring);

	REQUIRE(!vqb_device_init(take(&disk->host, bytes), bytes, &ring, &q->end));
	REQUIRE(!vqb_backend_memory_init(take(&disk->host, VQB_BACKEND_MEMORY_BYTES),
					 VQB_BACKEND_MEMORY_BYTES, &memory, &served.backend));
	served.ring = q->end;
	bytes = vqb_blk_queue_size(&served);
	REQUIRE(!vqb_blk_queue_init(take(&disk->host, bytes), bytes, &served, &q->served));
}

static void open_queue(struct disk *disk, struct disk_queue *q, const struct disk_config *config)
{
	struct server server = { q, disk };

	REQUIRE(!vqb_notify_open(&q->kick) && !vqb_notify_open(&q->interrupt));
	REQUIRE(!sem_init(&q->obeyed, 0, 0));
	open_guest(disk, q, config);
	open_host(disk, q, config);
	REQUIRE(!pthread_create(&q->thread, NULL, serve, &server));
	while (sem_wait(&q->obeyed)) /* it has looked at `server` */
		continue;
}

void disk_open(struct disk *disk, const struct disk_config *config)
{
	*disk = (struct disk){ .queues = config->queues, .sectors = config->sectors };
	open_memory(&disk->guest, GUEST_BYTES);
	open_memory(&disk->host, HOST_BYTES);
	disk->data = calloc(512, config->sectors);
	REQUIRE(disk->data && config->queues <= DISK_QUEUES);
	disk->ram = (struct vqb_extent){ .addr = GUEST_BASE,
					 .len = GUEST_BYTES,
					 .host = disk->guest.base,
					 .access = VQB_READ | VQB_WRITE };
	disk->map = (struct vqb_memory){ .struct_size = sizeof(disk->map),
					 .count = 1,
					 .sorted = &disk->ram };
	negotiate(disk, config);
	for (uint32_t i = 0; i < disk->queues; i++)
		open_queue(disk, &disk->queue[i], config);
}

void disk_close(struct disk *disk)
{
	for (uint32_t i = 0; i < disk->queues; i++) {
		struct disk_queue *q = &disk->queue[i];

		tell(q, END);
		pthread_join(q->thread, NULL);
		vqb_notify_close(&q->kick);
		vqb_notify_close(&q->interrupt);
		sem_destroy(&q->obeyed);
	}
	free(disk->data);
	free(disk->guest.base);
	free(disk->host.base);
}

/* ---- ios ---- */

void io_open(struct io *io, struct disk *disk, uint32_t bytes)
{
	*io = (struct io){ .data = take(&disk->guest, bytes) };
	io->seg = (struct vqb_segment){ .addr = address_of(disk, io->data), .len = bytes };
	io->bio.vec = &io->seg;
	io->bio.nvec = 1;
	REQUIRE(!sem_init(&io->done, 0, 0));
}

static uint64_t word_of(uint64_t key, uint32_t at)
{
	return ((key << 24 | at) + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void io_write(struct io *io, uint64_t sector, uint64_t key)
{
	io->bio.op = VQB_BLK_OUT;
	io->bio.sector = sector;
	for (uint32_t at = 0; at < io->seg.len; at += 8) {
		uint64_t word = word_of(key, at);

		memcpy(io->data + at, &word, 8);
	}
}

void io_read(struct io *io, uint64_t sector)
{
	io->bio.op = VQB_BLK_IN;
	io->bio.sector = sector;
	memset(io->data, 0, io->seg.len);
}

bool io_has(const struct io *io, uint64_t key)
{
	for (uint32_t at = 0; at < io->seg.len; at += 8) {
		uint64_t word = word_of(key, at);

		if (memcmp(io->data + at, &word, 8) != 0)
			return false;
	}
	return true;
}

void io_finish(struct vqb_bio *bio)
{
	struct io *io = (struct io *)bio;

	io->returned++;
	sem_post(&io->done);
}

int32_t io_wait(struct io *io)
{
	while (sem_wait(&io->done))
		continue;
	return io->bio.status;
}
