/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_null.c: all ios are done as soon as they are submitted, and nothing is. */
#include <vqblk/backend.h>
#include <vqblk/blk.h>
#include <vqblk/port.h>

struct null_backend {
	struct vqb_backend base;
	struct vqb_io_list done;
};

_Static_assert(sizeof(struct null_backend) <= VQB_BACKEND_NULL_BYTES, "bound");

static int32_t null_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	switch (io->op) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
	case VQB_BLK_FLUSH:
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		break;
	default:
		return VQB_E_UNSUPP;
	}
	io->result = (int64_t)io->bytes;
	vqb_io_list_add(&((struct null_backend *)backend)->done, io);
	return VQB_OK;
}

static struct vqb_io *null_poll(struct vqb_backend *backend)
{
	return vqb_io_list_take(&((struct null_backend *)backend)->done);
}

static const struct vqb_backend_ops null_ops = {
	.struct_size = sizeof(null_ops),
	.submit = null_submit,
	.poll = null_poll,
};

size_t vqb_backend_null_size(void)
{
	return VQB_ROUND_UP(sizeof(struct null_backend));
}

int32_t vqb_backend_null_init(void *mem, size_t bytes, uint64_t disk, struct vqb_backend **out)
{
	struct null_backend *null = mem;
	struct vqb_backend *base;

	if (!mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < vqb_backend_null_size())
		return VQB_E_TOOBIG;
	memset(null, 0, sizeof(*null));
	base = &null->base;
	base->struct_size = sizeof(*base);
	base->ops = &null_ops;
	base->caps.bytes = disk;
	base->caps.max_transfer = base->caps.max_range = UINT64_MAX;
	base->caps.max_pieces = UINT32_MAX;
	base->caps.alignment = 1;
	base->caps.can = VQB_CAN_READ | VQB_CAN_WRITE | VQB_CAN_FLUSH | VQB_CAN_DISCARD |
			 VQB_CAN_WRITE_ZEROES | VQB_CAN_UNMAP | VQB_CAN_SECURE_ERASE;
	*out = base;
	return VQB_OK;
}
