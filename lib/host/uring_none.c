/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uring_none.c: the io_uring backend of a library that was built without liburing: there is none.
 */
#include <vqblk/host/uring.h>

#include <string.h>

size_t vqb_uring_size(const struct vqb_uring_config *config)
{
	return config ? VQB_ALIGN : 0;
}

int32_t vqb_uring_init(void *mem, size_t bytes, const struct vqb_uring_config *config,
		       struct vqb_backend **out)
{
	(void)mem;
	(void)bytes;
	(void)config;
	(void)out;
	return VQB_E_UNSUPP;
}

void vqb_uring_close(struct vqb_backend *backend)
{
	(void)backend;
}

int32_t vqb_uring_register_memory(struct vqb_backend *backend, const struct vqb_piece *memory,
				  uint32_t pieces)
{
	(void)backend;
	(void)memory;
	(void)pieces;
	return VQB_E_UNSUPP;
}

void vqb_uring_read_counters(const struct vqb_backend *backend, struct vqb_uring_counters *out)
{
	(void)backend;
	memset(out, 0, sizeof(*out));
}
