/* Telling what was received, or keeping it while reading is disabled. */
#include "ev/connection/conn.h"

#include <errno.h>

#include "ev/core/base.h"

static void tell(struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (conn->recv_cb)
		conn->recv_cb(conn, recv, conn->arg);
}

static void keep(struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	int ret = evr_kept_add(&conn->kept, recv);

	if (ret) {
		evr_qp_lose(&conn->qp, -ret);
		return;
	}
	conn->qp.recvq.held++;
	EVR_QP_COUNT(&conn->qp, receives_waiting, 1);
}

void evr_conn_read(struct evrdma_conn *conn, const struct evrdma_recv *recv)
{
	if (conn->qp.gap)
		return;
	if (conn->read_disabled || conn->kept.count)
		keep(conn, recv);
	else
		tell(conn, recv);
}

static void take(struct evrdma_conn *conn, struct evr_kept_recv *taken)
{
	evr_kept_take(&conn->kept, taken);
	conn->qp.recvq.held--;
	EVR_QP_COUNT(&conn->qp, receives_waiting, (uint64_t)-1);
}

/* The callback may disable reading again, or close. */
static bool may_tell(const struct evrdma_conn *conn)
{
	return conn->kept.count && !conn->read_disabled && !conn->obj.closing;
}

static void tell_next(struct evrdma_conn *conn)
{
	struct evr_kept_recv next;

	take(conn, &next);
	tell(conn, &next.recv);
	evr_recvq_recycle(&conn->qp.recvq, next.recv.buf);
}

static void go_on(struct evrdma_conn *conn)
{
	evr_base_queue_tell(conn->obj.base, &conn->read_task);
}

bool evr_conn_must_read(struct evrdma_conn *conn)
{
	if (may_tell(conn))
		go_on(conn);
	return may_tell(conn);
}

static void tell_some(struct evrdma_conn *conn)
{
	while (may_tell(conn) && conn->obj.base->tell_budget-- > 0)
		tell_next(conn);
	if (!evr_conn_must_read(conn))
		evr_conn_has_read(conn);
}

/* What the library gave out of a pool is of interest to nobody; the caller's buffers come back. */
static void cancel_next(struct evrdma_conn *conn)
{
	struct evr_kept_recv next;

	take(conn, &next);
	next.recv.err = ECANCELED;
	next.recv.len = 0;
	if (!conn->options.recv_pool && !conn->qp.config.srq)
		tell(conn, &next.recv);
	evrdma_buf_unref(next.recv.buf);
}

/* Who is reached next has not sent it. Only one that is owned keeps what came before its answer. */
void evr_conn_forget_read(struct evrdma_conn *conn)
{
	struct evr_kept_recv next;

	while (conn->owned && conn->kept.count) {
		take(conn, &next);
		evrdma_buf_unref(next.recv.buf);
	}
}

static void cancel_some(struct evrdma_conn *conn)
{
	while (conn->kept.count && conn->obj.base->tell_budget-- > 0)
		cancel_next(conn);
	if (!evr_conn_must_cancel_read(&conn->obj))
		evr_obj_continue(&conn->obj);
}

bool evr_conn_must_cancel_read(struct evr_obj *obj)
{
	struct evrdma_conn *conn = evr_container_of(obj, struct evrdma_conn, obj);

	if (conn->kept.count)
		go_on(conn);
	return conn->kept.count;
}

/* As many as the turn may tell of what is complete. */
static void run(struct evr_task *task)
{
	struct evrdma_conn *conn = evr_container_of(task, struct evrdma_conn, read_task);

	if (conn->obj.ended && conn->obj.closing)
		cancel_some(conn);
	else
		tell_some(conn);
}

void evr_conn_init_read(struct evrdma_conn *conn)
{
	conn->read_task.run = run;
}

void evr_conn_fini_read(struct evrdma_conn *conn)
{
	evr_base_cancel_tell(conn->obj.base, &conn->read_task);
	evr_kept_fini(&conn->kept);
}

int evrdma_conn_disable(struct evrdma_conn *conn)
{
	int ret;

	if (conn->obj.closing)
		return -ENOTCONN;
	ret = evr_kept_reserve(&conn->kept, conn->qp.config.recv_depth);
	if (ret)
		return ret;
	conn->read_disabled = true;
	evr_recvq_pause(&conn->qp.recvq);
	return 0;
}

int evrdma_conn_enable(struct evrdma_conn *conn)
{
	if (conn->obj.closing)
		return -ENOTCONN;
	if (!conn->read_disabled)
		return 0;
	conn->read_disabled = false;
	evr_recvq_resume(&conn->qp.recvq);
	go_on(conn);
	return 0;
}
