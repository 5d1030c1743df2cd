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

	return end_us > now_us ? (int)((end_us - now_us + EVR_US_PER_MS - 1) / EVR_US_PER_MS) : 0;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static void sleep_until_due(struct evrdma_conn *conn, uint64_t now_us)
{
	const struct evrdma_conn_options *o = &conn->options;
	int keepalive_ms = conn->probing ? 2 * o->keepalive_ms : o->keepalive_ms;
	int ms = o->idle_timeout_ms ? left_of(conn->last_message_us, now_us, o->idle_timeout_ms)
				    : left_of(conn->last_heard_us, now_us, keepalive_ms);

	if (o->idle_timeout_ms && o->keepalive_ms)
		ms = smaller(ms, left_of(conn->last_heard_us, now_us, keepalive_ms));
	evr_base_add_timer(&conn->alive_timer, ms ? ms : 1);
}

/* When there is no room for a probe, the answers that the sends wait for say the same. */
static void ask(struct evrdma_conn *conn)
{
	conn->probing = true;
	evr_conn_probe(conn);
}

static bool is_over(const struct evrdma_conn *conn, uint64_t now_us)
{
	const struct evrdma_conn_options *o = &conn->options;

	if (o->idle_timeout_ms && !left_of(conn->last_message_us, now_us, o->idle_timeout_ms))
		return true;
	return conn->probing && !left_of(conn->last_heard_us, now_us, 2 * o->keepalive_ms);
}

void evr_conn_on_alive_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evrdma_conn *conn = arg;
	uint64_t now_us = evr_clock_now_us();

	/* A probe that is held back asks nobody. */
	if (conn->qp.sends_held)
		conn->last_heard_us = now_us;

	if (is_over(conn, now_us)) {
		evr_conn_fail(conn, ETIMEDOUT, EVRDMA_STEP_TRANSFER);
		return;
	}
	if (conn->options.keepalive_ms && !conn->probing &&
		!left_of(conn->last_heard_us, now_us, conn->options.keepalive_ms))
		ask(conn);
	sleep_until_due(conn, now_us);
}

void evr_conn_heard(struct evrdma_conn *conn, bool message)
{
	if (!is_on(conn))
		return;
	conn->last_heard_us = evr_clock_now_us();
	conn->probing = false;
	if (message)
		conn->last_message_us = conn->last_heard_us;
}

void evr_conn_start_alive(struct evrdma_conn *conn)
{
	if (!is_on(conn))
		return;
	evr_conn_heard(conn, true);
	sleep_until_due(conn, conn->last_heard_us);
}

void evr_conn_stop_alive(struct evrdma_conn *conn)
{
	event_del(&conn->alive_timer);
}
