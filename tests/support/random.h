/* SPDX-License-Identifier: BSD-3-Clause */
/* random.h: numbers that look random and are the same for the same seed, on every machine. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

/* The next 64 bits: a counter whose bits are stirred, so that any seed will do, 0 too. */
static inline uint64_t random_word(struct random *r)
{
	uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 31)) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ (x >> 31);
}

/* 0 to n - 1; n is not 0. */
static inline uint32_t random_below(struct random *r, uint32_t n)
{
	return (uint32_t)((random_word(r) >> 32) * n >> 32);
}

static inline bool random_one_in(struct random *r, uint32_t n)
{
	return !random_below(r, n);
}

#endif
