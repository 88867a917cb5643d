/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <vqblk/device.h>
#include <vqblk/driver.h>

#include "machine.h"

enum { PIECES = WORK_MAX_BATCH * WORK_MAX_N };

#define LOW_BASE UINT64_C(0x10000000)
#define HIGH_BASE UINT64_C(0x100000000)

struct slot {
	struct vqb_segment seg[WORK_MAX_N];
	uint32_t readable, writable;
	const struct work_shared *shared;
};

/* The two sides are objects of their own: in two threads they must not share a cache line. */
struct front {
	struct vqb_driver *drv;
	uint32_t next_slot;
	uint64_t sum, notified, added, done;
	struct vqb_done back[WORK_MAX_BATCH];
	struct slot slot[WORK_SLOTS];
};

struct back {
	struct vqb_device *dev;
	uint64_t sum, notified;
	pthread_t thread;
	atomic_bool stop;
	struct vqb_chain chain[WORK_MAX_BATCH];
	struct vqb_piece piece[PIECES];
};

struct loop {
	struct work work;
	struct front *front;
	struct back *back;
	struct vqb_extent ram[2];
	struct vqb_memory map;
	uint8_t *low, *high;
};

static void check(int32_t status)
{
	if (status)
		die(vqb_status_name(status));
}

/* ---- set-up ---- */

static void make_slot(const struct work *w, uint32_t i, struct work_shared *shared, uint64_t at,
		      struct slot *s)
{
	uint32_t data = w->n > 2 ? w->n - 2 : 0, k = 0;

	shared->header[0] = i;
	s->shared = shared;
	s->seg[k++] = (struct vqb_segment){ .addr = at, .len = 16 };
	for (uint32_t j = 0; j < data; j++)
		s->seg[k++] = (struct vqb_segment){
			.addr = HIGH_BASE + (uint64_t)WORK_PAGE * work_page(i, j), .len = WORK_PAGE
		};
	if (w->n > 1)
		s->seg[k] = (struct vqb_segment){ .addr = at + offsetof(struct work_shared, status),
						  .len = 1 };
	s->writable = (w->n > 1) + (i & 1 ? data : 0);
	s->readable = w->n - s->writable;
}

/* Lays out both regions of guest memory, and the map of them. */
static void make_memory(struct loop *l, size_t low_bytes)
{
	size_t high_bytes = (size_t)WORK_PAGES * WORK_PAGE;

	l->low = zeroed(low_bytes);
	l->high = zeroed(high_bytes);
	l->ram[0] = (struct vqb_extent){ LOW_BASE, low_bytes, l->low, VQB_READ | VQB_WRITE, 0 };
	l->ram[1] = (struct vqb_extent){ HIGH_BASE, high_bytes, l->high, VQB_READ | VQB_WRITE, 0 };
	l->map = (struct vqb_memory){
		.struct_size = sizeof(l->map), .generation = 1, .count = 2, .sorted = l->ram
	};
}

static void make_ends(struct loop *l, size_t tables_at, size_t tables_bytes)
{
	static const struct vqb_indirect_policy always = { .struct_size = sizeof(always),
							   .kind = VQB_INDIRECT_ALWAYS };
	const struct work *w = &l->work;
	struct vqb_driver_config drv = { .struct_size = sizeof(drv),
					 .max_table = w->n,
					 .policy = &always };
	struct vqb_device_config dev = { .struct_size = sizeof(dev), .memory = &l->map };

	drv.ring.size = dev.ring.size = w->ring;
	drv.ring.features = VQB_FEATURE(VQB_F_VERSION_1) |
			    (w->indirect ? VQB_FEATURE(VQB_F_INDIRECT_DESC) : 0) |
			    (w->event_idx ? VQB_FEATURE(VQB_F_EVENT_IDX) : 0);
	dev.ring.features = drv.ring.features;
	check(vqb_ring_place(&drv.ring, l->low, WORK_PAGE));
	check(vqb_ring_place_at(&dev.ring, LOW_BASE, WORK_PAGE));
	drv.tables = (struct vqb_dma){ l->low + tables_at, LOW_BASE + tables_at, tables_bytes };
	check(vqb_driver_init(zeroed(VQB_DRIVER_BYTES(w->ring)), VQB_DRIVER_BYTES(w->ring), &drv,
			      &l->front->drv));
	check(vqb_device_init(zeroed(VQB_DEVICE_BYTES(w->ring)), VQB_DEVICE_BYTES(w->ring), &dev,
			      &l->back->dev));
	if (!w->irq) {
		vqb_driver_disarm(l->front->drv);
		vqb_device_disarm(l->back->dev);
	}
}

/* ---- the driver ---- */

static void add_batch(struct loop *l)
{
	struct front *f = l->front;
	uint32_t slots = work_slots(&l->work);

	for (uint32_t i = 0; i < l->work.batch; i++) {
		struct slot *s = &f->slot[f->next_slot];

		f->next_slot = (f->next_slot + 1) & (slots - 1);
		check(vqb_driver_add(f->drv, s->seg, s->readable, s->writable, s));
	}
}

static uint32_t reap(struct front *f)
{
	uint32_t n = vqb_driver_reap(f->drv, f->back, WORK_MAX_BATCH);

	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = f->back[i].token;

		f->sum += f->back[i].len + s->shared->status;
	}
	return n;
}

/* ---- the device ---- */

static uint32_t serve_one(struct back *b, const struct vqb_chain *c)
{
	const struct vqb_piece *p = c->piece, *last = p + c->readable + c->writable - 1;
	uint64_t in = 0, out = 0;

	for (uint32_t i = 0; i < c->readable; i++)
		out += p[i].len;
	for (uint32_t i = c->readable; i < c->readable + c->writable; i++)
		in += p[i].len;
	b->sum += out + *(const uint32_t *)p->base;
	if (c->writable)
		*(uint8_t *)last->base = 0;
	return (uint32_t)in;
}

/* Serves what is there, up to a batch. */
static uint32_t serve_batch(struct back *b)
{
	struct vqb_need need;
	uint32_t n;

	check(vqb_device_take(b->dev, b->chain, WORK_MAX_BATCH, b->piece, PIECES, &n, &need));
	for (uint32_t i = 0; i < n; i++)
		check(vqb_device_put(b->dev, b->chain[i].ticket, serve_one(b, &b->chain[i])));
	return n;
}

static void serve_all(struct loop *l)
{
	struct back *b = l->back;
	uint32_t more;

	do {
		more = serve_batch(b);
		if (l->work.irq)
			more = vqb_device_turn(b->dev) & VQB_MORE;
	} while (more);
	if (!l->work.irq)
		b->notified += vqb_device_publish(b->dev);
}

/* ---- one thread ---- */

static uint64_t run_one(struct loop *l, uint64_t batches)
{
	struct front *f = l->front;
	uint64_t before = f->done;
	uint32_t n;

	for (uint64_t i = 0; i < batches; i++) {
		add_batch(l);
		f->notified +=
			(l->work.irq ? vqb_driver_turn(f->drv) : vqb_driver_publish(f->drv)) &
			VQB_NOTIFY;
		serve_all(l);
		while ((n = reap(f)) > 0)
			f->done += n;
	}
	return f->done - before;
}

/* ---- two threads ---- */

static void *serve_until_stopped(void *arg)
{
	struct back *b = arg;

	pin_to(1);
	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		if (serve_batch(b))
			vqb_device_expose(b->dev);
		else
			cpu_relax();
	}
	return NULL;
}

static uint64_t run_two(struct loop *l, uint64_t batches)
{
	struct front *f = l->front;
	uint64_t before = f->done, until = before + batches * l->work.batch;

	while (f->done < until) {
		while (f->added - f->done + l->work.batch <= l->work.window) {
			add_batch(l);
			vqb_driver_expose(f->drv);
			f->added += l->work.batch;
		}
		f->done += reap(f);
	}
	return f->done - before;
}

static void start_device(struct loop *l)
{
	pin_to(0);
	if (pthread_create(&l->back->thread, NULL, serve_until_stopped, l->back))
		die("no thread");
}

static void stop_device(struct loop *l)
{
	while (l->front->done < l->front->added)
		l->front->done += reap(l->front);
	atomic_store(&l->back->stop, true);
	pthread_join(l->back->thread, NULL);
}

/* ---- the engine ---- */

static uint64_t loop_run(void *e, uint64_t batches)
{
	struct loop *l = e;

	return l->work.window ? run_two(l, batches) : run_one(l, batches);
}

static void *loop_make(const struct work *w)
{
	size_t tables_bytes = VQB_TABLES_BYTES(w->ring, w->n), shared_at;
	struct loop *l = zeroed(sizeof(*l));
	struct vqb_layout at;

	l->work = *w;
	l->front = zeroed(sizeof(*l->front));
	l->back = zeroed(sizeof(*l->back));
	check(vqb_ring_layout(w->ring, WORK_PAGE, &at));
	shared_at = (at.bytes + tables_bytes + 63) & ~(size_t)63;
	make_memory(l, shared_at + WORK_SLOTS * sizeof(struct work_shared));
	for (uint32_t i = 0; i < work_slots(w); i++) {
		size_t offset = shared_at + i * sizeof(struct work_shared);

		make_slot(w, i, (struct work_shared *)(void *)(l->low + offset), LOW_BASE + offset,
			  &l->front->slot[i]);
	}
	make_ends(l, at.bytes, tables_bytes);
	if (w->window)
		start_device(l);
	return l;
}

static uint64_t loop_drop(void *e, uint64_t *requests)
{
	struct loop *l = e;
	uint64_t sum;

	if (l->work.window)
		stop_device(l);
	*requests = l->front->done;
	sum = l->front->sum + l->back->sum;
	free(l->front->drv);
	free(l->back->dev);
	free(l->front);
	free(l->back);
	free(l->low);
	free(l->high);
	free(l);
	return sum;
}

const struct engine loop_engine = { loop_make, loop_run, loop_drop };
