/* SPDX-License-Identifier: BSD-3-Clause */
/* Which maps are usable: vqb_memory_check. */
#include <vqblk/memory.h>

#include "unit.h"

static uint8_t ram[4][0x1000];

static const struct vqb_extent three[] = {
	{ .addr = 0x1000, .len = 0x1000, .host = ram[2], .access = VQB_READ | VQB_WRITE },
	{ .addr = 0x2000, .len = 0x800, .host = ram[0], .access = VQB_READ },
	{ .addr = 0x9000, .len = 1, .host = ram[1], .access = VQB_WRITE },
};

static int32_t check(const struct vqb_extent *sorted, uint32_t count)
{
	struct vqb_memory memory = {
		.struct_size = sizeof(memory), .generation = 1, .count = count, .sorted = sorted
	};

	return vqb_memory_check(&memory);
}

static int32_t check_one(struct vqb_extent extent)
{
	return check(&extent, 1);
}

static int32_t check_two(struct vqb_extent first, struct vqb_extent second)
{
	struct vqb_extent both[] = { first, second };

	return check(both, 2);
}

static struct vqb_extent extent(uint64_t addr, uint64_t len)
{
	struct vqb_extent e = {
		.addr = addr, .len = len, .host = ram[0], .access = VQB_READ | VQB_WRITE
	};

	return e;
}

static int32_t nowhere(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	(void)context;
	(void)addr;
	(void)access;
	(void)out;
	return VQB_E_FAULT;
}

static void test_sorted_extents_are_good(void **state)
{
	(void)state;
	assert_int_equal(check(three, 3), VQB_OK);
	assert_int_equal(check(three, 1), VQB_OK);
}

static void test_adjoining_extents_are_good(void **state)
{
	(void)state;
	assert_int_equal(check_two(extent(0x1000, 0x1000), extent(0x2000, 0x1000)), VQB_OK);
}

static void test_overlap_by_a_byte_is_bad(void **state)
{
	(void)state;
	assert_int_equal(check_two(extent(0x1000, 0x1001), extent(0x2000, 0x1000)), VQB_E_INVALID);
	assert_int_equal(check_two(extent(0x1000, 0x1000), extent(0x1fff, 0x1000)), VQB_E_INVALID);
	assert_int_equal(check_two(extent(0x1000, 0x100), extent(0x1000, 0x100)), VQB_E_INVALID);
}

static void test_extents_out_of_order_are_bad(void **state)
{
	(void)state;
	assert_int_equal(check_two(extent(0x2000, 0x1000), extent(0x1000, 0x1000)), VQB_E_INVALID);
}

static void test_extent_may_end_at_the_last_address(void **state)
{
	(void)state;
	assert_int_equal(check_one(extent(UINT64_MAX - 0xfff, 0x1000)), VQB_OK);
	assert_int_equal(check_one(extent(UINT64_MAX, 1)), VQB_OK);
	assert_int_equal(check_one(extent(UINT64_MAX - 0xfff, 0x1001)), VQB_E_INVALID);
	assert_int_equal(check_one(extent(UINT64_MAX, 2)), VQB_E_INVALID);
	assert_int_equal(check_one(extent(1, UINT64_MAX)), VQB_E_INVALID);
}

static void test_nothing_comes_after_the_last_address(void **state)
{
	(void)state;
	assert_int_equal(check_two(extent(UINT64_MAX - 0xfff, 0x1000), extent(0, 0x1000)),
			 VQB_E_INVALID);
}

static void test_every_extent_is_looked_at(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct vqb_extent e[3] = { three[0], three[1], three[2] };

		e[i].host = NULL;
		assert_int_equal(check(e, 3), VQB_E_INVALID);
	}
}

static void test_extent_needs_bytes_host_and_known_access(void **state)
{
	struct vqb_extent e = three[0];

	(void)state;
	e.len = 0;
	assert_int_equal(check_one(e), VQB_E_INVALID);
	e = three[0];
	e.host = NULL;
	assert_int_equal(check_one(e), VQB_E_INVALID);
	e = three[0];
	e.access = 0;
	assert_int_equal(check_one(e), VQB_E_INVALID);
	e.access = 4 | VQB_READ;
	assert_int_equal(check_one(e), VQB_E_INVALID);
	e = three[0];
	e.zero = 1;
	assert_int_equal(check_one(e), VQB_E_INVALID);
}

static void test_host_memory_may_not_wrap(void **state)
{
	struct vqb_extent e = three[0];

	(void)state;
	e.len = UINTPTR_MAX - 1;
	assert_int_equal(check_one(e), VQB_E_INVALID);
}

static void test_map_of_nothing_needs_a_hook(void **state)
{
	struct vqb_memory memory = { .struct_size = sizeof(memory), .generation = 1 };

	(void)state;
	assert_int_equal(vqb_memory_check(&memory), VQB_E_INVALID);
	memory.translate = nowhere;
	assert_int_equal(vqb_memory_check(&memory), VQB_OK);
	memory.count = 1;
	assert_int_equal(vqb_memory_check(&memory), VQB_E_INVALID);
}

static void test_fields_that_must_be_as_told(void **state)
{
	struct vqb_memory memory = { .struct_size = sizeof(memory), .count = 3, .sorted = three };

	(void)state;
	assert_int_equal(vqb_memory_check(&memory), VQB_OK);
	assert_int_equal(vqb_memory_check(NULL), VQB_E_INVALID);
	memory.zero = 1;
	assert_int_equal(vqb_memory_check(&memory), VQB_E_INVALID);
	memory.zero = 0;
	memory.struct_size = 0;
	assert_int_equal(vqb_memory_check(&memory), VQB_E_INVALID);
	memory.struct_size = sizeof(memory) - 4;
	assert_int_equal(vqb_memory_check(&memory), VQB_E_INVALID);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorted_extents_are_good),
		cmocka_unit_test(test_adjoining_extents_are_good),
		cmocka_unit_test(test_overlap_by_a_byte_is_bad),
		cmocka_unit_test(test_extents_out_of_order_are_bad),
		cmocka_unit_test(test_extent_may_end_at_the_last_address),
		cmocka_unit_test(test_nothing_comes_after_the_last_address),
		cmocka_unit_test(test_every_extent_is_looked_at),
		cmocka_unit_test(test_extent_needs_bytes_host_and_known_access),
		cmocka_unit_test(test_host_memory_may_not_wrap),
		cmocka_unit_test(test_map_of_nothing_needs_a_hook),
		cmocka_unit_test(test_fields_that_must_be_as_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
