/* SPDX-License-Identifier: BSD-3-Clause */
/* readme.h: what the code in README.md leaves to its reader. */
#include <stdint.h>

struct vqb_chain;

void notify_device(void);
void wait_for_interrupt(void);
void interrupt_driver(void);
uint32_t handle(const struct vqb_chain *chain);
