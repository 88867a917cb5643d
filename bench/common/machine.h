/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h: the clock and the CPUs. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Says what is wrong, and ends the program with status 1. */
_Noreturn void die(const char *what);

/* A line that says which machine this is, and how busy: what figures have to be seen with. */
void machine_print(void);

double now_ns(void);

/* Zeroed, aligned to a page. Ends the program if there is none. */
void *zeroed(size_t bytes);

/* CPUs that this process was allowed to use when it first asked. */
uint32_t cpu_count(void);

/*
 * Ties the calling thread to one of them: 0 is where work of one thread is done. That is the last
 * one, since interrupts tend to be served by the first.
 */
void pin_to(uint32_t which);

/* Lets threads that the calling one starts from now on run anywhere, until the next pin_to. */
void unpin(void);

/* From now on 0 is the CPU with this number. */
void pin_first(int number);

/* Between two looks at memory that another CPU is going to change. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

#endif
