/* Datagrams of rsockets: UDP is this machine's own, the queue pairs are the fake's. */
#include "unit/rs_dgram_unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, LARGEST4 = 2032, LARGEST6 = 2020, TURNS = 8, MANY_TURNS = 500 };

/* --- messages -------------------------------------------------------------------------------- */

START_TEST(the_first_ones_go_by_udp_and_then_by_queue_pairs)
{
	struct dgram_two two = dgram_make_two(0);
	struct sockaddr_in from;

	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 0);
	dgram_meet(&two);
	ck_assert_uint_eq(fake_live(FAKE_QP), 2);
	ck_assert_uint_eq(fake_live(FAKE_AH), 2);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 1);
	ck_assert_uint_eq(dgram_pass(two.b, two.a, &two.a_addr, 1000), 1);
	dgram_send_text(two.a, "who", &two.b_addr);
	dgram_expect_text(two.b, "who", &from);
	ck_assert_mem_eq(&from, &two.a_addr, sizeof(from));
	dgram_close_two(&two);
}
END_TEST

START_TEST(the_number_shows_what_there_is)
{
	struct dgram_two two = dgram_make_two(0);
	struct pollfd pfd = { .fd = two.b, .events = POLLIN | POLLOUT };
	char got[4];
	int i;

	ck_assert_ok(rfcntl(two.b, F_SETFL, O_RDWR | O_NONBLOCK));
	for (i = 0; i < TURNS; i++) {
		ck_assert_int_eq(poll(&pfd, 1, 0), 1);
		ck_assert_int_eq(pfd.revents, POLLOUT);
		dgram_send_text(two.a, "one", &two.b_addr);
		pfd.events = POLLIN;
		ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
		pfd.events = POLLIN | POLLOUT;
		ck_assert_int_eq(rrecv(two.b, got, sizeof(got), 0), 3);
		dgram_expect_nothing(two.b);
	}
	dgram_close_two(&two);
}
END_TEST

/* What a call takes before the thread has seen its event leaves the event behind. */
START_TEST(the_number_shows_what_comes_after_an_event_that_was_late)
{
	struct dgram_two two = dgram_make_two(0);
	struct pollfd pfd = { .fd = two.b, .events = POLLIN };
	char got[4];
	int i;

	dgram_meet(&two);
	ck_assert_ok(rfcntl(two.b, F_SETFL, O_RDWR | O_NONBLOCK));
	for (i = 0; i < MANY_TURNS; i++) {
		dgram_send_text(two.a, "one", &two.b_addr);
		while (rrecv(two.b, got, sizeof(got), 0) < 0)
			ck_assert_int_eq(errno, EAGAIN);
		dgram_send_text(two.a, "two", &two.b_addr);
		ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
		ck_assert_int_eq(rrecv(two.b, got, sizeof(got), 0), 3);
	}
	dgram_close_two(&two);
}
END_TEST

START_TEST(each_message_is_one)
{
	struct dgram_two two = dgram_make_two(0);
	char bytes[16];

	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 0), 1);
	dgram_send_text(two.a, "longer than that", &two.b_addr);
	dgram_await(two.b);
	ck_assert_int_eq(rrecv(two.b, bytes, 4, MSG_PEEK), 4);
	ck_assert_int_eq(rrecv(two.b, bytes, 4, MSG_PEEK | MSG_TRUNC), 16);
	ck_assert_int_eq(rrecv(two.b, bytes, 6, 0), 6);
	ck_assert_mem_eq(bytes, "longer", 6);
	dgram_expect_nothing(two.b);
	dgram_close_two(&two);
}
END_TEST

START_TEST(a_message_has_pieces_and_a_sender)
{
	struct dgram_two two = dgram_make_two(0);
	struct iovec out[2] = { { (void *)"one", 3 }, { (void *)"two", 3 } };
	char bytes[8] = "", more[8] = "";
	struct iovec in[2] = { { bytes, 2 }, { more, 3 } };
	struct sockaddr_in from = { 0 };
	struct msghdr msg = { .msg_name = &two.b_addr, .msg_namelen = sizeof(two.b_addr) };

	msg.msg_iov = out;
	msg.msg_iovlen = 2;
	ck_assert_int_eq(rsendmsg(two.a, &msg, 0), 6);
	dgram_await(two.b);
	msg = (struct msghdr){ .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = in };
	msg.msg_iovlen = 2;
	ck_assert_int_eq(rrecvmsg(two.b, &msg, 0), 5);
	ck_assert_str_eq(bytes, "on");
	ck_assert_str_eq(more, "etw");
	ck_assert_int_eq(msg.msg_flags, MSG_TRUNC);
	ck_assert_uint_eq(msg.msg_namelen, sizeof(from));
	ck_assert_mem_eq(&from, &two.a_addr, sizeof(from));
	dgram_close_two(&two);
}
END_TEST

START_TEST(what_is_longer_than_the_path_takes_goes_by_udp_and_no_longer)
{
	struct dgram_two two = dgram_make_two(0);
	static char bytes[LARGEST4 + 1];

	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 1016), 1);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 1017), 0);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, LARGEST4), 0);
	ck_assert_fails(rsendto(two.a, bytes, sizeof(bytes), 0, (struct sockaddr *)&two.b_addr,
				sizeof(two.b_addr)),
		EMSGSIZE);
	dgram_close_two(&two);
}
END_TEST

START_TEST(ipv6_has_a_longer_header)
{
	int a = rsocket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP), b = rsocket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	static char bytes[LARGEST6 + 1];
	socklen_t len = sizeof(addr);

	if (rbind(b, (struct sockaddr *)&addr, sizeof(addr))) {
		ck_assert_int_eq(errno, EADDRNOTAVAIL);
	} else {
		ck_assert_ok(rgetsockname(b, (struct sockaddr *)&addr, &len));
		ck_assert_ok(rconnect(a, (struct sockaddr *)&addr, len));
		ck_assert_int_eq(rsend(a, bytes, LARGEST6, 0), LARGEST6);
		dgram_await(b);
		ck_assert_int_eq(rrecv(b, bytes, sizeof(bytes), 0), LARGEST6);
		ck_assert_fails(rsend(a, bytes, LARGEST6 + 1, 0), EMSGSIZE);
	}
	ck_assert_ok(rclose(a));
	ck_assert_ok(rclose(b));
}
END_TEST

START_TEST(ipv6_hears_ipv4_by_its_mapped_address)
{
	int a = dgram_open_one(0), b = rsocket(AF_INET6, SOCK_DGRAM, 0), i;
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, from;
	socklen_t len = sizeof(any);
	struct sockaddr_in to, own = dgram_bind_to(a, DGRAM_HOST);

	ck_assert_ok(rbind(b, (struct sockaddr *)&any, sizeof(any)));
	ck_assert_ok(rgetsockname(b, (struct sockaddr *)&any, &len));
	to = dgram_place(DGRAM_HOST, ntohs(any.sin6_port));
	for (i = 0; i < TURNS; i++) {
		char byte;

		dgram_send_text(a, "x", &to);
		dgram_await(b);
		len = sizeof(from);
		ck_assert_int_eq(rrecvfrom(b, &byte, 1, 0, (struct sockaddr *)&from, &len), 1);
		ck_assert_uint_eq(len, sizeof(from));
		ck_assert(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
		ck_assert_int_eq(from.sin6_port, own.sin_port);
		ck_assert_int_eq(rsendto(b, "y", 1, 0, (struct sockaddr *)&from, len), 1);
		dgram_expect_text(a, "y", NULL);
	}
	ck_assert_uint_eq(fake_live(FAKE_AH), 2);
	ck_assert_ok(rclose(a));
	ck_assert_ok(rclose(b));
}
END_TEST

/* --- names and ends -------------------------------------------------------------------------- */

START_TEST(a_connected_one_hears_its_peer_only)
{
	struct dgram_two two = dgram_make_two(0);
	int other = dgram_open_one(0);

	dgram_meet(&two);
	ck_assert_fails(rshutdown(two.a, SHUT_RD), ENOTCONN);
	ck_assert_fails(rsend(two.a, "x", 1, 0), EDESTADDRREQ);
	ck_assert_ok(rconnect(two.a, (struct sockaddr *)&two.b_addr, sizeof(two.b_addr)));
	dgram_send_text(other, "no", &two.a_addr);
	dgram_expect_none_until(two.a, two.b, &two.a_addr);
	ck_assert_int_eq(rsend(two.a, "yes", 3, 0), 3);
	dgram_expect_text(two.b, "yes", NULL);
	ck_assert_ok(rshutdown(two.a, SHUT_RDWR));
	ck_assert_fails(rsend(two.a, "x", 1, 0), EPIPE);
	ck_assert_int_eq(rrecv(two.a, (char[1]){ 0 }, 1, 0), 0);
	ck_assert_ok(rclose(other));
	dgram_close_two(&two);
}
END_TEST

START_TEST(a_stranger_on_the_queue_pair_of_a_connected_one_is_not_heard)
{
	struct dgram_two two = dgram_make_two(0), others = dgram_make_two(0);

	dgram_meet(&two);
	others.a_addr = two.a_addr;
	dgram_send_text(others.b, "hello", &two.a_addr);
	dgram_expect_text(two.a, "hello", NULL);
	dgram_meet(&(struct dgram_two){ two.a, others.b, two.a_addr, others.b_addr });
	ck_assert_ok(rconnect(two.a, (struct sockaddr *)&two.b_addr, sizeof(two.b_addr)));
	ck_assert_uint_eq(fake_live(FAKE_AH), 4);
	dgram_send_text(others.b, "no", &two.a_addr);
	dgram_expect_none_until(two.a, two.b, &two.a_addr);
	dgram_expect_nothing(two.a);
	dgram_close_two(&others);
	dgram_close_two(&two);
}
END_TEST

START_TEST(a_port_that_is_closed_refuses)
{
	struct dgram_two two = dgram_make_two(0);
	struct pollfd pfd = { .fd = two.a, .events = POLLIN };
	char byte;

	ck_assert_ok(rconnect(two.a, (struct sockaddr *)&two.b_addr, sizeof(two.b_addr)));
	ck_assert_ok(rclose(two.b));
	ck_assert_int_eq(rsend(two.a, "x", 1, 0), 1);
	ck_assert_int_eq(rpoll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents, POLLERR);
	ck_assert_fails(rrecv(two.a, &byte, 1, 0), ECONNREFUSED);
	dgram_expect_nothing(two.a);
	ck_assert_ok(rclose(two.a));
}
END_TEST

static void expect_no_mappings(int fd)
{
	char memory[8];

	ck_assert_fails(riomap(fd, memory, sizeof(memory), PROT_WRITE, 0, 0), EOPNOTSUPP);
	ck_assert_fails(riounmap(fd, memory, sizeof(memory)), EOPNOTSUPP);
	ck_assert_fails(riowrite(fd, "x", 1, 0, 0), EOPNOTSUPP);
}

START_TEST(mappings_are_not_for_datagrams)
{
	int fd = dgram_open_one(0);
	struct sockaddr_in addr;

	expect_no_mappings(fd);
	addr = dgram_bind_to(fd, DGRAM_HOST);
	expect_no_mappings(fd);
	ck_assert_ok(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	expect_no_mappings(fd);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(what_is_of_streams_is_not_for_datagrams)
{
	int fd = dgram_open_one(0), value = 0;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(rs_events(fd, POLLIN | POLLOUT), POLLOUT);
	ck_assert_fails(rlisten(fd, 1), EOPNOTSUPP);
	ck_assert_fails(raccept(fd, NULL, NULL), EOPNOTSUPP);
	dgram_bind_to(fd, DGRAM_HOST);
	ck_assert_fails(rsend(fd, "x", 1, MSG_OOB), EOPNOTSUPP);
	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	ck_assert_int_eq(value, SOCK_DGRAM);
	ck_assert_fails(rsetsockopt(fd, IPPROTO_UDP, 1, &value, len), ENOTSUP);
	ck_assert_ok(rclose(fd));
	ck_assert_fails(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), ENOTSUP);
}
END_TEST

static void wait_in_vain(const struct timeval *limit)
{
	int fd = dgram_open_one(0);
	char byte;

	dgram_bind_to(fd, DGRAM_HOST);
	ck_assert_ok(rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, limit, sizeof(*limit)));
	ck_assert_fails(rrecv(fd, &byte, 1, 0), EAGAIN);
	ck_assert_ok(rclose(fd));
}

START_TEST(a_wait_ends_at_its_time)
{
	wait_in_vain(&(struct timeval){ .tv_usec = 2000 });
}
END_TEST

static void *send_later(void *arg)
{
	const struct dgram_two *two = arg;

	usleep(50000);
	dgram_send_text(two->b, "later", &two->a_addr);
	return NULL;
}

/* In microseconds it is 3136 more than what 64 bits hold. */
START_TEST(a_time_of_millions_of_years_is_waited_for)
{
	const struct timeval ages = { .tv_sec = 534955578137577 };
	struct dgram_two two = dgram_make_two(0);
	pthread_t thread;
	char byte;

	ck_assert_ok(rsetsockopt(two.a, SOL_SOCKET, SO_RCVTIMEO, &ages, sizeof(ages)));
	ck_assert_ok(pthread_create(&thread, NULL, send_later, &two));
	ck_assert_int_eq(rrecv(two.a, &byte, 1, 0), 1);
	ck_assert_ok(pthread_join(thread, NULL));
	dgram_close_two(&two);
}
END_TEST

START_TEST(who_gives_less_than_no_time_does_not_wait)
{
	wait_in_vain(&(struct timeval){ .tv_sec = -1 });
}
END_TEST

/* --- others ---------------------------------------------------------------------------------- */

START_TEST(what_is_no_message_is_dropped)
{
	struct dgram_two two = dgram_make_two(0);
	uint8_t good[20] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 17, 127, 0, 0, 1 };
	static uint8_t large[4096];
	size_t i;

	for (i = 0; i < 16; i++)
		dgram_send_plain(DGRAM_HOST, good, i, &two.a_addr);
	for (i = 0; i < 7; i++) {
		good[i] ^= 0x0a;
		dgram_send_plain(DGRAM_HOST, good, sizeof(good), &two.a_addr);
		good[i] ^= 0x0a;
	}
	good[5] = 7;
	dgram_send_plain(DGRAM_HOST, good, sizeof(good), &two.a_addr);
	good[5] = 0;
	memcpy(large, good, sizeof(good));
	dgram_send_plain(DGRAM_HOST, large, sizeof(large), &two.a_addr);
	dgram_expect_none_until(two.a, two.b, &two.a_addr);
	dgram_close_two(&two);
}
END_TEST

START_TEST(queue_pairs_that_are_not_for_messages_are_not_believed)
{
	const uint32_t nobody[] = { 0, 1, 0xffffff };
	struct dgram_two two = dgram_make_two(0);
	unsigned before = fake_calls("CREATE_ID");
	size_t i;

	for (i = 0; i < 3; i++) {
		uint8_t message[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0,
			(uint8_t)(nobody[i] >> 16), (uint8_t)(nobody[i] >> 8), (uint8_t)nobody[i],
			127, 0, 0, 1, 'x' };

		dgram_send_plain(DGRAM_HOST, message, sizeof(message), &two.a_addr);
		dgram_expect_text(two.a, "x", NULL);
	}
	ck_assert_uint_eq(fake_live(FAKE_AH), 0);
	ck_assert_uint_le(fake_calls("CREATE_ID") - before, 1);
	dgram_close_two(&two);
}
END_TEST

START_TEST(more_than_there_is_room_for_is_lost_and_the_rest_is_whole)
{
	struct dgram_two two = dgram_make_two(0);
	int small = 4 * 2048 / 2, i, num = 0;
	char byte;

	ck_assert_ok(rsetsockopt(two.b, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	dgram_meet(&two);
	for (i = 0; i < 20; i++)
		dgram_send_text(two.a, "x", &two.b_addr);
	dgram_await(two.b);
	while (rrecv(two.b, &byte, 1, MSG_DONTWAIT) == 1)
		num++;
	ck_assert_int_eq(num, 4);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 100), 1);
	dgram_close_two(&two);
}
END_TEST

/* --- devices --------------------------------------------------------------------------------- */

/* Each asks the CM now and then only; what it sends before is lost. */
static void await_departure(const struct dgram_two *two)
{
	do {
		ck_assert_int_eq(rs_events(two->a, POLLIN), 0);
		ck_assert_int_eq(rs_events(two->b, POLLIN), 0);
	} while (!fake_device_gone(FAKE_ROCE));
}

START_TEST(without_a_device_it_goes_by_udp_until_there_is_one)
{
	struct dgram_two two = dgram_make_two(0);

	dgram_meet(&two);
	fake_device_remove(FAKE_ROCE);
	await_departure(&two);
	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 0);
	fake_device_add(FAKE_ROCE);
	usleep(1100000);
	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 1);
	dgram_close_two(&two);
}
END_TEST

START_TEST(queues_that_the_device_has_not_are_as_long_as_it_has)
{
	struct dgram_two two = dgram_make_two(0);

	fake_device_attr(FAKE_ROCE)->max_cqe = 8;
	dgram_meet(&two);
	ck_assert_uint_eq(dgram_pass(two.a, two.b, &two.b_addr, 10), 1);
	dgram_close_two(&two);
}
END_TEST

static void fail_poll(void *arg)
{
	fake_fail_next("ibv_poll_cq", EIO);
}

/* The next call that may fail is to arm its queue. */
START_TEST(who_waits_for_a_place_in_a_queue_that_fails_sends_by_udp)
{
	struct dgram_two two = dgram_make_two(0);
	const struct sockaddr *to = (struct sockaddr *)&two.b_addr;
	int small = 4 * 2048 / 2, num = 0;

	ck_assert_ok(rsetsockopt(two.a, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	dgram_meet(&two);
	fake_work_by_hand(true);
	while (rsendto(two.a, "lost", 4, MSG_DONTWAIT, to, sizeof(two.b_addr)) == 4)
		ck_assert_int_lt(num++, 4);
	ck_assert_int_eq(errno, EAGAIN);
	fake_at_nth(FAKE_VERBS, 1, fail_poll, NULL);
	ck_assert_int_eq(rsendto(two.a, "by udp", 6, 0, to, sizeof(two.b_addr)), 6);
	fake_work_by_hand(false);
	dgram_expect_text(two.b, "by udp", NULL);
	dgram_close_two(&two);
}
END_TEST

/* One way, without waiting for what may be lost. */
static void try_to_pass(int from, int to, const struct sockaddr_in *addr)
{
	char byte;

	rsendto(from, "x", 1, 0, (const struct sockaddr *)addr, sizeof(*addr));
	rs_events(to, POLLIN);
	rrecv(to, &byte, 1, MSG_DONTWAIT);
}

/* A queue pair that fails takes what is in it with it; nothing else comes of it. */
START_TEST(whatever_fails_nothing_is_left)
{
	const char *failed;
	unsigned n = 0;
	int i;

	do {
		struct dgram_two two = dgram_make_two(0);

		n++;
		fake_fail_nth(FAKE_ANY, n, n % 2 ? ENOMEM : EIO);
		for (i = 0; i < TURNS; i++) {
			try_to_pass(two.a, two.b, &two.b_addr);
			try_to_pass(two.b, two.a, &two.a_addr);
		}
		failed = fake_failed();
		fake_fail_nth(FAKE_ANY, 0, 0);
		dgram_close_two(&two);
		ck_assert_uint_eq(fake_live(FAKE_QP) + fake_live(FAKE_AH) + fake_live(FAKE_ID), 0);
	} while (failed);
	ck_assert_uint_gt(n, 20);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_first_ones_go_by_udp_and_then_by_queue_pairs,
		the_number_shows_what_there_is,
		the_number_shows_what_comes_after_an_event_that_was_late,
		each_message_is_one,
		a_message_has_pieces_and_a_sender,
		what_is_longer_than_the_path_takes_goes_by_udp_and_no_longer,
		ipv6_has_a_longer_header,
		ipv6_hears_ipv4_by_its_mapped_address,
		a_connected_one_hears_its_peer_only,
		a_stranger_on_the_queue_pair_of_a_connected_one_is_not_heard,
		a_port_that_is_closed_refuses,
		mappings_are_not_for_datagrams,
		what_is_of_streams_is_not_for_datagrams,
		a_wait_ends_at_its_time,
		a_time_of_millions_of_years_is_waited_for,
		who_gives_less_than_no_time_does_not_wait,
		what_is_no_message_is_dropped,
		queue_pairs_that_are_not_for_messages_are_not_believed,
		more_than_there_is_room_for_is_lost_and_the_rest_is_whole,
		without_a_device_it_goes_by_udp_until_there_is_one,
		queues_that_the_device_has_not_are_as_long_as_it_has,
		who_waits_for_a_place_in_a_queue_that_fails_sends_by_udp,
		whatever_fails_nothing_is_left,
	};

	return cm_main("rs_dgram", tests, sizeof(tests) / sizeof(tests[0]));
}
