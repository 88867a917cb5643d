/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread pool as backend. It and the file backend are compiled into this program, with calls
 * to read and write replaced by ones that can be stopped at a gate.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* Transfers pass one by one while the gate is open, and note where they go. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned shut, waiting, passed;
	off_t offset[256];
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void pass(off_t offset)
{
	pthread_mutex_lock(&gate.lock);
	gate.waiting++;
	pthread_cond_broadcast(&gate.changed);
	while (gate.shut)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.waiting--;
	if (gate.passed < 256)
		gate.offset[gate.passed] = offset;
	gate.passed++;
	pthread_mutex_unlock(&gate.lock);
}

static ssize_t gated_preadv(int fd, const struct iovec *vec, int n, off_t offset)
{
	pass(offset);
	return preadv(fd, vec, n, offset);
}

static ssize_t gated_pwritev(int fd, const struct iovec *vec, int n, off_t offset)
{
	pass(offset);
	return pwritev(fd, vec, n, offset);
}

#define preadv gated_preadv
#define pwritev gated_pwritev
#include "lib/host/file.c"    /* NOLINT(bugprone-suspicious-include) */
#include "lib/host/threads.c" /* NOLINT(bugprone-suspicious-include) */
#undef preadv
#undef pwritev

static void shut_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.shut = 1;
	gate.passed = 0;
	pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.shut = 0;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void wait_for_waiting(unsigned n)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.waiting < n)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

/* ---- set-up ---- */

enum { QUEUES = 4, DEPTH = 16, REGION = 64 * 1024, DISK = QUEUES * REGION, ROUNDS = 1500 };

static _Alignas(64) uint8_t file_mem[VQB_FILE_BYTES], pool_mem[VQB_THREADS_BYTES(8)];
static _Alignas(64) uint8_t mem[QUEUES][VQB_THREADS_BACKEND_BYTES];
static struct vqb_file *file;
static struct vqb_threads *pool;
static struct vqb_backend *backend[QUEUES];

static void open_all(uint32_t threads, uint32_t depth)
{
	char path[] = "/tmp/vqblk-test-XXXXXX";
	struct vqb_file_config image = { .struct_size = sizeof(image),
					 .access = VQB_READ | VQB_WRITE,
					 .path = path };
	struct vqb_threads_config config = { .struct_size = sizeof(config), .threads = threads };
	struct vqb_threads_backend_config queue = { .struct_size = sizeof(queue), .depth = depth };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, DISK), 0);
	assert_int_equal(vqb_file_open(file_mem, sizeof(file_mem), &image, &file), VQB_OK);
	close(fd);
	unlink(path);
	assert_true(vqb_threads_size(&config) <= VQB_THREADS_BYTES(threads));
	assert_int_equal(vqb_threads_open(pool_mem, sizeof(pool_mem), &config, &pool), VQB_OK);
	queue.pool = pool;
	queue.file = file;
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(
			vqb_threads_backend_init(mem[i], sizeof(mem[i]), &queue, &backend[i]),
			VQB_OK);
		assert_int_equal(vqb_backend_check(backend[i]), VQB_OK);
	}
}

static void close_all(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		vqb_threads_backend_close(backend[i]);
	vqb_threads_close(pool);
	assert_int_equal(vqb_file_close(file), VQB_OK);
}

static int is_readable(const struct vqb_backend *b, int milliseconds)
{
	struct pollfd one = { .fd = vqb_threads_fd(b), .events = POLLIN };

	return poll(&one, 1, milliseconds) == 1;
}

static uint8_t data[DISK];

static struct vqb_io make_io(uint8_t op, uint64_t offset, struct vqb_piece *piece, size_t bytes)
{
	*piece = (struct vqb_piece){ data + offset, bytes };
	return (struct vqb_io){
		.op = op, .offset = offset, .bytes = bytes, .piece = piece, .pieces = 1
	};
}

static void poll_one(struct vqb_backend *b, struct vqb_io *want)
{
	assert_true(is_readable(b, 10000));
	assert_ptr_equal(vqb_backend_poll(b), want);
	assert_null(want->next);
}

/* ---- tests ---- */

static void test_the_descriptor_is_readable_while_there_is_something_to_poll(void **state)
{
	struct vqb_piece piece[2];
	struct vqb_io io[2] = { make_io(VQB_BLK_OUT, 0, &piece[0], 512),
				make_io(VQB_BLK_IN, 4096, &piece[1], 512) };

	(void)state;
	open_all(2, DEPTH);
	assert_null(vqb_backend_poll(backend[0]));
	for (unsigned round = 0; round < 200; round++) {
		assert_false(is_readable(backend[0], 0));
		assert_int_equal(vqb_backend_submit(backend[0], &io[0]), VQB_OK);
		assert_int_equal(vqb_backend_submit(backend[0], &io[1]), VQB_OK);
		vqb_backend_drain(backend[0]);
		assert_true(is_readable(backend[0], 0));
		assert_false(is_readable(backend[1], 0));
		assert_non_null(vqb_backend_poll(backend[0]));
		assert_false(is_readable(backend[0], 0));
		assert_null(vqb_backend_poll(backend[0]));
		assert_int_equal(io[0].result, 512);
		assert_int_equal(io[1].result, 512);
	}
	close_all();
}

/* The kick of a queue: to be cleared by who waits for it, signalled for each first completion. */
static void test_it_signals_the_eventfd_that_it_was_given(void **state)
{
	static _Alignas(64) uint8_t other_mem[VQB_THREADS_BACKEND_BYTES];
	struct vqb_threads_backend_config config = { .struct_size = sizeof(config), .depth = 2 };
	struct vqb_notify kick;
	struct vqb_backend *other;
	struct vqb_piece piece;
	struct vqb_io io = make_io(VQB_BLK_OUT, 0, &piece, 512);

	(void)state;
	open_all(1, DEPTH);
	assert_int_equal(vqb_notify_open(&kick), VQB_OK);
	config.pool = pool;
	config.file = file;
	config.notify = &kick;
	assert_int_equal(vqb_threads_backend_init(other_mem, sizeof(other_mem), &config, &other),
			 VQB_OK);
	assert_int_equal(vqb_threads_fd(other), kick.fd);
	for (unsigned round = 0; round < 50; round++) {
		assert_int_equal(vqb_backend_submit(other, &io), VQB_OK);
		assert_int_equal(vqb_notify_wait(&kick, 10000), VQB_OK);
		assert_ptr_equal(vqb_backend_poll(other), &io);
		assert_int_equal(vqb_notify_signal(&kick), VQB_OK);
		assert_null(vqb_backend_poll(other));
		assert_int_equal(vqb_notify_clear(&kick), VQB_OK); /* poll has not */
	}
	vqb_threads_backend_close(other);
	assert_int_equal(vqb_notify_signal(&kick), VQB_OK); /* it is open still */
	vqb_notify_close(&kick);
	close_all();
}

static void test_all_threads_work_at_a_time_on_one_batch(void **state)
{
	struct vqb_piece piece[8];
	struct vqb_io io[8];
	unsigned n = 0;

	(void)state;
	open_all(8, DEPTH);
	shut_gate();
	vqb_backend_plug(backend[0]);
	for (unsigned i = 0; i < 8; i++) {
		io[i] = make_io(VQB_BLK_OUT, i * 512, &piece[i], 512);
		assert_int_equal(vqb_backend_submit(backend[0], &io[i]), VQB_OK);
	}
	vqb_backend_unplug(backend[0]);
	wait_for_waiting(8);
	assert_null(vqb_backend_poll(backend[0]));
	open_gate();
	vqb_backend_drain(backend[0]);
	for (struct vqb_io *at = vqb_backend_poll(backend[0]); at; at = at->next)
		n++;
	assert_int_equal(n, 8);
	close_all();
}

static void test_what_is_plugged_starts_with_unplug(void **state)
{
	struct vqb_piece piece;
	struct vqb_io io = make_io(VQB_BLK_OUT, 0, &piece, 512);

	(void)state;
	open_all(2, DEPTH);
	vqb_backend_plug(backend[0]);
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_OK);
	assert_false(is_readable(backend[0], 20));
	vqb_backend_unplug(backend[0]);
	poll_one(backend[0], &io);
	close_all();
}

/* One thread, and a queue with a long batch: a second queue is next but one, not last. */
static void test_queues_take_turns(void **state)
{
	struct vqb_piece piece[DEPTH], other_piece;
	struct vqb_io io[DEPTH], other = make_io(VQB_BLK_OUT, REGION, &other_piece, 512);

	(void)state;
	open_all(1, DEPTH);
	shut_gate();
	vqb_backend_plug(backend[0]);
	for (unsigned i = 0; i < DEPTH; i++) {
		io[i] = make_io(VQB_BLK_OUT, i * 512, &piece[i], 512);
		assert_int_equal(vqb_backend_submit(backend[0], &io[i]), VQB_OK);
	}
	vqb_backend_unplug(backend[0]);
	wait_for_waiting(1);
	assert_int_equal(vqb_backend_submit(backend[1], &other), VQB_OK);
	open_gate();
	vqb_backend_drain(backend[0]);
	vqb_backend_drain(backend[1]);
	assert_int_equal(gate.passed, DEPTH + 1);
	assert_int_equal(gate.offset[0], 0);
	assert_int_equal(gate.offset[2], REGION);
	for (unsigned i = 3; i <= DEPTH; i++)
		assert_int_equal(gate.offset[i], (i - 1) * 512); /* and each in order */
	close_all();
}

static void test_it_is_full_at_its_depth_until_a_poll(void **state)
{
	struct vqb_piece piece[4];
	struct vqb_io io[4];

	(void)state;
	open_all(2, 3);
	for (unsigned round = 0; round < 50; round++) {
		unsigned n = 0;

		for (unsigned i = 0; i < 4; i++) {
			io[i] = make_io(VQB_BLK_OUT, i * 512, &piece[i], 512);
			assert_int_equal(vqb_backend_submit(backend[0], &io[i]),
					 i < 3 ? VQB_OK : VQB_E_NOSPC);
		}
		vqb_backend_drain(backend[0]);
		assert_int_equal(vqb_backend_submit(backend[0], &io[3]), VQB_E_NOSPC);
		for (struct vqb_io *at = vqb_backend_poll(backend[0]); at; at = at->next)
			n++;
		assert_int_equal(n, 3);
	}
	/* Another queue's depth is its own. */
	assert_int_equal(vqb_backend_submit(backend[1], &io[3]), VQB_OK);
	close_all();
}

static void test_what_it_cannot_do_is_refused_at_once(void **state)
{
	struct vqb_piece piece;
	struct vqb_io io = make_io(VQB_BLK_OUT, DISK - 512, &piece, 512);

	(void)state;
	open_all(1, 1);
	io.offset = DISK;
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_E_INVALID);
	io.offset = UINT64_MAX;
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_E_INVALID);
	io.op = VQB_BLK_GET_ID;
	io.offset = 0;
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_E_UNSUPP);
	io.op = VQB_BLK_OUT; /* nothing of that takes room */
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_OK);
	poll_one(backend[0], &io);
	close_all();
}

static void test_a_flush_and_a_failed_read_say_so(void **state)
{
	struct vqb_piece piece;
	struct vqb_io io = make_io(VQB_BLK_IN, DISK - 512, &piece, 512);
	struct vqb_io flush = { .op = VQB_BLK_FLUSH, .result = 1 };

	(void)state;
	open_all(1, 1);
	assert_int_equal(vqb_backend_submit(backend[0], &flush), VQB_OK);
	poll_one(backend[0], &flush);
	assert_int_equal(flush.result, 0);
	assert_int_equal(ftruncate(file->fd, DISK / 2), 0);
	assert_int_equal(vqb_backend_submit(backend[0], &io), VQB_OK);
	poll_one(backend[0], &io);
	assert_int_equal(io.result, VQB_E_IO);
	close_all();
}

/* SIGXFSZ would end the process, were it not for the threads that block it. */
static void test_a_file_size_limit_is_an_error_and_no_signal(void **state)
{
	int status = 0;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		struct rlimit limit = { 4096, 4096 };
		struct vqb_piece piece;
		struct vqb_io io = make_io(VQB_BLK_OUT, 8192, &piece, 512);

		open_all(1, 1);
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_FSIZE, &limit);
		vqb_backend_submit(backend[0], &io);
		vqb_backend_drain(backend[0]);
		_exit(vqb_backend_poll(backend[0]) == &io && io.result == VQB_E_IO ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_closing_waits_for_what_is_out(void **state)
{
	struct vqb_piece piece[DEPTH];
	struct vqb_io io[DEPTH];

	(void)state;
	open_all(2, DEPTH);
	memset(data, 0x77, sizeof(data));
	for (unsigned i = 0; i < DEPTH; i++) {
		io[i] = make_io(VQB_BLK_OUT, i * 512, &piece[i], 512);
		assert_int_equal(vqb_backend_submit(backend[0], &io[i]), VQB_OK);
	}
	vqb_threads_backend_close(backend[0]);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(io[i].result, 512);
	for (unsigned i = 1; i < QUEUES; i++)
		vqb_threads_backend_close(backend[i]);
	vqb_threads_close(pool);
	assert_int_equal(vqb_file_close(file), VQB_OK);
}

/* ---- a model of the image, and one thread for each queue ---- */

struct queue {
	unsigned index;
	unsigned seed;
	uint8_t model[REGION];
	struct slot {
		struct vqb_io io;
		struct vqb_piece piece[3];
		uint8_t data[4096];
		unsigned out;
	} slot[DEPTH];
	uint64_t sent, came, full, wrong;
};

static struct queue queue[QUEUES];

/* An io in the part of the region that is this slot's. */
static void prepare(struct queue *q, unsigned k)
{
	struct slot *s = &q->slot[k];
	size_t bytes = 1 + (unsigned)rand_r(&q->seed) % 4096, first = bytes / 3;

	memset(&s->io, 0, sizeof(s->io));
	s->io.op = rand_r(&q->seed) % 2 ? VQB_BLK_IN : VQB_BLK_OUT;
	if (rand_r(&q->seed) % 50 == 0)
		s->io.flags = VQB_IO_FUA;
	s->io.offset = (uint64_t)q->index * REGION + (uint64_t)k * 4096;
	s->io.bytes = bytes;
	s->io.piece = s->piece;
	s->io.pieces = 3;
	s->piece[0] = (struct vqb_piece){ s->data, first };
	s->piece[1] = (struct vqb_piece){ NULL, 0 };
	s->piece[2] = (struct vqb_piece){ s->data + first, bytes - first };
	for (size_t i = 0; i < bytes; i++)
		s->data[i] = (uint8_t)rand_r(&q->seed);
}

static void check(struct queue *q, struct slot *s)
{
	uint8_t *model = q->model + s->io.offset % REGION;

	q->came++;
	q->wrong += !s->out || s->io.result != (int64_t)s->io.bytes;
	s->out = 0;
	if (s->io.op == VQB_BLK_OUT)
		memcpy(model, s->data, s->io.bytes);
	else
		q->wrong += memcmp(model, s->data, s->io.bytes) != 0;
}

static void collect(struct queue *q)
{
	struct vqb_io *io, *next;

	for (io = vqb_backend_poll(backend[q->index]); io; io = next) {
		next = io->next;
		check(q, (struct slot *)io);
	}
}

static void *queue_main(void *arg)
{
	struct queue *q = arg;
	struct vqb_backend *b = backend[q->index];

	for (unsigned round = 0; round < ROUNDS; round++) {
		vqb_backend_plug(b);
		for (unsigned n = (unsigned)rand_r(&q->seed) % 6; n; n--) {
			unsigned k = (unsigned)rand_r(&q->seed) % DEPTH;

			if (q->slot[k].out)
				continue;
			prepare(q, k);
			if (vqb_backend_submit(b, &q->slot[k].io)) {
				q->full++;
				q->wrong += q->sent == q->came;
				continue;
			}
			q->slot[k].out = 1;
			q->sent++;
		}
		vqb_backend_unplug(b);
		if (q->sent > q->came && rand_r(&q->seed) % 4 == 0)
			q->wrong += !is_readable(b, 10000);
		collect(q);
	}
	vqb_backend_drain(b);
	collect(q);
	return NULL;
}

static void test_queues_of_one_pool_keep_their_data_apart(void **state)
{
	pthread_t thread[QUEUES];
	uint64_t full = 0;

	(void)state;
	open_all(3, DEPTH / 2);
	for (unsigned i = 0; i < QUEUES; i++) {
		memset(&queue[i], 0, sizeof(queue[i]));
		queue[i].index = queue[i].seed = i;
		assert_int_equal(pthread_create(&thread[i], NULL, queue_main, &queue[i]), 0);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(queue[i].wrong, 0);
		assert_int_equal(queue[i].sent, queue[i].came);
		assert_true(queue[i].sent > ROUNDS);
		full += queue[i].full;
		assert_int_equal(pread(file->fd, data, REGION, (off_t)i * REGION), REGION);
		assert_memory_equal(data, queue[i].model, REGION);
	}
	assert_true(full > 0);
	close_all();
}

static void test_opening_refuses_bad_parameters(void **state)
{
	static _Alignas(64) uint8_t spare[VQB_THREADS_BACKEND_BYTES];
	struct vqb_threads_config config = { .struct_size = sizeof(config), .threads = 1 };
	struct vqb_threads_backend_config queue_config = { .struct_size = sizeof(queue_config),
							   .depth = 1 };
	struct vqb_threads *other;
	struct vqb_backend *out;

	(void)state;
	assert_int_equal(vqb_threads_open(pool_mem + 8, 200, &config, &other), VQB_E_INVALID);
	assert_int_equal(vqb_threads_open(pool_mem, 64, &config, &other), VQB_E_TOOBIG);
	config.threads = 0;
	assert_int_equal(vqb_threads_size(&config), 0);
	config.threads = 257;
	assert_int_equal(vqb_threads_size(&config), 0);
	assert_true(vqb_threads_backend_size() <= VQB_THREADS_BACKEND_BYTES);
	open_all(1, 1);
	for (unsigned i = 0; i < 4; i++) {
		queue_config.struct_size = i == 0 ? 0 : sizeof(queue_config);
		queue_config.depth = i == 1 ? 0 : 1;
		queue_config.pool = i == 2 ? NULL : pool;
		queue_config.file = i == 3 ? NULL : file;
		assert_int_equal(
			vqb_threads_backend_init(spare, sizeof(spare), &queue_config, &out),
			VQB_E_INVALID);
	}
	queue_config.file = file;
	assert_int_equal(vqb_threads_backend_init(spare, 64, &queue_config, &out), VQB_E_TOOBIG);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_descriptor_is_readable_while_there_is_something_to_poll),
		cmocka_unit_test(test_it_signals_the_eventfd_that_it_was_given),
		cmocka_unit_test(test_all_threads_work_at_a_time_on_one_batch),
		cmocka_unit_test(test_what_is_plugged_starts_with_unplug),
		cmocka_unit_test(test_queues_take_turns),
		cmocka_unit_test(test_it_is_full_at_its_depth_until_a_poll),
		cmocka_unit_test(test_what_it_cannot_do_is_refused_at_once),
		cmocka_unit_test(test_a_flush_and_a_failed_read_say_so),
		cmocka_unit_test(test_a_file_size_limit_is_an_error_and_no_signal),
		cmocka_unit_test(test_closing_waits_for_what_is_out),
		cmocka_unit_test(test_queues_of_one_pool_keep_their_data_apart),
		cmocka_unit_test(test_opening_refuses_bad_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
