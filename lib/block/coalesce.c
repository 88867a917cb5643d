/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce.c: neighbours on the disk become one submission.
 *
 * A batch is an array of offsets and requests. Whether it comes in order, with nothing overlapping,
 * is known from adding; else it is sorted, and cut where requests overlap: those go out by arrival,
 * and all others are joined as far as they are neighbours.
 *
 * A join is free, or out (the backend has it), or retried (its members are out instead, each on its
 * own). While it is one of the latter two its range is live: nothing that overlaps is let in.
 *
 * Ends are the last byte, not the one after it, which may be 2^64.
 */
#include <vqblk/blk.h>
#include <vqblk/coalesce.h>
#include <vqblk/port.h>

#include "blk_arena.h"

enum {
	BLOCK = 16, /* entries that are sorted by counting, before blocks are merged */
	MAX_REQUESTS = 1024,
	MAX_JOINS = 0x7fff,
	/*
	 * io->group: 0, nothing to do with a join; else the join's number, from 1, of a member that
	 * is on its own for its second attempt, or with this bit of the joined submission.
	 */
	JOINED = 0x8000,
};

struct entry {
	uint64_t key; /* the offset; of requests that overlap, in the end, when they arrived */
	struct vqb_io *io;
};

struct join {
	struct vqb_io io;       /* the first member: of a joined submission it is the join */
	struct vqb_io *members; /* by offset, linked by their `next` while the join is out */
	uint32_t left;          /* members that are not done */
	uint16_t live;          /* where it is in the list of live joins */
	uint16_t zero;
};

/* What lies between the first and the last byte of all live joins of one direction. */
struct hull {
	uint64_t first, last;
};

struct vqb_coalescer {
	struct entry *batch, *other; /* `most` entries each; sorting goes from one to the other */
	uint64_t last;               /* byte of the newest entry */
	uint32_t count, most;
	uint16_t kind;  /* op and flags of the batch */
	uint8_t rising; /* each entry lies behind the one before it */
	uint8_t zero;
	uint32_t max_pieces;
	uint64_t max_transfer;
	struct hull hull[2]; /* at least; of IN, of OUT */
	struct join *join;
	struct vqb_io *idle; /* joins that are free */
	struct vqb_piece *piece;
	uint16_t *live; /* numbers of the joins that are not free, from 0 */
	uint32_t lives, zero_too;
	struct blk_arena arena;
	struct vqb_coalescer_counters counters;
};

_Static_assert(sizeof(struct vqb_coalescer) + sizeof(struct blk_span) <= 272, "bound");
_Static_assert(sizeof(struct entry) * 2 <= 32, "bound");
_Static_assert(sizeof(struct join) + sizeof(struct blk_span) + sizeof(uint16_t) <= 82, "bound");

/* ---- setting up ---- */

static uint32_t requests_of(const struct vqb_coalescer_config *config)
{
	return config->requests ? config->requests : 32;
}

static uint32_t joins_of(const struct vqb_coalescer_config *config)
{
	return config->joins ? config->joins : requests_of(config);
}

size_t vqb_coalescer_size(const struct vqb_coalescer_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || config->zero ||
	    config->requests > MAX_REQUESTS || config->joins > MAX_JOINS ||
	    config->pieces > UINT32_MAX / 32 || !config->max_pieces || !config->max_transfer)
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_coalescer) +
			    requests_of(config) * 2 * sizeof(struct entry) +
			    joins_of(config) * (sizeof(struct join) + sizeof(uint16_t)) +
			    (joins_of(config) + 1) * sizeof(struct blk_span) +
			    config->pieces * sizeof(struct vqb_piece));
}

/* Lays out what follows the object, in falling order of alignment. */
static void lay_out(struct vqb_coalescer *c, const struct vqb_coalescer_config *config)
{
	uint32_t joins = joins_of(config), i;
	struct blk_span *span;

	c->most = requests_of(config);
	c->batch = (struct entry *)(c + 1);
	c->other = c->batch + c->most;
	c->join = (struct join *)(c->other + c->most);
	c->piece = (struct vqb_piece *)(c->join + joins);
	span = (struct blk_span *)(c->piece + config->pieces);
	c->live = (uint16_t *)(span + joins + 1);
	blk_arena_init(&c->arena, span, joins, config->pieces);
	for (i = joins; i-- > 0;) {
		c->join[i].io.next = c->idle;
		c->idle = &c->join[i].io;
	}
}

static void empty_hulls(struct vqb_coalescer *c)
{
	c->hull[0].first = c->hull[1].first = UINT64_MAX;
	c->hull[0].last = c->hull[1].last = 0;
}

int32_t vqb_coalescer_init(void *mem, size_t bytes, const struct vqb_coalescer_config *config,
			   struct vqb_coalescer **out)
{
	size_t need = vqb_coalescer_size(config);
	struct vqb_coalescer *c = mem;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	memset(c, 0, need);
	lay_out(c, config);
	empty_hulls(c);
	c->max_transfer = config->max_transfer;
	c->max_pieces = config->max_pieces;
	/* A run that could never be held would keep its parts from being joined, too. */
	if (c->max_pieces > config->pieces)
		c->max_pieces = config->pieces;
	*out = c;
	return VQB_OK;
}

/* ---- collecting ---- */

static uint64_t last_byte(const struct vqb_io *io)
{
	return io->offset + (io->bytes - 1);
}

static void widen(struct hull *hull, const struct vqb_io *io)
{
	if (hull->first > io->offset)
		hull->first = io->offset;
	if (hull->last < last_byte(io))
		hull->last = last_byte(io);
}

/* Looks at all live joins, and finds their true hulls by the way. */
static VQB_COLD uint32_t overlaps_live(struct vqb_coalescer *c, const struct vqb_io *io)
{
	uint32_t overlaps = 0, i;

	empty_hulls(c);
	for (i = 0; i < c->lives; i++) {
		const struct vqb_io *joined = &c->join[c->live[i]].io;

		widen(&c->hull[joined->op], joined);
		if ((io->op == VQB_BLK_OUT || joined->op == VQB_BLK_OUT) &&
		    io->offset <= last_byte(joined) && joined->offset <= last_byte(io))
			overlaps = 1;
	}
	return overlaps;
}

static uint32_t meets(const struct hull *hull, const struct vqb_io *io)
{
	return io->offset <= hull->last && last_byte(io) >= hull->first;
}

int32_t vqb_coalescer_add(struct vqb_coalescer *c, struct vqb_io *io)
{
	uint16_t kind = (uint16_t)(io->op | io->flags << 8);
	struct entry *entry = &c->batch[c->count];

	if (io->op > VQB_BLK_OUT || !io->bytes || io->bytes - 1 > UINT64_MAX - io->offset)
		return VQB_E_INVALID;
	if (c->count && (c->count == c->most || c->kind != kind))
		return VQB_E_NOSPC;
	if (VQB_UNLIKELY(meets(&c->hull[VQB_BLK_OUT], io) ||
			 (io->op == VQB_BLK_OUT && meets(&c->hull[VQB_BLK_IN], io))) &&
	    overlaps_live(c, io))
		return VQB_E_BUSY;
	c->kind = kind;
	c->rising = !c->count || (c->rising && io->offset > c->last);
	entry->key = io->offset;
	entry->io = io;
	c->last = last_byte(io);
	c->count++;
	return VQB_OK;
}

uint32_t vqb_coalescer_collected(const struct vqb_coalescer *c)
{
	return c->count;
}

/* ---- sorting: stable, and without a branch that depends on how things lie ---- */

/* Each entry goes where the number of those in front of it says. */
static void sort_block(const struct entry *in, uint32_t n, struct entry *out)
{
	uint32_t rank[BLOCK], i, j;

	for (i = 0; i < n; i++) {
		uint32_t behind = 0;

		for (j = 0; j < i; j++) {
			uint32_t later = in[j].key > in[i].key;

			rank[j] += later;
			behind += later;
		}
		rank[i] = i - behind;
	}
	for (i = 0; i < n; i++)
		out[rank[i]] = in[i];
}

/* [in, mid) and [mid, end) into one. */
static void merge(const struct entry *in, const struct entry *mid, const struct entry *end,
		  struct entry *out)
{
	const struct entry *second = mid;

	while (in < mid && second < end) {
		size_t later = second->key < in->key;

		*out++ = later ? *second : *in;
		second += later;
		in += 1 - later;
	}
	while (in < mid)
		*out++ = *in++;
	while (second < end)
		*out++ = *second++;
}

/* Answers which of the two arrays has what was `from`, sorted. */
static struct entry *sort(struct entry *from, struct entry *to, uint32_t n)
{
	struct entry *swap;
	uint32_t i, width;

	for (i = 0; i < n; i += BLOCK)
		sort_block(from + i, n - i < BLOCK ? n - i : BLOCK, to + i);
	for (width = BLOCK; width < n; width *= 2) {
		swap = from;
		from = to;
		to = swap;
		for (i = 0; i < n; i += 2 * width) {
			uint32_t mid = n - i < width ? n : i + width;
			uint32_t end = n - i < 2 * width ? n : i + 2 * width;

			merge(from + i, from + mid, from + end, to + i);
		}
	}
	return to;
}

/* ---- handing out: `tail` is where the next submission is linked ---- */

static struct vqb_io **alone(struct vqb_io **tail, struct vqb_io *io)
{
	io->group = 0;
	*tail = io;
	return &io->next;
}

/* How many of `n` entries, the first one included, make one submission, and of how many pieces. */
static uint32_t run_length(const struct vqb_coalescer *c, const struct entry *e, uint32_t n,
			   uint32_t *pieces)
{
	const struct vqb_io *io = e->io;
	uint32_t room, k = 1;
	uint64_t left, next = io->offset + io->bytes; /* 0 for 2^64: no later entry is there */

	/* What is over a limit alone leaves nothing of it, rather than more than all. */
	if (io->pieces > c->max_pieces || io->bytes > c->max_transfer)
		return 1;
	room = c->max_pieces - io->pieces;
	left = c->max_transfer - io->bytes;
	for (; k < n && e[k].key == next; k++) {
		io = e[k].io;
		if (io->pieces > room || io->bytes > left)
			break;
		room -= io->pieces;
		left -= io->bytes;
		next += io->bytes;
	}
	*pieces = c->max_pieces - room;
	return k;
}

/* One submission of `n` entries, into a join and pieces that were found free. */
static void fill(struct join *join, const struct entry *e, uint32_t n, struct vqb_piece *piece)
{
	struct vqb_io **member = &join->members;
	uint64_t bytes = 0;
	uint32_t i;

	join->io.piece = piece;
	join->io.offset = e->io->offset;
	join->io.op = e->io->op;
	join->io.flags = e->io->flags;
	for (i = 0; i < n; i++) {
		struct vqb_io *io = e[i].io;

		bytes += io->bytes;
		if (io->pieces == 1)
			*piece = *io->piece;
		else if (io->pieces)
			memcpy(piece, io->piece, io->pieces * sizeof(*piece));
		piece += io->pieces;
		*member = io;
		member = &io->next;
	}
	*member = NULL;
	join->io.bytes = bytes;
	join->left = n;
}

/* NULL: no join is free, or no stretch of pieces is long enough. */
static struct vqb_io *join_up(struct vqb_coalescer *c, const struct entry *e, uint32_t n,
			      uint32_t pieces)
{
	struct join *join = (struct join *)c->idle;
	uint32_t number, at = 0;

	if (!join || blk_arena_room(&c->arena, pieces, &at) < pieces)
		return NULL;
	c->idle = join->io.next;
	number = (uint32_t)(join - c->join);
	blk_arena_hold(&c->arena, number, at, at + pieces);
	fill(join, e, n, c->piece + at);
	join->io.pieces = pieces;
	join->io.group = (uint16_t)(JOINED | (number + 1));
	join->live = (uint16_t)c->lives;
	c->live[c->lives++] = (uint16_t)number;
	widen(&c->hull[join->io.op], &join->io);
	return &join->io;
}

/* Entries in order, none of which overlap. */
static struct vqb_io **hand_out(struct vqb_coalescer *c, const struct entry *e, uint32_t n,
				struct vqb_io **tail)
{
	uint32_t dir = c->kind & 1, k;

	for (; n; e += k, n -= k) {
		uint32_t pieces = 0, i;
		struct vqb_io *joined = NULL;

		k = run_length(c, e, n, &pieces);
		if (k > 1)
			joined = join_up(c, e, k, pieces);
		if (joined) {
			*tail = joined;
			tail = &joined->next;
			c->counters.submissions[dir]++;
			continue;
		}
		for (i = 0; i < k; i++)
			tail = alone(tail, e[i].io);
		c->counters.submissions[dir] += k;
	}
	return tail;
}

/* How many sorted entries there are in front of the first that overlaps with the next. */
static uint32_t without_overlap(const struct entry *e, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 1 < n; i++) {
		if (e[i + 1].key <= last_byte(e[i].io))
			return i;
	}
	return n;
}

/* How many sorted entries, from the first on, hang together by overlapping. */
static uint32_t overlapping(const struct entry *e, uint32_t n)
{
	uint64_t last = last_byte(e->io);
	uint32_t k;

	for (k = 1; k < n && e[k].key <= last; k++) {
		if (last < last_byte(e[k].io))
			last = last_byte(e[k].io);
	}
	return k;
}

static VQB_COLD struct vqb_io **by_arrival(struct vqb_coalescer *c, struct entry *e, uint32_t n,
					   struct vqb_io **tail)
{
	struct entry *room = e < c->other ? c->other + (e - c->batch) : c->batch + (e - c->other);
	uint32_t i;

	for (i = 0; i < n; i++)
		e[i].key = e[i].io->group;
	e = sort(e, room, n);
	for (i = 0; i < n; i++)
		tail = alone(tail, e[i].io);
	c->counters.submissions[c->kind & 1] += n;
	return tail;
}

struct vqb_io *vqb_coalescer_flush(struct vqb_coalescer *c)
{
	struct vqb_io *first = NULL, **tail = &first;
	uint32_t n = c->count, k, i;
	struct entry *e = c->batch;

	c->count = 0;
	c->counters.requests[c->kind & 1] += n;
	if (c->rising) {
		tail = hand_out(c, e, n, tail);
		n = 0;
	} else {
		for (i = 0; i < n; i++)
			e[i].io->group = (uint16_t)i; /* when it arrived */
		e = sort(e, c->other, n);
	}
	while (n) {
		k = without_overlap(e, n);
		tail = hand_out(c, e, k, tail);
		e += k;
		n -= k;
		if (!n)
			break;
		k = overlapping(e, n);
		tail = by_arrival(c, e, k, tail);
		e += k;
		n -= k;
	}
	*tail = NULL;
	return first;
}

/* ---- coming back ---- */

static void free_join(struct vqb_coalescer *c, struct join *join)
{
	uint16_t newest = c->live[--c->lives];

	c->live[join->live] = newest;
	c->join[newest].live = join->live;
	if (!c->lives)
		empty_hulls(c);
	join->io.next = c->idle;
	c->idle = &join->io;
}

/*
 * The members whose bytes were all done are done. The others are on their own from now on, with
 * nothing left of the join in them but its number.
 */
static void split(struct vqb_coalescer *c, struct join *join, struct vqb_io_list *done,
		  struct vqb_io_list *retry)
{
	uint64_t good = join->io.result < 0 ? 0 : (uint64_t)join->io.result;
	uint16_t number = join->io.group & (JOINED - 1);
	struct vqb_io *io, *next;

	blk_arena_release(&c->arena, number - 1u);
	for (io = join->members; io; io = next) {
		next = io->next;
		if (io->bytes <= good) {
			good -= io->bytes;
			io->group = 0;
			io->result = (int64_t)io->bytes;
			vqb_io_list_add(done, io);
			join->left--;
		} else {
			good = 0;
			io->group = number;
			vqb_io_list_add(retry, io);
			c->counters.retries[io->op]++;
		}
	}
	if (!join->left)
		free_join(c, join);
}

void vqb_coalescer_done(struct vqb_coalescer *c, struct vqb_io *io, struct vqb_io_list *done,
			struct vqb_io_list *retry)
{
	struct join *join;

	if (!io->group) {
		vqb_io_list_add(done, io);
		return;
	}
	if (io->group & JOINED) {
		split(c, (struct join *)io, done, retry);
		return;
	}
	join = &c->join[io->group - 1];
	io->group = 0;
	vqb_io_list_add(done, io);
	if (!--join->left)
		free_join(c, join);
}

void vqb_coalescer_read_counters(const struct vqb_coalescer *c, struct vqb_coalescer_counters *out)
{
	*out = c->counters;
	out->merges[0] = out->requests[0] - out->submissions[0];
	out->merges[1] = out->requests[1] - out->submissions[1];
}
