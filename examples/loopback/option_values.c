/* SPDX-License-Identifier: BSD-3-Clause */
#include "option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vqblk/vqblk.h>

#include "say.h"

static bool parse_number(const char *text, uint64_t *value, const char **end)
{
	char *stop;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &stop, 10);
	*end = stop;
	return !errno;
}

bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "kmg";
	const char *end, *unit;
	uint32_t shift = 0;

	if (!parse_number(text, bytes, &end))
		return false;
	if (*end) {
		unit = strchr(units, *end | 0x20);
		if (!unit || end[1])
			return false;
		shift = 10 * (uint32_t)(unit - units + 1);
	}
	if (*bytes > UINT64_MAX >> shift)
		return false;
	*bytes <<= shift;
	return true;
}

bool parse_seconds(const char *text, uint64_t *ns)
{
	char *end;
	double seconds;

	if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
		return false;
	seconds = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "s") != 0) || !(seconds < 1e9))
		return false;
	*ns = (uint64_t)(seconds * 1e9);
	return *ns > 0;
}

bool option_word(const char *name, const char *text, const char *const words[], uint32_t *value)
{
	char list[80] = "";
	size_t used = 0;
	uint32_t i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(text, words[i])) {
			*value = i;
			return true;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 words[i]);
	}
	complain("--%s %s: not one of %s", name, text, list);
	return false;
}

bool option_count(const char *name, const char *text, uint64_t most, uint64_t *value)
{
	const char *end;

	if (parse_number(text, value, &end) && !*end && *value >= 1 && *value <= most)
		return true;
	complain("--%s %s: not a number from 1 to %" PRIu64, name, text, most);
	return false;
}

bool option_count32(const char *name, const char *text, uint32_t most, uint32_t *value)
{
	uint64_t wide;

	if (!option_count(name, text, most, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool option_seed(const char *text, uint64_t *seed)
{
	const char *end;

	if (parse_number(text, seed, &end) && !*end && *seed <= INT64_MAX)
		return true;
	complain("--seed %s: not a number below 2^63", text);
	return false;
}

bool option_sectors(const char *name, const char *text, uint64_t most, uint64_t *bytes)
{
	if (parse_size(text, bytes) && *bytes && *bytes % VQB_SECTOR_BYTES == 0 && *bytes <= most)
		return true;
	complain("--%s %s: not a size in whole sectors of 512 bytes up to %" PRIu64, name, text,
		 most);
	return false;
}

bool option_switch(const char *name, const char *text, const char *const words[], bool *value)
{
	uint32_t word;

	if (!option_word(name, text, words, &word))
		return false;
	*value = word == 1;
	return true;
}

bool option_rate(const char *name, const char *text, uint32_t *millionths)
{
	double rate = -1;
	char *end = NULL;

	if ((text[0] >= '0' && text[0] <= '9') || text[0] == '.')
		rate = strtod(text, &end);
	if (!end || *end || !(rate == 0 || (rate >= 1e-6 && rate <= 1))) {
		complain("--%s %s: not 0, nor a share of 0.000001 to 1", name, text);
		return false;
	}
	*millionths = (uint32_t)(rate * 1e6 + 0.5);
	return true;
}
