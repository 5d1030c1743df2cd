/*
 * Clients of t/interop/http.sh: evhttp_connections over bufferevents over RDMA, as in
 * examples/10-http-client.c, many of them on one loop. Every byte is compared.
 *
 *   http_client ADDRESS:PORT many CONNECTIONS   all connected at once; each gets and posts bodies
 *                                               of 1 B to 1 MiB in turn, on one connection
 *   http_client ADDRESS:PORT get|post BYTES     one big body
 *   http_client ADDRESS:PORT hold BYTES         gets it, but stops reading: the server has nearly
 *                                               all of it left; then reads on
 *   http_client ADDRESS:PORT leave CONNECTIONS  each leaves within a body
 *   http_client ADDRESS:PORT broken BYTES       the server leaves within a body: that is told
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
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interop/http.h"

enum { ASKS = 100, SLACK = 1 << 20 };

static const size_t sizes[] = { 1, 2, 100, 4095, 65537, 200000, 1 << 20 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), REQUESTS = 3 };

enum mode { MANY, GET, POST, HOLD, LEAVE, BROKEN, MODES };
static const char *const modes[] = { "many", "get", "post", "hold", "leave", "broken" };

/* One connection. */
struct job {
	struct bufferevent *bev;
	struct evhttp_connection *http;
	unsigned number, requests;
	size_t wanted, got;
	bool is_asker; /* of what is left of another's body */
};

static struct {
	struct event_base *loop;
	struct evrdma_base *base;
	struct sockaddr_storage peer;
	enum mode mode;
	size_t amount;
	struct job *jobs;
	unsigned count, connected, done, asked;
	evutil_socket_t vain;
	uint16_t vain_port;
} us;

static void die(const char *what)
{
	fprintf(stderr, "http_client: %s\n", what);
	_exit(1);
}

/* --- the end -------------------------------------------------------------------------------- */

static void end(evutil_socket_t fd, short what, void *arg)
{
	unsigned i;

	for (i = 0; i < us.count; i++)
		if (us.jobs[i].http)
			evhttp_connection_free(us.jobs[i].http);
	evutil_closesocket(us.vain);
	evrdma_base_shutdown(us.base, 10000, NULL, NULL);
}

static void job_done(struct job *job)
{
	if (++us.done == us.count)
		event_base_once(us.loop, -1, EV_TIMEOUT, end, NULL, NULL);
}

static void leave(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;

	evhttp_connection_free(job->http);
	job->http = NULL;
	job_done(job);
}

/* --- requests ------------------------------------------------------------------------------- */

static void ask(struct job *job);
static void ask_first(struct job *job);

/* The asker has seen that enough is left: the other one reads on. */
static void read_on(struct job *asker)
{
	bufferevent_enable(us.jobs[0].bev, EV_READ);
	job_done(asker);
}

static void on_left(struct job *job, struct evbuffer *body)
{
	char text[32] = "";

	evbuffer_remove(body, text, sizeof(text) - 1);
	if (strtoul(text, NULL, 10) + SLACK < us.amount)
		die("the sender was not stopped");
	if (++us.asked < ASKS)
		ask(job);
	else
		read_on(job);
}

/* Not within a callback of evhttp's, which enables reading at its end. */
static void hold(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;

	bufferevent_disable(job->bev, EV_READ);
	ask_first(&us.jobs[1]);
}

static void on_chunk(struct evhttp_request *request, void *arg)
{
	struct job *job = arg;
	struct evbuffer *body = evhttp_request_get_input_buffer(request);

	if (!http_has_pattern(body, job->got))
		die("a byte is another");
	if (!job->got && us.mode == LEAVE)
		event_base_once(us.loop, -1, EV_TIMEOUT, leave, job, NULL);
	if (!job->got && us.mode == HOLD)
		event_base_once(us.loop, -1, EV_TIMEOUT, hold, job, NULL);
	job->got += evbuffer_get_length(body);
}

static void on_done(struct evhttp_request *request, void *arg)
{
	struct job *job = arg;
	int code = request ? evhttp_request_get_response_code(request) : 0;

	if (us.mode == BROKEN) {
		if (code && job->got == us.amount)
			die("all of it came");
		job_done(job);
		return;
	}
	if (us.mode == LEAVE)
		return;
	if (code != HTTP_OK)
		die("the answer is an error");
	if (job->is_asker) {
		on_left(job, evhttp_request_get_input_buffer(request));
		return;
	}
	if (job->got != job->wanted)
		die("the body has another length");
	if (us.mode == MANY && ++job->requests < REQUESTS)
		ask(job);
	else
		job_done(job);
}

static bool posts(const struct job *job)
{
	return us.mode == POST || (us.mode == MANY && (job->number + job->requests) % 2);
}

/* Each connection begins at another size. */
static size_t next_size(const struct job *job)
{
	return us.mode == MANY ? sizes[(job->number + job->requests) % SIZES] : us.amount;
}

static void ask(struct job *job)
{
	struct evhttp_request *request = evhttp_request_new(on_done, job);
	enum evhttp_cmd_type type = posts(job) ? EVHTTP_REQ_POST : EVHTTP_REQ_GET;
	char path[64] = "/left";

	job->wanted = next_size(job);
	job->got = 0;
	if (!job->is_asker) {
		evhttp_request_set_chunked_cb(request, on_chunk);
		snprintf(path, sizeof(path), "/%s/%zu", us.mode == BROKEN ? "broken" : "bytes",
			job->wanted);
	}
	if (posts(job))
		http_add_pattern(evhttp_request_get_output_buffer(request), job->wanted);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "test");
	if (evhttp_make_request(job->http, request, type, path))
		die("a request cannot be made");
}

/* --- connections ---------------------------------------------------------------------------- */

/* The first request of each dials, in vain. */
static void ask_first(struct job *job)
{
	evutil_socket_t own = bufferevent_getfd(job->bev), dialled;

	bufferevent_setfd(job->bev, -1);
	job->http = evhttp_connection_base_bufferevent_new(
		us.loop, NULL, job->bev, "127.0.0.1", us.vain_port);
	if (!job->http)
		die("no memory");
	evhttp_connection_set_timeout(job->http, 3600);
	ask(job);
	dialled = bufferevent_getfd(job->bev);
	bufferevent_setfd(job->bev, own);
	evutil_closesocket(dialled);
}

static void ask_all(void)
{
	unsigned i;

	for (i = 0; i < us.count; i++)
		if (!us.jobs[i].is_asker)
			ask_first(&us.jobs[i]);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct evrdma_error error;
	char text[EVRDMA_ERROR_TEXT_MAX];

	if (what & BEV_EVENT_CONNECTED) {
		if (++us.connected == us.count)
			ask_all();
	} else if (evrdma_bufferevent_get_error(bev, &error) == 0) {
		die(evrdma_error_text(&error, text, sizeof(text)));
	} else {
		die("a connection has ended");
	}
}

static void connect_job(struct job *job)
{
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn;

	evrdma_bev_options_init(&options);
	evrdma_conn_options_init(&conn);
	conn.connect_timeout_ms = 300000; /* however slow the machine is */
	options.conn = &conn;
	job->bev = evrdma_bufferevent_connect(
		us.base, NULL, (struct sockaddr *)&us.peer, &options, BEV_OPT_DEFER_CALLBACKS);
	if (!job->bev)
		die("cannot connect");
	bufferevent_setcb(job->bev, NULL, NULL, on_event, job);
}

static void connect_all(void)
{
	unsigned i;

	us.count =
		us.mode == MANY || us.mode == LEAVE ? (unsigned)us.amount : 1 + (us.mode == HOLD);
	us.jobs = calloc(us.count, sizeof(*us.jobs));
	for (i = 0; i < us.count; i++) {
		us.jobs[i].number = i;
		connect_job(&us.jobs[i]);
	}
	if (us.mode == LEAVE)
		us.amount = 1 << 20;
	if (us.mode == HOLD)
		us.jobs[1].is_asker = true;
}

static void listen_in_vain(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr *addr = (struct sockaddr *)&sin;
	socklen_t len = sizeof(sin);

	us.vain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (us.vain < 0 || bind(us.vain, addr, len) || listen(us.vain, 1) ||
		getsockname(us.vain, addr, &len))
		die("no socket");
	us.vain_port = ntohs(sin.sin_port);
}

static int parse(int argc, char **argv)
{
	int len = sizeof(us.peer);

	if (argc < 4 || evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&us.peer, &len))
		return -1;
	while (us.mode < MODES && strcmp(argv[2], modes[us.mode]))
		us.mode++;
	us.amount = strtoul(argv[3], NULL, 10);
	return us.mode < MODES ? 0 : -1;
}

int main(int argc, char **argv)
{
	if (parse(argc, argv))
		die("see the first comment of its source");
	signal(SIGPIPE, SIG_IGN);
	http_pattern_fill();
	us.loop = event_base_new();
	us.base = us.loop ? evrdma_base_new(us.loop, NULL) : NULL;
	if (!us.base)
		die("cannot start");
	listen_in_vain();
	connect_all();
	event_base_dispatch(us.loop);
	event_base_free(us.loop);
	free(us.jobs);
	return us.done == us.count ? 0 : 1;
}
