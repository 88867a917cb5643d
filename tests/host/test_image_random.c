/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backends of an image at random, against a model in memory: many ios in flight, of every kind
 * and cut, on a real file system and on tmpfs. Ios in flight at the same time don't overlap, as
 * what comes of that is open; everything else does.
 */
#define _GNU_SOURCE

#include "image_bench.h"
#include "random.h"

enum {
	PARTS = 48,   /* of the disk; one io at a time in each */
	PART = 32768, /* bytes */
	DISK = PARTS * PART,
	PIECES = 9,
	ROUNDS = 400, /* a quarter of them where a real disk has to follow */
};

/* One part of the disk, and the io that is under way in it. */
struct part {
	struct vqb_io io;
	struct vqb_piece piece[PIECES];
	int busy;
	uint8_t *buffer; /* PART bytes, and room to begin anywhere in a page */
	uint8_t *expect; /* what a read has to bring */
};

struct trial {
	struct image image;
	struct random random;
	struct part part[PARTS];
	uint8_t *model;
	uint32_t unit; /* offsets and lengths are multiples */
	unsigned in_flight, done, full;
};

/* Cuts the io's bytes into pieces, mostly in units, some empty; memory begins anywhere. */
static void cut_up(struct trial *t, struct part *p)
{
	uint32_t shift = random_one_in(&t->random, 2) ? 0 : random_below(&t->random, 4096);
	uint32_t unit = random_one_in(&t->random, 2) ? 512 : 1;
	uint64_t left = p->io.bytes;
	uint8_t *at = p->buffer + shift;

	p->io.pieces = 0;
	p->io.piece = p->piece;
	while (left) {
		uint64_t n = random_below(&t->random, 12) * (uint64_t)unit * 7;

		if (p->io.pieces == PIECES - 1 || n > left)
			n = left;
		p->piece[p->io.pieces++] = (struct vqb_piece){ at, (size_t)n };
		at += n;
		left -= n;
	}
}

static uint8_t *data_of(const struct part *p)
{
	return p->piece[0].base;
}

static void choose(struct trial *t, unsigned i)
{
	static const uint8_t ops[] = { VQB_BLK_IN,      VQB_BLK_IN,           VQB_BLK_IN,
				       VQB_BLK_OUT,     VQB_BLK_OUT,          VQB_BLK_OUT,
				       VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_FLUSH };
	struct part *p = &t->part[i];
	uint32_t units = PART / t->unit, begin = random_below(&t->random, units);
	uint32_t n = 1 + random_below(&t->random, units - begin);

	p->io = (struct vqb_io){ .op = ops[random_below(&t->random, sizeof(ops))] };
	if (p->io.op == VQB_BLK_DISCARD && !(t->image.backend->caps.can & VQB_CAN_DISCARD))
		p->io.op = VQB_BLK_IN;
	/* Rarely, as the disk below is a real one. */
	if (p->io.op == VQB_BLK_FLUSH && !random_one_in(&t->random, 20))
		p->io.op = VQB_BLK_OUT;
	if (p->io.op == VQB_BLK_OUT && random_one_in(&t->random, 100))
		p->io.flags = VQB_IO_FUA;
	if (p->io.op == VQB_BLK_WRITE_ZEROES && random_one_in(&t->random, 2))
		p->io.flags = VQB_IO_UNMAP;
	if (p->io.op == VQB_BLK_FLUSH)
		return;
	p->io.offset = (uint64_t)i * PART + (uint64_t)begin * t->unit;
	p->io.bytes = (uint64_t)n * t->unit;
	if (p->io.op != VQB_BLK_IN && p->io.op != VQB_BLK_OUT)
		return;
	cut_up(t, p);
	for (uint64_t k = 0; k < p->io.bytes; k++)
		data_of(p)[k] = p->io.op == VQB_BLK_IN ? 0xa5 : (uint8_t)random_word(&t->random);
}

/* What it does to the model, at once, as nothing else touches the part meanwhile. */
static void foresee(struct trial *t, struct part *p)
{
	uint8_t *at = t->model + p->io.offset;

	if (p->io.op == VQB_BLK_IN)
		memcpy(p->expect, at, p->io.bytes);
	else if (p->io.op == VQB_BLK_OUT)
		memcpy(at, data_of(p), p->io.bytes);
	else if (p->io.bytes)
		memset(at, 0, p->io.bytes);
}

static void collect(struct trial *t)
{
	struct vqb_io *io, *next;

	for (io = vqb_backend_poll(t->image.backend); io; io = next) {
		struct part *p = (struct part *)io;

		next = io->next;
		assert_true(p->busy);
		p->busy = 0;
		assert_int_equal(io->result, io->bytes);
		if (io->op == VQB_BLK_IN)
			assert_memory_equal(data_of(p), p->expect, io->bytes);
		t->in_flight--;
		t->done++;
	}
}

static void submit_some(struct trial *t)
{
	for (unsigned n = 1 + random_below(&t->random, PARTS); n; n--) {
		unsigned i = random_below(&t->random, PARTS);
		struct part *p = &t->part[i];
		int32_t status;

		if (p->busy)
			continue;
		choose(t, i);
		status = vqb_backend_submit(t->image.backend, &p->io);
		if (status == VQB_E_NOSPC) {
			assert_true(t->in_flight > 0);
			t->full++;
			return;
		}
		assert_int_equal(status, VQB_OK);
		p->busy = 1;
		t->in_flight++;
		foresee(t, p);
	}
}

/* Every other buffer, so that the kernel gets both kinds. */
static void register_some(struct trial *t)
{
	struct vqb_piece memory[PARTS / 2];
	int32_t status;

	if (t->image.kind != URING_DIRECT)
		return;
	for (unsigned i = 0; i < PARTS / 2; i++)
		memory[i] = (struct vqb_piece){ t->part[2 * i].buffer, PART + 4096 };
	status = vqb_uring_register_memory(t->image.backend, memory, PARTS / 2);
	if (status) {
		assert_int_equal(status, VQB_E_IO);
		printf("no memory can be registered here: %s\n", strerror(errno));
	}
}

static void run(struct trial *t)
{
	for (unsigned i = 0; i < PARTS; i++) {
		t->part[i].buffer = image_memory(PART + 4096);
		t->part[i].expect = image_memory(PART);
	}
	register_some(t);
	for (unsigned round = 0; round < (t->image.dir ? ROUNDS : ROUNDS / 4); round++) {
		int plugged = !random_one_in(&t->random, 4);

		if (plugged)
			vqb_backend_plug(t->image.backend);
		submit_some(t);
		if (random_one_in(&t->random, 3))
			collect(t);
		if (plugged)
			vqb_backend_unplug(t->image.backend);
		if (random_one_in(&t->random, 5))
			vqb_backend_drain(t->image.backend);
		collect(t);
	}
	vqb_backend_drain(t->image.backend);
	collect(t);
	assert_int_equal(t->in_flight, 0);
	if (t->image.kind == URING_DIRECT)
		assert_int_equal(vqb_uring_register_memory(t->image.backend, NULL, 0), VQB_OK);
	for (unsigned i = 0; i < PARTS; i++) {
		free(t->part[i].buffer);
		free(t->part[i].expect);
	}
}

/* In a directory, with room for `entries` ios. */
static void try_kind(enum image_kind kind, const char *dir, uint32_t entries)
{
	struct trial *t = calloc(1, sizeof(*t));
	uint8_t *found = malloc(DISK);

	assert_non_null(t);
	assert_non_null(found);
	t->image = (struct image){ .kind = kind, .dir = dir, .bytes = DISK, .entries = entries };
	if (image_open(&t->image)) {
		t->random.state = (uint64_t)kind + entries;
		t->unit = t->image.backend->caps.alignment;
		t->model = image_memory(DISK);
		image_fill(t->model, 0, DISK);
		run(t);
		image_peek(&t->image, found, 0, DISK);
		assert_memory_equal(found, t->model, DISK);
		assert_true(t->done > ROUNDS / 16);
		if (kind != SYNC_FILE && entries < PARTS / 4)
			assert_true(t->full > 0);
		free(t->model);
		image_close(&t->image);
	}
	free(found);
	free(t);
}

static void try_both(enum image_kind kind, uint32_t entries)
{
	try_kind(kind, NULL, entries);
	try_kind(kind, "/dev/shm", entries);
}

/* Shows: BLK-DEV-12 BLK-DEV-14 */
static void test_a_file_is_what_the_model_says(void **state)
{
	(void)state;
	try_both(SYNC_FILE, 0);
}

static void test_a_uring_is_what_the_model_says(void **state)
{
	(void)state;
	try_both(URING, 64);
}

static void test_a_small_uring_is_what_the_model_says(void **state)
{
	(void)state;
	try_both(URING, 3);
}

static void test_a_direct_uring_is_what_the_model_says(void **state)
{
	(void)state;
	try_both(URING_DIRECT, 64);
	try_both(URING_DIRECT, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_is_what_the_model_says),
		cmocka_unit_test(test_a_uring_is_what_the_model_says),
		cmocka_unit_test(test_a_small_uring_is_what_the_model_says),
		cmocka_unit_test(test_a_direct_uring_is_what_the_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
