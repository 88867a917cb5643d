/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: what each means, what is taken when it is not given, and what is refused. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "examples/loopback/options.h"

static struct options o;

/* Words after the program's name, up to a NULL. */
static enum options_answer parse(const char *const words[])
{
	static char program[] = "vqblk-loopback";
	char *argv[40] = { program };
	int argc = 1;

	/* getopt_long moves the words about, but doesn't change them. */
	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	return options_parse(&o, argc, argv);
}

#define PARSE(...) parse((const char *const[]){ __VA_ARGS__, NULL })
#define assert_go(...) assert_int_equal(PARSE(__VA_ARGS__), OPTIONS_GO)
#define assert_refused(...) assert_int_equal(PARSE(__VA_ARGS__), OPTIONS_REFUSED)

static void test_sizes(void **state)
{
	static const char *const wrong[] = { "",
					     "k",
					     "-1",
					     "+1",
					     " 1",
					     "1.5k",
					     "1kk",
					     "1t",
					     "1x",
					     "0x",
					     "4k ",
					     "18446744073709551616",
					     "17179869184g" };
	uint64_t bytes;
	size_t i;

	(void)state;
	assert_true(parse_size("0", &bytes) && bytes == 0);
	assert_true(parse_size("512", &bytes) && bytes == 512);
	assert_true(parse_size("4k", &bytes) && bytes == 4096);
	assert_true(parse_size("3M", &bytes) && bytes == 3 << 20);
	assert_true(parse_size("2g", &bytes) && bytes == UINT64_C(2) << 30);
	assert_true(parse_size("17179869183g", &bytes));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(parse_size(wrong[i], &bytes));
}

static void test_seconds(void **state)
{
	static const char *const wrong[] = {
		"", "0", "-1", "s", "1m", "nan", "inf", "1e300", "1 s"
	};
	uint64_t ns;
	size_t i;

	(void)state;
	assert_true(parse_seconds("2", &ns) && ns == 2000000000);
	assert_true(parse_seconds("0.25", &ns) && ns == 250000000);
	assert_true(parse_seconds(".5s", &ns) && ns == 500000000);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(parse_seconds(wrong[i], &ns));
}

static void test_defaults(void **state)
{
	(void)state;
	assert_go("--rw", "read");
	assert_int_equal(o.job, JOB_PATTERN);
	assert_int_equal(o.pattern, PATTERN_READ);
	assert_int_equal(o.bs, 4096);
	assert_int_equal(o.iodepth, 1);
	assert_int_equal(o.queues, 1);
	assert_int_equal(o.ring, 256);
	assert_int_equal(o.indirect, INDIRECT_ALWAYS);
	assert_true(o.event_idx && o.plug);
	assert_false(o.direct || o.host_merge);
	assert_int_equal(o.inject + o.cancel + o.reset, 0);
	assert_int_equal(o.fua + o.zeroes + o.discard, 0);
	assert_int_equal(o.max_sectors + o.max_segments, 0);
	assert_true(options_request_bytes(&o) == UINT64_MAX);
	assert_int_equal(o.path, PATH_MERGE_WHEN_FULL);
	assert_true(o.guest_merge);
	assert_int_equal(o.jobs, 1);
	assert_false(o.poll || o.readonly || o.verify || o.json);
	assert_int_equal(o.disk, DISK_MEMORY);
	assert_int_equal(o.requests + o.runtime_ns + o.size, 0);
}

static void test_each_option(void **state)
{
	(void)state;
	assert_go("--rw=randrw", "--bs=64k", "--iodepth=32", "--size", "1g", "--requests", "1000",
		  "--runtime", "3", "--seed", "9", "--verify", "--queues", "4", "--ring", "1024",
		  "--indirect", "never", "--event-idx", "off", "--poll", "--json");
	assert_int_equal(o.pattern, PATTERN_RANDRW);
	assert_int_equal(o.bs, 65536);
	assert_int_equal(o.iodepth, 32);
	assert_int_equal(o.size, 1 << 30);
	assert_int_equal(o.requests, 1000);
	assert_int_equal(o.runtime_ns, 3000000000);
	assert_int_equal(o.seed, 9);
	assert_int_equal(o.queues, 4);
	assert_int_equal(o.ring, 1024);
	assert_true(o.verify && o.poll && o.json);
	assert_int_equal(o.indirect, INDIRECT_NEVER);
	assert_false(o.event_idx);
	assert_go("--copy", "file", "--image", "disk", "--bs", "1m");
	assert_int_equal(o.job, JOB_COPY);
	assert_int_equal(o.disk, DISK_FILE);
	assert_string_equal(o.file, "file");
	assert_string_equal(o.image, "disk");
	assert_go("--read_iolog", "log", "--verify", "--size", "1m");
	assert_int_equal(o.job, JOB_REPLAY);
	assert_go("--rw", "read", "--backend", "null");
	assert_int_equal(o.disk, DISK_NULL);
	assert_go("--rw", "read", "--image", "disk", "--backend", "uring", "--direct", "--plug",
		  "off", "--host-merge", "on", "--inject", "0.05");
	assert_int_equal(o.disk, DISK_URING);
	assert_true(o.direct && o.host_merge && !o.plug);
	assert_int_equal(o.inject, 50000);
	assert_go("--rw", "read", "--image", "disk", "--backend", "threads", "--plug", "on",
		  "--host-merge", "off", "--inject", "1");
	assert_int_equal(o.disk, DISK_THREADS);
	assert_true(o.plug && !o.host_merge);
	assert_int_equal(o.inject, 1000000);
	assert_go("--rw", "read", "--plug", "off", "--inject", "0");
	assert_true(!o.plug);
	assert_int_equal(o.inject, 0);
	assert_go("--rw", "randread", "--image", "disk", "--backend", "file", "--readonly");
	assert_true(o.readonly);
}

static void test_the_guests_options(void **state)
{
	(void)state;
	assert_go("--rw", "read", "--path", "bio");
	assert_int_equal(o.path, PATH_BIO);
	assert_false(o.guest_merge);
	assert_go("--rw", "read", "--guest-merge", "off", "--path", "bio");
	assert_go("--rw", "read", "--guest-merge", "off", "--path", "request");
	assert_int_equal(o.path, PATH_REQUEST);
	assert_false(o.guest_merge);
	assert_go("--rw", "read", "--guest-merge", "on", "--path", "merge-when-full", "--cancel",
		  "0.25", "--reset", "0.001");
	assert_true(o.guest_merge);
	assert_int_equal(o.cancel, 250000);
	assert_int_equal(o.reset, 1000);
	assert_refused("--rw", "read", "--guest-merge", "on", "--path", "bio");
	assert_refused("--rw", "read", "--path", "bio", "--guest-merge", "on");
	assert_refused("--rw", "read", "--path", "elevator");
	assert_refused("--rw", "read", "--guest-merge", "1");
	assert_refused("--rw", "read", "--cancel", "2");
	assert_refused("--rw", "read", "--reset", "-1");
}

static void test_kinds_of_writes(void **state)
{
	(void)state;
	assert_go("--rw", "randrw", "--fua", "0.5", "--zeroes", "0.25", "--discard", "0.75");
	assert_int_equal(o.fua, 500000);
	assert_int_equal(o.zeroes, 250000);
	assert_int_equal(o.discard, 750000);
	assert_go("--rw", "read", "--fua", "0", "--zeroes", "0", "--discard", "0");
	assert_go("--copy", "file", "--image", "disk", "--fua", "1");
	assert_go("--read_iolog", "log", "--fua", "1");
	assert_refused("--rw", "read", "--fua", "0.1");
	assert_refused("--rw", "randread", "--zeroes", "0.1");
	assert_refused("--rw", "randread", "--discard", "0.1");
	assert_refused("--read_iolog", "log", "--readonly", "--fua", "1");
	assert_refused("--read_iolog", "log", "--zeroes", "0.1");
	assert_refused("--copy", "file", "--image", "disk", "--discard", "0.1");
	assert_refused("--rw", "write", "--zeroes", "0.6", "--discard", "0.5");
	assert_refused("--rw", "write", "--fua", "1.1");
	assert_refused("--rw", "write", "--zeroes", "x");
	assert_refused("--rw", "write", "--discard", "-1");
}

static void test_limits_of_requests(void **state)
{
	(void)state;
	assert_go("--rw", "read", "--max-sectors", "64");
	assert_int_equal(o.max_sectors, 64);
	assert_true(options_request_bytes(&o) == 32768);
	assert_go("--rw", "read", "--max-sectors", "64", "--max-segments", "7");
	assert_int_equal(o.max_segments, 7);
	assert_true(options_request_bytes(&o) == 7 * 4096);
	assert_go("--rw", "read", "--max-sectors", "8388607", "--max-segments", "254");
	assert_true(options_request_bytes(&o) == 254 * 4096);
	assert_refused("--rw", "read", "--max-segments", "255");
	assert_go("--rw", "read", "--max-segments", "255", "--ring", "512");
	assert_refused("--rw", "read", "--max-segments", "7", "--ring", "8");
	assert_refused("--rw", "read", "--max-segments", "0");
	assert_refused("--rw", "read", "--max-segments", "x");
	assert_refused("--rw", "read", "--max-sectors", "0");
	assert_refused("--rw", "read", "--max-sectors", "8388608");
	assert_refused("--rw", "read", "--max-sectors", "4k");
}

static void test_threads_are_spread_over_queues(void **state)
{
	uint32_t queue, sum;

	(void)state;
	assert_go("--rw", "read", "--queues", "3");
	assert_int_equal(o.jobs, 3);
	assert_go("--rw", "read", "--queues", "3", "--jobs", "8");
	for (queue = sum = 0; queue < 3; queue++)
		sum += options_jobs_of(&o, queue);
	assert_int_equal(sum, 8);
	assert_int_equal(options_jobs_of(&o, 0), 3);
	assert_int_equal(options_jobs_of(&o, 2), 2);
	assert_refused("--rw", "read", "--queues", "3", "--jobs", "2");
	assert_refused("--rw", "read", "--jobs", "0");
	assert_refused("--rw", "read", "--jobs", "1025");
}

static void test_a_seed_of_its_own_for_each_run(void **state)
{
	uint64_t first;

	(void)state;
	assert_go("--rw", "read");
	first = o.seed;
	usleep(10);
	assert_go("--rw", "read");
	assert_true(o.seed != first);
}

static void test_values_that_are_none(void **state)
{
	(void)state;
	assert_refused("--rw", "sideways");
	assert_refused("--rw", "read", "--bs", "100");
	assert_refused("--rw", "read", "--bs", "0");
	assert_refused("--rw", "read", "--bs", "2g");
	assert_refused("--rw", "read", "--size", "1000");
	assert_refused("--rw", "read", "--iodepth", "0");
	assert_refused("--rw", "read", "--iodepth", "x");
	assert_refused("--rw", "read", "--queues", "0");
	assert_refused("--rw", "read", "--queues", "257");
	assert_refused("--rw", "read", "--requests", "0");
	assert_refused("--rw", "read", "--requests", "-5");
	assert_refused("--rw", "read", "--runtime", "0");
	assert_refused("--rw", "read", "--seed", "abc");
	assert_refused("--rw", "read", "--seed", "9223372036854775808");
	assert_refused("--rw", "read", "--ring", "3");
	assert_refused("--rw", "read", "--ring", "65536");
	assert_refused("--rw", "read", "--indirect", "sometimes");
	assert_refused("--rw", "read", "--event-idx", "maybe");
	assert_refused("--rw", "read", "--backend", "cloud");
	assert_refused("--rw", "read", "--inject", "0.0000001");
	assert_refused("--rw", "read", "--inject", "1.01");
	assert_refused("--rw", "read", "--inject", "-1");
	assert_refused("--rw", "read", "--inject", "x");
	assert_refused("--rw", "read", "--inject", "0.1x");
	assert_refused("--rw", "read", "--host-merge", "maybe");
	assert_refused("--rw", "read", "--plug", "1");
	assert_refused("--rw", "read", "--frobnicate");
	assert_refused("--rw");
	assert_refused("--rw", "read", "more");
}

static void test_what_does_not_go_together(void **state)
{
	(void)state;
	assert_refused("--json");
	assert_refused("--rw", "read", "--copy", "file", "--image", "disk");
	assert_refused("--rw", "read", "--rw", "write");
	assert_refused("--copy", "file");
	assert_refused("--copy", "file", "--image", "disk", "--backend", "memory");
	assert_refused("--copy", "file", "--image", "disk", "--readonly");
	assert_refused("--copy", "file", "--image", "disk", "--requests", "5");
	assert_refused("--copy", "file", "--image", "disk", "--runtime", "5");
	assert_refused("--copy", "file", "--image", "disk", "--size", "1m");
	assert_refused("--read_iolog", "log", "--bs", "4k");
	assert_refused("--read_iolog", "log", "--requests", "7");
	assert_refused("--rw", "read", "--backend", "file");
	assert_refused("--rw", "read", "--backend", "uring");
	assert_refused("--rw", "read", "--backend", "threads");
	assert_refused("--rw", "read", "--image", "disk", "--direct");
	assert_refused("--rw", "read", "--plug", "on", "--backend", "null", "--image", "disk");
	assert_refused("--rw", "read", "--backend", "null", "--image", "disk");
	assert_refused("--rw", "read", "--backend", "null", "--verify");
	assert_refused("--read_iolog", "log", "--backend", "null", "--verify");
	assert_refused("--rw", "write", "--readonly");
	assert_refused("--rw", "randwrite", "--readonly");
	assert_refused("--rw", "randrw", "--readonly");
}

static void test_a_ring_has_to_hold_a_request(void **state)
{
	(void)state;
	assert_refused("--rw", "read", "--ring", "1");
	assert_refused("--rw", "read", "--ring", "2", "--indirect", "never");
	assert_go("--rw", "read", "--ring", "4", "--indirect", "never");
	assert_go("--rw", "read", "--ring", "32768");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_each_option),
		cmocka_unit_test(test_the_guests_options),
		cmocka_unit_test(test_kinds_of_writes),
		cmocka_unit_test(test_limits_of_requests),
		cmocka_unit_test(test_threads_are_spread_over_queues),
		cmocka_unit_test(test_a_seed_of_its_own_for_each_run),
		cmocka_unit_test(test_values_that_are_none),
		cmocka_unit_test(test_what_does_not_go_together),
		cmocka_unit_test(test_a_ring_has_to_hold_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
