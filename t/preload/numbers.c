/* What becomes of the program's numbers under the preload module: copies, watches, children. */
#include "config.h"

#include "preload/places.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/real.h"
#include "unit/cm_unit.h"

/* --- copies ---------------------------------------------------------------------------------- */

static int (*close_before)(int fd);
static _Thread_local bool is_to_fork;

/*
 * A fork just when the library closes something of its own, for this thread: another one may hold
 * what a fork waits for.
 */
static int close_and_fork(int fd)
{
	pid_t pid;

	if (is_to_fork) {
		is_to_fork = false;
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return close_before(fd);
}

/* Before there are threads that call it. */
static void watch_closes(void)
{
	close_before = evr_pre_real()->close;
	evr_pre_real()->close = close_and_fork;
}

START_TEST(a_process_can_fork_while_a_connection_ends)
{
	struct places_pair pair = places_pair(0);

	/* Not the one that connected: the thread of its attempt may be the last to let it go. */
	ck_assert_int_eq(dup2(pair.server, 200), 200);
	ck_assert_ok(close(pair.server));
	pair.server = -1;
	is_to_fork = true;
	ck_assert_ok(close_range(200, 210, 0));
	ck_assert(!is_to_fork);
	places_close(&pair);
}
END_TEST

START_TEST(one_with_several_numbers_in_a_range_ends_once)
{
	struct places_pair pair = places_pair(0);

	ck_assert_int_eq(dup2(pair.client, 200), 200);
	ck_assert_int_eq(dup2(pair.client, 201), 201);
	ck_assert_ok(close_range(200, 210, 0));
	places_say(pair.client, "still");
	places_hear(pair.server, "still");
	places_close(&pair);
}
END_TEST

/* --- children -------------------------------------------------------------------------------- */

static int run_child(int (*child)(const struct places_pair *pair), const struct places_pair *pair)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(child(pair));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* As programs do that execute another one. */
START_TEST(a_child_of_vfork_closes_only_its_own)
{
	struct places_pair pair = places_pair(0);
	int status;
	pid_t pid = vfork();

	if (!pid) {
		dup2(pair.client, 200);
		dup(pair.client);
		close(pair.client);
		close_range((unsigned int)pair.server, (unsigned int)pair.server, 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_fails(recv(200, &status, 1, 0), EBADF);
	places_say(pair.client, "still");
	places_hear(pair.server, "still");
	places_close(&pair);
}
END_TEST

static int accept_nothing(const struct places_pair *pair)
{
	struct pollfd pfd = { .fd = pair->listener, .events = POLLIN };

	if (poll(&pfd, 1, 0))
		return 1;
	places_set_nonblock(pair->listener);
	return accept(pair->listener, NULL, NULL) == -1 && errno == EAGAIN ? 0 : 2;
}

/* It would come again and again for something that only the parent can take. */
START_TEST(a_childs_listener_does_not_show_what_is_the_parents)
{
	struct places_pair pair = { .server = -1 };
	struct sockaddr_in addr;

	pair.listener = places_listen(0, &addr);
	pair.client = places_socket(0);
	ck_assert_ok(places_connect(pair.client, &addr));
	places_await(pair.listener, POLLIN);
	ck_assert_int_eq(run_child(accept_nothing, &pair), 0);
	pair.server = accept(pair.listener, NULL, NULL);
	ck_assert(places_by_rdma(pair.server));
	places_close(&pair);
}
END_TEST

static int accept_tcp(const struct places_pair *pair)
{
	int fd = accept(pair->listener, NULL, NULL);
	char byte;

	return fd >= 0 && recv(fd, &byte, 1, 0) == 1 && byte == 'x' ? 0 : 1;
}

START_TEST(a_childs_listener_takes_tcp)
{
	struct places_pair pair = { .server = -1 };
	struct sockaddr_in addr;

	pair.listener = places_listen(0, &addr);
	pair.client = evr_pre_real()->socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_ok(evr_pre_real()->connect(
		pair.client, (struct sockaddr *)&addr, sizeof(addr)));
	ck_assert_int_eq(send(pair.client, "x", 1, 0), 1);
	ck_assert_int_eq(run_child(accept_tcp, &pair), 0);
	places_close(&pair);
}
END_TEST

/* --- watches --------------------------------------------------------------------------------- */

static void watch(int epoll_fd, int fd, uint32_t events, uint32_t data)
{
	struct epoll_event event = { .events = events, .data.u32 = data };

	ck_assert_ok(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
}

/* The data of the one that has something; 0: none has. */
static uint32_t next_of(int epoll_fd, int timeout_ms)
{
	struct epoll_event event = { 0 };

	ck_assert_int_ge(epoll_wait(epoll_fd, &event, 1, timeout_ms), 0);
	return event.data.u32;
}

START_TEST(who_watched_exclusively_sees_a_listener)
{
	struct sockaddr_in addr;
	int listener = places_listen_tcp(&addr), client = places_socket(0);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int later = places_socket(0);

	close(listener);
	ck_assert_ok(evr_pre_real()->setsockopt(
		later, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	places_bind(later, &addr);
	watch(epoll_fd, later, EPOLLIN | EPOLLEXCLUSIVE, 7);
	ck_assert_ok(listen(later, 5));
	ck_assert_ok(places_connect(client, &addr));
	ck_assert(places_by_rdma(client));
	ck_assert_int_eq(next_of(epoll_fd, PLACES_PATIENCE_MS), 7);
	close(client);
	close(later);
	close(epoll_fd);
}
END_TEST

START_TEST(who_watched_once_is_told_once)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(SOCK_NONBLOCK);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event again = { .events = EPOLLOUT | EPOLLONESHOT, .data.u32 = 8 };

	watch(epoll_fd, client, EPOLLOUT | EPOLLONESHOT, 7);
	ck_assert_int_eq(next_of(epoll_fd, 0), 7);
	ck_assert_fails(places_connect(client, &addr), EINPROGRESS);
	places_await(client, POLLOUT);
	ck_assert_int_eq(next_of(epoll_fd, 0), 0);
	ck_assert_ok(epoll_ctl(epoll_fd, EPOLL_CTL_MOD, client, &again));
	ck_assert_int_eq(next_of(epoll_fd, 0), 8);
	close(client);
	close(listener);
	close(epoll_fd);
}
END_TEST

START_TEST(a_closed_copys_watch_is_not_its_successors)
{
	struct sockaddr_in addr;
	int listener = places_listen(0, &addr), client = places_socket(0), copy = dup(client);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), ends[2];

	watch(epoll_fd, copy, EPOLLOUT, 7);
	ck_assert_ok(close(copy));
	ck_assert_ok(pipe(ends));
	ck_assert_int_eq(dup2(ends[0], copy), copy);
	watch(epoll_fd, copy, EPOLLIN, 8);
	ck_assert_ok(places_connect(client, &addr));
	ck_assert_int_eq(next_of(epoll_fd, 0), 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	ck_assert_int_eq(next_of(epoll_fd, 0), 8);
	close(client);
	close(listener);
	close(epoll_fd);
}
END_TEST

static int no_close_range(unsigned int first, unsigned int last, int flags)
{
	errno = ENOSYS;
	return -1;
}

START_TEST(closefrom_needs_no_new_kernel)
{
	struct places_pair pair = places_pair(0);
	char byte;

	ck_assert_int_eq(dup2(pair.client, 200), 200);
	ck_assert_int_eq(dup2(0, 201), 201);
	close(pair.client);
	pair.client = -1;
	evr_pre_real()->close_range = no_close_range;
	closefrom(200);
	ck_assert_int_eq(recv(pair.server, &byte, 1, 0), 0);
	ck_assert_fails(fcntl(200, F_GETFD), EBADF);
	ck_assert_fails(fcntl(201, F_GETFD), EBADF);
	places_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_process_can_fork_while_a_connection_ends,
		one_with_several_numbers_in_a_range_ends_once,
		a_child_of_vfork_closes_only_its_own,
		a_childs_listener_does_not_show_what_is_the_parents,
		a_childs_listener_takes_tcp,
		who_watched_exclusively_sees_a_listener,
		who_watched_once_is_told_once,
		a_closed_copys_watch_is_not_its_successors,
		closefrom_needs_no_new_kernel,
	};

	watch_closes();
	return places_main(places_cases("numbers", tests, sizeof(tests) / sizeof(*tests)));
}
