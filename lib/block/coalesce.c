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
#include "sort.h"

enum {
	MAX_REQUESTS = 1024,
	MAX_JOINS = 0x7fff,
	/*
	 * io->group: 0, nothing to do with a join; else the join's number, from 1, of a member that
	 * is on its own for its second attempt, or with this bit of the joined submission.
	 */
	JOINED = 0x8000,
	NO_KIND = 0xffff,
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
	/* What adding needs, in a cache line. */
	struct sort_entry *next; /* of the batch: where the next entry goes, */
	struct sort_entry *end;  /* and where it is full */
	uint64_t behind;         /* where the newest entry ends */
	struct hull near; /* a request outside of it overlaps no live join, and is not the first */
	uint64_t pieces;  /* of all requests of the batch */
	uint16_t kind;    /* op and flags of the batch, or NO_KIND: nothing is collected */
	uint8_t rising;   /* each entry lies behind the one before it, */
	uint8_t unbroken; /* and begins where that one ends */

	uint32_t max_pieces;
	uint64_t max_transfer;
	/*
	 * The requests by offset; of those that overlap, in the end, by when they arrived. As long
	 * as each other; sorting goes from one to the other.
	 */
	struct sort_entry *batch, *other;
	struct hull hull[2]; /* at least; of IN, of OUT */
	struct join *join;
	struct vqb_io *idle; /* joins that are free */
	struct vqb_piece *piece;
	uint16_t *live;              /* numbers of the joins that are not free, from 0 */
	uint32_t lives, submissions; /* the latter while they are handed out */
	struct blk_arena arena;
	struct vqb_coalescer_counters counters;
};

_Static_assert(sizeof(struct vqb_coalescer) + sizeof(struct blk_span) <= 272, "bound");
_Static_assert(sizeof(struct sort_entry) * 2 <= 32, "bound");
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
			    2 * sizeof(struct sort_entry) * requests_of(config) +
			    joins_of(config) * (sizeof(struct join) + sizeof(uint16_t)) +
			    (joins_of(config) + 1) * sizeof(struct blk_span) +
			    config->pieces * sizeof(struct vqb_piece));
}

/* Lays out what follows the object, in falling order of alignment. */
static void lay_out(struct vqb_coalescer *c, const struct vqb_coalescer_config *config)
{
	uint32_t joins = joins_of(config), i;
	struct blk_span *span;

	c->batch = c->next = (struct sort_entry *)(c + 1);
	c->other = c->end = c->batch + requests_of(config);
	c->join = (struct join *)(c->other + requests_of(config));
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

/* Whatever comes first is looked at closely: NO_KIND is what some nonsense is like, too. */
static void empty_batch(struct vqb_coalescer *c)
{
	c->next = c->batch;
	c->kind = NO_KIND;
	c->near.first = 0;
	c->near.last = UINT64_MAX;
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
	empty_batch(c);
	c->max_transfer = config->max_transfer;
	c->max_pieces = config->max_pieces;
	/* A run that could never be held would keep its parts from being joined, too. */
	if (c->max_pieces > config->pieces)
		c->max_pieces = config->pieces;
	*out = c;
	return VQB_OK;
}

/* ---- collecting ---- */

VQB_TINY struct vqb_io *io_of(const struct sort_entry *e)
{
	return e->item;
}

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

static uint32_t meets(const struct hull *hull, const struct vqb_io *io)
{
	return io->offset <= hull->last && last_byte(io) >= hull->first;
}

/* Looks at all live joins, and finds their true hulls by the way. */
static VQB_COLD uint32_t overlaps_live(struct vqb_coalescer *c, const struct vqb_io *io)
{
	uint32_t overlaps = 0, i;

	if (!c->lives)
		return 0;
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

VQB_INLINE int32_t keep(struct vqb_coalescer *c, struct vqb_io *io, uint64_t end)
{
	struct sort_entry *entry = c->next;

	if (io->offset != c->behind) {
		c->unbroken = 0;
		c->rising &= io->offset > c->behind;
	}
	c->behind = end;
	c->pieces += io->pieces;
	entry->key = io->offset;
	entry->item = io;
	c->next = entry + 1;
	return VQB_OK;
}

/* The first request of a batch says of which kind the others have to be. */
static int32_t keep_first(struct vqb_coalescer *c, struct vqb_io *io, uint16_t kind)
{
	const struct hull *reads = &c->hull[VQB_BLK_IN];

	if (overlaps_live(c, io))
		return VQB_E_BUSY;
	c->kind = kind;
	/* No join comes to life before the batch is flushed. Reads may pass reads. */
	c->near = c->hull[VQB_BLK_OUT];
	if (io->op == VQB_BLK_OUT && c->near.first > reads->first)
		c->near.first = reads->first;
	if (io->op == VQB_BLK_OUT && c->near.last < reads->last)
		c->near.last = reads->last;
	c->pieces = 0;
	c->behind = io->offset;
	c->rising = c->unbroken = 1;
	return keep(c, io, io->offset + io->bytes);
}

/* There is something about this one: which need not mean that it isn't kept. */
static VQB_APART int32_t keep_maybe(struct vqb_coalescer *c, struct vqb_io *io, uint16_t kind)
{
	int32_t status;

	if (io->op > VQB_BLK_OUT || !io->bytes || last_byte(io) < io->offset)
		return VQB_E_INVALID;
	if (c->next == c->batch)
		status = keep_first(c, io, kind);
	else if (c->next == c->end || kind != c->kind)
		status = VQB_E_NOSPC;
	else if (overlaps_live(c, io))
		status = VQB_E_BUSY;
	else
		status = keep(c, io, io->offset + io->bytes);
	/*
	 * Behind the last byte there is, which is at 0 by the sum, comes nothing: let it be sorted.
	 */
	if (!status && !c->behind)
		c->rising = c->unbroken = 0;
	return status;
}

uint32_t vqb_coalescer_overlaps(struct vqb_coalescer *c, uint64_t offset, uint64_t bytes)
{
	const struct vqb_io io = { .op = VQB_BLK_OUT, .offset = offset, .bytes = bytes };

	return (meets(&c->hull[VQB_BLK_OUT], &io) || meets(&c->hull[VQB_BLK_IN], &io)) &&
	       overlaps_live(c, &io);
}

int32_t vqb_coalescer_add(struct vqb_coalescer *c, struct vqb_io *io)
{
	uint16_t kind = (uint16_t)(io->op | io->flags << 8);
	uint64_t end = io->offset + io->bytes;

	/* Whatever ends at 2^64 or beyond, or has no bytes, seems not to end behind its start. */
	if (VQB_UNLIKELY(kind != c->kind || c->next == c->end || end <= io->offset ||
			 (io->offset <= c->near.last && end > c->near.first)))
		return keep_maybe(c, io, kind);
	return keep(c, io, end);
}

uint32_t vqb_coalescer_collected(const struct vqb_coalescer *c)
{
	return (uint32_t)(c->next - c->batch);
}

/* ---- handing out: `tail` is where the next submission is linked ---- */

static struct vqb_io **alone(struct vqb_io **tail, struct vqb_io *io)
{
	io->group = 0;
	*tail = io;
	return &io->next;
}

/* Entries that are to be one submission. */
struct run {
	uint32_t entries, pieces;
	uint64_t bytes;
};

/* From the first of `n` entries on, as many as are neighbours and keep both limits. */
static struct run find_run(const struct vqb_coalescer *c, const struct sort_entry *e, uint32_t n)
{
	const struct vqb_io *io = io_of(e);
	struct run run = { 1, io->pieces, io->bytes };
	uint64_t next = io->offset + io->bytes; /* 0 for 2^64, where no later entry begins */

	/* What is over a limit alone leaves nothing of it, rather than more than all. */
	if (run.pieces > c->max_pieces || run.bytes > c->max_transfer)
		return run;
	for (; run.entries < n && e[run.entries].key == next; run.entries++) {
		io = io_of(&e[run.entries]);
		if (io->pieces > c->max_pieces - run.pieces ||
		    io->bytes > c->max_transfer - run.bytes)
			break;
		run.pieces += io->pieces;
		run.bytes += io->bytes;
		next += io->bytes;
	}
	return run;
}

/*
 * Does all of the batch make one run, as is known from adding it? Also asked about what is left of
 * one that is over a limit: which it still is.
 */
static uint32_t find_all(const struct vqb_coalescer *c, struct run *run)
{
	uint64_t bytes = c->behind - c->batch->key;

	if (!c->unbroken || c->pieces > c->max_pieces || bytes > c->max_transfer)
		return 0;
	run->entries = vqb_coalescer_collected(c);
	run->pieces = (uint32_t)c->pieces;
	run->bytes = bytes;
	return 1;
}

/* Links the members, and copies their pieces. Kept apart, so that its loop has all registers. */
static VQB_APART void fill(struct join *join, const struct sort_entry *e, uint32_t n)
{
	struct vqb_piece *piece = (struct vqb_piece *)join->io.piece;
	struct vqb_io **member = &join->members;
	const struct sort_entry *end = e + n;

	do {
		struct vqb_io *io = io_of(e);
		uint32_t pieces = io->pieces;

		*member = io;
		member = &io->next;
		if (pieces == 1)
			*piece = *io->piece;
		else if (pieces)
			memcpy(piece, io->piece, pieces * sizeof(*piece));
		piece += pieces;
	} while (++e < end);
	*member = NULL;
}

/* The joined submission of a run. NULL: no join is free, or no stretch of pieces is long enough. */
static struct vqb_io *join_up(struct vqb_coalescer *c, const struct sort_entry *e,
			      const struct run *run)
{
	struct join *join = (struct join *)c->idle;
	uint32_t number, at = 0;

	if (!join || blk_arena_room(&c->arena, run->pieces, &at) < run->pieces)
		return NULL;
	c->idle = join->io.next;
	number = (uint32_t)(join - c->join);
	blk_arena_hold(&c->arena, number, at, at + run->pieces);
	join->io.piece = c->piece + at;
	join->io.pieces = run->pieces;
	join->io.op = io_of(e)->op;
	join->io.flags = io_of(e)->flags;
	join->io.group = (uint16_t)(JOINED | (number + 1));
	join->io.offset = e->key;
	join->io.bytes = run->bytes;
	join->left = run->entries;
	fill(join, e, run->entries);
	join->live = (uint16_t)c->lives;
	c->live[c->lives++] = (uint16_t)number;
	widen(&c->hull[join->io.op], &join->io);
	return &join->io;
}

/* Entries in order, none of which overlap. */
static struct vqb_io **hand_out(struct vqb_coalescer *c, const struct sort_entry *e, uint32_t n,
				struct vqb_io **tail)
{
	const struct sort_entry *end = e + n;

	while (e < end) {
		struct vqb_io *io = io_of(e);
		uint32_t k = 1;

		if (e + 1 < end && io->offset + io->bytes == e[1].key) {
			struct vqb_io *joined = NULL;
			struct run run;

			if (!find_all(c, &run))
				run = find_run(c, e, (uint32_t)(end - e));
			k = run.entries;
			if (k > 1)
				joined = join_up(c, e, &run);
			if (joined) {
				*tail = joined;
				tail = &joined->next;
				c->submissions++;
				e += k;
				continue;
			}
		}
		c->submissions += k;
		for (; k; k--, e++)
			tail = alone(tail, io_of(e));
	}
	return tail;
}

/* How many sorted entries there are in front of the first that overlaps with the next. */
static uint32_t without_overlap(const struct sort_entry *e, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 1 < n; i++) {
		if (e[i + 1].key <= last_byte(io_of(&e[i])))
			return i;
	}
	return n;
}

/* How many sorted entries, from the first on, hang together by overlapping. */
static uint32_t overlapping(const struct sort_entry *e, uint32_t n)
{
	uint64_t last = last_byte(io_of(e));
	uint32_t k;

	for (k = 1; k < n && e[k].key <= last; k++) {
		if (last < last_byte(io_of(&e[k])))
			last = last_byte(io_of(&e[k]));
	}
	return k;
}

static VQB_COLD struct vqb_io **by_arrival(struct vqb_coalescer *c, struct sort_entry *e,
					   uint32_t n, struct vqb_io **tail)
{
	struct sort_entry *room =
		e < c->other ? c->other + (e - c->batch) : c->batch + (e - c->other);
	uint32_t i;

	for (i = 0; i < n; i++)
		e[i].key = io_of(&e[i])->group;
	e = vqb__sort(e, room, n);
	for (i = 0; i < n; i++)
		tail = alone(tail, io_of(&e[i]));
	c->submissions += n;
	return tail;
}

/* Entries in any order. */
static struct vqb_io **sort_out(struct vqb_coalescer *c, struct sort_entry *e, uint32_t n,
				struct vqb_io **tail)
{
	uint32_t k, i;

	for (i = 0; i < n; i++)
		io_of(&e[i])->group = (uint16_t)i; /* when it arrived */
	for (e = vqb__sort(e, c->other, n); n; e += k, n -= k) {
		k = without_overlap(e, n);
		if (k) {
			tail = hand_out(c, e, k, tail);
		} else {
			k = overlapping(e, n);
			tail = by_arrival(c, e, k, tail);
		}
	}
	return tail;
}

struct vqb_io *vqb_coalescer_flush(struct vqb_coalescer *c)
{
	uint32_t n = vqb_coalescer_collected(c), dir = c->kind & 1;
	struct vqb_io *first = NULL, **tail = &first;

	if (!n)
		return NULL;
	c->submissions = 0;
	if (c->rising)
		tail = hand_out(c, c->batch, n, tail);
	else
		tail = sort_out(c, c->batch, n, tail);
	*tail = NULL;
	c->counters.requests[dir] += n;
	c->counters.submissions[dir] += c->submissions;
	empty_batch(c);
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

static void all_done(struct vqb_coalescer *c, struct join *join, struct vqb_io_list *done)
{
	struct vqb_io *io = join->members, *last = io;

	for (; io; io = io->next) {
		io->result = (int64_t)io->bytes;
		io->group = 0;
		last = io;
	}
	if (done->first)
		done->last->next = join->members;
	else
		done->first = join->members;
	done->last = last;
	free_join(c, join);
}

/*
 * Failed, or not all of it was done. The members whose bytes were all done are done. The others are
 * on their own from now on, with nothing left of the join in them but its number.
 */
static void split(struct vqb_coalescer *c, struct join *join, struct vqb_io_list *done,
		  struct vqb_io_list *retry)
{
	uint64_t good = join->io.result < 0 ? 0 : (uint64_t)join->io.result;
	struct vqb_io *io, *next;

	for (io = join->members; io; io = next) {
		next = io->next;
		if (io->bytes <= good) {
			good -= io->bytes;
			io->result = (int64_t)io->bytes;
			io->group = 0;
			vqb_io_list_add(done, io);
			join->left--;
		} else {
			good = 0;
			io->group = join->io.group & (JOINED - 1);
			vqb_io_list_add(retry, io);
			c->counters.retries[io->op]++;
		}
	}
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
		join = (struct join *)io;
		blk_arena_release(&c->arena, (uint32_t)(join - c->join));
		if (io->result >= 0 && (uint64_t)io->result >= io->bytes)
			all_done(c, join, done);
		else
			split(c, join, done, retry);
		return;
	}
	join = &c->join[io->group - 1];
	io->group = 0;
	vqb_io_list_add(done, io);
	if (!--join->left)
		free_join(c, join);
}

const struct vqb_io *vqb_coalescer_member(const struct vqb_io *io)
{
	return io->group & JOINED ? ((const struct join *)io)->members : io;
}

void vqb_coalescer_read_counters(const struct vqb_coalescer *c, struct vqb_coalescer_counters *out)
{
	*out = c->counters;
	out->merges[0] = out->requests[0] - out->submissions[0];
	out->merges[1] = out->requests[1] - out->submissions[1];
}
