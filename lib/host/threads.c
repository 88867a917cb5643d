/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c: a pool of threads that carry out ios on images.
 *
 *   pending --unplug--> queued --a thread--> carried out --> done --poll--> the queue
 *   (queue's thread)   (pool's lock)       (no lock)      (backend's lock)
 *
 * The pool has a list of backends with something to do. A thread takes the first one, one io of
 * it, and puts it back at the end if there is more: a queue that sends much doesn't keep the others
 * waiting. Whoever takes work and leaves some wakes the next thread, so a batch costs its sender
 * one lock and one wake-up.
 *
 * Under the lock of a backend its own eventfd is readable exactly while `done` isn't empty: no
 * wake-up is lost, and none comes for nothing.
 */
#define _GNU_SOURCE

#include <vqblk/host/threads.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <vqblk/host/notify.h>

#include "image.h"

enum { THREADS_MAX = 256 };

struct threads_backend {
	struct vqb_backend base;
	struct vqb_threads *pool;
	struct vqb_file *file;
	uint32_t depth;

	/* The queue's thread's. */
	struct vqb_io_list pending;
	uint32_t held;
	uint32_t given; /* to the pool, ever */
	uint8_t plugged;

	/* Under the pool's lock. */
	struct vqb_io_list queued;
	struct threads_backend *next; /* with something to do */

	/* Under `lock`, but for a first look at `ready`. */
	pthread_mutex_t lock;
	pthread_cond_t idle; /* finished == given */
	struct vqb_io_list done;
	atomic_uint ready; /* done.first is one */
	uint32_t finished; /* by the pool, ever */
	struct vqb_notify notify;
	uint8_t shared; /* the eventfd is somebody else's, who clears it */
};

struct vqb_threads {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct threads_backend *first, *last; /* with something to do */
	uint32_t sleeping;
	uint32_t stop;
	uint32_t threads; /* started */
	pthread_t thread[];
};

_Static_assert(sizeof(struct vqb_threads) <= 256 && sizeof(pthread_t) <= 8, "bound");
_Static_assert(sizeof(struct threads_backend) <= VQB_THREADS_BACKEND_BYTES, "bound");

/* ---- the pool's side ---- */

/* With the pool locked. */
static void add_backend(struct vqb_threads *pool, struct threads_backend *backend)
{
	backend->next = NULL;
	if (pool->first)
		pool->last->next = backend;
	else
		pool->first = backend;
	pool->last = backend;
}

/* With the pool locked, and something to do. */
static struct vqb_io *take_io(struct vqb_threads *pool, struct threads_backend **from)
{
	struct threads_backend *backend = pool->first;
	struct vqb_io *io = backend->queued.first;

	pool->first = backend->next;
	backend->queued.first = io->next;
	if (backend->queued.first)
		add_backend(pool, backend);
	*from = backend;
	return io;
}

/*
 * The signal is given under the lock: with the lock gone, a backend that has nothing out any more
 * may be gone, too.
 */
static void finish_io(struct threads_backend *backend, struct vqb_io *io)
{
	pthread_mutex_lock(&backend->lock);
	if (!backend->done.first) {
		atomic_store_explicit(&backend->ready, 1, memory_order_relaxed);
		vqb_notify_signal(&backend->notify);
	}
	vqb_io_list_add(&backend->done, io);
	backend->finished++;
	pthread_cond_signal(&backend->idle);
	pthread_mutex_unlock(&backend->lock);
}

static void *thread_main(void *arg)
{
	struct vqb_threads *pool = arg;
	struct threads_backend *backend;
	struct vqb_io *io;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->first && !pool->stop) {
			pool->sleeping++;
			pthread_cond_wait(&pool->work, &pool->lock);
			pool->sleeping--;
		}
		if (!pool->first)
			break;
		io = take_io(pool, &backend);
		if (pool->first && pool->sleeping)
			pthread_cond_signal(&pool->work);
		pthread_mutex_unlock(&pool->lock);
		io->result = vqb__image_carry_out(backend->file, io);
		finish_io(backend, io);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Errors are errnos, as pthread has them. */
static int start_threads(struct vqb_threads *pool, uint32_t threads)
{
	sigset_t all, kept;
	int error = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	while (!error && pool->threads < threads) {
		error = pthread_create(&pool->thread[pool->threads], NULL, thread_main, pool);
		pool->threads += !error;
	}
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	return error;
}

size_t vqb_threads_size(const struct vqb_threads_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || !config->threads ||
	    config->threads > THREADS_MAX)
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_threads) + config->threads * sizeof(pthread_t));
}

int32_t vqb_threads_open(void *mem, size_t bytes, const struct vqb_threads_config *config,
			 struct vqb_threads **out)
{
	size_t need = vqb_threads_size(config);
	struct vqb_threads *pool = mem;
	int error;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	memset(pool, 0, need);
	error = pthread_mutex_init(&pool->lock, NULL);
	if (error)
		goto fail;
	error = pthread_cond_init(&pool->work, NULL);
	if (error)
		goto fail_lock;
	error = start_threads(pool, config->threads);
	if (error) {
		vqb_threads_close(pool);
		goto fail;
	}
	*out = pool;
	return VQB_OK;

fail_lock:
	pthread_mutex_destroy(&pool->lock);
fail:
	errno = error;
	return VQB_E_IO;
}

void vqb_threads_close(struct vqb_threads *pool)
{
	uint32_t i;

	pthread_mutex_lock(&pool->lock);
	pool->stop = 1;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (i = 0; i < pool->threads; i++)
		pthread_join(pool->thread[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
}

/* ---- the queue's side ---- */

/* Gives the pool all that is pending. */
static void hand_over(struct threads_backend *self)
{
	struct vqb_threads *pool = self->pool;
	struct vqb_io *first = vqb_io_list_take(&self->pending);
	int wake;

	if (!first)
		return;
	pthread_mutex_lock(&pool->lock);
	if (self->queued.first) {
		self->queued.last->next = first;
	} else {
		self->queued.first = first;
		add_backend(pool, self);
	}
	self->queued.last = self->pending.last;
	wake = pool->sleeping != 0;
	pthread_mutex_unlock(&pool->lock);
	if (wake)
		pthread_cond_signal(&pool->work);
}

static int32_t threads_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct threads_backend *self = (struct threads_backend *)backend;
	int32_t status = vqb__image_admits(&backend->caps, io);

	if (status)
		return status;
	if (self->held == self->depth)
		return VQB_E_NOSPC;
	self->held++;
	self->given++;
	vqb_io_list_add(&self->pending, io);
	if (!self->plugged)
		hand_over(self);
	return VQB_OK;
}

static void threads_plug(struct vqb_backend *backend)
{
	((struct threads_backend *)backend)->plugged = 1;
}

static void threads_unplug(struct vqb_backend *backend)
{
	struct threads_backend *self = (struct threads_backend *)backend;

	self->plugged = 0;
	hand_over(self);
}

static struct vqb_io *threads_poll(struct vqb_backend *backend)
{
	struct threads_backend *self = (struct threads_backend *)backend;
	struct vqb_io *first, *io;

	if (!atomic_load_explicit(&self->ready, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&self->lock);
	first = vqb_io_list_take(&self->done);
	atomic_store_explicit(&self->ready, 0, memory_order_relaxed);
	if (first && !self->shared)
		vqb_notify_clear(&self->notify);
	pthread_mutex_unlock(&self->lock);
	for (io = first; io; io = io->next)
		self->held--;
	return first;
}

static void threads_drain(struct vqb_backend *backend)
{
	struct threads_backend *self = (struct threads_backend *)backend;

	hand_over(self);
	pthread_mutex_lock(&self->lock);
	while (self->finished != self->given)
		pthread_cond_wait(&self->idle, &self->lock);
	pthread_mutex_unlock(&self->lock);
}

static const struct vqb_backend_ops threads_ops = {
	.struct_size = sizeof(threads_ops),
	.submit = threads_submit,
	.plug = threads_plug,
	.unplug = threads_unplug,
	.poll = threads_poll,
	.drain = threads_drain,
};

size_t vqb_threads_backend_size(void)
{
	return VQB_ROUND_UP(sizeof(struct threads_backend));
}

/* Lock, condition and descriptor, or an errno. */
static int open_means(struct threads_backend *self, const struct vqb_notify *notify)
{
	int error = pthread_mutex_init(&self->lock, NULL);

	if (error)
		return error;
	error = pthread_cond_init(&self->idle, NULL);
	if (error)
		goto fail_lock;
	self->shared = notify != NULL;
	if (notify)
		self->notify = *notify;
	if (notify || !vqb_notify_open(&self->notify))
		return 0;
	error = errno;
	pthread_cond_destroy(&self->idle);
fail_lock:
	pthread_mutex_destroy(&self->lock);
	return error;
}

int32_t vqb_threads_backend_init(void *mem, size_t bytes,
				 const struct vqb_threads_backend_config *config,
				 struct vqb_backend **out)
{
	struct threads_backend *self = mem;
	int error;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out || !config ||
	    config->struct_size != sizeof(*config) || !config->depth || !config->pool ||
	    !config->file)
		return VQB_E_INVALID;
	if (bytes < vqb_threads_backend_size())
		return VQB_E_TOOBIG;
	if (config->file->direct)
		return VQB_E_UNSUPP;
	memset(self, 0, sizeof(*self));
	error = open_means(self, config->notify);
	if (error) {
		errno = error;
		return VQB_E_IO;
	}
	atomic_init(&self->ready, 0);
	self->pool = config->pool;
	self->file = config->file;
	self->depth = config->depth;
	self->base.struct_size = sizeof(self->base);
	self->base.ops = &threads_ops;
	vqb__image_caps(self->file, &self->base.caps);
	*out = &self->base;
	return VQB_OK;
}

void vqb_threads_backend_close(struct vqb_backend *backend)
{
	struct threads_backend *self = (struct threads_backend *)backend;

	threads_drain(backend);
	if (!self->shared)
		vqb_notify_close(&self->notify);
	pthread_cond_destroy(&self->idle);
	pthread_mutex_destroy(&self->lock);
}

int vqb_threads_fd(const struct vqb_backend *backend)
{
	return ((const struct threads_backend *)backend)->notify.fd;
}
