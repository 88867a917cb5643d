/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "counting.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"

const char *counting_command(const char *dir, const char *cases)
{
	static char command[1024];

	fflush(stdout);
	snprintf(command, sizeof(command), "'%s/instructions' /proc/%ld/exe %s", dir,
		 (long)getpid(), cases);
	return command;
}

void counting_line(const char *dir, const char *cases, char line[256])
{
	FILE *table = popen(counting_command(dir, cases), "r");
	char next[256];

	line[0] = 0;
	while (table && fgets(next, sizeof(next), table))
		memcpy(line, next, sizeof(next));
	if (!table || pclose(table) || !line[0])
		die("instructions can't be counted");
}
