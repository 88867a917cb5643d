/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.c: limits of requests, and the walk that maps vectors under them.
 *
 * The walk has one open segment: all before it in the table is final, and it may still grow up to
 * an address that was fixed when it was opened. A vector that begins where the last one ended makes
 * it longer; any other opens the next. Longest first is also fewest: what a segment could reach
 * from further back, it reaches from here.
 *
 * take_plain has the vectors that just grow or open a segment, and leaves every other as it was to
 * take_vector, which knows all the rules.
 */
#include "segment.h"

/* ---- limits ---- */

void vqb_limits_init(struct vqb_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	limits->struct_size = sizeof(*limits);
	limits->max_segments = UINT32_MAX;
	limits->max_segment_bytes = UINT32_MAX;
	limits->seg_boundary = UINT64_MAX;
	limits->max_sectors = VQB_MAX_SECTORS;
	limits->block_size = VQB_SECTOR_BYTES;
	limits->split_align = VQB_SECTOR_BYTES;
}

static int is_power(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* A power of two less one, all ones and 0 included. */
static int is_mask(uint64_t v)
{
	return !(v & (v + 1));
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint64_t sector_bytes(uint32_t sectors)
{
	return (uint64_t)sectors << VQB_SECTOR_SHIFT;
}

static int form_is_good(const struct vqb_limits *l)
{
	return l->struct_size == sizeof(*l) && !(l->flags & ~(uint32_t)VQB_LIMITS_NO_CLUSTER) &&
	       !l->zero && !(l->discard.zero | l->zeroes.zero | l->erase.zero);
}

static int split_is_good(const struct vqb_limits *l)
{
	return is_power(l->split_align) && l->split_align >= l->block_size &&
	       l->split_offset < l->split_align && !(l->split_offset & (l->block_size - 1));
}

static int virt_is_good(const struct vqb_limits *l)
{
	return !l->virt_boundary ||
	       (l->max_segment_bytes > l->virt_boundary && l->seg_boundary >= l->virt_boundary);
}

/* Segments of a block that lies at a multiple of its size: those of each part, which end alike. */
static int block_gets_through(const struct vqb_limits *l)
{
	uint32_t part = l->block_size, each = l->max_segment_bytes;

	if (l->seg_boundary < part)
		part = (uint32_t)l->seg_boundary + 1;
	if (each < part)
		each &= ~(uint32_t)l->virt_boundary;
	else
		each = part;
	return (uint64_t)(l->block_size / part) * ((part - 1) / each + 1) <= l->max_segments;
}

static int ranges_are_good(const struct vqb_range_limits *r, uint32_t block_size)
{
	if (!r->max_sectors || !r->max_ranges)
		return !r->max_sectors && !r->max_ranges;
	return sector_bytes(r->max_sectors) >= block_size;
}

static uint32_t broken_rule(const struct vqb_limits *l)
{
	if (!form_is_good(l))
		return VQB_LIMITS_FORM;
	if (!is_power(l->block_size) || l->block_size < VQB_SECTOR_BYTES)
		return VQB_LIMITS_BLOCK;
	if (!split_is_good(l))
		return VQB_LIMITS_SPLIT;
	if (l->max_sectors > VQB_MAX_SECTORS || sector_bytes(l->max_sectors) < l->block_size)
		return VQB_LIMITS_SECTORS;
	if (sector_bytes(l->chunk_sectors) & (l->block_size - 1))
		return VQB_LIMITS_CHUNK;
	if (!l->max_segments || !l->max_segment_bytes)
		return VQB_LIMITS_SEGMENT;
	if (!is_mask(l->seg_boundary) || !is_mask(l->virt_boundary))
		return VQB_LIMITS_MASK;
	if (!virt_is_good(l))
		return VQB_LIMITS_VIRT;
	if (!block_gets_through(l))
		return VQB_LIMITS_PROGRESS;
	if (!ranges_are_good(&l->discard, l->block_size))
		return VQB_LIMITS_DISCARD;
	if (!ranges_are_good(&l->zeroes, l->block_size))
		return VQB_LIMITS_ZEROES;
	return ranges_are_good(&l->erase, l->block_size) ? VQB_LIMITS_FINE : VQB_LIMITS_ERASE;
}

int32_t vqb_limits_check(const struct vqb_limits *limits, uint32_t *rule)
{
	uint32_t broken = limits ? broken_rule(limits) : VQB_LIMITS_FORM;

	if (rule)
		*rule = broken;
	return broken == VQB_LIMITS_FINE ? VQB_OK : VQB_E_INVALID;
}

/* ---- limits of virtio-blk ---- */

/* What a driver takes for granted: one range, and no limit to it but the block. */
static struct vqb_range_limits ranges_of(uint64_t there, uint32_t sectors, uint32_t ranges,
					 uint32_t alignment, uint32_t block_size)
{
	struct vqb_range_limits r = { 0 };

	if (!there)
		return r;
	r.max_sectors = sectors ? sectors : UINT32_MAX;
	r.max_sectors &= ~((block_size >> VQB_SECTOR_SHIFT) - 1);
	r.max_ranges = ranges ? ranges : 1;
	r.alignment = alignment;
	if (!r.max_sectors) /* less than a block: none can be sent */
		r.max_ranges = 0;
	return r;
}

int32_t vqb_limits_of_blk(const struct vqb_blk_limits *blk, uint64_t features, uint32_t ring_size,
			  struct vqb_limits *out)
{
	uint32_t fit = vqb_blk_ring_segments(ring_size ? ring_size : VQB_RING_MAX);
	uint32_t block;
	uint64_t split;

	if (!blk || blk->struct_size != sizeof(*blk) || !out)
		return VQB_E_INVALID;
	if (!fit)
		return VQB_E_TOOBIG;
	block = blk->block_size ? blk->block_size : VQB_SECTOR_BYTES;
	if (!is_power(block) || block < VQB_SECTOR_BYTES || blk->physical_exp > 31)
		return VQB_E_INVALID;
	split = (uint64_t)block << blk->physical_exp;
	if (split > UINT32_MAX)
		return VQB_E_INVALID;

	vqb_limits_init(out);
	out->block_size = block;
	out->split_align = (uint32_t)split;
	out->split_offset = (block * blk->alignment_offset) & (out->split_align - 1);
	out->max_sectors &= ~((block >> VQB_SECTOR_SHIFT) - 1);
	out->max_segments = least(blk->segments ? blk->segments : 1, fit);
	out->max_segment_bytes = blk->segment_bytes ? blk->segment_bytes : UINT32_MAX;
	out->discard = ranges_of(features & VQB_FEATURE(VQB_BLK_F_DISCARD), blk->discard_sectors,
				 blk->discard_ranges, blk->discard_alignment, block);
	out->zeroes = ranges_of(features & VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES), blk->zeroes_sectors,
				blk->zeroes_ranges, 0, block);
	out->erase = ranges_of(features & VQB_FEATURE(VQB_BLK_F_SECURE_ERASE), blk->erase_sectors,
			       blk->erase_ranges, blk->erase_alignment, block);
	return VQB_OK;
}

/* Sectors of `bytes`, in whole blocks, as far as they can be said in 32 bits. */
static uint32_t whole_sectors(uint64_t bytes, uint32_t block_size)
{
	uint64_t sectors = bytes >> VQB_SECTOR_SHIFT;

	if (sectors > UINT32_MAX)
		sectors = UINT32_MAX;
	return (uint32_t)sectors & ~((block_size >> VQB_SECTOR_SHIFT) - 1);
}

static uint32_t aligned_sectors(uint32_t alignment, uint32_t block_size)
{
	uint64_t up = ((uint64_t)alignment + block_size - 1) & ~((uint64_t)block_size - 1);

	return (uint32_t)(up >> VQB_SECTOR_SHIFT);
}

/* Segments and their length, so that the longest request is within `transfer` bytes. */
static int32_t announce_segments(struct vqb_blk_limits *out, uint64_t transfer, uint32_t most)
{
	uint32_t block = out->block_size, floor = block < 4096 ? 4096 : block;
	uint32_t whole = (uint32_t)transfer & ~(block - 1);

	out->segments = most;
	if (transfer > sector_bytes(VQB_MAX_SECTORS))
		return VQB_OK; /* more than any chain carries */
	if (!whole)
		return VQB_E_TOOBIG;
	floor = least(floor, whole);
	out->segments = least(most, whole / floor);
	out->segment_bytes = whole / out->segments & ~(block - 1);
	return VQB_OK;
}

static void announce_ranges(struct vqb_blk_limits *out, const struct vqb_backend_caps *caps,
			    uint32_t ranges)
{
	uint32_t sectors = whole_sectors(caps->max_range, out->block_size);

	if (!sectors)
		return;
	if (caps->can & VQB_CAN_DISCARD) {
		out->discard_sectors = sectors;
		out->discard_ranges = ranges;
		out->discard_alignment = aligned_sectors(caps->discard_alignment, out->block_size);
	}
	if (caps->can & VQB_CAN_WRITE_ZEROES) {
		out->zeroes_sectors = sectors;
		out->zeroes_ranges = ranges;
		out->zeroes_may_unmap = !!(caps->can & VQB_CAN_UNMAP);
	}
	if (caps->can & VQB_CAN_SECURE_ERASE) {
		out->erase_sectors = sectors;
		out->erase_ranges = ranges;
		out->erase_alignment = aligned_sectors(caps->erase_alignment, out->block_size);
	}
}

int32_t vqb_blk_limits_announce(const struct vqb_backend_caps *caps,
				const struct vqb_blk_shape *shape, struct vqb_blk_limits *out)
{
	uint32_t block, most;

	if (!caps || !shape || shape->struct_size != sizeof(*shape) || shape->zero || !out ||
	    shape->queues > UINT16_MAX)
		return VQB_E_INVALID;
	block = shape->block_size ? shape->block_size : VQB_SECTOR_BYTES;
	if (!is_power(block) || block < VQB_SECTOR_BYTES || caps->alignment > block)
		return VQB_E_INVALID;
	most = least(vqb_blk_ring_segments(shape->ring_size), caps->max_pieces);
	if (!most)
		return VQB_E_TOOBIG;
	memset(out, 0, sizeof(*out));
	out->struct_size = sizeof(*out);
	out->block_size = block;
	out->capacity = (caps->bytes & ~((uint64_t)block - 1)) >> VQB_SECTOR_SHIFT;
	out->queues = shape->queues ? shape->queues : 1;
	announce_ranges(out, caps, shape->ranges ? shape->ranges : 1);
	return announce_segments(out, caps->max_transfer, most);
}

/* ---- what all of the following goes by ---- */

/* Without a division of 64 bits, which on smaller machines is a call. */
static uint32_t sector_in_chunk(uint64_t sector, uint32_t chunk)
{
	uint64_t rest = (uint32_t)(sector >> 32) % chunk;
	int bit;

	if (is_power(chunk))
		return (uint32_t)sector & (chunk - 1);
	if (!rest && sector <= UINT32_MAX)
		return (uint32_t)sector % chunk;
	for (bit = 31; bit >= 0; bit--) {
		rest = rest << 1 | (sector >> bit & 1);
		if (rest >= chunk)
			rest -= chunk;
	}
	return (uint32_t)rest;
}

/* To the end of the chunk, where there are chunks. */
static VQB_APART uint64_t chunk_bytes(const struct vqb_limits *l, uint64_t sector)
{
	return sector_bytes(l->chunk_sectors - sector_in_chunk(sector, l->chunk_sectors));
}

VQB_INLINE uint64_t most_bytes(const struct vqb_limits *l, uint64_t sector)
{
	uint64_t most = sector_bytes(least(l->max_sectors, VQB_MAX_SECTORS)), chunk;

	if (VQB_UNLIKELY(l->chunk_sectors)) {
		chunk = chunk_bytes(l, sector);
		most = most < chunk ? most : chunk;
	}
	return most & ~((uint64_t)l->block_size - 1);
}

uint64_t vqb_limits_bytes(const struct vqb_limits *limits, uint64_t sector)
{
	return most_bytes(limits, sector);
}

uint32_t vqb_limits_range(const struct vqb_limits *limits, const struct vqb_range_limits *range,
			  uint64_t sector, uint64_t sectors)
{
	uint32_t block = limits->block_size >> VQB_SECTOR_SHIFT, most, past;

	if (sectors <= range->max_sectors)
		return (uint32_t)sectors;
	most = range->max_sectors & ~(block - 1);
	past = range->alignment ? sector_in_chunk(sector + most, range->alignment) : 0;
	return past < most && !(past & (block - 1)) ? most - past : most;
}

int vqb_segments_join(const struct vqb_limits *limits, const struct vqb_segment *a,
		      const struct vqb_segment *b)
{
	return segments_join(limits, a, b);
}

int vqb_segments_gap(const struct vqb_limits *limits, const struct vqb_segment *a,
		     const struct vqb_segment *b)
{
	return is_gap(a->addr + a->len, b->addr, limits->virt_boundary);
}

/* ---- the walk ---- */

struct walk {
	const struct vqb_limits *limits;
	struct vqb_segment *out; /* NULL: count only */
	uint64_t start;          /* of the open segment; none yet: in the upper half */
	uint64_t end;            /* behind the last byte taken; 0: none was, or it is 2^64 */
	uint64_t bytes, most;    /* of the request */
	uint32_t n, cap;         /* segments, the open one included */
	uint32_t at, offset;     /* the vector that comes next, and bytes of it that are taken */
};

/* How a walk goes on, or why it ended. */
enum pace {
	GO_ON,
	AT_END, /* of the list */
	AT_GAP, /* between two vectors */
	FULL,
	WRONG, /* a vector is */
};

VQB_TINY void put(struct vqb_segment *out, uint64_t start, uint64_t last)
{
	out->addr = start;
	out->len = (uint32_t)(last - start + 1);
	out->zero = 0;
}

/* The same of a length below 2^32, in two stores. */
VQB_TINY void put_whole(struct vqb_segment *out, uint64_t start, uint64_t len)
{
	uint64_t both = VQB_BIG_ENDIAN ? len << 32 : len;

	out->addr = start;
	__builtin_memcpy((char *)out + offsetof(struct vqb_segment, len), &both, sizeof(both));
}

/*
 * Goes on from *v, the last vector taken, along its run in memory; most of what the loop below does
 * for each is the same for all of them: how much the segment may still get. Answers where it ends.
 */
VQB_TINY uint64_t follow_run(const struct vqb_segment **v, const struct vqb_segment *last,
			     uint64_t end, uint64_t room)
{
	const struct vqb_segment *next = *v + 1;
	uint64_t len;

	for (; next != last && next->addr == end; next++) {
		len = vector_len(next);
		if (VQB_UNLIKELY(len - 1 >= room))
			break;
		room -= len;
		end += len;
	}
	*v = next - 1;
	return end;
}

/* Bytes in a row after which more are to be expected: one compare with a number that is known. */
#define LONG_RUN 16384u

/*
 * Takes vectors as long as they only grow or open a segment and are well within all limits, with
 * no branch that goes one way and then the other: whether a vector opens a segment is a number. It
 * has no more vectors than there could be segments left. What the last one that it took left open
 * is in the table, from where it is read at the end: two registers less that live through the loop.
 * Who only counts has a table of one entry, which is used over and over.
 *
 * One compare sees that a vector is empty, too long for the request, or has its `zero` set. What
 * lies across the middle of the address space leaves, like what crosses a boundary: a range that
 * runs past 2^64 seems to. As long as there is no segment, `held` is more than any may have.
 */
VQB_INLINE void take_plain(struct walk *w, const struct vqb_segment *vec, uint32_t nvec, int fill,
			   int gaps)
{
	const uint64_t longest = w->limits->max_segment_bytes, boundary = w->limits->seg_boundary;
	const uint64_t walls = ~boundary | UPPER_HALF, virt = w->limits->virt_boundary;
	const struct vqb_segment *v = vec + w->at, *first = v;
	const struct vqb_segment *last = v + least(nvec - w->at, w->cap - w->n);
	struct vqb_segment one = { 0 }, *seg = fill ? w->out + w->n : &one + 1;
	uint64_t end = w->end, held = end - w->start, left = w->most - w->bytes;
	size_t n = w->n;

	for (; v != last; v++) {
		uint64_t addr = v->addr, len = vector_len(v), gap = (end | addr) & virt;
		uint64_t fresh = addr != end, all = (held & (fresh - 1)) + len, from;

		end = addr + len;
		from = end - all;
		if (VQB_UNLIKELY(all > longest || ((end - 1) ^ from) & walls)) {
			if (held != longest && addr & boundary)
				break;
			/* The open segment was full to the last byte. */
			fresh = 1;
			all = len;
			from = addr;
			if (all > longest || ((end - 1) ^ from) & walls)
				break;
		}
		if (VQB_UNLIKELY(len - 1 >= left))
			break;
		if (gaps && VQB_UNLIKELY(gap && fresh))
			break;
		left -= len;
		held = all;
		if (fill)
			seg += fresh;
		else
			n += (size_t)fresh;
		if (all > LONG_RUN) {
			uint64_t room = reach(from, longest, boundary) - (end - 1);

			end = follow_run(&v, last, end, room < left ? room : left);
			held = end - from;
			left -= held - all;
			all = held;
		}
		put_whole(seg - 1, from, all);
	}
	if (VQB_UNLIKELY(v == first))
		return;
	w->at = (uint32_t)(v - vec);
	w->n = fill ? (uint32_t)(seg - w->out) : (uint32_t)n;
	w->bytes = w->most - left;
	w->start = seg[-1].addr;
	w->end = w->start + seg[-1].len;
}

/* The same loop four times: none of its turns asks what is the same in all of them. */
static VQB_APART void take_run(struct walk *w, const struct vqb_segment *vec, uint32_t nvec)
{
	if (w->limits->virt_boundary) {
		if (w->out)
			take_plain(w, vec, nvec, 1, 1);
		else
			take_plain(w, vec, nvec, 0, 1);
	} else {
		if (w->out)
			take_plain(w, vec, nvec, 1, 0);
		else
			take_plain(w, vec, nvec, 0, 0);
	}
}

static void open_segment(struct walk *w, uint64_t addr)
{
	w->n++;
	w->start = addr;
}

static void put_open(const struct walk *w, uint64_t last)
{
	if (w->out)
		put(&w->out[w->n - 1], w->start, last);
}

/*
 * Lets the open segment grow up to `last`, cutting it where it must be; answers how far it got.
 * The cut has to be at a virt_boundary, perhaps before what the segment had already; not so the
 * request's end.
 */
static uint64_t grow(struct walk *w, uint64_t last)
{
	const struct vqb_limits *l = w->limits;
	uint64_t limit = reach(w->start, l->max_segment_bytes, l->seg_boundary), edge;

	while (last > limit) {
		edge = (limit + 1) & ~l->virt_boundary;
		if (w->n == w->cap || edge <= w->start)
			return limit;
		put_open(w, edge - 1);
		open_segment(w, edge);
		limit = reach(edge, l->max_segment_bytes, l->seg_boundary);
	}
	return last;
}

/* Takes the next vector, or a part of it, by all the rules. */
static VQB_APART enum pace take_vector(struct walk *w, const struct vqb_segment *v)
{
	uint64_t addr = v->addr + w->offset, left = w->most - w->bytes, last;
	int joins = w->n && addr == w->end && addr && !(w->limits->flags & VQB_LIMITS_NO_CLUSTER);

	if (!vector_is_good(v, w->offset))
		return WRONG;
	if (w->n && !joins && is_gap(w->end, addr, w->limits->virt_boundary))
		return AT_GAP;
	if (!left || (!joins && w->n == w->cap))
		return FULL;
	if (!joins)
		open_segment(w, addr);
	if (left > v->len - w->offset)
		left = v->len - w->offset;
	last = grow(w, addr + (left - 1));
	put_open(w, last);
	left = last + 1 - addr;
	w->end = last + 1;
	w->bytes += left;
	w->offset += (uint32_t)left;
	if (w->offset < v->len)
		return FULL;
	w->offset = 0;
	w->at++;
	return GO_ON;
}

static int has_plain(const struct vqb_limits *l)
{
	return !(l->flags & VQB_LIMITS_NO_CLUSTER);
}

static enum pace walk(struct walk *w, const struct vqb_mapper *m)
{
	int plain = has_plain(w->limits);
	enum pace pace = GO_ON;

	while (pace == GO_ON) {
		if (plain && !w->offset)
			take_run(w, m->vec, m->nvec);
		if (w->at == m->nvec)
			return AT_END;
		pace = take_vector(w, &m->vec[w->at]);
	}
	return pace;
}

VQB_INLINE void begin(struct walk *w, const struct vqb_mapper *m, uint64_t most)
{
	w->start = UPPER_HALF;
	w->end = w->bytes = 0;
	w->most = most;
	w->n = 0;
	w->at = m->at;
	w->offset = m->offset;
}

/*
 * Where the request has to end, which the walk got as far as it could: at a block. If the next one
 * can't begin elsewhere anyway, that is that; else at a good place to split. 0: nowhere.
 */
static uint64_t good_end(const struct walk *w, enum pace pace, uint64_t sector)
{
	const struct vqb_limits *l = w->limits;
	uint64_t whole = w->bytes & ~((uint64_t)l->block_size - 1), past;

	if (whole == w->bytes &&
	    (pace != FULL || (l->chunk_sectors && whole == chunk_bytes(l, sector))))
		return whole;
	past = ((sector << VQB_SECTOR_SHIFT) - l->split_offset + whole) &
	       ((uint64_t)l->split_align - 1);
	return past < whole ? whole - past : whole;
}

/* The mapper moves to where the walk has ended. */
VQB_INLINE int32_t arrive(const struct walk *w, struct vqb_mapper *m, uint32_t *n, uint64_t *bytes)
{
	if (w->bytes >> VQB_SECTOR_SHIFT > UINT64_MAX - m->sector)
		return VQB_E_INVALID;
	m->at = w->at;
	m->offset = w->offset;
	m->sector += w->bytes >> VQB_SECTOR_SHIFT;
	*n = w->n;
	*bytes = w->bytes;
	return VQB_OK;
}

/*
 * Goes on as far as it gets. If the request can't end there, it is walked once more to where it
 * can, which is reached: every beginning of a request is within limits that the whole is within.
 */
static VQB_APART int32_t walk_to_end(struct walk *w, struct vqb_mapper *m, uint32_t *n,
				     uint64_t *bytes)
{
	enum pace pace = walk(w, m);
	uint64_t end = good_end(w, pace, m->sector);

	if (pace == WRONG || (pace == AT_END && end != w->bytes))
		return VQB_E_INVALID;
	if (!end)
		return VQB_E_TOOBIG;
	if (end != w->bytes) {
		begin(w, m, end);
		(void)walk(w, m);
	}
	return arrive(w, m, n, bytes);
}

int32_t vqb_map_next(struct vqb_mapper *m, struct vqb_segment *out, uint32_t room, uint32_t *n,
		     uint64_t *bytes)
{
	const struct vqb_limits *l;
	struct walk w, rest;

	if (!n || !bytes)
		return VQB_E_INVALID;
	*n = 0;
	*bytes = 0;
	if (!m || !m->limits || m->limits->struct_size != sizeof(*m->limits))
		return VQB_E_INVALID;
	if (m->at >= m->nvec)
		return VQB_OK;
	l = m->limits;
	if (!m->vec || m->sector & ((l->block_size - 1) >> VQB_SECTOR_SHIFT))
		return VQB_E_INVALID;
	if (!room || !l->max_segments || !l->max_segment_bytes)
		return VQB_E_TOOBIG;
	w.limits = l;
	w.out = out;
	w.cap = least(room, l->max_segments);
	begin(&w, m, most_bytes(l, m->sector));
	/*
	 * Mostly that is all. It is here, with all of it in registers, for lists of a few vectors.
	 */
	if (VQB_LIKELY(has_plain(l) && !l->virt_boundary && !w.offset)) {
		if (out)
			take_plain(&w, m->vec, m->nvec, 1, 0);
		else
			take_plain(&w, m->vec, m->nvec, 0, 0);
		if (VQB_LIKELY(w.at == m->nvec && !(w.bytes & (l->block_size - 1))))
			return arrive(&w, m, n, bytes);
	}
	rest = w;
	return walk_to_end(&rest, m, n, bytes);
}

int32_t vqb_map_append(const struct vqb_limits *limits, uint64_t sector,
		       const struct vqb_segment *vec, uint32_t nvec, struct vqb_segment *out,
		       uint32_t room, uint32_t *n, uint64_t *bytes)
{
	struct vqb_mapper m;
	struct vqb_segment last;
	struct walk w;
	enum pace pace;

	if (!limits || limits->struct_size != sizeof(*limits) || !vec || !nvec || !out || !n ||
	    !*n || !bytes)
		return VQB_E_INVALID;
	m = vqb_mapper_over(limits, vec, nvec, sector);
	w.limits = limits;
	w.out = out;
	w.cap = least(room, limits->max_segments);
	begin(&w, &m, most_bytes(limits, sector));
	if (*n > w.cap || *bytes > w.most)
		return VQB_E_TOOBIG;

	/* The last segment is the only one that can still change. */
	last = out[*n - 1];
	w.n = *n;
	w.bytes = *bytes;
	w.start = last.addr;
	w.end = last.addr + last.len;
	pace = walk(&w, &m);
	if (pace == AT_END && !(w.bytes & (limits->block_size - 1))) {
		*n = w.n;
		*bytes = w.bytes;
		return VQB_OK;
	}
	out[*n - 1] = last;
	return pace == WRONG ? VQB_E_INVALID : VQB_E_TOOBIG;
}
