/* What all others can be: endpoints and their members, memory, bases. */
#include "destroy/stage.h"

#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

static const enum fake_kind goes = FAKE_IB;

/* --- endpoints ------------------------------------------------------------------------------ */

static void new_endpoint(struct stage *stage)
{
	stage->victim = make_endpoint(stage->base, stage->pool);
}

static void looking(struct stage *stage)
{
	new_endpoint(stage);
	fake_hold(FAKE_ADDR);
	endpoint_open(stage->victim, NULL, FAKE_ROCE_IP);
	stage_settle(stage);
	ck_assert_uint_eq(fake_held(FAKE_ADDR), 1);
	fake_keep(FAKE_ADDR);
}

static void ready(struct stage *stage)
{
	stage->endpoint = stage->victim = make_ready_endpoint(stage, FAKE_ROCE);
}

static void serve(struct stage *stage)
{
	stage->other_endpoint = make_ready_endpoint(stage, FAKE_ROCE);
	stage->listener = make_listener(stage->base, FAKE_ROCE, RDMA_PS_UDP);
	stage->listener->answer = SERVE;
	stage->listener->endpoint = stage->other_endpoint;
}

static void with_members(struct stage *stage)
{
	ready(stage);
	serve(stage);
	stage->group = join(stage->endpoint);
	stage->peer = find_peer(stage->endpoint, stage->listener, FAKE_ROCE);
	stage_settle(stage);
}

static void busy(struct stage *stage)
{
	with_members(stage);
	stage_stop_work(stage);
	endpoint_send(stage->endpoint, stage->group, NULL, 2);
	endpoint_send(stage->endpoint, NULL, stage->peer, 2);
	stage_settle(stage);
	stage_go_on_working(stage);
}

static void without_device(struct stage *stage)
{
	new_endpoint(stage);
	endpoint_open(stage->victim, "10.1.2.3", NULL);
	stage_settle(stage);
}

static void removed(struct stage *stage)
{
	stage->endpoint = stage->victim = make_ready_endpoint(stage, goes);
	stage->group = join(stage->endpoint);
	stage_settle(stage);
	stage_pull(stage, goes);
	stage_settle(stage);
}

/* --- groups --------------------------------------------------------------------------------- */

static void joining(struct stage *stage)
{
	ready(stage);
	fake_hold(FAKE_JOIN);
	stage->victim = join(stage->endpoint);
	stage_settle(stage);
	ck_assert_uint_eq(fake_held(FAKE_JOIN), 1);
	fake_keep(FAKE_JOIN);
}

static void member(struct stage *stage)
{
	with_members(stage);
	stage->victim = stage->group;
}

static void busy_member(struct stage *stage)
{
	busy(stage);
	stage->victim = stage->group;
}

static void leaving(struct stage *stage)
{
	busy_member(stage);
	end_actor(stage->victim);
	stage_settle(stage);
}

static void no_member(struct stage *stage)
{
	ready(stage);
	fake_answer(FAKE_JOIN, -EINVAL);
	stage->victim = join(stage->endpoint);
	stage_settle(stage);
}

/* --- peers ---------------------------------------------------------------------------------- */

static void ask_until(struct stage *stage, enum fake_message message)
{
	ready(stage);
	serve(stage);
	fake_hold(message);
	stage->victim = find_peer(stage->endpoint, stage->listener, FAKE_ROCE);
	stage_settle(stage);
	ck_assert_uint_eq(fake_held(message), 1);
	fake_keep(message);
}

static void peer_at_address(struct stage *stage)
{
	ask_until(stage, FAKE_ADDR);
}

static void peer_at_route(struct stage *stage)
{
	ask_until(stage, FAKE_ROUTE);
}

static void peer_asking(struct stage *stage)
{
	ask_until(stage, FAKE_SIDR_REQ);
}

static void peer_found(struct stage *stage)
{
	with_members(stage);
	stage->victim = stage->peer;
}

static void busy_peer(struct stage *stage)
{
	busy(stage);
	stage->victim = stage->peer;
}

static void peer_closing(struct stage *stage)
{
	busy_peer(stage);
	end_actor(stage->victim);
	stage_settle(stage);
}

static void refused(struct stage *stage)
{
	ready(stage);
	serve(stage);
	stage->listener->answer = REJECT;
	stage->victim = find_peer(stage->endpoint, stage->listener, FAKE_ROCE);
	stage_settle(stage);
}

/* --- memory --------------------------------------------------------------------------------- */

static void new_pool(struct stage *stage)
{
	stage->victim = make_pool(stage->base);
}

/* Under a connection, with a buffer in the user's hands and more under way. */
static void used_pool(struct stage *stage)
{
	struct actor *pool = stage->pool;

	stage->pool = make_pool(stage->base);
	stage->victim = stage->pool;
	stage->options.recv_pool = stage->pool->it;
	make_pair(stage, stage->kind);
	make_buf(stage->pool);
	stage_stop_work(stage);
	conn_send(stage->client, 3);
	stage_settle(stage);
	stage_go_on_working(stage);
	stage->pool = pool;
	stage->options.recv_pool = pool->it;
}

static void new_srq(struct stage *stage)
{
	stage->srq = stage->victim = make_srq(stage->base, stage->pool);
}

static void new_domain(struct stage *stage)
{
	stage->domain = stage->victim = make_domain(stage->base);
}

static void share(struct stage *stage)
{
	struct evrdma_conn_options options = stage->options;

	new_srq(stage);
	new_domain(stage);
	stage->options.recv_pool = NULL;
	stage->options.srq = stage->srq->it;
	stage->options.domain = stage->domain->it;
	make_pair(stage, stage->kind);
	conn_send(stage->client, 2);
	stage_settle(stage);
	stage->options = options;
}

static void used_srq(struct stage *stage)
{
	share(stage);
	stage->victim = stage->srq;
}

static void used_domain(struct stage *stage)
{
	share(stage);
	stage->victim = stage->domain;
}

static void no_longer_used_srq(struct stage *stage)
{
	used_srq(stage);
	end_actor(stage->client);
	end_actor(stage->server);
	stage_settle(stage);
}

static void no_longer_used_domain(struct stage *stage)
{
	no_longer_used_srq(stage);
	stage->victim = stage->domain;
}

static void held(struct stage *stage)
{
	stage->victim = make_buf(stage->pool);
}

static void reference(struct stage *stage)
{
	stage->victim = make_reference(stage);
}

static void exposed(struct stage *stage)
{
	make_pair(stage, stage->kind);
	reference(stage);
	ck_assert_int_eq(
		evrdma_conn_expose(stage->server->it, stage->victim->it, &stage->remote), 0);
	conn_write(stage->client, &stage->remote);
	stage_settle(stage);
}

/* The caller's reference, while the device has the memory. */
static void posted(struct stage *stage)
{
	struct op *op;

	make_pair(stage, stage->kind);
	stage_stop_work(stage);
	reference(stage);
	op = op_new(stage->client, ROW_CONN_SENT, ROW_CONN_SEND_FAILED);
	op_begun(op, conn_send_buf(stage->client, stage->victim, op));
	stage_settle(stage);
	stage_go_on_working(stage);
}

/* --- bases ---------------------------------------------------------------------------------- */

static void idle_base(struct stage *stage)
{
	stage->victim = make_base(stage);
}

/* With a connection to the first base. */
static void busy_base(struct stage *stage)
{
	struct evrdma_conn_options options = stage->options;

	idle_base(stage);
	options.recv_pool = NULL;
	stage->listener = make_listener(stage->base, stage->kind, RDMA_PS_TCP);
	stage->client = make_conn(stage->victim, &options);
	conn_connect(stage->client, stage->listener, stage->kind);
	stage_settle(stage);
	stage_stop_work(stage);
	conn_send(stage->client, 3);
	stage_settle(stage);
	stage_go_on_working(stage);
}

static void closing_base(struct stage *stage)
{
	busy_base(stage);
	/* It waits for the last acknowledgements. */
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(stage->client->it),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	stage_settle(stage);
	end_actor(stage->victim);
	stage_settle(stage);
}

/* Its connection waits for its sends, and has not told its peer yet. */
static void leaving_base(struct stage *stage)
{
	busy_base(stage);
	shut_down(stage->victim);
	stage_settle(stage);
}

static void own_base(struct stage *stage)
{
	make_pair(stage, stage->kind);
	stage->victim = stage->base;
}

const struct state more_states[] = {
	{ DGRAM, "a new endpoint", new_endpoint },
	{ DGRAM, "an endpoint that looks for its device", looking },
	{ DGRAM, "an endpoint", ready },
	{ DGRAM, "an endpoint with members", with_members },
	{ DGRAM, "an endpoint with datagrams posted", busy },
	{ DGRAM, "an endpoint without a device", without_device },
	{ DGRAM, "an endpoint whose device went", removed },
	{ MCAST, "a membership that begins", joining },
	{ MCAST, "a membership", member },
	{ MCAST, "a membership with datagrams posted", busy_member },
	{ MCAST, "a membership that closes", leaving },
	{ MCAST, "a membership that was refused", no_member },
	{ PEER, "a peer whose address is looked for", peer_at_address },
	{ PEER, "a peer whose route is looked for", peer_at_route },
	{ PEER, "a peer who is asked", peer_asking },
	{ PEER, "a peer", peer_found },
	{ PEER, "a peer with datagrams posted", busy_peer },
	{ PEER, "a peer that closes", peer_closing },
	{ PEER, "a peer who refused", refused },
	{ POOL, "a new pool", new_pool },
	{ POOL, "a pool in use", used_pool },
	{ SRQ, "a new shared queue", new_srq, .needs = FAKE_SRQS },
	{ SRQ, "a shared queue in use", used_srq, .needs = FAKE_SRQS },
	{ SRQ, "a shared queue out of use", no_longer_used_srq, .needs = FAKE_SRQS },
	{ DOMAIN, "a new domain", new_domain },
	{ DOMAIN, "a domain in use", used_domain, .needs = FAKE_SRQS },
	{ DOMAIN, "a domain out of use", no_longer_used_domain, .needs = FAKE_SRQS },
	{ BUF, "a buffer", held },
	{ BUF, "a buffer of the user's memory", reference },
	{ BUF, "a buffer that is exposed", exposed },
	{ BUF, "a buffer that is posted", posted },
	{ BASE, "another base", idle_base },
	{ BASE, "another base with work posted", busy_base },
	{ BASE, "another base that closes", closing_base },
	{ BASE, "another base that is shut down", leaving_base },
	{ BASE, "the base", own_base },
};

const unsigned num_more_states = sizeof(more_states) / sizeof(more_states[0]);
