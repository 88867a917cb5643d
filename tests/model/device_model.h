/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_model.h: the device side of a ring once more, slow and plain, to be compared with the
 * library's. Written from the format and from the contracts in vqblk/device.h and vqblk/memory.h.
 *
 * The functions are those of vqblk/device.h. The model works on a ring of its own, to which the
 * test writes whatever it writes to the library's; afterwards both must hold the same bytes.
 * Indirect tables it reads from guest memory, through the map.
 *
 * Freedom that the contract leaves, and what the model makes of it:
 * - A chain that breaks several rules: the model names the first one that it meets, descriptor by
 *   descriptor, and in each in the order of `walk`. A chain of more than 2^32 bytes may be given
 *   up at any descriptor from the one that exceeds them on, so the model is told (`gave_up`).
 * - disarm with EVENT_IDX: see device_model_disarm.
 * - A head that was put and not yet exposed, and is offered again: under IN_ORDER and with a
 *   tracking area that is a head in flight, else it is not.
 */
#ifndef TESTS_DEVICE_MODEL_H
#define TESTS_DEVICE_MODEL_H

#include <vqblk/device.h>

#include "model_ring.h"

enum { MODEL_PIECES = 1 << 16 };

/* A chain that is out. */
struct model_out {
	struct vqb_ticket ticket;
	uint64_t writable, position;
	uint32_t generation;
	bool bad;
	/* once it was put, until the driver sees it */
	bool put;
	uint32_t written;
};

/* What the tracking area has to say: the heads in flight, as they were first taken. */
struct model_tracking {
	bool used; /* there is an area */
	bool live; /* it says something */
	uint32_t size;
	uint16_t head[VQB_RING_MAX];
	uint32_t heads;
};

struct device_model {
	/* what init was told */
	uint32_t max_size, max_chain, max_pieces;
	const struct vqb_memory *memory;
	/* the ring */
	int32_t state;
	struct vqb_reason why;
	struct vqb_ring_at at;
	struct model_ring ring; /* where its parts are is the test's to set, once */
	struct model_end end;
	struct model_out out[VQB_RING_MAX];
	uint32_t outs;                           /* under IN_ORDER also those held back */
	struct model_out finished[VQB_RING_MAX]; /* not yet exposed, where that matters */
	uint32_t finisheds;
	struct model_tracking track;
	uint16_t again[VQB_RING_MAX];  /* heads that a predecessor left, to be taken */
	uint64_t again_from, again_to; /* at these positions */
	uint32_t seq;
	struct vqb_device_counters count; /* notified and suppressed are in `end` */
	/* by how much the library may have counted less, for chains that are `over` */
	uint64_t less_descriptors, less_indirect;
};

/* A chain as it has to come. */
struct model_chain {
	struct vqb_chain chain;
	bool gave_up; /* in: the library named VQB_RULE_BYTES */
	bool over;    /* out: and rightly so, at whatever descriptor */
};

void device_model_init(struct device_model *m, const struct vqb_device_config *config);

int32_t device_model_take(struct device_model *m, struct model_chain *chain, uint32_t max,
			  struct vqb_piece *piece, uint32_t room, uint32_t *taken,
			  struct vqb_need *need);
int32_t device_model_reject(struct device_model *m, struct vqb_chain *chain);
int32_t device_model_untake(struct device_model *m, struct vqb_ticket ticket);
int32_t device_model_put(struct device_model *m, struct vqb_ticket ticket, uint32_t written);
int32_t device_model_holds(const struct device_model *m, struct vqb_ticket ticket);
void device_model_expose(struct device_model *m);
uint32_t device_model_publish(struct device_model *m);
uint32_t device_model_turn(struct device_model *m);
uint32_t device_model_arm(struct device_model *m);

/*
 * With EVENT_IDX the device may name any entry that is not among the next half turn. Given the
 * event that the library named: is that so? It is then the model's, too.
 */
bool device_model_disarm(struct device_model *m, uint16_t event);

int32_t device_model_restore(struct device_model *m, const struct vqb_ring_at *ring,
			     const struct vqb_device_saved *saved);
int32_t device_model_reset(struct device_model *m, const struct vqb_ring_at *ring);
int32_t device_model_set_memory(struct device_model *m, const struct vqb_memory *memory);
uint32_t device_model_oldest_generation(const struct device_model *m);
int32_t device_model_save(const struct device_model *m, struct vqb_device_saved *saved);
uint32_t device_model_pending(const struct device_model *m);
void device_model_needs_reset(struct device_model *m);

/* Is a head in flight, so that the driver may not offer it? */
bool device_model_in_flight(const struct device_model *m, uint32_t head);

/* A new process, with the same memory of its own and the same tracking area, which is live. */
int32_t device_model_take_over(struct device_model *m, const struct vqb_device_config *config);

/* Does a tracking area, in vhost-user's format, say what it has to? */
bool device_model_tracks(const struct device_model *m, const uint8_t *area);

#endif
