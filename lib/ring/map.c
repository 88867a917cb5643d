/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c: guest memory: checking a map, and looking addresses up in it. */
#include "map.h"

#define ACCESS_ALL ((uint32_t)(VQB_READ | VQB_WRITE))

bool vqb__map_extent_valid(const struct vqb_extent *e)
{
	return e->len && !range_wraps(e->addr, e->len) && e->host && e->access &&
	       !(e->access & ~ACCESS_ALL) && !e->zero &&
	       e->len - 1 <= UINTPTR_MAX - (uintptr_t)e->host;
}

int32_t vqb_memory_check(const struct vqb_memory *memory)
{
	const struct vqb_extent *e = memory ? memory->sorted : NULL;

	if (!memory || memory->struct_size != sizeof(*memory) || memory->zero ||
	    (memory->count && !e) || (!memory->count && !memory->translate) ||
	    (memory->log && memory->translate && !memory->locate))
		return VQB_E_INVALID;
	for (uint32_t i = 0; i < memory->count; i++) {
		if (!vqb__map_extent_valid(&e[i]))
			return VQB_E_INVALID;
		/* The last byte of the one before lies below; its end may be 2^64. */
		if (i && e[i - 1].addr + (e[i - 1].len - 1) >= e[i].addr)
			return VQB_E_INVALID;
	}
	return VQB_OK;
}

void vqb__map_init(struct map *map, const struct vqb_memory *memory)
{
	memset(map, 0, sizeof(*map));
	map->memory = memory;
}

/* The last extent of the array that begins at or below `addr`, or NULL. */
static const struct vqb_extent *array_find(const struct vqb_memory *memory, uint64_t addr)
{
	uint32_t low = 0, high = memory->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (memory->sorted[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &memory->sorted[low - 1] : NULL;
}

static bool extent_covers(const struct vqb_extent *e, uint64_t addr, uint32_t access)
{
	return addr - e->addr < e->len && (e->access & access);
}

/* Opens a window in place of the one that was opened first, and keeps the two in order. */
static void *window_open(struct map *map, const struct vqb_extent *e, uint64_t addr,
			 uint64_t *avail)
{
	uint64_t offset = addr - e->addr;
	struct window opened = {
		.addr = e->addr,
		.len = { e->access & VQB_READ ? e->len : 0, e->access & VQB_WRITE ? e->len : 0 },
		.host = e->host,
	};
	struct window kept = map->window[!map->older];

	map->older = kept.addr > opened.addr;
	map->window[map->older] = kept;
	map->window[!map->older] = opened;
	*avail = e->len - offset;
	return (char *)e->host + (size_t)offset;
}

void *vqb__map_search(struct map *map, uint64_t addr, uint32_t access, uint64_t *avail)
{
	const struct vqb_memory *memory = map->memory;
	const struct vqb_extent *found = array_find(memory, addr);
	struct vqb_extent asked = { 0 };

	if (!found || !extent_covers(found, addr, access)) {
		if (!memory->translate ||
		    memory->translate(memory->context, addr, access, &asked) ||
		    !vqb__map_extent_valid(&asked) || !extent_covers(&asked, addr, access))
			return NULL;
		found = &asked;
	}
	return window_open(map, found, addr, avail);
}

bool vqb__map_covers(struct map *map, uint64_t *addr, uint64_t len, uint32_t access)
{
	uint64_t avail;

	while (len) {
		if (!map_find(map, *addr, access, &avail))
			return false;
		avail = avail < len ? avail : len;
		*addr += avail;
		len -= avail;
	}
	return true;
}

void *vqb__map_stretch(struct map *map, uint64_t addr, uint64_t len, uint32_t access)
{
	uint64_t avail;
	char *start = map_find(map, addr, access, &avail);
	char *at = start;

	while (at && avail < len) {
		char *end = at + (size_t)avail;

		addr += avail;
		len -= avail;
		at = map_find(map, addr, access, &avail);
		if (at != end)
			return NULL;
	}
	return at ? start : NULL;
}

bool vqb__map_read(struct map *map, uint64_t addr, void *to, uint32_t len)
{
	uint8_t *out = to;
	uint64_t avail;

	while (len) {
		const uint8_t *from = map_find(map, addr, VQB_READ, &avail);
		uint32_t n;

		if (!from)
			return false;
		n = avail < len ? (uint32_t)avail : len;
		for (uint32_t i = 0; i < n; i++)
			*out++ = vqb_port_load8(from + i);
		addr += n;
		len -= n;
	}
	return true;
}
