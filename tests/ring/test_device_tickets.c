/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets: each names one take of one head, and is good for one put in the life of its queue. */
#include "device_bench.h"

static void assert_stale(struct bench *b, struct vqb_ticket ticket)
{
	uint8_t *before = bench_snapshot(b);

	assert_int_equal(vqb_device_holds(b->dev, ticket), VQB_E_STALE);
	assert_int_equal(vqb_device_put(b->dev, ticket, 0), VQB_E_STALE);
	assert_int_equal(vqb_device_put(b->dev, ticket, 1), VQB_E_STALE);
	bench_assert_unchanged(b, before);
}

static void restart(struct bench *b)
{
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	b->offered = 0;
	memset(b->ring.avail, 0, 6 + 2 * (size_t)b->ring.size);
	memset(b->ring.used, 0, 6 + 8 * (size_t)b->ring.size);
}

static void test_ticket_is_held_until_put(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	ticket = bench_take_ticket(b);
	assert_int_equal(ticket.head, 3);
	assert_int_not_equal(ticket.seq, 0);
	assert_int_equal(vqb_device_holds(b->dev, ticket), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	bench_put(b, ticket, 0);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_stale(b, ticket);
}

static void test_second_put_is_stale_and_writes_nothing(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	bench_offer_writable(b, 4);
	bench_take_good(b, 2);
	ticket = b->chain[0].ticket;
	bench_put(b, ticket, 5);
	assert_stale(b, ticket);
	vqb_device_expose(b->dev);
	assert_stale(b, ticket);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
}

static void test_old_ticket_does_not_return_the_same_head_taken_again(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket old, new;

	bench_offer_writable(b, 3);
	old = bench_take_ticket(b);
	bench_put(b, old, 0);
	bench_offer_writable(b, 3);
	new = bench_take_ticket(b);
	assert_int_equal(new.head, old.head);
	assert_int_not_equal(new.seq, old.seq);
	assert_stale(b, old);
	assert_int_equal(vqb_device_holds(b->dev, new), VQB_OK);
	bench_put(b, new, 0);
}

/* Shows: K37 BF-DEV-11 */
static void test_ticket_is_stale_after_reset(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	ticket = bench_take_ticket(b);
	restart(b);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_stale(b, ticket);
}

/* Shows: K37 */
static void test_ticket_is_stale_after_reset_though_its_head_is_taken_again(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket old, new;

	bench_offer_writable(b, 3);
	old = bench_take_ticket(b);
	restart(b);
	bench_offer_writable(b, 3);
	new = bench_take_ticket(b);
	assert_int_equal(new.head, old.head);
	assert_int_not_equal(new.seq, old.seq);
	assert_stale(b, old);
	bench_put(b, new, 9);
	vqb_device_expose(b->dev);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	bench_assert_used(b, 0, 3, 9);
}

static void test_ticket_is_stale_while_there_is_no_ring(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_stale(b, ticket);
}

static void test_ticket_of_a_larger_ring_is_stale_in_a_smaller_one(void **state)
{
	struct bench *b = bench_open(state, 64, 0);
	struct vqb_ring_at small = bench_ring_at(LOW + 0x8000, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 63);
	ticket = bench_take_ticket(b);
	assert_int_equal(vqb_device_reset(b->dev, &small), VQB_OK);
	assert_stale(b, ticket);
}

static void test_ticket_is_stale_after_restore(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	ticket = bench_take_ticket(b);
	bench_stand_at(b, 0);
	assert_stale(b, ticket);
}

static void test_made_up_tickets_are_stale(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_offer_writable(b, 3);
	ticket = bench_take_ticket(b);
	for (unsigned head = 0; head < 0x10000; head += head < 16 ? 1 : 0x3ff) {
		assert_int_equal(
			vqb_device_put(b->dev, (struct vqb_ticket){ (uint16_t)head, 0, 0 }, 0),
			VQB_E_STALE);
		if (head != 3) {
			ticket.head = (uint16_t)head;
			assert_int_equal(vqb_device_put(b->dev, ticket, 0), VQB_E_STALE);
		}
	}
	ticket.head = 3;
	ticket.seq++;
	assert_stale(b, ticket);
	ticket.seq--;
	bench_put(b, ticket, 0);
}

/* Past the device's own memory lies the guard of the bench, whose words look like a sequence. */
static void test_head_outside_the_device_is_not_looked_up(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (uint16_t head = 8; head < 64; head++)
		assert_stale(b, (struct vqb_ticket){ head, 0, 0xa5a5a5a5 });
}

static void test_sequences_run_on_and_are_never_nought(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	uint32_t last = 0;

	for (unsigned life = 0; life < 50; life++) {
		restart(b);
		for (unsigned i = 0; i < 20; i++) {
			struct vqb_ticket ticket;

			bench_offer_plain(b, i % 8);
			ticket = bench_take_ticket(b);
			assert_int_not_equal(ticket.seq, 0);
			assert_true(ticket.seq > last);
			last = ticket.seq;
			bench_put(b, ticket, 0);
		}
	}
}

/* The one word of the device that holds `value`. */
static uint8_t *find_word(struct bench *b, uint32_t value)
{
	uint8_t *found = NULL;

	for (size_t i = 0; i + 4 <= b->object_bytes; i += 4) {
		if (memcmp(b->object + i, &value, 4) == 0) {
			assert_null(found);
			found = b->object + i;
		}
	}
	assert_non_null(found);
	return found;
}

/* Nobody takes 2^32 chains here: the counter is found in the device by its value, and set. */
static void test_sequence_skips_nought_when_it_wraps(void **state)
{
	static const uint32_t last = UINT32_MAX - 1;
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket[3];

	bench_offer_plain(b, 0);
	for (unsigned i = 0; i < 1234; i++)
		assert_int_equal(vqb_device_untake(b->dev, bench_take_ticket(b)), VQB_OK);
	vqb_device_clear_counters(b->dev);
	memcpy(find_word(b, 1234), &last, 4);
	bench_offer_plain(b, 1);
	bench_offer_plain(b, 2);
	for (unsigned i = 0; i < 3; i++)
		ticket[i] = bench_take_ticket(b);
	assert_int_equal(ticket[0].seq, UINT32_MAX);
	assert_int_equal(ticket[1].seq, 1);
	assert_int_equal(ticket[2].seq, 2);
	for (unsigned i = 0; i < 3; i++)
		bench_put(b, ticket[i], 0);
}

static void test_bad_chain_has_a_ticket_like_any_other(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_ticket ticket;

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 3);
	bench_offer(b, 3);
	ticket = bench_take_bad(b, VQB_RULE_LOOP)->ticket;
	assert_int_not_equal(ticket.seq, 0);
	assert_int_equal(vqb_device_put(b->dev, ticket, 1), VQB_E_INVALID);
	bench_put(b, ticket, 0);
	assert_stale(b, ticket);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_ticket_is_held_until_put),
		bench_test(test_second_put_is_stale_and_writes_nothing),
		bench_test(test_old_ticket_does_not_return_the_same_head_taken_again),
		bench_test(test_ticket_is_stale_after_reset),
		bench_test(test_ticket_is_stale_after_reset_though_its_head_is_taken_again),
		bench_test(test_ticket_is_stale_while_there_is_no_ring),
		bench_test(test_ticket_of_a_larger_ring_is_stale_in_a_smaller_one),
		bench_test(test_ticket_is_stale_after_restore),
		bench_test(test_made_up_tickets_are_stale),
		bench_test(test_head_outside_the_device_is_not_looked_up),
		bench_test(test_sequences_run_on_and_are_never_nought),
		bench_test(test_sequence_skips_nought_when_it_wraps),
		bench_test(test_bad_chain_has_a_ticket_like_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
