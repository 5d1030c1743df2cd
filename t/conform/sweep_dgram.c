/* Datagrams: a service and its peers, groups and their members. */
#include "conform/sweep.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { GROUPS = 3, PEERS = 2, HEADER = EVRDMA_DGRAM_HEADER_BYTES };

/* Of the scenario that runs. */
static struct {
	struct evrdma_dgram *service, *asker;
	struct evrdma_peer *peers[PEERS];
	struct evrdma_mcast *groups[GROUPS];
	struct evrdma_request *request;
	unsigned ready, joined, left;
	bool refuses;
	void (*on_ready)(struct run *r);
	void (*on_joined)(struct run *r);
	void (*on_heard)(struct run *r, struct evrdma_dgram *to, const struct evrdma_recv *recv);
	void (*on_peer_error)(struct run *r, int err);
} d;

static void on_sent(struct evrdma_dgram *dgram, struct evrdma_buf *buf,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	r->over++;
	if (error)
		run_note(r, error->err);
}

static struct evrdma_buf *text_buf(struct run *r)
{
	struct evrdma_buf *buf = run_have(r, evrdma_pool_get(r->pool));

	if (buf)
		memset(evrdma_buf_data(buf), 0x5a, SWEEP_LEN);
	return buf;
}

/* --- an endpoint ----------------------------------------------------------------------------- */

static void on_event(struct evrdma_dgram *dgram, enum evrdma_dgram_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_DGRAM_CLOSED) {
		r->closed++;
		run_finish(r);
	} else if (event == EVRDMA_DGRAM_ERROR) {
		run_fail(r, error->err);
	} else if (event == EVRDMA_DGRAM_READY && ++d.ready == 1 + !!d.service && !r->finished) {
		d.on_ready(r);
	}
}

static void on_recv(struct evrdma_dgram *dgram, const struct evrdma_recv *recv, void *arg)
{
	struct run *r = arg;

	if (!r->finished && !recv->err && recv->len == SWEEP_LEN)
		d.on_heard(r, dgram, recv);
}

static struct evrdma_dgram *open_dgram(struct run *r, struct evrdma_srq *srq)
{
	struct evrdma_dgram_options options;
	struct evrdma_dgram *dgram;

	evrdma_dgram_options_init(&options);
	options.recv_pool = srq ? NULL : r->pool;
	options.srq = srq;
	options.recv_depth = options.send_depth = 4;
	options.drain_timeout_ms = 20;
	dgram = run_made(r, evrdma_dgram_new(r->base, &options));
	if (!dgram)
		return NULL;
	evrdma_dgram_setcb(dgram, on_recv, on_event, r);
	run_ok(r, evrdma_dgram_open(dgram, run_address(sweep_ip(), 0), NULL));
	return dgram;
}

static bool make_pool(struct run *r)
{
	memset(&d, 0, sizeof(d));
	r->pool = run_have(r, evrdma_pool_new(r->base, SWEEP_LEN + HEADER, 0));
	return r->pool;
}

/* --- groups ---------------------------------------------------------------------------------- */

static void send_to_group(struct run *r, struct evrdma_mcast *group)
{
	struct evrdma_buf *buf = text_buf(r);
	uint32_t imm = 7;

	if (buf && run_ok(r, evrdma_dgram_send(d.asker, group, buf, SWEEP_LEN, &imm, on_sent, r)))
		r->asked++;
	evrdma_buf_unref(buf);
}

static void on_group(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_MCAST_CLOSED)
		r->closed++;
	else if (event == EVRDMA_MCAST_ERROR)
		run_fail(r, error->err);
	else if (!r->finished && ++d.joined == GROUPS)
		d.on_joined(r);
	if (event == EVRDMA_MCAST_CLOSED && ++d.left == GROUPS && r->through)
		evrdma_dgram_close(d.asker);
}

static bool join(struct run *r, int i, const char *ip, unsigned flags)
{
	d.groups[i] =
		run_made(r, evrdma_mcast_join(d.asker, run_address(ip, 0), flags, on_group, r));
	return d.groups[i];
}

static void join_all(struct run *r)
{
	if (join(r, 0, "239.1.2.3", 0) && join(r, 1, "239.1.2.4", 0))
		join(r, 2, "239.1.2.5", EVRDMA_MCAST_OPT_SENDONLY);
}

static void send_to_all(struct run *r)
{
	struct evrdma_mcast *only = d.groups[2];

	if (!evrdma_mcast_get_ah_attr(only) || !evrdma_mcast_get_qp_num(only) ||
		!evrdma_mcast_get_qkey(only) || evrdma_mcast_get_addr(only)->sa_family != AF_INET)
		run_fail(r, EBADMSG);
	else
		send_to_group(r, only);
	if (!r->finished)
		send_to_group(r, d.groups[0]);
}

static void leave_all(struct run *r, struct evrdma_dgram *to, const struct evrdma_recv *recv)
{
	int i;

	r->through = recv->imm == 7;
	for (i = 0; i < GROUPS; i++)
		evrdma_mcast_close(d.groups[i]);
}

/* A datagram may be lost for want of memory. */
static void on_late(evutil_socket_t fd, short what, void *arg)
{
	run_fail(arg, ETIMEDOUT);
}

/* Of several groups, one of which is only sent to. */
static void groups_are_joined(struct run *r)
{
	if (!make_pool(r))
		return;
	d.on_ready = join_all;
	d.on_joined = send_to_all;
	d.on_heard = leave_all;
	d.asker = open_dgram(r, NULL);
	if (!r->finished)
		run_after_ms(r, 200, on_late);
}

static void on_refused_group(struct evrdma_mcast *group, enum evrdma_mcast_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_MCAST_CLOSED) {
		r->closed++;
		return;
	}
	r->through = error && error->err == ENETUNREACH;
	run_fail(r, error ? error->err : EBADMSG);
}

static void join_in_vain(struct run *r)
{
	fake_answer(FAKE_JOIN, -ENETUNREACH);
	run_made(
		r, evrdma_mcast_join(d.asker, run_address("239.1.2.3", 0), 0, on_refused_group, r));
}

static void forget_answer(struct run *r)
{
	fake_answer(FAKE_JOIN, 0);
}

static void join_fails(struct run *r)
{
	if (!make_pool(r))
		return;
	r->awaited = ENETUNREACH;
	r->after = forget_answer;
	d.on_ready = join_in_vain;
	d.asker = open_dgram(r, NULL);
}

/* --- a service ------------------------------------------------------------------------------- */

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct run *r = arg;

	r->requests++;
	if (r->finished || d.refuses)
		evrdma_request_reject(request, "no", 3);
	else if (!run_ok(r, evrdma_dgram_accept(d.service, request, "yes", 4)))
		evrdma_request_reject(request, NULL, 0);
}

static void on_listener_event(struct evrdma_listener *listener, enum evrdma_listener_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	r->closed += event == EVRDMA_LISTENER_CLOSED;
	if (event == EVRDMA_LISTENER_ERROR)
		run_fail(r, error->err);
}

static bool listen_for_datagrams(struct run *r)
{
	struct evrdma_listener_options options;
	struct evrdma_listener *listener;

	evrdma_listener_options_init(&options);
	options.port_space = RDMA_PS_UDP;
	listener = run_made(r, evrdma_listener_new(r->base, run_address(sweep_ip(), SWEEP_PORT),
				       &options, on_request, r));
	if (listener)
		evrdma_listener_set_event_cb(listener, on_listener_event);
	return listener;
}

static void ask_service(struct run *r, struct evrdma_peer *peer)
{
	struct evrdma_buf *buf = text_buf(r);

	if (buf && run_ok(r, evrdma_dgram_send_to(d.asker, peer, buf, SWEEP_LEN, NULL, on_sent, r)))
		r->asked++;
	evrdma_buf_unref(buf);
}

static void on_peer(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_PEER_CLOSED)
		r->closed++;
	else if (event == EVRDMA_PEER_READY && !r->finished)
		ask_service(r, peer);
	else if (event == EVRDMA_PEER_ERROR && d.on_peer_error && !r->finished)
		d.on_peer_error(r, error->err);
	else if (event == EVRDMA_PEER_ERROR)
		run_fail(r, error->err);
}

static void find_service(struct run *r, const char *ip)
{
	struct evrdma_peer_options options;

	evrdma_peer_options_init(&options);
	options.timeout_ms = 100;
	options.private_data = "hello";
	options.private_data_len = 6;
	r->connects_begun++;
	d.peers[0] = run_made(
		r, evrdma_peer_new(d.asker, run_address(ip, SWEEP_PORT), &options, on_peer, r));
}

static void find_it(struct run *r)
{
	if (listen_for_datagrams(r))
		find_service(r, sweep_ip());
}

static void send_as_to_a_peer(struct run *r, struct evrdma_peer *peer)
{
	struct evrdma_buf *buf = text_buf(r);

	if (buf &&
		run_ok(r, evrdma_dgram_send_to(d.service, peer, buf, SWEEP_LEN, NULL, on_sent, r)))
		r->asked++;
	evrdma_buf_unref(buf);
}

static void on_sender(struct evrdma_peer *peer, enum evrdma_peer_event event,
	const struct evrdma_error *error, void *arg)
{
	struct run *r = arg;

	if (event == EVRDMA_PEER_CLOSED)
		r->closed++;
	else if (event == EVRDMA_PEER_ERROR)
		run_fail(r, error->err);
	else if (!r->finished)
		send_as_to_a_peer(r, peer);
}

/* To whoever asked: as an answer, and as to a peer. */
static void answer(struct run *r, const struct evrdma_recv *recv)
{
	struct evrdma_buf *buf = text_buf(r);
	struct sockaddr_storage sender;

	if (!buf)
		return;
	/* Within a subnet InfiniBand's datagrams name none. */
	if ((sweep_kind == FAKE_IB ||
		    run_ok(r, evrdma_dgram_get_sender(d.service, recv, &sender))) &&
		run_ok(r, evrdma_dgram_reply(d.service, recv, buf, SWEEP_LEN, NULL, on_sent, r)))
		r->asked++;
	if (!r->finished)
		d.peers[1] = run_made(r, evrdma_peer_new_sender(d.service, recv, on_sender, r));
	evrdma_buf_unref(buf);
}

static bool knows_the_service(void)
{
	struct evrdma_traffic_stats stats;
	size_t len;

	evrdma_dgram_get_stats(d.asker, &stats);
	return stats.sends == 1 && evrdma_peer_get_private_data(d.peers[0], &len) && len >= 4 &&
	       evrdma_peer_get_qp_num(d.peers[0]) == evrdma_dgram_get_qp_num(d.service) &&
	       evrdma_peer_get_qkey(d.peers[0]) && evrdma_dgram_get_mtu(d.asker) &&
	       evrdma_dgram_get_cm_id(d.asker);
}

static void on_heard(struct run *r, struct evrdma_dgram *to, const struct evrdma_recv *recv)
{
	if (to == d.service) {
		answer(r, recv);
	} else if (++d.joined == PEERS) {
		r->through = knows_the_service();
		evrdma_peer_close(d.peers[0]);
		run_finish(r);
	}
}

static void open_both(struct run *r, struct evrdma_srq *srq)
{
	d.on_heard = on_heard;
	d.service = open_dgram(r, srq);
	if (!r->finished)
		d.asker = open_dgram(r, NULL);
	if (!r->finished)
		run_after_ms(r, 200, on_late);
}

static void service_answers(struct run *r)
{
	if (!make_pool(r))
		return;
	d.on_ready = find_it;
	open_both(r, NULL);
}

static void service_shares_buffers(struct run *r)
{
	struct evrdma_srq *srq = make_pool(r) ? evrdma_srq_new(r->base, r->pool, 8) : NULL;

	d.on_ready = find_it;
	if (run_have(r, srq))
		open_both(r, srq);
}

static void expect_no(struct run *r, int err)
{
	size_t len;
	const char *data = evrdma_peer_get_private_data(d.peers[0], &len);

	r->through = err == ECONNREFUSED && data && !strcmp(data, "no");
	/* Without data: the end of the request said no, where the CM could not. */
	r->told |= err == ECONNREFUSED && !r->through && r->requests;
	run_fail(r, err);
}

static void service_refuses(struct run *r)
{
	if (!make_pool(r))
		return;
	d.refuses = true;
	d.on_ready = find_it;
	d.on_peer_error = expect_no;
	r->awaited = ECONNREFUSED;
	open_both(r, NULL);
}

static void find_nobody(struct run *r)
{
	find_service(r, sweep_kind == FAKE_IB ? "203.0.113.250" : FAKE_ROCE_SILENT_IP);
}

static void expect_silence(struct run *r, int err)
{
	r->through = err == ETIMEDOUT;
	run_fail(r, err);
}

static void service_is_silent(struct run *r)
{
	if (!make_pool(r))
		return;
	d.on_ready = find_nobody;
	d.on_peer_error = expect_silence;
	r->awaited = ETIMEDOUT;
	open_both(r, NULL);
}

const struct scenario sweep_dgram[] = {
	{ "groups are joined", groups_are_joined, FAKE_GROUPS },
	{ "join fails", join_fails, FAKE_GROUPS },
	{ "service answers", service_answers, FAKE_DATAGRAMS },
	{ "service shares buffers", service_shares_buffers, FAKE_DATAGRAMS | FAKE_SRQS },
	{ "service refuses", service_refuses, FAKE_DATAGRAMS },
	{ "service is silent", service_is_silent, FAKE_DATAGRAMS },
	{ NULL, NULL },
};
