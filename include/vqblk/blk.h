/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blk.h: the format of virtio-blk, for both ends: request types, status bytes, feature bits, the
 * configuration space, and the checks that driver and device must make alike.
 *
 * A request is one chain of a virtqueue:
 *
 *   readable   header, 16 bytes: type, reserved, sector
 *   readable   data of a type that sends some (OUT)
 *   writable   data of a type that returns some (IN, GET_ID)
 *   writable   status, the last byte
 *
 * Where the chain is cut into buffers means nothing: the header is the first 16 readable bytes,
 * the status the last writable one, and data is what lies between, whatever their pieces.
 *
 * Sector numbers and counts are in units of 512 bytes, always. The logical block size only says
 * what a request must be a multiple of.
 *
 * Nothing here keeps state: each function may be called from any thread.
 */
#ifndef VQBLK_BLK_H
#define VQBLK_BLK_H

#include <vqblk/api.h>
#include <vqblk/ring.h>
#include <vqblk/status.h>
#include <vqblk/wire.h>

VQB_C_BEGIN

#define VQB_SECTOR_BYTES 512u
#define VQB_SECTOR_SHIFT 9

/* ---- requests ---- */

/* Types, as on the wire. Also what `op` of a bio and of an io holds. */
enum vqb_blk_type {
	VQB_BLK_IN = 0,            /* read: whole sectors of writable data */
	VQB_BLK_OUT = 1,           /* write: whole sectors of readable data */
	VQB_BLK_FLUSH = 4,         /* no data, sector 0 */
	VQB_BLK_GET_ID = 8,        /* 20 bytes of writable data */
	VQB_BLK_GET_LIFETIME = 10, /* 6 bytes of writable data */
	VQB_BLK_DISCARD = 11,      /* readable ranges of 16 bytes each */
	VQB_BLK_WRITE_ZEROES = 13, /* the same */
	VQB_BLK_SECURE_ERASE = 14, /* the same */
	VQB_BLK_ZONE_APPEND = 15,  /* this one and the next: zoned devices, not served here */
	VQB_BLK_ZONE_REPORT = 16,
	VQB_BLK_ZONE_OPEN = 18,
	VQB_BLK_ZONE_CLOSE = 20,
	VQB_BLK_ZONE_FINISH = 22,
	VQB_BLK_ZONE_RESET = 24,
	VQB_BLK_ZONE_RESET_ALL = 26,
};

/* The status byte. A driver takes anything but the first three for VQB_BLK_S_IOERR. */
enum vqb_blk_status {
	VQB_BLK_S_OK = 0,
	VQB_BLK_S_IOERR = 1,
	VQB_BLK_S_UNSUPP = 2,
	VQB_BLK_S_ZONE_INVALID_CMD = 3,
	VQB_BLK_S_ZONE_UNALIGNED_WP = 4,
	VQB_BLK_S_ZONE_OPEN_RESOURCE = 5,
	VQB_BLK_S_ZONE_ACTIVE_RESOURCE = 6,
};

struct vqb_blk_header {
	struct vqb_le32 type;
	struct vqb_le32 reserved; /* 0; a legacy driver's I/O priority */
	struct vqb_le64 sector;   /* 0 in a type that has no use for it */
};

/* One range of a discard, write zeroes or secure erase. */
struct vqb_blk_range {
	struct vqb_le64 sector;
	struct vqb_le32 sectors;
	struct vqb_le32 flags; /* VQB_BLK_RANGE_UNMAP, write zeroes only */
};

#define VQB_BLK_RANGE_UNMAP 1u

#define VQB_BLK_HEADER_BYTES 16u
#define VQB_BLK_ID_BYTES 20u
#define VQB_BLK_RANGE_BYTES 16u
#define VQB_BLK_LIFETIME_BYTES 6u

/* ---- features ---- */

/* Bit numbers. What each opens in the configuration space stands there. */
enum vqb_blk_feature {
	VQB_BLK_F_SIZE_MAX = 1,
	VQB_BLK_F_SEG_MAX = 2,
	VQB_BLK_F_GEOMETRY = 4,
	VQB_BLK_F_RO = 5,
	VQB_BLK_F_BLK_SIZE = 6,
	VQB_BLK_F_FLUSH = 9,
	VQB_BLK_F_TOPOLOGY = 10,
	VQB_BLK_F_CONFIG_WCE = 11,
	VQB_BLK_F_MQ = 12,
	VQB_BLK_F_DISCARD = 13,
	VQB_BLK_F_WRITE_ZEROES = 14,
	VQB_BLK_F_LIFETIME = 15,
	VQB_BLK_F_SECURE_ERASE = 16,
	VQB_BLK_F_ZONED = 17,
};

/*
 * The type's bits that the device of this library can honour, all of which do no harm to ask for: a
 * device leaves out what its backend can't. Two more can be honoured, and are not among them: RO
 * makes the disk read-only, and CONFIG_WCE needs a transport that hands on what a driver writes to
 * the configuration space.
 */
#define VQB_BLK_DEVICE_FEATURES                                                                    \
	(VQB_FEATURE(VQB_BLK_F_SIZE_MAX) | VQB_FEATURE(VQB_BLK_F_SEG_MAX) |                        \
	 VQB_FEATURE(VQB_BLK_F_BLK_SIZE) | VQB_FEATURE(VQB_BLK_F_FLUSH) |                          \
	 VQB_FEATURE(VQB_BLK_F_TOPOLOGY) | VQB_FEATURE(VQB_BLK_F_MQ) |                             \
	 VQB_FEATURE(VQB_BLK_F_DISCARD) | VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES) |                    \
	 VQB_FEATURE(VQB_BLK_F_LIFETIME) | VQB_FEATURE(VQB_BLK_F_SECURE_ERASE))

/* The type's bits that the driver of this library can make use of. */
#define VQB_BLK_DRIVER_FEATURES                                                                    \
	(VQB_FEATURE(VQB_BLK_F_SIZE_MAX) | VQB_FEATURE(VQB_BLK_F_SEG_MAX) |                        \
	 VQB_FEATURE(VQB_BLK_F_BLK_SIZE) | VQB_FEATURE(VQB_BLK_F_FLUSH) |                          \
	 VQB_FEATURE(VQB_BLK_F_TOPOLOGY) | VQB_FEATURE(VQB_BLK_F_MQ) | VQB_FEATURE(VQB_BLK_F_RO) | \
	 VQB_FEATURE(VQB_BLK_F_GEOMETRY) | VQB_FEATURE(VQB_BLK_F_CONFIG_WCE) |                     \
	 VQB_FEATURE(VQB_BLK_F_DISCARD) | VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES) |                    \
	 VQB_FEATURE(VQB_BLK_F_LIFETIME) | VQB_FEATURE(VQB_BLK_F_SECURE_ERASE))

/*
 * For a device: what it offers of `wanted`, which holds bits of the type and of the ring. Leaves
 * out what this library can't honour and what lacks its prerequisite; VERSION_1 is always
 * offered. Ask for FLUSH unless the storage can't: without it a driver cannot make data durable.
 */
VQB_API uint64_t vqb_blk_features_offer(uint64_t wanted);

/*
 * For a driver: what it accepts of `offered`, given what it wants. RO and VERSION_1 are accepted
 * wherever they are offered, wanted or not. Without VERSION_1 in the answer the device is a
 * legacy one, which this version does not drive: give up on it.
 */
VQB_API uint64_t vqb_blk_features_accept(uint64_t offered, uint64_t wanted);

/*
 * For a device: may a driver that was offered `offered` accept `accepted`?
 * VQB_OK, or VQB_E_INVALID: not a subset, or VERSION_1 is missing.
 */
VQB_API int32_t vqb_blk_features_check(uint64_t offered, uint64_t accepted);

/* ---- configuration space ---- */

/* As on the wire. Fields of a feature that is not offered are 0, and nobody reads them. */
struct vqb_blk_config {
	struct vqb_le64 capacity;    /* always; sectors */
	struct vqb_le32 size_max;    /* SIZE_MAX: bytes of one segment */
	struct vqb_le32 seg_max;     /* SEG_MAX: data segments of one request */
	struct vqb_le16 cylinders;   /* GEOMETRY */
	uint8_t heads;               /* GEOMETRY */
	uint8_t sectors;             /* GEOMETRY */
	struct vqb_le32 blk_size;    /* BLK_SIZE: bytes */
	uint8_t physical_block_exp;  /* TOPOLOGY: log2 of blocks in a physical one */
	uint8_t alignment_offset;    /* TOPOLOGY: blocks */
	struct vqb_le16 min_io_size; /* TOPOLOGY: blocks */
	struct vqb_le32 opt_io_size; /* TOPOLOGY: blocks */
	uint8_t writeback; /* CONFIG_WCE: 1 write-back, 0 write-through; a driver may write it */
	uint8_t unused0;   /* 0 */
	struct vqb_le16 num_queues;          /* MQ */
	struct vqb_le32 max_discard_sectors; /* DISCARD, three */
	struct vqb_le32 max_discard_seg;
	struct vqb_le32 discard_sector_alignment;
	struct vqb_le32 max_write_zeroes_sectors; /* WRITE_ZEROES, three */
	struct vqb_le32 max_write_zeroes_seg;
	uint8_t write_zeroes_may_unmap;
	uint8_t unused1[3];                       /* 0 */
	struct vqb_le32 max_secure_erase_sectors; /* SECURE_ERASE, three */
	struct vqb_le32 max_secure_erase_seg;
	struct vqb_le32 secure_erase_sector_alignment;
	struct vqb_le32 zone_sectors; /* ZONED, all that follow */
	struct vqb_le32 max_open_zones;
	struct vqb_le32 max_active_zones;
	struct vqb_le32 max_append_sectors;
	struct vqb_le32 write_granularity;
	uint8_t zoned_model;
	uint8_t unused2[3];
};

#define VQB_BLK_CONFIG_BYTES 96u

/*
 * The same as numbers to work with, each with a sense where its feature is absent. A device
 * fills one in to say what it is; a driver gets one by reading the configuration space.
 */
struct vqb_blk_limits {
	uint32_t struct_size;   /* sizeof(struct vqb_blk_limits) */
	uint32_t block_size;    /* logical block: a power of two from 512; absent: 512 */
	uint64_t capacity;      /* sectors */
	uint32_t segment_bytes; /* most bytes of one data segment; absent: 2^32 - 1 */
	uint32_t segments;      /* most data segments of one request, from 1; absent: 1 */
	uint32_t queues;        /* from 1; absent: 1 */
	uint32_t physical_exp, alignment_offset, min_io, opt_io; /* absent: 0 */
	uint32_t cylinders, heads, track_sectors;                /* absent: 0 */
	uint32_t discard_sectors, discard_ranges, discard_alignment;
	uint32_t zeroes_sectors, zeroes_ranges, zeroes_may_unmap;
	uint32_t erase_sectors, erase_ranges, erase_alignment;
	uint32_t zero; /* 0 */
};

/*
 * Data segments that a request can have on a ring of `size` entries: size - 2, because header and
 * status take one each, and a chain may be no longer than its ring, in an indirect table neither.
 * 0: the ring is too small for any read or write. At most 32766. A device offers it as SEG_MAX.
 */
VQB_API uint32_t vqb_blk_ring_segments(uint32_t size);

/*
 * For a driver: reads the configuration space into *out.
 *
 * `space` (aligned to 4) is the space itself or a copy of it, `bytes` what there is of it.
 * `features` is the offer, or, later, what was accepted: only fields of those features are
 * looked at, each once and in its own width (64 bits as two times 32). Against a change while it
 * is read, go round with the transport's generation count. `ring_size` is the size of the rings,
 * 0 if not known yet: out->segments is what fits into one.
 *
 * VQB_OK: all of *out is set, struct_size too; it need not be before.
 * VQB_E_INVALID: the space is too short for a field of `features`, or the block size is
 * none (no power of two, or less than 512), or parameters are wrong. VQB_E_TOOBIG: no read or
 * write fits into such a ring. *out is then undefined.
 */
VQB_API int32_t vqb_blk_limits_read(const void *space, size_t bytes, uint64_t features,
				    uint32_t ring_size, struct vqb_blk_limits *out);

/*
 * For a device: writes the configuration space that says `limits`; fields of features that are
 * not in `offered` are 0. (vqb_blk_device does this by itself.)
 *
 * VQB_OK. VQB_E_INVALID: struct_size, a block size that is none, or a number that doesn't fit into
 * its field.
 */
VQB_API int32_t vqb_blk_limits_write(const struct vqb_blk_limits *limits, uint64_t offered,
				     struct vqb_blk_config *out);

/* How the device's cache behaves, as far as a driver may rely on it. */
enum vqb_blk_cache_mode {
	VQB_BLK_WRITETHROUGH = 0, /* a write that has completed is durable */
	VQB_BLK_WRITEBACK = 1,    /* it is durable after a later flush */
};

/*
 * For a driver, once features are negotiated: which of enum vqb_blk_cache_mode holds with the
 * `accepted` ones. Reads the space's writeback byte where CONFIG_WCE was accepted, and nothing
 * otherwise; not before FEATURES_OK. VQB_E_INVALID: the space is too short for it.
 */
VQB_API int32_t vqb_blk_cache(const void *space, size_t bytes, uint64_t accepted);

/* ---- checks ---- */

/*
 * May a read or write of `bytes` begin at `sector` of a disk of `capacity` sectors in blocks of
 * `block_size` bytes (a power of two from 512)? It must begin at a block, be whole blocks, and end
 * within capacity, without any sum or product that could wrap. No bytes at all are fine up to and
 * at the end of the disk.
 *
 * VQB_OK or VQB_E_INVALID.
 */
VQB_API int32_t vqb_blk_check(uint64_t capacity, uint32_t block_size, uint64_t sector,
			      uint64_t bytes);

/* The identity that GET_ID returned (20 bytes, perhaps without an end) as a C string. */
VQB_API void vqb_blk_id_text(const void *id, char text[VQB_BLK_ID_BYTES + 1]);

VQB_C_END

#endif
