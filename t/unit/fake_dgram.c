/* The fake's datagrams, to one queue pair and to groups. */
#include "unit/fake_raw.h"

#include <errno.h>
#include <string.h>

enum { QKEY = 0x01234567, GRH = 40, AT = 100, GROUP_QPN = 0xffffff };

static struct raw_verbs v;
static struct ibv_qp *from;
static struct ibv_qp *to;

static void ud_open(void)
{
	raw_verbs_open(&v, FAKE_ROCE);
	from = raw_qp(&v, IBV_QPT_UD);
	to = raw_qp(&v, IBV_QPT_UD);
	raw_ud_ready(from, QKEY);
	raw_ud_ready(to, QKEY);
	memcpy(v.buf, "hello", 5);
}

static void ud_close(void)
{
	ck_assert_int_eq(ibv_destroy_qp(to), 0);
	ck_assert_int_eq(ibv_destroy_qp(from), 0);
	raw_verbs_close(&v);
}

static struct ibv_ah *ah_to(const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 };

	attr.grh.dgid = *gid;
	return ibv_create_ah(v.pd, &attr);
}

static union ibv_gid group_gid(void)
{
	union ibv_gid gid = { .raw = { 0 } };

	memcpy(gid.raw + 10, (uint8_t[]){ 0xff, 0xff, 239, 1, 2, 3 }, 6);
	return gid;
}

static void send_to(
	struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qp_num, uint32_t qkey, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = raw_send_wr(&v, &sge, 1, 0, len);

	wr.send_flags = len > 64 ? IBV_SEND_SIGNALED : IBV_SEND_INLINE;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp_num;
	wr.wr.ud.remote_qkey = qkey;
	ck_assert_int_eq(raw_post(qp, &wr), 0);
}

START_TEST(a_group_gets_every_datagram_behind_its_header)
{
	union ibv_gid gid = group_gid();
	struct ibv_ah *ah;
	struct ibv_wc wc;

	ud_open();
	ah = ah_to(&gid);
	ck_assert_int_eq(ibv_attach_mcast(to, &gid, 0), 0);
	ck_assert_int_eq(raw_post_recv(&v, to, 2, AT, 50), 0);
	send_to(from, ah, GROUP_QPN, QKEY, 5);
	wc = raw_wc(&v);
	ck_assert_uint_eq(wc.byte_len, GRH + 5);
	ck_assert_uint_eq(wc.src_qp, from->qp_num);
	ck_assert(wc.wc_flags & IBV_WC_GRH);
	ck_assert_mem_eq(v.buf + AT + GRH, "hello", 5);
	ck_assert_int_eq(v.buf[AT + 20], 0x45);
	ck_assert_int_eq(ibv_destroy_qp(to), EBUSY);
	ck_assert_int_eq(ibv_detach_mcast(to, &gid, 0), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ud_close();
}
END_TEST

START_TEST(a_datagram_nobody_waits_for_is_dropped)
{
	union ibv_gid gid = group_gid();
	struct ibv_ah *ah;

	ud_open();
	ah = ah_to(&gid);
	ck_assert_int_eq(ibv_attach_mcast(to, &gid, 0), 0);
	send_to(from, ah, GROUP_QPN, QKEY, 5);
	ck_assert_int_eq(raw_post_recv(&v, to, 2, AT, 50), 0);
	send_to(from, ah, GROUP_QPN, QKEY + 1, 5);
	ck_assert(raw_no_wc(&v));
	ck_assert_int_eq(ibv_detach_mcast(to, &gid, 0), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ud_close();
}
END_TEST

START_TEST(the_sender_of_a_datagram_can_be_answered)
{
	struct ibv_ah *ah, *back;
	union ibv_gid gid;
	struct ibv_wc wc;

	ud_open();
	ck_assert_int_eq(ibv_query_gid(v.context, 1, 1, &gid), 0);
	ah = ah_to(&gid);
	ck_assert_int_eq(raw_post_recv(&v, to, 2, AT, 50), 0);
	ck_assert_int_eq(raw_post_recv(&v, from, 3, 2 * AT, 50), 0);
	send_to(from, ah, to->qp_num, QKEY, 5);
	wc = raw_wc(&v);
	back = ibv_create_ah_from_wc(v.pd, &wc, (struct ibv_grh *)(v.buf + AT), 1);
	ck_assert_ptr_nonnull(back);
	send_to(to, back, wc.src_qp, QKEY, 5);
	ck_assert_uint_eq(raw_wc(&v).wr_id, 3);
	ck_assert_int_eq(ibv_destroy_ah(back), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ud_close();
}
END_TEST

START_TEST(a_datagram_beyond_the_mtu_fails)
{
	union ibv_gid gid = group_gid();
	struct ibv_ah *ah;

	ud_open();
	ah = ah_to(&gid);
	send_to(from, ah, GROUP_QPN, QKEY, 1024);
	ck_assert_int_eq(raw_wc(&v).status, IBV_WC_SUCCESS);
	send_to(from, ah, GROUP_QPN, QKEY, 1025);
	ck_assert_int_eq(raw_wc(&v).status, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ud_close();
}
END_TEST

/* A queue pair of an InfiniBand device that is a member of the group it sends to. */
static bool hears_itself(uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = v.cq,
		.recv_cq = v.cq,
		.cap = { 1, 1, 1, 1, 64 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = v.pd,
		.create_flags = create_flags,
	};
	union ibv_gid gid = { .raw = { 0xff, 0x12, 0xa0, 0x1b, [15] = 1 } };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.dgid = gid };
	struct ibv_ah *ah = ibv_create_ah(v.pd, &attr);
	struct ibv_qp *qp = ibv_create_qp_ex(v.context, &init);
	struct ibv_wc wc;
	int n;

	raw_ud_ready(qp, QKEY);
	ck_assert_int_eq(ibv_attach_mcast(qp, &gid, 0xc001), 0);
	ck_assert_int_eq(raw_post_recv(&v, qp, 2, AT, 50), 0);
	send_to(qp, ah, GROUP_QPN, QKEY, 5);
	n = ibv_poll_cq(v.cq, 1, &wc);
	ck_assert_int_eq(ibv_detach_mcast(qp, &gid, 0xc001), 0);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	return n == 1;
}

START_TEST(a_member_hears_itself_unless_it_blocks_that)
{
	fake_device_add(FAKE_IB);
	raw_verbs_open(&v, FAKE_IB);
	ck_assert(hears_itself(0));
	ck_assert(!hears_itself(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB));
	raw_verbs_close(&v);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_group_gets_every_datagram_behind_its_header,
		a_datagram_nobody_waits_for_is_dropped,
		the_sender_of_a_datagram_can_be_answered,
		a_datagram_beyond_the_mtu_fails,
		a_member_hears_itself_unless_it_blocks_that,
	};

	return fake_main("fake_dgram", tests, sizeof(tests) / sizeof(tests[0]));
}
