/*
 * Every call below a connection fails, each in a run of its own, once alone and once with all that
 * come after it: somebody is told an errno, nobody waits for ever, all of it can be closed, nothing
 * is left, and the next run goes through.
 */
#include "unit/rs_unit.h"

#include "fake/fake_heap.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

/* An errno that nobody else gives. */
enum { INJECTED = EOVERFLOW, POINTS_MAX = 2000, BYTES = 3000, LIMIT_S = 600 };
enum { PATIENCE_US = 30000000, MAPPED_AT = 64 };

static const struct fault {
	const char *name;
	enum fake_layer layer; /* 0: the heap */
	bool lasting;
} faults[] = {
	{ "kernel calls", FAKE_KERNEL, false },
	{ "kernel calls, all from", FAKE_KERNEL, true },
	{ "verbs", FAKE_VERBS, false },
	{ "verbs, all from", FAKE_VERBS, true },
	{ "allocations", 0, false },
	{ "allocations, all from", 0, true },
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

struct ends {
	int listener, client, server;
	uint64_t deadline_us;
};

/* --- a connection from its beginning to its end ---------------------------------------------- */

static int is_late(const struct ends *ends)
{
	return evr_clock_now_us() > ends->deadline_us ? -ETIME : 0;
}

static int open_nonblocking(int *fd)
{
	int maps = 1;

	*fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	return rsetsockopt(*fd, SOL_RDMA, RDMA_IOMAPSIZE, &maps, sizeof(maps)) ? -errno : 0;
}

static int start_listening(struct ends *ends)
{
	int ret = open_nonblocking(&ends->listener);

	if (!ret &&
		rbind(ends->listener, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)))
		ret = -errno;
	if (!ret && rlisten(ends->listener, 1))
		ret = -errno;
	return ret;
}

static int start_connecting(struct ends *ends)
{
	int ret = open_nonblocking(&ends->client);

	if (!ret &&
		rconnect(
			ends->client, cm_addr(FAKE_ROCE_IP, CM_PORT), sizeof(struct sockaddr_in)) &&
		errno != EINPROGRESS)
		ret = -errno;
	return ret;
}

static int error_of(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? -errno : -error;
}

static int try_to_accept(struct ends *ends)
{
	ends->server = raccept(ends->listener, NULL, NULL);
	if (ends->server < 0)
		return errno == EAGAIN ? 0 : -errno;
	return rfcntl(ends->server, F_SETFL, O_RDWR | O_NONBLOCK) ? -errno : 0;
}

static int wait_for_both(struct ends *ends)
{
	struct pollfd fds[] = { { ends->client, POLLOUT, 0 }, { ends->listener, POLLIN, 0 } };
	int ret = 0;

	while (!ret && (ends->server < 0 || !(fds[0].revents & POLLOUT))) {
		if (rpoll(fds, 2, 10) < 0)
			return -errno;
		if (fds[0].revents & (POLLERR | POLLHUP))
			return error_of(ends->client);
		if (ends->server < 0)
			ret = try_to_accept(ends);
		if (!ret)
			ret = is_late(ends);
	}
	return ret;
}

static int move_some(ssize_t moved, size_t *sum)
{
	if (!moved)
		return -ECONNRESET;
	if (moved < 0)
		return errno == EAGAIN ? 0 : -errno;
	*sum += (size_t)moved;
	return 0;
}

static int pass(const struct ends *ends, int from, int to)
{
	char sent[BYTES], got[BYTES];
	size_t out = 0, in = 0;
	int ret = 0;

	memset(sent, 'x', sizeof(sent));
	while (!ret && in < BYTES) {
		if (out < BYTES)
			ret = move_some(rsend(from, sent + out, BYTES - out, 0), &out);
		if (!ret)
			ret = move_some(rrecv(to, got + in, BYTES - in, 0), &in);
		if (!ret)
			ret = error_of(from);
		if (!ret)
			ret = is_late(ends);
	}
	return ret ? ret : memcmp(sent, got, BYTES) ? -EILSEQ : 0;
}

/* Into memory of the other's, which is told of it with the next bytes. */
static int write_to(const struct ends *ends)
{
	static char memory[8];
	off_t at = riomap(ends->server, memory, sizeof(memory), PROT_WRITE, 0, MAPPED_AT);
	int ret = at == MAPPED_AT ? 0 : -errno;

	if (!ret)
		ret = pass(ends, ends->server, ends->client);
	if (!ret && riowrite(ends->client, "x", 1, MAPPED_AT, 0) != 1)
		ret = -errno;
	if (!ret)
		ret = pass(ends, ends->client, ends->server);
	return ret;
}

static int run(struct ends *ends)
{
	int ret = start_listening(ends);

	if (!ret)
		ret = start_connecting(ends);
	if (!ret)
		ret = wait_for_both(ends);
	if (!ret)
		ret = pass(ends, ends->client, ends->server);
	if (!ret)
		ret = write_to(ends);
	if (!ret && rshutdown(ends->client, SHUT_WR))
		ret = -errno;
	return ret;
}

/* --- its end --------------------------------------------------------------------------------- */

static void close_one(int fd, const char *what)
{
	if (fd >= 0)
		ck_assert_msg(!rclose(fd), "%s: rclose: %s", what, strerror(errno));
}

static unsigned int live(void)
{
	return fake_live(FAKE_QP) + fake_live(FAKE_CQ) + fake_live(FAKE_MR) + fake_live(FAKE_ID) +
	       fake_live(FAKE_CHANNEL) + fake_live(FAKE_FILE) + fake_live(FAKE_AH);
}

static void wait_for_the_end(const char *what)
{
	uint64_t late = evr_clock_now_us() + PATIENCE_US;

	while (live()) {
		ck_assert_msg(evr_clock_now_us() < late, "%s: %u objects are left", what, live());
		usleep(100);
	}
}

static void close_all(struct ends *ends, const char *what)
{
	close_one(ends->client, what);
	close_one(ends->server, what);
	close_one(ends->listener, what);
	wait_for_the_end(what);
}

static struct ends nothing(void)
{
	return (struct ends){ -1, -1, -1, evr_clock_now_us() + PATIENCE_US };
}

static void check_next_run(const char *what)
{
	struct ends ends = nothing();
	int ret = run(&ends);

	ck_assert_msg(!ret, "%s: the next run fails: %s", what, strerror(-ret));
	close_all(&ends, what);
}

/* --- one point ------------------------------------------------------------------------------- */

/* What the other side is told, or what a device says that failed. */
static bool is_an_answer(int error)
{
	switch (error) {
	case INJECTED:
	case ENOMEM:
	case ECONNREFUSED:
	case ECONNRESET:
	case ENODEV:
	case ENOTCONN:
	case EIO:
		return true;
	default:
		return false;
	}
}

static void arm(const struct fault *fault, unsigned int n)
{
	if (!fault->layer)
		(fault->lasting ? fake_heap_fail_from : fake_heap_fail_nth)(n);
	else if (fault->lasting)
		fake_fail_from(fault->layer, n, INJECTED);
	else
		fake_fail_nth(fault->layer, n, INJECTED);
}

static const char *disarm(const struct fault *fault)
{
	const char *failed = fake_failed();

	if (!fault->layer)
		failed = fake_heap_failed() ? "an allocation" : NULL;
	fake_heap_fail_nth(0);
	fake_fail_nth(FAKE_ANY, 0, 0);
	return failed;
}

/* False when there is no such point. */
static bool fails_at(const struct fault *fault, unsigned int n)
{
	struct ends ends = nothing();
	const char *failed;
	char what[160];
	int ret;

	arm(fault, n);
	ret = run(&ends);
	failed = disarm(fault);
	snprintf(what, sizeof(what), "%s %u (%s)", fault->name, n, failed ? failed : "not reached");
	ck_assert_msg(!ret || is_an_answer(-ret), "%s: %s", what, strerror(-ret));
	ck_assert_msg(!ret || failed, "%s: %s", what, strerror(-ret));
	close_all(&ends, what);
	if (failed)
		check_next_run(what);
	return failed;
}

START_TEST(whatever_fails_is_told_and_nothing_is_left_and_the_next_run_passes)
{
	const struct fault *fault = &faults[_i];
	unsigned int n = 0;

	check_next_run("before all");
	while (n < POINTS_MAX && fails_at(fault, n + 1))
		n++;
	ck_assert_uint_lt(n, POINTS_MAX);
	ck_assert_uint_gt(n, 10);
	printf("# %s: %u points\n", fault->name, n);
	fflush(stdout);
}
END_TEST

/* --- datagrams ------------------------------------------------------------------------------- */

enum { TURNS = 6 };

static int open_dgram(struct sockaddr_in *name)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(*name);
	int fd = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !rbind(fd, (struct sockaddr *)&any, sizeof(any)) &&
		!rgetsockname(fd, (struct sockaddr *)name, &len))
		return fd;
	if (fd >= 0)
		rclose(fd);
	return -1;
}

/* Nothing here asserts, for which it takes memory. What is lost on the way is as with any datagram:
 * only what is told is of interest. */
static int try_to_send(int from, int to, const struct sockaddr_in *name)
{
	struct pollfd pfd = { .fd = to, .events = POLLIN };
	char byte = 'x';
	int error = 0;

	if (rsendto(from, &byte, 1, 0, (const struct sockaddr *)name, sizeof(*name)) < 0)
		error = errno;
	rpoll(&pfd, 1, 0);
	while (rrecv(to, &byte, 1, 0) == 1)
		;
	return error == EAGAIN || error == ENOMEM ? 0 : error;
}

static bool datagrams_fail_at(unsigned int n)
{
	struct sockaddr_in names[2];
	int fds[2] = { -1, -1 }, i, error = 0;
	bool failed;

	fake_heap_fail_nth(n);
	for (i = 0; i < 2; i++)
		fds[i] = open_dgram(&names[i]);
	for (i = 0; fds[0] >= 0 && fds[1] >= 0 && !error && i < TURNS; i++)
		error = try_to_send(fds[i % 2], fds[!(i % 2)], &names[!(i % 2)]);
	failed = fake_heap_failed();
	fake_heap_fail_nth(0);
	ck_assert_msg(!error, "allocation %u: %s", n, strerror(error));
	ck_assert_msg(failed || (fds[0] >= 0 && fds[1] >= 0), "%u: %s", n, strerror(errno));
	for (i = 0; i < 2; i++)
		close_one(fds[i], "a datagram socket");
	wait_for_the_end("a datagram socket");
	return failed;
}

START_TEST(datagrams_go_on_without_memory_and_nothing_is_left)
{
	unsigned int n = 0;

	while (n < POINTS_MAX && datagrams_fail_at(n + 1))
		n++;
	ck_assert_uint_lt(n, POINTS_MAX);
	ck_assert_uint_gt(n, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rs_fault");
	TCase *tcase = tcase_create("sweep");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, cm_set_up, cm_tear_down);
	tcase_set_timeout(tcase, LIMIT_S);
	tcase_add_loop_test(tcase,
		whatever_fails_is_told_and_nothing_is_left_and_the_next_run_passes, 0, FAULTS);
	tcase_add_test(tcase, datagrams_go_on_without_memory_and_nothing_is_left);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
