/* SPDX-License-Identifier: BSD-3-Clause */
/* IN_ORDER: chains are put in any order, and the driver sees them in the order of the takes. */
#include "device_bench.h"
#include "probe_log.h"

#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)

enum { UNTOUCHED = 0xee };

/* Offers `n` chains of 16 writable bytes, heads from `head` on, and takes them. */
static void take_writable(struct bench *b, unsigned head, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bench_offer_writable(b, (head + i) % b->ring.size);
	bench_take_good(b, n);
}

/* Fills the used elements, so that the ones that are stored can be told. */
static void spoil_used(struct bench *b)
{
	memset(b->ring.used + 4, UNTOUCHED, 8 * (size_t)b->ring.size);
}

static int is_untouched(const struct bench *b, unsigned idx)
{
	return raw_used_id(&b->ring, idx) == 0xeeeeeeee &&
	       raw_used_len(&b->ring, idx) == 0xeeeeeeee;
}

static unsigned exposed(struct bench *b)
{
	vqb_device_expose(b->dev);
	return raw_used_idx(&b->ring);
}

/* Shows: BF-DEV-30 */
static void test_what_is_put_early_waits_for_those_before_it(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	take_writable(b, 4, 4);
	bench_put(b, b->chain[2].ticket, 1);
	bench_put(b, b->chain[3].ticket, 2);
	assert_int_equal(exposed(b), 0);
	bench_put(b, b->chain[0].ticket, 3);
	assert_int_equal(exposed(b), 1);
	bench_put(b, b->chain[1].ticket, 4);
	assert_int_equal(exposed(b), 4);
	for (unsigned i = 0; i < 4; i++)
		bench_assert_used(b, i, 4 + i, (const uint32_t[]){ 3, 4, 1, 2 }[i]);
}

/* Shows: SR-DEV-18 SR-DEV-19 */
static void test_batch_of_whole_chains_is_one_entry_in_its_first_slot(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	take_writable(b, 0, 3);
	for (unsigned i = 0; i < 3; i++)
		bench_put(b, b->chain[i].ticket, 16);
	assert_int_equal(exposed(b), 3);
	spoil_used(b);
	take_writable(b, 3, 5);
	for (unsigned i = 5; i-- > 0;)
		bench_put(b, b->chain[i].ticket, 16);
	assert_int_equal(exposed(b), 8);
	bench_assert_used(b, 3, 7, 16);
	for (unsigned slot = 0; slot < 8; slot++)
		assert_int_equal(is_untouched(b, slot), slot != 3);
	take_writable(b, 0, 2);
	bench_put(b, b->chain[0].ticket, 16);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(exposed(b), 10);
	bench_assert_used(b, 8, 1, 16);
	assert_true(is_untouched(b, 1));
}

/* Shows: SR-DEV-19 */
static void test_batch_may_go_round_the_end_of_the_ring(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	bench_stand_at(b, 65534);
	spoil_used(b);
	take_writable(b, 6, 5);
	for (unsigned i = 0; i < 5; i++)
		bench_put(b, b->chain[i].ticket, 16);
	assert_int_equal(exposed(b), 3);
	bench_assert_used(b, 65534, 2, 16);
	for (unsigned slot = 0; slot < 8; slot++)
		assert_int_equal(is_untouched(b, slot), slot != 6);
}

/* Shows: SR-DEV-18 */
static void test_short_chain_ends_its_batch_with_its_own_length(void **state)
{
	static const uint32_t written[] = { 16, 16, 5, 16, 0, 16, 16 };
	struct bench *b = bench_open(state, 8, IN_ORDER);

	spoil_used(b);
	take_writable(b, 0, 7);
	for (unsigned i = 0; i < 7; i++)
		bench_put(b, b->chain[i].ticket, written[i]);
	assert_int_equal(exposed(b), 7);
	bench_assert_used(b, 0, 2, 5);
	bench_assert_used(b, 3, 4, 0);
	bench_assert_used(b, 5, 6, 16);
	for (unsigned slot = 0; slot < 8; slot++)
		assert_int_equal(is_untouched(b, slot), slot != 0 && slot != 3 && slot != 5);
}

static void test_bad_chain_ends_its_batch_and_one_without_writable_bytes_does_not(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	spoil_used(b);
	bench_offer_writable(b, 0);
	bench_desc(b, 1, DATA, 16, RAW_NEXT | RAW_WRITE, 1);
	bench_offer(b, 1);
	bench_offer_plain(b, 2);
	bench_offer_plain(b, 3);
	assert_int_equal(bench_take(b, 4), VQB_OK);
	assert_int_equal(b->taken, 4);
	assert_int_equal(b->chain[1].status, VQB_E_BAD_CHAIN);
	for (unsigned i = 0; i < 4; i++)
		bench_put(b, b->chain[i].ticket, i ? 0 : 16);
	assert_int_equal(exposed(b), 4);
	bench_assert_used(b, 0, 1, 0);
	bench_assert_used(b, 2, 3, 0);
	assert_true(is_untouched(b, 1));
	assert_true(is_untouched(b, 3));
}

static void test_untaken_bad_chain_leaves_no_mark(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	bench_desc(b, 0, DATA, 16, RAW_NEXT | RAW_WRITE, 0);
	bench_offer(b, 0);
	bench_offer_writable(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[0].ticket), VQB_OK);
	bench_desc(b, 0, DATA, 16, RAW_WRITE, 0);
	bench_take_good(b, 2);
	spoil_used(b);
	bench_put(b, b->chain[0].ticket, 16);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(exposed(b), 2);
	bench_assert_used(b, 0, 1, 16);
	assert_true(is_untouched(b, 1));
}

/* 2^32 bytes can't be said in an entry, so such a chain never counts as whole. */
static void test_chain_of_four_gib_is_not_left_out(void **state)
{
	struct bench *b = bench_plan(state, 8, IN_ORDER | INDIRECT);

	b->config.max_chain = 4096;
	bench_start(b);
	bench_table(b, TABLE, 4096, HIGH, REGION_BYTES, RAW_WRITE);
	bench_desc(b, 0, TABLE, 16 * 4096, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	bench_offer_writable(b, 1);
	bench_take_good(b, 2);
	bench_put(b, b->chain[0].ticket, UINT32_MAX);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(exposed(b), 2);
	bench_assert_used(b, 0, 0, UINT32_MAX);
	bench_assert_used(b, 1, 1, 16);
}

static void test_held_back_chain_is_in_flight_and_its_ticket_is_stale(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);
	struct vqb_device_counters c;

	take_writable(b, 0, 3);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(vqb_device_holds(b->dev, b->chain[1].ticket), VQB_E_STALE);
	assert_int_equal(vqb_device_put(b->dev, b->chain[1].ticket, 16), VQB_E_STALE);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[1].ticket), VQB_E_STALE);
	assert_int_equal(vqb_device_in_flight(b->dev), 3);
	vqb_device_read_counters(b->dev, &c);
	assert_int_equal(c.completions, 0);
	bench_put(b, b->chain[0].ticket, 16);
	assert_int_equal(vqb_device_in_flight(b->dev), 1);
	vqb_device_read_counters(b->dev, &c);
	assert_int_equal(c.completions, 2);
	assert_int_equal(c.stale, 1);
}

static void test_put_of_a_held_chain_writes_nothing_to_the_ring(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER | EVENT_IDX);

	take_writable(b, 0, 2);
	vqb_device_publish(b->dev);
	log_start();
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	log_stop();
	assert_int_equal(log_all_stores() + log_all_loads(), 0);
	assert_int_equal(probe_fences, 0);
}

static void test_head_that_is_held_back_is_not_the_drivers_to_offer(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);
	struct vqb_ticket first;
	struct vqb_reason why;

	take_writable(b, 0, 2);
	first = b->chain[0].ticket;
	bench_put(b, b->chain[1].ticket, 16);
	bench_offer(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_BROKEN);
	assert_int_equal(why.rule, VQB_RULE_TWICE);
	assert_int_equal(why.index, 1);
	/* What is out still comes back, in order. */
	bench_put(b, first, 4);
	assert_int_equal(exposed(b), 2);
	bench_assert_used(b, 0, 0, 4);
	bench_assert_used(b, 1, 1, 16);
}

static void test_decision_is_about_what_is_exposed(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER | EVENT_IDX);

	assert_int_equal(vqb_device_publish(b->dev), VQB_NOTIFY); /* the one owed */
	poke(b->ring.avail + 4 + 2 * 8, 3, 2);
	take_writable(b, 0, 5);
	for (unsigned i = 1; i < 5; i++) {
		bench_put(b, b->chain[i].ticket, 16);
		assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	}
	/* Entry 3 is inside the batch, though no element was stored for it. */
	bench_put(b, b->chain[0].ticket, 16);
	assert_int_equal(vqb_device_turn(b->dev), VQB_NOTIFY);
	assert_int_equal(raw_used_idx(&b->ring), 5);
	take_writable(b, 5, 2);
	bench_put(b, b->chain[0].ticket, 16);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(vqb_device_publish(b->dev), VQB_QUIET);
	assert_int_equal(raw_used_idx(&b->ring), 7);
}

static void test_save_waits_for_what_is_held_back(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);
	struct vqb_device_saved saved;

	take_writable(b, 0, 2);
	bench_put(b, b->chain[1].ticket, 16);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	bench_put(b, b->chain[0].ticket, 16);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_E_BUSY);
	vqb_device_expose(b->dev);
	assert_int_equal(vqb_device_save(b->dev, &saved), VQB_OK);
	assert_int_equal(saved.avail, 2);
	assert_int_equal(saved.used, 2);
}

static void test_restore_goes_on_in_order(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);
	struct vqb_device_saved saved = { .avail = 5, .used = 2 };

	take_writable(b, 0, 5);
	bench_put(b, b->chain[0].ticket, 16);
	bench_put(b, b->chain[1].ticket, 16);
	bench_put(b, b->chain[3].ticket, 16);
	assert_int_equal(exposed(b), 2);
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_OK);
	bench_take_good(b, 3);
	bench_put(b, b->chain[2].ticket, 16);
	assert_int_equal(exposed(b), 2);
	bench_put(b, b->chain[0].ticket, 7);
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(exposed(b), 5);
	bench_assert_used(b, 2, 2, 7);
	bench_assert_used(b, 3, 4, 16);
}

static void test_reset_forgets_what_is_held_back(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	take_writable(b, 0, 2);
	bench_put(b, b->chain[1].ticket, 16);
	memset(b->ring.avail, 0, 6 + 2 * 8);
	memset(b->ring.used, 0, 6 + 8 * 8);
	b->offered = 0;
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	take_writable(b, 1, 1);
	bench_put(b, b->chain[0].ticket, 3);
	assert_int_equal(exposed(b), 1);
	bench_assert_used(b, 0, 1, 3);
}

static void test_untake_gives_back_the_newest_only(void **state)
{
	struct bench *b = bench_open(state, 8, IN_ORDER);

	take_writable(b, 0, 3);
	bench_put(b, b->chain[0].ticket, 16);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[1].ticket), VQB_E_INVALID);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[2].ticket), VQB_OK);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[1].ticket), VQB_OK);
	assert_int_equal(vqb_device_in_flight(b->dev), 0);
	assert_int_equal(exposed(b), 1);
	bench_take_good(b, 2);
	/* The newest was put, so the one before it has to stay. */
	bench_put(b, b->chain[1].ticket, 16);
	assert_int_equal(vqb_device_untake(b->dev, b->chain[0].ticket), VQB_E_INVALID);
	bench_put(b, b->chain[0].ticket, 16);
	assert_int_equal(exposed(b), 3);
}

/* ---- a driver that reads as the specification says, and a device at random ---- */

enum { MODEL_SIZE = 16, MODEL_CHAINS = 100000 };

struct model {
	struct bench *b;
	uint32_t seed;
	unsigned offered, seen;        /* by the driver; free-running */
	uint32_t capacity[MODEL_SIZE]; /* by position */
	uint32_t expected[MODEL_SIZE]; /* what the device says it wrote, by head */
	struct vqb_ticket out[MODEL_SIZE];
	unsigned outs;
};

static uint32_t model_draw(struct model *m, uint32_t below)
{
	m->seed = m->seed * 1664525 + 1013904223;
	return (m->seed >> 16) % below;
}

/* Each chain is one descriptor, and each head is used in turn. */
static void model_offer(struct model *m)
{
	unsigned head = m->offered % MODEL_SIZE;

	if (m->offered - m->seen == MODEL_SIZE)
		return;
	m->capacity[head] = model_draw(m, 4) ? 1 + model_draw(m, 3) : 0;
	bench_desc(m->b, head, DATA, m->capacity[head] ? m->capacity[head] : 8,
		   m->capacity[head] ? RAW_WRITE : 0, 0);
	bench_offer(m->b, head);
	m->offered++;
}

static void model_take(struct model *m)
{
	if (m->outs + 1 > MODEL_SIZE || bench_take(m->b, 1) || !m->b->taken)
		return;
	m->out[m->outs++] = m->b->chain[0].ticket;
}

static void model_put(struct model *m)
{
	unsigned i = m->outs ? model_draw(m, m->outs) : 0;
	uint32_t head, capacity;

	if (!m->outs)
		return;
	head = m->out[i].head;
	capacity = m->capacity[head];
	m->expected[head] = model_draw(m, 3) ? capacity : model_draw(m, capacity + 1);
	bench_put(m->b, m->out[i], m->expected[head]);
	m->out[i] = m->out[--m->outs];
}

/* Reads one element, and with it every chain that it stands for. */
static void model_read_batch(struct model *m)
{
	uint32_t id = raw_used_id(&m->b->ring, m->seen);
	uint32_t len = raw_used_len(&m->b->ring, m->seen);
	unsigned head;

	do {
		assert_int_not_equal(m->seen % 65536, raw_used_idx(&m->b->ring));
		head = m->seen % MODEL_SIZE;
		assert_int_equal(m->expected[head], head == id ? len : m->capacity[head]);
		m->seen++;
	} while (head != id);
}

static void test_any_order_of_puts_reads_right(void **state)
{
	struct model m = { .b = bench_open(state, MODEL_SIZE, IN_ORDER), .seed = 12 };

	while (m.seen < MODEL_CHAINS) {
		switch (model_draw(&m, 4)) {
		case 0:
			model_offer(&m);
			break;
		case 1:
			model_take(&m);
			break;
		case 2:
			model_put(&m);
			break;
		default:
			vqb_device_publish(m.b->dev);
			while (m.seen % 65536 != raw_used_idx(&m.b->ring))
				model_read_batch(&m);
		}
		assert_int_equal(vqb_device_state(m.b->dev, NULL), VQB_OK);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_what_is_put_early_waits_for_those_before_it),
		bench_test(test_batch_of_whole_chains_is_one_entry_in_its_first_slot),
		bench_test(test_batch_may_go_round_the_end_of_the_ring),
		bench_test(test_short_chain_ends_its_batch_with_its_own_length),
		bench_test(test_bad_chain_ends_its_batch_and_one_without_writable_bytes_does_not),
		bench_test(test_untaken_bad_chain_leaves_no_mark),
		bench_test(test_chain_of_four_gib_is_not_left_out),
		bench_test(test_held_back_chain_is_in_flight_and_its_ticket_is_stale),
		bench_test(test_put_of_a_held_chain_writes_nothing_to_the_ring),
		bench_test(test_head_that_is_held_back_is_not_the_drivers_to_offer),
		bench_test(test_decision_is_about_what_is_exposed),
		bench_test(test_save_waits_for_what_is_held_back),
		bench_test(test_restore_goes_on_in_order),
		bench_test(test_reset_forgets_what_is_held_back),
		bench_test(test_untake_gives_back_the_newest_only),
		bench_test(test_any_order_of_puts_reads_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
