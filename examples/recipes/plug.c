/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plug.c: one queue per thread and disk, and a plug over them.
 *
 * Two disks are striped: a stripe on the one, the next on the other. Each thread has a queue of its
 * own on either, so there is no lock. What it is going to submit it collects in a plug, in whatever
 * order it comes, and then empties the plug: all bios for the first queue as one list, all for the
 * second as another. Neighbours on a disk now follow each other: with the path REQUEST each list
 * becomes a few requests, and each queue gets one publish and one notification.
 */
#include <stdio.h>

#include "disk.h"

enum {
	DISKS = 2,
	THREADS = 2,
	STRIPES = 32, /* of each thread, each in a bio */
	ROUNDS = 100,
	BYTES = 4096,
	SECTORS = BYTES / 512,
	BIOS = 2 * ROUNDS * STRIPES * THREADS,
};

struct worker {
	struct disk_queue *q[DISKS]; /* this thread's alone */
	struct vqb_plug plug;
	struct io io[STRIPES];
	uint64_t number;
	uint32_t lists;
	pthread_t thread;
};

/* Stripe i of a thread's is on disk i % DISKS, where the thread's part begins at `number`. */
static uint64_t sector_of(const struct worker *w, uint32_t i)
{
	return (w->number * (STRIPES / DISKS) + i / DISKS) * SECTORS;
}

static struct disk_queue *queue_of(struct worker *w, const struct vqb_blk_driver *drv)
{
	for (uint32_t i = 0; i < DISKS; i++)
		if (w->q[i]->drv == drv)
			return w->q[i];
	return NULL;
}

/* Submits all that is plugged: a list, a publish and at most one notification for each queue. */
static void unplug(struct worker *w)
{
	struct vqb_bio *list, *refused;
	struct vqb_blk_driver *drv;

	while ((drv = vqb_plug_take(&w->plug, &list))) {
		REQUIRE(!vqb_blk_submit_list(drv, list, &refused) && !refused);
		disk_notify(queue_of(w, drv), vqb_blk_publish(drv));
		w->lists++;
	}
}

/* Until nothing is out on that queue. */
static void wait_for(struct disk_queue *q)
{
	struct vqb_bio *done, *next;
	uint32_t answer;

	for (;;) {
		vqb_blk_reap(q->drv, &done);
		for (; done; done = next) {
			next = done->next;
			REQUIRE(!done->status);
			io_finish(done);
		}
		answer = vqb_blk_turn(q->drv);
		disk_notify(q, answer);
		if (!vqb_blk_outstanding(q->drv))
			return;
		if (!(answer & VQB_MORE))
			REQUIRE(!vqb_notify_wait(&q->interrupt, -1));
	}
}

static void plug_and_wait(struct worker *w)
{
	for (uint32_t i = 0; i < STRIPES; i++)
		REQUIRE(!vqb_plug_add(&w->plug, w->q[i % DISKS]->drv, &w->io[i].bio));
	unplug(w);
	for (uint32_t i = 0; i < DISKS; i++)
		wait_for(w->q[i]);
}

static void *work(void *context)
{
	struct worker *w = context;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t key = (w->number * ROUNDS + round) * STRIPES;

		for (uint32_t i = 0; i < STRIPES; i++)
			io_write(&w->io[i], sector_of(w, i), key + i);
		plug_and_wait(w);
		for (uint32_t i = 0; i < STRIPES; i++)
			io_read(&w->io[i], sector_of(w, i));
		plug_and_wait(w);
		for (uint32_t i = 0; i < STRIPES; i++)
			REQUIRE(io_has(&w->io[i], key + i));
	}
	return NULL;
}

int main(void)
{
	static const struct disk_config config = { .sectors = THREADS * STRIPES / DISKS * SECTORS,
						   .queues = THREADS,
						   .ring = 64,
						   .depth = 16,
						   .path = VQB_PATH_REQUEST };
	static struct worker worker[THREADS];
	static struct disk disk[DISKS];
	struct vqb_requests_counters counters;
	uint64_t bios = 0, requests = 0;
	uint32_t lists = 0;

	for (uint32_t i = 0; i < DISKS; i++)
		disk_open(&disk[i], &config);
	for (uint32_t t = 0; t < THREADS; t++) {
		worker[t].number = t;
		for (uint32_t i = 0; i < DISKS; i++)
			worker[t].q[i] = &disk[i].queue[t];
		for (uint32_t i = 0; i < STRIPES; i++) /* in the memory of its disk */
			io_open(&worker[t].io[i], &disk[i % DISKS], BYTES);
		REQUIRE(!pthread_create(&worker[t].thread, NULL, work, &worker[t]));
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		pthread_join(worker[t].thread, NULL);
		lists += worker[t].lists;
		for (uint32_t i = 0; i < STRIPES; i++)
			REQUIRE(worker[t].io[i].returned == 2 * ROUNDS);
		for (uint32_t i = 0; i < DISKS; i++) {
			vqb_blk_driver_read_counters(worker[t].q[i]->drv, &counters);
			bios += counters.bios;
			requests += counters.requests;
		}
	}
	for (uint32_t i = 0; i < DISKS; i++)
		disk_close(&disk[i]);
	REQUIRE(bios == BIOS && requests < bios / 2);
	printf("plug: %u bios in %u lists and %u requests, each came back once, all data right\n",
	       (unsigned)bios, lists, (unsigned)requests);
	return 0;
}
