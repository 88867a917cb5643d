/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty.c: from a host address back to a guest one, and on to the log. See dirty.h. */
#include "dirty.h"

#include "map.h"

/* Is `host` in it? Distances, not pointers, are compared: the two need not be of one object. */
static bool dirty_has(const struct dirty *d, const void *host)
{
	return (uintptr_t)host - (uintptr_t)d->host < d->len;
}

static bool dirty_try(struct dirty *d, const struct vqb_extent *e, const void *host)
{
	d->addr = e->addr;
	d->len = e->access & VQB_WRITE ? e->len : 0;
	d->host = e->host;
	return dirty_has(d, host);
}

static bool dirty_find(struct dirty *d, const struct vqb_memory *memory, const void *host)
{
	struct vqb_extent asked = { 0 };

	for (uint32_t i = 0; i < memory->count; i++)
		if (dirty_try(d, &memory->sorted[i], host))
			return true;
	return memory->locate && !memory->locate(memory->context, host, &asked) &&
	       vqb__map_extent_valid(&asked) && dirty_try(d, &asked, host);
}

void vqb__dirty_mark(struct dirty *d, const struct vqb_memory *memory, const void *host,
		     uint64_t len)
{
	const char *at = host;

	while (len) {
		uint64_t offset, n;

		if (!dirty_has(d, at) && !dirty_find(d, memory, at)) {
			d->len = 0;
			memory->log(memory->context, 0, UINT64_MAX);
			return;
		}
		offset = (uintptr_t)at - (uintptr_t)d->host;
		n = d->len - offset < len ? d->len - offset : len;
		memory->log(memory->context, d->addr + offset, n);
		at += (size_t)n;
		len -= n;
	}
}

void vqb__dirty_mark_pieces(struct dirty *d, const struct vqb_memory *memory,
			    const struct vqb_piece *piece, uint32_t pieces, uint64_t bytes)
{
	for (; bytes && pieces; pieces--, piece++) {
		uint64_t n = piece->len < bytes ? piece->len : bytes;

		vqb__dirty_mark(d, memory, piece->base, n);
		bytes -= n;
	}
}
