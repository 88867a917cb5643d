/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uring_trace IMAGE BATCHES: that many batches of reads, writes with FUA and flushes, each plugged
 * and polled for; prints how many system calls that took by the backend's own count. 77: no
 * io_uring.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <vqblk/blk.h>
#include <vqblk/host/uring.h>

enum { IOS = 24, EACH = 1024 };

static _Alignas(64) uint8_t file_mem[VQB_FILE_BYTES];
static uint8_t data[IOS * EACH];

static int batch(struct vqb_backend *backend)
{
	struct vqb_piece piece[IOS];
	struct vqb_io io[IOS], *done;
	unsigned n = 0;

	vqb_backend_plug(backend);
	for (unsigned i = 0; i < IOS; i++) {
		piece[i] = (struct vqb_piece){ data + i * EACH, EACH };
		io[i] = (struct vqb_io){ .op = VQB_BLK_FLUSH };
		if (i % 8 != 7) {
			io[i].op = i % 2 ? VQB_BLK_OUT : VQB_BLK_IN;
			io[i].flags = i % 4 == 1 ? VQB_IO_FUA : 0;
			io[i].offset = i * EACH;
			io[i].bytes = EACH;
			io[i].piece = &piece[i];
			io[i].pieces = 1;
		}
		if (vqb_backend_submit(backend, &io[i]))
			return 1;
	}
	vqb_backend_unplug(backend);
	while (n < IOS) {
		for (done = vqb_backend_poll(backend); done; done = done->next, n++) {
			if (done->result != (int64_t)done->bytes)
				return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct vqb_file_config image = { .struct_size = sizeof(image),
					 .access = VQB_READ | VQB_WRITE };
	struct vqb_uring_config config = { .struct_size = sizeof(config), .entries = IOS };
	struct vqb_uring_counters counters;
	struct vqb_backend *backend;
	int32_t status;
	size_t bytes;
	void *mem;

	if (argc != 3)
		return 2;
	image.path = argv[1];
	if (vqb_file_open(file_mem, sizeof(file_mem), &image, &config.file))
		return 1;
	bytes = vqb_uring_size(&config);
	mem = aligned_alloc(64, bytes);
	if (!mem)
		return 1;
	status = vqb_uring_init(mem, bytes, &config, &backend);
	if (status)
		return status == VQB_E_UNSUPP ? 77 : 1;
	for (unsigned long n = strtoul(argv[2], NULL, 10); n; n--) {
		if (batch(backend))
			return 1;
	}
	vqb_uring_read_counters(backend, &counters);
	vqb_uring_close(backend);
	free(mem);
	printf("%" PRIu64 "\n", counters.system_calls);
	return vqb_file_close(config.file) != VQB_OK;
}
