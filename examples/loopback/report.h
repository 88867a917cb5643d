/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h: what a run has come to, for people and for programs.
 */
#ifndef LOOPBACK_REPORT_H
#define LOOPBACK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"
#include "options.h"
#include "run.h"

struct report {
	const struct options *options;
	const struct job *job;
	uint64_t disk_bytes;
	const struct figures *figures;
};

/* Both on stdout. False: it can't be written to, and it was said. */
bool report_table(const struct report *report);
bool report_json(const struct report *report);

/* Did all that was printed so far reach stdout? False: no, and it was said. */
bool report_written(void);

#endif
