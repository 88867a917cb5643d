/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with the configuration of a blk driver, or of a list of requests: each rule by one
 * that breaks it and is fine but for that. What check says is what init answers.
 */
#include "blk_driver_bench.h"

static _Alignas(64) unsigned char mem[65536];
static uint64_t shown; /* rules, by bit */

static uint32_t rule_of(const struct vqb_blk_driver_config *config)
{
	struct vqb_blk_driver *drv = NULL;
	uint32_t rule = 99;
	int32_t status = vqb_blk_driver_check(config, &rule);

	assert_int_equal(vqb_blk_driver_check(config, NULL), status);
	assert_int_equal(vqb_blk_driver_init(mem, sizeof(mem), config, &drv), status);
	assert_int_equal(rule == VQB_BLK_DRIVER_RULE_FINE, status == VQB_OK);
	assert_int_equal(rule == VQB_BLK_DRIVER_RULE_FINE, drv != NULL);
	assert_int_equal(rule == VQB_BLK_DRIVER_RULE_AREA_BYTES, status == VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_driver_size(config) == 0,
			 rule && rule <= VQB_BLK_DRIVER_RULE_WINDOW);
	shown |= UINT64_C(1) << rule;
	return rule;
}

static struct guest *plan(void **state)
{
	struct guest *g = guest_plan(state, 16);

	assert_int_equal(rule_of(&g->config), VQB_BLK_DRIVER_RULE_FINE);
	return g;
}

/* One field of a configuration that is fine otherwise, which it is again afterwards. */
#define ASSERT_RULE(field, value, rule)                                                            \
	do {                                                                                       \
		struct vqb_blk_driver_config good = g->config;                                     \
		struct vqb_blk_limits limits = g->limits;                                          \
		struct vqb_limits mapping = g->mapping;                                            \
                                                                                                   \
		g->field = (value);                                                                \
		assert_int_equal(rule_of(&g->config), rule);                                       \
		g->config = good;                                                                  \
		g->limits = limits;                                                                \
		g->mapping = mapping;                                                              \
		assert_int_equal(rule_of(&g->config), VQB_BLK_DRIVER_RULE_FINE);                   \
	} while (0)

static void a_wrong_form_and_numbers_are_named(void **state)
{
	struct guest *g = plan(state);

	assert_int_equal(rule_of(NULL), VQB_BLK_DRIVER_RULE_FORM);
	ASSERT_RULE(config.struct_size, 8, VQB_BLK_DRIVER_RULE_FORM);
	ASSERT_RULE(config.depth, 0, VQB_BLK_DRIVER_RULE_DEPTH);
	ASSERT_RULE(config.depth, 32769, VQB_BLK_DRIVER_RULE_DEPTH);
	ASSERT_RULE(config.ranges, 32769, VQB_BLK_DRIVER_RULE_RANGES);
	ASSERT_RULE(config.ranges, 0, VQB_BLK_DRIVER_RULE_FINE);
	ASSERT_RULE(config.window, VQB_REQUESTS_WINDOW + 1, VQB_BLK_DRIVER_RULE_WINDOW);
	ASSERT_RULE(config.window, VQB_REQUESTS_WINDOW, VQB_BLK_DRIVER_RULE_FINE);
	ASSERT_RULE(config.path, VQB_PATH_REQUEST + 1, VQB_BLK_DRIVER_RULE_PATH);
	ASSERT_RULE(config.path, VQB_PATH_REQUEST, VQB_BLK_DRIVER_RULE_FINE);
	ASSERT_RULE(config.flags, 2, VQB_BLK_DRIVER_RULE_FLAGS);
	ASSERT_RULE(config.flags, VQB_REQUESTS_WRITE_THROUGH, VQB_BLK_DRIVER_RULE_FINE);
}

/* Each of the two is fine alone. Nothing lies in such an area, which is only spoken of. */
static void depth_and_ranges_together_may_be_too_many(void **state)
{
	struct guest *g = plan(state);
	uint32_t rule;

	g->config.area.bytes = (size_t)1 << 31;
	g->config.depth = 32768;
	g->config.ranges = 2047;
	assert_int_equal(vqb_blk_driver_check(&g->config, &rule), VQB_OK);
	assert_int_equal(rule, VQB_BLK_DRIVER_RULE_FINE);
	g->config.ranges = 2048;
	assert_int_equal(rule_of(&g->config), VQB_BLK_DRIVER_RULE_DEPTH_RANGES);
}

static void limits_of_the_device_are_named(void **state)
{
	struct guest *g = plan(state);

	ASSERT_RULE(config.limits, NULL, VQB_BLK_DRIVER_RULE_LIMITS);
	ASSERT_RULE(limits.struct_size, 8, VQB_BLK_DRIVER_RULE_LIMITS);
	ASSERT_RULE(limits.block_size, 1000, VQB_BLK_DRIVER_RULE_LIMITS);
	/* A block that takes more segments than there are: the device is to blame. */
	ASSERT_RULE(limits.segment_bytes, 127, VQB_BLK_DRIVER_RULE_LIMITS);
	ASSERT_RULE(limits.segment_bytes, 128, VQB_BLK_DRIVER_RULE_FINE);
}

static void limits_that_were_changed_are_named(void **state)
{
	struct guest *g = plan(state);
	uint32_t rule;

	assert_int_equal(vqb_limits_of_blk(&g->limits, 0, 0, &g->mapping), VQB_OK);
	g->config.mapping = &g->mapping;
	assert_int_equal(rule_of(&g->config), VQB_BLK_DRIVER_RULE_FINE);
	ASSERT_RULE(mapping.virt_boundary, 4096, VQB_BLK_DRIVER_RULE_MAPPING);
	ASSERT_RULE(mapping.max_segments, 0, VQB_BLK_DRIVER_RULE_MAPPING);
	ASSERT_RULE(mapping.max_segments, 32767, VQB_BLK_DRIVER_RULE_SEGMENTS);
	ASSERT_RULE(config.limits, NULL, VQB_BLK_DRIVER_RULE_LIMITS);
	g->mapping.virt_boundary = 4096;
	assert_int_equal(vqb_limits_check(g->config.mapping, &rule), VQB_E_INVALID);
	assert_int_equal(rule, VQB_LIMITS_MASK);
}

static void the_ring_is_there_and_not_in_use(void **state)
{
	struct guest *g = plan(state);

	ASSERT_RULE(config.ring, NULL, VQB_BLK_DRIVER_RULE_RING);
	bench_add(&g->ring, 1, 1, 0);
	assert_int_equal(rule_of(&g->config), VQB_BLK_DRIVER_RULE_RING_IN_USE);
}

static void the_area_is_named(void **state)
{
	struct guest *g = plan(state);

	ASSERT_RULE(config.area.host, NULL, VQB_BLK_DRIVER_RULE_AREA);
	ASSERT_RULE(config.area.host, g->area + 16, VQB_BLK_DRIVER_RULE_AREA_ALIGN);
	ASSERT_RULE(config.area.addr, AREA_AT + 32, VQB_BLK_DRIVER_RULE_AREA_ALIGN);
	ASSERT_RULE(config.area.bytes, VQB_BLK_AREA_BYTES(DEPTH, RANGES) - 1,
		    VQB_BLK_DRIVER_RULE_AREA_BYTES);
	ASSERT_RULE(config.area.addr, UINT64_MAX - 63, VQB_BLK_DRIVER_RULE_AREA_END);
	ASSERT_RULE(config.area.addr, 0 - (uint64_t)VQB_BLK_AREA_BYTES(DEPTH, RANGES),
		    VQB_BLK_DRIVER_RULE_FINE);
}

/* With the configuration fine, it is the memory. */
static void memory_is_not_the_configurations(void **state)
{
	struct guest *g = plan(state);
	size_t bytes = vqb_blk_driver_size(&g->config);
	struct vqb_blk_driver *drv;

	assert_int_equal(vqb_blk_driver_init(mem, bytes, &g->config, &drv), VQB_OK);
	assert_int_equal(vqb_blk_driver_init(mem, bytes - 1, &g->config, &drv), VQB_E_TOOBIG);
	assert_int_equal(vqb_blk_driver_init(mem + 8, bytes, &g->config, &drv), VQB_E_INVALID);
	assert_int_equal(vqb_blk_driver_init(NULL, bytes, &g->config, &drv), VQB_E_INVALID);
	assert_int_equal(vqb_blk_driver_init(mem, bytes, &g->config, NULL), VQB_E_INVALID);
}

static void every_rule_was_shown(void **state)
{
	(void)state;
	assert_int_equal(shown, (UINT64_C(2) << VQB_BLK_DRIVER_RULE_AREA_END) - 1);
}

/* ---- a list of requests ---- */

static uint32_t requests_rule_of(const struct vqb_requests_config *config)
{
	struct vqb_requests *rq = NULL;
	uint32_t rule = 99;
	int32_t status = vqb_requests_check_config(config, &rule);

	assert_int_equal(vqb_requests_check_config(config, NULL), status);
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), config, &rq), status);
	assert_int_equal(status, rule == VQB_REQUESTS_RULE_FINE ? VQB_OK : VQB_E_INVALID);
	assert_int_equal(rule == VQB_REQUESTS_RULE_FINE, rq != NULL);
	return rule;
}

#define ASSERT_REQUESTS_RULE(field, value, rule)                                                   \
	do {                                                                                       \
		struct vqb_requests_config config = good;                                          \
                                                                                                   \
		config.field = (value);                                                            \
		assert_int_equal(requests_rule_of(&config), rule);                                 \
	} while (0)

static void a_list_of_requests_has_rules_of_its_own(void **state)
{
	struct vqb_limits limits, bad;
	const struct vqb_requests_config good = {
		.struct_size = sizeof(good),
		.limits = &limits,
	};

	(void)state;
	vqb_limits_init(&limits);
	bad = limits;
	bad.max_segments = 0;
	assert_int_equal(requests_rule_of(&good), VQB_REQUESTS_RULE_FINE);
	assert_int_equal(requests_rule_of(NULL), VQB_REQUESTS_RULE_FORM);
	ASSERT_REQUESTS_RULE(struct_size, 8, VQB_REQUESTS_RULE_FORM);
	ASSERT_REQUESTS_RULE(zero, 1, VQB_REQUESTS_RULE_FORM);
	ASSERT_REQUESTS_RULE(limits, NULL, VQB_REQUESTS_RULE_LIMITS);
	ASSERT_REQUESTS_RULE(limits, &bad, VQB_REQUESTS_RULE_LIMITS);
	ASSERT_REQUESTS_RULE(window, VQB_REQUESTS_WINDOW + 1, VQB_REQUESTS_RULE_WINDOW);
	ASSERT_REQUESTS_RULE(path, 3, VQB_REQUESTS_RULE_PATH);
	ASSERT_REQUESTS_RULE(path, 2, VQB_REQUESTS_RULE_FINE);
	ASSERT_REQUESTS_RULE(flags, 2, VQB_REQUESTS_RULE_FLAGS);
	ASSERT_REQUESTS_RULE(flags, 1, VQB_REQUESTS_RULE_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(a_wrong_form_and_numbers_are_named),
		guest_test(depth_and_ranges_together_may_be_too_many),
		guest_test(limits_of_the_device_are_named),
		guest_test(limits_that_were_changed_are_named),
		guest_test(the_ring_is_there_and_not_in_use),
		guest_test(the_area_is_named),
		guest_test(memory_is_not_the_configurations),
		guest_test(every_rule_was_shown),
		cmocka_unit_test(a_list_of_requests_has_rules_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
