/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_port.h: the port of a test-only build of the core (vqblk-probe). Every single-fetch load
 * first tells probe_load where it reads, so that a test can count loads, and change the memory
 * under the reader between two of them, as a hostile peer would; every fence is counted, and told
 * to probe_fenced.
 */
#ifndef TESTS_PROBE_PORT_H
#define TESTS_PROBE_PORT_H

#define VQB_PORT_BASE
#include <vqblk/port.h>

/* Set by the test; called before each load of `bytes` at `p`. NULL: nothing is told. */
extern void (*probe_load)(const void *p, unsigned bytes);
/* Called before each store of `bytes` at `p`; `v` is what a peer reads there. NULL: not told. */
extern void (*probe_store)(const void *p, uint64_t v, unsigned bytes);
enum probe_fence_kind {
	PROBE_FULL,
	PROBE_DEVICE,
	PROBE_DEVICE_READ,
	PROBE_DEVICE_WRITE,
	PROBE_ACQUIRE, /* right after its load */
	PROBE_RELEASE, /* right before its store */
};

/* Full fences for a CPU (PROBE_FULL) since the test set it to 0. */
extern unsigned long probe_fences;
/* Called after each fence, of any kind, and for the order that a load or store brings along. */
extern void (*probe_fenced)(enum probe_fence_kind kind);

static inline void probe_fence_done(enum probe_fence_kind kind)
{
	if (probe_fenced)
		probe_fenced(kind);
}

static inline void probe_fence(void)
{
	probe_fences++;
	vqb_port_fence();
	probe_fence_done(PROBE_FULL);
}

static inline void probe_device_fence(void)
{
	vqb_port_device_fence();
	probe_fence_done(PROBE_DEVICE);
}

static inline void probe_device_read_fence(void)
{
	vqb_port_device_read_fence();
	probe_fence_done(PROBE_DEVICE_READ);
}

static inline void probe_device_write_fence(void)
{
	vqb_port_device_write_fence();
	probe_fence_done(PROBE_DEVICE_WRITE);
}

/* A wire word of so many bytes, as it lies in memory, as the number that it stands for. */
static inline uint64_t probe_number(uint64_t raw, unsigned bytes)
{
	return VQB_BIG_ENDIAN ? __builtin_bswap64(raw) >> (64 - 8 * bytes) : raw;
}

#define PROBE_LOAD(type, name, bytes)                                                              \
	static inline type probe_##name(const void *p)                                             \
	{                                                                                          \
		if (probe_load)                                                                    \
			probe_load(p, bytes);                                                      \
		return vqb_port_##name(p);                                                         \
	}

#define PROBE_STORE(type, name, bytes)                                                             \
	static inline void probe_##name(void *p, type v)                                           \
	{                                                                                          \
		if (probe_store)                                                                   \
			probe_store(p, probe_number(v, bytes), bytes);                             \
		vqb_port_##name(p, v);                                                             \
	}

PROBE_LOAD(uint8_t, load8, 1)
PROBE_LOAD(uint16_t, load16, 2)
PROBE_LOAD(uint32_t, load32, 4)
PROBE_LOAD(uint64_t, load64, 8)
PROBE_STORE(uint16_t, store16, 2)
PROBE_STORE(uint32_t, store32, 4)
PROBE_STORE(uint64_t, store64, 8)

static inline uint16_t probe_load16_acquire(const void *p)
{
	uint16_t v;

	if (probe_load)
		probe_load(p, 2);
	v = vqb_port_load16_acquire(p);
	probe_fence_done(PROBE_ACQUIRE);
	return v;
}

static inline void probe_store16_release(void *p, uint16_t v)
{
	probe_fence_done(PROBE_RELEASE);
	if (probe_store)
		probe_store(p, probe_number(v, 2), 2);
	vqb_port_store16_release(p, v);
}

#define vqb_port_fence probe_fence
#define vqb_port_device_fence probe_device_fence
#define vqb_port_device_read_fence probe_device_read_fence
#define vqb_port_device_write_fence probe_device_write_fence
#define vqb_port_load8 probe_load8
#define vqb_port_load16 probe_load16
#define vqb_port_load16_acquire probe_load16_acquire
#define vqb_port_load32 probe_load32
#define vqb_port_load64 probe_load64
#define vqb_port_store16 probe_store16
#define vqb_port_store16_release probe_store16_release
#define vqb_port_store32 probe_store32
#define vqb_port_store64 probe_store64

#endif
