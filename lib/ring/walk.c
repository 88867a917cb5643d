/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c: walks one chain. See walk.h. */
#include "walk.h"

/* A descriptor table: the ring's, or an indirect one. */
struct table {
	const struct desc *host; /* NULL: not in one aligned stretch of host memory, use addr */
	uint64_t addr;
	uint32_t count;
};

/* The private copy of a descriptor. */
struct copy {
	uint64_t addr, rest;
};

static int32_t bad(struct walk *w, enum vqb_rule rule, uint32_t index, uint64_t addr)
{
	w->reason = (struct vqb_reason){ .rule = rule, .index = index, .addr = addr };
	return VQB_E_BAD_CHAIN;
}

static int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* Resolves one buffer that is not empty and does not wrap. */
static int32_t add_pieces(struct walk *w, uint32_t index, uint64_t addr, uint32_t len,
			  uint32_t access)
{
	uint64_t avail;

	while (len) {
		void *host = map_find(w->map, addr, access, &avail);
		uint32_t n = avail < len ? (uint32_t)avail : len;

		if (VQB_UNLIKELY(!host))
			return fault(w, addr, access);
		if (VQB_UNLIKELY(w->pieces == w->rules->max_pieces))
			return bad(w, VQB_RULE_PIECES, index, addr);
		if (VQB_LIKELY(w->pieces < w->room))
			w->piece[w->pieces] = (struct vqb_piece){ .base = host, .len = n };
		w->pieces++;
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

static int32_t add_buffer(struct walk *w, uint32_t index, const struct copy *d)
{
	uint32_t len = desc_len(d->rest);
	bool write = desc_flags(d->rest) & DESC_WRITE;
	int32_t status = VQB_OK;

	if (VQB_UNLIKELY(w->writes && !write))
		return bad(w, VQB_RULE_ORDER, index, d->addr);
	w->writes = write;
	/* An empty one has its place in the order, and nothing else: its address is not looked at. */
	if (VQB_LIKELY(len)) {
		if (VQB_UNLIKELY(range_wraps(d->addr, len)))
			return bad(w, VQB_RULE_RANGE, index, d->addr);
		w->bytes += len;
		if (VQB_UNLIKELY(w->bytes > UINT64_C(1) << 32))
			return bad(w, VQB_RULE_BYTES, index, d->addr);
		status = add_pieces(w, index, d->addr, len, write ? VQB_WRITE : VQB_READ);
	}
	if (!write) {
		w->readable = w->pieces;
		w->read_bytes = w->bytes;
	}
	return status;
}

/* Fetches descriptor `index` once. Only a table that was found to be mapped comes here. */
static bool fetch(struct walk *w, const struct table *table, uint32_t index, struct copy *copy)
{
	struct desc raw;

	if (VQB_LIKELY(table->host)) {
		copy->addr = load_le64(&table->host[index].addr);
		copy->rest = load_le64(&table->host[index].rest);
		return true;
	}
	if (!map_read(w->map, table->addr + sizeof(raw) * (uint64_t)index, &raw, sizeof(raw)))
		return false;
	copy->addr = vqb_from_le64(raw.addr);
	copy->rest = vqb_from_le64(raw.rest);
	return true;
}

/*
 * Follows `table` from entry `at` to the end of the chain. VQB_E_AGAIN: up to a descriptor that
 * refers to another table, left in *referrer with its index in w->reason.
 */
static int32_t walk_table(struct walk *w, const struct table *table, uint32_t at,
			  struct copy *referrer)
{
	uint32_t left = w->rules->limit - w->visited;
	struct copy d;
	int32_t status;

	/* No longer than the table either, whatever the limit: what is longer goes round (K01). */
	left = left < table->count ? left : table->count;
	for (;;) {
		if (VQB_UNLIKELY(!fetch(w, table, at, &d)))
			return fault(w, table->addr, VQB_READ);
		if (VQB_UNLIKELY(desc_flags(d.rest) & DESC_INDIRECT)) {
			*referrer = d;
			w->reason.index = at;
			return VQB_E_AGAIN;
		}
		if (VQB_UNLIKELY(!left--))
			return bad(w, VQB_RULE_LOOP, at, d.addr);
		w->visited++;
		status = add_buffer(w, at, &d);
		if (VQB_UNLIKELY(status))
			return status;
		if (!(desc_flags(d.rest) & DESC_NEXT))
			return VQB_OK;
		if (VQB_UNLIKELY(desc_next(d.rest) >= table->count))
			return bad(w, VQB_RULE_NEXT, at, d.addr);
		at = desc_next(d.rest);
	}
}

/*
 * Checks the descriptor `d`, number `index` of the ring, that refers to a table, and opens the
 * table: all of it must be mapped, whether it is used or not (K14). WRITE means nothing here.
 */
static int32_t open_table(struct walk *w, uint32_t index, const struct copy *d, struct table *table)
{
	uint32_t len = desc_len(d->rest);
	uint64_t addr = d->addr;

	if (!w->rules->indirect)
		return bad(w, VQB_RULE_INDIRECT, index, addr);
	if (desc_flags(d->rest) & DESC_NEXT)
		return bad(w, VQB_RULE_BOTH, index, addr);
	if (!len || len % sizeof(struct desc) || len / sizeof(struct desc) > w->rules->limit)
		return bad(w, VQB_RULE_TABLE, index, addr);
	if (range_wraps(addr, len))
		return bad(w, VQB_RULE_RANGE, index, addr);
	table->host = map_stretch(w->map, addr, len, VQB_READ);
	table->addr = addr;
	table->count = len / (uint32_t)sizeof(struct desc);
	if (table->host && (uintptr_t)table->host % sizeof(uint64_t) == 0)
		return VQB_OK;
	table->host = NULL;
	if (!map_covers(w->map, &addr, len, VQB_READ))
		return fault(w, addr, VQB_READ);
	return VQB_OK;
}

int32_t walk_chain(struct walk *w, uint32_t head)
{
	struct table table = { .host = w->rules->desc, .count = w->rules->size };
	struct copy referrer;
	int32_t status = walk_table(w, &table, head, &referrer);

	if (VQB_UNLIKELY(status == VQB_E_AGAIN)) {
		status = open_table(w, w->reason.index, &referrer, &table);
		if (status)
			return status;
		w->table = true;
		status = walk_table(w, &table, 0, &referrer);
		if (status == VQB_E_AGAIN)
			return bad(w, VQB_RULE_NESTED, w->reason.index, referrer.addr);
	}
	if (VQB_UNLIKELY(!status && w->pieces > w->room)) {
		w->need = (struct vqb_need){ .pieces = w->pieces };
		return VQB_E_NOSPC;
	}
	return status;
}
