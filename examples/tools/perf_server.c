/* The server of evrdma-perf: gets ready what a client's greeting asks for, and counts what comes.
 */
#include "perf.h"
#include "perf_complaints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SIZE_BITS = 32,
	POOL_KEPT_BYTES = 4 << 20, /* of a pool that nobody uses; making it anew takes time */
	SEND_DEPTH = 16, /* answers: the grants of two windows, four of each, and a report */
	PONG_DEPTH = 4,	 /* of a ping, which may be large and waits for each */
	IDLE_DEPTH = 2,  /* that it is ready, and the question whether its client is there */
	RELISTEN_MS = 1000
};

struct perf_server {
	struct perf *perf;
	struct evrdma_listener *listener;
	struct evrdma_pool *pools[SIZE_BITS]; /* of 1 << index bytes, for all */
	long users[SIZE_BITS];		      /* peers that receive into them */
	uint64_t bytes; /* that peers may fill, at most PERF_SERVER_MEMORY_MAX */
	struct perf_complaints complaints;
};

/* A connection of a client. */
struct perf_peer {
	struct perf_server *server;
	struct evrdma_conn *conn;
	struct perf_hello hello;
	struct evrdma_buf *memory; /* for the client's RDMA */
	uint32_t grant_after;	   /* messages, of which it is told that it may send more */
	uint32_t ungranted;
	int pool;      /* its number, that it receives into */
	uint64_t room; /* of the server's bytes, as long as it may be used */
	uint64_t messages;
	uint64_t bytes;
	int done; /* all is through, says its client */
};

static void tell_error(
	struct perf_server *server, const struct sockaddr *addr, const struct evrdma_error *error)
{
	char text[TOOL_ERROR_TEXT_MAX];

	perf_complain(&server->complaints, addr, "%s", ends_error_text(text, error));
}

static void fail(struct perf_peer *peer, int ret)
{
	const struct evrdma_error error = {
		.err = -ret, .step = EVRDMA_STEP_TRANSFER, .cm_event = -1
	};

	if (!ret || peer->server->perf->tool.stopping)
		return;
	tell_error(peer->server, evrdma_conn_get_peer_addr(peer->conn), &error);
	evrdma_conn_close(peer->conn);
}

/* Of buffers of the size and some more. */
static int pool_number(size_t size)
{
	int i = 0;

	while ((size_t)1 << i < size)
		i++;
	return i;
}

/* Each is made once, for all connections. */
static struct evrdma_pool *pool_at(struct perf_server *server, int i)
{
	if (!server->pools[i])
		server->pools[i] = evrdma_pool_new(server->perf->base, (size_t)1 << i, 0);
	return server->pools[i];
}

/* --- what is said ---------------------------------------------------------------------------- */

static int say(struct perf_peer *peer, const struct perf_word *word)
{
	struct evrdma_pool *pool = pool_at(peer->server, pool_number(PERF_WORD_BYTES));
	struct evrdma_buf *buf = pool ? evrdma_pool_get(pool) : NULL;
	int ret;

	if (!buf)
		return -errno;
	perf_word_pack(word, evrdma_buf_data(buf));
	ret = evrdma_conn_send(peer->conn, buf, PERF_WORD_BYTES, NULL, NULL);
	evrdma_buf_unref(buf);
	return ret;
}

static int say_ready(struct perf_peer *peer)
{
	struct perf_word word = { .type = PERF_READY };
	int ret = 0;

	if (peer->memory)
		ret = evrdma_conn_expose(peer->conn, peer->memory, &word.remote);
	return ret ? ret : say(peer, &word);
}

static int say_report(struct perf_peer *peer)
{
	const struct perf_word word = {
		.type = PERF_REPORT, .messages = peer->messages, .bytes = peer->bytes
	};

	return say(peer, &word);
}

static int grant(struct perf_peer *peer)
{
	const struct perf_word word = { .type = PERF_GRANT, .messages = peer->ungranted };

	if (peer->ungranted < peer->grant_after)
		return 0;
	peer->ungranted = 0;
	return say(peer, &word);
}

/* --- what comes ------------------------------------------------------------------------------ */

static int data_came(struct perf_peer *peer, const struct evrdma_recv *recv)
{
	peer->messages++;
	peer->bytes += recv->len;
	if (peer->hello.test == PERF_PING)
		return evrdma_conn_send(peer->conn, recv->buf, recv->len, NULL, NULL);
	peer->ungranted++;
	return grant(peer);
}

static int word_came(struct perf_peer *peer, const struct evrdma_recv *recv)
{
	struct perf_word word;

	if (perf_word_unpack(&word, recv->data, recv->len))
		return -EPROTO;
	switch (word.type) {
	case PERF_START:
		return say_ready(peer);
	case PERF_DONE:
		peer->done = 1;
		return say_report(peer);
	default:
		return -EPROTO;
	}
}

static void recv_came(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct perf_peer *peer = arg;
	const uint8_t *data = recv->data;

	if (!recv->len)
		fail(peer, -EPROTO);
	else if (data[0] == PERF_DATA)
		fail(peer, data_came(peer, recv));
	else
		fail(peer, word_came(peer, recv));
}

/* --- its beginning and its end --------------------------------------------------------------- */

/* A client has the next run's connections made as soon as those of the last are ended. */
static void give_room_back(struct perf_peer *peer)
{
	peer->server->bytes -= peer->room;
	peer->room = 0;
}

/* What a run had is not kept for the next, which may be of another size; but for a little. */
static void leave_pool(struct perf_peer *peer)
{
	struct evrdma_pool *pool = peer->server->pools[peer->pool];
	struct evrdma_pool_stats stats;

	if (--peer->server->users[peer->pool] || !pool)
		return;
	evrdma_pool_get_stats(pool, &stats);
	if (stats.bytes > POOL_KEPT_BYTES)
		evrdma_pool_trim(pool);
}

static void free_peer(struct perf_peer *peer)
{
	give_room_back(peer);
	leave_pool(peer);
	evrdma_buf_unref(peer->memory);
	free(peer);
}

/* One on which nothing is sent just ends. */
static int is_done(const struct perf_peer *peer)
{
	return peer->done || peer->hello.test == PERF_CONNECT;
}

static void disconnected(struct perf_peer *peer)
{
	if (!is_done(peer) && !peer->server->perf->tool.stopping)
		perf_complain(&peer->server->complaints, evrdma_conn_get_peer_addr(peer->conn),
			"it was gone before its run was over");
	give_room_back(peer);
	evrdma_conn_close(peer->conn);
}

static void conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct perf_peer *peer = arg;
	struct perf *perf = peer->server->perf;

	switch (event) {
	case EVRDMA_CONN_ERROR:
		if (!perf->tool.stopping)
			tell_error(peer->server, evrdma_conn_get_peer_addr(conn), error);
		evrdma_conn_close(conn);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		disconnected(peer);
		break;
	case EVRDMA_CONN_CLOSED:
		if (!is_done(peer))
			perf->tool.status = EXIT_FAILURE;
		free_peer(peer);
		break;
	case EVRDMA_CONN_CONNECTED:
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static void free_memory(void *data, size_t size, void *arg)
{
	free(data);
}

static int is_rdma(const struct perf_peer *peer)
{
	return peer->hello.test == PERF_WRITE || peer->hello.test == PERF_READ;
}

static int make_memory(struct perf_peer *peer)
{
	const unsigned flags = EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE;
	void *data;

	if (!is_rdma(peer))
		return 0;
	data = calloc(1, peer->hello.size);
	if (data)
		peer->memory =
			evrdma_buf_new_reference(data, peer->hello.size, flags, free_memory, NULL);
	if (!peer->memory)
		free(data);
	return peer->memory ? 0 : -1;
}

static uint32_t send_depth(const struct perf_peer *peer)
{
	if (peer->hello.test == PERF_CONNECT)
		return IDLE_DEPTH;
	return peer->hello.test == PERF_PING ? PONG_DEPTH : SEND_DEPTH;
}

/* For PERF_SEND twice the window, so that who sends seldom waits for a grant. */
static uint32_t recv_depth(const struct perf_peer *peer)
{
	const uint32_t words = 4;

	if (peer->hello.test == PERF_CONNECT)
		return 1;
	if (peer->hello.test != PERF_SEND)
		return words;
	return words + 2 * perf_window(peer->hello.window, peer->hello.size);
}

static size_t recv_size(const struct perf_peer *peer)
{
	int is_data = peer->hello.test == PERF_SEND || peer->hello.test == PERF_PING;

	return is_data && peer->hello.size > PERF_WORD_BYTES ? peer->hello.size : PERF_WORD_BYTES;
}

/* How many bytes its run may fill here. */
static uint64_t room_of(const struct perf_peer *peer)
{
	uint64_t bufs = recv_depth(peer);

	/* What is being sent back is replaced meanwhile. */
	if (peer->hello.test == PERF_PING)
		bufs += PONG_DEPTH;
	return (bufs << peer->pool) + (is_rdma(peer) ? peer->hello.size : 0);
}

static int take_room(struct perf_peer *peer)
{
	struct perf_server *server = peer->server;
	uint64_t room = room_of(peer);

	if (room > PERF_SERVER_MEMORY_MAX - server->bytes)
		return -1;
	peer->room = room;
	server->bytes += room;
	return 0;
}

static int make_conn(struct perf_peer *peer)
{
	struct evrdma_base *base = peer->server->perf->base;
	struct evrdma_conn_options options;

	evrdma_conn_options_init(&options);
	options.recv_pool = pool_at(peer->server, peer->pool);
	if (!options.recv_pool || make_memory(peer))
		return -1;
	options.send_depth = send_depth(peer);
	options.recv_depth = recv_depth(peer);
	options.responder_resources = PERF_READS;
	options.keepalive_ms = (int)peer->server->perf->options.patience_s * 1000;
	peer->conn = evrdma_conn_new(base, &options);
	if (!peer->conn)
		return -1;
	evrdma_conn_setcb(peer->conn, recv_came, conn_event, peer);
	return 0;
}

static struct perf_peer *make_peer(struct perf_server *server, const struct perf_hello *hello)
{
	struct perf_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->server = server;
	peer->hello = *hello;
	peer->pool = pool_number(recv_size(peer));
	server->users[peer->pool]++;
	peer->grant_after = (perf_window(hello->window, hello->size) + 1) / 2;
	return peer;
}

static void refuse(struct evrdma_request *request, enum perf_refusal refusal)
{
	uint8_t bytes[PERF_REFUSAL_BYTES];

	perf_refusal_pack(refusal, bytes);
	evrdma_request_reject(request, bytes, sizeof(bytes));
}

static void refuse_for(struct perf_server *server, struct evrdma_request *request, int err)
{
	const struct evrdma_error error = {
		.err = err, .step = EVRDMA_STEP_ACCEPT, .cm_event = -1
	};

	tell_error(server, evrdma_request_get_peer_addr(request), &error);
	refuse(request, PERF_REFUSAL_FAULT);
}

static void refuse_greeting(struct perf_server *server, struct evrdma_request *request)
{
	perf_complain(&server->complaints, evrdma_request_get_peer_addr(request),
		"it is no evrdma-perf, or of another version");
	refuse(request, PERF_REFUSAL_GREETING);
}

static unsigned long long mib(uint64_t bytes)
{
	return (unsigned long long)(bytes + (1 << 20) - 1) >> 20;
}

static void refuse_memory(struct perf_peer *peer, struct evrdma_request *request)
{
	struct perf_server *server = peer->server;

	perf_complain(&server->complaints, evrdma_request_get_peer_addr(request),
		"a connection of %llu MiB is more than others left of the %llu MiB for all",
		mib(room_of(peer)), mib(PERF_SERVER_MEMORY_MAX));
	refuse(request, PERF_REFUSAL_MEMORY);
}

/* Once it has a connection, that one's end is the peer's. */
static void accept_peer(struct perf_peer *peer, struct evrdma_request *request)
{
	struct perf_server *server = peer->server;
	int ret;

	if (make_conn(peer)) {
		refuse_for(server, request, errno);
		free_peer(peer);
		return;
	}
	ret = evrdma_conn_accept(peer->conn, request);
	if (!ret)
		return;
	evrdma_conn_close(peer->conn);
	refuse_for(server, request, -ret);
}

static void greeting_came(
	struct perf_server *server, struct evrdma_request *request, const struct perf_hello *hello)
{
	struct perf_peer *peer = make_peer(server, hello);

	if (!peer) {
		refuse_for(server, request, ENOMEM);
	} else if (take_room(peer)) {
		refuse_memory(peer, request);
		free_peer(peer);
	} else {
		accept_peer(peer, request);
	}
}

static void request_came(
	struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct perf_server *server = arg;
	struct perf_hello hello;
	size_t len;
	const void *greeting = evrdma_request_get_private_data(request, &len);

	if (server->perf->tool.stopping)
		evrdma_request_reject(request, NULL, 0);
	else if (perf_hello_unpack(&hello, greeting, len))
		refuse_greeting(server, request);
	else
		greeting_came(server, request, &hello);
}

/* Of an address that was given, whose device was removed. */
static void listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct perf_server *server = arg;
	struct tool *tool = &server->perf->tool;
	char text[TOOL_ERROR_TEXT_MAX];

	if (event == EVRDMA_LISTENER_LISTENING)
		tool_complain(tool->name, "listening again");
	if (event != EVRDMA_LISTENER_ERROR)
		return;
	tool->status = EXIT_FAILURE;
	tool_complain(tool->name, "%s; it listens again when that is back",
		evrdma_error_text(error, text, sizeof(text)));
}

/* To somebody who sits before it; others wait for the port. */
static void say_where(const struct perf *perf)
{
	char text[ADDRESS_TEXT_MAX];

	if (isatty(STDERR_FILENO))
		fprintf(stderr, PERF ": listening on %s; end it with Control-C\n",
			address_text(text, ends_local(&perf->ends)));
}

void perf_server_start(struct perf *perf)
{
	struct perf_server *server = calloc(1, sizeof(*server));
	struct evrdma_listener_options options;

	perf->server = server;
	if (!server) {
		tool_fail(&perf->tool, "out of memory");
		return;
	}
	server->perf = perf;
	server->complaints.tool = &perf->tool;
	evrdma_listener_options_init(&options);
	options.relisten_ms = RELISTEN_MS;
	server->listener = evrdma_listener_new(
		perf->base, ends_local(&perf->ends), &options, request_came, server);
	if (!server->listener) {
		ends_fail_listen(&perf->ends, errno);
		return;
	}
	evrdma_listener_set_event_cb(server->listener, listener_event);
	say_where(perf);
}

void perf_server_free(struct perf_server *server)
{
	if (server)
		perf_complaints_end(&server->complaints);
	free(server);
}
