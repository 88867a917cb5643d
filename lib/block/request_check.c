/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_check.c: may a bio be sent to this disk, and if not, why? What passes is cut into
 * requests by the same walk that has counted it here.
 */
#include "request.h"

static int is_at_block(const struct vqb_requests *rq, uint64_t sector)
{
	return !(sector & ((rq->limits.block_size - 1) >> VQB_SECTOR_SHIFT));
}

/* Why the walk called a read or write from a block on invalid, in whichever request that was. */
static uint32_t why_invalid(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < bio->nvec; i++) {
		if (!vector_is_good(&bio->vec[i], 0))
			return VQB_BIO_RULE_SEGMENT;
		bytes += bio->vec[i].len;
	}
	return bytes & (rq->limits.block_size - 1) ? VQB_BIO_RULE_BLOCK : VQB_BIO_RULE_CAPACITY;
}

/* All requests of a read or write are counted, up to the end of the disk. */
static uint32_t data_rule(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	struct vqb_mapper m = vqb_mapper_over(&rq->limits, bio->vec, bio->nvec, bio->sector);
	uint64_t bytes;
	uint32_t n;
	int32_t status;

	if (!vqb_mapper_more(&m))
		return VQB_BIO_RULE_EMPTY;
	if (!is_at_block(rq, bio->sector))
		return VQB_BIO_RULE_BLOCK;
	do {
		status = vqb_map_next(&m, NULL, UINT32_MAX, &n, &bytes);
		if (status == VQB_E_TOOBIG)
			return VQB_BIO_RULE_LIMITS;
		if (status)
			return why_invalid(rq, bio);
		if (m.sector > rq->capacity)
			return VQB_BIO_RULE_CAPACITY;
	} while (vqb_mapper_more(&m));
	*end = m.sector;
	return VQB_BIO_RULE_FINE;
}

/* May it be a segment of a request, as it is, and behind the one before it, if there is one? */
static int is_segment(const struct vqb_limits *l, const struct vqb_segment *v, int first)
{
	return v->addr + (v->len - 1) <= reach(v->addr, l->max_segment_bytes, l->seg_boundary) &&
	       (first || !vqb_segments_gap(l, v - 1, v));
}

/* The answer to a question about the device: so many bytes, cut as the caller likes. */
static uint32_t answer_rule(const struct vqb_requests *rq, const struct vqb_bio *bio,
			    uint32_t wanted)
{
	const struct vqb_segment *v = bio->vec;
	uint32_t i, bytes = 0;
	int fits = 1;

	for (i = 0; i < bio->nvec && bytes < wanted; i++, v++) {
		if (!vector_is_good(v, 0))
			return VQB_BIO_RULE_SEGMENT;
		if (v->len > wanted - bytes)
			return VQB_BIO_RULE_LENGTH;
		bytes += v->len;
		fits &= is_segment(&rq->limits, v, !i);
	}
	if (bytes != wanted || i != bio->nvec)
		return VQB_BIO_RULE_LENGTH;
	return fits && i <= rq->limits.max_segments ? VQB_BIO_RULE_FINE : VQB_BIO_RULE_LIMITS;
}

static uint32_t ranges_rule(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	if (request_has(rq, VQB_BLK_F_RO))
		return VQB_BIO_RULE_READ_ONLY;
	if (!range_limits(&rq->limits, bio->op)->max_ranges)
		return VQB_BIO_RULE_FEATURE;
	if (bio->nvec)
		return VQB_BIO_RULE_DATA;
	if (!bio->sectors)
		return VQB_BIO_RULE_EMPTY;
	if (!is_at_block(rq, bio->sector | bio->sectors))
		return VQB_BIO_RULE_BLOCK;
	if (bio->sector > rq->capacity || bio->sectors > rq->capacity - bio->sector)
		return VQB_BIO_RULE_CAPACITY;
	*end = bio->sector + bio->sectors;
	return VQB_BIO_RULE_FINE;
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

uint32_t vqb__request_rule(const struct vqb_requests *rq, const struct vqb_bio *bio, uint64_t *end)
{
	*end = 0;
	if (bio->zero || (bio->nvec && !bio->vec))
		return VQB_BIO_RULE_FORM;
	if (bio->flags & ~flags_of(bio->op))
		return VQB_BIO_RULE_FLAG;
	switch (bio->op) {
	case VQB_BLK_OUT:
		if (request_has(rq, VQB_BLK_F_RO))
			return VQB_BIO_RULE_READ_ONLY;
		/* fall through */
	case VQB_BLK_IN:
		return data_rule(rq, bio, end);
	case VQB_BLK_FLUSH:
		if (!request_has(rq, VQB_BLK_F_FLUSH))
			return VQB_BIO_RULE_FEATURE;
		return bio->nvec ? VQB_BIO_RULE_DATA : VQB_BIO_RULE_FINE;
	case VQB_BLK_GET_ID:
		return answer_rule(rq, bio, VQB_BLK_ID_BYTES);
	case VQB_BLK_GET_LIFETIME:
		if (!request_has(rq, VQB_BLK_F_LIFETIME))
			return VQB_BIO_RULE_FEATURE;
		return answer_rule(rq, bio, VQB_BLK_LIFETIME_BYTES);
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		return ranges_rule(rq, bio, end);
	default:
		return VQB_BIO_RULE_OP;
	}
}

int32_t vqb__request_status(uint32_t rule)
{
	switch (rule) {
	case VQB_BIO_RULE_FINE:
		return VQB_OK;
	case VQB_BIO_RULE_HELD:
		return VQB_E_BUSY;
	case VQB_BIO_RULE_OP:
	case VQB_BIO_RULE_READ_ONLY:
	case VQB_BIO_RULE_FEATURE:
		return VQB_E_UNSUPP;
	case VQB_BIO_RULE_LIMITS:
	case VQB_BIO_RULE_RING_SIZE:
		return VQB_E_TOOBIG;
	default:
		return VQB_E_INVALID;
	}
}

int32_t vqb_requests_check(const struct vqb_requests *rq, const struct vqb_bio *bio, uint32_t *rule)
{
	uint32_t broken = VQB_BIO_RULE_FINE;
	uint64_t end;

	if (request_is_held(bio))
		broken = VQB_BIO_RULE_HELD;
	else if (!request_is_plain(rq, bio))
		broken = vqb__request_rule(rq, bio, &end);
	if (rule)
		*rule = broken;
	return vqb__request_status(broken);
}

uint32_t vqb__request_segments(const struct vqb_requests *rq, const struct vqb_bio *bio)
{
	struct vqb_mapper m = vqb_mapper_over(&rq->limits, bio->vec, bio->nvec, bio->sector);
	uint64_t bytes;
	uint32_t n;

	if (request_flushes_first(rq, bio))
		return 0;
	switch (bio->op) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		(void)vqb_map_next(&m, NULL, UINT32_MAX, &n, &bytes);
		return n;
	case VQB_BLK_DISCARD:
	case VQB_BLK_WRITE_ZEROES:
	case VQB_BLK_SECURE_ERASE:
		return 1;
	default:
		return bio->nvec;
	}
}
