/* A connect that nobody answers, or whose answers are lost. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conform/timeouts.h"

enum {
	PATIENCE_MS = 300000,
	DEADLINE_MS = 2000,
	ATTEMPT_MS = 1000, /* attempt_timeout_ms */
	LOST_S = 3,
	LATE_S = 30,
	/* Of the kernel's cma.c: CMA_MAX_CM_RETRIES, and how often a message is sent with them. */
	CM_RETRIES = 15,
	CM_SENDS = CM_RETRIES + 1,
	/* CMA_CM_RESPONSE_TIMEOUT: 2^(20 - 8) ms, for the answer to a REP or a DREQ. */
	RESPONSE_MS = 4096,
	/* For a REQ the way there and back on top, 2^(18 - 8) each: CMA_IBOE_PACKET_LIFETIME. */
	REQ_MS = RESPONSE_MS + 2 * 1024,
	/* Of the kernel's siw_cm.h: MPAREQ_TIMEOUT, for the answer to a request. */
	MPA_REPLY_MS = 10000,
	/* The kernel's tcp_syn_retries, 6: after 1 s, then twice as long each. */
	TCP_SYN_MS = 127000,
};

/* --- the wire --------------------------------------------------------------------------------- */

static void on_calm(evutil_socket_t fd, short what, void *arg)
{
	calm();
}

static void lose_for(struct fixture *f, enum wire_message message, unsigned s)
{
	const struct timeval tv = { .tv_sec = (time_t)s };

	lose(message);
	event_base_once(f->loop, -1, EV_TIMEOUT, on_calm, NULL, &tv);
}

/* --- nobody answers -------------------------------------------------------------------------- */

static const char silent_ip[] = "10.77.0.9";

static struct fixture *connect_in_vain(const char *ip, uint16_t port, int timeout_ms)
{
	struct fixture *f = closing_fixture();

	f->options.connect_timeout_ms = timeout_ms;
	begin();
	fixture_connect_to(f, ip, port);
	run_until(f, fixture_none_live);
	assert_told(&client_end, ETIMEDOUT);
	return f;
}

START_TEST(the_kernel_gives_up_a_host_that_never_answers)
{
	struct fixture *f = connect_in_vain(silent_ip, 7471, PATIENCE_MS);

	assert_kernel_took(client_end.ms, CM_SENDS * REQ_MS);
	assert_library_took(client_end.closed_ms, client_end.ms);
	finish(f);
}
END_TEST

START_TEST(the_deadline_ends_a_connect_to_a_host_that_never_answers)
{
	struct fixture *f = connect_in_vain(silent_ip, 7471, DEADLINE_MS);

	assert_library_took(client_end.ms, DEADLINE_MS);
	assert_library_took(client_end.closed_ms, client_end.ms);
	finish(f);
}
END_TEST

/* The silence costs its turn. */
START_TEST(the_next_address_is_tried_when_the_first_never_answers)
{
	const char *const ips[] = { silent_ip, testbed.ip };
	struct fixture *f = noting_fixture();

	fixture_listen(f);
	begin();
	fixture_connect_to_each(f, ips, 2, evrdma_listener_get_port(f->listener));
	run_until(f, both_are_up);
	assert_library_took(passed_ms(), ATTEMPT_MS);
	finish(f);
}
END_TEST

/* Its answer was lost in its first turn, and comes in its second. */
START_TEST(an_address_has_another_turn_after_one_that_never_answers)
{
	const char *const ips[] = { testbed.ip, silent_ip };
	struct fixture *f = closing_fixture();

	fixture_listen(f);
	lose_for(f, WIRE_REP, 1);
	begin();
	fixture_connect_to_each(f, ips, 2, evrdma_listener_get_port(f->listener));
	run_until(f, both_are_up);
	assert_library_took(passed_ms(), 2 * ATTEMPT_MS);
	finish(f);
}
END_TEST

/* siw makes the TCP connection inside the call, and keeps the loop for it. */
START_TEST(tcp_gives_up_a_host_that_never_answers)
{
	struct fixture *f = connect_in_vain(silent_ip, 7471, PATIENCE_MS);

	assert_kernel_took(client_end.ms, TCP_SYN_MS);
	begin();
	finish(f);
}
END_TEST

/* A TCP server that says nothing: the kernel accepts for it. */
static int listen_in_silence(uint16_t *port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	fixture_address(&sin, testbed.ip, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	*port = ntohs(sin.sin_port);
	return fd;
}

static struct fixture *connect_to_silence(int timeout_ms)
{
	uint16_t port;
	int fd = listen_in_silence(&port);
	struct fixture *f = connect_in_vain(testbed.ip, port, timeout_ms);

	close(fd);
	return f;
}

START_TEST(the_driver_gives_up_a_tcp_server_that_never_answers)
{
	struct fixture *f = connect_to_silence(PATIENCE_MS);

	assert_kernel_took(client_end.ms, MPA_REPLY_MS);
	assert_library_took(client_end.closed_ms, client_end.ms);
	finish(f);
}
END_TEST

/* But the id goes when the driver has its answer. */
START_TEST(the_deadline_ends_a_connect_to_a_tcp_server_that_never_answers)
{
	struct fixture *f = connect_to_silence(DEADLINE_MS);

	assert_library_took(client_end.ms, DEADLINE_MS);
	assert_kernel_took(client_end.closed_ms, MPA_REPLY_MS);
	finish(f);
}
END_TEST

/* --- the server is late ---------------------------------------------------------------------- */

static struct evrdma_request *waiting;

static void let_wait(struct fixture *f, struct evrdma_request *request)
{
	waiting = request;
}

static bool server_is_told(struct fixture *f)
{
	return server_end.told;
}

static struct fixture *let_the_peer_give_up(void)
{
	struct fixture *f = closing_fixture();

	f->on_request = let_wait;
	f->options.connect_timeout_ms = DEADLINE_MS;
	fixture_listen(f);
	begin();
	fixture_connect(f);
	run_until(f, fixture_none_live);
	run_for(f, 2 * MPA_REPLY_MS / 1000);
	return f;
}

static void accept_it(struct fixture *f)
{
	begin();
	ck_assert_int_eq(evrdma_conn_accept(fixture_endpoint_new(f, false)->conn, waiting), 0);
	run_until(f, server_is_told);
}

START_TEST(a_peer_that_gave_up_is_told_as_that)
{
	struct fixture *f = let_the_peer_give_up();

	accept_it(f);
	assert_told(&server_end, ECONNRESET);
	assert_library_took(server_end.ms, 0);
	run_until(f, fixture_none_live);
	ck_assert_ptr_nonnull(strstr(f->last_error, "the peer gave up"));
	finish(f);
}
END_TEST

/* Nobody says it again. */
START_TEST(a_peer_that_gave_up_unheard_times_out)
{
	struct fixture *f;

	lose(WIRE_REJ);
	f = let_the_peer_give_up();
	calm();
	accept_it(f);
	assert_told(&server_end, ETIMEDOUT);
	assert_library_took(server_end.ms, DEADLINE_MS);
	run_until(f, fixture_none_live);
	finish(f);
}
END_TEST

static void connect_to_127_0_0_1(int err)
{
	struct fixture *f = closing_fixture();

	begin();
	fixture_connect_to(f, "127.0.0.1", 7471);
	run_until(f, fixture_none_live);
	assert_told(&client_end, err);
	ck_assert_msg(strstr(f->last_error, "use an address of the RDMA device") != NULL, "%s",
		f->last_error);
	finish(f);
}

/* rxe has no route to itself by an address that is not its own. */
START_TEST(who_connects_to_127_0_0_1_is_told_to_take_the_devices_address)
{
	connect_to_127_0_0_1(ENODEV);
}
END_TEST

/* The CM binds no iWARP device to it. */
START_TEST(who_connects_to_127_0_0_1_over_iwarp_is_told_the_same)
{
	connect_to_127_0_0_1(EINVAL);
}
END_TEST

/* --- messages of the handshake are lost ------------------------------------------------------ */

/* For so many seconds; 0: for ever. */
static void connect_losing(struct fixture *f, enum wire_message message, unsigned s)
{
	fixture_listen(f);
	if (s)
		lose_for(f, message, s);
	else
		lose(message);
	begin();
	fixture_connect(f);
}

START_TEST(a_lost_req_is_sent_again)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_REQ, LOST_S);
	run_until(f, both_are_up);
	assert_kernel_took(passed_ms(), REQ_MS);
	finish(f);
}
END_TEST

START_TEST(without_a_rep_both_ends_time_out)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_REP, 0);
	run_until(f, both_are_told);
	assert_told(&client_end, ETIMEDOUT);
	assert_told(&server_end, ETIMEDOUT);
	assert_library_took(client_end.ms, CONNECT_MS);
	assert_library_took(server_end.ms, CONNECT_MS);
	finish(f);
}
END_TEST

START_TEST(who_waits_for_a_rep_or_its_answer_is_closed_at_once)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_REP, 0);
	run_for(f, 1);
	begin();
	close_client(f);
	evrdma_conn_close(f->server->conn);
	run_until(f, fixture_none_live);
	assert_library_took(passed_ms(), 0);
	finish(f);
}
END_TEST

START_TEST(the_kernel_gives_up_a_rep_that_is_not_answered)
{
	struct fixture *f = closing_fixture();

	f->options.connect_timeout_ms = PATIENCE_MS;
	connect_losing(f, WIRE_REP, 0);
	run_until(f, both_are_told);
	assert_told(&client_end, ETIMEDOUT);
	assert_told(&server_end, ETIMEDOUT);
	assert_kernel_took(server_end.ms, CM_SENDS * RESPONSE_MS);
	assert_kernel_took(client_end.ms, CM_SENDS * REQ_MS);
	finish(f);
}
END_TEST

START_TEST(a_lost_rep_is_sent_again)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_REP, LOST_S);
	run_until(f, both_are_up);
	assert_kernel_took(passed_ms(), RESPONSE_MS);
	finish(f);
}
END_TEST

/* The client is up meanwhile, and the server's good-bye ends it. */
START_TEST(without_an_rtu_the_server_times_out)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_RTU, 0);
	run_until(f, both_are_told);
	assert_told(&server_end, ETIMEDOUT);
	assert_told(&client_end, 0);
	assert_library_took(server_end.ms, CONNECT_MS);
	assert_library_took(client_end.ms, CONNECT_MS);
	finish(f);
}
END_TEST

START_TEST(a_lost_rtu_is_sent_again)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_RTU, LOST_S);
	run_until(f, both_are_up);
	assert_kernel_took(passed_ms(), RESPONSE_MS);
	finish(f);
}
END_TEST

static struct fixture *pair_without_rtu(unsigned s)
{
	struct fixture *f = noting_fixture();

	connect_losing(f, WIRE_RTU, s);
	run_until(f, client_is_up);
	endpoint_send(f->client, 1, 64);
	run_until(f, both_are_up);
	assert_library_took(passed_ms(), 0);
	return f;
}

START_TEST(a_message_stands_in_for_the_rtu)
{
	struct fixture *f = pair_without_rtu(LATE_S);

	run_for(f, 2 * CM_SENDS * RESPONSE_MS / 1000);
	ck_assert_msg(nobody_is_told(), "%s", f->last_error);
	finish(f);
}
END_TEST

/* Its CM then knows nothing of the connection, and cannot tell the client. */
START_TEST(the_kernel_gives_up_an_rtu_that_never_comes)
{
	struct fixture *f = pair_without_rtu(0);

	run_for(f, 2 * CM_SENDS * RESPONSE_MS / 1000);
	assert_told(&server_end, ETIMEDOUT);
	assert_kernel_took(server_end.ms, CM_SENDS * RESPONSE_MS);
	ck_assert_uint_eq(client_end.told, 0);
	finish(f);
}
END_TEST

/* --- a no is lost ---------------------------------------------------------------------------- */

static unsigned requests;

static void reject(struct fixture *f, struct evrdma_request *request)
{
	requests++;
	ck_assert_int_eq(evrdma_request_reject(request, NULL, 0), 0);
}

/* The server is asked again, for it has forgotten that it was. */
START_TEST(without_a_rej_the_client_times_out)
{
	struct fixture *f = noting_fixture();

	f->on_request = reject;
	connect_losing(f, WIRE_REJ, 0);
	run_until(f, client_is_told);
	assert_told(&client_end, ETIMEDOUT);
	assert_library_took(client_end.ms, CONNECT_MS);
	ck_assert_uint_eq(requests, 2);
	finish(f);
}
END_TEST

START_TEST(who_was_not_told_no_asks_again)
{
	struct fixture *f = noting_fixture();

	f->on_request = reject;
	connect_losing(f, WIRE_REJ, LOST_S);
	run_until(f, client_is_told);
	assert_told(&client_end, ECONNREFUSED);
	assert_kernel_took(client_end.ms, REQ_MS);
	ck_assert_uint_eq(requests, 2);
	finish(f);
}
END_TEST

/* --- cases ----------------------------------------------------------------------------------- */

TCase *timeouts_connect_case(void)
{
	TCase *tc = new_case("connect");

	tcase_add_test(tc, the_kernel_gives_up_a_host_that_never_answers);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_a_host_that_never_answers);
	tcase_add_test(tc, a_peer_that_gave_up_is_told_as_that);
	tcase_add_test(tc, who_connects_to_127_0_0_1_is_told_to_take_the_devices_address);
	tcase_add_test(tc, the_next_address_is_tried_when_the_first_never_answers);
	tcase_add_test(tc, an_address_has_another_turn_after_one_that_never_answers);
	return tc;
}

TCase *timeouts_iwarp_connect_case(void)
{
	TCase *tc = new_case("connect");

	tcase_add_test(tc, tcp_gives_up_a_host_that_never_answers);
	tcase_add_test(tc, a_peer_that_gave_up_is_told_as_that);
	tcase_add_test(tc, who_connects_to_127_0_0_1_over_iwarp_is_told_the_same);
	tcase_add_test(tc, the_driver_gives_up_a_tcp_server_that_never_answers);
	tcase_add_test(tc, the_deadline_ends_a_connect_to_a_tcp_server_that_never_answers);
	return tc;
}

TCase *timeouts_handshake_case(void)
{
	TCase *tc = new_case("handshake");

	tcase_add_test(tc, a_lost_req_is_sent_again);
	tcase_add_test(tc, a_peer_that_gave_up_unheard_times_out);
	tcase_add_test(tc, without_a_rep_both_ends_time_out);
	tcase_add_test(tc, who_waits_for_a_rep_or_its_answer_is_closed_at_once);
	tcase_add_test(tc, the_kernel_gives_up_a_rep_that_is_not_answered);
	tcase_add_test(tc, a_lost_rep_is_sent_again);
	tcase_add_test(tc, without_an_rtu_the_server_times_out);
	tcase_add_test(tc, a_lost_rtu_is_sent_again);
	tcase_add_test(tc, a_message_stands_in_for_the_rtu);
	tcase_add_test(tc, the_kernel_gives_up_an_rtu_that_never_comes);
	tcase_add_test(tc, without_a_rej_the_client_times_out);
	tcase_add_test(tc, who_was_not_told_no_asks_again);
	return tc;
}
