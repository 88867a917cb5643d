/* SPDX-License-Identifier: BSD-3-Clause */
/* requests_sim.c: see requests_sim.h. */
#include "requests_sim.h"

static uint32_t roll(const struct requests_sim *s, uint32_t below)
{
	return random_below(&s->run->random, below);
}

static bool one_in(const struct requests_sim *s, uint32_t n)
{
	return random_one_in(&s->run->random, n);
}

/* ---- library and model ---- */

static void compare_counters(struct requests_sim *s, uint32_t q)
{
	struct vqb_requests_counters count;

	vqb_requests_read_counters(s->rq[q], &count);
	if (!memcmp(&count, &s->model.queue[q].count, sizeof(count)))
		return;
#define COUNTER(name) same(s->run, count.name, s->model.queue[q].count.name)
	COUNTER(bios);
	COUNTER(requests);
	COUNTER(merged);
	COUNTER(parts);
	COUNTER(flushes);
	COUNTER(full);
	COUNTER(cancelled);
	COUNTER(retried);
	COUNTER(done);
	COUNTER(errors);
#undef COUNTER
}

static void compare(struct requests_sim *s)
{
	model_compare(&s->model);
	for (uint32_t q = 0; q < MODEL_QUEUES; q++) {
		same(s->run, vqb_requests_waiting(s->rq[q]), s->model.queue[q].waits);
		same(s->run, vqb_requests_outstanding(s->rq[q]), s->model.queue[q].outstanding);
		compare_counters(s, q);
	}
	same(s->run, s->plug.bios, s->plugs);
}

static void handed_back(struct requests_sim *s, struct vqb_bio *list)
{
	uint64_t last = 0;

	while (list) {
		struct vqb_bio *next = list->next;

		model_handed_back(&s->model, list, &last);
		list = next;
	}
}

static struct model_bio *idle_bio(struct requests_sim *s)
{
	for (uint32_t i = 0, at = roll(s, s->model.bios); i < s->model.bios; i++) {
		struct model_bio *b = &s->model.bio[(at + i) % s->model.bios];

		if (b->state == VQB_BIO_IDLE)
			return b;
	}
	return NULL;
}

/* ---- events ---- */

static void submit(struct requests_sim *s, uint32_t q, struct model_bio *b)
{
	struct vqb_bio before = b->bio;
	uint32_t rule = UINT32_MAX;
	int32_t foreseen = vqb_requests_check(s->rq[q], &b->bio, &rule), status;

	holds(s->run, !memcmp(&before, &b->bio, sizeof(before)));
	status = vqb_requests_submit(s->rq[q], &b->bio);
	same(s->run, status, foreseen);
	holds(s->run, (rule == VQB_BIO_RULE_FINE) == !status);
	s->events++;
	model_submitted(&s->model, q, b, status);
	compare(s);
}

static void submit_one(struct requests_sim *s, uint32_t q)
{
	struct model_bio *b = idle_bio(s);

	run_operation(s->run, "submit");
	if (one_in(s, 50))
		b = &s->model.bio[roll(s, s->model.bios)]; /* which may be BUSY */
	if (b && b->state == VQB_BIO_IDLE && !feed_bio(&s->feed, q, b))
		return;
	if (b && b->state != VQB_BIO_PLUGGED)
		submit(s, q, b);
}

static void plug_some(struct requests_sim *s, uint32_t q)
{
	for (uint32_t n = 1 + roll(s, 12); n; n--) {
		struct model_bio *b = idle_bio(s);
		uint32_t queue = one_in(s, 4) ? roll(s, MODEL_QUEUES) : q;

		run_operation(s->run, "plug");
		if (!b || !feed_bio(&s->feed, queue, b))
			return;
		same(s->run, vqb_plug_add(&s->plug, s->rq[queue], &b->bio), VQB_OK);
		same(s->run, vqb_plug_add(&s->plug, s->rq[queue], &b->bio), VQB_E_BUSY);
		s->events++;
		b->queue = (int32_t)queue;
		b->size = model_is_range(b->bio.op) ? b->bio.sectors : b->units;
		b->state = VQB_BIO_PLUGGED;
		b->event = EVENT_PLUG;
		s->plugged[s->plugs++] = b;
		compare(s);
	}
}

static void unplug_at(struct requests_sim *s, uint32_t i)
{
	s->plugs--;
	memmove(&s->plugged[i], &s->plugged[i + 1], (s->plugs - i) * sizeof(s->plugged[0]));
}

static void remove_one(struct requests_sim *s)
{
	struct model_bio *b = &s->model.bio[roll(s, s->model.bios)];
	uint32_t i;

	run_operation(s->run, "remove");
	for (i = 0; i < s->plugs && s->plugged[i] != b; i++)
		;
	s->events++;
	same(s->run, vqb_plug_remove(&s->plug, &b->bio), i < s->plugs ? VQB_OK : VQB_E_LATE);
	if (i == s->plugs)
		return;
	unplug_at(s, i);
	b->state = VQB_BIO_IDLE;
	b->event = EVENT_REMOVE;
	model_free_memory(&s->model, b);
	compare(s);
}

/* Queue after queue, and each one's bios as they came. */
static void unplug(struct requests_sim *s)
{
	struct vqb_bio *list, *next;
	void *queue;

	run_operation(s->run, "unplug");
	while ((queue = vqb_plug_take(&s->plug, &list))) {
		uint32_t q = queue == s->rq[1];

		same(s->run, q, s->plugged[0]->queue);
		for (; list; list = next) {
			uint32_t i;

			next = list->next;
			for (i = 0; s->plugged[i]->queue != (int32_t)q; i++)
				holds(s->run, i + 1 < s->plugs);
			holds(s->run, &s->plugged[i]->bio == list);
			unplug_at(s, i);
			/* Those that follow are still PLUGGED, but counted out. */
			s->plug.bios = s->plugs;
			submit(s, q, model_of(list));
		}
	}
	same(s->run, s->plugs, 0);
}

static void end_one(struct requests_sim *s, uint32_t i, bool reset)
{
	struct model_request *r = &s->out[i];
	struct vqb_bio *list = NULL, **tail = &list;

	vqb_requests_done(s->rq[r->queue], r->first, r->bios, reset ? VQB_E_AGAIN : r->status,
			  &tail);
	holds(s->run, !*tail);
	s->events++;
	model_done(&s->model, r, reset);
	handed_back(s, list);
	s->out[i] = s->out[--s->outs];
	compare(s);
}

static void send_unsendable(struct requests_sim *s, uint32_t q, const struct vqb_request *r,
			    int32_t status)
{
	same(s->run, r->bios, 1);
	vqb_requests_sent(s->rq[q], r);
	s->events++;
	s->unsendable++;
	model_unsendable(&s->model, q, r->bio, status, &s->out[s->outs++]);
	compare(s);
	end_one(s, s->outs - 1, false);
}

/* Makes the next request, perhaps more than once, and sends it if there is room. */
static bool send_one(struct requests_sim *s, uint32_t q)
{
	struct vqb_segment table[SIM_ROOM + 1], again[SIM_ROOM + 1];
	struct vqb_request r, same_r;
	int32_t status;

	memset(table, 0x5a, sizeof(table));
	memset(&r, 0, sizeof(r));
	memset(&same_r, 0, sizeof(same_r));
	status = vqb_requests_next(s->rq[q], &r, table, SIM_ROOM);
	model_made(&s->model, q);
	if (status && status != VQB_E_AGAIN) {
		send_unsendable(s, q, &r, status);
		return true;
	}
	same(s->run, status, s->model.queue[q].waits ? VQB_OK : VQB_E_AGAIN);
	if (status)
		return false;
	holds(s->run, r.n <= SIM_ROOM && table[SIM_ROOM].zero == 0x5a5a5a5a);
	compare(s);
	if (one_in(s, 4)) {
		same(s->run, vqb_requests_next(s->rq[q], &same_r, again, SIM_ROOM), VQB_OK);
		holds(s->run, !memcmp(&r, &same_r, sizeof(r)));
		holds(s->run, !memcmp(table, again, r.n * sizeof(table[0])));
	}
	if (s->outs == s->depth || one_in(s, 20)) {
		vqb_requests_full(s->rq[q]);
		model_full(&s->model, q);
		s->model.queue[q].count.full++;
		s->events++;
		compare(s);
		return false;
	}
	vqb_requests_sent(s->rq[q], &r);
	s->events++;
	model_sent(&s->model, q, &r, table, &s->out[s->outs++]);
	compare(s);
	return true;
}

static void send_some(struct requests_sim *s, uint32_t q)
{
	uint32_t most = one_in(s, 4) ? 1 + roll(s, 3) : UINT32_MAX;

	run_operation(s->run, "send");
	while (most-- && send_one(s, q))
		;
}

static void end_some(struct requests_sim *s)
{
	run_operation(s->run, "done");
	for (uint32_t n = 1 + roll(s, 4); n && s->outs; n--)
		end_one(s, roll(s, s->outs), false);
}

static void cancel_one(struct requests_sim *s, uint32_t q)
{
	struct model_bio *b = &s->model.bio[roll(s, s->model.bios)];
	int32_t want, status;

	run_operation(s->run, "cancel");
	if (one_in(s, 2) && s->model.queue[q].waits)
		b = s->model.queue[q].wait[roll(s, s->model.queue[q].waits)];
	status = vqb_requests_cancel(s->rq[q], &b->bio);
	want = model_cancel(&s->model, q, b);
	s->events++;
	same(s->run, status, want);
	if (!status)
		handed_back(s, &b->bio);
	compare(s);
}

/* All of the queue's requests are undecided; what was to be done is submitted again, in order. */
static void reset(struct requests_sim *s, uint32_t q)
{
	struct vqb_bio *list = NULL, **tail = &list, *next;
	uint64_t order = 0;

	run_operation(s->run, "reset");
	for (uint32_t i = s->outs; i; i--) {
		struct model_request *r = &s->out[i - 1];

		if (r->queue != q)
			continue;
		vqb_requests_done(s->rq[q], r->first, r->bios, VQB_E_AGAIN, &tail);
		model_done(&s->model, r, true);
		*r = s->out[--s->outs];
	}
	vqb_requests_abandon(s->rq[q], &tail);
	model_abandon(&s->model, q);
	s->events++;
	same(s->run, s->model.queue[q].outstanding, 0);
	vqb_requests_sort(&list);
	for (struct vqb_bio *bio = list; bio; bio = bio->next) {
		uint64_t zero = 0;

		holds(s->run, model_of(bio)->order > order);
		order = model_of(bio)->order;
		model_keep(&s->model, bio, &zero);
	}
	compare(s);
	for (; list; list = next) {
		next = list->next;
		if (one_in(s, 8))
			model_free_memory(&s->model, model_of(list));
		else
			submit(s, q, model_of(list));
	}
}

/* ---- episodes ---- */

static void configure(struct requests_sim *s, uint32_t q, bool fresh)
{
	struct vqb_requests_config config;
	struct model_queue *mq = &s->model.queue[q];
	uint32_t path = mq->path;

	feed_config(&s->feed, SIM_ROOM, &s->limits[q], &config);
	if (fresh) {
		same(s->run, vqb_requests_init(s->mem[q], sizeof(s->mem[q]), &config, &s->rq[q]),
		     VQB_OK);
		memset(&mq->count, 0, sizeof(mq->count));
		path = config.path;
	} else {
		same(s->run, vqb_requests_configure(s->rq[q], &config), VQB_OK);
		if (one_in(s, 2)) {
			path = roll(s, 3);
			same(s->run, vqb_requests_set_path(s->rq[q], path), VQB_OK);
		}
	}
	if (fresh || path != mq->path)
		mq->looked = mq->found = mq->misses = mq->spared = 0;
	config.path = path;
	config.window = fresh ? config.window : mq->room;
	model_configure(&s->model, q, &config);
	feed_faults(&s->feed, q);
}

/* Other limits under bios that wait: what can't be sent any more is handed back. */
static void change_limits(struct requests_sim *s, uint32_t q)
{
	struct model_queue *mq = &s->model.queue[q];
	struct vqb_requests_config config;

	run_operation(s->run, "change limits");
	do
		feed_config(&s->feed, SIM_ROOM, &s->limits[q], &config);
	while (s->limits[q].block_size != mq->limits.block_size);
	config.features = mq->features;
	config.flags = mq->flags;
	config.capacity = mq->capacity;
	same(s->run, vqb_requests_configure(s->rq[q], &config), VQB_OK);
	model_change_limits(&s->model, q, &config);
	s->events++;
	compare(s);
}

/* Until nothing is out. The disk then is what the bios came to. */
static void drain(struct requests_sim *s, uint32_t q)
{
	run_operation(s->run, "drain");
	if (s->model.queue[q].outstanding)
		same(s->run, vqb_requests_set_path(s->rq[q], 0), VQB_E_BUSY);
	while (s->model.queue[q].outstanding) {
		for (uint32_t i = s->outs; i; i--)
			if (s->outs == s->depth || s->out[i - 1].queue == q)
				end_one(s, i - 1, false);
		while (send_one(s, q))
			;
	}
	model_compare_disk(&s->model, q);
}

static bool has_plugged(const struct requests_sim *s, uint32_t q)
{
	for (uint32_t i = 0; i < s->plugs; i++)
		if (s->plugged[i]->queue == (int32_t)q)
			return true;
	return false;
}

static void rest(struct requests_sim *s, uint32_t q)
{
	drain(s, q);
	if (one_in(s, 3) && !has_plugged(s, q))
		configure(s, q, false);
	if (one_in(s, 20)) {
		vqb_requests_clear_counters(s->rq[q]);
		memset(&s->model.queue[q].count, 0, sizeof(s->model.queue[q].count));
	}
}

void requests_sim_open(struct requests_sim *s, struct run *run,
		       void (*observe)(struct model *m, const struct model_bio *b, uint8_t now),
		       void *observer)
{
	static const unsigned usual[8] = { 30, 10, 2, 6, 20, 14, 6, 1 };

	s->run = run;
	model_open(&s->model, run);
	s->model.observe = observe;
	s->model.observer = observer;
	s->model.exact = true;
	feed_open(&s->feed, &s->model);
	memset(&s->plug, 0, sizeof(s->plug));
	s->plugs = s->outs = 0;
	s->depth = one_in(s, 3) ? SIM_OUT : 1 + roll(s, SIM_OUT / 2);
	for (uint32_t i = 0; i < 8; i++)
		s->weight[i] = usual[i] * (1 + roll(s, one_in(s, 4) ? 12 : 3));
	for (uint32_t q = 0; q < MODEL_QUEUES; q++)
		configure(s, q, true);
	compare(s);
}

void requests_sim_step(struct requests_sim *s)
{
	uint32_t q = one_in(s, 4) ? roll(s, MODEL_QUEUES) : 0;

	if (s->model.queue[q].logged + s->model.bios >= MODEL_LOG || one_in(s, 300)) {
		rest(s, q);
		return;
	}
	switch (run_pick(s->run, s->weight, 8)) {
	case 0:
		submit_one(s, q);
		break;
	case 1:
		plug_some(s, q);
		break;
	case 2:
		remove_one(s);
		break;
	case 3:
		unplug(s);
		break;
	case 4:
		send_some(s, q);
		break;
	case 5:
		end_some(s);
		break;
	case 6:
		cancel_one(s, q);
		break;
	default:
		if (one_in(s, 10))
			reset(s, q);
		else if (one_in(s, 10))
			change_limits(s, q);
		break;
	}
}

void requests_sim_close(struct requests_sim *s)
{
	const struct model *m = &s->model;

	unplug(s);
	for (uint32_t q = 0; q < MODEL_QUEUES; q++)
		drain(s, q);
	s->bios += m->orders;
	s->sent += m->sent;
	s->shared += m->shared;
	s->parts += m->parts;
	s->errors += m->errors;
	s->passed += m->passed;
	s->overtaken += m->overtaken;
	s->compared += m->compared;
	s->ends += m->ends;
	s->runs += m->runs;
	s->longest = s->longest > m->longest ? s->longest : m->longest;
}
