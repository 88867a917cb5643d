/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.c: a disk image as backend: positioned reads and writes within submit.
 *
 * A transfer is a walk over the io's pieces that goes on until all bytes are done or the system
 * reports an error; where a call ended inside a piece, the rest of that piece is done alone.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct file_backend {
	struct vqb_backend base;
	struct vqb_io_list done;
	struct vqb_file *file;
};

_Static_assert(sizeof(struct file_backend) <= VQB_FILE_BACKEND_BYTES, "bound");

/* ---- transfers ---- */

/* One system call's worth: the rest of a begun piece, or as many whole ones as the system takes. */
static ssize_t transfer_some(int fd, const struct vqb_io *io, const struct image_place *p)
{
	const struct vqb_piece *piece = io->piece + p->at;
	const struct iovec *vec = (const struct iovec *)piece;
	int n = (int)image_pieces(io, p);
	off_t offset = (off_t)(io->offset + p->done);

	if (p->skip) {
		char *base = (char *)piece->base + p->skip;
		size_t len = piece->len - p->skip;

		return io->op == VQB_BLK_IN ? pread(fd, base, len, offset)
					    : pwrite(fd, base, len, offset);
	}
	return io->op == VQB_BLK_IN ? preadv(fd, vec, n, offset) : pwritev(fd, vec, n, offset);
}

static int64_t transfer(const struct vqb_file *file, const struct vqb_io *io)
{
	struct image_place p = { 0, 0, 0 };

	while (p.done < io->bytes && p.at < io->pieces) {
		ssize_t n = transfer_some(file->fd, io, &p);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return vqb__image_status(errno);
		if (n == 0)
			return VQB_E_IO; /* the file ends where the disk does not */
		vqb__image_move_on(io, &p, (uint64_t)n);
	}
	return (int64_t)p.done;
}

/* ---- ranges ---- */

static int64_t write_zeroes(const struct vqb_file *file, const struct vqb_io *io)
{
	uint64_t done = 0;

	while (done < io->bytes) {
		off_t offset = (off_t)(io->offset + done);
		uint64_t rest = io->bytes - done;
		uint32_t pages;
		const struct iovec *vec = vqb__image_zeroes(rest, &pages);
		ssize_t n = pages ? pwritev(file->fd, vec, (int)pages, offset)
				  : pwrite(file->fd, vec->iov_base, (size_t)rest, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? vqb__image_status(errno) : VQB_E_IO;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

static int64_t do_range(struct vqb_file *file, const struct vqb_io *io)
{
	unsigned lacks = atomic_load(&file->lacks), lack;
	int mode;

	if (image_range_is_ioctl(file, io))
		return vqb__image_range_ioctl(file, io);
	while ((mode = vqb__image_range_mode(io, lacks)) != 0) {
		if (!fallocate(file->fd, mode, (off_t)io->offset, (off_t)io->bytes))
			return (int64_t)io->bytes;
		if (errno == EINTR)
			continue;
		lack = vqb__image_range_refused(file, mode, errno);
		if (!lack)
			return VQB_E_IO;
		lacks |= lack;
	}
	return io->op == VQB_BLK_WRITE_ZEROES ? write_zeroes(file, io) : VQB_E_UNSUPP;
}

/* ---- backend ---- */

static int64_t flush(struct vqb_file *file)
{
	int error;

	do
		error = fdatasync(file->fd) ? errno : 0;
	while (error == EINTR);
	return vqb__image_flushed(file, error);
}

int64_t vqb__image_carry_out(struct vqb_file *file, const struct vqb_io *io)
{
	int64_t result = 0, flushed;

	if (io->op == VQB_BLK_IN || io->op == VQB_BLK_OUT)
		result = transfer(file, io);
	else if (io->op != VQB_BLK_FLUSH)
		result = do_range(file, io);
	if (result < 0 || !image_needs_flush(io))
		return result;
	flushed = flush(file);
	return flushed ? flushed : result;
}

static int32_t file_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct file_backend *self = (struct file_backend *)backend;
	int32_t status = vqb__image_admits(&backend->caps, io);
	int kept = errno;

	if (status)
		return status;
	io->result = vqb__image_carry_out(self->file, io);
	vqb_io_list_add(&self->done, io);
	errno = kept;
	return VQB_OK;
}

static struct vqb_io *file_poll(struct vqb_backend *backend)
{
	return vqb_io_list_take(&((struct file_backend *)backend)->done);
}

static const struct vqb_backend_ops file_ops = {
	.struct_size = sizeof(file_ops),
	.submit = file_submit,
	.poll = file_poll,
};

size_t vqb_file_backend_size(void)
{
	return VQB_ROUND_UP(sizeof(struct file_backend));
}

int32_t vqb_file_backend_init(void *mem, size_t bytes, struct vqb_file *file,
			      struct vqb_backend **out)
{
	struct file_backend *self = mem;
	struct vqb_backend *base;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !file || !out)
		return VQB_E_INVALID;
	if (bytes < vqb_file_backend_size())
		return VQB_E_TOOBIG;
	if (file->direct)
		return VQB_E_UNSUPP;
	memset(self, 0, sizeof(*self));
	self->file = file;
	base = &self->base;
	base->struct_size = sizeof(*base);
	base->ops = &file_ops;
	vqb__image_caps(file, &base->caps);
	*out = base;
	return VQB_OK;
}
