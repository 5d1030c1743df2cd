/*
 * Stays connected to an echo server, whatever becomes of it: asks it once a second, and when the
 * connection ends or cannot be made, makes another one.
 *
 *   07-reconnect ADDRESS:PORT [ANSWERS]     ends after so many answers; without a number, never
 *
 * A connection object is used once, so each attempt has its own. The wait before it doubles each
 * time, from a tenth of a second to ten seconds, and begins anew with the first answer: being
 * connected is not enough, a server that is overloaded may accept and go. Half of the wait is
 * random, so that the clients of a server that was restarted do not all come at once.
 */
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_WAIT_MS = 100, LONGEST_WAIT_MS = 10000, ASK_MS = 1000 };

struct client {
	struct evrdma_base *base;
	struct evrdma_conn_options options;
	struct sockaddr_storage server;
	struct evrdma_conn *conn; /* NULL while it waits for the next attempt */
	struct event *connect_timer;
	struct event *ask_timer;
	unsigned wait_ms;
	int answers_left; /* negative: for ever */
};

static void add_timer(struct event *timer, unsigned ms)
{
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	event_add(timer, &tv);
}

static void ask(struct client *client)
{
	struct evrdma_buf *buf = evrdma_pool_get(client->options.recv_pool);

	if (buf) {
		memcpy(evrdma_buf_data(buf), "hello", 5);
		evrdma_conn_send(client->conn, buf, 5, NULL, NULL);
	}
	evrdma_buf_unref(buf);
	add_timer(client->ask_timer, ASK_MS);
}

static void on_ask_timer(evutil_socket_t fd, short what, void *arg)
{
	ask(arg);
}

static void stop(struct client *client)
{
	event_del(client->connect_timer);
	event_del(client->ask_timer);
	evrdma_base_close(client->base, NULL, NULL);
}

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct client *client = arg;

	printf("%.*s\n", (int)recv->len, (const char *)recv->data);
	client->wait_ms = FIRST_WAIT_MS;
	if (client->answers_left > 0 && --client->answers_left == 0)
		stop(client);
}

static void try_later(struct client *client)
{
	unsigned half = client->wait_ms / 2;
	uint32_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	add_timer(client->connect_timer, half + random % (half + 1));
	client->wait_ms *= 2;
	if (client->wait_ms > LONGEST_WAIT_MS)
		client->wait_ms = LONGEST_WAIT_MS;
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	char text[EVRDMA_ERROR_TEXT_MAX];
	struct client *client = arg;

	if (event == EVRDMA_CONN_CONNECTED)
		ask(client);
	if (event != EVRDMA_CONN_DISCONNECTED && event != EVRDMA_CONN_ERROR)
		return;
	fprintf(stderr, "%s\n",
		error ? evrdma_error_text(error, text, sizeof(text)) : "the server has left");
	event_del(client->ask_timer);
	client->conn = NULL;
	evrdma_conn_close(conn);
	try_later(client);
}

static void on_connect_timer(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;

	client->conn = evrdma_conn_new(client->base, &client->options);
	if (!client->conn) {
		perror("evrdma_conn_new");
		try_later(client);
		return;
	}
	evrdma_conn_setcb(client->conn, on_recv, on_event, client);
	evrdma_conn_connect(client->conn, NULL, (struct sockaddr *)&client->server);
}

static int run(struct client *client, struct event_base *loop)
{
	client->base = evrdma_base_new(loop, NULL);
	if (!client->base)
		return perror("evrdma_base_new"), 1;
	evrdma_conn_options_init(&client->options);
	client->options.recv_pool = evrdma_pool_new(client->base, 4096, 0);
	client->options.recv_depth = 4;
	client->options.keepalive_ms = 2000; /* a server that is cut off says nothing */
	client->wait_ms = FIRST_WAIT_MS;
	client->connect_timer = evtimer_new(loop, on_connect_timer, client);
	client->ask_timer = evtimer_new(loop, on_ask_timer, client);
	add_timer(client->connect_timer, 0);
	event_base_dispatch(loop);
	event_free(client->connect_timer);
	event_free(client->ask_timer);
	return 0;
}

int main(int argc, char **argv)
{
	struct client client = { .answers_left = argc > 2 ? atoi(argv[2]) : -1 };
	struct sockaddr *server = (struct sockaddr *)&client.server;
	int len = sizeof(client.server), status;
	struct event_base *loop;

	if (argc < 2 || evutil_parse_sockaddr_port(argv[1], server, &len))
		return fprintf(stderr, "usage: 07-reconnect ADDRESS:PORT [ANSWERS]\n"), 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	loop = event_base_new();
	status = run(&client, loop);
	event_base_free(loop);
	return status;
}
