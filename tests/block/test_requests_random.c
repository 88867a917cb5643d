/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events by chance for lists of requests: bios of every kind, wrong ones too, plugs, no room,
 * completions in any order, bad sectors, cancels, resets, other limits and paths. Library and model
 * (model/bio_model.h) agree after each: every bio is done once, with the status that it would have
 * had alone; the disk is as if nothing had been merged; flushes are where they belong; whoever has
 * waited longest goes; every request is within limits.
 *
 * VQB_SEED repeats what was printed; VQB_LONG, VQB_SHORT: length.h.
 */
#include "model/requests_sim.h"

enum { EPISODE = 1500 };

static struct requests_sim sim;

/* Shows: K31 K32 K33 K35 K39 */
static void bios_fare_as_if_nothing_had_been_merged(void **state)
{
	struct run run;
	uint64_t episodes = 0;

	(void)state;
	for (run_start(&run, 900 * 1000); run_episode(&run); episodes++) {
		requests_sim_open(&sim, &run, NULL, NULL);
		for (uint32_t i = 0; i < EPISODE; i++)
			requests_sim_step(&sim);
		requests_sim_close(&sim);
	}
	printf("%" PRIu64 " events, %" PRIu64 " bios in %" PRIu64 " requests: %" PRIu64
	       " shared (up to %" PRIu64 "), %" PRIu64 " parts, %" PRIu64 " errors, %" PRIu64
	       " overtaken, %" PRIu64 " fronts first, %" PRIu64 " ends, %" PRIu64
	       " unsendable, %" PRIu64 " spared, %" PRIu64 " disks\n",
	       sim.events, sim.bios, sim.sent, sim.shared, sim.longest, sim.parts, sim.errors,
	       sim.overtaken, sim.passed, sim.ends, sim.unsendable, sim.runs, sim.compared);
	/* It was about something. */
	assert_true(sim.events > run.done && sim.shared > sim.sent / 40);
	assert_true(sim.parts > sim.sent / 20 && sim.errors > sim.bios / 200);
	assert_true(sim.longest > 8 && sim.overtaken && sim.passed && sim.compared > 2 * episodes);
}

static struct vqb_bio discard(uint64_t sector, uint64_t sectors)
{
	struct vqb_bio bio = { .op = VQB_BLK_DISCARD, .sector = sector, .sectors = sectors };

	return bio;
}

/* One that overlaps is left for later; when it is cancelled, others have the same neighbours. */
static void a_cancelled_bio_is_not_sent_along(void **state)
{
	static _Alignas(64) unsigned char mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_bio a = discard(30, 4), b = discard(26, 4), over = discard(28, 2);
	struct vqb_segment table[4];
	struct vqb_limits limits;
	struct vqb_requests_config config = { .struct_size = sizeof(config),
					      .path = VQB_PATH_REQUEST,
					      .max_ranges = 1,
					      .capacity = 64,
					      .limits = &limits };
	struct vqb_requests *rq;
	struct vqb_request r;

	(void)state;
	vqb_limits_init(&limits);
	limits.max_segments = 4;
	limits.discard.max_sectors = 64;
	limits.discard.max_ranges = 1;
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &config, &rq), VQB_OK);
	assert_int_equal(vqb_requests_submit(rq, &a), VQB_OK);
	assert_int_equal(vqb_requests_submit(rq, &b), VQB_OK);
	assert_int_equal(vqb_requests_submit(rq, &over), VQB_OK);
	assert_int_equal(vqb_requests_next(rq, &r, table, 4), VQB_OK);
	assert_int_equal(r.bios, 2);
	assert_int_equal(vqb_requests_cancel(rq, &over), VQB_OK);
	assert_int_equal(vqb_requests_cancel(rq, &a), VQB_OK);
	assert_int_equal(vqb_requests_next(rq, &r, table, 4), VQB_OK);
	assert_int_equal(r.bios, 1);
	assert_ptr_equal(r.bio, &b);
}

/* Half of it was sent; that the limits are looser now makes the other half no longer. */
static void other_limits_leave_the_rest_of_a_bio_what_it_is(void **state)
{
	static _Alignas(64) unsigned char mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_segment data = { .addr = MODEL_MEMORY, .len = 4096 }, table[4];
	struct vqb_bio bio = { .op = VQB_BLK_OUT, .vec = &data, .nvec = 1, .sector = 8 };
	struct vqb_limits limits;
	struct vqb_requests_config config = { .struct_size = sizeof(config),
					      .capacity = 64,
					      .limits = &limits };
	struct vqb_requests *rq;
	struct vqb_request r;

	(void)state;
	vqb_limits_init(&limits);
	limits.max_segments = 4;
	limits.max_sectors = 4;
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &config, &rq), VQB_OK);
	assert_int_equal(vqb_requests_submit(rq, &bio), VQB_OK);
	assert_int_equal(vqb_requests_next(rq, &r, table, 4), VQB_OK);
	assert_int_equal(r.bytes, 2048);
	vqb_requests_sent(rq, &r);
	limits.max_sectors = 64;
	assert_int_equal(vqb_requests_configure(rq, &config), VQB_OK);
	assert_int_equal(vqb_requests_next(rq, &r, table, 4), VQB_OK);
	assert_int_equal(r.sector, 12);
	assert_int_equal(r.bytes, 2048);
	assert_int_equal(r.n, 1);
	assert_true(table[0].addr == MODEL_MEMORY + 2048);
	assert_int_equal(table[0].len, 2048);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cancelled_bio_is_not_sent_along),
		cmocka_unit_test(other_limits_leave_the_rest_of_a_bio_what_it_is),
		cmocka_unit_test(bios_fare_as_if_nothing_had_been_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
