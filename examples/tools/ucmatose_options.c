#include "ucmatose.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static const struct ucmatose_options default_options = {
	.port_space = RDMA_PS_TCP,
	.port = 7471,
	.connections = 1,
	.messages = 10,
	.size_bytes = 100,
	.tos = -1,
	.ack_timeout = -1,
	.timeout_s = 10,
};

static void usage(FILE *to)
{
	fputs("usage: ucmatose [-s server] [-b address] [-f name|ip|ipv6|gid] [-P tcp|ib] [-p "
	      "port]\n"
	      "                [-c connections] [-C messages] [-S bytes] [-t tos] [-a "
	      "ack_timeout]\n"
	      "                [-T seconds] [-m] [-h]\n"
	      "\t-s  connect to this server; without it, be the server\n"
	      "\t-b  use this address of this machine\n"
	      "\t-f  the format of the addresses (name)\n"
	      "\t-P  the port space (tcp)\n"
	      "\t-p  the port (7471)\n"
	      "\t-c  connections, the same on both sides (1)\n"
	      "\t-C  messages each way on each connection, the same on both sides (10)\n"
	      "\t-S  bytes of a message, the same on both sides (100)\n"
	      "\t-t  the client's type of service\n"
	      "\t-a  time to wait for an acknowledgement, 4.096 us * 2^ack_timeout\n"
	      "\t-T  seconds that finding the server and connecting may take (10)\n"
	      "\t-m  move the connections to another event channel before they end\n"
	      "\t-h  show this\n",
		to);
}

static int read_format(struct ucmatose_options *options, const char *text)
{
	int format = address_format(text);

	if (format < 0)
		return tool_complain(
			UCMATOSE, "-f %s: no such format; give name, ip, ipv6 or gid", text);
	options->format = (enum address_format)format;
	return 0;
}

static int read_port_space(struct ucmatose_options *options, const char *text)
{
	if (!strcasecmp(text, "tcp"))
		options->port_space = RDMA_PS_TCP;
	else if (!strcasecmp(text, "ib"))
		options->port_space = RDMA_PS_IB;
	else
		return tool_complain(UCMATOSE, "-P %s: no such port space; give tcp or ib", text);
	return 0;
}

static int read_value(struct ucmatose_options *options, int option, const char *arg)
{
	const struct tool_number numbers[] = {
		{ 'p', 10, 1, 65535, &options->port },
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'C', 10, 0, 65536, &options->messages },
		{ 'S', 10, 0, 1 << 30, &options->size_bytes },
		{ 't', 0, 0, 255, &options->tos },
		{ 'a', 0, 0, 31, &options->ack_timeout },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 0 },
	};

	return tool_read_number(UCMATOSE, numbers, option, arg);
}

/* Returns 0, -1 after a complaint, or 1 for a bad option. */
static int read_option(struct ucmatose_options *options, int option, const char *arg)
{
	switch (option) {
	case 's':
		options->server = arg;
		return 0;
	case 'b':
		options->bind = arg;
		return 0;
	case 'f':
		return read_format(options, arg);
	case 'P':
		return read_port_space(options, arg);
	case 'm':
		options->migrate = 1;
		return 0;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	default:
		return read_value(options, option, arg);
	}
}

int ucmatose_read_options(struct ucmatose_options *options, int argc, char **argv)
{
	int option, ret = 0;

	*options = default_options;
	while (!ret && (option = getopt(argc, argv, "s:b:f:P:p:c:C:S:t:a:T:mh")) != -1)
		ret = read_option(options, option, optarg);
	if (!ret && optind < argc) {
		tool_complain(UCMATOSE, "%s: not an option", argv[optind]);
		ret = 1;
	}
	if (ret > 0)
		usage(stderr);
	if (!options->size_bytes)
		options->messages = 0;
	return ret;
}
