/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h: what the fuzzers share: reading an input, and saying that a check has failed.
 *
 * An input is a configuration of a fixed number of bytes, then the rest. Whatever is read beyond
 * the end of either is 0. Bytes and bits of the configuration that mean nothing today are passed
 * over, so that a later version can give them a meaning without making the kept inputs useless. An
 * operation is one of sixteen; where there are fewer, the most useful have several numbers, of
 * which a new one can be given one.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vqblk/ring.h>

#include "raw_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- checks: they stay in every build, and end the program as a crash does ---- */

static inline void fuzz_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

#define FUZZ_CHECK(holds)                                                                          \
	do {                                                                                       \
		if (!(holds))                                                                      \
			fuzz_failed(__FILE__, __LINE__, #holds);                                   \
	} while (0)

/* Memory to the byte, so that a sanitizer sees the first one too far. Never NULL. */
static inline void *fuzz_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	FUZZ_CHECK(p);
	return p;
}

/* The same for an object of the library; its contents are anything but zero. */
static inline void *fuzz_object(size_t bytes)
{
	void *p = aligned_alloc(VQB_ALIGN, VQB_ROUND_UP(bytes));

	FUZZ_CHECK(p);
	memset(p, 0x5a, VQB_ROUND_UP(bytes));
	return p;
}

/* ---- memory that is not coherent: all that the library names must be there ---- */

static inline void fuzz_touch(void *context, const void *at, size_t bytes)
{
	const volatile uint8_t *byte = (const volatile uint8_t *)at;

	(void)context;
	for (size_t i = 0; i < bytes; i++)
		(void)byte[i];
}

static const struct vqb_cache_ops fuzz_cache = { .struct_size = sizeof(fuzz_cache),
						 .flush = fuzz_touch,
						 .invalidate = fuzz_touch };

/* ---- the input ---- */

struct fuzz_input {
	const uint8_t *at, *end;
};

static inline bool fuzz_more(const struct fuzz_input *in)
{
	return in->at < in->end;
}

/* Cuts the first `n` bytes off, or what there is. */
static inline struct fuzz_input fuzz_cut(struct fuzz_input *in, size_t n)
{
	struct fuzz_input cut = *in;

	if (n < (size_t)(in->end - in->at))
		cut.end = in->at + n;
	in->at = cut.end;
	return cut;
}

static inline uint64_t fuzz_number(struct fuzz_input *in, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes && fuzz_more(in); i++)
		v |= (uint64_t)*in->at++ << (8 * i);
	return v;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	return (uint8_t)fuzz_number(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	return (uint16_t)fuzz_number(in, 2);
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	return (uint32_t)fuzz_number(in, 4);
}

static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
	return fuzz_number(in, 8);
}

/* 0 to n - 1. */
static inline uint32_t fuzz_below(struct fuzz_input *in, uint32_t n)
{
	return fuzz_u8(in) % n;
}

/* A count: mostly small, also each power of two and the largest there is. From one byte. */
static inline uint32_t fuzz_count(struct fuzz_input *in)
{
	uint32_t v = fuzz_u8(in);

	if (v < 200)
		return v;
	return v < 232 ? UINT32_C(1) << (v - 200) : UINT32_MAX;
}

/* A length: 0, small, any, or so large that a few make 2^32. */
static inline uint32_t fuzz_len(struct fuzz_input *in)
{
	uint32_t v = fuzz_u8(in);

	if (v < 128)
		return v;
	if (v < 240)
		return (v - 127) * 16;
	return v < 248 ? fuzz_u32(in) : UINT32_C(1) << (v - 248 + 24);
}

/*
 * The number of an operation, 0 to 15. The other bits say how many times it is to be done at once,
 * where the configuration has lists: up to 7, or 0, not by a list.
 */
static inline uint32_t fuzz_op(struct fuzz_input *in, bool lists, uint32_t *times)
{
	uint32_t op = fuzz_u8(in);

	*times = lists && op & 0x80 ? op >> 4 & 7 : 0;
	return op & 0x0f;
}

/* A ring's size, 1 to 256. */
static inline uint32_t fuzz_ring_size(struct fuzz_input *in)
{
	return UINT32_C(1) << fuzz_below(in, 9);
}

/* Features, one bit of the input for each; bits without one are passed over. */
static inline uint64_t fuzz_features(struct fuzz_input *in)
{
	static const uint8_t bit[] = { VQB_F_INDIRECT_DESC,     VQB_F_EVENT_IDX,
				       VQB_F_VERSION_1,         VQB_F_ACCESS_PLATFORM,
				       VQB_F_RING_RESET,        VQB_F_ORDER_PLATFORM,
				       VQB_F_NOTIFICATION_DATA, VQB_F_IN_ORDER };
	uint32_t chosen = fuzz_u16(in);
	uint64_t features = 0;

	for (uint32_t i = 0; i < sizeof(bit); i++)
		features |= chosen >> i & 1 ? VQB_FEATURE(bit[i]) : 0;
	return features;
}

/* A ring's flags, for a bit of the input: big-endian, where a ring of these features may be. */
static inline uint32_t fuzz_ring_flags(uint32_t chosen, uint64_t features)
{
	return chosen && !(features & VQB_FEATURE(VQB_F_VERSION_1)) ? VQB_RING_BIG_ENDIAN : 0;
}

#endif
