/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backends on a block device: a loop device of ours, with blocks of 512 and of 4096 bytes. Who
 * may not make one skips this.
 */
#define _GNU_SOURCE

#include <sys/ioctl.h>

#include <linux/loop.h>

#include "image_bench.h"

enum { DISK = 1 << 20 };

static struct {
	char path[64];
	int fd;
	int ours;           /* it is bound to our file: nobody else was faster */
	struct image under; /* the file below it; its backend is of no use here */
} loop;

static _Alignas(4096) uint8_t data[DISK];

/* A loop device on a new file, or 0 where there is none to be had. */
static int loop_up(unsigned long block)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), n, file;

	loop.under = (struct image){ .bytes = DISK };
	n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	if (control >= 0)
		close(control);
	if (n < 0 || !image_make(&loop.under))
		return 0;
	snprintf(loop.path, sizeof(loop.path), "/dev/loop%d", n);
	file = open(loop.under.path, O_RDWR | O_CLOEXEC);
	loop.fd = open(loop.path, O_RDWR | O_CLOEXEC);
	loop.ours = loop.fd >= 0 && file >= 0 && !ioctl(loop.fd, LOOP_SET_FD, file);
	if (file >= 0)
		close(file);
	return loop.ours && !ioctl(loop.fd, LOOP_SET_BLOCK_SIZE, block);
}

static int up(void **state)
{
	(void)state;
	memset(&loop, 0, sizeof(loop));
	loop.fd = -1;
	return 0;
}

/* After a test that failed, too: the device goes when the last descriptor does. */
static int down(void **state)
{
	(void)state;
	if (loop.ours)
		ioctl(loop.fd, LOOP_CLR_FD, 0);
	if (loop.fd >= 0)
		close(loop.fd);
	unlink(loop.under.path);
	return 0;
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, up, down)

/* What the device reads as, from outside. */
static void peek(void *to, off_t offset, size_t bytes)
{
	assert_int_equal(pread(loop.fd, to, bytes, offset), bytes);
}

static int is_all(const uint8_t *at, size_t bytes, uint8_t value)
{
	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != value)
			return 0;
	}
	return 1;
}

/* Opens a backend on the loop device. */
static int attach(struct image *b, enum image_kind kind)
{
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = VQB_READ | VQB_WRITE,
					  .path = loop.path,
					  .direct = kind == URING_DIRECT };
	int32_t status;

	*b = (struct image){ .kind = kind };
	b->file_mem = image_memory(vqb_file_size());
	assert_int_equal(vqb_file_open(b->file_mem, vqb_file_size(), &config, &b->file), VQB_OK);
	status = image_backend(b);
	if (status == VQB_E_UNSUPP) {
		image_close(b);
		return 0;
	}
	assert_int_equal(status, VQB_OK);
	assert_int_equal(vqb_backend_check(b->backend), VQB_OK);
	return 1;
}

static void refill(const struct image *b)
{
	struct vqb_piece piece = { data, DISK };

	memset(data, 0x77, DISK);
	assert_int_equal(image_io(b, VQB_BLK_OUT, VQB_IO_FUA, 0, DISK, &piece, 1), DISK);
}

/* A range of `bytes` from `offset` on reads as zeroes, and what is around it as it was. */
static void assert_zeroed(off_t offset, size_t bytes)
{
	peek(data, 0, DISK);
	assert_true(is_all(data, (size_t)offset, 0x77));
	assert_true(is_all(data + offset, bytes, 0));
	assert_true(is_all(data + offset + bytes, DISK - (size_t)offset - bytes, 0x77));
}

static void zero(const struct image *b, uint8_t flags, off_t offset, size_t bytes)
{
	refill(b);
	assert_int_equal(image_io(b, VQB_BLK_WRITE_ZEROES, flags, (uint64_t)offset, bytes, NULL, 0),
			 bytes);
	assert_int_equal(image_io(b, VQB_BLK_FLUSH, 0, 0, 0, NULL, 0), 0);
	assert_zeroed(offset, bytes);
}

static void ranges(enum image_kind kind, uint32_t block)
{
	struct image b;
	uint32_t can;

	if (!attach(&b, kind))
		return;
	can = b.backend->caps.can;
	assert_int_equal(b.backend->caps.bytes, DISK);
	assert_int_equal(b.backend->caps.alignment, kind == URING_DIRECT ? block : 1);
	assert_true(can & VQB_CAN_WRITE_ZEROES);
	zero(&b, 0, 65536, 131072);
	zero(&b, VQB_IO_UNMAP, 65536, 131072);
	if (kind != URING_DIRECT) {
		/* Not what a device of large blocks zeroes by itself. */
		zero(&b, 0, 512, 66048);
		zero(&b, VQB_IO_UNMAP, 512, 66048);
	}
	if (can & VQB_CAN_DISCARD) {
		off_t before;

		refill(&b);
		before = image_blocks(&loop.under);
		assert_int_equal(image_io(&b, VQB_BLK_DISCARD, 0, 65536, 131072, NULL, 0), 131072);
		assert_zeroed(65536, 131072); /* as loop devices do it */
		assert_true(image_blocks(&loop.under) <= before - 240);
		assert_true(b.backend->caps.discard_alignment > 0);
	}
	if (can & VQB_CAN_DISCARD && kind != URING_DIRECT) {
		/* Blocks that are covered in part are left alone. */
		refill(&b);
		assert_int_equal(image_io(&b, VQB_BLK_DISCARD, 0, 8192 - 512, 8192 + 1024, NULL, 0),
				 8192 + 1024);
		if (block == 4096)
			assert_zeroed(8192, 8192);
		refill(&b);
		assert_int_equal(image_io(&b, VQB_BLK_DISCARD, 0, 512, 512, NULL, 0), 512);
		if (block == 4096)
			assert_zeroed(0, 0);
	}
	/* Loop devices don't, so it is not on offer. */
	assert_int_equal(can & VQB_CAN_SECURE_ERASE, 0);
	assert_int_equal(image_io(&b, VQB_BLK_SECURE_ERASE, 0, 0, 4096, NULL, 0), VQB_E_UNSUPP);
	image_close(&b);
}

static void all_kinds(uint32_t block)
{
	if (!loop_up(block)) {
		printf("no loop device to be had\n");
		skip();
	}
	for (enum image_kind kind = SYNC_FILE; kind <= URING_DIRECT; kind++)
		ranges(kind, block);
}

/* Shows: BLK-DEV-12 BLK-DEV-13 BLK-DEV-14 */
static void test_ranges_of_a_device_with_small_blocks(void **state)
{
	(void)state;
	all_kinds(512);
}

static void test_ranges_of_a_device_with_large_blocks(void **state)
{
	(void)state;
	all_kinds(4096);
}

/* Finding out what a device can do does nothing to it. */
static void test_opening_a_device_changes_nothing(void **state)
{
	struct image b;

	(void)state;
	if (!loop_up(512)) {
		printf("no loop device to be had\n");
		skip();
	}
	assert_int_equal(attach(&b, SYNC_FILE), 1);
	peek(data, 0, DISK);
	for (unsigned i = 0; i < DISK; i++)
		assert_int_equal(data[i], image_byte(i));
	image_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		loop_test(test_ranges_of_a_device_with_small_blocks),
		loop_test(test_ranges_of_a_device_with_large_blocks),
		loop_test(test_opening_a_device_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
