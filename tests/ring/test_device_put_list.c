/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device_put_list.c: a list of completions is as good as the same ones, one by one. */
#include "device_bench.h"

#include <stdbool.h>

#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define PLATFORM VQB_FEATURE(VQB_F_ORDER_PLATFORM)

enum { SIZE = 16, LEN = 16 };

static _Alignas(64) uint8_t area[VQB_TRACKING_BYTES(SIZE)];

static uint32_t random_below(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

/* ---- the same run, by lists or one by one ---- */

struct calls {
	uint64_t bytes[3]; /* flushed, invalidated, logged */
	uint32_t count[3];
};

struct kind {
	uint64_t features;
	uint32_t flags;
	bool tracks, cached, logs;
};

/* What a run leaves. */
struct outcome {
	uint8_t *low; /* guest memory */
	uint8_t area[sizeof(area)];
	struct calls calls;
	struct vqb_device_counters count;
	uint64_t answers; /* of publish */
	uint32_t lists, refused;
};

static void note(struct calls *calls, unsigned what, uint64_t bytes)
{
	calls->count[what]++;
	calls->bytes[what] += bytes;
}

static void count_flush(void *context, const void *at, size_t bytes)
{
	(void)at;
	note((struct calls *)context, 0, bytes);
}

static void count_invalidate(void *context, const void *at, size_t bytes)
{
	(void)at;
	note((struct calls *)context, 1, bytes);
}

static void count_log(void *context, uint64_t addr, uint64_t len)
{
	note((struct calls *)context, 2, len + addr % 4096);
}

static void open_kind(struct bench *b, void **state, const struct kind *kind,
		      struct vqb_cache_ops *ops, struct calls *calls)
{
	bench_plan(state, SIZE, kind->features);
	b->config.ring.flags = kind->flags;
	memset(area, 0, sizeof(area));
	if (kind->tracks)
		b->config.tracking = (struct vqb_tracking){ area, sizeof(area) };
	*ops = (struct vqb_cache_ops){ .struct_size = sizeof(*ops),
				       .flush = count_flush,
				       .invalidate = count_invalidate,
				       .context = calls };
	if (kind->cached)
		b->config.cache = ops;
	if (kind->logs) {
		b->memory.log = count_log;
		b->memory.context = calls;
	}
	bench_start(b);
}

/* One by one, as the list has them; answers as put_list does. */
static uint32_t put_each(struct bench *b, const struct vqb_completion *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (vqb_device_put(b->dev, list[i].ticket, list[i].written))
			return i;
	return n;
}

/* Some of what is out, in any order, among it now and then one that is refused. */
static uint32_t random_list(uint64_t *seed, struct vqb_ticket *out, uint32_t outs,
			    struct vqb_completion *list)
{
	uint32_t n = random_below(seed, outs + 1);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t with = i + random_below(seed, outs - i);
		struct vqb_ticket ticket = out[with];

		out[with] = out[i];
		out[i] = ticket;
		list[i] = (struct vqb_completion){ ticket, random_below(seed, LEN + 1) };
	}
	if (n && !random_below(seed, 4)) {
		uint32_t wrong = random_below(seed, n);

		if (random_below(seed, 2))
			list[wrong].written = LEN + 1 + random_below(seed, 9);
		else
			list[wrong].ticket.seq -= 1 + random_below(seed, 40);
	}
	return n;
}

static uint32_t free_head(const struct vqb_ticket *out, uint32_t outs, const bool *hidden,
			  uint64_t *seed)
{
	for (;;) {
		uint32_t head = random_below(seed, SIZE), i = 0;

		while (i < outs && out[i].head != head)
			i++;
		if (i == outs && !hidden[head])
			return head;
	}
}

/*
 * Offers, takes and puts at random. `hidden` are the heads that the driver has not seen come back:
 * under IN_ORDER, where that depends on all, none is offered again before everything has been put.
 */
static void run(struct bench *b, uint64_t seed, bool by_lists, struct outcome *o)
{
	struct vqb_ticket out[SIZE];
	struct vqb_completion list[SIZE];
	bool hidden[SIZE] = { false };
	uint32_t outs = 0, held = 0;

	for (unsigned round = 0; round < 300; round++) {
		uint32_t n = random_below(&seed, SIZE - outs - held + 1), put;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t head = free_head(out, outs, hidden, &seed);

			bench_offer_writable(b, head);
			bench_take_good(b, 1);
			out[outs++] = b->chain[0].ticket;
		}
		n = random_list(&seed, out, outs, list);
		put = by_lists ? vqb_device_put_list(b->dev, list, n) : put_each(b, list, n);
		assert_true(put <= n);
		o->lists += put > 1;
		o->refused += put < n;
		for (uint32_t i = 0; i < put; i++) {
			hidden[out[i].head] = true;
			held++;
		}
		memmove(out, out + put, (outs - put) * sizeof(*out));
		outs -= put;
		o->answers = o->answers * 3 + vqb_device_publish(b->dev);
		if (!(b->config.ring.features & IN_ORDER) || !outs) {
			memset(hidden, 0, sizeof(hidden));
			held = 0;
		}
		if (!(b->config.ring.features & IN_ORDER))
			assert_int_equal(vqb_device_in_flight(b->dev), outs);
		if (round % 8 == 7) { /* so that what is in order gets on */
			for (uint32_t i = 0; i < outs; i++)
				list[i] = (struct vqb_completion){ out[outs - 1 - i], i };
			put = by_lists ? vqb_device_put_list(b->dev, list, outs)
				       : put_each(b, list, outs);
			assert_int_equal(put, outs);
			vqb_device_expose(b->dev);
			memset(hidden, 0, sizeof(hidden));
			outs = held = 0;
			assert_int_equal(vqb_device_in_flight(b->dev), 0);
		}
	}
	vqb_device_read_counters(b->dev, &o->count);
	o->low = bench_snapshot(b);
	memcpy(o->area, area, sizeof(area));
}

/* Shows: BF-ANY-05 SR-ANY-05 SR-DEV-15 */
static void test_the_same_bytes_and_counters_as_one_by_one(void **state)
{
	static const struct kind kind[] = {
		{ .features = 0 },
		{ .features = EVENT_IDX },
		{ .features = EVENT_IDX | IN_ORDER },
		{ .features = EVENT_IDX | PLATFORM },
		{ .features = EVENT_IDX, .flags = VQB_RING_BIG_ENDIAN },
		{ .features = IN_ORDER, .flags = VQB_RING_BIG_ENDIAN },
		{ .features = EVENT_IDX, .tracks = true },
		{ .features = EVENT_IDX | IN_ORDER, .tracks = true },
		{ .features = EVENT_IDX, .cached = true },
		{ .features = EVENT_IDX | IN_ORDER, .cached = true },
		{ .features = EVENT_IDX, .logs = true },
		{ .features = EVENT_IDX | IN_ORDER, .tracks = true, .cached = true, .logs = true },
	};
	struct bench *b = (struct bench *)*state;

	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		struct outcome o[2] = { { .low = NULL } };

		raw_big = kind[i].flags & VQB_RING_BIG_ENDIAN;
		for (unsigned by_lists = 0; by_lists < 2; by_lists++) {
			struct vqb_cache_ops ops;

			open_kind(b, state, &kind[i], &ops, &o[by_lists].calls);
			run(b, i + 1, by_lists, &o[by_lists]);
		}
		assert_true(o[1].lists > 50 && o[1].refused > 20);
		assert_memory_equal(o[0].low, o[1].low, REGION_BYTES);
		free(o[0].low);
		free(o[1].low);
		o[0].low = o[1].low = NULL;
		assert_memory_equal(o[0].area, o[1].area, sizeof(area));
		assert_memory_equal(&o[0].calls, &o[1].calls, sizeof(o[0].calls));
		assert_memory_equal(&o[0].count, &o[1].count, sizeof(o[0].count));
		assert_true(o[0].answers == o[1].answers);
		assert_int_equal(o[0].lists, o[1].lists);
		assert_int_equal(o[0].refused, o[1].refused);
		assert_true(o[0].count.stale > 5);
		raw_big = 0;
	}
}

/* ---- by hand ---- */

static struct vqb_completion completion(const struct bench *b, uint32_t i, uint32_t written)
{
	return (struct vqb_completion){ b->chain[i].ticket, written };
}

/* `n` chains of 16 writable bytes are out, with heads from 4 on. */
static struct bench *open_taken(void **state, uint64_t features, uint32_t n)
{
	struct bench *b = bench_open(state, SIZE, features);

	for (uint32_t i = 0; i < n; i++)
		bench_offer_writable(b, 4 + i);
	bench_take_good(b, n);
	return b;
}

static uint64_t stale_puts(const struct bench *b)
{
	struct vqb_device_counters count;

	vqb_device_read_counters(b->dev, &count);
	return count.stale;
}

/* Shows: BF-ANY-05 */
static void test_a_list_fills_slots_in_its_own_order(void **state)
{
	static const unsigned order[] = { 2, 0, 3, 1 };
	struct bench *b = open_taken(state, EVENT_IDX, 4);
	struct vqb_completion list[4];

	for (unsigned i = 0; i < 4; i++)
		list[i] = completion(b, order[i], i + 1);
	assert_int_equal(vqb_device_put_list(b->dev, list, 4), 4);
	assert_int_equal(raw_used_idx(&b->ring), 0);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	memset(list, 0xff, sizeof(list));
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 4);
	for (unsigned i = 0; i < 4; i++)
		bench_assert_used(b, i, 4 + order[i], i + 1);
}

static void test_an_empty_list_changes_nothing(void **state)
{
	struct bench *b = open_taken(state, EVENT_IDX, 2);
	uint8_t *before = bench_snapshot(b);

	assert_int_equal(vqb_device_put_list(b->dev, NULL, 0), 0);
	vqb_device_expose(b->dev);
	bench_assert_unchanged(b, before);
	assert_int_equal(vqb_device_in_flight(b->dev), 2);
	assert_int_equal(stale_puts(b), 0);
}

/* The first `put` of three are in the used ring, with one byte each, and the others are out. */
static void expect_put(struct bench *b, uint32_t put, uint64_t stale)
{
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), put);
	assert_int_equal(raw_used_id(&b->ring, put), 0);
	for (uint32_t i = 0; i < put; i++)
		bench_assert_used(b, i, 4 + i, 1);
	for (uint32_t i = put; i < 3; i++)
		assert_int_equal(vqb_device_holds(b->dev, b->chain[i].ticket), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 3 - put);
	assert_int_equal(stale_puts(b), stale);
}

/* A list of all three, of which the one at `wrong` is spoilt by the caller. */
static void three(const struct bench *b, struct vqb_completion *list)
{
	for (uint32_t i = 0; i < 3; i++)
		list[i] = completion(b, i, 1);
}

static void test_more_than_the_writable_bytes_ends_a_list(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX | IN_ORDER, PLATFORM };

	for (unsigned f = 0; f < 3; f++) {
		for (uint32_t wrong = 0; wrong < 3; wrong++) {
			struct bench *b = open_taken(state, features[f], 3);
			struct vqb_completion list[3];

			three(b, list);
			list[wrong].written = LEN + 1;
			assert_int_equal(vqb_device_put_list(b->dev, list, 3), wrong);
			expect_put(b, wrong, 0);
			list[wrong].written = 1;
			assert_int_equal(vqb_device_put_list(b->dev, list + wrong, 3 - wrong),
					 3 - wrong);
			expect_put(b, 3, 0);
		}
	}
}

/* Never given, put before, or a head beyond the largest ring. */
static void test_a_stale_ticket_ends_a_list_and_is_counted(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX | IN_ORDER, PLATFORM };

	for (unsigned f = 0; f < 3; f++) {
		for (uint32_t wrong = 0; wrong < 9; wrong++) {
			struct bench *b = open_taken(state, features[f], 3);
			struct vqb_completion list[3];

			three(b, list);
			if (wrong < 3)
				list[wrong].ticket.seq += 7;
			else if (wrong < 6)
				list[wrong % 3].ticket.seq = 0;
			else
				list[wrong % 3].ticket.head = 0xffff;
			assert_int_equal(vqb_device_put_list(b->dev, list, 3), wrong % 3);
			expect_put(b, wrong % 3, 1);
			three(b, list);
			assert_int_equal(
				vqb_device_put_list(b->dev, list + wrong % 3, 3 - wrong % 3),
				3 - wrong % 3);
			expect_put(b, 3, 1);
		}
	}
}

static void test_a_ticket_that_comes_twice_is_put_once(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX | IN_ORDER, PLATFORM };

	for (unsigned f = 0; f < 3; f++) {
		struct bench *b = open_taken(state, features[f], 3);
		struct vqb_completion list[4] = { completion(b, 0, 1), completion(b, 1, 1),
						  completion(b, 1, 1), completion(b, 2, 1) };

		assert_int_equal(vqb_device_put_list(b->dev, list, 4), 2);
		expect_put(b, 2, 1);
		assert_int_equal(vqb_device_put_list(b->dev, list + 3, 1), 1);
		expect_put(b, 3, 1);
	}
}

/* The same, with a ring again, and without one. */
static void test_tickets_of_a_ring_that_was_reset_are_stale(void **state)
{
	static const uint64_t features[] = { 0, EVENT_IDX | IN_ORDER };

	for (unsigned f = 0; f < 2; f++) {
		struct bench *b = open_taken(state, features[f], 3);
		struct vqb_completion list[3];
		uint8_t *before;

		three(b, list);
		assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
		before = bench_snapshot(b);
		assert_int_equal(vqb_device_put_list(b->dev, list, 3), 0);
		assert_int_equal(stale_puts(b), 1);
		bench_assert_unchanged(b, before);
		assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
		poke(b->ring.avail + 2, 3, 2);
		bench_take_good(b, 3);
		before = bench_snapshot(b);
		assert_int_equal(vqb_device_put_list(b->dev, list, 3), 0);
		assert_int_equal(stale_puts(b), 2);
		bench_assert_unchanged(b, before);
		assert_int_equal(vqb_device_in_flight(b->dev), 3);
	}
}

/* What is out may still be put, and is seen. */
static void test_a_queue_that_is_stopped_still_puts(void **state)
{
	struct bench *b = open_taken(state, 0, 3);
	struct vqb_completion list[3];

	three(b, list);
	vqb_device_needs_reset(b->dev);
	assert_int_equal(vqb_device_put_list(b->dev, list, 3), 3);
	expect_put(b, 3, 0);

	b = open_taken(state, EVENT_IDX, 3);
	three(b, list);
	bench_offer(b, SIZE); /* outside of the ring */
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_put_list(b->dev, list, 3), 3);
	expect_put(b, 3, 0);
}

/* Shows: SR-DEV-18 */
static void test_in_order_a_list_is_seen_when_the_oldest_is_put(void **state)
{
	struct bench *b = open_taken(state, EVENT_IDX | IN_ORDER, 4);
	struct vqb_completion list[3] = { completion(b, 3, LEN), completion(b, 1, 5),
					  completion(b, 2, LEN) };
	struct vqb_completion oldest = completion(b, 0, LEN);

	assert_int_equal(vqb_device_put_list(b->dev, list, 3), 3);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 0);
	assert_int_equal(vqb_device_in_flight(b->dev), 4);
	assert_int_equal(vqb_device_put_list(b->dev, &oldest, 1), 1);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 4);
	bench_assert_used(b, 0, 5, 5); /* it was not written in full, so it ends a batch */
	bench_assert_used(b, 2, 7, LEN);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
}

/* No fence and no decision, whatever the length. A bad chain is put like any other, with 0. */
static void test_bad_chains_are_put_in_a_list(void **state)
{
	struct bench *b = bench_open(state, SIZE, 0);
	struct vqb_completion list[3];

	bench_offer_writable(b, 4);
	bench_desc(b, 5, DATA, 16, RAW_NEXT, SIZE);
	bench_offer(b, 5);
	bench_offer_writable(b, 6);
	assert_int_equal(bench_take(b, 3), VQB_OK);
	assert_int_equal(b->chain[1].status, VQB_E_BAD_CHAIN);
	three(b, list);
	assert_int_equal(vqb_device_put_list(b->dev, list, 3), 1);
	list[1].written = 0;
	assert_int_equal(vqb_device_put_list(b->dev, list + 1, 2), 2);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 4, 1);
	bench_assert_used(b, 1, 5, 0);
	bench_assert_used(b, 2, 6, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_the_same_bytes_and_counters_as_one_by_one),
		bench_test(test_a_list_fills_slots_in_its_own_order),
		bench_test(test_an_empty_list_changes_nothing),
		bench_test(test_more_than_the_writable_bytes_ends_a_list),
		bench_test(test_a_stale_ticket_ends_a_list_and_is_counted),
		bench_test(test_a_ticket_that_comes_twice_is_put_once),
		bench_test(test_tickets_of_a_ring_that_was_reset_are_stale),
		bench_test(test_a_queue_that_is_stopped_still_puts),
		bench_test(test_in_order_a_list_is_seen_when_the_oldest_is_put),
		bench_test(test_bad_chains_are_put_in_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
