/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty.c: from a host address back to a guest one, and on to the log. See dirty.h. */
#include "dirty.h"

#include "map.h"

void dirty_init(struct dirty *d, const struct vqb_memory *memory)
{
	memset(d, 0, sizeof(*d));
	d->memory = memory->log ? memory : NULL;
}

/* Distances, not pointers, are compared: the two need not be of one object. */
static bool has_host(const struct vqb_extent *e, const void *host)
{
	return (uintptr_t)host - (uintptr_t)e->host < e->len && e->access & VQB_WRITE;
}

static bool locate(const struct vqb_memory *memory, const void *host, struct vqb_extent *out)
{
	for (uint32_t i = 0; i < memory->count; i++) {
		*out = memory->sorted[i];
		if (has_host(out, host))
			return true;
	}
	return memory->locate && !memory->locate(memory->context, host, out) &&
	       map_extent_valid(out) && has_host(out, host);
}

void dirty_mark(struct dirty *d, const void *host, uint64_t len)
{
	const struct vqb_memory *memory = d->memory;
	const char *at = host;

	while (len) {
		uint64_t offset, n;

		if (!has_host(&d->last, at) && !locate(memory, at, &d->last)) {
			d->last.len = 0;
			memory->log(memory->context, 0, UINT64_MAX);
			return;
		}
		offset = (uintptr_t)at - (uintptr_t)d->last.host;
		n = d->last.len - offset < len ? d->last.len - offset : len;
		memory->log(memory->context, d->last.addr + offset, n);
		at += (size_t)n;
		len -= n;
	}
}

void dirty_mark_pieces(struct dirty *d, const struct vqb_piece *piece, uint32_t pieces,
		       uint64_t bytes)
{
	for (; bytes && pieces; pieces--, piece++) {
		uint64_t n = piece->len < bytes ? piece->len : bytes;

		dirty_mark(d, piece->base, n);
		bytes -= n;
	}
}
