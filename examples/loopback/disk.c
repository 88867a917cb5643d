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

static const char *open_fault(int32_t status)
{
	switch (status) {
	case VQB_E_BUSY:
		return "in use by another program";
	case VQB_E_IO:
		return strerror(errno);
	case VQB_E_UNSUPP:
		return "neither a file nor a block device";
	default:
		return vqb_status_name(status);
	}
}

static bool open_file(struct disk *disk, const char *path)
{
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .path = path,
					  .access = disk->access };
	uint64_t wanted = disk->bytes;
	int32_t status;

	disk->file_memory = object_memory(vqb_file_size());
	if (!disk->file_memory) {
		complain("no memory");
		return false;
	}
	status = vqb_file_open(disk->file_memory, vqb_file_size(), &config, &disk->file);
	if (status) {
		complain("%s: %s", path, open_fault(status));
		return false;
	}
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

bool disk_open(struct disk *disk, const struct options *options)
{
	bool good = true;

	*disk = (struct disk){ .kind = options->disk,
			       .bytes = options->size,
			       .access = options->readonly ? VQB_READ : VQB_READ | VQB_WRITE };
	if (!disk->bytes && disk->kind != DISK_FILE)
		disk->bytes = DEFAULT_BYTES;
	if (disk->kind == DISK_FILE)
		good = open_file(disk, options->image);
	else if (disk->kind == DISK_MEMORY)
		good = open_memory(disk);
	if (!good)
		disk_close(disk);
	return good;
}

bool disk_close(struct disk *disk)
{
	bool good = true;

	if (disk->file)
		good = vqb_file_close(disk->file) == VQB_OK;
	if (disk->memory)
		munmap(disk->memory, disk->bytes);
	free(disk->file_memory);
	*disk = (struct disk){ .kind = DISK_NULL };
	return good;
}

size_t disk_backend_size(void)
{
	size_t memory = vqb_backend_memory_size(), null = vqb_backend_null_size();
	size_t file = vqb_file_backend_size(), most = memory > null ? memory : null;

	return most > file ? most : file;
}

int32_t disk_backend(const struct disk *disk, void *mem, struct vqb_backend **backend)
{
	struct vqb_backend_memory_config memory = { .struct_size = sizeof(memory),
						    .access = disk->access,
						    .disk = disk->memory,
						    .bytes = disk->bytes };

	switch (disk->kind) {
	case DISK_MEMORY:
		return vqb_backend_memory_init(mem, disk_backend_size(), &memory, backend);
	case DISK_FILE:
		return vqb_file_backend_init(mem, disk_backend_size(), disk->file, backend);
	default:
		return vqb_backend_null_init(mem, disk_backend_size(), disk->bytes, backend);
	}
}
