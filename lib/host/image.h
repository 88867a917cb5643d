/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h: the open image behind every backend of the hosted part, and what those have in common:
 * which ios are admitted, where a transfer stands, what the system's errors mean, and how a range
 * is zeroed. file.c carries ios out at once, threads.c leaves that to other threads, uring.c has
 * the kernel do it.
 */
#ifndef HOST_IMAGE_H
#define HOST_IMAGE_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <vqblk/backend.h>
#include <vqblk/blk.h>
#include <vqblk/host/file.h>

/* The pieces of an io are handed to the system as they are. */
_Static_assert(sizeof(struct vqb_piece) == sizeof(struct iovec), "struct iovec");
_Static_assert(offsetof(struct vqb_piece, base) == offsetof(struct iovec, iov_base), "iov_base");
_Static_assert(offsetof(struct vqb_piece, len) == offsetof(struct iovec, iov_len), "iov_len");

struct vqb_file {
	int fd;
	uint32_t access;
	uint64_t bytes;
	atomic_int lost;   /* the status of the first flush that failed, for all that follow */
	atomic_uint lacks; /* enum image_lack: what the system has refused; it is not asked again */
	uint32_t can;      /* enum vqb_backend_can */
	uint32_t alignment, memory_alignment; /* of transfers; 1 unless direct */
	uint32_t discard_alignment;
	uint32_t block; /* of a block device: its logical block; of a file: 0 */
	uint8_t direct;
	uint8_t zero[3];
};

_Static_assert(sizeof(struct vqb_file) <= VQB_FILE_BYTES, "bound");

/* What the queue may rely on. */
void vqb__image_caps(const struct vqb_file *file, struct vqb_backend_caps *caps);

/* Can this io be begun at all? VQB_OK, VQB_E_UNSUPP or VQB_E_INVALID: what submit answers. */
int32_t vqb__image_admits(const struct vqb_backend_caps *caps, const struct vqb_io *io);

/* The status for an errno. */
int32_t vqb__image_status(int error);

/* A flush ended with this errno, or 0: its result. */
int32_t vqb__image_flushed(struct vqb_file *file, int error);

/* Is it to be flushed before it is done? */
static inline int image_needs_flush(const struct vqb_io *io)
{
	return io->op == VQB_BLK_FLUSH || (io->op != VQB_BLK_IN && io->flags & VQB_IO_FUA);
}

/*
 * Carries out one io that was admitted, and waits for it: its result. Of an image that is not
 * direct. Any number of threads at a time. Changes errno. In file.c.
 */
int64_t vqb__image_carry_out(struct vqb_file *file, const struct vqb_io *io);

/* ---- transfers ---- */

/* Where a transfer stands: `skip` bytes into piece number `at`. */
struct image_place {
	uint32_t at;
	size_t skip;
	uint64_t done;
};

void vqb__image_move_on(const struct vqb_io *io, struct image_place *p, uint64_t bytes);

/* Pieces that the next system call may have. */
static inline uint32_t image_pieces(const struct vqb_io *io, const struct image_place *p)
{
	return io->pieces - p->at < IOV_MAX ? io->pieces - p->at : IOV_MAX;
}

/* ---- ranges ---- */

/* Bits. */
enum image_lack {
	IMAGE_NO_PUNCH = 1,
	IMAGE_NO_ZERO = 2,
};

/*
 * The mode of the fallocate that does a range, for a file or system that lacks `lacks`. 0: there is
 * none; zeroes have to be written, and a discard is not supported.
 */
int vqb__image_range_mode(const struct vqb_io *io, unsigned lacks);

/*
 * fallocate with `mode` failed: what is lacking, for this io (a bit to add to its `lacks`), or 0
 * where the error is a real one.
 */
unsigned vqb__image_range_refused(struct vqb_file *file, int mode, int error);

/* Is it an ioctl? Those have no asynchronous form. */
static inline int image_range_is_ioctl(const struct vqb_file *file, const struct vqb_io *io)
{
	return file->block && (io->op == VQB_BLK_DISCARD || io->op == VQB_BLK_SECURE_ERASE);
}

/* Makes it; the result of the io. */
int64_t vqb__image_range_ioctl(const struct vqb_file *file, const struct vqb_io *io);

/*
 * Zeroes for one write of at most `bytes` bytes: *n elements of the vector; none where there is
 * less than one element to write, which then is the first one in part.
 */
const struct iovec *vqb__image_zeroes(uint64_t bytes, uint32_t *n);

#endif
