/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of dirty pages. The test plays a migration that is as eager as can be: whatever the log
 * is told of is copied at once, and never looked at again unless the log is told once more. So what
 * is logged before it is written, or not at all, is missing from the copy.
 */
#include "device_bench.h"
#include "probe_log.h"

#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)

enum { CALLS = 64 };

static struct bench *bench;
static uint8_t copy[2][REGION_BYTES];
static struct {
	uint64_t addr, len;
} call[CALLS];
static unsigned calls, unknown;

static uint8_t *copy_at(uint64_t addr)
{
	return addr < BORDER ? copy[0] + (addr - LOW) : copy[1] + (addr - HIGH);
}

static void note(void *context, uint64_t addr, uint64_t len)
{
	assert_ptr_equal(context, &calls);
	if (calls < CALLS) {
		call[calls].addr = addr;
		call[calls].len = len;
	}
	calls++;
	if (len == UINT64_MAX) {
		unknown++;
		return;
	}
	assert_true(addr >= LOW && len && len <= END - addr);
	for (; len; addr++, len--)
		*copy_at(addr) = *bench_host(bench, addr);
}

static void log_on(struct bench *b)
{
	b->memory.log = note;
	b->memory.context = &calls;
	bench = b;
	calls = unknown = 0;
}

static struct bench *open_logged(void **state, uint32_t size, uint64_t features)
{
	struct bench *b = bench_plan(state, size, features);

	log_on(b);
	bench_start(b);
	calls = 0;
	return b;
}

/* What the driver writes is none of the device's business: the copy has it, too. */
static void driver_wrote(const struct bench *b)
{
	memcpy(copy[0], b->low, REGION_BYTES);
	memcpy(copy[1], b->high, REGION_BYTES);
}

static void assert_copy_is_good(const struct bench *b)
{
	assert_memory_equal(copy[0], b->low, REGION_BYTES);
	assert_memory_equal(copy[1], b->high, REGION_BYTES);
	assert_int_equal(unknown, 0);
}

static void assert_call(unsigned i, uint64_t addr, uint64_t len)
{
	assert_true(i < calls);
	assert_int_equal(call[i].addr, addr);
	assert_int_equal(call[i].len, len);
}

static uint64_t slot_at(const struct bench *b, unsigned slot)
{
	return b->config.ring.used + 4 + 8 * (uint64_t)slot;
}

static void take_writable(struct bench *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bench_offer_writable(b, (b->offered) % b->ring.size);
	bench_take_good(b, n);
}

/* ---- the used ring ---- */

static void test_entries_of_a_batch_are_one_range_and_the_index_another(void **state)
{
	struct bench *b = open_logged(state, 8, 0);

	take_writable(b, 3);
	driver_wrote(b);
	for (unsigned i = 0; i < 3; i++)
		bench_put(b, b->chain[i].ticket, 1);
	assert_int_equal(calls, 0);
	vqb_device_publish(b->dev);
	assert_int_equal(calls, 2);
	assert_call(0, slot_at(b, 0), 24);
	assert_call(1, b->config.ring.used + 2, 2);
	assert_copy_is_good(b);
	vqb_device_publish(b->dev);
	assert_int_equal(calls, 2);
}

static void test_entries_that_go_round_are_two_ranges(void **state)
{
	struct bench *b = open_logged(state, 8, 0);

	bench_stand_at(b, 6);
	take_writable(b, 5);
	driver_wrote(b);
	for (unsigned i = 0; i < 5; i++)
		bench_put(b, b->chain[i].ticket, 1);
	calls = 0;
	vqb_device_expose(b->dev);
	assert_int_equal(calls, 3);
	assert_call(0, slot_at(b, 6), 16);
	assert_call(1, slot_at(b, 0), 24);
	assert_call(2, b->config.ring.used + 2, 2);
	assert_copy_is_good(b);
}

/* When the index is stored, the copy has every entry that it shows. */
static void entries_are_there(const void *p, uint64_t v, unsigned bytes)
{
	(void)bytes;
	if (p != bench->ring.used + 2)
		return;
	for (unsigned idx = 0; idx < v; idx++)
		assert_memory_equal(copy_at(slot_at(bench, idx)), bench->ring.used + 4 + 8 * idx,
				    8);
}

static void test_entries_are_logged_before_the_index_shows_them(void **state)
{
	struct bench *b = open_logged(state, 8, 0);

	for (unsigned i = 0; i < 8; i++) {
		take_writable(b, 1);
		bench_put(b, b->chain[0].ticket, 1 + i);
		probe_store = entries_are_there;
		vqb_device_publish(b->dev);
		probe_store = NULL;
	}
	assert_int_equal(raw_used_idx(&b->ring), 8);
}

static void test_event_word_is_logged_when_it_is_stored(void **state)
{
	struct bench *b = open_logged(state, 8, EVENT_IDX);

	memset(b->ring.used + 4 + 64, 0x77, 2);
	driver_wrote(b);
	vqb_device_arm(b->dev);
	assert_int_equal(calls, 1);
	assert_call(0, slot_at(b, 8), 2);
	vqb_device_arm(b->dev);
	assert_int_equal(calls, 1);
	vqb_device_disarm(b->dev);
	assert_int_equal(calls, 2);
	assert_copy_is_good(b);
	take_writable(b, 1);
	bench_put(b, b->chain[0].ticket, 1);
	driver_wrote(b);
	vqb_device_turn(b->dev);
	assert_int_equal(calls, 5);
	assert_copy_is_good(b);
}

static void test_flags_are_logged_when_they_are_stored(void **state)
{
	struct bench *b = open_logged(state, 8, 0);

	driver_wrote(b);
	vqb_device_disarm(b->dev);
	assert_int_equal(calls, 1);
	assert_call(0, b->config.ring.used, 2);
	vqb_device_disarm(b->dev);
	assert_int_equal(calls, 1);
	vqb_device_turn(b->dev);
	assert_int_equal(calls, 2);
	assert_copy_is_good(b);
}

/* What one that was killed had stored and not logged is not known to the next. */
static void test_whole_used_ring_is_logged_where_a_device_starts(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_device_saved saved = { 0, 0 };

	log_on(b);
	bench_start(b);
	assert_int_equal(calls, 1);
	assert_call(0, b->config.ring.used, 6 + 8 * 8);
	assert_int_equal(vqb_device_reset(b->dev, &b->config.ring), VQB_OK);
	assert_int_equal(vqb_device_restore(b->dev, &b->config.ring, &saved), VQB_OK);
	assert_int_equal(calls, 3);
	assert_call(2, b->config.ring.used, 6 + 8 * 8);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(calls, 3);
}

/* They were written at put, and nobody will show them: the copy has to have them all the same. */
static void test_entries_that_a_reset_keeps_back_are_logged(void **state)
{
	struct bench *b = open_logged(state, 4, VQB_FEATURE(VQB_F_VERSION_1));

	take_writable(b, 2);
	driver_wrote(b);
	bench_put(b, b->chain[0].ticket, 8);
	bench_put(b, b->chain[1].ticket, 8);
	calls = 0;
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(calls, 1);
	assert_call(0, slot_at(b, 0), 16);
	assert_copy_is_good(b);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(calls, 1);
}

static void run_at_random(void **state, uint64_t features, int tracked)
{
	static uint64_t area[VQB_TRACKING_BYTES(8) / 8];
	struct bench *b = bench_plan(state, 8, features);
	struct vqb_ticket out[8];
	unsigned outs = 0, busy = 0;
	uint32_t seed = 5;

	memset(area, 0, sizeof(area));
	if (tracked)
		b->config.tracking = (struct vqb_tracking){ area, sizeof(area) };
	log_on(b);
	bench_start(b);
	driver_wrote(b);
	for (unsigned i = 0; i < 4000; i++) {
		seed = seed * 1664525 + 1013904223;
		switch (seed >> 16 & 7) {
		case 0:
		case 1:
			if ((uint16_t)(b->offered - raw_used_idx(&b->ring)) == 8 ||
			    busy >> b->offered % 8 & 1)
				break;
			busy |= 1u << b->offered % 8;
			bench_offer_writable(b, b->offered % 8);
			break;
		case 2:
		case 3:
			bench_take(b, 1);
			if (b->taken)
				out[outs++] = b->chain[0].ticket;
			break;
		case 4:
			if (!outs)
				break;
			bench_put(b, out[seed % outs], seed >> 20 & 15);
			busy &= ~(1u << out[seed % outs].head);
			out[seed % outs] = out[outs - 1];
			outs--;
			break;
		case 5:
			vqb_device_publish(b->dev);
			break;
		case 6:
			vqb_device_turn(b->dev);
			break;
		default:
			vqb_device_disarm(b->dev);
		}
		/*
		 * Elements that are not visible yet may be missing: they are put where nobody
		 * looks.
		 */
		vqb_device_expose(b->dev);
		memcpy(copy[0] + (b->config.ring.desc - LOW), b->ring.desc, 16 * 8);
		memcpy(copy[0] + (b->config.ring.avail - LOW), b->ring.avail, 6 + 2 * 8);
		assert_memory_equal(copy[0], b->low, 0x1000);
	}
	assert_int_equal(vqb_device_state(b->dev, NULL), VQB_OK);
}

static void test_copy_of_a_ring_in_use_is_good(void **state)
{
	run_at_random(state, 0, 0);
	run_at_random(state, EVENT_IDX, 0);
}

static void test_copy_of_a_ring_in_order_is_good(void **state)
{
	run_at_random(state, IN_ORDER | EVENT_IDX, 0);
}

static void test_copy_of_a_tracked_ring_is_good(void **state)
{
	run_at_random(state, EVENT_IDX, 1);
	run_at_random(state, IN_ORDER, 1);
}

/* ---- buffers ---- */

static void test_written_bytes_of_the_pieces_are_logged(void **state)
{
	struct bench *b = open_logged(state, 8, 0);
	const struct vqb_chain *chain = &b->chain[0];

	bench_desc(b, 0, DATA, 16, RAW_NEXT, 1);
	bench_desc(b, 1, DATA + 0x100, 32, RAW_WRITE | RAW_NEXT, 2);
	bench_desc(b, 2, BORDER - 8, 64, RAW_WRITE, 0);
	bench_offer(b, 0);
	bench_take_good(b, 1);
	assert_int_equal(chain->writable, 3);
	vqb_device_log(b->dev, chain->piece + chain->readable, chain->writable, 96);
	assert_int_equal(calls, 3);
	assert_call(0, DATA + 0x100, 32);
	assert_call(1, BORDER - 8, 8);
	assert_call(2, HIGH, 56);
	calls = 0;
	vqb_device_log(b->dev, chain->piece + chain->readable, chain->writable, 33);
	assert_int_equal(calls, 2);
	assert_call(0, DATA + 0x100, 32);
	assert_call(1, BORDER - 8, 1);
	vqb_device_log(b->dev, chain->piece + chain->readable, chain->writable, 0);
	assert_int_equal(calls, 2);
}

/* A piece is one range of the host; the guest's ranges behind it may be two. */
static void test_piece_over_regions_that_adjoin_in_the_host(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_piece piece;

	b->region[1].host = b->low + 0x80000;
	b->region[1].len = 0x80000;
	b->region[0].len = 0x80000;
	log_on(b);
	bench_start(b);
	calls = 0;
	piece = (struct vqb_piece){ b->low + 0x80000 - 4, 12 };
	vqb_device_log(b->dev, &piece, 1, 12);
	assert_int_equal(calls, 2);
	assert_call(0, LOW + 0x80000 - 4, 4);
	assert_call(1, HIGH, 8);
}

static void test_log_needs_no_ring(void **state)
{
	struct bench *b = open_logged(state, 8, 0);
	struct vqb_piece piece = { b->high + 7, 5 };

	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	vqb_device_log(b->dev, &piece, 1, 5);
	assert_int_equal(calls, 1);
	assert_call(0, HIGH + 7, 5);
}

/* Of two views of the same host memory, the one that may be written counts. */
static void test_read_only_view_is_not_what_was_written(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);
	struct vqb_piece piece = { b->low + 0x50, 4 };

	b->region[1] = b->region[0];
	b->region[1].addr = HIGH;
	b->region[0].addr = LOW - REGION_BYTES;
	b->region[0].access = VQB_READ;
	b->config.ring.desc += REGION_BYTES;
	b->config.ring.avail += REGION_BYTES;
	b->config.ring.used += REGION_BYTES;
	log_on(b);
	bench_start(b);
	calls = 0;
	vqb_device_log(b->dev, &piece, 1, 4);
	assert_call(0, HIGH + 0x50, 4);
}

/* ---- on and off ---- */

static void test_log_comes_and_goes_with_the_map(void **state)
{
	struct bench *b = bench_open(state, 8, EVENT_IDX);
	struct vqb_memory with = b->memory, without = b->memory;
	struct vqb_piece piece = { b->low, 4 };

	bench = b;
	calls = 0;
	with.log = note;
	with.context = &calls;
	assert_int_equal(vqb_device_logs(b->dev), 0);
	vqb_device_log(b->dev, &piece, 1, 4);
	assert_int_equal(vqb_device_set_memory(b->dev, &with), VQB_OK);
	assert_int_equal(vqb_device_logs(b->dev), 1);
	assert_int_equal(calls, 0);
	vqb_device_log(b->dev, &piece, 1, 4);
	vqb_device_arm(b->dev);
	assert_int_equal(calls, 2);
	assert_int_equal(vqb_device_set_memory(b->dev, &without), VQB_OK);
	assert_int_equal(vqb_device_logs(b->dev), 0);
	vqb_device_log(b->dev, &piece, 1, 4);
	vqb_device_disarm(b->dev);
	assert_int_equal(calls, 2);
}

static void test_piece_of_an_older_map_is_found_in_the_new_one(void **state)
{
	struct bench *b = bench_open(state, 8, 0);
	struct vqb_memory later = b->memory;

	take_writable(b, 1);
	bench = b;
	calls = unknown = 0;
	later.generation = 2;
	later.log = note;
	later.context = &calls;
	assert_int_equal(vqb_device_set_memory(b->dev, &later), VQB_OK);
	vqb_device_log(b->dev, b->chain[0].piece, 1, 16);
	assert_call(0, DATA, 16);
}

static void test_what_is_not_found_makes_all_dirty(void **state)
{
	struct bench *b = open_logged(state, 8, 0);
	uint8_t elsewhere[4];
	struct vqb_piece piece[] = { { elsewhere, 4 }, { b->low, 1 } };

	vqb_device_log(b->dev, piece, 2, 5);
	assert_int_equal(calls, 2);
	assert_call(0, 0, UINT64_MAX);
	assert_call(1, LOW, 1);
}

/* ---- the way back through a hook ---- */

static unsigned asked;
static struct vqb_extent located;
static int32_t located_status;

static int32_t no_translation(void *context, uint64_t addr, uint32_t access, struct vqb_extent *out)
{
	(void)context;
	(void)addr;
	(void)access;
	(void)out;
	return VQB_E_FAULT;
}

static int32_t locate(void *context, const void *host, struct vqb_extent *out)
{
	assert_ptr_equal(context, &calls);
	assert_non_null(host);
	asked++;
	*out = located;
	return located_status;
}

static void test_translation_and_log_need_a_way_back(void **state)
{
	struct bench *b = bench_plan(state, 8, 0);

	log_on(b);
	b->memory.translate = no_translation;
	assert_int_equal(vqb_memory_check(&b->memory), VQB_E_INVALID);
	b->memory.locate = locate;
	assert_int_equal(vqb_memory_check(&b->memory), VQB_OK);
	b->memory.locate = NULL;
	b->memory.log = NULL;
	assert_int_equal(vqb_memory_check(&b->memory), VQB_OK);
}

static struct bench *open_located(void **state, uint8_t *host)
{
	struct bench *b = bench_plan(state, 8, 0);

	log_on(b);
	b->memory.translate = no_translation;
	b->memory.locate = locate;
	asked = 0;
	located_status = VQB_OK;
	located = (struct vqb_extent){ HIGH + 0x5000, 8, host, VQB_WRITE, 0 };
	bench_start(b);
	calls = 0;
	return b;
}

static void test_hook_is_asked_where_the_array_has_nothing(void **state)
{
	uint8_t host[16];
	struct bench *b = open_located(state, host);
	struct vqb_piece piece = { host + 2, 4 };

	vqb_device_log(b->dev, &piece, 1, 4);
	assert_call(0, HIGH + 0x5002, 4);
	vqb_device_log(b->dev, &piece, 1, 3);
	assert_int_equal(asked, 1);
	piece.base = b->low;
	vqb_device_log(b->dev, &piece, 1, 4);
	assert_int_equal(asked, 1);
	assert_call(2, LOW, 4);
}

static void test_wrong_answers_of_the_hook_make_all_dirty(void **state)
{
	uint8_t host[16];
	const struct vqb_extent wrong[] = {
		{ HIGH, 0, host, VQB_WRITE, 0 },       { HIGH, 8, host, VQB_READ, 0 },
		{ HIGH, 8, host + 8, VQB_WRITE, 0 },   { HIGH, 8, NULL, VQB_WRITE, 0 },
		{ UINT64_MAX, 8, host, VQB_WRITE, 0 },
	};

	for (unsigned i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct bench *b = open_located(state, host);
		struct vqb_piece piece = { host, 4 };

		if (i < sizeof(wrong) / sizeof(wrong[0]))
			located = wrong[i];
		else
			located_status = VQB_E_FAULT;
		vqb_device_log(b->dev, &piece, 1, 4);
		assert_int_equal(calls, 1);
		assert_call(0, 0, UINT64_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_entries_of_a_batch_are_one_range_and_the_index_another),
		bench_test(test_entries_that_go_round_are_two_ranges),
		bench_test(test_entries_are_logged_before_the_index_shows_them),
		bench_test(test_event_word_is_logged_when_it_is_stored),
		bench_test(test_flags_are_logged_when_they_are_stored),
		bench_test(test_whole_used_ring_is_logged_where_a_device_starts),
		bench_test(test_entries_that_a_reset_keeps_back_are_logged),
		bench_test(test_copy_of_a_ring_in_use_is_good),
		bench_test(test_copy_of_a_ring_in_order_is_good),
		bench_test(test_copy_of_a_tracked_ring_is_good),
		bench_test(test_written_bytes_of_the_pieces_are_logged),
		bench_test(test_piece_over_regions_that_adjoin_in_the_host),
		bench_test(test_log_needs_no_ring),
		bench_test(test_read_only_view_is_not_what_was_written),
		bench_test(test_log_comes_and_goes_with_the_map),
		bench_test(test_piece_of_an_older_map_is_found_in_the_new_one),
		bench_test(test_what_is_not_found_makes_all_dirty),
		bench_test(test_translation_and_log_need_a_way_back),
		bench_test(test_hook_is_asked_where_the_array_has_nothing),
		bench_test(test_wrong_answers_of_the_hook_make_all_dirty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
