/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of vectors and limits by chance: what the mapper makes of them against a model that tries
 * every way (segment_model.h). Counting, mapping, and mapping into a table that has just room
 * agree; each request is the longest there may be, of the fewest segments; every limit is kept at
 * both ends; every byte is there, in order.
 *
 * VQB_SEED repeats what was printed, with VQB_SHOW=1 each list is printed first; VQB_LONG=1 makes
 * a run twenty times as long.
 */
#include "model/differential.h"

#include "segment_model.h"

enum { MAX_VECTORS = 24, TABLE = 600, CANARY = 0x5a };

struct bio {
	struct vqb_limits limits;
	struct vqb_segment vec[MAX_VECTORS];
	uint32_t nvec;
	uint64_t sector, unit;
	bool spoilt;    /* a vector may be wrong, or the end within a block */
	bool in_blocks; /* every vector is whole blocks, at multiples of one */
};

static struct model_list list;
static uint64_t requests, splits, refused, checked;

static uint32_t roll(struct run *run, uint32_t below)
{
	return random_below(&run->random, below);
}

static bool one_in(struct run *run, uint32_t n)
{
	return random_one_in(&run->random, n);
}

/* ---- limits by chance, in units ---- */

static void make_unit(struct run *run, struct bio *bio)
{
	static const uint8_t shift[] = { 6, 6, 6, 6, 7, 8, 9, 9, 12, 20, 26 };

	bio->unit = UINT64_C(1) << shift[roll(run, sizeof(shift))];
	if (one_in(run, 2000))
		bio->unit = 1 << roll(run, 3);
}

/* A multiple of the unit, of up to `units`, that does as sectors. */
static uint32_t some_sectors(struct run *run, const struct bio *bio, uint32_t units)
{
	uint64_t grain = bio->unit > bio->limits.block_size ? bio->unit : bio->limits.block_size;
	uint64_t most = units * bio->unit / grain;

	return (uint32_t)((1 + roll(run, most ? (uint32_t)most : 1)) * grain / 512);
}

static void make_limits(struct run *run, struct bio *bio)
{
	struct vqb_limits *l = &bio->limits;
	uint64_t unit = bio->unit;

	vqb_limits_init(l);
	l->block_size = 512u << roll(run, unit < 64 || one_in(run, 2) ? 1 : 4);
	l->split_align = l->block_size << roll(run, 4);
	if (unit <= l->block_size && one_in(run, 4))
		l->split_offset = l->block_size * roll(run, l->split_align / l->block_size);
	l->max_segments = one_in(run, 3) ? UINT32_MAX : 1 + roll(run, 8);
	if (unit > 1 << 20 || !one_in(run, 3))
		l->max_segment_bytes = (uint32_t)unit * (1 + roll(run, one_in(run, 2) ? 12 : 48));
	if (one_in(run, 3))
		l->seg_boundary = (unit << roll(run, 7)) - 1;
	if (one_in(run, 3))
		l->virt_boundary = (unit << roll(run, 5)) - 1;
	l->max_sectors = some_sectors(run, bio, one_in(run, 2) ? 12 : 63);
	if (one_in(run, 3))
		l->chunk_sectors = some_sectors(run, bio, 40);
	if (one_in(run, 6))
		l->flags = VQB_LIMITS_NO_CLUSTER;
}

/* ---- vectors by chance ---- */

/* Somewhere near others, often at a boundary; now and then at an end of memory. */
static uint64_t some_place(struct run *run, const struct bio *bio, uint32_t len)
{
	uint64_t step = bio->unit << (one_in(run, 2) ? roll(run, 7) : 0);
	uint64_t at = UINT64_C(0x7000000000000000) + roll(run, 64) * step;

	if (one_in(run, 60))
		return one_in(run, 2) ? 0 : 0 - (uint64_t)len;
	return at;
}

static void make_vectors(struct run *run, struct bio *bio)
{
	uint32_t most = one_in(run, 8) ? 40 : 8, apart = 1 + roll(run, 5);
	uint64_t grain = bio->unit, end = 0;

	bio->in_blocks = one_in(run, 4) && bio->unit <= bio->limits.block_size;
	if (bio->in_blocks)
		grain = bio->limits.block_size;
	else if (bio->unit < 64)
		most = 300;
	if (bio->in_blocks)
		most = (uint32_t)(8 * bio->unit / grain) + 1;
	bio->nvec = 1 + roll(run, one_in(run, 4) ? MAX_VECTORS - 1 : 6);
	if (bio->unit < 64)
		bio->nvec = 1 + roll(run, 4);
	for (uint32_t i = 0; i < bio->nvec; i++) {
		struct vqb_segment *v = &bio->vec[i];

		v->len = (uint32_t)grain * (1 + roll(run, most));
		v->zero = 0;
		v->addr = end;
		if (!end || one_in(run, apart) || end + v->len - 1 < end)
			v->addr = some_place(run, bio, v->len) & ~(grain - 1);
		end = v->addr + v->len;
	}
}

static uint64_t bytes_of(const struct bio *bio)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < bio->nvec; i++)
		bytes += bio->vec[i].len;
	return bytes;
}

/* One more vector, so that the list is whole blocks. */
static void fill_up(struct run *run, struct bio *bio)
{
	struct vqb_segment *v = &bio->vec[bio->nvec];
	uint64_t over = bytes_of(bio) & (bio->limits.block_size - 1);

	if (!over)
		return;
	v->len = bio->limits.block_size - (uint32_t)over;
	v->addr = v[-1].addr + v[-1].len;
	v->zero = 0;
	if (v->addr + v->len < v->len || one_in(run, 4))
		v->addr = some_place(run, bio, v->len);
	bio->nvec++;
}

static void spoil(struct run *run, struct bio *bio)
{
	struct vqb_segment *v = &bio->vec[roll(run, bio->nvec)];

	bio->in_blocks = false;
	switch (roll(run, 4)) {
	case 0:
		v->len = 0;
		break;
	case 1:
		v->zero = 1u << roll(run, 32);
		break;
	case 2:
		v->addr = 0 - (uint64_t)v->len + bio->unit;
		break;
	default:
		break; /* only the end may be within a block */
	}
}

static void make_bio(struct run *run, struct bio *bio)
{
	uint64_t block;

	make_unit(run, bio);
	make_limits(run, bio);
	make_vectors(run, bio);
	block = bio->limits.block_size / 512;
	bio->sector = one_in(run, 2)
			      ? roll(run, 100) * block
			      : (random_word(&run->random) >> (1 + roll(run, 40))) & ~(block - 1);
	if (bio->unit > 512)
		bio->sector &= ~(bio->unit / 512 - 1);
	bio->spoilt = one_in(run, 10);
	if (bio->spoilt)
		spoil(run, bio);
	else
		fill_up(run, bio);
}

/* With VQB_SHOW set: each list, so that the last one can be seen. */
static void show(const struct bio *bio)
{
	const struct vqb_limits *l = &bio->limits;

	if (!length_is_set("VQB_SHOW"))
		return;
	printf("unit %" PRIu64 " sector %" PRIu64 " block %u split %u+%u sectors %u chunk %u "
	       "segments %u of %u boundary %" PRIx64 " virt %" PRIx64 " flags %u\n",
	       bio->unit, bio->sector, l->block_size, l->split_align, l->split_offset,
	       l->max_sectors, l->chunk_sectors, l->max_segments, l->max_segment_bytes,
	       l->seg_boundary, l->virt_boundary, l->flags);
	for (uint32_t i = 0; i < bio->nvec; i++)
		printf("  %" PRIx64 " + %x\n", bio->vec[i].addr, bio->vec[i].len);
	fflush(stdout);
}

/* ---- what is compared ---- */

/* The segments are units `from` on, within all limits. */
static void check_table(const struct run *run, const struct bio *bio,
			const struct vqb_segment *table, uint32_t n, uint32_t from)
{
	const struct vqb_limits *l = &bio->limits;
	uint32_t k = from;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t first = table[i].addr, last = first + (table[i].len - 1);

		holds(run, table[i].len && !table[i].zero);
		holds(run, table[i].len <= l->max_segment_bytes);
		holds(run, (first & ~l->seg_boundary) == (last & ~l->seg_boundary));
		holds(run, !i || !(first & l->virt_boundary));
		holds(run, i + 1 == n || !((last + 1) & l->virt_boundary));
		for (uint64_t at = 0; at < table[i].len; at += bio->unit, k++) {
			holds(run, k < list.units && list.addr[k] == first + at);
			if (at && l->flags & VQB_LIMITS_NO_CLUSTER)
				holds(run, list.vector[k] == list.vector[k - 1]);
		}
	}
}

static bool same_place(const struct vqb_mapper *a, const struct vqb_mapper *b)
{
	return a->at == b->at && a->offset == b->offset && a->sector == b->sector;
}

/* A call with an array of `room` and nothing behind it that may change. */
static int32_t map_into(const struct run *run, struct vqb_mapper *m, struct vqb_segment *table,
			uint32_t room, uint32_t *n, uint64_t *bytes)
{
	struct vqb_segment beyond;
	int32_t status;

	memset(table, CANARY, (room + 1) * sizeof(*table));
	memset(&beyond, CANARY, sizeof(beyond));
	status = vqb_map_next(m, table, room, n, bytes);
	holds(run, !memcmp(&table[room], &beyond, sizeof(beyond)));
	if (!status && m->at == m->nvec && !m->offset && *n < room)
		holds(run, !memcmp(&table[*n], &beyond, sizeof(beyond)));
	return status;
}

/* One request, four ways: by the model, counted, mapped, mapped into just enough. */
static bool next_request(struct run *run, const struct bio *bio, struct vqb_mapper *m,
			 uint32_t *unit)
{
	static struct vqb_segment table[TABLE + 1];
	uint32_t room = one_in(run, 4) ? roll(run, 8) : TABLE, n, counted;
	struct model_answer want = model_next(&bio->limits, &list, *unit, m->sector, room);
	struct vqb_mapper count = *m, tight = *m, before = *m;
	uint64_t bytes, counted_bytes;
	int32_t status = map_into(run, m, table, room, &n, &bytes);

	same(run, status, want.status);
	same(run, bytes, want.units * bio->unit);
	same(run, n, want.segments);
	same(run, vqb_map_next(&count, NULL, room, &counted, &counted_bytes), status);
	holds(run, counted == n && counted_bytes == bytes && same_place(&count, m));
	if (status) {
		holds(run, same_place(m, &before));
		return false;
	}
	same(run, m->sector - before.sector, bytes / 512);
	check_table(run, bio, table, n, *unit);
	same(run, map_into(run, &tight, table, n, &counted, &counted_bytes), VQB_OK);
	holds(run, counted == n && counted_bytes == bytes && same_place(&tight, m));
	check_table(run, bio, table, n, *unit);
	*unit += want.units;
	requests++;
	splits += m->at < m->nvec;
	return true;
}

/* Blocks that lie as blocks do get through wherever limits were found good. */
static void check_progress(struct run *run, const struct bio *bio)
{
	struct vqb_mapper m = vqb_mapper_over(&bio->limits, bio->vec, bio->nvec, bio->sector);
	struct vqb_segment block = { .addr = bio->limits.block_size,
				     .len = bio->limits.block_size };
	uint32_t rule, n;
	uint64_t bytes;
	int32_t status;

	(void)vqb_limits_check(&bio->limits, &rule);
	if (rule == VQB_LIMITS_FINE && bio->in_blocks) {
		checked++;
		while (vqb_mapper_more(&m))
			same(run, vqb_map_next(&m, NULL, UINT32_MAX, &n, &bytes), VQB_OK);
	}
	m = vqb_mapper_over(&bio->limits, &block, 1, 0);
	status = vqb_map_next(&m, NULL, UINT32_MAX, &n, &bytes);
	if (rule == VQB_LIMITS_PROGRESS)
		same(run, status, VQB_E_TOOBIG);
	else if (rule == VQB_LIMITS_FINE)
		same(run, status, VQB_OK);
}

/* Shows: K31 K32 K35 BLK-ANY-05 */
static void mapper_and_model_agree(void **state)
{
	struct run run;
	struct bio bio;

	(void)state;
	for (run_start(&run, 2000 * 1000); run_episode(&run);) {
		struct vqb_mapper m;
		uint32_t unit = 0;

		make_bio(&run, &bio);
		run_operation(&run, "map");
		show(&bio);
		model_lay_out(&list, bio.vec, bio.nvec, bio.unit);
		m = vqb_mapper_over(&bio.limits, bio.vec, bio.nvec, bio.sector);
		while (vqb_mapper_more(&m) && next_request(&run, &bio, &m, &unit))
			;
		refused += vqb_mapper_more(&m) ? 1 : 0;
		check_progress(&run, &bio);
	}
	/* It was about something. */
	assert_true(requests > run.done && splits > run.done / 4);
	assert_true(refused > run.done / 20 && refused < run.done / 2 && checked > run.done / 50);
	printf("%llu lists, %llu requests, %llu splits, %llu refused, %llu in blocks\n",
	       (unsigned long long)run.done, (unsigned long long)requests,
	       (unsigned long long)splits, (unsigned long long)refused,
	       (unsigned long long)checked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapper_and_model_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
