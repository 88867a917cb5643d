/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

FILE *gnuplot_open(const struct gnuplot_sheet *sheet)
{
	FILE *to = popen("gnuplot", "w");

	if (!to)
		return NULL;
	fprintf(to, "set terminal svg size %u,%u font ',11' background 'white'\n", sheet->width,
		sheet->height);
	fprintf(to, "set output '%s'\n", sheet->path);
	fprintf(to, "set multiplot layout %u,%u title '%s'\n", sheet->rows, sheet->columns,
		sheet->title);
	return to;
}

bool gnuplot_close(FILE *to)
{
	fprintf(to, "unset multiplot\n");
	return pclose(to) == 0;
}
