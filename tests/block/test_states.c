/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/block/states.md against what is done: while events come by chance (model/requests_sim.h,
 * model/blk_driver_sim.h), each step that a bio, a request or the ring takes has to be a row of the
 * tables, and each row has to be taken. The steps of writes are tried one by one.
 *
 * VQB_STATES_MD is the path of that page. VQB_SEED, VQB_LONG, VQB_SHORT: length.h.
 */
#include <ctype.h>

#include "model/blk_driver_sim.h"
#include "model/requests_sim.h"

enum { ROWS = 40, CELLS = 4, CELL = 40, LEAST = 100000 };

struct row {
	char cell[CELLS][CELL];
	uint64_t taken;
};

struct table {
	struct row row[ROWS];
	uint32_t rows;
};

/* ---- the page ---- */

/* The cells of "| a | b | c |", without the blanks around them. */
static bool read_row(struct row *row, const char *line)
{
	memset(row, 0, sizeof(*row));
	if (*line != '|')
		return false;
	for (uint32_t i = 0; i < CELLS; i++) {
		size_t n = 0;

		for (line++; *line == ' '; line++)
			;
		for (; *line && *line != '|' && *line != '\n'; line++)
			if (n + 1 < CELL)
				row->cell[i][n++] = *line;
		while (n && isspace((unsigned char)row->cell[i][n - 1]))
			row->cell[i][--n] = '\0';
		if (*line != '|')
			return i > 2;
	}
	return true;
}

/* The table below the heading, less its own heading. */
static void read_table(struct table *table, const char *heading)
{
	FILE *page = fopen(VQB_STATES_MD, "r");
	char line[400];
	bool here = false;
	uint32_t lines = 0;

	assert_non_null(page);
	table->rows = 0;
	while (fgets(line, sizeof(line), page)) {
		if (*line == '#')
			here = !strncmp(line, heading, strlen(heading));
		if (!here || *line != '|' || ++lines <= 2)
			continue;
		assert_true(table->rows < ROWS);
		assert_true(read_row(&table->row[table->rows++], line));
	}
	(void)fclose(page);
	assert_true(table->rows > 3);
}

static void take_row(struct table *table, const char *state, const char *event, const char *next)
{
	for (uint32_t i = 0; i < table->rows; i++) {
		struct row *row = &table->row[i];

		if (!strcmp(row->cell[0], state) && !strcmp(row->cell[1], event) &&
		    !strcmp(row->cell[2], next)) {
			row->taken++;
			return;
		}
	}
	fprintf(stderr, "no such row: %s | %s | %s\n", state, event, next);
	fail();
}

static void check_all_taken(const struct table *table)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < table->rows; i++) {
		const struct row *row = &table->row[i];

		printf("%10" PRIu64 "  %s | %s | %s\n", row->taken, row->cell[0], row->cell[1],
		       row->cell[2]);
		missing += !row->taken;
	}
	assert_int_equal(missing, 0);
}

/* However short the run: as much as it takes to see the rare ones. */
static void start(struct run *run, uint64_t usual)
{
	run_start(run, usual);
	if (run->total < LEAST)
		run->total = LEAST;
}

/* ---- bios ---- */

static void bio_took_a_step(struct model *m, const struct model_bio *b, uint8_t now)
{
	static const char *const state[] = { "IDLE", "PLUGGED", "WAITING", "PARTLY", "SENT" };
	static const char *const event[EVENTS] = {
		[EVENT_NONE] = "nothing",
		[EVENT_PLUG] = "plug",
		[EVENT_REMOVE] = "remove",
		[EVENT_SUBMIT] = "submit",
		[EVENT_REFUSE] = "refuse",
		[EVENT_SEND] = "send",
		[EVENT_SHARE] = "share",
		[EVENT_SEND_PART] = "send part",
		[EVENT_NO_ROOM] = "no room",
		[EVENT_CANCEL] = "cancel",
		[EVENT_PART_DONE] = "part done",
		[EVENT_PART_FAILED] = "part failed",
		[EVENT_PART_FAILED_LAST] = "part failed, last",
		[EVENT_DONE] = "done",
		[EVENT_STEP] = "step",
		[EVENT_AGAIN] = "again",
		[EVENT_ABANDON] = "abandon",
	};

	assert_true(b->seen <= VQB_BIO_SENT && now <= VQB_BIO_SENT);
	take_row(m->observer, state[b->seen], event[b->event], state[now]);
}

static void each_step_of_a_bio_is_a_row_and_each_row_a_step(void **state)
{
	static struct requests_sim sim;
	static struct table table;
	struct run run;

	(void)state;
	read_table(&table, "## Bio");
	for (start(&run, 300 * 1000); run_episode(&run);) {
		requests_sim_open(&sim, &run, bio_took_a_step, &table);
		for (uint32_t i = 0; i < 1500; i++)
			requests_sim_step(&sim);
		requests_sim_close(&sim);
	}
	check_all_taken(&table);
}

/* ---- requests ---- */

static void request_took_a_step(void *observer, enum slot_event event, bool before, bool after)
{
	static const char *const name[SLOT_EVENTS] = {
		[SLOT_SEND] = "send",     [SLOT_NO_ROOM] = "no room", [SLOT_DONE] = "done",
		[SLOT_FAILED] = "failed", [SLOT_ABANDON] = "abandon",
	};

	take_row(observer, before ? "SENT" : "FREE", name[event], after ? "SENT" : "FREE");
}

static const char *ring_state(int32_t state)
{
	switch (state) {
	case VQB_OK:
		return "OPEN";
	case VQB_E_BROKEN:
		return "BROKEN";
	case VQB_E_NEEDS_RESET:
		return "NEEDS RESET";
	default:
		assert_int_equal(state, VQB_E_INVALID);
		return "NO RING";
	}
}

static void ring_took_a_step(void *observer, const char *event, int32_t before, int32_t after)
{
	take_row(observer, ring_state(before), event, ring_state(after));
}

static void each_step_of_a_request_or_ring_is_a_row_and_each_row_a_step(void **state)
{
	static struct blk_driver_sim sim;
	static struct table table, ring;
	struct run run;

	(void)state;
	read_table(&table, "## Request");
	sim.observe = request_took_a_step;
	sim.observer = &table;
	read_table(&ring, "## Ring");
	sim.observe_ring = ring_took_a_step;
	sim.ring_observer = &ring;
	for (start(&run, LEAST); run_episode(&run);) {
		blk_driver_sim_open(&sim, &run);
		for (uint32_t i = 0; i < 500; i++)
			blk_driver_sim_step(&sim);
		blk_driver_sim_close(&sim);
	}
	check_all_taken(&table);
	check_all_taken(&ring);
}

/* ---- steps of a write ---- */

/* Sends a write with these flags until it is done; *steps gets what was sent, as on the page. */
static void send_write(uint8_t op, uint8_t flags, bool write_back, char *steps)
{
	static _Alignas(64) unsigned char mem[VQB_REQUESTS_BYTES(VQB_REQUESTS_WINDOW)];
	struct vqb_segment data = { .addr = MODEL_MEMORY, .len = 512 }, segments[2];
	struct vqb_bio bio = { .op = op, .flags = flags }, *done = NULL, **tail = &done;
	struct vqb_limits limits;
	struct vqb_requests_config config = { .struct_size = sizeof(config),
					      .max_ranges = 1,
					      .features = VQB_FEATURE(VQB_BLK_F_FLUSH),
					      .capacity = 8,
					      .limits = &limits };
	struct vqb_requests *rq;
	struct vqb_request r;

	vqb_limits_init(&limits);
	limits.max_segments = 2;
	limits.zeroes.max_sectors = 8;
	limits.zeroes.max_ranges = 1;
	config.flags = write_back ? 0 : VQB_REQUESTS_WRITE_THROUGH;
	if (op == VQB_BLK_OUT) {
		bio.vec = &data;
		bio.nvec = 1;
	} else {
		bio.sectors = 1;
	}
	assert_int_equal(vqb_requests_init(mem, sizeof(mem), &config, &rq), VQB_OK);
	assert_int_equal(vqb_requests_submit(rq, &bio), VQB_OK);
	*steps = '\0';
	while (!vqb_requests_next(rq, &r, segments, 2)) {
		strcat(steps, *steps ? ", " : "");
		strcat(steps, r.op == VQB_BLK_FLUSH ? "flush" : "write");
		vqb_requests_sent(rq, &r);
		/* One after the other: nothing else goes before that one is back. */
		assert_int_equal(vqb_requests_next(rq, &r, segments, 2), VQB_E_AGAIN);
		assert_null(done);
		vqb_requests_done(rq, &bio, 1, VQB_OK, &tail);
	}
	assert_ptr_equal(done, &bio);
}

static bool cell_allows(const char *cell, bool has)
{
	return !strcmp(cell, "any") || !strcmp(cell, has ? "yes" : "-");
}

/* Shows: K39 */
static void each_write_has_the_steps_of_its_row(void **state)
{
	static struct table table;

	(void)state;
	read_table(&table, "## Steps of a write");
	for (uint32_t all = 0; all < 16; all++) {
		uint8_t flags = all & (VQB_BIO_FUA | VQB_BIO_PREFLUSH);
		bool write_back = all & 4;
		uint32_t rows = 0;
		char steps[64];

		send_write(all & 8 ? VQB_BLK_WRITE_ZEROES : VQB_BLK_OUT, flags, write_back, steps);
		for (uint32_t i = 0; i < table.rows; i++) {
			struct row *row = &table.row[i];
			const char *cache = row->cell[2];

			if (!cell_allows(row->cell[0], flags & VQB_BIO_PREFLUSH) ||
			    !cell_allows(row->cell[1], flags & VQB_BIO_FUA) ||
			    (strcmp(cache, "any") &&
			     strcmp(cache, write_back ? "write-back" : "write-through")))
				continue;
			assert_string_equal(row->cell[3], steps);
			row->taken++;
			rows++;
		}
		assert_true(rows);
	}
	check_all_taken(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_of_a_bio_is_a_row_and_each_row_a_step),
		cmocka_unit_test(each_step_of_a_request_or_ring_is_a_row_and_each_row_a_step),
		cmocka_unit_test(each_write_has_the_steps_of_its_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
