/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_range.c: DISCARD, WRITE_ZEROES and SECURE_ERASE.
 *
 * Their ranges are copied out of guest memory once, and nothing is looked at but the copy. It lies
 * in the arena, behind the pieces of the request, which are of no use from then on. All ranges are
 * checked before the first is carried out. The request's one io then steps through them.
 */
#include "blk_queue.h"

_Static_assert(sizeof(struct blk_range) == VQB_BLK_RANGE_BYTES, "range");
_Static_assert(_Alignof(struct blk_range) <= sizeof(struct vqb_piece), "ranges lie among pieces");

/* What one type allows. */
struct rules {
	uint32_t feature, sectors, ranges, flags;
};

static struct rules rules_of(const struct vqb_blk_queue *queue, uint32_t type)
{
	const struct vqb_blk_limits *limits = &queue->device->limits;
	struct rules rules = { VQB_BLK_F_DISCARD, limits->discard_sectors, limits->discard_ranges,
			       0 };

	if (type == VQB_BLK_WRITE_ZEROES) {
		rules.feature = VQB_BLK_F_WRITE_ZEROES;
		rules.sectors = limits->zeroes_sectors;
		rules.ranges = limits->zeroes_ranges;
		rules.flags = VQB_BLK_RANGE_UNMAP;
	} else if (type == VQB_BLK_SECURE_ERASE) {
		rules.feature = VQB_BLK_F_SECURE_ERASE;
		rules.sectors = limits->erase_sectors;
		rules.ranges = limits->erase_ranges;
	}
	return rules;
}

/* ---- room ---- */

/* Where the pieces end of the chains of the batch from number `i` on, which has some. */
static uint32_t pieces_end(const struct vqb_blk_queue *queue, uint32_t i)
{
	uint32_t k = queue->taken - 1;

	while (k > i && queue->chain[k].status) /* a bad chain has none, anywhere */
		k--;
	return blk_begin(queue, &queue->chain[k]) + blk_own_pieces(&queue->chain[k]);
}

/* The newest chain of the batch goes back to the ring, and is taken again later. */
static void give_back(struct vqb_blk_queue *queue)
{
	vqb_device_untake(queue->ring, queue->chain[--queue->taken].ticket);
}

/* Moves the pieces in [begin, end), which belong to chains behind number `i`, up by `units`. */
static void move_up(struct vqb_blk_queue *queue, uint32_t i, uint32_t begin, uint32_t end,
		    uint32_t units)
{
	struct vqb_piece *from = queue->piece + begin;

	memmove(from + units, from, (end - begin) * sizeof(*from));
	while (++i < queue->taken) {
		if (!queue->chain[i].status)
			queue->chain[i].piece += units;
	}
}

/*
 * Makes room for `units` pieces right behind those of chain number `i`. The chains behind it, which
 * nobody has looked at yet, move up; those that no longer fit go back to the ring. Answers where,
 * which is never at 0, since this chain has pieces; or 0: there is no such room now, and this chain
 * has gone back as well, to be taken when there is.
 */
static uint32_t make_room(struct vqb_blk_queue *queue, uint32_t i, uint32_t units)
{
	uint32_t own = blk_own_pieces(&queue->chain[i]);
	uint32_t begin = blk_begin(queue, &queue->chain[i]) + own, end = pieces_end(queue, i);

	while (queue->gap_end - end < units && queue->taken > i + 1) {
		give_back(queue);
		end = pieces_end(queue, i);
	}
	if (queue->gap_end - end < units) {
		give_back(queue);
		queue->want = own + units;
		return 0;
	}
	move_up(queue, i, begin, end, units);
	return begin;
}

/* ---- the copy, and what is wrong with it ---- */

/* Each byte is fetched once. The pieces hold as much. */
static void fetch(uint8_t *to, const struct vqb_piece *piece, size_t bytes)
{
	size_t i, n;

	for (; bytes; bytes -= n, piece++) {
		n = piece->len < bytes ? piece->len : bytes;
		for (i = 0; i < n; i++)
			*to++ = vqb_port_load8((const uint8_t *)piece->base + i);
	}
}

static void fetch_ranges(struct blk_range *range, uint32_t ranges,
			 const struct vqb_blk_request *from)
{
	struct vqb_blk_range wire;
	uint32_t i;

	fetch((uint8_t *)range, from->out, ranges * sizeof(*range));
	for (i = 0; i < ranges; i++) {
		memcpy(&wire, &range[i], sizeof(wire));
		range[i].sector = vqb_from_le64(wire.sector);
		range[i].sectors = vqb_from_le32(wire.sectors);
		range[i].flags = vqb_from_le32(wire.flags);
	}
}

/* A flag that isn't known counts for more than what else is wrong, in whichever range it is. */
static uint8_t check_ranges(struct vqb_blk_queue *queue, const struct rules *rules,
			    const struct blk_range *range, uint32_t ranges)
{
	uint64_t capacity = blk_capacity(queue);
	uint8_t code = VQB_BLK_S_OK;
	uint32_t i;

	if (blk_device_offers(queue->device, VQB_BLK_F_RO))
		code = VQB_BLK_S_IOERR;
	for (i = 0; i < ranges; i++) {
		uint64_t bytes = (uint64_t)range[i].sectors << VQB_SECTOR_SHIFT;

		if (range[i].flags & ~rules->flags)
			return VQB_BLK_S_UNSUPP;
		if (range[i].sectors > rules->sectors ||
		    vqb_blk_check(capacity, queue->device->block_size, range[i].sector, bytes))
			code = VQB_BLK_S_IOERR;
	}
	return code;
}

/* What can be said before a range was seen. */
static uint8_t check_request(const struct vqb_blk_queue *queue, const struct rules *rules,
			     const struct vqb_blk_request *from)
{
	uint64_t ranges = from->out_bytes / VQB_BLK_RANGE_BYTES;

	if (!blk_accepted(queue, rules->feature))
		return VQB_BLK_S_UNSUPP;
	if (from->in_bytes || from->out_bytes % VQB_BLK_RANGE_BYTES || !ranges ||
	    ranges > rules->ranges)
		return VQB_BLK_S_IOERR;
	return VQB_BLK_S_OK;
}

/* ---- carrying out ---- */

static uint8_t range_flags(const struct vqb_blk_queue *queue, const struct blk_range *range)
{
	if (range->flags & VQB_BLK_RANGE_UNMAP && queue->backend->caps.can & VQB_CAN_UNMAP)
		return VQB_IO_UNMAP;
	return 0;
}

int vqb__blk_next_step(struct vqb_blk_queue *queue, struct blk_request *request)
{
	struct vqb_io *io = &request->io;

	for (; request->ranges; request->range++, request->ranges--) {
		const struct blk_range *range = request->range;
		uint64_t bytes = (uint64_t)range->sectors << VQB_SECTOR_SHIFT;

		if (!bytes)
			continue;
		io->offset = range->sector << VQB_SECTOR_SHIFT;
		io->bytes = bytes < queue->max_range ? bytes : queue->max_range;
		io->flags = range_flags(queue, range);
		return 1;
	}
	if (!request->sync)
		return 0;
	request->sync = 0;
	io->op = VQB_BLK_FLUSH;
	io->flags = 0;
	io->offset = io->bytes = 0;
	return 1;
}

int vqb__blk_ranges_blocked(const struct vqb_blk_queue *queue, const struct blk_request *request)
{
	uint32_t i;

	for (i = 0; i < request->ranges; i++) {
		const struct blk_range *range = &request->range[i];

		if (range->sectors &&
		    vqb_coalescer_overlaps(queue->coalescer, range->sector << VQB_SECTOR_SHIFT,
					   (uint64_t)range->sectors << VQB_SECTOR_SHIFT))
			return 1;
	}
	return 0;
}

void vqb__blk_step_done(struct blk_request *request)
{
	struct blk_range *range = request->range;
	uint64_t end = (request->io.offset + request->io.bytes) >> VQB_SECTOR_SHIFT;

	if (request->io.op == VQB_BLK_FLUSH)
		return;
	range->sectors -= (uint32_t)(end - range->sector);
	range->sector = end;
}

/* Nobody misses a discard that is lost with the power. */
static int has_to_last(const struct vqb_blk_queue *queue, uint32_t type)
{
	return type != VQB_BLK_DISCARD && blk_writes_through(queue);
}

/* 0: there is nothing to do. */
static int start(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
		 const struct vqb_blk_request *from, uint32_t at, uint32_t ranges)
{
	uint32_t units = (uint32_t)VQB_BLK_RANGE_PIECES(ranges);
	struct blk_range *range = (void *)(queue->piece + at);
	struct blk_request *request;

	while (ranges && !range->sectors) {
		range++;
		ranges--;
	}
	if (!ranges)
		return 0;
	request = blk_begin_request(queue, chain, from, at, at + units);
	request->ranged = 1;
	request->sync = (uint8_t)has_to_last(queue, from->type);
	request->range = range;
	request->ranges = ranges;
	vqb__blk_next_step(queue, request);
	vqb__blk_submit(queue, &request->io);
	return 1;
}

enum outcome {
	ANSWER,     /* with *code: nothing is to be done, or it is wrong */
	UNDER_WAY,  /* the request has begun */
	GIVEN_BACK, /* there is no room now */
};

/* The ranges of a request that is fine as far as it was seen. */
static enum outcome take_ranges(struct vqb_blk_queue *queue, uint32_t i,
				const struct vqb_blk_request *from, const struct rules *rules,
				uint8_t *code)
{
	const struct vqb_chain *chain = &queue->chain[i];
	uint32_t ranges = (uint32_t)(from->out_bytes / VQB_BLK_RANGE_BYTES), at;
	uint32_t units = (uint32_t)VQB_BLK_RANGE_PIECES(ranges);
	struct blk_range *range;

	/* So oddly is it cut that there never will be room. */
	if (units > queue->arena.size - blk_own_pieces(chain)) {
		*code = VQB_BLK_S_IOERR;
		return ANSWER;
	}
	at = make_room(queue, i, units);
	if (!at)
		return GIVEN_BACK;
	range = (void *)(queue->piece + at);
	fetch_ranges(range, ranges, from);
	*code = check_ranges(queue, rules, range, ranges);
	if (*code == VQB_BLK_S_OK && start(queue, chain, from, at, ranges))
		return UNDER_WAY;
	return ANSWER;
}

int vqb__blk_admit_ranges(struct vqb_blk_queue *queue, uint32_t i,
			  const struct vqb_blk_request *from)
{
	struct rules rules = rules_of(queue, from->type);
	uint8_t code = check_request(queue, &rules, from);
	enum outcome outcome = ANSWER;

	if (code == VQB_BLK_S_OK)
		outcome = take_ranges(queue, i, from, &rules, &code);
	if (outcome == ANSWER)
		blk_answer(queue, queue->chain[i].ticket, from->status, code, from->in_bytes, 0);
	return outcome != GIVEN_BACK;
}
