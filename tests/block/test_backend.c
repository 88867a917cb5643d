/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory and the null backend, alone. */
#include <stdlib.h>
#include <string.h>

#include <vqblk/backend.h>
#include <vqblk/blk.h>

#include "unit.h"

enum { DISK = 4096 };

static _Alignas(64) uint8_t mem[128];
static uint8_t disk[DISK];

static struct vqb_backend *memory_backend(uint32_t access)
{
	struct vqb_backend_memory_config config = {
		.struct_size = sizeof(config), .access = access, .disk = disk, .bytes = DISK
	};
	struct vqb_backend *backend = NULL;

	assert_true(vqb_backend_memory_size() <= sizeof(mem));
	assert_int_equal(vqb_backend_memory_init(mem, sizeof(mem), &config, &backend), VQB_OK);
	assert_int_equal(vqb_backend_check(backend), VQB_OK);
	for (unsigned i = 0; i < DISK; i++)
		disk[i] = (uint8_t)(i * 3);
	return backend;
}

static struct vqb_io make_io(uint8_t op, uint64_t offset, const struct vqb_piece *piece,
			     uint32_t pieces)
{
	struct vqb_io io = { .op = op, .offset = offset, .piece = piece, .pieces = pieces };

	for (uint32_t i = 0; i < pieces; i++)
		io.bytes += piece[i].len;
	return io;
}

static struct vqb_io make_range(uint8_t op, uint64_t offset, uint64_t bytes)
{
	return (struct vqb_io){ .op = op, .offset = offset, .bytes = bytes };
}

static void test_memory_reads_and_writes_pieces(void **state)
{
	struct vqb_backend *backend = memory_backend(VQB_READ | VQB_WRITE);
	uint8_t a[300], b[724];
	const struct vqb_piece piece[3] = { { a, 300 }, { NULL, 0 }, { b, 724 } };
	struct vqb_io read = make_io(VQB_BLK_IN, 512, piece, 3);
	struct vqb_io write = make_io(VQB_BLK_OUT, DISK - 1024, piece, 3);

	(void)state;
	assert_null(vqb_backend_poll(backend));
	assert_int_equal(vqb_backend_submit(backend, &read), VQB_OK);
	assert_int_equal(vqb_backend_submit(backend, &write), VQB_OK);
	assert_ptr_equal(vqb_backend_poll(backend), &read);
	assert_ptr_equal(read.next, &write);
	assert_null(write.next);
	assert_null(vqb_backend_poll(backend));
	assert_int_equal(read.result, 1024);
	assert_int_equal(write.result, 1024);
	assert_memory_equal(a, disk + 512, 300);
	assert_memory_equal(b, disk + 812, 724);
	assert_memory_equal(disk + DISK - 1024, disk + 512, 1024);
}

/* Its own check, for who uses it without a device in front. */
static void test_memory_refuses_what_is_not_the_disk(void **state)
{
	struct vqb_backend *backend = memory_backend(VQB_READ | VQB_WRITE);
	uint8_t a[512];
	const struct vqb_piece piece = { a, sizeof(a) };
	const uint64_t bad[] = { DISK - 511, DISK, UINT64_MAX, UINT64_MAX - 511 };
	struct vqb_io io;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		io = make_io(VQB_BLK_IN, bad[i], &piece, 1);
		assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_INVALID);
	}
	io = make_range(VQB_BLK_DISCARD, DISK - 512, 513);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_INVALID);
	io = make_range(VQB_BLK_WRITE_ZEROES, 512, UINT64_MAX - 256);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_INVALID);
	io = make_range(VQB_BLK_GET_LIFETIME, 0, 512);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_UNSUPP);
	assert_int_equal(disk[DISK - 1], (uint8_t)((DISK - 1) * 3));
	io = make_io(VQB_BLK_FLUSH, 0, NULL, 0);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
	assert_int_equal(vqb_backend_poll(backend)->result, 0);
	assert_null(vqb_backend_poll(backend));
}

/* Exactly the range, whatever is done to it; and no promise to give memory back. */
static void test_memory_reads_as_zeroes_where_a_range_was_given_up(void **state)
{
	static const uint8_t op[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_WRITE_ZEROES,
				      VQB_BLK_SECURE_ERASE };
	struct vqb_io io;

	(void)state;
	for (unsigned k = 0; k < sizeof(op); k++) {
		struct vqb_backend *backend = memory_backend(VQB_READ | VQB_WRITE);

		assert_int_equal(backend->caps.can & (VQB_CAN_UNMAP | VQB_CAN_LIFETIME), 0);
		assert_true(backend->caps.can & VQB_CAN_DISCARD);
		assert_true(backend->caps.can & VQB_CAN_WRITE_ZEROES);
		assert_true(backend->caps.can & VQB_CAN_SECURE_ERASE);
		assert_true(backend->caps.max_range >= DISK);
		memset(disk, 0x55, DISK);
		io = make_range(op[k], 1024, 512);
		io.flags = k == 2 ? VQB_IO_UNMAP : 0;
		assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
		assert_ptr_equal(vqb_backend_poll(backend), &io);
		assert_int_equal(io.result, 512);
		for (unsigned i = 0; i < DISK; i++)
			assert_int_equal(disk[i], i / 512 == 2 ? 0 : 0x55);
		io = make_range(op[k], 0, DISK);
		assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
		assert_ptr_equal(vqb_backend_poll(backend), &io);
		assert_int_equal(io.result, DISK);
		assert_int_equal(disk[0] | disk[DISK - 1], 0);
	}
}

static void test_memory_for_reading_only_is_not_written(void **state)
{
	struct vqb_backend *backend = memory_backend(VQB_READ);
	uint8_t a[512] = { 0 };
	const struct vqb_piece piece = { a, sizeof(a) };
	struct vqb_io io = make_io(VQB_BLK_OUT, 0, &piece, 1);

	(void)state;
	assert_int_equal(backend->caps.can & VQB_CAN_WRITE, 0);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_UNSUPP);
	for (unsigned op = VQB_BLK_DISCARD; op <= VQB_BLK_SECURE_ERASE; op++) {
		io = make_range((uint8_t)op, 0, 512);
		assert_int_equal(vqb_backend_submit(backend, &io), VQB_E_UNSUPP);
	}
	assert_int_equal(backend->caps.can, VQB_CAN_READ | VQB_CAN_FLUSH);
	assert_int_equal(disk[1], 3);
}

static void test_null_does_nothing_and_says_done(void **state)
{
	struct vqb_backend *backend = NULL;
	uint8_t a[512];
	const struct vqb_piece piece = { a, sizeof(a) };
	struct vqb_io read, write, flush, range, other;

	(void)state;
	memset(a, 0x77, sizeof(a));
	assert_true(vqb_backend_null_size() <= sizeof(mem));
	assert_int_equal(vqb_backend_null_init(mem, sizeof(mem), UINT64_C(1) << 50, &backend),
			 VQB_OK);
	assert_int_equal(vqb_backend_check(backend), VQB_OK);
	read = make_io(VQB_BLK_IN, UINT64_C(1) << 49, &piece, 1);
	write = make_io(VQB_BLK_OUT, 0, &piece, 1);
	flush = make_io(VQB_BLK_FLUSH, 0, NULL, 0);
	range = make_range(VQB_BLK_DISCARD, 512, UINT64_C(1) << 40);
	other = make_range(VQB_BLK_GET_LIFETIME, 0, 0);
	assert_int_equal(vqb_backend_submit(backend, &read), VQB_OK);
	assert_int_equal(vqb_backend_submit(backend, &write), VQB_OK);
	assert_int_equal(vqb_backend_submit(backend, &flush), VQB_OK);
	assert_int_equal(vqb_backend_submit(backend, &range), VQB_OK);
	assert_int_equal(vqb_backend_submit(backend, &other), VQB_E_UNSUPP);
	assert_ptr_equal(vqb_backend_poll(backend), &read);
	assert_int_equal(read.result, 512);
	assert_int_equal(write.result, 512);
	assert_int_equal(flush.result, 0);
	assert_int_equal(range.result, INT64_C(1) << 40);
	for (unsigned i = 0; i < sizeof(a); i++)
		assert_int_equal(a[i], 0x77);
}

static void test_init_refuses_bad_parameters(void **state)
{
	struct vqb_backend_memory_config config = {
		.struct_size = sizeof(config), .access = VQB_READ, .disk = disk, .bytes = DISK
	};
	struct vqb_backend *out;

	(void)state;
	assert_int_equal(vqb_backend_memory_init(mem + 8, 120, &config, &out), VQB_E_INVALID);
	assert_int_equal(vqb_backend_memory_init(mem, 8, &config, &out), VQB_E_TOOBIG);
	config.access = VQB_WRITE;
	assert_int_equal(vqb_backend_memory_init(mem, 128, &config, &out), VQB_E_INVALID);
	config.access = VQB_READ;
	config.disk = NULL;
	assert_int_equal(vqb_backend_memory_init(mem, 128, &config, &out), VQB_E_INVALID);
	config.struct_size = 0;
	assert_int_equal(vqb_backend_memory_init(mem, 128, &config, &out), VQB_E_INVALID);
	assert_int_equal(vqb_backend_null_init(mem, 8, DISK, &out), VQB_E_TOOBIG);
	assert_int_equal(vqb_backend_null_init(mem + 8, 120, DISK, &out), VQB_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_reads_and_writes_pieces),
		cmocka_unit_test(test_memory_refuses_what_is_not_the_disk),
		cmocka_unit_test(test_memory_reads_as_zeroes_where_a_range_was_given_up),
		cmocka_unit_test(test_memory_for_reading_only_is_not_written),
		cmocka_unit_test(test_null_does_nothing_and_says_done),
		cmocka_unit_test(test_init_refuses_bad_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
