/* SPDX-License-Identifier: BSD-3-Clause */
/* blk_driver_sim.c: see blk_driver_sim.h. */
#include "blk_driver_sim.h"

/* Where the device finds them. */
#define AREA_AT UINT64_C(0x10000000)
#define TABLES_AT UINT64_C(0x20000000)

enum { TABLE_LENGTH = 32, CHAIN_MOST = RING_MOST };

static uint32_t roll(const struct blk_driver_sim *s, uint32_t below)
{
	return random_below(&s->run->random, below);
}

static bool one_in(const struct blk_driver_sim *s, uint32_t n)
{
	return random_one_in(&s->run->random, n);
}

static void observe(struct blk_driver_sim *s, enum slot_event event, bool before, bool after)
{
	if (s->observe)
		s->observe(s->observer, event, before, after);
}

/* What the library says of the ring, before and after. */
static void observe_ring(struct blk_driver_sim *s, const char *event)
{
	int32_t now = vqb_driver_state(s->ring);

	if (s->observe_ring)
		s->observe_ring(s->ring_observer, event, s->ring_seen, now);
	s->ring_seen = now;
}

/* ---- the ring, as the device has it ---- */

struct chain {
	struct vqb_segment seg[CHAIN_MOST];
	bool writes[CHAIN_MOST];
	uint32_t n;
};

static void add_descriptor(struct blk_driver_sim *s, struct chain *c, const void *table, unsigned i)
{
	unsigned flags = raw_desc_flags(table, i);

	holds(s->run, c->n < CHAIN_MOST);
	c->seg[c->n].addr = raw_desc_addr(table, i);
	c->seg[c->n].len = raw_desc_len(table, i);
	c->seg[c->n].zero = 0;
	c->writes[c->n] = flags & RAW_WRITE;
	/* What is read comes first. */
	holds(s->run, !c->n || c->writes[c->n] || !c->writes[c->n - 1]);
	c->n++;
}

static void add_table(struct blk_driver_sim *s, struct chain *c, uint64_t addr, uint32_t bytes)
{
	const uint8_t *table = s->tables + (addr - TABLES_AT);
	unsigned i = 0;

	holds(s->run, addr >= TABLES_AT && addr + bytes <= TABLES_AT + RING_TABLES);
	holds(s->run, bytes && !(bytes % 16));
	s->indirect++;
	for (uint32_t n = 0;; n++) {
		holds(s->run, n < bytes / 16 && i < bytes / 16);
		add_descriptor(s, c, table, i);
		if (!(raw_desc_flags(table, i) & RAW_NEXT))
			break;
		i = raw_desc_next(table, i);
	}
}

static void read_chain(struct blk_driver_sim *s, struct chain *c, unsigned head)
{
	unsigned i = head;

	c->n = 0;
	for (uint32_t n = 0;; n++) {
		unsigned flags;

		holds(s->run, n < s->raw.size && i < s->raw.size);
		flags = raw_desc_flags(s->raw.desc, i);
		if (flags & RAW_INDIRECT)
			add_table(s, c, raw_desc_addr(s->raw.desc, i),
				  raw_desc_len(s->raw.desc, i));
		else
			add_descriptor(s, c, s->raw.desc, i);
		if (!(flags & RAW_NEXT))
			break;
		i = raw_desc_next(s->raw.desc, i);
	}
}

/* The area of the driver is in three parts: headers, ranges, status bytes. */
static uint8_t *in_area(struct blk_driver_sim *s, const struct vqb_segment *seg, uint64_t from,
			uint64_t end)
{
	holds(s->run, seg->addr >= AREA_AT + from && seg->addr + seg->len <= AREA_AT + end);
	return s->area + (seg->addr - AREA_AT);
}

static void read_ranges(struct blk_driver_sim *s, const struct vqb_segment *seg,
			struct vqb_request *r, struct vqb_segment *table)
{
	uint64_t first = 16 * (uint64_t)s->config.depth;
	const uint8_t *range =
		in_area(s, seg, first, first + 16 * (uint64_t)s->config.depth * s->config.ranges);

	r->n = seg->len / 16;
	holds(s->run, !(seg->len % 16) && r->n <= s->config.ranges);
	for (uint32_t i = 0; i < r->n; i++, range += 16) {
		table[i].addr = peek(range, 8);
		table[i].len = (uint32_t)peek(range + 8, 4);
		table[i].zero = 0;
		r->flags = peek(range + 12, 4) ? VQB_BIO_UNMAP : 0;
		holds(s->run, peek(range + 12, 4) <= (r->op == VQB_BLK_WRITE_ZEROES));
		same(s->run, peek(range + 12, 4), peek(range + 12 - 16 * i, 4));
	}
}

/* Header, data and status of one. */
static void read_request(struct blk_driver_sim *s, const struct chain *c, struct vqb_request *r,
			 struct vqb_segment *table, struct ring_request *out)
{
	uint64_t statuses = VQB_BLK_AREA_BYTES(s->config.depth, s->config.ranges) -
			    ((s->config.depth + 63) & ~63u);
	const uint8_t *header = in_area(s, &c->seg[0], 0, 16 * (uint64_t)s->config.depth);
	bool writes;

	memset(r, 0, sizeof(*r));
	holds(s->run, c->n >= 2 && c->seg[0].len == 16 && !c->writes[0]);
	same(s->run, c->seg[c->n - 1].len, 1);
	holds(s->run, c->writes[c->n - 1]);
	out->status = in_area(s, &c->seg[c->n - 1], statuses, statuses + s->config.depth);
	out->slot = (uint32_t)((uint64_t)(out->status - s->area) - statuses);
	same(s->run, out->slot, (uint32_t)(header - s->area) / 16);
	r->op = (uint8_t)peek(header, 4);
	same(s->run, r->op, peek(header, 4));
	r->ioprio = (uint32_t)peek(header + 4, 4);
	r->sector = peek(header + 8, 8);
	r->n = c->n - 2;
	writes = r->op == VQB_BLK_IN || r->op == VQB_BLK_GET_ID || r->op == VQB_BLK_GET_LIFETIME;
	for (uint32_t i = 0; i < r->n; i++) {
		same(s->run, c->writes[i + 1], writes);
		table[i] = c->seg[i + 1];
		r->bytes += table[i].len;
	}
	if (model_is_range(r->op)) {
		same(s->run, r->n, 1);
		read_ranges(s, &c->seg[1], r, table);
	}
}

/* The device takes all that is there to see. */
static void take_all(struct blk_driver_sim *s)
{
	static struct vqb_segment table[CHAIN_MOST];
	static struct chain chain;

	while (s->avail != (uint16_t)raw_avail_idx(&s->raw)) {
		struct ring_request *out = &s->out[s->outs++];
		struct vqb_request r;

		out->head = raw_avail_entry(&s->raw, s->avail++);
		out->completed = false;
		read_chain(s, &chain, out->head);
		read_request(s, &chain, &r, table, out);
		observe(s, SLOT_SEND, s->busy[out->slot], true);
		holds(s->run, !s->busy[out->slot]);
		s->busy[out->slot] = true;
		model_sent(&s->model, 0, &r, table, &out->model);
	}
}

/* A status byte for each outcome, and what else devices may write. */
static void complete(struct blk_driver_sim *s, uint32_t i)
{
	static const uint8_t failed[] = { 1, 1, 1, 3, 4, 5, 6, 0x80, 0xfe, 0xff };
	struct ring_request *out = &s->out[i];

	if (out->model.status == VQB_OK)
		*out->status = 0;
	else if (out->model.status == VQB_E_UNSUPP)
		*out->status = 2;
	else if (!one_in(s, 8)) /* else it writes none at all */
		*out->status = failed[roll(s, sizeof(failed))];
	raw_complete(&s->raw, s->used++, out->head,
		     one_in(s, 4) ? (uint32_t)random_word(&s->run->random) : 1);
	out->completed = true;
	s->completed[s->completions++] = i;
}

/* ---- library and model ---- */

/* What was sent becomes visible. */
static void show(struct blk_driver_sim *s)
{
	if (one_in(s, 2)) {
		(void)vqb_blk_publish(s->drv);
	} else {
		bool more = vqb_blk_turn(s->drv) & VQB_MORE;

		if (!s->state)
			same(s->run, more, s->completions || s->spoilt);
	}
	if (!s->state)
		take_all(s);
}

static void compare_counters(struct blk_driver_sim *s)
{
	struct vqb_requests_counters count;

	vqb_blk_driver_read_counters(s->drv, &count);
	s->model.queue[0].count.full = count.full;
	s->model.queue[0].once_full |= count.full != 0;
#define COUNTER(name) same(s->run, count.name, s->model.queue[0].count.name)
	COUNTER(bios);
	COUNTER(requests);
	COUNTER(merged);
	COUNTER(parts);
	COUNTER(flushes);
	COUNTER(cancelled);
	COUNTER(retried);
	COUNTER(done);
	COUNTER(errors);
#undef COUNTER
}

/* Nobody waits as long as there is room for any request. */
static void check_room(struct blk_driver_sim *s)
{
	uint32_t in_flight = vqb_blk_in_flight(s->drv);

	if (!vqb_blk_waiting(s->drv) || s->state)
		return;
	s->waits++;
	observe(s, SLOT_NO_ROOM, false, in_flight != s->outs);
	holds(s->run, in_flight);
	holds(s->run, in_flight == s->config.depth ||
			      vqb_driver_free(s->ring) < s->limits.max_segments + 2);
}

static void compare(struct blk_driver_sim *s)
{
	show(s);
	s->events++;
	same(s->run, vqb_driver_state(s->ring), s->state);
	same(s->run, vqb_blk_in_flight(s->drv), s->outs);
	same(s->run, vqb_blk_waiting(s->drv), s->model.queue[0].waits);
	same(s->run, vqb_blk_outstanding(s->drv), s->model.queue[0].outstanding);
	model_compare(&s->model);
	compare_counters(s);
	check_room(s);
}

static struct model_bio *idle_bio(struct blk_driver_sim *s)
{
	for (uint32_t i = 0, at = roll(s, s->model.bios); i < s->model.bios; i++) {
		struct model_bio *b = &s->model.bio[(at + i) % s->model.bios];

		if (b->state == VQB_BIO_IDLE)
			return b;
	}
	return NULL;
}

/* ---- events ---- */

/* The ring's state comes first, but of a bio that is the library's already. */
static void submitted(struct blk_driver_sim *s, struct model_bio *b, int32_t status)
{
	observe_ring(s, s->state ? "refuse" : "submit");
	if (!s->state || b->state > VQB_BIO_PLUGGED) {
		model_submitted(&s->model, 0, b, status);
		return;
	}
	same(s->run, status, s->state);
	model_refused(&s->model, b, status);
}

/* What a submit is going to answer. */
static int32_t foresee(struct blk_driver_sim *s, const struct vqb_bio *bio)
{
	struct vqb_bio before = *bio;
	uint32_t rule = UINT32_MAX;
	int32_t status = vqb_blk_check_bio(s->drv, bio, &rule);

	holds(s->run, !memcmp(&before, bio, sizeof(before)));
	holds(s->run, (rule == VQB_BIO_RULE_FINE) == !status);
	return status;
}

static void submit_some(struct blk_driver_sim *s)
{
	run_operation(s->run, "submit");
	for (uint32_t n = 1 + roll(s, 4); n; n--) {
		struct model_bio *b = idle_bio(s);
		int32_t foreseen, status;

		if (one_in(s, 50)) {
			show(s);
			b = &s->model.bio[roll(s, s->model.bios)];
		}
		if (!b || (b->state == VQB_BIO_IDLE && !feed_bio(&s->feed, 0, b)))
			break;
		foreseen = foresee(s, &b->bio);
		status = vqb_blk_submit(s->drv, &b->bio);
		same(s->run, status, foreseen);
		submitted(s, b, status);
	}
	compare(s);
}

/* The list `bio` of `n`; which of them are refused is what the driver says. */
static void submit_list(struct blk_driver_sim *s, struct model_bio **bio, uint32_t n)
{
	struct vqb_bio *refused = &bio[0]->bio;
	int32_t foreseen[MODEL_BIOS], status, first = VQB_OK;

	for (uint32_t i = 0; i < n; i++) {
		bio[i]->bio.next = i + 1 < n ? &bio[i + 1]->bio : NULL;
		bio[i]->bio.status = 1;
		foreseen[i] = foresee(s, &bio[i]->bio);
	}
	status = vqb_blk_submit_list(s->drv, &bio[0]->bio, &refused);
	for (uint32_t i = 0; i < n; i++) {
		bool was_refused = refused == &bio[i]->bio;

		if (was_refused)
			refused = refused->next;
		if (was_refused && !first)
			first = bio[i]->bio.status;
		same(s->run, was_refused ? bio[i]->bio.status : VQB_OK, foreseen[i]);
		submitted(s, bio[i], was_refused ? bio[i]->bio.status : VQB_OK);
	}
	holds(s->run, !refused);
	same(s->run, status, first);
	compare(s);
}

static void submit_as_list(struct blk_driver_sim *s)
{
	struct model_bio *bio[32];
	uint32_t n, most = 1 + roll(s, 32);

	run_operation(s->run, "submit list");
	for (n = 0; n < most; n++) {
		bio[n] = idle_bio(s);
		if (!bio[n] || !feed_bio(&s->feed, 0, bio[n]))
			break;
		/* Until it is submitted it is not to be found again. */
		bio[n]->queue = 0;
		bio[n]->size = model_is_range(bio[n]->bio.op) ? bio[n]->bio.sectors : bio[n]->units;
		bio[n]->state = bio[n]->bio.state = VQB_BIO_PLUGGED;
	}
	if (n)
		submit_list(s, bio, n);
}

static void complete_some(struct blk_driver_sim *s)
{
	uint32_t n = 1 + roll(s, one_in(s, 4) ? 40 : 4);

	run_operation(s->run, "complete");
	for (uint32_t i = 0, at = roll(s, RING_DEPTH); i < s->outs && n && !s->spoilt; i++)
		if (!s->state && !s->out[(at + i) % s->outs].completed) {
			complete(s, (at + i) % s->outs);
			n--;
		}
}

static void handed_back(struct blk_driver_sim *s, struct vqb_bio *list, uint32_t n)
{
	uint64_t last = 0;

	for (; list; n--) {
		struct vqb_bio *next = list->next;

		model_handed_back(&s->model, list, &last);
		list = next;
	}
	same(s->run, n, 0);
}

/* The device's side of those that came back is over. */
static void forget_completed(struct blk_driver_sim *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->outs; i++)
		if (!s->out[i].completed)
			s->out[kept++] = s->out[i];
	s->outs = kept;
	s->completions = 0;
}

/* More completions than requests: none of them can be believed. */
static void lose_completions(struct blk_driver_sim *s)
{
	for (uint32_t i = 0; i < s->completions; i++)
		s->out[s->completed[i]].completed = false;
	s->completions = 0;
}

static void reap(struct blk_driver_sim *s)
{
	struct vqb_bio *done;
	uint32_t n;

	run_operation(s->run, "reap");
	show(s);
	n = vqb_blk_reap(s->drv, &done);
	observe_ring(s, s->spoilt && !s->state ? "bad entry" : "reap");
	if (s->state) {
		holds(s->run, !n && !done);
		return;
	}
	if (s->spoilt && s->completions >= s->outs)
		lose_completions(s);
	for (uint32_t i = 0; i < s->completions; i++) {
		struct ring_request *out = &s->out[s->completed[i]];

		observe(s, out->model.status ? SLOT_FAILED : SLOT_DONE, s->busy[out->slot], false);
		s->busy[out->slot] = false;
		model_done(&s->model, &out->model, false);
	}
	handed_back(s, done, n);
	forget_completed(s);
	if (s->spoilt) {
		s->state = VQB_E_BROKEN;
		s->broken++;
	}
	compare(s);
}

static void cancel_one(struct blk_driver_sim *s)
{
	struct model_bio *b = &s->model.bio[roll(s, s->model.bios)];
	int32_t status, want;

	run_operation(s->run, "cancel");
	if (one_in(s, 2) && s->model.queue[0].waits)
		b = s->model.queue[0].wait[roll(s, s->model.queue[0].waits)];
	status = vqb_blk_cancel(s->drv, &b->bio);
	want = model_cancel(&s->model, 0, b);
	same(s->run, status, want);
	observe_ring(s, "cancel");
	if (!status)
		handed_back(s, &b->bio, 1);
	compare(s);
}

/* An id that is none, or not lent out; or the transport says it. */
static void break_ring(struct blk_driver_sim *s)
{
	run_operation(s->run, "break");
	if (s->state)
		return;
	if (one_in(s, 2)) {
		vqb_driver_needs_reset(s->ring);
		s->state = VQB_E_NEEDS_RESET;
		observe_ring(s, "needs reset");
	} else if (!s->spoilt) {
		uint32_t id = s->raw.size + roll(s, 1000);

		if (s->completions) /* once more */
			id = one_in(s, 2) ? s->out[s->completed[0]].head : id;
		raw_complete(&s->raw, s->used++, id, 1);
		s->spoilt = true;
	}
	compare(s);
}

/* ---- reset ---- */

static void open_ring(struct blk_driver_sim *s)
{
	s->raw.desc = s->ring_config.ring.desc;
	s->raw.avail = s->ring_config.ring.avail;
	s->raw.used = s->ring_config.ring.used;
	s->raw.size = s->ring_config.ring.size;
	s->avail = s->used = 0;
	s->state = VQB_OK;
	s->spoilt = false;
	s->outs = s->completions = 0;
	memset(s->busy, 0, sizeof(s->busy));
}

/* In the order of submission, and each of them. */
static uint32_t take_abandoned(struct blk_driver_sim *s, struct vqb_bio *list,
			       struct model_bio **again)
{
	uint64_t order = 0, zero = 0;
	uint32_t n = 0;

	for (; list; list = list->next, zero = 0) {
		struct model_bio *b = model_of(list);

		holds(s->run, b->order > order);
		order = b->order;
		model_keep(&s->model, list, &zero);
		if (one_in(s, 8))
			model_free_memory(&s->model, b);
		else
			again[n++] = b;
	}
	return n;
}

/* The three steps; what is to be done is submitted again. */
static void reset(struct blk_driver_sim *s)
{
	static struct model_bio *again[MODEL_BIOS];
	struct vqb_bio junk, *list = &junk;
	uint32_t n;

	run_operation(s->run, "reset");
	show(s);
	same(s->run, vqb_blk_abandon(s->drv, &list), VQB_E_BUSY);
	holds(s->run, !list);
	observe_ring(s, "abandon");
	s->resets++;
	same(s->run, vqb_driver_reset(s->ring, NULL), VQB_OK);
	s->state = VQB_E_INVALID;
	observe_ring(s, "let go");
	if (one_in(s, 4))
		submit_some(s);
	same(s->run, vqb_blk_abandon(s->drv, &list), VQB_OK);
	observe_ring(s, "abandon");
	for (uint32_t i = 0; i < s->outs; i++) {
		observe(s, SLOT_ABANDON, s->busy[s->out[i].slot], false);
		model_done(&s->model, &s->out[i].model, true);
	}
	model_abandon(&s->model, 0);
	n = take_abandoned(s, list, again);
	s->outs = 0;
	same(s->run, vqb_blk_outstanding(s->drv), 0);
	same(s->run, vqb_blk_in_flight(s->drv), 0);
	same(s->run, vqb_driver_reset(s->ring, &s->ring_config.ring), VQB_OK);
	open_ring(s);
	observe_ring(s, "start");
	compare(s);
	for (uint32_t i = 0; i < n; i++) {
		again[i]->state = again[i]->bio.state = VQB_BIO_PLUGGED;
		again[i]->bio.own.queue = NULL; /* as if just taken from a plug */
	}
	if (n)
		submit_list(s, again, n);
}

/* ---- episodes ---- */

/* Do so many ranges lie in one segment that is within limits, in each slot's part of the area? */
static bool ranges_fit(const struct blk_driver_sim *s, uint32_t n)
{
	uint64_t at = AREA_AT + 16 * (uint64_t)s->config.depth, last;

	for (uint32_t i = 0; n && i < s->config.depth; i++, at += 16 * (uint64_t)s->config.ranges) {
		last = at + 16 * (uint64_t)n - 1;
		if (16 * n > s->limits.max_segment_bytes || (at ^ last) & ~s->limits.seg_boundary)
			return false;
	}
	return true;
}

static uint32_t ranges_that_fit(const struct blk_driver_sim *s)
{
	uint32_t n = s->config.ranges;

	while (!ranges_fit(s, n))
		n--;
	return n;
}

static void configure(struct blk_driver_sim *s)
{
	struct vqb_requests_config config;

	feed_config(&s->feed, s->ring_config.ring.size - 2, &s->limits, &config);
	memset(&s->blk, 0, sizeof(s->blk));
	s->blk.struct_size = sizeof(s->blk);
	s->blk.capacity = config.capacity;
	s->blk.block_size = s->limits.block_size;
	s->config.struct_size = sizeof(s->config);
	s->config.ring = s->ring;
	s->config.area.host = s->area;
	s->config.area.addr = AREA_AT;
	s->config.area.bytes = sizeof(s->area);
	s->config.features = config.features;
	s->config.limits = &s->blk;
	s->config.mapping = &s->limits;
	s->config.path = config.path;
	s->config.flags = config.flags;
	s->config.ranges = config.max_ranges;
	s->config.window = config.window;
	s->segments = s->limits.max_segments;
	config.max_ranges = ranges_that_fit(s);
	model_configure(&s->model, 0, &config);
	feed_faults(&s->feed, 0);
}

static void make_ring(struct blk_driver_sim *s)
{
	struct vqb_driver_config *c = &s->ring_config;

	memset(c, 0, sizeof(*c));
	c->struct_size = sizeof(*c);
	c->ring.size = 4u << roll(s, 7);
	c->ring.features = VQB_FEATURE(VQB_F_VERSION_1);
	if (one_in(s, 2))
		c->ring.features |= VQB_FEATURE(VQB_F_EVENT_IDX);
	if (one_in(s, 2)) {
		c->ring.features |= VQB_FEATURE(VQB_F_INDIRECT_DESC);
		c->tables.host = s->tables;
		c->tables.addr = TABLES_AT;
		c->tables.bytes = sizeof(s->tables) >> roll(s, 4);
		c->max_table = 2 + roll(s, TABLE_LENGTH);
	}
	same(s->run, vqb_ring_place(&c->ring, s->block, 64), VQB_OK);
	same(s->run, vqb_driver_init(s->ring_mem, sizeof(s->ring_mem), c, &s->ring), VQB_OK);
	s->ring_seen = VQB_OK;
}

void blk_driver_sim_open(struct blk_driver_sim *s, struct run *run)
{
	static const unsigned usual[8] = { 30, 12, 40, 30, 6, 1, 1, 2 };

	s->run = run;
	model_open(&s->model, run);
	feed_open(&s->feed, &s->model);
	for (uint32_t i = 0; i < 8; i++)
		s->weight[i] = usual[i] * (1 + roll(s, one_in(s, 4) ? 12 : 3));
	make_ring(s);
	open_ring(s);
	memset(&s->config, 0, sizeof(s->config));
	s->config.clock = feed_clock;
	s->config.context = &s->feed;
	s->config.depth = one_in(s, 3) ? s->raw.size : 1 + roll(s, s->raw.size);
	configure(s);
	same(s->run, vqb_blk_driver_init(s->mem, sizeof(s->mem), &s->config, &s->drv), VQB_OK);
	compare(s);
}

/* Until nothing is out; the disk then is what the bios came to. */
static void drain(struct blk_driver_sim *s)
{
	run_operation(s->run, "drain");
	if (s->spoilt || s->state)
		reset(s);
	if (s->model.queue[0].outstanding)
		same(s->run, vqb_blk_set_path(s->drv, 0), VQB_E_BUSY);
	while (s->model.queue[0].outstanding) {
		for (uint32_t i = 0; i < s->outs; i++)
			if (!s->out[i].completed)
				complete(s, i);
		reap(s);
	}
	model_compare_disk(&s->model, 0);
}

/* Other limits, with no more segments and ranges than there is room for. */
static void reconfigure(struct blk_driver_sim *s)
{
	uint32_t path = s->model.queue[0].path;
	struct vqb_requests_config config;
	struct vqb_limits limits;

	feed_config(&s->feed, s->segments, &limits, &config);
	s->limits = limits;
	s->blk.capacity = config.capacity;
	s->blk.block_size = limits.block_size;
	s->config.features = config.features;
	s->config.flags = config.flags;
	same(s->run, vqb_blk_driver_configure(s->drv, &s->config), VQB_OK);
	config.max_ranges = ranges_that_fit(s);
	config.path = path;
	config.window = s->config.window;
	model_configure(&s->model, 0, &config);
	feed_faults(&s->feed, 0);
}

static void rest(struct blk_driver_sim *s)
{
	drain(s);
	if (one_in(s, 2))
		reconfigure(s);
	if (one_in(s, 2)) {
		s->config.path = s->model.queue[0].path = roll(s, 3);
		same(s->run, vqb_blk_set_path(s->drv, s->config.path), VQB_OK);
	}
	if (one_in(s, 4)) {
		vqb_blk_driver_clear_counters(s->drv);
		memset(&s->model.queue[0].count, 0, sizeof(s->model.queue[0].count));
	}
}

void blk_driver_sim_step(struct blk_driver_sim *s)
{
	if (s->model.queue[0].logged + s->model.bios >= MODEL_LOG) {
		rest(s);
		return;
	}
	switch (run_pick(s->run, s->weight, 8)) {
	case 0:
		submit_some(s);
		break;
	case 1:
		submit_as_list(s);
		break;
	case 2:
		complete_some(s);
		break;
	case 3:
		reap(s);
		break;
	case 4:
		cancel_one(s);
		break;
	case 5:
		if (one_in(s, 10))
			break_ring(s);
		break;
	case 6:
		if (s->state || s->spoilt || one_in(s, 20))
			reset(s);
		break;
	default:
		if (one_in(s, 4))
			rest(s);
		break;
	}
}

void blk_driver_sim_close(struct blk_driver_sim *s)
{
	const struct model *m = &s->model;

	drain(s);
	s->bios += m->orders;
	s->sent += m->sent;
	s->shared += m->shared;
	s->parts += m->parts;
	s->errors += m->errors;
	s->longest = s->longest > m->longest ? s->longest : m->longest;
}
