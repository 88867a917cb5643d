/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c: runs a fuzzer's inputs through it, without a fuzzing engine: each FILE, and each file
 * in each DIRECTORY. A finding ends the program as a crash does.
 */
#include <dirent.h>

#include "fuzz.h"

static unsigned inputs;

static bool replay_file(const char *name)
{
	FILE *file = fopen(name, "rb");
	long size = -1;
	uint8_t *data;
	bool whole;

	if (file && !fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size < 0 || fseek(file, 0, SEEK_SET)) {
		perror(name);
		if (file)
			fclose(file);
		return false;
	}
	data = (uint8_t *)fuzz_alloc((size_t)size);
	whole = fread(data, 1, (size_t)size, file) == (size_t)size;
	fclose(file);
	if (whole) {
		LLVMFuzzerTestOneInput(data, (size_t)size);
		inputs++;
	}
	free(data);
	return whole;
}

static bool replay_directory(DIR *directory, const char *name)
{
	const struct dirent *entry;
	char path[4096];
	bool good = true;

	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		good = replay_file(path) && good;
	}
	return good;
}

int main(int argc, char **argv)
{
	bool good = true;

	for (int i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);

		if (directory) {
			good = replay_directory(directory, argv[i]) && good;
			closedir(directory);
		} else {
			good = replay_file(argv[i]) && good;
		}
	}
	printf("%u inputs\n", inputs);
	/* No input at all means that the corpus was not found. */
	return good && inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
