/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * linux.c: the work of common/slices.h on Linux's rings: drivers/virtio/virtio_ring.c as the
 * driver, drivers/vhost/vringh.c as the device, both in user space through the kernel's shim in
 * tools/virtio. Built by bench/peers/build, into a program of its own that is neither linked with
 * the library nor given away.
 *
 * With CHECKED the device looks up the range of each descriptor; else it trusts all addresses.
 */
#include <linux/kernel.h>
#include <linux/err.h>
#include <linux/uaccess.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <linux/vringh.h>

#include <pthread.h>

#include "machine.h"
#include "slices.h"

#ifdef CHECKED
#define vringh(call) vringh_##call##_user
#else
#define vringh(call) vringh_##call##_kern
#endif

/* Exported by virtio_ring.c, and not declared by the shim. */
bool virtqueue_kick_prepare(struct virtqueue *vq);
bool virtqueue_notify(struct virtqueue *vq);

/* What the shim wants of its user. */
void *__user_addr_min, *__user_addr_max;
void *__kmalloc_fake, *__kfree_ignore_start, *__kfree_ignore_end;
struct pool_block *pool_free[POOL_LISTS];

struct slot {
	struct work_shared *shared;
	struct scatterlist header, status, data[WORK_MAX_N];
	struct scatterlist *list[3];
	unsigned int readable, writable; /* lists */
};

struct front {
	struct virtio_device vdev;
	struct virtqueue *vq;
	uint32_t next_slot;
	uint64_t sum, added, done;
	struct slot slot[WORK_SLOTS];
};

struct back {
	struct vringh ring;
	struct vringh_kiov readable, writable;
	struct kvec readable_vec[2 * WORK_MAX_N], writable_vec[2 * WORK_MAX_N];
	uint64_t sum, notified;
	pthread_t thread;
	int stop;
};

struct pair {
	struct work work;
	struct front *front;
	struct back *back;
	struct work_shared *shared;
	uint8_t *ring, *pages;
};

static uint64_t kicks, interrupts;

static bool kick(struct virtqueue *vq)
{
	kicks++;
	return true;
}

static void interrupt(struct virtqueue *vq)
{
	interrupts++;
}

/* ---- set-up ---- */

static void make_slot(const struct pair *p, uint32_t i, struct slot *s)
{
	uint32_t n = p->work.n, data = n > 2 ? n - 2 : 0, lists = 0;

	s->shared = &p->shared[i];
	s->shared->header[0] = i;
	sg_init_one(&s->header, s->shared->header, 16);
	s->list[lists++] = &s->header;
	if (data) {
		sg_init_table(s->data, data);
		for (uint32_t j = 0; j < data; j++)
			sg_set_buf(&s->data[j], p->pages + WORK_PAGE * work_page(i, j), WORK_PAGE);
		s->list[lists++] = s->data;
	}
	if (n > 1) {
		sg_init_one(&s->status, &s->shared->status, 1);
		s->list[lists++] = &s->status;
	}
	s->writable = (n > 1) + (data && i & 1);
	s->readable = lists - s->writable;
}

static void make_ends(struct pair *p)
{
	const struct work *w = &p->work;
	struct front *f = p->front;
	struct back *b = p->back;
	struct vring at;

	f->vdev.features = 1ULL << VIRTIO_F_VERSION_1;
	if (w->indirect)
		f->vdev.features |= 1ULL << VIRTIO_RING_F_INDIRECT_DESC;
	if (w->event_idx)
		f->vdev.features |= 1ULL << VIRTIO_RING_F_EVENT_IDX;
	INIT_LIST_HEAD(&f->vdev.vqs);
	spin_lock_init(&f->vdev.vqs_list_lock);
	f->vq = vring_new_virtqueue(0, w->ring, WORK_PAGE, &f->vdev, true, false, p->ring, kick,
				    interrupt, "peer");
	vring_init(&at, w->ring, p->ring, WORK_PAGE);
	if (!f->vq ||
	    vringh(init)(&b->ring, f->vdev.features, w->ring, true, at.desc, at.avail, at.used))
		die("Linux does not take the ring");
	/* Large enough for any request, so that nothing grows while it is measured. */
	vringh_kiov_init(&b->readable, b->readable_vec, 2 * WORK_MAX_N);
	vringh_kiov_init(&b->writable, b->writable_vec, 2 * WORK_MAX_N);
	if (!w->irq) {
		virtqueue_disable_cb(f->vq);
		vringh(notify_disable)(&b->ring);
	}
}

/* ---- the driver ---- */

static void add_batch(struct pair *p)
{
	struct front *f = p->front;
	uint32_t slots = work_slots(&p->work);

	for (uint32_t i = 0; i < p->work.batch; i++) {
		struct slot *s = &f->slot[f->next_slot];

		f->next_slot = (f->next_slot + 1) & (slots - 1);
		if (virtqueue_add_sgs(f->vq, s->list, s->readable, s->writable, s, GFP_ATOMIC))
			die("Linux refuses a request");
	}
}

static void reap(struct front *f)
{
	const struct slot *s;
	unsigned int len;

	while ((s = virtqueue_get_buf(f->vq, &len))) {
		f->sum += len + s->shared->status;
		f->done++;
	}
}

/* ---- the device ---- */

#ifdef CHECKED
/* One range has everything: the cheapest answer that there is. */
static bool find_range(struct vringh *ring, u64 addr, struct vringh_range *range)
{
	range->start = 0x1000;
	range->end_incl = 0x7fffffffffffULL;
	range->offset = 0;
	return true;
}
#endif

static int take_one(struct back *b, u16 *head)
{
#ifdef CHECKED
	return vringh_getdesc_user(&b->ring, (struct vringh_iov *)&b->readable,
				   (struct vringh_iov *)&b->writable, find_range, head);
#else
	return vringh_getdesc_kern(&b->ring, &b->readable, &b->writable, head, GFP_KERNEL);
#endif
}

static uint32_t serve(struct back *b)
{
	const struct vringh_kiov *in = &b->writable, *out = &b->readable;
	uint64_t read, written;
	uint32_t n = 0;
	u16 head;
	int got;

	while ((got = take_one(b, &head)) > 0) {
		read = written = 0;
		for (unsigned int i = 0; i < out->used; i++)
			read += out->iov[i].iov_len;
		for (unsigned int i = 0; i < in->used; i++)
			written += in->iov[i].iov_len;
		b->sum += read + *(const uint32_t *)out->iov[0].iov_base;
		if (in->used)
			*(uint8_t *)in->iov[in->used - 1].iov_base = 0;
		if (vringh(complete)(&b->ring, head, (u32)written))
			die("Linux refuses a completion");
		n++;
	}
	if (got < 0)
		die("Linux refuses a chain");
	return n;
}

/* ---- one thread ---- */

static void serve_all(struct pair *p)
{
	struct back *b = p->back;

	if (p->work.irq) {
		do {
			vringh(notify_disable)(&b->ring);
			serve(b);
		} while (!vringh(notify_enable)(&b->ring));
	} else {
		serve(b);
	}
	b->notified += vringh(need_notify)(&b->ring) > 0;
}

static void reap_all(struct pair *p)
{
	struct front *f = p->front;

	if (p->work.irq) {
		do {
			virtqueue_disable_cb(f->vq);
			reap(f);
		} while (!virtqueue_enable_cb(f->vq));
	} else {
		reap(f);
	}
}

static uint64_t run_one(struct pair *p, uint64_t batches)
{
	struct front *f = p->front;
	uint64_t before = f->done;

	for (uint64_t i = 0; i < batches; i++) {
		add_batch(p);
		if (virtqueue_kick_prepare(f->vq))
			virtqueue_notify(f->vq);
		serve_all(p);
		reap_all(p);
	}
	return f->done - before;
}

/* ---- two threads: Linux shows each request as it is added, and each completion ---- */

static void *serve_until_stopped(void *arg)
{
	struct back *b = arg;

	pin_to(1);
	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED))
		if (!serve(b))
			cpu_relax();
	return NULL;
}

static uint64_t run_two(struct pair *p, uint64_t batches)
{
	struct front *f = p->front;
	uint64_t before = f->done, until = before + batches * p->work.batch;

	while (f->done < until) {
		while (f->added - f->done + p->work.batch <= p->work.window) {
			add_batch(p);
			f->added += p->work.batch;
		}
		reap(f);
	}
	return f->done - before;
}

/* ---- the engine ---- */

static void *pair_make(const struct work *w)
{
	struct pair *p = zeroed(sizeof(*p));

	__user_addr_max = (void *)-1UL;
	p->work = *w;
	p->front = zeroed(sizeof(*p->front));
	p->back = zeroed(sizeof(*p->back));
	p->shared = zeroed(WORK_SLOTS * sizeof(*p->shared));
	p->pages = zeroed(WORK_PAGES * WORK_PAGE);
	p->ring = zeroed(vring_size(w->ring, WORK_PAGE));
	for (uint32_t i = 0; i < work_slots(w); i++)
		make_slot(p, i, &p->front->slot[i]);
	make_ends(p);
	if (w->window) {
		pin_to(0);
		if (pthread_create(&p->back->thread, NULL, serve_until_stopped, p->back))
			die("no thread");
	}
	return p;
}

static uint64_t pair_run(void *e, uint64_t batches)
{
	struct pair *p = e;

	return p->work.window ? run_two(p, batches) : run_one(p, batches);
}

static uint64_t pair_drop(void *e, uint64_t *requests)
{
	struct pair *p = e;
	uint64_t sum;

	if (p->work.window) {
		while (p->front->done < p->front->added)
			reap(p->front);
		__atomic_store_n(&p->back->stop, 1, __ATOMIC_SEQ_CST);
		pthread_join(p->back->thread, NULL);
	}
	*requests = p->front->done;
	sum = p->front->sum + p->back->sum;
	vring_del_virtqueue(p->front->vq);
	free(p->front);
	free(p->back);
	free(p->shared);
	free(p->pages);
	free(p->ring);
	free(p);
	return sum;
}

static const struct engine pair_engine = { pair_make, pair_run, pair_drop };

int main(void)
{
	slices_serve(&pair_engine);
	return 0;
}
