/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends a write, a flush and a read from a driver through a device to an image, in one thread, for
 * flush_trace.sh to look at the system calls. Each completion that the driver sees is a line on
 * standard output, so the trace shows what came before it.
 *
 *   flush_trace MODE IMAGE     MODE: flush (accepts FLUSH) or through (leaves it)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vqblk/host/file.h>
#include <vqblk/vqblk.h>

#define RAM UINT64_C(0x80000000) /* guest address of the memory */

enum { RING = 8, DATA = 4096, AREA = 8192, BYTES = 16384, SECTORS = 64 };

static _Alignas(4096) uint8_t ram[BYTES];
static _Alignas(64) uint8_t file_mem[VQB_FILE_BYTES], backend_mem[VQB_FILE_BACKEND_BYTES];
static _Alignas(64) uint8_t disk_mem[VQB_BLK_DEVICE_BYTES];
static _Alignas(64) uint8_t device_mem[VQB_DEVICE_BYTES(RING)], driver_mem[VQB_DRIVER_BYTES(RING)];
static _Alignas(64) uint8_t queue_mem[VQB_BLK_QUEUE_BYTES(RING, 4 * RING)];
static _Alignas(64) uint8_t blk_mem[VQB_BLK_DRIVER_BYTES(RING, RING, 0, VQB_REQUESTS_WINDOW)];

static const struct vqb_extent extent = { RAM, BYTES, ram, VQB_READ | VQB_WRITE, 0 };
static const struct vqb_memory map = {
	.struct_size = sizeof(map), .generation = 1, .count = 1, .sorted = &extent
};

static struct vqb_file *file;
static struct vqb_blk_queue *queue;
static struct vqb_blk_driver *drv;

static void must(int32_t status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "flush_trace: %s: %s\n", what, vqb_status_name(status));
	exit(1);
}

/* The host: image, disk, ring, queue. */
static void start_host(const char *image, uint64_t accepted)
{
	struct vqb_file_config file_config = { .struct_size = sizeof(file_config),
					       .access = VQB_READ | VQB_WRITE,
					       .path = image };
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits), .capacity = SECTORS };
	struct vqb_blk_device_config disk_config = { .struct_size = sizeof(disk_config),
						     .features = VQB_FEATURE(VQB_BLK_F_FLUSH),
						     .limits = &limits };
	struct vqb_device_config ring = { .struct_size = sizeof(ring), .memory = &map };
	struct vqb_blk_queue_config config = { .struct_size = sizeof(config),
					       .requests = RING,
					       .pieces = 4 * RING };
	struct vqb_blk_device *disk;
	struct vqb_backend *backend;
	struct vqb_device *device;

	ring.ring.size = RING;
	ring.ring.features = accepted;
	must(vqb_ring_place_at(&ring.ring, RAM, 4), "layout");
	must(vqb_file_open(file_mem, sizeof(file_mem), &file_config, &file), "image");
	must(vqb_file_backend_init(backend_mem, sizeof(backend_mem), file, &backend), "backend");
	must(vqb_blk_device_init(disk_mem, sizeof(disk_mem), &disk_config, &disk), "disk");
	must(vqb_device_init(device_mem, sizeof(device_mem), &ring, &device), "device");
	config.features = accepted;
	config.device = disk;
	config.ring = device;
	config.backend = backend;
	must(vqb_blk_queue_init(queue_mem, sizeof(queue_mem), &config, &queue), "queue");
}

static void start_guest(uint64_t accepted)
{
	struct vqb_driver_config ring = { .struct_size = sizeof(ring) };
	struct vqb_blk_limits limits = { .struct_size = sizeof(limits),
					 .block_size = 512,
					 .capacity = SECTORS,
					 .segment_bytes = UINT32_MAX,
					 .segments = 1 };
	struct vqb_blk_driver_config config = { .struct_size = sizeof(config), .depth = RING };

	ring.ring.size = RING;
	ring.ring.features = accepted;
	must(vqb_ring_place(&ring.ring, ram, 4), "layout");
	must(vqb_driver_init(driver_mem, sizeof(driver_mem), &ring, &config.ring), "driver");
	config.area = (struct vqb_dma){ ram + AREA, RAM + AREA, BYTES - AREA };
	config.features = accepted;
	config.limits = &limits;
	must(vqb_blk_driver_init(blk_mem, sizeof(blk_mem), &config, &drv), "blk driver");
}

static void request(uint8_t op, const char *line)
{
	struct vqb_segment data = { RAM + DATA, 4096, 0 };
	struct vqb_bio bio = { .vec = &data, .nvec = 1, .op = op, .sector = 8 }, *done;

	if (op == VQB_BLK_FLUSH)
		bio.nvec = 0;
	must(vqb_blk_submit(drv, &bio), line);
	vqb_blk_publish(drv);
	while (vqb_blk_queue_run(queue, 8) & VQB_MORE)
		continue;
	if (vqb_blk_reap(drv, &done) != 1 || done != &bio)
		must(VQB_E_BROKEN, line);
	must(bio.status, line);
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	uint64_t accepted = VQB_FEATURE(VQB_F_VERSION_1);

	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "flush"))
		accepted |= VQB_FEATURE(VQB_BLK_F_FLUSH);
	start_guest(accepted);
	start_host(argv[2], accepted);
	memset(ram + DATA, 'x', 4096);
	request(VQB_BLK_OUT, "write done\n");
	if (accepted & VQB_FEATURE(VQB_BLK_F_FLUSH))
		request(VQB_BLK_FLUSH, "flush done\n");
	request(VQB_BLK_IN, "read done\n");
	must(vqb_blk_queue_quiesce(queue), "quiesce");
	must(vqb_file_close(file), "close");
	return 0;
}
