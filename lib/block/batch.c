/* SPDX-License-Identifier: BSD-3-Clause */
/* batch.c: which queues have something to be published, and what was reaped of them. */
#include <vqblk/batch.h>
#include <vqblk/port.h>

enum { MOST = 1 << 20, AT_A_TIME = 16 };

struct vqb_batch {
	struct vqb_batch_queue *queue;
	struct vqb_batch_entry *done;
	uint32_t queues, queues_max, dones, dones_max;
	uint32_t last; /* the queue that was found last */
	uint32_t zero;
};

_Static_assert(sizeof(struct vqb_batch) <= 64, "bound");
_Static_assert(sizeof(struct vqb_batch_queue) <= 24, "bound");
_Static_assert(sizeof(struct vqb_batch_entry) <= 24, "bound");

size_t vqb_batch_size(const struct vqb_batch_config *config)
{
	if (!config || config->struct_size != sizeof(*config) || config->zero || !config->queues ||
	    config->queues > MOST || config->completions > MOST)
		return 0;
	return VQB_ROUND_UP(sizeof(struct vqb_batch) +
			    config->queues * sizeof(struct vqb_batch_queue) +
			    config->completions * sizeof(struct vqb_batch_entry));
}

int32_t vqb_batch_init(void *mem, size_t bytes, const struct vqb_batch_config *config,
		       struct vqb_batch **out)
{
	size_t need = vqb_batch_size(config);
	struct vqb_batch *b = mem;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out)
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	memset(b, 0, sizeof(*b));
	b->queue = (struct vqb_batch_queue *)(b + 1);
	b->done = (struct vqb_batch_entry *)(b->queue + config->queues);
	b->queues_max = config->queues;
	b->dones_max = config->completions;
	*out = b;
	return VQB_OK;
}

/*
 * Where the queue is or would be, one of the two being NULL. Beyond the last one, which isn't
 * counted yet; NULL: there is no room.
 */
static struct vqb_batch_queue *find(struct vqb_batch *b, struct vqb_device *dev,
				    struct vqb_driver *drv)
{
	struct vqb_batch_queue *queue = &b->queue[b->last];
	uint32_t i;

	if (b->last < b->queues && queue->dev == dev && queue->drv == drv)
		return queue;
	for (i = 0; i < b->queues; i++) {
		if (b->queue[i].dev == dev && b->queue[i].drv == drv)
			break;
	}
	if (i == b->queues_max)
		return NULL;
	b->last = i;
	queue = &b->queue[i];
	if (i == b->queues) {
		queue->dev = dev;
		queue->drv = drv;
		queue->answer = VQB_QUIET;
		queue->completions = 0;
	}
	return queue;
}

static void count_in(struct vqb_batch *b, const struct vqb_batch_queue *queue)
{
	if (queue == &b->queue[b->queues])
		b->queues++;
}

int32_t vqb_batch_put(struct vqb_batch *b, struct vqb_device *dev, struct vqb_ticket ticket,
		      uint32_t written)
{
	struct vqb_batch_queue *queue = find(b, dev, NULL);
	int32_t status;

	if (!queue)
		return VQB_E_NOSPC;
	status = vqb_device_put(dev, ticket, written);
	if (status)
		return status;
	queue->completions++;
	count_in(b, queue);
	return VQB_OK;
}

int32_t vqb_batch_reap(struct vqb_batch *b, struct vqb_driver *drv)
{
	struct vqb_batch_queue *queue = find(b, NULL, drv);
	struct vqb_done done[AT_A_TIME];

	if (!queue)
		return VQB_E_NOSPC;
	count_in(b, queue);
	for (;;) {
		uint32_t room = b->dones_max - b->dones, n, i;

		if (!room)
			return VQB_E_NOSPC;
		n = vqb_driver_reap(drv, done, room < AT_A_TIME ? room : AT_A_TIME);
		if (!n)
			return VQB_OK;
		for (i = 0; i < n; i++) {
			b->done[b->dones].drv = drv;
			b->done[b->dones++].done = done[i];
		}
		queue->completions += n;
	}
}

const struct vqb_batch_entry *vqb_batch_done(const struct vqb_batch *b, uint32_t *n)
{
	*n = b->dones;
	return b->done;
}

static const struct vqb_batch_queue *end(struct vqb_batch *b, uint32_t *n)
{
	*n = b->queues;
	b->queues = b->dones = b->last = 0;
	return b->queue;
}

const struct vqb_batch_queue *vqb_batch_publish(struct vqb_batch *b, uint32_t *n)
{
	uint32_t i;

	for (i = 0; i < b->queues; i++) {
		struct vqb_batch_queue *queue = &b->queue[i];

		queue->answer = queue->dev ? vqb_device_publish(queue->dev)
					   : vqb_driver_publish(queue->drv);
	}
	return end(b, n);
}

const struct vqb_batch_queue *vqb_batch_turn(struct vqb_batch *b, uint32_t *n)
{
	uint32_t i;

	for (i = 0; i < b->queues; i++) {
		struct vqb_batch_queue *queue = &b->queue[i];

		queue->answer =
			queue->dev ? vqb_device_turn(queue->dev) : vqb_driver_turn(queue->drv);
	}
	return end(b, n);
}
