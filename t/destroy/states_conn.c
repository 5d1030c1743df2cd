/* What connections and what they come from can be while something else calls. */
#include "destroy/stage.h"

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

static void new_one(struct stage *stage)
{
	stage->victim = make_conn(stage->base, &stage->options);
}

static void with_receives(struct stage *stage)
{
	struct evrdma_conn_options options = stage->options;

	options.recv_pool = NULL;
	stage->victim = make_conn(stage->base, &options);
	conn_receive(stage->victim, 3);
}

/* A name server that never answers. */
static void looking_up(struct stage *stage)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	memcpy(&sin, address("127.0.0.1", 0), sizeof(sin));
	stage->dns_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(stage->dns_fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(getsockname(stage->dns_fd, (struct sockaddr *)&sin, &len), 0);
	stage->dns = evdns_base_new(stage->loop, 0);
	ck_assert_int_eq(
		evdns_base_nameserver_sockaddr_add(stage->dns, (struct sockaddr *)&sin, len, 0), 0);
	new_one(stage);
	ck_assert_int_eq(evrdma_conn_connect_hostname(
				 stage->victim->it, stage->dns, AF_INET, "somebody.test", 7471),
		0);
	stage_settle(stage);
}

/* As far as this message, which stays on its way. */
static void connect_until(struct stage *stage, enum fake_message message)
{
	stage->listener = make_listener(stage->base, stage->kind, RDMA_PS_TCP);
	new_one(stage);
	fake_hold(message);
	conn_connect(stage->victim, stage->listener, stage->kind);
	stage_settle(stage);
	ck_assert_uint_eq(fake_held(message), 1);
	fake_keep(message);
}

static void looking_for_the_address(struct stage *stage)
{
	connect_until(stage, FAKE_ADDR);
}

static void looking_for_the_route(struct stage *stage)
{
	connect_until(stage, FAKE_ROUTE);
}

static void asking(struct stage *stage)
{
	connect_until(stage, FAKE_REQ);
}

static void being_answered(struct stage *stage)
{
	connect_until(stage, FAKE_REP);
}

static void accepting(struct stage *stage)
{
	connect_until(stage, FAKE_RTU);
	stage->victim = stage->listener->accepted;
}

static void accepting_before_the_answer(struct stage *stage)
{
	connect_until(stage, FAKE_REP);
	stage->victim = stage->listener->accepted;
}

/* --- connections that are up ---------------------------------------------------------------- */

static void up(struct stage *stage)
{
	make_pair(stage, stage->kind);
	stage->victim = stage->client;
}

static void up_accepted(struct stage *stage)
{
	up(stage);
	stage->victim = stage->server;
}

static void sharing(struct stage *stage)
{
	struct evrdma_conn_options options = stage->options;

	stage->srq = make_srq(stage->base, stage->pool);
	stage->domain = make_domain(stage->base);
	stage->options.recv_pool = NULL;
	stage->options.srq = stage->srq->it;
	stage->options.domain = stage->domain->it;
	up(stage);
	stage->options = options;
}

/* Four are posted, the others wait. */
static void busy(struct stage *stage)
{
	stage->options.send_queue = 4;
	up(stage);
	stage->options.send_queue = 0;
	stage_stop_work(stage);
	conn_send(stage->client, 6);
	stage_settle(stage);
	stage_go_on_working(stage);
}

/* Taken, but not yet the device's. */
static void just_sent(struct stage *stage)
{
	up(stage);
	stage_stop_work(stage);
	conn_send(stage->client, 2);
	stage_go_on_working(stage);
}

/* Two messages wait to be told. */
static void not_reading(struct stage *stage)
{
	up(stage);
	ck_assert_int_eq(evrdma_conn_disable(stage->client->it), 0);
	conn_send(stage->server, 2);
	stage_settle(stage);
}

static void reading_again(struct stage *stage)
{
	not_reading(stage);
	ck_assert_int_eq(evrdma_conn_enable(stage->client->it), 0);
}

static void not_reading_and_left(struct stage *stage)
{
	not_reading(stage);
	end_actor(stage->server);
	stage_settle(stage);
}

/* --- connections that end ------------------------------------------------------------------- */

static void disconnecting(struct stage *stage)
{
	busy(stage);
	ck_assert_int_eq(evrdma_conn_disconnect(stage->victim->it), 0);
	stage_settle(stage);
}

static void parting(struct stage *stage)
{
	up(stage);
	fake_hold(FAKE_DREP);
	ck_assert_int_eq(evrdma_conn_disconnect(stage->victim->it), 0);
	stage_settle(stage);
	fake_keep(FAKE_DREP);
}

static void left_by_its_peer(struct stage *stage)
{
	up(stage);
	end_actor(stage->server);
	stage_settle(stage);
}

/* Waits for the last acknowledgements. */
static void left_while_busy(struct stage *stage)
{
	busy(stage);
	ck_assert_int_eq(fake_inject(evrdma_conn_get_cm_id(stage->victim->it),
				 RDMA_CM_EVENT_DISCONNECTED, 0),
		0);
	stage_settle(stage);
}

static void closing(struct stage *stage)
{
	left_while_busy(stage);
	end_actor(stage->victim);
	stage_settle(stage);
}

/* Waits for the answer to its disconnect until the time for it is over. */
static void failed(struct stage *stage)
{
	new_one(stage);
	conn_connect(stage->victim, NULL, stage->kind);
	stage_settle(stage);
}

static void removed(struct stage *stage)
{
	make_pair(stage, goes);
	stage->victim = stage->client;
	stage_pull(stage, goes);
	stage_settle(stage);
}

static void removed_just_now(struct stage *stage)
{
	make_pair(stage, goes);
	stage->victim = stage->client;
	stage_pull(stage, goes);
}

static void migrated(struct stage *stage)
{
	up(stage);
	stage->second = make_base(stage);
	ck_assert_int_eq(evrdma_conn_migrate(stage->victim->it, stage->second->it), 0);
}

/* --- listeners and requests ----------------------------------------------------------------- */

static void listening(struct stage *stage)
{
	stage->victim = make_listener(stage->base, stage->kind, RDMA_PS_TCP);
}

static void listening_disabled(struct stage *stage)
{
	listening(stage);
	evrdma_listener_disable(stage->victim->it);
	conn_connect(make_conn(stage->base, &stage->options), stage->victim, stage->kind);
	stage_settle(stage);
}

static void listening_on_nothing(struct stage *stage)
{
	stage->victim = make_listener(stage->base, goes, RDMA_PS_TCP);
	stage_pull(stage, goes);
	stage_settle(stage);
}

static void waiting_for_its_device(struct stage *stage)
{
	stage->relisten_ms = 60000;
	listening_on_nothing(stage);
}

static void ask_of(struct stage *stage, enum fake_kind kind)
{
	stage->listener = make_listener(stage->base, kind, RDMA_PS_TCP);
	stage->listener->answer = KEEP;
	stage->client = make_conn(stage->base, &stage->options);
	conn_connect(stage->client, stage->listener, kind);
	stage_settle(stage);
	stage->victim = stage->listener->request;
}

static void asked(struct stage *stage)
{
	ask_of(stage, stage->kind);
}

static void asked_by_one_who_left(struct stage *stage)
{
	asked(stage);
	end_actor(stage->client);
	stage_settle(stage);
}

static void asked_on_nothing(struct stage *stage)
{
	ask_of(stage, goes);
	stage_pull(stage, goes);
	stage_settle(stage);
}

static void asked_of_one_who_left(struct stage *stage)
{
	asked(stage);
	end_actor(stage->listener);
	stage_settle(stage);
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
