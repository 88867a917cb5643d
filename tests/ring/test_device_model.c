/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random chains, walked by the device and by a plain model that was written from the format: one
 * descriptor after the other, one byte of a table after the other. Both see the same chain.
 */
#include "device_bench.h"

enum {
	SIZE = 64,
	ENTRIES = 64, /* of each of two tables */
	PLACES = 2,
	ROUNDS = 500,
};

/* The second table lies across the border of the regions. */
static const uint64_t table_at[PLACES] = { TABLE, BORDER - 16 * 30 - 8 };

/* ---- the model ---- */

struct model {
	const struct bench *b;
	uint32_t limit, max_pieces, room;
	/* what has to come out */
	struct vqb_piece piece[BENCH_PIECES];
	uint32_t readable, pieces;
	uint64_t read_bytes, bytes;
	struct vqb_need need;
};

static uint8_t *mapped(const struct bench *b, uint64_t addr)
{
	return addr >= LOW && addr < END ? bench_host(b, addr) : NULL;
}

static int32_t model_fault(struct model *m, uint64_t addr, uint32_t access)
{
	m->need.addr = addr;
	m->need.access = access;
	return VQB_E_FAULT;
}

static int32_t model_buffer(struct model *m, uint64_t addr, uint32_t len, uint32_t access)
{
	if (len && addr + (len - 1) < addr)
		return VQB_E_BAD_CHAIN;
	m->bytes += len;
	while (len) {
		uint64_t left = (addr < BORDER ? BORDER : END) - addr;
		uint32_t n = left < len ? (uint32_t)left : len;

		if (!mapped(m->b, addr))
			return model_fault(m, addr, access);
		if (m->pieces == m->max_pieces)
			return VQB_E_BAD_CHAIN;
		m->piece[m->pieces++] = (struct vqb_piece){ mapped(m->b, addr), n };
		addr += n;
		len -= n;
	}
	return VQB_OK;
}

static int32_t model_table(struct model *m, const uint8_t *desc, uint8_t *copy, uint32_t *count)
{
	uint64_t addr = raw_desc_addr(desc, 0);
	uint32_t len = raw_desc_len(desc, 0);

	if (raw_desc_flags(desc, 0) & RAW_NEXT || !len || len % 16 || len / 16 > m->limit ||
	    addr + (len - 1) < addr)
		return VQB_E_BAD_CHAIN;
	for (uint32_t i = 0; i < len; i++) {
		if (!mapped(m->b, addr + i))
			return model_fault(m, addr + i, VQB_READ);
		copy[i] = *mapped(m->b, addr + i);
	}
	*count = len / 16;
	return VQB_OK;
}

static int32_t model_chain(struct model *m, unsigned head)
{
	static uint8_t copy[16 * ENTRIES];
	const uint8_t *table = m->b->ring.desc;
	uint32_t count = SIZE, visited = 0, here = 0;
	unsigned at = head, writes = 0;

	for (;;) {
		const uint8_t *desc = table + 16 * (size_t)at;
		unsigned flags = raw_desc_flags(desc, 0), write = flags & RAW_WRITE;
		int32_t status;

		if (flags & RAW_INDIRECT) {
			status = table == copy ? VQB_E_BAD_CHAIN
					       : model_table(m, desc, copy, &count);
			if (status)
				return status;
			table = copy;
			at = here = 0;
			continue;
		}
		if ((writes && !write) || visited++ == m->limit || here++ == count)
			return VQB_E_BAD_CHAIN;
		writes |= write;
		status = model_buffer(m, raw_desc_addr(desc, 0), raw_desc_len(desc, 0),
				      write ? VQB_WRITE : VQB_READ);
		if (status)
			return status;
		if (!write) {
			m->readable = m->pieces;
			m->read_bytes = m->bytes;
		}
		if (!(flags & RAW_NEXT))
			break;
		at = raw_desc_next(desc, 0);
		if (at >= count)
			return VQB_E_BAD_CHAIN;
	}
	m->need.pieces = m->pieces;
	return m->pieces > m->room ? VQB_E_NOSPC : VQB_OK;
}

/* ---- the input ---- */

static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

static uint64_t random_addr(void)
{
	if (below(60))
		return below(4) ? DATA + below(0x8000) : HIGH + below(0x8000);
	return below(4) ? BORDER - below(300) : END - below(300);
}

/* Entries in order for the most part, readable up to a point and writable from there on. */
static void random_table(uint8_t *table, unsigned count)
{
	unsigned from = below(count);

	for (unsigned i = 0; i < count; i++) {
		unsigned flags = i < from ? 0 : RAW_WRITE;
		unsigned next = below(200) ? i + 1 : below(count + 2);
		uint32_t len;

		if (below(30) && (i + 1 < count || !below(4)))
			flags |= RAW_NEXT;
		if (!below(400))
			flags ^= RAW_WRITE;
		len = below(30) ? 1 + below(400) : 0;
		raw_desc(table, i, random_addr(), len, flags, next);
	}
}

static void random_memory(struct bench *b)
{
	uint8_t table[16 * ENTRIES];

	for (unsigned place = 0; place < PLACES; place++) {
		random_table(table, ENTRIES);
		for (unsigned i = 0; i < sizeof(table); i++)
			*bench_host(b, table_at[place] + i) = table[i];
	}
	random_table(b->ring.desc, SIZE);
	for (unsigned i = below(8); i < SIZE; i += 1 + below(60)) {
		uint32_t entries = below(2) ? ENTRIES : 1 + below(ENTRIES);

		bench_desc(b, i, table_at[below(PLACES)], 16 * entries, RAW_INDIRECT, 0);
	}
}

/* ---- the comparison ---- */

static void assert_same_pieces(const struct model *m, const struct vqb_chain *chain)
{
	assert_int_equal(chain->readable, m->readable);
	assert_int_equal(chain->readable + chain->writable, m->pieces);
	assert_int_equal(chain->read_bytes, m->read_bytes);
	assert_int_equal(chain->read_bytes + chain->write_bytes, m->bytes);
	for (uint32_t i = 0; i < m->pieces; i++)
		bench_assert_piece(&chain->piece[i], m->piece[i].base, m->piece[i].len);
}

/* Takes what the model has walked, compares, and gives it back. */
static void take_same(struct bench *b, const struct model *m, int32_t expected)
{
	struct vqb_chain *chain = &b->chain[0];
	int32_t status = bench_take_room(b, 1, m->room);

	if (expected == VQB_OK || expected == VQB_E_BAD_CHAIN) {
		assert_int_equal(status, VQB_OK);
		assert_int_equal(b->taken, 1);
		assert_int_equal(chain->status, expected);
		if (expected == VQB_OK)
			assert_same_pieces(m, chain);
	} else {
		assert_int_equal(status, expected);
		assert_int_equal(b->taken, 0);
		if (expected == VQB_E_NOSPC)
			assert_int_equal(b->need.pieces, m->need.pieces);
		else
			assert_int_equal(b->need.addr, m->need.addr);
		if (expected == VQB_E_FAULT)
			assert_int_equal(b->need.access, m->need.access);
		assert_int_equal(vqb_device_reject(b->dev, chain), VQB_OK);
	}
	bench_put(b, chain->ticket, 0);
	vqb_device_expose(b->dev);
}

static void compare(void **state, uint32_t max_chain, uint32_t max_pieces)
{
	static const int32_t kind[] = { VQB_OK, VQB_E_BAD_CHAIN, VQB_E_FAULT, VQB_E_NOSPC };
	static struct model m;
	struct bench *b = bench_plan(state, SIZE, INDIRECT);
	unsigned seen[4] = { 0 };

	b->config.max_chain = max_chain;
	b->config.max_pieces = max_pieces;
	bench_start(b);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned head = below(SIZE);
		int32_t expected;

		random_memory(b);
		bench_offer(b, head);
		memset(&m.readable, 0, sizeof(m) - offsetof(struct model, readable));
		m.b = b;
		m.limit = max_chain ? max_chain : SIZE;
		m.max_pieces = max_pieces ? max_pieces : UINT32_MAX;
		m.room = below(4) ? BENCH_PIECES : below(20);
		expected = model_chain(&m, head);
		take_same(b, &m, expected);
		for (unsigned i = 0; i < 4; i++)
			seen[i] += kind[i] == expected;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(seen[i] > 10);
}

/* Shows: SR-ANY-04 SR-DEV-08 SR-DEV-31 SR-DEV-33 SR-DEV-34 */
static void test_device_and_model_agree(void **state)
{
	seed = 0x1badcafe;
	compare(state, 0, 0);
	compare(state, 200, 0);
	compare(state, 17, 0);
	compare(state, 0, 24);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		bench_test(test_device_and_model_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
