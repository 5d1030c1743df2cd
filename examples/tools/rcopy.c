#include "rcopy.h"
#include "common.h"
#include "options.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: rcopy [-p port] [-d folder] [-w seconds] [-h]\n"
	"       rcopy source server[:destination] [-p port] [-w seconds] [-h]\n"
	"\tsource       the file to copy to the server; without it, be the server\n"
	"\tserver       a name or an address, one of IPv6 in brackets\n"
	"\tdestination  what the file is called there (as here)\n"
	"\t-p  the port (7427)\n"
	"\t-d  the folder that a server keeps files in (the current one)\n"
	"\t-w  give up after so many seconds of silence, 0 for never (30)\n"
	"\t-h  show this\n";

static int is_ipv6(const char *text)
{
	struct in6_addr addr;

	return inet_pton(AF_INET6, text, &addr) == 1;
}

/* Cuts [server]:destination and server:destination at the colon. */
static int read_server(struct rcopy_options *options, char *text)
{
	char *end = *text == '[' ? strchr(text, ']') : NULL;

	options->server = text;
	options->destination = options->source;
	if (!end && is_ipv6(text))
		return 0;
	if (end) {
		options->server = text + 1;
		*end++ = '\0';
	} else {
		end = strchr(text, ':');
	}
	if (end && *end == ':') {
		*end = '\0';
		options->destination = end + 1;
	}
	if (!*options->server || !*options->destination)
		return tool_complain(RCOPY,
			"no server, or no destination after a colon; give server:destination");
	return 0;
}

static int read_words(void *arg, int n, char **words)
{
	struct rcopy_options *options = arg;

	if (!n)
		return 0;
	if (n != 2) {
		tool_complain(RCOPY, n == 1 ? "%s: a source, but no server" : "%s: not an option",
			words[n == 1 ? 0 : 2]);
		return 1;
	}
	options->source = words[0];
	return read_server(options, words[1]);
}

static int read_options(struct rcopy_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 'p', 10, 1, 65535, &options->port },
		{ 'd', .text = &options->folder },
		{ 'w', 10, 0, 86400, &options->patience_s },
		{ 0 },
	};
	const struct tool_command command = { RCOPY, usage, table, read_words, options };
	int ret;

	*options = (struct rcopy_options){ .port = 7427, .patience_s = 30 };
	ret = tool_read_options(&command, argc, argv);
	if (!ret && options->source && options->folder)
		return tool_complain(RCOPY, "-d is the server's; give a destination instead");
	if (!options->folder)
		options->folder = ".";
	return ret;
}

int main(int argc, char **argv)
{
	struct rcopy_options options;

	if (read_options(&options, argc, argv))
		return EXIT_FAILURE;
	signal(SIGPIPE, SIG_IGN);
	return options.source ? rcopy_copy(&options) : rcopy_serve(&options);
}
