/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk image as backend: what is a disk, who may open it, and that bytes go where they should. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vqblk/blk.h>
#include <vqblk/host/file.h>

#include "unit.h"

enum { READ = VQB_READ, BOTH = VQB_READ | VQB_WRITE };

struct bench {
	char path[64];
	_Alignas(64) uint8_t mem[2][VQB_FILE_BYTES];
	_Alignas(64) uint8_t backend_mem[2][VQB_FILE_BACKEND_BYTES];
	struct vqb_file *file;
	struct vqb_backend *backend;
};

static int up(void **state)
{
	struct bench *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);
	int fd;

	if (!b)
		return -1;
	memset(b, 0, sizeof(*b));
	snprintf(b->path, sizeof(b->path), "/tmp/vqblk-test-XXXXXX");
	fd = mkstemp(b->path);
	*state = b;
	return fd < 0 ? -1 : close(fd);
}

static int down(void **state)
{
	struct bench *b = *state;

	if (b->file)
		vqb_file_close(b->file);
	unlink(b->path);
	free(b);
	return 0;
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, up, down)

static void make_image(const struct bench *b, off_t bytes)
{
	int fd = open(b->path, O_RDWR | O_TRUNC);
	uint8_t byte;

	assert_true(fd >= 0);
	for (off_t i = 0; i < bytes && i < 8192; i++) {
		byte = (uint8_t)(i * 5 + i / 512);
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
	}
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static int32_t try_open(struct bench *b, unsigned which, uint32_t access, struct vqb_file **file)
{
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = access,
					  .path = b->path };

	return vqb_file_open(b->mem[which], VQB_FILE_BYTES, &config, file);
}

static void open_image(struct bench *b, uint32_t access)
{
	assert_int_equal(try_open(b, 0, access, &b->file), VQB_OK);
	assert_int_equal(vqb_file_backend_init(b->backend_mem[0], VQB_FILE_BACKEND_BYTES, b->file,
					       &b->backend),
			 VQB_OK);
	assert_int_equal(vqb_backend_check(b->backend), VQB_OK);
}

/* One io from submit to poll: its result. */
static int64_t carry_out(struct bench *b, uint8_t op, uint8_t flags, uint64_t offset,
			 const struct vqb_piece *piece, uint32_t pieces)
{
	struct vqb_io io = { .op = op, .flags = flags, .offset = offset };

	io.piece = piece;
	io.pieces = pieces;
	for (uint32_t i = 0; i < pieces; i++)
		io.bytes += piece[i].len;
	assert_null(vqb_backend_poll(b->backend));
	assert_int_equal(vqb_backend_submit(b->backend, &io), VQB_OK);
	assert_ptr_equal(vqb_backend_poll(b->backend), &io);
	assert_null(io.next);
	return io.result;
}

static uint8_t image_byte(const struct bench *b, off_t at)
{
	int fd = open(b->path, O_RDONLY);
	uint8_t byte = 0;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	close(fd);
	return byte;
}

/* ---- what is a disk ---- */

static void test_the_disk_is_the_whole_sectors_of_the_file(void **state)
{
	const struct {
		off_t file;
		uint64_t disk;
	} c[] = { { 0, 0 }, { 511, 0 }, { 512, 512 }, { 1023, 512 }, { 8192 + 511, 8192 } };
	struct bench *b = *state;

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		make_image(b, c[i].file);
		open_image(b, READ);
		assert_int_equal(vqb_file_bytes(b->file), c[i].disk);
		assert_int_equal(b->backend->caps.bytes, c[i].disk);
		assert_int_equal(vqb_file_close(b->file), VQB_OK);
		b->file = NULL;
	}
}

static void test_opening_says_what_is_wrong(void **state)
{
	struct bench *b = *state;
	struct vqb_file_config config = { .struct_size = sizeof(config), .access = READ };
	struct vqb_file *file;

	config.path = "/nonexistent/image";
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_IO);
	assert_int_equal(errno, ENOENT);
	config.path = "/tmp";
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_UNSUPP);
	config.path = "/dev/null";
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_UNSUPP);
	config.path = NULL;
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_INVALID);
	config.path = b->path;
	config.access = VQB_WRITE;
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_INVALID);
	config.access = READ;
	assert_int_equal(vqb_file_open(b->mem, 8, &config, &file), VQB_E_TOOBIG);
	config.struct_size = 0;
	assert_int_equal(vqb_file_open(b->mem, VQB_FILE_BYTES, &config, &file), VQB_E_INVALID);
	assert_true(vqb_file_size() <= VQB_FILE_BYTES);
	assert_true(vqb_file_backend_size() <= VQB_FILE_BACKEND_BYTES);
}

/* ---- the lock ---- */

static void test_a_second_writer_is_told_that_the_image_is_busy(void **state)
{
	const struct {
		uint32_t first, second;
		int32_t want;
	} c[] = {
		{ BOTH, BOTH, VQB_E_BUSY },
		{ BOTH, READ, VQB_E_BUSY },
		{ READ, BOTH, VQB_E_BUSY },
		{ READ, READ, VQB_OK },
	};
	struct bench *b = *state;

	make_image(b, 4096);
	for (unsigned i = 0; i < 4; i++) {
		struct vqb_file *first, *second;

		assert_int_equal(try_open(b, 0, c[i].first, &first), VQB_OK);
		assert_int_equal(try_open(b, 1, c[i].second, &second), c[i].want);
		if (!c[i].want)
			assert_int_equal(vqb_file_close(second), VQB_OK);
		assert_int_equal(vqb_file_close(first), VQB_OK);
		/* The lock went with it. */
		assert_int_equal(try_open(b, 0, BOTH, &first), VQB_OK);
		assert_int_equal(vqb_file_close(first), VQB_OK);
	}
}

static void test_another_process_is_told_so_too(void **state)
{
	struct bench *b = *state;
	int status = 0;
	pid_t child;

	make_image(b, 4096);
	open_image(b, BOTH);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct vqb_file *file;

		_exit(try_open(b, 1, BOTH, &file) == VQB_E_BUSY ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A child that was forked meanwhile has the descriptor, too. */
static void test_closing_gives_the_lock_back_whoever_has_the_file_open(void **state)
{
	struct bench *b = *state;
	int ends[2];
	pid_t child;
	char byte;

	make_image(b, 4096);
	open_image(b, BOTH);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0); /* until the other end is closed */
	}
	close(ends[0]);
	assert_int_equal(vqb_file_close(b->file), VQB_OK);
	b->file = NULL;
	open_image(b, BOTH);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- transfers ---- */

static void test_pieces_go_to_and_from_their_place(void **state)
{
	struct bench *b = *state;
	uint8_t a[100], c[412];
	const struct vqb_piece piece[4] = { { a, 100 }, { a, 0 }, { c, 412 }, { a, 0 } };

	make_image(b, 8192);
	open_image(b, BOTH);
	assert_int_equal(carry_out(b, VQB_BLK_IN, 0, 1024, piece, 4), 512);
	for (unsigned i = 0; i < 512; i++)
		assert_int_equal(i < 100 ? a[i] : c[i - 100], (uint8_t)((1024 + i) * 5 + 2));
	memset(a, 0x11, sizeof(a));
	memset(c, 0x22, sizeof(c));
	assert_int_equal(carry_out(b, VQB_BLK_OUT, 0, 7680, piece, 4), 512);
	assert_int_equal(image_byte(b, 7679), (uint8_t)(7679 * 5 + 14));
	assert_int_equal(image_byte(b, 7680), 0x11);
	assert_int_equal(image_byte(b, 7779), 0x11);
	assert_int_equal(image_byte(b, 7780), 0x22);
	assert_int_equal(image_byte(b, 8191), 0x22);
	assert_int_equal(carry_out(b, VQB_BLK_OUT, VQB_IO_FUA, 0, piece, 4), 512);
	assert_int_equal(carry_out(b, VQB_BLK_FLUSH, 0, 0, NULL, 0), 0);
}

/* More pieces than one system call takes. */
static void test_thousands_of_pieces_are_one_transfer(void **state)
{
	enum { PIECES = 5000 };
	static uint8_t data[PIECES + 120];
	static struct vqb_piece piece[PIECES];
	struct bench *b = *state;

	for (unsigned i = 0; i < PIECES; i++)
		piece[i] = (struct vqb_piece){ data + i, 1 };
	piece[PIECES - 1].len = 121;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11);
	make_image(b, 8192);
	open_image(b, BOTH);
	assert_int_equal(carry_out(b, VQB_BLK_OUT, 0, 1024, piece, PIECES), 5120);
	memset(data, 0, sizeof(data));
	assert_int_equal(carry_out(b, VQB_BLK_IN, 0, 1024, piece, PIECES), 5120);
	for (unsigned i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], (uint8_t)(i * 11));
}

static void test_a_file_that_was_cut_is_an_error_to_read(void **state)
{
	struct bench *b = *state;
	static uint8_t data[4096];
	const struct vqb_piece piece = { data, sizeof(data) };

	make_image(b, 8192);
	open_image(b, BOTH);
	assert_int_equal(truncate(b->path, 6000), 0);
	assert_int_equal(carry_out(b, VQB_BLK_IN, 0, 4096, &piece, 1), VQB_E_IO);
	assert_int_equal(carry_out(b, VQB_BLK_IN, 0, 0, &piece, 1), 4096);
}

/* A write that the system stops half-way: part of it is done, the rest is an error. */
static void test_a_limit_in_mid_write_is_an_error(void **state)
{
	struct rlimit old, small;
	struct bench *b = *state;
	static uint8_t data[8192];
	const struct vqb_piece piece[2] = { { data, 100 }, { data + 100, sizeof(data) - 100 } };
	int64_t result;

	make_image(b, 65536);
	open_image(b, BOTH);
	memset(data, 0x33, sizeof(data));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 40000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	result = carry_out(b, VQB_BLK_OUT, 0, 36864, piece, 2);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(result, VQB_E_IO);
	assert_int_equal(image_byte(b, 39999), 0x33);
	assert_int_equal(image_byte(b, 40000), 0);
}

/* How this process has the file open: O_RDONLY or O_RDWR, or -1 where that can't be seen. */
static int open_mode(const struct bench *b)
{
	char link[64], name[128];

	for (int fd = 0; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, name, sizeof(name) - 1);
		if (n < 0)
			continue;
		name[n] = 0;
		if (!strcmp(name, b->path))
			return fcntl(fd, F_GETFL) & O_ACCMODE;
	}
	return -1;
}

/* Not even by a fault of ours: the descriptor itself can't write. */
static void test_an_image_is_opened_for_no_more_than_was_asked(void **state)
{
	struct bench *b = *state;

	make_image(b, 8 * 512);
	open_image(b, READ);
	assert_int_equal(open_mode(b), O_RDONLY);
	assert_int_equal(vqb_file_close(b->file), VQB_OK);
	open_image(b, BOTH);
	assert_int_equal(open_mode(b), O_RDWR);
}

static void test_an_image_for_reading_is_not_written(void **state)
{
	struct bench *b = *state;
	uint8_t data[512] = { 0 };
	const struct vqb_piece piece = { data, sizeof(data) };
	struct vqb_io io = { .op = VQB_BLK_OUT, .pieces = 1, .bytes = 512 };

	io.piece = &piece;
	make_image(b, 4096);
	open_image(b, READ);
	assert_int_equal(b->backend->caps.can & VQB_CAN_WRITE, 0);
	assert_int_equal(vqb_backend_submit(b->backend, &io), VQB_E_UNSUPP);
	assert_int_equal(image_byte(b, 1), 5);
	assert_int_equal(carry_out(b, VQB_BLK_FLUSH, 0, 0, NULL, 0), 0);
	io.op = VQB_BLK_IN;
	io.offset = 4096 - 511;
	assert_int_equal(vqb_backend_submit(b->backend, &io), VQB_E_INVALID);
	io.op = VQB_BLK_DISCARD;
	assert_int_equal(vqb_backend_submit(b->backend, &io), VQB_E_UNSUPP);
}

/* Two queues, one image. */
static void test_backends_share_an_open_image(void **state)
{
	struct bench *b = *state;
	uint8_t data[512];
	const struct vqb_piece piece = { data, sizeof(data) };
	struct vqb_backend *first, *second;

	make_image(b, 4096);
	open_image(b, BOTH);
	first = b->backend;
	assert_int_equal(
		vqb_file_backend_init(b->backend_mem[1], VQB_FILE_BACKEND_BYTES, b->file, &second),
		VQB_OK);
	memset(data, 0x44, sizeof(data));
	assert_int_equal(carry_out(b, VQB_BLK_OUT, 0, 512, &piece, 1), 512);
	memset(data, 0, sizeof(data));
	b->backend = second;
	assert_int_equal(carry_out(b, VQB_BLK_IN, 0, 512, &piece, 1), 512);
	assert_int_equal(data[511], 0x44);
	assert_null(vqb_backend_poll(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(test_the_disk_is_the_whole_sectors_of_the_file),
		file_test(test_opening_says_what_is_wrong),
		file_test(test_a_second_writer_is_told_that_the_image_is_busy),
		file_test(test_another_process_is_told_so_too),
		file_test(test_closing_gives_the_lock_back_whoever_has_the_file_open),
		file_test(test_pieces_go_to_and_from_their_place),
		file_test(test_thousands_of_pieces_are_one_transfer),
		file_test(test_a_file_that_was_cut_is_an_error_to_read),
		file_test(test_a_limit_in_mid_write_is_an_error),
		file_test(test_an_image_is_opened_for_no_more_than_was_asked),
		file_test(test_an_image_for_reading_is_not_written),
		file_test(test_backends_share_an_open_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
