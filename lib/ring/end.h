/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end.h: one end of a ring: where it stands, and its half of the notification protocol.
 *
 * The two sides mirror each other. Each writes one ring (the driver the available ring, the
 * device the used ring), reads the other, tells in its own ring when it wants to be notified
 * and learns from the other when the peer does:
 *
 *                     driver                      device
 *   own->idx          available index             used index
 *   own_event         used_event                  avail_event
 *   own->flags        NO_INTERRUPT                NO_NOTIFY
 *   peer->...         the device's column         the driver's column
 *
 * Positions are free-running 32-bit counts; their low 16 bits are what lies in memory.
 *   peer's ring:  cursor <= seen          entries consumed, entries known to be there
 *   own ring:     decided <= exposed <= next   decided about, visible to the peer, written
 *
 * Lost wake-ups are avoided by one rule, the same in publish, arm and turn: first store what the
 * peer must see (index, wish), then a full fence, then load what the peer has stored.
 */
#ifndef RING_END_H
#define RING_END_H

#include "split.h"

struct end {
	struct ring_head *own;
	const struct ring_head *peer;
	struct vqb_le16 *own_event;        /* NULL without EVENT_IDX, as the next one: */
	const struct vqb_le16 *peer_event; /* then the event words are never touched (K12) */
	uint32_t next, exposed, decided;
	uint32_t cursor, seen;
	uint32_t asked;   /* last wish stored (an event or a flag), so as not to store it again */
	bool owed;        /* the next decision is NOTIFY: the last index announced is not known */
	uint64_t written; /* entries of the own ring, ever, but for those not yet exposed */
	uint64_t notified, suppressed;
};

#define ASKED_UNKNOWN UINT32_MAX

/* Starts both rings at `own_idx` and `peer_idx`. The counters run on. */
static inline void end_start(struct end *e, uint16_t own_idx, uint16_t peer_idx)
{
	e->written += e->next - e->exposed;
	e->next = e->exposed = e->decided = own_idx;
	e->cursor = e->seen = peer_idx;
	e->asked = ASKED_UNKNOWN;
	e->owed = true;
}

/* Entries of the own ring, ever. Counted once per batch, where they are exposed. */
static inline uint64_t end_written(const struct end *e)
{
	return e->written + (e->next - e->exposed);
}

/* Entries that the peer has put there and this side has not consumed, as the peer says. */
static inline uint16_t end_ahead(const struct end *e)
{
	return (uint16_t)(load_le16_acquire(&e->peer->idx) - e->cursor);
}

static inline void end_expose(struct end *e)
{
	if (e->exposed == e->next)
		return;
	store_le16_release(&e->own->idx, (uint16_t)e->next);
	e->written += e->next - e->exposed;
	e->exposed = e->next;
	/* From here on the distance to the last decision is ambiguous in 16 bits. */
	if (e->exposed - e->decided >= 65535)
		e->owed = true;
}

static inline bool end_undecided(const struct end *e)
{
	return e->exposed != e->decided || e->owed;
}

/* After expose and a full fence: did the peer ask to hear of what is not decided about yet? */
static inline uint32_t end_decide(struct end *e)
{
	bool due, fresh = e->exposed != e->decided;

	if (e->peer_event)
		due = event_due(load_le16(e->peer_event), (uint16_t)e->exposed,
				(uint16_t)e->decided) ||
		      e->owed;
	else
		due = !(load_le16(&e->peer->flags) & FLAG_QUIET);
	e->decided = e->exposed;
	e->owed = false;
	if (!due) {
		e->suppressed += fresh;
		return VQB_QUIET;
	}
	e->notified++;
	return VQB_NOTIFY;
}

static inline uint32_t end_publish(struct end *e)
{
	end_expose(e);
	if (!end_undecided(e))
		return VQB_QUIET;
	vqb_port_fence(); /* the index is visible before the peer's wish is read (SR-DRV-35) */
	return end_decide(e);
}

static inline void end_ask_event(struct end *e, uint16_t event)
{
	if (e->asked == event)
		return;
	store_le16(e->own_event, event);
	e->asked = event;
}

static inline void end_ask_flag(struct end *e, uint32_t flag)
{
	if (e->asked == flag)
		return;
	store_le16(&e->own->flags, (uint16_t)flag);
	e->asked = flag;
}

/* Stores the wish to hear of the peer's entry `cursor + skip`. The fence is the caller's. */
static inline void end_ask(struct end *e, uint32_t skip)
{
	if (e->own_event)
		end_ask_event(e, (uint16_t)(e->cursor + skip));
	else
		end_ask_flag(e, 0);
}

/* MORE: more than `skip` of the peer's entries are there. */
static inline uint32_t end_arm(struct end *e, uint32_t skip)
{
	end_ask(e, skip);
	vqb_port_fence(); /* the wish is visible before the peer's index is read (SR-DRV-37) */
	return end_ahead(e) > skip ? VQB_MORE : VQB_QUIET;
}

/* Publish and arm with one fence, which orders both stores before both loads. */
static inline uint32_t end_turn(struct end *e)
{
	uint32_t answer = VQB_QUIET;

	end_expose(e);
	end_ask(e, 0);
	vqb_port_fence();
	if (end_undecided(e))
		answer = end_decide(e);
	return end_ahead(e) ? answer | VQB_MORE : answer;
}

/*
 * With EVENT_IDX an event that lies behind the cursor is as good as none for half a turn of the
 * index, so there is nothing to store unless the wish is still ahead.
 */
static inline void end_disarm(struct end *e)
{
	if (!e->own_event)
		end_ask_flag(e, FLAG_QUIET);
	else if (e->asked == ASKED_UNKNOWN || (uint16_t)(e->asked - e->cursor) < 0x8000)
		end_ask_event(e, (uint16_t)(e->cursor - 1));
}

#endif
