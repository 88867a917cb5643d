/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h: a device in virtual time: some servers, what they work on, and when that is done. */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <vqblk/device.h>

enum { SERVICE_PARALLEL = 128 };

/* A request that the device has. */
struct service_work {
	uint64_t finish;
	uint64_t number; /* as they came: what finishes together is in order */
	struct vqb_ticket ticket;
	uint32_t written;
	uint32_t mark; /* the caller's */
};

struct service {
	struct service_work *heap; /* by finish, the earliest on top */
	uint32_t works, parallel;
	uint64_t arrived;
	uint64_t busy_until[SERVICE_PARALLEL];
};

/* Room for so many works at a time. `parallel` 0: the device takes no time at all. */
void service_open(struct service *s, uint32_t room, uint32_t parallel);
void service_close(struct service *s);

/*
 * A request arrives at `now`, and waits for the first server that is free, which then takes `time`
 * for it. `finish` and `number` of it are set here.
 */
void service_begin(struct service *s, struct service_work work, uint64_t now, uint64_t time);

/* When the next one is done; UINT64_MAX: there is none. */
static inline uint64_t service_next(const struct service *s)
{
	return s->works ? s->heap[0].finish : UINT64_MAX;
}

/* Takes out that one. */
struct service_work service_end(struct service *s);

#endif
