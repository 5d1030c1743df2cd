#include "udpong.h"
#include "common.h"
#include "options.h"
#include "remedy.h"
#include "stream_options.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct udpong_options default_options = {
	.port = 7174,
	.buffer_bytes = 512L << 10,
	.transfers = 1000,
	.size_bytes = 1000,
	.patience_s = 10,
};

static const char usage[] =
	"usage: udpong [-s server] [-b address] [-p port] [-B bytes] [-C transfers]\n"
	"              [-S bytes] [-w seconds] [-T test]... [-h]\n"
	"\t-s  send to this server; without it, be the server\n"
	"\t-b  use this address of this machine; a server without it, all of IPv4\n"
	"\t-p  the port (7174)\n"
	"\t-B  bytes of the buffers for sending and receiving (524288)\n"
	"\t-C  messages to send (1000)\n"
	"\t-S  bytes of a message, 16 to 2048 (1000)\n"
	"\t-w  give up when the server is silent for so many seconds, 0 for never (10)\n"
	"\t-T  s|sockets      UDP instead of RDMA\n"
	"\t    a|async        wait before each call\n"
	"\t    b|blocking     calls that wait themselves\n"
	"\t    n|nonblocking  wait when a call would (as without -T)\n"
	"\t    e|echo         have every message sent back\n"
	"\t-h  show this\n";

static int read_test(void *arg, const char *text)
{
	struct udpong_options *options = arg;
	int test = stream_read_test(UDPONG, text, "sabne");

	options->plain |= test == 's';
	options->async |= test == 'a';
	options->blocking |= test == 'b';
	options->echo |= test == 'e';
	return test < 0 ? -1 : 0;
}

static int read_options(struct udpong_options *options, int argc, char **argv)
{
	const struct tool_option table[] = {
		{ 's', .text = &options->server },
		{ 'b', .text = &options->bind },
		{ 'p', 10, 1, 65535, &options->port },
		{ 'B', 10, 1, 1 << 30, &options->buffer_bytes },
		{ 'C', 10, 1, 1 << 30, &options->transfers, .flag = &options->custom },
		{ 'S', 10, UDPONG_HEADER_BYTES, UDPONG_SIZE_MAX, &options->size_bytes,
			.flag = &options->custom },
		{ 'w', 10, 0, 86400, &options->patience_s },
		{ 'T', .read = read_test },
		{ 0 },
	};
	const struct tool_command command = { UDPONG, usage, table, .arg = options };
	int ret;

	*options = default_options;
	ret = tool_read_options(&command, argc, argv);
	if (!ret && options->async && options->blocking)
		ret = tool_complain(UDPONG, "-T a and -T b exclude each other; give one");
	return ret;
}

int udpong_open(struct udpong *test)
{
	struct udpong_options *options = &test->options;
	int bytes = (int)options->buffer_bytes;
	int ret = sock_open(&test->sock, options->plain, test->lookup.addr.ss_family, SOCK_DGRAM);

	if (ret)
		return tool_complain(
			UDPONG, "rsocket: %s%s", strerror(-ret), remedy_find(ret, options->plain));
	sock_set_int(&test->sock, SOL_SOCKET, SO_SNDBUF, bytes);
	sock_set_int(&test->sock, SOL_SOCKET, SO_RCVBUF, bytes);
	if (options->blocking)
		return 0;
	ret = sock_set_nonblocking(&test->sock);
	return ret ? tool_complain(UDPONG, "rfcntl O_NONBLOCK: %s", strerror(-ret)) : 0;
}

static int wait_for(struct udpong *test, short events, int timeout_ms)
{
	int ret = sock_poll(&test->sock, events, timeout_ms);

	if (ret == -EINTR)
		return 0;
	return ret ? ret < 0 ? ret : 0 : -ETIMEDOUT;
}

static int is_full(ssize_t len)
{
	return len == -EAGAIN || len == -EWOULDBLOCK || len == -EINTR;
}

static ssize_t send_once(struct udpong *test, const void *data, size_t len_bytes,
	const struct sockaddr_storage *to, socklen_t len)
{
	if (!to)
		return sock_send(&test->sock, data, len_bytes, 0);
	return sock_send_to(&test->sock, data, len_bytes, 0, (const struct sockaddr *)to, len);
}

ssize_t udpong_send(struct udpong *test, const void *data, size_t len_bytes,
	const struct sockaddr_storage *to, socklen_t len)
{
	ssize_t ret = test->options.async ? wait_for(test, POLLOUT, -1) : 0;

	while (ret >= 0) {
		ret = send_once(test, data, len_bytes, to, len);
		if (!is_full(ret))
			return ret;
		ret = wait_for(test, POLLOUT, -1);
	}
	return ret;
}

/* A call that waits itself has no end of its own, so that one with an end waits first. */
ssize_t udpong_recv(struct udpong *test, void *data, size_t len_bytes,
	struct sockaddr_storage *from, socklen_t *len, int timeout_ms)
{
	int first = test->options.async || (test->options.blocking && timeout_ms >= 0);
	ssize_t ret = first ? wait_for(test, POLLIN, timeout_ms) : 0;

	while (ret >= 0) {
		ret = sock_recv_from(&test->sock, data, len_bytes,
			timeout_ms >= 0 ? MSG_DONTWAIT : 0, from, len);
		if (!is_full(ret))
			return ret;
		ret = wait_for(test, POLLIN, timeout_ms);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct udpong test = { .sock = SOCK_NONE };
	int status = EXIT_FAILURE;

	if (read_options(&test.options, argc, argv))
		return EXIT_FAILURE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	test.lookup = (struct lookup){ .name = UDPONG,
		.server = test.options.server,
		.bind = test.options.bind,
		.port = test.options.port,
		.type = SOCK_DGRAM };
	if (!lookup_run(&test.lookup) && !udpong_open(&test))
		status = test.options.server ? udpong_run(&test) : udpong_serve(&test);
	sock_close(&test.sock);
	return tool_end_output(UDPONG, status);
}
