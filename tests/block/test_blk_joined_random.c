/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests by chance that overlap, are neighbours, fail, find the backend full and finish in any
 * order, through coalescers of any size: whatever is joined and tried again, each request comes
 * back once with the status it earned, and the disk and all that was read are as if they had been
 * carried out one by one in the order of the ring.
 *
 * For that the backend carries out an io when it accepts it, and finishes it when chance says. One
 * sector of the disk is bad, so that some joined submissions fail as a whole.
 */
#include "dry.h"

#define BIT(name) VQB_FEATURE(VQB_BLK_F_##name)

enum { ROUNDS = 600, BATCH = 28, SPACE = 20, LONGEST = 4 /* sectors */ };

static uint64_t seed;

static uint32_t roll(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

struct expected {
	unsigned r;
	uint32_t type, bytes;
	uint8_t status;
	uint8_t data[LONGEST * 512]; /* of a good read */
};

static uint8_t model[SECTORS * 512];

static uint32_t roll_type(void)
{
	const uint32_t types[] = { VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_FLUSH };

	return roll(10) ? roll(4) != 0 : types[roll(3)]; /* three writes on a read */
}

static unsigned ask(struct bench *b, uint32_t type, uint64_t sector, uint32_t sectors,
		    uint8_t value)
{
	const struct bench_range range = { sector, sectors, 0 };
	uint32_t bytes = 512 * sectors, cut = roll(bytes + 1);
	uint8_t data[LONGEST * 512];
	unsigned r;

	if (type == VQB_BLK_FLUSH)
		return bench_flush(b);
	if (type == VQB_BLK_IN)
		return bench_ask(b, type, sector, CUT(16), CUT(cut, bytes - cut, 1));
	if (type != VQB_BLK_OUT)
		return bench_ranges(b, type, &range, 1);
	memset(data, value, bytes);
	r = bench_build(b, type, sector, CUT(16, cut, bytes - cut), CUT(1));
	bench_fill(b, r, 16, data, bytes);
	bench_offer(b, r);
	return r;
}

/* The next request, done in the model at once. */
static void ask_next(struct bench *b, struct expected *e, uint8_t value)
{
	static uint64_t end; /* of the one before, so that there are neighbours */
	uint32_t sectors = 1 + roll(LONGEST), type = roll_type();
	uint64_t sector = end < SPACE && roll(3) ? end : roll(SPACE), from = sector * 512;

	end = sector + sectors;
	e->type = type;
	e->bytes = 512 * sectors;
	e->status = VQB_BLK_S_OK;
	e->r = ask(b, type, sector, sectors, value);
	if (type == VQB_BLK_FLUSH)
		return;
	if (b->spy.bad && b->spy.bad >= from && b->spy.bad < from + e->bytes)
		e->status = VQB_BLK_S_IOERR;
	else if (type == VQB_BLK_IN)
		memcpy(e->data, model + from, e->bytes);
	else
		memset(model + from,
		       type == VQB_BLK_OUT       ? value
		       : type == VQB_BLK_DISCARD ? DISCARDED
						 : 0,
		       e->bytes);
}

static void plan(struct bench *b)
{
	const uint64_t types = BIT(DISCARD) | BIT(WRITE_ZEROES);

	spy_can_all(&b->spy, 512 * 512);
	b->disk_config.features |= types;
	b->config.features |= types;
	b->spy.base.caps.max_transfer = 512 * (LONGEST + roll(12));
	b->spy.base.caps.max_pieces = 2 + roll(20);
	b->spy.manual = b->spy.eager = 1;
	b->spy.room = 1 + roll(5);
	bench_ring(b, 128);
	b->spy.bad = roll(4) ? 512 * (uint64_t)(1 + roll(SPACE)) : 0;
	b->config.requests = 1 + roll(BATCH);
	b->config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3 + roll(60);
	b->config.coalescer = NULL;
	if (roll(10))
		bench_coalescer(b, 1 + roll(12), 1 + roll(5), roll(24));
}

/* One thing happens. */
static void step(struct bench *b)
{
	b->spy.fulls = b->spy.holds ? roll(2) : 0;
	if (b->spy.holds && roll(2))
		spy_finish(&b->spy, roll(b->spy.holds));
	switch (roll(8)) {
	case 0:
		vqb_blk_queue_quiesce(b->queue);
		vqb_device_publish(b->dev);
		break;
	case 1:
		vqb_blk_queue_poll(b->queue, 1 + roll(8));
		break;
	default:
		vqb_blk_queue_run(b->queue, 1 + roll(8));
		break;
	}
}

static void check(const struct bench *b, const struct expected *e)
{
	int good = e->status == VQB_BLK_S_OK, read = e->type == VQB_BLK_IN;
	uint8_t got[LONGEST * 512 + 1];

	bench_assert_reply(b, e->r, e->status, !read ? 1 : good ? e->bytes + 1 : 0);
	if (!read || !good)
		return;
	bench_written(b, e->r, got);
	assert_memory_equal(got, e->data, e->bytes);
}

/* Every other round begins with a queue that has had nothing to join for long, and a new ring. */
static void start(struct bench *b)
{
	struct spy spy = b->spy;

	bench_start(b);
	if (roll(2))
		return;
	b->spy.manual = b->spy.eager = 0;
	b->spy.bad = 0;
	b->spy.room = LOG;
	dry_out(b, DRY);
	assert_int_equal(vqb_device_reset(b->dev, NULL), VQB_OK);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	bench_ring(b, 128);
	assert_int_equal(vqb_device_reset(b->dev, &b->ring_config.ring), VQB_OK);
	assert_int_equal(vqb_blk_queue_accept(b->queue, b->config.features), VQB_OK);
	vqb_blk_queue_clear_counters(b->queue);
	b->asks = 0;
	b->spy = spy;
}

/* Shows: BLK-ANY-06 BLK-DEV-05 BLK-DEV-31 K30 */
static void test_requests_by_chance_end_as_if_done_one_by_one(void **state)
{
	static struct expected e[BATCH];
	uint64_t merges = 0, retries = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct bench *b = bench_plan(state);
		struct vqb_blk_queue_counters counters;
		unsigned asked = 0, steps = 0;

		seed = round;
		plan(b);
		start(b);
		memcpy(model, b->disk, sizeof(model));
		while (bench_used(b) < BATCH) {
			while (asked < BATCH && roll(6)) {
				ask_next(b, &e[asked], (uint8_t)(round * BATCH + asked));
				asked++;
			}
			step(b);
			assert_true(++steps < 10000);
		}
		for (unsigned i = 0; i < BATCH; i++)
			check(b, &e[i]);
		assert_memory_equal(b->disk, model, sizeof(model));
		assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
		assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
		vqb_blk_queue_read_counters(b->queue, &counters);
		merges += counters.read_merges + counters.write_merges;
		retries += b->spy.calls > BATCH;
	}
	/* That is what it was about. */
	assert_true(merges > ROUNDS);
	assert_true(retries > ROUNDS / 100);
	print_message("%u rounds, %u merges\n", (unsigned)ROUNDS, (unsigned)merges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_requests_by_chance_end_as_if_done_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
