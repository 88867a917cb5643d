/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uaccess.h: stands in for the one of tools/virtio, which copies through volatile, byte by byte.
 * A kernel checks the range and then copies in words.
 */
#ifndef PEERS_UACCESS_H
#define PEERS_UACCESS_H

#include <linux/compiler.h>

extern void *__user_addr_min, *__user_addr_max;

static inline int user_range(const volatile void *p, unsigned long bytes)
{
	unsigned long from = (unsigned long)p, max = (unsigned long)__user_addr_max;

	return __builtin_expect(
		from >= (unsigned long)__user_addr_min && bytes <= max && from <= max - bytes, 1);
}

#define put_user(value, at)                                                                        \
	({                                                                                         \
		__typeof__(at) put_at = (at);                                                      \
		int put_ok = user_range(put_at, sizeof(*put_at));                                  \
		if (put_ok)                                                                        \
			WRITE_ONCE(*put_at, value);                                                \
		put_ok ? 0 : -14;                                                                  \
	})

#define get_user(value, at)                                                                        \
	({                                                                                         \
		__typeof__(at) get_at = (at);                                                      \
		int get_ok = user_range(get_at, sizeof(*get_at));                                  \
		if (get_ok)                                                                        \
			value = READ_ONCE(*get_at);                                                \
		get_ok ? 0 : -14;                                                                  \
	})

static inline unsigned long copy_from_user(void *to, const volatile void *from, unsigned long n)
{
	if (!user_range(from, n))
		return n;
	__builtin_memcpy(to, (const void *)from, n);
	return 0;
}

static inline unsigned long copy_to_user(volatile void *to, const void *from, unsigned long n)
{
	if (!user_range(to, n))
		return n;
	__builtin_memcpy((void *)to, from, n);
	return 0;
}

#endif
