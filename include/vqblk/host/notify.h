/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/notify.h: notifications between threads or processes: an eventfd.
 *
 * One side signals, the other waits or watches the descriptor with poll, epoll or io_uring.
 * Signals add up to one: however many came, one wait or clear settles them. None is lost: what was
 * signalled before or during a wait ends it.
 *
 *   signalling side
 *   if (vqb_driver_publish(drv) & VQB_NOTIFY)
 *           vqb_notify_signal(&kick);
 *
 *   waiting side
 *   while (!vqb_notify_wait(&kick, -1)) {
 *           do {
 *                   answer = vqb_blk_queue_run(queue, 256);
 *                   if (answer & VQB_NOTIFY)
 *                           vqb_notify_signal(&interrupt);
 *           } while (answer & VQB_MORE);
 *   }
 *
 * Signals may come from any number of threads, and from signal handlers.
 */
#ifndef VQBLK_HOST_NOTIFY_H
#define VQBLK_HOST_NOTIFY_H

#include <vqblk/api.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/*
 * `fd` may be watched, and be given to others (a VMM, vhost); it does not block. It may as well be
 * an eventfd of yours that doesn't block (from KVM, from a front-end): set it, don't call
 * vqb_notify_open, and close it yourself.
 */
struct vqb_notify {
	int fd;
};

/* VQB_OK. VQB_E_IO: no descriptor to be had, errno says why; notify->fd is then -1. */
VQB_API int32_t vqb_notify_open(struct vqb_notify *notify);

/* Closes it. Nothing happens to one that is closed already. */
VQB_API void vqb_notify_close(struct vqb_notify *notify);

/* VQB_OK: whoever waits wakes up. VQB_E_IO: errno says why. errno is kept otherwise. */
VQB_API int32_t vqb_notify_signal(struct vqb_notify *notify);

/*
 * Waits until signalled, at most `milliseconds` (-1: for ever, 0: not at all), and clears it.
 * Signals to the process (EINTR) don't end the wait.
 *
 * VQB_OK: signalled. VQB_E_AGAIN: the time is over. VQB_E_IO: errno says why.
 */
VQB_API int32_t vqb_notify_wait(struct vqb_notify *notify, int32_t milliseconds);

/* VQB_OK: it was signalled, and is cleared. VQB_E_AGAIN: it was not. VQB_E_IO: errno says why. */
VQB_API int32_t vqb_notify_clear(struct vqb_notify *notify);

VQB_C_END

#endif
