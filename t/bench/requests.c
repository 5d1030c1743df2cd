/*
 * requests rdma|tcp ADDRESS PORT COUNT: asks the server of examples/09-http-server.c so often, one
 * request after another on one connection, and prints how many were answered in a second. Over RDMA
 * the evhttp_connection is made as in examples/10-http-client.c.
 */
#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/util.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { LIMIT_S = 100 };

static struct event_base *loop;
static struct evhttp_connection *http;
static const char *host;
static long left;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void on_reply(struct evhttp_request *request, void *arg);

static void ask(void)
{
	struct evhttp_request *request = evhttp_request_new(on_reply, NULL);

	if (!request)
		die("evhttp_request_new");
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", host);
	if (evhttp_make_request(http, request, EVHTTP_REQ_GET, "/"))
		die("evhttp_make_request");
}

static void on_reply(struct evhttp_request *request, void *arg)
{
	if (!request || evhttp_request_get_response_code(request) != HTTP_OK)
		die("no answer");
	if (--left)
		ask();
	else
		event_base_loopbreak(loop);
}

/* --- over RDMA ------------------------------------------------------------------------------ */

/* A socket of 127.0.0.1 that listens, and never accepts. Its port. */
static uint16_t listen_in_vain(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr *addr = (struct sockaddr *)&sin;
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, addr, len) || listen(fd, 1) || getsockname(fd, addr, &len))
		die("listen");
	return ntohs(sin.sin_port);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	evutil_socket_t own = bufferevent_getfd(bev), dialled;

	if (!(what & BEV_EVENT_CONNECTED))
		die("cannot connect");
	bufferevent_setfd(bev, -1);
	http = evhttp_connection_base_bufferevent_new(
		loop, NULL, bev, "127.0.0.1", listen_in_vain());
	ask();
	dialled = bufferevent_getfd(bev);
	bufferevent_setfd(bev, own);
	evutil_closesocket(dialled);
}

static void connect_rdma(const struct sockaddr *addr)
{
	struct evrdma_base *base = evrdma_base_new(loop, NULL);
	struct bufferevent *bev = NULL;

	if (base)
		bev = evrdma_bufferevent_connect(base, NULL, addr, NULL, BEV_OPT_DEFER_CALLBACKS);
	if (!bev)
		die("evrdma_bufferevent_connect");
	bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
}

/* --- over TCP ------------------------------------------------------------------------------- */

static void connect_tcp(uint16_t port)
{
	http = evhttp_connection_base_new(loop, NULL, host, port);
	if (!http)
		die("evhttp_connection_base_new");
	ask();
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int is_rdma = argc > 1 && !strcmp(argv[1], "rdma");
	double began;

	if (argc != 5 || (!is_rdma && strcmp(argv[1], "tcp")) || atol(argv[4]) < 1 ||
		inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
		return fprintf(stderr, "usage: requests rdma|tcp ADDRESS PORT COUNT\n"), 1;
	signal(SIGPIPE, SIG_IGN);
	alarm(LIMIT_S);
	loop = event_base_new();
	host = argv[2];
	left = atol(argv[4]);
	addr.sin_port = htons((uint16_t)atoi(argv[3]));
	began = bench_now_us();
	if (is_rdma)
		connect_rdma((struct sockaddr *)&addr);
	else
		connect_tcp((uint16_t)atoi(argv[3]));
	event_base_dispatch(loop);
	if (left)
		return fprintf(stderr, "requests: it ended early\n"), 1;
	printf("%.1f\n", (double)atol(argv[4]) * 1e6 / (bench_now_us() - began));
	return 0;
}
