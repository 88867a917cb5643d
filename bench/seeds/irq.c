/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * irq.c: how many requests, kicks and interrupts does a bio take, with neighbours merged by the
 * guest and without, with EVENT_IDX and without? And do the two multiply?
 *
 * Reads of 512 bytes in order, 256 jobs, 64 bios out for each: what was measured when Linux's
 * driver got its path for bios. Three devices: one that finishes and announces one request after
 * the other, in one thread, where an interrupt arrives when so many more are finished, and all is
 * counted exactly; the same in a thread of its own; and one that announces together what it took
 * together.
 */
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "guest.h"
#include "parts.h"

enum { JOBS = 256, DEPTH = 64, LATE = 16 };

static const struct guest_plan devices[] = {
	{ .jobs = JOBS, .depth = DEPTH, .budget = 1, .slowly = LATE },
	{ .jobs = JOBS, .depth = DEPTH, .budget = 1, .threads = true, .copies = true },
	{ .jobs = JOBS, .depth = DEPTH, .budget = GUEST_RING, .threads = true, .copies = true },
};

enum { ALONE = 1, TOGETHER = 2, DEVICES = sizeof(devices) / sizeof(devices[0]) };

static const char *const device_names[] = { "counted", "alone", "together" };

/* The bio path first, which the others are compared with. */
static const struct {
	const char *name;
	uint32_t path;
	bool postpones;
} paths[] = { { "off", VQB_PATH_BIO, false },
	      { "on", VQB_PATH_REQUEST, false },
	      { "when full", VQB_PATH_MERGE_WHEN_FULL, false },
	      { "on, later", VQB_PATH_REQUEST, true } };

enum { PATHS = sizeof(paths) / sizeof(paths[0]), WAYS = 4 };

struct row {
	char name[64];
	struct guest_pair pair; /* without EVENT_IDX, with it */
};

static void measure(struct row *row, uint32_t device, uint32_t path, uint32_t way, uint32_t rounds)
{
	struct guest_plan plans[2];

	for (uint32_t event_idx = 0; event_idx < 2; event_idx++) {
		struct guest_plan *p = &plans[event_idx];

		*p = devices[device];
		p->path = paths[path].path;
		p->postpones = paths[path].postpones;
		p->one_by_one = way & 1;
		p->scattered = way & 2;
		p->flags = !event_idx;
	}
	snprintf(row->name, sizeof(row->name), "%-9s %-9s %-10s %-10s", device_names[device],
		 paths[path].name, way & 1 ? "one by one" : "lists",
		 way & 2 ? "scattered" : "contiguous");
	guest_compare(plans, rounds, rounds, &row->pair);
}

/* ---- tables ---- */

static void print_head(void)
{
	printf("irq: reads of 512 bytes in order, %d jobs with %d each: per bio, and requests for each "
	       "interrupt\n(counted: one thread, an interrupt arrives %d requests later; alone, "
	       "together: two threads, a device\nthat announces each request, or all that it took "
	       "at a time)\n%-41s   %-36s   %-36s\n%-9s %-9s %-10s %-10s",
	       JOBS, DEPTH, LATE, "", "without EVENT_IDX", "with", "device", "merging", "submitted",
	       "buffers");
	for (uint32_t i = 0; i < 2; i++)
		printf("   %8s %8s %10s %7s", "requests", "kicks", "interrupts", "req/int");
	printf("\n");
}

static void print_row(const struct row *row)
{
	printf("%s", row->name);
	for (uint32_t i = 0; i < 2; i++) {
		const struct summary *of = row->pair.of[i];

		printf("   %8.4f %8.5f %10.5f %7.1f", of[REQUESTS].median, of[KICKS].median,
		       of[INTERRUPTS].median, of[PER_INTERRUPT].median);
	}
	printf("\n");
	fflush(stdout);
}

/* How many times fewer interrupts than with neither. */
static double fewer(const struct row *none, const struct row *row, uint32_t event_idx)
{
	return none->pair.of[0][INTERRUPTS].median / row->pair.of[event_idx][INTERRUPTS].median;
}

static void print_answer(const char *device, const struct row *none, const struct row *merged)
{
	double merging = fewer(none, merged, 0), event_idx = fewer(none, none, 1),
	       both = fewer(none, merged, 1), share = both / (merging * event_idx);

	printf("%-9s lists, contiguous: merging has %.1f times fewer interrupts, EVENT_IDX %.1f, "
	       "both %.1f, and\n          the product is %.1f: they %s\n",
	       device, merging, event_idx, both, merging * event_idx,
	       share > 1.25  ? "do more than multiply"
	       : share < 0.8 ? "do not multiply"
			     : "multiply");
}

static void print_device(uint32_t device, const struct part_options *o)
{
	struct row row[PATHS];

	for (uint32_t way = WAYS; way-- > 0;) {
		for (uint32_t path = 0; path < PATHS; path++) {
			measure(&row[path], device, path, way, o->rounds);
			if (!o->only || strstr(row[path].name, o->only))
				print_row(&row[path]);
		}
	}
	print_answer(device_names[device], &row[0], &row[1]); /* of the last way */
}

/* ---- goals ---- */

static struct summary bios_for_request(struct summary s)
{
	return (struct summary){ s.runs, 1 / s.median, 1 / s.high, 1 / s.low };
}

/*
 * Whatever merges, however bios are submitted, wherever buffers are. With a device that announces
 * each request it is up to the guest to ask for fewer interrupts.
 */
static void claim(uint32_t rounds)
{
	static const struct {
		uint32_t device, path;
	} claimed[] = { { TOGETHER, 1 }, { TOGETHER, 2 }, { ALONE, 3 } };
	enum { ROWS = WAYS * sizeof(claimed) / sizeof(claimed[0]) };
	static struct row row[ROWS];
	struct contender factor[ROWS], per_interrupt[ROWS];

	for (uint32_t n = 0; n < ROWS; n++) {
		const struct summary *of = row[n].pair.of[1];

		measure(&row[n], claimed[n / WAYS].device, claimed[n / WAYS].path, n % WAYS,
			rounds);
		factor[n] = (struct contender){ row[n].name, bios_for_request(of[REQUESTS]) };
		per_interrupt[n] = (struct contender){ row[n].name, of[PER_INTERRUPT] };
	}
	claim_print_worst("seeds.merge_factor", 20, factor, ROWS);
	claim_print_worst("seeds.requests_per_interrupt", 33, per_interrupt, ROWS);
}

void irq_part(const struct part_options *o)
{
	if (o->claims) {
		claim(o->rounds);
		return;
	}
	print_head();
	for (uint32_t device = 0; device < DEVICES; device++)
		print_device(device, o);
}
