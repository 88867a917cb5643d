/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A new memory map for a queue at work: where its ring and new pieces lie, and which is still used.
 */
#include "device_bench.h"

/* A second home for guest memory, and a map of it. */
struct move {
	uint8_t *low, *high;
	struct vqb_extent region[2];
	struct vqb_memory memory;
};

/* Copies all of guest memory to a new place, as a migration of its backing does. */
static void move_to(struct bench *b, struct move *m, uint32_t generation)
{
	m->low = (uint8_t *)malloc(REGION_BYTES);
	m->high = (uint8_t *)malloc(REGION_BYTES);
	assert_non_null(m->low);
	assert_non_null(m->high);
	memcpy(m->low, b->low, REGION_BYTES);
	memcpy(m->high, b->high, REGION_BYTES);
	m->region[0] = (struct vqb_extent){ LOW, REGION_BYTES, m->low, VQB_READ | VQB_WRITE, 0 };
	m->region[1] = (struct vqb_extent){ HIGH, REGION_BYTES, m->high, VQB_READ | VQB_WRITE, 0 };
	m->memory = (struct vqb_memory){ .struct_size = sizeof(m->memory),
					 .generation = generation,
					 .count = 2,
					 .sorted = m->region };
}

/* From here on the test sees guest memory at its new place; the old one is gone. */
static void adopt(struct bench *b, struct move *m)
{
	free(b->low);
	free(b->high);
	b->low = m->low;
	b->high = m->high;
	b->ring = bench_raw(b, &b->config.ring);
}

static void regenerate(struct bench *b, uint32_t generation)
{
	b->memory.generation = generation;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
}

static uint32_t oldest(const struct bench *b)
{
	return vqb_device_oldest_generation(b->dev);
}

static void test_ring_and_buffers_move(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	struct move m;

	bench_offer_writable(b, 1);
	bench_serve(b, 1);
	bench_offer_writable(b, 2);
	move_to(b, &m, 2);
	assert_int_equal(vqb_device_set_memory(b->dev, &m.memory), VQB_OK);
	adopt(b, &m);
	bench_take_one(b);
	assert_int_equal(b->chain[0].ticket.head, 2);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, DATA), 16);
	bench_put(b, b->chain[0].ticket, 9);
	vqb_device_turn(b->dev);
	bench_assert_used(b, 1, 2, 9);
	assert_int_equal(raw_used_idx(&b->ring), 2);
	assert_int_equal(raw_avail_event(&b->ring), 2);
}

static void test_chain_taken_before_comes_back_through_the_new_ring(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const uint8_t *old_buffer = bench_host(b, DATA);
	struct vqb_chain taken;
	struct move m;

	bench_offer_writable(b, 3);
	taken = *bench_take_one(b);
	move_to(b, &m, 2);
	assert_int_equal(vqb_device_set_memory(b->dev, &m.memory), VQB_OK);
	bench_assert_piece(&taken.piece[0], old_buffer, 16);
	adopt(b, &m);
	bench_put(b, taken.ticket, 16);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 3, 16);
}

static void test_map_that_fails_changes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_memory lacking = b->memory, wrong = b->memory;

	bench_offer_plain(b, 1);
	bench_offer_plain(b, 2);
	bench_take_one(b);
	lacking.generation = 2;
	lacking.count = 1;
	lacking.sorted = &b->region[1];
	assert_int_equal(vqb_device_set_memory(b->dev, &lacking), VQB_E_FAULT);
	wrong.generation = 2;
	wrong.zero = 1;
	assert_int_equal(vqb_device_set_memory(b->dev, &wrong), VQB_E_INVALID);
	assert_int_equal(vqb_device_set_memory(b->dev, NULL), VQB_E_INVALID);
	assert_int_equal(oldest(b), 1);
	bench_put(b, b->chain[0].ticket, 0);
	assert_int_equal(bench_take_one(b)->ticket.head, 2);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 1, 0);
}

static void test_what_was_cached_of_the_old_map_is_dropped(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	static uint8_t other[REGION_BYTES];

	bench_desc(b, 1, HIGH, 64, RAW_NEXT, 2);
	bench_desc(b, 2, LOW, 64, 0, 0);
	bench_offer(b, 1);
	bench_take_one(b);
	b->region[1].host = other;
	regenerate(b, 2);
	bench_desc(b, 3, HIGH + 5, 64, 0, 0);
	bench_offer(b, 3);
	bench_assert_piece(&bench_take_one(b)->piece[0], other + 5, 64);
}

static void test_region_that_is_gone_is_not_found(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 1, HIGH, 64, 0, 0);
	bench_offer(b, 1);
	bench_take_one(b);
	b->memory.count = 1;
	regenerate(b, 2);
	bench_desc(b, 2, HIGH, 64, 0, 0);
	bench_offer(b, 2);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->need.addr, HIGH);
}

static void test_generation_is_new_at_once_with_nothing_out(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	assert_int_equal(oldest(b), 1);
	regenerate(b, 2);
	assert_int_equal(oldest(b), 2);
	regenerate(b, 7);
	assert_int_equal(oldest(b), 7);
}

static void test_generation_is_old_while_a_chain_of_it_is_out(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first, second, later;

	bench_offer_plain(b, 1);
	bench_offer_plain(b, 2);
	bench_take_good(b, 2);
	first = b->chain[0].ticket;
	second = b->chain[1].ticket;
	regenerate(b, 2);
	assert_int_equal(oldest(b), 1);
	bench_offer_plain(b, 3);
	later = bench_take_ticket(b);
	bench_put(b, second, 0);
	assert_int_equal(oldest(b), 1);
	bench_put(b, first, 0);
	assert_int_equal(oldest(b), 2);
	bench_put(b, later, 0);
	assert_int_equal(oldest(b), 2);
}

static void test_newer_chains_do_not_free_an_old_generation(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first;

	bench_offer_plain(b, 1);
	first = bench_take_ticket(b);
	regenerate(b, 2);
	for (unsigned i = 0; i < 20; i++) {
		bench_offer_plain(b, 2 + i % 4);
		bench_put(b, bench_take_ticket(b), 0);
		assert_int_equal(oldest(b), 1);
	}
	bench_put(b, first, 0);
	assert_int_equal(oldest(b), 2);
}

static void test_untake_frees_a_generation_too(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 1);
	bench_take_one(b);
	regenerate(b, 2);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[0].ticket), VQB_OK);
	assert_int_equal(oldest(b), 2);
	bench_take_one(b);
	assert_int_equal(oldest(b), 2);
}

static void test_each_of_three_generations_ends_with_its_chains(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket first, second;

	bench_offer_plain(b, 1);
	first = bench_take_ticket(b);
	regenerate(b, 2);
	bench_offer_plain(b, 2);
	second = bench_take_ticket(b);
	regenerate(b, 3);
	assert_int_equal(oldest(b), 1);
	bench_put(b, first, 0);
	assert_int_equal(oldest(b), 2);
	bench_put(b, second, 0);
	assert_int_equal(oldest(b), 3);
}

/* Generations are numbers that go round. */
/* What is held back under IN_ORDER has been written, and needs its memory no longer. */
static void test_chain_that_is_held_back_frees_its_generation(void **state)
{
	struct bench *b = bench_open(state, 8, VQB_FEATURE(VQB_F_IN_ORDER));
	struct vqb_ticket first, second;

	bench_offer_writable(b, 1);
	bench_offer_writable(b, 2);
	first = bench_take_ticket(b);
	regenerate(b, 2);
	second = bench_take_ticket(b);
	regenerate(b, 3);
	assert_int_equal(oldest(b), 1);
	bench_put(b, second, 16);
	assert_int_equal(oldest(b), 1);
	assert_int_equal(vqb_device_untake(b->dev, first), VQB_E_INVALID);
	bench_put(b, first, 16);
	assert_int_equal(oldest(b), 3);
	vqb_device_expose(b->dev);
	bench_assert_used(b, 0, 2, 16);
}

static void test_generations_go_round(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	regenerate(b, UINT32_MAX - 1);
	bench_offer_plain(b, 1);
	bench_take_one(b);
	for (uint32_t later = UINT32_MAX; later != 3; later++) {
		regenerate(b, later);
		assert_int_equal(oldest(b), UINT32_MAX - 1);
	}
	bench_put(b, b->chain[0].ticket, 0);
	assert_int_equal(oldest(b), 2);
}

static void test_reset_lets_go_of_old_generations(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 1);
	bench_take_one(b);
	regenerate(b, 2);
	assert_int_equal(oldest(b), 1);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(oldest(b), 2);
}

static void test_queue_without_a_ring_takes_a_map(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	b->region[0].addr = 0;
	regenerate(b, 2);
	assert_int_equal(oldest(b), 2);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_E_FAULT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_ring_and_buffers_move),
		bench_test(test_chain_taken_before_comes_back_through_the_new_ring),
		bench_test(test_map_that_fails_changes_nothing),
		bench_test(test_what_was_cached_of_the_old_map_is_dropped),
		bench_test(test_region_that_is_gone_is_not_found),
		bench_test(test_generation_is_new_at_once_with_nothing_out),
		bench_test(test_generation_is_old_while_a_chain_of_it_is_out),
		bench_test(test_newer_chains_do_not_free_an_old_generation),
		bench_test(test_untake_frees_a_generation_too),
		bench_test(test_each_of_three_generations_ends_with_its_chains),
		bench_test(test_chain_that_is_held_back_frees_its_generation),
		bench_test(test_generations_go_round),
		bench_test(test_reset_lets_go_of_old_generations),
		bench_test(test_queue_without_a_ring_takes_a_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
