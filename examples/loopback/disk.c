/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "say.h"

#define DEFAULT_BYTES (UINT64_C(64) << 20)

enum { THREADS = 4, DEPTH_MOST = 1024, BOUNCES = 8, BOUNCE_BYTES = 64 << 10 };

static bool open_memory(struct disk *disk)
{
	void *at =
		mmap(NULL, disk->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		complain("no %" PRIu64 " bytes of memory for the disk: %s", disk->bytes,
			 strerror(errno));
		return false;
	}
	disk->memory = at;
	return true;
}

static const char *open_fault(int32_t status, bool direct)
{
	switch (status) {
	case VQB_E_BUSY:
		return "in use by another program";
	case VQB_E_IO:
		return strerror(errno);
	case VQB_E_UNSUPP:
		return direct ? "not to be had with --direct; leave that out"
			      : "neither a file nor a block device";
	default:
		return vqb_status_name(status);
	}
}

/* What there is of an image, or as much of it as was asked for. */
static bool set_size(struct disk *disk, const char *path)
{
	uint64_t wanted = disk->bytes;

	disk->bytes = vqb_file_bytes(disk->file);
	if (!disk->bytes) {
		complain("%s: has not one whole sector of 512 bytes", path);
		return false;
	}
	if (wanted > disk->bytes) {
		complain("--size %" PRIu64 ": %s has only %" PRIu64 " bytes in whole sectors",
			 wanted, path, disk->bytes);
		return false;
	}
	if (wanted)
		disk->bytes = wanted;
	return true;
}

static bool open_file(struct disk *disk, const char *path)
{
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .path = path,
					  .access = disk->access,
					  .direct = disk->direct };
	int32_t status;

	disk->file_memory = object_memory(vqb_file_size());
	if (!disk->file_memory) {
		complain("no memory");
		return false;
	}
	status = vqb_file_open(disk->file_memory, vqb_file_size(), &config, &disk->file);
	if (status) {
		complain("%s: %s", path, open_fault(status, disk->direct));
		return false;
	}
	return set_size(disk, path);
}

static bool open_threads(struct disk *disk)
{
	struct vqb_threads_config config = { .struct_size = sizeof(config), .threads = THREADS };
	size_t bytes = vqb_threads_size(&config);

	disk->threads_memory = object_memory(bytes);
	if (disk->threads_memory &&
	    !vqb_threads_open(disk->threads_memory, bytes, &config, &disk->threads))
		return true;
	complain("no threads for the disk: %s", strerror(errno));
	return false;
}

/* A first backend shows whether there is io_uring here, and in what units it works. */
static bool try_uring(struct disk *disk)
{
	struct vqb_backend *backend;
	void *mem;

	if (!disk_backend_open(disk, NULL, &mem, &backend))
		return false;
	if (backend->caps.alignment > disk->unit)
		disk->unit = backend->caps.alignment;
	disk_backend_close(disk, backend);
	free(mem);
	if (disk->bytes % disk->unit == 0)
		return true;
	complain("--size %" PRIu64 ": with --direct the disk has units of %" PRIu32 " bytes",
		 disk->bytes, disk->unit);
	return false;
}

static bool open_image(struct disk *disk, const char *path)
{
	if (!open_file(disk, path))
		return false;
	switch (disk->kind) {
	case DISK_URING:
		return try_uring(disk);
	case DISK_THREADS:
		return open_threads(disk);
	default:
		return true;
	}
}

bool disk_open(struct disk *disk, const struct options *options)
{
	uint32_t depth = options_jobs_of(options, 0) * options->iodepth;
	bool good = true;

	*disk = (struct disk){ .kind = options->disk,
			       .bytes = options->size,
			       .unit = options->unit,
			       .depth = depth < DEPTH_MOST ? depth : DEPTH_MOST,
			       .direct = options->direct,
			       .access = options->readonly ? VQB_READ : VQB_READ | VQB_WRITE };
	if (!disk->bytes && !disk_is_image(disk->kind))
		disk->bytes = DEFAULT_BYTES;
	if (disk_is_image(disk->kind))
		good = open_image(disk, options->image);
	else if (disk->kind == DISK_MEMORY)
		good = open_memory(disk);
	if (!good)
		disk_close(disk);
	return good;
}

bool disk_close(struct disk *disk)
{
	bool good = true;

	if (disk->threads)
		vqb_threads_close(disk->threads);
	if (disk->file)
		good = vqb_file_close(disk->file) == VQB_OK;
	if (disk->memory)
		munmap(disk->memory, disk->bytes);
	free(disk->threads_memory);
	free(disk->file_memory);
	*disk = (struct disk){ .kind = DISK_NULL };
	return good;
}

/* ---- backends ---- */

static struct vqb_uring_config uring_config(const struct disk *disk, const struct vqb_notify *kick)
{
	return (struct vqb_uring_config){
		.struct_size = sizeof(struct vqb_uring_config),
		.entries = disk->depth,
		.file = disk->file,
		.notify = kick,
		.bounces = disk->direct ? BOUNCES : 0,
		.bounce_bytes = disk->direct ? BOUNCE_BYTES : 0,
	};
}

static size_t backend_bytes(const struct disk *disk)
{
	struct vqb_uring_config uring = uring_config(disk, NULL);

	switch (disk->kind) {
	case DISK_MEMORY:
		return vqb_backend_memory_size();
	case DISK_FILE:
		return vqb_file_backend_size();
	case DISK_URING:
		return vqb_uring_size(&uring);
	case DISK_THREADS:
		return vqb_threads_backend_size();
	default:
		return vqb_backend_null_size();
	}
}

static int32_t init_backend(const struct disk *disk, const struct vqb_notify *kick, void *mem,
			    size_t bytes, struct vqb_backend **backend)
{
	struct vqb_backend_memory_config memory = { .struct_size = sizeof(memory),
						    .access = disk->access,
						    .disk = disk->memory,
						    .bytes = disk->bytes };
	struct vqb_threads_backend_config threads = { .struct_size = sizeof(threads),
						      .depth = disk->depth,
						      .pool = disk->threads,
						      .file = disk->file,
						      .notify = kick };
	struct vqb_uring_config uring = uring_config(disk, kick);

	switch (disk->kind) {
	case DISK_MEMORY:
		return vqb_backend_memory_init(mem, bytes, &memory, backend);
	case DISK_FILE:
		return vqb_file_backend_init(mem, bytes, disk->file, backend);
	case DISK_URING:
		return vqb_uring_init(mem, bytes, &uring, backend);
	case DISK_THREADS:
		return vqb_threads_backend_init(mem, bytes, &threads, backend);
	default:
		return vqb_backend_null_init(mem, bytes, disk->bytes, backend);
	}
}

bool disk_backend_open(const struct disk *disk, const struct vqb_notify *kick, void **mem,
		       struct vqb_backend **backend)
{
	size_t bytes = backend_bytes(disk);
	int32_t status;

	errno = ENOMEM;
	*mem = bytes ? object_memory(bytes) : NULL;
	status = *mem ? init_backend(disk, kick, *mem, bytes, backend) : VQB_E_IO;
	if (!status)
		return true;
	if (status == VQB_E_UNSUPP)
		complain("--backend uring: no io_uring here (built without liburing, or the system "
			 "is too old or forbids it); take --backend threads");
	else
		complain("backend: %s",
			 status == VQB_E_IO ? strerror(errno) : vqb_status_name(status));
	free(*mem);
	*mem = NULL;
	return false;
}

void disk_backend_close(const struct disk *disk, struct vqb_backend *backend)
{
	if (disk->kind == DISK_URING)
		vqb_uring_close(backend);
	else if (disk->kind == DISK_THREADS)
		vqb_threads_backend_close(backend);
}
