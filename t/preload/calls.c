/* What the calls of sockets do under the preload module, on the fake. */
#include "config.h"

#include "preload/places.h"
#include "preload/ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

enum { MUCH = 1 << 20 };

/* --- which way ------------------------------------------------------------------------------- */

START_TEST(bytes_go_by_rdma_both_ways)
{
	struct places_pair pair = places_pair(0);

	places_say(pair.client, "there");
	places_hear(pair.server, "there");
	places_say(pair.server, "and back");
	places_hear(pair.client, "and back");
	places_close(&pair);
}
END_TEST

START_TEST(a_listener_takes_tcp_as_well)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), server;
	int client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_ok(evr_pre_real()->connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	places_await(listener, POLLIN);
	server = accept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	ck_assert(!places_by_rdma(server));
	places_say(client, "plain");
	places_hear(server, "plain");
	close(server);
	close(client);
	close(listener);
}
END_TEST

static bool next_is_by_rdma(int listener)
{
	int fd = accept(listener, NULL, NULL);
	bool by_rdma = places_by_rdma(fd);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return by_rdma;
}

/* Whoever comes by one of the two ways all the time keeps out nobody who comes by the other. */
START_TEST(a_listener_takes_either_in_turns)
{
	enum { MANY = 3 };
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), fds[2 * MANY], i;

	for (i = 0; i < MANY; i++) {
		fds[i] = places_socket(0);
		ck_assert_ok(places_connect(fds[i], &addr));
		ck_assert(places_by_rdma(fds[i]));
		fds[MANY + i] = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_ok(evr_pre_real()->connect(
			fds[MANY + i], (struct sockaddr *)&addr, sizeof(addr)));
	}
	for (i = 0; i < MANY; i++)
		ck_assert(next_is_by_rdma(listener) != next_is_by_rdma(listener));
	for (i = 0; i < 2 * MANY; i++)
		close(fds[i]);
	close(listener);
}
END_TEST

/* Its client has locked memory twice by then. */
START_TEST(who_is_refused_for_want_of_memory_comes_by_tcp)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(0), server;

	fake_fail_later("ibv_reg_mr", 3, ENOMEM);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert(!places_by_rdma(client));
	server = accept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	places_say(client, "plain");
	places_hear(server, "plain");
	close(server);
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_listener_whose_device_goes_keeps_tcp)
{
	struct sockaddr_in addr;
	int listener = places_listen(SOCK_NONBLOCK, &addr), client;
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	fake_device_remove(FAKE_ROCE);
	places_await(listener, POLLIN);
	ck_assert_fails(accept(listener, NULL, NULL), EAGAIN);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	client = places_socket(0);
	ck_assert_ok(places_connect(client, &addr));
	places_await(listener, POLLIN);
	pfd.fd = accept(listener, NULL, NULL);
	ck_assert_int_ge(pfd.fd, 0);
	close(pfd.fd);
	close(client);
	close(listener);
}
END_TEST

static int unwatched;

static int note_unwatched(int epoll_fd, int what, int fd, struct epoll_event *event)
{
	if (what == EPOLL_CTL_DEL)
		unwatched = fd;
	return places_real()->epoll_ctl(epoll_fd, what, fd, event);
}

/* Another thread may be about to call it: meanwhile its number is nobody else's. */
START_TEST(an_rsocket_that_has_ended_goes_with_its_listener)
{
	struct sockaddr_in addr;
	int listener = places_listen(SOCK_NONBLOCK, &addr);

	unwatched = -1;
	evr_pre_real()->epoll_ctl = note_unwatched;
	fake_device_remove(FAKE_ROCE);
	places_await(listener, POLLIN);
	ck_assert_fails(accept(listener, NULL, NULL), EAGAIN);
	ck_assert_int_ge(unwatched, 0);
	ck_assert_int_ge(places_real()->fcntl(unwatched, F_GETFD), 0);
	close(listener);
	ck_assert_int_eq(places_real()->fcntl(unwatched, F_GETFD), -1);
}
END_TEST

/* As a device in software does whose ports are TCP's. Who else waits for it learns of its end. */
START_TEST(a_listener_by_rdma_alone_whose_device_goes_shows_its_end)
{
	int listener = places_bound(), i;

	fake_fail_next("LISTEN", EADDRINUSE);
	ck_assert_ok(listen(listener, 5));
	fake_device_remove(FAKE_ROCE);
	for (i = 0; i < 2; i++) {
		places_await(listener, POLLIN);
		ck_assert_fails(accept(listener, NULL, NULL), EINVAL);
	}
	close(listener);
}
END_TEST

START_TEST(a_listener_that_is_shut_down_takes_no_more)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr);

	ck_assert_ok(shutdown(listener, SHUT_RDWR));
	ck_assert_fails(accept(listener, NULL, NULL), EINVAL);
	close(listener);
}
END_TEST

static int listens_left;

static int listen_so_often(int fd, int backlog)
{
	if (listens_left-- > 0)
		return places_real()->listen(fd, backlog);
	errno = EADDRINUSE;
	return -1;
}

static int no_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
	errno = ENOMEM;
	return -1;
}

static int is_listening(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	ck_assert_ok(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len));
	return yes;
}

/* As a device in software does whose ports are TCP's: TCP gives way, and RDMA fails again. */
START_TEST(a_listener_that_neither_takes_is_an_error)
{
	int fd = places_bound();

	evr_pre_real()->listen = listen_so_often;
	listens_left = _i;
	fake_fail_from(FAKE_KERNEL, 1, EADDRINUSE);
	if (_i == 2)
		ck_assert_ok(listen(fd, 5));
	else
		ck_assert_fails(listen(fd, 5), EADDRINUSE);
	ck_assert_int_eq(is_listening(fd), _i == 2);
	fake_fail_from(FAKE_KERNEL, 0, 0);
	close(fd);
}
END_TEST

START_TEST(a_listener_that_cannot_be_both_is_tcps)
{
	int fd = places_bound();

	fake_fail_next("LISTEN", EADDRINUSE);
	evr_pre_real()->epoll_ctl = no_epoll_ctl;
	ck_assert_ok(listen(fd, 5));
	ck_assert(is_listening(fd));
	close(fd);
}
END_TEST

START_TEST(without_a_device_it_is_tcp)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(0);

	fake_device_remove(FAKE_ROCE);
	listener = places_listen(0, &addr);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert(!places_by_rdma(client));
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_peer_without_rdma_gets_tcp)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(0), server;

	ck_assert_ok(places_connect(client, &addr));
	ck_assert(!places_by_rdma(client));
	server = accept(listener, NULL, NULL);
	places_say(client, "plain");
	places_hear(server, "plain");
	close(server);
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_nonblocking_connect_falls_back_as_well)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(SOCK_NONBLOCK);
	int error = -1;
	socklen_t len = sizeof(error);

	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	places_await(client, POLLOUT);
	ck_assert_ok(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len));
	ck_assert_int_eq(error, 0);
	ck_assert(!places_by_rdma(client));
	ck_assert(fcntl(client, F_GETFL) & O_NONBLOCK);
	close(client);
	close(listener);
}
END_TEST

/* The fake's silent host resolves and never answers by RDMA. */
START_TEST(a_peer_that_is_silent_by_rdma_gets_tcp)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(_i ? SOCK_NONBLOCK : 0);

	setenv("RS_TCP_AFTER_MS", "50", 1);
	ck_assert_int_eq(inet_pton(AF_INET, FAKE_ROCE_SILENT_IP, &addr.sin_addr), 1);
	if (_i) {
		ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
		places_await(client, POLLOUT);
		ck_assert_fails(recv(client, (char[1]){ 0 }, 1, 0), EAGAIN);
	} else {
		ck_assert_ok(places_connect(client, &addr));
	}
	ck_assert(!places_by_rdma(client));
	setenv("RS_TCP_AFTER_MS", "100000", 1);
	close(client);
	close(listener);
}
END_TEST

START_TEST(nobody_there_is_refused)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(0);

	close(listener);
	ck_assert_fails(places_connect(client, &addr), ECONNREFUSED);
	close(client);
}
END_TEST

/* An event loop that watches the number before it connects. */
static void watch(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLIN, .data.u32 = 77 };

	ck_assert_ok(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
}

static unsigned int watched(int epoll_fd)
{
	struct epoll_event event = { 0 };

	ck_assert_int_eq(epoll_wait(epoll_fd, &event, 1, PLACES_PATIENCE_MS), 1);
	ck_assert_int_eq(event.data.u32, 77);
	return event.events;
}

START_TEST(who_watched_the_number_goes_on_with_rdma)
{
	struct sockaddr_in addr;
	int listener = places_listen(SOCK_NONBLOCK, &addr), client = places_socket(SOCK_NONBLOCK);
	int epoll_fd = epoll_create1(0), server;

	watch(epoll_fd, client);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	places_await(listener, POLLIN);
	ck_assert_int_eq(watched(epoll_fd), EPOLLOUT);
	server = accept(listener, NULL, NULL);
	places_say(server, "x");
	places_await(client, POLLIN);
	ck_assert_int_eq(watched(epoll_fd), EPOLLOUT | EPOLLIN);
	ck_assert(places_by_rdma(client));
	close(server);
	close(client);
	close(listener);
	close(epoll_fd);
}
END_TEST

START_TEST(who_watched_the_number_goes_on_with_tcp)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(SOCK_NONBLOCK);
	int epoll_fd = epoll_create1(0);

	watch(epoll_fd, client);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	ck_assert(watched(epoll_fd) & EPOLLOUT);
	ck_assert_fails(recv(client, (char[1]){ 0 }, 1, 0), EAGAIN);
	ck_assert_int_eq(watched(epoll_fd), EPOLLOUT);
	close(client);
	close(listener);
	close(epoll_fd);
}
END_TEST

/* --- calls ----------------------------------------------------------------------------------- */

START_TEST(each_call_moves_bytes)
{
	struct places_pair pair = places_pair(0);
	char sent[] = "0123456789", got[sizeof(sent)] = "";

	ck_assert_int_eq(ways_send(_i, pair.client, sent, sizeof(sent), NULL), sizeof(sent));
	ck_assert_int_eq(ways_receive(_i, pair.server, got, sizeof(got), NULL), sizeof(got));
	ck_assert_str_eq(got, sent);
	places_close(&pair);
}
END_TEST

START_TEST(a_program_built_with_fortify_reads_as_well)
{
	struct places_pair pair = places_pair(0);
	char buf[4];

	places_say(pair.client, "abc");
	ck_assert_int_eq(__read_chk(pair.server, buf, 1, sizeof(buf)), 1);
	ck_assert_int_eq(__recv_chk(pair.server, buf, 1, sizeof(buf), 0), 1);
	ck_assert_int_eq(__recvfrom_chk(pair.server, buf, 1, sizeof(buf), 0, NULL, NULL), 1);
	ck_assert_int_eq(buf[0], 'c');
	places_close(&pair);
}
END_TEST

START_TEST(nonblocking_is_what_the_descriptor_says)
{
	struct places_pair pair = places_pair(SOCK_NONBLOCK);
	int on = 1, off = 0;
	char byte;

	ck_assert_fails(recv(pair.server, &byte, 1, 0), EAGAIN);
	ck_assert_ok(ioctl(pair.server, FIONBIO, &off));
	ck_assert(!(fcntl(pair.server, F_GETFL) & O_NONBLOCK));
	ck_assert_fails(recv(pair.server, &byte, 1, MSG_DONTWAIT), EAGAIN);
	places_say(pair.client, "x");
	ck_assert_int_eq(recv(pair.server, &byte, 1, 0), 1);
	ck_assert_ok(ioctl(pair.server, FIONBIO, &on));
	ck_assert_fails(recv(pair.server, &byte, 1, 0), EAGAIN);
	places_close(&pair);
}
END_TEST

START_TEST(a_blocking_socket_shows_what_poll_asks)
{
	struct places_pair pair = places_pair(0);
	struct pollfd pfd = { .fd = pair.server, .events = POLLIN };

	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	places_say(pair.client, "x");
	ck_assert_int_eq(places_await(pair.server, POLLIN), POLLIN);
	places_hear(pair.server, "x");
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	places_close(&pair);
}
END_TEST

static void *send_much(void *arg)
{
	char *buf = calloc(1, MUCH);

	ck_assert_int_eq(send(*(int *)arg, buf, MUCH, 0), MUCH);
	free(buf);
	return NULL;
}

/* More than all buffers hold. */
START_TEST(a_call_that_waits_sends_and_receives_all)
{
	struct places_pair pair = places_pair(0);
	char *buf = malloc(MUCH);
	pthread_t thread;

	pthread_create(&thread, NULL, send_much, &pair.client);
	ck_assert_int_eq(recv(pair.server, buf, MUCH, MSG_WAITALL), MUCH);
	pthread_join(thread, NULL);
	free(buf);
	places_close(&pair);
}
END_TEST

START_TEST(what_does_not_fit_is_sent_in_part)
{
	struct places_pair pair = places_pair(0);
	char *buf = calloc(1, MUCH);
	ssize_t sent;

	places_set_nonblock(pair.client);
	sent = send(pair.client, buf, MUCH, 0);
	ck_assert_int_gt(sent, 0);
	ck_assert_int_lt(sent, MUCH);
	while (send(pair.client, buf, MUCH, 0) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	free(buf);
	places_close(&pair);
}
END_TEST

START_TEST(a_timeout_ends_a_call_that_waits)
{
	struct places_pair pair = places_pair(0);
	struct timeval time = { .tv_usec = 20000 }, got;
	socklen_t len = sizeof(got);
	char byte;

	ck_assert_ok(setsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	ck_assert_fails(recv(pair.server, &byte, 1, 0), EAGAIN);
	ck_assert_ok(getsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &got, &len));
	ck_assert_int_eq(got.tv_usec, 20000);
	places_close(&pair);
}
END_TEST

START_TEST(the_end_is_read_and_writing_is_a_signal)
{
	struct places_pair pair = places_pair(0);
	char byte;

	signal(SIGPIPE, SIG_IGN);
	ck_assert_ok(shutdown(pair.client, SHUT_WR));
	ck_assert_int_eq(recv(pair.server, &byte, 1, 0), 0);
	ck_assert_fails(send(pair.client, "x", 1, 0), EPIPE);
	places_close(&pair);
}
END_TEST

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	signals++;
}

START_TEST(sigpipe_comes_unless_it_is_unwanted)
{
	struct places_pair pair = places_pair(0);

	signals = 0;
	signal(SIGPIPE, count_signal);
	ck_assert_ok(shutdown(pair.client, SHUT_WR));
	ck_assert_fails(send(pair.client, "x", 1, MSG_NOSIGNAL), EPIPE);
	ck_assert_int_eq(signals, 0);
	ck_assert_fails(write(pair.client, "x", 1), EPIPE);
	ck_assert_int_eq(signals, 1);
	signal(SIGPIPE, SIG_DFL);
	places_close(&pair);
}
END_TEST

START_TEST(options_of_tcp_are_taken)
{
	struct places_pair pair = places_pair(0);
	int value = 1;
	socklen_t len = sizeof(value);

	ck_assert_ok(setsockopt(pair.client, SOL_SOCKET, SO_PRIORITY, &value, sizeof(value)));
	ck_assert_ok(setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)));
	ck_assert_fails(setsockopt(pair.client, IPPROTO_TCP, 9999, &value, sizeof(value)),
		ENOPROTOOPT);
	ck_assert_ok(getsockopt(pair.client, SOL_SOCKET, SO_DOMAIN, &value, &len));
	ck_assert_int_eq(value, AF_INET);
	places_close(&pair);
}
END_TEST

/* What was set before it was known which way it goes. */
START_TEST(options_come_along)
{
	struct sockaddr_in addr;
	int listener = places_listen(SOCK_NONBLOCK, &addr), client = places_socket(0);
	int size = 65536, on = 1;
	struct timeval time = { .tv_sec = 3 };
	socklen_t len = sizeof(size);

	ck_assert_ok(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	ck_assert_ok(setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
	ck_assert_ok(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	ck_assert_ok(places_connect(client, &addr));
	ck_assert_ok(getsockopt(client, SOL_SOCKET, SO_RCVBUF, &size, &len));
	ck_assert_int_eq(size, 2 * 65536);
	on = 0;
	ck_assert_ok(getsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, &len));
	ck_assert_int_eq(on, 1);
	time.tv_sec = 0;
	len = sizeof(time);
	ck_assert_ok(getsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &time, &len));
	ck_assert_int_eq(time.tv_sec, 3);
	close(client);
	close(listener);
}
END_TEST

START_TEST(both_ends_have_their_names)
{
	struct places_pair pair = places_pair(0);
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);

	ck_assert_ok(getsockname(pair.client, (struct sockaddr *)&own, &len));
	ck_assert_int_eq(len, sizeof(own));
	ck_assert_ok(getpeername(pair.server, (struct sockaddr *)&peer, &len));
	ck_assert_int_eq(peer.sin_addr.s_addr, own.sin_addr.s_addr);
	ck_assert_int_eq(peer.sin_port, own.sin_port);
	places_close(&pair);
}
END_TEST

START_TEST(what_can_be_read_is_counted)
{
	struct places_pair pair = places_pair(0);
	int count = -1;

	ck_assert_ok(ioctl(pair.server, FIONREAD, &count));
	ck_assert_int_eq(count, 0);
	places_say(pair.client, "12345");
	places_await(pair.server, POLLIN);
	ck_assert_ok(ioctl(pair.server, FIONREAD, &count));
	ck_assert_int_eq(count, 5);
	places_hear(pair.server, "12345");
	places_close(&pair);
}
END_TEST

static void reset(struct places_pair *pair)
{
	const struct linger linger = { .l_onoff = 1 };

	ck_assert_ok(setsockopt(pair->client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	ck_assert_ok(close(pair->client));
	pair->client = -1;
}

START_TEST(who_counts_what_can_be_read_leaves_a_reset_to_the_next_call)
{
	struct places_pair pair = places_pair(0);
	int count = -1;
	char byte;

	reset(&pair);
	places_await(pair.server, POLLIN);
	ck_assert_ok(ioctl(pair.server, FIONREAD, &count));
	ck_assert_int_eq(count, 0);
	ck_assert_fails(recv(pair.server, &byte, 1, 0), ECONNRESET);
	places_close(&pair);
}
END_TEST

START_TEST(a_reset_behind_some_bytes_is_told_by_the_next_call)
{
	struct places_pair pair = places_pair(0);
	char bytes[10];

	places_say(pair.client, "12345");
	places_await(pair.server, POLLIN);
	reset(&pair);
	ck_assert_int_eq(recv(pair.server, bytes, sizeof(bytes), MSG_WAITALL), 5);
	ck_assert_fails(recv(pair.server, bytes, sizeof(bytes), 0), ECONNRESET);
	places_close(&pair);
}
END_TEST

START_TEST(pieces_that_are_none_are_an_error)
{
	struct places_pair pair = places_pair(0);
	struct iovec *pieces = calloc(IOV_MAX + 1, sizeof(*pieces));
	struct msghdr msg = { .msg_iovlen = 1 };

	ck_assert_fails(sendmsg(pair.client, &msg, 0), EFAULT);
	ck_assert_fails(recvmsg(pair.client, &msg, MSG_DONTWAIT), EFAULT);
	msg = (struct msghdr){ .msg_iov = pieces, .msg_iovlen = IOV_MAX + 1 };
	ck_assert_fails(sendmsg(pair.client, &msg, 0), EMSGSIZE);
	free(pieces);
	places_close(&pair);
}
END_TEST

/* --- files ----------------------------------------------------------------------------------- */

static int file_of(const char *text)
{
	int fd = fileno(tmpfile());

	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

START_TEST(a_file_is_sent_from_an_offset)
{
	struct places_pair pair = places_pair(0);
	int file = file_of("0123456789");
	off_t offset = 3;

	ck_assert_int_eq(sendfile(pair.client, file, &offset, 4), 4);
	places_hear(pair.server, "3456");
	ck_assert_int_eq(offset, 7);
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 0);
	ck_assert_int_eq(sendfile(pair.client, file, &offset, 100), 3);
	places_hear(pair.server, "789");
	ck_assert_int_eq(sendfile(pair.client, file, &offset, 100), 0);
	places_close(&pair);
}
END_TEST

START_TEST(a_file_is_sent_from_where_it_is)
{
	struct places_pair pair = places_pair(0);
	int file = file_of("0123456789");

	ck_assert_int_eq(sendfile(pair.client, file, NULL, 4), 4);
	ck_assert_int_eq(sendfile(pair.client, file, NULL, 4), 4);
	places_hear(pair.server, "01234567");
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 8);
	ck_assert_fails(sendfile(file, pair.client, NULL, 1), EINVAL);
	ck_assert_fails(splice(pair.client, NULL, file, NULL, 1, 0), EINVAL);
	places_close(&pair);
}
END_TEST

/* --- numbers --------------------------------------------------------------------------------- */

START_TEST(a_duplicate_outlives_the_first_number)
{
	struct places_pair pair = places_pair(0);
	int other = _i == 0   ? dup(pair.client)
		    : _i == 1 ? fcntl(pair.client, F_DUPFD_CLOEXEC, 100)
			      : dup2(pair.client, 100);

	ck_assert_int_ge(other, 0);
	ck_assert_ok(close(pair.client));
	pair.client = other;
	places_say(pair.client, "still");
	places_hear(pair.server, "still");
	places_close(&pair);
}
END_TEST

/* fclose(3) closes it where the module does not see it: what comes next is something else. */
START_TEST(a_number_that_stdio_has_closed_is_free)
{
	struct places_pair pair = places_pair(0);
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), server;
	int client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);
	char bytes[5];

	ck_assert_ok(evr_pre_real()->connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	places_await(listener, POLLIN);
	ck_assert_ok(fclose(fdopen(pair.server, "r")));
	server = _i ? socket(AF_UNIX, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
	ck_assert_int_eq(server, pair.server);
	if (_i) {
		ck_assert_fails(recv(server, bytes, 5, MSG_DONTWAIT), EINVAL);
	} else {
		ck_assert_int_eq(send(client, "plain", 5, 0), 5);
		places_await(server, POLLIN);
		ck_assert_int_eq(recv(server, bytes, 5, MSG_DONTWAIT), 5);
	}
	close(client);
	close(listener);
	places_close(&pair);
}
END_TEST

START_TEST(a_number_that_is_overwritten_ends_its_connection)
{
	struct places_pair pair = places_pair(0);
	int file = file_of("x");
	char byte;

	ck_assert_int_eq(dup2(file, pair.client), pair.client);
	ck_assert_int_eq(recv(pair.server, &byte, 1, 0), 0);
	ck_assert_int_eq(read(pair.client, &byte, 1), 1);
	places_close(&pair);
}
END_TEST

START_TEST(a_duplicate_to_a_bad_number_changes_nothing)
{
	struct places_pair pair = places_pair(0);

	ck_assert_fails(dup2(-1, pair.client), EBADF);
	ck_assert_fails(dup3(pair.client, pair.client, 0), EINVAL);
	ck_assert_int_eq(dup2(pair.client, pair.client), pair.client);
	places_say(pair.client, "still");
	places_hear(pair.server, "still");
	places_close(&pair);
}
END_TEST

START_TEST(an_accepted_number_is_the_lowest)
{
	struct sockaddr_in addr;
	int listener = places_listen(SOCK_NONBLOCK, &addr), client = places_socket(0);
	int lowest, server;

	ck_assert_ok(places_connect(client, &addr));
	places_await(listener, POLLIN);
	lowest = fcntl(0, F_DUPFD, 0);
	close(lowest);
	server = accept(listener, NULL, NULL);
	ck_assert_int_eq(server, lowest);
	ck_assert(!(fcntl(server, F_GETFL) & O_NONBLOCK));
	ck_assert(!(fcntl(server, F_GETFD) & FD_CLOEXEC));
	ck_assert_fails(accept(listener, NULL, NULL), EAGAIN);
	close(server);
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_range_that_is_closed_ends_its_connections)
{
	struct places_pair pair = places_pair(0);
	char byte;

	ck_assert_int_eq(dup2(pair.client, 200), 200);
	close(pair.client);
	pair.client = -1;
	ck_assert_ok(close_range(200, 210, 0));
	ck_assert_int_eq(recv(pair.server, &byte, 1, 0), 0);
	ck_assert_fails(fcntl(200, F_GETFD), EBADF);
	places_close(&pair);
}
END_TEST

START_TEST(a_child_leaves_its_parents_connections_alone)
{
	struct places_pair pair = places_pair(0);

	places_child_closes(pair.client, pair.server);
	places_say(pair.client, "still");
	places_hear(pair.server, "still");
	places_close(&pair);
}
END_TEST

START_TEST(other_descriptors_are_the_kernels)
{
	int ends[2], datagram = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 'x';

	ck_assert_ok(pipe(ends));
	ck_assert_int_eq(write(ends[1], &byte, 1), 1);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert_fails(recv(ends[0], &byte, 1, 0), ENOTSOCK);
	ck_assert_fails(accept(datagram, NULL, NULL), EOPNOTSUPP);
	ck_assert_fails(close(-1), EBADF);
	ck_assert_ok(close(datagram));
	ck_assert_ok(close(ends[0]));
	ck_assert_ok(close(ends[1]));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		bytes_go_by_rdma_both_ways,
		a_listener_takes_tcp_as_well,
		a_listener_takes_either_in_turns,
		who_is_refused_for_want_of_memory_comes_by_tcp,
		a_listener_whose_device_goes_keeps_tcp,
		an_rsocket_that_has_ended_goes_with_its_listener,
		a_listener_by_rdma_alone_whose_device_goes_shows_its_end,
		a_listener_that_is_shut_down_takes_no_more,
		a_listener_that_cannot_be_both_is_tcps,
		without_a_device_it_is_tcp,
		a_peer_without_rdma_gets_tcp,
		a_nonblocking_connect_falls_back_as_well,
		nobody_there_is_refused,
		who_watched_the_number_goes_on_with_rdma,
		who_watched_the_number_goes_on_with_tcp,
		a_program_built_with_fortify_reads_as_well,
		nonblocking_is_what_the_descriptor_says,
		a_blocking_socket_shows_what_poll_asks,
		a_call_that_waits_sends_and_receives_all,
		what_does_not_fit_is_sent_in_part,
		a_timeout_ends_a_call_that_waits,
		the_end_is_read_and_writing_is_a_signal,
		sigpipe_comes_unless_it_is_unwanted,
		options_of_tcp_are_taken,
		options_come_along,
		both_ends_have_their_names,
		what_can_be_read_is_counted,
		who_counts_what_can_be_read_leaves_a_reset_to_the_next_call,
		a_reset_behind_some_bytes_is_told_by_the_next_call,
		pieces_that_are_none_are_an_error,
		a_file_is_sent_from_an_offset,
		a_file_is_sent_from_where_it_is,
		a_number_that_is_overwritten_ends_its_connection,
		a_duplicate_to_a_bad_number_changes_nothing,
		an_accepted_number_is_the_lowest,
		a_range_that_is_closed_ends_its_connections,
		a_child_leaves_its_parents_connections_alone,
		other_descriptors_are_the_kernels,
	};
	TCase *cases = places_cases("calls", tests, sizeof(tests) / sizeof(*tests));

	tcase_add_loop_test(cases, a_peer_that_is_silent_by_rdma_gets_tcp, 0, 2);
	tcase_add_loop_test(cases, a_listener_that_neither_takes_is_an_error, 1, 3);
	tcase_add_loop_test(cases, each_call_moves_bytes, 0, WAYS);
	tcase_add_loop_test(cases, a_duplicate_outlives_the_first_number, 0, 3);
	tcase_add_loop_test(cases, a_number_that_stdio_has_closed_is_free, 0, 2);
	return places_main(cases);
}
