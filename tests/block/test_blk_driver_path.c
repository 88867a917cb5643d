/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three paths on a ring: what is sent at once, what waits, and who shares a request, before and
 * after the ring is full.
 */
#include "blk_driver_bench.h"

/* Fills a ring of 16 with five reads that are nobody's neighbours. */
static void fill_ring(struct guest *g)
{
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(guest_put(g, i, VQB_BLK_IN, 500 + 10 * i)->state, VQB_BIO_SENT);
	assert_int_equal(vqb_driver_free(g->ring.drv), 1);
}

/* Neighbours, from bio 8 on: four sectors, which one request can take. */
static void put_neighbours(struct guest *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		guest_put(g, 8 + i, VQB_BLK_OUT, i);
}

/* One comes back; what is sent then. */
static unsigned make_room(struct guest *g)
{
	struct vqb_bio *done;
	unsigned in_flight;

	guest_serve(g, VQB_BLK_S_OK);
	in_flight = vqb_blk_in_flight(g->drv) - 1;
	assert_int_equal(guest_reap(g, &done), 1);
	vqb_blk_publish(g->drv);
	return vqb_blk_in_flight(g->drv) - in_flight;
}

static void test_with_room_every_bio_goes_out_at_once_and_alone(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct guest *g = guest_on_path(state, 64, path);

		put_neighbours(g, 8);
		assert_int_equal(vqb_blk_in_flight(g->drv), 8);
		assert_int_equal(vqb_blk_waiting(g->drv), 0);
		assert_int_equal(bench_visible(&g->ring), 0); /* nothing before publish */
		vqb_blk_publish(g->drv);
		for (unsigned i = 0; i < 8; i++) {
			struct seen s = guest_see(g);

			assert_int_equal(guest_sector(&s), i);
			assert_int_equal(guest_bytes(g, &s), 512);
			guest_finish(g, &s, VQB_BLK_S_OK);
		}
		assert_int_equal(guest_drain(g), 8);
	}
}

/* As many as fit, in as many requests as they are: the bio path never merges. */
static void test_the_bio_path_sends_each_alone_also_after_it_waited(void **state)
{
	struct guest *g = guest_on_path(state, 16, VQB_PATH_BIO);
	struct vqb_requests_counters c;

	fill_ring(g);
	put_neighbours(g, 4);
	assert_int_equal(vqb_blk_waiting(g->drv), 4);
	vqb_blk_publish(g->drv);
	assert_int_equal(make_room(g), 1);
	assert_int_equal(vqb_blk_waiting(g->drv), 3);
	assert_int_equal(guest_drain(g), 8);
	vqb_blk_driver_read_counters(g->drv, &c);
	assert_int_equal(c.requests, 9);
	assert_int_equal(c.merged, 0);
	assert_true(c.full > 0);
}

/* One request for all that had to wait, and from then on each alone again. */
static void merge_what_waited(struct guest *g)
{
	struct vqb_requests_counters c;
	struct vqb_bio *done;
	struct seen s;

	fill_ring(g);
	guest_put(g, 7, VQB_BLK_IN, 900); /* finds no room, and nobody to share a request with */
	put_neighbours(g, 4);
	assert_int_equal(vqb_blk_waiting(g->drv), 5);
	vqb_blk_publish(g->drv);
	assert_int_equal(bench_visible(&g->ring), 5);
	for (unsigned i = 0; i < 5; i++)
		guest_serve(g, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 5);
	assert_int_equal(vqb_blk_waiting(g->drv), 0);
	assert_int_equal(vqb_blk_in_flight(g->drv), 2);
	vqb_blk_publish(g->drv);
	guest_serve(g, VQB_BLK_S_OK);
	s = guest_see(g);
	assert_int_equal(guest_type(&s), VQB_BLK_OUT);
	assert_int_equal(guest_sector(&s), 0);
	assert_int_equal(guest_bytes(g, &s), 4 * 512);
	guest_finish(g, &s, VQB_BLK_S_OK);
	assert_int_equal(guest_reap(g, &done), 5);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(g->bio[8 + i].status, VQB_OK);
	put_neighbours(g, 4);
	assert_int_equal(vqb_blk_in_flight(g->drv), 4);
	vqb_blk_driver_read_counters(g->drv, &c);
	assert_int_equal(c.merged, 3);
	assert_int_equal(c.requests, 11);
	vqb_blk_driver_clear_counters(g->drv);
	vqb_blk_driver_read_counters(g->drv, &c);
	assert_int_equal(c.requests + c.bios + c.merged + c.full + c.done, 0);
	guest_drain(g);
}

static void test_both_other_paths_merge_what_waited_for_room(void **state)
{
	merge_what_waited(guest_on_path(state, 16, VQB_PATH_MERGE_WHEN_FULL));
	merge_what_waited(guest_on_path(state, 16, VQB_PATH_REQUEST));
}

/* A list is where the paths differ with room to spare: the first one, and those after it. */
static void test_a_list_is_merged_on_the_request_path_alone(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct guest *g = guest_on_path(state, 64, path);

		for (unsigned turn = 0; turn < 3; turn++) {
			struct vqb_bio *list = NULL;

			for (unsigned i = 4; i--;) {
				struct vqb_bio *bio = guest_bio(g, i, VQB_BLK_OUT, i, 1, 512);

				bio->next = list;
				list = bio;
			}
			assert_int_equal(vqb_blk_submit_list(g->drv, list, NULL), VQB_OK);
			assert_int_equal(vqb_blk_in_flight(g->drv),
					 path == VQB_PATH_REQUEST ? 1 : 4);
			assert_int_equal(guest_drain(g), 4);
		}
	}
}

/* Makes a driver in memory that is just as long as it says, and is followed by a line of 0x5a. */
static uint8_t *open_in_exact_memory(struct guest *g, uint32_t depth, uint32_t window)
{
	size_t bytes;

	g->config.depth = depth;
	g->config.window = window;
	bytes = vqb_blk_driver_size(&g->config);
	assert_in_range(bytes, 1,
			VQB_BLK_DRIVER_BYTES(depth, g->limits.segments, g->config.ranges, window));
	free(g->mem);
	g->mem = (uint8_t *)bench_alloc(64, bytes + 64);
	memset(g->mem, 0x5a, bytes + 64);
	assert_int_equal(vqb_blk_driver_init(g->mem, bytes, &g->config, &g->drv), VQB_OK);
	return g->mem + bytes;
}

/*
 * `window` bios are looked at together, in either half of a list that comes from its end. Of all
 * these sizes some leave nothing of their memory unused.
 */
static void test_a_window_is_as_long_as_was_asked_for(void **state)
{
	for (uint32_t depth = 2; depth < DEPTH; depth++) {
		for (uint32_t window = 1; window <= 8; window++) {
			struct guest *g = guest_plan(state, 64);
			uint8_t *behind;

			g->config.path = VQB_PATH_REQUEST;
			g->limits.segments = 8;
			behind = open_in_exact_memory(g, depth, window);
			for (uint32_t i = 0; i < 2 * window; i++)
				guest_bio(g, i, VQB_BLK_IN, 2 * window - i, 1, 512)->next =
					i + 1 < 2 * window ? &g->bio[i + 1] : NULL;
			assert_int_equal(vqb_blk_submit_list(g->drv, g->bio, NULL), VQB_OK);
			vqb_blk_publish(g->drv);
			for (unsigned i = 0; i < 2; i++) {
				struct seen s = guest_serve(g, VQB_BLK_S_OK);

				assert_int_equal(s.parts, window + 2);
				assert_int_equal(guest_sector(&s), 1 + (1 - i) * window);
			}
			assert_int_equal(guest_drain(g), 2 * window);
			for (unsigned i = 0; i < 64; i++)
				assert_int_equal(behind[i], 0x5a);
		}
	}
}

/* While somebody waits, everybody does, also one that there would be room for. */
static void test_nobody_passes_who_waits(void **state)
{
	for (uint32_t path = 0; path <= VQB_PATH_REQUEST; path++) {
		struct guest *g = guest_on_path(state, 16, path);
		struct vqb_bio *large = guest_bio(g, 20, VQB_BLK_OUT, 100, 4, 2048);
		struct vqb_bio *flush = guest_bio(g, 30, VQB_BLK_FLUSH, 0, 0, 0);

		for (unsigned i = 0; i < 4; i++)
			guest_put(g, i, VQB_BLK_IN, 500 + 10 * i);
		assert_int_equal(vqb_driver_free(g->ring.drv), 4);
		assert_int_equal(vqb_blk_submit(g->drv, large), VQB_OK); /* takes six */
		assert_int_equal(large->state, VQB_BIO_WAITING);
		assert_int_equal(vqb_blk_submit(g->drv, flush), VQB_OK); /* takes two */
		assert_int_equal(flush->state, VQB_BIO_WAITING);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(guest_put(g, 40 + i, VQB_BLK_IN, 600 + 10 * i)->state,
					 VQB_BIO_WAITING);
		vqb_blk_publish(g->drv);
		assert_int_equal(make_room(g), 1);
		assert_int_equal(large->state, VQB_BIO_SENT);
		assert_int_equal(flush->state, VQB_BIO_WAITING);
		assert_int_equal(make_room(g), 1);
		assert_int_equal(flush->state, VQB_BIO_SENT);
		assert_int_equal(g->bio[40].state, VQB_BIO_WAITING);
		assert_int_equal(make_room(g), 1);
		assert_int_equal(g->bio[40].state, VQB_BIO_SENT);
		guest_drain(g);
	}
}

/* `depth` is a limit as the ring is: what waits for a slot is merged. */
static void test_a_small_depth_is_as_good_as_a_small_ring(void **state)
{
	struct guest *g = guest_plan(state, 64);

	g->config.depth = 2;
	assert_int_equal(guest_init(g), VQB_OK);
	guest_put(g, 0, VQB_BLK_IN, 500);
	guest_put(g, 1, VQB_BLK_IN, 600);
	put_neighbours(g, 4);
	assert_int_equal(vqb_blk_waiting(g->drv), 4);
	vqb_blk_publish(g->drv);
	assert_int_equal(make_room(g), 1);
	assert_int_equal(vqb_blk_waiting(g->drv), 0);
	assert_int_equal(guest_drain(g), 5);
}

static void test_a_path_is_changed_when_nothing_is_out(void **state)
{
	struct guest *g = guest_on_path(state, 64, VQB_PATH_BIO);
	struct vqb_bio *first = guest_bio(g, 0, VQB_BLK_OUT, 0, 1, 512);

	first->next = guest_bio(g, 1, VQB_BLK_OUT, 1, 1, 512);
	assert_int_equal(vqb_blk_set_path(g->drv, 3), VQB_E_INVALID);
	guest_put(g, 5, VQB_BLK_IN, 99);
	assert_int_equal(vqb_blk_set_path(g->drv, VQB_PATH_REQUEST), VQB_E_BUSY);
	assert_int_equal(guest_drain(g), 1);
	assert_int_equal(vqb_blk_set_path(g->drv, VQB_PATH_REQUEST), VQB_OK);
	assert_int_equal(vqb_blk_submit_list(g->drv, first, NULL), VQB_OK);
	assert_int_equal(vqb_blk_in_flight(g->drv), 1);
	assert_int_equal(guest_drain(g), 2);

	first->next = &g->bio[1];
	assert_int_equal(vqb_blk_set_path(g->drv, VQB_PATH_BIO), VQB_OK);
	assert_int_equal(vqb_blk_submit_list(g->drv, first, NULL), VQB_OK);
	assert_int_equal(vqb_blk_in_flight(g->drv), 2);
	assert_int_equal(guest_drain(g), 2);
}

/* Polled: nothing is armed or notified, and reap alone keeps everything going. */
static void test_a_queue_that_is_polled(void **state)
{
	struct guest *g = guest_on_path(state, 16, VQB_PATH_MERGE_WHEN_FULL);
	struct vqb_bio *done;
	unsigned n = 0;

	vqb_driver_disarm(g->ring.drv);
	for (unsigned i = 0; i < 40; i++)
		guest_put(g, i, VQB_BLK_OUT, 7 * i);
	while (vqb_blk_outstanding(g->drv)) {
		vqb_driver_expose(g->ring.drv);
		while (bench_visible(&g->ring))
			guest_serve(g, VQB_BLK_S_OK);
		n += guest_reap(g, &done);
		assert_int_equal(raw_avail_flags(&g->ring.raw), 1);
	}
	assert_int_equal(n, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		guest_test(test_with_room_every_bio_goes_out_at_once_and_alone),
		guest_test(test_the_bio_path_sends_each_alone_also_after_it_waited),
		guest_test(test_both_other_paths_merge_what_waited_for_room),
		guest_test(test_a_list_is_merged_on_the_request_path_alone),
		guest_test(test_a_window_is_as_long_as_was_asked_for),
		guest_test(test_nobody_passes_who_waits),
		guest_test(test_a_small_depth_is_as_good_as_a_small_ring),
		guest_test(test_a_path_is_changed_when_nothing_is_out),
		guest_test(test_a_queue_that_is_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
