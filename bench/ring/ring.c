/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-ring: what does one request cost on a ring, both ends in one thread?
 *
 * A request has N descriptors: a 16-byte header, N - 2 segments of 4 KiB (readable in even
 * requests, writable in odd ones) and a status byte; with N = 1 only the header. The device
 * resolves all of it to host pieces, sums their lengths, reads the header and writes the status.
 * Guest memory is translated and checked, over two regions: ring, headers, tables and status
 * bytes lie in one, data in the other. With irq 1 both sides ask for notifications again in
 * every batch.
 *
 *   bench-ring                                 a table
 *   bench-ring [-p CPU] [-q RING] [-i 0|1] [-r REPS]
 *       lines: vqblk,ring,N,batch asked,batch used,indirect,event_idx,irq,ns per request
 *   bench-ring -c RING,N,BATCH,INDIRECT,COUNT  runs COUNT requests of one case in
 *       count_requests, for a tool that counts instructions (bench/ring/instructions)
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <vqblk/device.h>
#include <vqblk/driver.h>

enum {
	SLOTS = 32, /* different requests */
	MAX_N = 128,
	BATCH = 32,
	PIECES = BATCH * MAX_N,
	PAGES = 256,
	PAGE = 4096,
	MAX_REPS = 64,
};

#define LOW_BASE UINT64_C(0x10000000)
#define HIGH_BASE UINT64_C(0x100000000)

struct bench_case {
	uint32_t ring, n, asked, batch;
	bool indirect, event_idx, irq;
};

/* In the low region, where the device finds them. */
struct shared_slot {
	uint32_t header[4];
	uint8_t status;
};

struct slot {
	struct vqb_segment seg[MAX_N];
	uint32_t readable, writable;
};

struct loop {
	struct bench_case what;
	struct vqb_driver *drv;
	struct vqb_device *dev;
	struct vqb_extent ram[2];
	struct vqb_memory map;
	uint8_t *low, *high;
	struct shared_slot *shared;
	struct slot slot[SLOTS];
	uint32_t next_slot;
	uint64_t sum, notified;
	struct vqb_chain chain[BATCH];
	struct vqb_piece piece[PIECES];
	struct vqb_done done[BATCH];
};

static void die(const char *what)
{
	fprintf(stderr, "bench-ring: %s\n", what);
	exit(1);
}

static void check(int32_t status)
{
	if (status)
		die(vqb_status_name(status));
}

static void *object(size_t bytes)
{
	void *mem = NULL;

	if (posix_memalign(&mem, PAGE, bytes))
		die("out of memory");
	memset(mem, 0, bytes);
	return mem;
}

/* ---- set-up ---- */

static void make_slots(struct loop *l, uint64_t shared_at)
{
	uint32_t n = l->what.n, data = n > 2 ? n - 2 : 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot *s = &l->slot[i];
		uint64_t at = shared_at + i * sizeof(struct shared_slot);
		uint32_t k = 0;

		l->shared[i].header[0] = i;
		s->seg[k++] = (struct vqb_segment){ .addr = at, .len = 16 };
		for (uint32_t j = 0; j < data; j++)
			s->seg[k++] = (struct vqb_segment){
				.addr = HIGH_BASE + (uint64_t)PAGE * ((j * 7 + i * 3) % PAGES),
				.len = PAGE
			};
		if (n > 1)
			s->seg[k] = (struct vqb_segment){
				.addr = at + offsetof(struct shared_slot, status), .len = 1
			};
		s->writable = (n > 1) + (i & 1 ? data : 0);
		s->readable = n - s->writable;
	}
}

static struct loop *make(const struct bench_case *what)
{
	struct loop *l = object(sizeof(*l));
	struct vqb_driver_config drv = { .struct_size = sizeof(drv) };
	struct vqb_device_config dev = { .struct_size = sizeof(dev) };
	size_t tables_bytes = VQB_TABLES_BYTES(what->ring, what->n), low_bytes;
	struct vqb_layout at;

	l->what = *what;
	check(vqb_ring_layout(what->ring, PAGE, &at));
	low_bytes = at.bytes + tables_bytes + SLOTS * sizeof(struct shared_slot);
	l->low = object(low_bytes);
	l->high = object((size_t)PAGES * PAGE);
	l->shared = (struct shared_slot *)(void *)(l->low + at.bytes + tables_bytes);
	l->ram[0] = (struct vqb_extent){ LOW_BASE, low_bytes, l->low, VQB_READ | VQB_WRITE, 0 };
	l->ram[1] = (struct vqb_extent){ HIGH_BASE, (uint64_t)PAGES * PAGE, l->high,
					 VQB_READ | VQB_WRITE, 0 };
	l->map = (struct vqb_memory){
		.struct_size = sizeof(l->map), .generation = 1, .count = 2, .sorted = l->ram
	};
	make_slots(l, LOW_BASE + at.bytes + tables_bytes);

	drv.ring.size = dev.ring.size = what->ring;
	drv.ring.features = VQB_FEATURE(VQB_F_VERSION_1) |
			    (what->indirect ? VQB_FEATURE(VQB_F_INDIRECT_DESC) : 0) |
			    (what->event_idx ? VQB_FEATURE(VQB_F_EVENT_IDX) : 0);
	dev.ring.features = drv.ring.features;
	check(vqb_ring_place(&drv.ring, l->low, PAGE));
	check(vqb_ring_place_at(&dev.ring, LOW_BASE, PAGE));
	drv.tables = (struct vqb_dma){ l->low + at.bytes, LOW_BASE + at.bytes, tables_bytes };
	drv.max_table = what->n;
	dev.memory = &l->map;
	check(vqb_driver_init(object(VQB_DRIVER_BYTES(what->ring)), VQB_DRIVER_BYTES(what->ring),
			      &drv, &l->drv));
	check(vqb_device_init(object(VQB_DEVICE_BYTES(what->ring)), VQB_DEVICE_BYTES(what->ring),
			      &dev, &l->dev));
	if (!what->irq) {
		vqb_driver_disarm(l->drv);
		vqb_device_disarm(l->dev);
	}
	return l;
}

static void drop(struct loop *l)
{
	free(l->drv);
	free(l->dev);
	free(l->low);
	free(l->high);
	free(l);
}

/* ---- the loop ---- */

static void drive(struct loop *l)
{
	for (uint32_t i = 0; i < l->what.batch; i++) {
		struct slot *s = &l->slot[l->next_slot++ % SLOTS];

		check(vqb_driver_add(l->drv, s->seg, s->readable, s->writable, s));
	}
	l->notified +=
		(l->what.irq ? vqb_driver_turn(l->drv) : vqb_driver_publish(l->drv)) & VQB_NOTIFY;
}

static uint32_t serve_one(struct loop *l, const struct vqb_chain *c)
{
	const struct vqb_piece *p = c->piece, *last = p + c->readable + c->writable - 1;
	uint64_t in = 0, out = 0;

	for (uint32_t i = 0; i < c->readable; i++)
		out += p[i].len;
	for (uint32_t i = c->readable; i < c->readable + c->writable; i++)
		in += p[i].len;
	l->sum += out + *(const uint32_t *)p->base;
	if (c->writable)
		*(uint8_t *)last->base = 0;
	return (uint32_t)in;
}

static void serve(struct loop *l)
{
	struct vqb_need need;
	uint32_t n;

	do {
		check(vqb_device_take(l->dev, l->chain, BATCH, l->piece, PIECES, &n, &need));
		for (uint32_t i = 0; i < n; i++)
			check(vqb_device_put(l->dev, l->chain[i].ticket,
					     serve_one(l, &l->chain[i])));
	} while (l->what.irq ? vqb_device_turn(l->dev) & VQB_MORE : n);
	if (!l->what.irq)
		l->notified += vqb_device_publish(l->dev);
}

static uint32_t reap(struct loop *l)
{
	uint32_t n, all = 0;

	while ((n = vqb_driver_reap(l->drv, l->done, BATCH)) > 0) {
		for (uint32_t i = 0; i < n; i++) {
			const struct slot *s = l->done[i].token;

			l->sum += l->done[i].len + l->shared[s - l->slot].status;
		}
		all += n;
	}
	return all;
}

static void run(struct loop *l, uint64_t batches)
{
	uint64_t done = 0;

	for (uint64_t b = 0; b < batches; b++) {
		drive(l);
		serve(l);
		done += reap(l);
	}
	if (done != batches * l->what.batch)
		die("requests were lost");
}

/* All bytes of all requests must have been seen once, and no others. */
static void self_check(struct loop *l)
{
	uint64_t data = l->what.n > 2 ? (uint64_t)(l->what.n - 2) * PAGE : 0;
	uint64_t each = 16 + data + (l->what.n > 1), expected = 0;

	l->sum = 0;
	run(l, SLOTS);
	for (uint32_t i = 0; i < SLOTS * l->what.batch; i++)
		expected += each + i % SLOTS;
	if (l->sum != expected)
		die("the device saw other bytes than the driver lent");
}

/* ---- measuring ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds per request: the median of `reps` runs of about a millisecond. */
static double measure(struct loop *l, uint32_t reps)
{
	double ns[MAX_REPS], start;
	uint64_t batches = 16;

	for (;;) {
		start = now();
		run(l, batches);
		if (now() - start > 5e5)
			break;
		batches *= 2;
	}
	for (uint32_t i = 0; i < reps; i++) {
		start = now();
		run(l, batches);
		ns[i] = (now() - start) / (double)(batches * l->what.batch);
	}
	qsort(ns, reps, sizeof(*ns), by_value);
	return ns[reps / 2];
}

static void print_case(const struct bench_case *c, bool lines, double ns)
{
	if (lines)
		printf("vqblk,%u,%u,%u,%u,%d,%d,%d,%.2f\n", c->ring, c->n, c->asked, c->batch,
		       c->indirect, c->event_idx, c->irq, ns);
	else
		printf("%6u %6u %7u  %-8s  %-9s  %-5s %10.1f\n", c->ring, c->n, c->batch,
		       c->indirect ? "indirect" : "direct", c->event_idx ? "EVENT_IDX" : "flags",
		       c->irq ? "armed" : "quiet", ns);
}

/* Cuts a direct batch to what the ring holds; false: there is no such case. */
static bool case_exists(struct bench_case *c)
{
	if (c->indirect)
		return c->n > 1 && c->n <= c->ring;
	if (c->n > c->ring)
		return false;
	if (c->batch > c->ring / c->n)
		c->batch = c->ring / c->n;
	return c->batch > 1 || c->asked == 1;
}

static void measure_case(struct bench_case c, bool lines, uint32_t reps)
{
	struct loop *l;

	if (!case_exists(&c))
		return;
	l = make(&c);
	self_check(l);
	print_case(&c, lines, measure(l, reps));
	drop(l);
}

/* `only_ring` 0 and `only_irq` -1: all. */
static void measure_all(uint32_t only_ring, int only_irq, bool lines, uint32_t reps)
{
	static const uint32_t rings[] = { 128, 256, 1024 }, ns[] = { 1, 3, 8, 16, 64, 128 };

	if (!lines)
		printf("  ring      N   batch  chains    wishes     asked  ns/request\n");
	for (uint32_t k = 0; k < 3 * 6 * 2 * 8; k++) {
		uint32_t modes = k % 8, batch = k / 8 % 2 ? 32 : 1;
		struct bench_case c = {
			.ring = rings[k / 96],
			.n = ns[k / 16 % 6],
			.asked = batch,
			.batch = batch,
			.indirect = modes & 4,
			.event_idx = modes & 2,
			.irq = modes & 1,
		};

		if ((only_ring && c.ring != only_ring) || (only_irq >= 0 && c.irq != only_irq))
			continue;
		measure_case(c, lines, reps);
	}
}

/* Not inlined: the name under which an instruction counter finds the part to count. */
__attribute__((noinline)) static void count_requests(struct loop *l, uint64_t batches)
{
	run(l, batches);
}

static void count(const char *spec)
{
	struct bench_case c = { .event_idx = true, .irq = true };
	unsigned ring, n, batch, indirect;
	unsigned long requests;
	struct loop *l;

	if (sscanf(spec, "%u,%u,%u,%u,%lu", &ring, &n, &batch, &indirect, &requests) != 5 || !n ||
	    n > MAX_N || !batch || batch > BATCH)
		die("-c takes RING,N,BATCH,INDIRECT,COUNT");
	c.ring = ring;
	c.n = n;
	c.asked = c.batch = batch;
	c.indirect = indirect;
	if (!case_exists(&c))
		die("-c: no such case");
	l = make(&c);
	run(l, 64);
	count_requests(l, requests / c.batch);
	printf("%lu\n", requests / c.batch * c.batch);
	drop(l);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("no such CPU");
}

int main(int argc, char **argv)
{
	uint32_t ring = 0, reps = 7;
	bool lines = false;
	int opt, irq = -1;

	while ((opt = getopt(argc, argv, "p:q:i:r:c:")) >= 0) {
		lines = true;
		if (opt == 'p')
			pin(atoi(optarg));
		else if (opt == 'q')
			ring = (uint32_t)atoi(optarg);
		else if (opt == 'i')
			irq = atoi(optarg);
		else if (opt == 'r')
			reps = (uint32_t)atoi(optarg);
		else if (opt == 'c')
			return count(optarg), 0;
		else
			die("usage: bench-ring [-p CPU] [-q RING] [-i 0|1] [-r REPS] | -c CASE");
	}
	if (reps < 1 || reps > MAX_REPS)
		die("-r takes 1 to 64");
	measure_all(ring, irq, lines, reps);
	return 0;
}
