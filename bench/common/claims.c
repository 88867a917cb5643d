/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims.h"

#include <stdio.h>

void claim_print_judged(const char *name, double goal, enum better better, struct summary got,
			bool met)
{
	printf("{\"claim\":\"%s\",\"value\":%.3f,\"goal\":%.3f,\"better\":\"%s\",\"met\":%s,"
	       "\"runs\":%u,\"low\":%.3f,\"high\":%.3f}\n",
	       name, got.median, goal, better == LOWER ? "lower" : "higher", met ? "true" : "false",
	       got.runs, got.low, got.high);
	fflush(stdout);
}

void claim_print(const char *name, double goal, enum better better, struct summary got)
{
	bool met = better == LOWER ? got.median <= goal : got.median >= goal;

	claim_print_judged(name, goal, better, got, met);
}
