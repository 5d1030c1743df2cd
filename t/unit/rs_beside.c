/*
 * Two ways to wait for one rsocket, by two threads at once or by one after the other: what either
 * waits for is shown to it. And what ends beside a call ends that.
 */
#define _GNU_SOURCE
#include "unit/rs_dgram_unit.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* A call has begun to wait after SOON, and is not over by itself before PATIENCE. */
enum { SOON_MS = 50, PATIENCE_MS = 60000, US_PER_MS = 1000, MANY = 500 };

static short shown(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_ge(poll(&pfd, 1, timeout_ms), 0);
	return pfd.revents;
}

static void soon(void)
{
	usleep(SOON_MS * US_PER_MS);
}

static void fill(int fd)
{
	char bytes[4096] = { 0 };

	while (rsend(fd, bytes, sizeof(bytes), 0) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
}

/* The library's thread closes what was nonblocking. */
static void until_all_is_gone(void)
{
	int tries = PATIENCE_MS / SOON_MS;

	while (fake_expect_clean() && tries--)
		soon();
	ck_assert_int_gt(tries, 0);
}

/* --- another thread's call ------------------------------------------------------------------- */

struct call {
	int fd;
	short events; /* of rpoll(); 0: it receives, or sends */
	bool sends;
	ssize_t ret;
	int error;
	short revents;
	pthread_t thread;
};

static void *run_call(void *arg)
{
	struct call *call = arg;
	struct pollfd pfd = { .fd = call->fd, .events = call->events };
	char byte = 'x';

	errno = 0;
	if (call->events)
		call->ret = rpoll(&pfd, 1, PATIENCE_MS);
	else
		call->ret = call->sends ? rsend(call->fd, &byte, 1, 0)
					: rrecv(call->fd, &byte, 1, 0);
	call->error = errno;
	call->revents = pfd.revents;
	return NULL;
}

static void start(struct call *call)
{
	ck_assert_int_eq(pthread_create(&call->thread, NULL, run_call, call), 0);
	soon();
}

/* It waits when this returns. */
static void begin(struct call *call, int fd, short events)
{
	*call = (struct call){ .fd = fd, .events = events };
	start(call);
}

/* Long before its patience is over. */
static void end(struct call *call)
{
	struct timespec late;

	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += PATIENCE_MS / 1000 / 2;
	ck_assert_int_eq(pthread_timedjoin_np(call->thread, NULL, &late), 0);
}

static void set_flags(int fd, int flags)
{
	ck_assert_ok(rfcntl(fd, F_SETFL, O_RDWR | flags));
}

static void begin_to_receive(struct call *call, int fd)
{
	set_flags(fd, 0);
	begin(call, fd, 0);
}

static void begin_to_send(struct call *call, int fd)
{
	set_flags(fd, 0);
	*call = (struct call){ .fd = fd, .sends = true };
	start(call);
}

static void end_received(struct call *call)
{
	end(call);
	ck_assert_int_eq(call->ret, 1);
}

static void end_failed(struct call *call, int error)
{
	end(call);
	ck_assert_int_eq(call->ret, -1);
	ck_assert_int_eq(call->error, error);
}

/* --- one after the other --------------------------------------------------------------------- */

START_TEST(a_blocking_call_between_rpoll_and_the_number_hides_nothing)
{
	struct rs_pair pair = rs_connect();
	struct call call;

	rs_events(pair.server, POLLIN);
	begin_to_receive(&call, pair.server);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	end_received(&call);
	set_flags(pair.server, O_NONBLOCK);
	soon();
	ck_assert_int_eq(rsend(pair.client, "y", 1, 0), 1);
	ck_assert_int_eq(shown(pair.server, POLLIN, PATIENCE_MS), POLLIN);
	rs_close(&pair);
}
END_TEST

/* Who blocked before it was nonblocking waits on. */
START_TEST(a_blocking_call_beside_rpoll_and_the_number_hides_nothing)
{
	struct rs_pair pair = rs_connect();
	struct call call;

	begin_to_receive(&call, pair.server);
	set_flags(pair.server, O_NONBLOCK);
	rs_events(pair.server, POLLIN);
	soon();
	fill(pair.server);
	rs_events(pair.server, POLLIN);
	soon();
	ck_assert_int_eq(shown(pair.server, POLLOUT, 0), 0);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	end_received(&call);
	ck_assert_int_eq(rsend(pair.client, "y", 1, 0), 1);
	ck_assert_int_eq(shown(pair.server, POLLIN, PATIENCE_MS), POLLIN);
	rs_close(&pair);
}
END_TEST

/* Either of the library's thread and the one that sends may be told of what came, each time. */
START_TEST(what_comes_beside_a_blocking_call_to_send_is_shown)
{
	struct rs_pair pair = rs_connect();
	struct call call;
	char bytes[4096];
	int i;

	fill(pair.client);
	begin_to_send(&call, pair.client);
	set_flags(pair.client, O_NONBLOCK);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(rsend(pair.server, "y", 1, 0), 1);
		ck_assert_int_eq(shown(pair.client, POLLIN, PATIENCE_MS), POLLIN);
		ck_assert_int_eq(rrecv(pair.client, bytes, 1, 0), 1);
	}
	while (rrecv(pair.server, bytes, sizeof(bytes), 0) > 0)
		;
	end(&call);
	ck_assert_int_eq(call.ret, 1);
	rs_close(&pair);
}
END_TEST

/* --- at once --------------------------------------------------------------------------------- */

START_TEST(what_comes_while_another_waits_for_room_in_rpoll_is_shown)
{
	struct rs_pair pair = rs_connect();
	struct call call;
	char bytes[4096];

	fill(pair.client);
	begin(&call, pair.client, POLLOUT);
	ck_assert_int_eq(rsend(pair.server, "x", 1, 0), 1);
	ck_assert_int_eq(shown(pair.client, POLLIN, PATIENCE_MS), POLLIN);
	while (rrecv(pair.server, bytes, sizeof(bytes), 0) > 0)
		;
	end(&call);
	ck_assert_int_eq(call.revents, POLLOUT);
	rs_close(&pair);
}
END_TEST

START_TEST(room_is_shown_while_another_waits_in_rpoll_for_what_comes)
{
	struct rs_pair pair = rs_connect();
	struct call call;
	char bytes[4096];

	fill(pair.client);
	begin(&call, pair.client, POLLIN);
	ck_assert_int_eq(shown(pair.client, POLLOUT, 0), 0);
	while (rrecv(pair.server, bytes, sizeof(bytes), 0) > 0)
		;
	ck_assert_int_eq(shown(pair.client, POLLOUT, PATIENCE_MS), POLLOUT);
	ck_assert_int_eq(rsend(pair.server, "x", 1, 0), 1);
	end(&call);
	ck_assert_int_eq(call.revents, POLLIN);
	rs_close(&pair);
}
END_TEST

static int instance_with(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = repoll_create(EPOLL_CLOEXEC);

	ck_assert_ok(repoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
	return epoll_fd;
}

static bool is_told(int epoll_fd, int timeout_ms)
{
	struct epoll_event event;

	return repoll_wait(epoll_fd, &event, 1, timeout_ms) == 1;
}

START_TEST(a_member_of_an_instance_is_told_of_while_another_waits_for_room_in_rpoll)
{
	struct rs_pair pair = rs_connect();
	struct call call;
	int epoll_fd;
	char bytes[4096];

	fill(pair.client);
	begin(&call, pair.client, POLLOUT);
	epoll_fd = instance_with(pair.client);
	ck_assert(!is_told(epoll_fd, SOON_MS));
	ck_assert_int_eq(rsend(pair.server, "x", 1, 0), 1);
	ck_assert(is_told(epoll_fd, PATIENCE_MS));
	while (rrecv(pair.server, bytes, sizeof(bytes), 0) > 0)
		;
	end(&call);
	ck_assert_int_eq(call.revents, POLLOUT);
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

START_TEST(a_blocking_call_beside_an_instance_receives_and_the_rest_is_told)
{
	struct rs_pair pair = rs_connect();
	struct call call;
	int epoll_fd;

	begin_to_receive(&call, pair.server);
	epoll_fd = instance_with(pair.server);
	ck_assert_int_eq(rsend(pair.client, "x", 1, 0), 1);
	end_received(&call);
	ck_assert(!is_told(epoll_fd, SOON_MS));
	ck_assert_int_eq(rsend(pair.client, "y", 1, 0), 1);
	ck_assert(is_told(epoll_fd, PATIENCE_MS));
	ck_assert_ok(rclose(epoll_fd));
	rs_close(&pair);
}
END_TEST

/* --- what ends beside a call ----------------------------------------------------------------- */

/* What was sent is not there before the device works: rclose() waits for a second. */
static void close_beside(struct rs_pair *pair, int flags)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	struct call call;

	begin_to_receive(&call, pair->client);
	set_flags(pair->client, flags);
	ck_assert_ok(
		rsetsockopt(pair->client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	fake_work_by_hand(true);
	ck_assert_int_eq(rsend(pair->client, "x", 1, 0), 1);
	ck_assert_ok(rclose(pair->client));
	pair->client = -1;
	end_failed(&call, EBADF);
	fake_work_by_hand(false);
}

START_TEST(a_call_ends_when_its_rsocket_is_closed_whatever_is_to_be_said)
{
	struct rs_pair pair = rs_connect();

	close_beside(&pair, 0);
	rs_close(&pair);
}
END_TEST

START_TEST(a_call_ends_when_its_rsocket_is_closed_and_the_helper_says_the_rest)
{
	struct rs_pair pair = rs_connect();

	close_beside(&pair, O_NONBLOCK);
	rs_close(&pair);
	until_all_is_gone();
}
END_TEST

START_TEST(rpoll_of_datagrams_ends_when_they_are_closed_and_the_last_is_under_way)
{
	struct dgram_two two = dgram_make_two(0);
	struct call call;

	dgram_meet(&two);
	set_flags(two.a, O_NONBLOCK);
	begin(&call, two.a, POLLIN);
	fake_work_by_hand(true);
	dgram_send_text(two.a, "bye", &two.b_addr);
	ck_assert_ok(rclose(two.a));
	soon();
	fake_work_by_hand(false);
	end(&call);
	ck_assert_int_eq(call.revents, POLLNVAL);
	ck_assert_ok(rclose(two.b));
	until_all_is_gone();
}
END_TEST

/* --- a keepalive that cannot be sent --------------------------------------------------------- */

static void keep_alive(int fd)
{
	const int on = 1, idle_s = 1;

	ck_assert_ok(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s)));
	ck_assert_ok(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
}

START_TEST(a_keepalive_that_cannot_be_sent_is_shown_by_the_number)
{
	struct rs_pair pair = rs_connect();

	keep_alive(pair.client);
	fake_fail_next("ibv_post_send", EIO);
	ck_assert(shown(pair.client, POLLIN, PATIENCE_MS) & POLLERR);
	rs_close(&pair);
}
END_TEST

START_TEST(a_keepalive_that_cannot_be_sent_ends_a_call)
{
	struct rs_pair pair = rs_connect();
	struct call call;

	begin_to_receive(&call, pair.client);
	keep_alive(pair.client);
	fake_fail_next("ibv_post_send", EIO);
	end_failed(&call, EIO);
	rs_close(&pair);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_blocking_call_between_rpoll_and_the_number_hides_nothing,
		a_blocking_call_beside_rpoll_and_the_number_hides_nothing,
		what_comes_beside_a_blocking_call_to_send_is_shown,
		what_comes_while_another_waits_for_room_in_rpoll_is_shown,
		room_is_shown_while_another_waits_in_rpoll_for_what_comes,
		a_member_of_an_instance_is_told_of_while_another_waits_for_room_in_rpoll,
		a_blocking_call_beside_an_instance_receives_and_the_rest_is_told,
		a_call_ends_when_its_rsocket_is_closed_whatever_is_to_be_said,
		a_call_ends_when_its_rsocket_is_closed_and_the_helper_says_the_rest,
		rpoll_of_datagrams_ends_when_they_are_closed_and_the_last_is_under_way,
		a_keepalive_that_cannot_be_sent_is_shown_by_the_number,
		a_keepalive_that_cannot_be_sent_ends_a_call,
	};

	return cm_main("rs_beside", tests, sizeof(tests) / sizeof(tests[0]));
}
