/* SPDX-License-Identifier: BSD-3-Clause */
/* Each shared field is read once: a driver that changes it afterwards changes nothing. */
#include "device_bench.h"
#include "probe_log.h"

static unsigned loads_of_byte(const uint8_t *at)
{
	return log_loads(at, 1);
}

/* Each of the 14 bytes of address, length and flags is read once, and those of next at most. */
static void assert_read_once(const uint8_t *desc)
{
	for (unsigned i = 0; i < 14; i++)
		assert_int_equal(loads_of_byte(desc + i), 1);
	assert_true(loads_of_byte(desc + 14) <= 1);
	assert_true(loads_of_byte(desc + 15) <= 1);
}

/* Shows: SR-DEV-35 K16 */
static void test_each_field_of_a_descriptor_is_read_once(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);
	uint8_t *table = bench_host(b, TABLE);

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, TABLE, 48, RAW_INDIRECT, 0);
	bench_table(b, TABLE, 3, BORDER - 4, 8, RAW_WRITE);
	bench_offer(b, 3);
	log_start();
	bench_take_one(b);
	log_stop();
	assert_read_once(b->ring.desc + 16 * 3);
	assert_read_once(b->ring.desc + 16 * 1);
	for (unsigned i = 0; i < 3; i++)
		assert_read_once(table + 16 * i);
	assert_int_equal(log_loads(b->ring.desc, 16 * 8),
			 log_loads(b->ring.desc + 16 * 3, 16) + log_loads(b->ring.desc + 16, 16));
	assert_int_equal(log_loads(b->ring.avail + 4, 2), 1);
	assert_int_equal(log_loads(b->ring.avail + 2, 2), 1);
}

/* Shows: SR-DEV-35 */
static void test_long_chain_is_read_once(void **state)
{
	struct bench *b = bench_open(state, 64, INDIRECT);
	const uint8_t *table = bench_host(b, TABLE);

	for (unsigned i = 0; i < 20; i++)
		bench_desc(b, i, DATA + i, 1 + i % 3, RAW_NEXT, i + 1);
	bench_desc(b, 20, TABLE, 16 * 30, RAW_INDIRECT, 0);
	bench_table(b, TABLE, 30, BORDER - 100, 8, RAW_WRITE);
	bench_entry(b, TABLE, 10, 0, 0, RAW_WRITE | RAW_NEXT, 11);
	bench_entry(b, TABLE, 20, BORDER - 4, 8, RAW_WRITE | RAW_NEXT, 21);
	bench_offer(b, 0);
	log_start();
	bench_take_one(b);
	log_stop();
	for (unsigned i = 0; i < 21; i++)
		assert_read_once(b->ring.desc + 16 * i);
	for (unsigned i = 0; i < 30; i++)
		assert_read_once(table + 16 * i);
	assert_int_equal(log_loads(b->ring.desc + 16 * 21, 16 * 43), 0);
}

/* Shows: SR-DEV-35 */
static void test_bad_chain_is_read_once_too(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 3, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA, 16, RAW_NEXT, 9);
	bench_offer(b, 3);
	log_start();
	bench_take_bad(b, VQB_RULE_NEXT);
	log_stop();
	assert_read_once(b->ring.desc + 16 * 3);
	assert_read_once(b->ring.desc + 16 * 1);
}

/* What a load finds changes after the first load of any of the bytes. */
static struct {
	uint8_t *at;
	unsigned bytes;
	uint64_t later;
	unsigned loads;
} flip;

static void flip_later(const void *p, unsigned bytes)
{
	const struct log_access load = { .at = (const uint8_t *)p, .bytes = bytes };

	if (log_touches(&load, flip.at, flip.bytes) && flip.loads++ == 1)
		poke(flip.at, flip.later, flip.bytes);
}

static void flip_after_first(uint8_t *at, unsigned bytes, uint64_t later)
{
	flip.at = at;
	flip.bytes = bytes;
	flip.later = later;
	flip.loads = 0;
	probe_load = flip_later;
}

/* Shows: SR-DEV-35 K16 */
static void test_length_that_grows_after_the_first_load_is_not_seen(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, END - 0x1000, 0x100, 0, 0);
	bench_offer(b, 0);
	flip_after_first(b->ring.desc + 8, 4, 0x10000);
	bench_take_one(b);
	probe_load = NULL;
	assert_int_equal(flip.loads, 1);
	assert_int_equal(b->chain[0].readable, 1);
	assert_int_equal(b->chain[0].read_bytes, 0x100);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, END - 0x1000), 0x100);
}

/* Shows: SR-DEV-35 K16 */
static void test_flag_that_comes_after_the_first_load_is_not_seen(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_desc(b, 0, DATA, 0x100, 0, 1);
	bench_desc(b, 1, DATA, 0x100, 0, 0);
	bench_offer(b, 0);
	flip_after_first(b->ring.desc + 12, 2, RAW_NEXT);
	bench_take_one(b);
	probe_load = NULL;
	assert_int_equal(flip.loads, 1);
	assert_int_equal(b->chain[0].readable, 1);
}

/* Shows: SR-DEV-35 */
static void test_head_that_changes_after_the_first_load_is_not_seen(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_offer_plain(b, 2);
	flip_after_first(b->ring.avail + 4, 2, 7777);
	assert_int_equal(bench_take_ticket(b).head, 2);
	probe_load = NULL;
	assert_int_equal(flip.loads, 1);
}

/* The driver rewrites every descriptor while the device asks where a buffer lies. */
static int32_t rewrite_and_answer(void *context, uint64_t addr, uint32_t access,
				  struct vqb_extent *out)
{
	struct bench *b = (struct bench *)context;

	(void)addr;
	(void)access;
	for (unsigned i = 0; i < 8; i++)
		bench_desc(b, i, END + 0x5000, 0x10000, RAW_NEXT | RAW_WRITE, 0);
	*out = (struct vqb_extent){ HIGH, REGION_BYTES, b->high, VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

/* Shows: SR-DEV-35 K16 */
static void test_descriptor_that_changes_during_translation_is_not_seen(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->memory.count = 1;
	b->memory.translate = rewrite_and_answer;
	b->memory.context = b;
	bench_start(b);
	bench_desc(b, 0, HIGH + 0x40, 0x100, 0, 0);
	bench_offer(b, 0);
	bench_take_one(b);
	assert_int_equal(b->chain[0].readable, 1);
	assert_int_equal(b->chain[0].writable, 0);
	bench_assert_piece(&b->chain[0].piece[0], bench_host(b, HIGH + 0x40), 0x100);
}

static void test_index_is_read_once_in_a_take(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned head = 0; head < 5; head++)
		bench_offer_plain(b, head);
	log_start();
	assert_int_equal(bench_take(b, 8), VQB_OK);
	log_stop();
	assert_int_equal(b->taken, 5);
	assert_int_equal(log_loads(b->ring.avail + 2, 2), 1);
}

static void test_index_is_not_read_before_what_is_known_is_used_up(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned head = 0; head < 5; head++)
		bench_offer_plain(b, head);
	bench_take_good(b, 2);
	log_start();
	bench_take_good(b, 2);
	bench_take_good(b, 1);
	assert_int_equal(log_loads(b->ring.avail + 2, 2), 0);
	bench_take_nothing(b);
	log_stop();
	assert_int_equal(log_loads(b->ring.avail + 2, 2), 1);
}

/* Only what is needed: the index, the heads, the descriptors of the chains. */
static void test_take_reads_nothing_else(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	unsigned known;

	bench_offer_plain(b, 6);
	bench_offer_plain(b, 4);
	log_start();
	bench_take_good(b, 2);
	log_stop();
	known = log_loads(b->ring.avail + 2, 2) + log_loads(b->ring.avail + 4, 4) +
		log_loads(b->ring.desc + 16 * 6, 16) + log_loads(b->ring.desc + 16 * 4, 16);
	assert_int_equal(log_all_loads(), known);
	assert_int_equal(log_all_stores(), 0);
	assert_int_equal(probe_fences, 0);
}

/* Shows: SR-DEV-27 */
static void test_index_is_read_before_head_and_descriptor(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct log_access *idx, *slot, *desc;

	bench_offer_plain(b, 6);
	log_start();
	bench_take_one(b);
	log_stop();
	idx = log_first(b->ring.avail + 2, 2, 0);
	slot = log_first(b->ring.avail + 4, 2, 0);
	desc = log_first(b->ring.desc + 16 * 6, 16, 0);
	assert_true(idx < slot);
	assert_true(slot < desc);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_each_field_of_a_descriptor_is_read_once),
		bench_test(test_long_chain_is_read_once),
		bench_test(test_bad_chain_is_read_once_too),
		bench_test(test_length_that_grows_after_the_first_load_is_not_seen),
		bench_test(test_flag_that_comes_after_the_first_load_is_not_seen),
		bench_test(test_head_that_changes_after_the_first_load_is_not_seen),
		bench_test(test_descriptor_that_changes_during_translation_is_not_seen),
		bench_test(test_index_is_read_once_in_a_take),
		bench_test(test_index_is_not_read_before_what_is_known_is_used_up),
		bench_test(test_take_reads_nothing_else),
		bench_test(test_index_is_read_before_head_and_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
