/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.h: the plain walk of one chain, to be part of the loop that takes chains. See walk.h.
 */
#ifndef RING_PLAIN_H
#define RING_PLAIN_H

#include "walk.h"

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

/* Where it is, for the complete walk. */
VQB_INLINE void plain_copy(struct walk *w, const struct plain *s)
{
	w->d.addr = s->addr;
	w->d.rest = s->rest;
	w->d.at = (uint32_t)(s->d - s->table);
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

	s->stop = pieces_behind(s->piece, bytes < room ? bytes : room);
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
 * Takes descriptors that link to the one behind them until there is one that does not, or is odd,
 * or is the last of its table.
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
	if ((link ^ s->want) & DESC_WRITE) {
		if (VQB_UNLIKELY(s->writes))
			return false;
		s->writes = 1;
		s->want |= DESC_WRITE;
		s->turn = s->piece;
		s->read_bytes = s->bytes;
	}
	return !(link & DESC_NEXT) || link < s->past;
}

/* What the complete walk has to know to go on at `d`. */
VQB_INLINE void plain_hand_over(struct walk *w, const struct plain *s)
{
	w->room = walk_room(w);
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
	plain_copy(w, s);
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

/*
 * A chain of one buffer, as consoles and networks have them: half the price that it has as a chain.
 * false: it is for the walk.
 */
VQB_INLINE bool plain_single(struct walk *w, const struct plain *s, struct vqb_chain *chain)
{
	size_t writes = plain_link(s) & DESC_WRITE ? 1 : 0;
	const struct window *window = map_window(w->map, s->addr);
	uint64_t len = desc_len(s->rest);

	if (VQB_UNLIKELY(w->piece == w->end || !window_holds(window, s->addr, len, writes)))
		return false;
	w->piece->base = window_host(window, s->addr);
	w->piece->len = (size_t)len;
	chain->piece = w->piece++;
	chain->readable = 1 - (uint32_t)writes;
	chain->writable = (uint32_t)writes;
	chain->read_bytes = writes ? 0 : len;
	chain->write_bytes = writes ? len : 0;
	w->reads++;
	return true;
}

VQB_INLINE int32_t walk_plain(struct walk *w, uint32_t head, struct vqb_chain *chain)
{
	struct plain s = {
		.table = w->rules->desc,
		.past = plain_past(w->rules->size),
		.piece = w->piece,
		.turn = w->piece,
	};
	const struct vqb_piece *run = pieces_behind(w->piece, RUN_FROM * sizeof(*run));
	uint32_t link;

	plain_go(&s, head);
	if (!(plain_link(&s) & (DESC_NEXT | DESC_INDIRECT)) && plain_single(w, &s, chain))
		return VQB_OK;
	plain_limit(&s, w, w->rules->most);
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
	if (VQB_UNLIKELY(s.bytes > WALK_BYTES_MAX)) {
		w->reads += (uint32_t)(s.piece - w->piece);
		plain_copy(w, &s);
		return walk_long(w);
	}
	plain_end(w, &s, chain);
	return VQB_OK;
odd:
	plain_hand_over(w, &s);
	return walk_on(w, chain);
}

#endif
