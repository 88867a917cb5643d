/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api.h: what every other header needs: the version, C linkage for C++, and the mark on each
 * function that the shared library exports. Everything without the mark is hidden.
 */
#ifndef VQBLK_API_H
#define VQBLK_API_H

#include <stddef.h>
#include <stdint.h>

#define VQB_VERSION_MAJOR 0
#define VQB_VERSION_MINOR 1
#define VQB_VERSION_PATCH 0

/* One number that grows with each version: major, minor and patch in eight bits each. */
#define VQB_VERSION ((VQB_VERSION_MAJOR << 16) | (VQB_VERSION_MINOR << 8) | VQB_VERSION_PATCH)

#ifdef __cplusplus
#define VQB_C_BEGIN extern "C" {
#define VQB_C_END }
#else
#define VQB_C_BEGIN
#define VQB_C_END
#endif

#if defined(__GNUC__)
#define VQB_API __attribute__((visibility("default")))
#else
#define VQB_API
#endif

/*
 * Every object lies in memory of the caller that is aligned to this, and every size that the
 * library asks for is a multiple of it, so that objects can follow each other in an array.
 */
#define VQB_ALIGN 64u
#define VQB_ROUND_UP(bytes) (((size_t)(bytes) + (VQB_ALIGN - 1)) & ~(size_t)(VQB_ALIGN - 1))

VQB_C_BEGIN

/*
 * The VQB_VERSION of the library that runs, which may be newer than the headers' one. A structure
 * whose `struct_size` is not the one that the library was built with is VQB_E_INVALID.
 */
VQB_API uint32_t vqb_version(void);

VQB_C_END

#endif
