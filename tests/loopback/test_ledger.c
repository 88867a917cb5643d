/* SPDX-License-Identifier: BSD-3-Clause */
/* Stamps and the ledger: every way for a sector to be wrong is noticed, and nothing else is. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/loopback/ledger.h"

enum { SECTORS = 64, RUN = 77 };

static uint64_t sector[SECTORS][SECTOR_WORDS];
static uint64_t disk[SECTORS][SECTOR_WORDS];
static struct ledger ledger;

static void test_a_stamp_matches_only_itself(void **state)
{
	const struct stamp stamp = { 1, 2, 3 };
	const struct stamp others[] = { { 0, 2, 3 }, { 1, 3, 3 }, { 1, 2, 2 }, { 2, 1, 3 } };
	size_t i;

	(void)state;
	stamp_fill(sector[0], &stamp);
	assert_true(stamp_matches(sector[0], &stamp));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(stamp_matches(sector[0], &others[i]));
}

static void test_each_damaged_byte_is_noticed(void **state)
{
	const struct stamp stamp = { 1, 2, 3 };
	struct stamp found;
	unsigned char *byte = (unsigned char *)sector[0];
	uint32_t i, bit;

	(void)state;
	stamp_fill(sector[0], &stamp);
	assert_int_equal(stamp_read(sector[0], &found), STAMP_WHOLE);
	assert_memory_equal(&found, &stamp, sizeof(stamp));
	for (i = 0; i < SECTOR_BYTES; i++) {
		for (bit = 0; bit < 8; bit++) {
			byte[i] ^= (unsigned char)(1u << bit);
			assert_false(stamp_matches(sector[0], &stamp));
			assert_int_equal(stamp_read(sector[0], &found), STAMP_DAMAGED);
			byte[i] ^= (unsigned char)(1u << bit);
		}
	}
}

static void test_other_data_is_no_stamp(void **state)
{
	struct stamp found;

	(void)state;
	memset(sector[0], 0, SECTOR_BYTES);
	assert_int_equal(stamp_read(sector[0], &found), STAMP_NONE);
	memset(sector[0], 0xa5, SECTOR_BYTES);
	assert_int_equal(stamp_read(sector[0], &found), STAMP_NONE);
}

static struct io io_at(uint32_t op, uint64_t first, uint32_t n)
{
	return (struct io){ .op = op, .offset = first * SECTOR_BYTES, .bytes = n * SECTOR_BYTES };
}

/* A write that arrives: what the ledger stamped is on the disk. */
static void write_sectors(uint64_t first, uint32_t n)
{
	struct io io = io_at(IO_WRITE, first, n);
	struct tally tally = { 0 };

	assert_true(ledger_begin(&ledger, &io, disk[first]));
	ledger_end(&ledger, &io, disk[first], IO_DONE, &tally);
	assert_int_equal(tally.verified_bytes, 0);
}

static struct tally read_sectors(uint64_t first, uint32_t n)
{
	struct io io = io_at(IO_READ, first, n);
	struct tally tally = { 0 };

	assert_true(ledger_begin(&ledger, &io, NULL));
	ledger_end(&ledger, &io, disk[first], IO_DONE, &tally);
	return tally;
}

static void test_what_was_written_is_right(void **state)
{
	struct tally t;

	(void)state;
	write_sectors(3, 5);
	write_sectors(4, 1);
	write_sectors(7, 9);
	t = read_sectors(0, SECTORS);
	assert_int_equal(t.mismatches, 0);
	assert_int_equal(t.verified_bytes, sizeof(disk));
}

static void test_a_lost_write_is_noticed(void **state)
{
	uint64_t before[SECTOR_WORDS];

	(void)state;
	write_sectors(3, 1);
	memcpy(before, disk[3], sizeof(before));
	write_sectors(3, 1);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	memcpy(disk[3], before, sizeof(before));
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
	assert_int_equal(read_sectors(0, 8).mismatches, 1);
	assert_int_equal(read_sectors(4, 8).mismatches, 0);
}

static void test_a_misplaced_write_is_noticed(void **state)
{
	(void)state;
	write_sectors(3, 1);
	write_sectors(9, 1);
	memcpy(disk[9], disk[3], SECTOR_BYTES);
	assert_int_equal(read_sectors(9, 1).mismatches, 1);
	memcpy(disk[20], disk[3], SECTOR_BYTES); /* never written */
	assert_int_equal(read_sectors(20, 1).mismatches, 1);
}

static void test_a_damaged_byte_is_noticed(void **state)
{
	(void)state;
	write_sectors(3, 2);
	((char *)disk[4])[511] ^= 1;
	assert_int_equal(read_sectors(3, 2).mismatches, 1);
	((char *)disk[4])[511] ^= 1;
	((char *)disk[40])[0] ^= 1;
	assert_int_equal(read_sectors(3, 2).mismatches, 0);
	assert_int_equal(read_sectors(40, 1).mismatches, 1);
}

/*
 * Whether a failed write has done anything, nobody knows; but there is nothing else it can leave.
 */
static void test_a_failed_write_leaves_what_was_there_or_itself(void **state)
{
	struct io io = io_at(IO_WRITE, 3, 2);
	struct tally t = { 0 };

	(void)state;
	assert_true(ledger_begin(&ledger, &io, sector));
	ledger_end(&ledger, &io, sector, IO_FAILED, &t);
	t = read_sectors(2, 4);
	assert_int_equal(t.mismatches, 0);
	assert_int_equal(t.verified_bytes, 4 * SECTOR_BYTES);
	memcpy(disk[3], sector[0], SECTOR_BYTES); /* half of it arrived */
	assert_int_equal(read_sectors(2, 4).mismatches, 0);
	memcpy(disk[4], sector[0], SECTOR_BYTES); /* in the wrong place */
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
	memcpy(disk[4], sector[1], SECTOR_BYTES);
	((char *)disk[4])[100] ^= 1; /* torn */
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
	((char *)disk[4])[100] ^= 1;
	assert_int_equal(read_sectors(2, 4).mismatches, 0);
	write_sectors(3, 1);
	assert_int_equal(read_sectors(3, 2).mismatches, 0);
	memcpy(disk[3], sector[0], SECTOR_BYTES); /* the failed write turns up late */
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

/* Any version since the last that succeeded, but none before, and none that is yet to come. */
static void test_failed_writes_in_a_row_leave_any_of_them(void **state)
{
	uint64_t version[5][SECTOR_WORDS];
	struct io io = io_at(IO_WRITE, 3, 1);
	struct tally t = { 0 };
	unsigned i;

	(void)state;
	write_sectors(3, 1);
	memcpy(version[1], disk[3], SECTOR_BYTES);
	write_sectors(3, 1);
	memcpy(version[2], disk[3], SECTOR_BYTES);
	for (i = 3; i < 5; i++) {
		assert_true(ledger_begin(&ledger, &io, version[i]));
		ledger_end(&ledger, &io, version[i], IO_FAILED, &t);
	}
	for (i = 1; i < 5; i++) {
		memcpy(disk[3], version[i], SECTOR_BYTES);
		assert_int_equal(read_sectors(3, 1).mismatches, i < 2);
	}
	stamp_fill(disk[3], &(struct stamp){ RUN, 3, 0 });
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
	stamp_fill(disk[3], &(struct stamp){ RUN, 3, 5 });
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
	stamp_fill(disk[3], &(struct stamp){ RUN + 1, 3, 3 });
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

/*
 * What was cancelled in time must never arrive: neither at once, nor after a later write, of which
 * it is told although both came from the same state of the sector.
 */
static void test_a_cancelled_write_leaves_what_was_there(void **state)
{
	uint64_t before[SECTOR_WORDS];
	struct io io = io_at(IO_WRITE, 3, 1);
	struct tally t = { 0 };

	(void)state;
	write_sectors(3, 1);
	memcpy(before, disk[3], SECTOR_BYTES);
	assert_true(ledger_begin(&ledger, &io, sector));
	ledger_end(&ledger, &io, sector, IO_NEVER, &t);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	memcpy(disk[3], sector[0], SECTOR_BYTES);
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
	write_sectors(3, 1);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	memcpy(disk[3], sector[0], SECTOR_BYTES);
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
	memcpy(disk[3], before, SECTOR_BYTES);
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

static void test_a_cancelled_write_to_a_fresh_sector(void **state)
{
	struct io io = io_at(IO_WRITE, 3, 1);
	struct tally t = { 0 };

	(void)state;
	assert_true(ledger_begin(&ledger, &io, sector));
	ledger_end(&ledger, &io, sector, IO_NEVER, &t);
	assert_true(ledger_wrote(&ledger, 3, 1)); /* to be read back, though it must not be there */
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	memcpy(disk[3], sector[0], SECTOR_BYTES);
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

/* Zeroes and discards have no data: what becomes of the disk is up to the test. */
static void change_sectors(uint32_t op, uint64_t first, uint32_t n, enum io_fate fate)
{
	struct io io = io_at(op, first, n);
	struct tally tally = { 0 };

	assert_true(ledger_begin(&ledger, &io, NULL));
	ledger_end(&ledger, &io, NULL, fate, &tally);
	assert_int_equal(tally.verified_bytes + tally.mismatches, 0);
}

static void clear_sector(uint64_t at)
{
	memset(disk[at], 0, SECTOR_BYTES);
}

static void test_zeroes_read_back_as_zeroes_to_the_last_byte(void **state)
{
	(void)state;
	write_sectors(3, 1);
	change_sectors(IO_ZEROES, 3, 2, IO_DONE);
	assert_int_equal(read_sectors(3, 1).mismatches, 1); /* still as it was written */
	assert_int_equal(read_sectors(4, 1).mismatches, 1); /* still as it was found */
	clear_sector(3);
	clear_sector(4);
	assert_int_equal(read_sectors(2, 4).mismatches, 0);
	((char *)disk[4])[511] = 1;
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
	clear_sector(5); /* nobody asked for that one */
	assert_int_equal(read_sectors(5, 1).mismatches, 1);
	write_sectors(3, 2);
	assert_int_equal(read_sectors(3, 2).mismatches, 0);
	clear_sector(3); /* the write after the zeroes was lost */
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

/* A stamp of the number that zeroes were given, as an earlier run may have left it. */
static void test_zeroes_have_no_version(void **state)
{
	(void)state;
	change_sectors(IO_ZEROES, 3, 1, IO_DONE);
	stamp_fill(disk[3], &(struct stamp){ RUN, 3, 1 });
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

static void test_failed_zeroes_leave_what_was_there_or_zeroes(void **state)
{
	(void)state;
	write_sectors(3, 3);
	change_sectors(IO_ZEROES, 3, 2, IO_FAILED);
	assert_int_equal(read_sectors(3, 3).mismatches, 0);
	clear_sector(4); /* half of it arrived */
	assert_int_equal(read_sectors(3, 3).mismatches, 0);
	stamp_fill(disk[4], &(struct stamp){ RUN, 4, 0 });
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
	write_sectors(4, 1);
	clear_sector(4);
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
}

static void test_cancelled_zeroes_leave_what_was_there(void **state)
{
	(void)state;
	write_sectors(3, 1);
	change_sectors(IO_ZEROES, 3, 2, IO_NEVER);
	assert_int_equal(read_sectors(3, 2).mismatches, 0);
	clear_sector(4);
	assert_int_equal(read_sectors(4, 1).mismatches, 1);
	change_sectors(IO_DISCARD, 3, 1, IO_NEVER);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	clear_sector(3);
	assert_int_equal(read_sectors(3, 1).mismatches, 1);
}

static void test_a_failed_write_upon_zeroes(void **state)
{
	struct io io = io_at(IO_WRITE, 3, 1);
	struct tally t = { 0 };

	(void)state;
	write_sectors(3, 1);
	change_sectors(IO_ZEROES, 3, 1, IO_DONE);
	assert_true(ledger_begin(&ledger, &io, sector));
	ledger_end(&ledger, &io, sector, IO_FAILED, &t);
	assert_int_equal(read_sectors(3, 1).mismatches, 1); /* what the zeroes replaced */
	clear_sector(3);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
	memcpy(disk[3], sector[0], SECTOR_BYTES);
	assert_int_equal(read_sectors(3, 1).mismatches, 0);
}

/* Sector by sector what was there or zeroes, whether it is said to have failed or not. */
static void test_a_discard_leaves_what_was_there_or_zeroes(void **state)
{
	static const enum io_fate fates[] = { IO_DONE, IO_FAILED };
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		write_sectors(3, 3);
		change_sectors(IO_DISCARD, 3, 2, fates[i]);
		assert_int_equal(read_sectors(3, 3).mismatches, 0);
		clear_sector(4);
		assert_int_equal(read_sectors(3, 3).mismatches, 0);
		((char *)disk[4])[100] = 1; /* torn */
		assert_int_equal(read_sectors(4, 1).mismatches, 1);
		clear_sector(5);
		assert_int_equal(read_sectors(5, 1).mismatches, 1);
		write_sectors(3, 3);
		assert_int_equal(read_sectors(3, 3).mismatches, 0);
		clear_sector(3); /* known again, and lost */
		assert_int_equal(read_sectors(3, 1).mismatches, 1);
		write_sectors(3, 1);
	}
}

static void test_zeroes_and_discards_are_alone(void **state)
{
	static const uint32_t ops[] = { IO_ZEROES, IO_DISCARD };
	uint32_t i, op;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct io first = io_at(ops[i], 10, 4);
		struct tally t = { 0 };

		assert_true(ledger_begin(&ledger, &first, NULL));
		for (op = IO_READ; op <= IO_DISCARD; op++) {
			struct io other = io_at(op, 13, 2);

			if (op != IO_FLUSH)
				assert_false(ledger_begin(&ledger, &other, sector));
		}
		ledger_end(&ledger, &first, NULL, IO_NEVER, &t);
		assert_true(ledger_wrote(&ledger, 10, 1));
		assert_false(ledger_wrote(&ledger, 14, 1));
	}
}

static void test_a_failed_read_is_not_checked(void **state)
{
	struct io io = io_at(IO_READ, 3, 2);
	struct tally t = { 0 };

	(void)state;
	assert_true(ledger_begin(&ledger, &io, NULL));
	memset(sector, 0, sizeof(sector));
	ledger_end(&ledger, &io, sector, IO_FAILED, &t);
	assert_int_equal(t.mismatches, 0);
	assert_int_equal(t.verified_bytes, 0);
}

static void test_a_write_is_alone(void **state)
{
	struct io first = io_at(IO_WRITE, 10, 4), read = io_at(IO_READ, 10, 4);
	struct tally t = { 0 };
	uint64_t at;

	(void)state;
	assert_true(ledger_begin(&ledger, &first, disk[10]));
	for (at = 7; at < 14; at++) {
		struct io write = io_at(IO_WRITE, at, 4), other = io_at(IO_READ, at, 4);

		assert_false(ledger_begin(&ledger, &write, sector));
		assert_false(ledger_begin(&ledger, &other, sector));
	}
	write_sectors(6, 4);
	write_sectors(14, 4);
	ledger_end(&ledger, &first, disk[10], IO_DONE, &t);
	assert_true(ledger_begin(&ledger, &read, NULL));
	assert_false(ledger_begin(&ledger, &first, sector));
	ledger_end(&ledger, &read, disk[10], IO_DONE, &t);
	assert_int_equal(t.mismatches, 0);
	write_sectors(10, 4);
}

static void test_reads_are_together(void **state)
{
	struct io read = io_at(IO_READ, 10, 4), write = io_at(IO_WRITE, 13, 1);
	struct tally t = { 0 };
	uint32_t n = 0;

	(void)state;
	while (ledger_begin(&ledger, &read, NULL))
		n++;
	assert_true(n >= 200); /* there is an end to it, too */
	while (n--) {
		assert_false(ledger_begin(&ledger, &write, sector));
		ledger_end(&ledger, &read, disk[10], IO_DONE, &t);
	}
	assert_int_equal(t.mismatches, 0);
	write_sectors(13, 1);
}

static void test_wrote_knows_what_to_read_back(void **state)
{
	(void)state;
	assert_false(ledger_wrote(&ledger, 0, SECTORS));
	write_sectors(10, 2);
	assert_true(ledger_wrote(&ledger, 0, 11));
	assert_true(ledger_wrote(&ledger, 11, 1));
	assert_false(ledger_wrote(&ledger, 0, 10));
	assert_false(ledger_wrote(&ledger, 12, SECTORS - 12));
}

/* With an image, what was not written is what a plain read gives. */
static void test_an_image_is_as_it_was_found(void **state)
{
	char name[] = "/tmp/vqblk-ledger-XXXXXX";
	struct stamp earlier = { 5, 30, 9 }, elsewhere = { 5, 32, 9 };

	(void)state;
	memset(disk, 0x3c, sizeof(disk));
	stamp_fill(disk[30], &earlier);
	stamp_fill(disk[31], &elsewhere);
	stamp_fill(disk[33], &earlier);
	((char *)disk[33])[100] ^= 1;
	ledger.image = mkstemp(name);
	assert_true(ledger.image >= 0);
	unlink(name);
	assert_int_equal(write(ledger.image, disk, sizeof(disk)), sizeof(disk));

	assert_int_equal(read_sectors(0, 31).mismatches, 0);
	assert_int_equal(read_sectors(31, 1).mismatches, 1); /* a stamp out of place */
	assert_int_equal(read_sectors(33, 1).mismatches, 1); /* a damaged one */
	assert_int_equal(read_sectors(34, 30).mismatches, 0);
	((char *)disk[50])[7] ^= 1; /* not what the image has */
	assert_int_equal(read_sectors(34, 30).mismatches, 1);
	write_sectors(49, 2);
	assert_int_equal(read_sectors(34, 30).mismatches, 0);
	close(ledger.image);
}

/* A write that was cancelled and arrived is not taken for what the image had at first. */
static void test_an_image_has_no_cancelled_write(void **state)
{
	char name[] = "/tmp/vqblk-ledger-XXXXXX";
	struct io io = io_at(IO_WRITE, 30, 1);
	struct tally t = { 0 };

	(void)state;
	memset(disk, 0x3c, sizeof(disk));
	assert_true(ledger_begin(&ledger, &io, disk[30]));
	ledger_end(&ledger, &io, disk[30], IO_NEVER, &t);
	ledger.image = mkstemp(name);
	assert_true(ledger.image >= 0);
	unlink(name);
	assert_int_equal(write(ledger.image, disk, sizeof(disk)), sizeof(disk));
	assert_int_equal(read_sectors(30, 1).mismatches, 0); /* an earlier run with the same seed */
	ledger.unique = true;
	assert_int_equal(read_sectors(30, 1).mismatches, 1);
	assert_int_equal(read_sectors(31, 9).mismatches, 0);
	close(ledger.image);
}

static int open_ledger(void **state)
{
	(void)state;
	if (!ledger_open(&ledger, RUN, SECTORS))
		return -1;
	ledger.check = true;
	ledger_fill(&ledger, disk);
	return 0;
}

static int close_ledger(void **state)
{
	(void)state;
	ledger_close(&ledger);
	return 0;
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, open_ledger, close_ledger)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stamp_matches_only_itself),
		cmocka_unit_test(test_each_damaged_byte_is_noticed),
		cmocka_unit_test(test_other_data_is_no_stamp),
		with_ledger(test_what_was_written_is_right),
		with_ledger(test_a_lost_write_is_noticed),
		with_ledger(test_a_misplaced_write_is_noticed),
		with_ledger(test_a_damaged_byte_is_noticed),
		with_ledger(test_a_failed_write_leaves_what_was_there_or_itself),
		with_ledger(test_failed_writes_in_a_row_leave_any_of_them),
		with_ledger(test_a_cancelled_write_leaves_what_was_there),
		with_ledger(test_a_cancelled_write_to_a_fresh_sector),
		with_ledger(test_zeroes_read_back_as_zeroes_to_the_last_byte),
		with_ledger(test_zeroes_have_no_version),
		with_ledger(test_failed_zeroes_leave_what_was_there_or_zeroes),
		with_ledger(test_cancelled_zeroes_leave_what_was_there),
		with_ledger(test_a_failed_write_upon_zeroes),
		with_ledger(test_a_discard_leaves_what_was_there_or_zeroes),
		with_ledger(test_zeroes_and_discards_are_alone),
		with_ledger(test_a_failed_read_is_not_checked),
		with_ledger(test_a_write_is_alone),
		with_ledger(test_reads_are_together),
		with_ledger(test_wrote_knows_what_to_read_back),
		with_ledger(test_an_image_is_as_it_was_found),
		with_ledger(test_an_image_has_no_cancelled_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
