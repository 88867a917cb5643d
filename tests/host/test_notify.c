/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications by eventfd: signals add up, none is lost, and EINTR ends no wait. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <vqblk/host/notify.h>

#include "unit.h"

static struct vqb_notify notify = { -1 };

static int up(void **state)
{
	(void)state;
	return vqb_notify_open(&notify);
}

static int down(void **state)
{
	(void)state;
	vqb_notify_close(&notify);
	vqb_notify_close(&notify);
	return notify.fd == -1 ? 0 : -1;
}

#define notify_test(f) cmocka_unit_test_setup_teardown(f, up, down)

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void test_signals_add_up_to_one(void **state)
{
	(void)state;
	assert_int_equal(vqb_notify_clear(&notify), VQB_E_AGAIN);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vqb_notify_signal(&notify), VQB_OK);
	assert_int_equal(vqb_notify_wait(&notify, -1), VQB_OK);
	assert_int_equal(vqb_notify_wait(&notify, 0), VQB_E_AGAIN);
	assert_int_equal(vqb_notify_signal(&notify), VQB_OK);
	assert_int_equal(vqb_notify_clear(&notify), VQB_OK);
	assert_int_equal(vqb_notify_clear(&notify), VQB_E_AGAIN);
}

/* A counter at its end is signalled already; signal does not wait for room. */
static void test_a_full_counter_does_not_block_the_signaller(void **state)
{
	const uint64_t full = UINT64_MAX - 1;

	(void)state;
	assert_int_equal(write(notify.fd, &full, sizeof(full)), sizeof(full));
	errno = 7;
	assert_int_equal(vqb_notify_signal(&notify), VQB_OK);
	assert_int_equal(errno, 7);
	assert_int_equal(vqb_notify_wait(&notify, -1), VQB_OK);
	assert_int_equal(vqb_notify_clear(&notify), VQB_E_AGAIN);
}

static void test_the_descriptor_can_be_watched(void **state)
{
	struct pollfd one = { .fd = notify.fd, .events = POLLIN };

	(void)state;
	assert_int_equal(poll(&one, 1, 0), 0);
	assert_int_equal(vqb_notify_signal(&notify), VQB_OK);
	assert_int_equal(poll(&one, 1, 0), 1);
	assert_int_equal(vqb_notify_clear(&notify), VQB_OK);
	assert_int_equal(poll(&one, 1, 0), 0);
}

static void test_a_wait_ends_when_its_time_is_over(void **state)
{
	int64_t before = now();

	(void)state;
	assert_int_equal(vqb_notify_wait(&notify, 50), VQB_E_AGAIN);
	assert_true(now() - before >= 49);
}

static void *signal_later(void *arg)
{
	const struct timespec pause = { 0, 30000000 };

	nanosleep(&pause, NULL);
	vqb_notify_signal(arg);
	return NULL;
}

static void test_a_signal_from_another_thread_ends_the_wait(void **state)
{
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, signal_later, &notify), 0);
		assert_int_equal(vqb_notify_wait(&notify, i ? 60000 : -1), VQB_OK);
		pthread_join(thread, NULL);
		assert_int_equal(vqb_notify_clear(&notify), VQB_E_AGAIN);
	}
}

static unsigned interrupts;

static void on_alarm(int number)
{
	(void)number;
	/* The third interrupt signals: that may be done in a handler. */
	if (++interrupts == 3)
		vqb_notify_signal(&notify);
}

static void test_interrupted_waits_go_on(void **state)
{
	struct sigaction action = { .sa_handler = on_alarm }, old;
	const struct itimerval every = { { 0, 10000 }, { 0, 10000 } }, off = { { 0, 0 }, { 0, 0 } };
	int64_t before;

	(void)state;
	interrupts = 0;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	assert_int_equal(vqb_notify_wait(&notify, -1), VQB_OK);
	assert_true(interrupts >= 3);
	before = now();
	assert_int_equal(vqb_notify_wait(&notify, 60), VQB_E_AGAIN);
	assert_true(now() - before >= 59);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	sigaction(SIGALRM, &old, NULL);
}

static void test_a_closed_one_answers_an_error(void **state)
{
	struct vqb_notify closed = { -1 };

	(void)state;
	assert_int_equal(vqb_notify_signal(&closed), VQB_E_IO);
	assert_int_equal(vqb_notify_wait(&closed, -1), VQB_E_IO);
	assert_int_equal(vqb_notify_clear(&closed), VQB_E_IO);
	vqb_notify_close(&closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		notify_test(test_signals_add_up_to_one),
		notify_test(test_a_full_counter_does_not_block_the_signaller),
		notify_test(test_the_descriptor_can_be_watched),
		notify_test(test_a_wait_ends_when_its_time_is_over),
		notify_test(test_a_signal_from_another_thread_ends_the_wait),
		notify_test(test_interrupted_waits_go_on),
		notify_test(test_a_closed_one_answers_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
