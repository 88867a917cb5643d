/* SPDX-License-Identifier: BSD-3-Clause */
/* A batch of completions of several queues, on the device's side: one decision for each queue. */
#include <vqblk/batch.h>

#include "device_bench.h"

enum { QUEUES = 3, MOST = 2 };

static void *state_of[QUEUES];
static struct bench *bench[QUEUES];
static _Alignas(VQB_ALIGN) uint8_t mem[VQB_BATCH_BYTES(QUEUES, 0)];
static struct vqb_batch *batch;

static int up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < QUEUES; i++) {
		if (bench_up(&state_of[i]))
			return -1;
		bench[i] = bench_open(&state_of[i], 8, 0);
		vqb_device_publish(bench[i]->dev); /* the one that is owed after init */
	}
	return 0;
}

static int down(void **state)
{
	int status = 0;

	(void)state;
	for (unsigned i = 0; i < QUEUES; i++)
		status |= bench_down(&state_of[i]);
	return status;
}

static void open_batch(uint32_t queues)
{
	struct vqb_batch_config config = { .struct_size = sizeof(config), .queues = queues };

	memset(mem, 0x5a, sizeof(mem));
	assert_int_equal(vqb_batch_init(mem, sizeof(mem), &config, &batch), VQB_OK);
}

static struct vqb_ticket take(unsigned i, unsigned head)
{
	bench_offer_writable(bench[i], head);
	return bench_take_ticket(bench[i]);
}

static uint64_t decisions(unsigned i)
{
	struct vqb_device_counters count;

	vqb_device_read_counters(bench[i]->dev, &count);
	return count.notified + count.suppressed;
}

static void test_each_queue_is_published_once_with_all_of_its_chains_in_order(void **state)
{
	const struct vqb_batch_queue *queue;
	struct vqb_ticket ticket[QUEUES][4];
	uint64_t before[QUEUES];
	uint32_t n = 77;

	(void)state;
	open_batch(QUEUES);
	for (unsigned k = 0; k < 12; k++)
		ticket[k % 3][k / 3] = take(k % 3, k / 3);
	for (unsigned i = 0; i < QUEUES; i++)
		before[i] = decisions(i);
	/* Queue 1 first, the others in turn; heads in an order of their own. */
	for (unsigned k = 0; k < 12; k++) {
		unsigned i = (k + 1) % 3, head = (k / 3 * 3 + i) % 4;

		assert_int_equal(vqb_batch_put(batch, bench[i]->dev, ticket[i][head], head + 1),
				 VQB_OK);
	}
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(raw_used_idx(&bench[i]->ring), 0);
	poke(bench[2]->ring.avail, 1, 2); /* its driver wants no notification */
	queue = vqb_batch_publish(batch, &n);
	assert_int_equal(n, QUEUES);
	for (unsigned k = 0; k < QUEUES; k++) {
		unsigned i = (k + 1) % 3;

		assert_ptr_equal(queue[k].dev, bench[i]->dev);
		assert_null(queue[k].drv);
		assert_int_equal(queue[k].answer, i == 2 ? VQB_QUIET : VQB_NOTIFY);
		assert_int_equal(queue[k].completions, 4);
		assert_int_equal(decisions(i), before[i] + 1);
		assert_int_equal(raw_used_idx(&bench[i]->ring), 4);
		for (unsigned at = 0; at < 4; at++)
			bench_assert_used(bench[i], at, (at * 3 + i) % 4, (at * 3 + i) % 4 + 1);
	}
}

static void test_an_ended_batch_is_empty(void **state)
{
	struct vqb_ticket ticket;
	uint32_t n = 77;

	(void)state;
	open_batch(QUEUES);
	vqb_batch_publish(batch, &n);
	assert_int_equal(n, 0);
	ticket = take(0, 0);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket, 0), VQB_OK);
	vqb_batch_publish(batch, &n);
	assert_int_equal(n, 1);
	vqb_batch_turn(batch, &n);
	assert_int_equal(n, 0);
	ticket = take(0, 1);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket, 0), VQB_OK);
	assert_int_equal(vqb_batch_publish(batch, &n)->completions, 1);
	ticket = take(1, 0);
	assert_int_equal(vqb_batch_put(batch, bench[1]->dev, ticket, 0), VQB_OK);
	assert_ptr_equal(vqb_batch_publish(batch, &n)->dev, bench[1]->dev);
	assert_int_equal(n, 1);
}

static void test_a_full_batch_puts_nothing(void **state)
{
	struct vqb_ticket ticket[QUEUES], more;
	uint32_t n;

	(void)state;
	open_batch(MOST);
	for (unsigned i = 0; i < QUEUES; i++)
		ticket[i] = take(i, 0);
	more = take(0, 1);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket[0], 0), VQB_OK);
	assert_int_equal(vqb_batch_put(batch, bench[1]->dev, ticket[1], 0), VQB_OK);
	assert_int_equal(vqb_batch_put(batch, bench[2]->dev, ticket[2], 0), VQB_E_NOSPC);
	assert_int_equal(vqb_device_holds(bench[2]->dev, ticket[2]), VQB_OK);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, more, 0), VQB_OK);
	vqb_batch_publish(batch, &n);
	assert_int_equal(n, MOST);
	assert_int_equal(vqb_batch_put(batch, bench[2]->dev, ticket[2], 0), VQB_OK);
	assert_int_equal(vqb_batch_publish(batch, &n)->completions, 1);
	assert_int_equal(n, 1);
}

static void test_what_cannot_be_put_is_said_and_changes_nothing(void **state)
{
	struct vqb_ticket ticket;
	uint32_t n;

	(void)state;
	open_batch(MOST);
	ticket = take(0, 0);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket, 17), VQB_E_INVALID);
	vqb_batch_publish(batch, &n);
	assert_int_equal(n, 0);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket, 16), VQB_OK);
	assert_int_equal(vqb_batch_put(batch, bench[0]->dev, ticket, 16), VQB_E_STALE);
	assert_int_equal(vqb_batch_put(batch, bench[1]->dev, ticket, 16), VQB_E_STALE);
	assert_int_equal(vqb_batch_publish(batch, &n)->completions, 1);
	assert_int_equal(n, 1);
	assert_int_equal(raw_used_idx(&bench[0]->ring), 1);
	assert_int_equal(raw_used_idx(&bench[1]->ring), 0);
}

/* Whoever goes to sleep afterwards is told that there is more to take. */
static void test_turn_answers_more_for_the_queues_that_have_some(void **state)
{
	const struct vqb_batch_queue *queue;
	struct vqb_ticket ticket[2];
	uint32_t n;

	(void)state;
	open_batch(QUEUES);
	for (unsigned i = 0; i < 2; i++) {
		ticket[i] = take(i, 0);
		assert_int_equal(vqb_batch_put(batch, bench[i]->dev, ticket[i], 0), VQB_OK);
	}
	bench_offer_writable(bench[1], 5);
	queue = vqb_batch_turn(batch, &n);
	assert_int_equal(n, 2);
	assert_int_equal(queue[0].answer, VQB_NOTIFY);
	assert_int_equal(queue[1].answer, VQB_NOTIFY | VQB_MORE);
}

static void test_a_configuration_that_makes_no_sense_is_refused(void **state)
{
	const struct vqb_batch_config good = { .struct_size = sizeof(good), .queues = QUEUES };
	struct vqb_batch_config bad;
	struct vqb_batch *b = NULL;

	(void)state;
	assert_int_equal(vqb_batch_size(NULL), 0);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		bad = good;                                                                        \
		bad.field = (value);                                                               \
		assert_int_equal(vqb_batch_size(&bad), 0);                                         \
		assert_int_equal(vqb_batch_init(mem, sizeof(mem), &bad, &b), VQB_E_INVALID);       \
	} while (0)
	REFUSED(struct_size, 0);
	REFUSED(zero, 1);
	REFUSED(queues, 0);
	REFUSED(queues, (1 << 20) + 1);
	REFUSED(completions, (1 << 20) + 1);
	assert_int_equal(vqb_batch_init(mem + 8, sizeof(mem) - 8, &good, &b), VQB_E_INVALID);
	assert_int_equal(vqb_batch_init(NULL, sizeof(mem), &good, &b), VQB_E_INVALID);
	assert_int_equal(vqb_batch_init(mem, sizeof(mem), &good, NULL), VQB_E_INVALID);
	assert_int_equal(vqb_batch_init(mem, vqb_batch_size(&good) - 1, &good, &b), VQB_E_TOOBIG);
	assert_null(b);
	for (bad = good; bad.queues < 300; bad.queues++) {
		bad.completions = bad.queues * 7 % 64;
		assert_in_range(vqb_batch_size(&bad), 1,
				VQB_BATCH_BYTES(bad.queues, bad.completions));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_queue_is_published_once_with_all_of_its_chains_in_order, up,
			down),
		cmocka_unit_test_setup_teardown(test_an_ended_batch_is_empty, up, down),
		cmocka_unit_test_setup_teardown(test_a_full_batch_puts_nothing, up, down),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_put_is_said_and_changes_nothing,
						up, down),
		cmocka_unit_test_setup_teardown(
			test_turn_answers_more_for_the_queues_that_have_some, up, down),
		cmocka_unit_test(test_a_configuration_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
