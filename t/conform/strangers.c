#define _GNU_SOURCE
#include "conform/strangers.h"

#include <check.h>
#include <event2/event.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <evrdma/evrdma.h>

#include "conform/fixture.h"

enum {
	DEPTH = 4,
	BUF_BYTES = 4096,
	PRIVATE_BYTES = 56,
	TIMEOUT_MS = 2000,
	LARGE_CQ = 32767,
	FIRST = 100 /* requests, after which it is told that some have asked */
};

/* Of a queue pair that is somebody else's the kernel's CM would think that its owner had forgotten
 * it. */
enum { NOBODYS_QP = 0x800000 };

/* --- who serves ------------------------------------------------------------------------------ */

static struct evrdma_conn_options options;

static void on_recv(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *arg)
{
	if (!recv->err)
		evrdma_conn_send(conn, recv->buf, recv->len, NULL, NULL);
}

static void on_event(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_conn_close(conn);
}

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct evrdma_conn *conn = evrdma_conn_new(arg, &options);

	if (!conn || evrdma_conn_accept(conn, request))
		_exit(3);
	evrdma_conn_setcb(conn, on_recv, on_event, NULL);
}

static struct evrdma_base *large_base(void)
{
	struct evrdma_base_options base_options;

	evrdma_base_options_init(&base_options);
	base_options.cq_entries = LARGE_CQ;
	return evrdma_base_new(event_base_new(), &base_options);
}

static int serve(int ready, enum service service)
{
	struct evrdma_base *base = large_base();
	struct evrdma_listener *listener;
	struct sockaddr_in sin;
	uint16_t port;

	fixture_address(&sin, testbed.ip, 0);
	listener = evrdma_listener_new(base, (struct sockaddr *)&sin, NULL, on_request, base);
	if (!listener)
		return 1;
	evrdma_conn_options_init(&options);
	options.send_depth = options.recv_depth = DEPTH;
	if (service == STRANGER_ECHO)
		options.recv_pool = evrdma_pool_new(base, BUF_BYTES, 0);
	port = evrdma_listener_get_port(listener);
	if (write(ready, &port, sizeof(port)) != sizeof(port))
		return 1;
	return event_base_dispatch(evrdma_base_get_event_base(base));
}

void stranger_serve(struct stranger *stranger, enum service service)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	stranger->pid = fork();
	if (!stranger->pid)
		_exit(serve(ends[1], service));
	close(ends[1]);
	ck_assert_int_eq(
		read(ends[0], &stranger->port, sizeof(stranger->port)), sizeof(stranger->port));
	close(ends[0]);
}

void stranger_kill(struct stranger *stranger)
{
	kill(stranger->pid, SIGKILL);
	waitpid(stranger->pid, NULL, 0);
	stranger->pid = 0;
}

/* --- who asks -------------------------------------------------------------------------------- */

struct flood {
	struct rdma_event_channel *channel;
	struct sockaddr_in sin;
	unsigned heard, refused;
};

static struct rdma_cm_id *next_event(struct flood *flood, enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(flood->channel, &event))
		_exit(2);
	*type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void note(struct flood *flood, enum rdma_cm_event_type type)
{
	flood->heard++;
	flood->refused += type == RDMA_CM_EVENT_REJECTED;
}

/* Whatever else is heard meanwhile. */
static void await(struct flood *flood, enum rdma_cm_event_type wanted)
{
	enum rdma_cm_event_type type;

	while (next_event(flood, &type), type != wanted)
		note(flood, type);
}

static struct rdma_cm_id *resolve(struct flood *flood)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(flood->channel, &id, NULL, RDMA_PS_TCP) ||
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&flood->sin, TIMEOUT_MS))
		_exit(4);
	await(flood, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, TIMEOUT_MS))
		_exit(5);
	await(flood, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* Without a queue pair the answer waits for who asked. */
static void ask(struct rdma_cm_id *id, unsigned number)
{
	uint8_t garbage[PRIVATE_BYTES];
	struct rdma_conn_param param = { .private_data = garbage,
		.qp_num = NOBODYS_QP + number,
		.private_data_len = (uint8_t)(number % (PRIVATE_BYTES + 1)),
		.retry_count = 7 };
	unsigned seed = number, i;

	for (i = 0; i < PRIVATE_BYTES; i++)
		garbage[i] = (uint8_t)rand_r(&seed);
	if (rdma_connect(id, &param))
		_exit(6);
}

static void say(int ready)
{
	if (write(ready, "y", 1) != 1)
		_exit(8);
}

static void ask_each(struct rdma_cm_id **ids, unsigned requests, int ready)
{
	unsigned i;

	for (i = 0; i < requests; i++) {
		if (i == FIRST)
			say(ready);
		ask(ids[i], i);
	}
}

static _Noreturn void pour(int orders, int ready, unsigned requests, bool may_be_refused)
{
	struct flood flood = { .channel = rdma_create_event_channel() };
	struct rdma_cm_id **ids = calloc(requests, sizeof(struct rdma_cm_id *));
	enum rdma_cm_event_type type;
	uint16_t port;
	unsigned i;

	if (!flood.channel || !ids || read(orders, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	fixture_address(&flood.sin, testbed.ip, port);
	for (i = 0; i < requests; i++)
		ids[i] = resolve(&flood);
	say(ready);
	if (read(orders, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	ask_each(ids, requests, ready);
	while (flood.heard < requests) {
		next_event(&flood, &type);
		note(&flood, type);
	}
	if (flood.refused && !may_be_refused)
		_exit(7);
	_exit(read(orders, &port, sizeof(port)) != sizeof(port));
}

void stranger_flood(struct stranger *stranger, unsigned requests, bool may_be_refused)
{
	int ends[2], ready[2];

	ck_assert(!pipe(ends) && !pipe2(ready, O_NONBLOCK));
	stranger->pid = fork();
	if (!stranger->pid)
		pour(ends[0], ready[1], requests, may_be_refused);
	close(ends[0]);
	close(ready[1]);
	stranger->orders = ends[1];
	stranger->ready = ready[0];
}

void stranger_tell(const struct stranger *stranger, uint16_t port)
{
	ck_assert_int_eq(write(stranger->orders, &port, sizeof(port)), sizeof(port));
}

int stranger_is_ready(const struct stranger *stranger)
{
	char ready;

	return read(stranger->ready, &ready, 1) == 1;
}

/* Its pipe may be open in another stranger as well. */
void stranger_let_go(const struct stranger *stranger)
{
	stranger_tell(stranger, stranger->port);
	close(stranger->orders);
	close(stranger->ready);
}

int stranger_is_gone(struct stranger *stranger)
{
	int status;

	if (!stranger->pid || waitpid(stranger->pid, &status, WNOHANG) != stranger->pid)
		return !stranger->pid;
	ck_assert_int_eq(status, 0);
	stranger->pid = 0;
	return 1;
}
