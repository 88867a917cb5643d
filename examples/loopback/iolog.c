/* SPDX-License-Identifier: BSD-3-Clause */
#include "iolog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "stamp.h"

enum { FIELDS_MAX = 6 };

/* A file of the log. */
struct name {
	char *text;
	bool open;
};

struct reader {
	struct iolog *log;
	const struct iolog_limits *limits;
	uint32_t version;
	size_t room; /* of log->io */
	struct name *name;
	size_t names;
	const char *file;
	uint64_t line;
	char *why;
	size_t size;
};

/* Answers false, for the caller to pass on. */
static bool refuse(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(struct reader *r, const char *format, ...)
{
	va_list args;
	int n = snprintf(r->why, r->size, "%s:%" PRIu64 ": ", r->file, r->line);

	if (n < 0 || (size_t)n >= r->size)
		return false;
	va_start(args, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses va_start */
	vsnprintf(r->why + n, r->size - (size_t)n, format, args);
	va_end(args);
	return false;
}

/* Cuts a line into at most `max` fields, in place; one more than that means "too many". */
static uint32_t split(char *line, char *field[], uint32_t max)
{
	uint32_t n = 0;
	char *save, *at;

	for (at = strtok_r(line, " \t\r\n", &save); at && n < max;
	     at = strtok_r(NULL, " \t\r\n", &save))
		field[n++] = at;
	return n;
}

static bool number(struct reader *r, const char *what, const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return refuse(r, "%s '%.40s' is not a number", what, text);
	return true;
}

static struct name *find_name(const struct reader *r, const char *text)
{
	size_t i;

	for (i = 0; i < r->names; i++)
		if (!strcmp(r->name[i].text, text))
			return &r->name[i];
	return NULL;
}

static bool add_name(struct reader *r, const char *text)
{
	struct name *more;

	if (find_name(r, text))
		return true;
	more = realloc(r->name, (r->names + 1) * sizeof(*more));
	if (!more)
		return refuse(r, "no memory");
	r->name = more;
	more[r->names].open = false;
	more[r->names].text = strdup(text);
	if (!more[r->names].text)
		return refuse(r, "no memory");
	r->names++;
	return true;
}

static bool file_action(struct reader *r, const char *text, const char *action)
{
	struct name *name = find_name(r, text);

	if (!strcmp(action, "add"))
		return add_name(r, text);
	if (!name)
		return refuse(r, "%s of '%.80s', which was not added", action, text);
	if (!strcmp(action, "close") && !name->open)
		return refuse(r, "close of '%.80s', which is not open", text);
	name->open = !strcmp(action, "open");
	return true;
}

static bool append(struct reader *r, uint32_t op, uint64_t offset, uint64_t bytes)
{
	struct iolog *log = r->log;
	struct io *more;

	if (log->count == r->room) {
		r->room = r->room ? 2 * r->room : 256;
		more = realloc(log->io, r->room * sizeof(*more));
		if (!more)
			return refuse(r, "no memory");
		log->io = more;
	}
	log->io[log->count++] = (struct io){ offset, (uint32_t)bytes, op };
	if (bytes > log->largest)
		log->largest = (uint32_t)bytes;
	return true;
}

static bool check_range(struct reader *r, const char *action, uint64_t offset, uint64_t bytes)
{
	uint64_t disk = r->limits->disk_bytes;
	uint32_t unit = r->limits->unit;

	if (offset % unit)
		return refuse(r, "offset %" PRIu64 " is not a multiple of %" PRIu32, offset, unit);
	if (!bytes || bytes % unit)
		return refuse(r, "length %" PRIu64 " is not a multiple of %" PRIu32 " above 0",
			      bytes, unit);
	if (offset > disk || bytes > disk - offset)
		return refuse(r,
			      "%s of %" PRIu64 " bytes at %" PRIu64
			      " is beyond the disk of %" PRIu64 " bytes",
			      action, bytes, offset, disk);
	return true;
}

static bool transfer(struct reader *r, const char *action, uint64_t offset, uint64_t bytes)
{
	bool writes = !strcmp(action, "write");

	if (!check_range(r, action, offset, bytes))
		return false;
	if (!strcmp(action, "trim")) {
		r->log->trims++;
		return true;
	}
	if (bytes > r->limits->largest)
		return refuse(r, "length %" PRIu64 " is above %" PRIu32, bytes, r->limits->largest);
	if (writes && r->limits->readonly)
		return refuse(r, "write, but the disk is read-only");
	return append(r, writes ? IO_WRITE : IO_READ, offset, bytes);
}

static bool is_one_of(const char *action, const char *const list[])
{
	for (; *list; list++)
		if (!strcmp(action, *list))
			return true;
	return false;
}

/* A line without its time: field[0] is the name, field[1] the action. */
static bool io_action(struct reader *r, char *field[], uint32_t n)
{
	static const char *const syncs[] = { "sync", "datasync", NULL };
	static const char *const transfers[] = { "read", "write", "trim", NULL };
	const char *action = field[1];
	bool waits = !strcmp(action, "wait"), syncs_it = is_one_of(action, syncs);
	const struct name *name = find_name(r, field[0]);
	uint64_t offset = 0, bytes = 0;

	if (!waits && !syncs_it && !is_one_of(action, transfers))
		return refuse(r, "unknown action '%.40s'", action);
	if (!waits && (!name || !name->open))
		return refuse(r, "%s of '%.80s', which is not open", action, field[0]);
	if (n != 4 && !(n == 2 && syncs_it))
		return refuse(r, "%s needs an offset and a length, and no more", action);
	if (n == 4 &&
	    (!number(r, "offset", field[2], &offset) || !number(r, "length", field[3], &bytes)))
		return false;
	if (syncs_it)
		return append(r, IO_FLUSH, 0, 0);
	return waits || transfer(r, action, offset, bytes);
}

static bool read_line(struct reader *r, char *line)
{
	static const char *const file_actions[] = { "add", "open", "close", NULL };
	char *fields[FIELDS_MAX], **field = fields;
	uint32_t n = split(line, field, FIELDS_MAX);
	uint64_t time;

	if (!n)
		return true;
	if (r->version == 3) {
		if (!number(r, "time", field[0], &time))
			return false;
		field++;
		n--;
	}
	if (n < 2)
		return refuse(r, "a line needs a name and an action");
	if (!is_one_of(field[1], file_actions))
		return io_action(r, field, n);
	if (n > 2)
		return refuse(r, "%s takes no more than a name", field[1]);
	return file_action(r, field[0], field[1]);
}

static bool read_version(struct reader *r, char *line)
{
	static const char first[] = "fio version ", last[] = " iolog";
	size_t n = strcspn(line, "\r\n");

	line[n] = '\0';
	r->version = 0;
	if (n == sizeof(first) + sizeof(last) - 1 && !strncmp(line, first, sizeof(first) - 1) &&
	    !strcmp(line + sizeof(first), last))
		r->version = (uint32_t)(line[sizeof(first) - 1] - '0');
	if (r->version == 2 || r->version == 3)
		return true;
	return refuse(r, "the first line is not 'fio version 2 iolog' or 'fio version 3 iolog'");
}

static bool read_all(struct reader *r, FILE *in)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	bool good = true;

	while (good && (n = getline(&line, &room, in)) >= 0) {
		r->line++;
		if (memchr(line, '\0', (size_t)n))
			good = refuse(r, "not a line of text");
		else if (r->line == 1)
			good = read_version(r, line);
		else
			good = read_line(r, line);
	}
	/* Whatever but the end of the file ended it, a lack of memory included. */
	if (good && !feof(in)) {
		snprintf(r->why, r->size, "%s: %s", r->file, strerror(errno));
		good = false;
	}
	free(line);
	if (good && !r->line) {
		r->line = 1;
		good = refuse(r, "the log is empty");
	}
	return good;
}

bool iolog_load(struct iolog *log, const char *file, const struct iolog_limits *limits, char *why,
		size_t size)
{
	struct reader r = { .log = log, .limits = limits, .file = file, .why = why, .size = size };
	FILE *in = fopen(file, "re");
	bool good;

	*log = (struct iolog){ 0 };
	if (!in) {
		snprintf(why, size, "%s: %s", file, strerror(errno));
		return false;
	}
	good = read_all(&r, in);
	fclose(in);
	while (r.names)
		free(r.name[--r.names].text);
	free(r.name);
	if (!good)
		iolog_free(log);
	return good;
}

void iolog_free(struct iolog *log)
{
	free(log->io);
	*log = (struct iolog){ 0 };
}
