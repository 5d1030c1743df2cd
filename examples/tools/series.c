#include "series.h"
#include "common.h"

#include <stdio.h>

/* Those of a short series; a whole one has what is between them as well. */
static const long sizes_short[] = { 64, 4L << 10, 64L << 10, 1L << 20 };

static const struct {
	long from_bytes;
	long count;
} counts[] = { { 1L << 20, 100 }, { 64L << 10, 1000 }, { 1L << 10, 10000 }, { 0, 100000 } };

/* 64, 128, 192, 256, 384, 512 and so on: the powers of two, and half more from 128 on. */
static long size_all(int n)
{
	long power;

	if (n < 1)
		return n == 0 ? 64 : 0;
	power = 128L << ((n - 1) / 2);
	return n % 2 ? power : power + power / 2;
}

static long size_short(int n)
{
	return n < (int)(sizeof(sizes_short) / sizeof(sizes_short[0])) ? sizes_short[n] : 0;
}

static long count_for(long size_bytes)
{
	int i = 0;

	while (size_bytes < counts[i].from_bytes)
		i++;
	return counts[i].count;
}

int series_get(struct series_run *run, enum series_kind kind, int all, int n)
{
	long size_bytes = all ? size_all(n) : size_short(n);

	if (size_bytes <= 0 || size_bytes > SERIES_SIZE_MAX)
		return -1;
	*run = (struct series_run){
		.kind = kind, .size_bytes = size_bytes, .transfers = 1, .iterations = 1
	};
	if (kind == SERIES_LATENCY)
		run->iterations = count_for(size_bytes);
	else
		run->transfers = count_for(size_bytes);
	return 0;
}

/* One digit behind the point where there is but one before it. */
const char *series_size_text(char *text, long long bytes)
{
	static const char letters[] = { 'g', 'm', 'k' };
	long long unit = 1LL << 30;
	int i = 0;

	while (i < 3 && bytes < unit) {
		unit >>= 10;
		i++;
	}
	if (i == 3)
		snprintf(text, SERIES_TEXT_MAX, "%lld", bytes);
	else if (bytes / unit < 10 && bytes % unit * 10 / unit)
		snprintf(text, SERIES_TEXT_MAX, "%lld.%lld%c", bytes / unit,
			bytes % unit * 10 / unit, letters[i]);
	else
		snprintf(text, SERIES_TEXT_MAX, "%lld%c", bytes / unit, letters[i]);
	return text;
}

const char *series_count_text(char *text, long long count)
{
	static const char letters[] = { 'b', 'm', 'k' };
	long long unit = 1000000000;
	int i = 0;

	while (i < 3 && count < unit) {
		unit /= 1000;
		i++;
	}
	if (i == 3)
		snprintf(text, SERIES_TEXT_MAX, "%lld", count);
	else
		snprintf(text, SERIES_TEXT_MAX, "%lld%c", count / unit, letters[i]);
	return text;
}

const char *series_name(char *text, enum series_kind kind, long size_bytes)
{
	char size[SERIES_TEXT_MAX];

	if (kind == SERIES_CUSTOM)
		return "custom";
	snprintf(text, SERIES_TEXT_MAX, "%.20s_%s", series_size_text(size, size_bytes),
		kind == SERIES_LATENCY ? "lat" : "bw");
	return text;
}

void series_print_header(void)
{
	printf("%-10s%-8s%-8s%-8s%-8s%8s %10s%13s\n", "name", "bytes", "xfers", "iters", "total",
		"time", "Gb/sec", "usec/xfer");
}

void series_print(const struct series_run *run, double seconds)
{
	char name[SERIES_TEXT_MAX], size[SERIES_TEXT_MAX], xfers[SERIES_TEXT_MAX],
		iters[SERIES_TEXT_MAX], total[SERIES_TEXT_MAX];
	long long messages = 2LL * run->transfers * run->iterations;
	long long bytes = messages * run->size_bytes;

	printf("%-10s%-8s%-8s%-8s%-8s%8.2fs%10.2f%11.2f\n",
		series_name(name, run->kind, run->size_bytes),
		series_size_text(size, run->size_bytes), series_count_text(xfers, run->transfers),
		series_count_text(iters, run->iterations), series_size_text(total, bytes), seconds,
		seconds > 0 ? (double)bytes * 8 / 1e9 / seconds : 0,
		seconds * 1e6 / (double)messages);
}

double series_now(void)
{
	return (double)tool_now_ns() / 1e9;
}
