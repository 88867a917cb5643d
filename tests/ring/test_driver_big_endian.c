/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_driver_big_endian.c: the driver on the ring of a big-endian legacy guest: every field, byte
 * by byte. At the end both sides are joined on such a ring.
 */
#include "driver_bench.h"

#include <vqblk/device.h>

#define LEGACY_FLAGS UINT64_C(0)
#define LEGACY_EVENT (UINT64_C(1) << 29)

#define expect_bytes(at, ...)                                                                      \
	do {                                                                                       \
		static const uint8_t expected[] = { __VA_ARGS__ };                                 \
		assert_memory_equal(at, expected, sizeof(expected));                               \
	} while (0)

static int up(void **state)
{
	(void)state;
	raw_big = 1;
	return 0;
}

static int down(void **state)
{
	(void)state;
	raw_big = 0;
	return 0;
}

static void open_big(struct bench *b, uint32_t size, uint64_t features, uint32_t tables)
{
	bench_configure(b, size, features, tables, 4, VQB_INDIRECT_ALWAYS);
	b->config.ring.flags = VQB_RING_BIG_ENDIAN;
	bench_start(b);
}

static const struct vqb_segment two[] = { { UINT64_C(0x0102030405060708), 0x11121314, 0 },
					  { UINT64_C(0xa1a2a3a4a5a6a7a8), 0x21222324, 0 } };

/* Shows: LEG-ANY-07 */
static void test_descriptors(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	assert_int_equal(vqb_driver_add(b.drv, two, 1, 1, NULL), VQB_OK);
	expect_bytes(b.raw.desc, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 1, 0, 1);
	expect_bytes(b.raw.desc + 16, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0x21, 0x22,
		     0x23, 0x24, 0, 2);
	bench_close(&b);
}

/* Shows: LEG-ANY-07 */
static void test_tables(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS | INDIRECT, 4);
	assert_int_equal(vqb_driver_add(b.drv, two, 1, 1, NULL), VQB_OK);
	expect_bytes(b.raw.desc, 0x00, 0xc0, 0xff, 0xee, 0, 0, 0, 0, 0, 0, 0, 32, 0, 4);
	expect_bytes(b.tables, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 1, 0, 1);
	expect_bytes(b.tables + 16, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0x21, 0x22,
		     0x23, 0x24, 0, 2);
	bench_close(&b);
}

/* Runs that do not adjoin, and one that goes round the end of the ring. Shows: LEG-ANY-07 */
static void test_scattered_chains(void **state)
{
	struct bench b;
	unsigned at[8];

	(void)state;
	open_big(&b, 8, LEGACY_FLAGS, 0);
	for (uintptr_t n = 0; n < 8; n++)
		bench_add(&b, n, 1, 0);
	vqb_driver_publish(b.drv);
	bench_give(&b, 6, 0);
	bench_give(&b, 7, 0);
	bench_give(&b, 2, 0);
	bench_give(&b, 0, 0);
	for (int i = 0; i < 4; i++)
		bench_reap(&b);
	bench_add(&b, 9, 2, 2);
	vqb_driver_publish(b.drv);
	b.taken = 8;
	assert_int_equal(bench_take(&b), 6);
	bench_expect_direct(&b, 6, 9, 2, 2);
	assert_int_equal(bench_chain(&b, 6, at), 4);
	assert_int_equal(at[1], 7);
	assert_int_equal(at[2], 2);
	assert_int_equal(at[3], 0);
	expect_bytes(b.raw.desc + 16 * 7 + 12, 0, 1, 0, 2);
	expect_bytes(b.raw.desc + 16 * 2 + 12, 0, 3, 0, 0);
	bench_close(&b);
}

/* Shows: LEG-ANY-07 */
static void test_the_available_ring(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	bench_rounds(&b, 258);
	bench_add(&b, 1, 1, 0);
	bench_add(&b, 2, 1, 0);
	vqb_driver_disarm(b.drv);
	expect_bytes(b.raw.avail, 0, 1, 1, 2);
	vqb_driver_publish(b.drv);
	expect_bytes(b.raw.avail, 0, 1, 1, 4);
	expect_bytes(b.raw.avail + 4, 0, 0, 0, 1, 0, 2, 0, 3);
	vqb_driver_arm(b.drv);
	expect_bytes(b.raw.avail, 0, 0);
	bench_close(&b);
}

/* Shows: LEG-ANY-07 */
static void test_the_used_event(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_EVENT, 0);
	bench_rounds(&b, 0x102);
	vqb_driver_arm(b.drv);
	expect_bytes(b.raw.avail + 12, 1, 2);
	vqb_driver_disarm(b.drv);
	expect_bytes(b.raw.avail + 12, 1, 1);
	for (uintptr_t n = 0; n < 4; n++)
		bench_add(&b, n, 1, 0);
	vqb_driver_publish(b.drv);
	vqb_driver_postpone(b.drv, VQB_POSTPONE_LONG);
	expect_bytes(b.raw.avail + 12, 1, 4);
	bench_close(&b);
}

/* Shows: LEG-ANY-07 */
static void test_used_entries(void **state)
{
	static const uint8_t entry[] = { 0, 0, 0, 0, 0, 0, 2, 1 }, idx[] = { 0, 1 };
	struct bench b;
	struct vqb_done done;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	bench_add(&b, 7, 0, 2);
	vqb_driver_publish(b.drv);
	memcpy(b.raw.used + 4, entry, sizeof(entry));
	memcpy(b.raw.used + 2, idx, sizeof(idx));
	assert_int_equal(vqb_driver_pending(b.drv), 1);
	done = bench_reap_done(&b);
	assert_ptr_equal(done.token, bench_token(7));
	assert_int_equal(done.len, 0x201);
	assert_int_equal(done.flags, 0);
	bench_close(&b);
}

/* A legacy device's lengths are often wrong: nothing depends on them. Shows: LEG-DRV-07 */
static void test_a_wrong_used_length_does_no_harm(void **state)
{
	static const uint32_t len[] = { 0, 1, 513, 0x80000000, UINT32_MAX };
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	for (unsigned i = 0; i < 5; i++) {
		bench_add(&b, i + 1, 0, 1);
		vqb_driver_publish(b.drv);
		bench_give(&b, bench_take(&b), len[i]);
		assert_int_equal(bench_reap(&b), i + 1);
	}
	assert_int_equal(vqb_driver_state(b.drv), VQB_OK);
	bench_close(&b);
}

/* Shows: LEG-ANY-07 */
static void test_the_devices_wishes(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	b.raw.used[0] = 1;
	b.raw.used[1] = 0; /* 256: not the flag */
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	b.raw.used[1] = 1;
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);

	open_big(&b, 4, LEGACY_EVENT, 0);
	bench_rounds(&b, 0x102);
	b.raw.used[36] = 1;
	b.raw.used[37] = 2;
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_NOTIFY);
	b.raw.used[36] = 3; /* 0x301 is far; 0x103, its bytes the other way round, is next */
	b.raw.used[37] = 1;
	bench_add(&b, 1, 1, 0);
	assert_int_equal(vqb_driver_publish(b.drv), VQB_QUIET);
	bench_close(&b);
}

static void test_restore_reads_big_endian_indices(void **state)
{
	struct vqb_driver_saved saved, wrong = { .avail = 0x0201, .used = 0x0201 };
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_EVENT, 0);
	bench_rounds(&b, 0x102);
	assert_int_equal(vqb_driver_save(b.drv, &saved), VQB_OK);
	assert_int_equal(saved.avail, 0x102);
	assert_int_equal(vqb_driver_reset(b.drv, NULL), VQB_OK);
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &wrong), VQB_E_INVALID);
	assert_int_equal(vqb_driver_restore(b.drv, &b.config.ring, &saved), VQB_OK);
	bench_rounds(&b, 10);
	bench_close(&b);
}

/* Under VERSION_1 every ring is little-endian; of flags there is but this one. */
static void test_only_legacy_rings_are_big_endian(void **state)
{
	struct bench b;

	(void)state;
	open_big(&b, 4, LEGACY_FLAGS, 0);
	b.config.ring.features = FLAGS_MODE;
	assert_int_equal(vqb_driver_size(&b.config), 0);
	b.config.ring.flags = 0;
	assert_int_not_equal(vqb_driver_size(&b.config), 0);
	b.config.ring.features = 0;
	for (uint32_t bit = 1; bit < 32; bit++) {
		b.config.ring.flags = 1u << bit;
		assert_int_equal(vqb_driver_size(&b.config), 0);
	}
	bench_close(&b);
}

/* ---- both sides ---- */

#define GUEST_AT BENCH_TABLES_AT /* the tables lie at the start */

struct pair {
	struct bench b;
	struct vqb_extent extent;
	struct vqb_memory map;
	struct vqb_device_config config;
	void *mem;
	struct vqb_device *dev;
	uint8_t *guest;
};

static const struct vqb_indirect_policy always = { .struct_size = sizeof(always),
						   .kind = VQB_INDIRECT_ALWAYS };

/* One block: tables, the ring, data. */
static void open_pair(struct pair *p, uint64_t features)
{
	size_t bytes;

	memset(p, 0, sizeof(*p));
	p->guest = (uint8_t *)bench_alloc(4096, 8192);
	p->b.config.struct_size = sizeof(p->b.config);
	p->b.config.tables = (struct vqb_dma){ p->guest, GUEST_AT, 512 };
	p->b.config.max_table = 4;
	p->b.config.policy = &always;
	p->b.config.ring =
		(struct vqb_ring){ .size = 8, .flags = VQB_RING_BIG_ENDIAN, .features = features };
	assert_int_equal(vqb_ring_place(&p->b.config.ring, p->guest + 1024, 4), VQB_OK);
	bench_start(&p->b);
	p->extent = (struct vqb_extent){ GUEST_AT, 8192, p->guest, VQB_READ | VQB_WRITE, 0 };
	p->map = (struct vqb_memory){ .struct_size = sizeof(p->map), .count = 1 };
	p->map.sorted = &p->extent;
	p->config = (struct vqb_device_config){ .struct_size = sizeof(p->config) };
	p->config.memory = &p->map;
	p->config.ring = (struct vqb_ring_at){ .size = 8,
					       .flags = VQB_RING_BIG_ENDIAN,
					       .features = features };
	assert_int_equal(vqb_ring_place_at(&p->config.ring, GUEST_AT + 1024, 4), VQB_OK);
	bytes = vqb_device_size(&p->config);
	p->mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_device_init(p->mem, bytes, &p->config, &p->dev), VQB_OK);
}

static void serve(struct pair *p, uint32_t first, uint32_t count)
{
	struct vqb_chain chain[8];
	struct vqb_piece piece[32];
	struct vqb_need need;
	uint32_t n;

	assert_int_equal(vqb_device_take(p->dev, chain, 8, piece, 32, &n, &need), VQB_OK);
	assert_int_equal(n, count);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(chain[i].status, VQB_OK);
		assert_int_equal(chain[i].readable, 1);
		assert_int_equal(chain[i].writable, 2);
		assert_ptr_equal(chain[i].piece[1].base, p->guest + 4096 + 16 * (first + i) % 4096);
		assert_int_equal(chain[i].write_bytes, 16);
	}
	for (uint32_t i = n; i-- > 0;)
		assert_int_equal(vqb_device_put(p->dev, chain[i].ticket, (first + i) % 17), VQB_OK);
	assert_int_equal(vqb_device_turn(p->dev), VQB_NOTIFY);
}

/* `batch` requests at a time, over the wrap of the indices; completed back to front. */
static void join(uint64_t features, uint32_t batch)
{
	struct pair p;
	struct vqb_done done[8];

	open_pair(&p, features);
	for (uint32_t first = 1; first < 66000; first += batch) {
		for (uint32_t i = first; i < first + batch; i++) {
			uint64_t addr = GUEST_AT + 4096 + 16 * i % 4096;
			struct vqb_segment seg[] = { { addr, 4, 0 },
						     { addr, 7, 0 },
						     { addr, 9, 0 } };

			assert_int_equal(vqb_driver_add(p.b.drv, seg, 1, 2, bench_token(i)),
					 VQB_OK);
		}
		assert_int_equal(vqb_driver_turn(p.b.drv), VQB_NOTIFY);
		serve(&p, first, batch);
		assert_int_equal(vqb_driver_reap(p.b.drv, done, 8), batch);
		for (uint32_t i = 0; i < batch; i++) {
			uint32_t n = first + batch - 1 - i;

			assert_ptr_equal(done[i].token, bench_token(n));
			assert_int_equal(done[i].len, n % 17);
		}
	}
	free(p.guest);
	free(p.mem);
	free(p.b.mem);
}

static void test_both_sides_agree(void **state)
{
	(void)state;
	join(LEGACY_FLAGS, 2);
	join(LEGACY_EVENT, 2);
	join(LEGACY_EVENT | INDIRECT, 8);
	join(LEGACY_FLAGS | INDIRECT, 3);
}

#define big_test(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		big_test(test_descriptors),
		big_test(test_tables),
		big_test(test_scattered_chains),
		big_test(test_the_available_ring),
		big_test(test_the_used_event),
		big_test(test_used_entries),
		big_test(test_a_wrong_used_length_does_no_harm),
		big_test(test_the_devices_wishes),
		big_test(test_restore_reads_big_endian_indices),
		big_test(test_only_legacy_rings_are_big_endian),
		big_test(test_both_sides_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
