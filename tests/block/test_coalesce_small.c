/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How little it takes to put a coalescer in front of a disk: a device of 40 lines, by somebody who
 * has a ring and a disk of their own and wants nothing else of the library. It joins, and tells
 * each request its own truth where the disk has a bad spot.
 */
#include <string.h>

#include <vqblk/blk.h>
#include <vqblk/coalesce.h>

/* ---- the disk that they have: done at once, and only as a whole ---- */

enum { SLOTS = 64, BLOCK = 16, BLOCKS = 64 };

static uint8_t disk[BLOCKS * BLOCK];
static uint64_t bad_byte;
static unsigned transfers;

static int64_t my_transfer(const struct vqb_io *io)
{
	uint8_t *at = disk + io->offset;

	transfers++;
	if (bad_byte - io->offset < io->bytes)
		return VQB_E_IO;
	for (uint32_t i = 0; i < io->pieces; i++) {
		if (io->op == VQB_BLK_IN)
			memcpy(io->piece[i].base, at, io->piece[i].len);
		else
			memcpy(at, io->piece[i].base, io->piece[i].len);
		at += io->piece[i].len;
	}
	return (int64_t)io->bytes;
}

/* ---- the device ---- */

enum { FIRST_LINE = __LINE__ + 1 };
struct my_request {
	struct vqb_io io; /* the first member */
	struct vqb_piece data;
	int ended; /* how often, or why it is no request */
};

struct my_device {
	struct vqb_coalescer *c;
	struct my_request ring[SLOTS];
	uint32_t head, tail; /* the guest's and ours, running freely */
};

static void carry_out(struct my_device *d, struct vqb_io *io)
{
	struct vqb_io_list done = { NULL, NULL }, retry = { NULL, NULL };
	struct vqb_io *next;

	for (; io; io = next ? next : vqb_io_list_take(&retry)) {
		next = io->next;
		io->result = my_transfer(io);
		vqb_coalescer_done(d->c, io, &done, &retry);
	}
	for (io = vqb_io_list_take(&done); io; io = io->next)
		((struct my_request *)io)->ended++;
}

static void serve(struct my_device *d)
{
	while (d->tail != d->head) {
		int32_t status = vqb_coalescer_add(d->c, &d->ring[d->tail % SLOTS].io);

		if (status == VQB_E_NOSPC)
			carry_out(d, vqb_coalescer_flush(d->c));
		else if (status)
			d->ring[d->tail++ % SLOTS].ended = status;
		else
			d->tail++;
	}
	carry_out(d, vqb_coalescer_flush(d->c));
}
_Static_assert(__LINE__ - FIRST_LINE <= 40, "lines");

/* ---- its test ---- */

#include "unit.h"

static _Alignas(VQB_ALIGN) uint8_t mem[VQB_COALESCER_BYTES(32, 32, 64)];
static uint8_t data[SLOTS][BLOCK];

static void open_device(struct my_device *d)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .pieces = 64,
					       .max_pieces = 64,
					       .max_transfer = sizeof(disk) };

	memset(d, 0, sizeof(*d));
	bad_byte = sizeof(disk);
	transfers = 0;
	assert_int_equal(vqb_coalescer_init(mem, sizeof(mem), &config, &d->c), VQB_OK);
}

static struct my_request *ask(struct my_device *d, uint8_t op, uint32_t block, uint8_t value)
{
	uint32_t slot = d->head++ % SLOTS;
	struct my_request *request = &d->ring[slot];

	memset(data[slot], value, BLOCK);
	memset(request, 0, sizeof(*request));
	request->data.base = data[slot];
	request->data.len = BLOCK;
	request->io.op = op;
	request->io.piece = &request->data;
	request->io.pieces = 1;
	request->io.offset = block * BLOCK;
	request->io.bytes = BLOCK;
	return request;
}

static void assert_all_ended_once(const struct my_device *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(d->ring[i].ended, 1);
}

static void test_neighbours_are_joined(void **state)
{
	static struct my_device d;

	(void)state;
	open_device(&d);
	for (uint32_t i = 0; i < 32; i++)
		ask(&d, VQB_BLK_OUT, (i * 7) % 32, (uint8_t)(i * 7 % 32 + 1));
	for (uint32_t i = 0; i < 32; i++)
		ask(&d, VQB_BLK_IN, i, 0);
	serve(&d);
	assert_int_equal(transfers, 2);
	assert_all_ended_once(&d, 64);
	for (uint32_t i = 0; i < 32; i++) {
		assert_int_equal(d.ring[32 + i].io.result, BLOCK);
		assert_int_equal(data[32 + i][0], i + 1);
		assert_int_equal(disk[i * BLOCK + BLOCK - 1], i + 1);
	}
}

static void test_a_bad_spot_fails_one_request(void **state)
{
	static struct my_device d;

	(void)state;
	open_device(&d);
	bad_byte = 5 * BLOCK + 3;
	memset(disk, 0, sizeof(disk));
	for (uint32_t i = 0; i < 8; i++)
		ask(&d, VQB_BLK_OUT, i, 0x77);
	serve(&d);
	assert_int_equal(transfers, 1 + 8);
	assert_all_ended_once(&d, 8);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(d.ring[i].io.result, i == 5 ? VQB_E_IO : BLOCK);
		assert_int_equal(disk[i * BLOCK], i == 5 ? 0 : 0x77);
	}
}

static void test_a_request_that_is_none_ends_with_that(void **state)
{
	static struct my_device d;

	(void)state;
	open_device(&d);
	ask(&d, VQB_BLK_IN, 3, 0);
	ask(&d, VQB_BLK_FLUSH, 0, 0);
	serve(&d);
	assert_all_ended_once(&d, 1);
	assert_int_equal(d.ring[0].io.result, BLOCK);
	assert_int_equal(d.ring[1].ended, VQB_E_INVALID);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_are_joined),
		cmocka_unit_test(test_a_bad_spot_fails_one_request),
		cmocka_unit_test(test_a_request_that_is_none_ends_with_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
