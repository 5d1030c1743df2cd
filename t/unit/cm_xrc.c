/* XRC on ids: its SRQs, its two halves, and data from one to the other. */
#include "unit/ep_unit.h"

#include <string.h>

static void set_up(void)
{
	cm_set_up();
	fake_device_add(FAKE_IB);
}

/* An id of the receiving half of XRC, on the device that has it. */
static struct rdma_cm_id *xrc_id(void)
{
	struct rdma_addrinfo res = ep_answer(FAKE_IB_IP, RAI_PASSIVE, IBV_QPT_XRC_RECV);
	struct rdma_cm_id *xrc = NULL;

	ck_assert_ok(rdma_create_ep(&xrc, &res, NULL, NULL));
	return xrc;
}

static struct ibv_srq_init_attr_ex xrc_attr(void)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = EP_SRQ_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};
}

START_TEST(without_xrc_the_device_says_so)
{
	struct ibv_srq_init_attr_ex attr = xrc_attr();
	struct ibv_qp_init_attr recv = cm_qp_attr(IBV_QPT_XRC_RECV);
	struct ibv_qp_init_attr send = cm_qp_attr(IBV_QPT_XRC_SEND);
	struct rdma_cm_id *id = cm_id(cm_channel(), RDMA_PS_TCP);
	struct rdma_event_channel *channel = id->channel;

	cm_resolve(id, FAKE_ROCE_IP);
	ck_assert_fails(rdma_create_srq_ex(id, &attr), EOPNOTSUPP);
	ck_assert_fails(rdma_create_qp(id, NULL, &recv), EOPNOTSUPP);
	ck_assert_fails(rdma_create_qp(id, NULL, &send), EOPNOTSUPP);
	ck_assert(!id->srq && !id->qp && !id->recv_cq && !id->send_cq);
	ck_assert_uint_eq(fake_live(FAKE_CHANNEL) + fake_live(FAKE_CQ), 0);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}
END_TEST

START_TEST(an_srq_of_xrc_brings_its_queue_and_goes_with_it)
{
	struct rdma_cm_id *xrc = xrc_id();

	ep_make_srq(xrc);
	ck_assert(xrc->srq && xrc->recv_cq && xrc->recv_cq->channel == xrc->recv_cq_channel);
	ck_assert_int_ge(xrc->recv_cq->cqe, EP_SRQ_DEPTH);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 1);
	rdma_destroy_srq(xrc);
	ck_assert(!xrc->srq && !xrc->recv_cq && !xrc->recv_cq_channel);
	ck_assert_uint_eq(fake_live(FAKE_CQ) + fake_live(FAKE_CHANNEL), 0);
	rdma_destroy_ep(xrc);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 0);
}
END_TEST

START_TEST(what_the_caller_names_for_xrc_stays_the_callers)
{
	struct rdma_cm_id *xrc = xrc_id();
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(xrc->verbs, &domain);
	struct ibv_cq *cq = ibv_create_cq(xrc->verbs, EP_SRQ_DEPTH, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex attr = xrc_attr();

	attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	attr.xrcd = xrcd;
	attr.cq = cq;
	ck_assert_ok(rdma_create_srq_ex(xrc, &attr));
	ck_assert_ptr_null(xrc->recv_cq);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 1);
	rdma_destroy_srq(xrc);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
	rdma_destroy_ep(xrc);
}
END_TEST

/* An id of another type may have one as well, later: then both kinds of receives share a queue. */
static struct rdma_cm_id *with_both(struct rdma_event_channel *channel)
{
	struct ibv_srq_init_attr_ex attr = xrc_attr();
	struct rdma_cm_id *both = cm_id(channel, RDMA_PS_TCP);

	cm_resolve(both, FAKE_IB_IP);
	cm_make_qp(both);
	ck_assert_ok(rdma_create_srq_ex(both, &attr));
	ck_assert_ptr_eq(attr.cq, both->qp->recv_cq);
	return both;
}

START_TEST(a_shared_queue_goes_with_the_last_that_uses_it)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *both = with_both(channel);

	rdma_destroy_qp(both);
	ck_assert(both->recv_cq && !both->send_cq);
	rdma_destroy_ep(both);
	both = with_both(channel);
	rdma_destroy_srq(both);
	ck_assert_ptr_nonnull(both->recv_cq);
	rdma_destroy_ep(both);
	rdma_destroy_event_channel(channel);
	ck_assert_uint_eq(fake_live(FAKE_CQ) + fake_live(FAKE_CHANNEL), 0);
}
END_TEST

START_TEST(the_halves_of_xrc_have_the_queues_they_need)
{
	struct rdma_cm_id *send, *recv = xrc_id();
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_XRC_RECV);

	ck_assert_ok(rdma_create_qp(recv, NULL, &attr));
	ck_assert(recv->qp && !recv->send_cq && !recv->recv_cq && recv->pd);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 1);
	send = ep_make(FAKE_IB_IP, 0, IBV_QPT_XRC_SEND);
	ck_assert(send->qp && send->send_cq && !send->recv_cq);
	rdma_destroy_ep(send);
	rdma_destroy_ep(recv);
}
END_TEST

START_TEST(the_domain_of_a_receiving_half_may_be_the_callers)
{
	struct rdma_cm_id *recv = xrc_id();
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = ibv_open_xrcd(recv->verbs, &domain),
	};

	ck_assert_ok(rdma_create_qp_ex(recv, &attr));
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 1);
	ck_assert_int_eq(ibv_close_xrcd(attr.xrcd), EBUSY);
	rdma_destroy_qp(recv);
	ck_assert_int_eq(ibv_close_xrcd(attr.xrcd), 0);
	rdma_destroy_ep(recv);
}
END_TEST

/* --- data --- */

struct receiver {
	struct rdma_cm_id *listener;
	struct rdma_cm_id *srq_id; /* NULL: the SRQ is the connection's own */
	char buf[16];
};

static struct rdma_cm_id *xrc_listener(void)
{
	return ep_make(FAKE_IB_IP, RAI_PASSIVE, IBV_QPT_XRC_RECV);
}

static uint32_t number_of(struct ibv_srq *srq)
{
	uint32_t number = 0;

	ck_assert_int_eq(ibv_get_srq_num(srq, &number), 0);
	return number;
}

static void receive(struct receiver *side, struct rdma_cm_id *server, struct rdma_cm_id *srq_id)
{
	struct ibv_mr *mr = rdma_reg_msgs(srq_id, side->buf, sizeof(side->buf));
	uint32_t number = number_of(srq_id->srq);
	struct rdma_conn_param param = { .private_data = &number, .private_data_len = 4 };
	struct ibv_wc wc;

	ck_assert_ok(rdma_post_recv(srq_id, side, side->buf, sizeof(side->buf), mr));
	ck_assert_ok(rdma_accept(server, &param));
	ck_assert_int_eq(rdma_get_recv_comp(srq_id, &wc), 1);
	ck_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uintptr_t)side);
	ck_assert_uint_eq(wc.qp_num, server->qp->qp_num);
	ck_assert_ok(rdma_disconnect(server));
	ck_assert_ok(rdma_dereg_mr(mr));
}

static void *serve(void *arg)
{
	struct receiver *side = arg;
	struct rdma_cm_id *server;

	ck_assert_ok(rdma_get_request(side->listener, &server));
	ck_assert_int_eq(server->qp_type, IBV_QPT_XRC_RECV);
	if (!side->srq_id)
		ep_make_srq(server);
	receive(side, server, side->srq_id ? side->srq_id : server);
	rdma_destroy_ep(server);
	return NULL;
}

static void send_to(struct rdma_cm_id *client, uint32_t srq_number, const char *text)
{
	struct ibv_sge sge = { .addr = (uintptr_t)text, .length = (uint32_t)strlen(text) + 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = srq_number,
	};

	ck_assert_int_eq(ibv_post_send(client->qp, &wr, &bad), 0);
}

static void connect_and_send(struct receiver *side)
{
	struct rdma_addrinfo res = ep_answer(FAKE_IB_IP, 0, IBV_QPT_XRC_SEND);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_XRC_SEND);
	pthread_t thread = ep_start(serve, side);
	struct rdma_cm_id *client;
	struct ibv_wc wc;
	uint32_t number;

	attr.cap.max_inline_data = sizeof(side->buf);
	ck_assert_ok(rdma_create_ep(&client, &res, NULL, &attr));
	ck_assert_ok(rdma_connect(client, NULL));
	memcpy(&number, client->event->param.conn.private_data, sizeof(number));
	send_to(client, number, "over XRC");
	ck_assert_int_eq(rdma_get_send_comp(client, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_ok(rdma_disconnect(client));
	ep_finish(thread);
	ck_assert_str_eq(side->buf, "over XRC");
	rdma_destroy_ep(client);
}

START_TEST(xrc_delivers_to_the_srq_of_the_connection)
{
	struct receiver side = { .listener = xrc_listener() };

	connect_and_send(&side);
	rdma_destroy_ep(side.listener);
}
END_TEST

START_TEST(xrc_delivers_to_the_srq_of_another_id)
{
	struct receiver side = { .listener = xrc_listener() };

	side.srq_id = side.listener;
	ep_make_srq(side.srq_id);
	connect_and_send(&side);
	connect_and_send(&side);
	rdma_destroy_ep(side.listener);
}
END_TEST

/* --- failures --- */

static void fail_at(struct rdma_cm_id *on, const char *call)
{
	struct ibv_srq_init_attr attr = ep_srq_attr();

	fake_fail_next(call, EOVERFLOW);
	ck_assert_fails(rdma_create_srq(on, NULL, &attr), EOVERFLOW);
	ck_assert(!on->srq && !on->recv_cq && !on->recv_cq_channel);
	ck_assert_uint_eq(fake_live(FAKE_CQ) + fake_live(FAKE_CHANNEL), 0);
}

START_TEST(an_srq_that_fails_leaves_nothing_behind)
{
	struct rdma_cm_id *xrc = xrc_id();

	fail_at(xrc, "ibv_open_xrcd");
	fail_at(xrc, "ibv_create_comp_channel");
	fail_at(xrc, "ibv_create_cq");
	fail_at(xrc, "ibv_create_srq_ex");
	ep_make_srq(xrc);
	rdma_destroy_ep(xrc);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 0);
}
END_TEST

START_TEST(a_receiving_half_that_fails_leaves_nothing_behind)
{
	struct rdma_cm_id *recv = xrc_id();
	struct ibv_qp_init_attr attr;
	unsigned n;

	for (n = 1;; n++) {
		attr = cm_qp_attr(IBV_QPT_XRC_RECV);
		fake_fail_nth(FAKE_ANY, n, EOVERFLOW);
		if (!rdma_create_qp(recv, NULL, &attr))
			break;
		ck_assert_int_eq(errno, EOVERFLOW);
		ck_assert_ptr_null(recv->qp);
		ck_assert_uint_eq(fake_live(FAKE_QP), 0);
	}
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_uint_gt(n, 4);
	rdma_destroy_ep(recv);
	ck_assert_uint_eq(fake_live(FAKE_XRCD), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		without_xrc_the_device_says_so,
		an_srq_of_xrc_brings_its_queue_and_goes_with_it,
		what_the_caller_names_for_xrc_stays_the_callers,
		a_shared_queue_goes_with_the_last_that_uses_it,
		the_halves_of_xrc_have_the_queues_they_need,
		the_domain_of_a_receiving_half_may_be_the_callers,
		xrc_delivers_to_the_srq_of_the_connection,
		xrc_delivers_to_the_srq_of_another_id,
		an_srq_that_fails_leaves_nothing_behind,
		a_receiving_half_that_fails_leaves_nothing_behind,
	};

	return unit_main("cm_xrc", tests, sizeof(tests) / sizeof(tests[0]), set_up, cm_tear_down);
}
