/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_policy_leaks.c: whatever the policy and whatever goes wrong, descriptors and tables come
 * back. Random requests, good and bad, complete in random order.
 */
#include "policy_bench.h"

enum { SIZE = 16, TABLES = 5, LENGTH = 6, STEPS = 20000 };

static uint32_t moody(void *context, const struct vqb_indirect_load *load)
{
	(void)load;
	return bench_random((uint64_t *)context, 2);
}

static uint64_t ticking(void *context)
{
	uint64_t *seed = (uint64_t *)context;

	return *seed += bench_random(seed, 1000) * UINT64_C(4) + 1;
}

/* Every way to be refused: an empty segment anywhere, too many bytes, too many segments. */
static void add_bad(struct bench *b, uint64_t *seed)
{
	uint32_t n = 2 + bench_random(seed, SIZE), wrong = bench_random(seed, n);
	struct vqb_segment seg[SIZE + 2];
	uint32_t free = vqb_driver_free(b->drv);
	int32_t status;

	for (uint32_t i = 0; i < n; i++)
		seg[i] = (struct vqb_segment){ BENCH_DATA_AT, 0xffffffff, 0 };
	if (bench_random(seed, 2))
		seg[wrong].len = 0;
	status = vqb_driver_add(b->drv, seg, 1, n - 1, NULL);
	assert_true(status == VQB_E_INVALID || status == VQB_E_TOOBIG || status == VQB_E_NOSPC);
	assert_int_equal(vqb_driver_free(b->drv), free);
}

/* Gives back one of the requests that the device has, at random. */
static void give_one(struct bench *b, unsigned *held, uint32_t *holds, uint64_t *seed)
{
	uint32_t which = bench_random(seed, *holds);

	bench_give(b, held[which], 0);
	held[which] = held[--*holds];
}

static void churn(struct bench *b, uint64_t seed)
{
	unsigned held[SIZE];
	uint32_t holds = 0;

	for (int step = 0; step < STEPS; step++) {
		uint32_t what = bench_random(&seed, 8);

		if (what == 0)
			add_bad(b, &seed);
		else if (what < 4)
			(void)bench_try_add(b, 1, 1, bench_random(&seed, SIZE));
		vqb_driver_publish(b->drv);
		while (bench_visible(b))
			held[holds++] = bench_take(b);
		if (what >= 4 && holds) {
			give_one(b, held, &holds, &seed);
			bench_reap(b);
		}
	}
	while (holds) {
		give_one(b, held, &holds, &seed);
		bench_reap(b);
	}
}

/* All descriptors and all tables are there. */
static void expect_all(struct bench *b)
{
	struct vqb_indirect_policy always = { .struct_size = sizeof(always),
					      .kind = VQB_INDIRECT_ALWAYS };

	assert_int_equal(vqb_driver_free(b->drv), SIZE);
	assert_int_equal(vqb_driver_set_policy(b->drv, &always), VQB_OK);
	for (int i = 0; i < TABLES; i++)
		assert_int_equal(policy_add(b, LENGTH), 1);
	assert_int_equal(policy_add(b, 2), 0);
	assert_int_equal(vqb_driver_free(b->drv), SIZE - TABLES - 2);
	policy_drain(b);
}

static void expect_every_request_counted_once(const struct bench *b)
{
	struct vqb_driver_counters c = policy_counters(b);

	assert_int_equal(c.direct_single + c.direct_chosen + c.direct_no_table + c.indirect_chosen +
				 c.indirect_whole + c.indirect_no_room,
			 c.requests);
	assert_int_equal(c.completions, c.requests);
	assert_true(c.requests > STEPS / 8);
}

static void test_nothing_is_lost_under_any_policy(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t kind = VQB_INDIRECT_ADAPTIVE; kind <= VQB_INDIRECT_CUSTOM; kind++) {
		uint64_t seed = 99 + kind;

		bench_configure(&b, SIZE, EVENT_MODE | INDIRECT, TABLES, LENGTH, kind);
		b.policy.threshold = kind == VQB_INDIRECT_THRESHOLD ? 4 : 0;
		b.policy.choose = kind == VQB_INDIRECT_CUSTOM ? moody : NULL;
		b.policy.clock = kind == VQB_INDIRECT_ADAPTIVE ? ticking : NULL;
		b.policy.context = &seed;
		bench_start(&b);
		churn(&b, 7 * kind + 1);
		expect_every_request_counted_once(&b);
		expect_all(&b);
		bench_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost_under_any_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
