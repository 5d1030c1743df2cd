/* riostream: data written straight into the other side's memory, which looks for the last byte. */
#include "stream.h"
#include "common.h"
#include "drive.h"
#include "watch.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

/* How often the last byte is looked at before anybody else gets a turn. */
#define LOOKS 2000

static const char usage[] =
	"usage: riostream [-s server] [-b address] [-f name|ip|ipv6|gid] [-p port] [-B "
	"bytes]\n"
	"                 [-i bytes] [-I iterations] [-C transfers] [-S bytes|all]\n"
	"                 [-w seconds] [-T test]... [-h]\n"
	"\t-s  connect to this server; without it, be the server\n"
	"\t-b  use this address of this machine; a server without it, all of IPv4\n"
	"\t-f  the format of the addresses (name)\n"
	"\t-p  the port (7471)\n"
	"\t-B  bytes of the buffers for sending and receiving (524288)\n"
	"\t-i  bytes that may go inside of a work request\n"
	"\t-I  iterations of so many transfers each way (1)\n"
	"\t-C  transfers in an iteration (1000)\n"
	"\t-S  bytes of a transfer (1000), or all for a series of all sizes\n"
	"\t-w  give up when nothing moved for so many seconds, 0 for never (30)\n"
	"\t-T  a|async        wait in an event loop before each call\n"
	"\t    b|blocking     calls that wait themselves\n"
	"\t    n|nonblocking  wait in an event loop when a call would (as without -T)\n"
	"\t    v|verify       check the data\n"
	"\t-h  show this\n";

static const struct stream_tool tool = {
	.name = "riostream",
	.tests = "abnv",
	.usage = usage,
};

/* Both sides map the one memory that they also write from. */
static int prepare(struct stream *test, struct sock *sock)
{
	int ret = sock_set_int(sock, SOL_RDMA, RDMA_IOMAPSIZE, 1);

	return ret ? stream_fail(test, "rsetsockopt RDMA_IOMAPSIZE", ret) : 0;
}

static volatile uint8_t *last_byte(struct stream *test)
{
	return test->data + test->run.what.size_bytes - 1;
}

/* A side that has no room for a mapping is no riostream. */
static int fail_map(struct stream *test, int err)
{
	if (err != -ENOSPC)
		return stream_fail(test, "riomap", err);
	return tool_complain(tool.name,
		"riomap: the other side takes no mapping; see whether it is riostream (rstream "
		"takes none)");
}

/* Before the greetings, so that the other side knows the mapping with the first of them. */
static int begin(struct stream *test)
{
	*last_byte(test) = (uint8_t)(test->marker - 1);
	if (riomap(test->sock.fd, test->data, (size_t)test->run.what.size_bytes, PROT_WRITE, 0,
		    0) == -1)
		return fail_map(test, -errno);
	return 0;
}

static int end(struct stream *test)
{
	if (riounmap(test->sock.fd, test->data, (size_t)test->run.what.size_bytes))
		return stream_fail(test, "riounmap", -errno);
	return 0;
}

static int is_last(const struct stream *test)
{
	return test->run.message == test->run.what.transfers - 1;
}

/* The last transfer of a turn carries the data, and the marker behind it. */
static void fill(struct stream *test)
{
	if (!is_last(test) || !run_is_first_try(&test->run))
		return;
	if (test->options.verify)
		counting_fill(&test->sent, test->data, (size_t)test->run.what.size_bytes - 1);
	*last_byte(test) = test->marker++;
}

static int send_some(struct stream *test)
{
	struct run *run = &test->run;
	ssize_t len;

	if (test->options.async && !run->waited) {
		run->waited = 1;
		return DRIVE_WRITE;
	}
	fill(test);
	len = (ssize_t)riowrite(test->sock.fd, test->data + run->offset,
		(size_t)(run->what.size_bytes - run->offset), run->offset, 0);
	if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return DRIVE_WRITE;
	if (len < 0)
		return stream_fail(test, "riowrite", -errno);
	watch_progress();
	run->waited = 0;
	run->offset += len;
	return run->offset == run->what.size_bytes ? run_next(test) : 0;
}

static int verify(struct stream *test)
{
	size_t len = (size_t)test->run.what.size_bytes - 1;

	if (!test->options.verify)
		return 0;
	return counting_check(&test->received, test->data, len) == len ? 0 : run_fail_data(test);
}

/* Nothing but the memory says that data came; that the other side has gone, the socket does. */
static int look_at_socket(struct stream *test)
{
	uint8_t byte;
	ssize_t len = sock_recv(&test->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	sched_yield();
	if (len == -EAGAIN || len == -EWOULDBLOCK || len == -EINTR)
		return DRIVE_AGAIN;
	if (*last_byte(test) == test->marker)
		return 0;
	if (len < 0)
		return stream_fail(test, "rrecv", (int)len);
	return tool_complain(tool.name,
		"the other side ended in the middle of a run; see what it says, and give both "
		"the same options");
}

static int receive(struct stream *test)
{
	volatile uint8_t *last = last_byte(test);
	int looks = 0;

	while (*last != test->marker && looks++ < LOOKS)
		;
	if (*last != test->marker)
		return look_at_socket(test);
	__sync_synchronize();
	test->marker++;
	watch_progress();
	test->run.message = test->run.what.transfers - 1;
	return verify(test) ? DRIVE_FAILED : run_next(test);
}

static int move(struct stream *test)
{
	return run_is_sending(test) ? send_some(test) : receive(test);
}

int main(int argc, char **argv)
{
	static const struct stream_ops ops = {
		.prepare = prepare, .begin = begin, .move = move, .end = end
	};
	struct stream test = { .ops = &ops };

	if (stream_read_options(&test.options, &tool, argc, argv))
		return EXIT_FAILURE;
	return stream_main(&test);
}
