#include "udaddy.h"
#include "options.h"

#include <strings.h>

#include <rdma/rdma_cma.h>

static const struct udaddy_options default_options = {
	.port_space = RDMA_PS_UDP,
	.connections = 1,
	.messages = 10,
	.size_bytes = 100,
	.timeout_s = 10,
};

static const char usage[] =
	"usage: udaddy [-s server] [-b address] [-f name|ip|ipv6|gid] [-P udp|ipoib]\n"
	"              [-p port_space] [-c connections] [-C messages] [-S bytes]\n"
	"              [-T seconds] [-h]\n"
	"\t-s  be the client of this server; without it, be the server\n"
	"\t-b  use this address of this machine\n"
	"\t-f  the format of the addresses (name)\n"
	"\t-P  the port space (udp)\n"
	"\t-p  the port space as a number (0x111)\n"
	"\t-c  endpoints, the same on both sides (1)\n"
	"\t-C  messages each way on each endpoint, the same on both sides (10)\n"
	"\t-S  bytes of a message, the same on both sides (100)\n"
	"\t-T  seconds that finding the server, and each wait for a message, may take (10)\n"
	"\t-h  show this\n";

static int read_port_space(void *arg, const char *text)
{
	struct udaddy_options *options = arg;

	if (!strcasecmp(text, "udp"))
		options->port_space = RDMA_PS_UDP;
	else if (!strcasecmp(text, "ipoib"))
		options->port_space = RDMA_PS_IPOIB;
	else
		return tool_complain(UDADDY, "-P %s: no such port space; give udp or ipoib", text);
	return 0;
}

static int refuse_tos(void *arg, const char *text)
{
	return tool_complain(UDADDY, "-t: datagrams have no type of service here; leave -t out");
}

static int check(const struct udaddy_options *options)
{
	if (options->port_space != RDMA_PS_UDP && options->port_space != RDMA_PS_IPOIB)
		return tool_complain(UDADDY,
			"-p 0x%04lx: no port space of datagrams; give 0x0111 or 0x0002",
			(unsigned long)options->port_space);
	return 0;
}

int udaddy_read_options(struct udaddy_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'b', .text = &options->bind },
		{ 'f', .format = &options->format },
		{ 'P', .read = read_port_space },
		{ 'p', 0, 1, 65535, &options->port_space },
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'C', 10, 0, 65536, &options->messages },
		{ 'S', 10, 0, 65536, &options->size_bytes },
		{ 't', .read = refuse_tos },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 0 },
	};
	const struct tool_command command = { UDADDY, usage, table, .arg = options };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	return ret ? ret : check(options);
}
