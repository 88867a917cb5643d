/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c: the device side of one ring.
 *
 * Per head there is one word that says whether its chain is out, and since when: the sequence
 * number of its take, 0 when it is not out. Everything hangs on it: a ticket is good exactly
 * while the word equals its sequence, a head that is offered while its word is not 0 was offered
 * twice, and a reset makes every ticket stale by clearing the words. (struct lent)
 *
 * In the terms of end.h: `cursor` counts chains taken and `next` chains put, so what is in
 * flight is their difference. `order` remembers, by position, which head was taken, so that
 * untake never looks at the available ring again.
 *
 * In modes that hold a chain back until it is exposed (MODE_HOLDS), `order` also says, for
 * positions from `exposed` to `next`, which heads the driver is about to see, and `held` how each
 * was put. Under IN_ORDER those are the heads as they were taken anyway. Else a put writes its
 * head there: positions below `next` are nobody else's, since untake looks at cursor - 1 only, and
 * that isn't below `next` while anything is out. What a predecessor left in flight stands in
 * `order` from the first position on, up to `track.resubmit`, and take finds it there.
 */
#include <vqblk/device.h>

#include "dirty.h"
#include "end.h"
#include "held.h"
#include "tracking.h"
#include "plain.h"

struct lent {
	uint32_t sequence;   /* of the take; 0: not out */
	uint32_t generation; /* of the memory that its pieces point into */
	uint64_t writable;   /* bytes */
};

/* The ring's parts in host memory. */
struct parts {
	struct desc *desc;
	struct ring_head *avail, *used;
};

struct vqb_device {
	struct end end;
	int32_t state; /* VQB_OK, VQB_E_INVALID without a ring, VQB_E_BROKEN */
	const struct word16 *avail;
	struct used_elem *used;
	struct lent *lent;
	uint16_t *order;
	uint32_t sequence;   /* of the newest take; runs on across resets */
	uint32_t generation; /* of the memory map */
	struct walk_rules rules;
	struct map map;
	/* Completions and decisions are counted by `end`; count.completions is a mark in that. */
	struct vqb_device_counters count;
	/* cold */
	struct vqb_ring_at ring;
	uint32_t max_size, max_chain;
	struct vqb_reason broken;
	/* of the modes */
	struct held *held; /* by head */
	struct tracking track;
	struct dirty dirty;
};

#define DEVICE_FIXED ((sizeof(struct vqb_device) + 7) & ~(size_t)7)
#define DEVICE_PER_ENTRY (sizeof(struct lent) + sizeof(struct held) + sizeof(uint16_t))

_Static_assert(DEVICE_FIXED <= 512, "VQB_DEVICE_BYTES");
_Static_assert(DEVICE_PER_ENTRY <= 32, "VQB_DEVICE_BYTES");

/* ---- set-up ---- */

static bool ring_usable(const struct vqb_ring_at *ring, uint32_t max_size)
{
	return ring->size <= max_size && ring->index <= UINT16_MAX &&
	       ring_valid(ring->size, ring->flags, ring->zero, ring->features, ring->desc,
			  ring->avail, ring->used);
}

/* The largest ring, or 0 if the configuration is not valid. */
static uint32_t config_size(const struct vqb_device_config *config)
{
	uint32_t max_size;

	if (!config || config->struct_size != sizeof(*config) || vqb_memory_check(config->memory) ||
	    !cache_valid(config->cache))
		return 0;
	max_size = config->max_size ? config->max_size : config->ring.size;
	if (!ring_size_valid(max_size))
		return 0;
	if (config->ring.size && !ring_usable(&config->ring, max_size))
		return 0;
	return vqb__tracking_usable(&config->tracking, max_size) ? max_size : 0;
}

size_t vqb_device_size(const struct vqb_device_config *config)
{
	uint32_t max_size = config_size(config);

	return max_size ? VQB_ROUND_UP(DEVICE_FIXED + max_size * DEVICE_PER_ENTRY) : 0;
}

static int32_t resolve_part(struct map *map, uint64_t addr, uint32_t len, uint32_t access,
			    void **host)
{
	if (range_wraps(addr, len))
		return VQB_E_FAULT;
	*host = vqb__map_stretch(map, addr, len, access);
	return *host ? VQB_OK : VQB_E_FAULT;
}

/* Finds each part of the ring up to its last byte, the event words included. */
static int32_t resolve(struct map *map, const struct vqb_ring_at *ring, struct parts *parts)
{
	void *desc, *avail, *used;

	if (resolve_part(map, ring->desc, VQB_DESC_BYTES(ring->size), VQB_READ, &desc) ||
	    resolve_part(map, ring->avail, VQB_AVAIL_BYTES(ring->size), VQB_READ, &avail) ||
	    resolve_part(map, ring->used, VQB_USED_BYTES(ring->size), VQB_WRITE, &used))
		return VQB_E_FAULT;
	/* The host must not undo the alignment of the guest. */
	if ((uintptr_t)desc % 8 || (uintptr_t)avail % 2 || (uintptr_t)used % 4)
		return VQB_E_INVALID;
	parts->desc = desc;
	parts->avail = avail;
	parts->used = used;
	return VQB_OK;
}

static void attach_parts(struct vqb_device *dev, const struct parts *parts)
{
	struct end *e = &dev->end;
	const struct word16 *avail_ring = (const struct word16 *)(parts->avail + 1);
	struct used_elem *used_ring = (struct used_elem *)(parts->used + 1);
	bool event_idx = ring_has(dev->ring.features, VQB_F_EVENT_IDX);

	dev->rules.desc = parts->desc;
	dev->avail = avail_ring;
	dev->used = used_ring;
	e->own = parts->used;
	e->peer = parts->avail;
	e->own_event = event_idx ? (struct word16 *)(used_ring + dev->ring.size) : NULL;
	e->peer_event = event_idx ? avail_ring + dev->ring.size : NULL;
}

/* Nothing more is taken before a reset. */
static VQB_COLD void stop(struct vqb_device *dev, int32_t state)
{
	dev->state = state;
	dev->end.mode |= MODE_STOPPED;
}

/* The mode of the ring that was found, as long as nothing stops it. */
static uint32_t mode_of(const struct vqb_device *dev)
{
	return ring_mode(dev->ring.flags, dev->ring.features, dev->end.cache) |
	       (dev->track.area ? MODE_TRACKING : 0u) | (dev->map.memory->log ? MODE_LOG : 0u);
}

/* Tells the log, which there is, of something in the used ring. */
static void log_written(struct vqb_device *dev, const void *at, size_t bytes)
{
	vqb__dirty_mark(&dev->dirty, dev->map.memory, at, bytes);
}

/* Positions of the used ring, as `order` has them. */
static struct positions positions(const struct vqb_device *dev, uint32_t from, uint32_t to)
{
	return (struct positions){
		.head = dev->order, .mask = dev->end.mask, .from = from, .to = to
	};
}

/* The entries at these positions, which may go round the end of the ring. */
static void log_used(struct vqb_device *dev, struct positions p)
{
	uint32_t at = p.from & p.mask, n = p.to - p.from, to_end = p.mask + 1 - at;
	uint32_t first = n < to_end ? n : to_end;

	log_written(dev, &dev->used[at], first * sizeof(struct used_elem));
	log_written(dev, dev->used, (n - first) * sizeof(struct used_elem));
}

/*
 * Forgets the ring and everything that was taken from it. What was put and not exposed has been
 * written, though, and so it is logged.
 */
static void let_go(struct vqb_device *dev)
{
	if (dev->end.mode & MODE_LOG && dev->end.exposed != dev->end.next)
		log_used(dev, positions(dev, dev->end.exposed, dev->end.next));
	stop(dev, VQB_E_INVALID);
	for (uint32_t i = 0; i < dev->max_size; i++) {
		dev->lent[i].sequence = 0;
		dev->held[i].state = HELD_NOT;
	}
	dev->ring.size = 0;
	end_start(&dev->end, 0, 0);
}

/* Forgets what was, finds `ring` and makes it the device's; the queue is still stopped. */
static int32_t find_ring(struct vqb_device *dev, const struct vqb_ring_at *ring)
{
	struct parts parts;
	int32_t status;

	let_go(dev);
	if (!ring_usable(ring, dev->max_size))
		return VQB_E_INVALID;
	status = resolve(&dev->map, ring, &parts);
	if (status)
		return status;
	dev->ring = *ring;
	dev->end.mask = ring->size - 1;
	dev->rules.past = plain_past(ring->size);
	dev->rules.limit = dev->max_chain ? dev->max_chain : ring->size;
	dev->rules.most = dev->rules.limit < ring->size ? dev->rules.limit : ring->size;
	if (dev->rules.most > dev->rules.max_pieces)
		dev->rules.most = dev->rules.max_pieces;
	dev->rules.indirect = ring_has(ring->features, VQB_F_INDIRECT_DESC);
	attach_parts(dev, &parts);
	/* An old line of it, flushed with a new entry, would put old neighbours back, too. */
	end_invalidate(&dev->end, parts.used, VQB_USED_BYTES(ring->size), mode_of(dev));
	return VQB_OK;
}

/* Starts with both indices at `idx`, and with `again` chains of before to be taken first. */
static void start(struct vqb_device *dev, uint16_t idx, uint32_t again)
{
	end_start(&dev->end, idx, idx);
	dev->end.seen += again;
	dev->track.resubmit = dev->end.seen;
	dev->end.mode = dev->rules.mode = mode_of(dev);
	/* What a predecessor wrote and did not come to log is not known. */
	if (dev->map.memory->log)
		log_written(dev, dev->end.own, VQB_USED_BYTES(dev->ring.size));
	dev->state = VQB_OK;
}

/* Starts on a ring with nothing in flight. */
static int32_t start_afresh(struct vqb_device *dev, const struct vqb_ring_at *ring, uint16_t idx)
{
	int32_t status = find_ring(dev, ring);

	if (status)
		return status;
	if (dev->track.area)
		vqb__tracking_clear(&dev->track, ring->size, idx);
	start(dev, idx, 0);
	return VQB_OK;
}

/* Goes on from what the tracking area says, if it says something; else starts at `idx`. */
static int32_t start_again(struct vqb_device *dev, const struct vqb_ring_at *ring, uint16_t idx)
{
	uint32_t again;
	int32_t status;

	if (!vqb__tracking_is_live(&dev->track))
		return start_afresh(dev, ring, idx);
	status = find_ring(dev, ring);
	if (status)
		return status;
	idx = load_own_idx(&dev->end, mode_of(dev));
	status = vqb__tracking_load(&dev->track, ring->size, idx, dev->order, &again);
	if (status) {
		let_go(dev);
		return status;
	}
	start(dev, idx, again);
	return VQB_OK;
}

int32_t vqb_device_init(void *mem, size_t bytes, const struct vqb_device_config *config,
			struct vqb_device **out)
{
	size_t needed = vqb_device_size(config);
	struct vqb_device *dev = mem;
	int32_t status;

	if (!needed || !mem || !out || (uintptr_t)mem % VQB_ALIGN)
		return VQB_E_INVALID;
	if (bytes < needed)
		return VQB_E_TOOBIG;
	memset(dev, 0, sizeof(*dev));
	dev->max_size = config_size(config);
	dev->max_chain = config->max_chain;
	dev->end.cache = dev->rules.cache = config->cache;
	dev->rules.max_pieces = config->max_pieces ? config->max_pieces : UINT32_MAX;
	dev->lent = (struct lent *)((char *)mem + DEVICE_FIXED);
	dev->held = (struct held *)(dev->lent + dev->max_size);
	dev->order = (uint16_t *)(dev->held + dev->max_size);
	dev->track.area = config->tracking.host;
	vqb__map_init(&dev->map, config->memory);
	dev->generation = config->memory->generation;
	let_go(dev);
	status = config->ring.size ? start_again(dev, &config->ring, 0) : VQB_OK;
	if (!status)
		*out = dev;
	return status;
}

/* ---- taking ---- */

static VQB_COLD int32_t broken(struct vqb_device *dev, enum vqb_rule rule, uint32_t index)
{
	dev->broken = (struct vqb_reason){ .rule = rule, .index = index };
	stop(dev, VQB_E_BROKEN);
	return VQB_E_BROKEN;
}

/* Is the chain at the cursor one that a predecessor had taken? */
static bool is_resubmitted(const struct vqb_device *dev)
{
	return dev->end.mode & MODE_TRACKING &&
	       (int32_t)(dev->track.resubmit - dev->end.cursor) > 0;
}

/* The head at the cursor, fetched once. One outside the ring, or one that is out, breaks it. */
VQB_INLINE int32_t next_head(struct vqb_device *dev, uint32_t *head, uint32_t mode)
{
	if (mode & MODE_TRACKING && is_resubmitted(dev))
		*head = dev->order[dev->end.cursor & dev->end.mask];
	else
		*head = load16(&dev->avail[dev->end.cursor & dev->end.mask], mode);
	if (VQB_UNLIKELY(*head > dev->end.mask))
		return broken(dev, VQB_RULE_HEAD, *head);
	if (VQB_UNLIKELY(dev->lent[*head].sequence))
		return broken(dev, VQB_RULE_TWICE, *head);
	/* Put, but the driver hasn't got it back. */
	if (mode & MODE_HOLDS && dev->held[*head].state)
		return broken(dev, VQB_RULE_TWICE, *head);
	return VQB_OK;
}

/* The chain at the cursor is about to be taken. */
static VQB_COLD void track_take(struct vqb_device *dev, uint32_t head)
{
	uint32_t cursor = dev->end.cursor;

	if (is_resubmitted(dev))
		return;
	tracking_take(&dev->track, head);
	/* Kept near, lest it be ahead again half a turn later; untake goes back a ring at most. */
	if (cursor - dev->track.resubmit > 2 * VQB_RING_MAX)
		dev->track.resubmit = cursor - VQB_RING_MAX;
}

/* The chain at the cursor was taken and is not, after all. */
static VQB_COLD void track_untake(struct vqb_device *dev, uint32_t head)
{
	if (!is_resubmitted(dev))
		tracking_untake(&dev->track, head);
}

/*
 * A ticket is written as one word, since it is soon read as one: a load that several stores make up
 * has to wait until they have left the processor (a tenth of a request that goes alone).
 */
VQB_INLINE void ticket_write(struct vqb_ticket *ticket, uint32_t head, uint32_t sequence)
{
	uint64_t word =
		VQB_BIG_ENDIAN ? (uint64_t)head << 48 | sequence : (uint64_t)sequence << 32 | head;

	_Static_assert(sizeof(*ticket) == sizeof(word), "ticket");
	__builtin_memcpy(ticket, &word, sizeof(word));
}

/* Marks the head at the cursor as out and makes its ticket. */
VQB_INLINE void consume(struct vqb_device *dev, uint32_t head, uint64_t writable,
			struct vqb_ticket *ticket, uint32_t mode)
{
	struct lent *lent = &dev->lent[head];
	uint32_t cursor = dev->end.cursor, sequence = dev->sequence + 1;

	if (mode & MODE_TRACKING)
		track_take(dev, head);
	if (VQB_UNLIKELY(!sequence)) /* 0 means "not out" */
		sequence = 1;
	dev->sequence = sequence;
	*lent = (struct lent){ .sequence = sequence,
			       .generation = dev->generation,
			       .writable = writable };
	dev->order[cursor & dev->end.mask] = (uint16_t)head;
	dev->end.cursor = cursor + 1;
	ticket_write(ticket, head, sequence);
}

static VQB_COLD void consume_bad(struct vqb_device *dev, uint32_t head,
				 const struct vqb_reason *reason, struct vqb_chain *chain)
{
	*chain = (struct vqb_chain){ .status = VQB_E_BAD_CHAIN, .reason = *reason };
	consume(dev, head, 0, &chain->ticket, dev->end.mode);
	if (dev->end.mode & MODE_HOLDS)
		dev->held[head].state = HELD_BAD;
	dev->count.bad_chains++;
}

/* Where the pieces go, and the reason why there is no more. */
struct basket {
	struct vqb_piece *piece, *end;
	struct vqb_need *need;
};

/* The good chain at `head` is taken. */
VQB_INLINE void deliver(struct vqb_device *dev, uint32_t head, struct vqb_chain *chain,
			uint32_t mode)
{
	consume(dev, head, chain->write_bytes, &chain->ticket, mode);
	chain->status = VQB_OK;
	chain->zero = 0;
}

/*
 * Takes the chain at `head` by the complete walk, from where the plain one has come to, if it has
 * begun. VQB_OK: it is taken, good or bad. VQB_E_NOSPC, VQB_E_FAULT.
 */
static VQB_APART int32_t take_completely(struct vqb_device *dev, const struct basket *to,
					 uint32_t head, const struct plain *from,
					 struct vqb_chain *chain)
{
	struct walk w = {
		.rules = &dev->rules, .map = &dev->map, .need = to->need, .piece = to->piece
	};
	int32_t status;

	w.room = least((uint32_t)(to->end - to->piece), w.rules->max_pieces);
	status = from ? vqb__walk_from(&w, from, chain) : vqb__walk_chain(&w, head, chain);
	dev->count.descriptors += w.reads;
	if (status == VQB_E_NOSPC || status == VQB_E_FAULT) {
		dev->count.faults += status == VQB_E_FAULT;
		return status;
	}
	dev->count.indirect += w.tables;
	if (status)
		consume_bad(dev, head, &w.reason, chain);
	else
		deliver(dev, head, chain, dev->end.mode);
	return VQB_OK;
}

/* What the plain walk is not for, or not from *s on. Its pieces are not counted as descriptors. */
VQB_INLINE int32_t take_odd(struct vqb_device *dev, struct vqb_need *need, uint32_t head,
			    struct plain *s, struct vqb_chain *chain, uint32_t mode)
{
	const struct plain from = *s;
	struct basket to = { .end = s->end, .need = need };
	int32_t status;

	if (walks_plain(mode)) {
		s->tables -= s->indirect;
		s->piece = s->first;
	}
	to.piece = s->piece;
	status = take_completely(dev, &to, head, walks_plain(mode) ? &from : NULL, chain);
	if (!status && !chain->status) {
		uint32_t pieces = chain->readable + chain->writable;

		s->piece += pieces;
		dev->count.descriptors -= pieces;
	}
	return status;
}

/*
 * Finds out what is available when what was seen before is used up. An index that runs more
 * than a ring ahead breaks the queue (SR-DEV-30).
 */
VQB_INLINE int32_t look(struct vqb_device *dev, uint32_t mode)
{
	struct end *e = &dev->end;
	uint32_t ahead;

	if (e->seen != e->cursor)
		return VQB_OK;
	ahead = end_ahead(e, mode);
	if (VQB_UNLIKELY(ahead > e->mask + 1))
		return broken(dev, VQB_RULE_JUMPED, (uint16_t)(e->cursor + ahead));
	e->seen += ahead;
	if (mode & MODE_CACHE)
		vqb__end_invalidate_peer(e, sizeof(struct word16), e->cursor, e->seen);
	return VQB_OK;
}

VQB_INLINE int32_t take(struct vqb_device *dev, struct vqb_chain *first, uint32_t max,
			struct vqb_piece *piece, struct vqb_piece *end, uint32_t *taken,
			struct vqb_need *need, uint32_t mode)
{
	int32_t status = look(dev, mode);
	uint32_t head, most = dev->end.seen - dev->end.cursor;
	struct vqb_chain *chain = first, *last;
	struct plain s; /* the rest is each chain's */

	s.rules = &dev->rules;
	s.map = &dev->map;
	s.piece = piece;
	s.end = end;
	s.tables = 0;
	most = most < max ? most : max;
	if (VQB_UNLIKELY(status))
		most = 0;
	for (last = behind(first, most * sizeof(*first)); chain != last; chain++) {
		status = next_head(dev, &head, mode);
		if (VQB_UNLIKELY(status))
			break;
		if (VQB_LIKELY(walks_plain(mode) && walk_plain(&s, head, chain))) {
			deliver(dev, head, chain, mode);
			continue;
		}
		status = take_odd(dev, need, head, &s, chain, mode);
		if (VQB_UNLIKELY(status))
			break;
	}
	dev->count.descriptors += (uint32_t)(s.piece - piece) + s.tables;
	dev->count.indirect += s.tables;
	*taken = (uint32_t)(chain - first);
	dev->count.chains += *taken;
	return status;
}

static VQB_COLD int32_t take_special(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
				     struct vqb_piece *piece, struct vqb_piece *end,
				     uint32_t *taken, struct vqb_need *need)
{
	*taken = 0;
	if (dev->state)
		return dev->state == VQB_E_INVALID ? VQB_OK : dev->state;
	return take(dev, chain, max, piece, end, taken, need, dev->end.mode);
}

int32_t vqb_device_take(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
			struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			struct vqb_need *need)
{
	struct vqb_piece *end = pieces_behind(piece, room * sizeof(*piece));

	if (!is_plain(dev->end.mode))
		return take_special(dev, chain, max, piece, end, taken, need);
	return take(dev, chain, max, piece, end, taken, need, MODE_PLAIN);
}

int32_t vqb_device_reject(struct vqb_device *dev, struct vqb_chain *chain)
{
	static const struct vqb_reason rejected = { .rule = VQB_RULE_REJECTED };
	uint32_t head;
	int32_t status;

	if (dev->state)
		return dev->state;
	if (dev->end.cursor == dev->end.seen)
		return VQB_E_INVALID;
	status = next_head(dev, &head, dev->end.mode);
	if (status)
		return status;
	consume_bad(dev, head, &rejected, chain);
	dev->count.chains++;
	return VQB_OK;
}

/* ---- returning ---- */

int32_t vqb_device_holds(const struct vqb_device *dev, struct vqb_ticket ticket)
{
	if (ticket.head >= dev->max_size || !ticket.seq ||
	    dev->lent[ticket.head].sequence != ticket.seq)
		return VQB_E_STALE;
	return VQB_OK;
}

int32_t vqb_device_untake(struct vqb_device *dev, struct vqb_ticket ticket)
{
	if (vqb_device_holds(dev, ticket))
		return VQB_E_STALE;
	if (dev->order[(dev->end.cursor - 1) & dev->end.mask] != ticket.head)
		return VQB_E_INVALID;
	dev->lent[ticket.head].sequence = 0;
	dev->end.cursor--;
	dev->count.untaken++;
	if (dev->end.mode & MODE_HOLDS)
		dev->held[ticket.head].state = HELD_NOT;
	if (dev->end.mode & MODE_TRACKING)
		track_untake(dev, ticket.head);
	return VQB_OK;
}

VQB_INLINE void write_used(struct vqb_device *dev, uint32_t at, uint32_t head, uint32_t written,
			   uint32_t mode)
{
	struct used_elem *elem = &dev->used[at & dev->end.mask];

	store32(&elem->id, head, mode);
	store32(&elem->len, written, mode);
}

/* The driver doesn't see it before expose, and in order not before all that was taken earlier. */
static VQB_COLD void put_held(struct vqb_device *dev, uint32_t head, uint32_t written)
{
	struct end *e = &dev->end;

	held_put(&dev->held[head], written, dev->lent[head].writable);
	if (e->mode & MODE_IN_ORDER) {
		e->next = held_prefix(dev->held, positions(dev, e->next, e->cursor));
		return;
	}
	dev->order[e->next & e->mask] = (uint16_t)head;
	write_used(dev, e->next++, head, written, e->mode);
}

VQB_INLINE int32_t put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written,
		       uint32_t mode)
{
	struct lent *lent;

	if (VQB_UNLIKELY(ticket.head >= dev->max_size))
		goto stale;
	lent = &dev->lent[ticket.head];
	if (VQB_UNLIKELY(lent->sequence != ticket.seq))
		goto stale;
	if (VQB_UNLIKELY(!ticket.seq))
		goto stale;
	if (VQB_UNLIKELY(written > lent->writable))
		return VQB_E_INVALID;
	lent->sequence = 0;
	if (mode & MODE_HOLDS) {
		put_held(dev, ticket.head, written);
		return VQB_OK;
	}
	write_used(dev, dev->end.next, ticket.head, written, mode);
	dev->end.next++;
	return VQB_OK;
stale:
	dev->count.stale++;
	return VQB_E_STALE;
}

static VQB_COLD int32_t put_special(struct vqb_device *dev, struct vqb_ticket ticket,
				    uint32_t written)
{
	return put(dev, ticket, written, dev->end.mode);
}

int32_t vqb_device_put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written)
{
	if (!is_plain(dev->end.mode))
		return put_special(dev, ticket, written);
	return put(dev, ticket, written, MODE_PLAIN);
}

VQB_INLINE uint32_t put_list(struct vqb_device *dev, const struct vqb_completion *list, uint32_t n,
			     uint32_t mode)
{
	const struct vqb_completion *next = list, *end = behind(list, n * sizeof(*list));

	while (next != end && !put(dev, next->ticket, next->written, mode))
		next++;
	return (uint32_t)(next - list);
}

static VQB_COLD uint32_t put_list_special(struct vqb_device *dev, const struct vqb_completion *list,
					  uint32_t n)
{
	return put_list(dev, list, n, dev->end.mode);
}

uint32_t vqb_device_put_list(struct vqb_device *dev, const struct vqb_completion *list, uint32_t n)
{
	if (!is_plain(dev->end.mode))
		return put_list_special(dev, list, n);
	return put_list(dev, list, n, MODE_PLAIN);
}

/* ---- modes: from put to the driver ---- */

/* IN_ORDER: an entry for each batch, in the slot of its first chain, with the head of its last. */
static void write_batches(struct vqb_device *dev, struct positions p)
{
	while (p.from != p.to) {
		uint32_t last = held_batch_end(dev->held, p);
		uint32_t head = p.head[last & p.mask];

		write_used(dev, p.from, head, dev->held[head].written, dev->end.mode);
		p.from = last + 1;
	}
}

/* What was put since the last expose goes to memory, where the driver can't look into the cache. */
static void flush_used(const struct vqb_device *dev)
{
	const struct end *e = &dev->end;

	vqb__end_flush_own(e, sizeof(struct used_elem), e->exposed, e->next);
}

/*
 * Entries are logged before the index shows them: whoever is killed leaves none that the driver
 * sees and the log doesn't know. The index itself can only be logged when it has been stored; what
 * is lost between the two is made good by whoever starts on the ring next.
 */
static void expose_special(struct vqb_device *dev)
{
	struct end *e = &dev->end;
	struct positions p = positions(dev, e->exposed, e->next);
	uint32_t mode = e->mode;

	if (p.from == p.to)
		return;
	if (mode & MODE_IN_ORDER)
		write_batches(dev, p);
	if (mode & MODE_CACHE)
		flush_used(dev);
	if (mode & MODE_LOG)
		log_used(dev, p);
	if (mode & MODE_TRACKING)
		vqb__tracking_link(&dev->track, p);
	vqb__end_expose_any(e);
	if (mode & MODE_TRACKING)
		vqb__tracking_settle(&dev->track, p);
	if (mode & MODE_LOG)
		log_written(dev, &e->own->idx, sizeof(e->own->idx));
	if (mode & MODE_HOLDS)
		held_release(dev->held, p);
}

/* After a wish may have been stored: `asked` is the one of before. */
static void log_wish(struct vqb_device *dev, uint32_t asked)
{
	struct end *e = &dev->end;

	if (!(e->mode & MODE_LOG) || e->asked == asked)
		return;
	if (e->own_event)
		log_written(dev, e->own_event, sizeof(*e->own_event));
	else
		log_written(dev, &e->own->flags, sizeof(e->own->flags));
}

/* ---- notifying: a broken queue still returns what is out, but asks for nothing ---- */

enum notify_call { CALL_EXPOSE, CALL_PUBLISH, CALL_TURN };

static VQB_COLD uint32_t notify_special(struct vqb_device *dev, enum notify_call call)
{
	uint32_t asked = dev->end.asked, answer;

	if (dev->state == VQB_E_INVALID)
		return VQB_QUIET;
	expose_special(dev);
	if (call == CALL_EXPOSE)
		return VQB_QUIET;
	if (call == CALL_PUBLISH || dev->state)
		return vqb__end_publish_any(&dev->end);
	answer = vqb__end_turn_any(&dev->end);
	log_wish(dev, asked);
	return answer;
}

void vqb_device_expose(struct vqb_device *dev)
{
	if (!is_plain(dev->end.mode))
		notify_special(dev, CALL_EXPOSE);
	else
		end_expose(&dev->end, MODE_PLAIN);
}

uint32_t vqb_device_publish(struct vqb_device *dev)
{
	if (!is_plain(dev->end.mode))
		return notify_special(dev, CALL_PUBLISH);
	return end_publish(&dev->end, MODE_PLAIN);
}

uint32_t vqb_device_turn(struct vqb_device *dev)
{
	if (!is_plain(dev->end.mode))
		return notify_special(dev, CALL_TURN);
	return end_turn(&dev->end, MODE_PLAIN);
}

uint32_t vqb_device_arm(struct vqb_device *dev)
{
	uint32_t asked = dev->end.asked, answer;

	if (dev->state)
		return VQB_QUIET;
	answer = vqb__end_arm_any(&dev->end, 0);
	log_wish(dev, asked);
	return answer;
}

void vqb_device_disarm(struct vqb_device *dev)
{
	uint32_t asked = dev->end.asked;

	if (dev->state)
		return;
	vqb__end_disarm_any(&dev->end);
	log_wish(dev, asked);
}

/* ---- the log ---- */

uint32_t vqb_device_logs(const struct vqb_device *dev)
{
	return dev->map.memory->log != NULL;
}

void vqb_device_log(struct vqb_device *dev, const struct vqb_piece *piece, uint32_t pieces,
		    uint64_t written)
{
	if (dev->map.memory->log)
		vqb__dirty_mark_pieces(&dev->dirty, dev->map.memory, piece, pieces, written);
}

/* ---- starting over ---- */

int32_t vqb_device_reset(struct vqb_device *dev, const struct vqb_ring_at *ring)
{
	if (dev->track.area)
		tracking_forget(&dev->track);
	if (ring)
		return start_afresh(dev, ring, 0);
	let_go(dev);
	return VQB_OK;
}

void vqb_device_needs_reset(struct vqb_device *dev)
{
	if (!dev->state)
		stop(dev, VQB_E_NEEDS_RESET);
}

int32_t vqb_device_save(const struct vqb_device *dev, struct vqb_device_saved *saved)
{
	const struct end *e = &dev->end;

	if (dev->state)
		return dev->state;
	if ((vqb_device_in_flight(dev) && !(e->mode & MODE_TRACKING)) || e->exposed != e->next)
		return VQB_E_BUSY;
	/* What a predecessor left in flight, and take has not come to, was taken all the same. */
	saved->avail = (uint16_t)(is_resubmitted(dev) ? dev->track.resubmit : e->cursor);
	saved->used = (uint16_t)e->next;
	return VQB_OK;
}

int32_t vqb_device_restore(struct vqb_device *dev, const struct vqb_ring_at *ring,
			   const struct vqb_device_saved *saved)
{
	if (!ring) {
		let_go(dev);
		return VQB_OK;
	}
	if (!vqb__tracking_is_live(&dev->track) &&
	    (uint16_t)(saved->avail - saved->used) > ring->size) {
		let_go(dev);
		return VQB_E_INVALID;
	}
	/* What lies between the two was in flight, and is taken again. */
	return start_again(dev, ring, saved->used);
}

int32_t vqb_device_set_memory(struct vqb_device *dev, const struct vqb_memory *memory)
{
	struct parts parts = { 0 };
	struct map map;
	int32_t status = vqb_memory_check(memory);

	if (status)
		return status;
	vqb__map_init(&map, memory);
	if (dev->state != VQB_E_INVALID) {
		status = resolve(&map, &dev->ring, &parts);
		if (status)
			return status;
		attach_parts(dev, &parts);
	}
	dev->map = map;
	dev->generation = memory->generation;
	dev->dirty.len = 0;
	dev->end.mode = mode_of(dev) | (dev->end.mode & MODE_STOPPED);
	return VQB_OK;
}

/* ---- asking ---- */

uint32_t vqb_device_oldest_generation(const struct vqb_device *dev)
{
	uint32_t now = dev->generation, age = 0;

	for (uint32_t head = 0; head < dev->max_size; head++)
		if (dev->lent[head].sequence && now - dev->lent[head].generation > age)
			age = now - dev->lent[head].generation;
	return now - age;
}

int32_t vqb_device_state(const struct vqb_device *dev, struct vqb_reason *why)
{
	if (dev->state == VQB_E_BROKEN && why)
		*why = dev->broken;
	return dev->state;
}

uint32_t vqb_device_in_flight(const struct vqb_device *dev)
{
	return dev->end.cursor - dev->end.next;
}

uint32_t vqb_device_pending(const struct vqb_device *dev)
{
	uint32_t ahead = dev->state ? 0 : end_ahead(&dev->end, dev->end.mode);

	return ahead <= dev->end.mask + 1 ? ahead : 0;
}

void vqb_device_read_counters(const struct vqb_device *dev, struct vqb_device_counters *out)
{
	*out = dev->count;
	out->completions = end_written(&dev->end) - dev->count.completions;
	out->notified = dev->end.notified;
	out->suppressed = dev->end.suppressed;
}

void vqb_device_clear_counters(struct vqb_device *dev)
{
	memset(&dev->count, 0, sizeof(dev->count));
	dev->count.completions = end_written(&dev->end);
	dev->end.notified = dev->end.suppressed = 0;
}
