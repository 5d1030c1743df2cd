/* Devices that come, go and report, and who reads what they report. */
#include "conform/sweep.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { POLL_MS = 5, WAIT_MS = 60 };

static unsigned told[EVRDMA_DEVICE_PORT_CHANGED + 1];

static void on_device(struct evrdma_base *base, enum evrdma_device_event event, const char *device,
	int port_num, void *arg)
{
	told[event]++;
}

static void init(struct run *r)
{
	unsigned i;

	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		told[i] = 0;
	pair_init(r);
	evrdma_base_set_device_cb(r->base, on_device, r);
}

/* --- what is reported ------------------------------------------------------------------------ */

static void expect_port(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	r->through |= told[EVRDMA_DEVICE_PORT_DOWN] == 1 && told[EVRDMA_DEVICE_PORT_UP] == 1;
	run_finish(r);
}

static void mend_port(evutil_socket_t fd, short what, void *arg)
{
	fake_async_port(sweep_kind, IBV_EVENT_PORT_ACTIVE);
	run_after_ms(arg, 5, expect_port);
}

static void lose_port(struct run *r)
{
	fake_async_port(sweep_kind, IBV_EVENT_PORT_ERR);
	run_after_ms(r, 5, mend_port);
}

static void port_goes_down_and_up(struct run *r)
{
	init(r);
	r->on_up = lose_port;
	pair_start(r);
}

static void break_qp(struct run *r)
{
	fake_async_qp(evrdma_conn_get_cm_id(r->client)->qp, IBV_EVENT_QP_FATAL);
}

static void expect_broken(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	r->through = error->err == EIO && r->up == 2;
	run_fail(r, error->err);
}

static void queue_pair_breaks(struct run *r)
{
	init(r);
	r->on_up = break_qp;
	r->on_error = expect_broken;
	r->awaited = EIO;
	pair_start(r);
}

/* --- by the program itself ------------------------------------------------------------------- */

static void hand_in(struct run *r)
{
	struct ibv_context *verbs = evrdma_conn_get_cm_id(r->client)->verbs;
	struct ibv_async_event event;

	fake_async_qp(evrdma_conn_get_cm_id(r->client)->qp, IBV_EVENT_QP_FATAL);
	if (!run_ok(r, ibv_get_async_event(verbs, &event) ? -errno : 0))
		return;
	run_ok(r, evrdma_async_event(verbs, &event));
	ibv_ack_async_event(&event);
}

/* All of both sides is on a base that reads nothing itself. */
static void program_reads_events(struct run *r)
{
	struct evrdma_base_options options;

	init(r);
	evrdma_base_options_init(&options);
	options.flags = EVRDMA_BASE_OPT_NO_ASYNC_EVENTS;
	r->listens = r->serves = r->connects = run_add_base(r, &options);
	r->on_up = hand_in;
	r->on_error = expect_broken;
	r->awaited = EIO;
	if (r->connects)
		r->pool = run_have(r, evrdma_pool_new(r->connects, SWEEP_LEN, 0));
	if (r->pool)
		pair_start(r);
}

/* --- pulled, and put in again ---------------------------------------------------------------- */

static void start_again(struct run *r)
{
	r->up = 0;
	r->on_up = NULL;
	r->on_error = NULL;
	r->awaited = 0;
	pair_listen(r);
	if (!r->finished)
		pair_connect(r);
}

static void put_in_again(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	if (r->finished)
		return;
	if (!fake_device_gone(sweep_kind) || told[EVRDMA_DEVICE_REMOVED] != 1) {
		run_fail(r, ETIMEDOUT);
		return;
	}
	fake_device_add(sweep_kind);
	start_again(r);
}

static void pull(struct run *r)
{
	fake_device_remove(sweep_kind);
	evrdma_listener_close(r->listener);
	run_after_ms(r, WAIT_MS, put_in_again);
}

static void close_removed(struct run *r, struct evrdma_conn *conn, const struct evrdma_error *error)
{
	run_note(r, error->err);
	if (error->err == ENODEV && r->up == 2)
		evrdma_conn_close(conn);
	else
		run_finish(r);
}

/* It may be out: the run ended before. */
static void leave_it_in(struct run *r)
{
	fake_device_remove(sweep_kind);
	rdma_free_devices(rdma_get_devices(NULL));
	fake_device_add(sweep_kind);
}

static void device_is_pulled_and_put_in_again(struct run *r)
{
	init(r);
	r->after = leave_it_in;
	r->on_up = pull;
	r->on_error = close_removed;
	r->awaited = ENODEV;
	pair_start(r);
}

/* --- a listener that comes back with it ------------------------------------------------------- */

/* While it is not back, what was told of its device is all there is to tell. */
static void give_up(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	if (!r->finished && !r->through)
		run_fail(r, r->awaited ? r->awaited : ETIMEDOUT);
}

static void put_in_for_listener(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	if (r->finished)
		return;
	if (!fake_device_gone(sweep_kind)) {
		run_fail(r, ETIMEDOUT);
		return;
	}
	fake_device_add(sweep_kind);
	run_after_ms(r, 4 * WAIT_MS, give_up);
}

static void only_pull(struct run *r)
{
	fake_device_remove(sweep_kind);
	run_after_ms(r, WAIT_MS, put_in_for_listener);
}

static bool connect_when_back(struct run *r, enum evrdma_listener_event event)
{
	if (event != EVRDMA_LISTENER_LISTENING)
		return event == EVRDMA_LISTENER_ERROR && r->up == 2;
	r->up = 0;
	r->on_up = NULL;
	r->on_error = NULL;
	r->awaited = 0;
	pair_connect(r);
	return true;
}

static void listener_comes_back_with_its_device(struct run *r)
{
	init(r);
	r->listening.relisten_ms = 5;
	r->after = leave_it_in;
	r->on_up = only_pull;
	r->on_error = close_removed;
	r->on_listener = connect_when_back;
	r->awaited = ENODEV;
	pair_start(r);
}

/* --- seen in the list ------------------------------------------------------------------------ */

static void expect_visit(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;

	r->through = told[EVRDMA_DEVICE_ARRIVED] && told[EVRDMA_DEVICE_REMOVED];
	if (r->through)
		run_finish(r);
	else
		run_fail(r, ETIMEDOUT);
}

/* Of a kind that nobody is on. */
static enum fake_kind visitor(void)
{
	return sweep_kind == FAKE_IB ? FAKE_IWARP : FAKE_IB;
}

static bool visits;

static void end_visit(struct run *r)
{
	if (visits)
		fake_device_remove(visitor());
	visits = false;
}

static void take_away(evutil_socket_t fd, short what, void *arg)
{
	end_visit(arg);
	run_after_ms(arg, WAIT_MS, expect_visit);
}

static void device_comes_and_goes(struct run *r)
{
	struct evrdma_base_options options;
	struct evrdma_base *base;

	init(r);
	evrdma_base_options_init(&options);
	options.device_poll_ms = POLL_MS;
	base = run_add_base(r, &options);
	if (!base)
		return;
	evrdma_base_set_device_cb(base, on_device, r);
	fake_device_add(visitor());
	visits = true;
	r->after = end_visit;
	run_after_ms(r, WAIT_MS, take_away);
}

/* --- of other kinds -------------------------------------------------------------------------- */

static void take_iwarp_away(struct run *r)
{
	if (sweep_kind != FAKE_IWARP)
		fake_device_remove(FAKE_IWARP);
}

static void server_sends(struct run *r)
{
	pair_send(r, r->server);
}

/* What the server says first waits for a time there. */
static void server_speaks_first_on_iwarp(struct run *r)
{
	init(r);
	if (sweep_kind != FAKE_IWARP)
		fake_device_add(FAKE_IWARP);
	r->ip = FAKE_IWARP_IP;
	r->on_up = server_sends;
	r->after = take_iwarp_away;
	pair_start(r);
}

static void take_ib_away(struct run *r)
{
	if (sweep_kind != FAKE_IB)
		fake_device_remove(FAKE_IB);
}

static void connects_on_infiniband(struct run *r)
{
	init(r);
	if (sweep_kind != FAKE_IB)
		fake_device_add(FAKE_IB);
	r->ip = FAKE_IB_IP;
	r->after = take_ib_away;
	pair_start(r);
}

const struct scenario sweep_device[] = {
	{ "port goes down and up", port_goes_down_and_up },
	{ "queue pair breaks", queue_pair_breaks },
	{ "program reads events", program_reads_events },
	{ "device is pulled and put in again", device_is_pulled_and_put_in_again },
	{ "listener comes back with its device", listener_comes_back_with_its_device },
	{ "device comes and goes", device_comes_and_goes },
	{ "server speaks first on iWARP", server_speaks_first_on_iwarp },
	{ "connects on InfiniBand", connects_on_infiniband },
	{ NULL, NULL },
};
