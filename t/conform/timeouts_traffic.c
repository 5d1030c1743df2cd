/* A connection whose wire is cut, whose peer posts no buffer, or on which nothing is heard. */
#include <errno.h>
#include <event2/event.h>

#include "conform/timeouts.h"

enum {
	SENDS = 8,
	/*
	 * 4.096 us * 2^19: the CM's ack timeout of a path whose packets live for 2^18
	 * (CMA_IBOE_PACKET_LIFETIME of the kernel's cma.c), twice that.
	 */
	ACK_MS = 2147,
	ACK_16_MS = ACK_MS / 8,
	RETRIES_S = 20, /* longer than these last */
	RETRIES = 6, /* one more is for ever: rxe_comp.c of the kernel counts none of 7 */
	/*
	 * The kernel asks three times, a second each, for the address of a neighbour, then tells
	 * the connecting side that it is unreachable: cma_netevent_callback() of its cma.c.
	 */
	NEIGHBOUR_MS = 3000,
	/* The kernel's tcp_retries2, 15, from 200 ms to two minutes each: its ip-sysctl.rst. */
	TCP_MS = 924600,
	RNR_MS = 245, /* a min_rnr_timer_us that is there */
	RNR_US = 245760,
	CM_RNR_MS = 655, /* min_rnr_timer 0: librdmacm leaves it so */
	RNR_RETRIES = 2,
	MESSAGES = 20000,
	SHARED = 16,
	ANSWERS = 300,
	IDLE_MS = 5000,
	KEEPALIVE_MS = 1000,
	FOR_EVER_S = 600,
	A_MINUTE_S = 60,
};

/* --- the wire is cut ------------------------------------------------------------------------- */

static void cut_while_both_send(struct fixture *f, const struct weather *weather)
{
	fixture_connect_pair(f);
	wire_set(weather);
	begin();
	endpoint_send(f->client, SENDS, 64);
	endpoint_send(f->server, SENDS, 64);
}

static void assert_both_told(int error)
{
	assert_told(&client_end, error);
	assert_told(&server_end, error);
}

static struct fixture *end_by_cut(const struct weather *weather, int ack_timeout, uint8_t retries)
{
	struct fixture *f = noting_fixture();

	f->options.ack_timeout = ack_timeout;
	f->options.retry_count = retries;
	cut_while_both_send(f, weather);
	run_until(f, both_are_told);
	assert_both_told(ETIMEDOUT);
	return f;
}

START_TEST(the_retries_end_what_no_frame_passes_of)
{
	struct fixture *f = end_by_cut(&no_frame, -1, RETRIES);

	assert_kernel_took(client_end.ms, (RETRIES + 1) * ACK_MS);
	assert_kernel_took(server_end.ms, (RETRIES + 1) * ACK_MS);
	finish(f);
}
END_TEST

START_TEST(retries_are_not_for_ever_where_nothing_is_said)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, &no_frame);
	run_for(f, RETRIES_S);
	assert_both_told(ETIMEDOUT);
	assert_kernel_took(client_end.ms, (RETRIES + 1) * ACK_MS);
	assert_kernel_took(server_end.ms, (RETRIES + 1) * ACK_MS);
	finish(f);
}
END_TEST

START_TEST(without_retries_one_ack_timeout_ends_both)
{
	struct fixture *f = end_by_cut(&no_frame, -1, 0);

	assert_kernel_took(client_end.ms, ACK_MS);
	assert_kernel_took(server_end.ms, ACK_MS);
	finish(f);
}
END_TEST

START_TEST(a_small_ack_timeout_ends_both_sooner)
{
	struct fixture *f = end_by_cut(&no_frame, 16, RETRIES);

	assert_kernel_took(client_end.ms, (RETRIES + 1) * ACK_16_MS);
	assert_kernel_took(server_end.ms, (RETRIES + 1) * ACK_16_MS);
	finish(f);
}
END_TEST

static void accept_with_seven_retries(struct fixture *f, struct evrdma_request *request)
{
	f->options.retry_count = 7;
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

/* The CM has no room for the server's. */
START_TEST(retry_count_is_the_connecting_sides)
{
	struct fixture *f = noting_fixture();

	f->options.retry_count = 0;
	f->on_request = accept_with_seven_retries;
	cut_while_both_send(f, &no_frame);
	run_until(f, both_are_told);
	assert_both_told(ETIMEDOUT);
	assert_kernel_took(client_end.ms, ACK_MS);
	assert_kernel_took(server_end.ms, ACK_MS);
	finish(f);
}
END_TEST

START_TEST(without_a_carrier_the_connecting_side_is_told_first)
{
	struct fixture *f = end_by_cut(&no_carrier, -1, RETRIES);

	assert_kernel_took(client_end.ms, NEIGHBOUR_MS);
	assert_kernel_took(server_end.ms, (RETRIES + 1) * ACK_MS);
	finish(f);
}
END_TEST

/* What was sent is still on its way. */
START_TEST(no_frame_passes_and_a_close_takes_no_longer)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, &no_frame);
	run_for(f, 1);
	ck_assert(nobody_is_told());
	finish(f);
}
END_TEST

START_TEST(the_carrier_is_gone_and_a_close_takes_no_longer)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, &no_carrier);
	run_for(f, 1);
	ck_assert(nobody_is_told());
	finish(f);
}
END_TEST

/* A frame that waits for a neighbour's address keeps its QP, and rxe who destroys it: the loop. */
START_TEST(without_a_carrier_rxe_keeps_a_close_until_the_neighbour_is_given_up)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, &no_carrier);
	run_for(f, 1);
	close_client(f);
	evrdma_conn_close(f->server->conn);
	run_until(f, fixture_none_live);
	assert_kernel_took(passed_ms(), NEIGHBOUR_MS);
	begin();
	finish(f);
}
END_TEST

static struct fixture *disconnect_what_is_cut(void)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, &no_frame);
	ck_assert_int_eq(evrdma_conn_disconnect(f->client->conn), 0);
	run_until(f, client_is_told);
	return f;
}

START_TEST(a_disconnect_of_what_is_cut_ends_with_the_drain_timeout)
{
	struct fixture *f = disconnect_what_is_cut();

	assert_told(&client_end, ETIMEDOUT);
	ck_assert_int_eq(f->client->step, EVRDMA_STEP_DELIVER);
	assert_library_took(client_end.ms, DRAIN_MS);
	finish(f);
}
END_TEST

/* siw says that it is closed, and leaves the rest to TCP. */
START_TEST(an_iwarp_disconnect_waits_for_no_answer)
{
	struct fixture *f = disconnect_what_is_cut();

	assert_told(&client_end, 0);
	assert_library_took(client_end.ms, 0);
	finish(f);
}
END_TEST

static bool all_has_arrived(struct fixture *f)
{
	return f->client->received == SENDS && f->server->received == SENDS;
}

START_TEST(seven_retries_are_for_ever)
{
	struct fixture *f = noting_fixture();

	f->options.retry_count = 7;
	cut_while_both_send(f, &no_frame);
	run_for(f, FOR_EVER_S);
	ck_assert_msg(nobody_is_told(), "%s", f->last_error);
	calm();
	run_until(f, all_has_arrived);
	finish(f);
}
END_TEST

/* The kernel says no more of it than that the connection is closed. */
static struct fixture *end_by_tcp(const struct weather *weather)
{
	struct fixture *f = noting_fixture();

	cut_while_both_send(f, weather);
	run_until(f, both_are_told);
	assert_both_told(0);
	assert_kernel_took(client_end.ms, TCP_MS);
	assert_kernel_took(server_end.ms, TCP_MS);
	return f;
}

START_TEST(tcp_gives_up_what_no_frame_passes_of)
{
	finish(end_by_tcp(&no_frame));
}
END_TEST

START_TEST(tcp_gives_up_without_a_carrier)
{
	finish(end_by_tcp(&no_carrier));
}
END_TEST

/* --- no buffer is posted --------------------------------------------------------------------- */

/* What an endpoint counts of those who send to it. */
struct rnr {
	uint8_t retry_count;
	int min_timer_us;
};

static const struct rnr server_rnr_default = { 7, 640 };
static struct rnr server_rnr;

static void set_rnr(struct fixture *f, struct rnr rnr)
{
	f->options.rnr_retry_count = rnr.retry_count;
	f->options.min_rnr_timer_us = rnr.min_timer_us;
}

static void accept_without_buffers(struct fixture *f, struct evrdma_request *request)
{
	f->options.recv_pool = NULL;
	set_rnr(f, server_rnr);
	endpoint_accept(fixture_endpoint_new(f, false), request);
}

static struct fixture *send_to_no_buffer(struct rnr client, struct rnr server)
{
	struct fixture *f = noting_fixture();

	set_rnr(f, client);
	server_rnr = server;
	f->on_request = accept_without_buffers;
	fixture_connect_pair(f);
	begin();
	endpoint_send(f->client, 1, 64);
	return f;
}

static void post_a_buffer(struct endpoint *endpoint)
{
	struct evrdma_buf *buf = evrdma_pool_get(endpoint->fixture->pool);

	ck_assert_ptr_nonnull(buf);
	ck_assert_int_eq(evrdma_conn_recv(endpoint->conn, buf), 0);
	evrdma_buf_unref(buf);
}

static bool server_has_received(struct fixture *f)
{
	return f->server->received;
}

static void end_by_no_buffer(struct rnr client, struct rnr server, uint64_t ms)
{
	struct fixture *f = send_to_no_buffer(client, server);

	run_until(f, client_is_told);
	assert_told(&client_end, ENOBUFS);
	assert_kernel_took(client_end.ms, ms);
	finish(f);
}

START_TEST(a_message_that_finds_no_buffer_is_sent_again_so_often)
{
	const struct rnr both = { RNR_RETRIES, RNR_US };

	end_by_no_buffer(both, both, RNR_RETRIES * RNR_MS);
}
END_TEST

/* rdma_connect(3): it is about what the remote peer sends. */
START_TEST(rnr_retry_count_and_its_timer_are_for_what_the_peer_sends)
{
	const struct rnr client = { 7, 10 }, server = { RNR_RETRIES, RNR_US };

	end_by_no_buffer(client, server, RNR_RETRIES * RNR_MS);
}
END_TEST

START_TEST(the_cm_leaves_the_longest_rnr_timer)
{
	const struct rnr client = { 7, 640 }, server = { RNR_RETRIES, -1 };

	end_by_no_buffer(client, server, RNR_RETRIES * CM_RNR_MS);
}
END_TEST

START_TEST(a_message_waits_for_a_buffer_for_ever)
{
	const struct rnr client = { RNR_RETRIES, RNR_US };
	struct fixture *f = send_to_no_buffer(client, server_rnr_default);

	run_for(f, A_MINUTE_S);
	ck_assert_msg(nobody_is_told(), "%s", f->last_error);
	begin();
	post_a_buffer(f->server);
	run_until(f, server_has_received);
	ck_assert_uint_le(passed_ms(), SLACK_MS);
	finish(f);
}
END_TEST

START_TEST(iwarp_ends_with_a_message_that_finds_no_buffer)
{
	struct fixture *f = send_to_no_buffer(server_rnr_default, server_rnr_default);

	run_until(f, both_are_told);
	assert_both_told(0);
	assert_library_took(client_end.ms, 0);
	assert_library_took(server_end.ms, 0);
	finish(f);
}
END_TEST

static void send_more(struct endpoint *endpoint, const struct evrdma_error *error)
{
	if (!error && endpoint->sends_taken < MESSAGES)
		endpoint_send(endpoint, 1, 64);
}

static bool all_messages_came(struct fixture *f)
{
	return f->server->received == MESSAGES;
}

/* The peer keeps as many on their way as there are buffers: whenever the loop is late, none is. */
START_TEST(a_stream_as_deep_as_the_receive_queue_is_not_held_up)
{
	struct fixture *f = noting_fixture();
	struct evrdma_traffic_stats stats;

	f->on_sent = send_more;
	fixture_connect_pair(f);
	begin();
	endpoint_send(f->client, f->options.recv_depth, 64);
	run_until(f, all_messages_came);
	evrdma_conn_get_stats(f->server->conn, &stats);
	ck_assert_uint_gt(stats.receive_queue_empty, 0);
	ck_assert_uint_lt(passed_ms(), CM_RNR_MS / 4);
	finish(f);
}
END_TEST

static struct endpoint *asking, *answering;
static unsigned answers;
static uint64_t asked_ms, longest_ms;

static void ask(void)
{
	asked_ms = passed_ms();
	endpoint_send(asking, 1, 64);
}

static void ask_or_answer(struct endpoint *endpoint, const struct evrdma_recv *recv)
{
	if (endpoint == answering)
		endpoint_send(endpoint, 1, 64);
	if (endpoint != asking)
		return;
	if (passed_ms() - asked_ms > longest_ms)
		longest_ms = passed_ms() - asked_ms;
	if (++answers < ANSWERS)
		ask();
}

static void send_without_end(struct endpoint *endpoint, const struct evrdma_error *error)
{
	if (!error && endpoint->is_client && endpoint != asking && answers < ANSWERS)
		endpoint_send(endpoint, 1, 64);
}

static bool all_is_answered(struct fixture *f)
{
	return answers == ANSWERS;
}

static void accept_on_a_shared_queue(struct fixture *f, struct evrdma_request *request)
{
	f->options.recv_pool = NULL;
	f->options.srq = f->tag;
	endpoint_accept(fixture_endpoint_new(f, false), request);
	f->options.recv_pool = f->pool;
	f->options.srq = NULL;
}

START_TEST(who_takes_all_of_a_shared_queue_holds_up_nobody_for_long)
{
	struct fixture *f = closing_fixture();
	struct endpoint *greedy;

	f->tag = evrdma_srq_new(f->base, f->pool, SHARED);
	f->on_request = accept_on_a_shared_queue;
	f->on_recv = ask_or_answer;
	f->on_sent = send_without_end;
	fixture_connect_pair(f);
	greedy = f->client;
	fixture_connect_pair(f);
	asking = f->client;
	answering = f->server;
	begin();
	endpoint_send(greedy, f->options.send_depth, 64);
	ask();
	run_until(f, all_is_answered);
	ck_assert_uint_lt(longest_ms, CM_RNR_MS / 4);
	evrdma_conn_close(greedy->conn);
	evrdma_srq_free(f->tag);
	finish(f);
}
END_TEST

/* --- nothing is heard ------------------------------------------------------------------------ */

START_TEST(a_keepalive_that_is_not_answered_ends_both)
{
	struct fixture *f = noting_fixture();

	f->options.keepalive_ms = KEEPALIVE_MS;
	fixture_connect_pair(f);
	begin();
	wire_set(&no_frame);
	run_until(f, both_are_told);
	assert_both_told(ETIMEDOUT);
	assert_library_took(client_end.ms, 2 * KEEPALIVE_MS);
	assert_library_took(server_end.ms, 2 * KEEPALIVE_MS);
	finish(f);
}
END_TEST

static void on_turn_to_send(evutil_socket_t fd, short what, void *arg)
{
	struct fixture *f = arg;

	if (!f->client->down)
		endpoint_send(f->client, 1, 64);
}

/* What is sent meanwhile is no sign of the peer. */
START_TEST(a_keepalive_ends_who_goes_on_sending)
{
	static const struct timeval now_and_then = { .tv_usec = KEEPALIVE_MS / 4 * 1000 };
	struct fixture *f = noting_fixture();
	struct event *timer = event_new(f->loop, -1, EV_PERSIST, on_turn_to_send, f);

	f->options.keepalive_ms = KEEPALIVE_MS;
	fixture_connect_pair(f);
	begin();
	wire_set(&no_frame);
	event_add(timer, &now_and_then);
	run_until(f, client_is_told);
	event_free(timer);
	assert_told(&client_end, ETIMEDOUT);
	assert_library_took(client_end.ms, 2 * KEEPALIVE_MS);
	finish(f);
}
END_TEST

START_TEST(a_keepalive_that_is_answered_ends_nothing)
{
	struct fixture *f = noting_fixture();

	f->options.keepalive_ms = KEEPALIVE_MS;
	fixture_connect_pair(f);
	begin();
	run_for(f, FOR_EVER_S);
	ck_assert_msg(nobody_is_told(), "%s", f->last_error);
	finish(f);
}
END_TEST

START_TEST(a_connection_nobody_uses_ends_with_its_idle_timeout)
{
	struct fixture *f = noting_fixture();

	f->options.idle_timeout_ms = IDLE_MS;
	begin();
	fixture_connect_pair(f);
	run_until(f, both_are_told);
	assert_both_told(ETIMEDOUT);
	assert_library_took(client_end.ms, IDLE_MS);
	assert_library_took(server_end.ms, IDLE_MS);
	finish(f);
}
END_TEST

/* --- cases ----------------------------------------------------------------------------------- */

TCase *timeouts_cut_case(void)
{
	TCase *tc = new_case("cut");

	tcase_add_test(tc, the_retries_end_what_no_frame_passes_of);
	tcase_add_test(tc, retries_are_not_for_ever_where_nothing_is_said);
	tcase_add_test(tc, without_retries_one_ack_timeout_ends_both);
	tcase_add_test(tc, a_small_ack_timeout_ends_both_sooner);
	tcase_add_test(tc, retry_count_is_the_connecting_sides);
	tcase_add_test(tc, without_a_carrier_the_connecting_side_is_told_first);
	tcase_add_test(tc, seven_retries_are_for_ever);
	tcase_add_test(tc, a_disconnect_of_what_is_cut_ends_with_the_drain_timeout);
	tcase_add_test(tc, no_frame_passes_and_a_close_takes_no_longer);
	tcase_add_test(tc, without_a_carrier_rxe_keeps_a_close_until_the_neighbour_is_given_up);
	return tc;
}

TCase *timeouts_iwarp_cut_case(void)
{
	TCase *tc = new_case("cut");

	tcase_add_test(tc, tcp_gives_up_what_no_frame_passes_of);
	tcase_add_test(tc, tcp_gives_up_without_a_carrier);
	tcase_add_test(tc, an_iwarp_disconnect_waits_for_no_answer);
	tcase_add_test(tc, no_frame_passes_and_a_close_takes_no_longer);
	tcase_add_test(tc, the_carrier_is_gone_and_a_close_takes_no_longer);
	return tc;
}

TCase *timeouts_buffer_case(void)
{
	TCase *tc = new_case("buffer");

	tcase_add_test(tc, a_message_that_finds_no_buffer_is_sent_again_so_often);
	tcase_add_test(tc, rnr_retry_count_and_its_timer_are_for_what_the_peer_sends);
	tcase_add_test(tc, the_cm_leaves_the_longest_rnr_timer);
	tcase_add_test(tc, a_message_waits_for_a_buffer_for_ever);
	tcase_add_test(tc, a_stream_as_deep_as_the_receive_queue_is_not_held_up);
	tcase_add_test(tc, who_takes_all_of_a_shared_queue_holds_up_nobody_for_long);
	return tc;
}

TCase *timeouts_iwarp_buffer_case(void)
{
	TCase *tc = new_case("buffer");

	tcase_add_test(tc, iwarp_ends_with_a_message_that_finds_no_buffer);
	return tc;
}

TCase *timeouts_silence_case(void)
{
	TCase *tc = new_case("silence");

	tcase_add_test(tc, a_keepalive_that_is_not_answered_ends_both);
	tcase_add_test(tc, a_keepalive_ends_who_goes_on_sending);
	tcase_add_test(tc, a_keepalive_that_is_answered_ends_nothing);
	tcase_add_test(tc, a_connection_nobody_uses_ends_with_its_idle_timeout);
	return tc;
}
