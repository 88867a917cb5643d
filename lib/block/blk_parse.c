/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_parse.c: finds header, data and status in the pieces of a chain.
 *
 * The chain's totals say at once whether header and status are there; after that the pieces are
 * only trimmed, at the front of the readable ones and at the end of the writable ones.
 */
#include <vqblk/blk_parse.h>

/* Copies from guest memory, each byte fetched once. */
static void fetch(uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = vqb_port_load8(from + i);
}

/* (An empty piece need not lie anywhere.) */
static void trim_front(struct vqb_piece *piece, size_t bytes)
{
	if (!bytes)
		return;
	piece->base = (uint8_t *)piece->base + bytes;
	piece->len -= bytes;
}

/* The header in one aligned stretch, as it nearly always is: two loads. */
static void fetch_whole(struct vqb_blk_header *header, struct vqb_piece *piece)
{
	const uint8_t *from = piece->base;
	uint64_t half[2];

	half[0] = vqb_port_load64(from);
	half[1] = vqb_port_load64(from + 8);
	memcpy(header, half, sizeof(half));
	trim_front(piece, VQB_BLK_HEADER_BYTES);
}

/* The header from as many pieces as it lies in. Answers how many have been used up. */
static uint32_t fetch_cut(struct vqb_blk_header *header, struct vqb_piece *piece, uint32_t pieces)
{
	uint8_t raw[VQB_BLK_HEADER_BYTES] = { 0 };
	uint32_t have = 0, i = 0;

	while (have < sizeof(raw) && i < pieces) {
		size_t n = sizeof(raw) - have;

		if (n > piece[i].len)
			n = piece[i].len;
		fetch(raw + have, piece[i].base, n);
		trim_front(&piece[i], n);
		have += (uint32_t)n;
		i += !piece[i].len;
	}
	memcpy(header, raw, sizeof(raw));
	return i;
}

static uint32_t fetch_header(struct vqb_blk_header *header, struct vqb_piece *piece,
			     uint32_t pieces)
{
	if (VQB_UNLIKELY(piece->len < VQB_BLK_HEADER_BYTES || (uintptr_t)piece->base % 8))
		return fetch_cut(header, piece, pieces);
	fetch_whole(header, piece);
	return !piece->len;
}

int32_t vqb_blk_parse(const struct vqb_chain *chain, struct vqb_blk_request *out)
{
	struct vqb_blk_header header;
	struct vqb_piece *last;
	uint32_t used;

	if (chain->status || chain->read_bytes < VQB_BLK_HEADER_BYTES || !chain->write_bytes)
		return VQB_E_BAD_CHAIN;

	used = fetch_header(&header, chain->piece, chain->readable);
	out->type = vqb_from_le32(header.type);
	out->sector = vqb_from_le64(header.sector);
	out->out = chain->piece + used;
	out->out_bytes = chain->read_bytes - VQB_BLK_HEADER_BYTES;
	out->outs = out->out_bytes ? chain->readable - used : 0;

	out->in = chain->piece + chain->readable;
	last = out->in + chain->writable - 1;
	while (!last->len && last > out->in)
		last--;
	last->len--;
	out->status = (uint8_t *)last->base + last->len;
	out->in_bytes = chain->write_bytes - 1;
	out->ins = out->in_bytes ? (uint32_t)(last - out->in) + !!last->len : 0;
	out->zero = 0;
	return VQB_OK;
}
