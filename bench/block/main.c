/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-block: what do the block primitives cost, without any ring? And a whole device? */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "parts.h"

static const struct {
	const char *name;
	part_run run;
} parts[] = {
	{ "coalesce", coalesce_part },
	{ "device", device_part },
	{ "map", map_part },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]), ROUNDS = 15, MAX_ROUNDS = 101 };

static const char usage[] =
	"bench-block [PART]            the tables, or one of them: coalesce, device, map\n"
	"bench-block [PART] --claims   a line for each goal\n"
	"     [--rounds ROUNDS]        over so many (15)\n"
	"bench-block -c CASE           for bench/block/instructions\n";

int main(int argc, char **argv)
{
	static const struct option options[] = { { "claims", no_argument, NULL, 'C' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	uint32_t rounds = ROUNDS, ran = 0;
	bool claims = false;
	int option;

	while ((option = getopt_long(argc, argv, "c:", options, NULL)) >= 0) {
		if (option == 'C')
			claims = true;
		else if (option == 'c')
			return device_count(optarg), 0;
		else if (option == 'r')
			rounds = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'h')
			return fputs(usage, stdout), 0;
		else
			return 1;
	}
	if (!rounds || rounds > MAX_ROUNDS)
		die("--rounds takes 1 to 101");
	if (!claims)
		machine_print();
	pin_to(0);
	for (uint32_t i = 0; i < PARTS; i++) {
		if (optind < argc && strcmp(argv[optind], parts[i].name) != 0)
			continue;
		parts[i].run(rounds, claims);
		ran++;
	}
	if (!ran)
		die("there is no such part");
	return 0;
}
