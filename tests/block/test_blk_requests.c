/* SPDX-License-Identifier: BSD-3-Clause */
/* What each request gets: its effect on the disk, its status byte, its exact used length. */
#include "blk_bench.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)

/* The disk from `sector` on is what OUT requests carry. */
static int disk_is_written(const struct bench *b, uint64_t sector, uint32_t sectors)
{
	return bench_is(b->disk + sector * 512, PATTERN, 512 * (size_t)sectors);
}

static void assert_one_io(const struct bench *b, uint8_t op, uint64_t offset, uint64_t bytes)
{
	assert_int_equal(b->spy.calls, 1);
	assert_int_equal(b->spy.log[0].op, op);
	assert_int_equal(b->spy.log[0].offset, offset);
	assert_int_equal(b->spy.log[0].bytes, bytes);
}

/* A read got what the disk holds, and OK. */
static void assert_read(struct bench *b, unsigned r, uint64_t sector)
{
	static uint8_t got[0x20000];
	uint32_t bytes = b->asked[r].in_bytes - 1;

	assert_true(bytes < sizeof(got));
	bench_assert_reply(b, r, VQB_BLK_S_OK, bytes + 1);
	bench_written(b, r, got);
	assert_memory_equal(got, b->disk + sector * 512, bytes);
}

/* ---- layout ---- */

/* Shows: K22 SR-DEV-01 SR-DEV-03 BLK-ANY-06 */
static void test_a_write_in_odd_cuts_is_one_write(void **state)
{
	for (unsigned which = 0; which < 3; which++) {
		struct bench *b = bench_open(state);
		unsigned r = which == 0   ? bench_ask(b, VQB_BLK_OUT, 16, CUT(8, 4, 4, 512), CUT(1))
			     : which == 1 ? bench_ask(b, VQB_BLK_OUT, 16, CUT(528), CUT(1))
					  : bench_ask(b, VQB_BLK_OUT, 16, CUT(8, 520), CUT(1));

		bench_run(b);
		assert_one_io(b, VQB_BLK_OUT, 8192, 512);
		assert_true(disk_is_written(b, 16, 1));
		assert_true(bench_disk_is_new(b, 0, 16));
		assert_true(bench_disk_is_new(b, 17, SECTORS - 17));
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
	}
}

/* Shows: K22 BLK-DEV-05 BLK-DEV-31 */
static void test_a_read_with_its_status_in_the_data_buffer(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_ask(b, VQB_BLK_IN, 16, CUT(16), CUT(513));

	bench_run(b);
	assert_one_io(b, VQB_BLK_IN, 8192, 512);
	assert_read(b, r, 16);
	assert_int_equal(b->spy.log[0].pieces, 1);

	/* A buffer for the status alone is no piece of data. */
	b = bench_open(state);
	r = bench_ask(b, VQB_BLK_IN, 16, CUT(16), CUT(512, 1));
	bench_run(b);
	assert_read(b, r, 16);
	assert_int_equal(b->spy.log[0].pieces, 1);
}

/* Shows: K22 SR-DEV-01 */
static void test_a_read_cut_at_every_byte_is_the_same(void **state)
{
	for (uint32_t first = 0; first <= 513; first++) {
		struct bench *b = bench_open(state);
		unsigned r = bench_ask(b, VQB_BLK_IN, 3, CUT(first % 17, 16 - first % 17),
				       CUT(first, 513 - first));

		bench_run(b);
		assert_one_io(b, VQB_BLK_IN, 1536, 512);
		assert_read(b, r, 3);
	}
}

/* Shows: K22 SR-DEV-01 */
static void test_a_write_cut_at_every_byte_is_the_same(void **state)
{
	for (uint32_t first = 0; first <= 528; first++) {
		struct bench *b = bench_open(state);
		unsigned r = bench_ask(b, VQB_BLK_OUT, 3, CUT(first, 528 - first), CUT(0, 1, 0));

		bench_run(b);
		assert_one_io(b, VQB_BLK_OUT, 1536, 512);
		assert_true(disk_is_written(b, 3, 1));
		assert_int_equal(bench_length(b, r), 1);
		assert_int_equal(b->asked[r].at[3][0], VQB_BLK_S_OK);
		bench_assert_gaps(b);
	}
}

/* Shows: K22 BLK-DEV-29 */
static void test_a_short_header_comes_back_with_length_0(void **state)
{
	struct bench *b = bench_open(state);
	struct vqb_blk_queue_counters counters;
	unsigned bad[4], good;

	bad[0] = bench_ask(b, VQB_BLK_IN, 0, CUT(15), CUT(1));
	bad[1] = bench_ask(b, VQB_BLK_OUT, 0, CUT(8, 7), CUT(513));
	bad[2] = bench_ask(b, VQB_BLK_OUT, 0, CUT(16, 512), NONE);
	bad[3] = bench_ask(b, VQB_BLK_IN, 0, NONE, CUT(513));
	good = bench_read(b, 5, 1);
	bench_run(b);
	assert_one_io(b, VQB_BLK_IN, 5 * 512, 512);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(bench_length(b, bad[i]), 0);
		bench_assert_blank(b, bad[i]);
	}
	assert_read(b, good, 5);
	vqb_blk_queue_read_counters(b->queue, &counters);
	assert_int_equal(counters.requests, 5);
	assert_int_equal(counters.malformed, 4);
}

/* A chain that breaks the ring's rules, and one that names memory which is not there. */
/* Shows: K07 BLK-DEV-29 */
static void test_bad_chains_and_faults_come_back_with_length_0(void **state)
{
	struct bench *b = bench_open(state);
	unsigned loop, lost, good;

	loop = bench_build(b, VQB_BLK_OUT, 0, CUT(16, 512), CUT(1));
	bench_offer(b, loop);
	raw_desc(b->ring.desc, 2, RAM, 1, RAW_WRITE | RAW_NEXT, 0);
	lost = bench_ask(b, VQB_BLK_IN, 0, CUT(16), CUT(512, 1));
	raw_desc(b->ring.desc, 4, RAM + RAM_BYTES - 511, 512, RAW_WRITE | RAW_NEXT, 5);
	good = bench_read(b, 5, 1);
	bench_run(b);
	assert_int_equal(bench_length(b, loop), 0);
	assert_int_equal(bench_length(b, lost), 0);
	bench_assert_blank(b, loop);
	bench_assert_blank(b, lost);
	assert_one_io(b, VQB_BLK_IN, 5 * 512, 512);
	assert_read(b, good, 5);
}

/* ---- range ---- */

static void assert_refused(void **state, uint32_t type, uint64_t sector, const uint32_t *out,
			   size_t outs, const uint32_t *in, size_t ins)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_ask(b, type, sector, out, outs, in, ins);

	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, b->asked[r].in_bytes > 1 ? 0 : 1);
	assert_true(bench_disk_is_new(b, 0, SECTORS));
}

/* Shows: K23 BLK-DEV-26 SR-DEV-16 */
static void test_requests_past_capacity_never_reach_the_backend(void **state)
{
	assert_refused(state, VQB_BLK_IN, UINT64_C(1) << 55, CUT(16), CUT(512, 1));
	assert_refused(state, VQB_BLK_OUT, 1023, CUT(16, 512, 512, 512, 512), CUT(1));
	assert_refused(state, VQB_BLK_IN, 1024, CUT(16), CUT(512, 1));
	assert_refused(state, VQB_BLK_IN, 1023, CUT(16), CUT(1024, 1));
	assert_refused(state, VQB_BLK_IN, UINT64_MAX, CUT(16), CUT(512, 1));
	assert_refused(state, VQB_BLK_OUT, UINT64_MAX, CUT(16, 512), CUT(1));
	assert_refused(state, VQB_BLK_OUT, UINT64_MAX, CUT(16, 1024), CUT(1));
	assert_refused(state, VQB_BLK_OUT, UINT64_MAX, CUT(16), CUT(1));
	assert_refused(state, VQB_BLK_IN, 1025, CUT(16), CUT(1));
}

/* Shows: K23 */
static void test_the_last_sector_can_be_written(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_write(b, 1023, 1);

	bench_run(b);
	assert_one_io(b, VQB_BLK_OUT, 1023 * 512, 512);
	assert_true(disk_is_written(b, 1023, 1));
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
}

/* Shows: K24 BLK-DEV-26 */
static void test_only_the_sum_of_the_pieces_counts(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_ask(b, VQB_BLK_OUT, 0, CUT(16, 300, 212), CUT(1));

	bench_run(b);
	assert_one_io(b, VQB_BLK_OUT, 0, 512);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 1);

	assert_refused(state, VQB_BLK_OUT, 0, CUT(16, 512, 100), CUT(1));
	assert_refused(state, VQB_BLK_OUT, 0, CUT(16, 1), CUT(1));
	assert_refused(state, VQB_BLK_IN, 0, CUT(16), CUT(511, 1));
	assert_refused(state, VQB_BLK_IN, 0, CUT(16), CUT(513, 1));
}

/* Shows: K24 */
static void test_a_sum_over_32_bits_does_not_pass_as_a_short_one(void **state)
{
	const uint64_t big = UINT64_C(0x100000000);
	struct bench *b = bench_plan(state);
	unsigned r;

	/* Memory of 2 GiB that nobody may touch: it isn't there. */
	b->region[1] = (struct vqb_extent){ big, 0x80000000, (void *)(uintptr_t)0x10000,
					    VQB_READ | VQB_WRITE, 0 };
	b->memory.count = 2;
	/* Neither capacity nor the backend is in the way: what is refused is the chain. */
	b->limits.capacity = UINT64_C(1) << 40;
	b->spy.base.caps.bytes = UINT64_C(1) << 49;
	bench_start(b);
	r = bench_ask(b, VQB_BLK_IN, 0, CUT(16), CUT(1, 1, 1, 1));
	raw_desc(b->ring.desc, 1, big, 0x80000000, RAW_WRITE | RAW_NEXT, 2);
	raw_desc(b->ring.desc, 2, big, 0x80000000, RAW_WRITE | RAW_NEXT, 3);
	raw_desc(b->ring.desc, 3, big, 0x200, RAW_WRITE | RAW_NEXT, 4);
	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	assert_int_equal(bench_length(b, r), 0);
	bench_assert_blank(b, r);
}

/* Shows: K26 BLK-ANY-02 */
static void test_sectors_are_of_512_bytes_whatever_the_block_is(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned r;

	b->limits.block_size = 4096;
	b->config.features |= BIT(BLK_SIZE);
	bench_start(b);
	r = bench_ask(b, VQB_BLK_IN, 8, CUT(16), CUT(4096, 1));
	bench_run(b);
	assert_one_io(b, VQB_BLK_IN, 4096, 4096);
	assert_read(b, r, 8);
}

/* Shows: BLK-DEV-26 */
static void test_part_of_a_block_is_refused(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned short_read, misplaced;

	b->limits.block_size = 4096;
	bench_start(b);
	short_read = bench_ask(b, VQB_BLK_IN, 8, CUT(16), CUT(512, 1));
	misplaced = bench_ask(b, VQB_BLK_OUT, 9, CUT(16, 4096), CUT(1));
	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, short_read, VQB_BLK_S_IOERR, 0);
	bench_assert_reply(b, misplaced, VQB_BLK_S_IOERR, 1);
}

/* Shows: BLK-DEV-30 BLK-DEV-31 */
static void test_no_data_within_capacity_is_ok_without_a_backend_call(void **state)
{
	struct bench *b = bench_open(state);
	unsigned read = bench_ask(b, VQB_BLK_IN, 0, CUT(16), CUT(1));
	unsigned write = bench_ask(b, VQB_BLK_OUT, 1024, CUT(16), CUT(1));

	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, read, VQB_BLK_S_OK, 1);
	bench_assert_reply(b, write, VQB_BLK_S_OK, 1);
}

/* Data of the other direction belongs to no read or write. */
static void test_data_of_the_other_direction_is_refused(void **state)
{
	assert_refused(state, VQB_BLK_IN, 0, CUT(16, 512), CUT(512, 1));
	assert_refused(state, VQB_BLK_IN, 0, CUT(17), CUT(512, 1));
	assert_refused(state, VQB_BLK_OUT, 0, CUT(16, 512), CUT(512, 1));
	assert_refused(state, VQB_BLK_OUT, 0, CUT(16, 512), CUT(2));
}

/* ---- read-only ---- */

/* Shows: BLK-DEV-08 BLK-DEV-09 */
static void test_a_write_to_a_read_only_disk_is_an_error(void **state)
{
	const uint64_t accepted[] = { VQB_FEATURE(VQB_F_VERSION_1),
				      VQB_FEATURE(VQB_F_VERSION_1) | BIT(RO) };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_plan(state);
		unsigned write, empty, read;

		b->disk_config.features |= BIT(RO);
		b->config.features = accepted[i];
		b->spy.base.caps.can &= ~(uint32_t)VQB_CAN_WRITE;
		bench_start(b);
		write = bench_write(b, 0, 1);
		empty = bench_ask(b, VQB_BLK_OUT, 0, CUT(16), CUT(1));
		read = bench_read(b, 7, 1);
		bench_run(b);
		assert_one_io(b, VQB_BLK_IN, 7 * 512, 512);
		bench_assert_reply(b, write, VQB_BLK_S_IOERR, 1);
		bench_assert_reply(b, empty, VQB_BLK_S_IOERR, 1);
		assert_read(b, read, 7);
		assert_true(bench_disk_is_new(b, 0, SECTORS));
	}
}

/* ---- the other types ---- */

/* `want` has 20 bytes. */
static void assert_id(void **state, const char *serial, const char *want)
{
	struct bench *b = bench_plan(state);
	uint8_t got[21];
	unsigned r;

	b->disk_config.serial = serial;
	bench_start(b);
	/* The types that have no use for it ignore the sector. */
	r = bench_ask(b, VQB_BLK_GET_ID, UINT64_MAX, CUT(16), CUT(1, 0, 12, 8));
	bench_run(b);
	bench_written(b, r, got);
	assert_memory_equal(got, want, 20);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 21);
	assert_int_equal(b->spy.calls, 0);
}

/* Shows: BLK-ANY-08 BLK-DEV-31 */
static void test_get_id_gives_20_bytes_filled_with_zeroes(void **state)
{
	assert_id(state, "", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	assert_id(state, "12345", "12345\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	assert_id(state, "1234567890123456789", "1234567890123456789");
	assert_id(state, "12345678901234567890", "12345678901234567890");
	assert_id(state, "1234567890123456789012345", "12345678901234567890");
}

/* Shows: BLK-DEV-30 */
static void test_get_id_with_any_other_size_is_an_error(void **state)
{
	assert_refused(state, VQB_BLK_GET_ID, 0, CUT(16), CUT(8, 1));
	assert_refused(state, VQB_BLK_GET_ID, 0, CUT(16), CUT(64, 1));
	assert_refused(state, VQB_BLK_GET_ID, 0, CUT(16), CUT(1));
	assert_refused(state, VQB_BLK_GET_ID, 0, CUT(17), CUT(20, 1));
}

static struct bench *plan_worn(void **state)
{
	struct bench *b = bench_plan(state);

	spy_can_all(&b->spy, 512);
	b->disk_config.features |= BIT(LIFETIME);
	b->config.features |= BIT(LIFETIME);
	b->spy.life = (struct vqb_lifetime){ 2, 0x0b, 1 };
	return b;
}

/* Shows: BLK-ANY-09 BLK-DEV-23 BLK-DEV-31 */
static void test_get_lifetime_gives_what_the_backend_says(void **state)
{
	struct bench *b = plan_worn(state);
	uint8_t got[7];
	unsigned r;

	bench_start(b);
	r = bench_ask(b, VQB_BLK_GET_LIFETIME, UINT64_MAX, CUT(16), CUT(1, 0, 3, 2, 1));
	bench_run(b);
	bench_written(b, r, got);
	assert_memory_equal(got, "\2\0\13\0\1\0", 6);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 7);
	assert_int_equal(b->spy.calls, 0);
}

/* Shows: BLK-DEV-25 */
static void test_lifetime_values_without_a_meaning_are_not_sent(void **state)
{
	const uint16_t say[] = { 3, 4, 11, 12, 0x100, 0xffff };
	const uint8_t pre_eol[] = { 3, 0, 0, 0, 0, 0 }, life[] = { 3, 4, 11, 0, 0, 0 };

	for (unsigned i = 0; i < 6; i++) {
		struct bench *b = plan_worn(state);
		unsigned r;

		b->spy.life = (struct vqb_lifetime){ say[i], say[i], say[i] };
		bench_start(b);
		r = bench_ask(b, VQB_BLK_GET_LIFETIME, 0, CUT(16), CUT(6, 1));
		bench_run(b);
		bench_assert_reply(b, r, VQB_BLK_S_OK, 7);
		assert_int_equal(peek(b->asked[r].at[1], 2), pre_eol[i]);
		assert_int_equal(peek(b->asked[r].at[1] + 2, 2), life[i]);
		assert_int_equal(peek(b->asked[r].at[1] + 4, 2), life[i]);
	}
}

static void assert_no_lifetime(struct bench *b, uint8_t status, const uint32_t *out, size_t outs,
			       const uint32_t *in, size_t ins)
{
	unsigned r;

	bench_start(b);
	r = bench_ask(b, VQB_BLK_GET_LIFETIME, 0, out, outs, in, ins);
	bench_run(b);
	bench_assert_reply(b, r, status, b->asked[r].in_bytes > 1 ? 0 : 1);
}

/* Shows: BLK-DEV-28 BLK-DEV-24 */
static void test_get_lifetime_is_refused(void **state)
{
	struct bench *b = plan_worn(state);

	b->config.features &= ~BIT(LIFETIME);
	assert_no_lifetime(b, VQB_BLK_S_UNSUPP, CUT(16), CUT(6, 1));
	b = plan_worn(state);
	b->spy.life_status = VQB_E_UNSUPP;
	assert_no_lifetime(b, VQB_BLK_S_UNSUPP, CUT(16), CUT(6, 1));
	b = plan_worn(state);
	b->spy.life_status = VQB_E_IO;
	assert_no_lifetime(b, VQB_BLK_S_IOERR, CUT(16), CUT(6, 1));
	assert_no_lifetime(plan_worn(state), VQB_BLK_S_IOERR, CUT(16), CUT(5, 1));
	assert_no_lifetime(plan_worn(state), VQB_BLK_S_IOERR, CUT(16), CUT(7, 1));
	assert_no_lifetime(plan_worn(state), VQB_BLK_S_IOERR, CUT(16), CUT(1));
	assert_no_lifetime(plan_worn(state), VQB_BLK_S_IOERR, CUT(17), CUT(6, 1));
}

/* Shows: BLK-DEV-05 BLK-DEV-28 BLK-DEV-24 K23 */
static void test_all_other_types_are_unsupported(void **state)
{
	const uint32_t types[] = { 2,  3,  5,  6,  7,          9,          10,        11,
				   12, 13, 14, 15, 16,         17,         18,        20,
				   22, 24, 26, 99, 0x80000000, 0x80000001, UINT32_MAX };
	unsigned plain, with_data, segments;

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct bench *b = bench_open(state);

		plain = bench_ask(b, types[i], 0, CUT(16), CUT(1));
		with_data = bench_ask(b, types[i], 0, CUT(16), CUT(512, 1));
		segments = bench_ask(b, types[i], UINT64_MAX - 100, CUT(16, 16), CUT(1));
		bench_run(b);
		assert_int_equal(b->spy.calls, 0);
		bench_assert_reply(b, plain, VQB_BLK_S_UNSUPP, 1);
		bench_assert_reply(b, with_data, VQB_BLK_S_UNSUPP, 0);
		bench_assert_reply(b, segments, VQB_BLK_S_UNSUPP, 1);
		assert_true(bench_disk_is_new(b, 0, SECTORS));
	}
}

/* Shows: BLK-DEV-28 BLK-DEV-31 */
static void test_flush_is_served_with_and_without_its_feature(void **state)
{
	const uint64_t accepted[] = { VQB_FEATURE(VQB_F_VERSION_1),
				      VQB_FEATURE(VQB_F_VERSION_1) | BIT(FLUSH) };

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_plan(state);
		unsigned plain, odd;

		b->config.features = accepted[i];
		bench_start(b);
		plain = bench_flush(b);
		odd = bench_ask(b, VQB_BLK_FLUSH, UINT64_MAX, CUT(16, 100), CUT(100, 1));
		bench_run(b);
		assert_int_equal(b->spy.calls, 2);
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(b->spy.log[k].op, VQB_BLK_FLUSH);
			assert_int_equal(b->spy.log[k].pieces, 0);
			assert_int_equal(b->spy.log[k].bytes, 0);
		}
		bench_assert_reply(b, plain, VQB_BLK_S_OK, 1);
		bench_assert_reply(b, odd, VQB_BLK_S_OK, 0);
	}
}

/* Shows: BLK-DEV-28 */
static void test_flush_is_unsupported_where_the_backend_cannot(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned r;

	b->disk_config.features = 0;
	b->config.features = 0;
	b->spy.base.caps.can &= ~(uint32_t)VQB_CAN_FLUSH;
	bench_start(b);
	r = bench_flush(b);
	bench_run(b);
	assert_int_equal(b->spy.calls, 0);
	bench_assert_reply(b, r, VQB_BLK_S_UNSUPP, 1);
}

/* ---- durability ---- */

static uint8_t flags_of_a_write(void **state, uint64_t offered, uint64_t accepted)
{
	struct bench *b = bench_plan(state);

	b->disk_config.features = offered;
	b->config.features = 0;
	bench_start(b);
	assert_int_equal(vqb_blk_queue_accept(b->queue, accepted | VQB_FEATURE(VQB_F_VERSION_1)),
			 VQB_OK);
	bench_write(b, 0, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	return b->spy.log[0].flags;
}

/* Shows: BLK-DEV-18 BLK-DEV-22 */
static void test_writes_are_durable_where_flush_was_offered_and_left(void **state)
{
	struct bench *b;

	assert_int_equal(flags_of_a_write(state, BIT(FLUSH), 0), VQB_IO_FUA);
	assert_int_equal(flags_of_a_write(state, BIT(FLUSH), BIT(FLUSH)), 0);
	assert_int_equal(flags_of_a_write(state, 0, 0), 0);

	/* Neither reads nor flushes ask for it, and the driver must have accepted what it may. */
	b = bench_plan(state);
	b->config.features = 0;
	bench_start(b);
	bench_read(b, 0, 1);
	bench_flush(b);
	bench_run(b);
	assert_int_equal(b->spy.log[0].flags | b->spy.log[1].flags, 0);
	assert_int_equal(vqb_blk_queue_accept(b->queue, 0), VQB_E_INVALID);
	assert_int_equal(
		vqb_blk_queue_accept(b->queue, VQB_FEATURE(VQB_F_VERSION_1) | BIT(DISCARD)),
		VQB_E_INVALID);
}

/* ---- failures of the backend ---- */

/* Shows: BLK-DEV-05 SR-DEV-16 BLK-DEV-20 */
static void test_failures_of_the_backend_become_status_bytes(void **state)
{
	const struct {
		int32_t result;
		uint8_t status;
	} c[] = {
		{ VQB_E_IO, VQB_BLK_S_IOERR },
		{ VQB_E_UNSUPP, VQB_BLK_S_UNSUPP },
		{ VQB_E_INVALID, VQB_BLK_S_IOERR },
		{ -1000, VQB_BLK_S_IOERR },
	};

	for (unsigned i = 0; i < 2 * sizeof(c) / sizeof(c[0]); i++) {
		struct bench *b = bench_open(state);
		struct vqb_blk_queue_counters counters;
		unsigned read, write, flush;

		/* By a result, and by a refusal to take it at all. */
		*(i % 2 ? &b->spy.fail : &b->spy.refuse) = c[i / 2].result;
		read = bench_read(b, 0, 1);
		write = bench_write(b, 0, 1);
		flush = bench_flush(b);
		bench_run(b);
		bench_assert_reply(b, read, c[i / 2].status, 0);
		bench_assert_reply(b, write, c[i / 2].status, 1);
		bench_assert_reply(b, flush, c[i / 2].status, 1);
		vqb_blk_queue_read_counters(b->queue, &counters);
		assert_int_equal(counters.failed, 3);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	}
}

/* What the backend takes in one io is a limit of the device. */
static void test_requests_beyond_the_backends_limits_are_refused(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned long_one, many, fits;

	b->spy.base.caps.max_transfer = 4096;
	b->spy.base.caps.max_pieces = 2;
	bench_start(b);
	long_one = bench_read(b, 0, 9);
	many = bench_ask(b, VQB_BLK_OUT, 0, CUT(16, 512, 512, 512), CUT(1));
	fits = bench_ask(b, VQB_BLK_OUT, 0, CUT(16, 512, 3584), CUT(1));
	bench_run(b);
	assert_one_io(b, VQB_BLK_OUT, 0, 4096);
	bench_assert_reply(b, long_one, VQB_BLK_S_IOERR, 0);
	bench_assert_reply(b, many, VQB_BLK_S_IOERR, 1);
	bench_assert_reply(b, fits, VQB_BLK_S_OK, 1);
}

/* ---- transfers that the backend cuts short ---- */

/* Shows: BLK-DEV-31 */
static void test_a_short_transfer_is_continued_to_its_end(void **state)
{
	for (uint64_t part = 512; part <= 4096; part += 256) {
		struct bench *b = bench_open(state);
		unsigned read, write;

		b->spy.part = part;
		read = bench_ask(b, VQB_BLK_IN, 8, CUT(16), CUT(100, 412, 512, 1000, 3096, 1));
		write = bench_ask(b, VQB_BLK_OUT, 100, CUT(16 + 700, 1, 4419), CUT(1));
		bench_run(b);
		assert_read(b, read, 8);
		bench_assert_reply(b, write, VQB_BLK_S_OK, 1);
		assert_true(disk_is_written(b, 100, 10));
		assert_true(bench_disk_is_new(b, 0, 100));
		assert_true(bench_disk_is_new(b, 110, SECTORS - 110));
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
	}
}

/* Shows: SR-DEV-16 SR-DEV-17 */
static void test_a_read_that_stops_short_reports_what_it_filled(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r;

	/* Less than the backend's own unit at a time gets nowhere. */
	b->spy.base.caps.alignment = 512;
	b->spy.part = 511;
	r = bench_read(b, 8, 8);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, 511);

	/* Three blocks, then an error. */
	b = bench_open(state);
	b->spy.part = 1536;
	b->spy.manual = 1;
	r = bench_read(b, 8, 8);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_run(b);
	b->spy.fail = VQB_E_IO;
	spy_finish(&b->spy, 0);
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, 1536);
	assert_memory_equal(b->asked[r].at[1], b->disk + 8 * 512, 1536);
	assert_true(bench_is(b->asked[r].at[1] + 1536, BLANK, 8 * 512 - 1536));

	/* The next one in its place starts from nothing. */
	b->spy.manual = 0;
	r = bench_read(b, 8, 8);
	bench_run(b);
	bench_assert_reply(b, r, VQB_BLK_S_IOERR, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_a_write_in_odd_cuts_is_one_write),
		bench_test(test_a_read_with_its_status_in_the_data_buffer),
		bench_test(test_a_read_cut_at_every_byte_is_the_same),
		bench_test(test_a_write_cut_at_every_byte_is_the_same),
		bench_test(test_a_short_header_comes_back_with_length_0),
		bench_test(test_bad_chains_and_faults_come_back_with_length_0),
		bench_test(test_requests_past_capacity_never_reach_the_backend),
		bench_test(test_the_last_sector_can_be_written),
		bench_test(test_only_the_sum_of_the_pieces_counts),
		bench_test(test_a_sum_over_32_bits_does_not_pass_as_a_short_one),
		bench_test(test_sectors_are_of_512_bytes_whatever_the_block_is),
		bench_test(test_part_of_a_block_is_refused),
		bench_test(test_no_data_within_capacity_is_ok_without_a_backend_call),
		bench_test(test_data_of_the_other_direction_is_refused),
		bench_test(test_a_write_to_a_read_only_disk_is_an_error),
		bench_test(test_get_id_gives_20_bytes_filled_with_zeroes),
		bench_test(test_get_id_with_any_other_size_is_an_error),
		bench_test(test_get_lifetime_gives_what_the_backend_says),
		bench_test(test_lifetime_values_without_a_meaning_are_not_sent),
		bench_test(test_get_lifetime_is_refused),
		bench_test(test_all_other_types_are_unsupported),
		bench_test(test_flush_is_served_with_and_without_its_feature),
		bench_test(test_flush_is_unsupported_where_the_backend_cannot),
		bench_test(test_writes_are_durable_where_flush_was_offered_and_left),
		bench_test(test_failures_of_the_backend_become_status_bytes),
		bench_test(test_requests_beyond_the_backends_limits_are_refused),
		bench_test(test_a_short_transfer_is_continued_to_its_end),
		bench_test(test_a_read_that_stops_short_reports_what_it_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
