/* SPDX-License-Identifier: BSD-3-Clause */
/* readme.h: what the code in README.md leaves to its reader, and what readme.c calls of it. */
#include <stdint.h>

struct vqb_bio;
struct vqb_blk_driver;
struct vqb_chain;
struct vqb_device;
struct vqb_driver;
struct vqb_segment;

void notify_device(void);
void wait_for_interrupt(void);
void interrupt_driver(void);
uint32_t handle(const struct vqb_chain *chain);

int32_t exchange(struct vqb_driver *drv, const struct vqb_segment *seg, uint32_t *written);
int32_t serve_queue(struct vqb_device *dev);
int32_t write_durably(struct vqb_blk_driver *disk, struct vqb_bio *bio);
