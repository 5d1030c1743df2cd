/* The client of evrdma-perf: a run for each size, all its connections at once. */
#include "perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many rounds of a ping are not timed, as a part of all, and at most. */
enum { WARM_UP_PART = 10, WARM_UP_MAX = 1000 };

/*
 * So many are told to end at a time, each of which may hold up the others. A run that fails ends
 * all at once, and whoever has not been answered by then is left to the kernel.
 */
enum { ENDS = 64, END_MS = 10 };

struct perf_conn {
	struct perf_client *client;
	struct evrdma_conn *conn;
	struct evrdma_buf *buf; /* all that it sends, or reads into */
	struct evrdma_remote remote;
	uint64_t sent;
	uint64_t done;	  /* of them, what is through; of a ping, answered */
	uint64_t credits; /* how many more the server has room for */
	uint64_t begin_ns;
	int ready;    /* says the server, */
	int finished; /* it said DONE, */
	int reported; /* and the server has counted */
	int ended;    /* by either side */
};

struct perf_client {
	struct perf *perf;
	struct perf_conn *conns;
	struct evrdma_pool *recv_pool;
	struct evrdma_pool *word_pool; /* what an idle one receives */
	struct evrdma_pool *send_pool;
	struct evrdma_conn_options conn_options;
	struct evrdma_conn_options idle_options; /* a START goes, and a READY comes */
	uint8_t greeting[PERF_HELLO_BYTES];	 /* in the options, as the next */
	uint8_t idle_greeting[PERF_HELLO_BYTES];
	struct perf_result result;
	long total; /* of the connections, with the idle ones behind the others */
	uint32_t window;
	uint64_t warm_up;
	long begun;
	long connected;
	long asked;    /* to get ready */
	long there;    /* and the server is */
	long reported; /* what came, by the server */
	long ended;
	long closed;
	int runs; /* that are over */
};

static void start_run(struct perf_client *client);
static void begin_next(struct perf_client *client);
static void ask_next(struct perf_client *client);

static int is_over(const struct perf_client *client)
{
	return client->perf->tool.stopping;
}

static int check(struct perf_conn *conn, int ret)
{
	return perf_check(conn->client->perf, EVRDMA_STEP_TRANSFER, ret);
}

/* --- what is said ---------------------------------------------------------------------------- */

static void say(struct perf_conn *conn, enum perf_type type)
{
	const struct perf_word word = { .type = type };
	struct evrdma_buf *buf = evrdma_pool_get(conn->client->send_pool);

	if (!buf) {
		check(conn, -errno);
		return;
	}
	perf_word_pack(&word, evrdma_buf_data(buf));
	check(conn, evrdma_conn_send(conn->conn, buf, PERF_WORD_BYTES, NULL, NULL));
	evrdma_buf_unref(buf);
}

/* --- the data -------------------------------------------------------------------------------- */

static void pump(struct perf_conn *conn);

static void through(struct perf_conn *conn)
{
	conn->done++;
	conn->client->perf->watch.progress++;
	pump(conn);
}

static void send_done(struct evrdma_conn *unused, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct perf_conn *conn = arg;

	if (!error && !is_over(conn->client))
		through(conn);
}

static void work_done(struct evrdma_conn *unused, const struct evrdma_error *error, void *arg)
{
	struct perf_conn *conn = arg;

	if (!error && !is_over(conn->client))
		through(conn);
}

static int submit_rdma(struct perf_conn *conn)
{
	const struct perf_result *result = &conn->client->result;
	const struct evrdma_seg seg = { .buf = conn->buf, .len = result->size };
	const struct evrdma_work work = {
		.op = result->test == PERF_WRITE ? EVRDMA_OP_WRITE : EVRDMA_OP_READ,
		.segs = &seg,
		.seg_count = 1,
		.remote = conn->remote,
	};

	return evrdma_conn_submit(conn->conn, &work, work_done, conn);
}

static int submit(struct perf_conn *conn)
{
	const struct perf_result *result = &conn->client->result;

	switch (result->test) {
	case PERF_PING:
		conn->begin_ns = tool_now_ns();
		return evrdma_conn_send(conn->conn, conn->buf, result->size, NULL, NULL);
	case PERF_SEND:
		return evrdma_conn_send(conn->conn, conn->buf, result->size, send_done, conn);
	default:
		return submit_rdma(conn);
	}
}

static int may_submit(const struct perf_conn *conn)
{
	const struct perf_client *client = conn->client;

	return conn->sent < (uint64_t)client->perf->options.count && conn->credits &&
	       conn->sent - conn->done < client->window;
}

static void pump(struct perf_conn *conn)
{
	int limited = conn->client->result.test == PERF_SEND;

	while (may_submit(conn)) {
		if (check(conn, submit(conn)))
			return;
		conn->sent++;
		conn->credits -= limited;
	}
	if (conn->done < (uint64_t)conn->client->perf->options.count || conn->finished)
		return;
	conn->finished = 1;
	say(conn, PERF_DONE);
}

static void answer_came(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;

	if (conn->done >= client->warm_up)
		perf_hist_add(&client->result.hist, tool_now_ns() - conn->begin_ns);
	through(conn);
}

/* --- a run ----------------------------------------------------------------------------------- */

static void end_run(struct perf_client *client)
{
	client->result.end_ns = tool_now_ns();
	perf_watch_stop(&client->perf->watch);
	perf_print(&client->perf->options, &client->result, !client->runs);
	client->runs++;
}

/* How many connections are begun, or got ready, at a time. */
static uint32_t at_once(const struct perf_client *client)
{
	return perf_window(client->perf->options.window, client->result.size);
}

/* Some may be gone by themselves. */
static void end_next(struct perf_client *client)
{
	struct perf_conn *conn;

	do {
		if (client->ended == client->total || is_over(client))
			return;
		conn = &client->conns[client->ended++];
	} while (conn->ended);
	conn->ended = 1;
	perf_check(client->perf, EVRDMA_STEP_DISCONNECT, evrdma_conn_disconnect(conn->conn));
}

static void end_first(struct perf_client *client)
{
	for (uint32_t i = 0; i < at_once(client) && i < ENDS; i++)
		end_next(client);
}

static void all_there(struct perf_client *client)
{
	if (client->result.test == PERF_CONNECT) {
		client->result.connected_ns = tool_now_ns();
		end_first(client);
		return;
	}
	client->result.begin_ns = tool_now_ns();
	for (long i = 0; i < client->result.connections && !is_over(client); i++)
		pump(&client->conns[i]);
}

static void one_there(struct perf_client *client)
{
	if (++client->there == client->total)
		all_there(client);
}

/* Writes and reads do not show at the server. */
static int is_all(const struct perf_client *client, const struct perf_word *report)
{
	const uint64_t count = (uint64_t)client->perf->options.count;

	if (client->result.test != PERF_PING && client->result.test != PERF_SEND)
		return 1;
	return report->messages == count && report->bytes == count * client->result.size;
}

static void report_came(struct perf_conn *conn, const struct perf_word *report)
{
	struct perf_client *client = conn->client;

	conn->reported = 1;
	if (!is_all(client, report)) {
		tool_fail(&client->perf->tool,
			"%s: %llu messages of %llu bytes came, %ld were sent",
			ends_peer_text(&client->perf->ends), (unsigned long long)report->messages,
			(unsigned long long)report->bytes, client->perf->options.count);
		return;
	}
	client->result.messages += conn->done;
	if (++client->reported < client->result.connections)
		return;
	end_run(client);
	end_first(client);
}

/* Nothing is sent on it; so it is with those that are made to be ended. */
static int is_idle(const struct perf_conn *conn)
{
	const struct perf_client *client = conn->client;

	return client->result.test == PERF_CONNECT ||
	       conn - client->conns >= client->result.connections;
}

/* How many messages the server has room for, at most. */
static uint64_t credits_most(const struct perf_client *client)
{
	return 2ull * client->window;
}

/* Room for something, and for no more than was sent. */
static int is_fair(const struct perf_conn *conn, const struct perf_word *grant)
{
	return conn->client->result.test == PERF_SEND && grant->messages &&
	       grant->messages <= credits_most(conn->client) - conn->credits;
}

/* Each is said once, and to whom it is of use. */
static int is_expected_word(const struct perf_conn *conn, const struct perf_word *word)
{
	const struct perf_client *client = conn->client;

	switch (word->type) {
	case PERF_READY:
		return conn - client->conns < client->asked && !conn->ready;
	case PERF_GRANT:
		return client->there == client->total && !is_idle(conn) && is_fair(conn, word);
	case PERF_REPORT:
		return conn->finished && !conn->reported;
	default:
		return 0;
	}
}

static void ready_came(struct perf_conn *conn, const struct perf_word *ready)
{
	conn->ready = 1;
	conn->remote = ready->remote;
	ask_next(conn->client);
	one_there(conn->client);
}

static void word_came(struct perf_conn *conn, const struct evrdma_recv *recv)
{
	struct perf_word word;

	if (perf_word_unpack(&word, recv->data, recv->len) || !is_expected_word(conn, &word)) {
		check(conn, -EPROTO);
		return;
	}
	conn->client->perf->watch.alive = 1;
	if (word.type == PERF_READY) {
		ready_came(conn, &word);
	} else if (word.type == PERF_GRANT) {
		conn->credits += word.messages;
		pump(conn);
	} else {
		report_came(conn, &word);
	}
}

static int is_answer(const struct perf_conn *conn, const struct evrdma_recv *recv)
{
	const struct perf_result *result = &conn->client->result;
	const uint8_t *data = recv->data;

	return result->test == PERF_PING && recv->len == result->size && data[0] == PERF_DATA &&
	       conn->done < conn->sent;
}

static void recv_came(struct evrdma_conn *unused, const struct evrdma_recv *recv, void *arg)
{
	struct perf_conn *conn = arg;

	if (is_over(conn->client))
		return;
	if (is_answer(conn, recv))
		answer_came(conn);
	else
		word_came(conn, recv);
}

/* --- its connections ------------------------------------------------------------------------- */

static int take_buf(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;

	if (is_idle(conn))
		return 0;
	conn->buf = evrdma_pool_get(client->send_pool);
	if (!conn->buf)
		return -errno;
	memset(evrdma_buf_data(conn->buf), PERF_DATA, client->result.size);
	return 0;
}

/* The next follows when this one's server is ready: large buffers take long, and the loop goes on.
 */
static void ask_next(struct perf_client *client)
{
	struct perf_conn *conn = &client->conns[client->asked];

	if (client->asked == client->total || is_over(client))
		return;
	client->asked++;
	if (!check(conn, take_buf(conn)))
		say(conn, PERF_START);
}

/* Only now is taken what they send, or read into: who is refused needs none. */
static void all_connected(struct perf_client *client)
{
	for (uint32_t i = 0; i < at_once(client); i++)
		ask_next(client);
}

static void made_one(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;

	perf_hist_add(&client->result.hist, tool_now_ns() - conn->begin_ns);
	client->perf->watch.progress++;
	one_there(client);
}

static void connected(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;

	client->perf->watch.alive = 1;
	begin_next(client);
	if (client->result.test == PERF_CONNECT)
		made_one(conn);
	else if (++client->connected == client->total)
		all_connected(client);
}

static void end_conns(struct perf_client *client)
{
	for (long i = 0; client->conns && i < client->total; i++)
		evrdma_buf_unref(client->conns[i].buf);
	free(client->conns);
	client->conns = NULL;
	evrdma_pool_free(client->recv_pool);
	evrdma_pool_free(client->word_pool);
	evrdma_pool_free(client->send_pool);
	client->recv_pool = client->word_pool = client->send_pool = NULL;
}

static void next_run(struct perf_client *client)
{
	const struct perf_options *options = &client->perf->options;

	if (client->result.test == PERF_CONNECT)
		end_run(client);
	end_conns(client);
	client->result.size *= 2;
	if (options->all_sizes && client->result.size <= (size_t)options->size)
		start_run(client);
	else
		tool_stop(&client->perf->tool);
}

static void one_closed(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;

	client->perf->watch.alive = 1;
	conn->conn = NULL;
	if (is_over(client))
		return;
	if (++client->closed == client->total)
		next_run(client);
	else
		end_next(client);
}

static int is_expected(const struct perf_client *client)
{
	return client->result.test == PERF_CONNECT ? client->there == client->result.connections
						   : client->reported == client->result.connections;
}

static void conn_failed(struct perf_conn *conn, const struct evrdma_error *error)
{
	static const char *const refusals[PERF_REFUSALS] = {
		[PERF_REFUSAL_GREETING] = "the server is of another version",
		[PERF_REFUSAL_MEMORY] = "the server has no room for that much; make -n, -i, -w or "
					"-S smaller",
		[PERF_REFUSAL_FAULT] = "the server cannot make the connection; see what it says",
	};
	const struct ends *ends = &conn->client->perf->ends;
	size_t len;
	const void *data = evrdma_conn_get_private_data(conn->conn, &len);
	enum perf_refusal refusal = PERF_REFUSAL_NONE;

	if (error->err == ECONNREFUSED)
		refusal = perf_refusal_unpack(data, len);
	if (refusal)
		tool_fail(ends->tool, "%s: %s", ends_peer_text(ends), refusals[refusal]);
	else
		ends_fail_error(ends, error);
}

static void conn_event(struct evrdma_conn *unused, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct perf_conn *conn = arg;
	struct perf *perf = conn->client->perf;

	conn->ended |= event == EVRDMA_CONN_DISCONNECTED || event == EVRDMA_CONN_ERROR;
	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		connected(conn);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		if (!is_expected(conn->client))
			tool_fail(&perf->tool,
				"%s: disconnected too soon; the server was ended, failed "
				"(see what it says), or is no evrdma-perf",
				ends_peer_text(&perf->ends));
		evrdma_conn_close(conn->conn);
		break;
	case EVRDMA_CONN_ERROR:
		conn_failed(conn, error);
		evrdma_conn_close(conn->conn);
		break;
	case EVRDMA_CONN_CLOSED:
		one_closed(conn);
		break;
	case EVRDMA_CONN_WRITABLE:
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static int begin_one(struct perf_conn *conn)
{
	struct perf_client *client = conn->client;
	const struct ends *ends = &client->perf->ends;

	conn->conn = evrdma_conn_new(
		client->perf->base, is_idle(conn) ? &client->idle_options : &client->conn_options);
	if (!conn->conn)
		return -errno;
	evrdma_conn_setcb(conn->conn, recv_came, conn_event, conn);
	conn->begin_ns = tool_now_ns();
	return evrdma_conn_connect(conn->conn, ends_local(ends), ends_remote(ends));
}

static void begin_next(struct perf_client *client)
{
	struct perf_conn *conn = &client->conns[client->begun];

	if (client->begun == client->total || is_over(client))
		return;
	client->begun++;
	conn->client = client;
	conn->credits = credits_most(client);
	perf_check(client->perf, EVRDMA_STEP_CONNECT, begin_one(conn));
}

static void fill_options(struct perf_client *client)
{
	const uint32_t words = 8, pongs = 2; /* these are large, and come one at a time */
	const struct perf_hello hello = { client->result.test, client->window,
		(uint32_t)client->result.size };
	const struct perf_hello idle = { PERF_CONNECT, 1, 1 };
	struct evrdma_conn_options *options = &client->conn_options;

	perf_hello_pack(&hello, client->greeting);
	perf_hello_pack(&idle, client->idle_greeting);
	evrdma_conn_options_init(options);
	options->private_data = client->greeting;
	options->private_data_len = sizeof(client->greeting);
	options->connect_timeout_ms = (int)client->perf->options.patience_s * 1000;
	/* The server has to answer all that are ended at once. */
	options->drain_timeout_ms += ENDS * END_MS;
	options->send_depth = client->window + words;
	options->recv_depth = client->result.test == PERF_PING ? pongs : words;
	options->recv_pool = client->recv_pool;
	options->initiator_depth =
		(uint8_t)(client->window < PERF_READS ? client->window : PERF_READS);
	client->idle_options = *options;
	client->idle_options.private_data = client->idle_greeting;
	client->idle_options.send_depth = client->idle_options.recv_depth = 1;
	client->idle_options.recv_pool = client->word_pool;
}

/* The others follow, each when one is there: so both sides have something to do all the time. */
static void begin_first(struct perf_client *client)
{
	fill_options(client);
	client->result.begin_ns = tool_now_ns();
	for (uint32_t i = 0; i < at_once(client); i++)
		begin_next(client);
}

static int make_room(struct perf_client *client)
{
	size_t size = client->result.size;

	if (size < PERF_WORD_BYTES)
		size = PERF_WORD_BYTES;
	client->send_pool = evrdma_pool_new(client->perf->base, size, 0);
	client->recv_pool = evrdma_pool_new(
		client->perf->base, client->result.test == PERF_PING ? size : PERF_WORD_BYTES, 0);
	client->word_pool = evrdma_pool_new(client->perf->base, PERF_WORD_BYTES, 0);
	client->conns = calloc((size_t)client->total, sizeof(*client->conns));
	return client->conns && client->send_pool && client->recv_pool && client->word_pool ? 0
											    : -1;
}

static uint64_t goal(const struct perf_client *client)
{
	const struct perf_options *options = &client->perf->options;

	if (options->test == PERF_CONNECT)
		return (uint64_t)options->connections;
	return (uint64_t)options->connections * (uint64_t)options->count;
}

/* One message at a time is under way, or none at all. */
static int in_turn(long test)
{
	return test == PERF_PING || test == PERF_CONNECT;
}

static void start_run(struct perf_client *client)
{
	const struct perf_options *options = &client->perf->options;
	struct perf_result *result = &client->result;

	client->window = in_turn(options->test) ? 1 : perf_window(options->window, result->size);
	client->begun = client->connected = client->asked = client->there = 0;
	client->reported = client->closed = client->ended = 0;
	result->window = client->window;
	result->messages = 0;
	memset(&result->hist, 0, sizeof(result->hist));
	perf_begin_watch(client->perf, goal(client));
	if (make_room(client))
		tool_fail(&client->perf->tool, "out of memory; make -n, -i or -S smaller");
	else
		begin_first(client);
}

void perf_client_start(struct perf *perf)
{
	const struct perf_options *options = &perf->options;
	struct perf_client *client = calloc(1, sizeof(*client));

	perf->client = client;
	if (!client) {
		tool_fail(&perf->tool, "out of memory");
		return;
	}
	client->perf = perf;
	client->warm_up = (uint64_t)options->count / WARM_UP_PART;
	if (client->warm_up > WARM_UP_MAX)
		client->warm_up = WARM_UP_MAX;
	client->result.test = (enum perf_test)options->test;
	client->result.connections = options->connections;
	client->total = options->connections + options->idle;
	client->result.size =
		options->all_sizes || options->test == PERF_CONNECT ? 1 : (size_t)options->size;
	start_run(client);
}

/* What the run had is its own till the loop is over: buffers outlive their base. */
void perf_client_free(struct perf_client *client)
{
	if (!client)
		return;
	for (long i = 0; client->conns && i < client->total; i++)
		evrdma_buf_unref(client->conns[i].buf);
	free(client->conns);
	free(client);
}
