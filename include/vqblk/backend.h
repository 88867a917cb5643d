/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h: where the data of a block device lives, as an interface: the device calls it, you may
 * write one. Two simple ones come with the core (below), others with the hosted part (host/).
 *
 * A backend object serves one queue on one thread; several objects may share one store. The
 * device gives it ios. An io belongs to the backend from a submit that answers VQB_OK until poll
 * hands it out, exactly once, with `result` set; in any order, and never from within submit. Its
 * pieces stay as they are until then.
 *
 *   struct vqb_io read = { .op = VQB_BLK_IN, .pieces = 1, .piece = &piece, .bytes = 4096 };
 *   vqb_backend_plug(backend);
 *   status = vqb_backend_submit(backend, &read);    more of them ...
 *   vqb_backend_unplug(backend);                    now they start, at the latest
 *   for (io = vqb_backend_poll(backend); io; io = next) {
 *           next = io->next;
 *           finish(io, io->result);
 *   }
 *
 * Partial transfers: a result smaller than `bytes` is no error. What was done counts in whole units
 * of caps.alignment, and the device submits the rest ahead of what waits; less than one such unit,
 * 0 included, fails the request. A flush has result 0.
 *
 * A backend that finishes later has to wake the queue's thread by means of its own (an eventfd,
 * say), which then calls vqb_blk_queue_run; nothing here calls back.
 */
#ifndef VQBLK_BACKEND_H
#define VQBLK_BACKEND_H

#include <vqblk/api.h>
#include <vqblk/blk.h>
#include <vqblk/memory.h>
#include <vqblk/ring.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* Bits. */
enum vqb_io_flag {
	/*
	 * Of a write: durable before it is reported done. Not optional; a backend that has no
	 * cheaper way flushes first. One that loses everything with the power ignores it.
	 */
	VQB_IO_FUA = 1,
	/* Of write zeroes: the range may be deallocated, as long as it reads as zeroes. A hint. */
	VQB_IO_UNMAP = 2,
};

struct vqb_io {
	struct vqb_io *next; /* of the list that poll hands out; meanwhile the backend's */
	const struct vqb_piece *piece; /* data; `bytes` in all */
	uint32_t pieces;
	uint8_t op;     /* enum vqb_blk_type: IN, OUT, FLUSH, DISCARD, WRITE_ZEROES, SECURE_ERASE */
	uint8_t flags;  /* enum vqb_io_flag */
	uint16_t group; /* a coalescer's (coalesce.h); 0 in one that no coalescer has seen */
	uint64_t offset; /* bytes from the start of the disk */
	uint64_t bytes;  /* IN, OUT: 1 to 2^32; FLUSH: 0; others, which have no pieces: from 1 */
	int64_t result;  /* bytes done from the first one on, or a negative enum vqb_status */
};

/* As numbers, with the meaning that virtio-blk gives them. */
struct vqb_lifetime {
	uint16_t pre_eol_info, life_a, life_b;
};

struct vqb_backend;

/* All of them on the thread of the queue. A member may be NULL where it says so. */
struct vqb_backend_ops {
	uint32_t struct_size; /* sizeof(struct vqb_backend_ops) */
	uint32_t zero;
	/*
	 * VQB_OK: accepted, poll will hand it out.
	 * VQB_E_NOSPC: full; allowed only while the backend holds an io, whose completion makes
	 *   room. The device keeps the request and tries again in order.
	 * Anything else: refused for good; the request fails with it.
	 */
	int32_t (*submit)(struct vqb_backend *backend, struct vqb_io *io);
	/* More submits follow directly: starting may wait until unplug. Not nested. May be NULL. */
	void (*plug)(struct vqb_backend *backend);
	/* Starts all that was accepted since plug. May be NULL. */
	void (*unplug)(struct vqb_backend *backend);
	/* Hands out what has finished, as a list, or NULL. Does not wait. */
	struct vqb_io *(*poll)(struct vqb_backend *backend);
	/* Waits until all that was accepted has finished, for poll to hand out. May be NULL. */
	void (*drain)(struct vqb_backend *backend);
	/* How worn the storage is, at once. VQB_OK, or why not. NULL without VQB_CAN_LIFETIME. */
	int32_t (*lifetime)(struct vqb_backend *backend, struct vqb_lifetime *out);
};

/* Bits. */
enum vqb_backend_can {
	VQB_CAN_READ = 1,
	VQB_CAN_WRITE = 2,
	VQB_CAN_FLUSH = 4,
	VQB_CAN_DISCARD = 8,
	VQB_CAN_WRITE_ZEROES = 16,
	VQB_CAN_UNMAP = 32, /* write zeroes with VQB_IO_UNMAP really gives storage back */
	VQB_CAN_SECURE_ERASE = 64,
	VQB_CAN_LIFETIME = 128,
};

struct vqb_backend_caps {
	uint64_t bytes;        /* of the disk */
	uint64_t max_transfer; /* most bytes of one IN or OUT; a request of more gets IOERR */
	uint64_t max_range;    /* most bytes of one DISCARD, WRITE_ZEROES or SECURE_ERASE */
	uint32_t max_pieces;   /* most pieces of one io; a request of more gets IOERR */
	uint32_t alignment;    /* of offset and length: a power of two up to the block size */
	/*
	 * Where a discard, or secure erase, should begin and end to be of use: bytes; 0: anywhere.
	 */
	uint32_t discard_alignment, erase_alignment;
	uint32_t can; /* enum vqb_backend_can */
	uint32_t zero;
};

/* Not opaque: a backend of your own has one as its first member, or behind `context`. */
struct vqb_backend {
	uint32_t struct_size; /* sizeof(struct vqb_backend) */
	uint32_t zero;
	const struct vqb_backend_ops *ops;
	void *context;
	/* Constant while a queue uses it, but for `bytes`: see vqb_blk_device_resize. */
	struct vqb_backend_caps caps;
};

/* A list of ios in the order they were added, for who writes a backend. All zero: empty. */
struct vqb_io_list {
	struct vqb_io *first, *last;
};

static inline void vqb_io_list_add(struct vqb_io_list *list, struct vqb_io *io)
{
	io->next = NULL;
	if (list->first)
		list->last->next = io;
	else
		list->first = io;
	list->last = io;
}

/* Hands out the whole list, which is empty then. */
static inline struct vqb_io *vqb_io_list_take(struct vqb_io_list *list)
{
	struct vqb_io *first = list->first;

	list->first = NULL;
	return first;
}

/* ---- calls ---- */

static inline int32_t vqb_backend_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	return backend->ops->submit(backend, io);
}

static inline void vqb_backend_plug(struct vqb_backend *backend)
{
	if (backend->ops->plug)
		backend->ops->plug(backend);
}

static inline void vqb_backend_unplug(struct vqb_backend *backend)
{
	if (backend->ops->unplug)
		backend->ops->unplug(backend);
}

static inline struct vqb_io *vqb_backend_poll(struct vqb_backend *backend)
{
	return backend->ops->poll(backend);
}

static inline void vqb_backend_drain(struct vqb_backend *backend)
{
	if (backend->ops->drain)
		backend->ops->drain(backend);
}

/*
 * Is the object complete: sizes, the functions that there must be, numbers that make sense?
 * VQB_OK or VQB_E_INVALID. Any thread.
 */
VQB_API int32_t vqb_backend_check(const struct vqb_backend *backend);

/* ---- memory: the disk is bytes of the caller ---- */

struct vqb_backend_memory_config {
	uint32_t struct_size; /* sizeof(struct vqb_backend_memory_config) */
	uint32_t access;      /* VQB_READ, or VQB_READ | VQB_WRITE (enum vqb_access) */
	void *disk;           /* the caller's; any number of objects and threads share it */
	uint64_t bytes;
};

/* Memory of a memory backend. */
#define VQB_BACKEND_MEMORY_BYTES 128u

VQB_API size_t vqb_backend_memory_size(void);

/*
 * Makes a memory backend in `mem` (aligned to 64, `bytes` of it, living as long as the backend;
 * nothing to destroy). An io is carried out, by copying, within submit. What requests of several
 * queues do to the same sectors at the same time is undefined sector by sector, as on any disk.
 * What is discarded, zeroed or erased reads as zeroes; memory is not given back.
 *
 * VQB_OK with the backend in *out. VQB_E_INVALID: a size, an alignment, access, or no disk.
 * VQB_E_TOOBIG: `bytes` is less than vqb_backend_memory_size.
 */
VQB_API int32_t vqb_backend_memory_init(void *mem, size_t bytes,
					const struct vqb_backend_memory_config *config,
					struct vqb_backend **out);

/* ---- null: accepts everything, does nothing ---- */

/* Memory of a null backend. */
#define VQB_BACKEND_NULL_BYTES 128u

VQB_API size_t vqb_backend_null_size(void);

/*
 * Makes a null backend of `disk` bytes in `mem` (as above). For measuring all but the storage:
 * a write is forgotten, and a read leaves the buffers as they are although it counts as done. It
 * is no disk to give to a guest.
 *
 * VQB_OK with the backend in *out. VQB_E_INVALID, VQB_E_TOOBIG: as above.
 */
VQB_API int32_t vqb_backend_null_init(void *mem, size_t bytes, uint64_t disk,
				      struct vqb_backend **out);

VQB_C_END

#endif
