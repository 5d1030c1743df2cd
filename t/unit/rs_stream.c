/* Streams of rsockets. */
#define _GNU_SOURCE
#include "unit/rs_flood.h"
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- one rsocket ----------------------------------------------------------------------------- */

START_TEST(rpoll_is_poll_on_plain_descriptors)
{
	struct pollfd fds[2] = { { .fd = -1, .events = POLLIN, .revents = 99 } };
	int pipefd[2];

	ck_assert_int_eq(pipe(pipefd), 0);
	fds[1] = (struct pollfd){ .fd = pipefd[0], .events = POLLIN };
	ck_assert_int_eq(rpoll(fds, 2, 0), 0);
	ck_assert_int_eq(fds[0].revents, 0);
	ck_assert_int_eq(rpoll(fds, 2, 1), 0);
	ck_assert_int_eq(write(pipefd[1], "x", 1), 1);
	ck_assert_int_eq(rpoll(fds, 2, -1), 1);
	ck_assert_int_eq(fds[1].revents, POLLIN);
	close(pipefd[0]);
	close(pipefd[1]);
	ck_assert_int_eq(rpoll(fds, 2, 0), 1);
	ck_assert_int_eq(fds[1].revents, POLLNVAL);
	ck_assert_fails(rpoll(NULL, (nfds_t)1 << 31, 0), EINVAL);
	ck_assert_int_eq(rpoll(NULL, 0, 0), 0);
}
END_TEST

START_TEST(what_is_no_rsocket_is_ebadf)
{
	char byte;

	ck_assert_fails(rclose(-1), EBADF);
	ck_assert_fails(rclose(0), EBADF);
	ck_assert_fails(rrecv(1 << 30, &byte, 1, 0), EBADF);
	ck_assert_fails(rsend(1000, &byte, 1, 0), EBADF);
}
END_TEST

START_TEST(other_domains_and_types_are_refused)
{
	ck_assert_fails(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	ck_assert_fails(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	ck_assert_fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);
	fake_device_remove(FAKE_ROCE);
	fake_device_add(FAKE_ROCE);
}
END_TEST

START_TEST(flags_that_would_be_missed_are_refused)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	ck_assert_fails(rrecv(fd, &byte, 1, MSG_ERRQUEUE), ENOTSUP);
	ck_assert_fails(rrecv(fd, &byte, 1, MSG_TRUNC), ENOTSUP);
	ck_assert_fails(rrecv(fd, &byte, 1, MSG_OOB), EINVAL);
	ck_assert_fails(rsend(fd, &byte, 1, MSG_OOB), ENOTSUP);
	ck_assert_fails(rsend(fd, &byte, 1, MSG_ZEROCOPY), ENOTSUP);
	ck_assert_fails(rsend(fd, &byte, 1, MSG_FASTOPEN), ENOTSUP);
	rclose(fd);
}
END_TEST

/* Stock rstream sends with MSG_WAITALL. */
START_TEST(flags_that_mean_nothing_change_nothing)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	ck_assert_fails(rrecv(fd, &byte, 1, MSG_CMSG_CLOEXEC | MSG_NOSIGNAL), ENOTCONN);
	ck_assert_fails(rsend(fd, &byte, 1, MSG_WAITALL | MSG_PEEK), ENOTCONN);
	ck_assert_fails(rsend(fd, &byte, 1, MSG_MORE | MSG_EOR | MSG_NOSIGNAL), ENOTCONN);
	rclose(fd);
}
END_TEST

START_TEST(a_new_one_is_not_connected)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	char byte = 0;

	ck_assert_fails(rrecv(fd, &byte, 1, 0), ENOTCONN);
	ck_assert_fails(rsend(fd, &byte, 1, 0), ENOTCONN);
	ck_assert_fails(rshutdown(fd, SHUT_RDWR), ENOTCONN);
	ck_assert_fails(rgetpeername(fd, (struct sockaddr *)&name, &len), ENOTCONN);
	ck_assert_fails(raccept(fd, NULL, NULL), EINVAL);
	ck_assert_int_eq(rs_events(fd, POLLIN | POLLOUT), POLLOUT | POLLHUP);
	ck_assert_ok(rclose(fd));
	ck_assert_fails(rclose(fd), EBADF);
}
END_TEST

START_TEST(flags_are_the_descriptors)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(rfcntl(fd, F_GETFL), O_RDWR);
	ck_assert_ok(rfcntl(fd, F_SETFL, O_NONBLOCK));
	ck_assert_int_eq(rfcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	ck_assert_int_eq(rfcntl(fd, F_GETFD), 0);
	ck_assert_ok(rclose(fd));
}
END_TEST

/* --- a pair ---------------------------------------------------------------------------------- */

START_TEST(bytes_pass_both_ways)
{
	const size_t sizes[] = { 1, 64, 65, 4096, 65536, 300000, 3000000 };
	struct rs_pair pair = rs_connect();
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rs_pass(pair.client, pair.server, sizes[i]);
		rs_pass(pair.server, pair.client, sizes[i]);
	}
	rs_close(&pair);
}
END_TEST

START_TEST(both_know_their_names)
{
	struct rs_pair pair = rs_connect();
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);

	ck_assert_ok(rgetsockname(pair.client, (struct sockaddr *)&own, &len));
	ck_assert_ok(rgetpeername(pair.server, (struct sockaddr *)&peer, &len));
	ck_assert_int_eq(own.sin_addr.s_addr, peer.sin_addr.s_addr);
	ck_assert_int_eq(own.sin_port, peer.sin_port);
	ck_assert_ok(rgetpeername(pair.client, (struct sockaddr *)&peer, &len));
	ck_assert_int_eq(ntohs(peer.sin_port), CM_PORT);
	rs_close(&pair);
}
END_TEST

START_TEST(the_end_of_one_direction_is_seen_after_its_bytes)
{
	struct rs_pair pair = rs_connect();
	char bytes[8];

	ck_assert_int_eq(rsend(pair.client, "four", 4, 0), 4);
	ck_assert_ok(rshutdown(pair.client, SHUT_WR));
	ck_assert_int_eq(rs_events(pair.server, POLLIN), POLLIN);
	ck_assert_int_eq(rrecv(pair.server, bytes, sizeof(bytes), MSG_PEEK), 4);
	ck_assert_int_eq(rrecv(pair.server, bytes, sizeof(bytes), 0), 4);
	ck_assert_int_eq(rrecv(pair.server, bytes, sizeof(bytes), 0), 0);
	ck_assert_fails(rsend(pair.client, "x", 1, 0), EPIPE);
	rs_pass(pair.server, pair.client, 1000);
	rs_close(&pair);
}
END_TEST

START_TEST(closing_is_an_end_to_the_peer)
{
	struct rs_pair pair = rs_connect();
	char byte;

	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert_ok(rclose(pair.client));
	pair.client = -1;
	ck_assert_int_eq(rs_await(pair.server, POLLRDHUP), POLLRDHUP | POLLHUP);
	ck_assert_int_eq(rs_events(pair.server, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLHUP);
	ck_assert_int_eq(rrecv(pair.server, &byte, 1, 0), 1);
	ck_assert_int_eq(rrecv(pair.server, &byte, 1, 0), 0);
	ck_assert_fails(rsend(pair.server, "x", 1, 0), ECONNRESET);
	rs_close(&pair);
}
END_TEST

START_TEST(a_full_window_is_not_writable_until_it_is_read)
{
	struct rs_pair pair = rs_connect();
	static char bytes[100000];
	size_t sent = 0, got = 0;
	ssize_t ret;

	while ((ret = rsend(pair.client, bytes, sizeof(bytes), 0)) > 0)
		sent += (size_t)ret;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rs_events(pair.client, POLLOUT), 0);
	while ((ret = rrecv(pair.server, bytes, sizeof(bytes), 0)) > 0)
		got += (size_t)ret;
	ck_assert_uint_eq(got, sent);
	ck_assert_int_eq(rs_events(pair.client, POLLOUT), POLLOUT);
	rs_pass(pair.client, pair.server, 1000);
	rs_close(&pair);
}
END_TEST

START_TEST(pieces_are_gathered_and_scattered)
{
	struct rs_pair pair = rs_connect();
	char one[3], two[5], ab[] = "ab", rest[] = "cdefgh";
	const struct iovec out[] = { { ab, 2 }, { NULL, 0 }, { rest, 6 } };
	const struct iovec in[] = { { one, sizeof(one) }, { two, sizeof(two) } };

	ck_assert_int_eq(rwritev(pair.client, out, 3), 8);
	ck_assert_int_eq(rreadv(pair.server, in, 2), 8);
	ck_assert_mem_eq(one, "abc", 3);
	ck_assert_mem_eq(two, "defgh", 5);
	rs_close(&pair);
}
END_TEST

START_TEST(a_refused_connection_is_told_once)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
	socklen_t len = sizeof(error);

	ck_assert_fails(
		rconnect(fd, cm_addr(FAKE_ROCE_IP, 1), sizeof(struct sockaddr_in)), EINPROGRESS);
	ck_assert_int_eq(rs_events(fd, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLERR | POLLHUP);
	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	ck_assert_int_eq(error, ECONNREFUSED);
	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	ck_assert_int_eq(error, 0);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(a_listener_that_closes_refuses_those_who_wait)
{
	int listener = rs_listener(), client = rs_client(), turns;

	for (turns = 0; turns < 4; turns++) {
		rs_events(client, POLLOUT);
		rs_events(listener, POLLIN);
	}
	ck_assert_ok(rclose(listener));
	ck_assert_int_eq(rs_await(client, POLLIN) & POLLIN, POLLIN);
	ck_assert_ok(rclose(client));
}
END_TEST

START_TEST(options_come_back_as_they_are_kept)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), value = 100000;
	socklen_t len = sizeof(value);

	ck_assert_ok(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)));
	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len));
	ck_assert_int_eq(value, 200000);
	value = 5;
	ck_assert_ok(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)));
	ck_assert_ok(rgetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, &len));
	ck_assert_int_eq(value, 16);
	value = 0;
	ck_assert_fails(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof(value)), EINVAL);
	ck_assert_fails(rsetsockopt(fd, 12345, 1, &value, sizeof(value)), ENOTSUP);
	ck_assert_ok(rclose(fd));
}
END_TEST

START_TEST(memory_that_is_shown_is_written_to)
{
	struct rs_pair pair = rs_connect_to_show();
	char memory[100] = "", bytes[] = "shown";

	ck_assert_int_eq(riomap(pair.server, memory, sizeof(memory), PROT_WRITE, 0, 7), 7);
	ck_assert_int_eq(rsend(pair.server, "x", 1, 0), 1);
	ck_assert_int_eq(rrecv(pair.client, bytes + 5, 1, 0), 1);
	ck_assert_uint_eq(riowrite(pair.client, "shown", 5, 10, 0), 5);
	ck_assert_mem_eq(memory + 3, "shown", 5);
	ck_assert_ok(riounmap(pair.server, memory, sizeof(memory)));
	ck_assert_fails(riounmap(pair.server, memory, sizeof(memory)), EINVAL);
	rs_close(&pair);
}
END_TEST

/* Nothing of it is kept, so that it never has to wait; while some is taken the next is there. */
START_TEST(who_reads_no_more_is_not_held_by_a_peer_that_never_pauses)
{
	struct rs_pair pair = rs_connect();

	ck_assert_ok(rshutdown(pair.server, SHUT_RD));
	rs_flood_from(pair.client, NULL);
	ck_assert_int_eq(rsend(pair.server, "y", 1, 0), 1);
	fake_meanwhile(NULL);
	rs_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		who_reads_no_more_is_not_held_by_a_peer_that_never_pauses,
		rpoll_is_poll_on_plain_descriptors,
		what_is_no_rsocket_is_ebadf,
		other_domains_and_types_are_refused,
		flags_that_would_be_missed_are_refused,
		flags_that_mean_nothing_change_nothing,
		a_new_one_is_not_connected,
		flags_are_the_descriptors,
		bytes_pass_both_ways,
		both_know_their_names,
		the_end_of_one_direction_is_seen_after_its_bytes,
		closing_is_an_end_to_the_peer,
		a_full_window_is_not_writable_until_it_is_read,
		pieces_are_gathered_and_scattered,
		a_refused_connection_is_told_once,
		a_listener_that_closes_refuses_those_who_wait,
		options_come_back_as_they_are_kept,
		memory_that_is_shown_is_written_to,
	};

	return cm_main("rs_stream", tests, sizeof(tests) / sizeof(tests[0]));
}
