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

void claim_print_worst(const char *name, double goal, const struct contender *list, uint32_t n)
{
	const struct contender *worst = list;
	bool met = true;

	for (const struct contender *c = list; c < list + n; c++) {
		bool wide = summary_width(&c->got) > WIDEST && c->got.low < goal;

		if (c->got.median < worst->got.median)
			worst = c;
		if (c->got.high >= goal && !wide)
			continue;
		met = false;
		fprintf(stderr, "%s: %s: %.3f (%.3f-%.3f)%s\n", name, c->name, c->got.median,
			c->got.low, c->got.high, wide ? ": too wide to tell" : "");
	}
	claim_print_judged(name, goal, HIGHER, worst->got, met);
}
