/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h: one queue's view of guest memory: the shared map, and the two extents used last.
 *
 * Two, because requests alternate between a region with their headers and one with their data.
 * An empty cache entry has length 0, so that no address is in it.
 */
#ifndef RING_MAP_H
#define RING_MAP_H

#include <stdbool.h>

#include <vqblk/memory.h>

#include "split.h"

struct map {
	struct vqb_extent cached[2];
	const struct vqb_memory *memory;
};

void map_init(struct map *map, const struct vqb_memory *memory);

/* As map_find, after the cache has missed. */
void *map_search(struct map *map, uint64_t addr, uint32_t access, uint64_t *avail);

static inline bool extent_covers(const struct vqb_extent *e, uint64_t addr, uint32_t access)
{
	return addr - e->addr < e->len && (e->access & access) == access;
}

static inline void *extent_at(const struct vqb_extent *e, uint64_t addr, uint64_t *avail)
{
	uint64_t offset = addr - e->addr;

	*avail = e->len - offset;
	return (char *)e->host + (size_t)offset;
}

/*
 * Where `addr` lies in the host, and in *avail (at least 1) how many bytes from there on lie in
 * a row. NULL: not mapped for `access`.
 */
static inline void *map_find(struct map *map, uint64_t addr, uint32_t access, uint64_t *avail)
{
	for (uint32_t i = 0; i < 2; i++)
		if (VQB_LIKELY(extent_covers(&map->cached[i], addr, access)))
			return extent_at(&map->cached[i], addr, avail);
	return map_search(map, addr, access, avail);
}

/* The extent used last that has `addr`, or NULL. */
static inline const struct vqb_extent *map_cached(const struct map *map, uint64_t addr,
						  uint32_t access)
{
	for (uint32_t i = 0; i < 2; i++)
		if (extent_covers(&map->cached[i], addr, access))
			return &map->cached[i];
	return NULL;
}

/* Where all of a buffer lies, if that is in one of the extents used last; else NULL. */
VQB_INLINE void *map_whole(const struct map *map, uint64_t addr, uint32_t len, uint32_t access)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct vqb_extent *e = &map->cached[i];
		uint64_t offset = addr - e->addr;

		if (offset < e->len && len <= e->len - offset && (e->access & access))
			return (char *)e->host + (size_t)offset;
	}
	return NULL;
}

/*
 * Is all of [addr, addr + len) mapped for `access`? If not, *addr is the first address that is
 * not. The range must not wrap.
 */
bool map_covers(struct map *map, uint64_t *addr, uint64_t len, uint32_t access);

/* [addr, addr + len) as one stretch of host memory, or NULL. The range must not wrap. */
void *map_stretch(struct map *map, uint64_t addr, uint64_t len, uint32_t access);

/* Copies `len` bytes, each fetched once, from a range that map_covers has found to be mapped. */
bool map_read(struct map *map, uint64_t addr, void *to, uint32_t len);

#endif
