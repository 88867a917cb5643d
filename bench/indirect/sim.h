/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h: one queue in virtual time. Driver and device are the library's own, over one ring; what
 * is simulated is the time that passes and the work that the device does.
 *
 * The device is told of new requests by a kick, takes all there are, and serves each for about the
 * same time (`jitter` to either side: with none, requests go round in the waves of the first
 * moments for ever, and the figures are about those) on one of `parallel` servers; one that is done
 * is put and published at once, and interrupts a driver that has asked for it. The driver's thread
 * reaps all there is, adds what the load wants and the ring holds, and turns; it sleeps when
 * nothing is there. It is never asleep and charged at once: its own work is charged by the prices
 * below, in nanoseconds.
 */
#ifndef BENCH_INDIRECT_SIM_H
#define BENCH_INDIRECT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <vqblk/indirect.h>

/*
 * What the driver's thread pays. The ring's prices are rounded from bench-ring on the machine that
 * ../ring's figures come from; a kick and an interrupt are what leaving and entering a virtual
 * machine costs on such machines; a request costs its owner about what a block layer does.
 */
enum price {
	PRICE_REQUEST = 100, /* to whoever sends it */
	PRICE_ADD = 6,
	PRICE_DESCRIPTOR = 1,
	PRICE_TABLE = 2, /* on top, for one that goes through a table */
	PRICE_REAP = 2,  /* a call */
	PRICE_REAPED = 3,
	PRICE_TURN = 6,
	PRICE_KICK = 1500,
	PRICE_INTERRUPT = 1500,
};

enum { JITTER = 50 }; /* unless said otherwise */

enum { POLICIES = 5, DEVICES = 3, MAX_SEGMENTS = 66 };

/* The sizes of requests that there are, in segments. */
enum { SIZES = 4 };
extern const uint32_t sizes[SIZES];

struct policy_case {
	const char *name;
	uint32_t kind, threshold;
};

struct device_case {
	const char *name;
	uint64_t service; /* ns */
	uint32_t parallel;
};

extern const struct policy_case policy_cases[POLICIES];
extern const struct device_case device_cases[DEVICES];

enum policy_index { NEVER, ALWAYS, THRESHOLD, DECAY, ADAPTIVE };

enum shape {
	STEADY, /* `depth` requests of `segments` segments are always out or on their way */
	MIXED,  /* three in four have 3 segments, the others 66 */
	BURSTY, /* one burst of `depth`, two of an eighth, each with a pause before it */
	BOTH,
};

struct cell {
	uint32_t policy; /* enum policy_index */
	uint32_t segments, depth, ring;
	uint32_t device;
	uint32_t shape; /* enum shape; if mixed, `segments` is not used */
	uint32_t seed;
	uint32_t jitter; /* of the device's time, in thousandths */
};

/* How often each thing was done, for the price in instructions (cost.h). */
enum feature {
	DIRECT, /* requests, by size */
	INDIRECT = DIRECT + SIZES,
	SCATTERED_DESCRIPTORS =
		INDIRECT + SIZES, /* of direct requests that do not lie in one run */
	BREAKS,                   /* where these runs end */
	REFUSED,
	REAPS,
	TURNS,
	TAKES, /* calls */
	DEVICE_PUBLISHES,
	THRESHOLD_ASKED,
	DECAY_ASKED,
	FEATURES,
};

struct result {
	uint64_t requests;
	double per_second;
	double cpu;       /* ns of the driver's thread per request, without sleep */
	double occupancy; /* of the ring, when it turns */
	double tables;    /* in use then */
	double indirect;  /* share of the requests */
	uint64_t feature[FEATURES];
	double instructions; /* per request; filled in by cost_apply */
};

/* What a run takes: requests to get into a steady state, and requests to measure. */
struct extent {
	uint64_t warm, measure;
};

struct extent sim_extent(const struct cell *cell);
struct result sim_run(const struct cell *cell, struct extent extent);

#endif
