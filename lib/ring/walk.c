/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c: the complete walk of one chain. See walk.h. */
#include "plain.h"

static int32_t bad(struct walk *w, enum vqb_rule rule, struct copy d)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = d.at, .addr = d.addr };
	return VQB_E_BAD_CHAIN;
}

static int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	*w->need = (struct vqb_need){ .access = access, .addr = addr };
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
	if (!vqb__map_read(w->map, addr, &raw, sizeof(raw)))
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
	if (w->bytes > WALK_BYTES_MAX)
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
		t->host = vqb__map_stretch(w->map, addr, len, VQB_READ);
	if ((uintptr_t)t->host % sizeof(uint64_t))
		t->host = NULL;
	if (!t->host && !vqb__map_covers(w->map, &addr, len, VQB_READ))
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
	if (w->bytes > WALK_BYTES_MAX)
		return bad(w, VQB_RULE_BYTES, d);
	if (w->pieces > w->room) {
		*w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	chain->piece = w->piece;
	chain->readable = w->readable;
	chain->writable = w->pieces - w->readable;
	chain->read_bytes = w->read_bytes;
	chain->write_bytes = w->bytes - w->read_bytes;
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

/* From w->d on, which is fetched and not yet looked at. */
static int32_t walk_on(struct walk *w, struct vqb_chain *chain)
{
	struct copy d = w->d;
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

int32_t vqb__walk_chain(struct walk *w, uint32_t head, struct vqb_chain *chain)
{
	w->d.at = head;
	w->table = (struct table){ .host = w->rules->desc, .count = w->rules->past >> 16 };
	w->indirect = false;
	w->access = VQB_READ;
	w->direct = w->pieces = w->reads = w->tables = 0;
	w->bytes = 0;
	w->left = least(w->rules->limit, w->table.count);
	fetch(w, &w->d); /* the ring's own table is never cut */
	return walk_on(w, chain);
}

int32_t vqb__walk_from(struct walk *w, const struct plain *plain, struct vqb_chain *chain)
{
	w->d = (struct copy){ .addr = plain->addr,
			      .rest = plain->rest,
			      .at = (uint32_t)(plain->d - plain->table) };
	w->table = (struct table){ .host = plain->table, .count = plain->past >> 16 };
	w->indirect = plain->indirect;
	w->access = plain->writes ? VQB_WRITE : VQB_READ;
	w->pieces = (uint32_t)(plain->piece - plain->first);
	w->direct = w->indirect ? 0 : w->pieces;
	w->left = least(w->rules->limit, w->table.count) - w->pieces;
	w->readable = plain->writes ? chain->readable : 0;
	w->bytes = plain->bytes;
	w->read_bytes = plain->writes ? chain->read_bytes : 0;
	w->tables = w->indirect;
	w->reads = w->pieces + w->tables + !plain->ended;
	return plain->ended ? bad(w, VQB_RULE_BYTES, w->d) : walk_on(w, chain);
}
