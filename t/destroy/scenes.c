/* What happens to connections, and to what is around them, while something is ended. */
#include "destroy/stage.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>

/* --- steps ---------------------------------------------------------------------------------- */

static void on_tick(struct evrdma_base *base, void *arg)
{
	op_told(arg, false);
}

void tick(struct stage *stage)
{
	struct op *op;

	if (!stage->base->it)
		return;
	op = op_new(stage->base, ROW_RUN_IN_LOOP, ROW_RUN_IN_LOOP);
	op_begun(op, evrdma_base_run_in_loop(stage->base->it, on_tick, op));
}

static void pair(struct stage *stage)
{
	make_pair(stage, stage->kind);
}

static void listen_here(struct stage *stage)
{
	stage->listener = make_listener(stage->base, stage->kind, RDMA_PS_TCP);
}

static void client_connects(struct stage *stage)
{
	if (!stage->listener)
		return;
	stage->client = make_conn(stage->base, &stage->options);
	conn_connect(stage->client, stage->listener, stage->kind);
}

static void client_sends(struct stage *stage)
{
	conn_send(stage->client, 2);
}

static void server_sends(struct stage *stage)
{
	conn_send(stage->server, 2);
}

static void client_fills_its_queue(struct stage *stage)
{
	conn_send(stage->client, 6);
}

static void client_writes(struct stage *stage)
{
	conn_write(stage->client, &stage->remote);
}

static void server_exposes(struct stage *stage)
{
	stage->buf = make_reference(stage);
	if (stage->server && stage->server->it)
		op_begun(&(struct op){ .actor = stage->server },
			evrdma_conn_expose(stage->server->it, stage->buf->it, &stage->remote));
}

static void client_disconnects(struct stage *stage)
{
	if (stage->client && stage->client->it)
		op_begun(&(struct op){ .actor = stage->client },
			evrdma_conn_disconnect(stage->client->it));
}

static void client_closes(struct stage *stage)
{
	end_actor(stage->client);
}

static void server_closes(struct stage *stage)
{
	end_actor(stage->server);
}

static void listener_closes(struct stage *stage)
{
	end_actor(stage->listener);
}

static void buf_goes(struct stage *stage)
{
	end_actor(stage->buf);
}

static void all_close(struct stage *stage)
{
	client_closes(stage);
	server_closes(stage);
	listener_closes(stage);
}

static void hold_addr(struct stage *stage)
{
	fake_hold(FAKE_ADDR);
}

static void go_on_to_route(struct stage *stage)
{
	fake_hold(FAKE_ROUTE);
	fake_release(FAKE_ADDR);
}

static void go_on_to_req(struct stage *stage)
{
	fake_hold(FAKE_REQ);
	fake_release(FAKE_ROUTE);
}

static void go_on_to_rep(struct stage *stage)
{
	fake_hold(FAKE_REP);
	fake_release(FAKE_REQ);
}

static void go_on_to_rtu(struct stage *stage)
{
	fake_hold(FAKE_RTU);
	fake_release(FAKE_REP);
}

static void go_on_to_up(struct stage *stage)
{
	fake_release(FAKE_RTU);
	stage->server = stage->listener ? stage->listener->accepted : NULL;
}

static void hold_dreq(struct stage *stage)
{
	fake_hold(FAKE_DREQ);
}

static void go_on_to_drep(struct stage *stage)
{
	fake_hold(FAKE_DREP);
	fake_release(FAKE_DREQ);
}

static void go_on_to_down(struct stage *stage)
{
	fake_release(FAKE_DREP);
}

static STEPS(connection) = { pair, client_sends, server_sends, server_exposes, client_writes, tick,
	client_disconnects, tick, buf_goes, all_close, NULL };

static STEPS(each_step) = { hold_addr, listen_here, client_connects, tick, go_on_to_route, tick,
	go_on_to_req, tick, go_on_to_rep, tick, go_on_to_rtu, tick, go_on_to_up, hold_dreq,
	client_disconnects, tick, go_on_to_drep, tick, go_on_to_down, tick, all_close, NULL };

/* --- requests ------------------------------------------------------------------------------- */

static void connect_to_nobody(struct stage *stage)
{
	stage->client = make_conn(stage->base, &stage->options);
	conn_connect(stage->client, NULL, stage->kind);
}

static STEPS(refused) = { connect_to_nobody, tick, all_close, NULL };

static void listener_rejects(struct stage *stage)
{
	listen_here(stage);
	if (stage->listener)
		stage->listener->answer = REJECT;
}

static STEPS(rejected) = { listener_rejects, client_connects, tick, all_close, NULL };

static void listener_keeps(struct stage *stage)
{
	listen_here(stage);
	if (stage->listener)
		stage->listener->answer = KEEP;
}

static void request_is_rejected(struct stage *stage)
{
	if (stage->listener)
		end_actor(stage->listener->request);
}

static STEPS(pending) = { listener_keeps, client_connects, tick, request_is_rejected, tick,
	client_connects, client_closes, tick, listener_closes, tick, NULL };

static void listener_is_disabled(struct stage *stage)
{
	listen_here(stage);
	if (stage->listener && stage->listener->it)
		evrdma_listener_disable(stage->listener->it);
}

static void listener_is_enabled(struct stage *stage)
{
	if (stage->listener && stage->listener->it)
		evrdma_listener_enable(stage->listener->it);
}

static STEPS(waiting) = { listener_is_disabled, client_connects, client_connects, tick,
	listener_is_enabled, tick, listener_closes, NULL };

static void listener_moves(struct stage *stage)
{
	stage->second = make_base(stage);
	listen_here(stage);
	if (stage->listener)
		stage->listener->answer = MOVE;
	/* The pool is the first base's. */
	stage->options.recv_pool = NULL;
}

static void second_closes(struct stage *stage)
{
	end_actor(stage->second);
}

static STEPS(moved) = { listener_moves, client_connects, tick, second_closes, tick, NULL };

/* --- work ----------------------------------------------------------------------------------- */

static void server_stops_reading(struct stage *stage)
{
	if (stage->server && stage->server->it)
		evrdma_conn_disable(stage->server->it);
}

static void server_reads_again(struct stage *stage)
{
	if (stage->server && stage->server->it)
		evrdma_conn_enable(stage->server->it);
}

static STEPS(paused) = { pair, server_stops_reading, client_sends, tick, server_reads_again, tick,
	all_close, NULL };

static STEPS(full) = { pair, stage_stop_work, client_fills_its_queue, tick, stage_go_on_working,
	tick, all_close, NULL };

static void users_receive(struct stage *stage)
{
	stage->options.recv_pool = NULL;
}

static void both_receive(struct stage *stage)
{
	conn_receive(stage->server, 3);
	conn_receive(stage->client, 2);
}

static STEPS(left) = { users_receive, pair, both_receive, client_sends, stage_stop_work,
	client_sends, tick, server_closes, tick, all_close, NULL };

/* The CM's event is read first. */
static void last_words(struct stage *stage)
{
	struct rdma_cm_id *cm;

	if (!stage->client || !stage->client->it || !stage->server || !stage->server->it)
		return;
	cm = evrdma_conn_get_cm_id(stage->client->it);
	if (cm)
		fake_inject(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm = evrdma_conn_get_cm_id(stage->server->it);
	if (cm && cm->qp)
		fake_step_qp(cm->qp, 2);
	stage_go_on_working(stage);
}

static STEPS(last_message) = { pair, client_sends, stage_stop_work, server_sends, last_words, tick,
	all_close, NULL };

static STEPS(bad_key) = { pair, client_writes, tick, all_close, NULL };

static STEPS(disconnecting) = { pair, stage_stop_work, client_sends, client_disconnects, tick,
	stage_go_on_working, tick, all_close, NULL };

static STEPS(closing) = { users_receive, pair, both_receive, stage_stop_work, client_sends,
	client_closes, tick, server_closes, tick, NULL };

/* --- what is around ------------------------------------------------------------------------- */

static void device_is_pulled(struct stage *stage)
{
	stage_pull(stage, stage->kind);
}

static STEPS(pulled) = { pair, server_exposes, stage_stop_work, client_sends, device_is_pulled,
	tick, all_close, NULL };

static STEPS(pulled_early) = { listener_keeps, client_connects, device_is_pulled, tick,
	request_is_rejected, all_close, NULL };

static void port_goes_down(struct stage *stage)
{
	fake_async_port(stage->kind, IBV_EVENT_PORT_ERR);
}

static STEPS(port) = { pair, port_goes_down, tick, all_close, NULL };

static void base_shuts_down(struct stage *stage)
{
	shut_down(stage->base);
}

static STEPS(shutdown) = { listener_keeps, client_connects, pair, client_sends, tick,
	base_shuts_down, client_sends, NULL };

static void share(struct stage *stage)
{
	stage->srq = make_srq(stage->base, stage->pool);
	stage->domain = make_domain(stage->base);
	if (!stage->srq || !stage->domain)
		return;
	stage->options.recv_pool = NULL;
	stage->options.srq = stage->srq->it;
	stage->options.domain = stage->domain->it;
}

static void queue_runs_low(struct stage *stage)
{
	struct rdma_cm_id *cm = NULL;

	if (stage->client && stage->client->it)
		cm = evrdma_conn_get_cm_id(stage->client->it);
	if (cm && cm->qp)
		fake_async_srq(cm->qp->srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	if (cm && cm->qp)
		stage->verbs_srq = cm->qp->srq;
}

/* Nobody uses it any more, but it is there as long as the base has not let go of it. */
static void unused_queue_runs_low(struct stage *stage)
{
	if (stage->srq && stage->srq->it && !stage->acted)
		fake_async_srq(stage->verbs_srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* The connections keep them. */
static void sharing_ends(struct stage *stage)
{
	end_actor(stage->pool);
	end_actor(stage->srq);
	end_actor(stage->domain);
}

static STEPS(unused) = { share, pair, client_sends, queue_runs_low, client_closes, server_closes,
	tick, unused_queue_runs_low, tick, sharing_ends, NULL };

static STEPS(shared) = { share, pair, client_sends, server_sends, queue_runs_low, tick,
	sharing_ends, tick, client_closes, tick, NULL };

static void receive_into_small(struct stage *stage)
{
	struct actor *pool = make_small_pool(stage->base);

	if (pool && pool->it)
		stage->options.recv_pool = pool->it;
}

/* What replaces the buffer that is kept. */
static void registration_fails(struct stage *stage)
{
	stage->keeps = true;
	fake_fail_next("ibv_reg_mr", ENOMEM);
}

static void kept_goes(struct stage *stage)
{
	fake_fail_next("ibv_reg_mr", 0);
	evrdma_buf_unref(stage->kept);
	stage->keeps = false;
	stage->kept = NULL;
}

static STEPS(starved) = { receive_into_small, pair, client_sends, tick, registration_fails,
	client_sends, tick, kept_goes, tick, client_closes, tick, NULL };

static void client_migrates(struct stage *stage)
{
	stage->second = make_base(stage);
	if (stage->client && stage->client->it && stage->second && stage->second->it)
		op_begun(&(struct op){ .actor = stage->client },
			evrdma_conn_migrate(stage->client->it, stage->second->it));
}

static STEPS(migrated) = { pair, client_migrates, client_sends, tick, second_closes, tick, NULL };

static void on_stray(struct evrdma_base *base, const struct rdma_cm_event *event, void *arg)
{
	moment(arg, ROW_BASE_EVENT);
}

/* An id that is on the channel, and nobody's here. */
static void stray_resolves(struct stage *stage)
{
	stage->channel = rdma_create_event_channel();
	ck_assert_ptr_nonnull(stage->channel);
	/* On one that blocks, an id that found its device keeps that open when it is destroyed. */
	ck_assert_int_eq(fcntl(stage->channel->fd, F_SETFL, O_NONBLOCK), 0);
	stage->second = make_base(stage);
	evrdma_base_set_event_cb(stage->second->it, on_stray, stage->second);
	ck_assert_int_eq(rdma_create_id(stage->channel, &stage->stray, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(
		rdma_resolve_addr(stage->stray, NULL, address(stage_ip(stage->kind), 9), 1000), 0);
}

static STEPS(stray) = { stray_resolves, tick, second_closes, NULL };

/* --- ids of the thin layer ------------------------------------------------------------------ */

static void id_resolves(struct stage *stage)
{
	stage->id = make_id(stage->base, RDMA_PS_TCP);
	id_resolve(stage->id, stage->kind);
}

static void id_hears(struct stage *stage)
{
	if (stage->id && stage->id->it && evrdma_id_get_cm_id(stage->id->it))
		fake_inject(evrdma_id_get_cm_id(stage->id->it), RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

static void id_closes(struct stage *stage)
{
	end_actor(stage->id);
}

static STEPS(
	id) = { id_resolves, id_hears, id_closes, hold_addr, id_resolves, tick, id_closes, NULL };

static STEPS(id_pulled) = { id_resolves, device_is_pulled, tick, id_closes, NULL };

const struct scene conn_scenes[] = {
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
	{ "a pool that cannot be registered", starved_steps },
	{ "events on another base", migrated_steps },
	{ "a stray id", stray_steps },
	{ "an id", id_steps },
	{ "an id whose device is pulled", id_pulled_steps },
};

const unsigned num_conn_scenes = sizeof(conn_scenes) / sizeof(conn_scenes[0]);
