#include "cmtime.h"
#include "options.h"

static const struct cmtime_options default_options = {
	.port = 7471,
	.connections = 100,
	.retries = 2,
	.timeout_ms = 2000,
	.patience_s = 60,
	.fake_us = -1,
	.first_qpn = -1,
	.threads = 1,
};

static const char usage[] =
	"usage: cmtime [-s server] [-b address | -B interface] [-c connections] [-p port]\n"
	"              [-r retries] [-t milliseconds] [-T seconds] [-n threads]\n"
	"              [-m microseconds [-q number] | -S] [-h]\n"
	"\t-s  be the client of this server; without it, be the server\n"
	"\t-b  use this address of this machine\n"
	"\t-B  use the first address of this interface\n"
	"\t-c  connections of the client (100)\n"
	"\t-p  the port (7471)\n"
	"\t-r  how often an address or a route is looked for again (2)\n"
	"\t-t  milliseconds that one such look may take (2000)\n"
	"\t-T  seconds that connecting, and disconnecting, may take (60)\n"
	"\t-n  threads, each with its share of the connections (1)\n"
	"\t-m  make no queue pairs: wait so long for each\n"
	"\t-q  the first number of those (1000)\n"
	"\t-S  do it over TCP\n"
	"\t-h  show this\n";

static int check(struct cmtime_options *options)
{
	if (options->bind && options->interface)
		return tool_complain(CMTIME, "-b and -B: give one of them");
	if (options->tcp && options->fake_us >= 0)
		return tool_complain(CMTIME, "-S and -m: there are no queue pairs over TCP");
	if (options->first_qpn >= 0 && options->fake_us < 0)
		return tool_complain(CMTIME, "-q is of the queue pairs of -m; give that too");
	if (options->first_qpn < 0)
		options->first_qpn = 1000;
	return 0;
}

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
		{ 'B', .text = &options->interface },
		{ 'm', 10, 0, 10000000, &options->fake_us },
		{ 'q', 0, 2, 0xffffff, &options->first_qpn },
		{ 'n', 10, 1, 256, &options->threads },
		{ 'S', .flag = &options->tcp },
		{ 0 },
	};
	const struct tool_command command = { CMTIME, usage, table };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	return ret ? ret : check(options);
}
