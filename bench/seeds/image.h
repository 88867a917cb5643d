/* SPDX-License-Identifier: BSD-3-Clause */
/* image.h: a file that has no name, warm in the page cache, and backends on it. */
#ifndef BENCH_SEEDS_IMAGE_H
#define BENCH_SEEDS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <vqblk/host/file.h>
#include <vqblk/host/notify.h>
#include <vqblk/host/threads.h>
#include <vqblk/host/uring.h>

struct image {
	int fd;
	char system[16]; /* the file system's name, or its number */
	struct vqb_file *file;
	void *mem;
};

/* Makes the file in `dir`. Ends the program if it can't be. */
void image_make(struct image *image, const char *dir, uint32_t megabytes);
void image_unmake(struct image *image);

/*
 * Opens it for backends; `direct` past the page cache, which then has nothing of it. False: this
 * file system doesn't do that.
 */
bool image_open(struct image *image, bool direct);
void image_close(struct image *image);

enum way { URING, THREADS, SYNC, WAYS };

extern const char *const way_names[WAYS];

struct store {
	struct vqb_backend *backend;
	enum way way;
	bool plugs;
	struct vqb_notify done; /* signalled by completions, but for those of SYNC */
	struct vqb_backend_ops ops;
	struct vqb_threads *pool; /* of THREADS, or NULL */
	void *mem, *pool_mem;
};

/* Without `plugs`, each submit of URING starts its io at once. False: there is no io_uring here. */
bool store_open(struct store *store, const struct image *image, enum way way, uint32_t entries,
		bool plugs);
void store_close(struct store *store);

/* System calls that the backend has made. */
uint64_t store_calls(const struct store *store);

#endif
