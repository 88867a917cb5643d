/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads, one ring: a driver and a device that sleep whenever the library says they may.
 *
 * Every request carries data both ways, which each side checks; every token must come back
 * exactly once; and a sleeper that is not woken for ten seconds has lost a wake-up. Chain
 * lengths, batch sizes, the way of publishing and of arming, and the order of completions are
 * drawn at random; some chains are put only after those of the next take.
 *
 * In some modes the two stop from time to time and start over on a ring of another size, with
 * requests on their way: each of those is either completed or detached, once. In others the driver
 * waits from time to time until nothing is out, and takes another policy.
 *
 * Two million requests in all; VQB_LONG=1 makes it two million for each mode.
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

#define EVENTS VQB_FEATURE(VQB_F_EVENT_IDX)
#define PLATFORM VQB_FEATURE(VQB_F_ORDER_PLATFORM)
#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define ALWAYS VQB_INDIRECT_ALWAYS
#define NEVER VQB_INDIRECT_NEVER
#define ADAPTIVE VQB_INDIRECT_ADAPTIVE
#define SWITCHING 99u

enum {
	MAX_SEGMENTS = 6, /* of one request */
	SEGMENT_BYTES = 16,
	TABLE_LENGTH = 6,
	BATCH = 32,
	PIECES = BATCH * MAX_SEGMENTS,
	WATCHDOG_SECONDS = 10,
};

#define GUEST_BASE UINT64_C(0x7000000000)

/* One way of running the pair: a row of the table at the end. */
struct mode {
	const char *name;
	uint32_t size;     /* of the largest ring, and of the first one */
	uint64_t features; /* besides INDIRECT_DESC; and VERSION_1, unless it is big-endian */
	uint32_t policy;   /* enum vqb_indirect_kind, or SWITCHING */
	uint32_t resets;   /* requests between two of them, about; 0: none */
	uint32_t share;    /* of all requests, in thousandths */
	uint32_t flags;    /* of the ring */
};

/* A request as the driver remembers it; `number` is 0 while it is not out. */
struct request {
	uint32_t number;
	uint32_t readable, writable;
	uint32_t written; /* that the device is going to report */
};

struct pair {
	/* set up before the threads start, constant afterwards */
	const struct mode *mode;
	uint64_t features;
	bool in_order;
	uint32_t total;
	uint8_t *guest;
	size_t data_at; /* offset of the buffers */
	struct vqb_driver *drv;
	struct vqb_device *dev;
	/* between the threads */
	sem_t kick, interrupt;
	atomic_bool done; /* all is reaped; the device may end */
	atomic_bool stop; /* the driver wants to start over: the device stops, */
	sem_t stopped;    /* says so, */
	sem_t resumed;    /* and goes on after this */
	uint32_t size;    /* of the ring now; the driver's to change while the device stands */
	_Atomic(const char *) fault; /* the first thing that went wrong */
	/* the driver thread's */
	struct request *request;
	uint32_t *idle; /* stack of requests that are not out */
	uint32_t idle_count;
	uint32_t added, reaped, detached, resets, switches, implied;
	bool draining; /* nothing is added until nothing is out */
};

static void give_up(struct pair *p, const char *what)
{
	const char *none = NULL;

	atomic_compare_exchange_strong(&p->fault, &none, what);
	atomic_store(&p->done, true);
	sem_post(&p->kick);
	sem_post(&p->interrupt);
	sem_post(&p->stopped);
	sem_post(&p->resumed);
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

/* What a device says that it wrote of a request's bytes: some of them are not written in full. */
static uint32_t written(uint32_t number, uint32_t bytes)
{
	return number % 5 || !bytes ? bytes : bytes - SEGMENT_BYTES / 2;
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
	r->written = written(r->number, r->writable * SEGMENT_BYTES);
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
		if (p->added == p->reaped + p->detached)
			give_up(p, "no room while nothing is in flight");
		return false;
	default:
		give_up(p, "add was refused");
		return false;
	}
}

/* A token that came back: its request can be used again. */
static void retire(struct pair *p, struct request *r)
{
	if (!r->number)
		give_up(p, "a token came back twice");
	r->number = 0;
	if (p->idle_count < p->mode->size)
		p->idle[p->idle_count++] = (uint32_t)(r - p->request);
}

static void check_answer(struct pair *p, const struct vqb_done *done)
{
	struct request *r = done->token;
	uint32_t slot = (uint32_t)(r - p->request);

	if (done->len != r->written)
		give_up(p, "a length came back wrong");
	if (done->flags & ~(p->in_order ? (uint32_t)VQB_DONE_IMPLIED : 0))
		give_up(p, "a flag came back wrong");
	p->implied += done->flags != 0;
	for (uint32_t i = 0; i < r->writable; i++) {
		uint64_t word;

		memcpy(&word, p->guest + buffer_at(p, slot, r->readable + i), sizeof(word));
		if (word != ~question(r->number, i))
			give_up(p, "the device's data came back wrong");
	}
	retire(p, r);
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

/* ---- starting over: a handshake outside of the ring ---- */

static void detach_all(struct pair *p)
{
	void *token[BATCH];
	int32_t status;
	uint32_t n;

	if (vqb_driver_reset(p->drv, NULL))
		give_up(p, "the driver did not let go of its ring");
	do {
		status = vqb_driver_detach(p->drv, token, BATCH, &n);
		for (uint32_t i = 0; i < n; i++)
			retire(p, token[i]);
		p->detached += n;
	} while (status == VQB_E_NOSPC);
	if (status || vqb_driver_in_flight(p->drv) || p->added != p->reaped + p->detached)
		give_up(p, "detach did not account for each request");
}

/* The driver's half. Completions that are there already may be reaped first, or not. */
static void start_over(struct pair *p, uint64_t *rng)
{
	struct vqb_ring ring = { .features = p->features, .flags = p->mode->flags };

	atomic_store(&p->stop, true);
	sem_post(&p->kick);
	sleep_on(p, &p->stopped, "the device did not stop");
	if (atomic_load(&p->done))
		return;
	atomic_store(&p->stop, false);
	if (draw(rng, 2))
		reap_all(p);
	detach_all(p);
	do
		p->size = p->mode->size >> draw(rng, 4);
	while (!p->size);
	ring.size = p->size;
	if (vqb_ring_place(&ring, p->guest, 64) || vqb_driver_reset(p->drv, &ring))
		give_up(p, "the driver did not start over");
	p->resets++;
	sem_post(&p->resumed);
}

/* ---- another policy, whenever nothing is out ---- */

/* One in eight through a table, and no saying which. */
static uint32_t choose(void *context, const struct vqb_indirect_load *load)
{
	struct pair *p = context;

	if (load->segments < 2 || load->segments > load->free || !load->tables)
		give_up(p, "a policy was asked where there is no choice");
	return !(p->added * 2654435761u >> 29);
}

static void switch_policy(struct pair *p, uint64_t *rng)
{
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy) };

	if (p->mode->policy != SWITCHING)
		return;
	p->draining |= !draw(rng, 16);
	if (!p->draining || vqb_driver_in_flight(p->drv))
		return;
	policy.kind = draw(rng, VQB_INDIRECT_CUSTOM + 1);
	if (policy.kind == VQB_INDIRECT_THRESHOLD)
		policy.threshold = 1 + draw(rng, MAX_SEGMENTS);
	if (policy.kind == VQB_INDIRECT_CUSTOM) {
		policy.choose = choose;
		policy.context = p;
	}
	if (vqb_driver_set_policy(p->drv, &policy))
		give_up(p, "a policy was refused");
	p->draining = false;
	p->switches++;
}

static void *drive(void *arg)
{
	struct pair *p = arg;
	uint64_t rng = p->size * 7919u + 1;
	uint32_t reset_at = p->mode->resets ? p->mode->resets : UINT32_MAX;

	while (p->reaped + p->detached < p->total && !atomic_load(&p->done)) {
		uint32_t batch = 1 + draw(&rng, BATCH);

		switch_policy(p, &rng);
		if (draw(&rng, 2))
			vqb_driver_disarm(p->drv);
		while (!p->draining && batch-- && p->added < p->total && p->idle_count &&
		       add_one(p, &rng))
			continue;
		if (p->added >= reset_at) {
			start_over(p, &rng);
			reset_at = p->added + 1 + draw(&rng, 2 * p->mode->resets);
			continue;
		}
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
	return written(number, (uint32_t)chain->write_bytes);
}

static void serve_one(struct pair *p, const struct vqb_chain *chain)
{
	if (vqb_device_put(p->dev, chain->ticket, serve(p, chain)))
		give_up(p, "put was refused");
}

/* A chain that waits until those of the next take are put. */
struct late {
	struct vqb_chain chain;
	struct vqb_piece piece[MAX_SEGMENTS];
	bool waits;
};

static void serve_late(struct pair *p, struct late *late)
{
	if (late->waits)
		serve_one(p, &late->chain);
	late->waits = false;
}

static void make_late(struct late *late, const struct vqb_chain *chain)
{
	late->chain = *chain;
	late->chain.piece = late->piece;
	for (uint32_t i = 0; i < chain->readable + chain->writable && i < MAX_SEGMENTS; i++)
		late->piece[i] = chain->piece[i];
	late->waits = true;
}

/* Serves and puts the chains of one take, from a random one on round to the one before it. */
static void serve_all(struct pair *p, struct vqb_chain *chain, uint32_t n, uint64_t *rng)
{
	uint32_t first = draw(rng, n);

	for (uint32_t i = 0; i < n; i++) {
		struct vqb_chain *c = &chain[(first + i) % n];

		serve_one(p, c);
		if (!draw(rng, 16))
			vqb_device_expose(p->dev);
	}
}

static void interrupt_if(struct pair *p, uint32_t answer)
{
	if (answer & VQB_NOTIFY)
		sem_post(&p->interrupt);
}

/*
 * The device's half of starting over: what it has just taken is partly put and never exposed,
 * partly late, and told so.
 */
static void stop_and_resume(struct pair *p, uint64_t *rng)
{
	struct vqb_ring_at ring = { .features = p->features, .flags = p->mode->flags };
	struct vqb_chain chain[BATCH];
	struct vqb_piece piece[PIECES];
	struct vqb_need need;
	uint32_t n, early;

	if (vqb_device_take(p->dev, chain, 1 + draw(rng, BATCH), piece, PIECES, &n, &need))
		give_up(p, "take stopped before a reset");
	early = draw(rng, n + 1);
	if (early)
		serve_all(p, chain, early, rng);
	if (vqb_device_reset(p->dev, NULL))
		give_up(p, "the device did not let go of its ring");
	for (uint32_t i = 0; i < n; i++)
		if (vqb_device_put(p->dev, chain[i].ticket, 0) != VQB_E_STALE)
			give_up(p, "a ticket outlived a reset");
	sem_post(&p->stopped);
	sleep_on(p, &p->resumed, "the driver did not resume");
	ring.size = p->size;
	if (vqb_ring_place_at(&ring, GUEST_BASE, 64) || vqb_device_reset(p->dev, &ring))
		give_up(p, "the device did not start over");
}

/* Publishes and arms, in one or in two. */
static uint32_t turn(struct pair *p, uint64_t *rng)
{
	uint32_t answer;

	if (draw(rng, 2))
		return vqb_device_turn(p->dev);
	answer = vqb_device_publish(p->dev);
	return answer | vqb_device_arm(p->dev);
}

static void *serve_queue(void *arg)
{
	struct vqb_chain chain[BATCH];
	struct vqb_piece piece[PIECES];
	struct pair *p = arg;
	uint64_t rng = p->mode->size * 104729u + 2;
	struct late late = { 0 }, next;
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
			next.waits = false;
			if (!draw(&rng, 4)) /* the oldest one, which holds up the others in order */
				make_late(&next, &chain[0]);
			if (n > next.waits)
				serve_all(p, chain + next.waits, n - next.waits, &rng);
			serve_late(p, &late);
			if (next.waits)
				make_late(&late, &next.chain);
			if (draw(&rng, 2))
				interrupt_if(p, vqb_device_publish(p->dev));
		} else {
			serve_late(p, &late);
			answer = turn(p, &rng);
			interrupt_if(p, answer);
			if (!(answer & VQB_MORE))
				sleep_on(p, &p->kick, "the device was not woken");
		}
		if (atomic_load(&p->stop)) {
			late.waits = false;
			stop_and_resume(p, &rng);
		}
	}
	return NULL;
}

/* ---- one mode ---- */

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
	struct vqb_indirect_policy policy = { .struct_size = sizeof(policy),
					      .kind = p->mode->policy == SWITCHING
							      ? VQB_INDIRECT_ADAPTIVE
							      : p->mode->policy };
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
	drv.ring.flags = p->mode->flags;
	check(vqb_ring_place(&drv.ring, p->guest, 64));
	drv.tables = (struct vqb_dma){ .host = p->guest + tables_at,
				       .addr = GUEST_BASE + tables_at,
				       .bytes = tables_bytes };
	drv.max_table = TABLE_LENGTH;
	drv.policy = &policy;
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
	dev.ring.flags = p->mode->flags;
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
	assert_false(sem_init(&p->stopped, 0, 0) || sem_init(&p->resumed, 0, 0));
}

static void tear_down(struct pair *p)
{
	sem_destroy(&p->kick);
	sem_destroy(&p->interrupt);
	sem_destroy(&p->stopped);
	sem_destroy(&p->resumed);
	free(p->drv);
	free(p->dev);
	free(p->request);
	free(p->idle);
	free(p->guest);
}

/* What the counters say is what happened. */
static void check_counters(const struct pair *p)
{
	uint32_t policy = p->mode->policy;
	bool tables = policy != VQB_INDIRECT_NEVER && p->mode->size > 1;
	struct vqb_driver_counters drv;
	struct vqb_device_counters dev;

	vqb_driver_read_counters(p->drv, &drv);
	vqb_device_read_counters(p->dev, &dev);
	assert_int_equal(drv.requests, p->added);
	assert_int_equal(drv.completions, p->reaped);
	if (policy == ALWAYS || policy == NEVER || policy == SWITCHING) {
		assert_int_equal(drv.indirect > 0, tables);
		assert_int_equal(dev.indirect > 0, tables);
	}
	assert_int_equal(p->switches > 0, policy == SWITCHING);
	assert_int_equal(p->implied > 0, p->in_order && p->mode->size > 1);
	assert_true(dev.chains >= p->reaped && dev.chains <= p->added);
	assert_int_equal(dev.bad_chains, 0);
	assert_int_equal(p->resets > 0, p->mode->resets > 0);
	assert_int_equal(p->detached > 0, p->mode->resets > 0);
}

/*
 * Shows: SR-DRV-34 SR-DRV-35 SR-DRV-37 SR-DRV-38 SR-DEV-15 SR-DEV-25 SR-DEV-27 SR-DEV-28 SR-DEV-29
 */
/* Shows: K09 BF-DRV-33 */
static void run(void **state)
{
	const struct mode *mode = *state;
	struct pair p = { .mode = mode, .size = mode->size };
	struct vqb_memory map;
	struct vqb_extent ram;
	pthread_t driver, device;

	p.features = mode->features | VQB_FEATURE(VQB_F_INDIRECT_DESC);
	if (!mode->flags)
		p.features |= VQB_FEATURE(VQB_F_VERSION_1);
	p.in_order = mode->features & IN_ORDER;
	p.total = getenv("VQB_LONG") ? DEFAULT_REQUESTS : DEFAULT_REQUESTS / 1000 * mode->share;
	set_up(&p, &map, &ram);
	assert_false(pthread_create(&device, NULL, serve_queue, &p));
	assert_false(pthread_create(&driver, NULL, drive, &p));
	pthread_join(driver, NULL);
	pthread_join(device, NULL);
	if (atomic_load(&p.fault))
		fail_msg("after %u of %u requests and %u resets: %s", p.added, p.total, p.resets,
			 atomic_load(&p.fault));
	assert_int_equal(p.added, p.total);
	assert_int_equal(p.reaped + p.detached, p.total);
	assert_int_equal(vqb_driver_free(p.drv), p.size);
	check_counters(&p);
	tear_down(&p);
}

static struct mode modes[] = {
	{ "ring of 1, flags", 1, 0, ALWAYS, 0, 20, 0 },
	{ "ring of 1, events", 1, EVENTS, ALWAYS, 0, 20, 0 },
	{ "ring of 1, events, in order", 1, EVENTS | IN_ORDER, ALWAYS, 0, 10, 0 },
	{ "ring of 2, flags", 2, 0, ALWAYS, 0, 40, 0 },
	{ "ring of 2, events", 2, EVENTS, ALWAYS, 0, 40, 0 },
	{ "ring of 4, flags", 4, 0, ALWAYS, 0, 40, 0 },
	{ "ring of 4, events", 4, EVENTS, ALWAYS, 0, 40, 0 },
	{ "ring of 4, flags, in order", 4, IN_ORDER, ALWAYS, 0, 40, 0 },
	{ "ring of 8, events, policies", 8, EVENTS, SWITCHING, 0, 40, 0 },
	{ "ring of 128, flags", 128, 0, ALWAYS, 0, 60, 0 },
	{ "ring of 128, events", 128, EVENTS, ALWAYS, 0, 60, 0 },
	{ "ring of 128, events, in order", 128, EVENTS | IN_ORDER, ALWAYS, 0, 60, 0 },
	{ "ring of 128, flags, in order, policies", 128, IN_ORDER, SWITCHING, 0, 40, 0 },
	{ "ring of 128, events, policies", 128, EVENTS, SWITCHING, 0, 40, 0 },
	{ "ring of 128, flags, adaptive", 128, 0, ADAPTIVE, 0, 40, 0 },
	{ "ring of 32768, flags", 32768, 0, ALWAYS, 0, 70, 0 },
	{ "ring of 32768, events", 32768, EVENTS, ALWAYS, 0, 40, 0 },
	{ "ring of 128, flags, direct", 128, 0, NEVER, 0, 40, 0 },
	{ "ring of 128, events, direct", 128, EVENTS, NEVER, 0, 40, 0 },
	{ "ring of 128, events, device barriers", 128, EVENTS | PLATFORM, ALWAYS, 0, 40, 0 },
	{ "ring of 128, events, big-endian", 128, EVENTS, ALWAYS, 0, 40, VQB_RING_BIG_ENDIAN },
	{ "ring of 1, events, resets", 1, EVENTS, ALWAYS, 50, 20, 0 },
	{ "ring of 64, flags, resets", 64, 0, ALWAYS, 500, 20, 0 },
	{ "ring of 64, events, resets", 64, EVENTS, ALWAYS, 500, 20, 0 },
	{ "ring of 64, events, direct, resets", 64, EVENTS, NEVER, 500, 20, 0 },
	{ "ring of 64, events, in order, resets", 64, EVENTS | IN_ORDER, ALWAYS, 500, 20, 0 },
	{ "ring of 64, flags, big-endian, resets", 64, 0, ALWAYS, 500, 20, VQB_RING_BIG_ENDIAN },
	{ "ring of 32768, events, resets", 32768, EVENTS, ALWAYS, 2000, 20, 0 },
};

int main(void)
{
	enum { MODES = sizeof(modes) / sizeof(modes[0]) };
	struct CMUnitTest tests[MODES] = { { 0 } };

	for (unsigned i = 0; i < MODES; i++) {
		tests[i].name = modes[i].name;
		tests[i].test_func = run;
		tests[i].initial_state = &modes[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
