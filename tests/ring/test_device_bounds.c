/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounded work: whatever the driver wrote, one chain costs a bounded number of descriptor reads and
 * one take a bounded number of chains; and what take hands out lies inside guest memory.
 */
#include "device_bench.h"
#include "probe_log.h"

enum {
	SIZE = 16,
	TABLES = 64, /* entries of one table, more than a chain may have */
};

/* Descriptors read since log_start, in the ring and in the tables at TABLE. */
static unsigned descriptor_reads(const struct bench *b)
{
	return log_descriptors(b->ring.desc, b->ring.size) +
	       log_descriptors(bench_host(b, TABLE), 2 * TABLES);
}

/* Shows: K02 SR-DEV-31 */
static void test_loop_of_empty_descriptors_costs_the_ring_and_one(void **state)
{
	static const uint32_t limit[] = { 0, 8, 1024, 0xffffffff };

	for (unsigned i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		struct bench *b = bench_plan(state, 8, 0);

		b->config.max_chain = limit[i];
		bench_start(b);
		bench_desc(b, 0, LOW + 0x1000, 0, RAW_NEXT, 1);
		bench_desc(b, 1, LOW + 0x1000, 0, RAW_NEXT, 0);
		bench_offer(b, 0);
		log_start();
		bench_take_bad(b, VQB_RULE_LOOP);
		log_stop();
		assert_true(descriptor_reads(b) <= 9);
	}
}

/* Shows: K01 SR-DEV-31 */
static void test_looped_table_costs_its_length_and_one(void **state)
{
	static const uint32_t limit[] = { 0, 8, 9, 1024, 0xffffffff };

	for (unsigned i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		struct bench *b = bench_plan(state, 4, INDIRECT);

		b->config.max_chain = limit[i];
		bench_start(b);
		bench_table(b, TABLE, 8, DATA, 0, 0);
		bench_entry(b, TABLE, 7, DATA, 0, RAW_NEXT, 0);
		bench_desc(b, 0, TABLE, 16 * 8, RAW_INDIRECT, 0);
		bench_offer(b, 0);
		log_start();
		bench_take_bad(b, limit[i] && limit[i] >= 8 ? VQB_RULE_LOOP : VQB_RULE_TABLE);
		log_stop();
		assert_int_equal(log_descriptors(b->ring.desc, 4), 1);
		assert_true(descriptor_reads(b) <= 1 + 9);
	}
}

/* Shows: K06 */
static void test_nothing_past_a_table_is_read(void **state)
{
	struct bench *b = bench_open(state, 256, INDIRECT);
	uint8_t *table = bench_host(b, TABLE);

	bench_entry(b, TABLE, 0, DATA, 16, RAW_NEXT, 7);
	bench_entry(b, TABLE, 1, DATA, 16, 0, 0);
	bench_entry(b, TABLE, 7, DATA, 16, 0, 0);
	bench_desc(b, 0, TABLE, 32, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	log_start();
	bench_take_bad(b, VQB_RULE_NEXT);
	log_stop();
	assert_int_equal(log_loads(table + 32, 0x1000), 0);
}

/* The same at the end of a long run of entries that follow each other. */
/* Shows: K06 */
static void test_nothing_past_a_long_table_is_read(void **state)
{
	struct bench *b = bench_open(state, 64, INDIRECT);
	uint8_t *table = bench_host(b, TABLE);
	const struct vqb_chain *chain;

	bench_table(b, TABLE, 31, DATA, 16, 0);
	bench_entry(b, TABLE, 29, DATA, 16, RAW_NEXT, 30);
	bench_desc(b, 0, TABLE, 16 * 30, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	log_start();
	chain = bench_take_bad(b, VQB_RULE_NEXT);
	log_stop();
	assert_int_equal(chain->reason.index, 29);
	assert_int_equal(log_loads(table + 16 * 30, 0x1000), 0);
}

/* Shows: K06 */
static void test_nothing_past_the_ring_is_read(void **state)
{
	struct bench *b = bench_open(state, 32, 0);
	const struct vqb_chain *chain;

	for (unsigned i = 0; i < 32; i++)
		bench_desc(b, i, DATA, 16, RAW_NEXT, i + 1);
	bench_offer(b, 10);
	log_start();
	chain = bench_take_bad(b, VQB_RULE_NEXT);
	log_stop();
	assert_int_equal(chain->reason.index, 31);
	assert_int_equal(log_loads(b->ring.desc + 16 * 32, 16), 0);
}

/* Shows: K07 SR-DEV-31 */
static void test_bad_chain_is_never_walked_twice(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 0);
	bench_offer(b, 0);
	bench_offer_plain(b, 4);
	bench_take_bad(b, VQB_RULE_LOOP);
	log_start();
	bench_take_one(b);
	for (unsigned i = 0; i < 9; i++)
		bench_take_nothing(b);
	log_stop();
	assert_int_equal(log_loads(b->ring.desc, 16), 0);
}

static struct bench *greedy;

/* A driver that adds a chain for each one that the device takes, for as long as there are heads. */
static void add_one_more(const void *p, unsigned bytes)
{
	struct bench *b = greedy;
	const uint8_t *slots = b->ring.avail + 4;

	(void)bytes;
	if ((const uint8_t *)p >= slots && (const uint8_t *)p < slots + 2 * (size_t)b->ring.size)
		bench_offer(b, b->offered % b->ring.size);
}

/* Shows: K07 */
static void test_drain_ends_though_the_driver_adds_as_it_goes(void **state)
{
	struct bench *b = bench_open(state, 128, 0);

	for (unsigned head = 0; head < 128; head++)
		bench_desc(b, head, DATA, 16, 0, 0);
	for (unsigned head = 0; head < 64; head++)
		bench_offer(b, head);
	greedy = b;
	probe_load = add_one_more;
	assert_int_equal(bench_take(b, BENCH_CHAINS), VQB_OK);
	probe_load = NULL;
	assert_true(b->taken <= 128);
	for (uint32_t i = 0; i < b->taken; i++)
		bench_put(b, b->chain[i].ticket, 0);
	assert_int_equal(vqb_device_turn(b->dev) & VQB_MORE, VQB_MORE);
}

/* ---- any input ---- */

static uint32_t seed;

static uint32_t random_below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

static uint64_t random_addr(void)
{
	static const uint64_t base[] = { DATA, BORDER - 64, END - 64, UINT64_MAX - 63, TABLE, 0 };

	uint64_t from = base[random_below(random_below(4) ? 2 : 6)];

	return from + random_below(128);
}

static uint32_t random_len(void)
{
	static const uint32_t len[] = { 0, 1, 16, 64, 512, 0x10000, 0x7fffffff, 0xffffffff };

	return len[random_below(random_below(8) ? 5 : 8)];
}

static void random_desc(uint8_t *table, unsigned i, unsigned count, unsigned tables)
{
	unsigned flags = random_below(8) ? (random_below(4) ? RAW_NEXT : 0) : random_below(0x10000);
	unsigned next = random_below(16) ? random_below(count) : random_below(0x10000);
	uint64_t addr;
	uint32_t len;

	if (random_below(4) == 0)
		flags |= RAW_WRITE;
	addr = random_addr();
	len = random_len();
	if (random_below(16) < tables) {
		addr = TABLE + random_below(2) * 16 * TABLES;
		len = 16 * random_below(TABLES) + (random_below(8) ? 0 : 8);
		flags = RAW_INDIRECT;
	}
	raw_desc(table, i, addr, len, flags, next);
}

static void random_memory(struct bench *b)
{
	for (unsigned i = 0; i < SIZE; i++)
		random_desc(b->ring.desc, i, SIZE, 4);
	for (unsigned i = 0; i < TABLES; i++) {
		random_desc(bench_host(b, TABLE), i, SIZE, 1);
		random_desc(bench_host(b, TABLE + 16 * TABLES), i, SIZE, 1);
	}
}

static int in_guest_memory(const struct bench *b, const struct vqb_piece *piece)
{
	uintptr_t at = (uintptr_t)piece->base;
	uintptr_t low = (uintptr_t)b->low, high = (uintptr_t)b->high;

	if (!piece->len || piece->len > REGION_BYTES)
		return 0;
	return (at >= low && at - low <= REGION_BYTES - piece->len) ||
	       (at >= high && at - high <= REGION_BYTES - piece->len);
}

/* The chain keeps what its fields promise. */
static void assert_sound(const struct bench *b, const struct vqb_chain *chain)
{
	uint64_t bytes[2] = { 0, 0 };

	for (uint32_t i = 0; i < chain->readable + chain->writable; i++) {
		assert_true(in_guest_memory(b, &chain->piece[i]));
		bytes[i >= chain->readable] += chain->piece[i].len;
	}
	assert_true(bytes[0] == chain->read_bytes);
	assert_true(bytes[1] == chain->write_bytes);
}

/* Takes the chain just offered, whatever it is, and gives it back. */
static void take_whatever(struct bench *b, unsigned seen[3])
{
	int32_t status;

	log_start();
	status = bench_take(b, 1);
	log_stop();
	assert_true(descriptor_reads(b) <= 2 * SIZE + 1);
	if (status == VQB_E_FAULT) {
		seen[2]++;
		assert_int_equal(vqb_device_reject(b->dev, &b->chain[0]), VQB_OK);
	} else {
		assert_int_equal(status, VQB_OK);
		assert_int_equal(b->taken, 1);
		seen[b->chain[0].status == VQB_OK]++;
	}
	if (b->chain[0].status == VQB_OK)
		assert_sound(b, &b->chain[0]);
	else
		assert_int_equal(b->chain[0].status, VQB_E_BAD_CHAIN);
	bench_put(b, b->chain[0].ticket, (uint32_t)b->chain[0].write_bytes);
	vqb_device_expose(b->dev);
}

/* Shows: SR-DEV-31 SR-DEV-33 */
static void test_any_descriptors_cost_a_bounded_number_of_reads(void **state)
{
	struct bench *b = bench_open(state, SIZE, INDIRECT);
	unsigned seen[3] = { 0, 0, 0 }; /* bad, good, faults */

	seed = 0x2545f491;
	for (unsigned round = 0; round < 2000; round++) {
		random_memory(b);
		bench_offer(b, random_below(SIZE));
		take_whatever(b, seen);
	}
	for (unsigned kind = 0; kind < 3; kind++)
		assert_true(seen[kind] > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_loop_of_empty_descriptors_costs_the_ring_and_one),
		bench_test(test_looped_table_costs_its_length_and_one),
		bench_test(test_nothing_past_a_table_is_read),
		bench_test(test_nothing_past_a_long_table_is_read),
		bench_test(test_nothing_past_the_ring_is_read),
		bench_test(test_bad_chain_is_never_walked_twice),
		bench_test(test_drain_ends_though_the_driver_adds_as_it_goes),
		bench_test(test_any_descriptors_cost_a_bounded_number_of_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
