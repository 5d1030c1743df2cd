/* Many requests at once, whose peers gave up before the server came to them, and ask again. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/timeouts.h"

enum {
	PEERS = 40,
	EACH = 50,
	/* siw finds out as it accepts, and its library makes some 55 QPs in a process at most. */
	IWARP_PEERS = 8,
	IWARP_EACH = 4,
	NOTICED = 10, /* one of so many, and more; the others the kernel drops by itself */
	LONGEST_MS = 1000,
	TIMEOUT_MS = 20000,
};

/* --- a peer, in a process of its own --------------------------------------------------------- */

struct peer {
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct sockaddr_in sin;
};

static int peers, each;
static int port_pipe[2], go_pipe[2], done_pipe[2];

static void need(bool holds)
{
	if (!holds)
		_exit(2);
}

static void await(struct peer *peer, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	need(!rdma_get_cm_event(peer->channel, &event));
	need(event->event == type);
	rdma_ack_cm_event(event);
}

static void make_qp(struct peer *peer, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	if (!peer->pd)
		peer->pd = ibv_alloc_pd(id->verbs);
	if (!peer->cq)
		peer->cq = ibv_create_cq(id->verbs, 2 * EACH, NULL, NULL, 0);
	init.send_cq = init.recv_cq = peer->cq;
	need(!rdma_create_qp(id, peer->pd, &init));
}

/* The answers of those before are not read, who have a channel of their own. */
static struct rdma_cm_id *ask(struct peer *peer)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	peer->channel = rdma_create_event_channel();
	need(peer->channel && !rdma_create_id(peer->channel, &id, NULL, RDMA_PS_TCP));
	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer->sin, TIMEOUT_MS));
	await(peer, RDMA_CM_EVENT_ADDR_RESOLVED);
	need(!rdma_resolve_route(id, TIMEOUT_MS));
	await(peer, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(peer, id);
	need(!rdma_connect(id, &param));
	return id;
}

static void end(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void ask_and_give_up(struct peer *peer)
{
	struct rdma_cm_id *ids[EACH];
	char byte = 0;
	int i;

	for (i = 0; i < each; i++)
		ids[i] = ask(peer);
	need(write(done_pipe[1], &byte, 1) == 1 && read(go_pipe[0], &byte, 1) == 1);
	for (i = 0; i < each; i++)
		end(ids[i]);
	need(write(done_pipe[1], &byte, 1) == 1);
}

static _Noreturn void be_impatient(void)
{
	struct peer peer = { 0 };
	struct rdma_cm_id *id;
	uint16_t port;

	need(read(port_pipe[0], &port, sizeof(port)) == sizeof(port));
	world_address(&peer.sin, place.ip, port);
	ask_and_give_up(&peer);
	id = ask(&peer);
	await(&peer, RDMA_CM_EVENT_ESTABLISHED);
	end(id);
	_exit(0);
}

/* --- the server ------------------------------------------------------------------------------ */

static unsigned stale, gone; /* asked for nobody; the processes that ended */

static void start_peers(void)
{
	int i;

	ck_assert(!pipe(port_pipe) && !pipe(go_pipe) && !pipe(done_pipe));
	for (i = 0; i < peers; i++)
		if (!fork())
			be_impatient();
}

static void await_all(void)
{
	char byte;
	int i;

	for (i = 0; i < peers; i++)
		ck_assert_int_eq(read(done_pipe[0], &byte, 1), 1);
}

static void let_go(struct world *w)
{
	uint16_t port = evrdma_listener_get_port(w->listener);
	int i;

	for (i = 0; i < peers; i++)
		ck_assert_int_eq(write(port_pipe[1], &port, sizeof(port)), sizeof(port));
	await_all();
	for (i = 0; i < peers; i++)
		ck_assert_int_eq(write(go_pipe[1], "", 1), 1);
	await_all();
}

static void close_pipes(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(port_pipe[i]);
		close(go_pipe[i]);
		close(done_pipe[i]);
	}
}

static void count_stale(
	struct side *side, enum evrdma_conn_event event, const struct evrdma_error *error)
{
	stale += event == EVRDMA_CONN_ERROR && !side->connected;
	if (event == EVRDMA_CONN_ERROR && !side->connected) {
		ck_assert_msg(error->err == ECONNRESET, "%s", side->world->last_error);
		ck_assert_int_eq(error->step, EVRDMA_STEP_ACCEPT);
	}
	side_close_if_down(side, event);
}

static bool all_have_asked_again(struct world *w)
{
	return w->established == (unsigned)peers;
}

static bool all_are_gone(struct world *w)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0) {
		ck_assert_int_eq(status, 0);
		gone++;
	}
	return gone == (unsigned)peers && !w->live;
}

/* The server was busy elsewhere meanwhile. */
START_TEST(requests_whose_peers_gave_up_hold_up_nobody)
{
	struct world *w;

	peers = place.is_iwarp ? IWARP_PEERS : PEERS;
	each = place.is_iwarp ? IWARP_EACH : EACH;
	start_peers();
	w = noting_world();
	w->on_event = count_stale;
	w->options.send_depth = 4;
	w->options.recv_depth = 4;
	world_listen(w);
	let_go(w);
	begin();
	run_until(w, all_have_asked_again);
	printf("# %u requests of peers that had gone, all connected in %llu ms\n", stale,
		(unsigned long long)passed_ms());
	fflush(stdout);
	ck_assert_uint_lt(passed_ms(), LONGEST_MS);
	ck_assert_int_ge((int)stale, peers * each / NOTICED);
	run_until(w, all_are_gone);
	close_pipes();
	finish(w);
}
END_TEST

TCase *timeouts_stale_case(void)
{
	TCase *tc = new_case("stale");

	tcase_add_test(tc, requests_whose_peers_gave_up_hold_up_nobody);
	return tc;
}
