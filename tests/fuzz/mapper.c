/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapper.c: a mapper over whatever vectors, under whatever limits.
 *
 * The input is limits and then vectors. In one kind all numbers are multiples of a unit, and each
 * request is compared with a model that tries every way; in the other they are arbitrary, limits
 * that vqb_limits_check refuses included: then nothing is written beside the table, the walk moves
 * on or says why not, counting and mapping agree, and under limits that make sense all are kept.
 */
#include "fuzz.h"

#include "block/segment_model.h"

enum { CONFIG = 48, MAX_VECTORS = 64, MAX_ROOM = 64, MAX_REQUESTS = 300, MAX_UNITS = 400 };

struct run {
	struct fuzz_input in;
	struct vqb_limits limits;
	struct vqb_segment vec[MAX_VECTORS];
	uint32_t nvec, room;
	uint64_t sector, unit;
	bool good; /* the limits */
};

static struct model_list list;

/* ---- the input ---- */

static uint64_t some_mask(struct fuzz_input *in, uint64_t unit, uint64_t none)
{
	uint8_t v = fuzz_u8(in);

	return v & 0x80 ? (unit << (v & 15)) - 1 : none;
}

static void read_unit_limits(struct run *r, struct fuzz_input *in)
{
	struct vqb_limits *l = &r->limits;

	r->unit = UINT64_C(1) << (6 + fuzz_below(in, 4));
	l->block_size = 512u << fuzz_below(in, 3);
	l->split_align = l->block_size << fuzz_below(in, 4);
	l->split_offset = l->block_size * fuzz_u8(in) & (l->split_align - 1);
	l->max_segments = 1 + fuzz_count(in) % UINT32_MAX;
	l->max_segment_bytes = (uint32_t)r->unit * (1 + fuzz_u8(in));
	l->seg_boundary = some_mask(in, r->unit, UINT64_MAX);
	l->virt_boundary = some_mask(in, r->unit, 0);
	l->max_sectors = (1 + fuzz_u8(in)) * (l->block_size / 512);
	l->chunk_sectors = fuzz_u8(in) * (l->block_size / 512);
	l->flags = fuzz_u8(in) & 1;
	r->sector = fuzz_u16(in) * (uint64_t)(l->block_size / 512);
}

static void read_any_limits(struct run *r, struct fuzz_input *in)
{
	struct vqb_limits *l = &r->limits;
	uint8_t shifts = fuzz_u8(in);

	l->block_size = shifts & 0x80 ? fuzz_u32(in) : 512u << (shifts & 7);
	l->split_align = shifts & 0x40 ? fuzz_u32(in) : l->block_size << (shifts >> 3 & 7);
	l->split_offset = shifts & 0x40 ? fuzz_u32(in) : 0;
	l->max_segments = fuzz_count(in);
	l->max_segment_bytes = fuzz_len(in) << (fuzz_u8(in) & 15);
	l->seg_boundary = fuzz_u8(in) & 1 ? fuzz_u64(in) : some_mask(in, 1, UINT64_MAX);
	l->virt_boundary = fuzz_u8(in) & 1 ? fuzz_u64(in) : some_mask(in, 1, 0);
	l->max_sectors = fuzz_count(in);
	l->chunk_sectors = fuzz_count(in);
	l->flags = fuzz_u8(in);
	r->sector = fuzz_u8(in) & 1 ? fuzz_u64(in) : fuzz_u8(in) * UINT64_C(8);
}

/* A neighbour of the one before, or near it, or anywhere. */
static void read_vector(struct run *r, struct vqb_segment *v, uint64_t end)
{
	uint8_t how = fuzz_u8(&r->in);

	v->zero = how == 0xff ? fuzz_u32(&r->in) : 0;
	v->len = r->unit ? (uint32_t)r->unit * fuzz_below(&r->in, 24) : fuzz_len(&r->in);
	if (!r->unit && how & 0x40)
		v->len <<= 9;
	v->addr = end;
	if (how & 1)
		v->addr += (fuzz_u8(&r->in) - 64) * (r->unit ? r->unit : 256);
	else if (how & 2)
		v->addr = (r->unit ? r->unit : 1) * fuzz_u64(&r->in);
}

static void read_vectors(struct run *r)
{
	uint64_t end = 0x10000, units = 0;

	while (fuzz_more(&r->in) && r->nvec < MAX_VECTORS && units < MAX_UNITS) {
		struct vqb_segment *v = &r->vec[r->nvec++];

		read_vector(r, v, end);
		end = v->addr + v->len;
		units += r->unit ? v->len / r->unit : 1;
	}
}

/* ---- what must hold ---- */

/* The segments are the vectors' next bytes, in order. */
static void check_bytes(const struct run *r, struct vqb_mapper from, const struct vqb_segment *out,
			uint32_t n, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t done = 0;

		FUZZ_CHECK(out[i].len && !out[i].zero);
		while (done < out[i].len) {
			uint64_t part = out[i].len - done;

			FUZZ_CHECK(from.at < r->nvec);
			FUZZ_CHECK(out[i].addr + done == r->vec[from.at].addr + from.offset);
			if (part > r->vec[from.at].len - from.offset)
				part = r->vec[from.at].len - from.offset;
			from.offset += (uint32_t)part;
			done += part;
			if (from.offset == r->vec[from.at].len) {
				from.at++;
				from.offset = 0;
			}
		}
		sum += done;
	}
	FUZZ_CHECK(sum == bytes);
}

static void check_limits(const struct run *r, uint64_t sector, const struct vqb_segment *out,
			 uint32_t n, uint64_t bytes)
{
	const struct vqb_limits *l = &r->limits;

	FUZZ_CHECK(n <= l->max_segments && bytes / 512 <= l->max_sectors);
	FUZZ_CHECK(!(bytes % l->block_size));
	if (l->chunk_sectors)
		FUZZ_CHECK(sector / l->chunk_sectors ==
			   (sector + (bytes / 512 - 1)) / l->chunk_sectors);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t last = out[i].addr + (out[i].len - 1);

		FUZZ_CHECK(out[i].len <= l->max_segment_bytes && last >= out[i].addr);
		FUZZ_CHECK(!((out[i].addr ^ last) & ~l->seg_boundary));
		if (i)
			FUZZ_CHECK(!vqb_segments_gap(l, &out[i - 1], &out[i]));
	}
}

static void check_model(const struct run *r, uint32_t *unit, uint64_t sector, int32_t status,
			uint32_t n, uint64_t bytes)
{
	struct model_answer want = model_next(&r->limits, &list, *unit, sector, r->room);

	FUZZ_CHECK(status == want.status && n == want.segments && bytes == want.units * r->unit);
	*unit += want.units;
}

static bool same_place(const struct vqb_mapper *a, const struct vqb_mapper *b)
{
	return a->at == b->at && a->offset == b->offset && a->sector == b->sector;
}

/* One request; false: there is no next. */
static bool request(const struct run *r, struct vqb_mapper *m, uint32_t *unit)
{
	struct vqb_segment *out = fuzz_alloc(r->room * sizeof(*out));
	struct vqb_mapper before = *m, count = *m;
	uint32_t n, counted;
	uint64_t bytes, sum;
	int32_t status = vqb_map_next(m, out, r->room, &n, &bytes);

	FUZZ_CHECK(vqb_map_next(&count, NULL, r->room, &counted, &sum) == status);
	FUZZ_CHECK(same_place(&count, m) && counted == n && sum == bytes && n <= r->room);
	if (r->unit)
		check_model(r, unit, before.sector, status, n, bytes);
	if (status) {
		FUZZ_CHECK(status == VQB_E_INVALID || status == VQB_E_TOOBIG);
		FUZZ_CHECK(same_place(&before, m) && !n && !bytes);
	} else {
		FUZZ_CHECK(n && bytes && !same_place(&before, m));
		FUZZ_CHECK(m->sector - before.sector == bytes / 512);
		check_bytes(r, before, out, n, bytes);
		if (r->good)
			check_limits(r, before.sector, out, n, bytes);
	}
	free(out);
	return !status && vqb_mapper_more(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r = { .in = { data, data + size } };
	struct fuzz_input config = fuzz_cut(&r.in, CONFIG);
	struct vqb_mapper m;
	uint32_t unit = 0;

	vqb_limits_init(&r.limits);
	if (fuzz_u8(&config) & 1)
		read_any_limits(&r, &config);
	else
		read_unit_limits(&r, &config);
	r.room = fuzz_below(&config, MAX_ROOM + 1);
	r.good = !vqb_limits_check(&r.limits, NULL);
	read_vectors(&r);
	if (r.unit)
		model_lay_out(&list, r.vec, r.nvec, r.unit);
	m = vqb_mapper_over(&r.limits, r.vec, r.nvec, r.sector);
	for (uint32_t i = 0; i < MAX_REQUESTS && vqb_mapper_more(&m); i++)
		if (!request(&r, &m, &unit))
			break;
	return 0;
}
