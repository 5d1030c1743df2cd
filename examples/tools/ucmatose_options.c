#include "ucmatose.h"
#include "options.h"

#include <strings.h>

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

static const char usage[] =
	"usage: ucmatose [-s server] [-b address] [-f name|ip|ipv6|gid] [-P tcp|ib] [-p "
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
	"\t-h  show this\n";

static int read_port_space(void *arg, const char *text)
{
	struct ucmatose_options *options = arg;

	if (!strcasecmp(text, "tcp"))
		options->port_space = RDMA_PS_TCP;
	else if (!strcasecmp(text, "ib"))
		options->port_space = RDMA_PS_IB;
	else
		return tool_complain(UCMATOSE, "-P %s: no such port space; give tcp or ib", text);
	return 0;
}

int ucmatose_read_options(struct ucmatose_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'b', .text = &options->bind },
		{ 'f', .format = &options->format },
		{ 'P', .read = read_port_space },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'C', 10, 0, 65536, &options->messages },
		{ 'S', 10, 0, 1 << 30, &options->size_bytes },
		{ 't', 0, 0, 255, &options->tos },
		{ 'a', 0, 0, 31, &options->ack_timeout },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 'm', .flag = &options->migrate },
		{ 0 },
	};
	const struct tool_command command = { UCMATOSE, usage, table, .arg = options };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	if (!options->size_bytes)
		options->messages = 0;
	return ret;
}
