/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loopback-json: is what comes on stdin one line with one JSON object, with all the fields that
 * were promised? And for each three arguments FIELD OP NUMBER (OP: eq ne ge le), is it so?
 * OP is prints the text of FIELD that it has to equal. Says what isn't, and exits 1.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const numbers[] = {
	"iops",          "bytes_per_second",
	"bios",          "requests",
	"descriptors",   "indirect_requests",
	"kicks",         "kicks_suppressed",
	"interrupts",    "interrupts_suppressed",
	"guest_bios",    "guest_requests",
	"guest_merges",  "guest_retried",
	"cancelled",     "cancelled_late",
	"resets",        "undecided",
	"guest_full",    "unsent",
	"guest_parts",   "guest_flushes",
	"fua",           "zeroes",
	"discards",      "max_sectors",
	"max_segments",  "fua_rate",
	"zeroes_rate",   "discard_rate",
	"host_merges",   "host_submissions",
	"mismatches",    "verified_bytes",
	"trims_skipped", "injected",
	"errors",
};
static const char *const quantiles[] = { "p50", "p99", "p999", "max" };

static char text[1 << 16];

static int complain(const char *what, const char *about)
{
	fprintf(stderr, "%s %s in: %s\n", what, about, text);
	return 1;
}

static int check_fields(const json_t *object)
{
	const json_t *latency = json_object_get(object, "latency_ns"), *value;
	double before = 0;
	size_t i;

	if (!json_is_string(json_object_get(object, "job")))
		return complain("no text", "job");
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!json_is_number(json_object_get(object, numbers[i])))
			return complain("no number", numbers[i]);
	for (i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		value = json_object_get(latency, quantiles[i]);
		if (!json_is_number(value) || json_number_value(value) < before)
			return complain("no latency, or one too small,", quantiles[i]);
		before = json_number_value(value);
	}
	return 0;
}

static bool holds(double value, const char *op, double other)
{
	if (!strcmp(op, "eq"))
		return value >= other && value <= other;
	if (!strcmp(op, "ne"))
		return value < other || value > other;
	if (!strcmp(op, "ge"))
		return value >= other;
	return value <= other;
}

static int check_claim(const json_t *object, char *const claim[3])
{
	const json_t *value = json_object_get(object, claim[0]);
	bool good;

	if (!strcmp(claim[1], "is"))
		good = json_is_string(value) && !strcmp(json_string_value(value), claim[2]);
	else if (json_is_boolean(value))
		good = holds(json_is_true(value), claim[1], atof(claim[2]));
	else
		good = json_is_number(value) &&
		       holds(json_number_value(value), claim[1], atof(claim[2]));
	if (good)
		return 0;
	fprintf(stderr, "not so: %s %s %s in: %s\n", claim[0], claim[1], claim[2], text);
	return 1;
}

int main(int argc, char **argv)
{
	size_t n = fread(text, 1, sizeof(text) - 1, stdin);
	json_error_t error;
	json_t *object;
	int i, wrong;

	if (!n || strchr(text, '\n') != text + n - 1)
		return complain("not one line", "at all");
	object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(object))
		return complain("no object:", error.text);
	wrong = check_fields(object);
	for (i = 1; i + 2 < argc && !wrong; i += 3)
		wrong = check_claim(object, argv + i);
	json_decref(object);
	return wrong;
}
