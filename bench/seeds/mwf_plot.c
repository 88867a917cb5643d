/* SPDX-License-Identifier: BSD-3-Clause */
#include "mwf_plot.h"

#include "gnuplot.h"
#include "mwf_guest.h"
#include "mwf.h"

enum { DEVICES = 2, COLUMNS = 3, PARALLEL = 4, LIST = 8 };

static const struct {
	const char *title, *axes;
} columns[COLUMNS] = {
	{ "done, of what the device serves apart",
	  "unset logscale y\nset yrange [0:3.1]\nset key top left\n" },
	{ "mean latency, us", "set logscale y\nset autoscale y\nset key top left\n" },
	{ "requests for a bio", "unset logscale y\nset yrange [0:1.1]\nset key bottom left\n" },
};

static double shown(const struct mwf_row_result *r, uint32_t column, uint32_t load, uint32_t path)
{
	const struct mwf_result *at = &r->at[load][path];

	switch (column) {
	case 0:
		return at->throughput * mwf_loads[load];
	case 1:
		return at->mean / 1e3;
	default:
		return at->requests;
	}
}

static void plot_panel(FILE *to, const struct mwf_cell *row, const struct mwf_row_result *r,
		       uint32_t column)
{
	fprintf(to, "set title '%s, %u us: %s'\n%splot ", mwf_place_names[row->places],
		row->fixed / 1000, columns[column].title, columns[column].axes);
	for (uint32_t path = 0; path < MWF_PATHS; path++)
		fprintf(to, "%s'-' title '%s' with linespoints lw %d", path ? ", " : "",
			mwf_path_names[path], path == VQB_PATH_MERGE_WHEN_FULL ? 3 : 1);
	fprintf(to, "\n");
	for (uint32_t path = 0; path < MWF_PATHS; path++) {
		for (uint32_t i = 0; i < MWF_LOADS; i++)
			fprintf(to, "%g %g\n", mwf_loads[i], shown(r, column, i, path));
		fprintf(to, "e\n");
	}
}

bool mwf_plot(const char *path)
{
	const struct gnuplot_sheet sheet = {
		path,
		"arrival from idle to overload, relative to what the device serves; 4 at a time, bios of "
		"4 KiB, 8 at once",
		1200,
		350 * DEVICES * MWF_PLACES,
		DEVICES * MWF_PLACES,
		COLUMNS
	};
	FILE *to = gnuplot_open(&sheet);

	if (!to)
		return false;
	fprintf(to, "set logscale x\nset xtics (0.1, 0.2, 0.5, 1, 2, 3)\nset xrange [0.09:3.3]\n"
		    "set xlabel 'arrival rate'\nset key top left font ',9'\nset grid\n");
	for (uint32_t k = 0; k < DEVICES * MWF_PLACES; k++) {
		struct mwf_cell row = { .places = k % MWF_PLACES,
					.list = LIST,
					.bytes = 4096,
					.depth = MWF_RING,
					.fixed = k < MWF_PLACES ? 20000 : 200000,
					.parallel = PARALLEL };
		struct mwf_row_result r;

		mwf_row_run(&row, 1, &r);
		for (uint32_t column = 0; column < COLUMNS; column++)
			plot_panel(to, &row, &r, column);
	}
	return gnuplot_close(to);
}
