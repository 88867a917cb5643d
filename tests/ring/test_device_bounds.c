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

/* INDIRECT with NEXT: what `next` names is not read, whatever becomes of the table. Shows: K04 */
static void test_nothing_behind_a_reference_is_read(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_desc(b, 0, LOW + 0x2000, 32, RAW_INDIRECT | RAW_NEXT, 5);
	bench_entry(b, LOW + 0x2000, 0, LOW + 0x4000, 16, RAW_NEXT, 1);
	bench_entry(b, LOW + 0x2000, 1, LOW + 0x5000, 1, RAW_WRITE, 0);
	bench_desc(b, 5, LOW + 0x6000, 512, RAW_WRITE, 0);
	bench_offer(b, 0);
	log_start();
	bench_take_bad(b, VQB_RULE_BOTH);
	log_stop();
	assert_int_equal(log_loads(b->ring.desc + 16 * 5, 16), 0);
	assert_int_equal(log_loads(bench_host(b, LOW + 0x6000), 512), 0);
	assert_int_equal(log_stores(bench_host(b, LOW + 0x6000), 512), 0);
}

/* The end of a table that is not mapped: not even its good beginning counts. Shows: K14 */
static void test_nothing_of_a_table_that_runs_out_of_memory_is_read(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	bench_entry(b, END - 16, 0, DATA, 16, 0, 0);
	bench_desc(b, 0, END - 16, 32, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	log_start();
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	log_stop();
	assert_int_equal(log_loads(bench_host(b, END - 16), 32), 0);
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

/* ---- the largest ring, and counting without a log ---- */

static unsigned long loads, lookups;

static void count_load(const void *p, unsigned bytes)
{
	(void)p;
	(void)bytes;
	loads++;
}

/* One take of up to `max` chains and pieces, with loads and lookups counted. */
static int32_t counted_take(struct bench *b, struct vqb_chain *chain, uint32_t max)
{
	int32_t status;

	loads = lookups = 0;
	probe_load = count_load;
	status = vqb_device_take(b->dev, chain, max, b->piece, BENCH_PIECES, &b->taken, &b->need);
	probe_load = NULL;
	return status;
}

/* The index and a head, and for each of so many descriptors two words. */
static unsigned long cost(unsigned long chains, unsigned long descriptors)
{
	return 1 + chains + 2 * descriptors;
}

/* Takes one chain, which is bad, for at most so many descriptors. */
static void take_bad_for(struct bench *b, uint32_t rule, unsigned long descriptors)
{
	assert_int_equal(counted_take(b, b->chain, 1), VQB_OK);
	assert_int_equal(b->taken, 1);
	assert_int_equal(b->chain[0].status, VQB_E_BAD_CHAIN);
	assert_int_equal(b->chain[0].reason.rule, rule);
	assert_true(loads <= cost(1, descriptors));
}

/* Shows: K02 SR-DEV-31 */
static void test_loop_in_the_largest_ring_costs_the_ring_and_one(void **state)
{
	static const uint32_t limit[] = { 0, 1, 1000, VQB_RING_MAX, 0xffffffff };
	static const uint32_t len[] = { 0, 16 };

	for (unsigned i = 0; i < 2 * sizeof(limit) / sizeof(limit[0]); i++) {
		struct bench *b = bench_plan(state, VQB_RING_MAX, INDIRECT);
		uint32_t most = limit[i / 2];

		b->config.max_chain = most;
		b->config.max_pieces = 2 * VQB_RING_MAX;
		bench_start(b);
		for (unsigned d = 0; d < VQB_RING_MAX; d++)
			bench_desc(b, d, DATA, len[i % 2], RAW_NEXT, (d + 1) % VQB_RING_MAX);
		bench_offer(b, 5);
		most = most && most < VQB_RING_MAX ? most : VQB_RING_MAX;
		take_bad_for(b, VQB_RULE_LOOP, most + 1);
	}
}

/* Any number of descriptors in the ring before, and a table that goes round. */
/* Shows: K01 K02 SR-DEV-31 */
static void test_loop_in_the_largest_table_costs_the_limit_and_two(void **state)
{
	static const uint32_t before[] = { 0, 1, VQB_RING_MAX - 1 };

	for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		struct bench *b = bench_open(state, VQB_RING_MAX, INDIRECT);

		for (unsigned d = 0; d < before[i]; d++)
			bench_desc(b, d, DATA, 0, RAW_NEXT, d + 1);
		bench_table(b, HIGH, VQB_RING_MAX, DATA, 0, 0);
		bench_entry(b, HIGH, VQB_RING_MAX - 1, DATA, 0, RAW_NEXT, 0);
		bench_desc(b, before[i], HIGH, 16 * VQB_RING_MAX, RAW_INDIRECT, 0);
		bench_offer(b, 0);
		take_bad_for(b, VQB_RULE_LOOP, VQB_RING_MAX + 2);
	}
}

static struct vqb_chain *all_chains(void)
{
	struct vqb_chain *chain = (struct vqb_chain *)calloc(VQB_RING_MAX, sizeof(*chain));

	assert_non_null(chain);
	return chain;
}

static void offer_all(struct bench *b)
{
	for (unsigned head = 0; head < VQB_RING_MAX; head++)
		bench_offer(b, head);
}

/* Every head is made available, and all are bad for `rule`: one take delivers them. */
static void take_all_bad(struct bench *b, uint32_t rule, unsigned long descriptors)
{
	struct vqb_chain *chain = all_chains();

	offer_all(b);
	assert_int_equal(counted_take(b, chain, VQB_RING_MAX), VQB_OK);
	assert_int_equal(b->taken, VQB_RING_MAX);
	for (unsigned i = 0; i < VQB_RING_MAX; i++) {
		assert_int_equal(chain[i].status, VQB_E_BAD_CHAIN);
		assert_int_equal(chain[i].reason.rule, rule);
	}
	assert_true(loads <= cost(VQB_RING_MAX, VQB_RING_MAX * descriptors));
	free(chain);
}

/* Shows: K07 SR-DEV-31 */
static void test_full_ring_of_malformed_heads_costs_one_descriptor_each(void **state)
{
	struct bench *b = bench_open(state, VQB_RING_MAX, INDIRECT);

	for (unsigned d = 0; d < VQB_RING_MAX; d++)
		bench_desc(b, d, TABLE, 16, RAW_INDIRECT | RAW_NEXT, 0);
	take_all_bad(b, VQB_RULE_BOTH, 1);
}

/* Shows: K01 K07 SR-DEV-31 */
static void test_full_ring_of_looped_tables_costs_the_limit_and_two_each(void **state)
{
	struct bench *b = bench_plan(state, VQB_RING_MAX, INDIRECT);

	b->config.max_chain = 16;
	bench_start(b);
	bench_table(b, TABLE, 16, DATA, 0, 0);
	bench_entry(b, TABLE, 15, DATA, 0, RAW_NEXT, 0);
	for (unsigned d = 0; d < VQB_RING_MAX; d++)
		bench_desc(b, d, TABLE, 16 * 16, RAW_INDIRECT, 0);
	take_all_bad(b, VQB_RULE_LOOP, 18);
}

/* All 32768 descriptors one behind the other, from every head on, with a small limit. */
/* Shows: K02 K07 SR-DEV-31 */
static void test_full_ring_of_long_chains_costs_the_limit_and_one_each(void **state)
{
	struct bench *b = bench_plan(state, VQB_RING_MAX, 0);

	b->config.max_chain = 8;
	bench_start(b);
	for (unsigned d = 0; d < VQB_RING_MAX; d++)
		bench_desc(b, d, DATA, 0, RAW_NEXT, (d + 1) % VQB_RING_MAX);
	take_all_bad(b, VQB_RULE_LOOP, 9);
}

/* Shows: SR-DEV-30 SR-DEV-31 */
static void test_broken_ring_costs_nothing_more(void **state)
{
	struct bench *b = bench_open(state, VQB_RING_MAX, 0);
	struct vqb_chain *chain = all_chains();

	poke(b->ring.avail + 4, VQB_RING_MAX, 2);
	poke(b->ring.avail + 2, VQB_RING_MAX, 2);
	assert_int_equal(counted_take(b, chain, VQB_RING_MAX), VQB_E_BROKEN);
	assert_true(loads <= 2);
	assert_int_equal(counted_take(b, chain, VQB_RING_MAX), VQB_E_BROKEN);
	assert_int_equal(loads, 0);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	poke(b->ring.avail + 2, VQB_RING_MAX + 1, 2);
	assert_int_equal(counted_take(b, chain, VQB_RING_MAX), VQB_E_BROKEN);
	assert_true(loads <= 1);
	free(chain);
}

/* ---- lookups ---- */

/* Above the first region, without end: each byte an extent of its own, no two of which adjoin. */
static int32_t crumbs(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	uint8_t *host = (uint8_t *)context;

	(void)access;
	lookups++;
	if (addr < HIGH)
		return VQB_E_FAULT;
	host += (addr - HIGH) * 2 % REGION_BYTES;
	*out = (struct vqb_extent){ addr, 1, host, VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

static struct bench *open_crumbs(void **state, uint32_t size, uint32_t max_pieces)
{
	struct bench *b = bench_plan(state, size, INDIRECT);

	b->memory.count = 1;
	b->memory.translate = crumbs;
	b->memory.context = b->high;
	b->config.max_pieces = max_pieces;
	bench_start(b);
	return b;
}

/* Whatever the length, and however many descriptors: the limit of pieces is one of lookups, too. */
/* Shows: K14 SR-DEV-31 */
static void test_pieces_over_the_limit_are_not_looked_up(void **state)
{
	static const uint32_t limit[] = { 1, 7, 64 };

	for (unsigned i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		struct bench *b = open_crumbs(state, 1024, limit[i]);

		bench_desc(b, 0, HIGH, UINT32_MAX, 0, 0);
		bench_offer(b, 0);
		take_bad_for(b, VQB_RULE_PIECES, 1);
		assert_true(lookups <= limit[i] + 1);
		for (unsigned d = 1; d < 1024; d++)
			bench_desc(b, d, HIGH + 2 * d, 1, RAW_NEXT, (d + 1) % 1024);
		bench_offer(b, 1);
		take_bad_for(b, VQB_RULE_PIECES, limit[i] + 1);
		assert_true(lookups <= limit[i] + 1);
	}
}

/* Every take of a chain for which there is no room looks it up anew, and no more than that. */
static void test_chain_without_room_costs_its_limit_each_time(void **state)
{
	struct bench *b = open_crumbs(state, 8, 500);

	bench_desc(b, 0, HIGH, 400, 0, 0);
	bench_offer(b, 0);
	for (unsigned i = 0; i < 3; i++) {
		loads = lookups = 0;
		probe_load = count_load;
		assert_int_equal(bench_take_room(b, 1, 10), VQB_E_NOSPC);
		probe_load = NULL;
		assert_int_equal(b->need.pieces, 400);
		assert_true(lookups <= 400);
		assert_true(loads <= cost(1, 1));
	}
}

/* An empty descriptor's address is not looked up, in the ring or in a table. Shows: K03 */
static void test_empty_descriptors_are_not_looked_up(void **state)
{
	struct bench *b = open_crumbs(state, 64, 8);

	for (unsigned d = 0; d < 63; d++)
		bench_desc(b, d, HIGH + d, 0, RAW_NEXT, d + 1);
	bench_desc(b, 63, HIGH, 0, RAW_NEXT, 0);
	bench_offer(b, 0);
	take_bad_for(b, VQB_RULE_LOOP, 65);
	assert_int_equal(lookups, 0);
}

/*
 * A table in single bytes: one lookup for each, to see that all of it is there, and one for each
 * byte of an entry that is read; one or two for trying whether it is a single stretch.
 */
/* Shows: K01 K14 SR-DEV-31 */
static void test_looped_table_of_single_bytes_costs_32_lookups_for_each_entry(void **state)
{
	for (uint32_t entries = 1; entries <= 256; entries *= 4) {
		struct bench *b = open_crumbs(state, 256, 8);
		uint8_t entry[16];

		for (uint32_t i = 0; i < entries; i++) {
			raw_desc(entry, 0, 0, 0, RAW_NEXT, (i + 1) % entries);
			for (unsigned k = 0; k < 16; k++)
				b->high[2 * (16 * i + k)] = entry[k];
		}
		bench_desc(b, 0, HIGH, 16 * entries, RAW_INDIRECT, 0);
		bench_offer(b, 0);
		assert_int_equal(counted_take(b, b->chain, 1), VQB_OK);
		assert_int_equal(b->chain[0].reason.rule, VQB_RULE_LOOP);
		assert_true(lookups <= 16 * entries + 16 * (entries + 1) + 2);
		assert_true(loads <= cost(1, 1) + 16 * (entries + 1));
	}
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

static void expect_aligned(const void *p, unsigned bytes)
{
	assert_int_equal((uintptr_t)p % bytes, 0);
}

/* A machine may not be able to load a word from anywhere, and need not do so at once. */
static void test_tables_that_are_not_aligned_are_not_loaded_by_words(void **state)
{
	for (unsigned shift = 0; shift < 16; shift++) {
		struct bench *b = bench_open(state, 8, INDIRECT);
		uint64_t table = TABLE + shift;
		const struct vqb_chain *chain;

		bench_table(b, table, 3, DATA, 16, RAW_WRITE);
		bench_desc(b, 2, table, 48, RAW_INDIRECT, 0);
		bench_offer(b, 2);
		probe_load = expect_aligned;
		chain = bench_take_one(b);
		probe_load = NULL;
		assert_int_equal(chain->writable, 3);
		assert_int_equal(chain->write_bytes, 48);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_loop_of_empty_descriptors_costs_the_ring_and_one),
		bench_test(test_looped_table_costs_its_length_and_one),
		bench_test(test_nothing_behind_a_reference_is_read),
		bench_test(test_nothing_of_a_table_that_runs_out_of_memory_is_read),
		bench_test(test_nothing_past_a_table_is_read),
		bench_test(test_nothing_past_a_long_table_is_read),
		bench_test(test_nothing_past_the_ring_is_read),
		bench_test(test_bad_chain_is_never_walked_twice),
		bench_test(test_drain_ends_though_the_driver_adds_as_it_goes),
		bench_test(test_loop_in_the_largest_ring_costs_the_ring_and_one),
		bench_test(test_loop_in_the_largest_table_costs_the_limit_and_two),
		bench_test(test_full_ring_of_malformed_heads_costs_one_descriptor_each),
		bench_test(test_full_ring_of_looped_tables_costs_the_limit_and_two_each),
		bench_test(test_full_ring_of_long_chains_costs_the_limit_and_one_each),
		bench_test(test_broken_ring_costs_nothing_more),
		bench_test(test_pieces_over_the_limit_are_not_looked_up),
		bench_test(test_chain_without_room_costs_its_limit_each_time),
		bench_test(test_empty_descriptors_are_not_looked_up),
		bench_test(test_looped_table_of_single_bytes_costs_32_lookups_for_each_entry),
		bench_test(test_any_descriptors_cost_a_bounded_number_of_reads),
		bench_test(test_tables_that_are_not_aligned_are_not_loaded_by_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
