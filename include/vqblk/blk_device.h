/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk_device.h: the device (host) side of virtio-blk.
 *
 * A vqb_blk_device is the disk as drivers see it: capacity, blocks, features on offer, identity.
 * Any number of queues in any threads share it. A vqb_blk_queue serves one virtqueue on one thread:
 * it takes requests, checks them, gives them to its backend, and puts them with their status and
 * exact length when they are done. Both live in memory that the caller gives, and allocate nothing.
 *
 *   on a notification from the driver, or when the backend has completions:
 *   do {
 *           answer = vqb_blk_queue_run(queue, 256);
 *           if (answer & VQB_NOTIFY)
 *                   notify_driver();
 *   } while (answer & VQB_MORE);
 *
 * What a request gets:
 *
 *   IN, OUT   IOERR if it is not whole blocks, not at a block, past capacity, on a read-only disk
 *             (OUT), has data of the other direction as well, or exceeds the backend's limits;
 *             all of that is known before the backend is called. No data within capacity: OK
 *             without a backend call.
 *   FLUSH     data and sector are ignored. Served whether the feature was negotiated or not.
 *   DISCARD, WRITE_ZEROES, SECURE_ERASE
 *             the ranges are copied out of guest memory, then all of them are checked, and only
 *             then carried out, one after the other. UNSUPP: not negotiated, or a range has a flag
 *             that its type doesn't know (UNMAP is known to WRITE_ZEROES alone). IOERR: no range at
 *             all, too many, or data that is no whole number of them; a range that is longer than
 *             offered, past capacity, not whole blocks or not at a block; a read-only disk;
 *             writable data; or one range failed, then those behind it were not tried. A range of
 *             no sectors is fine, and nothing is done. The sector in the header is ignored.
 *   GET_ID    the serial, filled up with zeroes to 20 bytes; IOERR where the data is not 20 bytes.
 *   GET_LIFETIME
 *             what the backend says, with 0 (unknown) for a value that the specification reserves;
 *             UNSUPP where it was not negotiated, IOERR where the data is not 6 bytes.
 *   others    UNSUPP, legacy types and the legacy barrier bit among them.
 *   no header or no place for the status: the chain comes back with length 0, nothing written.
 *
 * The cache is write-back where FLUSH was accepted, and as the configuration's writeback says where
 * CONFIG_WCE was. Where it is write-through, or where FLUSH was offered and neither was accepted,
 * each write, write zeroes and secure erase is durable before it completes. A switch while one is
 * under way leaves that one either way.
 *
 * With a coalescer, reads or writes that are neighbours go to the backend as one; what was
 * collected goes out before a request of another kind, and at the end of every call. While there
 * are none, up to 15 of 16 requests are spared the search; one that follows on the one before, or
 * precedes it, ends that.
 *
 * Where the ring's memory map has a log of dirty pages, it is told of data and status.
 *
 * A chain that names memory which isn't mapped, or has more pieces than the queue has room for in
 * all, comes back with length 0 as well. A ring that is BROKEN stays so until it is reset: run
 * then answers nothing but what is owed, and vqb_device_state tells why.
 */
#ifndef VQBLK_BLK_DEVICE_H
#define VQBLK_BLK_DEVICE_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/blk.h>
#include <vqblk/coalesce.h>
#include <vqblk/device.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* ---- the disk ---- */

struct vqb_blk_device; /* opaque */

struct vqb_blk_device_config {
	uint32_t struct_size; /* sizeof(struct vqb_blk_device_config) */
	uint32_t zero;
	/*
	 * Wanted features, of the type and of the ring; what can't be honoured is left out. RO
	 * makes the disk read-only. FLUSH belongs in here unless the backend can't. CONFIG_WCE only
	 * where what a driver writes to the configuration space reaches
	 * vqb_blk_device_write_config.
	 */
	uint64_t features;
	const struct vqb_blk_limits *limits; /* copied; 0 in a field: its value if absent */
	const char *serial;                  /* up to 20 bytes count; copied; NULL: empty */
	/*
	 * What the backends of all queues can do; read now, not kept. Features that they lack are
	 * left out, and a disk that they can't write is read-only. Limits of DISCARD, WRITE_ZEROES
	 * and SECURE_ERASE that are 0 follow from it: 32 ranges, each as long as one io may be;
	 * zeroes_may_unmap always does. NULL: not known; none of those three, and no LIFETIME.
	 */
	const struct vqb_backend_caps *backend;
};

/* Memory of a blk device. */
#define VQB_BLK_DEVICE_BYTES 320u

VQB_API size_t vqb_blk_device_size(void);

/*
 * Makes a blk device in `mem`, which must be aligned to 64, hold `bytes` bytes and outlive its
 * queues; there is nothing to destroy. Only features whose limits say something are offered:
 * SIZE_MAX, SEG_MAX and TOPOLOGY where a number is given, MQ where there is more than one queue.
 * BLK_SIZE is offered, wanted or not, where the block is not 512 bytes.
 *
 * Calls that change it (accept, reset, write_config, resize) are made by one thread at a time. The
 * others, and all queues, may run meanwhile.
 *
 * VQB_OK with the device in *out.
 * VQB_E_INVALID: a size, an alignment, or limits that vqb_blk_limits_write refuses.
 * VQB_E_TOOBIG: `bytes` is less than vqb_blk_device_size.
 */
VQB_API int32_t vqb_blk_device_init(void *mem, size_t bytes,
				    const struct vqb_blk_device_config *config,
				    struct vqb_blk_device **out);

/* What is offered to a driver. */
VQB_API uint64_t vqb_blk_device_features(const struct vqb_blk_device *dev);

/*
 * A driver has accepted this (it has set FEATURES_OK): tell each queue as well. With CONFIG_WCE the
 * cache starts as write-back, or as write-through where FLUSH is not among the `accepted`.
 *
 * VQB_OK. VQB_E_INVALID: vqb_blk_features_check refuses it against the offer; nothing has changed.
 */
VQB_API int32_t vqb_blk_device_accept(struct vqb_blk_device *dev, uint64_t accepted);

/* The driver has reset the device: nothing is accepted. (Each queue has its own steps for it.) */
VQB_API void vqb_blk_device_reset(struct vqb_blk_device *dev);

/*
 * A driver reads `bytes` bytes at `offset` of the configuration space. Beyond its end, and in
 * fields that are not on offer, there are zeroes. At any time, before negotiation too. What one
 * call reads is of one moment; for more than one there is the generation.
 */
VQB_API void vqb_blk_device_read_config(const struct vqb_blk_device *dev, uint32_t offset,
					void *out, size_t bytes);

/*
 * A driver writes `bytes` bytes at `offset` of the configuration space. Only writeback can be
 * written: one byte at 32, 0 or 1, once CONFIG_WCE was accepted. Requests that a driver makes
 * available after this returns are served in the new mode; a switch to write-through makes nothing
 * durable that was written before.
 *
 * VQB_OK. VQB_E_INVALID: anything else; nothing has changed.
 */
VQB_API int32_t vqb_blk_device_write_config(struct vqb_blk_device *dev, uint32_t offset,
					    const void *data, size_t bytes);

/* Sectors. */
VQB_API uint64_t vqb_blk_device_capacity(const struct vqb_blk_device *dev);

/*
 * Another capacity, in sectors, while queues run. Afterwards raise a configuration change
 * notification, if the generation is another one.
 *
 * A queue never goes past the `caps.bytes` of its backend: where the capacity is more, requests
 * beyond get IOERR, and nothing else says so. To grow, raise caps.bytes of all backends first (any
 * thread; queues look at it again after this call). To shrink, let
 * the store shrink only after each queue has been quiet (vqb_blk_queue_quiesce): requests that were
 * checked before are still carried out.
 *
 * VQB_OK. VQB_E_INVALID: more than 2^64 bytes; nothing has changed.
 */
VQB_API int32_t vqb_blk_device_resize(struct vqb_blk_device *dev, uint64_t capacity);

/*
 * Another number whenever the device has changed the configuration space by itself: for the
 * transport's field of that name, read before and after a driver's reading in several steps.
 */
VQB_API uint32_t vqb_blk_device_generation(const struct vqb_blk_device *dev);

/* ---- one queue ---- */

struct vqb_blk_queue; /* opaque */

struct vqb_blk_queue_config {
	uint32_t struct_size; /* sizeof(struct vqb_blk_queue_config) */
	uint32_t requests;    /* most at a time: 1 to 32768; the ring's size is right */
	/*
	 * Room for their pieces, from 3; from the device's segments + 2 where it offers SEG_MAX,
	 * and from 3 and VQB_BLK_RANGE_PIECES of the ranges that it offers. 4 for each request
	 * serve well, and a request takes more where buffers cross extents.
	 */
	uint32_t pieces;
	uint32_t zero;
	uint64_t features; /* accepted by the driver; may be told later */
	const struct vqb_blk_device *device;
	struct vqb_device *ring;     /* take, reject and put on it are the queue's from now on */
	struct vqb_backend *backend; /* this queue's alone */
	/* This queue's alone, with limits that the backend keeps to. NULL: nothing is joined. */
	struct vqb_coalescer *coalescer;
};

/* Room for so many ranges of one request, in pieces. */
#define VQB_BLK_RANGE_PIECES(ranges)                                                               \
	((VQB_BLK_RANGE_BYTES * (uint64_t)(ranges) + sizeof(struct vqb_piece) - 1) /               \
	 sizeof(struct vqb_piece))

/* Memory of a queue, for static allocation. */
#define VQB_BLK_QUEUE_BYTES(requests, pieces)                                                      \
	VQB_ROUND_UP(576u + 144u * (size_t)(requests) + 16u * (size_t)(pieces))

/*
 * Bytes that vqb_blk_queue_init needs: at most VQB_BLK_QUEUE_BYTES.
 * 0: the configuration is invalid. Any thread.
 */
VQB_API size_t vqb_blk_queue_size(const struct vqb_blk_queue_config *config);

/*
 * Makes a queue in `mem`, which must be aligned to 64, hold `bytes` bytes and live as long as the
 * queue; there is nothing to destroy, but quiesce it before ring or backend go away.
 *
 * VQB_OK with the queue in *out.
 * VQB_E_INVALID: a size or alignment; fewer pieces than the longest request that is offered
 *   takes; or a backend that is incomplete, is smaller than the capacity, can't write though RO is
 *   not offered, can't do another thing that is offered, wants an alignment above the block size,
 *   or ranges that are offered shorter than a block; or features that vqb_blk_features_check
 *   refuses; or no device, ring or backend. What vqb_blk_queue_size answers 0 to is a number of
 *   the configuration, and vqb_backend_check tells whether a backend is complete.
 * VQB_E_TOOBIG: `bytes` is less than vqb_blk_queue_size. Cost: O(requests).
 */
VQB_API int32_t vqb_blk_queue_init(void *mem, size_t bytes,
				   const struct vqb_blk_queue_config *config,
				   struct vqb_blk_queue **out);

/*
 * What the driver accepted, once that is known, and after every reset: before the first run.
 * VQB_OK. VQB_E_INVALID: vqb_blk_features_check refuses it; nothing has changed.
 */
VQB_API int32_t vqb_blk_queue_accept(struct vqb_blk_queue *queue, uint64_t features);

/*
 * Serves the ring: puts what the backend has finished, submits what had to wait, takes up to
 * `budget` new requests, and publishes. The driver's notifications are asked for at the end, and
 * not while it goes on.
 *
 * A set of answers: VQB_NOTIFY: the driver has to be notified. VQB_MORE: call again rather than
 * sleep: the budget is used up (notifications are not asked for then), or there are new requests.
 * Without VQB_MORE, sleep until the driver notifies or, while vqb_blk_queue_in_flight is not 0,
 * the backend has completions; where the backend is full or room for pieces has run out, only
 * completions help, and the driver isn't asked to notify. An undue call does no harm.
 */
VQB_API uint32_t vqb_blk_queue_run(struct vqb_blk_queue *queue, uint32_t budget);

/*
 * The same for a thread that polls: never asks for notifications. VQB_MORE: the budget is used up.
 */
VQB_API uint32_t vqb_blk_queue_poll(struct vqb_blk_queue *queue, uint32_t budget);

/*
 * Towards a standstill, for stop and reset: takes nothing new, brings to an end what was taken,
 * and puts it; publish on the ring afterwards.
 *
 * A reset takes these steps:
 *   vqb_device_reset(ring, NULL)     from here on nothing of the old life is put: what waited is
 *                                    dropped, what the backend finishes is recognised as late
 *   vqb_blk_queue_quiesce            until VQB_OK: no late read lands in guest memory
 *   (acknowledge the reset; guest memory may be unmapped, the backend let go of)
 *   vqb_device_reset(ring, &again)   when the driver has set the queue up again
 *   vqb_blk_queue_accept             with what it has accepted now
 *
 * VQB_OK: nothing is out. VQB_E_BUSY: the backend holds pieces of guest memory, or requests wait
 * for it; ask again, after vqb_backend_drain if there is nothing else to do.
 */
VQB_API int32_t vqb_blk_queue_quiesce(struct vqb_blk_queue *queue);

/* Requests taken and not put: in the backend, or waiting for it. */
VQB_API uint32_t vqb_blk_queue_in_flight(const struct vqb_blk_queue *queue);

/* What has happened since init, or since the counters were last cleared. */
struct vqb_blk_queue_counters {
	uint64_t requests;    /* taken, malformed ones included */
	uint64_t malformed;   /* of those, put with length 0 */
	uint64_t failed;      /* of those, completed with IOERR or UNSUPP */
	uint64_t submissions; /* ios that the backend accepted, of all kinds */
	uint64_t full;        /* submits that it answered VQB_E_NOSPC */
	uint64_t partial;     /* transfers that it cut short */
	uint64_t late;        /* completions of requests that a reset had ended */
	uint64_t read_bytes;  /* by IN requests that were OK */
	uint64_t write_bytes; /* by OUT requests that were OK */
	uint64_t read_submissions, write_submissions; /* of the submissions: IN, OUT */
	uint64_t read_merges, write_merges; /* requests that rode along with another's submission */
};

VQB_API void vqb_blk_queue_read_counters(const struct vqb_blk_queue *queue,
					 struct vqb_blk_queue_counters *out);
VQB_API void vqb_blk_queue_clear_counters(struct vqb_blk_queue *queue);

VQB_C_END

#endif
