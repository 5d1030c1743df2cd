/* Shared receive queues on ids. Those of XRC are in cm_xrc.c. */
#include "unit/ep_unit.h"

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
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
	cm_tear_down();
}

START_TEST(a_queue_pair_receives_from_the_ids_srq)
{
	struct ibv_srq_init_attr attr = ep_srq_attr();
	char buf[8];
	struct ibv_mr *mr;

	attr.srq_context = &attr;
	ck_assert_ok(rdma_create_srq(id, NULL, &attr));
	ck_assert(id->srq && id->srq->pd == id->pd && id->srq->srq_context == &attr);
	ck_assert_uint_ge(attr.attr.max_wr, EP_SRQ_DEPTH);
	ck_assert_ptr_null(id->recv_cq);
	cm_make_qp(id);
	ck_assert_ptr_eq(id->qp->srq, id->srq);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	ck_assert_ok(rdma_post_recv(id, NULL, buf, sizeof(buf), mr));
	ck_assert_uint_eq(fake_calls("ibv_post_srq_recv"), 1);
	ck_assert_ok(rdma_dereg_mr(mr));
}
END_TEST

START_TEST(an_srq_of_the_attributes_comes_first)
{
	struct ibv_srq_init_attr init = ep_srq_attr();
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);
	struct ibv_srq *own = ibv_create_srq(id->pd, &init);

	ep_make_srq(id);
	attr.srq = own;
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert_ptr_eq(id->qp->srq, own);
	rdma_destroy_qp(id);
	ck_assert_int_eq(ibv_destroy_srq(own), 0);
}
END_TEST

/* A queue pair on an SRQ need not say how much it receives: the queue is as deep as the SRQ. */
START_TEST(completions_of_a_whole_srq_fit)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	ep_make_srq(id);
	attr.cap.max_recv_wr = 0;
	ck_assert_ok(rdma_create_qp(id, NULL, &attr));
	ck_assert_int_ge(id->recv_cq->cqe, EP_SRQ_DEPTH);
	rdma_destroy_qp(id);
	attr = cm_qp_attr(IBV_QPT_RC);
	attr.cap.max_recv_wr = 0;
	fake_fail_next("ibv_query_srq", EOVERFLOW);
	ck_assert_fails(rdma_create_qp(id, NULL, &attr), EOVERFLOW);
	ck_assert(!id->qp && !id->send_cq && !id->recv_cq);
}
END_TEST

START_TEST(bad_attributes_are_refused)
{
	struct ibv_srq_init_attr attr = ep_srq_attr();
	struct ibv_srq_init_attr_ex ex = { .attr = attr.attr, .srq_type = IBV_SRQT_BASIC };
	struct rdma_cm_id *unbound = cm_id(channel, RDMA_PS_TCP);
	struct ibv_context foreign_context = { 0 };
	struct ibv_pd foreign = { .context = &foreign_context };

	ck_assert_fails(rdma_create_srq(NULL, NULL, &attr), EINVAL);
	ck_assert_fails(rdma_create_srq(id, NULL, NULL), EINVAL);
	ck_assert_fails(rdma_create_srq_ex(NULL, &ex), EINVAL);
	ck_assert_fails(rdma_create_srq_ex(id, NULL), EINVAL);
	ck_assert_fails(rdma_create_srq_ex(id, &ex), EINVAL);
	ck_assert_fails(rdma_create_srq(unbound, NULL, &attr), EINVAL);
	ck_assert_fails(rdma_create_srq(id, &foreign, &attr), EINVAL);
	attr.attr.max_wr = 1 << 30;
	ck_assert_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	ck_assert_uint_eq(attr.attr.max_wr, 1 << 30);
	ep_make_srq(id);
	attr = ep_srq_attr();
	ck_assert_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	cm_destroy(unbound);
	rdma_destroy_srq(NULL);
}
END_TEST

START_TEST(extended_attributes_take_the_ids_domain)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = EP_SRQ_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_pd *pd;

	ck_assert_ok(rdma_create_srq_ex(id, &attr));
	ck_assert_ptr_eq(attr.pd, id->pd);
	rdma_destroy_srq(id);
	ck_assert_ptr_null(id->srq);
	pd = ibv_alloc_pd(id->verbs);
	attr.pd = pd;
	ck_assert_ok(rdma_create_srq_ex(id, &attr));
	ck_assert_ptr_eq(id->srq->pd, pd);
	rdma_destroy_srq(id);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(an_srq_in_use_stays)
{
	ep_make_srq(id);
	cm_make_qp(id);
	rdma_destroy_srq(id);
	ck_assert_ptr_nonnull(id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	ck_assert_ptr_null(id->srq);
	rdma_destroy_srq(id);
	ck_assert_uint_eq(fake_live(FAKE_SRQ), 0);
}
END_TEST

START_TEST(one_that_fails_leaves_nothing_behind)
{
	struct ibv_srq_init_attr attr = ep_srq_attr();

	fake_fail_next("ibv_create_srq", EOVERFLOW);
	ck_assert_fails(rdma_create_srq(id, NULL, &attr), EOVERFLOW);
	ck_assert(!id->srq && !id->recv_cq);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_queue_pair_receives_from_the_ids_srq,
		an_srq_of_the_attributes_comes_first,
		completions_of_a_whole_srq_fit,
		bad_attributes_are_refused,
		extended_attributes_take_the_ids_domain,
		an_srq_in_use_stays,
		one_that_fails_leaves_nothing_behind,
	};

	return unit_main("cm_srq", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
