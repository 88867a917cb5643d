/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write-back and write-through: what was negotiated, what the driver switches while it runs, and
 * what it comes to at the backend.
 */
#include "blk_bench.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define V1 VQB_FEATURE(VQB_F_VERSION_1)

enum { WRITEBACK = 32 }; /* offset */

/* A disk that offers `offered`, and a driver that has accepted `accepted`, at both of its ends. */
static struct bench *open_with(void **state, uint64_t offered, uint64_t accepted)
{
	struct bench *b = bench_plan(state);

	spy_can_all(&b->spy, 512 * 512);
	b->disk_config.features = offered;
	b->config.features = 0;
	bench_start(b);
	assert_int_equal(vqb_blk_device_accept(b->blk, V1 | accepted), VQB_OK);
	assert_int_equal(vqb_blk_queue_accept(b->queue, V1 | accepted), VQB_OK);
	return b;
}

static uint8_t writeback(const struct bench *b)
{
	uint8_t byte;

	vqb_blk_device_read_config(b->blk, WRITEBACK, &byte, 1);
	return byte;
}

static int32_t set_writeback(struct bench *b, uint8_t value)
{
	return vqb_blk_device_write_config(b->blk, WRITEBACK, &value, 1);
}

/* Is a write that comes now durable when it completes? */
static int writes_through(struct bench *b)
{
	unsigned r = bench_write(b, 0, 1), k = b->spy.calls;

	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	assert_int_equal(b->spy.calls, k + 1);
	assert_int_equal(b->spy.log[k].flags & ~VQB_IO_FUA, 0);
	return b->spy.log[k].flags == VQB_IO_FUA;
}

/* Shows: BLK-DEV-03 BLK-DEV-18 BLK-DEV-22 */
static void test_the_mode_starts_as_negotiated(void **state)
{
	const uint64_t flush = BIT(FLUSH), wce = BIT(CONFIG_WCE);
	const struct {
		uint64_t offered, accepted;
		int through;
		uint8_t writeback;
	} c[] = {
		{ 0, 0, 0, 0 },
		{ flush, 0, 1, 0 },
		{ flush, flush, 0, 0 },
		{ flush | wce, 0, 1, 0 },
		{ flush | wce, flush, 0, 1 },
		{ flush | wce, wce, 1, 0 },
		{ flush | wce, flush | wce, 0, 1 },
	};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct bench *b = open_with(state, c[i].offered, c[i].accepted);

		assert_int_equal(writeback(b), c[i].writeback);
		assert_int_equal(writes_through(b), c[i].through);
	}
}

/* Shows: BLK-DEV-19 */
static void test_a_driver_switches_the_mode_while_it_runs(void **state)
{
	const uint64_t both = BIT(FLUSH) | BIT(CONFIG_WCE);
	struct bench *b = open_with(state, both, both);

	assert_false(writes_through(b));
	assert_int_equal(set_writeback(b, 0), VQB_OK);
	assert_int_equal(writeback(b), 0);
	assert_true(writes_through(b));
	assert_true(writes_through(b));
	assert_int_equal(set_writeback(b, 1), VQB_OK);
	assert_int_equal(writeback(b), 1);
	assert_false(writes_through(b));

	/* Without FLUSH as well, where it begins the other way. */
	b = open_with(state, both, BIT(CONFIG_WCE));
	assert_true(writes_through(b));
	assert_int_equal(set_writeback(b, 1), VQB_OK);
	assert_false(writes_through(b));
}

/* Shows: BLK-DEV-21 */
static void test_a_switch_leaves_what_is_under_way_alone(void **state)
{
	const uint64_t both = BIT(FLUSH) | BIT(CONFIG_WCE);
	struct bench *b = open_with(state, both, both);
	unsigned r[3];

	b->spy.manual = 1;
	b->spy.room = 1;
	for (unsigned i = 0; i < 3; i++) {
		r[i] = bench_write(b, i, 1);
		bench_run(b);
		assert_int_equal(set_writeback(b, i % 2), VQB_OK);
	}
	for (unsigned i = 0; i < 3; i++) {
		spy_finish(&b->spy, 0);
		bench_run(b);
	}
	for (unsigned i = 0; i < 3; i++)
		bench_assert_reply(b, r[i], VQB_BLK_S_OK, 1);
}

/* Reads, and what says nothing of the disk's contents, have nothing to be made durable. */
static void test_only_what_changes_the_disk_is_made_durable(void **state)
{
	const uint64_t types = BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE);
	const struct bench_range range[2] = { { 8, 8, 0 }, { 32, 8, 0 } };
	const uint8_t want[] = { VQB_BLK_IN,           VQB_BLK_DISCARD,      VQB_BLK_DISCARD,
				 VQB_BLK_WRITE_ZEROES, VQB_BLK_WRITE_ZEROES, VQB_BLK_FLUSH,
				 VQB_BLK_SECURE_ERASE, VQB_BLK_SECURE_ERASE, VQB_BLK_FLUSH };

	for (unsigned through = 0; through < 2; through++) {
		struct bench *b =
			open_with(state, BIT(FLUSH) | types, types | (through ? 0 : BIT(FLUSH)));
		unsigned r[4], k = 0;

		r[0] = bench_read(b, 0, 1);
		bench_run(b);
		r[1] = bench_ranges(b, VQB_BLK_DISCARD, range, 2);
		bench_run(b);
		r[2] = bench_ranges(b, VQB_BLK_WRITE_ZEROES, range, 2);
		bench_run(b);
		r[3] = bench_ranges(b, VQB_BLK_SECURE_ERASE, range, 2);
		bench_run(b);
		for (unsigned i = 0; i < sizeof(want); i++) {
			if (want[i] == VQB_BLK_FLUSH && !through)
				continue;
			assert_int_equal(b->spy.log[k].op, want[i]);
			assert_int_equal(b->spy.log[k++].flags, 0);
		}
		assert_int_equal(b->spy.calls, k);
		bench_assert_reply(b, r[0], VQB_BLK_S_OK, 513);
		for (unsigned i = 1; i < 4; i++)
			bench_assert_reply(b, r[i], VQB_BLK_S_OK, 1);
	}
}

/* Zeroes are not reported before they are durable, nor if they can't be made so. */
static void test_write_zeroes_completes_after_its_flush(void **state)
{
	const struct bench_range range = { 8, 8, 0 };

	for (unsigned fails = 0; fails < 2; fails++) {
		struct bench *b =
			open_with(state, BIT(FLUSH) | BIT(WRITE_ZEROES), BIT(WRITE_ZEROES));
		unsigned r;

		b->spy.manual = 1;
		r = bench_ranges(b, VQB_BLK_WRITE_ZEROES, &range, 1);
		bench_run(b);
		spy_finish(&b->spy, 0);
		bench_run(b);
		assert_int_equal(bench_used(b), 0);
		assert_int_equal(b->spy.log[1].op, VQB_BLK_FLUSH);
		b->spy.fail = fails ? VQB_E_UNSUPP : 0;
		spy_finish(&b->spy, 0);
		bench_run(b);
		bench_assert_reply(b, r, fails ? VQB_BLK_S_IOERR : VQB_BLK_S_OK, 1);
		assert_int_equal(b->spy.calls, 2);
	}
}

/* The flush has no range of its own: what lies behind the last one belongs to another request. */
static void test_the_flush_behind_write_zeroes_leaves_others_alone(void **state)
{
	const struct bench_range range = { 8, 8, 0 };
	struct bench *b = open_with(state, BIT(FLUSH) | BIT(WRITE_ZEROES), BIT(WRITE_ZEROES));
	unsigned zeroes, write;

	b->spy.manual = 1;
	b->spy.room = 1;
	zeroes = bench_ranges(b, VQB_BLK_WRITE_ZEROES, &range, 1);
	write = bench_ask(b, VQB_BLK_OUT, 100, CUT(16 + 512), CUT(1));
	for (unsigned i = 0; i < 3; i++) {
		bench_run(b);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	bench_assert_reply(b, zeroes, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, write, VQB_BLK_S_OK, 1);
	assert_true(bench_is(b->disk + 100 * 512, PATTERN, 512));
}

/* ---- who may write what ---- */

/* Every offset and width: one byte of 96 can be written, and nothing else changes. */
static void test_only_writeback_can_be_written(void **state)
{
	const uint64_t both = BIT(FLUSH) | BIT(CONFIG_WCE);
	struct bench *b = open_with(state, both, both);
	uint8_t before[100], after[100], data[8] = { 0 };

	vqb_blk_device_read_config(b->blk, 0, before, sizeof(before));
	for (uint32_t at = 0; at < sizeof(before); at++) {
		for (size_t bytes = 0; bytes <= sizeof(data); bytes++) {
			if (at == WRITEBACK && bytes == 1)
				continue;
			assert_int_equal(vqb_blk_device_write_config(b->blk, at, data, bytes),
					 VQB_E_INVALID);
		}
	}
	assert_int_equal(vqb_blk_device_write_config(b->blk, UINT32_MAX, data, 8), VQB_E_INVALID);
	for (unsigned value = 2; value < 256; value++)
		assert_int_equal(set_writeback(b, (uint8_t)value), VQB_E_INVALID);
	vqb_blk_device_read_config(b->blk, 0, after, sizeof(after));
	assert_memory_equal(before, after, sizeof(before));
}

static void test_writeback_is_written_only_once_it_was_negotiated(void **state)
{
	const uint64_t flush = BIT(FLUSH), wce = BIT(CONFIG_WCE);
	struct bench *b = open_with(state, flush, flush);

	assert_int_equal(set_writeback(b, 0), VQB_E_INVALID);
	assert_int_equal(writeback(b), 0);
	b = open_with(state, flush | wce, flush);
	assert_int_equal(set_writeback(b, 0), VQB_E_INVALID);
	assert_int_equal(writeback(b), 1);

	/* From FEATURES_OK on, and until the reset. */
	b = bench_plan(state);
	b->disk_config.features = flush | wce;
	b->config.features = 0;
	bench_start(b);
	assert_int_equal(set_writeback(b, 0), VQB_E_INVALID);
	assert_int_equal(vqb_blk_device_accept(b->blk, V1 | flush | wce), VQB_OK);
	assert_int_equal(set_writeback(b, 0), VQB_OK);
	vqb_blk_device_reset(b->blk);
	assert_int_equal(set_writeback(b, 0), VQB_E_INVALID);
	assert_int_equal(vqb_blk_device_accept(b->blk, V1 | flush | wce), VQB_OK);
	assert_int_equal(writeback(b), 1);
	/* What is refused changes nothing. */
	assert_int_equal(set_writeback(b, 0), VQB_OK);
	assert_int_equal(vqb_blk_device_accept(b->blk, V1 | BIT(MQ)), VQB_E_INVALID);
	assert_int_equal(writeback(b), 0);
	assert_int_equal(set_writeback(b, 1), VQB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_the_mode_starts_as_negotiated),
		bench_test(test_a_driver_switches_the_mode_while_it_runs),
		bench_test(test_a_switch_leaves_what_is_under_way_alone),
		bench_test(test_only_what_changes_the_disk_is_made_durable),
		bench_test(test_write_zeroes_completes_after_its_flush),
		bench_test(test_the_flush_behind_write_zeroes_leaves_others_alone),
		bench_test(test_only_writeback_can_be_written),
		bench_test(test_writeback_is_written_only_once_it_was_negotiated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
