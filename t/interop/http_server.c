/*
 * The server of t/interop/http.sh: examples/09-http-server.c with other answers.
 *
 *   POST /            what was posted, if it is the pattern; else 400
 *   GET /bytes/N      N bytes of the pattern
 *   GET /broken/N     half of them, and the connection is closed
 *   GET /left         how much of the last big answer is still to be sent
 *
 *   http_server ADDRESS:PORT
 */
int example_main(int argc, char **argv);
#define main example_main
#include "examples/09-http-server.c"
#undef main

#include "interop/http.h"

enum { BIG = 16 << 20 };

static struct evhttp_connection *big; /* that the last big answer goes through */

static struct bufferevent *bev_of(struct evhttp_request *request)
{
	return evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
}

/* A path's number. */
static size_t number_in(struct evhttp_request *request)
{
	return strtoul(strrchr(evhttp_request_get_uri(request), '/') + 1, NULL, 10);
}

static void forget_big(struct evhttp_connection *http, void *arg)
{
	big = NULL;
}

static void send_bytes(struct evhttp_request *request, struct evbuffer *body)
{
	size_t len = number_in(request);

	http_add_pattern(body, len);
	if (len >= BIG) {
		big = evhttp_request_get_connection(request);
		evhttp_connection_set_closecb(big, forget_big, NULL);
	}
	evhttp_send_reply(request, HTTP_OK, "OK", body);
}

static void break_it(evutil_socket_t fd, short what, void *http)
{
	evhttp_connection_free(http);
}

static void on_half(struct evhttp_connection *http, void *loop)
{
	event_base_once(loop, -1, EV_TIMEOUT, break_it, http, NULL);
}

static void send_half(struct evhttp_request *request, struct evbuffer *body)
{
	size_t len = number_in(request);
	char text[32];

	snprintf(text, sizeof(text), "%zu", len);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", text);
	http_add_pattern(body, len / 2);
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	evhttp_send_reply_chunk_with_cb(
		request, body, on_half, bufferevent_get_base(bev_of(request)));
}

static void send_left(struct evhttp_request *request, struct evbuffer *body)
{
	struct bufferevent *bev = big ? evhttp_connection_get_bufferevent(big) : NULL;

	evbuffer_add_printf(
		body, "%zu\n", bev ? evbuffer_get_length(bufferevent_get_output(bev)) : 0);
	evhttp_send_reply(request, HTTP_OK, "OK", body);
}

static bool is_sound(struct evhttp_request *request)
{
	return evrdma_bufferevent_get_conn(bev_of(request)) &&
	       http_has_pattern(evhttp_request_get_input_buffer(request), 0);
}

static void answer(struct evhttp_request *request, void *arg)
{
	const char *uri = evhttp_request_get_uri(request);
	struct evbuffer *body = evbuffer_new();

	if (!is_sound(request))
		evhttp_send_error(request, HTTP_BADREQUEST, NULL);
	else if (evhttp_request_get_command(request) == EVHTTP_REQ_POST)
		evhttp_send_reply(request, HTTP_OK, "OK", evhttp_request_get_input_buffer(request));
	else if (!strncmp(uri, "/bytes/", 7))
		send_bytes(request, body);
	else if (!strncmp(uri, "/broken/", 8))
		send_half(request, body);
	else if (!strcmp(uri, "/left"))
		send_left(request, body);
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
	evbuffer_free(body);
}

int main(int argc, char **argv)
{
	struct event_base *loop = event_base_new();
	struct server server = { NULL };

	signal(SIGPIPE, SIG_IGN);
	http_pattern_fill();
	if (argc < 2 || !loop || server_init(&server, loop))
		return 1;
	evhttp_set_gencb(server.rdma, answer, NULL);
	if (listen_rdma(&server, loop, argv[1]))
		return perror("http_server: cannot listen"), 1;
	event_base_dispatch(loop);
	event_free(server.signal);
	event_base_free(loop);
	return 0;
}
