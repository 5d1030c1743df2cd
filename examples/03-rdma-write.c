/*
 * Writes a text into the memory of a server.
 *
 *   03-rdma-write ADDRESS:PORT          the server: prints what comes, until it is killed
 *   03-rdma-write ADDRESS:PORT TEXT     a client
 *
 * The server opens some memory to each client, and says where it is. The client writes there, past
 * the server's processor, and then says how much: no send overtakes a write before it.
 */
#include <arpa/inet.h>
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_BYTES = 65536 };

static struct evrdma_conn_options options;

static int send_inline(struct evrdma_conn *conn, const void *data, size_t len)
{
	struct evrdma_work work = { .op = EVRDMA_OP_SEND, .inline_data = data, .inline_len = len };

	return evrdma_conn_submit(conn, &work, NULL, NULL);
}

/* --- the server ----------------------------------------------------------------------------- */

static void release(void *memory, size_t size, void *arg)
{
	free(memory);
}

static void on_written(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *room)
{
	uint32_t len = 0;

	if (recv->len == sizeof(len))
		memcpy(&len, recv->data, sizeof(len));
	len = ntohl(len);
	if (len <= ROOM_BYTES)
		printf("%.*s\n", (int)len, (char *)evrdma_buf_data(room));
}

static int send_room(struct evrdma_conn *conn, struct evrdma_buf *room)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_remote remote;
	int ret = evrdma_conn_expose(conn, room, &remote);

	if (ret)
		return ret;
	evrdma_remote_pack(&remote, packed);
	return send_inline(conn, packed, sizeof(packed));
}

static void on_served(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *room)
{
	if (event == EVRDMA_CONN_CLOSED)
		evrdma_buf_unref(room); /* now nobody can write there */
	else if (event != EVRDMA_CONN_CONNECTED || send_room(conn, room))
		evrdma_conn_close(conn);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *base)
{
	struct evrdma_conn *conn = evrdma_conn_new(base, &options);
	void *memory = malloc(ROOM_BYTES);
	struct evrdma_buf *room = evrdma_buf_new_reference(
		memory, ROOM_BYTES, EVRDMA_BUF_OPT_REMOTE_WRITE, release, NULL);

	if (room && conn && !evrdma_conn_accept(conn, request)) {
		evrdma_conn_setcb(conn, on_written, on_served, room);
		return;
	}
	evrdma_request_reject(request, NULL, 0);
	evrdma_conn_close(conn);
	if (room)
		evrdma_buf_unref(room);
	else
		free(memory);
}

/* --- the client ----------------------------------------------------------------------------- */

/* The server has said where. */
static void on_room(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	uint32_t len = (uint32_t)strlen(arg), sent_len = htonl(len);
	struct evrdma_buf *buf = evrdma_buf_new_reference(arg, len, 0, NULL, NULL);
	struct evrdma_seg seg = { .buf = buf, .len = len };
	struct evrdma_work write = { .op = EVRDMA_OP_WRITE, .segs = &seg, .seg_count = 1 };

	if (buf && recv->len == EVRDMA_REMOTE_PACKED_BYTES) {
		evrdma_remote_unpack(&write.remote, recv->data);
		if (!evrdma_conn_submit(conn, &write, NULL, NULL))
			send_inline(conn, &sent_len, sizeof(sent_len));
	}
	evrdma_buf_unref(buf);
	evrdma_conn_disconnect(conn); /* when both have arrived */
}

static void on_client(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_CONN_ERROR)
		fprintf(stderr, "%s\n", evrdma_error_text(error, why, sizeof(why)));
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_base_close(evrdma_conn_get_base(conn), NULL, NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	struct sockaddr *sa = (struct sockaddr *)&addr;
	int len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);
	struct evrdma_listener_options listening;
	struct evrdma_conn *conn;

	if (!base)
		return perror("evrdma_base_new"), 1;
	if (argc < 2 || evutil_parse_sockaddr_port(argv[1], sa, &len))
		return fprintf(stderr, "usage: 03-rdma-write ADDRESS:PORT [TEXT]\n"), 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	evrdma_conn_options_init(&options);
	options.recv_pool = evrdma_pool_new(base, 64, 0);
	options.inline_bytes = EVRDMA_REMOTE_PACKED_BYTES;
	evrdma_listener_options_init(&listening);
	listening.relisten_ms = 1000; /* when the device was removed, until it is back */
	if (argc > 2) {
		conn = evrdma_conn_new(base, &options);
		evrdma_conn_setcb(conn, on_room, on_client, argv[2]);
		evrdma_conn_connect(conn, NULL, sa);
	} else if (!evrdma_listener_new(base, sa, &listening, on_request, base)) {
		return perror("cannot listen"), 1;
	}
	event_base_dispatch(loop);
	event_base_free(loop);
	return 0;
}
