/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_admit.c: one chain that was taken: what it asks for, and whether it may.
 *
 * Whatever can be known to be wrong is found here, before the backend is called.
 */
#include "blk_queue.h"

/* ---- answers ---- */

VQB_COLD void vqb__blk_log_status(struct vqb_blk_queue *queue, void *status)
{
	const struct vqb_piece piece = { .base = status, .len = 1 };

	vqb_device_log(queue->ring, &piece, 1, 1);
}

/* Writes `bytes` bytes, which are all of the writable data, wherever it is cut. */
static void fill(struct vqb_blk_queue *queue, const struct vqb_blk_request *from, const void *data)
{
	const uint8_t *at = data;
	uint32_t i;

	for (i = 0; i < from->ins; i++) {
		if (!from->in[i].len)
			continue;
		memcpy(from->in[i].base, at, from->in[i].len);
		at += from->in[i].len;
	}
	if (VQB_UNLIKELY(queue->logs))
		vqb_device_log(queue->ring, from->in, from->ins, from->in_bytes);
}

static uint8_t give_id(struct vqb_blk_queue *queue, const struct vqb_blk_request *from)
{
	if (from->out_bytes || from->in_bytes != VQB_BLK_ID_BYTES)
		return VQB_BLK_S_IOERR;
	fill(queue, from, queue->device->id);
	return VQB_BLK_S_OK;
}

/* Values beyond the last that has a meaning must not be sent; 0 says "not known". */
static struct vqb_le16 known(uint16_t value, uint16_t last)
{
	return vqb_to_le16(value <= last ? value : 0);
}

static uint8_t give_lifetime(struct vqb_blk_queue *queue, const struct vqb_blk_request *from)
{
	struct vqb_lifetime life = { 0, 0, 0 };
	struct vqb_le16 wire[3];
	int32_t status;

	_Static_assert(sizeof(wire) == VQB_BLK_LIFETIME_BYTES, "lifetime");
	if (!blk_accepted(queue, VQB_BLK_F_LIFETIME))
		return VQB_BLK_S_UNSUPP;
	if (from->out_bytes || from->in_bytes != sizeof(wire))
		return VQB_BLK_S_IOERR;
	status = queue->backend->ops->lifetime(queue->backend, &life);
	if (status)
		return status == VQB_E_UNSUPP ? VQB_BLK_S_UNSUPP : VQB_BLK_S_IOERR;
	wire[0] = known(life.pre_eol_info, 3);
	wire[1] = known(life.life_a, 11);
	wire[2] = known(life.life_b, 11);
	fill(queue, from, wire);
	return VQB_BLK_S_OK;
}

/* ---- what goes to the backend ---- */

VQB_INLINE struct vqb_io *begin(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
				const struct vqb_blk_request *from)
{
	uint32_t at = blk_begin(queue, chain);

	return &blk_begin_request(queue, chain, from, at, at + blk_own_pieces(chain))->io;
}

VQB_INLINE void send_transfer(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
			      const struct vqb_blk_request *from)
{
	struct vqb_io *io = begin(queue, chain, from);

	io->offset = from->sector << VQB_SECTOR_SHIFT;
	if (from->type == VQB_BLK_IN) {
		io->piece = from->in;
		io->pieces = from->ins;
		io->bytes = from->in_bytes;
	} else {
		io->flags = blk_writes_through(queue) ? VQB_IO_FUA : 0;
		io->piece = from->out;
		io->pieces = from->outs;
		io->bytes = from->out_bytes;
	}
	vqb__blk_submit(queue, io);
}

/* Everything that can be wrong with a read or write and is known beforehand. */
VQB_INLINE int transfer_is_good(struct vqb_blk_queue *queue, const struct vqb_blk_request *from)
{
	const struct vqb_backend_caps *caps = &queue->backend->caps;
	uint64_t bytes = from->in_bytes;
	uint32_t pieces = from->ins;

	if (from->type == VQB_BLK_OUT) {
		if (blk_device_offers(queue->device, VQB_BLK_F_RO) || from->in_bytes)
			return 0;
		bytes = from->out_bytes;
		pieces = from->outs;
	} else if (from->out_bytes) {
		return 0;
	}
	if (bytes > caps->max_transfer || pieces > caps->max_pieces)
		return 0;
	return !vqb_blk_check(blk_capacity(queue), queue->device->block_size, from->sector, bytes);
}

static void admit_transfer(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
			   const struct vqb_blk_request *from)
{
	uint8_t code = VQB_BLK_S_IOERR;

	if (VQB_LIKELY(transfer_is_good(queue, from))) {
		if (VQB_LIKELY(from->in_bytes + from->out_bytes)) {
			send_transfer(queue, chain, from);
			return;
		}
		code = VQB_BLK_S_OK; /* of nothing */
	}
	blk_answer(queue, chain->ticket, from->status, code, from->in_bytes, 0);
}

/* What is neither a transfer nor has ranges. */
static VQB_APART void admit_other(struct vqb_blk_queue *queue, const struct vqb_chain *chain,
				  const struct vqb_blk_request *from)
{
	uint8_t code = VQB_BLK_S_UNSUPP;

	if (from->type == VQB_BLK_FLUSH && queue->backend->caps.can & VQB_CAN_FLUSH) {
		vqb__blk_submit(queue, begin(queue, chain, from));
		return;
	}
	if (from->type == VQB_BLK_GET_ID)
		code = give_id(queue, from);
	else if (from->type == VQB_BLK_GET_LIFETIME)
		code = give_lifetime(queue, from);
	blk_answer(queue, chain->ticket, from->status, code, from->in_bytes,
		   code == VQB_BLK_S_OK ? from->in_bytes : 0);
}

int vqb__blk_admit(struct vqb_blk_queue *queue, uint32_t i)
{
	const struct vqb_chain *chain = &queue->chain[i];
	struct vqb_blk_request from;

	if (VQB_UNLIKELY(vqb_blk_parse(chain, &from))) {
		queue->counters.malformed++;
		vqb_device_put(queue->ring, chain->ticket, 0);
		return 1;
	}
	switch (from.type) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		admit_transfer(queue, chain, &from);
		return 1;
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		return vqb__blk_admit_ranges(queue, i, &from);
	default:
		admit_other(queue, chain, &from);
		return 1;
	}
}
