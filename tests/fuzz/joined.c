/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * joined.c: a driver and a device on one ring, and something in between that spoils what lies in
 * shared memory.
 *
 * Until it has spoilt anything the two have to understand each other perfectly: what is taken is
 * what was added, in that order; what is reaped is what was put; nobody sleeps while there is
 * something to do. From then on each has to keep what it promises by itself: each token and each
 * ticket once, no length beyond what was lent, no piece outside guest memory. Starting over on both
 * ends mends the ring, and with it the understanding. A device with a tracking area may be killed
 * after any operation: the next one takes again what its driver has not got back.
 */
#include <vqblk/device.h>
#include <vqblk/driver.h>

#include "fuzz.h"

enum {
	CONFIG = 16,
	MAX_SIZE = 256,
	MAX_REQUESTS = 512,
	MAX_SEGMENTS = 24,
	MAX_PIECES = 128,
	BATCH = 16,
	TABLES = 16,
	DATA_BYTES = 0x800, /* in each of two regions, which adjoin in the guest only */
};

#define RING_AT UINT64_C(0x40000000)
#define TABLES_AT UINT64_C(0x50000000)
#define DATA_AT UINT64_C(0x60000000)
#define BOTH ((uint32_t)(VQB_READ | VQB_WRITE))

enum fate { REQUEST_NONE, REQUEST_ADDED, REQUEST_TAKEN, REQUEST_PUT, REQUEST_BACK };

struct request {
	enum fate fate; /* once something is spoilt: added or back */
	uint32_t readable, writable, head, written;
	uint64_t write_bytes;
	struct vqb_segment seg[MAX_SEGMENTS];
};

struct held {
	bool out;
	struct vqb_ticket ticket;
	uint64_t writable;
};

struct run {
	struct fuzz_input in;
	bool lists;     /* by the configuration */
	uint32_t times; /* of this operation, by a list; 0: by itself */
	uint32_t max_size;
	struct vqb_layout layout;
	uint8_t *block, *tables, *data[2], *area; /* of tracking, or NULL */
	struct vqb_device_config dev_config;
	struct vqb_extent extent[4];
	struct vqb_memory memory;
	struct vqb_ring ring;
	struct vqb_ring_at ring_at;
	struct vqb_driver *drv;
	struct vqb_device *dev;
	void *drv_object, *dev_object;
	bool spoilt;
	bool dev_asleep, drv_asleep;   /* told to wait, and not notified since */
	uint32_t added, back, exposed; /* by the driver; all of this life of the ring */
	uint32_t taken, put, put_exposed;
	uint32_t again; /* taken once, by a device that stopped since */
	uint32_t first; /* request of this life */
	uint32_t requests;
	uint16_t put_order[MAX_REQUESTS], take_order[MAX_REQUESTS];
	struct held held[MAX_SIZE];
	uint32_t last_seq;
	struct request request[MAX_REQUESTS];
};

static bool in_order(const struct run *r)
{
	return r->ring.features & VQB_FEATURE(VQB_F_IN_ORDER);
}

/* Requests that were put and have nothing in front of them: what the device can show. */
static uint32_t showable(const struct run *r)
{
	uint32_t n = 0;

	if (!in_order(r) || r->spoilt)
		return r->put;
	while (r->first + n < r->requests && r->request[r->first + n].fate >= REQUEST_PUT)
		n++;
	return n;
}

/* ---- the driver ---- */

static void pick_segments(struct run *r, struct request *q)
{
	uint32_t n;

	q->readable = fuzz_below(&r->in, MAX_SEGMENTS / 2 + 1);
	q->writable = fuzz_below(&r->in, MAX_SEGMENTS / 2 + 1);
	q->write_bytes = 0;
	n = q->readable + q->writable;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = fuzz_u16(&r->in) % (2 * DATA_BYTES), len = 1 + fuzz_u8(&r->in);

		if (len > 2 * DATA_BYTES - at)
			len = 2 * DATA_BYTES - at;
		q->seg[i] = (struct vqb_segment){ DATA_AT + at, len, 0 };
		q->write_bytes += i >= q->readable ? len : 0;
	}
}

static void check_status(const struct run *r, const struct request *q, int32_t status)
{
	if (!(q->readable + q->writable))
		FUZZ_CHECK(status == VQB_E_INVALID || status == VQB_E_BROKEN);
	else if (status)
		FUZZ_CHECK(status == VQB_E_NOSPC || status == VQB_E_TOOBIG ||
			   status == VQB_E_BROKEN);
	if (!r->spoilt)
		FUZZ_CHECK(status != VQB_E_BROKEN);
}

/* The first one has been picked; the others are the same. */
static uint32_t add_list(struct run *r, struct request *q, int32_t *status)
{
	uint32_t n = r->times, left = MAX_REQUESTS - r->requests, added;
	struct vqb_submission list[7];

	n = n < left ? n : left;
	for (uint32_t i = 0; i < n; i++) {
		q[i] = q[0];
		list[i] = (struct vqb_submission){ q[i].seg, q[i].readable, q[i].writable, &q[i] };
	}
	*status = vqb_driver_add_list(r->drv, list, n, &added);
	FUZZ_CHECK(added <= n && !*status == (added == n));
	return added;
}

static void op_add(struct run *r)
{
	struct request *q = &r->request[r->requests];
	uint32_t added;
	int32_t status;

	if (r->requests == MAX_REQUESTS)
		return;
	pick_segments(r, q);
	if (r->times) {
		added = add_list(r, q, &status);
	} else {
		status = vqb_driver_add(r->drv, q->seg, q->readable, q->writable, q);
		added = !status;
	}
	check_status(r, q, status);
	for (; added; added--) {
		r->request[r->requests++].fate = REQUEST_ADDED;
		r->added++;
	}
}

static void woken(struct run *r, bool *asleep, uint32_t answer, uint32_t pending)
{
	if (answer & VQB_NOTIFY)
		*asleep = false;
	/*
	 * The one thing that must never be: something to do, somebody asleep, and no notification.
	 */
	if (!r->spoilt)
		FUZZ_CHECK(!*asleep || !pending);
}

static void op_driver_publish(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in) % 3, answer = 0;

	if (how == 0)
		answer = vqb_driver_publish(r->drv);
	else if (how == 1)
		answer = vqb_driver_turn(r->drv);
	else
		vqb_driver_expose(r->drv);
	if (vqb_driver_state(r->drv))
		FUZZ_CHECK(!answer);
	else
		r->exposed = r->added;
	if (!r->spoilt)
		FUZZ_CHECK(vqb_device_pending(r->dev) == r->exposed - r->taken);
	if (how == 1)
		r->drv_asleep = !(answer & VQB_MORE);
	if (how < 2)
		woken(r, &r->dev_asleep, answer, vqb_device_pending(r->dev));
}

static void op_driver_arm(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in) % 5, answer;

	if (how == 3) {
		vqb_driver_disarm(r->drv);
		r->drv_asleep = false;
		return;
	}
	answer = how < 3 ? vqb_driver_postpone(r->drv, how) : vqb_driver_arm(r->drv);
	FUZZ_CHECK(!(answer & ~VQB_MORE));
	/* Who postponed is not promised to hear of the first one. */
	r->drv_asleep = how == 4 && !answer;
	if (answer)
		FUZZ_CHECK(vqb_driver_pending(r->drv) || r->spoilt);
	else if (!r->spoilt && how == 4)
		FUZZ_CHECK(!vqb_driver_pending(r->drv));
}

static void check_done(struct run *r, const struct vqb_done *done)
{
	struct request *q = (struct request *)done->token;

	FUZZ_CHECK(q >= r->request + r->first && q < r->request + r->requests);
	FUZZ_CHECK(q->fate != REQUEST_NONE && q->fate != REQUEST_BACK);
	FUZZ_CHECK(done->len <= q->write_bytes);
	if (!r->spoilt) {
		uint32_t i = in_order(r) ? r->first + r->back : r->put_order[r->back];

		FUZZ_CHECK(q->fate == REQUEST_PUT);
		FUZZ_CHECK(q == &r->request[i]);
		FUZZ_CHECK(done->len == q->written);
		if (!in_order(r) || done->len < q->write_bytes)
			FUZZ_CHECK(!done->flags);
		FUZZ_CHECK(!(done->flags & ~(uint32_t)VQB_DONE_IMPLIED));
	}
	q->fate = REQUEST_BACK;
	r->back++;
}

static void op_reap(struct run *r)
{
	uint32_t max = fuzz_below(&r->in, BATCH + 1), n;
	struct vqb_done done[BATCH];

	r->drv_asleep = false;
	n = vqb_driver_reap(r->drv, done, max);
	FUZZ_CHECK(n <= max);
	for (uint32_t i = 0; i < n; i++)
		check_done(r, &done[i]);
}

/* ---- the device ---- */

static const struct vqb_extent *extent_of(const struct run *r, const struct vqb_piece *piece)
{
	for (uint32_t i = 0; i < r->memory.count; i++) {
		const struct vqb_extent *e = &r->extent[i];
		size_t offset = (uintptr_t)piece->base - (uintptr_t)e->host;

		if (offset < e->len && piece->len && piece->len <= e->len - offset)
			return e;
	}
	return NULL;
}

/* The device does its work, at both ends of each piece. */
static void work(struct run *r, const struct vqb_chain *chain)
{
	uint64_t bytes[2] = { 0 };

	for (uint32_t i = 0; i < chain->readable + chain->writable; i++) {
		const struct vqb_piece *piece = &chain->piece[i];
		const struct vqb_extent *e = extent_of(r, piece);
		uint32_t access = i < chain->readable ? VQB_READ : VQB_WRITE;
		uint8_t *base = (uint8_t *)piece->base;

		FUZZ_CHECK(e && e->access & access);
		bytes[i >= chain->readable] += piece->len;
		if (access == VQB_WRITE)
			base[0] = base[piece->len - 1] = (uint8_t)i;
	}
	FUZZ_CHECK(chain->read_bytes == bytes[0] && chain->write_bytes == bytes[1]);
}

/* Nothing is spoilt: the chain is the next request, byte for byte. */
static void check_understood(struct run *r, const struct vqb_chain *chain)
{
	struct request *q = &r->request[r->first];
	uint64_t done = 0;
	uint32_t s = 0;

	/* Mostly the one behind the last; what a killed device had taken may be anywhere. */
	while (q < &r->request[r->requests] && q->fate != REQUEST_ADDED)
		q++;
	FUZZ_CHECK(r->taken < r->exposed && q < &r->request[r->requests]);
	r->take_order[r->taken] = (uint16_t)(q - r->request);
	FUZZ_CHECK(chain->status == VQB_OK);
	for (uint32_t i = 0; i < chain->readable + chain->writable; i++) {
		const struct vqb_piece *piece = &chain->piece[i];
		const struct vqb_extent *e = extent_of(r, piece);
		uint64_t addr = e->addr + (uint64_t)((uint8_t *)piece->base - (uint8_t *)e->host);

		FUZZ_CHECK(s < q->readable + q->writable);
		FUZZ_CHECK(addr == q->seg[s].addr + done);
		FUZZ_CHECK((s < q->readable) == (i < chain->readable));
		done += piece->len;
		FUZZ_CHECK(done <= q->seg[s].len);
		if (done == q->seg[s].len) {
			s++;
			done = 0;
		}
	}
	FUZZ_CHECK(s == q->readable + q->writable);
	FUZZ_CHECK(chain->write_bytes == q->write_bytes);
	FUZZ_CHECK(q->fate == REQUEST_ADDED);
	q->fate = REQUEST_TAKEN;
	q->head = chain->ticket.head;
}

static void take_in(struct run *r, const struct vqb_chain *chain)
{
	struct held *held = &r->held[chain->ticket.head];

	FUZZ_CHECK(chain->ticket.head < r->ring.size && !held->out);
	FUZZ_CHECK(chain->ticket.seq && chain->ticket.seq - r->last_seq < UINT32_MAX / 2);
	FUZZ_CHECK(chain->ticket.seq != r->last_seq);
	r->last_seq = chain->ticket.seq;
	*held = (struct held){ true, chain->ticket, chain->write_bytes };
	if (chain->status)
		FUZZ_CHECK(chain->status == VQB_E_BAD_CHAIN && !chain->readable &&
			   !chain->writable);
	if (!r->spoilt)
		check_understood(r, chain);
	work(r, chain);
	r->taken++;
}

static void op_take(struct run *r)
{
	uint32_t max = fuzz_below(&r->in, BATCH + 1), room = fuzz_u8(&r->in) % (MAX_PIECES + 1), n;
	struct vqb_chain chain[BATCH];
	struct vqb_piece piece[MAX_PIECES];
	struct vqb_need need;
	int32_t status;

	r->dev_asleep = false;
	status = vqb_device_take(r->dev, chain, max, piece, room, &n, &need);
	FUZZ_CHECK(n <= max);
	if (!r->spoilt)
		FUZZ_CHECK(!status || (status == VQB_E_NOSPC && need.pieces > 0));
	for (uint32_t i = 0; i < n; i++)
		take_in(r, &chain[i]);
	if ((status == VQB_E_FAULT || status == VQB_E_NOSPC) && r->spoilt && n < max) {
		FUZZ_CHECK(vqb_device_reject(r->dev, &chain[n]) == VQB_OK ||
			   vqb_device_state(r->dev, NULL) == VQB_E_BROKEN);
		if (!vqb_device_state(r->dev, NULL))
			take_in(r, &chain[n]);
	}
}

static struct held *nth_held(struct run *r, uint32_t n)
{
	for (uint32_t i = 0; i < MAX_SIZE; i++) {
		if (r->held[i].out && !n--)
			return &r->held[i];
	}
	return NULL;
}

static void note_put(struct run *r, uint32_t head, uint32_t written)
{
	for (uint32_t i = r->first; i < r->requests && !r->spoilt; i++) {
		struct request *q = &r->request[i];

		if (q->fate != REQUEST_TAKEN || q->head != head)
			continue;
		q->fate = REQUEST_PUT;
		q->written = written;
		r->put_order[r->put] = (uint16_t)i;
	}
}

static void was_put(struct run *r, struct held *held, uint32_t written)
{
	FUZZ_CHECK(vqb_device_put(r->dev, held->ticket, 0) == VQB_E_STALE);
	note_put(r, held->ticket.head, written);
	held->out = false;
	r->put++;
}

static void put(struct run *r, struct held *held, uint32_t written)
{
	bool fits = written <= held->writable;

	FUZZ_CHECK(vqb_device_put(r->dev, held->ticket, written) ==
		   (fits ? VQB_OK : VQB_E_INVALID));
	if (fits)
		was_put(r, held, written);
}

/* From the `from`th that is out on, each with `written` bytes; then the first one again. */
static void put_list(struct run *r, uint32_t from, uint32_t written)
{
	struct vqb_completion list[8];
	struct held *held[7];
	uint32_t n, wanted;

	for (n = 0; n < r->times && (held[n] = nth_held(r, from + n)); n++)
		list[n] = (struct vqb_completion){ held[n]->ticket, written };
	if (!n)
		return;
	list[n] = list[0];
	for (wanted = 0; wanted < n && written <= held[wanted]->writable;)
		wanted++;
	FUZZ_CHECK(vqb_device_put_list(r->dev, list, n + 1) == wanted);
	for (uint32_t i = 0; i < wanted; i++)
		was_put(r, held[i], written);
}

static void op_put(struct run *r)
{
	uint32_t from = fuzz_u8(&r->in) & 0x0f, written = fuzz_u16(&r->in);
	struct held *held = nth_held(r, from);

	if (!held)
		return;
	if (!(written & 0x8000) && held->writable < UINT32_MAX)
		written %= (uint32_t)held->writable + 1;
	if (r->times)
		put_list(r, from, written);
	else
		put(r, held, written);
}

/* Only while all is well can it be said which one was taken last. */
static void op_untake(struct run *r)
{
	struct request *q;

	if (r->spoilt || !r->taken)
		return;
	q = &r->request[r->take_order[r->taken - 1]];
	if (q->fate != REQUEST_TAKEN)
		return;
	FUZZ_CHECK(vqb_device_untake(r->dev, r->held[q->head].ticket) == VQB_OK);
	r->held[q->head].out = false;
	q->fate = REQUEST_ADDED;
	r->taken--;
	r->dev_asleep = false;
}

static void op_device_publish(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in) % 3, answer = 0;

	if (how == 0)
		answer = vqb_device_publish(r->dev);
	else if (how == 1)
		answer = vqb_device_turn(r->dev);
	else
		vqb_device_expose(r->dev);
	r->put_exposed = showable(r);
	if (!r->spoilt)
		FUZZ_CHECK(vqb_driver_pending(r->drv) == r->put_exposed - r->back);
	if (how == 1)
		r->dev_asleep = !(answer & VQB_MORE);
	if (how < 2)
		woken(r, &r->drv_asleep, answer, vqb_driver_pending(r->drv));
}

static void op_device_arm(struct run *r)
{
	r->dev_asleep = false;
	if (fuzz_u8(&r->in) & 1)
		vqb_device_disarm(r->dev);
	else
		r->dev_asleep = !vqb_device_arm(r->dev);
	if (r->dev_asleep && !r->spoilt)
		FUZZ_CHECK(!vqb_device_pending(r->dev));
}

/* What the device had taken, and its driver has not got back, is taken again. */
static void resubmit(struct run *r)
{
	for (uint32_t i = 0; i < r->put - r->put_exposed && !in_order(r) && !r->spoilt; i++)
		r->request[r->put_order[r->put_exposed + i]].fate = REQUEST_TAKEN;
	for (uint32_t i = r->first; i < r->requests && !r->spoilt; i++) {
		struct request *q = &r->request[i];

		if (q->fate == REQUEST_TAKEN ||
		    (in_order(r) && q->fate == REQUEST_PUT && i - r->first >= r->put_exposed))
			q->fate = REQUEST_ADDED;
	}
	memset(r->held, 0, sizeof(r->held));
	r->again = r->again > r->taken ? r->again : r->taken;
	r->taken = r->put = r->put_exposed;
	r->dev_asleep = false;
}

static void make_device(struct run *r)
{
	size_t bytes = vqb_device_size(&r->dev_config);

	FUZZ_CHECK(bytes && bytes <= VQB_DEVICE_BYTES(r->max_size));
	free(r->dev_object);
	r->dev_object = fuzz_object(bytes);
	FUZZ_CHECK(vqb_device_init(r->dev_object, bytes, &r->dev_config, &r->dev) == VQB_OK);
	r->last_seq = 0;
}

/* Without a ring at first: what a device without one may refuse is not known then. */
static void op_kill(struct run *r)
{
	struct vqb_device_saved saved = { 0 };
	int32_t status;

	r->dev_config.ring.size = 0;
	r->dev_config.max_size = r->max_size;
	make_device(r);
	status = vqb_device_restore(r->dev, &r->ring_at, &saved);
	FUZZ_CHECK(!status || (r->spoilt && status == VQB_E_INVALID));
	resubmit(r);
}

static void op_device_save(struct run *r)
{
	uint32_t taken = r->again > r->taken ? r->again : r->taken;
	struct vqb_device_saved saved;
	int32_t status;

	if (vqb_device_save(r->dev, &saved))
		return;
	FUZZ_CHECK(r->area || saved.avail == saved.used);
	if (!r->spoilt)
		FUZZ_CHECK((uint16_t)(saved.avail - saved.used) == taken - r->put_exposed);
	status = vqb_device_restore(r->dev, &r->ring_at, &saved);
	FUZZ_CHECK(!status || (r->area && r->spoilt && status == VQB_E_INVALID));
	resubmit(r);
}

static void op_driver_save(struct run *r)
{
	struct vqb_driver_saved saved;
	int32_t status;

	if (vqb_driver_save(r->drv, &saved))
		return;
	FUZZ_CHECK(r->added == r->back);
	status = vqb_driver_restore(r->drv, &r->ring, &saved);
	FUZZ_CHECK(!status || (r->spoilt && status == VQB_E_INVALID));
	r->drv_asleep = false;
}

/* The map changes its number, or one end is stopped, or killed, and goes on. */
static void op_move(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in);

	if (how & 1) {
		r->memory.generation++;
		FUZZ_CHECK(vqb_device_set_memory(r->dev, &r->memory) == VQB_OK);
	} else if (how & 2) {
		op_driver_save(r);
	} else if (how & 4 && r->area) {
		op_kill(r);
	} else {
		op_device_save(r);
	}
}

/* ---- in between ---- */

/* A byte of the ring: any, or one of those that will be looked at next. */
static uint32_t pick_target(const struct run *r, uint32_t which, uint32_t offset)
{
	uint32_t mask = r->ring.size - 1, avail = r->layout.avail, used = r->layout.used;
	uint32_t entry = avail + 4 + 2 * (r->taken & mask);

	switch (which) {
	case 0:
		return avail + (offset & 3);
	case 1:
		return used + (offset & 3);
	case 2:
		return avail + 4 + 2 * r->ring.size + (offset & 1); /* used_event */
	case 3:
		return used + 4 + 8 * r->ring.size + (offset & 1); /* avail_event */
	case 4:
		return entry + (offset & 1);
	case 5:
		return used + 4 + 8 * (r->back & mask) + (offset & 7);
	case 6:
		return 16 * ((uint32_t)peek(r->block + entry, 2) & mask) + (offset & 15);
	default:
		return offset % r->layout.end;
	}
}

static void op_spoil(struct run *r)
{
	uint32_t where = fuzz_u8(&r->in), offset = fuzz_u16(&r->in), mask = fuzz_u8(&r->in);

	if (where & 0x40) /* in the first entries of the first tables */
		offset = (offset & 0x3f) + (offset >> 8) % 4 * 16 * MAX_SEGMENTS;
	if (where & 0x80)
		r->tables[offset % r->extent[1].len] ^= (uint8_t)mask;
	else
		r->block[pick_target(r, where & 7, offset)] ^= (uint8_t)mask;
	r->spoilt |= mask;
}

/* ---- starting over ---- */

static void place_ring(struct run *r, uint32_t size, uint64_t features, uint32_t flags)
{
	raw_big = flags & VQB_RING_BIG_ENDIAN;
	r->ring = (struct vqb_ring){ .size = size, .features = features, .flags = flags };
	r->ring_at = (struct vqb_ring_at){ .size = size, .features = features, .flags = flags };
	FUZZ_CHECK(vqb_ring_layout(size, 4, &r->layout) == VQB_OK);
	FUZZ_CHECK(vqb_ring_place(&r->ring, r->block, 4) == VQB_OK);
	FUZZ_CHECK(vqb_ring_place_at(&r->ring_at, RING_AT, 4) == VQB_OK);
}

static void fresh(struct run *r)
{
	r->spoilt = r->dev_asleep = r->drv_asleep = false;
	r->added = r->back = r->exposed = r->taken = r->put = r->put_exposed = r->again = 0;
	r->first = r->requests;
	memset(r->held, 0, sizeof(r->held));
}

/* What is out on either end comes back, once, or is known to be stale. */
static void stop(struct run *r)
{
	struct held *held;
	void *token[BATCH];
	int32_t status;
	uint32_t n;

	FUZZ_CHECK(vqb_device_reset(r->dev, NULL) == VQB_OK);
	while ((held = nth_held(r, 0))) {
		FUZZ_CHECK(vqb_device_put(r->dev, held->ticket, 0) == VQB_E_STALE);
		held->out = false;
	}
	FUZZ_CHECK(vqb_driver_reset(r->drv, NULL) == VQB_OK);
	do {
		status = vqb_driver_detach(r->drv, token, BATCH, &n);
		FUZZ_CHECK(n <= BATCH && (!status || n == BATCH));
		for (uint32_t i = 0; i < n; i++) {
			struct request *q = (struct request *)token[i];

			FUZZ_CHECK(q >= r->request + r->first && q < r->request + r->requests);
			FUZZ_CHECK(q->fate != REQUEST_NONE && q->fate != REQUEST_BACK);
			q->fate = REQUEST_BACK;
		}
	} while (status == VQB_E_NOSPC);
	FUZZ_CHECK(status == VQB_OK);
	for (uint32_t i = 0; i < r->requests; i++)
		FUZZ_CHECK(r->request[i].fate == REQUEST_BACK);
	FUZZ_CHECK(!vqb_driver_in_flight(r->drv) && !vqb_device_in_flight(r->dev));
}

static void op_restart(struct run *r)
{
	uint32_t size = fuzz_ring_size(&r->in);
	uint64_t features = fuzz_features(&r->in);

	stop(r);
	place_ring(r, size < r->max_size ? size : r->max_size, features,
		   fuzz_ring_flags(raw_big != 0, features));
	FUZZ_CHECK(vqb_driver_reset(r->drv, &r->ring) == VQB_OK);
	FUZZ_CHECK(vqb_device_reset(r->dev, &r->ring_at) == VQB_OK);
	fresh(r);
}

/* ---- what can be asked at any time ---- */

static void check_all(struct run *r)
{
	uint32_t out = 0;

	for (uint32_t i = 0; i < MAX_SIZE; i++)
		out += r->held[i].out;
	if (!r->spoilt)
		FUZZ_CHECK(vqb_device_in_flight(r->dev) == r->taken - showable(r));
	else if (in_order(r)) /* and what is held back */
		FUZZ_CHECK(vqb_device_in_flight(r->dev) >= out);
	else
		FUZZ_CHECK(vqb_device_in_flight(r->dev) == out);
	FUZZ_CHECK(vqb_driver_in_flight(r->drv) == r->added - r->back);
	FUZZ_CHECK(vqb_driver_free(r->drv) <= r->ring.size);
	FUZZ_CHECK(vqb_driver_free(r->drv) + (r->added - r->back) <= r->ring.size);
	if (r->added == r->back)
		FUZZ_CHECK(vqb_driver_free(r->drv) == r->ring.size);
	if (r->spoilt)
		return;
	FUZZ_CHECK(!vqb_driver_state(r->drv) && !vqb_device_state(r->dev, NULL));
	FUZZ_CHECK(vqb_driver_pending(r->drv) == r->put_exposed - r->back);
	FUZZ_CHECK(vqb_device_pending(r->dev) == r->exposed - r->taken);
}

static void operate(struct run *r)
{
	static void (*const op[16])(struct run *) = {
		op_add,        op_driver_publish, op_take,   op_put,  op_device_publish, op_reap,
		op_driver_arm, op_device_arm,     op_untake, op_move, op_restart,        op_spoil,
		op_add,        op_take,           op_put,    op_reap,
	};

	op[fuzz_op(&r->in, r->lists, &r->times)](r);
}

/* ---- a run ---- */

static void make_memory(struct run *r)
{
	size_t table_bytes = VQB_TABLES_BYTES(TABLES, MAX_SEGMENTS);
	struct vqb_layout most;

	FUZZ_CHECK(vqb_ring_layout(r->max_size, 4, &most) == VQB_OK);
	r->block = (uint8_t *)fuzz_alloc(most.end);
	r->tables = (uint8_t *)fuzz_alloc(table_bytes);
	r->data[0] = (uint8_t *)fuzz_alloc(DATA_BYTES);
	r->data[1] = (uint8_t *)fuzz_alloc(DATA_BYTES);
	r->extent[0] = (struct vqb_extent){ RING_AT, most.end, r->block, BOTH, 0 };
	r->extent[1] = (struct vqb_extent){ TABLES_AT, table_bytes, r->tables, VQB_READ, 0 };
	r->extent[2] = (struct vqb_extent){ DATA_AT, DATA_BYTES, r->data[0], BOTH, 0 };
	r->extent[3] = (struct vqb_extent){ DATA_AT + DATA_BYTES, DATA_BYTES, r->data[1], BOTH, 0 };
	r->memory = (struct vqb_memory){
		.struct_size = sizeof(r->memory), .generation = 1, .count = 4, .sorted = r->extent
	};
}

static void free_memory(struct run *r)
{
	free(r->block);
	free(r->tables);
	free(r->data[0]);
	free(r->data[1]);
	free(r->area);
	free(r->drv_object);
	free(r->dev_object);
}

static void start(struct run *r, struct fuzz_input config)
{
	struct vqb_driver_config drv = { .struct_size = sizeof(drv) };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &r->memory };
	uint64_t features;
	uint32_t how;
	size_t bytes;

	r->in = config;
	how = fuzz_u8(&r->in);
	r->lists = how & 0x80;
	r->max_size = fuzz_ring_size(&r->in);
	make_memory(r);
	features = fuzz_features(&r->in);
	place_ring(r, r->max_size, features, fuzz_ring_flags(how & 0x10, features));
	drv.ring = r->ring;
	drv.max_table = MAX_SEGMENTS;
	drv.tables = (struct vqb_dma){ r->tables, TABLES_AT, (size_t)r->extent[1].len };
	if (how & 1)
		drv.tables.bytes = 0;
	if (how & 4)
		drv.cache = &fuzz_cache;
	if (how & 8)
		dev.cache = &fuzz_cache;
	/* A table may be longer than the ring is, as far as the device is concerned. */
	dev.max_chain = how & 2 ? MAX_SIZE : 0;
	dev.ring = r->ring_at;
	if (how & 0x20) {
		dev.tracking.bytes = VQB_TRACKING_BYTES(r->max_size);
		dev.tracking.host = r->area = (uint8_t *)fuzz_alloc(dev.tracking.bytes);
	}
	r->dev_config = dev;
	bytes = vqb_driver_size(&drv);
	r->drv_object = fuzz_object(bytes);
	FUZZ_CHECK(vqb_driver_init(r->drv_object, bytes, &drv, &r->drv) == VQB_OK);
	make_device(r);
	fresh(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	struct run *r = &run;
	struct fuzz_input in = { data, data + size };

	memset(r, 0, offsetof(struct run, request));
	start(r, fuzz_cut(&in, CONFIG));
	r->in = in;
	while (fuzz_more(&r->in)) {
		operate(r);
		check_all(r);
	}
	stop(r);
	free_memory(r);
	return 0;
}
