/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracking.c: the tracking area: begun, gone on from, and kept up to date. See tracking.h.
 *
 * What a predecessor left is not believed: every head is compared with the ring's size before it
 * is used, and nothing is followed further than the ring is long.
 */
#include "tracking.h"

#define TRACKING_VERSION 1u

/* A counter from here on was never reached by counting. */
#define COUNTER_END (UINT64_C(1) << 63)
/* Nor was one from here on, but from below here nobody counts up to the end. */
#define COUNTER_FAR (COUNTER_END / 2)

bool vqb__tracking_usable(const struct vqb_tracking *config, uint32_t max_size)
{
	if (!config->host)
		return !config->bytes;
	return !((uintptr_t)config->host % sizeof(uint64_t)) &&
	       config->bytes >= sizeof(struct tracking_area) + max_size * sizeof(struct tracked);
}

bool vqb__tracking_is_live(const struct tracking *t)
{
	return t->area && vqb_port_load16(&t->area->version);
}

/* The version comes last: until it is there, whoever comes after begins anew. */
void vqb__tracking_clear(struct tracking *t, uint32_t size, uint16_t used)
{
	struct tracking_area *a = t->area;

	tracking_forget(t);
	vqb_port_store64(&a->features, 0);
	vqb_port_store16_release(&a->desc_num, (uint16_t)size);
	vqb_port_store16_release(&a->last_batch_head, 0);
	vqb_port_store16_release(&a->used_idx, used);
	for (uint32_t head = 0; head < size; head++)
		track(t, head, 0);
	t->counter = 0;
	t->last = 0;
	vqb_port_store16_release(&a->version, TRACKING_VERSION);
}

void vqb__tracking_link(struct tracking *t, struct positions p)
{
	uint16_t before = t->last;

	for (; p.from != p.to; p.from++) {
		uint16_t head = p.head[p.from & p.mask];

		vqb_port_store16_release(&t->area->entry[head].next, before);
		before = head;
	}
	vqb_port_store16_release(&t->area->last_batch_head, before);
	t->last = before;
}

void vqb__tracking_settle(struct tracking *t, struct positions p)
{
	for (; p.from != p.to; p.from++)
		track(t, p.head[p.from & p.mask], 0);
	vqb_port_store16_release(&t->area->used_idx, (uint16_t)p.to);
}

/* ---- going on from what a predecessor left ---- */

/* Bits 0 to 7 are the format's byte; what is in the padding is nobody's business. */
static uint32_t inflight(const struct tracking *t, uint32_t head)
{
	return order16(vqb_port_load16(&t->area->entry[head].inflight), MODE_PLAIN) & 0xff;
}

static bool header_valid(const struct tracking_area *a, uint32_t size)
{
	return !vqb_port_load64(&a->features) && vqb_port_load16(&a->version) == TRACKING_VERSION &&
	       vqb_port_load16(&a->desc_num) == size && vqb_port_load16(&a->last_batch_head) < size;
}

/*
 * Are the `n` heads of the last batch inside the ring, and all different, so not more than it is
 * long either? `seen` is scratch.
 */
static bool batch_valid(const struct tracking *t, uint32_t size, uint32_t n, uint16_t *seen)
{
	uint32_t head = vqb_port_load16(&t->area->last_batch_head);

	memset(seen, 0, size * sizeof(*seen));
	while (n--) {
		if (head >= size || seen[head])
			return false;
		seen[head] = 1;
		head = vqb_port_load16(&t->area->entry[head].next);
	}
	return true;
}

/* The last batch is in the used ring, so its chains are the driver's again. */
static void mend_batch(struct tracking *t, uint32_t size, uint16_t used, const uint16_t *in_batch)
{
	for (uint32_t head = 0; head < size; head++)
		if (in_batch[head])
			track(t, head, 0);
	vqb_port_store16_release(&t->area->used_idx, used);
}

/* A list of heads that begins at some position of a round array, to be sorted by counter. */
struct list {
	const struct tracking_area *area;
	uint16_t *head;
	uint32_t mask, from;
};

static uint16_t *list_at(const struct list *l, uint32_t i)
{
	return &l->head[(l->from + i) & l->mask];
}

static uint64_t list_key(const struct list *l, uint32_t i)
{
	return vqb_port_load64(&l->area->entry[*list_at(l, i)].counter);
}

/* Moves entry `i` forward, in steps of `gap`, to where it belongs. */
static void list_insert(const struct list *l, uint32_t i, uint32_t gap)
{
	for (; i >= gap && list_key(l, i - gap) > list_key(l, i); i -= gap) {
		uint16_t head = *list_at(l, i);

		*list_at(l, i) = *list_at(l, i - gap);
		*list_at(l, i - gap) = head;
	}
}

/* Shell sort: little code, in place, and quick enough whatever the order was. */
static void list_sort(const struct list *l, uint32_t n)
{
	for (uint32_t gap = n; gap > 1;) {
		gap = gap > 2 ? gap * 5 / 11 : 1;
		for (uint32_t i = gap; i < n; i++)
			list_insert(l, i, gap);
	}
}

/*
 * Counts anew from 0 where counters, though believed, are so high that this process might write one
 * that the next would refuse. From the oldest on: wherever this stops, the order is the same.
 */
static void count_anew(struct tracking *t, const struct list *l, uint32_t n)
{
	if (t->counter <= COUNTER_FAR)
		return;
	for (t->counter = 0; t->counter < n; t->counter++) {
		uint32_t head = *list_at(l, (uint32_t)t->counter);

		vqb_port_store64(&t->area->entry[head].counter, t->counter);
	}
}

/* Lists the heads in flight by counter. False: an entry is none, or two have the same counter. */
static bool list_in_flight(struct tracking *t, const struct list *l, uint32_t size, uint32_t *count)
{
	uint32_t n = 0;

	for (uint32_t head = 0; head < size; head++) {
		uint32_t flag = inflight(t, head);

		if (!flag)
			continue;
		*list_at(l, n++) = (uint16_t)head;
		if (flag > 1 || list_key(l, n - 1) >= COUNTER_END)
			return false;
	}
	list_sort(l, n);
	t->counter = n ? list_key(l, n - 1) + 1 : 0;
	*count = n;
	for (; n > 1; n--)
		if (list_key(l, n - 2) >= list_key(l, n - 1))
			return false;
	count_anew(t, l, *count);
	return true;
}

int32_t vqb__tracking_load(struct tracking *t, uint32_t size, uint16_t used, uint16_t *order,
			   uint32_t *count)
{
	struct list l = { .area = t->area, .head = order, .mask = size - 1, .from = used };
	uint32_t batch;

	if (!header_valid(t->area, size))
		return VQB_E_INVALID;
	batch = (uint16_t)(used - vqb_port_load16(&t->area->used_idx));
	if (!batch_valid(t, size, batch, order))
		return VQB_E_INVALID;
	if (batch)
		mend_batch(t, size, used, order);
	t->last = vqb_port_load16(&t->area->last_batch_head);
	return list_in_flight(t, &l, size, count) ? VQB_OK : VQB_E_INVALID;
}
