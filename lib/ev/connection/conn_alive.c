/* Whether the peer is still there, and whether anybody still talks. */
#include <errno.h>

#include "ev/connection/conn.h"
#include "ev/core/base.h"
#include "util/clock.h"

static bool is_on(const struct evrdma_conn *conn)
{
	return conn->options.keepalive_ms || conn->options.idle_timeout_ms;
}

/* Milliseconds from a time until so much later: 0 when that is over. */
static int left_of(uint64_t since_us, uint64_t now_us, int ms)
{
	uint64_t end_us = since_us + (uint64_t)ms * EVR_US_PER_MS;

	return end_us > now_us ? evr_clock_ms_of(end_us - now_us) : 0;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static int keepalive_left(const struct evrdma_conn *conn, uint64_t now_us)
{
	return left_of(conn->probing ? conn->asked_us : conn->last_heard_us, now_us,
		conn->options.keepalive_ms);
}

static int idle_left(const struct evrdma_conn *conn, uint64_t now_us)
{
	return left_of(conn->last_message_us, now_us, conn->options.idle_timeout_ms);
}

static void sleep_until_due(struct evrdma_conn *conn, uint64_t now_us)
{
	const struct evrdma_conn_options *o = &conn->options;
	int ms = o->idle_timeout_ms ? idle_left(conn, now_us) : keepalive_left(conn, now_us);

	if (o->idle_timeout_ms && o->keepalive_ms)
		ms = smaller(ms, keepalive_left(conn, now_us));
	evr_timer_start(&conn->alive_timer, ms ? ms : 1);
}

/* When there is no room for a probe, the first send that is over makes some. */
static void ask(struct evrdma_conn *conn, uint64_t now_us)
{
	conn->probing = true;
	conn->asked_us = now_us;
	conn->to_ask = evr_conn_probe(conn) != 0;
}

static bool is_over(const struct evrdma_conn *conn, uint64_t now_us)
{
	const struct evrdma_conn_options *o = &conn->options;

	if (o->idle_timeout_ms && !idle_left(conn, now_us))
		return true;
	return conn->probing && !keepalive_left(conn, now_us);
}

/* Who has said goodbye asks nobody any more: the time for the answer is drain_timeout_ms. */
void evr_conn_judge_alive(struct evrdma_conn *conn)
{
	uint64_t now_us = evr_clock_now_us();

	if (conn->next == EVR_CONN_DISCONNECT)
		return;
	/* A probe that is held back asks nobody; who is to begin a stream owes a word anyway. */
	if (conn->qp.sends_held && !conn->owned)
		conn->last_heard_us = conn->asked_us = now_us;

	if (is_over(conn, now_us)) {
		evr_conn_fail(conn, ETIMEDOUT, EVRDMA_STEP_TRANSFER);
		return;
	}
	if (conn->options.keepalive_ms && !conn->probing && !keepalive_left(conn, now_us))
		ask(conn, now_us);
	sleep_until_due(conn, now_us);
}

/* What came while the loop was held up counts, so it is told first. */
void evr_conn_on_alive_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;

	if (!conn->ends && !evr_qp_catch_up(&conn->qp))
		evr_conn_judge_alive(conn);
}

static void heard(struct evrdma_conn *conn, uint64_t now_us)
{
	conn->last_heard_us = now_us;
	conn->probing = false;
	conn->to_ask = false;
}

void evr_conn_received(struct evrdma_conn *conn)
{
	if (!is_on(conn))
		return;
	conn->last_message_us = evr_clock_now_us();
	heard(conn, conn->last_message_us);
}

/*
 * On iWARP what is sent or written is over when it was handed to TCP, and only what fetches was
 * answered. Where nothing may be fetched, all there is to notice is a connection that breaks.
 */
static bool is_answer(const struct evrdma_conn *conn, enum ibv_wr_opcode opcode)
{
	return !evr_conn_asks_by_reading(conn) || evr_work_fetches(opcode);
}

void evr_conn_sent(struct evrdma_conn *conn, enum ibv_wr_opcode opcode, bool message)
{
	uint64_t now_us;

	if (!is_on(conn))
		return;
	now_us = evr_clock_now_us();
	if (message)
		conn->last_message_us = now_us;
	if (is_answer(conn, opcode))
		heard(conn, now_us);
	else if (conn->to_ask && conn->state == EVR_CONN_UP && !conn->ends)
		ask(conn, now_us);
}

void evr_conn_start_alive(struct evrdma_conn *conn)
{
	if (!is_on(conn))
		return;
	evr_conn_received(conn);
	sleep_until_due(conn, conn->last_heard_us);
}

void evr_conn_stop_alive(struct evrdma_conn *conn)
{
	evr_timer_stop(&conn->alive_timer);
}
