/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.c: walks one chain. See walk.h.
 *
 * A chain is walked in at most two runs, one for each direction, since all that the device
 * reads comes before all that it writes. A run ends at a descriptor that is not of its direction
 * or that refers to a table; the descriptor is kept, fetched, for whoever goes on.
 */
#include "walk.h"

/* Where the walk stands: in a table, at a descriptor that has been fetched. */
struct place {
	const struct desc *host; /* NULL: not in one aligned stretch of host memory, use table */
	uint64_t table;          /* guest address, of an indirect table */
	uint32_t count;          /* entries of the table */
	uint32_t at;
	uint64_t addr, rest; /* the private copy of entry `at` */
};

/* A chain of at least so many is worth the loop for descriptors that follow each other. */
#define LINKED_FROM 4u

static VQB_COLD int32_t bad(struct walk *w, enum vqb_rule rule, const struct place *p)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = p->at, .addr = p->addr };
	return VQB_E_BAD_CHAIN;
}

static VQB_COLD int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* Fetches descriptor `at` once. An indirect table was found to be mapped before. */
VQB_INLINE int32_t fetch(struct walk *w, struct place *p, uint32_t at)
{
	struct desc raw;
	uint64_t addr;

	p->at = at;
	w->reads++;
	if (VQB_LIKELY(p->host)) {
		p->addr = load_le64(&p->host[at].addr);
		p->rest = load_le64(&p->host[at].rest);
		return VQB_OK;
	}
	addr = p->table + sizeof(raw) * (uint64_t)at;
	if (!map_read(w->map, addr, &raw, sizeof(raw)))
		return fault(w, addr, VQB_READ);
	p->addr = vqb_from_le64(raw.addr);
	p->rest = vqb_from_le64(raw.rest);
	return VQB_OK;
}

VQB_INLINE void add_piece(struct walk *w, void *host, uint32_t len)
{
	w->piece[w->pieces++] = (struct vqb_piece){ .base = host, .len = len };
}

/* A buffer that map_whole does not know, that is cut, or for which there is no room. */
static VQB_COLD int32_t add_pieces(struct walk *w, const struct place *p, uint32_t access)
{
	uint32_t len = desc_len(p->rest);
	uint64_t addr = p->addr, avail;

	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, p);
	while (len) {
		void *host = map_find(w->map, addr, access, &avail);
		uint32_t n = avail < len ? (uint32_t)avail : len;

		if (!host)
			return fault(w, addr, access);
		if (w->pieces == w->rules->max_pieces)
			return bad(w, VQB_RULE_PIECES, p);
		if (w->pieces < w->room)
			add_piece(w, host, n);
		else
			w->pieces++;
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

/*
 * The buffer of one descriptor. An empty one has its place in the order, and nothing else: its
 * address is not looked at.
 */
VQB_INLINE int32_t add_buffer(struct walk *w, const struct place *p, uint32_t access)
{
	uint32_t len = desc_len(p->rest);
	void *host;

	if (VQB_UNLIKELY(!len))
		return VQB_OK;
	w->bytes += len;
	host = map_whole(w->map, p->addr, len, access);
	if (VQB_UNLIKELY(!host || w->pieces >= w->room))
		return add_pieces(w, p, access);
	add_piece(w, host, len);
	return VQB_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * The plain case in a tight loop: descriptors of one direction that each link to the one behind
 * them, whose buffers lie whole in the extent used last. Flags and link are one compare, and the
 * bounds (chain limit, table, room) one count. Stops at the first that is different, fetched.
 */
static void walk_linked(struct walk *w, struct place *p, uint32_t kind, uint32_t access)
{
	uint32_t most = least(least(w->left, p->count - 1 - p->at), w->room - w->pieces);
	uint32_t want = kind | DESC_NEXT | (p->at + 1) << 16, n = 0;
	const struct vqb_extent *e = &w->map->cached[w->map->last];
	uint64_t first = e->addr, extent = e->access & access ? e->len : 0;
	char *host = e->host;
	struct vqb_piece *piece = w->piece + w->pieces;
	const struct desc *d = p->host + p->at;
	uint64_t addr = p->addr, rest = p->rest, bytes = w->bytes;

	while (n < most && rest >> 32 == want) {
		uint64_t offset = addr - first, len = desc_len(rest);

		/* An empty one (len - 1 wraps) is not for here. */
		if (offset >= extent || len - 1 >= extent - offset)
			break;
		bytes += len;
		piece[n] = (struct vqb_piece){ .base = host + (size_t)offset, .len = (size_t)len };
		n++;
		d++;
		want += 1u << 16;
		addr = load_le64(&d->addr);
		rest = load_le64(&d->rest);
	}
	p->at += n;
	p->addr = addr;
	p->rest = rest;
	w->bytes = bytes;
	w->pieces += n;
	w->reads += n;
	w->left -= n;
}

/*
 * Follows descriptors of one direction, beginning with the one at hand. VQB_OK: the chain ends.
 * VQB_E_AGAIN: the descriptor at hand is of another kind.
 */
static int32_t walk_run(struct walk *w, struct place *p, uint32_t kind, uint32_t access)
{
	int32_t status;

	for (;;) {
		uint32_t flags, next;

		if (w->reads >= LINKED_FROM && p->host && w->pieces < w->room)
			walk_linked(w, p, kind, access);
		flags = desc_flags(p->rest);
		next = desc_next(p->rest);
		if ((flags & (DESC_WRITE | DESC_INDIRECT)) != kind)
			return VQB_E_AGAIN;
		if (VQB_UNLIKELY(!w->left))
			return bad(w, VQB_RULE_LOOP, p);
		w->left--;
		status = add_buffer(w, p, access);
		if (VQB_UNLIKELY(status))
			return status;
		if (!(flags & DESC_NEXT))
			return VQB_OK;
		if (VQB_UNLIKELY(next >= p->count))
			return bad(w, VQB_RULE_NEXT, p);
		status = fetch(w, p, next);
		if (VQB_UNLIKELY(status))
			return status;
	}
}

/*
 * The descriptor at hand refers to a table: checks it and goes to the table's first entry. All
 * of the table must be mapped, whether it is used or not (K14). WRITE means nothing here.
 */
static int32_t enter_table(struct walk *w, struct place *p)
{
	uint32_t len = desc_len(p->rest);
	uint64_t addr = p->addr;

	if (w->table)
		return bad(w, VQB_RULE_NESTED, p);
	if (!w->rules->indirect)
		return bad(w, VQB_RULE_INDIRECT, p);
	if (desc_flags(p->rest) & DESC_NEXT)
		return bad(w, VQB_RULE_BOTH, p);
	if (!len || len % sizeof(struct desc) || len / sizeof(struct desc) > w->rules->limit)
		return bad(w, VQB_RULE_TABLE, p);
	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, p);
	w->table = true;
	p->table = addr;
	/* `next` has 16 bits. */
	p->count = least(len / (uint32_t)sizeof(struct desc), 1u << 16);
	/* No longer than the table either, whatever the limit: what is longer goes round (K01). */
	w->left = least(w->rules->limit - (w->reads - 1), p->count);
	p->host = map_whole(w->map, addr, len, VQB_READ);
	if (!p->host)
		p->host = map_stretch(w->map, addr, len, VQB_READ);
	if ((uintptr_t)p->host % sizeof(uint64_t))
		p->host = NULL;
	if (!p->host && !map_covers(w->map, &addr, len, VQB_READ))
		return fault(w, addr, VQB_READ);
	return fetch(w, p, 0);
}

/* Readable descriptors, then writable ones; in the ring, and from a table on in the table. */
static int32_t walk_all(struct walk *w, struct place *p)
{
	uint32_t kind = 0, access = VQB_READ;
	int32_t status;

	for (;;) {
		status = walk_run(w, p, kind, access);
		if (!kind) {
			w->readable = w->pieces;
			w->read_bytes = w->bytes;
		}
		if (status != VQB_E_AGAIN)
			return status;
		if (desc_flags(p->rest) & DESC_INDIRECT) {
			status = enter_table(w, p);
			if (status)
				return status;
		} else if (kind) {
			return bad(w, VQB_RULE_ORDER, p);
		} else {
			kind = DESC_WRITE;
			access = VQB_WRITE;
		}
	}
}

int32_t walk_chain(struct walk *w, uint32_t head)
{
	struct place p = { .host = w->rules->desc, .count = w->rules->size };
	int32_t status;

	w->reads = w->pieces = 0;
	w->bytes = 0;
	w->table = false;
	w->left = least(w->rules->limit, p.count);
	fetch(w, &p, head);
	status = walk_all(w, &p);
	if (VQB_UNLIKELY(status))
		return status;
	if (VQB_UNLIKELY(w->bytes > UINT64_C(1) << 32))
		return bad(w, VQB_RULE_BYTES, &p);
	if (VQB_UNLIKELY(w->pieces > w->room)) {
		w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	return VQB_OK;
}
