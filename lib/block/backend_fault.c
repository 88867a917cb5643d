/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_fault.c: does to another backend's ios what bad storage does.
 *
 *   free --submit--> below --its poll--> held --after `delay` polls--> handed out, free
 *             |                           ^
 *             +---- nothing to be done ---+
 *
 * The backend below never sees the caller's io but a copy in one of our slots, which may be cut.
 */
#include <vqblk/backend_fault.h>
#include <vqblk/blk.h>
#include <vqblk/port.h>

/* Bounds the look for bad sectors in one range. */
#define MOST_RANGE (UINT64_C(1) << 32)

enum { SLOTS_MAX = 32768, PIECES_MAX = 1024 };

struct slot {
	struct vqb_io io; /* the first member: the io that comes back from below is its slot */
	struct vqb_io *from;
	int64_t result;  /* to be told, unless the backend below fails or does less */
	uint32_t faults; /* a set of 1 << enum vqb_fault */
	uint32_t delay;  /* polls to go */
};

struct fault_backend {
	struct vqb_backend base;
	struct vqb_backend *below;
	struct slot *slot;
	struct vqb_piece *piece;
	struct vqb_io *idle;
	struct vqb_io_list held;
	uint32_t out; /* not idle */
	uint32_t helds;
	uint32_t pieces, delay;
	uint32_t rate[VQB_FAULTS];
	uint64_t seed, random;
	void (*tell)(void *context, const struct vqb_io *io, uint32_t faults);
	void *context;
	struct vqb_backend_fault_counters counters;
};

_Static_assert(sizeof(struct fault_backend) <= 448, "bound");
_Static_assert(sizeof(struct slot) <= 96, "bound");

/* ---- chance ---- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t next_random(struct fault_backend *self)
{
	self->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(self->random);
}

/* The share of `n` that the upper half of `random` stands for: below n. Without a division. */
static uint64_t share(uint64_t random, uint64_t n)
{
	uint64_t r = random >> 32;

	return r * (n >> 32) + (r * (uint32_t)n >> 32);
}

/* A number below `n`, which is not 0. */
static uint64_t random_below(struct fault_backend *self, uint64_t n)
{
	return share(next_random(self), n);
}

static int strikes(struct fault_backend *self, uint32_t fault)
{
	return self->rate[fault] && random_below(self, VQB_FAULT_ALWAYS) < self->rate[fault];
}

static uint32_t bit(uint32_t fault)
{
	return UINT32_C(1) << fault;
}

uint32_t vqb_backend_fault_is_bad(uint64_t seed, uint32_t rate, uint64_t sector)
{
	uint64_t random = mix(mix(seed) + sector * UINT64_C(0x9e3779b97f4a7c15));

	return share(random, VQB_FAULT_ALWAYS) < rate;
}

/* ---- what to do to an io ---- */

static int is_transfer(const struct vqb_io *io)
{
	return io->op == VQB_BLK_IN || io->op == VQB_BLK_OUT;
}

/* Bytes up to the first bad sector that the range touches, or all of them. */
static uint64_t good_bytes(const struct fault_backend *self, const struct vqb_io *io)
{
	uint32_t rate = self->rate[VQB_FAULT_BAD_SECTOR];
	uint64_t first = io->offset >> VQB_SECTOR_SHIFT, last, sector;

	if (!rate || !io->bytes)
		return io->bytes;
	last = (io->offset + (io->bytes - 1)) >> VQB_SECTOR_SHIFT;
	for (sector = first; sector <= last; sector++)
		if (vqb_backend_fault_is_bad(self->seed, rate, sector))
			return sector == first ? 0 : (sector << VQB_SECTOR_SHIFT) - io->offset;
	return io->bytes;
}

static uint64_t whole_units(const struct fault_backend *self, uint64_t bytes)
{
	return bytes & ~(uint64_t)(self->base.caps.alignment - 1);
}

/*
 * What the backend below is to do of a transfer: at most `most` bytes, in whole units that we have
 * pieces for.
 */
static uint64_t cut(struct fault_backend *self, struct slot *slot, uint64_t most, uint64_t unit)
{
	struct vqb_piece *piece = self->piece + (size_t)(slot - self->slot) * self->pieces;
	const struct vqb_io *from = slot->from;
	uint64_t done = 0;
	uint32_t n;

	for (n = 0; n < from->pieces && n < self->pieces && done < most; n++) {
		piece[n] = from->piece[n];
		if (piece[n].len > most - done)
			piece[n].len = (size_t)(most - done);
		done += piece[n].len;
	}
	/* Where they don't make whole units, the last ones give way. */
	for (most = done & ~(unit - 1); done > most; n--) {
		if (done - piece[n - 1].len < most) {
			piece[n - 1].len -= (size_t)(done - most);
			break;
		}
		done -= piece[n - 1].len;
	}
	slot->io.piece = piece;
	slot->io.pieces = n;
	slot->io.bytes = most;
	return most;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

/*
 * It ends after at most `most` bytes. What is done is whole units, as no storage tears one; what is
 * told may end in one. Answers 0 where it has to be whole units, and our pieces do not reach to the
 * end of the first one: the io is then as it was.
 */
static int shorten(struct fault_backend *self, struct slot *slot, uint64_t most, int whole)
{
	uint64_t unit = self->base.caps.alignment;
	uint64_t done = cut(self, slot, round_up(most, unit), unit);

	if (done > most)
		done = most;
	if (whole && !done) {
		slot->io.piece = slot->from->piece;
		slot->io.pieces = slot->from->pieces;
		slot->io.bytes = slot->from->bytes;
		return 0;
	}
	slot->result = (int64_t)done;
	return 1;
}

/* It fails after at most `most` bytes were done: nothing, a part, or all. */
static void fail(struct fault_backend *self, struct slot *slot, uint64_t most)
{
	uint64_t all = slot->from->bytes;

	slot->result = VQB_E_IO;
	if (!is_transfer(slot->from))
		slot->io.bytes = most < all || random_below(self, 2) ? 0 : all;
	else if (most < all || random_below(self, 4))
		cut(self, slot, most ? random_below(self, most) : 0, self->base.caps.alignment);
}

/* The io meets a bad sector after `good` bytes. */
static void meet_bad_sector(struct fault_backend *self, struct slot *slot, uint64_t good)
{
	good = is_transfer(slot->from) ? whole_units(self, good) : 0;
	if (!good || random_below(self, 2) || !shorten(self, slot, good, 1))
		fail(self, slot, good);
}

/* What ends a transfer early, or nothing: the set of faults. */
static uint32_t maybe_shorten(struct fault_backend *self, struct slot *slot)
{
	uint64_t bytes = slot->from->bytes, unit = self->base.caps.alignment;

	if (bytes > unit && strikes(self, VQB_FAULT_SHORT)) {
		uint64_t most = whole_units(self, unit + random_below(self, bytes - unit));

		return shorten(self, slot, most, 1) ? bit(VQB_FAULT_SHORT) : 0;
	}
	if (!strikes(self, VQB_FAULT_RAGGED))
		return 0;
	shorten(self, slot, random_below(self, bytes), 0);
	return bit(VQB_FAULT_RAGGED);
}

/* Decides on the fate of the io in a fresh slot, whose copy of it is whole. */
static void decide(struct fault_backend *self, struct slot *slot)
{
	const struct vqb_io *from = slot->from;
	uint64_t good = good_bytes(self, from);

	if (strikes(self, VQB_FAULT_DELAY)) {
		slot->faults |= bit(VQB_FAULT_DELAY);
		slot->delay = 1 + (uint32_t)random_below(self, self->delay);
	}
	if (good < from->bytes) {
		slot->faults |= bit(VQB_FAULT_BAD_SECTOR);
		meet_bad_sector(self, slot, good);
	} else if (strikes(self, VQB_FAULT_ERROR)) {
		slot->faults |= bit(VQB_FAULT_ERROR);
		fail(self, slot, from->bytes);
	} else if (is_transfer(from)) {
		slot->faults |= maybe_shorten(self, slot);
	}
}

/* ---- ios ---- */

static struct slot *take_slot(struct fault_backend *self, struct vqb_io *from)
{
	struct slot *slot = (struct slot *)self->idle;

	self->idle = slot->io.next;
	self->out++;
	slot->io = *from;
	slot->io.next = NULL;
	slot->from = from;
	slot->result = (int64_t)from->bytes;
	slot->faults = slot->delay = 0;
	return slot;
}

static void free_slot(struct fault_backend *self, struct slot *slot)
{
	slot->io.next = self->idle;
	self->idle = &slot->io;
	self->out--;
}

/* Nothing is left of it for the backend below. */
static int is_empty(const struct slot *slot)
{
	return slot->from->op != VQB_BLK_FLUSH && !slot->io.bytes;
}

static void hold(struct fault_backend *self, struct slot *slot)
{
	vqb_io_list_add(&self->held, &slot->io);
	self->helds++;
}

static void count(struct fault_backend *self, uint32_t faults)
{
	uint32_t i;

	for (i = 0; i < VQB_FAULTS; i++)
		self->counters.injected[i] += faults >> i & 1;
}

static int32_t fault_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct fault_backend *self = (struct fault_backend *)backend;
	const struct vqb_backend_caps *caps = &backend->caps;
	struct slot *slot;
	int32_t status;

	if (io->op != VQB_BLK_FLUSH &&
	    (!io->bytes || io->offset > caps->bytes || io->bytes > caps->bytes - io->offset))
		return VQB_E_INVALID;
	if (!self->idle)
		return VQB_E_NOSPC;
	if (self->out && strikes(self, VQB_FAULT_FULL)) {
		count(self, bit(VQB_FAULT_FULL));
		return VQB_E_NOSPC;
	}
	slot = take_slot(self, io);
	decide(self, slot);
	status = is_empty(slot) ? VQB_OK : vqb_backend_submit(self->below, &slot->io);
	if (status) {
		free_slot(self, slot);
		return status;
	}
	if (is_empty(slot)) {
		slot->io.result = 0;
		hold(self, slot);
	}
	self->counters.ios++;
	count(self, slot->faults);
	return VQB_OK;
}

/* What the caller will see: the worse of what happened and what was to happen. */
static int64_t result_of(const struct slot *slot)
{
	int64_t done = slot->io.result;

	if (slot->result < 0 || done < 0)
		return slot->result < 0 ? slot->result : done;
	return done < slot->result ? done : slot->result;
}

/* Its time has come. In front of what `list` has, or behind it. */
static void hand_out(struct fault_backend *self, struct slot *slot, struct vqb_io_list *list)
{
	struct vqb_io *io = slot->from;

	io->result = result_of(slot);
	if (list->first && strikes(self, VQB_FAULT_REORDER)) {
		slot->faults |= bit(VQB_FAULT_REORDER);
		count(self, bit(VQB_FAULT_REORDER));
		io->next = list->first;
		list->first = io;
	} else {
		vqb_io_list_add(list, io);
	}
	if (self->tell)
		self->tell(self->context, io, slot->faults);
	self->helds--;
	free_slot(self, slot);
}

static void collect(struct fault_backend *self)
{
	struct vqb_io *io, *next;

	for (io = vqb_backend_poll(self->below); io; io = next) {
		next = io->next;
		hold(self, (struct slot *)io);
	}
}

static struct vqb_io *fault_poll(struct vqb_backend *backend)
{
	struct fault_backend *self = (struct fault_backend *)backend;
	struct vqb_io_list out = { NULL, NULL };
	struct vqb_io *io, *next;

	collect(self);
	for (io = vqb_io_list_take(&self->held); io; io = next) {
		struct slot *slot = (struct slot *)io;

		next = io->next;
		if (!slot->delay) {
			hand_out(self, slot, &out);
		} else {
			slot->delay--;
			vqb_io_list_add(&self->held, io);
		}
	}
	return vqb_io_list_take(&out);
}

static void fault_plug(struct vqb_backend *backend)
{
	vqb_backend_plug(((struct fault_backend *)backend)->below);
}

static void fault_unplug(struct vqb_backend *backend)
{
	vqb_backend_unplug(((struct fault_backend *)backend)->below);
}

/* Who waits for all has waited long enough: nothing is held back any longer. */
static void fault_drain(struct vqb_backend *backend)
{
	struct fault_backend *self = (struct fault_backend *)backend;
	struct vqb_io *io;

	vqb_backend_drain(self->below);
	collect(self);
	for (io = self->held.first; io; io = io->next)
		((struct slot *)io)->delay = 0;
}

static int32_t fault_lifetime(struct vqb_backend *backend, struct vqb_lifetime *out)
{
	struct vqb_backend *below = ((struct fault_backend *)backend)->below;

	return below->ops->lifetime ? below->ops->lifetime(below, out) : VQB_E_UNSUPP;
}

static const struct vqb_backend_ops fault_ops = {
	.struct_size = sizeof(fault_ops),
	.submit = fault_submit,
	.plug = fault_plug,
	.unplug = fault_unplug,
	.poll = fault_poll,
	.drain = fault_drain,
	.lifetime = fault_lifetime,
};

/* ---- setting up ---- */

static int config_is_good(const struct vqb_backend_fault_config *config)
{
	uint32_t i;

	if (!config || config->struct_size != sizeof(*config) || !config->ios ||
	    config->ios > SLOTS_MAX || !config->pieces || config->pieces > PIECES_MAX)
		return 0;
	for (i = 0; i < VQB_FAULTS; i++)
		if (config->rate[i] > VQB_FAULT_ALWAYS)
			return 0;
	return config->delay || !config->rate[VQB_FAULT_DELAY];
}

size_t vqb_backend_fault_size(const struct vqb_backend_fault_config *config)
{
	if (!config_is_good(config))
		return 0;
	return VQB_ROUND_UP(
		sizeof(struct fault_backend) +
		config->ios * (sizeof(struct slot) + config->pieces * sizeof(struct vqb_piece)));
}

static void copy_caps(struct vqb_backend *base, const struct vqb_backend_fault_config *config)
{
	base->caps = config->below->caps;
	if (config->alignment)
		base->caps.alignment = config->alignment;
	if (config->rate[VQB_FAULT_BAD_SECTOR] && base->caps.max_range > MOST_RANGE)
		base->caps.max_range = MOST_RANGE;
}

int32_t vqb_backend_fault_init(void *mem, size_t bytes,
			       const struct vqb_backend_fault_config *config,
			       struct vqb_backend **out)
{
	size_t need = vqb_backend_fault_size(config);
	struct fault_backend *self = mem;
	uint32_t i;

	if (!need || !mem || (uintptr_t)mem % VQB_ALIGN || !out || !config->below ||
	    vqb_backend_check(config->below))
		return VQB_E_INVALID;
	if (config->alignment && (config->alignment & (config->alignment - 1) ||
				  config->alignment < config->below->caps.alignment))
		return VQB_E_INVALID;
	if (bytes < need)
		return VQB_E_TOOBIG;
	memset(self, 0, need);
	self->base.struct_size = sizeof(self->base);
	self->base.ops = &fault_ops;
	copy_caps(&self->base, config);
	self->below = config->below;
	self->pieces = config->pieces;
	self->delay = config->delay;
	self->seed = self->random = config->seed;
	self->tell = config->tell;
	self->context = config->context;
	memcpy(self->rate, config->rate, sizeof(self->rate));
	self->slot = (struct slot *)(self + 1);
	self->piece = (struct vqb_piece *)(self->slot + config->ios);
	for (i = config->ios; i-- > 0;) {
		self->slot[i].io.next = self->idle;
		self->idle = &self->slot[i].io;
	}
	*out = &self->base;
	return VQB_OK;
}

uint32_t vqb_backend_fault_held(const struct vqb_backend *backend)
{
	return ((const struct fault_backend *)backend)->helds;
}

void vqb_backend_fault_read_counters(const struct vqb_backend *backend,
				     struct vqb_backend_fault_counters *out)
{
	*out = ((const struct fault_backend *)backend)->counters;
}
