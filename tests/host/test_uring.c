/* SPDX-License-Identifier: BSD-3-Clause */
/* The io_uring backend: how it is set up, when it is full, how it wakes its thread, how it ends. */
#define _GNU_SOURCE

#include <poll.h>

#include "image_bench.h"

enum { DISK = 1 << 20 };

static _Alignas(4096) uint8_t data[DISK];

/* An image and its backend, or the test is skipped. */
static void open_or_skip(struct image *b)
{
	if (!b->bytes)
		b->bytes = DISK;
	if (!image_open(b))
		skip();
}

static struct vqb_uring_counters counters(const struct image *b)
{
	struct vqb_uring_counters c;

	vqb_uring_read_counters(b->backend, &c);
	return c;
}

static unsigned length(const struct vqb_io *io)
{
	unsigned n = 0;

	for (; io; io = io->next)
		n++;
	return n;
}

static void assert_new(const void *at, uint64_t offset, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(((const uint8_t *)at)[i], image_byte(offset + i));
}

static void assert_zero(const struct image *b, off_t offset, size_t bytes)
{
	uint8_t *found = malloc(bytes);

	assert_non_null(found);
	image_peek(b, found, offset, bytes);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(found[i], 0);
	free(found);
}

/* ---- setting up ---- */

static void test_a_wrong_configuration_is_refused(void **state)
{
	struct image b = { .kind = URING_DIRECT };
	struct vqb_uring_config good, bad[7];
	struct vqb_backend *out;

	(void)state;
	open_or_skip(&b);
	good = b.config;
	for (unsigned i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].struct_size--;
	bad[1].entries = 0;
	bad[2].entries = VQB_URING_MAX_ENTRIES + 1;
	bad[3].file = NULL;
	bad[4].bounces = 0;
	bad[5].bounce_bytes = 0;
	bad[6].bounce_bytes = 4096 + 512;
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(vqb_uring_size(&bad[i]), 0);
		assert_int_equal(vqb_uring_init(data, sizeof(data), &bad[i], &out), VQB_E_INVALID);
	}
	assert_int_equal(vqb_uring_size(NULL), 0);
	assert_int_equal(vqb_uring_init(data + 8, DISK / 2, &good, &out), VQB_E_INVALID);
	assert_int_equal(vqb_uring_init(NULL, DISK, &good, &out), VQB_E_INVALID);
	assert_int_equal(vqb_uring_init(data, DISK, &good, NULL), VQB_E_INVALID);
	assert_int_equal(vqb_uring_init(data, vqb_uring_size(&good) - 1, &good, &out),
			 VQB_E_TOOBIG);
	image_close(&b);
}

/* Two views of one image, through the page cache and past it, would not agree. */
static void test_a_direct_image_has_no_synchronous_backend(void **state)
{
	struct image b = { .kind = URING_DIRECT };
	struct vqb_backend *out;

	(void)state;
	open_or_skip(&b);
	assert_int_equal(vqb_file_backend_init(data, DISK, b.file, &out), VQB_E_UNSUPP);
	image_close(&b);
}

static void test_the_image_can_be_opened_again_at_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct image b = { .kind = URING, .bytes = 8192 };
		struct vqb_piece piece = { data, 8192 };
		struct vqb_file_config config = { .struct_size = sizeof(config),
						  .access = VQB_READ | VQB_WRITE,
						  .path = b.path };

		open_or_skip(&b);
		assert_int_equal(image_io(&b, VQB_BLK_OUT, VQB_IO_FUA, 0, 8192, &piece, 1), 8192);
		vqb_uring_close(b.backend);
		b.backend = NULL;
		assert_int_equal(vqb_file_close(b.file), VQB_OK);
		assert_int_equal(vqb_file_open(b.file_mem, vqb_file_size(), &config, &b.file),
				 VQB_OK);
		image_close(&b);
	}
}

static void test_ios_that_cannot_be_are_refused(void **state)
{
	struct image b = { .kind = URING };
	struct vqb_piece piece = { data, 4096 };

	(void)state;
	open_or_skip(&b);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, DISK - 4095, 4096, &piece, 1), VQB_E_INVALID);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, UINT64_MAX, 4096, &piece, 1), VQB_E_INVALID);
	assert_int_equal(image_io(&b, VQB_BLK_DISCARD, 0, 512, DISK, NULL, 0), VQB_E_INVALID);
	assert_int_equal(image_io(&b, VQB_BLK_GET_ID, 0, 0, 4096, &piece, 1), VQB_E_UNSUPP);
	assert_int_equal(image_io(&b, VQB_BLK_SECURE_ERASE, 0, 0, 4096, NULL, 0), VQB_E_UNSUPP);
	assert_int_equal(counters(&b).ios, 0);
	image_close(&b);
}

/* ---- plugging ---- */

static void test_a_plug_is_one_system_call_and_no_plug_is_one_each(void **state)
{
	enum { IOS = 40 };
	struct image b = { .kind = URING };
	struct vqb_piece piece = { data, 512 };
	struct vqb_io io[IOS];

	(void)state;
	open_or_skip(&b);
	for (unsigned i = 0; i < IOS; i++)
		io[i] = image_plan(VQB_BLK_IN, 0, i * 512, 512, &piece, 1);
	vqb_backend_plug(b.backend);
	for (unsigned i = 0; i < IOS; i++)
		assert_int_equal(vqb_backend_submit(b.backend, &io[i]), VQB_OK);
	assert_null(vqb_backend_poll(b.backend));
	assert_int_equal(counters(&b).system_calls, 0);
	vqb_backend_unplug(b.backend);
	assert_int_equal(counters(&b).system_calls, 1);
	assert_int_equal(counters(&b).steps, IOS);
	assert_int_equal(length(image_next(&b)), IOS);

	vqb_backend_plug(b.backend);
	vqb_backend_unplug(b.backend);
	vqb_uring_close(b.backend);
	b.backend = NULL;
	free(b.mem);
	assert_int_equal(image_backend(&b), VQB_OK);
	for (unsigned i = 0; i < IOS; i++) {
		assert_int_equal(vqb_backend_submit(b.backend, &io[i]), VQB_OK);
		assert_int_equal(counters(&b).system_calls, i + 1);
	}
	image_close(&b);
}

static void test_polling_makes_no_system_call(void **state)
{
	struct image b = { .kind = URING };
	struct vqb_piece piece = { data, 4096 };
	struct vqb_io io = image_plan(VQB_BLK_IN, 0, 4096, 4096, &piece, 1), *done = NULL;

	(void)state;
	open_or_skip(&b);
	assert_int_equal(vqb_backend_submit(b.backend, &io), VQB_OK);
	while (!done)
		done = vqb_backend_poll(b.backend);
	assert_ptr_equal(done, &io);
	assert_int_equal(io.result, 4096);
	assert_new(data, 4096, 4096);
	assert_int_equal(counters(&b).system_calls, 1);
	image_close(&b);
}

/* ---- full ---- */

static void test_full_is_said_while_ios_are_in_flight_and_passes(void **state)
{
	struct image b = { .kind = URING, .entries = 5 };
	struct vqb_piece piece = { data, 512 };
	struct vqb_io io[12];

	(void)state;
	open_or_skip(&b);
	for (unsigned round = 0; round < 3; round++) {
		vqb_backend_plug(b.backend);
		for (unsigned i = 0; i < 12; i++) {
			io[i] = image_plan(VQB_BLK_OUT, VQB_IO_FUA, i * 512, 512, &piece, 1);
			assert_int_equal(vqb_backend_submit(b.backend, &io[i]),
					 i < 5 ? VQB_OK : VQB_E_NOSPC);
		}
		vqb_backend_unplug(b.backend);
		assert_int_equal(length(image_next(&b)), 5);
		assert_int_equal(counters(&b).full, 7 * (round + 1));
	}
	image_close(&b);
}

static void test_without_a_bounce_buffer_only_aligned_memory_goes(void **state)
{
	struct image b = { .kind = URING_DIRECT, .bounces = 1 };
	struct vqb_piece odd = { data + 1, 4096 }, even = { data + 8192, 4096 };
	struct vqb_io io[3];

	(void)state;
	open_or_skip(&b);
	io[0] = image_plan(VQB_BLK_IN, 0, 0, 4096, &odd, 1);
	io[1] = image_plan(VQB_BLK_IN, 0, 4096, 4096, &odd, 1);
	io[2] = image_plan(VQB_BLK_IN, 0, 8192, 4096, &even, 1);
	vqb_backend_plug(b.backend);
	assert_int_equal(vqb_backend_submit(b.backend, &io[0]), VQB_OK);
	assert_int_equal(vqb_backend_submit(b.backend, &io[1]), VQB_E_NOSPC);
	assert_int_equal(vqb_backend_submit(b.backend, &io[2]), VQB_OK);
	vqb_backend_unplug(b.backend);
	assert_int_equal(length(image_next(&b)), 2);
	assert_new(data + 1, 0, 4096);
	assert_new(data + 8192, 8192, 4096);
	assert_int_equal(vqb_backend_submit(b.backend, &io[1]), VQB_OK);
	assert_ptr_equal(image_next(&b), &io[1]);
	assert_new(data + 1, 4096, 4096);
	assert_int_equal(counters(&b).bounced, 2);
	image_close(&b);
}

/* ---- direct ---- */

static void transfers_in_units(const char *dir)
{
	struct image b = { .kind = URING_DIRECT, .dir = dir, .bytes = DISK - 100 };
	struct vqb_piece piece = { data, DISK };
	uint32_t unit;

	if (!image_open(&b))
		return;
	unit = b.backend->caps.alignment;
	assert_true(unit >= 512);
	assert_int_equal(b.backend->caps.bytes, (DISK - 100) / unit * unit);
	assert_int_equal(vqb_file_bytes(b.file), b.backend->caps.bytes);
	piece.len = unit;
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, unit, unit, &piece, 1), unit);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, unit / 2, unit, &piece, 1), VQB_E_INVALID);
	piece.len = unit / 2;
	assert_int_equal(image_io(&b, VQB_BLK_OUT, 0, unit, unit / 2, &piece, 1), VQB_E_INVALID);
	image_close(&b);
}

/* Of 512 bytes on most disks, and of 4096 on tmpfs, which doesn't say what it wants. */
static void test_direct_transfers_come_in_units_of_the_disk(void **state)
{
	(void)state;
	transfers_in_units(NULL);
	transfers_in_units("/dev/shm");
}

/* Longer than its bounce buffer, from memory as odd as can be, and with a flush at the end. */
static void test_a_direct_transfer_bounces_in_parts(void **state)
{
	struct image b = { .kind = URING_DIRECT, .bounces = 2, .bounce_bytes = 4096 };
	struct vqb_piece piece[3] = { { data + 3, 5000 },
				      { data + 5003, 0 },
				      { data + 5003, 27768 } };
	uint8_t *found = malloc(32768);

	(void)state;
	open_or_skip(&b);
	for (unsigned i = 0; i < 32768; i++)
		data[i + 3] = (uint8_t)(i * 3 + i / 4096);
	assert_int_equal(image_io(&b, VQB_BLK_OUT, VQB_IO_FUA, 8192, 32768, piece, 3), 32768);
	assert_int_equal(counters(&b).steps, 9);
	assert_int_equal(counters(&b).resumed, 7);
	image_peek(&b, found, 8192, 32768);
	assert_memory_equal(found, data + 3, 32768);
	memset(data, 0, 40000);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 8192, 32768, piece, 3), 32768);
	assert_memory_equal(found, data + 3, 32768);
	assert_int_equal(data[2] | data[32768 + 3], 0);
	free(found);
	image_close(&b);
}

/* ---- results ---- */

static void test_thousands_of_pieces_are_one_io(void **state)
{
	enum { PIECES = 5000 };
	static struct vqb_piece piece[PIECES];
	struct image b = { .kind = URING };

	(void)state;
	open_or_skip(&b);
	for (unsigned i = 0; i < PIECES; i++)
		piece[i] = (struct vqb_piece){ data + 3 * i, i % 7 ? 3 : 0 };
	piece[PIECES - 1].len += 15000 - 3 * (PIECES - (PIECES + 6) / 7) + 360;
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 512, 15360, piece, PIECES), 15360);
	for (unsigned i = 0, at = 512; i < PIECES; i++) {
		assert_new(piece[i].base, at, piece[i].len);
		at += (unsigned)piece[i].len;
	}
	assert_int_equal(counters(&b).steps, 5);
	image_close(&b);
}

static void file_is_cut(enum image_kind kind)
{
	struct image b = { .kind = kind, .bytes = 65536 };
	struct vqb_piece piece = { data, 16384 };

	if (!image_open(&b))
		return;
	assert_int_equal(truncate(b.path, 40000), 0);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 32768, 16384, &piece, 1), VQB_E_IO);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 49152, 16384, &piece, 1), VQB_E_IO);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 0, 16384, &piece, 1), 16384);
	assert_int_equal(image_io(&b, VQB_BLK_OUT, 0, 32768, 16384, &piece, 1), 16384);
	assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 32768, 16384, &piece, 1), 16384);
	assert_new(data, 0, 16384);
	image_close(&b);
}

static void test_a_file_that_was_cut_is_an_error_to_read(void **state)
{
	(void)state;
	file_is_cut(SYNC_FILE);
	file_is_cut(URING);
	file_is_cut(URING_DIRECT);
}

/* ---- ranges ---- */

static void ranges(enum image_kind kind, const char *dir)
{
	struct image b = { .kind = kind, .dir = dir, .bytes = DISK };
	struct vqb_piece piece = { data, 65536 };
	off_t full, zeroed;
	uint32_t can;

	if (!image_open(&b))
		return;
	can = b.backend->caps.can;
	assert_true(can & VQB_CAN_WRITE_ZEROES);
	full = image_blocks(&b);
	assert_int_equal(image_io(&b, VQB_BLK_WRITE_ZEROES, 0, 4096, 65536, NULL, 0), 65536);
	assert_zero(&b, 4096, 65536);
	zeroed = image_blocks(&b);
	assert_true(zeroed >= full); /* kept, as UNMAP was not asked for */
	image_peek(&b, data, 0, 4096);
	assert_new(data, 0, 4096);
	image_peek(&b, data, 69632, 4096);
	assert_new(data, 69632, 4096);
	assert_int_equal(image_io(&b, VQB_BLK_WRITE_ZEROES, VQB_IO_UNMAP, 131072, 65536, NULL, 0),
			 65536);
	assert_zero(&b, 131072, 65536);
	if (can & VQB_CAN_UNMAP)
		assert_true(image_blocks(&b) <= zeroed - 112); /* some may go to what tells of it */
	if (can & VQB_CAN_DISCARD) {
		assert_int_equal(image_io(&b, VQB_BLK_DISCARD, 0, 262144, 65536, NULL, 0), 65536);
		assert_true(image_blocks(&b) <= zeroed - 240);
		assert_int_equal(image_io(&b, VQB_BLK_IN, 0, 262144, 65536, &piece, 1), 65536);
		for (unsigned i = 0; i < 65536; i++)
			assert_int_equal(data[i], 0);
	}
	image_peek(&b, data, 327680, 4096);
	assert_new(data, 327680, 4096);
	image_close(&b);
}

/* Shows: BLK-DEV-12 BLK-DEV-13 BLK-DEV-14 */
static void test_zeroed_ranges_read_as_zeroes_and_give_storage_back_if_they_may(void **state)
{
	(void)state;
	for (enum image_kind kind = SYNC_FILE; kind <= URING_DIRECT; kind++) {
		ranges(kind, NULL);
		ranges(kind, "/dev/shm");
	}
}

/* ---- waking ---- */

static void test_a_completion_wakes_the_thread(void **state)
{
	struct vqb_notify notify;
	struct image b = { .kind = URING_DIRECT, .notify = &notify };
	struct vqb_piece piece = { data, 4096 };
	struct vqb_io io = image_plan(VQB_BLK_IN, 0, 8192, 4096, &piece, 1);

	(void)state;
	assert_int_equal(vqb_notify_open(&notify), VQB_OK);
	open_or_skip(&b);
	for (unsigned i = 0; i < 200; i++) {
		struct pollfd watch = { .fd = notify.fd, .events = POLLIN };
		struct vqb_io *done = NULL;

		memset(data, 0, 4096);
		assert_int_equal(vqb_backend_submit(b.backend, &io), VQB_OK);
		while (!done) {
			assert_int_equal(poll(&watch, 1, 10000), 1);
			assert_int_equal(vqb_notify_clear(&notify), VQB_OK);
			done = vqb_backend_poll(b.backend);
		}
		assert_ptr_equal(done, &io);
		assert_new(data, 8192, 4096);
	}
	image_close(&b);
	vqb_notify_close(&notify);
}

/* ---- the end ---- */

static void many_reads(const struct image *b, struct vqb_io *io, struct vqb_piece *piece,
		       unsigned n)
{
	memset(data, 0, sizeof(data));
	vqb_backend_plug(b->backend);
	for (unsigned i = 0; i < n; i++) {
		piece[i] = (struct vqb_piece){ data + i * 16384, 16384 };
		io[i] = image_plan(VQB_BLK_IN, 0, i * 16384, 16384, &piece[i], 1);
		assert_int_equal(vqb_backend_submit(b->backend, &io[i]), VQB_OK);
	}
}

static void test_drain_waits_for_all_and_leaves_them_to_poll(void **state)
{
	struct image b = { .kind = URING_DIRECT };
	struct vqb_piece piece[64];
	struct vqb_io io[64];

	(void)state;
	open_or_skip(&b);
	many_reads(&b, io, piece, 64);
	vqb_backend_drain(b.backend); /* even what was not unplugged */
	assert_new(data, 0, DISK);
	assert_int_equal(length(vqb_backend_poll(b.backend)), 64);
	vqb_backend_unplug(b.backend);
	vqb_backend_drain(b.backend);
	assert_null(vqb_backend_poll(b.backend));
	image_close(&b);
}

/* So that no read lands in memory that has another use by then. */
static void test_closing_waits_for_the_kernel(void **state)
{
	struct vqb_piece piece[64];
	struct vqb_io io[64];

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct image b = { .kind = URING_DIRECT };

		open_or_skip(&b);
		many_reads(&b, io, piece, 64);
		vqb_backend_unplug(b.backend);
		vqb_uring_close(b.backend);
		b.backend = NULL;
		assert_new(data, 0, DISK);
		image_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_configuration_is_refused),
		cmocka_unit_test(test_a_direct_image_has_no_synchronous_backend),
		cmocka_unit_test(test_the_image_can_be_opened_again_at_once),
		cmocka_unit_test(test_ios_that_cannot_be_are_refused),
		cmocka_unit_test(test_a_plug_is_one_system_call_and_no_plug_is_one_each),
		cmocka_unit_test(test_polling_makes_no_system_call),
		cmocka_unit_test(test_full_is_said_while_ios_are_in_flight_and_passes),
		cmocka_unit_test(test_without_a_bounce_buffer_only_aligned_memory_goes),
		cmocka_unit_test(test_direct_transfers_come_in_units_of_the_disk),
		cmocka_unit_test(test_a_direct_transfer_bounces_in_parts),
		cmocka_unit_test(test_thousands_of_pieces_are_one_io),
		cmocka_unit_test(test_a_file_that_was_cut_is_an_error_to_read),
		cmocka_unit_test(
			test_zeroed_ranges_read_as_zeroes_and_give_storage_back_if_they_may),
		cmocka_unit_test(test_a_completion_wakes_the_thread),
		cmocka_unit_test(test_drain_waits_for_all_and_leaves_them_to_poll),
		cmocka_unit_test(test_closing_waits_for_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
