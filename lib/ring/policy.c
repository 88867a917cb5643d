/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.c: the parts of a policy that are not on every request's way: the kinds that have to be
 * asked, and how the adaptive one learns.
 *
 * It looks at *windows* of completions, some sixteen turns of all that is out. A window ends
 * where a reap has taken all that was there, so that a device which completes in bursts is
 * measured over whole bursts. A trial is: switch the behaviour, let what was out before come
 * back, then measure one window against the last one before the switch.
 */
#include "policy.h"

/* A window: so many times the requests that were out at once, and at least so many. */
#define WINDOW_TURNS 16u
#define WINDOW_LEAST 128u

/* Windows with tables in use before a trial: the first time, and at most. */
#define WAIT_FIRST 2u
#define WAIT_MOST 256u

/*
 * Requests longer than this share of the ring go through tables: that often one would go round its
 * end, which costs as much as so many tables (END_SHORT). But not short ones, that leave few
 * entries.
 */
#define LONG_SHARE 8u
#define LONG_LEAST 16u

/* Where nothing is to be done for long; within half the range of a free-running count. */
#define FAR (1u << 30)

/* ---- set-up ---- */

bool vqb__policy_usable(const struct vqb_indirect_policy *policy)
{
	uint32_t kind;

	if (!policy)
		return true;
	kind = policy->kind;
	if (policy->struct_size != sizeof(*policy) || kind > VQB_INDIRECT_CUSTOM || policy->zero)
		return false;
	return (kind == VQB_INDIRECT_THRESHOLD) == !!policy->threshold &&
	       (kind == VQB_INDIRECT_CUSTOM) == !!policy->choose &&
	       (kind == VQB_INDIRECT_ADAPTIVE || !policy->clock);
}

void vqb__policy_set(struct policy *p, const struct vqb_indirect_policy *policy)
{
	static const struct vqb_indirect_policy adaptive = { .kind = VQB_INDIRECT_ADAPTIVE };

	if (!policy)
		policy = &adaptive;
	p->kind = (uint8_t)policy->kind;
	if (p->kind == VQB_INDIRECT_THRESHOLD)
		p->threshold = policy->threshold;
	else if (p->kind == VQB_INDIRECT_CUSTOM)
		p->choose = policy->choose;
	else
		p->clock = policy->clock;
	p->context = policy->context;
}

static void adapt_start(struct policy *p, uint32_t cursor)
{
	p->need = p->peak = 0;
	p->longest = p->size / LONG_SHARE > LONG_LEAST ? p->size / LONG_SHARE : LONG_LEAST;
	p->due = cursor + WINDOW_LEAST;
	p->phase = PHASE_WATCH;
	p->plain = false;
	memset(&p->adapt, 0, sizeof(p->adapt));
	p->adapt.since = cursor;
	p->adapt.wait = p->adapt.left = WAIT_FIRST;
}

void vqb__policy_start(struct policy *p, uint32_t size, uint32_t tables, uint32_t cursor)
{
	p->size = size;
	p->due = cursor + FAR;
	p->peak = PEAK_UNUSED;
	p->asks = false;
	p->need = NEED_ENDLESS;
	p->longest = UINT32_MAX;
	if (p->kind == VQB_INDIRECT_NEVER)
		p->need = 0;
	else if (!tables || p->kind == VQB_INDIRECT_ALWAYS)
		return;
	else if (p->kind == VQB_INDIRECT_ADAPTIVE)
		adapt_start(p, cursor);
	else
		p->asks = true;
	if (p->kind == VQB_INDIRECT_DECAY) {
		p->peak = 0; /* every reap is to be told */
		p->decay.most = 0;
		p->decay.at = cursor;
	}
}

void vqb__policy_clear(struct policy *p)
{
	memset(p->count, 0, sizeof(p->count));
	if (p->kind == VQB_INDIRECT_ADAPTIVE)
		p->adapt.tables = p->adapt.no_room = p->adapt.segments = p->adapt.notified = 0;
}

/* ---- those that are asked ---- */

/*
 * Brings the most that were out at once up to where the queue is. Since it was last looked at
 * requests were added only, so how many were out when the available ring wrapped is known.
 */
static void decay_follow(struct policy *p, uint32_t out, uint32_t next)
{
	uint32_t wrap = (p->decay.at | (p->size - 1)) + 1;

	for (; (int32_t)(next - wrap) >= 0; wrap += p->size) {
		uint32_t then = out - (next - wrap);

		if (then > p->decay.most)
			p->decay.most = then;
		p->decay.most /= 2;
		p->decay.at = wrap;
	}
	if (out > p->decay.most && next != p->decay.at)
		p->decay.most = out;
	p->decay.at = next;
}

static bool decay_wants(struct policy *p, uint32_t n, uint32_t free, uint32_t in_flight,
			uint32_t next)
{
	decay_follow(p, in_flight, next);
	return p->decay.most > in_flight && (uint64_t)(p->decay.most - in_flight) * n > free;
}

VQB_COLD bool vqb__policy_ask(struct policy *p, uint32_t n, uint32_t free, uint32_t in_flight,
			      uint32_t tables, uint32_t next)
{
	struct vqb_indirect_load load = { .segments = n,
					  .size = p->size,
					  .free = free,
					  .in_flight = in_flight,
					  .tables = tables };

	if (p->kind == VQB_INDIRECT_THRESHOLD)
		return n >= p->threshold;
	if (p->kind == VQB_INDIRECT_DECAY)
		return decay_wants(p, n, free, in_flight, next);
	return p->choose(p->context, &load) != 0;
}

/* ---- adaptive: the peak ---- */

VQB_COLD void vqb__policy_higher(struct policy *p, uint32_t out, uint32_t next)
{
	if (p->kind == VQB_INDIRECT_DECAY) {
		decay_follow(p, out, next);
		return;
	}
	p->peak = out;
	if (!p->plain && out > p->need)
		p->need = out;
}

/* An add found no room: with more of it, as many requests may be out as the ring has entries. */
VQB_COLD void vqb__policy_refused(struct policy *p)
{
	p->count[WAY_NO_ROOM]++;
	if (p->kind == VQB_INDIRECT_ADAPTIVE && !p->plain && p->need < p->size)
		p->need = p->size;
}

/* ---- adaptive: windows and trials ---- */

/* Requests through tables for want of room. */
static uint32_t through_tables(const struct policy *p)
{
	return (uint32_t)(p->count[WAY_TABLE] + p->count[WAY_FORCED]);
}

static uint64_t now(const struct policy *p)
{
	return p->clock ? p->clock(p->context) : vqb_port_ticks();
}

/* Is rate `a` at least num/den of rate `b`? Counts are below 2^21. */
static bool keeps_up(struct rate a, struct rate b, uint32_t num, uint32_t den)
{
	while ((a.ticks | b.ticks) >> 32) {
		a.ticks >>= 1;
		b.ticks >>= 1;
	}
	return b.ticks * a.done * den >= a.ticks * b.done * num;
}

/* Does `a` notify at most 1 + 1/16 times as often as `b`, give or take one? */
static bool as_quiet(struct rate a, struct rate b)
{
	return (uint64_t)a.notified * b.done * 16 <= ((uint64_t)b.notified + 1) * a.done * 17;
}

/*
 * Being plain saves a few dozen instructions a request, so it wins if it is not slower; the margin
 * is for chance. But one more notification costs more than a hundred requests save.
 */
static bool plain_wins(struct rate plain, struct rate sparing)
{
	return keeps_up(plain, sparing, 63, 64) && as_quiet(plain, sparing);
}

/* What was done since the window began. */
static struct rate rate_so_far(const struct policy *p, const struct policy_news *news,
			       uint64_t ticks)
{
	return (struct rate){ .done = news->cursor - p->adapt.since,
			      .notified = (uint32_t)news->notified - p->adapt.notified,
			      .ticks = ticks - p->adapt.ticks };
}

static void window_begin(struct policy *p, const struct policy_news *news, uint64_t ticks)
{
	uint32_t turns = WINDOW_TURNS * (p->peak > news->in_flight ? p->peak : news->in_flight);

	p->adapt.since = news->cursor;
	p->adapt.ticks = ticks;
	p->adapt.length = turns > WINDOW_LEAST ? turns : WINDOW_LEAST;
	p->adapt.tables = through_tables(p);
	p->adapt.no_room = (uint32_t)p->count[WAY_NO_ROOM];
	p->adapt.segments = (uint32_t)news->segments;
	p->adapt.notified = (uint32_t)news->notified;
	p->due = news->cursor + p->adapt.length;
}

/* The need of the window that begins, after one with the peak and the refusals seen. */
static void need_set(struct policy *p, bool no_room)
{
	if (p->plain)
		p->need = 0;
	else
		p->need = no_room ? p->size : p->peak;
}

static bool changed(uint32_t now_is, uint32_t usual)
{
	return now_is > 2 * usual || 2 * now_is < usual;
}

/* Twice or half as many requests at once, or as long ones: what was learnt may be wrong now. */
static void notice_change(struct policy *p, uint32_t mean)
{
	bool first = !p->adapt.usual_peak;

	if (!first && !changed(p->peak, p->adapt.usual_peak) && !changed(mean, p->adapt.usual_mean))
		return;
	p->adapt.usual_peak = p->peak;
	p->adapt.usual_mean = mean;
	if (first)
		return;
	p->adapt.wait = p->adapt.left = WAIT_FIRST;
	p->adapt.sparing.done = 0;
}

static void behave(struct policy *p, bool plain)
{
	p->plain = plain;
	p->need = plain ? 0 : p->size;
	p->adapt.usual_peak = 0;
}

static void trial_begin(struct policy *p, const struct policy_news *news)
{
	behave(p, !p->plain);
	p->phase = PHASE_SETTLE;
	p->due = news->cursor + 2 * news->in_flight;
}

static void trial_end(struct policy *p, const struct policy_news *news, bool stay, uint64_t ticks)
{
	if (!stay)
		behave(p, !p->plain);
	else if (p->plain)
		p->adapt.sparing = p->adapt.base;
	if (p->adapt.wait < WAIT_MOST)
		p->adapt.wait *= 2;
	p->adapt.left = p->adapt.wait;
	p->phase = PHASE_WATCH;
	p->peak = 0;
	window_begin(p, news, ticks);
}

/*
 * A window without a trial is over. A queue that has become plain keeps some of its tables for
 * long, as what does not fit goes through one, so it may only turn out now to be slower.
 */
static void watched(struct policy *p, const struct policy_news *news)
{
	uint64_t ticks = now(p);
	uint32_t segments = (uint32_t)news->segments - p->adapt.segments;
	struct rate rate = rate_so_far(p, news, ticks);
	bool no_room = (uint32_t)p->count[WAY_NO_ROOM] != p->adapt.no_room;
	bool pressed = no_room || through_tables(p) != p->adapt.tables;
	bool timed = p->adapt.ticks && rate.ticks;

	notice_change(p, segments < UINT32_MAX / 16 ? 16 * segments / rate.done : UINT32_MAX);
	if (p->plain && p->adapt.sparing.done && !plain_wins(rate, p->adapt.sparing)) {
		trial_end(p, news, false, ticks);
		return;
	}
	need_set(p, no_room);
	p->adapt.base = rate;
	window_begin(p, news, ticks);
	p->peak = 0;
	if (pressed && timed && --p->adapt.left == 0)
		trial_begin(p, news);
}

/*
 * In a trial every reap is looked at. It is given one turn of all that is out before it is found
 * clearly slower: that is how long the first completions may take.
 */
static void try_goes_on(struct policy *p, const struct policy_news *news)
{
	uint64_t ticks = now(p);
	struct rate tried = rate_so_far(p, news, ticks), base = p->adapt.base, hoped = tried;

	hoped.done += p->peak;
	p->due = news->cursor + 1;
	if (tried.done >= p->adapt.length)
		trial_end(p, news, p->plain ? plain_wins(tried, base) : !plain_wins(base, tried),
			  ticks);
	else if (!keeps_up(hoped, base, 7, 8))
		trial_end(p, news, false, ticks);
}

VQB_COLD void vqb__policy_due(struct policy *p, const struct policy_news *news, bool drained)
{
	if (p->kind != VQB_INDIRECT_ADAPTIVE || p->peak == PEAK_UNUSED) {
		p->due = news->cursor + FAR;
		return;
	}
	/* Not within a burst, unless there is no end to it. */
	if (!drained && news->cursor - p->due < p->adapt.length)
		return;
	if (p->phase == PHASE_WATCH) {
		watched(p, news);
	} else if (p->phase == PHASE_TRY) {
		try_goes_on(p, news);
	} else {
		p->phase = PHASE_TRY;
		window_begin(p, news, now(p));
		p->due = news->cursor + 1;
	}
}
