/* SPDX-License-Identifier: BSD-3-Clause */
/* image.c: opening a disk image, finding out what it can do, and what its backends share. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/falloc.h>
#include <linux/fs.h>

enum { PAGE = 4096 };

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
	int flags = O_CLOEXEC | (config->access & VQB_WRITE ? O_RDWR : O_RDONLY) |
		    (config->direct ? O_DIRECT : 0);
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
	if (*fd < 0 && config->direct && errno == EINVAL)
		return VQB_E_UNSUPP;
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

/* ---- what it can do ---- */

/* A number that sysfs has of the queue of a block device, or of the device it is a partition of. */
static uint64_t queue_number(dev_t device, const char *name)
{
	static const char *const form[] = { "/sys/dev/block/%u:%u/queue/%s",
					    "/sys/dev/block/%u:%u/../queue/%s" };
	unsigned long long number = 0;
	char path[96];
	FILE *from = NULL;

	for (size_t i = 0; i < 2 && !from; i++) {
		snprintf(path, sizeof(path), form[i], major(device), minor(device), name);
		from = fopen(path, "re");
	}
	if (!from)
		return 0;
	if (fscanf(from, "%llu", &number) != 1)
		number = 0;
	fclose(from);
	return number;
}

/*
 * Does the device know this ioctl? Asked with a range that no device takes: it lies behind the end
 * and begins in mid-sector.
 */
static int knows_range(const struct vqb_file *file, unsigned long request)
{
	uint64_t range[2] = { file->bytes + 1, VQB_SECTOR_BYTES };

	return ioctl(file->fd, request, range) && errno == EINVAL;
}

static int32_t probe_device(struct vqb_file *file, dev_t device)
{
	uint64_t grain = queue_number(device, "discard_granularity");
	int block = 0;

	if (ioctl(file->fd, BLKSSZGET, &block) || block <= 0)
		return VQB_E_IO;
	file->block = (uint32_t)block;
	if (!(file->access & VQB_WRITE))
		return VQB_OK;
	file->can |= VQB_CAN_WRITE_ZEROES;
	if (grain <= UINT32_MAX)
		file->discard_alignment = (uint32_t)grain;
	if (knows_range(file, BLKDISCARD))
		file->can |= VQB_CAN_DISCARD;
	if (knows_range(file, BLKSECDISCARD))
		file->can |= VQB_CAN_SECURE_ERASE;
	/* A device that zeroes by itself and discards may do the one by the other. */
	if (file->can & VQB_CAN_DISCARD && queue_number(device, "write_zeroes_max_bytes"))
		file->can |= VQB_CAN_UNMAP;
	return VQB_OK;
}

/* Holes are tried behind the end, where there is nothing to lose. */
static void probe_regular(struct vqb_file *file, const struct stat *st)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	off_t behind = (st->st_size / PAGE + 2) * PAGE;

	if (!(file->access & VQB_WRITE))
		return;
	file->can |= VQB_CAN_WRITE_ZEROES;
	if (fallocate(file->fd, mode, behind, PAGE) && errno == EOPNOTSUPP) {
		atomic_store(&file->lacks, IMAGE_NO_PUNCH);
		return;
	}
	file->can |= VQB_CAN_DISCARD | VQB_CAN_UNMAP;
	file->discard_alignment = (uint32_t)st->st_blksize;
}

/* What O_DIRECT asks of transfers; where the system doesn't say, what is good for all. */
static int32_t probe_alignment(struct vqb_file *file)
{
	file->alignment = file->memory_alignment = file->block ? file->block : PAGE;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    stx.stx_mask & STATX_DIOALIGN) {
		if (!stx.stx_dio_offset_align || !stx.stx_dio_mem_align)
			return VQB_E_UNSUPP;
		file->alignment = stx.stx_dio_offset_align;
		file->memory_alignment = stx.stx_dio_mem_align;
	}
#endif
	if (file->memory_alignment > PAGE)
		return VQB_E_UNSUPP;
	file->bytes -= file->bytes % file->alignment;
	return VQB_OK;
}

static int32_t probe_image(struct vqb_file *file)
{
	int32_t status = VQB_OK;
	struct stat st;

	file->can = VQB_CAN_READ | VQB_CAN_FLUSH;
	if (file->access & VQB_WRITE)
		file->can |= VQB_CAN_WRITE;
	file->alignment = file->memory_alignment = 1;
	if (fstat(file->fd, &st))
		return VQB_E_IO;
	if (S_ISBLK(st.st_mode))
		status = probe_device(file, st.st_rdev);
	else
		probe_regular(file, &st);
	return status || !file->direct ? status : probe_alignment(file);
}

/* ---- an open image ---- */

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
	if (config->direct > 1 || config->zero)
		return VQB_E_INVALID;
	if (bytes < vqb_file_size())
		return VQB_E_TOOBIG;

	memset(file, 0, sizeof(*file));
	file->access = config->access;
	file->direct = (uint8_t)config->direct;
	atomic_init(&file->lost, VQB_OK);
	atomic_init(&file->lacks, 0);
	status = open_image(config, &file->fd);
	if (status)
		return status;
	status = lock_image(file->fd, file->access);
	if (!status)
		status = measure_image(file->fd, &file->bytes);
	if (!status)
		status = probe_image(file);
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
	struct flock whole = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	int fd = file->fd;

	file->fd = -1;
	/*
	 * By name: a child, or an io_uring that is being torn down, may keep the file open a while.
	 */
	fcntl(fd, F_OFD_SETLK, &whole);
	/* Linux has closed the descriptor even where it answers EINTR. */
	return close(fd) && errno != EINTR ? VQB_E_IO : VQB_OK;
}

uint64_t vqb_file_bytes(const struct vqb_file *file)
{
	return file->bytes;
}

/* ---- what backends share ---- */

void vqb__image_caps(const struct vqb_file *file, struct vqb_backend_caps *caps)
{
	memset(caps, 0, sizeof(*caps));
	caps->bytes = file->bytes;
	caps->max_transfer = UINT64_MAX;
	caps->max_range = UINT64_MAX;
	caps->max_pieces = UINT32_MAX;
	caps->alignment = file->alignment;
	caps->can = file->can;
	if (file->can & VQB_CAN_DISCARD)
		caps->discard_alignment = file->discard_alignment;
	if (file->can & VQB_CAN_SECURE_ERASE)
		caps->erase_alignment = file->discard_alignment;
}

/* What it takes; more than there is where nothing will do. */
static uint32_t needs(const struct vqb_io *io)
{
	switch (io->op) {
	case VQB_BLK_IN:
		return VQB_CAN_READ;
	case VQB_BLK_OUT:
		return VQB_CAN_WRITE;
	case VQB_BLK_FLUSH:
		return VQB_CAN_FLUSH;
	case VQB_BLK_DISCARD:
		return VQB_CAN_DISCARD;
	case VQB_BLK_WRITE_ZEROES:
		return VQB_CAN_WRITE_ZEROES;
	case VQB_BLK_SECURE_ERASE:
		return VQB_CAN_SECURE_ERASE;
	default:
		return UINT32_MAX;
	}
}

int32_t vqb__image_admits(const struct vqb_backend_caps *caps, const struct vqb_io *io)
{
	uint32_t need = needs(io);

	if ((caps->can & need) != need)
		return VQB_E_UNSUPP;
	if (io->offset > caps->bytes || io->bytes > caps->bytes - io->offset)
		return VQB_E_INVALID;
	if ((io->offset | io->bytes) & (caps->alignment - 1))
		return VQB_E_INVALID;
	return VQB_OK;
}

int32_t vqb__image_status(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS ? VQB_E_UNSUPP : VQB_E_IO;
}

int32_t vqb__image_flushed(struct vqb_file *file, int error)
{
	int fresh = VQB_OK;

	if (error)
		atomic_compare_exchange_strong(&file->lost, &fresh, vqb__image_status(error));
	return atomic_load(&file->lost);
}

void vqb__image_move_on(const struct vqb_io *io, struct image_place *p, uint64_t bytes)
{
	p->done += bytes;
	p->skip += (size_t)bytes;
	while (p->at < io->pieces && p->skip >= io->piece[p->at].len) {
		p->skip -= io->piece[p->at].len;
		p->at++;
	}
}

/* ---- ranges ---- */

int vqb__image_range_mode(const struct vqb_io *io, unsigned lacks)
{
	int punch = io->op == VQB_BLK_DISCARD || io->flags & VQB_IO_UNMAP;

	if (punch && !(lacks & IMAGE_NO_PUNCH))
		return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	if (io->op == VQB_BLK_WRITE_ZEROES && !(lacks & IMAGE_NO_ZERO))
		return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
	return 0;
}

unsigned vqb__image_range_refused(struct vqb_file *file, int mode, int error)
{
	unsigned lack = mode & FALLOC_FL_PUNCH_HOLE ? IMAGE_NO_PUNCH : IMAGE_NO_ZERO;

	/* A device whose blocks are larger than the guest's: only this range does not fit them. */
	if (error == EINVAL && file->block)
		return lack;
	if (vqb__image_status(error) != VQB_E_UNSUPP)
		return 0;
	atomic_fetch_or(&file->lacks, lack);
	return lack;
}

int64_t vqb__image_range_ioctl(const struct vqb_file *file, const struct vqb_io *io)
{
	uint64_t block = file->block, end = io->offset + io->bytes;
	uint64_t range[2] = { io->offset, io->bytes };
	int erases = io->op == VQB_BLK_SECURE_ERASE;
	int error;

	/* A discard is a hint, so it may leave out the blocks that it covers in part. */
	if (!erases) {
		range[0] = (io->offset + block - 1) / block * block;
		if (end / block * block <= range[0])
			return (int64_t)io->bytes;
		range[1] = end / block * block - range[0];
	}
	do
		error = ioctl(file->fd, erases ? BLKSECDISCARD : BLKDISCARD, range) ? errno : 0;
	while (error == EINTR);
	return error ? vqb__image_status(error) : (int64_t)io->bytes;
}

/* Never written, though a vector has no const. */
static const _Alignas(PAGE) uint8_t zeroes[PAGE];

#define ZEROES_1                                                                                   \
	{                                                                                          \
		(void *)(uintptr_t)zeroes, PAGE                                                    \
	}
#define ZEROES_4 ZEROES_1, ZEROES_1, ZEROES_1, ZEROES_1
#define ZEROES_16 ZEROES_4, ZEROES_4, ZEROES_4, ZEROES_4

const struct iovec *vqb__image_zeroes(uint64_t bytes, uint32_t *n)
{
	static const struct iovec page[] = { ZEROES_16, ZEROES_16, ZEROES_16, ZEROES_16 };
	const uint64_t most = sizeof(page) / sizeof(page[0]);

	*n = (uint32_t)(bytes / PAGE < most ? bytes / PAGE : most);
	return page;
}
