/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault backend, in front of a disk of ours that checks what it is given: that ios are whole,
 * aligned, and what their caller asked for.
 */
#include <stdlib.h>
#include <string.h>

#include <vqblk/backend_fault.h>
#include <vqblk/blk.h>

#include "unit.h"

enum { SECTORS = 128, DISK = SECTORS * 512, IOS = 16, PIECES = 6, UNIT = 512, ROUNDS = 3000 };

/* ---- the disk below ---- */

struct disk {
	struct vqb_backend base;
	uint8_t byte[DISK];
	struct vqb_io_list accepted; /* carried out by poll or drain */
	struct vqb_io_list done;
	uint32_t holds, room;
	uint32_t submits, plugs;
	uint64_t fail_at; /* an io at this offset fails; UINT64_MAX: none does */
};

static struct disk *disk_of(struct vqb_backend *backend)
{
	return (struct disk *)backend;
}

static int32_t disk_submit(struct vqb_backend *backend, struct vqb_io *io)
{
	struct disk *disk = disk_of(backend);
	uint64_t sum = 0;

	disk->submits++;
	for (uint32_t i = 0; i < io->pieces; i++)
		sum += io->piece[i].len;
	if (io->op == VQB_BLK_IN || io->op == VQB_BLK_OUT)
		assert_int_equal(sum, io->bytes);
	assert_int_equal(io->offset % backend->caps.alignment, 0);
	assert_int_equal(io->bytes % backend->caps.alignment, 0);
	assert_true(io->op == VQB_BLK_FLUSH || io->bytes);
	assert_true(io->offset <= DISK && io->bytes <= DISK - io->offset);
	if (disk->holds == disk->room)
		return VQB_E_NOSPC;
	disk->holds++;
	vqb_io_list_add(&disk->accepted, io);
	return VQB_OK;
}

static void carry_out(struct disk *disk, struct vqb_io *io)
{
	uint8_t *at = disk->byte + io->offset;

	io->result = io->offset == disk->fail_at ? VQB_E_UNSUPP : (int64_t)io->bytes;
	if (io->result < 0 || io->op == VQB_BLK_FLUSH)
		return;
	if (io->op != VQB_BLK_IN && io->op != VQB_BLK_OUT)
		memset(at, 0, (size_t)io->bytes);
	for (uint32_t i = 0; i < io->pieces; at += io->piece[i++].len) {
		if (!io->piece[i].len)
			continue;
		if (io->op == VQB_BLK_IN)
			memcpy(io->piece[i].base, at, io->piece[i].len);
		else
			memcpy(at, io->piece[i].base, io->piece[i].len);
	}
}

static void disk_drain(struct vqb_backend *backend)
{
	struct disk *disk = disk_of(backend);
	struct vqb_io *io, *next;

	for (io = vqb_io_list_take(&disk->accepted); io; io = next) {
		next = io->next;
		carry_out(disk, io);
		vqb_io_list_add(&disk->done, io);
		disk->holds--;
	}
}

static struct vqb_io *disk_poll(struct vqb_backend *backend)
{
	disk_drain(backend);
	return vqb_io_list_take(&disk_of(backend)->done);
}

static void disk_plug(struct vqb_backend *backend)
{
	disk_of(backend)->plugs++;
}

static const struct vqb_backend_ops disk_ops = {
	.struct_size = sizeof(disk_ops),
	.submit = disk_submit,
	.plug = disk_plug,
	.poll = disk_poll,
	.drain = disk_drain,
};

/* ---- the backend in front of it ---- */

static _Alignas(64) uint8_t mem[VQB_BACKEND_FAULT_BYTES(IOS, PIECES)];
static struct disk disk;
static struct vqb_backend *backend;
static struct vqb_backend_fault_config config;

/* What tell has said, by the order of polls. */
static struct {
	uint32_t count, ends;
	const struct vqb_io *io[4096];
	uint32_t faults[4096];
} told;

static void tell(void *context, const struct vqb_io *io, uint32_t faults)
{
	assert_ptr_equal(context, &told);
	assert_true(told.count < 4096);
	told.io[told.count] = io;
	told.faults[told.count++] = faults;
}

static uint32_t faults_of(const struct vqb_io *io)
{
	for (uint32_t i = told.count; i-- > 0;)
		if (told.io[i] == io)
			return told.faults[i];
	fail();
	return 0;
}

static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at * 7 + at / 512 * 3 + 1);
}

static void start(uint64_t seed)
{
	memset(&disk, 0, sizeof(disk));
	disk.base = (struct vqb_backend){
		.struct_size = sizeof(disk.base),
		.ops = &disk_ops,
		.caps = { .bytes = DISK,
			  .max_transfer = DISK,
			  .max_range = UINT64_MAX,
			  .max_pieces = 64,
			  .alignment = 1,
			  .can = VQB_CAN_READ | VQB_CAN_WRITE | VQB_CAN_FLUSH | VQB_CAN_DISCARD },
	};
	disk.room = IOS;
	disk.fail_at = UINT64_MAX;
	for (uint64_t i = 0; i < DISK; i++)
		disk.byte[i] = byte_at(i);
	memset(&told, 0, sizeof(told));
	memset(&config, 0, sizeof(config));
	config.struct_size = sizeof(config);
	config.ios = IOS;
	config.pieces = PIECES;
	config.delay = 5;
	config.alignment = UNIT;
	config.seed = seed;
	config.below = &disk.base;
	config.tell = tell;
	config.context = &told;
}

static void open_backend(void)
{
	assert_true(vqb_backend_fault_size(&config) <= sizeof(mem));
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &backend), VQB_OK);
	assert_int_equal(vqb_backend_check(backend), VQB_OK);
}

static void open_with(uint64_t seed, uint32_t fault, uint32_t rate)
{
	start(seed);
	config.rate[fault] = rate;
	open_backend();
}

static uint64_t injected(uint32_t fault)
{
	struct vqb_backend_fault_counters counters;

	vqb_backend_fault_read_counters(backend, &counters);
	return counters.injected[fault];
}

/* ---- ios ---- */

struct one {
	struct vqb_io io;
	struct vqb_piece piece[8];
	uint8_t data[8 * 1024];
	uint32_t out;
};

static struct one one[IOS];

/* Cuts the data of an io in pieces of uneven lengths, the second one empty. */
static void prepare(struct one *o, uint8_t op, uint64_t sector, uint64_t sectors)
{
	size_t left = (size_t)sectors * 512, at = 0;

	memset(&o->io, 0, sizeof(o->io));
	o->io.op = op;
	o->io.offset = sector * 512;
	o->io.bytes = left;
	o->io.result = 4711;
	o->io.piece = o->piece;
	for (uint32_t i = 0; left && op <= VQB_BLK_OUT; i++) {
		size_t len = i == 1 ? 0 : i == 7 ? left : 100 + 300 * i;

		len = len > left ? left : len;
		o->piece[i] = (struct vqb_piece){ o->data + at, len };
		o->io.pieces = i + 1;
		at += len;
		left -= len;
	}
}

static void submit(struct vqb_io *io)
{
	assert_int_equal(vqb_backend_submit(backend, io), VQB_OK);
	assert_int_equal(io->result, 4711); /* never from within submit */
}

/* One io alone, with as many polls as it takes: how many. */
static uint32_t run(struct one *o)
{
	struct vqb_io *io;
	uint32_t polls = 0;

	submit(&o->io);
	do {
		io = vqb_backend_poll(backend);
		polls++;
		assert_true(polls < 100);
	} while (!io);
	assert_ptr_equal(io, &o->io);
	assert_null(io->next);
	assert_null(vqb_backend_poll(backend));
	assert_int_equal(vqb_backend_fault_held(backend), 0);
	return polls;
}

static void test_without_a_rate_nothing_happens_to_an_io(void **state)
{
	(void)state;
	start(1);
	open_backend();
	vqb_backend_plug(backend);
	vqb_backend_unplug(backend);
	assert_int_equal(disk.plugs, 1);
	for (unsigned i = 0; i < IOS; i++) {
		prepare(&one[i], i % 2 ? VQB_BLK_IN : VQB_BLK_OUT, i * 8, 1 + i % 8);
		memset(one[i].data, (int)i, sizeof(one[i].data));
		submit(&one[i].io);
	}
	assert_int_equal(vqb_backend_submit(backend, &one[0].io), VQB_E_NOSPC);
	one[0].io.next = NULL;
	for (struct vqb_io *io = vqb_backend_poll(backend), *want = &one[0].io; io; io = io->next) {
		assert_ptr_equal(io, want);
		assert_int_equal(io->result, io->bytes);
		assert_int_equal(faults_of(io), 0);
		want = &((struct one *)want + 1)->io;
	}
	assert_int_equal(told.count, IOS);
	for (unsigned i = 0; i < IOS * 8 * 512; i++) {
		unsigned at = i / 512 / 8, in = i % (8 * 512);

		assert_int_equal(disk.byte[i], at % 2 || in >= one[at].io.bytes ? byte_at(i) : at);
		if (at % 2 && in < one[at].io.bytes)
			assert_int_equal(one[at].data[in], byte_at(i));
	}
	for (uint32_t fault = 0; fault < VQB_FAULTS; fault++)
		assert_int_equal(injected(fault), 0);
}

/* How many of the bytes of a write have arrived: a prefix. */
static uint64_t arrived(const struct one *o, uint8_t mark)
{
	const uint8_t *at = disk.byte + o->io.offset;
	uint64_t n = 0, i;

	while (n < o->io.bytes && at[n] == mark)
		n++;
	for (i = n; i < o->io.bytes; i++)
		assert_int_equal(at[i], 0x11);
	return n;
}

/* A write of 8 sectors of marks onto bytes of 0x11: how much of it has arrived. */
static uint64_t write_marks(struct one *o, uint8_t mark)
{
	memset(disk.byte, 0x11, DISK);
	prepare(o, VQB_BLK_OUT, 16, 8);
	memset(o->data, mark, sizeof(o->data));
	run(o);
	return arrived(o, mark);
}

static void test_an_error_may_have_done_nothing_a_part_or_all(void **state)
{
	unsigned none = 0, some = 0, all = 0;

	(void)state;
	open_with(2, VQB_FAULT_ERROR, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t n = write_marks(&one[0], 0x22);

		assert_int_equal(one[0].io.result, VQB_E_IO);
		assert_int_equal(faults_of(&one[0].io), 1u << VQB_FAULT_ERROR);
		none += !n;
		some += n && n < 4096;
		all += n == 4096;
	}
	assert_true(none > 10 && some > 10 && all > 10);
	assert_int_equal(injected(VQB_FAULT_ERROR), 200);
	prepare(&one[0], VQB_BLK_FLUSH, 0, 0);
	run(&one[0]);
	assert_int_equal(one[0].io.result, VQB_E_IO);
}

static void test_a_short_transfer_has_done_whole_units_and_no_more(void **state)
{
	unsigned seen[8] = { 0 };

	(void)state;
	open_with(3, VQB_FAULT_SHORT, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t n = write_marks(&one[0], 0x33);

		assert_int_equal(one[0].io.result, n);
		assert_int_equal(n % UNIT, 0);
		assert_true(n >= UNIT && n < 4096);
		assert_int_equal(faults_of(&one[0].io), 1u << VQB_FAULT_SHORT);
		seen[n / UNIT]++;
	}
	for (unsigned n = 1; n < 8; n++)
		assert_true(seen[n] > 0 || n == 7); /* our pieces end before the seventh */
	assert_int_equal(injected(VQB_FAULT_SHORT), 200);
	/* One unit can't be cut to whole ones. */
	prepare(&one[0], VQB_BLK_OUT, 1, 1);
	run(&one[0]);
	assert_int_equal(one[0].io.result, 512);
	assert_int_equal(injected(VQB_FAULT_SHORT), 200);
}

static void test_a_short_read_leaves_the_rest_of_the_buffers(void **state)
{
	(void)state;
	open_with(4, VQB_FAULT_SHORT, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 100; i++) {
		prepare(&one[0], VQB_BLK_IN, 3, 8);
		memset(one[0].data, 0x99, sizeof(one[0].data));
		run(&one[0]);
		for (unsigned at = 0; at < 4096; at++)
			assert_int_equal(one[0].data[at],
					 at < one[0].io.result ? byte_at(3 * 512 + at) : 0x99);
	}
}

static void test_a_ragged_transfer_ends_anywhere(void **state)
{
	unsigned within = 0, first = 0;

	(void)state;
	open_with(5, VQB_FAULT_RAGGED, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 300; i++) {
		int64_t n = (int64_t)write_marks(&one[0], 0x44), told_of = one[0].io.result;

		assert_int_equal(n % UNIT, 0); /* no unit is torn */
		assert_true(told_of < 4096 && told_of <= n);
		assert_true(told_of > n - UNIT || n == 0 || n == 3584);
		assert_int_equal(faults_of(&one[0].io), 1u << VQB_FAULT_RAGGED);
		within += told_of % UNIT != 0;
		first += told_of < UNIT;
	}
	assert_true(within > 200 && first > 10);
	assert_int_equal(injected(VQB_FAULT_RAGGED), 300);
}

static void test_a_disk_below_is_given_its_own_units(void **state)
{
	unsigned less = 0;

	(void)state;
	for (uint32_t fault = VQB_FAULT_ERROR; fault <= VQB_FAULT_RAGGED; fault++) {
		start(6);
		config.rate[fault] = VQB_FAULT_ALWAYS;
		config.alignment = 0;
		disk.base.caps.alignment = 256;
		open_backend();
		assert_int_equal(backend->caps.alignment, 256);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t n = write_marks(&one[0], 0x55);

			assert_true(one[0].io.result <= (int64_t)n);
			assert_true(fault == VQB_FAULT_ERROR ||
				    one[0].io.result > (int64_t)n - 256);
			less += fault == VQB_FAULT_RAGGED && one[0].io.result < (int64_t)n;
		}
	}
	assert_true(less > 100);
}

static void test_more_pieces_than_there_is_room_for_are_cut_to_those(void **state)
{
	(void)state;
	start(7);
	config.rate[VQB_FAULT_SHORT] = VQB_FAULT_ALWAYS;
	config.pieces = 1; /* 100 bytes: never a unit */
	open_backend();
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(write_marks(&one[0], 0x66), 4096);
	assert_int_equal(injected(VQB_FAULT_SHORT), 0);
	start(7);
	config.rate[VQB_FAULT_SHORT] = VQB_FAULT_ALWAYS;
	config.pieces = 3; /* 100 + 0 + 700 */
	open_backend();
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(write_marks(&one[0], 0x66), 512);
	assert_int_equal(injected(VQB_FAULT_SHORT), 50);
}

static void test_a_delay_lasts_some_polls_and_is_told_of(void **state)
{
	unsigned seen[8] = { 0 };

	(void)state;
	open_with(8, VQB_FAULT_DELAY, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 200; i++) {
		uint32_t polls;

		prepare(&one[0], VQB_BLK_IN, i % SECTORS, 1);
		submit(&one[0].io);
		assert_int_equal(vqb_backend_fault_held(backend), 0); /* it is below */
		for (polls = 0; !vqb_backend_poll(backend); polls++)
			assert_int_equal(vqb_backend_fault_held(backend), 1);
		assert_in_range(polls, 1, 5);
		assert_int_equal(faults_of(&one[0].io), 1u << VQB_FAULT_DELAY);
		assert_int_equal(one[0].io.result, 512);
		seen[polls]++;
	}
	assert_true(seen[1] && seen[2] && seen[3] && seen[4] && seen[5]);
	assert_int_equal(injected(VQB_FAULT_DELAY), 200);
}

static void test_drain_ends_all_delays(void **state)
{
	unsigned n = 0;

	(void)state;
	open_with(9, VQB_FAULT_DELAY, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < IOS; i++) {
		prepare(&one[i], VQB_BLK_IN, i, 1);
		submit(&one[i].io);
	}
	assert_null(vqb_backend_poll(backend));
	assert_int_equal(vqb_backend_fault_held(backend), IOS);
	vqb_backend_drain(backend);
	for (struct vqb_io *io = vqb_backend_poll(backend); io; io = io->next)
		n++;
	assert_int_equal(n, IOS);
}

static void test_completions_change_their_order(void **state)
{
	unsigned n = 0;

	(void)state;
	open_with(10, VQB_FAULT_REORDER, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < IOS; i++) {
		prepare(&one[i], VQB_BLK_IN, i, 1);
		submit(&one[i].io);
	}
	for (struct vqb_io *io = vqb_backend_poll(backend); io; io = io->next)
		assert_ptr_equal(io, &one[IOS - 1 - n++].io); /* each one ahead of all before */
	assert_int_equal(n, IOS);
	assert_int_equal(injected(VQB_FAULT_REORDER), IOS - 1);
	assert_int_equal(faults_of(&one[0].io), 0);
	assert_int_equal(faults_of(&one[1].io), 1u << VQB_FAULT_REORDER);
}

/* The one rule about NOSPC: a completion has to be on its way. */
static void test_it_is_full_only_while_it_holds_an_io(void **state)
{
	(void)state;
	open_with(11, VQB_FAULT_FULL, VQB_FAULT_ALWAYS);
	for (unsigned i = 0; i < 50; i++) {
		prepare(&one[0], VQB_BLK_IN, 0, 1);
		prepare(&one[1], VQB_BLK_IN, 1, 1);
		submit(&one[0].io);
		assert_int_equal(vqb_backend_submit(backend, &one[1].io), VQB_E_NOSPC);
		assert_int_equal(disk.submits, i + 1);
		assert_ptr_equal(vqb_backend_poll(backend), &one[0].io);
	}
	assert_int_equal(injected(VQB_FAULT_FULL), 50);
}

/* What the disk below says goes up: full, and an error of its own, which no fault hides. */
static void test_the_disk_below_speaks_for_itself(void **state)
{
	(void)state;
	start(12);
	open_backend();
	disk.room = 1;
	prepare(&one[0], VQB_BLK_OUT, 4, 1);
	prepare(&one[1], VQB_BLK_OUT, 9, 1);
	submit(&one[0].io);
	for (unsigned i = 0; i < 2 * IOS; i++) /* which costs no slot */
		assert_int_equal(vqb_backend_submit(backend, &one[1].io), VQB_E_NOSPC);
	disk.fail_at = 4 * 512;
	assert_ptr_equal(vqb_backend_poll(backend), &one[0].io);
	assert_int_equal(one[0].io.result, VQB_E_UNSUPP);
	assert_int_equal(faults_of(&one[0].io), 0);
	disk.room = IOS;
	for (unsigned i = 0; i < IOS; i++) {
		prepare(&one[i], VQB_BLK_OUT, i + 5, 1);
		submit(&one[i].io);
	}
	assert_non_null(vqb_backend_poll(backend));
	open_with(12, VQB_FAULT_SHORT, VQB_FAULT_ALWAYS);
	disk.fail_at = 4 * 512;
	prepare(&one[0], VQB_BLK_OUT, 4, 4);
	run(&one[0]);
	assert_int_equal(one[0].io.result, VQB_E_UNSUPP);
}

static uint64_t bad_sectors(const struct vqb_io *io)
{
	uint64_t n = 0;

	for (uint64_t s = io->offset / 512; s < (io->offset + io->bytes) / 512; s++)
		n += vqb_backend_fault_is_bad(config.seed, config.rate[VQB_FAULT_BAD_SECTOR], s);
	return n;
}

/* Carries a request through as a device does: the rest of a short transfer is done, too. */
static int request_is_good(uint8_t op, uint64_t sector, uint64_t sectors)
{
	while (sectors) {
		prepare(&one[0], op, sector, sectors);
		run(&one[0]);
		if (one[0].io.result < UNIT)
			return 0;
		assert_int_equal(one[0].io.result % UNIT, 0);
		sector += (uint64_t)one[0].io.result / 512;
		sectors -= (uint64_t)one[0].io.result / 512;
	}
	return 1;
}

static void test_a_request_fails_exactly_where_it_touches_a_bad_sector(void **state)
{
	unsigned failed = 0, partly = 0;

	(void)state;
	open_with(13, VQB_FAULT_BAD_SECTOR, 60000);
	for (unsigned at = 0; at + 8 <= SECTORS; at++) {
		for (unsigned n = 1; n <= 8; n++) {
			uint8_t op = n % 2 ? VQB_BLK_IN : VQB_BLK_OUT;
			int good = request_is_good(op, at, n);

			prepare(&one[1], op, at, n);
			assert_int_equal(good, !bad_sectors(&one[1].io));
			failed += !good;
			partly += !good && one[0].io.offset > one[1].io.offset;
		}
	}
	assert_true(failed > 50 && failed < 800);
	assert_true(partly > 10);
	assert_true(injected(VQB_FAULT_BAD_SECTOR) >= failed);
}

static void test_a_range_with_a_bad_sector_fails_and_does_nothing(void **state)
{
	unsigned good = 0;

	(void)state;
	open_with(14, VQB_FAULT_BAD_SECTOR, 60000);
	assert_int_equal(backend->caps.max_range, UINT64_C(1) << 32);
	for (unsigned at = 0; at + 8 <= SECTORS; at++) {
		memset(disk.byte, 0x11, DISK);
		prepare(&one[0], VQB_BLK_DISCARD, at, 8);
		run(&one[0]);
		if (bad_sectors(&one[0].io)) {
			assert_int_equal(one[0].io.result, VQB_E_IO);
			assert_int_equal(arrived(&one[0], 0), 0);
		} else {
			assert_int_equal(one[0].io.result, 4096);
			assert_int_equal(arrived(&one[0], 0), 4096);
			good++;
		}
	}
	assert_in_range(good, 1, 119);
	prepare(&one[0], VQB_BLK_FLUSH, 0, 0);
	run(&one[0]);
	assert_int_equal(one[0].io.result, 0);
}

/* ---- all at once ---- */

/* What a sector may hold: by version, which is in its first bytes and decides the others. */
static uint32_t before[SECTORS], after[SECTORS];

static void fill_sector(uint8_t *at, uint64_t sector, uint32_t version)
{
	for (unsigned i = 0; i < 512; i++)
		at[i] = (uint8_t)(sector * 31 + version * 7 + i * (version | 1));
}

static int holds_version(const uint8_t *at, uint64_t sector, uint32_t version)
{
	uint8_t want[512];

	fill_sector(want, sector, version);
	return !memcmp(at, want, 512);
}

static void check_write(const struct one *o)
{
	const struct vqb_io *io = &o->io;
	uint64_t first = io->offset / 512, n = io->bytes / 512;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t *old = &before[first + i], new = after[first + i];
		const uint8_t *at = disk.byte + io->offset + i * 512;
		int is_new = holds_version(at, first + i, new);

		if ((int64_t)(i + 1) * 512 <= io->result)
			assert_true(is_new);
		if (is_new) {
			*old = new;
			continue;
		}
		assert_true(holds_version(at, first + i, *old));
	}
}

static void check_read(const struct one *o)
{
	for (int64_t i = 0; (i + 1) * 512 <= o->io.result; i++)
		assert_true(holds_version(o->data + i * 512, o->io.offset / 512 + (uint64_t)i,
					  before[o->io.offset / 512 + (uint64_t)i]));
}

static void check_result(const struct vqb_io *io)
{
	uint32_t ends = 1u << VQB_FAULT_ERROR | 1u << VQB_FAULT_SHORT | 1u << VQB_FAULT_RAGGED;
	uint32_t faults = faults_of(io);

	assert_int_equal(io->result < (int64_t)io->bytes, !!(faults & ends));
	if (faults & 1u << VQB_FAULT_ERROR)
		assert_int_equal(io->result, VQB_E_IO);
}

/* Sends one io somewhere that belongs to it alone. Answers 0 where it was full. */
static uint32_t send_one(unsigned k, uint32_t held)
{
	struct one *o = &one[k];
	uint64_t sectors = 1 + (unsigned)rand() % 8, first = k * 8;
	int32_t status;

	prepare(o, rand() % 2 ? VQB_BLK_IN : VQB_BLK_OUT, first, sectors);
	for (uint64_t i = 0; i < sectors && o->io.op == VQB_BLK_OUT; i++)
		fill_sector(o->data + i * 512, first + i, ++after[first + i]);
	status = vqb_backend_submit(backend, &o->io);
	if (status) {
		assert_int_equal(status, VQB_E_NOSPC);
		assert_true(held > 0);
		return 0;
	}
	o->out = 1;
	return 1;
}

static void test_anything_at_once_comes_back_once_and_with_the_truth(void **state)
{
	uint32_t held = 0, sent = 0, came = 0;

	(void)state;
	srand(15);
	start(15);
	for (uint32_t fault = 0; fault < VQB_FAULT_BAD_SECTOR; fault++)
		config.rate[fault] = 100000;
	open_backend();
	for (uint64_t s = 0; s < SECTORS; s++)
		fill_sector(disk.byte + s * 512, s, before[s] = after[s] = 0);
	for (unsigned round = 0; round < ROUNDS || held; round++) {
		unsigned k = (unsigned)rand() % IOS;

		if (round < ROUNDS && !one[k].out) {
			uint32_t n = send_one(k, held);

			sent += n;
			held += n;
		}
		if (rand() % 3 && round < ROUNDS)
			continue;
		told.count = 0;
		for (struct vqb_io *io = vqb_backend_poll(backend), *next; io; io = next) {
			struct one *o = (struct one *)io;

			next = io->next;
			assert_true(o->out);
			o->out = 0;
			held--;
			came++;
			check_result(io);
			if (io->op == VQB_BLK_OUT)
				check_write(o);
			else
				check_read(o);
		}
		assert_true(vqb_backend_fault_held(backend) <= held);
	}
	assert_int_equal(sent, came);
	for (uint32_t fault = 0; fault < VQB_FAULT_BAD_SECTOR; fault++)
		assert_true(injected(fault) > 20);
}

static void test_the_same_seed_gives_the_same_faults(void **state)
{
	static uint32_t first[300];
	unsigned same = 0;

	(void)state;
	for (unsigned pass = 0; pass < 3; pass++) {
		start(pass == 2 ? 99 : 16);
		for (uint32_t fault = 0; fault < VQB_FAULT_FULL; fault++)
			config.rate[fault] = 300000;
		open_backend();
		for (unsigned i = 0; i < 300; i++) {
			prepare(&one[0], VQB_BLK_IN, i % 100, 8);
			run(&one[0]);
			if (pass == 0)
				first[i] = faults_of(&one[0].io);
			else if (pass == 1)
				assert_int_equal(faults_of(&one[0].io), first[i]);
			else
				same += faults_of(&one[0].io) == first[i];
		}
	}
	assert_true(same < 200);
}

static void test_init_refuses_bad_parameters(void **state)
{
	struct vqb_backend *out;

	(void)state;
	start(1);
	assert_int_equal(vqb_backend_fault_init(mem + 8, sizeof(mem) - 8, &config, &out),
			 VQB_E_INVALID);
	assert_int_equal(vqb_backend_fault_init(mem, 64, &config, &out), VQB_E_TOOBIG);
	config.ios = 0;
	assert_int_equal(vqb_backend_fault_size(&config), 0);
	config.ios = 32769;
	assert_int_equal(vqb_backend_fault_size(&config), 0);
	config.ios = IOS;
	config.pieces = 0;
	assert_int_equal(vqb_backend_fault_size(&config), 0);
	config.pieces = PIECES;
	config.rate[VQB_FAULT_SHORT] = VQB_FAULT_ALWAYS + 1;
	assert_int_equal(vqb_backend_fault_size(&config), 0);
	config.rate[VQB_FAULT_SHORT] = 0;
	config.rate[VQB_FAULT_DELAY] = 1;
	config.delay = 0;
	assert_int_equal(vqb_backend_fault_size(&config), 0);
	config.delay = 1;
	config.alignment = 384;
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &out), VQB_E_INVALID);
	disk.base.caps.alignment = 1024;
	config.alignment = 512;
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &out), VQB_E_INVALID);
	config.alignment = 0;
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &out), VQB_OK);
	disk.base.ops = NULL;
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &out), VQB_E_INVALID);
	config.below = NULL;
	assert_int_equal(vqb_backend_fault_init(mem, sizeof(mem), &config, &out), VQB_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_rate_nothing_happens_to_an_io),
		cmocka_unit_test(test_an_error_may_have_done_nothing_a_part_or_all),
		cmocka_unit_test(test_a_short_transfer_has_done_whole_units_and_no_more),
		cmocka_unit_test(test_a_short_read_leaves_the_rest_of_the_buffers),
		cmocka_unit_test(test_a_ragged_transfer_ends_anywhere),
		cmocka_unit_test(test_a_disk_below_is_given_its_own_units),
		cmocka_unit_test(test_more_pieces_than_there_is_room_for_are_cut_to_those),
		cmocka_unit_test(test_a_delay_lasts_some_polls_and_is_told_of),
		cmocka_unit_test(test_drain_ends_all_delays),
		cmocka_unit_test(test_completions_change_their_order),
		cmocka_unit_test(test_it_is_full_only_while_it_holds_an_io),
		cmocka_unit_test(test_the_disk_below_speaks_for_itself),
		cmocka_unit_test(test_a_request_fails_exactly_where_it_touches_a_bad_sector),
		cmocka_unit_test(test_a_range_with_a_bad_sector_fails_and_does_nothing),
		cmocka_unit_test(test_anything_at_once_comes_back_once_and_with_the_truth),
		cmocka_unit_test(test_the_same_seed_gives_the_same_faults),
		cmocka_unit_test(test_init_refuses_bad_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
