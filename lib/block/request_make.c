/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_make.c: the next request, of the oldest bio that waits and of those that can share it.
 *
 * Those that wait are looked at in windows: they are sorted by sector, once, and each is linked to
 * the one behind it on the disk if the two may share a request. Whether they will is up to limits,
 * and seen when the request is made: from the front of the chain that the oldest bio is in, as far
 * as they allow. So there is no front merge that could be measured from the wrong end (K32), and
 * what was counted is what is sent.
 */
#include "request.h"
#include "sort.h"

/* ---- a list of bios by submission ---- */

/* Two sorted lists, linked by own.after, as one. */
static struct vqb_bio *merge(struct vqb_bio *a, struct vqb_bio *b)
{
	struct vqb_bio *list, **tail = &list;

	while (a && b) {
		if ((int32_t)(b->own.order - a->own.order) < 0) {
			*tail = b;
			tail = &b->own.after;
			b = *tail;
		} else {
			*tail = a;
			tail = &a->own.after;
			a = *tail;
		}
	}
	*tail = a ? a : b;
	return list;
}

/*
 * Sorts by merging, in no memory but theirs, as there may be any number of them: run[i] has 2^i
 * bios or none, as in counting. The last one takes all that there may be.
 */
static struct vqb_bio *sort_list(struct vqb_bio *list)
{
	struct vqb_bio *run[17] = { NULL }, *bio;
	const uint32_t last = sizeof(run) / sizeof(run[0]) - 1;
	uint32_t i;

	while (list) {
		bio = list;
		list = bio->own.after;
		bio->own.after = NULL;
		for (i = 0; i < last && run[i]; i++) {
			bio = merge(run[i], bio);
			run[i] = NULL;
		}
		run[i] = merge(run[i], bio);
	}
	for (i = 0, bio = NULL; i <= last; i++)
		bio = merge(run[i], bio);
	return bio;
}

void vqb_requests_sort(struct vqb_bio **list)
{
	struct vqb_bio *bio;

	for (bio = *list; bio; bio = bio->next)
		bio->own.after = bio->next;
	*list = sort_list(*list);
	for (bio = *list; bio; bio = bio->next) {
		bio->next = bio->own.after;
		bio->own.after = NULL;
	}
}

/* ---- windows: entries are bios, keys their sectors ---- */

/* How much later one was submitted; with both on the list the difference has not wrapped. */
static uint32_t lateness(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	return bio->own.order - rq->fresh->own.order;
}

/*
 * Where two bios of a sorted window overlap, the later one of them can't be in it, nor can what
 * came after it. Answers the lateness of the first such; UINT32_MAX: none. Another look is needed
 * after a cut, as not every pair was compared.
 */
static uint32_t first_overlap(const struct vqb_requests *rq, const struct sort_entry *e, uint32_t n)
{
	const struct vqb_bio *far = e->item, *bio;
	uint32_t cut = UINT32_MAX, late, i;

	for (i = 1; i < n; i++) {
		bio = e[i].item;
		if (VQB_UNLIKELY(e[i].key < far->own.end)) {
			late = lateness(rq, bio);
			if (late < lateness(rq, far))
				late = lateness(rq, far);
			cut = late < cut ? late : cut;
		}
		if (VQB_LIKELY(bio->own.end > far->own.end))
			far = bio;
	}
	return cut;
}

/* Leaves what came before, and answers how many. The oldest is not later than itself: it stays. */
static uint32_t keep_before(const struct vqb_requests *rq, struct sort_entry *e, uint32_t n,
			    uint32_t cut)
{
	uint32_t kept = 0, i;

	for (i = 0; i < n; i++) {
		if (lateness(rq, e[i].item) < cut)
			e[kept++] = e[i];
	}
	return kept;
}

static int can_share(const struct vqb_bio *bio)
{
	return !bio->own.alone && bio->state == VQB_BIO_WAITING;
}

/* The bios from `fresh` on that may be looked at; *sorted: they ascend, and none overlap. */
static uint32_t gather(const struct vqb_requests *rq, int *sorted)
{
	uint32_t n = 0, most = rq->misses < REQUEST_MISSES ? rq->window : REQUEST_EVIDENCE;
	struct vqb_bio *bio = rq->fresh;
	uint64_t end = 0;

	if (most > rq->room)
		most = rq->room;
	*sorted = 1;
	for (; bio && n < most && can_share(bio); bio = bio->next, n++) {
		*sorted &= bio->sector >= end;
		end = bio->own.end;
		rq->entry[n] = (struct sort_entry){ bio->sector, bio };
	}
	return n;
}

static int alike(const struct vqb_bio *a, const struct vqb_bio *b)
{
	return a->op == b->op && a->flags == b->flags && a->ioprio == b->ioprio;
}

static int takes_several(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	const struct vqb_range_limits *ranges = range_limits(&rq->limits, bio->op);

	return ranges && ranges->max_ranges > 1;
}

/*
 * Links each of a sorted window to the one that it can share a request with. Ranges of which the
 * device takes several at once need not touch: those of one operation are all linked.
 */
static void link_neighbours(struct vqb_requests *rq, const struct sort_entry *e, uint32_t n)
{
	struct vqb_bio *range[VQB_BLK_SECURE_ERASE - VQB_BLK_DISCARD + 1] = { NULL };
	struct vqb_bio *bio, *last = NULL, *before;
	uint32_t i;

	for (i = 0; i < n; i++, last = bio) {
		bio = e[i].item;
		before = last;
		if (VQB_UNLIKELY(bio->op > VQB_BLK_OUT && takes_several(rq, bio))) {
			before = range[bio->op - VQB_BLK_DISCARD];
			range[bio->op - VQB_BLK_DISCARD] = bio;
		} else if (!last || last->own.end != e[i].key) {
			continue;
		}
		if (!before || !alike(before, bio))
			continue;
		before->own.after = bio;
		bio->own.before = before;
		rq->looks.found += before->next != bio;
	}
}

/*
 * Looking around has to pay: each time that it shows nothing but what came in order, or saves the
 * device less time than it takes, more bios are spared of it: 128, 384, 896, and then 1920 each
 * time.
 */
static void learn(struct vqb_requests *rq)
{
	struct request_looks looks = rq->looks;

	if (looks.bios < REQUEST_EVIDENCE)
		return;
	memset(&rq->looks, 0, sizeof(rq->looks));
	if (vqb__request_full_pays(rq, looks.found, looks.ticks)) {
		rq->misses = 0;
		return;
	}
	if (rq->misses < REQUEST_MISSES)
		rq->misses++;
	rq->spared = VQB_REQUESTS_WINDOW * ((1u << rq->misses) - 1);
}

/* Without a window, neighbours that were submitted in order are linked all the same. */
static void link_run(struct vqb_requests *rq)
{
	struct vqb_bio *bio = rq->fresh, *next;
	uint32_t n = 1;

	for (; n < VQB_REQUESTS_WINDOW; n++, bio = next) {
		next = bio->next;
		if (!next || bio->own.end != next->sector || !can_share(bio) || !can_share(next) ||
		    !alike(bio, next))
			break;
		bio->own.after = next;
		next->own.before = bio;
	}
	rq->fresh = bio->next;
	rq->spared -= n < rq->spared ? n : rq->spared;
}

/* Most of those that are spared have no neighbour behind them, which is quick to see. */
VQB_TINY int goes_by(struct vqb_requests *rq, const struct vqb_bio *bio)
{
	struct vqb_bio *next = bio->next;

	if (!rq->spared || bio->op > VQB_BLK_OUT || (next && next->sector == bio->own.end))
		return 0;
	rq->fresh = next;
	rq->spared--;
	return 1;
}

/* The first `n` from `fresh` on have been looked at. */
static void move_on(struct vqb_requests *rq, uint32_t n)
{
	struct vqb_bio *bio = rq->fresh;

	for (; n; n--)
		bio = bio->next;
	rq->fresh = bio;
}

/*
 * Looks for neighbours among the bios from `fresh` on, as many as make a window. After a cut the
 * next one is no longer than twice what was left: it would be cut again.
 */
static void look_around(struct vqb_requests *rq)
{
	struct sort_entry *e = rq->entry;
	uint64_t began = vqb__request_full_ticks(rq);
	uint32_t n, kept, late;
	int sorted;

	n = kept = gather(rq, &sorted);
	if (!n) {
		rq->fresh = rq->fresh->next;
		return;
	}
	if (!sorted) {
		e = vqb__sort(e, e + rq->room, n);
		while ((late = first_overlap(rq, e, kept)) != UINT32_MAX)
			kept = keep_before(rq, e, kept, late);
	}
	link_neighbours(rq, e, kept);
	move_on(rq, kept);
	rq->looks.bios += kept - 1;
	rq->looks.ticks += vqb__request_full_ticks(rq) - began;
	learn(rq);
	if (kept < n)
		rq->window = kept;
	rq->window = rq->window < VQB_REQUESTS_WINDOW / 2 ? 2 * rq->window : VQB_REQUESTS_WINDOW;
}

/* ---- requests ---- */

static struct vqb_bio *front_of_chain(struct vqb_bio *bio)
{
	while (bio->own.before)
		bio = bio->own.before;
	return bio;
}

/* The first of those that the oldest bio can share a request with. */
static struct vqb_bio *look_for_chain(struct vqb_requests *rq, struct vqb_bio *bio)
{
	if (bio != rq->fresh)
		return front_of_chain(bio);
	if ((rq->spared || rq->room == 1) && !takes_several(rq, bio))
		link_run(rq);
	else if (!rq->fresh->next)
		rq->fresh = NULL; /* there is nobody else */
	else
		look_around(rq);
	return front_of_chain(bio);
}

/* Data of the first bio, or as much of it as one request takes. */
static int32_t map_first(const struct vqb_requests *rq, struct vqb_request *r,
			 struct vqb_segment *table, uint32_t room)
{
	const struct vqb_bio *bio = r->bio;
	struct vqb_mapper m = vqb_mapper_over(&rq->limits, bio->vec, bio->nvec, bio->own.sector);
	int32_t status;

	m.at = bio->own.at;
	m.offset = bio->own.offset;
	status = vqb_map_next(&m, table, room, &r->n, &r->bytes);
	r->rest = !status && vqb_mapper_more(&m);
	r->part = r->rest || r->sector != bio->sector;
	r->next = m.sector;
	r->at = m.at;
	r->offset = m.offset;
	return status;
}

/* Is there room for all data of a bio behind what is there? Then it is there, too. */
static int append(const struct vqb_requests *rq, struct vqb_request *r, const struct vqb_bio *bio,
		  struct vqb_segment *table, uint32_t room)
{
	if (VQB_LIKELY(bio->own.plain &&
		       append_vector(&rq->limits, bio->vec, table, room, &r->n, &r->bytes)))
		return 1;
	return !vqb_map_append(&rq->limits, r->sector, bio->vec, bio->nvec, table, room, &r->n,
			       &r->bytes);
}

/* Data of the first bio, or a part of it, and of all behind it that fit as a whole. */
static int32_t make_data(const struct vqb_requests *rq, struct vqb_request *r,
			 struct vqb_segment *table, uint32_t room)
{
	const struct vqb_bio *bio = r->bio;
	int32_t status;

	r->sector = bio->own.sector;
	if (VQB_LIKELY(bio->own.plain && room)) {
		table[0] = bio->vec[0];
		r->n = 1;
		r->bytes = bio->vec[0].len;
	} else {
		status = map_first(rq, r, table, room);
		if (status || r->rest)
			return status;
	}
	for (bio = bio->own.after; bio && append(rq, r, bio, table, room); bio = bio->own.after)
		r->bios++;
	return VQB_OK;
}

/*
 * Adds ranges up to `end`, as long as there is room for them, and answers where it got. What is
 * contiguous to the last range and fits into it becomes part of it.
 */
static uint64_t add_ranges(const struct vqb_limits *limits, const struct vqb_range_limits *ranges,
			   uint64_t sector, uint64_t end, struct vqb_segment *table, uint32_t most,
			   uint32_t *n)
{
	struct vqb_segment *last = *n ? &table[*n - 1] : NULL;
	uint32_t len;

	if (last && last->addr + last->len == sector &&
	    end - sector <= ranges->max_sectors - last->len) {
		last->len += (uint32_t)(end - sector);
		return end;
	}
	for (; sector < end && *n < most; sector += len, ++*n) {
		len = vqb_limits_range(limits, ranges, sector, end - sector);
		table[*n].addr = sector;
		table[*n].len = len;
		table[*n].zero = 0;
	}
	return sector;
}

/* Ranges of the first bio, or of a part of it, and of all others that fit as a whole (K33). */
static int32_t make_ranges(const struct vqb_requests *rq, struct vqb_request *r,
			   struct vqb_segment *table, uint32_t room)
{
	const struct vqb_range_limits *ranges = range_limits(&rq->limits, r->op);
	uint32_t most = room < ranges->max_ranges ? room : ranges->max_ranges, n, len;
	struct vqb_bio *bio = r->bio;

	if (!most)
		return VQB_E_TOOBIG;
	r->next =
		add_ranges(&rq->limits, ranges, bio->own.sector, bio->own.end, table, most, &r->n);
	r->at = r->offset = 0;
	r->rest = r->next != bio->own.end;
	r->part = r->rest || bio->own.sector != bio->sector;
	for (bio = r->rest ? NULL : bio->own.after; bio; bio = bio->own.after, r->bios++) {
		n = r->n;
		len = table[n - 1].len;
		if (add_ranges(&rq->limits, ranges, bio->sector, bio->own.end, table, most,
			       &r->n) == bio->own.end)
			continue;
		r->n = n;
		table[n - 1].len = len;
		break;
	}
	r->bytes = (uint64_t)r->n * VQB_BLK_RANGE_BYTES;
	return VQB_OK;
}

/* The few bytes of an answer, into segments as the caller has them. */
static int32_t make_answer(struct vqb_request *r, struct vqb_segment *table, uint32_t room)
{
	const struct vqb_bio *bio = r->bio;
	uint32_t i;

	if (bio->nvec > room)
		return VQB_E_TOOBIG;
	for (i = 0; i < bio->nvec; i++) {
		table[i] = bio->vec[i];
		r->bytes += table[i].len;
	}
	r->n = bio->nvec;
	return VQB_OK;
}

int32_t vqb_requests_next(struct vqb_requests *rq, struct vqb_request *r, struct vqb_segment *table,
			  uint32_t room)
{
	struct vqb_bio *bio = rq->first;

	if (!bio)
		return VQB_E_AGAIN;
	if (rq->merging) {
		if (VQB_UNLIKELY(rq->full.left))
			vqb__request_full_mark(rq);
		if (bio != rq->fresh || !goes_by(rq, bio))
			bio = look_for_chain(rq, bio);
	}
	r->op = bio->own.step == STEP_DATA ? bio->op : VQB_BLK_FLUSH;
	r->flags = bio->flags & VQB_BIO_UNMAP;
	r->part = r->rest = 0;
	r->ioprio = bio->ioprio;
	r->sector = r->bytes = 0;
	r->n = 0;
	r->bios = 1;
	r->bio = bio;
	if (VQB_LIKELY(r->op <= VQB_BLK_OUT))
		return make_data(rq, r, table, room);
	switch (r->op) {
	case VQB_BLK_FLUSH:
		return VQB_OK;
	case VQB_BLK_GET_ID:
	case VQB_BLK_GET_LIFETIME:
		return make_answer(r, table, room);
	default:
		return make_ranges(rq, r, table, room);
	}
}
