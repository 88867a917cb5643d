/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_memory.c: a disk in the caller's memory. */
#include <vqblk/backend.h>
#include <vqblk/blk.h>
#include <vqblk/port.h>

struct memory_backend {
	struct vqb_backend base;
	struct vqb_io_list done;
	uint8_t *disk;
};

_Static_assert(sizeof(struct memory_backend) <= VQB_BACKEND_MEMORY_BYTES, "bound");

static void copy_piece(uint8_t *disk, const struct vqb_piece *piece, size_t bytes, uint8_t op)
{
	if (op == VQB_BLK_IN)
		memcpy(piece->base, disk, bytes);
	else
		memcpy(disk, piece->base, bytes);
}

static int64_t copy_pieces(uint8_t *disk, const struct vqb_io *io)
{
	uint64_t done = 0;
	uint32_t i;

	for (i = 0; i < io->pieces && done < io->bytes; i++) {
		size_t n = io->piece[i].len;

		if (!n)
			continue;
		if (n > io->bytes - done)
			n = (size_t)(io->bytes - done);
		copy_piece(disk + done, &io->piece[i], n, io->op);
		done += n;
	}
	return (int64_t)done;
}

/* VQB_E_UNSUPP: nothing that this disk does. */
static int32_t carry_out(uint8_t *at, const struct vqb_backend_caps *caps, struct vqb_io *io)
{
	io->result = (int64_t)io->bytes;
	if (io->op == VQB_BLK_IN) {
		io->result = copy_pieces(at, io);
		return VQB_OK;
	}
	if (!(caps->can & VQB_CAN_WRITE))
		return VQB_E_UNSUPP;
	switch (io->op) {
	case VQB_BLK_OUT:
		io->result = copy_pieces(at, io);
		return VQB_OK;
	case VQB_BLK_DISCARD: /* what is discarded may read as anything: as zeroes, then */
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		memset(at, 0, (size_t)io->bytes);
		return VQB_OK;
	default:
		return VQB_E_UNSUPP;
	}
}

static int32_t memory_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct memory_backend *memory = (struct memory_backend *)backend;
	const struct vqb_backend_caps *caps = &backend->caps;
	int32_t status;

	if (io->op == VQB_BLK_FLUSH) {
		io->result = 0;
	} else {
		if (io->offset > caps->bytes || io->bytes > caps->bytes - io->offset)
			return VQB_E_INVALID;
		status = carry_out(memory->disk + io->offset, caps, io);
		if (status)
			return status;
	}
	vqb_io_list_add(&memory->done, io);
	return VQB_OK;
}

static struct vqb_io *memory_poll(struct vqb_backend *backend)
{
	return vqb_io_list_take(&((struct memory_backend *)backend)->done);
}

static const struct vqb_backend_ops memory_ops = {
	.struct_size = sizeof(memory_ops),
	.submit = memory_submit,
	.poll = memory_poll,
};

size_t vqb_backend_memory_size(void)
{
	return VQB_ROUND_UP(sizeof(struct memory_backend));
}

int32_t vqb_backend_memory_init(void *mem, size_t bytes,
				const struct vqb_backend_memory_config *config,
				struct vqb_backend **out)
{
	struct memory_backend *memory = mem;
	struct vqb_backend *base;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out || !config ||
	    config->struct_size != sizeof(*config) || (!config->disk && config->bytes))
		return VQB_E_INVALID;
	if (config->access != VQB_READ && config->access != (VQB_READ | VQB_WRITE))
		return VQB_E_INVALID;
	if (bytes < vqb_backend_memory_size())
		return VQB_E_TOOBIG;
	memset(memory, 0, sizeof(*memory));
	memory->disk = config->disk;
	base = &memory->base;
	base->struct_size = sizeof(*base);
	base->ops = &memory_ops;
	base->caps.bytes = config->bytes;
	base->caps.max_transfer = base->caps.max_range = UINT64_MAX;
	base->caps.max_pieces = UINT32_MAX;
	base->caps.alignment = 1;
	base->caps.can = VQB_CAN_READ | VQB_CAN_FLUSH;
	if (config->access & VQB_WRITE)
		base->caps.can |= VQB_CAN_WRITE | VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES |
				  VQB_CAN_SECURE_ERASE;
	*out = base;
	return VQB_OK;
}
