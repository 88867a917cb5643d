/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/file.h: a disk image, a file or a block device, as backend.
 *
 * A vqb_file is the open image: it holds the descriptor and a lock. Any number of backends, one for
 * each queue and thread, do their I/O through it. Transfers are made within submit, by positioned
 * reads and writes of the page cache; what the system cuts short is continued, and EINTR is
 * retried. A flush is fdatasync, and a write with FUA is followed by one.
 *
 *   struct vqb_file_config config = { .struct_size = sizeof(config), .path = "disk.img",
 *                                     .access = VQB_READ | VQB_WRITE };
 *   status = vqb_file_open(mem, sizeof(mem), &config, &file);
 *   status = vqb_file_backend_init(mem2, sizeof(mem2), file, &backend);
 *   ... use; then, with every queue quiesced:
 *   status = vqb_file_close(file);
 *
 * Lock: an image that is open for writing is open for nobody else, one that is open for reading
 * for readers only. The lock is an open file description lock on the whole file, which other
 * programs see (QEMU refuses to open the image meanwhile), and goes with the descriptor.
 *
 * Where the process has a limit of file sizes (RLIMIT_FSIZE), block or ignore SIGXFSZ in the
 * threads that do I/O; the write then fails as any other.
 *
 * Discards punch holes into a file, and go to a block device as they are (whole blocks of it; a
 * part of one is left out). Write zeroes is done by the file system or the device where it can, and
 * by writing zeroes where it can't; with UNMAP by a hole, if there may be one. Secure erase is for
 * block devices that do it. What there is shows in the capabilities. It is tried at open, with a
 * range behind the end: the data stay as they are, though some file systems count it as a change.
 *
 * After an fdatasync has failed, what was written before may be lost though the system no longer
 * remembers it; so every later flush of that vqb_file fails, too.
 */
#ifndef VQBLK_HOST_FILE_H
#define VQBLK_HOST_FILE_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/memory.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_file; /* opaque */

struct vqb_file_config {
	uint32_t struct_size; /* sizeof(struct vqb_file_config) */
	uint32_t access;      /* VQB_READ, or VQB_READ | VQB_WRITE (enum vqb_access) */
	const char *path;     /* of a regular file or a block device that exists */
	/*
	 * 1: past the page cache (O_DIRECT), for backends of uring.h only, as two views of one
	 * image don't mix. Transfers are then in units of what the disk asks for, which the
	 * capabilities say, and the disk ends with a whole one.
	 */
	uint32_t direct;
	uint32_t zero;
};

/* Memory of an open image. */
#define VQB_FILE_BYTES 64u

VQB_API size_t vqb_file_size(void);

/*
 * Opens an image, in `mem`, which must be aligned to 64, hold `bytes` bytes and outlive the
 * backends.
 *
 * VQB_OK with the image in *out: close it.
 * VQB_E_BUSY: somebody else has it open: locked, or (a block device for writing) mounted.
 * VQB_E_IO: it can't be opened, measured or locked; errno says why.
 * VQB_E_UNSUPP: neither a regular file nor a block device; `direct` is not to be had here.
 * VQB_E_INVALID, VQB_E_TOOBIG: parameters; `bytes` is less than vqb_file_size.
 */
VQB_API int32_t vqb_file_open(void *mem, size_t bytes, const struct vqb_file_config *config,
			      struct vqb_file **out);

/*
 * Closes it, which gives the lock back. Does not flush. No backend may use it any more.
 * VQB_OK. VQB_E_IO: the system reports an error of an earlier write; it is closed all the same.
 */
VQB_API int32_t vqb_file_close(struct vqb_file *file);

/* Bytes of the disk: what there was at open, down to whole sectors (`direct`: whole units). */
VQB_API uint64_t vqb_file_bytes(const struct vqb_file *file);

/* Memory of one backend on it. */
#define VQB_FILE_BACKEND_BYTES 128u

VQB_API size_t vqb_file_backend_size(void);

/*
 * Makes a backend on the image, for one queue, in `mem` (aligned to 64, `bytes` of it, living as
 * long as the backend). There is nothing to destroy.
 *
 * Results of ios: VQB_E_IO for any error of the system, and for a read that meets the end of the
 * file (somebody has cut it); VQB_E_UNSUPP where the system says that it doesn't do that.
 *
 * VQB_OK with the backend in *out. VQB_E_UNSUPP: the image was opened `direct`. VQB_E_INVALID,
 * VQB_E_TOOBIG: parameters.
 */
VQB_API int32_t vqb_file_backend_init(void *mem, size_t bytes, struct vqb_file *file,
				      struct vqb_backend **out);

VQB_C_END

#endif
