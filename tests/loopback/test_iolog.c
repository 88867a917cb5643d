/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of fio's I/O logs: what it understands, and where it says a log is wrong. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/loopback/iolog.h"

static const struct iolog_limits megabyte = { .disk_bytes = 1 << 20,
					      .largest = 1 << 19,
					      .unit = 512 };

static char file[] = "/tmp/vqblk-iolog-XXXXXX";
static char why[256];

static bool load_bytes(struct iolog *log, const struct iolog_limits *limits, const void *text,
		       size_t bytes)
{
	FILE *out = fopen(file, "w");
	size_t written;

	assert_non_null(out);
	written = fwrite(text, 1, bytes, out);
	assert_int_equal(written, bytes);
	fclose(out);
	why[0] = '\0';
	return iolog_load(log, file, limits, why, sizeof(why));
}

static bool load(struct iolog *log, const char *text)
{
	return load_bytes(log, &megabyte, text, strlen(text));
}

/* The complaint begins with file and line, is one line, and has `what` in it. */
static void assert_refused_by(const struct iolog_limits *limits, const char *text, int line,
			      const char *what)
{
	struct iolog log;
	char at[64];

	if (load_bytes(&log, limits, text, strlen(text)))
		fail_msg("not refused: %s", text);
	assert_null(log.io);
	snprintf(at, sizeof(at), "%s:%d: ", file, line);
	if (strncmp(why, at, strlen(at)) != 0 || !strstr(why, what) || strchr(why, '\n'))
		fail_msg("'%s' is not about line %d and '%s'", why, line, what);
}

static void assert_refused(const char *text, int line, const char *what)
{
	assert_refused_by(&megabyte, text, line, what);
}

static void assert_io(const struct io *io, uint32_t op, uint64_t offset, uint32_t bytes)
{
	assert_int_equal(io->op, op);
	assert_int_equal(io->offset, offset);
	assert_int_equal(io->bytes, bytes);
}

static const char version_2[] = "fio version 2 iolog\n"
				"/dev/sda add\n"
				"/dev/sda open\n"
				"/dev/sda write 512 4096\n"
				"/dev/sda wait 1000 0\n"
				"/dev/sda read 0 1024\n"
				"/dev/sda sync 0 0\n"
				"/dev/sda datasync 4096 0\n"
				"/dev/sda trim 8192 4096\n"
				"/dev/sda close\n";

static void assert_the_four(const struct iolog *log)
{
	assert_int_equal(log->count, 4);
	assert_io(&log->io[0], IO_WRITE, 512, 4096);
	assert_io(&log->io[1], IO_READ, 0, 1024);
	assert_io(&log->io[2], IO_FLUSH, 0, 0);
	assert_io(&log->io[3], IO_FLUSH, 0, 0);
	assert_int_equal(log->trims, 1);
	assert_int_equal(log->largest, 4096);
}

static void test_version_2(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, version_2));
	assert_the_four(&log);
	iolog_free(&log);
}

static void test_version_3_has_a_time(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, "fio version 3 iolog\n"
			       "0 x add\n"
			       "1 x open\n"
			       "2 x write 512 4096\n"
			       "3 x wait 1000 0\n"
			       "4 x read 0 1024\n"
			       "4 x sync 0 0\n"
			       "5 x datasync 4096 0\n"
			       "99999999999 x trim 8192 4096\n"
			       "6 x close\n"));
	assert_the_four(&log);
	iolog_free(&log);
}

/* Lines as some other system ends them, empty ones, tabs, and no end of line at the end. */
static void test_white_space_means_nothing(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, "fio version 2 iolog\r\n\r\nx add\r\n\n   \nx\topen\r\n"
			       "  x  write  512  4096  \r\nx read 0 1024\r\nx sync 0 0\r\n"
			       "x datasync 4096 0\r\nx trim 8192 4096"));
	assert_the_four(&log);
	iolog_free(&log);
}

static void test_names_are_all_the_one_disk(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, "fio version 2 iolog\na add\nb add\na open\nb open\n"
			       "a write 0 512\nb write 0 512\na close\nb read 0 512\na open\n"
			       "a read 512 512\nb close\na close\n"));
	assert_int_equal(log.count, 4);
	assert_io(&log.io[3], IO_READ, 512, 512);
	iolog_free(&log);
}

static void test_no_io_is_fine(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, "fio version 3 iolog\n"));
	assert_int_equal(log.count, 0);
	iolog_free(&log);
}

static void test_the_last_sector_is_within(void **state)
{
	struct iolog log;

	(void)state;
	assert_true(load(&log, "fio version 2 iolog\nx add\nx open\nx read 1048064 512\n"));
	iolog_free(&log);
}

static void test_more_than_fit_at_first(void **state)
{
	struct iolog log;
	size_t room = 4000 * 20 + 100, used, i;
	char *text = malloc(room);

	(void)state;
	assert_non_null(text);
	used = (size_t)snprintf(text, room, "fio version 2 iolog\nx add\nx open\n");
	for (i = 0; i < 4000; i++)
		used += (size_t)snprintf(text + used, room - used, "x read %zu 512\n",
					 i % 2000 * 512);
	assert_true(load(&log, text));
	assert_int_equal(log.count, 4000);
	assert_io(&log.io[3999], IO_READ, 1999 * 512, 512);
	iolog_free(&log);
	free(text);
}

#define HEAD "fio version 2 iolog\nx add\nx open\n"

static void test_the_first_line_is_the_version(void **state)
{
	(void)state;
	assert_refused("", 1, "empty");
	assert_refused("x add\n", 1, "first line");
	assert_refused("fio version 1 iolog\n", 1, "first line");
	assert_refused("fio version 4 iolog\n", 1, "first line");
	assert_refused("fio version 22 iolog\n", 1, "first line");
	assert_refused("\nfio version 2 iolog\n", 1, "first line");
}

static void test_io_has_to_be_on_the_disk(void **state)
{
	(void)state;
	assert_refused(HEAD "x read 0 512\nx read 1048576 512\n", 5, "beyond the disk");
	assert_refused(HEAD "x write 1048064 1024\n", 4, "beyond the disk");
	assert_refused(HEAD "x trim 1048064 1024\n", 4, "beyond the disk");
	assert_refused(HEAD "x read 18446744073709551104 1024\n", 4, "beyond the disk");
	assert_refused(HEAD "x read 512 18446744073709551104\n", 4, "beyond the disk");
	assert_refused(HEAD "x read 0 1048576\n", 4, "above 524288");
}

static void test_io_has_to_be_whole_sectors(void **state)
{
	(void)state;
	assert_refused(HEAD "x read 100 512\n", 4, "offset 100");
	assert_refused(HEAD "x read 512 100\n", 4, "length 100");
	assert_refused(HEAD "x write 512 0\n", 4, "length 0");
	assert_refused(HEAD "x trim 1 512\n", 4, "offset 1");
}

static void test_io_has_to_have_an_open_file(void **state)
{
	(void)state;
	assert_refused("fio version 2 iolog\nx read 0 512\n", 2, "not open");
	assert_refused("fio version 2 iolog\nx add\nx read 0 512\n", 3, "not open");
	assert_refused("fio version 2 iolog\nx open\n", 2, "not added");
	assert_refused("fio version 2 iolog\nx add\nx close\n", 3, "not open");
	assert_refused(HEAD "x close\nx sync 0 0\n", 5, "not open");
	assert_refused(HEAD "y write 0 512\n", 4, "'y'");
}

static void test_lines_have_to_make_sense(void **state)
{
	(void)state;
	assert_refused(HEAD "x frobnicate 0 512\n", 4, "unknown action 'frobnicate'");
	assert_refused(HEAD "x unlink\n", 4, "unknown action");
	assert_refused(HEAD "x\n", 4, "name and an action");
	assert_refused(HEAD "x read\n", 4, "offset and a length");
	assert_refused(HEAD "x read 0\n", 4, "offset and a length");
	assert_refused(HEAD "x read 0 512 7\n", 4, "offset and a length");
	assert_refused(HEAD "x read 0 512 7 8 9 10 11\n", 4, "offset and a length");
	assert_refused(HEAD "x close now\n", 4, "no more than a name");
	assert_refused(HEAD "x read -512 512\n", 4, "'-512'");
	assert_refused(HEAD "x read 0x200 512\n", 4, "'0x200'");
	assert_refused(HEAD "x read 99999999999999999999 512\n", 4, "not a number");
	assert_refused("fio version 3 iolog\nx add\n", 2, "time 'x'");
	assert_refused("fio version 3 iolog\n7\n", 2, "name and an action");
}

static void test_bytes_that_are_no_text(void **state)
{
	static const char text[] = "fio version 2 iolog\nx add\nx o\0pen\n";
	struct iolog log;

	(void)state;
	assert_false(load_bytes(&log, &megabyte, text, sizeof(text) - 1));
	assert_non_null(strstr(why, ":3: "));
}

static void test_a_readonly_disk_takes_no_writes(void **state)
{
	struct iolog_limits readonly = megabyte;
	struct iolog log;

	(void)state;
	readonly.readonly = true;
	assert_refused_by(&readonly, HEAD "x read 0 512\nx write 0 512\n", 5, "read-only");
	assert_true(load_bytes(&log, &readonly, HEAD "x read 0 512\nx trim 0 512\nx sync 0 0\n",
			       sizeof(HEAD "x read 0 512\nx trim 0 512\nx sync 0 0\n") - 1));
	iolog_free(&log);
}

static void test_a_file_that_is_not_there(void **state)
{
	struct iolog log;

	(void)state;
	assert_false(iolog_load(&log, "/nowhere/at/all", &megabyte, why, sizeof(why)));
	assert_string_equal(why, "/nowhere/at/all: No such file or directory");
	assert_false(iolog_load(&log, "/", &megabyte, why, sizeof(why)));
	assert_string_equal(why, "/: Is a directory");
}

static int make_file(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_3_has_a_time),
		cmocka_unit_test(test_white_space_means_nothing),
		cmocka_unit_test(test_names_are_all_the_one_disk),
		cmocka_unit_test(test_no_io_is_fine),
		cmocka_unit_test(test_the_last_sector_is_within),
		cmocka_unit_test(test_more_than_fit_at_first),
		cmocka_unit_test(test_the_first_line_is_the_version),
		cmocka_unit_test(test_io_has_to_be_on_the_disk),
		cmocka_unit_test(test_io_has_to_be_whole_sectors),
		cmocka_unit_test(test_io_has_to_have_an_open_file),
		cmocka_unit_test(test_lines_have_to_make_sense),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_a_readonly_disk_takes_no_writes),
		cmocka_unit_test(test_a_file_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
