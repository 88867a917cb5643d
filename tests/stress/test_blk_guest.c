/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block driver in one thread and the queue that serves it in another, over bad storage: bios of
 * every kind, alone, in lists and through a plug, on every path; cancelled, cut where they are too
 * long, joined where they are neighbours, and caught by resets on their way.
 *
 * Each bio has to come back once, with the status that its own sectors earned, whatever it shared a
 * request with. One that was cancelled in time has changed nothing; one that a reset caught may
 * have, and is submitted again, or given up. What was written is there in the end.
 *
 * VQB_LONG=1 makes it twenty times as long, VQB_SEED another run.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <vqblk/backend_fault.h>
#include <vqblk/blk_device.h>
#include <vqblk/blk_driver.h>

#include "host.h"
#include "length.h"
#include "random.h"
#include "sectors.h"
#include "unit.h"

#define EVENTS VQB_FEATURE(VQB_F_EVENT_IDX)
#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define INDIRECT VQB_FEATURE(VQB_F_INDIRECT_DESC)
#define FLUSH VQB_FEATURE(VQB_BLK_F_FLUSH)
#define SEG_MAX VQB_FEATURE(VQB_BLK_F_SEG_MAX)
#define TYPES                                                                                      \
	(VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_DISCARD) |                           \
	 VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES))
#define OFFER (TYPES | EVENTS | IN_ORDER | INDIRECT | FLUSH | SEG_MAX)
#define GUEST_BASE UINT64_C(0x7000000000)
#define SERIAL "guest stress"

enum {
	DISK = 512 * SECTORS,
	MAX_RING = 256,
	IOS = 96,     /* bios out, at most */
	LONGEST = 24, /* sectors of one read or write */
	WIDEST = 150, /* of a discard and its like */
	VECS = 6,
	GAP = 16, /* bytes between buffers */
	RANGES = 3,
	MAX_RANGE = 512 * 5, /* bytes of one of the backend's ios; a range may have more */
	TABLES = 8,
	TABLE_LENGTH = 16,
	TABLES_AT = 8192, /* in guest memory, behind the ring */
	AREA_AT = TABLES_AT + TABLES * TABLE_LENGTH * 16,
	SLOT_BYTES = 512 * LONGEST + GAP * (VECS + 1),
	POISON = 0xe7,
	BIOS = 10000,  /* in each run */
	BETWEEN = 300, /* of them between two resets, about */
	SWITCHING = 99,
};

/* One way of running it: a row of the table at the end. */
struct mode {
	const char *name;
	uint32_t ring, depth;
	uint32_t path;               /* enum vqb_path, or SWITCHING */
	uint64_t features;           /* besides TYPES */
	uint32_t max_sectors, chunk; /* of a request; 0: what the device can */
	bool resets;
	bool chance; /* errors by chance as well; else only bad sectors fail */
};

struct io {
	struct vqb_bio bio; /* the first member */
	struct vqb_segment vec[VECS];
	bool out, wrong; /* wrong: `refusal` is all it will ever get */
	int32_t refusal;
	uint32_t sector, sectors, version;
	uint64_t number; /* by submission */
};

struct counts {
	uint32_t asked, back, cancelled, late, refused, undecided, abandoned, again, resets, broken,
		needs, switches, checked, failed_well;
};

struct guest {
	const struct mode *mode;
	uint64_t features; /* that were accepted */
	uint32_t total;
	/* set up before the threads start */
	uint8_t *memory, *disk;
	size_t data_at, bytes; /* of guest memory: where buffers begin; all of it */
	struct vqb_extent ram;
	struct vqb_memory map;
	struct vqb_ring ring;
	struct vqb_driver *end;
	struct vqb_blk_driver *drv;
	struct vqb_blk_device *device;
	struct vqb_backend *below;
	struct host host;
	_Atomic(const char *) fault;
	void *object[9];
	unsigned objects;
	/* the driver's */
	struct random random;
	struct vqb_plug plug;
	struct io io[IOS];
	struct sectors sectors;
	uint64_t number;
	uint32_t next, out, reset_at;
	bool draining; /* nothing is asked for until nothing is out */
	struct counts count;
};

static uint64_t seed;

static void expect(struct guest *g, bool holds, const char *what)
{
	host_expect(&g->host, holds, what);
}

static bool moves_data(uint8_t op)
{
	return op == VQB_BLK_IN || op == VQB_BLK_OUT;
}

static bool has_sectors(uint8_t op)
{
	return moves_data(op) || op == VQB_BLK_DISCARD || op == VQB_BLK_WRITE_ZEROES;
}

static bool any_bad(const struct io *io)
{
	for (uint32_t i = 0; has_sectors(io->bio.op) && i < io->sectors; i++) {
		if (vqb_backend_fault_is_bad(seed, PER_CENT, io->sector + i))
			return true;
	}
	return false;
}

/* ---- making bios ---- */

static uint8_t *host_of(const struct guest *g, uint64_t addr)
{
	return g->memory + (addr - GUEST_BASE);
}

static uint8_t *slot_of(const struct guest *g, const struct io *io)
{
	return g->memory + g->data_at + (size_t)(io - g->io) * SLOT_BYTES;
}

/* Byte `at` of a bio's data: to it, or from it. The rest of the vector that it is in is in *n. */
static uint8_t *data_at(const struct guest *g, const struct io *io, uint32_t at, uint32_t *n)
{
	for (uint32_t i = 0; i < io->bio.nvec; i++) {
		if (at < io->vec[i].len) {
			*n = io->vec[i].len - at;
			return host_of(g, io->vec[i].addr) + at;
		}
		at -= io->vec[i].len;
	}
	*n = 0;
	return NULL;
}

static void copy(const struct guest *g, const struct io *io, uint32_t i, uint8_t *sector, bool in)
{
	uint32_t done = 0, n;

	while (done < 512) {
		uint8_t *data = data_at(g, io, 512 * i + done, &n);

		if (n > 512 - done)
			n = 512 - done;
		memcpy(in ? sector + done : data, in ? data : sector + done, n);
		done += n;
	}
}

/* What the buffers hold when the bio is submitted, once or again. */
static void fill(struct guest *g, struct io *io)
{
	uint8_t stamp[512];

	memset(slot_of(g, io), POISON, SLOT_BYTES);
	for (uint32_t i = 0; io->bio.op == VQB_BLK_OUT && !io->wrong && i < io->sectors; i++) {
		sectors_stamp(&g->sectors, stamp, io->sector + i, io->version);
		copy(g, io, i, stamp, false);
	}
}

static void add_vector(const struct guest *g, struct io *io, uint32_t *at, uint32_t bytes)
{
	*at += GAP;
	io->vec[io->bio.nvec++] = (struct vqb_segment){
		.addr = GUEST_BASE + (uint64_t)(slot_of(g, io) - g->memory) + *at, .len = bytes
	};
	*at += bytes;
}

/*
 * Cuts data into vectors, at most once in each block, so that none takes more than two segments,
 * and only between blocks where a request has but one.
 */
static void cut(struct guest *g, struct io *io)
{
	uint32_t at = 0, from = 0, i;

	io->bio.nvec = 0;
	for (i = 0; i < io->sectors && io->bio.nvec < VECS - 1; i++) {
		uint32_t within = g->features & SEG_MAX && random_one_in(&g->random, 2)
					  ? random_below(&g->random, 512)
					  : 0;

		if (random_one_in(&g->random, 4) && 512 * i + within > from) {
			add_vector(g, io, &at, 512 * i + within - from);
			from = 512 * i + within;
		}
	}
	add_vector(g, io, &at, 512 * io->sectors - from);
}

static struct io *find_io(struct guest *g)
{
	for (uint32_t i = 0; i < IOS; i++) {
		g->next = (g->next + 1) % IOS;
		if (!g->io[g->next].out)
			return &g->io[g->next];
	}
	return NULL;
}

static uint8_t flags_for(struct guest *g, uint8_t op)
{
	uint32_t flags = 0;

	if (op == VQB_BLK_OUT || op == VQB_BLK_WRITE_ZEROES) {
		flags |= random_one_in(&g->random, 8) ? VQB_BIO_FUA : 0;
		flags |= random_one_in(&g->random, 8) ? VQB_BIO_PREFLUSH : 0;
	}
	if (op == VQB_BLK_WRITE_ZEROES && random_one_in(&g->random, 2))
		flags |= VQB_BIO_UNMAP;
	return (uint8_t)(flags | (random_one_in(&g->random, 12) ? VQB_BIO_NOMERGE : 0));
}

/* A bio that must not get through, nor hold up those beside it. */
static void make_wrong(struct guest *g, struct io *io)
{
	io->wrong = true;
	io->refusal = VQB_E_INVALID;
	io->bio.flags = 0;
	switch (random_below(&g->random, 4)) {
	case 0:
		io->bio.op = 99;
		io->refusal = VQB_E_UNSUPP;
		break;
	case 1:
		io->vec[0].len = 511;
		io->bio.nvec = 1;
		break;
	case 2:
		io->bio.sector = SECTORS - io->sectors + 1;
		break;
	default:
		io->bio.op = VQB_BLK_FLUSH; /* with data */
		io->refusal = g->features & FLUSH ? VQB_E_INVALID : VQB_E_UNSUPP;
	}
}

/* A bio that is ready to be submitted. NULL: not now. */
static struct io *make(struct guest *g, uint8_t op, uint32_t sector, uint32_t sectors)
{
	struct io *io = find_io(g);
	uint32_t at = 0;

	if (!io || g->count.asked == g->total ||
	    (has_sectors(op) && !sectors_free(&g->sectors, sector, sectors, op == VQB_BLK_IN)))
		return NULL;
	*io = (struct io){ .sector = sector, .sectors = sectors, .out = true };
	io->bio.op = op;
	io->bio.vec = io->vec;
	io->bio.flags = flags_for(g, op);
	io->bio.sector = has_sectors(op) ? sector : 0;
	if (moves_data(op))
		cut(g, io);
	else if (has_sectors(op))
		io->bio.sectors = sectors;
	else if (op == VQB_BLK_GET_ID)
		add_vector(g, io, &at, VQB_BLK_ID_BYTES);
	if (op == VQB_BLK_OUT)
		io->version = ++g->sectors.newest;
	if (op == VQB_BLK_FLUSH && !(g->features & FLUSH)) {
		io->wrong = true;
		io->refusal = VQB_E_UNSUPP;
	}
	if (op == VQB_BLK_OUT && random_one_in(&g->random, 40))
		make_wrong(g, io);
	fill(g, io);
	io->number = ++g->number;
	if (has_sectors(op))
		sectors_occupy(&g->sectors, sector, sectors, op == VQB_BLK_IN, 1);
	g->count.asked++;
	g->out++;
	return io;
}

/* ---- what comes of them ---- */

enum end { DONE, UNKNOWN, UNDONE };

/* The bio is ours again, and this is what its sectors hold. */
static void retire(struct guest *g, struct io *io, enum end end)
{
	uint8_t op = io->version ? VQB_BLK_OUT : io->bio.op; /* a wrong one may say another */
	bool changes = has_sectors(op) && op != VQB_BLK_IN;

	if (changes && end == DONE)
		sectors_settle(&g->sectors, io->sector, io->sectors, io->version);
	if (changes && end == UNKNOWN)
		sectors_doubt(&g->sectors, io->sector, io->sectors, io->version);
	if (has_sectors(op))
		sectors_occupy(&g->sectors, io->sector, io->sectors, op == VQB_BLK_IN, -1);
	io->out = false;
	g->out--;
}

/* What lies between the buffers is nobody's to write. */
static void check_gaps(struct guest *g, const struct io *io)
{
	const uint8_t *at = slot_of(g, io);

	for (uint32_t i = 0; i < io->bio.nvec; i++) {
		for (unsigned k = 0; k < GAP; k++)
			expect(g, at[k] == POISON, "something was written beside a buffer");
		at += GAP + io->vec[i].len;
	}
}

static void check_data(struct guest *g, const struct io *io)
{
	uint8_t sector[512], id[VQB_BLK_ID_BYTES] = SERIAL;

	for (uint32_t i = 0; io->bio.op == VQB_BLK_IN && i < io->sectors; i++) {
		copy(g, io, i, sector, true);
		expect(g, sectors_verify(&g->sectors, io->sector + i, sector),
		       "a read brought something else");
		g->count.checked++;
	}
	if (io->bio.op == VQB_BLK_GET_ID)
		expect(g, !memcmp(host_of(g, io->vec[0].addr), id, sizeof(id)), "another serial");
}

static void complete(struct guest *g, struct io *io)
{
	bool good = io->bio.status == VQB_OK;

	expect(g, io->out, "a bio came back twice");
	expect(g, !io->wrong, "a wrong bio was carried out");
	expect(g, io->bio.state == VQB_BIO_IDLE, "a bio came back that is not idle");
	expect(g, good || io->bio.status == VQB_E_IO, "a status that there is no reason for");
	expect(g, !good || !any_bad(io), "OK, in spite of a bad sector");
	expect(g, good || any_bad(io) || g->mode->chance, "an error without a cause");
	if (host_failed(&g->host))
		return;
	g->count.failed_well += !good && !any_bad(io);
	g->count.back++;
	check_gaps(g, io);
	if (good)
		check_data(g, io);
	retire(g, io, good ? DONE : UNKNOWN);
}

static uint32_t reap(struct guest *g)
{
	struct vqb_bio *done, *next;
	uint32_t n = vqb_blk_reap(g->drv, &done), listed = 0;

	for (; done; done = next, listed++) {
		next = done->next;
		complete(g, (struct io *)done);
	}
	expect(g, n == listed, "reap counts wrong");
	expect(g, !vqb_driver_state(g->end), "the driver's ring is broken");
	expect(g, vqb_blk_outstanding(g->drv) == g->out, "not as many are out as there should be");
	return n;
}

static void refuse(struct guest *g, struct io *io)
{
	expect(g, io->wrong && io->bio.status == io->refusal, "refused, or for another reason");
	expect(g, io->bio.state == VQB_BIO_IDLE, "a bio was refused that is not idle");
	g->count.refused++;
	retire(g, io, UNDONE);
}

/* ---- submitting ---- */

static void submit_one(struct guest *g, struct io *io)
{
	int32_t status = vqb_blk_submit(g->drv, &io->bio);

	if (status || io->wrong)
		refuse(g, io);
	else
		expect(g, vqb_blk_submit(g->drv, &io->bio) == VQB_E_BUSY, "submitted twice");
}

/* What is wrong comes back, in order; all else is out. */
static void submit_list(struct guest *g, struct vqb_bio *list)
{
	struct vqb_bio *refused, *bio, *next;
	uint32_t wrong = 0, back = 0;
	int32_t status, first = VQB_OK;
	uint64_t number = 0;

	for (bio = list; bio; bio = bio->next) {
		wrong += ((struct io *)bio)->wrong;
		if (!first)
			first = ((struct io *)bio)->refusal;
	}
	status = vqb_blk_submit_list(g->drv, list, &refused);
	expect(g, status == first, "a list has another answer than its first wrong bio");
	for (bio = refused; bio; bio = next, back++) {
		struct io *io = (struct io *)bio;

		next = bio->next;
		expect(g, io->number > number, "refused out of order");
		number = io->number;
		refuse(g, io);
	}
	expect(g, back == wrong, "not all that is wrong was refused");
}

static void submit_plugged(struct guest *g, struct io *const *io, uint32_t n)
{
	struct vqb_bio *list;
	uint32_t i;

	for (i = 0; i < n; i++)
		expect(g, !vqb_plug_add(&g->plug, g->drv, &io[i]->bio), "plug_add");
	if (n > 2 && random_one_in(&g->random, 4)) { /* second thoughts */
		expect(g, !vqb_plug_remove(&g->plug, &io[1]->bio), "plug_remove");
		g->count.cancelled++;
		retire(g, io[1], UNDONE);
	}
	expect(g, vqb_plug_take(&g->plug, &list) == g->drv, "a plug forgot its queue");
	submit_list(g, list);
	expect(g, !vqb_plug_take(&g->plug, &list), "a plug kept something");
}

/* In one of the ways that there are. */
static void submit(struct guest *g, struct io **io, uint32_t n)
{
	uint32_t how = random_below(&g->random, 3);

	if (!n)
		return;
	if (!how) {
		for (uint32_t i = 0; i < n; i++)
			submit_one(g, io[i]);
	} else if (how == 1) {
		for (uint32_t i = 0; i < n; i++)
			io[i]->bio.next = i + 1 < n ? &io[i + 1]->bio : NULL;
		submit_list(g, &io[0]->bio);
	} else {
		submit_plugged(g, io, n);
	}
}

/* A run of reads or writes that are neighbours, some of them long, or something else. */
static void ask_some(struct guest *g)
{
	static const uint8_t other[] = { VQB_BLK_FLUSH, VQB_BLK_GET_ID };
	uint32_t sector = random_below(&g->random, SECTORS), kind = random_below(&g->random, 16);
	uint32_t run = 1 + random_below(&g->random, 12), n = 0;
	uint8_t op = kind & 1 ? VQB_BLK_IN : VQB_BLK_OUT;
	uint32_t most = random_one_in(&g->random, 3) ? LONGEST : 4;
	struct io *io[12];

	if (kind == 2)
		op = VQB_BLK_DISCARD;
	if (kind == 4)
		op = VQB_BLK_WRITE_ZEROES;
	if (kind == 2 || kind == 4)
		most = random_one_in(&g->random, 4) ? WIDEST : 8;
	if (kind == 6)
		op = other[random_below(&g->random, 2)];
	for (; run; run--) {
		uint32_t sectors = 1 + random_below(&g->random, most);

		io[n] = make(g, op, sector, sectors);
		if (!io[n])
			break;
		sector += sectors + random_one_in(&g->random, 6);
		n++;
		if (sector >= SECTORS || !has_sectors(op))
			break;
	}
	if (n && random_one_in(&g->random, 4)) { /* the first is not always the lowest */
		struct io *swap = io[0];

		io[0] = io[n - 1];
		io[n - 1] = swap;
		for (uint32_t i = 0; i < n; i++)
			io[i]->number = g->number - n + 1 + i;
	}
	submit(g, io, n);
}

static void cancel_some(struct guest *g)
{
	struct io *io = &g->io[random_below(&g->random, IOS)];
	int32_t status = vqb_blk_cancel(g->drv, &io->bio);

	if (!io->out) {
		expect(g, status == VQB_E_INVALID, "an idle bio was cancelled");
		return;
	}
	expect(g, status == VQB_OK || status == VQB_E_LATE, "cancel answers something else");
	if (status) {
		g->count.late++;
		return;
	}
	expect(g, io->bio.status == VQB_E_CANCELLED && io->bio.state == VQB_BIO_IDLE,
	       "cancelled, but not so");
	g->count.cancelled++;
	retire(g, io, UNDONE);
}

/* ---- resets ---- */

static void poison(struct guest *g)
{
	memset(g->memory + AREA_AT, POISON, g->bytes - AREA_AT);
}

static bool is_poisoned(const struct guest *g)
{
	for (size_t i = AREA_AT; i < g->bytes; i++) {
		if (g->memory[i] != POISON)
			return false;
	}
	return true;
}

/* While the ring is of no use, nothing gets through, and nothing is handed back. */
static void check_useless(struct guest *g, int32_t why)
{
	struct io *io = make(g, VQB_BLK_FLUSH, 0, 0);
	struct vqb_bio *list = NULL;
	uint32_t out = vqb_blk_outstanding(g->drv);

	expect(g, !vqb_blk_reap(g->drv, &list) && !list, "reaped from a ring of no use");
	expect(g, vqb_driver_state(g->end) == why, "not the state that it should be in");
	expect(g, vqb_blk_abandon(g->drv, &list) == VQB_E_BUSY && !list, "abandoned too early");
	expect(g, vqb_blk_outstanding(g->drv) == out, "something was forgotten");
	if (!io)
		return;
	io->wrong = true;
	io->refusal = why;
	submit_one(g, io);
}

/* A device that claims more completions than there are requests. */
static void scribble(struct guest *g)
{
	struct vqb_le16 *index = (struct vqb_le16 *)g->ring.used + 1;

	*index = vqb_to_le16((uint16_t)(vqb_from_le16(*index) + 1000));
}

/* All that was out, once and in order; *again is what is to be submitted again. */
static void take_back(struct guest *g, struct vqb_bio **again)
{
	struct vqb_bio *list, *next, **tail = again;
	uint64_t number = 0;

	expect(g, !vqb_driver_reset(g->end, NULL), "the driver's reset was refused");
	expect(g, !vqb_blk_abandon(g->drv, &list), "abandon was refused");
	for (; list && !host_failed(&g->host); list = next) {
		struct io *io = (struct io *)list;
		bool undone = io->bio.status == VQB_E_CANCELLED;

		next = list->next;
		expect(g, io->out && !io->wrong, "abandoned, though it is not out");
		expect(g, io->number > number, "not in the order of submission");
		expect(g, io->bio.state == VQB_BIO_IDLE, "abandoned, and not idle");
		expect(g,
		       undone || io->bio.status == VQB_E_AGAIN ||
			       (io->bio.status == VQB_E_IO && (any_bad(io) || g->mode->chance)),
		       "abandoned with a status that there is no reason for");
		number = io->number;
		g->count.undecided += !undone;
		g->count.abandoned++;
		if (io->bio.status == VQB_E_IO || random_one_in(&g->random, 3)) {
			retire(g, io, undone ? UNDONE : UNKNOWN);
			continue;
		}
		/* Still ours to see through: what it did or not is settled when it is done. */
		if (!undone && has_sectors(io->bio.op) && io->bio.op != VQB_BLK_IN)
			sectors_doubt(&g->sectors, io->sector, io->sectors, io->version);
		*tail = list;
		tail = &list->next;
		g->out--;
	}
	*tail = NULL;
	expect(g, !g->out && !vqb_blk_outstanding(g->drv), "a bio was lost");
}

static int32_t read_limits(const struct guest *g, struct vqb_blk_limits *blk,
			   struct vqb_limits *limits)
{
	_Alignas(8) uint8_t space[VQB_BLK_CONFIG_BYTES];
	int32_t status;

	vqb_blk_device_read_config(g->device, 0, space, sizeof(space));
	status = vqb_blk_limits_read(space, sizeof(space), g->features, g->ring.size, blk);
	if (status)
		return status;
	status = vqb_limits_of_blk(blk, g->features, g->ring.size, limits);
	if (g->mode->max_sectors)
		limits->max_sectors = g->mode->max_sectors;
	limits->chunk_sectors = g->mode->chunk;
	return status;
}

static int place_ring(struct guest *g, uint32_t size)
{
	g->ring.size = g->host.at.size = size;
	return vqb_ring_place(&g->ring, g->memory, 64) ||
	       vqb_ring_place_at(&g->host.at, GUEST_BASE, 64);
}

/* Goes on with a ring of some size, and the limits that it has. */
static void start_again(struct guest *g)
{
	struct vqb_blk_limits blk;
	struct vqb_limits limits;
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config),
						.features = g->features,
						.limits = &blk,
						.mapping = &limits };
	uint32_t size = g->mode->ring >> random_below(&g->random, 7);

	expect(g, !place_ring(g, size < 4 ? 4 : size), "the ring has no place");
	expect(g, !vqb_driver_reset(g->end, &g->ring), "the driver does not start over");
	expect(g, !read_limits(g, &blk, &limits), "there are no limits for such a ring");
	expect(g, !vqb_blk_driver_configure(g->drv, &config), "the limits are refused");
}

static void submit_again(struct guest *g, struct vqb_bio *list)
{
	for (struct vqb_bio *bio = list; bio; bio = bio->next) {
		struct io *io = (struct io *)bio;

		fill(g, io);
		io->number = ++g->number;
		g->out++;
		g->count.again++;
	}
	if (list)
		submit_list(g, list);
}

static void start_over(struct guest *g)
{
	uint32_t how = g->count.resets++ % 4;
	struct vqb_bio *again;

	g->reset_at = g->count.asked + 1 + random_below(&g->random, 2 * BETWEEN);
	if (!how) { /* the device says that it must be */
		vqb_driver_needs_reset(g->end);
		check_useless(g, VQB_E_NEEDS_RESET);
		g->count.needs++;
	}
	host_stop(&g->host);
	if (host_failed(&g->host))
		return;
	if (how == 1) {
		scribble(g);
		check_useless(g, VQB_E_BROKEN);
		g->count.broken++;
	}
	take_back(g, &again);
	poison(g);
	host_late(&g->host);
	if (host_failed(&g->host))
		return;
	expect(g, is_poisoned(g), "a buffer was written after the queue was quiet");
	start_again(g);
	host_resume(&g->host);
	submit_again(g, again);
}

/* ---- the driver's thread ---- */

static void switch_path(struct guest *g)
{
	uint32_t path = random_below(&g->random, 3);

	if (g->mode->path != SWITCHING)
		return;
	g->draining |= random_one_in(&g->random, 50);
	expect(g, vqb_blk_set_path(g->drv, path) == (g->out ? VQB_E_BUSY : VQB_OK),
	       "a path was switched at the wrong time, or not at the right one");
	if (g->out)
		return;
	g->draining = false;
	g->count.switches++;
}

static void *drive(void *context)
{
	struct guest *g = context;

	while (!host_failed(&g->host) && (g->count.asked < g->total || g->out)) {
		uint32_t n, asked = g->count.asked;

		if (!g->draining && !random_one_in(&g->random, 4))
			ask_some(g);
		if (random_one_in(&g->random, 8))
			cancel_some(g);
		if (random_one_in(&g->random, 3))
			host_kick(&g->host, vqb_blk_publish(g->drv));
		n = reap(g);
		switch_path(g);
		if (g->mode->resets && asked >= g->reset_at && asked < g->total) {
			host_kick(&g->host, vqb_blk_publish(g->drv));
			start_over(g);
			continue;
		}
		if (n || (asked != g->count.asked && !random_one_in(&g->random, 8)) || !g->out)
			continue;
		n = vqb_blk_turn(g->drv);
		host_kick(&g->host, n);
		if (!(n & VQB_MORE) && vqb_notify_wait(&g->host.interrupt, HOST_PATIENCE))
			host_give_up(&g->host, "the driver was not woken");
	}
	host_end(&g->host);
	return NULL;
}

/* ---- setting up ---- */

static void *object(struct guest *g, size_t bytes)
{
	assert_true(bytes && g->objects < sizeof(g->object) / sizeof(g->object[0]));
	return g->object[g->objects++] = host_memory(bytes);
}

static void check(int32_t status)
{
	assert_string_equal(vqb_status_name(status), "VQB_OK");
}

static void open_backend(struct guest *g)
{
	struct vqb_backend_memory_config below = { .struct_size = sizeof(below),
						   .access = VQB_READ | VQB_WRITE,
						   .bytes = DISK };
	struct vqb_backend_fault_config config = { .struct_size = sizeof(config),
						   .ios = 32,
						   .pieces = 16,
						   .delay = 8,
						   .alignment = 512,
						   .seed = seed };
	size_t bytes = vqb_backend_memory_size();

	below.disk = g->disk = object(g, DISK);
	check(vqb_backend_memory_init(object(g, bytes), bytes, &below, &config.below));
	host_fault_rates(&config, g->mode->chance);
	bytes = vqb_backend_fault_size(&config);
	check(vqb_backend_fault_init(object(g, bytes), bytes, &config, &g->host.backend));
	/* So that a range takes several steps. */
	g->host.backend->caps.max_range = MAX_RANGE;
}

static void open_device(struct guest *g)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .capacity = SECTORS,
					 .segments = MAX_RING - 2,
					 .discard_sectors = 64,
					 .discard_ranges = RANGES,
					 .zeroes_sectors = 40,
					 .zeroes_ranges = RANGES };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.features = OFFER,
						.limits = &limits,
						.serial = SERIAL,
						.backend = &g->host.backend->caps };

	check(vqb_blk_device_init(object(g, vqb_blk_device_size()), vqb_blk_device_size(), &config,
				  &g->device));
	assert_int_equal(vqb_blk_device_features(g->device), OFFER);
	check(vqb_blk_device_accept(g->device, g->features));
}

/* Guest memory: ring, tables, the driver's area, buffers. */
static void open_memory(struct guest *g)
{
	g->data_at = AREA_AT + VQB_BLK_AREA_BYTES(g->mode->depth, RANGES);
	g->bytes = g->data_at + (size_t)IOS * SLOT_BYTES;
	g->memory = object(g, g->bytes);
	g->ram = (struct vqb_extent){ .addr = GUEST_BASE,
				      .len = g->bytes,
				      .host = g->memory,
				      .access = VQB_READ | VQB_WRITE };
	g->map = (struct vqb_memory){
		.struct_size = sizeof(g->map), .generation = 1, .count = 1, .sorted = &g->ram
	};
	g->ring.features = g->host.at.features = g->features;
	assert_false(place_ring(g, g->mode->ring));
	/* The area's last part. */
	g->host.statuses = VQB_ROUND_UP(g->mode->depth);
	g->host.status = g->memory + g->data_at - g->host.statuses;
}

static void open_driver(struct guest *g)
{
	struct vqb_driver_config ring = { .struct_size = sizeof(ring), .ring = g->ring };
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config),
						.depth = g->mode->depth,
						.features = g->features,
						.ranges = RANGES };
	struct vqb_blk_limits blk;
	struct vqb_limits limits;
	size_t bytes;

	if (g->features & INDIRECT) {
		ring.tables = (struct vqb_dma){ .host = g->memory + TABLES_AT,
						.addr = GUEST_BASE + TABLES_AT,
						.bytes = AREA_AT - TABLES_AT };
		ring.max_table = TABLE_LENGTH;
	}
	bytes = vqb_driver_size(&ring);
	check(vqb_driver_init(object(g, bytes), bytes, &ring, &g->end));
	check(read_limits(g, &blk, &limits));
	config.path = g->mode->path == SWITCHING ? 0 : g->mode->path;
	config.limits = &blk;
	config.mapping = &limits;
	config.ring = g->end;
	config.area = (struct vqb_dma){ .host = g->memory + AREA_AT,
					.addr = GUEST_BASE + AREA_AT,
					.bytes = g->data_at - AREA_AT };
	bytes = vqb_blk_driver_size(&config);
	check(vqb_blk_driver_init(object(g, bytes), bytes, &config, &g->drv));
}

static void open_queue(struct guest *g)
{
	struct vqb_device_config ring = { .struct_size = sizeof(ring),
					  .max_size = MAX_RING,
					  .ring = g->host.at,
					  .memory = &g->map };
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config),
					       .requests = g->mode->ring,
					       .pieces = 4 * MAX_RING,
					       .features = g->features,
					       .device = g->device,
					       .backend = g->host.backend };
	size_t bytes = vqb_device_size(&ring);

	check(vqb_device_init(object(g, bytes), bytes, &ring, &g->host.dev));
	config.ring = g->host.dev;
	bytes = vqb_blk_queue_size(&config);
	check(vqb_blk_queue_init(object(g, bytes), bytes, &config, &g->host.queue));
}

/* ---- one mode ---- */

/* It was about what it is said to be about. */
static void check_counts(struct guest *g)
{
	const struct mode *mode = g->mode;
	const struct counts *c = &g->count;
	struct vqb_requests_counters did;
	struct vqb_blk_queue_counters served;

	vqb_blk_driver_read_counters(g->drv, &did);
	vqb_blk_queue_read_counters(g->host.queue, &served);
	print_message("%u bios, %u requests, %u merged, %u retried, %u parts, %u flushes, %u full; "
		      "%u cancelled, %u late, %u refused; %u resets, %u undecided, %u again\n",
		      c->asked, (unsigned)did.requests, (unsigned)did.merged, (unsigned)did.retried,
		      (unsigned)did.parts, (unsigned)did.flushes, (unsigned)did.full, c->cancelled,
		      c->late, c->refused, c->resets, c->undecided, c->again);
	assert_int_equal(c->asked, g->total);
	assert_int_equal(c->back + c->cancelled + c->refused + c->abandoned - c->again, c->asked);
	assert_int_equal(did.done, c->back + c->abandoned);
	assert_int_equal(served.malformed, 0);
	assert_true(c->refused && c->late && c->cancelled && c->checked && did.full);
	assert_int_equal(did.merged > 0, mode->path != VQB_PATH_BIO);
	/* With one segment only ranges are joined, and few of those fail. */
	if (g->features & SEG_MAX)
		assert_int_equal(did.retried > 0, mode->path != VQB_PATH_BIO);
	assert_int_equal(did.flushes > 0, (g->features & FLUSH) != 0);
	assert_true(did.parts > 0);
	assert_int_equal(c->failed_well > 0, mode->chance);
	assert_int_equal(c->resets > 0, mode->resets);
	assert_int_equal(c->undecided > 0, mode->resets);
	assert_int_equal(c->again > 0, mode->resets);
	assert_int_equal(c->broken && c->needs, mode->resets);
	assert_int_equal(c->switches > 0, mode->path == SWITCHING);
}

/* Shows: BLK-DRV-07 BLK-DRV-23 BF-DRV-33 K37 */
static void run(void **state)
{
	struct guest *g = host_memory(sizeof(*g));
	pthread_t device, driver;

	g->mode = *state;
	g->features = TYPES | g->mode->features;
	g->total = length_is_set("VQB_LONG") ? 20 * BIOS : BIOS;
	g->random.state = 2 * seed;
	g->reset_at = BETWEEN;
	sectors_open(&g->sectors, 0);
	host_open(&g->host, &g->fault, 2 * seed + 1);
	open_backend(g);
	open_device(g);
	open_memory(g);
	open_driver(g);
	open_queue(g);
	assert_false(pthread_create(&device, NULL, host_run, &g->host));
	assert_false(pthread_create(&driver, NULL, drive, g));
	pthread_join(driver, NULL);
	pthread_join(device, NULL);
	if (atomic_load(&g->fault))
		fail_msg("after %u of %u bios and %u resets: %s", g->count.asked, g->total,
			 g->count.resets, atomic_load(&g->fault));
	for (uint32_t i = 0; i < SECTORS; i++)
		assert_true(sectors_verify(&g->sectors, i, g->disk + 512 * (size_t)i));
	check_counts(g);
	host_close(&g->host);
	while (g->objects)
		free(g->object[--g->objects]);
	free(g);
}

#define WHEN_FULL VQB_PATH_MERGE_WHEN_FULL
#define BIO VQB_PATH_BIO
#define REQUEST VQB_PATH_REQUEST
#define USUAL (EVENTS | FLUSH | SEG_MAX)

static struct mode modes[] = {
	{ "bio, ring of 4", 4, 2, BIO, USUAL, 0, 0, false, false },
	{ "request, ring of 4", 4, 4, REQUEST, USUAL | INDIRECT, 0, 0, false, false },
	{ "when full, ring of 4", 4, 1, WHEN_FULL, USUAL, 0, 0, false, false },
	{ "bio, ring of 256", 256, 16, BIO, USUAL | INDIRECT, 8, 0, false, false },
	{ "request, ring of 256", 256, 16, REQUEST, USUAL | INDIRECT, 16, 0, false, false },
	{ "when full, ring of 256", 256, 16, WHEN_FULL, USUAL | INDIRECT, 16, 16, false, false },
	{ "bio, errors by chance", 32, 8, BIO, FLUSH | SEG_MAX, 8, 0, false, true },
	{ "request, errors by chance", 32, 8, REQUEST, USUAL, 8, 0, false, true },
	{ "when full, errors by chance", 32, 8, WHEN_FULL, USUAL | IN_ORDER, 8, 0, false, true },
	{ "request, one segment", 64, 8, REQUEST, EVENTS | FLUSH, 8, 0, false, false },
	{ "when full, no flush", 64, 8, WHEN_FULL, EVENTS | SEG_MAX, 8, 0, false, false },
	{ "switching", 64, 8, SWITCHING, USUAL | INDIRECT, 8, 0, false, false },
	{ "bio, resets", 64, 16, BIO, USUAL | INDIRECT, 8, 0, true, false },
	{ "request, resets", 64, 16, REQUEST, USUAL | INDIRECT, 8, 32, true, false },
	{ "when full, resets", 128, 8, WHEN_FULL, USUAL, 8, 0, true, false },
	{ "request, in order, resets", 64, 16, REQUEST, USUAL | IN_ORDER, 8, 0, true, false },
	{ "bio, resets, errors by chance", 256, 16, BIO, USUAL, 8, 0, true, true },
	{ "request, resets, errors by chance", 32, 16, REQUEST, USUAL, 8, 8, true, true },
	{ "when full, resets, errors by chance", 32, 16, WHEN_FULL, USUAL | INDIRECT, 8, 0, true,
	  true },
	{ "switching, resets, errors by chance", 256, 8, SWITCHING, USUAL, 8, 0, true, true },
};

int main(void)
{
	enum { COUNT = sizeof(modes) / sizeof(modes[0]) };
	struct CMUnitTest tests[COUNT] = { { 0 } };

	seed = length_seed(1);
	for (unsigned i = 0; i < COUNT; i++) {
		tests[i].name = modes[i].name;
		tests[i].test_func = run;
		tests[i].initial_state = &modes[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
