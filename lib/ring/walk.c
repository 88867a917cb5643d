/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c: the complete walk of one chain, and the plain one. See walk.h. */
#include "walk.h"

/* More than this is too long a chain. */
#define BYTES_MAX (UINT64_C(1) << 32)

/* ---- the complete walk ---- */

static VQB_COLD int32_t bad(struct walk *w, enum vqb_rule rule, struct copy d)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = d.at, .addr = d.addr };
	return VQB_E_BAD_CHAIN;
}

static int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* Forgets what the cache holds of an entry, piece by piece. */
static void invalidate_cut(struct walk *w, uint64_t addr, uint64_t len)
{
	const struct vqb_cache_ops *cache = w->rules->cache;
	uint64_t avail;

	while (len) {
		const void *at = map_find(w->map, addr, VQB_READ, &avail);

		if (!at)
			return;
		avail = avail < len ? avail : len;
		cache->invalidate(cache->context, at, (size_t)avail);
		addr += avail;
		len -= avail;
	}
}

/* An entry of a table that is cut or not aligned, but was found to be mapped. */
static bool fetch_cut(struct walk *w, struct copy *d)
{
	struct desc raw;
	uint64_t addr = w->table.addr + sizeof(raw) * (uint64_t)d->at;

	if (w->rules->cache)
		invalidate_cut(w, addr, sizeof(raw));
	if (!map_read(w->map, addr, &raw, sizeof(raw)))
		return false;
	d->addr = order64(raw.addr.raw, w->rules->mode);
	d->rest = rest_order(raw.rest.raw, w->rules->mode);
	return true;
}

/* Fetches entry d->at, once. */
static bool fetch(struct walk *w, struct copy *d)
{
	const struct desc *from;
	const struct vqb_cache_ops *cache = w->rules->cache;

	w->reads++;
	if (VQB_UNLIKELY(!w->table.host))
		return fetch_cut(w, d);
	from = w->table.host + d->at;
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
	w->tables++;
	t->addr = addr;
	/* `next` has 16 bits. */
	t->count = least(len / (uint32_t)sizeof(struct desc), 1u << 16);
	/* No longer than the table either, whatever the limit: what is longer goes round (K01). */
	w->left = least(limit - w->direct, t->count);
	t->host = map_whole(w->map, addr, len, VQB_READ);
	if (!t->host)
		t->host = map_stretch(w->map, addr, len, VQB_READ);
	if ((uintptr_t)t->host % sizeof(uint64_t))
		t->host = NULL;
	if (!t->host && !map_covers(w->map, &addr, len, VQB_READ))
		return fault(w, addr, VQB_READ);
	return VQB_OK;
}

/* After the last descriptor: what can only be said about the whole chain. */
static int32_t finish(struct walk *w, struct copy d, struct vqb_chain *chain)
{
	if (w->access != VQB_WRITE) {
		w->readable = w->pieces;
		w->read_bytes = w->bytes;
	}
	if (w->bytes > BYTES_MAX)
		return bad(w, VQB_RULE_BYTES, d);
	if (w->pieces > w->room) {
		w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	chain->piece = w->piece;
	chain->readable = w->readable;
	chain->writable = w->pieces - w->readable;
	chain->read_bytes = w->read_bytes;
	chain->write_bytes = w->bytes - w->read_bytes;
	w->piece += w->pieces;
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
static VQB_COLD int32_t walk_on(struct walk *w, struct copy d, struct vqb_chain *chain)
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
			w->direct += !w->indirect;
			status = add_buffer(w, d);
			if (status)
				return status;
			if (!(flags & DESC_NEXT))
				return finish(w, d, chain);
			if (desc_next(d.rest) >= w->table.count)
				return bad(w, VQB_RULE_NEXT, d);
			d.at = desc_next(d.rest);
		}
		if (!fetch(w, &d))
			return fault(w, w->table.addr, VQB_READ);
	}
}

/* Pieces that the next chain may have. */
static uint32_t room_left(const struct walk *w)
{
	return least((uint32_t)(w->end - w->piece), w->rules->max_pieces);
}

int32_t walk_chain(struct walk *w, uint32_t head, struct vqb_chain *chain)
{
	struct copy d = { .at = head };

	w->room = room_left(w);
	w->table = (struct table){ .host = w->rules->desc, .count = w->rules->size };
	w->indirect = false;
	w->access = VQB_READ;
	w->direct = w->pieces = 0;
	w->bytes = 0;
	w->left = least(w->rules->limit, w->table.count);
	fetch(w, &d); /* the ring's own table is never cut */
	return walk_on(w, d, chain);
}

/* ---- the plain walk ---- */

/*
 * Where it is. Descriptors that each link to the one behind them are known by one compare of flags
 * and link with `want`; all else is looked at where they end.
 */
struct plain {
	const struct desc *table, *d;
	uint32_t past; /* links of the table, whatever the flags, are below; see plain_past */
	bool indirect; /* that is an indirect one, which may lie anywhere, over the ring, too */
	size_t writes; /* 1: the next buffer is for writing; 0: unless the chain turns there */
	uint32_t want; /* flags and link of `d`, if the one behind it is next */
	uint64_t addr, rest;            /* of `d` */
	uint64_t bytes, read_bytes;     /* so far */
	const struct window *window;    /* of the buffer that was looked for last */
	struct vqb_piece *piece, *turn; /* the next one; the first writable one */
	struct vqb_piece *stop;         /* no further: the chain limit, or no more room */
};

VQB_INLINE uint32_t plain_link(const struct plain *s)
{
	return (uint32_t)(s->rest >> 32);
}

VQB_INLINE struct copy plain_copy(const struct plain *s)
{
	return (struct copy){ .addr = s->addr, .rest = s->rest, .at = (uint32_t)(s->d - s->table) };
}

VQB_INLINE void plain_fetch(struct plain *s)
{
	s->addr = load64(&s->d->addr, MODE_PLAIN);
	s->rest = load_rest(s->d, MODE_PLAIN);
}

/* After so many buffers plain_run pays. */
#define RUN_FROM 4

/* For a table of `count` entries, at most 65535. */
VQB_INLINE uint32_t plain_past(uint32_t count)
{
	return count << 16;
}

/* Goes to entry `at` of the table, which has it. */
VQB_INLINE void plain_go(struct plain *s, uint32_t at)
{
	s->d = s->table + at;
	s->want = (at + 1) << 16 | DESC_NEXT | (uint32_t)s->writes * DESC_WRITE;
	plain_fetch(s);
}

/* There may be `most` descriptors, from here on. */
VQB_INLINE void plain_limit(struct plain *s, const struct walk *w, uint32_t most)
{
	size_t room = (size_t)((char *)w->end - (char *)s->piece), bytes = most * sizeof(*s->piece);

	s->stop = (struct vqb_piece *)(void *)((char *)s->piece + (bytes < room ? bytes : room));
}

/* Does the buffer of `d` lie in the window? One of no length does not. */
VQB_INLINE bool plain_inside(const struct plain *s)
{
	return window_holds(s->window, s->addr, desc_len(s->rest), s->writes);
}

/* Does it lie in either? */
VQB_INLINE bool plain_found(struct plain *s, const struct map *map)
{
	s->window = map_window(map, s->addr);
	return plain_inside(s);
}

VQB_INLINE void plain_add(struct plain *s)
{
	uint32_t len = desc_len(s->rest);

	s->piece->base = window_host(s->window, s->addr);
	s->piece->len = len;
	s->piece++;
	s->bytes += len;
}

/* Goes to the descriptor behind. */
VQB_INLINE void plain_step(struct plain *s)
{
	s->d++;
	s->want += 1u << 16;
	plain_fetch(s);
}

/*
 * Takes descriptors that link to the one behind them until there is one that does not, or is odd, or
 * is the last of its table.
 */
VQB_INLINE void plain_run(struct plain *s)
{
	size_t room = (size_t)(s->stop - s->piece), steps = (s->past >> 16) - (s->want >> 16);
	const struct desc *end = s->d + (steps < room ? steps : room);

	while (plain_link(s) == s->want && s->d != end && plain_inside(s)) {
		plain_add(s);
		plain_step(s);
	}
}

/* Enters the table that `d` refers to. false: there is something to be said about it. */
VQB_INLINE bool plain_enter(struct plain *s, struct walk *w)
{
	uint32_t len = desc_len(s->rest), count = len / (uint32_t)sizeof(struct desc);

	if (desc_flags(s->rest) != DESC_INDIRECT || !w->rules->indirect || s->indirect ||
	    s->piece != w->piece || len % sizeof(struct desc) || count > w->rules->limit ||
	    count > UINT16_MAX || !plain_found(s, w->map) ||
	    (uintptr_t)window_host(s->window, s->addr) % sizeof(uint64_t))
		return false;
	s->table = (const struct desc *)(const void *)window_host(s->window, s->addr);
	s->past = plain_past(count);
	s->indirect = true;
	w->reads++;
	w->tables++;
	plain_limit(s, w, least(count, w->rules->max_pieces));
	plain_go(s, 0);
	return true;
}

/* Looks at flags and link of `d`, which are not the usual ones. false: they are odd. */
VQB_INLINE bool plain_turn(struct plain *s, uint32_t link)
{
	if (link & ~s->want & DESC_WRITE) {
		s->writes = 1;
		s->want |= DESC_WRITE;
		s->turn = s->piece;
		s->read_bytes = s->bytes;
	} else if (VQB_UNLIKELY((link ^ s->want) & DESC_WRITE)) {
		return false;
	}
	return !(link & DESC_NEXT) || link < s->past;
}

/* What the complete walk has to know to go on at `d`. */
VQB_INLINE void plain_hand_over(struct walk *w, const struct plain *s)
{
	w->room = room_left(w);
	w->table = (struct table){ .host = s->table, .count = s->past >> 16 };
	w->indirect = s->indirect;
	w->access = s->writes ? VQB_WRITE : VQB_READ;
	w->pieces = (uint32_t)(s->piece - w->piece);
	w->direct = w->indirect ? 0 : w->pieces;
	w->left = least(w->rules->limit, w->table.count) - w->pieces;
	w->readable = (uint32_t)(s->turn - w->piece);
	w->bytes = s->bytes;
	w->read_bytes = s->read_bytes;
	w->reads += w->pieces + 1;
}

VQB_INLINE void plain_end(struct walk *w, const struct plain *s, struct vqb_chain *chain)
{
	chain->piece = w->piece;
	chain->readable = (uint32_t)(s->turn - w->piece);
	chain->writable = (uint32_t)(s->piece - s->turn);
	chain->read_bytes = s->read_bytes;
	chain->write_bytes = s->bytes - s->read_bytes;
	w->reads += chain->readable + chain->writable;
	w->piece = s->piece;
}

int32_t walk_plain(struct walk *w, uint32_t head, struct vqb_chain *chain)
{
	struct plain s = {
		.table = w->rules->desc,
		.past = plain_past(w->rules->size),
		.piece = w->piece,
		.turn = w->piece,
	};
	const struct vqb_piece *run = w->piece + RUN_FROM;
	uint32_t link;

	plain_limit(&s, w, w->rules->most);
	plain_go(&s, head);
	for (;;) {
		link = plain_link(&s);
		if (link != s.want) {
			if (VQB_UNLIKELY(link & DESC_INDIRECT)) {
				if (VQB_UNLIKELY(!plain_enter(&s, w)))
					goto odd;
				continue;
			}
			if (VQB_UNLIKELY(!plain_turn(&s, link)))
				goto odd;
		} else if (VQB_UNLIKELY(link >= s.past)) {
			goto odd;
		}
		if (VQB_UNLIKELY(s.piece == s.stop || !plain_found(&s, w->map)))
			goto odd;
		plain_add(&s);
		if (link == s.want) {
			plain_step(&s);
			if (s.piece >= run)
				plain_run(&s);
		} else if (link & DESC_NEXT) {
			plain_go(&s, link >> 16);
		} else {
			break;
		}
	}
	if (!s.writes) {
		s.turn = s.piece;
		s.read_bytes = s.bytes;
	}
	if (VQB_UNLIKELY(s.bytes > BYTES_MAX)) {
		w->reads += (uint32_t)(s.piece - w->piece);
		return bad(w, VQB_RULE_BYTES, plain_copy(&s));
	}
	plain_end(w, &s, chain);
	return VQB_OK;
odd:
	plain_hand_over(w, &s);
	return walk_on(w, plain_copy(&s), chain);
}
