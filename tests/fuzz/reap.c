/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reap.c: a driver whose device writes whatever it likes, and a ledger of what was lent.
 *
 * The input is a configuration and operations: the driver's, which are calls of the library, and
 * the device's, which write the used ring, and over the driver's own parts of the ring, too. The
 * ledger knows what is out; what has to come back is worked out from it and the used ring.
 */
#include <vqblk/driver.h>

#include "fuzz.h"

enum {
	CONFIG = 16,
	MAX_SIZE = 256,
	MAX_REQUESTS = 4096, /* in one run */
	MAX_DONE = 64,
	MAX_TABLES = 64,
	MAX_LIST = 32,
};

#define TABLES_AT UINT64_C(0x00c0ffee00000000)

enum fate { REQUEST_NONE, REQUEST_OUT, REQUEST_BACK };

struct request {
	enum fate fate;
	uint32_t head, writable;
	uint32_t position; /* in the available ring */
	uint32_t number;   /* of its table, or MAX_TABLES */
	uint16_t descs;    /* ring descriptors, at desc[] */
	uint16_t desc[MAX_SIZE];
};

struct run {
	struct fuzz_input in;
	bool lists;     /* by the configuration */
	uint32_t times; /* of this operation, by a list; 0: by itself */
	struct vqb_driver_config config;
	struct vqb_indirect_policy policy; /* of the driver; kind 0, if it has none */
	uint32_t chosen, asked;            /* the policy's own answer, and whether it was asked */
	bool asked_late;                   /* for a list */
	uint64_t clock;
	struct vqb_ring ring;
	struct raw_ring raw;
	uint8_t *used_copy; /* the driver writes there at reset only */
	uint8_t *tables;
	uint32_t max_size, table_len, table_count;
	struct vqb_driver *drv;
	void *object;
	/* what the driver has to be like */
	int32_t state;
	bool event_idx, in_order, owed;
	uint32_t next, exposed, decided, cursor, seen;
	uint32_t free;
	uint32_t next_desc; /* in order: the descriptor that the next chain begins with */
	uint32_t batch,
		batch_len; /* in order: requests still to come of one used entry, its length */
	uint32_t written;  /* the device's index */
	uint32_t steps;
	struct vqb_driver_counters count;
	uint32_t requests, first_out;
	uint8_t desc_used[MAX_SIZE], table_used[MAX_TABLES];
	struct request *by_head[MAX_SIZE];
	struct request request[MAX_REQUESTS];
};

/* ---- the ring ---- */

static void ring_free(struct run *r)
{
	free(r->raw.desc);
	free(r->raw.avail);
	free(r->raw.used);
	free(r->used_copy);
	r->raw = (struct raw_ring){ 0 };
	r->used_copy = NULL;
}

/* A ring of memory to the byte. What is in it before the driver comes is not zero. */
static void ring_make(struct run *r, uint32_t size, uint64_t features, uint32_t flags)
{
	ring_free(r);
	raw_big = flags & VQB_RING_BIG_ENDIAN;
	r->raw.size = size;
	r->raw.desc = (uint8_t *)fuzz_alloc(VQB_DESC_BYTES(size));
	r->raw.avail = (uint8_t *)fuzz_alloc(VQB_AVAIL_BYTES(size));
	r->raw.used = (uint8_t *)fuzz_alloc(VQB_USED_BYTES(size));
	r->used_copy = (uint8_t *)fuzz_alloc(VQB_USED_BYTES(size));
	memset(r->raw.used, 0x5a, VQB_USED_BYTES(size));
	memset(r->raw.avail, 0x5a, VQB_AVAIL_BYTES(size));
	memcpy(r->used_copy, r->raw.used, VQB_USED_BYTES(size));
	r->ring = (struct vqb_ring){ .size = size,
				     .flags = flags,
				     .features = features,
				     .desc = r->raw.desc,
				     .avail = r->raw.avail,
				     .used = r->raw.used };
}

/* Both indices are at `idx`, and the next chain begins with descriptor `desc`. */
static void ring_attached(struct run *r, uint32_t idx, uint32_t desc)
{
	r->event_idx = r->ring.features & VQB_FEATURE(VQB_F_EVENT_IDX);
	r->in_order = r->ring.features & VQB_FEATURE(VQB_F_IN_ORDER);
	r->state = VQB_OK;
	r->owed = true;
	r->next = r->exposed = r->decided = r->cursor = r->seen = r->written = idx;
	r->free = r->ring.size;
	r->next_desc = desc;
	r->batch = 0;
}

/* After init or reset with the ring. */
static void ring_started(struct run *r)
{
	uint32_t clear = VQB_USED_BYTES(r->ring.size);

	ring_attached(r, 0, 0);
	memcpy(r->used_copy, r->raw.used, clear);
	for (uint32_t i = 0; i < clear - (r->event_idx ? 0 : 2); i++)
		FUZZ_CHECK(!r->raw.used[i]);
	for (uint32_t i = 0; i < r->ring.size; i++)
		FUZZ_CHECK(!r->by_head[i] && !r->desc_used[i]);
	for (uint32_t i = 0; i < r->table_count; i++)
		FUZZ_CHECK(!r->table_used[i]);
}

/* The device writes into the used ring. */
static void used_poke(struct run *r, uint32_t offset, uint64_t v, unsigned bytes)
{
	poke(r->raw.used + offset, v, bytes);
	poke(r->used_copy + offset, v, bytes);
}

static uint32_t ahead(const struct run *r)
{
	return (raw_used_idx(&r->raw) - r->cursor) & 0xffff;
}

/* ---- policies ---- */

static uint32_t tables_free(const struct run *r)
{
	uint32_t n = 0;

	if (!(r->ring.features & VQB_FEATURE(VQB_F_INDIRECT_DESC)))
		return 0;
	for (uint32_t i = 0; i < r->table_count; i++)
		n += !r->table_used[i];
	return n;
}

/* Could `n` segments go through a table? */
static bool table_fits(const struct run *r, uint32_t n)
{
	return n > 1 && n <= r->table_len && r->free && tables_free(r) &&
	       r->policy.kind != VQB_INDIRECT_NEVER;
}

static uint32_t policy_choose(void *context, const struct vqb_indirect_load *load)
{
	struct run *r = (struct run *)context;

	FUZZ_CHECK(load->segments <= load->free && load->tables);
	FUZZ_CHECK(load->size == r->ring.size && !load->zero);
	r->asked++;
	if (r->asked_late) /* the ledger doesn't know yet what was added before */
		return r->chosen;
	FUZZ_CHECK(load->free == r->free && table_fits(r, load->segments));
	FUZZ_CHECK(load->in_flight == r->next - r->cursor && load->tables == tables_free(r));
	return r->chosen;
}

/* Any clock that does not run backwards. */
static uint64_t policy_clock(void *context)
{
	struct run *r = (struct run *)context;
	uint32_t how = fuzz_u8(&r->in);

	r->clock += how < 0xf0 ? how : (uint64_t)how << (how & 15) * 3;
	return r->clock;
}

/* Half of these are none. */
static struct vqb_indirect_policy pick_policy(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), value = fuzz_u8(&r->in);
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy), .kind = how % 8 };

	policy.context = r;
	if (policy.kind == VQB_INDIRECT_THRESHOLD)
		policy.threshold = value % 8;
	if (policy.kind == VQB_INDIRECT_CUSTOM)
		policy.choose = policy_choose;
	if (policy.kind == VQB_INDIRECT_ADAPTIVE && value % 4)
		policy.clock = policy_clock;
	policy.zero = (how & 0xf8) == 0x08;
	if ((how & 0xf8) == 0x10)
		policy.threshold ^= 1;
	return policy;
}

static bool policy_wrong(const struct vqb_indirect_policy *policy)
{
	bool threshold = policy->kind == VQB_INDIRECT_THRESHOLD;

	return policy->kind > VQB_INDIRECT_CUSTOM || policy->zero ||
	       threshold != (policy->threshold != 0);
}

static void op_policy(struct run *r)
{
	struct vqb_indirect_policy policy = pick_policy(r);
	int32_t wanted = VQB_OK;

	if (policy_wrong(&policy))
		wanted = VQB_E_INVALID;
	else if (r->next != r->cursor)
		wanted = VQB_E_BUSY;
	FUZZ_CHECK(vqb_driver_set_policy(r->drv, &policy) == wanted);
	if (!wanted)
		r->policy = policy;
}

/* Was a request of `n` segments put into a table, or not, as the policy says? */
static void check_way(const struct run *r, uint32_t n, bool table)
{
	if (!table_fits(r, n) || n > r->free) {
		FUZZ_CHECK(table == table_fits(r, n));
		return;
	}
	if (r->policy.kind == VQB_INDIRECT_ALWAYS)
		FUZZ_CHECK(table);
	if (r->policy.kind == VQB_INDIRECT_THRESHOLD)
		FUZZ_CHECK(table == (n >= r->policy.threshold));
	FUZZ_CHECK(r->asked == (r->policy.kind == VQB_INDIRECT_CUSTOM));
	if (r->asked)
		FUZZ_CHECK(table == (r->chosen != 0));
}

/* ---- adding ---- */

struct adding {
	struct vqb_segment *seg;
	uint32_t readable, writable;
	uint64_t bytes, write_bytes;
	bool wrong;
};

static void pick_segments(struct run *r, struct adding *a)
{
	uint32_t n = a->readable + a->writable, how = fuzz_u8(&r->in), len = fuzz_len(&r->in);
	uint64_t addr = how & 1 ? fuzz_u64(&r->in) : 0x10000;
	uint32_t odd = how & 2 ? fuzz_u8(&r->in) : n;

	a->seg = (struct vqb_segment *)fuzz_alloc(n * sizeof(*a->seg));
	for (uint32_t i = 0; i < n; i++) {
		struct vqb_segment *seg = &a->seg[i];

		*seg = (struct vqb_segment){ addr, len ? len : 1, 0 };
		if (i == odd) {
			seg->addr = fuzz_u64(&r->in);
			seg->len = fuzz_len(&r->in);
			seg->zero = fuzz_u8(&r->in) == 1;
		}
		a->bytes += seg->len;
		a->write_bytes += i >= a->readable ? seg->len : 0;
		a->wrong |= !seg->len || seg->zero || seg->len - 1 > ~seg->addr;
		addr += how & 4 ? len : 0;
	}
}

/* The entries of a chain, in the ring or in a table, say what was added. */
static void check_desc(const struct adding *a, uint32_t i, const uint8_t *desc)
{
	uint32_t n = a->readable + a->writable;
	unsigned flags = (i + 1 < n ? RAW_NEXT : 0u) | (i >= a->readable ? RAW_WRITE : 0u);

	FUZZ_CHECK(raw_desc_addr(desc, 0) == a->seg[i].addr);
	FUZZ_CHECK(raw_desc_len(desc, 0) == a->seg[i].len);
	FUZZ_CHECK(raw_desc_flags(desc, 0) == flags);
}

static void claim_desc(struct run *r, struct request *q, uint32_t at)
{
	FUZZ_CHECK(at < r->ring.size && !r->desc_used[at]);
	FUZZ_CHECK(!r->in_order || at == r->next_desc);
	r->next_desc = (at + 1) & (r->ring.size - 1);
	r->desc_used[at] = 1;
	q->desc[q->descs++] = (uint16_t)at;
	r->free--;
}

static void claim_table(struct run *r, struct request *q, const struct adding *a,
			const uint8_t *desc)
{
	uint64_t offset = raw_desc_addr(desc, 0) - TABLES_AT;
	uint32_t n = a->readable + a->writable;

	FUZZ_CHECK(r->ring.features & VQB_FEATURE(VQB_F_INDIRECT_DESC));
	FUZZ_CHECK(raw_desc_flags(desc, 0) == RAW_INDIRECT);
	FUZZ_CHECK(raw_desc_len(desc, 0) == 16 * n && n <= r->table_len);
	FUZZ_CHECK(offset % (16 * r->table_len) == 0);
	FUZZ_CHECK(offset / (16 * r->table_len) < r->table_count);
	q->number = (uint32_t)(offset / (16 * r->table_len));
	FUZZ_CHECK(!r->table_used[q->number]);
	r->table_used[q->number] = 1;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *entry = r->tables + offset + 16 * (size_t)i;

		check_desc(a, i, entry);
		if (i + 1 < n)
			FUZZ_CHECK(raw_desc_next(entry, 0) == i + 1);
	}
}

/* What the driver has just written: from descriptors that were free, and the right thing. */
static void check_added(struct run *r, struct request *q, const struct adding *a)
{
	uint32_t n = a->readable + a->writable, at = raw_avail_entry(&r->raw, r->next);

	FUZZ_CHECK(!a->wrong && n && n <= r->ring.size && a->bytes <= UINT64_C(1) << 32);
	*q = (struct request){ .fate = REQUEST_OUT, .head = at, .number = MAX_TABLES };
	q->position = r->next;
	q->writable = a->write_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)a->write_bytes;
	check_way(r, n, raw_desc_flags(r->raw.desc, at) & RAW_INDIRECT);
	claim_desc(r, q, at);
	FUZZ_CHECK(!r->by_head[at]);
	r->by_head[at] = q;
	if (raw_desc_flags(r->raw.desc, at) & RAW_INDIRECT) {
		claim_table(r, q, a, r->raw.desc + 16 * (size_t)at);
		r->count.indirect++;
		r->count.descriptors++;
	} else {
		for (uint32_t i = 0; i < n; i++) {
			check_desc(a, i, r->raw.desc + 16 * (size_t)at);
			if (i + 1 == n)
				break;
			at = raw_desc_next(r->raw.desc, at);
			claim_desc(r, q, at);
		}
	}
	r->count.descriptors += n;
	r->count.requests++;
	r->next++;
	r->requests++;
}

static void check_refused(struct run *r, const struct adding *a, int32_t status)
{
	uint32_t n = a->readable + a->writable;

	switch (status) {
	case VQB_E_NOSPC:
		FUZZ_CHECK(!r->state && n > r->free && n <= r->ring.size && r->next != r->cursor);
		FUZZ_CHECK(!table_fits(r, n));
		r->count.no_room++;
		break;
	case VQB_E_TOOBIG:
		FUZZ_CHECK(!r->state && (n > r->ring.size || a->bytes > UINT64_C(1) << 32));
		break;
	case VQB_E_INVALID:
		FUZZ_CHECK(r->state == VQB_E_INVALID || (!r->state && (a->wrong || !n)));
		break;
	default:
		FUZZ_CHECK(status == r->state);
		FUZZ_CHECK(status == VQB_E_BROKEN || status == VQB_E_NEEDS_RESET);
		break;
	}
}

/* Of segments: few for the most part, or up to as many as a ring has entries, and more. */
static uint32_t pick_number(struct run *r)
{
	uint32_t n = fuzz_u8(&r->in);

	return n < 0xe0 ? n % 8 : (n - 0xe0) * 10;
}

static void add(struct run *r, const struct adding *a)
{
	struct request *q = &r->request[r->requests];
	int32_t status;

	r->asked = 0;
	status = vqb_driver_add(r->drv, a->seg, a->readable, a->writable, q);
	if (status)
		check_refused(r, a, status);
	else
		check_added(r, q, a);
}

/* The same request several times, in one call. */
static void add_list(struct run *r, const struct adding *a, uint32_t n)
{
	uint32_t added = 77, asked, expected = 0, left = MAX_REQUESTS - r->requests;
	struct request *q = &r->request[r->requests];
	struct vqb_submission list[MAX_LIST];
	int32_t status;

	n = n < left ? n : left;
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct vqb_submission){ a->seg, a->readable, a->writable, q + i };
	r->asked = 0;
	r->asked_late = true;
	status = vqb_driver_add_list(r->drv, n ? list : NULL, n, &added);
	r->asked_late = false;
	asked = r->asked;
	FUZZ_CHECK(added <= n && (status == VQB_OK || status == r->state || added < n));
	for (uint32_t i = 0; i < added; i++) {
		uint32_t all = a->readable + a->writable;

		r->asked = r->policy.kind == VQB_INDIRECT_CUSTOM;
		if (r->asked && table_fits(r, all) && all <= r->free)
			expected++;
		check_added(r, q + i, a);
	}
	if (added < n)
		check_refused(r, a, status);
	else
		FUZZ_CHECK(status == r->state);
	FUZZ_CHECK(asked == expected || (added < n && asked == expected + 1));
}

static void op_add(struct run *r)
{
	struct adding a = { .readable = pick_number(r) };

	a.writable = pick_number(r);
	if (r->requests == MAX_REQUESTS)
		return;
	pick_segments(r, &a);
	r->chosen = a.readable & 1;
	if (r->times)
		add_list(r, &a, r->times);
	else
		add(r, &a);
	free(a.seg); /* the caller's again: nothing may look at it later */
}

/* ---- notifying ---- */

static void expose(struct run *r)
{
	r->exposed = r->next;
	r->owed |= r->exposed - r->decided >= 65535;
}

static uint32_t decide(struct run *r)
{
	uint32_t fresh = r->exposed - r->decided, past;
	bool due = r->owed;

	if (!fresh && !r->owed)
		return VQB_QUIET;
	past = (r->exposed - 1 - raw_avail_event(&r->raw)) & 0xffff;
	if (r->event_idx)
		due |= past < (fresh & 0xffff);
	else
		due = !(raw_used_flags(&r->raw) & 1);
	r->decided = r->exposed;
	r->owed = false;
	r->count.notified += due;
	r->count.suppressed += !due && fresh;
	return due ? VQB_NOTIFY : VQB_QUIET;
}

/* A postponed wish: there may be more before it is time to say so, but not before there is any. */
static void op_postpone(struct run *r)
{
	uint32_t intent = fuzz_u8(&r->in) % 5, lent = r->exposed - r->cursor, skip = 0;
	uint32_t answer = vqb_driver_postpone(r->drv, intent);

	if (r->state) {
		FUZZ_CHECK(answer == VQB_QUIET);
		return;
	}
	if (!r->event_idx)
		lent = 0;
	if (intent == VQB_POSTPONE_EMPTIED)
		skip = lent ? lent - 1 : 0;
	if (intent == VQB_POSTPONE_EMPTIED || !r->event_idx)
		FUZZ_CHECK(answer == (ahead(r) > skip ? VQB_MORE : VQB_QUIET));
	else
		FUZZ_CHECK(answer == VQB_QUIET || (answer == VQB_MORE && ahead(r)));
	if (!ahead(r))
		FUZZ_CHECK(answer == VQB_QUIET);
	if (lent && ahead(r) >= lent)
		FUZZ_CHECK(answer == VQB_MORE);
}

static void op_notify(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in) % 5, answer = VQB_QUIET, wanted = VQB_QUIET;

	if (which == 0)
		answer = vqb_driver_publish(r->drv);
	else if (which == 1)
		answer = vqb_driver_turn(r->drv);
	else if (which == 2)
		vqb_driver_expose(r->drv);
	else if (which == 3)
		answer = vqb_driver_arm(r->drv);
	else
		vqb_driver_disarm(r->drv);
	if (!r->state && which < 3) {
		expose(r);
		FUZZ_CHECK(raw_avail_idx(&r->raw) == (r->next & 0xffff));
	}
	if (!r->state && which < 2)
		wanted = decide(r);
	if (!r->state && (which == 1 || which == 3))
		wanted |= ahead(r) ? VQB_MORE : 0;
	FUZZ_CHECK(answer == wanted);
}

/* ---- the device ---- */

/* A request that is out, counted from the oldest; NULL: there are not so many. */
static const struct request *nth_out(const struct run *r, uint32_t n)
{
	for (uint32_t i = r->first_out; i < r->requests; i++) {
		if (r->request[i].fate == REQUEST_OUT && !n--)
			return &r->request[i];
	}
	return NULL;
}

static void op_complete(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), out = r->next - r->cursor, id, len = fuzz_len(&r->in);
	const struct request *q = out ? nth_out(r, (how & 0x0f) % out) : NULL;
	uint32_t batch = r->in_order && !(how & 0x20) ? how & 0x07 : 0;

	if (!r->raw.size)
		return;
	if (r->in_order && !(how & 0x40)) /* the entry where it belongs: that of a whole batch */
		q = nth_out(r, r->written - r->cursor + batch);
	if (!q || how >= 0xf0)
		id = fuzz_u32(&r->in);
	else
		id = how < 0xe0 ? q->head : r->ring.size + (how & 0x0f);
	if (q && how & 0x10)
		len = q->writable;
	used_poke(r, 4 + 8 * (r->written & (r->raw.size - 1)), id, 4);
	used_poke(r, 8 + 8 * (r->written & (r->raw.size - 1)), len, 4);
	r->written += 1 + batch;
	used_poke(r, 2, r->written, 2);
}

static void op_used_word(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in) % 4, value = fuzz_u16(&r->in);

	if (!r->raw.size)
		return;
	switch (which) {
	case 0:
		used_poke(r, 0, value & 3, 2);
		break;
	case 1:
		used_poke(r, 2, value, 2);
		break;
	case 2: /* avail_event, about where it matters */
		used_poke(r, 4 + 8 * r->raw.size, r->next + (value & 0xff) - 0x80, 2);
		break;
	default:
		r->written += (value & 0xff) - 0x80;
		used_poke(r, 2, r->written, 2);
		break;
	}
}

static void op_used_bytes(struct run *r)
{
	uint32_t offset = fuzz_u16(&r->in), n = 1 + fuzz_below(&r->in, 16);

	while (n-- && r->raw.size)
		used_poke(r, offset++ % VQB_USED_BYTES(r->raw.size), fuzz_u8(&r->in), 1);
}

/* The device may be able to write over what is the driver's; the driver must not believe it. */
static void op_scribble(struct run *r)
{
	uint32_t which = fuzz_u8(&r->in), offset = fuzz_u16(&r->in), n = 1 + fuzz_below(&r->in, 32);
	uint8_t *part = which & 1 ? r->tables : r->raw.desc, mask = fuzz_u8(&r->in);
	size_t bytes = which & 1 ? r->config.tables.bytes : VQB_DESC_BYTES(r->raw.size);

	while (n-- && bytes)
		part[offset++ % bytes] ^= mask;
}

/* ---- reaping ---- */

static void came_back(struct run *r, struct request *q)
{
	FUZZ_CHECK(q->fate == REQUEST_OUT);
	q->fate = REQUEST_BACK;
	r->by_head[q->head] = NULL;
	for (uint32_t i = 0; i < q->descs; i++)
		r->desc_used[q->desc[i]] = 0;
	r->free += q->descs;
	if (q->number < MAX_TABLES)
		r->table_used[q->number] = 0;
	while (r->first_out < r->requests && r->request[r->first_out].fate == REQUEST_BACK)
		r->first_out++;
}

/* The request that the used entry at the cursor gives back; NULL: it breaks the queue. */
static struct request *next_used(const struct run *r, uint32_t *len)
{
	uint32_t id = raw_used_id(&r->raw, r->cursor);
	struct request *q = id < r->ring.size ? r->by_head[id] : NULL;

	*len = raw_used_len(&r->raw, r->cursor);
	return q && q->position - r->exposed > UINT32_MAX / 2 ? q : NULL;
}

/* The same in order, where an entry gives back all requests up to its own. */
static struct request *next_in_order(struct run *r, uint32_t *len)
{
	struct request *q;

	if (!r->batch) {
		q = next_used(r, &r->batch_len);
		if (!q || q->position - r->cursor >= r->seen - r->cursor)
			return NULL;
		r->batch = q->position - r->cursor + 1;
	}
	q = r->request + r->first_out; /* nothing behind it came back earlier */
	*len = --r->batch ? q->writable : r->batch_len;
	return q;
}

static void check_done(struct run *r, const struct vqb_done *done, struct request *q, uint32_t len)
{
	bool overlong = len > q->writable;
	uint32_t flags = overlong ? VQB_DONE_OVERLONG : 0;

	if (r->in_order && r->batch)
		flags = VQB_DONE_IMPLIED;
	FUZZ_CHECK(done->token == q);
	FUZZ_CHECK(done->len == (overlong ? q->writable : len));
	FUZZ_CHECK(done->flags == flags);
	r->count.overlong += overlong;
	r->count.completions++;
	came_back(r, q);
	r->cursor++;
}

static bool look(struct run *r)
{
	if (r->state)
		return false;
	if (r->seen != r->cursor)
		return true;
	if (ahead(r) > r->exposed - r->cursor)
		r->state = VQB_E_BROKEN;
	else
		r->seen += ahead(r);
	return !r->state;
}

static void reap(struct run *r, uint32_t max)
{
	uint32_t n = 0, len;
	struct vqb_done *done = (struct vqb_done *)fuzz_alloc(max * sizeof(*done));
	uint32_t reaped = vqb_driver_reap(r->drv, done, max);

	FUZZ_CHECK(reaped <= max);
	while (look(r) && n < max && r->cursor != r->seen) {
		struct request *q = r->in_order ? next_in_order(r, &len) : next_used(r, &len);

		if (!q) {
			r->state = VQB_E_BROKEN;
			break;
		}
		FUZZ_CHECK(n < reaped);
		check_done(r, &done[n++], q, len);
		if (r->cursor == r->seen)
			break; /* the index is looked at once per call */
	}
	FUZZ_CHECK(reaped == n);
	free(done);
}

static void op_reap(struct run *r)
{
	reap(r, fuzz_below(&r->in, MAX_DONE));
}

/* The device completes, in order, what it has been shown and has not completed yet. */
static void complete_all(struct run *r)
{
	const struct request *q;

	while (!r->state && r->written != r->exposed) {
		q = nth_out(r, r->written - r->cursor);
		if (!q)
			return;
		used_poke(r, 4 + 8 * (r->written & (r->raw.size - 1)), q->head, 4);
		used_poke(r, 8 + 8 * (r->written & (r->raw.size - 1)), q->writable, 4);
		used_poke(r, 2, ++r->written, 2);
	}
}

/* Many requests, so that a policy learns something. */
static void op_many(struct run *r)
{
	uint32_t rounds = 4 * fuzz_below(&r->in, 32), batch = 1 + fuzz_below(&r->in, 32);
	uint32_t readable = 1 + fuzz_below(&r->in, 6), fewer = fuzz_below(&r->in, 4);
	struct vqb_segment seg[6];
	struct adding a = { .seg = seg, .readable = readable };

	for (uint32_t i = 0; i < readable; i++)
		seg[i] = (struct vqb_segment){ 0x1000 * i, 16, 0 };
	a.bytes = 16 * (uint64_t)readable;
	while (rounds-- && !r->state) {
		if (r->times) {
			r->chosen = rounds & 1;
			add_list(r, &a, batch);
		}
		for (uint32_t i = 0; i < batch && r->requests < MAX_REQUESTS && !r->times; i++) {
			r->chosen = i & 1;
			add(r, &a);
		}
		vqb_driver_expose(r->drv);
		expose(r);
		complete_all(r);
		reap(r, fewer ? batch - batch / (1 + fewer) : MAX_DONE);
	}
}

/* ---- starting over ---- */

static void detach(struct run *r, uint32_t max)
{
	void **token = (void **)fuzz_alloc(max * sizeof(*token));
	uint32_t out = r->next - r->cursor, n = 77;
	int32_t status = vqb_driver_detach(r->drv, token, max, &n);

	if (r->state != VQB_E_INVALID) {
		FUZZ_CHECK(status == VQB_E_BUSY && !n);
	} else {
		FUZZ_CHECK(status == (out > max ? VQB_E_NOSPC : VQB_OK));
		FUZZ_CHECK(n == (out > max ? max : out));
		for (uint32_t i = 0; i < n; i++) {
			FUZZ_CHECK((struct request *)token[i] >= r->request &&
				   (struct request *)token[i] < r->request + r->requests);
			came_back(r, (struct request *)token[i]);
			r->cursor++;
		}
	}
	free(token);
}

static void op_detach(struct run *r)
{
	detach(r, fuzz_below(&r->in, MAX_DONE));
}

/* The memory of a ring that was let go of is given back, so that a sanitizer sees it touched. */
static void let_go(struct run *r)
{
	FUZZ_CHECK(vqb_driver_reset(r->drv, NULL) == VQB_OK);
	r->state = VQB_E_INVALID;
	ring_free(r);
}

/* May the driver not have this ring? */
static bool ring_wrong(const struct run *r)
{
	const struct vqb_ring *ring = &r->ring;

	return ring->size > r->max_size || ring->zero ||
	       ring->flags & ~(uint32_t)VQB_RING_BIG_ENDIAN ||
	       (ring->flags && ring->features & VQB_FEATURE(VQB_F_VERSION_1));
}

static void op_reset(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), size = fuzz_ring_size(&r->in), flags;
	uint64_t features = fuzz_features(&r->in);
	int32_t wanted = VQB_OK;

	if (how & 1) {
		let_go(r);
		return;
	}
	if (r->next != r->cursor)
		wanted = VQB_E_BUSY;
	if (!wanted)
		ring_make(r, size, features, how & 4 ? VQB_RING_BIG_ENDIAN : 0);
	if (!r->raw.size)
		return;
	flags = r->ring.flags;
	if (how & 2)
		r->ring.flags = 0x80;
	if (ring_wrong(r))
		wanted = VQB_E_INVALID;
	FUZZ_CHECK(vqb_driver_reset(r->drv, &r->ring) == wanted);
	r->ring.flags = flags;
	if (!wanted)
		ring_started(r);
	else if (r->next == r->cursor)
		let_go(r); /* a ring that it was not given is gone, and so is the old one */
}

/* Another program takes over, with a driver of its own that has no ring yet. */
static void another(struct run *r)
{
	size_t bytes = vqb_driver_size(&r->config);

	free(r->object);
	r->config.ring = (struct vqb_ring){ 0 };
	r->config.max_size = r->max_size;
	r->config.policy = r->policy.struct_size ? &r->policy : NULL;
	r->object = fuzz_object(bytes);
	FUZZ_CHECK(vqb_driver_init(r->object, bytes, &r->config, &r->drv) == VQB_OK);
	memset(&r->count, 0, sizeof(r->count));
	r->next = r->exposed = r->cursor = r->seen = 0;
	r->state = VQB_E_INVALID;
}

static void save(const struct run *r, struct vqb_driver_saved *saved)
{
	int32_t wanted = r->state;

	if (!wanted && r->next != r->cursor)
		wanted = VQB_E_BUSY;
	FUZZ_CHECK(vqb_driver_save(r->drv, saved) == wanted);
	if (wanted)
		return;
	FUZZ_CHECK(saved->avail == (r->cursor & 0xffff) && saved->used == saved->avail);
	FUZZ_CHECK(saved->desc < r->ring.size && !saved->zero);
	FUZZ_CHECK(!r->in_order || saved->desc == r->next_desc);
}

/* What was saved may have been changed, and so may the ring. */
static void op_save(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), flags = r->ring.flags;
	struct vqb_driver_saved saved = { 0 };
	int32_t wanted = VQB_OK;

	save(r, &saved);
	if (!r->raw.size)
		return;
	if (how & 1)
		saved.desc = (uint16_t)(fuzz_u8(&r->in) + (how & 0x80));
	if (how & 2)
		saved.avail = saved.used = (uint16_t)raw_used_idx(&r->raw);
	if ((how & 0x1c) == 0x04)
		saved.used ^= fuzz_u8(&r->in);
	if ((how & 0x1c) == 0x08)
		saved.zero = fuzz_u8(&r->in);
	if ((how & 0x1c) == 0x0c)
		r->ring.flags = 0x80;
	if (how & 0x20 && r->next == r->cursor)
		another(r);
	if (ring_wrong(r) || saved.used != saved.avail || saved.zero || saved.desc >= r->ring.size)
		wanted = VQB_E_INVALID;
	else if (r->next != r->cursor)
		wanted = VQB_E_BUSY;
	else if (raw_avail_idx(&r->raw) != saved.avail || raw_used_idx(&r->raw) != saved.avail)
		wanted = VQB_E_INVALID;
	FUZZ_CHECK(vqb_driver_restore(r->drv, &r->ring, &saved) == wanted);
	r->ring.flags = flags;
	if (!wanted)
		ring_attached(r, saved.avail, saved.desc);
}

/* ---- what can be asked at any time ---- */

static void check_counters(struct run *r)
{
	const struct vqb_driver_counters *want = &r->count;
	struct vqb_driver_counters count;

	vqb_driver_read_counters(r->drv, &count);
	FUZZ_CHECK(count.requests == want->requests);
	FUZZ_CHECK(count.descriptors == want->descriptors);
	FUZZ_CHECK(count.indirect == want->indirect);
	FUZZ_CHECK(count.no_room == want->no_room);
	FUZZ_CHECK(count.completions == want->completions);
	FUZZ_CHECK(count.overlong == want->overlong);
	FUZZ_CHECK(count.indirect ==
		   count.indirect_chosen + count.indirect_whole + count.indirect_no_room);
	FUZZ_CHECK(count.requests - count.indirect ==
		   count.direct_single + count.direct_chosen + count.direct_no_table);
	FUZZ_CHECK(count.notified == want->notified);
	FUZZ_CHECK(count.suppressed == want->suppressed);
}

static void check_all(struct run *r)
{
	uint32_t out = r->next - r->cursor, pending, oldest;
	const struct request *first = nth_out(r, 0);
	void *token = NULL;

	FUZZ_CHECK(vqb_driver_state(r->drv) == r->state);
	FUZZ_CHECK(vqb_driver_in_flight(r->drv) == out);
	FUZZ_CHECK(vqb_driver_free(r->drv) == (r->state == VQB_E_INVALID ? 0 : r->free));
	pending = r->state ? 0 : ahead(r);
	FUZZ_CHECK(vqb_driver_pending(r->drv) == (pending <= r->exposed - r->cursor ? pending : 0));
	if (r->steps++ % 8 == 0) { /* it goes through all slots, which takes its time */
		oldest = vqb_driver_oldest(r->drv, &token);
		FUZZ_CHECK(token == first);
		FUZZ_CHECK(oldest == (first ? r->next - first->position : 0));
	}
	if (r->used_copy)
		FUZZ_CHECK(!memcmp(r->raw.used, r->used_copy, VQB_USED_BYTES(r->raw.size)));
	check_counters(r);
}

/* Whatever has happened: what is out comes back by detach, each once. */
static void finish(struct run *r)
{
	let_go(r);
	check_all(r);
	while (r->next != r->cursor)
		detach(r, 7);
	detach(r, 7);
	check_all(r);
	for (uint32_t i = 0; i < r->requests; i++)
		FUZZ_CHECK(r->request[i].fate == REQUEST_BACK);
	ring_make(r, r->max_size, 0, 0);
	FUZZ_CHECK(vqb_driver_reset(r->drv, &r->ring) == VQB_OK);
	ring_started(r);
	check_all(r);
}

/* What can happen at any time, but seldom does. */
static void op_seldom(struct run *r)
{
	switch (fuzz_u8(&r->in) % 8) {
	case 7:
		vqb_driver_needs_reset(r->drv);
		r->state = r->state ? r->state : VQB_E_NEEDS_RESET;
		break;
	case 1:
	case 2:
		op_policy(r);
		break;
	case 3:
	case 4:
		op_many(r);
		break;
	case 0:
		vqb_driver_clear_counters(r->drv);
		memset(&r->count, 0, sizeof(r->count));
		break;
	default:
		op_save(r);
		break;
	}
}

static void operate(struct run *r)
{
	static void (*const op[16])(struct run *) = {
		op_add,        op_complete, op_reap,  op_notify, op_postpone, op_used_word,
		op_used_bytes, op_scribble, op_reset, op_detach, op_add,      op_complete,
		op_reap,       op_notify,   op_add,   op_seldom,
	};

	op[fuzz_op(&r->in, r->lists, &r->times)](r);
}

/* ---- a run ---- */

static void pick_tables(struct run *r)
{
	uint32_t segments = fuzz_count(&r->in), tables = fuzz_below(&r->in, MAX_TABLES + 1);
	uint32_t odd = fuzz_u8(&r->in); /* bytes that make no whole table */

	r->table_len = segments < r->max_size ? segments : r->max_size;
	r->table_count = tables < r->max_size ? tables : r->max_size;
	r->config.max_table = segments;
	r->config.tables.bytes = VQB_TABLES_BYTES(tables, r->table_len);
	if (r->config.tables.bytes)
		r->config.tables.bytes += odd % (16 * r->table_len);
	r->tables = (uint8_t *)fuzz_alloc(r->config.tables.bytes);
	r->config.tables.host = r->tables;
	r->config.tables.addr = TABLES_AT;
}

static int32_t start(struct run *r, struct fuzz_input config)
{
	uint32_t how, size;
	uint64_t features;
	int32_t status;
	size_t bytes;

	r->in = config;
	how = fuzz_u8(&r->in);
	r->lists = how & 0x80;
	size = fuzz_ring_size(&r->in);
	r->max_size = how & 1 ? MAX_SIZE : size;
	features = fuzz_features(&r->in);
	ring_make(r, size, features, fuzz_ring_flags(how & 16, features));
	r->policy = pick_policy(r);
	if (policy_wrong(&r->policy))
		r->policy = (struct vqb_indirect_policy){ 0 };
	r->config = (struct vqb_driver_config){ .struct_size = sizeof(r->config),
						.max_size = r->max_size };
	r->config.policy = r->policy.struct_size ? &r->policy : NULL;
	r->state = VQB_E_INVALID;
	if (!(how & 2))
		r->config.ring = r->ring;
	pick_tables(r);
	if (how & 8)
		r->config.cache = &fuzz_cache;
	bytes = vqb_driver_size(&r->config);
	FUZZ_CHECK(bytes && bytes <= VQB_DRIVER_BYTES(r->max_size));
	r->object = fuzz_object(bytes);
	status = vqb_driver_init(r->object, bytes, &r->config, &r->drv);
	FUZZ_CHECK(status == VQB_OK);
	if (r->config.ring.size)
		ring_started(r);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	struct run *r = &run;
	struct fuzz_input in = { data, data + size };

	memset(r, 0, offsetof(struct run, request));
	if (!start(r, fuzz_cut(&in, CONFIG))) {
		r->in = in;
		check_all(r);
		while (fuzz_more(&r->in)) {
			operate(r);
			check_all(r);
		}
		finish(r);
	}
	ring_free(r);
	free(r->tables);
	free(r->object);
	return 0;
}
