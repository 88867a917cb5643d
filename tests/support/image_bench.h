/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_bench.h: a disk image in a file and any of the backends that serve one.
 *
 *   struct image b = { .kind = URING, .dir = "/dev/shm", .bytes = 65536 };
 *
 *   if (!image_open(&b))
 *           skip();                 said why
 *   result = image_io(&b, VQB_BLK_IN, 0, 4096, &piece, 1);
 *   image_close(&b);
 */
#ifndef TESTS_IMAGE_BENCH_H
#define TESTS_IMAGE_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vqblk/blk.h>
#include <vqblk/host/file.h>
#include <vqblk/host/uring.h>

#include "unit.h"

enum image_kind { SYNC_FILE, URING, URING_DIRECT };

struct image {
	enum image_kind kind;
	const char *dir;                         /* NULL: the one we are in */
	off_t bytes;                             /* of the file */
	uint32_t entries, bounces, bounce_bytes; /* 0: enough of them */
	const struct vqb_notify *notify;
	char path[128];
	struct vqb_file *file;
	void *file_mem;
	struct vqb_uring_config config;
	void *mem;
	struct vqb_backend *backend;
};

static inline const char *image_kind_name(enum image_kind kind)
{
	static const char *const name[] = { "file", "uring", "uring, direct" };

	return name[kind];
}

/* Byte `i` of a new image. */
static inline uint8_t image_byte(uint64_t i)
{
	return (uint8_t)(i * 13 + i / 512 + 1);
}

static inline void image_fill(uint8_t *to, uint64_t offset, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = image_byte(offset + i);
}

/* What the file holds, seen from outside. */
static inline void image_peek(const struct image *b, void *to, off_t offset, size_t bytes)
{
	int fd = open(b->path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, to, bytes, offset), bytes);
	close(fd);
}

static inline off_t image_blocks(const struct image *b)
{
	struct stat st;
	int fd = open(b->path, O_RDONLY);

	assert_true(fd >= 0);
	fsync(fd);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_blocks;
}

static inline int image_make(struct image *b)
{
	uint8_t *data = (uint8_t *)malloc((size_t)b->bytes);
	int fd;

	assert_non_null(data);
	image_fill(data, 0, (size_t)b->bytes);
	snprintf(b->path, sizeof(b->path), "%s/vqblk-test-XXXXXX", b->dir ? b->dir : ".");
	fd = mkstemp(b->path);
	if (fd < 0) {
		free(data);
		printf("no files in %s\n", b->dir);
		return 0;
	}
	assert_int_equal(pwrite(fd, data, (size_t)b->bytes, 0), b->bytes);
	close(fd);
	free(data);
	return 1;
}

static inline void *image_memory(size_t bytes)
{
	void *mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(mem);
	memset(mem, 0x5a, bytes);
	return mem;
}

static inline int32_t image_backend(struct image *b)
{
	size_t bytes;

	if (b->kind == SYNC_FILE) {
		b->mem = image_memory(vqb_file_backend_size());
		return vqb_file_backend_init(b->mem, vqb_file_backend_size(), b->file, &b->backend);
	}
	b->config = (struct vqb_uring_config){ .struct_size = sizeof(b->config),
					       .entries = b->entries ? b->entries : 64,
					       .file = b->file,
					       .notify = b->notify,
					       .bounces = b->bounces ? b->bounces : 4,
					       .bounce_bytes =
						       b->bounce_bytes ? b->bounce_bytes : 8192 };
	bytes = vqb_uring_size(&b->config);
	assert_true(bytes);
	b->mem = image_memory(bytes);
	return vqb_uring_init(b->mem, bytes, &b->config, &b->backend);
}

static inline void image_drop(struct image *b)
{
	if (b->backend && b->kind != SYNC_FILE)
		vqb_uring_close(b->backend);
	if (b->file)
		assert_int_equal(vqb_file_close(b->file), VQB_OK);
	if (*b->path)
		unlink(b->path);
	free(b->mem);
	free(b->file_mem);
}

static inline void image_close(struct image *b)
{
	image_drop(b);
	memset(b, 0, sizeof(*b));
}

static inline int image_open(struct image *b)
{
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = VQB_READ | VQB_WRITE,
					  .path = b->path,
					  .direct = b->kind == URING_DIRECT };
	int32_t status;

	if (!image_make(b))
		return 0;
	b->file_mem = image_memory(vqb_file_size());
	status = vqb_file_open(b->file_mem, vqb_file_size(), &config, &b->file);
	if (!status)
		status = image_backend(b);
	if (status == VQB_E_UNSUPP) {
		printf("%s in %s: not on this system\n", image_kind_name(b->kind),
		       b->dir ? b->dir : ".");
		image_close(b);
		return 0;
	}
	assert_int_equal(status, VQB_OK);
	assert_int_equal(vqb_backend_check(b->backend), VQB_OK);
	return 1;
}

static inline struct vqb_io image_plan(uint8_t op, uint8_t flags, uint64_t offset, uint64_t bytes,
				       const struct vqb_piece *piece, uint32_t pieces)
{
	struct vqb_io io = { .op = op, .flags = flags, .offset = offset, .bytes = bytes };

	io.piece = piece;
	io.pieces = pieces;
	return io;
}

/* The next io that has finished, waited for; there must be one in flight. */
static inline struct vqb_io *image_next(const struct image *b)
{
	vqb_backend_drain(b->backend);
	return vqb_backend_poll(b->backend);
}

/* One io, by itself: its result, or what submit answered. */
static inline int64_t image_io(const struct image *b, uint8_t op, uint8_t flags, uint64_t offset,
			       uint64_t bytes, const struct vqb_piece *piece, uint32_t pieces)
{
	struct vqb_io io = image_plan(op, flags, offset, bytes, piece, pieces);
	int32_t status = vqb_backend_submit(b->backend, &io);

	if (status)
		return status;
	assert_ptr_equal(image_next(b), &io);
	assert_null(io.next);
	assert_null(vqb_backend_poll(b->backend));
	return io.result;
}

#endif
