/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "gnuplot.h"
#include "plot.h"

enum { DEPTH = 64, ROWS = 4 };

struct panel {
	uint32_t ring, device;
	bool instructions;
};

static double shown(const struct place *p, const struct panel *panel, int policy)
{
	const struct result *r = &p->result[policy];

	return panel->instructions ? r->instructions / p->result[ALWAYS].instructions
				   : r->per_second / p->result[ALWAYS].per_second;
}

static void plot_line(FILE *to, const struct grid *grid, const struct panel *panel, int policy)
{
	for (uint32_t i = 0; i < grid->places; i++) {
		const struct place *p = &grid->place[i];
		const struct cell *c = &p->cell;

		if (c->shape == STEADY && c->depth == DEPTH && c->ring == panel->ring &&
		    c->device == panel->device)
			fprintf(to, "%u %.4f\n", c->segments, shown(p, panel, policy));
	}
	fprintf(to, "e\n");
}

/* All relative to "always": where two lines cross, the better policy changes. */
static void plot_panel(FILE *to, const struct grid *grid, const struct panel *panel)
{
	fprintf(to, "set title 'ring %u, %s: %s'\n", panel->ring, device_cases[panel->device].name,
		panel->instructions ? "instructions" : "requests/s");
	if (panel->instructions)
		fprintf(to, "set yrange [0.8:1.8]\n");
	else
		fprintf(to, "set yrange [0:1.15]\n");
	fprintf(to, "plot ");
	for (int policy = 0; policy < POLICIES; policy++)
		fprintf(to, "%s'-' title '%s' with linespoints lw %d", policy ? ", " : "",
			policy_cases[policy].name, policy == ADAPTIVE ? 3 : 1);
	fprintf(to, "\n");
	for (int policy = 0; policy < POLICIES; policy++)
		plot_line(to, grid, panel, policy);
}

bool plot_svg(const struct grid *grid, const char *path)
{
	char title[64];
	struct gnuplot_sheet sheet = { path, title, 1200, 1400, ROWS, DEVICES };
	FILE *to;

	snprintf(title, sizeof(title), "%d requests at once, relative to always", DEPTH);
	to = gnuplot_open(&sheet);
	if (!to)
		return false;
	fprintf(to, "set logscale x\nset xtics (3, 6, 18, 66)\nset xlabel 'segments'\n");
	fprintf(to, "set key bottom left font ',9'\nset grid\n");
	for (uint32_t k = 0; k < ROWS * DEVICES; k++) {
		struct panel panel = { .ring = k / DEVICES < 2 ? 128 : 256,
				       .device = k % DEVICES,
				       .instructions = k / DEVICES % 2 };

		if (panel.instructions)
			fprintf(to, "set key top left\n");
		else
			fprintf(to, "set key bottom left\n");
		plot_panel(to, grid, &panel);
	}
	return gnuplot_close(to);
}
