/* SPDX-License-Identifier: BSD-3-Clause */
#include "count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "machine.h"

static const char *const path_names[] = {
	[VQB_PATH_MERGE_WHEN_FULL] = "merge-when-full",
	[VQB_PATH_BIO] = "bio",
	[VQB_PATH_REQUEST] = "request",
};
static const char *const order_names[] = { "in-order", "random" };
static const char *const op_names[] = { "read", "write" };
static const char *const submit_names[] = { "list", "one-by-one" };
static const char *const await_names[] = { "interrupt", "poll" };

double count_instructions(const struct guest_plan *p)
{
	char spec[128], line[256];
	double all;

	snprintf(spec, sizeof(spec), "%s,%s,%s,%s,%u,%s", path_names[p->path],
		 order_names[p->random], op_names[p->write], submit_names[p->one_by_one], p->depth,
		 await_names[p->polled]);
	counting_line(BENCH_SEEDS, spec, line);
	if (sscanf(line, "%*s %*s %*s %*s %*u %*s %lf", &all) != 1)
		die("instructions can't be counted");
	return all;
}

void count_table(void)
{
	printf("\ninstructions of the guest's side per bio, and in which calls of the driver\n");
	if (system(counting_command(BENCH_SEEDS, "")))
		fprintf(stderr, "bench-seeds: instructions can't be counted\n");
}

static uint32_t find(const char *const *names, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	die("-c: no such case");
}

void count_case(const char *spec)
{
	char path[32], order[32], op[32], submit[32], await[32];
	struct guest_plan plan = { .jobs = 1, .budget = GUEST_RING };
	static struct guest guest;
	unsigned depth;
	unsigned long bios;

	if (sscanf(spec, "%31[^,],%31[^,],%31[^,],%31[^,],%u,%31[^,],%lu", path, order, op, submit,
		   &depth, await, &bios) != 7 ||
	    !depth || depth > 65536)
		die("-c takes PATH,ORDER,OP,SUBMIT,DEPTH,AWAIT,COUNT");
	plan.path = find(path_names, 3, path);
	plan.random = find(order_names, 2, order);
	plan.write = find(op_names, 2, op);
	plan.one_by_one = find(submit_names, 2, submit);
	plan.polled = find(await_names, 2, await);
	plan.depth = depth;
	guest_open(&guest, &plan);
	printf("%llu\n", (unsigned long long)guest_run(&guest, bios));
	guest_close(&guest);
}
