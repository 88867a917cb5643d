/* SPDX-License-Identifier: BSD-3-Clause */
/* Init: what it accepts, how much memory it wants, and that each part of the ring is all there. */
#include "device_bench.h"

static int32_t init_with(struct bench *b, void *mem, size_t bytes)
{
	struct vqb_device *dev = NULL;

	return vqb_device_init(mem, bytes, &b->config, &dev);
}

/* The planned configuration is refused as such, wherever it is shown. */
static void assert_invalid(struct bench *b)
{
	static _Alignas(64) uint8_t mem[VQB_DEVICE_BYTES(64)];

	assert_int_equal(vqb_device_size(&b->config), 0);
	assert_int_equal(init_with(b, mem, sizeof(mem)), VQB_E_INVALID);
}

/* ---- sizes ---- */

/* Shows: SR-ANY-01 */
static void test_powers_of_two_up_to_the_largest_are_sizes(void **state)
{
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		struct bench *b = bench_open(state, size, 0);

		assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
		assert_true(b->object_bytes <= VQB_DEVICE_BYTES(size));
		bench_offer_plain(b, size - 1);
		assert_int_equal(bench_take_one(b)->ticket.head, size - 1);
	}
}

/* Shows: SR-ANY-01 */
static void test_other_numbers_are_not(void **state)
{
	static const uint32_t size[] = { 3,       6,       7,          9,          255,
					 257,     32767,   32769,      65535,      65536,
					 0x10001, 0x10008, 0x80000000, 0xffffffff, 0x80000008 };

	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		struct bench *b = bench_plan(state, 8, 0);

		b->config.ring.size = size[i];
		assert_invalid(b);
		b->config.max_size = 32768;
		assert_invalid(b);
		b->config.ring.size = 8;
		bench_start(b);
		b->config.ring.size = size[i];
		assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_E_INVALID);
	}
}

static void test_ring_may_not_exceed_max_size(void **state)
{
	struct bench *b = bench_plan(state, 16, 0);

	b->config.max_size = 8;
	assert_invalid(b);
	b->config.max_size = 16;
	bench_start(b);
}

static void test_memory_is_for_the_largest_ring_to_come(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	size_t small = vqb_device_size(&b->config);

	b->config.max_size = 1024;
	assert_true(vqb_device_size(&b->config) > small);
	assert_true(vqb_device_size(&b->config) <= VQB_DEVICE_BYTES(1024));
	bench_start(b);
	b->config.ring = bench_ring_at(LOW, 1024, 0);
	b->ring = bench_raw(b, &b->config.ring);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	for (unsigned i = 0; i < 1024; i++) {
		bench_offer_plain(b, 1023 - i);
		bench_take_one(b);
	}
	assert_int_equal(vqb_device_in_flight(b->dev), 1024);
}

/* ---- the device's own memory ---- */

static void test_too_few_bytes_are_too_few(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	bench_object(b);
	assert_int_equal(init_with(b, b->object, b->object_bytes - 1), VQB_E_TOOBIG);
	assert_int_equal(init_with(b, b->object, 0), VQB_E_TOOBIG);
	assert_int_equal(init_with(b, b->object, b->object_bytes), VQB_OK);
}

static void test_memory_must_be_aligned(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	static _Alignas(64) uint8_t mem[VQB_DEVICE_BYTES(8) + 64];

	for (unsigned off = 1; off < 64; off = 2 * off + 1)
		assert_int_equal(init_with(b, mem + off, VQB_DEVICE_BYTES(8)), VQB_E_INVALID);
	assert_int_equal(init_with(b, mem + 32, VQB_DEVICE_BYTES(8)), VQB_E_INVALID);
	assert_int_equal(init_with(b, NULL, VQB_DEVICE_BYTES(8)), VQB_E_INVALID);
	assert_int_equal(init_with(b, mem + 64, VQB_DEVICE_BYTES(8)), VQB_OK);
}

/* ---- the configuration ---- */

static void test_fields_that_must_be_as_told(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_device_config good = b->config;

	assert_int_equal(vqb_device_size(NULL), 0);
	b->config.struct_size = 0;
	assert_invalid(b);
	b->config.struct_size = sizeof(b->config) - 4;
	assert_invalid(b);
	b->config = good;
	b->config.ring.flags = 2;
	assert_invalid(b);
	b->config = good;
	b->config.ring.zero = 1;
	assert_invalid(b);
	b->config = good;
	b->config.memory = NULL;
	assert_invalid(b);
	b->config = good;
	b->memory.zero = 1;
	assert_invalid(b);
	b->memory.zero = 0;
	bench_start(b);
}

static void test_configuration_is_not_kept(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	memset(&b->config, 0xff, sizeof(b->config));
	bench_offer_plain(b, 3);
	bench_serve(b, 1);
	bench_assert_used(b, 0, 3, 0);
}

static void test_bits_of_the_device_type_are_ignored(void **state)
{
	struct bench *b = bench_open(state, 8, VQB_TYPE_FEATURES | VQB_FEATURE(VQB_F_VERSION_1));

	bench_offer_plain(b, 3);
	bench_take_one(b);
}

/* A bit of the ring's range that is not known here might change the format. */
static void test_other_bits_of_the_ring_are_refused(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t known = VQB_TYPE_FEATURES | VQB_RING_FEATURES;
		int32_t status = known >> bit & 1 ? VQB_OK : VQB_E_INVALID;

		b->config.ring.features = VQB_FEATURE(bit) | VQB_FEATURE(VQB_F_VERSION_1);
		assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), status);
		assert_int_equal(vqb_device_size(&b->config) != 0, status == VQB_OK);
	}
	b->config.ring.features = VQB_FEATURE(VQB_F_RING_PACKED);
	assert_invalid(b);
}

static void test_only_a_legacy_ring_may_be_big_endian(void **state)
{
	struct bench *b = bench_plan(state, 8, VQB_FEATURE(VQB_F_VERSION_1));

	b->config.ring.flags = VQB_RING_BIG_ENDIAN;
	assert_invalid(b);
	b->config.ring.features = 0;
	bench_start(b);
}

/* ---- the parts of the ring ---- */

static void test_parts_must_be_aligned(void **state)
{
	static const unsigned desc[] = { 1, 2, 4, 8, 15 }, used[] = { 1, 2, 3 };
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_ring_at good = b->config.ring;

	for (unsigned i = 0; i < 5; i++) {
		b->config.ring = good;
		b->config.ring.desc += desc[i];
		assert_invalid(b);
	}
	for (unsigned i = 0; i < 3; i++) {
		b->config.ring = good;
		b->config.ring.used += used[i];
		assert_invalid(b);
	}
	b->config.ring = good;
	b->config.ring.avail += 1;
	assert_invalid(b);
	b->config.ring = good;
	b->config.ring.avail += 2;
	bench_start(b);
}

/* The host must not take away the alignment that the guest gave. */
static void test_parts_must_be_aligned_in_the_host(void **state)
{
	static const unsigned off[] = { 1, 2, 4 };

	for (unsigned i = 0; i < 3; i++) {
		struct bench *b = bench_plan(state, 8, 0);

		b->region[0].host = b->low + off[i];
		b->region[0].len -= 8;
		assert_int_equal(bench_init(b), VQB_E_INVALID);
	}
}

enum part { DESC, AVAIL, USED };

static const uint32_t part_bytes[] = { VQB_DESC_BYTES(8), VQB_AVAIL_BYTES(8), VQB_USED_BYTES(8) };

/* A ring of 8 with one part so far from the end of mapped memory that `missing` bytes lack. */
static int32_t init_at_end(void **state, enum part part, uint64_t end, uint32_t missing)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_ring_at *ring = &b->config.ring;
	uint64_t *at[] = { &ring->desc, &ring->avail, &ring->used };

	*at[part] = (end - part_bytes[part]) & ~UINT64_C(15);
	b->region[1].len = *at[part] + part_bytes[part] - missing - HIGH;
	return bench_init(b);
}

/* Shows: SR-ANY-01 K17 */
static void test_each_part_must_be_mapped_to_its_last_byte(void **state)
{
	for (enum part part = DESC; part <= USED; part++) {
		assert_int_equal(init_at_end(state, part, END, 0), VQB_OK);
		assert_int_equal(init_at_end(state, part, END, 1), VQB_E_FAULT);
		assert_int_equal(init_at_end(state, part, END, 2), VQB_E_FAULT);
	}
}

static void test_each_part_must_be_one_stretch_of_the_host(void **state)
{
	for (enum part part = DESC; part <= USED; part++) {
		struct bench *b = bench_plan(state, 8, 0);
		struct vqb_ring_at *ring = &b->config.ring;
		uint64_t *at[] = { &ring->desc, &ring->avail, &ring->used };

		*at[part] = BORDER - 16;
		assert_int_equal(bench_init(b), VQB_E_FAULT);
	}
}

static void test_each_part_needs_the_access_that_it_is_for(void **state)
{
	static const uint32_t lacking[] = { VQB_WRITE, VQB_WRITE, VQB_READ };
	static const uint32_t enough[] = { VQB_READ, VQB_READ, VQB_READ | VQB_WRITE };

	for (enum part part = DESC; part <= USED; part++) {
		struct bench *b = bench_plan(state, 8, 0);
		struct vqb_ring_at *ring = &b->config.ring;
		uint64_t *at[] = { &ring->desc, &ring->avail, &ring->used };

		*at[part] = HIGH;
		b->region[1].access = lacking[part];
		assert_int_equal(bench_init(b), VQB_E_FAULT);
		b->region[1].access = enough[part];
		assert_int_equal(bench_init(b), VQB_OK);
	}
}

static void test_part_that_runs_past_the_last_address_is_not_there(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->region[1].addr = UINT64_MAX - REGION_BYTES + 1;
	b->config.ring.desc = UINT64_MAX - 15;
	assert_int_equal(bench_init(b), VQB_E_FAULT);
	b->config.ring.desc = UINT64_MAX - 16 * 8 + 1;
	assert_int_equal(bench_init(b), VQB_OK);
}

static void test_init_writes_nothing_to_the_ring(void **state)
{
	struct bench *b = bench_plan(state, 8, EVENT_IDX);
	uint8_t *before;

	memset(b->low, 0xff, REGION_BYTES);
	before = bench_snapshot(b);
	bench_start(b);
	bench_assert_unchanged(b, before);
}

/* Whatever lies in the used ring, the device begins at nought. */
static void test_device_starts_at_index_nought(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	memset(b->ring.used, 0xff, 6 + 8 * 8);
	bench_start(b);
	bench_offer_plain(b, 3);
	bench_serve(b, 1);
	assert_int_equal(raw_used_idx(&b->ring), 1);
	bench_assert_used(b, 0, 3, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_powers_of_two_up_to_the_largest_are_sizes),
		bench_test(test_other_numbers_are_not),
		bench_test(test_ring_may_not_exceed_max_size),
		bench_test(test_memory_is_for_the_largest_ring_to_come),
		bench_test(test_too_few_bytes_are_too_few),
		bench_test(test_memory_must_be_aligned),
		bench_test(test_fields_that_must_be_as_told),
		bench_test(test_configuration_is_not_kept),
		bench_test(test_bits_of_the_device_type_are_ignored),
		bench_test(test_other_bits_of_the_ring_are_refused),
		bench_test(test_only_a_legacy_ring_may_be_big_endian),
		bench_test(test_parts_must_be_aligned),
		bench_test(test_parts_must_be_aligned_in_the_host),
		bench_test(test_each_part_must_be_mapped_to_its_last_byte),
		bench_test(test_each_part_must_be_one_stretch_of_the_host),
		bench_test(test_each_part_needs_the_access_that_it_is_for),
		bench_test(test_part_that_runs_past_the_last_address_is_not_there),
		bench_test(test_init_writes_nothing_to_the_ring),
		bench_test(test_device_starts_at_index_nought),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
