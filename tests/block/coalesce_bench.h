/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coalesce_bench.h: a coalescer between requests that a test names and a list of what it handed
 * out. A request of `bytes` bytes has `pieces` pieces of memory of its own.
 */
#ifndef TESTS_COALESCE_BENCH_H
#define TESTS_COALESCE_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vqblk/blk.h>
#include <vqblk/coalesce.h>

#include "unit.h"

enum { BENCH_MOST = 2048, BENCH_PIECES = 4096 };

struct bench {
	void *mem;
	struct vqb_coalescer *c;
	struct vqb_io io[BENCH_MOST];
	struct vqb_piece piece[BENCH_PIECES];
	uint32_t ios, pieces;
	struct vqb_io *out[BENCH_MOST]; /* what the last flush handed out */
	uint32_t outs;
};

static uint8_t bench_memory[BENCH_PIECES];

static inline void bench_open(struct bench *b, const struct vqb_coalescer_config *config)
{
	size_t bytes = vqb_coalescer_size(config);

	memset(b, 0, sizeof(*b));
	assert_int_not_equal(bytes, 0);
	b->mem = aligned_alloc(VQB_ALIGN, bytes);
	assert_non_null(b->mem);
	memset(b->mem, 0x5a, bytes);
	assert_int_equal(vqb_coalescer_init(b->mem, bytes, config, &b->c), VQB_OK);
}

static inline void bench_open_limits(struct bench *b, uint32_t max_pieces, uint64_t max_transfer)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .pieces = BENCH_PIECES,
					       .max_pieces = max_pieces,
					       .max_transfer = max_transfer };

	bench_open(b, &config);
}

static inline void bench_close(struct bench *b)
{
	free(b->mem);
}

/* A request that nobody has seen yet. */
static inline struct vqb_io *bench_io(struct bench *b, uint8_t op, uint64_t offset, uint64_t bytes,
				      uint32_t pieces)
{
	struct vqb_io *io = &b->io[b->ios++];

	assert_true(b->ios <= BENCH_MOST && b->pieces + pieces <= BENCH_PIECES);
	*io = (struct vqb_io){ .op = op, .offset = offset, .bytes = bytes, .pieces = pieces };
	io->next = (struct vqb_io *)(uintptr_t)0xee; /* of a list it was on before */
	io->piece = &b->piece[b->pieces];
	for (uint32_t i = 0; i < pieces; i++) {
		/* Told apart by where it is; nothing here moves data. */
		b->piece[b->pieces].base = &bench_memory[b->pieces];
		b->piece[b->pieces++].len = (size_t)(bytes / pieces);
	}
	return io;
}

/* Adds one that has to be let in. */
static inline struct vqb_io *bench_add(struct bench *b, uint8_t op, uint64_t offset, uint64_t bytes,
				       uint32_t pieces)
{
	struct vqb_io *io = bench_io(b, op, offset, bytes, pieces);

	assert_int_equal(vqb_coalescer_add(b->c, io), VQB_OK);
	return io;
}

static inline struct vqb_io *bench_write(struct bench *b, uint64_t offset, uint64_t bytes)
{
	return bench_add(b, VQB_BLK_OUT, offset, bytes, 1);
}

/* How many submissions come out; they are in b->out. */
static inline uint32_t bench_flush(struct bench *b)
{
	b->outs = 0;
	for (struct vqb_io *io = vqb_coalescer_flush(b->c); io; io = io->next)
		b->out[b->outs++] = io;
	return b->outs;
}

static inline void bench_expect(const struct bench *b, uint32_t i, uint64_t offset, uint64_t bytes,
				uint32_t pieces)
{
	uint64_t in_pieces = 0;

	assert_true(i < b->outs);
	assert_int_equal(b->out[i]->offset, offset);
	assert_int_equal(b->out[i]->bytes, bytes);
	assert_int_equal(b->out[i]->pieces, pieces);
	for (uint32_t k = 0; k < pieces; k++)
		in_pieces += b->out[i]->piece[k].len;
	assert_int_equal(in_pieces, bytes / pieces * pieces);
}

/* The submission ends with `result`; what came of it is in the two lists, which begin empty. */
static inline void bench_end(struct bench *b, struct vqb_io *io, int64_t result,
			     struct vqb_io_list *done, struct vqb_io_list *retry)
{
	*done = *retry = (struct vqb_io_list){ NULL, NULL };
	io->result = result;
	vqb_coalescer_done(b->c, io, done, retry);
}

static inline uint32_t bench_count(const struct vqb_io_list *list)
{
	uint32_t n = 0;

	for (const struct vqb_io *io = list->first; io; io = io->next)
		n++;
	return n;
}

#endif
