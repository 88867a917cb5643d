/* SPDX-License-Identifier: BSD-3-Clause */
/* test_policy_kinds.c: what each kind of policy decides, and the rules that hold under all. */
#include "policy_bench.h"

static void test_always_is_whatever_has_more_than_one_segment(void **state)
{
	struct bench b;

	(void)state;
	policy_open(&b, 16, VQB_INDIRECT_ALWAYS);
	assert_int_equal(policy_add(&b, 1), 0);
	for (uint32_t n = 2; n <= 14; n++)
		assert_int_equal(policy_add(&b, n), 1);
	bench_close(&b);
}

static void test_never_refuses_what_only_a_table_could_hold(void **state)
{
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_NEVER);
	assert_int_equal(policy_add(&b, 5), 0);
	assert_int_equal(bench_try_add(&b, 1, 2, 2), VQB_E_NOSPC);
	assert_int_equal(policy_add(&b, 3), 0);
	bench_close(&b);
}

static void test_a_threshold_is_met_from_its_number_on(void **state)
{
	struct bench b;

	(void)state;
	policy_configure(&b, 64, VQB_INDIRECT_THRESHOLD);
	b.policy.threshold = 4;
	bench_start(&b);
	assert_int_equal(policy_add(&b, 1), 0);
	assert_int_equal(policy_add(&b, 3), 0);
	assert_int_equal(policy_add(&b, 4), 1);
	assert_int_equal(policy_add(&b, 5), 1);
	assert_int_equal(policy_add(&b, 2), 0);
	bench_close(&b);
}

static void test_a_threshold_of_one_does_not_catch_one(void **state)
{
	struct bench b;

	(void)state;
	policy_configure(&b, 8, VQB_INDIRECT_THRESHOLD);
	b.policy.threshold = 1;
	bench_start(&b);
	assert_int_equal(policy_add(&b, 1), 0);
	assert_int_equal(policy_add(&b, 2), 1);
	bench_close(&b);
}

/* ---- custom ---- */

struct chooser {
	struct vqb_indirect_load seen;
	unsigned calls;
	uint32_t answer;
};

static uint32_t choose(void *context, const struct vqb_indirect_load *load)
{
	struct chooser *c = (struct chooser *)context;

	c->seen = *load;
	c->calls++;
	return c->answer;
}

static void open_custom(struct bench *b, struct chooser *c, uint32_t tables)
{
	memset(c, 0, sizeof(*c));
	bench_configure(b, 16, EVENT_MODE | INDIRECT, tables, 6, VQB_INDIRECT_CUSTOM);
	b->policy.choose = choose;
	b->policy.context = c;
	bench_start(b);
}

static void test_a_custom_policy_sees_the_queue_and_decides(void **state)
{
	struct chooser c;
	struct bench b;

	(void)state;
	open_custom(&b, &c, 3);
	assert_int_equal(policy_add(&b, 3), 0);
	assert_int_equal(c.seen.segments, 3);
	assert_int_equal(c.seen.size, 16);
	assert_int_equal(c.seen.free, 16);
	assert_int_equal(c.seen.in_flight, 0);
	assert_int_equal(c.seen.tables, 3);
	assert_int_equal(c.seen.zero, 0);
	c.answer = 1;
	assert_int_equal(policy_add(&b, 6), 1);
	assert_int_equal(c.seen.segments, 6);
	assert_int_equal(c.seen.free, 13);
	assert_int_equal(c.seen.in_flight, 1);
	c.answer = 0x80000000;
	assert_int_equal(policy_add(&b, 2), 1);
	assert_int_equal(c.seen.tables, 2);
	assert_int_equal(c.calls, 3);
	bench_close(&b);
}

static void test_a_custom_policy_is_asked_only_where_both_ways_are_open(void **state)
{
	struct chooser c;
	struct bench b;

	(void)state;
	open_custom(&b, &c, 1);
	c.answer = 1;
	assert_int_equal(policy_add(&b, 1), 0); /* one segment */
	assert_int_equal(policy_add(&b, 7), 0); /* longer than a table */
	assert_int_equal(c.calls, 0);
	c.answer = 0;
	assert_int_equal(policy_add(&b, 6), 0);
	assert_int_equal(c.calls, 1);
	assert_int_equal(policy_add(&b, 3), 1); /* two descriptors are left */
	assert_int_equal(c.calls, 1);
	assert_int_equal(bench_try_add(&b, 1, 1, 1), VQB_E_NOSPC);
	assert_int_equal(c.calls, 1);
	bench_close(&b);

	open_custom(&b, &c, 1);
	c.answer = 1;
	assert_int_equal(policy_add(&b, 3), 1);
	assert_int_equal(policy_add(&b, 3), 0); /* no table */
	assert_int_equal(c.calls, 1);
	bench_close(&b);
}

/* ---- rules ---- */

static const uint32_t kinds[] = {
	VQB_INDIRECT_ADAPTIVE,  VQB_INDIRECT_ALWAYS, VQB_INDIRECT_NEVER,
	VQB_INDIRECT_THRESHOLD, VQB_INDIRECT_DECAY,  VQB_INDIRECT_CUSTOM
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void fill_in(struct bench *b, struct chooser *c)
{
	uint32_t kind = b->policy.kind;

	memset(c, 0, sizeof(*c));
	b->policy.threshold = kind == VQB_INDIRECT_THRESHOLD ? 2 : 0;
	b->policy.choose = kind == VQB_INDIRECT_CUSTOM ? choose : NULL;
	b->policy.context = c;
}

static void test_without_the_feature_or_a_pool_all_goes_direct(void **state)
{
	struct chooser c;
	struct bench b;

	(void)state;
	for (unsigned k = 0; k < 2 * KINDS; k++) {
		bool feature = k % 2;

		bench_configure(&b, 8, EVENT_MODE | (feature ? INDIRECT : 0), 8, 8, kinds[k / 2]);
		fill_in(&b, &c);
		c.answer = 1;
		if (feature)
			b.config.max_table = 0;
		bench_start(&b);
		assert_int_equal(policy_add(&b, 2), 0);
		assert_int_equal(policy_add(&b, 4), 0);
		assert_int_equal(bench_try_add(&b, 1, 1, 2), VQB_E_NOSPC);
		assert_int_equal(policy_add(&b, 2), 0);
		assert_int_equal(c.calls, 0);
		bench_close(&b);
	}
}

static void test_what_does_not_fit_goes_through_a_table_but_under_never(void **state)
{
	struct chooser c;
	struct bench b;

	(void)state;
	for (unsigned k = 0; k < KINDS; k++) {
		policy_configure(&b, 8, kinds[k]);
		fill_in(&b, &c);
		b.policy.threshold = b.policy.threshold ? 100 : 0;
		bench_start(&b);
		for (int i = 0; i < 7; i++)
			policy_add(&b, 1);
		if (kinds[k] == VQB_INDIRECT_NEVER)
			assert_int_equal(bench_try_add(&b, 1, 1, 1), VQB_E_NOSPC);
		else
			assert_int_equal(policy_add(&b, 2), 1);
		bench_close(&b);
	}
}

/* N = 8, one table: the second goes direct, the third has neither. Shows: K20 */
static void test_an_exhausted_pool_falls_back_to_direct(void **state)
{
	struct chooser c;
	struct bench b;

	(void)state;
	for (unsigned k = 0; k < KINDS; k++) {
		bench_configure(&b, 8, EVENT_MODE | INDIRECT, 1, 8, kinds[k]);
		fill_in(&b, &c);
		bench_start(&b);
		policy_add(&b, 5);
		if (vqb_driver_free(b.drv) == 3 && kinds[k] != VQB_INDIRECT_NEVER)
			assert_int_equal(policy_add(&b, 4), 1);
		else
			policy_add(&b, 3);
		while (vqb_driver_free(b.drv) >= 2)
			assert_int_equal(policy_add(&b, 2), 0);
		assert_int_equal(bench_try_add(&b, 1, 1, 1), VQB_E_NOSPC);
		policy_drain(&b);
		bench_close(&b);
	}
}

/* ---- changing it ---- */

static void test_a_policy_is_changed_while_idle_only(void **state)
{
	struct vqb_indirect_policy never = { .struct_size = sizeof(never),
					     .kind = VQB_INDIRECT_NEVER };
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_ALWAYS);
	assert_int_equal(policy_add(&b, 2), 1);
	assert_int_equal(vqb_driver_set_policy(b.drv, &never), VQB_E_BUSY);
	assert_int_equal(policy_add(&b, 2), 1);
	policy_drain(&b);
	assert_int_equal(vqb_driver_set_policy(b.drv, &never), VQB_OK);
	assert_int_equal(policy_add(&b, 2), 0);
	policy_drain(&b);
	assert_int_equal(vqb_driver_set_policy(b.drv, &b.policy), VQB_OK);
	assert_int_equal(policy_add(&b, 2), 1);
	policy_drain(&b);
	assert_int_equal(vqb_driver_set_policy(b.drv, NULL), VQB_OK);
	assert_int_equal(policy_add(&b, 2), 0);
	bench_close(&b);
}

static void test_a_changed_policy_outlives_a_reset(void **state)
{
	struct vqb_indirect_policy never = { .struct_size = sizeof(never),
					     .kind = VQB_INDIRECT_NEVER };
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_ALWAYS);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_set_policy(b.drv, &never), VQB_OK);
	assert_int_equal(vqb_driver_reset(b.drv, &b.config.ring), VQB_OK);
	bench_attach(&b, &b.config.ring);
	assert_int_equal(policy_add(&b, 2), 0);
	bench_close(&b);
}

/* Each by one field; a policy that is refused changes nothing. */
static void test_policies_that_make_no_sense_are_refused(void **state)
{
	struct vqb_indirect_policy bad[] = {
		{ .kind = VQB_INDIRECT_CUSTOM + 1 },
		{ .kind = UINT32_MAX },
		{ .kind = VQB_INDIRECT_ALWAYS, .zero = 1 },
		{ .kind = VQB_INDIRECT_THRESHOLD },
		{ .kind = VQB_INDIRECT_ALWAYS, .threshold = 2 },
		{ .kind = VQB_INDIRECT_CUSTOM },
		{ .kind = VQB_INDIRECT_NEVER, .choose = choose },
		{ .kind = VQB_INDIRECT_NEVER, .clock = (uint64_t(*)(void *))(uintptr_t)1 },
	};
	struct bench b;

	(void)state;
	policy_open(&b, 8, VQB_INDIRECT_ALWAYS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bad[i].struct_size = sizeof(bad[i]);
		assert_int_equal(vqb_driver_set_policy(b.drv, &bad[i]), VQB_E_INVALID);
		b.config.policy = &bad[i];
		assert_int_equal(vqb_driver_size(&b.config), 0);
	}
	bad[0].kind = VQB_INDIRECT_NEVER;
	bad[0].struct_size--;
	assert_int_equal(vqb_driver_set_policy(b.drv, &bad[0]), VQB_E_INVALID);
	assert_int_equal(policy_add(&b, 2), 1);
	bench_close(&b);
}

/* ---- counters ---- */

static void test_counters_tell_which_way_and_why(void **state)
{
	struct vqb_segment bad[2] = { { BENCH_DATA_AT, 0, 0 }, { BENCH_DATA_AT, 1, 0 } };
	struct vqb_driver_counters c;
	struct chooser chooser;
	struct bench b;

	(void)state;
	open_custom(&b, &chooser, 3);
	policy_add(&b, 1);
	policy_add(&b, 2); /* chosen: direct */
	policy_add(&b, 7); /* too long: not chosen */
	chooser.answer = 1;
	policy_add(&b, 2); /* chosen: a table */
	policy_add(&b, 3); /* and again; 4 descriptors are left */
	assert_int_equal(vqb_driver_add(b.drv, bad, 1, 1, NULL), VQB_E_INVALID);
	policy_add(&b, 5); /* does not fit */
	policy_add(&b, 2); /* no table is left */
	assert_int_equal(bench_try_add(&b, 1, 1, 1), VQB_E_NOSPC);
	vqb_driver_publish(b.drv);
	c = policy_counters(&b);
	assert_int_equal(c.direct_single, 1);
	assert_int_equal(c.direct_chosen, 1);
	assert_int_equal(c.direct_no_table, 2);
	assert_int_equal(c.indirect_chosen, 2);
	assert_int_equal(c.indirect_no_room, 1);
	assert_int_equal(c.indirect, 3);
	assert_int_equal(c.no_room, 1);
	assert_int_equal(c.requests, 7);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_always_is_whatever_has_more_than_one_segment),
		cmocka_unit_test(test_never_refuses_what_only_a_table_could_hold),
		cmocka_unit_test(test_a_threshold_is_met_from_its_number_on),
		cmocka_unit_test(test_a_threshold_of_one_does_not_catch_one),
		cmocka_unit_test(test_a_custom_policy_sees_the_queue_and_decides),
		cmocka_unit_test(test_a_custom_policy_is_asked_only_where_both_ways_are_open),
		cmocka_unit_test(test_without_the_feature_or_a_pool_all_goes_direct),
		cmocka_unit_test(test_what_does_not_fit_goes_through_a_table_but_under_never),
		cmocka_unit_test(test_an_exhausted_pool_falls_back_to_direct),
		cmocka_unit_test(test_a_policy_is_changed_while_idle_only),
		cmocka_unit_test(test_a_changed_policy_outlives_a_reset),
		cmocka_unit_test(test_policies_that_make_no_sense_are_refused),
		cmocka_unit_test(test_counters_tell_which_way_and_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
