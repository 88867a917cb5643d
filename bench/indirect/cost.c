/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cost.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const names[FEATURES] = {
	[DIRECT] = "direct_3",
	[DIRECT + 1] = "direct_6",
	[DIRECT + 2] = "direct_18",
	[DIRECT + 3] = "direct_66",
	[INDIRECT] = "indirect_3",
	[INDIRECT + 1] = "indirect_6",
	[INDIRECT + 2] = "indirect_18",
	[INDIRECT + 3] = "indirect_66",
	[SCATTERED_DESCRIPTORS] = "scattered_descriptor",
	[BREAKS] = "break",
	[REFUSED] = "refused",
	[REAPS] = "reap",
	[TURNS] = "turn",
	[TAKES] = "take",
	[DEVICE_PUBLISHES] = "device_publish",
	[THRESHOLD_ASKED] = "threshold_asked",
	[DECAY_ASKED] = "decay_asked",
};

/* Normal equations, one row per price and the right-hand side at its end. */
#define CALL 40.0
#define PULL 1e-9

struct system {
	double row[FEATURES][FEATURES + 1];
};

/* All figures are per request. The weight makes the error a relative one. */
static void add_run(struct system *sys, double instructions, const double *feature)
{
	double weight = 1 / (instructions * instructions);

	for (int i = 0; i < FEATURES; i++) {
		for (int j = 0; j < FEATURES; j++)
			sys->row[i][j] += feature[i] * feature[j] * weight;
		sys->row[i][FEATURES] += feature[i] * instructions * weight;
	}
}

/*
 * Calls that always come together (a turn, and the reap that finds nothing more) can't be told
 * apart by what they cost together. A slight pull to what such a call may cost settles it.
 */
static void lean(struct system *sys)
{
	for (int i = REFUSED; i <= DEVICE_PUBLISHES; i++) {
		sys->row[i][i] += PULL;
		sys->row[i][FEATURES] += PULL * CALL;
	}
	for (int i = 0; i < FEATURES; i++)
		sys->row[i][i] += PULL * 1e-3;
}

/* Gauss and Jordan, with the largest pivot. */
static void solve(struct system *sys, double *price)
{
	for (int c = 0; c < FEATURES; c++) {
		int best = c;

		for (int r = c; r < FEATURES; r++)
			if (fabs(sys->row[r][c]) > fabs(sys->row[best][c]))
				best = r;
		for (int k = 0; k <= FEATURES; k++) {
			double keep = sys->row[c][k];

			sys->row[c][k] = sys->row[best][k];
			sys->row[best][k] = keep;
		}
		for (int r = 0; r < FEATURES; r++) {
			double factor = sys->row[r][c] / sys->row[c][c];

			for (int k = c; r != c && k <= FEATURES; k++)
				sys->row[r][k] -= factor * sys->row[c][k];
		}
	}
	for (int c = 0; c < FEATURES; c++)
		price[c] = sys->row[c][FEATURES] / sys->row[c][c];
}

bool cost_fit(FILE *runs, struct cost *cost)
{
	struct system sys = { { { 0 } } };
	double instructions, requests, feature[FEATURES];
	int got = 0;

	while (fscanf(runs, "%lf %lf", &instructions, &requests) == 2) {
		for (int i = 0; i < FEATURES; i++) {
			if (fscanf(runs, "%lf", &feature[i]) != 1)
				return false;
			feature[i] /= requests;
		}
		add_run(&sys, instructions / requests, feature);
		got++;
	}
	lean(&sys);
	solve(&sys, cost->price);
	return got > FEATURES;
}

void cost_write(FILE *to, const struct cost *cost)
{
	for (int i = 0; i < FEATURES; i++)
		fprintf(to, "%s %.3f\n", names[i], cost->price[i]);
}

bool cost_read(FILE *from, struct cost *cost)
{
	char name[32];
	int got = 0;

	for (; got < FEATURES; got++)
		if (fscanf(from, "%31s %lf", name, &cost->price[got]) != 2 ||
		    strcmp(name, names[got]) != 0)
			break;
	return got == FEATURES;
}

double cost_apply(const struct cost *cost, const struct result *r)
{
	double sum = 0;

	for (int i = 0; i < FEATURES; i++)
		sum += cost->price[i] * (double)r->feature[i];
	return sum / (double)r->requests;
}
