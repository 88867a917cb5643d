/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug: bios for any number of queues, taken out queue by queue, in the order in which they
 * came.
 */
#include <string.h>

#include <vqblk/request.h>

#include "unit.h"

enum { BIOS = 20, QUEUES = 4 };

static struct vqb_plug plug;
static struct vqb_bio bio[BIOS];
static char queue[QUEUES];

static int empty(void **state)
{
	(void)state;
	memset(&plug, 0, sizeof(plug));
	memset(bio, 0, sizeof(bio));
	return 0;
}

static void add(unsigned i, unsigned q)
{
	assert_int_equal(vqb_plug_add(&plug, &queue[q], &bio[i]), VQB_OK);
	assert_int_equal(bio[i].state, VQB_BIO_PLUGGED);
}

/* The next queue is `q`, with the bios whose numbers follow; -1 ends them. */
static void expect_take(unsigned q, const int *want)
{
	struct vqb_bio *list;

	assert_ptr_equal(vqb_plug_take(&plug, &list), &queue[q]);
	for (; *want >= 0; want++, list = list->next) {
		assert_ptr_equal(list, &bio[*want]);
		assert_int_equal(list->state, VQB_BIO_PLUGGED);
	}
	assert_null(list);
}

#define TAKE(q, ...) expect_take(q, (const int[]){ __VA_ARGS__, -1 })

static void expect_empty(void)
{
	struct vqb_bio *list = bio;

	assert_null(vqb_plug_take(&plug, &list));
	assert_null(list);
	assert_int_equal(plug.bios, 0);
}

static void test_all_zero_is_an_empty_one(void **state)
{
	(void)state;
	expect_empty();
	expect_empty();
}

static void test_bios_are_grouped_by_queue_the_oldest_first(void **state)
{
	(void)state;
	add(0, 2);
	add(1, 0);
	add(2, 2);
	add(3, 1);
	add(4, 0);
	add(5, 2);
	assert_int_equal(plug.bios, 6);
	TAKE(2, 0, 2, 5);
	assert_int_equal(plug.bios, 3);
	TAKE(0, 1, 4);
	TAKE(1, 3);
	expect_empty();
}

/* More may come while it is being emptied: they are in the next turn of their queue. */
static void test_it_goes_on_while_it_is_emptied(void **state)
{
	(void)state;
	add(0, 0);
	add(1, 1);
	add(2, 0);
	TAKE(0, 0, 2);
	add(3, 0);
	add(4, 1);
	TAKE(1, 1, 4);
	add(5, 2);
	TAKE(0, 3);
	TAKE(2, 5);
	expect_empty();
	add(6, 3);
	TAKE(3, 6);
	expect_empty();
}

static void test_a_bio_is_in_one_place_at_a_time(void **state)
{
	struct vqb_plug other = { 0 };

	(void)state;
	add(0, 0);
	assert_int_equal(vqb_plug_add(&plug, &queue[0], &bio[0]), VQB_E_BUSY);
	assert_int_equal(vqb_plug_add(&other, &queue[1], &bio[0]), VQB_E_BUSY);
	bio[1].state = VQB_BIO_SENT;
	assert_int_equal(vqb_plug_add(&plug, &queue[0], &bio[1]), VQB_E_BUSY);
	assert_int_equal(vqb_plug_add(&plug, NULL, &bio[2]), VQB_E_INVALID);
	assert_int_equal(bio[2].state, VQB_BIO_IDLE);
	assert_int_equal(plug.bios, 1);
	assert_int_equal(other.bios, 0);
	TAKE(0, 0);
}

static void test_one_is_taken_out_wherever_it_is(void **state)
{
	for (unsigned which = 0; which < 3; which++) {
		static const int left[3][3] = { { 1, 2, -1 }, { 0, 2, -1 }, { 0, 1, -1 } };

		empty(state);
		for (unsigned i = 0; i < 3; i++)
			add(i, 0);
		assert_int_equal(vqb_plug_remove(&plug, &bio[which]), VQB_OK);
		assert_int_equal(bio[which].state, VQB_BIO_IDLE);
		assert_int_equal(plug.bios, 2);
		assert_int_equal(vqb_plug_remove(&plug, &bio[which]), VQB_E_LATE);
		add(3, 1); /* behind the last one, whichever that is */
		expect_take(0, left[which]);
		TAKE(1, 3);
		expect_empty();
	}
}

static void test_the_last_one_is_taken_out(void **state)
{
	(void)state;
	add(0, 0);
	assert_int_equal(vqb_plug_remove(&plug, &bio[0]), VQB_OK);
	expect_empty();
	add(1, 1);
	TAKE(1, 1);
	expect_empty();
}

static void test_what_is_not_in_it_is_too_late(void **state)
{
	struct vqb_plug other = { 0 };

	(void)state;
	assert_int_equal(vqb_plug_remove(&plug, &bio[0]), VQB_E_LATE);
	add(0, 0);
	assert_int_equal(vqb_plug_remove(&other, &bio[0]), VQB_E_LATE);
	assert_int_equal(bio[0].state, VQB_BIO_PLUGGED);
	TAKE(0, 0);
	assert_int_equal(vqb_plug_remove(&plug, &bio[0]), VQB_E_LATE);
	assert_int_equal(bio[0].state, VQB_BIO_PLUGGED);
}

/* What is in a plug is linked to others there: it is refused as long as it is, and left alone. */
static void test_what_is_in_a_plug_is_not_submitted(void **state)
{
	static const struct vqb_segment seg = { 0x1000, 512, 0 };
	_Alignas(64) static uint8_t mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_limits limits;
	struct vqb_requests_config config = { .struct_size = sizeof(config),
					      .capacity = 8,
					      .limits = &limits };
	struct vqb_requests *rq;
	struct vqb_bio *list;

	(void)state;
	vqb_limits_init(&limits);
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &config, &rq), VQB_OK);
	for (unsigned i = 0; i < 3; i++) {
		bio[i].vec = &seg;
		bio[i].nvec = 1;
	}
	assert_int_equal(vqb_plug_add(&plug, rq, &bio[0]), VQB_OK);
	assert_int_equal(vqb_plug_add(&plug, rq, &bio[1]), VQB_OK);
	bio[0].status = 77;
	assert_int_equal(vqb_requests_submit(rq, &bio[0]), VQB_E_BUSY);
	assert_int_equal(bio[0].status, 77);
	assert_int_equal(bio[0].state, VQB_BIO_PLUGGED);
	assert_int_equal(vqb_requests_submit(rq, &bio[2]), VQB_OK);
	assert_ptr_equal(vqb_plug_take(&plug, &list), rq);
	assert_ptr_equal(list, &bio[0]);
	assert_ptr_equal(list->next, &bio[1]);
	assert_null(list->next->next);
	assert_int_equal(vqb_requests_submit(rq, &bio[0]), VQB_OK);
	assert_int_equal(vqb_requests_waiting(rq), 2);
}

/*
 * What is taken from a plug is submitted as it is: plugged bios are accepted, and refused, as
 * others.
 */
static void test_a_list_from_a_plug_is_submitted(void **state)
{
	static const struct vqb_segment seg = { 0x1000, 512, 0 };
	_Alignas(64) static uint8_t mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_limits limits;
	struct vqb_requests_config config = { .struct_size = sizeof(config),
					      .capacity = 8,
					      .limits = &limits };
	struct vqb_requests *rq;
	struct vqb_bio *list, *next;

	(void)state;
	vqb_limits_init(&limits);
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &config, &rq), VQB_OK);
	for (unsigned i = 0; i < 3; i++) {
		bio[i].vec = &seg;
		bio[i].nvec = 1;
		bio[i].sector = i * 4; /* the last one is past the end */
		assert_int_equal(vqb_plug_add(&plug, rq, &bio[i]), VQB_OK);
	}
	assert_ptr_equal(vqb_plug_take(&plug, &list), rq);
	for (unsigned i = 0; list; i++, list = next) {
		next = list->next;
		assert_int_equal(vqb_requests_submit(rq, list), i < 2 ? VQB_OK : VQB_E_INVALID);
		assert_int_equal(bio[i].state, i < 2 ? VQB_BIO_WAITING : VQB_BIO_IDLE);
	}
	assert_int_equal(vqb_requests_waiting(rq), 2);
	assert_int_equal(vqb_requests_cancel(rq, &bio[0]), VQB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_all_zero_is_an_empty_one, empty),
		cmocka_unit_test_setup(test_bios_are_grouped_by_queue_the_oldest_first, empty),
		cmocka_unit_test_setup(test_it_goes_on_while_it_is_emptied, empty),
		cmocka_unit_test_setup(test_a_bio_is_in_one_place_at_a_time, empty),
		cmocka_unit_test_setup(test_one_is_taken_out_wherever_it_is, empty),
		cmocka_unit_test_setup(test_the_last_one_is_taken_out, empty),
		cmocka_unit_test_setup(test_what_is_not_in_it_is_too_late, empty),
		cmocka_unit_test_setup(test_what_is_in_a_plug_is_not_submitted, empty),
		cmocka_unit_test_setup(test_a_list_from_a_plug_is_submitted, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
