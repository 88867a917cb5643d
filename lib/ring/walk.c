/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.c: walks one chain. See walk.h.
 *
 * One descriptor at a time, in registers; a chain that is longer takes walk_linked as soon as
 * its descriptors follow each other.
 */
#include "walk.h"

/* A descriptor table: the ring's, or an indirect one. */
struct table {
	const struct desc *host; /* NULL: not in one aligned stretch of host memory, use addr */
	uint64_t addr;
	uint32_t count;
};

/* The private copy of one descriptor, and where it was. */
struct copy {
	uint64_t addr, rest;
	uint32_t at;
};

/* From so many descriptors on, the loop for those that follow each other pays. */
#define LINKED_FROM 4u

static VQB_COLD int32_t bad(struct walk *w, enum vqb_rule rule, struct copy d)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = d.at, .addr = d.addr };
	return VQB_E_BAD_CHAIN;
}

static VQB_COLD int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* An entry of a table that is cut or not aligned, but was found to be mapped. */
static VQB_COLD bool fetch_cut(struct walk *w, const struct table *t, struct copy *d)
{
	struct desc raw;

	if (!map_read(w->map, t->addr + sizeof(raw) * (uint64_t)d->at, &raw, sizeof(raw)))
		return false;
	d->addr = vqb_from_le64(raw.addr);
	d->rest = vqb_from_le64(raw.rest);
	return true;
}

/* Fetches entry d->at, once. */
VQB_INLINE bool fetch(struct walk *w, const struct table *t, struct copy *d)
{
	w->reads++;
	if (VQB_UNLIKELY(!t->host))
		return fetch_cut(w, t, d);
	d->addr = load_le64(&t->host[d->at].addr);
	d->rest = load_le64(&t->host[d->at].rest);
	return true;
}

VQB_INLINE void add_piece(struct walk *w, void *host, uint32_t len)
{
	w->piece[w->pieces++] = (struct vqb_piece){ .base = host, .len = len };
}

/* A buffer that map_whole does not know, that is cut, or for which there is no room. */
static VQB_COLD int32_t add_pieces(struct walk *w, struct copy d, uint32_t access)
{
	uint32_t len = desc_len(d.rest);
	uint64_t addr = d.addr, avail;

	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, d);
	/* Known at the end anyway; here, so that no chain has more than 2^32 bytes resolved. */
	if (w->bytes > UINT64_C(1) << 32)
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
 * The plain case of a long chain: descriptors of one direction that each link to the one behind
 * them, whose buffers lie whole in one extent. Flags and link are one compare, and all bounds
 * (chain limit, table, room) one count. Stops at the first that is different, fetched.
 */
static void walk_linked(struct walk *w, const struct table *t, struct copy *at, uint32_t access)
{
	const struct vqb_extent *e = map_cached(w->map, at->addr, access);
	uint32_t kind = access == VQB_WRITE ? DESC_WRITE | DESC_NEXT : DESC_NEXT;
	uint32_t want = kind | (at->at + 1) << 16, n = 0, most;
	struct vqb_piece *piece = w->piece + w->pieces;
	uint64_t addr = at->addr, rest = at->rest;
	const struct desc *d;

	if (!t->host || !e || w->pieces >= w->room)
		return;
	d = t->host + at->at;
	most = least(least(w->left, t->count - 1 - at->at), w->room - w->pieces);
	while (n < most && rest >> 32 == want) {
		uint64_t offset = addr - e->addr, len = desc_len(rest);

		/* An empty one (len - 1 wraps) is not for here. */
		if (offset >= e->len || len - 1 >= e->len - offset)
			break;
		w->bytes += len;
		piece[n].base = (char *)e->host + (size_t)offset;
		piece[n].len = (size_t)len;
		n++;
		d++;
		want += 1u << 16;
		addr = load_le64(&d->addr);
		rest = load_le64(&d->rest);
	}
	*at = (struct copy){ .addr = addr, .rest = rest, .at = at->at + n };
	w->pieces += n;
	w->reads += n;
	w->left -= n;
}

/*
 * Checks the descriptor that refers to a table, and opens the table: all of it must be mapped,
 * whether it is used or not (K14). WRITE means nothing here.
 */
static int32_t open_table(struct walk *w, struct copy d, struct table *t)
{
	uint32_t len = desc_len(d.rest), limit = w->rules->limit;
	uint64_t addr = d.addr;

	if (w->table)
		return bad(w, VQB_RULE_NESTED, d);
	if (!w->rules->indirect)
		return bad(w, VQB_RULE_INDIRECT, d);
	if (desc_flags(d.rest) & DESC_NEXT)
		return bad(w, VQB_RULE_BOTH, d);
	if (!len || len % sizeof(struct desc) || len / sizeof(struct desc) > limit)
		return bad(w, VQB_RULE_TABLE, d);
	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, d);
	w->table = true;
	t->addr = addr;
	/* `next` has 16 bits. */
	t->count = least(len / (uint32_t)sizeof(struct desc), 1u << 16);
	/* No longer than the table either, whatever the limit: what is longer goes round (K01). */
	w->left = least(limit - (w->reads - 1), t->count);
	t->host = map_whole(w->map, addr, len, VQB_READ);
	if (VQB_UNLIKELY(!t->host))
		t->host = map_stretch(w->map, addr, len, VQB_READ);
	if (VQB_UNLIKELY((uintptr_t)t->host % sizeof(uint64_t)))
		t->host = NULL;
	if (VQB_UNLIKELY(!t->host) && !map_covers(w->map, &addr, len, VQB_READ))
		return fault(w, addr, VQB_READ);
	return VQB_OK;
}

/* After the last descriptor: what can only be said about the whole chain. */
VQB_INLINE int32_t finish(struct walk *w, struct copy d, bool writes)
{
	if (!writes) {
		w->readable = w->pieces;
		w->read_bytes = w->bytes;
	}
	if (VQB_UNLIKELY(w->bytes > UINT64_C(1) << 32))
		return bad(w, VQB_RULE_BYTES, d);
	if (VQB_UNLIKELY(w->pieces > w->room)) {
		w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	return VQB_OK;
}

/*
 * The buffer of one descriptor. An empty one has its place in the order, and nothing else: its
 * address is not looked at.
 */
VQB_INLINE int32_t add_buffer(struct walk *w, struct copy d, uint32_t access)
{
	uint32_t len = desc_len(d.rest);
	void *host;

	if (VQB_UNLIKELY(!len))
		return VQB_OK;
	w->bytes += len;
	host = map_whole(w->map, d.addr, len, access);
	if (VQB_UNLIKELY(!host || w->pieces >= w->room))
		return add_pieces(w, d, access);
	add_piece(w, host, len);
	return VQB_OK;
}

int32_t walk_chain(struct walk *w, uint32_t head)
{
	struct table t = { .host = w->rules->desc, .count = w->rules->size };
	uint32_t access = VQB_READ, flags;
	struct copy d = { .at = head };
	int32_t status;

	w->reads = w->pieces = 0;
	w->bytes = 0;
	w->table = false;
	w->left = least(w->rules->limit, t.count);
	for (;;) {
		if (VQB_UNLIKELY(!fetch(w, &t, &d)))
			return fault(w, t.addr, VQB_READ);
		if (w->reads > LINKED_FROM) {
			struct copy linked = d;

			walk_linked(w, &t, &linked, access);
			d = linked;
		}
		flags = desc_flags(d.rest);
		if (VQB_UNLIKELY(flags & DESC_INDIRECT)) {
			status = open_table(w, d, &t);
			if (status)
				return status;
			d.at = 0;
			continue;
		}
		if (flags & DESC_WRITE && access == VQB_READ) {
			w->readable = w->pieces;
			w->read_bytes = w->bytes;
			access = VQB_WRITE;
		} else if (VQB_UNLIKELY(!(flags & DESC_WRITE) && access == VQB_WRITE)) {
			return bad(w, VQB_RULE_ORDER, d);
		}
		if (VQB_UNLIKELY(!w->left))
			return bad(w, VQB_RULE_LOOP, d);
		w->left--;
		status = add_buffer(w, d, access);
		if (VQB_UNLIKELY(status))
			return status;
		if (!(flags & DESC_NEXT))
			return finish(w, d, access == VQB_WRITE);
		if (VQB_UNLIKELY(desc_next(d.rest) >= t.count))
			return bad(w, VQB_RULE_NEXT, d);
		d.at = desc_next(d.rest);
	}
}
