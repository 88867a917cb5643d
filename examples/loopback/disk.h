/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: what the device stores to: memory, an image file, or nothing at all.
 */
#ifndef LOOPBACK_DISK_H
#define LOOPBACK_DISK_H

#include <vqblk/vqblk.h>
#include <vqblk/host/file.h>

#include "options.h"

struct disk {
	enum disk_kind kind;
	uint32_t access; /* enum vqb_access */
	uint64_t bytes;
	void *memory;          /* DISK_MEMORY */
	struct vqb_file *file; /* DISK_FILE */
	void *file_memory;
};

/* False: it can't be had, and it was said why. An image is not changed. */
bool disk_open(struct disk *disk, const struct options *options);

/* False: the system reports that something written before did not arrive. */
bool disk_close(struct disk *disk);

/* Memory of a backend of any kind. */
size_t disk_backend_size(void);

/* One for each queue. */
int32_t disk_backend(const struct disk *disk, void *mem, struct vqb_backend **backend);

#endif
