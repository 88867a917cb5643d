/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices.h: short measurements of one ring implementation, on request.
 *
 * Two programs are compared by letting them work in turn, some milliseconds each, over and over:
 * what else the machine is doing then slows down both. So each program waits for a line on its
 * standard input that says what to do for how long, does it, and answers with a line.
 *
 *   RING,N,BATCH,INDIRECT,WINDOW,MILLISECONDS   ->   ns per request
 */
#ifndef BENCH_SLICES_H
#define BENCH_SLICES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Requests of `n` descriptors: a 16-byte header, n - 2 segments of 4 KiB (readable in even
 * requests, writable in odd ones) and a status byte; with n = 1 only the header. The device
 * fills arrays of pieces, sums their lengths, reads the header and writes the status; the driver
 * reads the length and the status.
 *
 * window 0: one thread adds a batch, serves it, takes it back. With `irq` both sides ask for
 * notifications again in every batch.
 * window not 0: driver and device poll, each on a CPU of its own. A batch is added whenever that
 * leaves at most `window` requests in flight.
 */
struct work {
	uint32_t ring, n, batch, window;
	bool indirect, event_idx, irq;
};

enum {
	WORK_SLOTS = 128,    /* different requests, all used in turn by two threads; */
	WORK_SLOTS_ONE = 32, /* this many by one */
	WORK_MAX_N = 128,
	WORK_MAX_BATCH = 32,
	WORK_PAGES = 256, /* of data */
	WORK_PAGE = 4096,
};

/* What a request shares with the device, in a cache line of its own. */
struct work_shared {
	uint32_t header[4];
	uint8_t status;
	uint8_t unused[47];
};

static inline uint32_t work_slots(const struct work *w)
{
	return w->window ? WORK_SLOTS : WORK_SLOTS_ONE;
}

/* Page of data that segment `j` of request `slot` lies in. */
static inline uint32_t work_page(uint32_t slot, uint32_t j)
{
	return (j * 7 + slot * 3) % WORK_PAGES;
}

struct engine {
	void *(*make)(const struct work *w);
	/* Goes on until that many more batches are done; answers how many requests were. */
	uint64_t (*run)(void *e, uint64_t batches);
	/*
	 * Takes back what is in flight and ends. Answers how many requests there were, and the sum
	 * of all that both sides saw: lengths of readable pieces and headers (which hold the slot's
	 * number) on the device, lengths written and status bytes on the driver.
	 */
	uint64_t (*drop)(void *e, uint64_t *requests);
};

/*
 * ns per request in one slice. It is cut into pieces of about 0.2 ms; those in which a thread lost
 * its CPU to somebody else are left out; of the others it is the lower decile, since what else
 * happens on the machine only ever adds. Where there is none, it is the fastest of those left out.
 * Ends the program if a request was lost or came to a wrong sum.
 */
double slice_ns(const struct engine *engine, const struct work *w, uint32_t ms);

/* Serves standard input until it ends. The requests are armed with EVENT_IDX, or polled. */
void slices_serve(const struct engine *engine);

#endif
