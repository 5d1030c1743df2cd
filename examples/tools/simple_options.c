#include "simple.h"
#include "options.h"

#include <stdio.h>

static const struct simple_options default_options = {
	.port = 7471,
	.timeout_s = 10,
};

static void write_usage(const struct simple_kind *kind, char *text, size_t size)
{
	const char *server = kind->is_client ? "connect to this server (127.0.0.1)" :
					       "listen on this address (any)";
	const char *pair = kind->has_xrc ?
		"\t-c  the kind of queue pair: reliable, or with XRC (r)\n" : "";

	snprintf(text, size,
		"usage: %s [-s address] [-p port]%s [-T seconds] [-h]\n"
		"\t-s  %s\n"
		"\t-p  the port (7471)\n"
		"%s"
		"\t-T  seconds that finding the other side and connecting may take (10)\n"
		"\t-h  show this\n",
		kind->name, *pair ? " [-c r|x]" : "", server, pair);
}

/* Of a word the first letter counts, large or small. */
static int read_pair(void *arg, const char *text)
{
	struct simple *test = arg;

	switch (text[0]) {
	case 'r':
	case 'R':
		test->options.xrc = 0;
		return 0;
	case 'x':
	case 'X':
		test->options.xrc = 1;
		return 0;
	default:
		return tool_complain(test->kind->name,
			"-c %s: no such kind of queue pair; give r or x", text);
	}
}

int simple_read_options(struct simple *test, int argc, char **argv)
{
	struct simple_options *options = &test->options;
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ test->kind->has_xrc ? 'c' : 0, .read = read_pair },
		{ 0 },
	};
	char usage[512];
	const struct tool_command command = { test->kind->name, usage, table, .arg = test };

	write_usage(test->kind, usage, sizeof(usage));
	*options = default_options;
	return tool_read_options(&command, argc, argv);
}
