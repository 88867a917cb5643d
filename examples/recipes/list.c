/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.c: many threads in front of one queue, by a list without a lock.
 *
 * The queue has a thread, and nobody else calls the library. Whoever wants something done puts its
 * bio in front of a list, which takes one compare-and-swap and waits for nobody. The queue's thread
 * takes the whole list away, turns it round, since the newest one comes first, and submits it as
 * one batch: one publish, one notification at most, and with the path REQUEST one request for
 * neighbours.
 *
 * A bio is its submitter's until the library has it, so its `next` is free to link it until then.
 * Nothing is ever taken out of the middle, or one by one: so there is no ABA problem.
 *
 * The thread sleeps on one eventfd, which the device signals, and who found the list empty: as long
 * as it isn't, somebody else's signal is on its way, or was there before the list is next taken.
 */
#include <stdio.h>

#include "disk.h"

enum {
	THREADS = 8,
	ROUNDS = 250,
	IOS = 4,
	BYTES = 4096,
	SECTORS = BYTES / 512,
	BIOS = 2 * ROUNDS * THREADS * IOS
};

struct inbox {
	_Atomic(struct vqb_bio *) newest;
	struct vqb_notify *bell;
	atomic_uint rung; /* how often */
	atomic_bool stop;
};

struct submitter {
	struct inbox *inbox;
	struct io io[IOS];
	uint64_t number;
	pthread_t thread;
};

/* From any thread. What comes of it, a refusal included, is in its status when it comes back. */
static void push(struct inbox *inbox, struct vqb_bio *bio)
{
	struct vqb_bio *newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);

	do
		bio->next = newest;
	while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &newest, bio,
						      memory_order_release, memory_order_relaxed));
	/* The bio is no longer ours to look at. */
	if (newest)
		return;
	REQUIRE(!vqb_notify_signal(inbox->bell));
	atomic_fetch_add_explicit(&inbox->rung, 1, memory_order_relaxed);
}

/* All that was pushed, the oldest first. */
static struct vqb_bio *take_all(struct inbox *inbox)
{
	struct vqb_bio *bio = atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
	struct vqb_bio *list = NULL, *next;

	for (; bio; bio = next) {
		next = bio->next;
		bio->next = list;
		list = bio;
	}
	return list;
}

static void finish(struct vqb_bio *list)
{
	struct vqb_bio *next;

	for (; list; list = next) {
		next = list->next; /* once it is finished, the bio is somebody else's */
		io_finish(list);
	}
}

/* The queue's thread, for `inbox` and device. */
static void serve(struct inbox *inbox, struct disk_queue *q)
{
	struct vqb_bio *list, *refused, *done;
	uint32_t answer;

	while (!atomic_load(&inbox->stop)) {
		list = take_all(inbox);
		refused = NULL;
		if (list)
			vqb_blk_submit_list(q->drv, list, &refused);
		vqb_blk_reap(q->drv, &done);
		answer = vqb_blk_turn(q->drv);
		disk_notify(q, answer);
		finish(refused);
		finish(done);
		if (!(answer & VQB_MORE))
			REQUIRE(!vqb_notify_wait(&q->interrupt, -1));
	}
}

/* The IOs of a thread are neighbours on the disk. */
static uint64_t sector_of(const struct submitter *s, uint32_t i)
{
	return (s->number * IOS + i) * SECTORS;
}

static void push_and_wait(struct submitter *s)
{
	for (uint32_t i = 0; i < IOS; i++)
		push(s->inbox, &s->io[i].bio);
	for (uint32_t i = 0; i < IOS; i++)
		REQUIRE(!io_wait(&s->io[i]));
}

static void *work(void *context)
{
	struct submitter *s = context;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < IOS; i++)
			io_write(&s->io[i], sector_of(s, i), sector_of(s, i) * ROUNDS + round);
		push_and_wait(s);
		for (uint32_t i = 0; i < IOS; i++)
			io_read(&s->io[i], sector_of(s, i));
		push_and_wait(s);
		for (uint32_t i = 0; i < IOS; i++)
			REQUIRE(io_has(&s->io[i], sector_of(s, i) * ROUNDS + round));
	}
	return NULL;
}

static void *run_submitters(void *context)
{
	struct submitter *submitter = context;
	struct inbox *inbox = submitter->inbox;

	for (uint32_t i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&submitter[i].thread, NULL, work, &submitter[i]));
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(submitter[i].thread, NULL);
	atomic_store(&inbox->stop, true);
	vqb_notify_signal(inbox->bell);
	return NULL;
}

int main(void)
{
	static const struct disk_config config = { .sectors = THREADS * IOS * SECTORS,
						   .queues = 1,
						   .ring = 16,
						   .depth = 16,
						   .path = VQB_PATH_REQUEST };
	static struct submitter submitter[THREADS];
	static struct disk disk;
	struct inbox inbox = { .bell = &disk.queue[0].interrupt };
	struct vqb_requests_counters counters;
	pthread_t others;

	disk_open(&disk, &config);
	for (uint32_t i = 0; i < THREADS; i++) {
		submitter[i].inbox = &inbox;
		submitter[i].number = i;
		for (uint32_t k = 0; k < IOS; k++)
			io_open(&submitter[i].io[k], &disk, BYTES);
	}
	REQUIRE(!pthread_create(&others, NULL, run_submitters, submitter));
	serve(&inbox, &disk.queue[0]); /* this thread is the queue's */
	pthread_join(others, NULL);

	for (uint32_t i = 0; i < THREADS * IOS; i++)
		REQUIRE(submitter[i / IOS].io[i % IOS].returned == 2 * ROUNDS);
	REQUIRE(!vqb_blk_outstanding(disk.queue[0].drv));
	vqb_blk_driver_read_counters(disk.queue[0].drv, &counters);
	REQUIRE(counters.bios == counters.done && counters.bios == BIOS);
	disk_close(&disk);
	printf("list: %u bios of %d threads, each came back once, all data right; %u wake-ups, "
	       "%u requests\n",
	       (unsigned)counters.bios, THREADS, inbox.rung, (unsigned)counters.requests);
	return 0;
}
