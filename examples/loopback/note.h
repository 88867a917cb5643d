/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note.h: lists without a lock, that any number of threads put notes on and one empties.
 *
 * This is how several threads share a queue here, rather than by a lock around its driver: the ring
 * and the block driver stay one thread's, which is the one that sleeps on the interrupt. So nobody
 * waits for a lock that is held over a whole reap; bios of all threads that came meanwhile go out
 * as one list, with one decision whether to notify; and a reset has one thread to stop. The price
 * is a wake-up between threads on either way, of which there is none while both are busy.
 *
 * The list is a stack whose top is exchanged as a whole. So nothing is ever taken from the middle,
 * and a note that is put, taken and put again harms nobody.
 */
#ifndef LOOPBACK_NOTE_H
#define LOOPBACK_NOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot;

/* On one list at a time. */
struct note {
	struct note *next;
	struct slot *slot; /* that it is about */
	int32_t status;    /* of an answer */
};

struct notes {
	_Atomic(struct note *) newest;
};

static inline void notes_put(struct notes *notes, struct note *note)
{
	note->next = atomic_load_explicit(&notes->newest, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&notes->newest, &note->next, note))
		;
}

static inline bool notes_any(struct notes *notes)
{
	return atomic_load(&notes->newest) != NULL;
}

/* All of them, in the order in which they were put; NULL: none. */
static inline struct note *notes_take(struct notes *notes)
{
	struct note *newest, *next, *list = NULL;

	if (!atomic_load_explicit(&notes->newest, memory_order_relaxed))
		return NULL;
	for (newest = atomic_exchange(&notes->newest, NULL); newest; newest = next) {
		next = newest->next;
		newest->next = list;
		list = newest;
	}
	return list;
}

#endif
