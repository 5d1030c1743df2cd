#include "perf.h"

#include <stdio.h>

static double seconds(uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 0;
}

/* 0 where no time passed: a receiver of a group that got one message knows no rate. */
static double rate(double n, uint64_t begin_ns, uint64_t end_ns)
{
	double s = seconds(begin_ns, end_ns);

	return s > 0 ? n / s : 0;
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/* A ping carries its bytes there and back. */
static double bytes_per_s(const struct perf_result *result)
{
	double ways = result->test == PERF_PING ? 2 : 1;

	return rate(ways * (double)result->messages * (double)result->size, result->begin_ns,
		result->end_ns);
}

static double messages_per_s(const struct perf_result *result)
{
	return rate((double)result->messages, result->begin_ns, result->end_ns);
}

static void print_times(const struct perf_hist *hist)
{
	printf(" %9.1f %9.1f %9.1f %9.1f %9.1f", us(hist->min), us(perf_hist_quantile(hist, 500)),
		us(perf_hist_quantile(hist, 990)), us(perf_hist_quantile(hist, 999)),
		us(hist->max));
}

/* --- for people ------------------------------------------------------------------------------ */

static void print_heading(enum perf_test test)
{
	switch (test) {
	case PERF_CONNECT:
		puts("test    connections    min us    50 % us   99 % us  99.9% us    max us"
		     "  made/s  ended/s");
		break;
	case PERF_PING:
		puts("test       bytes   messages    min us   50 % us   99 % us  99.9% us    max "
		     "us"
		     "      MB/s  messages/s");
		break;
	case PERF_GROUP:
		puts("test       bytes   messages      lost      MB/s  messages/s");
		break;
	default:
		puts("test       bytes   messages      MB/s  messages/s");
		break;
	}
}

static void print_connect(const struct perf_result *result)
{
	double n = (double)result->connections;

	printf("%-8s %10ld", perf_test_text(result->test), result->connections);
	print_times(&result->hist);
	printf(" %7.0f %8.0f\n", rate(n, result->begin_ns, result->connected_ns),
		rate(n, result->connected_ns, result->end_ns));
}

static void print_messages(const struct perf_options *options, const struct perf_result *result)
{
	printf("%-6s %9zu %10llu", perf_test_text(result->test), result->size,
		(unsigned long long)result->messages);
	if (result->test == PERF_PING)
		print_times(&result->hist);
	if (result->test == PERF_GROUP && options->group)
		printf(" %9llu", (unsigned long long)result->lost);
	else if (result->test == PERF_GROUP)
		printf(" %9s", "-");
	printf(" %9.2f %11.0f\n", bytes_per_s(result) / 1e6, messages_per_s(result));
}

/* --- for programs ---------------------------------------------------------------------------- */

static void print_json_times(const struct perf_hist *hist)
{
	static const struct {
		unsigned permille;
		const char *name;
	} quantiles[] = { { 500, "p50" }, { 900, "p90" }, { 990, "p99" }, { 999, "p99.9" } };

	printf(",\"us\":{\"min\":%.3f,\"mean\":%.3f", us(hist->min),
		hist->count ? us(hist->sum) / (double)hist->count : 0);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		printf(",\"%s\":%.3f", quantiles[i].name,
			us(perf_hist_quantile(hist, quantiles[i].permille)));
	printf(",\"max\":%.3f}", us(hist->max));
}

static void print_json_rates(const struct perf_result *result)
{
	if (result->test == PERF_CONNECT) {
		printf(",\"connect_s\":%.9f,\"disconnect_s\":%.9f",
			seconds(result->begin_ns, result->connected_ns),
			seconds(result->connected_ns, result->end_ns));
		return;
	}
	printf(",\"bytes\":%zu,\"window\":%ld,\"messages\":%llu,\"seconds\":%.9f"
	       ",\"bytes_per_s\":%.0f,\"messages_per_s\":%.0f",
		result->size, result->window, (unsigned long long)result->messages,
		seconds(result->begin_ns, result->end_ns), bytes_per_s(result),
		messages_per_s(result));
}

static void print_json(const struct perf_options *options, const struct perf_result *result)
{
	printf("{\"test\":\"%s\",\"connections\":%ld", perf_test_text(result->test),
		result->connections);
	print_json_rates(result);
	if (options->group)
		printf(",\"lost\":%llu", (unsigned long long)result->lost);
	if (result->hist.count)
		print_json_times(&result->hist);
	puts("}");
}

void perf_print(const struct perf_options *options, const struct perf_result *result, int first)
{
	if (options->json) {
		print_json(options, result);
		return;
	}
	if (first)
		print_heading(result->test);
	if (result->test == PERF_CONNECT)
		print_connect(result);
	else
		print_messages(options, result);
}
