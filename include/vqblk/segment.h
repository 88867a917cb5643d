/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h: a list of buffers into the segments of requests, under the limits of a queue.
 *
 * A mapper walks a list of vectors (buffers of any length, in device address space) and hands out
 * one request's worth of segments after the other:
 *
 * - Neighbours in memory become one segment, as long as limits allow; what is too long, or crosses
 *   a boundary, is cut. A request has as few segments as its bytes can have.
 * - A request takes as many bytes as limits allow: segments, sectors, chunks, gaps. Where it has to
 *   end in the middle of the list it ends at a logical block of the disk, and at a physical one if
 *   it can. What comes after is the next request's.
 *
 * Counting is the same walk without a table, so the two can't disagree. To count first, walk a
 * copy of the mapper: it is plain data.
 *
 *   struct vqb_limits limits;                  once for a queue:
 *   vqb_limits_of_blk(&blk, features, ring_size, &limits);
 *   status = vqb_limits_check(&limits, NULL);
 *
 *   struct vqb_mapper m = vqb_mapper_over(&limits, vec, nvec, sector);
 *   while (!status && vqb_mapper_more(&m)) {
 *           uint64_t at = m.sector;
 *           status = vqb_map_next(&m, table, room, &n, &bytes);
 *           if (!status)
 *                   send(at, table, n, bytes);
 *   }
 *
 * All functions may be called from any thread; a mapper belongs to one at a time. Nothing is kept
 * but what a mapper points to: limits and vectors, which stay as they are while it is in use.
 * Nothing here needs another part of the library.
 */
#ifndef VQBLK_SEGMENT_H
#define VQBLK_SEGMENT_H

#include <vqblk/api.h>
#include <vqblk/backend.h>
#include <vqblk/blk.h>
#include <vqblk/ring.h>
#include <vqblk/status.h>

VQB_C_BEGIN

/* ---- limits ---- */

/* Sectors of the longest read or write: a chain has no more than 2^32 bytes, header included. */
#define VQB_MAX_SECTORS 8388607u

/* Of an operation that names ranges instead of data. All 0: there is no such operation. */
struct vqb_range_limits {
	uint32_t max_sectors; /* of one range */
	uint32_t max_ranges;  /* of one request */
	uint32_t alignment;   /* sectors; where a range should begin and end to be of use; 0: any */
	uint32_t zero;        /* 0 */
};

/* Bits. */
enum vqb_limits_flag {
	VQB_LIMITS_NO_CLUSTER = 1, /* every vector is a segment of its own, or several */
};

/* Begin with vqb_limits_init, change what you know, and have it checked. */
struct vqb_limits {
	uint32_t struct_size;       /* sizeof(struct vqb_limits) */
	uint32_t flags;             /* enum vqb_limits_flag */
	uint32_t max_segments;      /* of one request, header and status aside; from 1 */
	uint32_t max_segment_bytes; /* from 1 */
	/*
	 * No segment crosses a multiple of seg_boundary + 1, which is a power of two. All ones:
	 * no such limit.
	 */
	uint64_t seg_boundary;
	/*
	 * Within a request, where one segment ends and the next begins, both addresses are
	 * multiples of virt_boundary + 1, a power of two: there is no gap. 0: no such limit.
	 */
	uint64_t virt_boundary;
	uint32_t max_sectors;   /* of one request; up to VQB_MAX_SECTORS */
	uint32_t chunk_sectors; /* no request crosses a multiple of it on the disk; 0: none */
	uint32_t block_size; /* bytes: a request begins and ends at one; a power of two from 512 */
	/*
	 * Where a request had better end if it ends within a list: bytes, a power of two from
	 * block_size (which means nothing more); counted from split_offset, bytes, a multiple of
	 * block_size below split_align. The physical block, and where the first one begins.
	 */
	uint32_t split_align, split_offset;
	uint32_t zero; /* 0 */
	struct vqb_range_limits discard, zeroes, erase;
};

/* What vqb_limits_check objects to. */
enum vqb_limits_rule {
	VQB_LIMITS_FINE = 0,
	VQB_LIMITS_FORM,     /* struct_size, an unknown flag, `zero` */
	VQB_LIMITS_BLOCK,    /* block_size is no power of two, or less than 512 */
	VQB_LIMITS_SPLIT,    /* split_align no power of two, or below block_size; split_offset */
	VQB_LIMITS_SECTORS,  /* max_sectors is less than a block, or above VQB_MAX_SECTORS */
	VQB_LIMITS_CHUNK,    /* chunk_sectors is no whole number of blocks */
	VQB_LIMITS_SEGMENT,  /* max_segments or max_segment_bytes is 0 */
	VQB_LIMITS_MASK,     /* a boundary is not a power of two less one */
	VQB_LIMITS_VIRT,     /* see vqb_limits_check */
	VQB_LIMITS_PROGRESS, /* see vqb_limits_check */
	VQB_LIMITS_DISCARD,  /* one of sectors and ranges is 0, or sectors is less than a block */
	VQB_LIMITS_ZEROES,   /* the same */
	VQB_LIMITS_ERASE,    /* the same */
};

/*
 * No limits: blocks of 512 bytes, and the longest segments and requests that there can be. There
 * are no discards and their like. `limits` is not NULL. Cost: constant.
 */
VQB_API void vqb_limits_init(struct vqb_limits *limits);

/*
 * Do the limits make sense, each alone and together? `rule` (unless NULL) gets the first of enum
 * vqb_limits_rule that is broken. What is refused together:
 *
 * VIRT: max_segment_bytes not above virt_boundary, or seg_boundary below it. A segment between two
 *   others begins and ends at such boundaries; it would be too long, or cut between them.
 * PROGRESS: one logical block that lies in one stretch of memory, at a multiple of its size, takes
 *   more than max_segments. There would be no list at all that is sure to get through.
 *
 * (A block in several stretches can still be more than limits allow: vqb_map_next then answers
 * TOOBIG. The cure is a contiguous copy of that block.)
 *
 * VQB_OK or VQB_E_INVALID. Cost: constant.
 */
VQB_API int32_t vqb_limits_check(const struct vqb_limits *limits, uint32_t *rule);

/*
 * For a driver: the limits that a virtio-blk device's numbers amount to, as vqb_blk_limits_read has
 * them. `features` are the accepted ones: discard, write zeroes and secure erase are there only
 * with their bit, 0 ranges then mean 1, and 0 sectors no limit. `ring_size` is that of the ring; 0
 * if not known yet. With indirect tables or without, a chain is no longer than its ring: header,
 * max_segments and status fit into it, and segments of 0 are taken for 1 (so is a device without
 * SEG_MAX), more than 32766 for 32766. A memory boundary is the transport's business: set it
 * afterwards.
 *
 * VQB_OK: *out passes vqb_limits_check, but for PROGRESS, which depends on the device.
 * VQB_E_INVALID: NULL, struct_size, a block size that is none, a physical block of 2^31 bytes or
 * more. VQB_E_TOOBIG: no read or write fits into such a ring. Cost: constant.
 */
VQB_API int32_t vqb_limits_of_blk(const struct vqb_blk_limits *blk, uint64_t features,
				  uint32_t ring_size, struct vqb_limits *out);

/* What a device wants to be, as far as its backend doesn't say it. */
struct vqb_blk_shape {
	uint32_t struct_size; /* sizeof(struct vqb_blk_shape) */
	uint32_t ring_size;   /* of the smallest ring, from 3 */
	uint32_t block_size;  /* 0: 512 */
	uint32_t queues;      /* up to 65535; 0: 1 */
	uint32_t ranges;      /* most of one discard and its like; 0: 1 */
	uint32_t zero;        /* 0 */
};

/*
 * For a device: what to announce, given its backend and its ring: vqb_blk_device_init takes it.
 *
 * Segments are as many as fit into the ring (62 for a ring of 64) and as the backend takes pieces.
 * Where max_transfer is less than a chain can carry, segment_bytes is such that the longest
 * request stays within it; for that segments of less than 4096 bytes, or a block if that is more,
 * are not asked for, but fewer of them. What the backend can't do gets zeroes. Limits in bytes are
 * rounded down to blocks, alignments up to them. Offer DISCARD, WRITE_ZEROES and SECURE_ERASE where
 * discard_sectors, zeroes_sectors and erase_sectors say something.
 *
 * VQB_OK: all of *out is set, struct_size and capacity (whole blocks of caps.bytes) too.
 * VQB_E_INVALID: NULL, struct_size, a number above that is none, or caps.alignment is above the
 * block size. VQB_E_TOOBIG: no read or write fits into such a ring, or a block not into the
 * backend's max_transfer. Cost: constant.
 */
VQB_API int32_t vqb_blk_limits_announce(const struct vqb_backend_caps *caps,
					const struct vqb_blk_shape *shape,
					struct vqb_blk_limits *out);

/* ---- the walk ---- */

/* Plain data, the caller's. Make one with vqb_mapper_over; only vqb_map_next changes it. */
struct vqb_mapper {
	const struct vqb_limits *limits;
	const struct vqb_segment *vec;
	uint32_t nvec;
	uint32_t at;     /* the vector that comes next; nvec: none */
	uint32_t offset; /* bytes of it that are done */
	uint32_t zero;
	uint64_t sector; /* of 512 bytes: where the next request begins */
};

/* A mapper over `nvec` vectors, whose first byte is that of `sector`. vqb_map_next checks them. */
static inline struct vqb_mapper vqb_mapper_over(const struct vqb_limits *limits,
						const struct vqb_segment *vec, uint32_t nvec,
						uint64_t sector)
{
	struct vqb_mapper m;

	m.limits = limits;
	m.vec = vec;
	m.nvec = nvec;
	m.at = m.offset = m.zero = 0;
	m.sector = sector;
	return m;
}

/* Is there anything left to map? */
static inline int vqb_mapper_more(const struct vqb_mapper *m)
{
	return m->at < m->nvec;
}

/*
 * Maps the next request: the longest one that limits allow, in as few segments as it can have.
 *
 * `out` has room for `room` segments, and need not be cleared; NULL: they are only counted. If room
 * is less than limits->max_segments it is the limit instead. *n gets how many there are, and *bytes
 * how many bytes: out[0] to out[*n - 1] are the segments. Nothing is written behind `room`, but
 * what lies between *n and `room` may have been, where a request ends within the list. With nothing
 * left, both are 0. The mapper moves on.
 *
 * A request ends where the list does, at a chunk's end, or before a gap (virt_boundary) that lies
 * between blocks; where it is full it ends at the last split_align that is not its beginning, or
 * else at the last block. It is never empty.
 *
 * The limits are those that vqb_limits_check accepts; with others the answer makes no sense, but
 * all else that is said here holds.
 *
 * VQB_OK. Otherwise the mapper has not moved, *n and *bytes are 0, and what is in `out` up to
 * `room` is undefined:
 * VQB_E_INVALID: NULL; limits->struct_size; a vector that the walk came to is empty, runs past 2^64
 *   or has its `zero` set; sector is not at a block, or the request would go past sector 2^64; the
 *   list ends within a block (which the request that reaches it says: who wants to know before
 *   sending any, counts).
 * VQB_E_TOOBIG: the block that comes next can't be sent under these limits, in no request: it takes
 *   more segments than there may be, or has a gap. (Or room is 0.)
 *
 * Cost: a nanosecond per vector and per segment; twice that where a request is full.
 */
VQB_API int32_t vqb_map_next(struct vqb_mapper *m, struct vqb_segment *out, uint32_t room,
			     uint32_t *n, uint64_t *bytes);

/* ---- for those who join requests (limits are checked ones) ---- */

/*
 * Makes a mapped request longer by all of a list, or not at all: as if the walk that mapped it had
 * gone on. It begins at `sector`, and is out[0] to out[*n - 1], *bytes long, whole blocks, not
 * empty; `room` is all that `out` has room for. Neighbours in memory become one segment here, too.
 *
 * VQB_OK: *n and *bytes are those of the longer one.
 * VQB_E_TOOBIG: the whole is not within limits, or has a gap, or the list no whole blocks.
 * VQB_E_INVALID: NULL; an empty list or request; a bad vector, as vqb_map_next. On failure *n,
 * *bytes and the request are what they were; what is in `out` behind it may not be.
 * Cost: as vqb_map_next.
 */
VQB_API int32_t vqb_map_append(const struct vqb_limits *limits, uint64_t sector,
			       const struct vqb_segment *vec, uint32_t nvec,
			       struct vqb_segment *out, uint32_t room, uint32_t *n,
			       uint64_t *bytes);

/*
 * How many sectors of `sectors`, from `sector` on, one range may take: all of them, or as many as
 * `range` (one of the limits') allows, in whole blocks, to a multiple of its alignment if there is
 * one. Not 0, unless `sectors` is.
 */
VQB_API uint32_t vqb_limits_range(const struct vqb_limits *limits,
				  const struct vqb_range_limits *range, uint64_t sector,
				  uint64_t sectors);

/*
 * May `b`, which follows `a` in a request, be made one segment with it? They are neighbours in
 * memory, and together within max_segment_bytes and one seg_boundary.
 */
VQB_API int vqb_segments_join(const struct vqb_limits *limits, const struct vqb_segment *a,
			      const struct vqb_segment *b);

/*
 * Is there a gap (virt_boundary) if segment `b` follows segment `a` in a request? Of a front merge
 * `b` is the first segment of what is there already. Where they may be joined there is none, so
 * ask for that first: join, or else no gap, or else refuse.
 */
VQB_API int vqb_segments_gap(const struct vqb_limits *limits, const struct vqb_segment *a,
			     const struct vqb_segment *b);

/*
 * Most bytes of a read or write that begins at `sector`: up to max_sectors, in whole blocks, and
 * not past the chunk's end. A joined request is measured from its own beginning, which a front
 * merge moves.
 */
VQB_API uint64_t vqb_limits_bytes(const struct vqb_limits *limits, uint64_t sector);

VQB_C_END

#endif
