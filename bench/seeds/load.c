/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"

#include <string.h>

#include "machine.h"
#include "pieces.h"

bool load_open(struct load *l, const struct load_plan *plan, const struct image *image,
	       enum way way, bool plugs, bool joins)
{
	struct disk_plan disk = { .ring = LOAD_RING,
				  .requests = DEPTH,
				  .bytes = plan->bytes,
				  .sectors = vqb_file_bytes(image->file) >> VQB_SECTOR_SHIFT,
				  .joins = joins };

	memset(l, 0, sizeof(*l));
	if (!store_open(&l->store, image, way, LOAD_RING, plugs))
		return false;
	l->plan = *plan;
	l->blocks = vqb_file_bytes(image->file) / plan->bytes;
	disk.backend = l->store.backend;
	disk_open(&l->disk, &disk);
	return true;
}

void load_close(struct load *l)
{
	disk_close(&l->disk);
	store_close(&l->store);
}

static void ask(struct load *l, uint32_t i)
{
	uint64_t block = l->plan.random ? random_below(&l->random, (uint32_t)l->blocks) : l->block;

	if (!l->plan.random && ++l->block == l->blocks)
		l->block = 0;
	disk_ask(&l->disk, i, l->plan.type, block * (l->plan.bytes >> VQB_SECTOR_SHIFT));
	disk_add(&l->disk, i);
}

/* Until something has come back: how much. */
static uint32_t await(struct load *l)
{
	uint32_t n = disk_reap(&l->disk);

	while (!n) {
		check(vqb_notify_wait(&l->store.done, -1));
		l->waits++;
		disk_serve(&l->disk);
		n = disk_reap(&l->disk);
	}
	l->done += n;
	return n;
}

static void fill(struct load *l)
{
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(l, i);
	disk_serve(&l->disk);
}

/* What comes back is asked anew. */
static void step(struct load *l)
{
	uint32_t n = await(l);

	for (uint32_t k = 0; k < n; k++)
		ask(l, disk_back(&l->disk, k));
	disk_serve(&l->disk);
}

static void empty(struct load *l)
{
	while (vqb_driver_in_flight(l->disk.ends.drv))
		await(l);
}

void load_run(struct load *l, uint64_t requests)
{
	uint64_t until = l->done + (requests > DEPTH ? requests - DEPTH : 0);

	fill(l);
	while (l->done < until)
		step(l);
	empty(l);
}

static void run_piece(struct load *l, struct pieces *p)
{
	uint64_t done = l->done;

	piece_begin(p);
	do {
		step(l);
	} while (!piece_is_full(p));
	piece_end(p, l->done - done);
}

static uint64_t submissions(const struct load *l)
{
	struct vqb_blk_queue_counters counters;

	vqb_blk_queue_read_counters(l->disk.queue, &counters);
	return counters.submissions;
}

struct load_figures load_slice(struct load *l, uint32_t ms)
{
	static struct pieces p;
	uint64_t done = l->done, waits = l->waits, calls = store_calls(&l->store),
		 submitted = submissions(l);
	double start = now_ns(), requests;

	memset(&p, 0, sizeof(p));
	fill(l);
	while (p.all < MAX_PIECES && now_ns() - start < ms * 1e6)
		run_piece(l, &p);
	empty(l);
	requests = (double)(l->done - done);
	return (struct load_figures){
		.ns = pieces_good_ns(&p),
		.all_ns = pieces_all_ns(&p),
		.calls = (double)(store_calls(&l->store) - calls) / requests,
		.waits = (double)(l->waits - waits) / requests,
		.submissions = (double)(submissions(l) - submitted) / requests,
	};
}

void load_warm_up(struct load_pair *pair)
{
	pair->sleeps = false;
	for (uint32_t i = 0; i < 2; i++)
		pair->sleeps |= load_slice(&pair->load[i], 2 * SLICE_MS).waits > 0;
}

double load_round(struct load_pair *pair, uint32_t round, struct load_figures f[2])
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t which = (i + round) & 1;

		f[which] = load_slice(&pair->load[which], pair->sleeps ? LONG_SLICE_MS : SLICE_MS);
		if (pair->sleeps)
			f[which].ns = f[which].all_ns;
	}
	return f[0].ns / f[1].ns;
}
