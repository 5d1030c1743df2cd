#include "rcopy.h"
#include "common.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void usage(FILE *to)
{
	fputs("usage: rcopy [-p port] [-d folder] [-w seconds] [-h]\n"
	      "       rcopy source server[:destination] [-p port] [-w seconds] [-h]\n"
	      "\tsource       the file to copy to the server; without it, be the server\n"
	      "\tserver       a name or an address, one of IPv6 in brackets\n"
	      "\tdestination  what the file is called there (as here)\n"
	      "\t-p  the port (7427)\n"
	      "\t-d  the folder that a server keeps files in (the current one)\n"
	      "\t-w  give up after so many seconds of silence, 0 for never (30)\n"
	      "\t-h  show this\n",
		to);
}

/* Returns 0, -1 after a complaint, or 1 for a bad option. */
static int read_option(struct rcopy_options *options, int option, const char *arg)
{
	const struct tool_number numbers[] = {
		{ 'p', 10, 1, 65535, &options->port },
		{ 'w', 10, 0, 86400, &options->patience_s },
		{ 0 },
	};

	switch (option) {
	case 'd':
		options->folder = arg;
		return 0;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	default:
		return tool_read_number(RCOPY, numbers, option, arg);
	}
}

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

static int read_words(struct rcopy_options *options, int n, char **words)
{
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
	int option, ret = 0;

	*options = (struct rcopy_options){ .port = 7427, .patience_s = 30 };
	while (!ret && (option = getopt(argc, argv, "p:d:w:h")) != -1)
		ret = read_option(options, option, optarg);
	if (!ret)
		ret = read_words(options, argc - optind, argv + optind);
	if (ret > 0)
		usage(stderr);
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
