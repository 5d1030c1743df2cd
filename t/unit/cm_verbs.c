/* Each inline of rdma_verbs.h, with data that moves. */
#include "unit/ep_unit.h"

#include <string.h>

enum { SIZE = 64, HALF = SIZE / 2, GRH = 40 };

static struct cm_pair pair;
static char from[SIZE], to[SIZE + GRH];
static struct ibv_mr *from_mr, *to_mr;

static void fill(void)
{
	int i;

	for (i = 0; i < SIZE; i++)
		from[i] = (char)(i * 7 + 1);
	memset(to, 0, sizeof(to));
}

/* The client can send inline. */
static void connect_pair(void)
{
	struct ibv_qp_init_attr attr = cm_qp_attr(IBV_QPT_RC);

	attr.cap.max_inline_data = SIZE;
	cm_pair_start(&pair, RDMA_PS_TCP);
	ck_assert_ok(rdma_create_qp(pair.client, NULL, &attr));
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_await(pair.channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void set_up(void)
{
	cm_set_up();
	connect_pair();
	fill();
	from_mr = rdma_reg_msgs(pair.client, from, sizeof(from));
	to_mr = rdma_reg_msgs(pair.server, to, sizeof(to));
	ck_assert(from_mr && to_mr);
}

static void tear_down(void)
{
	ck_assert_ok(rdma_dereg_mr(from_mr));
	ck_assert_ok(rdma_dereg_mr(to_mr));
	cm_pair_end(&pair);
	cm_tear_down();
}

static struct ibv_wc sent(struct rdma_cm_id *id)
{
	struct ibv_wc wc = { 0 };

	ck_assert_int_eq(rdma_get_send_comp(id, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static struct ibv_wc received(struct rdma_cm_id *id)
{
	struct ibv_wc wc = { 0 };

	ck_assert_int_eq(rdma_get_recv_comp(id, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

START_TEST(results_of_verbs_become_errnos)
{
	errno = EPIPE;
	ck_assert_int_eq(rdma_seterrno(0), 0);
	ck_assert_int_eq(rdma_seterrno(-1), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_fails(rdma_seterrno(EBUSY), EBUSY);
	ck_assert_fails(rdma_seterrno(-EBUSY), EBUSY);
}
END_TEST

START_TEST(a_message_is_sent_and_received)
{
	ck_assert_ok(rdma_post_recv(pair.server, to, to, SIZE, to_mr));
	ck_assert_ok(rdma_post_send(pair.client, from, from, SIZE, from_mr, IBV_SEND_SIGNALED));
	ck_assert_uint_eq(sent(pair.client).wr_id, (uintptr_t)from);
	ck_assert_uint_eq(received(pair.server).wr_id, (uintptr_t)to);
	ck_assert_mem_eq(to, from, SIZE);
}
END_TEST

START_TEST(inline_data_needs_no_region)
{
	struct ibv_mr *target = rdma_reg_write(pair.server, to, sizeof(to));
	const int flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;

	ck_assert_ok(rdma_post_recv(pair.server, NULL, to, HALF, to_mr));
	ck_assert_ok(rdma_post_send(pair.client, NULL, from, HALF, NULL, flags));
	ck_assert_ok(rdma_post_write(pair.client, NULL, from + HALF, HALF, NULL, flags,
		(uintptr_t)to + HALF, target->rkey));
	sent(pair.client);
	sent(pair.client);
	received(pair.server);
	ck_assert_mem_eq(to, from, SIZE);
	ck_assert_ok(rdma_dereg_mr(target));
}
END_TEST

START_TEST(lists_of_segments_are_gathered_and_scattered)
{
	struct ibv_sge one = { (uintptr_t)from, SIZE, from_mr->lkey };
	struct ibv_sge other = { (uintptr_t)to, SIZE, to_mr->lkey };

	ck_assert_ok(rdma_post_recvv(pair.server, NULL, &other, 1));
	ck_assert_ok(rdma_post_sendv(pair.client, NULL, &one, 1, IBV_SEND_SIGNALED));
	sent(pair.client);
	ck_assert_uint_eq(received(pair.server).byte_len, SIZE);
	ck_assert_mem_eq(to, from, SIZE);
}
END_TEST

START_TEST(memory_of_the_peer_is_written)
{
	struct ibv_mr *target = rdma_reg_write(pair.server, to, sizeof(to));
	struct ibv_sge half = { (uintptr_t)from, HALF, from_mr->lkey };

	ck_assert_ok(rdma_post_writev(
		pair.client, NULL, &half, 1, IBV_SEND_SIGNALED, (uintptr_t)to, target->rkey));
	ck_assert_int_eq(sent(pair.client).opcode, IBV_WC_RDMA_WRITE);
	ck_assert_ok(rdma_post_write(pair.client, NULL, from + HALF, HALF, from_mr,
		IBV_SEND_SIGNALED, (uintptr_t)to + HALF, target->rkey));
	sent(pair.client);
	ck_assert_mem_eq(to, from, SIZE);
	ck_assert_ok(rdma_dereg_mr(target));
}
END_TEST

START_TEST(memory_of_the_peer_is_read)
{
	struct ibv_mr *source = rdma_reg_read(pair.client, from, sizeof(from));
	struct ibv_sge half = { (uintptr_t)to, HALF, to_mr->lkey };

	ck_assert_ok(rdma_post_readv(
		pair.server, NULL, &half, 1, IBV_SEND_SIGNALED, (uintptr_t)from, source->rkey));
	ck_assert_int_eq(sent(pair.server).opcode, IBV_WC_RDMA_READ);
	ck_assert_ok(rdma_post_read(pair.server, NULL, to + HALF, HALF, to_mr, IBV_SEND_SIGNALED,
		(uintptr_t)from + HALF, source->rkey));
	sent(pair.server);
	ck_assert_mem_eq(to, from, SIZE);
	ck_assert_ok(rdma_dereg_mr(source));
}
END_TEST

START_TEST(regions_allow_what_they_are_for)
{
	struct ibv_mr *readable = rdma_reg_read(pair.server, to, sizeof(to));
	struct ibv_wc wc;

	ck_assert_ok(rdma_post_write(pair.client, NULL, from, SIZE, from_mr, IBV_SEND_SIGNALED,
		(uintptr_t)to, readable->rkey));
	ck_assert_int_eq(rdma_get_send_comp(pair.client, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
	ck_assert_ok(rdma_dereg_mr(readable));
	fake_fail_next("ibv_reg_mr", ENOMEM);
	ck_assert(!rdma_reg_msgs(pair.client, from, SIZE) && errno == ENOMEM);
	fake_fail_next("ibv_dereg_mr", EBUSY);
	ck_assert_fails(rdma_dereg_mr(from_mr), EBUSY);
}
END_TEST

static struct ibv_ah *way_to(struct rdma_cm_event *event)
{
	return ibv_create_ah(event->id->pd, &event->param.ud.ah_attr);
}

START_TEST(a_datagram_is_sent_to_whom_the_event_names)
{
	struct cm_pair ud;
	struct rdma_cm_event *event;
	struct ibv_mr *mr, *own;
	struct ibv_ah *ah;

	cm_pair_start(&ud, RDMA_PS_UDP);
	cm_pair_request(&ud, NULL);
	cm_make_qp(ud.server);
	ck_assert_ok(rdma_accept(ud.server, NULL));
	event = cm_expect(ud.channel, RDMA_CM_EVENT_ESTABLISHED);
	ah = way_to(event);
	mr = rdma_reg_msgs(ud.server, to, sizeof(to));
	own = rdma_reg_msgs(ud.client, from, sizeof(from));
	ck_assert_ok(rdma_post_recv(ud.server, NULL, to, sizeof(to), mr));
	ck_assert_ok(rdma_post_ud_send(
		ud.client, NULL, from, SIZE, own, IBV_SEND_SIGNALED, ah, event->param.ud.qp_num));
	sent(ud.client);
	ck_assert_uint_eq(received(ud.server).byte_len, SIZE + GRH);
	ck_assert_mem_eq(to + GRH, from, SIZE);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ck_assert_ok(rdma_dereg_mr(mr));
	ck_assert_ok(rdma_dereg_mr(own));
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_pair_end(&ud);
}
END_TEST

static void *send_later(void *arg)
{
	ck_assert_ok(rdma_post_send(pair.client, NULL, from, SIZE, from_mr, 0));
	return NULL;
}

START_TEST(a_completion_is_waited_for)
{
	pthread_t thread;

	ck_assert_ok(rdma_post_recv(pair.server, NULL, to, SIZE, to_mr));
	thread = ep_start(send_later, NULL);
	received(pair.server);
	ep_finish(thread);
	ck_assert_mem_eq(to, from, SIZE);
}
END_TEST

/* What came before is told first, and an old notification does not stand for a completion. */
START_TEST(a_notification_without_a_completion_is_passed_over)
{
	struct ibv_wc wc;
	pthread_t thread;

	ck_assert_int_eq(ibv_req_notify_cq(pair.server->recv_cq, 0), 0);
	ck_assert_ok(rdma_post_recv(pair.server, NULL, to, SIZE, to_mr));
	send_later(NULL);
	ck_assert_int_eq(ibv_poll_cq(pair.server->recv_cq, 1, &wc), 1);
	ck_assert_ok(rdma_post_recv(pair.server, NULL, to, SIZE, to_mr));
	thread = ep_start(send_later, NULL);
	received(pair.server);
	ep_finish(thread);
}
END_TEST

START_TEST(a_wait_that_fails_says_why)
{
	struct ibv_wc wc;

	ck_assert_fails(rdma_get_send_comp(pair.client, &wc), EDEADLK);
	ck_assert_fails(rdma_get_recv_comp(pair.client, &wc), EDEADLK);
	fake_fail_next("ibv_get_cq_event", EINTR);
	ck_assert_fails(rdma_get_recv_comp(pair.client, &wc), EINTR);
	fake_fail_next("ibv_req_notify_cq", ENOMEM);
	ck_assert_fails(rdma_get_send_comp(pair.client, &wc), ENOMEM);
	fake_fail_next("ibv_req_notify_cq", ENOMEM);
	ck_assert_fails(rdma_get_recv_comp(pair.client, &wc), ENOMEM);
}
END_TEST

START_TEST(posts_that_fail_say_why)
{
	struct ibv_ah *none = NULL;

	fake_fail_next("ibv_post_recv", ENOMEM);
	ck_assert_fails(rdma_post_recv(pair.client, NULL, from, SIZE, from_mr), ENOMEM);
	fake_fail_next("ibv_post_send", ENOMEM);
	ck_assert_fails(rdma_post_send(pair.client, NULL, from, SIZE, from_mr, 0), ENOMEM);
	fake_fail_next("ibv_post_send", ENOMEM);
	ck_assert_fails(rdma_post_read(pair.client, NULL, from, SIZE, from_mr, 0, 0, 0), ENOMEM);
	fake_fail_next("ibv_post_send", ENOMEM);
	ck_assert_fails(rdma_post_write(pair.client, NULL, from, SIZE, from_mr, 0, 0, 0), ENOMEM);
	fake_fail_next("ibv_post_send", ENOMEM);
	ck_assert_fails(
		rdma_post_ud_send(pair.client, NULL, from, SIZE, from_mr, 0, none, 0), ENOMEM);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		results_of_verbs_become_errnos,
		a_message_is_sent_and_received,
		inline_data_needs_no_region,
		lists_of_segments_are_gathered_and_scattered,
		memory_of_the_peer_is_written,
		memory_of_the_peer_is_read,
		regions_allow_what_they_are_for,
		a_datagram_is_sent_to_whom_the_event_names,
		a_completion_is_waited_for,
		a_notification_without_a_completion_is_passed_over,
		a_wait_that_fails_says_why,
		posts_that_fail_say_why,
	};

	return unit_main("cm_verbs", tests, sizeof(tests) / sizeof(tests[0]), set_up, tear_down);
}
