/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real.h: a dozen cells with two real threads on two CPUs, both polling, in real time: a check that
 * virtual time does not lie. The device serves in real time, too, by the same clock.
 */
#ifndef BENCH_INDIRECT_REAL_H
#define BENCH_INDIRECT_REAL_H

void real_run(void);

#endif
