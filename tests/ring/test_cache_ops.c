/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cache_ops.c: driver and device on two CPUs whose caches do not see each other. Each works on
 * a view of its own; only flush carries a line of it to memory, and only invalidate brings a line
 * from there. Besides, a cache may at any moment write back a line that was changed, and drop one
 * that was not. At the start the views hold old contents, as caches do.
 *
 * One flush too few, or one too late, and the device takes something else than was added, the
 * driver reaps something else than was put, or one of them sleeps for ever.
 */
#include "driver_bench.h"

#include <vqblk/device.h>

/* Short ones, so that each part of the ring has several: its index and most entries lie apart. */
#define LINE 16u
#define LINES 40u
#define BLOCK (LINE * LINES) /* the ring and the tables, as memory has them */
#define SIZE 8u
#define TABLES 4u
#define TABLE_LEN 4u

/* Where the parts are, in the block and in the eyes of the device. */
#define DESC_AT 0u
#define AVAIL_AT 128u
#define USED_AT 192u
#define TABLES_AT 320u
#define TABLES_END (TABLES_AT + 16 * TABLES * TABLE_LEN)
#define GUEST_AT UINT64_C(0x50000000)
#define DATA_AT UINT64_C(0x70000000)
#define DATA_BYTES 0x10000u

/* What one CPU sees. From `cut` on it lies `gap` bytes further up, so that a table may be cut. */
struct view {
	uint8_t *now, *synced; /* and what it was when it last met memory */
	size_t cut, gap;
	unsigned own_idx, entries, entry_bytes; /* the part that it announces with an index */
	unsigned flushes, invalidates;
};

struct request {
	uint32_t bytes, readable, writable; /* writable bytes; segments */
	uint32_t written;
	int out; /* 1: added, 2: taken, 3: put */
};

struct rig {
	uint8_t memory[BLOCK], data[DATA_BYTES];
	struct view drv_view, dev_view;
	struct vqb_cache_ops drv_ops, dev_ops;
	struct vqb_driver *drv;
	struct vqb_device *dev;
	void *drv_mem, *dev_mem;
	struct vqb_extent extent[3];
	struct vqb_memory map;
	struct vqb_ring ring; /* as the driver has it */
	struct vqb_ring_at ring_at;
	int running, in_order;
	int drv_awake, dev_awake;
	uint64_t seed;
	uintptr_t added, taken;
	unsigned long reaped, cut_reads;
	struct request request[256];
	struct vqb_ticket ticket[SIZE];
	uintptr_t holder[SIZE];
	unsigned held;
};

static struct rig *rig;

/* ---- caches ---- */

static uint8_t *view_byte(const struct view *v, size_t at)
{
	return v->now + at + (at >= v->cut ? v->gap : 0);
}

static size_t view_offset(const struct view *v, const void *at)
{
	size_t offset = (size_t)((const uint8_t *)at - v->now);

	if (offset >= v->cut) {
		assert_true(offset >= v->cut + v->gap);
		offset -= v->gap;
	}
	assert_true(offset < BLOCK);
	return offset;
}

static void line_out(struct view *v, size_t line)
{
	for (size_t at = line * LINE; at < (line + 1) * LINE; at++)
		v->synced[at] = rig->memory[at] = *view_byte(v, at);
}

static void line_in(struct view *v, size_t line)
{
	for (size_t at = line * LINE; at < (line + 1) * LINE; at++)
		v->synced[at] = *view_byte(v, at) = rig->memory[at];
}

static int line_changed(const struct view *v, size_t line)
{
	for (size_t at = line * LINE; at < (line + 1) * LINE; at++) {
		if (*view_byte(v, at) != v->synced[at])
			return 1;
	}
	return 0;
}

static void expect_in_memory(const struct view *v, size_t from, size_t bytes)
{
	for (size_t at = from; at < from + bytes; at++)
		assert_int_equal(rig->memory[at], *view_byte(v, at));
}

/* The index in memory went from `before` to `after`: all that it announces is there already. */
static void expect_announced(const struct view *v, unsigned before, unsigned after)
{
	for (unsigned i = before; i != after; i = (i + 1) & 0xffff)
		expect_in_memory(v, v->entries + v->entry_bytes * (i % SIZE), v->entry_bytes);
	if (v != &rig->drv_view)
		return;
	for (size_t line = 0; line < LINES; line++) {
		if (line * LINE < AVAIL_AT || line * LINE >= TABLES_AT)
			assert_false(line_changed(v, line));
	}
}

static void flush(void *context, const void *at, size_t bytes)
{
	struct view *v = (struct view *)context;
	size_t first = view_offset(v, at), last = first + bytes - 1;
	unsigned before = (unsigned)peek(rig->memory + v->own_idx, 2), after;

	assert_true(bytes > 0 && last < BLOCK);
	for (size_t line = first / LINE; line <= last / LINE; line++)
		line_out(v, line);
	after = (unsigned)peek(rig->memory + v->own_idx, 2);
	if (rig->running && after != before)
		expect_announced(v, before, after);
	v->flushes++;
}

/* What was changed and not flushed is lost, as in a cache that is told to forget. */
static void invalidate(void *context, const void *at, size_t bytes)
{
	struct view *v = (struct view *)context;
	size_t first = view_offset(v, at), last = first + bytes - 1;

	assert_true(bytes > 0 && last < BLOCK);
	for (size_t line = first / LINE; line <= last / LINE; line++)
		line_in(v, line);
	v->invalidates++;
}

/* What a cache does of its own accord. */
static void evict(struct view *v)
{
	size_t line = bench_random(&rig->seed, LINES);

	if (line_changed(v, line))
		line_out(v, line);
	else
		line_in(v, line);
}

static void evict_some(void)
{
	for (uint32_t n = bench_random(&rig->seed, 8); n > 0; n--)
		evict(bench_random(&rig->seed, 2) ? &rig->drv_view : &rig->dev_view);
}

/* ---- the rig ---- */

static void view_open(struct view *v, struct vqb_cache_ops *ops, uint8_t fill, size_t cut)
{
	v->cut = cut;
	v->gap = cut < BLOCK ? 1000 : 0;
	v->now = (uint8_t *)bench_alloc(4096, BLOCK + v->gap);
	v->synced = (uint8_t *)bench_alloc(4096, BLOCK);
	memset(v->now, fill, BLOCK + v->gap);
	memset(v->synced, fill, BLOCK);
	*ops = (struct vqb_cache_ops){
		.struct_size = sizeof(*ops), .flush = flush, .invalidate = invalidate, .context = v
	};
}

static void open_driver(uint64_t features, uint32_t flags)
{
	struct vqb_driver_config config = { .struct_size = sizeof(config), .max_size = SIZE };
	uint8_t *now = rig->drv_view.now;
	size_t bytes;

	rig->ring = (struct vqb_ring){ .size = SIZE, .flags = flags, .features = features };
	rig->ring.desc = now + DESC_AT;
	rig->ring.avail = now + AVAIL_AT;
	rig->ring.used = now + USED_AT;
	config.ring = rig->ring;
	config.cache = &rig->drv_ops;
	config.tables =
		(struct vqb_dma){ now + TABLES_AT, GUEST_AT + TABLES_AT, TABLES_END - TABLES_AT };
	config.max_table = TABLE_LEN;
	bytes = vqb_driver_size(&config);
	assert_true(bytes > 0);
	rig->drv_mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_driver_init(rig->drv_mem, bytes, &config, &rig->drv), VQB_OK);
}

static void open_device(uint64_t features, uint32_t flags)
{
	struct vqb_device_config config = { .struct_size = sizeof(config), .max_size = SIZE };
	struct view *v = &rig->dev_view;
	uint32_t access = VQB_READ | VQB_WRITE;
	size_t bytes;

	rig->extent[0] = (struct vqb_extent){ GUEST_AT, v->cut, v->now, access, 0 };
	rig->extent[1] = (struct vqb_extent){ GUEST_AT + v->cut, BLOCK - v->cut,
					      v->now + v->cut + v->gap, access, 0 };
	rig->extent[2] = (struct vqb_extent){ DATA_AT, DATA_BYTES, rig->data, access, 0 };
	rig->map = (struct vqb_memory){ .struct_size = sizeof(rig->map),
					.count = 3,
					.sorted = rig->extent };
	rig->ring_at = (struct vqb_ring_at){ .size = SIZE, .flags = flags, .features = features };
	rig->ring_at.desc = GUEST_AT + DESC_AT;
	rig->ring_at.avail = GUEST_AT + AVAIL_AT;
	rig->ring_at.used = GUEST_AT + USED_AT;
	config.ring = rig->ring_at;
	config.memory = &rig->map;
	config.cache = &rig->dev_ops;
	bytes = vqb_device_size(&config);
	assert_true(bytes > 0);
	rig->dev_mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_device_init(rig->dev_mem, bytes, &config, &rig->dev), VQB_OK);
}

/* `cut`: where the device's view is cut in two, inside a table. */
static void open_rig(uint64_t features, uint32_t flags, size_t cut)
{
	rig = (struct rig *)calloc(1, sizeof(*rig));
	assert_non_null(rig);
	raw_big = flags & VQB_RING_BIG_ENDIAN;
	memset(rig->memory, 0x77, BLOCK);
	view_open(&rig->drv_view, &rig->drv_ops, 0x3c, BLOCK);
	view_open(&rig->dev_view, &rig->dev_ops, 0xa5, cut);
	rig->drv_view.own_idx = AVAIL_AT + 2;
	rig->drv_view.entries = AVAIL_AT + 4;
	rig->drv_view.entry_bytes = 2;
	rig->dev_view.own_idx = USED_AT + 2;
	rig->dev_view.entries = USED_AT + 4;
	rig->dev_view.entry_bytes = 8;
	rig->seed = features ^ cut;
	rig->in_order = features >> VQB_F_IN_ORDER & 1;
	open_driver(features, flags);
	open_device(features, flags);
	rig->running = 1;
	rig->drv_awake = rig->dev_awake = 1;
}

static void close_rig(void)
{
	free(rig->drv_view.now);
	free(rig->drv_view.synced);
	free(rig->dev_view.now);
	free(rig->dev_view.synced);
	free(rig->drv_mem);
	free(rig->dev_mem);
	free(rig);
	raw_big = 0;
}

/* ---- traffic ---- */

/* Segment `i` of request `n`: the address tells which. */
static struct vqb_segment segment(uintptr_t n, uint32_t i)
{
	struct vqb_segment seg = { DATA_AT + 256 * (n % 256) + 64 * (uint64_t)i,
				   1 + (uint32_t)(n + i) % 63, 0 };

	return seg;
}

static int add_one(void)
{
	uintptr_t n = rig->added;
	uint32_t count = 1 + bench_random(&rig->seed, TABLE_LEN);
	uint32_t readable = bench_random(&rig->seed, count + 1);
	struct request *r = &rig->request[n % 256];
	struct vqb_segment seg[TABLE_LEN];
	int32_t status;

	*r = (struct request){ .readable = readable, .writable = count - readable, .out = 1 };
	for (uint32_t i = 0; i < count; i++) {
		seg[i] = segment(n, i);
		r->bytes += i < readable ? 0 : seg[i].len;
	}
	status = vqb_driver_add(rig->drv, seg, readable, count - readable, (void *)(n + 1));
	if (status == VQB_E_NOSPC)
		return 0;
	assert_int_equal(status, VQB_OK);
	rig->added++;
	return 1;
}

static void driver_submits(uint32_t most)
{
	for (uint32_t n = bench_random(&rig->seed, most + 1); n > 0 && add_one(); n--)
		evict_some();
	if (bench_random(&rig->seed, 4) == 0)
		vqb_driver_expose(rig->drv);
	evict_some();
	if (vqb_driver_publish(rig->drv) & VQB_NOTIFY)
		rig->dev_awake = 1;
}

static void driver_reaps(void)
{
	struct vqb_done done[SIZE];
	uint32_t n, max = 1 + bench_random(&rig->seed, SIZE);

	while ((n = vqb_driver_reap(rig->drv, done, max)) > 0) {
		for (uint32_t i = 0; i < n; i++) {
			struct request *r = &rig->request[((uintptr_t)done[i].token - 1) % 256];

			assert_int_equal(r->out, 3);
			assert_int_equal(done[i].len, r->written);
			assert_int_equal(done[i].flags & VQB_DONE_OVERLONG, 0);
			r->out = 0;
			rig->reaped++;
		}
		evict_some();
	}
	assert_int_equal(vqb_driver_state(rig->drv), VQB_OK);
}

/* As a driver's interrupt handler. */
static void driver_runs(void)
{
	uint32_t answer;

	if (!rig->drv_awake)
		return;
	do {
		vqb_driver_disarm(rig->drv);
		evict_some();
		driver_reaps();
		evict_some();
		answer = vqb_driver_turn(rig->drv);
		if (answer & VQB_NOTIFY)
			rig->dev_awake = 1;
	} while (answer & VQB_MORE);
	rig->drv_awake = 0;
}

/* The chain is the next request, segment by segment. */
static void expect_next(const struct vqb_chain *chain)
{
	uintptr_t n = rig->taken++;
	struct request *r = &rig->request[n % 256];

	assert_int_equal(chain->status, VQB_OK);
	assert_int_equal(r->out, 1);
	assert_int_equal(chain->readable, r->readable);
	assert_int_equal(chain->writable, r->writable);
	for (uint32_t i = 0; i < chain->readable + chain->writable; i++) {
		struct vqb_segment seg = segment(n, i);

		assert_ptr_equal(chain->piece[i].base, rig->data + (seg.addr - DATA_AT));
		assert_int_equal(chain->piece[i].len, seg.len);
	}
	r->out = 2;
	rig->holder[rig->held] = n;
	rig->ticket[rig->held++] = chain->ticket;
}

static void device_takes(void)
{
	struct vqb_chain chain[SIZE];
	struct vqb_piece piece[SIZE * TABLE_LEN];
	struct vqb_need need;
	uint32_t n, max = 1 + bench_random(&rig->seed, SIZE);

	do {
		assert_int_equal(
			vqb_device_take(rig->dev, chain, max, piece, SIZE * TABLE_LEN, &n, &need),
			VQB_OK);
		for (uint32_t i = 0; i < n; i++)
			expect_next(&chain[i]);
		evict_some();
	} while (n);
}

static void device_puts(uint32_t most)
{
	for (uint32_t n = bench_random(&rig->seed, most + 1); n > 0 && rig->held; n--) {
		uint32_t at = rig->in_order ? 0 : bench_random(&rig->seed, rig->held);
		struct request *r = &rig->request[rig->holder[at] % 256];

		r->written = bench_random(&rig->seed, r->bytes + 1);
		r->out = 3;
		assert_int_equal(vqb_device_put(rig->dev, rig->ticket[at], r->written), VQB_OK);
		rig->held--;
		memmove(&rig->ticket[at], &rig->ticket[at + 1],
			(rig->held - at) * sizeof(rig->ticket[0]));
		memmove(&rig->holder[at], &rig->holder[at + 1],
			(rig->held - at) * sizeof(rig->holder[0]));
		evict_some();
	}
	if (bench_random(&rig->seed, 4) == 0)
		vqb_device_expose(rig->dev);
	evict_some();
	if (vqb_device_publish(rig->dev) & VQB_NOTIFY)
		rig->drv_awake = 1;
}

static void device_runs(void)
{
	uint32_t answer;

	if (!rig->dev_awake)
		return;
	do {
		vqb_device_disarm(rig->dev);
		evict_some();
		device_takes();
		evict_some();
		answer = vqb_device_turn(rig->dev);
		if (answer & VQB_NOTIFY)
			rig->drv_awake = 1;
	} while (answer & VQB_MORE);
	rig->dev_awake = 0;
}

/* Both sides run only when they are awake, so a wish that is not seen stops the traffic. */
static void run(unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		driver_submits(4);
		device_runs();
		device_puts(4);
		driver_runs();
	}
	while (rig->held || rig->dev_awake || rig->drv_awake) {
		device_runs();
		device_puts(SIZE);
		driver_runs();
	}
	assert_int_equal(rig->taken, rig->added);
	assert_int_equal(rig->reaped, rig->added);
	assert_true(rig->added > steps / 2);
}

/* ---- tests ---- */

#define LEGACY_EVENT (UINT64_C(1) << 29)
#define WHOLE (BLOCK - LINE)
#define CUT (TABLES_AT + 16 + 4) /* in the second entry of the first table */

static void traffic(uint64_t features, uint32_t flags, size_t cut)
{
	open_rig(features, flags, cut);
	run(4000);
	assert_true(rig->drv_view.flushes > 0 && rig->drv_view.invalidates > 0);
	assert_true(rig->dev_view.flushes > 0 && rig->dev_view.invalidates > 0);
	close_rig();
}

static void test_direct_requests(void **state)
{
	(void)state;
	traffic(FLAGS_MODE, 0, WHOLE);
	traffic(EVENT_MODE, 0, WHOLE);
}

static void test_requests_in_tables(void **state)
{
	(void)state;
	traffic(FLAGS_MODE | INDIRECT, 0, WHOLE);
	traffic(EVENT_MODE | INDIRECT, 0, WHOLE);
}

static void test_a_table_that_is_cut(void **state)
{
	(void)state;
	traffic(EVENT_MODE | INDIRECT, 0, CUT);
	traffic(EVENT_MODE | INDIRECT, 0, CUT + 64);
}

static void test_in_order(void **state)
{
	(void)state;
	traffic(EVENT_MODE | INDIRECT | UINT64_C(1) << 35, 0, WHOLE);
	traffic(FLAGS_MODE | UINT64_C(1) << 35, 0, WHOLE);
}

static void test_big_endian(void **state)
{
	(void)state;
	traffic(LEGACY_EVENT | INDIRECT, VQB_RING_BIG_ENDIAN, CUT);
	traffic(0, VQB_RING_BIG_ENDIAN, WHOLE);
}

/* Another CPU goes on: its cache holds what it last saw of the ring, long ago. */
static void grow_old(struct view *v)
{
	for (size_t at = 0; at < BLOCK; at++)
		v->synced[at] = *view_byte(v, at) = 0x5a;
}

static void test_restored_in_another_cache(void **state)
{
	struct vqb_driver_saved drv_saved;
	struct vqb_device_saved dev_saved;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_rig((i ? EVENT_MODE : FLAGS_MODE) | INDIRECT, 0, WHOLE);
		for (unsigned turn = 0; turn < 50; turn++) {
			run(20);
			rig->added = rig->taken = rig->reaped = 0;
			assert_int_equal(vqb_driver_save(rig->drv, &drv_saved), VQB_OK);
			assert_int_equal(vqb_device_save(rig->dev, &dev_saved), VQB_OK);
			vqb_driver_reset(rig->drv, NULL);
			vqb_device_reset(rig->dev, NULL);
			grow_old(&rig->drv_view);
			grow_old(&rig->dev_view);
			assert_int_equal(vqb_device_restore(rig->dev, &rig->ring_at, &dev_saved),
					 VQB_OK);
			assert_int_equal(vqb_driver_restore(rig->drv, &rig->ring, &drv_saved),
					 VQB_OK);
			rig->drv_awake = rig->dev_awake = 1;
		}
		close_rig();
	}
}

static void test_reset_in_another_cache(void **state)
{
	(void)state;
	open_rig(FLAGS_MODE | INDIRECT, 0, WHOLE);
	for (unsigned turn = 0; turn < 50; turn++) {
		run(20);
		rig->running = 0;
		rig->added = rig->taken = rig->reaped = 0;
		vqb_device_reset(rig->dev, NULL);
		vqb_driver_reset(rig->drv, NULL);
		grow_old(&rig->drv_view);
		grow_old(&rig->dev_view);
		assert_int_equal(vqb_driver_reset(rig->drv, &rig->ring), VQB_OK);
		assert_int_equal(vqb_device_reset(rig->dev, &rig->ring_at), VQB_OK);
		rig->running = 1;
		rig->drv_awake = rig->dev_awake = 1;
	}
	close_rig();
}

/* A set of hooks that is not whole is refused. */
static void test_hooks_are_checked(void **state)
{
	struct vqb_cache_ops good, ops;
	struct vqb_driver_config drv = { .struct_size = sizeof(drv), .max_size = 8 };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .max_size = 8 };

	(void)state;
	open_rig(FLAGS_MODE, 0, WHOLE);
	good = rig->drv_ops;
	dev.memory = &rig->map;
	drv.cache = dev.cache = &ops;
	for (unsigned fault = 0; fault < 5; fault++) {
		ops = good;
		if (fault == 1)
			ops.struct_size--;
		if (fault == 2)
			ops.zero = 1;
		if (fault == 3)
			ops.flush = NULL;
		if (fault == 4)
			ops.invalidate = NULL;
		assert_int_equal(vqb_driver_size(&drv) == 0, fault != 0);
		assert_int_equal(vqb_device_size(&dev) == 0, fault != 0);
	}
	close_rig();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct_requests),
		cmocka_unit_test(test_requests_in_tables),
		cmocka_unit_test(test_a_table_that_is_cut),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_big_endian),
		cmocka_unit_test(test_restored_in_another_cache),
		cmocka_unit_test(test_reset_in_another_cache),
		cmocka_unit_test(test_hooks_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
