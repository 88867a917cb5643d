/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flipper.h: a peer that writes to shared memory all the time, in a thread of its own, and memory
 * with nothing around it, so that an access past its end is a fault.
 *
 * All writes are relaxed atomic ones: what the other side reads, it has to read atomically, too,
 * or the thread sanitizer says so.
 */
#ifndef TESTS_FLIPPER_H
#define TESTS_FLIPPER_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "raw_ring.h"
#include "unit.h"

/* More than any 16-bit index can reach past a table of descriptors. */
#define GUARD_BYTES ((size_t)2 << 20)

/* ---- memory that ends where it ends ---- */

struct guarded {
	uint8_t *map;
	size_t map_bytes;
};

/* `bytes` of zeroes, aligned to `align`, with fewer than `align` usable bytes behind them. */
static inline void *guarded_alloc(struct guarded *g, size_t bytes, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (bytes + align - 1) & ~(align - 1);
	size_t inner = (whole + page - 1) & ~(page - 1);

	g->map_bytes = inner + 2 * GUARD_BYTES;
	g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->map != MAP_FAILED);
	assert_false(mprotect(g->map + GUARD_BYTES, inner, PROT_READ | PROT_WRITE));
	return g->map + GUARD_BYTES + inner - whole;
}

static inline void guarded_free(struct guarded *g)
{
	if (g->map)
		munmap(g->map, g->map_bytes);
	g->map = NULL;
}

/* ---- numbers ---- */

/* A number below `below`, which is not 0. */
static inline uint32_t draw(uint64_t *rng, uint32_t below)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return (uint32_t)(((*rng >> 32) * below) >> 32);
}

/* ---- writing under the reader ---- */

/* Stores the `bytes` (1, 2, 4 or 8) of `v` at `at`, little-endian and in one go. */
static inline void flip(uint8_t *at, uint64_t v, unsigned bytes)
{
	union {
		uint8_t byte[8];
		uint16_t two;
		uint32_t four;
		uint64_t eight;
	} word;

	poke(word.byte, v, bytes);
	if (bytes == 1)
		__atomic_store_n(at, word.byte[0], __ATOMIC_RELAXED);
	else if (bytes == 2)
		__atomic_store_n((uint16_t *)(void *)at, word.two, __ATOMIC_RELAXED);
	else if (bytes == 4)
		__atomic_store_n((uint32_t *)(void *)at, word.four, __ATOMIC_RELAXED);
	else
		__atomic_store_n((uint64_t *)(void *)at, word.eight, __ATOMIC_RELAXED);
}

struct flipper {
	void (*once)(void *scene, uint64_t *rng); /* one change of what is shared */
	void *scene;
	_Atomic uint64_t flips;
	atomic_bool stop, pause, paused;
	pthread_t thread;
	int running;
};

static inline void *flipper_run(void *arg)
{
	struct flipper *f = arg;
	uint64_t rng = UINT64_C(0x9e3779b97f4a7c15);

	while (!atomic_load(&f->stop)) {
		for (unsigned i = 0; i < 64; i++)
			f->once(f->scene, &rng);
		f->flips += 64;
		if (!atomic_load(&f->pause))
			continue;
		atomic_store(&f->paused, true);
		while (atomic_load(&f->pause))
			sched_yield();
		atomic_store(&f->paused, false);
	}
	return NULL;
}

static inline void flipper_start(struct flipper *f, void (*once)(void *, uint64_t *), void *scene)
{
	memset(f, 0, sizeof(*f));
	f->once = once;
	f->scene = scene;
	assert_false(pthread_create(&f->thread, NULL, flipper_run, f));
	f->running = 1;
}

static inline void flipper_stop(struct flipper *f)
{
	if (!f->running)
		return;
	atomic_store(&f->pause, false);
	atomic_store(&f->stop, true);
	pthread_join(f->thread, NULL);
	f->running = 0;
}

/* Nothing is written between these two. */
static inline void flipper_pause(struct flipper *f)
{
	atomic_store(&f->pause, true);
	while (!atomic_load(&f->paused))
		sched_yield();
}

static inline void flipper_go_on(struct flipper *f)
{
	atomic_store(&f->pause, false);
	while (atomic_load(&f->paused))
		sched_yield();
}

/* ---- time ---- */

static inline uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/*
 * How long the two threads have run at the same time, which on a machine with other work is less
 * than the time that went by: short stretches in which something was flipped.
 */
struct together {
	uint64_t start, last, us, flips;
};

static inline void together_start(struct together *t)
{
	*t = (struct together){ 0 };
	t->start = t->last = now_us();
}

/* Counts the stretch that ends here. Have they run for `ms` together, or four times that in all? */
static inline int together_for(struct together *t, struct flipper *f, uint64_t ms)
{
	uint64_t now = now_us(), flips = f->flips;

	if (flips != t->flips && now - t->last < 2000)
		t->us += now - t->last;
	t->last = now;
	t->flips = flips;
	return t->us >= 1000 * ms || now - t->start >= 4000 * ms;
}

/* Milliseconds since together_start. */
static inline uint64_t together_since(const struct together *t)
{
	return (t->last - t->start) / 1000;
}

#endif
