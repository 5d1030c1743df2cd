/*
 * The thread that looks after nonblocking rsockets: what it is made of cannot be had, who leaves
 * rpoll() is shown what comes, and its descriptors are there as long as it is.
 */
#define _GNU_SOURCE
#include "unit/rs_unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/thread.h"

/* An errno that nobody else gives. */
enum { INJECTED = EOVERFLOW, POINTS_MAX = 100, PATIENCE_MS = 60000, CHILD_S = 60 };
/* A pair and a channel; and an epoll set, a timer, and what wakes it. */
enum { OWN_FDS = 3, THREAD_FDS = 3 };

/* --- calls that fail ------------------------------------------------------------------------- */

static atomic_int left;	   /* until one fails; 0: none does */
static atomic_bool no_adding; /* to any epoll set */

static bool fails(void)
{
	if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
		return false;
	errno = INJECTED;
	return true;
}

int epoll_create1(int flags)
{
	return fails() ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && atomic_load(&no_adding)) {
		errno = INJECTED;
		return -1;
	}
	if (op == EPOLL_CTL_ADD && fails())
		return -1;
	return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

/* Those of the fake are not nonblocking. */
int eventfd(unsigned int count, int flags)
{
	return flags & EFD_NONBLOCK && fails() ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

int timerfd_create(int clock, int flags)
{
	return fails() ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

int evr_thread_start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	int ret = fails() ? INJECTED : pthread_create(&thread, NULL, run, arg);

	if (!ret)
		pthread_detach(thread);
	return -ret;
}

/* --- descriptors ----------------------------------------------------------------------------- */

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int num = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		num++;
	closedir(folder);
	return num;
}

/* The thread ends a moment after the last one that it looks after. */
static void await_descriptors(int wanted)
{
	int waited;

	for (waited = 0; descriptors() != wanted && waited < PATIENCE_MS; waited++)
		usleep(1000);
	ck_assert_int_eq(descriptors(), wanted);
}

/* --- a connection by the numbers ------------------------------------------------------------- */

static int error_of(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	ck_assert_ok(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	return error;
}

static int result_of(ssize_t ret)
{
	return ret < 0 && errno != EAGAIN ? errno : 0;
}

/* Until the number shows something. */
static short await(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_msg(poll(&pfd, 1, PATIENCE_MS) == 1, "the number shows nothing");
	return pfd.revents;
}

static int wait_for_client(struct rs_pair *pair)
{
	return await(pair->client, POLLOUT) & POLLERR ? error_of(pair->client) : 0;
}

/* Until either number shows something; a client that failed has it first. */
static int wait_for_server(struct rs_pair *pair)
{
	struct pollfd fds[] = { { pair->listener, POLLIN, 0 }, { pair->client, 0, 0 } };
	int error = 0;

	while (!error && pair->server < 0) {
		ck_assert_msg(poll(fds, 2, PATIENCE_MS) > 0, "the numbers show nothing");
		if (fds[1].revents & POLLERR)
			return error_of(pair->client);
		pair->server = raccept(pair->listener, NULL, NULL);
		error = result_of(pair->server);
	}
	return error;
}

static int pass_byte(int from, int to)
{
	int error = result_of(rsend(from, "x", 1, 0));
	ssize_t ret = -1;
	char byte;

	while (!error && ret < 0) {
		await(to, POLLIN);
		ret = rrecv(to, &byte, 1, 0);
		error = result_of(ret);
	}
	return error;
}

/* What somebody is told; the listener goes on after that. */
static int run(struct rs_pair *pair)
{
	int error;

	pair->listener = rs_listener();
	pair->client = rs_client();
	error = wait_for_server(pair);
	if (!error)
		error = wait_for_client(pair);
	if (!error)
		error = result_of(rfcntl(pair->server, F_SETFL, O_RDWR | O_NONBLOCK));
	if (!error)
		error = pass_byte(pair->client, pair->server);
	if (!error)
		error = pass_byte(pair->server, pair->client);
	return error;
}

static bool fails_at(int n, int before)
{
	struct rs_pair pair = { -1, -1, -1 };
	bool failed;
	int error;

	atomic_store(&left, n);
	error = run(&pair);
	failed = !atomic_exchange(&left, 0);
	ck_assert_msg(error == (failed ? INJECTED : 0) || (failed && error == ECONNRESET),
		"call %d: %s", n, strerror(error));
	rs_close(&pair);
	await_descriptors(before);
	return failed;
}

START_TEST(whatever_the_thread_cannot_have_is_told_and_nothing_is_left)
{
	int n = 0, listener = rs_listener(), before = descriptors() - OWN_FDS - THREAD_FDS;

	ck_assert_ok(rclose(listener));
	await_descriptors(before);
	while (n < POINTS_MAX && fails_at(n + 1, before))
		n++;
	ck_assert_int_ge(n, 8);
	ck_assert_int_lt(n, POINTS_MAX);
}
END_TEST

START_TEST(the_descriptors_of_the_thread_end_with_it)
{
	int fd = rs_listener(), before;

	before = descriptors();
	ck_assert_ok(rclose(fd));
	await_descriptors(before - OWN_FDS - THREAD_FDS);
}
END_TEST

START_TEST(a_listener_that_was_not_watched_goes_on_when_that_was_told)
{
	struct rs_pair pair = { -1, -1, -1 };

	atomic_store(&no_adding, true);
	pair.listener = rs_listener();
	ck_assert_int_eq(await(pair.listener, POLLIN), POLLIN);
	atomic_store(&no_adding, false);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), INJECTED);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), EAGAIN);
	pair.client = rs_client();
	ck_assert_int_eq(wait_for_server(&pair), 0);
	rs_close(&pair);
}
END_TEST

/* Its connections are taken all the same by who asks for them. */
START_TEST(a_listener_that_cannot_be_watched_accepts)
{
	struct rs_pair pair = { -1, -1, -1 };
	struct pollfd pfd;
	int turns = 0;

	pair.client = rs_client();
	ck_assert_int_eq(wait_for_client(&pair), ECONNREFUSED);
	ck_assert_ok(rclose(pair.client));
	pair.listener = rs_listener();
	ck_assert_fails(raccept(pair.listener, NULL, NULL), EAGAIN);
	ck_assert_ok(rfcntl(pair.listener, F_SETFL, O_RDWR));
	pair.client = rs_client();
	atomic_store(&no_adding, true);
	ck_assert_fails(rfcntl(pair.listener, F_SETFL, O_RDWR | O_NONBLOCK), INJECTED);
	ck_assert_int_eq(rfcntl(pair.listener, F_GETFL) & O_NONBLOCK, 0);
	pfd = (struct pollfd){ .fd = pair.listener, .events = POLLIN };
	while (rpoll(&pfd, 1, 0) != 1)
		ck_assert_int_lt(turns++, 1000000);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	atomic_store(&no_adding, false);
	rs_close(&pair);
}
END_TEST

/* --- rpoll, and then the number -------------------------------------------------------------- */

START_TEST(one_that_was_in_rpoll_before_it_listened_shows_what_comes)
{
	struct rs_pair pair = { rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), -1, -1 };

	rs_events(pair.listener, POLLIN);
	ck_assert_ok(rbind(pair.listener, cm_addr(FAKE_ROCE_IP, CM_PORT),
		sizeof(struct sockaddr_in)));
	ck_assert_ok(rlisten(pair.listener, 1));
	pair.client = rs_client();
	ck_assert_int_eq(wait_for_server(&pair), 0);
	rs_close(&pair);
}
END_TEST

START_TEST(one_that_leaves_rpoll_needs_nothing_new_to_be_shown)
{
	struct rs_pair pair = rs_connect();

	ck_assert_int_eq(wait_for_client(&pair), 0);
	rs_pass(pair.client, pair.server, 1000);
	usleep(10000);
	rs_events(pair.server, POLLIN);
	atomic_store(&no_adding, true);
	ck_assert_int_eq(pass_byte(pair.client, pair.server), 0);
	atomic_store(&no_adding, false);
	rs_close(&pair);
}
END_TEST

static short shown(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_ge(poll(&pfd, 1, timeout_ms), 0);
	return pfd.revents;
}

START_TEST(what_was_taken_after_rpoll_is_not_shown)
{
	struct rs_pair pair = rs_connect();
	char bytes[100] = { 0 };

	ck_assert_int_eq(rsend(pair.client, bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(shown(pair.server, POLLIN, PATIENCE_MS), POLLIN);
	rs_events(pair.server, POLLOUT);
	ck_assert_int_eq(rrecv(pair.server, bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(shown(pair.server, POLLIN, 0), 0);
	rs_close(&pair);
}
END_TEST

START_TEST(room_that_was_used_after_rpoll_is_not_shown)
{
	struct rs_pair pair = rs_connect();
	char bytes[4096] = { 0 };

	ck_assert_int_eq(shown(pair.client, POLLOUT, PATIENCE_MS), POLLOUT);
	rs_events(pair.client, POLLIN);
	while (rsend(pair.client, bytes, sizeof(bytes), 0) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(shown(pair.client, POLLOUT, 0), 0);
	rs_close(&pair);
}
END_TEST

enum { ROUNDS = 40, STEPS = 50, CHUNK_MAX = 40000 };

static unsigned int draw(unsigned int *seed, unsigned int below)
{
	return (unsigned int)rand_r(seed) % below;
}

static void take_step(const struct rs_pair *pair, unsigned int *seed)
{
	static char bytes[CHUNK_MAX];
	int fd = draw(seed, 2) ? pair->client : pair->server;
	size_t len = 1 + draw(seed, sizeof(bytes));

	switch (draw(seed, 8)) {
	case 0:
		usleep(draw(seed, 5000));
		break;
	case 1:
		rs_events(fd, POLLIN | POLLOUT);
		break;
	case 2:
	case 3:
	case 4:
		ck_assert(rsend(fd, bytes, len, 0) > 0 || errno == EAGAIN);
		break;
	default:
		ck_assert(rrecv(fd, bytes, len, 0) > 0 || errno == EAGAIN);
		break;
	}
}

static void check_shown(int fd)
{
	short events = shown(fd, POLLIN | POLLOUT, 0);

	if (events & POLLIN)
		ck_assert_int_eq(rrecv(fd, (char[1]){ 0 }, 1, MSG_PEEK), 1);
	if (events & POLLOUT)
		ck_assert_int_eq(rsend(fd, (char[1]){ 0 }, 1, 0), 1);
}

/* And what there is, is shown some time after. */
static void await_shown(int fd)
{
	const short both = POLLIN | POLLOUT;
	int tries = PATIENCE_MS;

	while (shown(fd, both, 0) != rs_events(fd, both) && tries--)
		usleep(5000);
	ck_assert_int_gt(tries, 0);
}

START_TEST(the_number_shows_nothing_that_is_not_there_and_all_that_is)
{
	struct rs_pair pair = rs_connect();
	unsigned int seed = 1;
	int i, j;

	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < STEPS; j++) {
			take_step(&pair, &seed);
			check_shown(pair.client);
			check_shown(pair.server);
		}
		await_shown(pair.client);
		await_shown(pair.server);
	}
	rs_close(&pair);
}
END_TEST

/* --- repoll ---------------------------------------------------------------------------------- */

static bool is_told(int epoll_fd)
{
	struct epoll_event event;

	return repoll_wait(epoll_fd, &event, 1, PATIENCE_MS) == 1;
}

/* A blocking one goes on as it was. */
START_TEST(one_that_nobody_can_look_after_is_no_member)
{
	struct rs_pair pair = rs_connect();
	int epoll_fd = repoll_create(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	char byte;

	ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR));
	/* The second of its two channels. */
	atomic_store(&left, 2);
	ck_assert_fails(repoll_ctl(epoll_fd, EPOLL_CTL_ADD, pair.server, &event), INJECTED);
	ck_assert_fails(repoll_ctl(epoll_fd, EPOLL_CTL_DEL, pair.server, NULL), ENOENT);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert_int_eq(rrecv(pair.server, &byte, 1, 0), 1);
	ck_assert_ok(repoll_ctl(epoll_fd, EPOLL_CTL_ADD, pair.server, &event));
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	ck_assert(is_told(epoll_fd));
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

START_TEST(an_instance_that_cannot_be_had_is_told)
{
	atomic_store(&left, 1);
	ck_assert_fails(repoll_create(0), INJECTED);
	ck_assert_int_eq(atomic_load(&left), 0);
}
END_TEST

/* --- raccept --------------------------------------------------------------------------------- */

START_TEST(raccept_that_fails_leaves_nothing_and_the_connection_waits)
{
	struct rs_pair pair = { rs_listener(), -1, -1 };
	int one = 1, before;

	ck_assert_ok(rsetsockopt(pair.listener, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
	ck_assert_ok(rsetsockopt(pair.listener, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	pair.client = rs_client();
	await(pair.listener, POLLIN);
	ck_assert_int_eq(wait_for_client(&pair), 0);
	before = descriptors();
	fake_fail_next("MIGRATE_ID", INJECTED);
	ck_assert_fails(raccept(pair.listener, NULL, NULL), INJECTED);
	ck_assert_int_eq(descriptors(), before);
	ck_assert_int_eq(await(pair.listener, POLLIN), POLLIN);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	rs_close(&pair);
}
END_TEST

/* --- a child of fork() ----------------------------------------------------------------------- */

/* As a daemon does: nothing of its parent's, and files of its own in their place. */
static int take_all_numbers(void)
{
	struct stat null, there;
	int fd, top = 0;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	while (top < 100)
		top = open("/dev/null", O_RDONLY);
	fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	rbind(fd, cm_addr(FAKE_ROCE_IP, CM_PORT + 1), sizeof(struct sockaddr_in));
	rlisten(fd, 1);
	stat("/dev/null", &null);
	for (fd = 3; fd <= top; fd++)
		if (fstat(fd, &there) || there.st_rdev != null.st_rdev)
			return 1;
	return 0;
}

START_TEST(a_child_that_closed_everything_keeps_what_it_opened)
{
	int listener = rs_listener(), status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		alarm(CHILD_S);
		_exit(take_all_numbers());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_ok(rclose(listener));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		whatever_the_thread_cannot_have_is_told_and_nothing_is_left,
		the_descriptors_of_the_thread_end_with_it,
		a_listener_that_was_not_watched_goes_on_when_that_was_told,
		a_listener_that_cannot_be_watched_accepts,
		one_that_was_in_rpoll_before_it_listened_shows_what_comes,
		one_that_leaves_rpoll_needs_nothing_new_to_be_shown,
		what_was_taken_after_rpoll_is_not_shown,
		room_that_was_used_after_rpoll_is_not_shown,
		the_number_shows_nothing_that_is_not_there_and_all_that_is,
		one_that_nobody_can_look_after_is_no_member,
		an_instance_that_cannot_be_had_is_told,
		raccept_that_fails_leaves_nothing_and_the_connection_waits,
		a_child_that_closed_everything_keeps_what_it_opened,
	};

	return cm_main("rs_helper", tests, sizeof(tests) / sizeof(tests[0]));
}
