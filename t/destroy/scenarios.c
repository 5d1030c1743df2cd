/* What happens to connections, and to what is around them, while something is ended. */
#include "destroy/fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>

/* --- steps ---------------------------------------------------------------------------------- */

static void on_tick(struct evrdma_base *base, void *arg)
{
	op_told(arg, false);
}

void tick(struct fixture *fixture)
{
	struct op *op;

	if (!fixture->base->it)
		return;
	op = op_new(fixture->base, ROW_RUN_IN_LOOP, ROW_RUN_IN_LOOP);
	op_begun(op, evrdma_base_run_in_loop(fixture->base->it, on_tick, op));
}

static void pair(struct fixture *fixture)
{
	make_pair(fixture, fixture->kind);
}

static void listen_here(struct fixture *fixture)
{
	fixture->listener = make_listener(fixture->base, fixture->kind, RDMA_PS_TCP);
}

static void client_connects(struct fixture *fixture)
{
	if (!fixture->listener)
		return;
	fixture->client = make_conn(fixture->base, &fixture->options);
	conn_connect(fixture->client, fixture->listener, fixture->kind);
}

static void client_sends(struct fixture *fixture)
{
	conn_send(fixture->client, 2);
}

static void server_sends(struct fixture *fixture)
{
	conn_send(fixture->server, 2);
}

static void client_fills_its_queue(struct fixture *fixture)
{
	conn_send(fixture->client, 6);
}

static void client_writes(struct fixture *fixture)
{
	conn_write(fixture->client, &fixture->remote);
}

static void server_exposes(struct fixture *fixture)
{
	fixture->buf = make_reference(fixture);
	conn_expose(fixture->server, fixture->buf);
}

static void client_disconnects(struct fixture *fixture)
{
	if (fixture->client && fixture->client->it)
		op_begun(&(struct op){ .object = fixture->client },
			evrdma_conn_disconnect(fixture->client->it));
}

static void client_closes(struct fixture *fixture)
{
	end_object(fixture->client);
}

static void server_closes(struct fixture *fixture)
{
	end_object(fixture->server);
}

static void listener_closes(struct fixture *fixture)
{
	end_object(fixture->listener);
}

static void buf_goes(struct fixture *fixture)
{
	end_object(fixture->buf);
}

static void all_close(struct fixture *fixture)
{
	client_closes(fixture);
	server_closes(fixture);
	listener_closes(fixture);
}

static void hold_addr(struct fixture *fixture)
{
	fake_hold(FAKE_ADDR);
}

static void go_on_to_route(struct fixture *fixture)
{
	fake_hold(FAKE_ROUTE);
	fake_release(FAKE_ADDR);
}

static void go_on_to_req(struct fixture *fixture)
{
	fake_hold(FAKE_REQ);
	fake_release(FAKE_ROUTE);
}

static void go_on_to_rep(struct fixture *fixture)
{
	fake_hold(FAKE_REP);
	fake_release(FAKE_REQ);
}

static void go_on_to_rtu(struct fixture *fixture)
{
	fake_hold(FAKE_RTU);
	fake_release(FAKE_REP);
}

static void go_on_to_up(struct fixture *fixture)
{
	fake_release(FAKE_RTU);
	fixture->server = fixture->listener ? fixture->listener->accepted : NULL;
}

static void hold_dreq(struct fixture *fixture)
{
	fake_hold(FAKE_DREQ);
}

static void go_on_to_drep(struct fixture *fixture)
{
	fake_hold(FAKE_DREP);
	fake_release(FAKE_DREQ);
}

static void go_on_to_down(struct fixture *fixture)
{
	fake_release(FAKE_DREP);
}

static STEPS(connection) = { pair, client_sends, server_sends, server_exposes, client_writes, tick,
	client_disconnects, tick, buf_goes, all_close, NULL };

static STEPS(each_step) = { hold_addr, listen_here, client_connects, tick, go_on_to_route, tick,
	go_on_to_req, tick, go_on_to_rep, tick, go_on_to_rtu, tick, go_on_to_up, hold_dreq,
	client_disconnects, tick, go_on_to_drep, tick, go_on_to_down, tick, all_close, NULL };

/* --- requests ------------------------------------------------------------------------------- */

static void connect_to_nobody(struct fixture *fixture)
{
	fixture->client = make_conn(fixture->base, &fixture->options);
	conn_connect(fixture->client, NULL, fixture->kind);
}

static STEPS(refused) = { connect_to_nobody, tick, all_close, NULL };

static void listener_rejects(struct fixture *fixture)
{
	listen_here(fixture);
	if (fixture->listener)
		fixture->listener->answer = REJECT;
}

static STEPS(rejected) = { listener_rejects, client_connects, tick, all_close, NULL };

static void listener_keeps(struct fixture *fixture)
{
	listen_here(fixture);
	if (fixture->listener)
		fixture->listener->answer = KEEP;
}

static void request_is_rejected(struct fixture *fixture)
{
	if (fixture->listener)
		end_object(fixture->listener->request);
}

static STEPS(pending) = { listener_keeps, client_connects, tick, request_is_rejected, tick,
	client_connects, client_closes, tick, listener_closes, tick, NULL };

static void listener_is_disabled(struct fixture *fixture)
{
	listen_here(fixture);
	if (fixture->listener && fixture->listener->it)
		evrdma_listener_disable(fixture->listener->it);
}

static void listener_is_enabled(struct fixture *fixture)
{
	if (fixture->listener && fixture->listener->it)
		evrdma_listener_enable(fixture->listener->it);
}

static STEPS(waiting) = { listener_is_disabled, client_connects, client_connects, tick,
	listener_is_enabled, tick, listener_closes, NULL };

static void listener_moves(struct fixture *fixture)
{
	fixture->second = make_base(fixture);
	listen_here(fixture);
	if (fixture->listener)
		fixture->listener->answer = MOVE;
	/* The pool is the first base's. */
	fixture->options.recv_pool = NULL;
}

static void second_closes(struct fixture *fixture)
{
	end_object(fixture->second);
}

static STEPS(moved) = { listener_moves, client_connects, tick, second_closes, tick, NULL };

/* --- work ----------------------------------------------------------------------------------- */

static void server_stops_reading(struct fixture *fixture)
{
	if (fixture->server && fixture->server->it)
		evrdma_conn_disable(fixture->server->it);
}

static void server_reads_again(struct fixture *fixture)
{
	if (fixture->server && fixture->server->it)
		evrdma_conn_enable(fixture->server->it);
}

static STEPS(paused) = { pair, server_stops_reading, client_sends, tick, server_reads_again, tick,
	all_close, NULL };

static STEPS(full) = { pair, fixture_stop_work, client_fills_its_queue, tick, fixture_go_on_working,
	tick, all_close, NULL };

static void users_receive(struct fixture *fixture)
{
	fixture->options.recv_pool = NULL;
}

static void both_receive(struct fixture *fixture)
{
	conn_receive(fixture->server, 3);
	conn_receive(fixture->client, 2);
}

static STEPS(left) = { users_receive, pair, both_receive, client_sends, fixture_stop_work,
	client_sends, tick, server_closes, tick, all_close, NULL };

/* The CM's event is read first. */
static void last_words(struct fixture *fixture)
{
	struct rdma_cm_id *cm;

	if (!fixture->client || !fixture->client->it || !fixture->server || !fixture->server->it)
		return;
	cm = evrdma_conn_get_cm_id(fixture->client->it);
	if (cm)
		fake_inject(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm = evrdma_conn_get_cm_id(fixture->server->it);
	if (cm && cm->qp)
		fake_step_qp(cm->qp, 2);
	fixture_go_on_working(fixture);
}

static STEPS(last_message) = { pair, client_sends, fixture_stop_work, server_sends, last_words,
	tick, all_close, NULL };

static STEPS(bad_key) = { pair, client_writes, tick, all_close, NULL };

static STEPS(disconnecting) = { pair, fixture_stop_work, client_sends, client_disconnects, tick,
	fixture_go_on_working, tick, all_close, NULL };

static STEPS(closing) = { users_receive, pair, both_receive, fixture_stop_work, client_sends,
	client_closes, tick, server_closes, tick, NULL };

/* --- what is around ------------------------------------------------------------------------- */

static void device_is_pulled(struct fixture *fixture)
{
	fixture_pull(fixture, fixture->kind);
}

static STEPS(pulled) = { pair, server_exposes, fixture_stop_work, client_sends, device_is_pulled,
	tick, all_close, NULL };

static STEPS(pulled_early) = { listener_keeps, client_connects, device_is_pulled, tick,
	request_is_rejected, all_close, NULL };

static void port_goes_down(struct fixture *fixture)
{
	fake_async_port(fixture->kind, IBV_EVENT_PORT_ERR);
}

static STEPS(port) = { pair, port_goes_down, tick, all_close, NULL };

static void base_shuts_down(struct fixture *fixture)
{
	shut_down(fixture->base);
}

static STEPS(shutdown) = { listener_keeps, client_connects, pair, client_sends, tick,
	base_shuts_down, client_sends, NULL };

static void share(struct fixture *fixture)
{
	fixture->srq = make_srq(fixture->base, fixture->pool);
	fixture->domain = make_domain(fixture->base);
	if (!fixture->srq || !fixture->domain)
		return;
	fixture->options.recv_pool = NULL;
	fixture->options.srq = fixture->srq->it;
	fixture->options.domain = fixture->domain->it;
}

static void queue_runs_low(struct fixture *fixture)
{
	struct rdma_cm_id *cm = NULL;

	if (fixture->client && fixture->client->it)
		cm = evrdma_conn_get_cm_id(fixture->client->it);
	if (cm && cm->qp)
		fake_async_srq(cm->qp->srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	if (cm && cm->qp)
		fixture->verbs_srq = cm->qp->srq;
}

/* Nobody uses it any more, but it is there as long as the base has not let go of it. */
static void unused_queue_runs_low(struct fixture *fixture)
{
	if (fixture->srq && fixture->srq->it && !fixture->acted)
		fake_async_srq(fixture->verbs_srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* The connections keep them. */
static void sharing_ends(struct fixture *fixture)
{
	end_object(fixture->pool);
	end_object(fixture->srq);
	end_object(fixture->domain);
}

static STEPS(unused) = { share, pair, client_sends, queue_runs_low, client_closes, server_closes,
	tick, unused_queue_runs_low, tick, sharing_ends, NULL };

static STEPS(shared) = { share, pair, client_sends, server_sends, queue_runs_low, tick,
	sharing_ends, tick, client_closes, tick, NULL };

static void share_memory(struct fixture *fixture)
{
	fixture->second = make_base(fixture);
	fixture->domain = make_shared_domain(fixture->base);
	fixture->buf = make_shared_buf(fixture->domain);
	fixture->options.domain = fixture->domain->it;
}

/* The pool is the first base's. */
static void second_connects(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	options.recv_pool = NULL;
	fixture->far_client = make_conn(fixture->second, &options);
	if (fixture->listener)
		conn_connect(fixture->far_client, fixture->listener, fixture->kind);
}

static void server_exposes_shared(struct fixture *fixture)
{
	conn_expose(fixture->server, fixture->buf);
}

static void both_send_shared(struct fixture *fixture)
{
	conn_send_buf(fixture->client, fixture->buf);
	conn_send_buf(fixture->far_client, fixture->buf);
}

static void domain_goes(struct fixture *fixture)
{
	end_object(fixture->domain);
}

static STEPS(shared_memory) = { share_memory, pair, second_connects, server_exposes_shared,
	client_writes, both_send_shared, tick, buf_goes, domain_goes, tick, second_closes, tick,
	all_close, NULL };

static STEPS(given_up) = { share_memory, pair, second_connects, fixture_stop_work, both_send_shared,
	buf_goes, domain_goes, tick, client_closes, fixture_go_on_working, tick, second_closes,
	all_close, NULL };

static void receive_into_small(struct fixture *fixture)
{
	struct object *pool = make_small_pool(fixture->base);

	if (pool && pool->it)
		fixture->options.recv_pool = pool->it;
}

/* What replaces the buffer that is kept. */
static void registration_fails(struct fixture *fixture)
{
	fixture->keeps = true;
	fake_fail_next("ibv_reg_mr", ENOMEM);
}

static void kept_goes(struct fixture *fixture)
{
	fake_fail_next("ibv_reg_mr", 0);
	evrdma_buf_unref(fixture->kept);
	fixture->keeps = false;
	fixture->kept = NULL;
}

static STEPS(starved) = { receive_into_small, pair, client_sends, tick, registration_fails,
	client_sends, tick, kept_goes, tick, client_closes, tick, NULL };

static void client_migrates(struct fixture *fixture)
{
	fixture->second = make_base(fixture);
	if (fixture->client && fixture->client->it && fixture->second && fixture->second->it)
		op_begun(&(struct op){ .object = fixture->client },
			evrdma_conn_migrate(fixture->client->it, fixture->second->it));
}

static STEPS(migrated) = { pair, client_migrates, client_sends, tick, second_closes, tick, NULL };

static void on_stray(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	point(arg, ROW_BASE_EVENT);
}

/* An id that is on the channel, and nobody's here. */
static void stray_resolves(struct fixture *fixture)
{
	fixture->channel = rdma_create_event_channel();
	ck_assert_ptr_nonnull(fixture->channel);
	/* On one that blocks, an id that found its device keeps that open when it is destroyed. */
	ck_assert_int_eq(fcntl(fixture->channel->fd, F_SETFL, O_NONBLOCK), 0);
	fixture->second = make_base(fixture);
	evrdma_base_set_event_cb(fixture->second->it, on_stray, fixture->second);
	ck_assert_int_eq(rdma_create_id(fixture->channel, &fixture->stray, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(rdma_resolve_addr(
				 fixture->stray, NULL, address(fixture_ip(fixture->kind), 9), 1000),
		0);
}

static STEPS(stray) = { stray_resolves, tick, second_closes, NULL };

/* --- ids of the thin layer ------------------------------------------------------------------ */

static void id_resolves(struct fixture *fixture)
{
	fixture->id = make_id(fixture->base, RDMA_PS_TCP);
	id_resolve(fixture->id, fixture->kind);
}

static void id_hears(struct fixture *fixture)
{
	if (fixture->id && fixture->id->it && evrdma_id_get_cm_id(fixture->id->it))
		fake_inject(evrdma_id_get_cm_id(fixture->id->it), RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

static void id_closes(struct fixture *fixture)
{
	end_object(fixture->id);
}

static STEPS(
	id) = { id_resolves, id_hears, id_closes, hold_addr, id_resolves, tick, id_closes, NULL };

static STEPS(id_pulled) = { id_resolves, device_is_pulled, tick, id_closes, NULL };

/* --- bufferevents --------------------------------------------------------------------------- */

static void listeners_close(struct fixture *fixture)
{
	end_object(fixture->listener);
	end_object(fixture->second);
}

static STEPS(bufferevents) = { bufferevents_meet, tick, bufferevents_are_accepted, tick,
	bufferevents_are_refused, listeners_close, tick, NULL };

static STEPS(bufferevents_cut) = { bufferevents_are_accepted, base_shuts_down, NULL };

const struct scenario conn_scenarios[] = {
	{ "bufferevents", bufferevents_steps },
	{ "bufferevents whose base is shut down", bufferevents_cut_steps },
	{ "a connection", connection_steps },
	{ "a connection, step by step", each_step_steps },
	{ "a connect that is refused", refused_steps },
	{ "a connect that is rejected", rejected_steps },
	{ "requests that are kept", pending_steps },
	{ "a listener that is disabled", waiting_steps },
	{ "a request that moves", moved_steps },
	{ "a side that reads nothing, and reads again", paused_steps },
	{ "a full queue", full_steps },
	{ "a last message", last_message_steps },
	{ "a wrong key", bad_key_steps },
	{ "a disconnect with work under way", disconnecting_steps },
	{ "a close with work under way", closing_steps },
	{ "a peer that leaves", left_steps },
	{ "a device that is pulled", pulled_steps },
	{ "a device that is pulled early", pulled_early_steps },
	{ "a port that goes down", port_steps },
	{ "a shutdown", shutdown_steps },
	{ "shared buffers, and a domain", shared_steps, FAKE_SRQS },
	{ "shared buffers that nobody uses", unused_steps, FAKE_SRQS },
	{ "memory that two bases share", shared_memory_steps },
	{ "shared memory that is given up under way", given_up_steps },
	{ "a pool that cannot be registered", starved_steps },
	{ "events on another base", migrated_steps },
	{ "a stray id", stray_steps },
	{ "an id", id_steps },
	{ "an id whose device is pulled", id_pulled_steps },
};

const unsigned num_conn_scenarios = sizeof(conn_scenarios) / sizeof(conn_scenarios[0]);
