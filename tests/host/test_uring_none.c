/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a library without liburing says: that there is no such backend, so that callers fall back.
 */
#define _GNU_SOURCE

#include "image_bench.h"

static void test_it_is_said_that_there_is_none(void **state)
{
	struct image b = { .kind = URING, .bytes = 4096 };

	(void)state;
	assert_int_equal(image_open(&b), 0); /* as on a system that has no io_uring */
	b = (struct image){ .kind = SYNC_FILE, .bytes = 4096 };
	assert_int_equal(image_open(&b), 1);
	image_close(&b);
}

static void test_counters_are_none(void **state)
{
	struct vqb_uring_counters c = { .ios = 1 };

	(void)state;
	vqb_uring_read_counters(NULL, &c);
	assert_int_equal(c.ios, 0);
	vqb_uring_close(NULL);
	assert_int_equal(vqb_uring_size(NULL), 0);
	assert_int_equal(vqb_uring_register_memory(NULL, NULL, 0), VQB_E_UNSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_said_that_there_is_none),
		cmocka_unit_test(test_counters_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
