/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h: one queue's view of guest memory: the shared map, and windows on two extents of it.
 *
 * Two, because requests alternate between a region with their headers and one with their data.
 * They are sorted, so that one compare tells which of them an address can be in. An empty window
 * has length 0, so that no address is in it.
 */
#ifndef RING_MAP_H
#define RING_MAP_H

#include <stdbool.h>

#include <vqblk/memory.h>

#include "split.h"

/* An extent as it is looked up: nothing is there for an access that it does not allow. */
struct window {
	uint64_t addr;
	uint64_t len[2]; /* for reading, for writing */
	char *host;
};

struct map {
	struct window window[2]; /* by address */
	uint32_t older;          /* which of them is the next to be given up */
	const struct vqb_memory *memory;
};

/* What an extent of the array must be, and of a hook's answer. */
bool vqb__map_extent_valid(const struct vqb_extent *e);

void vqb__map_init(struct map *map, const struct vqb_memory *memory);

/* As map_find, after the cache has missed. */
void *vqb__map_search(struct map *map, uint64_t addr, uint32_t access, uint64_t *avail);

/* Which of a window's lengths is for `access`, VQB_READ or VQB_WRITE. */
#define WINDOW_LEN(access) ((size_t)(access) >> 1)

/* The only window that `addr` can be in. */
VQB_INLINE const struct window *map_window(const struct map *map, uint64_t addr)
{
	return addr >= map->window[1].addr ? &map->window[1] : &map->window[0];
}

/* Does the window hold all of a buffer, for reading or for writing (0, 1)? Not one of length 0. */
VQB_INLINE bool window_holds(const struct window *w, uint64_t addr, uint64_t len, size_t writes)
{
	uint64_t room = w->len[writes];

	return len - 1 < room && addr - w->addr <= room - len;
}

VQB_INLINE char *window_host(const struct window *w, uint64_t addr)
{
	return w->host + (size_t)(addr - w->addr);
}

/*
 * Where `addr` lies in the host, and in *avail (at least 1) how many bytes from there on lie in
 * a row. NULL: not mapped for `access`.
 */
static inline void *map_find(struct map *map, uint64_t addr, uint32_t access, uint64_t *avail)
{
	const struct window *w = map_window(map, addr);
	uint64_t offset = addr - w->addr, len = w->len[WINDOW_LEN(access)];

	if (VQB_UNLIKELY(offset >= len))
		return vqb__map_search(map, addr, access, avail);
	*avail = len - offset;
	return window_host(w, addr);
}

/* Where all of a buffer, `len` not 0, lies, if that is in one of the windows; else NULL. */
VQB_INLINE void *map_whole(const struct map *map, uint64_t addr, uint32_t len, uint32_t access)
{
	const struct window *w = map_window(map, addr);

	return window_holds(w, addr, len, WINDOW_LEN(access)) ? window_host(w, addr) : NULL;
}

/*
 * Is all of [addr, addr + len) mapped for `access`? If not, *addr is the first address that is
 * not. The range must not wrap.
 */
bool vqb__map_covers(struct map *map, uint64_t *addr, uint64_t len, uint32_t access);

/* [addr, addr + len) as one stretch of host memory, or NULL. The range must not wrap. */
void *vqb__map_stretch(struct map *map, uint64_t addr, uint64_t len, uint32_t access);

/*
 * Copies `len` bytes, each fetched once, from a range that vqb__map_covers has found to be mapped.
 */
bool vqb__map_read(struct map *map, uint64_t addr, void *to, uint32_t len);

#endif
