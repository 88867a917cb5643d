/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser alone, on pieces made by hand: any cut gives the same request. */
#include <stdlib.h>
#include <string.h>

#include <vqblk/blk_parse.h>

#include "raw_ring.h"
#include "unit.h"

enum {
	OUT_BYTES = 16 + 24, /* header and data */
	IN_BYTES = 24 + 1,   /* data and status */
	MAX = 96,
};

struct pieces {
	uint8_t out[OUT_BYTES], in[IN_BYTES];
	struct vqb_piece piece[MAX];
	struct vqb_chain chain;
};

/* The bytes of one direction in pieces that end where a bit of `cuts` is set, an empty one each. */
static uint32_t cut(struct vqb_piece *piece, uint8_t *at, uint32_t bytes, uint64_t cuts, int empty)
{
	uint32_t n = 0, from = 0;

	for (uint32_t i = 1; i <= bytes; i++) {
		if (i < bytes && !(cuts >> i & 1))
			continue;
		if (empty)
			piece[n++] = (struct vqb_piece){ NULL, 0 };
		piece[n++] = (struct vqb_piece){ at + from, i - from };
		from = i;
	}
	if (empty)
		piece[n++] = (struct vqb_piece){ NULL, 0 };
	return n;
}

static void make(struct pieces *p, uint32_t out_bytes, uint64_t out_cuts, uint32_t in_bytes,
		 uint64_t in_cuts, int empty)
{
	memset(p, 0, sizeof(*p));
	poke(p->out, VQB_BLK_OUT, 4);
	poke(p->out + 8, 77, 8);
	for (unsigned i = 16; i < OUT_BYTES; i++)
		p->out[i] = (uint8_t)i;
	p->chain.piece = p->piece;
	p->chain.readable = cut(p->piece, p->out, out_bytes, out_cuts, empty);
	p->chain.writable = cut(p->piece + p->chain.readable, p->in, in_bytes, in_cuts, empty);
	p->chain.read_bytes = out_bytes;
	p->chain.write_bytes = in_bytes;
}

/* The pieces are exactly the bytes from `at` on. */
static void assert_bytes(const struct vqb_piece *piece, uint32_t pieces, const uint8_t *at,
			 uint64_t bytes)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < pieces; i++) {
		if (piece[i].len)
			assert_ptr_equal(piece[i].base, at + seen);
		seen += piece[i].len;
	}
	assert_int_equal(seen, bytes);
}

static void assert_parsed(struct pieces *p)
{
	struct vqb_blk_request request;

	assert_int_equal(vqb_blk_parse(&p->chain, &request), VQB_OK);
	assert_int_equal(request.type, VQB_BLK_OUT);
	assert_int_equal(request.sector, 77);
	assert_int_equal(request.out_bytes, OUT_BYTES - 16);
	assert_int_equal(request.in_bytes, IN_BYTES - 1);
	assert_bytes(request.out, request.outs, p->out + 16, OUT_BYTES - 16);
	assert_bytes(request.in, request.ins, p->in, IN_BYTES - 1);
	assert_ptr_equal(request.status, p->in + IN_BYTES - 1);
}

/* Shows: SR-DEV-01 K22 BLK-ANY-06 */
static void test_any_two_cuts_on_each_side_change_nothing(void **state)
{
	struct pieces p;

	(void)state;
	for (unsigned i = 0; i < OUT_BYTES; i++) {
		for (unsigned k = 0; k < OUT_BYTES; k++) {
			uint64_t out = UINT64_C(1) << i | UINT64_C(1) << k;
			uint64_t in = UINT64_C(1) << i % IN_BYTES | UINT64_C(1) << k % IN_BYTES;

			make(&p, OUT_BYTES, out, IN_BYTES, in, 0);
			assert_parsed(&p);
			make(&p, OUT_BYTES, out, IN_BYTES, in, 1);
			assert_parsed(&p);
		}
	}
}

/* Shows: SR-DEV-01 K22 */
static void test_a_piece_for_each_byte_changes_nothing(void **state)
{
	struct pieces p;

	(void)state;
	make(&p, OUT_BYTES, ~UINT64_C(0), IN_BYTES, ~UINT64_C(0), 0);
	assert_int_equal(p.chain.readable, OUT_BYTES);
	assert_parsed(&p);
}

/* Shows: SR-DEV-01 K22 */
static void test_a_header_in_any_of_its_32768_cuts_is_the_same(void **state)
{
	struct pieces p;

	(void)state;
	for (uint64_t cuts = 0; cuts < 0x10000; cuts += 2) {
		struct vqb_blk_request request;

		make(&p, 16, cuts, 1, 0, 0);
		assert_int_equal(vqb_blk_parse(&p.chain, &request), VQB_OK);
		assert_int_equal(request.type, VQB_BLK_OUT);
		assert_int_equal(request.sector, 77);
		assert_int_equal(request.outs | request.ins, 0);
		assert_int_equal(request.out_bytes | request.in_bytes, 0);
		assert_ptr_equal(request.status, p.in);
	}
}

/* Shows: BLK-DEV-29 K22 */
static void test_too_short_is_a_bad_chain_and_leaves_the_pieces(void **state)
{
	struct vqb_blk_request request;
	struct vqb_piece before[MAX];
	struct pieces p;

	(void)state;
	for (uint32_t out = 0; out <= 16; out++) {
		make(&p, out, ~UINT64_C(0), out == 16 ? 0 : 1, 0, 0);
		if (!out)
			p.chain.readable = 0;
		memcpy(before, p.piece, sizeof(before));
		assert_int_equal(vqb_blk_parse(&p.chain, &request), VQB_E_BAD_CHAIN);
		assert_memory_equal(p.piece, before, sizeof(before));
	}
	make(&p, 16, 0, 1, 0, 0);
	p.chain.status = VQB_E_BAD_CHAIN;
	assert_int_equal(vqb_blk_parse(&p.chain, &request), VQB_E_BAD_CHAIN);
	p.chain = (struct vqb_chain){ .status = VQB_OK };
	assert_int_equal(vqb_blk_parse(&p.chain, &request), VQB_E_BAD_CHAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_two_cuts_on_each_side_change_nothing),
		cmocka_unit_test(test_a_piece_for_each_byte_changes_nothing),
		cmocka_unit_test(test_a_header_in_any_of_its_32768_cuts_is_the_same),
		cmocka_unit_test(test_too_short_is_a_bad_chain_and_leaves_the_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
