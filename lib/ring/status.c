/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c: the version, and statuses by name. */
#include <vqblk/status.h>

uint32_t vqb_version(void)
{
	return VQB_VERSION;
}

const char *vqb_status_name(int32_t status)
{
	switch (status) {
	case VQB_OK:
		return "VQB_OK";
	case VQB_E_INVALID:
		return "VQB_E_INVALID";
	case VQB_E_NOSPC:
		return "VQB_E_NOSPC";
	case VQB_E_TOOBIG:
		return "VQB_E_TOOBIG";
	case VQB_E_BUSY:
		return "VQB_E_BUSY";
	case VQB_E_STALE:
		return "VQB_E_STALE";
	case VQB_E_FAULT:
		return "VQB_E_FAULT";
	case VQB_E_BAD_CHAIN:
		return "VQB_E_BAD_CHAIN";
	case VQB_E_BROKEN:
		return "VQB_E_BROKEN";
	case VQB_E_AGAIN:
		return "VQB_E_AGAIN";
	case VQB_E_IO:
		return "VQB_E_IO";
	case VQB_E_UNSUPP:
		return "VQB_E_UNSUPP";
	default:
		return "VQB_E_?";
	}
}
