/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device with a ring of its own, which is no virtqueue, puts a coalescer in front of a backend:
 * nothing else of the library is needed. The device proper is the first part of this file.
 */
#include <string.h>

#include <vqblk/blk.h>
#include <vqblk/coalesce.h>

/* ---- the device ---- */

struct slot {
	struct vqb_io io; /* the first member */
	struct vqb_piece piece;
	int finished;
};

struct my_device {
	struct vqb_coalescer *c;
	struct vqb_backend *backend;
	struct vqb_io_list waiting; /* for room in the backend, in order */
	struct slot *ring;
	uint32_t size, head, tail; /* the guest's and ours, running freely */
};

/* Submits as much as the backend takes. What it refuses for good has ended with that answer. */
static void push(struct my_device *d, struct vqb_io_list *ended)
{
	struct vqb_io *io;
	int32_t status;

	while ((io = d->waiting.first)) {
		struct vqb_io *next = io->next;

		status = vqb_backend_submit(d->backend, io);
		if (status == VQB_E_NOSPC)
			return;
		d->waiting.first = next;
		if (status) {
			io->result = status;
			vqb_io_list_add(ended, io);
		}
	}
}

/* The list `more` goes behind what waits, or in front of it. */
static void queue(struct my_device *d, struct vqb_io *more, int in_front)
{
	struct vqb_io *rest = in_front ? vqb_io_list_take(&d->waiting) : NULL, *io, *next;

	for (io = more; io; io = next) {
		next = io->next;
		vqb_io_list_add(&d->waiting, io);
	}
	for (io = rest; io; io = next) {
		next = io->next;
		vqb_io_list_add(&d->waiting, io);
	}
}

static void end(struct my_device *d, struct vqb_io *ended)
{
	struct vqb_io_list done = { NULL, NULL }, retry = { NULL, NULL };
	struct vqb_io *io, *next;

	for (io = ended; io; io = next) {
		next = io->next;
		vqb_coalescer_done(d->c, io, &done, &retry);
	}
	queue(d, vqb_io_list_take(&retry), 1);
	for (io = vqb_io_list_take(&done); io; io = io->next)
		((struct slot *)io)->finished = 1;
}

static void serve(struct my_device *d)
{
	struct vqb_io_list refused = { NULL, NULL };
	int32_t status = VQB_OK;

	end(d, vqb_backend_poll(d->backend));
	while (d->tail != d->head) {
		status = vqb_coalescer_add(d->c, &d->ring[d->tail % d->size].io);
		if (status == VQB_E_NOSPC)
			queue(d, vqb_coalescer_flush(d->c), 0);
		else if (status)
			break; /* VQB_E_BUSY: it waits, and so do those behind it */
		else
			d->tail++;
	}
	queue(d, vqb_coalescer_flush(d->c), 0);
	push(d, &refused);
	end(d, vqb_io_list_take(&refused));
}

/* ---- its test ---- */

#include "unit.h"

enum { BLOCKS = 64, BLOCK = 16 };

static void ask(struct my_device *d, uint8_t op, uint32_t block, uint8_t *data)
{
	struct slot *slot = &d->ring[d->head++ % d->size];

	memset(slot, 0, sizeof(*slot));
	slot->piece.base = data;
	slot->piece.len = BLOCK;
	slot->io.op = op;
	slot->io.piece = &slot->piece;
	slot->io.pieces = 1;
	slot->io.offset = block * BLOCK;
	slot->io.bytes = BLOCK;
}

static void wait_for_all(struct my_device *d, uint32_t n)
{
	for (uint32_t round = 0; round < 100; round++)
		serve(d);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(d->ring[i].finished);
		assert_int_equal(d->ring[i].io.result, BLOCK);
	}
}

static void test_a_device_with_a_ring_of_its_own(void **state)
{
	static _Alignas(VQB_ALIGN) uint8_t mem[VQB_COALESCER_BYTES(32, 32, 64)];
	static _Alignas(VQB_ALIGN) uint8_t backend_mem[VQB_BACKEND_MEMORY_BYTES];
	static uint8_t disk[BLOCKS * BLOCK], data[BLOCKS * BLOCK], back[BLOCKS * BLOCK];
	static struct slot ring[BLOCKS];
	struct vqb_backend_memory_config disk_config = { .struct_size = sizeof(disk_config),
							 .access = VQB_READ | VQB_WRITE,
							 .disk = disk,
							 .bytes = sizeof(disk) };
	struct vqb_coalescer_config config = { .struct_size = sizeof(config), .pieces = 64 };
	struct my_device d = { .ring = ring, .size = BLOCKS };
	struct vqb_coalescer_counters count;

	(void)state;
	assert_int_equal(
		vqb_backend_memory_init(backend_mem, sizeof(backend_mem), &disk_config, &d.backend),
		VQB_OK);
	config.max_pieces = d.backend->caps.max_pieces;
	config.max_transfer = d.backend->caps.max_transfer;
	assert_int_equal(vqb_coalescer_init(mem, sizeof(mem), &config, &d.c), VQB_OK);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	/* Each block once, from the end: two batches. */
	for (uint32_t i = BLOCKS; i-- > 0;)
		ask(&d, VQB_BLK_OUT, i, data + i * BLOCK);
	wait_for_all(&d, BLOCKS);
	assert_memory_equal(disk, data, sizeof(disk));
	d.head = d.tail = 0;
	for (uint32_t i = 0; i < BLOCKS; i++)
		ask(&d, VQB_BLK_IN, i, back + i * BLOCK);
	wait_for_all(&d, BLOCKS);
	assert_memory_equal(back, data, sizeof(back));
	vqb_coalescer_read_counters(d.c, &count);
	assert_int_equal(count.submissions[0], 2);
	assert_int_equal(count.submissions[1], 2);
	assert_int_equal(count.merges[1], BLOCKS - 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_with_a_ring_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
