/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ends.h"
#include "machine.h"

enum { CHUNK = 1 << 20, POOL = 4 };

const char *const way_names[WAYS] = { "io_uring", "threads", "file" };

/* ---- the file ---- */

static void name_system(struct image *image)
{
	static const struct {
		unsigned long type;
		const char *name;
	} known[] = { { 0xef53, "ext4" },
		      { 0x01021994, "tmpfs" },
		      { 0x58465342, "xfs" },
		      { 0x9123683e, "btrfs" },
		      { 0x794c7630, "overlay" } };
	struct statfs fs;

	if (fstatfs(image->fd, &fs))
		die("a file's system can't be told");
	snprintf(image->system, sizeof(image->system), "%#lx", (unsigned long)fs.f_type);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((unsigned long)fs.f_type == known[i].type)
			snprintf(image->system, sizeof(image->system), "%s", known[i].name);
}

/* Written in full, so that there are no holes, and no more to write back. */
void image_make(struct image *image, const char *dir, uint32_t megabytes)
{
	char path[4096];
	uint8_t *chunk = zeroed(CHUNK);

	memset(image, 0, sizeof(*image));
	snprintf(path, sizeof(path), "%s/vqblk-bench-XXXXXX", dir);
	image->fd = mkstemp(path);
	if (image->fd < 0 || unlink(path))
		die("no file can be made there");
	for (uint32_t i = 0; i < megabytes; i++) {
		memset(chunk, (int)(1 + i % 255), CHUNK);
		if (write(image->fd, chunk, CHUNK) != CHUNK)
			die("a file can't be written");
	}
	if (fsync(image->fd))
		die("a file can't be written");
	free(chunk);
	name_system(image);
}

void image_unmake(struct image *image)
{
	close(image->fd);
}

bool image_open(struct image *image, bool direct)
{
	char path[64];
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = VQB_READ | VQB_WRITE,
					  .path = path,
					  .direct = direct };
	int32_t status;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->fd);
	if (direct && posix_fadvise(image->fd, 0, 0, POSIX_FADV_DONTNEED))
		die("a file can't be dropped from the page cache");
	image->mem = zeroed(vqb_file_size());
	status = vqb_file_open(image->mem, vqb_file_size(), &config, &image->file);
	if (!status)
		return true;
	free(image->mem);
	if (!direct || status != VQB_E_UNSUPP)
		check(status);
	return false;
}

void image_close(struct image *image)
{
	check(vqb_file_close(image->file));
	free(image->mem);
}

/* ---- backends ---- */

static int32_t open_uring(struct store *s, const struct image *image, uint32_t entries)
{
	struct vqb_uring_config config = { .struct_size = sizeof(config),
					   .entries = entries,
					   .file = image->file,
					   .notify = &s->done,
					   .bounces = 1,
					   .bounce_bytes = 65536 };
	size_t bytes = vqb_uring_size(&config);

	s->mem = zeroed(bytes);
	return vqb_uring_init(s->mem, bytes, &config, &s->backend);
}

static int32_t open_threads(struct store *s, const struct image *image, uint32_t entries)
{
	struct vqb_threads_config pool = { .struct_size = sizeof(pool), .threads = POOL };
	struct vqb_threads_backend_config config = { .struct_size = sizeof(config),
						     .depth = entries,
						     .file = image->file,
						     .notify = &s->done };

	s->pool_mem = zeroed(vqb_threads_size(&pool));
	unpin();
	check(vqb_threads_open(s->pool_mem, vqb_threads_size(&pool), &pool, &s->pool));
	pin_to(0);
	config.pool = s->pool;
	s->mem = zeroed(vqb_threads_backend_size());
	return vqb_threads_backend_init(s->mem, vqb_threads_backend_size(), &config, &s->backend);
}

static int32_t open_sync(struct store *s, const struct image *image)
{
	s->mem = zeroed(vqb_file_backend_size());
	return vqb_file_backend_init(s->mem, vqb_file_backend_size(), image->file, &s->backend);
}

static int32_t open_way(struct store *s, const struct image *image, uint32_t entries)
{
	if (s->way == SYNC)
		return open_sync(s, image);
	check(vqb_notify_open(&s->done));
	return s->way == URING ? open_uring(s, image, entries) : open_threads(s, image, entries);
}

bool store_open(struct store *s, const struct image *image, enum way way, uint32_t entries,
		bool plugs)
{
	int32_t status;

	*s = (struct store){ .way = way, .plugs = plugs, .done = { -1 } };
	status = open_way(s, image, entries);
	if (status == VQB_E_UNSUPP) {
		vqb_notify_close(&s->done);
		free(s->mem);
		return false;
	}
	check(status);
	/* A backend that has no such functions is one that is never plugged. */
	s->ops = *s->backend->ops;
	if (!plugs)
		s->ops.plug = s->ops.unplug = NULL;
	s->backend->ops = &s->ops;
	return true;
}

void store_close(struct store *s)
{
	if (s->way == URING)
		vqb_uring_close(s->backend);
	if (s->way == THREADS) {
		vqb_threads_backend_close(s->backend);
		vqb_threads_close(s->pool);
	}
	vqb_notify_close(&s->done);
	free(s->pool_mem);
	free(s->mem);
}

uint64_t store_calls(const struct store *s)
{
	struct vqb_uring_counters counters;

	if (s->way != URING)
		return 0;
	vqb_uring_read_counters(s->backend, &counters);
	return counters.system_calls;
}
