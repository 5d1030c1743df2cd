#include "mckey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static const struct mckey_options default_options = {
	.port_space = RDMA_PS_UDP,
	.connections = 1,
	.messages = 10,
	.size_bytes = 100,
	.timeout_s = 10,
	.pause_s = 3,
};

static void usage(FILE *to)
{
	fputs("usage: mckey -m group [-s] [-b address] [-c connections] [-C messages] [-S bytes]\n"
	      "             [-p port_space] [-T seconds] [-o] [-l] [-h]\n"
	      "       mckey -M gid -b address [the other options]\n"
	      "\t-m  the address of the group\n"
	      "\t-M  the GID of the group on InfiniBand, 0 for an assigned one\n"
	      "\t-s  send to the group; without it, receive\n"
	      "\t-b  use this address of this machine\n"
	      "\t-c  endpoints that join the group (1)\n"
	      "\t-C  messages that each endpoint sends, or waits for (10)\n"
	      "\t-S  bytes of a message, the same on both sides (100)\n"
	      "\t-p  the port space, 0x0111 for UDP or 0x0002 for IPoIB (0x0111)\n"
	      "\t-T  seconds that joining may take (10)\n"
	      "\t-o  join as a member that only sends (with -s)\n"
	      "\t-l  keep own messages from coming back to this machine\n"
	      "\t-h  show this\n",
		to);
}

static int read_value(struct mckey_options *options, int option, const char *arg)
{
	const struct tool_number numbers[] = {
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'C', 10, 0, 65536, &options->messages },
		{ 'S', 10, 0, 1 << 16, &options->size_bytes },
		{ 'p', 0, 0, 0xffff, &options->port_space },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 0 },
	};

	return tool_read_number(MCKEY, numbers, option, arg);
}

/* Returns 0, -1 after a complaint, or 1 for a bad option. */
static int read_option(struct mckey_options *options, int option, const char *arg)
{
	switch (option) {
	case 'm':
	case 'M':
		options->group = arg;
		options->raw_gid = option == 'M';
		return 0;
	case 's':
		options->sender = 1;
		return 0;
	case 'b':
		options->bind = arg;
		return 0;
	case 'o':
		options->send_only = 1;
		return 0;
	case 'l':
		options->no_loopback = 1;
		return 0;
	case 'h':
		usage(stdout);
		exit(EXIT_SUCCESS);
	default:
		return read_value(options, option, arg);
	}
}

static int check_options(const struct mckey_options *options)
{
	if (!options->group)
		return tool_complain(MCKEY, "no group to join; give one with -m");
	if (options->raw_gid && !options->bind)
		return tool_complain(
			MCKEY, "-M needs -b; give the address of the device that is to join");
	if (options->send_only && !options->sender)
		return tool_complain(
			MCKEY, "-o needs -s: a member that only sends would wait for ever; add -s");
	if (options->port_space != RDMA_PS_UDP && options->port_space != RDMA_PS_IPOIB)
		return tool_complain(MCKEY,
			"-p 0x%04lx: no port space of datagrams; give 0x0111 "
			"(UDP) or 0x0002 (IPoIB)",
			(unsigned long)options->port_space);
	return 0;
}

int mckey_read_options(struct mckey_options *options, int argc, char **argv)
{
	int option, ret = 0;

	*options = default_options;
	while (!ret && (option = getopt(argc, argv, "m:M:sb:c:C:S:p:T:olh")) != -1)
		ret = read_option(options, option, optarg);
	if (!ret && optind < argc) {
		tool_complain(MCKEY, "%s: not an option", argv[optind]);
		ret = 1;
	}
	if (ret > 0)
		usage(stderr);
	if (!options->size_bytes)
		options->messages = 0;
	return ret ? -1 : check_options(options);
}
