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
	uint32_t mode; /* 0: plain and working */
	uint32_t mask; /* ring size - 1 */
	struct ring_head *own;
	const struct ring_head *peer;
	struct word16 *own_event;        /* NULL without EVENT_IDX, as the next one: */
	const struct word16 *peer_event; /* then the event words are never touched (K12) */
	uint32_t next, exposed, decided;
	uint32_t cursor, seen;
	uint32_t asked;   /* last wish stored (an event or a flag), so as not to store it again */
	bool owed;        /* the next decision is NOTIFY: the last index announced is not known */
	uint64_t written; /* entries of the own ring, ever, but for those not yet exposed */
	uint64_t notified, suppressed;
	const struct vqb_cache_ops *cache; /* NULL: coherent */
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

/* ---- memory that is not coherent: end.c ---- */

void vqb__end_cache_flush(const struct end *e, const void *at, size_t bytes);
void vqb__end_cache_invalidate(const struct end *e, const void *at, size_t bytes);

/*
 * The entries of the own ring, or of the peer's, `each` bytes long, at the positions from `from` up
 * to, not including, `to`.
 */
void vqb__end_flush_own(const struct end *e, size_t each, uint32_t from, uint32_t to);
void vqb__end_invalidate_peer(const struct end *e, size_t each, uint32_t from, uint32_t to);

VQB_TINY void end_flush(const struct end *e, const void *at, size_t bytes, uint32_t mode)
{
	if (mode & MODE_CACHE)
		vqb__end_cache_flush(e, at, bytes);
}

VQB_TINY void end_invalidate(const struct end *e, const void *at, size_t bytes, uint32_t mode)
{
	if (mode & MODE_CACHE)
		vqb__end_cache_invalidate(e, at, bytes);
}

/* ---- barriers ---- */

VQB_TINY void end_fence(uint32_t mode)
{
	if (mode & MODE_PLATFORM)
		vqb_port_device_fence();
	else
		vqb_port_fence();
}

VQB_INLINE uint16_t load_idx(const struct end *e, uint32_t mode)
{
	uint16_t idx;

	end_invalidate(e, &e->peer->idx, sizeof(e->peer->idx), mode);
	idx = order16(vqb_port_load16_acquire(&e->peer->idx), mode);
	if (mode & MODE_PLATFORM)
		vqb_port_device_read_fence();
	return idx;
}

/* The own index, as a predecessor left it in memory. Never read but to go on from there. */
static inline uint16_t load_own_idx(const struct end *e, uint32_t mode)
{
	end_invalidate(e, &e->own->idx, sizeof(e->own->idx), mode);
	return order16(vqb_port_load16_acquire(&e->own->idx), mode);
}

VQB_INLINE void store_idx(struct end *e, uint32_t idx, uint32_t mode)
{
	if (mode & MODE_PLATFORM)
		vqb_port_device_write_fence();
	vqb_port_store16_release(&e->own->idx, order16((uint16_t)idx, mode));
	end_flush(e, &e->own->idx, sizeof(e->own->idx), mode);
}

/* ---- the protocol ---- */

/* Entries that the peer has put there and this side has not consumed, as the peer says. */
VQB_INLINE uint16_t end_ahead(const struct end *e, uint32_t mode)
{
	return (uint16_t)(load_idx(e, mode) - e->cursor);
}

/* (Copies, since the compiler has to think that a store to the ring changes the original.) */
VQB_INLINE void end_expose(struct end *e, uint32_t mode)
{
	uint32_t next = e->next, exposed = e->exposed;

	if (exposed == next)
		return;
	store_idx(e, next, mode);
	e->written += next - exposed;
	e->exposed = next;
	/* From here on the distance to the last decision is ambiguous in 16 bits. */
	if (VQB_UNLIKELY(next - e->decided >= 65535))
		e->owed = true;
}

VQB_TINY bool end_undecided(const struct end *e)
{
	return e->exposed != e->decided || e->owed;
}

/* Did the peer ask to hear of what was exposed since the last decision? */
VQB_INLINE bool end_wanted(const struct end *e, uint32_t mode)
{
	if (e->peer_event) {
		end_invalidate(e, e->peer_event, sizeof(*e->peer_event), mode);
		return event_due(load16(e->peer_event, mode), (uint16_t)e->exposed,
				 (uint16_t)e->decided) ||
		       e->owed;
	}
	end_invalidate(e, &e->peer->flags, sizeof(e->peer->flags), mode);
	return !(load16(&e->peer->flags, mode) & FLAG_QUIET);
}

/* After expose and a full fence. */
VQB_INLINE uint32_t end_decide(struct end *e, uint32_t mode)
{
	bool due = end_wanted(e, mode), fresh = e->exposed != e->decided;

	e->decided = e->exposed;
	e->owed = false;
	if (!due) {
		e->suppressed += fresh;
		return VQB_QUIET;
	}
	e->notified++;
	return VQB_NOTIFY;
}

VQB_INLINE uint32_t end_publish(struct end *e, uint32_t mode)
{
	end_expose(e, mode);
	if (!end_undecided(e))
		return VQB_QUIET;
	end_fence(mode); /* the index is visible before the peer's wish is read (SR-DRV-35) */
	return end_decide(e, mode);
}

VQB_INLINE void end_ask_event(struct end *e, uint16_t event, uint32_t mode)
{
	if (e->asked == event)
		return;
	store16(e->own_event, event, mode);
	end_flush(e, e->own_event, sizeof(*e->own_event), mode);
	e->asked = event;
}

VQB_INLINE void end_ask_flag(struct end *e, uint32_t flag, uint32_t mode)
{
	if (e->asked == flag)
		return;
	store16(&e->own->flags, (uint16_t)flag, mode);
	end_flush(e, &e->own->flags, sizeof(e->own->flags), mode);
	e->asked = flag;
}

/* Stores the wish to hear of the peer's entry `cursor + skip`. The fence is the caller's. */
VQB_INLINE void end_ask(struct end *e, uint32_t skip, uint32_t mode)
{
	if (e->own_event)
		end_ask_event(e, (uint16_t)(e->cursor + skip), mode);
	else
		end_ask_flag(e, 0, mode);
}

/* MORE: more than `skip` of the peer's entries are there. */
VQB_INLINE uint32_t end_arm(struct end *e, uint32_t skip, uint32_t mode)
{
	end_ask(e, skip, mode);
	end_fence(mode); /* the wish is visible before the peer's index is read (SR-DRV-37) */
	return end_ahead(e, mode) > skip ? VQB_MORE : VQB_QUIET;
}

/* Publish and arm with one fence, which orders both stores before both loads. */
VQB_INLINE uint32_t end_turn(struct end *e, uint32_t mode)
{
	uint32_t answer = VQB_QUIET;

	end_expose(e, mode);
	end_ask(e, 0, mode);
	end_fence(mode);
	if (end_undecided(e))
		answer = end_decide(e, mode);
	return end_ahead(e, mode) ? answer | VQB_MORE : answer;
}

/* ---- the same in any mode, and not inline: end.c ---- */

void vqb__end_expose_any(struct end *e);
uint32_t vqb__end_publish_any(struct end *e);
uint32_t vqb__end_turn_any(struct end *e);
uint32_t vqb__end_arm_any(struct end *e, uint32_t skip);
void vqb__end_disarm_any(struct end *e);

#endif
