/* SPDX-License-Identifier: BSD-3-Clause */
/* uring_setup.c: making and closing an io_uring backend, and what the kernel is told beforehand. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include "uring_state.h"

#include <errno.h>
#include <string.h>

/* ---- setting up ---- */

size_t vqb_uring_size(const struct vqb_uring_config *config)
{
	uint64_t bytes = sizeof(struct uring);

	if (!config || config->struct_size != sizeof(*config) || !config->file ||
	    !config->entries || config->entries > VQB_URING_MAX_ENTRIES)
		return 0;
	bytes += config->entries * sizeof(struct slot);
	if (config->file->direct) {
		if (!config->bounces || config->bounces > VQB_URING_MAX_BOUNCES ||
		    !config->bounce_bytes || config->bounce_bytes > PIECE_MAX ||
		    config->bounce_bytes % PAGE || config->bounce_bytes % config->file->alignment)
			return 0;
		bytes += PAGE + (uint64_t)config->bounces * config->bounce_bytes;
	}
	return bytes < SIZE_MAX - VQB_ALIGN ? VQB_ROUND_UP((size_t)bytes) : 0;
}

/* Slots, and bounce buffers from a page's begin on. */
static void lay_out(struct uring *self, const struct vqb_uring_config *config)
{
	uintptr_t at;
	uint32_t i;

	self->slot = (struct slot *)(self + 1);
	self->entries = config->entries;
	for (i = config->entries; i-- > 0;) {
		self->slot[i].next = self->idle;
		self->idle = &self->slot[i];
	}
	if (!config->file->direct)
		return;
	self->bounce_bytes = config->bounce_bytes;
	at = ((uintptr_t)(self->slot + config->entries) + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	self->region[0] = (struct region){ at, (size_t)config->bounces * config->bounce_bytes };
	for (i = 0; i < config->bounces; i++) {
		struct bounce *bounce = (struct bounce *)(at + (size_t)i * config->bounce_bytes);

		bounce->next = self->bounces;
		self->bounces = bounce;
	}
}

static int32_t setup_status(int error)
{
	if (error == ENOSYS || error == EPERM || error == EACCES || error == EINVAL)
		return VQB_E_UNSUPP;
	errno = error;
	return VQB_E_IO;
}

/* ---- registered memory ---- */

/* Has the kernel know the first `n` regions, and no others; an errno, or 0. */
static int register_regions(struct uring *self, uint32_t n)
{
	struct iovec vec[1 + VQB_URING_MAX_REGIONS];
	int error = 0;

	if (self->regions)
		io_uring_unregister_buffers(&self->ring);
	self->regions = 0;
	for (uint32_t i = 0; i < n; i++)
		vec[i] = (struct iovec){ (void *)self->region[i].base, self->region[i].len };
	if (n)
		error = -io_uring_register_buffers(&self->ring, vec, n);
	if (!error)
		self->regions = n;
	return error;
}

/* The bounce buffers alone: without that, things go on as well. */
static void register_bounces(struct uring *self)
{
	if (self->region[0].len && self->region[0].len <= PIECE_MAX)
		register_regions(self, 1);
}

/* Adds memory, cut into as many regions as it takes. */
static int32_t add_regions(struct uring *self, uint32_t *n, const struct vqb_piece *memory)
{
	uintptr_t base = (uintptr_t)memory->base;
	size_t left = memory->len, len;

	for (; left; left -= len, base += len) {
		len = left < PIECE_MAX ? left : PIECE_MAX;
		if (*n > VQB_URING_MAX_REGIONS)
			return VQB_E_TOOBIG;
		self->region[(*n)++] = (struct region){ base, len };
	}
	return VQB_OK;
}

int32_t vqb_uring_register_memory(struct vqb_backend *backend, const struct vqb_piece *memory,
				  uint32_t pieces)
{
	struct uring *self = uring_of(backend);
	uint32_t n = 1;
	int32_t status = VQB_OK;
	int error = 0;

	if (!self->file->direct)
		return VQB_E_UNSUPP;
	if (self->in_flight)
		return VQB_E_BUSY;
	for (uint32_t i = 0; i < pieces && !status; i++)
		status = add_regions(self, &n, &memory[i]);
	if (!status && n > 1)
		error = register_regions(self, n);
	if (status || error || n == 1)
		register_bounces(self);
	if (!error)
		return status;
	errno = error;
	return error == EOPNOTSUPP ? VQB_E_UNSUPP : VQB_E_IO;
}

/* ---- opening and closing ---- */

static int32_t open_ring(struct uring *self)
{
	const unsigned needs = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
			       IORING_FEAT_RW_CUR_POS; /* the last one came with Linux 5.6 */
	int error = -io_uring_queue_init(2 * self->entries, &self->ring, 0);

	if (error)
		return setup_status(error);
	if ((self->ring.features & needs) != needs)
		return VQB_E_UNSUPP;
	if (self->notify.fd >= 0)
		error = -io_uring_register_eventfd(&self->ring, self->notify.fd);
	if (error) {
		errno = error;
		return VQB_E_IO;
	}
	/* Spares the kernel a look-up for each step; without it things go on as well. */
	self->fd = self->file->fd;
	if (!io_uring_register_files(&self->ring, &self->fd, 1)) {
		self->fd = 0;
		self->sqe_flags = IOSQE_FIXED_FILE;
	}
	register_bounces(self);
	return VQB_OK;
}

int32_t vqb_uring_init(void *mem, size_t bytes, const struct vqb_uring_config *config,
		       struct vqb_backend **out)
{
	size_t need = vqb_uring_size(config);
	struct uring *self = mem;
	int32_t status;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	memset(self, 0, sizeof(*self));
	self->file = config->file;
	self->notify.fd = config->notify ? config->notify->fd : -1;
	lay_out(self, config);
	self->ring.ring_fd = -1;
	status = open_ring(self);
	if (status) {
		int kept = errno;

		if (self->ring.ring_fd >= 0)
			io_uring_queue_exit(&self->ring);
		errno = kept;
		return status;
	}
	self->base.struct_size = sizeof(self->base);
	self->base.ops = &vqb__uring_ops;
	vqb__image_caps(self->file, &self->base.caps);
	*out = &self->base;
	return VQB_OK;
}

void vqb_uring_close(struct vqb_backend *backend)
{
	struct uring *self = uring_of(backend);

	vqb__uring_ops.drain(backend);
	/* By name, as the rest is torn down at leisure, and the image may be wanted again. */
	if (self->sqe_flags & IOSQE_FIXED_FILE)
		io_uring_unregister_files(&self->ring);
	if (self->regions)
		io_uring_unregister_buffers(&self->ring);
	io_uring_queue_exit(&self->ring);
}

void vqb_uring_read_counters(const struct vqb_backend *backend, struct vqb_uring_counters *out)
{
	*out = ((const struct uring *)backend)->counters;
}
