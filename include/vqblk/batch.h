/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h: completions of several queues, ended together: each queue is published once, however
 * many of its requests are done, and so is notified at most once. For the device side, the driver
 * side, or both.
 *
 *   device: for each request that is done, of whatever queue
 *                   status = vqb_batch_put(b, dev, ticket, written);
 *           queue = vqb_batch_publish(b, &n);
 *           for (i = 0; i < n; i++)
 *                   if (queue[i].answer & VQB_NOTIFY)
 *                           notify_driver_of(queue[i].dev);
 *
 *   driver: for each queue
 *                   status = vqb_batch_reap(b, drv);
 *           done = vqb_batch_done(b, &n);
 *           for (i = 0; i < n; i++)
 *                   finish(done[i].drv, &done[i].done);        it may add new requests
 *           queue = vqb_batch_turn(b, &n);
 *           for (i = 0; i < n; i++)
 *                   VQB_NOTIFY: notify the device; VQB_MORE: go round again before sleeping
 *
 * Nothing is held back: a put reaches the queue at once, and its answer the caller. What the batch
 * remembers is who has to be published. So a queue may be published, reset or used in any other way
 * in between; but it must live until the batch is ended.
 *
 * It is for those who serve their rings themselves: a vqb_blk_queue puts and publishes, and a
 * vqb_blk_driver reaps, on its own ring without it, and nobody else may there.
 *
 * One thread at a time, the one of all queues in it.
 */
#ifndef VQBLK_BATCH_H
#define VQBLK_BATCH_H

#include <vqblk/api.h>
#include <vqblk/device.h>
#include <vqblk/driver.h>
#include <vqblk/status.h>

VQB_C_BEGIN

struct vqb_batch; /* opaque */

struct vqb_batch_config {
	uint32_t struct_size; /* sizeof(struct vqb_batch_config) */
	uint32_t queues;      /* most in a batch: from 1 */
	uint32_t completions; /* that reap may collect; 0: only the device side is used */
	uint32_t zero;
};

/* Memory of a batch, for static allocation. */
#define VQB_BATCH_BYTES(queues, completions)                                                       \
	VQB_ROUND_UP(64u + 24u * (size_t)(queues) + 24u * (size_t)(completions))

/* Bytes that vqb_batch_init needs: at most VQB_BATCH_BYTES. 0: the configuration is invalid. */
VQB_API size_t vqb_batch_size(const struct vqb_batch_config *config);

/*
 * Makes an empty batch in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long
 * as the batch; nothing to destroy. The configuration is not kept.
 *
 * VQB_OK with the batch in *out. VQB_E_INVALID: a size, an alignment, no queues, more than 2^20 of
 * either. VQB_E_TOOBIG: `bytes` is less than vqb_batch_size.
 */
VQB_API int32_t vqb_batch_init(void *mem, size_t bytes, const struct vqb_batch_config *config,
			       struct vqb_batch **out);

/*
 * Puts a chain back into its queue (vqb_device_put), to be published when the batch is ended.
 *
 * VQB_OK. VQB_E_NOSPC: the queue is not in the batch, and there is no room for it; nothing was put:
 * end the batch first. VQB_E_STALE, VQB_E_INVALID: as vqb_device_put; the queue is not in the batch
 * because of that.
 * Cost: that of a put, and a compare for each queue of the batch; one where the last put was of the
 * same.
 */
VQB_API int32_t vqb_batch_put(struct vqb_batch *b, struct vqb_device *dev, struct vqb_ticket ticket,
			      uint32_t written);

/*
 * Collects what there is to be reaped from a queue (vqb_driver_reap), and notes that it is to be
 * published, even if that was nothing.
 *
 * VQB_OK: all that there was. VQB_E_NOSPC: the queue is not in the batch, and there is no room for
 * it, or no room for more completions; those that were collected are good. End the batch first, and
 * then reap again.
 */
VQB_API int32_t vqb_batch_reap(struct vqb_batch *b, struct vqb_driver *drv);

struct vqb_batch_entry {
	struct vqb_driver *drv;
	struct vqb_done done;
};

/* What was reaped since the batch was last ended, in that order: *n of them, good until reap. */
VQB_API const struct vqb_batch_entry *vqb_batch_done(const struct vqb_batch *b, uint32_t *n);

/* What came of a queue: of these two, the other one is NULL. */
struct vqb_batch_queue {
	struct vqb_device *dev;
	struct vqb_driver *drv;
	uint32_t answer;      /* VQB_NOTIFY, VQB_MORE or VQB_QUIET, as publish and turn answer */
	uint32_t completions; /* put or reaped */
};

/*
 * End the batch: each of its queues is published, or turned, once, in the order in which they came
 * in. They answer the queues, *n of them, good until the next call for this batch, which is empty.
 * Cost: that of publish or turn for each queue.
 */
VQB_API const struct vqb_batch_queue *vqb_batch_publish(struct vqb_batch *b, uint32_t *n);
VQB_API const struct vqb_batch_queue *vqb_batch_turn(struct vqb_batch *b, uint32_t *n);

VQB_C_END

#endif
