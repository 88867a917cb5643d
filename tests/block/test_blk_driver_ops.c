/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each type of request as the device finds it: header, data or ranges, status; which features and
 * which device it takes; and what the header says of priority.
 */
#include "blk_driver_bench.h"

static struct guest *open_all(void **state)
{
	struct guest *g = guest_plan(state, 64);

	guest_allow_ranges(g, RANGES, 100);
	g->config.features |= BIT(LIFETIME);
	assert_int_equal(guest_init(g), VQB_OK);
	return g;
}

static struct vqb_bio *range_bio(struct guest *g, unsigned i, uint8_t op, uint64_t sector,
				 uint64_t sectors)
{
	struct vqb_bio *bio = guest_bio(g, i, op, sector, 0, 0);

	bio->sectors = sectors;
	return bio;
}

static struct seen send_one(struct guest *g, struct vqb_bio *bio)
{
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_OK);
	vqb_blk_publish(g->drv);
	return guest_see(g);
}

static void expect_header(const struct seen *s, uint32_t type, uint32_t ioprio, uint64_t sector)
{
	assert_int_equal(peek(s->header, 4), type);
	assert_int_equal(peek(s->header + 4, 4), ioprio);
	assert_int_equal(peek(s->header + 8, 8), sector);
}

/* The ranges of a request, where the device sees them; how many, and each as 16 bytes. */
static const uint8_t *ranges_of(const struct guest *g, const struct seen *s, unsigned n)
{
	const struct raw_ring *raw = &g->ring.raw;
	uint64_t at = raw_desc_addr(raw->desc, s->at[1]) - AREA_AT;

	assert_int_equal(s->parts, 3);
	assert_int_equal(raw_desc_flags(raw->desc, s->at[1]), RAW_NEXT);
	assert_int_equal(raw_desc_len(raw->desc, s->at[1]), 16 * n);
	assert_true(at >= RANGES_AT && at + 16 * n <= 16 * DEPTH * (1 + RANGES));
	return g->area + at;
}

static void expect_range(const uint8_t *range, uint64_t sector, uint32_t sectors, uint32_t flags)
{
	assert_int_equal(peek(range, 8), sector);
	assert_int_equal(peek(range + 8, 4), sectors);
	assert_int_equal(peek(range + 12, 4), flags);
}

/* Shows: BLK-DRV-06 BLK-DRV-14 BLK-DRV-21 BLK-ANY-07 */
static void test_a_discard_is_header_ranges_status(void **state)
{
	struct guest *g = open_all(state);
	struct seen s = send_one(g, range_bio(g, 0, VQB_BLK_DISCARD, 77, 8));

	expect_header(&s, VQB_BLK_DISCARD, 0, 0);
	expect_range(ranges_of(g, &s, 1), 77, 8, 0);
	/* A long one: as many ranges as it takes, one behind the other. */
	s = send_one(g, range_bio(g, 1, VQB_BLK_DISCARD, 10, 250));
	expect_header(&s, VQB_BLK_DISCARD, 0, 0);
	expect_range(ranges_of(g, &s, 3), 10, 100, 0);
	expect_range(ranges_of(g, &s, 3) + 16, 110, 100, 0);
	expect_range(ranges_of(g, &s, 3) + 32, 210, 50, 0);
}

/* Shows: BLK-DRV-14 BLK-ANY-04 */
static void test_zeroes_say_whether_to_unmap_in_each_range(void **state)
{
	struct guest *g = open_all(state);
	struct vqb_bio *bio = range_bio(g, 0, VQB_BLK_WRITE_ZEROES, 10, 150);
	struct seen s = send_one(g, bio);

	expect_header(&s, VQB_BLK_WRITE_ZEROES, 0, 0);
	expect_range(ranges_of(g, &s, 2), 10, 100, 0);
	expect_range(ranges_of(g, &s, 2) + 16, 110, 50, 0);
	guest_finish(g, &s, VQB_BLK_S_OK);
	assert_ptr_equal(guest_reap_one(g), bio);
	bio->flags = VQB_BIO_UNMAP;
	s = send_one(g, bio);
	expect_range(ranges_of(g, &s, 2), 10, 100, 1);
	expect_range(ranges_of(g, &s, 2) + 16, 110, 50, 1);
}

/* Shows: BLK-DRV-14 */
static void test_a_secure_erase_is_the_same(void **state)
{
	struct guest *g = open_all(state);
	struct seen s = send_one(g, range_bio(g, 0, VQB_BLK_SECURE_ERASE, 1, 1023));

	expect_header(&s, VQB_BLK_SECURE_ERASE, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		expect_range(ranges_of(g, &s, 4) + 16 * i, 1 + 100 * i, 100, 0);
}

/* Those of a request are one segment, which is no longer than a segment may be, as all others. */
static void test_ranges_are_a_segment_within_limits(void **state)
{
	static const struct {
		uint32_t bytes;
		uint64_t boundary;
	} row[] = { { 32, UINT64_MAX }, { UINT32_MAX, 31 }, { 47, 63 } };

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct guest *g = guest_plan(state, 64);
		const struct raw_ring *raw = &g->ring.raw;
		struct seen part;
		uint64_t at;

		vqb_limits_init(&g->mapping);
		g->mapping.max_segments = 32;
		g->limits.segments = 32;
		g->mapping.max_segment_bytes = row[i].bytes;
		g->mapping.seg_boundary = row[i].boundary;
		g->mapping.discard = (struct vqb_range_limits){ 8, RANGES, 0, 0 };
		g->config.mapping = &g->mapping;
		assert_int_equal(guest_init(g), VQB_OK);
		for (unsigned k = 0; k < 2; k++) {
			struct seen s = send_one(g, range_bio(g, k, VQB_BLK_DISCARD, 0, 16));

			at = raw_desc_addr(raw->desc, s.at[1]);
			assert_int_equal(s.parts, 3);
			assert_int_equal(raw_desc_len(raw->desc, s.at[1]), 32);
			assert_int_equal(at & ~row[i].boundary, (at + 31) & ~row[i].boundary);
			guest_finish(g, &s, VQB_BLK_S_OK);
			guest_reap_one(g);
		}
		/* One that takes more goes in parts, under new limits, too. */
		assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
		part = send_one(g, range_bio(g, 2, VQB_BLK_DISCARD, 0, 24));
		expect_range(ranges_of(g, &part, 2) + 16, 8, 8, 0);
		part = guest_see(g);
		expect_range(ranges_of(g, &part, 1), 16, 8, 0);
	}
}

/* A request may have more ranges than segments of data: the table has room for either. */
static void test_more_ranges_than_segments(void **state)
{
	struct guest *g = guest_plan(state, 64);
	struct seen s;

	g->limits.segments = 2;
	guest_allow_ranges(g, RANGES, 100);
	assert_int_equal(guest_init(g), VQB_OK);
	s = send_one(g, range_bio(g, 0, VQB_BLK_DISCARD, 10, 350));
	for (unsigned i = 0; i < 4; i++)
		expect_range(ranges_of(g, &s, 4) + 16 * i, 10 + 100 * i, i < 3 ? 100 : 50, 0);
	/* Of data it has room for as many segments, too. */
	g->limits.segments = RANGES + 1;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_E_INVALID);
	g->limits.segments = RANGES;
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	s = send_one(g, guest_bio(g, 1, VQB_BLK_IN, 0, RANGES, RANGES * 512));
	assert_int_equal(s.parts, RANGES + 2);
}

/* Ranges of requests that are in flight together lie apart, and apart from all headers. */
static void test_each_request_has_ranges_of_its_own(void **state)
{
	struct guest *g = open_all(state);
	uint8_t used[VQB_BLK_AREA_BYTES(DEPTH, RANGES)] = { 0 };
	struct seen s[DEPTH];

	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(
			vqb_blk_submit(g->drv, range_bio(g, i, VQB_BLK_DISCARD, i * 20, 400)),
			VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < DEPTH; i++) {
		size_t at;

		s[i] = guest_see(g);
		at = (size_t)(ranges_of(g, &s[i], 4) - g->area);
		for (unsigned k = 0; k < 64; k++)
			assert_int_equal(used[at + k]++, 0);
	}
	for (unsigned i = 0; i < DEPTH; i++)
		for (unsigned k = 0; k < 4; k++)
			expect_range(ranges_of(g, &s[i], 4) + 16 * k, i * 20 + 100 * k, 100, 0);
}

/* Shows: BLK-ANY-09 BLK-DRV-06 */
static void test_lifetime_asks_for_6_bytes(void **state)
{
	struct guest *g = open_all(state);
	struct seen s;

	for (uint32_t bytes = 0; bytes < 10; bytes++)
		if (bytes != 6)
			assert_int_equal(
				guest_try(g, VQB_BLK_GET_LIFETIME, 0, bytes ? 1 : 0, bytes),
				VQB_E_INVALID);
	s = send_one(g, guest_bio(g, 0, VQB_BLK_GET_LIFETIME, 55, 1, 6));
	assert_int_equal(s.parts, 3);
	expect_header(&s, VQB_BLK_GET_LIFETIME, 0, 0);
	assert_int_equal(raw_desc_len(g->ring.raw.desc, s.at[1]), 6);
	assert_int_equal(raw_desc_flags(g->ring.raw.desc, s.at[1]), RAW_WRITE | RAW_NEXT);
	/* In more than one segment, too. */
	s = send_one(g, guest_bio(g, 1, VQB_BLK_GET_LIFETIME, 0, 3, 6));
	assert_int_equal(s.parts, 5);
	s = send_one(g, guest_bio(g, 4, VQB_BLK_GET_ID, 0, 4, 20));
	assert_int_equal(s.parts, 6);
	assert_int_equal(guest_bytes(g, &s), 20);
	assert_int_equal(
		vqb_blk_submit(g->drv, guest_bio(g, 8, VQB_BLK_GET_ID, 0, SEGMENTS + 1, 20)),
		VQB_E_TOOBIG);
}

static void test_priority_goes_into_the_header(void **state)
{
	static const uint8_t op[] = { VQB_BLK_IN, VQB_BLK_OUT, VQB_BLK_FLUSH, VQB_BLK_DISCARD };
	struct guest *g = open_all(state);

	for (unsigned i = 0; i < 4; i++) {
		struct vqb_bio *bio =
			i < 2 ? guest_bio(g, i, op[i], 8, 1, 512) : guest_bio(g, i, op[i], 8, 0, 0);
		struct seen s;

		bio->sectors = op[i] == VQB_BLK_DISCARD;
		bio->ioprio = 0x12345670 + i;
		s = send_one(g, bio);
		expect_header(&s, op[i], 0x12345670 + i, i < 2 ? 8 : 0);
	}
}

/* ---- what this device does not do ---- */

static void test_an_op_needs_its_feature(void **state)
{
	static const struct {
		uint8_t op;
		uint64_t feature;
	} row[] = {
		{ VQB_BLK_FLUSH, BIT(FLUSH) },
		{ VQB_BLK_GET_LIFETIME, BIT(LIFETIME) },
		{ VQB_BLK_DISCARD, BIT(DISCARD) },
		{ VQB_BLK_WRITE_ZEROES, BIT(WRITE_ZEROES) },
		{ VQB_BLK_SECURE_ERASE, BIT(SECURE_ERASE) },
	};

	for (unsigned i = 0; i < 5; i++)
		for (unsigned with = 0; with < 2; with++) {
			struct guest *g = guest_plan(state, 64);
			struct vqb_bio *bio;

			guest_allow_ranges(g, RANGES, 100);
			g->config.features |= BIT(LIFETIME);
			if (!with)
				g->config.features &= ~row[i].feature;
			assert_int_equal(guest_init(g), VQB_OK);
			bio = guest_bio(g, 0, row[i].op, 0, i == 1, i == 1 ? 6 : 0);
			bio->sectors = i > 1;
			assert_int_equal(vqb_blk_submit(g->drv, bio), with ? VQB_OK : VQB_E_UNSUPP);
			assert_int_equal(vqb_blk_outstanding(g->drv), with);
		}
}

/* Shows: BLK-DRV-10 */
static void test_nothing_that_writes_goes_to_a_read_only_disk(void **state)
{
	static const uint8_t writes[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES,
					  VQB_BLK_SECURE_ERASE };
	struct guest *g = guest_plan(state, 64);

	guest_allow_ranges(g, RANGES, 100);
	g->config.features |= BIT(RO);
	assert_int_equal(guest_init(g), VQB_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vqb_blk_submit(g->drv, range_bio(g, i, writes[i], 0, 8)),
				 VQB_E_UNSUPP);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 3, VQB_BLK_OUT, 0, 1, 512)),
			 VQB_E_UNSUPP);
	vqb_blk_publish(g->drv);
	assert_int_equal(bench_visible(&g->ring), 0);
	guest_put(g, 4, VQB_BLK_IN, 0);
	assert_int_equal(vqb_blk_submit(g->drv, guest_bio(g, 5, VQB_BLK_FLUSH, 0, 0, 0)), VQB_OK);
	assert_int_equal(guest_drain(g), 2);
}

/* A device without SEG_MAX: one segment to a request, and everything still gets there. */
static void test_one_segment_to_a_request(void **state)
{
	struct guest *g = guest_plan(state, 64);
	struct vqb_bio *done;

	g->limits.segments = 1;
	assert_int_equal(guest_init(g), VQB_OK);
	assert_int_equal(guest_try(g, VQB_BLK_OUT, 100, 4, 2048), VQB_OK);
	vqb_blk_publish(g->drv);
	for (unsigned i = 0; i < 4; i++) {
		struct seen s = guest_see(g);

		assert_int_equal(s.parts, 3);
		expect_header(&s, VQB_BLK_OUT, 0, 100 + i);
		assert_int_equal(raw_desc_addr(g->ring.raw.desc, s.at[1]), g->seg[i].addr);
		guest_finish(g, &s, VQB_BLK_S_OK);
	}
	assert_int_equal(guest_reap(g, &done), 1);
	assert_int_equal(g->bio[0].status, VQB_OK);
}

/* ---- limits of the caller's own ---- */

/* `mapping` has what no device says: here, what its bus can't do. */
static void test_other_limits_than_the_device_own(void **state)
{
	struct guest *g = guest_plan(state, 64);
	struct seen s;

	assert_int_equal(vqb_limits_of_blk(&g->limits, g->config.features, 64, &g->mapping),
			 VQB_OK);
	g->mapping.seg_boundary = 0xfff;
	g->config.mapping = &g->mapping;
	assert_int_equal(guest_init(g), VQB_OK);
	g->seg[0].addr = BENCH_DATA_AT + 0xe00;
	s = send_one(g, guest_bio(g, 0, VQB_BLK_IN, 0, 1, 1024));
	assert_int_equal(s.parts, 4);
	assert_int_equal(raw_desc_len(g->ring.raw.desc, s.at[1]), 512);
	assert_int_equal(raw_desc_addr(g->ring.raw.desc, s.at[2]), BENCH_DATA_AT + 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(test_a_discard_is_header_ranges_status),
		guest_test(test_zeroes_say_whether_to_unmap_in_each_range),
		guest_test(test_a_secure_erase_is_the_same),
		guest_test(test_ranges_are_a_segment_within_limits),
		guest_test(test_more_ranges_than_segments),
		guest_test(test_each_request_has_ranges_of_its_own),
		guest_test(test_lifetime_asks_for_6_bytes),
		guest_test(test_priority_goes_into_the_header),
		guest_test(test_an_op_needs_its_feature),
		guest_test(test_nothing_that_writes_goes_to_a_read_only_disk),
		guest_test(test_one_segment_to_a_request),
		guest_test(test_other_limits_than_the_device_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
