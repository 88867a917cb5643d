/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: what every recipe stands on: a disk with some queues, in one process. Guest memory,
 * rings, the block driver of each queue, and a thread for each queue that is its device, over a
 * disk in memory. In a program of yours a transport, such as virtio-pci, takes this file's place.
 *
 * What fails here can't be helped in an example: it says so and exits with 1.
 */
#ifndef RECIPES_DISK_H
#define RECIPES_DISK_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <vqblk/host/notify.h>
#include <vqblk/vqblk.h>

/* Says what was expected, and exits with 1, unless it holds. */
#define REQUIRE(holds) ((holds) ? (void)0 : disk_fail(__FILE__, __LINE__, #holds))
void disk_fail(const char *file, int line, const char *what);

/* ---- the disk and its queues ---- */

enum { DISK_QUEUES = 4 }; /* at most */

struct disk_queue {
	/* What a recipe uses: one thread at a time. */
	struct vqb_blk_driver *drv;
	struct vqb_driver *ring;
	struct vqb_notify interrupt; /* the device signals it; anybody else may, too */
	/* The rest is disk.c's. */
	struct vqb_notify kick;
	struct vqb_ring at;
	struct vqb_ring_at seen_at; /* the same, as the device finds it */
	struct vqb_device *end;
	struct vqb_blk_queue *served;
	pthread_t thread;
	atomic_int order;
	sem_t obeyed;
};

struct disk_memory {
	unsigned char *base;
	size_t used, bytes;
};

struct disk {
	struct disk_queue queue[DISK_QUEUES];
	uint32_t queues;
	unsigned char *data; /* what is on it */
	uint64_t sectors;
	struct disk_memory guest, host; /* where buffers and rings are; where objects are */
	struct vqb_extent ram;
	struct vqb_memory map;
	struct vqb_blk_device *device;
	struct vqb_blk_limits limits;
	uint64_t features;
};

struct disk_config {
	uint32_t sectors;
	uint32_t queues;
	uint32_t ring;  /* entries: a power of two */
	uint32_t depth; /* requests in flight, at most */
	uint32_t path;  /* enum vqb_path */
};

void disk_open(struct disk *disk, const struct disk_config *config);
void disk_close(struct disk *disk);

/* Notifies the device, if publish or turn have answered that it must be. */
void disk_notify(struct disk_queue *q, uint32_t answer);

/*
 * What a transport does to a device: reset it (when this returns, nothing of the guest's memory is
 * touched any more), and start it, on a ring that was set up anew. And what should not happen: it
 * hangs, and serves nothing until it is reset, or wakes up.
 */
void disk_reset(struct disk_queue *q);
void disk_start(struct disk_queue *q);
void disk_hang(struct disk_queue *q);
void disk_wake(struct disk_queue *q);

/* ---- a bio, with a buffer, that somebody waits for ---- */

struct io {
	struct vqb_bio bio; /* the first member: what is handed back is the io */
	struct vqb_segment seg;
	unsigned char *data;
	uint32_t returned; /* how often it was handed back */
	sem_t done;
};

/* With a buffer of `bytes` in guest memory. One thread at a time for each disk. */
void io_open(struct io *io, struct disk *disk, uint32_t bytes);

/* A write of what `key` stands for, or a read, from `sector` on. */
void io_write(struct io *io, uint64_t sector, uint64_t key);
void io_read(struct io *io, uint64_t sector);

/* Has it brought what `key` stands for? */
bool io_has(const struct io *io, uint64_t key);

/* It has been handed back: wakes whoever waits. From then on it is that one's. */
void io_finish(struct vqb_bio *bio);

/* Waits for that, and answers with its status. */
int32_t io_wait(struct io *io);

#endif
