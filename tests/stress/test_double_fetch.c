/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that changes what it shares all the time, as fast as it can, while the other side works
 * on it: whatever is checked must be what is used. Each answer is held against what may come out
 * of any memory whatsoever, and all memory has a hole before and behind it.
 *
 * Two seconds for each side, counting the time in which both threads run; VQB_LONG=1 makes it a
 * minute.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <vqblk/device.h>
#include <vqblk/driver.h>

#include "flipper.h"

enum {
	SIZE = 8,
	TABLES = 4, /* of SIZE entries */
	BATCH = 8,
	ROOM = 24, /* pieces, for a batch */
	MAX_PIECES = 12,
	PATIENCE_MS = 60000, /* with a machine on which the other thread hardly runs */
};

static uint64_t milliseconds(void)
{
	return getenv("VQB_LONG") ? 60000 : 2000;
}

/* ---- the device and its driver ---- */

enum { DESC, AVAIL, USED, TABLE, TABLE_REST, READ_ONLY, WRITE_ONLY, BOTH, TOP, EXTENTS };

/* The tables lie in two extents, the border of which is in the middle of a descriptor. */
enum { TABLE_BYTES = 16 * SIZE * TABLES, TABLE_CUT = 200 };

/* Holes between all others, and the last one ends at 2^64. */
static const struct vqb_extent extents[EXTENTS] = {
	[DESC] = { 0x10000, 16 * SIZE, NULL, VQB_READ, 0 },
	[AVAIL] = { 0x20000, 6 + 2 * SIZE, NULL, VQB_READ, 0 },
	[USED] = { 0x30000, 6 + 8 * SIZE, NULL, VQB_WRITE, 0 },
	[TABLE] = { 0x40000, TABLE_CUT, NULL, VQB_READ, 0 },
	[TABLE_REST] = { 0x40000 + TABLE_CUT, TABLE_BYTES - TABLE_CUT, NULL, VQB_READ, 0 },
	[READ_ONLY] = { 0x50000, 3000, NULL, VQB_READ, 0 },
	[WRITE_ONLY] = { 0x60000, 5000, NULL, VQB_WRITE, 0 },
	[BOTH] = { 0x70000, 700, NULL, VQB_READ | VQB_WRITE, 0 },
	[TOP] = { UINT64_MAX - 0xfff, 0x1000, NULL, VQB_READ | VQB_WRITE, 0 },
};

struct device_mode {
	const char *name;
	uint64_t features;
	uint32_t max_chain;
	uint32_t cut; /* extents are handed out by a hook, in parts that end at its multiples; 0:
			 none */
};

#define EVENTS VQB_FEATURE(VQB_F_EVENT_IDX)
#define INDIRECT VQB_FEATURE(VQB_F_INDIRECT_DESC)
#define PLATFORM VQB_FEATURE(VQB_F_ORDER_PLATFORM)
#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)

static const struct device_mode device_modes[] = {
	{ "flags", 0, 0, 0 },
	{ "events, tables", INDIRECT | EVENTS, 0, 0 },
	{ "long chains, tables", INDIRECT, 1000, 0 },
	{ "cut memory, tables", INDIRECT, 0, 100 },
	{ "device barriers, tables", INDIRECT | EVENTS | PLATFORM, 0, 0 },
};

/* What has been seen, so that a test in which nothing happens fails. */
enum {
	GOOD,
	WITH_TABLE,
	BAD,
	FAULT,
	NOSPC,
	HEAD,
	TWICE,
	JUMPED,
	UNTAKEN,
	DEVICE_KINDS,
};

struct device_scene {
	const struct device_mode *mode;
	struct vqb_extent extent[EXTENTS];
	struct vqb_memory memory;
	struct vqb_ring_at ring;
	struct vqb_device *dev;
	struct vqb_chain *chain_end; /* behind the last of BATCH */
	struct vqb_piece *piece_end; /* behind the last of ROOM */
	struct guarded guarded[EXTENTS + 3];
	struct flipper flipper;
	_Atomic uint32_t at; /* where the device stands, for the flipper */
	/* the main thread's */
	struct vqb_ticket out[SIZE]; /* seq 0: not out */
	uint64_t capacity[SIZE];     /* writable bytes */
	uint32_t in_flight, newest;
	bool broken;
	uint64_t seen[DEVICE_KINDS];
	uint64_t rng;
};

static struct device_scene device_scene;

/* ---- the driver that changes its mind ---- */

static uint64_t some_addr(const struct device_scene *s, uint64_t *rng)
{
	const struct vqb_extent *e = &s->extent[draw(rng, 4) ? READ_ONLY + draw(rng, 4) : TABLE];

	switch (draw(rng, 32)) {
	case 0:
		return (uint64_t)draw(rng, UINT32_MAX) << 32 | draw(rng, UINT32_MAX);
	case 1:
		return s->extent[draw(rng, EXTENTS)].addr - 1 + draw(rng, 3);
	default:
		break;
	}
	if (draw(rng, 2))
		return e->addr + draw(rng, 256);
	return e->addr + e->len - 1 - draw(rng, 256);
}

static uint32_t some_len(uint64_t *rng)
{
	switch (draw(rng, 32)) {
	case 0:
		return draw(rng, UINT32_MAX);
	case 1:
	case 2:
		return 0;
	case 3:
		return 0x1000;
	default:
		return 1 + draw(rng, 150);
	}
}

static uint32_t some_flags(const struct device_scene *s, uint64_t *rng)
{
	static const uint8_t plausible[] = {
		RAW_NEXT, RAW_NEXT,  RAW_NEXT | RAW_WRITE, 0, 0, RAW_WRITE, RAW_WRITE, RAW_WRITE,
		0,        RAW_WRITE, RAW_INDIRECT,
	};
	uint32_t without = s->mode->features & INDIRECT ? 0 : 1;

	if (!draw(rng, 32))
		return draw(rng, 0x10000);
	return plausible[draw(rng, (uint32_t)sizeof(plausible) - without)];
}

/*
 * One that is wrong breaks the ring, where it is a head, and spoils no more than a chain as a link.
 */
static uint32_t some_head(uint64_t *rng)
{
	return draw(rng, 32) ? draw(rng, SIZE) : draw(rng, 0x10000);
}

static uint32_t some_next(uint64_t *rng)
{
	return draw(rng, 8) ? draw(rng, SIZE) : draw(rng, 0x10000);
}

/* Changes one field of the descriptor that begins at `addr` and goes on at `rest`, or one byte. */
static void flip_field(const struct device_scene *s, uint8_t *addr, uint8_t *rest, uint64_t *rng)
{
	switch (draw(rng, 10)) {
	case 0:
	case 1:
		flip(addr, some_addr(s, rng), 8);
		break;
	case 2:
	case 3:
		flip(rest, some_len(rng), 4);
		break;
	case 4:
	case 5:
		flip(rest + 4, some_flags(s, rng), 2);
		break;
	case 6:
	case 7:
		flip(rest + 6, some_next(rng), 2);
		break;
	case 8:
		flip(addr + draw(rng, 8), draw(rng, 256), 1);
		break;
	default:
		flip(rest + draw(rng, 8), draw(rng, 256), 1);
	}
}

static uint8_t *table_word(const struct device_scene *s, uint32_t offset)
{
	if (offset < TABLE_CUT)
		return (uint8_t *)s->extent[TABLE].host + offset;
	return (uint8_t *)s->extent[TABLE_REST].host + offset - TABLE_CUT;
}

/* Makes a good chain of the descriptors of the ring, or of the first table, from number `i` on. */
static void flip_chain(const struct device_scene *s, uint32_t i, uint64_t *rng)
{
	uint8_t *d = (uint8_t *)s->extent[draw(rng, 2) ? DESC : TABLE].host + 16 * (size_t)i;
	uint32_t last = SIZE - 1 - (draw(rng, 2) ? 0 : draw(rng, SIZE - i)), writes = draw(rng, 2);
	const struct vqb_extent *e = &s->extent[writes ? WRITE_ONLY : READ_ONLY];

	for (; i <= last; i++, d += 16) {
		flip(d, e->addr + draw(rng, (uint32_t)e->len - 200), 8);
		flip(d + 8, 1 + draw(rng, 200), 4);
		flip(d + 12, (writes ? RAW_WRITE : 0u) | (i < last ? RAW_NEXT : 0u), 2);
		flip(d + 14, i + 1, 2);
	}
}

static void flip_entry(const struct device_scene *s, uint64_t *rng)
{
	uint32_t offset = 16 * draw(rng, SIZE * TABLES);

	flip_field(s, table_word(s, offset), table_word(s, offset + 8), rng);
}

/* Makes the descriptor at `d` one that refers to a table, most often a good one. */
static void flip_table(const struct device_scene *s, uint8_t *d, uint64_t *rng)
{
	uint32_t first = draw(rng, SIZE * TABLES), most = SIZE * TABLES - first;

	most = most < SIZE ? most : SIZE;
	flip(d, s->extent[TABLE].addr + 16 * first + (draw(rng, 8) ? 0 : draw(rng, 16)), 8);
	flip(d + 8, 16 * (1 + draw(rng, draw(rng, 4) ? most : 0x1000)) + !draw(rng, 16), 4);
	flip(d + 12, RAW_INDIRECT, 2);
}

static void flip_available(const struct device_scene *s, uint64_t *rng)
{
	uint8_t *avail = s->extent[AVAIL].host;
	uint32_t at = atomic_load_explicit(&s->at, memory_order_relaxed);

	switch (draw(rng, 8)) {
	case 0:
		flip(avail, draw(rng, 0x10000), 2);
		break;
	case 1:
		flip(avail + 4 + 2 * SIZE, draw(rng, 2) ? at + draw(rng, SIZE) : draw(rng, 0x10000),
		     2);
		break;
	case 2:
		flip(avail + 2, draw(rng, 64) ? at + draw(rng, SIZE) : draw(rng, 0x10000), 2);
		break;
	default:
		flip(avail + 4 + 2 * (size_t)draw(rng, SIZE), some_head(rng), 2);
	}
}

static void driver_flips(void *scene, uint64_t *rng)
{
	struct device_scene *s = scene;
	uint32_t i = draw(rng, SIZE);
	uint8_t *desc = (uint8_t *)s->extent[DESC].host + 16 * (size_t)i;

	switch (draw(rng, 16)) {
	case 0:
	case 1:
	case 2:
		flip_available(s, rng);
		break;
	case 3:
	case 4:
		if (s->mode->features & INDIRECT || !draw(rng, 8))
			flip_table(s, desc, rng);
		break;
	case 5:
	case 6:
		flip_chain(s, draw(rng, 2) ? 0 : i, rng);
		break;
	case 7:
	case 8:
	case 9:
		flip_entry(s, rng);
		break;
	default:
		flip_field(s, desc, desc + 8, rng);
	}
}

/* ---- what the device may answer ---- */

static bool covered(const struct device_scene *s, uint64_t addr, uint32_t access)
{
	for (unsigned i = 0; i < EXTENTS; i++) {
		const struct vqb_extent *e = &s->extent[i];

		if (addr - e->addr < e->len && e->access & access)
			return true;
	}
	return false;
}

/* A piece lies in one extent that allows `access`, whose bytes are then really touched. */
static void check_piece(const struct device_scene *s, const struct vqb_piece *piece,
			uint32_t access)
{
	uintptr_t at = (uintptr_t)piece->base;
	uint8_t *base = piece->base;

	for (unsigned i = 0; i < EXTENTS; i++) {
		const struct vqb_extent *e = &s->extent[i];
		uintptr_t offset = at - (uintptr_t)e->host;

		if (!(e->access & access) || offset >= e->len || piece->len > e->len - offset)
			continue;
		assert_true(piece->len > 0);
		__atomic_load_n(base, __ATOMIC_RELAXED);
		__atomic_load_n(base + piece->len - 1, __ATOMIC_RELAXED);
		return;
	}
	fail_msg("a piece of %zu bytes is in no extent for access %u", piece->len,
		 (unsigned)access);
}

static void check_good(struct device_scene *s, const struct vqb_chain *chain)
{
	uint64_t bytes[2] = { 0, 0 };
	uint32_t pieces = chain->readable + chain->writable;

	assert_true(chain->readable <= MAX_PIECES && pieces <= MAX_PIECES);
	for (uint32_t i = 0; i < pieces; i++) {
		bool writes = i >= chain->readable;

		check_piece(s, &chain->piece[i], writes ? VQB_WRITE : VQB_READ);
		bytes[writes] += chain->piece[i].len;
	}
	assert_true(bytes[0] == chain->read_bytes);
	assert_true(bytes[1] == chain->write_bytes);
	assert_true(bytes[0] + bytes[1] <= UINT64_C(1) << 32);
	s->seen[GOOD]++;
}

/* The ticket is of a head that was not out, and now is. */
static void note_taken(struct device_scene *s, const struct vqb_chain *chain)
{
	uint32_t head = chain->ticket.head;

	assert_true(head < SIZE);
	assert_int_equal(s->out[head].seq, 0);
	assert_int_not_equal(chain->ticket.seq, 0);
	s->out[head] = chain->ticket;
	s->capacity[head] = chain->write_bytes;
	s->newest = head;
	s->in_flight++;
	s->at++;
	if (chain->status == VQB_OK) {
		check_good(s, chain);
		return;
	}
	assert_int_equal(chain->status, VQB_E_BAD_CHAIN);
	assert_int_equal(chain->readable + chain->writable, 0);
	assert_in_range(chain->reason.rule, VQB_RULE_NEXT, VQB_RULE_REJECTED);
	s->seen[BAD]++;
}

static void check_broken(struct device_scene *s)
{
	struct vqb_reason why;

	assert_int_equal(vqb_device_state(s->dev, &why), VQB_E_BROKEN);
	if (s->broken)
		return; /* and said so before; what was out may have been put since */
	s->broken = true;
	assert_in_range(why.rule, VQB_RULE_HEAD, VQB_RULE_JUMPED);
	if (why.rule == VQB_RULE_HEAD)
		assert_true(why.index >= SIZE);
	if (why.rule == VQB_RULE_TWICE)
		assert_true(why.index < SIZE && s->out[why.index].seq);
	s->seen[HEAD + why.rule - VQB_RULE_HEAD]++;
}

/* After a take that stopped, with `left` pieces free. */
static void check_stop(struct device_scene *s, int32_t status, const struct vqb_need *need,
		       uint32_t left)
{
	struct vqb_chain chain;

	if (status == VQB_E_BROKEN) {
		check_broken(s);
		return;
	}
	if (status == VQB_E_FAULT) {
		assert_false(covered(s, need->addr, need->access));
		s->seen[FAULT]++;
	} else {
		assert_int_equal(status, VQB_E_NOSPC);
		assert_in_range(need->pieces, left + 1, MAX_PIECES);
		s->seen[NOSPC]++;
	}
	if (!draw(&s->rng, 4))
		return;
	/* By now its head may be another one, and wrong. */
	status = vqb_device_reject(s->dev, &chain);
	if (status == VQB_E_BROKEN)
		check_broken(s);
	else
		note_taken(s, &chain);
}

/* So as not to wait until the flipper happens to have something to take. */
static void offer_more(struct device_scene *s)
{
	flip((uint8_t *)s->extent[AVAIL].host + 2, s->at + 1 + draw(&s->rng, SIZE), 2);
}

static void take(struct device_scene *s)
{
	uint32_t max = 1 + draw(&s->rng, BATCH), room = draw(&s->rng, ROOM + 1), used = 0, n;
	struct vqb_chain *chain = s->chain_end - max;
	struct vqb_piece *piece = s->piece_end - room;
	struct vqb_device_counters before, after;
	struct vqb_need need;
	int32_t status;

	vqb_device_read_counters(s->dev, &before);
	status = vqb_device_take(s->dev, chain, max, piece, room, &n, &need);
	vqb_device_read_counters(s->dev, &after);
	assert_true(n <= max);
	/* A chain costs its descriptors in the ring, one of them too many, and those of a table. */
	assert_true(after.descriptors - before.descriptors <= (n + 1) * (2 * SIZE + 1));
	s->seen[WITH_TABLE] += after.indirect - before.indirect;
	for (uint32_t i = 0; i < n; i++) {
		note_taken(s, &chain[i]);
		if (chain[i].status)
			continue;
		assert_ptr_equal(chain[i].piece, piece + used);
		used += chain[i].readable + chain[i].writable;
		assert_true(used <= room);
	}
	if (status)
		check_stop(s, status, &need, room - used);
	else if (!n)
		offer_more(s);
}

static void put(struct device_scene *s)
{
	uint32_t first = draw(&s->rng, SIZE), capacity;

	for (uint32_t i = 0; i < SIZE && s->in_flight; i++) {
		uint32_t head = (first + i) % SIZE;
		struct vqb_ticket ticket = s->out[head];

		if (!ticket.seq || !draw(&s->rng, 8))
			continue;
		assert_int_equal(vqb_device_holds(s->dev, ticket), VQB_OK);
		capacity = (uint32_t)s->capacity[head]; /* of so few pieces */
		assert_int_equal(vqb_device_put(s->dev, ticket, capacity + 1), VQB_E_INVALID);
		assert_int_equal(vqb_device_put(s->dev, ticket, draw(&s->rng, capacity + 1)),
				 VQB_OK);
		assert_int_equal(vqb_device_put(s->dev, ticket, 0), VQB_E_STALE);
		s->out[head].seq = 0;
		s->in_flight--;
	}
}

static void untake(struct device_scene *s)
{
	struct vqb_ticket ticket = s->out[s->newest];

	if (!ticket.seq || vqb_device_untake(s->dev, ticket))
		return;
	s->out[s->newest].seq = 0;
	s->in_flight--;
	s->at--;
	s->seen[UNTAKEN]++;
}

/* Most often the device goes on where it stood, so that the index there makes sense to it. */
static int32_t restart_device(struct device_scene *s)
{
	struct vqb_device_saved saved = { (uint16_t)s->at, (uint16_t)s->at };

	if (draw(&s->rng, 8)) {
		offer_more(s);
		return vqb_device_restore(s->dev, &s->ring, &saved);
	}
	s->at = 0;
	return vqb_device_reset(s->dev, draw(&s->rng, 8) ? &s->ring : NULL);
}

static void reset_device(struct device_scene *s)
{
	assert_int_equal(restart_device(s), VQB_OK);
	for (uint32_t head = 0; head < SIZE; head++) {
		if (s->out[head].seq)
			assert_int_equal(vqb_device_put(s->dev, s->out[head], 0), VQB_E_STALE);
		s->out[head].seq = 0;
	}
	s->in_flight = 0;
	s->broken = false;
}

static void device_step(struct device_scene *s)
{
	switch (draw(&s->rng, 16)) {
	case 0:
		vqb_device_publish(s->dev);
		break;
	case 1:
		vqb_device_turn(s->dev);
		break;
	case 2:
		vqb_device_arm(s->dev);
		break;
	case 3:
		vqb_device_disarm(s->dev);
		break;
	case 4:
		untake(s);
		break;
	case 5:
		s->memory.generation++;
		assert_int_equal(vqb_device_set_memory(s->dev, &s->memory), VQB_OK);
		break;
	case 6:
	case 7:
	case 8:
		put(s);
		break;
	default:
		take(s);
	}
	if (vqb_device_state(s->dev, NULL) ? draw(&s->rng, 2) : !draw(&s->rng, 512))
		reset_device(s);
	assert_int_equal(vqb_device_in_flight(s->dev), s->in_flight);
	assert_true(vqb_device_pending(s->dev) <= SIZE);
}

/* ---- the device's scene ---- */

/* Hands an extent out in parts of `cut` bytes. */
static int32_t translate(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	const struct device_scene *s = context;
	uint64_t cut = s->mode->cut;

	for (unsigned i = 0; i < EXTENTS; i++) {
		const struct vqb_extent *e = &s->extent[i];
		uint64_t first = (addr - e->addr) / cut * cut;

		if (addr - e->addr >= e->len || !(e->access & access))
			continue;
		*out = *e;
		out->addr += first;
		out->host = (uint8_t *)e->host + (size_t)first;
		out->len = e->len - first < cut ? e->len - first : cut;
		return VQB_OK;
	}
	return VQB_E_FAULT;
}

static void open_device(struct device_scene *s, const struct device_mode *mode)
{
	struct vqb_device_config config = { .struct_size = sizeof(config) };
	struct guarded *g = s->guarded;
	void *mem;

	s->mode = mode;
	for (unsigned i = 0; i < EXTENTS; i++) {
		s->extent[i] = extents[i];
		s->extent[i].host = guarded_alloc(g++, (size_t)extents[i].len, i == USED ? 4 : 1);
	}
	s->memory = (struct vqb_memory){ .struct_size = sizeof(s->memory), .generation = 1 };
	s->memory.count = mode->cut ? 0 : EXTENTS;
	s->memory.sorted = s->extent;
	s->memory.translate = mode->cut ? translate : NULL;
	s->memory.context = s;
	s->ring = (struct vqb_ring_at){ .size = SIZE, .features = mode->features };
	s->ring.desc = extents[DESC].addr;
	s->ring.avail = extents[AVAIL].addr;
	s->ring.used = extents[USED].addr;
	config.ring = s->ring;
	config.max_chain = mode->max_chain;
	config.max_pieces = MAX_PIECES;
	config.memory = &s->memory;
	mem = guarded_alloc(g++, vqb_device_size(&config), VQB_ALIGN);
	s->chain_end = (struct vqb_chain *)guarded_alloc(g++, BATCH * sizeof(struct vqb_chain), 8);
	s->chain_end += BATCH;
	s->piece_end = (struct vqb_piece *)guarded_alloc(g++, ROOM * sizeof(struct vqb_piece), 8);
	s->piece_end += ROOM;
	assert_int_equal(vqb_device_init(mem, vqb_device_size(&config), &config, &s->dev), VQB_OK);
}

static void close_device(struct device_scene *s)
{
	flipper_stop(&s->flipper);
	for (unsigned i = 0; i < sizeof(s->guarded) / sizeof(s->guarded[0]); i++)
		guarded_free(&s->guarded[i]);
}

static int close_device_scene(void **state)
{
	(void)state;
	close_device(&device_scene);
	return 0;
}

static bool device_saw_all(const struct device_scene *s)
{
	bool tables = s->mode->features & INDIRECT;

	for (unsigned i = 0; i < DEVICE_KINDS; i++)
		if (!s->seen[i] && (i != WITH_TABLE || tables))
			return false;
	return true;
}

static void run_device(const struct device_mode *mode, uint64_t ms)
{
	static const char *const name[DEVICE_KINDS] = { "good",  "with a table", "bad",
							"fault", "no room",      "head outside",
							"twice", "jumped",       "untaken" };
	struct device_scene *s = &device_scene;
	struct together time;
	uint64_t steps = 0;

	memset(s, 0, sizeof(*s));
	s->rng = UINT64_C(0x2545f4914f6cdd1d);
	open_device(s, mode);
	flipper_start(&s->flipper, driver_flips, s);
	together_start(&time);
	while (!together_for(&time, &s->flipper, ms) ||
	       (!device_saw_all(s) && together_since(&time) < PATIENCE_MS))
		for (unsigned i = 0; i < 64; i++, steps++)
			device_step(s);
	close_device(s);
	print_message("%s, %ju of %ju ms together: %ju steps against %ju flips:", mode->name,
		      (uintmax_t)time.us / 1000, (uintmax_t)together_since(&time), (uintmax_t)steps,
		      (uintmax_t)s->flipper.flips);
	for (unsigned i = 0; i < DEVICE_KINDS; i++)
		print_message(" %s %ju", name[i], (uintmax_t)s->seen[i]);
	print_message("\n");
	assert_true(device_saw_all(s));
}

/* Shows: SR-DEV-30 SR-DEV-31 SR-DEV-35 K16 */
static void test_device_uses_what_it_has_checked(void **state)
{
	const unsigned modes = sizeof(device_modes) / sizeof(device_modes[0]);

	(void)state;
	for (unsigned i = 0; i < modes; i++)
		run_device(&device_modes[i], milliseconds() / modes);
}

/* ---- the driver and its device ---- */

enum { REQUESTS = 16, SEGMENTS = 4 };

struct driver_mode {
	const char *name;
	uint64_t features;
	uint32_t tables;
	uint32_t kind; /* enum vqb_indirect_kind */
};

static const struct driver_mode driver_modes[] = {
	{ "flags, direct", 0, 0, VQB_INDIRECT_NEVER },
	{ "events, direct", EVENTS, 0, VQB_INDIRECT_NEVER },
	{ "events, tables", EVENTS | INDIRECT, TABLES, VQB_INDIRECT_ALWAYS },
	{ "device barriers, tables", EVENTS | INDIRECT | PLATFORM, TABLES, VQB_INDIRECT_ALWAYS },
	{ "in order, tables", EVENTS | INDIRECT | IN_ORDER, TABLES, VQB_INDIRECT_ALWAYS },
};

struct request {
	bool out, exposed;
	uint32_t capacity;
};

enum { DONE, OVERLONG, BROKEN, DETACHED, FULL, MORE, DRIVER_KINDS };

struct driver_scene {
	const struct driver_mode *mode;
	struct vqb_driver *drv;
	uint8_t *desc_end, *avail_end, *used_end, *tables;
	struct vqb_done *done_end; /* behind the last of BATCH */
	struct guarded guarded[6];
	struct flipper flipper;
	_Atomic uint32_t size;     /* of the ring, */
	_Atomic uint32_t at, lent; /* requests reaped in this life, and shown; for the flipper */
	/* the main thread's */
	struct request request[REQUESTS];
	uint64_t seen[DRIVER_KINDS];
	uint64_t rng;
};

static struct driver_scene driver_scene;

/* A ring of `size` entries, each part up to the end of its memory. */
static struct vqb_ring ring_of(const struct driver_scene *s, uint32_t size)
{
	struct vqb_ring ring = { .size = size, .features = s->mode->features };

	ring.desc = s->desc_end - VQB_DESC_BYTES(size);
	ring.avail = s->avail_end - VQB_AVAIL_BYTES(size);
	ring.used = s->used_end - (VQB_USED_BYTES(size) + 2);
	return ring;
}

static void flip_used(struct driver_scene *s, uint64_t *rng)
{
	uint32_t size = atomic_load_explicit(&s->size, memory_order_relaxed);
	uint32_t at = atomic_load_explicit(&s->at, memory_order_relaxed);
	uint8_t *used = ring_of(s, size).used, *elem = used + 4 + 8 * (size_t)draw(rng, size);
	uint32_t lent = atomic_load_explicit(&s->lent, memory_order_relaxed);

	switch (draw(rng, 16)) {
	case 0:
		flip(used, draw(rng, 0x10000), 2);
		break;
	case 1:
		flip(used + 4 + 8 * (size_t)size, draw(rng, 0x10000), 2);
		break;
	case 2:
	case 3:
	case 4:
		flip(used + 2, draw(rng, 64) ? at + draw(rng, lent + 1) : draw(rng, 0x10000), 2);
		break;
	case 5:
	case 6:
	case 7:
		flip(elem + 4, draw(rng, 8) ? draw(rng, 64) : draw(rng, UINT32_MAX), 4);
		break;
	case 8:
		flip(elem + draw(rng, 8), draw(rng, 256), 1);
		break;
	default:
		flip(elem, draw(rng, 64) ? draw(rng, size) : draw(rng, UINT32_MAX), 4);
	}
}

static void device_flips(void *scene, uint64_t *rng)
{
	struct driver_scene *s = scene;

	switch (draw(rng, 16)) {
	case 0: /* what is not its own to write */
		flip(s->desc_end - 1 - draw(rng, 16 * SIZE), draw(rng, 256), 1);
		break;
	case 1:
		flip(s->avail_end - 1 - draw(rng, 6 + 2 * SIZE), draw(rng, 256), 1);
		break;
	case 2:
		flip(s->tables + draw(rng, TABLE_BYTES), draw(rng, 256), 1);
		break;
	default:
		flip_used(s, rng);
	}
}

/* ---- what the driver may answer ---- */

/* Those that are out, or of these only what the device has been shown. */
static uint32_t requests_out(const struct driver_scene *s, bool shown)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < REQUESTS; i++)
		n += s->request[i].out && (!shown || s->request[i].exposed);
	return n;
}

static void add(struct driver_scene *s)
{
	struct request *r = &s->request[draw(&s->rng, REQUESTS)];
	uint32_t n = 1 + draw(&s->rng, s->size < SEGMENTS ? s->size : SEGMENTS);
	uint32_t readable = draw(&s->rng, n + 1);
	struct vqb_segment seg[SEGMENTS];
	int32_t status;

	if (r->out)
		return;
	*r = (struct request){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		seg[i] = (struct vqb_segment){ .addr = draw(&s->rng, UINT32_MAX), .len = 10 + i };
		r->capacity += i >= readable ? seg[i].len : 0;
	}
	status = vqb_driver_add(s->drv, seg, readable, n - readable, r);
	if (status == VQB_E_NOSPC) {
		assert_true(requests_out(s, false) > 0);
		s->seen[FULL]++;
		return;
	}
	if (status) {
		assert_int_equal(status, VQB_E_BROKEN);
		assert_int_equal(vqb_driver_state(s->drv), VQB_E_BROKEN);
		return;
	}
	r->out = true;
}

/* The token is one that is out, and is no longer. */
static struct request *back(struct driver_scene *s, void *token)
{
	struct request *r = token;
	uintptr_t offset = (uintptr_t)token - (uintptr_t)s->request;

	assert_true(offset < sizeof(s->request) && offset % sizeof(s->request[0]) == 0);
	assert_true(r->out);
	r->out = false;
	return r;
}

static void reap(struct driver_scene *s)
{
	uint32_t max = 1 + draw(&s->rng, BATCH), n;
	struct vqb_done *done = s->done_end - max;
	bool broken = vqb_driver_state(s->drv);
	uint32_t flags = VQB_DONE_OVERLONG;

	n = vqb_driver_reap(s->drv, done, max);
	assert_true(n <= max && (!broken || !n));
	if (s->mode->features & IN_ORDER)
		flags |= VQB_DONE_IMPLIED;
	for (uint32_t i = 0; i < n; i++) {
		struct request *r = back(s, done[i].token);

		assert_true(r->exposed);
		assert_true(done[i].len <= r->capacity);
		assert_true(!(done[i].flags & ~flags));
		/* Either of the two says that all that was lent is written. */
		assert_true(!done[i].flags || done[i].len == r->capacity);
		s->seen[OVERLONG] += done[i].flags & VQB_DONE_OVERLONG;
	}
	s->at += n;
	if (!n && s->lent) /* so as not to wait until the flipper happens to complete one */
		flip((uint8_t *)ring_of(s, s->size).used + 2, s->at + 1 + draw(&s->rng, s->lent),
		     2);
	s->seen[DONE] += n;
	s->seen[BROKEN] += !broken && vqb_driver_state(s->drv);
}

/* What was added is the device's now, unless the queue is broken. */
static void publish(struct driver_scene *s)
{
	if (vqb_driver_state(s->drv))
		return;
	switch (draw(&s->rng, 3)) {
	case 0:
		vqb_driver_expose(s->drv);
		break;
	case 1:
		vqb_driver_publish(s->drv);
		break;
	default:
		vqb_driver_turn(s->drv);
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		s->request[i].exposed = s->request[i].out;
}

static bool under_thread_sanitizer(void)
{
#if defined(__SANITIZE_THREAD__)
	return true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return true;
#endif
#endif
	return false;
}

/*
 * Starts over with a ring of another size. A device must not be running then, so the ring is
 * cleared by plain stores. One that writes on does no harm, but the thread sanitizer minds it.
 */
static void attach(struct driver_scene *s)
{
	uint32_t size = 1u << draw(&s->rng, 4);
	struct vqb_ring ring = ring_of(s, size);

	if (under_thread_sanitizer())
		flipper_pause(&s->flipper);
	s->size = size;
	s->at = s->lent = 0;
	assert_int_equal(vqb_driver_reset(s->drv, &ring), VQB_OK);
	if (under_thread_sanitizer())
		flipper_go_on(&s->flipper);
	assert_int_equal(vqb_driver_free(s->drv), size);
}

static void reset_driver(struct driver_scene *s)
{
	struct vqb_done *done = s->done_end - 1;
	void *token[3];
	int32_t status;
	uint32_t n;

	assert_int_equal(vqb_driver_reset(s->drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_reap(s->drv, done, 1), 0);
	do {
		uint32_t max = 1 + draw(&s->rng, 3);

		status = vqb_driver_detach(s->drv, token, max, &n);
		assert_true(n <= max);
		for (uint32_t i = 0; i < n; i++)
			back(s, token[i]);
		s->seen[DETACHED] += n;
	} while (status == VQB_E_NOSPC);
	assert_int_equal(status, VQB_OK);
	assert_int_equal(requests_out(s, false), 0);
	attach(s);
}

static void driver_step(struct driver_scene *s)
{
	void *oldest;
	uint32_t out;

	switch (draw(&s->rng, 16)) {
	case 0:
		s->seen[MORE] += vqb_driver_arm(s->drv) == VQB_MORE;
		break;
	case 1:
		vqb_driver_postpone(s->drv, draw(&s->rng, 3));
		break;
	case 2:
		vqb_driver_disarm(s->drv);
		break;
	case 3:
	case 4:
		publish(s);
		break;
	case 5:
		if (vqb_driver_oldest(s->drv, &oldest))
			assert_true(((struct request *)oldest)->out);
		break;
	case 6:
	case 7:
	case 8:
		reap(s);
		break;
	default:
		add(s);
	}
	if (vqb_driver_state(s->drv) ? draw(&s->rng, 2) : !draw(&s->rng, 512))
		reset_driver(s);
	out = requests_out(s, false);
	s->lent = requests_out(s, true);
	assert_int_equal(vqb_driver_in_flight(s->drv), out);
	assert_true(vqb_driver_pending(s->drv) <= s->lent);
	assert_true(vqb_driver_free(s->drv) <= s->size - out);
	if (!out)
		assert_int_equal(vqb_driver_free(s->drv), s->size);
}

/* ---- the driver's scene ---- */

static void open_driver(struct driver_scene *s, const struct driver_mode *mode)
{
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy), .kind = mode->kind };
	struct vqb_driver_config config = { .struct_size = sizeof(config), .policy = &policy };
	struct guarded *g = s->guarded;
	uint8_t *mem;

	s->mode = mode;
	s->size = SIZE;
	s->desc_end = (uint8_t *)guarded_alloc(g++, 16 * SIZE, 16) + 16 * SIZE;
	s->avail_end = (uint8_t *)guarded_alloc(g++, 6 + 2 * SIZE, 2) + 6 + 2 * SIZE;
	s->used_end = (uint8_t *)guarded_alloc(g++, 8 + 8 * SIZE, 4) + 8 + 8 * SIZE;
	s->tables = guarded_alloc(g++, TABLE_BYTES, 16);
	s->done_end = (struct vqb_done *)guarded_alloc(g++, BATCH * sizeof(struct vqb_done), 8);
	s->done_end += BATCH;
	config.ring = ring_of(s, SIZE);
	config.tables = (struct vqb_dma){ s->tables, 0x1000, (size_t)16 * SIZE * mode->tables };
	config.max_table = SIZE;
	mem = guarded_alloc(g++, vqb_driver_size(&config), VQB_ALIGN);
	assert_int_equal(vqb_driver_init(mem, vqb_driver_size(&config), &config, &s->drv), VQB_OK);
}

static void close_driver(struct driver_scene *s)
{
	flipper_stop(&s->flipper);
	for (unsigned i = 0; i < sizeof(s->guarded) / sizeof(s->guarded[0]); i++)
		guarded_free(&s->guarded[i]);
}

static int close_driver_scene(void **state)
{
	(void)state;
	close_driver(&driver_scene);
	return 0;
}

static bool driver_saw_all(const struct driver_scene *s)
{
	for (unsigned i = 0; i < DRIVER_KINDS; i++)
		if (!s->seen[i])
			return false;
	return true;
}

static void run_driver(const struct driver_mode *mode, uint64_t ms)
{
	static const char *const name[DRIVER_KINDS] = { "done",     "overlong", "broken",
							"detached", "no room",  "more" };
	struct driver_scene *s = &driver_scene;
	struct together time;
	uint64_t steps = 0;

	memset(s, 0, sizeof(*s));
	s->rng = UINT64_C(0x2545f4914f6cdd1d);
	open_driver(s, mode);
	flipper_start(&s->flipper, device_flips, s);
	together_start(&time);
	while (!together_for(&time, &s->flipper, ms) ||
	       (!driver_saw_all(s) && together_since(&time) < PATIENCE_MS))
		for (unsigned i = 0; i < 64; i++, steps++)
			driver_step(s);
	close_driver(s);
	print_message("%s, %ju of %ju ms together: %ju steps against %ju flips:", mode->name,
		      (uintmax_t)time.us / 1000, (uintmax_t)together_since(&time), (uintmax_t)steps,
		      (uintmax_t)s->flipper.flips);
	for (unsigned i = 0; i < DRIVER_KINDS; i++)
		print_message(" %s %ju", name[i], (uintmax_t)s->seen[i]);
	print_message("\n");
	assert_true(driver_saw_all(s));
}

/* Shows: SR-DRV-39 SR-DRV-41 K18 K19 */
static void test_driver_uses_what_it_has_checked(void **state)
{
	const unsigned modes = sizeof(driver_modes) / sizeof(driver_modes[0]);

	(void)state;
	for (unsigned i = 0; i < modes; i++)
		run_driver(&driver_modes[i], milliseconds() / modes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_device_uses_what_it_has_checked, close_device_scene),
		cmocka_unit_test_teardown(test_driver_uses_what_it_has_checked, close_driver_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
