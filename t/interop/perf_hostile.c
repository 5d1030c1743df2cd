/*
 * A peer of evrdma-perf that knows its words and not when to say them.
 *
 *   perf_hostile SEED ADDRESS PORT                  a server: each message is answered with some
 *   perf_hostile SEED ADDRESS PORT CONNECTIONS      clients, one after the other
 *   perf_hostile SEED ADDRESS PORT keep             a server that is ready and takes nothing, but
 *                                                   says something twice a second for ever
 *
 * What it says follows from the seed. A server ends by SIGTERM, clients when the last is closed.
 */
#include <evrdma/evrdma.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_wire.h"
#include "schedule/random.h"

enum { BYTES = 4096, DEPTH = 32, WORDS_MOST = 4, CLIENT_MS = 200, KEEP_MS = 500 };

static struct random dice;
static struct evrdma_base *base;
static struct evrdma_pool *pool;
static struct sockaddr_in peer;
static struct event *timer; /* of a client that has said what it had to say */
static struct evrdma_conn *client;
static long left; /* clients */
static int keeps;

static void ended(const char *what)
{
	perror(what);
	exit(1);
}

/* --- what is said ---------------------------------------------------------------------------- */

static uint64_t some_number(void)
{
	static const uint64_t numbers[] = { 0, 1, 2, 50, 64, 3200, UINT32_MAX, UINT64_MAX };

	return RANDOM_OF(&dice, numbers);
}

/* A word, or what is none: the size of data, of a word, or any. Returns how long it is. */
static size_t some_word(uint8_t *bytes)
{
	static const size_t sizes[] = { 0, 1, 31, PERF_WORD_BYTES, 64, 64, 65, BYTES };
	const struct perf_word word = {
		.type = (enum perf_type)random_below(&dice, PERF_REPORT + 2),
		.messages = some_number(),
		.bytes = some_number(),
	};

	memset(bytes, 0, BYTES);
	if (word.type == PERF_DATA)
		return RANDOM_OF(&dice, sizes);
	perf_word_pack(&word, bytes);
	return random_once_in(&dice, 10) ? RANDOM_OF(&dice, sizes) : PERF_WORD_BYTES;
}

static void say_bytes(struct evrdma_conn *conn, const void *bytes, size_t len)
{
	struct evrdma_buf *buf = evrdma_pool_get(pool);

	if (!buf)
		ended("evrdma_pool_get");
	memcpy(evrdma_buf_data(buf), bytes, len);
	evrdma_conn_send(conn, buf, len, NULL, NULL);
	evrdma_buf_unref(buf);
}

static void say_some(struct evrdma_conn *conn)
{
	unsigned words = 1 + random_below(&dice, WORDS_MOST);
	uint8_t bytes[BYTES];

	while (words--) {
		size_t len = some_word(bytes);

		say_bytes(conn, bytes, len);
	}
	if (random_once_in(&dice, 20))
		evrdma_conn_disconnect(conn);
	else if (random_once_in(&dice, 40))
		evrdma_conn_close(conn);
}

static void recv_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *unused)
{
	say_some(conn);
}

static void fill_options(struct evrdma_conn_options *options)
{
	evrdma_conn_options_init(options);
	options->recv_pool = pool;
	options->recv_depth = options->send_depth = DEPTH;
	options->responder_resources = options->initiator_depth = 1;
}

/* --- a server that keeps its clients --------------------------------------------------------- */

/* What is said again and again on one connection. */
struct kept {
	struct evrdma_conn *conn;
	bool idle; /* a word on one of those would end it */
	struct event *timer;
	uint8_t bytes[BYTES];
	size_t len;
};

static void say_again(evutil_socket_t unused, short what, void *arg)
{
	const struct kept *kept = arg;

	say_bytes(kept->conn, kept->bytes, kept->len);
}

static void say_ready(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *unused)
{
	const struct perf_word ready = { .type = PERF_READY };
	uint8_t bytes[PERF_WORD_BYTES];
	struct perf_word word;

	if (perf_word_unpack(&word, recv->data, recv->len) || word.type != PERF_START)
		return;
	perf_word_pack(&ready, bytes);
	say_bytes(conn, bytes, sizeof(bytes));
}

static void kept_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	const struct timeval time = { 0, KEEP_MS * 1000 };
	struct kept *kept = arg;

	if (event == EVRDMA_CONN_CONNECTED && !kept->idle) {
		event_add(kept->timer, &time);
	} else if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED) {
		evrdma_conn_close(conn);
	} else if (event == EVRDMA_CONN_CLOSED) {
		event_free(kept->timer);
		free(kept);
	}
}

/* Of nothing, of more than was sent, or an answer to what asks for none. */
static void choose_what_to_say(struct kept *kept)
{
	const struct perf_word grant = { .type = PERF_GRANT, .messages = some_number() };

	kept->len = random_once_in(&dice, 3) ? 64 : PERF_WORD_BYTES; /* data, of -S 64 */
	if (kept->len == PERF_WORD_BYTES)
		perf_word_pack(&grant, kept->bytes);
}

static bool is_idle(const struct evrdma_request *request)
{
	struct perf_hello hello;
	size_t len;
	const void *greeting = evrdma_request_get_private_data(request, &len);

	return perf_hello_unpack(&hello, greeting, len) || hello.test == PERF_CONNECT;
}

static void keep(struct evrdma_conn *conn, const struct evrdma_request *request)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	if (!kept)
		ended("calloc");
	choose_what_to_say(kept);
	kept->idle = is_idle(request);
	kept->conn = conn;
	kept->timer = event_new(evrdma_base_get_event_base(base), -1, EV_PERSIST, say_again, kept);
	if (!kept->timer)
		ended("event_new");
	evrdma_conn_setcb(conn, say_ready, kept_event, kept);
}

/* --- a server -------------------------------------------------------------------------------- */

static void server_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *unused)
{
	if (event == EVRDMA_CONN_CONNECTED && random_once_in(&dice, 4))
		say_some(conn);
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *unused)
{
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;
	uint8_t noise[PERF_REFUSAL_BYTES];

	if (!keeps && random_once_in(&dice, 20)) {
		perf_refusal_pack((enum perf_refusal)random_below(&dice, 8), noise);
		evrdma_request_reject(request, noise, sizeof(noise));
		return;
	}
	fill_options(&options);
	conn = evrdma_conn_new(base, &options);
	if (!conn)
		ended("evrdma_conn_new");
	if (keeps)
		keep(conn, request);
	else
		evrdma_conn_setcb(conn, recv_came, server_event, NULL);
	if (evrdma_conn_accept(conn, request))
		evrdma_conn_close(conn);
}

static void stop(evutil_socket_t unused, short what, void *arg)
{
	event_free(arg);
	evrdma_base_close(base, NULL, NULL);
}

static void start_server(struct event_base *loop)
{
	struct event *end = evsignal_new(loop, SIGTERM, stop, event_self_cbarg());

	if (!evrdma_listener_new(base, (struct sockaddr *)&peer, NULL, request_came, NULL))
		ended("evrdma_listener_new");
	if (!end || event_add(end, NULL))
		ended("event_add");
}

/* --- clients --------------------------------------------------------------------------------- */

static void next_client(void);

static void enough(evutil_socket_t unused, short what, void *arg)
{
	if (random_once_in(&dice, 2))
		evrdma_conn_disconnect(client);
	else
		evrdma_conn_close(client);
}

static void client_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *unused)
{
	const struct timeval while_it_is_answered = { 0, CLIENT_MS * 1000 };

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		event_add(timer, &while_it_is_answered);
		say_some(conn);
		break;
	case EVRDMA_CONN_ERROR:
	case EVRDMA_CONN_DISCONNECTED:
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_CLOSED:
		event_del(timer);
		next_client();
		break;
	default:
		break;
	}
}

/* Mostly one that can be served. */
static size_t some_greeting(uint8_t *bytes)
{
	static const uint32_t sizes[] = { 1, 31, 64, BYTES, 0, 1 << 26, UINT32_MAX };
	static const uint32_t windows[] = { 1, 2, 64, 4096, 0, UINT32_MAX };
	const struct perf_hello hello = {
		.test = (enum perf_test)random_below(&dice, PERF_TESTS + 1),
		.window = windows[random_below(&dice, random_once_in(&dice, 5) ? 6 : 3)],
		.size = sizes[random_below(&dice, random_once_in(&dice, 5) ? 7 : 4)],
	};

	perf_hello_pack(&hello, bytes);
	return random_once_in(&dice, 10) ? random_below(&dice, PERF_HELLO_BYTES) : PERF_HELLO_BYTES;
}

static void next_client(void)
{
	struct evrdma_conn_options options;
	uint8_t greeting[PERF_HELLO_BYTES];

	if (!left--) {
		event_free(timer);
		evrdma_base_close(base, NULL, NULL);
		return;
	}
	fill_options(&options);
	options.private_data = greeting;
	options.private_data_len = (uint8_t)some_greeting(greeting);
	client = evrdma_conn_new(base, &options);
	if (!client)
		ended("evrdma_conn_new");
	evrdma_conn_setcb(client, recv_came, client_event, NULL);
	if (evrdma_conn_connect(client, NULL, (struct sockaddr *)&peer))
		evrdma_conn_close(client);
}

static void start_clients(struct event_base *loop)
{
	timer = evtimer_new(loop, enough, NULL);
	if (!timer)
		ended("evtimer_new");
	next_client();
}

/* --- both ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
	struct event_base *loop = event_base_new();

	peer.sin_family = AF_INET;
	if (!loop || argc < 4 || inet_pton(AF_INET, argv[2], &peer.sin_addr) != 1) {
		fprintf(stderr, "usage: perf_hostile SEED ADDRESS PORT [CONNECTIONS|keep]\n");
		return 1;
	}
	dice.state = strtoull(argv[1], NULL, 10);
	peer.sin_port = htons((uint16_t)atoi(argv[3]));
	base = evrdma_base_new(loop, NULL);
	pool = base ? evrdma_pool_new(base, BYTES, 0) : NULL;
	if (!pool)
		ended("evrdma_base_new");
	keeps = argc > 4 && !strcmp(argv[4], "keep");
	left = argc > 4 ? atol(argv[4]) : 0;
	if (left)
		start_clients(loop);
	else
		start_server(loop);
	event_base_dispatch(loop); /* until the base is closed */
	event_base_free(loop);
	return 0;
}
