/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads, one ring: a driver and a device that sleep whenever the library says they may.
 *
 * Every request carries data both ways, which each side checks; every token must come back
 * exactly once; and a sleeper that is not woken for ten seconds has lost a wake-up. Chain
 * lengths, batch sizes, the way of publishing and of arming, and the order of completions are
 * drawn at random.
 *
 * Two million requests in all; VQB_LONG=1 makes it two million for each combination.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vqblk/device.h>
#include <vqblk/driver.h>

#include "unit.h"

#if defined(__SANITIZE_THREAD__)
#define DEFAULT_REQUESTS 200000u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DEFAULT_REQUESTS 200000u
#endif
#endif
#ifndef DEFAULT_REQUESTS
#define DEFAULT_REQUESTS 2000000u
#endif

enum {
	MAX_SEGMENTS = 6, /* of one request */
	SEGMENT_BYTES = 16,
	TABLE_LENGTH = 6,
	BATCH = 32,
	PIECES = BATCH * MAX_SEGMENTS,
	WATCHDOG_SECONDS = 10,
};

#define GUEST_BASE UINT64_C(0x7000000000)

/* A request as the driver remembers it; `number` is 0 while it is not out. */
struct request {
	uint32_t number;
	uint32_t readable, writable;
	uint32_t written; /* that the device is going to report */
};

struct pair {
	/* set up before the threads start, constant afterwards */
	uint32_t size;
	uint64_t features;
	uint32_t total;
	uint8_t *guest;
	size_t data_at; /* offset of the buffers */
	struct vqb_driver *drv;
	struct vqb_device *dev;
	/* between the threads */
	sem_t kick, interrupt;
	atomic_bool done;            /* all is reaped; the device may end */
	_Atomic(const char *) fault; /* the first thing that went wrong */
	/* the driver thread's */
	struct request *request;
	uint32_t *idle; /* stack of requests that are not out */
	uint32_t idle_count;
	uint32_t added, reaped;
};

static void give_up(struct pair *p, const char *what)
{
	const char *none = NULL;

	atomic_compare_exchange_strong(&p->fault, &none, what);
	atomic_store(&p->done, true);
	sem_post(&p->kick);
	sem_post(&p->interrupt);
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((*state >> 33) % below);
}

static void sleep_on(struct pair *p, sem_t *bell, const char *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WATCHDOG_SECONDS;
	while (sem_timedwait(bell, &until)) {
		if (errno == EINTR)
			continue;
		give_up(p, what);
		return;
	}
}

/* ---- the driver thread ---- */

static size_t buffer_at(const struct pair *p, uint32_t request, uint32_t segment)
{
	return p->data_at + ((size_t)request * MAX_SEGMENTS + segment) * SEGMENT_BYTES;
}

/* The word that segment `i` of request `number` carries from driver to device. */
static uint64_t question(uint32_t number, uint32_t i)
{
	return ((uint64_t)number << 8 | i) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Adds one request of random shape; false: no room. */
static bool add_one(struct pair *p, uint64_t *rng)
{
	uint32_t most = p->size < MAX_SEGMENTS ? p->size : MAX_SEGMENTS;
	uint32_t n = 1 + draw(rng, most), slot = p->idle[p->idle_count - 1];
	struct request *r = &p->request[slot];
	struct vqb_segment seg[MAX_SEGMENTS];

	r->number = p->added + 1;
	r->readable = 1 + draw(rng, n);
	r->writable = n - r->readable;
	r->written = r->writable * SEGMENT_BYTES;
	for (uint32_t i = 0; i < n; i++) {
		size_t at = buffer_at(p, slot, i);
		uint64_t word = question(r->number, i);

		memset(p->guest + at, 0, SEGMENT_BYTES);
		if (i < r->readable)
			memcpy(p->guest + at, &word, sizeof(word));
		seg[i] = (struct vqb_segment){ .addr = GUEST_BASE + at, .len = SEGMENT_BYTES };
	}
	/* The first readable segment also says which request it is. */
	memcpy(p->guest + buffer_at(p, slot, 0) + 8, &r->number, sizeof(r->number));
	switch (vqb_driver_add(p->drv, seg, r->readable, r->writable, r)) {
	case VQB_OK:
		p->idle_count--;
		p->added++;
		return true;
	case VQB_E_NOSPC:
		r->number = 0;
		if (p->added == p->reaped)
			give_up(p, "no room while nothing is in flight");
		return false;
	default:
		give_up(p, "add was refused");
		return false;
	}
}

static void check_answer(struct pair *p, const struct vqb_done *done)
{
	struct request *r = done->token;
	uint32_t slot = (uint32_t)(r - p->request);

	if (!r->number)
		give_up(p, "a token came back twice");
	if (done->len != r->written || done->flags)
		give_up(p, "a length came back wrong");
	for (uint32_t i = 0; i < r->writable; i++) {
		uint64_t word;

		memcpy(&word, p->guest + buffer_at(p, slot, r->readable + i), sizeof(word));
		if (word != ~question(r->number, i))
			give_up(p, "the device's data came back wrong");
	}
	r->number = 0;
	p->idle[p->idle_count++] = slot;
	p->reaped++;
}

static uint32_t reap_all(struct pair *p)
{
	struct vqb_done done[BATCH];
	uint32_t n, all = 0;

	while ((n = vqb_driver_reap(p->drv, done, BATCH)) > 0) {
		for (uint32_t i = 0; i < n; i++)
			check_answer(p, &done[i]);
		all += n;
	}
	if (vqb_driver_state(p->drv))
		give_up(p, "the driver thinks the device is broken");
	return all;
}

static void send(struct pair *p, uint64_t *rng)
{
	uint32_t answer;

	if (!draw(rng, 8))
		vqb_driver_expose(p->drv);
	answer = draw(rng, 2) ? vqb_driver_publish(p->drv) : vqb_driver_turn(p->drv);
	if (answer & VQB_NOTIFY)
		sem_post(&p->kick);
}

/* Arms in one of the ways there are; true: may sleep. */
static bool may_sleep(struct pair *p, uint64_t *rng)
{
	uint32_t how = draw(rng, 4);

	if (how == 3)
		return !(vqb_driver_arm(p->drv) & VQB_MORE);
	return !(vqb_driver_postpone(p->drv, how) & VQB_MORE);
}

static void *drive(void *arg)
{
	struct pair *p = arg;
	uint64_t rng = p->size * 7919u + 1;

	while (p->reaped < p->total && !atomic_load(&p->done)) {
		uint32_t batch = 1 + draw(&rng, BATCH);

		if (draw(&rng, 2))
			vqb_driver_disarm(p->drv);
		while (batch-- && p->added < p->total && p->idle_count && add_one(p, &rng))
			continue;
		send(p, &rng);
		if (!reap_all(p) && vqb_driver_in_flight(p->drv) && may_sleep(p, &rng))
			sleep_on(p, &p->interrupt, "the driver was not woken");
	}
	atomic_store(&p->done, true);
	sem_post(&p->kick);
	return NULL;
}

/* ---- the device thread ---- */

static uint32_t serve(struct pair *p, const struct vqb_chain *chain)
{
	uint32_t number;
	uint64_t word;

	if (chain->status || !chain->readable) {
		give_up(p, "the device thinks the driver is broken");
		return 0;
	}
	memcpy(&number, (char *)chain->piece[0].base + 8, sizeof(number));
	for (uint32_t i = 0; i < chain->readable; i++) {
		memcpy(&word, chain->piece[i].base, sizeof(word));
		if (word != question(number, i) || chain->piece[i].len != SEGMENT_BYTES)
			give_up(p, "the driver's data arrived wrong");
	}
	for (uint32_t i = 0; i < chain->writable; i++) {
		word = ~question(number, i);
		memcpy(chain->piece[chain->readable + i].base, &word, sizeof(word));
	}
	return (uint32_t)chain->write_bytes;
}

/* Serves and puts the chains of one take, from a random one on round to the one before it. */
static void serve_all(struct pair *p, struct vqb_chain *chain, uint32_t n, uint64_t *rng)
{
	uint32_t first = draw(rng, n);

	for (uint32_t i = 0; i < n; i++) {
		struct vqb_chain *c = &chain[(first + i) % n];

		if (vqb_device_put(p->dev, c->ticket, serve(p, c)))
			give_up(p, "put was refused");
		if (!draw(rng, 16))
			vqb_device_expose(p->dev);
	}
}

static void interrupt_if(struct pair *p, uint32_t answer)
{
	if (answer & VQB_NOTIFY)
		sem_post(&p->interrupt);
}

static void *serve_queue(void *arg)
{
	struct vqb_chain chain[BATCH];
	struct vqb_piece piece[PIECES];
	struct pair *p = arg;
	uint64_t rng = p->size * 104729u + 2;
	struct vqb_need need;
	uint32_t n, answer;

	while (!atomic_load(&p->done)) {
		uint32_t batch = 1 + draw(&rng, BATCH),
			 room = MAX_SEGMENTS + draw(&rng, PIECES - 5);
		int32_t status = vqb_device_take(p->dev, chain, batch, piece, room, &n, &need);

		if (status && status != VQB_E_NOSPC)
			give_up(p, "take stopped");
		if (n) {
			if (draw(&rng, 2))
				vqb_device_disarm(p->dev);
			serve_all(p, chain, n, &rng);
			if (draw(&rng, 2))
				interrupt_if(p, vqb_device_publish(p->dev));
			continue;
		}
		answer = vqb_device_turn(p->dev);
		interrupt_if(p, answer);
		if (!(answer & VQB_MORE))
			sleep_on(p, &p->kick, "the device was not woken");
	}
	return NULL;
}

/* ---- one combination ---- */

static void *object(size_t bytes)
{
	void *mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(mem);
	return mem;
}

static void check(int32_t status)
{
	assert_string_equal(vqb_status_name(status), "VQB_OK");
}

static void set_up(struct pair *p, struct vqb_memory *map, struct vqb_extent *ram)
{
	uint32_t tables = (p->size + 1) / 2;
	size_t tables_bytes = VQB_TABLES_BYTES(tables, TABLE_LENGTH);
	struct vqb_driver_config drv = { .struct_size = sizeof(drv) };
	struct vqb_device_config dev = { .struct_size = sizeof(dev) };
	struct vqb_layout at;
	size_t tables_at, bytes;

	check(vqb_ring_layout(p->size, 64, &at));
	tables_at = at.bytes;
	p->data_at = tables_at + tables_bytes;
	bytes = p->data_at + (size_t)p->size * MAX_SEGMENTS * SEGMENT_BYTES;
	p->guest = object(bytes);

	drv.ring.size = p->size;
	drv.ring.features = p->features;
	check(vqb_ring_place(&drv.ring, p->guest, 64));
	drv.tables = (struct vqb_dma){ .host = p->guest + tables_at,
				       .addr = GUEST_BASE + tables_at,
				       .bytes = tables_bytes };
	drv.max_table = TABLE_LENGTH;
	check(vqb_driver_init(object(VQB_DRIVER_BYTES(p->size)), VQB_DRIVER_BYTES(p->size), &drv,
			      &p->drv));

	*ram = (struct vqb_extent){
		.addr = GUEST_BASE, .len = bytes, .host = p->guest, .access = VQB_READ | VQB_WRITE
	};
	*map = (struct vqb_memory){
		.struct_size = sizeof(*map), .generation = 1, .count = 1, .sorted = ram
	};
	dev.ring.size = p->size;
	dev.ring.features = p->features;
	dev.memory = map;
	check(vqb_ring_place_at(&dev.ring, GUEST_BASE, 64));
	check(vqb_device_init(object(VQB_DEVICE_BYTES(p->size)), VQB_DEVICE_BYTES(p->size), &dev,
			      &p->dev));

	p->request = calloc(p->size, sizeof(*p->request));
	p->idle = calloc(p->size, sizeof(*p->idle));
	assert_true(p->request && p->idle);
	while (p->idle_count < p->size) {
		p->idle[p->idle_count] = p->idle_count;
		p->idle_count++;
	}
	assert_false(sem_init(&p->kick, 0, 0) || sem_init(&p->interrupt, 0, 0));
}

static void tear_down(struct pair *p)
{
	sem_destroy(&p->kick);
	sem_destroy(&p->interrupt);
	free(p->drv);
	free(p->dev);
	free(p->request);
	free(p->idle);
	free(p->guest);
}

/* `share` of all requests, in thousandths. */
static void run(uint32_t size, bool event_idx, uint32_t share)
{
	struct pair p = { .size = size };
	struct vqb_memory map;
	struct vqb_extent ram;
	pthread_t driver, device;

	p.features = VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_F_INDIRECT_DESC);
	if (event_idx)
		p.features |= VQB_FEATURE(VQB_F_EVENT_IDX);
	p.total = getenv("VQB_LONG") ? DEFAULT_REQUESTS : DEFAULT_REQUESTS / 1000 * share;
	set_up(&p, &map, &ram);
	assert_false(pthread_create(&device, NULL, serve_queue, &p));
	assert_false(pthread_create(&driver, NULL, drive, &p));
	pthread_join(driver, NULL);
	pthread_join(device, NULL);
	if (atomic_load(&p.fault))
		fail_msg("ring of %u, EVENT_IDX %s, after %u of %u requests: %s", size,
			 event_idx ? "on" : "off", p.reaped, p.total, atomic_load(&p.fault));
	assert_int_equal(p.reaped, p.total);
	assert_int_equal(p.added, p.total);
	assert_int_equal(vqb_driver_free(p.drv), size);
	tear_down(&p);
}

/* Shows: SR-DRV-34 SR-DRV-35 SR-DRV-37 SR-DRV-38 SR-DEV-15 SR-DEV-25 SR-DEV-27 SR-DEV-28 SR-DEV-29 */
/* Shows: K09 */
static void test_ring_of_1(void **state)
{
	(void)state;
	run(1, false, 25);
	run(1, true, 25);
}

static void test_ring_of_2(void **state)
{
	(void)state;
	run(2, false, 50);
	run(2, true, 50);
}

static void test_ring_of_4(void **state)
{
	(void)state;
	run(4, false, 75);
	run(4, true, 75);
}

static void test_ring_of_128(void **state)
{
	(void)state;
	run(128, false, 175);
	run(128, true, 175);
}

static void test_ring_of_32768(void **state)
{
	(void)state;
	run(32768, false, 175);
	run(32768, true, 175);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_of_1),     cmocka_unit_test(test_ring_of_2),
		cmocka_unit_test(test_ring_of_4),     cmocka_unit_test(test_ring_of_128),
		cmocka_unit_test(test_ring_of_32768),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
