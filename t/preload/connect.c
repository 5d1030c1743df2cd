/* Connects that are on their way under the preload module: by RDMA, and by TCP after it. */
#include "config.h"

#include "preload/places.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

static int error_of(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	ck_assert_ok(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	return error;
}

static bool shows(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, 0);
}

/* A peer that resolves and does not answer by RDMA, and by TCP is at the address. */
static struct sockaddr_in silent_peer(int *listener)
{
	struct sockaddr_in addr;

	*listener = places_listen_tcp(&addr);
	ck_assert_int_eq(inet_pton(AF_INET, FAKE_ROCE_SILENT_IP, &addr.sin_addr), 1);
	return addr;
}

START_TEST(tcp_that_fails_at_once_is_told)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(_i ? SOCK_NONBLOCK : 0);

	places_fail_tcp(ENETUNREACH);
	if (_i) {
		ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
		places_await(client, POLLOUT);
		ck_assert_int_eq(error_of(client), ENETUNREACH);
	} else {
		ck_assert_fails(places_connect(client, &addr), ENETUNREACH);
	}
	ck_assert_int_eq(error_of(client), 0);
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_connect_that_failed_can_be_tried_again)
{
	struct sockaddr_in addr;
	int tcp = places_listen_tcp(&addr), listener, client = places_socket(0);

	places_fail_tcp(ENETUNREACH);
	ck_assert_fails(places_connect(client, &addr), ENETUNREACH);
	listener = places_listen(0, &addr);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert(places_by_rdma(client));
	close(client);
	close(listener);
	close(tcp);
}
END_TEST

/* A listener whose queue is full: the kernel does not answer any more. */
static int full_listener(struct sockaddr_in *addr, int clients[2])
{
	int listener = places_listen_tcp(addr), i;

	ck_assert_ok(evr_pre_real()->listen(listener, 0));
	for (i = 0; i < 2; i++) {
		clients[i] = evr_pre_real()->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		evr_pre_real()->connect(clients[i], (struct sockaddr *)addr, sizeof(*addr));
	}
	places_await(clients[0], POLLOUT);
	return listener;
}

START_TEST(nothing_is_shown_before_tcp_has_answered)
{
	struct sockaddr_in addr;
	int others[2], listener = full_listener(&addr, others), before = places_tcp_connects();
	int client = places_socket(SOCK_NONBLOCK);

	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	while (places_tcp_connects() == before)
		ck_assert(!shows(client, POLLIN | POLLOUT));
	ck_assert_int_eq(error_of(client), 0);
	ck_assert_fails(recv(client, (char[1]){ 0 }, 1, 0), EAGAIN);
	ck_assert_fails(send(client, "x", 1, 0), EAGAIN);
	ck_assert_fails(places_connect(client, &addr), EALREADY);
	ck_assert_fails(getpeername(client, (struct sockaddr *)&addr, &(socklen_t){ sizeof(addr) }),
		ENOTCONN);
	ck_assert(!shows(client, POLLIN | POLLOUT));
	close(client);
	close(others[0]);
	close(others[1]);
	close(listener);
}
END_TEST

START_TEST(calls_before_the_answer_do_not_eat_the_refusal)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(SOCK_NONBLOCK);

	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	do {
		ck_assert_fails(recv(client, (char[1]){ 0 }, 1, 0), EAGAIN);
	} while (!shows(client, POLLOUT));
	ck_assert_int_eq(error_of(client), 0);
	ck_assert(!places_by_rdma(client));
	ck_assert_int_eq(send(client, "x", 1, 0), 1);
	close(client);
	close(listener);
}
END_TEST

START_TEST(a_call_that_waits_waits_for_the_connection)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(SOCK_NONBLOCK), server;

	setenv("RS_TCP_AFTER_MS", "20", 1);
	addr = silent_peer(&listener);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	ck_assert_ok(fcntl(client, F_SETFL, O_RDWR));
	places_say(client, "hello");
	ck_assert(!places_by_rdma(client));
	server = accept(listener, NULL, NULL);
	places_hear(server, "hello");
	close(server);
	close(client);
	close(listener);
}
END_TEST

/* Each way to wait for a number, for the one event only. */
static void wait_by_poll(int fd)
{
	ck_assert_int_eq(places_await(fd, POLLIN), POLLIN);
}

static void wait_by_select(int fd)
{
	struct timeval patience = { .tv_sec = PLACES_PATIENCE_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	ck_assert_int_eq(select(fd + 1, &set, NULL, NULL, &patience), 1);
}

static void wait_by_ppoll(int fd)
{
	const struct timespec patience = { .tv_sec = PLACES_PATIENCE_MS / 1000 };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	ck_assert_int_eq(ppoll(&pfd, 1, &patience, NULL), 1);
}

static void wait_by_pselect(int fd)
{
	const struct timespec patience = { .tv_sec = PLACES_PATIENCE_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	ck_assert_int_eq(pselect(fd + 1, &set, NULL, NULL, &patience, NULL), 1);
}

static void wait_by_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(0);

	ck_assert_ok(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
	ck_assert_int_eq(epoll_wait(epoll_fd, &event, 1, PLACES_PATIENCE_MS), 1);
	close(epoll_fd);
}

static void (*const waits[])(int) = { wait_by_poll, wait_by_ppoll, wait_by_select, wait_by_pselect,
	wait_by_epoll };
enum { WAITS = sizeof(waits) / sizeof(*waits) };

static bool by_rdma;
static sem_t waited;

/* What the peer says comes when the connection is there, and its client waits for it. */
static void *greet(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL), i;

	for (i = 0; i < 20; i++)
		poll(NULL, 0, 5);
	places_say(fd, "hello");
	sem_wait(&waited);
	close(fd);
	return arg;
}

START_TEST(who_waits_only_to_read_is_woken)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(SOCK_NONBLOCK);
	pthread_t peer;

	by_rdma = _i >= WAITS;
	if (by_rdma) {
		listener = places_listen(0, &addr);
	} else {
		setenv("RS_TCP_AFTER_MS", "20", 1);
		addr = silent_peer(&listener);
	}
	ck_assert_ok(sem_init(&waited, 0, 0));
	ck_assert_ok(pthread_create(&peer, NULL, greet, &listener));
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	do {
		waits[_i % WAITS](client);
	} while (recv(client, (char[5]){ 0 }, 5, MSG_PEEK) < 0 && errno == EAGAIN);
	places_hear(client, "hello");
	ck_assert(places_by_rdma(client) == by_rdma);
	sem_post(&waited);
	ck_assert_ok(pthread_join(peer, NULL));
	close(client);
	close(listener);
}
END_TEST

/* Nobody keeps a connection from its end, who waited for it and does no more. */
START_TEST(who_waited_keeps_no_connection_open)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(0), server;

	setenv("RS_TCP_AFTER_MS", "20", 1);
	addr = silent_peer(&listener);
	ck_assert_ok(places_connect(client, &addr));
	server = accept(listener, NULL, NULL);
	close(client);
	places_await(server, POLLIN);
	ck_assert_int_eq(recv(server, (char[1]){ 0 }, 1, 0), 0);
	close(server);
	close(listener);
}
END_TEST

static bool fails_with(int ret, int error)
{
	return ret < 0 && errno == error;
}

/* Each call meets what it may: what there is before the answer, or after it. */
static void call_meanwhile(int fd)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name), peer_len = sizeof(name);
	int ret = (int)recv(fd, (char[1]){ 0 }, 1, 0);

	ck_assert_msg(fails_with(ret, EAGAIN), "recv: %d, %s", ret, strerror(errno));
	ck_assert_ok(getsockname(fd, (struct sockaddr *)&name, &len));
	ck_assert_int_eq(name.sin_family, AF_INET);
	ret = getpeername(fd, (struct sockaddr *)&name, &peer_len);
	ck_assert_msg(!ret || errno == ENOTCONN, "getpeername: %s", strerror(errno));
	ck_assert_int_eq(error_of(fd), 0);
}

START_TEST(calls_meanwhile_say_what_they_may)
{
	struct sockaddr_in addr;
	int listener = _i ? places_listen(0, &addr) : places_listen_tcp(&addr), i;

	for (i = 0; i < 100; i++) {
		int client = places_socket(SOCK_NONBLOCK), server;

		ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
		do {
			call_meanwhile(client);
		} while (!shows(client, POLLOUT));
		ck_assert_int_eq(send(client, "x", 1, 0), 1);
		ck_assert(places_by_rdma(client) == (_i == 1));
		server = accept(listener, NULL, NULL);
		places_hear(server, "x");
		close(server);
		close(client);
	}
	close(listener);
}
END_TEST

static pid_t witness;

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	places_real()->getsockopt(fd, SOL_SOCKET, name, &value, &len);
	return value;
}

static bool is_bell(int fd)
{
	return option_of(fd, SO_DOMAIN) == AF_UNIX && option_of(fd, SO_TYPE) == SOCK_SEQPACKET;
}

/* A child that begins just when the attempt is about to show its end, and has all of it, too. */
static int close_beside_a_child(int fd)
{
	if (is_bell(fd) && !witness) {
		witness = fork();
		while (!witness)
			pause();
	}
	return places_real()->close(fd);
}

START_TEST(a_child_that_began_meanwhile_holds_up_no_connect)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(_i ? SOCK_NONBLOCK : 0);

	witness = 0;
	evr_pre_real()->close = close_beside_a_child;
	if (_i) {
		ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
		places_await(client, POLLOUT);
	} else {
		ck_assert_ok(places_connect(client, &addr));
	}
	ck_assert_int_gt(witness, 0);
	ck_assert(places_by_rdma(client));
	ck_assert_ok(kill(witness, SIGKILL));
	ck_assert_int_eq(waitpid(witness, NULL, 0), witness);
	close(client);
	close(listener);
}
END_TEST

/* An attempt that could end meanwhile has the time to. */
static int copy_slowly(int fd, int cmd, ...)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	va_list args;
	int ret;

	va_start(args, cmd);
	ret = places_real()->fcntl(fd, cmd, va_arg(args, void *));
	va_end(args);
	if (cmd == F_DUPFD)
		poll(&pfd, 1, 100);
	return ret;
}

START_TEST(a_copy_of_one_on_its_way_goes_the_same_way)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(SOCK_NONBLOCK), copy;

	evr_pre_real()->fcntl = copy_slowly;
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	copy = _i ? dup(client) : fcntl(client, F_DUPFD, 0);
	places_await(client, POLLOUT);
	places_await(copy, POLLOUT);
	ck_assert(!places_by_rdma(copy));
	close(copy);
	close(client);
	close(listener);
}
END_TEST

static bool is_tcp(int fd)
{
	return option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_DOMAIN) == AF_INET;
}

static int do_not_watch_tcp(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	if (op != EPOLL_CTL_ADD || !is_tcp(fd))
		return places_real()->epoll_ctl(epoll_fd, op, fd, event);
	errno = ENOSPC;
	return -1;
}

START_TEST(tcp_that_cannot_be_watched_goes_on_by_itself)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(_i ? SOCK_NONBLOCK : 0);

	evr_pre_real()->epoll_ctl = do_not_watch_tcp;
	if (_i) {
		ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
		places_await(client, POLLOUT);
		ck_assert_int_eq(error_of(client), 0);
	} else {
		ck_assert_ok(places_connect(client, &addr));
	}
	ck_assert(!places_by_rdma(client));
	ck_assert_int_eq(send(client, "x", 1, 0), 1);
	close(client);
	close(listener);
}
END_TEST

START_TEST(connect_says_once_that_it_is_done)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(SOCK_NONBLOCK);

	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	places_await(client, POLLOUT);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert_fails(places_connect(client, &addr), EISCONN);
	ck_assert(places_by_rdma(client));
	close(client);
	close(listener);
}
END_TEST

struct attempt {
	int fd;
	struct sockaddr_in addr;
};

static void *connect_and_fail(void *arg)
{
	const struct attempt *attempt = arg;

	ck_assert_fails(places_connect(attempt->fd, &attempt->addr), ECONNRESET);
	return arg;
}

START_TEST(shutdown_ends_a_connect_that_another_thread_is_in)
{
	struct attempt attempt = { .fd = places_socket(0) };
	pthread_t thread;
	int listener;

	attempt.addr = silent_peer(&listener);
	ck_assert_ok(pthread_create(&thread, NULL, connect_and_fail, &attempt));
	while (shutdown(attempt.fd, SHUT_RDWR))
		ck_assert_int_eq(errno, ENOTCONN);
	ck_assert_ok(pthread_join(thread, NULL));
	ck_assert_fails(shutdown(attempt.fd, SHUT_RDWR), ENOTCONN);
	close(attempt.fd);
	close(listener);
}
END_TEST

START_TEST(shutdown_ends_a_connect_that_nobody_waits_for)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(SOCK_NONBLOCK), server;

	addr = silent_peer(&listener);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	ck_assert_fails(shutdown(client, 3), EINVAL);
	ck_assert_ok(shutdown(client, SHUT_WR));
	ck_assert_int_ne(places_await(client, POLLOUT) & POLLHUP, 0);
	ck_assert_int_eq(error_of(client), ECONNRESET);
	close(listener);
	listener = places_listen(0, &addr);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	places_await(client, POLLOUT);
	ck_assert(places_by_rdma(client));
	server = accept(listener, NULL, NULL);
	close(server);
	close(client);
	close(listener);
}
END_TEST

static void ignore(int number)
{
}

/* The signal comes again and again, for nobody knows when the call waits. */
static void ring_often(bool on)
{
	const struct itimerval often = { .it_interval.tv_usec = on ? 2000 : 0,
		.it_value.tv_usec = on ? 2000 : 0 };
	const struct sigaction action = { .sa_handler = ignore };

	ck_assert_ok(sigaction(SIGALRM, &action, NULL));
	ck_assert_ok(setitimer(ITIMER_REAL, &often, NULL));
}

START_TEST(an_interrupted_connect_goes_on)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(0);

	setenv("RS_TCP_AFTER_MS", "300", 1);
	addr = silent_peer(&listener);
	ring_often(true);
	ck_assert_fails(places_connect(client, &addr), EINTR);
	ring_often(false);
	ck_assert_int_eq(places_await(client, POLLOUT), POLLOUT);
	ck_assert_int_eq(error_of(client), 0);
	ck_assert(!places_by_rdma(client));
	close(client);
	close(listener);
}
END_TEST

/* What the child of a fork sees of a connection that is on its way: nothing. */
START_TEST(a_child_leaves_a_connect_alone)
{
	struct sockaddr_in addr;
	int listener, client = places_socket(SOCK_NONBLOCK), status;
	pid_t pid;

	addr = silent_peer(&listener);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	pid = fork();
	if (!pid) {
		if (send(client, "x", 1, 0) != -1 || errno != EBADF)
			_exit(1);
		if (places_connect(client, &addr) != -1 || places_tcp_connects())
			_exit(2);
		_exit(close(client) ? 3 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(!shows(client, POLLIN | POLLOUT));
	close(client);
	close(listener);
}
END_TEST

START_TEST(the_address_of_a_peer_that_is_gone_is_told)
{
	struct sockaddr_in addr, peer = { 0 }, name;
	int listener = places_listen(0, &addr), client = places_socket(0), server;
	const struct linger abort = { .l_onoff = 1 };
	socklen_t len = sizeof(name);

	ck_assert_ok(places_connect(client, &addr));
	ck_assert_ok(getsockname(client, (struct sockaddr *)&name, &len));
	ck_assert_ok(setsockopt(client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	ck_assert_ok(close(client));
	len = sizeof(peer);
	server = accept(listener, (struct sockaddr *)&peer, &len);
	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(len, sizeof(peer));
	ck_assert_int_eq(peer.sin_port, name.sin_port);
	ck_assert_int_eq(peer.sin_addr.s_addr, name.sin_addr.s_addr);
	close(server);
	close(listener);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_connect_that_failed_can_be_tried_again,
		nothing_is_shown_before_tcp_has_answered,
		calls_before_the_answer_do_not_eat_the_refusal,
		a_call_that_waits_waits_for_the_connection,
		who_waited_keeps_no_connection_open,
		connect_says_once_that_it_is_done,
		an_interrupted_connect_goes_on,
		shutdown_ends_a_connect_that_another_thread_is_in,
		shutdown_ends_a_connect_that_nobody_waits_for,
		a_child_leaves_a_connect_alone,
		the_address_of_a_peer_that_is_gone_is_told,
	};
	TCase *cases = places_cases("connect", tests, sizeof(tests) / sizeof(*tests));

	tcase_add_loop_test(cases, tcp_that_fails_at_once_is_told, 0, 2);
	tcase_add_loop_test(cases, who_waits_only_to_read_is_woken, 0, 2 * WAITS);
	tcase_add_loop_test(cases, tcp_that_cannot_be_watched_goes_on_by_itself, 0, 2);
	tcase_add_loop_test(cases, calls_meanwhile_say_what_they_may, 0, 2);
	tcase_add_loop_test(cases, a_child_that_began_meanwhile_holds_up_no_connect, 0, 2);
	tcase_add_loop_test(cases, a_copy_of_one_on_its_way_goes_the_same_way, 0, 2);
	return places_main(cases);
}
