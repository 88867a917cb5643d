/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device and its model (device_model.h) get the same random ring, the same random memory and
 * the same random calls, and have to agree on every answer and on every byte of the ring.
 *
 * Guest memory, by guest address:
 *   DATA   64 KiB, cut into extents at random, some for one direction only, with holes; it lies
 *          in the host twice, and each extent is in one of the two
 *   HOOK   pages of 256 bytes that only the hook knows, or refuses, or answers wrongly
 *   RING   the ring, in one of two places of the host
 *   GIANT  12 GiB that may only be written, so nothing is ever there; for chains of over 2^32 bytes
 *   TOP    the last 4 KiB below 2^64
 */
#include <string.h>

#include "device_model.h"
#include "differential.h"

#define OPERATIONS 2000000u

#define DATA UINT64_C(0x10000)
#define HOOK UINT64_C(0x40000)
#define RING UINT64_C(0x100000)
#define GIANT UINT64_C(0x100000000000)
#define GIANT_HOST UINT64_C(0x200000000000)
#define TOP (UINT64_MAX - 0xfff)

enum {
	DATA_BYTES = 0x10000,
	PAGE = 256,
	PAGES = 64,
	TOP_BYTES = 0x1000,
	RING_BYTES = 0xe0000,
	EXTENTS = 40,
	CHAINS = 16,
	LIST = 8,
	PIECES = MODEL_PIECES,
	STALE = 64,
	GUARD = 64,
	SMALL = 64, /* rings up to here are compared in full each time */
};

/* A memory map and what its hook says. Two, since the old one must outlive the change. */
struct map {
	struct vqb_memory memory;
	struct vqb_extent extent[EXTENTS];
	uint8_t page[PAGES]; /* enum page_kind */
};

enum page_kind { PAGE_GOOD, PAGE_READ, PAGE_HOLE, PAGE_WRONG };

struct test {
	struct run run;
	struct device_model model;
	struct vqb_device *dev;
	struct vqb_device_config config;
	uint8_t *object;
	size_t object_bytes;
	struct map map[2];
	unsigned map_now;
	struct vqb_ring_at at;  /* the ring that was last asked for */
	struct model_ring ring; /* the library's, while it has one */
	uint16_t offered;       /* the driver's index */
	bool calm;              /* much traffic, no decisions for long stretches */
	/* what has happened so far */
	uint64_t seen[VQB_RULE_JUMPED + 1], no_room, faults, pieces;
	uint64_t batched, held_back, ahead, again;
	uint64_t lists, cut_lists; /* put in full, and but for the last ones */
	unsigned weight[32];       /* of operations, in this episode */
	struct vqb_ticket stale[STALE];
	unsigned stales;
	/* results */
	struct vqb_chain chain[CHAINS + 1];
	struct vqb_piece piece[PIECES + 1];
	struct model_chain model_chain[CHAINS];
	struct vqb_piece model_piece[PIECES];
	/* guest memory */
	_Alignas(64) uint8_t data[2][DATA_BYTES];
	_Alignas(64) uint8_t pages[PAGES * PAGE];
	_Alignas(64) uint8_t top[TOP_BYTES];
	_Alignas(64) uint8_t place[2][RING_BYTES];
	_Alignas(64) uint8_t image[RING_BYTES]; /* the model's ring */
	/* what guest memory has to be in the end */
	uint8_t data_copy[DATA_BYTES];
	_Alignas(64) uint8_t area[VQB_TRACKING_BYTES(VQB_RING_MAX)];
};

static void compare(struct test *t);

static uint32_t below(struct test *t, uint32_t n)
{
	return random_below(&t->run.random, n);
}

static bool one_in(struct test *t, uint32_t n)
{
	return random_one_in(&t->run.random, n);
}

static uint64_t word(struct test *t)
{
	return random_word(&t->run.random);
}

/* ---- memory ---- */

static int32_t translate(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	struct test *t = context;
	const struct map *map = &t->map[t->map_now];
	uint64_t page = (addr - HOOK) / PAGE;

	if (addr < HOOK || page >= PAGES || map->page[page] == PAGE_HOLE)
		return VQB_E_FAULT;
	(void)access;
	*out = (struct vqb_extent){ HOOK + page * PAGE, PAGE, t->pages + page * PAGE,
				    VQB_READ | VQB_WRITE, 0 };
	if (map->page[page] == PAGE_READ)
		out->access = VQB_READ;
	if (map->page[page] == PAGE_WRONG)
		*out = (struct vqb_extent){ addr + 1, PAGE, t->pages, VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

static void add_extent(struct map *map, uint64_t addr, uint64_t len, void *host, uint32_t access)
{
	if (len)
		map->extent[map->memory.count++] =
			(struct vqb_extent){ addr, len, host, access, 0 };
}

static void map_data(struct test *t, struct map *map)
{
	uint32_t at = 0, cuts = below(t, 12);

	while (at < DATA_BYTES) {
		uint32_t len = cuts ? 1 + below(t, one_in(t, 4) ? 40 : 0x4000) : DATA_BYTES;
		uint32_t access = VQB_READ | VQB_WRITE;

		cuts -= cuts > 0;
		len = len < DATA_BYTES - at ? len : DATA_BYTES - at;
		if (one_in(t, 16))
			access = one_in(t, 2) ? VQB_READ : VQB_WRITE;
		if (!one_in(t, 25))
			add_extent(map, DATA + at, len, t->data[below(t, 2)] + at, access);
		at += len;
	}
}

/* In one piece, or cut somewhere, with or without a consequence, or with a byte missing. */
static void map_ring(struct test *t, struct map *map)
{
	uint32_t end = (uint32_t)(t->at.used - RING) + VQB_USED_BYTES(t->at.size);
	unsigned here = below(t, 2), there = one_in(t, 3) ? !here : here;
	uint32_t cut = end < RING_BYTES ? 1 + below(t, end) : RING_BYTES / 2, gap = 0;
	uint32_t first = VQB_READ | VQB_WRITE, second = first;

	if (one_in(t, 12)) {
		gap = 1;
	} else if (one_in(t, 3)) {
		cut = (uint32_t)(t->at.used - RING);
		first = VQB_READ;
		second = VQB_WRITE;
		there = below(t, 2);
	} else if (one_in(t, 2)) {
		cut = RING_BYTES;
	}
	cut = cut < RING_BYTES ? cut : RING_BYTES;
	add_extent(map, RING, cut, t->place[here], first);
	if (cut + gap < RING_BYTES)
		add_extent(map, RING + cut + gap, RING_BYTES - cut - gap,
			   t->place[there] + cut + gap, second);
}

static struct map *map_make(struct test *t)
{
	struct map *map = &t->map[!t->map_now];
	uint32_t generation = map[0].memory.generation;

	generation = t->map[t->map_now].memory.generation + below(t, 3);
	memset(map, 0, sizeof(*map));
	map->memory.struct_size = sizeof(map->memory);
	map->memory.generation = generation;
	map->memory.sorted = map->extent;
	map->memory.context = t;
	if (!one_in(t, 5))
		map->memory.translate = translate;
	for (unsigned i = 0; i < PAGES; i++)
		map->page[i] = one_in(t, 25) ? (uint8_t)(1 + below(t, 3)) : PAGE_GOOD;
	map_data(t, map);
	map_ring(t, map);
#if UINTPTR_MAX > 0xffffffffu
	add_extent(map, GIANT, UINT64_C(3) << 32, (void *)(uintptr_t)GIANT_HOST, VQB_WRITE);
#endif
	add_extent(map, TOP, TOP_BYTES, t->top, VQB_READ | VQB_WRITE);
	return map;
}

/* Makes a map one that must be refused. */
static void map_spoil(struct test *t, struct map *map)
{
	struct vqb_extent *e = &map->extent[below(t, map->memory.count)], *last;

	last = &map->extent[map->memory.count - 1];
	switch (below(t, 9)) {
	case 0:
		map->memory.struct_size--;
		break;
	case 1:
		map->memory.zero = 1;
		break;
	case 2:
		map->memory.sorted = NULL;
		break;
	case 3:
		e->len = one_in(t, 2) ? 0 : UINT64_MAX;
		break;
	case 4:
		e->access = one_in(t, 2) ? 0 : 4;
		break;
	case 5:
		e->zero = 1;
		break;
	case 6:
		e->host = NULL;
		break;
	case 7: /* begins in the last byte of the one before */
		if (e != map->extent)
			e->addr = e[-1].addr + (e[-1].len - 1);
		break;
	default:
		last->addr = e->addr;
		last->len = 1;
	}
}

/* Where the library finds a part of the ring, or NULL. */
static uint8_t *ring_host(const struct map *map, uint64_t addr)
{
	for (uint32_t i = 0; i < map->memory.count; i++) {
		const struct vqb_extent *e = &map->extent[i];

		if (addr >= e->addr && addr - e->addr < e->len)
			return (uint8_t *)e->host + (addr - e->addr);
	}
	return NULL;
}

/* Writes to guest memory, wherever it may lie. */
static void guest_write(struct test *t, uint64_t addr, const uint8_t *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++, addr++) {
		if (addr >= DATA && addr < DATA + DATA_BYTES)
			t->data[0][addr - DATA] = t->data[1][addr - DATA] =
				t->data_copy[addr - DATA] = from[i];
		else if (addr >= HOOK && addr < HOOK + PAGES * PAGE)
			t->pages[addr - HOOK] = from[i];
		else if (addr >= TOP)
			t->top[addr - TOP] = from[i];
	}
}

/* ---- the ring, twice ---- */

/* The model's parts and the library's: `t->model.ring` says where, `t->ring` the same bytes. */
static void ring_find(struct test *t)
{
	const struct map *map = &t->map[t->map_now];

	t->ring = t->model.ring;
	t->ring.desc = ring_host(map, t->model.at.desc);
	t->ring.avail = ring_host(map, t->model.at.avail);
	t->ring.used = ring_host(map, t->model.at.used);
}

/* Copies the model's ring to where the library's will be, under `map`. */
static void ring_copy(struct test *t, const struct map *map, const struct vqb_ring_at *at)
{
	uint32_t bytes[3] = { VQB_DESC_BYTES(at->size), VQB_AVAIL_BYTES(at->size),
			      VQB_USED_BYTES(at->size) };
	const uint8_t *from[3] = { t->model.ring.desc, t->model.ring.avail, t->model.ring.used };
	uint64_t to[3] = { at->desc, at->avail, at->used };

	for (unsigned part = 0; part < 3; part++) {
		uint8_t *first = ring_host(map, to[part]);
		uint8_t *last = ring_host(map, to[part] + bytes[part] - 1);

		if (first && last == first + bytes[part] - 1)
			memcpy(first, from[part], bytes[part]);
	}
}

static void driver_put(struct test *t, uint8_t *model_word, uint64_t v, unsigned bytes)
{
	const struct model_ring *m = &t->model.ring;
	size_t offset = (size_t)(model_word - m->avail);

	model_put(m, model_word, v, bytes);
	model_put(m, t->ring.avail + offset, v, bytes);
}

static void driver_desc(struct test *t, uint32_t i, struct model_desc desc)
{
	model_desc_put(&t->model.ring, t->model.ring.desc, i, desc);
	model_desc_put(&t->ring, t->ring.desc, i, desc);
}

/* ---- the driver's input ---- */

static uint64_t random_addr(struct test *t, bool write)
{
	uint32_t kind = below(t, 100);

	if (kind < 80)
		return DATA + below(t, DATA_BYTES - 0x1000);
	if (kind < 90)
		return HOOK + below(t, PAGES * PAGE);
	if (kind < 93)
		return TOP + below(t, TOP_BYTES);
	if (kind < 96)
		return DATA + DATA_BYTES - below(t, 200);
	if (kind < 99)
		return write ? GIANT + below(t, 1000) : UINT64_MAX - below(t, 50);
	return word(t) >> below(t, 64);
}

static uint32_t random_len(struct test *t, uint64_t addr)
{
	if (addr >= GIANT && addr < TOP && one_in(t, 2))
		return one_in(t, 2) ? UINT32_MAX : UINT32_MAX / 2;
	if (one_in(t, 25))
		return 0;
	if (one_in(t, 300))
		return (uint32_t)word(t);
	return 1 + below(t, one_in(t, 8) ? 6000 : 500);
}

/* One field of a good descriptor goes wrong. */
static void spoil(struct test *t, struct model_desc *d, uint32_t count)
{
	switch (below(t, 6)) {
	case 0:
		d->flags ^= (uint16_t)(1 << below(t, 3));
		break;
	case 1:
		d->flags = (uint16_t)(word(t) & (one_in(t, 4) ? 0xffff : 7));
		break;
	case 2:
		d->next = (uint16_t)below(t, count + 2);
		break;
	case 3:
		d->next = (uint16_t)word(t);
		break;
	case 4:
		d->len = one_in(t, 2) ? (uint32_t)word(t) : 16 * below(t, 80);
		break;
	default:
		d->addr = one_in(t, 2) ? word(t) : UINT64_MAX - below(t, 600);
	}
}

/* Descriptors to come: a chain of `total`, of which those from `border` on are writable. */
struct plan {
	uint32_t total, border, done;
	bool spoilt;
	bool halves; /* buffers of half of 2^32 bytes each */
};

static struct model_desc plan_next(struct test *t, struct plan *plan, uint32_t next, uint32_t count)
{
	bool write = plan->done >= plan->border;
	struct model_desc d = { .addr = random_addr(t, write), .next = (uint16_t)next };

	d.len = random_len(t, d.addr);
	if (plan->halves && write) {
		d.addr = GIANT + below(t, 1000);
		d.len = UINT32_C(1) << 31;
	}
	d.flags = (uint16_t)(write ? MODEL_WRITE : 0);
	if (++plan->done < plan->total)
		d.flags |= MODEL_NEXT;
	if (plan->spoilt && one_in(t, plan->total))
		spoil(t, &d, count);
	return d;
}

/* The rest of the plan as a table, and the descriptor that refers to it. */
static struct model_desc plan_table(struct test *t, struct plan *plan)
{
	uint32_t rest = plan->total - plan->done, count = rest + (one_in(t, 3) ? below(t, 4) : 0);
	uint64_t addr = random_addr(t, false) & ~(one_in(t, 10) ? UINT64_C(0) : UINT64_C(15));
	bool jumps = one_in(t, 6);
	struct model_desc ref = { .addr = addr, .len = 16 * count, .flags = MODEL_INDIRECT };

	for (uint32_t i = 0; i < rest; i++) {
		uint32_t next = jumps ? below(t, count) : i + 1;
		struct model_desc d = plan_next(t, plan, next, count);
		uint8_t bytes[16];

		model_desc_put(&t->ring, bytes, 0, d);
		guest_write(t, addr + 16 * (uint64_t)i, bytes, 16);
	}
	if (one_in(t, 2))
		ref.flags |= MODEL_WRITE;
	if (plan->spoilt && one_in(t, 3))
		spoil(t, &ref, t->ring.size);
	return ref;
}

static uint32_t plan_length(struct test *t)
{
	uint32_t limit = t->config.max_chain ? t->config.max_chain : t->ring.size;

	if (t->calm)
		return 1;
	if (one_in(t, 20))
		return limit + below(t, 3) > 1 ? limit + below(t, 3) - 1 : 1;
	return 1 + below(t, one_in(t, 4) ? (limit < 40 ? limit : 40) : 5);
}

static void random_chain(struct test *t, uint32_t head)
{
	struct plan plan = { .total = plan_length(t), .spoilt = one_in(t, 4) };
	uint32_t direct, at = head;
	bool jumps = one_in(t, 8);

	plan.total += !plan.total;
	plan.border = below(t, plan.total + 1);
	if (one_in(t, 60)) {
		plan.halves = true;
		plan.border = plan.total > 2 ? plan.total - 2 : 0;
	}
	direct = one_in(t, 2) ? plan.total : below(t, plan.total);
	direct = !t->ring.indirect && !one_in(t, 40) ? plan.total : direct;
	for (uint32_t i = 0; i < direct; i++) {
		uint32_t next = jumps ? below(t, t->ring.size) : (at + 1) % t->ring.size;

		driver_desc(t, at, plan_next(t, &plan, next, t->ring.size));
		at = next;
	}
	if (direct < plan.total)
		driver_desc(t, at, plan_table(t, &plan));
}

/* Is it out, or available already? */
static bool head_in_use(const struct test *t, uint32_t head)
{
	const struct device_model *m = &t->model;
	uint16_t ahead = (uint16_t)(t->offered - m->end.cursor);

	if (device_model_in_flight(m, head))
		return true;
	for (uint32_t i = 0; i < ahead && i < m->ring.size; i++)
		if (model_get16(&m->ring, model_avail_entry(&m->ring, m->end.cursor + i)) == head)
			return true;
	return false;
}

static bool has_ring(const struct test *t)
{
	return t->model.state != VQB_E_INVALID;
}

static void offer(struct test *t, uint32_t head)
{
	const struct model_ring *m = &t->model.ring;

	driver_put(t, model_avail_entry(m, t->offered), head, 2);
	t->offered++;
	driver_put(t, model_avail_idx(m), t->offered, 2);
}

/* A chain at a head that is free, or once in a while at any. */
static void op_offer(struct test *t)
{
	uint32_t head = 0, tries = 16;

	if (!has_ring(t))
		return;
	if ((uint16_t)(t->offered - t->model.end.cursor) >= t->ring.size &&
	    (t->calm || !one_in(t, 400)))
		return;
	if (!t->calm && one_in(t, 2500)) {
		offer(t, one_in(t, 2) ? below(t, t->ring.size + 1) : (uint16_t)word(t));
		return;
	}
	do {
		head = below(t, t->ring.size);
	} while (head_in_use(t, head) && --tries);
	if (!tries && (t->calm || !one_in(t, 1000)))
		return;
	random_chain(t, head);
	offer(t, head);
}

/* What the driver says of notifications: near what will be exposed next, or anywhere. */
static void op_wish(struct test *t)
{
	const struct model_ring *m = &t->model.ring;
	uint64_t near = (one_in(t, 3) ? t->model.end.decided : t->model.end.exposed) + 6;

	if (!has_ring(t))
		return;
	near = one_in(t, 10) ? word(t) : near - below(t, 12);
	driver_put(t, model_used_event(m), near & 0xffff, 2);
	driver_put(t, model_avail_flags(m), one_in(t, 8) ? word(t) & 0xffff : below(t, 2), 2);
}

/* The driver's index goes astray. */
static void op_jump(struct test *t)
{
	if (!has_ring(t))
		return;
	t->offered = (uint16_t)(t->offered + (one_in(t, 2) ? word(t) : t->ring.size + 1));
	driver_put(t, model_avail_idx(&t->model.ring), t->offered, 2);
}

/* ---- taking and returning ---- */

static void remember_stale(struct test *t, struct vqb_ticket ticket)
{
	t->stale[t->stales++ % STALE] = ticket;
}

static void same_reason(struct test *t, const struct vqb_chain *c, const struct model_chain *mc)
{
	const struct vqb_reason *r = &c->reason, *mr = &mc->chain.reason;

	if (mc->over)
		return;
	same(&t->run, r->rule, mr->rule);
	same(&t->run, r->index, mr->index);
	same(&t->run, r->addr, mr->addr);
}

static void same_chain(struct test *t, const struct vqb_chain *c, const struct model_chain *mc)
{
	const struct vqb_chain *m = &mc->chain;

	same(&t->run, c->ticket.head, m->ticket.head);
	same(&t->run, c->ticket.seq, m->ticket.seq);
	same(&t->run, c->ticket.zero, 0);
	same(&t->run, c->status, m->status);
	same(&t->run, c->readable, m->readable);
	same(&t->run, c->writable, m->writable);
	same(&t->run, c->read_bytes, m->read_bytes);
	same(&t->run, c->write_bytes, m->write_bytes);
	same(&t->run, c->zero, 0);
	if (c->status) {
		t->seen[c->reason.rule]++;
		same_reason(t, c, mc);
		return;
	}
	t->pieces += c->readable + c->writable;
	same(&t->run, c->piece - t->piece, m->piece - t->model_piece);
	for (uint32_t i = 0; i < c->readable + c->writable; i++) {
		same(&t->run, (uintptr_t)c->piece[i].base, (uintptr_t)m->piece[i].base);
		same(&t->run, c->piece[i].len, m->piece[i].len);
	}
}

static void reject(struct test *t)
{
	struct vqb_chain chain;
	struct model_chain expected = { 0 };
	int32_t status = vqb_device_reject(t->dev, &chain);

	same(&t->run, status, device_model_reject(&t->model, &expected.chain));
	if (!status)
		same_chain(t, &chain, &expected);
}

static void take(struct test *t, uint32_t max, uint32_t room)
{
	struct vqb_need need, expected;
	uint32_t taken = 99, expected_taken;
	int32_t status;

	memset(&need, 0xcd, sizeof(need));
	expected = need;
	t->piece[room] = (struct vqb_piece){ t, 77 };
	t->chain[max].zero = 77;
	status = vqb_device_take(t->dev, t->chain, max, t->piece, room, &taken, &need);
	for (uint32_t i = 0; i < max; i++)
		t->model_chain[i].gave_up = i < taken && t->chain[i].status &&
					    t->chain[i].reason.rule == VQB_RULE_BYTES;
	same(&t->run, status,
	     device_model_take(&t->model, t->model_chain, max, t->model_piece, room,
			       &expected_taken, &expected));
	same(&t->run, taken, expected_taken);
	holds(&t->run, t->piece[room].base == t && t->piece[room].len == 77);
	same(&t->run, t->chain[max].zero, 77);
	t->no_room += status == VQB_E_NOSPC;
	t->faults += status == VQB_E_FAULT;
	for (uint32_t i = 0; i < taken; i++)
		same_chain(t, &t->chain[i], &t->model_chain[i]);
	if (status != VQB_E_FAULT)
		same(&t->run, need.pieces, expected.pieces);
	if (status != VQB_E_NOSPC) {
		same(&t->run, need.access, expected.access);
		same(&t->run, need.addr, expected.addr);
	}
	if ((status == VQB_E_FAULT || status == VQB_E_NOSPC) && one_in(t, 2))
		reject(t);
}

static void op_take(struct test *t)
{
	uint32_t max = one_in(t, 20) ? 0 : 1 + below(t, one_in(t, 3) ? CHAINS : 2);

	take(t, max, one_in(t, 5) ? below(t, 20) : PIECES);
}

static void op_reject(struct test *t)
{
	reject(t);
}

/* One that is out, mostly; or one that was; or nonsense. */
static struct vqb_ticket random_ticket(struct test *t)
{
	struct vqb_ticket ticket = { .head = (uint16_t)word(t), .seq = below(t, 100) };
	const struct device_model *m = &t->model;

	if (m->outs && !one_in(t, 20))
		return m->out[one_in(t, 3) ? m->outs - 1 : below(t, m->outs)].ticket;
	if (t->stales && !one_in(t, 8))
		return t->stale[below(t, t->stales < STALE ? t->stales : STALE)];
	if (one_in(t, 2))
		ticket.head = (uint16_t)below(t, m->max_size + 1);
	if (one_in(t, 2))
		ticket.seq = m->seq - below(t, 4);
	return ticket;
}

static uint32_t random_written(struct test *t, struct vqb_ticket ticket)
{
	const struct device_model *m = &t->model;
	uint64_t room = 0;

	for (uint32_t i = 0; i < m->outs; i++)
		if (m->out[i].ticket.seq == ticket.seq)
			room = m->out[i].writable;
	if (one_in(t, 30))
		return (uint32_t)word(t);
	if (one_in(t, m->ring.in_order ? 2 : 10))
		return (uint32_t)(room + one_in(t, 8));
	return room ? (uint32_t)(word(t) % room) : 0;
}

/* What became of a put, of which the model is told now. */
static void was_put(struct test *t, struct vqb_ticket ticket, uint32_t written, int32_t status)
{
	uint64_t next = t->model.end.next;

	same(&t->run, status, device_model_put(&t->model, ticket, written));
	if (!status)
		remember_stale(t, ticket);
	t->held_back += !status && t->model.end.next == next;
	t->batched += t->model.end.next > next + 1;
}

static void put(struct test *t, struct vqb_ticket ticket, uint32_t written)
{
	was_put(t, ticket, written, vqb_device_put(t->dev, ticket, written));
}

/* The model gets them one by one, and has to refuse the one at which the library has stopped. */
static void put_list(struct test *t)
{
	uint32_t n = below(t, LIST + 1), done;
	struct vqb_completion list[LIST];

	for (uint32_t i = 0; i < n; i++) {
		list[i].ticket = random_ticket(t);
		list[i].written = random_written(t, list[i].ticket);
	}
	done = vqb_device_put_list(t->dev, list, n);
	holds(&t->run, done <= n);
	for (uint32_t i = 0; i < done; i++)
		was_put(t, list[i].ticket, list[i].written, VQB_OK);
	if (done < n)
		holds(&t->run, device_model_put(&t->model, list[done].ticket, list[done].written));
	t->lists += done > 1;
	t->cut_lists += done > 1 && done < n;
}

static void op_put(struct test *t)
{
	struct vqb_ticket ticket;

	if (one_in(t, 5)) {
		put_list(t);
		return;
	}
	ticket = random_ticket(t);
	put(t, ticket, random_written(t, ticket));
}

static void op_untake(struct test *t)
{
	uint32_t again = 1 + below(t, 4);

	while (again--) {
		struct vqb_ticket ticket = random_ticket(t);
		int32_t status = vqb_device_untake(t->dev, ticket);

		same(&t->run, status, device_model_untake(&t->model, ticket));
		if (!status)
			remember_stale(t, ticket);
	}
}

static void op_holds(struct test *t)
{
	struct vqb_ticket ticket = random_ticket(t);

	same(&t->run, vqb_device_holds(t->dev, ticket), device_model_holds(&t->model, ticket));
}

/* ---- notifying ---- */

static void op_expose(struct test *t)
{
	vqb_device_expose(t->dev);
	device_model_expose(&t->model);
}

/*
 * Decisions are rare while it is calm. None is made about exactly 65535 entries: the library takes
 * as many for a full turn, and notifies a peer that named the one entry that is not among them.
 */
static bool undecidable(struct test *t)
{
	const struct model_end *e = &t->model.end;

	return (t->calm && !one_in(t, 3)) || e->next - e->decided == 65535;
}

static void op_publish(struct test *t)
{
	if (undecidable(t))
		return;
	same(&t->run, vqb_device_publish(t->dev), device_model_publish(&t->model));
}

static void op_turn(struct test *t)
{
	if (undecidable(t))
		return;
	same(&t->run, vqb_device_turn(t->dev), device_model_turn(&t->model));
}

static void op_arm(struct test *t)
{
	same(&t->run, vqb_device_arm(t->dev), device_model_arm(&t->model));
}

static void op_disarm(struct test *t)
{
	uint16_t event = 0;

	vqb_device_disarm(t->dev);
	if (has_ring(t))
		event = model_get16(&t->ring, model_avail_event(&t->ring));
	holds(&t->run, device_model_disarm(&t->model, event));
}

/* Much traffic at once, so that indices come round and decisions are about a lot. */
static void op_burst(struct test *t)
{
	uint32_t n = below(t, t->calm ? 4000 : 40);

	while (n-- && !t->model.state) {
		op_offer(t);
		take(t, 1, PIECES);
		if (!t->model.outs)
			reject(t);
		if (t->model.outs)
			put(t, t->model.out[t->model.ring.in_order ? 0 : t->model.outs - 1].ticket,
			    0);
		if (one_in(t, 8)) {
			op_expose(t);
			compare(t);
		}
		t->run.done++;
	}
}

/* ---- starting over ---- */

static uint64_t random_features(struct test *t)
{
	uint64_t features = below(t, 1 << 24);

	if (!one_in(t, 4))
		features |= VQB_FEATURE(VQB_F_INDIRECT_DESC);
	if (!one_in(t, 3))
		features |= VQB_FEATURE(VQB_F_EVENT_IDX);
	if (one_in(t, 3))
		features |= VQB_FEATURE(VQB_F_IN_ORDER);
	return features;
}

static struct vqb_ring_at random_ring(struct test *t, uint32_t max_size)
{
	struct vqb_ring_at ring = { .size = max_size, .features = random_features(t) };

	if (one_in(t, 3))
		ring.flags = below(t, 2) ? VQB_RING_BIG_ENDIAN : 0;
	else
		ring.features |= VQB_FEATURE(VQB_F_VERSION_1);
	while (ring.size > 1 && max_size <= SMALL && one_in(t, 3))
		ring.size /= 2;
	ring.index = below(t, 100);
	ring.desc = RING + 16 * (uint64_t)below(t, 4);
	ring.avail = ring.desc + VQB_DESC_BYTES(ring.size) + 2 * (uint64_t)below(t, 4);
	ring.used = (ring.avail + VQB_AVAIL_BYTES(ring.size) + 3) / 4 * 4;
	return ring;
}

/* Makes a ring one that must be refused. */
static void ring_spoil(struct test *t, struct vqb_ring_at *ring)
{
	static const uint32_t size[] = { 0, 3, 65535, 65536 };

	switch (below(t, 7)) {
	case 0:
		ring->size = one_in(t, 2) ? size[below(t, 4)] : 2 * t->model.max_size;
		break;
	case 1:
		if (ring->features & VQB_FEATURE(VQB_F_VERSION_1))
			ring->flags = VQB_RING_BIG_ENDIAN;
		else
			ring->flags = 2;
		break;
	case 2:
		ring->zero = 1;
		break;
	case 3:
		ring->features |= VQB_FEATURE(one_in(t, 2) ? VQB_F_RING_PACKED : 43);
		break;
	case 4:
		ring->desc += 8;
		break;
	case 5:
		ring->avail++;
		break;
	default:
		ring->used += 2;
	}
}

/* The model's ring before the driver begins at `idx`: heads in order, `ahead` of them offered. */
static void image_start(struct test *t, const struct vqb_ring_at *ring, uint16_t idx,
			uint16_t ahead)
{
	struct model_ring *m = &t->model.ring;
	uint32_t used = VQB_USED_BYTES(ring->size);
	struct model_ring as = *m;

	as.size = ring->size;
	as.big = ring->flags & VQB_RING_BIG_ENDIAN;
	for (uint32_t i = 0; i < used; i++)
		m->used[i] = (uint8_t)(ring->size > SMALL ? i : word(t));
	if (t->model.track.used) /* it has to be right for whoever goes on there */
		model_put(&as, model_used_idx(&as), idx, 2);
	memset(m->avail, 0, VQB_AVAIL_BYTES(ring->size));
	for (uint32_t i = 0; i < ring->size; i++) {
		struct model_desc d = { .addr = DATA + 16 * below(t, 64), .len = 8 };

		model_desc_put(&as, m->desc, i, d);
		model_put(&as, model_avail_entry(&as, i), i, 2);
	}
	t->offered = (uint16_t)(idx + ahead);
	model_put(&as, model_avail_idx(&as), t->offered, 2);
	if (ring->features & VQB_FEATURE(VQB_F_EVENT_IDX)) {
		model_put(&as, model_used_flags(&as), 0, 2);
		return;
	}
	/* The library need not store a wish that the ring has from the start. */
	model_put(&as, model_used_flags(&as), below(t, 2), 2);
}

static void all_stale(struct test *t)
{
	for (uint32_t i = 0; i < t->model.outs; i++)
		remember_stale(t, t->model.out[i].ticket);
}

static void restart(struct test *t, bool spoilt)
{
	struct vqb_ring_at ring = random_ring(t, t->model.max_size), bad;
	struct vqb_device_saved saved = { 0 };
	bool restore = !one_in(t, 4);

	all_stale(t);
	/* Else the tracking area would want to go on with the old ring. */
	if (restore && t->model.track.live)
		same(&t->run, vqb_device_reset(t->dev, NULL), device_model_reset(&t->model, NULL));
	if (restore) {
		saved.used = (uint16_t)(one_in(t, 3) ? 65500 + below(t, 60) : word(t));
		saved.avail = (uint16_t)(saved.used + (one_in(t, 3) ? below(t, ring.size + 2) : 0));
	}
	bad = ring;
	if (spoilt)
		ring_spoil(t, &bad);
	image_start(t, &ring, saved.used, (uint16_t)(saved.avail - saved.used));
	ring_copy(t, &t->map[t->map_now], &ring);
	t->at = ring;
	if (restore)
		same(&t->run, vqb_device_restore(t->dev, &bad, &saved),
		     device_model_restore(&t->model, &bad, &saved));
	else
		same(&t->run, vqb_device_reset(t->dev, &bad), device_model_reset(&t->model, &bad));
	if (has_ring(t))
		ring_find(t);
}

static void op_restart(struct test *t)
{
	if (one_in(t, 8)) {
		all_stale(t);
		same(&t->run, vqb_device_restore(t->dev, NULL, NULL),
		     device_model_restore(&t->model, NULL, NULL));
		return;
	}
	restart(t, one_in(t, 6));
}

static void op_save(struct test *t)
{
	struct vqb_device_saved saved = { 0xabcd, 0xabcd }, expected = saved;

	same(&t->run, vqb_device_save(t->dev, &saved), device_model_save(&t->model, &expected));
	same(&t->run, saved.avail, expected.avail);
	same(&t->run, saved.used, expected.used);
	t->ahead += saved.avail != saved.used;
}

/*
 * Another process goes on with what the tracking area says, or this one does, and is told
 * something that the area knows better. The ring was perhaps let go of before.
 */
static void op_take_over(struct test *t)
{
	struct vqb_device_saved saved = { (uint16_t)word(t), (uint16_t)word(t) };
	struct vqb_ring_at ring = t->at;

	if (!t->model.track.live)
		return;
	all_stale(t);
	t->again += t->model.track.heads > 0;
	ring_copy(t, &t->map[t->map_now], &ring);
	if (one_in(t, 8))
		ring_spoil(t, &ring);
	if (one_in(t, 2)) {
		same(&t->run, vqb_device_restore(t->dev, &ring, &saved),
		     device_model_restore(&t->model, &ring, &saved));
	} else if (has_ring(t) && !memcmp(&ring, &t->at, sizeof(ring))) {
		t->stales = 0; /* tickets are counted anew */
		t->config.ring = ring;
		t->config.memory = t->model.memory;
		same(&t->run, vqb_device_init(t->object, t->object_bytes, &t->config, &t->dev),
		     device_model_take_over(&t->model, &t->config));
	}
	if (has_ring(t))
		ring_find(t);
}

static void op_needs_reset(struct test *t)
{
	vqb_device_needs_reset(t->dev);
	device_model_needs_reset(&t->model);
}

static void op_set_memory(struct test *t)
{
	struct map *map = map_make(t);
	int32_t status;

	if (has_ring(t))
		ring_copy(t, map, &t->model.at);
	if (one_in(t, 8))
		map_spoil(t, map);
	status = vqb_device_set_memory(t->dev, &map->memory);
	same(&t->run, status, device_model_set_memory(&t->model, &map->memory));
	if (status)
		return;
	t->map_now = !t->map_now;
	if (has_ring(t))
		ring_find(t);
}

static void op_clear(struct test *t)
{
	vqb_device_clear_counters(t->dev);
	memset(&t->model.count, 0, sizeof(t->model.count));
	t->model.end.notified = t->model.end.suppressed = 0;
}

/* ---- the comparison after each operation ---- */

static void same_counters(struct test *t)
{
	struct vqb_device_counters *m = &t->model.count, c;

	vqb_device_read_counters(t->dev, &c);
	holds(&t->run, c.descriptors <= m->descriptors &&
			       m->descriptors - c.descriptors <= t->model.less_descriptors);
	holds(&t->run,
	      c.indirect <= m->indirect && m->indirect - c.indirect <= t->model.less_indirect);
	m->descriptors = c.descriptors;
	m->indirect = c.indirect;
	t->model.less_descriptors = t->model.less_indirect = 0;
	same(&t->run, c.chains, m->chains);
	same(&t->run, c.untaken, m->untaken);
	same(&t->run, c.bad_chains, m->bad_chains);
	same(&t->run, c.completions, m->completions);
	same(&t->run, c.stale, m->stale);
	same(&t->run, c.faults, m->faults);
	same(&t->run, c.notified, t->model.end.notified);
	same(&t->run, c.suppressed, t->model.end.suppressed);
}

static void same_bytes(struct test *t)
{
	const struct model_ring *m = &t->model.ring, *l = &t->ring;

	holds(&t->run, !memcmp(l->desc, m->desc, VQB_DESC_BYTES(m->size)));
	holds(&t->run, !memcmp(l->avail, m->avail, VQB_AVAIL_BYTES(m->size)));
	holds(&t->run, !memcmp(l->used, m->used, VQB_USED_BYTES(m->size)));
}

static void compare(struct test *t)
{
	struct vqb_reason why = { 0 };

	same(&t->run, vqb_device_state(t->dev, &why), t->model.state);
	if (t->model.state == VQB_E_BROKEN) {
		t->seen[t->model.why.rule]++;
		same(&t->run, why.rule, t->model.why.rule);
		same(&t->run, why.index, t->model.why.index);
	}
	same(&t->run, vqb_device_in_flight(t->dev), t->model.outs);
	same(&t->run, vqb_device_pending(t->dev), device_model_pending(&t->model));
	same_counters(t);
	if (t->model.max_size > SMALL && t->run.done % 1024)
		return;
	same(&t->run, vqb_device_oldest_generation(t->dev),
	     device_model_oldest_generation(&t->model));
	holds(&t->run, device_model_tracks(&t->model, t->area));
	if (has_ring(t))
		same_bytes(t);
}

/* ---- episodes ---- */

static const struct operation {
	const char *name;
	void (*run)(struct test *t);
	unsigned weight;
} operations[] = {
	{ "offer", op_offer, 600 },
	{ "take", op_take, 400 },
	{ "put", op_put, 500 },
	{ "untake", op_untake, 30 },
	{ "reject", op_reject, 15 },
	{ "expose", op_expose, 60 },
	{ "publish", op_publish, 120 },
	{ "turn", op_turn, 120 },
	{ "arm", op_arm, 60 },
	{ "disarm", op_disarm, 40 },
	{ "save", op_save, 20 },
	{ "restart", op_restart, 2 },
	{ "set_memory", op_set_memory, 6 },
	{ "wish", op_wish, 200 },
	{ "jump", op_jump, 1 },
	{ "holds", op_holds, 60 },
	{ "clear", op_clear, 1 },
	{ "burst", op_burst, 2 },
	{ "take_over", op_take_over, 6 },
	{ "needs_reset", op_needs_reset, 1 },
};

enum { KINDS = sizeof(operations) / sizeof(operations[0]) };

static void random_weights(struct test *t)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		unsigned factor = one_in(t, 4) ? (one_in(t, 3) ? 0 : 5) : 1;

		t->weight[i] = operations[i].weight * (i ? factor : 1);
	}
	if (t->config.max_size > SMALL) /* each of these looks at every byte of the ring */
		for (uint32_t i = 0; i < KINDS; i++)
			if (operations[i].run == op_restart || operations[i].run == op_set_memory ||
			    operations[i].run == op_take_over)
				t->weight[i] = 0;
	for (uint32_t i = 0; t->calm && i < KINDS; i++) {
		if (operations[i].run == op_burst)
			t->weight[i] = 2600;
		else if (operations[i].run == op_jump || operations[i].run == op_restart ||
			 operations[i].run == op_needs_reset)
			t->weight[i] = 0;
	}
}

static void random_config(struct test *t)
{
	uint32_t size = one_in(t, 40) ? VQB_RING_MAX : 1u << below(t, 7);

	t->config =
		(struct vqb_device_config){ .struct_size = sizeof(t->config), .max_size = size };
	if (one_in(t, 2))
		t->config.max_chain = 1 + below(t, one_in(t, 3) ? 200 : 2 * (size & 127) + 4);
	if (one_in(t, 3))
		t->config.max_pieces = 1 + below(t, 40);
	memset(t->area, 0, VQB_TRACKING_BYTES(size));
	if (one_in(t, 3))
		t->config.tracking = (struct vqb_tracking){ t->area, VQB_TRACKING_BYTES(size) };
	t->at = random_ring(t, size);
	t->calm = one_in(t, 30);
}

/* Begins with no ring; the first restart brings one. */
static void episode_start(struct test *t)
{
	struct map *map;

	random_config(t);
	t->map_now = 0;
	t->map[0].memory.generation = UINT32_MAX - below(t, 8);
	map = map_make(t);
	t->map_now = 1;
	t->config.memory = &map->memory;
	random_weights(t);
	for (uint32_t i = 0; i < DATA_BYTES; i += 8)
		memset(t->data_copy + i, (int)(word(t) & 0x11), 8);
	memcpy(t->data[0], t->data_copy, DATA_BYTES);
	memcpy(t->data[1], t->data_copy, DATA_BYTES);
	t->object_bytes = vqb_device_size(&t->config);
	holds(&t->run, t->object_bytes > 0);
	free(t->object);
	t->object = aligned_alloc(64, (t->object_bytes + GUARD + 63) / 64 * 64);
	assert_non_null(t->object);
	memset(t->object + t->object_bytes, 0xa5, GUARD);
	same(&t->run, vqb_device_init(t->object, t->object_bytes, &t->config, &t->dev), VQB_OK);
	t->model.ring.desc = t->image;
	t->model.ring.avail = t->image + VQB_DESC_BYTES(VQB_RING_MAX);
	t->model.ring.used = t->model.ring.avail + VQB_AVAIL_BYTES(VQB_RING_MAX) + 2;
	device_model_init(&t->model, &t->config);
	restart(t, false);
}

/* The device wrote to nothing but the ring. */
static void episode_end(struct test *t)
{
	t->run.doing = "end";
	if (has_ring(t))
		same_bytes(t);
	holds(&t->run, !memcmp(t->data[0], t->data_copy, DATA_BYTES));
	holds(&t->run, !memcmp(t->data[1], t->data_copy, DATA_BYTES));
	for (unsigned i = 0; i < GUARD; i++)
		same(&t->run, t->object[t->object_bytes + i], 0xa5);
}

/* Everything that can happen to a chain did happen, if there was time for it. */
static void happened(struct test *t)
{
	if (t->run.is_short)
		return;
	t->run.doing = "coverage";
	for (unsigned rule = VQB_RULE_NEXT; rule <= VQB_RULE_REJECTED; rule++)
		if (rule != VQB_RULE_BYTES || UINTPTR_MAX > 0xffffffffu)
			holds(&t->run, t->seen[rule]);
	for (unsigned rule = VQB_RULE_HEAD; rule <= VQB_RULE_JUMPED; rule++)
		holds(&t->run, t->seen[rule]);
	holds(&t->run, t->no_room && t->faults && t->pieces);
	holds(&t->run, t->batched && t->held_back && t->ahead && t->again);
	holds(&t->run, t->lists && t->cut_lists);
}

/*
 * Shows: SR-ANY-04 SR-ANY-05 SR-ANY-06 SR-DEV-03 SR-DEV-06 SR-DEV-07 SR-DEV-08 SR-DEV-09 SR-DEV-10
 * Shows: SR-DEV-11 SR-DEV-12 SR-DEV-13 SR-DEV-14 SR-DEV-20 SR-DEV-22 SR-DEV-30 SR-DEV-31 SR-DEV-32
 * Shows: SR-DEV-33 SR-DEV-34 SR-DEV-18 SR-DEV-19 BF-DEV-30
 */
static void test_device_and_model_agree(void **state)
{
	static struct test t;

	(void)state;
	run_start(&t.run, OPERATIONS);
	while (run_episode(&t.run)) {
		uint32_t steps;

		run_operation(&t.run, "start");
		episode_start(&t);
		steps = 1 + below(&t, t.calm ? 160 : 6000);
		while (steps--) {
			const struct operation *op = &operations[run_pick(&t.run, t.weight, KINDS)];

			run_operation(&t.run, op->name);
			op->run(&t);
			compare(&t);
			if (t.model.state && one_in(&t, 20))
				op_restart(&t);
		}
		episode_end(&t);
	}
	free(t.object);
	happened(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_and_model_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
