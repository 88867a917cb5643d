/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole device over io_uring: a ring full of requests in flight, and the thread asleep meanwhile.
 */
#define _GNU_SOURCE

#include "blk_bench.h"
#include "image_bench.h"

enum { EACH = 4 /* sectors */, MANY = 120, SIZE = 512 };

static struct image image;
static struct vqb_notify notify;

static int up(void **state)
{
	image = (struct image){ 0 };
	return vqb_notify_open(&notify) || bench_up(state);
}

static int down(void **state)
{
	image_close(&image);
	vqb_notify_close(&notify);
	return bench_down(state);
}

/* The bench with a backend of this kind instead of its own. */
static struct bench *open_device(void **state, enum image_kind kind, uint32_t entries,
				 uint64_t features)
{
	struct bench *b = bench_plan(state);

	image = (struct image){
		.kind = kind, .bytes = SECTORS * 512, .entries = entries, .notify = &notify
	};
	if (!image_open(&image))
		skip();
	bench_ring(b, SIZE);
	b->config.requests = MANY;
	b->config.features = features;
	bench_start(b);
	b->config.backend = image.backend;
	assert_int_equal(bench_queue(b), VQB_OK);
	return b;
}

/* As a thread does: runs, and sleeps until a completion signals. */
static unsigned serve_all(struct bench *b)
{
	unsigned sleeps = 0;

	for (bench_run(b); bench_used(b) < b->asks; bench_run(b)) {
		assert_int_equal(vqb_notify_wait(&notify, 10000), VQB_OK);
		sleeps++;
	}
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	return sleeps;
}

static void assert_read(const struct bench *b, unsigned r, uint64_t sector)
{
	uint8_t found[EACH * 512 + 1];

	bench_assert_reply(b, r, VQB_BLK_S_OK, EACH * 512 + 1);
	bench_written(b, r, found);
	for (unsigned i = 0; i < EACH * 512; i++)
		assert_int_equal(found[i], image_byte(sector * 512 + i));
}

static void mixed(void **state, enum image_kind kind, uint32_t entries)
{
	const uint64_t features = VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_FLUSH);
	struct bench *b = open_device(state, kind, entries, features);
	uint8_t found[EACH * 512];

	for (unsigned r = 0; r < MANY; r++) {
		if (r % 3 == 0)
			bench_read(b, r * EACH, EACH);
		else if (r % 3 == 1)
			bench_write(b, r * EACH, EACH);
		else if (r % 12 == 2)
			bench_flush(b);
		else
			bench_ask(b, VQB_BLK_IN, r * EACH, CUT(9, 7), CUT(700, 1, 1347, 0, 1));
	}
	serve_all(b);
	for (unsigned r = 0; r < MANY; r++) {
		if (r % 3 == 0 || (r % 3 == 2 && r % 12 != 2)) {
			assert_read(b, r, r * EACH);
			continue;
		}
		bench_assert_reply(b, r, VQB_BLK_S_OK, 1);
		if (r % 3 == 1) {
			image_peek(&image, found, r * EACH * 512, sizeof(found));
			assert_true(bench_is(found, PATTERN, sizeof(found)));
		}
	}
}

static void test_a_ring_full_of_requests_comes_back(void **state)
{
	mixed(state, URING, 128);
}

static void test_a_ring_full_of_requests_comes_back_through_a_small_backend(void **state)
{
	mixed(state, URING, 5);
}

/* Guest memory is as odd as the bench makes it, so all of it bounces. */
static void test_a_ring_full_of_requests_comes_back_past_the_page_cache(void **state)
{
	mixed(state, URING_DIRECT, 128);
}

static void test_a_batch_is_one_system_call(void **state)
{
	struct bench *b = open_device(state, URING, 128,
				      VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_FLUSH));
	struct vqb_uring_counters c;

	for (unsigned r = 0; r < 100; r++)
		bench_read(b, r * EACH, EACH);
	serve_all(b);
	vqb_uring_read_counters(image.backend, &c);
	assert_int_equal(c.ios, 100);
	assert_int_equal(c.system_calls, 1);
	for (unsigned r = 0; r < 100; r++)
		assert_read(b, r, r * EACH);
}

/* A driver that left FLUSH has every write flushed before it completes. */
/* Shows: BLK-DEV-18 */
static void test_without_flush_each_write_has_a_flush_of_its_own(void **state)
{
	struct bench *b = open_device(state, URING, 128, VQB_FEATURE(VQB_F_VERSION_1));
	struct vqb_uring_counters c;

	for (unsigned r = 0; r < 10; r++)
		bench_write(b, r * EACH, EACH);
	serve_all(b);
	vqb_uring_read_counters(image.backend, &c);
	assert_int_equal(c.ios, 10);
	assert_int_equal(c.steps, 20);
}

/* The device's blocks are smaller than what the disk takes. */
static void test_blocks_smaller_than_the_disk_takes_are_refused(void **state)
{
	struct bench *b = bench_plan(state);

	image = (struct image){ .kind = URING_DIRECT, .dir = "/dev/shm", .bytes = SECTORS * 512 };
	if (!image_open(&image))
		skip();
	bench_start(b);
	b->config.backend = image.backend;
	assert_int_equal(bench_queue(b),
			 image.backend->caps.alignment > 512 ? VQB_E_INVALID : VQB_OK);
	image.backend->caps.alignment = 512;
	assert_int_equal(bench_queue(b), VQB_OK);
}

#define queue_test(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		queue_test(test_a_ring_full_of_requests_comes_back),
		queue_test(test_a_ring_full_of_requests_comes_back_through_a_small_backend),
		queue_test(test_a_ring_full_of_requests_comes_back_past_the_page_cache),
		queue_test(test_a_batch_is_one_system_call),
		queue_test(test_without_flush_each_write_has_a_flush_of_its_own),
		queue_test(test_blocks_smaller_than_the_disk_takes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
