/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capacity that one thread changes and another one reads is never torn. (Without the probe, whose
 * count of fences belongs to one thread.)
 */
#include <pthread.h>

#include <vqblk/blk_device.h>

#include "unit.h"

#define BOTH(n) ((uint64_t)(n) << 32 | (n)) /* a capacity that tells when it is torn */

enum { CHANGES = 50000 };

static void *keep_resizing(void *arg)
{
	for (uint32_t i = 0; i < CHANGES; i++)
		vqb_blk_device_resize(arg, BOTH(0x100 + i % 0x100));
	vqb_blk_device_resize(arg, BOTH(0x300));
	return NULL;
}

/* Shows: BLK-DEV-06 */
static void test_a_reader_sees_the_capacity_whole_while_it_changes(void **state)
{
	static _Alignas(64) uint8_t memory[VQB_BLK_DEVICE_BYTES];
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits), .capacity = BOTH(0x100) };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config), .limits = &limits };
	struct vqb_blk_device *dev;
	pthread_t thread;
	uint64_t seen;

	(void)state;
	assert_int_equal(vqb_blk_device_init(memory, sizeof(memory), &config, &dev), VQB_OK);
	assert_int_equal(pthread_create(&thread, NULL, keep_resizing, dev), 0);
	do {
		seen = vqb_blk_device_capacity(dev);
		assert_int_equal(seen >> 32, (uint32_t)seen);
	} while (seen != BOTH(0x300));
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reader_sees_the_capacity_whole_while_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
