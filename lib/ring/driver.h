/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h: what the block driver wants to know of its ring. */
#ifndef RING_DRIVER_H
#define RING_DRIVER_H

#include <vqblk/driver.h>

/* Entries of the ring, which is the longest chain that may be added. 0: there is no ring. */
uint32_t vqb__driver_entries(const struct vqb_driver *drv);

#endif
