/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "pieces.h"

#include <sys/resource.h>

#include "machine.h"
#include "stats.h"

#define PIECE_NS 5e5

/* How often somebody else was given the CPU. */
static long times_preempted(const struct pieces *p)
{
	struct rusage use;

	getrusage(p->all_threads ? RUSAGE_SELF : RUSAGE_THREAD, &use);
	return use.ru_nivcsw;
}

void piece_begin(struct pieces *p)
{
	p->preempted = times_preempted(p);
	p->start = now_ns();
}

bool piece_is_full(const struct pieces *p)
{
	return now_ns() - p->start >= PIECE_NS;
}

void piece_end(struct pieces *p, uint64_t units)
{
	double took = now_ns() - p->start;

	p->units += units;
	p->total_ns += took;
	took /= (double)units;
	p->any[p->all++] = took;
	if (times_preempted(p) == p->preempted)
		p->ns[p->clean++] = took;
}

double pieces_good_ns(struct pieces *p)
{
	return p->clean ? lower_decile(p->ns, p->clean) : lower_decile(p->any, p->all);
}

double pieces_all_ns(const struct pieces *p)
{
	return p->total_ns / (double)p->units;
}
