/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The io_uring backend over a kernel that is slow to oblige: steps that do a part, that are
 * interrupted or put off, that fail; submissions that are cut short or refused. The backend is
 * compiled into this program. Steps are changed before the kernel sees them, so that what it does
 * is real, and completions before the backend sees them.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <liburing.h>

#include "image_bench.h"

/* What the kernel does; all zero: what it always does. */
static struct {
	uint32_t part; /* most bytes of a step on one piece, and 1 piece of a vector; 0: no limit */
	int bad_sync;  /* flushes fail, for real */
	unsigned stutter; /* every so many completions say `passing` instead; 0: none */
	int passing;
	int error;     /* of every move, if not 0 */
	unsigned most; /* steps that one submission takes, once; 0: all */
	int refusal;   /* answer of submissions, `refusals` times */
	unsigned refusals;
	int setup;      /* answer of the set-up, if not 0 */
	int lame;       /* features are missing */
	int no_files;   /* no registered files */
	int no_buffers; /* errno of registering more than one buffer, if not 0 */
	int no_range;   /* errno of every fallocate, if not 0 */
	/* so far */
	unsigned calls, moves, syncs, links, fixed, completions, seen;
} kernel;

static void change(struct io_uring_sqe *sqe)
{
	if (sqe->opcode == IORING_OP_FSYNC) {
		assert_int_equal(sqe->fsync_flags, IORING_FSYNC_DATASYNC);
		kernel.syncs++;
		if (kernel.bad_sync)
			sqe->fsync_flags = 0x80;
		return;
	}
	kernel.moves++;
	kernel.links += !!(sqe->flags & IOSQE_IO_LINK);
	kernel.fixed += sqe->opcode == IORING_OP_READ_FIXED || sqe->opcode == IORING_OP_WRITE_FIXED;
	if (kernel.error)
		sqe->off = UINT64_C(1) << 63; /* EINVAL */
	if (!kernel.part || sqe->opcode == IORING_OP_FALLOCATE)
		return;
	if (sqe->opcode == IORING_OP_READV || sqe->opcode == IORING_OP_WRITEV)
		sqe->len = 1;
	else if (sqe->len > kernel.part)
		sqe->len = kernel.part;
}

static int kernel_submit(struct io_uring *ring)
{
	unsigned head = *ring->sq.khead, tail = ring->sq.sqe_tail, n = tail - head;
	int result;

	kernel.calls++;
	if (kernel.refusals) {
		kernel.refusals--;
		return kernel.refusal;
	}
	if (kernel.most && n > kernel.most) {
		n = kernel.most;
		kernel.most = 0;
	}
	for (unsigned i = 0; i < n; i++)
		change(&ring->sq.sqes[(head + i) & ring->sq.ring_mask]);
	ring->sq.sqe_tail = head + n;
	result = io_uring_submit(ring);
	ring->sq.sqe_tail = tail;
	return result;
}

/* Completions that are new to the backend may be changed. */
static unsigned kernel_cq_ready(struct io_uring *ring)
{
	unsigned n = io_uring_cq_ready(ring), head = *ring->cq.khead;

	for (; kernel.seen - head < n; kernel.seen++) {
		struct io_uring_cqe *cqe = &ring->cq.cqes[kernel.seen & ring->cq.ring_mask];

		kernel.completions++;
		if (kernel.stutter && kernel.completions % kernel.stutter == 0)
			cqe->res = kernel.passing;
	}
	return n;
}

static int kernel_setup(unsigned entries, struct io_uring *ring, unsigned flags)
{
	int result = kernel.setup ? kernel.setup : io_uring_queue_init(entries, ring, flags);

	if (kernel.lame)
		ring->features &= ~IORING_FEAT_RW_CUR_POS;
	return result;
}

static int kernel_files(struct io_uring *ring, const int *fd, unsigned n)
{
	return kernel.no_files ? -ENOMEM : io_uring_register_files(ring, fd, n);
}

static int kernel_buffers(struct io_uring *ring, const struct iovec *vec, unsigned n)
{
	return kernel.no_buffers && n > 1 ? -kernel.no_buffers
					  : io_uring_register_buffers(ring, vec, n);
}

static void kernel_fallocate(struct io_uring_sqe *sqe, int fd, int mode, off_t offset, off_t len)
{
	/* No file system has this mode. */
	io_uring_prep_fallocate(sqe, fd, kernel.no_range ? 0x80 : mode, offset, len);
}

#define io_uring_submit kernel_submit
#define io_uring_cq_ready kernel_cq_ready
#define io_uring_queue_init kernel_setup
#define io_uring_register_files kernel_files
#define io_uring_register_buffers kernel_buffers
#define io_uring_prep_fallocate kernel_fallocate
#include "lib/host/uring.c"       /* NOLINT(bugprone-suspicious-include) */
#include "lib/host/uring_setup.c" /* NOLINT(bugprone-suspicious-include) */
#undef io_uring_submit
#undef io_uring_cq_ready
#undef io_uring_queue_init
#undef io_uring_register_files
#undef io_uring_register_buffers
#undef io_uring_prep_fallocate

enum { DISK = 65536, PIECES = 37 };

static uint8_t data[DISK];
static struct vqb_piece piece[PIECES];
static struct image image;

static int up(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	image = (struct image){ .kind = URING, .dir = "/tmp", .bytes = DISK };
	return 0;
}

static int down(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

#define calls_test(f) cmocka_unit_test_setup_teardown(f, up, down)

static void open_or_skip(void)
{
	if (!image_open(&image))
		skip();
}

/* `bytes` bytes of `data` in pieces of uneven lengths, some of them empty. */
static uint32_t slice(size_t bytes)
{
	uint32_t n = 0;
	size_t at = 0;

	while (at < bytes) {
		size_t len = n % 5 == 3 ? 0 : 1 + n * n * 3;

		if (len > bytes - at || n == PIECES - 1)
			len = bytes - at;
		piece[n++] = (struct vqb_piece){ data + at, len };
		at += len;
	}
	return n;
}

static int64_t one_io(uint8_t op, uint8_t flags, uint64_t offset, size_t bytes)
{
	return image_io(&image, op, flags, offset, bytes, piece, slice(bytes));
}

static void there_and_back(size_t bytes, uint8_t flags)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
	assert_int_equal(one_io(VQB_BLK_OUT, flags, 512, bytes), bytes);
	memset(data, 0, bytes);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 512, bytes), bytes);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], (uint8_t)(i * 13 + i / 256));
}

/* ---- steps ---- */

static void test_partial_steps_are_finished(void **state)
{
	struct vqb_uring_counters c;

	(void)state;
	open_or_skip();
	for (kernel.part = 1; kernel.part < 600; kernel.part += 7)
		there_and_back(2048, 0);
	vqb_uring_read_counters(image.backend, &c);
	assert_true(c.resumed > 1000);
	assert_int_equal(c.steps, kernel.moves);
}

static void test_steps_that_are_put_off_are_repeated(void **state)
{
	const int passing[] = { -EINTR, -EAGAIN, -ECANCELED };

	(void)state;
	open_or_skip();
	for (unsigned i = 0; i < 3; i++) {
		kernel.passing = passing[i];
		for (kernel.stutter = 3; kernel.stutter < 10; kernel.stutter += 2) {
			kernel.part = 100;
			there_and_back(2048, VQB_IO_FUA);
			assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
		}
	}
}

static void test_a_step_that_is_put_off_for_ever_is_an_error(void **state)
{
	(void)state;
	open_or_skip();
	kernel.passing = -EAGAIN;
	kernel.stutter = 1;
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), VQB_E_IO);
	kernel.stutter = 0;
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), 2048);
}

static void test_errors_of_the_kernel_are_mapped(void **state)
{
	const struct {
		int error;
		int32_t want;
	} c[] = { { EIO, VQB_E_IO },    { ENOSPC, VQB_E_IO },         { EROFS, VQB_E_IO },
		  { EFAULT, VQB_E_IO }, { EOPNOTSUPP, VQB_E_UNSUPP }, { ENOSYS, VQB_E_UNSUPP } };

	(void)state;
	open_or_skip();
	kernel.stutter = 1;
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		kernel.passing = -c[i].error;
		assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), c[i].want);
		assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), c[i].want);
	}
	kernel.stutter = 0;
	kernel.error = 1;
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), VQB_E_IO);
}

/* ---- flushes ---- */

/* Shows: BLK-DEV-18 BLK-DEV-20 */
static void test_a_flush_is_one_step_and_fua_one_linked_to_its_write(void **state)
{
	enum { MANY = 3000 };
	static struct vqb_piece many[MANY];

	(void)state;
	open_or_skip();
	assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), 2048);
	assert_int_equal(kernel.syncs, 0);
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
	assert_int_equal(kernel.syncs, 1);
	assert_int_equal(kernel.links, 0);
	kernel.calls = 0;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), 2048);
	assert_int_equal(kernel.syncs, 2);
	assert_int_equal(kernel.links, 1);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(one_io(VQB_BLK_IN, VQB_IO_FUA, 0, 2048), 2048);
	assert_int_equal(kernel.syncs, 2);
	assert_int_equal(one_io(VQB_BLK_WRITE_ZEROES, VQB_IO_FUA, 0, 2048), 2048);
	assert_int_equal(kernel.syncs, 3);
	/* One flush, with the last of the steps that it takes. */
	kernel.syncs = kernel.links = 0;
	for (unsigned i = 0; i < MANY; i++)
		many[i] = (struct vqb_piece){ data + 2 * i, 2 };
	assert_int_equal(image_io(&image, VQB_BLK_OUT, VQB_IO_FUA, 0, 2 * MANY, many, MANY),
			 2 * MANY);
	assert_int_equal(kernel.syncs, 1);
	assert_int_equal(kernel.links, 1);
	/* A write that did a part had its flush cancelled: the last part has one that counts. */
	kernel.syncs = kernel.links = 0;
	kernel.part = 512;
	assert_int_equal(image_io(&image, VQB_BLK_OUT, VQB_IO_FUA, 0, 2048,
				  &(struct vqb_piece){ data, 2048 }, 1),
			 2048);
	assert_int_equal(kernel.syncs, 4);
	assert_int_equal(kernel.links, 4);
}

/* The system forgets what it could not write, so a later success would be a lie. */
/* Shows: BLK-DEV-20 */
static void test_a_flush_that_failed_fails_for_good_and_for_all(void **state)
{
	struct vqb_backend *other;
	void *mem;

	(void)state;
	open_or_skip();
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
	kernel.bad_sync = 1;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	kernel.bad_sync = 0;
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), VQB_E_IO);
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	assert_int_equal(one_io(VQB_BLK_OUT, 0, 0, 2048), 2048);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), 2048);

	mem = image.backend;
	other = image.backend;
	image.kind = SYNC_FILE;
	assert_int_equal(image_backend(&image), VQB_OK);
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), VQB_E_IO);
	vqb_uring_close(other);
	free(mem);
}

/* An error of the write is no error of a flush. */
static void test_a_write_that_failed_loses_no_flush(void **state)
{
	(void)state;
	open_or_skip();
	kernel.error = 1;
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), VQB_E_IO);
	kernel.error = 0;
	assert_int_equal(one_io(VQB_BLK_FLUSH, 0, 0, 0), 0);
	assert_int_equal(one_io(VQB_BLK_OUT, VQB_IO_FUA, 0, 2048), 2048);
}

/* ---- ranges ---- */

/* Where the file system can't, zeroes are written; and it is not asked twice. */
/* Shows: BLK-DEV-14 */
static void test_zeroes_are_written_where_there_is_no_other_way(void **state)
{
	const struct {
		uint8_t flags;
		uint32_t part;
		unsigned moves, syncs;
	} c[] = { { VQB_IO_UNMAP, 0, 4, 0 }, { 0, 3000, 6, 0 }, { VQB_IO_FUA, 0, 2, 1 } };
	uint8_t found[DISK];

	(void)state;
	open_or_skip();
	kernel.no_range = 1;
	for (unsigned i = 0; i < 3; i++) {
		image_fill(data, 0, DISK);
		kernel.part = 0;
		assert_int_equal(image_io(&image, VQB_BLK_OUT, 0, 0, DISK,
					  &(struct vqb_piece){ data, DISK }, 1),
				 DISK);
		kernel.moves = 0;
		kernel.part = c[i].part;
		assert_int_equal(
			image_io(&image, VQB_BLK_WRITE_ZEROES, c[i].flags, 512, 20000, NULL, 0),
			20000);
		assert_int_equal(kernel.moves, c[i].moves);
		assert_int_equal(kernel.syncs, c[i].syncs);
		image_peek(&image, found, 0, DISK);
		memset(data + 512, 0, 20000);
		assert_memory_equal(found, data, DISK);
	}
	assert_int_equal(image_io(&image, VQB_BLK_DISCARD, 0, 512, 2048, NULL, 0), VQB_E_UNSUPP);
	kernel.no_range = 0;
	assert_int_equal(image_io(&image, VQB_BLK_DISCARD, 0, 512, 2048, NULL, 0), VQB_E_UNSUPP);
}

static void test_a_discard_that_turns_out_impossible_is_unsupported(void **state)
{
	(void)state;
	open_or_skip();
	kernel.no_range = 1;
	assert_int_equal(image_io(&image, VQB_BLK_DISCARD, 0, 512, 2048, NULL, 0), VQB_E_UNSUPP);
	assert_int_equal(kernel.moves, 1);
}

static void test_an_error_of_a_range_is_an_error(void **state)
{
	(void)state;
	open_or_skip();
	kernel.stutter = 1;
	kernel.passing = -ENOSPC;
	assert_int_equal(image_io(&image, VQB_BLK_WRITE_ZEROES, 0, 0, 4096, NULL, 0), VQB_E_IO);
	assert_int_equal(kernel.moves, 1);
}

/* ---- submitting ---- */

static void submit_four(struct vqb_io *io, uint8_t flags)
{
	uint32_t n = slice(2048);

	vqb_backend_plug(image.backend);
	for (unsigned i = 0; i < 4; i++) {
		io[i] = image_plan(VQB_BLK_OUT, flags, 2048 * i, 2048, piece, n);
		assert_int_equal(vqb_backend_submit(image.backend, &io[i]), VQB_OK);
	}
	assert_int_equal(kernel.calls, 0);
	vqb_backend_unplug(image.backend);
}

static void assert_four(int64_t result)
{
	unsigned n = 0;

	for (struct vqb_io *io = image_next(&image); io; io = io->next, n++)
		assert_int_equal(io->result, result);
	assert_int_equal(n, 4);
}

static void test_a_submission_that_is_interrupted_or_cut_short_goes_on(void **state)
{
	struct vqb_uring_counters c;
	struct vqb_io io[4];

	(void)state;
	open_or_skip();
	kernel.refusal = -EINTR;
	kernel.refusals = 2;
	kernel.most = 3;
	submit_four(io, 0);
	assert_int_equal(kernel.calls, 4);
	assert_int_equal(kernel.moves, 4);
	vqb_uring_read_counters(image.backend, &c);
	assert_int_equal(c.system_calls, kernel.calls);
	assert_four(2048);
}

/* The flush of the second pair came without its write, so it proves nothing: it has another. */
/* Shows: BLK-DEV-18 */
static void test_a_pair_that_was_torn_is_flushed_again(void **state)
{
	struct vqb_io io[4];

	(void)state;
	open_or_skip();
	kernel.most = 3;
	submit_four(io, VQB_IO_FUA);
	assert_four(2048);
	assert_int_equal(kernel.moves, 4);
	assert_true(kernel.syncs > 4);
}

static void test_a_kernel_short_of_memory_is_asked_again_by_poll(void **state)
{
	struct vqb_notify notify;
	struct vqb_io io[4], *done = NULL;

	(void)state;
	assert_int_equal(vqb_notify_open(&notify), VQB_OK);
	image.notify = &notify;
	open_or_skip();
	kernel.refusal = -EAGAIN;
	kernel.refusals = 2;
	submit_four(io, 0);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(kernel.moves, 0);
	/* Nothing is under way that could wake the thread, so it has to be woken. */
	assert_int_equal(vqb_notify_wait(&notify, 10000), VQB_OK);
	assert_null(vqb_backend_poll(image.backend));
	assert_int_equal(kernel.calls, 2);
	assert_int_equal(vqb_notify_wait(&notify, 10000), VQB_OK);
	done = vqb_backend_poll(image.backend);
	assert_int_equal(kernel.calls, 3);
	assert_int_equal(kernel.moves, 4);
	assert_null(done);
	assert_four(2048);
	vqb_uring_close(image.backend);
	image.backend = NULL;
	vqb_notify_close(&notify);
}

static void test_a_kernel_that_takes_no_more_fails_what_it_has_not_seen(void **state)
{
	struct vqb_io io[4];

	(void)state;
	open_or_skip();
	for (unsigned flags = 0; flags <= VQB_IO_FUA; flags += VQB_IO_FUA) {
		kernel.calls = 0;
		kernel.refusal = -EPERM;
		kernel.refusals = 1;
		submit_four(io, 0);
		assert_int_equal(kernel.moves, 0);
		assert_four(VQB_E_IO);
	}
	kernel.calls = 0;
	submit_four(io, 0);
	assert_four(2048);
}

/* ---- setting up ---- */

static int32_t try_setup(void)
{
	struct vqb_backend *out;
	void *mem = image_memory(vqb_uring_size(&image.config));
	int32_t status = vqb_uring_init(mem, vqb_uring_size(&image.config), &image.config, &out);

	if (!status)
		vqb_uring_close(out);
	free(mem);
	return status;
}

static void test_a_system_without_io_uring_is_told_from_one_that_is_full(void **state)
{
	const struct {
		int error;
		int32_t want;
	} c[] = { { ENOSYS, VQB_E_UNSUPP }, { EPERM, VQB_E_UNSUPP }, { EACCES, VQB_E_UNSUPP },
		  { EINVAL, VQB_E_UNSUPP }, { ENOMEM, VQB_E_IO },    { EMFILE, VQB_E_IO } };

	(void)state;
	open_or_skip();
	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		kernel.setup = -c[i].error;
		errno = 0;
		assert_int_equal(try_setup(), c[i].want);
		if (c[i].want == VQB_E_IO)
			assert_int_equal(errno, c[i].error);
	}
	kernel.setup = 0;
	kernel.lame = 1;
	assert_int_equal(try_setup(), VQB_E_UNSUPP);
	kernel.lame = 0;
	assert_int_equal(try_setup(), VQB_OK);
}

static void test_registering_the_file_is_not_needed(void **state)
{
	(void)state;
	kernel.no_files = 1;
	open_or_skip();
	there_and_back(8192, VQB_IO_FUA);
}

/* ---- registered memory ---- */

enum { UNIT = 4096 };

static _Alignas(UNIT) uint8_t pages[16 * UNIT];

/* A read of `n` units at `at`: was it by a registered buffer? */
static unsigned is_fixed(uint8_t *at, unsigned n)
{
	struct vqb_piece one = { at, n * UNIT };

	kernel.fixed = 0;
	memset(at, 0, n * UNIT);
	assert_int_equal(image_io(&image, VQB_BLK_IN, 0, 0, n * UNIT, &one, 1), n * UNIT);
	for (unsigned i = 0; i < n * UNIT; i++)
		assert_int_equal(at[i], image_byte(i));
	assert_int_equal(image_io(&image, VQB_BLK_OUT, 0, 0, n * UNIT, &one, 1), n * UNIT);
	assert_int_equal(kernel.fixed % 2, 0); /* both or neither */
	return kernel.fixed / 2;
}

static int32_t register_pages(unsigned from, unsigned n, unsigned from2, unsigned n2)
{
	const struct vqb_piece memory[2] = { { pages + from * UNIT, n * UNIT },
					     { pages + from2 * UNIT, n2 * UNIT } };

	return vqb_uring_register_memory(image.backend, memory, n2 ? 2 : 1);
}

static void open_direct_or_skip(void)
{
	image = (struct image){ .kind = URING_DIRECT, .bytes = DISK, .bounce_bytes = 2 * UNIT };
	open_or_skip();
	/* Where not even the bounce buffers can be pinned, there is nothing to see. */
	if (!uring_of(image.backend)->regions) {
		printf("no memory can be registered here\n");
		skip();
	}
}

static void test_ios_within_registered_memory_use_it(void **state)
{
	(void)state;
	open_direct_or_skip();
	assert_int_equal(is_fixed(pages, 2), 0);
	assert_int_equal(is_fixed(pages + 1, 1), 1); /* by a bounce buffer */
	assert_int_equal(register_pages(1, 4, 8, 2), VQB_OK);
	assert_int_equal(is_fixed(pages + UNIT, 4), 1);
	assert_int_equal(is_fixed(pages + 4 * UNIT, 1), 1);
	assert_int_equal(is_fixed(pages + 9 * UNIT, 1), 1);
	assert_int_equal(is_fixed(pages, 1), 0);
	assert_int_equal(is_fixed(pages, 2), 0);
	assert_int_equal(is_fixed(pages + 4 * UNIT, 2), 0);
	assert_int_equal(is_fixed(pages + 5 * UNIT, 1), 0);
	assert_int_equal(is_fixed(pages + 10 * UNIT, 1), 0);
	assert_int_equal(is_fixed(pages + UNIT + 1, 1), 1);
	assert_int_equal(register_pages(2, 1, 0, 0), VQB_OK);
	assert_int_equal(is_fixed(pages + UNIT, 1), 0);
	assert_int_equal(is_fixed(pages + 2 * UNIT, 1), 1);
	assert_int_equal(vqb_uring_register_memory(image.backend, NULL, 0), VQB_OK);
	assert_int_equal(is_fixed(pages + 2 * UNIT, 1), 0);
	assert_int_equal(is_fixed(pages + 1, 1), 1);
}

static void test_memory_that_cannot_be_registered_is_used_all_the_same(void **state)
{
	struct vqb_piece many[VQB_URING_MAX_REGIONS + 1], huge = { pages, SIZE_MAX / 2 };
	struct vqb_piece one = { pages, UNIT };
	struct vqb_io io = image_plan(VQB_BLK_IN, 0, 0, UNIT, &one, 1);

	(void)state;
	open_direct_or_skip();
	assert_int_equal(register_pages(0, 16, 0, 0), VQB_OK);
	assert_int_equal(vqb_backend_submit(image.backend, &io), VQB_OK);
	assert_int_equal(register_pages(0, 16, 0, 0), VQB_E_BUSY);
	assert_ptr_equal(image_next(&image), &io);
	assert_int_equal(is_fixed(pages, 1), 1);

	for (unsigned i = 0; i <= VQB_URING_MAX_REGIONS; i++)
		many[i] = one;
	assert_int_equal(vqb_uring_register_memory(image.backend, many, VQB_URING_MAX_REGIONS),
			 VQB_OK);
	assert_int_equal(is_fixed(pages, 1), 1);
	assert_int_equal(vqb_uring_register_memory(image.backend, many, VQB_URING_MAX_REGIONS + 1),
			 VQB_E_TOOBIG);
	assert_int_equal(is_fixed(pages, 1), 0);
	assert_int_equal(vqb_uring_register_memory(image.backend, &huge, 1), VQB_E_TOOBIG);
	kernel.no_buffers = ENOMEM;
	assert_int_equal(register_pages(0, 16, 0, 0), VQB_E_IO);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(is_fixed(pages, 1), 0);
	assert_int_equal(is_fixed(pages + 1, 1), 1);
	kernel.no_buffers = EOPNOTSUPP;
	assert_int_equal(register_pages(0, 16, 0, 0), VQB_E_UNSUPP);
	assert_int_equal(is_fixed(pages, 1), 0);
}

/* One that ends in mid-unit goes on from the unit's begin, as no other place is allowed. */
static void test_a_direct_step_goes_on_from_a_whole_unit(void **state)
{
	struct vqb_piece one = { pages, 4 * UNIT };

	(void)state;
	open_direct_or_skip();
	kernel.completions = 9;
	kernel.stutter = 10;
	kernel.passing = (int)image.backend->caps.alignment + 188;
	assert_int_equal(image_io(&image, VQB_BLK_IN, 0, 0, 4 * UNIT, &one, 1), 4 * UNIT);
	assert_int_equal(kernel.moves, 2);
	for (unsigned i = 0; i < 4 * UNIT; i++)
		assert_int_equal(pages[i], image_byte(i));
}

static void test_the_end_of_the_file_is_an_error_at_once(void **state)
{
	(void)state;
	open_or_skip();
	assert_int_equal(truncate(image.path, 1000), 0);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 0, 2048), VQB_E_IO);
	assert_int_equal(one_io(VQB_BLK_IN, 0, 2048, 2048), VQB_E_IO);
	assert_true(kernel.moves < 6);
}

static void test_through_the_page_cache_registering_is_of_no_use(void **state)
{
	(void)state;
	open_or_skip();
	assert_int_equal(register_pages(0, 16, 0, 0), VQB_E_UNSUPP);
	there_and_back(8192, 0);
	assert_int_equal(kernel.fixed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		calls_test(test_partial_steps_are_finished),
		calls_test(test_steps_that_are_put_off_are_repeated),
		calls_test(test_a_step_that_is_put_off_for_ever_is_an_error),
		calls_test(test_errors_of_the_kernel_are_mapped),
		calls_test(test_a_flush_is_one_step_and_fua_one_linked_to_its_write),
		calls_test(test_a_flush_that_failed_fails_for_good_and_for_all),
		calls_test(test_a_write_that_failed_loses_no_flush),
		calls_test(test_zeroes_are_written_where_there_is_no_other_way),
		calls_test(test_a_discard_that_turns_out_impossible_is_unsupported),
		calls_test(test_an_error_of_a_range_is_an_error),
		calls_test(test_a_submission_that_is_interrupted_or_cut_short_goes_on),
		calls_test(test_a_pair_that_was_torn_is_flushed_again),
		calls_test(test_a_kernel_short_of_memory_is_asked_again_by_poll),
		calls_test(test_a_kernel_that_takes_no_more_fails_what_it_has_not_seen),
		calls_test(test_a_system_without_io_uring_is_told_from_one_that_is_full),
		calls_test(test_registering_the_file_is_not_needed),
		calls_test(test_ios_within_registered_memory_use_it),
		calls_test(test_memory_that_cannot_be_registered_is_used_all_the_same),
		calls_test(test_a_direct_step_goes_on_from_a_whole_unit),
		calls_test(test_the_end_of_the_file_is_an_error_at_once),
		calls_test(test_through_the_page_cache_registering_is_of_no_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
