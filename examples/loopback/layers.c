/* SPDX-License-Identifier: BSD-3-Clause */
#include "layers.h"

#include <stdlib.h>

#include "memory.h"
#include "random.h"
#include "say.h"

enum { FAULT_PIECES = 16, FAULT_DELAY = 8, FAULT_MOST = 1024 };

/* ---- faults ---- */

static void mark(atomic_uchar *marks, uint64_t first, uint64_t end, bool lost)
{
	for (; first < end; first++)
		atomic_store_explicit(&marks[first], lost, memory_order_relaxed);
}

static bool take_marks(atomic_uchar *marks, uint64_t first, uint64_t end)
{
	bool any = false;

	for (; first < end; first++) {
		if (!atomic_load_explicit(&marks[first], memory_order_relaxed))
			continue;
		atomic_store_explicit(&marks[first], 0, memory_order_relaxed);
		any = true;
	}
	return any;
}

static void mark_data(struct layers *l, const struct vqb_io *io, bool lost)
{
	uint64_t at;
	uint32_t i;

	for (i = 0; i < io->pieces; i++) {
		at = (uintptr_t)io->piece[i].base - (uintptr_t)l->at->host;
		mark(l->data, at / VQB_SECTOR_BYTES,
		     (at + io->piece[i].len + VQB_SECTOR_BYTES - 1) / VQB_SECTOR_BYTES, lost);
	}
}

/* The host's thread is told of each io as the queue will see it. */
static void tell(void *context, const struct vqb_io *io, uint32_t faults)
{
	static const uint32_t ends =
		1u << VQB_FAULT_ERROR | 1u << VQB_FAULT_SHORT | 1u << VQB_FAULT_RAGGED;
	struct layers *l = context;
	int64_t least = io->bytes < l->unit ? (int64_t)io->bytes : (int64_t)l->unit;
	bool lost = faults & ends && io->result < least;

	switch (io->op) {
	case VQB_BLK_FLUSH:
		if (lost)
			atomic_fetch_add_explicit(&l->flushes, 1, memory_order_relaxed);
		break;
	case VQB_BLK_IN:
	case VQB_BLK_OUT:
		mark_data(l, io, lost);
		break;
	default:
		mark(l->range, io->offset / VQB_SECTOR_BYTES,
		     (io->offset + io->bytes) / VQB_SECTOR_BYTES, lost);
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
	l->ranges = o->zeroes || o->discard;
	l->fault_memory = object_memory(bytes);
	if (!l->fault_memory ||
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

bool layers_watch(struct layers *layers, const struct vqb_dma *buffers, uint32_t buffer)
{
	uint64_t disk = layers->ranges ? layers->top->caps.bytes : 0;

	if (!layers->fault)
		return true;
	layers->at = buffers;
	layers->buffer = buffer;
	layers->data = calloc(buffers->bytes / VQB_SECTOR_BYTES + 1, sizeof(*layers->data));
	layers->range = calloc(disk / VQB_SECTOR_BYTES + 1, sizeof(*layers->range));
	if (layers->data && layers->range)
		return true;
	complain("no memory for faults");
	return false;
}

bool layers_lost(struct layers *layers, const struct io *io, uint32_t buffer)
{
	bool ranged = io_is_range(io->op);
	uint64_t at = ranged ? io->offset : (uint64_t)buffer * layers->buffer;

	return layers->fault &&
	       take_marks(ranged ? layers->range : layers->data, at / VQB_SECTOR_BYTES,
			  (at + io->bytes) / VQB_SECTOR_BYTES);
}

bool layers_lost_flush(struct layers *layers)
{
	uint32_t flushes = atomic_load_explicit(&layers->flushes, memory_order_relaxed);

	while (flushes && !atomic_compare_exchange_weak(&layers->flushes, &flushes, flushes - 1))
		;
	return flushes > 0;
}

uint32_t layers_owed(struct layers *layers)
{
	return atomic_exchange(&layers->flushes, 0);
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
	free(layers->data);
	free(layers->range);
}
