/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same requests with merging and without, over storage with bad sectors that cuts transfers
 * short, takes its time, changes the order and is full: each request ends with the same status,
 * reads bring the same, and the disk is the same in the end, but for sectors of writes that have
 * failed, which may be as before or as written.
 *
 * Requests of one batch don't overlap and many are neighbours; the next batch is asked when all are
 * back. VQB_SEED and VQB_LONG: length.h.
 */
#include <vqblk/backend_fault.h>

#include "blk_bench.h"
#include "length.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)

enum {
	ROUNDS = 120,
	BATCHES = 4,
	BATCH = 24,
	ALL = BATCHES * BATCH,
	SPACE = 192, /* sectors that are used */
	LONGEST = 4,
	BAD = 20000, /* in a million */
	OFTEN = 100000,
};

static uint64_t seed;

static uint32_t roll(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

struct planned {
	uint32_t type, sector, sectors;
	uint8_t value;
};

/* What came of them. */
struct played {
	uint8_t status[ALL];
	uint8_t data[ALL][LONGEST * 512 + 1];
	uint8_t disk[SPACE * 512];
	uint64_t merges, partial, retries;
};

static struct planned plan[ALL];

/* Neighbours, with a gap now and then, in an order that is mostly that of the disk. */
static void plan_batch(struct planned *p)
{
	static const uint8_t types[] = { VQB_BLK_FLUSH, VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES };
	uint32_t sector = roll(8), type = roll(2);

	for (unsigned i = 0; i < BATCH; i++) {
		if (!roll(6))
			type = roll(2);
		p[i].type = roll(12) ? type : types[roll(3)];
		p[i].sector = sector;
		p[i].sectors = 1 + roll(LONGEST);
		p[i].value = (uint8_t)(1 + roll(255));
		sector += p[i].sectors + (roll(5) ? 0 : roll(4));
	}
	for (unsigned i = 0; i < BATCH / 3; i++) {
		unsigned k = roll(BATCH - 1);
		struct planned swap = p[k];

		p[k] = p[k + 1];
		p[k + 1] = swap;
	}
}

static unsigned ask(struct bench *b, const struct planned *p)
{
	const struct bench_range range = { p->sector, p->sectors, 0 };
	uint8_t data[LONGEST * 512];
	uint32_t bytes = 512 * p->sectors;
	unsigned r;

	if (p->type == VQB_BLK_FLUSH)
		return bench_flush(b);
	if (p->type == VQB_BLK_IN)
		return bench_read(b, p->sector, p->sectors);
	if (p->type != VQB_BLK_OUT)
		return bench_ranges(b, p->type, &range, 1);
	memset(data, p->value, bytes);
	r = bench_build(b, p->type, p->sector, CUT(16, bytes), CUT(1));
	bench_fill(b, r, 16, data, bytes);
	bench_offer(b, r);
	return r;
}

static void *zeroed(size_t bytes)
{
	void *mem = aligned_alloc(64, VQB_ROUND_UP(bytes));

	assert_non_null(mem);
	memset(mem, 0, VQB_ROUND_UP(bytes));
	return mem;
}

static struct vqb_backend *bad_storage(struct bench *b, void **memory, void **fault)
{
	struct vqb_backend_memory_config below = { .struct_size = sizeof(below),
						   .access = VQB_READ | VQB_WRITE,
						   .disk = b->disk,
						   .bytes = SECTORS * 512 };
	struct vqb_backend_fault_config config = { .struct_size = sizeof(config),
						   .ios = 16,
						   .pieces = 8,
						   .delay = 4,
						   .alignment = 512,
						   .seed = seed };
	size_t bytes = vqb_backend_memory_size();
	struct vqb_backend *backend;

	config.rate[VQB_FAULT_SHORT] = config.rate[VQB_FAULT_DELAY] = OFTEN;
	config.rate[VQB_FAULT_REORDER] = config.rate[VQB_FAULT_FULL] = OFTEN;
	config.rate[VQB_FAULT_BAD_SECTOR] = BAD;
	*memory = zeroed(bytes);
	assert_int_equal(vqb_backend_memory_init(*memory, bytes, &below, &config.below), VQB_OK);
	bytes = vqb_backend_fault_size(&config);
	*fault = zeroed(bytes);
	assert_int_equal(vqb_backend_fault_init(*fault, bytes, &config, &backend), VQB_OK);
	return backend;
}

static void open_queue(struct bench *b, struct vqb_backend *backend, int merge)
{
	const uint64_t types = BIT(DISCARD) | BIT(WRITE_ZEROES);

	spy_can_all(&b->spy, 512 * 512);
	b->disk_config.features |= types;
	b->config.features |= types;
	b->spy.base.caps.max_transfer = 512 * 24;
	b->spy.base.caps.max_pieces = 16;
	bench_ring(b, 512);
	if (merge)
		bench_coalescer(b, 24, 8, 64);
	else
		b->config.coalescer = NULL;
	bench_start(b);
	b->config.backend = backend;
	assert_int_equal(bench_queue(b), VQB_OK);
}

static void gather(struct bench *b, struct vqb_backend *backend, struct played *out)
{
	struct vqb_backend_fault_counters fault;
	struct vqb_blk_queue_counters c;
	struct vqb_coalescer_counters joins = { 0 };

	for (unsigned i = 0; i < ALL; i++) {
		out->status[i] = bench_status(b, i);
		if (plan[i].type == VQB_BLK_IN)
			bench_written(b, i, out->data[i]);
	}
	bench_assert_gaps(b);
	memcpy(out->disk, b->disk, sizeof(out->disk));
	vqb_blk_queue_read_counters(b->queue, &c);
	vqb_backend_fault_read_counters(backend, &fault);
	assert_int_equal(c.requests, ALL);
	assert_int_equal(c.submissions, fault.ios);
	if (b->config.coalescer)
		vqb_coalescer_read_counters(b->config.coalescer, &joins);
	out->merges = c.read_merges + c.write_merges;
	out->partial = c.partial;
	out->retries = joins.retries[0] + joins.retries[1];
}

static void play(void **state, int merge, struct played *out)
{
	struct bench *b = bench_plan(state);
	void *memory, *fault;
	struct vqb_backend *backend = bad_storage(b, &memory, &fault);

	open_queue(b, backend, merge);
	for (unsigned i = 0; i < ALL; i += BATCH) {
		for (unsigned k = 0; k < BATCH; k++)
			assert_int_equal(ask(b, &plan[i + k]), i + k);
		for (unsigned steps = 0; bench_used(b) < i + BATCH; steps++) {
			assert_true(steps < 10000);
			vqb_blk_queue_run(b->queue, 256);
		}
	}
	gather(b, backend, out);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	free(fault);
	free(memory);
}

static uint8_t expected_status(uint64_t fault_seed, const struct planned *p)
{
	for (uint32_t i = p->sector; p->type != VQB_BLK_FLUSH && i < p->sector + p->sectors; i++) {
		if (vqb_backend_fault_is_bad(fault_seed, BAD, i))
			return VQB_BLK_S_IOERR;
	}
	return VQB_BLK_S_OK;
}

static void compare(uint64_t fault_seed, const struct played *with, const struct played *without)
{
	uint8_t open[SPACE] = { 0 }; /* a write has failed there, and none was good since */

	for (unsigned i = 0; i < ALL; i++) {
		const struct planned *p = &plan[i];

		assert_int_equal(with->status[i], expected_status(fault_seed, p));
		assert_int_equal(without->status[i], with->status[i]);
		if (p->type == VQB_BLK_FLUSH)
			continue;
		for (uint32_t k = 0; k < p->sectors; k++) {
			size_t at = 512 * (size_t)k;

			if (p->type != VQB_BLK_IN)
				open[p->sector + k] = with->status[i] != VQB_BLK_S_OK;
			else if (with->status[i] == VQB_BLK_S_OK && !open[p->sector + k])
				assert_memory_equal(with->data[i] + at, without->data[i] + at, 512);
		}
	}
	for (unsigned i = 0; i < SPACE; i++) {
		if (!open[i])
			assert_memory_equal(with->disk + 512 * (size_t)i,
					    without->disk + 512 * (size_t)i, 512);
	}
}

/* Shows: BLK-ANY-06 BLK-DEV-31 */
static void test_merging_changes_neither_statuses_nor_data(void **state)
{
	static struct played with, without;
	uint64_t merges = 0, retries = 0, partial = 0, rounds = length_of(ROUNDS);

	for (uint64_t round = length_seed(1); round < length_seed(1) + rounds; round++) {
		seed = round;
		for (unsigned i = 0; i < ALL; i += BATCH)
			plan_batch(plan + i);
		seed = round;
		play(state, 1, &with);
		play(state, 0, &without);
		compare(round, &with, &without);
		assert_int_equal(without.merges, 0);
		merges += with.merges;
		retries += with.retries;
		partial += with.partial;
	}
	/* That is what it was about. */
	assert_true(merges > rounds * 10);
	assert_true(retries > rounds);
	assert_true(partial > rounds);
	print_message("%u merges, %u retries, %u partial\n", (unsigned)merges, (unsigned)retries,
		      (unsigned)partial);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_merging_changes_neither_statuses_nor_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
