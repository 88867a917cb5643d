/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events by chance for a blk driver whose device is played byte by byte: rings of 4 to 256 entries,
 * with and without tables and EVENT_IDX, fewer slots than entries; status bytes of every kind, used
 * ids that are none, NEEDS_RESET, resets after which everything is submitted again. Driver and
 * model (model/bio_model.h) agree after each.
 *
 * VQB_SEED repeats what was printed; VQB_LONG, VQB_SHORT: length.h.
 */
#include "model/blk_driver_sim.h"

enum { EPISODE = 1000 };

static struct blk_driver_sim sim;

/* Shows: K31 K32 K33 K37 K39 */
static void bios_fare_on_a_ring_as_if_nothing_had_been_merged(void **state)
{
	struct run run;

	(void)state;
	for (run_start(&run, 900 * 1000); run_episode(&run);) {
		blk_driver_sim_open(&sim, &run);
		for (uint32_t i = 0; i < EPISODE; i++)
			blk_driver_sim_step(&sim);
		blk_driver_sim_close(&sim);
	}
	printf("%" PRIu64 " events, %" PRIu64 " bios in %" PRIu64 " requests: %" PRIu64
	       " shared (up to %" PRIu64 "), %" PRIu64 " parts, %" PRIu64 " errors, %" PRIu64
	       " through tables, %" PRIu64 " resets, %" PRIu64 " broken, %" PRIu64 " waits\n",
	       sim.events, sim.bios, sim.sent, sim.shared, sim.longest, sim.parts, sim.errors,
	       sim.indirect, sim.resets, sim.broken, sim.waits);
	/* It was about something. */
	assert_true(sim.shared > sim.sent / 50 && sim.parts > sim.sent / 50 && sim.longest > 4);
	assert_true(sim.errors > sim.bios / 500 && sim.indirect > sim.sent / 50);
	assert_true(sim.resets > sim.broken && sim.broken > 5 && sim.waits > sim.events / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bios_fare_on_a_ring_as_if_nothing_had_been_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
