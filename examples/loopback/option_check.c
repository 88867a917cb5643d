/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All options together. An option that would have no effect is refused rather than ignored.
 */
#include <inttypes.h>
#include <vqblk/vqblk.h>

#include "option.h"
#include "say.h"

/* Options that mean something for some jobs only; `given` has a bit for each that was there. */
static bool check_job(const struct options *o, uint64_t given)
{
	static const struct {
		const char *name;
		enum option_id id;
		uint32_t jobs;
	} rule[] = {
		{ "bs", OPT_BS, 1u << JOB_COPY | 1u << JOB_PATTERN },
		{ "requests", OPT_REQUESTS, 1u << JOB_PATTERN },
		{ "runtime", OPT_RUNTIME, 1u << JOB_PATTERN },
		{ "size", OPT_SIZE, 1u << JOB_PATTERN | 1u << JOB_REPLAY },
		{ "zeroes", OPT_ZEROES, 1u << JOB_PATTERN },
		{ "discard", OPT_DISCARD, 1u << JOB_PATTERN },
	};
	static const char *const jobs[] = { "", "--copy", "--rw", "--read_iolog" };
	uint32_t i;

	if (o->job == JOB_NONE) {
		complain("what is to be done? --copy, --rw or --read_iolog (see --help)");
		return false;
	}
	for (i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		if (given & OPTION_BIT(rule[i].id) && !(rule[i].jobs & 1u << o->job)) {
			complain("--%s means nothing to %s", rule[i].name, jobs[o->job]);
			return false;
		}
	}
	return true;
}

static const char *wrong_disk(const struct options *o)
{
	if (o->job == JOB_COPY && !o->image)
		return "--copy needs --image";
	if (disk_is_image(o->disk) && !o->image)
		return "--backend file, uring or threads needs --image";
	if (!disk_is_image(o->disk) && o->image)
		return "--image goes with --backend file, uring or threads only";
	if (o->direct && o->disk != DISK_URING)
		return "--direct goes with --backend uring only";
	if (o->disk == DISK_NULL && o->verify)
		return "--verify needs a disk that keeps what is written, and --backend null does not";
	if (o->readonly &&
	    (o->job == JOB_COPY || (o->job == JOB_PATTERN && pattern_writes(o->pattern))))
		return "the job writes, and the disk is to be read-only";
	return NULL;
}

/* What the guest does where it was not said, and what it can't do. */
static bool check_guest(struct options *o, uint64_t given)
{
	if (!(given & OPTION_BIT(OPT_JOBS)))
		o->jobs = o->queues;
	if (o->jobs < o->queues) {
		complain("--jobs %" PRIu32 ": fewer than the %" PRIu32
			 " queues, and each has at least one",
			 o->jobs, o->queues);
		return false;
	}
	if (o->path != PATH_BIO)
		return true;
	if (given & OPTION_BIT(OPT_GUEST_MERGE) && o->guest_merge) {
		complain("--guest-merge on: with --path bio nothing is ever merged");
		return false;
	}
	o->guest_merge = false;
	return true;
}

/* What there would be nothing of. */
static const char *wrong_writes(const struct options *o)
{
	bool none = o->readonly || (o->job == JOB_PATTERN && !pattern_writes(o->pattern));

	if ((o->fua || o->zeroes || o->discard) && none)
		return "--fua, --zeroes and --discard are shares of writes, and there are none";
	if (o->zeroes + o->discard > 1000000)
		return "--zeroes and --discard: more than all writes together";
	return NULL;
}

static bool check_ring(const struct options *o)
{
	uint32_t most = vqb_blk_ring_segments(o->ring);

	if (!most) {
		complain(
			"--ring %" PRIu32
			": a block request has 3 descriptors, and none may be longer than the ring",
			o->ring);
		return false;
	}
	if (o->max_segments > most) {
		complain("--max-segments %" PRIu32 ": in a ring of %" PRIu32
			 " a request has no more than %" PRIu32,
			 o->max_segments, o->ring, most);
		return false;
	}
	return true;
}

bool option_check(struct options *o, uint64_t given)
{
	const char *wrong;

	if (!check_job(o, given) || !check_guest(o, given))
		return false;
	if (!(given & OPTION_BIT(OPT_BACKEND)))
		o->disk = o->image ? DISK_FILE : DISK_MEMORY;
	wrong = wrong_disk(o);
	if (!wrong)
		wrong = wrong_writes(o);
	if (wrong) {
		complain("%s", wrong);
		return false;
	}
	return check_ring(o);
}
