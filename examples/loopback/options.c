/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two steps: each option alone is read and checked, then all of them together (option_check.c).
 */
#include "options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vqblk/vqblk.h>

#include "option.h"
#include "random.h"
#include "say.h"

static const char help[] =
	"usage: " PROGRAM " JOB [OPTION...]\n"
	"\n"
	"Moves data between a guest driver and a host device of this process, through split\n"
	"virtqueues, to and from a disk.\n"
	"\n"
	"Jobs (one of them):\n"
	"  --copy FILE         write FILE over the image (needs --image) from its first sector,\n"
	"                      flush, read all of it back and compare\n"
	"  --rw PATTERN        read, write, randread, randwrite or randrw\n"
	"  --read_iolog FILE   replay an I/O log that fio wrote (versions 2 and 3)\n"
	"\n"
	"Of --rw:\n"
	"  --bs SIZE           bytes of each I/O, also of --copy (4k)\n"
	"  --requests N        I/Os in all, over all queues\n"
	"  --runtime SECONDS   go on for that long; with neither: one pass over the disk\n"
	"  --seed N            the same I/Os each time (a new seed each time)\n"
	"  --verify            stamp each block with place and version, check whatever is read, and\n"
	"                      in the end read back what was written; also of --read_iolog\n"
	"  --zeroes RATE       as of --inject: that share of what would be writes is writes of zeroes,\n"
	"                      which have no data,\n"
	"  --discard RATE      and that one is discards, after which a block may have what it had, or\n"
	"                      zeroes\n"
	"\n"
	"The disk:\n"
	"  --image IMG         a file that exists; its whole 512-byte sectors are the disk\n"
	"  --backend KIND      memory or null; with --image: file, uring or threads (file with\n"
	"                      --image, else memory)\n"
	"  --direct            of uring: past the page cache\n"
	"  --size SIZE         of the disk (64m); with --image, keep to the first SIZE bytes of it\n"
	"  --readonly          offer a read-only disk\n"
	"  --host-merge on|off join requests that are neighbours on the disk (off)\n"
	"  --plug on|off       submit in batches (on), which is something to uring and threads\n"
	"  --inject RATE       0, or 0.000001 to 1: of all submissions to the disk that share fails,\n"
	"                      that share ends early, is late, or is told to come again later; by\n"
	"                      --seed. What fails for it counts as an error, and nothing else may\n"
	"\n"
	"The guest:\n"
	"  --path PATH         bio: each I/O is a request of its own; request: those that wait at the\n"
	"                      same time share requests, be it because they were submitted together;\n"
	"                      merge-when-full: only those for which there was no room\n"
	"                      (merge-when-full)\n"
	"  --guest-merge on|off\n"
	"                      off: no I/O ever shares a request, whatever the path (on, but off\n"
	"                      with --path bio, where there is no on)\n"
	"  --jobs N            threads that submit, at least one for each queue (as many as queues);\n"
	"                      of several that share a queue none owns it: they put lists of I/Os in\n"
	"                      front of a thread that does\n"
	"  --iodepth N         I/Os that each of them keeps in flight (1)\n"
	"  --cancel RATE       as of --inject: that share of all I/Os is to be cancelled soon after it\n"
	"                      was submitted. What is still waiting is, and never reaches the disk;\n"
	"                      for the rest it is too late, and it completes as ever\n"
	"  --reset RATE        after that share of all I/Os their queue is reset at both ends, in the\n"
	"                      middle of whatever is going on, and what is not over is sent again\n"
	"  --fua RATE          that share of all writes, and of zeroes, is durable when it is done: a\n"
	"                      flush follows each\n"
	"  --max-sectors N     no request is longer than N sectors of 512 bytes; what is, is cut\n"
	"  --max-segments N    no request has more than N segments of data, each of at most 4096 bytes\n"
	"\n"
	"The queues:\n"
	"  --queues N          each with a thread at the guest's end and one at the host's (1)\n"
	"  --ring N            descriptors of each ring, a power of two (256)\n"
	"  --indirect POLICY   never, always, adaptive, threshold (from 8 segments on) or decay\n"
	"                      (always)\n"
	"  --event-idx on|off  (on)\n"
	"  --poll              no notifications: both sides look for work and yield\n"
	"\n"
	"  --json              print one JSON object on one line, and nothing else\n"
	"  --help, --version\n"
	"\n"
	"SIZE takes k, m and g. Exit status 0: nothing failed, but by --inject, nothing differed, and\n"
	"every I/O came back once.\n";

static const struct option table[] = {
	{ "copy", required_argument, NULL, OPT_COPY },
	{ "rw", required_argument, NULL, OPT_RW },
	{ "read_iolog", required_argument, NULL, OPT_IOLOG },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "requests", required_argument, NULL, OPT_REQUESTS },
	{ "runtime", required_argument, NULL, OPT_RUNTIME },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "fua", required_argument, NULL, OPT_FUA },
	{ "zeroes", required_argument, NULL, OPT_ZEROES },
	{ "discard", required_argument, NULL, OPT_DISCARD },
	{ "image", required_argument, NULL, OPT_IMAGE },
	{ "backend", required_argument, NULL, OPT_BACKEND },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "readonly", no_argument, NULL, OPT_READONLY },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "host-merge", required_argument, NULL, OPT_HOST_MERGE },
	{ "plug", required_argument, NULL, OPT_PLUG },
	{ "inject", required_argument, NULL, OPT_INJECT },
	{ "path", required_argument, NULL, OPT_PATH },
	{ "guest-merge", required_argument, NULL, OPT_GUEST_MERGE },
	{ "jobs", required_argument, NULL, OPT_JOBS },
	{ "cancel", required_argument, NULL, OPT_CANCEL },
	{ "reset", required_argument, NULL, OPT_RESET },
	{ "max-sectors", required_argument, NULL, OPT_MAX_SECTORS },
	{ "max-segments", required_argument, NULL, OPT_MAX_SEGMENTS },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "iodepth", required_argument, NULL, OPT_IODEPTH },
	{ "ring", required_argument, NULL, OPT_RING },
	{ "indirect", required_argument, NULL, OPT_INDIRECT },
	{ "event-idx", required_argument, NULL, OPT_EVENT_IDX },
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char *const patterns[] = { "read", "write", "randread", "randwrite", "randrw", NULL };
/* In the order of enum disk_kind. */
static const char *const disks[] = { "memory", "file", "uring", "threads", "null", NULL };
/* In the order of enum loopback_path. */
static const char *const paths[] = { "bio", "request", "merge-when-full", NULL };
/* In the order of enum loopback_indirect. */
static const char *const policies[] = { "never", "always", "adaptive", "threshold", "decay", NULL };
static const char *const switches[] = { "off", "on", NULL };

bool pattern_writes(enum pattern pattern)
{
	return pattern != PATTERN_READ && pattern != PATTERN_RANDREAD;
}

const char *indirect_name(uint32_t indirect)
{
	return policies[indirect];
}

const char *path_name(enum loopback_path path)
{
	return paths[path];
}

const char *disk_name(enum disk_kind kind)
{
	return disks[kind];
}

/* For the readers of one option each: all answer false after a complaint. */

static bool read_bs(const char *text, uint32_t *bs)
{
	uint64_t bytes;

	if (!option_sectors("bs", text, BS_MAX, &bytes))
		return false;
	*bs = (uint32_t)bytes;
	return true;
}

static bool read_ring(const char *text, uint32_t *ring)
{
	if (!option_count32("ring", text, VQB_RING_MAX, ring))
		return false;
	if (!(*ring & (*ring - 1)))
		return true;
	complain("--ring %s: not a power of two", text);
	return false;
}

static bool read_job(struct options *o, enum job_kind job, const char *argument)
{
	if (o->job != JOB_NONE) {
		complain("only one of --copy, --rw and --read_iolog can be done at a time");
		return false;
	}
	o->job = job;
	if (job == JOB_PATTERN)
		o->rw = argument;
	else
		o->file = argument;
	return true;
}

static bool read_pattern(struct options *o, const char *text)
{
	uint32_t word;

	if (!read_job(o, JOB_PATTERN, text) || !option_word("rw", text, patterns, &word))
		return false;
	o->pattern = (enum pattern)word;
	return true;
}

static bool read_backend(struct options *o, const char *text)
{
	uint32_t word;

	if (!option_word("backend", text, disks, &word))
		return false;
	o->disk = (enum disk_kind)word;
	return true;
}

static bool read_path(const char *text, enum loopback_path *path)
{
	uint32_t word;

	if (!option_word("path", text, paths, &word))
		return false;
	*path = (enum loopback_path)word;
	return true;
}

/* Options of the disk. */
static bool read_disk_option(struct options *o, int id, const char *text)
{
	switch (id) {
	case OPT_IMAGE:
		o->image = text;
		return true;
	case OPT_BACKEND:
		return read_backend(o, text);
	case OPT_SIZE:
		return option_sectors("size", text, INT64_MAX, &o->size);
	case OPT_READONLY:
		o->readonly = true;
		return true;
	case OPT_DIRECT:
		o->direct = true;
		return true;
	case OPT_HOST_MERGE:
		return option_switch("host-merge", text, switches, &o->host_merge);
	case OPT_PLUG:
		return option_switch("plug", text, switches, &o->plug);
	case OPT_INJECT:
		return option_rate("inject", text, &o->inject);
	default:
		return false;
	}
}

/* Options of the guest, or of the disk. */
static bool read_guest_option(struct options *o, int id, const char *text)
{
	switch (id) {
	case OPT_PATH:
		return read_path(text, &o->path);
	case OPT_GUEST_MERGE:
		return option_switch("guest-merge", text, switches, &o->guest_merge);
	case OPT_JOBS:
		return option_count32("jobs", text, JOBS_MAX, &o->jobs);
	case OPT_IODEPTH:
		return option_count32("iodepth", text, VQB_RING_MAX, &o->iodepth);
	case OPT_CANCEL:
		return option_rate("cancel", text, &o->cancel);
	case OPT_RESET:
		return option_rate("reset", text, &o->reset);
	case OPT_FUA:
		return option_rate("fua", text, &o->fua);
	case OPT_MAX_SECTORS:
		return option_count32("max-sectors", text, VQB_MAX_SECTORS, &o->max_sectors);
	case OPT_MAX_SEGMENTS:
		return option_count32("max-segments", text, VQB_RING_MAX - 2, &o->max_segments);
	default:
		return read_disk_option(o, id, text);
	}
}

/* One option. */
static bool read_option(struct options *o, int id, const char *text)
{
	switch (id) {
	case OPT_COPY:
		return read_job(o, JOB_COPY, text);
	case OPT_RW:
		return read_pattern(o, text);
	case OPT_IOLOG:
		return read_job(o, JOB_REPLAY, text);
	case OPT_BS:
		return read_bs(text, &o->bs);
	case OPT_REQUESTS:
		return option_count("requests", text, UINT64_MAX / 2, &o->requests);
	case OPT_RUNTIME:
		if (parse_seconds(text, &o->runtime_ns))
			return true;
		complain("--runtime %s: not a number of seconds above 0", text);
		return false;
	case OPT_SEED:
		return option_seed(text, &o->seed);
	case OPT_ZEROES:
		return option_rate("zeroes", text, &o->zeroes);
	case OPT_DISCARD:
		return option_rate("discard", text, &o->discard);
	case OPT_QUEUES:
		return option_count32("queues", text, 256, &o->queues);
	case OPT_RING:
		return read_ring(text, &o->ring);
	case OPT_INDIRECT:
		return option_word("indirect", text, policies, &o->indirect);
	case OPT_EVENT_IDX:
		return option_switch("event-idx", text, switches, &o->event_idx);
	case OPT_VERIFY:
		o->verify = true;
		return true;
	case OPT_POLL:
		o->poll = true;
		return true;
	case OPT_JSON:
		o->json = true;
		return true;
	default:
		return read_guest_option(o, id, text);
	}
}

/* getopt_long is told to be quiet, so that all complaints look alike. */
static void complain_of_option(int id, const char *text)
{
	if (id == ':')
		complain("%s: wants a value (see --help)", text);
	else if (optopt > OPT_VERSION) /* a letter; of several, `text` may be the word before */
		complain("-%c: no such option (see --help)", optopt);
	else
		complain("%s: no such option, or it takes no value (see --help)", text);
}

/* Short enough to be typed again. */
static uint64_t new_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return random_mix((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec +
			  ((uint64_t)getpid() << 32)) >>
	       32;
}

enum options_answer options_parse(struct options *options, int argc, char **argv)
{
	uint64_t given = 0;
	uint32_t version;
	int id;

	*options = (struct options){ .bs = 4096,
				     .iodepth = 1,
				     .queues = 1,
				     .ring = 256,
				     .indirect = INDIRECT_ALWAYS,
				     .event_idx = true,
				     .unit = VQB_SECTOR_BYTES,
				     .plug = true,
				     .path = PATH_MERGE_WHEN_FULL,
				     .guest_merge = true,
				     .seed = new_seed() };
	optind = 0; /* afresh, whoever asked before */
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		if (id == OPT_HELP || id == 'h') {
			fputs(help, stdout);
			return OPTIONS_DONE;
		}
		if (id == OPT_VERSION) {
			version = vqb_version();
			printf(PROGRAM " %" PRIu32 ".%" PRIu32 ".%" PRIu32 "\n", version >> 16,
			       version >> 8 & 0xff, version & 0xff);
			return OPTIONS_DONE;
		}
		if (id == '?' || id == ':') {
			complain_of_option(id, argv[optind - 1]);
			return OPTIONS_REFUSED;
		}
		if (!read_option(options, id, optarg))
			return OPTIONS_REFUSED;
		given |= OPTION_BIT(id);
	}
	if (optind < argc) {
		complain("%s: no option (see --help)", argv[optind]);
		return OPTIONS_REFUSED;
	}
	return option_check(options, given) ? OPTIONS_GO : OPTIONS_REFUSED;
}
