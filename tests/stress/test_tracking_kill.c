/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device is stopped at any instruction, and another goes on from the tracking area: nothing is
 * lost, nothing comes back twice, and what was in flight is taken again in its first order, before
 * anything new.
 *
 * Once in this process: stopped before each store in turn, then the one that follows before each
 * of its own, with a driver that looks and offers anew between any two stores. And once for real:
 * the device is a process that is killed at random, hundreds of times, while the driver goes on.
 *
 * The driver numbers its requests. A request is one chain: its number to be read, and room for the
 * answer. So a device can tell in which order it takes them, and the driver whose answer it got.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vqblk/device.h>
#include <vqblk/wire.h>

#include "probe_port.h"
#include "raw_ring.h"
#include "unit.h"

#define BASE UINT64_C(0x10000)
#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define EVENT_IDX VQB_FEATURE(VQB_F_EVENT_IDX)

enum {
	SLOTS = 8, /* requests at a time, of two descriptors each */
	SIZE = 2 * SLOTS,
	AVAIL_AT = 16 * SIZE,
	USED_AT = AVAIL_AT + 6 + 2 * SIZE + 2,
	BUFFERS_AT = 0x800,
	GUEST_BYTES = 0x1000,
	KILLS = 300,
};

/* What outlives a device. */
struct shared {
	uint64_t area[VQB_TRACKING_BYTES(SIZE) / 8];
	uint64_t guest[GUEST_BYTES / 8];
	uint32_t beats;  /* of the device's loop in its present life */
	uint32_t finish; /* end when nothing is left */
	char fault[256]; /* what a device found wrong */
};

static struct shared *shared;

/* ---- what is found wrong, in either process ---- */

static int is_child;

static void violated(const char *what, int line)
{
	if (!is_child)
		fail_msg("line %d: %s", line, what);
	strncpy(shared->fault, what, sizeof(shared->fault) - 1);
	_exit(1);
}

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			violated(#what, __LINE__);                                                 \
	} while (0)

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % below;
}

/* ---- the driver ---- */

struct driver {
	struct raw_ring ring;
	uint64_t features;
	uint64_t request[SLOTS]; /* out, by slot; 0: none */
	uint64_t newest, answered;
	uint16_t first, avail, used;
	int closed; /* offers no more */
};

static struct driver driver;

static uint8_t *buffer(unsigned slot)
{
	return (uint8_t *)shared->guest + BUFFERS_AT + 32 * (size_t)slot;
}

static uint64_t answer_to(uint64_t request)
{
	return request * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* Some are answered short, which ends a batch under IN_ORDER. */
static uint32_t length_of(uint64_t request)
{
	return request % 5 ? 8 : 4;
}

/* The indices are stored and loaded whole: a device may run at the same time. */
static void store_idx(uint8_t *p, uint16_t v)
{
	__atomic_store_n((uint16_t *)(void *)p, vqb_swap_le16(v), __ATOMIC_SEQ_CST);
}

static uint16_t load_idx(const uint8_t *p)
{
	return vqb_swap_le16(__atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_SEQ_CST));
}

static void driver_start(uint64_t features, uint16_t idx)
{
	uint8_t *at = (uint8_t *)shared->guest;

	memset(shared, 0, sizeof(*shared));
	driver = (struct driver){ .ring = { at, at + AVAIL_AT, at + USED_AT, SIZE },
				  .features = features,
				  .first = idx,
				  .avail = idx,
				  .used = idx };
	store_idx(driver.ring.avail + 2, idx);
	store_idx(driver.ring.used + 2, idx);
}

static void driver_offer_at(unsigned slot)
{
	uint64_t at = BASE + BUFFERS_AT + 32 * slot;

	driver.request[slot] = ++driver.newest;
	poke(buffer(slot), driver.newest, 8);
	poke(buffer(slot) + 8, 0, 8);
	raw_desc(driver.ring.desc, 2 * slot, at, 8, RAW_NEXT, 2 * slot + 1);
	raw_desc(driver.ring.desc, 2 * slot + 1, at + 8, 8, RAW_WRITE, 0);
	poke(driver.ring.avail + 4 + 2 * (size_t)(driver.avail % SIZE), 2 * slot, 2);
	store_idx(driver.ring.avail + 2, ++driver.avail);
}

/* IN_ORDER: slots are used in turn. Else in whatever order they come free. */
static void driver_offer(void)
{
	for (unsigned i = 0; i < SLOTS && !driver.closed; i++) {
		unsigned slot = driver.features & IN_ORDER ? driver.newest % SLOTS : SLOTS - 1 - i;

		if (!driver.request[slot])
			driver_offer_at(slot);
	}
}

static void driver_answered(unsigned slot, uint32_t len)
{
	uint64_t request = driver.request[slot];

	CHECK(request);
	CHECK(peek(buffer(slot) + 8, 8) == answer_to(request));
	CHECK(len == length_of(request));
	driver.request[slot] = 0;
	driver.answered++;
	driver.used++;
}

/* One element, and under IN_ORDER the chains before its own that it stands for. */
static void driver_reap_one(void)
{
	uint32_t id = raw_used_id(&driver.ring, driver.used);
	uint32_t len = raw_used_len(&driver.ring, driver.used);
	uint16_t idx = load_idx(driver.ring.used + 2);

	CHECK(id < SIZE && id % 2 == 0);
	while (driver.features & IN_ORDER && driver.answered % SLOTS != id / 2) {
		CHECK(driver.used != idx);
		driver_answered(driver.answered % SLOTS, 8);
	}
	CHECK(driver.used != idx);
	driver_answered(id / 2, len);
}

static void driver_poll(void)
{
	CHECK((uint16_t)(load_idx(driver.ring.used + 2) - driver.used) <= SLOTS);
	while (driver.used != load_idx(driver.ring.used + 2))
		driver_reap_one();
	driver_offer();
}

/* ---- the device, one life of it ---- */

struct life {
	struct vqb_extent ram;
	struct vqb_memory memory;
	struct vqb_device *dev;
	struct vqb_chain out[SLOTS];
	uint64_t request[SLOTS]; /* of `out` */
	struct vqb_piece piece[SLOTS][2];
	uint32_t outs;
	uint64_t newest; /* request taken */
};

static struct life life;
static _Alignas(64) uint8_t object[VQB_DEVICE_BYTES(SIZE)];

static void life_start(void)
{
	const struct vqb_ring_at ring = { .size = SIZE,
					  .features = driver.features,
					  .desc = BASE,
					  .avail = BASE + AVAIL_AT,
					  .used = BASE + USED_AT };
	const struct vqb_device_saved saved = { driver.first, driver.first };
	struct vqb_device_config config = { .struct_size = sizeof(config), .max_size = SIZE };

	memset(&life, 0, sizeof(life));
	memset(object, 0x5a, sizeof(object));
	life.ram = (struct vqb_extent){ BASE, GUEST_BYTES, shared->guest, VQB_READ | VQB_WRITE, 0 };
	life.memory = (struct vqb_memory){ .struct_size = sizeof(life.memory),
					   .count = 1,
					   .sorted = &life.ram };
	config.memory = &life.memory;
	config.tracking = (struct vqb_tracking){ shared->area, sizeof(shared->area) };
	if (!driver.first)
		config.ring = ring;
	CHECK(!vqb_device_init(object, sizeof(object), &config, &life.dev));
	/* Where the area is new, the first life starts here; later ones are told better by it. */
	if (driver.first)
		CHECK(!vqb_device_restore(life.dev, &ring, &saved));
}

/* The oldest first, and each that is not answered. */
static void life_take(uint32_t max)
{
	while (max-- && life.outs < SLOTS) {
		struct vqb_chain *chain = &life.out[life.outs];
		struct vqb_need need;
		uint32_t taken;
		uint64_t request;

		CHECK(!vqb_device_take(life.dev, chain, 1, life.piece[life.outs], 2, &taken,
				       &need));
		if (!taken)
			return;
		CHECK(chain->readable == 1 && chain->writable == 1);
		request = peek(chain->piece[0].base, 8);
		CHECK(request > life.newest);
		life.newest = request;
		life.request[life.outs++] = request;
	}
}

static void life_untake(void)
{
	uint32_t last = life.outs - 1;

	if (!life.outs || life.request[last] != life.newest)
		return;
	CHECK(!vqb_device_untake(life.dev, life.out[last].ticket));
	life.newest--;
	life.outs--;
}

/* Serves the `i`th of those that are out. */
static void life_put(uint32_t i)
{
	struct vqb_chain *chain = &life.out[i];
	uint64_t request = life.request[i];

	poke(life.piece[i][1].base, answer_to(request), 8);
	CHECK(!vqb_device_put(life.dev, chain->ticket, length_of(request)));
	life.outs--;
	for (; i < life.outs; i++) {
		life.out[i] = life.out[i + 1];
		life.request[i] = life.request[i + 1];
		memcpy(life.piece[i], life.piece[i + 1], sizeof(life.piece[i]));
	}
}

/* ---- stopped before each store in turn ---- */

static jmp_buf stopped;
static long stores_left; /* until the stop; below 0: none */

/* Between any two stores the driver looks, and offers what it has got back anew. */
static void before_store(const void *p, uint64_t v, unsigned bytes)
{
	(void)p;
	(void)v;
	(void)bytes;
	driver_poll();
	if (stores_left >= 0 && stores_left-- == 0)
		longjmp(stopped, 1);
}

/* A life that does everything there is to do, with several batches that overlap. */
static void live(void)
{
	life_start();
	driver_poll();
	life_take(5);
	life_put(3);
	life_put(1);
	vqb_device_publish(life.dev);
	driver_poll();
	life_take(3);
	life_untake();
	life_untake();
	if (life.outs)
		life_put(0);
	life_take(4);
	while (life.outs > 2)
		life_put(life.outs - 2);
	vqb_device_turn(life.dev);
	driver_poll();
	life_take(3);
	if (life.outs)
		life_put(0);
	vqb_device_expose(life.dev);
	if (life.outs)
		life_put(0);
}

/* A life that ends before its store number `stop`. Answers 0 where it has fewer. */
static int live_until(long stop)
{
	volatile int was_stopped = 1;

	stores_left = stop;
	probe_store = before_store;
	if (!setjmp(stopped)) {
		live();
		was_stopped = 0;
	}
	probe_store = NULL;
	return was_stopped;
}

/* A last life, with nothing new, brings back all that is left. */
static void live_to_the_end(void)
{
	driver.closed = 1;
	life_start();
	do {
		life_take(SLOTS);
		while (life.outs)
			life_put(draw(life.outs));
		vqb_device_publish(life.dev);
		driver_poll();
	} while (vqb_device_pending(life.dev));
	CHECK(driver.answered == driver.newest);
	CHECK(driver.used == driver.avail);
}

static void stop_at_every_store(uint64_t features, uint16_t idx)
{
	long first = 0, second, lives = 0;
	int more = 1;

	while (more) {
		int again = 1;

		for (second = 0; again; second++) {
			driver_start(features, idx);
			more = live_until(first);
			again = live_until(second);
			live_to_the_end();
			lives++;
		}
		first++;
	}
	assert_true(first > 50 && lives > 2500);
}

static void test_a_stop_at_any_store_loses_nothing(void **state)
{
	(void)state;
	stop_at_every_store(0, 0);
}

static void test_a_stop_where_the_index_goes_round_loses_nothing(void **state)
{
	(void)state;
	for (unsigned before = 1; before < 12; before += 5)
		stop_at_every_store(0, (uint16_t)(65536 - before));
}

static void test_a_stop_at_any_store_loses_nothing_in_order(void **state)
{
	(void)state;
	stop_at_every_store(IN_ORDER | EVENT_IDX, 0);
}

/* ---- killed at random ---- */

static void child_step(void)
{
	switch (draw(6)) {
	case 0:
	case 1:
		life_take(1 + draw(4));
		break;
	case 2:
	case 3:
		if (life.outs)
			life_put(draw(life.outs));
		break;
	case 4:
		if (draw(4))
			vqb_device_publish(life.dev);
		else
			vqb_device_turn(life.dev);
		break;
	default:
		if (draw(2))
			life_untake();
		else
			vqb_device_expose(life.dev);
	}
}

static void child(pid_t parent)
{
	is_child = 1;
	life_start();
	for (;;) {
		child_step();
		if (!(__atomic_add_fetch(&shared->beats, 1, __ATOMIC_RELAXED) % 256) &&
		    getppid() != parent)
			_exit(2);
		if (!__atomic_load_n(&shared->finish, __ATOMIC_RELAXED) || life.outs)
			continue;
		vqb_device_publish(life.dev);
		if (!vqb_device_pending(life.dev))
			_exit(0);
	}
}

static pid_t child_start(void)
{
	pid_t pid, parent = getpid();

	shared->beats = 0;
	seed += 77;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(parent);
	return pid;
}

/* Has it ended? Not unless it was told to, or found something wrong. */
static int child_ended(pid_t pid)
{
	int how;

	if (waitpid(pid, &how, WNOHANG) != pid)
		return 0;
	if (!WIFEXITED(how) || WEXITSTATUS(how))
		fail_msg("the device: %s", shared->fault[0] ? shared->fault : "crashed");
	return 1;
}

/* Lets a device live for some of its steps and kills it wherever it is then. */
static void child_live_and_die(void)
{
	uint32_t steps = draw(200);
	pid_t pid = child_start();

	while (__atomic_load_n(&shared->beats, __ATOMIC_RELAXED) <= steps) {
		driver_poll();
		assert_false(child_ended(pid));
	}
	for (uint32_t spins = draw(300); spins--;)
		__atomic_load_n(&shared->beats, __ATOMIC_RELAXED);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void kill_many(uint64_t features)
{
	pid_t pid;

	driver_start(features, 0);
	for (unsigned i = 0; i < KILLS; i++)
		child_live_and_die();
	driver.closed = 1;
	shared->finish = 1;
	pid = child_start();
	while (!child_ended(pid))
		driver_poll();
	driver_poll();
	assert_int_equal(driver.answered, driver.newest);
	assert_true(driver.newest > KILLS);
}

static void test_three_hundred_kills_lose_nothing(void **state)
{
	(void)state;
	kill_many(0);
}

static void test_three_hundred_kills_lose_nothing_in_order(void **state)
{
	(void)state;
	kill_many(IN_ORDER | EVENT_IDX);
}

static int map_shared(void **state)
{
	(void)state;
	shared = (struct shared *)mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stop_at_any_store_loses_nothing),
		cmocka_unit_test(test_a_stop_where_the_index_goes_round_loses_nothing),
		cmocka_unit_test(test_a_stop_at_any_store_loses_nothing_in_order),
		cmocka_unit_test(test_three_hundred_kills_lose_nothing),
		cmocka_unit_test(test_three_hundred_kills_lose_nothing_in_order),
	};

	return cmocka_run_group_tests(tests, map_shared, NULL);
}
