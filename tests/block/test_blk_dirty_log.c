/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of dirty pages under a blk queue: a copy of guest memory that takes over what the log is
 * told of, when it is told, and nothing else, is in the end what guest memory is.
 */
#include "blk_bench.h"

static struct bench *bench;
static uint8_t copy[RAM_BYTES];
static unsigned calls;

static void note(void *context, uint64_t addr, uint64_t len)
{
	assert_ptr_equal(context, copy);
	assert_true(addr >= RAM && len <= RAM + RAM_BYTES - addr);
	memcpy(copy + (addr - RAM), bench->ram + (addr - RAM), (size_t)len);
	calls++;
}

static struct bench *open_logged(void **state)
{
	struct bench *b = bench_plan(state);

	b->memory.log = note;
	b->memory.context = copy;
	bench = b;
	bench_start(b);
	return b;
}

/* The driver's own writes are in the copy; from now on the device's have to come by the log. */
static void begin(const struct bench *b)
{
	memcpy(copy, b->ram, RAM_BYTES);
	calls = 0;
}

static void assert_copy_is_good(const struct bench *b)
{
	assert_memory_equal(copy, b->ram, RAM_BYTES);
}

static void test_every_kind_of_request_is_logged(void **state)
{
	struct bench *b = open_logged(state);
	unsigned r[6];

	r[0] = bench_read(b, 3, 2);
	r[1] = bench_write(b, 9, 1);
	r[2] = bench_flush(b);
	r[3] = bench_ask(b, VQB_BLK_GET_ID, 0, CUT(16), CUT(7, 13, 1));
	r[4] = bench_ask(b, 99, 0, CUT(16), CUT(1));
	r[5] = bench_read(b, SECTORS, 1);
	begin(b);
	bench_run(b);
	assert_copy_is_good(b);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(bench_status(b, r[i]), VQB_BLK_S_OK);
	assert_int_equal(bench_status(b, r[4]), VQB_BLK_S_UNSUPP);
	assert_int_equal(bench_status(b, r[5]), VQB_BLK_S_IOERR);
	assert_int_equal(bench_used(b), 6);
}

static void test_read_that_is_cut_in_many_buffers_is_logged(void **state)
{
	struct bench *b = open_logged(state);

	bench_ask(b, VQB_BLK_IN, 5, CUT(16), CUT(1, 510, 3, 1022, 512, 1));
	begin(b);
	bench_run(b);
	assert_copy_is_good(b);
}

static void test_read_in_parts_is_logged(void **state)
{
	struct bench *b = open_logged(state);
	unsigned r = bench_ask(b, VQB_BLK_IN, 5, CUT(16), CUT(700, 1348, 1));

	b->spy.part = 300;
	begin(b);
	bench_run(b);
	assert_copy_is_good(b);
	bench_assert_reply(b, r, VQB_BLK_S_OK, 2049);
}

/* The backend wrote, and then says that it failed: how much it wrote is anybody's guess. */
static void test_failed_read_is_logged(void **state)
{
	struct bench *b = open_logged(state);
	unsigned r = bench_read(b, 1, 1);

	b->spy.manual = 1;
	begin(b);
	bench_run(b);
	memset(b->asked[r].at[1], 0x11, 200);
	b->spy.fail = VQB_E_IO;
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_copy_is_good(b);
	assert_int_equal(bench_status(b, r), VQB_BLK_S_IOERR);
}

static void test_read_that_comes_too_late_is_logged(void **state)
{
	struct bench *b = open_logged(state);

	b->spy.manual = 1;
	bench_read(b, 1, 1);
	begin(b);
	bench_run(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	spy_finish(&b->spy, 0);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_copy_is_good(b);
}

/* Data and status are in the copy when the used index shows the request. */
static void test_log_is_told_before_the_driver_sees(void **state)
{
	struct bench *b = open_logged(state);
	unsigned r = bench_read(b, 4, 1);

	b->spy.manual = 1;
	begin(b);
	bench_run(b);
	spy_finish(&b->spy, 0);
	vqb_blk_queue_quiesce(b->queue); /* puts, and does not publish */
	assert_int_equal(bench_used(b), 0);
	assert_memory_equal(copy + (b->asked[r].at[1] - b->ram), b->disk + 4 * 512, 512);
	assert_int_equal(copy[b->asked[r].at[2] - b->ram], VQB_BLK_S_OK);
}

static void test_log_that_is_switched_on_while_a_read_is_out(void **state)
{
	struct bench *b = bench_open(state);
	struct vqb_memory later = b->memory;

	bench = b;
	b->spy.manual = 1;
	bench_read(b, 4, 1);
	bench_run(b);
	later.generation++;
	later.log = note;
	later.context = copy;
	assert_int_equal(vqb_device_set_memory(b->dev, &later), VQB_OK);
	begin(b);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_copy_is_good(b);
	assert_true(calls > 0);
	/* And off again. */
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	begin(b);
	bench_read(b, 5, 1);
	bench_run(b);
	spy_finish(&b->spy, 0);
	bench_run(b);
	assert_int_equal(calls, 0);
	assert_int_equal(bench_used(b), 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_every_kind_of_request_is_logged),
		bench_test(test_read_that_is_cut_in_many_buffers_is_logged),
		bench_test(test_read_in_parts_is_logged),
		bench_test(test_failed_read_is_logged),
		bench_test(test_read_that_comes_too_late_is_logged),
		bench_test(test_log_is_told_before_the_driver_sees),
		bench_test(test_log_that_is_switched_on_while_a_read_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
