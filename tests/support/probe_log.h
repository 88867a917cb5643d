/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_log.h: a log of what a call loads from shared memory and stores to it, kept by the hooks
 * of probe_port.h. For programs linked with vqblk-probe.
 *
 *   log_start();
 *   vqb_device_publish(dev);
 *   log_stop();
 *   assert_int_equal(log_loads(idx, 2), 1);
 */
#ifndef TESTS_PROBE_LOG_H
#define TESTS_PROBE_LOG_H

#include "probe_port.h"
#include "unit.h"

enum { LOG_ROOM = 4096 };

struct log_access {
	const uint8_t *at;
	unsigned bytes;
	int store;
	uint64_t value;       /* of a store */
	unsigned long fences; /* before this one, since log_start */
};

static struct log_access log_entry[LOG_ROOM];
static unsigned log_count;

static inline void log_note(const void *p, unsigned bytes, int store, uint64_t value)
{
	if (log_count == LOG_ROOM)
		fail_msg("more than %d accesses", LOG_ROOM);
	log_entry[log_count++] =
		(struct log_access){ (const uint8_t *)p, bytes, store, value, probe_fences };
}

static inline void log_load(const void *p, unsigned bytes)
{
	log_note(p, bytes, 0, 0);
}

static inline void log_store(const void *p, uint64_t v, unsigned bytes)
{
	log_note(p, bytes, 1, v);
}

static inline void log_start(void)
{
	log_count = 0;
	probe_fences = 0;
	probe_load = log_load;
	probe_store = log_store;
}

/* Ends the log; what it holds, and probe_fences, stay to be looked at. */
static inline void log_stop(void)
{
	probe_load = NULL;
	probe_store = NULL;
}

/* Does this access touch any of the `n` bytes at `p`? */
static inline int log_touches(const struct log_access *a, const void *p, size_t n)
{
	uintptr_t from = (uintptr_t)a->at, to = from + a->bytes, at = (uintptr_t)p;

	return from < at + n && at < to;
}

static inline unsigned log_touched(const void *p, size_t n, int store)
{
	unsigned hits = 0;

	for (unsigned i = 0; i < log_count; i++)
		hits += log_entry[i].store == store && log_touches(&log_entry[i], p, n);
	return hits;
}

/* How many loads, and how many stores, touched the `n` bytes at `p`. */
static inline unsigned log_loads(const void *p, size_t n)
{
	return log_touched(p, n, 0);
}

static inline unsigned log_stores(const void *p, size_t n)
{
	return log_touched(p, n, 1);
}

/* Reads of the `n` descriptors at `table`, by the loads of their lengths. */
static inline unsigned log_descriptors(const uint8_t *table, unsigned n)
{
	unsigned reads = 0;

	for (unsigned i = 0; i < n; i++)
		reads += log_loads(table + 16 * (size_t)i + 8, 1);
	return reads;
}

/* All loads, and all stores, wherever they went. */
static inline unsigned log_all_loads(void)
{
	unsigned hits = 0;

	for (unsigned i = 0; i < log_count; i++)
		hits += !log_entry[i].store;
	return hits;
}

static inline unsigned log_all_stores(void)
{
	return log_count - log_all_loads();
}

/* The first access of that kind to the `n` bytes at `p`; there is one. */
static inline const struct log_access *log_first(const void *p, size_t n, int store)
{
	for (unsigned i = 0; i < log_count; i++) {
		if (log_entry[i].store == store && log_touches(&log_entry[i], p, n))
			return &log_entry[i];
	}
	fail_msg("no such access");
	return NULL;
}

#endif
