/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_add_list.c: a list of requests is as good as the same ones, one by one. */
#include "driver_bench.h"

#include <stdbool.h>

#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define PLATFORM VQB_FEATURE(VQB_F_ORDER_PLATFORM)

enum { SIZE = 16, TABLES = 4, TABLE_LEN = 4, LIST = 12, SEGMENTS = 6 };

/* ---- requests ---- */

struct requests {
	struct vqb_submission list[LIST];
	struct vqb_segment seg[LIST][SEGMENTS];
	uint32_t n;
};

static void append(struct requests *q, uintptr_t token, uint32_t readable, uint32_t writable)
{
	for (uint32_t i = 0; i < readable + writable && i < SEGMENTS; i++)
		q->seg[q->n][i] = bench_segment(token, i);
	q->list[q->n] =
		(struct vqb_submission){ q->seg[q->n], readable, writable, bench_token(token) };
	q->n++;
}

/* A request whose segments must not be looked at. */
static void append_untouchable(struct requests *q)
{
	q->list[q->n++] = (struct vqb_submission){ NULL, 1, 1, bench_token(99) };
}

static int32_t add_list(struct bench *b, const struct requests *q, uint32_t *added)
{
	*added = 0xdead;
	return vqb_driver_add_list(b->drv, q->list, q->n, added);
}

static int32_t add_one_by_one(struct bench *b, const struct requests *q, uint32_t *added)
{
	int32_t status = VQB_OK;

	for (*added = 0; *added < q->n; ++*added) {
		const struct vqb_submission *s = &q->list[*added];

		status = vqb_driver_add(b->drv, s->seg, s->readable, s->writable, s->token);
		if (status)
			break;
	}
	return status;
}

/* ---- two drivers, of which one gets lists ---- */

struct calls {
	uint64_t flushed, invalidated; /* bytes */
	uint32_t flushes, invalidates;
};

struct twins {
	struct bench list, single;
	struct calls calls[2];
	struct vqb_cache_ops ops[2];
	uint64_t seed;
	uintptr_t tokens;
	/* what has happened */
	uint32_t lists, refused, scattered;
};

static void count_flush(void *context, const void *at, size_t bytes)
{
	struct calls *calls = (struct calls *)context;

	(void)at;
	calls->flushes++;
	calls->flushed += bytes;
}

static void count_invalidate(void *context, const void *at, size_t bytes)
{
	struct calls *calls = (struct calls *)context;

	(void)at;
	calls->invalidates++;
	calls->invalidated += bytes;
}

struct kind {
	uint64_t features;
	uint32_t flags, tables, policy;
	int cached;
};

static void open_one(struct twins *t, struct bench *b, unsigned which, const struct kind *kind)
{
	bench_configure(b, SIZE, kind->features, kind->tables, TABLE_LEN, kind->policy);
	b->config.ring.flags = kind->flags;
	t->ops[which] = (struct vqb_cache_ops){ .struct_size = sizeof(t->ops[which]),
						.flush = count_flush,
						.invalidate = count_invalidate,
						.context = &t->calls[which] };
	if (kind->cached)
		b->config.cache = &t->ops[which];
	bench_start(b);
}

static void twins_open(struct twins *t, const struct kind *kind, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->seed = seed;
	raw_big = kind->flags & VQB_RING_BIG_ENDIAN;
	open_one(t, &t->list, 0, kind);
	open_one(t, &t->single, 1, kind);
}

static void twins_close(struct twins *t)
{
	bench_close(&t->list);
	bench_close(&t->single);
	raw_big = 0;
}

static void expect_alike(const struct twins *t)
{
	struct vqb_driver_counters list, single;

	assert_true(bench_rings(&t->list) == bench_rings(&t->single));
	assert_true(bench_chains(&t->list) == bench_chains(&t->single));
	assert_int_equal(vqb_driver_free(t->list.drv), vqb_driver_free(t->single.drv));
	assert_int_equal(vqb_driver_in_flight(t->list.drv), vqb_driver_in_flight(t->single.drv));
	vqb_driver_read_counters(t->list.drv, &list);
	vqb_driver_read_counters(t->single.drv, &single);
	assert_memory_equal(&list, &single, sizeof(list));
	assert_memory_equal(&t->calls[0], &t->calls[1], sizeof(t->calls[0]));
}

static void random_requests(struct twins *t, struct requests *q)
{
	uint32_t n = bench_random(&t->seed, LIST + 1);

	for (q->n = 0; q->n < n;) {
		uint32_t all = 1 + bench_random(&t->seed, bench_random(&t->seed, 3) ? 3 : SEGMENTS);
		uint32_t readable = bench_random(&t->seed, all + 1), at = q->n;

		append(q, ++t->tokens, readable, all - readable);
		if (!bench_random(&t->seed, 30))
			q->seg[at][bench_random(&t->seed, all)].len = 0;
		if (!bench_random(&t->seed, 60))
			q->list[at].writable = SIZE + 1;
		if (!bench_random(&t->seed, 60))
			q->list[at].readable = q->list[at].writable = 0;
	}
}

static void add_to_both(struct twins *t)
{
	struct requests q;
	uint32_t added, wanted;
	int32_t status;

	random_requests(t, &q);
	status = add_list(&t->list, &q, &added);
	assert_int_equal(status, add_one_by_one(&t->single, &q, &wanted));
	assert_int_equal(added, wanted);
	assert_int_equal(status == VQB_OK, added == q.n);
	t->lists += added > 1;
	t->refused += status != VQB_OK;
	expect_alike(t);
	assert_int_equal(vqb_driver_publish(t->list.drv), vqb_driver_publish(t->single.drv));
	expect_alike(t);
}

/* The device gives back some of what it has, in any order, or in the order in which it came. */
static void give_some(struct twins *t, bool in_order, unsigned *out, uint32_t *outs)
{
	uint32_t n = bench_random(&t->seed, *outs + 1);

	while (n--) {
		uint32_t i = in_order ? 0 : bench_random(&t->seed, *outs);
		uint32_t len = bench_random(&t->seed, 2000);

		bench_give(&t->list, out[i], len);
		bench_give(&t->single, out[i], len);
		memmove(out + i, out + i + 1, (*outs - i - 1) * sizeof(*out));
		--*outs;
	}
}

static void reap_both(struct twins *t)
{
	struct vqb_done done[2][SIZE];
	uint32_t n = vqb_driver_reap(t->list.drv, done[0], SIZE);

	assert_int_equal(n, vqb_driver_reap(t->single.drv, done[1], SIZE));
	for (uint32_t i = 0; i < n; i++) {
		assert_ptr_equal(done[0][i].token, done[1][i].token);
		assert_int_equal(done[0][i].len, done[1][i].len);
		assert_int_equal(done[0][i].flags, done[1][i].flags);
	}
	expect_alike(t);
}

/* Chains whose descriptors do not lie behind each other. */
static uint32_t scattered(const struct bench *b, unsigned head)
{
	unsigned at[SIZE], n = bench_chain(b, head, at);

	for (unsigned i = 1; i < n; i++)
		if (at[i] != at[i - 1] + 1)
			return 1;
	return 0;
}

static void run_alike(struct twins *t, const struct kind *kind)
{
	unsigned out[SIZE];
	uint32_t outs = 0;

	for (unsigned round = 0; round < 300; round++) {
		add_to_both(t);
		while (bench_visible(&t->list)) {
			t->scattered +=
				scattered(&t->list, raw_avail_entry(&t->list.raw, t->list.taken));
			out[outs] = bench_take(&t->list);
			assert_int_equal(bench_take(&t->single), out[outs]);
			outs++;
		}
		give_some(t, kind->features & IN_ORDER, out, &outs);
		reap_both(t);
	}
	assert_int_equal(vqb_driver_state(t->list.drv), VQB_OK);
}

/* Shows: SR-DRV-31 SR-DRV-32 SR-DRV-33 */
static void test_the_same_bytes_tokens_and_counters_as_one_by_one(void **state)
{
	static const struct kind kind[] = {
		{ FLAGS_MODE, 0, 0, VQB_INDIRECT_NEVER, 0 },
		{ EVENT_MODE, 0, 0, VQB_INDIRECT_NEVER, 0 },
		{ EVENT_MODE | INDIRECT, 0, TABLES, VQB_INDIRECT_ALWAYS, 0 },
		{ EVENT_MODE | INDIRECT, 0, TABLES, VQB_INDIRECT_ADAPTIVE, 0 },
		{ EVENT_MODE | IN_ORDER, 0, 0, VQB_INDIRECT_NEVER, 0 },
		{ EVENT_MODE | IN_ORDER | INDIRECT, 0, TABLES, VQB_INDIRECT_ALWAYS, 0 },
		{ EVENT_MODE | PLATFORM, 0, 0, VQB_INDIRECT_NEVER, 0 },
		{ INDIRECT, VQB_RING_BIG_ENDIAN, TABLES, VQB_INDIRECT_ALWAYS, 0 },
		{ EVENT_MODE & ~FLAGS_MODE, VQB_RING_BIG_ENDIAN, 0, VQB_INDIRECT_NEVER, 0 },
		{ EVENT_MODE, 0, 0, VQB_INDIRECT_NEVER, 1 },
		{ EVENT_MODE | INDIRECT, 0, TABLES, VQB_INDIRECT_ALWAYS, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		struct twins t;

		twins_open(&t, &kind[i], i + 1);
		run_alike(&t, &kind[i]);
		assert_true(t.lists > 20);
		assert_true(t.refused > 20);
		if (!(kind[i].features & (IN_ORDER | INDIRECT)))
			assert_true(t.scattered > 20);
		assert_int_equal(t.calls[0].flushes > 0, kind[i].cached);
		twins_close(&t);
	}
}

/* What is in the ring is what was asked for, and not only twice the same. */
static void test_each_of_a_list_is_a_chain_of_its_own(void **state)
{
	struct requests q = { .n = 0 };
	uint32_t added;
	struct bench b;

	(void)state;
	bench_open(&b, SIZE, EVENT_MODE);
	append(&q, 1, 1, 2);
	append(&q, 2, 0, 1);
	append(&q, 3, 1, 0);
	append(&q, 4, 3, 3);
	assert_int_equal(add_list(&b, &q, &added), VQB_OK);
	assert_int_equal(added, 4);
	assert_int_equal(raw_avail_idx(&b.raw), 0);
	memset(&q, 0xff, sizeof(q)); /* the caller's again */
	vqb_driver_publish(b.drv);
	assert_int_equal(raw_avail_idx(&b.raw), 4);
	bench_expect_direct(&b, raw_avail_entry(&b.raw, 0), 1, 1, 2);
	bench_expect_direct(&b, raw_avail_entry(&b.raw, 1), 2, 0, 1);
	bench_expect_direct(&b, raw_avail_entry(&b.raw, 2), 3, 1, 0);
	bench_expect_direct(&b, raw_avail_entry(&b.raw, 3), 4, 3, 3);
	bench_serve(&b);
	for (unsigned i = 1; i <= 4; i++)
		assert_int_equal(bench_reap(&b), i);
	bench_close(&b);
}

static void test_an_empty_list_changes_nothing(void **state)
{
	struct bench_state before;
	uint32_t added = 77;
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_add(&b, 1, 1, 1);
	before = bench_state(&b);
	assert_int_equal(vqb_driver_add_list(b.drv, NULL, 0, &added), VQB_OK);
	assert_int_equal(added, 0);
	bench_expect_unchanged(&b, before);
	bench_close(&b);
}

/* ---- the first one that is refused ---- */

/* Two are added, the third is refused with `status`, and the fourth isn't looked at. */
static void expect_third_refused(struct bench *b, const struct requests *q, int32_t status)
{
	uint32_t free = vqb_driver_free(b->drv), out = vqb_driver_in_flight(b->drv), added;

	assert_int_equal(add_list(b, q, &added), status);
	assert_int_equal(added, 2);
	assert_int_equal(vqb_driver_in_flight(b->drv), out + 2);
	assert_int_equal(vqb_driver_free(b->drv), free - 3);
	assert_int_equal(vqb_driver_state(b->drv), VQB_OK);
	vqb_driver_publish(b->drv);
	assert_int_equal(bench_visible(b), 2);
	bench_expect_direct(b, bench_take(b), 21, 1, 1);
	bench_expect_direct(b, bench_take(b), 22, 1, 0);
}

static void begin(struct requests *q)
{
	q->n = 0;
	append(q, 21, 1, 1);
	append(q, 22, 1, 0);
}

static void test_nospc_is_of_the_first_that_finds_no_room(void **state)
{
	struct vqb_driver_counters count;
	struct requests q;
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	begin(&q);
	append(&q, 23, 1, 1);
	append(&q, 24, 1, 0); /* for which there would be */
	expect_third_refused(&b, &q, VQB_E_NOSPC);
	vqb_driver_read_counters(b.drv, &count);
	assert_int_equal(count.requests, 2);
	assert_int_equal(count.descriptors, 3);
	assert_int_equal(count.no_room, 1);
	bench_add(&b, 24, 1, 0);
	vqb_driver_publish(b.drv);
	bench_expect_direct(&b, bench_take(&b), 24, 1, 0);
	bench_close(&b);
}

/* A list that is longer than the ring fills it, and says so. */
static void test_a_list_fills_the_ring_to_the_last_descriptor(void **state)
{
	struct requests q = { .n = 0 };
	uint32_t added;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 10; i++)
		append(&q, i, 0, 1);
	assert_int_equal(add_list(&b, &q, &added), VQB_E_NOSPC);
	assert_int_equal(added, 8);
	assert_int_equal(vqb_driver_free(b.drv), 0);
	vqb_driver_publish(b.drv);
	for (unsigned i = 0; i < 8; i++)
		bench_expect_direct(&b, bench_take(&b), i, 0, 1);
	bench_close(&b);
}

static void test_toobig_is_of_the_request(void **state)
{
	static const struct vqb_segment most[2] = { { BENCH_DATA_AT, 0xffffffff, 0 },
						    { BENCH_DATA_AT, 2, 0 } };
	struct requests q;
	struct bench b;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		bench_open(&b, 8, EVENT_MODE);
		begin(&q);
		append(&q, 23, 1, 1);
		if (i)
			memcpy(q.seg[2], most, sizeof(most));
		else
			q.list[2].writable = 8;
		append_untouchable(&q);
		expect_third_refused(&b, &q, VQB_E_TOOBIG);
		bench_add(&b, 25, 3, 2);
		bench_close(&b);
	}
}

static void test_invalid_is_of_the_request(void **state)
{
	struct requests q;
	struct bench b;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bench_open(&b, 8, EVENT_MODE);
		begin(&q);
		append(&q, 23, 1, 1);
		if (i == 0)
			q.seg[2][1].len = 0;
		else if (i == 1)
			q.seg[2][0].zero = 1;
		else if (i == 2)
			q.list[2].readable = q.list[2].writable = 0;
		else /* a single one */
			q.list[2].writable = 0, q.seg[2][0].len = 0;
		append_untouchable(&q);
		expect_third_refused(&b, &q, VQB_E_INVALID);
		bench_add(&b, 25, 3, 2);
		vqb_driver_publish(b.drv);
		bench_expect_direct(&b, bench_take(&b), 25, 3, 2);
		bench_close(&b);
	}
}

/* The first of all: *added says 0. */
static void test_none_is_added_where_the_first_is_refused(void **state)
{
	struct bench_state before;
	struct requests q = { .n = 0 };
	uint32_t added;
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_add(&b, 1, 2, 1);
	append(&q, 2, 1, 1);
	append_untouchable(&q);
	before = bench_state(&b);
	assert_int_equal(add_list(&b, &q, &added), VQB_E_NOSPC);
	assert_int_equal(added, 0);
	bench_expect_unchanged(&b, before);
	bench_close(&b);
}

/* ---- a queue that takes nothing ---- */

static void expect_all_refused(struct bench *b, int32_t status)
{
	struct bench_state before = bench_state(b);
	struct requests q = { .n = 0 };
	uint32_t added;

	append_untouchable(&q);
	append_untouchable(&q);
	assert_int_equal(add_list(b, &q, &added), status);
	assert_int_equal(added, 0);
	q.n = 0;
	assert_int_equal(add_list(b, &q, &added), status);
	assert_int_equal(added, 0);
	bench_expect_unchanged(b, before);
}

/* Shows: BF-DRV-04 */
static void test_a_queue_that_is_stopped_adds_none(void **state)
{
	static const uint64_t mode[] = { FLAGS_MODE, EVENT_MODE | IN_ORDER, EVENT_MODE | PLATFORM };
	struct bench b;

	(void)state;
	for (unsigned m = 0; m < 3; m++) {
		bench_open(&b, 8, mode[m]);
		bench_add(&b, 1, 1, 1);
		vqb_driver_publish(b.drv);
		bench_give(&b, 7, 0); /* not lent */
		bench_reap_none(&b);
		expect_all_refused(&b, VQB_E_BROKEN);
		bench_close(&b);

		bench_open(&b, 8, mode[m]);
		bench_add(&b, 1, 1, 1);
		vqb_driver_needs_reset(b.drv);
		expect_all_refused(&b, VQB_E_NEEDS_RESET);
		vqb_driver_reset(b.drv, NULL);
		expect_all_refused(&b, VQB_E_INVALID);
		bench_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_bytes_tokens_and_counters_as_one_by_one),
		cmocka_unit_test(test_each_of_a_list_is_a_chain_of_its_own),
		cmocka_unit_test(test_an_empty_list_changes_nothing),
		cmocka_unit_test(test_nospc_is_of_the_first_that_finds_no_room),
		cmocka_unit_test(test_a_list_fills_the_ring_to_the_last_descriptor),
		cmocka_unit_test(test_toobig_is_of_the_request),
		cmocka_unit_test(test_invalid_is_of_the_request),
		cmocka_unit_test(test_none_is_added_where_the_first_is_refused),
		cmocka_unit_test(test_a_queue_that_is_stopped_adds_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
