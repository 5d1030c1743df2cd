/* Connects to an echo server, sends it a message, prints the answer, and closes. */
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <string.h>

static int status = 1;

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	printf("%.*s\n", (int)recv->len, (const char *)recv->data);
	status = 0;
	evrdma_conn_close(conn);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *pool)
{
	char text[EVRDMA_ERROR_TEXT_MAX];
	struct evrdma_buf *buf;

	if (event == EVRDMA_CONN_CONNECTED && (buf = evrdma_pool_get(pool))) {
		memcpy(evrdma_buf_data(buf), "hello", 5);
		evrdma_conn_send(conn, buf, 5, NULL, NULL);
		evrdma_buf_unref(buf);
	} else if (event == EVRDMA_CONN_CLOSED) {
		evrdma_base_close(evrdma_conn_get_base(conn), NULL, NULL);
	} else {
		if (error)
			evrdma_error_text(error, text, sizeof(text));
		fprintf(stderr, "%s\n", error ? text : "no answer");
		evrdma_conn_close(conn);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);
	struct evrdma_conn_options options;
	struct evrdma_conn *conn;

	if (!base)
		return perror("evrdma_base_new"), 1;
	if (argc < 2 || evutil_parse_sockaddr_port(argv[1], (struct sockaddr *)&addr, &len))
		return fprintf(stderr, "usage: 01-connect ADDRESS:PORT\n"), 1;
	evrdma_conn_options_init(&options);
	options.recv_pool = evrdma_pool_new(base, 4096, 0);
	conn = evrdma_conn_new(base, &options);
	evrdma_conn_setcb(conn, on_recv, on_event, options.recv_pool);
	evrdma_conn_connect(conn, NULL, (struct sockaddr *)&addr);
	event_base_dispatch(loop); /* returns when the base is closed */
	event_base_free(loop);
	return status;
}
