/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_model.h: the driver side of a ring once more, slow and plain, to be compared with the
 * library's. Written from the format and from the contracts in vqblk/driver.h and
 * vqblk/indirect.h.
 *
 * The functions are those of vqblk/driver.h. The model has a ring and tables of its own, to which
 * the test, as the device, writes whatever it writes to the library's.
 *
 * Freedom that the contract leaves, and what the model makes of it:
 * - Which free descriptors and which table a request gets. `add` is shown the library's ring and
 *   tables, checks that what was taken was free and says the right thing, and takes the same.
 * - Which way an adaptive policy, or the one that decays, sends a request that may go either way.
 * - Whether the policy would have had a table where there was none, which only counters tell apart.
 * - What is wrong with a request in several ways: its size is looked at first, then whether there
 *   is room, then each segment, then the sum of the lengths.
 * - How far away "about a quarter" is, and where disarm puts the event: both are shown to the
 *   model, which says whether that is so.
 * - Which of two answers there is to a restore that is wrong in two ways: what is wrong with the
 *   ring's description or the saved words comes first, then BUSY, then what the ring says.
 * - Without IN_ORDER, which descriptor is the next one, so the model leaves it out of what it
 * saves.
 */
#ifndef TESTS_DRIVER_MODEL_H
#define TESTS_DRIVER_MODEL_H

#include <vqblk/driver.h>

#include "model_ring.h"

/* A request that was added and not handed back. */
struct model_request {
	void *token;
	uint64_t number; /* of its available entry; runs freely */
	uint64_t writable;
	uint32_t head, segments;
	bool indirect;
	uint64_t table; /* where its table begins in the pool, in bytes */
	bool completed; /* the test's: the device has put it into the used ring */
};

struct driver_model {
	/* what init was told */
	uint32_t max_size;
	struct vqb_indirect_policy policy;
	uint64_t tables_addr;
	uint32_t tables, table_length;
	/* the ring */
	int32_t state;
	struct model_ring ring;
	uint32_t index;   /* the queue's number */
	bool notify_data; /* VQB_F_NOTIFICATION_DATA */
	uint8_t *pool;    /* the model's tables */
	struct model_end end;
	struct model_request request[VQB_RING_MAX]; /* as they were added */
	uint32_t requests;
	/* IN_ORDER: the next descriptor, and what is left of the batch that is being reaped */
	uint32_t next_desc, batch, batch_len;
	uint64_t lent[VQB_RING_MAX];      /* per descriptor: 1 + number of its request, or 0 */
	struct vqb_driver_counters count; /* notified and suppressed are in `end` */
};

/* What the library has made of its memory. */
struct model_view {
	struct model_ring ring;
	const uint8_t *pool;
};

/* `ring` says where the model's ring is; where the configuration has none, it is not looked at. */
void driver_model_init(struct driver_model *m, const struct vqb_driver_config *config,
		       const struct model_ring *ring);

/* *wrong: what is wrong with what the library wrote, or NULL. Ask after the library has done it. */
int32_t driver_model_add(struct driver_model *m, const struct vqb_segment *seg, uint32_t readable,
			 uint32_t writable, void *token, const struct model_view *library,
			 const char **wrong);

void driver_model_expose(struct driver_model *m);
uint32_t driver_model_publish(struct driver_model *m);
uint32_t driver_model_turn(struct driver_model *m);
uint32_t driver_model_arm(struct driver_model *m);
/* *fine: the event that the library named is one that the contract allows. */
uint32_t driver_model_postpone(struct driver_model *m, uint32_t intent, uint16_t event, bool *fine);
bool driver_model_disarm(struct driver_model *m, uint16_t event);

uint32_t driver_model_reap(struct driver_model *m, struct vqb_done *done, uint32_t max);

int32_t driver_model_reset(struct driver_model *m, const struct vqb_ring *as,
			   const struct model_ring *ring);
int32_t driver_model_set_policy(struct driver_model *m, const struct vqb_indirect_policy *policy);
void driver_model_needs_reset(struct driver_model *m);
int32_t driver_model_save(const struct driver_model *m, struct vqb_driver_saved *saved);
int32_t driver_model_restore(struct driver_model *m, const struct vqb_ring *as,
			     const struct model_ring *ring, const struct vqb_driver_saved *saved);
/* Are these `n` tokens, of up to `max`, a right answer? What the status has to be is in *status. */
bool driver_model_detach(struct driver_model *m, void *const *tokens, uint32_t max, uint32_t n,
			 int32_t *status);

uint32_t driver_model_notification(const struct driver_model *m);
uint32_t driver_model_free(const struct driver_model *m);
uint32_t driver_model_pending(const struct driver_model *m);
uint32_t driver_model_oldest(const struct driver_model *m, void **token);

/* Does the library's memory hold what the model's does, where it is lent to the device? */
bool driver_model_same(const struct driver_model *m, const struct model_view *library);

#endif
