/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sort of what lies where on the disk (lib/block/sort.h): every size, keys of every kind, equal
 * ones in the order in which they came, and nothing read or written outside of its two arrays.
 */
#include "lib/block/sort.h"
#include "random.h"
#include "unit.h"

enum { SIZES = 300, MOST = 1100, GUARD = 8 };

enum kind { SPREAD, FEW, TWO_ENDS, HIGH_BITS, EQUAL, ASCENDING, DESCENDING, PAIRS, SAW, KINDS };

/* Room for entries, and for guards in front of them and behind. */
struct room {
	struct sort_entry before[GUARD], entry[MOST];
};

static struct room one, other;
static uint64_t keys[MOST];
static char item[MOST]; /* who came as which */
static struct random numbers;

static uint64_t key_of(enum kind kind, uint32_t i, uint32_t n)
{
	switch (kind) {
	case SPREAD:
		return random_word(&numbers);
	case FEW:
		return random_below(&numbers, 4);
	case TWO_ENDS:
		return random_one_in(&numbers, 2) ? 0 : UINT64_MAX;
	case HIGH_BITS: /* sectors that differ where 32 bits or a sign would not show it */
		return (uint64_t)random_below(&numbers, 8) << 61 | random_below(&numbers, 2);
	case EQUAL:
		return UINT64_MAX;
	case ASCENDING:
		return i;
	case DESCENDING:
		return UINT64_MAX - i;
	case PAIRS:
		return i ^ 1;
	default: /* one half among the other */
		return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
	}
}

/* `guard` may be less or more than any key: taken for an entry, it would come out as one. */
static void fill_guards(struct room *room, uint32_t n, uint64_t guard)
{
	for (uint32_t i = 0; i < GUARD; i++) {
		room->before[i] = (struct sort_entry){ guard, room };
		room->entry[n + i] = (struct sort_entry){ guard, room };
	}
}

static void check_guards(const struct room *room, uint32_t n, uint64_t guard)
{
	for (uint32_t i = 0; i < GUARD; i++) {
		assert_true(room->before[i].key == guard && room->before[i].item == room);
		assert_true(room->entry[n + i].key == guard && room->entry[n + i].item == room);
	}
}

/* All are there, with their own keys, and each comes after the one in front of it. */
static void check_sorted(const struct sort_entry *e, uint32_t n)
{
	uint8_t seen[MOST] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		size_t came = (size_t)((char *)e[i].item - item);

		assert_true(came < n && !seen[came]);
		seen[came] = 1;
		assert_true(e[i].key == keys[came]);
		if (i)
			assert_true(e[i - 1].key < e[i].key ||
				    (e[i - 1].key == e[i].key &&
				     (char *)e[i - 1].item < (char *)e[i].item));
	}
}

static void sort_keys(uint32_t n, uint64_t guard)
{
	const struct sort_entry *sorted;

	fill_guards(&one, n, guard);
	fill_guards(&other, n, guard);
	for (uint32_t i = 0; i < n; i++) {
		one.entry[i] = (struct sort_entry){ keys[i], &item[i] };
		other.entry[i] = (struct sort_entry){ guard, &other };
	}
	sorted = vqb__sort(one.entry, other.entry, n);
	assert_true(sorted == one.entry || sorted == other.entry);
	check_sorted(sorted, n);
	check_guards(&one, n, guard);
	check_guards(&other, n, guard);
}

static void sort_all_kinds(uint32_t n)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (uint32_t i = 0; i < n; i++)
			keys[i] = key_of((enum kind)kind, i, n);
		sort_keys(n, 0);
		sort_keys(n, UINT64_MAX);
	}
}

static void test_every_size_with_keys_of_every_kind(void **state)
{
	(void)state;
	numbers.state = 1;
	for (uint32_t n = 0; n <= SIZES; n++)
		sort_all_kinds(n);
	for (uint32_t n = 511; n <= 513; n++)
		sort_all_kinds(n);
	for (uint32_t n = 1023; n <= 1025; n++)
		sort_all_kinds(n);
}

/* Whatever order some come in, and whoever of them are equal. */
static void test_every_order_of_up_to_six(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 6; n++) {
		for (uint32_t order = 0, digits = 0; !digits; order++) {
			digits = order;
			for (uint32_t i = 0; i < n; i++, digits /= n)
				keys[i] = digits % n;
			sort_keys(n, order & 1 ? UINT64_MAX : 0);
		}
	}
}

/* Blocks of eight that are merged: each way in which they can lie among each other. */
static void test_two_blocks_in_every_mixture(void **state)
{
	(void)state;
	for (uint32_t mixture = 0; mixture < 1u << 16; mixture++) {
		uint32_t first = 0, second = 8;

		/* A bit says whose turn it is; where one block is out it's the other's. */
		for (uint32_t i = 0; i < 16; i++) {
			if (second == 16 || (first < 8 && mixture >> i & 1))
				keys[first++] = i / 2;
			else
				keys[second++] = i / 2;
		}
		sort_keys(16, mixture & 1 ? UINT64_MAX : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size_with_keys_of_every_kind),
		cmocka_unit_test(test_every_order_of_up_to_six),
		cmocka_unit_test(test_two_blocks_in_every_mixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
