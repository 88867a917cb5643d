/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.h: what the parts of options.c share: the options by number, the readers of one value each
 * (option_values.c), and what goes together (option_check.c).
 */
#ifndef LOOPBACK_OPTION_H
#define LOOPBACK_OPTION_H

#include "options.h"

/* One number per option, so that each is read by a case of its own; below 64. */
enum option_id {
	OPT_COPY = 1,
	OPT_RW,
	OPT_IOLOG,
	OPT_BS,
	OPT_REQUESTS,
	OPT_RUNTIME,
	OPT_SEED,
	OPT_VERIFY,
	OPT_FUA,
	OPT_ZEROES,
	OPT_DISCARD,
	OPT_IMAGE,
	OPT_BACKEND,
	OPT_SIZE,
	OPT_READONLY,
	OPT_DIRECT,
	OPT_HOST_MERGE,
	OPT_PLUG,
	OPT_INJECT,
	OPT_PATH,
	OPT_GUEST_MERGE,
	OPT_JOBS,
	OPT_CANCEL,
	OPT_RESET,
	OPT_MAX_SECTORS,
	OPT_MAX_SEGMENTS,
	OPT_QUEUES,
	OPT_IODEPTH,
	OPT_RING,
	OPT_INDIRECT,
	OPT_EVENT_IDX,
	OPT_POLL,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

/* In a set of options that were given. */
#define OPTION_BIT(id) (UINT64_C(1) << (id))

/* The value of option --NAME. All of these answer false after a complaint. */
bool option_word(const char *name, const char *text, const char *const words[], uint32_t *value);
bool option_count(const char *name, const char *text, uint64_t most, uint64_t *value);
bool option_count32(const char *name, const char *text, uint32_t most, uint32_t *value);
bool option_sectors(const char *name, const char *text, uint64_t most, uint64_t *bytes);
/* The second of two words. */
bool option_switch(const char *name, const char *text, const char *const words[], bool *value);
bool option_rate(const char *name, const char *text, uint32_t *millionths);
bool option_seed(const char *text, uint64_t *seed);

/*
 * Does all of that make sense together? Fills in what follows from others where it was not given.
 * False: no, and it was said.
 */
bool option_check(struct options *options, uint64_t given);

#endif
