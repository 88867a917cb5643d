/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * readme.c: runs the code that README.md shows: the driver side and the device side on one ring,
 * each in a thread of its own that sleeps where the text says so.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vqblk/device.h>
#include <vqblk/driver.h>

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

int main(void)
{
	run(VQB_FEATURE(VQB_F_VERSION_1));
	run(VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_F_EVENT_IDX));
	return 0;
}
