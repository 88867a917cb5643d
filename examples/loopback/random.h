/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h: numbers that look random and come again with the same seed.
 */
#ifndef LOOPBACK_RANDOM_H
#define LOOPBACK_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* A bijection that leaves no trace of the order of its arguments (the finish of splitmix64). */
static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* The next number of a stream; any start will do (splitmix64). */
static inline uint64_t random_next(uint64_t *stream)
{
	*stream += UINT64_C(0x9e3779b97f4a7c15);
	return random_mix(*stream);
}

/* True so many times in a million. */
static inline bool random_chance(uint64_t *stream, uint32_t millionths)
{
	return random_next(stream) % 1000000 < millionths;
}

/*
 * Where i of n comes to lie in a shuffle that `key` picks: each i below n gets a place of its own
 * below n. A small cipher over the next power of four, repeated until it lands inside.
 */
static inline uint64_t random_place(uint64_t i, uint64_t n, uint64_t key)
{
	unsigned int half = 1, round;
	uint64_t mask, left, right, swap;

	while (half < 31 && (UINT64_C(1) << (2 * half)) < n)
		half++;
	mask = (UINT64_C(1) << half) - 1;
	do {
		left = i >> half;
		right = i & mask;
		for (round = 0; round < 4; round++) {
			swap = right;
			right = left ^ (random_mix(right + key + round) & mask);
			left = swap;
		}
		i = left << half | right;
	} while (i >= n);
	return i;
}

#endif
