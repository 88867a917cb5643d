/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

void service_open(struct service *s, uint32_t room, uint32_t parallel)
{
	memset(s, 0, sizeof(*s));
	s->heap = zeroed(room * sizeof(*s->heap));
	s->parallel = parallel;
}

void service_close(struct service *s)
{
	free(s->heap);
}

static bool earlier(const struct service_work *a, const struct service_work *b)
{
	return a->finish != b->finish ? a->finish < b->finish : a->number < b->number;
}

static uint64_t served_at(struct service *s, uint64_t now, uint64_t time)
{
	uint64_t *first = s->busy_until;

	if (!s->parallel)
		return now;
	for (uint32_t i = 1; i < s->parallel; i++)
		if (s->busy_until[i] < *first)
			first = &s->busy_until[i];
	*first = (*first > now ? *first : now) + time;
	return *first;
}

void service_begin(struct service *s, struct service_work work, uint64_t now, uint64_t time)
{
	uint32_t at = s->works++;

	work.number = s->arrived++;
	work.finish = served_at(s, now, time);
	for (; at && earlier(&work, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		s->heap[at] = s->heap[(at - 1) / 2];
	s->heap[at] = work;
}

struct service_work service_end(struct service *s)
{
	struct service_work top = s->heap[0], last = s->heap[--s->works];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < s->works) {
		if (child + 1 < s->works && earlier(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (earlier(&last, &s->heap[child]))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = last;
	return top;
}
