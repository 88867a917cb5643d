/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a queue keeps for itself stays within a budget, whatever its size: 512 bytes and
 * so many for each entry of the ring. What the library asks for keeps to it exactly; the macros for
 * static allocation round it up to the alignment of the next object. A coalescer has a budget, too;
 * and a block queue, most of whose fixed part are the chains that it takes at a time; and a block
 * driver, a third of whose fixed part are limits and counters.
 */
#include <stdio.h>

#include <vqblk/blk_device.h>
#include <vqblk/blk_driver.h>
#include <vqblk/coalesce.h>
#include <vqblk/device.h>
#include <vqblk/driver.h>

#include "unit.h"

enum { FIXED = 512, DRIVER_ENTRY = 24, DEVICE_ENTRY = 32 };
enum { BLK_FIXED = 576, BLK_REQUEST = 160 };

static size_t driver_size(uint32_t size)
{
	struct vqb_driver_config config = { .struct_size = sizeof(config), .max_size = size };

	return vqb_driver_size(&config);
}

static size_t device_size(uint32_t size)
{
	static uint8_t byte;
	static const struct vqb_extent ram = { 0, 1, &byte, VQB_READ | VQB_WRITE, 0 };
	static const struct vqb_memory memory = { .struct_size = sizeof(memory),
						  .count = 1,
						  .sorted = &ram };
	struct vqb_device_config config = { .struct_size = sizeof(config),
					    .max_size = size,
					    .memory = &memory };

	return vqb_device_size(&config);
}

/* The function's answer is within the budget, and the macro holds it and is not much more. */
static void check(const char *what, uint32_t size, size_t asked, size_t macro, size_t entry)
{
	size_t budget = FIXED + entry * size;

	if (size == 1 || size == 256 || size == VQB_RING_MAX)
		printf("%s of %u entries: %zu bytes of at most %zu\n", what, (unsigned)size, asked,
		       budget);
	assert_in_range(asked, 1, budget);
	assert_in_range(macro, asked, VQB_ROUND_UP(budget));
}

static void test_a_driver_keeps_512_bytes_and_24_for_each_entry(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= VQB_RING_MAX; size *= 2)
		check("driver", size, driver_size(size), VQB_DRIVER_BYTES(size), DRIVER_ENTRY);
}

static void test_a_device_keeps_512_bytes_and_32_for_each_entry(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= VQB_RING_MAX; size *= 2)
		check("device", size, device_size(size), VQB_DEVICE_BYTES(size), DEVICE_ENTRY);
}

/* The list of pieces comes on top: it is as long as the caller likes. */
static void test_a_coalescer_of_32_keeps_4_kib_and_its_piece_list(void **state)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .max_pieces = 1024,
					       .max_transfer = UINT64_MAX };
	size_t alone = vqb_coalescer_size(&config), asked, macro;

	(void)state;
	printf("coalescer of 32 requests: %zu bytes of at most 4096\n", alone);
	assert_in_range(alone, 1, 4096);
	for (config.requests = 1; config.requests <= 1024; config.requests *= 2) {
		config.joins = config.requests > 8 ? config.requests / 4 : 2;
		for (config.pieces = 0; config.pieces < 5000; config.pieces += 1023) {
			asked = vqb_coalescer_size(&config);
			macro = VQB_COALESCER_BYTES(config.requests, config.joins, config.pieces);
			assert_in_range(asked, 1, macro);
			assert_in_range(macro, asked, asked + 64);
		}
	}
}

static void check_blk(uint32_t requests, uint32_t pieces)
{
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config),
					       .requests = requests,
					       .pieces = pieces };
	size_t arena = sizeof(struct vqb_piece) * pieces;
	size_t budget = BLK_FIXED + (size_t)BLK_REQUEST * requests + arena;
	size_t asked = vqb_blk_queue_size(&config);

	/* From 16 on the fixed part is in what requests leave of their own. */
	if (requests >= 16)
		budget -= BLK_FIXED;
	if (pieces == 4 * requests)
		printf("block queue of %u requests: %zu bytes of at most %zu\n", (unsigned)requests,
		       asked, budget);
	assert_in_range(asked, 1, budget);
	assert_true(asked <= VQB_BLK_QUEUE_BYTES(requests, pieces));
	assert_true(VQB_BLK_QUEUE_BYTES(requests, pieces) <=
		    VQB_ROUND_UP(BLK_FIXED + (size_t)BLK_REQUEST * requests + 16 * (size_t)pieces));
}

static void test_a_block_queue_keeps_160_bytes_for_each_request_and_its_pieces(void **state)
{
	(void)state;
	for (uint32_t requests = 1; requests <= VQB_RING_MAX; requests *= 2) {
		check_blk(requests, 3);
		check_blk(requests, 4 * requests);
		check_blk(requests, 1 << 20);
	}
}

static void test_a_block_device_keeps_to_its_bound(void **state)
{
	(void)state;
	printf("block device: %zu bytes of at most %u\n", vqb_blk_device_size(),
	       VQB_BLK_DEVICE_BYTES);
	assert_in_range(vqb_blk_device_size(), 1, VQB_BLK_DEVICE_BYTES);
}

static void check_blk_driver(uint32_t depth, uint32_t segments, uint32_t ranges, uint32_t window)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .block_size = 512,
					 .segment_bytes = UINT32_MAX,
					 .segments = segments };
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config),
						.depth = depth,
						.ranges = ranges,
						.window = window,
						.limits = &limits };
	size_t bios = window ? window : VQB_REQUESTS_WINDOW;
	size_t budget = 1024 + 16 * (size_t)depth + 16 * ((size_t)segments + ranges) + 32 * bios;
	size_t asked = vqb_blk_driver_size(&config);

	if (segments == 126)
		printf("block driver of depth %u, %u segments, window of %zu: %zu bytes of at "
		       "most %zu\n",
		       (unsigned)depth, (unsigned)segments, bios, asked, budget);
	assert_in_range(asked, 1, budget);
	assert_true(asked <= VQB_BLK_DRIVER_BYTES(depth, segments, ranges, bios));
	assert_true(VQB_BLK_DRIVER_BYTES(depth, segments, ranges, bios) <= VQB_ROUND_UP(budget));
}

/* 1 KiB, 16 bytes for each slot and segment, 32 for each bio of a window. */
static void test_a_block_driver_keeps_to_its_bound(void **state)
{
	(void)state;
	for (uint32_t depth = 1; depth <= VQB_RING_MAX; depth *= 8)
		for (uint32_t segments = 1; segments < 32766; segments = segments * 5 + 1)
			for (uint32_t ranges = 0; ranges < 300; ranges += 37)
				check_blk_driver(depth, segments, ranges, ranges % 3);
	check_blk_driver(128, 126, 0, 0);
	check_blk_driver(128, 126, 0, 1);
	check_blk_driver(1, 32766, 32768, VQB_REQUESTS_WINDOW);
}

static void test_a_list_of_bios_keeps_to_its_bound(void **state)
{
	struct vqb_requests_config config = { .struct_size = sizeof(config) };
	uint32_t window;
	size_t bytes;

	(void)state;
	for (window = 1; window <= VQB_REQUESTS_WINDOW; window++) {
		config.window = window;
		bytes = vqb_requests_size(&config);
		assert_in_range(bytes, 1, VQB_REQUESTS_BYTES(window));
	}
	printf("list of bios, window of %u: %zu bytes of at most %zu\n", VQB_REQUESTS_WINDOW, bytes,
	       VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW));
	config.window = 0;
	assert_int_equal(vqb_requests_size(&config), bytes);
	config.window = VQB_REQUESTS_WINDOW + 1;
	assert_int_equal(vqb_requests_size(&config), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_driver_keeps_512_bytes_and_24_for_each_entry),
		cmocka_unit_test(test_a_device_keeps_512_bytes_and_32_for_each_entry),
		cmocka_unit_test(test_a_coalescer_of_32_keeps_4_kib_and_its_piece_list),
		cmocka_unit_test(
			test_a_block_queue_keeps_160_bytes_for_each_request_and_its_pieces),
		cmocka_unit_test(test_a_block_device_keeps_to_its_bound),
		cmocka_unit_test(test_a_block_driver_keeps_to_its_bound),
		cmocka_unit_test(test_a_list_of_bios_keeps_to_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
