/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest addresses to host memory, as seen in the pieces of chains: regions, borders, holes, hook.
 */
#include "device_bench.h"

/* Offers one buffer and takes it. */
static const struct vqb_chain *take_buffer(struct bench *b, uint64_t addr, uint32_t len,
					   unsigned flags)
{
	bench_desc(b, 1, addr, len, flags, 0);
	bench_offer(b, 1);
	bench_take_one(b);
	bench_put(b, b->chain[0].ticket, 0);
	return &b->chain[0];
}

/* Offers one buffer, which does not resolve at `fault`, and gives it up. */
static void assert_faults(struct bench *b, uint64_t addr, uint32_t len, unsigned flags,
			  uint64_t fault)
{
	bench_desc(b, 1, addr, len, flags, 0);
	bench_offer(b, 1);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->taken, 0);
	assert_int_equal(b->need.addr, fault);
	assert_int_equal(b->need.access, flags & RAW_WRITE ? VQB_WRITE : VQB_READ);
	assert_int_equal(vqb_device_reject(b->dev, &b->chain[0]), VQB_OK);
	bench_put(b, b->chain[0].ticket, 0);
}

/* ---- borders ---- */

/* Shows: K14 */
static void test_buffer_over_a_border_is_two_pieces(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	const struct vqb_chain *chain = take_buffer(b, BORDER - 3, 10, RAW_WRITE);

	assert_int_equal(chain->writable, 2);
	assert_int_equal(chain->write_bytes, 10);
	bench_assert_piece(&chain->piece[0], b->low + REGION_BYTES - 3, 3);
	bench_assert_piece(&chain->piece[1], b->high, 7);
}

static void test_buffer_up_to_a_border_is_one_piece(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	assert_int_equal(take_buffer(b, BORDER - 10, 10, 0)->readable, 1);
	assert_int_equal(take_buffer(b, BORDER, 10, 0)->readable, 1);
}

/* Shows: K14 */
static void test_full_ring_of_buffers_over_a_border_is_no_loop(void **state)
{
	struct bench *b = bench_plan(state, 4, 0);
	const struct vqb_chain *chain;

	b->region[0] = (struct vqb_extent){ 0, 0x10000, b->high, VQB_READ | VQB_WRITE, 0 };
	b->region[1] =
		(struct vqb_extent){ 0x10000, 0x10000, b->high + 0x80000, VQB_READ | VQB_WRITE, 0 };
	b->region[2] = (struct vqb_extent){ LOW, REGION_BYTES, b->low, VQB_READ | VQB_WRITE, 0 };
	b->memory.count = 3;
	bench_start(b);
	for (unsigned i = 0; i < 4; i++)
		bench_desc(b, i, 0xff00, 0x200, i < 3 ? RAW_NEXT : 0, i + 1);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 8);
	assert_int_equal(chain->read_bytes, 4 * 0x200);
	for (unsigned i = 0; i < 8; i += 2) {
		bench_assert_piece(&chain->piece[i], b->high + 0xff00, 0x100);
		bench_assert_piece(&chain->piece[i + 1], b->high + 0x80000, 0x100);
	}
}

static void test_buffer_over_many_regions_is_that_many_pieces(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_extent page[33];
	const struct vqb_chain *chain;

	page[0] = b->region[0];
	for (unsigned i = 0; i < 32; i++)
		page[1 + i] = (struct vqb_extent){ HIGH + 0x100 * i, 0x100,
						   b->high + 0x1000 * (31 - i), VQB_READ, 0 };
	b->memory.sorted = page;
	b->memory.count = 33;
	bench_start(b);
	chain = take_buffer(b, HIGH + 0x80, 0x100 * 31, 0);
	assert_int_equal(chain->readable, 32);
	bench_assert_piece(&chain->piece[0], b->high + 0x1000 * 31 + 0x80, 0x80);
	for (unsigned i = 1; i < 31; i++)
		bench_assert_piece(&chain->piece[i], b->high + 0x1000 * (31 - i), 0x100);
	bench_assert_piece(&chain->piece[31], b->high, 0x80);
}

/* ---- ends and holes ---- */

/* Shows: K15 SR-DEV-33 */
static void test_last_byte_of_memory_is_usable_and_the_next_is_not(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_assert_piece(&take_buffer(b, END - 1, 1, RAW_WRITE)->piece[0],
			   b->high + REGION_BYTES - 1, 1);
	bench_assert_piece(&take_buffer(b, END - 0x200, 0x200, 0)->piece[0],
			   b->high + REGION_BYTES - 0x200, 0x200);
	assert_faults(b, END - 0x1ff, 0x200, 0, END);
	assert_faults(b, END, 1, RAW_WRITE, END);
}

static void test_first_byte_of_memory_is_usable_and_the_one_before_is_not(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	bench_assert_piece(&take_buffer(b, LOW, 1, 0)->piece[0], b->low, 1);
	assert_faults(b, LOW - 1, 2, 0, LOW - 1);
	assert_faults(b, 0, 1, 0, 0);
}

static void test_hole_is_found_wherever_a_buffer_meets_it(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->region[1].addr = HIGH + 0x1000;
	bench_start(b);
	assert_faults(b, BORDER - 0x100, 0x2000, 0, BORDER);
	assert_faults(b, BORDER, 1, 0, BORDER);
	assert_faults(b, HIGH + 0xfff, 1, 0, HIGH + 0xfff);
	assert_faults(b, HIGH + 0xfff, 0x100, RAW_WRITE, HIGH + 0xfff);
	bench_assert_piece(&take_buffer(b, HIGH + 0x1000, 1, 0)->piece[0], b->high, 1);
}

/* Shows: SR-DEV-33 */
static void test_region_may_end_at_the_last_address(void **state)
{
	struct bench *b = bench_plan(state, 8, INDIRECT);
	const uint64_t top = UINT64_MAX - REGION_BYTES + 1;

	b->region[1].addr = top;
	bench_start(b);
	bench_assert_piece(&take_buffer(b, UINT64_MAX, 1, 0)->piece[0], b->high + REGION_BYTES - 1,
			   1);
	bench_assert_piece(&take_buffer(b, top, REGION_BYTES, 0)->piece[0], b->high, REGION_BYTES);
	bench_desc(b, 2, UINT64_MAX, 2, 0, 0);
	bench_offer(b, 2);
	assert_int_equal(bench_take_bad(b, VQB_RULE_RANGE)->reason.addr, UINT64_MAX);
	raw_desc(b->high + REGION_BYTES - 32, 0, top, 7, RAW_NEXT, 1);
	raw_desc(b->high + REGION_BYTES - 32, 1, UINT64_MAX - 7, 8, 0, 0);
	bench_desc(b, 3, UINT64_MAX - 31, 32, RAW_INDIRECT, 0);
	bench_offer(b, 3);
	assert_int_equal(bench_take_one(b)->read_bytes, 15);
	assert_faults(b, top - 1, 1, 0, top - 1);
}

/* ---- access ---- */

static void test_buffer_needs_the_access_of_its_direction(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->region[1].access = VQB_READ;
	bench_start(b);
	take_buffer(b, HIGH, 16, 0);
	assert_faults(b, HIGH, 16, RAW_WRITE, HIGH);
	assert_faults(b, BORDER - 8, 16, RAW_WRITE, BORDER);
	take_buffer(b, BORDER - 8, 16, 0);
	b->region[1].access = VQB_WRITE;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	assert_faults(b, HIGH, 16, 0, HIGH);
	take_buffer(b, HIGH, 16, RAW_WRITE);
}

static void test_one_chain_reads_and_may_not_write_the_same_region(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	b->region[1].access = VQB_READ;
	bench_start(b);
	bench_desc(b, 0, HIGH, 16, RAW_NEXT, 1);
	bench_desc(b, 1, HIGH + 0x40, 16, RAW_WRITE, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->need.addr, HIGH + 0x40);
	assert_int_equal(b->need.access, VQB_WRITE);
}

static void test_table_needs_to_be_readable(void **state)
{
	struct bench *b = bench_plan(state, 8, INDIRECT);

	b->region[1].access = VQB_WRITE;
	bench_start(b);
	bench_entry(b, HIGH, 0, DATA, 16, 0, 0);
	bench_desc(b, 0, HIGH, 16, RAW_INDIRECT | RAW_WRITE, 0);
	bench_offer(b, 0);
	assert_int_equal(bench_take(b, 1), VQB_E_FAULT);
	assert_int_equal(b->need.addr, HIGH);
	assert_int_equal(b->need.access, VQB_READ);
}

/* ---- the hook ---- */

/* A hook that answers from a list of its own, and counts. */
static struct {
	struct vqb_extent extent[4];
	unsigned count, calls;
	uint32_t access; /* asked for last */
} hook;

static int32_t hook_translate(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	assert_ptr_equal(context, &hook);
	hook.calls++;
	hook.access = access;
	for (unsigned i = 0; i < hook.count; i++) {
		const struct vqb_extent *e = &hook.extent[i];

		if (addr - e->addr < e->len && (e->access & access) == access) {
			*out = *e;
			return VQB_OK;
		}
	}
	return VQB_E_FAULT;
}

/* The first region is in the array, the second one known to the hook alone, in two halves. */
static struct bench *open_hooked(void **state, uint64_t features)
{
	struct bench *b = bench_plan(state, 8, features);
	uint32_t half = REGION_BYTES / 2;

	memset(&hook, 0, sizeof(hook));
	hook.extent[0] = (struct vqb_extent){ HIGH, half, b->high, VQB_READ | VQB_WRITE, 0 };
	hook.extent[1] =
		(struct vqb_extent){ HIGH + half, half, b->high + half, VQB_READ | VQB_WRITE, 0 };
	hook.count = 2;
	b->memory.count = 1;
	b->memory.translate = hook_translate;
	b->memory.context = &hook;
	bench_start(b);
	return b;
}

static void test_hook_is_asked_for_what_the_array_lacks(void **state)
{
	struct bench *b = open_hooked(state, 0);

	assert_int_equal(hook.calls, 0);
	take_buffer(b, DATA, 16, 0);
	assert_int_equal(hook.calls, 0);
	bench_assert_piece(&take_buffer(b, HIGH + 5, 16, RAW_WRITE)->piece[0], b->high + 5, 16);
	assert_int_equal(hook.calls, 1);
	assert_int_equal(hook.access, VQB_WRITE);
	assert_faults(b, END, 16, 0, END);
	assert_int_equal(hook.calls, 2);
	assert_int_equal(hook.access, VQB_READ);
}

static void test_buffer_may_begin_in_the_array_and_end_with_the_hook(void **state)
{
	struct bench *b = open_hooked(state, 0);
	const struct vqb_chain *chain = take_buffer(b, BORDER - 8, 20, 0);

	assert_int_equal(chain->readable, 2);
	bench_assert_piece(&chain->piece[0], b->low + REGION_BYTES - 8, 8);
	bench_assert_piece(&chain->piece[1], b->high, 12);
}

static void test_two_extents_of_the_hook_are_remembered(void **state)
{
	struct bench *b = open_hooked(state, 0);

	for (unsigned i = 0; i < 10; i++) {
		take_buffer(b, HIGH + 16 * i, 16, 0);
		take_buffer(b, END - 16 * (i + 1), 16, RAW_WRITE);
	}
	assert_int_equal(hook.calls, 2);
}

static void test_hook_is_asked_anew_after_set_memory(void **state)
{
	struct bench *b = open_hooked(state, 0);

	take_buffer(b, HIGH, 16, 0);
	hook.extent[0].host = b->high + 0x4000;
	b->memory.generation = 2;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	bench_assert_piece(&take_buffer(b, HIGH, 16, 0)->piece[0], b->high + 0x4000, 16);
}

static void test_hook_is_asked_for_access_that_the_array_lacks(void **state)
{
	struct bench *b = open_hooked(state, 0);

	b->region[0].access = VQB_READ | VQB_WRITE;
	b->region[1].access = VQB_READ;
	b->memory.count = 2;
	hook.extent[0].host = b->high + 0x4000;
	hook.extent[0].access = VQB_WRITE;
	b->memory.generation = 2;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	bench_assert_piece(&take_buffer(b, HIGH, 16, 0)->piece[0], b->high, 16);
	assert_int_equal(hook.calls, 0);
	bench_assert_piece(&take_buffer(b, HIGH, 16, RAW_WRITE)->piece[0], b->high + 0x4000, 16);
	bench_assert_piece(&take_buffer(b, HIGH, 16, 0)->piece[0], b->high, 16);
}

static struct vqb_extent bad_answer;

static int32_t answer_badly(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	(void)context;
	(void)addr;
	(void)access;
	*out = bad_answer;
	return VQB_OK;
}

/* "VQB_OK" with an extent that is not what was asked for is taken for "not mapped". */
static void test_wrong_answers_of_the_hook_are_faults(void **state)
{
	struct bench *b = open_hooked(state, 0);
	const struct vqb_extent good = { HIGH, 0x1000, b->high, VQB_READ, 0 };
	struct vqb_extent wrong[7];

	for (unsigned i = 0; i < 7; i++)
		wrong[i] = good;
	wrong[0].addr = HIGH + 1;
	wrong[1].addr = HIGH - 0x1000;
	wrong[2].len = 0;
	wrong[3].host = NULL;
	wrong[4].access = VQB_WRITE;
	wrong[5].access = 0;
	wrong[6].len = UINT64_MAX;
	b->memory.translate = answer_badly;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	for (unsigned i = 0; i < 7; i++) {
		bad_answer = wrong[i];
		assert_faults(b, HIGH, 16, 0, HIGH);
	}
	bad_answer = good;
	take_buffer(b, HIGH, 16, 0);
}

/* Memory without end, a little at a time. */
static int32_t endless(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	const uint64_t step = UINT64_C(1) << 20;

	(void)access;
	hook.calls++;
	*out = (struct vqb_extent){ addr & ~(step - 1), step, context, VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

/* However much a driver asks for, no more is looked up than a chain may have. */
static void test_no_more_than_4_gib_of_a_chain_are_looked_up(void **state)
{
	struct bench *b = bench_open(state, 8, 0);

	memset(&hook, 0, sizeof(hook));
	b->memory.translate = endless;
	b->memory.context = b->high;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_OK);
	for (unsigned i = 0; i < 8; i++)
		bench_desc(b, i, UINT64_C(1) << 40, UINT32_MAX, i < 7 ? RAW_NEXT : 0, i + 1);
	bench_offer(b, 0);
	bench_take_bad(b, VQB_RULE_BYTES);
	assert_true(hook.calls <= 4096 + 1);
}

static void test_hook_alone_is_a_map(void **state)
{
	struct bench *b = open_hooked(state, 0);

	hook.extent[2] = b->region[0];
	hook.count = 3;
	b->memory.count = 0;
	bench_start(b);
	bench_offer_plain(b, 3);
	bench_serve(b, 1);
	bench_assert_used(b, 0, 3, 0);
	hook.count = 2;
	b->memory.generation = 2;
	assert_int_equal(vqb_device_set_memory(b->dev, &b->memory), VQB_E_FAULT);
}

/* ---- one byte at a time ---- */

/* Above the first region each byte is an extent of its own, and no two neighbours adjoin. */
static int32_t scatter(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	struct bench *b = (struct bench *)context;

	(void)access;
	if (addr < HIGH || addr >= HIGH + REGION_BYTES / 2)
		return VQB_E_FAULT;
	*out = (struct vqb_extent){ addr, 1, b->high + 2 * (addr - HIGH), VQB_READ | VQB_WRITE, 0 };
	return VQB_OK;
}

static struct bench *open_scattered(void **state)
{
	struct bench *b = bench_plan(state, 8, INDIRECT);

	b->memory.count = 1;
	b->memory.translate = scatter;
	b->memory.context = b;
	bench_start(b);
	return b;
}

static void assert_scattered(const struct bench *b, const struct vqb_piece *piece, uint32_t n,
			     uint64_t addr)
{
	for (uint32_t i = 0; i < n; i++)
		bench_assert_piece(&piece[i], b->high + 2 * (addr + i - HIGH), 1);
}

static void test_buffer_of_single_bytes_is_that_many_pieces(void **state)
{
	struct bench *b = open_scattered(state);
	const struct vqb_chain *chain;

	bench_desc(b, 0, HIGH + 7, 100, RAW_NEXT, 1);
	bench_desc(b, 1, HIGH + 200, 33, RAW_WRITE, 0);
	bench_offer(b, 0);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 100);
	assert_int_equal(chain->writable, 33);
	assert_int_equal(chain->read_bytes, 100);
	assert_int_equal(chain->write_bytes, 33);
	assert_scattered(b, chain->piece, 100, HIGH + 7);
	assert_scattered(b, chain->piece + 100, 33, HIGH + 200);
}

/* Shows: K14 */
static void test_table_of_single_bytes_is_read_right(void **state)
{
	struct bench *b = open_scattered(state);
	const struct vqb_chain *chain;
	uint8_t table[3 * 16];

	raw_desc(table, 0, DATA, 0x123, RAW_NEXT, 2);
	raw_desc(table, 2, HIGH + 9, 2, RAW_NEXT, 1);
	raw_desc(table, 1, DATA + 0x200, 0x10001, RAW_WRITE, 0);
	for (unsigned i = 0; i < sizeof(table); i++)
		b->high[2 * (0x1000 + i)] = table[i];
	bench_desc(b, 4, HIGH + 0x1000, sizeof(table), RAW_INDIRECT, 0);
	bench_offer(b, 4);
	chain = bench_take_one(b);
	assert_int_equal(chain->readable, 3);
	assert_int_equal(chain->writable, 1);
	bench_assert_piece(&chain->piece[0], bench_host(b, DATA), 0x123);
	assert_scattered(b, chain->piece + 1, 2, HIGH + 9);
	bench_assert_piece(&chain->piece[3], bench_host(b, DATA + 0x200), 0x10001);
}

/* A table need not be aligned, in the guest or in the host. */
static void test_table_at_an_odd_address_is_read_right(void **state)
{
	struct bench *b = bench_open(state, 8, INDIRECT);

	for (unsigned off = 0; off < 16; off++) {
		bench_table(b, HIGH + 0x101 * off, 3, DATA, 5, 0);
		bench_desc(b, 4, HIGH + 0x101 * off, 48, RAW_INDIRECT, 0);
		bench_offer(b, 4);
		assert_int_equal(bench_take_one(b)->read_bytes, 15);
		bench_put(b, b->chain[0].ticket, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_buffer_over_a_border_is_two_pieces),
		bench_test(test_buffer_up_to_a_border_is_one_piece),
		bench_test(test_full_ring_of_buffers_over_a_border_is_no_loop),
		bench_test(test_buffer_over_many_regions_is_that_many_pieces),
		bench_test(test_last_byte_of_memory_is_usable_and_the_next_is_not),
		bench_test(test_first_byte_of_memory_is_usable_and_the_one_before_is_not),
		bench_test(test_hole_is_found_wherever_a_buffer_meets_it),
		bench_test(test_region_may_end_at_the_last_address),
		bench_test(test_buffer_needs_the_access_of_its_direction),
		bench_test(test_one_chain_reads_and_may_not_write_the_same_region),
		bench_test(test_table_needs_to_be_readable),
		bench_test(test_hook_is_asked_for_what_the_array_lacks),
		bench_test(test_buffer_may_begin_in_the_array_and_end_with_the_hook),
		bench_test(test_two_extents_of_the_hook_are_remembered),
		bench_test(test_hook_is_asked_anew_after_set_memory),
		bench_test(test_hook_is_asked_for_access_that_the_array_lacks),
		bench_test(test_wrong_answers_of_the_hook_are_faults),
		bench_test(test_no_more_than_4_gib_of_a_chain_are_looked_up),
		bench_test(test_hook_alone_is_a_map),
		bench_test(test_buffer_of_single_bytes_is_that_many_pieces),
		bench_test(test_table_of_single_bytes_is_read_right),
		bench_test(test_table_at_an_odd_address_is_read_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
