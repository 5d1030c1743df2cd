#include "stream.h"
#include "common.h"
#include "drive.h"
#include "remedy.h"
#include "watch.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

/* Up to this size a message of a latency run goes inside of its work request. */
#define INLINE_BYTES 64

int stream_fail(const struct stream *test, const char *what, int err)
{
	return tool_complain(test->options.name, "%s: %s%s", what, strerror(-err),
		remedy_find(err, test->options.plain));
}

static int fail_at(struct stream *test, const char *what, int err)
{
	const struct stream_options *options = &test->options;
	const char *remedy =
		options->server ? remedy_find_client(err, options->plain)
				: remedy_find_server(err, options->plain, options->bind != NULL);
	char addr[ADDRESS_TEXT_MAX];

	return tool_complain(options->name, "%s %s: %s%s", what,
		address_text(addr, (const struct sockaddr *)&test->lookup.addr), strerror(-err),
		remedy);
}

static long inline_bytes(const struct stream *test)
{
	if (test->options.inline_bytes >= 0)
		return test->options.inline_bytes;
	return test->kind == SERIES_LATENCY ? INLINE_BYTES : -1;
}

static int set_keepalive(struct stream *test, struct sock *sock)
{
	int ret;

	if (!test->options.keepalive_s)
		return 0;
	ret = sock_set_int(sock, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (ret)
		return stream_fail(test, "rsetsockopt SO_KEEPALIVE", ret);
	ret = sock_set_int(sock, IPPROTO_TCP, TCP_KEEPIDLE, (int)test->options.keepalive_s);
	if (ret)
		return stream_fail(test, "rsetsockopt TCP_KEEPIDLE", ret);
	printf("Keepalive: ON\n  time: %ld\n", test->options.keepalive_s);
	return 0;
}

/* Sizes are wishes; a library that refuses one has its own. */
static int set_options(struct stream *test, struct sock *sock)
{
	long inlined = inline_bytes(test);
	int ret = 0;

	sock_set_int(sock, SOL_SOCKET, SO_SNDBUF, (int)test->options.buffer_bytes);
	sock_set_int(sock, SOL_SOCKET, SO_RCVBUF, (int)test->options.buffer_bytes);
	sock_set_int(sock, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!sock->plain && inlined >= 0)
		sock_set_int(sock, SOL_RDMA, RDMA_INLINE, (int)inlined);
	if (!test->options.blocking)
		ret = sock_set_nonblocking(sock);
	if (ret)
		return stream_fail(test, "rfcntl O_NONBLOCK", ret);
	return set_keepalive(test, sock);
}

static int open_socket(struct stream *test, struct sock *sock)
{
	int ret = sock_open(sock, test->options.plain, test->lookup.addr.ss_family, SOCK_STREAM);

	return ret ? stream_fail(test, "rsocket", ret) : 0;
}

static int prepare(struct stream *test, struct sock *sock)
{
	return test->ops->prepare ? test->ops->prepare(test, sock) : 0;
}

static int listen_on(struct stream *test)
{
	struct sock *sock = &test->listener;
	int ret;

	if (open_socket(test, sock))
		return DRIVE_FAILED;
	ret = sock_set_int(sock, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!ret)
		ret = sock_bind(sock, (struct sockaddr *)&test->lookup.addr, test->lookup.len);
	if (ret)
		return fail_at(test, "bind to", ret);
	if (prepare(test, sock))
		return DRIVE_FAILED;
	ret = sock_listen(sock, 1);
	return ret ? fail_at(test, "listen on", ret) : set_options(test, sock);
}

static int phase_open(struct stream *test)
{
	test->n = 0;
	test->phase = test->options.server ? STREAM_CONNECT : STREAM_ACCEPT;
	if (test->options.server)
		return 0;
	watch_pause();
	return test->listener.fd < 0 ? listen_on(test) : 0;
}

/* The processes share the socket; it is the child's. */
static int fork_child(struct stream *test)
{
	fflush(stdout);
	test->child = fork();
	if (test->child < 0)
		return stream_fail(test, "fork", -errno);
	test->forked = !test->child;
	test->phase = test->child ? STREAM_CHILD : STREAM_NEXT;
	if (test->forked)
		stream_watch(&test->options);
	return 0;
}

static int phase_accept(struct stream *test)
{
	int ret = sock_accept(&test->listener, &test->sock);

	if (ret == -EAGAIN || ret == -EWOULDBLOCK)
		return DRIVE_READ;
	if (ret == -EINTR)
		return 0;
	if (ret)
		return stream_fail(test, "raccept", ret);
	if (set_options(test, &test->sock))
		return DRIVE_FAILED;
	test->phase = STREAM_NEXT;
	if (test->options.fork)
		return fork_child(test);
	watch_resume();
	return 0;
}

/* What goes by between the client and the child is missing in the parent's counts. */
static void count_child(struct stream *test)
{
	struct series_run run = test->run.what;
	uint64_t bytes = 0;
	int n = 0;

	while (!test->options.custom && !series_get(&run, test->kind, test->options.all, n++))
		bytes += HELLO_BYTES + (uint64_t)run.size_bytes * (uint64_t)run.transfers *
					       (uint64_t)run.iterations;
	counting_skip(&test->sent, bytes);
	counting_skip(&test->received, bytes);
}

static int phase_child(struct stream *test)
{
	int status;

	sock_close(&test->sock);
	while (waitpid(test->child, &status, 0) < 0)
		if (errno != EINTR)
			return stream_fail(test, "waitpid", -errno);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return DRIVE_FAILED;
	count_child(test);
	test->phase = STREAM_CLOSE;
	return 0;
}

static int connect_from(struct stream *test)
{
	struct lookup *lookup = &test->lookup;
	int ret;

	if (open_socket(test, &test->sock) || set_options(test, &test->sock) ||
		prepare(test, &test->sock))
		return DRIVE_FAILED;
	if (lookup->src_len) {
		ret = sock_bind(&test->sock, (struct sockaddr *)&lookup->src, lookup->src_len);
		if (ret)
			return stream_fail(test, "bind to the address of -b", ret);
	}
	if (!lookup->route_len)
		return 0;
	ret = sock_set(&test->sock, SOL_RDMA, RDMA_ROUTE, lookup->route, lookup->route_len);
	return ret ? stream_fail(test, "rsetsockopt RDMA_ROUTE", ret) : 0;
}

static int phase_connect(struct stream *test)
{
	struct lookup *lookup = &test->lookup;
	int ret;

	if (connect_from(test))
		return DRIVE_FAILED;
	ret = sock_connect(&test->sock, (struct sockaddr *)&lookup->addr, lookup->len);
	if (ret == -EINPROGRESS) {
		test->phase = STREAM_CONNECTED;
		return DRIVE_WRITE;
	}
	if (ret)
		return fail_at(test, "connect to", ret);
	test->phase = STREAM_NEXT;
	return 0;
}

/* A loop that wakes too early finds no error here, and the first call waits. */
static int phase_connected(struct stream *test)
{
	int ret = sock_error(&test->sock);

	if (ret)
		return fail_at(test, "connect to", ret);
	test->phase = STREAM_NEXT;
	return 0;
}

static int next_run(struct stream *test)
{
	if (test->kind != SERIES_CUSTOM)
		return series_get(&test->run.what, test->kind, test->options.all, test->n++);
	return test->n++;
}

static int phase_next(struct stream *test)
{
	watch_progress();
	if (next_run(test)) {
		test->phase = test->options.server ? STREAM_CLOSE : STREAM_LINGER;
		return 0;
	}
	run_start(test);
	test->phase = STREAM_RUN;
	return test->ops->begin ? test->ops->begin(test) : 0;
}

static int phase_run(struct stream *test)
{
	int ret = run_step(test);

	if (ret)
		return ret;
	test->phase = STREAM_NEXT;
	return test->ops->end ? test->ops->end(test) : 0;
}

/*
 * The stock client with -T a takes the end of a connection for an error, even when there is data to
 * receive before it.
 */
static int phase_linger(struct stream *test)
{
	uint8_t byte;
	ssize_t len = sock_recv(&test->sock, &byte, sizeof(byte), 0);

	if (len == -EAGAIN || len == -EWOULDBLOCK)
		return DRIVE_READ;
	if (len == -EINTR)
		return 0;
	if (len > 0)
		return tool_complain(test->options.name,
			"the client sends more than this side has runs for; give both the same "
			"options");
	test->phase = STREAM_CLOSE;
	return 0;
}

static int phase_close(struct stream *test)
{
	if (test->sock.fd >= 0)
		sock_shutdown(&test->sock);
	sock_close(&test->sock);
	test->phase = STREAM_OVER;
	if (test->kind == SERIES_LATENCY && !test->forked) {
		test->kind = SERIES_BANDWIDTH;
		test->phase = STREAM_OPEN;
	}
	return 0;
}

static int step(void *arg)
{
	static int (*const phases[])(struct stream * test) = {
		[STREAM_OPEN] = phase_open,
		[STREAM_ACCEPT] = phase_accept,
		[STREAM_CHILD] = phase_child,
		[STREAM_CONNECT] = phase_connect,
		[STREAM_CONNECTED] = phase_connected,
		[STREAM_NEXT] = phase_next,
		[STREAM_RUN] = phase_run,
		[STREAM_LINGER] = phase_linger,
		[STREAM_CLOSE] = phase_close,
	};
	struct stream *test = arg;
	int ret = 0;

	while (!ret && test->phase != STREAM_OVER)
		ret = phases[test->phase](test);
	return ret;
}

static struct sock *current(void *arg)
{
	struct stream *test = arg;

	return test->sock.fd >= 0 ? &test->sock : &test->listener;
}

/* A child may have no part in its parent's loop. */
static int choose_mode(struct stream *test, struct drive *drive)
{
	struct sock probe = SOCK_NONE;

	drive->mode = test->options.blocking ? DRIVE_PLAIN : DRIVE_POLL;
	if (test->options.blocking || test->options.fork)
		return 0;
	if (open_socket(test, &probe))
		return DRIVE_FAILED;
	drive->mode = drive_choose(test->options.name, &probe);
	sock_close(&probe);
	return 0;
}

static int start(struct stream *test, struct drive *drive)
{
	struct stream_options *options = &test->options;
	size_t bytes = (size_t)(options->custom ? options->size_bytes : SERIES_SIZE_MAX);

	test->data = calloc(1, bytes);
	if (!test->data)
		return tool_complain(
			test->options.name, "no memory for a message; give a smaller -S");
	test->kind = options->custom ? SERIES_CUSTOM : SERIES_LATENCY;
	test->run.what = (struct series_run){ .kind = SERIES_CUSTOM,
		.size_bytes = options->size_bytes,
		.transfers = options->transfers,
		.iterations = options->iterations };
	test->lookup = (struct lookup){ .name = test->options.name,
		.server = options->server,
		.bind = options->bind,
		.format = options->format,
		.port = options->port,
		.type = SOCK_STREAM,
		.resolve = options->resolve };
	return lookup_run(&test->lookup) || choose_mode(test, drive) ? -1 : 0;
}

int stream_main(struct stream *test)
{
	struct drive drive = {
		.name = test->options.name, .step = step, .sock = current, .arg = test
	};
	int ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	test->listener.fd = test->sock.fd = -1;
	ret = start(test, &drive);
	if (!ret) {
		series_print_header();
		stream_watch(&test->options);
		ret = drive_run(&drive);
	}
	sock_close(&test->sock);
	sock_close(&test->listener);
	lookup_fini(&test->lookup);
	free(test->data);
	return tool_end_output(test->options.name, ret ? EXIT_FAILURE : EXIT_SUCCESS);
}
