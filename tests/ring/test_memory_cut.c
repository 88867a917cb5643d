/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a hook hands out in little extents, the last of which ends at 2^64: ring, tables and
 * buffers are found to the byte, wherever they are cut, and nothing past the end is.
 */
#include "device_bench.h"

enum {
	TOP_BYTES = 0x10000, /* of the hook's memory, */
	HOLE = 0x8000,       /* in which this is the offset of a hole */
	HOLE_BYTES = 100,
	SIZE = 8,
};

#define TOP (UINT64_MAX - TOP_BYTES + 1)

static const uint32_t grains[] = { 1, 3, 16, 4095 };

#define FOR_EACH_GRAIN(g)                                                                          \
	for (const uint32_t *g = grains; g < grains + sizeof(grains) / sizeof(grains[0]); g++)

static struct {
	uint8_t *host;
	uint32_t grain;
	int scattered; /* no two extents adjoin in the host */
	unsigned calls;
} cut;

/* Where the byte at `offset` of the hook's memory lies. */
static uint8_t *cut_host(uint32_t offset)
{
	uint32_t cell = offset / cut.grain, cells = TOP_BYTES / cut.grain;

	if (!cut.scattered)
		return cut.host + offset;
	return cut.host + (size_t)(cells - cell) * (cut.grain + 1) + offset % cut.grain;
}

static int in_hole(uint64_t offset)
{
	return offset - HOLE < HOLE_BYTES;
}

/* The part of a grain that has `addr`, up to the hole or the end of all memory. */
static int32_t cut_translate(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	uint32_t offset = (uint32_t)(addr - TOP), first = offset, last = offset;

	(void)context;
	(void)access;
	cut.calls++;
	if (addr < TOP || in_hole(offset))
		return VQB_E_FAULT;
	while (first % cut.grain && !in_hole(first - 1))
		first--;
	while ((last + 1) % cut.grain && last + 1 < TOP_BYTES && !in_hole(last + 1))
		last++;
	*out = (struct vqb_extent){ TOP + first, last - first + 1, cut_host(first),
				    VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

/* A device whose ring is in the array, unless it is moved, and whose other memory is the hook's. */
static struct bench *plan_cut(void **state, uint32_t grain, int scattered)
{
	struct bench *b = bench_plan(state, SIZE, INDIRECT);

	cut.host = b->high;
	cut.grain = grain;
	cut.scattered = scattered;
	b->memory.count = 1;
	b->memory.translate = cut_translate;
	return b;
}

static struct bench *open_cut(void **state, uint32_t grain)
{
	struct bench *b = plan_cut(state, grain, 1);

	bench_start(b);
	return b;
}

static void cut_poke(uint32_t offset, const uint8_t *from, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*cut_host(offset + i) = from[i];
}

/*
 * The pieces from *at on are the `len` bytes at `offset`, in as many pieces as there are grains;
 * moves *at behind them.
 */
static void assert_cut(const struct vqb_piece **at, uint32_t offset, uint32_t len)
{
	uint32_t end = offset + len;

	while (offset < end) {
		uint32_t next = (offset / cut.grain + 1) * cut.grain;

		next = next < end ? next : end;
		bench_assert_piece(*at, cut_host(offset), next - offset);
		offset = next;
		(*at)++;
	}
}

/* ---- buffers ---- */

/* A request as a disk has it: 16 bytes, data, and one byte to be written. Shows: SR-DEV-01 K14 */
static void test_header_data_and_status_are_cut_where_memory_is(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		for (uint32_t shift = 0; shift < 20; shift++) {
			struct bench *b = open_cut(state, *grain);
			const struct vqb_piece *at = b->piece;
			const struct vqb_chain *chain;

			bench_desc(b, 0, TOP + 4090 + shift, 16, RAW_NEXT, 1);
			bench_desc(b, 1, TOP + 8185 - shift, 512, RAW_NEXT, 2);
			bench_desc(b, 2, TOP + 8184 - shift, 1, RAW_WRITE, 0);
			bench_offer(b, 0);
			chain = bench_take_one(b);
			assert_int_equal(chain->read_bytes, 528);
			assert_int_equal(chain->write_bytes, 1);
			assert_cut(&at, 4090 + shift, 16);
			assert_cut(&at, 8185 - shift, 512);
			assert_ptr_equal(at, chain->piece + chain->readable);
			assert_cut(&at, 8184 - shift, 1);
			assert_ptr_equal(at, chain->piece + chain->readable + chain->writable);
		}
	}
}

/* Shows: SR-DEV-33 */
static void test_buffer_ends_at_the_last_address_and_not_a_byte_later(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		for (unsigned flags = 0; flags <= RAW_WRITE; flags += RAW_WRITE) {
			struct bench *b = open_cut(state, *grain);
			const struct vqb_piece *at = b->piece;

			bench_desc(b, 0, UINT64_MAX - 999, 1000, flags, 0);
			bench_offer(b, 0);
			bench_take_one(b);
			assert_cut(&at, TOP_BYTES - 1000, 1000);
			assert_ptr_equal(at,
					 b->piece + b->chain[0].readable + b->chain[0].writable);
			bench_desc(b, 1, UINT64_MAX - 999, 1001, flags, 0);
			bench_offer(b, 1);
			cut.calls = 0;
			assert_int_equal(bench_take_bad(b, VQB_RULE_RANGE)->reason.addr,
					 UINT64_MAX - 999);
			assert_int_equal(cut.calls, 0);
		}
	}
}

/* Shows: SR-DEV-33 */
static void test_buffer_that_meets_a_hole_stops_at_its_first_byte(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		struct bench *b = open_cut(state, *grain);
		const struct vqb_piece *at = b->piece;

		bench_desc(b, 0, TOP + HOLE - 300, 300, RAW_NEXT, 1);
		bench_desc(b, 1, TOP + HOLE + HOLE_BYTES, 1, 0, 0);
		bench_offer(b, 0);
		assert_int_equal(bench_take_one(b)->read_bytes, 301);
		assert_cut(&at, HOLE - 300, 300);
		assert_cut(&at, HOLE + HOLE_BYTES, 1);
		bench_desc(b, 2, TOP + HOLE - 300, 600, RAW_WRITE, 0);
		bench_offer(b, 2);
		assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
		assert_int_equal(b->need.addr, TOP + HOLE);
		assert_int_equal(b->need.access, VQB_WRITE);
	}
}

/* ---- tables ---- */

/* Two readable entries and one that is written, in another order. */
static void table_at(uint32_t offset)
{
	uint8_t table[3 * 16];

	raw_desc(table, 0, TOP + 5, 7, RAW_NEXT, 2);
	raw_desc(table, 2, DATA, 9, RAW_NEXT, 1);
	raw_desc(table, 1, TOP + 0x2000, 4000, RAW_WRITE, 0);
	cut_poke(offset, table, sizeof(table));
}

static void offer_table(struct bench *b, unsigned head, uint32_t offset)
{
	table_at(offset);
	bench_desc(b, head, TOP + offset, 3 * 16, RAW_INDIRECT, 0);
	bench_offer(b, head);
}

static void take_table(struct bench *b)
{
	const struct vqb_chain *chain = bench_take_one(b);
	const struct vqb_piece *at = chain->piece;

	assert_int_equal(chain->read_bytes, 16);
	assert_int_equal(chain->write_bytes, 4000);
	assert_cut(&at, 5, 7);
	bench_assert_piece(at++, bench_host(b, DATA), 9);
	assert_ptr_equal(at, chain->piece + chain->readable);
	assert_cut(&at, 0x2000, 4000);
	assert_ptr_equal(at, chain->piece + chain->readable + chain->writable);
}

/* Shows: K14 */
static void test_table_is_read_right_wherever_it_is_cut(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		for (uint32_t shift = 0; shift < 50; shift++) {
			struct bench *b = open_cut(state, *grain);

			offer_table(b, 4, 4095 - shift);
			take_table(b);
		}
	}
}

/* Shows: SR-DEV-33 */
static void test_table_ends_at_the_last_address_and_not_a_byte_later(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		struct bench *b = open_cut(state, *grain);

		offer_table(b, 4, TOP_BYTES - 3 * 16);
		take_table(b);
		bench_desc(b, 5, UINT64_MAX - 3 * 16 + 2, 3 * 16, RAW_INDIRECT, 0);
		bench_offer(b, 5);
		bench_take_bad(b, VQB_RULE_RANGE);
	}
}

/* All of a table has to be there, even what no entry leads to. Shows: K14 */
static void test_table_that_meets_a_hole_is_a_fault(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		struct bench *b = open_cut(state, *grain);

		offer_table(b, 4, HOLE - 3 * 16);
		take_table(b);
		bench_desc(b, 5, TOP + HOLE - 3 * 16, 4 * 16, RAW_INDIRECT, 0);
		bench_offer(b, 5);
		assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
		assert_int_equal(b->need.addr, TOP + HOLE);
		assert_int_equal(b->need.access, VQB_READ);
	}
}

/* ---- the ring ---- */

/* Two chains round, the ring being where its parts say. */
static void ring_works(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++) {
		bench_offer_writable(b, 3 + i);
		bench_take_one(b);
		bench_put(b, b->chain[0].ticket, 5);
		vqb_device_publish(b->dev);
		bench_assert_used(b, i, 3 + i, 5);
		assert_int_equal(raw_used_idx(&b->ring), i + 1);
	}
}

/* The ring's parts may be cut in the guest as long as they are one stretch in the host. */
static void test_ring_may_be_cut_where_the_host_has_it_in_a_row(void **state)
{
	FOR_EACH_GRAIN(grain)
	{
		struct bench *b = plan_cut(state, *grain, 0);

		b->config.ring = bench_ring_at(TOP + 0x1000, SIZE, 0);
		b->ring =
			(struct raw_ring){ cut_host(0x1000),
					   cut_host((uint32_t)(b->config.ring.avail - TOP)),
					   cut_host((uint32_t)(b->config.ring.used - TOP)), SIZE };
		bench_start(b);
		ring_works(b);
	}
}

/* Part `part` of the ring at `addr` in the hook's memory, the others in the array's. */
static void move_part(struct bench *b, unsigned part, uint64_t addr)
{
	uint64_t *at[] = { &b->config.ring.desc, &b->config.ring.avail, &b->config.ring.used };
	uint8_t **raw[] = { &b->ring.desc, &b->ring.avail, &b->ring.used };

	*at[part] = addr;
	*raw[part] = cut_host((uint32_t)(addr - TOP));
}

static void test_ring_part_that_is_scattered_in_the_host_is_a_fault(void **state)
{
	for (unsigned part = 0; part < 3; part++) {
		FOR_EACH_GRAIN(grain)
		{
			struct bench *b = plan_cut(state, *grain, 1);

			move_part(b, part, TOP + 0x1000 - 16);
			assert_int_equal(bench_init(b), VQB_E_FAULT);
		}
	}
}

/*
 * Descriptor table and available ring can end at 2^64; the used ring, which is aligned to 4 and
 * ends between two multiples of it, two bytes below. Shows: SR-DEV-33
 */
static void test_ring_part_ends_at_the_last_address_and_not_later(void **state)
{
	static const uint32_t bytes[] = { 16 * SIZE, 6 + 2 * SIZE, 8 + 8 * SIZE };
	static const uint32_t step[] = { 16, 2, 4 };

	for (unsigned part = 0; part < 3; part++) {
		FOR_EACH_GRAIN(grain)
		{
			struct bench *b = plan_cut(state, *grain, 0);

			move_part(b, part, UINT64_MAX - bytes[part] + 1);
			bench_start(b);
			ring_works(b);
			b = plan_cut(state, *grain, 0);
			move_part(b, part, UINT64_MAX - bytes[part] + 1 + step[part]);
			assert_int_equal(bench_init(b), VQB_E_FAULT);
		}
	}
}

/*
 * The last region of the array ends at 2^64, and the first one begins at 0 where the last one ends
 * in the host, so that only the addresses tell that what runs on there is not one stretch.
 */
static struct bench *plan_round(void **state)
{
	struct bench *b = plan_cut(state, TOP_BYTES, 0);

	b->memory.translate = NULL;
	b->memory.count = 3;
	b->region[1] = b->region[2] = b->region[0];
	b->region[0].addr = 0;
	b->region[0].host = b->high + TOP_BYTES;
	b->region[0].len = 0x1000;
	b->region[2].addr = TOP;
	b->region[2].host = b->high;
	b->region[2].len = TOP_BYTES;
	return b;
}

/* Shows: SR-DEV-33 */
static void test_ring_part_does_not_go_on_at_address_0(void **state)
{
	static const uint32_t bytes[] = { 16 * SIZE, 6 + 2 * SIZE, 8 + 8 * SIZE };
	static const uint32_t step[] = { 16, 2, 4 };

	for (unsigned part = 0; part < 3; part++) {
		struct bench *b = plan_round(state);

		move_part(b, part, UINT64_MAX - bytes[part] + 1);
		bench_start(b);
		ring_works(b);
		b = plan_round(state);
		move_part(b, part, UINT64_MAX - bytes[part] + 1 + step[part]);
		assert_int_equal(bench_init(b), VQB_E_FAULT);
	}
}

/* Shows: SR-DEV-33 */
static void test_buffer_and_table_do_not_go_on_at_address_0(void **state)
{
	struct bench *b = plan_round(state);

	bench_start(b);
	bench_desc(b, 0, 0, 1, RAW_NEXT, 1);
	bench_desc(b, 1, UINT64_MAX - 99, 100, 0, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take_one(b)->read_bytes, 101);
	bench_desc(b, 2, UINT64_MAX - 99, 101, 0, 0);
	bench_offer(b, 2);
	bench_take_bad(b, VQB_RULE_RANGE);
	bench_desc(b, 3, UINT64_MAX - 15, 32, RAW_INDIRECT, 0);
	bench_offer(b, 3);
	bench_take_bad(b, VQB_RULE_RANGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_header_data_and_status_are_cut_where_memory_is),
		bench_test(test_buffer_ends_at_the_last_address_and_not_a_byte_later),
		bench_test(test_buffer_that_meets_a_hole_stops_at_its_first_byte),
		bench_test(test_table_is_read_right_wherever_it_is_cut),
		bench_test(test_table_ends_at_the_last_address_and_not_a_byte_later),
		bench_test(test_table_that_meets_a_hole_is_a_fault),
		bench_test(test_ring_may_be_cut_where_the_host_has_it_in_a_row),
		bench_test(test_ring_part_that_is_scattered_in_the_host_is_a_fault),
		bench_test(test_ring_part_ends_at_the_last_address_and_not_later),
		bench_test(test_ring_part_does_not_go_on_at_address_0),
		bench_test(test_buffer_and_table_do_not_go_on_at_address_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
