/* SPDX-License-Identifier: BSD-3-Clause */
/* The I/Os of --rw and of reading back: which blocks, how often, on which thread. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/loopback/job.h"
#include "examples/loopback/random.h"

enum { BLOCKS = 1000, THREADS = 8 };

static struct options options_for(enum pattern pattern, uint32_t threads)
{
	return (struct options){ .job = JOB_PATTERN,
				 .rw = "test",
				 .pattern = pattern,
				 .bs = 4096,
				 .jobs = threads,
				 .iodepth = 1,
				 .seed = 5 };
}

/* How often each block came, and that it was on one thread only. */
struct census {
	uint32_t times[BLOCKS], writes;
	int thread[BLOCKS];
	uint64_t ios, bytes;
};

static struct census take_census(const struct options *o, uint64_t bytes)
{
	struct job *job = job_pattern(o, bytes, NULL);
	struct census c = { .ios = 0 };
	struct io io;
	uint32_t q;

	assert_non_null(job);
	memset(c.thread, -1, sizeof(c.thread));
	for (q = 0; q < o->jobs; q++) {
		while (job->next(job, q, &io)) {
			uint64_t block = io.offset / o->bs;

			assert_int_equal(io.offset % o->bs, 0);
			assert_true(io.bytes <= job->largest && io.bytes % 512 == 0 && io.bytes);
			assert_true(io.offset + io.bytes <= bytes);
			assert_true(c.thread[block] == -1 || c.thread[block] == (int)q);
			c.thread[block] = (int)q;
			c.times[block]++;
			c.writes += io.op == IO_WRITE;
			c.ios++;
			c.bytes += io.bytes;
		}
	}
	assert_false(job->advance(job));
	job->close(job);
	return c;
}

static void test_one_pass_is_each_block_once(void **state)
{
	static const enum pattern patterns[] = { PATTERN_READ, PATTERN_WRITE, PATTERN_RANDREAD,
						 PATTERN_RANDWRITE, PATTERN_RANDRW };
	const uint64_t bytes = (BLOCKS - 1) * 4096 + 512; /* with a short block at the end */
	uint32_t threads, i, block;

	(void)state;
	for (i = 0; i < 5; i++) {
		for (threads = 1; threads <= THREADS; threads++) {
			struct options o = options_for(patterns[i], threads);
			struct census c = take_census(&o, bytes);

			for (block = 0; block < BLOCKS; block++)
				assert_int_equal(c.times[block], 1);
			assert_int_equal(c.bytes, bytes);
			if (patterns[i] == PATTERN_RANDRW)
				assert_in_range(c.writes, BLOCKS * 4 / 10, BLOCKS * 6 / 10);
			else
				assert_int_equal(c.writes,
						 pattern_writes(patterns[i]) ? BLOCKS : 0);
		}
	}
}

static void test_requests_are_the_total(void **state)
{
	static const uint64_t totals[] = { 1, 7, 999, 1000, 1001, 12345 };
	uint32_t threads, i, block;

	(void)state;
	for (i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		for (threads = 1; threads <= THREADS; threads++) {
			struct options o = options_for(PATTERN_RANDREAD, threads);
			uint64_t even = totals[i] / BLOCKS;
			struct census c;

			o.requests = totals[i];
			c = take_census(&o, BLOCKS * 4096);
			assert_int_equal(c.ios, totals[i]);
			for (block = 0; block < BLOCKS; block++)
				assert_in_range(c.times[block], even, even + 1);
		}
	}
}

static void test_more_threads_than_blocks(void **state)
{
	struct options o = options_for(PATTERN_WRITE, THREADS);
	struct census c;

	(void)state;
	o.requests = 100;
	c = take_census(&o, 3 * 4096);
	assert_int_equal(c.ios, 100);
	assert_int_equal(c.times[0] + c.times[1] + c.times[2], 100);
	assert_int_equal(c.thread[0], 0);
	assert_int_equal(c.thread[2], 2);
	c = take_census(&o, 4096);
	assert_int_equal(c.times[0], 100);
}

static void test_sequential_is_in_order(void **state)
{
	struct options o = options_for(PATTERN_READ, 1);
	struct job *job;
	struct io io;
	uint64_t i;

	(void)state;
	o.requests = 25;
	job = job_pattern(&o, 10 * 4096, NULL);
	assert_non_null(job);
	for (i = 0; i < 25; i++) {
		assert_true(job->next(job, 0, &io));
		assert_int_equal(io.offset, i % 10 * 4096);
	}
	assert_false(job->next(job, 0, &io));
	job->close(job);
}

/* How many I/Os there are of each kind. */
static void count_ops(const struct options *o, uint32_t count[IO_DISCARD + 1])
{
	struct job *job = job_pattern(o, BLOCKS * 4096, NULL);
	struct io io;
	uint32_t q;

	assert_non_null(job);
	memset(count, 0, (IO_DISCARD + 1) * sizeof(*count));
	for (q = 0; q < o->jobs; q++)
		while (job->next(job, q, &io))
			count[io.op]++;
	job->close(job);
}

static void test_zeroes_and_discards_are_shares_of_writes(void **state)
{
	struct options o = options_for(PATTERN_RANDWRITE, 3);
	uint32_t n[IO_DISCARD + 1], again[IO_DISCARD + 1];

	(void)state;
	o.zeroes = 200000;
	o.discard = 500000;
	count_ops(&o, n);
	assert_in_range(n[IO_ZEROES], BLOCKS * 15 / 100, BLOCKS * 25 / 100);
	assert_in_range(n[IO_DISCARD], BLOCKS * 45 / 100, BLOCKS * 55 / 100);
	assert_int_equal(n[IO_ZEROES] + n[IO_DISCARD] + n[IO_WRITE], BLOCKS);
	count_ops(&o, again);
	assert_memory_equal(n, again, sizeof(n));
	o.pattern = PATTERN_RANDRW;
	count_ops(&o, n);
	assert_in_range(n[IO_READ], BLOCKS * 4 / 10, BLOCKS * 6 / 10);
	assert_in_range(n[IO_DISCARD], BLOCKS * 20 / 100, BLOCKS * 30 / 100);
	o.zeroes = 0;
	o.discard = 1000000;
	count_ops(&o, n);
	assert_int_equal(n[IO_READ] + n[IO_DISCARD], BLOCKS);
	o.pattern = PATTERN_READ;
	count_ops(&o, n);
	assert_int_equal(n[IO_READ], BLOCKS);
}

static void test_time_has_no_end(void **state)
{
	struct options o = options_for(PATTERN_RANDWRITE, 1);
	struct job *job;
	struct io io;
	uint32_t i;

	(void)state;
	o.runtime_ns = 1;
	job = job_pattern(&o, 10 * 4096, NULL);
	assert_non_null(job);
	for (i = 0; i < 100000; i++)
		assert_true(job->next(job, 0, &io));
	job->close(job);
}

/* The same seed is the same run, and another one is another. */
static void test_seeds(void **state)
{
	struct options o = options_for(PATTERN_RANDRW, 2), other = o;
	struct job *a, *b, *c;
	struct io x = { 0 }, y = { 0 }, z = { 0 };
	uint32_t same = 0, i;

	(void)state;
	other.seed = 6;
	a = job_pattern(&o, BLOCKS * 4096, NULL);
	b = job_pattern(&o, BLOCKS * 4096, NULL);
	c = job_pattern(&other, BLOCKS * 4096, NULL);
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	for (i = 0; i < 500; i++) {
		assert_true(a->next(a, 1, &x));
		assert_true(b->next(b, 1, &y));
		assert_true(c->next(c, 1, &z));
		assert_true(x.offset == y.offset && x.op == y.op);
		same += x.offset == z.offset;
	}
	assert_true(same < 20);
	a->close(a);
	b->close(b);
	c->close(c);
}

static void test_a_shuffle_takes_each_place_once(void **state)
{
	uint64_t n, i, place;

	(void)state;
	for (n = 1; n < 300; n++) {
		bool taken[300] = { false };

		for (i = 0; i < n; i++) {
			place = random_place(i, n, n * 7919);
			assert_true(place < n && !taken[place]);
			taken[place] = true;
		}
	}
	for (i = 0; i < 1000; i++)
		assert_true(random_place(i, UINT64_C(1) << 54, 3) < UINT64_C(1) << 54);
}

static void test_a_block_larger_than_the_disk(void **state)
{
	struct options o = options_for(PATTERN_READ, 1);

	(void)state;
	assert_null(job_pattern(&o, 2048, NULL));
}

/* Sectors 40 and 99 of 100, in I/Os of 1 to 256 sectors. */
static void test_readback_reads_what_was_written(void **state)
{
	static const uint64_t written[] = { 40, 99 };
	struct ledger ledger;
	struct job *job;
	struct io io;
	struct tally t = { 0 };
	uint64_t data[SECTOR_WORDS], at, end;
	uint32_t step, q, i, found[2];

	(void)state;
	assert_true(ledger_open(&ledger, 1, 100));
	for (i = 0; i < 2; i++) {
		io = (struct io){ .op = IO_WRITE, .offset = written[i] * 512, .bytes = 512 };
		assert_true(ledger_begin(&ledger, &io, data));
		ledger_end(&ledger, &io, data, IO_DONE, &t);
	}
	for (step = 1; step <= 256; step++) {
		found[0] = found[1] = 0;
		job = job_readback(&ledger, 3, step * 512);
		assert_non_null(job);
		for (q = 0; q < 3; q++) {
			while (job->next(job, q, &io)) {
				assert_int_equal(io.op, IO_READ);
				at = io.offset / 512;
				end = at + io.bytes / 512;
				assert_true(end <= 100 && at % step == 0);
				assert_true(ledger_wrote(&ledger, at, end - at));
				for (i = 0; i < 2; i++)
					found[i] += at <= written[i] && end > written[i];
			}
		}
		assert_int_equal(found[0], 1);
		assert_int_equal(found[1], 1);
		assert_false(job->advance(job));
		job->close(job);
	}
	ledger_close(&ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_pass_is_each_block_once),
		cmocka_unit_test(test_requests_are_the_total),
		cmocka_unit_test(test_more_threads_than_blocks),
		cmocka_unit_test(test_sequential_is_in_order),
		cmocka_unit_test(test_zeroes_and_discards_are_shares_of_writes),
		cmocka_unit_test(test_time_has_no_end),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_a_shuffle_takes_each_place_once),
		cmocka_unit_test(test_a_block_larger_than_the_disk),
		cmocka_unit_test(test_readback_reads_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
