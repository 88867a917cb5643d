/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: what the device stores to: memory, an image file, or nothing at all.
 */
#ifndef LOOPBACK_DISK_H
#define LOOPBACK_DISK_H

#include <vqblk/host/file.h>
#include <vqblk/host/notify.h>
#include <vqblk/host/threads.h>
#include <vqblk/host/uring.h>
#include <vqblk/vqblk.h>

#include "options.h"

struct disk {
	enum disk_kind kind;
	uint32_t access; /* enum vqb_access */
	uint32_t unit;   /* bytes that all I/Os are to be multiples of */
	uint32_t depth;  /* of a backend that finishes later */
	uint64_t bytes;
	bool direct;
	void *memory;          /* DISK_MEMORY */
	struct vqb_file *file; /* of an image */
	void *file_memory;
	struct vqb_threads *threads; /* DISK_THREADS */
	void *threads_memory;
};

/* False: it can't be had, and it was said why. An image is not changed. */
bool disk_open(struct disk *disk, const struct options *options);

/* False: the system reports that something written before did not arrive. */
bool disk_close(struct disk *disk);

/*
 * Makes a backend, one for each queue; *mem is to be freed after it was closed. One that finishes
 * later signals `kick`. False: it was said why.
 */
bool disk_backend_open(const struct disk *disk, const struct vqb_notify *kick, void **mem,
		       struct vqb_backend **backend);
void disk_backend_close(const struct disk *disk, struct vqb_backend *backend);

#endif
