/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_full.c: from when until when bios share requests, where they do so only while there is no
 * room (MERGE_WHEN_FULL).
 *
 * It begins when the ring is full. If it ended as soon as nothing waits, then merging would end
 * itself: fewer requests leave room, so the next bios go alone, until the ring is full again. Under
 * more load than the device can take apart it would always be busy with as many requests as it can
 * serve, merged just so far as needed, and each of them would wait for a whole ring of others.
 *
 * So the ring counts as full as long as it would be, had nothing been merged. How fast the device
 * is with requests that share nothing is measured when the ring has filled up, as these come back:
 * the lap is the ticks in which `timed` of them do. From then on each bio that is submitted costs
 * its part of a lap, time pays for it, and what is owed beyond a full ring is how far behind the
 * device would be. What comes back first is not timed, unless it is all there is: a device that
 * does many at a time may have been anywhere in its work when the ring was full.
 *
 *   behind   in bios, until the lap is known: submitted since it was full, less what came back;
 *            then in ticks times `timed`, so that nothing has to be divided
 *
 * Without a clock merging ends when nothing waits.
 */
#include "request.h"

enum {
	MOST_LAPS = 16,       /* that it may be behind: so it ends soon after the load does */
	LONGEST = 1 << 22,    /* bios: after that the lap is measured anew */
	TICKS_SHIFT_MAX = 40, /* a lap of more ticks is none */
	MOST_ROOM = 1 << 17,  /* requests, or what is behind would be more than it can say */
	PAUSE = 32,           /* bios from one look to the next, */
	LONG_PAUSE = 512,     /* and while half of those laps is left: the counter is not free */
};

static uint64_t now(const struct request_full *f)
{
	return f->clock ? f->clock(f->context) : vqb_port_ticks();
}

/* What was submitted since the last look costs its part. */
static void add_news(struct vqb_requests *rq)
{
	struct request_full *f = &rq->full;
	int64_t each = f->left ? 1 : (int64_t)f->lap, most = each * f->room * MOST_LAPS;
	uint32_t bios = rq->order - f->seen;

	f->seen = rq->order;
	if (bios < MOST_LAPS * f->room)
		f->behind += bios * each;
	if (bios >= MOST_LAPS * f->room || f->behind > most)
		f->behind = most;
}

void vqb__request_full_begin(struct vqb_requests *rq)
{
	struct request_full *f = &rq->full;
	uint32_t bios = rq->outstanding - rq->waiting;

	rq->merging = 1;
	f->on = 1;
	f->since = f->seen = rq->order;
	f->last = now(f);
	f->room = rq->flying < MOST_ROOM ? rq->flying : MOST_ROOM;
	if (!f->last || !f->room) {
		f->lap = f->pause = 0;
		return;
	}
	f->pause = PAUSE;
	if (bios > rq->flying && f->lap) {
		bios = rq->outstanding - f->room;
		if (bios > MOST_LAPS * f->room)
			bios = MOST_LAPS * f->room;
		f->behind = bios * (int64_t)f->lap;
		return;
	}
	f->behind = rq->waiting;
	f->count = f->left = f->room;
}

void vqb__request_full_end(struct vqb_requests *rq)
{
	rq->merging = rq->path == VQB_PATH_REQUEST;
	rq->full.on = rq->full.left = 0;
}

void vqb__request_full_mark(struct vqb_requests *rq)
{
	struct request_full *f = &rq->full;

	if (f->count != f->room || f->left == f->room)
		return;
	f->count = f->left;
	f->last = now(f);
}

void vqb__request_full_back(struct vqb_requests *rq)
{
	struct request_full *f = &rq->full;
	uint64_t at;

	f->behind--;
	if (f->left == 1)
		add_news(rq);
	if (--f->left)
		return;
	at = now(f);
	f->lap = at - f->last;
	if (f->lap >> TICKS_SHIFT_MAX)
		f->lap = 0;
	f->timed = f->count;
	f->last = at;
	f->behind *= (int64_t)f->lap;
}

/* Would the ring have room, had nothing been merged? */
static int has_room(struct vqb_requests *rq)
{
	struct request_full *f = &rq->full;
	uint64_t at;
	int64_t far;

	add_news(rq);
	if (!f->left) {
		at = now(f);
		if (!f->lap || (at - f->last) >> TICKS_SHIFT_MAX)
			return 1;
		f->behind -= (int64_t)((at - f->last) * f->timed);
		f->last = at;
		far = (int64_t)f->lap * f->room * (MOST_LAPS / 2);
		f->pause = f->behind > far ? LONG_PAUSE : PAUSE;
	}
	return f->behind < 0 || rq->order - f->since > LONGEST;
}

uint64_t vqb__request_full_ticks(const struct vqb_requests *rq)
{
	return rq->full.lap ? now(&rq->full) : 0;
}

int vqb__request_full_pays(const struct vqb_requests *rq, uint32_t requests, uint64_t ticks)
{
	const struct request_full *f = &rq->full;

	return requests &&
	       (!f->lap || ticks >> TICKS_SHIFT_MAX || requests * f->lap >= ticks * f->timed);
}

void vqb__request_full_look(struct vqb_requests *rq)
{
	if (rq->full.left)
		vqb__request_full_mark(rq);
	if (has_room(rq))
		vqb__request_full_end(rq);
}
