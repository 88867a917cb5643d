/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/threads.h: a disk image as backend, with the I/O made by a pool of threads: for systems
 * without io_uring, and for whoever must not wait for a disk.
 *
 * One pool serves any number of backends, of any number of images, each on a thread of its own; it
 * takes turns between those that have something to do. What is submitted under plug starts with
 * unplug, as a batch.
 *
 *   status = vqb_threads_open(mem, sizeof(mem), &config, &pool);      config.threads = 4
 *   struct vqb_threads_backend_config queue = { .struct_size = sizeof(queue), .depth = 128,
 *                                               .pool = pool, .file = file };
 *   status = vqb_threads_backend_init(mem2, sizeof(mem2), &queue, &backend);
 *   ... use; sleep until the driver notifies or vqb_threads_fd(backend) is readable; then, with
 *   every queue quiesced:
 *   vqb_threads_backend_close(backend);
 *   vqb_threads_close(pool);
 *
 * Results and what the image must be like: host/file.h. The pool's threads block all signals, so a
 * file size limit makes writes fail, whatever the process does with SIGXFSZ.
 */
#ifndef VQBLK_HOST_THREADS_H
#define VQBLK_HOST_THREADS_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/host/file.h>
#include <vqblk/host/notify.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_threads; /* opaque */

struct vqb_threads_config {
	uint32_t struct_size; /* sizeof(struct vqb_threads_config) */
	uint32_t threads;     /* 1 to 256: so many ios are carried out at a time */
};

/* Memory of a pool. */
#define VQB_THREADS_BYTES(threads) VQB_ROUND_UP(256u + 8u * (size_t)(threads))

/* Bytes that vqb_threads_open needs; 0: the configuration is invalid. Any thread. */
VQB_API size_t vqb_threads_size(const struct vqb_threads_config *config);

/*
 * Starts a pool in `mem`, which must be aligned to 64, hold `bytes` bytes and outlive its backends.
 *
 * VQB_OK with the pool in *out: close it. VQB_E_IO: the system gives no threads, errno says why.
 * VQB_E_INVALID, VQB_E_TOOBIG: parameters; `bytes` is less than vqb_threads_size.
 */
VQB_API int32_t vqb_threads_open(void *mem, size_t bytes, const struct vqb_threads_config *config,
				 struct vqb_threads **out);

/* Ends the threads, and waits for it. Every backend must be closed. */
VQB_API void vqb_threads_close(struct vqb_threads *pool);

struct vqb_threads_backend_config {
	uint32_t struct_size; /* sizeof(struct vqb_threads_backend_config) */
	uint32_t depth;       /* most ios held at a time, from 1; then VQB_E_NOSPC */
	struct vqb_threads *pool;
	struct vqb_file *file;
	/*
	 * Signalled when there is something to poll: the queue's kick, say, so that its thread
	 * waits for one thing only. Open until the backend is closed; poll leaves it alone. NULL:
	 * an eventfd of the backend's own, which poll clears.
	 */
	const struct vqb_notify *notify;
};

/* Memory of one backend. */
#define VQB_THREADS_BACKEND_BYTES 384u

VQB_API size_t vqb_threads_backend_size(void);

/*
 * Makes a backend on the image, for one queue, in `mem` (aligned to 64, `bytes` of it, living until
 * it is closed).
 *
 * VQB_OK with the backend in *out: close it. VQB_E_IO: no descriptor to be had, errno says why.
 * VQB_E_UNSUPP: the image is direct. VQB_E_INVALID, VQB_E_TOOBIG: parameters.
 */
VQB_API int32_t vqb_threads_backend_init(void *mem, size_t bytes,
					 const struct vqb_threads_backend_config *config,
					 struct vqb_backend **out);

/* Waits for what the pool has of it, and lets go of the pool. What is not polled yet is lost. */
VQB_API void vqb_threads_backend_close(struct vqb_backend *backend);

/*
 * A descriptor that is readable while there is something to poll, to sleep on together with the
 * driver's notifications; to be neither read nor written. That of `notify` where one was given.
 */
VQB_API int vqb_threads_fd(const struct vqb_backend *backend);

VQB_C_END

#endif
