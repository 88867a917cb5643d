/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_index_wrap.c: indices are free-running and have 16 bits; slots are index modulo size.
 * The test keeps its own counts in a wider type and compares the bytes.
 */
#include "driver_bench.h"

struct life {
	struct bench b;
	unsigned long added, reaped;
};

/* Adds one, publishes it, and looks for it where it has to be. */
static void send(struct life *l)
{
	uint8_t *avail = l->b.raw.avail;
	unsigned head;

	bench_add(&l->b, l->added, 1, 0);
	vqb_driver_publish(l->b.drv);
	l->added++;
	assert_int_equal(peek(avail + 2, 2), l->added % 65536);
	head = (unsigned)peek(avail + 4 + 2 * ((l->added - 1) % l->b.raw.size), 2);
	assert_int_equal(raw_desc_addr(l->b.raw.desc, head), bench_segment(l->added - 1, 0).addr);
	l->b.taken++;
}

/* Completes the oldest one in the slot where it has to be, and reaps it. */
static void receive(struct life *l)
{
	unsigned head = raw_avail_entry(&l->b.raw, (unsigned)l->reaped);
	struct vqb_done done;

	bench_give(&l->b, head, 0);
	done = bench_reap_done(&l->b);
	assert_int_equal((uintptr_t)done.token, l->reaped);
	l->reaped++;
	assert_int_equal(peek(l->b.raw.used + 2, 2), l->reaped % 65536);
}

/* `count` requests, never more than `window` at a time. */
static void live(uint32_t size, unsigned long count, uint32_t window)
{
	struct life l = { .added = 0 };

	bench_open(&l.b, size, EVENT_MODE);
	while (l.reaped < count) {
		while (l.added < count && l.added - l.reaped < window)
			send(&l);
		for (uint32_t i = 0; i <= window / 2 && l.reaped < l.added; i++)
			receive(&l);
	}
	assert_int_equal(vqb_driver_free(l.b.drv), size);
	assert_int_equal(vqb_driver_state(l.b.drv), VQB_OK);
	bench_close(&l.b);
}

/* Shows: SR-ANY-05 SR-ANY-06 SR-DRV-13 SR-DRV-14 K08 */
static void test_70000_requests_through_every_size(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2)
		live(size, 70000, size < 4 ? size : 4);
}

/* Full all the time. Shows: SR-ANY-06 */
static void test_70000_requests_through_full_rings(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 128; size *= 4)
		live(size, 70000, size);
}

/* 32768 out and all back at once, twice round: empty and full stay distinct. Shows: SR-ANY-06 */
static void test_the_largest_ring_is_filled_and_emptied(void **state)
{
	struct vqb_done *done = (struct vqb_done *)bench_alloc(16, 32769 * sizeof(*done));
	struct bench b;

	(void)state;
	bench_open(&b, 32768, EVENT_MODE);
	for (int turn = 0; turn < 5; turn++) {
		for (uintptr_t i = 0; i < 32768; i++)
			bench_add(&b, i, 1, 0);
		assert_int_equal(bench_try_add(&b, 1, 1, 0), VQB_E_NOSPC);
		vqb_driver_publish(b.drv);
		assert_int_equal(vqb_driver_pending(b.drv), 0);
		bench_serve(&b);
		assert_int_equal(vqb_driver_pending(b.drv), 32768);
		assert_int_equal(vqb_driver_reap(b.drv, done, 32769), 32768);
		for (uintptr_t i = 0; i < 32768; i++)
			assert_ptr_equal(done[i].token, bench_token(i));
		assert_int_equal(vqb_driver_pending(b.drv), 0);
		bench_reap_none(&b);
	}
	bench_close(&b);
	free(done);
}

/* N = 64 and 64 requests done: the 65th is in slot 0 on both sides. Shows: K08 */
static void test_the_65th_request_is_in_slot_0(void **state)
{
	struct bench b;
	unsigned head;

	(void)state;
	bench_open(&b, 64, EVENT_MODE);
	bench_rounds(&b, 64);
	for (uintptr_t i = 0; i < 10; i++)
		bench_add(&b, 100 + i, 0, 1);
	vqb_driver_publish(b.drv);
	assert_int_equal(peek(b.raw.avail + 2, 2), 74);
	head = (unsigned)peek(b.raw.avail + 4, 2);
	bench_expect_direct(&b, head, 100, 0, 1);
	poke(b.raw.used + 4, head, 4);
	poke(b.raw.used + 8, 1, 4);
	poke(b.raw.used + 2, 65, 2);
	assert_int_equal(bench_reap(&b), 100);
	bench_close(&b);
}

/*
 * Cursor at 65532 with six back, and a batch limit of two: the cursor is 65534 and the index 2,
 * which is less, and four are left. Shows: K08
 */
static void test_what_is_left_across_the_wrap_is_left(void **state)
{
	struct vqb_done done[2];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_rounds(&b, 65532);
	for (uintptr_t i = 0; i < 6; i++)
		bench_add(&b, i, 1, 0);
	vqb_driver_publish(b.drv);
	bench_serve(&b);
	assert_int_equal(raw_used_idx(&b.raw), 2);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	assert_int_equal(vqb_driver_pending(b.drv), 4);
	assert_int_equal(vqb_driver_arm(b.drv), VQB_MORE);
	assert_int_equal(vqb_driver_turn(b.drv), VQB_MORE);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	assert_int_equal((uintptr_t)done[1].token, 5);
	assert_int_equal(vqb_driver_arm(b.drv), VQB_QUIET);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_70000_requests_through_every_size),
		cmocka_unit_test(test_70000_requests_through_full_rings),
		cmocka_unit_test(test_the_largest_ring_is_filled_and_emptied),
		cmocka_unit_test(test_the_65th_request_is_in_slot_0),
		cmocka_unit_test(test_what_is_left_across_the_wrap_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
