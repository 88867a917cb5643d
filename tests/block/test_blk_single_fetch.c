/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peer can change is fetched once: a header by the device, a status byte by the driver,
 * and a configuration space by the driver, where only fields on offer are touched. (Loads are
 * counted by the probe.)
 */
#include "driver_bench.h"

#include <vqblk/blk_driver.h>
#include <vqblk/blk_parse.h>

#include "probe_port.h"

static uint8_t *watched;
static unsigned watched_bytes;
static unsigned loads[192]; /* of each watched byte */

static void count_loads(const void *p, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		const uint8_t *at = (const uint8_t *)p + i;

		if (at >= watched && at < watched + watched_bytes)
			loads[at - watched]++;
	}
}

static void watch(uint8_t *at, unsigned bytes)
{
	watched = at;
	watched_bytes = bytes;
	memset(loads, 0, sizeof(loads));
	probe_load = count_loads;
}

static int stop_watching(void **state)
{
	(void)state;
	probe_load = NULL;
	return 0;
}

/* A chain whose header is cut after `cut` bytes and lies `shift` bytes off alignment. */
static void parse_cut(unsigned cut, unsigned shift)
{
	_Alignas(16) uint8_t memory[64];
	uint8_t *at = memory + shift, status[1];
	struct vqb_piece piece[3] = { { at, cut }, { at + cut, 16 - cut }, { status, 1 } };
	struct vqb_chain chain = { .piece = piece, .readable = 2, .writable = 1 };
	struct vqb_blk_request request;

	chain.read_bytes = 16;
	chain.write_bytes = 1;
	poke(at, 1, 4);
	poke(at + 4, 0, 4);
	poke(at + 8, UINT64_C(0x1122334455667788), 8);
	watch(at, 16);
	assert_int_equal(vqb_blk_parse(&chain, &request), VQB_OK);
	probe_load = NULL;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(loads[i], 1);
	assert_int_equal(request.type, VQB_BLK_OUT);
	assert_int_equal(request.sector, UINT64_C(0x1122334455667788));
}

/* Shows: K16 K22 SR-DEV-35 */
static void test_each_byte_of_the_header_is_fetched_once(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 16; shift++) {
		for (unsigned cut = 0; cut <= 16; cut++)
			parse_cut(cut, shift);
	}
}

/* Shows: SR-DEV-04 */
static void test_parsing_reads_no_writable_byte(void **state)
{
	_Alignas(8) uint8_t header[16] = { 0 };
	uint8_t data[65];
	struct vqb_piece piece[2] = { { header, 16 }, { data, 65 } };
	struct vqb_chain chain = { .piece = piece, .readable = 1, .writable = 1 };
	struct vqb_blk_request request;

	(void)state;
	chain.read_bytes = 16;
	chain.write_bytes = 65;
	watch(data, 65);
	assert_int_equal(vqb_blk_parse(&chain, &request), VQB_OK);
	for (unsigned i = 0; i < 65; i++)
		assert_int_equal(loads[i], 0);
	assert_ptr_equal(request.status, data + 64);
}

static unsigned end_of(unsigned feature)
{
	static const unsigned char end[18] = {
		[VQB_BLK_F_SIZE_MAX] = 12,     [VQB_BLK_F_SEG_MAX] = 16,
		[VQB_BLK_F_GEOMETRY] = 20,     [VQB_BLK_F_BLK_SIZE] = 24,
		[VQB_BLK_F_TOPOLOGY] = 32,     [VQB_BLK_F_MQ] = 36,
		[VQB_BLK_F_DISCARD] = 48,      [VQB_BLK_F_WRITE_ZEROES] = 57,
		[VQB_BLK_F_SECURE_ERASE] = 72,
	};

	return feature < 18 ? end[feature] : 0;
}

static unsigned start_of(unsigned feature)
{
	static const unsigned char start[18] = {
		[VQB_BLK_F_SIZE_MAX] = 8,      [VQB_BLK_F_SEG_MAX] = 12,
		[VQB_BLK_F_GEOMETRY] = 16,     [VQB_BLK_F_BLK_SIZE] = 20,
		[VQB_BLK_F_TOPOLOGY] = 24,     [VQB_BLK_F_MQ] = 34,
		[VQB_BLK_F_DISCARD] = 36,      [VQB_BLK_F_WRITE_ZEROES] = 48,
		[VQB_BLK_F_SECURE_ERASE] = 60,
	};

	return feature < 18 ? start[feature] : 0;
}

/* Shows: BF-DRV-18 BLK-DRV-04 */
static void test_only_fields_of_offered_features_are_read_and_once(void **state)
{
	_Alignas(8) uint8_t space[VQB_BLK_CONFIG_BYTES];
	struct vqb_blk_limits limits;

	(void)state;
	memset(space, 0, sizeof(space));
	poke(space + 20, 512, 4);
	for (unsigned bit = 0; bit < 64; bit++) {
		watch(space, sizeof(space));
		assert_int_equal(
			vqb_blk_limits_read(space, sizeof(space), VQB_FEATURE(bit), 0, &limits),
			VQB_OK);
		for (unsigned i = 0; i < sizeof(space); i++) {
			int wanted = i < 8 || (i >= start_of(bit) && i < end_of(bit));

			assert_int_equal(loads[i], wanted);
		}
	}
	watch(space, sizeof(space));
	vqb_blk_cache(space, sizeof(space), VQB_FEATURE(VQB_BLK_F_FLUSH));
	assert_int_equal(loads[32], 0);
	vqb_blk_cache(space, sizeof(space), VQB_FEATURE(VQB_BLK_F_CONFIG_WCE));
	assert_int_equal(loads[32], 1);
}

/* Shows: K16 */
static void test_the_status_byte_is_fetched_once_and_the_header_never(void **state)
{
	enum { AREA = VQB_BLK_AREA_BYTES(1, 0) };
	_Alignas(64) uint8_t area[AREA], mem[VQB_BLK_DRIVER_BYTES(1, 1, 0, VQB_REQUESTS_WINDOW)];
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .block_size = 512,
					 .capacity = 8,
					 .segment_bytes = 512,
					 .segments = 1 };
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config), .depth = 1 };
	struct vqb_segment seg = { BENCH_DATA_AT, 512, 0 };
	struct vqb_bio bio = { .vec = &seg, .nvec = 1, .op = VQB_BLK_OUT }, *done;
	struct vqb_blk_driver *drv;
	struct bench ring;

	(void)state;
	bench_open(&ring, 4, FLAGS_MODE);
	config.ring = ring.drv;
	config.area = (struct vqb_dma){ area, 0x1000, AREA };
	config.limits = &limits;
	assert_int_equal(vqb_blk_driver_init(mem, sizeof(mem), &config, &drv), VQB_OK);
	watch(area, AREA);
	assert_int_equal(vqb_blk_submit(drv, &bio), VQB_OK);
	vqb_blk_publish(drv);
	area[64] = VQB_BLK_S_UNSUPP;
	bench_give(&ring, bench_take(&ring), 1);
	assert_int_equal(vqb_blk_reap(drv, &done), 1);
	assert_int_equal(done->status, VQB_E_UNSUPP);
	for (unsigned i = 0; i < AREA; i++)
		assert_int_equal(loads[i], i == 64);
	bench_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_each_byte_of_the_header_is_fetched_once,
					  stop_watching),
		cmocka_unit_test_teardown(test_parsing_reads_no_writable_byte, stop_watching),
		cmocka_unit_test_teardown(test_only_fields_of_offered_features_are_read_and_once,
					  stop_watching),
		cmocka_unit_test_teardown(test_the_status_byte_is_fetched_once_and_the_header_never,
					  stop_watching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
