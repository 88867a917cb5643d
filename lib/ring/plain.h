/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.h: the plain walk of one chain, to be part of the loop that takes chains. See walk.h.
 */
#ifndef RING_PLAIN_H
#define RING_PLAIN_H

#include "walk.h"

/*
 * Where it is, all in registers as far as they go: its address must not be taken but of a copy.
 *
 * Descriptors that each link to the one behind them are known by one compare of flags and link with
 * `want`; all else is looked at where they end.
 */
struct plain {
	/* of all chains */
	const struct walk_rules *rules;
	const struct map *map;
	struct vqb_piece *piece; /* the next one to fill */
	struct vqb_piece *end;   /* of the caller's */
	uint32_t tables;         /* entered so far */
	/* of one */
	const struct desc *table, *d;
	uint32_t past; /* links of the table, whatever the flags, are below; see plain_past */
	bool indirect; /* that is an indirect one, which may lie anywhere, over the ring, too */
	bool ended;    /* `d` was the last one */
	size_t writes; /* 1: the next buffer is for writing; 0: unless the chain turns there */
	uint32_t want; /* flags and link of `d`, if the one behind it is next */
	uint64_t addr, rest;         /* of `d` */
	uint64_t bytes;              /* so far; in `chain` those for reading, once it has turned */
	const struct window *window; /* of the buffer that was looked for last */
	struct vqb_piece *first;     /* its first piece */
	struct vqb_piece *stop;      /* no further: the chain limit, or no more room */
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
VQB_INLINE void plain_limit(struct plain *s, uint32_t most)
{
	size_t room = (size_t)((char *)s->end - (char *)s->piece), bytes = most * sizeof(*s->piece);

	s->stop = pieces_behind(s->piece, bytes < room ? bytes : room);
}

/* Does the buffer of `d` lie in the window? One of no length does not. */
VQB_INLINE bool plain_inside(const struct plain *s)
{
	return window_holds(s->window, s->addr, desc_len(s->rest), s->writes);
}

/* Does it lie in either? */
VQB_INLINE bool plain_found(struct plain *s)
{
	s->window = map_window(s->map, s->addr);
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

/* Enters the table that the head refers to. false: there is something to be said about it. */
VQB_INLINE bool plain_enter(struct plain *s)
{
	uint32_t len = desc_len(s->rest), count = len / (uint32_t)sizeof(struct desc);

	if (desc_flags(s->rest) != DESC_INDIRECT || !s->rules->indirect ||
	    len % sizeof(struct desc) || count > s->rules->limit || count > UINT16_MAX ||
	    !plain_found(s) || (uintptr_t)window_host(s->window, s->addr) % sizeof(uint64_t))
		return false;
	s->table = (const struct desc *)(const void *)window_host(s->window, s->addr);
	s->past = plain_past(count);
	s->indirect = true;
	s->tables++;
	plain_limit(s, least(count, s->rules->max_pieces));
	plain_go(s, 0);
	return true;
}

/* `d` turns from reading to writing, or back. false: back. */
VQB_INLINE bool plain_turn(struct plain *s, struct vqb_chain *chain)
{
	if (VQB_UNLIKELY(s->writes))
		return false;
	s->writes = 1;
	s->want |= DESC_WRITE;
	chain->readable = (uint32_t)(s->piece - s->first);
	chain->read_bytes = s->bytes;
	return true;
}

VQB_INLINE bool plain_end(struct plain *s, struct vqb_chain *chain)
{
	uint32_t pieces = (uint32_t)(s->piece - s->first);

	if (VQB_UNLIKELY(s->bytes > WALK_BYTES_MAX)) {
		s->ended = true;
		return false;
	}
	chain->piece = s->first;
	if (s->writes) {
		chain->writable = pieces - chain->readable;
		chain->write_bytes = s->bytes - chain->read_bytes;
	} else {
		chain->readable = pieces;
		chain->writable = 0;
		chain->read_bytes = s->bytes;
		chain->write_bytes = 0;
	}
	return true;
}

/*
 * A chain of one buffer, as consoles and networks have them: half the price that it has as a chain.
 * false: it is for the walk.
 */
VQB_INLINE bool plain_single(struct plain *s, struct vqb_chain *chain)
{
	uint64_t len = desc_len(s->rest);

	s->writes = plain_link(s) & DESC_WRITE ? 1 : 0;
	if (VQB_UNLIKELY(s->piece == s->end || !plain_found(s))) {
		s->writes = 0;
		return false;
	}
	chain->piece = s->piece;
	chain->readable = 1 - (uint32_t)s->writes;
	chain->writable = (uint32_t)s->writes;
	chain->read_bytes = s->writes ? 0 : len;
	chain->write_bytes = s->writes ? len : 0;
	plain_add(s);
	return true;
}

/* false: the complete walk has to go on from here, by vqb__walk_from. */
VQB_INLINE bool walk_plain(struct plain *s, uint32_t head, struct vqb_chain *chain)
{
	uint32_t link;

	s->table = s->rules->desc;
	s->past = s->rules->past;
	s->indirect = s->ended = false;
	s->writes = 0;
	s->bytes = 0;
	s->first = s->piece;
	plain_go(s, head);
	if (!(plain_link(s) & (DESC_NEXT | DESC_INDIRECT)) && plain_single(s, chain))
		return true;
	if (!(plain_link(s) & DESC_INDIRECT))
		plain_limit(s, s->rules->most);
	else if (VQB_UNLIKELY(!plain_enter(s)))
		return false;
	for (;;) {
		link = plain_link(s);
		if (link == s->want) {
			if (VQB_UNLIKELY(link >= s->past || s->piece == s->stop || !plain_found(s)))
				return false;
			plain_add(s);
			plain_step(s);
			if (s->piece >= pieces_behind(s->first, RUN_FROM * sizeof(*s->piece)))
				plain_run(s);
			continue;
		}
		if (VQB_UNLIKELY(link & DESC_INDIRECT))
			return false;
		if ((link ^ s->want) & DESC_WRITE && VQB_UNLIKELY(!plain_turn(s, chain)))
			return false;
		if (link & DESC_NEXT && VQB_UNLIKELY(link >= s->past))
			return false;
		if (VQB_UNLIKELY(s->piece == s->stop || !plain_found(s)))
			return false;
		plain_add(s);
		if (!(link & DESC_NEXT))
			return plain_end(s, chain);
		if (link == s->want)
			plain_step(s);
		else
			plain_go(s, link >> 16);
	}
}

#endif
