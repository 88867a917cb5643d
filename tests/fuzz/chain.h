/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain.h: what has to come out of a chain, found in the plainest way, one descriptor and one
 * piece after the other, for the device to be compared with.
 */
#ifndef TESTS_FUZZ_CHAIN_H
#define TESTS_FUZZ_CHAIN_H

#include "guest.h"

enum { CHAIN_PIECES = 256 }; /* that are kept; no take in the fuzzer has more room */

struct chain_rules {
	const uint8_t *desc; /* the ring's table */
	uint32_t size, limit, max_pieces;
	bool indirect;
};

struct chain {
	uint32_t room;
	/* what comes out */
	int32_t status; /* VQB_OK, VQB_E_BAD_CHAIN, VQB_E_NOSPC or VQB_E_FAULT */
	uint32_t pieces, readable;
	uint64_t bytes, read_bytes;
	bool over; /* more than 2^32 bytes: a bad chain, or one that a fault ended before */
	uint64_t fault_addr;
	uint32_t fault_access;
	struct vqb_piece piece[CHAIN_PIECES];
	/* where the walk is */
	uint64_t table; /* the indirect one; */
	bool in_table;  /* until then the ring's */
	uint32_t count, left, visited;
};

static inline int32_t chain_fault(struct chain *c, uint64_t addr, uint32_t access)
{
	c->fault_addr = addr;
	c->fault_access = access;
	return VQB_E_FAULT;
}

static inline int32_t chain_buffer(struct chain *c, const struct chain_rules *rules,
				   struct guest *g, uint64_t addr, uint32_t len, uint32_t access)
{
	if (len && len - 1 > ~addr)
		return VQB_E_BAD_CHAIN;
	c->bytes += len;
	c->over |= c->bytes > UINT64_C(1) << 32;
	while (len) {
		struct guest_place place = guest_find(g, addr, access);
		uint32_t n = place.avail < len ? (uint32_t)place.avail : len;

		if (!n)
			return chain_fault(c, addr, access);
		if (c->pieces == rules->max_pieces)
			return VQB_E_BAD_CHAIN;
		if (c->pieces < CHAIN_PIECES)
			c->piece[c->pieces] = (struct vqb_piece){ place.host, n };
		c->pieces++;
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

static inline int32_t chain_table(struct chain *c, const struct chain_rules *rules, struct guest *g,
				  const uint8_t *desc)
{
	uint64_t addr = raw_desc_addr(desc, 0);
	uint32_t len = raw_desc_len(desc, 0), direct = c->visited;

	if (c->in_table || !rules->indirect || raw_desc_flags(desc, 0) & RAW_NEXT || !len ||
	    len % 16 || len / 16 > rules->limit || len - 1 > ~addr)
		return VQB_E_BAD_CHAIN;
	c->in_table = true;
	c->table = addr;
	c->count = len / 16;
	c->left = rules->limit - direct < c->count ? rules->limit - direct : c->count;
	while (len) {
		struct guest_place place = guest_find(g, addr, VQB_READ);
		uint32_t n = place.avail < len ? (uint32_t)place.avail : len;

		if (!n)
			return chain_fault(c, addr, VQB_READ);
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

static inline void chain_fetch(const struct chain *c, const struct chain_rules *rules,
			       struct guest *g, uint32_t at, uint8_t *desc)
{
	if (!c->in_table) {
		memcpy(desc, rules->desc + 16 * (size_t)at, 16);
		return;
	}
	for (uint32_t i = 0; i < 16; i++)
		desc[i] = *guest_find(g, c->table + 16 * (uint64_t)at + i, VQB_READ).host;
}

static inline int32_t chain_follow(struct chain *c, const struct chain_rules *rules,
				   struct guest *g, uint32_t at)
{
	bool writes = false;
	uint8_t desc[16];
	unsigned flags;
	int32_t status;

	for (;;) {
		chain_fetch(c, rules, g, at, desc);
		flags = raw_desc_flags(desc, 0);
		if (flags & RAW_INDIRECT) {
			status = chain_table(c, rules, g, desc);
			if (status)
				return status;
			at = 0;
			continue;
		}
		if ((writes && !(flags & RAW_WRITE)) || !c->left)
			return VQB_E_BAD_CHAIN;
		writes = flags & RAW_WRITE;
		c->left--;
		c->visited++;
		status = chain_buffer(c, rules, g, raw_desc_addr(desc, 0), raw_desc_len(desc, 0),
				      writes ? VQB_WRITE : VQB_READ);
		if (status)
			return status;
		if (!writes) {
			c->readable = c->pieces;
			c->read_bytes = c->bytes;
		}
		if (!(flags & RAW_NEXT))
			break;
		at = raw_desc_next(desc, 0);
		if (at >= c->count)
			return VQB_E_BAD_CHAIN;
	}
	if (c->over)
		return VQB_E_BAD_CHAIN;
	return c->pieces > c->room ? VQB_E_NOSPC : VQB_OK;
}

/* Walks the chain at `head`, for a caller that has room for so many pieces. */
static inline void chain_walk(struct chain *c, const struct chain_rules *rules, struct guest *g,
			      uint32_t head, uint32_t room)
{
	memset(c, 0, offsetof(struct chain, piece));
	c->table = 0;
	c->in_table = false;
	c->visited = 0;
	c->room = room;
	c->count = rules->size;
	c->left = rules->limit < rules->size ? rules->limit : rules->size;
	c->status = chain_follow(c, rules, g, head);
}

#endif
