/* What goes wrong around an rsocket: it is told, nobody waits for it, and nothing is left. */
#include "unit/rs_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/conndata.h"
#include "rs/rs.h"
#include "unit/cm_unit.h"

enum { FORKS = 40, CHILD_S = 60, LINGER_S = 60, QUIET_US = 20000 };

/* --- rpoll without events -------------------------------------------------------------------- */

START_TEST(rpoll_for_nothing_reports_a_hangup)
{
	struct rs_pair pair = rs_connect();

	ck_assert_int_eq(rs_events(pair.client, 0), 0);
	ck_assert_ok(rclose(pair.server));
	pair.server = -1;
	ck_assert_int_eq(rs_events(pair.client, 0), POLLHUP);
	rs_close(&pair);
}
END_TEST

/* Something came before it, which nobody has looked at. */
START_TEST(the_first_look_shows_an_end_that_is_long_past)
{
	struct rs_pair pair = rs_connect();
	struct evr_rs *rs = evr_rs_get(pair.client);

	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	rs_events(pair.client, POLLOUT);
	ck_assert_int_eq(rsend(pair.server, "x", 1, 0), 1);
	ck_assert_int_eq(fake_inject(rs->id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	evr_rs_put(rs);
	usleep(QUIET_US);
	ck_assert_int_ne(rs_events(pair.client, POLLIN | POLLOUT) & POLLHUP, 0);
	rs_close(&pair);
}
END_TEST

START_TEST(rpoll_for_what_there_is_anyway_reports_a_hangup)
{
	struct rs_pair pair = rs_connect();

	ck_assert_int_eq(rs_events(pair.client, POLLOUT), POLLOUT);
	ck_assert_ok(rclose(pair.server));
	pair.server = -1;
	ck_assert_int_eq(rs_events(pair.client, POLLOUT), POLLOUT | POLLHUP);
	rs_close(&pair);
}
END_TEST

/* --- events that cannot be read -------------------------------------------------------------- */

static int error_of(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	return error;
}

START_TEST(a_connect_whose_events_cannot_be_read_fails)
{
	int listener = rs_listener(), client;

	fake_fail_next("GET_EVENT", ENOMEM);
	client = rs_client();
	ck_assert_int_ne(rs_await(client, POLLOUT) & POLLERR, 0);
	ck_assert_int_eq(error_of(client), ENOMEM);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

START_TEST(a_blocking_connect_whose_events_cannot_be_read_fails)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	const struct sockaddr *addr = cm_addr(FAKE_ROCE_IP, CM_PORT);

	fake_fail_next("GET_EVENT", ENOMEM);
	ck_assert_fails(rconnect(fd, addr, sizeof(struct sockaddr_in)), ENOMEM);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(a_connect_to_a_device_that_may_not_be_opened_says_so)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	const struct sockaddr *addr = cm_addr(FAKE_ROCE_IP, CM_PORT);

	fake_fail_next("ibv_open_device", EACCES);
	ck_assert_fails(rconnect(fd, addr, sizeof(struct sockaddr_in)), EACCES);
	ck_assert_ok(rclose(fd));
}
END_TEST

/* Blocking, so that no other thread reads them. */
START_TEST(a_connection_whose_events_cannot_be_read_ends)
{
	struct rs_pair pair = rs_connect();
	char byte;

	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair.listener, F_SETFL, O_RDWR));
	fake_fail_next("GET_EVENT", EIO);
	while (rrecv(pair.client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		usleep(1000);
	ck_assert_int_eq(errno, EIO);
	rs_close(&pair);
}
END_TEST

/* A peer that is no rsocket, but speaks as one: nobody but the test reads its events. */
static struct rdma_cm_id *request(struct rdma_event_channel *channel)
{
	const struct evr_conndata conn = {
		.credits = 16,
		.target_addr = 4096,
		.data = { .addr = 8192, .rkey = 1, .len = 4096 },
	};
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	uint8_t data[EVR_CONNDATA_LEN];
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = sizeof(data),
		.retry_count = 7,
	};

	evr_conndata_encode(&conn, 0, data, sizeof(data));
	cm_resolve(id, FAKE_ROCE_IP);
	cm_make_qp(id);
	ck_assert_ok(rdma_connect(id, &param));
	return id;
}

START_TEST(raccept_says_when_events_cannot_be_read_and_then_goes_on)
{
	int listener = rs_listener(), fd;
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *client;

	ck_assert_ok(rfcntl(listener, F_SETFL, O_RDWR));
	client = request(channel);
	fake_fail_next("GET_EVENT", ENOMEM);
	ck_assert_fails(raccept(listener, NULL, NULL), ENOMEM);
	ck_assert_ok(rfcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
	ck_assert_fails(raccept(listener, NULL, NULL), EAGAIN);
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	fd = raccept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	cm_destroy(client);
	rdma_destroy_event_channel(channel);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* --- queues that fail ------------------------------------------------------------------------ */

static void fail_arming(void)
{
	fake_fail_next("ibv_req_notify_cq", EIO);
}

static void fail_poll(void *arg)
{
	fake_fail_next("ibv_poll_cq", EIO);
}

/* The next such call is to arm. */
static void fail_poll_after_arming(void)
{
	fake_at_nth(FAKE_VERBS, 1, fail_poll, NULL);
}

/* Blocking, so that nobody else looks; the queue is not armed any more when it is slept on. */
static void wait_on_a_queue_that_fails(void (*prepare)(void))
{
	struct rs_pair pair = rs_connect();
	char byte;

	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	ck_assert_int_eq(rsend(pair.server, "a", 1, 0), 1);
	ck_assert_int_eq(rrecv(pair.client, &byte, 1, 0), 1);
	prepare();
	ck_assert_fails(rrecv(pair.client, &byte, 1, 0), EIO);
	rs_close(&pair);
}

START_TEST(who_waits_for_a_queue_that_cannot_be_armed_is_told)
{
	wait_on_a_queue_that_fails(fail_arming);
}
END_TEST

START_TEST(who_waits_for_a_queue_that_fails_as_it_is_armed_is_told)
{
	wait_on_a_queue_that_fails(fail_poll_after_arming);
}
END_TEST

/* Some devices give an errno's negative, and leave errno as it was. */
START_TEST(what_a_device_of_iwarp_does_not_take_is_told)
{
	struct rs_pair pair;

	fake_device_add(FAKE_IWARP);
	pair = rs_connect_at(FAKE_IWARP_IP);
	rs_pass(pair.client, pair.server, 1000);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	fake_fail_next("ibv_post_send", EOVERFLOW);
	errno = 0;
	ck_assert_fails(rsend(pair.client, "a", 1, 0), EOVERFLOW);
	rs_close(&pair);
}
END_TEST

/* As the kernel does it when the peer's side is gone, and tells of that later. */
static void take_queue_pair(int fd)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct evr_rs *rs = evr_rs_get(fd);

	ck_assert_int_eq(ibv_modify_qp(rs->transport.id->qp, &attr, IBV_QP_STATE), 0);
	evr_rs_put(rs);
}

/* Some devices refuse what is posted there, and say EINVAL to that. */
START_TEST(a_queue_pair_that_was_taken_is_a_connection_that_was_reset)
{
	struct rs_pair pair;

	ck_assert_ok(setenv("EVR_FAKE_PROFILE", "cxgb4", 1));
	fake_device_add(FAKE_IWARP);
	ck_assert_ok(unsetenv("EVR_FAKE_PROFILE"));
	pair = rs_connect_at(FAKE_IWARP_IP);
	rs_pass(pair.client, pair.server, 1000);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	take_queue_pair(pair.client);
	ck_assert_fails(rsend(pair.client, "a", 1, 0), ECONNRESET);
	rs_close(&pair);
}
END_TEST

/*
 * A peer that is killed: the kernel takes its memory first, then its queue pair, and its CM tells
 * of it last.
 */
static void take_memory(int fd)
{
	struct evr_rs *rs = evr_rs_get(fd);

	ck_assert_int_eq(ibv_dereg_mr(rs->transport.shown), 0);
	rs->transport.shown = NULL;
	evr_rs_put(rs);
}

static void send_until_told(int fd)
{
	while (rsend(fd, "a", 1, 0) > 0)
		;
}

START_TEST(a_peer_whose_memory_was_taken_is_a_connection_that_was_reset)
{
	struct rs_pair pair = rs_connect();

	rs_pass(pair.client, pair.server, 1000);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	take_memory(pair.server);
	send_until_told(pair.client);
	ck_assert_int_eq(errno, ECONNRESET);
	rs_close(&pair);
}
END_TEST

static void answer_no_more(struct rs_pair *pair)
{
	*pair = rs_connect();
	rs_pass(pair->client, pair->server, 1000);
	ck_assert_ok(rfcntl(pair->client, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair->server, F_SETFL, O_RDWR));
	take_queue_pair(pair->server);
	ck_assert_int_eq(rsend(pair->client, "a", 1, 0), 1);
	ck_assert_uint_eq(fake_time_out_work(), 1);
}

/* What the CM has said comes before what the device guesses. */
START_TEST(a_peer_that_answers_no_more_and_has_left_is_a_connection_that_was_reset)
{
	struct rs_pair pair;
	struct evr_rs *rs;
	char byte;

	answer_no_more(&pair);
	rs = evr_rs_get(pair.client);
	ck_assert_int_eq(fake_inject(rs->id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	evr_rs_put(rs);
	ck_assert_fails(rrecv(pair.client, &byte, 1, 0), ECONNRESET);
	rs_close(&pair);
}
END_TEST

START_TEST(a_peer_that_answers_no_more_is_a_time_that_is_over)
{
	struct rs_pair pair;
	char byte;

	answer_no_more(&pair);
	ck_assert_fails(rrecv(pair.client, &byte, 1, 0), ETIMEDOUT);
	rs_close(&pair);
}
END_TEST

/* --- ports that are taken -------------------------------------------------------------------- */

static void take_each_port(void)
{
	fake_fail_next("CONNECT", EADDRINUSE);
}

START_TEST(a_port_that_is_taken_is_followed_by_another)
{
	int listener = rs_listener();
	struct rs_pair pair;

	fake_fail_next("CONNECT", EADDRINUSE);
	pair = rs_connect_to(listener);
	ck_assert_uint_eq(fake_calls("CONNECT"), 2);
	rs_pass(pair.client, pair.server, 1000);
	rs_close(&pair);
}
END_TEST

static void bind_to_port(int fd, uint16_t port)
{
	ck_assert_ok(rbind(fd, cm_addr(FAKE_ROCE_IP, port), sizeof(struct sockaddr_in)));
}

START_TEST(an_address_without_a_port_is_kept_with_each_of_them)
{
	int listener = rs_listener(), fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in *to = (struct sockaddr_in *)cm_addr(FAKE_ROCE_IP, CM_PORT), own;
	socklen_t len = sizeof(own);

	bind_to_port(fd, 0);
	fake_fail_next("CONNECT", EADDRNOTAVAIL);
	ck_assert_fails(rconnect(fd, (struct sockaddr *)to, sizeof(*to)), EINPROGRESS);
	while (!rs_events(fd, POLLOUT))
		rs_events(listener, POLLIN);
	ck_assert_int_eq(error_of(fd), 0);
	ck_assert_uint_eq(fake_calls("CONNECT"), 2);
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&own, &len));
	ck_assert_int_eq(own.sin_addr.s_addr, to->sin_addr.s_addr);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(listener));
}
END_TEST

static int listen_without_a_port(int fd, bool named)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);

	bind_to_port(fd, 0);
	if (named)
		ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&own, &len));
	fake_fail_next("LISTEN", EADDRINUSE);
	return rlisten(fd, 1);
}

START_TEST(a_port_to_listen_on_that_is_taken_is_followed_by_another)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in own;
	socklen_t len = sizeof(own);

	ck_assert_ok(listen_without_a_port(fd, false));
	ck_assert_uint_eq(fake_calls("LISTEN"), 2);
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&own, &len));
	ck_assert_int_ne(own.sin_port, 0);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(a_port_that_its_user_knows_is_the_only_one)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_fails(listen_without_a_port(fd, true), EADDRINUSE);
	ck_assert_uint_eq(fake_calls("LISTEN"), 1);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(a_port_that_was_given_is_the_only_one)
{
	int listener = rs_listener(), fd = rsocket(AF_INET, SOCK_STREAM, 0);

	bind_to_port(fd, 1234);
	fake_fail_next("CONNECT", EADDRINUSE);
	ck_assert_fails(rconnect(fd, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)),
		EADDRINUSE);
	ck_assert_uint_eq(fake_calls("CONNECT"), 1);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(listener));
}
END_TEST

START_TEST(the_end_of_ports_ends_the_attempt)
{
	int listener = rs_listener(), fd = rsocket(AF_INET, SOCK_STREAM, 0);

	fake_each_call(take_each_port);
	ck_assert_fails(rconnect(fd, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)),
		EADDRINUSE);
	fake_each_call(NULL);
	ck_assert_uint_eq(fake_calls("CONNECT"), 10);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* Nothing of the attempts before is left in memory; the port is that of the first. */
START_TEST(one_that_was_refused_tries_again_from_where_it_is_bound)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), i;
	struct sockaddr_in own;
	socklen_t len = sizeof(own);

	bind_to_port(fd, 1234);
	for (i = 0; i < 3; i++)
		ck_assert_fails(
			rconnect(fd, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)),
			ECONNREFUSED);
	ck_assert_fails(rconnect(fd, cm_addr(FAKE_NO_ROUTE_IP, 1), 4), EINVAL);
	ck_assert_ok(rgetsockname(fd, (struct sockaddr *)&own, &len));
	ck_assert_int_eq(ntohs(own.sin_port), 1234);
	ck_assert_ok(rclose(fd));
}
END_TEST

/* The kernel's id goes on with the interface that it has found. */
static void expect_as_new(const char *ip)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0), fd = rsocket(AF_INET, SOCK_STREAM, 0);
	const socklen_t len = sizeof(struct sockaddr_in);

	ck_assert_ok(rbind(listener, cm_addr(ip, CM_PORT), len));
	ck_assert_fails(rbind(fd, cm_addr(ip, CM_PORT), len), EADDRINUSE);
	ck_assert_fails(rbind(fd, cm_addr("192.0.2.77", CM_PORT), len), EADDRNOTAVAIL);
	ck_assert_ok(rbind(fd, cm_addr(ip, CM_PORT + 1), len));
	ck_assert_fails(rbind(fd, cm_addr(ip, CM_PORT + 2), len), EINVAL);
	ck_assert_ok(rlisten(fd, 1));
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(listener));
}

START_TEST(one_that_could_not_be_bound_is_as_new)
{
	fake_device_add(FAKE_IWARP);
	expect_as_new(FAKE_ROCE_IP);
	expect_as_new(FAKE_IWARP_IP);
}
END_TEST

START_TEST(no_address_is_a_fault_as_no_memory_is)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_fails(rbind(fd, NULL, sizeof(struct sockaddr_in)), EFAULT);
	ck_assert_fails(rconnect(fd, NULL, sizeof(struct sockaddr_in)), EFAULT);
	ck_assert_fails(rbind(fd, NULL, 0), EINVAL);
	ck_assert_ok(rclose(fd));
}
END_TEST

/* --- a device that goes ---------------------------------------------------------------------- */

START_TEST(a_listener_loses_its_device)
{
	struct rs_pair pair = rs_connect();

	fake_device_remove(FAKE_ROCE);
	ck_assert_int_eq(rs_events(pair.listener, POLLIN) & (POLLIN | POLLERR), POLLIN | POLLERR);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), ENODEV);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), EINVAL);
	ck_assert_int_ne(rs_await(pair.client, POLLIN) & POLLERR, 0);
	ck_assert_int_ne(rs_await(pair.server, POLLIN) & POLLERR, 0);
	ck_assert(fake_device_gone(FAKE_ROCE));
	rs_close(&pair);
}
END_TEST

/* Blocking: only calls read its events. */
static int listen_at(const char *ip)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_ok(rbind(fd, cm_addr(ip, CM_PORT), sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(fd, 1));
	return fd;
}

static int listen_anywhere(void)
{
	return listen_at("0.0.0.0");
}

/* What raccept() is about to return cannot be moved, and to find out why ends the listener. */
START_TEST(one_that_is_accepted_as_the_listeners_device_goes_goes_with_it)
{
	int listener = listen_at(FAKE_ROCE_IP), client = rs_client();

	while (!rs_events(listener, POLLIN))
		rs_events(client, POLLOUT);
	fake_device_remove(FAKE_ROCE);
	ck_assert_fails(raccept(listener, NULL, NULL), ENODEV);
	ck_assert_fails(raccept(listener, NULL, NULL), EINVAL);
	ck_assert_int_ne(rs_await(client, POLLIN) & POLLERR, 0);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* There the kernel takes the queue pairs as well, so that what was posted comes back first. */
START_TEST(a_device_of_iwarp_that_goes_is_the_reason)
{
	struct rs_pair pair;
	char byte;

	fake_device_add(FAKE_IWARP);
	pair = rs_connect_at(FAKE_IWARP_IP);
	fake_device_remove(FAKE_IWARP);
	ck_assert_fails(rrecv(pair.client, &byte, 1, 0), ENODEV);
	ck_assert_fails(rrecv(pair.server, &byte, 1, 0), ENODEV);
	rs_close(&pair);
	ck_assert(fake_device_gone(FAKE_IWARP));
}
END_TEST

/* There what was posted comes back undone when the peer closes, and by then all is said. */
START_TEST(who_shuts_down_last_on_iwarp_has_no_error_when_the_peer_closes)
{
	struct rs_pair pair;
	char byte = 0;

	fake_device_add(FAKE_IWARP);
	pair = rs_connect_at(FAKE_IWARP_IP);
	rs_pass(pair.client, pair.server, 1);
	ck_assert_ok(rshutdown(pair.server, SHUT_WR));
	ck_assert_int_eq(rs_await(pair.client, POLLIN), POLLIN);
	ck_assert_int_eq(rrecv(pair.client, &byte, 1, 0), 0);
	ck_assert_ok(rshutdown(pair.client, SHUT_WR));
	ck_assert_int_eq(rrecv(pair.server, &byte, 1, 0), 0);
	ck_assert_ok(rclose(pair.server));
	ck_assert_int_eq(rrecv(pair.client, &byte, 1, 0), 0);
	ck_assert_fails(rsend(pair.client, &byte, 1, 0), EPIPE);
	pair.server = -1;
	rs_close(&pair);
}
END_TEST

START_TEST(a_device_of_iwarp_that_goes_is_the_reason_before_raccept_too)
{
	int listener, client, fd;
	char byte;

	fake_device_add(FAKE_IWARP);
	listener = listen_anywhere();
	client = rs_client_of(FAKE_IWARP_IP);
	while (!rs_events(listener, POLLIN))
		rs_events(client, POLLOUT);
	rs_await(client, POLLOUT);
	fake_device_remove(FAKE_IWARP);
	fd = raccept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_fails(rrecv(fd, &byte, 1, 0), ENODEV);
	ck_assert_fails(rrecv(client, &byte, 1, 0), ENODEV);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

START_TEST(one_that_waits_for_raccept_keeps_no_device_and_what_it_received)
{
	int listener = listen_anywhere(), client = rs_client(), fd;
	char bytes[8];

	while (!rs_events(listener, POLLIN))
		rs_events(client, POLLOUT);
	rs_await(client, POLLOUT);
	ck_assert_int_eq(rsend(client, "four", 4, 0), 4);
	fake_device_remove(FAKE_ROCE);
	ck_assert_int_ne(rs_await(client, POLLIN) & POLLERR, 0);
	ck_assert_int_eq(rs_events(listener, POLLIN), POLLIN);
	fd = raccept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert(fake_device_gone(FAKE_ROCE));
	ck_assert_int_eq(rrecv(fd, bytes, sizeof(bytes), 0), 4);
	ck_assert_fails(rrecv(fd, bytes, sizeof(bytes), 0), ENODEV);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

/*
 * What tells it of arrivals fails with its device, and may be the first to say so. Of the two ends
 * nobody looks after the client between its calls, so that it is the server's that fails.
 */
static void lose_channel(bool reads, bool said)
{
	struct rs_pair pair = rs_connect();
	char bytes[8];

	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_int_eq(rsend(pair.client, "four", 4, 0), 4);
	rs_await(pair.server, POLLIN);
	if (reads)
		ck_assert_int_eq(rrecv(pair.server, bytes, sizeof(bytes), 0), 4);
	fake_fail_next("ibv_get_cq_event", EIO);
	if (said)
		fake_device_remove(FAKE_ROCE);
	rsend(pair.client, "more", 4, MSG_NOSIGNAL);
	do
		rs_await(pair.server, POLLIN);
	while (rrecv(pair.server, bytes, sizeof(bytes), 0) > 0 || errno == EAGAIN);
	ck_assert_int_eq(errno, said ? ENODEV : EIO);
	if (!said)
		fake_device_remove(FAKE_ROCE);
	rs_await(pair.client, POLLIN);
	rs_await(pair.listener, POLLIN);
	while (!fake_device_gone(FAKE_ROCE))
		rs_events(pair.server, POLLIN);
	rs_close(&pair);
	fake_fail_later("ibv_get_cq_event", 0, 0);
}

START_TEST(a_completion_channel_that_is_lost_keeps_no_device)
{
	int i;

	for (i = 0; i < 4; i++) {
		lose_channel(i % 2, i / 2);
		fake_device_add(FAKE_ROCE);
	}
}
END_TEST

/* How many descriptors are waited for by epoll in this process. */
static int watched(void)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	char path[300], line[256];
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		FILE *info;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
		info = fopen(path, "r");
		while (info && fgets(line, sizeof(line), info))
			count += !strncmp(line, "tfd:", 4);
		if (info)
			fclose(info);
	}
	closedir(dir);
	return count;
}

/* Whatever went wrong before: it would be readable for ever. */
START_TEST(nobody_watches_a_completion_channel_that_is_lost)
{
	struct rs_pair pair = rs_connect();
	int before = watched();

	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_int_lt(watched(), before);
	before = watched();
	fake_fail_next("ibv_post_send", EINVAL);
	rsend(pair.server, "lost", 4, MSG_NOSIGNAL);
	fake_fail_next("ibv_get_cq_event", EIO);
	ck_assert_int_eq(rsend(pair.client, "four", 4, 0), 4);
	while (watched() != before - 1)
		usleep(1000);
	rs_close(&pair);
}
END_TEST

/* What a program that asks for it is told of one that has no device any more. */
START_TEST(the_peers_address_is_known_when_its_device_is_not)
{
	int listener = listen_anywhere(), client = rs_client(), fd;
	struct sockaddr_in peer = { 0 }, own = { 0 };
	socklen_t len = sizeof(own);

	while (!rs_events(listener, POLLIN))
		rs_events(client, POLLOUT);
	ck_assert_ok(rgetsockname(client, (struct sockaddr *)&own, &len));
	fake_device_remove(FAKE_ROCE);
	ck_assert_int_eq(rs_events(listener, POLLIN), POLLIN);
	len = sizeof(peer);
	fd = raccept(listener, (struct sockaddr *)&peer, &len);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(len, sizeof(peer));
	ck_assert_uint_eq(peer.sin_addr.s_addr, own.sin_addr.s_addr);
	ck_assert_uint_eq(peer.sin_port, own.sin_port);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* --- a request without an answer ------------------------------------------------------------- */

static int ask_iwarp(int flags)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | flags, 0);

	fake_hold(FAKE_REQ);
	ck_assert_fails(rconnect(fd, cm_addr(FAKE_IWARP_IP, CM_PORT), sizeof(struct sockaddr_in)),
		EINPROGRESS);
	while (!fake_held(FAKE_REQ))
		rs_events(fd, POLLOUT);
	return fd;
}

static void wait_for_the_end_of_all(void)
{
	int waited;

	for (waited = 0; fake_live(FAKE_ID) && waited < LINGER_S * 1000; waited++)
		usleep(1000);
	ck_assert_uint_eq(fake_live(FAKE_ID), 0);
}

START_TEST(closing_an_unanswered_request_waits_for_nobody)
{
	int fd;

	fake_device_add(FAKE_IWARP);
	fd = ask_iwarp(SOCK_NONBLOCK);
	ck_assert_ok(rclose(fd));
	ck_assert_uint_eq(fake_waits(), 0);
	ck_assert_uint_eq(fake_live(FAKE_ID), 1);
	fake_release(FAKE_REQ);
	wait_for_the_end_of_all();
	ck_assert_uint_eq(fake_waits(), 0);
}
END_TEST

/* Whoever has a descriptor keeps it, and nobody gets another: the helper cannot begin. */
static void leave_no_descriptors(struct rlimit *before)
{
	struct rlimit none;
	int fd = 0;

	getrlimit(RLIMIT_NOFILE, before);
	while (fcntl(fd, F_GETFD) >= 0)
		fd++;
	none = (struct rlimit){ .rlim_cur = (rlim_t)fd, .rlim_max = before->rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}

START_TEST(an_unanswered_request_that_nobody_looks_after_ends_with_its_rsocket)
{
	struct rlimit before;
	int fd;

	fake_device_add(FAKE_IWARP);
	fd = ask_iwarp(SOCK_NONBLOCK);
	ck_assert_ok(rfcntl(fd, F_SETFL, O_RDWR));
	usleep(10000);
	fake_release(FAKE_REQ);
	leave_no_descriptors(&before);
	ck_assert_ok(rclose(fd));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	wait_for_the_end_of_all();
}
END_TEST

/* --- memory of a closed one ------------------------------------------------------------------ */

/* Its end is for a thread; the memory may be anything else's as soon as rclose() returns. */
START_TEST(no_peer_has_the_memory_of_what_is_closed_unheard)
{
	const struct linger at_once = { .l_onoff = 1 };
	static char memory[8];
	struct rs_pair pair = rs_connect_to_show();
	unsigned before = fake_live(FAKE_MR);

	ck_assert_int_eq(riomap(pair.server, memory, sizeof(memory), PROT_WRITE, 0, 7), 7);
	ck_assert_uint_eq(fake_live(FAKE_MR), before + 1);
	ck_assert_ok(rsetsockopt(pair.server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	ck_assert_int_eq(rsend(pair.server, "unheard", 7, 0), 7);
	ck_assert_ok(rclose(pair.server));
	ck_assert_uint_le(fake_live(FAKE_MR), before);
	ck_assert_ok(rclose(pair.client));
	ck_assert_ok(rclose(pair.listener));
}
END_TEST

/* --- fork ------------------------------------------------------------------------------------ */

static atomic_bool enough;

static void *open_and_close(void *arg)
{
	while (!enough) {
		int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		rbind(fd, cm_addr(FAKE_ROCE_IP, 0), sizeof(struct sockaddr_in));
		rlisten(fd, 1);
		rclose(fd);
	}
	return arg;
}

/* Not its parent's, and its own work; whoever waits for a lock is ended by the alarm. */
static int use_rsockets(int parents)
{
	struct pollfd pfd = { .fd = parents, .events = POLLIN };
	char byte;

	alarm(CHILD_S);
	if (rrecv(parents, &byte, 1, 0) != -1 || errno != EBADF)
		return 1;
	if (rclose(parents) != -1 || errno != EBADF)
		return 2;
	if (rpoll(&pfd, 1, 0) < 0)
		return 3;
	return 0;
}

static void fork_one(int fd)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(use_rsockets(fd));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(a_child_has_no_rsockets_and_waits_for_none_of_its_parents_threads)
{
	struct rs_pair pair = rs_connect();
	pthread_t thread;
	int i;

	ck_assert_int_eq(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	for (i = 0; i < FORKS; i++)
		fork_one(pair.client);
	enough = true;
	pthread_join(thread, NULL);
	rs_pass(pair.client, pair.server, 1000);
	rs_close(&pair);
}
END_TEST

/* --- a reset, told once ---------------------------------------------------------------------- */

static void reset(struct rs_pair *pair)
{
	const struct linger linger = { .l_onoff = 1 };

	ck_assert_ok(rsetsockopt(pair->server, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	ck_assert_ok(rclose(pair->server));
	pair->server = -1;
}

START_TEST(a_reset_behind_some_bytes_is_told_by_the_next_call)
{
	struct rs_pair pair = rs_connect();
	char bytes[10];

	ck_assert_int_eq(rsend(pair.server, "some.", 5, 0), 5);
	ck_assert_int_eq(rs_await(pair.client, POLLIN) & POLLIN, POLLIN);
	reset(&pair);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_int_eq(rrecv(pair.client, bytes, sizeof(bytes), MSG_WAITALL), 5);
	ck_assert_fails(rrecv(pair.client, bytes, sizeof(bytes), 0), ECONNRESET);
	ck_assert_int_eq(rrecv(pair.client, bytes, sizeof(bytes), 0), 0);
	rs_close(&pair);
}
END_TEST

START_TEST(who_only_looks_leaves_a_reset_to_the_next_call)
{
	struct rs_pair pair = rs_connect();
	char byte;

	reset(&pair);
	rs_await(pair.client, POLLIN);
	ck_assert_fails(rrecv(pair.client, &byte, 1, MSG_PEEK), ECONNRESET);
	ck_assert_fails(rrecv(pair.client, &byte, 1, 0), ECONNRESET);
	ck_assert_int_eq(rrecv(pair.client, &byte, 1, 0), 0);
	rs_close(&pair);
}
END_TEST

/* --- listeners ------------------------------------------------------------------------------- */

/* The calls that fail are those of the server: its client has made two of each kind of memory. */
static const struct want {
	const char *call;
	unsigned int after;
	int error;
} wants[] = {
	{ "ibv_reg_mr", 3, ENOMEM },
	{ "ibv_reg_mr", 4, EPERM },
	{ "ibv_create_comp_channel", 2, EMFILE },
};

static void expect_told_once(const struct want *want)
{
	int listener = rs_listener(), client;
	struct rs_pair pair;

	fake_fail_later(want->call, want->after, want->error);
	client = rs_client();
	ck_assert_int_eq(rs_await(listener, POLLIN), POLLIN);
	ck_assert_fails(raccept(listener, NULL, NULL), want->error);
	ck_assert_fails(raccept(listener, NULL, NULL), EAGAIN);
	ck_assert_int_eq(rs_events(listener, POLLIN), 0);
	rs_await(client, POLLOUT);
	ck_assert_int_eq(error_of(client), ECONNREFUSED);
	ck_assert_ok(rclose(client));
	pair = rs_connect_to(listener);
	rs_close(&pair);
}

START_TEST(raccept_says_once_of_what_there_is_too_little_for_a_peer)
{
	size_t i;

	for (i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		expect_told_once(&wants[i]);
}
END_TEST

START_TEST(who_is_accepted_comes_before_a_want)
{
	struct rs_pair pair = { .listener = rs_listener(), .client = rs_client() };
	int refused;

	ck_assert_int_eq(rs_await(pair.client, POLLOUT), POLLOUT);
	fake_fail_later("ibv_reg_mr", 3, ENOMEM);
	refused = rs_client();
	ck_assert_int_ne(rs_await(refused, POLLOUT) & POLLERR, 0);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), ENOMEM);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), EAGAIN);
	ck_assert_ok(rclose(refused));
	rs_close(&pair);
}
END_TEST

/* A peer that is no rsocket, or breaks off, is no want of the process. */
START_TEST(raccept_says_nothing_of_a_peer_that_is_refused_for_itself)
{
	int listener = rs_listener(), client;

	fake_fail_next("ACCEPT", ECONNRESET);
	client = rs_client();
	ck_assert_int_ne(rs_await(client, POLLOUT) & POLLERR, 0);
	ck_assert_fails(raccept(listener, NULL, NULL), EAGAIN);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* The accepted one may get the number that the listener had. */
START_TEST(raccept_on_a_number_that_was_closed_behind_its_back_returns)
{
	int listener = rs_listener(), client = rs_client(), accepted;

	ck_assert_int_eq(rs_await(listener, POLLIN), POLLIN);
	ck_assert_ok(close(listener));
	accepted = raccept(listener, NULL, NULL);
	ck_assert_int_ge(accepted, 0);
	rs_await(client, POLLOUT);
	ck_assert_ok(rclose(accepted));
	ck_assert_ok(rclose(client));
	if (accepted != listener)
		ck_assert_ok(rclose(listener));
}
END_TEST

START_TEST(a_larger_backlog_is_for_those_who_wait_already)
{
	int listener = rs_listener(), clients[2], i;

	ck_assert_ok(rlisten(listener, 0));
	clients[0] = rs_client();
	ck_assert_int_eq(rs_await(clients[0], POLLOUT), POLLOUT);
	clients[1] = rs_client();
	rs_events(listener, POLLIN);
	ck_assert_int_eq(rs_events(clients[1], POLLOUT), 0);
	ck_assert_ok(rlisten(listener, 10));
	ck_assert_int_eq(rs_await(clients[1], POLLOUT), POLLOUT);
	for (i = 0; i < 2; i++)
		ck_assert_ok(rclose(clients[i]));
	ck_assert_ok(rclose(listener));
}
END_TEST

/* --- keepalives ------------------------------------------------------------------------------ */

static void set_option(int fd, int level, int name, int value)
{
	ck_assert_ok(rsetsockopt(fd, level, name, &value, sizeof(value)));
}

/* Nothing else is posted by two that are idle. */
static void await_keepalive(void)
{
	unsigned int posted = fake_calls("ibv_post_send");

	while (fake_calls("ibv_post_send") == posted)
		usleep(1000);
}

START_TEST(an_idle_connection_is_asked_whether_its_peer_is_there)
{
	struct rs_pair pair = rs_connect();

	rs_pass(pair.client, pair.server, 1000);
	ck_assert_ok(rfcntl(pair.client, F_SETFL, O_RDWR));
	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	set_option(pair.client, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(pair.client, SOL_SOCKET, SO_KEEPALIVE, 1);
	await_keepalive();
	await_keepalive();
	rs_pass(pair.server, pair.client, 1000);
	rs_close(&pair);
}
END_TEST

START_TEST(a_listener_hands_keepalives_on)
{
	struct rs_pair pair;
	int listener = rs_listener(), value = 0;
	socklen_t len = sizeof(value);

	set_option(listener, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_option(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
	pair = rs_connect_to(listener);
	ck_assert_ok(rgetsockopt(pair.server, SOL_SOCKET, SO_KEEPALIVE, &value, &len));
	ck_assert_int_eq(value, 1);
	await_keepalive();
	set_option(pair.server, SOL_SOCKET, SO_KEEPALIVE, 0);
	rs_close(&pair);
}
END_TEST

/* --- exec ------------------------------------------------------------------------------------ */

static bool is_open_to_exec;

/* In the place of the C library's. */
int socketpair(int domain, int type, int protocol, int ends[2])
{
	is_open_to_exec |= !(type & SOCK_CLOEXEC);
	return (int)syscall(SYS_socketpair, domain, type, protocol, ends);
}

/* Another thread may begin a program at any time, which would keep what is the library's. */
START_TEST(no_program_gets_what_is_not_its_own)
{
	struct rs_pair pair = rs_connect();
	int plain = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert(!is_open_to_exec);
	ck_assert_int_eq(fcntl(pair.client, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(pair.server, F_GETFD), 0);
	ck_assert_int_eq(fcntl(plain, F_GETFD), 0);
	ck_assert_ok(rclose(plain));
	rs_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		rpoll_for_nothing_reports_a_hangup,
		the_first_look_shows_an_end_that_is_long_past,
		rpoll_for_what_there_is_anyway_reports_a_hangup,
		a_connect_whose_events_cannot_be_read_fails,
		a_blocking_connect_whose_events_cannot_be_read_fails,
		a_connect_to_a_device_that_may_not_be_opened_says_so,
		a_connection_whose_events_cannot_be_read_ends,
		raccept_says_when_events_cannot_be_read_and_then_goes_on,
		who_waits_for_a_queue_that_cannot_be_armed_is_told,
		who_waits_for_a_queue_that_fails_as_it_is_armed_is_told,
		what_a_device_of_iwarp_does_not_take_is_told,
		a_queue_pair_that_was_taken_is_a_connection_that_was_reset,
		a_peer_whose_memory_was_taken_is_a_connection_that_was_reset,
		a_peer_that_answers_no_more_and_has_left_is_a_connection_that_was_reset,
		a_peer_that_answers_no_more_is_a_time_that_is_over,
		a_port_that_is_taken_is_followed_by_another,
		an_address_without_a_port_is_kept_with_each_of_them,
		a_port_to_listen_on_that_is_taken_is_followed_by_another,
		a_port_that_its_user_knows_is_the_only_one,
		a_port_that_was_given_is_the_only_one,
		the_end_of_ports_ends_the_attempt,
		one_that_was_refused_tries_again_from_where_it_is_bound,
		one_that_could_not_be_bound_is_as_new,
		no_address_is_a_fault_as_no_memory_is,
		a_listener_loses_its_device,
		a_device_of_iwarp_that_goes_is_the_reason,
		who_shuts_down_last_on_iwarp_has_no_error_when_the_peer_closes,
		a_device_of_iwarp_that_goes_is_the_reason_before_raccept_too,
		one_that_is_accepted_as_the_listeners_device_goes_goes_with_it,
		one_that_waits_for_raccept_keeps_no_device_and_what_it_received,
		a_completion_channel_that_is_lost_keeps_no_device,
		nobody_watches_a_completion_channel_that_is_lost,
		the_peers_address_is_known_when_its_device_is_not,
		closing_an_unanswered_request_waits_for_nobody,
		an_unanswered_request_that_nobody_looks_after_ends_with_its_rsocket,
		no_peer_has_the_memory_of_what_is_closed_unheard,
		an_idle_connection_is_asked_whether_its_peer_is_there,
		a_listener_hands_keepalives_on,
		a_reset_behind_some_bytes_is_told_by_the_next_call,
		who_only_looks_leaves_a_reset_to_the_next_call,
		raccept_says_once_of_what_there_is_too_little_for_a_peer,
		who_is_accepted_comes_before_a_want,
		raccept_says_nothing_of_a_peer_that_is_refused_for_itself,
		raccept_on_a_number_that_was_closed_behind_its_back_returns,
		a_larger_backlog_is_for_those_who_wait_already,
		a_child_has_no_rsockets_and_waits_for_none_of_its_parents_threads,
		no_program_gets_what_is_not_its_own,
	};

	return cm_main("rs_trouble", tests, sizeof(tests) / sizeof(tests[0]));
}
