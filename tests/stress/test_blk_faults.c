/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four queues of one disk, each with a thread that serves it and a thread that drives it, over one
 * image and bad storage: what the backend does, a fault backend makes worse.
 *
 * Each request has to come back once, with the status that its own sectors earned, whatever it was
 * joined with; and what was written is there in the end. Each queue has its own part of the disk,
 * and remembers for each sector what it may hold: one version, or several after a write that failed
 * or that a reset ended. Requests that are out together don't overlap, but for reads.
 *
 * With resets, a queue stops from time to time with requests on their way. From the reset on no
 * status is written, and from the moment that quiesce has answered VQB_OK no byte of any buffer.
 *
 * VQB_LONG=1 makes it twenty times as long, VQB_SEED another run.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vqblk/backend_fault.h>
#include <vqblk/blk_device.h>
#include <vqblk/driver.h>
#include <vqblk/host/file.h>
#include <vqblk/host/threads.h>
#include <vqblk/host/uring.h>

#include "host.h"
#include "length.h"
#include "random.h"
#include "sectors.h"
#include "unit.h"

#define EVENTS VQB_FEATURE(VQB_F_EVENT_IDX)
#define IN_ORDER VQB_FEATURE(VQB_F_IN_ORDER)
#define TYPES                                                                                      \
	(VQB_FEATURE(VQB_F_VERSION_1) | VQB_FEATURE(VQB_BLK_F_FLUSH) |                             \
	 VQB_FEATURE(VQB_BLK_F_DISCARD) | VQB_FEATURE(VQB_BLK_F_WRITE_ZEROES))
#define GUEST_BASE UINT64_C(0x7000000000)

enum {
	QUEUES = 4,
	AREA = SECTORS, /* of the disk for each queue */
	DISK = 512 * AREA * QUEUES,
	RING = 128,
	SLOTS = 40,  /* requests out, at most */
	LONGEST = 8, /* sectors of one read or write */
	RANGES = 3,
	MAX_RANGE = 512 * 5, /* bytes of one io; they may have more */
	DATA_AT = 8192,      /* in guest memory, behind the ring */
	SLOT_BYTES = 512 * LONGEST,
	HEADER_AT = DATA_AT + SLOTS * SLOT_BYTES,
	STATUS_AT = HEADER_AT + 16 * SLOTS,
	GUEST = STATUS_AT + SLOTS,
	POISON = 0xe7,
	UNWRITTEN = 0xaa,
	REQUESTS = 2000, /* of each queue, in each run */
	BETWEEN = 120,   /* of them between two resets, about */
};

enum kind { MEMORY, SYNC_FILE, THREADS, URING };

/* One way of running it: a row of the table at the end. */
struct mode {
	const char *name;
	enum kind kind;
	bool merge, resets;
	bool chance; /* errors by chance as well; else only bad sectors fail */
};

struct request {
	bool out;
	uint8_t type;
	uint32_t sector, sectors, version; /* of the queue's part; of a range request: in all */
};

struct queue {
	struct test *test;
	unsigned index;
	/* set up before the threads start */
	uint8_t *guest;
	struct vqb_extent ram;
	struct vqb_memory map;
	struct vqb_ring ring;
	struct vqb_driver *drv;
	struct vqb_backend *below;
	struct host host; /* the device's end, and its thread */
	/* the driver's */
	struct random random;
	struct request request[SLOTS];
	struct sectors sectors;
	uint32_t next, out, added, reaped, detached, resets, reset_at;
	uint32_t failed_well; /* requests that failed though all of their sectors are good */
	void *object[8];
	unsigned objects;
};

struct test {
	const struct mode *mode;
	uint32_t requests;
	uint8_t *disk; /* MEMORY */
	char path[64];
	struct vqb_file *file;
	struct vqb_threads *pool;
	void *file_mem, *pool_mem, *disk_mem;
	struct vqb_blk_device *device;
	struct queue queue[QUEUES];
	_Atomic(const char *) fault; /* the first thing that went wrong */
};

static uint64_t seed;

/* ---- failing, from any thread ---- */

static bool failed(const struct queue *q)
{
	return host_failed(&q->host);
}

static void give_up(struct queue *q, const char *what)
{
	host_give_up(&q->host, what);
}

static void expect(struct queue *q, bool holds, const char *what)
{
	host_expect(&q->host, holds, what);
}

/* ---- the driver: making requests ---- */

static uint64_t fault_seed(const struct queue *q)
{
	return seed * 16 + q->index;
}

static bool is_bad(const struct queue *q, uint32_t sector)
{
	return vqb_backend_fault_is_bad(fault_seed(q), PER_CENT,
					(uint64_t)q->index * AREA + sector);
}

static bool any_bad(const struct queue *q, const struct request *r)
{
	for (uint32_t i = 0; r->type != VQB_BLK_FLUSH && i < r->sectors; i++) {
		if (is_bad(q, r->sector + i))
			return true;
	}
	return false;
}

static uint8_t *data_of(const struct queue *q, uint32_t slot)
{
	return q->guest + DATA_AT + (size_t)slot * SLOT_BYTES;
}

/* The sectors of a request become in use, or are let go of. */
static void occupy(struct queue *q, const struct request *r, int by)
{
	if (r->type != VQB_BLK_FLUSH)
		sectors_occupy(&q->sectors, r->sector, r->sectors, r->type == VQB_BLK_IN, by);
}

static int find_slot(struct queue *q)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		q->next = (q->next + 1) % SLOTS;
		if (!q->request[q->next].out)
			return (int)q->next;
	}
	return -1;
}

/* Ranges that are neighbours, some of them empty. Answers their bytes. */
static uint32_t write_ranges(struct queue *q, const struct request *r, uint8_t *to)
{
	uint32_t sector = r->sector, left = r->sectors, n = 0;

	while (n < RANGES) {
		uint32_t sectors = n == RANGES - 1 ? left : random_below(&q->random, left + 1);
		struct vqb_blk_range range = {
			.sector = vqb_to_le64((uint64_t)q->index * AREA + sector),
			.sectors = vqb_to_le32(sectors),
		};

		memcpy(to + 16 * (size_t)n++, &range, sizeof(range));
		sector += sectors;
		left -= sectors;
	}
	return 16 * n;
}

static uint32_t fill(struct queue *q, const struct request *r, uint8_t *data)
{
	if (r->type == VQB_BLK_FLUSH)
		return 0;
	if (r->type == VQB_BLK_DISCARD || r->type == VQB_BLK_WRITE_ZEROES)
		return write_ranges(q, r, data);
	for (uint32_t i = 0; i < r->sectors; i++) {
		if (r->type == VQB_BLK_OUT)
			sectors_stamp(&q->sectors, data + 512 * (size_t)i, r->sector + i,
				      r->version);
		else
			memset(data + 512 * (size_t)i, POISON, 512);
	}
	return 512 * r->sectors;
}

static uint64_t guest_addr(const struct queue *q, const uint8_t *at)
{
	return GUEST_BASE + (uint64_t)(at - q->guest);
}

/* Adds what is in the slot: header, data in one or two segments, status. */
static int32_t add(struct queue *q, uint32_t slot)
{
	struct request *r = &q->request[slot];
	uint8_t *data = data_of(q, slot), *header = q->guest + HEADER_AT + 16 * (size_t)slot;
	uint32_t bytes = fill(q, r, data), cut = 0, n = 1;
	struct vqb_segment seg[4] = { { .addr = guest_addr(q, header), .len = 16 } };
	struct vqb_blk_header h = { .type = vqb_to_le32(r->type) };

	if (r->type == VQB_BLK_IN || r->type == VQB_BLK_OUT)
		h.sector = vqb_to_le64((uint64_t)q->index * AREA + r->sector);
	memcpy(header, &h, sizeof(h));
	if (bytes > 1 && random_one_in(&q->random, 3))
		cut = 1 + random_below(&q->random, bytes - 1);
	if (cut)
		seg[n++] = (struct vqb_segment){ .addr = guest_addr(q, data), .len = cut };
	if (bytes)
		seg[n++] = (struct vqb_segment){ .addr = guest_addr(q, data + cut),
						 .len = bytes - cut };
	q->guest[STATUS_AT + slot] = UNWRITTEN;
	seg[n].addr = GUEST_BASE + STATUS_AT + slot;
	seg[n].len = 1;
	if (r->type == VQB_BLK_IN)
		return vqb_driver_add(q->drv, seg, 1, n, r);
	return vqb_driver_add(q->drv, seg, n, 1, r);
}

/* One request. 0: not now. */
static bool ask(struct queue *q, uint8_t type, uint32_t sector, uint32_t sectors)
{
	int slot = find_slot(q);
	struct request *r;

	if (slot < 0 || q->added == q->test->requests ||
	    (type != VQB_BLK_FLUSH &&
	     !sectors_free(&q->sectors, sector, sectors, type == VQB_BLK_IN)))
		return false;
	r = &q->request[slot];
	*r = (struct request){ .type = type, .sector = sector, .sectors = sectors };
	if (type == VQB_BLK_OUT)
		r->version = ++q->sectors.newest;
	if (add(q, (uint32_t)slot))
		return false;
	r->out = true;
	occupy(q, r, 1);
	q->out++;
	q->added++;
	return true;
}

/* A run of reads or writes that are neighbours, or something else. */
static void ask_some(struct queue *q)
{
	uint32_t sector = random_below(&q->random, AREA), kind = random_below(&q->random, 20);
	uint32_t run = 1 + random_below(&q->random, 8), n;

	if (kind < 2) {
		ask(q, kind ? VQB_BLK_DISCARD : VQB_BLK_WRITE_ZEROES, sector,
		    1 + random_below(&q->random, 20));
		return;
	}
	if (kind == 2) {
		if (random_one_in(&q->random, 3))
			ask(q, VQB_BLK_FLUSH, 0, 0);
		return;
	}
	for (; run; run--, sector += n) {
		n = 1 + random_below(&q->random, LONGEST);
		if (!ask(q, kind & 1 ? VQB_BLK_IN : VQB_BLK_OUT, sector, n))
			return;
	}
}

/* ---- the driver: what comes of them ---- */

/* The request has ended, or nobody knows. */
static void remember(struct queue *q, struct request *r, bool decided)
{
	bool changes = r->type != VQB_BLK_IN && r->type != VQB_BLK_FLUSH;

	if (changes && decided)
		sectors_settle(&q->sectors, r->sector, r->sectors, r->version);
	else if (changes)
		sectors_doubt(&q->sectors, r->sector, r->sectors, r->version);
	occupy(q, r, -1);
	r->out = false;
	q->out--;
}

static void check_read(struct queue *q, const struct request *r, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < r->sectors && 512 * (i + 1) <= len; i++)
		expect(q, sectors_verify(&q->sectors, r->sector + i, data + 512 * (size_t)i),
		       "a read brought something else");
}

static void complete(struct queue *q, const struct vqb_done *done)
{
	struct request *r = done->token;
	uint32_t slot = (uint32_t)(r - q->request);
	uint8_t status = q->guest[STATUS_AT + slot];
	uint32_t bytes = r->type == VQB_BLK_IN ? 512 * r->sectors : 0;
	bool good = status == VQB_BLK_S_OK;

	q->reaped++;
	if (!r->out) {
		give_up(q, "a request came back twice");
		return;
	}
	expect(q, good || status == VQB_BLK_S_IOERR, "a status that there is no reason for");
	expect(q, !good || !any_bad(q, r), "OK, in spite of a bad sector");
	expect(q, good || any_bad(q, r) || q->test->mode->chance, "an error without a cause");
	expect(q,
	       good    ? done->len == bytes + 1
	       : bytes ? done->len < bytes
		       : done->len == 1,
	       "the length is not that of what was written");
	q->failed_well += !good && !any_bad(q, r);
	if (r->type == VQB_BLK_IN)
		check_read(q, r, data_of(q, slot), done->len);
	remember(q, r, good);
}

static uint32_t reap(struct queue *q)
{
	struct vqb_done done[SLOTS];
	uint32_t n = vqb_driver_reap(q->drv, done, SLOTS);

	for (uint32_t i = 0; i < n; i++)
		complete(q, &done[i]);
	expect(q, !vqb_driver_state(q->drv), "the driver's ring is broken");
	return n;
}

/* ---- the driver: resets ---- */

static void poison(struct queue *q)
{
	memset(q->guest + DATA_AT, POISON, GUEST - DATA_AT);
}

static bool is_poisoned(const struct queue *q)
{
	for (size_t i = DATA_AT; i < GUEST; i++) {
		if (q->guest[i] != POISON)
			return false;
	}
	return true;
}

static void take_back(struct queue *q)
{
	void *token[SLOTS];
	uint32_t n = 0;

	expect(q, !vqb_driver_reset(q->drv, NULL), "the driver's reset was refused");
	expect(q, !vqb_driver_detach(q->drv, token, SLOTS, &n), "more tokens than there are");
	for (uint32_t i = 0; i < n; i++) {
		struct request *r = token[i];

		expect(q, r->out, "a token that is not out");
		remember(q, r, false);
	}
	q->detached += n;
	expect(q, !q->out, "a request was lost");
}

static void start_over(struct queue *q)
{
	q->resets++;
	q->reset_at = q->added + 1 + random_below(&q->random, 2 * BETWEEN);
	host_stop(&q->host);
	if (failed(q))
		return;
	take_back(q);
	poison(q);
	host_late(&q->host);
	if (failed(q))
		return;
	expect(q, is_poisoned(q), "a buffer was written after the queue was quiet");
	expect(q, !vqb_driver_reset(q->drv, &q->ring), "the driver does not start over");
	host_resume(&q->host);
}

static void *drive(void *context)
{
	struct queue *q = context;

	while (!failed(q) && (q->added < q->test->requests || q->out)) {
		uint32_t n, added = q->added;

		if (!random_one_in(&q->random, 4))
			ask_some(q);
		if (random_one_in(&q->random, 3))
			host_kick(&q->host, vqb_driver_publish(q->drv));
		n = reap(q);
		if (q->test->mode->resets && q->added >= q->reset_at &&
		    q->added < q->test->requests) {
			host_kick(&q->host, vqb_driver_publish(q->drv));
			start_over(q);
			continue;
		}
		if (n || (added != q->added && !random_one_in(&q->random, 8)) || !q->out)
			continue;
		n = vqb_driver_turn(q->drv);
		host_kick(&q->host, n);
		if (!(n & VQB_MORE) && vqb_notify_wait(&q->host.interrupt, HOST_PATIENCE))
			give_up(q, "the driver was not woken");
	}
	host_end(&q->host);
	return NULL;
}

/* ---- setting up ---- */

static void *object(struct queue *q, size_t bytes)
{
	assert_true(bytes && q->objects < sizeof(q->object) / sizeof(q->object[0]));
	return q->object[q->objects++] = host_memory(bytes);
}

static void check(int32_t status)
{
	assert_int_equal(status, VQB_OK);
}

static void open_file(struct test *t)
{
	static const char *const dirs[] = { "/dev/shm", "." };
	struct vqb_file_config config = { .struct_size = sizeof(config),
					  .access = VQB_READ | VQB_WRITE,
					  .path = t->path };
	int fd = -1;

	for (unsigned i = 0; fd < 0 && i < 2; i++) {
		snprintf(t->path, sizeof(t->path), "%s/vqblk-test-XXXXXX", dirs[i]);
		fd = mkstemp(t->path);
	}
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, DISK), 0);
	close(fd);
	t->file_mem = host_memory(vqb_file_size());
	check(vqb_file_open(t->file_mem, vqb_file_size(), &config, &t->file));
}

static void open_store(struct test *t)
{
	struct vqb_threads_config config = { .struct_size = sizeof(config), .threads = 3 };

	if (t->mode->kind == MEMORY)
		t->disk = host_memory(DISK);
	else
		open_file(t);
	if (t->mode->kind == THREADS) {
		t->pool_mem = host_memory(vqb_threads_size(&config));
		check(vqb_threads_open(t->pool_mem, vqb_threads_size(&config), &config, &t->pool));
	}
}

/* VQB_E_UNSUPP: not on this system. */
static int32_t open_below(struct queue *q)
{
	struct test *t = q->test;
	struct vqb_backend_memory_config m = { .struct_size = sizeof(m),
					       .access = VQB_READ | VQB_WRITE,
					       .disk = t->disk,
					       .bytes = DISK };
	struct vqb_threads_backend_config p = { .struct_size = sizeof(p),
						.depth = 24,
						.pool = t->pool,
						.file = t->file,
						.notify = &q->host.kick };
	struct vqb_uring_config u = {
		.struct_size = sizeof(u), .entries = 24, .file = t->file, .notify = &q->host.kick
	};
	size_t bytes;

	if (t->mode->kind == MEMORY) {
		bytes = vqb_backend_memory_size();
		return vqb_backend_memory_init(object(q, bytes), bytes, &m, &q->below);
	}
	if (t->mode->kind == SYNC_FILE) {
		bytes = vqb_file_backend_size();
		return vqb_file_backend_init(object(q, bytes), bytes, t->file, &q->below);
	}
	if (t->mode->kind == THREADS) {
		bytes = vqb_threads_backend_size();
		return vqb_threads_backend_init(object(q, bytes), bytes, &p, &q->below);
	}
	bytes = vqb_uring_size(&u);
	return vqb_uring_init(object(q, bytes), bytes, &u, &q->below);
}

static void open_faults(struct queue *q)
{
	struct vqb_backend_fault_config config = { .struct_size = sizeof(config),
						   .ios = 32,
						   .pieces = 16,
						   .delay = 8,
						   .alignment = 512,
						   .seed = fault_seed(q),
						   .below = q->below };
	size_t bytes;

	host_fault_rates(&config, q->test->mode->chance);
	bytes = vqb_backend_fault_size(&config);
	check(vqb_backend_fault_init(object(q, bytes), bytes, &config, &q->host.backend));
	/* So that a range takes several steps. */
	q->host.backend->caps.max_range = MAX_RANGE;
}

static void make_device(struct test *t, const struct vqb_backend_caps *caps)
{
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .capacity = DISK / 512,
					 .queues = QUEUES,
					 .discard_sectors = 64,
					 .discard_ranges = RANGES,
					 .zeroes_sectors = 64,
					 .zeroes_ranges = RANGES };
	struct vqb_blk_device_config config = { .struct_size = sizeof(config),
						.features = TYPES | EVENTS | IN_ORDER,
						.limits = &limits,
						.backend = caps };

	t->disk_mem = host_memory(vqb_blk_device_size());
	check(vqb_blk_device_init(t->disk_mem, vqb_blk_device_size(), &config, &t->device));
	assert_int_equal(vqb_blk_device_features(t->device) & TYPES, TYPES);
}

static void make_queue(struct queue *q)
{
	struct vqb_coalescer_config joining = { .struct_size = sizeof(joining),
						.joins = 32,
						.pieces = 256,
						.max_pieces = 64,
						.max_transfer = 65536 };
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config),
					       .requests = SLOTS,
					       .pieces = 4 * SLOTS,
					       .features = q->ring.features,
					       .device = q->test->device,
					       .ring = q->host.dev,
					       .backend = q->host.backend };
	size_t bytes;

	if (joining.max_pieces > q->host.backend->caps.max_pieces)
		joining.max_pieces = q->host.backend->caps.max_pieces;
	if (q->test->mode->merge) {
		bytes = vqb_coalescer_size(&joining);
		check(vqb_coalescer_init(object(q, bytes), bytes, &joining, &config.coalescer));
	}
	bytes = vqb_blk_queue_size(&config);
	check(vqb_blk_queue_init(object(q, bytes), bytes, &config, &q->host.queue));
}

static void make_ring(struct queue *q)
{
	static const uint64_t features[QUEUES] = { 0, EVENTS, EVENTS | IN_ORDER, EVENTS };
	struct vqb_driver_config drv = { .struct_size = sizeof(drv) };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &q->map };

	q->guest = host_memory(GUEST);
	q->host.status = q->guest + STATUS_AT;
	q->host.statuses = SLOTS;
	q->ring.size = q->host.at.size = RING;
	q->ring.features = q->host.at.features = TYPES | features[q->index];
	check(vqb_ring_place(&q->ring, q->guest, 64));
	check(vqb_ring_place_at(&q->host.at, GUEST_BASE, 64));
	q->ram = (struct vqb_extent){
		.addr = GUEST_BASE, .len = GUEST, .host = q->guest, .access = VQB_READ | VQB_WRITE
	};
	q->map = (struct vqb_memory){
		.struct_size = sizeof(q->map), .generation = 1, .count = 1, .sorted = &q->ram
	};
	drv.ring = q->ring;
	check(vqb_driver_init(object(q, vqb_driver_size(&drv)), vqb_driver_size(&drv), &drv,
			      &q->drv));
	dev.ring = q->host.at;
	check(vqb_device_init(object(q, vqb_device_size(&dev)), vqb_device_size(&dev), &dev,
			      &q->host.dev));
}

static int32_t open_queue(struct queue *q)
{
	int32_t status;

	host_open(&q->host, &q->test->fault, seed * 64 + 2 * q->index + 1);
	q->random.state = seed * 64 + 2 * q->index;
	q->reset_at = BETWEEN;
	sectors_open(&q->sectors, q->index);
	status = open_below(q);
	if (status)
		return status;
	open_faults(q);
	if (!q->test->device)
		make_device(q->test, &q->host.backend->caps);
	make_ring(q);
	make_queue(q);
	return VQB_OK;
}

static void close_test(struct test *t)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		struct queue *q = &t->queue[i];

		if (q->below && t->mode->kind == THREADS)
			vqb_threads_backend_close(q->below);
		if (q->below && t->mode->kind == URING)
			vqb_uring_close(q->below);
		while (q->objects)
			free(q->object[--q->objects]);
		free(q->guest);
		host_close(&q->host);
	}
	if (t->pool)
		vqb_threads_close(t->pool);
	if (t->file)
		check(vqb_file_close(t->file));
	if (*t->path)
		unlink(t->path);
	free(t->pool_mem);
	free(t->file_mem);
	free(t->disk_mem);
	free(t->disk);
	free(t);
}

/* ---- afterwards ---- */

/* The image, read without any of the library. */
static void verify_disk(struct test *t)
{
	uint8_t data[512];
	int fd = t->file ? open(t->path, O_RDONLY) : -1;

	assert_true(!t->file || fd >= 0);
	for (uint32_t i = 0; i < QUEUES * AREA; i++) {
		struct queue *q = &t->queue[i / AREA];

		if (t->file)
			assert_int_equal(pread(fd, data, 512, 512 * (off_t)i), 512);
		else
			memcpy(data, t->disk + 512 * (size_t)i, 512);
		assert_true(sectors_verify(&q->sectors, i % AREA, data));
	}
	if (t->file)
		close(fd);
}

struct sums {
	uint64_t merges, late, partial, full, injected[VQB_FAULTS];
	uint32_t detached, resets, failed_well;
};

static void add_up(struct queue *q, struct sums *sum)
{
	struct vqb_blk_queue_counters c;
	struct vqb_backend_fault_counters f;

	vqb_blk_queue_read_counters(q->host.queue, &c);
	vqb_backend_fault_read_counters(q->host.backend, &f);
	assert_int_equal(q->added, q->test->requests);
	assert_int_equal(q->reaped + q->detached, q->added);
	assert_int_equal(c.malformed, 0);
	assert_true(c.requests >= q->reaped && c.requests <= q->added);
	assert_int_equal(c.submissions, f.ios);
	assert_true(c.full >= f.injected[VQB_FAULT_FULL]);
	/* Whoever fails without a bad sector has met an error of its own. */
	assert_true(q->failed_well <= f.injected[VQB_FAULT_ERROR] + f.injected[VQB_FAULT_RAGGED]);
	sum->merges += c.read_merges + c.write_merges;
	sum->late += c.late;
	sum->partial += c.partial;
	sum->full += c.full;
	sum->detached += q->detached;
	sum->resets += q->resets;
	sum->failed_well += q->failed_well;
	for (unsigned i = 0; i < VQB_FAULTS; i++)
		sum->injected[i] += f.injected[i];
}

/* It was about what it is said to be about. */
static void check_sums(struct test *t)
{
	const struct mode *mode = t->mode;
	struct sums sum = { 0 };

	for (unsigned i = 0; i < QUEUES; i++)
		add_up(&t->queue[i], &sum);
	for (unsigned i = 0; i < VQB_FAULTS; i++) {
		bool by_chance = i == VQB_FAULT_ERROR || i == VQB_FAULT_RAGGED;

		assert_int_equal(sum.injected[i] > 0, !by_chance || mode->chance);
	}
	assert_true(sum.partial && sum.full);
	assert_int_equal(sum.merges > 0, mode->merge);
	assert_int_equal(sum.failed_well > 0, mode->chance);
	assert_int_equal(sum.resets > 0, mode->resets);
	assert_int_equal(sum.detached > 0, mode->resets);
	assert_int_equal(sum.late > 0, mode->resets);
	print_message("%u requests, %u merged, %u resets, %u detached, %u late\n",
		      QUEUES * t->requests, (unsigned)sum.merges, sum.resets, sum.detached,
		      (unsigned)sum.late);
}

static void run_threads(struct test *t)
{
	pthread_t device[QUEUES], driver[QUEUES];

	for (unsigned i = 0; i < QUEUES; i++) {
		assert_false(pthread_create(&device[i], NULL, host_run, &t->queue[i].host));
		assert_false(pthread_create(&driver[i], NULL, drive, &t->queue[i]));
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		pthread_join(driver[i], NULL);
		pthread_join(device[i], NULL);
	}
	if (atomic_load(&t->fault))
		fail_msg("%s", atomic_load(&t->fault));
}

/* Shows: BLK-ANY-06 BLK-DEV-05 BLK-DEV-14 BLK-DEV-31 K30 K37 */
static void run(void **state)
{
	struct test *t = host_memory(sizeof(*t));
	int32_t status = VQB_OK;

	t->mode = *state;
	t->requests = length_is_set("VQB_LONG") ? 20 * REQUESTS : REQUESTS;
	open_store(t);
	for (unsigned i = 0; i < QUEUES; i++) {
		t->queue[i].test = t;
		t->queue[i].index = i;
		status = status ? status : open_queue(&t->queue[i]);
	}
	if (status == VQB_E_UNSUPP) {
		print_message("no io_uring on this system\n");
		close_test(t);
		skip();
	}
	check(status);
	run_threads(t);
	verify_disk(t);
	check_sums(t);
	close_test(t);
}

#define MODES(name, kind)                                                                          \
	{ name, kind, false, false, false }, { name ", merging", kind, true, false, false },       \
		{ name ", errors by chance", kind, false, false, true },                           \
		{ name ", merging, errors by chance", kind, true, false, true },                   \
		{ name ", resets", kind, false, true, false },                                     \
		{ name ", merging, resets", kind, true, true, false },                             \
		{ name ", resets, errors by chance", kind, false, true, true },                    \
	{                                                                                          \
		name ", merging, resets, errors by chance", kind, true, true, true                 \
	}

static struct mode modes[] = {
	MODES("memory", MEMORY),
	MODES("file", SYNC_FILE),
	MODES("threads", THREADS),
	MODES("uring", URING),
};

int main(void)
{
	enum { COUNT = sizeof(modes) / sizeof(modes[0]) };
	struct CMUnitTest tests[COUNT] = { { 0 } };

	seed = length_seed(1);
	for (unsigned i = 0; i < COUNT; i++) {
		tests[i].name = modes[i].name;
		tests[i].test_func = run;
		tests[i].initial_state = &modes[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
