#include "options.h"
#include "perf.h"

#include <string.h>

static const struct perf_options default_options = {
	.test = PERF_PING,
	.size = 64,
	.count = 1000,
	.window = 64,
	.connections = 1,
	.port = 7474,
	.patience_s = 10,
};

static const char usage[] =
	"usage: evrdma-perf [-b address] [-p port] [-e microseconds] [-T seconds]\n"
	"       evrdma-perf -s server [-t test] [-S bytes] [-C messages] [-w window]\n"
	"                   [-n connections] [-i connections] [-b address] [-p port]\n"
	"                   [-e microseconds] [-T seconds] [-J]\n"
	"       evrdma-perf -m group [-b address] [-p port] [-e microseconds]\n"
	"                   [-T seconds] [-J]\n"
	"       evrdma-perf -h\n"
	"\t-s  be the client of this server, or with -t group, the sender to this group\n"
	"\t-m  be a receiver of this group; without -s and -m, be the server\n"
	"\t-t  ping (the default): messages there and back, one at a time\n"
	"\t    send: messages one way\n"
	"\t    write, read: the server's memory, by RDMA\n"
	"\t    connect: connections that are made and ended\n"
	"\t    group: datagrams to a multicast group\n"
	"\t-S  bytes of a message (64), or all: 1, 2, 4 and so on to 1048576\n"
	"\t-C  messages of each connection (1000)\n"
	"\t-w  how many are under way at once (64); a ping has one; so many\n"
	"\t    connections are made at a time\n"
	"\t-n  connections at once (1)\n"
	"\t-i  so many more, on which nothing is sent (0)\n"
	"\t-b  use this address of this machine\n"
	"\t-p  the port (7474)\n"
	"\t-e  poll for so many microseconds before sleeping (0)\n"
	"\t-T  seconds without progress that end it (10)\n"
	"\t-J  the results as JSON, an object in each line\n"
	"\t-h  show this\n";

static const char *const test_texts[PERF_TESTS] = {
	[PERF_PING] = "ping",
	[PERF_SEND] = "send",
	[PERF_WRITE] = "write",
	[PERF_READ] = "read",
	[PERF_CONNECT] = "connect",
	[PERF_GROUP] = "group",
};

const char *perf_test_text(enum perf_test test)
{
	return test_texts[test];
}

static int read_test(void *arg, const char *text)
{
	struct perf_options *options = arg;

	for (int test = 0; test < PERF_TESTS; test++)
		if (!strcmp(text, test_texts[test])) {
			options->test = test;
			options->describes_run = 1;
			return 0;
		}
	return tool_complain(
		PERF, "-t %s: no such test; give ping, send, write, read, connect or group", text);
}

static int read_size(void *arg, const char *text)
{
	struct perf_options *options = arg;

	options->all_sizes = !strcmp(text, "all");
	if (!options->all_sizes)
		return 1;
	options->size = PERF_ALL_SIZES_MAX;
	options->describes_run = 1;
	return 0;
}

/* What would be ignored is a mistake of who gave it. */
static int check(const struct perf_options *options)
{
	if (options->server && options->group)
		return tool_complain(PERF, "-s and -m: be either the sender or a receiver");
	if (options->group && options->describes_run)
		return tool_complain(PERF,
			"-t, -S, -C, -w, -n and -i: a receiver takes what its sender sends; leave "
			"them out");
	if (!options->server && (options->describes_run || (options->json && !options->group)))
		return tool_complain(PERF,
			"-t, -S, -C, -w, -n, -i and -J: the server runs what its "
			"clients ask for; give -s");
	if (options->all_sizes && options->test == PERF_CONNECT)
		return tool_complain(PERF, "-S all: -t connect sends no messages");
	if (options->all_sizes && options->test == PERF_GROUP)
		return tool_complain(PERF, "-S all: give -t group one size");
	if (options->test == PERF_GROUP && options->size < PERF_GROUP_SIZE_MIN)
		return tool_complain(PERF, "-S %ld: a datagram is numbered; give at least %d",
			options->size, PERF_GROUP_SIZE_MIN);
	if (options->test == PERF_GROUP && (options->connections > 1 || options->idle))
		return tool_complain(PERF, "-n, -i: a sender to a group has no connections");
	if (options->test == PERF_CONNECT && options->idle)
		return tool_complain(
			PERF, "-i: -t connect sends nothing on any; give their number with -n");
	return 0;
}

int perf_read_options(struct perf_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'm', .text = &options->group },
		{ 'b', .text = &options->bind },
		{ 't', .read = read_test },
		{ 'S', 10, 1, PERF_SIZE_MAX, &options->size, .flag = &options->describes_run,
			.read = read_size, .word = "all" },
		{ 'C', 10, 1, 1000000000, &options->count, .flag = &options->describes_run },
		{ 'w', 10, 1, PERF_WINDOW_MAX, &options->window, .flag = &options->describes_run },
		{ 'n', 10, 1, 32767, &options->connections, .flag = &options->describes_run },
		{ 'i', 10, 0, 32767, &options->idle, .flag = &options->describes_run },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'e', 10, 0, 1000000, &options->spin_us },
		{ 'T', 10, 1, 86400, &options->patience_s },
		{ 'J', .flag = &options->json },
		{ 0 },
	};
	const struct tool_command command = { PERF, usage, table, .arg = options };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	return ret ? ret : check(options);
}
