/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_readonly_used.c: each part of the ring has one writer. The driver sees the used ring
 * through a mapping that it can't write, the device the same pages through one that it can.
 */
#define _DEFAULT_SOURCE

#include <stdio.h>

#include <sys/mman.h>
#include <unistd.h>

#include "driver_bench.h"

struct twice {
	void *driver, *device;
	size_t bytes;
};

static void *map_shared(FILE *file, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static struct twice map_twice(size_t bytes)
{
	struct twice t = { .bytes = bytes };
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)bytes), 0);
	t.driver = map_shared(file, bytes);
	t.device = map_shared(file, bytes);
	fclose(file);
	return t;
}

static void unmap_twice(struct twice *t)
{
	munmap(t->driver, t->bytes);
	munmap(t->device, t->bytes);
}

static void all_calls(struct bench *b, uint64_t seed)
{
	for (int i = 0; i < 5000; i++) {
		struct vqb_done done[8];
		uint32_t verb = bench_random(&seed, 6);

		bench_try_add(b, 1, 1 + bench_random(&seed, 3), bench_random(&seed, 3));
		if (verb < 2)
			vqb_driver_publish(b->drv);
		else if (verb < 4)
			vqb_driver_turn(b->drv);
		else
			vqb_driver_expose(b->drv);
		if (verb & 1)
			bench_serve(b);
		vqb_driver_postpone(b->drv, verb);
		vqb_driver_reap(b->drv, done, 8);
		vqb_driver_arm(b->drv);
		vqb_driver_disarm(b->drv);
	}
}

/* Shows: SR-ANY-02 */
static void test_the_driver_never_writes_the_used_ring(void **state)
{
	static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE, EVENT_MODE | INDIRECT };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct twice used = map_twice(65536);
		struct bench b;
		void *own;

		bench_configure(&b, 16, modes[i], 8, 4, VQB_INDIRECT_ALWAYS);
		own = b.config.ring.used;
		b.config.ring.used = used.driver;
		bench_start(&b);
		assert_int_equal(mprotect(used.driver, used.bytes, PROT_READ), 0);
		b.raw.used = (uint8_t *)used.device;
		all_calls(&b, (uint64_t)i);
		assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
		assert_true(b.used > 1000);

		/* Nor do breaking and letting go; only init and reset with a ring clear it. */
		bench_give(&b, 999, 0);
		bench_serve(&b);
		vqb_driver_reap(b.drv, &(struct vqb_done){ NULL, 0, 0 }, 1);
		assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
		b.config.ring.used = own;
		bench_close(&b);
		unmap_twice(&used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_driver_never_writes_the_used_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
