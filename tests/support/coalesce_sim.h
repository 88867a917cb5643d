/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce_sim.h: a device with a coalescer over a disk of bytes, of which some are bad, and a
 * backend that fails, ends early, refuses, is full and finishes in any order; beside it a disk on
 * which each request is carried out alone, as it arrives. Both have to come to the same: each
 * request's result, what it read, and the disk in the end.
 *
 * Data is moved at submit, so what is submitted later overwrites: a wrong order shows. Each byte
 * also remembers the newest request that was carried out on it.
 *
 * Before it is included, SIM_CHECK(holds) says how a check fails, and sim_choose(sim, n) makes up a
 * number below n, from 1 to 65536, from whatever is behind `choice`.
 */
#ifndef TESTS_COALESCE_SIM_H
#define TESTS_COALESCE_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vqblk/blk.h>
#include <vqblk/coalesce.h>

enum {
	SIM_DISK = 512,
	SIM_SLOTS = 80,
	SIM_MOST = 24, /* bytes of a request */
	SIM_PIECES = 4,
	SIM_BATCH = 40,
	SIM_ROOMY = 16384,
};

enum sim_state { SIM_FREE, SIM_NEW, SIM_COLLECTED, SIM_OUT };

struct sim_request {
	struct vqb_io io; /* the first member */
	struct vqb_piece piece[SIM_PIECES];
	uint8_t data[SIM_MOST];
	uint8_t wanted[SIM_MOST]; /* of a read: what it has to find */
	int64_t truth;            /* its result, had it gone alone */
	uint64_t arrival;         /* from 1 */
	enum sim_state state;
	bool retried;
};

/* A joined submission that is not done, second attempts included. */
struct sim_join {
	uint64_t first, last;
	uint8_t op;
	uint32_t left;
	struct sim_request *member[SIM_BATCH];
	uint32_t members;
};

struct sim {
	void *choice;
	struct vqb_coalescer_config config;
	void *mem;
	struct vqb_coalescer *c;
	uint64_t base; /* offset of the disk's first byte */
	bool bad[SIM_DISK];
	uint8_t disk[SIM_DISK], model[SIM_DISK];
	uint64_t written[SIM_DISK], read[SIM_DISK]; /* arrival of the newest */
	uint64_t arrivals, finished, at;            /* `at`: where the newest request ended */
	uint8_t op;
	struct sim_request request[SIM_SLOTS];
	struct sim_request *next; /* is to be added before any other */
	struct sim_request *batch[SIM_BATCH];
	uint32_t batched;
	struct sim_join join[SIM_SLOTS];
	uint32_t joins;
	struct vqb_io_list waiting; /* for the backend */
	struct vqb_io *held[SIM_SLOTS];
	uint32_t helds;
	struct vqb_coalescer_counters count;
};

static uint32_t sim_choose(struct sim *s, uint32_t n);

static inline bool sim_one_in(struct sim *s, uint32_t n)
{
	return sim_choose(s, n) == n - 1;
}

static inline bool sim_is_request(const struct sim *s, const struct vqb_io *io)
{
	uintptr_t at = (uintptr_t)io;

	return at >= (uintptr_t)s->request && at < (uintptr_t)(s->request + SIM_SLOTS);
}

static inline uint64_t sim_last(const struct vqb_io *io)
{
	return io->offset + io->bytes - 1;
}

static inline bool sim_overlap(const struct vqb_io *a, const struct vqb_io *b)
{
	return a->offset <= sim_last(b) && b->offset <= sim_last(a);
}

/* ---- requests ---- */

/* Carries the request out on the model, which is what has to come of it. */
static inline void sim_foresee(struct sim *s, struct sim_request *r)
{
	uint64_t at = r->io.offset - s->base;
	uint32_t i;

	for (i = 0; i < r->io.bytes && !s->bad[at + i]; i++) {
		if (r->io.op == VQB_BLK_OUT)
			s->model[at + i] = r->data[i];
		else
			r->wanted[i] = s->model[at + i];
	}
	r->truth = i;
	if (i < r->io.bytes && (!i || r->arrival % 2))
		r->truth = VQB_E_IO;
}

static inline void sim_cut(struct sim *s, struct sim_request *r)
{
	uint32_t bytes = (uint32_t)r->io.bytes, done = 0, n = 0;

	while (done < bytes) {
		uint32_t len = n + 1 < SIM_PIECES && !sim_one_in(s, 2)
				       ? 1 + sim_choose(s, bytes - done)
				       : bytes - done;

		r->piece[n].base = r->data + done;
		r->piece[n++].len = len;
		done += len;
	}
	r->io.piece = r->piece;
	r->io.pieces = n;
}

/* Mostly behind the one before it. */
static inline uint64_t sim_where(struct sim *s, uint32_t bytes)
{
	uint32_t how = sim_choose(s, 8);
	uint64_t at = s->at;

	if (how == 5)
		at = sim_choose(s, SIM_DISK);
	else if (how == 6)
		at -= sim_choose(s, 64);
	else if (how == 7)
		at += sim_choose(s, 64);
	at %= SIM_DISK;
	if (at + bytes > SIM_DISK)
		at = how & 1 ? 0 : SIM_DISK - bytes;
	s->at = how == 4 && sim_one_in(s, 4) ? at : at + bytes;
	return at;
}

static inline void sim_arrive(struct sim *s)
{
	struct sim_request *r = &s->request[s->arrivals % SIM_SLOTS];
	uint32_t bytes = 1 + sim_choose(s, sim_one_in(s, 8) ? SIM_MOST : 6);

	if (r->state != SIM_FREE)
		return;
	memset(r, 0, sizeof(*r));
	if (sim_one_in(s, 24))
		s->op ^= 1;
	r->arrival = ++s->arrivals;
	r->state = SIM_NEW;
	r->io.next = (struct vqb_io *)(uintptr_t)0xee; /* of a list it was on before */
	r->io.op = s->op;
	r->io.flags = s->op == VQB_BLK_OUT && sim_one_in(s, 16) ? VQB_IO_FUA : 0;
	r->io.bytes = bytes;
	r->io.offset = s->base + sim_where(s, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		r->data[i] = (uint8_t)(r->arrival * 31 + i);
	sim_cut(s, r);
	sim_foresee(s, r);
	s->next = r;
}

/* ---- the coalescer ---- */

static inline int32_t sim_answer(const struct sim *s, const struct vqb_io *io)
{
	const struct vqb_io *first = s->batched ? &s->batch[0]->io : io;

	if (first->op != io->op || first->flags != io->flags ||
	    s->batched == (s->config.requests ? s->config.requests : 32))
		return VQB_E_NOSPC;
	for (uint32_t i = 0; i < s->joins; i++) {
		const struct sim_join *join = &s->join[i];

		if ((join->op == VQB_BLK_OUT || io->op == VQB_BLK_OUT) &&
		    io->offset <= join->last && join->first <= sim_last(io))
			return VQB_E_BUSY;
	}
	return VQB_OK;
}

/* True: more can be added. */
static inline bool sim_add(struct sim *s)
{
	int32_t wanted;

	if (!s->next)
		sim_arrive(s);
	if (!s->next)
		return false;
	wanted = sim_answer(s, &s->next->io);
	SIM_CHECK(vqb_coalescer_add(s->c, &s->next->io) == wanted);
	if (wanted)
		return false;
	s->next->state = SIM_COLLECTED;
	s->batch[s->batched++] = s->next;
	s->next = NULL;
	SIM_CHECK(vqb_coalescer_collected(s->c) == s->batched);
	return true;
}

static inline bool sim_overlapped(const struct sim *s, const struct sim_request *r)
{
	for (uint32_t i = 0; i < s->batched; i++) {
		if (s->batch[i] != r && sim_overlap(&s->batch[i]->io, &r->io))
			return true;
	}
	return false;
}

/* The least number of submissions that the rules allow for the batch, which is sorted by this. */
static inline uint32_t sim_least(struct sim *s)
{
	uint32_t most = s->config.max_pieces, count = 0, pieces = 0, i, j;
	uint64_t bytes = 0, end = 0;
	bool open = false;

	if (most > s->config.pieces)
		most = s->config.pieces;
	for (i = 1; i < s->batched; i++) {
		for (j = i; j && s->batch[j - 1]->io.offset > s->batch[j]->io.offset; j--) {
			struct sim_request *swap = s->batch[j];

			s->batch[j] = s->batch[j - 1];
			s->batch[j - 1] = swap;
		}
	}
	for (i = 0; i < s->batched; i++) {
		const struct vqb_io *io = &s->batch[i]->io;
		bool single = sim_overlapped(s, s->batch[i]);

		if (open && !single && io->offset == end && pieces + io->pieces <= most &&
		    bytes + io->bytes <= s->config.max_transfer) {
			pieces += io->pieces;
			bytes += io->bytes;
		} else {
			count++;
			pieces = io->pieces;
			bytes = io->bytes;
		}
		open = !single;
		end = io->offset + io->bytes;
	}
	return count;
}

/* Which requests a joined submission is made of; each is joined once and lies where it should. */
static inline void sim_joined(struct sim *s, struct vqb_io *io)
{
	struct sim_join *join = &s->join[s->joins++];
	uint64_t at = io->offset;

	SIM_CHECK(s->joins <= SIM_SLOTS);
	SIM_CHECK(io->pieces <= s->config.max_pieces && io->bytes <= s->config.max_transfer);
	*join = (struct sim_join){ .first = io->offset, .last = sim_last(io), .op = io->op };
	for (uint32_t i = 0; i < io->pieces;) {
		size_t which = (size_t)((uintptr_t)io->piece[i].base - (uintptr_t)s->request) /
			       sizeof(struct sim_request);
		struct sim_request *r = &s->request[which];

		SIM_CHECK(which < SIM_SLOTS && r->state == SIM_COLLECTED);
		SIM_CHECK(r->io.offset == at && r->io.op == io->op && r->io.flags == io->flags);
		SIM_CHECK(!sim_overlapped(s, r));
		for (uint32_t k = 0; k < r->io.pieces; k++, i++) {
			SIM_CHECK(i < io->pieces && io->piece[i].base == r->piece[k].base);
			SIM_CHECK(io->piece[i].len == r->piece[k].len);
		}
		r->state = SIM_OUT;
		at += r->io.bytes;
		join->member[join->members++] = r;
	}
	SIM_CHECK(at == io->offset + io->bytes && join->members > 1);
	join->left = join->members;
}

static inline bool sim_roomy(const struct sim *s)
{
	return s->config.joins >= SIM_SLOTS && s->config.pieces >= SIM_ROOMY;
}

static inline void sim_flush(struct sim *s)
{
	uint32_t least = sim_least(s), n = 0, dir = s->batched ? s->batch[0]->io.op : 0;
	struct vqb_io *io = vqb_coalescer_flush(s->c), *next;
	uint64_t from = 0;

	s->count.requests[dir] += s->batched;
	for (; io; io = next, n++) {
		next = io->next;
		if (!sim_is_request(s, io)) {
			sim_joined(s, io);
		} else {
			struct sim_request *r = (struct sim_request *)io;

			SIM_CHECK(r->state == SIM_COLLECTED && !io->group);
			r->state = SIM_OUT;
		}
		if (!sim_is_request(s, io) || !sim_overlapped(s, (const struct sim_request *)io)) {
			SIM_CHECK(io->offset >= from);
			from = io->offset;
		}
		vqb_io_list_add(&s->waiting, io);
	}
	for (uint32_t i = 0; i < s->batched; i++)
		SIM_CHECK(s->batch[i]->state == SIM_OUT);
	SIM_CHECK(sim_roomy(s) ? n == least : n >= least && n <= s->batched);
	s->count.submissions[dir] += n;
	s->batched = 0;
	SIM_CHECK(!vqb_coalescer_collected(s->c));
}

/* ---- ends ---- */

static inline void sim_finish(struct sim *s, struct sim_request *r)
{
	const struct vqb_io *io = &r->io;

	SIM_CHECK(r->state == SIM_OUT && !io->group);
	SIM_CHECK(io->result == r->truth);
	if (io->op == VQB_BLK_IN && io->result > 0)
		SIM_CHECK(!memcmp(r->data, r->wanted, (size_t)io->result));
	for (uint32_t i = 0; i < s->joins; i++) {
		struct sim_join *join = &s->join[i];
		uint32_t k;

		for (k = 0; k < join->members && join->member[k] != r; k++)
			;
		if (k == join->members)
			continue;
		join->member[k] = NULL;
		if (!--join->left)
			*join = s->join[--s->joins];
		break;
	}
	/* Whoever still has it would be seen to write to it, or to read it. */
	memset(r, 0xee, sizeof(*r));
	r->state = SIM_FREE;
	s->finished++;
}

static inline void sim_done(struct sim *s, struct vqb_io *io)
{
	struct vqb_io_list done = { NULL, NULL }, retry = { NULL, NULL };
	struct vqb_io *next, *rest;

	vqb_coalescer_done(s->c, io, &done, &retry);
	for (io = vqb_io_list_take(&done); io; io = next) {
		next = io->next;
		SIM_CHECK(sim_is_request(s, io));
		sim_finish(s, (struct sim_request *)io);
	}
	rest = vqb_io_list_take(&s->waiting);
	for (io = retry.first; io; io = next) {
		struct sim_request *r = (struct sim_request *)io;

		next = io->next;
		SIM_CHECK(sim_is_request(s, io) && r->state == SIM_OUT && !r->retried);
		r->retried = true;
		s->count.retries[io->op]++;
		vqb_io_list_add(&s->waiting, io);
	}
	for (io = rest; io; io = next) {
		next = io->next;
		vqb_io_list_add(&s->waiting, io);
	}
}

/* ---- the backend ---- */

/* Up to `most` bytes, up to the first bad one; answers how many. */
static inline uint32_t sim_move(struct sim *s, const struct vqb_io *io, uint32_t most)
{
	uint64_t at = io->offset - s->base;
	uint32_t n = 0;

	for (uint32_t i = 0; i < io->pieces; i++) {
		uint8_t *data = (uint8_t *)io->piece[i].base;
		size_t which = (size_t)((uintptr_t)data - (uintptr_t)s->request) /
			       sizeof(struct sim_request);
		const struct sim_request *r = &s->request[which];

		SIM_CHECK(which < SIM_SLOTS && r->state == SIM_OUT);
		SIM_CHECK(data == r->data + (at - (r->io.offset - s->base)));
		for (size_t k = 0; k < io->piece[i].len; k++, at++, n++) {
			if (n == most || s->bad[at])
				return n;
			SIM_CHECK(r->arrival >= s->written[at]);
			if (io->op == VQB_BLK_OUT) {
				SIM_CHECK(r->arrival >= s->read[at]);
				s->written[at] = r->arrival;
				s->disk[at] = data[k];
			} else {
				if (s->read[at] < r->arrival)
					s->read[at] = r->arrival;
				data[k] = s->disk[at];
			}
		}
	}
	return n;
}

/* One request has its own truth. A joined submission fails in any way there is. */
static inline void sim_serve(struct sim *s, struct vqb_io *io)
{
	uint32_t bytes = (uint32_t)io->bytes, n;

	if (sim_is_request(s, io)) {
		sim_move(s, io, bytes);
		io->result = ((struct sim_request *)io)->truth;
		return;
	}
	n = sim_move(s, io, sim_one_in(s, 4) ? sim_choose(s, bytes) : bytes);
	if (n == bytes)
		io->result = n;
	else
		io->result = sim_one_in(s, 2) ? VQB_E_IO : (int64_t)(n - sim_choose(s, n + 1));
}

static inline void sim_submit(struct sim *s)
{
	struct vqb_io *io = s->waiting.first;

	if (!io || (s->helds && sim_one_in(s, 8)))
		return; /* full */
	s->waiting.first = io->next;
	io->next = (struct vqb_io *)(uintptr_t)0xee; /* the backend's */
	if (!sim_is_request(s, io) && sim_one_in(s, 8)) {
		io->result = sim_one_in(s, 2) ? VQB_E_NOSPC : VQB_E_INVALID;
		sim_done(s, io);
		return;
	}
	sim_serve(s, io);
	SIM_CHECK(s->helds < SIM_SLOTS);
	s->held[s->helds++] = io;
}

static inline void sim_complete(struct sim *s)
{
	uint32_t which;
	struct vqb_io *io;

	if (!s->helds)
		return;
	which = sim_choose(s, s->helds);
	io = s->held[which];
	s->held[which] = s->held[--s->helds];
	sim_done(s, io);
}

/* ---- a run ---- */

static inline void sim_open(struct sim *s, void *choice)
{
	static const uint64_t base[] = { 0, (UINT64_C(1) << 32) - 100, (UINT64_C(1) << 63) - 100,
					 UINT64_MAX - SIM_DISK + 1 };
	bool roomy;
	size_t bytes;

	memset(s, 0, sizeof(*s));
	s->choice = choice;
	roomy = !sim_one_in(s, 4);
	s->config.struct_size = sizeof(s->config);
	s->config.requests = sim_choose(s, SIM_BATCH + 1);
	s->config.joins = roomy ? SIM_SLOTS : sim_choose(s, 5);
	s->config.pieces = roomy ? SIM_ROOMY : sim_choose(s, 64);
	s->config.max_pieces = sim_one_in(s, 2) ? 1 + sim_choose(s, 12) : 1024;
	s->config.max_transfer = sim_one_in(s, 2) ? 1 + sim_choose(s, 64) : UINT64_MAX;
	s->base = base[sim_choose(s, 4)];
	for (uint32_t bads = sim_choose(s, 16); bads--;)
		s->bad[sim_choose(s, SIM_DISK)] = true;
	bytes = vqb_coalescer_size(&s->config);
	SIM_CHECK(bytes);
	s->mem = aligned_alloc(VQB_ALIGN, bytes);
	SIM_CHECK(s->mem);
	memset(s->mem, 0x5a, bytes);
	SIM_CHECK(vqb_coalescer_init(s->mem, bytes, &s->config, &s->c) == VQB_OK);
}

static inline void sim_step(struct sim *s)
{
	switch (sim_choose(s, 8)) {
	case 0:
		sim_flush(s);
		break;
	case 1:
	case 2:
		sim_complete(s);
		break;
	case 3:
	case 4:
		sim_submit(s);
		break;
	default:
		for (uint32_t n = 1 + sim_choose(s, 12); n && sim_add(s); n--)
			;
		break;
	}
}

/* Lets all that has arrived finish, and looks at what has come of it. */
static inline void sim_close(struct sim *s)
{
	struct vqb_coalescer_counters count;

	while (s->finished < s->arrivals) {
		if (s->next)
			sim_add(s);
		sim_flush(s);
		while (s->waiting.first)
			sim_submit(s);
		while (s->helds)
			sim_complete(s);
	}
	SIM_CHECK(!s->joins);
	SIM_CHECK(!memcmp(s->disk, s->model, sizeof(s->disk)));
	vqb_coalescer_read_counters(s->c, &count);
	for (uint32_t i = 0; i < 2; i++)
		s->count.merges[i] = s->count.requests[i] - s->count.submissions[i];
	SIM_CHECK(!memcmp(&count, &s->count, sizeof(count)));
	free(s->mem);
}

#endif
