/*
 * The main() around an example: it runs on the fake kernel, with somebody to talk to on another
 * thread, and nothing may be left of it. EVR_OTHER_END says who that is:
 *
 *   (nothing)  nobody
 *   server     listens on ADDRESS, and sends every message and every datagram back
 *   fickle     the same, but refuses the first connection and leaves after each answer
 *   client     connects to ADDRESS, sends a message, and leaves when it is answered, or in time
 *   asker      the same with datagrams
 *
 * EVR_CLIENTS of them (1) come one after the other. With EVR_MESSAGES a client sends so many at
 * once, and all have to come back, in order; but with EVR_FIRST_BYTES the first client sends one
 * message of that length, whatever comes of it. A client that the program rejects was served.
 *
 * When the last has gone, the example gets a SIGINT if EVR_INTERRUPT is not empty; or the signals
 * in it, of USR1 and TERM.
 */
#include "fake/fake.h"

#include <evrdma/evrdma.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PORT = 7471,
	BUF_BYTES = 8192,
	ANSWER_MS = 100,
	RETRY_MS = 2,
	TRIES = 5000,
	REJECTED_BY_PROGRAM = 28
};

int example_main(int argc, char **argv);

static struct {
	pthread_t thread;
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_pool *pool;
	struct sockaddr_in addr;
	void (*visit)(void);
	struct event *timer;
	struct evrdma_conn *conn;
	bool is_fickle;
	unsigned requests;
	struct evrdma_dgram *dgram;
	int messages;
	int answers;
	int first_bytes;
	int clients_left;
	int tries_left;
	bool served;
	bool ready;
} us;

static void die(const char *what)
{
	fprintf(stderr, "the other end: %s\n", what);
	_exit(99);
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static void wait_ms(int ms)
{
	struct timeval tv = { .tv_usec = ms * 1000 };

	evtimer_add(us.timer, &tv);
}

static struct evrdma_buf *hello(void)
{
	struct evrdma_buf *buf = evrdma_pool_get(us.pool);

	if (!buf)
		die("no buffer");
	memcpy(evrdma_buf_data(buf), "hello", 5);
	return buf;
}

/* --- server --------------------------------------------------------------------------------- */

static void echo(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	if (!recv->written)
		evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL);
	if (us.is_fickle)
		evrdma_conn_disconnect(conn);
}

static void on_served(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR)
		evrdma_conn_close(conn);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	if (us.is_fickle && !us.requests++) {
		evrdma_request_reject(request, NULL, 0);
		return;
	}
	evrdma_conn_options_init(&options);
	options.recv_pool = us.pool;
	options.send_queue = 1024;
	conn = evrdma_conn_new(us.base, &options);
	if (!conn || evrdma_conn_accept(conn, request))
		die("cannot accept");
	evrdma_conn_setcb(conn, echo, on_served, NULL);
}

static void on_asked(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	if (evrdma_dgram_accept(us.dgram, request, NULL, 0))
		die("cannot accept datagrams");
}

static void echo_dgram(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct evrdma_buf *buf = evrdma_pool_get(us.pool);

	if (recv->err || !buf)
		die("no datagram");
	memcpy(evrdma_buf_data(buf), recv->data, recv->len);
	evrdma_dgram_reply(dgram, recv, buf, recv->len, NULL, NULL, NULL);
	evrdma_buf_unref(buf);
}

static struct evrdma_dgram *open_dgram(evrdma_dgram_recv_cb recv_cb, evrdma_dgram_event_cb cb)
{
	struct sockaddr_in any_port = us.addr;
	struct evrdma_dgram_options options;
	struct evrdma_dgram *dgram;

	any_port.sin_port = 0;
	evrdma_dgram_options_init(&options);
	options.recv_pool = us.pool;
	dgram = evrdma_dgram_new(us.base, &options);
	if (!dgram || evrdma_dgram_open(dgram, (struct sockaddr *)&any_port, NULL))
		die("no endpoint");
	evrdma_dgram_setcb(dgram, recv_cb, cb, NULL);
	return dgram;
}

static void on_server(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	us.ready |= event == EVRDMA_DGRAM_READY;
	if (event == EVRDMA_DGRAM_ERROR)
		die("the endpoint broke");
}

/* No request may come before there is an endpoint to accept it, nor the example before both. */
static void serve(void)
{
	struct evrdma_listener_options options;

	if (!evrdma_listener_new(us.base, (struct sockaddr *)&us.addr, NULL, on_request, NULL))
		die("cannot listen");
	us.dgram = open_dgram(echo_dgram, on_server);
	while (!us.ready)
		event_base_loop(us.loop, EVLOOP_ONCE);
	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_UDP;
	if (!evrdma_listener_new(us.base, (struct sockaddr *)&us.addr, &options, on_asked, NULL))
		die("cannot listen for datagrams");
}

/* --- client and asker ----------------------------------------------------------------------- */

static void interrupt(const char *signals)
{
	if (strstr(signals, "USR1"))
		kill(getpid(), SIGUSR1);
	kill(getpid(), strstr(signals, "TERM") ? SIGTERM : SIGINT);
}

/* Whoever was there has gone: the next one, or the end. */
static void next_client(void)
{
	us.conn = NULL;
	us.dgram = NULL;
	if (us.served && --us.clients_left == 0) {
		if (is_set("EVR_INTERRUPT"))
			interrupt(getenv("EVR_INTERRUPT"));
		event_del(us.timer);
		evrdma_base_close(us.base, NULL, NULL);
	} else if (--us.tries_left == 0) {
		die("nobody listens");
	} else {
		wait_ms(RETRY_MS);
	}
	us.served = false;
}

/* The answer is late, or the next client is due. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	if (us.conn)
		evrdma_conn_disconnect(us.conn);
	else if (us.dgram)
		evrdma_dgram_close(us.dgram);
	else
		us.visit();
}

/* The n-th of several has its number in place of the first letter. */
static void on_answer(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	const char *data = recv->data;

	if (recv->len != 5 || memcmp(data + 1, "ello", 4))
		return;
	if (us.messages && data[0] != (char)us.answers)
		die("an answer is out of order");
	if (++us.answers >= us.messages)
		evrdma_conn_disconnect(conn);
}

static void send_message(struct evrdma_conn *conn, char first, size_t len)
{
	struct evrdma_buf *buf = hello();

	*(char *)evrdma_buf_data(buf) = first;
	if (evrdma_conn_send(conn, buf, len, NULL, NULL))
		die("cannot send");
	evrdma_buf_unref(buf);
}

static void speak(struct evrdma_conn *conn)
{
	int i;

	us.answers = 0;
	us.served = true;
	if (us.first_bytes >= 0)
		send_message(conn, 'h', us.first_bytes);
	for (i = 0; us.first_bytes < 0 && i < us.messages; i++)
		send_message(conn, (char)i, 5);
	if (us.messages)
		return;
	send_message(conn, 'h', 5);
	wait_ms(ANSWER_MS);
}

/* Where all have to be answered, it must not end before they are. */
static void on_end(struct evrdma_conn *conn, const struct evrdma_error *error)
{
	if (us.served && us.first_bytes < 0 && us.answers < us.messages)
		die("not all was answered");
	if (us.served)
		us.first_bytes = -1;
	us.served |= error && error->cm_status == REJECTED_BY_PROGRAM;
	evrdma_conn_close(conn);
}

static void on_client(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_CLOSED)
		next_client();
	else if (event == EVRDMA_CONN_CONNECTED)
		speak(conn);
	else
		on_end(conn, error);
}

static void visit(void)
{
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.recv_pool = us.pool;
	us.conn = evrdma_conn_new(us.base, &options);
	if (!us.conn)
		die("no connection");
	evrdma_conn_setcb(us.conn, on_answer, on_client, NULL);
	evrdma_conn_connect(us.conn, NULL, (struct sockaddr *)&us.addr);
}

static void on_reply(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	us.served = true;
	evrdma_dgram_close(dgram);
}

static void on_service(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct evrdma_buf *buf;

	if (event == EVRDMA_PEER_READY) {
		buf = hello();
		evrdma_dgram_send_to(us.dgram, peer, buf, 5, NULL, NULL, NULL);
		evrdma_buf_unref(buf);
		wait_ms(ANSWER_MS);
	} else if (event == EVRDMA_PEER_ERROR) {
		evrdma_dgram_close(us.dgram);
	}
}

static void on_asker(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_DGRAM_ERROR)
		die("the endpoint broke");
	if (event == EVRDMA_DGRAM_CLOSED)
		next_client();
	if (event == EVRDMA_DGRAM_READY &&
		!evrdma_peer_new(dgram, (struct sockaddr *)&us.addr, NULL, on_service, NULL))
		die("no peer");
}

static void ask(void)
{
	us.dgram = open_dgram(on_reply, on_asker);
}

/* --- the thread ----------------------------------------------------------------------------- */

/* Signals are the example's, whose thread takes them in their order; two threads might not. */
static void *run(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	event_base_dispatch(us.loop);
	return NULL;
}

static bool is_server(const char *role)
{
	return !strcmp(role, "server") || !strcmp(role, "fickle");
}

static int number(const char *name, int otherwise)
{
	return is_set(name) ? atoi(getenv(name)) : otherwise;
}

static void start(const char *role)
{
	us.loop = event_base_new();
	us.base = evrdma_base_new(us.loop, NULL);
	us.pool = evrdma_pool_new(us.base, BUF_BYTES, 0);
	us.timer = evtimer_new(us.loop, on_timer, NULL);
	us.addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	inet_pton(AF_INET, FAKE_ROCE_IP, &us.addr.sin_addr);
	us.clients_left = number("EVR_CLIENTS", 1);
	us.messages = number("EVR_MESSAGES", 0);
	us.first_bytes = number("EVR_FIRST_BYTES", -1);
	us.tries_left = TRIES;
	us.visit = !strcmp(role, "client") ? visit : ask;
	us.is_fickle = !strcmp(role, "fickle");
	if (is_server(role))
		serve();
	else
		wait_ms(RETRY_MS);
	if (pthread_create(&us.thread, NULL, run, NULL))
		die("no thread");
}

static void quit(struct evrdma_base *base, void *arg)
{
	evrdma_base_close(base, NULL, NULL);
}

static void stop(const char *role)
{
	if (is_server(role))
		evrdma_base_run_in_loop(us.base, quit, NULL);
	pthread_join(us.thread, NULL);
	event_free(us.timer);
	event_base_free(us.loop);
}

int main(int argc, char **argv)
{
	const char *role = is_set("EVR_OTHER_END") ? getenv("EVR_OTHER_END") : NULL;
	const char *left;
	int status;

	fake_install();
	if (role)
		start(role);
	status = example_main(argc, argv);
	if (role)
		stop(role);
	left = fake_expect_clean();
	if (left)
		fprintf(stderr, "left behind: %s\n", left);
	return left ? 98 : status;
}
