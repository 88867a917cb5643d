/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeout.c: who waits for a bio has had enough.
 *
 * Cancel it. VQB_OK: it was in time, that is its completion, and nothing of it will ever reach the
 * disk. VQB_E_LATE: the device has it, and may read or write its buffer at any moment: there is
 * nothing to do but to go on waiting. There is no way to take a single request back from a device.
 *
 * A device that never answers has to be reset, and that takes back everything at once: reset it,
 * so that it lets go of all buffers; abandon, which hands every bio back; set up the ring anew,
 * and submit again what is still wanted. The same three steps cure a ring that is BROKEN, and a
 * device that says DEVICE_NEEDS_RESET.
 */
#include <stdio.h>
#include <time.h>

#include "disk.h"

enum {
	IOS = 12,
	DEPTH = 4,
	PATIENCE = 30,
	TWICE = 2 * PATIENCE,
	ENOUGH = 20000, /* ms, all three */
	BYTES = 4096,
	SECTORS = BYTES / 512,
};

static const uint64_t never = UINT64_MAX;

struct timed {
	struct io io;
	uint64_t deadline; /* ms */
	bool late;         /* it is over, but the device has it */
	uint32_t submitted;
	uint64_t on_disk, key; /* what its place on the disk held before; what it writes */
};

static struct timed timed[IOS];
static unsigned written, cancelled, undecided;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Gives up on those whose time is over. */
static void expire(struct disk_queue *q)
{
	for (struct timed *t = timed; t < timed + IOS; t++) {
		if (t->io.returned == t->submitted || t->late || now() < t->deadline)
			continue;
		t->late = vqb_blk_cancel(q->drv, &t->io.bio) == VQB_E_LATE;
		if (!t->late)
			io_finish(&t->io.bio);
	}
}

static void take_back(struct disk_queue *q)
{
	struct vqb_bio *done, *next;

	vqb_blk_reap(q->drv, &done);
	for (; done; done = next) {
		next = done->next;
		io_finish(done);
	}
}

/*
 * Serves the queue until nothing is out (VQB_OK), until it can't go on (VQB_E_BROKEN and
 * VQB_E_NEEDS_RESET), or until `patience` is at an end (VQB_E_AGAIN).
 */
static int32_t serve(struct disk_queue *q, uint64_t patience)
{
	uint64_t until = now() + patience;
	uint32_t answer;

	for (;;) {
		take_back(q);
		answer = vqb_blk_turn(q->drv); /* what waited may have been sent */
		disk_notify(q, answer);
		if (vqb_driver_state(q->ring))
			return vqb_driver_state(q->ring);
		expire(q);
		if (!vqb_blk_outstanding(q->drv))
			return VQB_OK;
		if (now() > until)
			return VQB_E_AGAIN;
		if (!(answer & VQB_MORE))
			vqb_notify_wait(&q->interrupt, 1); /* a timer, in a program of yours */
	}
}

/* The cure for a device that doesn't answer, or has lost its way. */
static void recover(struct disk_queue *q)
{
	struct vqb_bio *list, *next, *again = NULL, **tail = &again;

	disk_reset(q); /* from here on it touches no buffer */
	REQUIRE(!vqb_driver_reset(q->ring, NULL));
	REQUIRE(!vqb_blk_abandon(q->drv, &list));
	REQUIRE(!vqb_driver_reset(q->ring, &q->at));
	disk_start(q);
	/*
	 * AGAIN: nobody knows whether it was carried out. To write the same once more does no harm,
	 * as nothing else was written there meanwhile. CANCELLED: it never reached the device. Who
	 * has given up is told so, and has the buffer back; all others don't notice a thing.
	 */
	for (; list; list = next) {
		next = list->next;
		if (((struct timed *)list)->late ||
		    (list->status != VQB_E_AGAIN && list->status != VQB_E_CANCELLED)) {
			io_finish(list);
			continue;
		}
		*tail = list;
		tail = &list->next;
	}
	*tail = NULL;
	if (again)
		REQUIRE(!vqb_blk_submit_list(q->drv, again, NULL));
	disk_notify(q, vqb_blk_publish(q->drv));
}

static uint64_t sector_of(uint32_t i)
{
	return (uint64_t)i * SECTORS;
}

/* A write for each; every second one has no deadline, or none has. */
static void submit_all(struct disk_queue *q, bool deadlines)
{
	static uint64_t key;

	for (uint32_t i = 0; i < IOS; i++) {
		struct timed *t = &timed[i];

		t->deadline = deadlines && i % 2 == 0 ? now() + PATIENCE : never;
		t->late = false;
		t->key = ++key;
		io_write(&t->io, sector_of(i), t->key);
		REQUIRE(!vqb_blk_submit(q->drv, &t->io.bio));
		t->submitted++;
	}
	disk_notify(q, vqb_blk_publish(q->drv));
}

/* What the status of each write says is what is on the disk. */
static void verify(struct disk_queue *q)
{
	for (uint32_t i = 0; i < IOS; i++) {
		struct timed *t = &timed[i];
		int32_t status = t->io.bio.status;

		REQUIRE(t->io.returned == t->submitted);
		t->deadline = never;
		io_read(&t->io, sector_of(i));
		REQUIRE(!vqb_blk_submit(q->drv, &t->io.bio));
		t->submitted++;
		REQUIRE(!serve(q, ENOUGH) && !t->io.bio.status);
		REQUIRE(status == VQB_OK || status == VQB_E_CANCELLED || status == VQB_E_AGAIN);
		if (status == VQB_OK || (status == VQB_E_AGAIN && io_has(&t->io, t->key)))
			t->on_disk = t->key;
		REQUIRE(io_has(&t->io, t->on_disk));
		written += status == VQB_OK;
		cancelled += status == VQB_E_CANCELLED;
		undecided += status == VQB_E_AGAIN;
	}
}

/* A device that writes nonsense into the used ring: more completions than there are requests. */
static void scribble(struct disk_queue *q)
{
	struct vqb_le16 *index = (struct vqb_le16 *)q->at.used + 1;

	*index = vqb_to_le16((uint16_t)(vqb_from_le16(*index) + 1000));
}

int main(void)
{
	static const struct disk_config config = {
		.sectors = IOS * SECTORS, .queues = 1, .ring = 16, .depth = DEPTH
	};
	static struct disk disk;
	struct disk_queue *q = &disk.queue[0];

	disk_open(&disk, &config);
	for (uint32_t i = 0; i < IOS; i++)
		io_open(&timed[i].io, &disk, BYTES);

	/* All is well. */
	submit_all(q, false);
	REQUIRE(serve(q, ENOUGH) == VQB_OK);
	verify(q);

	/*
	 * Slow: two of those with a deadline were sent, and are late; the other four are cancelled.
	 */
	disk_hang(q);
	submit_all(q, true);
	REQUIRE(serve(q, TWICE) == VQB_E_AGAIN);
	disk_wake(q);
	REQUIRE(serve(q, ENOUGH) == VQB_OK);
	verify(q);
	REQUIRE(written == 20 && cancelled == 4 && undecided == 0);

	/* Never an answer: the same, but the two that are late end undecided. */
	disk_hang(q);
	submit_all(q, true);
	REQUIRE(serve(q, TWICE) == VQB_E_AGAIN);
	recover(q);
	REQUIRE(serve(q, ENOUGH) == VQB_OK);
	verify(q);
	REQUIRE(written == 26 && cancelled == 8 && undecided == 2);

	/*
	 * DEVICE_NEEDS_RESET, which the transport has seen: whoever has no deadline waits it out.
	 */
	disk_hang(q);
	submit_all(q, false);
	vqb_driver_needs_reset(q->ring);
	REQUIRE(serve(q, PATIENCE) == VQB_E_NEEDS_RESET);
	recover(q);
	REQUIRE(serve(q, ENOUGH) == VQB_OK);
	verify(q);

	/* And a ring that can't be trusted any more. */
	disk_hang(q);
	submit_all(q, false);
	scribble(q);
	REQUIRE(serve(q, PATIENCE) == VQB_E_BROKEN);
	recover(q);
	REQUIRE(serve(q, ENOUGH) == VQB_OK);
	verify(q);
	REQUIRE(written == 50 && cancelled == 8 && undecided == 2);
	disk_close(&disk);
	printf("timeout: %u writes done, %u cancelled, %u undecided; 3 resets; each came back once, "
	       "the disk is as their statuses say\n",
	       written, cancelled, undecided);
	return 0;
}
