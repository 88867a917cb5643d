/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uring.c: a disk image as backend, by way of an io_uring.
 *
 *   free slot --submit--> under way --last step done, poll--> done list, free slot
 *                          ^     |
 *                          +-----+  a step did a part, or was interrupted: another one
 *
 * An io in flight has a slot. A slot has at most one move (a read, write or fallocate) and one
 * flush with the kernel: together only as a linked pair, so that the flush starts when the move has
 * done all. What comes next is decided when neither is out any more. The submission queue holds two
 * entries for each slot, and the completion queue more, so neither is ever full.
 *
 * The kernel reads from and writes to pieces, or a bounce buffer, from the submission of a step
 * until its completion is seen.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include "uring_state.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* ---- slots ---- */

static void finish(struct uring *self, struct slot *slot, int64_t result)
{
	struct bounce *bounce = (struct bounce *)(void *)slot->bounce;

	slot->io->result = result;
	vqb_io_list_add(&self->done, slot->io);
	if (bounce) {
		bounce->next = self->bounces;
		self->bounces = bounce;
	}
	slot->next = self->idle;
	self->idle = slot;
	self->in_flight--;
}

/* Does the kernel refuse to transfer directly from or to this memory? */
static int needs_bounce(const struct vqb_file *file, const struct vqb_io *io)
{
	uintptr_t bits = 0;

	if (!file->direct)
		return 0;
	for (uint32_t i = 0; i < io->pieces; i++) {
		if (!io->piece[i].len)
			continue;
		bits |= (uintptr_t)io->piece[i].base & (file->memory_alignment - 1);
		bits |= io->piece[i].len & (file->alignment - 1);
	}
	return bits != 0;
}

/* A slot for the io, with a bounce buffer if it needs one, or NULL where there is no room. */
static struct slot *begin(struct uring *self, struct vqb_io *io)
{
	struct slot *slot = self->idle;
	int bounces = needs_bounce(self->file, io);

	if (!slot || (bounces && !self->bounces))
		return NULL;
	self->idle = slot->next;
	memset(slot, 0, sizeof(*slot));
	slot->io = io;
	slot->lacks = (uint8_t)atomic_load(&self->file->lacks);
	if (bounces) {
		slot->bounce = (uint8_t *)self->bounces;
		self->bounces = self->bounces->next;
		self->counters.bounced++;
	}
	self->in_flight++;
	self->counters.ios++;
	return slot;
}

/* Copies between a bounce buffer and the pieces from `p` on. */
static void copy_bounce(const struct vqb_io *io, struct image_place p, uint8_t *bounce,
			size_t bytes)
{
	while (bytes) {
		uint8_t *base = (uint8_t *)io->piece[p.at].base + p.skip;
		size_t n = io->piece[p.at].len - p.skip;

		if (n > bytes)
			n = bytes;
		if (n && io->op == VQB_BLK_IN)
			memcpy(base, bounce, n);
		else if (n)
			memcpy(bounce, base, n);
		bounce += n;
		bytes -= n;
		vqb__image_move_on(io, &p, n);
	}
}

/* ---- steps ---- */

static struct io_uring_sqe *add_step(struct uring *self, struct slot *slot)
{
	slot->out++;
	self->counters.steps++;
	return io_uring_get_sqe(&self->ring);
}

/* After it was prepared, which clears it. */
static void label_step(const struct uring *self, const struct slot *slot, enum part part,
		       struct io_uring_sqe *sqe)
{
	sqe->flags |= self->sqe_flags;
	sqe->user_data = (uint64_t)(slot - self->slot) * 4 + part;
}

/* The registered buffer that has all of this memory, or -1. */
static int region_of(const struct uring *self, const void *base, size_t len)
{
	for (uint32_t i = 0; i < self->regions; i++) {
		const struct region *region = &self->region[i];
		size_t skip = (uintptr_t)base - region->base;

		if (skip < region->len && len <= region->len - skip)
			return (int)i;
	}
	return -1;
}

static void prepare_one(const struct uring *self, const struct slot *slot, struct io_uring_sqe *sqe,
			void *base, size_t len)
{
	uint64_t offset = slot->io->offset + slot->at.done;
	int region = region_of(self, base, len);

	if (slot->io->op == VQB_BLK_IN && region >= 0)
		io_uring_prep_read_fixed(sqe, self->fd, base, (unsigned)len, offset, region);
	else if (region >= 0)
		io_uring_prep_write_fixed(sqe, self->fd, base, (unsigned)len, offset, region);
	else if (slot->io->op == VQB_BLK_IN)
		io_uring_prep_read(sqe, self->fd, base, (unsigned)len, offset);
	else
		io_uring_prep_write(sqe, self->fd, base, (unsigned)len, offset);
}

static void prepare_vector(const struct uring *self, const struct slot *slot,
			   struct io_uring_sqe *sqe, const struct iovec *vec, uint32_t n)
{
	uint64_t offset = slot->io->offset + slot->at.done;

	if (slot->io->op == VQB_BLK_IN)
		io_uring_prep_readv(sqe, self->fd, vec, n, offset);
	else
		io_uring_prep_writev(sqe, self->fd, vec, n, offset);
}

/* Of a read or write. True: if it is done in full, so is the io. */
static int prepare_transfer(const struct uring *self, const struct slot *slot,
			    struct io_uring_sqe *sqe)
{
	const struct vqb_io *io = slot->io;
	const struct image_place *at = &slot->at;
	const struct vqb_piece *piece = io->piece + at->at;
	uint64_t rest = io->bytes - at->done;
	uint32_t n = image_pieces(io, at);
	uint8_t *base = slot->bounce;
	size_t len = self->bounce_bytes;

	if (!base && !at->skip && n > 1) {
		prepare_vector(self, slot, sqe, (const struct iovec *)piece, n);
		return n == io->pieces - at->at;
	}
	if (!base) {
		base = (uint8_t *)piece->base + at->skip;
		len = piece->len - at->skip < PIECE_MAX ? piece->len - at->skip : PIECE_MAX;
	} else if (len > rest) {
		len = (size_t)rest;
	}
	if (slot->bounce && io->op == VQB_BLK_OUT)
		copy_bounce(io, *at, base, len);
	prepare_one(self, slot, sqe, base, len);
	return len == rest;
}

/* The same of a range. */
static int prepare_range(const struct uring *self, struct slot *slot, struct io_uring_sqe *sqe)
{
	const struct vqb_io *io = slot->io;
	uint64_t rest = io->bytes - slot->at.done;
	const struct iovec *zeroes;
	uint32_t n;

	slot->mode = vqb__image_range_mode(io, slot->lacks);
	if (slot->mode) {
		io_uring_prep_fallocate(sqe, self->fd, slot->mode, (off_t)io->offset,
					(off_t)io->bytes);
		return 1;
	}
	zeroes = vqb__image_zeroes(rest, &n);
	if (n)
		prepare_vector(self, slot, sqe, zeroes, n);
	else
		prepare_one(self, slot, sqe, zeroes->iov_base, (size_t)rest);
	return n ? n * zeroes->iov_len == rest : 1;
}

/* True: if it is done in full, so is the io. A flush may be linked to it then. */
static int add_move(struct uring *self, struct slot *slot, int flush)
{
	struct io_uring_sqe *sqe = add_step(self, slot);
	int last;

	if (slot->io->op == VQB_BLK_IN || slot->io->op == VQB_BLK_OUT)
		last = prepare_transfer(self, slot, sqe);
	else
		last = prepare_range(self, slot, sqe);
	label_step(self, slot, MOVE, sqe);
	if (last && flush)
		sqe->flags |= IOSQE_IO_LINK;
	return last;
}

static void add_flush(struct uring *self, struct slot *slot)
{
	struct io_uring_sqe *sqe = add_step(self, slot);

	io_uring_prep_fsync(sqe, self->fd, IORING_FSYNC_DATASYNC);
	label_step(self, slot, SYNC, sqe);
}

/* No step is out: what comes next? */
static void go_on(struct uring *self, struct slot *slot)
{
	const struct vqb_io *io = slot->io;
	int flush = image_needs_flush(io) && !slot->flushed;
	int rest = slot->at.done < io->bytes;

	slot->unlinked = 0;
	if (rest && io->op == VQB_BLK_DISCARD && !vqb__image_range_mode(io, slot->lacks)) {
		finish(self, slot, VQB_E_UNSUPP);
		return;
	}
	if (rest)
		flush = add_move(self, slot, flush) && flush;
	if (flush)
		add_flush(self, slot);
	if (!slot->out)
		finish(self, slot, (int64_t)slot->at.done);
}

/* ---- the end of a step ---- */

static int is_passing(int32_t result)
{
	return result == -EINTR || result == -EAGAIN || result == -ECANCELED;
}

/* To be tried again, unless it was often enough. */
static int32_t try_again(struct slot *slot)
{
	return ++slot->tries < TRIES ? VQB_OK : VQB_E_IO;
}

static int32_t end_fallocate(struct uring *self, struct slot *slot, int32_t result)
{
	unsigned lack;

	if (result == 0) {
		slot->at.done = slot->io->bytes;
		return VQB_OK;
	}
	lack = vqb__image_range_refused(self->file, slot->mode, -result);
	slot->lacks |= (uint8_t)lack;
	return lack ? VQB_OK : vqb__image_status(-result);
}

/* VQB_OK: go on, or else what the io comes to. */
static int32_t end_move(struct uring *self, struct slot *slot)
{
	int32_t result = slot->result[MOVE - 1];
	uint32_t n;

	if (is_passing(result))
		return try_again(slot);
	if (slot->mode)
		return end_fallocate(self, slot, result);
	if (result < 0)
		return vqb__image_status(-result);
	/*
	 * A direct transfer goes on from a whole unit; the file ends where there is not even one.
	 */
	n = (uint32_t)result & ~(self->file->alignment - 1);
	if (!n)
		return VQB_E_IO;
	if (slot->bounce && slot->io->op == VQB_BLK_IN)
		copy_bounce(slot->io, slot->at, slot->bounce, n);
	vqb__image_move_on(slot->io, &slot->at, n);
	slot->tries = 0;
	return VQB_OK;
}

static int32_t end_flush(struct uring *self, struct slot *slot)
{
	int32_t result = slot->result[SYNC - 1], status;

	/* The move before it did a part only, or it ran on its own: it is to come once more. */
	if (is_passing(result))
		return try_again(slot);
	status = vqb__image_flushed(self->file, -result);
	slot->flushed = !slot->unlinked && slot->at.done == slot->io->bytes;
	return status;
}

static void end_step(struct uring *self, uint64_t label, int32_t result)
{
	struct slot *slot = &self->slot[label / 4];
	int32_t status = VQB_OK, flushed;

	slot->result[label % 4 - 1] = result;
	slot->ended |= (uint8_t)(label % 4);
	if (--slot->out)
		return;
	if (slot->ended & MOVE)
		status = end_move(self, slot);
	if (slot->ended & SYNC) {
		flushed = end_flush(self, slot);
		status = status ? status : flushed;
	}
	slot->ended = 0;
	if (status) {
		finish(self, slot, status);
		return;
	}
	go_on(self, slot);
	if (slot->out)
		self->counters.resumed++;
}

/* ---- the kernel ---- */

/* Only a part was submitted, which may have torn a pair, so that its flush does not wait. */
static void suspect_pairs(struct uring *self)
{
	for (uint32_t i = 0; i < self->entries; i++) {
		if (self->slot[i].out == 2)
			self->slot[i].unlinked = 1;
	}
}

/* The kernel takes no more, for good: the steps that it has not seen end with an error. */
static void give_up(struct uring *self)
{
	struct io_uring_sq *sq = &self->ring.sq;
	unsigned head = *sq->khead, n = io_uring_sq_ready(&self->ring);

	*sq->ktail = head;
	sq->sqe_head = sq->sqe_tail = head;
	for (unsigned i = 0; i < n; i++)
		end_step(self, sq->sqes[(head + i) & sq->ring_mask].user_data, -EIO);
}

/* Submits all steps there are, by one system call, unless the kernel stops on the way. */
static void start(struct uring *self)
{
	unsigned ready;
	int n;

	while ((ready = io_uring_sq_ready(&self->ring)) != 0) {
		n = io_uring_submit(&self->ring);
		self->counters.system_calls++;
		if (n >= (int)ready)
			return;
		if (n > 0) {
			suspect_pairs(self);
		} else if (n == 0 || n == -EAGAIN || n == -EBUSY) {
			/*
			 * Short of memory, say. The next poll tries again, so there has to be one.
			 */
			if (self->notify.fd >= 0)
				vqb_notify_signal(&self->notify);
			return;
		} else if (n != -EINTR) {
			give_up(self);
			return;
		}
	}
}

static void reap(struct uring *self)
{
	struct io_uring_cq *cq = &self->ring.cq;
	unsigned n = io_uring_cq_ready(&self->ring), head = *cq->khead;

	for (unsigned i = 0; i < n; i++) {
		const struct io_uring_cqe *cqe = &cq->cqes[(head + i) & cq->ring_mask];

		end_step(self, cqe->user_data, cqe->res);
	}
	io_uring_cq_advance(&self->ring, n);
}

static void nap(void)
{
	const struct timespec millisecond = { 0, 1000000 };

	nanosleep(&millisecond, NULL);
}

/* ---- backend ---- */

/* On a block device: at once, by an ioctl. */
static int32_t submit_ioctl(struct uring *self, struct vqb_io *io)
{
	int kept = errno;

	io->result = vqb__image_range_ioctl(self->file, io);
	errno = kept;
	self->counters.ios++;
	vqb_io_list_add(&self->done, io);
	return VQB_OK;
}

static int32_t uring_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct uring *self = uring_of(backend);
	int32_t status = vqb__image_admits(&backend->caps, io);
	struct slot *slot;

	if (status)
		return status;
	if (image_range_is_ioctl(self->file, io))
		return submit_ioctl(self, io);
	slot = begin(self, io);
	if (!slot) {
		self->counters.full++;
		return VQB_E_NOSPC;
	}
	go_on(self, slot);
	if (!self->plugged)
		start(self);
	return VQB_OK;
}

static void uring_plug(struct vqb_backend *backend)
{
	uring_of(backend)->plugged = 1;
}

static void uring_unplug(struct vqb_backend *backend)
{
	struct uring *self = uring_of(backend);

	self->plugged = 0;
	start(self);
}

static struct vqb_io *uring_poll(struct vqb_backend *backend)
{
	struct uring *self = uring_of(backend);

	reap(self);
	if (!self->plugged)
		start(self);
	return vqb_io_list_take(&self->done);
}

static void uring_drain(struct vqb_backend *backend)
{
	struct uring *self = uring_of(backend);
	struct io_uring_cqe *cqe;

	for (reap(self); self->in_flight; reap(self)) {
		start(self);
		if (!self->in_flight)
			return;
		if (io_uring_cq_ready(&self->ring))
			continue;
		/* What the kernel doesn't have, it can't finish. */
		if (io_uring_sq_ready(&self->ring)) {
			nap();
			continue;
		}
		self->counters.system_calls++;
		if (io_uring_wait_cqe(&self->ring, &cqe))
			nap();
	}
}

const struct vqb_backend_ops vqb__uring_ops = {
	.struct_size = sizeof(vqb__uring_ops),
	.submit = uring_submit,
	.plug = uring_plug,
	.unplug = uring_unplug,
	.poll = uring_poll,
	.drain = uring_drain,
};
