/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.c: a disk image as backend: positioned reads and writes within submit.
 *
 * A transfer is a walk over the io's pieces that goes on until all bytes are done or the system
 * reports an error; where a call ended inside a piece, the rest of that piece is done alone.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <vqblk/host/file.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fs.h>

#include <vqblk/blk.h>

/* The pieces of an io are handed to the system as they are. */
_Static_assert(sizeof(struct vqb_piece) == sizeof(struct iovec), "struct iovec");
_Static_assert(offsetof(struct vqb_piece, base) == offsetof(struct iovec, iov_base), "iov_base");
_Static_assert(offsetof(struct vqb_piece, len) == offsetof(struct iovec, iov_len), "iov_len");

struct vqb_file {
	int fd;
	uint32_t access;
	uint64_t bytes;
	atomic_int lost; /* the status of the first flush that failed, for all that follow */
};

struct file_backend {
	struct vqb_backend base;
	struct vqb_io_list done;
	struct vqb_file *file;
};

_Static_assert(sizeof(struct vqb_file) <= VQB_FILE_BYTES, "bound");
_Static_assert(sizeof(struct file_backend) <= VQB_FILE_BACKEND_BYTES, "bound");

/* ---- opening ---- */

/* In a process without stdout the image must not become what others print to. */
static int32_t keep_off_standard(int *fd)
{
	int low = *fd;

	if (low > STDERR_FILENO)
		return VQB_OK;
	*fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(low);
	return *fd < 0 ? VQB_E_IO : VQB_OK;
}

static int32_t open_image(const struct vqb_file_config *config, int *fd)
{
	int flags = O_CLOEXEC | (config->access & VQB_WRITE ? O_RDWR : O_RDONLY);
	struct stat st;

	if (stat(config->path, &st))
		return VQB_E_IO;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return VQB_E_UNSUPP;
	/* Of a block device this asks that nobody has it mounted. */
	if (S_ISBLK(st.st_mode) && config->access & VQB_WRITE)
		flags |= O_EXCL;
	do
		*fd = open(config->path, flags);
	while (*fd < 0 && errno == EINTR);
	if (*fd < 0)
		return errno == EBUSY ? VQB_E_BUSY : VQB_E_IO;
	return keep_off_standard(fd);
}

static int32_t lock_image(int fd, uint32_t access)
{
	struct flock whole = {
		.l_type = access & VQB_WRITE ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
	};

	if (!fcntl(fd, F_OFD_SETLK, &whole))
		return VQB_OK;
	return errno == EAGAIN || errno == EACCES ? VQB_E_BUSY : VQB_E_IO;
}

static int32_t measure_image(int fd, uint64_t *bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return VQB_E_IO;
	*bytes = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, bytes))
		return VQB_E_IO;
	*bytes -= *bytes % VQB_SECTOR_BYTES;
	return VQB_OK;
}

size_t vqb_file_size(void)
{
	return VQB_ROUND_UP(sizeof(struct vqb_file));
}

int32_t vqb_file_open(void *mem, size_t bytes, const struct vqb_file_config *config,
		      struct vqb_file **out)
{
	struct vqb_file *file = mem;
	int32_t status;
	int kept;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out || !config ||
	    config->struct_size != sizeof(*config) || !config->path)
		return VQB_E_INVALID;
	if (config->access != VQB_READ && config->access != (VQB_READ | VQB_WRITE))
		return VQB_E_INVALID;
	if (bytes < vqb_file_size())
		return VQB_E_TOOBIG;

	memset(file, 0, sizeof(*file));
	file->access = config->access;
	atomic_init(&file->lost, VQB_OK);
	status = open_image(config, &file->fd);
	if (status)
		return status;
	status = lock_image(file->fd, file->access);
	if (!status)
		status = measure_image(file->fd, &file->bytes);
	if (status) {
		kept = errno;
		close(file->fd);
		errno = kept;
		return status;
	}
	*out = file;
	return VQB_OK;
}

int32_t vqb_file_close(struct vqb_file *file)
{
	int fd = file->fd;

	file->fd = -1;
	/* Linux has closed the descriptor even where it answers EINTR. */
	return close(fd) && errno != EINTR ? VQB_E_IO : VQB_OK;
}

uint64_t vqb_file_bytes(const struct vqb_file *file)
{
	return file->bytes;
}

/* ---- transfers ---- */

static int32_t status_of_errno(void)
{
	return errno == EOPNOTSUPP || errno == ENOSYS ? VQB_E_UNSUPP : VQB_E_IO;
}

/* Where a transfer stands: `skip` bytes into piece number `at`. */
struct place {
	uint32_t at;
	size_t skip;
	uint64_t done;
};

/* One system call's worth: the rest of a begun piece, or as many whole ones as the system takes. */
static ssize_t transfer_some(int fd, const struct vqb_io *io, const struct place *p)
{
	const struct vqb_piece *piece = io->piece + p->at;
	const struct iovec *vec = (const struct iovec *)piece;
	int n = io->pieces - p->at < IOV_MAX ? (int)(io->pieces - p->at) : IOV_MAX;
	off_t offset = (off_t)(io->offset + p->done);

	if (p->skip) {
		char *base = (char *)piece->base + p->skip;
		size_t len = piece->len - p->skip;

		return io->op == VQB_BLK_IN ? pread(fd, base, len, offset)
					    : pwrite(fd, base, len, offset);
	}
	return io->op == VQB_BLK_IN ? preadv(fd, vec, n, offset) : pwritev(fd, vec, n, offset);
}

static void move_on(const struct vqb_io *io, struct place *p, size_t bytes)
{
	p->done += bytes;
	p->skip += bytes;
	while (p->at < io->pieces && p->skip >= io->piece[p->at].len) {
		p->skip -= io->piece[p->at].len;
		p->at++;
	}
}

static int64_t transfer(const struct vqb_file *file, const struct vqb_io *io)
{
	struct place p = { 0, 0, 0 };

	while (p.done < io->bytes && p.at < io->pieces) {
		ssize_t n = transfer_some(file->fd, io, &p);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return status_of_errno();
		if (n == 0)
			return VQB_E_IO; /* the file ends where the disk does not */
		move_on(io, &p, (size_t)n);
	}
	return (int64_t)p.done;
}

static int64_t flush(struct vqb_file *file)
{
	int fresh = VQB_OK;
	int error;

	do
		error = fdatasync(file->fd);
	while (error && errno == EINTR);
	if (error)
		atomic_compare_exchange_strong(&file->lost, &fresh, status_of_errno());
	return atomic_load(&file->lost);
}

static int64_t carry_out(struct vqb_file *file, const struct vqb_io *io)
{
	int64_t result, flushed;

	if (io->op == VQB_BLK_FLUSH)
		return flush(file);
	result = transfer(file, io);
	if (io->op == VQB_BLK_IN || !(io->flags & VQB_IO_FUA) || result < 0)
		return result;
	flushed = flush(file);
	return flushed ? flushed : result;
}

/* ---- backend ---- */

static int32_t file_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct file_backend *self = (struct file_backend *)backend;
	const struct vqb_backend_caps *caps = &backend->caps;
	int kept = errno;

	if (io->op == VQB_BLK_OUT && !(caps->can & VQB_CAN_WRITE))
		return VQB_E_UNSUPP;
	if (io->op != VQB_BLK_IN && io->op != VQB_BLK_OUT && io->op != VQB_BLK_FLUSH)
		return VQB_E_UNSUPP;
	if (io->offset > caps->bytes || io->bytes > caps->bytes - io->offset)
		return VQB_E_INVALID;
	io->result = carry_out(self->file, io);
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
	memset(self, 0, sizeof(*self));
	self->file = file;
	base = &self->base;
	base->struct_size = sizeof(*base);
	base->ops = &file_ops;
	base->caps.bytes = file->bytes;
	base->caps.max_transfer = UINT64_MAX;
	base->caps.max_pieces = UINT32_MAX;
	base->caps.alignment = 1;
	base->caps.can = VQB_CAN_READ | VQB_CAN_FLUSH;
	if (file->access & VQB_WRITE)
		base->caps.can |= VQB_CAN_WRITE;
	*out = base;
	return VQB_OK;
}
