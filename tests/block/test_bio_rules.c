/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a bio is refused: each rule by a bio that breaks it and is fine but for that, in front of a
 * list of requests and of a blk driver with the same limits. What check says, submit answers.
 */
#include "blk_driver_bench.h"

enum { BLOCK = 1024 };

#define ALL_FEATURES                                                                               \
	(BIT(FLUSH) | BIT(LIFETIME) | BIT(DISCARD) | BIT(WRITE_ZEROES) | BIT(SECURE_ERASE))

static _Alignas(64) unsigned char requests_mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
static struct vqb_requests *rq;
static uint64_t shown; /* rules, by bit */

static struct vqb_requests_config requests_config(const struct guest *g)
{
	struct vqb_requests_config config = {
		.struct_size = sizeof(config),
		.max_ranges = g->config.ranges,
		.features = g->config.features,
		.capacity = g->limits.capacity,
		.limits = &g->mapping,
	};

	return config;
}

/* Both of them; there are all operations but SECURE_ERASE, whose ranges limits say nothing of. */
static struct guest *plan(void **state, uint32_t ring_size)
{
	struct guest *g = guest_plan(state, ring_size);

	vqb_limits_init(&g->mapping);
	g->mapping.block_size = g->mapping.split_align = BLOCK;
	g->mapping.max_segments = SEGMENTS;
	g->mapping.seg_boundary = 0xffff;
	g->mapping.virt_boundary = 511;
	g->mapping.discard.max_sectors = g->mapping.zeroes.max_sectors = 64;
	g->mapping.discard.max_ranges = g->mapping.zeroes.max_ranges = 1;
	g->config.mapping = &g->mapping;
	g->config.features = ALL_FEATURES;
	return g;
}

static void start(struct guest *g)
{
	struct vqb_requests_config config = requests_config(g);

	assert_int_equal(guest_init(g), VQB_OK);
	assert_int_equal(vqb_requests_init(requests_mem, sizeof(requests_mem), &config, &rq),
			 VQB_OK);
}

static struct guest *open_both(void **state, uint64_t features)
{
	struct guest *g = plan(state, 16);

	g->config.features = features;
	start(g);
	return g;
}

/* Bio 0, with nothing wrong: two blocks of data whose second lies in two segments, or a range. */
static struct vqb_bio *fine(struct guest *g, uint8_t op)
{
	struct vqb_bio *bio = &g->bio[0];

	memset(bio, 0, sizeof(*bio));
	bio->op = op;
	bio->sector = 8;
	bio->vec = g->seg;
	for (unsigned i = 0; i < 8; i++)
		g->seg[i] = (struct vqb_segment){ BENCH_DATA_AT + 0x10000 * i, 512, 0 };
	switch (op) {
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		g->seg[0].len = 1536;
		bio->nvec = 2;
		break;
	case VQB_BLK_GET_ID:
	case VQB_BLK_GET_LIFETIME:
		g->seg[0].len = op == VQB_BLK_GET_ID ? 20 : 6;
		bio->nvec = 1;
		break;
	case VQB_BLK_FLUSH:
		break;
	default:
		bio->sectors = 8;
		break;
	}
	return bio;
}

/* The same of one segment, which most bios have. */
static struct vqb_bio *fine_single(struct guest *g, uint8_t op)
{
	struct vqb_bio *bio = fine(g, op);

	g->seg[0].len = BLOCK;
	bio->nvec = 1;
	return bio;
}

static uint32_t blk_rule(const struct guest *g, const struct vqb_bio *bio, int32_t status)
{
	struct vqb_bio before = *bio;
	uint32_t rule = 99;

	assert_int_equal(vqb_blk_check_bio(g->drv, bio, &rule), status);
	assert_int_equal(vqb_blk_check_bio(g->drv, bio, NULL), status);
	assert_memory_equal(bio, &before, sizeof(before));
	shown |= UINT64_C(1) << rule;
	return rule;
}

static uint32_t requests_rule(const struct vqb_bio *bio, int32_t status)
{
	struct vqb_bio before = *bio;
	uint32_t rule = 99;

	assert_int_equal(vqb_requests_check(rq, bio, &rule), status);
	assert_int_equal(vqb_requests_check(rq, bio, NULL), status);
	assert_memory_equal(bio, &before, sizeof(before));
	return rule;
}

static void accepted(struct guest *g, struct vqb_bio *bio)
{
	assert_int_equal(requests_rule(bio, VQB_OK), VQB_BIO_RULE_FINE);
	assert_int_equal(vqb_requests_submit(rq, bio), VQB_OK);
	assert_int_equal(vqb_requests_cancel(rq, bio), VQB_OK);
	assert_int_equal(blk_rule(g, bio, VQB_OK), VQB_BIO_RULE_FINE);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_OK);
	assert_int_equal(guest_drain(g), 1);
}

static void refused(struct guest *g, struct vqb_bio *bio, uint32_t rule, int32_t status)
{
	assert_int_equal(requests_rule(bio, status), rule);
	assert_int_equal(vqb_requests_submit(rq, bio), status);
	assert_int_equal(blk_rule(g, bio, status), rule);
	assert_int_equal(vqb_blk_submit(g->drv, bio), status);
	assert_int_equal(bio->status, status);
	assert_int_equal(vqb_requests_waiting(rq) + vqb_blk_outstanding(g->drv), 0);
}

/* What `make` makes is accepted, and no more so once `field` of it has that value. */
#define BREAKS(make, op_, field, value, rule, status)                                              \
	do {                                                                                       \
		struct vqb_bio *made = make(g, op_);                                               \
                                                                                                   \
		accepted(g, made);                                                                 \
		made = make(g, op_);                                                               \
		made->field = (value);                                                             \
		refused(g, made, rule, status);                                                    \
	} while (0)

#define BREAKS_SEGMENT(make, op_, i, field, value, rule, status)                                   \
	do {                                                                                       \
		struct vqb_bio *made = make(g, op_);                                               \
                                                                                                   \
		accepted(g, made);                                                                 \
		made = make(g, op_);                                                               \
		g->seg[i].field = (value);                                                         \
		refused(g, made, rule, status);                                                    \
	} while (0)

/* ---- rules that a bio alone breaks ---- */

static void fields_that_make_no_sense_are_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);

	BREAKS(fine, VQB_BLK_IN, zero, 1, VQB_BIO_RULE_FORM, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_OUT, zero, 1, VQB_BIO_RULE_FORM, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_FLUSH, zero, 1, VQB_BIO_RULE_FORM, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_IN, vec, NULL, VQB_BIO_RULE_FORM, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_IN, vec, NULL, VQB_BIO_RULE_FORM, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_GET_ID, vec, NULL, VQB_BIO_RULE_FORM, VQB_E_INVALID);
}

static void flags_that_an_op_does_not_have_are_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);

	BREAKS(fine, VQB_BLK_IN, flags, VQB_BIO_FUA, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_IN, flags, VQB_BIO_PREFLUSH, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_OUT, flags, VQB_BIO_UNMAP, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_WRITE_ZEROES, flags, 16, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, flags, VQB_BIO_UNMAP, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_FLUSH, flags, VQB_BIO_FUA, VQB_BIO_RULE_FLAG, VQB_E_INVALID);
}

static void data_and_sectors_are_there_where_they_have_to_be(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);

	BREAKS(fine, VQB_BLK_IN, nvec, 0, VQB_BIO_RULE_EMPTY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_OUT, nvec, 0, VQB_BIO_RULE_EMPTY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sectors, 0, VQB_BIO_RULE_EMPTY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_WRITE_ZEROES, sectors, 0, VQB_BIO_RULE_EMPTY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_FLUSH, nvec, 1, VQB_BIO_RULE_DATA, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, nvec, 1, VQB_BIO_RULE_DATA, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_WRITE_ZEROES, nvec, 1, VQB_BIO_RULE_DATA, VQB_E_INVALID);
}

static void what_is_no_whole_block_is_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);

	BREAKS(fine, VQB_BLK_IN, sector, 9, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_OUT, sector, 9, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_OUT, nvec, 1, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sector, 9, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sectors, 9, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_IN, 1, len, 511, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS_SEGMENT(fine_single, VQB_BLK_IN, 0, len, 512, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
	BREAKS_SEGMENT(fine_single, VQB_BLK_IN, 0, len, 1, VQB_BIO_RULE_BLOCK, VQB_E_INVALID);
}

static void bad_segments_are_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	const uint64_t end = UINT64_MAX - 100;

	BREAKS_SEGMENT(fine, VQB_BLK_IN, 1, len, 0, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_OUT, 0, zero, 1, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_OUT, 1, addr, end, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine_single, VQB_BLK_IN, 0, len, 0, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine_single, VQB_BLK_IN, 0, zero, 1, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine_single, VQB_BLK_IN, 0, addr, end, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, len, 0, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, zero, 1, VQB_BIO_RULE_SEGMENT, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, addr, UINT64_MAX - 10, VQB_BIO_RULE_SEGMENT,
		       VQB_E_INVALID);
}

static void answers_have_one_length(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);

	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, len, 19, VQB_BIO_RULE_LENGTH, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, len, 21, VQB_BIO_RULE_LENGTH, VQB_E_INVALID);
	BREAKS_SEGMENT(fine, VQB_BLK_GET_LIFETIME, 0, len, 5, VQB_BIO_RULE_LENGTH, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_GET_ID, nvec, 0, VQB_BIO_RULE_LENGTH, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_GET_ID, nvec, 2, VQB_BIO_RULE_LENGTH, VQB_E_INVALID);
}

/* ---- rules of the disk ---- */

static void what_this_device_does_not_do_is_named(void **state)
{
	static const uint8_t optional[] = { VQB_BLK_FLUSH, VQB_BLK_GET_LIFETIME };
	static const uint8_t writes[] = { VQB_BLK_OUT, VQB_BLK_DISCARD, VQB_BLK_WRITE_ZEROES };
	struct guest *g = open_both(state, ALL_FEATURES);
	struct vqb_requests_config config;
	unsigned i;

	BREAKS(fine, VQB_BLK_DISCARD, op, VQB_BLK_SECURE_ERASE, VQB_BIO_RULE_FEATURE, VQB_E_UNSUPP);
	BREAKS(fine, VQB_BLK_IN, op, 2, VQB_BIO_RULE_OP, VQB_E_UNSUPP);
	BREAKS(fine, VQB_BLK_IN, op, VQB_BLK_ZONE_APPEND, VQB_BIO_RULE_OP, VQB_E_UNSUPP);
	for (i = 0; i < sizeof(optional); i++)
		accepted(g, fine(g, optional[i]));
	for (i = 0; i < sizeof(writes); i++)
		accepted(g, fine(g, writes[i]));

	g->config.features = BIT(RO);
	assert_int_equal(vqb_blk_driver_configure(g->drv, &g->config), VQB_OK);
	config = requests_config(g);
	assert_int_equal(vqb_requests_configure(rq, &config), VQB_OK);
	for (i = 0; i < sizeof(optional); i++)
		refused(g, fine(g, optional[i]), VQB_BIO_RULE_FEATURE, VQB_E_UNSUPP);
	for (i = 0; i < sizeof(writes); i++)
		refused(g, fine(g, writes[i]), VQB_BIO_RULE_READ_ONLY, VQB_E_UNSUPP);
	refused(g, fine_single(g, VQB_BLK_OUT), VQB_BIO_RULE_READ_ONLY, VQB_E_UNSUPP);
	accepted(g, fine(g, VQB_BLK_IN));
}

static void no_ranges_in_the_configuration_are_no_such_op(void **state)
{
	struct guest *g = plan(state, 16);

	start(g);
	accepted(g, fine(g, VQB_BLK_DISCARD));
	g->config.ranges = 0;
	start(g);
	refused(g, fine(g, VQB_BLK_DISCARD), VQB_BIO_RULE_FEATURE, VQB_E_UNSUPP);
}

static void what_is_past_the_end_is_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	const uint64_t last = UINT64_MAX - 1;

	BREAKS(fine, VQB_BLK_IN, sector, CAPACITY, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_OUT, sector, CAPACITY - 2, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_IN, sector, last, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_IN, sector, CAPACITY, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_IN, sector, last, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sector, CAPACITY, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sectors, CAPACITY, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine, VQB_BLK_DISCARD, sectors, last, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
}

/* A disk up to the last sector that has a number, or nearly. */
static void sectors_do_not_wrap_unnamed(void **state)
{
	struct guest *g = plan(state, 16);

	g->limits.capacity = UINT64_MAX;
	start(g);
	BREAKS(fine, VQB_BLK_IN, sector, UINT64_MAX - 1, VQB_BIO_RULE_CAPACITY, VQB_E_INVALID);
	BREAKS(fine_single, VQB_BLK_IN, sector, UINT64_MAX - 1, VQB_BIO_RULE_CAPACITY,
	       VQB_E_INVALID);
}

static void what_limits_let_through_in_no_request_is_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	struct vqb_bio *bio;

	/* A gap in its second block: of two requests, the second one can't be made. */
	BREAKS_SEGMENT(fine, VQB_BLK_IN, 1, addr, BENCH_DATA_AT + 256, VQB_BIO_RULE_LIMITS,
		       VQB_E_TOOBIG);
	/* Across a seg_boundary: data is cut there, and what is sent as it is isn't. */
	BREAKS_SEGMENT(fine, VQB_BLK_GET_ID, 0, addr, BENCH_DATA_AT + 0x10000 - 10,
		       VQB_BIO_RULE_LIMITS, VQB_E_TOOBIG);
	bio = fine_single(g, VQB_BLK_IN);
	g->seg[0].addr = BENCH_DATA_AT + 0x10000 - 512;
	accepted(g, bio);
}

/* ---- whose it is, and the ring ---- */

static void a_bio_that_is_held_is_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	struct vqb_bio *bio = fine(g, VQB_BLK_IN), *list;
	struct vqb_plug plug = { 0 };

	assert_int_equal(vqb_plug_add(&plug, g->drv, bio), VQB_OK);
	assert_int_equal(blk_rule(g, bio, VQB_E_BUSY), VQB_BIO_RULE_HELD);
	assert_int_equal(requests_rule(bio, VQB_E_BUSY), VQB_BIO_RULE_HELD);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_BUSY);
	assert_ptr_equal(vqb_plug_take(&plug, &list), g->drv);
	assert_int_equal(blk_rule(g, bio, VQB_OK), VQB_BIO_RULE_FINE);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_OK);
	assert_int_equal(blk_rule(g, bio, VQB_E_BUSY), VQB_BIO_RULE_HELD);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_BUSY);
	vqb_driver_needs_reset(g->ring.drv); /* it is held first of all */
	assert_int_equal(blk_rule(g, bio, VQB_E_BUSY), VQB_BIO_RULE_HELD);
	assert_int_equal(vqb_blk_submit(g->drv, bio), VQB_E_BUSY);

	bio = fine(g, VQB_BLK_OUT);
	assert_int_equal(vqb_requests_submit(rq, bio), VQB_OK);
	assert_int_equal(requests_rule(bio, VQB_E_BUSY), VQB_BIO_RULE_HELD);
	assert_int_equal(vqb_requests_submit(rq, bio), VQB_E_BUSY);
}

static void ring_says(struct guest *g, int32_t status)
{
	struct vqb_bio *bio = fine(g, VQB_BLK_IN);

	assert_int_equal(blk_rule(g, bio, status), VQB_BIO_RULE_RING);
	assert_int_equal(vqb_blk_submit(g->drv, bio), status);
	bio->op = VQB_BLK_ZONE_APPEND; /* which comes after the ring */
	assert_int_equal(blk_rule(g, bio, status), VQB_BIO_RULE_RING);
	assert_int_equal(vqb_blk_submit(g->drv, bio), status);
}

static void the_state_of_the_ring_is_named(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	struct vqb_bio *done;

	bench_give(&g->ring, 3, 1); /* which was never lent */
	assert_int_equal(vqb_blk_reap(g->drv, &done), 0);
	ring_says(g, VQB_E_BROKEN);
	assert_int_equal(vqb_driver_reset(g->ring.drv, NULL), VQB_OK);
	ring_says(g, VQB_E_INVALID);
	assert_int_equal(vqb_blk_abandon(g->drv, &done), VQB_OK);
	guest_restart(g);
	accepted(g, fine(g, VQB_BLK_IN));
	vqb_driver_needs_reset(g->ring.drv);
	ring_says(g, VQB_E_NEEDS_RESET);
}

/* Bio `i` with so many segments, none of them the next one's neighbour: a block for each. */
static struct vqb_bio *of_segments(struct guest *g, unsigned i, uint32_t nvec)
{
	return guest_bio(g, i, VQB_BLK_OUT, 8, nvec, nvec * BLOCK);
}

static void blk_answers(struct guest *g, struct vqb_bio *bio, uint32_t rule, int32_t status)
{
	assert_int_equal(blk_rule(g, bio, status), rule);
	assert_int_equal(vqb_blk_submit(g->drv, bio), status);
}

static void limits_for_a_larger_ring_are_named(void **state)
{
	struct guest *g = plan(state, 4);
	struct vqb_bio *bio;

	start(g);
	blk_answers(g, of_segments(g, 0, 3), VQB_BIO_RULE_RING_SIZE, VQB_E_TOOBIG);
	bio = fine(g, VQB_BLK_DISCARD);
	blk_answers(g, bio, VQB_BIO_RULE_FINE, VQB_OK);
	assert_int_equal(guest_drain(g), 1);
	memset(bio, 0, sizeof(*bio));
	blk_answers(g, of_segments(g, 0, 2), VQB_BIO_RULE_FINE, VQB_OK);
	/* With the ring full, it is tried all the same, and is too long for any. */
	blk_answers(g, of_segments(g, 4, 3), VQB_BIO_RULE_RING_SIZE, VQB_E_TOOBIG);
	/* But if somebody waits, it does, too. */
	blk_answers(g, of_segments(g, 8, 1), VQB_BIO_RULE_FINE, VQB_OK);
	assert_int_equal(vqb_blk_waiting(g->drv), 1);
	blk_answers(g, of_segments(g, 12, 3), VQB_BIO_RULE_FINE, VQB_OK);
	assert_int_equal(guest_drain(g), 3);
	assert_int_equal(g->bio[12].status, VQB_E_TOOBIG);

	/* Its flush goes first, and fits. */
	bio = of_segments(g, 0, 3);
	bio->flags = VQB_BIO_PREFLUSH;
	blk_answers(g, bio, VQB_BIO_RULE_FINE, VQB_OK);
	assert_int_equal(guest_drain(g), 1);
	assert_int_equal(bio->status, VQB_E_TOOBIG);
}

static void without_a_slot_it_waits_however_long_it_is(void **state)
{
	struct guest *g = plan(state, 4);

	g->config.depth = 1;
	start(g);
	blk_answers(g, of_segments(g, 0, 1), VQB_BIO_RULE_FINE, VQB_OK);
	blk_answers(g, of_segments(g, 4, 3), VQB_BIO_RULE_FINE, VQB_OK);
	assert_int_equal(vqb_blk_waiting(g->drv), 1);
}

/* ---- all of it ---- */

/* Each number of an op and each set of flags, with data and sectors or without. */
static void check_and_submit_never_disagree(void **state)
{
	struct guest *g = open_both(state, ALL_FEATURES);
	uint32_t accepts = 0;

	for (uint32_t i = 0; i < 256 * 64 * 4; i++) {
		struct vqb_bio *bio = fine(g, VQB_BLK_IN);
		uint32_t rule = 99;
		int32_t status;

		bio->op = (uint8_t)(i / 256);
		bio->flags = (uint8_t)(i / 4 % 64);
		bio->nvec = i % 2 ? 2 : 0;
		bio->sectors = i & 2 ? 8 : 0;
		status = vqb_requests_check(rq, bio, &rule);
		assert_int_equal(vqb_requests_submit(rq, bio), status);
		assert_int_equal(rule == VQB_BIO_RULE_FINE, status == VQB_OK);
		assert_int_equal(vqb_blk_check_bio(g->drv, bio, NULL),
				 status ? status : VQB_E_BUSY);
		if (!status)
			assert_int_equal(vqb_requests_cancel(rq, bio), VQB_OK);
		accepts += !status;
	}
	/* Flags: IN 2, OUT 8, FLUSH 2, DISCARD 2, WRITE_ZEROES 16; each in one or two shapes. */
	assert_int_equal(accepts, 2 * 2 + 8 * 2 + 2 * 2 + 2 + 16);
}

static void every_rule_was_shown(void **state)
{
	(void)state;
	assert_int_equal(shown, (UINT64_C(2) << VQB_BIO_RULE_RING_SIZE) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(fields_that_make_no_sense_are_named),
		guest_test(flags_that_an_op_does_not_have_are_named),
		guest_test(data_and_sectors_are_there_where_they_have_to_be),
		guest_test(what_is_no_whole_block_is_named),
		guest_test(bad_segments_are_named),
		guest_test(answers_have_one_length),
		guest_test(what_this_device_does_not_do_is_named),
		guest_test(no_ranges_in_the_configuration_are_no_such_op),
		guest_test(what_is_past_the_end_is_named),
		guest_test(sectors_do_not_wrap_unnamed),
		guest_test(what_limits_let_through_in_no_request_is_named),
		guest_test(a_bio_that_is_held_is_named),
		guest_test(the_state_of_the_ring_is_named),
		guest_test(limits_for_a_larger_ring_are_named),
		guest_test(without_a_slot_it_waits_however_long_it_is),
		guest_test(check_and_submit_never_disagree),
		guest_test(every_rule_was_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
