/*
 * Fetches from an HTTP server over RDMA or TCP with libevent's evhttp_connection, and prints what
 * it gets. 09-http-server is one.
 *
 *   10-http-client rdma|tcp ADDRESS:PORT [TEXT]
 *
 * With TEXT that is posted.
 *
 * An evhttp_connection dials by itself, and by TCP only. So it gets a bufferevent that is connected
 * over RDMA already, and may dial a socket of our own, where nobody answers; then the bufferevent
 * gets its own descriptor back, and the evhttp_connection goes on as soon as that can be written
 * to. When such a connection has ended it cannot dial again: it is to be freed, and made anew.
 */
#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct client {
	struct event_base *loop;
	struct evrdma_base *base; /* NULL: by TCP */
	const char *peer, *text;
	struct evhttp_connection *http;
	int status;
};

/* Not within a callback of the connection that is freed. */
static void finish(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;

	if (client->http)
		evhttp_connection_free(client->http);
	if (client->base)
		evrdma_base_shutdown(client->base, 10000, NULL, NULL);
}

static void finish_soon(struct client *client)
{
	event_base_once(client->loop, -1, EV_TIMEOUT, finish, client, NULL);
}

static void on_reply(struct evhttp_request *request, void *arg)
{
	struct client *client = arg;
	int code = request ? evhttp_request_get_response_code(request) : 0;

	if (code == HTTP_OK) {
		evbuffer_write(evhttp_request_get_input_buffer(request), fileno(stdout));
		client->status = 0;
	} else {
		fprintf(stderr, "http: no answer from %s, status %d\n", client->peer, code);
	}
	finish_soon(client);
}

/* 0 or -1. */
static int ask(struct client *client)
{
	struct evhttp_request *request = evhttp_request_new(on_reply, client);

	if (!request)
		return -1;
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", client->peer);
	if (client->text)
		evbuffer_add(evhttp_request_get_output_buffer(request), client->text,
			strlen(client->text));
	return evhttp_make_request(
		client->http, request, client->text ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, "/");
}

/* --- over RDMA ------------------------------------------------------------------------------ */

/* A socket of 127.0.0.1 that listens, and never accepts. Its port, or 0. */
static uint16_t listen_in_vain(evutil_socket_t *fd)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr *addr = (struct sockaddr *)&sin;
	socklen_t len = sizeof(sin);

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, addr, len) || listen(*fd, 1) || getsockname(*fd, addr, &len))
		return 0;
	return ntohs(sin.sin_port);
}

/* Asks through a bufferevent that is connected. 0 or -1; it is the evhttp_connection's. */
static int ask_through(struct client *client, struct bufferevent *bev)
{
	evutil_socket_t own = bufferevent_getfd(bev), vain, dialled;
	uint16_t port = listen_in_vain(&vain);
	int ret;

	bufferevent_setfd(bev, -1);
	client->http =
		evhttp_connection_base_bufferevent_new(client->loop, NULL, bev, "127.0.0.1", port);
	ret = port && client->http ? ask(client) : -1;
	dialled = bufferevent_getfd(bev);
	bufferevent_setfd(bev, own);
	if (dialled >= 0)
		evutil_closesocket(dialled);
	if (vain >= 0)
		evutil_closesocket(vain);
	return ret;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;
	char text[EVRDMA_ERROR_TEXT_MAX];
	struct evrdma_error error;

	if (what & BEV_EVENT_CONNECTED && ask_through(client, bev) == 0)
		return;
	if (evrdma_bufferevent_get_error(bev, &error) == 0)
		fprintf(stderr, "http: %s\n", evrdma_error_text(&error, text, sizeof(text)));
	if (!client->http)
		bufferevent_free(bev);
	finish_soon(client);
}

/*
 * The callbacks are deferred, as evhttp writes in that of CONNECTED, and waits for the one that
 * says that all was written.
 */
static int start_rdma(struct client *client, const struct sockaddr *addr)
{
	struct bufferevent *bev = NULL;

	client->base = evrdma_base_new(client->loop, NULL);
	if (client->base)
		bev = evrdma_bufferevent_connect(
			client->base, NULL, addr, NULL, BEV_OPT_DEFER_CALLBACKS);
	if (bev)
		bufferevent_setcb(bev, NULL, NULL, on_event, client);
	return bev ? 0 : -1;
}

/* --- over TCP ------------------------------------------------------------------------------- */

static int start_tcp(struct client *client, const struct sockaddr_storage *addr)
{
	char host[64];
	uint16_t port;

	if (addr->ss_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;

		evutil_inet_ntop(AF_INET6, &sin6->sin6_addr, host, sizeof(host));
		port = ntohs(sin6->sin6_port);
	} else {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;

		evutil_inet_ntop(AF_INET, &sin->sin_addr, host, sizeof(host));
		port = ntohs(sin->sin_port);
	}
	client->http = evhttp_connection_base_new(client->loop, NULL, host, port);
	return client->http ? ask(client) : -1;
}

/* -------------------------------------------------------------------------------------------- */

static int fetch(struct client *client, int over_rdma, const struct sockaddr_storage *addr)
{
	int ret = over_rdma ? start_rdma(client, (const struct sockaddr *)addr)
			    : start_tcp(client, addr);

	if (ret)
		return perror("http: cannot start"), 1;
	event_base_dispatch(client->loop);
	return client->status;
}

int main(int argc, char **argv)
{
	struct client client = { .loop = event_base_new(), .status = 1 };
	struct sockaddr_storage addr;
	int len = sizeof(addr), status;

	if (argc < 3 || (strcmp(argv[1], "rdma") && strcmp(argv[1], "tcp")) ||
		evutil_parse_sockaddr_port(argv[2], (struct sockaddr *)&addr, &len)) {
		fprintf(stderr, "usage: 10-http-client rdma|tcp ADDRESS:PORT [TEXT]\n");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	client.peer = argv[2];
	client.text = argc > 3 ? argv[3] : NULL;
	status = fetch(&client, !strcmp(argv[1], "rdma"), &addr);
	event_base_free(client.loop);
	return status;
}
