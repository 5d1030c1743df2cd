/* The fake's shared receive queues. */
#include "unit/fake_raw.h"

#include <errno.h>

enum { SRQ_DEPTH = 2 };

static struct raw_verbs v;

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { SRQ_DEPTH, 1, 0 } };

	return ibv_create_srq(v.pd, &init);
}

static struct ibv_qp *qp_on(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = v.cq,
		.recv_cq = v.cq,
		.srq = srq,
		.cap = { RAW_DEPTH, 0, 1, 0, 0 },
		.qp_type = IBV_QPT_RC };

	return ibv_create_qp(v.pd, &init);
}

static int post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)v.buf, RAW_BUF, v.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

START_TEST(connections_share_their_receives)
{
	struct ibv_qp *a, *b, *c, *d;
	struct ibv_srq *srq;

	raw_verbs_open(&v, FAKE_ROCE);
	srq = make_srq();
	a = raw_qp(&v, IBV_QPT_RC);
	b = qp_on(srq);
	c = raw_qp(&v, IBV_QPT_RC);
	d = qp_on(srq);
	raw_join(a, b, 7);
	raw_join(c, d, 7);
	ck_assert_int_eq(raw_post_recv(&v, b, 1, 0, 0), EINVAL);
	ck_assert_int_eq(post(srq, 1), 0);
	ck_assert_int_eq(post(srq, 2), 0);
	ck_assert_int_eq(post(srq, 3), ENOMEM);
	ck_assert_int_eq(raw_post_send(&v, a, 10, 0, 1), 0);
	ck_assert_uint_eq(raw_wc(&v).qp_num, b->qp_num);
	raw_wc(&v);
	ck_assert_int_eq(raw_post_send(&v, c, 10, 0, 1), 0);
	ck_assert_uint_eq(raw_wc(&v).qp_num, d->qp_num);
	raw_wc(&v);
	ck_assert_int_eq(ibv_destroy_srq(srq), EBUSY);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_qp(c);
	ibv_destroy_qp(d);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	raw_verbs_close(&v);
}
END_TEST

START_TEST(the_limit_is_reported_once)
{
	struct ibv_srq_attr limit = { .srq_limit = SRQ_DEPTH };
	struct ibv_async_event event;
	struct ibv_qp *a, *b;
	struct ibv_srq *srq;

	raw_verbs_open(&v, FAKE_ROCE);
	srq = make_srq();
	a = raw_qp(&v, IBV_QPT_RC);
	b = qp_on(srq);
	raw_join(a, b, 7);
	ck_assert_int_eq(post(srq, 1), 0);
	ck_assert_int_eq(post(srq, 2), 0);
	ck_assert_int_eq(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	ck_assert_int_eq(raw_post_send(&v, a, 10, 0, 1), 0);
	ck_assert_int_eq(ibv_get_async_event(v.context, &event), 0);
	ck_assert_int_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_ptr_eq(event.element.srq, srq);
	ibv_ack_async_event(&event);
	ck_assert_int_eq(raw_post_send(&v, a, 11, 0, 1), 0);
	ck_assert_int_eq(ibv_get_async_event(v.context, &event), -1);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	raw_verbs_close(&v);
}
END_TEST

/* --- XRC --- */

static struct ibv_xrcd *open_domain(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1
	};

	return ibv_open_xrcd(v.context, &init);
}

static struct ibv_srq *make_xrc_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { SRQ_DEPTH, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = v.pd,
		.xrcd = xrcd,
		.cq = v.cq,
	};

	return ibv_create_srq_ex(v.context, &init);
}

START_TEST(only_infiniband_has_xrc)
{
	struct ibv_qp_init_attr init = { .send_cq = NULL, .qp_type = IBV_QPT_XRC_SEND };

	raw_verbs_open(&v, FAKE_ROCE);
	init.send_cq = v.cq;
	ck_assert(!open_domain() && errno == EOPNOTSUPP);
	ck_assert(!make_xrc_srq(NULL) && errno == EOPNOTSUPP);
	ck_assert(!ibv_create_qp(v.pd, &init) && errno == EOPNOTSUPP);
	raw_verbs_close(&v);
}
END_TEST

START_TEST(a_domain_goes_after_what_is_in_it)
{
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;

	fake_device_add(FAKE_IB);
	raw_verbs_open(&v, FAKE_IB);
	xrcd = open_domain();
	srq = make_xrc_srq(xrcd);
	ck_assert_ptr_nonnull(srq);
	ck_assert_int_eq(ibv_close_xrcd(xrcd), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(v.cq), EBUSY);
	ck_assert(!qp_on(srq) && errno == EINVAL);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
	raw_verbs_close(&v);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		connections_share_their_receives,
		the_limit_is_reported_once,
		only_infiniband_has_xrc,
		a_domain_goes_after_what_is_in_it,
	};

	return fake_main("fake_srq", tests, sizeof(tests) / sizeof(tests[0]));
}
