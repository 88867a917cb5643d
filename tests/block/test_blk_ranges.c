/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discard, write zeroes and secure erase: what their ranges do, that all of them are checked before
 * the first is done, and that there is always room for them, or they wait for it.
 */
#include "blk_bench.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)
#define ALL_THREE (BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE))
#define RANGES(...)                                                                                \
	(const struct bench_range[]){ __VA_ARGS__ },                                               \
		sizeof((const struct bench_range[]){ __VA_ARGS__ }) / sizeof(struct bench_range)

static const uint32_t three[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_SECURE_ERASE };

/* A backend that can do all of it, and a driver that has accepted it. */
static struct bench *plan(void **state)
{
	struct bench *b = bench_plan(state);

	spy_can_all(&b->spy, 256 * 512);
	b->disk_config.features |= ALL_THREE;
	b->config.features |= ALL_THREE;
	return b;
}

static struct bench *open_all(void **state)
{
	struct bench *b = plan(state);

	bench_start(b);
	return b;
}

/* The disk holds this in these sectors, and is as new elsewhere. */
static void assert_only(const struct bench *b, uint64_t sector, uint32_t sectors, uint8_t value)
{
	assert_true(bench_is(b->disk + sector * 512, value, 512 * (size_t)sectors));
	assert_true(bench_disk_is_new(b, 0, (uint32_t)sector));
	assert_true(bench_disk_is_new(b, sector + sectors, (uint32_t)(SECTORS - sector - sectors)));
}

static void assert_io(const struct bench *b, unsigned k, uint8_t op, uint64_t sector,
		      uint64_t sectors, uint8_t flags)
{
	assert_true(k < b->spy.calls);
	assert_int_equal(b->spy.log[k].op, op);
	assert_int_equal(b->spy.log[k].offset, sector * 512);
	assert_int_equal(b->spy.log[k].bytes, sectors * 512);
	assert_int_equal(b->spy.log[k].pieces, 0);
	assert_int_equal(b->spy.log[k].flags, flags);
}

/* Nothing but the status came of it. */
static void assert_refused(struct bench *b, unsigned r, uint8_t status)
{
	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, r, status, 1);
	assert_true(bench_disk_is_new(b, 0, SECTORS));
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
}

/* ---- what they do ---- */

/* Shows: BLK-ANY-07 BLK-DEV-12 BLK-DEV-14 BLK-DEV-31 BLK-ANY-02 */
static void test_each_type_does_its_own_to_its_range(void **state)
{
	const uint8_t value[] = { DISCARDED, 0, ERASED };

	for (unsigned i = 0; i < 3; i++) {
		struct bench *b = open_all(state);
		unsigned r = bench_ranges(b, three[i], RANGES({ 100, 7, 0 }));

		bench_run(b);
		assert_int_equal(b->spy.calls, 1);
		assert_io(b, 0, (uint8_t)three[i], 100, 7, 0);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
		assert_only(b, 100, 7, value[i]);
	}
}

/* Shows: BLK-DEV-13 BLK-DEV-14 BLK-DEV-15 K25 */
static void test_unmap_is_handed_on_where_the_backend_can(void **state)
{
	for (unsigned can = 0; can < 2; can++) {
		struct bench *b = plan(state);
		uint8_t may;
		unsigned r;

		if (!can)
			b->spy.base.caps.can &= ~(uint32_t)VQB_CAN_UNMAP;
		bench_start(b);
		vqb_blk_device_read_config(b->blk, 56, &may, 1);
		assert_int_equal(may, can);
		r = bench_ranges(b, VQB_BLK_WRITE_ZEROES,
				 RANGES({ 8, 4, 1 }, { 12, 2, 0 }, { 14, 2, 1 }));
		bench_run(b);
		assert_int_equal(b->spy.calls, 3);
		assert_io(b, 0, VQB_BLK_WRITE_ZEROES, 8, 4, can ? VQB_IO_UNMAP : 0);
		assert_io(b, 1, VQB_BLK_WRITE_ZEROES, 12, 2, 0);
		assert_io(b, 2, VQB_BLK_WRITE_ZEROES, 14, 2, can ? VQB_IO_UNMAP : 0);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
		assert_only(b, 8, 8, 0);
	}
}

static void test_ranges_are_done_one_after_the_other(void **state)
{
	struct bench *b = open_all(state);
	unsigned r, k;

	b->spy.manual = 1;
	r = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 0, 1, 0 }, { 9, 2, 0 }, { 5, 3, 0 }));
	bench_run(b);
	for (k = 1; k <= 3; k++) {
		assert_int_equal(b->spy.calls, k);
		assert_int_equal(bench_used(b), 0);
		spy_finish(&b->spy, 0);
		bench_run(b);
	}
	assert_int_equal(b->spy.calls, 3);
	assert_io(b, 1, VQB_BLK_DISCARD, 9, 2, 0);
	assert_io(b, 2, VQB_BLK_DISCARD, 5, 3, 0);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
}

/* Over a backend that is done at once, one call brings all of them to their end. */
static void test_one_call_goes_through_all_ranges(void **state)
{
	struct bench *b = open_all(state);
	unsigned r =
		bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 0, 1, 0 }, { 9, 2, 0 }, { 5, 3, 0 }));

	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, 0);
	assert_int_equal(b->spy.calls, 3);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
}

static void test_a_range_beyond_what_the_backend_takes_at_once_is_cut(void **state)
{
	struct bench *b = plan(state);
	unsigned r;

	b->spy.base.caps.max_range = 4 * 4096 + 512;
	b->limits.block_size = 4096;
	b->limits.zeroes_sectors = 1024;
	bench_start(b);
	r = bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ 16, 72, 0 }, { 96, 8, 0 }));
	bench_run(b);
	assert_int_equal(b->spy.calls, 4);
	assert_io(b, 0, VQB_BLK_WRITE_ZEROES, 16, 32, 0);
	assert_io(b, 1, VQB_BLK_WRITE_ZEROES, 48, 32, 0);
	assert_io(b, 2, VQB_BLK_WRITE_ZEROES, 80, 8, 0);
	assert_io(b, 3, VQB_BLK_WRITE_ZEROES, 96, 8, 0);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
}

/* As a transfer is: in the backend's own units, none of which need be a sector. */
static void test_a_range_that_is_cut_short_is_continued(void **state)
{
	for (uint64_t part = 100; part <= 1700; part += 200) {
		struct bench *b = open_all(state);
		unsigned r;

		b->spy.part = part;
		r = bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ 3, 3, 0 }, { 6, 2, 0 }));
		bench_run(b);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
		assert_only(b, 3, 5, 0);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	}
}

static void test_ranges_of_no_sectors_are_fine_and_nothing(void **state)
{
	struct bench *b = open_all(state);
	unsigned none, some;

	none = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 0, 0, 0 }, { SECTORS, 0, 0 }));
	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, none, VQB_BLK_S_OK, 1);
	some = bench_ranges(b, VQB_BLK_DISCARD,
			    RANGES({ 1, 0, 0 }, { 2, 1, 0 }, { 3, 0, 0 }, { 4, 1, 0 }));
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_io(b, 0, VQB_BLK_DISCARD, 2, 1, 0);
	assert_io(b, 1, VQB_BLK_DISCARD, 4, 1, 0);
	bench_assert_reply(b, some, VQB_BLK_S_OK, 1);
}

/* Header and ranges in whatever pieces, none of which is a range. */
/* Shows: K22 SR-DEV-01 */
static void test_ranges_may_be_cut_anywhere(void **state)
{
	uint8_t wire[32] = { 0 };

	poke(wire, 40, 8);
	poke(wire + 8, 2, 4);
	poke(wire + 16, 50, 8);
	poke(wire + 24, 3, 4);
	for (uint32_t first = 0; first <= 48; first++) {
		struct bench *b = open_all(state);
		unsigned r = bench_build(
			b, VQB_BLK_DISCARD, UINT64_MAX,
			CUT(first, (48 - first) / 2, 48 - first - (48 - first) / 2), CUT(1));

		bench_fill(b, r, 16, wire, 32);
		bench_offer(b, r);
		bench_run(b);
		assert_int_equal(b->spy.calls, 2);
		assert_io(b, 0, VQB_BLK_DISCARD, 40, 2, 0);
		assert_io(b, 1, VQB_BLK_DISCARD, 50, 3, 0);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	}
}

/* ---- what is refused, before anything is done ---- */

/* Shows: K25 BLK-DEV-10 BLK-DEV-11 */
static void test_flags_that_are_not_known_are_unsupported(void **state)
{
	const uint32_t flags[] = { 1, 2, 3, 0x80000000 };

	for (unsigned t = 0; t < 3; t++) {
		for (unsigned f = 0; f < 4; f++) {
			for (unsigned at = 0; at < 3; at++) {
				struct bench *b = open_all(state);
				struct bench_range range[3] = { { 1, 1, 0 },
								{ 3, 1, 0 },
								{ 5, 1, 0 } };

				if (three[t] == VQB_BLK_WRITE_ZEROES && flags[f] == 1)
					continue;
				range[at].flags = flags[f];
				assert_refused(b, bench_ranges(b, three[t], range, 3),
					       VQB_BLK_S_UNSUPP);
			}
		}
	}
}

/* An unknown flag says more than a range that is wrong, before it or behind. */
/* Shows: BLK-DEV-10 */
static void test_an_unknown_flag_counts_first(void **state)
{
	struct bench *b = open_all(state);

	assert_refused(b, bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 5, 1, 4 }, { SECTORS, 1, 0 })),
		       VQB_BLK_S_UNSUPP);
	b = open_all(state);
	assert_refused(b, bench_ranges(b, VQB_BLK_DISCARD, RANGES({ SECTORS, 1, 0 }, { 5, 1, 4 })),
		       VQB_BLK_S_UNSUPP);
}

/* Shows: K25 BLK-ANY-07 BLK-DEV-27 */
static void test_as_many_ranges_as_offered_and_not_one_more(void **state)
{
	for (unsigned t = 0; t < 3; t++) {
		struct bench_range range[33];
		struct bench *b = open_all(state);
		uint32_t most;
		unsigned r;

		for (unsigned i = 0; i < 33; i++)
			range[i] = (struct bench_range){ 2 * i, 1, 0 };
		vqb_blk_device_read_config(b->blk, t == 0 ? 40 : t == 1 ? 52 : 64, &most, 4);
		assert_int_equal(peek(&most, 4), 32);
		r = bench_ranges(b, three[t], range, 32);
		bench_run(b);
		assert_int_equal(b->spy.calls, 32);
		for (unsigned i = 0; i < 32; i++)
			assert_io(b, i, (uint8_t)three[t], 2 * i, 1, 0);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);

		b = open_all(state);
		assert_refused(b, bench_ranges(b, three[t], range, 33), VQB_BLK_S_IOERR);
	}
}

/* Shows: K25 BLK-DEV-27 */
static void test_data_of_no_whole_number_of_ranges_is_an_error(void **state)
{
	const uint32_t bytes[] = { 0, 1, 8, 15, 17, 24, 31, 512 + 8 };

	for (unsigned t = 0; t < 3; t++) {
		for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
			struct bench *b = open_all(state);

			assert_refused(b, bench_ask(b, three[t], 0, CUT(16, bytes[i]), CUT(1)),
				       VQB_BLK_S_IOERR);
		}
	}
}

/* Shows: BLK-DEV-27 K23 */
static void test_one_bad_range_and_none_is_done(void **state)
{
	const struct bench_range bad[] = {
		{ UINT64_MAX - 100, 200, 0 }, /* its end wraps, and looks fine */
		{ UINT64_C(1) << 55, 1, 0 },  /* times 512 it is 0 */
		{ SECTORS, 1, 0 },
		{ SECTORS - 1, 2, 0 },
		{ SECTORS + 1, 0, 0 },
		{ 0, 257, 0 }, /* longer than offered */
		{ 0, UINT32_MAX, 0 },
	};

	for (unsigned t = 0; t < 3; t++) {
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			for (unsigned at = 0; at < 3; at++) {
				struct bench_range range[3] = { { 1, 1, 0 },
								{ 3, 1, 0 },
								{ 5, 1, 0 } };
				struct bench *b = open_all(state);

				range[at] = bad[i];
				assert_refused(b, bench_ranges(b, three[t], range, 3),
					       VQB_BLK_S_IOERR);
			}
		}
	}
}

/* The case of the row itself, where a range of 1000 sectors would be within the limit. */
/* Shows: K23 */
static void test_write_zeroes_whose_end_wraps_is_an_error(void **state)
{
	struct bench *b = plan(state);

	b->limits.zeroes_sectors = 1000;
	bench_start(b);
	assert_refused(b,
		       bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ UINT64_MAX - 100, 1000, 0 })),
		       VQB_BLK_S_IOERR);
}

/* Sectors whose bytes don't fit into 32 bits, on a device that limits nothing. */
static void test_a_range_of_more_than_4_gib_does_not_pass_as_a_short_one(void **state)
{
	const uint64_t sectors[] = { 0x800000, 0x800001, UINT32_MAX };

	for (unsigned i = 0; i < 3; i++) {
		struct bench *b = plan(state);

		b->limits.discard_sectors = UINT32_MAX;
		bench_start(b);
		assert_refused(b, bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 0, sectors[i], 0 })),
			       VQB_BLK_S_IOERR);
	}
}

static void test_the_longest_range_on_offer_is_done(void **state)
{
	struct bench *b = open_all(state);
	unsigned r = bench_ranges(b, VQB_BLK_SECURE_ERASE, RANGES({ SECTORS - 256, 256, 0 }));

	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	assert_only(b, SECTORS - 256, 256, ERASED);
}

/* Shows: BLK-DEV-27 */
static void test_ranges_are_whole_blocks_at_a_block_in_units_of_512(void **state)
{
	const struct bench_range bad[] = { { 8, 4, 0 }, { 4, 8, 0 }, { 8, 9, 0 } };

	for (unsigned i = 0; i < 3; i++) {
		struct bench *b = plan(state);

		b->limits.block_size = 4096;
		bench_start(b);
		assert_refused(b, bench_ranges(b, VQB_BLK_DISCARD, &bad[i], 1), VQB_BLK_S_IOERR);
	}
}

/* Blocks 10 and 11, as a driver has to say it; the limit of 64 sectors is 8 blocks. */
/* Shows: K26 */
static void test_two_blocks_of_4096_are_16_sectors_and_64_are_8_blocks(void **state)
{
	const struct {
		struct bench_range range;
		uint8_t status;
	} c[] = {
		{ { 80, 16, 0 }, VQB_BLK_S_OK },
		{ { 80, 64, 0 }, VQB_BLK_S_OK },
		{ { 80, 72, 0 }, VQB_BLK_S_IOERR },
	};

	for (unsigned i = 0; i < 3; i++) {
		struct bench *b = plan(state);
		uint32_t sectors = (uint32_t)c[i].range.sectors;
		unsigned r;

		b->limits.block_size = 4096;
		b->limits.discard_sectors = 64;
		bench_start(b);
		r = bench_ranges(b, VQB_BLK_DISCARD, &c[i].range, 1);
		bench_run(b);
		bench_assert_reply(b, r, c[i].status, 1);
		if (c[i].status == VQB_BLK_S_OK) {
			assert_int_equal(b->spy.calls, 1);
			assert_int_equal(b->spy.log[0].offset, 10 * 4096);
			assert_int_equal(b->spy.log[0].bytes, 4096 * (sectors / 8));
			assert_only(b, 80, sectors, DISCARDED);
		} else {
			assert_int_equal(b->spy.calls, 0);
		}
	}
}

static void test_writable_data_is_refused(void **state)
{
	for (unsigned t = 0; t < 3; t++) {
		struct bench *b = open_all(state);
		unsigned r = bench_ask(b, three[t], 0, CUT(16, 16), CUT(512, 1));

		bench_run(b);
		assert_int_equal(b->spy.calls, 0);
		bench_assert_reply(b, r, VQB_BLK_S_IOERR, 0);
	}
}

/* On a disk that is read-only by wish, over a backend that could. */
/* Shows: BLK-DEV-09 */
static void test_nothing_is_changed_on_a_read_only_disk(void **state)
{
	for (unsigned t = 0; t < 3; t++) {
		struct bench *b = plan(state);

		b->disk_config.features |= BIT(RO);
		bench_start(b);
		assert_refused(b, bench_ranges(b, three[t], RANGES({ 1, 1, 0 })), VQB_BLK_S_IOERR);
	}
}

/* Shows: BLK-DEV-28 */
static void test_what_was_not_negotiated_is_unsupported(void **state)
{
	const uint64_t feature[] = { BIT(DISCARD), BIT(WRITE_ZEROES), BIT(SECURE_ERASE) };

	for (unsigned t = 0; t < 3; t++) {
		struct bench *b = plan(state);

		b->config.features &= ~feature[t];
		bench_start(b);
		assert_refused(b, bench_ranges(b, three[t], RANGES({ 1, 1, 0 })), VQB_BLK_S_UNSUPP);
	}
}

/* ---- failures on the way ---- */

/* Shows: BLK-DEV-05 */
static void test_a_failure_in_the_middle_ends_the_request(void **state)
{
	for (unsigned bad = 0; bad < 3; bad++) {
		struct bench *b = open_all(state);
		unsigned r;

		b->spy.bad = (10 + 10 * bad) * 512;
		r = bench_ranges(b, VQB_BLK_DISCARD,
				 RANGES({ 10, 1, 0 }, { 20, 1, 0 }, { 30, 1, 0 }));
		bench_run(b);
		assert_int_equal(b->spy.calls, bad + 1);
		bench_assert_reply(b, r, VQB_BLK_S_IOERR, 1);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	}
}

/* "Not supported" is a word about all of the request: not once a part of it was done. */
static void test_unsupported_by_the_backend_is_said_of_the_first_range_only(void **state)
{
	struct bench *b = open_all(state);
	unsigned first, second;

	b->spy.manual = 1;
	first = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 10, 1, 0 }, { 20, 1, 0 }));
	second = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 30, 1, 0 }, { 40, 1, 0 }));
	bench_run(b);
	spy_finish(&b->spy, 1); /* the second request's first range */
	b->spy.fail = VQB_E_UNSUPP;
	bench_run(b);
	spy_drain(&b->spy.base);
	bench_run(b);
	bench_assert_reply(b, first, VQB_BLK_S_UNSUPP, 1);
	bench_assert_reply(b, second, VQB_BLK_S_IOERR, 1);
}

/* The next request that the same object serves starts from nothing. */
static void test_a_failed_request_leaves_no_trace(void **state)
{
	struct bench *b = plan(state);
	unsigned r;

	b->config.requests = 1;
	bench_start(b);
	b->spy.bad = 20 * 512;
	bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ 10, 1, 1 }, { 20, 1, 0 }));
	r = bench_read(b, 20, 1);
	b->spy.bad = 0;
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 513);
	r = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 1, 1, 0 }));
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	r = bench_write(b, 1, 1);
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	assert_int_equal(b->spy.log[b->spy.calls - 1].flags, 0);
}

/* ---- the driver changes its mind ---- */

/* The second range lies in guest memory while the first one is under way. */
/* Shows: SR-DEV-35 */
static void test_ranges_that_change_after_the_check_are_not_looked_at(void **state)
{
	struct bench *b = open_all(state);
	unsigned r;

	b->spy.manual = 1;
	r = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 1, 1, 0 }, { 3, 1, 0 }));
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	memset(b->asked[r].at[1], 0xff, 32);
	memset(b->ring.desc, 0xff, 16 * RING_SIZE);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_io(b, 1, VQB_BLK_DISCARD, 3, 1, 0);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(bench_used(b), 1);
	assert_int_equal(b->asked[r].at[2][0], VQB_BLK_S_OK);
}

/* ---- room ---- */

static const struct bench_range many[32] = {
	{ 0, 1, 0 },  { 2, 1, 0 },  { 4, 1, 0 },  { 6, 1, 0 },  { 8, 1, 0 },  { 10, 1, 0 },
	{ 12, 1, 0 }, { 14, 1, 0 }, { 16, 1, 0 }, { 18, 1, 0 }, { 20, 1, 0 }, { 22, 1, 0 },
	{ 24, 1, 0 }, { 26, 1, 0 }, { 28, 1, 0 }, { 30, 1, 0 }, { 32, 1, 0 }, { 34, 1, 0 },
	{ 36, 1, 0 }, { 38, 1, 0 }, { 40, 1, 0 }, { 42, 1, 0 }, { 44, 1, 0 }, { 46, 1, 0 },
	{ 48, 1, 0 }, { 50, 1, 0 }, { 52, 1, 0 }, { 54, 1, 0 }, { 56, 1, 0 }, { 58, 1, 0 },
	{ 60, 1, 0 }, { 62, 1, 0 },
};

/* However much room there is above the least, and whatever lies behind them in the batch. */
static void test_a_small_arena_serves_long_and_short_in_order(void **state)
{
	const unsigned least = (unsigned)VQB_BLK_RANGE_PIECES(32) + 3;

	for (unsigned pieces = least; pieces < least + 20; pieces++) {
		struct bench *b = plan(state);
		unsigned r[18], calls = 0;

		b->config.pieces = pieces;
		bench_start(b);
		for (unsigned i = 0; i < 18; i += 3) {
			r[i] = bench_read(b, 100 + i, 1);
			r[i + 1] = bench_ranges(b, VQB_BLK_DISCARD, many, 1 + 31 * (i % 2));
			r[i + 2] = bench_write(b, 200 + i, 1);
		}
		bench_run(b);
		for (unsigned i = 0; i < 18; i += 3) {
			assert_int_equal(bench_entry(b, r[i]) < bench_entry(b, r[i + 2]), 1);
			bench_assert_reply(b, r[i], VQB_BLK_S_OK, 513);
			bench_assert_reply(b, r[i + 1], VQB_BLK_S_OK, 1);
			bench_assert_reply(b, r[i + 2], VQB_BLK_S_OK, 1);
			assert_memory_equal(b->asked[r[i]].at[1], b->disk + (100 + i) * 512, 512);
			assert_true(bench_is(b->disk + (200 + i) * 512, PATTERN, 512));
			calls += 2 + 1 + 31 * (i % 2);
		}
		assert_int_equal(b->spy.calls, calls);
	}
}

/* Pieces of those behind move up, with all that they say, bad chains among them. */
static void test_what_was_taken_behind_ranges_is_served_as_it_is(void **state)
{
	struct bench *b = plan(state);
	unsigned discard, zeroes, loop, read, bad;

	b->spy.manual = 1;
	bench_start(b);
	discard = bench_ranges(b, VQB_BLK_DISCARD, many, 32);
	read = bench_ask(b, VQB_BLK_IN, 100, CUT(16), CUT(100, 412, 512, 1));
	loop = bench_build(b, VQB_BLK_OUT, 0, CUT(16, 512), CUT(1));
	bench_offer(b, loop);
	raw_desc(b->ring.desc, b->asked[loop].head + 2, RAM, 1, RAW_WRITE | RAW_NEXT,
		 b->asked[loop].head);
	zeroes = bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ 300, 2, 0 }, { 302, 3, 0 }));
	bad = bench_ranges(b, VQB_BLK_WRITE_ZEROES, RANGES({ 300, 2, 2 }));
	bench_run(b);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 3);
	b->spy.manual = 0;
	spy_drain(&b->spy.base);
	bench_run(b);
	bench_assert_reply(b, discard, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, read, VQB_BLK_S_OK, 1025);
	assert_memory_equal(b->asked[read].at[3], b->disk + 101 * 512, 512);
	assert_int_equal(bench_length(b, loop), 0);
	bench_assert_reply(b, zeroes, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, bad, VQB_BLK_S_UNSUPP, 1);
	assert_true(bench_is(b->disk + 300 * 512, 0, 5 * 512));
}

/* Such a chain has no pieces; those of the one before it are the last. */
static void test_ranges_find_their_room_before_a_bad_chain(void **state)
{
	struct bench *b = open_all(state);
	unsigned discard, read, loop;

	discard = bench_ranges(b, VQB_BLK_DISCARD, many, 32);
	read = bench_read(b, 100, 1);
	loop = bench_build(b, VQB_BLK_OUT, 0, CUT(16, 512), CUT(1));
	bench_offer(b, loop);
	raw_desc(b->ring.desc, b->asked[loop].head + 2, RAM, 1, RAW_WRITE | RAW_NEXT,
		 b->asked[loop].head);
	bench_run(b);
	bench_assert_reply(b, discard, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, read, VQB_BLK_S_OK, 513);
	assert_int_equal(bench_length(b, loop), 0);
	assert_int_equal(b->spy.calls, 33);
}

/* Not taken, but not lost either: it goes on after a completion, ahead of what is behind it. */
static void test_ranges_without_room_wait_in_the_ring(void **state)
{
	struct bench *b = plan(state);
	struct vqb_device_counters ring;
	unsigned read, discard, write;

	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3 + 2;
	b->spy.manual = 1;
	bench_start(b);
	read = bench_read(b, 100, 1);
	discard = bench_ranges(b, VQB_BLK_DISCARD, many, 32);
	write = bench_write(b, 200, 1);
	assert_int_equal(vqb_blk_queue_run(b->queue, 256) & VQB_MORE, 0);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 1);
	assert_int_equal(b->spy.calls, 1);
	vqb_device_read_counters(b->dev, &ring);
	assert_true(ring.untaken >= 1);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(b->spy.log[1].op, VQB_BLK_DISCARD);
	b->spy.manual = 0;
	spy_drain(&b->spy.base);
	bench_run(b);
	bench_assert_reply(b, read, VQB_BLK_S_OK, 513);
	bench_assert_reply(b, discard, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, write, VQB_BLK_S_OK, 1);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
}

/* So many buffers that there never is room for the ranges beside them. */
static void test_ranges_that_never_fit_are_an_error(void **state)
{
	struct bench *b = plan(state);
	uint32_t cut[17];
	unsigned r, after;

	for (unsigned i = 0; i < 17; i++)
		cut[i] = i ? 32 : 16;
	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3;
	bench_start(b);
	r = bench_build(b, VQB_BLK_DISCARD, 0, cut, 17, CUT(1));
	bench_fill(b, r, 16, (const uint8_t[512]){ 0 }, 512);
	bench_offer(b, r);
	after = bench_read(b, 1, 1);
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, 1);
	bench_assert_reply(b, after, VQB_BLK_S_OK, 513);
}

static void test_init_wants_room_for_the_ranges_on_offer(void **state)
{
	struct bench *b = open_all(state);

	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 2;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	b->config.pieces++;
	assert_int_equal(bench_queue(b), VQB_OK);
	b->limits.erase_ranges = 100;
	b->config.pieces = 512;
	bench_start(b);
	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(100) + 2;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	b->config.pieces++;
	assert_int_equal(bench_queue(b), VQB_OK);
}

static void test_init_wants_a_backend_that_does_what_is_offered(void **state)
{
	struct bench *b = open_all(state);
	const uint32_t can[] = { VQB_CAN_DISCARD, VQB_CAN_WRITE_ZEROES, VQB_CAN_SECURE_ERASE };

	for (unsigned i = 0; i < 3; i++) {
		b->spy.base.caps.can &= ~can[i];
		assert_int_equal(bench_queue(b), VQB_E_INVALID);
		b->spy.base.caps.can |= can[i];
	}
	b->spy.base.caps.can &= ~(uint32_t)VQB_CAN_UNMAP;
	assert_int_equal(bench_queue(b), VQB_OK);
	b->spy.base.caps.max_range = 511;
	assert_int_equal(bench_queue(b), VQB_E_INVALID);
	b->spy.base.caps.max_range = 512;
	assert_int_equal(bench_queue(b), VQB_OK);
}

/* ---- back-pressure, budget, reset ---- */

/* The next range goes before what waits, and nothing new is taken meanwhile. */
static void test_the_next_range_goes_before_those_that_wait(void **state)
{
	struct bench *b = plan(state);
	unsigned r[3];

	b->spy.manual = 1;
	b->spy.room = 1;
	bench_start(b);
	r[0] = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 1, 1, 0 }, { 3, 1, 0 }));
	r[1] = bench_read(b, 10, 1);
	r[2] = bench_read(b, 20, 1);
	for (unsigned i = 0; i < 4; i++) {
		bench_run(b);
		spy_finish(&b->spy, 0);
	}
	bench_run(b);
	assert_io(b, 1, VQB_BLK_DISCARD, 3, 1, 0);
	assert_int_equal(b->spy.log[2].offset, 10 * 512);
	assert_int_equal(b->spy.log[3].offset, 20 * 512);
	bench_assert_reply(b, r[0], VQB_BLK_S_OK, 1);
	bench_assert_reply(b, r[1], VQB_BLK_S_OK, 513);
	bench_assert_reply(b, r[2], VQB_BLK_S_OK, 513);
}

static void test_a_budget_of_one_serves_ranges_too(void **state)
{
	struct bench *b = plan(state);
	unsigned r[6];

	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3;
	bench_start(b);
	for (unsigned i = 0; i < 6; i++)
		r[i] = bench_ranges(b, three[i % 3], many, 32);
	for (unsigned i = 0; i < 500 && vqb_blk_queue_run(b->queue, 1) & VQB_MORE; i++)
		continue;
	for (unsigned i = 0; i < 6; i++)
		bench_assert_reply(b, r[i], VQB_BLK_S_OK, 1);
}

/* One range is in the backend, the next would follow. */
/* Shows: K37 */
static void test_ranges_that_a_reset_ended_are_not_gone_on_with(void **state)
{
	struct bench *b = plan(state);
	unsigned r[2];

	b->spy.manual = 1;
	b->spy.room = 1;
	bench_start(b);
	r[0] = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 1, 1, 0 }, { 3, 1, 0 }));
	r[1] = bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 5, 1, 0 }));
	bench_run(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_E_BUSY);
	spy_finish(&b->spy, 0);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(b->spy.calls, 1);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	bench_assert_blank(b, r[0]);
	bench_assert_blank(b, r[1]);
}

/* The second range is ready, and there is no room for it, when the reset comes. */
/* Shows: K37 */
static void test_a_range_that_is_ready_is_dropped_by_a_reset(void **state)
{
	struct bench *b = plan(state);

	b->spy.manual = 1;
	bench_start(b);
	bench_read(b, 9, 1);
	bench_ranges(b, VQB_BLK_DISCARD, RANGES({ 1, 1, 0 }, { 3, 1, 0 }));
	bench_run(b);
	spy_finish(&b->spy, 1);
	b->spy.fulls = 1;
	bench_run(b);
	assert_int_equal(b->spy.calls, 2);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	spy_finish(&b->spy, 0);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(b->spy.calls, 2);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_each_type_does_its_own_to_its_range),
		bench_test(test_unmap_is_handed_on_where_the_backend_can),
		bench_test(test_ranges_are_done_one_after_the_other),
		bench_test(test_one_call_goes_through_all_ranges),
		bench_test(test_a_range_beyond_what_the_backend_takes_at_once_is_cut),
		bench_test(test_a_range_that_is_cut_short_is_continued),
		bench_test(test_ranges_of_no_sectors_are_fine_and_nothing),
		bench_test(test_ranges_may_be_cut_anywhere),
		bench_test(test_flags_that_are_not_known_are_unsupported),
		bench_test(test_an_unknown_flag_counts_first),
		bench_test(test_as_many_ranges_as_offered_and_not_one_more),
		bench_test(test_data_of_no_whole_number_of_ranges_is_an_error),
		bench_test(test_one_bad_range_and_none_is_done),
		bench_test(test_write_zeroes_whose_end_wraps_is_an_error),
		bench_test(test_a_range_of_more_than_4_gib_does_not_pass_as_a_short_one),
		bench_test(test_the_longest_range_on_offer_is_done),
		bench_test(test_ranges_are_whole_blocks_at_a_block_in_units_of_512),
		bench_test(test_two_blocks_of_4096_are_16_sectors_and_64_are_8_blocks),
		bench_test(test_writable_data_is_refused),
		bench_test(test_nothing_is_changed_on_a_read_only_disk),
		bench_test(test_what_was_not_negotiated_is_unsupported),
		bench_test(test_a_failure_in_the_middle_ends_the_request),
		bench_test(test_unsupported_by_the_backend_is_said_of_the_first_range_only),
		bench_test(test_a_failed_request_leaves_no_trace),
		bench_test(test_ranges_that_change_after_the_check_are_not_looked_at),
		bench_test(test_a_small_arena_serves_long_and_short_in_order),
		bench_test(test_what_was_taken_behind_ranges_is_served_as_it_is),
		bench_test(test_ranges_find_their_room_before_a_bad_chain),
		bench_test(test_ranges_without_room_wait_in_the_ring),
		bench_test(test_ranges_that_never_fit_are_an_error),
		bench_test(test_init_wants_room_for_the_ranges_on_offer),
		bench_test(test_init_wants_a_backend_that_does_what_is_offered),
		bench_test(test_the_next_range_goes_before_those_that_wait),
		bench_test(test_a_budget_of_one_serves_ranges_too),
		bench_test(test_ranges_that_a_reset_ended_are_not_gone_on_with),
		bench_test(test_a_range_that_is_ready_is_dropped_by_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
