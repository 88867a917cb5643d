/* SPDX-License-Identifier: BSD-3-Clause */
/* device_model.c: see device_model.h. */
#include <vqblk/port.h>

#include "device_model.h"

/* ---- memory ---- */

static bool extent_usable(const struct vqb_extent *e)
{
	bool inside = e->len && (e->addr == 0 || e->len <= UINT64_MAX - e->addr + 1);
	bool known = e->access == VQB_READ || e->access == VQB_WRITE ||
		     e->access == (VQB_READ | VQB_WRITE);

	return inside && known && e->host && !e->zero;
}

static bool overlap(const struct vqb_extent *a, const struct vqb_extent *b)
{
	return b->addr - a->addr < a->len || a->addr - b->addr < b->len;
}

static bool memory_usable(const struct vqb_memory *memory)
{
	if (!memory || memory->struct_size != sizeof(*memory) || memory->zero)
		return false;
	if (memory->count ? !memory->sorted : !memory->translate)
		return false;
	for (uint32_t i = 0; i < memory->count; i++) {
		if (!extent_usable(&memory->sorted[i]))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (memory->sorted[j].addr >= memory->sorted[i].addr ||
			    overlap(&memory->sorted[j], &memory->sorted[i]))
				return false;
	}
	return true;
}

static bool extent_has(const struct vqb_extent *e, uint64_t addr, uint32_t access)
{
	return addr >= e->addr && addr - e->addr < e->len && (e->access & access);
}

/* Where `addr` lies, or NULL; in *left how many bytes there are up to the end of its extent. */
static uint8_t *find(const struct vqb_memory *memory, uint64_t addr, uint32_t access,
		     uint64_t *left)
{
	struct vqb_extent e = { 0 };
	bool found = false;

	for (uint32_t i = 0; i < memory->count && !found; i++) {
		e = memory->sorted[i];
		found = extent_has(&e, addr, access);
	}
	if (!found && memory->translate)
		found = memory->translate(memory->context, addr, access, &e) == VQB_OK &&
			extent_usable(&e) && extent_has(&e, addr, access);
	*left = found ? e.len - (addr - e.addr) : 0;
	return found ? (uint8_t *)e.host + (size_t)(addr - e.addr) : NULL;
}

/* Is every byte of a part of the ring there, behind the one before it in the host, too? */
static bool in_one_stretch(const struct vqb_memory *memory, uint64_t addr, uint32_t len,
			   uint32_t access)
{
	uint64_t left;
	const uint8_t *first = find(memory, addr, access, &left);

	for (uint64_t i = 0; i < len; i += left) {
		if (addr + i < addr)
			return false;
		if (!first || find(memory, addr + i, access, &left) != first + i)
			return false;
	}
	return true;
}

static bool ring_mapped(const struct vqb_memory *memory, const struct vqb_ring_at *ring)
{
	return in_one_stretch(memory, ring->desc, 16 * ring->size, VQB_READ) &&
	       in_one_stretch(memory, ring->avail, 6 + 2 * ring->size, VQB_READ) &&
	       in_one_stretch(memory, ring->used, 6 + 8 * ring->size, VQB_WRITE);
}

/* ---- starting ---- */

static bool ring_valid(const struct device_model *m, const struct vqb_ring_at *ring)
{
	return model_size_valid(ring->size) && ring->size <= m->max_size &&
	       model_flags_valid(ring->flags, ring->features) && !ring->zero &&
	       model_features_valid(ring->features) && ring->desc % 16 == 0 &&
	       ring->avail % 2 == 0 && ring->used % 4 == 0;
}

static int32_t start(struct device_model *m, const struct vqb_ring_at *ring, uint16_t idx)
{
	m->state = VQB_E_INVALID;
	m->outs = m->finisheds = 0;
	m->again_from = m->again_to = 0;
	model_end_start(&m->end, 0);
	if (!ring)
		return VQB_OK;
	if (!ring_valid(m, ring))
		return VQB_E_INVALID;
	if (!ring_mapped(m->memory, ring))
		return VQB_E_FAULT;
	m->at = *ring;
	model_ring_as(&m->ring, ring->size, ring->flags, ring->features);
	model_end_start(&m->end, idx);
	m->state = VQB_OK;
	return VQB_OK;
}

/* Starts with nothing in flight; so says the area from here on. */
static int32_t start_afresh(struct device_model *m, const struct vqb_ring_at *ring, uint16_t idx)
{
	int32_t status = start(m, ring, idx);

	if (!status && ring && m->track.used) {
		m->track.live = true;
		m->track.size = ring->size;
		m->track.heads = 0;
	}
	return status;
}

/* Starts where the used ring ends, with what is in flight to be taken again. */
static int32_t start_again(struct device_model *m, const struct vqb_ring_at *ring)
{
	struct model_ring r = m->ring;
	int32_t status;

	model_ring_as(&r, ring->size, ring->flags, ring->features);
	status = start(m, ring, model_get16(&r, model_used_idx(&r)));
	if (!status && ring->size != m->track.size) {
		start(m, NULL, 0);
		status = VQB_E_INVALID;
	}
	if (status)
		return status;
	memcpy(m->again, m->track.head, sizeof(m->again));
	m->again_from = m->end.cursor;
	m->end.seen = m->again_to = m->again_from + m->track.heads;
	return VQB_OK;
}

/* For a configuration that the library took, with no tracking area or a new one. */
void device_model_init(struct device_model *m, const struct vqb_device_config *config)
{
	struct model_ring parts = m->ring;

	memset(m, 0, sizeof(*m));
	m->ring = parts;
	m->track.used = config->tracking.host;
	m->max_size = config->max_size ? config->max_size : config->ring.size;
	m->max_chain = config->max_chain;
	m->max_pieces = config->max_pieces;
	m->memory = config->memory;
	start_afresh(m, config->ring.size ? &config->ring : NULL, 0);
}

int32_t device_model_take_over(struct device_model *m, const struct vqb_device_config *config)
{
	m->memory = config->memory;
	m->seq = 0;
	memset(&m->count, 0, sizeof(m->count));
	m->end.notified = m->end.suppressed = 0;
	return start_again(m, &config->ring);
}

int32_t device_model_reset(struct device_model *m, const struct vqb_ring_at *ring)
{
	m->track.live = false;
	return start_afresh(m, ring, 0);
}

int32_t device_model_restore(struct device_model *m, const struct vqb_ring_at *ring,
			     const struct vqb_device_saved *saved)
{
	if (ring && m->track.live)
		return start_again(m, ring);
	if (ring && (uint16_t)(saved->avail - saved->used) > ring->size) {
		start(m, NULL, 0);
		return VQB_E_INVALID;
	}
	return start_afresh(m, ring, ring ? saved->used : 0);
}

int32_t device_model_save(const struct device_model *m, struct vqb_device_saved *saved)
{
	if (m->state)
		return m->state;
	if ((m->outs && !m->track.used) || m->end.next != m->end.exposed)
		return VQB_E_BUSY;
	saved->avail = (uint16_t)(m->track.used ? m->end.next + m->track.heads : m->end.cursor);
	saved->used = (uint16_t)m->end.next;
	return VQB_OK;
}

void device_model_needs_reset(struct device_model *m)
{
	if (m->state == VQB_OK)
		m->state = VQB_E_NEEDS_RESET;
}

int32_t device_model_set_memory(struct device_model *m, const struct vqb_memory *memory)
{
	if (!memory_usable(memory))
		return VQB_E_INVALID;
	if (m->state != VQB_E_INVALID && !ring_mapped(memory, &m->at))
		return VQB_E_FAULT;
	m->memory = memory;
	return VQB_OK;
}

uint32_t device_model_oldest_generation(const struct device_model *m)
{
	uint32_t now = m->memory->generation, oldest = now;

	for (uint32_t i = 0; i < m->outs; i++)
		if (!m->out[i].put && now - m->out[i].generation > now - oldest)
			oldest = m->out[i].generation;
	return oldest;
}

/* ---- walking a chain ---- */

struct walk {
	struct vqb_piece piece[MODEL_PIECES];
	uint32_t pieces, readable;
	uint64_t bytes, read_bytes;
	uint32_t reads, visited;
	bool table, over;
	uint32_t over_reads; /* when it was over */
	bool over_table;
	struct vqb_reason reason;
	struct vqb_need need;
};

/* A descriptor and where it was found. */
struct found {
	struct model_desc desc;
	uint32_t index;
};

static int32_t bad(struct walk *w, uint32_t rule, const struct found *f)
{
	w->reason = (struct vqb_reason){ rule, f->index, f->desc.addr };
	return VQB_E_BAD_CHAIN;
}

static int32_t fault(struct walk *w, uint64_t addr, uint32_t access)
{
	w->need = (struct vqb_need){ .access = access, .addr = addr };
	return VQB_E_FAULT;
}

/* Does the range have a byte beyond 2^64 - 1? */
static bool past_end(uint64_t addr, uint64_t len)
{
	return addr && len > UINT64_MAX - addr + 1;
}

static uint32_t chain_limit(const struct device_model *m)
{
	return m->max_chain ? m->max_chain : m->ring.size;
}

/* The buffer of a descriptor, cut where an extent ends. */
static int32_t walk_buffer(const struct device_model *m, struct walk *w, const struct found *f)
{
	uint32_t access = f->desc.flags & MODEL_WRITE ? VQB_WRITE : VQB_READ;
	uint64_t addr = f->desc.addr, len = f->desc.len, left;

	if (!len)
		return VQB_OK;
	if (past_end(addr, len))
		return bad(w, VQB_RULE_RANGE, f);
	w->bytes += len;
	if (w->bytes > UINT64_C(1) << 32 && !w->over) {
		w->over = true;
		w->over_reads = w->reads;
		w->over_table = w->table;
	}
	while (len) {
		uint8_t *host = find(m->memory, addr, access, &left);

		if (w->over && left < len)
			return bad(w, VQB_RULE_BYTES, f);
		if (!host)
			return fault(w, addr, access);
		if (w->pieces == (m->max_pieces ? m->max_pieces : UINT32_MAX))
			return bad(w, VQB_RULE_PIECES, f);
		left = left < len ? left : len;
		if (w->pieces < MODEL_PIECES)
			w->piece[w->pieces] = (struct vqb_piece){ host, (size_t)left };
		w->pieces++;
		addr += left;
		len -= left;
	}
	return VQB_OK;
}

/* The descriptor that refers to a table; all of the table must be there. */
static int32_t walk_table(const struct device_model *m, struct walk *w, const struct found *f,
			  uint8_t *copy)
{
	uint32_t len = f->desc.len;
	uint64_t left;

	if (w->table)
		return bad(w, VQB_RULE_NESTED, f);
	if (!m->ring.indirect)
		return bad(w, VQB_RULE_INDIRECT, f);
	if (f->desc.flags & MODEL_NEXT)
		return bad(w, VQB_RULE_BOTH, f);
	if (!len || len % 16 || len / 16 > chain_limit(m))
		return bad(w, VQB_RULE_TABLE, f);
	if (past_end(f->desc.addr, len))
		return bad(w, VQB_RULE_RANGE, f);
	w->table = true;
	for (uint32_t i = 0; i < len; i++) {
		const uint8_t *host = find(m->memory, f->desc.addr + i, VQB_READ, &left);

		if (!host)
			return fault(w, f->desc.addr + i, VQB_READ);
		copy[i] = *host;
	}
	return VQB_OK;
}

static int32_t walk(const struct device_model *m, struct walk *w, uint32_t head)
{
	static uint8_t copy[16 * 65536];
	const uint8_t *table = m->ring.desc;
	uint32_t count = m->ring.size, here = 0;
	struct found f = { .index = head };
	bool writes = false;
	int32_t status;

	for (;;) {
		f.desc = model_desc_get(&m->ring, table, f.index);
		w->reads++;
		if (f.desc.flags & MODEL_INDIRECT) {
			status = walk_table(m, w, &f, copy);
			if (status)
				return status;
			table = copy;
			count = f.desc.len / 16;
			here = 0;
			f.index = 0;
			continue;
		}
		if (writes && !(f.desc.flags & MODEL_WRITE))
			return bad(w, VQB_RULE_ORDER, &f);
		if (w->visited == chain_limit(m) || here == count)
			return bad(w, VQB_RULE_LOOP, &f);
		w->visited++;
		here++;
		writes = f.desc.flags & MODEL_WRITE;
		status = walk_buffer(m, w, &f);
		if (status)
			return status;
		if (!writes) {
			w->readable = w->pieces;
			w->read_bytes = w->bytes;
		}
		if (!(f.desc.flags & MODEL_NEXT))
			return w->over ? bad(w, VQB_RULE_BYTES, &f) : VQB_OK;
		if (f.desc.next >= count)
			return bad(w, VQB_RULE_NEXT, &f);
		f.index = f.desc.next;
	}
}

/* ---- taking ---- */

static int32_t break_ring(struct device_model *m, uint32_t rule, uint32_t index)
{
	m->why = (struct vqb_reason){ .rule = rule, .index = index };
	m->state = VQB_E_BROKEN;
	return VQB_E_BROKEN;
}

bool device_model_in_flight(const struct device_model *m, uint32_t head)
{
	for (uint32_t i = 0; i < m->outs; i++)
		if (m->out[i].ticket.head == head)
			return true;
	for (uint32_t i = 0; i < m->finisheds; i++)
		if (m->finished[i].ticket.head == head)
			return true;
	return false;
}

/* Did a predecessor take the chain at this position? */
static bool is_again(const struct device_model *m, uint64_t position)
{
	return position < m->again_to;
}

static int32_t next_head(struct device_model *m, uint32_t *head)
{
	*head = is_again(m, m->end.cursor)
			? m->again[m->end.cursor - m->again_from]
			: model_get16(&m->ring, model_avail_entry(&m->ring, m->end.cursor));
	if (*head >= m->ring.size)
		return break_ring(m, VQB_RULE_HEAD, *head);
	return device_model_in_flight(m, *head) ? break_ring(m, VQB_RULE_TWICE, *head) : VQB_OK;
}

static void track(struct device_model *m, uint32_t head)
{
	if (m->track.used)
		m->track.head[m->track.heads++] = (uint16_t)head;
}

static void untrack(struct device_model *m, uint32_t head)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->track.heads; i++)
		if (m->track.head[i] != head)
			m->track.head[n++] = m->track.head[i];
	m->track.heads = n;
}

static void consume(struct device_model *m, uint32_t head, struct vqb_chain *chain)
{
	if (!is_again(m, m->end.cursor))
		track(m, head);
	if (!++m->seq)
		m->seq = 1;
	chain->ticket = (struct vqb_ticket){ .head = (uint16_t)head, .seq = m->seq };
	m->out[m->outs++] = (struct model_out){ .ticket = chain->ticket,
						.writable = chain->write_bytes,
						.position = m->end.cursor++,
						.bad = chain->status,
						.generation = m->memory->generation };
	m->count.chains++;
	if (chain->status)
		m->count.bad_chains++;
}

static int32_t take_one(struct device_model *m, struct model_chain *mc, struct vqb_piece *piece,
			uint32_t room, struct vqb_need *need)
{
	static struct walk w;
	struct vqb_chain *chain = &mc->chain;
	uint32_t head;
	int32_t status = next_head(m, &head);

	if (status)
		return status;
	memset(&w.pieces, 0, sizeof(w) - offsetof(struct walk, pieces));
	status = walk(m, &w, head);
	m->count.descriptors += w.reads;
	mc->over = w.over && mc->gave_up;
	if (mc->over)
		status = VQB_E_BAD_CHAIN;
	if (!status && w.pieces > room) {
		w.need = (struct vqb_need){ .pieces = w.pieces };
		status = VQB_E_NOSPC;
	}
	if (status == VQB_E_FAULT)
		m->count.faults++;
	if (status == VQB_E_FAULT || status == VQB_E_NOSPC) {
		*need = w.need;
		return status;
	}
	m->count.indirect += w.table;
	memset(chain, 0, sizeof(*chain));
	chain->status = status;
	if (status) {
		chain->reason = w.reason;
		if (mc->over) {
			m->less_descriptors += w.reads - w.over_reads;
			m->less_indirect += w.table && !w.over_table;
		}
	} else {
		chain->piece = piece;
		chain->readable = w.readable;
		chain->writable = w.pieces - w.readable;
		chain->read_bytes = w.read_bytes;
		chain->write_bytes = w.bytes - w.read_bytes;
		for (uint32_t i = 0; i < w.pieces; i++)
			piece[i] = w.piece[i];
	}
	consume(m, head, chain);
	return VQB_OK;
}

int32_t device_model_take(struct device_model *m, struct model_chain *chain, uint32_t max,
			  struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			  struct vqb_need *need)
{
	int32_t status = VQB_OK;

	*taken = 0;
	if (m->state)
		return m->state == VQB_E_INVALID ? VQB_OK : m->state;
	if (m->end.seen == m->end.cursor) {
		uint16_t idx = model_get16(&m->ring, model_avail_idx(&m->ring));
		uint16_t ahead = model_ahead(&m->end, idx);

		if (ahead > m->ring.size)
			return break_ring(m, VQB_RULE_JUMPED, idx);
		m->end.seen += ahead;
	}
	while (!status && *taken < max && m->end.cursor < m->end.seen) {
		struct vqb_chain *c = &chain[*taken].chain;

		status = take_one(m, &chain[*taken], piece, room, need);
		if (status)
			break;
		piece += c->readable + c->writable;
		room -= c->readable + c->writable;
		++*taken;
	}
	return status;
}

int32_t device_model_reject(struct device_model *m, struct vqb_chain *chain)
{
	uint32_t head;
	int32_t status = m->state;

	if (!status && m->end.seen == m->end.cursor)
		status = VQB_E_INVALID;
	if (!status)
		status = next_head(m, &head);
	if (status)
		return status;
	memset(chain, 0, sizeof(*chain));
	chain->status = VQB_E_BAD_CHAIN;
	chain->reason.rule = VQB_RULE_REJECTED;
	consume(m, head, chain);
	return VQB_OK;
}

/* ---- returning ---- */

/* The place of a ticket among those that are out, or `outs`. */
static uint32_t place(const struct device_model *m, struct vqb_ticket ticket)
{
	uint32_t i;

	for (i = 0; i < m->outs; i++)
		if (!m->out[i].put && m->out[i].ticket.head == ticket.head &&
		    m->out[i].ticket.seq == ticket.seq)
			break;
	return i;
}

static void remove_out(struct device_model *m, uint32_t i)
{
	m->outs--;
	for (; i < m->outs; i++)
		m->out[i] = m->out[i + 1];
}

int32_t device_model_holds(const struct device_model *m, struct vqb_ticket ticket)
{
	return place(m, ticket) < m->outs ? VQB_OK : VQB_E_STALE;
}

int32_t device_model_untake(struct device_model *m, struct vqb_ticket ticket)
{
	uint32_t i = place(m, ticket);

	if (i == m->outs)
		return VQB_E_STALE;
	if (m->out[i].position != m->end.cursor - 1)
		return VQB_E_INVALID;
	remove_out(m, i);
	m->end.cursor--;
	if (!is_again(m, m->end.cursor))
		untrack(m, ticket.head);
	m->count.untaken++;
	return VQB_OK;
}

static void write_used(struct device_model *m, uint64_t at, const struct model_out *o)
{
	uint8_t *entry = model_used_entry(&m->ring, at);

	model_put(&m->ring, entry, o->ticket.head, 4);
	model_put(&m->ring, entry + 4, o->written, 4);
}

/* The next expose is going to show this one. */
static void finish(struct device_model *m, uint32_t i)
{
	if (!m->ring.in_order)
		write_used(m, m->end.next, &m->out[i]);
	if (m->ring.in_order || m->track.used)
		m->finished[m->finisheds++] = m->out[i];
	remove_out(m, i);
	m->end.next++;
	m->count.completions++;
}

int32_t device_model_put(struct device_model *m, struct vqb_ticket ticket, uint32_t written)
{
	uint32_t i = place(m, ticket);

	if (i == m->outs) {
		m->count.stale++;
		return VQB_E_STALE;
	}
	if (written > m->out[i].writable)
		return VQB_E_INVALID;
	m->out[i].put = true;
	m->out[i].written = written;
	if (!m->ring.in_order)
		finish(m, i);
	while (m->outs && m->out[0].put)
		finish(m, 0);
	return VQB_OK;
}

/* ---- notifying ---- */

/*
 * IN_ORDER: a batch is chains that were written to their last byte, and whatever comes after them.
 * Its entry has the place of the first and says the last. What a bad chain could have held is not
 * known, so it is no such chain.
 */
static void write_batches(struct device_model *m)
{
	uint64_t first = m->end.exposed;

	for (uint32_t i = 0; i < m->finisheds; i++) {
		const struct model_out *o = &m->finished[i];

		if (!o->bad && o->written == o->writable && i + 1 < m->finisheds)
			continue;
		write_used(m, first, o);
		first = m->end.exposed + i + 1;
	}
}

void device_model_expose(struct device_model *m)
{
	if (m->state == VQB_E_INVALID || m->end.exposed == m->end.next)
		return;
	if (m->ring.in_order)
		write_batches(m);
	for (uint32_t i = 0; i < m->finisheds; i++)
		untrack(m, m->finished[i].ticket.head);
	m->finisheds = 0;
	m->end.exposed = m->end.next;
	model_put(&m->ring, model_used_idx(&m->ring), m->end.next & 0xffff, 2);
}

uint32_t device_model_publish(struct device_model *m)
{
	const struct model_ring *r = &m->ring;

	if (m->state == VQB_E_INVALID)
		return VQB_QUIET;
	device_model_expose(m);
	return model_decide(&m->end, r->event_idx, model_get16(r, model_used_event(r)),
			    model_get16(r, model_avail_flags(r)));
}

uint32_t device_model_turn(struct device_model *m)
{
	uint32_t answer = device_model_publish(m);

	return answer | device_model_arm(m);
}

uint32_t device_model_arm(struct device_model *m)
{
	const struct model_ring *r = &m->ring;

	if (m->state)
		return VQB_QUIET;
	if (r->event_idx)
		model_put(r, model_avail_event(r), m->end.cursor & 0xffff, 2);
	else
		model_put(r, model_used_flags(r), 0, 2);
	return model_ahead(&m->end, model_get16(r, model_avail_idx(r))) ? VQB_MORE : VQB_QUIET;
}

bool device_model_disarm(struct device_model *m, uint16_t event)
{
	const struct model_ring *r = &m->ring;

	if (m->state)
		return true;
	if (!r->event_idx) {
		model_put(r, model_used_flags(r), 1, 2);
		return true;
	}
	model_put(r, model_avail_event(r), event, 2);
	return (uint16_t)(event - m->end.cursor) >= 0x8000;
}

uint32_t device_model_pending(const struct device_model *m)
{
	const struct model_ring *r = &m->ring;
	uint16_t ahead;

	if (m->state)
		return 0;
	ahead = model_ahead(&m->end, model_get16(r, model_avail_idx(r)));
	return ahead <= r->size ? ahead : 0;
}

/* ---- the tracking area ---- */

/* In the machine's byte order. */
static uint64_t native(const uint8_t *at, unsigned bytes)
{
	struct model_ring as = { .big = VQB_BIG_ENDIAN };

	return model_get(&as, at, bytes);
}

/*
 * A header (features, version, size, head of the last batch, used index), and for each head a flag,
 * 5 bytes of padding, a link to the next one of its batch, and the counter of its take.
 */
bool device_model_tracks(const struct device_model *m, const uint8_t *area)
{
	const struct model_tracking *t = &m->track;
	uint64_t newest = 0;
	uint32_t flags = 0;

	if (!t->live)
		return !native(area + 8, 2);
	if (native(area, 8) || native(area + 8, 2) != 1 || native(area + 10, 2) != t->size)
		return false;
	if (m->state != VQB_E_INVALID && native(area + 14, 2) != (m->end.exposed & 0xffff))
		return false;
	for (uint32_t head = 0; head < t->size; head++)
		flags += area[16 + 16 * head];
	for (uint32_t i = 0; i < t->heads; i++) {
		const uint8_t *entry = area + 16 + 16 * (size_t)t->head[i];
		uint64_t counter = native(entry + 8, 8);

		if (entry[0] != 1 || (i && counter <= newest))
			return false;
		newest = counter;
	}
	return flags == t->heads;
}
