/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mwf_real.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vqblk/blk_device.h>

#include "machine.h"
#include "mwf.h"
#include "random.h"

enum {
	STREAMS = 4,
	WARM_PIECES = 4,
	PIECES = 40,
	MOST_PIECES = 160,
	MAX_ROUNDS = 303,
	BYTES = 4096
};

#define PIECE_NS 2.5e5
#define SECTORS (UINT64_C(1) << 32)
#define BLOCK_SECTORS (BYTES >> VQB_SECTOR_SHIFT)

struct side {
	struct real_cell cell;
	struct mwf_guest guest;
	struct vqb_backend *backend;
	struct vqb_blk_device *blk;
	struct vqb_blk_queue *queue;
	struct random random;
	uint64_t stream[STREAMS];
	uint64_t submitted, done;
	uint32_t lists;
	atomic_bool stop;
	clockid_t device_clock; /* of the thread that serves the device */
};

/* ---- set-up ---- */

static void open_device(struct side *s)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .capacity = SECTORS,
					 .segments = MWF_RING - 2 };
	uint64_t features = VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_F_EVENT_IDX) |
			    VQB_FEATURE(VQB_F_INDIRECT_DESC) | VQB_FEATURE(VQB_BLK_F_SEG_MAX);
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.features = features,
						.limits = &limits,
						.backend = &s->backend->caps };
	struct vqb_blk_queue_config queue = { .struct_size = sizeof(queue),
					      .requests = MWF_RING,
					      .pieces = MWF_RING * MWF_RING,
					      .ring = s->guest.ends.dev,
					      .backend = s->backend };
	size_t bytes = vqb_blk_device_size();

	check(vqb_blk_device_init(zeroed(bytes), bytes, &config, &s->blk));
	queue.features = vqb_blk_device_features(s->blk);
	queue.device = s->blk;
	check(vqb_blk_device_accept(s->blk, queue.features));
	bytes = vqb_blk_queue_size(&queue);
	check(vqb_blk_queue_init(zeroed(bytes), bytes, &queue, &s->queue));
}

static void side_open(struct side *s, const struct real_cell *cell, uint32_t path)
{
	struct mwf_guest_plan plan = {
		.path = path, .depth = MWF_RING, .bytes = BYTES, .sectors = SECTORS
	};
	size_t bytes = vqb_backend_null_size();

	memset(s, 0, sizeof(*s));
	s->cell = *cell;
	for (uint32_t i = 0; i < STREAMS; i++)
		s->stream[i] = SECTORS / 8 * (2 * i + 1);
	mwf_guest_open(&s->guest, &plan);
	check(vqb_backend_null_init(zeroed(bytes), bytes, SECTORS << VQB_SECTOR_SHIFT,
				    &s->backend));
	open_device(s);
}

static void side_close(struct side *s)
{
	while (vqb_blk_queue_quiesce(s->queue))
		vqb_backend_drain(s->backend);
	mwf_guest_close(&s->guest);
	free(s->queue);
	free(s->blk);
	free(s->backend);
}

/* ---- the driver ---- */

/* Streams are looked after in turn, one for each list. */
static void submit(struct side *s)
{
	bool random = s->cell.places == MWF_RANDOM || (s->cell.places == MWF_MIXED && s->lists & 1);
	uint64_t *stream = &s->stream[s->lists++ / 2 % STREAMS];
	struct vqb_bio *list = NULL, **tail = &list;

	for (uint32_t i = 0; i < s->cell.list; i++) {
		uint64_t sector = *stream;
		struct mwf_guest_bio *b;

		if (random)
			sector = random_below(&s->random, SECTORS / BLOCK_SECTORS) *
				 (uint64_t)BLOCK_SECTORS;
		else
			*stream = (sector + BLOCK_SECTORS) % SECTORS;
		b = mwf_guest_read(&s->guest, sector);
		*tail = &b->bio;
		tail = &b->bio.next;
	}
	check(vqb_blk_submit_list(s->guest.blk, list, NULL));
	s->submitted += s->cell.list;
}

static uint32_t reap(struct side *s)
{
	struct vqb_bio *bio, *next;
	uint32_t n = vqb_blk_reap(s->guest.blk, &bio);

	for (; bio; bio = next) {
		next = bio->next;
		check(bio->status);
		mwf_guest_free(&s->guest, mwf_guest_bio_of(bio));
	}
	s->done += n;
	return n;
}

/* Everything that is to happen once. */
static void turn(struct side *s, bool submits)
{
	reap(s);
	while (submits && s->submitted - s->done + s->cell.list <= s->cell.out)
		submit(s);
	if (s->cell.threads) {
		vqb_driver_expose(s->guest.ends.drv);
		return;
	}
	vqb_blk_turn(s->guest.blk);
	while (vqb_blk_queue_run(s->queue, MWF_RING) & VQB_MORE)
		continue;
}

/* ---- the device's thread ---- */

static void *serve(void *arg)
{
	struct side *s = arg;

	pin_to(1);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
		vqb_blk_queue_poll(s->queue, MWF_RING);
	return NULL;
}

/* ---- a slice ---- */

static uint64_t on_cpu(clockid_t thread)
{
	struct timespec t;

	if (clock_gettime(thread, &t))
		die("a thread has no clock");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Bios a second in a short piece; *clean: each thread had its CPU for all of it. */
static double piece_rate(struct side *s, bool *clean)
{
	uint64_t done = s->done, ours = on_cpu(CLOCK_THREAD_CPUTIME_ID),
		 theirs = on_cpu(s->device_clock);
	double start = now_ns(), took;

	do {
		for (uint32_t i = 0; i < 16; i++)
			turn(s, true);
		took = now_ns() - start;
	} while (took < PIECE_NS);
	theirs = on_cpu(s->device_clock) - theirs;
	ours = on_cpu(CLOCK_THREAD_CPUTIME_ID) - ours;
	*clean = (double)theirs >= took * 31 / 32 && (double)ours >= took * 31 / 32;
	return (double)(s->done - done) * 1e9 / took;
}

/* Bios a second: the median of clean pieces, or else the best of all. */
static double slice_rate(struct side *s)
{
	double clean[PIECES], best = 1;
	bool is_clean;
	uint32_t n = 0;

	for (uint32_t i = 0; i < WARM_PIECES; i++)
		piece_rate(s, &is_clean);
	for (uint32_t i = 0; i < MOST_PIECES && n < PIECES; i++) {
		double rate = piece_rate(s, &is_clean);

		if (is_clean)
			clean[n++] = rate;
		best = rate > best ? rate : best;
	}
	return n ? median(clean, n) : best;
}

static double slice(const struct real_cell *cell, uint32_t path, double *per_request)
{
	struct side *s = zeroed(sizeof(*s));
	struct vqb_requests_counters c;
	pthread_t thread;
	double rate;

	side_open(s, cell, path);
	s->device_clock = CLOCK_THREAD_CPUTIME_ID;
	if (cell->threads && (pthread_create(&thread, NULL, serve, s) ||
			      pthread_getcpuclockid(thread, &s->device_clock)))
		die("no thread");
	rate = slice_rate(s);
	vqb_blk_driver_read_counters(s->guest.blk, &c);
	*per_request = (double)c.bios / (double)c.requests;
	while (s->done < s->submitted)
		turn(s, false);
	atomic_store(&s->stop, true);
	if (cell->threads)
		pthread_join(thread, NULL);
	side_close(s);
	free(s);
	return rate;
}

/* ---- rounds ---- */

struct rounds {
	uint32_t n;
	double rate[MWF_PATHS][MAX_ROUNDS], per_request[MWF_PATHS][MAX_ROUNDS];
};

static void go_on(const struct real_cell *cell, struct rounds *r)
{
	for (uint32_t i = 0; i < MWF_PATHS; i++) {
		uint32_t path = (i + r->n) % MWF_PATHS;

		do /* a machine may keep a thread from its CPU for all of a slice */
			r->rate[path][r->n] = slice(cell, path, &r->per_request[path][r->n]);
		while (r->rate[path][r->n] <= 0);
	}
	r->n++;
}

static double typical(const double *v, uint32_t n)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, v, n * sizeof(*v));
	return median(sorted, n);
}

/* Which of the others is better goes by all rounds: that of each would be the luckier one. */
static struct summary to_better(const struct rounds *r)
{
	double bio = typical(r->rate[VQB_PATH_BIO], r->n);
	uint32_t better =
		bio > typical(r->rate[VQB_PATH_REQUEST], r->n) ? VQB_PATH_BIO : VQB_PATH_REQUEST;
	double ratio[MAX_ROUNDS];

	for (uint32_t i = 0; i < r->n; i++)
		ratio[i] = r->rate[VQB_PATH_MERGE_WHEN_FULL][i] / r->rate[better][i];
	return summarize(ratio, r->n);
}

struct real_result mwf_real(const struct real_cell *cell, uint32_t rounds, double wide)
{
	static struct rounds r;
	struct real_result result;
	uint32_t most = 3 * rounds < MAX_ROUNDS ? 3 * rounds : MAX_ROUNDS;

	r.n = 0;
	do {
		go_on(cell, &r);
		result.ratio = to_better(&r);
	} while (r.n < rounds || (r.n < most && result.ratio.high - result.ratio.low > wide));
	for (uint32_t i = 0; i < MWF_PATHS; i++) {
		result.rate[i] = typical(r.rate[i], r.n);
		result.per_request[i] = typical(r.per_request[i], r.n);
	}
	return result;
}
