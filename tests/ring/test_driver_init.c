/* SPDX-License-Identifier: BSD-3-Clause */
/* test_driver_init.c: what init accepts, what it refuses, and what it does to the ring. */
#include "driver_bench.h"

/* Init of `config` in ample memory answers `status`, and makes nothing if that is a failure. */
static void expect_init(const struct vqb_driver_config *config, int32_t status)
{
	struct vqb_driver *const none = (struct vqb_driver *)&status, *out = none;
	size_t ample = VQB_DRIVER_BYTES(32768);
	void *mem = bench_alloc(64, ample);

	assert_int_equal(vqb_driver_init(mem, ample, config, &out), status);
	if (status)
		assert_ptr_equal(out, none);
	else
		assert_ptr_not_equal(out, none);
	free(mem);
}

static void expect_refused(const struct vqb_driver_config *config)
{
	expect_init(config, VQB_E_INVALID);
	assert_int_equal(vqb_driver_size(config), 0);
}

static struct vqb_driver_config good_config(void)
{
	struct vqb_driver_config config = { .struct_size = sizeof(config),
					    .ring = bench_ring(8, EVENT_MODE) };

	return config;
}

/* Shows: SR-ANY-01 */
static void test_the_sixteen_sizes_are_accepted(void **state)
{
	unsigned accepted = 0;

	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		struct bench b;

		bench_open(&b, size, EVENT_MODE);
		assert_int_equal(vqb_driver_free(b.drv), size);
		bench_close(&b);
		accepted++;
	}
	assert_int_equal(accepted, 16);
}

/* Shows: SR-ANY-01 */
static void test_other_sizes_are_refused(void **state)
{
	static const uint32_t sizes[] = { 3,       5,          6,          7,         9,
					  100,     32767,      32769,      65535,     65536,
					  0x10008, 0x80000000, 0x80000008, 0xffffffff };
	struct vqb_driver_config config = good_config();

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		config.ring.size = sizes[i];
		expect_refused(&config);
	}
	bench_free_ring(&config.ring);
}

static void test_a_ring_larger_than_max_size_is_refused(void **state)
{
	struct vqb_driver_config config = good_config();

	(void)state;
	config.max_size = 8;
	expect_init(&config, VQB_OK);
	config.max_size = 4;
	expect_refused(&config);
	config.max_size = 65536;
	expect_refused(&config);
	config.max_size = 0x10008;
	expect_refused(&config);
	bench_free_ring(&config.ring);
}

static void test_neither_a_ring_nor_a_max_size_is_refused(void **state)
{
	struct vqb_driver_config config = { .struct_size = sizeof(config) };

	(void)state;
	expect_refused(&config);
}

/* Shows: SR-DRV-01 */
static void test_parts_off_their_alignment_are_refused(void **state)
{
	static _Alignas(16) uint8_t desc[16 * 8 + 16], avail[22 + 2], used[70 + 4];
	struct vqb_driver_config config = { .struct_size = sizeof(config),
					    .ring = { .size = 8, .features = EVENT_MODE } };

	(void)state;
	config.ring.desc = desc;
	config.ring.avail = avail;
	config.ring.used = used;
	expect_init(&config, VQB_OK);

	config.ring.desc = desc + 1;
	expect_init(&config, VQB_E_INVALID);
	config.ring.desc = desc + 8;
	expect_init(&config, VQB_E_INVALID);
	config.ring.desc = desc;

	config.ring.avail = avail + 1;
	expect_init(&config, VQB_E_INVALID);
	config.ring.avail = avail + 2;
	expect_init(&config, VQB_OK);
	config.ring.avail = avail;

	config.ring.used = used + 1;
	expect_init(&config, VQB_E_INVALID);
	config.ring.used = used + 2;
	expect_init(&config, VQB_E_INVALID);
	config.ring.used = used + 4;
	expect_init(&config, VQB_OK);
}

static void test_a_missing_part_is_refused(void **state)
{
	struct vqb_driver_config config = good_config();
	struct vqb_ring ring = config.ring;

	(void)state;
	config.ring.desc = NULL;
	expect_init(&config, VQB_E_INVALID);
	config.ring = ring;
	config.ring.avail = NULL;
	expect_init(&config, VQB_E_INVALID);
	config.ring = ring;
	config.ring.used = NULL;
	expect_init(&config, VQB_E_INVALID);
	bench_free_ring(&ring);
}

static void test_what_must_be_zero_is_looked_at(void **state)
{
	struct vqb_driver_config config = good_config();

	(void)state;
	config.zero = 1;
	expect_init(&config, VQB_E_INVALID);
	config.zero = 0;
	config.ring.zero = 1;
	expect_init(&config, VQB_E_INVALID);
	config.ring.zero = 0;
	config.ring.flags = 2;
	expect_init(&config, VQB_E_INVALID);
	config.ring.flags = 0;
	expect_init(&config, VQB_OK);
	bench_free_ring(&config.ring);
}

static void test_a_config_of_another_size_is_refused(void **state)
{
	struct vqb_driver_config config = good_config();

	(void)state;
	config.struct_size = 0;
	expect_refused(&config);
	config.struct_size = sizeof(config) - 8;
	expect_refused(&config);
	bench_free_ring(&config.ring);
}

static void test_a_policy_that_is_none_is_refused(void **state)
{
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy),
					      .kind = VQB_INDIRECT_NEVER };
	struct vqb_driver_config config = good_config();

	(void)state;
	config.policy = &policy;
	expect_init(&config, VQB_OK);
	policy.kind = 0x7fffffff;
	expect_init(&config, VQB_E_INVALID);
	policy.kind = VQB_INDIRECT_ALWAYS;
	policy.struct_size = 0;
	expect_init(&config, VQB_E_INVALID);
	bench_free_ring(&config.ring);
}

static void test_tables_off_their_alignment_are_refused(void **state)
{
	static _Alignas(16) uint8_t memory[16 * 4 + 16];
	struct vqb_driver_config config = good_config();

	(void)state;
	config.max_table = 4;
	config.tables = (struct vqb_dma){ memory, BENCH_TABLES_AT, 64 };
	expect_init(&config, VQB_OK);
	config.tables.host = memory + 8;
	expect_init(&config, VQB_E_INVALID);
	config.tables = (struct vqb_dma){ memory, BENCH_TABLES_AT + 8, 64 };
	expect_init(&config, VQB_E_INVALID);
	bench_free_ring(&config.ring);
}

static void test_driver_memory_off_its_alignment_is_refused(void **state)
{
	struct vqb_driver_config config = good_config();
	uint8_t *mem = (uint8_t *)bench_alloc(64, VQB_DRIVER_BYTES(8) + 64);
	struct vqb_driver *out = NULL;

	(void)state;
	for (size_t off = 1; off < 64; off++)
		assert_int_equal(vqb_driver_init(mem + off, VQB_DRIVER_BYTES(8), &config, &out),
				 VQB_E_INVALID);
	assert_null(out);
	assert_int_equal(vqb_driver_init(mem + 64, VQB_DRIVER_BYTES(8), &config, &out), VQB_OK);
	free(mem);
	bench_free_ring(&config.ring);
}

static void test_a_byte_too_little_is_too_little(void **state)
{
	struct vqb_driver_config config = good_config();
	size_t bytes = vqb_driver_size(&config);
	void *mem = bench_alloc(64, bytes);
	struct vqb_driver *out = NULL;

	(void)state;
	assert_int_equal(vqb_driver_init(mem, bytes - 1, &config, &out), VQB_E_TOOBIG);
	assert_int_equal(vqb_driver_init(mem, 0, &config, &out), VQB_E_TOOBIG);
	assert_null(out);
	assert_int_equal(*(uint8_t *)config.ring.used, BENCH_FILL);
	assert_int_equal(vqb_driver_init(mem, bytes, &config, &out), VQB_OK);
	assert_non_null(out);
	free(mem);
	bench_free_ring(&config.ring);
}

static void test_the_static_bound_holds(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		struct bench b;
		size_t without, with;

		bench_configure(&b, size, EVENT_MODE | INDIRECT, 0, 0, VQB_INDIRECT_NEVER);
		without = vqb_driver_size(&b.config);
		bench_close(&b);
		bench_configure(&b, size, EVENT_MODE | INDIRECT, size, 2, VQB_INDIRECT_ALWAYS);
		with = vqb_driver_size(&b.config);
		bench_close(&b);
		assert_true(without > 0 && without <= VQB_DRIVER_BYTES(size));
		assert_true(with > 0 && with <= VQB_DRIVER_BYTES(size));
	}
}

static void test_size_counts_for_the_largest_ring_to_come(void **state)
{
	struct vqb_driver_config config = good_config();
	size_t now = vqb_driver_size(&config), later;

	(void)state;
	config.max_size = 1024;
	later = vqb_driver_size(&config);
	assert_true(later > now);
	assert_true(later <= VQB_DRIVER_BYTES(1024));
	bench_free_ring(&config.ring);
}

/* Shows: SR-DRV-24 SR-DRV-14 */
static void test_the_ring_is_set_to_its_first_state_and_no_byte_more(void **state)
{
	static const uint8_t zero[16 * 8];
	struct vqb_driver_config config = { .struct_size = sizeof(config),
					    .ring = { .size = 8, .features = EVENT_MODE } };
	const size_t offset[] = { 256, 512, 768 }, bytes[] = { 128, 22, 70 };
	uint8_t *block = (uint8_t *)bench_alloc(16, 1024), before[1024];
	void *mem = bench_alloc(64, VQB_DRIVER_BYTES(8));
	struct vqb_driver *drv;

	(void)state;
	memset(block, 0xff, 1024);
	memcpy(before, block, sizeof(before));
	config.ring.desc = block + offset[0];
	config.ring.avail = block + offset[1];
	config.ring.used = block + offset[2];
	assert_int_equal(vqb_driver_init(mem, VQB_DRIVER_BYTES(8), &config, &drv), VQB_OK);
	for (int part = 0; part < 3; part++) {
		assert_memory_equal(block + offset[part], zero, bytes[part]);
		memset(block + offset[part], 0xff, bytes[part]);
	}
	assert_memory_equal(block, before, sizeof(before));
	free(mem);
	free(block);
}

/* A bit of the ring's range that is not known here might change the format. */
static void test_other_bits_of_the_ring_are_refused(void **state)
{
	struct vqb_driver_config config = good_config();

	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t known = VQB_TYPE_FEATURES | VQB_RING_FEATURES;

		config.ring.features = VQB_FEATURE(bit) | VQB_FEATURE(VQB_F_VERSION_1);
		assert_int_equal(vqb_driver_size(&config) != 0, known >> bit & 1);
	}
	bench_free_ring(&config.ring);
}

/* So that objects can follow each other in an array, and aligned_alloc takes the size. */
static void test_sizes_keep_the_alignment(void **state)
{
	struct vqb_driver_config config = good_config();

	(void)state;
	for (uint32_t size = 8; size <= 32768; size *= 2) {
		config.max_size = size;
		assert_int_equal(vqb_driver_size(&config) % VQB_ALIGN, 0);
		assert_int_equal(VQB_DRIVER_BYTES(size) % VQB_ALIGN, 0);
	}
	bench_free_ring(&config.ring);
}

static void test_a_refused_ring_is_not_touched(void **state)
{
	struct vqb_driver_config config = good_config();
	uint8_t before[16 * 8];

	(void)state;
	memset(before, BENCH_FILL, sizeof(before));
	config.zero = 1;
	expect_init(&config, VQB_E_INVALID);
	assert_memory_equal(config.ring.desc, before, 16 * 8);
	assert_memory_equal(config.ring.avail, before, 22);
	assert_memory_equal(config.ring.used, before, 70);
	bench_free_ring(&config.ring);
}

static void test_the_configuration_is_not_kept(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 8, 4);
	memset(&b.policy, 0xff, sizeof(b.policy));
	b.config.struct_size = 0;
	b.config.max_table = 0;
	b.config.policy = NULL;
	b.config.ring.size = 1;
	bench_add(&b, 5, 1, 2);
	vqb_driver_publish(b.drv);
	bench_expect_indirect(&b, bench_take(&b), 5, 1, 2);
	bench_close(&b);
}

/* A driver may be made before its ring is known. Shows: K36 */
static void test_without_a_ring_it_takes_nothing(void **state)
{
	struct vqb_driver_config config = { .struct_size = sizeof(config), .max_size = 8 };
	void *mem = bench_alloc(64, vqb_driver_size(&config));
	struct vqb_segment seg = bench_segment(1, 0);
	struct vqb_driver *drv = NULL;
	struct vqb_done done;
	void *token = mem;
	uint32_t n = 9;

	(void)state;
	assert_int_equal(vqb_driver_init(mem, vqb_driver_size(&config), &config, &drv), VQB_OK);
	assert_int_equal(vqb_driver_state(drv), VQB_E_INVALID);
	assert_int_equal(vqb_driver_add(drv, &seg, 1, 0, NULL), VQB_E_INVALID);
	vqb_driver_expose(drv);
	vqb_driver_disarm(drv);
	assert_int_equal(vqb_driver_publish(drv), VQB_QUIET);
	assert_int_equal(vqb_driver_turn(drv), VQB_QUIET);
	assert_int_equal(vqb_driver_arm(drv), VQB_QUIET);
	assert_int_equal(vqb_driver_postpone(drv, VQB_POSTPONE_EMPTIED), VQB_QUIET);
	assert_int_equal(vqb_driver_reap(drv, &done, 1), 0);
	assert_int_equal(vqb_driver_free(drv), 0);
	assert_int_equal(vqb_driver_in_flight(drv), 0);
	assert_int_equal(vqb_driver_pending(drv), 0);
	assert_int_equal(vqb_driver_oldest(drv, &token), 0);
	assert_ptr_equal(token, mem);
	assert_int_equal(vqb_driver_detach(drv, &token, 1, &n), VQB_OK);
	assert_int_equal(n, 0);
	free(mem);
}

static void test_a_ring_may_come_later(void **state)
{
	struct bench b;
	struct vqb_ring ring;

	(void)state;
	bench_configure(&b, 8, EVENT_MODE, 0, 0, VQB_INDIRECT_NEVER);
	ring = b.config.ring;
	b.config.ring = (struct vqb_ring){ .size = 0 };
	b.config.max_size = 8;
	b.mem = bench_alloc(64, vqb_driver_size(&b.config));
	assert_int_equal(vqb_driver_init(b.mem, vqb_driver_size(&b.config), &b.config, &b.drv),
			 VQB_OK);
	assert_int_equal(vqb_driver_reset(b.drv, &ring), VQB_OK);
	b.config.ring = ring;
	bench_attach(&b, &ring);
	bench_round(&b);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_sixteen_sizes_are_accepted),
		cmocka_unit_test(test_other_sizes_are_refused),
		cmocka_unit_test(test_a_ring_larger_than_max_size_is_refused),
		cmocka_unit_test(test_neither_a_ring_nor_a_max_size_is_refused),
		cmocka_unit_test(test_parts_off_their_alignment_are_refused),
		cmocka_unit_test(test_a_missing_part_is_refused),
		cmocka_unit_test(test_what_must_be_zero_is_looked_at),
		cmocka_unit_test(test_a_config_of_another_size_is_refused),
		cmocka_unit_test(test_a_policy_that_is_none_is_refused),
		cmocka_unit_test(test_tables_off_their_alignment_are_refused),
		cmocka_unit_test(test_driver_memory_off_its_alignment_is_refused),
		cmocka_unit_test(test_a_byte_too_little_is_too_little),
		cmocka_unit_test(test_the_static_bound_holds),
		cmocka_unit_test(test_size_counts_for_the_largest_ring_to_come),
		cmocka_unit_test(test_the_ring_is_set_to_its_first_state_and_no_byte_more),
		cmocka_unit_test(test_other_bits_of_the_ring_are_refused),
		cmocka_unit_test(test_sizes_keep_the_alignment),
		cmocka_unit_test(test_a_refused_ring_is_not_touched),
		cmocka_unit_test(test_the_configuration_is_not_kept),
		cmocka_unit_test(test_without_a_ring_it_takes_nothing),
		cmocka_unit_test(test_a_ring_may_come_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
