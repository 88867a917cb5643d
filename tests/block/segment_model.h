/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment_model.h: what a mapper has to come to, found the slow way.
 *
 * A list of vectors is laid out as units, each of them so many bytes at an address; vectors and
 * limits are multiples of a unit. For every unit of a request the fewest segments that reach it are
 * sought among all ways to get there. Nothing is assumed about which way is best.
 */
#ifndef TESTS_SEGMENT_MODEL_H
#define TESTS_SEGMENT_MODEL_H

#include <stdbool.h>
#include <string.h>

#include <vqblk/segment.h>

enum { MODEL_UNITS = 16384, MODEL_NEVER = 1 << 30 };

struct model_list {
	uint64_t unit; /* bytes */
	uint32_t units;
	bool wrong; /* a vector that is wrong follows the last unit */
	uint64_t addr[MODEL_UNITS];
	uint32_t vector[MODEL_UNITS]; /* which one a unit is of */
};

struct model_answer {
	int32_t status;
	uint32_t segments, units;
};

/* Lays out vectors up to the first one that is wrong. */
static inline void model_lay_out(struct model_list *list, const struct vqb_segment *vec,
				 uint32_t nvec, uint64_t unit)
{
	list->unit = unit;
	list->units = 0;
	list->wrong = false;
	for (uint32_t i = 0; i < nvec && !list->wrong; i++) {
		list->wrong =
			!vec[i].len || vec[i].zero || vec[i].addr + (vec[i].len - 1) < vec[i].addr;
		for (uint64_t at = 0; !list->wrong && at < vec[i].len; at += unit) {
			list->addr[list->units] = vec[i].addr + at;
			list->vector[list->units++] = i;
		}
	}
}

/* May unit k lie in the same segment as the one before it? */
static inline bool model_touches(const struct vqb_limits *l, const struct model_list *list,
				 uint32_t k)
{
	if (l->flags & VQB_LIMITS_NO_CLUSTER && list->vector[k] != list->vector[k - 1])
		return false;
	return list->addr[k] && list->addr[k] == list->addr[k - 1] + list->unit;
}

/* May one segment end, and the next begin, before unit k? */
static inline bool model_edge(const struct vqb_limits *l, const struct model_list *list, uint32_t k)
{
	uint64_t size = l->virt_boundary + 1;

	return !l->virt_boundary ||
	       (!((list->addr[k - 1] + list->unit) % size) && !(list->addr[k] % size));
}

/* A request has to end before unit k, whatever its other limits. */
static inline bool model_gap(const struct vqb_limits *l, const struct model_list *list, uint32_t k)
{
	return !model_touches(l, list, k) && !model_edge(l, list, k);
}

/* May units `from` to `to` - 1, which all touch, be one segment? */
static inline bool model_segment(const struct vqb_limits *l, const struct model_list *list,
				 uint32_t from, uint32_t to)
{
	uint64_t first = list->addr[from], last = list->addr[to - 1] + (list->unit - 1);

	if ((to - from) * list->unit > l->max_segment_bytes)
		return false;
	return l->seg_boundary == UINT64_MAX ||
	       first / (l->seg_boundary + 1) == last / (l->seg_boundary + 1);
}

/* fewest[k]: the segments of units `from` to k - 1. */
static inline void model_fewest(const struct vqb_limits *l, const struct model_list *list,
				uint32_t from, uint32_t to, uint32_t *fewest)
{
	fewest[from] = 0;
	for (uint32_t k = from + 1; k <= to; k++) {
		fewest[k] = MODEL_NEVER;
		for (uint32_t s = k; s-- > from;) {
			bool inner = s > from;

			if (s + 1 < k && !model_touches(l, list, s + 1))
				break;
			if (!model_segment(l, list, s, k))
				break; /* nor is any longer one */
			if (fewest[s] + 1 < fewest[k] && !(inner && !model_edge(l, list, s)))
				fewest[k] = fewest[s] + 1;
		}
	}
}

static inline uint64_t model_chunk_left(const struct vqb_limits *l, uint64_t sector)
{
	return l->chunk_sectors ? (l->chunk_sectors - sector % l->chunk_sectors) * 512 : UINT64_MAX;
}

/* The next request from unit `from`, which lies at `sector`, with room for `room` segments. */
static inline struct model_answer model_next(const struct vqb_limits *l,
					     const struct model_list *list, uint32_t from,
					     uint64_t sector, uint32_t room)
{
	static uint32_t fewest[MODEL_UNITS + 1];
	struct model_answer answer = { VQB_OK, 0, 0 };
	uint64_t chunk = model_chunk_left(l, sector), most = (uint64_t)l->max_sectors * 512, bytes;
	uint32_t cap = room < l->max_segments ? room : l->max_segments, to = list->units, end = 0;

	while (to > from && ((to - from) * list->unit > most || (to - from) * list->unit > chunk))
		to--;
	model_fewest(l, list, from, to, fewest);
	for (uint32_t k = from; k <= to; k++)
		if (fewest[k] <= cap)
			end = k;
	if (!cap || (end == list->units && list->wrong)) {
		answer.status = cap ? VQB_E_INVALID : VQB_E_TOOBIG;
		return answer;
	}
	bytes = (end - from) * list->unit;
	if (bytes % l->block_size ||
	    !(end == list->units || bytes == chunk || (end > from && model_gap(l, list, end)))) {
		uint64_t good;

		if (end == list->units)
			answer.status = VQB_E_INVALID;
		while (bytes % l->block_size)
			bytes -= list->unit;
		for (good = bytes; good; good -= list->unit)
			if (!((sector * 512 + good - l->split_offset) % l->split_align))
				break;
		bytes = good ? good : bytes;
	}
	if (!bytes && !answer.status)
		answer.status = VQB_E_TOOBIG;
	if (answer.status)
		return answer;
	answer.units = (uint32_t)(bytes / list->unit);
	answer.segments = fewest[from + answer.units];
	return answer;
}

#endif
