/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h: the answers of the library.
 *
 * A function that can fail returns an int32_t: VQB_OK or one of the negative codes below, grouped
 * by whose fault it is, because that decides what the caller does next. Nothing is changed by a
 * call that fails, unless its description says so. The codes are stable numbers; the enums name
 * them and never cross the ABI themselves.
 *
 * A function that publishes returns a set of VQB_QUIET, VQB_NOTIFY and VQB_MORE instead.
 */
#ifndef VQBLK_STATUS_H
#define VQBLK_STATUS_H

#include <vqblk/api.h>

enum vqb_status {
	VQB_OK = 0,

	/* ---- your fault: the call was wrong, and will be wrong again ---- */

	/*
	 * A parameter is out of range, an object or a ring is not set up, alignment is wrong, or
	 * a contract that a cheap check can see was broken. Fix the caller.
	 */
	VQB_E_INVALID = -1,
	/*
	 * Can never fit: more segments than the ring has descriptors, more than 2^32 bytes in one
	 * chain, caller memory smaller than the object. Waiting does not help; split or enlarge.
	 */
	VQB_E_TOOBIG = -3,
	/*
	 * Not in this state: something is still out (tickets, tokens) and has to come back first.
	 */
	VQB_E_BUSY = -4,
	/* Too late to take a bio back: something of it was sent. It will be handed back as ever. */
	VQB_E_LATE = -9,
	/*
	 * The ticket is of an earlier life of its queue, or was put already. Nothing was written,
	 * to the ring or to guest memory. Expected after a reset; otherwise a double completion.
	 */
	VQB_E_STALE = -5,

	/* ---- no room: the same call succeeds later ---- */

	/*
	 * No room now. On the driver something is in flight, so a completion will make room; on
	 * the device the caller's arrays are too small for the next chain, which stays in the ring.
	 */
	VQB_E_NOSPC = -2,
	/*
	 * Not now, and no completion will cure it: try again after what you wait for changed. Of a
	 * wait: the time is over. Of a bio that a reset ended: undecided, it may have been done.
	 */
	VQB_E_AGAIN = -10,
	/* A bio was taken back before anything of it was sent. */
	VQB_E_CANCELLED = -14,

	/* ---- the peer's fault ---- */

	/* An address of the peer does not resolve. The chain was not consumed. */
	VQB_E_FAULT = -6,
	/*
	 * One chain breaks the rules of the format. It was consumed and waits to be put with
	 * length 0; the queue goes on.
	 */
	VQB_E_BAD_CHAIN = -7,
	/*
	 * The ring as a whole can no longer be trusted (a head out of range or given twice, an
	 * index that jumps, a used id that was never lent). Sticky until the queue is reset.
	 */
	VQB_E_BROKEN = -8,
	/*
	 * The device has said (DEVICE_NEEDS_RESET), or was told to say, that it cannot go on. What
	 * is in flight may or may not have been done, and won't come back. Sticky until reset.
	 */
	VQB_E_NEEDS_RESET = -13,

	/* ---- the store's fault ---- */

	/* The device or its backend failed the transfer. */
	VQB_E_IO = -11,
	/* The device or its backend does not do that. */
	VQB_E_UNSUPP = -12,
};

/* Answers of publish, arm, turn and their like: a set of bits, to be ORed over calls. */
#define VQB_QUIET 0u
/*
 * The peer asked to be notified of what was just published. An obligation until met: it may be
 * kept and ORed over several calls and queues, and one notification then settles it.
 */
#define VQB_NOTIFY 1u
/* There is something to take or reap already. Do not sleep; go round again. */
#define VQB_MORE 2u

VQB_C_BEGIN

/*
 * The name of a status, such as "VQB_E_NOSPC", or "VQB_E_?" for a number that is none.
 * The string is static. Any thread.
 */
VQB_API const char *vqb_status_name(int32_t status);

VQB_C_END

#endif
