/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.c: an eventfd, never blocking: clear is its one read, and wait is clear with a poll
 * whenever there is nothing to clear. So a signal between the two ends the poll at once.
 */
#define _POSIX_C_SOURCE 200809L

#include <vqblk/host/notify.h>

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int32_t vqb_notify_open(struct vqb_notify *notify)
{
	notify->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return notify->fd < 0 ? VQB_E_IO : VQB_OK;
}

void vqb_notify_close(struct vqb_notify *notify)
{
	if (notify->fd >= 0)
		close(notify->fd);
	notify->fd = -1;
}

int32_t vqb_notify_signal(struct vqb_notify *notify)
{
	const uint64_t one = 1;
	int kept = errno;
	ssize_t n;

	do
		n = write(notify->fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
	/* EAGAIN: the counter is at its end, so it is signalled already. */
	if (n < 0 && errno != EAGAIN)
		return VQB_E_IO;
	errno = kept;
	return VQB_OK;
}

int32_t vqb_notify_clear(struct vqb_notify *notify)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(notify->fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? VQB_E_AGAIN : VQB_E_IO;
	return VQB_OK;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Polls once, not beyond `end` where there is one. VQB_E_AGAIN: the time is over. */
static int32_t sleep_until(struct vqb_notify *notify, int32_t milliseconds, int64_t end)
{
	struct pollfd one = { .fd = notify->fd, .events = POLLIN };
	int64_t left = milliseconds < 0 ? -1 : end - now();
	int n;

	if (milliseconds >= 0 && left <= 0)
		return VQB_E_AGAIN;
	n = poll(&one, 1, (int)left);
	if (n < 0 && errno != EINTR)
		return VQB_E_IO;
	return VQB_OK;
}

int32_t vqb_notify_wait(struct vqb_notify *notify, int32_t milliseconds)
{
	int64_t end = milliseconds > 0 ? now() + milliseconds : 0;
	int32_t status;

	for (;;) {
		status = vqb_notify_clear(notify);
		if (status != VQB_E_AGAIN || !milliseconds)
			return status;
		status = sleep_until(notify, milliseconds, end);
		if (status)
			return status;
	}
}
