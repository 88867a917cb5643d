/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h: both sides of one ring of this library, doing the work of common/slices.h.
 *
 * Guest memory is translated and checked, over two regions: ring, headers, tables and status
 * bytes lie in one, data in the other.
 */
#ifndef BENCH_RING_LOOP_H
#define BENCH_RING_LOOP_H

#include "slices.h"

extern const struct engine loop_engine;

#endif
