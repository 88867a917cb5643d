/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "guest.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "machine.h"
#include "pieces.h"

enum {
	REGION = 128,   /* blocks of a job, where they go in order */
	SEGMENTS = 126, /* of a request, as QEMU has it */
	APART = 2,      /* blocks between two buffers that are no neighbours */
};

#define ANYWHERE (UINT32_C(1) << 31) /* sectors of a disk that is nothing */

/* ---- setting up ---- */

static uint32_t bios_of(const struct guest_plan *plan)
{
	return plan->jobs * plan->depth;
}

static struct vqb_backend *open_backend(struct guest *g, uint64_t bytes)
{
	struct vqb_backend *backend;
	struct vqb_backend_memory_config config = { .struct_size = sizeof(config),
						    .access = VQB_READ | VQB_WRITE,
						    .bytes = bytes };

	if (!g->plan.copies) {
		g->backend_mem = zeroed(vqb_backend_null_size());
		check(vqb_backend_null_init(g->backend_mem, vqb_backend_null_size(), bytes,
					    &backend));
		return backend;
	}
	g->store = zeroed(bytes);
	config.disk = g->store;
	g->backend_mem = zeroed(vqb_backend_memory_size());
	check(vqb_backend_memory_init(g->backend_mem, vqb_backend_memory_size(), &config,
				      &backend));
	return backend;
}

static void open_device(struct guest *g)
{
	const struct guest_plan *p = &g->plan;
	uint64_t sectors = p->copies ? (uint64_t)p->jobs * REGION : ANYWHERE;
	struct disk_plan plan = {
		.ring = GUEST_RING,
		.sectors = sectors,
		.backend = open_backend(g, sectors << VQB_SECTOR_SHIFT),
		.segments = SEGMENTS,
		.small = VQB_BLK_AREA_BYTES(GUEST_RING, 0),
		.data = (size_t)bios_of(p) * GUEST_BYTES * APART,
		.flags = p->flags,
	};

	disk_open(&g->disk, &plan);
}

static void open_driver(struct guest *g)
{
	uint64_t features = vqb_blk_device_features(g->disk.blk);
	struct vqb_blk_limits limits;
	struct vqb_blk_driver_config config = {
		.struct_size = sizeof(config),
		.depth = GUEST_RING,
		.ring = g->disk.ends.drv,
		.area = { g->disk.ends.low + g->disk.ends.small_at, g->disk.shared_at,
			  VQB_BLK_AREA_BYTES(GUEST_RING, 0) },
		.features = features,
		.limits = &limits,
		.path = g->plan.path,
	};
	struct vqb_blk_config space;
	size_t bytes;

	vqb_blk_device_read_config(g->disk.blk, 0, &space, sizeof(space));
	check(vqb_blk_limits_read(&space, sizeof(space), features, GUEST_RING, &limits));
	bytes = vqb_blk_driver_size(&config);
	check(vqb_blk_driver_init(zeroed(bytes), bytes, &config, &g->drv));
}

static void put_into_job(struct guest *g, struct vqb_bio *bio)
{
	struct guest_job *job = &g->job[((struct guest_bio *)(void *)bio)->job];

	if (!job->ready) {
		job->tail = &job->ready;
		job->next = g->runs;
		g->runs = job;
	}
	*job->tail = bio;
	job->tail = &bio->next;
	bio->next = NULL;
}

static void open_jobs(struct guest *g)
{
	uint32_t n = bios_of(&g->plan);

	g->bio = zeroed(n * sizeof(*g->bio));
	g->job = zeroed(g->plan.jobs * sizeof(*g->job));
	for (uint32_t i = 0; i < n; i++) {
		struct guest_bio *b = &g->bio[i];

		b->job = i / g->plan.depth;
		b->seg =
			(struct vqb_segment){ .addr = ENDS_HIGH + (uint64_t)i * APART * GUEST_BYTES,
					      .len = GUEST_BYTES };
		b->bio = (struct vqb_bio){ .vec = &b->seg,
					   .nvec = 1,
					   .op = g->plan.write ? VQB_BLK_OUT : VQB_BLK_IN };
		put_into_job(g, &b->bio);
	}
}

/* ---- the device ---- */

/* One round: what it finishes is announced. Answers whether there is more to do at once. */
static bool serve_once(struct guest *g)
{
	uint32_t answer = vqb_blk_queue_run(g->disk.queue, g->plan.budget);

	if (answer & VQB_NOTIFY) {
		check(vqb_notify_signal(&g->interrupt));
		g->interrupts++;
	}
	return answer & VQB_MORE;
}

static void *run_device(void *arg)
{
	struct guest *g = arg;

	pin_to(1);
	for (;;) {
		check(vqb_notify_wait(&g->kick, -1));
		if (g->ends)
			return NULL;
		while (serve_once(g))
			continue;
	}
}

/* In one thread: until the guest is to handle an interrupt, or there is nothing to do. */
static void serve(struct guest *g)
{
	uint64_t before = g->interrupts;
	uint32_t late = 0;
	bool more = true;

	(void)vqb_notify_clear(&g->kick);
	while (more && late <= g->plan.slowly) {
		more = serve_once(g);
		late += g->interrupts != before;
	}
}

/* ---- the guest ---- */

static void kick(struct guest *g, uint32_t answer)
{
	if (!(answer & VQB_NOTIFY))
		return;
	check(vqb_notify_signal(&g->kick));
	g->kicks++;
}

/* Where it goes next. */
static void aim(struct guest *g, struct guest_job *job, struct guest_bio *b)
{
	b->since = g->now;
	if (g->plan.random) {
		b->bio.sector = random_below(&g->random, (uint32_t)g->disk.plan.sectors);
		return;
	}
	b->bio.sector = (uint64_t)b->job * REGION + job->at;
	if (!g->plan.scattered)
		b->seg.addr =
			ENDS_HIGH +
			((uint64_t)b->job * g->plan.depth + job->at % g->plan.depth) * GUEST_BYTES;
	job->at = (job->at + 1) % REGION;
}

static void submit_one_by_one(struct guest *g, struct vqb_bio *list)
{
	struct vqb_bio *next;

	for (; list; list = next) {
		next = list->next;
		check(vqb_blk_submit(g->drv, list));
		kick(g, vqb_blk_publish(g->drv));
	}
}

static void run_job(struct guest *g, struct guest_job *job)
{
	struct vqb_bio *list = job->ready, *bio;

	job->ready = NULL;
	for (bio = list; bio; bio = bio->next)
		aim(g, job, (struct guest_bio *)(void *)bio);
	if (g->plan.one_by_one) {
		submit_one_by_one(g, list);
		return;
	}
	check(vqb_blk_submit_list(g->drv, list, NULL));
	kick(g, vqb_blk_publish(g->drv));
}

static void run_jobs(struct guest *g)
{
	struct guest_job *job;

	while (g->runs) {
		job = g->runs;
		g->runs = job->next;
		run_job(g, job);
	}
}

/* All that is back goes to its jobs. */
static uint32_t collect(struct guest *g)
{
	struct vqb_bio *bio, *next;
	uint32_t n = vqb_blk_reap(g->drv, &bio);

	g->now = now_ns();
	for (; bio; bio = next) {
		next = bio->next;
		check(bio->status);
		g->waited_ns += g->now - ((struct guest_bio *)(void *)bio)->since;
		put_into_job(g, bio);
	}
	g->done += n;
	return n;
}

/* Shows the device what there is, and asks for the next interrupt. */
static uint32_t turn(struct guest *g)
{
	uint32_t answer;

	if (g->plan.polled)
		return vqb_blk_publish(g->drv);
	if (!g->plan.postpones)
		return vqb_blk_turn(g->drv);
	answer = vqb_blk_publish(g->drv);
	return answer | vqb_driver_postpone(g->disk.ends.drv, VQB_POSTPONE_SHORT);
}

/*
 * What an interrupt is for: until there is nothing to do. Without `again` nothing new is submitted.
 * Not inlined: it is where instructions of the guest are counted (bench/seeds/instructions).
 */
__attribute__((noinline)) static void guest_handle(struct guest *g, bool again)
{
	uint32_t answer;

	do {
		uint32_t n = collect(g);

		if (again)
			run_jobs(g);
		answer = turn(g);
		kick(g, answer);
		if (g->plan.polled && !n)
			return;
	} while (answer & VQB_MORE);
}

/* Until something may have come back. */
static void await(struct guest *g)
{
	if (!g->plan.threads)
		serve(g);
	if (!g->plan.polled)
		check(vqb_notify_wait(&g->interrupt, -1));
	else if (g->plan.threads)
		cpu_relax();
}

static void step(struct guest *g)
{
	await(g);
	guest_handle(g, true);
}

static void fill(struct guest *g)
{
	g->now = now_ns();
	if (g->plan.polled)
		vqb_driver_disarm(g->disk.ends.drv);
	guest_handle(g, true);
}

static void empty(struct guest *g)
{
	while (vqb_blk_outstanding(g->drv)) {
		await(g);
		guest_handle(g, false);
	}
}

/* ---- figures ---- */

struct before {
	uint64_t done, requests, kicks, interrupts;
	double waited_ns;
};

static struct before look(const struct guest *g)
{
	struct vqb_requests_counters c;

	vqb_blk_driver_read_counters(g->drv, &c);
	return (struct before){ g->done, c.requests, g->kicks, g->interrupts, g->waited_ns };
}

static struct guest_figures figures_since(const struct guest *g, const struct before *b)
{
	struct before now = look(g);
	double bios = (double)(now.done - b->done), requests = (double)(now.requests - b->requests),
	       interrupts = (double)(now.interrupts - b->interrupts);

	return (struct guest_figures){ {
		[LATENCY] = (now.waited_ns - b->waited_ns) / bios,
		[REQUESTS] = requests / bios,
		[KICKS] = (double)(now.kicks - b->kicks) / bios,
		[INTERRUPTS] = interrupts / bios,
		[PER_INTERRUPT] = requests / (interrupts > 0 ? interrupts : 1),
	} };
}

struct guest_figures guest_slice(struct guest *g, uint32_t ms)
{
	static struct pieces p;
	struct before before = look(g);
	struct guest_figures f;
	double start = now_ns();

	memset(&p, 0, sizeof(p));
	p.all_threads = g->plan.threads;
	fill(g);
	while (p.all < MAX_PIECES && now_ns() - start < ms * 1e6) {
		uint64_t done = g->done;

		piece_begin(&p);
		do {
			step(g);
		} while (!piece_is_full(&p) || g->done == done);
		piece_end(&p, g->done - done);
	}
	empty(g);
	f = figures_since(g, &before);
	f.of[NS] = pieces_good_ns(&p);
	return f;
}

uint64_t guest_run(struct guest *g, uint64_t bios)
{
	uint64_t until = g->done + bios;

	fill(g);
	while (g->done < until)
		step(g);
	empty(g);
	return g->done;
}

/* ---- beginning and end ---- */

void guest_open(struct guest *g, const struct guest_plan *plan)
{
	memset(g, 0, sizeof(*g));
	g->plan = *plan;
	check(vqb_notify_open(&g->kick));
	check(vqb_notify_open(&g->interrupt));
	open_device(g);
	open_driver(g);
	open_jobs(g);
	if (plan->threads && pthread_create(&g->device, NULL, run_device, g))
		die("there is no second thread");
}

/* What the device has seen is what the driver has counted. */
static void compare_books(const struct guest *g)
{
	struct vqb_blk_queue_counters c;

	vqb_blk_queue_read_counters(g->disk.queue, &c);
	if (c.requests != look(g).requests || c.malformed || c.failed ||
	    c.read_bytes + c.write_bytes != g->done * GUEST_BYTES)
		die("the device saw other requests than the driver sent");
}

void guest_close(struct guest *g)
{
	if (g->plan.threads) {
		g->ends = true;
		check(vqb_notify_signal(&g->kick));
		pthread_join(g->device, NULL);
	}
	compare_books(g);
	disk_close(&g->disk);
	vqb_notify_close(&g->kick);
	vqb_notify_close(&g->interrupt);
	free(g->drv);
	free(g->bio);
	free(g->job);
	free(g->backend_mem);
	free(g->store);
}

/* ---- two of them ---- */

enum { MAX_ROUNDS = 101, SLICE_MS = 20, SLICE_OF_TWO_MS = 50 };

struct rounds {
	double of[2][GUEST_FIGURES][MAX_ROUNDS];
	double faster[MAX_ROUNDS], latency[MAX_ROUNDS];
	uint32_t n;
};

static void run_round(struct guest g[2], struct rounds *r)
{
	struct guest_figures f[2];

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t which = (i + r->n) & 1;

		f[which] =
			guest_slice(&g[which], g[which].plan.threads ? SLICE_OF_TWO_MS : SLICE_MS);
	}
	for (uint32_t k = 0; k < GUEST_FIGURES; k++)
		for (uint32_t i = 0; i < 2; i++)
			r->of[i][k][r->n] = f[i].of[k];
	r->faster[r->n] = f[0].of[NS] / f[1].of[NS];
	r->latency[r->n] = f[0].of[LATENCY] / f[1].of[LATENCY];
	r->n++;
}

static struct summary faster_so_far(const struct rounds *r)
{
	static double sorted[MAX_ROUNDS];

	memcpy(sorted, r->faster, sizeof(sorted));
	return summarize(sorted, r->n);
}

void guest_compare(const struct guest_plan plans[2], uint32_t rounds, uint32_t most,
		   struct guest_pair *pair)
{
	static struct guest guest[2];
	static struct rounds r;

	for (uint32_t i = 0; i < 2; i++) {
		guest_open(&guest[i], &plans[i]);
		guest_slice(&guest[i], SLICE_MS);
	}
	r.n = 0;
	most = most < MAX_ROUNDS ? most : MAX_ROUNDS;
	do {
		run_round(guest, &r);
		pair->faster = faster_so_far(&r);
	} while (r.n < rounds || (r.n < most && summary_width(&pair->faster) > WIDEST));
	pair->latency = summarize(r.latency, r.n);
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < GUEST_FIGURES; k++)
			pair->of[i][k] = summarize(r.of[i][k], r.n);
		guest_close(&guest[i]);
	}
}
