/* Runs a fuzz target on files, or on all files of folders: one cell of TAP for each argument. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HANG_S = 20, LARGEST = 1 << 20 };

/* A crash ends the program: the last name printed is the input's. */
static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(LARGEST);
	size_t size;

	if (!file || !data) {
		printf("# %s: %s\n", path, strerror(errno));
		free(data);
		return -1;
	}
	size = fread(data, 1, LARGEST, file);
	fclose(file);
	/* As long as the input and no longer, for the address sanitizer to see what is read. */
	data = realloc(data, size ? size : 1);
	printf("# %s\n", path);
	fflush(stdout);
	alarm(HANG_S);
	LLVMFuzzerTestOneInput(data, size);
	alarm(0);
	free(data);
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* How many ran, or -1. */
static int run_folder(const char *folder)
{
	struct dirent **entries;
	char path[4096];
	int i, num = scandir(folder, &entries, is_visible, alphasort);
	int bad = 0;

	if (num < 0) {
		printf("# %s: %s\n", folder, strerror(errno));
		return -1;
	}
	for (i = 0; i < num; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		bad |= run_file(path);
		free(entries[i]);
	}
	free(entries);
	return bad ? -1 : num;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* No input at all is a corpus that went away. */
static bool run_cell(int number, const char *path)
{
	int num = is_folder(path) ? run_folder(path) : run_file(path) + 1;
	const char *name = strrchr(path, '/');

	printf("%sok %d - %s: %d inputs\n", num > 0 ? "" : "not ", number, name ? name + 1 : path,
		num);
	return num > 0;
}

int main(int argc, char **argv)
{
	char corpus[4096];
	bool good = true;
	int i;

	LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++)
		good &= run_cell(i, argv[i]);
	if (argc == 1) {
		const char *top = getenv("top_srcdir");

		snprintf(corpus, sizeof(corpus), "%s/" FUZZ_CORPUS, top ? top : ".");
		good = run_cell(1, corpus);
	}
	printf("1..%d\n", argc == 1 ? 1 : argc - 1);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
