/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_check.c: may a bio be sent to this disk? What passes is cut into requests by the same
 * walk that has counted it here.
 */
#include "request.h"

/* All requests of a read or write are counted, up to the end of the disk. */
static int32_t check_data(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	struct vqb_mapper m = vqb_mapper_over(&rq->limits, bio->vec, bio->nvec, bio->sector);
	uint64_t bytes;
	uint32_t n;
	int32_t status;

	if (!vqb_mapper_more(&m))
		return VQB_E_INVALID;
	do {
		status = vqb_map_next(&m, NULL, UINT32_MAX, &n, &bytes);
		if (status)
			return status;
		if (m.sector > rq->capacity)
			return VQB_E_INVALID;
	} while (vqb_mapper_more(&m));
	*end = m.sector;
	return VQB_OK;
}

/* May it be a segment of a request, as it is, and behind the one before it, if there is one? */
static int is_segment(const struct vqb_limits *l, const struct vqb_segment *v, int first)
{
	return v->addr + (v->len - 1) <= reach(v->addr, l->max_segment_bytes, l->seg_boundary) &&
	       (first || !vqb_segments_gap(l, v - 1, v));
}

/* The answer to a question about the device: so many bytes, cut as the caller likes. */
static int32_t check_answer(const struct vqb_requests *rq, const struct vqb_bio *bio,
			    uint32_t wanted)
{
	const struct vqb_segment *v = bio->vec;
	uint32_t i, bytes = 0;
	int fits = 1;

	for (i = 0; i < bio->nvec && bytes < wanted; i++, v++) {
		if (!v->len || v->len > wanted - bytes || v->zero ||
		    v->addr > UINT64_MAX - (v->len - 1))
			return VQB_E_INVALID;
		bytes += v->len;
		fits &= is_segment(&rq->limits, v, !i);
	}
	if (bytes != wanted || i != bio->nvec)
		return VQB_E_INVALID;
	return fits && i <= rq->limits.max_segments ? VQB_OK : VQB_E_TOOBIG;
}

static int32_t check_ranges(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	uint32_t block = rq->limits.block_size >> VQB_SECTOR_SHIFT;

	if (!range_limits(&rq->limits, bio->op)->max_ranges)
		return VQB_E_UNSUPP;
	if (bio->nvec || !bio->sectors || (bio->sector | bio->sectors) & (block - 1))
		return VQB_E_INVALID;
	if (bio->sector > rq->capacity || bio->sectors > rq->capacity - bio->sector)
		return VQB_E_INVALID;
	*end = bio->sector + bio->sectors;
	return VQB_OK;
}

/* The flags that an op may have. */
static uint32_t flags_of(uint32_t op)
{
	uint32_t flags = VQB_BIO_NOMERGE;

	if (op == VQB_BLK_OUT || op == VQB_BLK_WRITE_ZEROES)
		flags |= VQB_BIO_FUA | VQB_BIO_PREFLUSH;
	if (op == VQB_BLK_WRITE_ZEROES)
		flags |= VQB_BIO_UNMAP;
	return flags;
}

int32_t vqb__request_check(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	*end = 0;
	if (bio->flags & ~flags_of(bio->op) || bio->zero || (bio->nvec && !bio->vec))
		return VQB_E_INVALID;
	switch (bio->op) {
	case VQB_BLK_OUT:
		if (request_has(rq, VQB_BLK_F_RO))
			return VQB_E_UNSUPP;
		/* fall through */
	case VQB_BLK_IN:
		return check_data(rq, bio, end);
	case VQB_BLK_FLUSH:
		if (!request_has(rq, VQB_BLK_F_FLUSH))
			return VQB_E_UNSUPP;
		return bio->nvec ? VQB_E_INVALID : VQB_OK;
	case VQB_BLK_GET_ID:
		return check_answer(rq, bio, VQB_BLK_ID_BYTES);
	case VQB_BLK_GET_LIFETIME:
		if (!request_has(rq, VQB_BLK_F_LIFETIME))
			return VQB_E_UNSUPP;
		return check_answer(rq, bio, VQB_BLK_LIFETIME_BYTES);
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		if (request_has(rq, VQB_BLK_F_RO))
			return VQB_E_UNSUPP;
		return check_ranges(rq, bio, end);
	default:
		return VQB_E_UNSUPP;
	}
}
