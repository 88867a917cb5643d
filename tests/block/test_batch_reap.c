/* SPDX-License-Identifier: BSD-3-Clause */
/* A batch of completions of several queues, on the driver's side. */
#include "driver_bench.h"

#include <vqblk/batch.h>

enum { QUEUES = 3, ROOM = 40, SIZE = 32 };

static struct bench bench[QUEUES];
static _Alignas(VQB_ALIGN) uint8_t mem[VQB_BATCH_BYTES(QUEUES, ROOM)];
static struct vqb_batch *batch;

/* `requests` of them in each queue, that have come back. Tokens say queue and number. */
static void open_all(uint32_t queues, uint32_t completions, const unsigned *requests)
{
	struct vqb_batch_config config = { .struct_size = sizeof(config),
					   .queues = queues,
					   .completions = completions };

	memset(mem, 0x5a, sizeof(mem));
	assert_int_equal(vqb_batch_init(mem, sizeof(mem), &config, &batch), VQB_OK);
	for (unsigned i = 0; i < QUEUES; i++) {
		bench_open(&bench[i], SIZE, FLAGS_MODE);
		for (unsigned k = 0; k < requests[i]; k++)
			bench_add(&bench[i], 100 * i + k, 1, 0);
		vqb_driver_publish(bench[i].drv);
		bench_serve(&bench[i]);
	}
}

static void close_all(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		bench_close(&bench[i]);
}

static uint64_t decisions(unsigned i)
{
	struct vqb_driver_counters count;

	vqb_driver_read_counters(bench[i].drv, &count);
	return count.notified + count.suppressed;
}

static void expect(uint32_t at, unsigned i, unsigned from, unsigned n)
{
	uint32_t all;
	const struct vqb_batch_entry *done = vqb_batch_done(batch, &all);

	assert_true(at + n <= all);
	for (unsigned k = 0; k < n; k++) {
		assert_ptr_equal(done[at + k].drv, bench[i].drv);
		assert_ptr_equal(done[at + k].done.token, bench_token(100 * i + from + k));
		assert_int_equal(done[at + k].done.flags, 0);
	}
}

static void test_all_queues_come_into_one_array_that_names_them(void **state)
{
	static const unsigned requests[QUEUES] = { 17, 1, 16 };
	const struct vqb_batch_queue *queue;
	uint64_t before[QUEUES];
	uint32_t n;

	(void)state;
	open_all(QUEUES, ROOM, requests);
	for (unsigned i = 0; i < QUEUES; i++) {
		before[i] = decisions(i);
		assert_int_equal(vqb_batch_reap(batch, bench[i].drv), VQB_OK);
	}
	vqb_batch_done(batch, &n);
	assert_int_equal(n, 34);
	expect(0, 0, 0, 17);
	expect(17, 1, 0, 1);
	expect(18, 2, 0, 16);
	/* Two of them go on, one of which has more to reap by then. */
	bench_add(&bench[0], 50, 1, 0);
	bench_add(&bench[2], 250, 1, 0);
	vqb_driver_expose(bench[2].drv);
	bench_serve(&bench[2]);
	queue = vqb_batch_turn(batch, &n);
	assert_int_equal(n, QUEUES);
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_ptr_equal(queue[i].drv, bench[i].drv);
		assert_null(queue[i].dev);
		assert_int_equal(queue[i].completions, requests[i]);
		/* Where nothing was added, there was nothing to decide. */
		assert_int_equal(decisions(i), before[i] + (i != 1));
	}
	assert_int_equal(queue[0].answer, VQB_NOTIFY);
	assert_int_equal(queue[1].answer, VQB_QUIET);
	assert_int_equal(queue[2].answer, VQB_NOTIFY | VQB_MORE);
	assert_int_equal(bench_visible(&bench[0]), 1);
	vqb_batch_done(batch, &n);
	assert_int_equal(n, 0);
	close_all();
}

static void test_a_full_array_loses_nothing(void **state)
{
	static const unsigned requests[QUEUES] = { 20, 30, 0 };
	uint32_t n;

	(void)state;
	open_all(QUEUES, 21, requests);
	assert_int_equal(vqb_batch_reap(batch, bench[0].drv), VQB_OK);
	assert_int_equal(vqb_batch_reap(batch, bench[1].drv), VQB_E_NOSPC);
	vqb_batch_done(batch, &n);
	assert_int_equal(n, 21);
	expect(0, 0, 0, 20);
	expect(20, 1, 0, 1);
	vqb_batch_publish(batch, &n);
	assert_int_equal(n, 2);
	assert_int_equal(vqb_batch_reap(batch, bench[1].drv), VQB_E_NOSPC);
	expect(0, 1, 1, 21);
	vqb_batch_publish(batch, &n);
	assert_int_equal(vqb_batch_reap(batch, bench[1].drv), VQB_OK);
	vqb_batch_done(batch, &n);
	assert_int_equal(n, 8);
	expect(0, 1, 22, 8);
	close_all();
}

static void test_a_queue_too_many_is_not_reaped(void **state)
{
	static const unsigned requests[QUEUES] = { 1, 0, 1 };
	const struct vqb_batch_queue *queue;
	uint32_t n;

	(void)state;
	open_all(2, ROOM, requests);
	assert_int_equal(vqb_batch_reap(batch, bench[0].drv), VQB_OK);
	assert_int_equal(vqb_batch_reap(batch, bench[1].drv), VQB_OK);
	assert_int_equal(vqb_batch_reap(batch, bench[2].drv), VQB_E_NOSPC);
	/* One that had nothing is in the batch all the same, and can be there twice. */
	assert_int_equal(vqb_batch_reap(batch, bench[1].drv), VQB_OK);
	queue = vqb_batch_publish(batch, &n);
	assert_int_equal(n, 2);
	assert_int_equal(queue[0].completions, 1);
	assert_int_equal(queue[1].completions, 0);
	assert_int_equal(bench_reap(&bench[2]), 200);
	close_all();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_queues_come_into_one_array_that_names_them),
		cmocka_unit_test(test_a_full_array_loses_nothing),
		cmocka_unit_test(test_a_queue_too_many_is_not_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
