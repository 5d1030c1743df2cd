/*
 * The server of t/interop/http.sh: examples/09-http-server.c with other answers.
 *
 *   POST /            what was posted, if it is the pattern; else 400
 *   GET /bytes/N      N bytes of the pattern; HEAD, how many
 *   GET /chunked/N    the same, in chunks
 *   GET /close/N      the same, and the connection is closed
 *   GET /broken/N     half of them, and the connection is closed
 *   GET /leaves/N     nothing, and the connection is closed when N bytes more have come
 *   GET /left         how much of the last big answer is still to be sent
 *
 *   http_server ADDRESS:PORT
 */
int example_main(int argc, char **argv);
#define main example_main
#include "examples/09-http-server.c"
#undef main

#include "interop/http.h"

enum { BIG = 16 << 20, CHUNK = 60001 };

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

static void say(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void say_length(struct evhttp_request *request, size_t len)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", len);
	say(request, "Content-Length", text);
}

static void send_bytes(struct evhttp_request *request, struct evbuffer *body)
{
	size_t len = number_in(request);

	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		say_length(request, len);
	else
		http_add_pattern(body, len);
	if (len >= BIG) {
		big = evhttp_request_get_connection(request);
		evhttp_connection_set_closecb(big, forget_big, NULL);
	}
	evhttp_send_reply(request, HTTP_OK, "OK", body);
}

static void send_chunks(struct evhttp_request *request, struct evbuffer *body)
{
	struct evbuffer *all = evbuffer_new();

	http_add_pattern(all, number_in(request));
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	while (evbuffer_remove_buffer(all, body, CHUNK) > 0)
		evhttp_send_reply_chunk(request, body);
	evhttp_send_reply_end(request);
	evbuffer_free(all);
}

static void send_and_close(struct evhttp_request *request, struct evbuffer *body)
{
	say(request, "Connection", "close");
	send_bytes(request, body);
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

	say_length(request, len);
	http_add_pattern(body, len / 2);
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	evhttp_send_reply_chunk_with_cb(
		request, body, on_half, bufferevent_get_base(bev_of(request)));
}

/* A connection that is to be closed when so many bytes more have come. */
struct leaver {
	struct evhttp_connection *http;
	struct event *event;
	size_t left;
};

static void leave(evutil_socket_t fd, short what, void *arg)
{
	struct leaver *leaver = arg;

	evhttp_connection_free(leaver->http);
}

static void on_come(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	struct leaver *leaver = arg;

	if (info->n_added < leaver->left)
		leaver->left -= info->n_added;
	else
		event_active(leaver->event, EV_TIMEOUT, 0);
}

/* In its end, whoever brings that about. */
static void free_leaver(struct evhttp_connection *http, void *arg)
{
	struct leaver *leaver = arg;
	struct bufferevent *bev = evhttp_connection_get_bufferevent(http);

	evbuffer_remove_cb(bufferevent_get_input(bev), on_come, leaver);
	event_free(leaver->event);
	free(leaver);
}

static void send_and_leave(struct evhttp_request *request, struct evbuffer *body)
{
	struct leaver *leaver = calloc(1, sizeof(*leaver));
	struct bufferevent *bev = bev_of(request);

	leaver->http = evhttp_request_get_connection(request);
	leaver->event = event_new(bufferevent_get_base(bev), -1, 0, leave, leaver);
	leaver->left = number_in(request);
	evbuffer_add_cb(bufferevent_get_input(bev), on_come, leaver);
	evhttp_connection_set_closecb(leaver->http, free_leaver, leaver);
	evhttp_send_reply(request, HTTP_OK, "OK", body);
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

static const struct {
	const char *path;
	void (*send)(struct evhttp_request *request, struct evbuffer *body);
} answers[] = {
	{ "/bytes/", send_bytes },
	{ "/chunked/", send_chunks },
	{ "/close/", send_and_close },
	{ "/broken/", send_half },
	{ "/leaves/", send_and_leave },
	{ "/left", send_left },
};

static void answer_to(struct evhttp_request *request, struct evbuffer *body)
{
	const char *uri = evhttp_request_get_uri(request);
	size_t i;

	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (!strncmp(uri, answers[i].path, strlen(answers[i].path))) {
			answers[i].send(request, body);
			return;
		}
	evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void answer(struct evhttp_request *request, void *arg)
{
	struct evbuffer *body = evbuffer_new();

	if (!is_sound(request))
		evhttp_send_error(request, HTTP_BADREQUEST, NULL);
	else if (evhttp_request_get_command(request) == EVHTTP_REQ_POST)
		evhttp_send_reply(request, HTTP_OK, "OK", evhttp_request_get_input_buffer(request));
	else
		answer_to(request, body);
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
