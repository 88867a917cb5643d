/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests by chance against a model: any type, place, length and cut, over a backend that holds
 * them, is full, cuts them short and finishes them in any order. Whatever happens, each request
 * comes back once with the status it earned, the disk is what the model says, and no byte is
 * written beside a buffer. Chains of pure noise in between change nothing.
 */
#include "blk_bench.h"

enum { ROUNDS = 600, BATCH = 6, SPAN = 16 /* sectors of one request's own part of the disk */ };

static uint64_t seed;

static uint32_t roll(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

/* What a request has to come to. */
struct expected {
	unsigned r;
	int malformed;
	uint8_t status;
	uint32_t length;
	uint64_t sector; /* of a good read */
	uint32_t read;   /* its bytes */
};

/* `bytes` bytes in up to four parts; some may be empty. */
static size_t cut_up(uint32_t bytes, uint32_t *cut)
{
	size_t n = 0, parts = 1 + roll(4);

	while (n + 1 < parts) {
		cut[n] = roll(bytes + 1);
		bytes -= cut[n++];
	}
	cut[n++] = bytes;
	return n;
}

static unsigned ask(struct bench *b, uint32_t type, uint64_t sector, uint32_t out, uint32_t in)
{
	uint32_t outs[4], ins[4];
	size_t n = cut_up(out, outs), m = cut_up(in, ins);

	return bench_ask(b, type, sector, outs, n, ins, m);
}

static struct expected good_or_bad(int good, uint32_t in_bytes, uint32_t filled)
{
	struct expected e = { .status = good ? VQB_BLK_S_OK : VQB_BLK_S_IOERR };

	e.length = good ? filled + 1 : in_bytes ? 0 : 1;
	return e;
}

/* A read or write in part number `k` of the disk, mostly good. */
static struct expected ask_transfer(struct bench *b, uint8_t *model, unsigned k)
{
	uint32_t type = roll(2), skew = roll(8) ? 0 : 1 + roll(511);
	uint32_t bytes = 512 * roll(5) + skew;
	uint64_t sector = SPAN * k + roll(SPAN - 4), far = roll(8) ? 0 : UINT64_MAX >> roll(50);
	int good = !skew && !far;
	struct expected e = good_or_bad(good, type ? 0 : bytes, type ? 0 : bytes);

	e.r = ask(b, type, sector | far, 16 + (type ? bytes : 0), 1 + (type ? 0 : bytes));
	e.sector = sector;
	e.read = good && !type ? bytes : 0;
	if (good && type)
		memset(model + sector * 512, PATTERN, bytes);
	return e;
}

static struct expected ask_other(struct bench *b)
{
	const uint32_t types[] = { VQB_BLK_FLUSH, VQB_BLK_GET_ID, 2, 5, 11, 13, 77, 0x80000001 };
	uint32_t type = types[roll(8)], in = roll(2) ? 20 : roll(40), out = 16 + roll(2) * roll(40);
	struct expected e = { .status = VQB_BLK_S_UNSUPP, .length = in ? 0 : 1 };

	if (type == VQB_BLK_FLUSH)
		e.status = VQB_BLK_S_OK;
	if (type == VQB_BLK_GET_ID)
		e = good_or_bad(in == 20 && out == 16, in, in);
	e.r = ask(b, type, roll(100), out, in + 1);
	return e;
}

static struct expected ask_noise(struct bench *b)
{
	struct expected e = { .malformed = 1 };
	uint32_t out = roll(2) ? 1 + roll(15) : 16;

	if (out == 16)
		e.r = bench_ask(b, roll(20), 0, CUT(out, 0, roll(100)), CUT(0));
	else
		e.r = ask(b, roll(20), 0, out, roll(600));
	return e;
}

static struct expected ask_any(struct bench *b, uint8_t *model, unsigned k)
{
	uint32_t kind = roll(10);

	return kind < 7 ? ask_transfer(b, model, k) : kind < 9 ? ask_other(b) : ask_noise(b);
}

/* Lets the backend do things until all is done. */
static void let_it_work(struct bench *b, unsigned requests)
{
	for (unsigned step = 0; bench_used(b) < requests; step++) {
		assert_true(step < 10000);
		b->spy.part = roll(3) ? 0 : 512 * (1 + roll(3));
		b->spy.fulls = b->spy.holds ? roll(2) : 0;
		if (b->spy.holds && roll(2))
			spy_finish(&b->spy, roll(b->spy.holds));
		if (roll(4))
			vqb_blk_queue_run(b->queue, 1 + roll(4));
		else
			vqb_blk_queue_poll(b->queue, 1 + roll(4));
	}
}

static void check(struct bench *b, const struct expected *e, const uint8_t *model)
{
	static uint8_t got[8192];

	assert_int_equal(bench_length(b, e->r), e->malformed ? 0 : e->length);
	if (e->malformed) {
		bench_assert_blank(b, e->r);
		return;
	}
	assert_int_equal(bench_status(b, e->r), e->status);
	if (!e->read)
		return;
	bench_written(b, e->r, got);
	assert_memory_equal(got, model + e->sector * 512, e->read);
}

static void round_of_requests(void **state, uint8_t *model)
{
	struct bench *b = bench_plan(state);
	struct expected e[BATCH];

	b->config.requests = 1 + roll(BATCH);
	b->config.pieces = 8 + roll(30);
	bench_start(b);
	b->spy.manual = 1;
	b->spy.room = 1 + roll(4);
	for (unsigned i = 0; i < 512 * SECTORS; i++)
		model[i] = disk_byte(i);
	for (unsigned i = 0; i < BATCH; i++)
		e[i] = ask_any(b, model, i);
	let_it_work(b, BATCH);
	for (unsigned i = 0; i < BATCH; i++)
		check(b, &e[i], model);
	bench_assert_gaps(b);
	assert_memory_equal(b->disk, model, SECTORS * 512);
	assert_int_equal(vqb_blk_queue_quiesce(b->queue), VQB_OK);
	assert_int_equal(vqb_blk_queue_in_flight(b->queue), 0);
}

/* Shows: SR-DEV-01 SR-DEV-03 SR-DEV-16 BLK-ANY-06 BLK-DEV-26 BLK-DEV-29 BLK-DEV-30 BLK-DEV-31 */
static void test_requests_by_chance_do_what_the_model_does(void **state)
{
	static uint8_t model[SECTORS * 512];

	for (uint64_t i = 0; i < ROUNDS; i++) {
		seed = i;
		round_of_requests(state, model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(test_requests_by_chance_do_what_the_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
