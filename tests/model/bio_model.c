/* SPDX-License-Identifier: BSD-3-Clause */
/* bio_model.c: see bio_model.h. */
#include "bio_model.h"

#include "../block/segment_model.h"

/* What lies on the disk; written data begins at FIRST_TAG. */
enum { UNKNOWN, DISCARDED, ERASED, ZEROED, UNMAPPED, BLANK, STALE, FIRST_TAG = 16 };

/* ---- set up ---- */

void model_open(struct model *m, struct run *run)
{
	memset(m, 0, sizeof(*m));
	m->run = run;
	m->tag = FIRST_TAG;
	m->bios = random_one_in(&run->random, 8) ? MODEL_BIOS : 8 + random_below(&run->random, 48);
	for (uint32_t i = 0; i < MODEL_MEMORY_UNITS; i++)
		m->owner[i] = MODEL_NOBODY;
	for (uint32_t i = 0; i < MODEL_BIOS; i++)
		m->bio[i].queue = MODEL_NOBODY;
	for (uint32_t q = 0; q < MODEL_QUEUES; q++)
		for (uint32_t i = 0; i < MODEL_DISK_UNITS; i++)
			m->queue[q].disk[i] = m->queue[q].reference[i] = BLANK;
}

void model_configure(struct model *m, uint32_t queue, const struct vqb_requests_config *config)
{
	struct model_queue *q = &m->queue[queue];

	q->limits = *config->limits;
	q->features = config->features;
	q->capacity = config->capacity;
	q->path = config->path;
	q->flags = config->flags;
	q->max_ranges = config->max_ranges;
	q->room = config->window ? config->window : VQB_REQUESTS_WINDOW;
	q->full = q->changed = false;
}

void model_change_limits(struct model *m, uint32_t queue, const struct vqb_requests_config *config)
{
	struct model_queue *q = &m->queue[queue];

	q->limits = *config->limits;
	q->max_ranges = config->max_ranges;
	q->changed = q->outstanding;
}

/* A window of its own. */
#define WITH_NOBODY UINT64_MAX

/* ---- the list of those that wait ---- */

static void insert(struct model_queue *q, uint32_t at, struct model_bio *b)
{
	memmove(&q->wait[at + 1], &q->wait[at], (q->waits - at) * sizeof(q->wait[0]));
	q->wait[at] = b;
	q->waits++;
}

static uint32_t place_of(const struct model_queue *q, const struct model_bio *b)
{
	uint32_t i;

	for (i = 0; i < q->waits && q->wait[i] != b; i++)
		;
	return i;
}

static void take_out(struct model_queue *q, const struct model_bio *b)
{
	uint32_t at = place_of(q, b);

	if (at == q->waits)
		return;
	q->waits--;
	memmove(&q->wait[at], &q->wait[at + 1], (q->waits - at) * sizeof(q->wait[0]));
	if (!q->waits)
		q->full = false;
}

/* Before all others but `at`, as something of it was sent. */
static void put_first(struct model_queue *q, uint32_t at, struct model_bio *b)
{
	insert(q, at, b);
	b->state = VQB_BIO_PARTLY;
	b->at = 0;
	b->window = WITH_NOBODY;
	b->behind = NULL;
}

/* ---- submit ---- */

static bool is_write(uint8_t op)
{
	return op == VQB_BLK_OUT || model_is_range(op);
}

static bool has(const struct model_queue *q, unsigned bit)
{
	return q->features & VQB_FEATURE(bit);
}

/* Does the device do that at all? */
static bool is_supported(const struct model_queue *q, uint8_t op)
{
	if (is_write(op) && has(q, VQB_BLK_F_RO))
		return false;
	if (model_is_range(op))
		return q->max_ranges && model_ranges(q, op)->max_ranges;
	if (op == VQB_BLK_FLUSH)
		return has(q, VQB_BLK_F_FLUSH);
	if (op == VQB_BLK_GET_LIFETIME)
		return has(q, VQB_BLK_F_LIFETIME);
	return op == VQB_BLK_IN || op == VQB_BLK_OUT || op == VQB_BLK_GET_ID;
}

static uint8_t flags_of(uint8_t op)
{
	uint8_t flags = VQB_BIO_NOMERGE;

	if (op == VQB_BLK_OUT || op == VQB_BLK_WRITE_ZEROES)
		flags |= VQB_BIO_FUA | VQB_BIO_PREFLUSH;
	return op == VQB_BLK_WRITE_ZEROES ? flags | VQB_BIO_UNMAP : flags;
}

static bool place_is_good(const struct model_queue *q, uint64_t sector, uint64_t bytes)
{
	uint64_t block = q->limits.block_size;

	return bytes && !(bytes % block) && !(sector * 512 % block) && sector < q->capacity &&
	       bytes / 512 <= q->capacity - sector;
}

static uint64_t data_bytes(const struct vqb_bio *bio)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < bio->nvec; i++)
		bytes += bio->vec[i].len;
	return bytes;
}

static bool form_is_good(const struct model_queue *q, const struct vqb_bio *bio)
{
	uint64_t bytes = data_bytes(bio);

	if (bio->zero || bio->flags & ~flags_of(bio->op))
		return false;
	for (uint32_t i = 0; i < bio->nvec; i++)
		if (!bio->vec[i].len || bio->vec[i].zero ||
		    bio->vec[i].addr + (bio->vec[i].len - 1) < bio->vec[i].addr)
			return false;
	if (model_is_range(bio->op))
		return !bytes && bio->sectors < UINT32_MAX &&
		       place_is_good(q, bio->sector, bio->sectors * 512);
	if (bio->op == VQB_BLK_IN || bio->op == VQB_BLK_OUT)
		return place_is_good(q, bio->sector, bytes);
	return bytes == (bio->op == VQB_BLK_GET_ID ? 20 : bio->op == VQB_BLK_GET_LIFETIME ? 6 : 0);
}

/* Data from unit `at` on, behind what the list has. */
static void add_units(struct model_list *list, const struct model_bio *b, uint64_t at)
{
	uint32_t vectors = list->units ? list->vector[list->units - 1] + 1 : 0;

	for (; at < b->units; at++, list->units++) {
		list->addr[list->units] = b->addr[at];
		list->vector[list->units] = vectors + b->vector[at];
	}
}

static struct model_list list;

static void begin_list(void)
{
	list.unit = MODEL_UNIT;
	list.units = 0;
	list.wrong = false;
}

/* Can every block of it be sent? Else with which answer not? */
static int32_t gets_through(const struct model_queue *q, const struct model_bio *b)
{
	uint32_t from = 0;

	if (b->bio.op != VQB_BLK_IN && b->bio.op != VQB_BLK_OUT)
		return VQB_OK;
	begin_list();
	add_units(&list, b, 0);
	while (from < list.units) {
		struct model_answer a = model_next(&q->limits, &list, from,
						   b->bio.sector + from / MODEL_SECTOR_UNITS,
						   q->limits.max_segments);
		if (a.status)
			return a.status;
		from += a.units;
	}
	return VQB_OK;
}

static void make_steps(const struct model_queue *q, struct model_bio *b)
{
	bool flushes = has(q, VQB_BLK_F_FLUSH) && !(q->flags & VQB_REQUESTS_WRITE_THROUGH);

	b->steps = 0;
	if (flushes && b->bio.flags & VQB_BIO_PREFLUSH)
		b->step_op[b->steps++] = VQB_BLK_FLUSH;
	b->step_op[b->steps++] = b->bio.op;
	if (flushes && b->bio.flags & VQB_BIO_FUA)
		b->step_op[b->steps++] = VQB_BLK_FLUSH;
}

/* How it is entered into the log of what the reference has to carry out. */
static void enter(struct model *m, struct model_queue *q, struct model_bio *b)
{
	struct model_log *log = &q->log[q->logged];

	if (!model_has_sectors(b->bio.op))
		return;
	holds(m->run, q->logged < MODEL_LOG + 2 * MODEL_BIOS);
	b->log = q->logged++;
	memset(log, 0, offsetof(struct model_log, read));
	log->op = b->bio.op;
	log->flags = b->bio.flags;
	log->sector = b->bio.sector;
	log->size = b->size;
	log->tag = m->tag;
	for (uint32_t i = 0; i < b->units; i++)
		m->memory[(b->addr[i] - MODEL_MEMORY) / MODEL_UNIT] =
			b->bio.op == VQB_BLK_OUT ? m->tag++ : STALE;
}

/* What may be answered of it: where several things are wrong, it is any of them. */
static bool may_answer(const struct model_queue *q, const struct model_bio *b, int32_t status)
{
	bool supported = is_supported(q, b->bio.op), good = form_is_good(q, &b->bio);

	if (supported && good)
		return status == gets_through(q, b);
	return (status == VQB_E_UNSUPP && !supported) || (status == VQB_E_INVALID && !good) ||
	       (status == VQB_E_TOOBIG && !good);
}

void model_submitted(struct model *m, uint32_t queue, struct model_bio *b, int32_t status)
{
	struct model_queue *q = &m->queue[queue];

	if (b->state != VQB_BIO_IDLE && b->state != VQB_BIO_PLUGGED) {
		same(m->run, status, VQB_E_BUSY);
		return;
	}
	holds(m->run, may_answer(q, b, status));
	if (status) {
		model_refused(m, b, status);
		return;
	}
	b->size = model_is_range(b->bio.op) ? b->bio.sectors : b->units ? b->units : 1;
	b->queue = (int32_t)queue;
	b->state = VQB_BIO_WAITING;
	b->event = EVENT_SUBMIT;
	b->step = b->parts = 0;
	b->at = 0;
	b->error = b->status = VQB_OK;
	b->again = b->alone = b->touched = b->waited = false;
	b->window = 0;
	b->behind = NULL;
	b->order = ++m->orders;
	b->submitted = ++m->clock;
	b->data_sent = b->data_done = 0;
	make_steps(q, b);
	enter(m, q, b);
	insert(q, q->waits, b);
	q->outstanding++;
	q->count.bios++;
}

void model_refused(struct model *m, struct model_bio *b, int32_t status)
{
	same(m->run, b->bio.status, status);
	b->state = VQB_BIO_IDLE;
	b->event = EVENT_REFUSE;
	model_free_memory(m, b);
}

void model_free_memory(struct model *m, struct model_bio *b)
{
	for (uint32_t i = 0; i < b->units; i++)
		m->owner[(b->addr[i] - MODEL_MEMORY) / MODEL_UNIT] = MODEL_NOBODY;
	b->units = 0;
}

/* ---- a request: whose is it? ---- */

struct taken {
	struct model_bio *bio[MODEL_BIOS];
	uint64_t n[MODEL_BIOS]; /* of size */
	uint32_t bios;
};

static uint8_t op_now(const struct model_bio *b)
{
	return b->step_op[b->step];
}

static uint64_t rest(const struct model_bio *b)
{
	return op_now(b) == VQB_BLK_FLUSH ? 1 : b->size - b->at;
}

static uint64_t sector_now(const struct model_bio *b)
{
	return b->bio.sector + (model_is_range(b->bio.op) ? b->at : b->at / MODEL_SECTOR_UNITS);
}

static bool waits(const struct model_queue *q, const struct model_bio *b)
{
	return place_of(q, b) < q->waits;
}

static struct model_bio *owner_of(struct model *m, uint64_t addr)
{
	uint64_t unit = (addr - MODEL_MEMORY) / MODEL_UNIT;

	holds(m->run, addr >= MODEL_MEMORY && unit < MODEL_MEMORY_UNITS);
	holds(m->run, m->owner[unit] != MODEL_NOBODY);
	return &m->bio[m->owner[unit]];
}

static void take(struct model *m, struct model_queue *q, struct taken *t, struct model_bio *b)
{
	holds(m->run, waits(q, b));
	for (uint32_t i = 0; i < t->bios; i++)
		holds(m->run, t->bio[i] != b);
	t->bio[t->bios] = b;
	t->n[t->bios++] = 0;
}

/* Unit by unit along the table; each bio from where it stands, the next one where it ends. */
static void take_data(struct model *m, struct model_queue *q, const struct vqb_request *r,
		      const struct vqb_segment *table, struct taken *t)
{
	uint64_t sector = r->sector, bytes = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		bytes += table[i].len;
		holds(m->run, table[i].len && !table[i].zero && !(table[i].len % MODEL_UNIT));
		for (uint64_t at = 0; at < table[i].len; at += MODEL_UNIT) {
			uint32_t last = t->bios - 1;
			struct model_bio *b;

			if (!t->bios || t->n[last] == rest(t->bio[last])) {
				take(m, q, t, owner_of(m, table[i].addr + at));
				last = t->bios - 1;
				same(m->run, sector_now(t->bio[last]), sector);
				sector += rest(t->bio[last]) / MODEL_SECTOR_UNITS;
			}
			b = t->bio[last];
			same(m->run, table[i].addr + at, b->addr[b->at + t->n[last]]);
			t->n[last]++;
		}
	}
	same(m->run, r->bytes, bytes);
}

/* The one that waits longest of those that a range beginning at `sector` can be of. */
static struct model_bio *owner_of_range(const struct model_queue *q, const struct taken *t,
					uint8_t op, uint64_t sector)
{
	for (uint32_t i = 0; i < q->waits; i++) {
		bool there = false;

		for (uint32_t k = 0; k < t->bios; k++)
			there |= t->bio[k] == q->wait[i];
		if (!there && op_now(q->wait[i]) == op && sector_now(q->wait[i]) == sector)
			return q->wait[i];
	}
	return NULL;
}

static void take_ranges(struct model *m, struct model_queue *q, const struct vqb_request *r,
			const struct vqb_segment *table, struct taken *t)
{
	const struct vqb_range_limits *l = model_ranges(q, r->op);

	holds(m->run, r->n && r->n <= l->max_ranges && r->n <= q->max_ranges);
	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t sector = table[i].addr, left = table[i].len;

		holds(m->run, left && left <= l->max_sectors && !table[i].zero);
		while (left) {
			uint32_t last = t->bios - 1;
			uint64_t some;

			if (!t->bios || t->n[last] == rest(t->bio[last])) {
				struct model_bio *b = owner_of_range(q, t, r->op, sector);

				holds(m->run, b);
				take(m, q, t, b);
				last = t->bios - 1;
			}
			same(m->run, sector_now(t->bio[last]) + t->n[last], sector);
			some = rest(t->bio[last]) - t->n[last];
			some = some < left ? some : left;
			t->n[last] += some;
			sector += some;
			left -= some;
		}
	}
	/* Where it was cut it was at a block. */
	holds(m->run, !(t->n[t->bios - 1] * 512 % q->limits.block_size));
	same(m->run, r->sector, 0);
}

static void take_other(struct model *m, struct model_queue *q, const struct vqb_request *r,
		       const struct vqb_segment *table, struct taken *t)
{
	same(m->run, r->sector, 0);
	if (r->op == VQB_BLK_FLUSH) {
		same(m->run, r->n, 0);
		holds(m->run, q->waits);
		take(m, q, t, q->wait[0]);
	} else {
		same(m->run, r->n, 1);
		take(m, q, t, owner_of(m, table[0].addr));
		holds(m->run, table[0].addr == t->bio[0]->vec[0].addr);
		same(m->run, table[0].len, r->op == VQB_BLK_GET_ID ? 20 : 6);
	}
	t->n[0] = 1;
}

/* ---- a request: may it be? ---- */

static bool is_barrier(const struct model_bio *b)
{
	return b->bio.op == VQB_BLK_FLUSH ||
	       b->bio.flags & (VQB_BIO_FUA | VQB_BIO_PREFLUSH | VQB_BIO_NOMERGE);
}

static bool overlap(const struct model_bio *a, const struct model_bio *b)
{
	return model_has_sectors(a->bio.op) && model_has_sectors(b->bio.op) &&
	       a->bio.sector < b->bio.sector + model_sectors(b) &&
	       b->bio.sector < a->bio.sector + model_sectors(a);
}

static bool is_in(const struct taken *t, const struct model_bio *b)
{
	for (uint32_t i = 0; i < t->bios; i++)
		if (t->bio[i] == b)
			return true;
	return false;
}

static bool alike(const struct model_bio *a, const struct model_bio *b)
{
	return a->bio.op == b->bio.op && a->bio.flags == b->bio.flags &&
	       a->bio.ioprio == b->bio.ioprio;
}

/* Is there one bio behind the other on the disk, all of which wait, from the request to `to`? */
static bool leads_to(const struct model_queue *q, const struct taken *t, const struct model_bio *to)
{
	const struct model_bio *at = t->bio[t->bios - 1];

	if (!alike(at, to) || is_barrier(to) || to->alone || at->alone)
		return false;
	if (model_is_range(to->bio.op) &&
	    (q->changed || (q->max_ranges > 1 && model_ranges(q, to->bio.op)->max_ranges > 1)))
		return true;
	while (at != to) {
		const struct model_bio *next = NULL;

		for (uint32_t i = 0; i < q->waits && !next; i++)
			if (alike(q->wait[i], to) && !is_in(t, q->wait[i]) &&
			    q->wait[i]->bio.sector == at->bio.sector + model_sectors(at))
				next = q->wait[i];
		if (!next || next->bio.sector > to->bio.sector)
			return false;
		at = next;
	}
	return true;
}

/* Then it is not known here when it ends. */
static bool when_full_by_clock(const struct model *m, const struct model_queue *q)
{
	return m->ticking && q->path == VQB_PATH_MERGE_WHEN_FULL;
}

static bool may_share(const struct model *m, const struct model_queue *q, const struct model_bio *b)
{
	if (when_full_by_clock(m, q))
		return q->once_full;
	if (q->path == VQB_PATH_MERGE_WHEN_FULL)
		return m->exact ? q->full : b->waited;
	return q->path == VQB_PATH_REQUEST;
}

/*
 * Whoever is next goes, or is to follow right behind, in one of few requests; and nobody passes
 * what may not be passed.
 */
static void check_turn(struct model *m, struct model_queue *q, const struct taken *t)
{
	if (is_in(t, q->wait[0])) {
		q->passed = 0;
	} else {
		holds(m->run, may_share(m, q, q->wait[0]) && leads_to(q, t, q->wait[0]));
		holds(m->run, ++q->passed < MODEL_BIOS);
		m->passed++;
	}
	for (uint32_t i = 0; i < t->bios; i++)
		for (uint32_t k = 0; q->wait[k] != t->bio[i]; k++) {
			if (is_in(t, q->wait[k]))
				continue;
			holds(m->run, !is_barrier(q->wait[k]));
			holds(m->run, !overlap(q->wait[k], t->bio[i]));
			m->overtaken++;
		}
}

/* Each on its own, and all together. */
static void check_members(struct model *m, const struct model_queue *q, const struct vqb_request *r,
			  const struct taken *t)
{
	for (uint32_t i = 0; i < t->bios; i++) {
		const struct model_bio *b = t->bio[i];

		same(m->run, r->op, op_now(b));
		if (r->op == VQB_BLK_WRITE_ZEROES)
			same(m->run, r->flags, b->bio.flags & VQB_BIO_UNMAP);
		same(m->run, r->ioprio, b->bio.ioprio);
		if (t->bios == 1)
			continue;
		holds(m->run, !is_barrier(b) && !b->alone);
		holds(m->run, !i || b->state == VQB_BIO_WAITING);
		same(m->run, t->n[i], rest(b));
		holds(m->run, may_share(m, q, b));
		for (uint32_t k = 0; k < i; k++)
			holds(m->run, !overlap(t->bio[k], b));
	}
}

/* The table is what all of them come to, and within limits. */
static void check_data(struct model *m, const struct model_queue *q, const struct vqb_request *r,
		       const struct vqb_segment *table, const struct taken *t)
{
	const struct vqb_limits *l = &q->limits;
	struct model_answer a;

	begin_list();
	for (uint32_t i = 0; i < t->bios; i++)
		add_units(&list, t->bio[i], t->bio[i]->at);
	a = model_next(l, &list, 0, r->sector, l->max_segments);
	same(m->run, VQB_OK, a.status);
	same(m->run, r->bytes, a.units * (uint64_t)MODEL_UNIT);
	same(m->run, r->n, a.segments);
	holds(m->run, r->n <= l->max_segments && r->bytes <= (uint64_t)l->max_sectors * 512);
	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t first = table[i].addr, last = first + (table[i].len - 1);

		holds(m->run, table[i].len <= l->max_segment_bytes);
		holds(m->run, (first & ~l->seg_boundary) == (last & ~l->seg_boundary));
		holds(m->run, !i || !(first & l->virt_boundary));
		holds(m->run, i + 1 == r->n || !((last + 1) & l->virt_boundary));
	}
	if (l->chunk_sectors)
		same(m->run, r->sector / l->chunk_sectors,
		     (r->sector + r->bytes / 512 - 1) / l->chunk_sectors);
}

/* ---- a request: does it have all that it can? ---- */

static bool can_be_joined(const struct model_bio *b)
{
	return b->state == VQB_BIO_WAITING && model_has_sectors(b->bio.op) && !is_barrier(b) &&
	       !b->alone;
}

static bool has_several(const struct model_queue *q, const struct model_bio *b)
{
	return model_is_range(b->bio.op) && q->max_ranges > 1 &&
	       model_ranges(q, b->bio.op)->max_ranges > 1;
}

/* Who can share a request with `last`, of those that are looked at with it: who comes behind it. */
static struct model_bio *behind(const struct model_queue *q, const struct model_bio *last)
{
	bool several = has_several(q, last);
	struct model_bio *next = NULL;

	for (uint32_t i = 0; i < q->waits; i++) {
		struct model_bio *b = q->wait[i];

		if (b->window != last->window || b->bio.sector <= last->bio.sector ||
		    (several && b->bio.op != last->bio.op))
			continue;
		if (!next || b->bio.sector < next->bio.sector)
			next = b;
	}
	if (!next || !alike(last, next))
		return NULL;
	return several || next->bio.sector == last->bio.sector + model_sectors(last) ? next : NULL;
}

/* Those that are spared share with whom they were submitted right before or behind. */
static void make_run(struct model *m, struct model_queue *q)
{
	uint32_t n = 1;

	q->wait[0]->window = m->windows;
	for (; n < q->waits && n < VQB_REQUESTS_WINDOW; n++) {
		struct model_bio *last = q->wait[n - 1], *next = q->wait[n];

		if (!can_be_joined(last) || !can_be_joined(next) || !alike(last, next) ||
		    next->bio.sector != last->bio.sector + model_sectors(last))
			break;
		last->behind = next;
		next->window = m->windows;
	}
	q->spared -= n < q->spared ? n : q->spared;
	m->runs++;
}

/*
 * Each time that 32 or more had no neighbour but such as were submitted in order, 128 others, or 3,
 * 7 and then 15 times as many, are spared.
 */
static void learn(struct model_queue *q)
{
	if (q->looked < 32)
		return;
	if (q->found) {
		q->misses = 0;
	} else {
		q->misses += q->misses < 4;
		q->spared = 128 * ((1u << q->misses) - 1);
	}
	q->looked = q->found = 0;
}

void model_made(struct model *m, uint32_t queue)
{
	struct model_queue *q = &m->queue[queue];
	uint32_t n = 0, most = q->misses < 4 || q->room < 32 ? q->room : 32;

	if (!m->apart || when_full_by_clock(m, q) || !q->waits || q->wait[0]->window ||
	    !may_share(m, q, q->wait[0]))
		return;
	m->windows++;
	if ((q->spared || q->room == 1) && !has_several(q, q->wait[0])) {
		make_run(m, q);
		return;
	}
	q->wait[0]->window = WITH_NOBODY;
	for (uint32_t i = 0; i < q->waits && i < most && can_be_joined(q->wait[i]); i++)
		q->wait[i]->window = m->windows;
	for (; n < q->waits && q->wait[n]->window == m->windows; n++) {
		struct model_bio *b = behind(q, q->wait[n]);

		q->wait[n]->behind = b;
		q->found += b && (n + 1 == q->waits || b != q->wait[n + 1]);
	}
	q->looked += n ? n - 1 : 0;
	learn(q);
}

void model_full(struct model *m, uint32_t queue)
{
	struct model_queue *q = &m->queue[queue];
	struct model_bio *oldest = q->wait[0];

	q->full = q->once_full = true;
	if (q->waits)
		oldest->event = EVENT_NO_ROOM;
	/* Who was looked at with nobody else is looked at again, with those that came since. */
	if (q->waits && (q->waits == 1 || !q->wait[1]->window)) {
		oldest->window = 0;
		oldest->behind = NULL;
	}
}

static bool fits(const struct model_queue *q, const struct vqb_request *r, const struct taken *t,
		 const struct model_bio *next)
{
	const struct vqb_range_limits *l = model_ranges(q, r->op);
	struct model_answer a;

	if (model_is_range(r->op)) /* as a range of its own, that is */
		return r->n < l->max_ranges && r->n < q->max_ranges && next->size <= l->max_sectors;
	begin_list();
	for (uint32_t i = 0; i < t->bios; i++)
		add_units(&list, t->bio[i], t->bio[i]->at);
	add_units(&list, next, 0);
	a = model_next(&q->limits, &list, 0, r->sector, q->limits.max_segments);
	return !a.status && a.units == list.units;
}

/* Whoever is behind it on the disk, waits, and fits, is in it. */
static void check_all_in(struct model *m, const struct model_queue *q, const struct vqb_request *r,
			 const struct taken *t)
{
	const struct model_bio *last = t->bio[t->bios - 1], *next;

	if (!m->exact || !m->apart || q->changed || !last->window ||
	    t->n[t->bios - 1] != rest(last))
		return;
	next = last->behind;
	if (!next || next->window != last->window || !waits(q, next))
		return;
	m->ends++;
	holds(m->run, !fits(q, r, t, next));
}

/* ---- a request: carried out ---- */

static uint32_t range_tag(uint8_t op, uint8_t flags)
{
	if (op == VQB_BLK_WRITE_ZEROES)
		return flags & VQB_BIO_UNMAP ? UNMAPPED : ZEROED;
	return op == VQB_BLK_DISCARD ? DISCARDED : ERASED;
}

/* The first `most` units of it: all, or what came before an error. */
static void carry_out(struct model *m, struct model_queue *q, const struct vqb_request *r,
		      const struct vqb_segment *table, uint64_t most)
{
	uint32_t *disk = &q->disk[r->sector * MODEL_SECTOR_UNITS];

	for (uint32_t i = 0; i < r->n; i++) {
		bool range = model_is_range(r->op);
		uint64_t units = range ? table[i].len * (uint64_t)MODEL_SECTOR_UNITS
				       : table[i].len / MODEL_UNIT;
		uint64_t at = range ? 0 : (table[i].addr - MODEL_MEMORY) / MODEL_UNIT;

		if (range)
			disk = &q->disk[table[i].addr * MODEL_SECTOR_UNITS];
		for (; units && most; units--, most--, disk++, at++)
			if (range)
				*disk = range_tag(r->op, r->flags);
			else if (r->op == VQB_BLK_OUT)
				*disk = m->memory[at];
			else
				m->memory[at] = *disk;
	}
}

static int32_t fault_in(const struct model_queue *q, uint64_t sector, uint64_t sectors)
{
	for (uint64_t s = sector; s < sector + sectors; s++)
		if (q->bad[s])
			return q->bad[s];
	return VQB_OK;
}

static int32_t fault_of(struct model *m, const struct model_queue *q, const struct vqb_request *r,
			const struct vqb_segment *table)
{
	int32_t status = VQB_OK;

	if (!model_has_sectors(r->op))
		return m->flush_fails && random_one_in(&m->run->random, m->flush_fails) ? VQB_E_IO
											: VQB_OK;
	if (!model_is_range(r->op))
		return fault_in(q, r->sector, r->bytes / 512);
	for (uint32_t i = 0; i < r->n && !status; i++)
		status = fault_in(q, table[i].addr, table[i].len);
	return status;
}

/* ---- sent ---- */

static void count_sent(struct model *m, struct model_queue *q, const struct taken *t)
{
	const struct model_bio *b = t->bio[0];

	m->sent++;
	m->shared += t->bios > 1;
	if (t->bios > m->longest)
		m->longest = t->bios;
	q->count.requests++;
	q->count.merged += t->bios - 1;
	if (op_now(b) == VQB_BLK_FLUSH && b->bio.op != VQB_BLK_FLUSH)
		q->count.flushes++;
	else if (t->n[0] != b->size) {
		q->count.parts++;
		m->parts++;
	}
}

/* A write with PREFLUSH has to find a flush that began after it was submitted, and is over. */
static void check_preflush(struct model *m, const struct model_queue *q, struct model_bio *b)
{
	if (b->steps > 1 && b->bio.flags & VQB_BIO_PREFLUSH)
		holds(m->run, q->last_flush > b->submitted);
}

static void move_on(struct model *m, struct model_queue *q, struct model_bio *b, uint64_t n)
{
	bool all = n == rest(b);

	if (op_now(b) == b->bio.op) {
		check_preflush(m, q, b);
		b->data_sent = m->clock;
	}
	b->event = all ? EVENT_SEND : EVENT_SEND_PART;
	b->state = all ? VQB_BIO_SENT : VQB_BIO_PARTLY;
	b->at += n;
	b->parts++;
	b->touched = true;
	if (all)
		take_out(q, b);
}

void model_sent(struct model *m, uint32_t queue, const struct vqb_request *r,
		const struct vqb_segment *table, struct model_request *sent)
{
	struct model_queue *q = &m->queue[queue];
	struct taken t = { .bios = 0 };

	m->clock++;
	holds(m->run, q->waits);
	if (model_is_range(r->op))
		take_ranges(m, q, r, table, &t);
	else if (model_has_sectors(r->op))
		take_data(m, q, r, table, &t);
	else
		take_other(m, q, r, table, &t);
	if (r->bios)
		same(m->run, r->bios, t.bios);
	check_turn(m, q, &t);
	check_members(m, q, r, &t);
	if (model_has_sectors(r->op) && !model_is_range(r->op))
		check_data(m, q, r, table, &t);
	if (model_has_sectors(r->op))
		check_all_in(m, q, r, &t);

	sent->out = true;
	sent->queue = queue;
	sent->op = r->op;
	sent->sent = m->clock;
	sent->bios = t.bios;
	sent->first = r->bio;
	sent->status = fault_of(m, q, r, table);
	if (model_has_sectors(r->op))
		carry_out(m, q, r, table,
			  sent->status ? random_below(&m->run->random, 64) : UINT64_MAX);
	count_sent(m, q, &t);
	for (uint32_t i = 0; i < t.bios; i++) {
		sent->bio[i] = t.bio[i];
		sent->last[i] = t.n[i] == rest(t.bio[i]);
		move_on(m, q, t.bio[i], t.n[i]);
		if (t.bios > 1)
			t.bio[i]->event = EVENT_SHARE;
	}
}

void model_unsendable(struct model *m, uint32_t queue, struct vqb_bio *bio, int32_t status,
		      struct model_request *sent)
{
	struct model_queue *q = &m->queue[queue];
	struct model_bio *b = model_of(bio);
	struct taken t = { .bio = { b }, .n = { rest(b) }, .bios = 1 };
	struct model_answer a = { .status = VQB_E_TOOBIG };
	bool is_range = model_is_range(op_now(b));

	holds(m->run, waits(q, b) && q->changed && model_has_sectors(op_now(b)));
	check_turn(m, q, &t);
	if (is_range) {
		holds(m->run, !q->max_ranges || !model_ranges(q, b->bio.op)->max_ranges);
	} else {
		begin_list();
		add_units(&list, b, b->at);
		a = model_next(&q->limits, &list, 0, sector_now(b), q->limits.max_segments);
	}
	same(m->run, status, a.status);
	q->count.requests++;
	q->count.parts += !is_range && b->at;
	sent->queue = queue;
	sent->op = op_now(b);
	sent->bios = 1;
	sent->bio[0] = b;
	sent->status = status;
	sent->first = bio;
	move_on(m, q, b, rest(b));
}

/* ---- done ---- */

static void keep_log(struct model *m, struct model_queue *q, struct model_bio *b)
{
	struct model_log *log = &q->log[b->log];

	if (!model_has_sectors(b->bio.op))
		return;
	log->over = true;
	log->known = !b->status;
	log->nothing = !b->touched;
	if (b->status || b->bio.op != VQB_BLK_IN)
		return;
	for (uint32_t i = 0; i < b->units; i++)
		log->read[i] = m->memory[(b->addr[i] - MODEL_MEMORY) / MODEL_UNIT];
}

/* Without the steps that led here: is that the right end of such a bio? */
static void check_end(struct model *m, const struct model_queue *q, const struct model_bio *b)
{
	bool flushes = has(q, VQB_BLK_F_FLUSH) && !(q->flags & VQB_REQUESTS_WRITE_THROUGH);
	int32_t fault = model_has_sectors(b->bio.op) ? fault_in(q, b->bio.sector, model_sectors(b))
						     : VQB_OK;

	if (b->status == VQB_OK) {
		same(m->run, fault, VQB_OK);
		if (b->bio.op == VQB_BLK_FLUSH)
			holds(m->run, q->last_flush > b->submitted);
		if (flushes && b->bio.flags & VQB_BIO_FUA)
			holds(m->run, q->last_flush > b->data_done);
	} else if (b->status == VQB_E_CANCELLED) {
		holds(m->run, !b->touched);
	} else if (b->status == VQB_E_IO || b->status == VQB_E_UNSUPP) {
		holds(m->run, fault || m->flush_fails);
	}
}

static void finish(struct model *m, struct model_bio *b, int32_t status)
{
	struct model_queue *q = &m->queue[b->queue];

	b->status = status;
	b->state = VQB_BIO_IDLE;
	q->outstanding--;
	if (!q->outstanding)
		q->changed = false;
	take_out(q, b);
	keep_log(m, q, b);
	check_end(m, q, b);
	m->errors += status == VQB_E_IO || status == VQB_E_UNSUPP;
	m->finished[m->finishes] = b;
	m->finished_by[m->finishes++] = m->clock;
}

static void hand_back(struct model *m, struct model_queue *q, struct model_bio *b, int32_t status)
{
	q->count.done++;
	q->count.errors += status != VQB_OK;
	finish(m, b, status);
}

static void end_of_done(struct model *m, struct model_queue *q, struct model_bio *b, uint8_t event)
{
	b->event = event;
	hand_back(m, q, b, b->error);
}

/* A part failed for good: what is left of the bio is not sent any more. */
static void drop_rest(struct model *m, struct model_queue *q, struct model_bio *b, bool reset)
{
	bool waited = waits(q, b);

	if (b->parts) {
		b->event = waited ? EVENT_PART_FAILED : EVENT_PART_DONE;
		b->state = VQB_BIO_SENT;
		take_out(q, b);
		return;
	}
	end_of_done(m, q, b, reset ? EVENT_ABANDON : waited ? EVENT_PART_FAILED_LAST : EVENT_DONE);
}

/* `again`: how many of the same request wait again, or go on. */
static void part_done(struct model *m, struct model_bio *b, int32_t status, bool shared,
		      uint32_t *again)
{
	struct model_queue *q = &m->queue[b->queue];

	b->parts--;
	if (op_now(b) == b->bio.op)
		b->data_done = m->clock;
	if (status && status != VQB_E_AGAIN && shared)
		b->again = true;
	else if (status && !b->error)
		b->error = status;
	if (b->error) {
		drop_rest(m, q, b, status == VQB_E_AGAIN);
	} else if (b->parts || waits(q, b)) {
		b->event = EVENT_PART_DONE;
	} else if (b->again) {
		b->again = false;
		b->alone = true;
		b->event = EVENT_AGAIN;
		q->count.retried++;
		put_first(q, (*again)++, b);
	} else if (b->step + 1 < b->steps) {
		b->step++;
		b->event = EVENT_STEP;
		put_first(q, (*again)++, b);
	} else {
		end_of_done(m, q, b, EVENT_DONE);
	}
}

void model_done(struct model *m, struct model_request *sent, bool reset)
{
	struct model_queue *q = &m->queue[sent->queue];
	int32_t status = reset ? VQB_E_AGAIN : sent->status;
	uint32_t again = 0;

	m->clock++;
	sent->out = false;
	if (sent->op == VQB_BLK_FLUSH && !status && sent->sent > q->last_flush)
		q->last_flush = sent->sent;
	for (uint32_t i = 0; i < sent->bios; i++)
		part_done(m, sent->bio[i], status, sent->bios > 1, &again);
}

int32_t model_cancel(struct model *m, uint32_t queue, struct model_bio *b)
{
	struct model_queue *q = &m->queue[queue];

	if (b->state == VQB_BIO_IDLE || b->state == VQB_BIO_PLUGGED || b->queue != (int32_t)queue)
		return VQB_E_INVALID;
	b->event = EVENT_CANCEL;
	if (b->state != VQB_BIO_WAITING)
		return VQB_E_LATE;
	q->count.cancelled++;
	finish(m, b, VQB_E_CANCELLED);
	return VQB_OK;
}

void model_abandon(struct model *m, uint32_t queue)
{
	struct model_queue *q = &m->queue[queue];

	while (q->waits) {
		struct model_bio *b = q->wait[0];

		b->event = EVENT_ABANDON;
		hand_back(m, q, b,
			  b->state == VQB_BIO_WAITING ? VQB_E_CANCELLED
			  : b->error                  ? b->error
						      : VQB_E_AGAIN);
	}
}

/* ---- compared ---- */

void model_keep(struct model *m, struct vqb_bio *bio, uint64_t *last)
{
	struct model_bio *b = model_of(bio);
	uint32_t i;

	for (i = 0; i < m->finishes && m->finished[i] != b; i++)
		;
	holds(m->run, i < m->finishes);
	same(m->run, bio->status, b->status);
	holds(m->run, m->finished_by[i] >= *last);
	*last = m->finished_by[i];
	m->finishes--;
	memmove(&m->finished[i], &m->finished[i + 1], (m->finishes - i) * sizeof(m->finished[0]));
	memmove(&m->finished_by[i], &m->finished_by[i + 1],
		(m->finishes - i) * sizeof(m->finished_by[0]));
}

void model_handed_back(struct model *m, struct vqb_bio *bio, uint64_t *last)
{
	model_keep(m, bio, last);
	model_free_memory(m, model_of(bio));
}

void model_compare(struct model *m)
{
	for (uint32_t i = 0; i < m->bios; i++) {
		struct model_bio *b = &m->bio[i];

		if (b->bio.state != b->state)
			fprintf(stderr, "bio %u: op %u flags %u\n", i, b->bio.op, b->bio.flags);
		same(m->run, b->bio.state, b->state);
		if (m->observe && (b->event || b->seen != b->bio.state))
			m->observe(m, b, b->bio.state);
		b->seen = b->bio.state;
		b->event = EVENT_NONE;
		if (b->state == VQB_BIO_WAITING)
			b->waited = true;
	}
	same(m->run, m->finishes, 0);
}

static void replay(struct model *m, struct model_queue *q, const struct model_log *log)
{
	uint32_t *at = &q->reference[log->sector * MODEL_SECTOR_UNITS];
	uint64_t units = log->size * (model_is_range(log->op) ? MODEL_SECTOR_UNITS : 1);

	holds(m->run, log->over);
	for (uint64_t i = 0; i < units; i++) {
		if (log->op == VQB_BLK_IN) {
			if (log->known && at[i] != UNKNOWN)
				same(m->run, log->read[i], at[i]);
		} else if (!log->known) {
			at[i] = log->nothing ? at[i] : UNKNOWN;
		} else {
			at[i] = log->op == VQB_BLK_OUT ? log->tag + (uint32_t)i
						       : range_tag(log->op, log->flags);
		}
	}
}

void model_compare_disk(struct model *m, uint32_t queue)
{
	struct model_queue *q = &m->queue[queue];

	for (uint32_t i = 0; m->replayed && i < q->logged; i++)
		replay(m, q, &q->log[i]);
	for (uint32_t i = 0; i < MODEL_DISK_UNITS; i++) {
		if (m->replayed && q->reference[i] != UNKNOWN)
			same(m->run, q->disk[i], q->reference[i]);
		q->reference[i] = q->disk[i];
	}
	q->logged = 0;
	m->compared++;
}
