/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * length.h: how long a random test goes on, and with what it begins.
 *
 *   VQB_SEED=N     another run, or one that was printed
 *   VQB_LONG=1     twenty times as long
 *   VQB_SHORT=1    a twentieth: for a machine that is emulated
 *
 * Under a sanitizer that slows everything down a tenth is done.
 */
#ifndef TESTS_LENGTH_H
#define TESTS_LENGTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LENGTH_SLOW 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LENGTH_SLOW 1
#endif
#if !defined(LENGTH_SLOW)
#define LENGTH_SLOW 0
#endif

static inline bool length_is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && *value != '0';
}

/* Of what usually is `usual` (from 200) rounds, operations, or what a test counts in. */
static inline uint64_t length_of(uint64_t usual)
{
	if (length_is_set("VQB_LONG"))
		return usual * 20;
	if (length_is_set("VQB_SHORT"))
		return usual / 20;
	return LENGTH_SLOW ? usual / 10 : usual;
}

static inline uint64_t length_seed(uint64_t usual)
{
	const char *seed = getenv("VQB_SEED");

	return seed && *seed ? strtoull(seed, NULL, 0) : usual;
}

#endif
