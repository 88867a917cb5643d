/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.c: the driver side of one ring.
 *
 * What the driver knows of a request it keeps in `slot`, one per descriptor, and never reads
 * back from the descriptor table, which the device may have written over (K19).
 *
 * Free descriptors are a first-in first-out list of *runs*: descriptors that follow each other
 * in the ring, modulo its size. A request takes its descriptors from the front; what comes back
 * goes to the end, and grows the last run where it fits on. So while completions come in order
 * there is one run, going round, and a chain is simply "so many from here"; after one that came
 * out of order a chain may take several. The first run is kept at hand; the others are linked
 * through the slot of their first descriptor, and so are the runs of a chain that is out.
 *
 * With VQB_F_IN_ORDER there is always one run, starting at descriptor 0, which is just what the
 * specification asks for then; and a request's place in the available ring is its place in the
 * used ring, too.
 */
#include "driver.h"

#include "end.h"
#include "policy.h"

#define NO_RUN 0xffffu

/* What `held` says of a head besides the number of its table. */
#define HELD_DIRECT 0xfffeu /* out, without a table */
#define HELD_NOT 0xffffu    /* not the head of a chain that is out */

struct slot {
	void *token;
	uint32_t writable;   /* bytes lent for writing, at most 2^32 - 1 */
	uint32_t position;   /* in the available ring, free-running */
	uint16_t run;        /* first of a run: descriptors in it */
	uint16_t next_run;   /* first of a run: the next one's first, or NO_RUN */
	uint16_t held;       /* of a head: its table, or one of the two above */
	uint16_t free_table; /* not of this descriptor: an entry of the stack of free tables */
};

struct free_runs {
	uint32_t at, length;  /* the first run; length 0: there is none */
	uint32_t front, last; /* the others, or NO_RUN */
	uint32_t others;      /* descriptors in those */
};

/*
 * The pool of indirect tables, each of `length` descriptors. The free ones are a stack of `free`
 * numbers, in `free_table` of the slots.
 */
struct tables {
	struct desc *host;
	uint64_t addr;
	uint32_t length;
	uint32_t count;
	uint32_t free;
};

/*
 * IN_ORDER: the batch that is being reaped. A used element stands for all requests up to its own.
 */
struct batch {
	uint32_t left;   /* requests of it that are still out */
	uint32_t len;    /* of the last one */
	uint32_t oldest; /* head of the request that has been out longest */
};

struct vqb_driver {
	struct end end;
	int32_t state;        /* VQB_OK, VQB_E_INVALID without a ring, VQB_E_BROKEN */
	uint32_t index;       /* the queue's number */
	uint32_t notify_data; /* VQB_F_NOTIFICATION_DATA */
	struct desc *desc;
	struct word16 *avail;
	const struct used_elem *used;
	struct slot *slot;
	struct free_runs free;
	struct tables tables;
	struct batch batch;
	struct policy policy;
	uint32_t max_size; /* slots */
	/*
	 * The others are counted by `end` (`requests` is a mark in that), and by `policy`, which
	 * way requests went.
	 */
	struct {
		uint64_t requests, descriptors, completions, overlong;
	} count;
};

#define DRIVER_FIXED ((sizeof(struct vqb_driver) + 7) & ~(size_t)7)

_Static_assert(sizeof(struct slot) <= 24, "VQB_DRIVER_BYTES");
_Static_assert(DRIVER_FIXED <= 512, "VQB_DRIVER_BYTES");

/* ---- set-up ---- */

static bool ring_usable(const struct vqb_ring *ring, uint32_t max_size)
{
	return ring->size <= max_size && ring->index <= UINT16_MAX && ring->desc && ring->avail &&
	       ring->used &&
	       ring_valid(ring->size, ring->flags, ring->zero, ring->features,
			  (uintptr_t)ring->desc, (uintptr_t)ring->avail, (uintptr_t)ring->used);
}

static bool tables_usable(const struct vqb_dma *dma, uint32_t max_table)
{
	if (!dma->bytes || !max_table)
		return true;
	return dma->host && !((uintptr_t)dma->host % 16) && !(dma->addr % 16) &&
	       !range_wraps(dma->addr, dma->bytes);
}

/* The largest ring, or 0 if the configuration is not valid. */
static uint32_t config_size(const struct vqb_driver_config *config)
{
	uint32_t max_size;

	if (!config || config->struct_size != sizeof(*config) || config->zero ||
	    !cache_valid(config->cache))
		return 0;
	max_size = config->max_size ? config->max_size : config->ring.size;
	if (!ring_size_valid(max_size))
		return 0;
	if (config->ring.size && !ring_usable(&config->ring, max_size))
		return 0;
	if (!vqb__policy_usable(config->policy))
		return 0;
	return tables_usable(&config->tables, config->max_table) ? max_size : 0;
}

size_t vqb_driver_size(const struct vqb_driver_config *config)
{
	uint32_t max_size = config_size(config);

	return max_size ? VQB_ROUND_UP(DRIVER_FIXED + max_size * sizeof(struct slot)) : 0;
}

/* A longer table than the ring is of no use: no chain may have more descriptors. */
static void tables_init(struct vqb_driver *drv, const struct vqb_dma *dma, uint32_t max_table)
{
	struct tables *t = &drv->tables;
	uint32_t length = max_table < drv->max_size ? max_table : drv->max_size;
	size_t fit;

	if (!dma->bytes || !length)
		return;
	t->host = dma->host;
	t->addr = dma->addr;
	t->length = length;
	fit = dma->bytes / (sizeof(struct desc) * t->length);
	t->count = fit < drv->max_size ? (uint32_t)fit : drv->max_size;
}

/* All tables are free; none is, where the features rule them out. The first one is on top. */
static void tables_start(struct vqb_driver *drv, uint64_t features)
{
	struct tables *t = &drv->tables;

	t->free = ring_has(features, VQB_F_INDIRECT_DESC) ? t->count : 0;
	for (uint32_t i = 0; i < t->free; i++)
		drv->slot[i].free_table = (uint16_t)(t->free - 1 - i);
}

static void slots_start(struct vqb_driver *drv, uint32_t size)
{
	for (uint32_t i = 0; i < drv->max_size; i++)
		drv->slot[i].held = HELD_NOT;
	drv->free = (struct free_runs){ .length = size, .front = NO_RUN, .last = NO_RUN };
}

/* The event words belong to the ring only with EVENT_IDX (K12). */
static void ring_clear(const struct vqb_ring *ring)
{
	uint32_t event = ring_has(ring->features, VQB_F_EVENT_IDX) ? 0 : 2;

	memset(ring->desc, 0, (size_t)VQB_DESC_BYTES(ring->size));
	memset(ring->avail, 0, VQB_AVAIL_BYTES(ring->size) - event);
	memset(ring->used, 0, VQB_USED_BYTES(ring->size) - event);
}

/* Takes hold of a ring whose two indices are `avail_idx` and `used_idx`. */
static void ring_attach(struct vqb_driver *drv, const struct vqb_ring *ring, uint16_t idx)
{
	struct end *e = &drv->end;
	struct word16 *avail_ring = (struct word16 *)((struct ring_head *)ring->avail + 1);
	struct used_elem *used_ring = (struct used_elem *)((struct ring_head *)ring->used + 1);
	bool event_idx = ring_has(ring->features, VQB_F_EVENT_IDX);

	drv->index = ring->index;
	drv->notify_data = ring_has(ring->features, VQB_F_NOTIFICATION_DATA);
	drv->desc = ring->desc;
	drv->avail = avail_ring;
	drv->used = used_ring;
	e->mask = ring->size - 1;
	e->own = ring->avail;
	e->peer = ring->used;
	e->own_event = event_idx ? avail_ring + ring->size : NULL;
	e->peer_event = event_idx ? (const struct word16 *)(used_ring + ring->size) : NULL;
	end_start(e, idx, idx);
	slots_start(drv, ring->size);
	tables_start(drv, ring->features);
	vqb__policy_start(&drv->policy, ring->size, drv->tables.free, e->cursor);
	drv->batch = (struct batch){ 0 };
	e->mode = ring_mode(ring->flags, ring->features, e->cache);
	drv->state = VQB_OK;
}

/* Starts on a ring from nothing. */
static void ring_start(struct vqb_driver *drv, const struct vqb_ring *ring)
{
	ring_clear(ring);
	ring_attach(drv, ring, 0);
	drv->end.asked = 0; /* the ring says so: all zero */
	end_flush(&drv->end, ring->desc, (size_t)VQB_DESC_BYTES(ring->size), drv->end.mode);
	end_flush(&drv->end, ring->avail, VQB_AVAIL_BYTES(ring->size), drv->end.mode);
	end_flush(&drv->end, ring->used, VQB_USED_BYTES(ring->size), drv->end.mode);
}

/* Nothing goes on before a reset. */
static VQB_COLD void stop(struct vqb_driver *drv, int32_t state)
{
	drv->state = state;
	drv->end.mode |= MODE_STOPPED;
}

int32_t vqb_driver_init(void *mem, size_t bytes, const struct vqb_driver_config *config,
			struct vqb_driver **out)
{
	size_t needed = vqb_driver_size(config);
	struct vqb_driver *drv = mem;

	if (!needed || !mem || !out || (uintptr_t)mem % VQB_ALIGN)
		return VQB_E_INVALID;
	if (bytes < needed)
		return VQB_E_TOOBIG;
	memset(drv, 0, sizeof(*drv));
	drv->end.cache = config->cache;
	stop(drv, VQB_E_INVALID);
	drv->max_size = config_size(config);
	drv->slot = (struct slot *)((char *)mem + DRIVER_FIXED);
	vqb__policy_set(&drv->policy, config->policy);
	tables_init(drv, &config->tables, config->max_table);
	slots_start(drv, 0);
	if (config->ring.size)
		ring_start(drv, &config->ring);
	*out = drv;
	return VQB_OK;
}

/* ---- free descriptors ---- */

VQB_TINY uint32_t index_after(const struct vqb_driver *drv, uint32_t at, uint32_t n)
{
	return (at + n) & drv->end.mask;
}

static inline uint32_t runs_total(const struct vqb_driver *drv)
{
	return drv->free.length + drv->free.others;
}

/* Makes the next run the first one, once that is used up. */
static VQB_APART void runs_advance(struct vqb_driver *drv)
{
	struct free_runs *f = &drv->free;

	if (f->front == NO_RUN)
		return;
	f->at = f->front;
	f->length = drv->slot[f->at].run;
	f->others -= f->length;
	f->front = drv->slot[f->at].next_run;
	if (f->front == NO_RUN)
		f->last = NO_RUN;
}

/*
 * Takes `n` descriptors from the first run, at `at`, which has them; they become a run of a chain.
 */
VQB_INLINE void runs_take(struct vqb_driver *drv, uint32_t at, uint32_t n)
{
	struct free_runs *f = &drv->free;
	struct slot *slot = &drv->slot[at];

	slot->run = (uint16_t)n;
	slot->next_run = NO_RUN;
	f->at = index_after(drv, at, n);
	f->length -= n;
	if (VQB_UNLIKELY(!f->length))
		runs_advance(drv);
}

/* Takes `n` descriptors, of which there are enough, as a list of runs; answers its first. */
static uint32_t runs_take_all(struct vqb_driver *drv, uint32_t n)
{
	uint32_t head = drv->free.at, at = NO_RUN;

	while (n) {
		uint32_t run = n < drv->free.length ? n : drv->free.length;
		uint32_t more = drv->free.at;

		runs_take(drv, more, run);
		if (at != NO_RUN)
			drv->slot[at].next_run = (uint16_t)more;
		at = more;
		n -= run;
	}
	return head;
}

/* Puts a run that does not fit on to the first one to the end of the list. */
static VQB_APART void runs_append(struct vqb_driver *drv, uint32_t at, uint32_t n)
{
	struct free_runs *f = &drv->free;

	f->others += n;
	if (f->last == NO_RUN) {
		f->front = at;
	} else {
		struct slot *last = &drv->slot[f->last];

		if (index_after(drv, f->last, last->run) == at) {
			last->run = (uint16_t)(last->run + n);
			return;
		}
		last->next_run = (uint16_t)at;
	}
	f->last = at;
	drv->slot[at].run = (uint16_t)n;
	drv->slot[at].next_run = NO_RUN;
	if (!f->length)
		runs_advance(drv);
}

/* Puts a run back. */
VQB_INLINE void runs_put(struct vqb_driver *drv, uint32_t at, uint32_t n)
{
	struct free_runs *f = &drv->free;

	if (VQB_LIKELY(f->last == NO_RUN && index_after(drv, f->at, f->length) == at))
		f->length += n;
	else
		runs_append(drv, at, n);
}

/* Runs that come back behind each other are put back as one. n 0: none yet. */
struct returned {
	uint32_t at, n;
};

static VQB_APART void runs_put_apart(struct vqb_driver *drv, struct returned back)
{
	runs_put(drv, back.at, back.n);
}

/* The same for the further runs of a chain that has several, from `at` on. */
static VQB_APART struct returned runs_give_more(struct vqb_driver *drv, struct returned back,
						uint32_t at)
{
	for (; at != NO_RUN; at = drv->slot[at].next_run) {
		if (index_after(drv, back.at, back.n) != at) {
			runs_put(drv, back.at, back.n);
			back = (struct returned){ .at = at };
		}
		back.n += drv->slot[at].run;
	}
	return back;
}

/* Gives back all runs of a chain. The last ones are still in `back`. */
VQB_INLINE void runs_give(struct vqb_driver *drv, const struct slot *slot, uint32_t head,
			  uint32_t mask, struct returned *back)
{
	if (((back->at + back->n) & mask) != head) {
		if (VQB_UNLIKELY(back->n))
			runs_put_apart(drv, *back);
		back->at = head;
		back->n = 0;
	}
	back->n += slot->run;
	if (VQB_UNLIKELY(slot->next_run != NO_RUN))
		*back = runs_give_more(drv, *back, slot->next_run);
}

VQB_INLINE void runs_give_end(struct vqb_driver *drv, const struct returned *back)
{
	if (back->n)
		runs_put(drv, back->at, back->n);
}

/* With nothing out, all descriptors are one run again, whatever became of them. */
static void runs_heal(struct vqb_driver *drv)
{
	struct free_runs *f = &drv->free;

	if (f->front == NO_RUN || runs_total(drv) != drv->end.mask + 1)
		return;
	f->length = drv->end.mask + 1;
	f->others = 0;
	f->front = f->last = NO_RUN;
}

/* ---- adding ---- */

/* What became of writing a request's segments as descriptors. */
struct sums {
	uint64_t bytes, readable;
	bool wrong; /* a segment is empty, runs past 2^64 or has `zero` set */
};

/*
 * Checks a segment and answers its length; 0: it is wrong. Length and `zero` are one load and one
 * compare: taken together and less one, only a good pair stays below 2^32 - 1. Not every compiler
 * sees that two loads are one.
 */
VQB_INLINE uint64_t segment_len(const struct vqb_segment *seg)
{
	uint64_t both = vqb_port_peek64((const char *)seg + offsetof(struct vqb_segment, len));

	if (VQB_BIG_ENDIAN)
		both = both << 32 | both >> 32;
	if (VQB_UNLIKELY(both - 1 >= UINT32_MAX || range_wraps(seg->addr, both)))
		return 0;
	return both;
}

/*
 * Writes a request as `readable + writable` descriptors that lie behind each other from entry `at`
 * of a table on. Stops at a segment that is wrong.
 */
VQB_INLINE struct sums write_chain(struct desc *table, uint32_t at, const struct vqb_segment *seg,
				   uint32_t readable, uint32_t writable, uint32_t mode)
{
	const struct vqb_segment *border = seg + readable, *last = border + writable - 1;
	uint64_t link = desc_rest(0, DESC_NEXT, at + 1), len;
	struct sums sums = { .wrong = true };
	struct desc *d = table + at;

	for (;; seg++, d++) {
		len = segment_len(seg);
		if (VQB_UNLIKELY(!len))
			return sums;
		if (seg == border) {
			link |= desc_rest(0, DESC_WRITE, 0);
			sums.readable = sums.bytes;
		}
		sums.bytes += len;
		if (seg == last)
			break;
		store_desc(d, seg->addr, len | link, mode);
		link += desc_rest(0, 0, 1);
	}
	store_desc(d, seg->addr, len | (link & desc_rest(0, DESC_WRITE, 0)), mode);
	if (!writable)
		sums.readable = sums.bytes;
	sums.wrong = false;
	return sums;
}

/* What a request amounts to, its segments checked and not written. */
static struct sums sum_segments(const struct vqb_segment *seg, uint32_t readable, uint32_t writable)
{
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < readable + writable; i++) {
		uint64_t len = segment_len(&seg[i]);

		sums.wrong |= !len;
		sums.bytes += len;
		sums.readable += i < readable ? len : 0;
	}
	return sums;
}

/*
 * Writes segments that were checked as descriptors that lie behind each other, from entry `at` of
 * the ring's table on. The last of them links to `next`, unless it is the `last` of all.
 */
static void write_stretch(const struct vqb_driver *drv, uint32_t at, uint32_t next,
			  const struct vqb_segment *seg, uint32_t count,
			  const struct vqb_segment *border, const struct vqb_segment *last)
{
	const struct vqb_segment *end = seg + count - 1;
	uint64_t link = desc_rest(0, DESC_NEXT | (seg > border ? DESC_WRITE : 0u), at + 1);
	uint32_t mode = drv->end.mode;
	struct desc *d = drv->desc + at;

	for (;; seg++, d++) {
		if (seg == border)
			link |= desc_rest(0, DESC_WRITE, 0);
		if (seg == end)
			break;
		store_desc(d, seg->addr, seg->len | link, mode);
		link += desc_rest(0, 0, 1);
	}
	link &= desc_rest(0, DESC_WRITE, 0);
	if (seg != last)
		link |= desc_rest(0, DESC_NEXT, next);
	store_desc(d, seg->addr, seg->len | link, mode);
	end_flush(&drv->end, drv->desc + at, count * sizeof(struct desc), mode);
}

/* The same in the runs that begin at `head`, which may also go round the end of the ring. */
static void write_scattered(const struct vqb_driver *drv, uint32_t head,
			    const struct vqb_segment *seg, uint32_t readable, uint32_t writable)
{
	const struct vqb_segment *border = seg + readable, *last = border + writable - 1;
	uint32_t next, left, count;

	for (uint32_t run = head; run != NO_RUN; run = next) {
		uint32_t at = run;

		next = drv->slot[run].next_run;
		for (left = drv->slot[run].run; left; left -= count, at = 0) {
			uint32_t to_end = drv->end.mask + 1 - at;

			count = left < to_end ? left : to_end;
			write_stretch(drv, at, count < left ? 0 : next, seg, count, border, last);
			seg += count;
		}
	}
}

/* The status of a request whose segments were looked at. */
VQB_INLINE int32_t sums_status(const struct sums *sums)
{
	if (VQB_UNLIKELY(sums->wrong))
		return VQB_E_INVALID;
	return VQB_UNLIKELY(sums->bytes > UINT64_C(1) << 32) ? VQB_E_TOOBIG : VQB_OK;
}

/*
 * Enters a chain of `n` descriptors, in the ring and in its table, that are written, into the
 * available ring.
 */
VQB_INLINE void lend(struct vqb_driver *drv, uint32_t head, uint32_t held, uint32_t n, enum way way,
		     const struct sums *sums, void *token, uint32_t mode)
{
	struct slot *slot = &drv->slot[head];
	uint64_t writable = sums->bytes - sums->readable;
	uint32_t next = drv->end.next;

	slot->token = token;
	slot->writable = writable > UINT32_MAX ? UINT32_MAX : (uint32_t)writable;
	slot->position = next;
	slot->held = (uint16_t)held;
	store16(&drv->avail[next & drv->end.mask], (uint16_t)head, mode);
	drv->end.next = next + 1;
	drv->count.descriptors += n;
	drv->policy.count[way]++;
}

/* Do the next `n` free descriptors not lie in one piece of the table? */
VQB_INLINE bool in_pieces(const struct vqb_driver *drv, uint32_t n)
{
	return n > drv->free.length || drv->free.at + n > drv->end.mask + 1;
}

/*
 * The segments are checked first: what is taken from the front of the free runs could only be put
 * back at their end, out of turn.
 */
static VQB_APART int32_t add_scattered(struct vqb_driver *drv, const struct vqb_segment *seg,
				       uint32_t readable, uint32_t writable, void *token,
				       enum way way)
{
	struct sums sums = sum_segments(seg, readable, writable);
	uint32_t n = readable + writable, head;
	int32_t status = sums_status(&sums);

	if (status)
		return status;
	head = runs_take_all(drv, n);
	write_scattered(drv, head, seg, readable, writable);
	lend(drv, head, HELD_DIRECT, n, way, &sums, token, drv->end.mode);
	return VQB_OK;
}

/*
 * One segment, which always goes direct: the usual request of consoles and networks, for two thirds
 * of the price that it has as a chain.
 */
VQB_INLINE int32_t add_single(struct vqb_driver *drv, const struct vqb_segment *seg,
			      uint32_t writable, void *token, uint32_t mode)
{
	uint32_t head = drv->free.at;
	uint64_t len = segment_len(seg);
	struct sums sums = { .bytes = len, .readable = writable ? 0 : len };

	if (VQB_UNLIKELY(!len))
		return VQB_E_INVALID;
	store_desc(&drv->desc[head], seg->addr, len | desc_rest(0, writable ? DESC_WRITE : 0u, 0),
		   mode);
	end_flush(&drv->end, drv->desc + head, sizeof(struct desc), mode);
	runs_take(drv, head, 1);
	lend(drv, head, HELD_DIRECT, 1, WAY_SINGLE, &sums, token, mode);
	return VQB_OK;
}

/* In neither case is anything taken before the segments are known to be good. */
VQB_INLINE int32_t add_direct(struct vqb_driver *drv, const struct vqb_segment *seg,
			      uint32_t readable, uint32_t writable, void *token, enum way way,
			      uint32_t mode)
{
	uint32_t n = readable + writable, head = drv->free.at;
	struct sums sums = write_chain(drv->desc, head, seg, readable, writable, mode);
	int32_t status = sums_status(&sums);

	if (VQB_UNLIKELY(status))
		return status;
	end_flush(&drv->end, drv->desc + head, n * sizeof(struct desc), mode);
	runs_take(drv, head, n);
	lend(drv, head, HELD_DIRECT, n, way, &sums, token, mode);
	return VQB_OK;
}

VQB_INLINE int32_t add_indirect(struct vqb_driver *drv, const struct vqb_segment *seg,
				uint32_t readable, uint32_t writable, void *token, enum way way,
				uint32_t mode)
{
	uint32_t n = readable + writable, number = drv->slot[drv->tables.free - 1].free_table;
	uint32_t head = drv->free.at;
	size_t first = (size_t)number * drv->tables.length;
	struct desc *table = drv->tables.host + first;
	struct sums sums = write_chain(table, 0, seg, readable, writable, mode);
	int32_t status = sums_status(&sums);

	if (VQB_UNLIKELY(status))
		return status;
	drv->tables.free--;
	store_desc(&drv->desc[head], drv->tables.addr + first * sizeof(struct desc),
		   desc_rest(n * (uint32_t)sizeof(struct desc), DESC_INDIRECT, 0), mode);
	end_flush(&drv->end, table, n * sizeof(struct desc), mode);
	end_flush(&drv->end, drv->desc + head, sizeof(struct desc), mode);
	runs_take(drv, head, 1);
	lend(drv, head, number, n + 1, way, &sums, token, mode);
	return VQB_OK;
}

VQB_INLINE int32_t add(struct vqb_driver *drv, const struct vqb_segment *seg, uint32_t readable,
		       uint32_t writable, void *token, uint32_t mode)
{
	const struct end *e = &drv->end;
	uint64_t all = (uint64_t)readable + writable;
	uint32_t n = (uint32_t)all;
	enum way way;

	if (all == 1 && drv->free.length)
		return add_single(drv, seg, writable, token, mode);
	if (VQB_UNLIKELY(all - 1 > e->mask))
		return all ? VQB_E_TOOBIG : VQB_E_INVALID;
	/* The rules of indirect.h. */
	way = policy_way(&drv->policy, n, runs_total(drv), e->next - e->cursor, drv->tables.free,
			 drv->tables.length, e->next);
	if (way < WAY_NO_ROOM) {
		if (VQB_LIKELY(!in_pieces(drv, n)))
			return add_direct(drv, seg, readable, writable, token, way, mode);
		if (way == WAY_CHOSEN)
			way = policy_in_pieces(&drv->policy, n, n > drv->free.length,
					       e->mask + 1 - drv->free.at, drv->tables.free,
					       drv->tables.length);
		if (way < WAY_NO_ROOM)
			return add_scattered(drv, seg, readable, writable, token, way);
	}
	if (VQB_LIKELY(way > WAY_NO_ROOM))
		return add_indirect(drv, seg, readable, writable, token, way, mode);
	return VQB_E_NOSPC;
}

static VQB_COLD int32_t add_special(struct vqb_driver *drv, const struct vqb_segment *seg,
				    uint32_t readable, uint32_t writable, void *token)
{
	return drv->state ? drv->state : add(drv, seg, readable, writable, token, drv->end.mode);
}

int32_t vqb_driver_add(struct vqb_driver *drv, const struct vqb_segment *seg, uint32_t readable,
		       uint32_t writable, void *token)
{
	if (!is_plain(drv->end.mode))
		return add_special(drv, seg, readable, writable, token);
	return add(drv, seg, readable, writable, token, MODE_PLAIN);
}

VQB_INLINE int32_t add_list(struct vqb_driver *drv, const struct vqb_submission *list, uint32_t n,
			    uint32_t *added, uint32_t mode)
{
	const struct vqb_submission *next = list, *end = behind(list, n * sizeof(*list));
	int32_t status = VQB_OK;

	for (; next != end; next++) {
		status = add(drv, next->seg, next->readable, next->writable, next->token, mode);
		if (VQB_UNLIKELY(status))
			break;
	}
	*added = (uint32_t)(next - list);
	return status;
}

static VQB_COLD int32_t add_list_special(struct vqb_driver *drv, const struct vqb_submission *list,
					 uint32_t n, uint32_t *added)
{
	*added = 0;
	return drv->state ? drv->state : add_list(drv, list, n, added, drv->end.mode);
}

int32_t vqb_driver_add_list(struct vqb_driver *drv, const struct vqb_submission *list, uint32_t n,
			    uint32_t *added)
{
	if (!is_plain(drv->end.mode))
		return add_list_special(drv, list, n, added);
	return add_list(drv, list, n, added, MODE_PLAIN);
}

/* ---- notifying ---- */

/*
 * What was added since the last expose goes to memory, where the device can't look into the cache.
 */
VQB_INLINE void flush_avail(const struct vqb_driver *drv, uint32_t mode)
{
	const struct end *e = &drv->end;

	if (mode & MODE_CACHE)
		vqb__end_flush_own(e, sizeof(struct word16), e->exposed, e->next);
}

enum notify_call { CALL_EXPOSE, CALL_PUBLISH, CALL_TURN };

static VQB_COLD uint32_t notify_special(struct vqb_driver *drv, enum notify_call call)
{
	struct end *e = &drv->end;

	if (drv->state)
		return VQB_QUIET;
	flush_avail(drv, e->mode);
	if (call == CALL_PUBLISH)
		return vqb__end_publish_any(e);
	if (call == CALL_TURN)
		return vqb__end_turn_any(e);
	vqb__end_expose_any(e);
	return VQB_QUIET;
}

void vqb_driver_expose(struct vqb_driver *drv)
{
	if (!is_plain(drv->end.mode))
		notify_special(drv, CALL_EXPOSE);
	else
		end_expose(&drv->end, MODE_PLAIN);
}

uint32_t vqb_driver_publish(struct vqb_driver *drv)
{
	if (!is_plain(drv->end.mode))
		return notify_special(drv, CALL_PUBLISH);
	return end_publish(&drv->end, MODE_PLAIN);
}

uint32_t vqb_driver_turn(struct vqb_driver *drv)
{
	if (!is_plain(drv->end.mode))
		return notify_special(drv, CALL_TURN);
	return end_turn(&drv->end, MODE_PLAIN);
}

uint32_t vqb_driver_arm(struct vqb_driver *drv)
{
	return drv->state ? VQB_QUIET : vqb__end_arm_any(&drv->end, 0);
}

/* Requests that the device can complete. */
static uint32_t lent(const struct vqb_driver *drv)
{
	return drv->end.exposed - drv->end.cursor;
}

uint32_t vqb_driver_postpone(struct vqb_driver *drv, uint32_t intent)
{
	uint32_t wanted = lent(drv);

	if (drv->state)
		return VQB_QUIET;
	if (intent == VQB_POSTPONE_LONG)
		wanted = wanted * 3 / 4;
	else if (intent != VQB_POSTPONE_EMPTIED)
		wanted /= 4;
	return vqb__end_arm_any(&drv->end, drv->end.own_event && wanted ? wanted - 1 : 0);
}

void vqb_driver_disarm(struct vqb_driver *drv)
{
	if (!drv->state)
		vqb__end_disarm_any(&drv->end);
}

uint32_t vqb_driver_notification(const struct vqb_driver *drv)
{
	return drv->index | (drv->notify_data ? (drv->end.exposed & 0xffff) << 16 : 0);
}

/* ---- reaping ---- */

/*
 * Completions to reap. The device's index is looked at when what was seen is used up; one that
 * runs past what was lent breaks the queue (SR-DRV-41).
 */
VQB_INLINE uint32_t reapable(struct vqb_driver *drv, uint32_t mode)
{
	struct end *e = &drv->end;
	uint32_t ahead;

	if (e->seen == e->cursor) {
		ahead = end_ahead(e, mode);
		if (VQB_UNLIKELY(ahead > lent(drv))) {
			stop(drv, VQB_E_BROKEN);
			return 0;
		}
		e->seen += ahead;
		if (mode & MODE_CACHE)
			vqb__end_invalidate_peer(e, sizeof(struct used_elem), e->cursor, e->seen);
	}
	return e->seen - e->cursor;
}

/* What it takes to tell which heads the device has been shown: the same for all that are reaped. */
struct shown {
	struct slot *slot;
	uint32_t mask;
	uint32_t newest; /* position in the available ring */
	uint32_t hidden; /* of the newest ones, so many are not exposed */
};

VQB_INLINE struct shown shown_now(const struct vqb_driver *drv)
{
	const struct end *e = &drv->end;

	return (struct shown){ .slot = drv->slot,
			       .mask = e->mask,
			       .newest = e->next - 1,
			       .hidden = e->next - e->exposed };
}

/*
 * Is `id`, all 32 bits of it, the head of a chain that the device has been shown? (K18) Those it
 * has not been shown are the newest few, however long the others have been out.
 */
VQB_INLINE bool is_lent(const struct shown *shown, uint32_t id)
{
	return id <= shown->mask && shown->slot[id].held != HELD_NOT &&
	       shown->newest - shown->slot[id].position >= shown->hidden;
}

/* Hands back a request, and takes back its table and its descriptors. */
VQB_INLINE void finish(struct vqb_driver *drv, struct slot *slot, uint32_t head, uint32_t len,
		       uint32_t mask, struct vqb_done *done, struct returned *back)
{
	uint32_t held = slot->held;

	done->token = slot->token;
	done->len = len;
	done->flags = 0;
	if (VQB_UNLIKELY(len > slot->writable)) {
		done->len = slot->writable;
		done->flags = VQB_DONE_OVERLONG;
		drv->count.overlong++;
	}
	slot->held = HELD_NOT;
	if (held < HELD_DIRECT)
		drv->slot[drv->tables.free++].free_table = (uint16_t)held;
	runs_give(drv, slot, head, mask, back);
}

/* Reaps `pending` requests, which are there. */
VQB_INLINE uint32_t reap(struct vqb_driver *drv, struct vqb_done *done, uint32_t pending,
			 uint32_t mode)
{
	uint32_t n, cursor = drv->end.cursor;
	const struct used_elem *used = drv->used;
	const struct shown shown = shown_now(drv);
	struct returned back = { 0 };

	for (n = 0; n < pending; n++, cursor++) {
		const struct used_elem *elem = &used[cursor & shown.mask];
		uint32_t id = load32(&elem->id, mode), len = load32(&elem->len, mode);

		if (VQB_UNLIKELY(!is_lent(&shown, id))) {
			stop(drv, VQB_E_BROKEN);
			break;
		}
		finish(drv, &shown.slot[id], id, len, shown.mask, &done[n], &back);
	}
	drv->end.cursor = cursor;
	runs_give_end(drv, &back);
	return n;
}

/*
 * IN_ORDER: fetches the element at the cursor, which stands for all requests up to its own. That
 * one must be out, and the index must have moved as far.
 */
static bool next_batch(struct vqb_driver *drv)
{
	const struct end *e = &drv->end;
	const struct used_elem *elem = &drv->used[e->cursor & e->mask];
	const struct shown shown = shown_now(drv);
	uint32_t id = load32(&elem->id, e->mode), ahead;

	if (!is_lent(&shown, id))
		return false;
	ahead = drv->slot[id].position - e->cursor;
	if (ahead >= e->seen - e->cursor)
		return false;
	drv->batch.left = ahead + 1;
	drv->batch.len = load32(&elem->len, e->mode);
	return true;
}

/* One request of a batch. All but the last were written in full, or they would have ended it. */
static void finish_in_order(struct vqb_driver *drv, struct vqb_done *done, struct returned *back)
{
	struct batch *b = &drv->batch;
	uint32_t head = b->oldest, implied = --b->left;

	b->oldest = index_after(drv, head, drv->slot[head].run);
	finish(drv, &drv->slot[head], head, implied ? drv->slot[head].writable : b->len,
	       drv->end.mask, done, back);
	if (implied)
		done->flags |= VQB_DONE_IMPLIED;
	drv->end.cursor++;
}

static uint32_t reap_in_order(struct vqb_driver *drv, struct vqb_done *done, uint32_t pending)
{
	struct returned back = { 0 };
	uint32_t n;

	for (n = 0; n < pending; n++) {
		if (!drv->batch.left && !next_batch(drv)) {
			stop(drv, VQB_E_BROKEN);
			break;
		}
		finish_in_order(drv, &done[n], &back);
	}
	runs_give_end(drv, &back);
	return n;
}

static VQB_COLD uint32_t reap_special(struct vqb_driver *drv, struct vqb_done *done,
				      uint32_t pending)
{
	if (drv->end.mode & MODE_IN_ORDER)
		return reap_in_order(drv, done, pending);
	return reap(drv, done, pending, drv->end.mode);
}

static VQB_COLD void tell_policy(struct vqb_driver *drv)
{
	const struct end *e = &drv->end;
	const struct policy_news news = { .cursor = e->cursor,
					  .in_flight = e->next - e->cursor,
					  .segments = drv->count.descriptors,
					  .notified = e->notified };

	vqb__policy_due(&drv->policy, &news, e->cursor == e->seen);
}

/*
 * Tables that came back together lie on the stack from `first` on: turned round, so that they are
 * lent again in the order in which they came. Requests that come and go in order then use tables in
 * order, which caches like, however many of them are out.
 */
static VQB_APART void tables_turn(struct vqb_driver *drv, uint32_t first)
{
	struct slot *slot = drv->slot;
	uint32_t last = drv->tables.free - 1;

	for (; first < last; first++, last--) {
		uint16_t table = slot[first].free_table;

		slot[first].free_table = slot[last].free_table;
		slot[last].free_table = table;
	}
}

/* Not for the compiler to merge with its caller, which often finds that there is nothing to do. */
static VQB_APART uint32_t reap_some(struct vqb_driver *drv, struct vqb_done *done, uint32_t pending)
{
	uint32_t tables = drv->tables.free;
	uint32_t n = !is_plain(drv->end.mode) ? reap_special(drv, done, pending)
					      : reap(drv, done, pending, MODE_PLAIN);

	if (drv->tables.free > tables + 1)
		tables_turn(drv, tables);
	runs_heal(drv);
	drv->count.completions += n;
	if (policy_reaped(&drv->policy, drv->end.next, drv->end.cursor, n))
		tell_policy(drv);
	return n;
}

static VQB_COLD uint32_t reapable_special(struct vqb_driver *drv)
{
	return drv->state ? 0 : reapable(drv, drv->end.mode);
}

uint32_t vqb_driver_reap(struct vqb_driver *drv, struct vqb_done *done, uint32_t max)
{
	uint32_t pending =
		!is_plain(drv->end.mode) ? reapable_special(drv) : reapable(drv, MODE_PLAIN);

	pending = pending < max ? pending : max;
	return pending ? reap_some(drv, done, pending) : 0;
}

/* ---- starting over ---- */

int32_t vqb_driver_reset(struct vqb_driver *drv, const struct vqb_ring *ring)
{
	if (!ring) {
		stop(drv, VQB_E_INVALID);
		return VQB_OK;
	}
	if (!ring_usable(ring, drv->max_size))
		return VQB_E_INVALID;
	if (vqb_driver_in_flight(drv))
		return VQB_E_BUSY;
	ring_start(drv, ring);
	return VQB_OK;
}

int32_t vqb_driver_set_policy(struct vqb_driver *drv, const struct vqb_indirect_policy *policy)
{
	if (!vqb__policy_usable(policy))
		return VQB_E_INVALID;
	if (vqb_driver_in_flight(drv))
		return VQB_E_BUSY;
	vqb__policy_set(&drv->policy, policy);
	vqb__policy_start(&drv->policy, drv->end.mask + 1, drv->tables.free, drv->end.cursor);
	return VQB_OK;
}

void vqb_driver_needs_reset(struct vqb_driver *drv)
{
	if (!drv->state)
		stop(drv, VQB_E_NEEDS_RESET);
}

int32_t vqb_driver_save(const struct vqb_driver *drv, struct vqb_driver_saved *saved)
{
	if (drv->state)
		return drv->state;
	if (vqb_driver_in_flight(drv))
		return VQB_E_BUSY;
	*saved = (struct vqb_driver_saved){ .desc = (uint16_t)drv->free.at };
	saved->avail = saved->used = (uint16_t)drv->end.cursor;
	return VQB_OK;
}

/* Are both indices in memory at `idx`, as on a ring that was saved with nothing in flight? */
static bool ring_stands_at(const struct vqb_driver *drv, const struct vqb_ring *ring, uint16_t idx)
{
	uint32_t mode = ring_mode(ring->flags, ring->features, drv->end.cache);
	const struct ring_head *avail = ring->avail, *used = ring->used;

	/*
	 * All of the own ring: an old line, flushed with a new entry, would put old neighbours
	 * back.
	 */
	end_invalidate(&drv->end, avail, VQB_AVAIL_BYTES(ring->size), mode);
	end_invalidate(&drv->end, &used->idx, sizeof(used->idx), mode);
	return load16(&avail->idx, mode) == idx && load16(&used->idx, mode) == idx;
}

int32_t vqb_driver_restore(struct vqb_driver *drv, const struct vqb_ring *ring,
			   const struct vqb_driver_saved *saved)
{
	if (!ring_usable(ring, drv->max_size) || saved->avail != saved->used ||
	    saved->desc >= ring->size || saved->zero)
		return VQB_E_INVALID;
	if (vqb_driver_in_flight(drv))
		return VQB_E_BUSY;
	if (!ring_stands_at(drv, ring, saved->avail))
		return VQB_E_INVALID;
	ring_attach(drv, ring, saved->avail);
	drv->free.at = drv->batch.oldest = saved->desc;
	return VQB_OK;
}

int32_t vqb_driver_detach(struct vqb_driver *drv, void **tokens, uint32_t max, uint32_t *n)
{
	*n = 0;
	if (drv->state != VQB_E_INVALID)
		return VQB_E_BUSY;
	for (uint32_t head = 0; head < drv->max_size && vqb_driver_in_flight(drv); head++) {
		if (drv->slot[head].held == HELD_NOT)
			continue;
		if (*n == max)
			return VQB_E_NOSPC;
		tokens[(*n)++] = drv->slot[head].token;
		drv->slot[head].held = HELD_NOT;
		drv->end.cursor++;
	}
	return VQB_OK;
}

/* ---- asking ---- */

int32_t vqb_driver_state(const struct vqb_driver *drv)
{
	return drv->state;
}

uint32_t vqb_driver_free(const struct vqb_driver *drv)
{
	return drv->state == VQB_E_INVALID ? 0 : runs_total(drv);
}

uint32_t vqb__driver_entries(const struct vqb_driver *drv)
{
	return drv->state == VQB_E_INVALID ? 0 : drv->end.mask + 1;
}

uint32_t vqb_driver_in_flight(const struct vqb_driver *drv)
{
	return drv->end.next - drv->end.cursor;
}

uint32_t vqb_driver_pending(const struct vqb_driver *drv)
{
	uint32_t ahead = drv->state ? 0 : end_ahead(&drv->end, drv->end.mode);

	return ahead <= lent(drv) ? ahead : 0;
}

uint32_t vqb_driver_oldest(const struct vqb_driver *drv, void **token)
{
	uint32_t oldest = 0;

	for (uint32_t head = 0; head < drv->max_size; head++) {
		uint32_t age = drv->end.next - drv->slot[head].position;

		if (drv->slot[head].held == HELD_NOT || age <= oldest)
			continue;
		oldest = age;
		*token = drv->slot[head].token;
	}
	return oldest;
}

void vqb_driver_read_counters(const struct vqb_driver *drv, struct vqb_driver_counters *out)
{
	const uint64_t *way = drv->policy.count;

	out->requests = end_written(&drv->end) - drv->count.requests;
	out->descriptors = drv->count.descriptors;
	out->direct_single = way[WAY_SINGLE];
	out->direct_chosen = way[WAY_CHOSEN];
	out->direct_no_table = way[WAY_NO_TABLE];
	out->indirect_chosen = way[WAY_TABLE];
	out->indirect_whole = way[WAY_WHOLE];
	out->indirect_no_room = way[WAY_FORCED];
	out->indirect = way[WAY_TABLE] + way[WAY_WHOLE] + way[WAY_FORCED];
	out->no_room = way[WAY_NO_ROOM];
	out->completions = drv->count.completions;
	out->overlong = drv->count.overlong;
	out->notified = drv->end.notified;
	out->suppressed = drv->end.suppressed;
}

void vqb_driver_clear_counters(struct vqb_driver *drv)
{
	memset(&drv->count, 0, sizeof(drv->count));
	vqb__policy_clear(&drv->policy);
	drv->count.requests = end_written(&drv->end);
	drv->end.notified = drv->end.suppressed = 0;
}
