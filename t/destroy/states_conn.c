/* What connections and what they come from can be while something else calls. */
#include "destroy/fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <event2/dns.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The device that only bystanders use, and that may go. */
static const enum fake_kind goes = FAKE_IB;

/* --- connections that are made -------------------------------------------------------------- */

static void new_one(struct fixture *fixture)
{
	fixture->victim = make_conn(fixture->base, &fixture->options);
}

static void with_receives(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	options.recv_pool = NULL;
	fixture->victim = make_conn(fixture->base, &options);
	conn_receive(fixture->victim, 3);
}

/* A name server that never answers. */
static void looking_up(struct fixture *fixture)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	memcpy(&sin, address("127.0.0.1", 0), sizeof(sin));
	fixture->dns_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fixture->dns_fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(getsockname(fixture->dns_fd, (struct sockaddr *)&sin, &len), 0);
	fixture->dns = evdns_base_new(fixture->loop, 0);
	ck_assert_int_eq(
		evdns_base_nameserver_sockaddr_add(fixture->dns, (struct sockaddr *)&sin, len, 0),
		0);
	new_one(fixture);
	ck_assert_int_eq(evrdma_conn_connect_hostname(
				 fixture->victim->it, fixture->dns, AF_INET, "somebody.test", 7471),
		0);
	fixture_settle(fixture);
}

/* As far as this message, which stays on its way. */
static void connect_until(struct fixture *fixture, enum fake_message message)
{
	fixture->listener = make_listener(fixture->base, fixture->kind, RDMA_PS_TCP);
	new_one(fixture);
	fake_hold(message);
	conn_connect(fixture->victim, fixture->listener, fixture->kind);
	fixture_settle(fixture);
	ck_assert_uint_eq(fake_held(message), 1);
	fake_keep(message);
}

static void looking_for_the_address(struct fixture *fixture)
{
	connect_until(fixture, FAKE_ADDR);
}

static void looking_for_the_route(struct fixture *fixture)
{
	connect_until(fixture, FAKE_ROUTE);
}

static void asking(struct fixture *fixture)
{
	connect_until(fixture, FAKE_REQ);
}

static void being_answered(struct fixture *fixture)
{
	connect_until(fixture, FAKE_REP);
}

static void accepting(struct fixture *fixture)
{
	connect_until(fixture, FAKE_RTU);
	fixture->victim = fixture->listener->accepted;
}

static void accepting_before_the_answer(struct fixture *fixture)
{
	connect_until(fixture, FAKE_REP);
	fixture->victim = fixture->listener->accepted;
}

/* --- connections that are up ---------------------------------------------------------------- */

static void up(struct fixture *fixture)
{
	make_pair(fixture, fixture->kind);
	fixture->victim = fixture->client;
}

static void up_accepted(struct fixture *fixture)
{
	up(fixture);
	fixture->victim = fixture->server;
}

static void sharing(struct fixture *fixture)
{
	struct evrdma_conn_options options = fixture->options;

	fixture->srq = make_srq(fixture->base, fixture->pool);
	fixture->domain = make_domain(fixture->base);
	fixture->options.recv_pool = NULL;
	fixture->options.srq = fixture->srq->it;
	fixture->options.domain = fixture->domain->it;
	up(fixture);
	fixture->options = options;
}

/* Four are posted, the others wait. */
static void busy(struct fixture *fixture)
{
	fixture->options.send_queue = 4;
	up(fixture);
	fixture->options.send_queue = 0;
	fixture_stop_work(fixture);
	conn_send(fixture->client, 6);
	fixture_settle(fixture);
	fixture_go_on_working(fixture);
}

/* Taken, but not yet the device's. */
static void just_sent(struct fixture *fixture)
{
	up(fixture);
	fixture_stop_work(fixture);
	conn_send(fixture->client, 2);
	fixture_go_on_working(fixture);
}

/* Two messages wait to be told. */
static void not_reading(struct fixture *fixture)
{
	up(fixture);
	ck_assert_int_eq(evrdma_conn_disable(fixture->client->it), 0);
	conn_send(fixture->server, 2);
	fixture_settle(fixture);
}

static void reading_again(struct fixture *fixture)
{
	not_reading(fixture);
	ck_assert_int_eq(evrdma_conn_enable(fixture->client->it), 0);
}

static void not_reading_and_left(struct fixture *fixture)
{
	not_reading(fixture);
	end_object(fixture->server);
	fixture_settle(fixture);
}

/* --- connections that end ------------------------------------------------------------------- */

static void disconnecting(struct fixture *fixture)
{
	busy(fixture);
	ck_assert_int_eq(evrdma_conn_disconnect(fixture->victim->it), 0);
	fixture_settle(fixture);
}

static void parting(struct fixture *fixture)
{
	up(fixture);
	fake_hold(FAKE_DREP);
	ck_assert_int_eq(evrdma_conn_disconnect(fixture->victim->it), 0);
	fixture_settle(fixture);
	fake_keep(FAKE_DREP);
}

static void left_by_its_peer(struct fixture *fixture)
{
	up(fixture);
	end_object(fixture->server);
	fixture_settle(fixture);
}

/* Waits for the last acknowledgements. */
static void left_while_busy(struct fixture *fixture)
{
	busy(fixture);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(fixture->victim->it),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	fixture_settle(fixture);
}

static void closing(struct fixture *fixture)
{
	left_while_busy(fixture);
	end_object(fixture->victim);
	fixture_settle(fixture);
}

/* Waits for the answer to its disconnect until the time for it is over. */
static void failed(struct fixture *fixture)
{
	new_one(fixture);
	conn_connect(fixture->victim, NULL, fixture->kind);
	fixture_settle(fixture);
}

static void removed(struct fixture *fixture)
{
	make_pair(fixture, goes);
	fixture->victim = fixture->client;
	fixture_pull(fixture, goes);
	fixture_settle(fixture);
}

static void removed_just_now(struct fixture *fixture)
{
	make_pair(fixture, goes);
	fixture->victim = fixture->client;
	fixture_pull(fixture, goes);
}

static void migrated(struct fixture *fixture)
{
	up(fixture);
	fixture->second = make_base(fixture);
	ck_assert_int_eq(evrdma_conn_migrate(fixture->victim->it, fixture->second->it), 0);
}

/* --- listeners and requests ----------------------------------------------------------------- */

static void listening(struct fixture *fixture)
{
	fixture->victim = make_listener(fixture->base, fixture->kind, RDMA_PS_TCP);
}

static void listening_disabled(struct fixture *fixture)
{
	listening(fixture);
	evrdma_listener_disable(fixture->victim->it);
	conn_connect(make_conn(fixture->base, &fixture->options), fixture->victim, fixture->kind);
	fixture_settle(fixture);
}

static void listening_on_nothing(struct fixture *fixture)
{
	fixture->victim = make_listener(fixture->base, goes, RDMA_PS_TCP);
	fixture_pull(fixture, goes);
	fixture_settle(fixture);
}

static void waiting_for_its_device(struct fixture *fixture)
{
	fixture->relisten_ms = 60000;
	listening_on_nothing(fixture);
}

static void ask_of(struct fixture *fixture, enum fake_kind kind)
{
	fixture->listener = make_listener(fixture->base, kind, RDMA_PS_TCP);
	fixture->listener->answer = KEEP;
	fixture->client = make_conn(fixture->base, &fixture->options);
	conn_connect(fixture->client, fixture->listener, kind);
	fixture_settle(fixture);
	fixture->victim = fixture->listener->request;
}

static void asked(struct fixture *fixture)
{
	ask_of(fixture, fixture->kind);
}

static void asked_by_one_who_left(struct fixture *fixture)
{
	asked(fixture);
	end_object(fixture->client);
	fixture_settle(fixture);
}

static void asked_on_nothing(struct fixture *fixture)
{
	ask_of(fixture, goes);
	fixture_pull(fixture, goes);
	fixture_settle(fixture);
}

static void asked_of_one_who_left(struct fixture *fixture)
{
	asked(fixture);
	end_object(fixture->listener);
	fixture_settle(fixture);
}

const struct state conn_states[] = {
	{ CONN, "a new connection", new_one },
	{ CONN, "a new connection with receives", with_receives },
	{ CONN, "a connection that looks up a name", looking_up },
	{ CONN, "a connection that looks for its address", looking_for_the_address },
	{ CONN, "a connection that looks for its route", looking_for_the_route },
	{ CONN, "a connection that asks", asking },
	{ CONN, "a connection that is answered", being_answered },
	{ CONN, "a connection that accepts", accepting_before_the_answer },
	{ CONN, "a connection that has accepted", accepting, .not_on_iwarp = true },
	{ CONN, "a connection that is up", up },
	{ CONN, "a connection that was accepted", up_accepted },
	{ CONN, "a connection that shares", sharing, .needs = FAKE_SRQS },
	{ CONN, "a connection with work posted and waiting", busy },
	{ CONN, "a connection with work just taken", just_sent },
	{ CONN, "a connection that does not read, with messages", not_reading },
	{ CONN, "a connection that reads again, with messages", reading_again },
	{ CONN, "a connection that does not read, and that its peer left", not_reading_and_left },
	{ CONN, "a connection that disconnects with work posted", disconnecting },
	{ CONN, "a connection that disconnects", parting },
	{ CONN, "a connection that its peer left", left_by_its_peer },
	{ CONN, "a connection that its peer left, with work posted", left_while_busy },
	{ CONN, "a connection that closes", closing },
	{ CONN, "a connection that failed", failed },
	{ CONN, "a connection whose device went", removed },
	{ CONN, "a connection whose device goes", removed_just_now },
	{ CONN, "a connection with events on another base", migrated },
	{ LISTENER, "a listener", listening },
	{ LISTENER, "a listener that is disabled, with a request", listening_disabled },
	{ LISTENER, "a listener whose device went", listening_on_nothing },
	{ LISTENER, "a listener that waits for its device", waiting_for_its_device },
	{ REQUEST, "a request", asked },
	{ REQUEST, "a request of one who left", asked_by_one_who_left },
	{ REQUEST, "a request whose device went", asked_on_nothing },
	{ REQUEST, "a request whose listener closed", asked_of_one_who_left },
};

const unsigned num_conn_states = sizeof(conn_states) / sizeof(conn_states[0]);
