/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c: a queue goes from one thread to another, with bios on their way.
 *
 * Who hands it over: pays what it owes (what was submitted is published, the device notified if
 * publish says so, as nobody else knows of that answer), asks for no more interrupts, and then lets
 * go, by something that releases: a semaphore here, or a lock, or a store in release order. After
 * that it doesn't touch the queue, nor any bio that is still out.
 *
 * Who takes it over: acquires by the same thing, and looks before it sleeps. An interrupt that came
 * in between went to somebody else: reap what is there, and turn, which asks for the next interrupt
 * and answers VQB_MORE if anything came before that. So nothing is lost. Bios come back to
 * whoever has the queue then, whoever submitted them.
 */
#include <stdio.h>

#include "disk.h"

enum { THREADS = 3, TERMS = 300, IOS = 8, BYTES = 4096, SECTORS = BYTES / 512 };

struct owner {
	struct disk_queue *q;
	struct owner *next;
	sem_t turn; /* the queue is this one's */
	/* Whoever has the queue may look at these, of all owners. */
	struct io io[IOS];
	uint32_t submitted;
	uint32_t abroad; /* bios that another one took back */
	uint64_t number;
	pthread_t thread;
};

static void hand_over(struct owner *me)
{
	disk_notify(me->q, vqb_blk_publish(me->q->drv));
	vqb_driver_disarm(me->q->ring);
	vqb_notify_clear(&me->q->interrupt); /* one that comes now is for nobody */
	sem_post(&me->next->turn);
}

static void take_over(struct owner *me)
{
	while (sem_wait(&me->turn))
		continue;
}

static bool is_mine(const struct owner *me, const struct vqb_bio *bio)
{
	const struct io *io = (const struct io *)bio;

	return io >= me->io && io < me->io + IOS;
}

static void take_back(struct owner *me)
{
	struct vqb_bio *done, *next;

	vqb_blk_reap(me->q->drv, &done);
	for (; done; done = next) {
		next = done->next;
		REQUIRE(!done->status);
		me->abroad += !is_mine(me, done);
		io_finish(done);
	}
}

static bool all_back(const struct owner *owner)
{
	for (uint32_t i = 0; i < IOS; i++)
		if (owner->io[i].returned != owner->submitted)
			return false;
	return true;
}

/* Serves the queue until this owner's bios are back: first looks, and then sleeps. */
static void wait_for(struct owner *me, const struct owner *whose)
{
	uint32_t answer;

	for (;;) {
		take_back(me);
		answer = vqb_blk_turn(me->q->drv);
		disk_notify(me->q, answer);
		if (all_back(whose))
			return;
		if (!(answer & VQB_MORE))
			REQUIRE(!vqb_notify_wait(&me->q->interrupt, 10000));
	}
}

/* A term writes, the next one reads it back, and so on. */
static void submit(struct owner *me, uint64_t term)
{
	for (uint32_t i = 0; i < IOS; i++) {
		uint64_t sector = (me->number * IOS + i) * SECTORS, key = sector * TERMS + term;

		if (term % 2 == 0)
			io_write(&me->io[i], sector, key);
		else
			io_read(&me->io[i], sector);
		REQUIRE(!vqb_blk_submit(me->q->drv, &me->io[i].bio));
	}
	me->submitted++;
}

static void check_reads(struct owner *me, uint64_t term)
{
	for (uint32_t i = 0; i < IOS; i++) {
		uint64_t sector = (me->number * IOS + i) * SECTORS, key = sector * TERMS + term - 1;

		REQUIRE(io_has(&me->io[i], key));
	}
}

static void *work(void *context)
{
	struct owner *me = context;

	for (uint64_t term = 0; term < TERMS; term++) {
		take_over(me);
		wait_for(me, me);
		if (term && (term - 1) % 2)
			check_reads(me, term - 1);
		submit(me, term);
		hand_over(me);
	}
	return NULL;
}

int main(void)
{
	static const struct disk_config config = {
		.sectors = THREADS * IOS * SECTORS, .queues = 1, .ring = 16, .depth = 4
	};
	static struct owner owner[THREADS];
	static struct disk disk;
	uint32_t abroad = 0;

	disk_open(&disk, &config);
	for (uint32_t i = 0; i < THREADS; i++) {
		owner[i].q = &disk.queue[0];
		owner[i].number = i;
		owner[i].next = &owner[(i + 1) % THREADS];
		REQUIRE(!sem_init(&owner[i].turn, 0, 0));
		for (uint32_t k = 0; k < IOS; k++)
			io_open(&owner[i].io[k], &disk, BYTES);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&owner[i].thread, NULL, work, &owner[i]));
	sem_post(&owner[0].turn); /* to the first one, and from the last one back again */
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(owner[i].thread, NULL);
	take_over(&owner[0]);
	for (uint32_t i = 0; i < THREADS; i++) {
		wait_for(&owner[0], &owner[i]);
		check_reads(&owner[i], TERMS - 1);
		abroad += owner[i].abroad;
		REQUIRE(owner[i].submitted == TERMS);
	}
	REQUIRE(!vqb_blk_outstanding(disk.queue[0].drv) && abroad);
	disk_close(&disk);
	printf("handover: %d handovers, %d bios, %u of them came back to another thread; each came "
	       "back once, all data right\n",
	       THREADS * TERMS, THREADS * TERMS * IOS, abroad);
	return 0;
}
