#include "config.h"

#include "rs/limits.h"
#include "rs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { LIMIT_MS = 40, MUCH = 8 << 20, US_PER_MS = 1000, MS_PER_S = 1000 };

/* --- steps ----------------------------------------------------------------------------------- */

static int set_limit(int fd, int option, long s, long us)
{
	const struct timeval limit = { s, us };

	return error_of(call()->setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit)));
}

/* It waits, and not for longer than that. */
static void be_limited(int fd, int option)
{
	set_blocking(fd);
	ck_assert_int_eq(set_limit(fd, option, 0, LIMIT_MS * US_PER_MS), 0);
}

static struct timeval limit_of(int fd, int option)
{
	struct timeval limit = { -1, -1 };
	socklen_t len = sizeof(limit);

	ck_assert_int_eq(call()->getsockopt(fd, SOL_SOCKET, option, &limit, &len), 0);
	ck_assert_uint_eq(len, sizeof(limit));
	return limit;
}

static void expect_limit(int fd, int option, long s, long us)
{
	struct timeval limit = limit_of(fd, option);

	ck_assert_int_eq(limit.tv_sec, s);
	ck_assert_int_eq(limit.tv_usec, us);
}

/* A clock that counts in whole ticks may be one short. */
static void expect_waited(int64_t since_ms)
{
	ck_assert_int_ge(now_ms() - since_ms, LIMIT_MS / 2);
}

/* --- the options ----------------------------------------------------------------------------- */

static const int options[] = { SO_RCVTIMEO, SO_SNDTIMEO };

START_TEST(a_limit_is_kept)
{
	int fd = open_one(), option = options[_i];

	expect_limit(fd, option, 0, 0);
	ck_assert_int_eq(set_limit(fd, option, 3, 500000), 0);
	expect_limit(fd, option, 3, 500000);
	expect_limit(fd, options[!_i], 0, 0);
	ck_assert_int_eq(set_limit(fd, option, 0, -1), EDOM);
	ck_assert_int_eq(set_limit(fd, option, 0, 1000000), EDOM);
	expect_limit(fd, option, 3, 500000);
	ck_assert_int_eq(set_limit(fd, option, 0, 0), 0);
	expect_limit(fd, option, 0, 0);
	ck_assert_int_eq(set_limit(fd, option, -1, 0), 0);
	expect_limit(fd, option, 0, 0);
	ck_assert_int_eq(call()->close(fd), 0);
}
END_TEST

START_TEST(a_limit_is_whole)
{
	const struct timeval limit = { 1, 0 };
	int fd = open_one();

	ck_assert_int_eq(
		call()->setsockopt(fd, SOL_SOCKET, options[_i], &limit, sizeof(limit) - 1), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(call()->setsockopt(fd, SOL_SOCKET, options[_i], NULL, sizeof(limit)), -1);
	ck_assert_int_eq(errno, EFAULT);
	ck_assert_int_eq(call()->close(fd), 0);
}
END_TEST

START_TEST(who_is_accepted_has_the_listeners)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 1) };

	ck_assert_int_eq(set_limit(pair.listener, SO_RCVTIMEO, 5, 0), 0);
	ck_assert_int_eq(set_limit(pair.listener, SO_SNDTIMEO, 6, 0), 0);
	pair.client = connect_to(port);
	pair.server = accept_from(pair.listener);
	expect_limit(pair.server, SO_RCVTIMEO, 5, 0);
	expect_limit(pair.server, SO_SNDTIMEO, 6, 0);
	end_pair(&pair);
}
END_TEST

/* --- receiving ------------------------------------------------------------------------------- */

START_TEST(to_receive_ends_at_its_limit)
{
	struct pair pair = make_pair();
	int64_t begun = now_ms();
	char bytes[10];

	be_limited(pair.server, SO_RCVTIMEO);
	ck_assert_int_eq(call()->recv(pair.server, bytes, sizeof(bytes), 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	expect_waited(begun);
	ck_assert_int_eq(so_error(pair.server), 0);
	send_bytes(pair.client, 3);
	ck_assert_int_eq(set_limit(pair.server, SO_RCVTIMEO, PATIENCE_MS / MS_PER_S, 0), 0);
	ck_assert_int_eq(call()->recv(pair.server, bytes, sizeof(bytes), 0), 3);
	end_pair(&pair);
}
END_TEST

START_TEST(less_than_no_time_is_none)
{
	struct pair pair = make_pair();
	char byte;

	set_blocking(pair.server);
	ck_assert_int_eq(set_limit(pair.server, SO_RCVTIMEO, -1, 0), 0);
	ck_assert_int_eq(call()->recv(pair.server, &byte, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	end_pair(&pair);
}
END_TEST

/* 0: it receives; 1: it only looks. */
START_TEST(who_wants_all_gets_what_there_is_at_the_limit)
{
	struct pair pair = make_pair();
	int flags = MSG_WAITALL | (_i ? MSG_PEEK : 0);
	int64_t begun = now_ms();
	char bytes[10];

	send_bytes(pair.client, 4);
	wait_for(pair.server, POLLIN);
	be_limited(pair.server, SO_RCVTIMEO);
	ck_assert_int_eq(call()->recv(pair.server, bytes, sizeof(bytes), flags), 4);
	expect_waited(begun);
	if (_i)
		receive_bytes(pair.server, 4);
	ck_assert_int_eq(call()->recv(pair.server, bytes, sizeof(bytes), flags), -1);
	ck_assert_int_eq(errno, EAGAIN);
	end_pair(&pair);
}
END_TEST

/* What was there first, then why there is no more. */
START_TEST(who_wants_all_gets_what_there_is_before_a_reset)
{
	struct pair pair = make_pair();
	char bytes[10];

	send_bytes(pair.server, 4);
	wait_for(pair.client, POLLIN);
	was_reset(&pair);
	be_limited(pair.client, SO_RCVTIMEO);
	ck_assert_int_eq(call()->recv(pair.client, bytes, sizeof(bytes), MSG_WAITALL), 4);
	ck_assert_int_eq(call()->recv(pair.client, bytes, sizeof(bytes), MSG_WAITALL), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	ck_assert_int_eq(call()->recv(pair.client, bytes, sizeof(bytes), MSG_WAITALL), 0);
	end_pair(&pair);
}
END_TEST

/* The suite would run out of time. */
START_TEST(who_does_not_wait_has_no_limit)
{
	struct pair pair = make_pair();
	char byte;

	ck_assert_int_eq(set_limit(pair.server, SO_RCVTIMEO, 100000, 0), 0);
	expect_nothing(pair.server);
	set_blocking(pair.server);
	ck_assert_int_eq(call()->recv(pair.server, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	end_pair(&pair);
}
END_TEST

START_TEST(to_accept_ends_at_its_limit)
{
	uint16_t port;
	int fd = listen_on(&port, 1);
	int64_t begun = now_ms();

	be_limited(fd, SO_RCVTIMEO);
	ck_assert_int_eq(call()->accept(fd, NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
	expect_waited(begun);
	ck_assert_int_eq(call()->close(fd), 0);
}
END_TEST

/* --- sending --------------------------------------------------------------------------------- */

/* A kernel may still take some a moment later. Returns what it took; begun is of the last call. */
static size_t send_to_the_end(int fd, size_t sent, int64_t *begun)
{
	ssize_t ret;
	char byte;

	do {
		fill(&byte, sizeof(byte), sent);
		*begun = now_ms();
		ret = call()->send(fd, &byte, sizeof(byte), 0);
		sent += ret > 0;
	} while (ret > 0);
	ck_assert_int_eq(ret, -1);
	return sent;
}

START_TEST(to_send_ends_at_its_limit)
{
	struct pair pair = make_pair();
	size_t sent = fill_up(pair.client);
	int64_t begun;

	be_limited(pair.client, SO_SNDTIMEO);
	sent = send_to_the_end(pair.client, sent, &begun);
	ck_assert_int_eq(errno, EAGAIN);
	expect_waited(begun);
	ck_assert_int_eq(so_error(pair.client), 0);
	empty(pair.server, sent, 0);
	end_pair(&pair);
}
END_TEST

START_TEST(of_much_as_much_is_sent_as_goes_within_the_limit)
{
	struct pair pair = make_pair();
	char *bytes = malloc(MUCH);
	int64_t begun = now_ms();
	ssize_t sent;

	fill(bytes, MUCH, 0);
	be_limited(pair.client, SO_SNDTIMEO);
	sent = call()->send(pair.client, bytes, MUCH, 0);
	ck_assert_int_gt(sent, 0);
	ck_assert_int_lt(sent, MUCH);
	expect_waited(begun);
	empty(pair.server, (size_t)sent, 0);
	expect_nothing(pair.server);
	free(bytes);
	end_pair(&pair);
}
END_TEST

/* --- connecting ------------------------------------------------------------------------------ */

static int connect_again(int fd, uint16_t port)
{
	struct sockaddr_storage addr = place(port);

	return error_of(call()->connect(fd, (struct sockaddr *)&addr, place_len()));
}

static void wait_for_connect(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	ck_assert_int_eq(call()->poll(&pfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(pfd.revents, POLLOUT);
}

/* The listener has one place, which another has. The attempt goes on behind the limit. */
START_TEST(to_connect_ends_at_its_limit_and_goes_on)
{
	uint16_t port;
	struct pair pair = { .listener = listen_on(&port, 0), .client = open_one() };
	int first = connect_to(port);
	int64_t begun = now_ms();

	wait_for(pair.listener, POLLIN);
	be_limited(pair.client, SO_SNDTIMEO);
	ck_assert_int_eq(connect_again(pair.client, port), EINPROGRESS);
	expect_waited(begun);
	begun = now_ms();
	ck_assert_int_eq(connect_again(pair.client, port), EALREADY);
	expect_waited(begun);
	ck_assert_int_eq(so_error(pair.client), 0);
	ck_assert_int_eq(call()->close(accept_from(pair.listener)), 0);
	wait_for_connect(pair.client);
	pair.server = accept_from(pair.listener);
	ck_assert_int_eq(connect_again(pair.client, port), 0);
	ck_assert_int_eq(connect_again(pair.client, port), EISCONN);
	ck_assert_int_eq(call()->close(first), 0);
	end_pair(&pair);
}
END_TEST

TCase *limits_case(const char *name)
{
	TCase *cases = tcase_create(name);

	tcase_set_timeout(cases, 600);
	tcase_add_loop_test(cases, a_limit_is_kept, 0, 2);
	tcase_add_loop_test(cases, a_limit_is_whole, 0, 2);
	tcase_add_test(cases, who_is_accepted_has_the_listeners);
	tcase_add_test(cases, to_receive_ends_at_its_limit);
	tcase_add_test(cases, less_than_no_time_is_none);
	tcase_add_loop_test(cases, who_wants_all_gets_what_there_is_at_the_limit, 0, 2);
	tcase_add_test(cases, who_wants_all_gets_what_there_is_before_a_reset);
	tcase_add_test(cases, who_does_not_wait_has_no_limit);
	tcase_add_test(cases, to_accept_ends_at_its_limit);
	tcase_add_test(cases, to_send_ends_at_its_limit);
	tcase_add_test(cases, of_much_as_much_is_sent_as_goes_within_the_limit);
	tcase_add_test(cases, to_connect_ends_at_its_limit_and_goes_on);
	return cases;
}
