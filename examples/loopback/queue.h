/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h: one device with its queues, set up at both ends. This is the part to copy from.
 *
 *   disk --- backend --- blk queue --- device end  =  ring  =  driver end --- blk driver --- job
 *             (host.c runs this side)                          (owner.c runs that one)
 */
#ifndef LOOPBACK_QUEUE_H
#define LOOPBACK_QUEUE_H

#include <semaphore.h>
#include <vqblk/vqblk.h>
#include <vqblk/host/notify.h>

#include "disk.h"
#include "layers.h"
#include "memory.h"
#include "note.h"
#include "options.h"

struct queue {
	/* The guest's. */
	struct vqb_driver *driver;
	struct vqb_blk_driver *blk;
	struct vqb_dma data;  /* iodepth buffers for each thread that submits */
	struct vqb_ring ring; /* as it was at first, and is after each reset */

	/* The host's. */
	struct vqb_device *device;
	struct vqb_ring_at ring_at;
	struct vqb_backend *backend; /* the disk's */
	struct layers layers;        /* in front of it */
	struct vqb_coalescer *coalescer;
	struct vqb_blk_queue *served;

	void *mem[6]; /* of the objects */

	/* From the guest's threads to the one that owns this end (owner.c). */
	struct notes sent; /* first bios of lists */
	struct notes cancels;
	struct vqb_notify interrupt; /* host to guest, and the guest's threads to the owner */
	struct vqb_notify kick;      /* guest to host, and the backend to the host */

	/* A reset: the owner asks for it, the host stands still, and goes on when it is told. */
	sem_t stopped, restart;
	atomic_bool stop;

	atomic_bool asleep; /* the owner: to be woken, by whoever takes this away */
};

struct machine {
	const struct options *options;
	const struct disk *disk;
	struct memory memory;
	struct vqb_blk_device *device;
	void *device_mem;
	struct vqb_blk_limits limits; /* as the guest has read them */
	uint64_t features;            /* as the guest has accepted them */
	uint32_t buffer;              /* bytes of each */
	struct vqb_dma constant;      /* data for writes that are not stamped */
	struct queue *queue;
};

/* Everything up to queues that are ready to run. False: it was said why. */
bool machine_open(struct machine *machine, const struct options *options, const struct disk *disk,
		  uint32_t buffer);
void machine_close(struct machine *machine);

#endif
