/* SPDX-License-Identifier: BSD-3-Clause */
/* gnuplot.h: a picture of several panels, drawn by gnuplot. */
#ifndef BENCH_GNUPLOT_H
#define BENCH_GNUPLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct gnuplot_sheet {
	const char *path, *title;
	uint32_t width, height; /* of all of it */
	uint32_t rows, columns; /* of panels */
};

/* Its standard input, for the panels: they are drawn row by row. NULL: there is no gnuplot. */
FILE *gnuplot_open(const struct gnuplot_sheet *sheet);

/* False: gnuplot failed, or is not there. */
bool gnuplot_close(FILE *to);

#endif
