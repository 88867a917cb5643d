/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.h: requests and instructions by size of request, drawn by gnuplot. */
#ifndef BENCH_INDIRECT_PLOT_H
#define BENCH_INDIRECT_PLOT_H

#include "grid.h"

/* False: there is no gnuplot, or it failed. */
bool plot_svg(const struct grid *grid, const char *path);

#endif
