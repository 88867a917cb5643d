/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guest.h: guest memory for the device to be fuzzed over: regions with holes between them, one that
 * ends at 2^64, some that adjoin in the guest and lie apart in the host, and a hook that hands
 * memory out few bytes at a time. What an address means can also be asked without the library
 * (guest_find), and there is a second copy of everything, to see what the library has written. A
 * third one is what a migration would have sent, if the map has a log: what was written is sent
 * when the log is told of it, so that all must be the same in the end.
 */
#ifndef TESTS_FUZZ_GUEST_H
#define TESTS_FUZZ_GUEST_H

#include <vqblk/memory.h>

#include "fuzz.h"

enum guest_region {
	GUEST_RING, /* room for the largest ring */
	GUEST_NEXT, /* adjoins it; odd multiples of 4 in the host, so tables are not aligned */
	GUEST_READ, /* read only, at an odd host address */
	GUEST_WRITE,
	GUEST_HOOK, /* the hook knows it, the array does not */
	GUEST_WIDE, /* for sums of lengths beyond 2^32: no memory, so write only, and never a ring
		     */
	GUEST_TOP,  /* ends at 2^64 */
	GUEST_REGIONS,
	GUEST_OTHER = GUEST_REGIONS, /* a second block for GUEST_RING */
	GUEST_BLOCKS,
};

enum guest_map {
	GUEST_MAP_ALL,
	GUEST_MAP_FEWER,  /* without GUEST_NEXT and GUEST_TOP */
	GUEST_MAP_MOVED,  /* GUEST_RING is in its second block */
	GUEST_MAP_NORING, /* without GUEST_RING */
	GUEST_MAP_HOOKED, /* no array: the hook has all but GUEST_WIDE */
	GUEST_MAP_WRONG,  /* overlapping, to be refused */
	GUEST_MAPS,
};

#define GUEST_BOTH ((uint32_t)(VQB_READ | VQB_WRITE))
#define GUEST_WIDE_AT (UINT64_C(1) << 32)
/* Small enough for a machine of 32 bits. */
#define GUEST_WIDE_LEN (UINT64_C(1) << (sizeof(void *) > 4 ? 32 : 30))

static const struct {
	uint64_t addr, len;
	uint32_t access, shift; /* bytes by which the host is not aligned */
} guest_region[GUEST_REGIONS] = {
	[GUEST_RING] = { 0x10000, 0x1c00, GUEST_BOTH, 0 },
	[GUEST_NEXT] = { 0x11c00, 0x300, GUEST_BOTH, 4 },
	[GUEST_READ] = { 0x20000, 0x200, VQB_READ, 1 },
	[GUEST_WRITE] = { 0x20200, 0x200, VQB_WRITE, 0 },
	[GUEST_HOOK] = { 0x30000, 0x200, GUEST_BOTH, 0 },
	[GUEST_WIDE] = { GUEST_WIDE_AT, GUEST_WIDE_LEN, VQB_WRITE, 0 },
	[GUEST_TOP] = { UINT64_MAX - 0x3ff, 0x400, GUEST_BOTH, 0 },
};

struct guest_block {
	uint8_t *memory; /* as allocated */
	uint8_t *host, *copy, *sent;
	size_t len;
};

/* A map as the device has it; constant while in use, so there are two to go to and fro between. */
struct guest_view {
	enum guest_map kind;
	struct vqb_extent extent[GUEST_REGIONS + 1];
	struct vqb_memory memory;
};

struct guest {
	struct guest_block block[GUEST_BLOCKS];
	struct guest_view view[2];
	const struct guest_view *now;
	uint32_t step;  /* bytes that the hook hands out at a time */
	uint32_t wrong; /* which of the hooks' answers are no good; 0: none */
	uint32_t work;  /* look-ups by guest_find, so that no input takes for ever */
};

/* ---- what an address means ---- */

struct guest_place {
	uint8_t *host, *copy, *sent; /* but for the first, NULL in GUEST_WIDE */
	uint64_t avail;              /* bytes from there on that one extent has; 0: not mapped */
};

static inline bool guest_mapped(enum guest_map kind, unsigned region)
{
	if (kind == GUEST_MAP_FEWER)
		return region != GUEST_NEXT && region != GUEST_TOP;
	if (kind == GUEST_MAP_NORING)
		return region != GUEST_RING;
	return kind != GUEST_MAP_HOOKED || region != GUEST_WIDE;
}

static inline bool guest_hooked(enum guest_map kind, unsigned region)
{
	return region == GUEST_HOOK || kind == GUEST_MAP_HOOKED;
}

/* What the hook hands out at a time; more of the largest region, for a ring lies there. */
static inline uint32_t guest_step(const struct guest *g, unsigned region)
{
	return region == GUEST_RING ? 32 * g->step : g->step;
}

/* Is this one of the places about which the hook answers nonsense? */
static inline bool guest_nonsense(const struct guest *g, unsigned region, uint64_t offset)
{
	return region == GUEST_HOOK && g->wrong && offset / g->step % 8 == g->wrong % 8;
}

static inline const struct guest_block *guest_block(const struct guest *g, enum guest_map kind,
						    unsigned region)
{
	bool other = region == GUEST_RING && kind == GUEST_MAP_MOVED;

	return &g->block[other ? GUEST_OTHER : region];
}

static inline int guest_region_of(uint64_t addr)
{
	for (unsigned i = 0; i < GUEST_REGIONS; i++) {
		if (addr - guest_region[i].addr < guest_region[i].len)
			return (int)i;
	}
	return -1;
}

/* With access 0: wherever it is mapped for anything. */
static inline struct guest_place guest_find(struct guest *g, uint64_t addr, uint32_t access)
{
	struct guest_place place = { 0 };
	int region = guest_region_of(addr);
	const struct guest_block *block;
	uint64_t offset;

	g->work++;
	if (region < 0 || !guest_mapped(g->now->kind, (unsigned)region) ||
	    (guest_region[region].access & access) != access)
		return place;
	offset = addr - guest_region[region].addr;
	place.avail = guest_region[region].len - offset;
	if (guest_hooked(g->now->kind, (unsigned)region)) {
		uint32_t step = guest_step(g, (unsigned)region);
		uint64_t left = step - offset % step;

		if (guest_nonsense(g, (unsigned)region, offset))
			return (struct guest_place){ 0 };
		place.avail = left < place.avail ? left : place.avail;
	}
	block = guest_block(g, g->now->kind, (unsigned)region);
	place.host = block->host + (size_t)offset;
	place.copy = block->copy ? block->copy + (size_t)offset : NULL;
	place.sent = block->sent ? block->sent + (size_t)offset : NULL;
	return place;
}

/* All of [addr, addr + len) in one stretch of host memory? avail 0: no. */
static inline struct guest_place guest_stretch(struct guest *g, uint64_t addr, uint64_t len,
					       uint32_t access)
{
	struct guest_place first = guest_find(g, addr, access), more = first;
	uint64_t done = 0;

	if (len - 1 > ~addr)
		return (struct guest_place){ 0 };
	while (more.avail && more.host == first.host + (size_t)done) {
		done += more.avail;
		if (done >= len)
			return first;
		more = guest_find(g, addr + done, access);
	}
	return (struct guest_place){ 0 };
}

/* ---- writing by the driver, or whoever it is ---- */

static inline void guest_write(struct guest *g, uint64_t addr, const void *from, uint32_t n)
{
	const uint8_t *byte = (const uint8_t *)from;

	for (uint32_t i = 0; i < n; i++) {
		struct guest_place place = guest_find(g, addr + i, 0);

		if (place.copy)
			*place.host = *place.copy = *place.sent = byte[i];
	}
}

static inline void guest_poke(struct guest *g, uint64_t addr, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	poke(raw, v, bytes);
	guest_write(g, addr, raw, bytes);
}

static inline void guest_desc(struct guest *g, uint64_t table, uint32_t i, uint64_t addr,
			      uint32_t len, unsigned flags, unsigned next)
{
	uint8_t raw[16];

	raw_desc(raw, 0, addr, len, flags, next);
	guest_write(g, table + 16 * (uint64_t)i, raw, sizeof(raw));
}

/* Has the library written nothing but what was put into the copy as well? */
static inline bool guest_as_copied(const struct guest *g)
{
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		const struct guest_block *b = &g->block[i];

		if (b->copy && memcmp(b->host, b->copy, b->len))
			return false;
	}
	return true;
}

/* ---- the log, and what it is told of ---- */

static inline void guest_send_all(struct guest *g)
{
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		if (g->block[i].sent)
			memcpy(g->block[i].sent, g->block[i].host, g->block[i].len);
	}
}

static inline bool guest_all_sent(const struct guest *g)
{
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		const struct guest_block *b = &g->block[i];

		if (b->sent && memcmp(b->host, b->sent, b->len))
			return false;
	}
	return true;
}

static inline void guest_log(void *context, uint64_t addr, uint64_t len)
{
	struct guest *g = (struct guest *)context;
	int region = guest_region_of(addr);
	const struct guest_block *b;
	uint64_t offset;

	if (len == UINT64_MAX) {
		guest_send_all(g);
		return;
	}
	FUZZ_CHECK(region >= 0 && guest_mapped(g->now->kind, (unsigned)region));
	FUZZ_CHECK(guest_region[region].access & VQB_WRITE);
	offset = addr - guest_region[region].addr;
	FUZZ_CHECK(len && len <= guest_region[region].len - offset);
	b = guest_block(g, g->now->kind, (unsigned)region);
	if (b->sent)
		memcpy(b->sent + (size_t)offset, b->host + (size_t)offset, (size_t)len);
}

/* The device writes one byte of a buffer. */
static inline void guest_work(struct guest *g, uint8_t *host)
{
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		const struct guest_block *b = &g->block[i];
		size_t offset = (uintptr_t)host - (uintptr_t)b->host;

		if (!b->copy || offset >= b->len)
			continue;
		b->host[offset] ^= 0x81;
		b->copy[offset] = b->host[offset];
	}
}

/* An address that is worth something: in a region, about its ends, or any. */
static inline uint64_t guest_pick(struct fuzz_input *in)
{
	uint32_t how = fuzz_u8(in), region = how % 8;
	uint64_t offset;

	if (region >= GUEST_REGIONS)
		return fuzz_u64(in);
	if (how & 0x80)
		return guest_region[region].addr + guest_region[region].len - fuzz_u8(in);
	offset = how & 0x40 ? fuzz_u16(in) : 16 * (uint64_t)fuzz_u8(in);
	return guest_region[region].addr + offset % guest_region[region].len;
}

/* ---- making it ---- */

static inline int32_t guest_nonsensical(struct vqb_extent *e, uint32_t kind)
{
	switch (kind % 5) {
	case 0:
		return VQB_E_FAULT;
	case 1:
		e->len = 0;
		return VQB_OK;
	case 2:
		e->host = NULL;
		return VQB_OK;
	case 3:
		e->addr += e->len; /* right behind what was asked for */
		return VQB_OK;
	default:
		e->access = 0x40;
		return VQB_OK;
	}
}

static inline int32_t guest_translate(void *context, uint64_t addr, uint32_t access,
				      struct vqb_extent *out)
{
	const struct guest *g = (const struct guest *)context;
	/* While set_memory asks, the new view is current already (guest_look_at). */
	enum guest_map kind = g->now->kind;
	int region = guest_region_of(addr);
	uint64_t offset, left;
	uint32_t step;

	(void)access;
	if (region < 0 || !guest_mapped(kind, (unsigned)region) ||
	    !guest_hooked(kind, (unsigned)region))
		return VQB_E_FAULT;
	offset = addr - guest_region[region].addr;
	step = guest_step(g, (unsigned)region);
	offset -= offset % step;
	left = guest_region[region].len - offset;
	*out = (struct vqb_extent){ .addr = guest_region[region].addr + offset,
				    .len = left < step ? left : step,
				    .access = guest_region[region].access };
	out->host = guest_block(g, kind, (unsigned)region)->host + (size_t)offset;
	if (guest_nonsense(g, (unsigned)region, offset))
		return guest_nonsensical(out, (uint32_t)(offset / g->step) / 8 + g->wrong / 8);
	return VQB_OK;
}

/* An answer that does not have the host address, or may not be written. */
static inline int32_t guest_mislocated(struct vqb_extent *e, uint32_t kind)
{
	switch (kind % 5) {
	case 0:
		return VQB_E_FAULT;
	case 1:
		e->len = 0;
		return VQB_OK;
	case 2:
		e->host = NULL;
		return VQB_OK;
	case 3:
		e->host = (char *)e->host + e->len;
		return VQB_OK;
	default:
		e->access = VQB_READ;
		return VQB_OK;
	}
}

static inline int32_t guest_locate(void *context, const void *host, struct vqb_extent *out)
{
	const struct guest *g = (const struct guest *)context;
	enum guest_map kind = g->now->kind;

	for (unsigned i = 0; i < GUEST_REGIONS; i++) {
		const struct guest_block *b = guest_block(g, kind, i);
		uint64_t offset = (uintptr_t)host - (uintptr_t)b->host, left;
		uint32_t step = guest_step(g, i);

		if (!guest_mapped(kind, i) || !guest_hooked(kind, i) ||
		    offset >= guest_region[i].len)
			continue;
		offset -= offset % step;
		left = guest_region[i].len - offset;
		*out = (struct vqb_extent){ .addr = guest_region[i].addr + offset,
					    .len = left < step ? left : step,
					    .host = b->host + (size_t)offset,
					    .access = guest_region[i].access };
		if (g->wrong & 0x40 && offset / step % 8 == g->wrong / 8 % 8)
			return guest_mislocated(out, (uint32_t)(offset / step) / 8 + g->wrong);
		return VQB_OK;
	}
	return VQB_E_FAULT;
}

/* The view that is not in use, made to be of `kind`, with a log or without. */
static inline struct guest_view *guest_view(struct guest *g, enum guest_map kind, bool log,
					    uint32_t generation)
{
	struct guest_view *v = &g->view[g->now == &g->view[0]];
	uint32_t n = 0;

	v->kind = kind;
	for (unsigned i = 0; i < GUEST_REGIONS; i++) {
		if (!guest_mapped(kind, i) || guest_hooked(kind, i))
			continue;
		v->extent[n++] = (struct vqb_extent){ guest_region[i].addr, guest_region[i].len,
						      guest_block(g, kind, i)->host,
						      guest_region[i].access, 0 };
	}
	if (kind == GUEST_MAP_WRONG && !log)
		v->extent[1].addr--;
	v->memory = (struct vqb_memory){ .struct_size = sizeof(v->memory),
					 .generation = generation,
					 .count = n,
					 .sorted = n ? v->extent : NULL,
					 .translate = guest_translate,
					 .context = g };
	if (log)
		v->memory.log = guest_log;
	if (log && kind != GUEST_MAP_WRONG)
		v->memory.locate = guest_locate;
	return v;
}

static inline void guest_make(struct guest *g, uint32_t step, uint32_t wrong)
{
	g->step = step ? step : 1;
	g->wrong = wrong;
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		unsigned region = i == GUEST_OTHER ? GUEST_RING : i;
		struct guest_block *b = &g->block[i];

		if (i == GUEST_WIDE) {
			/* Nothing is ever there: the library does not touch buffers. */
			b->host = (uint8_t *)(uintptr_t)0x20000000;
			continue;
		}
		b->len = (size_t)guest_region[region].len;
		b->memory = (uint8_t *)fuzz_alloc(b->len + guest_region[region].shift);
		b->host = b->memory + guest_region[region].shift;
		b->copy = (uint8_t *)fuzz_alloc(b->len);
		b->sent = (uint8_t *)fuzz_alloc(b->len);
	}
	g->now = guest_view(g, GUEST_MAP_ALL, false, 1);
}

static inline void guest_free(struct guest *g)
{
	for (unsigned i = 0; i < GUEST_BLOCKS; i++) {
		free(g->block[i].memory);
		free(g->block[i].copy);
		free(g->block[i].sent);
	}
}

#endif
