/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy job, its I/Os carried out by hand on a disk in memory, with and without faults. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/loopback/job.h"

enum { DISK = 64 * 512, BS = 4096 };

static char source[] = "/tmp/vqblk-source-XXXXXX", image[] = "/tmp/vqblk-image-XXXXXX";
static unsigned char disk[DISK], content[DISK];
static struct tally tally;

static void set_source(size_t bytes)
{
	FILE *out = fopen(source, "w");
	size_t i;

	for (i = 0; i < DISK; i++)
		content[i] = (unsigned char)(i * 7 + i / 256 + 1);
	assert_non_null(out);
	assert_int_equal(fwrite(content, 1, bytes, out), bytes);
	assert_int_equal(fclose(out), 0);
	memset(disk, 0xee, sizeof(disk));
	memset(&tally, 0, sizeof(tally));
}

static struct job *copy(uint32_t threads)
{
	struct options o = { .job = JOB_COPY,
			     .file = source,
			     .image = image,
			     .bs = BS,
			     .unit = 512,
			     .jobs = threads };

	return job_copy(&o, DISK);
}

/* One phase on every thread: how many I/Os of each kind. */
struct phase {
	uint32_t reads, writes, flushes;
};

static struct phase run_phase(struct job *job, uint32_t threads)
{
	unsigned char data[BS];
	struct phase p = { 0 };
	struct io io;
	uint32_t q;

	for (q = 0; q < threads; q++) {
		while (job->next(job, q, &io)) {
			assert_true(io.offset + io.bytes <= DISK && io.bytes % 512 == 0);
			assert_int_equal(job->begin(job, &io, data), JOB_GO);
			if (io.op == IO_WRITE)
				memcpy(disk + io.offset, data, io.bytes);
			if (io.op == IO_READ)
				memcpy(data, disk + io.offset, io.bytes);
			p.reads += io.op == IO_READ;
			p.writes += io.op == IO_WRITE;
			p.flushes += io.op == IO_FLUSH;
			job->end(job, q, &io, data, IO_DONE, &tally);
		}
	}
	return p;
}

static void assert_phase(struct phase p, uint32_t reads, uint32_t writes, uint32_t flushes)
{
	assert_int_equal(p.reads, reads);
	assert_int_equal(p.writes, writes);
	assert_int_equal(p.flushes, flushes);
}

static void test_writes_then_flush_then_reads(void **state)
{
	uint32_t threads;
	struct job *job;

	(void)state;
	for (threads = 1; threads < 7; threads++) {
		set_source(5 * BS);
		job = copy(threads);
		assert_non_null(job);
		assert_int_equal(job->ios, 11);
		assert_phase(run_phase(job, threads), 0, 5, 0);
		assert_true(job->advance(job));
		assert_phase(run_phase(job, threads), 0, 0, 1);
		assert_true(job->advance(job));
		assert_phase(run_phase(job, threads), 5, 0, 0);
		assert_false(job->advance(job));
		job->close(job);
		assert_memory_equal(disk, content, 5 * BS);
		assert_int_equal(disk[5 * BS], 0xee);
		assert_int_equal(tally.mismatches, 0);
		assert_int_equal(tally.verified_bytes, 5 * BS);
	}
}

static void test_the_last_sector_is_filled_with_zeroes(void **state)
{
	static const unsigned char zeroes[512];
	struct job *job;

	(void)state;
	set_source(BS + 700);
	job = copy(1);
	assert_non_null(job);
	assert_phase(run_phase(job, 1), 0, 2, 0);
	job->close(job);
	assert_memory_equal(disk, content, BS + 700);
	assert_memory_equal(disk + BS + 700, zeroes, 1024 - 700);
	assert_int_equal(disk[BS + 1024], 0xee);
}

static void test_an_empty_file_is_nothing_to_do(void **state)
{
	struct job *job;
	int phases = 0;

	(void)state;
	set_source(0);
	job = copy(2);
	assert_non_null(job);
	do {
		assert_phase(run_phase(job, 2), 0, 0, 0);
		phases++;
	} while (job->advance(job));
	assert_true(phases < 4);
	job->close(job);
}

static void test_a_damaged_byte_is_noticed(void **state)
{
	struct job *job;

	(void)state;
	set_source(4 * BS + 100);
	job = copy(2);
	assert_non_null(job);
	run_phase(job, 2);
	job->advance(job);
	run_phase(job, 2);
	job->advance(job);
	disk[2 * BS + 17] ^= 4;
	disk[4 * BS + 511] ^= 4; /* where zeroes belong */
	assert_phase(run_phase(job, 2), 5, 0, 0);
	assert_int_equal(tally.mismatches, 2);
	job->close(job);
}

static void test_a_file_that_shrinks_is_noticed(void **state)
{
	unsigned char data[BS];
	struct job *job;
	struct io io;

	(void)state;
	set_source(4 * BS);
	job = copy(1);
	assert_non_null(job);
	assert_int_equal(truncate(source, BS + 10), 0);
	assert_true(job->next(job, 0, &io));
	assert_int_equal(job->begin(job, &io, data), JOB_GO);
	assert_true(job->next(job, 0, &io));
	assert_int_equal(job->begin(job, &io, data), JOB_FAILED);
	job->close(job);
}

static void test_what_fits_exactly_and_what_does_not(void **state)
{
	struct job *job;

	(void)state;
	set_source(DISK);
	job = copy(1);
	assert_non_null(job);
	assert_phase(run_phase(job, 1), 0, DISK / BS, 0);
	job->close(job);
	assert_int_equal(truncate(source, DISK + 1), 0);
	assert_null(copy(1));
	assert_int_equal(truncate(source, DISK - 1), 0);
	job = copy(1);
	assert_non_null(job);
	job->close(job);
}

static int make_files(void **state)
{
	int a = mkstemp(source), b = mkstemp(image);

	(void)state;
	return a < 0 || b < 0 ? -1 : close(a) | close(b);
}

static int remove_files(void **state)
{
	(void)state;
	return unlink(source) | unlink(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_then_flush_then_reads),
		cmocka_unit_test(test_the_last_sector_is_filled_with_zeroes),
		cmocka_unit_test(test_an_empty_file_is_nothing_to_do),
		cmocka_unit_test(test_a_damaged_byte_is_noticed),
		cmocka_unit_test(test_a_file_that_shrinks_is_noticed),
		cmocka_unit_test(test_what_fits_exactly_and_what_does_not),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
