/* Two synchronous ids that talk to each other: the passive one is on a thread. */
#include "unit/ep_unit.h"

#include <string.h>

enum { SIZE = 16 };

/* What the passive side does with its request. */
struct passive {
	struct rdma_cm_id *listener;
	void (*act)(struct rdma_cm_id *server);
};

static struct passive passive;
static struct rdma_cm_id *client;

static void tear_down(void)
{
	rdma_destroy_ep(client);
	rdma_destroy_ep(passive.listener);
	cm_tear_down();
}

static void *serve(void *arg)
{
	struct rdma_cm_id *server;

	ck_assert_ok(rdma_get_request(passive.listener, &server));
	passive.act(server);
	rdma_destroy_ep(server);
	return NULL;
}

static pthread_t start(const char *ip, enum ibv_qp_type type, void (*act)(struct rdma_cm_id *))
{
	passive.listener = ep_make(ip, RAI_PASSIVE, type);
	passive.act = act;
	client = ep_make(ip, 0, type);
	return ep_start(serve, NULL);
}

static void accept_and_disconnect(struct rdma_cm_id *server)
{
	struct rdma_conn_param param = { .private_data = "hi", .private_data_len = 3 };

	ck_assert_ok(rdma_accept(server, &param));
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_ok(rdma_disconnect(server));
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_DISCONNECTED);
}

static void connect_and_disconnect(const char *ip)
{
	pthread_t thread = start(ip, IBV_QPT_RC, accept_and_disconnect);

	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_str_eq(client->event->param.conn.private_data, "hi");
	ck_assert_ok(rdma_disconnect(client));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_DISCONNECTED);
	ep_finish(thread);
}

START_TEST(both_sides_connect_and_disconnect)
{
	connect_and_disconnect(FAKE_ROCE_IP);
}
END_TEST

START_TEST(both_sides_connect_and_disconnect_on_ipv6)
{
	connect_and_disconnect(FAKE_ROCE_IP6);
}
END_TEST

/* On the second time nobody has anything more to say. */
static void disconnect_twice(struct rdma_cm_id *server)
{
	accept_and_disconnect(server);
	ck_assert_ok(rdma_disconnect(server));
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_DISCONNECTED);
}

START_TEST(a_second_disconnect_waits_for_nothing)
{
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_RC, disconnect_twice);

	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_ok(rdma_disconnect(client));
	ck_assert_ok(rdma_disconnect(client));
	ep_finish(thread);
}
END_TEST

static void move_data(struct rdma_cm_id *id, bool first)
{
	char out[SIZE] = "data", in[SIZE] = "";
	struct ibv_mr *out_mr = rdma_reg_msgs(id, out, SIZE), *in_mr = rdma_reg_msgs(id, in, SIZE);
	struct ibv_wc wc;

	ck_assert_ok(rdma_post_recv(id, NULL, in, SIZE, in_mr));
	ck_assert_ok(first ? rdma_connect(id, NULL) : rdma_accept(id, NULL));
	ck_assert_ok(rdma_post_send(id, NULL, out, SIZE, out_mr, IBV_SEND_SIGNALED));
	ck_assert_int_eq(rdma_get_send_comp(id, &wc), 1);
	ck_assert_int_eq(rdma_get_recv_comp(id, &wc), 1);
	ck_assert_str_eq(in, "data");
	ck_assert_ok(rdma_disconnect(id));
	ck_assert_ok(rdma_dereg_mr(out_mr));
	ck_assert_ok(rdma_dereg_mr(in_mr));
}

static void answer_with_data(struct rdma_cm_id *server)
{
	move_data(server, false);
}

START_TEST(data_goes_both_ways)
{
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_RC, answer_with_data);

	move_data(client, true);
	ep_finish(thread);
}
END_TEST

static void refuse(struct rdma_cm_id *server)
{
	ck_assert_ok(rdma_reject(server, "no", 3));
}

START_TEST(a_rejection_is_an_errno_with_its_data)
{
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_RC, refuse);

	ck_assert_fails(rdma_connect(client, NULL), ECONNREFUSED);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_REJECTED);
	ck_assert_str_eq(client->event->param.conn.private_data, "no");
	ep_finish(thread);
}
END_TEST

static void leave(struct rdma_cm_id *server)
{
}

START_TEST(a_child_that_is_destroyed_rejects)
{
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_RC, leave);

	ck_assert_fails(rdma_connect(client, NULL), ECONNREFUSED);
	ep_finish(thread);
}
END_TEST

START_TEST(a_peer_that_ends_it_at_once_is_a_reset_connection)
{
	client = ep_make(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	fake_hold(FAKE_REQ);
	fake_inject(client, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert_fails(rdma_connect(client, NULL), ECONNRESET);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_DISCONNECTED);
}
END_TEST

START_TEST(a_peer_that_never_answers_is_a_time_out)
{
	client = ep_make(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	fake_hold(FAKE_REQ);
	fake_inject(client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	ck_assert_fails(rdma_connect(client, NULL), ETIMEDOUT);
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_UNREACHABLE);
}
END_TEST

/* The request's event goes, though no other comes in its place. */
static void accept_datagrams(struct rdma_cm_id *server)
{
	ck_assert_int_eq(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_ok(rdma_accept(server, NULL));
	ck_assert_ptr_null(server->event);
}

START_TEST(a_datagram_service_answers_without_waiting)
{
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_UD, accept_datagrams);

	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_uint_eq(client->event->param.ud.qkey, RDMA_UDP_QKEY);
	ep_finish(thread);
}
END_TEST

static void accept_plainly(struct rdma_cm_id *server)
{
	ck_assert_ok(rdma_accept(server, NULL));
	ck_assert_ok(rdma_disconnect(server));
}

/* A queue pair of the caller's own: the answer comes back before the connection is complete. */
START_TEST(a_queue_pair_of_the_callers_is_established_by_hand)
{
	struct rdma_addrinfo res = ep_answer(FAKE_ROCE_IP, 0, IBV_QPT_RC);
	struct rdma_conn_param param = { .qp_num = 77 };
	pthread_t thread;

	passive.listener = ep_make("0.0.0.0", RAI_PASSIVE, IBV_QPT_RC);
	passive.act = accept_plainly;
	ck_assert_ok(rdma_create_ep(&client, &res, NULL, NULL));
	thread = ep_start(serve, NULL);
	ck_assert_ok(rdma_connect(client, &param));
	ck_assert_int_eq(client->event->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ck_assert_ok(rdma_establish(client));
	ck_assert_ok(rdma_disconnect(client));
	ep_finish(thread);
}
END_TEST

/* What was synchronous so far goes on with events, and the other way round. */
START_TEST(an_id_changes_its_way_between_calls)
{
	struct rdma_event_channel *channel = cm_channel();
	pthread_t thread = start(FAKE_ROCE_IP, IBV_QPT_RC, accept_plainly);

	ck_assert_ok(rdma_migrate_id(client, channel));
	ck_assert_ptr_null(client->event);
	ck_assert_ok(rdma_migrate_id(client, NULL));
	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_ok(rdma_migrate_id(client, channel));
	ck_assert_ok(rdma_disconnect(client));
	ep_finish(thread);
	cm_await(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(client);
	client = NULL;
	rdma_destroy_event_channel(channel);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		both_sides_connect_and_disconnect,
		both_sides_connect_and_disconnect_on_ipv6,
		a_second_disconnect_waits_for_nothing,
		data_goes_both_ways,
		a_rejection_is_an_errno_with_its_data,
		a_child_that_is_destroyed_rejects,
		a_peer_that_ends_it_at_once_is_a_reset_connection,
		a_peer_that_never_answers_is_a_time_out,
		a_datagram_service_answers_without_waiting,
		a_queue_pair_of_the_callers_is_established_by_hand,
		an_id_changes_its_way_between_calls,
	};

	return unit_main(
		"cm_sync_pair", tests, sizeof(tests) / sizeof(tests[0]), cm_set_up, tear_down);
}
