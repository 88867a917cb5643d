/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take.c: a device over whatever guest memory, and a model of what it has to do, in lockstep.
 *
 * The input is a configuration, guest memory to begin with, and operations: the driver's, which
 * write guest memory, and the device's, which are calls of the library. After each of them all that
 * can be asked is compared with the model, and guest memory with a copy into which only what the
 * driver wrote and what the device may write has gone.
 */
#include <vqblk/device.h>

#include "chain.h"

enum {
	CONFIG = 32,
	MAX_SIZE = 256,
	MAX_TICKETS = 1024,     /* then the run ends */
	MAX_WORK = 1000 * 1000, /* look-ups by the model */
	MAX_TAKE = 40,
};

#define RING_AT UINT64_C(0x10000)

/* In order: what became of a chain that the driver does not see yet. */
enum fate {
	FATE_NONE, /* out, or the driver's */
	FATE_BAD,  /* out, and a bad one */
	FATE_FULL, /* put, written to its last byte */
	FATE_PUT,  /* put otherwise */
};

struct lent {
	bool out;
	enum fate fate;
	uint32_t written;
	struct vqb_ticket ticket;
	uint64_t writable;
	uint32_t generation;
};

/* What the device has to be like. Indices run freely; 16 bits of them are in memory. */
struct model {
	int32_t state;
	struct vqb_ring_at ring;
	struct guest_place desc, avail, used;
	struct chain_rules rules;
	bool event_idx, in_order, owed;
	uint32_t next, exposed, decided, cursor, seen;
	struct vqb_ticket order[MAX_SIZE];
	struct lent lent[MAX_SIZE];
	struct vqb_device_counters count;
};

struct run {
	struct fuzz_input in;
	bool lists;     /* by the configuration */
	uint32_t times; /* of this operation, by a list; 0: by itself */
	struct guest guest;
	struct vqb_device_config config;
	uint32_t max_size;
	struct vqb_device *dev;
	void *object;
	struct model m;
	struct chain chain;
	struct vqb_ticket ticket[MAX_TICKETS]; /* all that were ever given */
	uint32_t tickets;
	uint32_t offered; /* the driver's index */
	uint32_t steps;
	struct vqb_device_saved saved;
};

/* ---- the model: where it stands ---- */

static void model_let_go(struct model *m)
{
	m->state = VQB_E_INVALID;
	m->next = m->exposed = m->decided = m->cursor = m->seen = 0;
	for (uint32_t i = 0; i < MAX_SIZE; i++)
		m->lent[i] = (struct lent){ 0 };
}

/* Finds the parts of a ring. Those of the model are changed only if all are found. */
static int32_t model_resolve(struct run *r, const struct vqb_ring_at *ring)
{
	struct guest *g = &r->guest;
	struct model *m = &r->m;
	struct guest_place desc = guest_stretch(g, ring->desc, 16 * ring->size, VQB_READ);
	struct guest_place avail = guest_stretch(g, ring->avail, 6 + 2 * ring->size, VQB_READ);
	struct guest_place used = guest_stretch(g, ring->used, 6 + 8 * ring->size, VQB_WRITE);

	if (!desc.avail || !avail.avail || !used.avail)
		return VQB_E_FAULT;
	if ((uintptr_t)desc.host % 8 || (uintptr_t)avail.host % 2 || (uintptr_t)used.host % 4)
		return VQB_E_INVALID;
	m->desc = desc;
	m->avail = avail;
	m->used = used;
	m->rules.desc = desc.host;
	return VQB_OK;
}

static bool ring_wrong(const struct run *r, const struct vqb_ring_at *ring)
{
	return ring->size > r->max_size || ring->flags & ~(uint32_t)VQB_RING_BIG_ENDIAN ||
	       (ring->flags && ring->features & VQB_FEATURE(VQB_F_VERSION_1)) || ring->zero ||
	       ring->desc % 16 || ring->avail % 2 || ring->used % 4;
}

static int32_t model_start(struct run *r, const struct vqb_ring_at *ring, uint16_t idx)
{
	struct model *m = &r->m;
	int32_t status;

	model_let_go(m);
	if (!ring)
		return VQB_OK;
	if (ring_wrong(r, ring))
		return VQB_E_INVALID;
	status = model_resolve(r, ring);
	if (status)
		return status;
	m->ring = *ring;
	raw_big = ring->flags & VQB_RING_BIG_ENDIAN;
	m->in_order = ring->features & VQB_FEATURE(VQB_F_IN_ORDER);
	m->rules.size = ring->size;
	m->rules.limit = r->config.max_chain ? r->config.max_chain : ring->size;
	m->rules.max_pieces = r->config.max_pieces ? r->config.max_pieces : UINT32_MAX;
	m->rules.indirect = ring->features & VQB_FEATURE(VQB_F_INDIRECT_DESC);
	m->event_idx = ring->features & VQB_FEATURE(VQB_F_EVENT_IDX);
	m->next = m->exposed = m->decided = m->cursor = m->seen = idx;
	m->owed = true;
	m->state = VQB_OK;
	return VQB_OK;
}

static uint32_t model_ahead(const struct model *m)
{
	return (peek(m->avail.host + 2, 2) - m->cursor) & 0xffff;
}

static struct vqb_ticket *model_order(struct model *m, uint32_t position)
{
	return &m->order[position & (m->ring.size - 1)];
}

/* ---- the model: what is written into the used ring ---- */

static void model_store(struct model *m, uint32_t offset, uint64_t v, unsigned bytes)
{
	poke(m->used.copy + offset, v, bytes);
}

static void model_used(struct model *m, uint32_t position, uint32_t head, uint32_t written)
{
	uint32_t at = 4 + 8 * (position & (m->ring.size - 1));

	model_store(m, at, head, 4);
	model_store(m, at + 4, written, 4);
}

static struct lent *model_taken(struct model *m, uint32_t position)
{
	return &m->lent[model_order(m, position)->head];
}

static void model_put(struct model *m, uint32_t head, uint32_t written)
{
	struct lent *lent = &m->lent[head];
	bool full = lent->fate != FATE_BAD && written == lent->writable;

	lent->out = false;
	if (!m->in_order) {
		model_used(m, m->next++, head, written);
		m->count.completions++;
		return;
	}
	lent->fate = full ? FATE_FULL : FATE_PUT;
	lent->written = written;
	while (m->next != m->cursor && model_taken(m, m->next)->fate >= FATE_FULL) {
		m->next++;
		m->count.completions++;
	}
}

/* One entry for chains that are written in full and the one behind them, where the first lies. */
static void model_batches(struct model *m)
{
	uint32_t first = m->exposed;

	for (uint32_t i = m->exposed; i != m->next; i++) {
		struct lent *lent = model_taken(m, i);

		if (lent->fate != FATE_FULL || i + 1 == m->next) {
			model_used(m, first, model_order(m, i)->head, lent->written);
			first = i + 1;
		}
		lent->fate = FATE_NONE;
	}
}

static void model_expose(struct model *m)
{
	if (m->exposed == m->next)
		return;
	if (m->in_order)
		model_batches(m);
	model_store(m, 2, m->next, 2);
	m->exposed = m->next;
	m->owed |= m->exposed - m->decided >= 65535;
}

/* The device may say that it wants to be notified in one word, and leave the other alone. */
static void model_allow_wish(struct model *m)
{
	uint32_t at = m->event_idx ? 4 + 8 * m->ring.size : 0;

	memcpy(m->used.copy + at, m->used.host + at, 2);
}

static uint32_t model_decide(struct model *m)
{
	uint32_t fresh = m->exposed - m->decided, event, past;
	bool due = m->owed;

	if (!fresh && !m->owed)
		return VQB_QUIET;
	if (m->event_idx) {
		event = (uint32_t)peek(m->avail.host + 4 + 2 * (size_t)m->ring.size, 2);
		past = (m->exposed - 1 - event) & 0xffff;
		due |= past < (fresh & 0xffff);
	} else {
		due = !(peek(m->avail.host, 2) & 1);
	}
	m->decided = m->exposed;
	m->owed = false;
	m->count.notified += due;
	m->count.suppressed += !due && fresh;
	return due ? VQB_NOTIFY : VQB_QUIET;
}

/* ---- the model: taking ---- */

static int32_t model_look(struct model *m)
{
	if (m->seen != m->cursor)
		return VQB_OK;
	if (model_ahead(m) > m->ring.size)
		return m->state = VQB_E_BROKEN;
	m->seen += model_ahead(m);
	return VQB_OK;
}

static int32_t model_head(struct model *m, uint32_t *head)
{
	*head = (uint32_t)peek(m->avail.host + 4 + 2 * (size_t)(m->cursor & (m->ring.size - 1)), 2);
	if (*head >= m->ring.size || m->lent[*head].out || m->lent[*head].fate)
		return m->state = VQB_E_BROKEN;
	return VQB_OK;
}

/* Notes a ticket, which names the head and was never given before. */
static void model_consume(struct run *r, uint32_t head, struct vqb_ticket ticket, uint64_t writable)
{
	struct model *m = &r->m;

	FUZZ_CHECK(ticket.head == head && !ticket.zero && ticket.seq);
	for (uint32_t i = 0; i < r->tickets; i++)
		FUZZ_CHECK(r->ticket[i].seq != ticket.seq);
	r->ticket[r->tickets++] = ticket;
	m->lent[head] = (struct lent){ .out = true,
				       .ticket = ticket,
				       .writable = writable,
				       .generation = r->guest.now->memory.generation };
	*model_order(m, m->cursor++) = ticket;
	m->count.chains++;
}

static void check_bad(struct run *r, const struct vqb_chain *chain, uint32_t head)
{
	FUZZ_CHECK(chain->status == VQB_E_BAD_CHAIN);
	FUZZ_CHECK(chain->reason.rule > VQB_RULE_NONE && chain->reason.rule < VQB_RULE_HEAD);
	FUZZ_CHECK(!chain->readable && !chain->writable);
	FUZZ_CHECK(!chain->read_bytes && !chain->write_bytes);
	model_consume(r, head, chain->ticket, 0);
	r->m.lent[head].fate = r->m.in_order ? FATE_BAD : FATE_NONE;
	r->m.count.bad_chains++;
}

static void check_good(struct run *r, const struct vqb_chain *chain, uint32_t head,
		       const struct vqb_piece *piece)
{
	const struct chain *c = &r->chain;

	FUZZ_CHECK(chain->status == VQB_OK);
	FUZZ_CHECK(chain->piece == piece);
	FUZZ_CHECK(chain->readable == c->readable);
	FUZZ_CHECK(chain->writable == c->pieces - c->readable);
	FUZZ_CHECK(chain->read_bytes == c->read_bytes);
	FUZZ_CHECK(chain->write_bytes == c->bytes - c->read_bytes);
	for (uint32_t i = 0; i < c->pieces; i++) {
		FUZZ_CHECK(piece[i].base == c->piece[i].base);
		FUZZ_CHECK(piece[i].len == c->piece[i].len);
	}
	model_consume(r, head, chain->ticket, chain->write_bytes);
}

/* The chain at the cursor: was it rightly taken, or rightly not taken? */
static int32_t check_chain(struct run *r, const struct vqb_chain *chain, bool taken,
			   const struct vqb_piece *piece, uint32_t room,
			   const struct vqb_need *need)
{
	struct chain *c = &r->chain;
	uint32_t head;
	int32_t status = model_head(&r->m, &head);

	if (status)
		return status;
	chain_walk(c, &r->m.rules, &r->guest, head, room);
	/* Where there is more than one thing wrong, what is found first may differ. */
	if (c->over && taken)
		c->status = VQB_E_BAD_CHAIN;
	if (c->status == VQB_E_NOSPC)
		FUZZ_CHECK(need->pieces == c->pieces);
	if (c->status == VQB_E_FAULT)
		FUZZ_CHECK(need->addr == c->fault_addr && need->access == c->fault_access);
	r->m.count.faults += c->status == VQB_E_FAULT;
	if (c->status == VQB_E_NOSPC || c->status == VQB_E_FAULT)
		return c->status;
	FUZZ_CHECK(taken);
	if (c->status) {
		c->pieces = 0;
		check_bad(r, chain, head);
	} else {
		check_good(r, chain, head, piece);
	}
	return VQB_OK;
}

struct taking {
	struct vqb_chain *chain;
	struct vqb_piece *piece;
	uint32_t max, room, taken;
	struct vqb_need need;
	int32_t status;
};

static void check_take(struct run *r, const struct taking *t)
{
	struct model *m = &r->m;
	uint32_t n = 0, used = 0, most;
	int32_t status = m->state == VQB_E_INVALID ? VQB_OK : m->state;

	if (!m->state) {
		status = model_look(m);
		most = m->seen - m->cursor;
		most = most < t->max ? most : t->max;
		while (!status && n < most) {
			status = check_chain(r, &t->chain[n], n < t->taken, &t->piece[used],
					     t->room - used, &t->need);
			if (status)
				break;
			used += r->chain.pieces;
			n++;
		}
	}
	FUZZ_CHECK(t->status == status);
	FUZZ_CHECK(t->taken == n);
}

static uint64_t descriptors_read(const struct run *r)
{
	struct vqb_device_counters count;

	vqb_device_read_counters(r->dev, &count);
	return count.descriptors;
}

/* ---- operations of the device ---- */

/* The device writes to what it has taken, and says so. */
static void work(struct run *r, const struct vqb_chain *chain, uint64_t written)
{
	const struct vqb_piece *piece = chain->piece + chain->readable;
	uint64_t left = written;

	for (uint32_t i = 0; i < chain->writable && left; i++) {
		uint64_t n = piece[i].len < left ? piece[i].len : left;

		guest_work(&r->guest, (uint8_t *)piece[i].base);
		if (n > 1)
			guest_work(&r->guest, (uint8_t *)piece[i].base + (size_t)n - 1);
		left -= n;
	}
	vqb_device_log(r->dev, piece, chain->writable, written);
}

static void op_take(struct run *r)
{
	struct taking t = { .max = fuzz_below(&r->in, MAX_TAKE), .room = fuzz_u8(&r->in) };
	uint64_t before = descriptors_read(r), walked, most;

	t.chain = (struct vqb_chain *)fuzz_alloc(t.max * sizeof(*t.chain));
	t.piece = (struct vqb_piece *)fuzz_alloc(t.room * sizeof(*t.piece));
	t.status = vqb_device_take(r->dev, t.chain, t.max, t.piece, t.room, &t.taken, &t.need);
	FUZZ_CHECK(t.taken <= t.max);
	walked = t.taken + (t.status ? 1u : 0u);
	most = walked * ((uint64_t)r->m.rules.limit + r->m.rules.size);
	FUZZ_CHECK(descriptors_read(r) - before <= most);
	check_take(r, &t);
	for (uint32_t i = 0; i < t.taken && vqb_device_logs(r->dev); i++) {
		uint64_t n = fuzz_count(&r->in);

		if (!t.chain[i].status)
			work(r, &t.chain[i],
			     n < t.chain[i].write_bytes ? n : t.chain[i].write_bytes);
	}
	free(t.chain);
	free(t.piece);
}

static void op_reject(struct run *r)
{
	struct vqb_chain chain;
	int32_t status = vqb_device_reject(r->dev, &chain), wanted = r->m.state;
	uint32_t head;

	if (!wanted)
		wanted = r->m.cursor == r->m.seen ? VQB_E_INVALID : model_head(&r->m, &head);
	FUZZ_CHECK(status == wanted);
	if (status)
		return;
	FUZZ_CHECK(chain.reason.rule == VQB_RULE_REJECTED);
	check_bad(r, &chain, head);
}

/* One of the tickets that were ever given, or one that never was. */
static struct vqb_ticket pick_ticket(struct run *r)
{
	uint32_t back = fuzz_u8(&r->in);
	struct vqb_ticket wild = { 0 };

	if (back < r->tickets && back != 0xff)
		return r->ticket[r->tickets - 1 - back];
	wild.head = fuzz_u16(&r->in);
	wild.seq = fuzz_u8(&r->in);
	return wild;
}

static struct lent *model_lent(struct run *r, struct vqb_ticket ticket)
{
	struct lent *lent = ticket.head < MAX_SIZE ? &r->m.lent[ticket.head] : NULL;

	return lent && lent->out && lent->ticket.seq == ticket.seq ? lent : NULL;
}

/* What the model makes of a put, after the library. */
static int32_t was_put(struct run *r, struct vqb_ticket ticket, uint32_t written)
{
	const struct lent *lent = model_lent(r, ticket);

	if (!lent) {
		r->m.count.stale++;
		return VQB_E_STALE;
	}
	if (written > lent->writable)
		return VQB_E_INVALID;
	model_put(&r->m, ticket.head, written);
	return VQB_OK;
}

static uint32_t pick_written(struct run *r, const struct lent *lent)
{
	uint32_t how = fuzz_u8(&r->in), capacity = 0;

	if (lent)
		capacity = lent->writable > UINT32_MAX ? UINT32_MAX : (uint32_t)lent->writable;
	if (how < 64)
		return capacity ? how % capacity : 0;
	if (how < 128)
		return capacity;
	return how < 192 ? capacity + 1 : fuzz_u32(&r->in);
}

static struct vqb_completion pick_completion(struct run *r)
{
	struct vqb_ticket ticket = pick_ticket(r);
	const struct lent *lent = model_lent(r, ticket);

	FUZZ_CHECK(vqb_device_holds(r->dev, ticket) == (lent ? VQB_OK : VQB_E_STALE));
	return (struct vqb_completion){ ticket, pick_written(r, lent) };
}

static void put_list(struct run *r)
{
	struct vqb_completion list[7];
	uint32_t n, put;

	for (n = 0; n < r->times; n++)
		list[n] = pick_completion(r);
	put = vqb_device_put_list(r->dev, list, n);
	FUZZ_CHECK(put <= n);
	for (uint32_t i = 0; i < n && i <= put; i++)
		FUZZ_CHECK((was_put(r, list[i].ticket, list[i].written) == VQB_OK) == (i < put));
}

static void put(struct run *r, struct vqb_ticket ticket, uint32_t written)
{
	int32_t status = vqb_device_put(r->dev, ticket, written);

	FUZZ_CHECK(status == was_put(r, ticket, written));
}

static void op_put(struct run *r)
{
	struct vqb_completion done;

	if (r->times) {
		put_list(r);
		return;
	}
	done = pick_completion(r);
	put(r, done.ticket, done.written);
}

static void op_untake(struct run *r)
{
	struct vqb_ticket ticket = pick_ticket(r);
	struct lent *lent = model_lent(r, ticket);
	int32_t wanted = VQB_E_STALE;

	if (lent)
		wanted = model_order(&r->m, r->m.cursor - 1)->seq == ticket.seq ? VQB_OK
										: VQB_E_INVALID;
	FUZZ_CHECK(vqb_device_untake(r->dev, ticket) == wanted);
	if (wanted)
		return;
	*lent = (struct lent){ 0 };
	r->m.cursor--;
	r->m.count.untaken++;
}

static void op_publish(struct run *r)
{
	struct model *m = &r->m;
	uint32_t answer = vqb_device_publish(r->dev), wanted = VQB_QUIET;

	if (m->state != VQB_E_INVALID) {
		model_expose(m);
		wanted = model_decide(m);
	}
	FUZZ_CHECK(answer == wanted);
}

static void op_turn(struct run *r)
{
	struct model *m = &r->m;
	uint32_t answer, wanted;

	if (m->state) {
		op_publish(r);
		return;
	}
	answer = vqb_device_turn(r->dev);
	model_expose(m);
	model_allow_wish(m);
	wanted = model_decide(m) | (model_ahead(m) ? VQB_MORE : 0);
	FUZZ_CHECK(answer == wanted);
}

static void op_notify(struct run *r)
{
	struct model *m = &r->m;

	switch (fuzz_u8(&r->in) % 5) {
	case 0:
		op_publish(r);
		break;
	case 1:
		op_turn(r);
		break;
	case 2:
		vqb_device_expose(r->dev);
		if (m->state != VQB_E_INVALID)
			model_expose(m);
		break;
	case 3:
		if (vqb_device_arm(r->dev))
			FUZZ_CHECK(!m->state && model_ahead(m));
		else
			FUZZ_CHECK(m->state || !model_ahead(m));
		if (!m->state)
			model_allow_wish(m);
		break;
	default:
		vqb_device_disarm(r->dev);
		if (!m->state)
			model_allow_wish(m);
		break;
	}
}

/* ---- starting over ---- */

/* Entries that the driver was not shown yet are not logged, and never will be if it isn't. */
static void forgive(struct run *r)
{
	const struct model *m = &r->m;

	for (uint32_t i = m->exposed; i != m->next && m->state != VQB_E_INVALID; i++) {
		uint32_t at = 4 + 8 * (i & (m->ring.size - 1));

		memcpy(m->used.sent + at, m->used.host + at, 8);
	}
}

/* Has all else been logged after it was written? */
static bool logged(struct run *r)
{
	const struct model *m = &r->m;
	uint8_t sent[VQB_USED_BYTES(MAX_SIZE)];
	size_t bytes = m->state == VQB_E_INVALID ? 0 : VQB_USED_BYTES(m->ring.size);
	bool all;

	if (bytes)
		memcpy(sent, m->used.sent, bytes);
	forgive(r);
	all = guest_all_sent(&r->guest);
	if (bytes)
		memcpy(m->used.sent, sent, bytes);
	return all;
}

static uint64_t pick_part(struct run *r, uint64_t otherwise)
{
	uint64_t addr = guest_pick(&r->in);

	/* There is no memory behind it, so a used ring there could not be written. */
	return addr - GUEST_WIDE_AT < GUEST_WIDE_LEN ? otherwise : addr;
}

static struct vqb_ring_at pick_ring(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in);
	struct vqb_ring_at ring = { .size = fuzz_ring_size(&r->in) };

	ring.features = fuzz_features(&r->in);
	ring.desc = RING_AT;
	ring.avail = ring.desc + 16 * (uint64_t)ring.size;
	ring.used = (ring.avail + 6 + 2 * (uint64_t)ring.size + 3) & ~UINT64_C(3);
	if (how & 1)
		ring.desc = pick_part(r, ring.desc);
	if (how & 2)
		ring.avail = pick_part(r, ring.avail);
	if (how & 4)
		ring.used = pick_part(r, ring.used);
	if (!(how & 8)) {
		ring.desc &= ~UINT64_C(15);
		ring.avail &= ~UINT64_C(1);
		ring.used &= ~UINT64_C(3);
	}
	ring.flags = (how & 0xf0) == 0x10 ? 0x80 : 0;
	if ((how & 0xc0) == 0xc0)
		ring.flags =
			how & 0x20 ? VQB_RING_BIG_ENDIAN : fuzz_ring_flags(true, ring.features);
	ring.zero = (how & 0xf0) == 0x20;
	return ring;
}

static void op_reset(struct run *r)
{
	struct vqb_ring_at ring = r->m.ring;
	bool none = false;
	int32_t status;

	switch (fuzz_u8(&r->in) % 4) {
	case 0:
		none = true;
		break;
	case 1:
		ring = pick_ring(r);
		break;
	default:
		break;
	}
	none |= !ring.size;
	forgive(r);
	status = vqb_device_reset(r->dev, none ? NULL : &ring);
	FUZZ_CHECK(status == model_start(r, none ? NULL : &ring, 0));
	r->offered = 0;
}

static void op_save(struct run *r)
{
	const struct model *m = &r->m;
	int32_t wanted = m->state;

	if (!wanted && (m->cursor != m->next || m->exposed != m->next))
		wanted = VQB_E_BUSY;
	FUZZ_CHECK(vqb_device_save(r->dev, &r->saved) == wanted);
	if (wanted)
		return;
	FUZZ_CHECK(r->saved.avail == (m->cursor & 0xffff));
	FUZZ_CHECK(r->saved.used == (m->next & 0xffff));
}

static void op_restore(struct run *r)
{
	struct vqb_device_saved saved = r->saved;
	uint32_t how = fuzz_u8(&r->in);
	struct vqb_ring_at ring = r->m.ring;
	int32_t wanted;

	if (how & 1) {
		saved.used = fuzz_u16(&r->in);
		saved.avail = (uint16_t)(saved.used + fuzz_count(&r->in));
	}
	if (how & 2)
		ring = pick_ring(r);
	if (!ring.size)
		return;
	forgive(r);
	if ((uint16_t)(saved.avail - saved.used) > ring.size) {
		model_let_go(&r->m);
		wanted = VQB_E_INVALID;
	} else {
		wanted = model_start(r, &ring, saved.used);
	}
	FUZZ_CHECK(vqb_device_restore(r->dev, &ring, &saved) == wanted);
	r->offered = saved.used;
}

static void op_set_memory(struct run *r)
{
	struct guest *g = &r->guest;
	const struct guest_view *old = g->now, *view;
	uint32_t how = fuzz_u8(&r->in);
	enum guest_map kind = (enum guest_map)(how % GUEST_MAPS);
	int32_t wanted = VQB_OK;

	view = guest_view(g, kind, how & 0x40, old->memory.generation + 1);
	forgive(r);
	g->now = view;
	if (kind == GUEST_MAP_WRONG)
		wanted = VQB_E_INVALID;
	else if (r->m.state != VQB_E_INVALID)
		wanted = model_resolve(r, &r->m.ring);
	FUZZ_CHECK(vqb_device_set_memory(r->dev, &view->memory) == wanted);
	if (wanted)
		g->now = old;
	else if (!old->memory.log)
		guest_send_all(g);
}

/* ---- operations of the driver ---- */

/* One descriptor, in the ring's table or wherever a table might be. */
static void op_desc(struct run *r)
{
	uint32_t i = fuzz_u8(&r->in), flags = fuzz_u8(&r->in);
	uint64_t table = flags & 0x80 ? guest_pick(&r->in) : r->m.ring.desc;
	uint64_t addr = guest_pick(&r->in);
	uint32_t len = fuzz_len(&r->in);
	uint32_t next = flags & 0x40 ? fuzz_u16(&r->in) : i + 1;

	guest_desc(&r->guest, table, i, addr, len, flags & 0x3f, next);
}

static void offer(struct run *r, uint32_t head)
{
	const struct vqb_ring_at *ring = &r->m.ring;
	uint32_t slot = ring->size ? r->offered & (ring->size - 1) : 0;

	guest_poke(&r->guest, ring->avail + 4 + 2 * (uint64_t)slot, head, 2);
	guest_poke(&r->guest, ring->avail + 2, ++r->offered, 2);
}

/* Writes one of a chain's `n` descriptors anew, linked as it was but with any other flags. */
static void spoil(struct run *r, uint64_t table, uint32_t first, uint32_t n)
{
	uint32_t at = first + fuzz_below(&r->in, n), flags = fuzz_u8(&r->in) & 0x0f;
	uint64_t addr = flags & 8 ? table : guest_pick(&r->in);

	guest_desc(&r->guest, table, at, addr, fuzz_len(&r->in), flags, at + 1);
}

/* Descriptors that follow each other, in a table or not, offered: a chain as drivers make them. */
static void op_chain(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), head = fuzz_u8(&r->in), n = 1 + fuzz_below(&r->in, 40);
	uint32_t from = fuzz_u8(&r->in) % (n + 1), len = fuzz_len(&r->in), size = r->m.ring.size;
	uint64_t addr = guest_pick(&r->in), table = r->m.ring.desc;
	uint32_t first = head;

	if (how & 1) {
		table = guest_pick(&r->in) & ~UINT64_C(7);
		guest_desc(&r->guest, r->m.ring.desc, head, table, 16 * n, RAW_INDIRECT, 0);
		first = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = first + i, next = at + 1;

		if (!(how & 1) && size) {
			at &= size - 1;
			next &= size - 1;
		}
		guest_desc(&r->guest, table, at, how & 2 ? addr + i * (uint64_t)len : addr, len,
			   (i + 1 < n ? RAW_NEXT : 0u) | (i >= from ? RAW_WRITE : 0u), next);
	}
	if (how & 8)
		spoil(r, table, first, n);
	offer(r, size && !(how & 4) ? head & (size - 1) : head);
}

static void op_poke(struct run *r)
{
	uint64_t addr = guest_pick(&r->in);
	uint32_t n = 1 + fuzz_below(&r->in, 16);

	while (n--) {
		uint8_t byte = fuzz_u8(&r->in);

		guest_write(&r->guest, addr++, &byte, 1);
	}
}

/* The words of the driver's ring besides its entries. */
static void op_words(struct run *r)
{
	const struct vqb_ring_at *ring = &r->m.ring;
	uint32_t which = fuzz_u8(&r->in) % 4, value = fuzz_u16(&r->in);

	switch (which) {
	case 0:
		guest_poke(&r->guest, ring->avail, value & 3, 2);
		break;
	case 1:
		guest_poke(&r->guest, ring->avail + 2, value, 2);
		break;
	case 2: /* used_event, about where it matters */
		value = r->m.next + (value & 0xff) - 0x80;
		guest_poke(&r->guest, ring->avail + 4 + 2 * (uint64_t)ring->size, value, 2);
		break;
	default:
		r->offered += (value & 0xff) - 0x80;
		guest_poke(&r->guest, ring->avail + 2, r->offered, 2);
		break;
	}
}

/* ---- what can be asked at any time ---- */

static void check_counters(struct run *r)
{
	const struct vqb_device_counters *want = &r->m.count;
	struct vqb_device_counters count;

	vqb_device_read_counters(r->dev, &count);
	FUZZ_CHECK(count.chains == want->chains);
	FUZZ_CHECK(count.untaken == want->untaken);
	FUZZ_CHECK(count.bad_chains == want->bad_chains);
	FUZZ_CHECK(count.indirect <= count.chains);
	FUZZ_CHECK(count.completions == want->completions);
	FUZZ_CHECK(count.stale == want->stale);
	FUZZ_CHECK(count.faults == want->faults);
	FUZZ_CHECK(count.notified == want->notified);
	FUZZ_CHECK(count.suppressed == want->suppressed);
}

static void check_all(struct run *r)
{
	const struct model *m = &r->m;
	uint32_t out = 0, oldest = r->guest.now->memory.generation, pending;
	struct vqb_reason why = { 0 };

	FUZZ_CHECK(guest_as_copied(&r->guest));
	FUZZ_CHECK(vqb_device_logs(r->dev) == (r->guest.now->memory.log ? 1 : 0));
	FUZZ_CHECK(!vqb_device_logs(r->dev) || logged(r));
	for (uint32_t i = m->next; m->in_order && i != m->cursor; i++)
		out += !model_taken(&r->m, i)->out; /* put, and held back */
	for (uint32_t i = 0; i < MAX_SIZE; i++) {
		if (!m->lent[i].out)
			continue;
		out++;
		oldest = m->lent[i].generation < oldest ? m->lent[i].generation : oldest;
	}
	FUZZ_CHECK(vqb_device_in_flight(r->dev) == out);
	FUZZ_CHECK(m->cursor - m->next == out);
	if (r->steps++ % 8 == 0) /* it goes through all heads, which takes its time */
		FUZZ_CHECK(vqb_device_oldest_generation(r->dev) == oldest);
	FUZZ_CHECK(vqb_device_state(r->dev, &why) == m->state);
	FUZZ_CHECK((why.rule != VQB_RULE_NONE) == (m->state == VQB_E_BROKEN));
	pending = m->state ? 0 : model_ahead(m);
	FUZZ_CHECK(vqb_device_pending(r->dev) == (pending <= m->ring.size ? pending : 0));
	check_counters(r);
}

/* Whatever has happened: each ticket that is out can be put once, and no ticket twice. */
static void finish(struct run *r)
{
	for (uint32_t i = 0; i < r->tickets; i++) {
		put(r, r->ticket[i], 0);
		put(r, r->ticket[i], 0);
	}
	FUZZ_CHECK(!vqb_device_in_flight(r->dev));
	op_publish(r);
	check_all(r);
}

/* What can happen at any time, but seldom does. */
static void op_seldom(struct run *r)
{
	if (fuzz_u8(&r->in) % 8 == 7) {
		vqb_device_needs_reset(r->dev);
		r->m.state = r->m.state ? r->m.state : VQB_E_NEEDS_RESET;
	} else {
		vqb_device_clear_counters(r->dev);
		memset(&r->m.count, 0, sizeof(r->m.count));
	}
}

static void operate(struct run *r)
{
	static void (*const op[16])(struct run *) = {
		op_take,    op_put,    op_chain,  op_desc,  op_notify,     op_poke,
		op_words,   op_reject, op_untake, op_reset, op_set_memory, op_save,
		op_restore, op_seldom, op_take,   op_chain,
	};

	op[fuzz_op(&r->in, r->lists, &r->times)](r);
}

/* ---- a run ---- */

static int32_t start(struct run *r, struct fuzz_input config)
{
	uint32_t how, step;
	int32_t status, wanted = VQB_OK;
	size_t bytes;

	r->in = config;
	how = fuzz_u8(&r->in);
	r->lists = how & 0x80;
	step = fuzz_u8(&r->in);
	guest_make(&r->guest, step, fuzz_u8(&r->in));
	r->config = (struct vqb_device_config){ .struct_size = sizeof(r->config),
						.max_chain = fuzz_count(&r->in),
						.max_pieces = fuzz_count(&r->in) };
	if (how & 0x11)
		r->guest.now = guest_view(&r->guest, how & 1 ? GUEST_MAP_HOOKED : GUEST_MAP_ALL,
					  how & 0x10, 1);
	r->config.memory = &r->guest.now->memory;
	r->max_size = MAX_SIZE;
	r->m.ring = pick_ring(r);
	if (!(how & 2))
		r->config.ring = r->m.ring;
	if (how & 4 && r->config.ring.size)
		r->max_size = r->config.ring.size;
	else
		r->config.max_size = r->max_size;
	model_let_go(&r->m);
	if (r->config.ring.size)
		wanted = model_start(r, &r->config.ring, 0);
	if (how & 8)
		r->config.cache = &fuzz_cache;
	bytes = vqb_device_size(&r->config);
	FUZZ_CHECK(bytes <= VQB_DEVICE_BYTES(r->max_size));
	r->object = fuzz_object(bytes);
	status = vqb_device_init(r->object, bytes, &r->config, &r->dev);
	FUZZ_CHECK(status == wanted);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	struct run *r = &run;
	struct fuzz_input in = { data, data + size };

	memset(r, 0, offsetof(struct run, chain));
	raw_big = 0;
	r->tickets = r->offered = r->steps = 0;
	r->saved = (struct vqb_device_saved){ 0 };
	if (!start(r, fuzz_cut(&in, CONFIG))) {
		struct fuzz_input memory = fuzz_cut(&in, fuzz_u16(&in));

		guest_write(&r->guest, r->m.ring.desc, memory.at,
			    (uint32_t)(memory.end - memory.at));
		r->in = in;
		check_all(r);
		while (fuzz_more(&r->in) && r->guest.work < MAX_WORK &&
		       r->tickets < MAX_TICKETS - MAX_TAKE) {
			operate(r);
			check_all(r);
		}
		finish(r);
	}
	free(r->object);
	guest_free(&r->guest);
	return 0;
}
