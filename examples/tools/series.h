/* The series of sizes that the tests of streams run, and the table that they print. */
#ifndef TOOLS_SERIES_H
#define TOOLS_SERIES_H

#include <stddef.h>

enum series_kind { SERIES_LATENCY, SERIES_BANDWIDTH, SERIES_CUSTOM };

/* One run: each way, iterations times, transfers messages of size_bytes. */
struct series_run {
	enum series_kind kind;
	long size_bytes;
	long transfers;
	long iterations;
};

#define SERIES_SIZE_MAX (6L << 20)

/* The n-th run of a series; all takes every size. Returns 0, or -1 when there is no n-th. */
int series_get(struct series_run *run, enum series_kind kind, int all, int n);

void series_print_header(void);
void series_print(const struct series_run *run, double seconds);

/* The parts of it, for tables of other columns. A text has SERIES_TEXT_MAX bytes. */
#define SERIES_TEXT_MAX 48
const char *series_size_text(char *text, long long bytes);
const char *series_count_text(char *text, long long count);
const char *series_name(char *text, enum series_kind kind, long size_bytes);

double series_now(void);

#endif
