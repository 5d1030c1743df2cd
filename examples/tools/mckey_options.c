#include "mckey.h"
#include "options.h"

#include <rdma/rdma_cma.h>

static const struct mckey_options default_options = {
	.port_space = RDMA_PS_UDP,
	.connections = 1,
	.messages = 10,
	.size_bytes = 100,
	.timeout_s = 10,
	.pause_s = 3,
};

static const char usage[] =
	"usage: mckey -m group [-s] [-b address] [-c connections] [-C messages] [-S bytes]\n"
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
	"\t-h  show this\n";

/* Of -m and -M the last one counts. */
static int read_address(void *arg, const char *text)
{
	struct mckey_options *options = arg;

	options->raw_gid = 0;
	return 1;
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
	const struct tool_option table[] = {
		{ 'm', .text = &options->group, .read = read_address },
		{ 'M', .text = &options->group, .flag = &options->raw_gid },
		{ 's', .flag = &options->sender },
		{ 'b', .text = &options->bind },
		{ 'c', 10, 1, 32767, &options->connections },
		{ 'C', 10, 0, 65536, &options->messages },
		{ 'S', 10, 0, 1 << 16, &options->size_bytes },
		{ 'p', 0, 0, 0xffff, &options->port_space },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 'o', .flag = &options->send_only },
		{ 'l', .flag = &options->no_loopback },
		{ 0 },
	};
	const struct tool_command command = { MCKEY, usage, table, .arg = options };

	*options = default_options;
	if (tool_read_options(&command, argc, argv))
		return -1;
	if (!options->size_bytes)
		options->messages = 0;
	return check_options(options);
}
