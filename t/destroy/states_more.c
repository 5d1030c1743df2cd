/* What all others can be: endpoints and their members, memory, bases. */
#include "destroy/fixture.h"

#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

static const enum fake_kind goes = FAKE_IB;

/* --- endpoints ------------------------------------------------------------------------------ */

static void new_endpoint(struct fixture *fixture)
{
	fixture->victim = make_endpoint(fixture->base, fixture->pool);
}

static void looking(struct fixture *fixture)
{
	new_endpoint(fixture);
	fake_hold(FAKE_ADDR);
	endpoint_open(fixture->victim, NULL, FAKE_ROCE_IP);
	fixture_settle(fixture);
	ck_assert_uint_eq(fake_held(FAKE_ADDR), 1);
	fake_keep(FAKE_ADDR);
}

static void ready(struct fixture *fixture)
{
	fixture->endpoint = fixture->victim = make_ready_endpoint(fixture, FAKE_ROCE);
}

static void serve(struct fixture *fixture)
{
	fixture->other_endpoint = make_ready_endpoint(fixture, FAKE_ROCE);
	fixture->listener = make_listener(fixture->base, FAKE_ROCE, RDMA_PS_UDP);
	fixture->listener->answer = SERVE;
	fixture->listener->endpoint = fixture->other_endpoint;
}

static void with_members(struct fixture *fixture)
{
	ready(fixture);
	serve(fixture);
	fixture->group = join(fixture->endpoint);
	fixture->peer = find_peer(fixture->endpoint, fixture->listener, FAKE_ROCE);
	fixture_settle(fixture);
}

static void busy(struct fixture *fixture)
{
	with_members(fixture);
	fixture_stop_work(fixture);
	endpoint_send(fixture->endpoint, fixture->group, NULL, 2);
	endpoint_send(fixture->endpoint, NULL, fixture->peer, 2);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
}

static void without_device(struct fixture *fixture)
{
	new_endpoint(fixture);
	endpoint_open(fixture->victim, "10.1.2.3", NULL);
	fixture_settle(fixture);
}

static void removed(struct fixture *fixture)
{
	fixture->endpoint = fixture->victim = make_ready_endpoint(fixture, goes);
	fixture->group = join(fixture->endpoint);
	fixture_settle(fixture);
	fixture_pull(fixture, goes);
	fixture_settle(fixture);
}

/* --- groups --------------------------------------------------------------------------------- */

static void joining(struct fixture *fixture)
{
	ready(fixture);
	fake_hold(FAKE_JOIN);
	fixture->victim = join(fixture->endpoint);
	fixture_settle(fixture);
	ck_assert_uint_eq(fake_held(FAKE_JOIN), 1);
	fake_keep(FAKE_JOIN);
}

static void member(struct fixture *fixture)
{
	with_members(fixture);
	fixture->victim = fixture->group;
}

static void busy_member(struct fixture *fixture)
{
	busy(fixture);
	fixture->victim = fixture->group;
}

static void leaving(struct fixture *fixture)
{
	busy_member(fixture);
	end_object(fixture->victim);
	fixture_settle(fixture);
}

static void no_member(struct fixture *fixture)
{
	ready(fixture);
	fake_answer(FAKE_JOIN, -EINVAL);
	fixture->victim = join(fixture->endpoint);
	fixture_settle(fixture);
}

/* --- peers ---------------------------------------------------------------------------------- */

static void ask_until(struct fixture *fixture, enum fake_message message)
{
	ready(fixture);
	serve(fixture);
	fake_hold(message);
	fixture->victim = find_peer(fixture->endpoint, fixture->listener, FAKE_ROCE);
	fixture_settle(fixture);
	ck_assert_uint_eq(fake_held(message), 1);
	fake_keep(message);
}

static void peer_at_address(struct fixture *fixture)
{
	ask_until(fixture, FAKE_ADDR);
}

static void peer_at_route(struct fixture *fixture)
{
	ask_until(fixture, FAKE_ROUTE);
}

static void peer_asking(struct fixture *fixture)
{
	ask_until(fixture, FAKE_SIDR_REQ);
}

static void peer_found(struct fixture *fixture)
{
	with_members(fixture);
	fixture->victim = fixture->peer;
}

/* Its own datagrams come back to the endpoint. */
static void hear_sender(struct fixture *fixture, bool is_known)
{
	ready(fixture);
	fixture->group = join(fixture->endpoint);
	fixture_settle(fixture);
	if (!is_known)
		fake_hold(FAKE_ADDR);
	fixture->finds_sender = true;
	endpoint_send(fixture->endpoint, fixture->group, NULL, 1);
	fake_step(1);
	fixture_settle(fixture);
	fixture->finds_sender = false;
	fixture->victim = fixture->peer;
}

static void sender(struct fixture *fixture)
{
	hear_sender(fixture, true);
}

static void sender_at_address(struct fixture *fixture)
{
	hear_sender(fixture, false);
	ck_assert_uint_eq(fake_held(FAKE_ADDR), 1);
	fake_keep(FAKE_ADDR);
}

static void busy_peer(struct fixture *fixture)
{
	busy(fixture);
	fixture->victim = fixture->peer;
}

static void peer_closing(struct fixture *fixture)
{
	busy_peer(fixture);
	end_object(fixture->victim);
	fixture_settle(fixture);
}

static void refused(struct fixture *fixture)
{
	ready(fixture);
	serve(fixture);
	fixture->listener->answer = REJECT;
	fixture->victim = find_peer(fixture->endpoint, fixture->listener, FAKE_ROCE);
	fixture_settle(fixture);
}

/* --- memory --------------------------------------------------------------------------------- */

static void new_pool(struct fixture *fixture)
{
	fixture->victim = make_pool(fixture->base);
}

/* Under a connection, with a buffer in the user's hands and more under way. */
static void used_pool(struct fixture *fixture)
{
	struct object *pool = fixture->pool;

	fixture->pool = make_pool(fixture->base);
	fixture->victim = fixture->pool;
	fixture->options.recv_pool = fixture->pool->it;
	make_pair(fixture, fixture->kind);
	make_buf(fixture->pool);
	fixture_stop_work(fixture);
	conn_send(fixture->client, 3);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
	fixture->pool = pool;
	fixture->options.recv_pool = pool->it;
}

static void new_srq(struct fixture *fixture)
{
	fixture->srq = fixture->victim = make_srq(fixture->base, fixture->pool);
}

static void new_domain(struct fixture *fixture)
{
	fixture->domain = fixture->victim = make_domain(fixture->base);
}

static void share(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	new_srq(fixture);
	new_domain(fixture);
	fixture->options.recv_pool = NULL;
	fixture->options.srq = fixture->srq->it;
	fixture->options.domain = fixture->domain->it;
	make_pair(fixture, fixture->kind);
	conn_send(fixture->client, 2);
	fixture_settle(fixture);
	fixture->options = options;
}

static void used_srq(struct fixture *fixture)
{
	share(fixture);
	fixture->victim = fixture->srq;
}

static void used_domain(struct fixture *fixture)
{
	share(fixture);
	fixture->victim = fixture->domain;
}

static void no_longer_used_srq(struct fixture *fixture)
{
	used_srq(fixture);
	end_object(fixture->client);
	end_object(fixture->server);
	fixture_settle(fixture);
}

static void no_longer_used_domain(struct fixture *fixture)
{
	no_longer_used_srq(fixture);
	fixture->victim = fixture->domain;
}

static void new_shared_domain(struct fixture *fixture)
{
	fixture->domain = fixture->victim = make_shared_domain(fixture->base);
}

static void new_shared_buf(struct fixture *fixture)
{
	new_shared_domain(fixture);
	fixture->buf = fixture->victim = make_shared_buf(fixture->domain);
}

static void homeless_shared_buf(struct fixture *fixture)
{
	new_shared_buf(fixture);
	end_object(fixture->domain);
}

static void connect_from_second(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	fixture->second = make_base(fixture);
	options.recv_pool = NULL;
	fixture->far_client = make_conn(fixture->second, &options);
	conn_connect(fixture->far_client, fixture->listener, fixture->kind);
	fixture_settle(fixture);
}

/* A buffer of two bases: one has exposed it, and both send from it. */
static void share_memory(struct fixture *fixture)
{
	new_shared_buf(fixture);
	fixture->options.domain = fixture->domain->it;
	make_pair(fixture, fixture->kind);
	connect_from_second(fixture);
	fixture->options.domain = NULL;
	conn_expose(fixture->server, fixture->buf);
	fixture_stop_work(fixture);
	conn_send_buf(fixture->client, fixture->buf);
	conn_send_buf(fixture->far_client, fixture->buf);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
}

static void used_shared_domain(struct fixture *fixture)
{
	share_memory(fixture);
	fixture->victim = fixture->domain;
}

static void used_shared_buf(struct fixture *fixture)
{
	share_memory(fixture);
	fixture->victim = fixture->buf;
}

static void last_of_shared_memory(struct fixture *fixture)
{
	used_shared_buf(fixture);
	end_object(fixture->domain);
	fixture_settle(fixture);
}

static void no_longer_used_shared_buf(struct fixture *fixture)
{
	new_shared_buf(fixture);
	fixture->options.domain = fixture->domain->it;
	make_pair(fixture, fixture->kind);
	fixture->options.domain = NULL;
	conn_expose(fixture->server, fixture->buf);
	end_object(fixture->client);
	end_object(fixture->server);
	fixture_settle(fixture);
}

static void no_longer_used_shared_domain(struct fixture *fixture)
{
	no_longer_used_shared_buf(fixture);
	fixture->victim = fixture->domain;
}

static void sharing_base(struct fixture *fixture)
{
	share_memory(fixture);
	fixture->victim = fixture->second;
}

static void held(struct fixture *fixture)
{
	fixture->victim = make_buf(fixture->pool);
}

static void reference(struct fixture *fixture)
{
	fixture->victim = make_reference(fixture);
}

static void exposed(struct fixture *fixture)
{
	make_pair(fixture, fixture->kind);
	reference(fixture);
	ck_assert_int_eq(
		evrdma_conn_expose(fixture->server->it, fixture->victim->it, &fixture->remote), 0);
	conn_write(fixture->client, &fixture->remote);
	fixture_settle(fixture);
}

/* The caller's reference, while the device has the memory. */
static void posted(struct fixture *fixture)
{
	make_pair(fixture, fixture->kind);
	fixture_stop_work(fixture);
	reference(fixture);
	conn_send_buf(fixture->client, fixture->victim);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
}

/* --- bases ---------------------------------------------------------------------------------- */

static void idle_base(struct fixture *fixture)
{
	fixture->victim = make_base(fixture);
}

/* With a connection to the first base. */
static void busy_base(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	idle_base(fixture);
	options.recv_pool = NULL;
	fixture->listener = make_listener(fixture->base, fixture->kind, RDMA_PS_TCP);
	fixture->client = make_conn(fixture->victim, &options);
	conn_connect(fixture->client, fixture->listener, fixture->kind);
	fixture_settle(fixture);
	fixture_stop_work(fixture);
	conn_send(fixture->client, 3);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
}

static void closing_base(struct fixture *fixture)
{
	busy_base(fixture);
	/* It waits for the last acknowledgements. */
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(fixture->client->it),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	fixture_settle(fixture);
	end_object(fixture->victim);
	fixture_settle(fixture);
}

/* Its connection waits for its sends, and has not told its peer yet. */
static void leaving_base(struct fixture *fixture)
{
	busy_base(fixture);
	shut_down(fixture->victim);
	fixture_settle(fixture);
}

static void own_base(struct fixture *fixture)
{
	make_pair(fixture, fixture->kind);
	fixture->victim = fixture->base;
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
	{ PEER, "a peer who has sent", sender },
	{ PEER, "a peer who has sent, and is looked for", sender_at_address },
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
	{ DOMAIN, "a new shared domain", new_shared_domain },
	{ DOMAIN, "a shared domain in use", used_shared_domain },
	{ DOMAIN, "a shared domain out of use", no_longer_used_shared_domain },
	{ BUF, "a new shared buffer", new_shared_buf },
	{ BUF, "a shared buffer in use", used_shared_buf },
	{ BUF, "a shared buffer out of use", no_longer_used_shared_buf },
	{ BUF, "a shared buffer whose domain was given up", homeless_shared_buf },
	{ BUF, "the last of a shared domain", last_of_shared_memory },
	{ BUF, "a buffer", held },
	{ BUF, "a buffer of the user's memory", reference },
	{ BUF, "a buffer that is exposed", exposed },
	{ BUF, "a buffer that is posted", posted },
	{ BASE, "another base", idle_base },
	{ BASE, "another base with work posted", busy_base },
	{ BASE, "another base that shares memory", sharing_base },
	{ BASE, "another base that closes", closing_base },
	{ BASE, "another base that is shut down", leaving_base },
	{ BASE, "the base", own_base },
};

const unsigned num_more_states = sizeof(more_states) / sizeof(more_states[0]);
