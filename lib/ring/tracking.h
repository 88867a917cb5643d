/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracking.h: the tracking area of one queue: which chains are in flight, in memory that outlives
 * the process.
 *
 * Whoever comes after a process that was killed needs to know two things: which chains were taken
 * and not given back, and in which order they were taken. Each head has an entry that says so.
 *
 *   take     counter = the next number; inflight = 1
 *   expose   each entry's next = the head before it, last_batch_head = the last one;
 *            used ring's index = ...; each inflight = 0; used_idx = the same as the used ring's
 *
 * So wherever a process stops, the chains in flight are those with inflight set, but for the last
 * batch if it is in the used ring already: as many as the used ring's index is ahead of used_idx,
 * counted from last_batch_head by next. The stores of one thread are seen in program order by
 * whoever comes after it, so all that is asked of the compiler is not to change that order: hence
 * release stores, which are plain ones on most machines.
 *
 * The layout is that of vhost-user for split rings, version 1, in the machine's byte order.
 */
#ifndef RING_TRACKING_H
#define RING_TRACKING_H

#include <vqblk/device.h>

#include "split.h"

struct tracked {
	uint16_t inflight; /* the format has a byte, and a byte of padding behind it: see track */
	uint8_t zero[4];
	uint16_t next;
	uint64_t counter;
};

struct tracking_area {
	uint64_t features;
	uint16_t version, desc_num, last_batch_head, used_idx;
	struct tracked entry[];
};

_Static_assert(sizeof(struct tracked) == 16, "in-flight entry");
_Static_assert(offsetof(struct tracked, next) == 6, "in-flight entry");
_Static_assert(offsetof(struct tracked, counter) == 8, "in-flight entry");
_Static_assert(sizeof(struct tracking_area) == 16, "in-flight header");
_Static_assert(offsetof(struct tracking_area, version) == 8, "in-flight header");

struct tracking {
	struct tracking_area *area; /* NULL: there is none */
	uint64_t counter;           /* of the next take */
	uint16_t last;              /* last_batch_head */
	uint32_t resubmit;          /* up to this position, take finds what a predecessor left */
};

/* Free-running positions of a ring whose heads stand in an array as long as the ring. */
struct positions {
	const uint16_t *head;
	uint32_t mask, from, to;
};

bool vqb__tracking_usable(const struct vqb_tracking *config, uint32_t max_size);

/* Is there something to go on from? */
bool vqb__tracking_is_live(const struct tracking *t);

/* Makes the area one of a queue with nothing in flight, whose used index is `used`. */
void vqb__tracking_clear(struct tracking *t, uint32_t size, uint16_t used);

/* Whoever comes next begins anew, wherever this process stops. */
static inline void tracking_forget(struct tracking *t)
{
	vqb_port_store16_release(&t->area->version, 0);
}

/*
 * Checks what a predecessor left, and mends its last batch. `used` is the used ring's index.
 * `order` has `size` entries; *count of them, from position `used` on, are then the heads in
 * flight, the one taken first in front. VQB_OK or VQB_E_INVALID.
 */
int32_t vqb__tracking_load(struct tracking *t, uint32_t size, uint16_t used, uint16_t *order,
			   uint32_t *count);

/* Sets or clears the flag, which is the byte at the lower address. */
static inline void track(struct tracking *t, uint32_t head, uint16_t inflight)
{
	vqb_port_store16_release(&t->area->entry[head].inflight, order16(inflight, MODE_PLAIN));
}

/* The chain at `head` is taken. */
static inline void tracking_take(struct tracking *t, uint32_t head)
{
	vqb_port_store64(&t->area->entry[head].counter, t->counter++);
	track(t, head, 1);
}

/* It is not, after all, and is still the driver's to offer. */
static inline void tracking_untake(struct tracking *t, uint32_t head)
{
	track(t, head, 0);
}

/* Before these heads become visible in the used ring. */
void vqb__tracking_link(struct tracking *t, struct positions p);

/* After they have. */
void vqb__tracking_settle(struct tracking *t, struct positions p);

#endif
