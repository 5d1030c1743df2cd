#include "config.h"

#include "rs/unanswered.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "rs/calls.h"
#include "schedule/clock.h"

enum {
	PORT = 7600,
	US_PER_S = 1000000,
	SOON_S = 2,
	GONE = POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
};

/*
 * One who is known to be there, and says nothing; and one of whom nobody knows where it is, since
 * the question is not answered either. What is said in the end is the same of TCP and of rsockets.
 */
static const struct silence {
	const struct rs_calls *calls;
	const char *ip;
	int error;
} silences[] = {
	{ &rs_calls_tcp, "10.77.0.9", ETIMEDOUT },
	{ &rs_calls_rs, "10.77.0.9", ETIMEDOUT },
	{ &rs_calls_tcp, "10.77.0.8", EHOSTUNREACH },
	{ &rs_calls_rs, "10.77.0.8", EHOSTUNREACH },
};

enum { SILENCES = sizeof(silences) / sizeof(silences[0]) };

/* --- steps ----------------------------------------------------------------------------------- */

static int open_one(const struct silence *silence, int flags)
{
	int fd = silence->calls->socket(AF_INET, SOCK_STREAM | flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int connect_one(const struct silence *silence, int fd)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_pton(AF_INET, silence->ip, &addr.sin_addr);
	return silence->calls->connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno : 0;
}

static void expect_error(int found, int error)
{
	ck_assert_msg(found == error, "%s, not %s", strerror(found), strerror(error));
}

static int so_error(const struct silence *silence, int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	ck_assert_int_eq(silence->calls->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* By the number; of a blocking one by its own call. */
static int events_of(int fd, int timeout_ms, int (*by)(struct pollfd *, nfds_t, int))
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	ck_assert_int_ge(by(&pfd, 1, timeout_ms), 0);
	return pfd.revents;
}

/* Listed as a difference: siw waits for TCP inside of the call that sends the request. */
static bool keeps_calls(const struct silence *silence)
{
	return silence->calls->is_rs && silence->error == ETIMEDOUT &&
	       !strcmp(getenv("EVR_KIND"), "siw");
}

/* Each packet of TCP's that waited for the neighbour is an error of its own. */
static bool may_hear_again(const struct silence *silence)
{
	return !silence->calls->is_rs && silence->error == EHOSTUNREACH;
}

/*
 * Once it was told. Listed as a difference: TCP is new again when connect() has told, and else at
 * its end; an rsocket is neither.
 */
static void expect_over(const struct silence *silence, int fd, short tcp, int tcp_error)
{
	bool is_rs = silence->calls->is_rs;
	ssize_t ret;

	if (may_hear_again(silence))
		return;
	ck_assert_int_eq(so_error(silence, fd), 0);
	ck_assert_int_eq(events_of(fd, 0, silence->calls->poll), is_rs ? GONE : tcp);
	ret = silence->calls->recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT);
	expect_error(ret < 0 ? errno : 0, is_rs ? ENOTCONN : tcp_error);
}

static void close_one(const struct silence *silence, int fd)
{
	uint64_t begun = clock_real_us();

	ck_assert_int_eq(silence->calls->close(fd), 0);
	ck_assert_uint_le(clock_real_us() - begun, (uint64_t)SOON_S * US_PER_S);
}

/* --- the cases ------------------------------------------------------------------------------- */

START_TEST(a_connect_that_waits_is_given_up)
{
	const struct silence *silence = &silences[_i];
	int fd = open_one(silence, 0);

	expect_error(connect_one(silence, fd), silence->error);
	expect_over(silence, fd, POLLOUT | POLLHUP, ENOTCONN);
	expect_error(connect_one(silence, fd), silence->error);
	close_one(silence, fd);
}
END_TEST

START_TEST(a_connect_that_does_not_wait_shows_that_it_is_given_up)
{
	const struct silence *silence = &silences[_i];
	int fd = open_one(silence, SOCK_NONBLOCK);

	expect_error(connect_one(silence, fd), EINPROGRESS);
	ck_assert_int_eq(events_of(fd, US_PER_S / 1000, poll), 0);
	if (!keeps_calls(silence)) {
		expect_error(connect_one(silence, fd), EALREADY);
		ck_assert_int_eq(so_error(silence, fd), 0);
	}
	ck_assert_int_eq(events_of(fd, -1, poll), GONE | POLLERR);
	expect_error(so_error(silence, fd), silence->error);
	expect_over(silence, fd, GONE, 0);
	close_one(silence, fd);
}
END_TEST

START_TEST(another_connect_says_why_and_the_next_begins_again)
{
	const struct silence *silence = &silences[_i];
	int fd = open_one(silence, SOCK_NONBLOCK);

	expect_error(connect_one(silence, fd), EINPROGRESS);
	ck_assert_int_eq(events_of(fd, -1, poll), GONE | POLLERR);
	expect_error(connect_one(silence, fd), silence->error);
	expect_over(silence, fd, POLLOUT | POLLHUP, ENOTCONN);
	expect_error(connect_one(silence, fd), EINPROGRESS);
	if (!may_hear_again(silence))
		ck_assert_int_eq(events_of(fd, US_PER_S / 1000, poll), 0);
	if (keeps_calls(silence))
		ck_assert_int_eq(events_of(fd, -1, poll), GONE | POLLERR);
	else
		expect_error(connect_one(silence, fd), EALREADY);
	close_one(silence, fd);
}
END_TEST

/* It waits for a second. */
static int open_limited(const struct silence *silence)
{
	const struct timeval second = { 1, 0 };
	int fd = open_one(silence, 0);
	int ret = silence->calls->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));

	ck_assert_int_eq(ret, 0);
	return fd;
}

static void expect_limited(const struct silence *silence, int fd, int error)
{
	uint64_t begun = clock_real_us(), took;

	expect_error(connect_one(silence, fd), error);
	took = clock_real_us() - begun;
	ck_assert_uint_ge(took, US_PER_S);
	ck_assert_uint_le(took, (uint64_t)SOON_S * US_PER_S);
}

/* The attempt goes on, and the next call waits for it again. */
START_TEST(a_connect_ends_at_its_limit)
{
	const struct silence *silence = &silences[_i];
	int fd = open_limited(silence);

	if (keeps_calls(silence)) {
		expect_error(connect_one(silence, fd), silence->error);
	} else {
		expect_limited(silence, fd, EINPROGRESS);
		expect_limited(silence, fd, EALREADY);
		ck_assert_int_eq(events_of(fd, -1, silence->calls->poll), GONE | POLLERR);
		expect_error(so_error(silence, fd), silence->error);
	}
	close_one(silence, fd);
}
END_TEST

TCase *unanswered_case(void)
{
	TCase *cases = tcase_create("unanswered");

	tcase_add_loop_test(cases, a_connect_that_waits_is_given_up, 0, SILENCES);
	tcase_add_loop_test(
		cases, a_connect_that_does_not_wait_shows_that_it_is_given_up, 0, SILENCES);
	tcase_add_loop_test(cases, another_connect_says_why_and_the_next_begins_again, 0, SILENCES);
	tcase_add_loop_test(cases, a_connect_ends_at_its_limit, 0, SILENCES);
	return cases;
}
