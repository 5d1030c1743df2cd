/* Bases, listeners, connections and buffers, and what they are told. */
#include "destroy/fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <rdma/rdma_cma.h>
#include <string.h>

struct sockaddr *address(const char *ip, uint16_t port)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	ck_assert_int_eq(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	return (struct sockaddr *)&sin;
}

/* --- bases, pools, buffers ------------------------------------------------------------------ */

static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	point(arg, ROW_BASE_DEVICE);
}

/* All work of a turn is done in it, so that what happens does not depend on the machine. */
struct object *make_base(struct fixture *fixture)
{
	struct evrdma_base_options options;
	struct object *base;

	evrdma_base_options_init(&options);
	options.turn_budget_us = 1000000;
	if (fixture->channel)
		base = object_new(fixture, BASE, NULL,
			evrdma_base_new_with_channel(fixture->loop, fixture->channel, &options));
	else
		base = object_new(fixture, BASE, NULL, evrdma_base_new(fixture->loop, &options));
	if (!base)
		return NULL;
	fixture->bases++;
	evrdma_base_set_device_cb(base->it, on_device, base);
	return base;
}

struct object *make_pool(struct object *base)
{
	if (!base || !base->it)
		return NULL;
	return object_new(base->fixture, POOL, base, evrdma_pool_new(base->it, BUF_SIZE, 0));
}

static void on_starved(struct evrdma_pool *pool, int err, void *arg)
{
	point(arg, ROW_POOL_STARVED);
}

struct object *make_small_pool(struct object *base)
{
	struct evrdma_pool_options options;
	struct object *pool;

	if (!base || !base->it)
		return NULL;
	evrdma_pool_options_init(&options);
	options.slab_bytes = SMALL_SLAB;
	pool = object_new(base->fixture, POOL, base,
		evrdma_pool_new_with_options(base->it, SMALL_SLAB, &options));
	if (pool)
		evrdma_pool_set_starved_cb(pool->it, on_starved, pool);
	return pool;
}

static void on_limit(struct evrdma_srq *srq, void *arg)
{
	point(arg, ROW_SRQ_LIMIT);
}

struct object *make_srq(struct object *base, struct object *pool)
{
	struct object *srq;

	if (!base || !base->it || !pool || !pool->it)
		return NULL;
	srq = object_new(base->fixture, SRQ, base, evrdma_srq_new(base->it, pool->it, 8));
	if (srq)
		evrdma_srq_set_limit(srq->it, 1, on_limit, srq);
	return srq;
}

struct object *make_domain(struct object *base)
{
	if (!base || !base->it)
		return NULL;
	return object_new(base->fixture, DOMAIN, base, evrdma_domain_new(base->it));
}

struct object *make_shared_domain(struct object *base)
{
	struct object *domain = object_new(base->fixture, DOMAIN, base, evrdma_domain_new_shared());

	domain->shared = true;
	return domain;
}

struct object *make_buf(struct object *pool)
{
	struct evrdma_buf *buf = pool && pool->it ? evrdma_pool_get(pool->it) : NULL;

	if (buf)
		memset(evrdma_buf_data(buf), 0x5a, BUF_SIZE);
	return buf ? object_new(pool->fixture, BUF, pool->base, buf) : NULL;
}

static void on_cleanup(void *data, size_t size, void *arg)
{
	op_told(arg, false);
}

static const unsigned all_flags =
	EVRDMA_BUF_OPT_REMOTE_READ | EVRDMA_BUF_OPT_REMOTE_WRITE | EVRDMA_BUF_OPT_REMOTE_ATOMIC;

struct object *make_reference(struct fixture *fixture)
{
	struct object *buf = object_new(fixture, BUF, fixture->base, fixture);
	struct op *op = op_new(buf, ROW_BUF_CLEANUP, ROW_BUF_CLEANUP);

	buf->it = evrdma_buf_new_reference(
		fixture->memory, sizeof(fixture->memory), all_flags, on_cleanup, op);
	ck_assert_ptr_nonnull(buf->it);
	op_begun(op, 0);
	return buf;
}

struct object *make_shared_buf(struct object *domain)
{
	struct fixture *fixture = domain->fixture;
	struct object *buf;
	struct op *op;

	if (!domain->it)
		return NULL;
	buf = object_new(fixture, BUF, domain->base, fixture);
	op = op_new(buf, ROW_BUF_CLEANUP, ROW_BUF_CLEANUP);
	buf->it = evrdma_buf_new_shared(
		domain->it, fixture->memory, sizeof(fixture->memory), all_flags, on_cleanup, op);
	ck_assert_ptr_nonnull(buf->it);
	buf->shared = true;
	op_begun(op, 0);
	return buf;
}

/* --- connections ---------------------------------------------------------------------------- */

static void on_conn_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	struct object *object = arg;

	switch (event) {
	case EVRDMA_CONN_CONNECTED:
		point(object, ROW_CONN_CONNECTED);
		break;
	case EVRDMA_CONN_DISCONNECTED:
		object->ended++;
		point(object, ROW_CONN_DISCONNECTED);
		break;
	case EVRDMA_CONN_ERROR:
		object->ended++;
		point(object, ROW_CONN_ERROR);
		break;
	case EVRDMA_CONN_WRITABLE:
		point(object, ROW_CONN_WRITABLE);
		break;
	case EVRDMA_CONN_CLOSED:
		last_point(object, ROW_CONN_CLOSED);
		break;
	case EVRDMA_CONN_ADDR_CHANGED:
		break;
	}
}

static struct op *receive_of(struct object *object, const void *buf)
{
	struct fixture *fixture = object->fixture;
	unsigned i;

	for (i = 0; i < fixture->num_ops; i++) {
		struct op *op = &fixture->ops[i];

		if (op->object == object && op->buf == buf && op->taken && !op->told)
			return op;
	}
	ck_abort_msg("%s: received into a buffer that is not there", running);
	return NULL;
}

static void on_conn_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	struct object *object = arg;

	if (object->user_receives)
		op_told(receive_of(object, recv->buf), recv->err != 0);
	else
		point(object, recv->err ? ROW_CONN_RECV_FAILED : ROW_CONN_RECV);
	if (object->fixture->keeps && !object->fixture->kept && !recv->err)
		object->fixture->kept = evrdma_buf_ref(recv->buf);
}

/* Nobody names a domain any more that was given up. */
struct object *make_conn(struct object *base, const struct evrdma_conn_options *options)
{
	struct evrdma_conn_options own = *options;
	struct object *conn;

	if (!base || !base->it)
		return NULL;
	if (base->fixture->domain && !base->fixture->domain->it)
		own.domain = NULL;
	conn = object_new(base->fixture, CONN, base, evrdma_conn_new(base->it, &own));
	if (conn)
		evrdma_conn_setcb(conn->it, on_conn_recv, on_conn_event, conn);
	return conn;
}

/* To nobody when there is no listener. */
void conn_connect(struct object *conn, const struct object *listener, enum fake_kind kind)
{
	uint16_t port = 9;

	if (!conn || !conn->it || (listener && !listener->it))
		return;
	if (listener)
		port = evrdma_listener_get_port(listener->it);
	op_begun(&(struct op){ .object = conn },
		evrdma_conn_connect(conn->it, NULL, address(fixture_ip(kind), port)));
}

static void on_conn_sent(struct evrdma_conn *conn, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	op_told(arg, error != NULL);
}

void conn_send_buf(struct object *conn, struct object *buf)
{
	struct op *op;

	if (!conn || !conn->it || !buf || !buf->it)
		return;
	op = op_new(conn, ROW_CONN_SENT, ROW_CONN_SEND_FAILED);
	op_begun(op, evrdma_conn_send(conn->it, buf->it, MESSAGE, on_conn_sent, op));
}

void conn_expose(struct object *conn, struct object *buf)
{
	if (conn && conn->it && buf && buf->it)
		op_begun(&(struct op){ .object = conn },
			evrdma_conn_expose(conn->it, buf->it, &conn->fixture->remote));
}

/* The library's references are the only ones left when it returns. */
void conn_send(struct object *conn, unsigned n)
{
	while (n-- && conn && conn->it && conn->fixture->pool->it) {
		struct op *op = op_new(conn, ROW_CONN_SENT, ROW_CONN_SEND_FAILED);
		struct evrdma_buf *buf = evrdma_pool_get(conn->fixture->pool->it);

		ck_assert_ptr_nonnull(buf);
		memset(evrdma_buf_data(buf), 0x5a, MESSAGE);
		op_begun(op, evrdma_conn_send(conn->it, buf, MESSAGE, on_conn_sent, op));
		evrdma_buf_unref(buf);
	}
}

void conn_receive(struct object *conn, unsigned n)
{
	while (n-- && conn && conn->it && conn->fixture->pool->it) {
		struct op *op = op_new(conn, ROW_CONN_RECV, ROW_CONN_RECV_FAILED);
		struct evrdma_buf *buf = evrdma_pool_get(conn->fixture->pool->it);

		ck_assert_ptr_nonnull(buf);
		conn->user_receives = true;
		op->buf = buf;
		op_begun(op, evrdma_conn_recv(conn->it, buf));
		evrdma_buf_unref(buf);
	}
}

static void on_worked(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	op_told(arg, error != NULL);
}

void conn_write(struct object *conn, const struct evrdma_remote *remote)
{
	struct evrdma_seg seg = { .len = MESSAGE };
	struct evrdma_work work = {
		.op = EVRDMA_OP_WRITE, .segs = &seg, .seg_count = 1, .remote = *remote
	};
	struct op *op;

	if (!conn || !conn->it || !conn->fixture->pool->it)
		return;
	op = op_new(conn, ROW_CONN_WORKED, ROW_CONN_WORK_FAILED);
	seg.buf = evrdma_pool_get(conn->fixture->pool->it);
	ck_assert_ptr_nonnull(seg.buf);
	memset(evrdma_buf_data(seg.buf), 0x5a, MESSAGE);
	op_begun(op, evrdma_conn_submit(conn->it, &work, on_worked, op));
	evrdma_buf_unref(seg.buf);
}

/* --- listeners ------------------------------------------------------------------------------ */

/* 0 is for the library to have taken the request. */
static void given_away(struct object *request, int ret)
{
	MUST(!ret || request->fixture->acted, "%s: %d", running, ret);
	if (!ret)
		request->it = NULL;
}

static void accept_request(struct object *listener, struct object *request)
{
	struct object *conn = make_conn(request->base, listener->options);

	listener->accepted = conn;
	if (conn && conn->it && request->it)
		given_away(request, evrdma_conn_accept(conn->it, request->it));
}

static void on_moved(struct evrdma_request *it, void *arg)
{
	struct object *listener = arg, *old = listener->request;
	struct object *request = object_new(old->fixture, REQUEST, old->fixture->second, it);

	request->bystander = listener->bystander;
	listener->request = request;
	point(request, ROW_REQUEST_MOVED);
	if (request->it)
		accept_request(listener, request);
}

static void answer(struct object *listener, struct object *request)
{
	struct object *second = request->fixture->second;

	switch (listener->answer) {
	case ACCEPT:
		accept_request(listener, request);
		break;
	case MOVE:
		if (second && second->it)
			given_away(request,
				evrdma_request_move(request->it, second->it, on_moved, listener));
		break;
	case REJECT:
		end_object(request);
		break;
	case SERVE:
		if (listener->endpoint && listener->endpoint->it)
			given_away(request,
				evrdma_dgram_accept(listener->endpoint->it, request->it, "yes", 4));
		break;
	case KEEP:
		break;
	}
}

static void on_request(struct evrdma_listener *it, struct evrdma_request *request, void *arg)
{
	struct object *listener = arg;
	struct fixture *fixture = listener->fixture;
	bool bystanders = fixture->bystanders;

	fixture->bystanders = listener->bystander;
	listener->request = object_new(fixture, REQUEST, listener->base, request);
	point(listener, ROW_LISTENER_REQUEST);
	if (listener->request->it)
		answer(listener, listener->request);
	fixture->bystanders = bystanders;
}

static void on_listener_event(struct evrdma_listener *it, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct object *listener = arg;

	if (event == EVRDMA_LISTENER_CLOSED) {
		last_point(listener, ROW_LISTENER_CLOSED);
		return;
	}
	listener->ended++;
	point(listener, ROW_LISTENER_ERROR);
}

struct object *make_listener(struct object *base, enum fake_kind kind, int port_space)
{
	struct evrdma_listener_options options;
	struct object *object;

	if (!base || !base->it)
		return NULL;
	evrdma_listener_options_init(&options);
	options.port_space = port_space;
	options.relisten_ms = base->fixture->relisten_ms;
	/* Requests come from the loop, when the object is there. */
	object = &base->fixture->objects[base->fixture->num_objects];
	object = object_new(base->fixture, LISTENER, base,
		evrdma_listener_new(
			base->it, address(fixture_ip(kind), 0), &options, on_request, object));
	if (!object)
		return NULL;
	evrdma_listener_set_event_cb(object->it, on_listener_event);
	object->options = &base->fixture->options;
	return object;
}

void make_pair(struct fixture *fixture, enum fake_kind kind)
{
	fixture->listener = make_listener(fixture->base, kind, RDMA_PS_TCP);
	fixture->client = make_conn(fixture->base, &fixture->options);
	conn_connect(fixture->client, fixture->listener, kind);
	fixture_settle(fixture);
	fixture->server = fixture->listener ? fixture->listener->accepted : NULL;
}
