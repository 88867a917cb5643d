/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capacity changes while the disk is in use: who looks at it meanwhile sees it as it was or as
 * it is, never a mix, and never waits. (The probe's loads and stores are where the other thread
 * acts.)
 */
#include "blk_bench.h"
#include "probe_port.h"

#define BOTH(n) ((uint64_t)(n) << 32 | (n)) /* a capacity that tells when it is torn */

static _Alignas(64) uint8_t memory[VQB_BLK_DEVICE_BYTES];

static struct vqb_blk_device *disk_of(uint64_t capacity)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits), .capacity = capacity };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.features = VQB_FEATURE(VQB_BLK_F_FLUSH) |
							    VQB_FEATURE(VQB_BLK_F_CONFIG_WCE),
						.limits = &limits };
	struct vqb_blk_device *dev;

	assert_int_equal(vqb_blk_device_init(memory, sizeof(memory), &config, &dev), VQB_OK);
	return dev;
}

static int reset_probe(void **state)
{
	(void)state;
	probe_load = NULL;
	probe_store = NULL;
	return 0;
}

/* ---- the other thread ---- */

static struct vqb_blk_device *device;
static unsigned accesses, act_at, acts; /* acts so often before that access */
static uint32_t next_size;

static void resize_between(const void *p, unsigned bytes)
{
	(void)p;
	(void)bytes;
	if (accesses++ != act_at)
		return;
	for (unsigned i = 0; i < acts; i++, next_size++)
		assert_int_equal(vqb_blk_device_resize(device, BOTH(next_size)), VQB_OK);
}

/* In front of the load with that number, not of those that the resize itself makes. */
static void on_load(const void *p, unsigned bytes)
{
	probe_load = NULL;
	resize_between(p, bytes);
	probe_load = on_load;
}

static void interrupt_loads(struct vqb_blk_device *dev, unsigned at, unsigned times)
{
	device = dev;
	accesses = 0;
	act_at = at;
	acts = times;
	next_size = 0x200;
	probe_load = on_load;
}

static void assert_whole(uint64_t capacity)
{
	assert_int_equal(capacity >> 32, (uint32_t)capacity);
	assert_in_range((uint32_t)capacity, 0x100, 0x2ff);
}

/* Shows: BF-DEV-13 BLK-DEV-06 */
static void test_a_reader_sees_the_capacity_whole_wherever_it_changes(void **state)
{
	(void)state;
	for (unsigned times = 0; times < 5; times++) {
		for (unsigned at = 0; at < 12; at++) {
			struct vqb_blk_device *dev = disk_of(BOTH(0x100));
			uint8_t space[8];

			interrupt_loads(dev, at, times);
			assert_whole(vqb_blk_device_capacity(dev));
			assert_true(accesses < 20);
			interrupt_loads(dev, at, times);
			vqb_blk_device_read_config(dev, 0, space, 8);
			assert_whole(peek(space, 8));
			probe_load = NULL;
		}
	}
}

/* As a driver has to: in 32 bits at a time, between two looks at the generation. */
/* Shows: BF-DEV-13 */
static void test_the_generation_tells_that_two_reads_do_not_belong_together(void **state)
{
	unsigned told = 0;

	(void)state;
	for (unsigned at = 0; at < 12; at++) {
		struct vqb_blk_device *dev = disk_of(BOTH(0x100));
		uint32_t before, after;
		uint8_t low[4], high[4];

		interrupt_loads(dev, at, 1);
		before = vqb_blk_device_generation(dev);
		vqb_blk_device_read_config(dev, 0, low, 4);
		vqb_blk_device_read_config(dev, 4, high, 4);
		after = vqb_blk_device_generation(dev);
		probe_load = NULL;
		if (before == after)
			assert_int_equal(peek(low, 4), peek(high, 4));
		else
			told++;
	}
	assert_true(told > 0);
}

static uint64_t now, later;

static void on_store(const void *p, uint64_t v, unsigned bytes)
{
	uint64_t seen = vqb_blk_device_capacity(device);

	(void)p;
	(void)v;
	(void)bytes;
	assert_true(seen == now || seen == later);
	accesses++;
}

/* However long the resize is held up, nobody else is. */
static void test_a_reader_never_waits_for_a_change(void **state)
{
	struct vqb_blk_device *dev = disk_of(BOTH(0x100));

	(void)state;
	device = dev;
	now = BOTH(0x100);
	for (uint32_t i = 1; i < 10; i++) {
		later = BOTH(0x100 + i);
		accesses = 0;
		probe_store = on_store;
		assert_int_equal(vqb_blk_device_resize(dev, later), VQB_OK);
		probe_store = NULL;
		assert_true(accesses >= 3);
		now = later;
		assert_int_equal(vqb_blk_device_capacity(dev), now);
	}
}

/* ---- what a change is ---- */

static void test_only_a_change_by_the_device_moves_the_generation(void **state)
{
	struct vqb_blk_device *dev = disk_of(1000);
	uint32_t first = vqb_blk_device_generation(dev);
	uint8_t space[8];

	(void)state;
	assert_int_equal(vqb_blk_device_resize(dev, 1000), VQB_OK);
	assert_int_equal(vqb_blk_device_accept(dev, vqb_blk_device_features(dev)), VQB_OK);
	assert_int_equal(vqb_blk_device_write_config(dev, 32, "", 1), VQB_OK);
	assert_int_equal(vqb_blk_device_generation(dev), first);
	assert_int_equal(vqb_blk_device_resize(dev, 1001), VQB_OK);
	assert_int_not_equal(vqb_blk_device_generation(dev), first);
	assert_int_equal(vqb_blk_device_capacity(dev), 1001);
	vqb_blk_device_read_config(dev, 0, space, 8);
	assert_int_equal(peek(space, 8), 1001);
	first = vqb_blk_device_generation(dev);
	assert_int_equal(vqb_blk_device_resize(dev, UINT64_C(1) << 55), VQB_E_INVALID);
	assert_int_equal(vqb_blk_device_generation(dev), first);
	assert_int_equal(vqb_blk_device_capacity(dev), 1001);
	assert_int_equal(vqb_blk_device_resize(dev, 0), VQB_OK);
	assert_int_equal(vqb_blk_device_capacity(dev), 0);
}

/* ---- a queue that is at work ---- */

/* Shows: BLK-DEV-06 */
static void test_requests_are_checked_against_the_present_capacity(void **state)
{
	struct bench *b = bench_plan(state);
	unsigned r[4];

	b->limits.capacity = 100;
	bench_start(b);
	r[0] = bench_read(b, 100, 1);
	bench_run(b);
	bench_assert_reply(b, r[0], VQB_BLK_S_IOERR, 0);
	assert_int_equal(vqb_blk_device_resize(b->blk, 200), VQB_OK);
	r[1] = bench_read(b, 100, 100);
	bench_run(b);
	bench_assert_reply(b, r[1], VQB_BLK_S_OK, 51201);
	assert_int_equal(vqb_blk_device_resize(b->blk, 50), VQB_OK);
	r[2] = bench_write(b, 50, 1);
	r[3] = bench_write(b, 49, 1);
	bench_run(b);
	bench_assert_reply(b, r[2], VQB_BLK_S_IOERR, 1);
	bench_assert_reply(b, r[3], VQB_BLK_S_OK, 1);
}

static void test_a_queue_goes_as_far_as_its_backend_has_grown(void **state)
{
	struct bench *b = bench_plan(state);
	uint64_t all;
	unsigned r[3];

	b->limits.capacity = 100;
	bench_start(b);
	all = b->spy.base.caps.bytes;
	b->spy.base.caps.bytes = 100 * 512;
	assert_int_equal(vqb_blk_device_resize(b->blk, 150), VQB_OK);
	r[0] = bench_read(b, 100, 1);
	bench_run(b);
	bench_assert_reply(b, r[0], VQB_BLK_S_IOERR, 0);
	b->spy.base.caps.bytes = all;
	assert_int_equal(vqb_blk_device_resize(b->blk, 200), VQB_OK);
	r[1] = bench_read(b, 199, 1);
	r[2] = bench_read(b, 200, 1);
	bench_run(b);
	bench_assert_reply(b, r[1], VQB_BLK_S_OK, 513);
	bench_assert_reply(b, r[2], VQB_BLK_S_IOERR, 0);
}

/* It was good when it was taken, and is carried on with, in parts and all. */
static void test_a_request_under_way_is_not_cut_by_a_smaller_capacity(void **state)
{
	struct bench *b = bench_open(state);
	unsigned r = bench_read(b, 900, 4);

	b->spy.manual = 1;
	b->spy.part = 512;
	bench_run(b);
	assert_int_equal(vqb_blk_device_resize(b->blk, 50), VQB_OK);
	for (unsigned i = 0; i < 4; i++) {
		spy_finish(&b->spy, 0);
		bench_run(b);
	}
	bench_assert_reply(b, r, VQB_BLK_S_OK, 2049);
}

/* A disk that claims more than its backend holds reads no further than that. */
static void test_nothing_is_asked_of_a_backend_beyond_its_end(void **state)
{
	struct bench *b = bench_open(state);
	unsigned past, last;

	assert_int_equal(vqb_blk_device_resize(b->blk, SECTORS + 8), VQB_OK);
	past = bench_read(b, SECTORS, 1);
	last = bench_read(b, SECTORS - 1, 1);
	bench_run(b);
	assert_int_equal(b->spy.calls, 1);
	bench_assert_reply(b, past, VQB_BLK_S_IOERR, 0);
	bench_assert_reply(b, last, VQB_BLK_S_OK, 513);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_reader_sees_the_capacity_whole_wherever_it_changes,
					  reset_probe),
		cmocka_unit_test_teardown(
			test_the_generation_tells_that_two_reads_do_not_belong_together,
			reset_probe),
		cmocka_unit_test_teardown(test_a_reader_never_waits_for_a_change, reset_probe),
		cmocka_unit_test(test_only_a_change_by_the_device_moves_the_generation),
		bench_test(test_requests_are_checked_against_the_present_capacity),
		bench_test(test_a_queue_goes_as_far_as_its_backend_has_grown),
		bench_test(test_a_request_under_way_is_not_cut_by_a_smaller_capacity),
		bench_test(test_nothing_is_asked_of_a_backend_beyond_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
