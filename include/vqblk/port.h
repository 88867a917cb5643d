/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h: all that the library asks of the machine: fences, single-fetch loads and stores, byte
 * order, and the four memory functions that every C compiler may call anyway.
 *
 * An embedder replaces it by defining VQB_PORT_HEADER to the name of a header of its own, for
 * the whole build; that header may include this one with VQB_PORT_BASE defined to get the
 * defaults under their names and build on them. The tests do so to count loads and to play a
 * peer that changes memory between two of them.
 *
 * Why single-fetch: memory that the peer can write may change at any moment. A plain C load may
 * be repeated by the compiler, so that what was checked is not what is used. Each of these loads
 * reads its bytes exactly once. Sixty-four bit accesses are two thirty-two bit ones on a machine
 * without them; a field never spans the two.
 */
#if defined(VQB_PORT_HEADER) && !defined(VQB_PORT_BASE)
#ifndef VQBLK_PORT_REPLACED
#define VQBLK_PORT_REPLACED
#include VQB_PORT_HEADER
#endif
#elif !defined(VQBLK_PORT_H)
#define VQBLK_PORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if !defined(__STDC_HOSTED__) || __STDC_HOSTED__ == 0
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
#else
#include <string.h>
#endif
#ifdef __cplusplus
}
#endif

#if !defined(__GNUC__)
#error "vqblk/port.h knows gcc and clang; define VQB_PORT_HEADER for another compiler"
#endif

#define VQB_LIKELY(x) __builtin_expect(!!(x), 1)
#define VQB_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * For the steps of a hot path that are functions to be read, not to be called; -Os has its own
 * mind.
 */
#if defined(__OPTIMIZE_SIZE__)
#define VQB_INLINE static inline
#else
#define VQB_INLINE static inline __attribute__((always_inline))
#endif
/* For what is smaller than a call of it. */
#define VQB_TINY static inline __attribute__((always_inline))
/* For what is not part of the hottest path, and is to be quick all the same. */
#define VQB_APART __attribute__((noinline))
/* For what a hot path hardly ever needs. */
#define VQB_COLD __attribute__((noinline, cold))

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define VQB_BIG_ENDIAN 1
#else
#define VQB_BIG_ENDIAN 0
#endif

/* A number with its bytes the other way round. */
VQB_TINY uint16_t vqb_port_swap16(uint16_t v)
{
	return __builtin_bswap16(v);
}

VQB_TINY uint32_t vqb_port_swap32(uint32_t v)
{
	return __builtin_bswap32(v);
}

VQB_TINY uint64_t vqb_port_swap64(uint64_t v)
{
	return __builtin_bswap64(v);
}

/* A number from wherever it lies; memcpy, which in a freestanding build is a call. */
VQB_TINY uint64_t vqb_port_peek64(const void *p)
{
	uint64_t v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Full fence: every store before it is visible before any load after it is done. Spelled out
 * per machine: for a C11 seq_cst fence clang emits mfence on x86, which costs four times as
 * much as a locked operation on the stack and orders nothing more here.
 */
VQB_TINY void vqb_port_fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lock; orq $0,(%%rsp)" ::: "memory", "cc");
#elif defined(__i386__)
	__asm__ volatile("lock; orl $0,(%%esp)" ::: "memory", "cc");
#elif defined(__aarch64__)
	__asm__ volatile("dmb ish" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence rw,rw" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * The same for a peer that is not a CPU of this machine's coherent domain (VQB_F_ORDER_PLATFORM):
 * as strong as a driver of hardware needs it. After the full fence even a store to a device
 * register is ordered behind what came before.
 */
VQB_TINY void vqb_port_device_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb sy" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence iorw,iorw" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Loads before it are done before loads after it. */
VQB_TINY void vqb_port_device_read_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb ld" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence ir,ir" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Stores before it are visible before stores after it. */
VQB_TINY void vqb_port_device_write_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence ow,ow" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * A counter of the machine that runs at a steady rate, for comparing how long things take; 0, and
 * always 0, where there is none that may be read here.
 */
static inline uint64_t vqb_port_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* An index load: what the peer wrote before it stored this value is visible to loads after it. */
VQB_TINY uint16_t vqb_port_load16_acquire(const void *p)
{
	return __atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE);
}

/* An index store: whatever was written before it is visible to a peer that sees the value. */
VQB_TINY void vqb_port_store16_release(void *p, uint16_t v)
{
	__atomic_store_n((uint16_t *)p, v, __ATOMIC_RELEASE);
}

VQB_TINY uint8_t vqb_port_load8(const void *p)
{
	return __atomic_load_n((const uint8_t *)p, __ATOMIC_RELAXED);
}

VQB_TINY uint16_t vqb_port_load16(const void *p)
{
	return __atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED);
}

VQB_TINY uint32_t vqb_port_load32(const void *p)
{
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
}

VQB_TINY void vqb_port_store16(void *p, uint16_t v)
{
	__atomic_store_n((uint16_t *)p, v, __ATOMIC_RELAXED);
}

VQB_TINY void vqb_port_store32(void *p, uint32_t v)
{
	__atomic_store_n((uint32_t *)p, v, __ATOMIC_RELAXED);
}

#if UINTPTR_MAX > 0xffffffffu
VQB_TINY uint64_t vqb_port_load64(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

VQB_TINY void vqb_port_store64(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
}
#else
VQB_TINY uint64_t vqb_port_load64(const void *p)
{
	const uint32_t *half = (const uint32_t *)p;
	uint32_t first = vqb_port_load32(half), second = vqb_port_load32(half + 1);

	return VQB_BIG_ENDIAN ? (uint64_t)first << 32 | second : (uint64_t)second << 32 | first;
}

VQB_TINY void vqb_port_store64(void *p, uint64_t v)
{
	uint32_t *half = (uint32_t *)p;

	vqb_port_store32(half, (uint32_t)(VQB_BIG_ENDIAN ? v >> 32 : v));
	vqb_port_store32(half + 1, (uint32_t)(VQB_BIG_ENDIAN ? v : v >> 32));
}
#endif

#endif
