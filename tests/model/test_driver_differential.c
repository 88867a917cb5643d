/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver and its model (driver_model.h) get the same random requests and the same random
 * device, and have to agree on every answer, on both rings and on all descriptors that are lent.
 *
 * The device is the test: good for the most part, in any order; sometimes it names what was not
 * lent, says too much, runs ahead, or scribbles over descriptors and tables.
 */
#include "driver_model.h"
#include "differential.h"

#define OPERATIONS 4000000u

enum {
	RING_BYTES = 0xe0000,
	POOL_BYTES = 0x10000,
	SEGMENTS = 80,
	LIST = 8,
	DONE = 64,
	GUARD = 64,
	FILL = 0xa5,
	SMALL = 64, /* rings up to here are compared in full each time */
};

struct test {
	struct run run;
	struct driver_model model;
	struct vqb_driver *drv;
	struct vqb_driver_config config;
	struct vqb_indirect_policy policy;
	uint8_t *object;
	size_t object_bytes;
	struct model_view library; /* its ring and its tables */
	struct vqb_ring at;        /* the ring that it last began on */
	bool had_ring;             /* there is something to compare */
	uint16_t used;             /* the device's index */
	uint64_t tokens;
	uint64_t asked;      /* so often the policy was, by library and model together */
	bool calm;           /* much traffic, no decisions for long stretches */
	unsigned weight[32]; /* of operations, in this episode */
	/* what has happened so far */
	uint64_t direct, scattered, indirect, no_room, broken, detached, saved, restored;
	uint64_t lists, cut_lists;            /* added in full, and but for the last ones */
	uint64_t flags[2 * VQB_DONE_IMPLIED]; /* of what was reaped */
	/* results */
	struct vqb_segment segment[SEGMENTS], list_segment[LIST][SEGMENTS];
	struct vqb_done done[DONE + 1], model_done[DONE];
	void *token[VQB_RING_MAX];
	/* memory: the library's, the model's */
	_Alignas(64) uint8_t ring[2][RING_BYTES];
	_Alignas(64) uint8_t pool[2][POOL_BYTES];
};

static void compare(struct test *t);

static uint32_t below(struct test *t, uint32_t n)
{
	return random_below(&t->run.random, n);
}

static bool one_in(struct test *t, uint32_t n)
{
	return random_one_in(&t->run.random, n);
}

static uint64_t word(struct test *t)
{
	return random_word(&t->run.random);
}

/* ---- what the test writes, it writes twice ---- */

/* Where the library has what the model has at `at`. */
static uint8_t *twin(struct test *t, uint8_t *at)
{
	return t->ring[0] + (at - t->ring[1]);
}

static void device_put(struct test *t, uint8_t *at, uint64_t v, unsigned bytes)
{
	model_put(&t->model.ring, at, v, bytes);
	model_put(&t->model.ring, twin(t, at), v, bytes);
}

static bool has_ring(const struct test *t)
{
	return t->model.state != VQB_E_INVALID;
}

/* ---- requests ---- */

static void random_segments(struct test *t, uint32_t n)
{
	bool huge = one_in(t, 30);

	for (uint32_t i = 0; i < n; i++) {
		t->segment[i].addr = word(t) >> 1;
		t->segment[i].len = huge ? UINT32_MAX - below(t, 3) : 1 + below(t, 5000);
		t->segment[i].zero = 0;
	}
	if (huge && n == 2 && one_in(t, 2)) { /* 2^32 in all, or one more */
		t->segment[0].len = UINT32_MAX;
		t->segment[1].len = 1 + below(t, 2);
	}
	if (!n || !one_in(t, 12))
		return;
	n = below(t, n);
	switch (below(t, 4)) {
	case 0:
		t->segment[n].len = 0;
		break;
	case 1:
		t->segment[n].zero = one_in(t, 2) ? 1 : UINT32_MAX;
		break;
	case 2: /* up to the last byte, or one further */
		t->segment[n].addr = UINT64_MAX - t->segment[n].len + 1 + below(t, 2);
		break;
	default:
		t->segment[n].addr = UINT64_MAX - below(t, 5000);
	}
}

/* Did a chain of the ring leave the order of the ring? */
static bool was_scattered(const struct test *t, const struct model_request *r)
{
	const struct model_ring *m = &t->model.ring;

	for (uint32_t i = 0; i + 1 < r->segments; i++)
		if (t->model.lent[(r->head + i) % m->size] != r->number + 1)
			return true;
	return false;
}

static void note_added(struct test *t)
{
	const struct model_request *r = &t->model.request[t->model.requests - 1];

	if (r->indirect)
		t->indirect++;
	else if (was_scattered(t, r))
		t->scattered++;
	else
		t->direct++;
}

/* What became of a request, which the model is told of now. */
static void added(struct test *t, const struct vqb_submission *s, int32_t status)
{
	const char *wrong;

	same(&t->run, status,
	     driver_model_add(&t->model, s->seg, s->readable, s->writable, s->token, &t->library,
			      &wrong));
	if (wrong)
		t->run.doing = wrong;
	holds(&t->run, !wrong);
	if (!status)
		note_added(t);
	t->no_room += status == VQB_E_NOSPC;
}

static struct vqb_submission submission(struct test *t, const struct vqb_segment *seg,
					uint32_t readable, uint32_t writable)
{
	return (struct vqb_submission){ seg, readable, writable, (void *)(uintptr_t)++t->tokens };
}

static void add(struct test *t, uint32_t readable, uint32_t writable)
{
	struct vqb_submission s = submission(t, t->segment, readable, writable);

	added(t, &s, vqb_driver_add(t->drv, s.seg, s.readable, s.writable, s.token));
	holds(&t->run, t->asked % 2 == 0);
}

/* The model gets them one by one, up to the one that the library has refused. */
static void add_list(struct test *t)
{
	uint32_t n = below(t, LIST + 1), done = 99;
	struct vqb_submission list[LIST];
	int32_t status;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t segments = below(t, one_in(t, 8) ? SEGMENTS : 5);
		uint32_t readable = below(t, segments + 1);

		random_segments(t, segments);
		memcpy(t->list_segment[i], t->segment, sizeof(t->segment));
		list[i] = submission(t, t->list_segment[i], readable, segments - readable);
	}
	status = vqb_driver_add_list(t->drv, list, n, &done);
	holds(&t->run, done <= n && (status != VQB_OK || done == n));
	for (uint32_t i = 0; i < done; i++)
		added(t, &list[i], VQB_OK);
	if (done < n)
		added(t, &list[done], status);
	else
		same(&t->run, status, t->model.state);
	holds(&t->run, t->asked % 2 == 0);
	t->lists += done > 1;
	t->cut_lists += done > 1 && done < n;
}

static void op_add(struct test *t)
{
	uint32_t n = below(t, one_in(t, 4) ? t->model.max_size + 3 : 6), readable;

	if (one_in(t, 5)) {
		add_list(t);
		return;
	}
	if (n > SEGMENTS - 2)
		n = SEGMENTS - 2;
	if (one_in(t, 100)) { /* the sum may wrap */
		add(t, UINT32_MAX - below(t, 3), below(t, 6));
		return;
	}
	random_segments(t, n);
	readable = below(t, n + 1);
	add(t, readable, n - readable);
}

static void op_expose(struct test *t)
{
	vqb_driver_expose(t->drv);
	driver_model_expose(&t->model);
}

/*
 * Decisions are rare while it is calm. None is made about exactly 65535 entries: the library takes
 * as many for a full turn, and notifies a peer that named the one entry that is not among them.
 */
static bool undecidable(struct test *t)
{
	const struct model_end *e = &t->model.end;

	return (t->calm && !one_in(t, 3)) || e->next - e->decided == 65535;
}

static void op_publish(struct test *t)
{
	if (undecidable(t))
		return;
	same(&t->run, vqb_driver_publish(t->drv), driver_model_publish(&t->model));
}

static void op_turn(struct test *t)
{
	if (undecidable(t))
		return;
	same(&t->run, vqb_driver_turn(t->drv), driver_model_turn(&t->model));
}

static void op_arm(struct test *t)
{
	same(&t->run, vqb_driver_arm(t->drv), driver_model_arm(&t->model));
}

/* The event that the library has named. */
static uint16_t library_event(const struct test *t)
{
	const struct model_ring *r = &t->library.ring;

	return has_ring(t) ? model_get16(r, model_used_event(r)) : 0;
}

static void op_postpone(struct test *t)
{
	uint32_t intent = one_in(t, 10) ? (uint32_t)word(t) : below(t, 3);
	uint32_t answer = vqb_driver_postpone(t->drv, intent);
	bool fine;

	same(&t->run, answer, driver_model_postpone(&t->model, intent, library_event(t), &fine));
	holds(&t->run, fine);
}

static void op_disarm(struct test *t)
{
	vqb_driver_disarm(t->drv);
	holds(&t->run, driver_model_disarm(&t->model, library_event(t)));
}

/* ---- the device ---- */

/* One element, by which the index moves by `count`. */
static void complete(struct test *t, uint32_t count, uint32_t id, uint32_t len)
{
	uint8_t *entry = model_used_entry(&t->model.ring, t->used);

	device_put(t, entry, id, 4);
	device_put(t, entry + 4, len, 4);
	t->used = (uint16_t)(t->used + count);
	device_put(t, model_used_idx(&t->model.ring), t->used, 2);
}

static uint32_t random_written(struct test *t, uint64_t room)
{
	if (one_in(t, 20))
		return (uint32_t)word(t);
	if (one_in(t, 4))
		return (uint32_t)(room + below(t, 2));
	return room ? (uint32_t)(word(t) % room) : 0;
}

/* The first request from the `i`th one on that the device can complete, or `requests`. */
static uint32_t completable(const struct driver_model *m, uint32_t i)
{
	while (i < m->requests && m->request[i].completed)
		i++;
	return i < m->requests && m->request[i].number < m->end.exposed ? i : m->requests;
}

/* Completes one that it was shown, mostly the oldest. */
static void op_complete(struct test *t)
{
	struct driver_model *m = &t->model;
	bool any = !m->ring.in_order && one_in(t, 3) && m->requests;
	uint32_t i = completable(m, any ? below(t, m->requests) : 0), more = 0, count = 1;

	if (!has_ring(t) || i == m->requests)
		return;
	m->request[i].completed = true;
	/* In order, one element may stand for several. */
	if (m->ring.in_order && one_in(t, 2))
		more = below(t, one_in(t, 4) ? m->ring.size : 4);
	for (; more && completable(m, i + 1) < m->requests; more--, count++)
		m->request[++i].completed = true;
	complete(t, count, m->request[i].head, random_written(t, m->request[i].writable));
}

/* Completes what it must not. */
static void op_hostile(struct test *t)
{
	struct driver_model *m = &t->model;
	uint32_t id = below(t, m->max_size + 2);

	if (!has_ring(t))
		return;
	switch (below(t, 6)) {
	case 0:
		id = (uint32_t)word(t);
		break;
	case 1: /* a good head in the lower bits */
		if (m->requests)
			id = m->request[0].head + 65536 * (1 + below(t, 9));
		break;
	case 2: /* what it has not been shown */
		if (m->requests)
			id = m->request[m->requests - 1].head;
		break;
	case 3: /* the index alone */
		t->used = (uint16_t)(t->used + (one_in(t, 2) ? word(t) : m->ring.size));
		device_put(t, model_used_idx(&m->ring), t->used, 2);
		return;
	case 4: /* any that is lent, perhaps out of turn */
		if (m->requests)
			id = m->request[below(t, m->requests)].head;
		break;
	default:
		break;
	}
	complete(t, one_in(t, 4) ? 1 + below(t, 3) : 1, id, (uint32_t)word(t));
}

/* What the device says of notifications: near what will be exposed next, or anywhere. */
static void op_wish(struct test *t)
{
	const struct model_ring *m = &t->model.ring;
	uint64_t near = (one_in(t, 3) ? t->model.end.decided : t->model.end.exposed) + 6;

	if (!has_ring(t))
		return;
	near = one_in(t, 10) ? word(t) : near - below(t, 12);
	device_put(t, model_avail_event(m), near & 0xffff, 2);
	device_put(t, model_used_flags(m), one_in(t, 8) ? word(t) & 0xffff : below(t, 2), 2);
}

/* The device writes over what it may only read. */
static void op_scribble(struct test *t)
{
	uint32_t n = 1 + below(t, 16), at;

	while (n-- && has_ring(t)) {
		uint8_t v = (uint8_t)word(t);

		at = below(t, 16 * t->model.ring.size);
		device_put(t, t->model.ring.desc + at, v, 1);
		at = below(t, POOL_BYTES);
		t->pool[0][at] = t->pool[1][at] = v;
	}
}

/* ---- reaping ---- */

static void op_reap(struct test *t)
{
	uint32_t max = one_in(t, 20) ? 0 : 1 + below(t, one_in(t, 3) ? DONE : 3), n;
	int32_t before = t->model.state;

	t->done[max].flags = 77;
	n = vqb_driver_reap(t->drv, t->done, max);
	same(&t->run, n, driver_model_reap(&t->model, t->model_done, max));
	same(&t->run, t->done[max].flags, 77);
	for (uint32_t i = 0; i < n; i++) {
		same(&t->run, (uintptr_t)t->done[i].token, (uintptr_t)t->model_done[i].token);
		same(&t->run, t->done[i].len, t->model_done[i].len);
		same(&t->run, t->done[i].flags, t->model_done[i].flags);
		t->flags[t->done[i].flags]++;
	}
	t->broken += !before && t->model.state;
}

static void op_detach(struct test *t)
{
	uint32_t max = below(t, t->model.requests + 2), n = 99;
	int32_t status = vqb_driver_detach(t->drv, t->token, max, &n), expected;

	holds(&t->run, driver_model_detach(&t->model, t->token, max, n, &expected));
	same(&t->run, status, expected);
	t->detached += n;
}

/* Much traffic at once, so that indices come round and decisions are about a lot. */
static void op_burst(struct test *t)
{
	uint32_t n = below(t, t->calm ? 12000 : 40);

	while (n-- && !t->model.state) {
		random_segments(t, 3);
		add(t, 1, below(t, 3));
		op_expose(t);
		op_complete(t);
		if (one_in(t, 2))
			op_reap(t);
		if (one_in(t, 4))
			compare(t);
		t->run.done++;
	}
}

/* ---- starting over ---- */

/* A ring in fresh memory, of the library's and of the model's. */
static struct vqb_ring random_ring(struct test *t, struct model_ring *model)
{
	struct vqb_ring ring = { .size = t->model.max_size, .index = below(t, 100) };
	size_t desc = GUARD + 16 * (size_t)below(t, 4), avail, used;

	while (ring.size > 1 && ring.size <= SMALL && one_in(t, 3))
		ring.size /= 2;
	ring.features = below(t, 1 << 24);
	if (one_in(t, 3))
		ring.flags = below(t, 2) ? VQB_RING_BIG_ENDIAN : 0;
	else
		ring.features |= VQB_FEATURE(VQB_F_VERSION_1);
	if (!one_in(t, 4))
		ring.features |= VQB_FEATURE(VQB_F_INDIRECT_DESC);
	if (!one_in(t, 3))
		ring.features |= VQB_FEATURE(VQB_F_EVENT_IDX);
	if (one_in(t, 3))
		ring.features |= VQB_FEATURE(VQB_F_IN_ORDER);
	if (one_in(t, 3))
		ring.features |= VQB_FEATURE(VQB_F_NOTIFICATION_DATA);
	avail = desc + 16 * (size_t)ring.size + GUARD + 2 * (size_t)below(t, 8);
	used = (avail + 6 + 2 * (size_t)ring.size + GUARD) / 4 * 4 + 4 * (size_t)below(t, 4);
	ring.desc = t->ring[0] + desc;
	ring.avail = t->ring[0] + avail;
	ring.used = t->ring[0] + used;
	*model = (struct model_ring){ .desc = t->ring[1] + desc,
				      .avail = t->ring[1] + avail,
				      .used = t->ring[1] + used };
	return ring;
}

/* Makes a ring one that must be refused. */
static void ring_spoil(struct test *t, struct vqb_ring *ring)
{
	static const uint32_t size[] = { 0, 3, 65535, 65536 };

	switch (below(t, 8)) {
	case 0:
		ring->size = one_in(t, 2) ? size[below(t, 4)] : 2 * t->model.max_size;
		break;
	case 1:
		if (ring->features & VQB_FEATURE(VQB_F_VERSION_1))
			ring->flags = VQB_RING_BIG_ENDIAN;
		else
			ring->flags = 2;
		break;
	case 2:
		ring->zero = 1;
		break;
	case 7:
		ring->index = 65536;
		break;
	case 3:
		ring->features |= VQB_FEATURE(one_in(t, 2) ? VQB_F_RING_PACKED : 43);
		break;
	case 4:
		ring->desc = one_in(t, 2) ? NULL : (uint8_t *)ring->desc + 8;
		break;
	case 5:
		ring->avail = one_in(t, 2) ? NULL : (uint8_t *)ring->avail + 1;
		break;
	default:
		ring->used = one_in(t, 2) ? NULL : (uint8_t *)ring->used + 2;
	}
}

static size_t ring_bytes(const struct test *t)
{
	return t->model.max_size > SMALL ? RING_BYTES : 4096;
}

/* The library's ring lies where the model's does. */
static void ring_begins(struct test *t, const struct vqb_ring *ring, uint16_t idx)
{
	t->library.ring = t->model.ring;
	t->library.ring.desc = twin(t, t->model.ring.desc);
	t->library.ring.avail = twin(t, t->model.ring.avail);
	t->library.ring.used = twin(t, t->model.ring.used);
	t->had_ring = true;
	t->at = *ring;
	t->used = idx;
}

/* From here on the two memories hold the same. */
static void same_memory(struct test *t)
{
	if (!has_ring(t)) {
		memset(t->ring[0], FILL, ring_bytes(t));
		memset(t->ring[1], FILL, ring_bytes(t));
		t->had_ring = false;
	} else { /* it may stay; what is left of free descriptors is the library's choice */
		memcpy(t->model.ring.desc, t->library.ring.desc, 16 * (size_t)t->model.ring.size);
	}
}

static void restart(struct test *t, bool spoilt)
{
	struct model_ring at;
	struct vqb_ring ring = random_ring(t, &at);
	int32_t status;

	if (spoilt)
		ring_spoil(t, &ring);
	same_memory(t);
	status = vqb_driver_reset(t->drv, &ring);
	same(&t->run, status, driver_model_reset(&t->model, &ring, &at));
	if (!status)
		ring_begins(t, &ring, 0);
}

/* What a saved state says, or something that is wrong in one way. */
static void saved_spoil(struct test *t, const struct vqb_ring *ring, struct vqb_driver_saved *saved)
{
	switch (below(t, 5)) {
	case 0:
		saved->avail++;
		break;
	case 1:
		saved->used--;
		break;
	case 2: /* both, so that the ring stands elsewhere */
		saved->avail = saved->used = (uint16_t)(saved->used + 1 + below(t, 65535));
		break;
	case 3:
		saved->desc = (uint16_t)(ring->size + below(t, 2));
		break;
	default:
		saved->zero = 1;
	}
}

static void restore(struct test *t, struct vqb_ring *ring, const struct model_ring *at,
		    struct vqb_driver_saved *saved)
{
	uint16_t idx = saved->used;
	int32_t status;

	if (one_in(t, 5))
		saved_spoil(t, ring, saved);
	if (one_in(t, 12))
		ring_spoil(t, ring);
	status = vqb_driver_restore(t->drv, ring, saved);
	same(&t->run, status, driver_model_restore(&t->model, ring, at, saved));
	if (status)
		return;
	ring_begins(t, ring, idx);
	t->restored++;
}

/* Another program's queue is taken over, wherever it stands. */
static void op_take_over(struct test *t)
{
	struct model_ring at, as;
	struct vqb_ring ring = random_ring(t, &at);
	struct vqb_driver_saved saved = { .desc = (uint16_t)below(t, ring.size) };
	uint16_t avail, used;

	saved.avail = saved.used = (uint16_t)(one_in(t, 2) ? 65500 + below(t, 60) : word(t));
	if (!t->model.requests) {
		same(&t->run, vqb_driver_reset(t->drv, NULL),
		     driver_model_reset(&t->model, NULL, NULL));
		same_memory(t);
		as = at;
		model_ring_as(&as, ring.size, ring.flags, ring.features);
		avail = (uint16_t)(saved.avail + one_in(t, 12));
		used = (uint16_t)(saved.used + one_in(t, 12));
		model_put(&as, model_avail_idx(&as), avail, 2);
		model_put(&as, twin(t, model_avail_idx(&as)), avail, 2);
		model_put(&as, model_used_idx(&as), used, 2);
		model_put(&as, twin(t, model_used_idx(&as)), used, 2);
	}
	restore(t, &ring, &at, &saved);
}

/* The queue stops and goes on, perhaps with no ring in between. */
static void op_save(struct test *t)
{
	struct vqb_driver_saved saved = { 1, 2, 3, 4 }, expected = saved;
	struct model_ring at = t->model.ring;
	struct vqb_ring ring = t->at;
	int32_t status = vqb_driver_save(t->drv, &saved);

	same(&t->run, status, driver_model_save(&t->model, &expected));
	same(&t->run, saved.avail, expected.avail);
	same(&t->run, saved.used, expected.used);
	same(&t->run, saved.zero, expected.zero);
	if (status || at.in_order)
		same(&t->run, saved.desc, expected.desc);
	holds(&t->run, status || saved.desc < ring.size);
	if (status)
		return;
	t->saved++;
	if (one_in(t, 2))
		same(&t->run, vqb_driver_reset(t->drv, NULL),
		     driver_model_reset(&t->model, NULL, NULL));
	restore(t, &ring, &at, &saved);
}

/* A choice that depends on all there is to see, so that library and model have to see the same. */
static uint32_t choose(void *context, const struct vqb_indirect_load *load)
{
	struct test *t = context;
	struct random mix = { load->segments | (uint64_t)load->free << 16 |
			      (uint64_t)load->in_flight << 32 | (uint64_t)load->tables << 48 };

	t->asked++;
	holds(&t->run, load->segments > 1 && load->segments <= load->free && load->tables);
	same(&t->run, load->size, t->model.ring.size);
	same(&t->run, load->zero, 0);
	return random_below(&mix, 3);
}

/* Runs at a speed of its own, and stands still at times. */
static uint64_t slow_clock(void *context)
{
	struct test *t = context;

	return t->run.done / 3;
}

static void random_policy(struct test *t)
{
	t->policy = (struct vqb_indirect_policy){ .struct_size = sizeof(t->policy),
						  .kind = below(t, 6) };
	if (t->policy.kind == VQB_INDIRECT_THRESHOLD)
		t->policy.threshold = 1 + below(t, 5);
	if (t->policy.kind == VQB_INDIRECT_CUSTOM)
		t->policy.choose = choose;
	if (t->policy.kind == VQB_INDIRECT_ADAPTIVE)
		t->policy.clock = slow_clock;
	t->policy.context = t;
}

/* Makes a policy one that must be refused. */
static void policy_spoil(struct test *t, struct vqb_indirect_policy *policy)
{
	switch (below(t, 6)) {
	case 0:
		policy->struct_size--;
		break;
	case 1:
		policy->kind = 6;
		break;
	case 2:
		policy->zero = 1;
		break;
	case 3:
		policy->threshold = !policy->threshold;
		break;
	case 4:
		policy->choose = policy->choose ? NULL : choose;
		break;
	default: /* not wrong, where the policy adapts */
		policy->clock = slow_clock;
	}
}

static void op_set_policy(struct test *t)
{
	struct vqb_indirect_policy *policy = one_in(t, 6) ? NULL : &t->policy;

	random_policy(t);
	if (one_in(t, 8))
		policy_spoil(t, &t->policy);
	same(&t->run, vqb_driver_set_policy(t->drv, policy),
	     driver_model_set_policy(&t->model, policy));
}

static void op_needs_reset(struct test *t)
{
	vqb_driver_needs_reset(t->drv);
	driver_model_needs_reset(&t->model);
}

static void op_restart(struct test *t)
{
	if (has_ring(t) && !one_in(t, 4)) {
		same(&t->run, vqb_driver_reset(t->drv, NULL),
		     driver_model_reset(&t->model, NULL, NULL));
		return;
	}
	restart(t, one_in(t, 5));
}

static void op_clear(struct test *t)
{
	vqb_driver_clear_counters(t->drv);
	memset(&t->model.count, 0, sizeof(t->model.count));
	t->model.end.notified = t->model.end.suppressed = 0;
}

/* ---- the comparison after each operation ---- */

static void same_counters(struct test *t)
{
	struct vqb_driver_counters *m = &t->model.count, c;

	vqb_driver_read_counters(t->drv, &c);
	same(&t->run, c.requests, m->requests);
	same(&t->run, c.descriptors, m->descriptors);
	same(&t->run, c.indirect, m->indirect);
	same(&t->run, c.no_room, m->no_room);
	same(&t->run, c.direct_single, m->direct_single);
	same(&t->run, c.direct_chosen + c.direct_no_table,
	     m->requests - m->indirect - m->direct_single);
	same(&t->run, c.indirect_no_room, m->indirect_no_room);
	same(&t->run, c.indirect_chosen + c.indirect_whole, m->indirect - m->indirect_no_room);
	same(&t->run, c.completions, m->completions);
	same(&t->run, c.overlong, m->overlong);
	same(&t->run, c.notified, t->model.end.notified);
	same(&t->run, c.suppressed, t->model.end.suppressed);
}

/* Both rings and all that surrounds the three parts, and the descriptors that are lent. */
static void same_bytes(struct test *t)
{
	const struct model_ring *m = &t->model.ring;
	size_t desc = (size_t)(m->desc - t->ring[1]), rest = desc + 16 * (size_t)m->size;

	holds(&t->run, !memcmp(t->ring[0], t->ring[1], desc));
	holds(&t->run, !memcmp(t->ring[0] + rest, t->ring[1] + rest, ring_bytes(t) - rest));
	holds(&t->run, driver_model_same(&t->model, &t->library));
}

static void compare(struct test *t)
{
	void *token = NULL, *expected = NULL;

	same(&t->run, vqb_driver_state(t->drv), t->model.state);
	same(&t->run, vqb_driver_in_flight(t->drv), t->model.requests);
	same(&t->run, vqb_driver_pending(t->drv), driver_model_pending(&t->model));
	if (has_ring(t))
		same(&t->run, vqb_driver_notification(t->drv),
		     driver_model_notification(&t->model));
	same_counters(t);
	if (t->model.max_size > SMALL && t->run.done % 1024)
		return;
	same(&t->run, vqb_driver_free(t->drv), driver_model_free(&t->model));
	same(&t->run, vqb_driver_oldest(t->drv, &token), driver_model_oldest(&t->model, &expected));
	same(&t->run, (uintptr_t)token, (uintptr_t)expected);
	if (t->had_ring)
		same_bytes(t);
}

/* ---- episodes ---- */

static const struct operation {
	const char *name;
	void (*run)(struct test *t);
	unsigned weight;
} operations[] = {
	{ "add", op_add, 500 },
	{ "complete", op_complete, 500 },
	{ "reap", op_reap, 300 },
	{ "expose", op_expose, 60 },
	{ "publish", op_publish, 150 },
	{ "turn", op_turn, 150 },
	{ "arm", op_arm, 60 },
	{ "postpone", op_postpone, 60 },
	{ "disarm", op_disarm, 40 },
	{ "wish", op_wish, 200 },
	{ "hostile", op_hostile, 3 },
	{ "scribble", op_scribble, 10 },
	{ "detach", op_detach, 4 },
	{ "restart", op_restart, 2 },
	{ "clear", op_clear, 1 },
	{ "burst", op_burst, 2 },
	{ "save", op_save, 20 },
	{ "take_over", op_take_over, 3 },
	{ "needs_reset", op_needs_reset, 1 },
	{ "set_policy", op_set_policy, 20 },
};

enum { KINDS = sizeof(operations) / sizeof(operations[0]) };

static void random_weights(struct test *t)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		unsigned factor = one_in(t, 4) ? (one_in(t, 3) ? 0 : 5) : 1;
		void (*run)(struct test * test) = operations[i].run;

		t->weight[i] = operations[i].weight * (i ? factor : 1);
		if (t->calm && run == op_burst)
			t->weight[i] = 2600;
		else if (t->calm &&
			 (run == op_restart || run == op_hostile || run == op_take_over ||
			  run == op_save || run == op_needs_reset))
			t->weight[i] = 0;
		if (t->model.max_size > SMALL && (run == op_restart || run == op_take_over))
			t->weight[i] /= 2;
	}
}

static void random_config(struct test *t)
{
	uint32_t size = one_in(t, 40) ? VQB_RING_MAX : 1u << below(t, 7);

	random_policy(t);
	t->config =
		(struct vqb_driver_config){ .struct_size = sizeof(t->config), .max_size = size };
	t->config.policy = one_in(t, 5) ? NULL : &t->policy;
	t->config.max_table = below(t, one_in(t, 2) ? 6 : SMALL + 4);
	t->config.tables.host = t->pool[0];
	t->config.tables.addr = (word(t) >> 1) / 16 * 16;
	t->config.tables.bytes = below(t, one_in(t, 2) ? 600 : POOL_BYTES + 1);
	t->calm = size <= SMALL && one_in(t, 30);
}

/* Begins with no ring; the first restart brings one. */
static void episode_start(struct test *t)
{
	random_config(t);
	t->object_bytes = vqb_driver_size(&t->config);
	holds(&t->run, t->object_bytes > 0);
	free(t->object);
	t->object = aligned_alloc(64, (t->object_bytes + GUARD + 63) / 64 * 64);
	assert_non_null(t->object);
	memset(t->object, 0x5a, t->object_bytes);
	memset(t->object + t->object_bytes, FILL, GUARD);
	memset(t->pool, FILL, sizeof(t->pool));
	same(&t->run, vqb_driver_init(t->object, t->object_bytes, &t->config, &t->drv), VQB_OK);
	t->model.pool = t->pool[1];
	t->library.pool = t->pool[0];
	t->had_ring = false;
	driver_model_init(&t->model, &t->config, NULL);
	random_weights(t);
	restart(t, false);
}

/* The driver wrote to no table but its own. */
static void episode_end(struct test *t)
{
	size_t end = (size_t)16 * t->model.tables * t->model.table_length;

	t->run.doing = "end";
	if (t->had_ring)
		same_bytes(t);
	holds(&t->run, !memcmp(t->pool[0] + end, t->pool[1] + end, POOL_BYTES - end));
	for (unsigned i = 0; i < GUARD; i++)
		same(&t->run, t->object[t->object_bytes + i], FILL);
}

/* Everything that can happen to a request did happen, if there was time for it. */
static void happened(struct test *t)
{
	if (t->run.is_short)
		return;
	t->run.doing = "coverage";
	holds(&t->run, t->direct && t->scattered && t->indirect);
	holds(&t->run, t->no_room && t->broken && t->detached && t->saved && t->restored);
	holds(&t->run, t->lists && t->cut_lists);
	holds(&t->run, t->flags[VQB_DONE_OVERLONG] && t->flags[VQB_DONE_IMPLIED]);
}

/*
 * Shows: SR-ANY-04 SR-ANY-05 SR-ANY-06 SR-DRV-04 SR-DRV-07 SR-DRV-08 SR-DRV-09 SR-DRV-10 SR-DRV-12
 * Shows: SR-DRV-13 SR-DRV-14 SR-DRV-15 SR-DRV-17 SR-DRV-20 SR-DRV-24 SR-DRV-25 SR-DRV-26 SR-DRV-27
 * Shows: SR-DRV-28 SR-DRV-29 SR-DRV-30 SR-DRV-33 SR-DRV-39 SR-DRV-40 SR-DRV-41 SR-DRV-42 SR-DRV-05
 * Shows: SR-DRV-06 SR-DRV-11 SR-DRV-22 SR-DRV-23
 */
static void test_driver_and_model_agree(void **state)
{
	static struct test t;

	(void)state;
	run_start(&t.run, OPERATIONS);
	while (run_episode(&t.run)) {
		uint32_t steps;

		run_operation(&t.run, "start");
		episode_start(&t);
		steps = 1 + below(&t, t.calm ? 100 : t.model.max_size > SMALL ? 2000 : 6000);
		while (steps--) {
			const struct operation *op = &operations[run_pick(&t.run, t.weight, KINDS)];

			run_operation(&t.run, op->name);
			op->run(&t);
			compare(&t);
			if (t.model.state && one_in(&t, 20)) {
				op_detach(&t);
				op_restart(&t);
			}
		}
		episode_end(&t);
	}
	free(t.object);
	happened(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_and_model_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
