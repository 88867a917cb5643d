/* SPDX-License-Identifier: BSD-3-Clause */
/* test_layout.c: where the parts of a ring lie, against the numbers of the format. */
#include <stdint.h>
#include <string.h>

#include <vqblk/ring.h>

#include "unit.h"

static struct vqb_layout lay_out(uint32_t size, uint32_t align)
{
	struct vqb_layout at;

	assert_int_equal(vqb_ring_layout(size, align, &at), VQB_OK);
	return at;
}

/* Shows: SR-ANY-01 */
static void test_part_sizes_are_those_of_the_format(void **state)
{
	static const uint32_t rows[][4] = {
		{ 1, 16, 8, 14 },
		{ 2, 32, 10, 22 },
		{ 4, 64, 14, 38 },
		{ 8, 128, 22, 70 },
		{ 16, 256, 38, 134 },
		{ 32, 512, 70, 262 },
		{ 64, 1024, 134, 518 },
		{ 128, 2048, 262, 1030 },
		{ 256, 4096, 518, 2054 },
		{ 512, 8192, 1030, 4102 },
		{ 1024, 16384, 2054, 8198 },
		{ 32768, 524288, 65542, 262150 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(VQB_DESC_BYTES(rows[i][0]), rows[i][1]);
		assert_int_equal(VQB_AVAIL_BYTES(rows[i][0]), rows[i][2]);
		assert_int_equal(VQB_USED_BYTES(rows[i][0]), rows[i][3]);
	}
}

/* Shows: K17 */
static void test_event_word_has_its_room(void **state)
{
	struct vqb_layout at;

	(void)state;
	at = lay_out(4, 4);
	assert_int_equal(at.desc, 0);
	assert_int_equal(at.avail, 64);
	assert_int_equal(at.used, 80);
	assert_int_equal(at.end, 118);
	assert_int_equal(at.bytes, 120);

	at = lay_out(8, 4);
	assert_int_equal(at.desc, 0);
	assert_int_equal(at.avail, 128);
	assert_int_equal(at.used, 152);
	assert_int_equal(at.end, 222);
	assert_int_equal(at.bytes, 224);

	at = lay_out(8, 4096);
	assert_int_equal(at.avail, 128);
	assert_int_equal(at.used, 4096);
	assert_int_equal(at.end, 4096 + 70);
}

/* Shows: K17 LEG-DRV-06 LEG-ANY-06 */
static void test_legacy_layout_is_that_of_the_format(void **state)
{
	static const uint32_t rows[][3] = {
		{ 8, 4096, 8192 },     { 128, 4096, 8192 },    { 256, 8192, 12288 },
		{ 512, 12288, 20480 }, { 1024, 20480, 32768 }, { 32768, 593920, 860160 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vqb_layout at = lay_out(rows[i][0], 4096);

		assert_int_equal(at.desc, 0);
		assert_int_equal(at.avail, 16 * rows[i][0]);
		assert_int_equal(at.used, rows[i][1]);
		assert_int_equal(at.bytes, rows[i][2]);
	}
}

/* Shows: SR-DRV-01 SR-ANY-01 */
static void test_parts_are_aligned_and_apart_whatever_size_and_alignment(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		for (uint32_t align = 4; align <= 1u << 20; align *= 2) {
			struct vqb_layout at = lay_out(size, align);

			assert_int_equal(at.desc, 0);
			assert_int_equal(at.avail, 16 * size);
			assert_int_equal(at.used % align, 0);
			assert_true(at.used >= at.avail + 6 + 2 * size);
			assert_true(at.used < at.avail + 6 + 2 * size + align);
			assert_int_equal(at.end, at.used + 6 + 8 * size);
			assert_int_equal(at.bytes % align, 0);
			assert_true(at.bytes >= at.end && at.bytes < at.end + align);
		}
	}
}

static void refuse(uint32_t size, uint32_t align)
{
	struct vqb_layout at, before;

	memset(&at, 0xa5, sizeof(at));
	before = at;
	assert_int_equal(vqb_ring_layout(size, align, &at), VQB_E_INVALID);
	assert_memory_equal(&at, &before, sizeof(at));
}

/* Shows: SR-ANY-01 */
static void test_other_sizes_are_refused(void **state)
{
	static const uint32_t sizes[] = { 0,          3,          5,         6,       7,
					  12,         100,        32767,     32769,   49152,
					  65535,      65536,      65544,     0x10001, 0x80000000,
					  0x80000008, 0xfffffff8, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		refuse(sizes[i], 4096);
}

static void test_other_alignments_are_refused(void **state)
{
	static const uint32_t aligns[] = { 0,    1,    2,        3,        5,          12,
					   4095, 4097, 0x100001, 0x200000, 0x80000000, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++)
		refuse(8, aligns[i]);
}

/* Shows: SR-DRV-01 */
static void test_place_puts_the_parts_into_a_block(void **state)
{
	static _Alignas(16) char block[224];
	struct vqb_ring ring = { .size = 8 };

	(void)state;
	assert_int_equal(vqb_ring_place(&ring, block, 4), VQB_OK);
	assert_ptr_equal(ring.desc, block);
	assert_ptr_equal(ring.avail, block + 128);
	assert_ptr_equal(ring.used, block + 152);
}

static void test_place_at_puts_the_parts_at_guest_addresses(void **state)
{
	const uint64_t block = UINT64_C(0xffff000000001000);
	struct vqb_ring_at ring = { .size = 8 };

	(void)state;
	assert_int_equal(vqb_ring_place_at(&ring, block, 4096), VQB_OK);
	assert_true(ring.desc == block);
	assert_true(ring.avail == block + 128);
	assert_true(ring.used == block + 4096);
}

static void test_place_of_a_bad_size_leaves_the_parts_alone(void **state)
{
	char block[1];
	struct vqb_ring ring = { .size = 9 };
	struct vqb_ring_at at = { .size = 9 };

	(void)state;
	assert_int_equal(vqb_ring_place(&ring, block, 4), VQB_E_INVALID);
	assert_null(ring.desc);
	assert_null(ring.avail);
	assert_null(ring.used);
	assert_int_equal(vqb_ring_place_at(&at, 4096, 4), VQB_E_INVALID);
	assert_true(at.desc == 0 && at.avail == 0 && at.used == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_sizes_are_those_of_the_format),
		cmocka_unit_test(test_event_word_has_its_room),
		cmocka_unit_test(test_legacy_layout_is_that_of_the_format),
		cmocka_unit_test(test_parts_are_aligned_and_apart_whatever_size_and_alignment),
		cmocka_unit_test(test_other_sizes_are_refused),
		cmocka_unit_test(test_other_alignments_are_refused),
		cmocka_unit_test(test_place_puts_the_parts_into_a_block),
		cmocka_unit_test(test_place_at_puts_the_parts_at_guest_addresses),
		cmocka_unit_test(test_place_of_a_bad_size_leaves_the_parts_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
