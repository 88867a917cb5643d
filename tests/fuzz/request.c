/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the guest half of block: bios through plugs, lists and a blk driver onto a ring, whose
 * device is played here, by the rules or against them.
 *
 * Whatever the device does, each bio that was accepted is handed back once, and what the driver
 * counts agrees with what is out. Until the device breaks a rule, more holds: each request that it
 * finds is within limits; each byte of it is one of a bio that is out, at its place on the disk; a
 * bio that is done well was carried out in full; and if the device serves on, everything comes
 * back.
 */
#include "fuzz.h"

#include <vqblk/blk_driver.h>

enum {
	CONFIG = 48,
	BIOS = 40,
	VECS = 6,
	MOST_ENTRIES = 64, /* of a ring */
	MOST_RANGES = 5,
	TABLE = 16, /* entries */
	TABLES = 8,
	MAX_STEPS = 3000,
	CAPACITY = 4096,
};

#define AREA_AT UINT64_C(0x00beef0000000000)
#define TABLES_AT UINT64_C(0x00c0ffee00000000)
#define DATA_AT UINT64_C(0x0000123400000000)

struct bio {
	struct vqb_bio bio; /* the first member */
	struct vqb_segment vec[VECS];
	uint64_t size;   /* bytes of data, or sectors */
	uint64_t served; /* of those, carried out well */
	bool out, plugged;
};

/* What the device has taken. */
struct request {
	uint32_t head, op, parts, writable;
	uint64_t sector;
	struct vqb_segment part[MOST_ENTRIES + TABLE];
	uint8_t *status;
	bool taken;
};

struct run {
	struct fuzz_input in;
	struct vqb_limits limits;
	struct vqb_blk_limits blk;
	struct vqb_driver_config ring_config;
	struct vqb_blk_driver_config config;
	struct vqb_driver *ring;
	struct vqb_blk_driver *drv;
	void *ring_mem, *mem, *area;
	struct raw_ring raw;
	struct vqb_plug plug;
	struct bio bio[BIOS];
	uint32_t outs, region; /* bytes of memory that are a bio's own */
	struct request request[MOST_ENTRIES];
	uint32_t avail, used;
	bool spoilt; /* the device has broken a rule */
};

/* ---- the configuration ---- */

static void read_range_limits(struct vqb_range_limits *l, struct fuzz_input *in)
{
	uint8_t v = fuzz_u8(in);

	l->max_ranges = v & 7;
	l->max_sectors = l->max_ranges ? 8 + (v >> 3) * 8u : 0;
	l->alignment = fuzz_u8(in) % 32;
}

static void read_limits(struct run *r, struct fuzz_input *in)
{
	struct vqb_limits *l = &r->limits;
	uint8_t v = fuzz_u8(in);

	vqb_limits_init(l);
	l->block_size = v & 1 ? 1024 : 512;
	l->split_align = l->block_size << (v >> 1 & 3);
	l->max_segments = 1 + (v >> 3);
	v = fuzz_u8(in);
	if (v & 1)
		l->max_segment_bytes = 512u * (1 + (v >> 1));
	v = fuzz_u8(in);
	if (v & 1)
		l->max_sectors = 2 + (v >> 1);
	v = fuzz_u8(in);
	if (v & 1)
		l->chunk_sectors = 2u * (1 + (v >> 1));
	v = fuzz_u8(in);
	if (v & 1)
		l->seg_boundary = (UINT64_C(1) << (9 + (v >> 1 & 7))) - 1;
	if (v & 16)
		l->virt_boundary = (UINT64_C(1) << (8 + (v >> 5))) - 1;
	if (fuzz_u8(in) & 1)
		l->flags = VQB_LIMITS_NO_CLUSTER;
	read_range_limits(&l->discard, in);
	read_range_limits(&l->zeroes, in);
	read_range_limits(&l->erase, in);
}

/* Not all that the bits of an input say is a configuration: false then. */
static bool read_config(struct run *r, struct fuzz_input *in)
{
	static const uint8_t bit[] = { VQB_BLK_F_RO, VQB_BLK_F_FLUSH, VQB_BLK_F_LIFETIME };
	uint8_t v = fuzz_u8(in);
	uint64_t features = VQB_FEATURE(VQB_F_VERSION_1);

	features |= v & 1 ? VQB_FEATURE(VQB_F_EVENT_IDX) : 0;
	features |= v & 2 ? VQB_FEATURE(VQB_F_INDIRECT_DESC) : 0;
	for (unsigned i = 0; i < 3; i++)
		r->config.features |= v >> (2 + i) & 1 ? VQB_FEATURE(bit[i]) : 0;
	r->region = 1024u << (v >> 5);
	r->ring_config.ring.features = features;
	r->ring_config.ring.size = 1u << fuzz_below(in, 7);
	v = fuzz_u8(in);
	r->config.path = v & 3;
	r->config.flags = v >> 2 & 1;
	r->config.ranges = (v >> 3) % (MOST_RANGES + 1);
	r->config.depth = 1 + fuzz_u8(in) % MOST_ENTRIES;
	read_limits(r, in);
	r->blk = (struct vqb_blk_limits){ .struct_size = sizeof(r->blk),
					  .block_size = r->limits.block_size,
					  .capacity = fuzz_u16(in) * 8u % (CAPACITY + 1) };
	r->config.struct_size = sizeof(r->config);
	r->config.limits = &r->blk;
	r->config.mapping = &r->limits;
	return vqb_blk_driver_size(&r->config) && r->config.path <= VQB_PATH_REQUEST;
}

static void place_ring(struct run *r)
{
	struct vqb_ring *ring = &r->ring_config.ring;
	size_t size = ring->size;

	ring->desc = fuzz_alloc(16 * size);
	ring->avail = fuzz_alloc(6 + 2 * size);
	ring->used = fuzz_alloc(6 + 8 * size);
	r->raw = (struct raw_ring){ (uint8_t *)ring->desc, (uint8_t *)ring->avail,
				    (uint8_t *)ring->used, ring->size };
}

static bool open_run(struct run *r)
{
	size_t area = VQB_BLK_AREA_BYTES(r->config.depth, r->config.ranges), bytes;

	r->ring_config.struct_size = sizeof(r->ring_config);
	place_ring(r);
	if (r->ring_config.ring.features & VQB_FEATURE(VQB_F_INDIRECT_DESC)) {
		bytes = 16 * TABLE * TABLES;
		r->ring_config.tables = (struct vqb_dma){ fuzz_object(bytes), TABLES_AT, bytes };
		r->ring_config.max_table = TABLE;
	}
	bytes = vqb_driver_size(&r->ring_config);
	r->ring_mem = fuzz_object(bytes);
	FUZZ_CHECK(!vqb_driver_init(r->ring_mem, bytes, &r->ring_config, &r->ring));
	r->area = fuzz_object(area);
	r->config.area = (struct vqb_dma){ r->area, AREA_AT, area };
	r->config.ring = r->ring;
	bytes = vqb_blk_driver_size(&r->config);
	FUZZ_CHECK(bytes <=
		   VQB_BLK_DRIVER_BYTES(r->config.depth, r->limits.max_segments, r->config.ranges,
					r->config.window ? r->config.window : VQB_REQUESTS_WINDOW));
	r->mem = fuzz_object(bytes);
	return !vqb_blk_driver_init(r->mem, bytes, &r->config, &r->drv);
}

static void close_run(struct run *r)
{
	free((void *)r->ring_config.ring.desc);
	free((void *)r->ring_config.ring.avail);
	free((void *)r->ring_config.ring.used);
	free(r->ring_config.tables.host);
	free(r->ring_mem);
	free(r->area);
	free(r->mem);
}

/* ---- bios ---- */

static bool has_data(uint32_t op)
{
	return op == VQB_BLK_IN || op == VQB_BLK_OUT;
}

static bool has_ranges(uint32_t op)
{
	return op >= VQB_BLK_DISCARD && op <= VQB_BLK_SECURE_ERASE;
}

/* Buffers within the bio's own part of memory, in ascending order, close together or not. */
static void make_data(struct run *r, struct bio *b)
{
	uint64_t at = DATA_AT + (uint64_t)(b - r->bio) * r->region, end = at + r->region;
	uint8_t how = fuzz_u8(&r->in);
	uint32_t unit = how & 0x40 ? 256 : 512;

	b->bio.vec = b->vec;
	for (uint32_t n = 1u + (how & 7u) % VECS; n && at < end; n--) {
		struct vqb_segment *v = &b->vec[b->bio.nvec];
		uint8_t len = fuzz_u8(&r->in);

		if (len & 0x80)
			at += unit * (len >> 5 & 3);
		v->addr = at;
		v->len = unit * (1u + (len & 31));
		v->zero = 0;
		if (at >= end || v->len > end - at)
			break;
		at += v->len;
		b->bio.nvec++;
		b->size += v->len;
	}
	if (how == 0xff && b->bio.nvec) /* longer than any disk here */
		b->vec[b->bio.nvec - 1].len = fuzz_u32(&r->in) | 0xfffff000;
}

/* One that is nobody's, anew; NULL: there is none. */
static struct bio *make_bio(struct run *r)
{
	static const uint8_t ops[16] = {
		VQB_BLK_IN,           VQB_BLK_OUT,     VQB_BLK_FLUSH,        VQB_BLK_GET_ID,
		VQB_BLK_GET_LIFETIME, VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES, VQB_BLK_SECURE_ERASE,
		VQB_BLK_OUT,          VQB_BLK_OUT,     VQB_BLK_IN,           VQB_BLK_OUT,
		VQB_BLK_ZONE_APPEND,  VQB_BLK_DISCARD, VQB_BLK_OUT,          VQB_BLK_IN
	};
	uint8_t what = fuzz_u8(&r->in), which = fuzz_u8(&r->in);
	struct bio *b = &r->bio[which % BIOS];

	if (b->out || b->plugged)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->bio.op = ops[what & 15];
	b->bio.flags = what & 0x10 ? fuzz_u8(&r->in) & 0x1f : 0;
	b->bio.ioprio = what & 0x20 ? fuzz_u8(&r->in) & 1 : 0;
	/* Near each other, so that there are neighbours. */
	b->bio.sector = what & 0x40 ? fuzz_u16(&r->in) : 2 * (uint64_t)fuzz_u8(&r->in);
	if (has_data(b->bio.op)) {
		make_data(r, b);
	} else if (has_ranges(b->bio.op)) {
		b->size = b->bio.sectors = fuzz_u8(&r->in);
	} else if (b->bio.op != VQB_BLK_FLUSH || what & 0x80) {
		b->vec[0] = (struct vqb_segment){
			DATA_AT + (uint64_t)(b - r->bio) * r->region,
			what & 0x80 ? fuzz_u8(&r->in) : (b->bio.op == VQB_BLK_GET_ID ? 20 : 6), 0
		};
		b->bio.vec = b->vec;
		b->bio.nvec = 1;
	}
	return b;
}

static void check_counts(const struct run *r)
{
	uint32_t outs = 0;

	for (uint32_t i = 0; i < BIOS; i++) {
		const struct bio *b = &r->bio[i];

		outs += b->out;
		FUZZ_CHECK(b->out == (b->bio.state > VQB_BIO_PLUGGED));
		FUZZ_CHECK(b->plugged == (b->bio.state == VQB_BIO_PLUGGED));
	}
	FUZZ_CHECK(outs == r->outs && vqb_blk_outstanding(r->drv) == outs);
	FUZZ_CHECK(vqb_blk_waiting(r->drv) <= outs);
	FUZZ_CHECK(vqb_blk_in_flight(r->drv) == vqb_driver_in_flight(r->ring));
	FUZZ_CHECK(vqb_blk_in_flight(r->drv) <= r->config.depth);
}

/* What a submit may say of a bio, and what is right where it was accepted. */
static void note_submitted(struct run *r, struct bio *b, int32_t status)
{
	b->plugged = false;
	if (status) {
		FUZZ_CHECK(b->bio.status == status && b->bio.state == VQB_BIO_IDLE);
		FUZZ_CHECK(status == VQB_E_INVALID || status == VQB_E_UNSUPP ||
			   status == VQB_E_TOOBIG || status == vqb_driver_state(r->ring));
		return;
	}
	b->out = true;
	b->served = 0;
	r->outs++;
	if (has_data(b->bio.op))
		FUZZ_CHECK(b->bio.sector + b->size / 512 <= r->blk.capacity && b->size);
	if (has_ranges(b->bio.op))
		FUZZ_CHECK(b->bio.sector + b->bio.sectors <= r->blk.capacity && b->bio.sectors);
	FUZZ_CHECK(!vqb_driver_state(r->ring));
}

static void submit(struct run *r)
{
	struct bio *b = make_bio(r);

	if (b)
		note_submitted(r, b, vqb_blk_submit(r->drv, &b->bio));
}

/* Bios on a list, of which some may come back: told from the others by their state. */
static void submit_list(struct run *r, struct vqb_bio *list)
{
	struct bio *on[BIOS];
	uint32_t n = 0, back = 0;
	struct vqb_bio *refused;
	int32_t status;

	for (struct vqb_bio *bio = list; bio; bio = bio->next)
		on[n++] = (struct bio *)bio;
	status = vqb_blk_submit_list(r->drv, list, &refused);
	FUZZ_CHECK(status != VQB_E_BUSY && !status == !refused);
	for (uint32_t i = 0; i < n; i++) {
		bool is_back = on[i]->bio.state == VQB_BIO_IDLE;

		back += is_back;
		note_submitted(r, on[i], is_back ? on[i]->bio.status : VQB_OK);
		FUZZ_CHECK(!is_back || on[i]->bio.status);
	}
	for (; refused; refused = refused->next, back--)
		FUZZ_CHECK(refused->state == VQB_BIO_IDLE && back);
	FUZZ_CHECK(!back);
}

static void make_list(struct run *r)
{
	struct vqb_bio *list = NULL, **tail = &list;
	uint32_t n = fuzz_below(&r->in, 12);
	bool on[BIOS] = { false };

	while (n--) {
		struct bio *b = make_bio(r);

		if (!b || on[b - r->bio])
			break; /* it has been made anew, which cuts the list off there */
		on[b - r->bio] = true;
		*tail = &b->bio;
		tail = &b->bio.next;
	}
	*tail = NULL;
	submit_list(r, list);
}

static void plug(struct run *r)
{
	struct bio *b = make_bio(r);

	if (b) {
		FUZZ_CHECK(!vqb_plug_add(&r->plug, r->drv, &b->bio));
		b->plugged = true;
		FUZZ_CHECK(vqb_plug_add(&r->plug, r->drv, &b->bio) == VQB_E_BUSY);
	}
}

static void unplug(struct run *r)
{
	struct vqb_bio *list;
	void *queue = vqb_plug_take(&r->plug, &list);

	FUZZ_CHECK(!queue == !list && (!queue || queue == r->drv) && !r->plug.bios);
	submit_list(r, list);
}

static void remove_plugged(struct run *r)
{
	struct bio *b = &r->bio[fuzz_u8(&r->in) % BIOS];

	FUZZ_CHECK(vqb_plug_remove(&r->plug, &b->bio) == (b->plugged ? VQB_OK : VQB_E_LATE));
	b->plugged = false;
}

static void cancel(struct run *r)
{
	struct bio *b = &r->bio[fuzz_u8(&r->in) % BIOS];
	uint8_t state = b->bio.state;
	int32_t status = vqb_blk_cancel(r->drv, &b->bio);

	if (!b->out) {
		FUZZ_CHECK(status == VQB_E_INVALID && b->bio.state == state);
	} else if (state == VQB_BIO_WAITING) {
		FUZZ_CHECK(!status && b->bio.status == VQB_E_CANCELLED);
		b->out = false;
		r->outs--;
	} else {
		FUZZ_CHECK(status == VQB_E_LATE && b->bio.state == state);
	}
}

/* A list of bios that are the caller's again. */
static uint32_t take_back(struct run *r, struct vqb_bio *list)
{
	uint32_t n = 0;

	for (; list; list = list->next, n++) {
		struct bio *b = (struct bio *)list;

		FUZZ_CHECK(b >= r->bio && b < r->bio + BIOS);
		FUZZ_CHECK(b->out && b->bio.state == VQB_BIO_IDLE);
		b->out = false;
		r->outs--;
	}
	return n;
}

static void reap(struct run *r)
{
	struct vqb_bio *done;
	uint32_t n = vqb_blk_reap(r->drv, &done);

	for (const struct vqb_bio *bio = done; bio; bio = bio->next) {
		const struct bio *b = (const struct bio *)bio;

		FUZZ_CHECK(bio->status == VQB_OK || bio->status == VQB_E_IO ||
			   bio->status == VQB_E_UNSUPP || bio->status == VQB_E_TOOBIG ||
			   bio->status == VQB_E_INVALID);
		if (!bio->status && !r->spoilt && (has_data(bio->op) || has_ranges(bio->op)))
			FUZZ_CHECK(b->served >= b->size);
	}
	FUZZ_CHECK(take_back(r, done) == n);
}

/* ---- the device ---- */

/* Where in its bio's data a byte of memory is. */
static uint64_t place_in(const struct bio *b, uint64_t addr)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < b->bio.nvec; i++) {
		if (addr >= b->vec[i].addr && addr < b->vec[i].addr + b->vec[i].len)
			return at + (addr - b->vec[i].addr);
		at += b->vec[i].len;
	}
	fuzz_failed(__FILE__, __LINE__, "it is a buffer of the bio");
	return 0;
}

/* The bio whose memory this is, which is out and of this kind. */
static struct bio *owner_of(struct run *r, const struct request *q, uint64_t addr)
{
	uint64_t i = (addr - DATA_AT) / r->region;

	FUZZ_CHECK(addr >= DATA_AT && i < BIOS && r->bio[i].out && r->bio[i].bio.op == q->op);
	return &r->bio[i];
}

/*
 * Goes through the bytes of a read or write: each is where it belongs on the disk. What was
 * carried out well counts for its bio.
 */
static uint64_t walk_data(struct run *r, const struct request *q, bool well)
{
	uint64_t disk = q->sector * 512;

	for (uint32_t i = 1; i + 1 < q->parts; i++) {
		uint64_t addr = q->part[i].addr, left = q->part[i].len;

		while (left) {
			struct bio *b = owner_of(r, q, addr);
			uint64_t end = DATA_AT + (uint64_t)(b - r->bio + 1) * r->region;
			uint64_t n = left < end - addr ? left : end - addr;

			FUZZ_CHECK(b->bio.sector * 512 + place_in(b, addr) == disk);
			FUZZ_CHECK(b->bio.sector * 512 + place_in(b, addr + n - 1) == disk + n - 1);
			b->served += well ? n : 0;
			addr += n;
			disk += n;
			left -= n;
		}
	}
	return disk - q->sector * 512;
}

static void check_limits(const struct run *r, const struct request *q, uint64_t bytes)
{
	const struct vqb_limits *l = &r->limits;

	FUZZ_CHECK(bytes && !(bytes % l->block_size) && bytes / 512 <= l->max_sectors);
	FUZZ_CHECK(q->parts - 2 <= l->max_segments);
	if (l->chunk_sectors)
		FUZZ_CHECK(q->sector / l->chunk_sectors ==
			   (q->sector + (bytes / 512 - 1)) / l->chunk_sectors);
	for (uint32_t i = 1; i + 1 < q->parts; i++) {
		const struct vqb_segment *s = &q->part[i];

		FUZZ_CHECK(s->len && s->len <= l->max_segment_bytes);
		FUZZ_CHECK(!((s->addr ^ (s->addr + (s->len - 1))) & ~l->seg_boundary));
		FUZZ_CHECK(i == 1 || !vqb_segments_gap(l, s - 1, s));
	}
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Each sector of a range is one of a bio of this kind that is out, or of several. */
static void walk_range(struct run *r, const struct request *q, uint64_t first, uint64_t end,
		       bool well)
{
	uint64_t covered = first, from, to;
	bool moved = true;

	while (moved && covered < end) {
		moved = false;
		for (uint32_t i = 0; i < BIOS; i++) {
			const struct bio *b = &r->bio[i];

			if (b->out && b->bio.op == q->op && b->bio.sector <= covered &&
			    covered < b->bio.sector + b->bio.sectors) {
				covered = b->bio.sector + b->bio.sectors;
				moved = true;
			}
		}
	}
	FUZZ_CHECK(covered >= end);
	for (uint32_t i = 0; i < BIOS && well; i++) {
		struct bio *b = &r->bio[i];

		from = most_of(first, b->bio.sector);
		to = b->bio.sector + b->bio.sectors;
		to = to < end ? to : end;
		if (b->out && b->bio.op == q->op && from < to)
			b->served += to - from;
	}
}

static void walk_ranges(struct run *r, const struct request *q, bool well)
{
	const struct vqb_range_limits *l = q->op == VQB_BLK_DISCARD        ? &r->limits.discard
					   : q->op == VQB_BLK_WRITE_ZEROES ? &r->limits.zeroes
									   : &r->limits.erase;
	uint64_t offset = q->part[1].addr - AREA_AT, n = q->part[1].len / 16;
	const uint8_t *range = (const uint8_t *)r->area + offset;

	FUZZ_CHECK(q->parts == 3 && q->writable == 1 && n && !(q->part[1].len % 16));
	FUZZ_CHECK(offset + 16 * n <= r->config.area.bytes && !q->sector);
	FUZZ_CHECK(well || (n <= l->max_ranges && n <= r->config.ranges));
	for (uint64_t i = 0; i < n; i++, range += 16) {
		uint64_t sector = peek(range, 8), sectors = peek(range + 8, 4);

		FUZZ_CHECK(well || (sectors && sectors <= l->max_sectors));
		FUZZ_CHECK(peek(range + 12, 4) <= (q->op == VQB_BLK_WRITE_ZEROES));
		walk_range(r, q, sector, sector + sectors, well);
	}
}

/* A request as the device finds it. */
static void check_request(struct run *r, struct request *q)
{
	const uint8_t *header;

	FUZZ_CHECK(q->parts >= 2 && q->part[0].len == 16 && q->part[q->parts - 1].len == 1);
	FUZZ_CHECK(q->part[0].addr - AREA_AT <= r->config.area.bytes - 16);
	header = (const uint8_t *)r->area + (q->part[0].addr - AREA_AT);
	q->op = (uint32_t)peek(header, 4);
	q->sector = peek(header + 8, 8);
	FUZZ_CHECK(peek(header + 4, 4) <= 1);
	FUZZ_CHECK(has_data(q->op) || !q->sector);
	if (has_ranges(q->op)) {
		walk_ranges(r, q, false);
		return;
	}
	FUZZ_CHECK(q->writable == (q->op == VQB_BLK_OUT ? 1 : q->parts - 1));
	if (has_data(q->op))
		check_limits(r, q, walk_data(r, q, false));
	else if (q->op == VQB_BLK_FLUSH)
		FUZZ_CHECK(q->parts == 2);
	else
		FUZZ_CHECK(q->op == VQB_BLK_GET_ID || q->op == VQB_BLK_GET_LIFETIME);
}

/* Adds a descriptor to the request. False: what is there is no chain of the driver's making. */
static bool add_part(struct run *r, struct request *q, const uint8_t *table, uint32_t i,
		     uint32_t size)
{
	unsigned flags;

	if (i >= size || q->parts == MOST_ENTRIES + TABLE)
		return false;
	flags = raw_desc_flags(table, i);
	q->part[q->parts++] =
		(struct vqb_segment){ raw_desc_addr(table, i), raw_desc_len(table, i), 0 };
	FUZZ_CHECK(flags & RAW_WRITE || !q->writable || r->spoilt);
	q->writable += flags & RAW_WRITE ? 1 : 0;
	return true;
}

static bool read_chain(struct run *r, struct request *q)
{
	const uint8_t *table = r->raw.desc;
	uint32_t size = r->raw.size, i = q->head;

	if (i >= size)
		return false;
	if (raw_desc_flags(table, i) & RAW_INDIRECT) {
		uint64_t offset = raw_desc_addr(table, i) - TABLES_AT;

		size = raw_desc_len(table, i) / 16;
		if (offset > r->ring_config.tables.bytes ||
		    16 * (uint64_t)size > r->ring_config.tables.bytes - offset)
			return false;
		table = (const uint8_t *)r->ring_config.tables.host + offset;
		i = 0;
	}
	while (add_part(r, q, table, i, size)) {
		if (!(raw_desc_flags(table, i) & RAW_NEXT))
			return true;
		i = raw_desc_next(table, i);
	}
	return false;
}

/* Takes all that is visible. */
static void take(struct run *r)
{
	uint32_t visible = (raw_avail_idx(&r->raw) - r->avail) & 0xffff;

	FUZZ_CHECK(visible <= r->raw.size);
	while (visible--) {
		uint32_t head = raw_avail_entry(&r->raw, r->avail++);
		struct request *q = &r->request[head % MOST_ENTRIES];
		uint64_t status;

		FUZZ_CHECK(head < r->raw.size && (r->spoilt || !q->taken));
		memset(q, 0, sizeof(*q));
		q->head = head;
		if (!read_chain(r, q)) {
			FUZZ_CHECK(r->spoilt);
			continue;
		}
		status = q->part[q->parts - 1].addr - AREA_AT;
		if (!r->spoilt)
			check_request(r, q);
		else if (status >= r->config.area.bytes)
			continue;
		FUZZ_CHECK(status < r->config.area.bytes);
		q->status = (uint8_t *)r->area + status;
		q->taken = true;
	}
}

static void finish(struct run *r, struct request *q, uint8_t status)
{
	if (!r->spoilt && !status) {
		if (has_data(q->op))
			walk_data(r, q, true);
		else if (has_ranges(q->op))
			walk_ranges(r, q, true);
	}
	*q->status = status;
	q->taken = false;
	raw_complete(&r->raw, r->used++, q->head, fuzz_u8(&r->in));
}

/* Mostly well. */
static uint8_t some_status(struct run *r)
{
	uint8_t v = fuzz_u8(&r->in);

	return v < 160 ? 0 : v < 240 ? v % 4 : v;
}

static void complete(struct run *r)
{
	uint32_t from = fuzz_u8(&r->in), n = 1 + fuzz_below(&r->in, 8);

	for (uint32_t i = 0; i < MOST_ENTRIES && n; i++) {
		struct request *q = &r->request[(from + i) % MOST_ENTRIES];

		if (!q->taken)
			continue;
		finish(r, q, some_status(r));
		n--;
	}
}

/* Whatever the device can write, anything may be in. */
static void spoil(struct run *r)
{
	uint8_t how = fuzz_u8(&r->in);
	uint8_t *at = how & 4 ? (uint8_t *)r->area : how & 8 ? r->raw.desc : r->raw.used;
	size_t bytes = how & 4   ? r->config.area.bytes
		       : how & 8 ? 16 * (size_t)r->raw.size
				 : 6 + 8 * (size_t)r->raw.size;

	r->spoilt = true;
	if (how & 1)
		raw_complete(&r->raw, r->used++, fuzz_u16(&r->in) % (2 * r->raw.size),
			     fuzz_u32(&r->in));
	else
		for (uint32_t n = 1 + fuzz_below(&r->in, 8); n; n--)
			at[fuzz_u16(&r->in) % bytes] = fuzz_u8(&r->in);
}

/* ---- the queue ---- */

static void publish(struct run *r, bool arms)
{
	uint32_t answer = arms ? vqb_blk_turn(r->drv) : vqb_blk_publish(r->drv);

	FUZZ_CHECK(!(answer & ~(uint32_t)(VQB_NOTIFY | (arms ? VQB_MORE : 0))));
}

/* The device is reset: everything comes back, in the order of submission. */
static void reset(struct run *r, bool again)
{
	struct vqb_bio *list, *bio;
	uint32_t order = 0, n = r->outs;
	bool first = true;

	FUZZ_CHECK(!vqb_driver_reset(r->ring, NULL));
	FUZZ_CHECK(!vqb_blk_abandon(r->drv, &list));
	for (bio = list; bio; bio = bio->next, first = false) {
		FUZZ_CHECK(bio->status && bio->status != VQB_E_LATE);
		FUZZ_CHECK(first || (int32_t)(bio->own.order - order) > 0);
		order = bio->own.order;
	}
	FUZZ_CHECK(take_back(r, list) == n && !r->outs && !vqb_blk_waiting(r->drv));
	memset(r->request, 0, sizeof(r->request));
	r->avail = r->used = 0;
	r->spoilt = false;
	FUZZ_CHECK(!vqb_driver_reset(r->ring, &r->ring_config.ring));
	if (again)
		submit_list(r, list);
}

/* Other limits; what was made under the old ones is taken before. */
static void configure(struct run *r)
{
	struct vqb_limits before = r->limits;

	publish(r, false);
	take(r);
	read_limits(r, &r->in);
	r->limits.block_size = before.block_size;
	r->limits.split_align = before.split_align;
	if (vqb_blk_driver_configure(r->drv, &r->config))
		r->limits = before;
}

static void set_path(struct run *r)
{
	uint32_t path = fuzz_below(&r->in, 4);
	int32_t status = vqb_blk_set_path(r->drv, path);

	FUZZ_CHECK(status == (path > VQB_PATH_REQUEST ? VQB_E_INVALID : r->outs ? VQB_E_BUSY : 0));
}

static void step(struct run *r)
{
	switch (fuzz_u8(&r->in) & 15) {
	case 0:
	case 1:
		submit(r);
		break;
	case 2:
		make_list(r);
		break;
	case 3:
		plug(r);
		break;
	case 4:
		unplug(r);
		break;
	case 5:
		remove_plugged(r);
		break;
	case 6:
		publish(r, false);
		take(r);
		break;
	case 7:
		complete(r);
		break;
	case 8:
		reap(r);
		break;
	case 9:
		cancel(r);
		break;
	case 10:
		spoil(r);
		break;
	case 11:
		reset(r, fuzz_u8(&r->in) & 1);
		break;
	case 12:
		vqb_driver_needs_reset(r->ring);
		break;
	case 13:
		configure(r);
		break;
	case 14:
		set_path(r);
		break;
	default: /* all of a turn */
		publish(r, true);
		take(r);
		complete(r);
		reap(r);
		break;
	}
	check_counts(r);
}

/* A device that serves on has everything done: nothing waits for ever. */
static void drain(struct run *r)
{
	for (uint32_t turns = 0; r->outs; turns++) {
		FUZZ_CHECK(turns < 20000);
		publish(r, true);
		take(r);
		for (uint32_t i = 0; i < MOST_ENTRIES; i++)
			if (r->request[i].taken)
				finish(r, &r->request[i], 0);
		FUZZ_CHECK(vqb_driver_pending(r->ring));
		reap(r);
		check_counts(r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run r;
	struct fuzz_input config;

	memset(&r, 0, sizeof(r));
	r.in = (struct fuzz_input){ data, data + size };
	config = fuzz_cut(&r.in, CONFIG);
	if (!read_config(&r, &config))
		return 0;
	if (open_run(&r)) {
		for (uint32_t i = 0; i < MAX_STEPS && fuzz_more(&r.in); i++)
			step(&r);
		if (!r.spoilt && !vqb_driver_state(r.ring))
			drain(&r);
		reset(&r, false);
	}
	close_run(&r);
	return 0;
}
