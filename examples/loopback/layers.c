/* SPDX-License-Identifier: BSD-3-Clause */
#include "layers.h"

#include <stdlib.h>

#include "memory.h"
#include "random.h"
#include "say.h"

enum { FAULT_PIECES = 16, FAULT_DELAY = 8, FAULT_MOST = 1024 };

/* ---- faults ---- */

static void mark(struct layers *l, uint32_t buffer, bool lost)
{
	atomic_store_explicit(&l->lost[buffer], lost, memory_order_relaxed);
}

/* The buffers that a piece lies in. Those of neighbours may be one piece. */
struct stretch {
	uint32_t first, last;
};

static struct stretch buffers_of(const struct layers *l, const struct vqb_piece *piece)
{
	uint64_t at = (uintptr_t)piece->base - (uintptr_t)l->data->host;

	return (struct stretch){ (uint32_t)(at / l->buffer),
				 (uint32_t)((at + piece->len - 1) / l->buffer) };
}

/*
 * Several I/Os in one, by the guest or by the host: what fails it fails none of them, as each is
 * tried again, alone.
 */
static bool is_joined(const struct layers *l, const struct vqb_io *io)
{
	struct stretch in = { 0, 0 };
	uint32_t first = UINT32_MAX, i;

	for (i = 0; i < io->pieces; i++) {
		if (!io->piece[i].len)
			continue;
		in = buffers_of(l, &io->piece[i]);
		if (first == UINT32_MAX)
			first = in.first;
		if (in.first != first || in.last != first)
			return true;
	}
	return false;
}

/* The host's thread is told of each io as the queue will see it. */
static void tell(void *context, const struct vqb_io *io, uint32_t faults)
{
	static const uint32_t ends =
		1u << VQB_FAULT_ERROR | 1u << VQB_FAULT_SHORT | 1u << VQB_FAULT_RAGGED;
	struct layers *l = context;
	int64_t least = io->bytes < l->unit ? (int64_t)io->bytes : (int64_t)l->unit;
	bool lost = faults & ends && io->result < least && !is_joined(l, io);
	struct stretch in;
	uint32_t i;

	if (io->op == VQB_BLK_FLUSH)
		mark(l, l->buffers, lost);
	for (i = 0; i < io->pieces; i++) {
		if (!io->piece[i].len)
			continue;
		for (in = buffers_of(l, &io->piece[i]); in.first <= in.last; in.first++)
			mark(l, in.first, lost);
	}
}

static bool open_faults(struct layers *l, const struct options *o, uint32_t queue)
{
	uint32_t buffers = options_jobs_of(o, queue) * o->iodepth;
	struct vqb_backend_fault_config config = {
		.struct_size = sizeof(config),
		.ios = buffers < FAULT_MOST ? buffers : FAULT_MOST,
		.pieces = FAULT_PIECES,
		.delay = FAULT_DELAY,
		.alignment = o->unit,
		.seed = random_mix(o->seed + queue),
		.below = l->top,
		.tell = tell,
		.context = l,
	};
	size_t bytes;
	uint32_t i;

	for (i = 0; i < VQB_FAULT_BAD_SECTOR; i++)
		config.rate[i] = o->inject;
	bytes = vqb_backend_fault_size(&config);
	l->unit = o->unit;
	l->buffers = buffers;
	l->lost = calloc(l->buffers + 1, sizeof(*l->lost));
	l->fault_memory = object_memory(bytes);
	if (!l->lost || !l->fault_memory ||
	    vqb_backend_fault_init(l->fault_memory, bytes, &config, &l->fault)) {
		complain("no memory for faults");
		return false;
	}
	l->top = l->fault;
	return true;
}

bool layers_hold(const struct layers *layers)
{
	return layers->fault && vqb_backend_fault_held(layers->fault);
}

uint64_t layers_injected(const struct layers *layers)
{
	struct vqb_backend_fault_counters counters;
	uint64_t sum = 0;
	uint32_t i;

	if (!layers->fault)
		return 0;
	vqb_backend_fault_read_counters(layers->fault, &counters);
	for (i = 0; i < VQB_FAULTS; i++)
		sum += counters.injected[i];
	return sum;
}

bool layers_lost(struct layers *layers, uint32_t buffer)
{
	return layers->fault &&
	       atomic_exchange_explicit(&layers->lost[buffer], 0, memory_order_relaxed);
}

/* ---- no plugging: each submit starts at once ---- */

static int32_t unplugged_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	return vqb_backend_submit(backend->context, io);
}

static struct vqb_io *unplugged_poll(struct vqb_backend *backend)
{
	return vqb_backend_poll(backend->context);
}

static void unplugged_drain(struct vqb_backend *backend)
{
	vqb_backend_drain(backend->context);
}

static const struct vqb_backend_ops unplugged_ops = {
	.struct_size = sizeof(unplugged_ops),
	.submit = unplugged_submit,
	.poll = unplugged_poll,
	.drain = unplugged_drain,
};

static void cover_plug(struct layers *l)
{
	l->unplugged = (struct vqb_backend){ .struct_size = sizeof(l->unplugged),
					     .ops = &unplugged_ops,
					     .context = l->top,
					     .caps = l->top->caps };
	l->unplugged.caps.can &= ~(uint32_t)VQB_CAN_LIFETIME;
	l->top = &l->unplugged;
}

bool layers_open(struct layers *layers, const struct options *options, uint32_t queue,
		 struct vqb_backend *backend)
{
	layers->top = backend;
	if (!options->plug)
		cover_plug(layers);
	return !options->inject || open_faults(layers, options, queue);
}

void layers_close(struct layers *layers)
{
	free(layers->fault_memory);
	free(layers->lost);
}
