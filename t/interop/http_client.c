/*
 * Clients of t/interop/http.sh: evhttp_connections over bufferevents over RDMA, as in
 * examples/10-http-client.c, many of them on one loop. Every byte is compared.
 *
 *   http_client ADDRESS:PORT many CONNECTIONS   all connected at once; each gets and posts bodies
 *                                               of 1 B to 1 MiB in turn, on one connection
 *   http_client ADDRESS:PORT get|post BYTES     one big body
 *   http_client ADDRESS:PORT hold BYTES         gets it, but stops reading: the server has nearly
 *                                               all of it left; then reads on
 *   http_client ADDRESS:PORT leave CONNECTIONS  most leave: within an answer, after the request,
 *                                               within it; each fourth goes on as with many
 *   http_client ADDRESS:PORT vanish CONNECTIONS the same, but the process ends with the first
 *   http_client ADDRESS:PORT broken BYTES       the server leaves within a body: that is told
 *   http_client ADDRESS:PORT refused BYTES      it leaves within the request that follows
 *   http_client ADDRESS:PORT killed PID         it is killed within a body
 *   http_client ADDRESS:PORT chunked|head|close BYTES
 *                                               an answer in chunks, without its body, or the last
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

enum { ASKS = 100, SLACK = 1 << 20, CUT_BYTES = 64 << 20 };

static const size_t sizes[] = { 1, 2, 100, 4095, 65537, 200000, 1 << 20 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), REQUESTS = 3 };

enum mode {
	MANY,
	GET,
	POST,
	HOLD,
	LEAVE,
	VANISH,
	BROKEN,
	REFUSED,
	KILLED,
	CHUNKED,
	HEAD,
	CLOSE,
	MODES
};

static const struct {
	const char *name, *path;
	enum evhttp_cmd_type type;
} modes[] = {
	[MANY] = { "many", "bytes", EVHTTP_REQ_GET },
	[GET] = { "get", "bytes", EVHTTP_REQ_GET },
	[POST] = { "post", "bytes", EVHTTP_REQ_POST },
	[HOLD] = { "hold", "bytes", EVHTTP_REQ_GET },
	[LEAVE] = { "leave", "bytes", EVHTTP_REQ_GET },
	[VANISH] = { "vanish", "bytes", EVHTTP_REQ_GET },
	[BROKEN] = { "broken", "broken", EVHTTP_REQ_GET },
	[REFUSED] = { "refused", "leaves", EVHTTP_REQ_GET },
	[KILLED] = { "killed", "bytes", EVHTTP_REQ_GET },
	[CHUNKED] = { "chunked", "chunked", EVHTTP_REQ_GET },
	[HEAD] = { "head", "bytes", EVHTTP_REQ_HEAD },
	[CLOSE] = { "close", "close", EVHTTP_REQ_GET },
};

/* When it leaves: each is another's. */
enum place { WITHIN_ANSWER, AFTER_REQUEST, WITHIN_REQUEST, NOWHERE, PLACES };

/* One connection. */
struct job {
	struct bufferevent *bev;
	struct evhttp_connection *http;
	unsigned number, requests;
	size_t wanted, got;
	bool is_asker; /* of what is left of another's body */
	enum place place;
};

static struct {
	struct event_base *loop;
	struct evrdma_base *base;
	struct sockaddr_storage peer;
	enum mode mode;
	size_t amount;
	pid_t server;
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

	if (us.mode == VANISH)
		_exit(0);
	evhttp_connection_free(job->http);
	job->http = NULL;
	job_done(job);
}

static void leave_soon(struct job *job)
{
	event_base_once(us.loop, -1, EV_TIMEOUT, leave, job, NULL);
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
	if (!job->got && job->place == WITHIN_ANSWER)
		leave_soon(job);
	if (!job->got && us.mode == KILLED)
		kill(us.server, SIGKILL);
	if (!job->got && us.mode == HOLD)
		event_base_once(us.loop, -1, EV_TIMEOUT, hold, job, NULL);
	job->got += evbuffer_get_length(body);
}

/* Of a server that leaves, by its next answer. */
static bool is_cut_off(const struct job *job)
{
	return us.mode == BROKEN || us.mode == KILLED || (us.mode == REFUSED && job->requests);
}

static bool has_many(void)
{
	return us.mode == MANY || us.mode == LEAVE || us.mode == VANISH;
}

static unsigned requests_of_each(void)
{
	return has_many() ? REQUESTS : us.mode == REFUSED ? 2 : 1;
}

static enum evhttp_cmd_type type_of(const struct job *job)
{
	if (us.mode == REFUSED && job->requests)
		return EVHTTP_REQ_POST;
	if (job->place != NOWHERE)
		return job->place == WITHIN_REQUEST ? EVHTTP_REQ_POST : EVHTTP_REQ_GET;
	if (has_many() && (job->number + job->requests) % 2)
		return EVHTTP_REQ_POST;
	return modes[us.mode].type;
}

/* Each connection begins at another size. */
static size_t next_size(const struct job *job)
{
	if (job->place != NOWHERE || !has_many())
		return us.amount;
	return sizes[(job->number + job->requests) % SIZES];
}

static void on_done(struct evhttp_request *request, void *arg)
{
	struct job *job = arg;
	int code = request ? evhttp_request_get_response_code(request) : 0;

	if (is_cut_off(job)) {
		if (code && job->got == us.amount)
			die("all of it came");
		job_done(job);
		return;
	}
	if (job->place != NOWHERE)
		return;
	if (code != HTTP_OK)
		die("the answer is an error");
	if (job->is_asker) {
		on_left(job, evhttp_request_get_input_buffer(request));
		return;
	}
	if (job->got != (us.mode == HEAD ? 0 : job->wanted))
		die("the body has another length");
	if (++job->requests < requests_of_each())
		ask(job);
	else
		job_done(job);
}

/* What is answered on the first one of a server that leaves later is empty. */
static void prepare(struct job *job, struct evhttp_request *request, char *path, size_t size)
{
	evhttp_request_set_chunked_cb(request, on_chunk);
	snprintf(path, size, "/%s/%zu", modes[us.mode].path, job->wanted);
	if (type_of(job) == EVHTTP_REQ_POST)
		http_add_pattern(evhttp_request_get_output_buffer(request), job->wanted);
	else if (us.mode == REFUSED)
		job->wanted = 0;
}

/* A request without a body has left at once, one with a body in part. */
static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
	struct job *job = arg;

	if (!info->n_deleted)
		return;
	evbuffer_remove_cb(output, on_output, job);
	leave_soon(job);
}

static void ask(struct job *job)
{
	struct evhttp_request *request = evhttp_request_new(on_done, job);
	char path[64] = "/left";

	job->wanted = next_size(job);
	job->got = 0;
	if (!job->is_asker)
		prepare(job, request, path, sizeof(path));
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "test");
	if (evhttp_make_request(job->http, request, type_of(job), path))
		die("a request cannot be made");
	if (job->place == AFTER_REQUEST || job->place == WITHIN_REQUEST)
		evbuffer_add_cb(bufferevent_get_output(job->bev), on_output, job);
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

	us.count = has_many() ? (unsigned)us.amount : 1 + (us.mode == HOLD);
	us.jobs = calloc(us.count, sizeof(*us.jobs));
	for (i = 0; i < us.count; i++) {
		us.jobs[i].number = i;
		us.jobs[i].place = us.mode == LEAVE || us.mode == VANISH ? i % PLACES : NOWHERE;
		connect_job(&us.jobs[i]);
	}
	if (has_many())
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
	while (us.mode < MODES && strcmp(argv[2], modes[us.mode].name))
		us.mode++;
	us.amount = strtoul(argv[3], NULL, 10);
	if (us.mode == KILLED) {
		us.server = (pid_t)us.amount;
		us.amount = CUT_BYTES;
	}
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
