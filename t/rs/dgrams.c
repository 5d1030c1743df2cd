#include "config.h"

#include "rs/dgrams.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, ROUNDS = 50, SIZE = 1000 };

struct dgram_place dgram_place;

/* --- the calls of both ----------------------------------------------------------------------- */

static int udp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int udp_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

static ssize_t udp_send_to(int fd, const void *buf, size_t len, int flags,
	const struct sockaddr *addr, socklen_t addrlen)
{
	return sendto(fd, buf, len, flags | MSG_NOSIGNAL, addr, addrlen);
}

static ssize_t udp_recv_from(
	int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen)
{
	return recvfrom(fd, buf, len, flags, addr, addrlen);
}

static int udp_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len);
}

static int udp_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len);
}

const struct dgram_calls dgram_calls_udp = {
	.name = "udp",
	.socket = socket,
	.bind = udp_bind,
	.connect = udp_connect,
	.listen = listen,
	.shutdown = shutdown,
	.close = close,
	.poll = poll,
	.send_to = udp_send_to,
	.recv_from = udp_recv_from,
	.getsockopt = getsockopt,
	.getsockname = udp_getsockname,
	.getpeername = udp_getpeername,
};

const struct dgram_calls dgram_calls_rs = {
	.name = "rs",
	.is_rs = true,
	.socket = rsocket,
	.bind = rbind,
	.connect = rconnect,
	.listen = rlisten,
	.shutdown = rshutdown,
	.close = rclose,
	.poll = rpoll,
	.send_to = rsendto,
	.recv_from = rrecvfrom,
	.getsockopt = rgetsockopt,
	.getsockname = rgetsockname,
	.getpeername = rgetpeername,
};

static const struct dgram_calls *call(void)
{
	return dgram_place.calls;
}

/* --- steps ----------------------------------------------------------------------------------- */

#define expect_error(expr, error)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq((expr), -1);                                                      \
		ck_assert_int_eq(errno, (error));                                                  \
	} while (0)

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, dgram_place.ip, &addr.sin_addr);
	return addr;
}

static int new_one(int type)
{
	int fd = call()->socket(AF_INET, SOCK_DGRAM | type, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int bound(int type, struct sockaddr_in *addr)
{
	int fd = new_one(type);
	socklen_t len = sizeof(*addr);

	*addr = place(0);
	ck_assert_int_eq(call()->bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	ck_assert_int_eq(call()->getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static ssize_t send_to(int fd, const void *bytes, size_t len, const struct sockaddr_in *to)
{
	return call()->send_to(
		fd, bytes, len, 0, (const struct sockaddr *)to, to ? sizeof(*to) : 0);
}

static ssize_t receive(int fd, void *bytes, size_t len, int flags)
{
	return call()->recv_from(fd, bytes, len, flags, NULL, NULL);
}

static void await(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(call()->poll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents & events, events);
}

/* What poll(2) itself says of the number comes to be this. */
static void expect_events(int fd, int wanted)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };
	int waited = 0;

	do {
		ck_assert_int_ge(poll(&pfd, 1, 0), 0);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	} while (pfd.revents != wanted && waited++ < PATIENCE_MS);
	ck_assert_int_eq(pfd.revents, wanted);
}

/* --- the suite ------------------------------------------------------------------------------- */

START_TEST(echoes_come_back_from_where_they_went)
{
	struct sockaddr_in a_addr, b_addr, from;
	int a = bound(0, &a_addr), b = bound(SOCK_NONBLOCK, &b_addr), i;
	char sent[SIZE], got[SIZE + 1];
	socklen_t len;

	for (i = 0; i < ROUNDS; i++) {
		memset(sent, i, sizeof(sent));
		ck_assert_int_eq(send_to(a, sent, sizeof(sent), &b_addr), SIZE);
		await(b, POLLIN);
		len = sizeof(from);
		ck_assert_int_eq(
			call()->recv_from(b, got, sizeof(got), 0, (struct sockaddr *)&from, &len),
			SIZE);
		ck_assert_uint_eq(len, sizeof(from));
		ck_assert_mem_eq(&from, &a_addr, sizeof(from));
		ck_assert_int_eq(send_to(b, got, SIZE, &from), SIZE);
		ck_assert_int_eq(receive(a, got, sizeof(got), 0), SIZE);
		ck_assert_mem_eq(sent, got, SIZE);
	}
	ck_assert_int_eq(call()->close(a), 0);
	ck_assert_int_eq(call()->close(b), 0);
}
END_TEST

START_TEST(a_message_is_whole_or_cut_and_may_be_empty)
{
	struct sockaddr_in addr;
	int a = new_one(0), b = bound(0, &addr);
	char got[8];

	ck_assert_int_eq(send_to(a, "message", 7, &addr), 7);
	ck_assert_int_eq(receive(b, got, 3, MSG_PEEK), 3);
	ck_assert_int_eq(receive(b, got, 3, MSG_PEEK | MSG_TRUNC), 7);
	ck_assert_int_eq(receive(b, got, 4, 0), 4);
	expect_error(receive(b, got, 8, MSG_DONTWAIT), EAGAIN);
	ck_assert_int_eq(send_to(a, "", 0, &addr), 0);
	await(b, POLLIN);
	ck_assert_int_eq(receive(b, got, 8, 0), 0);
	ck_assert_int_eq(call()->close(a), 0);
	ck_assert_int_eq(call()->close(b), 0);
}
END_TEST

START_TEST(bad_arguments_are_told)
{
	struct sockaddr_in addr = place(0);
	struct sockaddr_in6 other = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	static char large[70000];
	int fd = new_one(0);

	expect_error(send_to(fd, "x", 1, NULL), EDESTADDRREQ);
	expect_error(send_to(fd, "x", 1, &addr), EINVAL);
	addr = place(7);
	expect_error(call()->send_to(fd, "x", 1, 0, (struct sockaddr *)&addr, 4), EINVAL);
	expect_error(call()->send_to(fd, "x", 1, 0, (struct sockaddr *)&other, sizeof(other)),
		EAFNOSUPPORT);
	expect_error(send_to(fd, large, sizeof(large), &addr), EMSGSIZE);
	expect_error(call()->send_to(fd, "x", 1, MSG_OOB, (struct sockaddr *)&addr, sizeof(addr)),
		EOPNOTSUPP);
	expect_error(call()->listen(fd, 1), EOPNOTSUPP);
	expect_error(call()->shutdown(fd, SHUT_WR), ENOTCONN);
	addr.sin_addr.s_addr = htonl(0x01020304);
	expect_error(call()->bind(fd, (struct sockaddr *)&addr, sizeof(addr)), EADDRNOTAVAIL);
	ck_assert_int_eq(call()->close(fd), 0);
	expect_error(call()->close(fd), EBADF);
}
END_TEST

START_TEST(names_are_there_when_they_are_chosen)
{
	struct sockaddr_in addr, name;
	int a = new_one(0), b = bound(0, &addr);
	socklen_t len = sizeof(name);

	expect_error(call()->getpeername(a, (struct sockaddr *)&name, &len), ENOTCONN);
	expect_error(call()->bind(b, (struct sockaddr *)&addr, sizeof(addr)), EINVAL);
	expect_error(call()->bind(a, (struct sockaddr *)&addr, sizeof(addr)), EADDRINUSE);
	ck_assert_int_eq(call()->connect(a, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(call()->getpeername(a, (struct sockaddr *)&name, &len), 0);
	ck_assert_mem_eq(&name, &addr, sizeof(name));
	ck_assert_int_eq(call()->getsockname(a, (struct sockaddr *)&name, &len), 0);
	ck_assert_int_eq(name.sin_addr.s_addr, addr.sin_addr.s_addr);
	ck_assert_int_ne(name.sin_port, 0);
	name.sin_family = AF_UNSPEC;
	ck_assert_int_eq(call()->connect(a, (struct sockaddr *)&name, sizeof(name)), 0);
	expect_error(call()->getpeername(a, (struct sockaddr *)&name, &len), ENOTCONN);
	ck_assert_int_eq(call()->close(a), 0);
	ck_assert_int_eq(call()->close(b), 0);
}
END_TEST

START_TEST(a_port_that_is_closed_is_refused_once)
{
	struct sockaddr_in addr;
	int a = new_one(0), b = bound(0, &addr), error = 0;
	socklen_t len = sizeof(error);
	char byte;

	ck_assert_int_eq(call()->connect(a, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(call()->close(b), 0);
	ck_assert_int_eq(send_to(a, "x", 1, NULL), 1);
	await(a, POLLERR);
	expect_error(receive(a, &byte, 1, 0), ECONNREFUSED);
	ck_assert_int_eq(send_to(a, "x", 1, NULL), 1);
	await(a, POLLERR);
	ck_assert_int_eq(call()->getsockopt(a, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	ck_assert_int_eq(error, ECONNREFUSED);
	expect_error(receive(a, &byte, 1, MSG_DONTWAIT), EAGAIN);
	ck_assert_int_eq(call()->close(a), 0);
}
END_TEST

START_TEST(what_is_shut_down_ends)
{
	struct sockaddr_in addr;
	int a = new_one(0), b = bound(0, &addr);
	char byte;

	ck_assert_int_eq(call()->connect(a, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(call()->shutdown(a, SHUT_WR), 0);
	expect_error(send_to(a, "x", 1, NULL), EPIPE);
	ck_assert_int_eq(call()->shutdown(a, SHUT_RD), 0);
	ck_assert_int_eq(receive(a, &byte, 1, 0), 0);
	await(a, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	ck_assert_int_eq(call()->close(a), 0);
	ck_assert_int_eq(call()->close(b), 0);
}
END_TEST

START_TEST(the_number_is_readable_as_long_as_there_is_a_message)
{
	struct sockaddr_in addr;
	int a = new_one(0), b = bound(SOCK_NONBLOCK, &addr), i;
	char byte;

	for (i = 0; i < ROUNDS / 5; i++) {
		expect_events(b, POLLOUT);
		ck_assert_int_eq(send_to(a, "x", 1, &addr), 1);
		ck_assert_int_eq(send_to(a, "y", 1, &addr), 1);
		expect_events(b, POLLIN | POLLOUT);
		ck_assert_int_eq(receive(b, &byte, 1, 0), 1);
		ck_assert_int_eq(
			poll(&(struct pollfd){ .fd = b, .events = POLLIN }, 1, PATIENCE_MS), 1);
		ck_assert_int_eq(receive(b, &byte, 1, 0), 1);
		expect_error(receive(b, &byte, 1, 0), EAGAIN);
	}
	expect_events(b, POLLOUT);
	ck_assert_int_eq(call()->close(a), 0);
	ck_assert_int_eq(call()->close(b), 0);
}
END_TEST

TCase *dgrams_case(void)
{
	TCase *cases = tcase_create(dgram_place.calls->name);

	tcase_set_timeout(cases, 600);
	tcase_add_test(cases, echoes_come_back_from_where_they_went);
	tcase_add_test(cases, a_message_is_whole_or_cut_and_may_be_empty);
	tcase_add_test(cases, bad_arguments_are_told);
	tcase_add_test(cases, names_are_there_when_they_are_chosen);
	tcase_add_test(cases, a_port_that_is_closed_is_refused_once);
	tcase_add_test(cases, what_is_shut_down_ends);
	tcase_add_test(cases, the_number_is_readable_as_long_as_there_is_a_message);
	return cases;
}
