/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * track.c: a device with a tracking area, which is killed, and followed by another.
 *
 * The input is a configuration and operations: the driver's, the device's, and those of whoever
 * writes over the area or the used ring's index. A device is killed between operations, or inside
 * one, wherever that calls a hook: of the memory map, its log, or the cache. The model knows what
 * was taken and what the driver has seen come back, and so what the next device has to take
 * again; once something was written over, it works out from the area's bytes whether the next
 * device may start at all, and what it takes.
 */
#include <setjmp.h>

#include <vqblk/device.h>

#include "fuzz.h"

enum {
	CONFIG = 16,
	MAX_SIZE = 64,
	MAX_TAKE = 16,
	LEN = 8, /* of each chain's only buffer */
};

#define RING_AT UINT64_C(0x1000)
#define DATA_AT UINT64_C(0x9000)
#define BOTH ((uint32_t)(VQB_READ | VQB_WRITE))

/* Where things are in the area, by the format of vhost-user. */
enum {
	AREA_FEATURES = 0,
	AREA_VERSION = 8,
	AREA_SIZE = 10,
	AREA_LAST = 12,
	AREA_USED = 14,
	AREA_ENTRY = 16, /* of head 0; its flag is the first byte */
	AREA_NEXT = 6,
	AREA_COUNTER = 8,
};

/* A chain that was taken and that the driver has not seen come back, in the order of the takes. */
struct chain {
	uint32_t head, written;
	struct vqb_ticket ticket;
	enum { CHAIN_AGAIN, CHAIN_OUT, CHAIN_PUT } fate;
	bool known; /* was taken by a predecessor, so it stays in flight if untaken */
	bool bad;
};

struct run {
	struct fuzz_input in;
	bool lists;     /* by the configuration */
	uint32_t times; /* of this operation, by a list; 0: by itself */
	uint32_t size;
	bool in_order;
	struct raw_ring raw;
	uint8_t *block, *sent, *data, *area;
	size_t block_bytes, area_bytes;
	struct vqb_extent extent[2];
	struct vqb_memory memory;
	struct vqb_cache_ops cache;
	struct vqb_device_config config;
	struct vqb_ring_at ring;
	struct vqb_device *dev;
	void *object;
	uint32_t fuse;      /* killed in so many calls of a hook; 0: in none */
	uint32_t next_fuse; /* of the device that comes after it */
	jmp_buf dead;
	/* what the device has to be like */
	uint32_t offered, taken, shown; /* chains: by the driver; for the first time; come back */
	bool busy[MAX_SIZE];            /* offered, and not come back */
	struct chain chain[MAX_SIZE];
	uint32_t chains;
	uint32_t put[MAX_SIZE], puts;      /* heads put and not shown, in the order of the puts */
	struct vqb_ticket order[MAX_SIZE]; /* by position */
	uint32_t cursor;                   /* position of the next take */
};

/* ---- hooks, in each of which a device may be killed ---- */

static void tick(struct run *r)
{
	if (r->fuse && !--r->fuse)
		longjmp(r->dead, 1);
}

static void hook_log(void *context, uint64_t addr, uint64_t len)
{
	struct run *r = (struct run *)context;
	uint64_t offset = addr - RING_AT;

	FUZZ_CHECK(offset < r->block_bytes && len && len <= r->block_bytes - offset);
	tick(r);
	memcpy(r->sent + (size_t)offset, r->block + (size_t)offset, (size_t)len);
	tick(r);
}

static void hook_cache(void *context, const void *at, size_t bytes)
{
	fuzz_touch(NULL, at, bytes);
	tick((struct run *)context);
}

/* ---- the area, in the machine's byte order ---- */

static uint64_t area_word(const struct run *r, size_t at, unsigned bytes)
{
	uint16_t v16;
	uint64_t v64;

	memcpy(&v16, r->area + at, sizeof(v16));
	if (bytes == 2)
		return v16;
	memcpy(&v64, r->area + at, sizeof(v64));
	return v64;
}

static size_t area_entry(uint32_t head)
{
	return AREA_ENTRY + 16 * (size_t)head;
}

static uint32_t area_flag(const struct run *r, uint32_t head)
{
	return r->area[area_entry(head)];
}

static uint64_t area_counter(const struct run *r, uint32_t head)
{
	return area_word(r, area_entry(head) + AREA_COUNTER, 8);
}

/* All that is in flight is in the area, in the order of the takes, and nothing else. */
static void check_area(const struct run *r)
{
	uint32_t flags = 0;

	FUZZ_CHECK(!area_word(r, AREA_FEATURES, 8) && area_word(r, AREA_VERSION, 2) == 1);
	FUZZ_CHECK(area_word(r, AREA_SIZE, 2) == r->size);
	FUZZ_CHECK(area_word(r, AREA_LAST, 2) < r->size);
	FUZZ_CHECK(area_word(r, AREA_USED, 2) == (r->shown & 0xffff));
	for (uint32_t head = 0; head < r->size; head++)
		flags += area_flag(r, head);
	FUZZ_CHECK(flags == r->chains);
	for (uint32_t i = 0; i < r->chains; i++) {
		FUZZ_CHECK(area_flag(r, r->chain[i].head) == 1);
		FUZZ_CHECK(!i || area_counter(r, r->chain[i - 1].head) <
					 area_counter(r, r->chain[i].head));
	}
}

/* ---- the model ---- */

static struct chain *chain_of(struct run *r, uint32_t head)
{
	uint32_t i = 0;

	while (i < r->chains && r->chain[i].head != head)
		i++;
	FUZZ_CHECK(i < r->chains);
	return &r->chain[i];
}

static struct chain *nth_of(struct run *r, uint32_t n, uint32_t fate)
{
	for (uint32_t i = 0; i < r->chains; i++) {
		if (r->chain[i].fate == fate && !n--)
			return &r->chain[i];
	}
	return NULL;
}

static uint32_t number_of(struct run *r, uint32_t fate)
{
	uint32_t n = 0;

	while (nth_of(r, n, fate))
		n++;
	return n;
}

static void chain_remove(struct run *r, struct chain *chain)
{
	size_t behind = (size_t)(&r->chain[r->chains] - (chain + 1));

	memmove(chain, chain + 1, behind * sizeof(*chain));
	r->chains--;
}

static struct chain *chain_append(struct run *r)
{
	struct chain *chain = &r->chain[r->chains++];

	*chain = (struct chain){ .head = raw_avail_entry(&r->raw, r->taken++) };
	return chain;
}

/* Chains that the driver would be shown now, at the front of what was put. */
static uint32_t showable(struct run *r)
{
	uint32_t n = 0;

	if (!r->in_order)
		return r->puts;
	while (n < r->chains && r->chain[n].fate == CHAIN_PUT)
		n++;
	return n;
}

static void check_entry(const struct run *r, uint32_t position, const struct chain *chain)
{
	FUZZ_CHECK(raw_used_id(&r->raw, position) == chain->head);
	FUZZ_CHECK(raw_used_len(&r->raw, position) == chain->written);
}

/* In order, one entry stands for chains that are written in full and the one behind them. */
static void check_entries(struct run *r, uint32_t n)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < n && !r->in_order; i++)
		check_entry(r, r->shown + i, chain_of(r, r->put[i]));
	for (uint32_t i = 0; i < n && r->in_order; i++) {
		const struct chain *chain = &r->chain[i];

		if (!chain->bad && chain->written == LEN && i + 1 < n)
			continue;
		check_entry(r, r->shown + first, chain);
		first = i + 1;
	}
}

/* The driver has been shown what could be shown. */
static void show(struct run *r)
{
	uint32_t n = showable(r);

	check_entries(r, n);
	for (uint32_t i = 0; i < n; i++) {
		struct chain *chain = r->in_order ? r->chain : chain_of(r, r->put[i]);

		r->busy[chain->head] = false;
		chain_remove(r, chain);
	}
	r->shown += n;
	r->puts = 0;
	FUZZ_CHECK(raw_used_idx(&r->raw) == (r->shown & 0xffff));
}

/* Is all known to the log, but for entries that the driver is not shown yet? */
static void check_sent(struct run *r)
{
	uint8_t sent[VQB_USED_BYTES(MAX_SIZE)];
	size_t used = (size_t)(r->raw.used - r->block);

	if (!r->memory.log)
		return;
	memcpy(sent, r->sent + used, VQB_USED_BYTES(r->size));
	for (uint32_t i = 0; i < r->puts && !r->in_order; i++) {
		size_t at = 4 + 8 * (size_t)((r->shown + i) & (r->size - 1));

		memcpy(sent + at, r->raw.used + at, 8);
	}
	FUZZ_CHECK(!memcmp(sent, r->raw.used, VQB_USED_BYTES(r->size)));
}

static void check_all(struct run *r)
{
	uint32_t out = number_of(r, CHAIN_OUT), put = number_of(r, CHAIN_PUT);

	FUZZ_CHECK(vqb_device_state(r->dev, NULL) == VQB_OK);
	FUZZ_CHECK(vqb_device_in_flight(r->dev) == out + put - showable(r));
	FUZZ_CHECK(vqb_device_pending(r->dev) ==
		   number_of(r, CHAIN_AGAIN) + (r->offered - r->taken));
	FUZZ_CHECK(raw_used_idx(&r->raw) == (r->shown & 0xffff));
	check_area(r);
	check_sent(r);
}

/* ---- the driver ---- */

/* Every head has a chain of its own all the time; some are bad. */
static void make_chains(struct run *r)
{
	for (uint32_t i = 0; i < r->size; i++) {
		bool bad = i % 8 == 5;

		raw_desc(r->raw.desc, i, DATA_AT + LEN * i, LEN, RAW_WRITE | (bad ? RAW_NEXT : 0u),
			 r->size);
	}
}

static void op_offer(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), head = how & (r->size - 1), n = 1 + how / 64;

	for (uint32_t i = 0; i < r->size && n; i++, head = (head + 1) & (r->size - 1)) {
		if (r->busy[head])
			continue;
		r->busy[head] = true;
		raw_offer(&r->raw, r->offered++, head);
		n--;
	}
	if (r->ring.features & VQB_FEATURE(VQB_F_EVENT_IDX))
		poke(r->raw.avail + 4 + 2 * (size_t)r->size, r->shown + (how & 3), 2);
}

/* ---- the device ---- */

/* What comes out first: chains of a predecessor, the oldest first, then what was offered. */
static void check_taken(struct run *r, const struct vqb_chain *taken)
{
	struct chain *chain = nth_of(r, 0, CHAIN_AGAIN);

	FUZZ_CHECK(chain || r->taken != r->offered);
	if (!chain)
		chain = chain_append(r);
	FUZZ_CHECK(taken->ticket.head == chain->head);
	chain->ticket = taken->ticket;
	chain->fate = CHAIN_OUT;
	chain->bad = taken->status;
	FUZZ_CHECK(chain->bad == (chain->head % 8 == 5) || taken->reason.rule == VQB_RULE_REJECTED);
	r->order[r->cursor++ & (r->size - 1)] = taken->ticket;
}

static void op_take(struct run *r)
{
	uint32_t max = fuzz_below(&r->in, MAX_TAKE), n, pending = vqb_device_pending(r->dev);
	struct vqb_chain chain[MAX_TAKE];
	struct vqb_piece piece[MAX_TAKE];
	struct vqb_need need;

	FUZZ_CHECK(vqb_device_take(r->dev, chain, max, piece, MAX_TAKE, &n, &need) == VQB_OK);
	FUZZ_CHECK(n <= max && (n || !max || !pending));
	for (uint32_t i = 0; i < n; i++)
		check_taken(r, &chain[i]);
}

static void op_reject(struct run *r)
{
	struct vqb_chain chain;

	if (!vqb_device_reject(r->dev, &chain))
		check_taken(r, &chain);
}

static void was_put(struct run *r, struct chain *chain)
{
	FUZZ_CHECK(vqb_device_put(r->dev, chain->ticket, 0) == VQB_E_STALE);
	chain->fate = CHAIN_PUT;
	if (!r->in_order)
		r->put[r->puts++] = chain->head;
}

/* Several that are out, then the first one again. */
static void put_list(struct run *r, uint32_t from, uint32_t written)
{
	struct vqb_completion list[8] = { { .written = 0 } };
	struct chain *chain[7];
	uint32_t n;

	for (n = 0; n < r->times && (chain[n] = nth_of(r, from + n, CHAIN_OUT)); n++) {
		chain[n]->written = chain[n]->bad ? 0 : written;
		list[n] = (struct vqb_completion){ chain[n]->ticket, chain[n]->written };
	}
	list[n] = list[0];
	FUZZ_CHECK(vqb_device_put_list(r->dev, list, n + 1) == n);
	for (uint32_t i = 0; i < n; i++)
		was_put(r, chain[i]);
}

static void op_put(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in), out = number_of(r, CHAIN_OUT);
	uint32_t written = which & 0x80 ? which >> 4 & 7 : LEN;
	struct chain *chain = out ? nth_of(r, which % out, CHAIN_OUT) : NULL;

	if (!chain)
		return;
	if (r->times) {
		put_list(r, which % out, written);
		return;
	}
	chain->written = chain->bad ? 0 : written;
	FUZZ_CHECK(vqb_device_put(r->dev, chain->ticket, chain->written) == VQB_OK);
	was_put(r, chain);
}

static void op_untake(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in), out = number_of(r, CHAIN_OUT);
	struct chain *chain = out ? nth_of(r, out - 1 - which % 2 % out, CHAIN_OUT) : NULL;
	bool newest;

	if (!chain)
		return;
	newest = chain->ticket.seq == r->order[(r->cursor - 1) & (r->size - 1)].seq;
	FUZZ_CHECK(vqb_device_untake(r->dev, chain->ticket) == (newest ? VQB_OK : VQB_E_INVALID));
	if (!newest)
		return;
	r->cursor--;
	chain->fate = CHAIN_AGAIN;
	if (chain->known)
		return;
	FUZZ_CHECK(chain + 1 == r->chain + r->chains);
	r->chains--;
	r->taken--;
}

static void op_publish(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in) % 6;

	if (which == 0)
		vqb_device_expose(r->dev);
	else if (which == 1)
		vqb_device_publish(r->dev);
	else if (which < 4)
		vqb_device_turn(r->dev);
	else if (which == 4)
		vqb_device_arm(r->dev);
	else
		vqb_device_disarm(r->dev);
	if (which < 4)
		show(r);
}

/* ---- one device after the other ---- */

/* The next one takes again what is in flight. */
static void all_again(struct run *r)
{
	for (uint32_t i = 0; i < r->chains; i++) {
		r->chain[i].fate = CHAIN_AGAIN;
		r->chain[i].known = true;
	}
	r->puts = 0;
	r->cursor = r->shown;
}

/* Memory that is known to the next device, but for what the area says of the ring. */
static void make_object(struct run *r)
{
	size_t bytes = vqb_device_size(&r->config);

	FUZZ_CHECK(bytes && bytes <= VQB_DEVICE_BYTES(r->size));
	free(r->object);
	r->object = fuzz_object(bytes);
}

/* Begins on the ring where the area says, by init or by restore. */
static int32_t begin(struct run *r, bool restore)
{
	struct vqb_device_saved saved = { 0 };
	size_t bytes;

	r->config.ring = r->ring;
	r->config.max_size = r->size;
	if (restore)
		r->config.ring.size = 0;
	make_object(r);
	bytes = vqb_device_size(&r->config);
	if (!restore)
		return vqb_device_init(r->object, bytes, &r->config, &r->dev);
	FUZZ_CHECK(vqb_device_init(r->object, bytes, &r->config, &r->dev) == VQB_OK);
	return vqb_device_restore(r->dev, &r->ring, &saved);
}

static void succeed(struct run *r)
{
	FUZZ_CHECK(begin(r, r->offered & 1) == VQB_OK);
	r->fuse = 0;
	all_again(r);
}

/* What the driver can see of a device that has died was logged before. */
static void check_logged(const struct run *r, uint32_t n)
{
	const uint8_t *sent = r->sent + (r->raw.used - r->block);

	for (uint32_t i = 0; i < n && r->memory.log; i++) {
		size_t at = 4 + 8 * (size_t)((r->shown + i) & (r->size - 1));

		FUZZ_CHECK(!memcmp(sent + at, r->raw.used + at, 8));
	}
}

/* The successor may be killed once while it starts; then another one follows. */
static void try_to_succeed(struct run *r)
{
	if (setjmp(r->dead))
		r->fuse = 0;
	else
		r->fuse = r->next_fuse;
	succeed(r);
}

/*
 * A device has died, who knows where. It may have shown what it was about to, and have taken more
 * than it came to tell of.
 */
static void bury(struct run *r)
{
	uint32_t flags = 0;

	if (raw_used_idx(&r->raw) != (r->shown & 0xffff)) {
		check_logged(r, showable(r));
		show(r);
	}
	try_to_succeed(r);
	for (uint32_t head = 0; head < r->size; head++)
		flags += area_flag(r, head);
	FUZZ_CHECK(flags >= r->chains && flags - r->chains <= r->offered - r->taken);
	while (r->chains < flags)
		chain_append(r);
	all_again(r);
}

static void op_kill(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in);

	if (how & 0x80) {
		r->fuse = 1 + (how & 7);
		r->next_fuse = how >> 3 & 7;
		return;
	}
	if (how & 0x40) { /* not killed: leaves in good order, or not at all */
		struct vqb_device_saved saved;
		bool busy = showable(r);

		FUZZ_CHECK(vqb_device_save(r->dev, &saved) == (busy ? VQB_E_BUSY : VQB_OK));
		if (!busy) {
			FUZZ_CHECK(saved.used == (r->shown & 0xffff));
			FUZZ_CHECK((uint16_t)(saved.avail - saved.used) == r->chains);
		}
	}
	if (how & 0x20) {
		FUZZ_CHECK(vqb_device_restore(r->dev, NULL, NULL) == VQB_OK);
		FUZZ_CHECK(vqb_device_state(r->dev, NULL) == VQB_E_INVALID);
	}
	succeed(r);
}

/* ---- starting over ---- */

/* Both begin anew. What the device is told comes last: it may die of it. */
static void op_reset(struct run *r)
{
	struct vqb_device *dev = r->dev;

	memset(r->block, 0, r->block_bytes);
	memset(r->sent, 0, r->block_bytes);
	make_chains(r);
	memcpy(r->sent, r->block, r->block_bytes);
	memset(r->busy, 0, sizeof(r->busy));
	r->offered = r->taken = r->shown = r->chains = r->puts = r->cursor = 0;
	FUZZ_CHECK(vqb_device_reset(dev, &r->ring) == VQB_OK);
}

/* ---- an area that somebody has written over ---- */

/* The heads of the last batch, if it is in the used ring already, are no longer in flight. */
static bool batch_readable(const struct run *r, uint32_t n, bool *in_flight)
{
	bool seen[MAX_SIZE] = { false };
	uint32_t head = (uint32_t)area_word(r, AREA_LAST, 2);

	for (; n; n--) {
		if (head >= r->size || seen[head])
			return false;
		seen[head] = true;
		in_flight[head] = false;
		head = (uint32_t)area_word(r, area_entry(head) + AREA_NEXT, 2);
	}
	return true;
}

/*
 * What does the area say, with the used ring's index? Lists the heads in flight, the oldest first.
 * False: nothing that a device may believe.
 */
static bool area_read(const struct run *r, uint32_t *list, uint32_t *n)
{
	uint32_t batch = (uint16_t)(raw_used_idx(&r->raw) - area_word(r, AREA_USED, 2));
	bool in_flight[MAX_SIZE] = { false };

	*n = 0;
	if (!area_word(r, AREA_VERSION, 2))
		return true;
	if (area_word(r, AREA_FEATURES, 8) || area_word(r, AREA_VERSION, 2) != 1 ||
	    area_word(r, AREA_SIZE, 2) != r->size || area_word(r, AREA_LAST, 2) >= r->size)
		return false;
	for (uint32_t i = 0; i < r->size; i++)
		in_flight[i] = area_flag(r, i);
	if (!batch_readable(r, batch, in_flight))
		return false;
	for (uint32_t i = 0; i < r->size; i++) {
		uint32_t at = *n;

		if (!in_flight[i])
			continue;
		if (area_flag(r, i) > 1 || area_counter(r, i) >> 63)
			return false;
		while (at && area_counter(r, list[at - 1]) > area_counter(r, i)) {
			list[at] = list[at - 1];
			at--;
		}
		if (at && area_counter(r, list[at - 1]) == area_counter(r, i))
			return false;
		list[at] = i;
		++*n;
	}
	return true;
}

/* Writes over the area: anything, or what is about to be believed; and over the used index. */
static void spoil(struct run *r)
{
	for (uint32_t n = 1 + fuzz_below(&r->in, 8); n; n--) {
		uint32_t where = fuzz_u8(&r->in), value = fuzz_u8(&r->in), head;
		size_t entry;

		head = (where >> 3) & (r->size - 1);
		entry = area_entry(head);
		switch (where & 7) {
		case 0:
			r->area[fuzz_u16(&r->in) % r->area_bytes] ^= (uint8_t)value;
			break;
		case 1:
			r->area[where >> 3] ^= (uint8_t)value;
			break;
		case 2:
			poke(r->raw.used + 2, raw_used_idx(&r->raw) + value - 0x80, 2);
			break;
		case 3:
			memset(r->area + entry + AREA_COUNTER, 0, 8);
			r->area[entry + AREA_COUNTER + value % 8] = (uint8_t)value;
			break;
		case 4:
			r->area[entry + AREA_NEXT] = (uint8_t)(value % (r->size + 1));
			r->area[entry + AREA_NEXT + 1] = 0;
			break;
		case 5:
			poke(r->raw.used + 2, raw_used_idx(&r->raw) + value % 4, 2);
			break;
		default:
			r->area[entry] = value % 64 ? value & 1 : (uint8_t)value;
			break;
		}
	}
}

/* Takes and returns what the area says, after which it says that there is nothing. */
static void serve_again(struct run *r, const uint32_t *list, uint32_t n)
{
	uint32_t idx = raw_used_idx(&r->raw), taken;
	struct vqb_chain chain[MAX_SIZE];
	struct vqb_piece piece[MAX_SIZE];
	struct vqb_need need;

	/* With nothing to take again it would look at an index that may be anywhere from here. */
	if (n)
		FUZZ_CHECK(!vqb_device_take(r->dev, chain, n, piece, MAX_SIZE, &taken, &need) &&
			   taken == n);
	for (uint32_t i = 0; i < n; i++) {
		FUZZ_CHECK(chain[i].ticket.head == list[i]);
		FUZZ_CHECK(vqb_device_put(r->dev, chain[i].ticket, 0) == VQB_OK);
	}
	vqb_device_expose(r->dev);
	FUZZ_CHECK(raw_used_idx(&r->raw) == ((idx + n) & 0xffff));
	FUZZ_CHECK(area_word(r, AREA_VERSION, 2) == 1);
	FUZZ_CHECK(area_word(r, AREA_USED, 2) == raw_used_idx(&r->raw));
	for (uint32_t i = 0; i < r->size; i++)
		FUZZ_CHECK(!area_flag(r, i));
}

static void op_spoil(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), list[MAX_SIZE], n;
	bool fresh, good;
	int32_t status;

	r->fuse = 0;
	if (how & 2)
		memset(r->area, 0, r->area_bytes);
	if (how & 4) { /* any area of this size */
		for (size_t i = AREA_ENTRY; i < AREA_ENTRY + 16 * (size_t)r->size; i++)
			r->area[i] = i % 16 ? fuzz_u8(&r->in) & 0x7f : fuzz_u8(&r->in) & 1;
	}
	spoil(r);
	fresh = !area_word(r, AREA_VERSION, 2);
	good = area_read(r, list, &n);
	if (fresh)
		poke(r->raw.used + 2, 0, 2);
	status = begin(r, how & 1);
	FUZZ_CHECK(status == (good ? VQB_OK : VQB_E_INVALID));
	if (good)
		serve_again(r, list, n);
	else if (!(how & 1)) /* there is no device at all */
		memset(r->area, 0, r->area_bytes);
	if (!good && !(how & 1))
		FUZZ_CHECK(begin(r, true) == VQB_OK);
	op_reset(r);
}

/* ---- a run ---- */

static void operate(struct run *r)
{
	static void (*const op[16])(struct run *) = {
		op_offer, op_take, op_put,     op_publish, op_kill,  op_untake, op_reset, op_spoil,
		op_offer, op_take, op_publish, op_put,     op_offer, op_take,   op_put,   op_reject,
	};

	op[fuzz_op(&r->in, r->lists, &r->times)](r);
}

static void make_memory(struct run *r)
{
	struct vqb_layout layout;

	FUZZ_CHECK(vqb_ring_layout(r->size, 4, &layout) == VQB_OK);
	r->block_bytes = layout.end;
	r->block = (uint8_t *)fuzz_alloc(layout.end);
	r->sent = (uint8_t *)fuzz_alloc(layout.end);
	r->data = (uint8_t *)fuzz_alloc(MAX_SIZE * LEN);
	r->raw = (struct raw_ring){ .size = r->size,
				    .desc = r->block + layout.desc,
				    .avail = r->block + layout.avail,
				    .used = r->block + layout.used };
	r->area_bytes = VQB_TRACKING_BYTES(r->size);
	r->area = (uint8_t *)fuzz_alloc(r->area_bytes);
	r->extent[0] = (struct vqb_extent){ RING_AT, layout.end, r->block, BOTH, 0 };
	r->extent[1] = (struct vqb_extent){ DATA_AT, MAX_SIZE * LEN, r->data, BOTH, 0 };
	r->memory = (struct vqb_memory){ .struct_size = sizeof(r->memory),
					 .generation = 1,
					 .count = 2,
					 .sorted = r->extent,
					 .context = r };
	make_chains(r);
	memcpy(r->sent, r->block, r->block_bytes);
}

static void start(struct run *r, struct fuzz_input config)
{
	uint32_t how;

	r->in = config;
	how = fuzz_u8(&r->in);
	r->lists = how & 0x80;
	r->size = UINT32_C(1) << fuzz_below(&r->in, 7);
	r->ring = (struct vqb_ring_at){ .size = r->size, .features = fuzz_features(&r->in) };
	r->ring.flags = fuzz_ring_flags(how & 1, r->ring.features);
	r->in_order = r->ring.features & VQB_FEATURE(VQB_F_IN_ORDER);
	raw_big = r->ring.flags & VQB_RING_BIG_ENDIAN;
	FUZZ_CHECK(vqb_ring_place_at(&r->ring, RING_AT, 4) == VQB_OK);
	make_memory(r);
	if (how & 2)
		r->memory.log = hook_log;
	r->cache = (struct vqb_cache_ops){ .struct_size = sizeof(r->cache),
					   .flush = hook_cache,
					   .invalidate = hook_cache,
					   .context = r };
	r->config = (struct vqb_device_config){ .struct_size = sizeof(r->config),
						.memory = &r->memory,
						.tracking = { r->area, r->area_bytes } };
	if (how & 4)
		r->config.cache = &r->cache;
	FUZZ_CHECK(begin(r, how & 8) == VQB_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	struct run *r = &run;
	struct fuzz_input in = { data, data + size };

	memset(r, 0, sizeof(*r));
	start(r, fuzz_cut(&in, CONFIG));
	r->in = in;
	check_all(r);
	while (fuzz_more(&r->in)) {
		if (setjmp(r->dead))
			bury(r);
		else
			operate(r);
		check_all(r);
	}
	free(r->block);
	free(r->sent);
	free(r->data);
	free(r->area);
	free(r->object);
	return 0;
}
