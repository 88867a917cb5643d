/* SPDX-License-Identifier: BSD-3-Clause */
/* bio_feed.c: see bio_feed.h. */
#include "bio_feed.h"

static uint32_t roll(const struct feed *f, uint32_t below)
{
	return random_below(&f->m->run->random, below);
}

static bool one_in(const struct feed *f, uint32_t n)
{
	return random_one_in(&f->m->run->random, n);
}

void feed_open(struct feed *f, struct model *m)
{
	memset(f, 0, sizeof(*f));
	f->m = m;
	f->plain = one_in(f, 5);
	f->mode = roll(f, 5) < 2 ? FEED_OVERLAPS : one_in(f, 4) ? FEED_BOTH : FEED_FAULTS;
	f->apart = 1 + roll(f, one_in(f, 2) ? 8 : 40);
	f->strange = one_in(f, 3) ? 4 : 10 + roll(f, 100);
	f->spoils = 10 + roll(f, 100);
	f->writes = roll(f, 11);
	f->ranges = one_in(f, 3) ? roll(f, 11) : roll(f, 3);
	f->prios = one_in(f, 4) ? 3 : 1;
	if (f->plain) {
		m->bios = 40 + roll(f, 40);
		f->strange = 1000;
		f->prios = 1;
		f->ranges = 0;
	}
	m->ticking = one_in(f, 3);
	f->clock.state = random_word(&m->run->random);
	m->replayed = f->mode != FEED_BOTH;
	m->apart = f->mode == FEED_FAULTS;
	if (f->mode != FEED_OVERLAPS && one_in(f, 2))
		m->flush_fails = 2 + roll(f, 10);
}

void feed_faults(struct feed *f, uint32_t queue)
{
	int8_t *bad = f->m->queue[queue].bad;
	uint32_t rate = 10 + roll(f, 400);

	memset(bad, 0, MODEL_DISK_SECTORS);
	for (uint32_t i = 0; f->mode != FEED_OVERLAPS && i < MODEL_DISK_SECTORS; i++)
		if (one_in(f, rate))
			bad[i] = one_in(f, 4) ? VQB_E_UNSUPP : VQB_E_IO;
}

/* ---- limits ---- */

static void some_ranges(struct feed *f, uint32_t block, struct vqb_range_limits *r)
{
	memset(r, 0, sizeof(*r));
	if (one_in(f, 5))
		return;
	r->max_sectors = one_in(f, 2) ? UINT32_MAX & ~(block - 1) : block * (1 + roll(f, 12));
	r->max_ranges = one_in(f, 3) ? 1 : 1 + roll(f, 12);
	r->alignment = one_in(f, 3) ? block << roll(f, 4) : 0;
}

static void try_limits(struct feed *f, uint32_t segments, struct vqb_limits *l)
{
	uint32_t block, unit = MODEL_UNIT;

	vqb_limits_init(l);
	l->block_size = 512u << (one_in(f, 2) ? 0 : roll(f, 3));
	block = l->block_size / 512;
	l->split_align = l->block_size << (one_in(f, 2) ? 0 : roll(f, 4));
	if (one_in(f, 4))
		l->split_offset = l->block_size * roll(f, l->split_align / l->block_size);
	l->max_segments = one_in(f, 3) ? segments : 1 + roll(f, one_in(f, 2) ? 4 : segments);
	if (one_in(f, 3))
		l->max_segment_bytes = unit * (1 + roll(f, one_in(f, 2) ? 8 : 40));
	if (one_in(f, 4))
		l->seg_boundary = ((uint64_t)unit << roll(f, 8)) - 1;
	if (one_in(f, 4))
		l->virt_boundary = ((uint64_t)unit << roll(f, 5)) - 1;
	if (one_in(f, 2))
		l->max_sectors = block * (1 + roll(f, 40));
	if (one_in(f, 3))
		l->chunk_sectors = block * (1 + roll(f, 32));
	if (one_in(f, 8))
		l->flags = VQB_LIMITS_NO_CLUSTER;
	if (l->max_segments > segments)
		l->max_segments = segments;
	some_ranges(f, block, &l->discard);
	some_ranges(f, block, &l->zeroes);
	some_ranges(f, block, &l->erase);
}

uint64_t feed_clock(void *feed)
{
	struct feed *f = feed;

	if (!f->m->ticking)
		return 0;
	f->ticks += random_word(&f->clock) >> (random_one_in(&f->clock, 30) ? 20 : 44) >>
		    random_below(&f->clock, 20);
	return f->ticks;
}

void feed_config(struct feed *f, uint32_t segments, struct vqb_limits *limits,
		 struct vqb_requests_config *config)
{
	memset(config, 0, sizeof(*config));
	do
		try_limits(f, segments, limits);
	while (vqb_limits_check(limits, NULL));
	config->struct_size = sizeof(*config);
	config->path = one_in(f, 6) ? VQB_PATH_BIO : 2 * roll(f, 2);
	config->flags = one_in(f, 5) ? VQB_REQUESTS_WRITE_THROUGH : 0;
	config->max_ranges = one_in(f, 6) ? 0 : 1 + roll(f, 8);
	if (!one_in(f, 6))
		config->features |= VQB_FEATURE(VQB_BLK_F_FLUSH);
	if (one_in(f, 2))
		config->features |= VQB_FEATURE(VQB_BLK_F_LIFETIME);
	if (one_in(f, 20))
		config->features |= VQB_FEATURE(VQB_BLK_F_RO);
	config->window = one_in(f, 3) ? 1 + roll(f, 20) : 0;
	config->capacity = MODEL_DISK_SECTORS - 8 * roll(f, 20);
	if (!f->plain && one_in(f, 2))
		config->capacity /= 4;
	config->limits = limits;
	config->clock = feed_clock;
	config->context = f;
}

/* ---- bios ---- */

static uint8_t some_op(struct feed *f)
{
	static const uint8_t range[] = { VQB_BLK_DISCARD, VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES,
					 VQB_BLK_WRITE_ZEROES, VQB_BLK_SECURE_ERASE };
	static const uint8_t other[] = { VQB_BLK_FLUSH, VQB_BLK_FLUSH, VQB_BLK_FLUSH,
					 VQB_BLK_GET_ID, VQB_BLK_GET_LIFETIME };

	if (one_in(f, f->strange))
		return other[roll(f, sizeof(other))];
	if (roll(f, 10) < f->ranges)
		return range[roll(f, sizeof(range))];
	return roll(f, 10) < f->writes ? VQB_BLK_OUT : VQB_BLK_IN;
}

static bool is_free_there(const struct feed *f, uint32_t queue, const struct vqb_bio *bio,
			  uint64_t sectors)
{
	for (uint32_t i = 0; i < f->m->bios; i++) {
		const struct model_bio *b = &f->m->bio[i];

		if (b->queue != (int32_t)queue || b->state == VQB_BIO_IDLE ||
		    !model_has_sectors(b->bio.op))
			continue;
		/* A write whose data waits for a flush may be passed. */
		if (f->mode == FEED_OVERLAPS && !((b->bio.flags | bio->flags) & VQB_BIO_PREFLUSH))
			continue;
		if (f->mode == FEED_BOTH)
			continue;
		if (bio->sector < b->bio.sector + model_sectors(b) &&
		    b->bio.sector < bio->sector + sectors)
			return false;
	}
	return true;
}

/* Behind the last one, before it, or elsewhere. */
static bool some_sector(struct feed *f, uint32_t queue, struct vqb_bio *bio, uint64_t sectors)
{
	const struct model_queue *q = &f->m->queue[queue];
	uint64_t block = q->limits.block_size / 512, room = q->capacity / block * block;

	for (int i = 0; i < 8; i++) {
		bool back = one_in(f, 3);

		if (!i && !one_in(f, f->apart))
			bio->sector = back ? f->last[queue].first - sectors : f->last[queue].end;
		else
			bio->sector = block * roll(f, (uint32_t)((room - sectors) / block) + 1);
		if (f->mode != FEED_FAULTS && one_in(f, 6))
			bio->sector = bio->sector % 64 / block * block;
		if (bio->sector <= room - sectors && is_free_there(f, queue, bio, sectors))
			return true;
	}
	return false;
}

static bool memory_is_free(const struct model *m, uint32_t at, uint32_t units)
{
	if (at + units > MODEL_MEMORY_UNITS)
		return false;
	for (uint32_t i = 0; i < units; i++)
		if (m->owner[at + i] != MODEL_NOBODY)
			return false;
	return true;
}

/* A vector of so many units: mostly right behind what was given out last. */
static bool add_vector(struct feed *f, struct model_bio *b, uint32_t units, uint32_t grain,
		       uint32_t bytes)
{
	struct model *m = f->m;
	uint32_t at = m->cursor;

	if (one_in(f, 4))
		at = roll(f, MODEL_MEMORY_UNITS);
	at = at / grain * grain;
	for (int i = 0; !memory_is_free(m, at, units); i++) {
		if (i == 30)
			return false;
		at = roll(f, MODEL_MEMORY_UNITS) / grain * grain;
	}
	b->vec[b->bio.nvec].addr = MODEL_MEMORY + (uint64_t)at * MODEL_UNIT;
	b->vec[b->bio.nvec].len = bytes;
	b->vec[b->bio.nvec].zero = 0;
	for (uint32_t i = 0; i < units; i++) {
		m->owner[at + i] = (int16_t)(b - m->bio);
		b->addr[b->units] = MODEL_MEMORY + (uint64_t)(at + i) * MODEL_UNIT;
		b->vector[b->units++] = b->bio.nvec;
	}
	b->bio.nvec++;
	m->cursor = at + units;
	return true;
}

/* Mostly whole stretches of virt_boundary, where there is one. */
static bool add_data(struct feed *f, const struct model_queue *q, struct model_bio *b,
		     uint32_t units)
{
	uint64_t virt = (q->limits.virt_boundary + 1) / MODEL_UNIT;
	uint32_t grain = virt && !one_in(f, 6) ? (uint32_t)virt : 1, most = 1 + roll(f, 5);

	while (units) {
		uint32_t some = units;

		if (b->bio.nvec + 1 < most && units > grain)
			some = grain * (1 + roll(f, units / grain));
		if (!add_vector(f, b, some, grain, some * MODEL_UNIT)) {
			model_free_memory(f->m, b);
			return false;
		}
		units -= some;
	}
	return true;
}

static void some_flags(struct feed *f, struct vqb_bio *bio)
{
	if (bio->op == VQB_BLK_WRITE_ZEROES && one_in(f, 3))
		bio->flags |= VQB_BIO_UNMAP;
	if (bio->op == VQB_BLK_FLUSH || !one_in(f, f->strange))
		return;
	if (bio->op == VQB_BLK_OUT || bio->op == VQB_BLK_WRITE_ZEROES) {
		bio->flags = (uint8_t)(bio->flags | roll(f, 4));
		if (one_in(f, 3))
			bio->flags |= VQB_BIO_NOMERGE;
	} else if (one_in(f, 2)) {
		bio->flags |= VQB_BIO_NOMERGE;
	}
}

/* One thing about it is wrong. */
static void spoil(struct feed *f, uint32_t queue, struct model_bio *b, uint32_t sectors)
{
	struct vqb_bio *bio = &b->bio;
	uint32_t block = f->m->queue[queue].limits.block_size / 512;
	uint32_t i = bio->nvec ? roll(f, bio->nvec) : 0;

	switch (roll(f, 10)) {
	case 0:
		bio->zero = (uint8_t)(1u << roll(f, 8));
		break;
	case 1:
		bio->flags = (uint8_t)(bio->flags | 16u << roll(f, 4));
		break;
	case 2:
		bio->op = (uint8_t)roll(f, 256);
		break;
	case 3:
		bio->sector = f->m->queue[queue].capacity;
		break;
	case 4:
		bio->sector = 0 - (uint64_t)(1 + roll(f, 64));
		break;
	case 5:
		bio->sectors = bio->sectors ? bio->sectors << 32 : 0;
		break;
	case 6:
		b->vec[i].len = bio->nvec ? 0 : b->vec[i].len;
		break;
	case 7:
		b->vec[i].zero = 1;
		break;
	case 8: /* begins in the last block, and ends behind it */
		if (model_has_sectors(bio->op) && sectors > block)
			bio->sector = f->m->queue[queue].capacity / block * block - block;
		break;
	default:
		b->vec[i].len += bio->nvec ? 1 : 0;
		break;
	}
}

static uint32_t some_size(struct feed *f, const struct model_queue *q)
{
	uint32_t block = q->limits.block_size / 512;
	uint32_t sectors = block * (1 + roll(f, 3));

	if (one_in(f, 6))
		sectors = block * (1 + roll(f, 12));
	if (one_in(f, 25))
		sectors = block * (1 + roll(f, 40));
	return sectors * MODEL_SECTOR_UNITS <= MODEL_BIO_UNITS
		       ? sectors
		       : MODEL_BIO_UNITS / MODEL_SECTOR_UNITS / block * block;
}

/* Where a run of neighbours is that was just made longer, at either end, or else begun. */
static void grow_run(struct feed *f, uint32_t queue, uint64_t first, uint64_t end)
{
	bool behind = first == f->last[queue].end, before = end == f->last[queue].first;

	if (!behind)
		f->last[queue].first = first;
	if (!before)
		f->last[queue].end = end;
}

bool feed_bio(struct feed *f, uint32_t queue, struct model_bio *b)
{
	const struct model_queue *q = &f->m->queue[queue];
	struct vqb_bio *bio = &b->bio;
	uint32_t sectors = some_size(f, q);
	bool goes_on;

	if (one_in(f, 200))
		f->apart = one_in(f, 2) ? 1 : 1 + roll(f, one_in(f, 2) ? 8 : 40);
	goes_on = !one_in(f, f->apart);
	memset(bio, 0, sizeof(*bio));
	b->units = 0;
	b->queue = MODEL_NOBODY;
	bio->vec = b->vec;
	bio->op = goes_on && model_has_sectors(f->last[queue].op) ? f->last[queue].op : some_op(f);
	bio->ioprio = roll(f, f->prios);
	some_flags(f, bio);
	if (model_has_sectors(bio->op) && !some_sector(f, queue, bio, sectors))
		return false;
	if (bio->op == VQB_BLK_IN || bio->op == VQB_BLK_OUT) {
		if (!add_data(f, q, b, sectors * MODEL_SECTOR_UNITS))
			return false;
	} else if (bio->op == VQB_BLK_GET_ID || bio->op == VQB_BLK_GET_LIFETIME) {
		if (!add_vector(f, b, 1, 1, bio->op == VQB_BLK_GET_ID ? 20 : 6))
			return false;
	} else if (bio->op != VQB_BLK_FLUSH) {
		bio->sectors = sectors;
	}
	if (model_has_sectors(bio->op)) {
		grow_run(f, queue, bio->sector, bio->sector + sectors);
		f->last[queue].op = bio->op;
	}
	if (one_in(f, f->spoils))
		spoil(f, queue, b, sectors);
	return true;
}
