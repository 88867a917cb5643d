/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

static double per_second(uint64_t n, const struct figures *f)
{
	return f->ns ? (double)n * 1e9 / (double)f->ns : 0;
}

/* A number with the unit that leaves it between 1 and `step`. */
struct scaled {
	double value;
	const char *unit;
};

static struct scaled scale(double value, double step, const char *const units[])
{
	while (value >= step && units[1]) {
		value /= step;
		units++;
	}
	return (struct scaled){ value, *units };
}

static struct scaled bytes(double n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", NULL };

	return scale(n, 1024, units);
}

static struct scaled nanoseconds(double n)
{
	static const char *const units[] = { "ns", "us", "ms", "s", NULL };

	return scale(n, 1000, units);
}

bool report_written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	complain("stdout: %s", strerror(errno));
	return false;
}

static void print_latency(const struct histogram *h)
{
	static const struct {
		const char *name;
		double share;
	} point[] = { { "p50", 0.5 }, { "p99", 0.99 }, { "p99.9", 0.999 }, { "max", 1 } };
	struct scaled at;
	size_t i;

	printf("  %-17s", "latency");
	for (i = 0; i < sizeof(point) / sizeof(point[0]); i++) {
		at = nanoseconds((double)histogram_quantile(h, point[i].share));
		printf(" %s %.4g %s%s", point[i].name, at.value, at.unit,
		       point[i].share < 1 ? "," : "\n");
	}
}

static void print_head(const struct report *r)
{
	const struct options *o = r->options;
	struct scaled disk = bytes((double)r->disk_bytes);

	printf("%s%s: %" PRIu64 " I/Os in %.3f s; %s disk of %.4g %s, %" PRIu32
	       " queue%s of %" PRIu32 ", iodepth %" PRIu32,
	       r->job->name, r->figures->interrupted ? " (interrupted)" : "",
	       r->figures->tally.bios, (double)r->figures->ns / 1e9, disk_name(o->disk), disk.value,
	       disk.unit, o->queues, o->queues > 1 ? "s" : "", o->ring, o->iodepth);
	if (o->jobs > o->queues)
		printf(", %" PRIu32 " jobs", o->jobs);
	if (o->job != JOB_REPLAY)
		printf(", bs %" PRIu32, o->bs);
	if (o->job == JOB_PATTERN)
		printf(", seed %" PRIu64, o->seed);
	printf("\n");
}

static void print_guest(const struct report *r)
{
	const struct options *o = r->options;
	const struct figures *f = r->figures;

	printf("  %-17s %" PRIu64 ", %.3g descriptors each, %" PRIu64 " indirect\n", "requests",
	       f->requests, f->requests ? (double)f->descriptors / (double)f->requests : 0,
	       f->indirect_requests);
	printf("  %-17s %s%s, %" PRIu64 " I/Os shared another's request, %" PRIu64
	       " were sent again\n",
	       "path", path_name(o->path),
	       o->path != PATH_BIO && !o->guest_merge ? " without merging" : "", f->guest.merged,
	       f->guest.retried);
	if (o->cancel)
		printf("  %-17s %" PRIu64 ", and %" PRIu64 " times too late\n", "cancelled",
		       f->tally.cancelled, f->tally.late);
	if (o->reset)
		printf("  %-17s %" PRIu64 ", with %" PRIu64 " I/Os undecided, and %" PRIu64
		       " not yet sent\n",
		       "resets", f->resets, f->undecided, f->unsent);
	if (o->max_sectors || o->max_segments)
		printf("  %-17s %" PRIu64 " requests with a part of an I/O\n", "cut",
		       f->guest.parts);
	if (o->fua)
		printf("  %-17s %" PRIu64 " durable, with %" PRIu64 " flushes\n", "writes",
		       f->tally.fua, f->guest.flushes);
	if (o->zeroes || o->discard)
		printf("  %-17s %" PRIu64 " of zeroes, %" PRIu64 " discarded\n", "ranges",
		       f->tally.zeroes, f->tally.discards);
	printf("  %-17s %" PRIu64 " (%" PRIu64 " suppressed)\n", "kicks", f->kicks,
	       f->kicks_suppressed);
	printf("  %-17s %" PRIu64 " (%" PRIu64 " suppressed)\n", "interrupts", f->interrupts,
	       f->interrupts_suppressed);
}

bool report_table(const struct report *r)
{
	const struct figures *f = r->figures;
	struct scaled rate = bytes(per_second(f->tally.bytes, f));
	struct scaled checked = bytes((double)f->tally.verified_bytes);

	print_head(r);
	printf("  %-17s %.0f/s, %.4g %s/s\n", "I/Os", per_second(f->tally.bios, f), rate.value,
	       rate.unit);
	print_latency(&f->latency);
	print_guest(r);
	printf("  %-17s %" PRIu64 " (%" PRIu64 " merged into another)\n", "host submissions",
	       f->host_submissions, f->host_merges);
	if (r->job->trims_skipped)
		printf("  %-17s %" PRIu64 "\n", "trims skipped", r->job->trims_skipped);
	if (f->tally.verified_bytes || r->options->verify)
		printf("  %-17s %.4g %s, %" PRIu64 " mismatches\n", "checked", checked.value,
		       checked.unit, f->tally.mismatches);
	if (r->options->inject)
		printf("  %-17s %" PRIu64 "\n", "injected", f->injected);
	printf("  %-17s %" PRIu64 "\n", "errors", f->tally.errors);
	return report_written();
}

static json_t *json_count(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *json_latency(const struct histogram *h)
{
	json_t *object = json_object();

	json_object_set_new(object, "p50", json_count(histogram_quantile(h, 0.5)));
	json_object_set_new(object, "p99", json_count(histogram_quantile(h, 0.99)));
	json_object_set_new(object, "p999", json_count(histogram_quantile(h, 0.999)));
	json_object_set_new(object, "max", json_count(h->max));
	return object;
}

static void set_counts(json_t *object, const struct report *r)
{
	const struct figures *f = r->figures;
	const struct {
		const char *name;
		uint64_t value;
	} count[] = {
		{ "bios", f->tally.bios },
		{ "requests", f->requests },
		{ "descriptors", f->descriptors },
		{ "indirect_requests", f->indirect_requests },
		{ "kicks", f->kicks },
		{ "kicks_suppressed", f->kicks_suppressed },
		{ "interrupts", f->interrupts },
		{ "interrupts_suppressed", f->interrupts_suppressed },
		{ "guest_bios", f->guest.bios },
		{ "guest_requests", f->guest.requests },
		{ "guest_merges", f->guest.merged },
		{ "guest_retried", f->guest.retried },
		{ "guest_full", f->guest.full },
		{ "guest_parts", f->guest.parts },
		{ "guest_flushes", f->guest.flushes },
		{ "fua", f->tally.fua },
		{ "zeroes", f->tally.zeroes },
		{ "discards", f->tally.discards },
		{ "cancelled", f->tally.cancelled },
		{ "cancelled_late", f->tally.late },
		{ "resets", f->resets },
		{ "undecided", f->undecided },
		{ "unsent", f->unsent },
		{ "host_submissions", f->host_submissions },
		{ "host_merges", f->host_merges },
		{ "injected", f->injected },
		{ "errors", f->tally.errors },
		{ "mismatches", f->tally.mismatches },
		{ "verified_bytes", f->tally.verified_bytes },
		{ "trims_skipped", r->job->trims_skipped },
		{ "bytes", f->tally.bytes },
		{ "seed", r->options->seed },
		{ "bs", r->options->job == JOB_REPLAY ? 0 : r->options->bs },
		{ "iodepth", r->options->iodepth },
		{ "queues", r->options->queues },
		{ "jobs", r->options->jobs },
		{ "ring", r->options->ring },
		{ "max_sectors", r->options->max_sectors },
		{ "max_segments", r->options->max_segments },
	};
	size_t i;

	for (i = 0; i < sizeof(count) / sizeof(count[0]); i++)
		json_object_set_new(object, count[i].name, json_count(count[i].value));
}

bool report_json(const struct report *r)
{
	const struct figures *f = r->figures;
	json_t *object = json_object();
	bool good;

	json_object_set_new(object, "job", json_string(r->job->name));
	json_object_set_new(object, "iops", json_real(per_second(f->tally.bios, f)));
	json_object_set_new(object, "bytes_per_second", json_real(per_second(f->tally.bytes, f)));
	json_object_set_new(object, "latency_ns", json_latency(&f->latency));
	set_counts(object, r);
	json_object_set_new(object, "backend", json_string(disk_name(r->options->disk)));
	json_object_set_new(object, "indirect", json_string(indirect_name(r->options->indirect)));
	json_object_set_new(object, "event_idx", json_boolean(r->options->event_idx));
	json_object_set_new(object, "poll", json_boolean(r->options->poll));
	json_object_set_new(object, "direct", json_boolean(r->options->direct));
	json_object_set_new(object, "path", json_string(path_name(r->options->path)));
	json_object_set_new(object, "guest_merge", json_boolean(r->options->guest_merge));
	json_object_set_new(object, "host_merge", json_boolean(r->options->host_merge));
	json_object_set_new(object, "plug", json_boolean(r->options->plug));
	json_object_set_new(object, "inject", json_real((double)r->options->inject / 1e6));
	json_object_set_new(object, "cancel", json_real((double)r->options->cancel / 1e6));
	json_object_set_new(object, "reset", json_real((double)r->options->reset / 1e6));
	json_object_set_new(object, "fua_rate", json_real((double)r->options->fua / 1e6));
	json_object_set_new(object, "zeroes_rate", json_real((double)r->options->zeroes / 1e6));
	json_object_set_new(object, "discard_rate", json_real((double)r->options->discard / 1e6));
	json_object_set_new(object, "seconds", json_real((double)f->ns / 1e9));
	json_object_set_new(object, "interrupted", json_boolean(f->interrupted));
	good = !json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(object);
	putchar('\n');
	if (!good) {
		complain("no JSON to be had");
		return false;
	}
	return report_written();
}
