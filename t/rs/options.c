#include "config.h"

#include "rs/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

/* --- what is the same, and what is not ------------------------------------------------------- */

/* A number that is kept, and what is got for it, by TCP and by an rsocket. */
static const struct kept {
	const char *name;
	int domain, level, option, given, tcp, rs;
} kepts[] = {
	{ "SO_REUSEADDR", AF_INET, SOL_SOCKET, SO_REUSEADDR, 1, 1, 1 },
	{ "SO_REUSEADDR", AF_INET, SOL_SOCKET, SO_REUSEADDR, 0, 0, 0 },
	{ "SO_KEEPALIVE", AF_INET, SOL_SOCKET, SO_KEEPALIVE, 7, 1, 1 },
	{ "SO_OOBINLINE", AF_INET, SOL_SOCKET, SO_OOBINLINE, 1, 1, 1 },
	{ "SO_BROADCAST", AF_INET, SOL_SOCKET, SO_BROADCAST, 1, 1, 1 },
	{ "SO_RCVBUF", AF_INET, SOL_SOCKET, SO_RCVBUF, 20000, 40000, 40000 },
	{ "SO_SNDBUF", AF_INET, SOL_SOCKET, SO_SNDBUF, 20000, 40000, 40000 },
	{ "the least SO_SNDBUF", AF_INET, SOL_SOCKET, SO_SNDBUF, 100, 4608, 4096 },
	{ "TCP_NODELAY", AF_INET, IPPROTO_TCP, TCP_NODELAY, 1, 1, 1 },
	{ "TCP_KEEPIDLE", AF_INET, IPPROTO_TCP, TCP_KEEPIDLE, 60, 60, 60 },
	{ "TCP_KEEPINTVL", AF_INET, IPPROTO_TCP, TCP_KEEPINTVL, 5, 5, 5 },
	{ "TCP_KEEPCNT", AF_INET, IPPROTO_TCP, TCP_KEEPCNT, 3, 3, 3 },
	{ "IP_TOS", AF_INET, IPPROTO_IP, IP_TOS, 0x10, 0x10, 0x10 },
	{ "IPV6_V6ONLY", AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, 1, 1, 1 },
};

/* A number that is refused, with which error. */
static const struct refused {
	const char *name;
	int level, option, given, tcp, rs;
} refuseds[] = {
	{ "TCP_KEEPIDLE of 0", IPPROTO_TCP, TCP_KEEPIDLE, 0, EINVAL, EINVAL },
	{ "TCP_KEEPIDLE of too much", IPPROTO_TCP, TCP_KEEPIDLE, 32768, EINVAL, EINVAL },
	{ "TCP_KEEPINTVL of 0", IPPROTO_TCP, TCP_KEEPINTVL, 0, EINVAL, EINVAL },
	{ "TCP_KEEPCNT of 0", IPPROTO_TCP, TCP_KEEPCNT, 0, EINVAL, EINVAL },
	{ "TCP_KEEPCNT of too much", IPPROTO_TCP, TCP_KEEPCNT, 128, EINVAL, EINVAL },
	{ "SO_TYPE", SOL_SOCKET, SO_TYPE, 1, ENOPROTOOPT, ENOTSUP },
	{ "SO_ERROR", SOL_SOCKET, SO_ERROR, 1, ENOPROTOOPT, ENOTSUP },
	{ "TCP_INFO", IPPROTO_TCP, TCP_INFO, 1, ENOPROTOOPT, ENOTSUP },
	{ "no option of sockets", SOL_SOCKET, 9999, 1, ENOPROTOOPT, ENOTSUP },
	{ "no option of TCP", IPPROTO_TCP, 9999, 1, ENOPROTOOPT, ENOTSUP },
	{ "no option of IP", IPPROTO_IP, 9999, 1, ENOPROTOOPT, ENOTSUP },
};

/* What is only got, of a new one. */
static const struct shown {
	const char *name;
	int level, option, value;
} showns[] = {
	{ "SO_TYPE", SOL_SOCKET, SO_TYPE, SOCK_STREAM },
	{ "SO_DOMAIN", SOL_SOCKET, SO_DOMAIN, AF_INET },
	{ "SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL, IPPROTO_TCP },
	{ "SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN, 0 },
	{ "SO_ERROR", SOL_SOCKET, SO_ERROR, 0 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 0 },
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 0 },
};

#define LEN(of) (sizeof(of) / sizeof((of)[0]))

/* --- steps ----------------------------------------------------------------------------------- */

static const struct rs_calls *calls;
static const char *ip, *tcp_ip, *rs_ip;

static void use_tcp(void)
{
	calls = &rs_calls_tcp;
	ip = tcp_ip;
}

static void use_rs(void)
{
	calls = &rs_calls_rs;
	ip = rs_ip;
}

static int open_one(int domain, int flags)
{
	int fd = calls->socket(domain, SOCK_STREAM | flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int get(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(calls->getsockopt(fd, level, option, &value, &len), 0);
	ck_assert_uint_eq(len, sizeof(value));
	return value;
}

static int set(int fd, int level, int option, int value)
{
	return calls->setsockopt(fd, level, option, &value, sizeof(value)) ? errno : 0;
}

static struct sockaddr_in place(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &addr.sin_addr);
	return addr;
}

static int listen_on(struct sockaddr_in *addr, int fd)
{
	socklen_t len = sizeof(*addr);

	*addr = place(0);
	ck_assert_int_eq(calls->bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	ck_assert_int_eq(calls->listen(fd, 4), 0);
	ck_assert_int_eq(calls->getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static void wait_for(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents, events);
}

struct pair {
	int listener, client, server;
};

static struct pair make_pair(int listener)
{
	struct sockaddr_in addr;
	struct pair pair = { .listener = listen_on(&addr, listener) };

	pair.client = open_one(AF_INET, SOCK_NONBLOCK);
	ck_assert_int_eq(calls->connect(pair.client, (struct sockaddr *)&addr, sizeof(addr)), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	wait_for(pair.listener, POLLIN);
	pair.server = calls->accept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	wait_for(pair.client, POLLOUT);
	return pair;
}

static void end_pair(const struct pair *pair)
{
	ck_assert_int_eq(calls->close(pair->client), 0);
	ck_assert_int_eq(calls->close(pair->server), 0);
	ck_assert_int_eq(calls->close(pair->listener), 0);
}

/* --- options --------------------------------------------------------------------------------- */

START_TEST(a_number_that_is_set_is_got)
{
	const struct kept *kept = &kepts[_i];
	int fd = open_one(kept->domain, 0);

	ck_assert_msg(!set(fd, kept->level, kept->option, kept->given), "%s", kept->name);
	ck_assert_msg(get(fd, kept->level, kept->option) == (calls->is_rs ? kept->rs : kept->tcp),
		"%s: %d", kept->name, get(fd, kept->level, kept->option));
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
	const struct refused *refused = &refuseds[_i];
	int fd = open_one(AF_INET, 0);
	int error = set(fd, refused->level, refused->option, refused->given);

	ck_assert_msg(error == (calls->is_rs ? refused->rs : refused->tcp), "%s: %s", refused->name,
		strerror(error));
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(a_new_one_says_what_it_is)
{
	const struct shown *shown = &showns[_i];
	int fd = open_one(AF_INET, 0);

	ck_assert_msg(get(fd, shown->level, shown->option) == shown->value, "%s", shown->name);
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(a_value_has_to_be_there_and_to_be_long_enough)
{
	int fd = open_one(AF_INET, 0), value = 1;
	uint8_t tos = 0x10;

	ck_assert_int_eq(calls->setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, 2), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(calls->setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(calls->setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof(value)), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(calls->setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, NULL, sizeof(value)), -1);
	ck_assert_int_eq(errno, EFAULT);
	ck_assert_int_eq(calls->setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
	ck_assert_int_eq(get(fd, IPPROTO_IP, IP_TOS), 0x10);
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(a_value_is_got_as_far_as_there_is_room)
{
	int fd = open_one(AF_INET, 0), value = -1;
	socklen_t len = 1;

	ck_assert_int_eq(calls->getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	ck_assert_uint_eq(len, 1);
	ck_assert_int_eq(*(uint8_t *)&value, SOCK_STREAM);
	len = 100;
	ck_assert_int_eq(calls->getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	ck_assert_uint_eq(len, sizeof(value));
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(linger_is_kept_as_a_whole)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 3 }, got = { 0 };
	int fd = open_one(AF_INET, 0);
	socklen_t len = sizeof(got);

	ck_assert_int_eq(calls->setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	ck_assert_int_eq(calls->getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &len), 0);
	ck_assert_uint_eq(len, sizeof(got));
	ck_assert_mem_eq(&got, &linger, sizeof(got));
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

static uint8_t state_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0xff, sizeof(info));
	ck_assert_int_eq(calls->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	ck_assert_uint_gt(len, offsetof(struct tcp_info, tcpi_snd_cwnd));
	return info.tcpi_state;
}

START_TEST(the_state_is_that_of_tcp)
{
	int fd = open_one(AF_INET, 0);
	struct pair pair = make_pair(open_one(AF_INET, SOCK_NONBLOCK));

	ck_assert_uint_eq(state_of(fd), TCP_CLOSE);
	ck_assert_uint_eq(state_of(pair.listener), TCP_LISTEN);
	ck_assert_uint_eq(state_of(pair.client), TCP_ESTABLISHED);
	ck_assert_uint_eq(state_of(pair.server), TCP_ESTABLISHED);
	ck_assert_int_eq(calls->shutdown(pair.client, SHUT_WR), 0);
	ck_assert_int_eq(calls->fcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	wait_for(pair.server, POLLIN);
	ck_assert_uint_eq(state_of(pair.server), TCP_CLOSE_WAIT);
	ck_assert_int_eq(calls->close(fd), 0);
	end_pair(&pair);
}
END_TEST

/* Which algorithm is of no consequence without packets to lose. */
START_TEST(a_control_of_congestion_may_be_asked_for)
{
	int fd = open_one(AF_INET, 0);

	ck_assert_int_eq(calls->setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	ck_assert_int_eq(calls->close(fd), 0);
}
END_TEST

START_TEST(a_listener_hands_its_options_on)
{
	int listener = open_one(AF_INET, SOCK_NONBLOCK);
	struct pair pair;

	ck_assert_int_eq(set(listener, IPPROTO_TCP, TCP_NODELAY, 1), 0);
	ck_assert_int_eq(set(listener, IPPROTO_TCP, TCP_KEEPIDLE, 60), 0);
	ck_assert_int_eq(set(listener, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
	ck_assert_int_eq(set(listener, SOL_SOCKET, SO_OOBINLINE, 1), 0);
	pair = make_pair(listener);
	ck_assert_int_eq(get(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
	ck_assert_int_eq(get(pair.server, SOL_SOCKET, SO_ACCEPTCONN), 0);
	ck_assert_int_eq(get(pair.server, IPPROTO_TCP, TCP_NODELAY), 1);
	ck_assert_int_eq(get(pair.server, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	ck_assert_int_eq(get(pair.server, SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_eq(get(pair.server, SOL_SOCKET, SO_OOBINLINE), 1);
	ck_assert_int_gt(get(pair.client, IPPROTO_TCP, TCP_MAXSEG), 0);
	end_pair(&pair);
}
END_TEST

/* --- flags, and copies of the number --------------------------------------------------------- */

static void expect_flags(int fd, int nonblock, int cloexec)
{
	ck_assert_int_eq(calls->fcntl(fd, F_GETFL) & O_NONBLOCK, nonblock);
	ck_assert_int_eq(calls->fcntl(fd, F_GETFD) & FD_CLOEXEC, cloexec);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, cloexec);
}

START_TEST(flags_are_as_they_were_asked_for)
{
	int plain = open_one(AF_INET, 0), both = open_one(AF_INET, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int one = open_one(AF_INET, SOCK_CLOEXEC);

	expect_flags(plain, 0, 0);
	expect_flags(both, O_NONBLOCK, FD_CLOEXEC);
	expect_flags(one, 0, FD_CLOEXEC);
	ck_assert_int_eq(calls->fcntl(plain, F_SETFD, FD_CLOEXEC), 0);
	ck_assert_int_eq(calls->fcntl(both, F_SETFL, O_RDWR), 0);
	expect_flags(plain, 0, FD_CLOEXEC);
	expect_flags(both, 0, FD_CLOEXEC);
	ck_assert_int_eq(calls->close(plain), 0);
	ck_assert_int_eq(calls->close(both), 0);
	ck_assert_int_eq(calls->close(one), 0);
}
END_TEST

START_TEST(what_is_accepted_has_no_flags)
{
	struct pair pair = make_pair(open_one(AF_INET, SOCK_NONBLOCK | SOCK_CLOEXEC));

	expect_flags(pair.server, 0, 0);
	end_pair(&pair);
}
END_TEST

/* Listed as a difference: it is for poll(2), and not for calls. */
START_TEST(a_copy_of_the_number_shows_the_same)
{
	struct pair pair = make_pair(open_one(AF_INET, SOCK_NONBLOCK));
	char bytes[4] = "four";
	int copy;

	ck_assert_int_eq(calls->fcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	copy = dup(pair.server);
	wait_for(copy, POLLOUT);
	ck_assert_int_eq(calls->send(pair.client, bytes, sizeof(bytes), 0), sizeof(bytes));
	wait_for(copy, POLLIN);
	if (calls->is_rs) {
		ck_assert_int_eq(calls->recv(copy, bytes, sizeof(bytes), 0), -1);
		ck_assert_int_eq(errno, EBADF);
		ck_assert_int_eq(calls->close(copy), -1);
		ck_assert_int_eq(errno, EBADF);
	} else {
		ck_assert_int_eq(calls->recv(copy, bytes, sizeof(bytes), MSG_PEEK), 4);
	}
	ck_assert_int_eq(close(copy), 0);
	ck_assert_int_eq(calls->recv(pair.server, bytes, sizeof(bytes), 0), 4);
	end_pair(&pair);
}
END_TEST

/* The connection of TCP goes on for the copy; that of an rsocket has ended. */
START_TEST(a_copy_that_outlives_the_number_shows_the_end_of_an_rsocket)
{
	struct pair pair = make_pair(open_one(AF_INET, SOCK_NONBLOCK));
	int copy = dup(pair.client);

	ck_assert_int_eq(calls->close(pair.client), 0);
	if (calls->is_rs)
		wait_for(copy, POLLIN | POLLHUP);
	else
		wait_for(copy, POLLOUT);
	pair.client = open_one(AF_INET, 0);
	ck_assert_int_ne(pair.client, copy);
	ck_assert_int_eq(close(copy), 0);
	end_pair(&pair);
}
END_TEST

static void add_all(TCase *cases)
{
	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, a_number_that_is_set_is_got, 0, LEN(kepts));
	tcase_add_loop_test(cases, what_makes_no_sense_is_refused, 0, LEN(refuseds));
	tcase_add_loop_test(cases, a_new_one_says_what_it_is, 0, LEN(showns));
	tcase_add_test(cases, a_value_has_to_be_there_and_to_be_long_enough);
	tcase_add_test(cases, a_value_is_got_as_far_as_there_is_room);
	tcase_add_test(cases, linger_is_kept_as_a_whole);
	tcase_add_test(cases, the_state_is_that_of_tcp);
	tcase_add_test(cases, a_control_of_congestion_may_be_asked_for);
	tcase_add_test(cases, a_listener_hands_its_options_on);
	tcase_add_test(cases, flags_are_as_they_were_asked_for);
	tcase_add_test(cases, what_is_accepted_has_no_flags);
	tcase_add_test(cases, a_copy_of_the_number_shows_the_same);
	tcase_add_test(cases, a_copy_that_outlives_the_number_shows_the_end_of_an_rsocket);
}

TCase *options_tcp_case(const char *at)
{
	TCase *cases = tcase_create("tcp");

	tcp_ip = at;
	tcase_add_checked_fixture(cases, use_tcp, NULL);
	add_all(cases);
	return cases;
}

TCase *options_rs_case(const char *at)
{
	TCase *cases = tcase_create("rs");

	rs_ip = at;
	tcase_add_checked_fixture(cases, use_rs, NULL);
	add_all(cases);
	return cases;
}
