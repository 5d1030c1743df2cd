/* repoll_*(): what is not as with the kernel's calls, and what ends when. See t/rs/descriptor.c. */
#define _GNU_SOURCE
#include "unit/rs_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static int make_instance(void)
{
	int fd = repoll_create(EPOLL_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int watch(int epoll_fd, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return repoll_ctl(epoll_fd, op, fd, &event);
}

/* What is told of the only member. */
static uint32_t told(int epoll_fd, int timeout_ms)
{
	struct epoll_event event = { 0 };

	ck_assert_int_ge(repoll_wait(epoll_fd, &event, 1, timeout_ms), 0);
	return event.events;
}

static int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int num = 0;

	while (readdir(folder))
		num++;
	closedir(folder);
	return num;
}

/* --- an instance ----------------------------------------------------------------------------- */

START_TEST(an_instance_has_the_flag_that_was_asked_for)
{
	int plain = repoll_create(0), closed = repoll_create(EPOLL_CLOEXEC);

	ck_assert_int_eq(fcntl(plain, F_GETFD), 0);
	ck_assert_int_eq(fcntl(closed, F_GETFD), FD_CLOEXEC);
	ck_assert_fails(repoll_create(1), EINVAL);
	ck_assert_ok(rclose(plain));
	ck_assert_ok(rclose(closed));
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
	int epoll_fd = make_instance(), fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct epoll_event event;

	ck_assert_fails(watch(epoll_fd, EPOLL_CTL_ADD, -1, EPOLLIN), EBADF);
	ck_assert_fails(watch(-1, EPOLL_CTL_ADD, fd, EPOLLIN), EBADF);
	ck_assert_fails(watch(fd, EPOLL_CTL_ADD, epoll_fd, EPOLLIN), EINVAL);
	ck_assert_fails(watch(epoll_fd, EPOLL_CTL_ADD, epoll_fd, EPOLLIN), EINVAL);
	ck_assert_fails(watch(epoll_fd, 77, fd, EPOLLIN), EINVAL);
	ck_assert_fails(watch(epoll_fd, EPOLL_CTL_MOD, fd, EPOLLIN), ENOENT);
	ck_assert_fails(repoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL), ENOENT);
	ck_assert_fails(repoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, NULL), EFAULT);
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, fd, EPOLLIN));
	ck_assert_fails(watch(epoll_fd, EPOLL_CTL_ADD, fd, EPOLLIN), EEXIST);
	ck_assert_ok(repoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL));
	ck_assert_fails(repoll_wait(epoll_fd, NULL, 1, 0), EFAULT);
	ck_assert_fails(repoll_wait(epoll_fd, NULL, 0, 0), EINVAL);
	ck_assert_fails(repoll_wait(epoll_fd, &event, -1, 0), EINVAL);
	ck_assert_fails(repoll_wait(fd, &event, 1, 0), EINVAL);
	ck_assert_fails(repoll_wait(-1, &event, 1, 0), EBADF);
	ck_assert_ok(rclose(fd));
	ck_assert_ok(rclose(epoll_fd));
}
END_TEST

START_TEST(rclose_ends_an_instance_and_no_other_descriptor)
{
	int before = count_fds(), epoll_fd = make_instance(), other = epoll_create1(0);
	char byte;

	ck_assert_fails(rrecv(epoll_fd, &byte, 1, 0), EBADF);
	ck_assert_fails(rclose(other), EBADF);
	ck_assert_ok(close(other));
	ck_assert_ok(rclose(epoll_fd));
	ck_assert_fails(rclose(epoll_fd), EBADF);
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

/* What has its number next is not taken for it. */
START_TEST(one_that_was_closed_with_close_is_none_any_more)
{
	int fd = make_instance();

	ck_assert_ok(close(fd));
	ck_assert_int_eq(open("/dev/null", O_RDONLY), fd);
	ck_assert_fails(rclose(fd), EBADF);
	ck_assert_ok(close(fd));
	ck_assert_fails(rclose(fd), EBADF);
}
END_TEST

/* As that of epoll_create(2) is there: whose descriptors the members are, is another matter. */
START_TEST(a_child_has_the_instance_and_can_close_it)
{
	int epoll_fd = make_instance(), ends[2], status;
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, ends[0], EPOLLIN));
	child = fork();
	if (!child)
		_exit(rclose(epoll_fd) || fcntl(epoll_fd, F_GETFD) >= 0 || !rclose(epoll_fd));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	ck_assert_uint_eq(told(epoll_fd, 0), EPOLLIN);
	close(ends[0]);
	close(ends[1]);
	ck_assert_ok(rclose(epoll_fd));
}
END_TEST

/* --- members --------------------------------------------------------------------------------- */

START_TEST(one_that_was_in_rpoll_shows_at_once_what_there_is)
{
	struct rs_pair pair = rs_connect();
	int epoll_fd = make_instance();

	rs_events(pair.server, POLLIN);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, pair.server, EPOLLIN));
	ck_assert_uint_eq(told(epoll_fd, 0), EPOLLIN);
	ck_assert_int_eq(rs_events(pair.server, POLLIN), POLLIN);
	ck_assert_int_eq(rrecv(pair.server, (char[1]){ 0 }, 1, 0), 1);
	ck_assert_int_eq(rs_events(pair.server, POLLIN), 0);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_MOD, pair.server, EPOLLIN));
	ck_assert_uint_eq(told(epoll_fd, 0), EPOLLIN);
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

START_TEST(a_blocking_listener_is_told_of_connections)
{
	int listener = rs_listener(), epoll_fd = make_instance(), client, server;

	ck_assert_ok(rfcntl(listener, F_SETFL, O_RDWR));
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, listener, EPOLLIN));
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	client = rs_client();
	ck_assert_uint_eq(told(epoll_fd, PATIENCE_MS), EPOLLIN);
	server = raccept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	ck_assert_ok(rclose(client));
	ck_assert_ok(rclose(server));
	ck_assert_ok(rclose(listener));
	ck_assert_ok(rclose(epoll_fd));
}
END_TEST

/* One that is a member before it connects, and goes on to block. */
START_TEST(a_blocking_one_is_a_member_from_its_beginning)
{
	struct rs_pair pair = { .listener = rs_listener() };
	int epoll_fd = make_instance();
	char bytes[4];

	pair.client = rsocket(AF_INET, SOCK_STREAM, 0);
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, pair.client, EPOLLIN));
	ck_assert_ok(rconnect(
		pair.client, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)));
	ck_assert_int_eq(rs_await(pair.listener, POLLIN), POLLIN);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	ck_assert_int_eq(rsend(pair.server, "four", 4, 0), 4);
	ck_assert_uint_eq(told(epoll_fd, PATIENCE_MS), EPOLLIN);
	ck_assert_int_eq(rrecv(pair.client, bytes, 4, MSG_WAITALL), 4);
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	ck_assert_ok(rclose(pair.server));
	pair.server = -1;
	ck_assert_uint_eq(told(epoll_fd, PATIENCE_MS) & EPOLLIN, EPOLLIN);
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

START_TEST(blocking_datagrams_are_told)
{
	int from = rsocket(AF_INET, SOCK_DGRAM, 0), to = rsocket(AF_INET, SOCK_DGRAM, 0);
	int epoll_fd = make_instance();
	char byte;

	ck_assert_ok(rbind(to, cm_addr("127.0.0.1", CM_PORT), sizeof(struct sockaddr_in)));
	ck_assert_ok(watch(epoll_fd, EPOLL_CTL_ADD, to, EPOLLIN));
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	ck_assert_int_eq(rsendto(from, "x", 1, 0, cm_addr("127.0.0.1", CM_PORT),
				 sizeof(struct sockaddr_in)),
		1);
	ck_assert_uint_eq(told(epoll_fd, PATIENCE_MS), EPOLLIN);
	ck_assert_int_eq(rrecv(to, &byte, 1, 0), 1);
	ck_assert_uint_eq(told(epoll_fd, 0), 0);
	ck_assert_ok(rclose(from));
	ck_assert_ok(rclose(to));
	ck_assert_ok(rclose(epoll_fd));
}
END_TEST

/* Nobody looks after a blocking one that was refused, and its number shows nothing as before. */
START_TEST(one_that_was_refused_is_as_it_was)
{
	struct rs_pair pair = rs_connect();
	int epoll_fd = make_instance(), plain = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	ck_assert_fails(watch(epoll_fd, EPOLL_CTL_MOD, pair.server, EPOLLIN), ENOENT);
	ck_assert_ok(epoll_ctl(plain, EPOLL_CTL_ADD, pair.server, &event));
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert_int_eq(epoll_wait(plain, &event, 1, 10), 0);
	ck_assert_int_eq(rrecv(pair.server, (char[1]){ 0 }, 1, 0), 1);
	close(plain);
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_instance_has_the_flag_that_was_asked_for,
		what_makes_no_sense_is_refused,
		rclose_ends_an_instance_and_no_other_descriptor,
		one_that_was_closed_with_close_is_none_any_more,
		a_child_has_the_instance_and_can_close_it,
		one_that_was_in_rpoll_shows_at_once_what_there_is,
		a_blocking_listener_is_told_of_connections,
		a_blocking_one_is_a_member_from_its_beginning,
		blocking_datagrams_are_told,
		one_that_was_refused_is_as_it_was,
	};

	return cm_main("rs_repoll", tests, sizeof(tests) / sizeof(tests[0]));
}
