/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * readme.c: runs the code that README.md shows: the driver side and the device side on one ring,
 * each in a thread of its own that sleeps where the text says so; and the block driver's, with a
 * whole device in the other thread.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vqblk/vqblk.h>

#include "readme.h"

enum { SIZE = 8, ROUNDS = 1000, SECONDS = 10 };

#define BASE UINT64_C(0x40000000)

static _Alignas(64) unsigned char guest[4096];
static _Alignas(64) unsigned char drv_mem[VQB_DRIVER_BYTES(SIZE)], dev_mem[VQB_DEVICE_BYTES(SIZE)];
static sem_t kick, interrupt;
static int over;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "readme: %s\n", what);
	exit(1);
}

static void sleep_on(sem_t *bell, const char *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECONDS;
	check(!sem_timedwait(bell, &until), what);
}

void notify_device(void)
{
	sem_post(&kick);
}

void interrupt_driver(void)
{
	sem_post(&interrupt);
}

void wait_for_interrupt(void)
{
	sleep_on(&interrupt, "the driver's code was not woken");
}

/* Answers with the bytes it was asked with, turned round. */
uint32_t handle(const struct vqb_chain *chain)
{
	const unsigned char *from = chain->piece[0].base;
	unsigned char *to = chain->piece[1].base;

	for (unsigned i = 0; i < 16; i++)
		to[i] = from[15 - i];
	return 16;
}

static void *device_thread(void *dev)
{
	for (;;) {
		sleep_on(&kick, "the device's code was not woken");
		if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
			return NULL;
		check(!serve_queue(dev), "the device gave up");
	}
}

static void run(uint64_t features)
{
	struct vqb_extent ram = { BASE, sizeof(guest), guest, VQB_READ | VQB_WRITE, 0 };
	struct vqb_memory map = {
		.struct_size = sizeof(map), .generation = 1, .count = 1, .sorted = &ram
	};
	struct vqb_driver_config drv_config = { .struct_size = sizeof(drv_config) };
	struct vqb_device_config dev_config = { .struct_size = sizeof(dev_config), .memory = &map };
	struct vqb_segment seg[2] = { { .addr = BASE + 2048, .len = 16 },
				      { .addr = BASE + 3072, .len = 16 } };
	struct vqb_driver *drv;
	struct vqb_device *dev;
	pthread_t thread;

	drv_config.ring.size = dev_config.ring.size = SIZE;
	drv_config.ring.features = dev_config.ring.features = features;
	check(!vqb_ring_place(&drv_config.ring, guest, 4), "ring");
	check(!vqb_ring_place_at(&dev_config.ring, BASE, 4), "ring");
	check(!vqb_driver_init(drv_mem, sizeof(drv_mem), &drv_config, &drv), "driver");
	check(!vqb_device_init(dev_mem, sizeof(dev_mem), &dev_config, &dev), "device");
	check(!sem_init(&kick, 0, 0) && !sem_init(&interrupt, 0, 0), "semaphores");
	over = 0;
	check(!pthread_create(&thread, NULL, device_thread, dev), "thread");
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t written = 0;

		memset(guest + 2048, (int)(i & 0xff), 16);
		guest[2048] = 0x55;
		check(!exchange(drv, seg, &written) && written == 16, "no answer");
		check(guest[3072 + 15] == 0x55 && guest[3072] == (i & 0xff), "a wrong answer");
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	sem_post(&kick);
	pthread_join(thread, NULL);
}

/* ---- the disk ---- */

enum { RING = 16, AREA_AT = 4096, DATA_AT = 8192, DISK_BYTES = 65536 };

static _Alignas(4096) unsigned char ram[16384];
static unsigned char store[DISK_BYTES];
static _Alignas(64) unsigned char mem[6][8192];

static void *disk_thread(void *queue)
{
	uint32_t answer;

	for (;;) {
		sleep_on(&kick, "the disk was not woken");
		if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
			return NULL;
		do {
			answer = vqb_blk_queue_run(queue, RING);
			if (answer & VQB_NOTIFY)
				interrupt_driver();
		} while (answer & VQB_MORE);
	}
}

/* A disk in memory behind a ring: its driver is what is answered, its queue *queue. */
static struct vqb_blk_driver *open_disk(struct vqb_blk_queue **queue)
{
	static const struct vqb_extent all = { BASE, sizeof(ram), ram, VQB_READ | VQB_WRITE, 0 };
	static const struct vqb_memory map = { .struct_size = sizeof(map),
					       .count = 1,
					       .sorted = &all };
	struct vqb_backend_memory_config memory = { .struct_size = sizeof(memory),
						    .access = VQB_READ | VQB_WRITE,
						    .disk = store,
						    .bytes = DISK_BYTES };
	struct vqb_blk_shape shape = { .struct_size = sizeof(shape), .ring_size = RING };
	struct vqb_blk_device_config device = { .struct_size = sizeof(device) };
	struct vqb_driver_config drv = { .struct_size = sizeof(drv) };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &map };
	struct vqb_blk_queue_config serve = { .struct_size = sizeof(serve) };
	struct vqb_blk_driver_config use = { .struct_size = sizeof(use) };
	struct vqb_blk_limits limits;
	struct vqb_blk_device *blk;
	struct vqb_blk_driver *disk;

	check(!vqb_backend_memory_init(mem[0], sizeof(mem[0]), &memory, &serve.backend), "memory");
	check(!vqb_blk_limits_announce(&serve.backend->caps, &shape, &limits), "limits");
	device.limits = &limits;
	device.backend = &serve.backend->caps;
	device.features = VQB_BLK_DEVICE_FEATURES | VQB_RING_DEFAULTS;
	check(!vqb_blk_device_init(mem[1], sizeof(mem[1]), &device, &blk), "device");
	serve.features = vqb_blk_features_accept(vqb_blk_device_features(blk),
						 VQB_BLK_DRIVER_FEATURES | VQB_RING_DEFAULTS);
	check(!vqb_blk_device_accept(blk, serve.features), "features");
	serve.device = blk;

	drv.ring.size = dev.ring.size = RING;
	drv.ring.features = dev.ring.features = serve.features;
	check(!vqb_ring_place(&drv.ring, ram, 64) && !vqb_ring_place_at(&dev.ring, BASE, 64),
	      "ring");
	check(!vqb_driver_init(mem[2], sizeof(mem[2]), &drv, &use.ring), "driver");
	check(!vqb_device_init(mem[3], sizeof(mem[3]), &dev, &serve.ring), "device's end");
	serve.requests = serve.pieces = RING;
	check(!vqb_blk_queue_init(mem[4], sizeof(mem[4]), &serve, queue), "queue");

	use.depth = RING;
	use.area = (struct vqb_dma){ ram + AREA_AT, BASE + AREA_AT, VQB_BLK_AREA_BYTES(RING, 0) };
	use.features = serve.features;
	use.limits = &limits;
	check(!vqb_blk_driver_init(mem[5], sizeof(mem[5]), &use, &disk), "block driver");
	return disk;
}

static void run_disk(void)
{
	struct vqb_segment seg = { .addr = BASE + DATA_AT, .len = 4096 };
	struct vqb_bio bio = { .vec = &seg, .nvec = 1 };
	struct vqb_requests_counters count;
	struct vqb_blk_queue *queue;
	struct vqb_blk_driver *disk = open_disk(&queue);
	pthread_t thread;

	check(!sem_init(&kick, 0, 0) && !sem_init(&interrupt, 0, 0), "semaphores");
	over = 0;
	check(!pthread_create(&thread, NULL, disk_thread, queue), "thread");
	for (unsigned i = 0; i < ROUNDS; i++) {
		bio.sector = i % (DISK_BYTES / 4096) * 8;
		memset(ram + DATA_AT, (int)(i & 0xff), 4096);
		check(!write_durably(disk, &bio), "not written");
		check(store[bio.sector * 512 + 4095] == (i & 0xff), "written wrong");
	}
	vqb_blk_driver_read_counters(disk, &count);
	check(count.flushes == ROUNDS, "not flushed");
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	sem_post(&kick);
	pthread_join(thread, NULL);
}

int main(void)
{
	run(VQB_FEATURE(VQB_F_VERSION_1));
	run(VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_F_EVENT_IDX));
	run_disk();
	return 0;
}
