/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_bench.h: a blk device queue on the bench. Guest memory, a ring written by hand, a disk, and
 * between queue and disk a backend that notes every io and does as the test says: holds ios until
 * they are finished in any order, answers that it is full, cuts transfers short, fails.
 *
 *   struct bench *b = bench_open(state);
 *   unsigned r = bench_ask(b, VQB_BLK_IN, 16, CUT(16), CUT(512, 1));
 *
 *   bench_run(b);
 *   assert_int_equal(bench_status(b, r), VQB_BLK_S_OK);
 *   assert_int_equal(bench_length(b, r), 513);
 *
 * bench_open is bench_plan, which fills in the configurations for a test to change, and
 * bench_start. Every buffer of a request has a gap before and behind it, which must stay as it is.
 */
#ifndef TESTS_BLK_BENCH_H
#define TESTS_BLK_BENCH_H

#include <stdlib.h>

#include <vqblk/blk_device.h>

#include "raw_ring.h"
#include "unit.h"

#define RAM UINT64_C(0x40000000) /* guest address of the memory */

enum {
	RAM_BYTES = 0x200000,
	RING_SIZE = 64,
	SECTORS = 1024, /* of the disk */
	PARTS = 160,    /* most buffers of one request */
	REQUESTS = 128, /* most requests of one test */
	GAP = 16,
	LOG = 1024,
	GAP_BYTE = 0xee,    /* around every buffer */
	BLANK = 0xcc,       /* in a writable buffer before the device wrote to it */
	PATTERN = 0x5a,     /* in readable data */
	BUFFERS = 0x100000, /* offset of buffers in the memory; below it are rings */
	DISCARDED = 0xd1,   /* what discarded sectors read as */
	ERASED = 0xe1,      /* and erased ones */
};

/* ---- the backend ---- */

struct spy_io {
	uint8_t op, flags;
	uint32_t pieces;
	uint64_t offset, bytes;
};

struct spy {
	struct vqb_backend base;
	uint8_t *disk;
	struct vqb_io *held[LOG]; /* accepted and not finished, oldest first */
	struct vqb_io_list done;
	struct spy_io log[LOG];  /* every io that was accepted */
	unsigned calls;          /* entries of the log */
	unsigned holds, room;    /* ios held now, and at most */
	int manual;              /* ios stay held until spy_finish */
	int lazy;                /* ios stay held until unplug */
	unsigned fulls;          /* submits to answer with "full", whatever is held */
	uint64_t part;           /* most bytes done of one io; 0: all */
	int32_t fail;            /* result of the ios, if not 0 */
	int32_t refuse;          /* answer of submit, if not 0 */
	uint64_t bad;            /* ios that touch this byte of the disk fail, if not 0 */
	int eager;               /* ios are carried out when they are accepted */
	struct spy_io tried[32]; /* the ios that found it full, and how many there were */
	unsigned tries;
	struct vqb_lifetime life;
	int32_t life_status;
	unsigned plugs, unplugs;
};

/* What an io without pieces does to the disk. */
static inline int64_t spy_range(struct spy *spy, const struct vqb_io *io, uint64_t want)
{
	const int value = io->op == VQB_BLK_DISCARD        ? DISCARDED
			  : io->op == VQB_BLK_SECURE_ERASE ? ERASED
							   : 0;

	if (io->op != VQB_BLK_FLUSH)
		memset(spy->disk + io->offset, value, (size_t)want);
	return (int64_t)want;
}

static inline int64_t spy_transfer(struct spy *spy, const struct vqb_io *io)
{
	uint64_t want = spy->part && spy->part < io->bytes ? spy->part : io->bytes, done = 0;

	if (spy->bad && spy->bad >= io->offset && spy->bad < io->offset + io->bytes)
		return VQB_E_IO;
	if (io->op > VQB_BLK_OUT)
		return spy_range(spy, io, want);
	for (uint32_t i = 0; i < io->pieces && done < want; i++) {
		size_t n =
			io->piece[i].len < want - done ? io->piece[i].len : (size_t)(want - done);
		uint8_t *disk = spy->disk + io->offset + done;

		if (io->op == VQB_BLK_IN)
			memcpy(io->piece[i].base, disk, n);
		else if (io->op == VQB_BLK_OUT)
			memcpy(disk, io->piece[i].base, n);
		done += n;
	}
	assert_int_equal(done, want);
	return (int64_t)done;
}

/* Finishes number `k` of those that are held, with the result that the test asked for. */
static inline void spy_finish(struct spy *spy, unsigned k)
{
	struct vqb_io *io = spy->held[k];

	assert_true(k < spy->holds);
	for (spy->holds--; k < spy->holds; k++)
		spy->held[k] = spy->held[k + 1];
	if (!spy->eager)
		io->result = spy->fail ? spy->fail : spy_transfer(spy, io);
	vqb_io_list_add(&spy->done, io);
}

static inline int32_t spy_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct spy *spy = (struct spy *)backend;
	uint64_t bytes = 0;

	assert_int_equal(spy->plugs, spy->unplugs + 1); /* plugged on every path */
	if (spy->refuse)
		return spy->refuse;
	if (spy->holds == spy->room)
		return VQB_E_NOSPC;
	if (spy->fulls) {
		spy->fulls--;
		spy->tried[spy->tries++ % 32] =
			(struct spy_io){ io->op, io->flags, io->pieces, io->offset, io->bytes };
		return VQB_E_NOSPC;
	}
	for (uint32_t i = 0; i < io->pieces; i++)
		bytes += io->piece[i].len;
	assert_int_equal(bytes, io->op <= VQB_BLK_OUT ? io->bytes : 0);
	assert_true(!!io->bytes == (io->op != VQB_BLK_FLUSH));
	assert_true(io->offset + io->bytes <= spy->base.caps.bytes);
	assert_true(spy->calls < LOG);
	spy->log[spy->calls++] =
		(struct spy_io){ io->op, io->flags, io->pieces, io->offset, io->bytes };
	spy->held[spy->holds++] = io;
	if (spy->eager)
		io->result = spy->fail ? spy->fail : spy_transfer(spy, io);
	if (!spy->manual && !spy->lazy)
		spy_finish(spy, spy->holds - 1);
	return VQB_OK;
}

static inline void spy_plug(struct vqb_backend *backend)
{
	((struct spy *)backend)->plugs++;
}

static inline void spy_unplug(struct vqb_backend *backend)
{
	struct spy *spy = (struct spy *)backend;

	spy->unplugs++;
	while (spy->lazy && spy->holds)
		spy_finish(spy, 0);
}

static inline struct vqb_io *spy_poll(struct vqb_backend *backend)
{
	return vqb_io_list_take(&((struct spy *)backend)->done);
}

static inline void spy_drain(struct vqb_backend *backend)
{
	struct spy *spy = (struct spy *)backend;

	while (spy->holds)
		spy_finish(spy, 0);
}

static inline int32_t spy_lifetime(struct vqb_backend *backend, struct vqb_lifetime *out)
{
	struct spy *spy = (struct spy *)backend;

	*out = spy->life;
	return spy->life_status;
}

static const struct vqb_backend_ops spy_ops = {
	.struct_size = sizeof(spy_ops),
	.submit = spy_submit,
	.plug = spy_plug,
	.unplug = spy_unplug,
	.poll = spy_poll,
	.drain = spy_drain,
	.lifetime = spy_lifetime,
};

static inline void spy_init(struct spy *spy, uint8_t *disk, uint64_t bytes)
{
	memset(spy, 0, sizeof(*spy));
	spy->disk = disk;
	spy->room = LOG;
	spy->base.struct_size = sizeof(spy->base);
	spy->base.ops = &spy_ops;
	spy->base.caps.bytes = bytes;
	spy->base.caps.max_transfer = UINT64_MAX;
	spy->base.caps.max_pieces = UINT32_MAX;
	spy->base.caps.alignment = 1;
	spy->base.caps.can = VQB_CAN_READ | VQB_CAN_WRITE | VQB_CAN_FLUSH;
}

/* It can do all that there is, at most `max_range` bytes of a range at a time. */
static inline void spy_can_all(struct spy *spy, uint64_t max_range)
{
	spy->base.caps.can |= VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES | VQB_CAN_UNMAP |
			      VQB_CAN_SECURE_ERASE | VQB_CAN_LIFETIME;
	spy->base.caps.max_range = max_range;
}

/* ---- the bench ---- */

struct asked {
	unsigned head, parts, outs;
	uint8_t *at[PARTS];
	uint32_t len[PARTS];
	uint32_t out_bytes, in_bytes;
};

struct bench {
	uint8_t *ram, *disk;
	struct vqb_extent region[2];
	struct vqb_memory memory;
	struct raw_ring ring;
	struct vqb_device_config ring_config;
	struct vqb_device *dev;
	struct vqb_blk_limits limits;
	struct vqb_blk_device_config disk_config;
	struct vqb_blk_device *blk;
	struct spy spy;
	struct vqb_blk_queue_config config;
	struct vqb_blk_queue *queue;
	void *object[4];
	/* the driver, by hand */
	unsigned offered, desc;
	uint32_t buffers;
	struct asked asked[REQUESTS];
	unsigned asks;
};

static inline int bench_up(void **state)
{
	struct bench *b = (struct bench *)calloc(1, sizeof(*b));

	if (!b)
		return -1;
	*state = b;
	b->ram = (uint8_t *)malloc(RAM_BYTES);
	b->disk = (uint8_t *)malloc(SECTORS * 512);
	return b->ram && b->disk ? 0 : -1;
}

static inline int bench_down(void **state)
{
	struct bench *b = (struct bench *)*state;

	for (unsigned i = 0; i < 4; i++)
		free(b->object[i]);
	free(b->ram);
	free(b->disk);
	free(b);
	return 0;
}

#define bench_test(f) cmocka_unit_test_setup_teardown(f, bench_up, bench_down)

/* Byte `i` of the disk as it is at first. */
static inline uint8_t disk_byte(uint64_t i)
{
	return (uint8_t)(i * 7 + i / 512);
}

static inline void *bench_object(struct bench *b, unsigned which, size_t bytes)
{
	free(b->object[which]);
	b->object[which] = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	assert_non_null(b->object[which]);
	memset(b->object[which], 0x5a, bytes);
	return b->object[which];
}

static inline void bench_ring(struct bench *b, uint32_t size)
{
	struct vqb_ring_at *at = &b->ring_config.ring;

	memset(b->ram, 0, BUFFERS);
	at->size = size;
	assert_int_equal(vqb_ring_place_at(at, RAM, 4), VQB_OK);
	b->ring = (struct raw_ring){ b->ram + (at->desc - RAM), b->ram + (at->avail - RAM),
				     b->ram + (at->used - RAM), size };
	b->offered = b->desc = 0;
}

static inline struct bench *bench_plan(void **state)
{
	struct bench *b = (struct bench *)*state;

	memset(b->ram, GAP_BYTE, RAM_BYTES);
	for (uint64_t i = 0; i < SECTORS * 512; i++)
		b->disk[i] = disk_byte(i);
	b->asks = 0;
	b->buffers = BUFFERS;
	b->region[0] = (struct vqb_extent){ RAM, RAM_BYTES, b->ram, VQB_READ | VQB_WRITE, 0 };
	b->memory = (struct vqb_memory){
		.struct_size = sizeof(b->memory), .generation = 1, .count = 1, .sorted = b->region
	};
	b->ring_config = (struct vqb_device_config){ .struct_size = sizeof(b->ring_config),
						     .memory = &b->memory };
	bench_ring(b, RING_SIZE);
	b->limits =
		(struct vqb_blk_limits){ .struct_size = sizeof(b->limits), .capacity = SECTORS };
	b->disk_config = (struct vqb_blk_device_config){
		.struct_size = sizeof(b->disk_config),
		.features = VQB_FEATURE(VQB_BLK_F_FLUSH) | VQB_FEATURE(VQB_F_INDIRECT_DESC),
		.limits = &b->limits,
		.serial = "bench",
	};
	b->disk_config.backend = &b->spy.base.caps;
	spy_init(&b->spy, b->disk, SECTORS * 512);
	b->config = (struct vqb_blk_queue_config){
		.struct_size = sizeof(b->config),
		.requests = RING_SIZE,
		.pieces = 512,
		.features = VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_FLUSH),
	};
	return b;
}

static inline int32_t bench_queue(struct bench *b)
{
	size_t bytes = vqb_blk_queue_size(&b->config);

	assert_true(bytes && bytes <= VQB_BLK_QUEUE_BYTES(b->config.requests, b->config.pieces));
	return vqb_blk_queue_init(bench_object(b, 2, bytes), bytes, &b->config, &b->queue);
}

/* A coalescer in front of the backend, with its limits. */
static inline void bench_coalescer(struct bench *b, uint32_t requests, uint32_t joins,
				   uint32_t pieces)
{
	struct vqb_coalescer_config config = { .struct_size = sizeof(config),
					       .requests = requests,
					       .joins = joins,
					       .pieces = pieces,
					       .max_pieces = b->spy.base.caps.max_pieces,
					       .max_transfer = b->spy.base.caps.max_transfer };
	size_t bytes = vqb_coalescer_size(&config);

	assert_int_equal(
		vqb_coalescer_init(bench_object(b, 3, bytes), bytes, &config, &b->config.coalescer),
		VQB_OK);
}

static inline void bench_start(struct bench *b)
{
	size_t bytes = vqb_device_size(&b->ring_config);

	assert_int_equal(
		vqb_device_init(bench_object(b, 0, bytes), bytes, &b->ring_config, &b->dev),
		VQB_OK);
	bytes = vqb_blk_device_size();
	assert_int_equal(
		vqb_blk_device_init(bench_object(b, 1, bytes), bytes, &b->disk_config, &b->blk),
		VQB_OK);
	b->config.device = b->blk;
	b->config.ring = b->dev;
	b->config.backend = &b->spy.base;
	assert_int_equal(bench_queue(b), VQB_OK);
}

static inline struct bench *bench_open(void **state)
{
	struct bench *b = bench_plan(state);

	bench_start(b);
	return b;
}

/* ---- requests ---- */

/* The lengths of the buffers of one direction. */
#define CUT(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4
#define NONE NULL, 0

static inline void bench_part(struct bench *b, struct asked *a, uint32_t len, int writable)
{
	unsigned i = a->parts++;

	assert_true(i < PARTS);
	b->buffers += GAP;
	assert_true(b->buffers + len + GAP <= RAM_BYTES);
	a->at[i] = b->ram + b->buffers;
	a->len[i] = len;
	memset(a->at[i], writable ? BLANK : PATTERN, len);
	b->buffers += len;
	*(writable ? &a->in_bytes : &a->out_bytes) += len;
	if (!writable)
		a->outs++;
}

/* Writes the descriptors of request `r`, from b->desc on, and offers it. */
static inline void bench_offer(struct bench *b, unsigned r)
{
	struct asked *a = &b->asked[r];

	a->head = b->desc;
	for (unsigned i = 0; i < a->parts; i++) {
		unsigned flags = i < a->outs ? 0 : RAW_WRITE;

		if (i + 1 < a->parts)
			flags |= RAW_NEXT;
		raw_desc(b->ring.desc, a->head + i, RAM + (uint64_t)(a->at[i] - b->ram), a->len[i],
			 flags, a->head + i + 1);
	}
	b->desc += a->parts;
	assert_true(b->desc <= b->ring.size);
	raw_offer(&b->ring, b->offered++, a->head);
}

/* Spreads `bytes` bytes over the readable buffers, from the byte number `skip` on. */
static inline void bench_fill(struct bench *b, unsigned r, uint32_t skip, const void *from,
			      uint32_t bytes)
{
	struct asked *a = &b->asked[r];
	const uint8_t *p = (const uint8_t *)from;

	for (unsigned i = 0; i < a->outs; i++) {
		for (uint32_t k = 0; k < a->len[i] && bytes; k++) {
			if (skip) {
				skip--;
				continue;
			}
			a->at[i][k] = *p++;
			bytes--;
		}
	}
}

/* What the writable buffers hold, joined. */
static inline void bench_written(const struct bench *b, unsigned r, uint8_t *to)
{
	const struct asked *a = &b->asked[r];

	for (unsigned i = a->outs; i < a->parts; i++) {
		memcpy(to, a->at[i], a->len[i]);
		to += a->len[i];
	}
}

/*
 * A request in buffers as they are cut, not offered yet. Its header is cut off if it is too long.
 */
static inline unsigned bench_build(struct bench *b, uint32_t type, uint64_t sector,
				   const uint32_t *out, size_t outs, const uint32_t *in, size_t ins)
{
	unsigned r = b->asks++;
	struct asked *a = &b->asked[r];
	uint8_t header[16];

	assert_true(r < REQUESTS);
	memset(a, 0, sizeof(*a));
	for (size_t i = 0; i < outs; i++)
		bench_part(b, a, out[i], 0);
	for (size_t i = 0; i < ins; i++)
		bench_part(b, a, in[i], 1);
	poke(header, type, 4);
	poke(header + 4, 0, 4);
	poke(header + 8, sector, 8);
	bench_fill(b, r, 0, header, sizeof(header));
	return r;
}

static inline unsigned bench_ask(struct bench *b, uint32_t type, uint64_t sector,
				 const uint32_t *out, size_t outs, const uint32_t *in, size_t ins)
{
	unsigned r = bench_build(b, type, sector, out, outs, in, ins);

	bench_offer(b, r);
	return r;
}

/* One range of a discard and its kin. */
struct bench_range {
	uint64_t sector, sectors, flags;
};

/* A discard or its kin of `n` ranges, in one buffer behind the header. */
static inline unsigned bench_ranges(struct bench *b, uint32_t type, const struct bench_range *range,
				    unsigned n)
{
	const uint32_t out[] = { 16, 16 * n };
	unsigned r = bench_build(b, type, 0, out, 2, CUT(1));

	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = b->asked[r].at[1] + 16 * (size_t)i;

		poke(at, range[i].sector, 8);
		poke(at + 8, range[i].sectors, 4);
		poke(at + 12, range[i].flags, 4);
	}
	bench_offer(b, r);
	return r;
}

/* Plain requests of whole sectors. */
static inline unsigned bench_read(struct bench *b, uint64_t sector, uint32_t sectors)
{
	return bench_ask(b, VQB_BLK_IN, sector, CUT(16), CUT(512 * sectors, 1));
}

static inline unsigned bench_write(struct bench *b, uint64_t sector, uint32_t sectors)
{
	return bench_ask(b, VQB_BLK_OUT, sector, CUT(16, 512 * sectors), CUT(1));
}

static inline unsigned bench_flush(struct bench *b)
{
	return bench_ask(b, VQB_BLK_FLUSH, 0, CUT(16), CUT(1));
}

/* Runs until there is nothing more to do; the answers, ORed. */
static inline uint32_t bench_run(struct bench *b)
{
	uint32_t answers = 0, rounds = 0, a;

	do {
		a = vqb_blk_queue_run(b->queue, 256);
		answers |= a;
		assert_true(++rounds < 1000);
	} while (a & VQB_MORE);
	return answers & ~(uint32_t)VQB_MORE;
}

/* ---- what came of it ---- */

static inline unsigned bench_used(const struct bench *b)
{
	return raw_used_idx(&b->ring);
}

/* The used entry of a request; there must be exactly one. */
static inline unsigned bench_entry(const struct bench *b, unsigned r)
{
	unsigned found = UINT32_MAX;

	for (unsigned i = 0; i < bench_used(b); i++) {
		if (raw_used_id(&b->ring, i) != b->asked[r].head)
			continue;
		assert_int_equal(found, UINT32_MAX);
		found = i;
	}
	assert_int_not_equal(found, UINT32_MAX);
	return found;
}

static inline uint32_t bench_length(const struct bench *b, unsigned r)
{
	return raw_used_len(&b->ring, bench_entry(b, r));
}

/* The last writable byte. */
static inline uint8_t bench_status(const struct bench *b, unsigned r)
{
	const struct asked *a = &b->asked[r];
	unsigned i = a->parts - 1;

	while (!a->len[i])
		i--;
	return a->at[i][a->len[i] - 1];
}

/* `n` bytes of the readable or writable buffers hold `value`? Those around them do, always. */
static inline int bench_is(const void *at, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (((const uint8_t *)at)[i] != value)
			return 0;
	}
	return 1;
}

/* Nothing was written beside the buffers, and the readable ones hold what they held. */
static inline void bench_assert_gaps(const struct bench *b)
{
	for (unsigned r = 0; r < b->asks; r++) {
		const struct asked *a = &b->asked[r];

		for (unsigned i = 0; i < a->parts; i++) {
			assert_true(bench_is(a->at[i] - GAP, GAP_BYTE, GAP));
			assert_true(bench_is(a->at[i] + a->len[i], GAP_BYTE, GAP));
		}
	}
}

/* No writable byte of a request was touched. */
static inline void bench_assert_blank(const struct bench *b, unsigned r)
{
	const struct asked *a = &b->asked[r];

	for (unsigned i = a->outs; i < a->parts; i++)
		assert_true(bench_is(a->at[i], BLANK, a->len[i]));
}

static inline void bench_assert_reply(const struct bench *b, unsigned r, uint8_t status,
				      uint32_t length)
{
	assert_int_equal(bench_length(b, r), length);
	assert_int_equal(bench_status(b, r), status);
	bench_assert_gaps(b);
}

/* Is the disk as it was at first, from `sector` on? */
static inline int bench_disk_is_new(const struct bench *b, uint64_t sector, uint32_t sectors)
{
	for (uint64_t i = sector * 512; i < (sector + sectors) * 512; i++) {
		if (b->disk[i] != disk_byte(i))
			return 0;
	}
	return 1;
}

#endif
