/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

void die(const char *what)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

/* What follows the colon in the first line of /proc/cpuinfo that begins with "model name". */
static void read_model(char model[64])
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(model, 64, "CPU");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name%*[ \t]: %63[^\n]", model) == 1)
			break;
	if (file)
		fclose(file);
}

void machine_print(void)
{
	double load[1] = { 0 };
	struct utsname name;
	char model[64];

	read_model(model);
	if (uname(&name) || getloadavg(load, 1) != 1)
		die("the machine can't be told");
	printf("machine: %u x %s, %s %s, load %.1f\n", cpu_count(), model, name.sysname,
	       name.release, load[0]);
}

double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void *zeroed(size_t bytes)
{
	void *mem = NULL;

	if (posix_memalign(&mem, 4096, bytes))
		die("out of memory");
	memset(mem, 0, bytes);
	return mem;
}

/* The CPUs' numbers, the one that comes first last in the kernel's order. */
static int cpu[CPU_SETSIZE];
static uint32_t cpus;

static void find_cpus(void)
{
	cpu_set_t set;

	if (cpus)
		return;
	if (sched_getaffinity(0, sizeof(set), &set))
		die("which CPUs may be used is not known");
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (CPU_ISSET((unsigned)i, &set))
			cpu[cpus++] = i;
}

uint32_t cpu_count(void)
{
	find_cpus();
	return cpus;
}

void pin_to(uint32_t which)
{
	cpu_set_t set;

	find_cpus();
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu[which % cpus], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("no such CPU");
}

void unpin(void)
{
	cpu_set_t set;

	find_cpus();
	CPU_ZERO(&set);
	for (uint32_t i = 0; i < cpus; i++)
		CPU_SET((unsigned)cpu[i], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("no such CPUs");
}

void pin_first(int number)
{
	find_cpus();
	for (uint32_t i = 0; i < cpus; i++) {
		if (cpu[i] != number)
			continue;
		cpu[i] = cpu[0];
		cpu[0] = number;
		return;
	}
	die("no such CPU");
}
