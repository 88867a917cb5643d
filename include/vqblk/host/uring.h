/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/uring.h: a disk image as backend, with the I/O done by the kernel meanwhile: io_uring.
 *
 * The image is a vqb_file (file.h), opened by the caller and shared by any number of backends, with
 * `direct` or without. Each backend has an io_uring of its own, for one queue and thread.
 *
 *   struct vqb_uring_config config = { .struct_size = sizeof(config), .file = file,
 *                                      .entries = 128, .notify = &kick };
 *   size_t bytes = vqb_uring_size(&config);
 *   status = vqb_uring_init(aligned_alloc(64, bytes), bytes, &config, &backend);
 *   if (status == VQB_E_UNSUPP)
 *           ... no io_uring here: the backends of threads.h, or of file.h, one io at a time, do the
 *           same; neither takes an image that was opened `direct`, so open it again without
 *   ... use; then, with the queue quiesced:
 *   vqb_uring_close(backend);
 *   status = vqb_file_close(file);
 *
 * System calls: one io_uring_enter for all that was submitted between plug and unplug, or for each
 * submit that was not plugged. poll makes none, unless an io has to go on: what the kernel cut
 * short, pieces by the thousand, a transfer longer than its bounce buffer. The counters tell.
 *
 * Waking up: with `notify`, a completion signals that eventfd, which may be the queue's kick, so
 * that the thread waits for one thing only. What is done at once, from the page cache say, is there
 * when unplug (or an unplugged submit) returns: poll before you sleep, as vqb_blk_queue_run does.
 *
 * Full (VQB_E_NOSPC): `entries` ios are in flight, or all bounce buffers are.
 *
 * Results are those of file.h, flushes that fail for good too: they are the image's. A flush is an
 * fdatasync, and a write with FUA has one linked to it. Ranges are zeroed and discarded by the
 * kernel meanwhile, too, but for discards and secure erases of a block device, which are ioctls:
 * made within submit, they take as long as they take.
 *
 * Direct: memory of the guest that is not aligned as the disk wants it goes through a bounce
 * buffer. Offsets and lengths are never rounded: caps.alignment says what they must be multiples
 * of, and a device with smaller blocks is refused by vqb_blk_queue_init.
 */
#ifndef VQBLK_HOST_URING_H
#define VQBLK_HOST_URING_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/host/file.h>
#include <vqblk/host/notify.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* Limits of a configuration. */
#define VQB_URING_MAX_ENTRIES 8192u
#define VQB_URING_MAX_BOUNCES 8192u

struct vqb_uring_config {
	uint32_t struct_size;            /* sizeof(struct vqb_uring_config) */
	uint32_t entries;                /* most ios in flight: 1 to VQB_URING_MAX_ENTRIES */
	struct vqb_file *file;           /* outlives the backend */
	const struct vqb_notify *notify; /* open until the backend is closed; NULL: no signals */
	/*
	 * Of a direct image: how many bounce buffers, from 1, and of how many bytes each, a
	 * multiple of 4096 and of the image's alignment. Else unused.
	 */
	uint32_t bounces, bounce_bytes;
};

/* Memory of a backend, bounce buffers included; 0 for a configuration that is none. */
VQB_API size_t vqb_uring_size(const struct vqb_uring_config *config);

/*
 * Makes a backend in `mem` (aligned to 64, `bytes` of it, living as long as the backend). Any
 * thread; afterwards it is the queue's.
 *
 * VQB_OK with the backend in *out: close it.
 * VQB_E_UNSUPP: the system has no io_uring, or one too old (before Linux 5.6), or doesn't let us
 *   use it; or the library was built without.
 * VQB_E_IO: it can't be set up: memory, descriptors; errno says why.
 * VQB_E_INVALID, VQB_E_TOOBIG: parameters; `bytes` is less than vqb_uring_size.
 */
VQB_API int32_t vqb_uring_init(void *mem, size_t bytes, const struct vqb_uring_config *config,
			       struct vqb_backend **out);

/*
 * Closes it, after waiting for ios in flight: until then the kernel writes to their buffers. Those
 * that poll has not handed out by now never will be.
 */
VQB_API void vqb_uring_close(struct vqb_backend *backend);

/* Most pieces of memory that are registered, each GiB of one counting as one. */
#define VQB_URING_MAX_REGIONS 64u

/*
 * Of a direct image: tells the kernel of memory that ios will come from, the guest's, so that it
 * need not look it up for each of them. Ios of one piece that lies within one region and GiB then
 * cost it a fifth (4 KiB) to a third (64 KiB) less time; nothing changes for others. It replaces
 * what was registered before; no pieces: nothing is. The memory is pinned, which counts against
 * RLIMIT_MEMLOCK, and has to stay mapped until then, or until the backend is closed.
 *
 * VQB_OK. VQB_E_BUSY: ios are in flight. VQB_E_TOOBIG: more than VQB_URING_MAX_REGIONS. VQB_E_IO:
 * the system doesn't pin that much; errno says why. VQB_E_UNSUPP: the image is not direct, so that
 * there is nothing to gain, or the memory is of a kind that can't be pinned. After an error other
 * than VQB_E_BUSY nothing is registered, and the backend works all the same.
 */
VQB_API int32_t vqb_uring_register_memory(struct vqb_backend *backend,
					  const struct vqb_piece *memory, uint32_t pieces);

struct vqb_uring_counters {
	uint64_t ios;          /* accepted */
	uint64_t full;         /* refused for lack of room */
	uint64_t system_calls; /* io_uring_enter, to submit or to wait */
	uint64_t steps;        /* operations submitted to the kernel */
	uint64_t resumed;      /* of those, the ones that went on where another ended early */
	uint64_t bounced;      /* ios that went through a bounce buffer */
};

/* Since init. On the thread of the queue. */
VQB_API void vqb_uring_read_counters(const struct vqb_backend *backend,
				     struct vqb_uring_counters *out);

VQB_C_END

#endif
