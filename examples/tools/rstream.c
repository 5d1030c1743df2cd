/* rstream: streams of rsockets, or of TCP. */
#include "stream.h"

#include <stdlib.h>

static const char usage[] =
	"usage: rstream [-s server] [-b address] [-f name|ip|ipv6|gid] [-p port] [-B bytes]\n"
	"               [-i bytes] [-I iterations] [-C transfers] [-S bytes|all] [-k "
	"seconds]\n"
	"               [-w seconds] [-T test]... [-h]\n"
	"\t-s  connect to this server; without it, be the server\n"
	"\t-b  use this address of this machine; a server without it, all of IPv4\n"
	"\t-f  the format of the addresses (name)\n"
	"\t-p  the port (7471)\n"
	"\t-B  bytes of the buffers for sending and receiving (524288)\n"
	"\t-i  bytes that may go inside of a work request\n"
	"\t-I  iterations of so many transfers each way (1)\n"
	"\t-C  transfers in an iteration (1000)\n"
	"\t-S  bytes of a transfer (1000), or all for a series of all sizes\n"
	"\t-k  look for a peer that is gone after so many seconds of silence\n"
	"\t-w  give up when nothing moved for so many seconds, 0 for never (30)\n"
	"\t-T  s|sockets      TCP instead of RDMA\n"
	"\t    a|async        wait in an event loop before each call\n"
	"\t    b|blocking     calls that wait themselves\n"
	"\t    f|fork         a process for each connection, over TCP\n"
	"\t    n|nonblocking  wait in an event loop when a call would (as without -T)\n"
	"\t    r|resolve      find the address with the RDMA CM\n"
	"\t    v|verify       check the data\n"
	"\t-h  show this\n";

static const struct stream_tool tool = {
	.name = "rstream",
	.tests = "sabfnrv",
	.usage = usage,
	.has_keepalive = 1,
};

int main(int argc, char **argv)
{
	static const struct stream_ops ops;
	struct stream test = { .ops = &ops };

	if (stream_read_options(&test.options, &tool, argc, argv))
		return EXIT_FAILURE;
	return stream_main(&test);
}
