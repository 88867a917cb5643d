/* SPDX-License-Identifier: BSD-3-Clause */
/* mwf_plot.h: throughput, latency and requests of the three paths by load, drawn by gnuplot. */
#ifndef BENCH_SEEDS_MWF_PLOT_H
#define BENCH_SEEDS_MWF_PLOT_H

#include <stdbool.h>

/* Runs what it draws. False: there is no gnuplot, or it failed. */
bool mwf_plot(const char *path);

#endif
