/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_port.c: the variables behind probe_port.h. */
#include "probe_port.h"

void (*probe_load)(const void *p, unsigned bytes);
void (*probe_store)(const void *p, uint64_t v, unsigned bytes);
unsigned long probe_fences;
void (*probe_fenced)(enum probe_fence_kind kind);
