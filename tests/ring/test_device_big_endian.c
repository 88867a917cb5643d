/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device_big_endian.c: the device on the ring of a big-endian legacy guest: every field. */
#include "device_bench.h"

#define expect_bytes(at, ...)                                                                      \
	do {                                                                                       \
		static const uint8_t expected[] = { __VA_ARGS__ };                                 \
		assert_memory_equal(at, expected, sizeof(expected));                               \
	} while (0)

#define set_bytes(at, ...)                                                                         \
	do {                                                                                       \
		static const uint8_t bytes[] = { __VA_ARGS__ };                                    \
		memcpy(at, bytes, sizeof(bytes));                                                  \
	} while (0)

static int up(void **state)
{
	raw_big = 1;
	return bench_up(state);
}

static int down(void **state)
{
	raw_big = 0;
	return bench_down(state);
}

static struct bench *open_big(void **state, uint32_t size, uint64_t features)
{
	struct bench *b = bench_plan(state, size, features);

	b->config.ring.flags = VQB_RING_BIG_ENDIAN;
	bench_start(b);
	return b;
}

/* Shows: LEG-ANY-07 */
static void test_a_direct_chain(void **state)
{
	struct bench *b = open_big(state, 8, 0);
	const struct vqb_chain *chain;

	set_bytes(b->ring.desc + 3 * 16, 0, 0, 0, 0, 0x40, 0x0e, 1, 2, 0, 0, 1, 2, 0, 1, 0, 5);
	set_bytes(b->ring.desc + 5 * 16, 0, 0, 0, 0, 0x40, 0x0e, 3, 4, 0, 0, 0, 7, 0, 2, 0, 0);
	set_bytes(b->ring.avail, 0, 0, 0, 1, 0, 3);
	assert_int_equal(vqb_device_pending(b->dev), 1);
	chain = bench_take_one(b);
	assert_int_equal(chain->ticket.head, 3);
	assert_int_equal(chain->readable, 1);
	assert_int_equal(chain->writable, 1);
	bench_assert_piece(&chain->piece[0], bench_host(b, LOW + 0xe0102), 0x102);
	bench_assert_piece(&chain->piece[1], bench_host(b, LOW + 0xe0304), 7);
}

static void expect_table(struct bench *b, uint64_t at)
{
	const struct vqb_chain *chain;
	uint8_t table[32];

	set_bytes(table, 0, 0, 0, 0, 0x40, 0x0e, 1, 2, 0, 0, 1, 2, 0, 1, 0, 1);
	set_bytes(table + 16, 0, 0, 0, 0, 0x40, 0x0e, 3, 4, 0, 0, 0, 7, 0, 2, 0, 9);
	for (unsigned i = 0; i < 32; i++)
		*bench_host(b, at + i) = table[i];
	bench_desc(b, 2, at, 32, RAW_INDIRECT, 0);
	bench_offer(b, 2);
	chain = bench_take_one(b);
	assert_int_equal(chain->ticket.head, 2);
	assert_int_equal(chain->readable, 1);
	assert_int_equal(chain->writable, 1);
	bench_assert_piece(&chain->piece[0], bench_host(b, LOW + 0xe0102), 0x102);
	bench_assert_piece(&chain->piece[1], bench_host(b, LOW + 0xe0304), 7);
	bench_put(b, chain->ticket, 0);
}

/* Whole, at an odd address, and cut in each place. Shows: LEG-ANY-07 */
static void test_tables(void **state)
{
	struct bench *b = open_big(state, 8, INDIRECT);

	expect_table(b, TABLE);
	expect_table(b, TABLE + 3);
	for (unsigned before = 1; before < 32; before++)
		expect_table(b, BORDER - before);
}

/* Shows: LEG-ANY-07 */
static void test_the_used_ring(void **state)
{
	struct bench *b = open_big(state, 4, 0);
	struct vqb_ticket ticket;

	bench_stand_at(b, 0x102);
	bench_desc(b, 1, DATA, 0x4321, RAW_WRITE, 0);
	bench_offer(b, 1);
	ticket = bench_take_ticket(b);
	bench_put(b, ticket, 0x1234);
	vqb_device_disarm(b->dev);
	vqb_device_publish(b->dev);
	expect_bytes(b->ring.used, 0, 1, 1, 3);
	expect_bytes(b->ring.used + 4 + 8 * 2, 0, 0, 0, 1, 0, 0, 0x12, 0x34);
	vqb_device_arm(b->dev);
	expect_bytes(b->ring.used, 0, 0, 1, 3);
}

/* Shows: LEG-ANY-07 */
static void test_the_available_event(void **state)
{
	struct bench *b = open_big(state, 4, EVENT_IDX);

	bench_stand_at(b, 0x102);
	vqb_device_arm(b->dev);
	expect_bytes(b->ring.used + 36, 1, 2);
	vqb_device_disarm(b->dev);
	expect_bytes(b->ring.used + 36, 1, 1);
}

static uint32_t complete_one(struct bench *b)
{
	bench_offer_plain(b, 0);
	bench_put(b, bench_take_ticket(b), 0);
	return vqb_device_publish(b->dev);
}

/* Shows: LEG-ANY-07 */
static void test_the_drivers_wishes(void **state)
{
	struct bench *b = open_big(state, 4, 0);

	set_bytes(b->ring.avail, 1, 0); /* 256: not the flag */
	assert_int_equal(complete_one(b), VQB_NOTIFY);
	set_bytes(b->ring.avail, 0, 1);
	assert_int_equal(complete_one(b), VQB_QUIET);

	b = open_big(state, 4, EVENT_IDX);
	bench_stand_at(b, 0x101);
	assert_int_equal(complete_one(b), VQB_NOTIFY);
	set_bytes(b->ring.avail + 12, 1, 2);
	assert_int_equal(complete_one(b), VQB_NOTIFY);
	set_bytes(b->ring.avail + 12, 3, 1); /* 0x103, the other way round, would be due */
	assert_int_equal(complete_one(b), VQB_QUIET);
}

/* Little-endian words are nonsense here. */
static void test_a_little_endian_index_breaks_the_queue(void **state)
{
	struct bench *b = open_big(state, 4, 0);
	struct vqb_reason why = { 0 };

	set_bytes(b->ring.avail, 0, 0, 1, 0, 0, 0);
	assert_int_equal(bench_take(b, 1), VQB_E_BROKEN);
	assert_int_equal(vqb_device_state(b->dev, &why), VQB_E_BROKEN);
	assert_int_equal(why.rule, VQB_RULE_JUMPED);
	assert_int_equal(why.index, 256);
}

static void test_bad_chains_are_found(void **state)
{
	struct bench *b = open_big(state, 8, INDIRECT);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 8);
	bench_offer(b, 0);
	assert_int_equal(bench_take_bad(b, VQB_RULE_NEXT)->reason.addr, DATA);
	bench_desc(b, 1, TABLE, 24, RAW_INDIRECT, 0);
	bench_offer(b, 1);
	bench_take_bad(b, VQB_RULE_TABLE);
	bench_desc(b, 2, DATA, 16, RAW_NEXT, 2);
	bench_offer(b, 2);
	bench_take_bad(b, VQB_RULE_LOOP);
	bench_desc(b, 3, DATA, 16, RAW_WRITE | RAW_NEXT, 4);
	bench_desc(b, 4, DATA, 16, 0, 0);
	bench_offer(b, 3);
	bench_take_bad(b, VQB_RULE_ORDER);
}

/* Under VERSION_1 every ring is little-endian; of flags there is but this one. */
static void test_only_legacy_rings_are_big_endian(void **state)
{
	struct bench *b = bench_plan(state, 8, VQB_FEATURE(VQB_F_VERSION_1));

	assert_int_not_equal(vqb_device_size(&b->config), 0);
	b->config.ring.flags = VQB_RING_BIG_ENDIAN;
	assert_int_equal(vqb_device_size(&b->config), 0);
	b->config.ring.features = 0;
	assert_int_not_equal(vqb_device_size(&b->config), 0);
	for (uint32_t bit = 1; bit < 32; bit++) {
		b->config.ring.flags = 1u << bit;
		assert_int_equal(vqb_device_size(&b->config), 0);
	}
}

/* A reset to a ring of the other byte order. Shows: LEG-ANY-03 */
static void test_the_byte_order_is_the_rings(void **state)
{
	struct bench *b = open_big(state, 8, 0);
	struct vqb_ring_at ring = b->config.ring;

	for (unsigned i = 0; i < 4; i++) {
		raw_big = (i + 1) % 2;
		ring.flags = raw_big ? VQB_RING_BIG_ENDIAN : 0;
		memset(b->low, 0, 1024);
		b->offered = 0;
		assert_int_equal(vqb_device_reset(b->dev, &ring), VQB_OK);
		bench_offer_writable(b, 6);
		bench_put(b, bench_take_ticket(b), 9);
		vqb_device_expose(b->dev);
		assert_int_equal(raw_used_idx(&b->ring), 1);
		bench_assert_used(b, 0, 6, 9);
	}
}

#define big_test(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		big_test(test_a_direct_chain),
		big_test(test_tables),
		big_test(test_the_used_ring),
		big_test(test_the_available_event),
		big_test(test_the_drivers_wishes),
		big_test(test_a_little_endian_index_breaks_the_queue),
		big_test(test_bad_chains_are_found),
		big_test(test_only_legacy_rings_are_big_endian),
		big_test(test_the_byte_order_is_the_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
