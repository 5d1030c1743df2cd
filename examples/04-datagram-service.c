/*
 * A service of datagrams: answers each one with its text in capitals, until it is interrupted.
 *
 *   04-datagram-service ADDRESS:PORT
 */
#include <ctype.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>

enum { MOST_BYTES = 1024 };

static struct evrdma_base *base;
static struct evrdma_pool *pool;
static struct sockaddr_storage addr;
static struct event *signal_event;

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	event_del(signal_event);
	evrdma_base_shutdown(base, 1000, NULL, NULL);
}

/* A datagram comes behind a header, so what is sent back is another buffer. */
static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	const unsigned char *from = recv->data;
	struct evrdma_buf *buf = evrdma_pool_get(pool);
	size_t i;

	if (buf && recv->len <= MOST_BYTES) {
		for (i = 0; i < recv->len; i++)
			((char *)evrdma_buf_data(buf))[i] = (char)toupper(from[i]);
		/* What cannot be sent is as good as lost: the client asks again. */
		evrdma_dgram_reply(dgram, recv, buf, recv->len, NULL, NULL, NULL);
	}
	evrdma_buf_unref(buf);
}

/* Somebody asks where to send to: to this endpoint. */
static void on_request(
	struct evrdma_listener *listener, struct evrdma_request *request, void *dgram)
{
	if (evrdma_dgram_accept(dgram, request, NULL, 0))
		evrdma_request_reject(request, NULL, 0);
}

static void listen_for(struct evrdma_dgram *dgram)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;

	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_UDP;
	listener = evrdma_listener_new(base, (struct sockaddr *)&addr, &options, on_request, dgram);
	if (listener) {
		printf("listening on port %d\n", evrdma_listener_get_port(listener));
	} else {
		perror("cannot listen");
		on_signal(-1, 0, NULL);
	}
}

static void on_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_DGRAM_READY)
		listen_for(dgram);
	if (event == EVRDMA_DGRAM_ERROR) {
		fprintf(stderr, "%s\n", evrdma_error_text(error, text, sizeof(text)));
		on_signal(-1, 0, NULL);
	}
}

/* The endpoint has the address of the service, and a port of its own. */
static void open_endpoint(void)
{
	struct sockaddr_storage any_port = addr;
	struct evrdma_dgram_options options;
	struct evrdma_dgram *dgram;

	((struct sockaddr_in *)&any_port)->sin_port = 0; /* where IPv6 has it, too */
	evrdma_dgram_options_init(&options);
	options.recv_pool = pool;
	dgram = evrdma_dgram_new(base, &options);
	evrdma_dgram_setcb(dgram, on_recv, on_event, NULL);
	evrdma_dgram_open(dgram, (struct sockaddr *)&any_port, NULL);
}

int main(int argc, char **argv)
{
	int len = sizeof(addr);
	struct event_base *loop = event_base_new();

	base = evrdma_base_new(loop, NULL);
	if (!base)
		return perror("evrdma_base_new"), 1;
	if (argc < 2 || evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: 04-datagram-service ADDRESS:PORT\n"), 1;
	pool = evrdma_pool_new(base, EVRDMA_DGRAM_HEADER_BYTES + MOST_BYTES, 0);
	signal_event = evsignal_new(loop, SIGINT, on_signal, NULL);
	event_add(signal_event, NULL);
	open_endpoint();
	event_base_dispatch(loop);
	event_free(signal_event);
	event_base_free(loop);
	return 0;
}
