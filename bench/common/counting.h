/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counting.h: instructions, as a script `instructions` counts them (instructions.sh), which runs
 * this very program for each of the cases that it is given, with -c.
 */
#ifndef BENCH_COUNTING_H
#define BENCH_COUNTING_H

/* The command for the shell; good until the next call. `dir` is where the script is. */
const char *counting_command(const char *dir, const char *cases);

/* Runs it. The last line of the table, without the others; ends the program if there is none. */
void counting_line(const char *dir, const char *cases, char line[256]);

#endif
