/* rsockets of several threads: their own, one that two share, and one that ends under another. */
#include "unit/cm_crew.h"
#include "unit/rs_unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 6, BYTES = 200000, PIECE = 5000, PATIENCE_MS = 60000 };

/* --- steps ----------------------------------------------------------------------------------- */

static int open_one(int flags)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static short wait_for(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	ck_assert_int_eq(poll(&pfd, 1, PATIENCE_MS), 1);
	return pfd.revents;
}

/* By the numbers alone, each thread on a port of its own. */
static struct rs_pair connect_on(uint16_t port)
{
	const socklen_t len = sizeof(struct sockaddr_in);
	struct rs_pair pair = { open_one(SOCK_NONBLOCK), open_one(SOCK_NONBLOCK), -1 };

	ck_assert_ok(rbind(pair.listener, cm_addr(FAKE_ROCE_IP, port), len));
	ck_assert_ok(rlisten(pair.listener, 1));
	ck_assert_fails(rconnect(pair.client, cm_addr(FAKE_ROCE_IP, port), len), EINPROGRESS);
	wait_for(pair.listener, POLLIN);
	pair.server = raccept(pair.listener, NULL, NULL);
	ck_assert_int_ge(pair.server, 0);
	ck_assert_int_eq(wait_for(pair.client, POLLOUT), POLLOUT);
	return pair;
}

static char byte_at(size_t at)
{
	return (char)(at * 31 + at / 251);
}

static void send_all(int fd)
{
	char piece[PIECE];
	size_t sent = 0, i;
	ssize_t ret;

	while (sent < BYTES) {
		for (i = 0; i < PIECE; i++)
			piece[i] = byte_at(sent + i);
		ret = rsend(fd, piece, PIECE, 0);
		if (ret < 0)
			ck_assert_int_eq(errno, EAGAIN);
		if (ret < 0)
			wait_for(fd, POLLOUT);
		sent += ret > 0 ? (size_t)ret : 0;
	}
}

static void receive_all(int fd)
{
	char piece[PIECE];
	size_t got = 0;
	ssize_t ret, i;

	while (got < BYTES) {
		ret = rrecv(fd, piece, PIECE < BYTES - got ? PIECE : BYTES - got, 0);
		if (ret < 0)
			ck_assert_int_eq(errno, EAGAIN);
		if (ret < 0)
			wait_for(fd, POLLIN);
		for (i = 0; i < ret; i++)
			if (piece[i] != byte_at(got + (size_t)i))
				ck_abort_msg("another byte at %zu", got + (size_t)i);
		got += ret > 0 ? (size_t)ret : 0;
	}
}

/* --- their own ------------------------------------------------------------------------------- */

static void connect_and_pass(unsigned number)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rs_pair pair = connect_on((uint16_t)(CM_PORT + number));

		ck_assert_ok(rfcntl(pair.server, F_SETFL, O_RDWR | O_NONBLOCK));
		rs_pass(pair.client, pair.server, PIECE);
		rs_pass(pair.server, pair.client, PIECE);
		rs_close(&pair);
	}
}

START_TEST(each_has_its_own)
{
	crew_run(THREADS, connect_and_pass);
}
END_TEST

/* --- one for two ----------------------------------------------------------------------------- */

static struct rs_pair shared;

static void one_of_four(unsigned number)
{
	int fd = number & 1 ? shared.client : shared.server;

	if (number & 2)
		send_all(fd);
	else
		receive_all(fd);
}

START_TEST(one_thread_sends_what_another_receives_on_both_sides)
{
	const int flags = _i ? O_RDWR | O_NONBLOCK : O_RDWR;

	shared = connect_on(CM_PORT);
	ck_assert_ok(rfcntl(shared.client, F_SETFL, flags));
	ck_assert_ok(rfcntl(shared.server, F_SETFL, flags));
	crew_run(4, one_of_four);
	rs_close(&shared);
}
END_TEST

/* --- one that ends under another ------------------------------------------------------------- */

static atomic_bool waits;

static void wait_or_close(unsigned number)
{
	char byte;

	if (number) {
		while (!waits)
			usleep(100);
		ck_assert_ok(rclose(shared.client));
		return;
	}
	waits = true;
	ck_assert_fails(rrecv(shared.client, &byte, 1, 0), EBADF);
}

START_TEST(a_call_that_waits_ends_with_rclose)
{
	shared = connect_on(CM_PORT);
	ck_assert_ok(rfcntl(shared.client, F_SETFL, O_RDWR));
	crew_run(2, wait_or_close);
	shared.client = -1;
	rs_close(&shared);
}
END_TEST

static void wait_or_shut_down(unsigned number)
{
	char byte;

	if (number) {
		while (!waits)
			usleep(100);
		ck_assert_ok(rshutdown(shared.client, SHUT_RDWR));
		return;
	}
	waits = true;
	ck_assert_int_eq(rrecv(shared.client, &byte, 1, 0), 0);
}

START_TEST(a_call_that_waits_ends_with_rshutdown)
{
	shared = connect_on(CM_PORT);
	ck_assert_ok(rfcntl(shared.client, F_SETFL, O_RDWR));
	crew_run(2, wait_or_shut_down);
	rs_close(&shared);
}
END_TEST

static const char *const ends[] = { "ibv_post_send", "ibv_poll_cq" };
static const char *shared_end;

/* It is the other's call that finds the end. One of the two is told why, as with sockets. */
static void wait_or_break(unsigned number)
{
	char byte;

	if (number) {
		while (!waits)
			usleep(100);
		usleep(50000); /* it sleeps, unless the machine is busy */
		fake_fail_next(shared_end, EIO);
		if (rsend(shared.client, "a", 1, 0) == 1)
			ck_assert_int_le(rrecv(shared.client, &byte, 1, MSG_DONTWAIT), 0);
		return;
	}
	waits = true;
	ck_assert_int_le(rrecv(shared.client, &byte, 1, 0), 0);
}

START_TEST(a_call_that_waits_ends_with_the_stream_in_anothers_call)
{
	shared_end = ends[_i];
	shared = connect_on(CM_PORT);
	ck_assert_ok(rfcntl(shared.client, F_SETFL, O_RDWR));
	crew_run(2, wait_or_break);
	rs_close(&shared);
}
END_TEST

/* Some use a number that others close and open: it is another's, or nobody's. */
static void use_or_reopen(unsigned number)
{
	struct pollfd pfd;
	char byte;
	int i, fd;

	for (i = 0; i < ROUNDS * 50; i++) {
		if (number & 1) {
			fd = open_one(number & 2 ? SOCK_NONBLOCK : 0);
			usleep(10);
			ck_assert_ok(rclose(fd));
			continue;
		}
		pfd = (struct pollfd){ .fd = shared.server + 1 + i % THREADS, .events = POLLIN };
		rpoll(&pfd, 1, 0);
		rrecv(pfd.fd, &byte, 1, MSG_DONTWAIT);
		rfcntl(pfd.fd, F_GETFL);
	}
}

START_TEST(numbers_come_and_go_beside_calls)
{
	shared = connect_on(CM_PORT);
	crew_run(THREADS, use_or_reopen);
	rs_pass(shared.client, shared.server, PIECE);
	rs_close(&shared);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rs_threads");
	TCase *tcase = tcase_create("rs_threads");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, PATIENCE_MS / 1000 * 2);
	tcase_add_test(tcase, each_has_its_own);
	tcase_add_loop_test(tcase, one_thread_sends_what_another_receives_on_both_sides, 0, 2);
	tcase_add_test(tcase, a_call_that_waits_ends_with_rclose);
	tcase_add_test(tcase, a_call_that_waits_ends_with_rshutdown);
	tcase_add_loop_test(tcase, a_call_that_waits_ends_with_the_stream_in_anothers_call, 0,
		(int)(sizeof(ends) / sizeof(ends[0])));
	tcase_add_test(tcase, numbers_come_and_go_beside_calls);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
