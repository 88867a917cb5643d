/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h: direct or through a table? What an add and a reap do for that.
 *
 * All kinds share one compare. `need` is how many ring entries are to be there for requests, with
 * the one being added: those that are out, and the descriptors that would still be free. Never
 * is need 0, always is a need that no ring meets; so are the kinds that have to be asked, which
 * keeps the question off the direct path. Only the adaptive policy moves it, once per window of
 * completions (policy.c); `longest` is a bound of that policy alone.
 */
#ifndef RING_POLICY_H
#define RING_POLICY_H

#include <stdbool.h>

#include <vqblk/indirect.h>
#include <vqblk/port.h>

/* Where a request goes, and why. The counters of driver.h are kept by these. */
enum way {
	WAY_SINGLE,   /* direct: one segment */
	WAY_CHOSEN,   /* direct: by the policy */
	WAY_NO_TABLE, /* direct: the policy would have had a table, but there is none for it */
	WAY_NO_ROOM,  /* nowhere now */
	WAY_TABLE,    /* a table: by the policy */
	WAY_WHOLE,    /* a table: directly it would lie in pieces */
	WAY_FORCED,   /* a table: the free descriptors can't hold it */
	WAYS,
};

#define NEED_ENDLESS UINT32_MAX
#define PEAK_UNUSED UINT32_MAX

enum phase {
	PHASE_WATCH,  /* nothing is being tried */
	PHASE_SETTLE, /* the other behaviour is on, requests from before it are still out */
	PHASE_TRY,    /* it is being measured */
};

/* What was done in a window, or part of it. */
struct rate {
	uint32_t done, notified;
	uint64_t ticks;
};

struct policy {
	uint32_t need;
	uint32_t longest; /* that may go direct where there is a table: segments */
	uint32_t peak;    /* most requests out at once in this window */
	uint32_t due;     /* the completion at which vqb__policy_due is called */
	uint8_t kind;     /* enum vqb_indirect_kind */
	bool asks;        /* the kind has to be asked */
	bool plain;       /* adaptive: its behaviour now */
	uint8_t phase;    /* adaptive: enum phase */
	uint64_t count[WAYS];
	union {
		uint32_t (*choose)(void *context, const struct vqb_indirect_load *load);
		uint64_t (*clock)(void *context);
		uint32_t threshold;
	};
	void *context;
	uint32_t size; /* of the ring */
	union {
		struct {
			uint32_t most, at;
		} decay;
		struct {
			uint32_t since;  /* the completion at which the window began */
			uint32_t length; /* of the window */
			uint64_t ticks;  /* the clock then; 0: not known */
			/* Counts as they stood then, modulo 2^32. */
			uint32_t tables, no_room, segments, notified;
			struct rate base;    /* the last window: what a trial is compared with */
			struct rate sparing; /* what being plain has to keep up with; or 0 */
			uint32_t wait, left; /* windows between two trials; to the next */
			uint32_t usual_peak, usual_mean;
		} adapt;
	};
};

bool vqb__policy_usable(const struct vqb_indirect_policy *policy);
/* Takes a usable policy, or NULL; counters run on. */
void vqb__policy_set(struct policy *p, const struct vqb_indirect_policy *policy);
/* A ring of `size` entries and `tables` tables starts, with completion `cursor` the next one. */
void vqb__policy_start(struct policy *p, uint32_t size, uint32_t tables, uint32_t cursor);
void vqb__policy_clear(struct policy *p);

bool vqb__policy_ask(struct policy *p, uint32_t n, uint32_t free, uint32_t in_flight,
		     uint32_t tables, uint32_t next);
void vqb__policy_refused(struct policy *p);
void vqb__policy_higher(struct policy *p, uint32_t out, uint32_t next);
/* What the end of a reap knows. */
struct policy_news {
	uint32_t cursor;    /* completions reaped, free-running */
	uint32_t in_flight; /* requests that are out */
	uint64_t segments;  /* added so far */
	uint64_t notified;  /* notifications of the device that were owed so far */
};

void vqb__policy_due(struct policy *p, const struct policy_news *news, bool drained);

/*
 * Entries up to the end of the ring for which tables are taken. Round the end, each descriptor
 * costs some 30 instructions more and the break 190; a table costs 50 (3 segments) to 240 (66)
 * more than direct in one piece, but takes one entry, so that the next request meets the same end.
 * Both come to the same at eight or nine entries from 18 to 66 segments; shorter ones leave fewer.
 */
#define END_SHORT 8u

/*
 * The way of one that was to go direct, but in pieces, with `left` entries up to the end of the
 * ring. Pieces that are `scattered`, since requests came back out of order, would come back as
 * such, and the next ones would have to use them; tables give the ring the time to become whole.
 */
VQB_INLINE enum way policy_in_pieces(const struct policy *p, uint32_t n, bool scattered,
				     uint32_t left, uint32_t tables, uint32_t length)
{
	if (p->kind != VQB_INDIRECT_ADAPTIVE || n > length || !tables)
		return WAY_CHOSEN;
	return scattered || left <= END_SHORT ? WAY_WHOLE : WAY_CHOSEN;
}

/*
 * The way of a request of `n` segments, not 0, by the rules of indirect.h; `next` is its number.
 * All by value: what is only handed on to a call must not be stored for it on every way.
 */
VQB_INLINE enum way policy_way(struct policy *p, uint32_t n, uint32_t free, uint32_t in_flight,
			       uint32_t tables, uint32_t length, uint32_t next)
{
	if (VQB_UNLIKELY(n > free)) {
		if (n > 1 && n <= length && tables && free && p->kind != VQB_INDIRECT_NEVER)
			return WAY_FORCED;
		vqb__policy_refused(p);
		return WAY_NO_ROOM;
	}
	if (n == 1)
		return WAY_SINGLE;
	if (free + in_flight + 1 - n >= p->need && n <= p->longest)
		return WAY_CHOSEN;
	if (n > length || !tables)
		return WAY_NO_TABLE;
	if (VQB_UNLIKELY(p->asks) && !vqb__policy_ask(p, n, free, in_flight, tables, next))
		return WAY_CHOSEN;
	return WAY_TABLE;
}

/*
 * After a reap that took `n` completions: is vqb__policy_due to be called? Requests out are most
 * numerous just before a reap, so that is where their peak is looked for, and adding costs nothing
 * for it.
 */
VQB_INLINE bool policy_reaped(struct policy *p, uint32_t next, uint32_t cursor, uint32_t n)
{
	uint32_t out = next - cursor + n;

	if (VQB_UNLIKELY(out > p->peak))
		vqb__policy_higher(p, out, next);
	return VQB_UNLIKELY((int32_t)(cursor - p->due) >= 0);
}

#endif
