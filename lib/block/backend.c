/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.c: what every backend object has to be like. */
#include <vqblk/backend.h>

enum { RANGES = VQB_CAN_DISCARD | VQB_CAN_WRITE_ZEROES | VQB_CAN_SECURE_ERASE };

int32_t vqb_backend_check(const struct vqb_backend *backend)
{
	const struct vqb_backend_caps *caps = &backend->caps;

	if (backend->struct_size != sizeof(*backend) || backend->zero || caps->zero)
		return VQB_E_INVALID;
	if (!backend->ops || backend->ops->struct_size != sizeof(*backend->ops) ||
	    backend->ops->zero)
		return VQB_E_INVALID;
	if (!backend->ops->submit || !backend->ops->poll)
		return VQB_E_INVALID;
	if (!caps->max_transfer || !caps->max_pieces || !caps->alignment ||
	    caps->alignment & (caps->alignment - 1))
		return VQB_E_INVALID;
	if (caps->can & RANGES && !caps->max_range)
		return VQB_E_INVALID;
	if (caps->can & VQB_CAN_LIFETIME && !backend->ops->lifetime)
		return VQB_E_INVALID;
	return VQB_OK;
}
