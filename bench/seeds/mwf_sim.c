/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mwf_guest.h"
#include "machine.h"
#include "mwf.h"
#include "random.h"
#include "service.h"

enum { STREAMS = 4, CHAINS = 16, PIECES = 16 * MWF_RING };

/* Of the disk: each stream has an eighth of it, and random bios all of it. */
#define SECTORS (UINT64_C(1) << 32)

/* Latencies are counted in classes, 256 to each doubling: 0.3 % wide. */
enum { CLASS_BITS = 8, CLASSES = 40 << CLASS_BITS };

const char *const mwf_place_names[MWF_PLACES] = { "sequential", "random", "mixed" };

struct moment {
	double time;
	uint64_t done, requests;
};

struct sim {
	struct mwf_cell cell;
	struct mwf_guest guest;
	struct service service;
	struct random random;
	uint64_t stream[STREAMS];
	uint64_t now, arrived, done, lists, full, taken;
	double next; /* list, when it arrives */
	struct moment from, to;
	double latency; /* sum */
	uint64_t latencies[CLASSES];
	struct vqb_chain chain[CHAINS];
	struct vqb_piece piece[PIECES];
};

/* ---- latencies ---- */

static uint32_t class_of(uint64_t ns)
{
	uint32_t shift = 0;

	while (ns >> shift >= 2 << CLASS_BITS)
		shift++;
	return (shift << CLASS_BITS) + (uint32_t)(ns >> shift);
}

/* The middle of a class. */
static double of_class(uint32_t class)
{
	uint32_t shift = class >> CLASS_BITS ? (class >> CLASS_BITS) - 1 : 0;

	return ldexp(class - (shift << CLASS_BITS) + 0.5, (int)shift);
}

/* What so many of a thousand don't exceed. */
static double latency_of(const struct sim *s, uint64_t thousandths)
{
	uint64_t left = (s->cell.measure * thousandths + 999) / 1000;
	uint32_t class = 0;

	for (; left > s->latencies[class]; class ++)
		left -= s->latencies[class];
	return of_class(class);
}

/* ---- the device ---- */

static void take(struct sim *s)
{
	struct vqb_need need;
	uint32_t n;

	do {
		check(vqb_device_take(s->guest.ends.dev, s->chain, CHAINS, s->piece, PIECES, &n,
				      &need));
		for (uint32_t i = 0; i < n; i++) {
			const struct vqb_chain *c = &s->chain[i];
			const struct vqb_piece *last = &c->piece[c->readable + c->writable - 1];
			struct service_work work = { .ticket = c->ticket,
						     .written = (uint32_t)c->write_bytes };

			check(c->status);
			*((uint8_t *)last->base + last->len - 1) = VQB_BLK_S_OK;
			s->taken += c->write_bytes - 1;
			service_begin(&s->service, work, s->now,
				      s->cell.fixed + (c->write_bytes - 1) / 2);
		}
	} while (n);
}

/* Puts what is done by now. */
static void put(struct sim *s)
{
	while (service_next(&s->service) <= s->now) {
		struct service_work work = service_end(&s->service);

		check(vqb_device_put(s->guest.ends.dev, work.ticket, work.written));
	}
	vqb_device_expose(s->guest.ends.dev);
}

/* ---- the driver ---- */

static struct moment moment(const struct sim *s)
{
	struct vqb_requests_counters c;

	vqb_blk_driver_read_counters(s->guest.blk, &c);
	return (struct moment){ s->next, s->done, c.requests };
}

static void finish(struct sim *s, struct mwf_guest_bio *b)
{
	uint64_t number = b->number, took = s->now - b->born;

	check(b->bio.status);
	s->done++;
	mwf_guest_free(&s->guest, b);
	if (number < s->cell.warm || number >= s->cell.warm + s->cell.measure)
		return;
	s->latency += (double)took;
	s->latencies[class_of(took)]++;
}

static void reap(struct sim *s)
{
	struct vqb_bio *bio, *next;

	vqb_blk_reap(s->guest.blk, &bio);
	for (; bio; bio = next) {
		next = bio->next;
		finish(s, mwf_guest_bio_of(bio));
	}
	vqb_blk_publish(s->guest.blk);
}

static uint64_t random_sector(struct sim *s)
{
	uint64_t blocks = SECTORS / (s->cell.bytes >> VQB_SECTOR_SHIFT);

	return random_below(&s->random, (uint32_t)(blocks - 1)) *
	       (uint64_t)(s->cell.bytes >> VQB_SECTOR_SHIFT);
}

static struct vqb_bio *make_list(struct sim *s)
{
	bool sequential = s->cell.places == MWF_SEQUENTIAL ||
			  (s->cell.places == MWF_MIXED && random_one_in(&s->random, 2));
	uint64_t *stream = &s->stream[random_below(&s->random, STREAMS)];
	struct vqb_bio *list = NULL, **tail = &list;

	for (uint32_t i = 0; i < s->cell.list; i++) {
		struct mwf_guest_bio *b =
			mwf_guest_read(&s->guest, sequential ? *stream : random_sector(s));

		*stream += sequential ? s->cell.bytes >> VQB_SECTOR_SHIFT : 0;
		b->born = s->now;
		b->number = s->arrived++;
		*tail = &b->bio;
		tail = &b->bio.next;
	}
	return list;
}

/* Bios for a nanosecond, of those that the device serves if each is a request. */
static double capacity(const struct mwf_cell *c)
{
	return c->parallel / (c->fixed + c->bytes / 2.0);
}

static void arrive(struct sim *s)
{
	const struct mwf_cell *c = &s->cell;
	double u = ((double)(random_word(&s->random) >> 11) + 1) / (double)(UINT64_C(1) << 53);

	if (s->arrived >= c->warm && s->from.time <= 0)
		s->from = moment(s);
	check(vqb_blk_submit_list(s->guest.blk, make_list(s), NULL));
	vqb_blk_publish(s->guest.blk);
	s->lists++;
	s->full += vqb_blk_waiting(s->guest.blk) > 0;
	s->next -= log(u) * c->list / (c->load * capacity(c));
	if (s->arrived >= c->warm + c->measure && s->to.time <= 0)
		s->to = moment(s);
}

/* ---- a run ---- */

static uint64_t virtual_clock(void *context)
{
	return ((const struct sim *)context)->now;
}

static void sim_open(struct sim *s, const struct mwf_cell *cell)
{
	struct mwf_guest_plan plan = { .path = cell->path,
				       .depth = cell->depth,
				       .bytes = cell->bytes,
				       .sectors = SECTORS,
				       .clock = virtual_clock,
				       .context = s };

	s->cell = *cell;
	s->random.state = cell->seed;
	s->next = 1;
	for (uint32_t i = 0; i < STREAMS; i++)
		s->stream[i] = SECTORS / 8 * (2 * i + 1);
	mwf_guest_open(&s->guest, &plan);
	service_open(&s->service, MWF_RING, cell->parallel);
}

static void step(struct sim *s, bool arrives)
{
	uint64_t next = service_next(&s->service);

	if (arrives && s->next <= (double)next) {
		s->now = (uint64_t)s->next;
		arrive(s);
	} else {
		s->now = next;
		put(s);
		reap(s);
	}
	take(s);
}

struct mwf_result mwf_run(const struct mwf_cell *cell)
{
	struct sim *s = zeroed(sizeof(*s));
	uint64_t last = cell->warm + cell->measure;
	struct mwf_result r;

	sim_open(s, cell);
	while (s->arrived < last)
		step(s, true);
	while (s->done < s->arrived)
		step(s, false);
	if (s->taken != s->arrived * cell->bytes)
		die("the device saw other bytes than were asked for");
	r.throughput = (double)(s->to.done - s->from.done) /
		       ((s->to.time - s->from.time) * capacity(cell) * cell->load);
	r.requests =
		(double)(s->to.requests - s->from.requests) / (double)(s->to.done - s->from.done);
	r.mean = s->latency / (double)cell->measure;
	r.median = latency_of(s, 500);
	r.p99 = latency_of(s, 990);
	r.full = (double)s->full / (double)s->lists;
	mwf_guest_close(&s->guest);
	service_close(&s->service);
	free(s);
	return r;
}
