/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes a coalescer: the input decides what the configuration is, which requests arrive, when they
 * are flushed, submitted and finished, and how the backend fails. Each request has to come to what
 * it would have come to alone (support/coalesce_sim.h).
 */
#include "fuzz.h"

#define SIM_CHECK(holds) FUZZ_CHECK(holds)
#include "coalesce_sim.h"

enum { CONFIG = 48, MAX_STEPS = 4000 };

/* One byte for a choice among few, which is nearly every one. */
static uint32_t sim_choose(struct sim *s, uint32_t n)
{
	struct fuzz_input *in = (struct fuzz_input *)s->choice;

	return (n > 256 ? fuzz_u16(in) : fuzz_u8(in)) % n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sim sim;
	struct fuzz_input in = { data, data + size }, config = fuzz_cut(&in, CONFIG);

	sim_open(&sim, &config);
	sim.choice = &in;
	for (uint32_t step = 0; step < MAX_STEPS && fuzz_more(&in); step++)
		sim_step(&sim);
	sim_close(&sim);
	return 0;
}
