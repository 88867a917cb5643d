/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_platform_barriers.c: which barrier stands between which accesses. With ORDER_PLATFORM every
 * one is of device strength and has its place; without it there is none of those, but the full
 * fence of a CPU at the two places that need one.
 *
 * A call is told as a string, in which each access to a part of the ring and each fence is a
 * letter: D descriptor or table, A available entry, I available index, F available flags, E
 * used_event; U used entry, J used index, G used flags, H avail_event. Stores are upper case, loads
 * lower. Fences are r, w and x of a device, and c of a CPU, in brackets; a is the acquire of the
 * load before it, l the release of the store behind it. Repeated letters are one.
 */
#include "driver_bench.h"
#include "probe_log.h"

#include <vqblk/device.h>

#define PLATFORM (UINT64_C(1) << 36)
#define STORY 256

static struct raw_ring ring;
static uint8_t *tables;
static size_t table_bytes;
static char story[STORY];
static size_t told;

static void tell(const char *what)
{
	size_t n = strlen(what);

	if (n == 1 && told && story[told - 1] == what[0])
		return;
	assert_true(told + n < STORY);
	memcpy(story + told, what, n + 1);
	told += n;
}

static int inside(const uint8_t *p, const uint8_t *from, size_t bytes)
{
	return (uintptr_t)p - (uintptr_t)from < bytes;
}

static void tell_access(const void *at, const char *letters, int store)
{
	/* flags, index, entries, event: of the available ring, then of the used one; descriptors */
	const uint8_t *p = (const uint8_t *)at;
	size_t avail = 4 + 2 * (size_t)ring.size, used = 4 + 8 * (size_t)ring.size;
	const struct {
		const uint8_t *from;
		size_t bytes;
	} part[] = {
		{ ring.avail, 2 },
		{ ring.avail + 2, 2 },
		{ ring.avail + 4, avail - 4 },
		{ ring.avail + avail, 2 },
		{ ring.used, 2 },
		{ ring.used + 2, 2 },
		{ ring.used + 4, used - 4 },
		{ ring.used + used, 2 },
		{ ring.desc, 16 * (size_t)ring.size },
		{ tables, table_bytes },
	};
	char letter[2] = { 0, 0 };

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		if (part[i].from && inside(p, part[i].from, part[i].bytes))
			letter[0] = letters[i];
	}
	assert_int_not_equal(letter[0], 0);
	if (!store)
		letter[0] = (char)(letter[0] - 'A' + 'a');
	tell(letter);
}

static void tell_load(const void *p, unsigned bytes)
{
	(void)bytes;
	tell_access(p, "FIAEGJUHDD", 0);
}

static void tell_store(const void *p, uint64_t v, unsigned bytes)
{
	(void)v;
	(void)bytes;
	tell_access(p, "FIAEGJUHDD", 1);
}

static void tell_fence(enum probe_fence_kind kind)
{
	static const char *const name[] = { "[c]", "[x]", "[r]", "[w]", "[a]", "[l]" };

	tell(name[kind]);
}

static void listen(void)
{
	told = 0;
	story[0] = 0;
	probe_load = tell_load;
	probe_store = tell_store;
	probe_fenced = tell_fence;
}

static void stop_listening(void)
{
	probe_load = NULL;
	probe_store = NULL;
	probe_fenced = NULL;
}

static void expect_story(const char *expected)
{
	stop_listening();
	assert_string_equal(story, expected);
}

/* ---- the driver ---- */

static void open_driver(struct bench *b, uint64_t features)
{
	bench_open_tables(b, 8, features | INDIRECT, 4, 4);
	vqb_driver_publish(b->drv); /* the first decision is always made */
	ring = b->raw;
	tables = b->tables;
	table_bytes = b->config.tables.bytes;
}

/* Each call, alone, in a queue of these features. */
static void driver_story(uint64_t features, const char *add_and_publish, const char *expose,
			 const char *reap, const char *arm, const char *turn)
{
	struct bench b;

	open_driver(&b, features);
	listen();
	bench_add(&b, 1, 1, 1);
	bench_add(&b, 2, 1, 0);
	vqb_driver_publish(b.drv);
	expect_story(add_and_publish);
	bench_add(&b, 3, 1, 0);
	listen();
	vqb_driver_expose(b.drv);
	expect_story(expose);
	bench_serve(&b);
	listen();
	assert_int_equal(bench_reap(&b), 1);
	expect_story(reap);
	vqb_driver_disarm(b.drv);
	listen();
	vqb_driver_arm(b.drv);
	expect_story(arm);
	vqb_driver_disarm(b.drv);
	bench_add(&b, 4, 1, 0);
	listen();
	vqb_driver_turn(b.drv);
	expect_story(turn);
	listen();
	vqb_driver_postpone(b.drv, VQB_POSTPONE_LONG);
	stop_listening();
	assert_non_null(strstr(story, features & PLATFORM ? "[x]j[a][r]" : "[c]j[a]"));
	bench_close(&b);
}

/* Shows: BF-DRV-47 SR-DRV-34 SR-DRV-35 SR-DRV-37 SR-DRV-38 */
static void test_a_driver_orders_for_the_platform(void **state)
{
	(void)state;
	driver_story(FLAGS_MODE | PLATFORM, "DADA[w][l]I[x]g", "[w][l]I", "j[a][r]u", "F[x]j[a][r]",
		     "[w][l]IF[x]gj[a][r]");
	driver_story(EVENT_MODE | PLATFORM, "DADA[w][l]I[x]h", "[w][l]I", "j[a][r]u", "E[x]j[a][r]",
		     "[w][l]IE[x]hj[a][r]");
}

/* Shows: SR-DRV-34 SR-DRV-35 SR-DRV-37 SR-DRV-38 K09 */
static void test_a_driver_orders_for_cpus_otherwise(void **state)
{
	(void)state;
	driver_story(FLAGS_MODE, "DADA[l]I[c]g", "[l]I", "j[a]u", "F[c]j[a]", "[l]IF[c]gj[a]");
	driver_story(EVENT_MODE, "DADA[l]I[c]h", "[l]I", "j[a]u", "E[c]j[a]", "[l]IE[c]hj[a]");
}

/* ---- the device ---- */

#define GUEST_AT UINT64_C(0x10000)

struct host {
	uint8_t *guest;
	struct vqb_extent extent;
	struct vqb_memory memory;
	struct vqb_device_config config;
	void *mem;
	struct vqb_device *dev;
	unsigned offered;
};

static void open_device(struct host *h, uint64_t features)
{
	size_t bytes;

	memset(h, 0, sizeof(*h));
	h->guest = (uint8_t *)bench_alloc(4096, 8192);
	memset(h->guest, 0, 8192);
	h->extent = (struct vqb_extent){ GUEST_AT, 8192, h->guest, VQB_READ | VQB_WRITE, 0 };
	h->memory = (struct vqb_memory){ .struct_size = sizeof(h->memory),
					 .count = 1,
					 .sorted = &h->extent };
	h->config = (struct vqb_device_config){ .struct_size = sizeof(h->config),
						.memory = &h->memory };
	h->config.ring = (struct vqb_ring_at){ .size = 8, .features = features | INDIRECT };
	assert_int_equal(vqb_ring_place_at(&h->config.ring, GUEST_AT, 4), VQB_OK);
	bytes = vqb_device_size(&h->config);
	h->mem = bench_alloc(64, bytes);
	assert_int_equal(vqb_device_init(h->mem, bytes, &h->config, &h->dev), VQB_OK);
	vqb_device_publish(h->dev);
	ring = (struct raw_ring){ h->guest, h->guest + (h->config.ring.avail - GUEST_AT),
				  h->guest + (h->config.ring.used - GUEST_AT), 8 };
	tables = h->guest + 4096;
	table_bytes = 64;
}

static void offer(struct host *h, unsigned head)
{
	raw_desc(tables, 0, GUEST_AT + 6000, 16, 0, 0);
	raw_desc(ring.desc, head, GUEST_AT + 4096, 16, RAW_INDIRECT, 0);
	raw_offer(&ring, h->offered++, head);
}

static struct vqb_ticket take(struct host *h)
{
	struct vqb_chain chain = { .status = 1 };
	struct vqb_piece piece[4];
	struct vqb_need need;
	uint32_t n = 0;

	assert_int_equal(vqb_device_take(h->dev, &chain, 1, piece, 4, &n, &need), VQB_OK);
	assert_int_equal(n, 1);
	assert_int_equal(chain.status, VQB_OK);
	return chain.ticket;
}

static void device_story(uint64_t features, const char *take_one, const char *put_and_publish,
			 const char *expose, const char *arm, const char *turn)
{
	struct vqb_ticket ticket;
	struct host h;

	open_device(&h, features);
	offer(&h, 0);
	listen();
	ticket = take(&h);
	expect_story(take_one);
	listen();
	vqb_device_put(h.dev, ticket, 0);
	vqb_device_publish(h.dev);
	expect_story(put_and_publish);
	offer(&h, 1);
	vqb_device_put(h.dev, take(&h), 0);
	listen();
	vqb_device_expose(h.dev);
	expect_story(expose);
	vqb_device_disarm(h.dev);
	listen();
	vqb_device_arm(h.dev);
	expect_story(arm);
	vqb_device_disarm(h.dev);
	offer(&h, 2);
	vqb_device_put(h.dev, take(&h), 0);
	listen();
	vqb_device_turn(h.dev);
	expect_story(turn);
	free(h.guest);
	free(h.mem);
}

/* Shows: SR-DEV-15 SR-DEV-27 SR-DEV-28 SR-DEV-29 */
static void test_a_device_orders_for_the_platform(void **state)
{
	(void)state;
	device_story(FLAGS_MODE | PLATFORM, "i[a][r]ad", "U[w][l]J[x]f", "[w][l]J", "G[x]i[a][r]",
		     "[w][l]JG[x]fi[a][r]");
	device_story(EVENT_MODE | PLATFORM, "i[a][r]ad", "U[w][l]J[x]e", "[w][l]J", "H[x]i[a][r]",
		     "[w][l]JH[x]ei[a][r]");
}

/* Shows: SR-DEV-15 SR-DEV-27 SR-DEV-28 SR-DEV-29 */
static void test_a_device_orders_for_cpus_otherwise(void **state)
{
	(void)state;
	device_story(FLAGS_MODE, "i[a]ad", "U[l]J[c]f", "[l]J", "G[c]i[a]", "[l]JG[c]fi[a]");
	device_story(EVENT_MODE, "i[a]ad", "U[l]J[c]e", "[l]J", "H[c]i[a]", "[l]JH[c]ei[a]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_driver_orders_for_the_platform),
		cmocka_unit_test(test_a_driver_orders_for_cpus_otherwise),
		cmocka_unit_test(test_a_device_orders_for_the_platform),
		cmocka_unit_test(test_a_device_orders_for_cpus_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
