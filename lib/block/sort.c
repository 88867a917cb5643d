/* SPDX-License-Identifier: BSD-3-Clause */
#include "sort.h"

#include <vqblk/port.h>

enum { BLOCK = 4 }; /* entries that are sorted by counting, before blocks are merged */

/* Each of up to four entries goes where the number of those in front of it says. */
static void sort_few(const struct sort_entry *in, uint32_t n, struct sort_entry *out)
{
	uint32_t ab, ac, ad, bc, bd, cd;

	if (n == 4) {
		ab = in[0].key > in[1].key;
		ac = in[0].key > in[2].key;
		ad = in[0].key > in[3].key;
		bc = in[1].key > in[2].key;
		bd = in[1].key > in[3].key;
		cd = in[2].key > in[3].key;
		out[ab + ac + ad] = in[0];
		out[1 - ab + bc + bd] = in[1];
		out[2 - ac - bc + cd] = in[2];
		out[3 - ad - bd - cd] = in[3];
	} else {
		ab = n > 1 && in[0].key > in[1].key;
		ac = n > 2 && in[0].key > in[2].key;
		bc = n > 2 && in[1].key > in[2].key;
		out[ab + ac] = in[0];
		if (n > 1)
			out[1 - ab + bc] = in[1];
		if (n > 2)
			out[2 - ac - bc] = in[2];
	}
}

/*
 * One of two, and no branch, which would be guessed wrong half of the time. `second` is 0 or -1,
 * all bits.
 */
VQB_INLINE struct sort_entry pick(const struct sort_entry *one, const struct sort_entry *two,
				  uintptr_t second)
{
	uintptr_t from = (uintptr_t)one ^ (((uintptr_t)one ^ (uintptr_t)two) & second);

	return *(const struct sort_entry *)from;
}

/*
 * Two blocks of the same width into one, from both ends at a time: they meet in the middle, and
 * neither can run out of entries.
 */
static void merge_equal(const struct sort_entry *in, uint32_t width, struct sort_entry *out)
{
	const struct sort_entry *a = in, *b = in + width, *a_end = b, *b_end = b + width;
	struct sort_entry *last = out + (size_t)width * 2 - 1;
	uint32_t i;

	for (i = 0; i < width; i++) {
		uintptr_t from_b = 0 - (uintptr_t)(b->key < a->key);
		uintptr_t from_a = 0 - (uintptr_t)(a_end[-1].key > b_end[-1].key);

		out[i] = pick(a, b, from_b);
		b -= (intptr_t)from_b;
		a += 1 + (intptr_t)from_b;
		*last-- = pick(b_end - 1, a_end - 1, from_a);
		a_end += (intptr_t)from_a;
		b_end -= 1 + (intptr_t)from_a;
	}
}

/* [in, mid) and [mid, end), the end of a batch, into one. */
static void merge(const struct sort_entry *in, const struct sort_entry *mid,
		  const struct sort_entry *end, struct sort_entry *out)
{
	const struct sort_entry *b = mid;

	while (in < mid && b < end)
		*out++ = b->key < in->key ? *b++ : *in++;
	while (in < mid)
		*out++ = *in++;
	while (b < end)
		*out++ = *b++;
}

struct sort_entry *vqb__sort(struct sort_entry *from, struct sort_entry *to, uint32_t n)
{
	struct sort_entry *swap;
	uint32_t i, width;

	for (i = 0; i < n; i += BLOCK)
		sort_few(from + i, n - i < BLOCK ? n - i : BLOCK, to + i);
	for (width = BLOCK; width < n; width *= 2) {
		swap = from;
		from = to;
		to = swap;
		for (i = 0; i < n; i += 2 * width) {
			uint32_t mid = n - i < width ? n : i + width;

			if (n - i >= 2 * width)
				merge_equal(from + i, width, to + i);
			else
				merge(from + i, from + mid, from + n, to + i);
		}
	}
	return to;
}
