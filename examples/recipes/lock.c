/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c: many threads in front of one queue, by a lock.
 *
 * A block driver belongs to one thread at a time, and a lock is one way to say which. Inside it are
 * the calls to the library and nothing else: the device is notified, and whoever waits is woken,
 * after it was let go. Whoever submits waits for its own bio; one thread takes back what is done.
 *
 * The other way, without waiting for each other, is list.c.
 */
#include <stdio.h>

#include "disk.h"

enum { THREADS = 8, ROUNDS = 1000, BYTES = 4096, SECTORS = BYTES / 512 };

/* The queue, and who may use it. */
struct shared {
	pthread_mutex_t lock;
	struct disk_queue *q;
	atomic_bool stop;
};

struct submitter {
	struct shared *shared;
	struct io io;
	uint64_t number;
	pthread_t thread;
};

/* From any thread. VQB_OK: the bio comes back through take_back, in some other thread. */
static int32_t submit(struct shared *shared, struct vqb_bio *bio)
{
	uint32_t answer;
	int32_t status;

	pthread_mutex_lock(&shared->lock);
	status = vqb_blk_submit(shared->q->drv, bio);
	answer = vqb_blk_publish(shared->q->drv);
	pthread_mutex_unlock(&shared->lock);
	disk_notify(shared->q, answer); /* costs an exit, so not while others wait for the lock */
	return status;
}

/* Runs when the device has interrupted. */
static void take_back(struct shared *shared)
{
	struct vqb_bio *done, *next;
	uint32_t answer;

	do {
		pthread_mutex_lock(&shared->lock);
		vqb_blk_reap(shared->q->drv, &done);
		answer = vqb_blk_turn(shared->q->drv); /* reap may have sent what waited */
		pthread_mutex_unlock(&shared->lock);
		disk_notify(shared->q, answer);
		for (; done; done = next) {
			next = done->next; /* once it is finished, the bio is somebody else's */
			io_finish(done);
		}
	} while (answer & VQB_MORE);
}

static void *complete(void *context)
{
	struct shared *shared = context;

	while (!atomic_load(&shared->stop)) {
		take_back(shared);
		REQUIRE(!vqb_notify_wait(&shared->q->interrupt, -1));
	}
	return NULL;
}

/* Writes to sectors of its own and reads them back, again and again. */
static void *work(void *context)
{
	struct submitter *s = context;
	uint64_t sector = s->number * SECTORS;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t key = s->number * ROUNDS + round;

		io_write(&s->io, sector, key);
		REQUIRE(!submit(s->shared, &s->io.bio));
		REQUIRE(!io_wait(&s->io));
		io_read(&s->io, sector);
		REQUIRE(!submit(s->shared, &s->io.bio));
		REQUIRE(!io_wait(&s->io));
		REQUIRE(io_has(&s->io, key));
	}
	return NULL;
}

int main(void)
{
	static const struct disk_config config = {
		.sectors = THREADS * SECTORS, .queues = 1, .ring = 16, .depth = 4
	};
	static struct submitter submitter[THREADS];
	static struct disk disk;
	struct shared shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .q = &disk.queue[0] };
	pthread_t completer;

	disk_open(&disk, &config);
	REQUIRE(!pthread_create(&completer, NULL, complete, &shared));
	for (uint32_t i = 0; i < THREADS; i++) {
		submitter[i].shared = &shared;
		submitter[i].number = i;
		io_open(&submitter[i].io, &disk, BYTES);
		REQUIRE(!pthread_create(&submitter[i].thread, NULL, work, &submitter[i]));
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(submitter[i].thread, NULL);
	atomic_store(&shared.stop, true);
	vqb_notify_signal(&disk.queue[0].interrupt);
	pthread_join(completer, NULL);

	for (uint32_t i = 0; i < THREADS; i++)
		REQUIRE(submitter[i].io.returned == 2 * ROUNDS);
	REQUIRE(!vqb_blk_outstanding(disk.queue[0].drv));
	disk_close(&disk);
	printf("lock: %d bios of %d threads on one queue, each came back once, all data right\n",
	       2 * ROUNDS * THREADS, THREADS);
	return 0;
}
