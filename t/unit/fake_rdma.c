/* The library on top of the fake: whole connections through rdma_*, and every call failing. */
#include "unit/fake_main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { PORT = 7471, DEPTH = 4, LEN = 64, MIN_CALLS = 30, MAX_CALLS = 300 };

/* One endpoint of a connection, or one member of a group. */
struct endpoint {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t buf[LEN + 40];
};

struct fixture {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct endpoint client;
	struct endpoint server;
};

static struct sockaddr_in addr_of(const char *ip)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_pton(AF_INET, ip, &in.sin_addr);
	return in;
}

/* The next event, which must be there, acked; 0 when it is the one, else -1. */
static int next_is(struct fixture *f, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	int err;

	if (rdma_get_cm_event(f->channel, &event))
		return -1;
	err = event->event == type && !event->status ? 0 : -1;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		f->server.id = event->id;
	rdma_ack_cm_event(event);
	return err;
}

static int make_qp(struct endpoint *endpoint)
{
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = endpoint->id->qp_type, .sq_sig_all = 1
	};

	if (rdma_create_qp(endpoint->id, NULL, &init))
		return -1;
	endpoint->mr = ibv_reg_mr(endpoint->id->pd, endpoint->buf, sizeof(endpoint->buf),
		IBV_ACCESS_LOCAL_WRITE);
	return endpoint->mr ? 0 : -1;
}

static void drop_endpoint(struct endpoint *endpoint)
{
	if (endpoint->mr)
		ibv_dereg_mr(endpoint->mr);
	if (endpoint->id && endpoint->id->qp)
		rdma_destroy_qp(endpoint->id);
	if (endpoint->id)
		rdma_destroy_id(endpoint->id);
}

static int open_fixture(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->channel = rdma_create_event_channel();
	if (!f->channel)
		return -1;
	return fcntl(f->channel->fd, F_SETFL, O_NONBLOCK);
}

static void close_fixture(struct fixture *f)
{
	drop_endpoint(&f->client);
	drop_endpoint(&f->server);
	if (f->listener)
		rdma_destroy_id(f->listener);
	if (f->channel)
		rdma_destroy_event_channel(f->channel);
}

static int listen_on(struct fixture *f, const char *ip)
{
	struct sockaddr_in in = addr_of(ip);

	return rdma_create_id(f->channel, &f->listener, NULL, RDMA_PS_TCP) ||
			       rdma_bind_addr(f->listener, (struct sockaddr *)&in) ||
			       rdma_listen(f->listener, 8)
		       ? -1
		       : 0;
}

static int resolve(struct fixture *f, const char *ip)
{
	struct sockaddr_in in = addr_of(ip);

	return rdma_create_id(f->channel, &f->client.id, NULL, RDMA_PS_TCP) ||
			       rdma_resolve_addr(
				       f->client.id, NULL, (struct sockaddr *)&in, 2000) ||
			       next_is(f, RDMA_CM_EVENT_ADDR_RESOLVED) ||
			       rdma_resolve_route(f->client.id, 2000) ||
			       next_is(f, RDMA_CM_EVENT_ROUTE_RESOLVED)
		       ? -1
		       : 0;
}

static int connect_sides(struct fixture *f, const char *ip)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return open_fixture(f) || listen_on(f, ip) || resolve(f, ip) || make_qp(&f->client) ||
			       rdma_connect(f->client.id, &param) ||
			       next_is(f, RDMA_CM_EVENT_CONNECT_REQUEST) || make_qp(&f->server) ||
			       rdma_accept(f->server.id, &param) ||
			       next_is(f, RDMA_CM_EVENT_ESTABLISHED) ||
			       next_is(f, RDMA_CM_EVENT_ESTABLISHED)
		       ? -1
		       : 0;
}

static int post_recv(struct endpoint *endpoint, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)endpoint->buf, len, endpoint->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(endpoint->id->qp, &wr, &bad);
}

static int post_send(struct endpoint *endpoint, struct ibv_ah *ah, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)endpoint->buf, LEN, endpoint->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = 0xffffff;
		wr.wr.ud.remote_qkey = qkey;
	}
	return ibv_post_send(endpoint->id->qp, &wr, &bad);
}

static int transfer(struct fixture *f)
{
	struct ibv_wc wc;

	memset(f->client.buf, 0x77, LEN);
	if (post_recv(&f->server, LEN) || post_send(&f->client, NULL, 0))
		return -1;
	if (ibv_poll_cq(f->server.id->recv_cq, 1, &wc) != 1 || wc.status || wc.byte_len != LEN)
		return -1;
	if (ibv_poll_cq(f->client.id->send_cq, 1, &wc) != 1 || wc.status)
		return -1;
	return memcmp(f->client.buf, f->server.buf, LEN) ? -1 : 0;
}

static int disconnect(struct fixture *f)
{
	return rdma_disconnect(f->client.id) || next_is(f, RDMA_CM_EVENT_DISCONNECTED) ||
			       rdma_disconnect(f->server.id) ||
			       next_is(f, RDMA_CM_EVENT_DISCONNECTED)
		       ? -1
		       : 0;
}

static int whole_connection(struct fixture *f)
{
	return connect_sides(f, FAKE_ROCE_IP) || transfer(f) || disconnect(f);
}

START_TEST(a_connection_passes_data_and_ends)
{
	struct fixture f;

	ck_assert_int_eq(whole_connection(&f), 0);
	close_fixture(&f);
}
END_TEST

START_TEST(the_same_on_iwarp)
{
	struct fixture f;

	fake_device_add(FAKE_IWARP);
	ck_assert_int_eq(connect_sides(&f, FAKE_IWARP_IP), 0);
	ck_assert_int_eq(transfer(&f), 0);
	ck_assert_int_eq(rdma_disconnect(f.client.id), 0);
	ck_assert_int_eq(next_is(&f, RDMA_CM_EVENT_DISCONNECTED), 0);
	ck_assert_int_eq(next_is(&f, RDMA_CM_EVENT_DISCONNECTED), 0);
	close_fixture(&f);
}
END_TEST

START_TEST(the_same_on_infiniband)
{
	struct fixture f;

	fake_device_add(FAKE_IB);
	ck_assert_int_eq(connect_sides(&f, FAKE_IB_IP), 0);
	ck_assert_int_eq(transfer(&f), 0);
	ck_assert_int_eq(disconnect(&f), 0);
	close_fixture(&f);
}
END_TEST

/* One run with the n-th call failing; false when there was no n-th call any more. */
static bool survives(unsigned n)
{
	struct fixture f;
	const char *failed;
	int err;

	fake_fail_nth(FAKE_ANY, n, ENOMEM);
	err = whole_connection(&f);
	failed = fake_failed();
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_msg(!err || failed, "call %u: failed without a reason", n);
	close_fixture(&f);
	ck_assert_msg(!fake_expect_clean(), "call %u, %s: %s", n, failed, fake_expect_clean());
	return failed != NULL;
}

START_TEST(whatever_call_fails_nothing_is_left_behind)
{
	unsigned n = 1;

	while (n < MAX_CALLS && survives(n))
		n++;
	ck_assert_uint_gt(n, MIN_CALLS);
	ck_assert_uint_lt(n, MAX_CALLS);
}
END_TEST

static int join_endpoint(struct fixture *f, struct endpoint *endpoint,
	const struct sockaddr_in *group, struct ibv_ah **ah, uint32_t *qkey)
{
	struct sockaddr_in own = addr_of(FAKE_ROCE_IP);
	struct rdma_cm_event *event;
	int err;

	own.sin_port = 0;
	if (rdma_create_id(f->channel, &endpoint->id, NULL, RDMA_PS_UDP) ||
		rdma_bind_addr(endpoint->id, (struct sockaddr *)&own) || make_qp(endpoint) ||
		rdma_join_multicast(endpoint->id, (struct sockaddr *)group, endpoint) ||
		rdma_get_cm_event(f->channel, &event))
		return -1;
	err = event->event == RDMA_CM_EVENT_MULTICAST_JOIN &&
				event->param.ud.private_data == endpoint
		      ? 0
		      : -1;
	*qkey = event->param.ud.qkey;
	*ah = ibv_create_ah(endpoint->id->pd, &event->param.ud.ah_attr);
	rdma_ack_cm_event(event);
	return *ah ? err : -1;
}

START_TEST(a_group_passes_datagrams)
{
	struct sockaddr_in group = addr_of("239.1.2.3");
	struct ibv_ah *to, *from;
	struct fixture f;
	struct ibv_wc wc;
	uint32_t qkey;

	ck_assert_int_eq(open_fixture(&f), 0);
	ck_assert_int_eq(join_endpoint(&f, &f.server, &group, &from, &qkey), 0);
	ck_assert_int_eq(join_endpoint(&f, &f.client, &group, &to, &qkey), 0);
	ck_assert_int_eq(post_recv(&f.server, LEN + 40), 0);
	memset(f.client.buf, 0x31, LEN);
	ck_assert_int_eq(post_send(&f.client, to, qkey), 0);
	ck_assert_int_eq(ibv_poll_cq(f.server.id->recv_cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.byte_len, LEN + 40);
	ck_assert_mem_eq(f.server.buf + 40, f.client.buf, LEN);
	ck_assert_int_eq(rdma_leave_multicast(f.client.id, (struct sockaddr *)&group), 0);
	ck_assert_int_eq(rdma_leave_multicast(f.server.id, (struct sockaddr *)&group), 0);
	ck_assert_int_eq(ibv_destroy_ah(to), 0);
	ck_assert_int_eq(ibv_destroy_ah(from), 0);
	close_fixture(&f);
}
END_TEST

START_TEST(a_removed_device_can_leave_and_come_back)
{
	struct fixture f;

	ck_assert_int_eq(connect_sides(&f, FAKE_ROCE_IP), 0);
	fake_device_remove(FAKE_ROCE);
	ck_assert_int_eq(next_is(&f, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	ck_assert_int_eq(next_is(&f, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	ck_assert_int_eq(next_is(&f, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	ck_assert(!fake_device_gone(FAKE_ROCE));
	close_fixture(&f);
	ck_assert(fake_device_gone(FAKE_ROCE));
	fake_device_add(FAKE_ROCE);
	ck_assert_int_eq(whole_connection(&f), 0);
	close_fixture(&f);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_connection_passes_data_and_ends,
		the_same_on_iwarp,
		the_same_on_infiniband,
		whatever_call_fails_nothing_is_left_behind,
		a_group_passes_datagrams,
		a_removed_device_can_leave_and_come_back,
	};

	return fake_main("fake_rdma", tests, sizeof(tests) / sizeof(tests[0]));
}
