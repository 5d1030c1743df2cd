/* Datagrams under the preload module: UDP is this machine's own, the queue pairs are the fake's. */
#include "config.h"

#include "preload/places.h"
#include "preload/ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

#define HERE "127.0.0.1"

enum { TURNS = 8, LONGEST = 2032 };

struct two {
	int a, b;
	struct sockaddr_in a_addr, b_addr;
};

/* --- steps ----------------------------------------------------------------------------------- */

/* What the kernel has under the number. */
static int domain_of(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	ck_assert_ok(evr_pre_real()->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len));
	return domain;
}

static int open_one(int flags)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(domain_of(fd), AF_UNIX);
	return fd;
}

static int open_bound(int flags, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = open_one(flags);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, HERE, &addr->sin_addr);
	ck_assert_ok(bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
	ck_assert_ok(getsockname(fd, (struct sockaddr *)addr, &len));
	ck_assert_int_ne(addr->sin_port, 0);
	return fd;
}

static struct two open_two(int flags)
{
	struct two two;

	two.a = open_bound(flags, &two.a_addr);
	two.b = open_bound(flags, &two.b_addr);
	return two;
}

static void close_two(const struct two *two)
{
	ck_assert_ok(close(two->a));
	ck_assert_ok(close(two->b));
}

static void say_to(int fd, const char *text, const struct sockaddr_in *to)
{
	ck_assert_int_eq(
		sendto(fd, text, strlen(text), 0, (const struct sockaddr *)to, sizeof(*to)),
		strlen(text));
}

static void hear(int fd, const char *text)
{
	char got[64] = "";

	places_await(fd, POLLIN);
	ck_assert_int_eq(recv(fd, got, sizeof(got), 0), strlen(text));
	ck_assert_str_eq(got, text);
}

/* Until both know each other's queue pair. */
static void meet(const struct two *two)
{
	int i;

	for (i = 0; i < TURNS; i++) {
		say_to(two->a, "to b", &two->b_addr);
		hear(two->b, "to b");
		say_to(two->b, "to a", &two->a_addr);
		hear(two->a, "to a");
	}
}

static void join_both(const struct two *two)
{
	const struct sockaddr *a = (const struct sockaddr *)&two->a_addr;
	const struct sockaddr *b = (const struct sockaddr *)&two->b_addr;

	ck_assert_ok(connect(two->a, b, sizeof(two->b_addr)));
	ck_assert_ok(connect(two->b, a, sizeof(two->a_addr)));
}

static bool is_same(const struct sockaddr_in *one, const struct sockaddr_in *other)
{
	return one->sin_family == other->sin_family && one->sin_port == other->sin_port &&
	       one->sin_addr.s_addr == other->sin_addr.s_addr;
}

/* --- messages -------------------------------------------------------------------------------- */

START_TEST(messages_go_by_queue_pairs)
{
	struct two two = open_two(0);
	unsigned int before;

	meet(&two);
	before = fake_calls("ibv_post_send");
	say_to(two.a, "by RDMA", &two.b_addr);
	hear(two.b, "by RDMA");
	ck_assert_uint_eq(fake_calls("ibv_post_send"), before + 1);
	close_two(&two);
}
END_TEST

/* There is more room than it takes, and another one behind it. */
START_TEST(each_call_moves_one_message)
{
	struct two two = open_two(0);
	char sent[] = "0123456789", got[64] = "";
	struct sockaddr_in from = two.a_addr;

	join_both(&two);
	ck_assert_int_eq(ways_send(_i, two.a, sent, sizeof(sent), &two.b_addr), sizeof(sent));
	ck_assert_int_eq(send(two.a, "next", 4, 0), 4);
	if (_i >= WAYS_NAMELESS)
		memset(&from, 0, sizeof(from));
	ck_assert_int_eq(ways_receive(_i, two.b, got, sizeof(got), &from), sizeof(sent));
	ck_assert_str_eq(got, sent);
	ck_assert(is_same(&from, &two.a_addr));
	hear(two.b, "next");
	close_two(&two);
}
END_TEST

START_TEST(what_there_is_no_room_for_is_cut_off)
{
	struct two two = open_two(0);
	char got[4];
	struct iovec piece = { got, sizeof(got) };
	struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	say_to(two.a, "longer", &two.b_addr);
	say_to(two.a, "longer", &two.b_addr);
	places_await(two.b, POLLIN);
	ck_assert_int_eq(recv(two.b, got, sizeof(got), MSG_PEEK | MSG_TRUNC), 6);
	ck_assert_int_eq(recv(two.b, got, sizeof(got), 0), 4);
	ck_assert_int_eq(recvmsg(two.b, &msg, 0), 4);
	ck_assert_int_eq(msg.msg_flags, MSG_TRUNC);
	close_two(&two);
}
END_TEST

START_TEST(what_is_too_long_is_refused)
{
	struct two two = open_two(0);
	static char bytes[LONGEST + 1];

	join_both(&two);
	ck_assert_int_eq(send(two.a, bytes, LONGEST, 0), LONGEST);
	ck_assert_int_eq(recv(two.b, bytes, sizeof(bytes), 0), LONGEST);
	ck_assert_fails(send(two.a, bytes, LONGEST + 1, 0), EMSGSIZE);
	close_two(&two);
}
END_TEST

/* Without MSG_WAITFORONE the third would be waited for. */
START_TEST(several_are_received_at_once)
{
	struct two two = open_two(0);
	char got[3][8] = { "" };
	struct iovec pieces[] = { { got[0], 8 }, { got[1], 8 }, { got[2], 8 } };
	struct mmsghdr msgs[3] = { { .msg_len = 0 } };
	struct timespec none = { 0 };
	int i;

	for (i = 0; i < 3; i++)
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &pieces[i], .msg_iovlen = 1 };
	say_to(two.a, "one", &two.b_addr);
	say_to(two.a, "two", &two.b_addr);
	ck_assert_int_eq(recvmmsg(two.b, msgs, 3, MSG_WAITFORONE, NULL), 2);
	ck_assert_str_eq(got[0], "one");
	ck_assert_str_eq(got[1], "two");
	ck_assert_uint_eq(msgs[1].msg_len, 3);
	say_to(two.a, "three", &two.b_addr);
	ck_assert_int_eq(recvmmsg(two.b, msgs, 3, 0, &none), 1);
	ck_assert_str_eq(got[0], "three");
	close_two(&two);
}
END_TEST

/* --- its peer -------------------------------------------------------------------------------- */

START_TEST(a_connected_one_has_names_and_hears_its_peer_only)
{
	struct two two = open_two(0);
	struct sockaddr_in name, any = { .sin_family = AF_UNSPEC };
	socklen_t len = sizeof(name);
	int other = open_one(0);

	ck_assert_fails(getpeername(two.a, (struct sockaddr *)&name, &len), ENOTCONN);
	join_both(&two);
	ck_assert_ok(getpeername(two.a, (struct sockaddr *)&name, &len));
	ck_assert(is_same(&name, &two.b_addr));
	say_to(other, "not heard", &two.a_addr);
	ck_assert_int_eq(send(two.b, "heard", 5, 0), 5);
	hear(two.a, "heard");
	ck_assert_ok(connect(two.a, (struct sockaddr *)&any, sizeof(any)));
	ck_assert_ok(getsockname(two.a, (struct sockaddr *)&name, &len));
	say_to(other, "now", &name);
	hear(two.a, "now");
	close(other);
	close_two(&two);
}
END_TEST

START_TEST(one_without_a_peer_has_to_name_it)
{
	int fd = open_one(0);

	ck_assert_fails(send(fd, "x", 1, 0), EDESTADDRREQ);
	ck_assert_fails(shutdown(fd, SHUT_RDWR), ENOTCONN);
	close(fd);
}
END_TEST

START_TEST(a_port_that_is_closed_is_an_error_of_the_next_call)
{
	struct two two = open_two(0);
	int error = 0;
	socklen_t len = sizeof(error);

	join_both(&two);
	close(two.b);
	ck_assert_int_eq(send(two.a, "x", 1, 0), 1);
	places_await(two.a, POLLIN);
	ck_assert_ok(getsockopt(two.a, SOL_SOCKET, SO_ERROR, &error, &len));
	ck_assert_int_eq(error, ECONNREFUSED);
	close(two.a);
}
END_TEST

START_TEST(what_was_shut_down_ends)
{
	struct two two = open_two(0);
	char byte;

	join_both(&two);
	ck_assert_ok(shutdown(two.a, SHUT_RDWR));
	ck_assert_int_eq(recv(two.a, &byte, 1, 0), 0);
	ck_assert_fails(send(two.a, "x", 1, 0), EPIPE);
	close_two(&two);
}
END_TEST

/* --- waiting --------------------------------------------------------------------------------- */

static void *say_later(void *arg)
{
	struct two *two = arg;
	int i;

	for (i = 0; i < TURNS; i++) {
		hear(two->a, "ready");
		say_to(two->a, "go", &two->b_addr);
	}
	return NULL;
}

START_TEST(a_call_waits_for_a_message)
{
	struct two two = open_two(0);
	pthread_t thread;
	char got[8];
	int i;

	pthread_create(&thread, NULL, say_later, &two);
	for (i = 0; i < TURNS; i++) {
		say_to(two.b, "ready", &two.a_addr);
		ck_assert_int_eq(recv(two.b, got, sizeof(got), 0), 2);
	}
	pthread_join(thread, NULL);
	close_two(&two);
}
END_TEST

START_TEST(nonblocking_is_what_the_descriptor_says)
{
	struct two two = open_two(SOCK_NONBLOCK);
	struct timeval time = { .tv_usec = 1000 };
	int on = 1, off = 0;
	char byte;

	ck_assert(fcntl(two.a, F_GETFL) & O_NONBLOCK);
	ck_assert(fcntl(two.a, F_GETFD) & FD_CLOEXEC);
	ck_assert_fails(recv(two.a, &byte, 1, 0), EAGAIN);
	ck_assert_ok(ioctl(two.a, FIONBIO, &off));
	ck_assert_fails(recv(two.a, &byte, 1, MSG_DONTWAIT), EAGAIN);
	ck_assert_ok(setsockopt(two.a, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	ck_assert_fails(recv(two.a, &byte, 1, 0), EAGAIN);
	time.tv_usec = 0;
	ck_assert_ok(setsockopt(two.a, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	ck_assert_ok(ioctl(two.a, FIONBIO, &on));
	ck_assert_fails(recv(two.a, &byte, 1, 0), EAGAIN);
	close_two(&two);
}
END_TEST

static bool is_selected(int fd)
{
	struct timeval none = { 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &none) == 1;
}

START_TEST(the_number_shows_what_there_is)
{
	struct two two = open_two(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = 7 };
	struct pollfd pfd = { .fd = two.b, .events = POLLIN | POLLOUT };
	int epoll_fd = epoll_create1(0), i;

	ck_assert_ok(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, two.b, &event));
	for (i = 0; i < TURNS; i++) {
		ck_assert_int_eq(poll(&pfd, 1, 0), 1);
		ck_assert_int_eq(pfd.revents, POLLOUT);
		ck_assert(!is_selected(two.b));
		say_to(two.a, "x", &two.b_addr);
		event.data.u32 = 0;
		ck_assert_int_eq(epoll_wait(epoll_fd, &event, 1, PLACES_PATIENCE_MS), 1);
		ck_assert_uint_eq(event.data.u32, 7);
		ck_assert(is_selected(two.b));
		hear(two.b, "x");
	}
	close(epoll_fd);
	close_two(&two);
}
END_TEST

/* --- what else ------------------------------------------------------------------------------- */

START_TEST(options_are_those_of_udp)
{
	int fd = open_one(0), value = 1;
	socklen_t len = sizeof(value);

	ck_assert_ok(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)));
	ck_assert_ok(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value)));
	ck_assert_fails(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &value, sizeof(value)), ENOPROTOOPT);
	ck_assert_ok(getsockopt(fd, IPPROTO_IP, IP_PKTINFO, &value, &len));
	ck_assert_int_eq(value, 0);
	ck_assert_ok(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	ck_assert_int_eq(value, SOCK_DGRAM);
	ck_assert_ok(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len));
	ck_assert_int_eq(value, AF_INET);
	close(fd);
}
END_TEST

START_TEST(ioctls_are_those_of_udp)
{
	struct two two = open_two(0);
	struct ifreq request = { .ifr_name = "lo" };
	int count = -1;

	ck_assert_ok(ioctl(two.b, SIOCGIFADDR, &request));
	say_to(two.a, "12345", &two.b_addr);
	say_to(two.a, "678", &two.b_addr);
	places_await(two.b, POLLIN);
	ck_assert_ok(ioctl(two.b, FIONREAD, &count));
	ck_assert_int_eq(count, 5);
	close_two(&two);
}
END_TEST

START_TEST(what_is_of_streams_is_not_for_datagrams)
{
	int fd = open_one(0), file = memfd_create("file", 0);

	ck_assert_fails(listen(fd, 5), EOPNOTSUPP);
	ck_assert_fails(accept(fd, NULL, NULL), EOPNOTSUPP);
	ck_assert_fails(sendfile(fd, file, NULL, 1), EINVAL);
	close(file);
	close(fd);
}
END_TEST

START_TEST(a_duplicate_outlives_the_first_number)
{
	struct two two = open_two(0);
	int copy = _i ? fcntl(two.b, F_DUPFD_CLOEXEC, 0) : dup(two.b);

	ck_assert_int_ge(copy, 0);
	ck_assert_ok(close(two.b));
	say_to(two.a, "still", &two.b_addr);
	hear(copy, "still");
	two.b = copy;
	close_two(&two);
}
END_TEST

START_TEST(a_socket_has_the_lowest_number)
{
	int first = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;

	close(first);
	fd = open_one(0);
	ck_assert_int_eq(fd, first);
	close(fd);
}
END_TEST

START_TEST(a_child_leaves_its_parents_alone)
{
	struct two two = open_two(0);

	places_child_closes(two.a, two.b);
	say_to(two.a, "still", &two.b_addr);
	hear(two.b, "still");
	close_two(&two);
}
END_TEST

static void set_rules(const char *text)
{
	int fd = memfd_create("rules", 0);
	char name[64];

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	setenv("RS_PRELOAD_CONFIG", name, 1);
}

int main(void)
{
	const TTest *const tests[] = {
		messages_go_by_queue_pairs,
		what_there_is_no_room_for_is_cut_off,
		what_is_too_long_is_refused,
		several_are_received_at_once,
		a_connected_one_has_names_and_hears_its_peer_only,
		one_without_a_peer_has_to_name_it,
		a_port_that_is_closed_is_an_error_of_the_next_call,
		what_was_shut_down_ends,
		a_call_waits_for_a_message,
		nonblocking_is_what_the_descriptor_says,
		the_number_shows_what_there_is,
		options_are_those_of_udp,
		ioctls_are_those_of_udp,
		what_is_of_streams_is_not_for_datagrams,
		a_socket_has_the_lowest_number,
		a_child_leaves_its_parents_alone,
	};
	TCase *cases = tcase_create("dgrams");
	size_t i;

	set_rules("* inet dgram udp\n");
	tcase_add_checked_fixture(cases, fake_install, places_reset);
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		tcase_add_test(cases, tests[i]);
	tcase_add_loop_test(cases, each_call_moves_one_message, 0, WAYS);
	tcase_add_loop_test(cases, a_duplicate_outlives_the_first_number, 0, 2);
	return places_main(cases);
}
