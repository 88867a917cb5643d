/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_parse.h: a virtio-blk request found in a chain, for the device side. (vqb_blk_queue does it
 * by itself; this is for who has a queue of their own.)
 *
 *   if (vqb_blk_parse(chain, &request)) {
 *           vqb_device_put(ring, chain->ticket, 0);
 *           return;
 *   }
 *   filled = serve(&request, &code);
 *   *request.status = code;
 *   vqb_device_put(ring, chain->ticket, vqb_blk_written(request.in_bytes, filled));
 *
 * Nothing keeps state: any thread may call, on chains of its own.
 */
#ifndef VQBLK_BLK_PARSE_H
#define VQBLK_BLK_PARSE_H

#include <vqblk/api.h>
#include <vqblk/blk.h>
#include <vqblk/device.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* A request as the device sees it, its header a private copy. */
struct vqb_blk_request {
	uint32_t type;   /* enum vqb_blk_type, or any other number */
	uint32_t outs;   /* pieces of readable data, after the header */
	uint64_t sector; /* of 512 bytes */
	struct vqb_piece *out;
	uint64_t out_bytes;
	struct vqb_piece *in; /* pieces of writable data, before the status */
	uint32_t ins, zero;
	uint64_t in_bytes;
	uint8_t *status; /* in guest memory: to be written, not read */
};

/*
 * Finds header, data and status of a request in the pieces of a chain, wherever it is cut. The
 * header is fetched from guest memory once, byte by byte where it is not in one aligned stretch.
 * The pieces are trimmed in place, so the array is the caller's; `out` and `in` point into it.
 * Empty pieces do no harm. Nothing is checked but that header and status are there.
 *
 * VQB_OK.
 * VQB_E_BAD_CHAIN: fewer than 16 readable bytes, or no writable one, or a bad chain to begin with.
 *   Nothing was read or changed; put the chain with length 0.
 * Cost: O(pieces of the header).
 */
VQB_API int32_t vqb_blk_parse(const struct vqb_chain *chain, struct vqb_blk_request *out);

/*
 * The used length that tells the truth: bytes written without a gap from the first writable one,
 * when the first `filled` of `in_bytes` bytes of data were written, and the status byte after them.
 */
static inline uint32_t vqb_blk_written(uint64_t in_bytes, uint64_t filled)
{
	uint64_t written = filled < in_bytes ? filled : in_bytes + 1;

	return written > UINT32_MAX ? UINT32_MAX : (uint32_t)written;
}

VQB_C_END

#endif
