/*
 * A key-value server whose clients read past its processor.
 *
 *   11-kv-server ADDRESS:PORT [ADDRESS:PORT]     the first is RDMA's, the second TCP's
 *
 * The table is one piece of registered memory. A client that connects is told where, and gets a
 * value by an RDMA read of its slot; a put is a message, which the loop carries out and answers.
 * So a read may meet a put halfway: each slot has a sum over its version and its value, by which
 * the reader sees that, and reads again. Over TCP the same loop serves the same table with a plain
 * bufferevent. Ends when it is interrupted.
 */
#include "11-key-value.h"

#include <evrdma/evrdma.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

enum { SHUTDOWN_MS = 2000, ANSWER_BYTES = sizeof(struct kv_answer) + sizeof(struct kv_head) };

/* A connection over TCP. */
struct visit {
	LIST_ENTRY(visit) next;
	struct bufferevent *bev;
};

static LIST_HEAD(, visit) visits = LIST_HEAD_INITIALIZER(visits);
static struct evrdma_base *base;
static struct evrdma_conn_options options;
static struct evrdma_buf *table;
static struct event *signal_event;
static struct evconnlistener *tcp_listener;

/* --- the table ------------------------------------------------------------------------------ */

static struct kv_head *slot_of(uint32_t key)
{
	return (struct kv_head *)((char *)evrdma_buf_data(table) + kv_offset(key));
}

/* Who reads it meanwhile sees that by the sum. */
static void slot_set(uint32_t key, const void *value, uint32_t len)
{
	struct kv_head *slot = slot_of(key);

	slot->version = htobe64(be64toh(slot->version) + 1);
	slot->key = htobe32(key);
	slot->len = htobe32(len);
	if (len)
		memcpy(slot + 1, value, len);
	slot->sum = htobe64(kv_sum(slot));
}

static void release(void *memory, size_t size, void *arg)
{
	free(memory);
}

static int make_table(void)
{
	size_t bytes = kv_offset(KV_KEYS - 1) + kv_slot_bytes(KV_KEYS - 1);
	void *memory = calloc(1, bytes);
	uint32_t key;

	table = evrdma_buf_new_reference(
		memory, bytes, EVRDMA_BUF_OPT_REMOTE_READ, release, NULL);
	if (!table)
		return free(memory), -1;
	for (key = 0; key < KV_KEYS; key++)
		slot_set(key, NULL, 0);
	return 0;
}

static int is_sound(const struct kv_request *request)
{
	uint32_t key = be32toh(request->key);

	return key < KV_KEYS && be32toh(request->len) <= kv_room(key);
}

/* --- by RDMA -------------------------------------------------------------------------------- */

static int send_inline(struct evrdma_conn *conn, const void *data, size_t len)
{
	struct evrdma_work work = { .op = EVRDMA_OP_SEND, .inline_data = data, .inline_len = len };

	return evrdma_conn_submit(conn, &work, NULL, NULL);
}

static int put(struct evrdma_conn *conn, const struct kv_request *request)
{
	uint32_t key = be32toh(request->key);
	char bytes[ANSWER_BYTES];
	struct kv_answer answer = { request->tag, htobe32(sizeof(struct kv_head)) };

	slot_set(key, request + 1, be32toh(request->len));
	memcpy(bytes, &answer, sizeof(answer));
	memcpy(bytes + sizeof(answer), slot_of(key), sizeof(struct kv_head));
	return send_inline(conn, bytes, sizeof(bytes));
}

/* The buffer is posted again before the answer leaves, so KV_PUTS of them are always enough. */
static void on_put(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	const struct kv_request *request = recv->data;

	if (recv->err)
		return;
	if (recv->len < sizeof(*request) || !is_sound(request) ||
		recv->len != sizeof(*request) + be32toh(request->len) || put(conn, request))
		evrdma_conn_close(conn);
}

static int send_table(struct evrdma_conn *conn)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_remote remote;
	int ret = evrdma_conn_expose(conn, table, &remote);

	if (ret)
		return ret;
	evrdma_remote_pack(&remote, packed);
	return send_inline(conn, packed, sizeof(packed));
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_CONN_CLOSED)
		return;
	if (error)
		fprintf(stderr, "%s\n", evrdma_error_text(error, why, sizeof(why)));
	if (event != EVRDMA_CONN_CONNECTED || send_table(conn))
		evrdma_conn_close(conn);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn *conn = evrdma_conn_new(base, &options);

	if (conn && !evrdma_conn_accept(conn, request)) {
		evrdma_conn_setcb(conn, on_put, on_event, NULL);
		return;
	}
	evrdma_request_reject(request, NULL, 0);
	evrdma_conn_close(conn);
}

static int listen_rdma(const struct sockaddr *addr)
{
	struct evrdma_listener_options listening;

	evrdma_conn_options_init(&options);
	options.recv_pool = evrdma_pool_new(base, sizeof(struct kv_request) + KV_MOST_ROOM, 0);
	options.recv_depth = KV_PUTS;
	options.inline_bytes = ANSWER_BYTES;
	options.responder_resources = 16; /* reads of a client at once: devices commonly can */
	evrdma_listener_options_init(&listening);
	listening.relisten_ms = 1000; /* when the device was removed, until it is back */
	if (!options.recv_pool)
		return -1;
	return evrdma_listener_new(base, addr, &listening, on_request, NULL) ? 0 : -1;
}

/* --- by TCP --------------------------------------------------------------------------------- */

static void visit_free(struct visit *visit)
{
	LIST_REMOVE(visit, next);
	bufferevent_free(visit->bev);
	free(visit);
}

static void on_end(struct bufferevent *bev, short what, void *visit)
{
	visit_free(visit);
}

static void answer(struct evbuffer *output, const struct kv_request *request)
{
	const struct kv_head *slot = slot_of(be32toh(request->key));
	uint32_t len = sizeof(*slot) + (request->len ? 0 : be32toh(slot->len));
	struct kv_answer answer = { request->tag, htobe32(len) };

	evbuffer_add(output, &answer, sizeof(answer));
	evbuffer_add(output, slot, len);
}

/* Takes one request, when all of it is there: 1. 0: not yet. -1: it is none of ours. */
static int serve_one(struct bufferevent *bev)
{
	struct evbuffer *input = bufferevent_get_input(bev);
	struct kv_request request;
	uint32_t len;

	if (evbuffer_copyout(input, &request, sizeof(request)) < (ev_ssize_t)sizeof(request))
		return 0;
	if (!is_sound(&request))
		return -1;
	len = be32toh(request.len);
	if (evbuffer_get_length(input) < sizeof(request) + len)
		return 0;
	evbuffer_drain(input, sizeof(request));
	if (len)
		slot_set(be32toh(request.key), evbuffer_pullup(input, len), len);
	evbuffer_drain(input, len);
	answer(bufferevent_get_output(bev), &request);
	return 1;
}

static void on_read(struct bufferevent *bev, void *visit)
{
	int ret;

	while ((ret = serve_one(bev)) > 0)
		;
	if (ret < 0)
		visit_free(visit);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *arg)
{
	struct visit *visit = calloc(1, sizeof(*visit));

	if (visit)
		visit->bev = bufferevent_socket_new(
			evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
	if (!visit || !visit->bev) {
		evutil_closesocket(fd);
		free(visit);
		return;
	}
	LIST_INSERT_HEAD(&visits, visit, next);
	bufferevent_setcb(visit->bev, on_read, NULL, on_end, visit);
	bufferevent_enable(visit->bev, EV_READ | EV_WRITE);
}

static int listen_tcp(struct event_base *loop, const struct sockaddr *addr, int len)
{
	tcp_listener = evconnlistener_new_bind(loop, on_accept, NULL,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1, addr, len);
	return tcp_listener ? 0 : -1;
}

/* --- both ----------------------------------------------------------------------------------- */

static void end(void)
{
	event_del(signal_event);
	if (tcp_listener)
		evconnlistener_free(tcp_listener);
	while (!LIST_EMPTY(&visits))
		visit_free(LIST_FIRST(&visits));
	evrdma_base_shutdown(base, SHUTDOWN_MS, NULL, NULL);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	end();
}

static int run(struct event_base *loop, struct sockaddr_storage *addrs, int *lens, int count)
{
	int failed;

	signal_event = evsignal_new(loop, SIGINT, on_signal, NULL);
	event_add(signal_event, NULL);
	failed = make_table() || (count > 1 && listen_tcp(loop, (void *)&addrs[1], lens[1])) ||
		listen_rdma((void *)&addrs[0]);
	if (failed) {
		perror("cannot serve");
		end();
	}
	event_base_dispatch(loop); /* returns when the base is closed */
	event_free(signal_event);
	if (table)
		evrdma_buf_unref(table);
	return failed;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addrs[2];
	int i, status, lens[2] = { sizeof(addrs[0]), sizeof(addrs[1]) };
	int help = argc > 1 && !strcmp(argv[1], "-h"), wrong = argc < 2 || argc > 3;
	struct event_base *loop;

	for (i = 1; !help && !wrong && i < argc; i++)
		wrong = evutil_parse_sockaddr_port(argv[i], (void *)&addrs[i - 1], &lens[i - 1]);
	if (help || wrong)
		return fprintf(help ? stdout : stderr,
			       "usage: 11-kv-server ADDRESS:PORT [ADDRESS:PORT]\n"
			       "the first is RDMA's, the second TCP's\n"), !help;
	loop = event_base_new();
	base = evrdma_base_new(loop, NULL);
	if (!base)
		return perror("evrdma_base_new"), 1;
	status = run(loop, addrs, lens, argc - 1);
	event_base_free(loop);
	return status;
}
