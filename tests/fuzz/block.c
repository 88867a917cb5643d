/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * block.c: a whole block queue, with a coalescer or without, between a driver that writes whatever
 * it likes and a backend that fails, ends early, delays, reorders and is full.
 *
 * Two things are looked at from within. What the queue asks of the ring goes through this file (the
 * linker's --wrap), so there is a ledger of every ticket: taken, then put once, with a length that
 * the chain has room for, or ended by a reset. And what it asks of the backend goes through a spy,
 * which holds it to the capabilities, the capacity and the memory map. Guest memory has a second
 * copy: between two looks at it only the used ring may change, writable buffers of chains that are
 * out, and what a read that the backend has may write to.
 */
#include <vqblk/backend_fault.h>
#include <vqblk/blk_device.h>

#include "fuzz.h"
#include "lib/block/blk_queue.h" /* whose request an io is */

enum {
	CONFIG = 32,
	RING = 64, /* entries at most */
	SLOTS = 16,
	SECTORS = 64, /* of the backend; the capacity may be more */
	MAX_STEPS = 400,
	MAX_CALLS = 100 * 1000, /* of ring and backend, within one call of the queue */
	MAX_PIECES = 256,
	MAX_IOS = 64,
};

enum region { MAIN, NEXT, READ, WRITE, HOOK, TOP, REGIONS };

/* Where the driver has its things, all of them in MAIN. */
enum {
	DESC_AT = 0x1000,
	AVAIL_AT = 0x1400,
	USED_AT = 0x1500,
	HEADER_AT = 0x1800,
	TABLE_AT = 0x1a00,
	STATUS_AT = 0x1e00,
};

#define BOTH ((uint32_t)(VQB_READ | VQB_WRITE))

static const struct {
	uint64_t addr, len;
	uint32_t access, shift; /* bytes by which the host is not aligned */
} region_at[REGIONS] = {
	[MAIN] = { 0x1000, 0x1000, BOTH, 0 },    [NEXT] = { 0x2000, 0x1000, BOTH, 1 },
	[READ] = { 0x4000, 0x400, VQB_READ, 0 }, [WRITE] = { 0x4400, 0x400, VQB_WRITE, 3 },
	[HOOK] = { 0x8000, 0x800, BOTH, 0 },     [TOP] = { UINT64_MAX - 0x1ff, 0x200, BOTH, 0 },
};

struct area {
	uint8_t *memory, *host, *copy, *sent, *may;
};

/* A chain that is out. */
struct lent {
	bool out, sound, sent;
	struct vqb_ticket ticket;
	uint64_t writable;
	const uint8_t *status; /* its last writable byte */
	uint32_t readables, pieces;
	struct vqb_piece piece[MAX_PIECES];
};

struct run {
	struct vqb_backend spy; /* the first member */
	struct vqb_backend *faulty;
	struct fuzz_input in;
	struct area area[REGIONS];
	struct vqb_extent extent[REGIONS];
	struct vqb_memory memory;
	uint32_t step; /* bytes that the hook hands out at a time */
	struct vqb_ring_at ring;
	struct vqb_device *dev;
	struct vqb_blk_device *disk;
	struct vqb_blk_queue *queue;
	struct vqb_coalescer *coalescer;
	uint8_t *sectors;
	struct lent lent[RING];
	uint32_t outs;  /* chains out */
	uint32_t taken; /* since the ring's life began: the available index that was reached */
	uint32_t calls;
	uint32_t offered, slot;
	uint64_t end;                     /* of the request before, so that there are neighbours */
	const struct vqb_io *io[MAX_IOS]; /* in the backend */
	uint32_t ios;
	bool plugged, late;
	uint32_t newest;    /* ticket that has reached the backend */
	uint64_t highest;   /* capacity since nothing was under way */
	bool through, back; /* modes that the cache was in since then */
	uint64_t accepted;
	struct vqb_blk_queue_counters count;
	void *object[8];
	uint32_t objects;
};

/* The run that the wrapped calls belong to. */
static struct run *now;

static void *object(struct run *r, size_t bytes)
{
	FUZZ_CHECK(bytes && r->objects < sizeof(r->object) / sizeof(r->object[0]));
	return r->object[r->objects++] = fuzz_object(bytes);
}

static void called(void)
{
	FUZZ_CHECK(++now->calls < MAX_CALLS);
}

/* ---- guest memory ---- */

static int region_of(uint64_t addr)
{
	for (int i = 0; i < REGIONS; i++) {
		if (addr - region_at[i].addr < region_at[i].len)
			return i;
	}
	return -1;
}

static void guest_write(struct run *r, uint64_t addr, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int region = region_of(addr + i);
		const struct area *a = &r->area[region < 0 ? 0 : region];
		size_t at = (size_t)(addr + i - region_at[region < 0 ? 0 : region].addr);

		if (region >= 0)
			a->host[at] = a->copy[at] = a->sent[at] = ((const uint8_t *)from)[i];
	}
}

static void guest_poke(struct run *r, uint64_t addr, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	poke(raw, v, bytes);
	guest_write(r, addr, raw, bytes);
}

/* Marks a piece as one that may change. Answers whether all of it is where `access` is allowed. */
static bool mark(struct run *r, const struct vqb_piece *piece, uint32_t access)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		size_t at = (size_t)((uintptr_t)piece->base - (uintptr_t)r->area[i].host);

		if (at >= region_at[i].len)
			continue;
		if ((region_at[i].access & access) != access || piece->len > region_at[i].len - at)
			return false;
		if (access == VQB_WRITE)
			memset(r->area[i].may + at, 1, piece->len);
		return true;
	}
	return false;
}

static void mark_all(struct run *r)
{
	for (unsigned i = 0; i < RING; i++) {
		const struct lent *l = &r->lent[i];

		for (uint32_t k = l->readables; l->out && k < l->pieces; k++)
			FUZZ_CHECK(mark(r, &l->piece[k], VQB_WRITE));
	}
	for (uint32_t i = 0; i < r->ios; i++) {
		for (uint32_t k = 0; r->io[i]->op == VQB_BLK_IN && k < r->io[i]->pieces; k++) {
			if (r->io[i]->piece[k].len)
				FUZZ_CHECK(mark(r, &r->io[i]->piece[k], VQB_WRITE));
		}
	}
	memset(r->area[MAIN].may + (USED_AT - DESC_AT), 1, 6 + 8 * (size_t)RING);
}

/* Has nothing changed but what may? From here on it counts from anew. */
static void look(struct run *r)
{
	for (unsigned i = 0; i < REGIONS; i++)
		memset(r->area[i].may, 0, (size_t)region_at[i].len);
	mark_all(r);
	for (unsigned i = 0; i < REGIONS; i++) {
		struct area *a = &r->area[i];

		if (!memcmp(a->host, a->copy, (size_t)region_at[i].len))
			continue;
		for (size_t k = 0; k < region_at[i].len; k++) {
			FUZZ_CHECK(a->host[k] == a->copy[k] || a->may[k]);
			a->copy[k] = a->host[k];
		}
	}
}

static void guest_log(void *context, uint64_t addr, uint64_t len)
{
	struct run *r = context;
	int region = region_of(addr);
	size_t at;

	FUZZ_CHECK(region >= 0 && len && region_at[region].access & VQB_WRITE);
	at = (size_t)(addr - region_at[region].addr);
	FUZZ_CHECK(len <= region_at[region].len - at);
	memcpy(r->area[region].sent + at, r->area[region].host + at, (size_t)len);
}

static int32_t hook_extent(const struct run *r, uint64_t at, struct vqb_extent *out)
{
	at -= at % r->step;
	*out = (struct vqb_extent){ .addr = region_at[HOOK].addr + at,
				    .host = r->area[HOOK].host + (size_t)at,
				    .access = BOTH };
	out->len = region_at[HOOK].len - at < r->step ? region_at[HOOK].len - at : r->step;
	return VQB_OK;
}

static int32_t guest_translate(void *context, uint64_t addr, uint32_t access,
			       struct vqb_extent *out)
{
	(void)access;
	if (region_of(addr) != HOOK)
		return VQB_E_FAULT;
	return hook_extent(context, addr - region_at[HOOK].addr, out);
}

static int32_t guest_locate(void *context, const void *host, struct vqb_extent *out)
{
	struct run *r = context;
	uint64_t at = (uintptr_t)host - (uintptr_t)r->area[HOOK].host;

	return at < region_at[HOOK].len ? hook_extent(r, at, out) : VQB_E_FAULT;
}

static void make_guest(struct run *r, bool log)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < REGIONS; i++) {
		size_t len = (size_t)region_at[i].len;
		struct area *a = &r->area[i];

		a->memory = fuzz_alloc(len + region_at[i].shift);
		a->host = a->memory + region_at[i].shift;
		a->copy = fuzz_alloc(len);
		a->sent = fuzz_alloc(len);
		a->may = fuzz_alloc(len);
		if (i != HOOK)
			r->extent[n++] = (struct vqb_extent){ region_at[i].addr, len, a->host,
							      region_at[i].access, 0 };
	}
	r->memory = (struct vqb_memory){ .struct_size = sizeof(r->memory),
					 .generation = 1,
					 .count = n,
					 .sorted = r->extent,
					 .translate = guest_translate,
					 .context = r,
					 .locate = guest_locate };
	if (log)
		r->memory.log = guest_log;
}

/* ---- what the queue asks of the ring ---- */

/* The linker's names: calls of the library come to __wrap_, and __real_ is what was called. */
int32_t __real_vqb_device_take(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
			       struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			       struct vqb_need *need);
int32_t __real_vqb_device_reject(struct vqb_device *dev, struct vqb_chain *chain);
int32_t __real_vqb_device_untake(struct vqb_device *dev, struct vqb_ticket ticket);
int32_t __real_vqb_device_put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written);

int32_t __wrap_vqb_device_take(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
			       struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			       struct vqb_need *need);
int32_t __wrap_vqb_device_reject(struct vqb_device *dev, struct vqb_chain *chain);
int32_t __wrap_vqb_device_untake(struct vqb_device *dev, struct vqb_ticket ticket);
int32_t __wrap_vqb_device_put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written);

static void lend(const struct vqb_chain *chain)
{
	struct lent *l = &now->lent[chain->ticket.head];

	FUZZ_CHECK(!l->out && chain->readable + chain->writable <= MAX_PIECES);
	l->out = true;
	l->sent = false;
	l->ticket = chain->ticket;
	l->writable = chain->status ? 0 : chain->write_bytes;
	l->sound = !chain->status && chain->read_bytes >= 16 && chain->write_bytes >= 1;
	l->readables = chain->readable;
	l->pieces = chain->status ? 0 : chain->readable + chain->writable;
	if (l->pieces)
		memcpy(l->piece, chain->piece, l->pieces * sizeof(l->piece[0]));
	if (l->sound) {
		const struct vqb_piece *last = &l->piece[l->pieces - 1];

		l->status = (const uint8_t *)last->base + last->len - 1;
	}
	now->outs++;
	now->taken++;
	now->count.requests++;
}

static struct lent *lent_by(struct vqb_ticket ticket)
{
	struct lent *l = &now->lent[ticket.head % RING];

	FUZZ_CHECK(l->out && l->ticket.head == ticket.head && l->ticket.seq == ticket.seq);
	return l;
}

int32_t __wrap_vqb_device_take(struct vqb_device *dev, struct vqb_chain *chain, uint32_t max,
			       struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			       struct vqb_need *need)
{
	int32_t status;

	called();
	look(now);
	status = __real_vqb_device_take(dev, chain, max, piece, room, taken, need);
	for (uint32_t i = 0; i < *taken; i++)
		lend(&chain[i]);
	return status;
}

int32_t __wrap_vqb_device_reject(struct vqb_device *dev, struct vqb_chain *chain)
{
	int32_t status = __real_vqb_device_reject(dev, chain);

	called();
	if (!status)
		lend(chain);
	return status;
}

int32_t __wrap_vqb_device_untake(struct vqb_device *dev, struct vqb_ticket ticket)
{
	struct lent *l = lent_by(ticket);

	called();
	look(now);
	FUZZ_CHECK(!__real_vqb_device_untake(dev, ticket));
	l->out = false;
	now->outs--;
	now->taken--;
	now->count.requests--;
	return VQB_OK;
}

int32_t __wrap_vqb_device_put(struct vqb_device *dev, struct vqb_ticket ticket, uint32_t written)
{
	struct lent *l = lent_by(ticket);

	called();
	look(now);
	FUZZ_CHECK(written <= l->writable);
	if (!l->sound) {
		FUZZ_CHECK(!written);
		now->count.malformed++;
	} else {
		FUZZ_CHECK(*l->status <= VQB_BLK_S_UNSUPP);
		now->count.failed += *l->status != VQB_BLK_S_OK;
		/* All of it, or nothing: a flush takes no notice of what room there is. */
		FUZZ_CHECK(*l->status || written == l->writable || !written);
	}
	FUZZ_CHECK(!__real_vqb_device_put(dev, ticket, written));
	l->out = false;
	now->outs--;
	return VQB_OK;
}

/* ---- what it asks of the backend ---- */

static void check_transfer(struct run *r, const struct vqb_io *io)
{
	uint64_t sum = 0;

	FUZZ_CHECK(io->bytes <= r->spy.caps.max_transfer);
	FUZZ_CHECK(io->pieces && io->pieces <= r->spy.caps.max_pieces);
	for (uint32_t i = 0; i < io->pieces; i++) {
		sum += io->piece[i].len;
		if (io->piece[i].len)
			FUZZ_CHECK(mark(r, &io->piece[i],
					io->op == VQB_BLK_IN ? VQB_WRITE : VQB_READ));
	}
	FUZZ_CHECK(sum == io->bytes);
	if (io->op == VQB_BLK_OUT && !r->back)
		FUZZ_CHECK(io->flags == VQB_IO_FUA);
	if (io->op == VQB_BLK_IN || !r->through)
		FUZZ_CHECK(!io->flags);
}

/* What is no read or write waits for what is joined below it, since parts of that may go again. */
static bool overtakes(const struct run *r, const struct vqb_io *io)
{
	for (uint32_t i = 0; i < r->ios; i++) {
		const struct vqb_io *other = r->io[i];

		if (vqb_coalescer_member(other) != other &&
		    other->offset < io->offset + io->bytes &&
		    io->offset < other->offset + other->bytes)
			return true;
	}
	return false;
}

static void check_io(struct run *r, const struct vqb_io *io)
{
	bool transfer = io->op == VQB_BLK_IN || io->op == VQB_BLK_OUT;

	for (uint32_t i = 0; i < r->ios; i++)
		FUZZ_CHECK(r->io[i] != io);
	if (io->op == VQB_BLK_FLUSH) {
		FUZZ_CHECK(!io->bytes && !io->pieces);
		return;
	}
	FUZZ_CHECK(transfer || io->op == VQB_BLK_DISCARD || io->op == VQB_BLK_WRITE_ZEROES ||
		   io->op == VQB_BLK_SECURE_ERASE);
	FUZZ_CHECK(io->bytes && !(io->bytes % r->spy.caps.alignment) &&
		   !(io->offset % r->spy.caps.alignment));
	FUZZ_CHECK(io->offset <= 512 * r->highest && io->bytes <= 512 * r->highest - io->offset);
	if (io->op != VQB_BLK_IN)
		FUZZ_CHECK(!(vqb_blk_device_features(r->disk) & VQB_FEATURE(VQB_BLK_F_RO)));
	if (transfer)
		check_transfer(r, io);
	else
		FUZZ_CHECK(!io->pieces && io->bytes <= r->spy.caps.max_range && !overtakes(r, io));
}

/*
 * The io's request has reached the backend. It is of this life; and for the first time only in the
 * order of the ring, but for what a coalescer may sort.
 */
static void note(struct run *r, const struct vqb_io *io)
{
	struct lent *l = lent_by(((const struct blk_request *)io)->ticket);
	uint32_t seq = l->ticket.seq;

	if (l->sent)
		return;
	l->sent = true;
	if (!r->coalescer || io->op > VQB_BLK_OUT) {
		FUZZ_CHECK(seq > r->newest);
		for (unsigned i = 0; i < RING; i++)
			FUZZ_CHECK(!r->lent[i].out || r->lent[i].sent ||
				   r->lent[i].ticket.seq > seq);
	}
	if (seq > r->newest)
		r->newest = seq;
}

static void note_all(struct run *r, const struct vqb_io *io)
{
	const struct vqb_io *member = vqb_coalescer_member(io);

	if (member == io)
		note(r, io);
	for (; member != io && member; member = member->next)
		note(r, member);
}

static int32_t spy_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct run *r = (struct run *)backend;
	int32_t status;

	called();
	look(r);
	check_io(r, io);
	status = vqb_backend_submit(r->faulty, io);
	if (status == VQB_E_NOSPC)
		r->count.full++;
	if (status)
		return status;
	FUZZ_CHECK(r->ios < MAX_IOS);
	note_all(r, io);
	r->io[r->ios++] = io;
	r->count.submissions++;
	r->count.read_submissions += io->op == VQB_BLK_IN;
	r->count.write_submissions += io->op == VQB_BLK_OUT;
	return VQB_OK;
}

static void spy_plug(struct vqb_backend *backend)
{
	struct run *r = (struct run *)backend;

	FUZZ_CHECK(!r->plugged);
	r->plugged = true;
	vqb_backend_plug(r->faulty);
}

static void spy_unplug(struct vqb_backend *backend)
{
	struct run *r = (struct run *)backend;

	FUZZ_CHECK(r->plugged);
	r->plugged = false;
	vqb_backend_unplug(r->faulty);
}

static struct vqb_io *spy_poll(struct vqb_backend *backend)
{
	struct run *r = (struct run *)backend;
	struct vqb_io *first;

	called();
	first = vqb_backend_poll(r->faulty);
	if (first)
		look(r);
	for (const struct vqb_io *io = first; io; io = io->next) {
		uint32_t i = 0;

		while (i < r->ios && r->io[i] != io)
			i++;
		FUZZ_CHECK(i < r->ios);
		r->io[i] = r->io[--r->ios];
		r->count.partial += io->result > 0 && (uint64_t)io->result < io->bytes;
	}
	return first;
}

static void spy_drain(struct vqb_backend *backend)
{
	vqb_backend_drain(((struct run *)backend)->faulty);
}

static const struct vqb_backend_ops spy_ops = { .struct_size = sizeof(spy_ops),
						.submit = spy_submit,
						.plug = spy_plug,
						.unplug = spy_unplug,
						.poll = spy_poll,
						.drain = spy_drain };

static void make_backend(struct run *r, struct fuzz_input *c)
{
	struct vqb_backend_memory_config memory = { .struct_size = sizeof(memory),
						    .access = fuzz_u8(c) & 3 ? BOTH : VQB_READ,
						    .bytes = 512 * SECTORS };
	struct vqb_backend_fault_config fault = { .struct_size = sizeof(fault), .delay = 3 };
	void *mem = object(r, vqb_backend_memory_size());
	uint32_t kinds = fuzz_u8(c), often = fuzz_u8(c);

	memory.disk = r->sectors = fuzz_alloc(512 * SECTORS);
	FUZZ_CHECK(!vqb_backend_memory_init(mem, vqb_backend_memory_size(), &memory, &fault.below));
	fault.ios = 1 + fuzz_below(c, MAX_IOS);
	fault.pieces = 1 + fuzz_below(c, 8);
	fault.seed = fuzz_u16(c);
	for (uint32_t i = 0; i < VQB_FAULTS; i++)
		fault.rate[i] = kinds >> i & 1 ? often * (VQB_FAULT_ALWAYS / 512) : 0;
	mem = object(r, vqb_backend_fault_size(&fault));
	FUZZ_CHECK(
		!vqb_backend_fault_init(mem, vqb_backend_fault_size(&fault), &fault, &r->faulty));
	r->spy = (struct vqb_backend){ .struct_size = sizeof(r->spy), .ops = &spy_ops };
	r->spy.caps = r->faulty->caps;
	r->spy.caps.max_transfer = 512 * (3 + fuzz_below(c, 14));
	r->spy.caps.max_pieces = 1 + fuzz_below(c, 12);
	r->spy.caps.max_range = 512 * (4 + fuzz_below(c, 60));
}

/* ---- the disk and its queue ---- */

static void see_modes(struct run *r, bool anew)
{
	uint64_t capacity = vqb_blk_device_capacity(r->disk), offered;
	uint8_t writeback = 1;
	bool through;

	offered = vqb_blk_device_features(r->disk);
	vqb_blk_device_read_config(r->disk, 32, &writeback, 1);
	if (r->accepted & VQB_FEATURE(VQB_BLK_F_CONFIG_WCE))
		through = !writeback;
	else
		through = offered & VQB_FEATURE(VQB_BLK_F_FLUSH) &&
			  !(r->accepted & VQB_FEATURE(VQB_BLK_F_FLUSH));
	if (capacity > SECTORS)
		capacity = SECTORS;
	if (anew) {
		r->highest = 0;
		r->through = r->back = false;
	}
	if (capacity > r->highest)
		r->highest = capacity;
	r->through |= through;
	r->back |= !through;
}

static void accept(struct run *r, uint64_t without)
{
	r->accepted = vqb_blk_device_features(r->disk) & ~(without & VQB_TYPE_FEATURES);
	r->accepted |= VQB_FEATURE(VQB_F_VERSION_1);
	FUZZ_CHECK(!vqb_blk_device_accept(r->disk, r->accepted));
	FUZZ_CHECK(!vqb_blk_queue_accept(r->queue, r->accepted));
}

static void make_disk(struct run *r, struct fuzz_input *c)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits) };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.limits = &limits,
						.serial = "fuzz",
						.backend = &r->spy.caps };
	uint32_t bits = fuzz_u8(c);

	limits.block_size = 512u << (bits & 3) % 3;
	limits.capacity = fuzz_below(c, SECTORS + 1);
	limits.segments = bits & 4 ? 1 + fuzz_below(c, 30) : 0;
	config.features = VQB_BLK_DEVICE_FEATURES | VQB_RING_FEATURES;
	if (bits & 8)
		config.features &= ~VQB_FEATURE(VQB_BLK_F_FLUSH);
	if (bits & 16)
		config.features |= VQB_FEATURE(VQB_BLK_F_CONFIG_WCE);
	if (bits >> 5 == 7)
		config.features |= VQB_FEATURE(VQB_BLK_F_RO);
	FUZZ_CHECK(!vqb_blk_device_init(object(r, vqb_blk_device_size()), vqb_blk_device_size(),
					&config, &r->disk));
}

static void make_ring(struct run *r, struct fuzz_input *c)
{
	struct vqb_device_config config = { .struct_size = sizeof(config),
					    .max_size = RING,
					    .max_pieces = MAX_PIECES,
					    .memory = &r->memory };

	r->ring.size = RING >> fuzz_below(c, 3);
	r->ring.features = fuzz_features(c) | VQB_FEATURE(VQB_F_VERSION_1);
	r->ring.desc = DESC_AT;
	r->ring.avail = AVAIL_AT;
	r->ring.used = USED_AT;
	config.ring = r->ring;
	FUZZ_CHECK(!vqb_device_init(object(r, vqb_device_size(&config)), vqb_device_size(&config),
				    &config, &r->dev));
}

static void make_queue(struct run *r, struct fuzz_input *c)
{
	struct vqb_coalescer_config joining = { .struct_size = sizeof(joining),
						.max_pieces = r->spy.caps.max_pieces,
						.max_transfer = r->spy.caps.max_transfer };
	struct vqb_blk_queue_config config = {
		.struct_size = sizeof(config), .device = r->disk, .ring = r->dev, .backend = &r->spy
	};

	if (fuzz_u8(c) % 4) {
		joining.requests = fuzz_below(c, 20);
		joining.joins = fuzz_below(c, 6);
		joining.pieces = fuzz_below(c, 40);
		FUZZ_CHECK(!vqb_coalescer_init(object(r, vqb_coalescer_size(&joining)),
					       vqb_coalescer_size(&joining), &joining,
					       &r->coalescer));
		config.coalescer = r->coalescer;
	}
	config.requests = 1 + fuzz_below(c, 40);
	config.pieces = (uint32_t)VQB_BLK_RANGE_PIECES(32) + 3 + fuzz_below(c, 100);
	FUZZ_CHECK(!vqb_blk_queue_init(object(r, vqb_blk_queue_size(&config)),
				       vqb_blk_queue_size(&config), &config, &r->queue));
}

/* ---- the driver ---- */

/* An address that is worth something: in a region, about its ends, or any. */
static uint64_t pick(struct fuzz_input *in)
{
	uint32_t how = fuzz_u8(in), region = how % 8;

	if (region >= REGIONS)
		return how & 0x80 ? fuzz_u64(in) : UINT64_C(0x1800) + fuzz_u16(in) % 0x1800;
	if (how & 0x80)
		return region_at[region].addr + region_at[region].len - fuzz_u8(in);
	return region_at[region].addr + fuzz_u16(in) % region_at[region].len;
}

static void write_desc(struct run *r, uint64_t table, uint32_t i, uint64_t addr, uint32_t len,
		       unsigned flags, unsigned next)
{
	uint8_t raw[16];

	raw_desc(raw, 0, addr, len, flags, next);
	guest_write(r, table + 16 * (uint64_t)i, raw, sizeof(raw));
}

static void offer(struct run *r, uint32_t head)
{
	guest_poke(r, AVAIL_AT + 4 + 2 * (uint64_t)(r->offered & (r->ring.size - 1)), head, 2);
	guest_poke(r, AVAIL_AT + 2, ++r->offered, 2);
}

/* The ranges of a discard or one of its kin. Answers their bytes. */
static uint32_t write_ranges(struct run *r, uint64_t at)
{
	uint32_t n = 1 + fuzz_below(&r->in, 4);

	for (uint32_t i = 0; i < n; i++) {
		guest_poke(r, at + 16 * i, fuzz_below(&r->in, SECTORS + 4), 8);
		guest_poke(r, at + 16 * i + 8, fuzz_below(&r->in, 12), 4);
		guest_poke(r, at + 16 * i + 12, fuzz_u8(&r->in) > 250, 4);
	}
	return 16 * n;
}

static uint32_t ask_type(struct run *r)
{
	static const uint8_t types[] = { VQB_BLK_FLUSH,        VQB_BLK_GET_ID,
					 VQB_BLK_DISCARD,      VQB_BLK_WRITE_ZEROES,
					 VQB_BLK_SECURE_ERASE, VQB_BLK_GET_LIFETIME };
	uint32_t t = fuzz_u8(&r->in);

	return t < 160 ? t & 1 : t < 250 ? types[t % sizeof(types)] : t;
}

/* The four descriptors of a request, in the ring or a table: header, data in two parts, status. */
static void write_request(struct run *r, uint64_t table, uint32_t first, uint32_t type,
			  uint64_t data, uint32_t bytes)
{
	uint32_t cut = bytes ? fuzz_u16(&r->in) % (bytes + 1) : 0, how = fuzz_u8(&r->in);
	unsigned in = type == VQB_BLK_IN || type == VQB_BLK_GET_ID || type == VQB_BLK_GET_LIFETIME
			      ? RAW_WRITE
			      : 0;

	write_desc(r, table, first, HEADER_AT + 16 * (uint64_t)r->slot, how == 255 ? 15 : 16,
		   RAW_NEXT, first + 1);
	write_desc(r, table, first + 1, data, cut, in | RAW_NEXT, first + 2);
	write_desc(r, table, first + 2, data + cut, bytes - cut, in | RAW_NEXT, first + 3);
	write_desc(r, table, first + 3, STATUS_AT + r->slot, 1, how == 254 ? 0 : RAW_WRITE, 0);
}

/* A request that is mostly good. */
static void ask(struct run *r)
{
	uint32_t slots = r->ring.size / 4, type, how, head, bytes;
	uint64_t data, sector;

	r->slot = (r->slot + 1) % slots;
	head = 4 * r->slot;
	how = fuzz_u8(&r->in);
	if (r->lent[head].out && how < 250)
		return;
	type = ask_type(r);
	sector = fuzz_u8(&r->in);
	sector = sector & 0x80 ? r->end : sector % (SECTORS + 2);
	data = how & 0x40 ? pick(&r->in) : region_at[NEXT].addr + 16 * (how & 0x1f);
	bytes = 512 * (fuzz_u8(&r->in) % 6);
	r->end = sector + bytes / 512;
	if (type >= VQB_BLK_DISCARD && type <= VQB_BLK_SECURE_ERASE)
		bytes = write_ranges(r, data);
	else if (type == VQB_BLK_GET_ID)
		bytes = VQB_BLK_ID_BYTES;
	guest_poke(r, HEADER_AT + 16 * (uint64_t)r->slot, type, 4);
	guest_poke(r, HEADER_AT + 16 * (uint64_t)r->slot + 8, sector, 8);
	if (how & 0x20 && r->ring.features & VQB_FEATURE(VQB_F_INDIRECT_DESC)) {
		write_request(r, TABLE_AT + 64 * (uint64_t)r->slot, 0, type, data, bytes);
		write_desc(r, DESC_AT, head, TABLE_AT + 64 * (uint64_t)r->slot, 64, RAW_INDIRECT,
			   0);
	} else {
		write_request(r, DESC_AT, head, type, data, bytes);
	}
	offer(r, head);
}

static void scribble(struct run *r)
{
	uint64_t at = pick(&r->in);
	uint8_t data[16];
	uint32_t n = fuzz_below(&r->in, sizeof(data) + 1);

	for (uint32_t i = 0; i < n; i++)
		data[i] = fuzz_u8(&r->in);
	guest_write(r, at, data, n);
}

static void spoil_descriptor(struct run *r)
{
	uint32_t i = fuzz_below(&r->in, r->ring.size);
	uint64_t table = fuzz_u8(&r->in) % 3 ? DESC_AT : TABLE_AT, addr = pick(&r->in);
	uint32_t len = fuzz_len(&r->in), flags = fuzz_below(&r->in, 8);

	write_desc(r, table, i, addr, len, flags, fuzz_below(&r->in, r->ring.size + 1));
}

/* ---- what is done to the queue ---- */

static void bring_to_a_standstill(struct run *r)
{
	uint32_t tries = 0;

	while (vqb_blk_queue_quiesce(r->queue)) {
		FUZZ_CHECK(++tries < 10000);
		vqb_backend_drain(&r->spy);
	}
	FUZZ_CHECK(!r->ios && !r->outs && !vqb_blk_queue_in_flight(r->queue));
	r->late = false;
}

static void serve(struct run *r)
{
	uint32_t budget = fuzz_count(&r->in), taken = r->taken, answer;

	answer = vqb_blk_queue_run(r->queue, budget);
	FUZZ_CHECK(r->taken - taken <= budget);
	look(r);
	/* Who may sleep has missed nothing. */
	if (answer & VQB_MORE || vqb_device_state(r->dev, NULL) || r->ios)
		return;
	FUZZ_CHECK(!vqb_blk_queue_in_flight(r->queue));
	FUZZ_CHECK((uint16_t)peek(r->area[MAIN].host + (AVAIL_AT + 2 - DESC_AT), 2) ==
		   (uint16_t)r->taken);
}

static void end_life(struct run *r)
{
	look(r);
	FUZZ_CHECK(!vqb_device_reset(r->dev, NULL));
	for (uint32_t i = 0; i < RING; i++)
		r->lent[i].out = false;
	r->outs = 0;
	r->late = true;
}

static void reset(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in), at;

	end_life(r);
	for (uint32_t i = 0; i < (how & 3); i++) {
		vqb_blk_queue_run(r->queue, 8);
		look(r);
	}
	if (how & 4)
		bring_to_a_standstill(r);
	vqb_blk_device_reset(r->disk);
	for (at = AVAIL_AT; at < AVAIL_AT + 8; at++)
		guest_poke(r, at, 0, 1);
	r->offered = r->taken = 0;
	FUZZ_CHECK(!vqb_device_reset(r->dev, &r->ring));
	accept(r, how & 8 ? fuzz_u32(&r->in) : 0);
}

static void configure(struct run *r)
{
	uint32_t how = fuzz_u8(&r->in);
	uint8_t value = how & 1;

	if (how & 2)
		vqb_blk_device_write_config(r->disk, how & 0xc0 ? 32 : how, &value, 1);
	else
		FUZZ_CHECK(!vqb_blk_device_resize(r->disk, fuzz_below(&r->in, SECTORS + 20)));
}

static void check_counters(const struct run *r)
{
	struct vqb_blk_queue_counters c;

	vqb_blk_queue_read_counters(r->queue, &c);
	FUZZ_CHECK(c.requests == r->count.requests && c.malformed == r->count.malformed);
	FUZZ_CHECK(c.failed == r->count.failed && c.full == r->count.full);
	FUZZ_CHECK(c.submissions == r->count.submissions);
	FUZZ_CHECK(c.read_submissions == r->count.read_submissions);
	FUZZ_CHECK(c.write_submissions == r->count.write_submissions);
	FUZZ_CHECK(c.partial >= r->count.partial);
	FUZZ_CHECK(r->coalescer || (!c.read_merges && !c.write_merges));
	FUZZ_CHECK(!(c.read_bytes % 512) && !(c.write_bytes % 512));
}

static void operate(struct run *r)
{
	r->calls = 0;
	switch (fuzz_u8(&r->in) % 16) {
	case 8:
		spoil_descriptor(r);
		break;
	case 9:
		scribble(r);
		break;
	case 10:
		offer(r, fuzz_below(&r->in, r->ring.size + 1));
		break;
	case 11:
		vqb_blk_queue_poll(r->queue, fuzz_count(&r->in));
		break;
	case 12:
		vqb_blk_queue_quiesce(r->queue);
		break;
	case 13:
		reset(r);
		break;
	case 14:
		configure(r);
		break;
	case 15:
		vqb_backend_drain(&r->spy);
		break;
	case 6:
	case 7:
		serve(r);
		break;
	default:
		ask(r);
		break;
	}
	look(r);
	FUZZ_CHECK(!r->plugged);
	FUZZ_CHECK(vqb_blk_queue_in_flight(r->queue) >= r->outs);
	FUZZ_CHECK(r->late || vqb_blk_queue_in_flight(r->queue) == r->outs);
	check_counters(r);
	see_modes(r, !vqb_blk_queue_in_flight(r->queue));
}

/* All that was written has been logged. */
static void check_log(const struct run *r)
{
	for (unsigned i = 0; r->memory.log && i < REGIONS; i++)
		FUZZ_CHECK(!memcmp(r->area[i].host, r->area[i].sent, (size_t)region_at[i].len));
}

static void finish(struct run *r, bool with_reset)
{
	r->calls = 0;
	/* Entries of the used ring are logged when they are shown, and after a reset none is. */
	vqb_device_publish(r->dev);
	if (with_reset)
		end_life(r);
	bring_to_a_standstill(r);
	vqb_device_publish(r->dev);
	look(r);
	check_log(r);
	check_counters(r);
	for (unsigned i = 0; i < REGIONS; i++) {
		free(r->area[i].memory);
		free(r->area[i].copy);
		free(r->area[i].sent);
		free(r->area[i].may);
	}
	while (r->objects)
		free(r->object[--r->objects]);
	free(r->sectors);
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run *r = fuzz_alloc(sizeof(*r));
	struct fuzz_input config;
	uint32_t bits, steps;

	raw_big = 0;
	now = r;
	r->in = (struct fuzz_input){ data, data + size };
	config = fuzz_cut(&r->in, CONFIG);
	bits = fuzz_u8(&config);
	r->step = 1 + fuzz_u8(&config);
	make_guest(r, bits & 1);
	make_backend(r, &config);
	make_disk(r, &config);
	make_ring(r, &config);
	make_queue(r, &config);
	accept(r, fuzz_u32(&config));
	see_modes(r, true);
	look(r);
	for (steps = 0; fuzz_more(&r->in) && steps < MAX_STEPS; steps++)
		operate(r);
	finish(r, bits & 2);
	return 0;
}
