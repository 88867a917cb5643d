/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaying a log on several threads: in what order, and on which of them. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/loopback/job.h"

enum { SECTORS = 2048, THREADS = 3, MOST = 400 };

static char file[] = "/tmp/vqblk-replay-XXXXXX";
static struct ledger ledger;

static struct job *replay(const char *lines, uint32_t threads)
{
	struct options o = { .job = JOB_REPLAY, .file = file, .unit = 512, .jobs = threads };
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fprintf(out, "fio version 2 iolog\nx add\nx open\n%s", lines);
	fclose(out);
	return job_replay(&o, SECTORS * 512, &ledger);
}

/* What each thread gets, phase after phase. */
struct step {
	struct io io;
	uint32_t phase, thread;
};

static size_t run(struct job *job, uint32_t threads, struct step *step)
{
	uint32_t phase = 0, q;
	size_t n = 0;

	do {
		for (q = 0; q < threads; q++) {
			while (job->next(job, q, &step[n].io)) {
				step[n].phase = phase;
				step[n++].thread = q;
				assert_true(n < MOST);
			}
		}
		phase++;
	} while (job->advance(job));
	return n;
}

static void test_one_queue_keeps_the_order(void **state)
{
	struct job *job =
		replay("x write 512 512\nx read 4096 1024\nx write 0 512\nx read 0 1024\n", 1);
	struct step step[MOST];

	(void)state;
	assert_non_null(job);
	assert_int_equal(job->ios, 4);
	assert_int_equal(run(job, 1, step), 4);
	assert_int_equal(step[0].io.offset, 512);
	assert_int_equal(step[1].io.bytes, 1024);
	assert_int_equal(step[2].io.op, IO_WRITE);
	assert_int_equal(step[3].io.op, IO_READ);
	job->close(job);
}

static void test_a_flush_is_a_phase_of_its_own(void **state)
{
	struct job *job = replay("x sync 0 0\nx write 0 512\nx write 512 512\nx sync 9 9\n"
				 "x datasync 0 0\nx read 0 512\n",
				 THREADS);
	struct step step[MOST];
	size_t n = run(job, THREADS, step), i;

	(void)state;
	assert_int_equal(n, 6);
	for (i = 0; i < n; i++) {
		switch (step[i].io.op) {
		case IO_FLUSH:
			assert_true(step[i].phase == 0 || step[i].phase == 2 || step[i].phase == 3);
			break;
		case IO_WRITE:
			assert_int_equal(step[i].phase, 1);
			break;
		default:
			assert_int_equal(step[i].phase, 4);
		}
	}
	job->close(job);
}

static void test_apart_is_spread_over_the_threads(void **state)
{
	struct job *job = replay("x read 0 512\nx read 512 512\nx write 1024 512\n"
				 "x write 5120 512\nx read 1536 512\nx read 9728 512\n",
				 THREADS);
	uint32_t per_queue[THREADS] = { 0 };
	struct step step[MOST];
	size_t n = run(job, THREADS, step), i;

	(void)state;
	for (i = 0; i < n; i++)
		per_queue[step[i].thread]++;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(per_queue[i], 2);
	job->close(job);
}

static bool overlap(const struct io *a, const struct io *b)
{
	return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Random logs: what overlaps in a phase is on one thread, in the order of the log. */
static void test_overlaps_stay_in_order(void **state)
{
	char lines[MOST * 40];
	struct step step[MOST];
	struct job *job;
	size_t used, n, i, k;
	uint32_t round;

	(void)state;
	srand(11);
	for (round = 0; round < 20; round++) {
		used = 0;
		lines[0] = '\0';
		/* The length tells the place in the log, so that the order can be seen. */
		for (i = 1; i <= 100; i++)
			used += (size_t)snprintf(lines + used, sizeof(lines) - used,
						 "x %s %d %d\n%s", rand() % 2 ? "read" : "write",
						 rand() % (SECTORS - 100) * 512, (int)i * 512,
						 i % 33 ? "" : "x sync 0 0\n");
		job = replay(lines, THREADS);
		assert_non_null(job);
		n = run(job, THREADS, step);
		assert_int_equal(n, 103);
		for (i = 0; i < n; i++) {
			for (k = i + 1; k < n; k++) {
				if (step[i].phase != step[k].phase ||
				    !overlap(&step[i].io, &step[k].io))
					continue;
				assert_int_equal(step[i].thread, step[k].thread);
				assert_true(step[i].io.bytes < step[k].io.bytes);
			}
		}
		job->close(job);
	}
}

static void test_overlaps_wait_for_each_other(void **state)
{
	struct job *job = replay("x write 0 1024\nx read 512 1024\n", 1);
	uint64_t data[4 * SECTOR_WORDS];
	struct io write, read;
	struct tally t = { 0 };

	(void)state;
	assert_true(job->next(job, 0, &write) && job->next(job, 0, &read));
	assert_int_equal(job->begin(job, &write, data), JOB_GO);
	assert_int_equal(job->begin(job, &read, data), JOB_WAIT);
	job->end(job, 0, &write, data, IO_DONE, &t);
	assert_int_equal(job->begin(job, &read, data), JOB_GO);
	job->end(job, 0, &read, data, IO_FAILED, &t);
	job->close(job);
}

static void test_trims_are_counted(void **state)
{
	struct job *job = replay("x trim 0 512\nx trim 512 512\nx read 0 512\n", 1);
	struct step step[MOST];

	(void)state;
	assert_int_equal(job->trims_skipped, 2);
	assert_int_equal(run(job, 1, step), 1);
	job->close(job);
}

static void test_an_empty_log_is_done_at_once(void **state)
{
	struct job *job = replay("x wait 100 0\nx close\n", THREADS);
	struct step step[MOST];

	(void)state;
	assert_non_null(job);
	assert_int_equal(run(job, THREADS, step), 0);
	job->close(job);
}

static void test_a_bad_log_is_no_job(void **state)
{
	(void)state;
	assert_null(replay("x read 0 511\n", 1));
}

static int make_file(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	return fd < 0 || close(fd) || !ledger_open(&ledger, 1, SECTORS);
}

static int remove_file(void **state)
{
	(void)state;
	ledger_close(&ledger);
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_queue_keeps_the_order),
		cmocka_unit_test(test_a_flush_is_a_phase_of_its_own),
		cmocka_unit_test(test_apart_is_spread_over_the_threads),
		cmocka_unit_test(test_overlaps_stay_in_order),
		cmocka_unit_test(test_overlaps_wait_for_each_other),
		cmocka_unit_test(test_trims_are_counted),
		cmocka_unit_test(test_an_empty_log_is_done_at_once),
		cmocka_unit_test(test_a_bad_log_is_no_job),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
