/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device may touch, enforced by the page tables: it writes the used ring and nothing
 * else, and looks at no buffer. A store or load out of place ends the program.
 */
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "device_bench.h"

enum { SIZE = 8 };

/* Guest memory: each part on pages of its own. */
struct parts {
	uint8_t *base;
	size_t page;
	struct vqb_extent extent;
	struct vqb_memory memory;
};

enum part { DESC_PAGE, AVAIL_PAGE, USED_PAGE, TABLE_PAGE, BUFFER_PAGE, PAGES };

static struct parts parts;

static uint64_t guest(enum part part)
{
	return LOW + (uint64_t)part * parts.page;
}

static uint8_t *host(enum part part)
{
	return parts.base + (size_t)part * parts.page;
}

static void protect(enum part part, int how)
{
	assert_int_equal(mprotect(host(part), parts.page, how), 0);
}

static struct bench *open_on_pages(void **state, uint64_t features)
{
	struct bench *b = bench_plan(state, SIZE, features);

	parts.page = (size_t)sysconf(_SC_PAGESIZE);
	parts.base = (uint8_t *)mmap(NULL, PAGES * parts.page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(parts.base != MAP_FAILED);
	parts.extent =
		(struct vqb_extent){ LOW, PAGES * parts.page, parts.base, VQB_READ | VQB_WRITE, 0 };
	parts.memory = (struct vqb_memory){ .struct_size = sizeof(parts.memory),
					    .generation = 1,
					    .count = 1,
					    .sorted = &parts.extent };
	b->config.memory = &parts.memory;
	b->config.ring.desc = guest(DESC_PAGE);
	b->config.ring.avail = guest(AVAIL_PAGE);
	b->config.ring.used = guest(USED_PAGE);
	b->ring = (struct raw_ring){ host(DESC_PAGE), host(AVAIL_PAGE), host(USED_PAGE), SIZE };
	bench_start(b);
	return b;
}

static void close_pages(void)
{
	assert_int_equal(munmap(parts.base, PAGES * parts.page), 0);
}

/* The driver's turn: it may write everything but the used ring. */
static void drivers_turn(void)
{
	protect(DESC_PAGE, PROT_READ | PROT_WRITE);
	protect(AVAIL_PAGE, PROT_READ | PROT_WRITE);
	protect(TABLE_PAGE, PROT_READ | PROT_WRITE);
}

static void devices_turn(void)
{
	protect(DESC_PAGE, PROT_READ);
	protect(AVAIL_PAGE, PROT_READ);
	protect(TABLE_PAGE, PROT_READ);
	protect(BUFFER_PAGE, PROT_NONE);
}

/* A readable buffer and a writable one, direct or through a table. */
static void offer_request(struct bench *b, unsigned head, int indirect)
{
	uint64_t buffer = guest(BUFFER_PAGE);
	uint8_t *table = indirect ? host(TABLE_PAGE) : b->ring.desc;
	unsigned first = indirect ? 0 : head, second = indirect ? 1 : (head + 1) % SIZE;

	raw_desc(table, first, buffer, 16, RAW_NEXT, second);
	raw_desc(table, second, buffer + 16, 512, RAW_WRITE, 0);
	if (indirect)
		bench_desc(b, head, guest(TABLE_PAGE), 32, RAW_INDIRECT, 0);
	bench_offer(b, head);
}

static void offer_loop(struct bench *b, unsigned head)
{
	bench_desc(b, head, guest(BUFFER_PAGE), 16, RAW_NEXT, head);
	bench_offer(b, head);
}

static void offer_unmapped(struct bench *b, unsigned head)
{
	bench_desc(b, head, LOW - 16, 16, 0, 0);
	bench_offer(b, head);
}

/* Everything that a device does with chains, good and bad. */
static void traffic(struct bench *b, int indirect)
{
	struct vqb_chain chain;

	for (unsigned i = 0; i < 20; i++) {
		drivers_turn();
		offer_request(b, i % SIZE, indirect);
		devices_turn();
		bench_take_one(b);
		assert_int_equal(vqb_device_untake(b->dev, b->chain[0].ticket), VQB_OK);
		bench_put(b, bench_take_ticket(b), 512);
		vqb_device_disarm(b->dev);
		vqb_device_turn(b->dev);

		drivers_turn();
		offer_loop(b, i % SIZE);
		devices_turn();
		bench_put(b, bench_take_bad(b, VQB_RULE_LOOP)->ticket, 0);
		vqb_device_publish(b->dev);

		drivers_turn();
		offer_unmapped(b, i % SIZE);
		devices_turn();
		assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
		assert_int_equal(vqb_device_reject(b->dev, &chain), VQB_OK);
		bench_put(b, chain.ticket, 0);
		vqb_device_expose(b->dev);
		vqb_device_arm(b->dev);
		assert_int_equal(raw_used_idx(&b->ring), 3 * i + 3);
	}
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	close_pages();
}

/* Shows: SR-ANY-02 SR-DEV-06 */
static void test_full_traffic_with_flags(void **state)
{
	traffic(open_on_pages(state, 0), 0);
}

/* Shows: SR-ANY-02 SR-DEV-06 */
static void test_full_traffic_with_events(void **state)
{
	traffic(open_on_pages(state, EVENT_IDX), 0);
}

/* Shows: SR-ANY-02 SR-DEV-06 */
static void test_full_traffic_with_tables(void **state)
{
	traffic(open_on_pages(state, EVENT_IDX | INDIRECT), 1);
}

/* Shows: K06 K14 */
static void test_nothing_behind_a_table_is_read(void **state)
{
	struct bench *b = open_on_pages(state, INDIRECT);
	uint64_t table = guest(BUFFER_PAGE) - 32;

	raw_desc(host(BUFFER_PAGE) - 32, 0, guest(DESC_PAGE), 16, RAW_NEXT, 7);
	raw_desc(host(BUFFER_PAGE) - 32, 1, guest(DESC_PAGE), 16, 0, 0);
	bench_desc(b, 0, table, 32, RAW_INDIRECT, 0);
	bench_offer(b, 0);
	devices_turn();
	bench_take_bad(b, VQB_RULE_NEXT);
	close_pages();
}

/* Shows: K36 */
static void test_no_ring_is_touched_after_reset_to_none(void **state)
{
	struct bench *b = open_on_pages(state, EVENT_IDX);

	offer_request(b, 0, 0);
	offer_request(b, 2, 0);
	bench_take_one(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	for (unsigned part = 0; part < PAGES; part++)
		protect((enum part)part, PROT_NONE);
	assert_int_equal(vqb_device_put(b->dev, b->chain[0].ticket, 0), VQB_E_STALE);
	bench_take_nothing(b);
	vqb_device_turn(b->dev);
	vqb_device_arm(b->dev);
	vqb_device_disarm(b->dev);
	vqb_device_publish(b->dev);
	assert_int_equal(vqb_device_pending(b->dev), 0);
	close_pages();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_full_traffic_with_flags),
		bench_test(test_full_traffic_with_events),
		bench_test(test_full_traffic_with_tables),
		bench_test(test_nothing_behind_a_table_is_read),
		bench_test(test_no_ring_is_touched_after_reset_to_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
