#include "unit/cm_unit.h"

#include <stdlib.h>
#include <string.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void set_up(void)
{
	cm_set_up();
	channel = cm_channel();
	id = cm_id(channel, RDMA_PS_TCP);
	cm_resolve(id, FAKE_ROCE_IP);
}

static void tear_down(void)
{
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

START_TEST(a_queue_pair_brings_its_queues_and_goes_with_them)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert(id->qp && id->qp->pd == id->pd && id->qp->state == IBV_QPS_INIT);
	ck_assert(id->send_cq && id->recv_cq && id->send_cq != id->recv_cq);
	ck_assert(id->send_cq->channel == id->send_cq_channel && id->send_cq->cq_context == id);
	ck_assert(attr.send_cq == id->send_cq && attr.recv_cq == id->recv_cq);
	ck_assert_uint_ge(attr.cap.max_send_wr, 4);
	rdma_destroy_qp(id);
	ck_assert(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel);
	ck_assert_uint_eq(fake_live(FAKE_CQ) + fake_live(FAKE_CHANNEL) + fake_live(FAKE_QP), 0);
}
END_TEST

START_TEST(queues_of_the_callers_stay_the_callers)
{
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	attr.send_cq = attr.recv_cq = cq;
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert(!id->send_cq && !id->recv_cq && id->qp->send_cq == cq);
	rdma_destroy_qp(id);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* Some devices have 63 entries for 64 that were asked for. */
START_TEST(each_queue_has_an_entry_for_all_that_can_be_posted)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	tear_down();
	setenv("EVR_FAKE_PROFILE", "odd", 1);
	set_up();
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 64;
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert_int_ge(id->send_cq->cqe, 64);
	ck_assert_int_ge(id->recv_cq->cqe, 64);
	rdma_destroy_qp(id);
	unsetenv("EVR_FAKE_PROFILE");
}
END_TEST

/* A receive queue of the caller's does not keep the send side that was made from going. */
START_TEST(one_queue_made_goes_without_the_other)
{
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	attr.recv_cq = cq;
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert(id->send_cq && !id->recv_cq);
	rdma_destroy_qp(id);
	ck_assert_uint_eq(fake_live(FAKE_CQ), 1);
	ck_assert_uint_eq(fake_live(FAKE_CHANNEL), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

START_TEST(a_datagram_queue_pair_is_ready_at_once)
{
	struct rdma_cm_id *ud = cm_id(channel, RDMA_PS_UDP);

	ck_assert_ok(rdma_bind_addr(ud, cm_addr(FAKE_ROCE_IP, 0)));
	cm_make_qp(ud);
	ck_assert_int_eq(ud->qp->state, IBV_QPS_RTS);
	cm_destroy(ud);
}
END_TEST

START_TEST(bad_attributes_are_refused)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *unbound = cm_id(channel, RDMA_PS_TCP);
	struct ibv_context foreign_context = { 0 };
	struct ibv_pd foreign = { .context = &foreign_context };

	ck_assert_fails(rdma_create_qp(NULL, NULL, &attr), EINVAL);
	ck_assert_fails(rdma_create_qp(id, NULL, NULL), EINVAL);
	ck_assert_fails(rdma_create_qp_ex(id, NULL), EINVAL);
	ck_assert_fails(rdma_create_qp(unbound, NULL, &attr), EINVAL);
	ck_assert_fails(rdma_create_qp(id, &foreign, &attr), EINVAL);
	cm_make_qp(id);
	ck_assert_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	cm_destroy(unbound);
	rdma_destroy_qp(NULL);
}
END_TEST

START_TEST(extended_attributes_take_the_ids_domain)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	ck_assert_ok(rdma_create_qp_ex(id, &attr));
	ck_assert_ptr_eq(attr.pd, id->pd);
	ck_assert_uint_eq(attr.comp_mask, IBV_QP_INIT_ATTR_PD);
}
END_TEST

START_TEST(whatever_fails_leaves_nothing_behind)
{
	struct ibv_qp_init_attr attr;
	unsigned n;

	for (n = 1;; n++) {
		attr = cm_qp_attr(IBV_QPT_RC);
		fake_fail_nth(FAKE_ANY, n, ENOMEM);
		if (!rdma_create_qp(id, NULL, &attr))
			break;
		ck_assert_int_eq(errno, ENOMEM);
		ck_assert(!id->qp && !id->send_cq && !id->recv_cq && !id->recv_cq_channel);
		ck_assert(!attr.send_cq && !attr.recv_cq);
		ck_assert_uint_eq(fake_live(FAKE_QP) + fake_live(FAKE_CQ), 0);
		ck_assert_uint_eq(fake_live(FAKE_CHANNEL), 0);
	}
	fake_fail_nth(FAKE_ANY, 0, 0);
	ck_assert_uint_gt(n, 6);
}
END_TEST

START_TEST(attributes_for_a_queue_pair_of_the_callers_are_told)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	ck_assert_ok(rdma_init_qp_attr(id, &attr, &mask));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_INIT);
	ck_assert_int_eq(attr.port_num, 1);
	ck_assert_int_eq(mask & IBV_QP_PORT, IBV_QP_PORT);
	ck_assert_fails(rdma_init_qp_attr(NULL, &attr, &mask), EINVAL);
	ck_assert_fails(rdma_init_qp_attr(id, NULL, &mask), EINVAL);
	ck_assert_fails(rdma_init_qp_attr(id, &attr, NULL), EINVAL);
}
END_TEST

START_TEST(extensions_are_set_before_there_is_a_queue_pair)
{
	struct ibv_ece ece = { .vendor_id = 5, .options = 6 }, got;

	ck_assert_fails(rdma_set_local_ece(NULL, &ece), EINVAL);
	ck_assert_fails(rdma_set_local_ece(id, NULL), EINVAL);
	ck_assert_fails(rdma_get_remote_ece(NULL, &got), EINVAL);
	ck_assert_fails(rdma_get_remote_ece(id, NULL), EINVAL);
	ck_assert_ok(rdma_set_local_ece(id, &ece));
	ck_assert_ok(rdma_get_remote_ece(id, &got));
	ck_assert_uint_eq(got.vendor_id, 0);
	ece.comp_mask = 1;
	ck_assert_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ece = (struct ibv_ece){ .options = 1 };
	ck_assert_fails(rdma_set_local_ece(id, &ece), EINVAL);
	cm_make_qp(id);
	ece.vendor_id = 5;
	ck_assert_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ck_assert_fails(rdma_get_remote_ece(id, &got), EINVAL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_queue_pair_brings_its_queues_and_goes_with_them,
		queues_of_the_callers_stay_the_callers,
		each_queue_has_an_entry_for_all_that_can_be_posted,
		one_queue_made_goes_without_the_other,
		a_datagram_queue_pair_is_ready_at_once,
		bad_attributes_are_refused,
		extended_attributes_take_the_ids_domain,
		whatever_fails_leaves_nothing_behind,
		attributes_for_a_queue_pair_of_the_callers_are_told,
		extensions_are_set_before_there_is_a_queue_pair,
	};

	return unit_main("cm_qp", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
