/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-seeds: what are the ways of moving requests in numbers worth? Those of the host (plug,
 * merge) on a whole device and a real file, which has no name while it is used, so that nothing is
 * left of it; those of the guest (irq, paths, batch) on a whole driver and a whole device.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"
#include "machine.h"
#include "parts.h"

static const struct {
	const char *name;
	part_run run;
} parts[] = {
	{ "plug", plug_part },   { "merge", merge_part }, { "irq", irq_part },
	{ "paths", paths_part }, { "batch", batch_part }, { "mwf", mwf_part },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]), ROUNDS = 15, CLAIM_ROUNDS = 41, MAX_ROUNDS = 101 };

static const char usage[] =
	"bench-seeds [PART]            the tables, or one of them: plug, merge, irq, paths, batch,\n"
	"                              mwf\n"
	"bench-seeds [PART] --claims   a line for each goal\n"
	"     [--rounds ROUNDS]        over so many (15, for goals 41)\n"
	"     [--dir DIR]              where a real file goes ($TMPDIR, or /tmp)\n"
	"     [--memory DIR]           where one in memory goes (/dev/shm)\n"
	"     [--megabytes SIZE]       of a file (256)\n"
	"     [--only TEXT]            only rows whose name has it (not plug); of mwf, at each load\n"
	"bench-seeds mwf --svg FILE    draws a part of it with gnuplot\n"
	"bench-seeds plug --count REQUESTS\n"
	"     only runs so many, without plug and then with, and says what system calls the backend\n"
	"     has counted: to be checked with strace -f -c -e trace=io_uring_enter\n"
	"bench-seeds -c CASE           for bench/seeds/instructions\n";

static void read_options(int argc, char **argv, struct part_options *o)
{
	static const struct option options[] = { { "claims", no_argument, NULL, 'C' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "dir", required_argument, NULL, 'd' },
						 { "memory", required_argument, NULL, 'm' },
						 { "megabytes", required_argument, NULL, 's' },
						 { "only", required_argument, NULL, 'o' },
						 { "count", required_argument, NULL, 'n' },
						 { "svg", required_argument, NULL, 'v' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "c:", options, NULL)) >= 0) {
		if (option == 'C')
			o->claims = true;
		else if (option == 'c')
			exit((count_case(optarg), 0));
		else if (option == 'r')
			o->rounds = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'd')
			o->dir = optarg;
		else if (option == 'm')
			o->memory = optarg;
		else if (option == 's')
			o->megabytes = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'o')
			o->only = optarg;
		else if (option == 'n')
			o->count = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'v')
			o->svg = optarg;
		else if (option == 'h')
			exit(fputs(usage, stdout) < 0);
		else
			exit(1);
	}
	if (!o->rounds)
		o->rounds = o->claims ? CLAIM_ROUNDS : ROUNDS;
	if (o->rounds > MAX_ROUNDS)
		die("--rounds takes 1 to 101");
	if (o->megabytes < 16 || o->megabytes > 65536)
		die("--megabytes takes 16 to 65536");
}

int main(int argc, char **argv)
{
	struct part_options o = { .dir = getenv("TMPDIR"), .memory = "/dev/shm", .megabytes = 256 };
	uint32_t ran = 0;

	if (!o.dir)
		o.dir = "/tmp";
	read_options(argc, argv, &o);
	if (!o.claims)
		machine_print();
	pin_to(0);
	for (uint32_t i = 0; i < PARTS; i++) {
		if (optind < argc && strcmp(argv[optind], parts[i].name) != 0)
			continue;
		parts[i].run(&o);
		ran++;
	}
	if (!ran)
		die("there is no such part");
	return 0;
}
