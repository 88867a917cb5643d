/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_fault.h: a backend in front of another one, that does what bad storage does: it fails,
 * stops early, takes its time, changes the order and is full. For testing what lies above it.
 *
 *   struct vqb_backend_fault_config config = {
 *           .struct_size = sizeof(config), .seed = 1, .ios = 64, .pieces = 16, .delay = 8,
 *           .rate = { [VQB_FAULT_ERROR] = 50000, [VQB_FAULT_SHORT] = 50000 }, .below = disk };
 *   status = vqb_backend_fault_init(mem, sizeof(mem), &config, &backend);
 *
 * A result is never better than what was done: a short transfer has not done the rest, an error may
 * have done any part of it, and a read that failed leaves stale bytes. No unit is torn: after a
 * failed write each one is as before or as written. The same seed and the same calls give the same
 * faults.
 *
 * Ios that are held back finish without a sign from the backend below: whoever sleeps until it has
 * completions asks vqb_backend_fault_held first, and while it isn't 0 polls instead.
 */
#ifndef VQBLK_BACKEND_FAULT_H
#define VQBLK_BACKEND_FAULT_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* What is done to an io; as bit numbers, a set of what was done to it. */
enum vqb_fault {
	/* VQB_E_IO, after nothing, a part or all of it was done. Of any io. */
	VQB_FAULT_ERROR = 0,
	/* A read or write ends early, after whole units of caps.alignment, one at least. */
	VQB_FAULT_SHORT = 1,
	/*
	 * A result within a unit, the first one included: then the request has failed. What is
	 * done is whole units, that one too.
	 */
	VQB_FAULT_RAGGED = 2,
	/* It is handed out some polls later than it could be. Of any io. */
	VQB_FAULT_DELAY = 3,
	/* It is handed out ahead of others that were ready before. */
	VQB_FAULT_REORDER = 4,
	/* A submit answers VQB_E_NOSPC, although there is room; only while an io is held. */
	VQB_FAULT_FULL = 5,
	/*
	 * Its range has a bad sector, which is what it is for good: here the rate is that of bad
	 * sectors. A read or write fails, or ends before it; other ranges fail, and do nothing.
	 */
	VQB_FAULT_BAD_SECTOR = 6,
};

enum { VQB_FAULTS = 7 }; /* that there are */

/* Of a rate, which is so many in a million: every one. */
#define VQB_FAULT_ALWAYS 1000000u

struct vqb_backend_fault_config {
	uint32_t struct_size; /* sizeof(struct vqb_backend_fault_config) */
	uint32_t ios;         /* most held at a time: 1 to 32768 */
	uint32_t pieces;      /* of a transfer that is cut, 1 to 1024: more are cut down to these */
	uint32_t delay;       /* most polls of a delay: from 1 where there are delays */
	uint32_t alignment;   /* shown above, and not below the backend's own; 0: that one */
	uint32_t rate[VQB_FAULTS]; /* of each enum vqb_fault: 0, never, to VQB_FAULT_ALWAYS */
	uint64_t seed;
	struct vqb_backend *below; /* this one's alone */
	/*
	 * Told of every io that poll hands out, just before: `faults` is the set of 1 <<
	 * enum vqb_fault that was done to it, 0 for none. io->result is as it will be seen. May
	 * be NULL.
	 */
	void (*tell)(void *context, const struct vqb_io *io, uint32_t faults);
	void *context;
};

/* Memory of a fault backend, for static allocation. */
#define VQB_BACKEND_FAULT_BYTES(ios, pieces)                                                       \
	VQB_ROUND_UP(448u + (96u + 16u * (size_t)(pieces)) * (size_t)(ios))

/* Bytes that vqb_backend_fault_init needs; 0: the configuration is invalid. Any thread. */
VQB_API size_t vqb_backend_fault_size(const struct vqb_backend_fault_config *config);

/*
 * Makes a fault backend in `mem`, aligned to 64, `bytes` of it, which lives as long as the backend;
 * nothing to destroy. It can do what the one below can.
 *
 * VQB_OK with the backend in *out. VQB_E_INVALID: parameters; the backend below is incomplete.
 * VQB_E_TOOBIG: `bytes` is less than vqb_backend_fault_size. Cost: O(ios).
 */
VQB_API int32_t vqb_backend_fault_init(void *mem, size_t bytes,
				       const struct vqb_backend_fault_config *config,
				       struct vqb_backend **out);

/* Ios that the backend below has no part in any more, for later polls to hand out. */
VQB_API uint32_t vqb_backend_fault_held(const struct vqb_backend *backend);

struct vqb_backend_fault_counters {
	uint64_t ios;                  /* accepted */
	uint64_t injected[VQB_FAULTS]; /* by enum vqb_fault */
};

VQB_API void vqb_backend_fault_read_counters(const struct vqb_backend *backend,
					     struct vqb_backend_fault_counters *out);

/*
 * Is that sector, of 512 bytes, bad under this seed and this rate of VQB_FAULT_BAD_SECTOR? 1 or 0.
 * Any thread.
 */
VQB_API uint32_t vqb_backend_fault_is_bad(uint64_t seed, uint32_t rate, uint64_t sector);

VQB_C_END

#endif
