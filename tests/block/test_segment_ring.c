/* SPDX-License-Identifier: BSD-3-Clause */
/* From buffers to descriptors: what the mapper makes of a list is what goes into the ring. */
#include "driver_bench.h"

#include <vqblk/segment.h>

/* Shows: SR-DRV-03 */
static void neighbours_share_a_descriptor(void **state)
{
	const struct vqb_segment vec[] = { { 0x10000, 4096, 0 },
					   { 0x11000, 4096, 0 },
					   { 0x12000, 4096, 0 },
					   { 0x40000, 4096, 0 } };
	struct vqb_segment out[8];
	struct vqb_limits limits;
	struct vqb_mapper m;
	struct bench b;
	unsigned at[8];
	uint64_t bytes;
	uint32_t n;

	(void)state;
	vqb_limits_init(&limits);
	m = vqb_mapper_over(&limits, vec, 4, 0);
	assert_int_equal(vqb_map_next(&m, out, 8, &n, &bytes), VQB_OK);
	assert_int_equal(bytes, 4 * 4096);

	bench_open(&b, 8, FLAGS_MODE);
	assert_int_equal(vqb_driver_add(b.drv, out, n, 0, bench_token(1)), VQB_OK);
	vqb_driver_expose(b.drv);
	assert_int_equal(bench_chain(&b, bench_take(&b), at), 2);
	assert_int_equal(raw_desc_addr(b.raw.desc, at[0]), 0x10000);
	assert_int_equal(raw_desc_len(b.raw.desc, at[0]), 3 * 4096);
	assert_int_equal(raw_desc_addr(b.raw.desc, at[1]), 0x40000);
	assert_int_equal(raw_desc_len(b.raw.desc, at[1]), 4096);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(neighbours_share_a_descriptor) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
