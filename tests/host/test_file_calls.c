/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file backend over a system that is slow to oblige: calls that do a part, that are
 * interrupted, that fail, that it doesn't have. The backend is compiled into this program, with its
 * system calls replaced.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unit.h"

/* What the system does; all zero: what it always does. */
static struct {
	size_t part;      /* most bytes of one call; 0: no limit */
	unsigned stutter; /* every so many calls one is interrupted; 0: none */
	int error;        /* errno of every transfer once `good` ones went well; 0: none */
	unsigned good;
	int sync_error;               /* errno of fdatasync */
	int sync_stutter;             /* fdatasyncs to interrupt */
	unsigned calls, syncs, order; /* so far; `order`: calls when the last sync came */
	int most;                     /* pieces of one call */
	int no_punch, no_zero;        /* errno of these fallocates; 0: they are as they are */
	int range_stutter;            /* fallocates to interrupt */
	unsigned ranges;              /* fallocates so far */
} sys;

static int refuses(void)
{
	sys.calls++;
	if (sys.stutter && sys.calls % sys.stutter == 0) {
		errno = EINTR;
		return 1;
	}
	if (sys.error && sys.good == 0) {
		errno = sys.error;
		return 1;
	}
	sys.good -= sys.good > 0;
	return 0;
}

/* The first pieces of a vector, down to `part` bytes; how many. */
static int cut(const struct iovec *vec, int n, struct iovec *out)
{
	size_t left = sys.part ? sys.part : SIZE_MAX;
	int i;

	sys.most = n > sys.most ? n : sys.most;
	for (i = 0; i < n && left; i++) {
		out[i] = vec[i];
		if (out[i].iov_len > left)
			out[i].iov_len = left;
		left -= out[i].iov_len;
	}
	return i;
}

static size_t cut_one(size_t bytes)
{
	return sys.part && bytes > sys.part ? sys.part : bytes;
}

static ssize_t sys_preadv(int fd, const struct iovec *vec, int n, off_t offset)
{
	struct iovec out[1024];

	return refuses() ? -1 : preadv(fd, out, cut(vec, n, out), offset);
}

static ssize_t sys_pwritev(int fd, const struct iovec *vec, int n, off_t offset)
{
	struct iovec out[1024];

	return refuses() ? -1 : pwritev(fd, out, cut(vec, n, out), offset);
}

static ssize_t sys_pread(int fd, void *to, size_t bytes, off_t offset)
{
	return refuses() ? -1 : pread(fd, to, cut_one(bytes), offset);
}

static ssize_t sys_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	return refuses() ? -1 : pwrite(fd, from, cut_one(bytes), offset);
}

static int sys_fdatasync(int fd)
{
	sys.syncs++;
	sys.order = sys.calls;
	if (sys.sync_stutter) {
		sys.sync_stutter--;
		errno = EINTR;
		return -1;
	}
	errno = sys.sync_error;
	return sys.sync_error ? -1 : fdatasync(fd);
}

static int sys_fallocate(int fd, int mode, off_t offset, off_t len)
{
	sys.ranges++;
	if (sys.range_stutter) {
		sys.range_stutter--;
		errno = EINTR;
		return -1;
	}
	errno = mode & FALLOC_FL_PUNCH_HOLE ? sys.no_punch : sys.no_zero;
	return errno ? -1 : fallocate(fd, mode, offset, len);
}

#define preadv sys_preadv
#define pwritev sys_pwritev
#define pread sys_pread
#define pwrite sys_pwrite
#define fdatasync sys_fdatasync
#define fallocate sys_fallocate
#include "lib/host/file.c" /* NOLINT(bugprone-suspicious-include) */
#undef preadv
#undef pwritev
#undef pread
#undef pwrite
#undef fdatasync
#undef fallocate

enum { DISK = 65536, PIECES = 37 };

static _Alignas(64) uint8_t mem[VQB_FILE_BYTES], mem2[VQB_FILE_BACKEND_BYTES];
static struct vqb_file *file;
static struct vqb_backend *backend;
static uint8_t data[DISK];
static struct vqb_piece piece[PIECES];

static int up(void **state)
{
	char path[] = "/tmp/vqblk-test-XXXXXX";
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = VQB_READ | VQB_WRITE,
					  .path = path };
	int fd = mkstemp(path), bad;

	(void)state;
	memset(&sys, 0, sizeof(sys));
	bad = fd < 0 || ftruncate(fd, DISK) || vqb_file_open(mem, sizeof(mem), &config, &file) ||
	      vqb_file_backend_init(mem2, sizeof(mem2), file, &backend);
	close(fd);
	unlink(path);
	return bad ? -1 : 0;
}

static int down(void **state)
{
	(void)state;
	return vqb_file_close(file);
}

#define calls_test(f) cmocka_unit_test_setup_teardown(f, up, down)

/* `bytes` bytes of `data` in pieces of uneven lengths, some of them empty. */
static uint32_t slice(size_t bytes)
{
	uint32_t n = 0;
	size_t at = 0;

	while (at < bytes) {
		size_t len = n % 5 == 3 ? 0 : 1 + n * n * 3;

		if (len > bytes - at || n == PIECES - 1)
			len = bytes - at;
		piece[n++] = (struct vqb_piece){ data + at, len };
		at += len;
	}
	return n;
}

static int64_t one_io(uint8_t op, uint8_t flags, uint64_t offset, size_t bytes)
{
	struct vqb_io io = { .op = op, .flags = flags, .offset = offset, .bytes = bytes };

	io.piece = piece;
	io.pieces = slice(bytes);
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
	assert_ptr_equal(vqb_backend_poll(backend), &io);
	return io.result;
}

static void there_and_back(size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
	assert_int_equal(one_io(VQB_BLK_OUT, 0, 512, bytes), bytes);
	memset(data, 0, bytes);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 512, bytes), bytes);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], (uint8_t)(i * 13 + i / 256));
}

static void test_partial_transfers_are_finished(void **state)
{
	(void)state;
	for (sys.part = 1; sys.part < 600; sys.part += 7)
		there_and_back(2048);
	assert_true(sys.calls > 1000);
}

static void test_interrupted_calls_are_repeated(void **state)
{
	(void)state;
	for (sys.stutter = 2; sys.stutter < 9; sys.stutter++) {
		sys.part = 100;
		there_and_back(2048);
	}
	sys.sync_stutter = 3;
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
	assert_int_equal(sys.syncs, 4);
}

static void test_no_call_has_more_pieces_than_the_system_takes(void **state)
{
	enum { MANY = 3000 };
	static struct vqb_piece many[MANY];
	struct vqb_io io = { .op = VQB_BLK_OUT, .pieces = MANY, .bytes = 6144 };

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		many[i] = (struct vqb_piece){ data + 2 * i, 2 };
	many[MANY - 1].len += 144;
	io.piece = many;
	assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
	assert_int_equal(vqb_backend_poll(backend)->result, 6144);
	assert_int_equal(sys.most, IOV_MAX);
	assert_int_equal(sys.calls, (MANY + IOV_MAX - 1) / IOV_MAX);
}

/* Errors of the system become statuses, after a part was done, too; errno is left alone. */
static void test_errors_of_the_system_are_mapped(void **state)
{
	const struct {
		int error;
		int32_t want;
	} c[] = { { EIO, VQB_E_IO },       { ENOSPC, VQB_E_IO }, { EROFS, VQB_E_IO },
		  { EFBIG, VQB_E_IO },     { EDQUOT, VQB_E_IO }, { EFAULT, VQB_E_IO },
		  { EAGAIN, VQB_E_IO },    { EINVAL, VQB_E_IO }, { EOPNOTSUPP, VQB_E_UNSUPP },
		  { ENOSYS, VQB_E_UNSUPP } };

	(void)state;
	sys.part = 512;
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		for (unsigned good = 0; good < 2; good++) {
			sys.error = c[i].error;
			sys.good = good;
			errno = 0;
			assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), c[i].want);
			sys.good = good;
			assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), c[i].want);
			assert_int_equal(errno, 0);
		}
	}
}

/* Shows: BLK-DEV-18 BLK-DEV-20 */
static void test_a_flush_is_one_fdatasync_and_fua_one_after_its_write(void **state)
{
	(void)state;
	assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), 2048);
	assert_int_equal(sys.syncs, 0);
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
	assert_int_equal(sys.syncs, 1);
	sys.part = 512;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), 2048);
	assert_int_equal(sys.syncs, 2);
	assert_int_equal(sys.order, sys.calls); /* after all parts */
	assert_int_equal(one_io(VQB_BLK_IN, VQB_IO_FUA, 0, 2048), 2048);
	assert_int_equal(sys.syncs, 2);
	sys.error = EIO;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	assert_int_equal(sys.syncs, 2);
}

/* The system forgets what it could not write, so a later success would be a lie. */
/* Shows: BLK-DEV-20 */
static void test_a_flush_that_failed_fails_for_good(void **state)
{
	(void)state;
	sys.sync_error = EIO;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	sys.sync_error = 0;
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), VQB_E_IO);
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), 2048);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), 2048);
}

/* ---- ranges ---- */

static int64_t one_range(uint8_t op, uint8_t flags, uint64_t offset, uint64_t bytes)
{
	struct vqb_io io = { .op = op, .flags = flags, .offset = offset, .bytes = bytes };

	assert_int_equal(vqb_backend_submit(backend, &io), VQB_OK);
	assert_ptr_equal(vqb_backend_poll(backend), &io);
	return io.result;
}

/* A disk of 0x77, zeroed from 512 on. */
static void zero_some(uint8_t flags, uint64_t bytes)
{
	memset(data, 0x77, sizeof(data));
	piece[0] = (struct vqb_piece){ data, DISK };
	assert_int_equal(pwrite(file->fd, data, DISK, 0), DISK);
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, flags, 512, bytes), bytes);
	assert_int_equal(pread(file->fd, data, DISK, 0), DISK);
	for (unsigned i = 0; i < DISK; i++)
		assert_int_equal(data[i], i >= 512 && i < 512 + bytes ? 0 : 0x77);
}

/* Shows: BLK-DEV-14 */
static void test_zeroes_are_written_where_there_is_no_other_way(void **state)
{
	(void)state;
	sys.no_punch = sys.no_zero = EOPNOTSUPP;
	zero_some(VQB_IO_UNMAP, 20000);
	assert_int_equal(sys.ranges, 2);
	assert_int_equal(sys.calls, 2);
	zero_some(0, 20000);
	assert_int_equal(sys.ranges, 2); /* not asked again */
	sys.part = 1000;
	sys.stutter = 3;
	zero_some(VQB_IO_UNMAP, 20000);
	assert_int_equal(one_range(VQB_BLK_DISCARD, 0, 512, 4096), VQB_E_UNSUPP);
	assert_int_equal(sys.ranges, 2);
}

static void test_an_unmap_without_holes_zeroes_all_the_same(void **state)
{
	(void)state;
	sys.no_punch = ENOSYS;
	sys.range_stutter = 2;
	zero_some(VQB_IO_UNMAP, 8192);
	assert_int_equal(sys.ranges, 4);
	assert_int_equal(sys.calls, 0);
	zero_some(VQB_IO_UNMAP, 8192);
	assert_int_equal(sys.ranges, 5);
	sys.no_punch = 0;
	assert_int_equal(one_range(VQB_BLK_DISCARD, 0, 512, 4096), VQB_E_UNSUPP);
}

static void test_an_error_of_a_range_is_an_error(void **state)
{
	(void)state;
	sys.no_punch = sys.no_zero = ENOSPC;
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, 0, 0, 4096), VQB_E_IO);
	assert_int_equal(one_range(VQB_BLK_DISCARD, 0, 0, 4096), VQB_E_IO);
	sys.no_zero = EINVAL; /* of a file, unlike a device, this is an error */
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, 0, 0, 4096), VQB_E_IO);
	assert_int_equal(sys.calls, 0);
	sys.no_zero = EOPNOTSUPP;
	sys.error = EIO;
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, 0, 0, 4096), VQB_E_IO);
	assert_int_equal(sys.calls, 1);
}

static void test_write_zeroes_with_fua_is_flushed(void **state)
{
	(void)state;
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, 0, 0, 4096), 4096);
	assert_int_equal(sys.syncs, 0);
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, VQB_IO_FUA, 0, 4096), 4096);
	assert_int_equal(sys.syncs, 1);
	sys.sync_error = EIO;
	assert_int_equal(one_range(VQB_BLK_WRITE_ZEROES, VQB_IO_FUA, 0, 4096), VQB_E_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		calls_test(test_partial_transfers_are_finished),
		calls_test(test_interrupted_calls_are_repeated),
		calls_test(test_no_call_has_more_pieces_than_the_system_takes),
		calls_test(test_errors_of_the_system_are_mapped),
		calls_test(test_a_flush_is_one_fdatasync_and_fua_one_after_its_write),
		calls_test(test_a_flush_that_failed_fails_for_good),
		calls_test(test_zeroes_are_written_where_there_is_no_other_way),
		calls_test(test_an_unmap_without_holes_zeroes_all_the_same),
		calls_test(test_an_error_of_a_range_is_an_error),
		calls_test(test_write_zeroes_with_fua_is_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
