/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c: the version, and statuses and rules by name. */
#include <vqblk/device.h>
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
	case VQB_E_LATE:
		return "VQB_E_LATE";
	case VQB_E_STALE:
		return "VQB_E_STALE";
	case VQB_E_FAULT:
		return "VQB_E_FAULT";
	case VQB_E_BAD_CHAIN:
		return "VQB_E_BAD_CHAIN";
	case VQB_E_BROKEN:
		return "VQB_E_BROKEN";
	case VQB_E_NEEDS_RESET:
		return "VQB_E_NEEDS_RESET";
	case VQB_E_AGAIN:
		return "VQB_E_AGAIN";
	case VQB_E_CANCELLED:
		return "VQB_E_CANCELLED";
	case VQB_E_IO:
		return "VQB_E_IO";
	case VQB_E_UNSUPP:
		return "VQB_E_UNSUPP";
	default:
		return "VQB_E_?";
	}
}

const char *vqb_rule_name(uint32_t rule)
{
	switch (rule) {
	case VQB_RULE_NONE:
		return "VQB_RULE_NONE";
	case VQB_RULE_NEXT:
		return "VQB_RULE_NEXT";
	case VQB_RULE_LOOP:
		return "VQB_RULE_LOOP";
	case VQB_RULE_ORDER:
		return "VQB_RULE_ORDER";
	case VQB_RULE_RANGE:
		return "VQB_RULE_RANGE";
	case VQB_RULE_BYTES:
		return "VQB_RULE_BYTES";
	case VQB_RULE_PIECES:
		return "VQB_RULE_PIECES";
	case VQB_RULE_INDIRECT:
		return "VQB_RULE_INDIRECT";
	case VQB_RULE_NESTED:
		return "VQB_RULE_NESTED";
	case VQB_RULE_BOTH:
		return "VQB_RULE_BOTH";
	case VQB_RULE_TABLE:
		return "VQB_RULE_TABLE";
	case VQB_RULE_REJECTED:
		return "VQB_RULE_REJECTED";
	case VQB_RULE_HEAD:
		return "VQB_RULE_HEAD";
	case VQB_RULE_TWICE:
		return "VQB_RULE_TWICE";
	case VQB_RULE_JUMPED:
		return "VQB_RULE_JUMPED";
	default:
		return "VQB_RULE_?";
	}
}
