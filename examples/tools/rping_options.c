#include "rping.h"
#include "options.h"

/* Room for the longest head of a text; and what the stock tool takes. */
#define SIZE_MIN 23
#define SIZE_MAX_BYTES 65535

static const struct rping_options default_options = {
	.port = 7174,
	.size_bytes = 64,
	.timeout_s = 10,
};

static const char usage[] =
	"usage: rping -s [-a address] [options]\n"
	"       rping -c -a server [-I address] [options]\n"
	"\t-s  be the server\n"
	"\t-c  be the client\n"
	"\t-a  the address to listen on (any), or the server to connect to\n"
	"\t-I  connect from this address\n"
	"\t-p  the port (7174)\n"
	"\t-C  pings of the client, 0 for no end (0)\n"
	"\t-S  bytes of a ping, the same on both sides (64)\n"
	"\t-v  print what is sent and comes back\n"
	"\t-V  look whether it is the same\n"
	"\t-P  serve any number of clients, at once too, until interrupted\n"
	"\t-q  make the queue pair without the library's help\n"
	"\t-T  seconds that finding the server and connecting may take (10)\n"
	"\t-d  print each step\n"
	"\t-h  show this\n";

static int check(const struct rping_options *options)
{
	if (options->server == options->client)
		return tool_complain(RPING, "give either -s, be the server, or -c, be the client");
	if (options->client && !options->addr)
		return tool_complain(RPING, "-c needs -a: the server to connect to");
	if (options->client && options->persistent)
		return tool_complain(RPING, "-P is the server's");
	if (options->server && options->src)
		return tool_complain(RPING, "-I is the client's; a server listens on -a");
	return 0;
}

int rping_read_options(struct rping_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .flag = &options->server },
		{ 'c', .flag = &options->client },
		{ 'a', .text = &options->addr },
		{ 'I', .text = &options->src },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'C', 10, 0, 2147483647, &options->count },
		{ 'S', 10, SIZE_MIN, SIZE_MAX_BYTES, &options->size_bytes },
		{ 'v', .flag = &options->print },
		{ 'V', .flag = &options->verify },
		{ 'P', .flag = &options->persistent },
		{ 'q', .flag = &options->own_qp },
		{ 'T', 10, 1, 86400, &options->timeout_s },
		{ 'd', .flag = &options->debug },
		{ 0 },
	};
	const struct tool_command command = { RPING, usage, table };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	return ret ? ret : check(options);
}
