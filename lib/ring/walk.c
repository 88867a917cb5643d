/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c: the complete walk of one chain, and the plain one. See walk.h. */
#include "walk.h"

/* More than this is too long a chain. */
#define BYTES_MAX (UINT64_C(1) << 32)

/* ---- the complete walk ---- */

static int32_t bad(struct walk *w, enum vqb_rule rule, struct copy d)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = d.at, .addr = d.addr };
	return VQB_E_BAD_CHAIN;
}

static int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* An entry of a table that is cut or not aligned, but was found to be mapped. */
static bool fetch_cut(struct walk *w, struct copy *d)
{
	const struct table *t = &w->table;
	struct desc raw;

	if (!map_read(w->map, t->addr + sizeof(raw) * (uint64_t)d->at, &raw, sizeof(raw)))
		return false;
	d->addr = order64(raw.addr.raw, w->rules->mode);
	d->rest = rest_order(raw.rest.raw, w->rules->mode);
	return true;
}

/* Fetches entry d->at, once. */
static bool fetch(struct walk *w, struct copy *d)
{
	const struct desc *from = w->table.host + d->at;
	const struct vqb_cache_ops *cache = w->rules->cache;

	w->reads++;
	if (VQB_UNLIKELY(!w->table.host))
		return fetch_cut(w, d);
	if (cache)
		cache->invalidate(cache->context, from, sizeof(*from));
	d->addr = load64(&from->addr, w->rules->mode);
	d->rest = load_rest(from, w->rules->mode);
	return true;
}

static void add_piece(struct walk *w, void *host, uint32_t len)
{
	w->piece[w->pieces++] = (struct vqb_piece){ .base = host, .len = len };
}

/* A buffer that map_whole does not know, that is cut, or for which there is no room. */
static int32_t add_pieces(struct walk *w, struct copy d, uint32_t access)
{
	uint32_t len = desc_len(d.rest);
	uint64_t addr = d.addr, avail;

	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, d);
	/* Known at the end anyway; here, so that no chain has more than 2^32 bytes resolved. */
	if (w->bytes > BYTES_MAX)
		return bad(w, VQB_RULE_BYTES, d);
	while (len) {
		void *host = map_find(w->map, addr, access, &avail);
		uint32_t n;

		if (!host)
			return fault(w, addr, access);
		n = avail < len ? (uint32_t)avail : len;
		if (w->pieces == w->rules->max_pieces)
			return bad(w, VQB_RULE_PIECES, d);
		if (w->pieces < w->room)
			add_piece(w, host, n);
		else
			w->pieces++;
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Checks the descriptor that refers to a table, and opens the table: all of it must be mapped,
 * whether it is used or not (K14). WRITE means nothing here.
 */
static int32_t open_table(struct walk *w, struct copy d)
{
	uint32_t len = desc_len(d.rest), limit = w->rules->limit;
	struct table *t = &w->table;
	uint64_t addr = d.addr;

	if (w->indirect)
		return bad(w, VQB_RULE_NESTED, d);
	if (!w->rules->indirect)
		return bad(w, VQB_RULE_INDIRECT, d);
	if (desc_flags(d.rest) & DESC_NEXT)
		return bad(w, VQB_RULE_BOTH, d);
	if (!len || len % sizeof(struct desc) || len / sizeof(struct desc) > limit)
		return bad(w, VQB_RULE_TABLE, d);
	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, d);
	w->indirect = true;
	t->addr = addr;
	/* `next` has 16 bits. */
	t->count = least(len / (uint32_t)sizeof(struct desc), 1u << 16);
	/* No longer than the table either, whatever the limit: what is longer goes round (K01). */
	w->left = least(limit - (w->reads - 1), t->count);
	t->host = map_whole(w->map, addr, len, VQB_READ);
	if (!t->host)
		t->host = map_stretch(w->map, addr, len, VQB_READ);
	if ((uintptr_t)t->host % sizeof(uint64_t))
		t->host = NULL;
	if (!t->host && !map_covers(w->map, &addr, len, VQB_READ))
		return fault(w, addr, VQB_READ);
	return VQB_OK;
}

/* A chain that never turned has readable buffers only. */
VQB_INLINE void end_reading(struct walk *w, uint32_t access)
{
	if (access == VQB_WRITE)
		return;
	w->readable = w->pieces;
	w->read_bytes = w->bytes;
}

/* After the last descriptor: what can only be said about the whole chain. */
static int32_t finish(struct walk *w, struct copy d)
{
	end_reading(w, w->access);
	if (w->bytes > BYTES_MAX)
		return bad(w, VQB_RULE_BYTES, d);
	if (w->pieces > w->room) {
		w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	return VQB_OK;
}

/*
 * The buffer of one descriptor. An empty one has its place in the order, and nothing else: its
 * address is not looked at.
 */
static int32_t add_buffer(struct walk *w, struct copy d)
{
	uint32_t len = desc_len(d.rest);
	void *host;

	if (!len)
		return VQB_OK;
	w->bytes += len;
	host = map_whole(w->map, d.addr, len, w->access);
	if (!host || w->pieces >= w->room)
		return add_pieces(w, d, w->access);
	add_piece(w, host, len);
	return VQB_OK;
}

/* Walks from descriptor `d` on, which is fetched and not yet looked at. */
static VQB_COLD int32_t walk_on(struct walk *w, struct copy d)
{
	uint32_t flags;
	int32_t status;

	for (;;) {
		flags = desc_flags(d.rest);
		if (flags & DESC_INDIRECT) {
			status = open_table(w, d);
			if (status)
				return status;
			d.at = 0;
		} else {
			if (flags & DESC_WRITE && w->access == VQB_READ) {
				w->readable = w->pieces;
				w->read_bytes = w->bytes;
				w->access = VQB_WRITE;
			} else if (!(flags & DESC_WRITE) && w->access == VQB_WRITE) {
				return bad(w, VQB_RULE_ORDER, d);
			}
			if (!w->left)
				return bad(w, VQB_RULE_LOOP, d);
			w->left--;
			status = add_buffer(w, d);
			if (status)
				return status;
			if (!(flags & DESC_NEXT))
				return finish(w, d);
			if (desc_next(d.rest) >= w->table.count)
				return bad(w, VQB_RULE_NEXT, d);
			d.at = desc_next(d.rest);
		}
		if (!fetch(w, &d))
			return fault(w, w->table.addr, VQB_READ);
	}
}

int32_t walk_chain(struct walk *w, uint32_t head)
{
	struct copy d = { .at = head };

	w->table = (struct table){ .host = w->rules->desc, .count = w->rules->size };
	w->indirect = false;
	w->access = VQB_READ;
	w->reads = w->pieces = 0;
	w->bytes = 0;
	w->left = least(w->rules->limit, w->table.count);
	fetch(w, &d); /* the ring's own table is never cut */
	return walk_on(w, d);
}

/* ---- the plain walk ---- */

/*
 * Where it is. Descriptors that each link to the one behind them are known by one compare of flags
 * and link, `want`, and bounded by one compare of the next piece, `linked`; all else is looked at
 * where they end.
 */
struct plain {
	const struct desc *table, *d;
	uint32_t count;      /* of the table */
	uint32_t access;     /* to the next buffer, unless the chain turns there */
	uint32_t want;       /* flags and link of `d`, if it is followed by the one behind it */
	uint64_t addr, rest; /* of `d` */
	uint64_t bytes;      /* so far */
	const struct window *window;
	struct vqb_piece *piece;  /* the next one */
	struct vqb_piece *limit;  /* no further, or the chain is too long */
	struct vqb_piece *stop;   /* nor further, since there is no more room */
	struct vqb_piece *linked; /* no further by `want` alone: the end of the table, too */
};

VQB_INLINE uint32_t plain_link(const struct plain *s)
{
	return (uint32_t)(s->rest >> 32);
}

VQB_INLINE void plain_fetch(struct plain *s)
{
	s->addr = load64(&s->d->addr, MODE_PLAIN);
	s->rest = load_rest(s->d, MODE_PLAIN);
}

/* There may be `left` more descriptors. */
VQB_INLINE void plain_limit(struct plain *s, const struct walk *w, uint32_t left)
{
	struct vqb_piece *end = w->piece + w->room;

	s->limit = s->piece + left;
	s->stop = (size_t)(end - s->piece) < left ? end : s->limit;
}

/* Goes to entry `at` of the table, which has it. */
VQB_INLINE void plain_go(struct plain *s, uint32_t at)
{
	uint32_t steps = s->count - 1 - at;

	s->d = s->table + at;
	s->want = DESC_NEXT | (s->access == VQB_WRITE ? DESC_WRITE : 0u) | (at + 1) << 16;
	s->linked = (size_t)(s->stop - s->piece) < steps ? s->stop : s->piece + steps;
	plain_fetch(s);
}

/* Does the buffer of `d` lie in the window? One of no length does not. */
VQB_INLINE bool plain_inside(const struct plain *s)
{
	uint64_t len = desc_len(s->rest), room = window_len(s->window, s->access);

	return len - 1 < room && s->addr - s->window->addr <= room - len;
}

/* Adds the buffer of `d`, which lies in the window. */
VQB_INLINE void plain_add(struct plain *s)
{
	uint32_t len = desc_len(s->rest);

	s->piece->base = s->window->host + (size_t)(s->addr - s->window->addr);
	s->piece->len = len;
	s->piece++;
	s->bytes += len;
}

/* Takes descriptors that link to the next one until there is one that does not, or is odd. */
VQB_INLINE void plain_run(struct plain *s)
{
	while (plain_link(s) == s->want && s->piece != s->linked && plain_inside(s)) {
		plain_add(s);
		s->d++;
		s->want += 1u << 16;
		plain_fetch(s);
	}
}

/* Enters the table that `d` refers to. false: there is something to be said about it. */
VQB_INLINE bool plain_enter(struct plain *s, const struct walk *w)
{
	uint32_t len = desc_len(s->rest), count = len / (uint32_t)sizeof(struct desc);
	uint32_t used = (uint32_t)(s->piece - w->piece), limit = w->rules->limit;
	const struct desc *host;

	if (desc_flags(s->rest) != DESC_INDIRECT || !w->rules->indirect ||
	    s->table != w->rules->desc || len % sizeof(struct desc) || !count || count > limit ||
	    count > 1u << 16)
		return false;
	host = map_whole(w->map, s->addr, len, VQB_READ);
	if (!host || (uintptr_t)host % sizeof(uint64_t))
		return false;
	s->table = host;
	s->count = count;
	plain_limit(s, w, least(limit - used, count));
	plain_go(s, 0);
	return true;
}

/* From `d` on the buffers are for writing. */
VQB_INLINE void plain_turn(struct plain *s, struct walk *w)
{
	s->access = VQB_WRITE;
	s->want |= DESC_WRITE;
	w->readable = (uint32_t)(s->piece - w->piece);
	w->read_bytes = s->bytes;
}

/* Looks at `d`, with which a run has ended. false: it is odd. */
VQB_INLINE bool plain_look(struct plain *s, struct walk *w)
{
	uint32_t link = plain_link(s);

	if (link & ~s->want & DESC_WRITE)
		plain_turn(s, w);
	if (!plain_inside(s)) {
		s->window = &w->map->window[s->window == w->map->window];
		if (VQB_UNLIKELY(!plain_inside(s)))
			return false;
	}
	if (link == s->want)
		return s->piece != s->linked;
	return s->piece != s->stop && !((link ^ s->want) & DESC_WRITE) &&
	       (!(link & DESC_NEXT) || link >> 16 < s->count);
}

/* Hands over to the complete walk at `d`. */
static VQB_COLD int32_t plain_odd(struct walk *w, struct plain s)
{
	struct copy d = { .addr = s.addr, .rest = s.rest, .at = (uint32_t)(s.d - s.table) };

	w->pieces = (uint32_t)(s.piece - w->piece);
	w->indirect = s.table != w->rules->desc;
	w->table = (struct table){ .host = s.table, .count = s.count };
	w->access = s.access;
	w->bytes = s.bytes;
	w->reads = w->pieces + w->indirect + 1;
	w->left = (uint32_t)(s.limit - s.piece);
	return walk_on(w, d);
}

static VQB_COLD int32_t plain_long(struct walk *w, struct plain s)
{
	return bad(w, VQB_RULE_BYTES, (struct copy){ s.addr, s.rest, (uint32_t)(s.d - s.table) });
}

int32_t walk_plain(struct walk *w, uint32_t head)
{
	struct plain s = { .table = w->rules->desc, .count = w->rules->size, .access = VQB_READ };

	s.window = w->window;
	s.piece = w->piece;
	plain_limit(&s, w, least(w->rules->limit, s.count));
	plain_go(&s, head);
	for (;;) {
		plain_run(&s);
		if (VQB_UNLIKELY(plain_link(&s) & DESC_INDIRECT)) {
			if (VQB_UNLIKELY(!plain_enter(&s, w)))
				return plain_odd(w, s);
			continue;
		}
		if (VQB_UNLIKELY(!plain_look(&s, w)))
			return plain_odd(w, s);
		if (plain_link(&s) == s.want)
			continue;
		plain_add(&s);
		if (!(plain_link(&s) & DESC_NEXT))
			break;
		plain_go(&s, plain_link(&s) >> 16);
	}
	w->window = s.window;
	w->pieces = (uint32_t)(s.piece - w->piece);
	w->indirect = s.table != w->rules->desc;
	w->reads = w->pieces + w->indirect;
	w->bytes = s.bytes;
	end_reading(w, s.access);
	return VQB_UNLIKELY(s.bytes > BYTES_MAX) ? plain_long(w, s) : VQB_OK;
}
