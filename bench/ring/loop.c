/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ends.h"
#include "machine.h"

enum { PIECES = WORK_MAX_BATCH * WORK_MAX_N };

struct slot {
	struct vqb_segment seg[WORK_MAX_N];
	const struct work_shared *shared;
};

/* The two sides are objects of their own: in two threads they must not share a cache line. */
struct front {
	struct vqb_driver *drv;
	uint32_t next_slot;
	uint64_t sum, notified, added, done;
	struct vqb_done back[WORK_MAX_BATCH];
	struct vqb_submission list[WORK_SLOTS];
	struct slot slot[WORK_SLOTS];
};

struct back {
	struct vqb_device *dev;
	uint64_t sum, notified;
	pthread_t thread;
	atomic_bool stop;
	struct vqb_chain chain[WORK_MAX_BATCH];
	struct vqb_completion list[WORK_MAX_BATCH];
	struct vqb_piece piece[PIECES];
};

struct loop {
	struct work work;
	struct front *front;
	struct back *back;
	struct ends ends;
};

/* ---- set-up ---- */

static void make_slot(const struct work *w, uint32_t i, struct work_shared *shared, uint64_t at,
		      struct slot *s, struct vqb_submission *entry)
{
	uint32_t data = w->n > 2 ? w->n - 2 : 0, k = 0;

	shared->header[0] = i;
	s->shared = shared;
	s->seg[k++] = (struct vqb_segment){ .addr = at, .len = 16 };
	for (uint32_t j = 0; j < data; j++)
		s->seg[k++] = (struct vqb_segment){
			.addr = ENDS_HIGH + (uint64_t)WORK_PAGE * work_page(i, j), .len = WORK_PAGE
		};
	if (w->n > 1)
		s->seg[k] = (struct vqb_segment){ .addr = at + offsetof(struct work_shared, status),
						  .len = 1 };
	entry->seg = s->seg;
	entry->token = s;
	entry->writable = (w->n > 1) + (i & 1 ? data : 0);
	entry->readable = w->n - entry->writable;
}

static void make_ends(struct loop *l)
{
	static const struct vqb_indirect_policy always = { .struct_size = sizeof(always),
							   .kind = VQB_INDIRECT_ALWAYS };
	const struct work *w = &l->work;
	struct ends_plan plan = {
		.ring = w->ring,
		.segments = w->n,
		.features = (w->indirect ? VQB_FEATURE(VQB_F_INDIRECT_DESC) : 0) |
			    (w->event_idx ? VQB_FEATURE(VQB_F_EVENT_IDX) : 0),
		.policy = &always,
		.small = WORK_SLOTS * sizeof(struct work_shared),
		.data = (size_t)WORK_PAGES * WORK_PAGE,
	};

	ends_open(&l->ends, &plan);
	l->front->drv = l->ends.drv;
	l->back->dev = l->ends.dev;
	if (!w->irq) {
		vqb_driver_disarm(l->front->drv);
		vqb_device_disarm(l->back->dev);
	}
}

/* ---- the driver ---- */

/* A batch of one is added as such; others as lists, which end with the array of slots. */
static void add_batch(struct loop *l)
{
	struct front *f = l->front;
	uint32_t slots = work_slots(&l->work), left = l->work.batch, n;

	if (left == 1) {
		const struct vqb_submission *s = &f->list[f->next_slot];

		check(vqb_driver_add(f->drv, s->seg, s->readable, s->writable, s->token));
		f->next_slot = (f->next_slot + 1) & (slots - 1);
		return;
	}
	for (; left; left -= n) {
		n = left < slots - f->next_slot ? left : slots - f->next_slot;
		check(vqb_driver_add_list(f->drv, &f->list[f->next_slot], n, &n));
		f->next_slot = (f->next_slot + n) & (slots - 1);
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
	if (n == 1) {
		check(vqb_device_put(b->dev, b->chain->ticket, serve_one(b, b->chain)));
		return n;
	}
	for (uint32_t i = 0; i < n; i++) {
		b->list[i].ticket = b->chain[i].ticket;
		b->list[i].written = serve_one(b, &b->chain[i]);
	}
	check(vqb_device_put_list(b->dev, b->list, n) != n);
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
		do {
			n = reap(f);
			f->done += n;
		} while (n == WORK_MAX_BATCH); /* less was all; if not, the next turn says so */
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
	struct loop *l = zeroed(sizeof(*l));

	l->work = *w;
	l->front = zeroed(sizeof(*l->front));
	l->back = zeroed(sizeof(*l->back));
	make_ends(l);
	for (uint32_t i = 0; i < work_slots(w); i++) {
		size_t at = l->ends.small_at + i * sizeof(struct work_shared);

		make_slot(w, i, (struct work_shared *)(void *)(l->ends.low + at), ENDS_LOW + at,
			  &l->front->slot[i], &l->front->list[i]);
	}
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
	ends_close(&l->ends);
	free(l->front);
	free(l->back);
	free(l);
	return sum;
}

const struct engine loop_engine = { loop_make, loop_run, loop_drop };
