#include "stream_options.h"
#include "common.h"
#include "options.h"
#include "watch.h"

#include <string.h>
#include <strings.h>

static const struct stream_options default_options = {
	.port = 7471,
	.buffer_bytes = 512L << 10,
	.inline_bytes = -1,
	.patience_s = 30,
	.size_bytes = 1000,
	.transfers = 1000,
	.iterations = 1,
};

/* The least that a text has, and the longest that it may be. */
static const struct {
	char letter;
	const char *stem;
	const char *word;
} tests[] = {
	{ 's', "socket", "sockets" },
	{ 'a', "async", "async" },
	{ 'b', "block", "blocking" },
	{ 'f', "fork", "fork" },
	{ 'n', "nonblock", "nonblocking" },
	{ 'r', "resolve", "resolve" },
	{ 'v', "verify", "verify" },
	{ 'e', "echo", "echo" },
};

static int names_test(size_t i, const char *text)
{
	if (strlen(text) == 1)
		return *text == tests[i].letter;
	return !strncasecmp(text, tests[i].stem, strlen(tests[i].stem)) &&
	       !strncasecmp(text, tests[i].word, strlen(text));
}

int stream_read_test(const char *name, const char *text, const char *allowed)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (names_test(i, text) && strchr(allowed, tests[i].letter))
			return tests[i].letter;
	return tool_complain(
		name, "-T %s: no such test; give one of the letters %s", text, allowed);
}

static int read_test(void *arg, const char *text)
{
	struct stream_options *options = arg;
	int test = stream_read_test(options->name, text, options->tests);

	switch (test) {
	case 'f':
		options->fork = options->plain = 1;
		return 0;
	case 's':
		options->plain = 1;
		return 0;
	case 'a':
		options->async = 1;
		return 0;
	case 'r':
		options->resolve = 1;
		return 0;
	case 'v':
		options->verify = 1;
		return 0;
	default:
		options->blocking = test == 'b';
		return test < 0 ? -1 : 0;
	}
}

static int read_size(void *arg, const char *text)
{
	struct stream_options *options = arg;

	if (strcasecmp(text, "all"))
		return 1;
	options->all = 1;
	return 0;
}

static int check(const struct stream_options *options)
{
	if (options->all && options->custom)
		return tool_complain(options->name,
			"-S all runs a series of its own; leave out -I, -C and other -S");
	if (options->async && options->blocking)
		return tool_complain(options->name, "-T a and -T b exclude each other; give one");
	if (options->plain && (options->resolve || options->format == ADDRESS_GID))
		return tool_complain(options->name,
			"-T s and -T f are for TCP, which has no -T r and no -f gid");
	return 0;
}

int stream_read_options(
	struct stream_options *options, const struct stream_tool *tool, int argc, char **argv)
{
	int *custom = &options->custom;
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'b', .text = &options->bind },
		{ 'f', .format = &options->format },
		{ 'B', 10, 1, 1 << 30, &options->buffer_bytes },
		{ 'i', 10, 0, 65534, &options->inline_bytes },
		{ 'I', 10, 1, 1 << 30, &options->iterations, .flag = custom },
		{ 'C', 10, 1, 1 << 30, &options->transfers, .flag = custom },
		{ 'S', 10, 1, 1 << 30, &options->size_bytes, .flag = custom, .read = read_size },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'w', 10, 0, 86400, &options->patience_s },
		{ 'T', .read = read_test },
		{ tool->has_keepalive ? 'k' : 0, 10, 1, 32767, &options->keepalive_s },
		{ 0 },
	};
	const struct tool_command command = { tool->name, tool->usage, table, .arg = options };

	*options = default_options;
	options->name = tool->name;
	options->tests = tool->tests;
	return tool_read_options(&command, argc, argv) ? -1 : check(options);
}

void stream_watch(const struct stream_options *options)
{
	watch_start(options->name, options->patience_s,
		"see whether the other side is there, and has the same -S, -C, -I and -T v");
}
