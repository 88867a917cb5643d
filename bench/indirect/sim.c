/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"
#include "machine.h"
#include "service.h"

enum { PAGES = 128, SLOTS = 16, BATCH = 64, CHAINS = 16, PIECES = 16 * 128 };
enum { MIXED_SHORT = 3, MIXED_LONG = 66, PAUSE = 20000 };

const struct policy_case policy_cases[POLICIES] = {
	[NEVER] = { "never", VQB_INDIRECT_NEVER, 0 },
	[ALWAYS] = { "always", VQB_INDIRECT_ALWAYS, 0 },
	[THRESHOLD] = { "threshold-8", VQB_INDIRECT_THRESHOLD, 8 },
	[DECAY] = { "decay", VQB_INDIRECT_DECAY, 0 },
	[ADAPTIVE] = { "adaptive", VQB_INDIRECT_ADAPTIVE, 0 },
};

const uint32_t sizes[SIZES] = { 3, 6, 18, 66 };

const struct device_case device_cases[DEVICES] = {
	{ "instant", 0, 0 },
	{ "20us-x32", 20000, 32 },
	{ "80us-x128", 80000, 128 },
};

struct sim {
	struct cell cell;
	struct device_case device;
	uint64_t now, slept, random;
	struct vqb_driver *drv;
	struct vqb_device *dev;
	struct ends ends;
	uint8_t *desc;
	uint64_t shared_at;
	struct vqb_segment seg[SLOTS][2][MAX_SEGMENTS];
	uint32_t length[2]; /* of the two sizes of request */
	uint32_t next_slot, next_size;
	uint32_t burst; /* requests of it that are still to be added */
	uint32_t bursts;
	bool interrupted;
	struct service service; /* marks what lies in a table */
	uint32_t tables;
	uint64_t done;
	double occupancy, tables_sum;
	uint64_t turns;
	uint64_t feature[FEATURES];
	struct vqb_chain chain[CHAINS];
	struct vqb_piece piece[PIECES];
};

static uint32_t random_below(struct sim *s, uint32_t n)
{
	s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(s->random >> 33) % n;
}

static uint64_t virtual_clock(void *context)
{
	return ((const struct sim *)context)->now;
}

/* ---- set-up ---- */

static bool mixed(const struct sim *s)
{
	return s->cell.shape == MIXED || s->cell.shape == BOTH;
}

static bool bursty(const struct sim *s)
{
	return s->cell.shape == BURSTY || s->cell.shape == BOTH;
}

/* A header that the device reads, data, a status byte; data is read and written by turns. */
static void make_request(struct sim *s, uint32_t slot, uint32_t size)
{
	struct vqb_segment *seg = s->seg[slot][size];
	uint32_t n = s->length[size];

	seg[0] = (struct vqb_segment){ .addr = s->shared_at + UINT64_C(32) * slot, .len = 16 };
	for (uint32_t i = 1; i + 1 < n; i++)
		seg[i] = (struct vqb_segment){
			.addr = ENDS_HIGH + (uint64_t)ENDS_PAGE * ((i * 7 + slot * 3) % PAGES),
			.len = ENDS_PAGE
		};
	seg[n - 1] =
		(struct vqb_segment){ .addr = s->shared_at + UINT64_C(32) * slot + 16, .len = 1 };
}

static struct sim *sim_open(const struct cell *cell)
{
	const struct policy_case *policy = &policy_cases[cell->policy];
	struct sim *s = zeroed(sizeof(*s));
	struct vqb_indirect_policy data = { .struct_size = sizeof(data),
					    .kind = policy->kind,
					    .threshold = policy->threshold,
					    .context = s };
	struct ends_plan plan = { .ring = cell->ring,
				  .segments = MAX_SEGMENTS,
				  .features = VQB_FEATURE(VQB_F_INDIRECT_DESC) |
					      VQB_FEATURE(VQB_F_EVENT_IDX),
				  .policy = &data,
				  .small = (size_t)32 * SLOTS,
				  .data = (size_t)PAGES * ENDS_PAGE };

	data.clock = policy->kind == VQB_INDIRECT_ADAPTIVE ? virtual_clock : NULL;
	s->cell = *cell;
	s->device = device_cases[cell->device];
	s->now = 1;
	s->random = cell->seed;
	service_open(&s->service, cell->ring, s->device.parallel);
	ends_open(&s->ends, &plan);
	s->drv = s->ends.drv;
	s->dev = s->ends.dev;
	s->desc = s->ends.ring.desc;
	s->shared_at = ENDS_LOW + s->ends.small_at;
	s->length[0] = mixed(s) ? MIXED_SHORT : cell->segments;
	s->length[1] = mixed(s) ? MIXED_LONG : cell->segments;
	for (uint32_t i = 0; i < SLOTS; i++) {
		make_request(s, i, 0);
		make_request(s, i, 1);
	}
	return s;
}

static void sim_close(struct sim *s)
{
	ends_close(&s->ends);
	service_close(&s->service);
	free(s);
}

/* ---- the device ---- */

/*
 * What a request takes. In a mixed load long ones take twice the time, so that others overtake
 * them.
 */
static uint64_t service_time(struct sim *s, bool twice)
{
	uint64_t time = s->device.service;

	if (s->device.parallel && s->cell.jitter)
		time = time * (1000 - s->cell.jitter + random_below(s, 2 * s->cell.jitter + 1)) /
		       1000;
	return time << twice;
}

static void hear(struct sim *s, uint32_t answer)
{
	s->feature[DEVICE_PUBLISHES]++;
	s->interrupted |= answer & VQB_NOTIFY;
}

/* Puts what is done by now. */
static void complete(struct sim *s)
{
	bool any = false;

	while (service_next(&s->service) <= s->now) {
		struct service_work work = service_end(&s->service);

		check(vqb_device_put(s->dev, work.ticket, work.written));
		s->tables -= work.mark;
		any = true;
	}
	if (any)
		hear(s, vqb_device_publish(s->dev));
}

static uint32_t desc_word(const struct sim *s, uint32_t at, uint32_t offset)
{
	const uint8_t *p = s->desc + 16 * (size_t)at + offset;

	return p[0] | (uint32_t)p[1] << 8;
}

/* Looks at a direct chain: does it lie in one run? */
static void look_at_runs(struct sim *s, uint32_t head)
{
	uint32_t n = 1, breaks = 0;

	for (uint32_t at = head, next; desc_word(s, at, 12) & 1; at = next, n++) {
		next = desc_word(s, at, 14);
		breaks += next != at + 1;
	}
	s->feature[BREAKS] += breaks;
	s->feature[SCATTERED_DESCRIPTORS] += breaks ? n : 0;
}

static uint32_t size_index(uint32_t n)
{
	uint32_t i = 0;

	while (i + 1 < SIZES && sizes[i] < n)
		i++;
	return i;
}

static void arrive(struct sim *s, const struct vqb_chain *c)
{
	uint32_t head = c->ticket.head;
	struct service_work work = { .ticket = c->ticket, .written = 1 };

	check(c->status);
	work.mark = (desc_word(s, head, 12) & 4) != 0;
	s->feature[(work.mark ? INDIRECT : DIRECT) + size_index(c->readable + c->writable)]++;
	s->tables += work.mark;
	if (!work.mark)
		look_at_runs(s, head);
	service_begin(&s->service, work, s->now,
		      service_time(s, mixed(s) && c->readable + c->writable == MIXED_LONG));
}

static void kick(struct sim *s)
{
	struct vqb_need need;
	uint32_t n, answer;

	do {
		do {
			check(vqb_device_take(s->dev, s->chain, CHAINS, s->piece, PIECES, &n,
					      &need));
			s->feature[TAKES]++;
			for (uint32_t i = 0; i < n; i++)
				arrive(s, &s->chain[i]);
		} while (n);
		answer = vqb_device_turn(s->dev);
		hear(s, answer);
	} while (answer & VQB_MORE);
	complete(s);
}

/* ---- the driver ---- */

static void reap(struct sim *s)
{
	struct vqb_done done[BATCH];
	uint32_t n;

	do {
		n = vqb_driver_reap(s->drv, done, BATCH);
		s->feature[REAPS]++;
		s->done += n;
		s->now += PRICE_REAP + PRICE_REAPED * n;
	} while (n);
}

/* The next request of the load, if it wants one now. Its size is drawn once. */
static bool wants(struct sim *s)
{
	if (vqb_driver_in_flight(s->drv) >= s->cell.depth)
		return false;
	if (!bursty(s))
		return true;
	if (!s->burst && !vqb_driver_in_flight(s->drv)) {
		uint32_t few = s->cell.depth > 8 ? s->cell.depth / 8 : 1;

		s->now += PAUSE;
		s->slept += PAUSE;
		s->burst = s->bursts++ % 3 ? few : s->cell.depth;
		return true;
	}
	return s->burst;
}

static bool add(struct sim *s)
{
	uint32_t slot = s->next_slot % SLOTS, n = s->length[s->next_size];
	uint32_t free = vqb_driver_free(s->drv);
	uint32_t readable = slot & 1 ? 1 : n - 1;
	int32_t status =
		vqb_driver_add(s->drv, s->seg[slot][s->next_size], readable, n - readable, s);

	s->now += PRICE_ADD;
	if (status == VQB_E_NOSPC) {
		s->feature[REFUSED]++;
		return false;
	}
	check(status);
	s->now += PRICE_REQUEST + PRICE_DESCRIPTOR * n;
	if (free - vqb_driver_free(s->drv) < n)
		s->now += PRICE_TABLE;
	s->feature[THRESHOLD_ASKED] += s->cell.policy == THRESHOLD && n > 1 && n <= free;
	s->feature[DECAY_ASKED] += s->cell.policy == DECAY && n > 1 && n <= free;
	s->next_slot++;
	s->next_size = mixed(s) && random_below(s, 4) == 0;
	s->burst -= s->burst > 0;
	return true;
}

static void turn(struct sim *s)
{
	uint32_t answer;

	s->occupancy += 1.0 - (double)vqb_driver_free(s->drv) / s->cell.ring;
	s->turns++;
	answer = vqb_driver_turn(s->drv);
	s->feature[TURNS]++;
	s->now += PRICE_TURN;
	if (answer & VQB_NOTIFY) {
		s->now += PRICE_KICK;
		complete(s);
		kick(s);
	}
	s->tables_sum += s->tables;
}

static void sleep_until_interrupted(struct sim *s)
{
	uint64_t next = service_next(&s->service);

	if (next != UINT64_MAX && next > s->now) {
		s->slept += next - s->now;
		s->now = next;
	}
	complete(s);
}

static void round_of(struct sim *s)
{
	if (s->interrupted)
		s->now += PRICE_INTERRUPT;
	s->interrupted = false;
	complete(s);
	reap(s);
	while (wants(s) && add(s))
		continue;
	turn(s);
	complete(s);
	if (!vqb_driver_pending(s->drv))
		sleep_until_interrupted(s);
}

/* Not inlined: a tool that counts instructions starts from zero here. */
__attribute__((noinline)) void measure_begins(struct sim *s);
__attribute__((noinline)) void measure_begins(struct sim *s)
{
	memset(s->feature, 0, sizeof(s->feature));
	s->occupancy = s->tables_sum = 0;
	s->turns = 0;
	s->slept = 0;
}

/*
 * The adaptive policy is given the time to come to its longest wait between two trials, and then
 * as much again, so that its trials are in the figures in due proportion.
 */
struct extent sim_extent(const struct cell *cell)
{
	uint64_t window = 16 * (uint64_t)cell->depth > 128 ? 16 * (uint64_t)cell->depth : 128;

	if (cell->policy == ADAPTIVE)
		return (struct extent){ 256 * window, 256 * window };
	return (struct extent){ 8 * window, (cell->shape == STEADY ? 24 : 96) * window };
}

struct result sim_run(const struct cell *cell, struct extent extent)
{
	struct sim *s = sim_open(cell);
	struct result r = { 0 };
	uint64_t began;

	while (s->done < extent.warm)
		round_of(s);
	began = s->now;
	s->done = 0;
	measure_begins(s);
	while (s->done < extent.measure)
		round_of(s);
	r.requests = s->done;
	r.per_second = (double)s->done * 1e9 / (double)(s->now - began);
	r.cpu = (double)(s->now - began - s->slept) / (double)s->done;
	r.occupancy = s->occupancy / (double)s->turns;
	r.tables = s->tables_sum / (double)s->turns;
	memcpy(r.feature, s->feature, sizeof(r.feature));
	for (int i = 0; i < SIZES; i++)
		r.indirect += (double)r.feature[INDIRECT + i] / (double)s->done;
	sim_close(s);
	return r;
}
