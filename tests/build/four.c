/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * four.c: all that the core may ask of its environment. It is linked in the place of a C library
 * and never run.
 */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void _start(void);

void *memcpy(void *to, const void *from, size_t n)
{
	return from && n ? to : NULL;
}

void *memmove(void *to, const void *from, size_t n)
{
	return from && n ? to : NULL;
}

void *memset(void *to, int c, size_t n)
{
	return c && n ? to : NULL;
}

int memcmp(const void *a, const void *b, size_t n)
{
	return a == b && n;
}

void _start(void)
{
}
