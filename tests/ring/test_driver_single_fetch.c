/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_single_fetch.c: every access to shared memory, counted: nothing of the driver's own
 * is read back, nothing of the device's is read twice, and between what it stores for the device
 * and what it then loads stands one full fence.
 */
#include "driver_bench.h"
#include "probe_log.h"

static const uint64_t modes[] = { FLAGS_MODE, EVENT_MODE };

/* Where the driver says when it wants to be notified, and where it learns when the device does. */
static uint8_t *own_wish(const struct bench *b)
{
	return b->config.ring.features == EVENT_MODE ? b->raw.avail + 4 + 2 * b->raw.size
						     : b->raw.avail;
}

static uint8_t *peer_wish(const struct bench *b)
{
	return b->config.ring.features == EVENT_MODE ? b->raw.used + 4 + 8 * b->raw.size
						     : b->raw.used;
}

/* Log entry `i` is that access, after so many fences. */
static void expect_access(unsigned i, int store, const uint8_t *at, unsigned bytes,
			  unsigned long fences)
{
	assert_true(i < log_count);
	assert_int_equal(log_entry[i].store, store);
	assert_ptr_equal(log_entry[i].at, at);
	assert_int_equal(log_entry[i].bytes, bytes);
	assert_int_equal(log_entry[i].fences, fences);
}

static void expect_store(unsigned i, const uint8_t *at, unsigned bytes, unsigned long fences)
{
	expect_access(i, 1, at, bytes, fences);
}

static void expect_load(unsigned i, const uint8_t *at, unsigned bytes, unsigned long fences)
{
	expect_access(i, 0, at, bytes, fences);
}

/* Three descriptors of two 8-byte stores, and one available entry; no fence and no load. */
static void test_add_stores_each_descriptor_in_two_halves(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		log_start();
		bench_add(&b, 1, 1, 2);
		log_stop();
		assert_int_equal(probe_fences, 0);
		assert_int_equal(log_all_loads(), 0);
		for (unsigned i = 1; i <= 3; i++) {
			uint8_t *desc = b.raw.desc + 16 * i;

			assert_int_equal(log_stores(desc, 16), 2);
			assert_int_equal(log_first(desc, 8, 1)->bytes, 8);
			assert_int_equal(log_first(desc + 8, 8, 1)->bytes, 8);
		}
		assert_int_equal(log_stores(b.raw.avail + 4, 16), 1);
		assert_int_equal(log_all_stores(), 2 * 3 + 1);
		bench_close(&b);
	}
}

static void test_add_through_a_table_stores_the_same_way(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 1, 4);
	log_start();
	bench_add(&b, 1, 1, 2);
	log_stop();
	assert_int_equal(probe_fences, 0);
	assert_int_equal(log_all_loads(), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(log_first(b.tables + 16 * i, 8, 1)->bytes, 8);
		assert_int_equal(log_first(b.tables + 16 * i + 8, 8, 1)->bytes, 8);
	}
	assert_int_equal(log_stores(b.tables, 64), 2 * 3);
	assert_int_equal(log_stores(b.raw.desc, 16 * 8), 2);
	assert_int_equal(log_stores(b.raw.avail, 22), 1);
	assert_int_equal(log_all_stores(), 2 * 3 + 2 + 1);
	bench_close(&b);
}

static void test_an_add_that_finds_no_room_touches_nothing(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 4, EVENT_MODE);
	bench_add(&b, 1, 2, 0);
	log_start();
	assert_int_equal(bench_try_add(&b, 2, 3, 0), VQB_E_NOSPC);
	assert_int_equal(bench_try_add(&b, 2, 5, 0), VQB_E_TOOBIG);
	log_stop();
	assert_int_equal(log_count, 0);
	bench_close(&b);
}

static void test_expose_is_one_store(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_add(&b, 1, 1, 0);
		bench_add(&b, 2, 1, 0);
		log_start();
		vqb_driver_expose(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 0);
		assert_int_equal(log_count, 1);
		expect_store(0, b.raw.avail + 2, 2, 0);
		assert_int_equal(log_entry[0].value, 2);
		bench_close(&b);
	}
}

/* All that a chain consists of is stored before the index that shows it. Shows: SR-DRV-34 */
static void test_the_index_is_stored_last(void **state)
{
	struct bench b;

	(void)state;
	bench_open_tables(&b, 8, EVENT_MODE | INDIRECT, 2, 4);
	log_start();
	bench_add(&b, 1, 1, 2);
	bench_add(&b, 2, 1, 0);
	vqb_driver_expose(b.drv);
	log_stop();
	assert_int_equal(log_stores(b.raw.avail + 2, 2), 1);
	assert_ptr_equal(log_entry[log_count - 1].at, b.raw.avail + 2);
	bench_close(&b);
}

/* Index, fence, the device's wish: in this order only. Shows: K09 SR-DRV-35 SR-DRV-31 */
static void test_publish_has_its_fence_between_the_index_and_the_wish(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		for (unsigned batch = 1; batch <= 4; batch++) {
			for (unsigned i = 0; i < batch; i++)
				bench_add(&b, 1, 1, 0);
			log_start();
			vqb_driver_publish(b.drv);
			log_stop();
			assert_int_equal(probe_fences, 1);
			assert_int_equal(log_count, 2);
			expect_store(0, b.raw.avail + 2, 2, 0);
			expect_load(1, peer_wish(&b), 2, 1);
			bench_serve(&b);
			for (unsigned i = 0; i < batch; i++)
				bench_reap(&b);
		}
		bench_close(&b);
	}
}

/* The index was exposed before, so only the fence and the load are left. Shows: K09 SR-DRV-35 */
static void test_publish_after_expose_has_its_fence_all_the_same(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		bench_add(&b, 1, 1, 0);
		vqb_driver_expose(b.drv);
		log_start();
		vqb_driver_publish(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_count, 1);
		expect_load(0, peer_wish(&b), 2, 1);
		bench_close(&b);
	}
}

static void test_publish_of_nothing_costs_nothing(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		log_start();
		assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
		vqb_driver_expose(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 0);
		assert_int_equal(log_count, 0);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-37 */
static void test_arm_has_its_fence_between_the_wish_and_the_index(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		vqb_driver_disarm(b.drv);
		log_start();
		vqb_driver_arm(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_count, 2);
		expect_store(0, own_wish(&b), 2, 0);
		expect_load(1, b.raw.used + 2, 2, 1);
		bench_close(&b);
	}
}

/* Shows: SR-DRV-37 */
static void test_postpone_has_its_fence_between_the_wish_and_the_index(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		for (int i = 0; i < 8; i++)
			bench_add(&b, 1, 1, 0);
		vqb_driver_publish(b.drv);
		vqb_driver_disarm(b.drv);
		log_start();
		vqb_driver_postpone(b.drv, VQB_POSTPONE_EMPTIED);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_count, 2);
		expect_store(0, own_wish(&b), 2, 0);
		expect_load(1, b.raw.used + 2, 2, 1);
		bench_close(&b);
	}
}

/* Two stores, one fence, two loads. Shows: K09 SR-DRV-35 SR-DRV-37 */
static void test_turn_has_one_fence_between_two_stores_and_two_loads(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		vqb_driver_disarm(b.drv);
		bench_add(&b, 1, 1, 0);
		log_start();
		vqb_driver_turn(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 1);
		assert_int_equal(log_count, 4);
		assert_int_equal(log_stores(b.raw.avail + 2, 2), 1);
		assert_int_equal(log_stores(own_wish(&b), 2), 1);
		assert_int_equal(log_loads(peer_wish(&b), 2), 1);
		assert_int_equal(log_loads(b.raw.used + 2, 2), 1);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(log_entry[i].store, i < 2);
			assert_int_equal(log_entry[i].fences, i < 2 ? 0 : 1);
			assert_int_equal(log_entry[i].bytes, 2);
		}
		bench_close(&b);
	}
}

static void test_disarm_is_at_most_a_store(void **state)
{
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		bench_round(&b);
		vqb_driver_arm(b.drv);
		log_start();
		vqb_driver_disarm(b.drv);
		vqb_driver_disarm(b.drv);
		log_stop();
		assert_int_equal(probe_fences, 0);
		assert_int_equal(log_all_loads(), 0);
		assert_true(log_all_stores() <= 2);
		assert_int_equal(log_stores(own_wish(&b), 2), log_all_stores());
		bench_close(&b);
	}
}

/* The device completes something just when the wish is stored: the last chance to see it. */
static struct bench *late;

static void complete_late(const void *p, uint64_t v, unsigned bytes)
{
	(void)v;
	(void)bytes;
	if (late && p == own_wish(late)) {
		bench_give(late, bench_take(late), 0);
		late = NULL;
	}
}

/* Shows: SR-DRV-37 */
static void test_a_completion_that_comes_while_arming_is_seen(void **state)
{
	static uint32_t (*const verbs[])(struct vqb_driver *) = { vqb_driver_arm, vqb_driver_turn };
	struct bench b;

	(void)state;
	for (int verb = 0; verb < 2; verb++) {
		for (int mode = 0; mode < 2; mode++) {
			bench_open(&b, 8, modes[mode]);
			bench_round(&b);
			bench_add(&b, 1, 1, 0);
			vqb_driver_publish(b.drv);
			vqb_driver_disarm(b.drv);
			late = &b;
			probe_store = complete_late;
			assert_int_equal(verbs[verb](b.drv), VQB_MORE);
			probe_store = NULL;
			assert_null(late);
			assert_int_equal(bench_reap(&b), 1);
			bench_close(&b);
		}
	}
}

/* Shows: SR-DRV-38 */
static void test_reap_reads_the_index_once_and_each_element_once(void **state)
{
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 8, modes[mode]);
		for (uintptr_t i = 0; i < 6; i++)
			bench_add(&b, i, 0, 1);
		vqb_driver_publish(b.drv);
		bench_serve(&b);
		log_start();
		assert_int_equal(vqb_driver_reap(b.drv, done, 8), 6);
		log_stop();
		assert_int_equal(probe_fences, 0);
		assert_int_equal(log_all_stores(), 0);
		expect_load(0, b.raw.used + 2, 2, 0);
		assert_int_equal(log_loads(b.raw.used + 2, 2), 1);
		for (unsigned i = 0; i < 6; i++) {
			assert_int_equal(log_loads(b.raw.used + 4 + 8 * i, 4), 1);
			assert_int_equal(log_loads(b.raw.used + 8 + 8 * i, 4), 1);
		}
		assert_int_equal(log_loads(b.raw.used + 4, 6 * 8), log_all_loads() - 1);
		bench_close(&b);
	}
}

static void test_reap_looks_at_the_index_only_when_it_has_to(void **state)
{
	struct vqb_done done[8];
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	for (uintptr_t i = 0; i < 7; i++)
		bench_add(&b, i, 0, 1);
	vqb_driver_publish(b.drv);
	while (b.used < 6)
		bench_give(&b, bench_take(&b), 0);
	log_start();
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	bench_give(&b, bench_take(&b), 0);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 2);
	log_stop();
	assert_int_equal(log_loads(b.raw.used + 2, 2), 1);
	log_start();
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 1);
	log_stop();
	assert_int_equal(log_loads(b.raw.used + 2, 2), 1);
	log_start();
	assert_int_equal(vqb_driver_reap(b.drv, done, 2), 0);
	log_stop();
	assert_int_equal(log_all_loads(), 1);
	bench_close(&b);
}

/* A device that changes what was read: the value that was checked is the value that is used. */
static struct bench *flipped;

static void flip_behind(const void *p, unsigned bytes)
{
	static unsigned loads;

	(void)bytes;
	if (!flipped || p != flipped->raw.used + 4)
		return;
	if (loads++ > 0)
		poke(flipped->raw.used + 4, 0xffffff, 4);
}

static void test_an_id_that_changes_after_it_was_read_changes_nothing(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, 8, EVENT_MODE);
	bench_add(&b, 77, 1, 1);
	vqb_driver_publish(b.drv);
	bench_give(&b, bench_take(&b), 0);
	flipped = &b;
	probe_load = flip_behind;
	assert_int_equal(bench_reap(&b), 77);
	probe_load = NULL;
	flipped = NULL;
	assert_int_equal(vqb_driver_free(b.drv), 8);
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_close(&b);
}

/* Over random traffic with every call there is: whatever is loaded lies in the used ring. */
static struct bench *watched;

static void only_the_used_ring(const void *p, unsigned bytes)
{
	const uint8_t *at = (const uint8_t *)p, *used = watched->raw.used;

	if (at < used || at + bytes > used + 6 + 8 * watched->raw.size)
		fail_msg("a load that is not of the used ring");
}

static void never_the_used_ring(const void *p, uint64_t v, unsigned bytes)
{
	const uint8_t *at = (const uint8_t *)p, *used = watched->raw.used;

	if (at + bytes > used && at < used + 6 + 8 * watched->raw.size)
		fail_msg("a store to the used ring");
	if (at == watched->raw.avail && v > (watched->config.ring.features == EVENT_MODE ? 0 : 1))
		fail_msg("available flags %u", (unsigned)v);
}

/* Shows: SR-DRV-15 SR-DRV-17 SR-ANY-02 */
static void test_nothing_of_its_own_is_read_back(void **state)
{
	uint64_t seed = 17;
	struct bench b;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		bench_open(&b, 16, modes[mode]);
		watched = &b;
		probe_load = only_the_used_ring;
		probe_store = never_the_used_ring;
		for (int i = 0; i < 20000; i++) {
			struct vqb_done done[4];

			switch (bench_random(&seed, 10)) {
			case 0:
				vqb_driver_publish(b.drv);
				break;
			case 1:
				vqb_driver_expose(b.drv);
				break;
			case 2:
				vqb_driver_turn(b.drv);
				break;
			case 3:
				vqb_driver_arm(b.drv);
				break;
			case 4:
				vqb_driver_disarm(b.drv);
				break;
			case 5:
				vqb_driver_postpone(b.drv, bench_random(&seed, 3));
				break;
			case 6:
				vqb_driver_reap(b.drv, done, 4);
				vqb_driver_pending(b.drv);
				break;
			case 7:
				if (bench_visible(&b))
					bench_give(&b, bench_take(&b), 0);
				break;
			default:
				bench_try_add(&b, 1, bench_random(&seed, 4), 1);
			}
		}
		assert_true(b.used > 500);
		probe_load = NULL;
		probe_store = NULL;
		bench_close(&b);
	}
}

static int hooks_off(void **state)
{
	(void)state;
	probe_load = NULL;
	probe_store = NULL;
	late = flipped = watched = NULL;
	return 0;
}

#define PROBED(test) cmocka_unit_test_setup_teardown(test, hooks_off, hooks_off)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROBED(test_add_stores_each_descriptor_in_two_halves),
		PROBED(test_add_through_a_table_stores_the_same_way),
		PROBED(test_an_add_that_finds_no_room_touches_nothing),
		PROBED(test_expose_is_one_store),
		PROBED(test_the_index_is_stored_last),
		PROBED(test_publish_has_its_fence_between_the_index_and_the_wish),
		PROBED(test_publish_after_expose_has_its_fence_all_the_same),
		PROBED(test_publish_of_nothing_costs_nothing),
		PROBED(test_arm_has_its_fence_between_the_wish_and_the_index),
		PROBED(test_postpone_has_its_fence_between_the_wish_and_the_index),
		PROBED(test_turn_has_one_fence_between_two_stores_and_two_loads),
		PROBED(test_disarm_is_at_most_a_store),
		PROBED(test_a_completion_that_comes_while_arming_is_seen),
		PROBED(test_reap_reads_the_index_once_and_each_element_once),
		PROBED(test_reap_looks_at_the_index_only_when_it_has_to),
		PROBED(test_an_id_that_changes_after_it_was_read_changes_nothing),
		PROBED(test_nothing_of_its_own_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
