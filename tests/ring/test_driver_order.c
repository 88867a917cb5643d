/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_order.c: which descriptors a request gets. In ring order while completions come in
 * order; whichever are free after a hole; never one that is out.
 */
#include "driver_bench.h"

/* One request of `segments` segments all the way round; its descriptors are those from `first`. */
static void round_at(struct bench *b, uint32_t segments, unsigned first)
{
	unsigned at[64];

	bench_add(b, 1, segments, 0);
	vqb_driver_publish(b->drv);
	assert_int_equal(bench_chain(b, raw_avail_entry(&b->raw, b->taken), at), segments);
	for (uint32_t i = 0; i < segments; i++)
		assert_int_equal(at[i], (first + i) & (b->raw.size - 1));
	bench_serve(b);
	assert_int_equal(bench_reap(b), 1);
}

/* Chains of three in a ring of 8 wrap at its end in every way there is. */
static void test_descriptors_are_taken_in_ring_order(void **state)
{
	unsigned first = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (int i = 0; i < 100; i++, first += 3)
		round_at(&b, 3, first);
	bench_close(&b);
}

static void test_chains_of_all_lengths_wrap_at_the_end_of_the_table(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t size = 1; size <= 16; size *= 2) {
		for (uint32_t length = 1; length <= size; length++) {
			unsigned first = 0;

			bench_open(&b, size, FLAGS_MODE);
			for (int i = 0; i < 40; i++, first += length)
				round_at(&b, length, first);
			bench_close(&b);
		}
	}
}

/* In order, with several out at a time, added and reaped in batches. */
static void test_ring_order_holds_with_many_in_flight(void **state)
{
	uint64_t seed = 11;
	unsigned first = 0, length[16], out = 0, added = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 16, EVENT_MODE);
	for (int i = 0; i < 20000; i++) {
		uint32_t segments = 1 + bench_random(&seed, 5);

		if (segments <= vqb_driver_free(b.drv)) {
			bench_add(&b, segments, segments, 0);
			vqb_driver_publish(b.drv);
			assert_int_equal(bench_take(&b), first & 15);
			first += segments;
			length[added++ & 15] = segments;
			out++;
		} else {
			while (out > bench_random(&seed, 4)) {
				bench_give(&b, raw_avail_entry(&b.raw, b.used), 0);
				assert_int_equal(bench_reap(&b), length[(added - out) & 15]);
				out--;
			}
		}
	}
	bench_close(&b);
}

/* 0, 1, 2, 3 out; 1 comes back: the next one gets 1, because nothing else is free. */
static void test_a_hole_is_filled(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	b.taken = 4;
	bench_give(&b, 1, 0);
	assert_int_equal(bench_reap(&b), 1);
	bench_add(&b, 9, 0, 1);
	vqb_driver_publish(b.drv);
	assert_int_equal(raw_avail_entry(&b.raw, 4), 1);
	bench_expect_direct(&b, bench_take(&b), 9, 0, 1);
	bench_give(&b, 3, 0);
	bench_give(&b, 0, 0);
	assert_int_equal(bench_reap(&b), 3);
	assert_int_equal(vqb_driver_free(b.drv), 1);
	bench_close(&b);
}

/* 1, 3, 4 and 6 come back; one chain takes all four, in whatever order. */
static void test_a_chain_is_made_of_whatever_is_free(void **state)
{
	static const uint32_t holes[] = { 6, 1, 3, 4 };
	unsigned at[8], head, seen = 0;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 8; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	b.taken = 8;
	for (int i = 0; i < 4; i++)
		bench_give(&b, holes[i], 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(bench_reap(&b), holes[i]);
	bench_add(&b, 20, 2, 2);
	vqb_driver_publish(b.drv);
	head = bench_take(&b);
	bench_expect_direct(&b, head, 20, 2, 2);
	bench_chain(&b, head, at);
	for (int i = 0; i < 4; i++)
		seen |= 1u << at[i];
	assert_int_equal(seen, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 6);
	bench_close(&b);
}

/* Whatever became of the order: once all is back, chains follow the ring again. */
static void test_ring_order_comes_back_with_the_last_request(void **state)
{
	unsigned head;
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 4; i++)
		bench_add(&b, i, 1, 1);
	vqb_driver_publish(b.drv);
	b.taken = 4;
	bench_give(&b, 4, 0);
	bench_give(&b, 0, 0);
	bench_give(&b, 6, 0);
	bench_give(&b, 2, 0);
	for (int i = 0; i < 4; i++)
		bench_reap(&b);
	bench_add(&b, 9, 1, 0);
	vqb_driver_publish(b.drv);
	head = raw_avail_entry(&b.raw, b.taken);
	bench_serve(&b);
	bench_reap(&b);
	for (unsigned i = 0, first = head + 1; i < 20; i++, first += 5)
		round_at(&b, 5, first);
	bench_close(&b);
}

/* A request that is out, as the model knows it. */
struct request {
	uintptr_t token;
	unsigned head;
	uint32_t readable, writable;
};

struct model {
	struct request out[64];
	unsigned count;
	uint8_t busy[64];   /* ring descriptors */
	uint8_t *table[64]; /* of the request with that head; NULL: direct */
	uint32_t free;
};

static void expect_request(struct bench *b, const struct request *r)
{
	if (bench_table(b, r->head))
		bench_expect_indirect(b, r->head, r->token, r->readable, r->writable);
	else
		bench_expect_direct(b, r->head, r->token, r->readable, r->writable);
}

/* The driver has offered `r`: its descriptors and table were free, and no longer are. */
static void model_take(struct model *m, struct bench *b, const struct request *r)
{
	unsigned at[64], count = bench_chain(b, r->head, at);
	uint8_t *table = bench_table(b, r->head);

	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(m->busy[at[i]], 0);
		m->busy[at[i]] = 1;
	}
	for (unsigned i = 0; table && i < m->count; i++)
		assert_ptr_not_equal(table, m->table[m->out[i].head]);
	m->table[r->head] = table;
	m->out[m->count++] = *r;
	m->free -= count;
}

/* The device gives back the request number `which` of those that are out. */
static struct request model_give(struct model *m, struct bench *b, unsigned which)
{
	struct request r = m->out[which];
	unsigned at[64], count = bench_chain(b, r.head, at);

	expect_request(b, &r);
	for (unsigned i = 0; i < count; i++)
		m->busy[at[i]] = 0;
	m->out[which] = m->out[--m->count];
	m->free += count;
	bench_give(b, r.head, 0);
	return r;
}

/* Whether `n` segments have to be taken now, given what is free. */
static int model_has_room(const struct model *m, const struct bench *b, uint32_t n)
{
	unsigned tables = 0;

	for (unsigned i = 0; i < m->count; i++)
		tables += m->table[m->out[i].head] != NULL;
	if (n <= m->free)
		return 1;
	return n > 1 && m->free > 0 && n <= b->config.max_table &&
	       tables < b->config.tables.bytes / (16 * (size_t)b->config.max_table);
}

static void random_traffic(struct bench *b, uint64_t seed, unsigned long steps)
{
	struct model m = { .free = b->raw.size };
	uintptr_t token = 1;

	while (steps--) {
		struct request r = { .token = token++ };
		uint32_t n = 1 + bench_random(&seed, b->raw.size < 6 ? b->raw.size : 6);
		unsigned back = bench_random(&seed, m.count + 1);

		r.readable = bench_random(&seed, n + 1);
		r.writable = n - r.readable;
		if (model_has_room(&m, b, n)) {
			bench_add(b, r.token, r.readable, r.writable);
			vqb_driver_publish(b->drv);
			r.head = bench_take(b);
			expect_request(b, &r);
			model_take(&m, b, &r);
		} else {
			struct bench_state before = bench_state(b);

			assert_int_equal(bench_try_add(b, r.token, r.readable, r.writable),
					 VQB_E_NOSPC);
			bench_expect_unchanged(b, before);
		}
		for (back = back > 3 ? back - 3 : 0; back; back--) {
			r = model_give(&m, b, bench_random(&seed, m.count));
			assert_int_equal(bench_reap(b), r.token);
		}
		assert_int_equal(vqb_driver_free(b->drv), m.free);
		assert_int_equal(vqb_driver_in_flight(b->drv), m.count);
	}
	while (m.count) {
		struct request r = model_give(&m, b, bench_random(&seed, m.count));

		assert_int_equal(bench_reap(b), r.token);
	}
	assert_int_equal(vqb_driver_free(b->drv), b->raw.size);
}

/* Shows: SR-DRV-04 SR-DRV-09 SR-DRV-10 BF-DRV-32 */
static void test_random_order_never_gives_out_what_is_out(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t size = 1; size <= 64; size *= 2) {
		bench_open(&b, size, EVENT_MODE);
		random_traffic(&b, size, 4000);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-08 SR-DRV-09 SR-DRV-10 SR-DRV-12 BF-DRV-32 */
static void test_random_order_with_tables_never_gives_out_what_is_out(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t size = 1; size <= 64; size *= 2) {
		bench_open_tables(&b, size, EVENT_MODE | INDIRECT, (size + 1) / 2, 4);
		random_traffic(&b, size + 1, 4000);
		bench_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors_are_taken_in_ring_order),
		cmocka_unit_test(test_chains_of_all_lengths_wrap_at_the_end_of_the_table),
		cmocka_unit_test(test_ring_order_holds_with_many_in_flight),
		cmocka_unit_test(test_a_hole_is_filled),
		cmocka_unit_test(test_a_chain_is_made_of_whatever_is_free),
		cmocka_unit_test(test_ring_order_comes_back_with_the_last_request),
		cmocka_unit_test(test_random_order_never_gives_out_what_is_out),
		cmocka_unit_test(test_random_order_with_tables_never_gives_out_what_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
