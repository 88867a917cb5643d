/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses va_start */
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, PROGRAM ": %s\n", text);
}

void complain_of(const char *text)
{
	fprintf(stderr, "%s\n", text);
}
