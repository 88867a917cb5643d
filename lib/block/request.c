/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c: the life of a bio, from submit until it is handed back; states.md has it as a table.
 *
 * A bio is on the list as long as something of it is to be sent. A request in flight is a run of
 * `bios` of them, each linked to the one behind it by `next`. Only the first of a run can be on the
 * list at the same time, when it has more than one request can take; it is alone in that one, so
 * its `next` is the list's.
 */
#include "request.h"
#include "sort.h"

size_t vqb__request_room(uint32_t window)
{
	size_t bios = window ? window : VQB_REQUESTS_WINDOW;

	return bios <= VQB_REQUESTS_WINDOW ? 2 * bios * sizeof(struct sort_entry) : 0;
}

size_t vqb_requests_size(const struct vqb_requests_config *config)
{
	size_t room = config ? vqb__request_room(config->window) : 0;

	return room ? VQB_ROUND_UP(sizeof(struct vqb_requests) + room) : 0;
}

static int path_is_good(uint32_t path)
{
	return path <= VQB_PATH_REQUEST;
}

static uint32_t broken_rule(const struct vqb_requests_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || config->zero)
		return VQB_REQUESTS_RULE_FORM;
	if (vqb_limits_check(config->limits, NULL))
		return VQB_REQUESTS_RULE_LIMITS;
	if (!vqb__request_room(config->window))
		return VQB_REQUESTS_RULE_WINDOW;
	if (!path_is_good(config->path))
		return VQB_REQUESTS_RULE_PATH;
	if (config->flags & ~(uint32_t)VQB_REQUESTS_WRITE_THROUGH)
		return VQB_REQUESTS_RULE_FLAGS;
	return VQB_REQUESTS_RULE_FINE;
}

int32_t vqb_requests_check_config(const struct vqb_requests_config *config, uint32_t *rule)
{
	uint32_t broken = broken_rule(config);

	if (rule)
		*rule = broken;
	return broken ? VQB_E_INVALID : VQB_OK;
}

/* No more ranges than a request can carry: none, of none. */
static void bound_ranges(struct vqb_range_limits *r, uint32_t most)
{
	if (r->max_ranges > most)
		r->max_ranges = most;
	if (!most)
		r->max_sectors = 0;
}

static void set_config(struct vqb_requests *rq, const struct vqb_requests_config *config)
{
	rq->features = config->features;
	rq->capacity = config->capacity;
	rq->write_back = config->features & VQB_FEATURE(VQB_BLK_F_FLUSH) &&
			 !(config->flags & VQB_REQUESTS_WRITE_THROUGH);
	rq->limits = *config->limits;
	bound_ranges(&rq->limits.discard, config->max_ranges);
	bound_ranges(&rq->limits.zeroes, config->max_ranges);
	bound_ranges(&rq->limits.erase, config->max_ranges);
}

static void set_path(struct vqb_requests *rq, uint32_t path)
{
	if (path != rq->path) {
		rq->misses = rq->spared = 0;
		memset(&rq->looks, 0, sizeof(rq->looks));
		rq->full.lap = 0;
	}
	rq->path = path;
	vqb__request_full_end(rq);
}

int32_t vqb__request_init(struct vqb_requests *rq, void *room,
			  const struct vqb_requests_config *config)
{
	if (broken_rule(config))
		return VQB_E_INVALID;
	memset(rq, 0, sizeof(*rq));
	set_config(rq, config);
	set_path(rq, config->path);
	rq->full.clock = config->clock;
	rq->full.context = config->context;
	rq->entry = room;
	rq->room = config->window ? config->window : VQB_REQUESTS_WINDOW;
	rq->window = VQB_REQUESTS_WINDOW;
	return VQB_OK;
}

int32_t vqb_requests_init(void *mem, size_t bytes, const struct vqb_requests_config *config,
			  struct vqb_requests **out)
{
	struct vqb_requests *rq = mem;
	int32_t status;

	if (broken_rule(config) || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < vqb_requests_size(config))
		return VQB_E_TOOBIG;
	status = vqb__request_init(rq, rq + 1, config);
	if (!status)
		*out = rq;
	return status;
}

int32_t vqb_requests_configure(struct vqb_requests *rq, const struct vqb_requests_config *config)
{
	struct vqb_bio *bio;

	if (broken_rule(config))
		return VQB_E_INVALID;
	set_config(rq, config);
	for (bio = rq->first; bio; bio = bio->next)
		bio->own.plain = 0;
	return VQB_OK;
}

int32_t vqb_requests_set_path(struct vqb_requests *rq, uint32_t path)
{
	if (!path_is_good(path))
		return VQB_E_INVALID;
	if (rq->outstanding)
		return VQB_E_BUSY;
	set_path(rq, path);
	return VQB_OK;
}

/* ---- the list ---- */

static void append(struct vqb_requests *rq, struct vqb_bio *bio)
{
	bio->next = NULL;
	bio->own.prev = rq->last;
	if (rq->last)
		rq->last->next = bio;
	else
		rq->first = bio;
	rq->last = bio;
	if (!rq->fresh)
		rq->fresh = bio;
	rq->waiting++;
}

static void prepend(struct vqb_requests *rq, struct vqb_bio *bio)
{
	bio->next = rq->first;
	bio->own.prev = NULL;
	if (rq->first)
		rq->first->own.prev = bio;
	else
		rq->last = bio;
	rq->first = bio;
	rq->waiting++;
}

/* Off the list, and out of the chain of neighbours, which falls into two. */
VQB_INLINE void unlink(struct vqb_requests *rq, struct vqb_bio *bio)
{
	struct vqb_bio_own *own = &bio->own;

	if (own->prev)
		own->prev->next = bio->next;
	else
		rq->first = bio->next;
	if (bio->next)
		bio->next->own.prev = own->prev;
	else
		rq->last = own->prev;
	if (rq->fresh == bio)
		rq->fresh = bio->next;
	if (own->before)
		own->before->own.after = NULL;
	if (own->after)
		own->after->own.before = NULL;
	own->before = own->after = NULL;
	rq->waiting--;
	if (!rq->waiting && rq->full.on && !rq->full.pause)
		vqb__request_full_end(rq);
}

/* ---- submit ---- */

/* Shares no request with others, and none is joined across it. */
static int is_apart(const struct vqb_bio *bio)
{
	switch (bio->op) {
	case VQB_BLK_FLUSH:
	case VQB_BLK_GET_ID:
	case VQB_BLK_GET_LIFETIME:
		return 1;
	default:
		return (bio->flags & (VQB_BIO_FUA | VQB_BIO_PREFLUSH | VQB_BIO_NOMERGE)) != 0;
	}
}

int32_t vqb_requests_submit(struct vqb_requests *rq, struct vqb_bio *bio)
{
	struct vqb_bio_own *own = &bio->own;
	int32_t status, apart;
	uint64_t end;

	if (VQB_UNLIKELY(request_is_held(bio)))
		return VQB_E_BUSY;
	if (VQB_LIKELY(request_is_plain(rq, bio))) {
		end = bio->sector + (bio->vec->len >> VQB_SECTOR_SHIFT);
		apart = 0;
		own->plain = 1;
	} else {
		status = vqb__request_status(vqb__request_rule(rq, bio, &end));
		bio->status = status;
		bio->state = VQB_BIO_IDLE;
		if (status)
			return status;
		apart = is_apart(bio);
		own->plain = 0;
	}
	if (!rq->waiting && rq->full.on && request_full_asks(rq))
		vqb__request_full_look(rq);
	own->queue = rq;
	own->before = own->after = NULL;
	own->end = end;
	own->sector = end ? bio->sector : 0;
	own->at = own->offset = own->parts = 0;
	own->order = rq->order++;
	own->error = VQB_OK;
	own->step = STEP_DATA;
	if (request_flushes_first(rq, bio))
		own->step = STEP_PREFLUSH;
	own->alone = (uint8_t)apart;
	own->again = 0;
	bio->state = VQB_BIO_WAITING;
	append(rq, bio);
	rq->outstanding++;
	rq->counters.bios++;
	return VQB_OK;
}

/* ---- on its way ---- */

void vqb_requests_sent(struct vqb_requests *rq, const struct vqb_request *r)
{
	struct vqb_bio *bio = r->bio, *after;
	uint32_t i;

	rq->flying++;
	rq->counters.requests++;
	if (VQB_UNLIKELY(bio->own.step != STEP_DATA))
		rq->counters.flushes++;
	if (VQB_UNLIKELY(r->part))
		rq->counters.parts++;
	bio->own.parts++;
	if (r->rest) {
		bio->own.sector = r->next;
		bio->own.at = r->at;
		bio->own.offset = r->offset;
		bio->state = VQB_BIO_PARTLY;
		return;
	}
	for (i = 1; i < r->bios; i++, bio = after) {
		rq->counters.merged++;
		after = bio->own.after;
		unlink(rq, bio);
		bio->state = VQB_BIO_SENT;
		bio->next = after;
		after->own.parts++;
	}
	unlink(rq, bio);
	bio->state = VQB_BIO_SENT;
}

/* The oldest was looked at with nobody else, and could not go: it may have neighbours by then. */
static void look_again(struct vqb_requests *rq)
{
	struct vqb_bio *bio = rq->first;

	if (bio && rq->fresh == bio->next && !bio->own.before && !bio->own.after)
		rq->fresh = bio;
}

void vqb_requests_full(struct vqb_requests *rq)
{
	rq->counters.full++;
	look_again(rq);
	if (rq->path == VQB_PATH_MERGE_WHEN_FULL && rq->waiting && !rq->full.on)
		vqb__request_full_begin(rq);
}

/* ---- back ---- */

static void hand_back(struct vqb_requests *rq, struct vqb_bio *bio, int32_t status,
		      struct vqb_bio ***tail)
{
	bio->state = VQB_BIO_IDLE;
	bio->status = status;
	bio->next = NULL;
	**tail = bio;
	*tail = &bio->next;
	rq->outstanding--;
	rq->counters.done++;
	if (VQB_UNLIKELY(status))
		rq->counters.errors++;
}

/* The step that comes next; STEP_PREFLUSH, which is none's: there is no other. */
static uint8_t step_after(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	if (bio->own.step == STEP_PREFLUSH)
		return STEP_DATA;
	if (bio->own.step == STEP_DATA && rq->write_back && bio->flags & VQB_BIO_FUA)
		return STEP_POSTFLUSH;
	return STEP_PREFLUSH;
}

/* All of its requests are back. Answers whether the bio has to wait once more. */
static int goes_on(struct vqb_requests *rq, struct vqb_bio *bio)
{
	struct vqb_bio_own *own = &bio->own;
	uint8_t step;

	if (VQB_UNLIKELY(own->error))
		return 0;
	if (VQB_LIKELY(!own->alone && !own->again))
		return 0;
	if (own->again) {
		own->again = 0;
		own->alone = 1;
		own->plain = 0; /* limits may be others by now */
		own->sector = bio->sector;
		own->at = own->offset = 0;
		rq->counters.retried++;
		return 1;
	}
	step = step_after(rq, bio);
	if (step == STEP_PREFLUSH)
		return 0;
	own->step = step;
	return 1;
}

/* One of its requests is back. Answers whether that was the last one, and none is to come. */
static int part_is_back(struct vqb_requests *rq, struct vqb_bio *bio, int32_t status, int shared)
{
	struct vqb_bio_own *own = &bio->own;

	own->parts--;
	if (status && shared && status != VQB_E_AGAIN)
		own->again = 1;
	else if (status && !own->error)
		own->error = status;
	if (bio->state == VQB_BIO_PARTLY && own->error) {
		unlink(rq, bio); /* what was not sent isn't, any more */
		bio->state = VQB_BIO_SENT;
	}
	return !own->parts && bio->state == VQB_BIO_SENT;
}

void vqb_requests_done(struct vqb_requests *rq, struct vqb_bio *bio, uint32_t bios, int32_t status,
		       struct vqb_bio ***tail)
{
	struct vqb_bio *waits = NULL, *next;
	int shared = bios > 1;

	rq->flying--;
	if (VQB_UNLIKELY(rq->full.left))
		vqb__request_full_back(rq);
	for (; bios; bios--, bio = next) {
		next = bio->next;
		if (!part_is_back(rq, bio, status, shared))
			continue;
		if (goes_on(rq, bio)) {
			bio->state = VQB_BIO_PARTLY;
			bio->next = waits;
			waits = bio;
			continue;
		}
		hand_back(rq, bio, bio->own.error, tail);
	}
	for (; waits; waits = next) {
		next = waits->next;
		prepend(rq, waits);
	}
}

int32_t vqb_requests_cancel(struct vqb_requests *rq, struct vqb_bio *bio)
{
	if (bio->own.queue != rq || bio->state <= VQB_BIO_PLUGGED)
		return VQB_E_INVALID;
	if (bio->state != VQB_BIO_WAITING)
		return VQB_E_LATE;
	unlink(rq, bio);
	bio->state = VQB_BIO_IDLE;
	bio->status = VQB_E_CANCELLED;
	bio->next = NULL;
	rq->outstanding--;
	rq->counters.cancelled++;
	return VQB_OK;
}

void vqb_requests_abandon(struct vqb_requests *rq, struct vqb_bio ***tail)
{
	struct vqb_bio *bio;

	while (rq->first) {
		bio = rq->first;
		unlink(rq, bio);
		hand_back(rq, bio, bio->state == VQB_BIO_WAITING ? VQB_E_CANCELLED : VQB_E_AGAIN,
			  tail);
	}
	vqb__request_full_end(rq);
}

/* ---- queries ---- */

uint32_t vqb_requests_waiting(const struct vqb_requests *rq)
{
	return rq->waiting;
}

uint32_t vqb_requests_outstanding(const struct vqb_requests *rq)
{
	return rq->outstanding;
}

void vqb_requests_read_counters(const struct vqb_requests *rq, struct vqb_requests_counters *out)
{
	*out = rq->counters;
}

void vqb_requests_clear_counters(struct vqb_requests *rq)
{
	memset(&rq->counters, 0, sizeof(rq->counters));
}
