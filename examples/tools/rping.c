/*
 * rping: the client says where a text is, the server reads it by RDMA; the client says where there
 * is room for it, the server writes it there.
 */
#include "rping.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Printable, as ever; and the texts of two pings that follow each other differ in each byte. */
#define FIRST_CHAR 'A'
#define CHARS ('z' - 'A' + 1)

void rping_debug(const struct rping *test, const char *format, ...)
{
	va_list args;

	if (!test->options.debug)
		return;
	fputs("rping: ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* --- the text ------------------------------------------------------------------------------- */

void rping_fill_text(char *text, size_t size, long ping)
{
	int head = snprintf(text, size, "rdma-ping-%ld: ", ping);

	for (size_t i = (size_t)head; i < size; i++)
		text[i] = (char)(FIRST_CHAR + (ping + (long)i - head) % CHARS);
	text[size - 1] = '\0';
}

int rping_is_text(const char *data, size_t size, long ping)
{
	char *text = malloc(size);
	int same;

	if (!text)
		return 0;
	rping_fill_text(text, size, ping);
	same = !memcmp(text, data, size);
	free(text);
	return same;
}

/* --- failures ------------------------------------------------------------------------------- */

/* One client's failure does not end a server that is to stay. */
static int goes_on(const struct rping_peer *peer)
{
	return peer->test->options.persistent;
}

static void give_up(struct rping_peer *peer)
{
	peer->failed = 1;
	peer->link->close(peer);
}

static void fail(struct rping_peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct rping_peer *peer, const char *format, ...)
{
	struct tool *tool = &peer->test->tool;
	char text[256];
	va_list args;

	if (tool->stopping || peer->failed)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	give_up(peer);
	if (!goes_on(peer)) {
		tool_fail(tool, "%s", text);
		return;
	}
	tool_complain(RPING, "%s", text);
	tool->status = EXIT_FAILURE;
}

void rping_failed(struct rping_peer *peer, const struct evrdma_error *error)
{
	struct rping *test = peer->test;

	if (test->tool.stopping || peer->failed)
		return;
	give_up(peer);
	if (goes_on(peer))
		ends_tell_error(&test->ends, error);
	else
		ends_fail_error(&test->ends, error);
}

void rping_call_failed(struct rping_peer *peer, enum evrdma_step step, int err)
{
	const struct evrdma_error error = { .err = err, .step = step, .cm_event = -1 };

	rping_failed(peer, &error);
}

/* After -ENOTCONN the event that says why is on its way. */
static void check_call(struct rping_peer *peer, int ret)
{
	if (ret && ret != -ENOTCONN)
		rping_call_failed(peer, EVRDMA_STEP_TRANSFER, -ret);
}

/* --- messages ------------------------------------------------------------------------------- */

struct message {
	uint64_t addr;
	uint32_t key;
	uint32_t size;
};

static void send_message(struct rping_peer *peer, const struct evrdma_remote *remote)
{
	const struct message message = { .addr = htobe64(remote->addr),
		.key = htobe32(remote->key),
		.size = htobe32((uint32_t)peer->test->options.size_bytes) };

	_Static_assert(sizeof(message) == RPING_MESSAGE_BYTES, "as the other side has it");
	check_call(peer, peer->link->send(peer, &message));
}

static void tell_buffer(struct rping_peer *peer, int sink, enum rping_state next)
{
	struct evrdma_remote remote;
	int ret = peer->link->expose(peer, sink, &remote);

	peer->state = next;
	if (ret)
		check_call(peer, ret);
	else
		send_message(peer, &remote);
}

/* The client looks at nothing in it. */
static void tell_done(struct rping_peer *peer, enum rping_state next)
{
	const struct evrdma_remote nothing = { 0 };

	peer->state = next;
	send_message(peer, &nothing);
}

/* --- the client's part of a ping ------------------------------------------------------------ */

static void begin_ping(struct rping_peer *peer)
{
	rping_fill_text(peer->source, (size_t)peer->test->options.size_bytes, peer->ping);
	memset(peer->sink, 0, (size_t)peer->test->options.size_bytes);
	rping_debug(peer->test, "ping %ld: telling where its text is", peer->ping);
	tell_buffer(peer, 0, RPING_SOURCE_TAKEN);
}

static void end_pings(struct rping_peer *peer)
{
	peer->state = RPING_OVER;
	peer->disconnecting = 1;
	peer->link->disconnect(peer);
}

static void end_ping(struct rping_peer *peer)
{
	const struct rping_options *options = &peer->test->options;
	size_t size = (size_t)options->size_bytes;

	if (options->verify && memcmp(peer->source, peer->sink, size)) {
		fail(peer, "data mismatch! ping %ld came back otherwise than it was sent",
			peer->ping);
		return;
	}
	if (options->print)
		printf("ping data: %.*s\n", (int)size, peer->sink);
	peer->ping++;
	if (peer->ping == options->count || peer->test->finishing)
		end_pings(peer);
	else
		begin_ping(peer);
}

/* --- the server's part ---------------------------------------------------------------------- */

static int fits(struct rping_peer *peer, size_t wanted, size_t room, const char *what)
{
	if (wanted && wanted <= room)
		return 1;
	fail(peer, "%s: %zu bytes of ping %ld into %zu; give both sides the same -S", what, wanted,
		peer->ping, room);
	return 0;
}

static void read_source(struct rping_peer *peer, const struct evrdma_remote *from, size_t len)
{
	if (!fits(peer, len, (size_t)peer->test->options.size_bytes, "reading"))
		return;
	rping_debug(peer->test, "ping %ld: reading %zu bytes", peer->ping, len);
	peer->len = len;
	peer->state = RPING_READ_DONE;
	check_call(peer, peer->link->read(peer, from, len));
}

static void source_is_read(struct rping_peer *peer)
{
	const struct rping_options *options = &peer->test->options;

	if (options->verify && !rping_is_text(peer->sink, peer->len, peer->ping)) {
		fail(peer, "data mismatch! what was read is not the text of ping %ld", peer->ping);
		return;
	}
	if (options->print)
		printf("server ping data: %.*s\n", (int)peer->len, peer->sink);
	tell_done(peer, RPING_SINK_TOLD);
}

/* As far as the text goes, with its end. */
static void write_sink(struct rping_peer *peer, const struct evrdma_remote *to, size_t room)
{
	size_t len = strnlen(peer->sink, peer->len);

	if (len < peer->len)
		len++;
	if (!fits(peer, len, room, "writing"))
		return;
	rping_debug(peer->test, "ping %ld: writing %zu bytes", peer->ping, len);
	peer->state = RPING_WRITE_DONE;
	check_call(peer, peer->link->write(peer, to, len));
}

static void sink_is_written(struct rping_peer *peer)
{
	peer->ping++;
	tell_done(peer, RPING_SOURCE_TOLD);
}

/* --- what happens --------------------------------------------------------------------------- */

static void act_on(
	struct rping_peer *peer, const struct evrdma_remote *remote, const struct message *message)
{
	size_t size = be32toh(message->size);

	switch (peer->state) {
	case RPING_SOURCE_TAKEN:
		rping_debug(peer->test, "ping %ld: telling where there is room", peer->ping);
		tell_buffer(peer, 1, RPING_SINK_FILLED);
		break;
	case RPING_SINK_FILLED:
		end_ping(peer);
		break;
	case RPING_SOURCE_TOLD:
		read_source(peer, remote, size);
		break;
	case RPING_SINK_TOLD:
		write_sink(peer, remote, size);
		break;
	default:
		fail(peer, "a message out of turn, in ping %ld; see what runs on the other side",
			peer->ping);
	}
}

void rping_message_came(struct rping_peer *peer, const void *data, size_t len)
{
	struct evrdma_remote remote;
	struct message message;

	if (peer->test->tool.stopping || peer->failed)
		return;
	if (len != sizeof(message)) {
		fail(peer, "a message of %zu bytes, not %zu; see what runs on the other side", len,
			sizeof(message));
		return;
	}
	memcpy(&message, data, sizeof(message));
	remote.addr = be64toh(message.addr);
	remote.key = be32toh(message.key);
	act_on(peer, &remote, &message);
}

void rping_work_done(struct rping_peer *peer)
{
	if (peer->test->tool.stopping || peer->failed)
		return;
	if (peer->state == RPING_READ_DONE)
		source_is_read(peer);
	else
		sink_is_written(peer);
}

void rping_connected(struct rping_peer *peer)
{
	rping_debug(peer->test, "connected");
	if (peer->test->options.client)
		begin_ping(peer);
	else
		peer->state = RPING_SOURCE_TOLD;
}

/* A client goes when it has its last ping back, and makes one at the least. */
static int ended_well(const struct rping_peer *peer)
{
	return peer->disconnecting || (peer->state == RPING_SOURCE_TOLD && peer->ping > 0);
}

void rping_disconnected(struct rping_peer *peer)
{
	if (peer->test->tool.stopping || peer->failed)
		return;
	if (!ended_well(peer)) {
		fail(peer, "%s: disconnected in ping %ld; see what the other side says",
			ends_peer_text(&peer->test->ends), peer->ping);
		return;
	}
	fprintf(stderr, "%s DISCONNECT EVENT...\n",
		peer->test->options.server ? "server" : "client");
	peer->link->close(peer);
}

void rping_closed(struct rping_peer *peer)
{
	struct rping *test = peer->test;

	rping_free_peer(peer);
	if (!test->options.persistent)
		tool_stop(&test->tool);
}

/* --- peers ---------------------------------------------------------------------------------- */

struct rping_peer *rping_new_peer(struct rping *test, const struct rping_link *link)
{
	struct rping_peer *peer = calloc(1, sizeof(*peer));
	size_t size = (size_t)test->options.size_bytes;

	if (peer) {
		peer->source = calloc(1, size);
		peer->sink = calloc(1, size);
	}
	if (!peer || !peer->source || !peer->sink) {
		tool_fail(&test->tool, "out of memory; make -S smaller");
		if (peer)
			free(peer->source);
		free(peer);
		return NULL;
	}
	peer->test = test;
	peer->link = link;
	peer->state = RPING_OVER;
	test->peers++;
	test->served++;
	return peer;
}

void rping_free_peer(struct rping_peer *peer)
{
	peer->test->peers--;
	free(peer->source);
	free(peer->sink);
	free(peer);
}

int rping_has_room(const struct rping *test)
{
	return !test->tool.stopping && (test->options.persistent || !test->served);
}

/* --- the program ---------------------------------------------------------------------------- */

static void ends_found(void *arg)
{
	struct rping *test = arg;

	if (test->options.own_qp)
		rping_own_start(test);
	else
		rping_conn_start(test);
}

/* A persistent server ends so, and pings without end stop after the one that is under way. */
static void interrupted(void *arg)
{
	struct rping *test = arg;

	if (test->options.persistent)
		tool_stop(&test->tool);
	else if (test->options.client && !test->options.count && !test->finishing && test->peers)
		test->finishing = 1;
	else
		tool_fail(&test->tool, "interrupted");
}

static int make_base(struct rping *test)
{
	test->base = tool_add_base(&test->tool, NULL);
	if (!test->base)
		return -1;
	test->pool = evrdma_pool_new(test->base, 4 * RPING_MESSAGE_BYTES, 0);
	if (test->pool)
		return 0;
	tool_fail(&test->tool, "out of memory");
	return -1;
}

static void find_ends(struct rping *test)
{
	const struct rping_options *options = &test->options;

	test->ends.tool = &test->tool;
	test->ends.server = options->client ? options->addr : NULL;
	test->ends.bind = options->client ? options->src : options->addr;
	test->ends.format = ADDRESS_NAME;
	test->ends.port = options->port;
	test->ends.timeout_s = options->timeout_s;
	test->ends.cb = ends_found;
	test->ends.arg = test;
	ends_find(&test->ends);
}

void rping_start(struct rping *test)
{
	if (!tool_init(&test->tool, RPING, interrupted, test) && !make_base(test))
		find_ends(test);
}

int rping_finish(struct rping *test)
{
	int status = tool_run(&test->tool);

	tool_fini(&test->tool);
	return status;
}
