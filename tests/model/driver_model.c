/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_model.c: see driver_model.h. */
#include "driver_model.h"

/* ---- starting ---- */

/* Goes on with a ring that stands at `idx`, all of whose descriptors are free. */
static void go_on(struct driver_model *m, const struct vqb_ring *as, const struct model_ring *ring,
		  uint16_t idx, uint32_t next_desc)
{
	m->ring = *ring;
	model_ring_as(&m->ring, as->size, as->flags, as->features);
	m->index = as->index;
	m->notify_data = model_has(as->features, VQB_F_NOTIFICATION_DATA);
	m->next_desc = next_desc;
	m->batch = 0;
	memset(m->lent, 0, sizeof(m->lent[0]) * as->size);
	model_end_start(&m->end, idx);
	m->state = VQB_OK;
}

static void start(struct driver_model *m, const struct vqb_ring *as, const struct model_ring *ring)
{
	uint32_t event;

	go_on(m, as, ring, 0, 0);
	/* Without EVENT_IDX there are no event words. */
	event = m->ring.event_idx ? 2 : 0;
	memset(ring->desc, 0, 16 * (size_t)as->size);
	memset(ring->avail, 0, 4 + 2 * (size_t)as->size + event);
	memset(ring->used, 0, 4 + 8 * (size_t)as->size + event);
}

static void take_policy(struct driver_model *m, const struct vqb_indirect_policy *policy)
{
	m->policy =
		policy ? *policy : (struct vqb_indirect_policy){ .kind = VQB_INDIRECT_ADAPTIVE };
}

/* For a configuration that the library took. */
void driver_model_init(struct driver_model *m, const struct vqb_driver_config *config,
		       const struct model_ring *ring)
{
	uint8_t *pool = m->pool;

	memset(m, 0, sizeof(*m));
	m->pool = pool;
	m->max_size = config->max_size ? config->max_size : config->ring.size;
	take_policy(m, config->policy);
	m->tables_addr = config->tables.addr;
	m->table_length = config->max_table < m->max_size ? config->max_table : m->max_size;
	while (m->table_length && m->tables < m->max_size &&
	       (m->tables + 1) * 16 * (uint64_t)m->table_length <= config->tables.bytes)
		m->tables++;
	m->state = VQB_E_INVALID;
	if (config->ring.size)
		start(m, &config->ring, ring);
}

static bool ring_valid(const struct driver_model *m, const struct vqb_ring *as)
{
	return model_size_valid(as->size) && as->size <= m->max_size && as->index <= 65535 &&
	       model_flags_valid(as->flags, as->features) && !as->zero &&
	       model_features_valid(as->features) && as->desc && as->avail && as->used &&
	       (uintptr_t)as->desc % 16 == 0 && (uintptr_t)as->avail % 2 == 0 &&
	       (uintptr_t)as->used % 4 == 0;
}

int32_t driver_model_reset(struct driver_model *m, const struct vqb_ring *as,
			   const struct model_ring *ring)
{
	if (!as) {
		m->state = VQB_E_INVALID;
		return VQB_OK;
	}
	if (!ring_valid(m, as))
		return VQB_E_INVALID;
	if (m->requests)
		return VQB_E_BUSY;
	start(m, as, ring);
	return VQB_OK;
}

static bool policy_valid(const struct vqb_indirect_policy *policy)
{
	uint32_t kind = policy->kind;

	return policy->struct_size == sizeof(*policy) && kind <= VQB_INDIRECT_CUSTOM &&
	       !policy->zero && (policy->threshold != 0) == (kind == VQB_INDIRECT_THRESHOLD) &&
	       (policy->choose != NULL) == (kind == VQB_INDIRECT_CUSTOM) &&
	       (!policy->clock || kind == VQB_INDIRECT_ADAPTIVE);
}

int32_t driver_model_set_policy(struct driver_model *m, const struct vqb_indirect_policy *policy)
{
	if (policy && !policy_valid(policy))
		return VQB_E_INVALID;
	if (m->requests)
		return VQB_E_BUSY;
	take_policy(m, policy);
	return VQB_OK;
}

void driver_model_needs_reset(struct driver_model *m)
{
	if (m->state == VQB_OK)
		m->state = VQB_E_NEEDS_RESET;
}

int32_t driver_model_save(const struct driver_model *m, struct vqb_driver_saved *saved)
{
	if (m->state)
		return m->state;
	if (m->requests)
		return VQB_E_BUSY;
	saved->avail = saved->used = (uint16_t)m->end.cursor;
	if (m->ring.in_order)
		saved->desc = (uint16_t)m->next_desc;
	saved->zero = 0;
	return VQB_OK;
}

int32_t driver_model_restore(struct driver_model *m, const struct vqb_ring *as,
			     const struct model_ring *ring, const struct vqb_driver_saved *saved)
{
	struct model_ring r = *ring;

	if (!ring_valid(m, as) || saved->avail != saved->used || saved->desc >= as->size ||
	    saved->zero)
		return VQB_E_INVALID;
	if (m->requests)
		return VQB_E_BUSY;
	model_ring_as(&r, as->size, as->flags, as->features);
	if (model_get16(&r, model_avail_idx(&r)) != saved->avail ||
	    model_get16(&r, model_used_idx(&r)) != saved->used)
		return VQB_E_INVALID;
	go_on(m, as, ring, saved->used, saved->desc);
	return VQB_OK;
}

/* ---- requests ---- */

static void remove_request(struct driver_model *m, uint32_t i)
{
	m->requests--;
	for (; i < m->requests; i++)
		m->request[i] = m->request[i + 1];
}

bool driver_model_detach(struct driver_model *m, void *const *tokens, uint32_t max, uint32_t n,
			 int32_t *status)
{
	uint32_t expected = max < m->requests ? max : m->requests;

	*status = VQB_E_BUSY;
	if (m->state != VQB_E_INVALID)
		return n == 0;
	if (n != expected)
		return false;
	for (uint32_t t = 0; t < n; t++) {
		uint32_t i = 0;

		while (i < m->requests && m->request[i].token != tokens[t])
			i++;
		if (i == m->requests)
			return false;
		remove_request(m, i);
	}
	*status = m->requests ? VQB_E_NOSPC : VQB_OK;
	return true;
}

uint32_t driver_model_free(const struct driver_model *m)
{
	uint32_t n = 0;

	if (m->state == VQB_E_INVALID)
		return 0;
	for (uint32_t i = 0; i < m->ring.size; i++)
		n += !m->lent[i];
	return n;
}

static uint32_t tables_free(const struct driver_model *m)
{
	uint32_t n = m->tables;

	for (uint32_t i = 0; i < m->requests; i++)
		n -= m->request[i].indirect;
	return n;
}

uint32_t driver_model_oldest(const struct driver_model *m, void **token)
{
	if (!m->requests)
		return 0;
	*token = m->request[0].token;
	return (uint32_t)(m->end.next - m->request[0].number);
}

/* ---- adding ---- */

/* Would the policy rather have a table for `n` segments, where there is a choice? */
static bool prefers_table(const struct driver_model *m, uint32_t n,
			  const struct model_view *library)
{
	const struct vqb_indirect_load load = { .segments = n,
						.size = m->ring.size,
						.free = driver_model_free(m),
						.in_flight = m->requests,
						.tables = tables_free(m) };
	uint32_t head = model_get16(&m->ring, model_avail_entry(&library->ring, m->end.next));

	if (m->policy.kind == VQB_INDIRECT_ALWAYS)
		return true;
	if (m->policy.kind == VQB_INDIRECT_THRESHOLD)
		return n >= m->policy.threshold;
	if (m->policy.kind == VQB_INDIRECT_CUSTOM)
		return m->policy.choose(m->policy.context, &load);
	return head < m->ring.size &&
	       model_desc_get(&m->ring, library->ring.desc, head).flags & MODEL_INDIRECT;
}

/*
 * The adaptive policy rather has a table than this: a request that does not lie in one piece,
 * unless it goes round the end of the ring, with more than eight entries before that.
 */
static bool in_pieces(const struct driver_model *m, const struct model_request *r)
{
	uint32_t size = m->ring.size, to_end = size - r->head;

	for (uint32_t i = 0; i < r->segments; i++)
		if (m->lent[(r->head + i) % size] != r->number + 1)
			return true;
	return to_end < r->segments && to_end <= 8;
}

/* The rules of indirect.h that hold under every policy. */
static bool may_use_table(const struct driver_model *m, uint32_t n)
{
	return m->ring.indirect && m->policy.kind != VQB_INDIRECT_NEVER && n > 1 &&
	       n <= m->table_length && tables_free(m) && driver_model_free(m);
}

static int32_t check_segments(const struct vqb_segment *seg, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!seg[i].len || seg[i].zero || seg[i].addr + (seg[i].len - 1) < seg[i].addr)
			return VQB_E_INVALID;
		bytes += seg[i].len;
	}
	return bytes > UINT64_C(1) << 32 ? VQB_E_TOOBIG : VQB_OK;
}

/* The chain that begins at `at` of a table, against the segments; marks what it visits. */
struct chain {
	const uint8_t *table;
	uint32_t at, count;
	uint64_t *lent;
	uint64_t mark;
};

static const char *check_chain(struct driver_model *m, const struct chain *c,
			       const struct vqb_segment *seg, uint32_t readable, uint32_t n)
{
	uint32_t at = c->at;

	for (uint32_t i = 0; i < n; i++) {
		unsigned flags = (i < readable ? 0 : MODEL_WRITE) | (i + 1 < n ? MODEL_NEXT : 0);
		struct model_desc d;

		if (at >= c->count)
			return "a link leads out of the table";
		if (c->lent[at])
			return "a descriptor was not free";
		c->lent[at] = c->mark;
		d = model_desc_get(&m->ring, c->table, at);
		if (d.addr != seg[i].addr || d.len != seg[i].len)
			return "a descriptor does not describe its segment";
		if (d.flags != flags)
			return "a descriptor has wrong flags";
		if (m->ring.in_order && flags & MODEL_NEXT && d.next != (at + 1) % c->count)
			return "a link does not lead to the next descriptor";
		at = d.next;
	}
	return NULL;
}

/* The table that the descriptor `head` refers to: in the pool, nobody else's, and right. */
static const char *check_table(struct driver_model *m, struct model_request *r,
			       const struct model_view *library, const struct vqb_segment *seg,
			       uint32_t readable)
{
	struct model_desc d = model_desc_get(&m->ring, library->ring.desc, r->head);
	uint64_t bytes = 16 * (uint64_t)r->segments, whole = 16 * (uint64_t)m->table_length;
	static uint64_t visited[VQB_RING_MAX];
	struct chain c = { .count = r->segments, .lent = visited, .mark = 1 };

	if (m->lent[r->head])
		return "a descriptor was not free";
	m->lent[r->head] = r->number + 1;
	if (d.flags != MODEL_INDIRECT || d.len != bytes)
		return "the descriptor of a table is wrong";
	r->table = d.addr - m->tables_addr;
	if (d.addr < m->tables_addr || d.addr % 16 || r->table + bytes > m->tables * whole)
		return "a table is not in the pool";
	for (uint32_t i = 0; i < m->requests; i++) {
		const struct model_request *o = &m->request[i];

		if (o->indirect && r->table < o->table + 16 * (uint64_t)o->segments &&
		    o->table < r->table + bytes)
			return "a table was not free";
	}
	c.table = library->pool + r->table;
	memset(visited, 0, sizeof(visited[0]) * r->segments);
	return check_chain(m, &c, seg, readable, r->segments);
}

/* Keeps what is lent now as the library wrote it. */
static void keep(struct driver_model *m, const struct model_request *r,
		 const struct model_view *library)
{
	for (uint32_t i = 0; i < m->ring.size; i++)
		if (m->lent[i] == r->number + 1)
			memcpy(m->ring.desc + 16 * (size_t)i, library->ring.desc + 16 * (size_t)i,
			       16);
	if (r->indirect)
		memcpy(m->pool + r->table, library->pool + r->table, 16 * (size_t)r->segments);
}

/* A request that has to be accepted: checks how the library did it, and does the same. */
static const char *adopt(struct driver_model *m, struct model_request *r,
			 const struct model_view *library, const struct vqb_segment *seg,
			 uint32_t readable)
{
	struct chain c = { .table = library->ring.desc, .count = m->ring.size, .lent = m->lent };
	const char *wrong;

	r->head = model_get16(&m->ring, model_avail_entry(&library->ring, r->number));
	if (r->head >= m->ring.size)
		return "a head is outside the ring";
	if (m->ring.in_order && r->head != m->next_desc)
		return "a head is not the next descriptor";
	c.at = r->head;
	c.mark = r->number + 1;
	wrong = r->indirect ? check_table(m, r, library, seg, readable)
			    : check_chain(m, &c, seg, readable, r->segments);
	if (wrong)
		return wrong;
	for (uint32_t i = readable; i < r->segments; i++)
		r->writable += seg[i].len;
	keep(m, r, library);
	model_put(&m->ring, model_avail_entry(&m->ring, r->number), r->head, 2);
	m->request[m->requests++] = *r;
	m->end.next++;
	m->next_desc = (m->next_desc + (r->indirect ? 1 : r->segments)) % m->ring.size;
	m->count.requests++;
	m->count.descriptors += r->segments + r->indirect;
	m->count.indirect += r->indirect;
	return NULL;
}

int32_t driver_model_add(struct driver_model *m, const struct vqb_segment *seg, uint32_t readable,
			 uint32_t writable, void *token, const struct model_view *library,
			 const char **wrong)
{
	uint64_t n = (uint64_t)readable + writable;
	struct model_request r = { .token = token, .number = m->end.next, .segments = (uint32_t)n };
	bool fits, may;
	int32_t status;

	*wrong = NULL;
	if (m->state)
		return m->state;
	if (!n)
		return VQB_E_INVALID;
	if (n > m->ring.size)
		return VQB_E_TOOBIG;
	fits = n <= driver_model_free(m);
	may = may_use_table(m, r.segments);
	r.indirect = may && (!fits || prefers_table(m, r.segments, library));
	if (!fits && !r.indirect) {
		m->count.no_room++;
		return VQB_E_NOSPC;
	}
	status = check_segments(seg, r.segments);
	if (!status)
		*wrong = adopt(m, &r, library, seg, readable);
	if (status || *wrong)
		return status;
	m->count.direct_single += n == 1;
	m->count.indirect_no_room += !fits;
	if (may && !r.indirect && m->policy.kind == VQB_INDIRECT_ADAPTIVE &&
	    in_pieces(m, &m->request[m->requests - 1]))
		*wrong = "a request lies in pieces";
	return VQB_OK;
}

bool driver_model_same(const struct driver_model *m, const struct model_view *library)
{
	for (uint32_t i = 0; i < m->ring.size; i++)
		if (m->lent[i] && memcmp(m->ring.desc + 16 * (size_t)i,
					 library->ring.desc + 16 * (size_t)i, 16) != 0)
			return false;
	for (uint32_t i = 0; i < m->requests; i++) {
		const struct model_request *r = &m->request[i];

		if (r->indirect && memcmp(m->pool + r->table, library->pool + r->table,
					  16 * (size_t)r->segments) != 0)
			return false;
	}
	return true;
}

/* ---- notifying ---- */

void driver_model_expose(struct driver_model *m)
{
	if (m->state || m->end.exposed == m->end.next)
		return;
	m->end.exposed = m->end.next;
	model_put(&m->ring, model_avail_idx(&m->ring), m->end.next & 0xffff, 2);
}

uint32_t driver_model_publish(struct driver_model *m)
{
	const struct model_ring *r = &m->ring;

	if (m->state)
		return VQB_QUIET;
	driver_model_expose(m);
	return model_decide(&m->end, r->event_idx, model_get16(r, model_avail_event(r)),
			    model_get16(r, model_used_flags(r)));
}

/* The index that the device sees is in memory. */
uint32_t driver_model_notification(const struct driver_model *m)
{
	const struct model_ring *r = &m->ring;

	return m->index + (m->notify_data ? 65536u * model_get16(r, model_avail_idx(r)) : 0);
}

uint32_t driver_model_turn(struct driver_model *m)
{
	uint32_t answer = driver_model_publish(m);

	return answer | driver_model_arm(m);
}

/* Completions that are there, by the device's index. */
static uint16_t ahead(const struct driver_model *m)
{
	return model_ahead(&m->end, model_get16(&m->ring, model_used_idx(&m->ring)));
}

/* Requests that the device can complete. */
static uint64_t shown(const struct driver_model *m)
{
	return m->end.exposed - m->end.cursor;
}

uint32_t driver_model_arm(struct driver_model *m)
{
	const struct model_ring *r = &m->ring;

	if (m->state)
		return VQB_QUIET;
	if (r->event_idx)
		model_put(r, model_used_event(r), m->end.cursor & 0xffff, 2);
	else
		model_put(r, model_avail_flags(r), 0, 2);
	return ahead(m) ? VQB_MORE : VQB_QUIET;
}

uint32_t driver_model_postpone(struct driver_model *m, uint32_t intent, uint16_t event, bool *fine)
{
	const struct model_ring *r = &m->ring;
	uint64_t count = (uint16_t)(event - m->end.cursor) + 1u, all = shown(m), least = all / 4;
	uint64_t most = least + 1;

	*fine = true;
	if (m->state || !r->event_idx)
		return driver_model_arm(m);
	if (intent == VQB_POSTPONE_LONG)
		most = (least = all * 3 / 4) + 1;
	else if (intent == VQB_POSTPONE_EMPTIED)
		most = least = all ? all : 1;
	*fine = count >= least && count <= most;
	model_put(r, model_used_event(r), event, 2);
	return ahead(m) >= count ? VQB_MORE : VQB_QUIET;
}

bool driver_model_disarm(struct driver_model *m, uint16_t event)
{
	const struct model_ring *r = &m->ring;

	if (m->state)
		return true;
	if (!r->event_idx) {
		model_put(r, model_avail_flags(r), 1, 2);
		return true;
	}
	model_put(r, model_used_event(r), event, 2);
	return (uint16_t)(event - m->end.cursor) >= 0x8000;
}

uint32_t driver_model_pending(const struct driver_model *m)
{
	return m->state || ahead(m) > shown(m) ? 0 : ahead(m);
}

/* ---- reaping ---- */

static void reap_one(struct driver_model *m, uint32_t i, uint32_t len, struct vqb_done *done)
{
	const struct model_request *r = &m->request[i];
	uint64_t most = r->writable < UINT32_MAX ? r->writable : UINT32_MAX;

	*done = (struct vqb_done){ .token = r->token, .len = len };
	if (len > most) {
		done->len = (uint32_t)most;
		done->flags = VQB_DONE_OVERLONG;
		m->count.overlong++;
	}
	for (uint32_t d = 0; d < m->ring.size; d++)
		if (m->lent[d] == r->number + 1)
			m->lent[d] = 0;
	remove_request(m, i);
	m->end.cursor++;
	m->count.completions++;
}

/* The request that the element at the cursor names, or `requests`. */
static uint32_t named(const struct driver_model *m)
{
	uint32_t id = model_get32(&m->ring, model_used_entry(&m->ring, m->end.cursor)), i = 0;

	while (i < m->requests &&
	       (m->request[i].head != id || m->request[i].number >= m->end.exposed))
		i++;
	return i;
}

static bool reap_next(struct driver_model *m, struct vqb_done *done)
{
	uint32_t i = named(m);

	if (i == m->requests)
		return false;
	reap_one(m, i, model_get32(&m->ring, model_used_entry(&m->ring, m->end.cursor) + 4), done);
	return true;
}

/*
 * IN_ORDER: an element stands for all requests up to the one it names, and the index has moved by
 * as many; all but that one are written in full.
 */
static bool reap_in_order(struct driver_model *m, struct vqb_done *done)
{
	const struct model_request *oldest = &m->request[0];

	if (!m->batch) {
		uint32_t i = named(m);

		if (i == m->requests || i >= m->end.seen - m->end.cursor)
			return false;
		m->batch = i + 1;
		m->batch_len = model_get32(&m->ring, model_used_entry(&m->ring, m->end.cursor) + 4);
	}
	if (!--m->batch) {
		reap_one(m, 0, m->batch_len, done);
		return true;
	}
	reap_one(m, 0, oldest->writable < UINT32_MAX ? (uint32_t)oldest->writable : UINT32_MAX,
		 done);
	done->flags = VQB_DONE_IMPLIED;
	return true;
}

uint32_t driver_model_reap(struct driver_model *m, struct vqb_done *done, uint32_t max)
{
	uint32_t n = 0;

	if (m->state)
		return 0;
	if (m->end.seen == m->end.cursor) {
		if (ahead(m) > shown(m)) {
			m->state = VQB_E_BROKEN;
			return 0;
		}
		m->end.seen += ahead(m);
	}
	for (; n < max && m->end.cursor < m->end.seen; n++) {
		if (m->ring.in_order ? reap_in_order(m, &done[n]) : reap_next(m, &done[n]))
			continue;
		m->state = VQB_E_BROKEN;
		break;
	}
	return n;
}
