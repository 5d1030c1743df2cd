#include "cmtime.h"
#include "options.h"

static const struct cmtime_options default_options = {
	.port = 7471,
	.connections = 100,
	.retries = 2,
	.timeout_ms = 2000,
	.patience_s = 60,
};

static const char usage[] =
	"usage: cmtime [-s server] [-b address] [-c connections] [-p port] [-r retries]\n"
	"              [-t milliseconds] [-T seconds] [-h]\n"
	"\t-s  be the client of this server; without it, be the server\n"
	"\t-b  use this address of this machine\n"
	"\t-c  connections of the client (100)\n"
	"\t-p  the port (7471)\n"
	"\t-r  how often an address or a route is looked for again (2)\n"
	"\t-t  milliseconds that one such look may take (2000)\n"
	"\t-T  seconds that connecting, and disconnecting, may take (60)\n"
	"\t-h  show this\n";

int cmtime_read_options(struct cmtime_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'b', .text = &options->bind },
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'r', 10, 0, 7, &options->retries },
		{ 't', 10, 1, 86400000, &options->timeout_ms },
		{ 'T', 10, 1, 86400, &options->patience_s },
		{ 0 },
	};
	const struct tool_command command = { CMTIME, usage, table };

	*options = default_options;
	return tool_read_options(&command, argc, argv);
}
